"""What doubling A and C does to the stages of each algorithm: the lemmas of `power_of_two_scaling`.

Two runs, the second on the doubled a and c.  Terms keep their significands, and their exponents go up by one, zeros
aside; so does the largest exponent.  Then shifts, aligned terms and sums are the same, and the same sum at twice the
unit is rounded to twice the number, unless it is subnormal.  Or the largest exponent is one that zeros have, in both
runs: then the sum is zero, or so small that it is cut at the least exponent, at one place more in the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Fda
from mmaformal.encodings.smt import efda, fdrda, sfma
from mmaformal.encodings.smt.blocks import all_of, any_of, exponent_range, product_range
from mmaformal.encodings.smt.fda import exponents_of
from mmaformal.encodings.smt.gps import flush
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import Format, fp32
from mmaformal.queries.accumulator_width import bound_of_sum, within
from mmaformal.queries.lemmas import ArgumentError, Link, at_most
from mmaformal.queries.pairs import Pairing, _magnitude, operand_codes, same, together
from mmaformal.queries.relations import Code, Fact, both, either, is_finite, magnitude, select
from mmaformal.queries.stages import summands


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


# ---- fda -----------------------------------------------------------------------------------------------------------


def same_double(left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
    """That the second code is the double of the first, and both are zero or normal."""
    claim = z3.And(right == doubled(left, fmt), normal_or_zero(left, fmt), normal_or_zero(right, fmt))
    return Link(claim, (left,), ((right, doubled(left, fmt)),))


def _fda(two: Two) -> Link:
    pairing, spec, p = two.pairing, two.spec, two.spec.parameters
    left, right, c, assumed = two.left, two.right, two.c, two.assumed
    assert isinstance(p, Fda)
    if p.e_zero is None:
        raise ArgumentError("no argument for zeros that keep the exponents of their fields")
    exponents = exponents_of(spec, p)
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

    result = same_double(left.result, right.result, spec.d_format)
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


def _factor(derive: Any, a: Any, other: Any, b: Any, given: Any, codes: Any) -> tuple[Link, Link]:
    """The link of a doubled factor, and that of the other one."""
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
    field = Link(z3.UGE(b.field, 1), (b.field,))
    derive("decode", "exponent fields are at least 1", field, [], operand_codes(b))
    return factor, field


def _term(
    derive: Any, x: Any, y: Any, zero: Any, given: Any, codes: Any, a: Any, other: Any, b: Any, scales: Any
) -> Link:
    """The product's link, from that of its factor."""
    factor, field = _factor(derive, a, other, b, given, codes)
    inputs = [b.sign, b.significand, *(part for s in scales for part in (s.field, s.significand))]
    text = "a product's exponent goes up by one, unless it is zero"
    link: Link = derive("multiply", text, _moved(x, y, zero), [factor, field], inputs)
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


# ---- what the other algorithms have in common --------------------------------------------------------------------


@dataclass
class Two:
    """One step of both runs."""

    pairing: Pairing
    spec: DotAdd
    left: Any
    right: Any
    c: Link  #: of the codes
    assumed: dict[int, Link]  #: what is known of the codes of a, b and scales, by their ids

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link] = (), inputs: Sequence[Any] = ()
    ) -> Link:
        return self.pairing.derive(stage, text, [link], given, inputs)[0]

    def factors(self, k: int | None = None) -> tuple[Link, Link]:
        """Of product k, or the only one: the link of a's operands, and that of b's."""
        a, other, b = (x if k is None else x[k] for x in (self.left.a, self.right.a, self.left.b))
        codes = operand_codes(a, other, b)
        given = [self.assumed[code.get_id()] for code in codes]
        return _factor(self.derive, a, other, b, given, codes)

    def product(self, k: int | None, zero: z3.BitVecRef | None, factor: Link, field: Link) -> Link:
        """That product k is doubled by its exponent, or zero (with the exponent `zero` in both, if there is one)."""
        x, y, b = (
            side if k is None else side[k]
            for side in (
                self.left.product if k is None else self.left.products,
                self.right.product if k is None else self.right.products,
                self.left.b,
            )
        )
        text = "a product's exponent goes up by one, unless it is zero"
        return self.derive("multiply", text, moves(x, y, zero), [factor, field], [b.sign, b.significand])

    def addend(self, least: z3.BitVecRef) -> tuple[Link, Link]:
        """That c is doubled by its exponent, or zero with the least one; and that no exponent of c is below that."""
        left, right = self.left.addend, self.right.addend
        text = "c's exponent goes up by one, unless it is zero"
        addend = self.derive("multiply", text, _moved(left, right, least), [self.c])
        low = Link(z3.UGE(left.exponent, least), (left.exponent,))
        self.derive("multiply", "c's exponent is at least its format's least", low, [self.c])
        return addend, low

    def ordered(self, e_max: str, first: str, second: str) -> list[Link]:
        """That neither of two exponents, interfaces of a step, is above the larger, in both runs."""
        links = []
        for step in (self.left, self.right):
            top = _at(step, e_max)
            parts = [_at(step, name) for name in (first, second)]
            for x in parts:
                text = "neither of two exponents is above the larger"
                links.append(self.derive("align", text, at_most(x, top), [], parts))
        return links

    def in_range(self) -> list[Link]:
        """What is assumed of the results, and that they are of no special values."""
        links = []
        for step in (self.left, self.right):
            what = "every step's result is zero or above the least normal number"
            link = self.pairing.assume(what, Link(well_inside(step.result, self.spec.d_format), ()))
            none = Link(z3.Not(any_of(list(step.special))), tuple(step.special))
            text = "a finite result comes of no special value"
            links += [link, self.derive("classify", text, none, [link], [*step.special, *step.rounded])]
        return links

    @property
    def result(self) -> Link:
        return same_double(self.left.result, self.right.result, self.spec.d_format)


