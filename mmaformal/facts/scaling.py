"""Stages of algorithms that do not record them, for what doubling a and c does (`proof/doubled_stages`)."""

from __future__ import annotations

from typing import Protocol

import z3

from mmaformal.cases.interfaces import Adds, Judged
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded


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
