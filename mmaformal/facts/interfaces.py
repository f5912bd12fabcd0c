"""What steps of several algorithms have in common, in the SMT encoding: for facts that are about no more of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import z3

from mmaformal.encodings.smt.blocks import Operand, Rounded, Special, Term


class Judged(Protocol):
    """A step whose special values decide its result, where there are some."""

    @property
    def special(self) -> Special: ...
    @property
    def result(self) -> z3.BitVecRef: ...


class RoundsOnce(Judged, Protocol):
    """A step that adds c, and rounds one sum."""

    @property
    def c(self) -> Operand: ...
    @property
    def rounded(self) -> Rounded: ...


class Adds(Protocol):
    """A step of products of decoded operands, and c."""

    @property
    def a(self) -> Sequence[Operand]: ...
    @property
    def b(self) -> Sequence[Operand]: ...
    @property
    def c(self) -> Operand: ...
    @property
    def addend(self) -> Term: ...
