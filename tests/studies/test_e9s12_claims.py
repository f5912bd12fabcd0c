"""Claims about the dot product-add of E9S12 halves: proofs, their breaks, and the cases that refute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import e9s12_cases
import e9s12_cost
import numpy as np
import pytest
import z3
from support.e9s12_numbers import halves, nearest

from mmaformal import PROPERTIES, e9s12, matmul
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import SmtEncoding, run
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12 import executable
from mmaformal.encodings.dpa_e9s12.proofs.exact import prove_fma
from mmaformal.encodings.dpa_e9s12.proofs.losses import LossPlaces, prove_exact, prove_losses
from mmaformal.encodings.executable.blocks import decode
from mmaformal.formats import FORMATS, Format, bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError, prove
from mmaformal.queries import commutativity
from mmaformal.rounding import IEEE_FP32
from mmaformal.shown_stages import explain_case
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.studies.e9s12 import dot_claims as claims
from mmaformal.studies.e9s12.dot_claims import prove_addition_of_products, prove_factor_halves, prove_single
from mmaformal.studies.e9s12.prover import CLAIMS, E9s12Prover

ROOT = Path(__file__).resolve().parents[2]

Prove = Callable[[Composing, DotAdd], z3.BoolRef]

HOLD = ("halves", "fp16-rounded", "fma", "fma-code", "fma-least", "error", "addition")


def proved(prove: Prove, spec: DotAdd) -> bool:
    """Whether a theorem is proved; False if a claim of it is refuted."""
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        proving = Composing(Asker(portfolio, 120.0))
        try:
            proving.conclude_all(prove(proving, spec))
        except NotProvedError as error:
            if error.refuted:
                return False
            raise
        return bool(proving.proof().obligations)


@pytest.mark.parametrize(
    ("claim", "name"), [(each.name, name) for each in CLAIMS if each.name not in HOLD for name in each.of]
)
def test_cases_that_refute(claim: str, name: str) -> None:
    with E9s12Prover() as prover:
        assert isinstance(prover.prove(claim, name, 20.0), Fails)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "name"), [(each.name, name) for each in CLAIMS if each.name in HOLD for name in each.of]
)
def test_what_holds(claim: str, name: str) -> None:
    with E9s12Prover() as prover:
        assert isinstance(prover.prove(claim, name, 900.0), Holds)


@pytest.mark.parametrize("name", ["DP4A.FP16", "DP4A.BF16", "DP1A.FP32"])
def test_halves_and_the_papers_exponent(name: str) -> None:
    spec = e9s12[name].spec
    assert proved(prove_factor_halves, spec)
    assert not proved(lambda proving, spec: prove_factor_halves(proving, spec, 0), spec)


def test_breaks_of_one_product() -> None:
    one = e9s12["DP1A.FP32"].replace(accumulator_bits=50).spec
    assert not proved(lambda proving, spec: prove_fma(proving, spec, 0), one)
    blind = e9s12["DP4A.FP32"].replace(detects_zeros=False).spec
    assert not proved(lambda proving, spec: prove_fma(proving, spec, 0), blind)


def test_a_break_of_fp16_sums() -> None:
    """With one bit less a product loses its last place."""
    assert not proved(prove_exact, e9s12["DP4A.FP16"].replace(accumulator_bits=82).spec)


@pytest.mark.slow
def test_a_break_of_one_short_product() -> None:
    blind = e9s12["DP4A.BF16"].replace(detects_zeros=False).spec
    assert not proved(lambda proving, spec: prove_single(proving, spec, 0), blind)


def test_a_break_of_sums_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    right = claims.spread
    monkeypatch.setattr(claims, "spread", lambda spec: right(spec) + 1)
    assert not proved(prove_addition_of_products, e9s12["DP4A.FP32"].spec)


def test_a_break_of_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that is cut toward zero is not below its exact value."""

    def toward_zero(x: claims.smt_dpa.Term, e_max: z3.BitVecRef, F: int, bits: int) -> z3.BitVecRef:
        smt = claims.smt_dpa
        product = smt.pad(smt.resize(x.significand, smt.PRODUCT_BITS + 1), F - smt.PLACES)
        aligned = z3.LShR(product, smt.resize(e_max - x.exponent, product.size()))
        return z3.SignExt(bits - product.size(), smt.negate_if(x.sign, aligned))

    monkeypatch.setattr(claims.smt_dpa, "place", toward_zero)
    assert not proved(lambda proving, spec: prove_losses(proving, spec)[1], e9s12["DP4A.BF16"].spec)


