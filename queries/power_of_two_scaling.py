"""Is d(2a, b, 2c) = 2·d(a, b, c), within range?

Within range means: b and the scales are finite; every a_k and c that is not zero is a normal number, before and after
doubling; and every step's result that is not zero is finite and above the least normal number, before and after.  (The
least normal number itself may be rounded up from below, where the last place does not follow the exponent.)  By
induction it is so for every power of two all of whose steps stay within range.

What doubles: each nonzero term's exponent goes up by one and its significand stays; zero terms keep the exponent
e_zero.  Either the largest exponent goes up by one: then shifts, aligned terms and sum are the same.  Or it is e_zero
in both runs, and every term is so small that no sum is a normal number: then both results are zero.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Fda
from mmaformal.encodings import smt
from mmaformal.encodings.smt.fda import exponents_of
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.queries.accumulator_width import bound_of_sum, within
from mmaformal.queries.inputs import Inputs, symbolic_inputs
from mmaformal.queries.lemmas import ArgumentError, Link
from mmaformal.queries.pairs import Pairing, operand_codes, same
from mmaformal.queries.property import Property
from mmaformal.queries.relations import (
    Code,
    Fact,
    Relation,
    as_codes,
    both,
    either,
    is_finite,
    magnitude,
    run_trace,
    select,
    settle,
)
from mmaformal.queries.relations import same as same_code
from mmaformal.queries.stages import summands
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker


def _at_least(x: Code, bound: int) -> Fact:
    return z3.UGE(x, bound) if isinstance(x, z3.BitVecRef) else x >= bound


def _one(fmt: Format) -> int:
    """The exponent field's last place."""
    return 1 << (fmt.fraction_bits + fmt.ignored_low_bits)


def doubled(code: Code, fmt: Format) -> Code:
    """The code of 2x, for a normal x whose double is a number too; zero stays zero."""
    return select(magnitude(code, fmt) == 0, code, code + _one(fmt))


