"""Strategies for Hypothesis (`pip install 'mmaformal[hypothesis]'`).

from mmaformal.testing import strategies

@given(strategies.rows("h100 HMMA.16816.F32"))
def test_dot(row):
    assert my_dot(*row) == …
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Rows
from mmaformal.extras import how_to_install
from mmaformal.formats import Format
from mmaformal.instruction import Instruction

try:
    from hypothesis import strategies as st
except ImportError as _error:
    raise ImportError(how_to_install(_error)) from None

_SEEDS = (1 << 32) - 1


class DotRow(NamedTuple):
    """The operands of one dot product-add as bit patterns, in the order in which `Instruction.dot_add` takes them."""

    a: NDArray[Any]  #: (K,)
    b: NDArray[Any]  #: (K,)
    c: NDArray[Any]  #: no axes
    scale_a: NDArray[Any] | None = None
    scale_b: NDArray[Any] | None = None


def codes(fmt: Format, *, finite: bool = False) -> st.SearchStrategy[int]:
    """Draws codes of a format: any, with zeros, the least, the largest and special ones more often; they shrink to 0.

    finite: numbers only.
    """
    some = [0, 1, fmt.largest, fmt.largest | fmt.sign_mask, fmt.sign_mask, fmt.codes - 1]
    kept = [x for x in some if x < fmt.codes and (not finite or fmt.is_finite(x))]
    any_ = st.integers(0, fmt.codes - 1)
    return st.one_of(st.sampled_from(kept), any_.filter(fmt.is_finite) if finite else any_)


def rows(instruction: Instruction | str, *, finite: bool = False) -> st.SearchStrategy[DotRow]:
    """Draws inputs of an instruction: code by code, which shrink to zeros, and of all the ways in which something can
    happen (`mmaformal/cases/generate.py`): cancelling, extreme, tiny, special.

    finite: operands are numbers.  Raises as `instruction_meant`.
    """
    i = instruction_meant(instruction)
    spec = i.spec

    def side(fmt: Format, length: int) -> st.SearchStrategy[NDArray[Any]]:
        drawn = st.lists(codes(fmt, finite=finite), min_size=length, max_size=length)
        return drawn.map(lambda x: np.array(x, fmt.word))

    parts: dict[str, st.SearchStrategy[NDArray[Any] | None]]
    parts = {"a": side(i.a_format, i.k), "b": side(i.b_format, i.k)}
    parts |= {name: st.none() for name in ("scale_a", "scale_b")}  # else they are drawn by their types
    parts["c"] = codes(i.c_format, finite=finite).map(lambda x: np.array(x, i.c_format.word))
    if spec.scale_format is not None:
        parts |= {name: side(spec.scale_format, spec.scales) for name in ("scale_a", "scale_b")}
    one_by_one = st.builds(DotRow, **parts)

    def of_seed(seed: int) -> DotRow:
        distribution = DISTRIBUTIONS[seed % len(DISTRIBUTIONS)]
        return _row(i, generate(spec, 1, seed, (distribution,)), finite)

    return st.one_of(one_by_one, st.integers(0, _SEEDS).map(of_seed))


def _row(i: Instruction, drawn: Rows, finite: bool) -> DotRow:
    """The first row drawn; of `finite` ones what is no number is 0."""

    def side(x: NDArray[np.uint64], fmt: Format) -> NDArray[Any]:
        kept = x.astype(fmt.word)
        if finite:
            kept = np.array([code if fmt.is_finite(int(code)) else 0 for code in kept.ravel()], fmt.word)
        return kept.reshape(x.shape)

    scale = i.spec.scale_format
    scales = (None, None) if scale is None else (side(drawn.scale_a[0], scale), side(drawn.scale_b[0], scale))
    a, b = side(drawn.a[0], i.a_format), side(drawn.b[0], i.b_format)
    return DotRow(a, b, side(drawn.c, i.c_format).reshape(()), *scales)
