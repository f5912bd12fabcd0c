"""The stages of the SMT encoding that several algorithms are made of; each run records them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import z3

from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    addend,
    align,
    align_sticky,
    canonical_nan,
    classify,
    decode,
    encode,
    maximum,
    multiply,
    negate_if,
    normalise_and_round,
    pad,
    resize,
    select_special,
    signed_sum,
    sticky_sum,
)
from mmaformal.encodings.smt.ieee import Addition, add
from mmaformal.encodings.smt.saturating import project
from mmaformal.formats import Format
from mmaformal.rounding import Conversion, Rounding
from mmaformal.stages import Recorded, Value


class Aligned(NamedTuple):
    """Magnitudes at one exponent, whose signs are the terms', and their sum in two's complement."""

    terms: tuple[BitVec, ...]
    total: BitVec


class Code(NamedTuple):
    """A rounded number, and the code that it or a special value is."""

    total: BitVec  #: what is rounded
    rounded: Rounded
    result: BitVec


class FusedSum(NamedTuple):
    """The end of a fused step: its terms and c in fixed point, added and rounded once."""

    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the terms'
    aligned_c: BitVec
    total: BitVec  #: accumulate, two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


class ScaledSum(NamedTuple):
    """Products in fixed point, their sum, and that sum scaled."""

    products: tuple[tuple[BitVec, BitVec], ...]  #: signs and magnitudes
    total: BitVec  #: two's complement
    term: Term


class Stages(Recorded):
    """A record of the stages of a run, with a method for each stage."""

    def convert(self, code: BitVec, source: Format, target: Format) -> BitVec:
        """The code in a format that holds every value of `source`."""
        return self.code("convert", [code], ieee.convert(code, source, target), target)

    def code(self, name: str, inputs: Sequence[Value], made: BitVec, fmt: Format) -> BitVec:
        """A code that depends on what is given alone."""
        return self.made(name, inputs, made, fmt=fmt)

    def zero(self, fmt: Format) -> BitVec:
        """The code of +0, with which a chain begins."""
        return self.made("zero", [], z3.BitVecVal(0, fmt.storage_bits), fmt=fmt)

    def decode(self, code: BitVec, fmt: Format, flushed: bool = False) -> Operand:
        """The operand of a code, a subnormal one as zero where it is `flushed`."""
        x = decode(code, fmt)
        if not flushed:
            return self.made("decode", [code], x, fmt=fmt)
        top = z3.Extract(fmt.fraction_bits, fmt.fraction_bits, x.significand) == 1
        zero = z3.BitVecVal(0, x.significand.size())
        return self.flushed_operand(code, x._replace(significand=z3.If(top, x.significand, zero)), fmt)

    def flushed_operand(self, code: BitVec, made: Operand, fmt: Format) -> Operand:
        """A decoded operand, a subnormal counting as zero."""
        return self.made("decode", [code], made, fmt=fmt, flushed=True)

    def classify(
        self,
        factors: Sequence[tuple[Operand, Operand]],
        addends: Sequence[Operand] = (),
        scales: Sequence[Operand] = (),
    ) -> Special:
        """The special value that the sum of products and addends is."""
        operands = [x for each in factors for x in each]
        return self.made("classify", [*operands, *scales, *addends], classify(factors, addends, scales))

    def multiply(
        self,
        x: Operand,
        y: Operand,
        bias: int,
        exponents: ExponentRange,
        e_zero: int | None = None,
        scales: Sequence[Operand] = (),
    ) -> Term:
        """The exact product; `bias` is the sum of all biases."""
        product = multiply(x, y, bias, exponents, e_zero, scales)
        return self.made("multiply", [x, y, *scales], product, low=exponents.low)

    def addend(self, c: Operand, bias: int, exponents: ExponentRange, e_zero: int | None = None) -> Term:
        """c as a term."""
        return self.made("addend", [c], addend(c, bias, exponents, e_zero), low=exponents.low)

    def scaled_sum(
        self,
        codes: Sequence[BitVec],
        scales: tuple[Operand, Operand],
        made: ScaledSum,
        exponents: ExponentRange,
    ) -> ScaledSum:
        """The scaled sum of the products of two codes each: those of a, then those of b."""
        return self.made("scaled_sum", [*codes, *scales], made, low=exponents.low)

    def largest(self, terms: Sequence[Term], exponents: ExponentRange) -> BitVec:
        """The largest exponent."""
        return self.made("largest", terms, maximum([x.exponent for x in terms]), low=exponents.low)

    def accumulate(
        self,
        terms: Sequence[tuple[Term, int]],
        e_max: BitVec,
        F: int,
        bits: int | None,
        cut: Rounding = Rounding.RZ,
    ) -> Aligned:
        """Terms with their fraction bits, F of which are kept at the largest exponent, and added.

        The sum has so many bits, or as many as the widths of the magnitudes ask for.
        """
        place = align_sticky if cut is Rounding.RO else align
        aligned = tuple(place(x, e_max, places, F) for x, places in terms)
        if bits is None:
            bits = sum((1 << x.size()) - 1 for x in aligned).bit_length() + 1
        total = signed_sum([(x.sign, y) for (x, _), y in zip(terms, aligned, strict=True)], bits)
        return self.made("accumulate", [*(x for x, _ in terms), e_max], Aligned(aligned, total))

    def as_term(self, x: Aligned, e_max: BitVec) -> Term:
        """A sum as a term of another."""
        bits = x.total.size() - 1
        sign = z3.Extract(bits, bits, x.total)
        return self.made("as_term", [x, e_max], Term(sign, e_max, resize(negate_if(sign, x.total), bits)))

    def round(
        self,
        x: Aligned,
        e_max: BitVec,
        exponents: ExponentRange,
        F: int,
        rho: Conversion,
        lowest: int,
        special: Special,
        nan: int,
    ) -> Code:
        """The code of a sum whose last place is 2^(e_max - F), rounded with ρ, or of a special value."""
        rounded = normalise_and_round(x.total, e_max, exponents, F, rho, lowest)
        if rho.saturation is None:
            code = select_special(special, encode(rounded, rho), rho.format, nan)
        else:
            code = project(rounded, special, rho)
        return self.made("round", [x, e_max, special], Code(x.total, rounded, code), rho=rho)

    def round_product(
        self, x: Term, exponents: ExponentRange, F: int, rho: Conversion, special: Special, nan: int
    ) -> Code:
        """The code of a product of F fraction bits, rounded with ρ: a zero has the product's sign."""
        total = negate_if(x.sign, resize(x.significand, x.significand.size() + 1))
        rounded = normalise_and_round(total, x.exponent, exponents, F, rho, exponents.low)
        rounded = rounded._replace(sign=z3.If(total == 0, x.sign, rounded.sign))
        code = select_special(special, encode(rounded, rho), rho.format, nan)
        return self.made("round_product", [x, special], Code(total, rounded, code), rho=rho)

    def sticky_sum(
        self,
        x: Term,
        x_bits: int,
        y: Term,
        y_bits: int,
        frame: int,
        exponents: ExponentRange,
        least: int | None = None,
    ) -> StickySum:
        """The sum of two terms, with a sticky last place; `least` is an exponent that the larger one is not below,
        where it matters."""
        made = sticky_sum(x, x_bits, y, y_bits, frame)
        return self.made("sticky_sum", [x, y], made, low=exponents.low, frame=frame, least=least)

    def round_sum(
        self, x: StickySum, terms: Sequence[Term], special: Special | None, made: Code, rho: Conversion
    ) -> Code:
        """The code of a sum, or of a special value if that is decided here; `terms`: those whose signs a zero has."""
        return self.made("round_sum", [x, *terms, *([] if special is None else [special])], made, rho=rho)

    def add(self, x: BitVec, y: BitVec, rho: Conversion, nan: int) -> Addition:
        """The IEEE 754 sum of two codes."""
        return self.made("add", [x, y], add(x, y, rho, nan), rho=rho)

    def fused_sum(
        self,
        terms: Sequence[tuple[Term, int]],
        exponents: ExponentRange,
        F: int,
        bits: int | None,
        rho: Conversion,
        lowest: int,
        special: Special,
        cut: Rounding = Rounding.RZ,
    ) -> FusedSum:
        """The code of the sum of terms with their fraction bits, c the last of them, or of a special value."""
        e_max = self.largest([x for x, _ in terms], exponents)
        sum_ = self.accumulate(terms, e_max, F, bits, cut)
        code = self.round(sum_, e_max, exponents, F, rho, lowest, special, canonical_nan(rho.format))
        return FusedSum(
            e_max, sum_.terms[:-1], sum_.terms[-1], sum_.total, rounded=code.rounded, result=code.result
        )

    def change_sign(self, code: BitVec, fmt: Format) -> BitVec:
        """The code with its sign changed; a NaN as it is."""
        top = code.size() - 1
        changed = z3.Concat(~z3.Extract(top, top, code), z3.Extract(top - 1, 0, code))
        return self.code("change_sign", [code], z3.If(decode(code, fmt).nan, code, changed), fmt)

    def constant(self, name: str, code: int, fmt: Format) -> BitVec:
        """One code."""
        return self.code(name, [], z3.BitVecVal(code, fmt.storage_bits), fmt)

    def first_nan(
        self, nans: Sequence[tuple[Operand | Special, BitVec, Format]], otherwise: BitVec, target: Format
    ) -> BitVec:
        """The code of the first NaN, made quiet, in another format with its payload; if there is none, `otherwise`."""
        result = otherwise
        for flags, code, source in reversed(nans):
            result = z3.If(flags.nan, quiet(code, source, target), result)
        inputs = [otherwise, *(part for flags, code, _ in nans for part in (flags, code))]
        return self.code("first_nan", inputs, result, target)


def quiet(code: BitVec, source: Format, target: Format) -> BitVec:
    """The code of a NaN of `source` as one of `target`, made quiet, the fraction's bits at the top."""
    top, bits = code.size() - 1, source.fraction_bits
    exponent = z3.BitVecVal(-1, target.exponent_bits + 1)  # and the bit of a quiet NaN
    payload = [z3.Extract(bits - 2, 0, code)] if bits > 1 else []  # a fraction of one bit is that bit
    return pad(z3.Concat(z3.Extract(top, top, code), exponent, *payload), target.fraction_bits - bits)
