"""Sums by remainders (Ozaki's second scheme): against rational arithmetic; proved exact, and wrong where they are."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import z3
from numpy.typing import NDArray
from support.random_cases import cases

from mmaformal import emulation, matmul, prove, verify
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import SmtEncoding, run
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings.residues import Residues
from mmaformal.encodings.residues import executable as residues
from mmaformal.encodings.residues import smt as smt_residues
from mmaformal.encodings.residues.proofs import exactness
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.kernels.plain import PlainKernel
from mmaformal.proof.claims import ArgumentError
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.shown_stages import explain_case
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio

Array = NDArray[Any]
PROGRAMS = [
    "ozaki2(fp32, k=4)",
    "ozaki2(fp64, k=4)",
    "ozaki2(fp64, k=8, bits=30)",
    "ozaki2(fp32, k=4, bits=9)",
]


def matrices(fmt: Format, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-20, 20, shape))
    return x.astype(fmt.dtype)


def words(x: Array, p: Residues, fmt: Format) -> tuple[list[int], Fraction]:
    """Integers toward zero in units of the largest number's exponent, and that unit."""
    numbers = [Fraction(float(each)) for each in x]
    exponent = max(max(int(np.frexp(float(each))[1]) - 1 if each else -9999 for each in x), fmt.min_exponent)
    unit = Fraction(2) ** (exponent + 1 - p.bits)
    return [int(each / unit) for each in numbers], unit


def rounded(x: Fraction, fmt: Format) -> Any:
    """The nearest number of the format, ties to even."""
    if not x:
        return np.dtype(fmt.dtype).type(0)
    exponent = (abs(x).numerator.bit_length() - abs(x).denominator.bit_length()) - 1
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (max(exponent, fmt.min_exponent) - fmt.fraction_bits)
    return np.dtype(fmt.dtype).type(float(round(x / unit) * unit))


def by_fractions(i: Instruction, A: Array, B: Array, C: Array) -> Array:
    """c and the exact sum of words, rounded; both rounded again."""
    p, fmt = i.spec.parameters_as(Residues), i.spec.d_format
    D = np.empty_like(C)
    of_b = [words(B[:, n], p, fmt) for n in range(B.shape[1])]
    for m, row in enumerate(A):
        x, unit = words(row, p, fmt)
        for n, (y, other) in enumerate(of_b):
            total = sum(u * v for u, v in zip(x, y, strict=True))
            D[m, n] = C[m, n] + rounded(total * unit * other, fmt)
    return D


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_product_is_the_exact_sum_of_words_rounded(name: str) -> None:
    i = emulation[name]
    fmt = i.spec.d_format
    A, B, C = matrices(fmt, (40, i.k), 1), matrices(fmt, (i.k, 30), 2), matrices(fmt, (40, 30), 3)
    A[:3], A[5, 1:], B[:, 7], C[:, 3] = 0, 0, -B[:, 6], 0
    A[7] *= fmt.dtype.type(fmt.value(1) if fmt.dtype is not None else 0)
    wanted = by_fractions(i, A, B, C)
    assert matmul(A, B, C, instruction=i).tolist() == wanted.tolist()


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_encodings_agree_on_every_kind_of_row(name: str) -> None:
    i = emulation[name]
    some = cases(i.spec, random.Random(4), 150)
    assert run(i, some) == SmtEncoding(i.spec).results(Rows.of(some))


def test_the_kernel_is_the_executable() -> None:
    i = emulation["ozaki2(fp64, k=16)"]
    A, B, C = (
        matrices(i.spec.a_format, (9, 40), 1),
        matrices(i.spec.a_format, (40, 300), 2),
        np.zeros((9, 300)),
    )
    A[2, 3], B[20, 7], B[5, 250] = np.inf, np.nan, -np.inf
    wide = np.zeros((9, 48)), np.zeros((48, 300))
    wide[0][:, :40], wide[1][:40] = A, B
    plain = PlainKernel(i.spec)
    d = C.view(np.uint64).copy()
    a, b = (x.view(np.uint64) for x in wide)
    plain.run(plain.rows(a), plain.columns(b), d, 0, 3)
    assert matmul(A, B, C, instruction=i).view(np.uint64).tolist() == d.tolist()
    assert np.isnan(d.view(np.float64)).sum() == 9 + 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_product_loses_no_more_than_is_proved(name: str) -> None:
    """Each product 2^(bits + 1) units, which cut words nearly reach."""
    i = emulation[name]
    p, fmt = i.spec.parameters_as(Residues), i.spec.d_format
    assert fmt.dtype is not None
    A, B = matrices(fmt, (20, i.k), 1), matrices(fmt, (i.k, 20), 2)
    A[0], B[:, 0] = (np.nextafter(np.full(i.k, 2, fmt.dtype), fmt.dtype.type(0)) for _ in "ab")
    A[0, 0] = B[0, 0] = 2  # so that the others are cut
    shares = []
    for row, column in zip(A, B.T, strict=True):
        (x, u), (y, v) = words(row, p, fmt), words(column, p, fmt)
        exact = sum(
            (Fraction(float(s)) * Fraction(float(t)) for s, t in zip(row, column, strict=True)), Fraction(0)
        )
        total = sum(s * t for s, t in zip(x, y, strict=True)) * u * v
        shares.append(abs(exact - total) / (i.k * 2 ** (p.bits + 1) * u * v))
    assert 0.05 < max(shares) < 1


