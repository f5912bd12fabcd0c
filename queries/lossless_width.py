"""How wide an alignment must be so that no bit is ever lost: TensorGauge, Table I (tools/docs/lossless_table.py).

    mmaformal prove lossless-width hopper HMMA.16816.F32

Terms are aligned to the largest exponent e_max and F fractional bits are kept.  Nothing is lost of any input if and
only if F is at least

    max over pairs of terms of (largest exponent of one − last place of the other):

for a *separated* dot-add (SDA: the products alone, c added later) both are products; for a *fused* one (FDA) one of
them may be c.  A single product is aligned to c and to itself alone.  A unit that gives zeros an exponent of their
own, e_zero, may align everything to that.  `prove_width` proves that so many bits are enough, for all codes, and finds
two terms with which one fewer is not.  The *data path* has two integer bits more, since a product's significand is
below 4; carries of the sum are not counted, as in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import z3

from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.cases.numerical import find_case, shown_exact
from mmaformal.cases.run import run_both
from mmaformal.encodings import executable
from mmaformal.encodings.fda import executable as fda
from mmaformal.encodings.fdrda import executable as fdrda
from mmaformal.encodings.gdfs import executable as gdfs
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    Term,
    addend,
    align,
    all_of,
    decode,
    exponent_range,
    is_zero,
    multiply,
    product_range,
)
from mmaformal.facts.registry import facts_of
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.property import Property
from mmaformal.queries.rounding import STEP
from mmaformal.shown_stages import number_text
from mmaformal.solver.answers import Answer, Fails, Holds, Number, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

INTEGER_BITS = 2  #: of a product's significand


@dataclass(frozen=True)
class TermKind:
    """A kind of term: a product of two formats, c, or (without formats) a zero of the exponent e_zero."""

    name: str
    formats: tuple[Format, ...]
    e_zero: int = 0

    @property
    def highest(self) -> int:
        if not self.formats:
            return self.e_zero
        return sum(fmt.max_exponent for fmt in self.formats)

    @property
    def last_place(self) -> int:
        """The exponent of the lowest bit that such a term has."""
        return sum(fmt.min_exponent - fmt.fraction_bits for fmt in self.formats)

    @property
    def fraction_bits(self) -> int:
        return sum(fmt.fraction_bits for fmt in self.formats)


@dataclass(frozen=True)
class Width:
    """The least F with which nothing is lost; `top` and `low` are the kinds of terms that need so many."""

    F: int
    top: TermKind
    low: TermKind
    itself: bool = False  #: they are one and the same term

    @property
    def data_path(self) -> int:
        return self.F + INTEGER_BITS


def pairs_of(
    a: Format, b: Format, c: Format | None, products: int = 2, e_zero: int | None = None
) -> list[tuple[TermKind, TermKind]]:
    """(the term with the largest exponent, the term that is aligned to it): kinds that meet in one sum."""
    product = TermKind("product", (a, b))
    pairs = [(product, product)] if products > 1 else []
    if e_zero is not None:  # a zero c, or the +0 that a separated sum starts from, above a product
        zero = TermKind("zero", (), e_zero)
        pairs.append((zero, product))
    if c is not None:
        addend = TermKind("c", (c,))
        pairs += [(product, addend), (addend, product)]
        if e_zero is not None:  # a zero product above c
            pairs.append((zero, addend))
    return pairs


def lossless_width_of(
    a: Format, b: Format, c: Format | None, products: int = 2, e_zero: int | None = None
) -> Width:
    """The lossless width of so many products of a and b; with c fused, or (None) separated."""
    pairs = pairs_of(a, b, c, products, e_zero)
    # Each term is aligned to itself, too.
    widths = [Width(top.highest - low.last_place, top, low) for top, low in pairs]
    widths += [Width(kind.fraction_bits, kind, kind, itself=True) for kind in _kinds_of(a, b, c)]
    return max(widths, key=lambda width: width.F)


def _kinds_of(a: Format, b: Format, c: Format | None) -> list[TermKind]:
    return [TermKind("product", (a, b)), *([TermKind("c", (c,))] if c is not None else [])]


# ---- proof and witness -----------------------------------------------------------------------------------------------


def _term(kind: TermKind, codes: Sequence[z3.BitVecRef], low: int, high: int) -> tuple[Term, z3.BoolRef]:
    """The term of symbolic codes, its exponent counted from `low`; and whether it is a number other than zero."""
    exponents = ExponentRange(low, high)
    operands = [decode(code, fmt) for code, fmt in zip(codes, kind.formats, strict=True)]
    number = all_of([z3.Not(z3.Or(x.infinite, x.nan, is_zero(x))) for x in operands])
    bias = sum(fmt.bias for fmt in kind.formats)
    if not operands:
        return Term(z3.BitVecVal(0, 1), exponents.constant(kind.e_zero), z3.BitVecVal(0, 1)), number
    if len(operands) == 1:
        return addend(operands[0], bias, exponents, None), number
    x, y = operands
    return multiply(x, y, bias, exponents, None), number


def _fields(kind: TermKind) -> tuple[int, int]:
    """The range of exponents of all codes, special ones included."""
    if not kind.formats:
        return kind.e_zero, kind.e_zero
    r = exponent_range(kind.formats[0]) if len(kind.formats) == 1 else product_range(*kind.formats)
    return r.low, r.high


def _loses(top: TermKind, low: TermKind, F: int, codes: Sequence[Sequence[z3.BitVecRef]]) -> z3.BoolRef:
    """Whether aligning one term to the exponent of another with F fractional bits loses a bit of it.

    `codes`: of the term with the larger exponent, and of the other.
    """
    ranges = [_fields(kind) for kind in (top, low)]
    least, most = min(r[0] for r in ranges), max(r[1] for r in ranges)
    (x, x_number), (y, y_number) = (
        _term(kind, side, least, most) for kind, side in zip((top, low), codes, strict=True)
    )
    aligned = align(y, x.exponent, low.fraction_bits, F)
    bits = max(x.exponent.size(), F.bit_length()) + 4
    unit, place = fit(x.exponent, bits) - F, fit(y.exponent, bits) - low.fraction_bits
    kept = at_least(aligned, unit, y.significand, place)
    return z3.And(x_number, y_number, z3.UGE(x.exponent, y.exponent), z3.Not(kept))


def _symbolic(kinds: Sequence[TermKind]) -> list[list[z3.BitVecRef]]:
    return [
        [z3.BitVec(f"{name}{i}", fmt.storage_bits) for i, fmt in enumerate(kind.formats)]
        for name, kind in zip("xy", kinds, strict=True)
    ]


def prove_width(
    proving: Composing,
    a: Format,
    b: Format,
    c: Format | None,
    products: int = 2,
    e_zero: int | None = None,
) -> Width:
    """Prove that the width is enough, for all codes of each pair of terms, and that one bit fewer is not.

    Raises NotProvedError.
    """
    width = lossless_width_of(a, b, c, products, e_zero)
    for top, low in pairs_of(a, b, c, products, e_zero):
        formats = " · ".join(map(str, low.formats))
        above = f"larger {top.name}" if top.formats else f"zero, whose exponent is {top.e_zero}"
        text = f"{width.F} fractional bits hold every bit of a {low.name} ({formats}) under any {above}"
        claim = z3.Not(_loses(top, low, width.F, _symbolic((top, low))))
        proving.claim(f"{low.name} under {top.name}", text, claim)
    for kind in _kinds_of(a, b, c):
        if (kind, kind) not in pairs_of(a, b, c, products, e_zero):
            (codes, _) = _symbolic((kind, kind))
            text = f"{width.F} fractional bits hold every bit of a {kind.name} that is aligned to itself"
            proving.claim(f"{kind.name} alone", text, z3.Not(_loses(kind, kind, width.F, (codes, codes))))
    if not loses_at(width, width.F - 1):
        raise NotProvedError(f"{width.F - 1} fractional bits are too few", "sat", "")
    return width


def witness(width: Width) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Codes of two terms that need `width.F` bits: the largest exponent there is, and the lowest bit there is."""
    top = tuple(fmt.code(str(Fraction(2) ** fmt.max_exponent)) for fmt in width.top.formats)
    low = tuple(1 << fmt.ignored_low_bits for fmt in width.low.formats)
    return low if width.itself else top, low


