"""rnd2: a pair of products rounded once, then added, as POWER10 and Arm's SME have it (semantics §11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from support.recorded import SHARED

from mmaformal import prove, verify
from mmaformal.encodings import executable
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.rnd2.proofs import exactness, pairs
from mmaformal.encodings.smt import blocks
from mmaformal.formats import Format, bf16, e4m3, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.queries.classes import as_instruction
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
from mmaformal.spec import DotAdd


def unit(fmt: Format, k: int = 2) -> Instruction:
    return as_instruction(DotAdd(k, fmt, fmt, fp32, fp32, Rnd2(IEEE_FP32, IEEE_FP32)))


def run(fmt: Format, a: list[int], b: list[int], c: int) -> int:
    return int(executable.dot_add(unit(fmt).spec, a, b, c).result)


def test_known_answers() -> None:
    """The pair is rounded once, the sum with c again (semantics §11)."""
    assert run(fp16, [0x3C00, 0x0C00], [0x3C00, 0x0C00], 0x33800000) == 0x3F800000
    assert run(bf16, [0x1A00] * 2, [0x1A00] * 2, 0) == 1
    assert run(bf16, [0x1A00, 0], [0x1A00, 0], 0) == 0


RECORDED = {
    "sme_fmopa_fp16_fp32": fp16,
    "power10_xvf16ger2pp": fp16,
    "power10_xvbf16ger2pp": bf16,
}


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_of_emulators_but_for_which_nan(name: str) -> None:
    file = SHARED / "emulators" / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"{file.name} is not here")
    with np.load(file) as found:
        a, b, c, d = (found[key].astype(np.int64) for key in "abcd")
    spec = unit(RECORDED[name]).spec
    result = executable.dot_add(spec, [a[:, 0], a[:, 1]], [b[:, 0], b[:, 1]], c).result
    nans = [(x & 0x7FFFFFFF) > 0x7F800000 for x in (result, d)]
    np.testing.assert_array_equal(nans[0], nans[1])
    np.testing.assert_array_equal(result[~nans[0]], d[~nans[0]])


CODES = st.integers(0, 0xFFFF).filter(bf16.is_finite)


@given(st.lists(CODES, min_size=4, max_size=4))
def test_a_pair_is_the_exact_sum_rounded(codes: list[int]) -> None:
    w, x, y, z = (bf16.value(code) for code in codes)
    exact = w * x + y * z
    d = run(bf16, [codes[0], codes[2]], [codes[1], codes[3]], 0)
    if not fp32.is_finite(d):
        assert abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103
        return
    below, above = (fp32.value(d) - exact, exact - fp32.value(d))
    near = fp32.value(min((d & 0x7FFFFFFF) + 1, 0x7F7FFFFF)) - fp32.value(d & 0x7FFFFFFF)
    assert max(below, above) * 2 <= near or not near


@pytest.mark.parametrize("fmt", [fp16, bf16, e4m3], ids=str)
def test_compiled_rows_are_the_executables(fmt: Format) -> None:
    rng = np.random.default_rng(7)
    spec = unit(fmt, 6).spec
    a, b = (rng.integers(0, 1 << fmt.storage_bits, (400, 6)).astype(fmt.word) for _ in range(2))
    c = rng.integers(0, 1 << 32, 400).astype(np.uint32)
    lanes = [list(x.astype(np.int64).T) for x in (a, b)]
    expected = executable.dot_add(spec, *lanes, c.astype(np.int64)).result
    np.testing.assert_array_equal(rows.dot_add(spec, a, b, c), expected.astype(np.uint32))


def test_both_encodings_are_equal_with_no_proof_of_their_own() -> None:
    assert isinstance(verify(unit(e4m3), timeout=100), Holds)


def test_a_change_of_one_encoding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rnd2.normalise_and_round
    monkeypatch.setattr(
        rnd2,
        "normalise_and_round",
        lambda total, e, exponents, frame, phi, low: right(total & -2, e, exponents, frame, phi, low),
    )
    assert isinstance(verify(unit(e4m3), timeout=100), Fails)


@pytest.mark.parametrize(
    "name", ["commutativity", "sign-symmetry", "accumulator-width", "no-nan-from-finite"]
)
def test_properties_that_the_theory_gives(name: str) -> None:
    assert isinstance(prove(name, unit(e4m3), timeout=100), Holds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["order-independence", "zero-padding", "monotonicity-in-c", "monotonicity-in-a-product"]
)
def test_longer_properties(name: str) -> None:
    assert isinstance(prove(name, unit(bf16), timeout=200), Holds)


def proved(prove_: Callable[[Theory], object]) -> None:
    with LazyPortfolio(None, DEFAULT_MEMORY) as solvers:
        prove_(Theory(Asker(solvers, 300)))


@pytest.mark.slow
@pytest.mark.parametrize("fmt", [fp16, bf16], ids=str)
def test_each_rounding_is_of_an_exact_sum(fmt: Format) -> None:
    answer = prove("error-bound", unit(fmt), timeout=300)
    assert isinstance(answer, Holds)
    assert answer.number is not None
    assert answer.number.value == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lossless-width", "correct-rounding", "correct-rounding-of-each-step"])
def test_a_pair_alone_is_rounded_once(name: str) -> None:
    spec = unit(bf16).spec
    assert isinstance(prove(name, as_instruction(replace(spec, reads_c=False)), timeout=200), Holds)
    down = replace(IEEE_FP32, name="RD-FP32±0", rounding=type(IEEE_FP32.rounding).RD)
    other = replace(spec, reads_c=False, parameters=Rnd2(down, IEEE_FP32))
    assert not isinstance(prove(name, as_instruction(other), timeout=200), Holds)


@pytest.mark.parametrize("broken", ["a place less", "no sticky place", "the smaller exponent"])
def test_a_pair_that_is_not_the_exact_sum_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame too narrow for a subnormal factor, bits that are lost, and a product of zero that moves the other."""
    if broken == "a place less":
        monkeypatch.setattr(Rnd2, "frame", lambda self, spec: 26)
    elif broken == "no sticky place":
        monkeypatch.setattr(blocks, "sticky_shift_right", blocks.shift_right)
    else:
        monkeypatch.setattr(Rnd2, "zero_exponent", lambda self, spec: -10)
    with pytest.raises(NotProvedError, match="does not hold"):
        proved(lambda theory: exactness.prove_claims(theory, unit(fp16).spec))


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["no sticky place", "sign of the sum"])
def test_a_broken_pair_does_not_grow_with_its_products(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "no sticky place":
        monkeypatch.setattr(blocks, "sticky_shift_right", blocks.shift_right)
    else:
        right = rnd2.normalise_and_round
        monkeypatch.setattr(
            rnd2,
            "normalise_and_round",
            lambda *given: right(*given)._replace(sign=z3.BitVecVal(0, 1)),
        )
    with pytest.raises(NotProvedError):
        proved(lambda theory: pairs.prove_in_products(theory, unit(fp16).spec))


def test_directed_roundings_of_a_pair_are_no_symmetry() -> None:
    down = replace(IEEE_FP32, name="RD-FP32±0", rounding=type(IEEE_FP32.rounding).RD)
    spec = replace(unit(e4m3).spec, parameters=Rnd2(down, IEEE_FP32))
    assert isinstance(prove("sign-symmetry", as_instruction(spec), timeout=100), Fails)
    assert z3.is_bv(rnd2.dot_add(spec, *_constants(spec)).result)


def _constants(spec: DotAdd) -> tuple[list[z3.BitVecRef], list[z3.BitVecRef], z3.BitVecRef]:
    bits = spec.a_format.storage_bits
    a, b = ([z3.BitVec(f"{name}{k}", bits) for k in range(spec.k)] for name in "ab")
    return a, b, z3.BitVec("c", spec.c_format.storage_bits)
