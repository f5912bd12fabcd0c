"""The common interface of several algorithms' steps in the SMT encoding, for what is about no more of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import z3

from mmaformal.encodings.smt.blocks import Operand, Rounded, Special, Term


class AnyStep(Protocol):
    """A step of whichever algorithm."""

    @property
    def result(self) -> z3.BitVecRef: ...


class Judged(AnyStep, Protocol):
    """A step whose special values decide its result, where there are some."""

    @property
    def special(self) -> Special: ...


class Rounds(Judged, Protocol):
    """A step, or an addition, that rounds one sum last."""

    @property
    def rounded(self) -> Rounded: ...


class RoundsOnce(Rounds, Protocol):
    """A step that adds c, and rounds one sum."""

    @property
    def c(self) -> Operand: ...


class AddsC(AnyStep, Protocol):
    """A step that adds c, decoded."""

    @property
    def c(self) -> Operand: ...
    @property
    def addend(self) -> Term: ...


class Decodes(AnyStep, Protocol):
    """A step of decoded factors."""

    @property
    def a(self) -> Sequence[Operand]: ...
    @property
    def b(self) -> Sequence[Operand]: ...


class Adds(AddsC, Decodes, Protocol):
    """A step of products of decoded operands, and c."""


class Multiplies(Decodes, Protocol):
    """A step of exact products of decoded operands."""

    @property
    def products(self) -> Sequence[Term]: ...