def _at(step: Any, path: str) -> Any:
    for name in path.split("."):
        step = getattr(step, name)
    return step


def one_up(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """That y is x + 1, which does not wrap."""
    return z3.And(y == x + 1, z3.ULT(x, y))


def is_up(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
    """The same, where it is known to be so."""
    return Link(one_up(x, y), (x,), ((y, x + 1),))


def moves(left: Any, right: Any, zero: z3.BitVecRef | None = None) -> Link:
    """That a term's exponent goes up by one, or the term is zero (and its exponent is `zero` in both runs)."""
    still = left.significand == 0
    if zero is not None:
        still = z3.And(still, left.exponent == zero, right.exponent == zero)
    return Link(
        z3.Or(one_up(left.exponent, right.exponent), still),
        (left.sign, left.exponent, left.significand, right.exponent),
        ((right.significand, left.significand), (right.sign, left.sign)),
    )


def up_or(x: z3.BitVecRef, y: z3.BitVecRef, other: z3.BoolRef, *terms: z3.ExprRef) -> Link:
    """That an exponent goes up by one, or something else is so."""
    return Link(z3.Or(one_up(x, y), other), (x, y, *terms))


def _rounded_up(two: Two, total: Link, up: Link, given: Sequence[Link]) -> None:
    """The results where the exponent goes up and the sum is the same."""
    text = "the same sum at twice the unit is twice the number"
    two.derive("round", text, two.result, [total, up, *given])


# ---- fdrda, gfdrda -----------------------------------------------------------------------------------------------


def _same_or_zero(x: Any, y: Any, e: z3.BitVecRef) -> Link:
    """That both runs' numbers are the same; and zero, if the second run's largest exponent is."""
    return Link(z3.Implies(e == 0, x == 0), (x, e), ((y, x),))


def _fdrda(two: Two) -> Link:
    """The products' largest exponent goes up by one, or is the least there is in both runs: then all are zero.  With
    c, the larger of two exponents goes up by one, or is c's least one in both: then c is zero, and the sum of the
    products, cut where c's exponent holds it up, is cut at one place more in the first run.
    """
    pairing, spec, left, right = two.pairing, two.spec, two.left, two.right
    p: Any = spec.parameters
    own, wide = product_range(spec.a_format, spec.b_format), fdrda.exponents_of(spec)
    zero = z3.BitVecVal(0, own.bits)
    least = wide.constant(spec.c_format.min_exponent)
    n = len(left.products)
    terms, flags, pairs = [], [], {}
    for k in range(n):
        factor, field = two.factors(k)
        terms.append(two.product(k, zero, factor, field))
        pairs[left.products[k].exponent.get_id()] = terms[k]
        (z, y) = (z3.Or(s.a[k].significand == 0, s.b[k].significand == 0) for s in (left, right))
        e = right.products[k].exponent
        link = Link(z == (e == 0), (z, e), ((y, z),))
        text = "of the doubled products, those that are zero have the least exponent, and no others"
        flags.append(two.derive("multiply", text, link, [factor, field], [left.b[k].significand]))

    def add_up(x: Any, y: Any, tops: tuple[Any, Any], places: Sequence[int], e: Link) -> Link:
        xs, ys = summands(x, len(places)), summands(y, len(places))
        if len(xs) != len(places) or len(ys) != len(places):
            raise ArgumentError("the sum is not made of its terms")
        leaves = [right.products[k].exponent for k in places]
        below = pairing._not_below("align", "exponents", tops[1], leaves)
        links = []
        for k, u, v, order in zip(places, xs, ys, below, strict=True):
            text = "aligned terms are the same, and zero if all are"
            links.append(two.derive("align", text, _same_or_zero(u, v, tops[1]), [terms[k], e, order]))
        text = "equal terms, equal sums, and zero if all are"
        return two.derive("accumulate", text, _same_or_zero(x, y, tops[1]), links)

    def up_or_least(x: Any, y: Any, leaves: dict[int, Link]) -> Link:
        return _largest(two.derive, x, y, zero, leaves)

    if hasattr(left, "groups"):
        count = len(left.groups)
        tops, cuts = {}, []
        es = []
        for g in range(count):
            es.append(up_or_least(left.e_groups[g], right.e_groups[g], pairs))
            tops[left.e_groups[g].get_id()] = es[g]
        e = up_or_least(left.e_products, right.e_products, tops)
        below = pairing._not_below("align", "exponents", right.e_products, list(right.e_groups))
        for g in range(count):
            group = add_up(
                left.groups[g],
                right.groups[g],
                (left.e_groups[g], right.e_groups[g]),
                range(g, n, count),
                es[g],
            )
            link = _same_or_zero(left.groups_cut[g], right.groups_cut[g], right.e_products)
            text = "groups are cut alike, and zero if all are"
            cuts.append(two.derive("align", text, link, [group, es[g], e, below[g]]))
        text = "equal groups, equal sums, and zero if all are"
        dot = two.derive("accumulate", text, _same_or_zero(left.dot, right.dot, right.e_products), cuts)
    else:
        e = up_or_least(left.e_products, right.e_products, pairs)
        dot = add_up(left.dot, right.dot, (left.e_products, right.e_products), range(n), e)
    bound = _bound_of_dot(two, p, n)

    # Whether all products are zero is told by their largest exponent.
    zeros = {right.products[k].exponent.get_id(): flags[k] for k in range(n)}
    all_zero = _all_zero(two, right.e_products, zeros)
    (z, y) = (
        all_of([z3.Or(a.significand == 0, b.significand == 0) for a, b in zip(s.a, s.b, strict=True)])
        for s in (left, right)
    )
    known = Link(z == (right.e_products == 0), (z, right.e_products), ((y, z),))
    two.derive(
        "align", "all products are zero if the largest exponent is the least", known, [all_zero, *flags]
    )
    idle = z3.And(left.dot == 0, right.e_dot == left.e_dot, z3.ULE(left.e_dot, least))
    e_dot = up_or(left.e_dot, right.e_dot, idle, left.dot)
    text = "the exponent of the products goes up by one, or all are zero"
    two.derive("align", text, e_dot, [e, dot, known])

    # With c.
    addend, low = two.addend(least)
    orders = two.ordered("e_max", "e_dot", "addend.exponent")
    at_least = z3.And(left.e_max == least, right.e_max == least)
    e_max = up_or(left.e_max, right.e_max, at_least)
    two.derive(
        "align", "the largest exponent goes up by one, or is c's least one", e_max, [e_dot, addend, low]
    )
    up, still = is_up(left.e_max, right.e_max), Link(at_least, (left.e_max, right.e_max))
    pairing.split_given("the largest exponent goes up by one, or is c's least one", e_max, up, still)
    given = [e_dot, addend, *orders]
    in_range = two.in_range()
    same_dot = Link(right.dot == left.dot, (left.dot,), ((right.dot, left.dot),))
    two.derive("accumulate", "the sums of products are the same", same_dot, [dot])
    total = two.derive(
        "accumulate",
        "where the largest exponent goes up, the sums with c are the same",
        same(left.total, right.total),
        [same_dot, *given, up],
    )
    reach = _reach(two, own, wide)
    _rounded_up(two, total, up, [*in_range, *reach])
    half = Link(
        z3.And(right.total != 1 << (right.total.size() - 1), left.total == right.total >> 1),
        (right.total,),
        ((left.total, right.total >> 1),),
    )
    text = "where it is c's least one, the first sum is half the second, rounded down"
    two.derive("accumulate", text, half, [same_dot, bound, *given, low, still])
    text = "half a sum is rounded to half the number"
    two.derive("round", text, two.result, [half, still, *in_range])
    return two.result


def _bound_of_dot(two: Two, p: Any, n: int) -> Link:
    pairing, left = two.pairing, two.left
    if not hasattr(left, "groups"):
        return pairing.bounded(left.dot, n)
    count = len(left.groups)
    each = [pairing.bounded(x, len(range(g, n, count))) for g, x in enumerate(left.groups)]
    bound = within(left.dot, fdrda.dot_bound(p, n))
    text = "a sum of groups is within the sum of their bounds"
    return two.derive("accumulate", text, bound, each, [*left.e_groups, left.e_products])


def _all_zero(two: Two, tree: z3.BitVecRef, leaves: dict[int, Link]) -> Link:
    """Node by node: a maximum is 0 if all its terms are."""
    if tree.get_id() in leaves:
        return leaves[tree.get_id()]
    if tree.num_args() != 3:
        raise ArgumentError("the largest exponent is no maximum of the terms'")
    parts = [_all_zero(two, tree.arg(i), leaves) for i in (1, 2)]
    zs = [z for part in parts for z in part.free if z3.is_bool(z)]
    link = Link(all_of(zs) == (tree == 0), (*zs, tree))
    return two.derive("align", "the larger of two is the least exponent if both are", link, parts)


def _reach(two: Two, own: Any, wide: Any) -> list[Link]:
    """That the second run's largest exponent is in its range."""
    left, right = two.left, two.right
    highest = z3.BitVecVal(own.high - own.low, own.bits)
    below = {}
    for x, y, product in zip(right.a, right.b, right.products, strict=True):
        link = at_most(product.exponent, highest)
        text = "exponents are in range"
        below[product.exponent.get_id()] = two.derive("multiply", text, link, [], operand_codes(x, y))
    top = two.pairing.at_most_all(right.e_products, highest, below)
    last = z3.BitVecVal(wide.high - wide.low, wide.bits)
    text = "the largest exponents are in range"
    flags = [z3.Or(a.significand == 0, b.significand == 0) for a, b in zip(right.a, right.b, strict=True)]
    dot = two.derive("align", text, at_most(right.e_dot, last), [top], [all_of(flags)])
    c = two.derive("multiply", "c's exponent is in range", at_most(right.addend.exponent, last), [two.c])
    top = two.derive("align", text, at_most(right.e_max, last), [dot, c])
    least = wide.constant(two.spec.c_format.min_exponent)
    low = at_most(least, left.addend.exponent)
    two.derive("multiply", "c's exponent is in range", low, [two.c])
    text = "the largest exponent is not below c's least"
    return [top, two.derive("align", text, at_most(least, left.e_max), [low], [left.e_dot])]


# ---- sums with a sticky last place: sfma, efda --------------------------------------------------------------------


def jammed_half(x: z3.BitVecRef) -> z3.BitVecRef:
    """x / 2 of an unsigned x, with a sticky last place."""
    return z3.LShR(x, 1) | (x & 1)


def _half(left: z3.BitVecRef, right: z3.BitVecRef) -> tuple[list[z3.BoolRef], Link]:
    """That two sums have one sign, and the magnitude of the first is half that of the second, with a sticky place."""
    (m, s), (n, t) = _magnitude(left, True), _magnitude(right, True)
    half = jammed_half(n)
    zero = n == 0
    facts = [z3.ULT(n, 1 << (n.size() - 1)), m == half, s == t, (left == 0) == zero, (right == 0) == zero]
    return facts, Link(z3.And(facts), (n, t), ((m, half), (s, t), (left == 0, zero), (right == 0, zero)))


def _sfma(two: Two) -> Link:
    """The larger exponent goes up by one, or is c's least one in both runs: then c is zero, and the product, whose
    exponent is below, is cut at one place more in the first run, with a sticky place.
    """
    left, right, pairing, fmt = two.left, two.right, two.pairing, two.spec.d_format
    x, y = left.sum, right.sum
    least = sfma.exponents_of(fmt).constant(fmt.min_exponent)
    term = two.product(None, least, *two.factors())
    addend, low = two.addend(least)
    at_least = z3.And(x.e_max == least, y.e_max == least)
    e_max = up_or(x.e_max, y.e_max, at_least)
    text = "the larger exponent goes up by one, or is c's least one"
    two.derive("align", text, e_max, [term, addend, low])
    orders = two.ordered("sum.e_max", "product.exponent", "addend.exponent")
    up, still = is_up(x.e_max, y.e_max), Link(at_least, (x.e_max, y.e_max))
    pairing.split_given(text, e_max, up, still)
    in_range = two.in_range()
    signs = together(same(left.product.sign, right.product.sign), same(left.addend.sign, right.addend.sign))
    two.derive("multiply", "signs are the same", signs, [term, addend])

    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        two.derive("align", text, same(u, v), [link, up, *orders])
        for u, v, link in ((x.x, y.x, term), (x.y, y.y, addend))
    ]
    total = two.derive("accumulate", "equal terms, equal sums", same(x.total, y.total), [*aligned, signs])
    _rounded_up(two, total, up, [*in_range, signs])

    text = "where it is c's least one, c is zero"
    nothing = z3.BitVecVal(0, x.y.size())
    none = Link(z3.And(x.y == 0, y.y == 0), (), ((x.y, nothing), (y.y, nothing)))
    two.derive("align", text, none, [addend, low, still, *orders])
    text = "and the product is cut at one place more in the first run"
    half = Link(x.x == jammed_half(y.x), (y.x,), ((x.x, jammed_half(y.x)),))
    two.derive("align", text, half, [term, still, *orders])
    text = "the first sum is half the second, with a sticky place"
    _, total = _half(x.total, y.total)
    two.derive("accumulate", text, total, [half, none, signs])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [total, still, *in_range, signs])
    return two.result