@pytest.mark.parametrize("modulus", [256, 255, 197, 2, 3])
def test_a_remainder_is_that_of_a_division(modulus: int) -> None:
    x = np.arange(1 << 16)
    assert (residues.remainder(x, modulus) == x % modulus).all()


def test_the_numbers_of_digits_are_those_that_leave_the_remainders() -> None:
    p = emulation["ozaki2(fp64, k=64)"].spec.parameters_as(Residues)
    for total in (0, 1, -1, -p.offset, p.whole - p.offset - 1, 123456789 << 70, -(987654321 << 60)):
        left = [(total + p.offset) % each for each in p.moduli]
        whole = residues.put_together([x.digit for x in residues.digits(left, p)], p, 0)
        assert (whole.total.high << 56) + whole.total.low == total


def test_names_say_what_is_needed() -> None:
    """There are as many moduli as sums need, and no more."""
    for name in ("ozaki2(fp32, k=1)", "ozaki2(fp64, k=1024)", "ozaki2(fp32, k=131071)"):
        i = emulation[name]
        p = i.spec.parameters_as(Residues)
        assert i.name == name
        assert p.suffices
        assert not replace(p, moduli=p.moduli[:-1]).suffices
    for wrong, said in (
        ("ozaki2(bf16)", "fp32 or fp64, not bf16"),
        ("ozaki2(fp32, k=131072)", "k from 1 to 131071, whose sums int32 holds"),
        ("ozaki2(fp64, moduli=16)", "1 to 15 moduli, not 16"),
        ("ozaki2(fp64, k=4096, bits=53)", "need more than 15 moduli"),
        ("ozaki2(fp32, bits=25)", "words of 1 to 24 bits"),
        ("ozaki2(hopper HMMA.16816.F32)", "no emulation"),
        ("ootomo(fp32)", "no emulation"),
    ):
        with pytest.raises(KeyError, match=said):
            emulation[wrong]
    p = emulation["ozaki2(fp32)"].spec.parameters_as(Residues)
    for change, said in (
        ({"moduli": (256, 254)}, "without a common divisor"),
        ({"moduli": (257,)}, "from 2 to 256"),
        ({"moduli": ()}, "a modulus at least"),
        ({"products": 1 << 17}, "whose sums int32 holds"),
        ({"rho": "RZ-FP32"}, "to nearest"),
    ):
        with pytest.raises(ValueError, match=said):
            replace(p, **change)  # type: ignore[arg-type]


def test_a_step_is_shown_with_its_integers() -> None:
    i = emulation["ozaki2(fp32, k=2)"]
    a, b, c = ([int(np.float32(x).view(np.uint32)) for x in side] for side in ([1.5, -2], [1, 3], [0.5]))
    text = explain_case(i, a, b, c[0])
    assert "12582912" in text
    assert "Σ remainders of 256" in text
    assert "-0x1p+2 = -4" in text


# ---- proofs ----------------------------------------------------------------------------------------------------------


