"""A step of gdfs, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import executable as gdfs
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    cut_row,
    ending_rows,
    is_idle,
    scaled,
    special_rows,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[gdfs.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Gdfs)
    F, G = p.F, p.G
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        special = special_rows(step.special, step.result, spec.d_format)
        zero = not any(g.significand for g in step.groups)
        idle = is_idle(zero, (*step.scale_a, *step.scale_b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        scale = spec.scale_format
        assert scale is not None
        bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2 * scale.fraction_bits
        unit = step.e_max - F
        rows = [Row("align", "largest exponent", str(step.e_max))]
        for i, (group, aligned) in enumerate(zip(step.groups, step.aligned, strict=True)):
            if group.significand:
                first = (number * len(step.groups) + i) * G
                label = f"group {first}…{first + G - 1}"
                rows.append(cut_row("align", label, scaled(aligned, unit), term_value(group, bits), unit))
        if step.addend.significand:
            exact = term_value(step.addend, spec.c_format.fraction_bits)
            rows.append(cut_row("align", "c", scaled(step.aligned_c, unit), exact, unit))
        steps.append(ToldStep(rows + ending_rows(scaled(step.total, unit), step.result, spec.d_format), idle))
    return steps