def test_a_break_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least product's last place is all that a loss lacks to a unit."""
    right = LossPlaces.losses.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(LossPlaces, "losses", property(lambda self: tuple(x - 1 for x in right(self))))
    assert not proved(lambda proving, spec: prove_losses(proving, spec)[1], e9s12["DP4A.BF16"].spec)


def test_what_is_no_claim() -> None:
    with E9s12Prover() as prover:
        with pytest.raises(ValueError, match="no claim"):
            prover.prove("none", "DP1A.FP32")
        with pytest.raises(ValueError, match="says nothing of"):
            prover.prove("fp16-rounded", "DP1A.FP32")


def test_a_product_in_the_last_place_is_kept() -> None:
    """The cases that refute `rounded` are those of the largest second product."""
    for name in ("DP4A.BF16", "DP16A.BF16", "DP4A.FP32"):
        i = e9s12[name]
        a, b = ([i.a_format.code("1"), i.a_format.code("0x1p-39"), *[0] * (i.k - 2)] for _ in "ab")
        assert i.dot_add(a, b, fp32.code("-1")) == fp32.code("0x1p-78")


# ---- the tools of docs/e9s12.md --------------------------------------------------------------------------------------


def test_the_page_has_what_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    e9s12_cost.main()
    assert capsys.readouterr().out in (ROOT / "docs" / "e9s12.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_directed_cases_and_another_width() -> None:
    rng, seen = np.random.default_rng(0), 0
    for i in [each for each in e9s12 if each.algorithm == "dpa_e9s12"]:
        for kind in e9s12_cases.KINDS:
            a, b, c = e9s12_cases.cases(rng, i, kind, 2000)
            fmt, d = i.a_format, rows.dot_add(i.spec, a, b, c)
            for F in (78, 77):
                out = np.empty(len(c), np.uint32)
                e9s12_cases.expected(a, b, c, fmt.fraction_bits, fmt.exponent_bits, fmt.bias, F, True, out)
                differ = int((d != out).sum())
                assert F == 77 or not differ
                seen += differ
    assert seen


# ---- the looped accumulator ------------------------------------------------------------------------------------------


def looped(fmt: str, D: int, N: int, accumulator_bits: int) -> Instruction:
    own = FORMATS[fmt]
    spec = DotAdd(D, own, own, fp32, fp32, AccE9s12(D, N, accumulator_bits, IEEE_FP32))
    return replace(e9s12["DP1A.FP32"], spec=spec, name=f"ACC{D}.{fmt}")


def expected(spec: DotAdd, codes: Codes) -> int:
    """d of finite codes, from the paper's words, in integers and rational numbers."""
    p = spec.parameters_as(AccE9s12)
    F = p.accumulator_bits - 3 - p.carries(spec)
    total, exponent = 0, 0
    terms = [(m << 11, e) for m, e in halves(spec.c_format, codes.c)]
    for start in range(0, p.D, p.N):
        for x, y in zip(codes.a[start : start + p.N], codes.b[start : start + p.N], strict=True):
            terms += [
                (u * v, e + f) for u, e in halves(spec.a_format, x) for v, f in halves(spec.b_format, y)
            ]
        some = [e for m, e in terms if m] + ([exponent] if total else [])
        largest = max(some, default=0)
        total >>= largest - exponent if total else 0
        for m, e in terms:
            left = F - 22 - (largest - e)
            total += m << left if left >= 0 else m >> -left
        exponent, terms = largest, []
    return nearest(total * Fraction(2) ** (exponent - F)) if total else 0


LOOPED = [i for i in e9s12 if i.algorithm == "acc_e9s12"]


@pytest.mark.parametrize(
    "i", [*LOOPED, looped("bf16", 8, 2, 84), looped("fp32", 4, 2, 85)], ids=lambda i: i.name
)
def test_the_looped_accumulator(i: Instruction) -> None:
    cases = generate(i.spec, 150, distributions=["numbers"]).cases()
    found = run(i, cases)
    assert found == [expected(i.spec, codes) for codes in cases]
    assert SmtEncoding(i.spec).results(Rows.of(cases[:30])) == found[:30]


def test_the_looped_accumulator_in_matrices_and_told() -> None:
    """The accumulated sum is rounded once: 2^24 + 1 + 1 in three passes would be 2^24 rounded after each."""
    i = e9s12["DP1ACC2.FP32"]
    one, large = fp32.code("1"), fp32.code("0x1p24")
    assert i.dot_add([one, one], [one, one], large) == fp32.code("0x1.000002p24")
    once = e9s12["DP1A.FP32"]
    assert once.dot_add([one], [one], once.dot_add([one], [one], large)) == large
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 6), (6, 7)))
    d = np.asarray(matmul(a, b, instruction=i)).view(np.uint32)
    for row, column in np.ndindex(d.shape):
        x, y = a[row].view(np.uint32).tolist(), b[:, column].copy().view(np.uint32).tolist()
        assert i.chained(6).dot_add(x, y, 0) == d[row, column]
    told = str(explain_case(e9s12["DP4ACC8.BF16"], [0x3F80] * 8, [0x3F80] * 8, 0x10))
    assert "c low" in told