def loses_at(width: Width, F: int) -> bool:
    """Whether F fractional bits lose a bit of the witness' smaller term, by the alignment of the SMT encoding."""
    codes = [
        [z3.BitVecVal(code, fmt.storage_bits) for code, fmt in zip(side, kind.formats, strict=True)]
        for side, kind in zip(witness(width), (width.top, width.low), strict=True)
    ]
    return bool(z3.is_true(z3.simplify(_loses(width.top, width.low, F, codes))))


# ---- the property ----------------------------------------------------------------------------------------------------


def sums_of_steps(spec: DotAdd, codes: Codes) -> Iterator[tuple[Fraction, Fraction]]:
    """Returns, for each step that aligns: (the sum that it rounds, its exact sum), by the executable encoding;
    finite inputs."""
    p = spec.parameters
    parts = p.made_of(spec)
    inner, order = (parts or spec).parameters, p.taken(spec.k)
    a, b = ([side[k] for k in order] for side in (codes.a, codes.b))
    scales = (list(codes.scale_a), list(codes.scale_b)) if spec.scale_format is not None else ()
    trace = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c, *scales)
    steps = [step for step in trace.steps if isinstance(step, (fda.FdaStep, gdfs.GdfsStep, fdrda.FdrdaStep))]
    c = Fraction(0) if parts else spec.c_format.value(codes.c)
    L, F = inner.step_products, inner.sum_places
    per_instruction = p.step_products // L if parts else len(steps)
    for i, step in enumerate(steps):
        if i % per_instruction == 0 and i:
            c = Fraction(0)
        total = c
        for k in range(i * L, (i + 1) * L):
            product = spec.a_format.value(a[k]) * spec.b_format.value(b[k])
            if product and spec.scale_format is not None:
                block = k // spec.scale_block
                product *= spec.scale_format.value(codes.scale_a[block])
                product *= spec.scale_format.value(codes.scale_b[block])
            total += product
        yield Fraction(step.total) * Fraction(2) ** (step.e_max - F), total
        result = step.result & (spec.d_format.codes - 1)  # an fp64 code is a lane, negative with its sign
        if not spec.d_format.is_finite(result):
            return
        c = spec.d_format.value(result)


