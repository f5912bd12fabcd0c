"""Rows of emulated: words by the executable on NumPy's lanes, the unit's rows, fp32 sums by the processor."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.emulated import Emulated
from mmaformal.kernels import rows as units
from mmaformal.kernels.emulated import add_to, largest_fields, taken, words
from mmaformal.kernels.ieee import check_processor
from mmaformal.kernels.kernel import Codes
from mmaformal.kernels.rows.batch import Batch
from mmaformal.spec import DotAdd


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Emulated)
    check_processor()
    sides = (rows.a, p.unit.a_format, spec.a_format), (rows.b, p.unit.b_format, spec.b_format)
    tops = [largest_fields(codes, p) for codes, _, _ in sides] if p.common else []
    spread = (np.repeat(top, p.step_products, 1) for top in tops)
    a, b = (words(codes, p, fmt, next(spread, None), own) for codes, fmt, own in sides)
    total = rows.c.astype(np.uint32)
    for start in range(0, spec.k, p.step_products):
        for part in p.parts:
            shift: int | Codes = part.shift
            if tops:
                shift = taken(part, p, *(top[:, start // p.step_products] for top in tops))
            each = part.every or p.blocks
            for block in range(0, p.blocks, each):
                partial = np.zeros_like(total) if part.every else total
                for at in range(block, min(block + each, p.blocks)):
                    some = slice(start + at * p.unit.k, start + (at + 1) * p.unit.k)
                    for i, j in part.products:
                        partial = units.dot_add(p.unit, a[i][:, some], b[j][:, some], partial)
                total = add_to(total, partial, shift) if part.every else partial
    rows.d[:] = total
