"""The stages of the executable encoding that several algorithms are made of; each run records them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Term,
    align,
    align_sticky,
    canonical_nan,
    classify_addend,
    classify_product,
    classify_scale,
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    sign_word,
    signed,
    term,
    where,
    with_scales,
    with_zero_exponent,
)
from mmaformal.encodings.executable.ieee import Addition, convert_exactly, ieee_add
from mmaformal.encodings.executable.saturating import saturated
from mmaformal.encodings.executable.stochastic import round_randomly
from mmaformal.formats import Format
from mmaformal.rounding import Conversion, Rounding
from mmaformal.stages import Recorded, Value


class Aligned(NamedTuple):
    """Terms at one exponent, and their sum."""

    terms: tuple[Lane, ...]
    total: Lane


class Code(NamedTuple):
    """A rounded number, and the code that it or a special value is."""

    total: Lane  #: what is rounded
    rounded: Rounded
    result: Lane


class FusedSum(NamedTuple):
    """The end of a fused step: c and its terms at one exponent, added exactly and rounded once."""

    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    aligned_c: Lane
    total: Lane  #: accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


class ScaledSum(NamedTuple):
    """Products, their sum in fixed point, and that sum scaled."""

    products: tuple[Term, ...]
    total: Lane
    term: Term


def code_of_product(x: Term, F: int, rho: Conversion, special: Special, nan: int) -> Code:
    """The code of a product of F fraction bits, rounded with ρ: a zero has the product's sign."""
    total = Sum(signed(x.sign, x.significand), x.exponent - F)
    rounded = round_sum(total, x.sign, rho)
    return Code(total.total, rounded, select_special(special, encode(rounded, rho), rho, nan))


