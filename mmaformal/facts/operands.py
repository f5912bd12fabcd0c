"""The operands of a step that does not record its stages, in both encodings and as stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import z3

from mmaformal.cases.interfaces import Adds, Judged
from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.proof.encoding_links import (
    OperandLinks,
    link_operand,
)
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded

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
        link_operand(argument, a[k], u, v, spec.a_format)
        for k, u, v in zip(products, executable.a, smt.a, strict=True)
    ]
    y = [
        link_operand(argument, b[k], u, v, spec.b_format)
        for k, u, v in zip(products, executable.b, smt.b, strict=True)
    ]
    return x, y, link_operand(argument, c, executable.c, smt.c, spec.c_format)


class Begins(Adds, Judged, Protocol):
    """A step that decodes its operands, and tells their special values apart."""


def begun(record: Recorded, spec: DotAdd, step: Begins, c: z3.BitVecRef) -> None:
    """Records that a step's operands are decoded, that of c from its code, and classified."""
    for operands, fmt in ((step.a, spec.a_format), (step.b, spec.b_format)):
        for x in operands:
            record.made("decode", [x], x, fmt=fmt)
    record.made("decode", [c], step.c, fmt=spec.c_format)
    factors = [x for pair in zip(step.a, step.b, strict=True) for x in pair]
    record.made("classify", [*factors, step.c], step.special)
