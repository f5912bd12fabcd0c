"""The bound of products by programs over instructions: its proof, the proof's breaks, and what programs do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import program_table
import pytest
import z3
from program_table import KINDS, measure, table

from mmaformal import emulation
from mmaformal.analysis.units import Unit
from mmaformal.cli import main
from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import fp16, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import ArgumentError, NotProvedError
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.statistics import sample
from mmaformal.studies.emulation import program_bound, sums, words
from mmaformal.studies.emulation.program_bound import of_program
from mmaformal.studies.emulation.programs import UNIT_ROUNDOFF, Program
from mmaformal.studies.emulation.words import WordCut
from mmaformal.witness import WitnessError

VOLTA = "volta HMMA.884.F32.F32"
PROMOTED = "promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=128, every=4)"


@pytest.fixture
def asker() -> Iterator[Asker]:
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        yield Asker(portfolio, 600.0)


def holds(claims: Callable[[Composing], None], asker: Asker) -> bool:
    """Whether claims are proved; False if one is refuted."""
    proving = Composing(asker)
    try:
        claims(proving)
    except NotProvedError as error:
        if error.refuted:
            return False
        raise
    proving.proof()
    return True


def of(name: str) -> Program:
    return Program.of(emulation[name])


def cut_of(name: str, least: int | None = None) -> tuple[Emulated, WordCut]:
    p = of(name).parameters
    return p, WordCut.of(p, p.unit.a_format, least)


# ---- words -----------------------------------------------------------------------------------------------------------

CUTS = {
    f"ootomo({VOLTA})": (-13, (11, 23)),
    f"markidis({VOLTA})": (-2, (11, 23)),
    "tf32x3(ampere HMMA.1688.F32.TF32)": (-114, (11, 23)),
    "ootomo(ampere HMMA.1688.F32.TF32)": (-125, (11, 23)),
    "bf16x3(ampere HMMA.16816.F32.BF16)": (-117, (8, 17)),
    "bf16x9(ampere HMMA.16816.F32.BF16)": (-108, (8, 17, 26)),
}


@pytest.mark.parametrize("name", CUTS)
def test_what_words_leave_is_reached(name: str) -> None:
    """2^-p as told, and hardly less of some factor (or nothing, of three words of a factor that is no smaller)."""
    p, cut = cut_of(name)
    assert (cut.least, cut.places) == CUTS[name]
    rng, M, bits = np.random.default_rng(0), fp32.fraction_bits, cut.format.fraction_bits
    fraction = rng.integers(0, 1 << M, 1600)
    near = rng.choice([-1, 1], 1600) * rng.integers(1, 1 << max(M - 2 * bits, 2), 1600)
    fraction[::2] = (1 << M - bits - 1) + near[::2]
    lowest = cut.least + fp32.bias
    field = np.where(rng.random(1600) < 0.5, rng.integers(max(lowest - 30, 0), lowest + 2, 1600), lowest)
    most = [Fraction(0)] * p.words
    for code in (field << M | fraction).tolist():
        left, weight = fp32.value(code), max(abs(fp32.value(code)), Fraction(2) ** cut.least)
        for i, word in enumerate(words_of(p, cut, code)):
            left -= word / Fraction(2) ** (p.shift * i)
            most[i] = max(most[i], abs(left) / weight)
            assert abs(word) / Fraction(2) ** (p.shift * i) <= cut.sizes[i] * weight
    for found, places in zip(most, cut.places, strict=True):
        assert found <= Fraction(2) ** -places
        assert found >= Fraction(2) ** -places * Fraction(9, 10) or places == 26


@pytest.mark.parametrize("name", [*CUTS, PROMOTED])
def test_what_is_known_of_words_is_true_of_them(name: str) -> None:
    """The premises about real numbers, of numbers of factors of all sizes whose first words are finite."""
    (p, cut), rng = cut_of(name), np.random.default_rng(1)
    x, fmt = sums.WordNumbers.of("a", p.words), emulation[name].a_format
    known = x.known(p, cut)
    for code in rng.integers(0, fmt.codes, 60).tolist():
        if not fmt.is_finite(code) or abs(fmt.value(code)) >= 65520:
            continue
        value, found = fmt.value(code), words_of(p, cut, code)
        normal = Fraction(2) ** cut.format.min_exponent
        numbers = {x.x: value, x.weight: max(abs(value), Fraction(2) ** cut.least)}
        numbers |= dict(zip(x.words, found, strict=True))
        numbers |= {weight: max(abs(word), normal) for weight, word in zip(x.weights, found, strict=True)}
        told = z3.substitute(
            known, *((term, z3.Q(n.numerator, n.denominator)) for term, n in numbers.items())
        )
        assert z3.is_true(z3.simplify(told)), code


def words_of(p: Emulated, cut: WordCut, code: int) -> list[Fraction]:
    """Return the words that the executable encoding makes of a code."""
    from mmaformal.encodings.emulated import executable

    return [cut.format.value(word) for word in executable.words_of(code, p, cut.format).codes]


@pytest.mark.parametrize("name", CUTS)
def test_words_do_not_leave_half_as_much(name: str, asker: Asker) -> None:
    p, cut = cut_of(name)
    cut = replace(cut, places=(*cut.places[:-1], cut.places[-1] + 1))
    assert not holds(lambda proving: words.prove_words_of(proving, p, cut.format, cut), asker)


@pytest.mark.slow
@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("more", [0, -6, 9])
def test_words_of_each_scheme(name: str, more: int, asker: Asker) -> None:
    """With another exponent from which factors count as they are, too; and the least one is not lower."""
    p, cut = cut_of(name)
    least = max(cut.least + more, fp32.min_exponent)
    other = WordCut.of(p, cut.format, least)
    assert holds(lambda proving: words.prove_words_of(proving, p, cut.format, other), asker)
    if least < cut.least:
        wrong = replace(cut, least=least)
        assert not holds(lambda proving: words.prove_words_of(proving, p, cut.format, wrong), asker)


def test_a_word_that_is_cut_leaves_more(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms of a φ toward zero, told as if it were to nearest."""
    p, cut = cut_of(f"ootomo({VOLTA})")
    right = emulated.words
    cutting = replace(p, rounding=replace(p.rounding, rounding=Rounding.RZ))
    with pytest.raises(ValueError, match="not the nearest ones"):
        WordCut.of(cutting, cut.format)
    monkeypatch.setattr(
        words.emulated, "words", lambda x, q, fmt: right(x, replace(cutting, words=q.words), fmt)
    )
    assert not holds(lambda proving: words.prove_words_of(proving, p, cut.format, cut), asker)