class Stages(Recorded):
    """A record of the stages of a run, with a method for each stage."""

    def convert(self, code: Lane, source: Format, target: Format) -> Lane:
        """The code in a format that holds every value of `source`."""
        return self.code("convert", [code], convert_exactly(code, source, target), target)

    def code(self, name: str, inputs: Sequence[Value], made: Lane, fmt: Format) -> Lane:
        """A code that depends on what is given alone."""
        return self.made(name, inputs, made, fmt=fmt)

    def zero(self, like: Lane) -> Lane:
        """The code of +0, with which a chain begins: as many as there are of `like`."""
        return self.made("zero", [], like * 0)

    def decode(self, code: Lane, fmt: Format, flushed: bool = False) -> Operand:
        """The operand of a code; if it is to be flushed, a subnormal one is zero of its sign."""
        x = decode(code, fmt.layout)
        if flushed:
            return self.flushed_operand(
                code,
                x._replace(significand=where(x.significand >> fmt.fraction_bits > 0, x.significand, 0)),
                fmt,
            )
        return self.made("decode", [code], x, fmt=fmt)

    def flushed_operand(self, code: Lane, made: Operand, fmt: Format) -> Operand:
        """A decoded operand, a subnormal counting as zero."""
        return self.made("decode", [code], made, fmt=fmt, flushed=True)

    def classify(
        self,
        factors: Sequence[tuple[Operand, Operand]],
        addends: Sequence[Operand] = (),
        scales: Sequence[Operand] = (),
    ) -> Special:
        """The special value that the sum of products and addends is."""
        parts = [classify_addend(x) for x in addends] + [classify_product(*each) for each in factors]
        parts += [classify_scale(x) for x in scales]
        operands = [x for each in factors for x in each]
        return self.made(
            "classify", [*operands, *scales, *addends], resolve_special(reduce(merge_special, parts))
        )

    def multiply(
        self, x: Operand, y: Operand, e_zero: int | None = None, scales: Sequence[Operand] = ()
    ) -> Term:
        """The exact product; a zero has the exponent e_zero, or that of its fields."""
        product = multiply(x, y)
        if scales:
            product = with_scales(product, *scales)
        return self.made("multiply", [x, y, *scales], with_zero_exponent(product, e_zero))

    def addend(self, c: Operand, e_zero: int | None = None) -> Term:
        """c as a term."""
        return self.made("addend", [c], with_zero_exponent(term(c), e_zero))

    def scaled_sum(
        self, codes: Sequence[Lane], scales: tuple[Operand, Operand], made: ScaledSum
    ) -> ScaledSum:
        """The scaled sum of the products of two codes each: those of a, then those of b."""
        return self.made("scaled_sum", [*codes, *scales], made)

    def largest(self, terms: Sequence[Term]) -> Lane:
        """The largest exponent."""
        first, *rest = (x.exponent for x in terms)
        return self.made("largest", terms, reduce(maximum, rest, first))

    def accumulate(
        self, terms: Sequence[tuple[Term, int]], e_max: Lane, F: int, cut: Rounding = Rounding.RZ
    ) -> Aligned:
        """Terms with their fraction bits, F of which are kept at the largest exponent; added in this order."""
        place = align_sticky if cut is Rounding.RO else align
        aligned = tuple(place(x, e_max, bits, F) for x, bits in terms)
        total = sum(aligned[1:], aligned[0])
        inputs, places = [*(x for x, _ in terms), e_max], [bits for _, bits in terms]
        return self.made("accumulate", inputs, Aligned(aligned, total), F=F, places=places)

    def as_term(self, x: Aligned, e_max: Lane) -> Term:
        """A sum as a term of another."""
        negative = x.total < 0
        magnitude = where(negative, -x.total, x.total)
        return self.made("as_term", [x, e_max], Term(where(negative, 1, 0), e_max, magnitude))

    def round(self, x: Aligned, e_max: Lane, F: int, rho: Conversion, special: Special, nan: int) -> Code:
        """The code of a sum whose last place is 2^(e_max - F), rounded with ρ, or of a special value."""
        rounding = round_randomly if rho.rounding.is_stochastic else normalise_and_round
        rounded = rounding(x.total, e_max - F, rho)
        if rho.saturation is None:
            code = select_special(special, encode(rounded, rho), rho, nan)
        else:
            code = saturated(rounded, special, rho)
        return self.made("round", [x, e_max, special], Code(x.total, rounded, code), rho=rho, F=F)

    def round_product(self, x: Term, F: int, rho: Conversion, special: Special, nan: int) -> Code:
        """`code_of_product`."""
        code = code_of_product(x, F, rho, special, nan)
        return self.made("round_product", [x, special], code, rho=rho, F=F)

    def add(self, x: Lane, y: Lane, rho: Conversion, nan: int) -> Addition:
        """The IEEE 754 sum of two codes."""
        return self.made("add", [x, y], ieee_add(x, y, rho, nan), rho=rho)

    def fused_sum(
        self,
        terms: Sequence[tuple[Term, int]],
        F: int,
        rho: Conversion,
        special: Special,
        cut: Rounding = Rounding.RZ,
    ) -> FusedSum:
        """Convert c, the first of the terms, and the others, with their fraction bits, to the code of their sum."""
        e_max = self.largest([x for x, _ in terms])
        total = self.accumulate(terms, e_max, F, cut)
        code = self.round(total, e_max, F, rho, special, canonical_nan(rho.format))
        aligned_c, *aligned = total.terms
        return FusedSum(e_max, tuple(aligned), aligned_c, total.total, code.rounded, code.result)

    def change_sign(self, code: Lane, fmt: Format) -> Lane:
        """The code with its sign changed; a NaN as it is."""
        changed = where(decode(code, fmt.layout).nan, code, code ^ sign_word(fmt))
        return self.code("change_sign", [code], changed, fmt)

    def constant(self, name: str, like: Lane, code: int, fmt: Format) -> Lane:
        """One code, as many as there are of `like`."""
        lane = code - (1 << 64) if code >> 63 else code
        return self.code(name, [], like * 0 + lane, fmt)

    def first_nan(
        self, nans: Sequence[tuple[Operand | Special, Lane, Format]], otherwise: Lane, target: Format
    ) -> Lane:
        """The code of the first NaN, made quiet, in another format with its payload; if there is none, `otherwise`."""
        result = otherwise
        for flags, code, source in reversed(nans):
            result = where(flags.nan, _quiet(code, source, target), result)
        inputs = [otherwise, *(part for flags, code, _ in nans for part in (flags, code))]
        return self.code("first_nan", inputs, result, target)


def _quiet(code: Lane, source: Format, target: Format) -> Lane:
    """The code of a NaN of `source` as one of `target`, made quiet: its payload is at the top of the fraction."""
    fraction = code & ((1 << source.fraction_bits) - 1)
    negative = ((code >> (source.storage_bits - 1)) & 1) == 1
    wide = quiet_nan(target) | fraction << (target.fraction_bits - source.fraction_bits)
    return where(negative, wide + sign_word(target), wide)
