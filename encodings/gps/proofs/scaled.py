"""The stages of gps, for what doubling a and c does (`proof/doubled_stages`)."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.gps.smt import GpsStep, flush, flush_result
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.formats import fp32
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded, Stage


def stages_of(spec: DotAdd, trace: Trace[GpsStep], c: z3.BitVecRef) -> Sequence[Stage]:
    """The stages of a run."""
    record = Recorded()
    c = record.made("flush", [c], flush(c, keep_sign=False), fmt=fp32)
    for step in trace.steps:
        level = []
        for x, y, product in zip(step.a, step.b, step.products, strict=True):
            for operand, fmt in ((x, spec.a_format), (y, spec.b_format)):
                record.made("decode", [operand], operand, fmt=fmt)
            level.append(record.made("product", [x, y], product, fmt=fp32))
        sums = iter(step.sums)
        while len(level) > 1:
            pairs = [
                record.made("add", pair, next(sums), rho=IEEE_FP32)
                for pair in zip(level[::2], level[1::2], strict=True)
            ]
            level = [record.made("flush", [x.result], flush_result(x.result), fmt=fp32) for x in pairs]
        record.made("add", [c, *level], step.addition, rho=IEEE_FP32)
        c = record.made("flush", [step.addition.result], step.result, fmt=fp32)
    return record