# ---- products of words and sums --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CUTS, PROMOTED])
def test_products_of_words(name: str, asker: Asker) -> None:
    program = of(name)
    assert holds(sums.WordProducts(program.parameters, program.a, program.b).prove, asker)


BREAKS = {
    "shift": (Part(((0, 0),), 1), Part(((1, 0), (0, 1)), 1, 10)),
    "twice": (Part(((0, 0),), 1), Part(((1, 0), (0, 1), (0, 1)), 1, 11)),
    "not scaled": (Part(((0, 0), (1, 0), (0, 1)), 1),),
}


@pytest.mark.parametrize("parts", BREAKS.values(), ids=BREAKS)
def test_other_products_of_words(parts: tuple[Part, ...], asker: Asker) -> None:
    """A wrong shift, a product of words that is added twice, one that is not scaled."""
    program = of(f"ootomo({VOLTA})")
    p = replace(program.parameters, parts=parts)
    assert not holds(sums.WordProducts(p, program.a, program.b).prove, asker)


@pytest.mark.slow
def test_products_of_one_part_are_all_but_those_left_out(asker: Asker) -> None:
    """One of its questions, about real numbers, takes two minutes."""
    program = of(f"ootomo({VOLTA})")
    fewer = replace(program.parameters, parts=program.parameters.parts[:1])
    assert holds(sums.WordProducts(fewer, program.a, program.b).prove, asker)


