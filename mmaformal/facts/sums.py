"""The sums of a step, their terms, and how large these are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.cases.interfaces import Adds, Decodes
from mmaformal.display import ShortRepr
from mmaformal.encodings.smt.blocks import StickySum, Term
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import Format
from mmaformal.limits import aligned, widest
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link, within
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.solver.asking import constants_of
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class StepSum(ShortRepr):
    """One accumulation of a step: `total` is the sum of `terms`, each of a magnitude of at most its bound."""

    what: str
    total: z3.BitVecRef  #: two's complement
    terms: tuple[z3.BitVecRef, ...]
    bounds: tuple[int, ...]
    significands: tuple[tuple[z3.BitVecRef, int, tuple[z3.ExprRef, ...]], ...]
    #: of each term: what it is aligned from, the largest that is, and what else it is made of
    step: Adds | None = None  #: whose interfaces these are, if they are a step's
    signed: tuple[
        tuple[z3.ExprRef, ...], ...
    ] = ()  #: of each term: sign and aligned magnitude, whose bits are its bound


#: Derives that no significand is above the largest: `Facts.significand_is_small`.
Small: TypeAlias = Callable[[Pairing, DotAdd, Adds, z3.BitVecRef, Link], None]


def prove_sums_fit(pairing: Pairing, spec: DotAdd, each: StepSum, small: Small) -> None:
    """Derive that every partial sum is within the sum of its terms' bounds; the last is `within` of the total."""
    running: Link | None = None
    x, bound = None, 0
    for n, (term, most) in enumerate(zip(each.terms, each.bounds, strict=True)):
        link = within(term, most)
        if each.significands:
            significand, largest, others = each.significands[n]
            size = Link(z3.ULE(significand, largest), (significand,))
            assert each.step is not None
            small(pairing, spec, each.step, significand, size)
            pairing.derive("align", "an aligned term is within its bound", [link], [size], others)
        elif each.signed:
            pairing.derive("align", "a term is within its bits", [link], [], each.signed[n])
        else:
            assert each.step is not None
            given = _finite(pairing, spec, each.step, n)
            pairing.derive("align", "a term is within its bound", [link], given)
        x, bound = term if x is None else x + term, bound + most
        before, running = running, within(x, bound)
        text = "a partial sum is within the sum of its terms' bounds"
        pairing.derive("accumulate", text, [running], [link] if before is None else [before, link])


def _finite(pairing: Pairing, spec: DotAdd, step: Decodes, n: int) -> list[Link]:
    """For sums in fixed point: the factors are finite, which is assumed; infinities make the sum irrelevant."""
    links: list[Link] = []
    for x, fmt in ((step.a[n], spec.a_format), (step.b[n], spec.b_format)):
        raw = Link(z3.Not(z3.Or(x.nan, x.infinite)), ())
        pairing.assume("factors are finite", raw)
        top = z3.BitVecVal(fmt.max_exponent + fmt.bias, x.field.size())
        link = Link(z3.And(z3.UGE(x.field, 1), z3.ULE(x.field, top)), (x.field, x.significand, x.sign))
        links += pairing.derive(
            "decode", "a finite factor has a finite exponent", [link], [raw], operand_codes(x)
        )
    return links


def sum_of_two(step: Adds | None, what: str, each: StickySum) -> StepSum:
    bounds = tuple((1 << x.size()) - 1 for x in (each.x, each.y))
    terms = tuple(summands(each.total, 2))
    if len(terms) != 2:
        raise ArgumentError(f"the sum of {what} is not made of two terms")
    signs = [term.arg(0) for term in terms]  # that the term is negative
    signed = ((signs[0], each.x), (signs[1], each.y))
    return StepSum(what, each.total, terms=terms, bounds=bounds, significands=(), step=step, signed=signed)


def sum_with_zero(what: str, each: StickySum, exponents: Sequence[z3.BitVecRef]) -> StepSum:
    """The sum of a term and zero, which is aligned by these exponents."""
    both = sum_of_two(None, what, each)
    return replace(both, bounds=(both.bounds[0], 0), signed=(both.signed[0], tuple(exponents)))


def sum_in_ieee(each: Addition) -> StepSum:
    """The sum of magnitudes, where signs are equal."""
    added = each.total.arg(1)
    terms = tuple(added.children())
    bound = (1 << (added.size() - 1)) - 1
    signed = tuple((x.arg(0) if x.num_args() == 1 else x,) for x in terms)
    wider = z3.ZeroExt(1, terms[0]) + z3.ZeroExt(1, terms[1])
    return StepSum(
        "two fp32 numbers",
        wider,
        terms=tuple(z3.ZeroExt(1, x) for x in terms),
        bounds=(bound, bound),
        significands=(),
        signed=signed,
    )


