"""Two runs of one model, the second on the doubled a and c, stage by stage: as `related_stages`, with other links.

Terms keep their significands, and their exponents go up by one, zeros aside; so does the largest exponent.  Then
shifts, aligned terms and sums are the same, and the same sum at twice the unit is rounded to twice the number, unless
it is subnormal.  Or the largest exponent is *still*: it is one that zeros have, in both runs.  Then the sum is zero, or
so small that no result is normal, or it is cut at one place more in the first run, with a sticky place.  Nothing is
said of an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import z3

from mmaformal.encodings.smt.blocks import Term, any_of
from mmaformal.proof.kernel import ArgumentError, Link
from mmaformal.proof.lemmas import at_most
from mmaformal.proof.related_runs import Pairing, operand_codes, same, together
from mmaformal.proof.scaling import (
    addition,
    both_summands,
    halved,
    is_up,
    jammed_half,
    largest,
    moves,
    same_double,
    well_inside,
    within,
)
from mmaformal.stages import Stage, Value


class _Operand(NamedTuple):
    link: Link  #: that it is doubled, or the same in both runs
    finite: Sequence[Link]  #: that it is no special value, where it might be one
    least: int  #: the exponent field of zeros and subnormal numbers; 0 without them


class _Term(NamedTuple):
    link: Link  #: that it is doubled by its exponent, unless it is zero
    zero: int | None  #: the exponent that zeros have, if they have one
    low: int
    above: Link  #: that no exponent of the first run is below `low`
    high: int
    below: Link  #: that no exponent of the second run is above `high`


@dataclass(frozen=True)
class _Sum:
    """What is known of terms at their largest exponent, and of their sum, in two cases."""

    up: Link  #: the exponent goes up by one
    still: Link  #: it is one that zeros have, in both runs
    terms: Sequence[_Term]
    below: Link  #: that the second run's is not above those of all terms
    above: Callable[[], Link]  #: derives that the first run's is not below the least of some term
    where_up: Sequence[Link] = ()
    where_still: Sequence[Link] = ()
    nothing: bool = False  #: where the exponent is still, the sum is zero


class _Walk:
    """What is known of what the first run makes, and the second in its place."""

    def __init__(
        self, argument: Pairing, assumed: Mapping[int, Link], results: Sequence[z3.BitVecRef]
    ) -> None:
        self.argument, self.assumed = argument, assumed
        self._results = {x.get_id() for x in results}
        self._known: dict[int, Value] = {}

    def add(self, value: Value, known: Value) -> None:
        self._known[id(value)] = known

    def of(self, value: Value) -> Value:
        return self._known[id(value)]

    def decoded(self, code: z3.BitVecRef) -> Link | None:
        """What is known of a code that a stage made, or of the first c."""
        return self._known.get(id(code))

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link] = (), inputs: Sequence[z3.ExprRef] = ()
    ) -> Link:
        return self.argument.derive(stage, text, [link], given, inputs)[0]

    def in_range(self, left: Stage, right: Stage) -> list[Link]:
        """What is assumed of the codes that a stage makes, if they are results of steps."""
        what, fmt = "every step's result is zero or above the least normal number", left.given["rho"].format
        return [
            self.argument.assume(what, Link(well_inside(code, fmt)))
            for code in (left.output.result, right.output.result)
            if code.get_id() in self._results
        ]

    def code(self, left: Stage, right: Stage, text: str, given: Sequence[Link]) -> Link:
        """Derives that the code which a stage makes is doubled."""
        x, y = left.output.result, right.output.result
        link = self.derive("round", text, same_double(x, y, left.given["rho"].format), given)
        self.add(x, link)
        return link


def doubled(
    argument: Pairing,
    runs: tuple[Sequence[Stage], Sequence[Stage]],
    c: tuple[z3.BitVecRef, Link],
    assumed: Mapping[int, Link],
    results: Sequence[z3.BitVecRef],
) -> None:
    """Derives, stage by stage, that the second run's codes are the doubles of the first's.  Raises ArgumentError.

    c: the first run's, and its link.  assumed: what is known of the codes of a, b and scales, by their ids.  results:
    those of the steps of both runs, which are assumed to be within range.
    """
    walk = _Walk(argument, assumed, results)
    walk.add(*c)
    for left, right in zip(*runs, strict=True):
        known = _LINKS[left.name](walk, left, right)
        if known is not None:
            walk.add(left.output, known)


# ---- operands -------------------------------------------------------------------------------------------------------


def _convert(run: _Walk, left: Stage, right: Stage) -> None:
    """Derives nothing: where the code is decoded, what is known of the code before is used."""


def _zero(run: _Walk, left: Stage, right: Stage) -> Link:
    link = same_double(left.output, right.output, left.given["fmt"])
    return run.derive("inputs", "both runs begin at zero", link)


def _decode(run: _Walk, left: Stage, right: Stage) -> _Operand:
    x, y, code = left.output, right.output, run.decoded(left.inputs[0])
    least = int(left.given["fmt"].has_zero)
    codes = operand_codes(x, y) if code is None else []
    given = [code] if code is not None else [run.assumed[each.get_id()] for each in codes]
    flags = [flag for each in (x, y) for flag in (each.nan, each.infinite) if not z3.is_false(flag)]
    finite = Link(z3.Not(any_of(flags)), tuple(flags))
    if flags:
        run.derive("decode", "operands are finite", finite, given, codes)
    if code is None and all(u.eq(v) for u, v in zip(x, y, strict=True)):
        text, given = "exponent fields are not below those of zeros", []
        link = Link(z3.UGE(x.field, least), tuple(x[:3]))
    else:
        text = "a doubled operand's exponent goes up by one, unless it is zero"
        up = z3.And(y.field == x.field + 1, z3.ULT(x.field, -1), z3.UGE(x.field, 1))
        zero = z3.And(x.significand == 0, x.field == 1, y.field == 1)
        kept = ((y.sign, x.sign), (y.significand, x.significand))
        link = Link(z3.And(z3.Or(up, zero), *(u == v for u, v in kept)), (*x[:3], y.field), kept)
    return _Operand(run.derive("decode", text, link, given, codes), [finite] if flags else [], least)


def _classify(run: _Walk, left: Stage, right: Stage) -> Link:
    finite = [link for x in left.inputs for link in run.of(x).finite]
    inputs = [part for stage in (left, right) for x in stage.inputs for part in (x.sign, x.significand)]
    flags = (*left.output, *right.output)
    none = Link(z3.Not(any_of(flags)), flags)
    return run.derive("classify", "there is no special value", none, finite, inputs)


# ---- terms ----------------------------------------------------------------------------------------------------------


def _multiply(run: _Walk, left: Stage, right: Stage) -> _Term:
    """The link of a product, or of c."""
    x, y, operands = left.output, right.output, [run.of(each) for each in left.inputs]
    bits, given = x.exponent.size(), [each.link for each in operands]
    zero = _exponent(left, [(1, 0)])
    low = _exponent(left, [(each.least, 1) for each in operands])
    high = _exponent(left, [(-1, 1) for _ in operands])
    if low is None or high is None:
        raise ArgumentError("an exponent is not that of fields")
    low = low if zero is None else min(low, zero)
    text = "a term's exponent goes up by one, unless it is zero"
    link = moves(x, y, None if zero is None else z3.BitVecVal(zero, bits))
    run.derive("multiply", text, link, given)
    text = "exponents are in range"
    above = run.derive("multiply", text, at_most(z3.BitVecVal(low, bits), x.exponent), given)
    below = run.derive("multiply", text, at_most(y.exponent, z3.BitVecVal(high, bits)), given)
    return _Term(link, zero, low, above, high, below)


def _exponent(stage: Stage, operands: Sequence[tuple[int, int]]) -> int | None:
    """The exponent of a term of operands of such fields and significands, if it depends on nothing else."""
    pairs = [
        (term, z3.BitVecVal(value, term.size()))
        for x, values in zip(stage.inputs, operands, strict=False)
        for term, value in zip((x.field, x.significand), values, strict=True)
        if not z3.is_bv_value(term)
    ]
    exponent = z3.simplify(z3.substitute(stage.output.exponent, *pairs))
    return exponent.as_long() if z3.is_bv_value(exponent) else None


def _scaled_sum(run: _Walk, left: Stage, right: Stage) -> None:
    raise ArgumentError(
        "groups that take their exponents from their scales keep them, also where they cancel"
    )


def _as_term(run: _Walk, left: Stage, right: Stage) -> _Term:
    x, y, sum_ = left.output, right.output, run.of(left.inputs[0])
    if not sum_.nothing:
        raise ArgumentError("no argument for groups of terms below the exponent of zeros")
    zero, high = sum_.terms[0].zero, max(term.high for term in sum_.terms)
    link = moves(x, y, z3.BitVecVal(zero, x.exponent.size()))
    text = "the exponent of a group's sum goes up by one, unless that is zero"
    run.derive("accumulate", text, link, [*sum_.where_up, sum_.up])
    run.derive("accumulate", text, link, [*sum_.where_still, sum_.still])
    return _Term(link, zero, zero, sum_.above(), high, sum_.below)


# ---- sums -----------------------------------------------------------------------------------------------------------


def _largest(run: _Walk, left: Stage, right: Stage) -> _Sum:
    return _top(run, (left.output, left.inputs), (right.output, right.inputs))


def _top(
    run: _Walk, left: tuple[z3.BitVecRef, Sequence[Term]], right: tuple[z3.BitVecRef, Sequence[Term]]
) -> _Sum:
    """The two cases of the largest exponent of some terms."""
    (top, lefts), (other, rights) = left, right
    terms = [run.of(x) for x in lefts]
    zeros = {term.zero for term in terms}
    if None in zeros or len(zeros) > 1:
        raise ArgumentError("no argument for zeros that keep the exponents of their fields")
    zero, highest = (z3.BitVecVal(x, top.size()) for x in (zeros.pop(), max(term.high for term in terms)))
    leaves = {x.exponent.get_id(): term.link for x, term in zip(lefts, terms, strict=True)}
    either = largest(run.derive, top, other, zero, leaves)
    up, still = is_up(top, other), Link(z3.And(top == zero, other == zero), (top, other))
    text = "the largest exponent goes up by one, or is that of zeros in both runs"
    run.argument.split(text, [up, still], [either])
    below = {}
    for x, term in zip(rights, terms, strict=True):
        bound = at_most(x.exponent, highest)
        below[x.exponent.get_id()] = run.derive("align", "exponents are in range", bound, [term.below])

    def above() -> Link:
        i, least = max(enumerate(term.low for term in terms), key=lambda each: each[1])
        order = run.argument.not_below("align", "exponents", top, [x.exponent for x in lefts])[i]
        link = at_most(z3.BitVecVal(least, top.size()), top)
        return run.derive("align", "exponents are in range", link, [order, terms[i].above])

    return _Sum(up, still, terms, run.argument.at_most_all(other, highest, below), above)


Pairs: TypeAlias = Sequence[tuple[z3.BitVecRef, z3.BitVecRef]]  #: what both runs have


def _equal(run: _Walk, top: _Sum, aligned: Pairs) -> list[Link]:
    text = "where the largest exponent goes up, terms are the same"
    return [
        run.derive("align", text, same(x, y), [term.link, top.up])
        for (x, y), term in zip(aligned, top.terms, strict=True)
    ]


def _zeros(run: _Walk, top: _Sum, aligned: Pairs, orders: Sequence[Link]) -> list[Link | None]:
    """For each term that has no exponent below that of zeros, that it is zero where the largest is that."""
    none: list[Link | None] = []
    for (x, y), term, order in zip(aligned, top.terms, orders, strict=True):
        link = Link(z3.And(x == 0, y == 0), (), tuple((z, z3.BitVecVal(0, z.size())) for z in (x, y)))
        if term.low == term.zero:
            text = "where it is that of zeros, a term is zero"
            run.derive("align", text, link, [term.link, term.above, order, top.still])
        none.append(link if term.low == term.zero else None)
    return none


def _accumulate(run: _Walk, left: Stage, right: Stage) -> _Sum:
    """The link of the sum: it is the same, or within the bits of terms that may be below the exponent of zeros."""
    (*lefts, e_max), (*rights, other) = left.inputs, right.inputs
    top: _Sum = run.of(e_max)
    totals = left.output.total, right.output.total
    sums = both_summands(*totals, len(lefts))
    aligned = list(zip(*sums, strict=True))
    total = run.derive("accumulate", "equal terms, equal sums", same(*totals), _equal(run, top, aligned))
    orders = run.argument.not_below("align", "exponents", other, [x.exponent for x in rights])
    none = _zeros(run, top, aligned, orders)
    small = [_bounded(run, each, none) for each in sums]
    return replace(top, where_up=[total], where_still=small, nothing=None not in none)


def _bounded(run: _Walk, summands: Sequence[z3.BitVecRef], none: Sequence[Link | None]) -> Link:
    """That a sum of terms, some of which are zero, is within the bits of the others: partial sum by partial sum."""
    running: Link | None = None
    total, most = summands[0], 0
    for i, (x, link) in enumerate(zip(summands, none, strict=True)):
        if link is None:
            sign, magnitude = x.arg(0), x.arg(2).arg(0)  # negated if the sign says so, with zeros above it
            bound = (1 << magnitude.size()) - 1
            link, most = within(x, bound), most + bound
            run.derive("align", "a term is within its bits", link, [], [sign, magnitude])
        total = total + x if i else x
        before, running = running, within(total, most)
        text = "a partial sum is within the sum of its terms' bounds"
        run.derive("accumulate", text, running, [link] if before is None else [before, link])
    assert running is not None
    return running


def _sticky_sum(run: _Walk, left: Stage, right: Stage) -> _Sum:
    """The link of the sum: it is the same, or it is half that of the second run, with a sticky place, for the first
    term is cut at one place more in the first run, and the second is zero."""
    x, y = left.output, right.output
    top = _top(run, (x.e_max, left.inputs), (y.e_max, right.inputs))
    signs = _signs(run, left.inputs, right.inputs)
    aligned = [(x.x, y.x), (x.y, y.y)]
    given = [*_equal(run, top, aligned), *signs]
    total = run.derive("accumulate", "equal terms, equal sums", same(x.total, y.total), given)
    orders = [
        run.argument.not_below("align", "exponents", e_max, [z.exponent for z in stage.inputs])
        for stage, e_max in ((left, x.e_max), (right, y.e_max))
    ]
    first, second = _zeros(run, top, aligned, orders[1])
    if second is None:
        raise ArgumentError("no argument where both terms may be below the exponent of zeros")
    small, text = together(within(x.total, 0), within(y.total, 0)), "the sum of zeros is zero"
    if first is None:
        text = "where it is that of zeros, the first term is cut at one place more in the first run"
        first = Link(x.x == jammed_half(y.x), (y.x,), ((x.x, jammed_half(y.x)),))
        run.derive("align", text, first, [top.terms[0].link, top.still, *orders[0], *orders[1]])
        _, small = halved(x.total, y.total)
        text = "the first sum is half the second, with a sticky place"
    run.derive("accumulate", text, small, [first, second, *signs])
    return replace(top, where_up=[total], where_still=[small])


def _signs(run: _Walk, lefts: Sequence[Term], rights: Sequence[Term]) -> list[Link]:
    text = "signs are the same"
    return [
        run.derive("multiply", text, same(x.sign, y.sign), [run.of(x).link])
        for x, y in zip(lefts, rights, strict=True)
    ]


# ---- results --------------------------------------------------------------------------------------------------------


def _round(run: _Walk, left: Stage, right: Stage) -> None:
    total, _, special = left.inputs
    _rounded(run, left, right, run.of(total), [run.of(special)])


def _round_sum(run: _Walk, left: Stage, right: Stage) -> None:
    total, *terms, special = left.inputs[:4]
    _rounded(run, left, right, run.of(total), [run.of(special), *_signs(run, terms, right.inputs[1:3])])


def _rounded(run: _Walk, left: Stage, right: Stage, sum_: _Sum, given: Sequence[Link]) -> None:
    """Derives the link of the codes, where the exponent goes up, and where it does not."""
    known = [*given, sum_.below, *(run.in_range(left, right) or [sum_.above()])]
    text = "the same sum at twice the unit is twice the number"
    link = run.code(left, right, text, [*sum_.where_up, sum_.up, *known])
    text = "where the exponent is that of zeros, the sum is zero, no normal number, or half the second"
    run.derive("round", text, link, [*sum_.where_still, sum_.still, *known])


def _round_product(run: _Walk, left: Stage, right: Stage) -> None:
    term, special = (run.of(x) for x in left.inputs)
    text = "the same significand at twice the unit is twice the number"
    given = [term.link, term.above, term.below, special, *run.in_range(left, right)]
    run.code(left, right, text, given)


def _add(run: _Walk, left: Stage, right: Stage) -> None:
    codes, fmt = [run.of(x) for x in left.inputs], left.given["rho"].format
    link = addition(run.derive, fmt, left.output, right.output, codes, run.in_range(left, right))
    run.add(left.output.result, link)


_LINKS: Mapping[str, Callable[[_Walk, Stage, Stage], Link | _Operand | _Term | _Sum | None]] = {
    "convert": _convert,
    "zero": _zero,
    "decode": _decode,
    "classify": _classify,
    "multiply": _multiply,
    "addend": _multiply,
    "scaled_sum": _scaled_sum,
    "largest": _largest,
    "accumulate": _accumulate,
    "as_term": _as_term,
    "round": _round,
    "round_product": _round_product,
    "sticky_sum": _sticky_sum,
    "round_sum": _round_sum,
    "add": _add,
}


__all__ = ["doubled"]
