"""Context for reading a program: what is cut, what is undefined, what a condition says, and a solver for facts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import z3

from mmaformal.cases.evaluate import evaluate_all
from mmaformal.hardware.rebuild import Rebuilt, constants_in, is_value
from mmaformal.hardware.tracing.whole import FormKey, keep
from mmaformal.solver.asking import Asker

FormRanges = Mapping[FormKey, tuple[int | None, int | None]]

#: Rows on which a fact is guessed, and seconds that proving one may take.
_ROWS, _PATIENCE = 96, 20.0
#: A fact is about terms of at most so many words that may be anything.
_FEW = 3
#: A term of more nodes than this is cut where it is decoded.
_LARGE = 24


@dataclass(frozen=True)
class Meaning:
    """The ranges of numbers that a condition implies where it holds, and where it does not."""

    true: FormRanges = field(default_factory=dict)
    false: FormRanges = field(default_factory=dict)


@dataclass
class ReadingState:
    """One reading of a program."""

    asker: Asker | None = None
    cuts: dict[str, z3.ExprRef] = field(default_factory=dict)  #: fresh constants, and what they stand for
    undefined: dict[str, z3.BitVecRef] = field(default_factory=dict)
    meanings: dict[int, tuple[z3.BoolRef, Meaning]] = field(default_factory=dict)
    flags: dict[str, z3.BoolRef] = field(default_factory=dict)  #: that a code is an infinity, or a NaN
    facts: int = 0  #: facts that were proved
    modules: set[str] = field(default_factory=set)  #: of the program
    _fresh: dict[int, tuple[z3.BitVecRef, z3.BitVecRef]] = field(default_factory=dict)
    _flag_of: dict[int, z3.BoolRef] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _settled: dict[int, tuple[z3.ExprRef, object]] = field(default_factory=dict)

    def fresh(self, name: str, term: z3.BitVecRef) -> z3.BitVecRef:
        """A constant in the place of a term, the same one each time."""
        if term.get_id() in self._fresh:
            return self._fresh[term.get_id()][1]
        constant = z3.BitVec(f"{name} {next(self._numbers)}", term.size())
        self.cuts[str(constant.decl().name())] = term
        self._fresh[term.get_id()] = (term, constant)
        return constant

    def flag(self, name: str, claim: z3.BoolRef) -> z3.BoolRef:
        """A constant in the place of a claim that a code is an infinity, or a NaN."""
        if is_value(claim):
            return claim
        if claim.get_id() in self._flag_of:
            return self._flag_of[claim.get_id()]
        constant = z3.Bool(f"{name} {next(self._numbers)}")
        key = str(constant.decl().name())
        self.cuts[key] = self.flags[key] = claim
        self._flag_of[claim.get_id()] = constant
        return constant

    def unknown(self, name: str, bits: int) -> z3.BitVecRef:
        """A constant that may be anything."""
        constant = z3.BitVec(f"{name}, use {next(self._numbers)}", bits)
        self.undefined[f"{constant.decl().name()} "] = constant
        return constant

    def whole(self, term: z3.BitVecRef) -> z3.BitVecRef:
        """The term with what was cut put back."""
        while names := [name for name in constants_in([term]) if name in self.cuts]:
            term = Rebuilt({name: self.cuts[name] for name in names})(term)
        return term

    def cut(self, code: z3.BitVecRef) -> z3.BitVecRef:
        """A code as a constant of its own where it is made of much, so that facts of it are about every code."""
        return code if _small(code) else self.fresh("code", code)

    # ---- facts ----

    def constant_where(self, term: z3.BitVecRef, care: z3.BoolRef) -> int | None:
        """The one value, unsigned, that a term is proved to have wherever a claim holds; None if there is none."""
        both_of = z3.If(care, term, term + 1)
        key = both_of.get_id()
        if key not in self._settled:
            self._settled[key] = (both_of, self._constant_where(term, care))
        found = self._settled[key][1]
        assert found is None or isinstance(found, int)
        return found

    def _constant_where(self, term: z3.BitVecRef, care: z3.BoolRef) -> int | None:
        bit = z3.If(care, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        constants = constants_in([term, bit])
        flags = [self.flags[name] for name in constants if name in self.flags]
        meant = {name: x for name, x in constants.items() if name not in self.flags} | constants_in(flags)
        if len(meant) <= _FEW:  # else the flags of a code that is made of much may be anything
            expand = Rebuilt(self.flags)
            term, bit, constants = expand(term), expand(bit), meant
        words = [x for x in constants.values() if isinstance(x, z3.BitVecRef)]
        if not words or len(words) > _FEW or self.asker is None:
            return None
        found = evaluate_all([term, bit], drawn_values(constants))
        rows = [np.broadcast_to(found[x.get_id()], _ROWS) for x in (term, bit)]
        seen = {int(x) for x, cared in zip(*rows, strict=True) if cared}
        if len(seen) != 1:
            return None
        (value,) = seen
        return value if self.proved("an exponent is constant", [bit == 1], term == value) else None

    def proved(self, what: str, given: Sequence[z3.BoolRef], claim: z3.BoolRef) -> bool:
        """Whether a claim is proved of what is read."""
        if self.asker is None:
            return False
        said = f"reading the program: {what}"
        outcome = self.asker.satisfy("read", said, [*given, z3.Not(claim)], limit=_PATIENCE, whole=False)
        self.facts += outcome.verdict == "unsat"
        return outcome.verdict == "unsat"


def drawn_values(constants: Mapping[str, z3.ExprRef]) -> dict[str, np.ndarray]:
    """Values of constants by name: zeros, ones, single bits, random ones."""
    random = np.random.default_rng(5)
    found = {}
    for name, constant in constants.items():
        if isinstance(constant, z3.BoolRef):
            found[name] = random.integers(0, 2, _ROWS).astype(bool)
            continue
        bits = constant.size()
        column = [0, (1 << bits) - 1, 1, 1 << (bits - 1)]
        while len(column) < _ROWS:
            low = int(random.integers(0, bits))
            word = int.from_bytes(random.bytes(8), "little") % (1 << bits)
            column += [word, word >> low, word & ~((1 << low) - 1)]
        found[name] = np.array(column[:_ROWS], object)[random.permutation(_ROWS)]
    return found


def _small(term: z3.ExprRef) -> bool:
    seen: set[int] = set()
    stack = [term]
    while stack:
        x = stack.pop()
        if x.get_id() not in seen:
            seen.add(x.get_id())
            stack += x.children()
            if len(seen) > _LARGE:
                return False
    return True


_STATE: ContextVar[ReadingState | None] = ContextVar("reading", default=None)


def state() -> ReadingState:
    """The reading that is under way."""
    found = _STATE.get()
    assert found is not None
    return found


def is_reading() -> bool:
    """Whether one is."""
    return _STATE.get() is not None


@contextlib.contextmanager
def reading(new: ReadingState) -> Iterator[ReadingState]:
    """Let a reading be under way."""
    token = _STATE.set(new)
    try:
        yield new
    finally:
        _STATE.reset(token)


# ---- claims ----

TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)


def known(claim: z3.BoolRef) -> bool | None:
    """Whether a claim is true or false, where that is seen."""
    return True if z3.is_true(claim) else False if z3.is_false(claim) else None


def denied(claim: z3.BoolRef) -> z3.BoolRef:
    """The opposite of a claim."""
    if (value := known(claim)) is not None:
        return FALSE if value else TRUE
    made = keep(claim.arg(0) if z3.is_not(claim) else z3.Not(claim))
    meaning = meaning_of(claim)
    if meaning is not None:
        means(made, Meaning(meaning.false, meaning.true))
    return made


def all_hold(*claims: z3.BoolRef) -> z3.BoolRef:
    """The conjunction of claims."""
    rest = _distinct([x for x in claims if not z3.is_true(x)])
    if any(z3.is_false(x) for x in rest) or _opposite(rest):
        return FALSE
    if len(rest) < 2:
        return rest[0] if rest else TRUE
    made = keep(z3.And(rest))
    means(made, Meaning(_joined([m.true for x in rest if (m := meaning_of(x))]), {}))
    return made


def any_hold(*claims: z3.BoolRef) -> z3.BoolRef:
    """The disjunction of claims."""
    rest = _distinct([x for x in claims if not z3.is_false(x)])
    if any(z3.is_true(x) for x in rest) or _opposite(rest):
        return TRUE
    if len(rest) < 2:
        return rest[0] if rest else FALSE
    made = keep(z3.Or(rest))
    means(made, Meaning({}, _joined([m.false for x in rest if (m := meaning_of(x))])))
    return made


def _distinct(claims: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
    return list({x.get_id(): x for x in claims}.values())


def _opposite(claims: Sequence[z3.BoolRef]) -> bool:
    """Whether one of some claims is the opposite of another."""
    ids = {x.get_id() for x in claims}
    return any(z3.is_not(x) and x.arg(0).get_id() in ids for x in claims)


def _joined(every: Sequence[FormRanges]) -> FormRanges:
    found: dict[FormKey, tuple[int | None, int | None]] = {}
    for each in every:
        for key, (low, high) in each.items():
            least, most = found.get(key, (None, None))
            low = least if low is None else low if least is None else max(low, least)
            high = most if high is None else high if most is None else min(high, most)
            found[key] = (low, high)
    return found


def means(claim: z3.BoolRef, meaning: Meaning) -> None:
    """Note what a condition says of numbers."""
    if meaning.true or meaning.false:
        state().meanings.setdefault(claim.get_id(), (claim, meaning))


def meaning_of(claim: z3.BoolRef) -> Meaning | None:
    """Return what a condition says of numbers; None if it is not known to say something."""
    found = state().meanings.get(claim.get_id())
    return None if found is None else found[1]