def sum_of_terms(
    step: Adds, what: str, total: z3.BitVecRef, parts: Sequence[tuple[Term, int, int]], e_max: z3.BitVecRef
) -> StepSum:
    terms = tuple(summands(total, len(parts)))
    if len(terms) != len(parts):
        raise ArgumentError(f"the sum of {what} is not made of {len(parts)} terms")
    made = tuple((t.significand, largest, (t.sign, t.exponent, e_max)) for t, largest, _ in parts)
    return StepSum(what, total, terms, tuple(bound for *_, bound in parts), made, step)


def aligned_terms(
    spec: DotAdd,
    step: Adds,
    F: int,
    terms: Sequence[Term],
    largest: int,
    fraction: int,
    largest_c: int | None = None,
) -> list[tuple[Term, int, int]]:
    """Return for each product (or group) and c the term, its largest significand, and that with F fractional bits.

    c's largest significand is that of its format, unless another one is given.
    """
    c = widest(spec.c_format) if largest_c is None else largest_c
    parts = [(t, largest, aligned(largest, fraction, F)) for t in terms]
    return [*parts, (step.addend, c, aligned(c, spec.c_format.fraction_bits, F))]


def product_places(spec: DotAdd) -> int:
    """Fractional places of a product."""
    return spec.a_format.fraction_bits + spec.b_format.fraction_bits


def largest_product(spec: DotAdd) -> int:
    """The largest significand of a product."""
    return widest(spec.a_format) * widest(spec.b_format)


def significand_is_small(
    pairing: Pairing, spec: DotAdd, step: Adds, significand: z3.BitVecRef, size: Link, converted: bool = False
) -> None:
    text = "no significand is above the largest"
    if significand.eq(step.addend.significand):
        own = [step.c.significand] if constants_of(step.c.significand) else []  # or c is one code
        pairing.derive("multiply", text, [size], [], own)
        return
    given, factors, made_of = [], [], constants_within(significand)
    for side, fmt, operands in (("a", spec.a_format, step.a), ("b", spec.b_format, step.b)):
        for x in operands:
            if x.significand.get_id() not in made_of:
                continue
            factors.append(x.significand)
            if converted:  # a converted factor is no larger than what it is made from
                places = x.significand.size() - 1 - fmt.fraction_bits
                link = Link(z3.ULE(x.significand, widest(fmt) << places), (x.significand,))
                given.append(link)
                text_ = f"a converted {side} is not above the largest"
                pairing.derive("decode", text_, [link], [], operand_codes(x))
    pairing.derive("multiply", text, [size], given, factors)


def constants_within(whole: z3.ExprRef) -> set[int]:
    """The ids of all that a term is made of."""
    stack, seen = [whole], set()
    while stack:
        x = stack.pop()
        if x.get_id() not in seen:
            seen.add(x.get_id())
            stack += x.children()
    return seen


def _top(fmt: Format, exponent: int) -> int:
    """The code with the largest significand of an exponent; of scales, 1."""
    if not fmt.has_zero:
        return fmt.bias
    field = exponent + fmt.bias
    return ((field << fmt.fraction_bits) | ((1 << fmt.fraction_bits) - 1)) << fmt.ignored_low_bits


def nearest_exponent(fmt: Format, exponent: int) -> int:
    return min(max(exponent, fmt.min_exponent), full_exponent(fmt))


def case_of(spec: DotAdd, e_a: int, e_b: int, e_c: int) -> Codes:
    """All a, b and c with the largest significands, at these exponents; scales of 1."""
    a, b = _top(spec.a_format, e_a), _top(spec.b_format, e_b)
    scales = (_top(spec.scale_format, 0),) * spec.scales if spec.scale_format is not None else ()
    return Codes((a,) * spec.k, (b,) * spec.k, _top(spec.c_format, e_c), scales, scales)


def largest_case(spec: DotAdd) -> Codes:
    """All products and c with the largest significands, at the exponents 0.

    Where a format has no normal numbers of that exponent, at those nearest to it, with c's that of the products.
    """
    x, y, z = spec.a_format, spec.b_format, spec.c_format
    e_a = nearest_exponent(x, 0)
    e_b = nearest_exponent(y, nearest_exponent(z, e_a) - e_a)
    e_a = nearest_exponent(x, nearest_exponent(z, e_a + e_b) - e_b)
    return case_of(spec, e_a, e_b, nearest_exponent(z, e_a + e_b))


def full_exponent(fmt: Format) -> int:
    """The largest exponent of numbers of which every significand bit may be set."""
    all_ones = ((fmt.largest >> fmt.ignored_low_bits) + 1) % (1 << fmt.fraction_bits) == 0
    return fmt.max_exponent - (not all_ones)
