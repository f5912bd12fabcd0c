"""When nothing is cut off before d is rounded, said of codes, in rationals: proofs' conditions are compared with it.

A fused step cuts nothing off if no term has a bit below the last place kept; a tree of rounded operations if no number
in it is too small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact_of as exact_sum
from mmaformal.encodings.dpa_e9s12.proofs.losses import places_kept
from mmaformal.encodings.dpa_e9s12.smt import SIGNIFICAND_BITS
from mmaformal.encodings.pfma.proofs.exactness import shape_of
from mmaformal.facts.signed import changed
from mmaformal.formats import Format, exponent_of, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.definitions import grid_value, index_below, last_index
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.rounded_trees import TreeShape, in_pairs

Number = tuple[Fraction, int]  #: a value, and the exponent that it is aligned by
#: Whether a step adds exactly: of a specification, codes, the place of its first product, its products, and its c.
Keeps = Callable[[DotAdd, Codes, int, list[Number], Number], bool]


class ExactRounding(NamedTuple):
    """One rounding of a computation in which each one before is exact."""

    whole: bool  #: whether nothing is cut off before
    exact: Fraction  #: what is rounded then
    rho: Conversion


class Exactness(NamedTuple):
    """Whether d is known to be the exact sum, rounded once; and to be the exact sum."""

    once: bool
    exact: bool


def examine(instruction: Instruction, codes: Codes) -> Exactness:
    """Return what the conditions say, which suffice and are not necessary.  They are about numbers."""
    spec = instruction.spec
    assert exact_sum(spec, codes) is not None
    *before, last = roundings(spec, codes)
    if not all(step.whole and _is_number_of(step.exact, step.rho) for step in before):
        return Exactness(False, False)
    return Exactness(last.whole, last.whole and _is_number_of(last.exact, last.rho))


def _is_number_of(x: Fraction, rho: Conversion) -> bool:
    below = index_below(x, rho)
    return below < last_index(rho) and grid_value(below, rho) == abs(x)


def roundings(spec: DotAdd, codes: Codes) -> Iterator[ExactRounding]:
    """Yield all roundings of a computation, in order."""
    name, L = spec.parameters.algorithm, spec.parameters.step_products
    if spec.is_signed:
        sign = -1 if "d" in spec.negated else 1
        for each in roundings(spec.plain, changed(spec, codes)):
            yield each._replace(exact=sign * each.exact)
    elif name in ("lowered", "muladd", "rnd2"):
        yield from {"lowered": _of_lowered, "muladd": _of_muladd, "rnd2": _of_rnd2}[name](spec, codes)
    elif name in ("gps", "oddsum"):
        yield from _of_trees(spec, codes, in_pairs(L), numbers=True)
    elif name in ("pfma", "ffma"):
        yield from _of_trees(spec, codes, shape_of(L) if name == "pfma" else (), numbers=False)
    else:
        yield from _of_steps(spec, codes, KEEPS[name])


# ---- numbers


def _lowest_bit(x: Fraction) -> int:
    """Return the exponent of the lowest set bit of a dyadic number that is not 0."""
    numerator = abs(x.numerator)
    return (numerator & -numerator).bit_length() - x.denominator.bit_length()


def _no_bit_below(x: Fraction, exponent: int) -> bool:
    return x == 0 or _lowest_bit(x) >= exponent


def _total(terms: Sequence[Number]) -> Fraction:
    return sum((value for value, _ in terms), Fraction(0))


def _field(code: int, fmt: Format) -> int:
    """Return the exponent of a code's field."""
    field = fmt.fields(code)[1]
    return (max(field, 1) if fmt.has_zero else field) - fmt.bias