def _breaks(spec: DotAdd, codes: Codes, result: int) -> bool:
    return spec.d_format.is_finite(result) and any(
        kept != whole for kept, whole in sums_of_steps(spec, codes)
    )


def losing(spec: DotAdd, width: Width) -> Codes:
    """The two terms of `witness` as a case: the one with the largest exponent, and the one that loses its last bit."""
    products: dict[int, tuple[int, int]] = {}
    c = 0
    pairs = zip((width.top, width.low), witness(width), strict=True)
    for place, (kind, codes) in enumerate(pairs):
        if width.itself and place:
            break
        if len(kind.formats) == 2:
            products[spec.parameters.taken(spec.k)[place]] = (codes[0], codes[1])
        elif kind.formats:
            c = codes[0]
    return replace(with_products(zeros(spec), products), c=c)


def _settle(instruction: Instruction, asker: Asker) -> Answer:
    spec, p = instruction.spec, instruction.parameters
    if not p.aligns:  # a step is exact, or it is not
        return STEP.settle(instruction, asker)
    question = f"{instruction.label}: alignment loses no bit of any input"
    proving = Composing(asker)
    numbers: tuple[Number, ...] = ()
    if (of := facts_of(spec).lossless_of(spec)) is not None:
        width = lossless_width_of(*of)
        meaning = "fractional bits that an alignment has to keep, to lose no bit of any input"
        numbers = (Number("F", width.F, meaning),)
        question += f" (it needs F = {width.F} fractional bits)"
        if p.sum_places >= width.F:
            try:
                question += f": {facts_of(spec).lossless(proving, spec)}"
            except NotProvedError as error:
                return Unknown(question, str(error), proving.obligations, asker.elapsed)
            return Holds(question, proving.proof(), asker.elapsed, numbers)
    codes = find_case(instruction, partial(_breaks, spec))
    if codes is None and of is not None:
        codes = next(
            (x for x in [losing(spec, lossless_width_of(*of))] if _breaks(spec, x, run_both(instruction, x))),
            None,
        )
    if codes is None:
        return Unknown(question, "no input was found that loses one", (), asker.elapsed)
    lost = next((kept, whole) for kept, whole in sums_of_steps(spec, codes) if kept != whole)
    notes = (f"the aligned terms add up to {number_text(lost[0])}, exactly {number_text(lost[1])}",)
    minimal = ("made smaller step by step, not proved minimal",)
    why = "a term has a bit below the last place that alignment keeps"
    return Fails(question, shown_exact(instruction, codes, notes, minimal), why, asker.elapsed, numbers)


PROPERTY = Property(
    "lossless-width", "no step loses a bit of its terms before it rounds their sum once", _settle
)
