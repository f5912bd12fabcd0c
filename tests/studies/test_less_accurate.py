"""Farther from the exact sum: the comparison against exact arithmetic, the smallest input, and how often it happens."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest
import z3
from numpy.typing import NDArray
from support.random_cases import code

from mmaformal import emulation, hopper
from mmaformal.cases.codes import is_finite
from mmaformal.cases.witness import CaseWitness
from mmaformal.cli import main
from mmaformal.formats import fp16, fp32
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.studies.emulation import one_product
from mmaformal.studies.emulation.less_accurate import (
    DRAWN,
    farther,
    how_often,
    less_accurate,
    nearest_product,
)

VOLTA = [emulation[f"{scheme}(volta HMMA.884.F32.F32)"] for scheme in ("ootomo", "markidis")]


def test_the_comparison_is_exact() -> None:
    """The comparison is right on codes of all kinds, and on results next to each other around the exact sum."""
    rng, seen = random.Random(1), set()
    while len(seen) < 2 or rng.random() < 0.99:
        codes = [code(fp32, rng) for _ in range(6)]
        if not all(map(fp32.is_finite, codes)):
            continue
        a, b, e, f, x, y = codes
        s = fp32.value(a) * fp32.value(b) + fp32.value(e) * fp32.value(f)
        if rng.random() < 0.7 and abs(s) < 2**100:
            x = int(np.float32(s).view(np.uint32))
            y = x + rng.choice((-1, 1)) if x & 0x7FFFFFFF else 1
        expected = abs(fp32.value(x) - s) > abs(fp32.value(y) - s)
        values = [z3.BitVecVal(each, 32) for each in (x, y, a, b, e, f)]
        term = farther(values[0], values[1], [(values[2], values[3]), (values[4], values[5])])
        assert z3.is_true(z3.simplify(term)) == expected
        seen.add(expected)


def test_the_smallest_input_by_hand() -> None:
    """(1 + 2^-12)·(1 + 2^-11) has 24 bits: the product of both second words is its last one."""
    a, b = np.zeros((2, 4), np.float32)
    a[0], b[0] = 1 + 2.0**-12, 1 + 2.0**-11
    ootomo, markidis = (Fraction(float(i.dot_add(a, b, np.float32(0)))) for i in VOLTA)
    exact = (1 + Fraction(1, 2**12)) * (1 + Fraction(1, 2**11))
    assert (markidis, ootomo) == (exact, exact - Fraction(1, 2**23))


@pytest.mark.parametrize(
    "unit",
    [
        "turing HMMA.1688.F32",
        "ampere HMMA.16816.F32",
        "ada HMMA.16816.F32",
        "hopper HGMMA.64x8x16.F32",
        "blackwell UTCHMMA.F32",
        "rtx_blackwell HMMA.16816.F32",
        "cdna1 f32_16x16x16f16",
        "cdna2 f32_16x16x16f16",
        "cdna3 f32_16x16x16_f16",
    ],
)
def test_it_shows_on_every_unit(unit: str) -> None:
    ootomo, markidis = (emulation[f"{scheme}({unit})"] for scheme in ("ootomo", "markidis"))
    a, b = np.zeros((2, ootomo.k), np.float32)
    a[0], b[0] = 1 + 2.0**-12, 1 + 2.0**-11
    assert markidis.dot_add(a, b, np.float32(0)) == np.float64(a[0]) * b[0]
    assert ootomo.dot_add(a, b, np.float32(0)) == np.float64(a[0]) * b[0] - 2.0**-23


def test_the_smallest_input_of_cdna2_by_hand() -> None:
    """The first word is subnormal, and so zero there; the second is the least normal number, scaled."""
    for unit in ("cdna2 f32_4x4x4f16", "cdna2 f32_16x16x16f16"):
        ootomo, markidis = (emulation[f"{scheme}({unit})"] for scheme in ("ootomo", "markidis"))
        a, b = np.zeros((2, ootomo.k), np.float32)
        a[0], b[0] = 1.5 * 2.0**-24, 1
        assert markidis.dot_add(a, b, np.float32(0)) == 0
        assert ootomo.dot_add(a, b, np.float32(0)) == -(2.0**-25)


def test_how_often() -> None:
    found = {drawn: how_often(*VOLTA, drawn, 2000) for drawn in DRAWN}
    assert all(each.farther + each.nearer <= each.rows == 2000 for each in found.values())
    assert 500 < found["normal"].farther < found["normal"].nearer < 700
    assert found["normal, times 2^-12"].nearer > 1990  # second words of Markidis underflow
    other = how_often(*VOLTA[::-1], "normal", 2000)
    assert (other.farther, other.nearer) == (found["normal"].nearer, found["normal"].farther)
    assert str(found["normal"]).startswith("normal, 2000 rows: farther ")


@pytest.mark.slow
def test_a_model_is_not_farther_than_itself() -> None:
    i = emulation["promoted(datapath fda(k=2,frac_bits=30,a=fp32))"]
    answer = less_accurate(i, i, products=2, timeout=60)
    assert isinstance(answer, Holds)
    assert any(
        rule.startswith("places: ") for rule in answer.proof.rules
    )  # products change places: that is proved too
    assert any("order" in each.statement for each in answer.proof.obligations)


@pytest.mark.slow
def test_the_smallest_input_is_found() -> None:
    """All of it takes ten minutes; the time ends in the search for fewer significand bits."""
    answer = less_accurate(*VOLTA, timeout=300)
    assert isinstance(answer, Fails)
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    x, y = (fp32.value(code) for code in witness.results)
    assert witness.exact is not None
    assert abs(x - witness.exact) > abs(y - witness.exact)
    assert witness.minimality[2].startswith("significand bits set: 2")


# ---- where it cannot -------------------------------------------------------------------------------------------------


def products(count: int, bits: int, least: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """a of so many significant bits, at most, and exponents from `least` on; b of fp16."""
    rng = np.random.default_rng(5)
    a = np.ldexp(rng.integers(1 << bits - 1, 1 << bits, count), rng.integers(least, 15, count) - bits + 1)
    b = rng.integers(0, 0x7C00, count).astype(np.uint16).view(np.float16)
    return a.astype(np.float32), b.astype(np.float32)


def wrong(bits: int, least: int) -> int:
    """How many such products Ootomo and Yokota do not round as fp32 does."""
    a, b = np.zeros((2, 20_000, 4), np.float32)
    a[:, 0], b[:, 0] = products(len(a), bits, least)
    return int((VOLTA[0].dot_add(a, b, np.zeros(len(a), np.float32)) != a[:, 0] * b[:, 0]).sum())


def test_the_condition_is_true_and_no_weaker_one_is() -> None:
    assert wrong(23, -13) == 0
    assert wrong(24, -13) > 100
    assert wrong(23, -14) > 10


@pytest.mark.slow
def test_where_nothing_is_nearer_is_proved() -> None:
    answer = nearest_product(VOLTA[0], timeout=300)
    assert isinstance(answer, Holds)
    assert any(rule.startswith("distributive law") for rule in answer.proof.rules)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["least", "bits", "empty"])
def test_a_weaker_condition_is_not_proved(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_bits(a: z3.BitVecRef, b: z3.BitVecRef, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        large = z3.UGE(z3.Extract(30, 23, a), 127 + one_product.LEAST)
        return z3.And(is_finite(x, fp16), large, one_product.is_whole_word(b, y))

    if change == "least":
        monkeypatch.setattr(one_product, "LEAST", -14)
    elif change == "bits":
        monkeypatch.setattr(one_product, "nearest_condition", all_bits)
    else:
        monkeypatch.setattr(one_product, "is_whole_word", lambda code, word: is_finite(word, fp16))
    answer = nearest_product(VOLTA[0], timeout=100)
    assert isinstance(answer, Unknown)
    assert "does not hold" in answer.why


def test_other_programs_have_no_such_argument() -> None:
    answer = nearest_product(VOLTA[1], timeout=20)
    assert isinstance(answer, Unknown)
    assert "no argument for emulated" in answer.why


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="both are to take fp32"):
        less_accurate(hopper["HMMA.16816.F32"], VOLTA[0])
    for products in (0, -1):
        with pytest.raises(
            ValueError, match=f"products is {products}: inputs have 1 nonzero product at least"
        ):
            less_accurate(*VOLTA[:2], products=products)


@pytest.mark.parametrize("products", ["0", "-1", "one"])
def test_the_command_refuses_no_products_in_a_line(products: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["less-accurate", VOLTA[0].name, VOLTA[1].name, "--products", products]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--products is a number of products of 1 or more" in line


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        return main(["less-accurate", *arguments]), capsys.readouterr().out

    names = [i.name for i in VOLTA]
    status, text = run(*names, "--random", "100")
    assert (status, len(text.splitlines())) == (0, len(DRAWN))
    status, text = run(*names, "--random", "100", "--json")
    assert [each["drawn"] for each in json.loads(text)] == list(DRAWN)
    for wrong_use in ((names[0],), (*names, "--never"), ("ootomo(volta HMMA)", names[1])):
        assert run(*wrong_use)[0] == 2
    assert run(names[1], "--never", "--no-cache")[0] == 3
