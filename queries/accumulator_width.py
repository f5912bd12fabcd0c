"""How many bits does the accumulator need above one aligned term?

A sum of n terms of t bits each fits t + ⌈log2 n⌉ bits; often fewer do, since c has one integer bit and products two,
and the largest significands of narrow formats are far from a power of two.  For the carry bits that the largest
significands need it is proved that every partial sum of every step fits, and shown by an input whose sum has the
highest of these bits set that no fewer do.  For four products of fp16 and c these are 3, as Valpey, Li,
Pai and Gopalakrishnan found for a sum of five terms (*An SMT Formalization of Mixed-Precision Matrix Multiplication*,
arXiv 2502.15999).  Where two numbers are added at a time (gps, sfma, the sorted terms of efda), one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3

from mmaformal.algorithms import DotAdd, aligned, widest
from mmaformal.cases.inputs import Codes, symbolic_inputs
from mmaformal.cases.relations import Rows, run_trace, values
from mmaformal.display import ShortRepr
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import StickySum
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.facts.accumulator import within
from mmaformal.formats import Format, Specials
from mmaformal.instruction import Instruction
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link, UnprovedError
from mmaformal.proof.related_runs import Pairing, operand_codes, prove
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.solver.asking import Asker


@dataclass(frozen=True, repr=False)
class Sum(ShortRepr):
    """One accumulation of a step: `total` is the sum of `terms`, each of a magnitude of at most its bound."""

    what: str
    total: z3.BitVecRef  #: two's complement
    terms: tuple[z3.BitVecRef, ...]
    bounds: tuple[int, ...]
    significands: tuple[tuple[z3.BitVecRef, int, tuple[z3.ExprRef, ...]], ...]
    #: of each term: what it is aligned from, the largest that is, and what else it is made of
    step: Any = None  #: whose interfaces these are
    signed: tuple[
        tuple[z3.ExprRef, ...], ...
    ] = ()  #: of each term: sign and aligned magnitude, whose bits are its bound


def largest_case(spec: DotAdd) -> Codes:
    """All products and c with the largest significands, at the exponents 0 (those of e2m1 at the largest).

    Where a format has no normal numbers of that exponent, at those nearest to it, with c's that of the products.
    """

    def top(fmt: Format, exponent: int) -> int:
        if not fmt.has_zero:
            return fmt.bias
        field = exponent + fmt.bias
        return ((field << fmt.fraction_bits) | ((1 << fmt.fraction_bits) - 1)) << fmt.ignored_low_bits

    def near(fmt: Format, exponent: int) -> int:
        return min(max(exponent, fmt.min_exponent), _full_exponent(fmt))

    x, y, z = spec.a_format, spec.b_format, spec.c_format
    if spec.parameters.algorithm == "gdfs":  # the exponents of products do not matter, but their size does
        e_a, e_b, e_c = x.max_exponent, y.max_exponent, near(z, 0)
    else:
        e_a = near(x, 0)
        e_b = near(y, near(z, e_a) - e_a)
        e_a = near(x, near(z, e_a + e_b) - e_b)
        e_c = near(z, e_a + e_b)
    a, b = top(x, e_a), top(y, e_b)
    scales = (top(spec.scale_format, 0),) * spec.scales if spec.scale_format is not None else ()
    return Codes((a,) * spec.k, (b,) * spec.k, top(z, e_c), scales, scales)


def _full_exponent(fmt: Format) -> int:
    """The largest exponent of numbers of which every significand bit may be set."""
    return fmt.max_exponent - (fmt.specials is Specials.FN)


def _sums(spec: DotAdd, step: Any, product: int | None = None) -> list[Sum]:
    """The accumulations of a step; `product`: the largest significand of one, if not that of the formats."""
    p = spec.parameters
    name = p.algorithm
    if name == "lowered":
        inner = p.inner_dot_add(spec)  # type: ignore[attr-defined]
        places = 2 * inner.a_format.fraction_bits - spec.a_format.fraction_bits - spec.b_format.fraction_bits
        converted = widest(spec.a_format) * widest(spec.b_format) << places
        return [sum_ for each in step.inner for sum_ in _sums(inner, each, converted)]
    if name == "gps":
        return [_addition(each) for each in (*step.sums, step.addition)]
    product = product or widest(spec.a_format) * widest(spec.b_format)
    if name in ("fda", "gdfs"):
        terms = step.products if name == "fda" else step.groups
        fraction = spec.a_format.fraction_bits + spec.b_format.fraction_bits
        largest = product
        if name == "gdfs":
            assert spec.scale_format is not None
            fraction = 2 + 2 * spec.scale_format.fraction_bits
            largest = p.G * 36 * 4 * widest(spec.scale_format) ** 2  # type: ignore[attr-defined]
        parts = [(t, largest, aligned(largest, fraction, p.F)) for t in terms]  # type: ignore[attr-defined]
        c = widest(spec.c_format)
        parts.append((step.addend, c, aligned(c, spec.c_format.fraction_bits, p.F)))  # type: ignore[attr-defined]
        return [_sum(step, "products and c", step.total, parts, step.e_max)]
    if name in ("fdrda", "gfdrda"):
        fraction = spec.a_format.fraction_bits + spec.b_format.fraction_bits
        most = aligned(product, fraction, p.F)  # type: ignore[attr-defined]
        parts = [(t, product, most) for t in step.products]
        if name == "fdrda":
            return [_sum(step, "products", step.dot, parts, step.e_products)]
        count = len(step.groups)
        return [
            _sum(step, f"products of group {g}", step.groups[g], parts[g::count], step.e_groups[g])
            for g in range(count)
        ]
    if hasattr(step, "placed"):
        highest = spec.a_format.max_exponent + spec.b_format.max_exponent
        lowest = spec.a_format.min_exponent + spec.b_format.min_exponent
        bound = product << (highest - lowest)
        count = len(step.placed)
        return [Sum("products", step.dot, tuple(summands(step.dot, count)), (bound,) * count, (), step)]
    if name == "efda":
        return [
            _two(step, "two of three sorted terms", step.partial),
            _two(step, "that and the third", step.sum),
        ]
    return [_two(step, "a product and c", step.sum)]


def _two(step: Any, what: str, each: StickySum) -> Sum:
    bounds = tuple((1 << x.size()) - 1 for x in (each.x, each.y))
    terms = tuple(summands(each.total, 2))
    if len(terms) != 2:
        raise ArgumentError(f"the sum of {what} is not made of two terms")
    signs = [term.arg(0) for term in terms]  # that the term is negative
    signed = ((signs[0], each.x), (signs[1], each.y))
    return Sum(what, each.total, terms, bounds, (), step, signed)


def _addition(each: Addition) -> Sum:
    """The sum of magnitudes, where signs are equal."""
    added = each.total.arg(1)
    terms = tuple(added.children())
    bound = (1 << (added.size() - 1)) - 1
    signed = tuple((x.arg(0) if x.num_args() == 1 else x,) for x in terms)
    wider = z3.ZeroExt(1, terms[0]) + z3.ZeroExt(1, terms[1])
    return Sum(
        "two fp32 numbers", wider, tuple(z3.ZeroExt(1, x) for x in terms), (bound, bound), (), each, signed
    )


def _sum(
    step: Any, what: str, total: z3.BitVecRef, parts: Sequence[tuple[Any, int, int]], e_max: z3.BitVecRef
) -> Sum:
    terms = tuple(summands(total, len(parts)))
    if len(terms) != len(parts):
        raise ArgumentError(f"the sum of {what} is not made of {len(parts)} terms")
    made = tuple((t.significand, largest, (t.sign, t.exponent, e_max)) for t, largest, _ in parts)
    return Sum(what, total, terms, tuple(bound for *_, bound in parts), made, step)


def carry_bits(each: Sum) -> int:
    return sum(each.bounds).bit_length() - max(each.bounds).bit_length()


def argument(spec: DotAdd) -> tuple[Pairing, list[Sum]]:
    """That every partial sum of every step is within the sum of its terms' bounds, and the largest case reaches it."""
    pairing, x = Pairing(), symbolic_inputs(spec)
    trace = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
    found: list[Sum] = []
    for step in trace.steps:
        for each in _sums(spec, step):
            found.append(each)
            _fits(pairing, spec, each)
    if not found:
        raise ArgumentError("no sum of aligned terms")
    totals = [Link(_fits_claim(each), ()) for each in found]
    everything = Link(z3.And([link.claim for link in totals]) if len(totals) > 1 else totals[0].claim, ())
    pairing.derive(
        "accumulate", "all sums are within their bounds", [everything], [_link(each) for each in found]
    )
    pairing.conclude(everything, "no sum is beyond its bound")
    _reached(pairing, spec, found)
    return pairing, found


