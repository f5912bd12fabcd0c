"""Sums in two's complement are integers' sums: of integers that are too short nothing is argued."""

from __future__ import annotations

import pytest
import z3

from mmaformal.encodings.smt.blocks import negate_if, resize
from mmaformal.proof.composition import Composing
from mmaformal.proof.fixed_sums import Accumulated, accumulate
from mmaformal.proof.kernel import ArgumentError
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio


def three(proving: Composing, bits: int | None, places: int) -> Accumulated:
    """The sum of three magnitudes of four bits and a sign, in seven bits."""
    summands = [(z3.BitVec(f"s{i}", 1), z3.BitVec(f"m{i}", 4)) for i in range(3)]
    parts = [negate_if(sign, resize(magnitude, 7)) for sign, magnitude in summands]
    small = [z3.ULE(magnitude, 15) for _, magnitude in summands]
    return accumulate(proving, parts[0] + parts[1] + parts[2], summands, [15] * 3, small, bits, places)


@pytest.mark.parametrize(("bits", "places"), [(None, 0), (None, 8), (10, 3)])
def test_the_accumulator_is_the_exact_sum(bits: int | None, places: int) -> None:
    with LazyPortfolio() as portfolio:
        proving = Composing(Asker(portfolio, 60.0))
        done = three(proving, bits, places)
        done.prove_total(proving)
    width = done.value.size()
    exact = sum(
        (negate_if(sign, z3.ZeroExt(36, magnitude)) for sign, magnitude in done.summands), z3.BitVecVal(0, 40)
    )
    solver = z3.Solver()
    solver.add(z3.SignExt(40 - width, done.value) != exact << places)
    assert solver.check() == z3.unsat


@pytest.mark.parametrize(("bits", "places"), [(9, 3), (8, 3), (6, 0)])
def test_integers_that_are_too_short_are_refused(bits: int, places: int) -> None:
    with LazyPortfolio() as portfolio, pytest.raises(ArgumentError, match="do not hold it"):
        three(Composing(Asker(portfolio, 60.0)), bits, places)