def doubles(code: Code, fmt: Format) -> Fact:
    """Whether x is zero, or normal and 2x finite."""
    low = magnitude(code, fmt)
    highest = ((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.ignored_low_bits)
    room = _below(low, highest)  # the exponent field is not all ones, so that adding one stays in it
    return either(
        low == 0,
        both(_at_least(low, _one(fmt)), room, is_finite(code, fmt), is_finite(code + _one(fmt), fmt)),
    )


def _below(x: Code, bound: int) -> Fact:
    return z3.ULT(x, bound) if isinstance(x, z3.BitVecRef) else x < bound


def normal_or_zero(code: Code, fmt: Format) -> Fact:
    low = magnitude(code, fmt)
    return either(low == 0, both(_at_least(low, _one(fmt)), is_finite(code, fmt)))


def well_inside(code: Code, fmt: Format) -> Fact:
    """Whether a result is zero, or finite and above the least normal number."""
    low = magnitude(code, fmt)
    return either(low == 0, both(_at_least(low, _one(fmt) + 1), is_finite(code, fmt)))


def image_of(spec: DotAdd) -> Any:
    def image(x: Any) -> Any:
        return replace(
            x, a=tuple(doubled(code, spec.a_format) for code in x.a), c=doubled(x.c, spec.c_format)
        )

    return image


def _results(spec: DotAdd, x: Any) -> list[Code]:
    """The codes of all steps' results."""
    if isinstance(x, Inputs):
        return [step.result for step in smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps]

    return [as_codes(step.result, spec.d_format) for step in run_trace(spec, x).steps]


def relation(spec: DotAdd) -> Relation:
    d, image = spec.d_format, image_of(spec)

    def allowed(x: Any) -> Fact:
        facts = [doubles(code, spec.a_format) for code in x.a]
        facts += [is_finite(code, spec.b_format) for code in x.b]
        if spec.scale_format is not None:
            facts += [is_finite(code, spec.scale_format) for code in (*x.scale_a, *x.scale_b)]
        facts.append(doubles(x.c, spec.c_format))
        for run in (x, image(x)):
            facts += [well_inside(code, d) for code in _results(spec, run)]
        return both(*facts)

    return Relation(
        spec, spec, image, lambda x, y: same_code(doubled(x, d), y, d), "A and c doubled", allowed
    )


# ---- the argument ------------------------------------------------------------------------------------------------


def argument(spec: DotAdd) -> Pairing:
    parameters = spec.parameters
    if not isinstance(parameters, Fda) or parameters.e_zero is None:
        raise ArgumentError(f"no argument for {parameters.algorithm}")
    pairing, inputs = Pairing(), symbolic_inputs(spec)
    image = image_of(spec)(inputs)
    assumed = {}
    for codes, fmt, fact, what in (
        (inputs.a, spec.a_format, doubles, "every a is zero, or normal and so is its double"),
        (inputs.b, spec.b_format, is_finite, "b and the scales are finite"),
        (inputs.scale_a, spec.scale_format, is_finite, "b and the scales are finite"),
        (inputs.scale_b, spec.scale_format, is_finite, "b and the scales are finite"),
    ):
        for code in codes:
            assert fmt is not None
            assumed[code.get_id()] = pairing.assume(what, Link(fact(code, fmt), ()))
    c = _code(inputs.c, image.c, spec.c_format)
    fits = pairing.assume(
        "c is zero, or normal and so is its double", Link(doubles(inputs.c, spec.c_format), ())
    )
    pairing.derive("inputs", "the second run reads the doubled c", [c], [fits], [inputs.c])
    first, second = (smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps for x in (inputs, image))
    for left, right in zip(first, second, strict=True):
        c = _step(pairing, spec, parameters, left, right, c, assumed)
    pairing.conclude(c, "the second result is the double of the first")
    return pairing


def _code(left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
    """That the second code is the double of the first, and both are zero or normal."""
    claim = z3.And(right == doubled(left, fmt), normal_or_zero(left, fmt), normal_or_zero(right, fmt))
    return Link(claim, (left,), ((right, doubled(left, fmt)),))


def _step(
    pairing: Pairing, spec: DotAdd, p: Fda, left: Any, right: Any, c: Link, assumed: dict[int, Link]
) -> Link:
    exponents = exponents_of(spec, p)
    assert p.e_zero is not None
    zero = exponents.constant(p.e_zero)

    def derive(stage: str, text: str, link: Link, given: Sequence[Link], inputs: Sequence[Any] = ()) -> Link:
        return pairing.derive(stage, text, [link], given, inputs)[0]

    # Operands, terms: codes are cut, so that each lemma is about one product.
    terms, flags = [], []
    highest = z3.BitVecVal(exponents.high - exponents.low, exponents.bits)
    in_reach = {}
    for k, (x, y) in enumerate(zip(left.products, right.products, strict=True)):
        scales = [s[k] for s in (left.scale_a, left.scale_b) if s]
        operands = [left.a[k], right.a[k], left.b[k], *scales]
        codes = operand_codes(*operands)
        given = [assumed[code.get_id()] for code in codes]
        special = [flag for each in operands for flag in (each.nan, each.infinite) if not z3.is_false(flag)]
        if special:
            link = Link(z3.And([z3.Not(flag) for flag in special]), tuple(special))
            flags.append(derive("decode", "factors and scales are finite", link, given, codes))
        reach = Link(z3.ULE(y.exponent, highest), (y.exponent,))
        in_reach[y.exponent.get_id()] = derive("multiply", "exponents are in range", reach, [], codes)
        terms.append(_term(derive, x, y, zero, given, codes, left.a[k], right.a[k], left.b[k], scales))
    special_c = [flag for each in (left.c, right.c) for flag in (each.nan, each.infinite)]
    link = Link(z3.And([z3.Not(flag) for flag in special_c]), tuple(special_c))
    flags.append(derive("decode", "c is finite", link, [c]))
    addend = _moved(left.addend, right.addend, zero)
    derive("multiply", "c's exponent goes up by one, unless it is zero", addend, [c])
    nothing = [x for s in (left.special, right.special) for x in s]
    none = Link(z3.And([z3.Not(flag) for flag in nothing]), tuple(nothing))
    signs = [x.sign for each in (left, right) for side in (each.a, each.b) for x in side]
    sizes = [x.significand for each in (left, right) for side in (each.a, each.b) for x in side]
    derive("classify", "there is no special value", none, flags, [*signs, *sizes, left.c.sign, right.c.sign])

    reach = Link(z3.ULE(right.addend.exponent, highest), (right.addend.exponent,))
    in_reach[right.addend.exponent.get_id()] = derive("multiply", "c's exponent is in range", reach, [c])
    top = pairing.at_most_all(right.e_max, highest, in_reach)

    # The largest exponent goes up by one, or is e_zero in both.
    everything = [*terms, addend]
    pairs = {x.exponent.get_id(): t for x, t in zip((*left.products, left.addend), everything, strict=True)}
    e_max = _largest(derive, left.e_max, right.e_max, zero, pairs)
    up = Link(right.e_max == left.e_max + 1, (left.e_max,), ((right.e_max, left.e_max + 1),))
    both_zero = Link(z3.And(left.e_max == zero, right.e_max == zero), (left.e_max, right.e_max))
    pairing.split_given("the largest exponent goes up by one, or is e_zero in both", e_max, up, both_zero)

    result = _code(left.result, right.result, spec.d_format)
    in_range = [
        pairing.assume(
            "every step's result is zero or above the least normal number",
            Link(well_inside(x, spec.d_format), ()),
        )
        for x in (left.result, right.result)
    ]

    # If it goes up: the same sum, a larger exponent.
    n = len(everything)
    xs, ys = summands(left.total, n), summands(right.total, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its terms")
    equal = [
        derive("align", "where the largest exponent goes up, aligned terms are the same", same(x, y), [t, up])
        for x, y, t in zip(xs, ys, everything, strict=True)
    ]
    total = derive("accumulate", "equal terms, equal sums", same(left.total, right.total), equal)
    low = Link(z3.ULT(left.e_max, left.e_max + 1), (left.e_max,))
    derive("align", "the exponent does not wrap", low, [e_max, up])
    derive(
        "round",
        "the same sum at twice the unit is twice the number",
        result,
        [total, up, low, top, none, *in_range],
    )

    # If it is e_zero: nothing that is normal.
    bound = bound_of_sum(spec)
    small = []
    for step, parts in ((left, xs), (right, ys)):
        small.append(_small(pairing, derive, spec, step, parts, both_zero, c, bound, zero))
    derive(
        "round",
        "so small a sum is no normal number, so both are zero",
        result,
        [*small, both_zero, none, *in_range],
    )
    return result


def _moved(left: Any, right: Any, zero: z3.BitVecRef) -> Link:
    """That a term's exponent goes up by one, or the term is zero, with the exponent e_zero."""
    up = z3.And(right.exponent == left.exponent + 1, z3.ULT(left.exponent, right.exponent))
    still = z3.And(right.exponent == zero, left.exponent == zero)
    claim = z3.And(
        right.significand == left.significand,
        right.sign == left.sign,
        z3.If(left.significand == 0, still, up),
    )
    return Link(
        claim,
        (left.sign, left.exponent, left.significand, right.exponent),
        ((right.significand, left.significand), (right.sign, left.sign)),
    )


def _term(
    derive: Any, x: Any, y: Any, zero: Any, given: Any, codes: Any, a: Any, other: Any, b: Any, scales: Any
) -> Link:
    """The product's link, from that of its factor."""
    factor = Link(
        z3.And(
            other.significand == a.significand,
            other.sign == a.sign,
            z3.Or(a.significand == 0, other.field == a.field + 1),
            z3.ULT(a.field, -1),
            z3.UGE(a.field, 1),
        ),
        (a.sign, a.field, a.significand, other.field),
        ((other.significand, a.significand), (other.sign, a.sign)),
    )
    derive("decode", "a doubled factor's exponent goes up by one, unless it is zero", factor, given, codes)
    other_field = Link(z3.UGE(b.field, 1), (b.field,))
    derive("decode", "exponent fields are at least 1", other_field, [], operand_codes(b))
    inputs = [b.sign, b.significand, *(part for s in scales for part in (s.field, s.significand))]
    text = "a product's exponent goes up by one, unless it is zero"
    link: Link = derive("multiply", text, _moved(x, y, zero), [factor, other_field], inputs)
    return link


def _largest(derive: Any, left: Any, right: Any, zero: Any, leaves: dict[int, Link]) -> Link:
    """Node by node: a maximum goes up by one, or is e_zero in both runs."""

    def link(x: Any, y: Any) -> Link:
        up = z3.And(y == x + 1, z3.ULT(x, y))
        return Link(z3.Or(up, z3.And(x == zero, y == zero)), (x, y))

    done: dict[int, Link] = {}

    def climb(x: Any, y: Any) -> Link:
        if x.get_id() not in done:
            node = link(x, y)
            if x.get_id() in leaves:
                derive("align", "an exponent goes up by one, or is e_zero", node, [leaves[x.get_id()]])
            elif x.num_args() == 3 and y.num_args() == 3:
                parts = [climb(x.arg(i), y.arg(i)) for i in (1, 2)]
                derive("align", "the larger of two goes up by one, or is e_zero", node, parts)
            else:
                raise ArgumentError("the largest exponent is no maximum of the terms'")
            done[x.get_id()] = node
        return done[x.get_id()]

    return climb(left, right)


def _small(
    pairing: Pairing,
    derive: Any,
    spec: DotAdd,
    step: Any,
    parts: Any,
    at_zero: Link,
    c: Link,
    bound: Any,
    zero: Any,
) -> Link:
    """Where the largest exponent is e_zero, c is zero, and the sum is that of products alone."""
    running: Link | None = None
    x, most = None, 0
    *products, last = parts
    for term, product, a, b in zip(products, step.products, step.a, step.b, strict=True):
        size = Link(z3.ULE(product.significand, bound.significand), (product.significand,))
        derive("multiply", "no significand is above the largest", size, [], [a.significand, b.significand])
        link = within(term, bound.aligned)
        derive(
            "align",
            "an aligned term is within its bound",
            link,
            [size],
            [product.sign, product.exponent, step.e_max],
        )
        x, most = term if x is None else x + term, most + bound.aligned
        before, running = running, within(x, most)
        text = "a partial sum is within the sum of its terms' bounds"
        derive("accumulate", text, running, [link] if before is None else [before, link])
    below = Link(z3.ULE(step.addend.exponent, step.e_max), (step.addend.exponent, step.e_max))
    leaves = [*(p.exponent for p in step.products), step.addend.exponent]
    pairing.under(step.e_max, leaves, below, step.addend.exponent)
    c_low = Link(
        z3.And(
            z3.UGE(step.addend.exponent, zero),
            z3.Implies(step.addend.significand != 0, step.addend.exponent != zero),
        ),
        (step.addend.exponent, step.addend.significand),
    )
    derive("multiply", "a c that is not zero is above e_zero", c_low, [c])
    none = Link(last == 0, (), ((last, z3.BitVecVal(0, last.size())),))
    derive(
        "align",
        "c is zero where the largest exponent is e_zero",
        none,
        [below, c_low, at_zero],
        [step.addend.sign],
    )
    total = within(step.total, most)
    assert running is not None
    link2: Link = derive("accumulate", "the sum is that of the products", total, [running, none])
    return link2


def answer(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label}: d(2a, b, 2c) = 2·d(a, b, c), within range"
    return settle(instruction, asker, question, [relation(spec)], lambda: [argument(spec)])


PROPERTY = Property(
    "power-of-two-scaling",
    "d(2a, b, 2c) = 2·d(a, b, c) within range: b finite; a, c, 2a, 2c zero or normal; both runs' step results zero or "
    "finite and above the least normal number",
    answer,
)

main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