# ---- efda in fixed point -----------------------------------------------------------------------------------------


def _twice(x: z3.BitVecRef, y: z3.BitVecRef, bound: int) -> Link:
    """That y = 2x in two's complement, and x is within ±bound."""
    return Link(z3.And(y == x + x, x <= bound, x >= -bound), (x,), ((y, x + x),))


def _fixed_point(two: Two) -> Link:
    """The sum of products doubles, at the same exponent `top`; c's exponent goes up by one.  If the larger exponent is
    c's, it is as elsewhere.  If it is `top`, c is cut at one place more in the first run, with a sticky place, far
    below the sum's leading bit.
    """
    pairing, spec, left, right = two.pairing, two.spec, two.left, two.right
    p: Any = spec.parameters
    own, n = product_range(spec.a_format, spec.b_format), len(left.products)
    c_bits = spec.c_format.fraction_bits
    frame = left.sum.y.size() - 1  # c has one integer bit
    bits = frame - efda.places_below(efda.precision(spec, p))
    highest = own.low - efda.fraction_bits(spec) + bits
    exponents = exponent_range(spec.c_format).union(highest)
    least, top = exponents.constant(spec.c_format.min_exponent), exponents.constant(highest)

    xs, ys = summands(left.dot, n), summands(right.dot, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its products")
    most = (1 << (left.placed[0].size() - 1)) - 1
    last = z3.BitVecVal(own.high - own.low, own.bits)
    running: Link | None = None
    x = y = None
    for k in range(n):
        product = two.product(k, None, *two.factors(k))
        e = right.products[k].exponent
        codes = operand_codes(right.a[k], right.b[k])
        reach = two.derive("multiply", "exponents are in range", at_most(e, last), [], codes)
        u, v = left.placed[k], right.placed[k]
        place = Link(z3.And(v == u << 1, z3.ULE(u, most)), (u,), ((v, u << 1),))
        two.derive("align", "a doubled product is placed one higher", place, [product, reach])
        signs = same(left.products[k].sign, right.products[k].sign)
        two.derive("multiply", "signs are the same", signs, [product])
        link = _twice(xs[k], ys[k], most)
        two.derive("align", "terms are doubled", link, [place, signs])
        x, y = (xs[k], ys[k]) if x is None or y is None else (x + xs[k], y + ys[k])
        before, running = running, _twice(x, y, (k + 1) * most)
        text = "the sum of doubled terms is doubled"
        two.derive("accumulate", text, running, [link] if before is None else [before, link])
    assert running is not None

    s, t = left.term, right.term
    doubled_term = z3.And(
        t.sign == s.sign,
        t.exponent == s.exponent,
        t.significand == s.significand << 1,
        z3.ULT(s.significand, 1 << (s.significand.size() - 1)),
        z3.If(s.significand == 0, s.exponent == least, s.exponent == top),
    )
    term = Link(
        doubled_term,
        tuple(s),
        ((t.sign, s.sign), (t.exponent, s.exponent), (t.significand, s.significand << 1)),
    )
    two.derive("align", "the sum of products is doubled, at the same exponent", term, [running])
    addend, low = two.addend(least)
    orders = two.ordered("sum.e_max", "term.exponent", "addend.exponent")
    f, g = left.sum, right.sum
    same_top = z3.And(g.e_max == f.e_max, z3.If(s.significand == 0, f.e_max == least, f.e_max == top))
    text = "the larger exponent goes up by one, or is that of the sum of products, or all is zero"
    e_max = two.derive("align", text, up_or(f.e_max, g.e_max, same_top, s.significand), [term, addend, low])
    up = is_up(f.e_max, g.e_max)
    still = Link(same_top, (f.e_max, s.significand), ((g.e_max, f.e_max),))
    pairing.split_given(text, e_max, up, still)
    in_range = two.in_range()
    signs = together(same(s.sign, t.sign), same(left.addend.sign, right.addend.sign))
    two.derive("multiply", "signs are the same", signs, [term, addend])

    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        two.derive("align", text, same(u, v), [link, up, *orders])
        for u, v, link in ((f.x, g.x, term), (f.y, g.y, addend))
    ]
    total = two.derive("accumulate", "equal terms, equal sums", same(f.total, g.total), [*aligned, signs])
    _rounded_up(two, total, up, in_range)

    nothing = s.significand == 0
    places = frame - bits
    x_twice = z3.And(
        g.x == f.x << 1,
        z3.ULT(f.x, 1 << (f.x.size() - 1)),
        z3.Extract(places - 1, 0, f.x) == 0,
        (f.x == 0) == nothing,
    )
    x_link = Link(x_twice, (f.x, s.significand), ((g.x, f.x << 1),))
    text = "where it is that of the sum of products, this is not cut"
    two.derive("align", text, x_link, [term, still, *orders])
    cut = z3.And(z3.ULT(g.y, 2 << c_bits), z3.Not(nothing))
    y_half = z3.And(
        f.y == jammed_half(g.y), z3.Or(z3.Extract(0, 0, g.y) == 0, cut), z3.Implies(nothing, g.y == 0)
    )
    y_link = Link(y_half, (g.y, s.significand), ((f.y, jammed_half(g.y)),))
    text = "and c is cut at one place more in the first run; if it loses bits, it is far below"
    two.derive("align", text, y_link, [term, addend, low, still, *orders])
    text = "the first sum is half the second, with a sticky place that is far below"
    _, half = _half(f.total, g.total)
    magnitude_, _ = half.free
    room = z3.Or(z3.Extract(0, 0, magnitude_) == 0, z3.UGE(magnitude_, 8 << c_bits))
    total = Link(z3.And(half.claim, room, z3.Implies(nothing, magnitude_ == 0)), half.free, half.defined)
    two.derive("accumulate", text, total, [x_link, y_link, signs])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [total, still, *in_range])
    return two.result


