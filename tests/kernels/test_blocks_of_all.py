"""`matmul` in blocks of D gives what the rows give, of one instruction of every algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from mmaformal import ARCHITECTURES, Instruction, matmul
from mmaformal.architectures.meant import instruction_meant

EMULATED = "emulation ootomo(volta HMMA.884.F32.F32)"


def one_of_each() -> list[Instruction]:
    """The instruction with the fewest products of each algorithm without block scales, and an emulation."""
    found: dict[str, Instruction] = {}
    for architecture in ARCHITECTURES.values():
        for each in architecture.instructions:
            if each.spec.scale_format is None and not each.spec.is_signed:
                before = found.get(each.algorithm)
                if before is None or each.k < before.k:
                    found[each.algorithm] = each
    return [*found.values(), instruction_meant(EMULATED)]


@pytest.mark.parametrize("instruction", one_of_each(), ids=lambda i: i.label)
def test_blocks_are_rows(instruction: Instruction) -> None:
    i, rng = instruction, np.random.default_rng(5)
    a = rng.integers(0, i.a_format.codes, (9, i.k)).astype(i.a_format.word)
    b = rng.integers(0, i.b_format.codes, (7, i.k)).astype(i.b_format.word)
    d = np.asarray(matmul(a, b.T.copy(), None, instruction=i, jobs=1))
    every = np.indices((9, 7)).reshape(2, -1)
    plain = np.asarray(i.dot_add(a[every[0]], b[every[1]], np.zeros(63, i.c_format.word)))
    mine, theirs = (np.ascontiguousarray(x).view(i.d_format.word).reshape(-1) for x in (d, plain))
    assert len(set(mine.tolist())) > 1
    assert (mine == theirs).all()