def test_both_encodings_are_proved_equal() -> None:
    assert isinstance(verify(emulation["ozaki2(fp32, k=1, bits=4)"], timeout=300), Holds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ozaki2(fp32, k=1, bits=4)", "ozaki2(fp32, k=2)"])
def test_the_sums_are_proved_exact(name: str) -> None:
    answer = prove("exactness", emulation[name], timeout=900)
    assert isinstance(answer, Holds)
    assert "by the rule: division" in str(answer)


def proved(name: str) -> bool:
    """Whether the claims about the SMT encoding are proved."""
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        proving = Composing(Asker(portfolio, 120.0))
        try:
            exactness.prove_exact_words(proving, emulation[name].spec)
        except NotProvedError as error:
            if not error.refuted:
                raise
            return False
        return bool(proving.obligations)


def _low_byte(x: z3.BitVecRef | int) -> z3.BitVecRef:
    return z3.BitVecVal(x, 8) if isinstance(x, int) else z3.Extract(7, 0, x)


SMALL = "ozaki2(fp32, k=3, bits=7)"


def test_the_claims_are_proved() -> None:
    assert proved(SMALL)


@pytest.mark.parametrize("what", ["next", "less", "times", "digit", "half", "word", "positive"])
def test_what_is_broken_is_refuted(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    if what == "next":

        def next_to_zero(sign: z3.BitVecRef, left: z3.BitVecRef, modulus: int) -> z3.BitVecRef:
            return z3.If(sign == 1, -left, left)

        monkeypatch.setattr(smt_residues, "next_to_zero", next_to_zero)
    elif what == "less":
        right = smt_residues.less
        monkeypatch.setattr(
            smt_residues, "less", lambda x, digit, modulus: right(x, digit, modulus) - modulus
        )
    elif what == "times":
        monkeypatch.setattr(smt_residues, "times", lambda x, inverse: z3.ZeroExt(8, x * _low_byte(inverse)))
    elif what == "digit":
        digit = smt_residues.with_digit
        monkeypatch.setattr(
            smt_residues, "with_digit", lambda whole, x, modulus: digit(whole, x, modulus + 1)
        )
    elif what == "half":
        half = smt_residues.less_half
        monkeypatch.setattr(smt_residues, "less_half", lambda whole, p: half(whole, p) - 1)
    elif what == "word":
        word = smt_residues.word

        def wrong(x: Any, largest: z3.BitVecRef, *rest: Any) -> Any:
            return word(x, largest + 1, *rest)

        monkeypatch.setattr(smt_residues, "word", wrong)
    else:
        positive = smt_residues.positive
        monkeypatch.setattr(smt_residues, "positive", lambda total, t, p: positive(total, t, p) + 1)
    assert not proved(SMALL)


@pytest.mark.parametrize("what", ["sums", "moduli", "digits", "order", "largest"])
def test_terms_that_are_made_otherwise_are_seen(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Each function is right, and given what it is not to be given."""
    digits, put, total = smt_residues.digits, smt_residues.put_together, smt_residues.sum_of_remainders
    if what == "sums":
        monkeypatch.setattr(
            smt_residues, "sum_of_remainders", lambda a, b, t, p: total(a[::-1], b[1:] + b[:1], t, p)
        )
    elif what == "moduli":
        monkeypatch.setattr(
            smt_residues, "sum_of_remainders", lambda a, b, t, p: total(a, b, max(t - 1, 0), p)
        )
    elif what == "digits":
        monkeypatch.setattr(smt_residues, "digits", lambda left, p: digits([left[0], *left[:-1]], p))
    elif what == "order":
        monkeypatch.setattr(smt_residues, "put_together", lambda found, p: put(found[::-1], p))
    else:
        monkeypatch.setattr(smt_residues, "maximum", lambda fields: fields[0])
    with pytest.raises(ArgumentError, match="not seen of the terms"):
        proved(SMALL)


@pytest.mark.parametrize(
    "name", ["ozaki2(fp32, k=4, moduli=6)", "ozaki2(fp64, k=64, moduli=14)", "ozaki2(fp32, k=9, moduli=6)"]
)
def test_one_modulus_too_few_is_told_by_the_least_sum(name: str) -> None:
    i = emulation[name]
    p = i.spec.parameters_as(Residues)
    answer = prove("exactness", i)
    assert isinstance(answer, Fails)
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    fmt = i.spec.a_format
    a, b = ([fmt.value(x) for x in side] for side in (witness.codes.a, witness.codes.b))
    total = sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
    assert total == p.whole - p.offset
    assert i.spec.d_format.value(witness.results[0]) < 0  # P less than the sum
    more = emulation[name.replace(f"moduli={len(p.moduli)}", f"moduli={len(p.moduli) + 1}")]
    assert more.spec.parameters_as(Residues).suffices
    codes = [*witness.codes.a], [*witness.codes.b]
    right = more.dot_add(
        np.array([codes[0]], fmt.word), np.array([codes[1]], fmt.word), np.zeros(1, fmt.word)
    )
    assert Fraction(float(right.view(fmt.dtype)[0])) > 0


def test_sums_below_that_are_exact_with_too_few_moduli() -> None:
    i = emulation["ozaki2(fp32, k=4, moduli=6)"]
    A, B = np.array([[1, 2**-23, 0, 0]], np.float32), np.array([[1.5], [1], [0], [0]], np.float32)
    assert matmul(A, B, instruction=i).item() == 1.5 + 2**-23


def test_a_chain_has_no_argument() -> None:
    answer = prove("exactness", emulation["ozaki2(fp32, k=2)"].chained(4), timeout=30)
    assert isinstance(answer, Unknown)
