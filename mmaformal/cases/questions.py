"""Questions about cases with few nonzero products: which inputs there are, which stand for others, how one is asked.

One case is asked about for all that are alike, as far as `Symmetries` go, each of which was proved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.cases.codes import (
    is_finite,
    magnitude_field,
)
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.symmetries import Symmetries, zero_of_sign
from mmaformal.checked import Progress
from mmaformal.display import counted
from mmaformal.formats import Format
from mmaformal.solver.asking import Asker, Settled
from mmaformal.spec import DotAdd
from mmaformal.witness import product_is_zero

#: Cases of a solver that show nothing before a question is given up.
_LEFT_OUT = 12

Places = tuple[int, ...]  #: of the products that may be nonzero
SizeBound = Callable[[Inputs, Places], list[z3.BoolRef]]  #: a bound on the size of a case


@dataclass(frozen=True)
class FoundCase:
    """A case, and the places whose products may be nonzero."""

    codes: Codes
    active: Places
    seen: tuple[int, ...] = ()  #: what the SMT encoding says the results are


class Questions(ABC):
    """Questions about the cases of one model's inputs, their nonzero products at few places."""

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
        self._licences: Symmetries | None = None

    # ---- what they are about -------------------------------------------------------------------------------------

    @abstractmethod
    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        """Assertions that a case shows what is looked for; and the results."""

    @abstractmethod
    def find_licences(self) -> Symmetries:
        """Which cases stand for others."""

    #: what a refuted question says
    nothing = "no case"
    #: whether those words tell all that is asserted of inputs and results, but where nonzero products are
    tells_all = False
    #: whether storage bits that the model ignores may be what shows it
    ignored_bits = False

    @property
    def left(self) -> float:
        """Seconds left for the search."""
        return self.asker.left

    def is_shown(self, codes: Codes) -> bool:
        """Whether a solver's case shows what is looked for: where the assertions say less, this is the rest."""
        return True

    def note(self, found: FoundCase) -> None:  # noqa: B027 - not every search keeps it
        """A case was found."""

    @property
    def symmetries(self) -> Symmetries:
        """Which cases stand for others; proved at the first use, unless a search has them before (`know`)."""
        if self._licences is None:
            self.progress(f"{self.asker.elapsed:5.1f} s  proving which cases are alike")
            self.know(self.find_licences())
        assert self._licences is not None
        return self._licences

    def know(self, symmetries: Symmetries) -> None:
        """Takes what was proved of which cases stand for others."""
        self._licences = symmetries

    # ---- inputs ---------------------------------------------------------------------------------------------------

    def _pinned_nonzero(self, k: int) -> bool:
        """Whether what is fixed of a product keeps it from being zero."""
        a, b = self.pins.get(f"a{k}", 0), self.pins.get(f"b{k}", 0)
        return not product_is_zero(a, self.spec.a_format, b, self.spec.b_format)

    def _free(self, k: int) -> bool:
        return f"a{k}" not in self.pins and f"b{k}" not in self.pins

    def inputs(self, active: Places | None) -> tuple[Inputs, list[z3.BoolRef]]:
        """Inputs whose products outside `active` are zero, and what is to be asserted of those; None: all inputs."""
        spec, symmetries = self.spec, self.symmetries if active is not None else None
        positive = [f"b{k}" for k in active or () if symmetries and symmetries.signs and self._free(k)]
        inputs = symbolic_inputs(spec, self.pins, positive=positive, bare=self.bare and active is not None)
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
        zeros = self.symmetries.zeros
        if pins == [None, None] and zeros != "any":
            signed = zeros == "signed"
            on_a = signed and x.has_minus_zero
            return (
                zero_of_sign(sign if on_a else plus, x),
                zero_of_sign(sign if signed and not on_a else plus, y),
                [],
            )
        zero_a, zero_b = self._zero(sign, x, f"a{k}"), self._zero(sign, y, f"b{k}")
        if pins == [None, None]:
            if self.symmetries.exchange:
                return a, zero_b, [is_finite(a, x)]
            on_a = z3.BitVec(f"on{k}", 1) == 1
            chosen = z3.If(on_a, zero_a, a), z3.If(on_a, b, zero_b)
            return *chosen, [is_finite(chosen[0], x), is_finite(chosen[1], y)]
        if pins[1] is None:
            given_zero = pins[0] is not None and is_zero_code(pins[0], x)
            # ±0 for what is free, unless it takes a number to have the sign of each of the products that are alike.
            enough = not given_zero or (zeros == "signed" and y.has_minus_zero) or zeros == "plus"
            return (a, zero_b, []) if enough else (a, b, [is_finite(b, y)])
        if pins[0] is None:
            given_zero = is_zero_code(pins[1], y)
            enough = not given_zero or (zeros == "signed" and x.has_minus_zero) or zeros == "plus"
            return (zero_a, b, []) if enough else (a, b, [is_finite(a, x)])
        return a, b, []

    def _zero(self, sign: z3.BitVecRef, fmt: Format, name: str) -> z3.BitVecRef:
        """Return a zero of a sign, whose bits that the model ignores are free where they may be what shows the case."""
        zero, low = zero_of_sign(sign, fmt), fmt.ignored_low_bits
        if not (self.ignored_bits and low):
            return zero
        return z3.Concat(z3.Extract(fmt.storage_bits - 1, low, zero), z3.BitVec(f"ignored_{name}", low))

    def _in_order(self, inputs: Inputs, active: Iterable[int]) -> list[z3.BoolRef]:
        """|b| ≤ |a|, where b·a may stand for a·b."""
        if not self.symmetries.exchange:
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
        bounds: Sequence[SizeBound] = (),
        limit: float | None = None,
        *,
        whole: bool,
    ) -> tuple[Settled, FoundCase | None]:
        """Ask for a case that shows it, its nonzero products only at `active`, within bounds.

        whole: whether the statement tells all that is asserted (`Asker.satisfy`).
        """
        self.progress(f"{self.asker.elapsed:5.1f} s  {name}")
        if self.left <= 0:
            return Settled("unknown", "", "", 0.0, why="the time given was used up"), None
        inputs, asserted = self.inputs(active)
        shown, results = self.shows(inputs, active)
        assertions = [*shown, *asserted]
        if active is not None:
            assertions += self._in_order(inputs, active)
            assertions += [term for bound in bounds for term in bound(inputs, active)]
            statement += self._up_to()
        limit = self.left if limit is None else min(limit, self.left)
        until, left_out = self.asker.elapsed + limit, list[z3.BoolRef]()
        while True:
            said = (
                f"{statement}, but for the factors of {counted(len(left_out), 'case')}"
                if left_out
                else statement
            )
            asserted = [*assertions, *left_out]
            outcome = self.asker.satisfy(
                name, said, asserted, inputs.constants(), limit, whole=whole and not left_out
            )
            if outcome.verdict != "sat":
                return (_but_for(outcome, len(left_out)) if left_out else outcome), None
            codes = inputs.codes(self.spec, outcome.model, ignored=self.ignored_bits)
            if self.is_shown(codes):
                break
            left_out.append(_other_factors(inputs, outcome.model))
            limit = until - self.asker.elapsed
            if limit <= 0 or len(left_out) > _LEFT_OUT:
                return _but_for(outcome, len(left_out)), None
        values = [
            (constant, z3.BitVecVal(outcome.model[name], bits))
            for name, bits in inputs.constants().items()
            for constant in [z3.BitVec(name, bits)]
        ]
        seen = tuple(z3.simplify(z3.substitute(r, *values)).as_long() for r in results)
        found = FoundCase(codes, active if active is not None else tuple(range(self.spec.k)), seen)
        self.note(found)
        return outcome, found

    def _up_to(self) -> str:
        """Say what a question with few products leaves out, by laws that were proved; empty if it is nothing."""
        symmetries = self.symmetries
        alike = [
            *(["the order of products of a class"] if len(set(symmetries.classes)) < self.spec.k else []),
            *(["that of two factors"] if symmetries.exchange else []),
            *(["the signs of both"] if symmetries.signs else []),
            *(
                ["which zero products there are"]
                if symmetries.zeros != "any" and not symmetries.given
                else []
            ),
        ]
        return f" (up to {', '.join(alike)}: laws that were proved)" if alike else ""

    def ask_at(self, active: Places, count: int, limit: float) -> tuple[Settled, FoundCase | None]:
        """Ask for a case of `count` nonzero products, which are `active`."""
        places = ", ".join(map(str, active)) or "none"
        name = f"{counted(count, 'product')} (at {places})"
        said = f"{self.nothing} with nonzero products only at {places}"
        return self.ask(active, name, said, limit=limit, whole=self.tells_all)

    def ask_within(
        self, active: Places, name: str, bounds: Sequence[SizeBound], limit: float | None = None
    ) -> tuple[Settled, FoundCase | None]:
        """Ask for a case within bounds, of which the words tell the last at most."""
        places = ", ".join(map(str, active)) or "none"
        said = f"{self.nothing} with {name}, nonzero products only at {places}"
        return self.ask(active, name, said, bounds, limit, whole=False)

    # ---- few products ---------------------------------------------------------------------------------------------

    def ways(self, count: int) -> Iterator[Places]:
        """The ways to place `count` nonzero products, one of those that are alike."""
        classes = self.symmetries.classes
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


def _other_factors(inputs: Inputs, model: Mapping[str, int]) -> z3.BoolRef:
    """Return the assertion that a case has other factors than a model, or another c where those are given."""
    constants = inputs.constants()
    names = [name for name in constants if not name.startswith("c")] or list(constants)
    return z3.Or([z3.BitVec(name, constants[name]) != model[name] for name in names])


def _but_for(outcome: Settled, count: int) -> Settled:
    """Return what is known where cases that a solver gave show nothing, and those of the same factors were left out."""
    why = f"{counted(count, 'case')} of a solver did not show it; these factors were left out"
    return replace(outcome, verdict="unknown", why=why, obligation=None)


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


def is_zero_code(code: int, fmt: Format) -> bool:
    return fmt.has_zero and fmt.is_finite(code) and fmt.value(code) == 0
