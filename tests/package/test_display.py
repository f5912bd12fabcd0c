"""A prompt and a notebook show nothing that is long, and everything that goes into HTML is escaped."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import inspect
import io
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any, is_typeddict

import numpy as np
import pytest
import z3
from support.proofs import answered, some_proof

import mmaformal
import mmaformal.queries.elimination as elimination
from mmaformal import (
    ARCHITECTURES,
    PROPERTIES,
    Different,
    Equal,
    Fails,
    Holds,
    Instruction,
    Number,
    Proof,
    Sizes,
    Unknown,
    ampere,
    apple_amx,
    armv8_6,
    cdna1,
    cdna2,
    cdna3,
    datapath,
    e9s12,
    emulation,
    find_difference,
    hopper,
    probe,
    sapphire_rapids,
    verilog,
    volta,
)
from mmaformal.analysis.recommend import recommend_scaling
from mmaformal.apple import AmxOperand, AmxState, Word
from mmaformal.apple.witness import AmxWitness
from mmaformal.campaign import Campaign
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, symbolic_inputs
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.display import (
    ShortRepr,
    clipped,
    csv_text,
    html_table,
    latex_text,
    minimality_lines,
    short_repr,
)
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.formats import FORMATS
from mmaformal.identity import identity
from mmaformal.kernels import kernel_for
from mmaformal.kernels.compiled import ConstantType
from mmaformal.kernels.plain import PlainKernel
from mmaformal.queries.classes import ModelClass, RunNext
from mmaformal.queries.compare_architectures import Comparison
from mmaformal.queries.compare_architectures import table as comparisons
from mmaformal.queries.constraints import finite, fixed, magnitude, nonzero, normal
from mmaformal.queries.diagnose import Diagnosis
from mmaformal.queries.diagnose_gemm import GemmDiagnosis, Miss
from mmaformal.queries.max_difference import max_difference
from mmaformal.queries.mismatches import Mismatches, MismatchGroup
from mmaformal.queries.output_range import Unreachable
from mmaformal.queries.structure_classes import SameAs
from mmaformal.recordings.check import CheckReport, FileFailure, Mismatch, NotModelled
from mmaformal.recordings.products import RecordedProduct
from mmaformal.recordings.read import Recording, RowBlock
from mmaformal.recordings.report import Checks
from mmaformal.recordings.states import StatesReport
from mmaformal.rounding import CONVERSIONS, Rounding
from mmaformal.solver.answers import Obligation
from mmaformal.solver.evidence import EvidenceStore, Record
from mmaformal.solver.portfolio import Outcome
from mmaformal.spaces.common import Types
from mmaformal.statistics import Errors
from mmaformal.structures import Structure
from mmaformal.studies.e9s12.operators import OPERATORS
from mmaformal.studies.narrow_range import Model1
from mmaformal.witness import Witness

#: Characters of any repr: three or four lines of a terminal.
LONGEST = 400

HMMA = hopper["HMMA.16816.F32"]
SCALED = ARCHITECTURES["rtx_blackwell"]["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
LONG = "x <b>&amp;</b> " * 100
#: a constraint that fixes much
EASY = [fixed(a=dict.fromkeys(range(64), 0), b=dict.fromkeys(range(64), 0), c=0xCC000000)]


def obligations(count: int = 20) -> tuple[Obligation, ...]:
    return tuple(answered(f"o{i}", LONG, LONG, "z3", "1", 0.5) for i in range(count))


def samples(folder: Path) -> Iterator[Any]:
    """At least one object of every kind that the public functions return or take."""
    yield Sizes(())
    yield verilog("volta HMMA.884.F16.F16")
    yield ARCHITECTURES
    yield PROPERTIES
    yield tuple(FORMATS.values()), tuple(CONVERSIONS.values())
    codes = [0x3C00] + [0] * 15
    witness = Witness.of(ampere["HMMA.16816.F32"], HMMA, codes, codes, 0xCC000000)
    different = Different("x = y", witness, ("1 nonzero product: proved minimal",), obligations(2), 1.0)
    yield different
    yield dataclasses.replace(different, question=LONG, minimality=(LONG,) * 9, obligations=obligations())
    equal = find_difference(HMMA, ARCHITECTURES["blackwell"]["HMMA.16816.F32"])
    assert isinstance(equal, Equal)
    yield equal, Comparison("HMMA.16816.F32", HMMA, HMMA, different)
    proof, number = some_proof(*obligations()), Number("n", 2**400, LONG)
    yield (
        Equal(LONG, proof, 1.0),
        Holds(LONG, proof, 1.0, (number,) * 3, (LONG,) * 9),
        Unknown(LONG, LONG, obligations(), 1),
    )
    case = Codes((1,) * 16, (2,) * 16, 3)
    one, other = Run("", HMMA.spec, case, 1), Run(LONG, HMMA.spec, case, 2)
    for shown in (
        CaseWitness(HMMA, (one, other), minimality=(LONG,)),
        CaseWitness(HMMA, (one,), Fraction(1, 2**400), (LONG,) * 4, (LONG,)),
        Unreachable(HMMA, 1, LONG, obligations()),
    ):
        yield Fails(LONG, shown, LONG, 1.0)
    yield symbolic_inputs(SCALED.spec)
    yield finite(), normal(), nonzero(), magnitude(1, 2), EASY
    for i in (HMMA, SCALED, cdna1["f32_4x4x4f16"], cdna2["f32_4x4x4f16"], cdna3["f32_4x4x4_16b_f16"]):
        yield kernel_for(i.spec)
    yield (
        PlainKernel(HMMA.spec),
        kernel_for(ampere["DMMA.884"].spec),
        kernel_for(hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"].spec),
        *(kernel_for(i.spec.in_order) for i in (*sapphire_rapids, armv8_6["BFDOT"])),
    )
    yield OPERATORS["MA8X2.FP32"]
    yield AmxState(), AmxOperand(z_row=63), Word("fma16", 3), AmxWitness("fma16", 1, AmxState(), LONG)
    yield AccE9s12(4, 4, 84, CONVERSIONS["IEEE-FP32"])
    yield kernel_for(apple_amx["fma16.F32"].spec), kernel_for(e9s12["DP4A.FP16"].spec)
    yield kernel_for(cdna1["v_mfma_f32_32x32x4f16"].spec)
    yield (
        kernel_for(datapath["mul_add(k=2)"].spec),
        kernel_for(datapath["gfda(k=4,group=2,frac_bits=9)"].spec),
        kernel_for(emulation["ootomo(volta HMMA.884.F32.F32)"].spec),
        kernel_for(emulation["ozaki2(fp32)"].spec),
    )
    numbers = np.ones((999, 99))
    errors = Errors(FORMATS["fp32"], numbers, numbers, numbers)
    yield errors, errors.statistics()
    with EvidenceStore(folder / "evidence.db") as store:
        yield store, Record("0" * 64, "z3", "1", "unsat", LONG, LONG, 1.0, 1, LONG), Campaign(ampere, store)
    yield Outcome("sat", "z3", "1", 1.0, {f"a{i}": 1 << 60 for i in range(999)})
    path = folder / (LONG[:200].replace("/", "") + ".npz")
    fp16, fp32 = FORMATS["fp16"], FORMATS["fp32"]
    recording = Recording(
        path, LONG, "hopper", LONG, LONG, HMMA, fp16, fp16, fp32, fp32, 10**9, 16, {"x": LONG}
    )
    row = Mismatch(1, (1,) * 64, (2,) * 64, 3, 4, 5)
    outcomes = (
        CheckReport(recording, HMMA, 10**9, 10**8, row, 1),
        NotModelled(recording),
        StatesReport(Path("x" * 1000), "a device", Counter(vecint=10**9), 1, 0, "row 0"),
        FileFailure(path, LONG),
    )
    yield recording, Checks(outcomes * 100)
    probed = probe(volta["HMMA.884.F32.F32"], name=LONG)
    yield probed, probed.tree, probed.sums, probed.nans, probed.zero_exponent, probed.evidence
    yield from of_products(path)
    model = Model1.of("e4m3", "fp16", subnormals=False)
    yield model, model.matmul(numbers.T, numbers)
    yield recommend_scaling(numbers.T, numbers, HMMA), max_difference(HMMA, HMMA)
    yield RowBlock(*(np.ones((999, 16), np.uint64) for _ in range(4)))


def of_products(path: Path) -> Iterator[Any]:
    bf16 = FORMATS["bf16"]
    structure = Structure(sapphire_rapids["TDPBF16PS"], 1 << 20, d_format=bf16)
    miss = Miss(structure, 10**9, 10**9, 10**9, gives=1, recorded=2)
    same = SameAs(structure, structure, LONG, some_proof(*obligations()))
    yield GemmDiagnosis(
        (structure,) * 9, 10**9, (same,) * 9, (miss,) * 9, 10**9, True, (HMMA,) * 99, (10**9,) * 3, 1.0, LONG
    )
    cases = generate(HMMA.spec, 3)
    explained = ModelClass(HMMA.spec, HMMA.spec, (HMMA.spec,) * 99, known_as=(LONG,) * 9)
    refuted = elimination.RefutedModel(HMMA.spec, 10**9, 10**9, gives=1, recorded=2)
    types = Types(*(FORMATS[name] for name in ("fp16", "fp16", "fp32", "fp32")))
    tests = (RunNext(cases[0], (1,) * 99),) * 99
    group = MismatchGroup(LONG, 10**9, Mismatch(1, (1,) * 64, (2,) * 64, 3, 4, 5), ("F", 24))
    formats = (FORMATS[name] for name in ("fp16", "fp16", "fp32", "fp32"))
    recording = Recording(path, LONG, "hopper", LONG, LONG, HMMA, *formats, 10**9, 16, {"x": LONG})
    yield Mismatches(recording, HMMA, 10**9, (group,) * 9, HMMA, (("F", 24),) * 99, (LONG,) * 99, 1.0)
    yield Diagnosis(
        (explained,) * 9, tests, (refuted,) * 9, types, 16, 10**9, 10**9, True, 10**9, 10**9, 10**9, None, 1.0
    )
    array = np.ones((99, 99), np.uint16)
    yield RecordedProduct(path, array, array, array, bf16, bf16, bf16, {"x": LONG})


def reachable(roots: Iterator[Any]) -> dict[type, list[Any]]:
    """Objects of this package's classes that one comes to by attributes and items, a few of each class."""
    found: dict[type, list[Any]] = {}
    stack, seen = list(roots), set()
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, (str, bytes, int, float, np.ndarray, z3.AstRef, type)):
            continue
        seen.add(id(x))
        if type(x).__module__.startswith("mmaformal"):
            found.setdefault(type(x), []).append(x)
            stack += vars(x).values() if hasattr(x, "__dict__") else []
        if isinstance(x, Mapping):
            stack += [*x.keys(), *x.values()]
        elif isinstance(x, (tuple, list, set, frozenset)):
            stack += x
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[type, list[Any]]:
    return reachable(samples(tmp_path_factory.mktemp("evidence")))


