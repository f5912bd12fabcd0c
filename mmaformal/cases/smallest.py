"""The smallest case that shows something, in the order of `witness.case_size`; and what is known of it to be least.

Cases with few nonzero products are asked for first; `unsat` proves that more are needed.  A case that was found is
made smaller, objective by objective, each under the bounds of those before: fewest nonzero products, c = 0 if possible,
fewest significand bits set, exponents nearest 0; then, to settle ties, small exponents in the products, few minus
signs, and at last the least codes at the first places, of the cases that stand for those alike, so that whichever
solver answers, the case is the same.

"Proved minimal" is said where the bound below was refuted.  One case is asked about for all that are alike, as far as
`Symmetries` go, each of which was proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.cases.codes import (
    exponent_distance,
    is_zero,
    sign_bit,
    significand_bits,
    sum_at_most,
)
from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.cases.questions import FoundCase, Places, Questions, SizeBound
from mmaformal.cases.shrink import size
from mmaformal.checked import Progress
from mmaformal.formats import Format
from mmaformal.solver.asking import Asker, Settled
from mmaformal.spec import DotAdd
from mmaformal.witness import product_is_zero

#: The most ways to place the nonzero products: of more, one alone is looked at when a case is made smaller.
_WAYS = 64
#: How a question ends that is not asked, since an argument answers it: open, for it is no part of a proof.
_ARGUED = Settled("unknown", "", "", 0.0, why="an argument rules these places out")


@dataclass(frozen=True)
class Objective:
    """A measure of a case that is to be small."""

    name: str
    value: Callable[[Codes], int]
    terms: Callable[[Inputs, Places], list[z3.BitVecRef]]  #: whose sum it is
    from_above: bool = False  #: whether a refutation is dear, so that bounds are tried from above

    def at_most(self, bound: int) -> SizeBound:
        return lambda inputs, active: sum_at_most(self.terms(inputs, active), bound)


class SmallestSearch(Questions):
    """A search for the smallest of the cases that show something."""

    def __init__(
        self,
        spec: DotAdd,
        asker: Asker,
        pins: dict[str, int] | None = None,
        every_product: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """`pins`: inputs of a given code; `every_product`: whether every product must have two nonzero factors."""
        super().__init__(spec, asker, pins, every_product, progress)
        self.minimality: tuple[str, ...] = ()
        self.unsettled: dict[int, str] = {}  # numbers of products that are not ruled out, and why
        self.ruled_out: set[int] = set()  # those that are
        self.questions: list[Settled] = []  # those that were to; an argument's is open
        self.objectives = [
            Objective("c", lambda x: size(spec, x)[1], self._c_is_nonzero),
            Objective("significand bits set", lambda x: size(spec, x)[2], self._significands),
            Objective("sum of |exponent|", lambda x: size(spec, x)[3], self._exponents, from_above=True),
            Objective(
                "of that in the products' factors", lambda x: size(spec, x)[4], self._product_exponents
            ),
            Objective("minus signs", lambda x: size(spec, x)[5], self._signs),
        ]

    def made_smaller(self, codes: Codes) -> Codes:
        """A case at most as large, by other means than a solver."""
        return codes

    def lesser(self, codes: Codes) -> Codes:
        """A case no larger, with lesser codes, by other means than a solver."""
        return codes

    def nothing_at(self, active: Places) -> bool:
        """Whether an argument proves that nothing is shown with nonzero products only at `active`."""
        return False

    # ---- few products ---------------------------------------------------------------------------------------------

    def size(self, found: FoundCase) -> tuple[int, ...]:
        return size(self.spec, found.codes)

    def products(self, found: FoundCase) -> int:
        return self.size(found)[0]

    def with_products(
        self, count: int, left: Callable[[], float], first_try: float | None = None
    ) -> FoundCase | None:
        """A case with `count` nonzero products, or None; what is not ruled out is noted in `unsettled`.

        The search is broken off when nothing is `left`; `first_try` is the most that one question has.
        """
        self.unsettled.pop(count, None)
        for active in self.ways(count):
            if left() <= 0:
                self.unsettled.setdefault(count, "the time for that was used up")
                return None
            if self.nothing_at(active):
                self.questions.append(_ARGUED)
                continue
            limit = left() if first_try is None else min(left(), first_try)
            if count:  # c = 0 is preferred, and mostly settled sooner
                _, found = self.ask_within(active, "c = 0", [self.objectives[0].at_most(0)], limit / 2)
                if found is not None:
                    return found
            outcome, found = self.ask_at(active, count, limit)
            if found is not None:
                return found
            self.questions.append(outcome)
            if outcome.verdict == "unknown":
                self.unsettled.setdefault(count, outcome.why)
        if count not in self.unsettled:
            self.ruled_out.add(count)
        return None

    def products_open(self, count: int) -> str:
        """Why `count` nonzero products may not be the fewest, or nothing."""
        open_ = [n for n in range(len(self.forced), count) if n not in self.ruled_out]
        return f"{open_[0]} not settled: {self.unsettled.get(open_[0], 'not asked')}" if open_ else ""

    # ---- making it smaller ----------------------------------------------------------------------------------------

    def shrink(self, found: FoundCase) -> FoundCase:
        """The smallest case with as many nonzero products as the one found; and what is known of each objective."""
        while True:
            count = self.products(found)
            self.bare = False
            smaller, reasons = self._shrink(found, count)
            if self.products(smaller) == count:
                break
            found = self.at_places(smaller)
        self.minimality = tuple(self._claims(smaller, reasons))
        return smaller

    def at_places(self, found: FoundCase) -> FoundCase:
        """Return the case with those places active where a product is not zero, or which are forced."""
        x, spec = found.codes, self.spec
        active = tuple(
            k
            for k in range(spec.k)
            if k in self.forced or not product_is_zero(x.a[k], spec.a_format, x.b[k], spec.b_format)
        )
        return replace(found, active=active)

    def _shrink(self, found: FoundCase, count: int) -> tuple[FoundCase, list[str]]:
        ways = list(itertools.islice(self.ways(count), _WAYS + 1))
        complete = len(ways) <= _WAYS
        if not complete:
            ways = []
        bounds: list[SizeBound] = []
        reasons = []
        for objective in self.objectives:
            found, reason = self._least(objective, found, bounds, ways)
            if not complete and objective.value(found.codes):
                reason = reason or "other places for the products not tried"
            reasons.append(reason)
            best = objective.value(found.codes)
            bounds.append(objective.at_most(best))
            self.bare |= objective.name == "significand bits set" and best == 0
        found, reason = self._first(found, bounds, ways)
        return found, [*reasons, reason or ("" if complete else "other places for the products not tried")]

    def _least(
        self, objective: Objective, found: FoundCase, bounds: Sequence[SizeBound], ways: Sequence[Places]
    ) -> tuple[FoundCase, str]:
        """A case that is least in one objective within bounds, and why it may not be."""
        name = objective.name if objective.name != "c" else "nonzero c"
        refuted: dict[Places, int] = {}  # less than that is refuted there
        skipped: dict[Places, int] = {}  # so is that, or it was not settled
        why: dict[Places, str] = {}
        bold = True

        def ask(way: Places, bound: int) -> FoundCase | None:
            limits = [*bounds, objective.at_most(bound)]
            outcome, better = self.ask_within(way, f"{name} at most {bound}", limits)
            if outcome.verdict == "unsat":
                refuted[way] = skipped[way] = bound + 1
            elif outcome.verdict == "unknown":
                skipped[way], why[way] = bound + 1, outcome.why
            return better

        while (best := objective.value(found.codes)) > 0:
            low, better = skipped.get(found.active, 0), None
            if low < best:  # descend at the places where the case is
                if not objective.from_above:  # few do, mostly
                    bound = min(low + low // 2, best - 1)
                elif low or not bold:  # after a refutation the best is mostly the least
                    bound = best - 1
                else:
                    bound = (3 * best - 1) // 4
                better, bold = ask(found.active, bound), not bold
                if better is None:
                    continue
            for way in ways if better is None else ():
                if skipped.get(way, 0) < best:
                    better = ask(way, best - 1)
                if better is not None:
                    break
            if better is None:
                open_ = [way for way in {*ways, found.active} if refuted.get(way, 0) < best]
                return found, why[min(open_)] if open_ else ""
            found = self._improved(better, objective)
        return found, ""

    def _improved(self, found: FoundCase, objective: Objective) -> FoundCase:
        """A case at most as large, in the objectives up to this one too, of which there are bounds."""
        codes = self.made_smaller(found.codes)
        if codes == found.codes:
            return found
        measures = self.objectives[: self.objectives.index(objective) + 1]
        within = all(measure.value(codes) <= measure.value(found.codes) for measure in measures)
        return self.at_places(FoundCase(codes, ())) if within else found

    def _first(
        self, found: FoundCase, bounds: Sequence[SizeBound], ways: Sequence[Places]
    ) -> tuple[FoundCase, str]:
        """Return the case within bounds at the first places, with the least codes; and why it may not be the least."""
        name = "lesser codes"
        for way in ways:
            if way == found.active:
                break
            outcome, better = self.ask_within(way, "the same at other places", bounds)
            if better is not None:
                found = better
                break
            if outcome.verdict == "unknown":
                return found, outcome.why
        while True:
            if (lesser := self.lesser(found.codes)) != found.codes:
                found = self.at_places(FoundCase(lesser, ()))
            outcome, better = self.ask_within(found.active, name, [*bounds, _before(found.codes)])
            if better is None:
                return found, outcome.why if outcome.verdict == "unknown" else ""
            found = better

    def _claims(self, found: FoundCase, reasons: Sequence[str]) -> Iterator[str]:
        count = self.products(found)
        least = [not count, *(not objective.value(found.codes) for objective in self.objectives), False]
        open_ = [self.products_open(count), *reasons]
        for what, zero, reason in zip(self._measured(found), least, open_, strict=True):
            yield f"{what}: " + (f"best found ({reason})" if reason and not zero else "proved minimal")

    def nothing_proved(self, found: FoundCase, why: str) -> tuple[str, ...]:
        """The claims for a case of which only that it was found is known."""
        return tuple(f"{what}: best found ({why})" for what in self._measured(found))

    def _measured(self, found: FoundCase) -> Iterator[str]:
        """Yield what is claimed to be least, in order, in words."""
        count = self.products(found)
        yield f"{count} nonzero product{'s' if count != 1 else ''}"
        for objective in self.objectives:
            value = objective.value(found.codes)
            yield f"c {'≠' if value else '='} 0" if objective.name == "c" else f"{objective.name}: {value}"
        yield "first in order of place and code"

    # ---- measures -------------------------------------------------------------------------------------------------

    def _c_is_nonzero(self, inputs: Inputs, _: Places) -> list[z3.BitVecRef]:
        zero = is_zero(inputs.c, self.spec.c_format)
        return [z3.If(zero, z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))]

    def _factors(self, inputs: Inputs, active: Places) -> list[tuple[z3.BitVecRef, Format]]:
        a, b = self.spec.a_format, self.spec.b_format
        return [pair for k in active for pair in ((inputs.a[k], a), (inputs.b[k], b))]

    def _operands(self, inputs: Inputs, active: Places) -> list[tuple[z3.BitVecRef, Format]]:
        """Return what `case_size` counts: the factors of products that may be nonzero, c and the scales."""
        operands = [*self._factors(inputs, active), (inputs.c, self.spec.c_format)]
        if self.spec.scale_format is not None:
            operands += [(s, self.spec.scale_format) for s in (*inputs.scale_a, *inputs.scale_b)]
        return operands

    def _significands(self, inputs: Inputs, active: Places) -> list[z3.BitVecRef]:
        return [bit for x, fmt in self._operands(inputs, active) for bit in significand_bits(x, fmt)]

    def _exponents(self, inputs: Inputs, active: Places) -> list[z3.BitVecRef]:
        return [exponent_distance(x, fmt) for x, fmt in self._operands(inputs, active)]

    def _product_exponents(self, inputs: Inputs, active: Places) -> list[z3.BitVecRef]:
        return [exponent_distance(x, fmt) for x, fmt in self._factors(inputs, active)]

    def _signs(self, inputs: Inputs, _: Places) -> list[z3.BitVecRef]:
        a, b, c = self.spec.a_format, self.spec.b_format, self.spec.c_format
        operands = [*((x, a) for x in inputs.a), *((x, b) for x in inputs.b), (inputs.c, c)]
        return [sign_bit(x, fmt) for x, fmt in operands]


def least_from(search: SmallestSearch, codes: Codes, part: float) -> FoundCase:
    """Return the smallest case, from a known one: fewer products are asked for first, each in a part of the time."""
    found = search.at_places(FoundCase(search.made_smaller(codes), ()))
    search.note(found)
    count = len(search.forced)
    while count < search.products(found):
        better = search.with_products(count, lambda: search.left, search.left * part)
        if better is None:
            count += 1
        else:
            found = search.at_places(replace(better, codes=search.made_smaller(better.codes)))
            search.note(found)
    return search.shrink(found)


def _in_row(x: Inputs | Codes) -> list:  # type: ignore[type-arg]
    """The codes of a case in the order in which cases of one size are compared."""
    products = [code for pair in zip(x.a, x.b, strict=True) for code in pair]
    return [*products, x.c, *x.scale_a, *x.scale_b]


def _before(codes: Codes) -> SizeBound:
    """Return the constraint that a case of one size comes before that of `codes`."""

    def before(inputs: Inputs, _: Places) -> list[z3.BoolRef]:
        row = z3.Concat(*_in_row(inputs))
        value = 0
        for x, code in zip(_in_row(inputs), _in_row(codes), strict=True):
            value = value << x.size() | code
        return [z3.ULT(row, z3.BitVecVal(value, row.size()))]

    return before
