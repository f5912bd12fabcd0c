"""The smallest case that shows something, in the order of `witness.case_size`; and what is known of it to be least.

Cases with few nonzero products are asked for first; `unsat` proves that more are needed.  A case that was found is
made smaller, objective by objective, each under the bounds of those before: fewest nonzero products, c = 0 if possible,
fewest significand bits set, exponents nearest 0; then, to settle ties, small exponents in the products, few minus
signs, and at last the least codes at the first places, of the cases that stand for those alike, so that whichever
solver answers, the case is the same.

"Proved minimal" is said where the bound below was refuted.  One case is asked about for all that are alike, as far as
`Licences` go, each of which was proved.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.alike import Licences, has_minus_zero, zero_of_sign
from mmaformal.cases.codes import (
    at_most,
    exponent_distance,
    is_finite,
    is_zero,
    magnitude_field,
    sign_bit,
    significand_bits,
)
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.shrink import size
from mmaformal.formats import Format
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Outcome
from mmaformal.witness import product_is_zero

Progress = Callable[[str], None]
Places = tuple[int, ...]  #: of the products that may be nonzero
Bound = Callable[[Inputs, Places], list[z3.BoolRef]]  #: a bound on the size of a case

#: Of more ways to place the nonzero products than this, one alone is looked at when a case is made smaller.
_WAYS = 64


@dataclass(frozen=True)
class Found:
    """A case, and the places whose products may be nonzero."""

    codes: Codes
    active: Places
    seen: tuple[int, ...] = ()  #: what the SMT wing says the results are


@dataclass(frozen=True)
class Objective:
    """A measure of a case that is to be small."""

    name: str
    value: Callable[[Codes], int]
    terms: Callable[[Inputs, Places], list[z3.BitVecRef]]  #: whose sum it is
    from_above: bool = False  #: whether a refutation is dear, so that bounds are tried from above

    def at_most(self, bound: int) -> Bound:
        return lambda inputs, active: at_most(self.terms(inputs, active), bound)


class Search(ABC):
    """A search among the cases of one model's inputs."""

    minimality: tuple[str, ...] = ()

    def __init__(
        self,
        spec: DotAdd,
        asker: Asker,
        pins: dict[str, int] | None = None,
        every_product: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """`pins`: inputs of a given code; `every_product`: whether every product must have two nonzero factors."""
        self.spec, self.asker, self.pins = spec, asker, pins or {}
        self.progress = progress or (lambda _: None)
        self.forced = [k for k in range(spec.k) if every_product or self._pinned_nonzero(k)]
        self.bare = False  # whether the trailing significands that count are known to be 0
        self.unsettled: dict[int, str] = {}  # numbers of products that are not ruled out, and why
        self._licences: Licences | None = None
        self.objectives = [
            Objective("c", lambda x: size(spec, x)[1], self._c_is_nonzero),
            Objective("significand bits set", lambda x: size(spec, x)[2], self._significands),
            Objective("sum of |exponent|", lambda x: size(spec, x)[3], self._exponents, from_above=True),
            Objective(
                "of that in the products' factors", lambda x: size(spec, x)[4], self._product_exponents
            ),
            Objective("minus signs", lambda x: size(spec, x)[5], self._signs),
        ]

    # ---- what a search is about -----------------------------------------------------------------------------------

    @abstractmethod
    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        """Assertions that a case shows what is looked for; and the results."""

    @abstractmethod
    def find_licences(self) -> Licences:
        """Which cases stand for others."""

    #: what a refuted question says
    nothing = "no case"

    @property
    def left(self) -> float:
        """Seconds left for the search."""
        return self.asker.left

    def note(self, found: Found) -> None:  # noqa: B027 - not every search keeps it
        """A case was found."""

    def made_smaller(self, codes: Codes) -> Codes:
        """A case at most as large, by other means than a solver."""
        return codes

    @property
    def licences(self) -> Licences:
        if self._licences is None:
            self.progress(f"{self.asker.elapsed:5.1f} s  proving which cases are alike")
            self._licences = self.find_licences()
        return self._licences

    # ---- inputs ---------------------------------------------------------------------------------------------------

    def _pinned_nonzero(self, k: int) -> bool:
        """Whether what is fixed of a product keeps it from being zero."""
        a, b = self.pins.get(f"a{k}", 0), self.pins.get(f"b{k}", 0)
        return not product_is_zero(a, self.spec.a_format, b, self.spec.b_format)

    def _free(self, k: int) -> bool:
        return f"a{k}" not in self.pins and f"b{k}" not in self.pins

    def inputs(self, active: Places | None) -> tuple[Inputs, list[z3.BoolRef]]:
        """Inputs whose products outside `active` are zero, and what is to be asserted of those; None: all inputs."""
        spec, licences = self.spec, self.licences if active is not None else None
        positive = [f"b{k}" for k in active or () if licences and licences.signs and self._free(k)]
        inputs = symbolic_inputs(spec, self.pins, positive=positive, bare=self.bare)
        asserted: list[z3.BoolRef] = []
        a, b = list(inputs.a), list(inputs.b)
        for k in range(spec.k) if active is not None else ():
            if k not in (active or ()):
                a[k], b[k], more = self._zero_product(k)
                asserted += more
        return replace(inputs, a=tuple(a), b=tuple(b)), asserted

    def _zero_product(self, k: int) -> tuple[z3.BitVecRef, z3.BitVecRef, list[z3.BoolRef]]:
        """The codes of a product that is zero: any such product, or one that stands for it; and what to assert."""
        x, y = self.spec.a_format, self.spec.b_format
        pins = [self.pins.get(f"{side}{k}") for side in "ab"]
        a, b = (
            z3.BitVec(f"{side}{k}", fmt.storage_bits) if pin is None else z3.BitVecVal(pin, fmt.storage_bits)
            for side, fmt, pin in zip("ab", (x, y), pins, strict=True)
        )
        sign, plus = z3.BitVec(f"z{k}", 1), z3.BitVecVal(0, 1)
        zeros = self.licences.zeros
        if pins == [None, None] and zeros != "any":
            signed = zeros == "signed"
            on_a = signed and has_minus_zero(x)
            return (
                zero_of_sign(sign if on_a else plus, x),
                zero_of_sign(sign if signed and not on_a else plus, y),
                [],
            )
        zero_a, zero_b = zero_of_sign(sign, x), zero_of_sign(sign, y)
        if pins == [None, None]:
            if self.licences.exchange:
                return a, zero_b, [is_finite(a, x)]
            on_a = z3.BitVec(f"on{k}", 1) == 1
            chosen = z3.If(on_a, zero_a, a), z3.If(on_a, b, zero_b)
            return *chosen, [is_finite(chosen[0], x), is_finite(chosen[1], y)]
        if pins[1] is None:
            given_zero = pins[0] is not None and is_zero_code(pins[0], x)
            # ±0 for what is free, unless it takes a number to have the sign of each of the products that are alike.
            enough = not given_zero or (zeros == "signed" and has_minus_zero(y)) or zeros == "plus"
            return (a, zero_b, []) if enough else (a, b, [is_finite(b, y)])
        if pins[0] is None:
            given_zero = is_zero_code(pins[1], y)
            enough = not given_zero or (zeros == "signed" and has_minus_zero(x)) or zeros == "plus"
            return (zero_a, b, []) if enough else (a, b, [is_finite(a, x)])
        return a, b, []

    def _in_order(self, inputs: Inputs, active: Iterable[int]) -> list[z3.BoolRef]:
        """|b| ≤ |a|, where b·a may stand for a·b."""
        if not self.licences.exchange:
            return []
        fmt = self.spec.a_format
        return [
            z3.ULE(magnitude_field(inputs.b[k], fmt), magnitude_field(inputs.a[k], fmt))
            for k in active
            if self._free(k)
        ]

    # ---- questions ------------------------------------------------------------------------------------------------

    def ask(
        self,
        active: Places | None,
        name: str,
        statement: str,
        bounds: Sequence[Bound] = (),
        limit: float | None = None,
    ) -> tuple[Outcome, Found | None]:
        """Ask for a case that shows it, its nonzero products only at `active`, within bounds."""
        self.progress(f"{self.asker.elapsed:5.1f} s  {name}")
        if self.left <= 0:
            return Outcome("unknown", "", "", 0.0, why="the time given was used up"), None
        inputs, asserted = self.inputs(active)
        shown, results = self.shows(inputs, active)
        assertions = [*shown, *asserted]
        if active is not None:
            assertions += self._in_order(inputs, active)
            assertions += [term for bound in bounds for term in bound(inputs, active)]
            statement += self._up_to()
        limit = self.left if limit is None else min(limit, self.left)
        outcome = self.asker.satisfy(name, statement, assertions, inputs.constants(), limit)
        if outcome.verdict != "sat":
            return outcome, None
        codes = inputs.codes(self.spec, outcome.model)
        values = [
            (constant, z3.BitVecVal(outcome.model[name], bits))
            for name, bits in inputs.constants().items()
            for constant in [z3.BitVec(name, bits)]
        ]
        seen = tuple(z3.simplify(z3.substitute(r, *values)).as_long() for r in results)
        found = Found(codes, active if active is not None else tuple(range(self.spec.k)), seen)
        self.note(found)
        return outcome, found

    def _up_to(self) -> str:
        """What a question with few products leaves out, in words."""
        licences = self.licences
        alike = [
            *(["the order of products of a class"] if len(set(licences.classes)) < self.spec.k else []),
            *(["that of two factors"] if licences.exchange else []),
            *(["the signs of both"] if licences.signs else []),
            *(["which zero products there are"] if licences.zeros != "any" else []),
        ]
        return f" (up to {', '.join(alike)}: laws that were proved)" if alike else ""

    def ask_within(
        self, active: Places, name: str, bounds: Sequence[Bound], limit: float | None = None
    ) -> tuple[Outcome, Found | None]:
        places = ", ".join(map(str, active)) or "none"
        return self.ask(
            active, name, f"{self.nothing} with {name}, nonzero products only at {places}", bounds, limit
        )

    # ---- few products ---------------------------------------------------------------------------------------------

    def ways(self, count: int) -> Iterator[Places]:
        """The ways to place `count` nonzero products, one of those that are alike."""
        classes = self.licences.classes
        members: dict[Hashable, list[int]] = {}
        for k in range(self.spec.k):
            if k not in self.forced:
                key = (classes[k], self.pins.get(f"a{k}"), self.pins.get(f"b{k}"))
                members.setdefault(key, []).append(k)
        free = count - len(self.forced)
        if free < 0:
            return
        for counts in multisets([len(some) for some in members.values()], free):
            chosen = [k for some, n in zip(members.values(), counts, strict=True) for k in some[:n]]
            yield tuple(sorted(chosen + self.forced))

    def size(self, found: Found) -> tuple[int, ...]:
        return size(self.spec, found.codes)

    def products(self, found: Found) -> int:
        return self.size(found)[0]

    def with_products(
        self, count: int, left: Callable[[], float], first_try: float | None = None
    ) -> Found | None:
        """A case with `count` nonzero products, or None; what is not ruled out is noted in `unsettled`.

        The search is broken off when nothing is `left`; `first_try` is the most that one question has.
        """
        self.unsettled.pop(count, None)
        for active in self.ways(count):
            if left() <= 0:
                self.unsettled.setdefault(count, "the time for that was used up")
                return None
            limit = left() if first_try is None else min(left(), first_try)
            if count:  # c = 0 is preferred, and mostly settled sooner
                _, found = self.ask_within(active, "c = 0", [self.objectives[0].at_most(0)], limit / 2)
                if found is not None:
                    return found
            places = ", ".join(map(str, active)) or "none"
            name = f"{count} products (at {places})"
            statement = f"{self.nothing} with nonzero products only at {places}"
            outcome, found = self.ask(active, name, statement, limit=limit)
            if found is not None:
                return found
            if outcome.verdict == "unknown":
                self.unsettled.setdefault(count, outcome.why)
        return None

    def products_open(self, count: int) -> str:
        """Why `count` nonzero products may not be the fewest, or nothing."""
        least = len(self.forced)
        asked = [n for n in range(least, count) if n in self.unsettled]
        return f"{asked[0]} not settled: {self.unsettled[asked[0]]}" if asked else ""

    # ---- making it smaller ----------------------------------------------------------------------------------------

    def shrink(self, found: Found) -> Found:
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

    def at_places(self, found: Found) -> Found:
        """The same, active only where it is."""
        x, spec = found.codes, self.spec
        active = tuple(
            k
            for k in range(spec.k)
            if k in self.forced or not product_is_zero(x.a[k], spec.a_format, x.b[k], spec.b_format)
        )
        return replace(found, active=active)

    def _shrink(self, found: Found, count: int) -> tuple[Found, list[str]]:
        ways = list(itertools.islice(self.ways(count), _WAYS + 1))
        complete = len(ways) <= _WAYS
        if not complete:
            ways = []
        bounds: list[Bound] = []
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
        self, objective: Objective, found: Found, bounds: Sequence[Bound], ways: Sequence[Places]
    ) -> tuple[Found, str]:
        """A case that is least in one objective within bounds, and why it may not be."""
        name = objective.name if objective.name != "c" else "nonzero c"
        refuted: dict[Places, int] = {}  # less than that is refuted there
        skipped: dict[Places, int] = {}  # so is that, or it was not settled
        why: dict[Places, str] = {}
        bold = True

        def ask(way: Places, bound: int) -> Found | None:
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

    def _improved(self, found: Found, objective: Objective) -> Found:
        """A case at most as large, in the objectives up to this one too, of which there are bounds."""
        codes = self.made_smaller(found.codes)
        if codes == found.codes:
            return found
        measures = self.objectives[: self.objectives.index(objective) + 1]
        within = all(measure.value(codes) <= measure.value(found.codes) for measure in measures)
        return self.at_places(Found(codes, ())) if within else found

    def _first(self, found: Found, bounds: Sequence[Bound], ways: Sequence[Places]) -> tuple[Found, str]:
        """Of the cases within bounds, the one at the first places with the least codes; and why it may not be."""
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
            codes = _in_row(found.codes)

            def less(inputs: Inputs, _: Places, codes: Sequence[int] = codes) -> list[z3.BoolRef]:
                row = z3.Concat(*_in_row(inputs))
                value = 0
                for x, code in zip(_in_row(inputs), codes, strict=True):
                    value = value << x.size() | code
                return [z3.ULT(row, z3.BitVecVal(value, row.size()))]

            outcome, better = self.ask_within(found.active, name, [*bounds, less])
            if better is None:
                return found, outcome.why if outcome.verdict == "unknown" else ""
            found = better

    def _claims(self, found: Found, reasons: Sequence[str]) -> Iterator[str]:
        count = self.products(found)
        least = [not count, *(not objective.value(found.codes) for objective in self.objectives), False]
        open_ = [self.products_open(count), *reasons]
        for what, zero, reason in zip(self._measured(found), least, open_, strict=True):
            yield f"{what}: " + (f"best found ({reason})" if reason and not zero else "proved minimal")

    def nothing_proved(self, found: Found, why: str) -> tuple[str, ...]:
        """The claims for a case of which only that it was found is known."""
        return tuple(f"{what}: best found ({why})" for what in self._measured(found))

    def _measured(self, found: Found) -> Iterator[str]:
        """What is claimed to be least, in order."""
        count = self.products(found)
        yield f"{count} nonzero product{'s' if count != 1 else ''}"
        for objective in self.objectives:
            value = objective.value(found.codes)
            yield f"c {'≠' if value else '='} 0" if objective.name == "c" else f"{objective.name}: {value}"
        yield "codes, of those not alike the first"

    # ---- measures -------------------------------------------------------------------------------------------------

    def _c_is_nonzero(self, inputs: Inputs, _: Places) -> list[z3.BitVecRef]:
        zero = is_zero(inputs.c, self.spec.c_format)
        return [z3.If(zero, z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))]

    def _factors(self, inputs: Inputs, active: Places) -> list[tuple[z3.BitVecRef, Format]]:
        a, b = self.spec.a_format, self.spec.b_format
        return [pair for k in active for pair in ((inputs.a[k], a), (inputs.b[k], b))]

    def _operands(self, inputs: Inputs, active: Places) -> list[tuple[z3.BitVecRef, Format]]:
        """What `case_size` counts: the factors of products that may be nonzero, c and the scales."""
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


def multisets(sizes: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """How many to take of each of several kinds, `sizes` of them; first those that take most of the first kinds."""

    def fill(start: int, left: int) -> None:
        for i in range(start, len(sizes)):
            counts[i] = min(sizes[i], left)
            left -= counts[i]

    counts = [0] * len(sizes)
    if not 0 <= count <= sum(sizes):
        return
    fill(0, count)
    while True:
        yield tuple(counts)
        taken = room = 0  # of the kinds after the i-th
        for i in reversed(range(len(sizes))):
            if counts[i] and taken < room:
                break
            taken, room = taken + counts[i], room + sizes[i]
        else:
            return
        counts[i] -= 1
        fill(i + 1, taken + 1)


def _in_row(x: Inputs | Codes) -> list:  # type: ignore[type-arg]
    """The codes of a case in the order in which cases of one size are compared."""
    products = [code for pair in zip(x.a, x.b, strict=True) for code in pair]
    return [*products, x.c, *x.scale_a, *x.scale_b]


def is_zero_code(code: int, fmt: Format) -> bool:
    return fmt.has_zero and fmt.is_finite(code) and fmt.value(code) == 0