def modules() -> Iterator[Any]:
    for package in ("mmaformal", "mmaformal.queries", "mmaformal.studies"):
        root = importlib.import_module(package)
        yield root
        for each in pkgutil.iter_modules(root.__path__, f"{package}."):
            extra = each.name in ("mmaformal.torch", "mmaformal.studies.training") and not find_spec("torch")
            if each.name.rpartition(".")[2] not in ("__main__", "encodings", "cli") and not extra:
                module = importlib.import_module(each.name)
                yield module
                if each.ispkg and each.name != "mmaformal.queries":
                    for inner in pkgutil.iter_modules(module.__path__, f"{each.name}."):
                        yield importlib.import_module(inner.name)


#: rooms for proofs, of which a user meets what answers lead to
ROOMS = tuple(
    f"mmaformal.{room}"
    for room in (
        *("queries", "campaign", "facts", "theory", "proof", "cases", "lanes"),
        *("studies.amx", "studies.claims", "studies.unit_study.enough_width"),
        *(f"studies.e9s12.{name}" for name in ("dot_claims", "prover", "short_fma", "sum_claims")),
        *(f"studies.e9s12.{name}" for name in ("same_sums", "sums_of_terms")),
        *(f"studies.emulation.{name}" for name in ("less_accurate", "one_product", "program_bound")),
        *(f"studies.emulation.{name}" for name in ("sums", "words")),
        *("studies.narrow_range.argument", "studies.narrow_range.theorems"),
    )
)


