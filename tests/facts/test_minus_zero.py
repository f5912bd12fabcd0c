"""A sum that is rounded with its sign is never rounded to −0: proved where exponents allow it, not of broken
models."""

from __future__ import annotations

from typing import Any

import pytest
import z3

from mmaformal import cdna1, cdna2, cdna3
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.smt import blocks
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.queries import output_range
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio

FDRDA = cdna3["v_mfma_f32_32x32x4_2b_f16"]
GFDRDA = cdna3["v_mfma_f32_32x32x16_fp8_fp8"]
EFDA = cdna1["v_mfma_f32_32x32x4f16"]
GPS = cdna2["v_mfma_f32_32x32x4f16"]


def proved(solvers: LazyPortfolio, instruction: Instruction) -> bool:
    try:
        prove(Asker(solvers, 20), output_range.never_minus_zero(instruction.spec))
    except (NotProvedError, ArgumentError):
        return False
    return True


@pytest.mark.parametrize("instruction", [FDRDA, GFDRDA, EFDA, GPS], ids=lambda i: i.algorithm)
def test_it_is_never_minus_zero(solvers: LazyPortfolio, instruction: Instruction) -> None:
    answer = output_range.answer_minus_zero(instruction, Asker(solvers, 20))
    assert isinstance(answer, Holds), answer


def test_products_of_bf16_underflow(solvers: LazyPortfolio) -> None:
    instruction = cdna3["v_mfma_f32_32x32x4_2b_bf16"]
    answer = output_range.answer_minus_zero(instruction, Asker(solvers, 5))
    assert isinstance(answer, Fails)
    assert answer.witness.results[0] == fp32.sign_mask  # type: ignore[attr-defined]
    assert not proved(solvers, instruction)


@pytest.mark.parametrize(
    ("module", "instruction"),
    [(fdrda, FDRDA), (fdrda, GFDRDA), (efda, EFDA)],
    ids=["fdrda", "gfdrda", "efda"],
)
def test_flushed_results_may_be_minus_zero(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch, module: Any, instruction: Instruction
) -> None:
    encode = module.encode

    def flushed(x: Any, rho: Any) -> Any:
        return gps.flush(encode(x, rho), keep_sign=True)

    monkeypatch.setattr(module, "encode", flushed)
    assert not proved(solvers, instruction)


@pytest.mark.parametrize(
    ("module", "instruction", "by"), [(fdrda, FDRDA, 98), (gfdrda, GFDRDA, 112)], ids=["fdrda", "gfdrda"]
)
def test_products_of_low_exponents_may_vanish(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch, module: Any, instruction: Instruction, by: int
) -> None:
    exponent = module.exponent_of_dot

    def lower(*given: Any) -> Any:
        e_dot = exponent(*given)
        return z3.If(z3.UGE(e_dot, by), e_dot - by, e_dot)

    monkeypatch.setattr(module, "exponent_of_dot", lower)
    assert not proved(solvers, instruction)


def test_a_c_that_is_cut_below_itself_may_be_minus_zero(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    c_at = fdrda.c_at
    monkeypatch.setattr(fdrda, "c_at", lambda e_max, c, *rest: c_at(e_max + 1, c, *rest) - 1)
    assert not proved(solvers, FDRDA)


def test_a_sum_that_cuts_small_numbers_away_may_be_minus_zero(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(x: Any, rho: Any) -> Any:
        return blocks.encode(x._replace(code=x.code & -2), rho)

    monkeypatch.setattr(efda, "encode", cut)
    assert not proved(solvers, EFDA)


def test_a_c_that_may_be_minus_zero_is_told(solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = gps.flush
    monkeypatch.setattr(gps, "flush", lambda code, *, keep_sign: flush(code, keep_sign=True))
    assert not proved(solvers, GPS)


def test_groups_of_small_products_may_vanish_with_c(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiply = gps.multiply

    def smaller(*given: Any) -> Any:
        product = multiply(*given)
        return z3.If(z3.UGT(z3.Extract(30, 23, product), 80), product - (80 << 23), product)

    monkeypatch.setattr(gps, "multiply", smaller)
    assert not proved(solvers, GPS)