def test_products_that_are_left_out_count(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    program = of(f"ootomo({VOLTA})")
    fewer = replace(program.parameters, parts=program.parameters.parts[:1])
    assert float(sums.lost(fewer, program.a, program.b)) == pytest.approx(2.0**-10, rel=2e-3)
    monkeypatch.setattr(sums, "left_out", lambda p: [])
    assert not holds(sums.WordProducts(program.parameters, program.a, program.b).prove, asker)


def test_a_share_that_is_too_small(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    program, right = of(f"ootomo({VOLTA})"), sums.share
    monkeypatch.setattr(sums, "share", lambda *x: right(*x) * Fraction(99, 100))
    assert not holds(sums.WordProducts(program.parameters, program.a, program.b).prove, asker)


@pytest.mark.parametrize("claims", [sums.prove_chain_of_sums, sums.prove_outside, sums.prove_together])
def test_sums(claims: Callable[[Composing], None], asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what the unit, the rounding and the words are off; not with twice as much."""
    assert holds(claims, asker)
    right, seen = sums.is_within, []

    def wider(x: z3.ArithRef, bound: z3.ArithRef) -> z3.BoolRef:
        if str(bound) not in ("f*(w + P)", "u*(t + scaled)", "g*(least + P)", "epsilon*Y", "eta"):
            return right(x, bound)
        seen.append(str(bound))
        return right(x, 2 * bound)

    monkeypatch.setattr(sums, "is_within", wider)
    assert not holds(claims, asker)
    assert seen


def test_scaling(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert holds(lambda proving: sums.prove_scaling(proving, 11), asker)
    right = sums.rescale
    monkeypatch.setattr(sums, "rescale", lambda x, fmt, rho, shift: right(x, fmt, rho, shift + 1))
    assert not holds(lambda proving: sums.prove_scaling(proving, 11), asker)


@pytest.mark.slow
def test_additions(asker: Asker) -> None:
    assert holds(sums.prove_addition_outside, asker)


@pytest.mark.parametrize("scheme", ["ootomo", "markidis"])
def test_sums_are_those_of_the_terms(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = emulation[f"{scheme}({VOLTA}, k=8)"].spec
    sums.check_flow_of_sums(spec)
    right = emulated.block_sum

    def other(p: Emulated, part: Part, *rest: object) -> object:
        swapped = tuple((j, i) for i, j in part.products)
        return right(p, replace(part, products=swapped), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(emulated, "block_sum", other)
    with pytest.raises(ArgumentError, match="not the unit's, of the words that are told"):
        sums.check_flow_of_sums(spec)


# ---- constants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "K"),
    [(f"markidis({VOLTA})", 16), (f"ootomo({VOLTA})", 16), (f"ootomo({VOLTA}, k=12)", 36), (PROMOTED, 256)],
)
def test_constants_are_those_of_the_sums_one_after_the_other(name: str, K: int) -> None:
    """G, as the claims have it, of c alone and of each block alone, exactly."""
    program = of(name)
    p, f = program.parameters, program.unit.factor(program.parameters.unit.k)

    def counted(where: tuple[int, int] | None) -> Fraction:
        """G − σ where the weight 1 is that of a block of a program, or of c."""
        G, sigma = (Fraction(where is None),) * 2
        for n, part in product(range(program.programs(K)), p.parts):
            each = part.every or 1
            for first in range(0, p.blocks, each):
                here = where is not None and where[0] == n and first <= where[1] < first + each
                for one in sums.operations_of_program(part):
                    P = sums.share(one, p, program.a, program.b) if here else Fraction(0)
                    off = UNIT_ROUNDOFF if part.every else f
                    own = P * program.unit.factor(program.chain(part)) if part.every else 0
                    G, sigma = (1 + off) * (G + P + own), sigma + P
        return G - sigma

    blocks = [counted(where) for where in product(range(program.programs(K)), range(p.blocks))]
    found = program.constants(K)
    assert 0 <= found.alpha - found.epsilon - max(blocks) < Fraction(1, 1 << 80)
    assert 0 <= found.beta - counted(None) < Fraction(1, 1 << 80)


def test_promoted_is_no_worse_than_what_matmul_promotes() -> None:
    program = of(PROMOTED)
    for K in (128, 4096):
        promoted = program.unit.promoted_factor(K, 4)
        found = program.constants(K)
        assert abs(promoted - found.alpha) < Fraction(1, 1 << 80)
        assert found.beta < promoted / 100


@pytest.mark.parametrize(
    ("name", "K", "alpha"),
    [
        (f"ootomo({VOLTA})", 4, 20.04),
        ("ootomo(hopper HMMA.16816.F32)", 4096, 531.1),
        (f"markidis({VOLTA})", 4, 14.04),
    ],
)
def test_constants(name: str, K: int, alpha: float) -> None:
    assert float(of(name).constants(K).alpha) * 2**24 == pytest.approx(alpha, rel=1e-3)


# ---- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        f"markidis({VOLTA})",
        f"ootomo({VOLTA})",
        "ootomo(hopper HMMA.16816.F32)",
        "bf16x9(ampere HMMA.16816.F32.BF16)",
        "tf32x3(ampere HMMA.1688.F32.TF32)",
        PROMOTED,
    ],
)
def test_whole_products(name: str) -> None:
    with LazyPortfolio() as portfolio:
        answer = of_program(emulation[name], portfolio, 4096, timeout=600)
    assert isinstance(answer, Holds), str(answer)
    exact = of(name).constants(4096)
    for number, value in zip(answer.numbers, exact, strict=False):
        assert 0 <= number.value - value <= value / (1 << 22)
    assert "by the rule: sums of a program" in str(answer)


@pytest.mark.slow
def test_a_unit_bound_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Unit.of

    def smaller(instruction: object) -> Unit:
        unit = right(instruction)  # type: ignore[arg-type]
        (stage,) = unit.stages
        return Unit(unit.instruction, (replace(stage, n=stage.n / 2),))

    monkeypatch.setattr(Unit, "of", smaller)
    with LazyPortfolio() as portfolio, pytest.raises(WitnessError, match="the proved n is"):
        of_program(emulation[f"ootomo({VOLTA})"], portfolio, timeout=200)


def test_what_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="another bound"):
        Unit.of(emulation[PROMOTED])
    with pytest.raises(ValueError, match="no program"):
        Program.of(of(PROMOTED).unit.instruction)
    assert main(["bound", "emulation", "ootomo(cdna2 f32_16x16x16f16)"]) == 2
    assert "takes subnormal numbers for zero" in capsys.readouterr().err
    assert main(["bound", "emulation", f"ozaki({VOLTA})"]) == 2
    assert "an exponent in common" in capsys.readouterr().err
    assert main(["bound", "emulation", f"ootomo({VOLTA})", "--promote-every", "4"]) == 2
    assert "says itself where its sums go" in capsys.readouterr().err
    assert main(["bound", "emulation", f"ootomo({VOLTA})", "--least", "20"]) == 2
    assert "an exponent of -126 to 15" in capsys.readouterr().err
    assert main(["bound", "emulation", PROMOTED, "--least", "2"]) == 2
    assert "cuts no words" in capsys.readouterr().err
    assert main(["bound", "volta", "HMMA.884.F32.F32", "--least", "2"]) == 2
    assert "is no program" in capsys.readouterr().err
    assert main(["bound", "emulation", f"ootomo({VOLTA})", "--k", "6", "--timeout", "0.01"]) == 3
    assert "K = 6, padded with zeros to 8" in capsys.readouterr().out


# ---- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"markidis({VOLTA})", f"ootomo({VOLTA})", PROMOTED])
def test_results_are_within_the_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_table, "SIDE", 16)
    program = of(name)
    row = measure(program, program.instruction.k, 256 * len(KINDS))
    assert row.results >= 256 * len(KINDS)
    assert 0.3 < row.nearest <= 1
    assert "**0 exceed" in table([row])
    assert "**1 exceed" in table([row, replace(row, nearest=1.5)])


def test_results_exceed_a_bound_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_table, "SIDE", 16)
    program = of(f"ootomo({VOLTA})")
    stage = replace(program.unit.stages[0], n=Fraction(0))
    program = replace(program, unit=replace(program.unit, stages=(stage,)))
    assert measure(program, program.instruction.k, 256 * len(KINDS)).nearest > 1


def test_zeros_that_a_product_is_padded_with_count() -> None:
    """K = 5 of an instruction of 4, of small numbers; any codes."""
    program, rng = of(f"ootomo({VOLTA})"), np.random.default_rng(3)
    i = program.instruction
    a, b = (
        rng.standard_normal(shape).astype(np.float32) * np.float32(2.0**-12) for shape in ((9, 5), (5, 9))
    )
    d = np.asarray(sample(i, a, b, None).errors)
    assert (np.abs(d) <= program.bound(a, b)).all()
    with pytest.raises(ValueError, match="no products"):
        program.bound(np.zeros((2, 0), np.float32), np.zeros((0, 2), np.float32))


# ---- what is told of the program, and is another one -----------------------------------------------------------------


def test_constants_that_are_too_small_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    program = of(f"ootomo({VOLTA})")
    program_bound._check(program, 2)
    whole = Program.constants
    for name, small in (("alpha", 100), ("beta", 2), ("gamma", 2), ("epsilon", 2)):
        monkeypatch.setattr(
            Program,
            "constants",
            lambda self, K, name=name, small=small: whole(self, K)._replace(
                **{name: getattr(whole(self, K), name) / small}
            ),
        )
        with pytest.raises(WitnessError, match="is less than the claims count"):
            program_bound._check(program, 2)


def test_a_word_that_another_one_changes_is_seen(monkeypatch: pytest.MonkeyPatch, asker: Asker) -> None:
    whole = emulated.words

    def others(x: z3.BitVecRef, p: Emulated, *rest: object) -> emulated.SplitWords:
        found = whole(x, p, *rest)  # type: ignore[arg-type]
        return found._replace(codes=(found.codes[0], found.codes[0])) if p.words == 2 else found

    monkeypatch.setattr(emulated, "words", others)
    program = of(f"markidis({VOLTA})")
    with pytest.raises(ArgumentError, match="the others are others"):
        words.prove_words_of(Composing(asker), program.parameters, fp16, program.a)


def test_a_chain_that_forgets_its_sum_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = emulation[f"markidis({VOLTA})"].chained(8).spec
    sums.check_flow_of_sums(spec)
    whole = emulated.step
    start: list[z3.BitVecRef] = []

    def step(
        of: DotAdd,
        p: Emulated,
        a: Sequence[z3.BitVecRef],
        b: Sequence[z3.BitVecRef],
        c: z3.BitVecRef,
        stages: Stages,
    ) -> emulated.EmulatedStep:
        start.append(c)
        return whole(of, p, a, b, start[0], stages)

    monkeypatch.setattr(emulated, "step", step)
    with pytest.raises(ArgumentError, match="a sum is not the unit's"):
        sums.check_flow_of_sums(spec)