def public_classes() -> list[type]:
    """The classes that the modules of mmaformal itself define: those for proofs are met if something leads there."""
    every = {
        each
        for module in modules()
        for name, each in vars(module).items()
        if inspect.isclass(each) and each.__module__ == module.__name__ and not name.startswith("_")
    }
    return sorted((x for x in every if not x.__module__.startswith(ROOMS)), key=str)


def test_no_repr_is_long(found: dict[type, list[Any]]) -> None:
    too_long = {
        f"{kind.__qualname__}: {text[:80]}": len(text)
        for kind, objects in found.items()
        for text in map(repr, objects)
        if len(text) > LONGEST
    }
    assert not too_long
    bare = {kind for kind, objects in found.items() if " object at 0x" in repr(objects[0])}
    assert not bare, "a repr that says nothing"


def test_every_public_class_was_met_or_is_short_by_construction(found: dict[type, list[Any]]) -> None:
    left = []
    for kind in public_classes():
        if kind in found or issubclass(kind, (BaseException, ShortRepr)) or inspect.isabstract(kind):
            continue
        if (
            kind.__repr__ is object.__repr__
            or hasattr(kind, "__members__")
            or getattr(kind, "_is_protocol", False)
            or is_typeddict(kind)
        ):
            continue  # its address, a name, a dict
        if hasattr(kind, "_fields") and len(repr(kind(*[np.ones(10**5)] * len(kind._fields)))) <= LONGEST:
            continue
        left.append(kind.__qualname__)
    # integers of a format, inside of a kernel; values of planes; two slices; base classes; a type of numba's; click's;
    # torch's; a str
    assert set(left) <= {
        "Obligations",
        "ReorderedKernel",
        "LanesKernel",
        "SignedKernel",
        "Layout",
        "Sums",
        "Block",
        "Answer",
        "Result",
        "Parameters",
        "ConstantType",
        "Commands",
        "Cuts",
        "GivenFormat",
        "Transformer",
        "AbsentModule",
        "LastingLine",
        "PlaneValues",
    }


