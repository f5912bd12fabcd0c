"""Two runs of one model, the second on the doubled a and c, stage by stage: as `related_stages`, with other links.

Terms keep their significands, and their exponents go up by one, zeros aside; so does the largest exponent.  Then
shifts, aligned terms and sums are the same, and the same sum at twice the unit is rounded to twice the number, unless
it is subnormal.  Or the largest exponent is *still*: it is one that zeros have, in both runs.  Then the sum is zero, or
so small that no result is normal, or it is cut at one place more in the first run, with a sticky place.  Nothing is
said of an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import z3

from mmaformal.encodings.smt.blocks import Term, any_of
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import Format
from mmaformal.proof.doubled_runs import (
    Bounded,
    DoubledCode,
    DoubledOperand,
    DoubledRuns,
    DoubledSum,
    DoubledTerm,
    LinkOf,
)
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.kernel import ArgumentError, Link, demand
from mmaformal.proof.lemmas import at_most, within
from mmaformal.proof.related_runs import Pairing, all_links, operand_codes, same
from mmaformal.proof.scaling import (
    halved,
    is_up,
    jammed_half,
    link_at_least,
    link_between,
    moves,
    no_more,
    normal,
    one_up,
    same_double,
    up_or,
)
from mmaformal.stages import Stage


def link_doubled_runs(
    argument: Pairing,
    runs: tuple[Sequence[Stage], Sequence[Stage]],
    c: tuple[z3.BitVecRef, Link],
    assumed: Mapping[int, Link],
    results: Sequence[z3.BitVecRef],
    own: Mapping[str, LinkOf],
) -> None:
    """Derives, stage by stage, that the second run's codes are the doubles of the first's.  Raises ArgumentError.

    c: the first run's, and its link.  assumed: what is known of the codes of a, b and scales, by their ids.  results:
    those of the steps of both runs, which are assumed to be within range.  own: links of stages that
    are one algorithm's.
    """
    links = {**_LINKS, **own}
    walk = DoubledRuns(argument, runs, assumed, results)
    walk.add(*c)
    for left, right in zip(*runs, strict=True):
        link = links.get(left.name)
        if link is None:
            raise ArgumentError(f"nothing is known of doubling and the stage {left.name}")
        known = link(walk, left, right)
        if known is not None:
            walk.add(left.output, known)


# ---- operands -------------------------------------------------------------------------------------------------------


def _convert(run: DoubledRuns, left: Stage, right: Stage) -> None:
    """Derives nothing: where the code is decoded, what is known of the code before is used."""


def _zero(run: DoubledRuns, left: Stage, right: Stage) -> Link:
    link = same_double(left.output, right.output, left.given["fmt"])
    return run.derive("inputs", "both runs begin at zero", link)


def _decode(run: DoubledRuns, left: Stage, right: Stage) -> DoubledOperand:
    x, y, code = left.output, right.output, run.decoded(left.inputs[0])
    fmt = left.given["fmt"]
    codes = operand_codes(x, y) if code is None else []
    given = [code] if code is not None else [run.assumed[each.get_id()] for each in codes]
    flags = [flag for each in (x, y) for flag in (each.nan, each.infinite) if not z3.is_false(flag)]

    def finite() -> Sequence[Link]:
        link, known = Link(z3.Not(any_of(flags)), tuple(flags)), given
        return [run.derive("decode", "operands are finite", link, known, codes)] if flags else []

    if code is None and all(u.eq(v) for u, v in zip(x, y, strict=True)):
        text = "exponent fields are not below those of zeros"
        link = Link(z3.UGE(x.field, int(fmt.has_zero)), tuple(x[:3]))
    else:
        text = "a doubled operand's exponent goes up by one, unless it is zero"
        top = x.significand.size() - 1
        normal = z3.Extract(top, top, x.significand) == 1
        up = z3.And(normal, y.field == x.field + 1, z3.ULT(x.field, -1), z3.UGE(x.field, 1))
        zero = z3.And(x.significand == 0, x.field == 1, y.field == 1)
        kept = ((y.sign, x.sign), (y.significand, x.significand))
        link = Link(z3.And(z3.Or(up, zero), *(u == v for u, v in kept)), (*x[:3], y.field), kept)
    return DoubledOperand(run.derive("decode", text, link, given, codes), finite, fmt)


def _classify(run: DoubledRuns, left: Stage, right: Stage) -> Callable[[], Link]:
    def none() -> Link:
        finite = [link for x in left.inputs for link in run.of(x).finite()]
        inputs = [part for stage in (left, right) for x in stage.inputs for part in (x.sign, x.significand)]
        flags = (*left.output, *right.output)
        link = Link(z3.Not(any_of(flags)), flags)
        return run.derive("classify", "there is no special value", link, finite, inputs)

    return none


# ---- terms ----------------------------------------------------------------------------------------------------------


def _multiply(run: DoubledRuns, left: Stage, right: Stage) -> DoubledTerm:
    """The link of a product, or of c."""
    x, y, operands = left.output, right.output, [run.of(each) for each in left.inputs]
    given = [each.link for each in operands]
    zero = _exponent(left, [(1, 0)])
    low, high = (
        _exponent(left, [(field, -1) for field in fields])
        for fields in ([int(each.fmt.has_zero) for each in operands], [-1 for _ in operands])
    )
    if low is None or high is None:
        raise ArgumentError("an exponent is not that of fields")
    low = low if zero is None else min(low, zero)
    text = "a term's exponent goes up by one, unless it is zero"
    link = run.derive("multiply", text, moves(x, y, zero), given)
    above = run.derive("multiply", "exponents are in range", link_at_least(x.exponent, low), given)
    below = run.derive("multiply", "exponents are in range", no_more(y.exponent, high), given)
    run.operands[id(x)] = operands
    return DoubledTerm(link, zero, low, above, high, below)


def _exponent(stage: Stage, operands: Sequence[tuple[int, int]]) -> int | None:
    """The exponent of a term of operands of such fields and significands, if it depends on nothing else."""
    pairs = [
        (term, value)
        for x, values in zip(stage.inputs, operands, strict=False)
        for term, value in zip((x.field, x.significand), values, strict=True)
        if not z3.is_bv_value(term)
    ]
    return _value(stage.output.exponent, pairs)


def _value(x: z3.BitVecRef, values: Sequence[tuple[z3.ExprRef, int]]) -> int | None:
    """The number that a term is where others have such values, if it depends on nothing else."""
    value = z3.simplify(z3.substitute(x, *((y, _constant(value, y)) for y, value in values)))
    return int(value.as_long()) if z3.is_bv_value(value) else None


def _constant(value: int, like: z3.ExprRef) -> z3.ExprRef:
    return z3.BitVecVal(value, like.size()) if isinstance(like, z3.BitVecRef) else z3.BoolVal(bool(value))


def _scaled_sum(run: DoubledRuns, left: Stage, right: Stage) -> None:
    raise ArgumentError(
        "groups that take their exponents from their scales keep them, also where they cancel"
    )


def as_term(
    run: DoubledRuns, left: Stage, right: Stage, flag: tuple[Link, z3.BoolRef, z3.BoolRef] | None = None
) -> DoubledTerm:
    """The link of a sum as a term; `flag`: a condition of both runs that holds where all terms are zero, its link."""
    (u, top), (v, _), x, y = left.inputs[:2], right.inputs[:2], left.output, right.output
    sum_ = run.of(u)
    demand(sum_.nothing, "no argument for groups of terms below the exponent of zeros")
    known, mine, other = ([], [], []) if flag is None else ([each] for each in flag)
    least, most = sum_.terms[0].zero, max(term.high for term in sum_.terms)
    zero, low, high = (
        _value(x.exponent, [(top, e), (u.total, total), *((each, not total) for each in mine)])
        for e, total in ((least, 0), (least, 1), (most, 1))
    )
    if zero is None or low is None or high is None:
        raise ArgumentError("the exponent of a sum is not that of its terms")
    link, text = moves(x, y, zero), "the exponent of a group's sum goes up by one, unless that is zero"
    run.derive("accumulate", text, link, [*sum_.where_up, sum_.up, *known])
    run.derive("accumulate", text, link, [*sum_.where_still, sum_.still, *known])
    above, below = link_at_least(x.exponent, min(low, zero)), no_more(y.exponent, high)
    run.derive("accumulate", "exponents are in range", above, [sum_.above()], [u.total, *mine])
    run.derive("accumulate", "exponents are in range", below, sum_.below, [v.total, *other])
    return DoubledTerm(link, zero, min(low, zero), above, high, below, sum_.size)


# ---- sums -----------------------------------------------------------------------------------------------------------


def _largest(run: DoubledRuns, left: Stage, right: Stage) -> DoubledSum:
    return _top(run, (left.output, left.inputs), (right.output, right.inputs))


def _top(
    run: DoubledRuns, left: tuple[z3.BitVecRef, Sequence[Term]], right: tuple[z3.BitVecRef, Sequence[Term]]
) -> DoubledSum:
    """The two cases of the largest exponent of some terms."""
    (top, lefts), (other, rights) = left, right
    terms = [run.of(x) for x in lefts]
    zeros = [term.zero for term in terms if term.zero is not None]
    if len(zeros) < len(terms):
        raise ArgumentError("no argument for zeros that keep the exponents of their fields")
    zero, highest = (z3.BitVecVal(max(x), top.size()) for x in (zeros, [term.high for term in terms]))
    leaves = {x.exponent.get_id(): term.link for x, term in zip(lefts, terms, strict=True)}
    exponents = [[x.exponent for x in each] for each in (lefts, rights)]
    up, still = is_up(top, other), Link(z3.And(top == zero, other == zero), (top, other))
    given = [_larger(run, top, other, leaves, zero, len(set(zeros)) == 1)]
    if len(set(zeros)) > 1:  # of those whose zeros have the largest exponent, none is below that
        i = next((i for i, term in enumerate(terms) if term.low == max(zeros)), 0)
        given += [terms[i].link, terms[i].above]
        given += [
            run.argument.not_below("align", "exponents", *each)[i]
            for each in zip((top, other), exponents, strict=True)
        ]
    text = "the largest exponent goes up by one, or is that of zeros in both runs"
    run.argument.split(text, [up, still], given)
    below = {}
    for x, term in zip(rights, terms, strict=True):
        bound = at_most(x.exponent, highest)
        below[x.exponent.get_id()] = run.derive("align", "exponents are in range", bound, [term.below])

    def above() -> Link:
        i, least = max(enumerate(term.low for term in terms), key=lambda each: each[1])
        order = run.argument.not_below("align", "exponents", top, exponents[0])[i]
        return run.derive(
            "align", "exponents are in range", link_at_least(top, least), [order, terms[i].above]
        )

    return DoubledSum(up, still, terms, [run.argument.at_most_all(other, highest, below)], above)


def _larger(
    run: DoubledRuns,
    x: z3.BitVecRef,
    y: z3.BitVecRef,
    leaves: Mapping[int, Link],
    zero: z3.BitVecRef,
    equal: bool,
) -> Link:
    """Derives, node by node, that a maximum goes up by one, or is that of zeros in both runs; or below, if not
    `equal`."""
    still = [z == zero if equal else z3.ULE(z, zero) for z in (x, y)]
    if x.get_id() in leaves:
        parts = [leaves[x.get_id()]]
    else:
        demand(x.num_args() == y.num_args() == 3, "the largest exponent is no maximum of the terms'")
        parts = [_larger(run, x.arg(i), y.arg(i), leaves, zero, equal) for i in (1, 2)]
    text = "the larger of two exponents goes up by one, or is that of zeros"
    return run.derive("align", text, up_or(x, y, z3.And(still)), parts)


BothRuns: TypeAlias = Sequence[tuple[z3.BitVecRef, z3.BitVecRef]]  #: what both runs have


def _equal(run: DoubledRuns, top: DoubledSum, aligned: BothRuns) -> list[Link]:
    text = "where the largest exponent goes up, terms are the same"
    return [
        run.derive("align", text, same(x, y), [term.link, top.up])
        for (x, y), term in zip(aligned, top.terms, strict=True)
    ]


def _zeros(run: DoubledRuns, top: DoubledSum, aligned: BothRuns, orders: Sequence[Link]) -> list[Link | None]:
    """For each term that has no exponent below that of zeros, that it is zero where the largest is that."""
    none: list[Link | None] = []
    for (x, y), term, order in zip(aligned, top.terms, orders, strict=True):
        link = _nothing((x, y))
        if term.low == term.zero:
            text = "where it is that of zeros, a term is zero"
            run.derive("align", text, link, [term.link, term.above, order, top.still])
        none.append(link if term.low == term.zero else None)
    return none


def _nothing(pair: tuple[z3.BitVecRef, z3.BitVecRef]) -> Link:
    """The link that says that two terms are zero."""
    return Link(z3.And([z == 0 for z in pair]), (), tuple((z, z3.BitVecVal(0, z.size())) for z in pair))


def _accumulate(run: DoubledRuns, left: Stage, right: Stage) -> DoubledSum:
    """The link of the sum: it is the same, or within the bits of terms that may be below the exponent of zeros."""
    (*lefts, e_max), (*rights, other) = left.inputs, right.inputs
    top: DoubledSum = run.of(e_max)
    totals = left.output.total, right.output.total
    sums = [summands(total, len(lefts)) for total in totals]
    demand(all(len(each) == len(lefts) for each in sums), "the sum is not made of its terms")
    aligned = list(zip(*sums, strict=True))
    total = run.derive("accumulate", "equal terms, equal sums", same(*totals), _equal(run, top, aligned))
    orders = run.orders((other, rights))
    none = _zeros(run, top, aligned, orders)
    for i, (u, v) in enumerate(zip(lefts, rights, strict=True)):
        if none[i] is None and all(_value(term.significand, []) == 0 for term in (u, v)):
            link = _nothing(aligned[i])
            run.derive("align", "a term that is always zero is zero", link, [], [e_max, other])
            none[i] = link
    small = [_bounded(run, each, none)[1] for each in sums]

    def size() -> Bounded:
        made = [term.size() for term in top.terms if term.size is not None]
        if not made:
            return _bounded(run, sums[0], [None] * len(lefts))
        most, links = sum(bound for bound, _ in made), [link for _, link in made]
        text = "a sum of groups is within the sum of their bounds"
        inputs = [e_max, *(x.exponent for x in lefts)]
        return most, run.derive("accumulate", text, within(totals[0], most), links, inputs)

    return replace(top, size=size, where_up=[total], where_still=small, nothing=None not in none)


def _bounded(run: DoubledRuns, summands: Sequence[z3.BitVecRef], none: Sequence[Link | None]) -> Bounded:
    """Derive that a sum of terms, some of them zero, is within the bits of the others: partial sum by partial sum."""
    running: Link | None = None
    total, most = summands[0], 0
    for i, (x, link) in enumerate(zip(summands, none, strict=True)):
        if link is None:
            demand(
                x.num_args() == 3 and x.arg(2).num_args() == 1, "a term is not made of a sign and a magnitude"
            )
            sign, magnitude = x.arg(0), x.arg(2).arg(0)  # negated if the sign says so, with zeros above it
            bound = (1 << magnitude.size()) - 1
            link, most = within(x, bound), most + bound
            run.derive("align", "a term is within its bits", link, [], [sign, magnitude])
        total = total + x if i else x
        before, running = running, within(total, most)
        text = "a partial sum is within the sum of its terms' bounds"
        run.derive("accumulate", text, running, [link] if before is None else [before, link])
    assert running is not None
    return most, running


def _sticky_sum(run: DoubledRuns, left: Stage, right: Stage) -> DoubledSum:
    """The link of the sum: it is the same, or it is half that of the second run, with a sticky place, for the first
    term is cut at one place more in the first run, and the second is zero."""
    x, y = left.output, right.output
    top = _top(run, (x.e_max, left.inputs), (y.e_max, right.inputs))
    signs = _signs(run, left.inputs, right.inputs)
    aligned = [(x.x, y.x), (x.y, y.y)]
    given = [*_equal(run, top, aligned), *signs]
    total = run.derive("accumulate", "equal terms, equal sums", same(x.total, y.total), given)
    orders = [run.orders((x.e_max, left.inputs)), run.orders((y.e_max, right.inputs))]
    first, second = _zeros(run, top, aligned, orders[1])
    if second is None:
        raise ArgumentError("no argument where the second term may be below the exponent of zeros")
    small, text = all_links(within(x.total, 0), within(y.total, 0)), "the sum of zeros is zero"
    if first is None:
        text = "where it is that of zeros, the first term is cut at one place more in the first run"
        first = Link(x.x == jammed_half(y.x), (y.x,), ((x.x, jammed_half(y.x)),))
        run.derive("align", text, first, [top.terms[0].link, top.still, *orders[0], *orders[1]])
        _, small = halved(x.total, y.total)
        text = "the first sum is half the second, with a sticky place"
    run.derive("accumulate", text, small, [first, second, *signs])
    return replace(top, where_up=[total], where_still=[small])


def _signs(run: DoubledRuns, lefts: Sequence[Term], rights: Sequence[Term]) -> list[Link]:
    text = "signs are the same"
    return [
        run.derive("multiply", text, same(x.sign, y.sign), [run.of(x).link])
        for x, y in zip(lefts, rights, strict=True)
    ]


# ---- results --------------------------------------------------------------------------------------------------------


def link_doubled_round_sum(run: DoubledRuns, left: Stage, right: Stage) -> None:
    """Derives the link of the codes, where the exponent goes up, and where it does not."""
    terms = [[x for x in stage.inputs if isinstance(x, Term)] for stage in (left, right)]
    signs = _signs(run, *terms)  # those that a sum of exactly zero has
    sum_, assumed = run.of(left.inputs[0]), run.in_range(left, right)
    none = run.no_special(left, right, assumed)
    known = [*signs, *none, *sum_.below, *(assumed or [sum_.above()])]
    text = "the same sum at twice the unit is twice the number"
    link = run.code(left, right, text, [*sum_.where_up, sum_.up, *known])
    text = "where the exponent is that of zeros, the sum is zero, no normal number, or half the second"
    run.derive("round", text, link, [*sum_.where_still, sum_.still, *known])


def _round_product(run: DoubledRuns, left: Stage, right: Stage) -> None:
    term, assumed = run.of(left.inputs[0]), run.in_range(left, right)
    text = "the same significand at twice the unit is twice the number"
    given = [term.link, term.above, term.below, *run.no_special(left, right, assumed), *assumed]
    run.code(left, right, text, given)


def _add(run: DoubledRuns, left: Stage, right: Stage) -> None:
    x, y, fmt, known = left.output, right.output, left.given["rho"].format, run.in_range(left, right)
    given = [run.of(code) for code in left.inputs]
    bounds = [run.bounds[id(code)] for code in left.inputs if id(code) in run.bounds]
    also = [*given, *(each.link for each in bounds)]
    if known and bounds:
        text = "a sum with a number that is far from subnormal ones is none"
        for code in (x.result, y.result):
            known.append(run.derive("accumulate", text, Link(normal(code, fmt)), also))
    elif len(bounds) == len(given):
        low = min(each.low for each in bounds) - fmt.fraction_bits
        high = max(each.high for each in bounds) + 1
        for code, most in ((x.result, high), (y.result, high + 1)):
            text, link = "a sum is zero or within bounds", link_between(code, low, most, fmt)
            known.append(Link(run.derive("accumulate", text, link, also).claim))
        run.bounds[id(x.result)] = DoubledCode(low, high, link_between(x.result, low, high, fmt))
    run.add(x.result, _addition(run, x, y, fmt, also, known))


def _addition(
    run: DoubledRuns, x: Addition, y: Addition, fmt: Format, given: Sequence[Link], known: Sequence[Link]
) -> Link:
    """Derives that the sum of two codes doubles, from what is known of them, and of the sums' ranges."""
    free, pairs, claims = [], [], [z3.Implies(x.big.significand == 0, x.small.significand == 0)]
    for u, v in ((x.big, y.big), (x.small, y.small)):
        free += [*u[:3], v.field]
        pairs += [(v.sign, u.sign), (v.significand, u.significand)]
        claims.append(z3.Or(one_up(u.field, v.field), u.significand == 0))
    claims += [*(v == u for v, u in pairs), *(z3.ULE(z.small.field, z.big.field) for z in (x, y))]
    operands = Link(z3.And(claims), tuple(free), tuple(pairs))
    text = "sorted by magnitude, exponents go up by one, unless they are of zeros"
    run.derive("decode", text, operands, given)
    flags = (*x.special, *y.special)
    none = Link(z3.Not(any_of(flags)), flags)
    run.derive("classify", "the sum of finite numbers is of no special value", none, given)
    zero = z3.Implies(x.big.significand == 0, x.total == 0)
    total = Link(z3.And(y.total == x.total, zero), (x.total, x.big.significand), ((y.total, x.total),))
    run.derive("accumulate", "aligned terms are the same, and so are their sums", total, [operands])
    text = "the same sum at twice the unit is twice the number"
    return run.derive("round", text, same_double(x.result, y.result, fmt), [total, operands, none, *known])


