"""The operands of a step, in both encodings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.proof.encoding_links import (
    OperandLinks,
    decode,
)
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.spec import DotAdd

_Operand = TypeVar("_Operand", covariant=True)


class _Step(Protocol[_Operand]):
    """The decoded operands of one step."""

    @property
    def a(self) -> Sequence[_Operand]: ...
    @property
    def b(self) -> Sequence[_Operand]: ...
    @property
    def c(self) -> _Operand: ...


def step_operands(
    argument: Argument,
    spec: DotAdd,
    codes: tuple[Sequence[Link], Sequence[Link], Link],
    products: Sequence[int],
    executable: _Step[executable_blocks.Operand],
    smt: _Step[smt_blocks.Operand],
) -> tuple[list[OperandLinks], list[OperandLinks], OperandLinks]:
    """The operands of one step: each product's a and b, and c."""
    a, b, c = codes
    x = [
        decode(argument, a[k], u, v, spec.a_format)
        for k, u, v in zip(products, executable.a, smt.a, strict=True)
    ]
    y = [
        decode(argument, b[k], u, v, spec.b_format)
        for k, u, v in zip(products, executable.b, smt.b, strict=True)
    ]
    return x, y, decode(argument, c, executable.c, smt.c, spec.c_format)
