"""The structural properties: each holds somewhere with a proof, fails with a witness where it can, and is not proved of
a broken model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import property_table
import pytest
import z3

from mmaformal import ampere, blackwell, cdna1, cdna2, cdna3, datapath, hopper, rtx_blackwell, volta
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.relations import Relation, sample_broken, witness_of
from mmaformal.cases.shrink import shrink, size
from mmaformal.cases.witness import CaseWitness
from mmaformal.cli import main as command
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.smt import blocks, stages
from mmaformal.formats import Format, Specials, e2m1, e5m2, fp16, fp32, ue4m3
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.proof.lemmas import Argument
from mmaformal.queries import (
    accumulator_width,
    commutativity,
    order_independence,
    output_range,
    power_of_two_scaling,
    sign_symmetry,
    zero_padding,
)
from mmaformal.queries.properties import PROPERTIES
from mmaformal.rounding import RZ_FP32
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError, case_size

SMALL = volta["HMMA.884.F32.F32"]


def proved(solvers: LazyPortfolio, arguments: Callable[[], Iterable[Argument]]) -> bool:
    try:
        prove(Asker(solvers, 30), *arguments())
    except (NotProvedError, ArgumentError):
        return False
    return True


def settled(solvers: LazyPortfolio, name: str, instruction: Instruction, timeout: float = 20) -> Any:
    return PROPERTIES[name].settle(instruction, Asker(solvers, timeout))


def dot_add(spec: Any, codes: Codes) -> int:
    instruction = Instruction("x", "x", 1, 1, spec)
    scales = (codes.scale_a, codes.scale_b) if spec.scale_format else ()
    arrays = [np.array(x, f.word) for x, f in ((codes.a, spec.a_format), (codes.b, spec.b_format))]
    return int(instruction.dot_add(*arrays, np.array(codes.c, spec.c_format.word), *scales))


def check_witness(answer: Any) -> CaseWitness:
    """The results of a witness, once more through `Instruction.dot_add`."""
    assert isinstance(answer, Fails), answer
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    assert [dot_add(run.spec, run.codes) for run in witness.runs] == list(witness.results)
    assert witness.summary in str(answer)
    json.dumps(answer.to_json())
    return witness


# ---- order -------------------------------------------------------------------------------------------------------


def test_order_within_blocks_does_not_matter_on_hopper(solvers: LazyPortfolio) -> None:
    answer = settled(solvers, "order-independence", hopper["HMMA.16816.F32"])
    assert isinstance(answer, Holds)
    assert answer.proof.obligations


@pytest.mark.parametrize(
    "instruction",
    [SMALL, cdna3["v_mfma_f32_32x32x4_xf32"], cdna1["v_mfma_f32_32x32x4f16"]],
    ids=lambda i: i.algorithm,
)
def test_order_within_blocks(solvers: LazyPortfolio, instruction: Instruction) -> None:
    assert isinstance(settled(solvers, "order-independence", instruction), Holds)


def test_permutations_generate_those_within_blocks_and_between_them() -> None:
    spec = ampere["HMMA.16816.F32"].spec
    assert order_independence.products_together(spec) == [list(range(8)), list(range(8, 16))]
    orders = order_independence.within_blocks(spec)
    assert [sum(k != order[k] for k in range(16)) for order in orders] == [2, 8, 2, 8]
    (between,) = order_independence.across_blocks(spec)
    assert between[0] == 8
    assert between[8] == 0


@pytest.mark.parametrize(
    ("instruction", "k", "L", "across"),
    [("HMMA.16816.F32", L, L, False) for L in range(1, 7)]
    + [("HMMA.16816.F32", 6, L, True) for L in (1, 2, 3)],
)
def test_the_rule_of_permutations_is_so_by_trying(instruction: str, k: int, L: int, across: bool) -> None:
    spec = ampere[instruction].spec.replace(k=k, L=L)
    orders = order_independence.within_blocks(spec)
    orders += order_independence.across_blocks(spec) if across else []
    seen = new = {tuple(range(k))}
    while new:
        new = {tuple(each[i] for i in order) for each in new for order in orders} - seen
        seen = seen | new
    assert len(seen) == math.factorial(k)


def test_a_case_is_found_among_many_products_with_scales() -> None:
    """Two products of 64 whose sum counts beside a large c, and each alone does not."""
    spec = blackwell["UTCOMMA.F32.E2M1.E2M1.E8"].spec
    relation = order_independence.relation_reordered(spec, order_independence.across_blocks(spec)[0])
    found = sample_broken(relation)
    assert found is not None
    assert relation.breaks([found])[0]


def test_order_across_blocks_matters_on_ampere(solvers: LazyPortfolio) -> None:
    answer = settled(
        solvers, "order-independence-across-blocks", ampere["HMMA.16816.F32"].replace(k=4, L=2), 10
    )
    witness = check_witness(answer)
    assert size(witness.runs[0].spec, witness.codes)[:2] == (2, 0)  # two products, c = 0


def test_no_argument_is_known_for_products_that_change_steps() -> None:
    # Where no case is found that shows it to matter, the answer is Unknown.
    inner = Lowered(11, 3, RZ_FP32, 367, fp16, (0, 1, 2), RZ_FP32)
    for spec in (SMALL.spec.replace(k=2 * SMALL.k), DotAdd(6, e5m2, e5m2, fp32, fp32, inner)):
        order = order_independence.across_blocks(spec)[0]
        with pytest.raises(ArgumentError, match="from one step to another"):
            order_independence.argue_order(spec, order)


def test_a_maximum_that_ignores_a_term_depends_on_order(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "maximum", lambda xs: blocks.maximum(xs[1:]))
    orders = order_independence.within_blocks(SMALL.spec)
    assert not proved(
        solvers, lambda: (order_independence.argue_order(SMALL.spec, order) for order in orders)
    )


def test_truncation_that_depends_on_the_place_depends_on_order(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = iter(range(1000))

    def align(term: Any, e_max: Any, fraction_bits: int, F: int) -> Any:
        aligned = blocks.align(term, e_max, fraction_bits, F)
        return aligned & -2 if next(places) % 5 == 0 else aligned

    monkeypatch.setattr(stages, "align", align)
    (first, *_) = order_independence.within_blocks(SMALL.spec)
    assert not proved(solvers, lambda: [order_independence.argue_order(SMALL.spec, first)])


# ---- commutativity, signs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instruction",
    [SMALL, hopper["QGMMA.64x8x32.F32.E4M3.E5M2"], cdna2["v_mfma_f32_32x32x2bf16"]],
    ids=lambda i: i.algorithm,
)
def test_commutativity(solvers: LazyPortfolio, instruction: Instruction) -> None:
    assert isinstance(settled(solvers, "commutativity", instruction), Holds)


def test_a_product_that_cuts_one_factor_is_not_commutative(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(a: Any, b: Any, *rest: Any) -> Any:
        return blocks.multiply(a, b._replace(significand=b.significand & -2), *rest)

    monkeypatch.setattr(stages, "multiply", multiply)
    relation = commutativity.relation_exchanged(SMALL.spec)
    assert not proved(solvers, lambda: [commutativity.argue_exchanged(relation)])


@pytest.mark.parametrize("instruction", [SMALL, cdna1["v_mfma_f32_32x32x1f32"]], ids=lambda i: i.algorithm)
def test_sign_symmetry(solvers: LazyPortfolio, instruction: Instruction) -> None:
    assert isinstance(settled(solvers, "sign-symmetry", instruction), Holds)


def test_rounding_down_is_not_symmetric(solvers: LazyPortfolio) -> None:
    answer = settled(solvers, "sign-symmetry", cdna3["v_mfma_f32_32x32x4_xf32"], 5)
    witness = check_witness(answer)
    assert witness.results[0] ^ fp32.sign_mask != witness.results[1]


def test_a_model_that_rounds_down_is_not_proved_symmetric(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = blocks.round_code
    monkeypatch.setattr(
        blocks, "round_code", lambda code, drop, sign, *_: down(code, drop, sign, blocks.Rounding.RD)
    )
    assert not proved(
        solvers, lambda: [sign_symmetry.argue_negated(sign_symmetry.relation_negated(SMALL.spec))]
    )


# ---- zeros -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instruction",
    [
        SMALL,
        cdna3["v_mfma_f32_32x32x4_xf32"],
        cdna1["v_mfma_f32_32x32x2bf16"],
        cdna2["v_mfma_f32_32x32x2bf16"],
    ],
    ids=lambda i: i.algorithm,
)
def test_zero_padding(solvers: LazyPortfolio, instruction: Instruction) -> None:
    assert isinstance(settled(solvers, "zero-padding", instruction), Holds)


def test_zeros_with_the_exponent_of_their_fields_matter(solvers: LazyPortfolio) -> None:
    instruction = volta.revision("paper-v1")["HMMA.884.F32.F32"]
    check_witness(settled(solvers, "zero-padding", instruction, 5))


def test_another_exponent_of_zero_is_not_proved_harmless(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(a: Any, b: Any, bias: int, exponents: Any, e_zero: int, scales: Any = ()) -> Any:
        return blocks.multiply(a, b, bias, exponents, e_zero + 40, scales)

    monkeypatch.setattr(stages, "multiply", multiply)
    pad = zero_padding.padding(SMALL.spec)
    assert not proved(solvers, lambda: [zero_padding.argue_padded(pad)])


def test_what_is_compared_is_one_product_shorter() -> None:
    pad = zero_padding.padding(ampere["HMMA.16816.F32"].spec)
    assert pad.zeros == (7, 15)
    assert (pad.shorter.k, pad.shorter.parameters["L"]) == (14, 7)


def test_scaling_by_two_and_another_exponent_of_zero(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    argument = power_of_two_scaling.argue_doubled
    assert proved(solvers, lambda: [argument(SMALL.spec)])

    def multiply(a: Any, b: Any, bias: int, exponents: Any, e_zero: int, scales: Any = ()) -> Any:
        return blocks.multiply(a, b, bias, exponents, e_zero + 40, scales)

    monkeypatch.setattr(stages, "multiply", multiply)
    assert not proved(solvers, lambda: [argument(SMALL.spec)])


def test_flushing_products_breaks_scaling(solvers: LazyPortfolio) -> None:
    check_witness(settled(solvers, "power-of-two-scaling", cdna2["v_mfma_f32_32x32x2bf16"], 5))


# ---- what comes out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["no-nan-from-finite", "never-minus-zero", "every-number", "accumulator-width"]
)
def test_holds(solvers: LazyPortfolio, name: str) -> None:
    assert isinstance(settled(solvers, name, SMALL), Holds)


def test_products_that_overflow_make_a_nan(solvers: LazyPortfolio) -> None:
    witness = check_witness(settled(solvers, "no-nan-from-finite", cdna3["v_mfma_f32_32x32x4_2b_bf16"], 5))
    assert fp32.is_nan(witness.results[0])


def test_ieee_sums_give_minus_zero(solvers: LazyPortfolio) -> None:
    witness = check_witness(settled(solvers, "never-minus-zero", cdna1["v_mfma_f32_32x32x1f32"], 5))
    assert witness.results[0] == fp32.sign_mask


@pytest.mark.parametrize(
    ("instruction", "code"),
    [
        (hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], 1),
        (cdna2["v_mfma_f32_32x32x2bf16"], 1),
        (volta["HMMA.884.F32.F16"], 0x7F7FFFFF),
    ],
    ids=lambda x: getattr(x, "algorithm", ""),
)
def test_numbers_that_never_come_out(solvers: LazyPortfolio, instruction: Instruction, code: int) -> None:
    answer = settled(solvers, "every-number", instruction)
    assert isinstance(answer, Fails)
    assert answer.witness.code == code  # type: ignore[attr-defined]
    assert answer.witness.obligations  # type: ignore[attr-defined]
    json.dumps(answer.to_json())


def test_models_that_overflow_to_nan_keep_a_sign_or_cut_c_are_told(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, align = stages.encode, stages.align
    nan = z3.BitVecVal(blocks.canonical_nan(fp32), 32)
    with monkeypatch.context() as patch:
        patch.setattr(
            stages, "encode", lambda x, rho: z3.If(encode(x, rho) == fp32.infinity, nan, encode(x, rho))
        )
        assert not proved(solvers, lambda: [output_range.argue_no_nan(SMALL.spec)])
    with monkeypatch.context() as patch:
        patch.setattr(stages, "encode", lambda x, rho: encode(x, rho.with_signed_zero()))
        assert not proved(solvers, lambda: [output_range.never_minus_zero(SMALL.spec)])
    with monkeypatch.context() as patch:
        patch.setattr(stages, "align", lambda x, e, bits, F: align(x, e, bits, F) & -2)
        assert not proved(solvers, lambda: [output_range.passes_c_on(SMALL.spec)])


def test_a_five_term_sum_needs_three_carry_bits(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (sum_,) = accumulator_width.argue_width(SMALL.spec)
    assert accumulator_width.carry_bits(sum_) == 3
    bits = fda.sum_bits
    # The sum of the largest significands has as many bits as the accumulator, less the sign: one fewer wraps.
    assert sum(sum_.bounds).bit_length() + 1 == bits(SMALL.parameters)  # type: ignore[arg-type]
    monkeypatch.setattr(fda, "sum_bits", lambda parameters: bits(parameters) - 1)
    assert not proved(solvers, lambda: [accumulator_width.argue_width(SMALL.spec)[0]])


# ---- relations ---------------------------------------------------------------------------------------------------


def test_a_witness_that_both_encodings_do_not_give_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SMALL.spec
    order = order_independence.within_blocks(spec)[0]
    harmless = order_independence.relation_reordered(spec, order)
    codes = generate(spec, 1)[0]
    with pytest.raises(WitnessError, match="do not agree"):
        witness_of(SMALL, harmless, codes)


def test_shrinking_keeps_the_break_and_makes_it_smaller() -> None:
    spec = SMALL.spec.replace(k=8)
    order = order_independence.across_blocks(spec)[0]
    relation = order_independence.relation_reordered(spec, order)
    cases = generate(spec, 4000)
    row = int(np.flatnonzero(relation.runs(cases)[2])[0])
    small = shrink(spec, cases[row], relation.breaks)
    assert relation.runs(Rows.of([small]))[2][0]
    assert size(spec, small) <= size(spec, cases[row])


def test_sizes_are_those_of_witnesses() -> None:
    for instruction in (SMALL, cdna3["v_mfma_f32_32x32x16_bf8_bf8"]):
        spec, cases = instruction.spec, generate(instruction.spec, 200)
        for row in range(200):
            x = cases[row]
            assert size(spec, x)[:4] == case_size(spec, x.a, x.b, x.c)


# ---- command line, matrix ----------------------------------------------------------------------------------------


def test_prove_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command(["prove", "--list"]) == 0
    assert "order-independence" in capsys.readouterr().out
    assert (
        command(
            ["prove", "never-minus-zero", "volta", "HMMA.884.F32.F32", "--json", "--smtlib", str(tmp_path)]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["answer"] == "holds"
    assert list(tmp_path.glob("*.smt2"))
    assert command(["prove", "every-number", "volta", "HMMA.884.F32.F16"]) == 1
    assert command(["prove", "no-such-thing", "volta", "HMMA.884.F32.F32"]) == 2
    assert command(["prove", "commutativity", "volta"]) == 2


def test_matrix_resumes_and_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = {i.spec: [i] for i in (SMALL, volta["HMMA.884.F32.F16"])}
    monkeypatch.setattr(property_table, "distinct", lambda: specs)
    cache, out = tmp_path / "answers.jsonl", tmp_path / "properties.md"
    arguments = ["--cache", str(cache), "--out", str(out), "--property", "every-number"]
    assert property_table.main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    with cache.open("a") as file:
        file.write('{"key": "cut sh')  # a run that was killed as it wrote
    assert property_table.main(arguments) == 0
    assert capsys.readouterr().out == ""
    text = out.read_text()
    assert "| volta HMMA.884.F32.F32 |" in text
    assert "✗" in text
    assert "0x7f7fffff" in text
    monkeypatch.setattr(property_table, "sources", lambda: "others")
    assert not property_table.read(cache)


def test_rows_of_a_table_made_before_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (i.spec for i in (SMALL, volta["HMMA.884.F32.F16"]))
    specs = {first: [SMALL], second: [volta["HMMA.884.F32.F16"]]}
    one = "| volta HMMA.884.F32.F16 | " + " | ".join("✗" * len(PROPERTIES)) + " | 7 |"
    before = ["| 9 | every-number | with \\| in it | 0 | 1 | 0 | 40 |", "### fda", one]
    before += ["## Witnesses", "### every-number", "- fda, an old one: nothing gives 0x0"]
    old, out = tmp_path / "old.md", tmp_path / "new.md"
    old.write_text("\n".join(before))
    monkeypatch.setattr(property_table, "distinct", lambda: specs)
    arguments = ["--cache", str(tmp_path / "answers.jsonl"), "--keep", str(old), "--out", str(out)]
    assert property_table.main([*arguments, "--property", "every-number", "--architecture", "sme"]) == 0
    text = out.read_text()
    assert one in text
    assert "| every-number |" in text
    assert "| 0 | 1 | 0 | 40 |" in text
    assert "an old one" in text
    assert "those of the page before" in text
    assert "| volta HMMA.884.F32.F32 |" not in text  # nothing is known of it


def test_a_further_block_has_finite_scales_of_its_own(solvers: LazyPortfolio) -> None:
    unit = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"].replace(k=1, G=1, L=1, scale_block=1)
    assert isinstance(settled(solvers, "zero-padding", unit), Holds)
    answer = settled(solvers, "zero-padding", unit.replace(e_zero=None))
    assert isinstance(answer, Fails)
    codes = answer.witness.codes
    assert len(codes.scale_a) == 2
    assert all(ue4m3.is_finite(scale) for scale in (*codes.scale_a, *codes.scale_b))


@pytest.mark.parametrize(("exponent_bits", "bias"), [(1, 0), (3, 8), (1, 2)])
def test_carry_bits_of_formats_without_numbers_near_one(
    solvers: LazyPortfolio, exponent_bits: int, bias: int
) -> None:
    # No normal number has the exponent 0, at which all terms are put elsewhere.
    own = Format("own", 8, exponent_bits, 3, bias, Specials.NONE, None)
    one = Instruction("X", "test", 16, 8, DotAdd(3, own, own, fp32, fp32, Fda(8, 3, RZ_FP32, 360)))
    answer = settled(solvers, "accumulator-width", one)
    assert isinstance(answer, Holds), answer
    assert any("carry bits" in str(number) for number in answer.numbers)


def test_carry_bits_of_numbers_whose_exponent_field_is_all_ones(solvers: LazyPortfolio) -> None:
    """In e4m3 the largest numbers have the exponent field of the NaN: they are finite factors, too."""
    answer = settled(solvers, "accumulator-width", datapath["exact(k=1,a=e4m3,c=e5m2,rho=IEEE-E5M2)"])
    assert isinstance(answer, Holds), answer


def test_carry_bits_that_no_input_is_known_to_need(solvers: LazyPortfolio) -> None:
    # All numbers of `low` are below one, all normal numbers of `high` are above it.
    low = Format("low", 8, 2, 3, 4, Specials.NONE, None)
    high = Format("high", 8, 2, 3, 0, Specials.NONE, None)
    one = Instruction("X", "test", 16, 8, DotAdd(1, fp16, fp16, high, fp32, Fda(8, 1, RZ_FP32, -60)))
    assert isinstance(settled(solvers, "accumulator-width", one), Holds)
    answer = settled(solvers, "accumulator-width", one.replace(a_format=low, b_format=low))
    assert isinstance(answer, Unknown)
    assert answer.why.startswith("no input is known whose sum has ")


def test_a_case_is_made_smaller_where_no_scale_is_one() -> None:
    # The exponent 0, which would be the smallest, would take one more bit than the scales have.
    low = Format("low", 4, 4, 0, 16, Specials.NONE, None, signed=False, has_zero=False)
    spec = DotAdd(1, e2m1, e2m1, fp32, fp32, Fda(8, 1, RZ_FP32, -60), low, 1)
    relation = Relation(spec, spec, None, lambda x, _: x == 0, "")
    found = shrink(spec, Codes((3,), (5,), 0, (5,), (15,)), relation.breaks)
    assert (found.scale_a, found.scale_b) == ((15,), (15,))
