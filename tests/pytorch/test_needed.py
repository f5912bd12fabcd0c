"""The fractional bits that products need, counted: as many are enough, and where it is tight one fewer is not."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.meant import instruction_meant
from mmaformal.instruction import Instruction
from mmaformal.torch import Needed, arithmetic

FP4 = "OMMA.SF.16864.F32.E2M1.E2M1"
WIDE = {
    "fp8": instruction_meant("datapath fda(k=16,frac_bits=54,a=e4m3)"),
    "fp16": instruction_meant("datapath fda(k=4,frac_bits=54,a=fp16)"),
    "mxfp8": instruction_meant("datapath fda(k=32,frac_bits=50,a=e4m3,scale=ue8m0,block=32)"),
    "nvfp4": ARCHITECTURES["rtx_blackwell"][f"{FP4}.UE4M3.4X"].replace(F=40),
    "mxfp4": ARCHITECTURES["rtx_blackwell"][f"{FP4}.E8"].replace(F=40),
}


def product(i: Instruction, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, int]:
    with arithmetic(i) as ran:
        ran.report.watch = needed = Needed(i)
        d = a @ b
    return d, needed.bits


def numbers(rng: np.random.Generator, shape: tuple[int, ...], spread: int) -> torch.Tensor:
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, 1, shape)
    return torch.from_numpy(x.astype(np.float32))


@pytest.mark.parametrize("name", WIDE)
def test_so_many_bits_are_enough(name: str) -> None:
    rng, i = np.random.default_rng(1), WIDE[name]
    found = set()
    for spread in (0, 2, 5):
        for shapes in (((9, 70), (70, 11)), ((3, 5, 40), (3, 40, 7))):
            a, b = (numbers(rng, shape, spread) for shape in shapes)
            wide, bits = product(i, a, b)
            assert 0 < bits <= i.parameters.sum_places
            for width in (bits, bits + 1):
                narrow, again = product(i.replace(F=width), a, b)
                assert torch.equal(narrow, wide)
                assert again == bits
            found.add(bits)
    assert len(found) > 1


def test_one_fewer_is_not_where_it_is_tight() -> None:
    """2^6 · 2^6 beside 2^-6 · 2^-6, of which one is taken away again."""
    i = WIDE["fp8"]
    a = torch.tensor([[64.0, 2.0**-6, -64.0, 0.0]])
    b = torch.tensor([[64.0, 2.0**-6, 64.0, 0.0]]).T
    with arithmetic(i, scaling="none") as ran:
        ran.report.watch = needed = Needed(i)
        assert float(a @ b) == 2.0**-12
    assert needed.bits == 24 + 1  # Σ|a·b| is 2^13, which c might have come to
    with arithmetic(i.replace(F=24), scaling="none"):
        assert float(a @ b) == 2.0**-12
    with arithmetic(i.replace(F=23), scaling="none"):
        assert float(a @ b) == 0


def test_zeros_need_nothing_and_other_units_are_refused() -> None:
    i = WIDE["fp8"]
    assert product(i, torch.zeros(3, 20), torch.ones(20, 2))[1] == 0
    with pytest.raises(ValueError, match="not finite"):
        product(WIDE["fp16"], torch.full((1, 4), float("inf")), torch.ones(4, 1))
    for other in ("hopper QGMMA.64x8x32.F16.E4M3.E4M3", "datapath fma(k=16)"):
        with pytest.raises(ValueError, match="bits are counted"):
            Needed(instruction_meant(other))
