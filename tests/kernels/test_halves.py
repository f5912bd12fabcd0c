"""sfma in fp16 by float64's fused multiply-add: proved to be IEEE 754's, for all inputs, by Bitwuzla's floats.

Two obligations: a fused multiply-add of widened halves, rounded to 53 bits and then to fp16, is fp16's own; and
`to_half`, the very function, rounds a float64 to fp16.  It is run on terms, once for each way through its conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import z3
from support.symbolic import holds

from mmaformal.encodings.sfma.kernel import halves

HALF, DOUBLE = z3.FPSort(5, 11), z3.FPSort(11, 53)
RNE = z3.RNE()


class Path:
    """A way through a function: what its conditions are to be, what they were, and the terms it introduced."""

    def __init__(self, wanted: tuple[bool, ...]) -> None:
        self.wanted = iter(wanted)
        self.conditions: list[z3.BoolRef] = []

    def decide(self, condition: z3.BoolRef) -> bool:
        decided = next(self.wanted)
        self.conditions.append(condition if decided else z3.Not(condition))
        return decided

    def double(self, value: z3.FPRef) -> Double:
        """A float of which the bits are known, too."""
        bits = z3.BitVec(f"bits{len(self.conditions)}", 64)
        self.conditions.append(z3.fpBVToFP(bits, DOUBLE) == value)
        return Double(self, bits)


class Truth:
    def __init__(self, path: Path, term: z3.BoolRef) -> None:
        self.path, self.term = path, term

    def __bool__(self) -> bool:
        return self.path.decide(self.term)


class Word:
    """An int64."""

    def __init__(self, path: Path, term: z3.BitVecRef) -> None:
        self.path, self.term = path, term

    def _of(self, other: Word | np.int64) -> Any:
        return other.term if isinstance(other, Word) else z3.BitVecVal(int(other), 64)

    def __and__(self, other: Word | np.int64) -> Word:
        return Word(self.path, self.term & self._of(other))

    def __or__(self, other: Word | np.int64) -> Word:
        return Word(self.path, self.term | self._of(other))

    def __add__(self, other: Word | np.int64) -> Word:
        return Word(self.path, self.term + self._of(other))

    def __gt__(self, other: np.int64) -> Truth:
        return Truth(self.path, self.term > self._of(other))

    def __lt__(self, other: np.int64) -> Truth:
        return Truth(self.path, self.term < self._of(other))


class Double:
    """A float64 with its bits."""

    def __init__(self, path: Path, bits: z3.BitVecRef) -> None:
        self.path, self.bits = path, bits
        self.value = z3.fpBVToFP(bits, DOUBLE)

    def __add__(self, other: Double) -> Double:
        return self.path.double(z3.fpAdd(RNE, self.value, other.value))

    def __sub__(self, other: Double) -> Double:
        return self.path.double(z3.fpSub(RNE, self.value, other.value))

    def __abs__(self) -> Double:
        return Double(self.path, self.bits & z3.BitVecVal((1 << 63) - 1, 64))

    def __gt__(self, other: float) -> Truth:
        return Truth(self.path, z3.fpGT(self.value, z3.FPVal(other, DOUBLE)))


def ways(x: z3.BitVecRef, function: Callable[[Any], Any]) -> Iterator[tuple[Path, Double]]:
    """Each way through a function of a float64, and what it returns; all ways, as some conditions are not asked."""
    seen = set()
    for wanted in product((True, False), repeat=8):
        path = Path(wanted)
        result = function(Double(path, x))
        told = tuple(each.sexpr() for each in path.conditions)
        if told not in seen:
            seen.add(told)
            yield path, result


def rounds_to_half(function: Callable[[Any], Any]) -> z3.BoolRef:
    """The claim that a function of a float64 that is no NaN gives the number of fp16 nearest to it, as a float64."""
    x = z3.BitVec("x", 64)
    number = z3.fpBVToFP(x, DOUBLE)
    wanted = z3.fpToFP(RNE, z3.fpToFP(RNE, number, HALF), DOUBLE)
    found = [z3.Implies(z3.And(path.conditions), d.value == wanted) for path, d in ways(x, function)]
    return z3.Implies(z3.Not(z3.fpIsNaN(number)), z3.And(found))


@pytest.fixture
def on_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    def bits(x: Double | float) -> Word:
        if isinstance(x, Double):
            return Word(x.path, x.bits)
        return Word(paths[-1], z3.BitVecVal(int(np.float64(x).view(np.int64)), 64))

    def number(x: Word | np.int64) -> Double:
        return Double(paths[-1], x.term if isinstance(x, Word) else z3.BitVecVal(int(x), 64))

    paths: list[Path] = []
    made = Path.__init__
    monkeypatch.setattr(Path, "__init__", lambda self, wanted: (paths.append(self), made(self, wanted))[1])
    monkeypatch.setattr(halves, "double_bits", bits)
    monkeypatch.setattr(halves, "double_of", number)


def test_to_half(on_terms: None) -> None:
    assert holds(rounds_to_half(halves.to_half.py_func))


@pytest.mark.parametrize(
    ("name", "broken"),
    [("_LEAST", 1023 - 15 << 52), ("_PLACES", (43 << 52) | (1 << 51)), ("_LARGEST", 65536.0)],
)
def test_another_constant_is_seen(
    name: str, broken: float, on_terms: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halves, name, np.int64(broken) if isinstance(broken, int) else broken)
    assert not holds(rounds_to_half(halves.to_half.py_func))


def rounded_twice(significand: int) -> z3.BoolRef:
    """The claim that an fma of halves in a wider format, rounded to fp16, is fp16's."""
    a, b, c = (z3.Const(name, HALF) for name in "abc")
    wide = z3.FPSort(11, significand)
    once = z3.fpFMA(RNE, a, b, c)
    twice = z3.fpToFP(RNE, z3.fpFMA(RNE, *(z3.fpToFP(RNE, x, wide) for x in (a, b, c))), HALF)
    return once == twice


def test_rounding_twice_is_rounding_once() -> None:
    assert holds(rounded_twice(53))


def test_fewer_bits_are_seen() -> None:
    assert not holds(rounded_twice(22))
