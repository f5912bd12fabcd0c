"""Error analysis of narrow-range formats: what is lost in a product of matrices, by a model, by a bound, by a run.

    from mmaformal.studies.narrow_range import Model1
    model = Model1.of("e4m3", "fp16", subnormals=False)
    print(model.matmul(A, B, words=2).C)

The model, its scaling and its bounds are those of T. Mary and M. Mikaitis, *Error analysis of matrix multiplication
with narrow range floating-point arithmetic* (2024, hal-04671474), "the paper" in this folder; numbers in parentheses,
and letters, are its own.
"""

from __future__ import annotations

from mmaformal.analysis.arithmetic import DEVICES, TABLE_2_1, FloatArithmetic
from mmaformal.studies.narrow_range.model import Model1, ScaledProduct

__all__ = ["DEVICES", "TABLE_2_1", "FloatArithmetic", "Model1", "ScaledProduct"]