@pytest.mark.parametrize(
    "kind", sorted(ShortRepr.__subclasses__(), key=str), ids=lambda kind: kind.__qualname__
)
def test_a_short_repr_is_short_whatever_the_fields_hold(kind: type) -> None:
    if kind.__repr__ is not ShortRepr.__repr__:
        pytest.skip("has its own")
    huge: list[Any] = [
        LONG,
        tuple(range(10**5)),
        np.ones(10**5),
        dict.fromkeys(range(999), LONG),
        [[LONG] * 99] * 99,
    ]
    term = z3.BitVec("x", 64)
    for _ in range(500):
        term = term * term + 1
    for value in (*huge, term, 10**4000, lambda: LONG):
        x = object.__new__(kind)
        for field in dataclasses.fields(kind):
            object.__setattr__(x, field.name, value)
        assert len(repr(x)) <= LONGEST
        assert repr(x).startswith(kind.__name__)


def test_clipping_keeps_both_ends() -> None:
    assert clipped("a b\n  c") == "a b c"
    text = clipped("".join(map(str, range(100))), 40)
    assert len(text) <= 40
    assert text.startswith("0123456789")
    assert text.endswith("9899")
    assert short_repr(RowBlock(*(np.ones((2, 3), np.uint16),) * 4)).startswith("RowBlock(a=uint16[2, 3], b=")