def _link(each: Sum) -> Link:
    return within(each.total, sum(each.bounds))


def _fits_claim(each: Sum) -> z3.BoolRef:
    return _link(each).claim


def _fits(pairing: Pairing, spec: DotAdd, each: Sum) -> None:
    running: Link | None = None
    x, bound = None, 0
    for n, (term, most) in enumerate(zip(each.terms, each.bounds, strict=True)):
        link = within(term, most)
        if each.significands:
            significand, largest, others = each.significands[n]
            size = Link(z3.ULE(significand, largest), (significand,))
            _significand_is_small(pairing, spec, each.step, significand, size)
            pairing.derive("align", "an aligned term is within its bound", [link], [size], others)
        elif each.signed:
            pairing.derive("align", "a term is within its bits", [link], [], each.signed[n])
        else:
            given = _finite(pairing, each.step, n)
            pairing.derive("align", "a term is within its bound", [link], given)
        x, bound = term if x is None else x + term, bound + most
        before, running = running, within(x, bound)
        text = "a partial sum is within the sum of its terms' bounds"
        pairing.derive("accumulate", text, [running], [link] if before is None else [before, link])


def _significand_is_small(
    pairing: Pairing, spec: DotAdd, step: Any, significand: z3.BitVecRef, size: Link
) -> None:
    text = "no significand is above the largest"
    if spec.parameters.algorithm == "gdfs":
        _group_is_small(pairing, spec, step, significand, size)
        return
    if significand.eq(step.addend.significand):
        pairing.derive("multiply", text, [size], [], [step.c.significand])
        return
    given, factors, made_of = [], [], _parts(significand)
    for side, fmt, operands in (("a", spec.a_format, step.a), ("b", spec.b_format, step.b)):
        for x in operands:
            if x.significand.get_id() not in made_of:
                continue
            factors.append(x.significand)
            if (
                spec.parameters.algorithm == "lowered"
            ):  # a converted factor is no larger than what it is made from
                places = x.significand.size() - 1 - fmt.fraction_bits
                link = Link(z3.ULE(x.significand, widest(fmt) << places), (x.significand,))
                given.append(link)
                text_ = f"a converted {side} is not above the largest"
                pairing.derive("decode", text_, [link], [], operand_codes(x))
    pairing.derive("multiply", text, [size], given, factors)


