"""dpa_e9s12, the dot product-add of E9S12 halves: against exact rational arithmetic, in both encodings, and its
breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
import z3
from support.e9s12_numbers import halves, nearest

from mmaformal import e9s12, matmul
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import SmtEncoding, run
from mmaformal.encodings.dpa_e9s12 import DpaE9s12, executable
from mmaformal.facts.equality import argue_equality
from mmaformal.formats import Format, fp32
from mmaformal.identity import identity
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows
from mmaformal.queries.verify import verify
from mmaformal.shown_stages import explain_case
from mmaformal.site.pairs import function_text
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd


def products(spec: DotAdd, codes: Codes) -> list[tuple[int, int]]:
    return [
        (u * v, e + f)
        for x, y in zip(codes.a, codes.b, strict=True)
        for u, e in halves(spec.a_format, x)
        for v, f in halves(spec.b_format, y)
    ]


def expected(spec: DotAdd, codes: Codes) -> int:
    """d of one step, from the paper's words, in rational numbers; of finite codes."""
    p = spec.parameters_as(DpaE9s12)
    terms = products(spec, codes)
    e_max = max((e for m, e in terms if m), default=0)
    unit = Fraction(2) ** (e_max - (p.accumulator_bits - 3 - math.ceil(math.log2(len(terms)))))
    phi = sum(math.floor(m * Fraction(2) ** (e - 22) / unit) for m, e in terms) * unit
    total = phi + spec.c_format.value(codes.c)
    if total:
        return nearest(total)
    signs = [x ^ y for x, y in zip(codes.a, codes.b, strict=True)]
    negative = all(s >> (spec.a_format.storage_bits - 1) & 1 for s in signs) and codes.c >> 31
    return 0x80000000 if negative else 0


def is_finite(spec: DotAdd, codes: Codes) -> bool:
    return all(map(spec.a_format.is_finite, (*codes.a, *codes.b))) and spec.c_format.is_finite(codes.c)


@pytest.mark.parametrize(
    "instruction", [i for i in e9s12 if i.algorithm == "dpa_e9s12"], ids=lambda i: i.name
)
def test_exact_arithmetic_and_both_encodings(instruction: Instruction) -> None:
    spec = instruction.spec
    cases = generate(spec, 300).cases()
    found = run(instruction, cases)
    wrong = [x for x, d in zip(cases, found, strict=True) if is_finite(spec, x) and d != expected(spec, x)]
    assert not wrong
    some = cases[:60]
    assert SmtEncoding(spec).results(Rows.of(some)) == found[:60]


def test_the_accumulators_bits_have_their_old_letter_too() -> None:
    """Records are kept by the old letter, and `replace` takes it for one version more."""
    one = e9s12["DP16A.FP16"]
    with pytest.warns(DeprecationWarning, match="L of dpa_e9s12 is accumulator_bits now"):
        assert one.replace(L=84) == one.replace(accumulator_bits=84)
    with pytest.raises(TypeError, match="given accumulator_bits, and L, its old name"):
        one.replace(L=84, accumulator_bits=85)
    assert (one.row()["L"], one.row()["accumulator_bits"]) == (None, 85)
    assert " L=85 " in function_text(one.spec)
    assert "L=int:85" in identity(one.spec)


def test_widths_are_the_papers() -> None:
    assert {i.name: i.parameters["accumulator_bits"] for i in e9s12} == {
        "DP16A.FP16": 85,
        "DP16A.BF16": 85,
        "DP4A.FP32": 85,
        "DP4A.FP16": 83,
        "DP4A.BF16": 83,
        "DP1A.FP32": 83,
        "DP4ACC8.FP16": 85,
        "DP4ACC8.BF16": 85,
        "DP1ACC2.FP32": 85,
    }
    with pytest.raises(ValueError, match="accumulator_bits ≥ 29"):
        e9s12["DP16A.FP16"].replace(accumulator_bits=28)
    with pytest.raises(ValueError, match="accumulator_bits ≤ 85"):
        e9s12["DP16A.FP16"].replace(accumulator_bits=86)
    with pytest.raises(ValueError, match="a and b of fp16, bf16 or fp32"):
        e9s12["DP16A.FP16"].replace(a_format="bf16")


def test_a_zero_that_is_not_detected_moves_the_others_out() -> None:
    """0 · 2^127 beside 2^-100 · 2^-20: its exponent counts only if zeros are not detected."""
    one, other = e9s12["DP4A.FP32"], e9s12["DP4A.FP32"].replace(detects_zeros=False)
    a, b = [0, fp32.code("0x1p-100"), 0, 0], [fp32.code("0x1p127"), fp32.code("0x1p-20"), 0, 0]
    assert one.dot_add(a, b, 0) == fp32.code("0x1p-120")
    assert other.dot_add(a, b, 0) == 0


def test_the_sign_of_zero() -> None:
    i = e9s12["DP4A.FP16"]
    minus = 0x8000
    assert i.dot_add([minus] * 4, [0] * 4, 0x80000000) == 0x80000000
    assert i.dot_add([minus] * 3 + [0], [0] * 4, 0x80000000) == 0
    assert i.dot_add([0x3C00, 0xBC00, 0, 0], [0x3C00, 0x3C00, 0, 0], 0x80000000) == 0


def test_it_is_told_by_its_halves() -> None:
    told = explain_case(e9s12["DP1A.FP32"], [0x3F801001], [0x3F800000], 0)
    assert "high·high" in str(told)
    assert "low·high" in str(told)


@pytest.mark.slow
def test_a_chain_and_a_product_of_matrices() -> None:
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 8), (8, 5)))
    D = matmul(A, B, instruction=e9s12["DP4A.FP32"])
    chain = e9s12["DP4A.FP32"].chained(8)
    a, b = A.view(np.uint32), B.view(np.uint32)
    for i in range(3):
        for j in range(5):
            assert chain.dot_add([*map(int, a[i])], [*map(int, b[:, j])], 0) == D.view(np.uint32)[i, j]


@pytest.mark.slow
@pytest.mark.parametrize("instruction", list(e9s12), ids=lambda i: i.name)
def test_compiled_rows(instruction: Instruction) -> None:
    cases = generate(instruction.spec, 2000).cases()
    a, b, c = (np.array([getattr(x, side) for x in cases], np.uint32) for side in "abc")
    assert rows.dot_add(instruction.spec, a, b, c).tolist() == run(instruction, cases)


@pytest.mark.slow
@pytest.mark.parametrize("instruction", list(e9s12), ids=lambda i: i.name)
def test_both_encodings_are_proved_equal(instruction: Instruction) -> None:
    assert isinstance(verify(instruction, timeout=600.0), Holds)


def broken_unpack(x: object, fmt: Format, subnormal: int = 1) -> Sequence[object]:
    return _unpack(x, fmt, 0)  # type: ignore[arg-type]


_unpack = executable.unpack


def unpacked_alike() -> bool:
    """Whether the lemmas hold that both encodings unpack alike."""
    lemmas = [
        each for each in argue_equality(e9s12["DP1A.FP32"].spec).lemmas.values() if each.stage == "unpack"
    ]
    assert lemmas
    solver = z3.Solver()
    return all(solver.check(each.refuted) == z3.unsat for each in lemmas)


def test_a_break_of_one_encoding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's exponent of subnormal factors: the lemma does not hold."""
    assert unpacked_alike()
    monkeypatch.setattr(executable, "unpack", broken_unpack)
    assert not unpacked_alike()


@pytest.mark.slow
def test_a_break_has_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "unpack", broken_unpack)
    assert isinstance(verify(e9s12["DP1A.FP32"], timeout=60.0), Fails)