def products(spec: DotAdd, codes: Codes) -> list[Number]:
    """Return each product with the exponent of its factors' fields, and of its scales'."""
    found = []
    for k in range(spec.k):
        parts = [(codes.a[k], spec.a_format), (codes.b[k], spec.b_format)]
        if spec.scale_format is not None:
            sides = codes.scale_a, codes.scale_b
            parts += [(side[k // spec.scale_block], spec.scale_format) for side in sides]
        value = Fraction(1)
        for code, fmt in parts:
            value *= fmt.value(code)
        found.append((value, sum(_field(code, fmt) for code, fmt in parts)))
    return found


def _addend(c: Fraction, fmt: Format) -> Number:
    return c, max(exponent_of(abs(c)), fmt.min_exponent) if c else fmt.min_exponent


def _top(terms: Sequence[Number], e_zero: int | None) -> int:
    """Return the largest exponent; a zero counts with the larger of e_zero and its fields': that may only say no."""
    return max(e if value or e_zero is None else max(e, e_zero) for value, e in terms)


def _aligned(terms: Sequence[Number], F: int, e_zero: int | None) -> bool:
    """Return whether no term has a bit below 2^(e_max - F)."""
    e_max = _top(terms, e_zero)
    return all(_no_bit_below(value, e_max - F) for value, _ in terms)


# ---- fused steps


def _of_steps(spec: DotAdd, codes: Codes, keeps: Keeps) -> Iterator[ExactRounding]:
    terms, L = products(spec, codes), spec.parameters.step_products
    c = spec.c_format.value(codes.c)
    for start in range(0, spec.k, L):
        part = terms[start : start + L]
        whole = keeps(spec, codes, start, part, _addend(c, spec.c_format))
        c += _total(part)
        yield ExactRounding(whole, c, spec.parameters.last_rounding)


def _of_fda(spec: DotAdd, codes: Codes, start: int, terms: list[Number], c: Number) -> bool:
    p: Any = spec.parameters
    return _aligned([*terms, c], p.F, p.e_zero)


def _of_gdfs(spec: DotAdd, codes: Codes, start: int, terms: list[Number], c: Number) -> bool:
    """A group's exponent is that of its scales."""
    p: Any = spec.parameters
    groups = []
    for g in range(0, len(terms), p.G):
        block, scale = (start + g) // spec.scale_block, spec.scale_format
        assert scale is not None
        exponent = _field(codes.scale_a[block], scale) + _field(codes.scale_b[block], scale)
        groups.append((_total(terms[g : g + p.G]), exponent))
    return _aligned([*groups, c], p.F, p.e_zero)


def _of_gfda(spec: DotAdd, codes: Codes, start: int, terms: list[Number], c: Number) -> bool:
    p: Any = spec.parameters
    parts = [terms[g : g + p.G] for g in range(0, len(terms), p.G)]
    groups = [(_total(part), _top(part, p.e_zero)) for part in parts]
    return all(_aligned(part, p.W, p.e_zero) for part in parts) and _aligned([*groups, c], p.F, p.e_zero)


def _of_fdrda(spec: DotAdd, codes: Codes, start: int, terms: list[Number], c: Number) -> bool:
    """No term loses a bit where it is aligned, nor the sum where it is cut to `sum_bits`."""
    p: Any = spec.parameters
    groups = [[terms[k] for k in members] for members in p.members()]
    e_dot = max(e for _, e in terms)
    e_max = max(e_dot, c[1])
    everything = _total([*terms, c])
    if p.reach is not None and c[0] and c[1] < e_max - p.reach:
        return False
    return (
        # What counts as infinite is told by the exponent, also of a product of subnormals, which may be far smaller.
        all(e + (abs(x) >= Fraction(2) ** (e + 1)) <= fp32.max_exponent for x, e in terms if x)
        and all(_no_bit_below(x, max(e for _, e in group) - p.F) for group in groups for x, _ in group)
        and all(_no_bit_below(_total(group), e_dot - p.F) for group in groups)
        and _no_bit_below(_total(terms), e_max - p.dot_bits)
        and _no_bit_below(c[0], e_max - p.F)
        and (p.sum_bits is None or _no_bit_below(everything, _addend(everything, fp32)[1] - p.sum_bits))
    )


def _of_dpa_e9s12(spec: DotAdd, codes: Codes, start: int, terms: list[Number], c: Number) -> bool:
    """No product of halves has a bit below the last place kept."""
    halves = [
        (x * y, e + f)
        for k in range(start, start + len(terms))
        for x, e in _cut(codes.a[k], spec.a_format)
        for y, f in _cut(codes.b[k], spec.b_format)
    ]
    e_max = max((e for value, e in halves if value), default=0)
    return all(_no_bit_below(value, e_max - places_kept(spec).F) for value, _ in halves)


def _cut(code: int, fmt: Format) -> list[Number]:
    """Return the E9S12 numbers of a factor."""
    value, exponent = fmt.value(code), _field(code, fmt)
    if fmt != fp32:
        return [(value, exponent)]
    unit = Fraction(2) ** (exponent - fp32.fraction_bits)
    upper = (abs(value) / unit).__floor__() >> SIGNIFICAND_BITS << SIGNIFICAND_BITS
    high = upper * unit * (-1 if value < 0 else 1)
    return [(high, exponent), (value - high, exponent - SIGNIFICAND_BITS)]


KEEPS: dict[str, Keeps] = {
    "fda": _of_fda,
    "gdfs": _of_gdfs,
    "gfda": _of_gfda,
    "fdrda": _of_fdrda,
    "gfdrda": _of_fdrda,
    "dpa_e9s12": _of_dpa_e9s12,
    **dict.fromkeys(("efda", "fma", "sfma", "wfma"), lambda *_: True),
}


# ---- trees, and what is made of several operations


def _is_not_below(x: Fraction, fmt: Format) -> bool:
    """Whether a number is 0, or not below the least normal one."""
    return x == 0 or abs(x) >= Fraction(2) ** fmt.min_exponent


def _of_trees(spec: DotAdd, codes: Codes, shape: TreeShape, *, numbers: bool) -> Iterator[ExactRounding]:
    """A chain of trees (`theory/rounded_trees.py`); with the products, if they are `numbers`."""
    terms, L, rho = products(spec, codes), spec.parameters.step_products, spec.parameters.last_rounding
    c = spec.c_format.value(codes.c)
    fine = _is_not_below(c, fp32)
    for start in range(0, spec.k, L):
        sides = ((codes.a, spec.a_format), (codes.b, spec.b_format))
        factors = [(fmt.value(side[k]), fmt) for side, fmt in sides for k in range(start, start + L)]
        fine = fine and all(_is_not_below(x, fmt) for x, fmt in factors)
        values = [x for x, _ in terms[start : start + L]]
        for x, y in shape:
            values.append(values[x] + (0 if y is None else values[y]))
        c += values[-1]
        for i, value in enumerate((*values, c)):
            if i < L and not numbers:
                continue
            fine = fine and _is_not_below(value, fp32)
            yield ExactRounding(fine, value, rho if i >= L else IEEE_FP32)


def _of_lowered(spec: DotAdd, codes: Codes) -> Iterator[ExactRounding]:
    p, terms, c = spec.parameters, products(spec, codes), spec.c_format.value(codes.c)
    for start in range(0, spec.k, p.step_products):
        dot = Fraction(0)
        for first in range(0, p.step_products, p.L):
            part = [terms[start + k] for k in p.order[first : first + p.L]]
            whole = _aligned([*part, _addend(dot, spec.d_format)], p.F, p.e_zero)
            dot += _total(part)
            yield ExactRounding(whole, dot, p.rho)
        c += dot
        yield ExactRounding(True, c, p.addition)


def _of_muladd(spec: DotAdd, codes: Codes) -> Iterator[ExactRounding]:
    p, c = spec.parameters, spec.c_format.value(codes.c)
    for product, _ in products(spec, codes):
        yield ExactRounding(True, product, p.product)
        c += product
        yield ExactRounding(True, c, p.rho)


def _of_rnd2(spec: DotAdd, codes: Codes) -> Iterator[ExactRounding]:
    p, c = spec.parameters, spec.c_format.value(codes.c)
    terms = [value for value, _ in products(spec, codes)]
    for x, y in zip(terms[::2], terms[1::2], strict=True):
        yield ExactRounding(True, x + y, p.pair)
        c += -(x + y) if p.negate_pair else x + y
        yield ExactRounding(True, c, p.rho)
