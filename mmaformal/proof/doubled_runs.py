"""Knowledge of doubled runs: two runs of one model, the second on the doubled a and c (`doubled_stages`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import z3

from mmaformal.encodings.smt.blocks import Special, Term, any_of
from mmaformal.formats import Format
from mmaformal.proof.kernel import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.scaling import same_double, well_inside
from mmaformal.stages import Stage, Value

Bounded: TypeAlias = tuple[int, Link]  #: that a sum of the first run is not beyond ± a number


class DoubledOperand(NamedTuple):
    link: Link  #: that it is doubled, or the same in both runs
    finite: Callable[[], Sequence[Link]]  #: derives that it is no special value, where it might be one
    fmt: Format


class DoubledTerm(NamedTuple):
    link: Link  #: that it is doubled by its exponent, unless it is zero
    zero: int | None  #: the exponent that zeros have, if they have one
    low: int
    above: Link  #: that no exponent of the first run is below `low`
    high: int
    below: Link  #: that no exponent of the second run is above `high`
    size: Callable[[], Bounded] | None = None  #: derives how large a significand is that is a sum with a sign


class DoubledCode(NamedTuple):
    """A link that says that a code is zero, or 2^low ≤ |x| ≤ 2^high."""

    low: int
    high: int
    link: Link


@dataclass(frozen=True)
class DoubledSum:
    """Links about terms at their largest exponent, and about their sum, in two cases."""

    up: Link  #: the exponent goes up by one
    still: Link  #: it is one that zeros have, in both runs
    terms: Sequence[DoubledTerm] = ()
    below: Sequence[Link] = ()  #: that the second run's is not above those of all terms
    above: Callable[[], Link] | None = (
        None  #: derives that the first run's is not below some term's least one
    )
    size: Callable[[], Bounded] | None = None
    where_up: Sequence[Link] = ()
    where_still: Sequence[Link] = ()
    nothing: bool = False  #: where the exponent is still, the sum is zero


class DoubledRuns:
    """Links about what the first run makes, and the second in its place."""

    def __init__(
        self,
        argument: Pairing,
        runs: tuple[Sequence[Stage], Sequence[Stage]],
        assumed: Mapping[int, Link],
        results: Sequence[z3.BitVecRef],
    ) -> None:
        self.argument, self.assumed = argument, assumed
        self._results = {x.get_id() for x in results}
        #: the stages that make results of codes
        self._last = {x.inputs[0].get_id(): x for run in runs for x in run if x.name in ("flush", "select")}
        for x in (x for run in runs for x in run if x.name == "add"):  # −0 adds nothing
            c, number = x.inputs
            if z3.is_bv_value(c) and c.as_long() == x.given["rho"].format.sign_mask:
                self._last[number.get_id()] = x
        self._known: dict[int, Value] = {}
        self.bounds: dict[int, DoubledCode] = {}
        self.operands: dict[int, Sequence[DoubledOperand]] = {}  #: of terms, by their ids

    def add(self, value: Value, known: Value) -> None:
        self._known[id(value)] = known

    def of(self, value: Value) -> Value:
        return self._known[id(value)]

    def decoded(self, code: z3.BitVecRef) -> Link | None:
        """Return what is known of a code that a stage made, or of the first c; None if nothing is."""
        return self._known.get(id(code))

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link] = (), inputs: Sequence[z3.ExprRef] = ()
    ) -> Link:
        return self.argument.derive(stage, text, [link], given, inputs)[0]

    def orders(self, *sums: tuple[z3.BitVecRef, Sequence[Term]]) -> list[Link]:
        """Derives that no exponent of some terms is above the largest, which is given first."""
        return [
            link
            for e_max, terms in sums
            for link in self.argument.not_below("align", "exponents", e_max, [x.exponent for x in terms])
        ]

    def in_range(self, left: Stage, right: Stage) -> list[Link]:
        """Return what is assumed of the codes that a stage makes, if they are results of steps."""
        fmt, codes = left.given["rho"].format, (left.output.result, right.output.result)
        return [link for code in codes for link in self.within_range(code, fmt)]

    def within_range(self, code: z3.BitVecRef, fmt: Format) -> list[Link]:
        """Return what is assumed of a code that is a result, or that one is made of; nothing of other codes."""
        last = self._last.get(code.get_id())
        result = code if last is None else last.output.result if last.name == "add" else last.output
        if result.get_id() not in self._results:
            return []
        what = "every step's result is zero or above the least normal number"
        inside = self.argument.assume(what, Link(well_inside(result, fmt)))
        if last is None or last.name == "flush":
            return [inside]
        if last.name == "add":
            text, link = "a number that is in range with −0 added is in range", Link(well_inside(code, fmt))
            return [self.derive("accumulate", text, link, [inside], [code])]
        text, link = "the number that is a finite result is in range", Link(well_inside(code, fmt))
        return [self.derive("encode", text, link, [self.selected(last)])]

    def selected(self, stage: Stage) -> Link:
        """Derives that a result in range is the number that it is selected from, and no special value or NaN."""
        number, *rest = stage.inputs
        terms = [part for x in rest if isinstance(x, Special) for part in x]
        terms += [x for x in rest if isinstance(x, z3.ExprRef)]
        result, fmt = stage.output, stage.given["fmt"]
        claim = z3.And(result == number, well_inside(number, fmt))
        link, inside = Link(claim, (number,), ((result, number),)), Link(well_inside(result, fmt))
        return self.derive("encode", "a finite result is a number", link, [inside], [number, *terms])

    def no_special(self, left: Stage, right: Stage, assumed: Sequence[Link]) -> list[Link]:
        """Derives that no special value decides a code, from what is assumed of it, or from what it is made of."""
        special = [x for stage in (left, right) for x in stage.inputs if isinstance(x, Special)]
        if not special or not assumed:
            return [self.of(each)() for each in special[:1]]
        text, none = "a finite result comes of no special value", []
        for stage, flags, link in zip((left, right), special, assumed, strict=True):
            none.append(Link(z3.Not(any_of(flags)), flags))
            self.derive("classify", text, none[-1], [link], [*flags, *stage.output.rounded])
        return none

    def code(self, left: Stage, right: Stage, text: str, given: Sequence[Link]) -> Link:
        """Derives that the code which a stage makes is doubled."""
        x, y = left.output.result, right.output.result
        link = self.derive("round", text, same_double(x, y, left.given["rho"].format), given)
        self.add(x, link)
        return link


#: Derives what is known of what a stage makes, in the first run and in the second.
LinkOf: TypeAlias = Callable[[DoubledRuns, Stage, Stage], Value]