def _group_is_small(pairing: Pairing, spec: DotAdd, step: Any, significand: z3.BitVecRef, size: Link) -> None:
    """A group's sum is within that of its products' bounds; its scaled significand follows."""
    text = "no significand is above the largest"
    G, largest = spec.parameters.G, 36 * 4  # type: ignore[attr-defined]
    for total, group in zip(step.sums, step.groups, strict=True):
        if not group.significand.eq(significand):
            continue
        running: Link | None = None
        x = None
        for n, term in enumerate(summands(total, G), 1):
            link = within(term, largest)
            made_of = _parts(term)
            pair = [x for side in (step.a, step.b) for x in side if x.field.get_id() in made_of]
            fields: list[Link] = []
            for factor in pair:
                field = Link(z3.UGE(factor.field, 1), (factor.field,))
                codes = operand_codes(factor)
                fields += pairing.derive("decode", "exponent fields are at least 1", [field], [], codes)
            inputs = [part for factor in pair for part in (factor.sign, factor.significand)]
            pairing.derive("multiply", "a product is at most 36", [link], fields, inputs)
            x = term if x is None else x + term
            before, running = running, within(x, n * largest)
            pairing.derive(
                "multiply",
                "a partial sum of a group is in range",
                [running],
                [link] if before is None else [before, link],
            )
        assert running is not None
        scales = [y.significand for y in (*step.scale_a, *step.scale_b)]
        pairing.derive("multiply", text, [size], [running], scales)
        return
    pairing.derive("multiply", text, [size], [], [step.c.significand])


