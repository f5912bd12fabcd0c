"""The stages of dpa_e9s12, for what doubling a and c does (`proof/doubled_stages`)."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.dpa_e9s12.smt import DpaE9s12Step
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.encodings.smt.stages import Aligned, Code
from mmaformal.facts.scaling import begun
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded, Stage


def stages_of(spec: DotAdd, trace: Trace[DpaE9s12Step], c: z3.BitVecRef) -> Sequence[Stage]:
    """The stages of a run; the sum of products has no place of its own for each, so it is one of signed numbers."""
    record, rho = Recorded(), spec.parameters.rho  # type: ignore[attr-defined]
    for step in trace.steps:
        begun(record, spec, step, c)
        each = len(step.products) // len(step.a)
        for i, x in enumerate(step.products):
            record.made("multiply", [step.a[i // each], step.b[i // each]], x)
        record.made("addend", [step.c], step.addend)
        record.made("largest", step.products, step.e_max)
        total = Aligned(step.placed, step.partials[-1])
        record.made("accumulate", [*step.products, step.e_max], total)
        record.made("as_term", [total, step.e_max], step.term)
        record.made("sticky_sum", [step.term, step.addend], step.sum)
        code = Code(step.sum.total, step.rounded, step.result)
        record.made("round_sum", [step.sum, *step.products, step.addend, step.special], code, rho=rho)
        c = step.result
    return record