class Strict(HTMLParser):
    """Raises AssertionError for tags that do not nest, and for any that a text brought in."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        allowed = [
            "div",
            "small",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "pre",
            "details",
            "summary",
            "ul",
            "li",
        ]
        drawn = tag in ("g", "title", "rect", "path", "text") and "svg" in self.open
        assert tag in allowed or tag in ("b", "svg") or drawn
        if tag == "b":
            assert self.open in (["div"],), "a <b> outside a title"
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_escaped_and_whole(found: dict[type, list[Any]]) -> None:
    with_html = {kind for kind in found if hasattr(kind, "_repr_html_")}
    wanted = {Different, Equal, Holds, Fails, Unknown, Proof, Instruction, Recording, Checks, CheckReport}
    assert wanted <= with_html
    assert {type(ampere), mmaformal.Witness, CaseWitness} <= with_html
    for kind in with_html:
        for x in found[kind][:40]:
            parser = Strict()
            parser.feed(x._repr_html_())
            parser.close()
            assert not parser.open
            assert parser.text.strip()
    assert html_table(("<i>",), [("<script>",)]).count("&lt;") == 2


def test_what_is_the_answer_is_shown_and_what_is_long_is_cut(found: dict[type, list[Any]]) -> None:
    holds = Holds("it does", some_proof(*obligations(200)), 1.0)._repr_html_()
    assert len(holds) < 20_000
    assert "and 176 rows more: verbose(), table(), write_smtlib(folder)" in holds
    assert "<details open>" in found[Different][0]._repr_html_()
    assert "<details open>" in ampere._repr_html_()
    assert all(name in PROPERTIES._repr_html_() for name in PROPERTIES)
    assert all(name in ARCHITECTURES._repr_html_() for name in ARCHITECTURES)
    assert "order of summation" in probe(volta["HMMA.884.F32.F32"])._repr_html_()


def test_tables_are_csv_and_latex(tmp_path: Path) -> None:
    text = ampere.to_csv(tmp_path / "ampere.csv")
    assert (tmp_path / "ampere.csv").read_text() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["instruction"] for row in rows] == [i.name for i in ampere]
    assert rows[0].keys() == ampere.rows()[0].keys()
    told = [{"x_y": 1, "what": "50 % & \\#", "none": None, "list": [1, "a"]}]
    assert csv_text(told) == 'x_y,what,none,list\n1,50 % & \\#,,"[1, ""a""]"\n'
    lines = latex_text(told).splitlines()
    assert lines[0] == r"\begin{tabular}{rlll}"
    assert lines[2] == r"x\_y & what & none & list \\"
    assert lines[4] == r'1 & 50 \% \& \textbackslash{}\# &  & [1, "a"] \\'
    assert PROPERTIES.to_latex().count("order-independence") >= 1


def test_answers_tell_their_verdict_first_and_their_obligations_last() -> None:
    number = Number("n", 3, "units")
    holds = Holds("it does", some_proof(*obligations(7)), 1.26, (number,), ("reached",))
    lines = str(holds).splitlines()
    assert lines[0] == "Holds: it does  (1.3 s)"
    assert lines[1:] == ["  n = 3: units", "  reached", "  proved: 7 obligations (z3 1)"]
    assert holds.number is number
    assert float(number) == 3
    assert holds.verbose().startswith(str(holds))
    assert str(holds.proof) in holds.verbose()
    assert holds.to_json()["numbers"] == [{"name": "n", "value": "3", "float": 3.0, "meaning": "units"}]
    unknown = Unknown("does it", "no time", obligations(1), 2.0)
    assert unknown.number is None
    assert str(unknown).splitlines()[1:] == ["  why: no time", "  proved on the way: 1 obligation (z3 1)"]
    assert "1. " in unknown.verbose()
    assert "7 obligations" in repr(holds)


def test_a_number_shows_when_it_was_rounded() -> None:
    assert Number("n", Fraction(268435215, 16777216), "x").text == "n = 15.99999"
    assert (
        str(Number("n", Fraction(268435215, 16777216), "x")) == "n = 15.99999 (exactly 268435215/16777216): x"
    )
    assert str(Number("n", Fraction(7, 2), "x")) == "n = 3.5: x"


def test_keys_are_not_made_of_reprs() -> None:
    """Two conversions of one name have one repr; kernels and the matrix of properties must not take them for one."""
    rho = CONVERSIONS["RZ-FP32"]
    other = dataclasses.replace(rho, fraction_bits=22)
    spec = HMMA.spec
    assert identity(spec) != identity(spec.replace(rho=other))
    same = dataclasses.replace(FORMATS["fp16"], bias=14)
    assert repr(same) == repr(FORMATS["fp16"])
    assert identity(same) != identity(FORMATS["fp16"])
    assert identity(spec) == identity(spec.replace(F=25))
    assert identity(1) != identity(True) != identity("True")
    with pytest.raises(TypeError):
        identity([1])
    names = {ConstantType(x).name for x in (rho, other, same, FORMATS["fp16"], Rounding, Rounding.RZ)}
    assert len(names) == 6
    assert ConstantType(dataclasses.replace(rho)).name in names


def test_what_is_exported_is_listed_and_typed() -> None:
    assert set(mmaformal.__all__) <= set(dir(mmaformal))
    for name in mmaformal.__all__:
        assert getattr(mmaformal, name) is not None
    assert not [
        name for name in dir(mmaformal) if not name.startswith("__") and name not in mmaformal.__all__
    ]
    assert Path(mmaformal.__file__).with_name("py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mmaformal.nothing  # noqa: B018


def test_rows_are_what_pandas_and_polars_take() -> None:
    answer = find_difference(HMMA, ARCHITECTURES["blackwell"]["HMMA.16816.F32"])
    comparison = Comparison("HMMA.16816.F32", HMMA, HMMA, answer).row()
    for rows in (ARCHITECTURES.rows(), hopper.rows(), some_proof(*obligations(3)).rows(), [comparison]):
        assert len({tuple(row) for row in rows}) == 1, "rows of different columns"
        for row in rows:
            assert all(value is None or type(value) in (bool, int, float, str) for value in row.values())
    assert len(ARCHITECTURES.rows()) == sum(map(len, ARCHITECTURES.values()))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_become_tables(library: str) -> None:
    frames = pytest.importorskip(library)
    every = frames.DataFrame(ARCHITECTURES.table())
    assert len(every) == sum(map(len, ARCHITECTURES.values()))
    assert list(every["instruction"])[: len(volta)] == list(volta.keys())
    assert re.match("int|float", str(every["G"].dtype).lower())  # no value in the first hundred rows
    answer = Holds("q", some_proof(*obligations(3)), 1.0)
    assert list(frames.DataFrame(answer.table())["solver"]) == ["z3"] * 3
    assert len(frames.DataFrame(comparisons([Comparison("x", HMMA, HMMA, answer)] * 2))) == 2


def test_claims_of_minimality_are_one_paragraph_and_what_is_not_proved_keeps_its_line() -> None:
    open_claim = "sum of |exponent|: 25: best found (the time given was used up)"
    claims = ["1 nonzero product: proved minimal", open_claim, "c ≠ 0: proved minimal"]
    assert minimality_lines(claims) == ["proved minimal: 1 nonzero product; c ≠ 0", open_claim]
    assert minimality_lines([open_claim]) == [open_claim]
    assert all(len(line) <= 40 for line in minimality_lines(claims[:1] * 9, 40))