def _parts(whole: z3.ExprRef) -> set[int]:
    """The ids of all that a term is made of."""
    stack, seen = [whole], set()
    while stack:
        x = stack.pop()
        if x.get_id() not in seen:
            seen.add(x.get_id())
            stack += x.children()
    return seen


def _finite(pairing: Pairing, step: Any, n: int) -> list[Link]:
    """For sums in fixed point: the factors are finite, which is assumed; infinities make the sum irrelevant."""
    links: list[Link] = []
    for x in (step.a[n], step.b[n]):
        raw = Link(z3.Not(z3.Or(x.nan, x.infinite)), ())
        pairing.assume("factors are finite", raw)
        top = z3.BitVecVal((1 << x.field.size()) - 2, x.field.size())
        link = Link(z3.And(z3.UGE(x.field, 1), z3.ULE(x.field, top)), (x.field, x.significand, x.sign))
        links += pairing.derive(
            "decode", "a finite factor has a finite exponent", [link], [raw], operand_codes(x)
        )
    return links


def _reached(pairing: Pairing, spec: DotAdd, found: Sequence[Sum]) -> None:
    """The largest case, in the SMT wing: a claim about constants."""
    x = values(spec, _case(spec))
    trace = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
    first = _sums(spec, trace.steps[0])[0]
    half = 1 << (sum(first.bounds).bit_length() - 1)
    link = Link(first.total >= half, ())
    pairing.derive("witness", "the largest significands need the highest carry bit", [link])


def _case(spec: DotAdd) -> Codes:
    case = largest_case(spec)
    if spec.parameters.algorithm == "efda":
        case = Codes((_largest(spec.a_format),) * spec.k, (_largest(spec.b_format),) * spec.k, 0)
    return case


def _largest(fmt: Format) -> int:
    """The code of the largest number."""
    code = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    while not fmt.is_finite(code << fmt.ignored_low_bits):  # at most the fractions of one exponent
        code = code - 1 if fmt.infinity is None else (fmt.infinity >> fmt.ignored_low_bits) - 1
    return code << fmt.ignored_low_bits


def _run(instruction: Instruction, bound: int) -> None:
    """The same in the executable wing.  Raises ArgumentError if its sum does not need the highest bit."""
    spec = instruction.spec
    step = run_trace(spec, Rows.of([_case(spec)]).codes).steps[0]
    name = spec.parameters.algorithm
    if name == "lowered":
        total = step.total  # that of the first inner step
    elif name in ("fda", "gdfs"):
        total = step.total
    elif name == "fdrda":
        total = step.dot.total
    elif name == "gfdrda":
        total = step.dots[0].total
    else:
        return  # its sums are in other units there
    reached = int(np.asarray(total).reshape(-1)[0])
    if reached.bit_length() != bound.bit_length():
        raise ArgumentError(
            f"no input is known whose sum has {bound.bit_length()} bits: the largest significands at one exponent "
            f"add up to {reached}"
        )


def answer(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label}: carry bits that its sums need above one aligned term, no fewer"
    try:
        pairing, found = argument(spec)
        first = found[0]
        _run(instruction, sum(first.bounds))
        term, total = max(first.bounds).bit_length(), sum(first.bounds).bit_length()
        question = (
            f"{instruction.label}: {carry_bits(first)} carry bits above an aligned term of {term} bits hold the sum of "
            f"{len(first.bounds)} ({first.what}), |Σ| ≤ {sum(first.bounds)}, and no fewer than {total} bits do"
        )
        numbers = (
            Number("carry bits", carry_bits(first), "above one aligned term, for the sum of a step"),
            Number("term bits", term, "of the largest aligned term, without its sign"),
            Number("sum bits", total, "of the largest sum of a step, without its sign"),
        )
        return Holds(question, prove(asker, pairing), asker.elapsed, numbers)
    except (UnprovedError, ArgumentError) as error:
        return Unknown(question, str(error), tuple(asker.proved), asker.elapsed)


PROPERTY = Property(
    "accumulator-width",
    "the carry bits that the largest significands need hold every partial sum, and no fewer do",
    answer,
)

main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
