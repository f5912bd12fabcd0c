"""Single lanes in instructions of Apple AMX: both encodings on the same codes, and proofs that they agree."""

from __future__ import annotations

import numpy as np
import pytest
import z3

from mmaformal.apple.tables import FLOAT_MODES
from mmaformal.cases.encodings import sample_codes
from mmaformal.encodings.amx_lanes import IEEE_BF16, SKIPS, Accumulation, Reduction, executable, smt
from mmaformal.proof.kernel import NotProvedError, prove
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.studies.amx import lanes

SUMS = (
    Accumulation("xy", x_signed=True, y_signed=False, z_bits=32),
    Accumulation("xy", high_half=True, negative=True, x_signed=True, y_signed=True),
    Accumulation("x+y", 8, 16, 32, y_signed=True, negative=True),
    Accumulation("equal bits", 32, 32, 32),
    Accumulation("y", with_z=False, y_signed=True),
)


def value(term: z3.BitVecRef) -> int:
    return z3.simplify(term).as_long()


@pytest.mark.parametrize("on", SUMS, ids=lambda on: on.term)
def test_both_encodings_accumulate_alike(on: Accumulation) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        given = [int(rng.choice([0, 1, 1 << (bits - 1), (1 << bits) - 1, rng.integers(1 << bits)]))
                 for bits in (on.x_bits, on.y_bits, on.z_bits, 5)]  # fmt: skip
        terms = (z3.BitVecVal(g, b) for g, b in zip(given, (on.x_bits, on.y_bits, on.z_bits, 5), strict=True))
        assert executable.accumulated(on, *given).result == value(smt.accumulated(on, *terms).result)


@pytest.mark.parametrize("kind", FLOAT_MODES.values())
@pytest.mark.parametrize("rho", [IEEE_FP16, IEEE_BF16], ids=str)
def test_both_encodings_compute_floats_alike(kind: str, rho: object) -> None:
    rng, fmt = np.random.default_rng(1), rho.format  # type: ignore[attr-defined]
    for x, y, z in zip(*(sample_codes(fmt, rng)[:30].tolist() for _ in "xyz"), strict=True):
        terms = (z3.BitVecVal(code, 16) for code in (x, y, z))
        mine = executable.floating(kind, x, y, z, rho)  # type: ignore[arg-type]
        assert mine == value(smt.floating(kind, *terms, rho))  # type: ignore[arg-type]


def settled(argument: lanes.Argument) -> str:
    with LazyPortfolio() as portfolio:
        return prove(Asker(portfolio, 120.0), argument).obligations[-1].statement


@pytest.mark.parametrize("on", [SUMS[2], SUMS[4], Reduction(32, 16, 16, True, False, True, True)], ids=str)
def test_integers_are_proved(on: Accumulation | Reduction) -> None:
    made = lanes.argue_accumulated(on) if isinstance(on, Accumulation) else lanes.argue_reduced(on)
    assert "both encodings" in settled(made)


def test_floats_are_proved() -> None:
    settled(lanes.argue_subtracted(IEEE_FP32))
    settled(lanes.fused("z-xy", IEEE_BF16))
    settled(lanes.argue_chosen("max", IEEE_FP64))
    settled(lanes.argue_exceeds(IEEE_FP16.format))


def test_a_change_of_one_encoding_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt, "below", lambda x, y: x < y)
    with pytest.raises(NotProvedError):
        settled(lanes.argue_chosen("max", IEEE_FP16))
    monkeypatch.setattr(smt, "negated", lambda code: code)
    with pytest.raises(NotProvedError):
        settled(lanes.argue_subtracted(IEEE_FP16))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fms16", "fms32", "fms64", "vecfp", "matfp", "genlut", "extrh", "extrv"])
def test_all_lanes_are_proved(name: str) -> None:
    for make in lanes.arguments(name).values():
        settled(make())


def test_every_operation_is_asked_about() -> None:
    assert set(SKIPS) < set(FLOAT_MODES.values())
    assert len(lanes.arguments("vecfp")) == 4 * len(FLOAT_MODES)
    assert len(lanes.arguments("mac16")) == 64