# ---- codes of numbers that are far from subnormal ones ------------------------------------------------------------


def _product(run: DoubledRuns, left: Stage, right: Stage) -> Link:
    """The link of the code of a product, and its bounds."""
    fmt, operands = left.given["fmt"], [run.of(x) for x in left.inputs]
    low, high = sum(x.fmt.min_exponent for x in operands), sum(x.fmt.max_exponent + 1 for x in operands) + 1
    given = [link for x in operands for link in (x.link, *x.finite())]
    link, bounds = same_double(left.output, right.output, fmt), link_between(left.output, low, high, fmt)
    run.derive("multiply", "a product doubles", link, given)
    run.derive("multiply", "a product is zero or within bounds", bounds, given)
    run.bounds[id(left.output)] = DoubledCode(low, high, bounds)
    return link


def _select(run: DoubledRuns, left: Stage, right: Stage) -> Link:
    numbers = [run.of(left.inputs[0]), *(run.selected(stage) for stage in (left, right))]
    link = same_double(left.output, right.output, left.given["fmt"])
    return run.derive("encode", "the results are the numbers", link, numbers)


def _change_sign(run: DoubledRuns, left: Stage, right: Stage) -> Link:
    link = same_double(left.output, right.output, left.given["fmt"])
    text = "a double with its sign changed is the double still"
    return run.derive("signs", text, link, [run.of(left.inputs[0])])


def _flush(run: DoubledRuns, left: Stage, right: Stage) -> Link:
    x, y, fmt, text = left.output, right.output, left.given["fmt"], "flushed, it is the same"
    before = run.bounds.get(id(left.inputs[0]))
    if before is not None:
        bounds = run.derive("encode", text, link_between(x, before.low, before.high, fmt), [before.link])
        run.bounds[id(x)] = before._replace(link=bounds)
    given = [run.of(left.inputs[0]), *([] if before is None else [before.link])]
    return run.derive("encode", text, same_double(x, y, fmt), given)


_LINKS: Mapping[str, LinkOf] = {
    "convert": _convert,
    "change_sign": _change_sign,
    "zero": _zero,
    "decode": _decode,
    "classify": _classify,
    "multiply": _multiply,
    "addend": _multiply,
    "scaled_sum": _scaled_sum,
    "largest": _largest,
    "accumulate": _accumulate,
    "as_term": as_term,
    "round": link_doubled_round_sum,
    "round_product": _round_product,
    "sticky_sum": _sticky_sum,
    "round_sum": link_doubled_round_sum,
    "add": _add,
    "product": _product,
    "flush": _flush,
    "select": _select,
}