# ---- efda of three sorted terms ----------------------------------------------------------------------------------

_CLEAR = 4  #: how far above the exponent of a zero that of every other term is


def _sorted(two: Two) -> Link:
    """Normalised, sorted, added: the exponents of what is not zero go up by one, at every stage, and the exponent
    that zeros have is well below.  Last, the sum is jammed to d's least exponent: at one place more in the first run.
    """
    spec, left, right = two.spec, two.left, two.right
    own, exponents = product_range(spec.a_format, spec.b_format), efda.exponents_of(spec)
    zero = exponents.constant(efda.lowest(spec))
    clear = exponents.constant(efda.lowest(spec) + _CLEAR)
    first = exponents.constant(own.low)
    last = exponents.constant(exponents.high - 1)
    least = exponents.constant(spec.c_format.min_exponent)

    def moved(x: Any, y: Any) -> Link:
        """That a normalised term's exponent goes up by one, or it is zero."""
        nothing = z3.And(x.exponent == zero, y.exponent == zero)
        some = z3.And(one_up(x.exponent, y.exponent), z3.UGE(x.exponent, clear), z3.ULE(y.exponent, last))
        claim = z3.If(x.significand == 0, nothing, some)
        link = moves(x, y)
        return Link(z3.And(link.claim, claim), link.free, link.defined)

    links, n = [], len(left.products)
    text = "a normalised term's exponent goes up by one, unless it is zero"
    for k in range(n):
        factor, field = two.factors(k)
        product = two.product(k, None, factor, field)
        x = left.products[k]
        codes = operand_codes(left.a[k], left.b[k])
        low = two.derive("multiply", "exponents are in range", at_most(first, x.exponent), [], codes)
        codes_ = operand_codes(right.a[k], right.b[k])
        high = at_most(right.products[k].exponent, exponents.constant(own.high))
        two.derive("multiply", "exponents are in range", high, [], codes_)
        a, b, M = left.a[k], left.b[k], spec.a_format.fraction_bits
        normal = Link(z3.Or(a.significand == 0, z3.UGE(a.significand, 1 << M)), (a.significand,))
        given = [two.assumed[code.get_id()] for code in codes]
        two.derive("decode", "a is zero or normal", normal, given, codes)
        size = Link(z3.Or(x.significand == 0, z3.UGE(x.significand, 1 << M)), (x.significand,))
        two.derive("multiply", "a product is zero or not below a", size, [normal], [b.significand])
        link = moved(left.terms[k], right.terms[k])
        links.append(two.derive("align", text, link, [product, low, high, size]))
    for k in range(n, 2):
        links.append(two.derive("align", text, moved(left.terms[k], right.terms[k])))
    addend, low = two.addend(least)
    normal = Link(
        z3.Or(
            left.addend.significand == 0, z3.UGE(left.addend.significand, 1 << spec.c_format.fraction_bits)
        ),
        (left.addend.significand,),
    )
    two.derive("decode", "c is zero or normal", normal, [two.c])
    high = at_most(right.addend.exponent, last)
    two.derive("multiply", "c's exponent is in range", high, [two.c])
    link = moved(left.terms[-1], right.terms[-1])
    links.append(two.derive("align", text, link, [addend, low, normal, high]))

    text = "terms are sorted alike"
    terms = [
        two.derive("align", text, moved(x, y), links) for x, y in zip(left.sorted, right.sorted, strict=True)
    ]
    order = []
    for step in (left, right):
        one, two_, three = (x.exponent for x in step.sorted)
        link = Link(z3.And(z3.UGE(one, two_), z3.UGE(two_, three)), (one, two_, three))
        exps = [x.exponent for x in step.terms]
        others = [y for x in step.terms for y in (x.sign, x.significand)]
        order.append(two.derive("align", "terms are sorted by their exponents", link, [], [*exps, *others]))

    f, g = left.partial, right.partial
    partial = two.derive("accumulate", "partial sums are the same", same(f.total, g.total), [*terms, *order])
    none = z3.And(f.e_max == zero, g.e_max == zero, f.total == 0)
    clear_ = z3.Or(f.total == 0, z3.And(z3.UGE(f.e_max, clear), z3.ULE(g.e_max, last)))
    e_partial = Link(z3.And(z3.Or(one_up(f.e_max, g.e_max), none), clear_), (f.e_max, g.e_max, f.total))
    text = "the exponent of the partial sum goes up by one, unless that is zero"
    two.derive("accumulate", text, e_partial, [*terms, *order])
    normal = moves(left.normal, right.normal, zero)
    text = "normalised, the partial sum's exponent goes up by one, unless it is zero"
    two.derive("accumulate", text, normal, [partial, e_partial, _fits(two, left, "partial")])

    # Where the third term is zero, the larger exponent may be its.
    f, g = left.sum, right.sum
    s, t = (z3.Extract(x.size() - 1, x.size() - 1, x) for x in (f.total, g.total))
    stuck = z3.And(f.e_max == zero, g.e_max == zero, s == t, (f.total == 0) == (g.total == 0))
    both_up = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    sums = Link(z3.Or(both_up, stuck), (f.e_max, g.e_max, f.total, g.total))
    text = "the sum is the same, its exponent one higher; or it is far below all numbers of d"
    two.derive("accumulate", text, sums, [normal, *terms, *order])
    fits = [_fits(two, step, "sum") for step in (left, right)]

    f, g = left.jammed, right.jammed
    equal = Link(f.e_max == g.e_max, (f.e_max, g.e_max))
    other = Link(f.e_max != g.e_max, (f.e_max, g.e_max))
    two.pairing.split("exponents are equal, or not", [f.e_max, g.e_max], equal, other)
    one_higher = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    apart = Link(z3.Or(equal.claim, one_higher), (f.e_max, g.e_max, f.total, g.total))
    text = "at d's least exponent or above, the sum is the same, its exponent one higher"
    two.derive("round", text, apart, [sums, *fits])
    at_least = z3.And(f.e_max == least, g.e_max == least)
    facts, half = _half(f.total, g.total)
    together_ = Link(
        z3.Or(other.claim, z3.And(at_least, *facts)),
        (f.e_max, g.e_max, *half.free, *(x for x, _ in half.defined)),
    )
    text = "below it, the sum is cut at one place more in the first run"
    two.derive("round", text, together_, [sums, *fits])
    in_range = two.in_range()
    up, total = is_up(f.e_max, g.e_max), same(f.total, g.total)
    two.derive("cases", "the exponent goes up by one", up, [apart, other])
    two.derive("cases", "the sum is the same", total, [apart, other])
    _rounded_up(two, total, up, in_range)
    still = Link(at_least, (f.e_max, g.e_max))
    two.derive("cases", "the exponent is d's least", still, [together_, equal])
    two.derive("cases", "the first sum is half the second, with a sticky place", half, [together_, equal])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [half, still, *in_range])
    return two.result


