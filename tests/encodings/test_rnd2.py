"""rnd2: a pair of products rounded once, then added, as POWER10 and Arm's SME have it (semantics §11)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recorded import SHARED

from mmaformal import ARCHITECTURES, prove, verify
from mmaformal.encodings import executable
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.rnd2.proofs import exactness, pairs, ranges
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.formats import Format, bf16, e4m3, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows
from mmaformal.proof.kernel import ArgumentError, NotProvedError
from mmaformal.proof.kernel import prove as kernel_prove
from mmaformal.proof.rules import Theory
from mmaformal.queries import commutativity, power_of_two_scaling, sign_symmetry
from mmaformal.queries.classes import as_instruction
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.solver.answers import Fails, Holds, Unknown
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


# ---- units that do not read c ----------------------------------------------------------------------------------------

ALONE = ARCHITECTURES["power10"]["XVBF16GER2"]


def sums_below(bits: int, precision: int) -> set[int]:
    """The odd numbers of so many bits that are u·v·2^(p + 1) + w·z, one after the other."""
    factors = range(1 << precision)
    products = {u * v for u in factors for v in factors}
    sums = {(2 << precision) * x + sign * y for x in products for y in products for sign in (1, -1)}
    return {x for x in sums if x % 2 and 0 < x < 1 << bits}


@pytest.mark.parametrize("precision", [2, 3, 4])
def test_whether_all_numbers_are_sums_of_two_products(precision: int) -> None:
    found = []
    for bits in range(2, 3 * precision + 1):
        found.append(ranges.all_are_sums(bits, precision))
        assert found[-1] == (len(sums_below(bits, precision)) == 1 << (bits - 1)), bits
    assert True in found
    assert False in found


@pytest.mark.slow
def test_a_pair_alone_gives_every_number() -> None:
    answer = prove("every-number", ALONE, timeout=300)
    assert isinstance(answer, Holds)
    assert any("sums of two products" in rule for rule in answer.proof.rules)


def test_the_rule_is_not_used_where_it_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranges.every_sum(ALONE.spec) is ranges.TWO_PRODUCTS
    small, reading = ARCHITECTURES["power10"]["XVF16GER2"], ARCHITECTURES["power10"]["XVBF16GER2PP"]
    for spec, why in ((small.spec, "too many to try"), (reading.spec, "not a sum")):
        with pytest.raises(ArgumentError, match=why):
            ranges.every_sum(spec)
    monkeypatch.setattr(ranges, "all_are_sums", lambda *_: False)
    assert isinstance(prove("every-number", ALONE, timeout=100), Unknown)


@settings(max_examples=30)
@given(st.integers(0, (1 << 23) - 1), st.integers(0, 1), st.integers(-149, 103))
def test_a_sum_of_two_products_is_the_number(half: int, sign: int, place: int) -> None:
    """The executable encoding has z, and w and u·v that go with it, as the rule says."""
    n = 2 * half + 1
    for z in range(255, 0, -2):
        w = n * pow(z, -1, 512) % 512
        w -= 512 * (w > 256)
        rest = (n - w * z) >> 9
        u = next((u for u in range(1, 256) if rest % u == 0 and 0 <= rest // u < 256), 0)
        if abs(w) < 256 and u:
            break
    e, signed = min(place // 2 + 4, 119), (-1) ** sign
    a, b = (
        [int(np.float32(x).view(np.uint32)) >> 16 for x in side]
        for side in (
            (signed * u * 2.0**e, signed * w * 2.0**e),
            (rest // u * 2.0 ** (place + 9 - e), z * 2.0 ** (place - e)),
        )
    )
    d = executable.dot_add(ALONE.spec, a, b, 0).result
    assert fp32.value(int(d)) == signed * n * Fraction(2) ** place


def test_a_pair_alone_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pair, to which −0 is added, has what is assumed of results: not if that made something of small ones."""
    spec = ALONE.spec.replace(nan="DEFAULT")
    with LazyPortfolio() as portfolio:
        assert kernel_prove(Asker(portfolio, 100), power_of_two_scaling.argue_doubled(spec)).obligations
    right = stages.add

    def wrong(x: z3.BitVecRef, y: z3.BitVecRef, rho: Conversion, nan: int) -> ieee.Addition:
        made, low = right(x, y, rho, nan), z3.Extract(30, 0, y)
        small = z3.And(low != 0, z3.ULT(low, 1 << 23))
        return made._replace(result=z3.If(small, z3.BitVecVal(0x3F800000, 32), made.result))

    monkeypatch.setattr(stages, "add", wrong)
    with LazyPortfolio() as portfolio, pytest.raises(NotProvedError, match="in range with −0 added"):
        kernel_prove(Asker(portfolio, 100), power_of_two_scaling.argue_doubled(spec))


@pytest.mark.parametrize("broken", ["", "change_sign", "sticky_sum"])
def test_signs_of_two_runs(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """−a·b and −b·a have one sign where neither is a NaN, and opposite summands of fp64 opposite sums; this is not
    proved of a wrong stage."""
    right = stages.sticky_sum

    def changed(self: stages.Stages, code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
        other = z3.If(stages.decode(code, fmt).nan, code, code ^ (fmt.sign_mask | 1))
        return self.code("change_sign", [code], other, fmt)

    def summed(*given: Any) -> blocks.StickySum:
        made = right(*given)
        return made._replace(total=(made.total.arg(0) + 1) + made.total.arg(1))

    if broken == "change_sign":
        monkeypatch.setattr(stages.Stages, "change_sign", changed)
    elif broken:
        monkeypatch.setattr(stages, "sticky_sum", summed)
    pair, fma = (ARCHITECTURES["sme"][name].spec for name in ("FMOPS.F32.F16", "FMOPA.F64"))
    with LazyPortfolio() as portfolio:
        asker = Asker(portfolio, 100)
        if broken != "sticky_sum":
            exchanged = commutativity.argue_exchanged(commutativity.relation_exchanged(pair))
            with pytest.raises(NotProvedError) if broken else nullcontext():
                kernel_prove(asker, exchanged)
        if broken != "change_sign":
            negated = sign_symmetry.argue_negated(sign_symmetry.relation_negated(fma))
            with pytest.raises(NotProvedError) if broken else nullcontext():
                kernel_prove(asker, negated)


@pytest.mark.parametrize("form", ["PP", pytest.param("NN", marks=pytest.mark.slow)])
def test_what_a_pair_loses_is_left_where_c_cancels_it(form: str) -> None:
    """A pair of bf16 seldom loses what c does not hide: c is what the pair gives, with the other sign."""
    answer = prove("faithful-rounding", ARCHITECTURES["power10"][f"XVBF16GER2{form}"], timeout=100)
    assert isinstance(answer, Fails)