# ---- properties of other algorithms ----------------------------------------------------------------------------------


def settled(name: str, instruction: Instruction) -> bool:
    """Whether a property is proved of the SMT encoding."""
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        return isinstance(PROPERTIES[name].settle(instruction, Asker(portfolio, 60.0)), Holds)


@pytest.mark.parametrize("name", ["order-independence", "commutativity"])
def test_products_may_change_places(name: str) -> None:
    assert settled(name, e9s12["DP4A.FP16"])


def test_a_product_that_is_not_symmetric_is_not_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_first(
        x: claims.smt_dpa.E9S12, y: claims.smt_dpa.E9S12, detects_zeros: bool
    ) -> claims.smt_dpa.Term:
        return right(x, y._replace(exponent=y.exponent & 0x1FE), detects_zeros)

    right, relation = claims.smt_dpa.multiply, commutativity.relation_exchanged(e9s12["DP1A.FP32"].spec)
    assert settled("commutativity", e9s12["DP1A.FP32"])
    monkeypatch.setattr(claims.smt_dpa, "multiply", only_first)
    with (
        LazyPortfolio(None, DEFAULT_MEMORY) as portfolio,
        pytest.raises(NotProvedError, match="does not hold"),
    ):
        prove(Asker(portfolio, 20.0), commutativity.argue_exchanged(relation))


def test_the_width_of_an_exact_sum_of_products() -> None:
    """Sums of bf16 need 522 bits.  The paper's 540 (§IV-B) is of E9S12, which needs 554: from 2^255 down to 2^−298."""

    def width(*numbers: Fraction) -> int:
        """Bits of a fixed point that holds every product of two of these numbers, without a sign."""
        places = max(x.denominator for x in numbers).bit_length() - 1
        return int(max(numbers) ** 2).bit_length() + 2 * places

    def ends(fmt: Format) -> tuple[Fraction, Fraction]:
        return max(fmt.value(code) for code in range(fmt.sign_mask) if fmt.is_finite(code)), fmt.value(1)

    assert width(*ends(fp16)) == 80
    assert width(*ends(bf16)) == 522
    parts = [
        Fraction(half.significand) * Fraction(2) ** (half.exponent - executable.BIAS - executable.FRACTION)
        for code in (1, 0x7F7FFFFF)
        for half in executable.unpack(decode(code, fp32.layout), fp32)
        if not half.zero
    ]
    assert width(*parts) == 554