def _fits(two: Two, step: Any, name: str) -> Link:
    """That a sum of two aligned terms is not the least number of its width, whose magnitude has one more bit."""
    sum_ = getattr(step, name)
    link = Link(sum_.total != 1 << (sum_.total.size() - 1), (sum_.total,))
    inputs = [sum_.x, sum_.y, step.normal.sign, *(x for y in step.sorted for x in y[:2])]
    text = "a sum is not the least number of its width"
    return two.derive("accumulate", text, link, [], inputs)


# ---- sums of two codes: gps, lowered -----------------------------------------------------------------------------


def _addition(two: Two, x: Addition, y: Addition, given: Sequence[Link], known: Sequence[Link]) -> Link:
    """That the sum of two codes doubles, from those of the codes, and what is known of the sums' ranges."""
    kept, changed, claims = [], [], []
    for name in ("big", "small"):
        u, v = getattr(x, name), getattr(y, name)
        kept += [u.sign, u.field, u.significand, v.field]
        changed += [(v.sign, u.sign), (v.significand, u.significand)]
        claims.append(z3.Or(one_up(u.field, v.field), u.significand == 0))
    claims += [v == u for v, u in changed]
    for each in (x, y):
        claims.append(z3.ULE(each.small.field, each.big.field))
    claims.append(z3.Implies(x.big.significand == 0, x.small.significand == 0))
    operands = Link(z3.And(claims), tuple(kept), tuple(changed))
    text = "sorted by magnitude, exponents go up by one, unless they are of zeros"
    two.derive("decode", text, operands, given)
    flags = [*x.special, *y.special]
    none = Link(z3.Not(any_of(flags)), tuple(flags))
    two.derive("classify", "the sum of finite numbers is of no special value", none, given)
    zero = z3.Implies(x.big.significand == 0, x.total == 0)
    total = Link(z3.And(y.total == x.total, zero), (x.total, x.big.significand), ((y.total, x.total),))
    two.derive("accumulate", "aligned terms are the same, and so are their sums", total, [operands])
    sign = same(x.zero_sign, y.zero_sign)
    two.derive("accumulate", "the sign of a sum that is zero is the same", sign, [operands])
    field = Link(
        z3.Or(one_up(x.big.field, y.big.field), x.big.significand == 0),
        (x.big.sign, x.big.field, x.big.significand, y.big.field),
        ((y.big.sign, x.big.sign),),
    )
    field = Link(z3.And(field.claim, y.big.sign == x.big.sign), field.free, field.defined)
    two.derive("decode", "the larger exponent goes up by one, unless all is zero", field, [operands])
    result = same_double(x.result, y.result, two.spec.d_format)
    text = "the same sum at twice the unit is twice the number"
    return two.derive("round", text, result, [total, field, none, sign, *known])


