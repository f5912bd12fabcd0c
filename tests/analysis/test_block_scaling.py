"""The cost of block scales: the worst of all, reached, and exceeded by nothing that is quantised."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mmaformal import blackwell
from mmaformal.analysis.block_scaling import worst_in_block
from mmaformal.formats import FORMATS, e2m1, fp32
from mmaformal.instruction import Instruction
from mmaformal.kernels.kernel import CodeArray
from mmaformal.quantise import Quantised, quantise

SCALED = [
    blackwell[name]
    for name in (
        "UTCQMMA.SF.F32.E4M3.E4M3.E8",
        "UTCQMMA.SF.F32.E5M2.E5M2.E8",
        "UTCQMMA.SF.F32.E2M3.E2M3.E8",
        "UTCQMMA.SF.F32.E3M2.E3M2.E8",
        "UTCOMMA.F32.E2M1.E2M1.E8",
        "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X",
    )
]


def numbers(x: Quantised, i: Instruction) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    def values(codes: CodeArray, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        fmt = i.format_of(name)
        table = [float(fmt.value(c)) if fmt.is_finite(c) else np.nan for c in range(fmt.codes)]
        return np.array(table)[codes]

    assert x.scales is not None
    each = np.repeat(values(x.scales, "scale_a"), i.spec.scale_block, axis=1)
    factor = 1.0 if x.factor is None else np.asarray(x.factor)[:, None]
    return values(x.codes, "a") * each * factor


def relative(rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]], i: Instruction) -> float:
    q = numbers(quantise(rows, i, "a"), i)
    blocks = np.abs(rows.astype(np.float64)).reshape(len(rows), -1, i.spec.scale_block).max(axis=2)
    return float((np.abs(rows - q) / np.repeat(blocks, i.spec.scale_block, axis=1)).max())


@pytest.mark.parametrize("i", SCALED, ids=lambda i: i.name)
def test_nothing_is_changed_by_more(i: Instruction) -> None:
    assert i.spec.scale_format is not None
    worst = worst_in_block(i.a_format, i.spec.scale_format)
    rng = np.random.default_rng(0)
    rows = (rng.uniform(0.5, 1, (2000, 64)) * 2.0 ** rng.integers(-3, 3, (2000, 1))).astype(np.float32)
    found = relative(rows, i)
    assert 0.8 * worst.error < found <= worst.error * (1 + Fraction(1, 1 << 20))


def test_the_worst_of_mx_and_nvfp4() -> None:
    e8, ue4m3 = FORMATS["ue8m0"], FORMATS["ue4m3"]
    assert worst_in_block(e2m1, e8).error == Fraction(1, 4)  # just below 8, of which 6 is left
    assert worst_in_block(e2m1, ue4m3).error == Fraction(3, 17)  # 5 beside 17/3
    assert worst_in_block(FORMATS["e4m3"], e8).error == Fraction(1, 8)
    assert worst_in_block(FORMATS["e2m3"], e8).error == Fraction(1, 16)
    with pytest.raises(ValueError, match="no rule"):
        worst_in_block(e2m1, fp32)