def _between(x: z3.BitVecRef, low: int, high: int, free: bool = True) -> Link:
    """That x is zero or 2^low ≤ |x| ≤ 2^high; a code of fp32."""
    if low <= fp32.min_exponent or high >= fp32.max_exponent:
        raise ArgumentError("products or their sums may leave the range of normal numbers")
    size = magnitude(x, fp32)
    bounds = [(e + fp32.bias) << fp32.fraction_bits for e in (low, high)]
    claim = z3.Or(size == 0, z3.And(z3.UGE(size, bounds[0]), z3.ULE(size, bounds[1])))
    return Link(claim, (x,) if free else ())


def _gps(two: Two) -> Link:
    """Products and sums of them are far from subnormal numbers and from infinity: products are zero or at least 2^m,
    so they are multiples of 2^(m - 23), and so is their sum; and so on.  What is rounded there doubles too."""
    spec, left, right = two.spec, two.left, two.right
    low = spec.a_format.min_exponent + spec.b_format.min_exponent
    high = spec.a_format.max_exponent + spec.b_format.max_exponent + 3
    level: list[tuple[Link, Link]] = []  # that a code doubles, and its bounds
    for k, (x, y) in enumerate(zip(left.products, right.products, strict=True)):
        factor, field = two.factors(k)
        operands = left.a[k], right.a[k], left.b[k]
        codes = operand_codes(*operands)
        flags = [flag for z in operands for flag in (z.nan, z.infinite)]
        finite = Link(z3.Not(any_of(flags)), tuple(flags))
        assumed = [two.assumed[code.get_id()] for code in codes]
        two.derive("decode", "factors are finite", finite, assumed, codes)
        b, given = left.b[k], [factor, field, finite]
        code, bounds = same_double(x, y, fp32), _between(x, low, high)
        two.derive("multiply", "a product doubles", code, [*given], [b.sign, b.significand])
        text = "a product is zero or within bounds"
        two.derive("multiply", text, bounds, given, [b.sign, b.significand])
        level.append((code, bounds))
    sums = list(zip(left.sums, right.sums, strict=True))
    while len(level) > 1:
        low, high = low - fp32.fraction_bits, high + 1
        pairs = []
        for i in range(0, len(level), 2):
            u, v = sums.pop(0)
            (first, b0), (second, b1) = level[i : i + 2]
            bounds = _between(u.result, low, high)
            two.derive("accumulate", "a sum is zero or within bounds", bounds, [b0, b1])
            given = [first, second, b0, b1]
            text = "a sum of doubles is zero or within bounds"
            two.derive("accumulate", text, _between(v.result, low, high + 1), given)
            known = [_between(u.result, low, high, free=False), _between(v.result, low, high + 1, free=False)]
            code = _addition(two, u, v, given, known)
            x, y = (flush(z.result, keep_sign=True) for z in (u, v))
            flushed = same_double(x, y, fp32), _between(x, low, high)
            two.derive("encode", "flushed, it is the same", flushed[0], [code, bounds])
            two.derive("encode", "flushed, it is the same", flushed[1], [bounds])
            pairs.append(flushed)
        level = pairs
    ((group, bounds),) = level
    known = _assumed_results(two)
    for each, sides in ((left, [two.c, bounds]), (right, [two.c, bounds, group])):
        result = each.addition.result
        link = Link(normal_or_special(result), ())
        text = "the sum of a group and c is no subnormal"
        known.append(two.derive("accumulate", text, link, sides))
    sum_ = _addition(two, left.addition, right.addition, [two.c, group, bounds], known)
    two.derive("encode", "flushed, it is the same", two.result, [sum_])
    return two.result


def normal_or_special(code: z3.BitVecRef) -> z3.BoolRef:
    """Whether a code is zero, or no subnormal."""
    size = magnitude(code, fp32)
    return z3.Or(size == 0, z3.UGE(size, 1 << fp32.fraction_bits))


def _assumed_results(two: Two) -> list[Link]:
    what = "every step's result is zero or above the least normal number"
    fmt = two.spec.d_format
    return [two.pairing.assume(what, Link(well_inside(s.result, fmt), ())) for s in (two.left, two.right)]


def _lowered(two: Two) -> Link:
    left, right, spec = two.left, two.right, two.spec
    inner = spec.parameters.inner_dot_add(spec)  # type: ignore[attr-defined]
    zero = z3.BitVecVal(0, spec.d_format.storage_bits)
    start = two.derive("inputs", "the inner steps start from +0", same_double(zero, zero, spec.d_format))
    dot = chain(two.pairing, inner, (left.inner, right.inner), start, two.assumed)
    return _addition(two, left.addition, right.addition, [dot, two.c], _assumed_results(two))


def _efda(two: Two) -> Link:
    return _fixed_point(two) if hasattr(two.left, "placed") else _sorted(two)


_STEPS: dict[str, Callable[[Two], Link]] = {
    "fda": _fda,
    "fdrda": _fdrda,
    "gfdrda": _fdrda,
    "sfma": _sfma,
    "efda": _efda,
    "gps": _gps,
    "lowered": _lowered,
}


def chain(
    pairing: Pairing,
    spec: DotAdd,
    steps: tuple[Sequence[Any], Sequence[Any]],
    c: Link,
    assumed: dict[int, Link],
) -> Link:
    """From the link of c, step by step, to that of d; `assumed`: what is known of a, b and scales, by their codes."""
    if spec.parameters.algorithm not in _STEPS:
        raise ArgumentError(f"no argument for {spec.parameters.algorithm}")
    for left, right in zip(*steps, strict=True):
        c = _STEPS[spec.parameters.algorithm](Two(pairing, spec, left, right, c, assumed))
    return c
