"""Tables, links and commands of README.md, docs/who-agrees.md and tables/open-questions.md say what is so."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import bf16_table
import click
import pytest
import who_agrees
from open_questions import Question, overflow_bound, questions

from mmaformal import ARCHITECTURES, Different, Instruction, check, find_difference
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import both_results
from mmaformal.cli import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
AGREE = (ROOT / "docs" / "who-agrees.md").read_text()


def table_rows() -> list[tuple[str, list[list[str]], str, list[int]]]:
    """(instruction, the architectures of both sides, inputs, results) of the rows that have a witness."""
    rows, name = [], ""
    for line in AGREE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[4].startswith("`0x"):
            name = cells[0] or name
            sides = [side.split(", ") for side in cells[2].split(" / ")]
            results = [int(x.strip("`"), 16) for x in cells[4].split(" / ")]
            rows.append((name, sides, cells[3].strip("`"), results))
    return rows


def equal_groups() -> list[tuple[str, list[str]]]:
    rows = []
    for line in AGREE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("HMMA"):
            rows += [(cells[0], group.split(" = ")) for group in cells[1].split("; ")]
    return rows


def inputs_of(i: Instruction, text: str) -> tuple[list[int], list[int], int]:
    """The codes of `x·y + x·y [k=2] + c`, as `who_agrees.inputs_text` writes them."""
    a, b, c = [0] * i.k, [0] * i.k, 0
    for part in text.split(" + "):
        factors = [x.strip("()") for x in part.partition(" [k=")[0].split("·")]
        if len(factors) == 1:
            c = i.c_format.code(factors[0])
            continue
        at = re.search(r"\[k=(\d+)\]", part)
        k = int(at[1]) if at else 0
        a[k], b[k] = (f.code(x) for f, x in zip((i.a_format, i.b_format), factors, strict=True))
    return a, b, c


@pytest.mark.parametrize(("name", "sides", "inputs", "results"), table_rows())
def test_the_table_of_differences(name: str, sides: list[list[str]], inputs: str, results: list[int]) -> None:
    for side, result in zip(sides, results, strict=True):
        for architecture in side:
            i = ARCHITECTURES[architecture][name]
            assert int(i.dot_add(*inputs_of(i, inputs))) == result, f"{i.label}: {inputs}"


@pytest.mark.parametrize(
    "prefix",
    ["HMMA.884.", "HMMA.1684.", pytest.param("HMMA", marks=pytest.mark.slow)],
)
def test_the_command_prints_the_table(prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert who_agrees.main([prefix, "--timeout", "1500"]) == 0
    head, rule, *rows = capsys.readouterr().out.splitlines()
    printed = [line for line in AGREE.splitlines() if line.startswith(f"| {prefix}")]
    assert rows == printed != []
    assert {head, rule} <= set(AGREE.splitlines())


OPEN = (ROOT / "tables" / "open-questions.md").read_text()
OPEN_ROWS = [line.strip("| ").split(" | ") for line in OPEN.splitlines() if "`0x" in line]


@pytest.mark.parametrize("question", list(questions()), ids=lambda q: f"{q.title}, {q.default.label}")
def test_open_questions(question: Question) -> None:
    (row,) = [row for row in OPEN_ROWS if row[0] == question.title and row[1] == question.default.label]
    inputs, *scales = row[3].split("` (scale_a ")
    codes = inputs_of(question.default, inputs.strip("`"))
    blocks = [[int(x, 16) for x in re.findall("0x[0-9a-f]+", s)] for s in "".join(scales).split(";") if s]
    for instruction, cell in ((question.default, row[4]), (question.other, row[5])):
        assert int(instruction.dot_add(*codes, *blocks)) == int(cell.strip("`").split()[0], 16)


def test_every_open_question_is_there() -> None:
    assert len(OPEN_ROWS) == len(list(questions()))
    assert overflow_bound() in OPEN


@pytest.mark.parametrize(("name", "architectures"), equal_groups())
def test_the_equal_ones_are_one_dot_add(name: str, architectures: list[str]) -> None:
    assert len({ARCHITECTURES[architecture][name].spec for architecture in architectures}) == 1


def test_every_hmma_row_is_in_the_table() -> None:
    shared = {i.name for a in ARCHITECTURES.values() for i in a if i.name.startswith("HMMA.")}
    assert {name for name, _ in equal_groups()} == shared


def test_the_contrast_is_what_the_example_prints() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "contrast.py")], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() in AGREE


# ---- README.md ---------------------------------------------------------------------------------------------------

DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "tables").glob("*.md")),
]
COMMANDS = [
    line.rstrip()
    for line in re.findall(r"(?:^ {4}|^\$ |`)(mmaformal (?!\.)[a-z][^`#\n]*)", README, re.MULTILINE)
]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([\w./-]+\.[a-z0-9]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_are_there(path: Path) -> None:
    rooms = "benchmarks|encodings|examples|mmaformal|queries|tests|tools"
    for name in re.findall(rf"(?<![\w/])(?:{rooms})/[\w/]+\.py\b", path.read_text()):
        assert (ROOT / name).exists(), name


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#]+\.md)", index)}
    assert [path.name for path in DOCUMENTS[1:] if path not in linked] == ["index.md", "README.md"]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line: str) -> None:
    words = shlex.split(line)[1:]
    command = app.commands[words[0]]
    files = [word for word in words if word.endswith((".npz", ".sv"))]
    words = [str(ROOT / "examples" / "bfdot_qemu.npz") if word in files else word for word in words]
    command.make_context(words[0], words[1:], parent=click.Context(app))


def test_the_recording_that_is_shipped_is_explained() -> None:
    found = check(ROOT / "examples" / "bfdot_qemu.npz")
    assert (found.exit_code, found.outcomes[0].rows) == (0, 1000)


# ---- docs/bf16-differences.md ------------------------------------------------------------------------------------

BF16 = (ROOT / "docs" / "bf16-differences.md").read_text()
BF16_ROWS = [line.strip("| ").split(" | ") for line in BF16.splitlines() if line.startswith("| `0x1p")]
#: of each column, the instructions that it is about
BF16_UNITS = [
    [ARCHITECTURES["hopper"][name] for name in ("HMMA.16816.F32.BF16", "HMMA.1688.F32.BF16")],
    [ARCHITECTURES["sapphire_rapids"][name] for name in ("TDPBF16PS", "TDPBF16PS.K2")],
    [ARCHITECTURES["sapphire_rapids"]["VDPBF16PS"]],
    [ARCHITECTURES["armv8_6"][name] for name in ("BFDOT", "BFMMLA")],
]


@pytest.mark.parametrize("row", BF16_ROWS, ids=lambda row: row[0])
def test_the_smallest_bf16_inputs(row: list[str]) -> None:
    """By both encodings, at the full K; and that those differ that the row says."""
    said = [int(cell.strip("`"), 16) for cell in row[1:5]]
    for wanted, units in zip(said, BF16_UNITS, strict=True):
        for i in units:
            a, b, c = inputs_of(i, row[0].strip("`"))
            ((mine, other),) = both_results(i.spec, Rows.of([Codes(tuple(a), tuple(b), c)]))
            assert mine == other == wanted, i.label
    names = ["GPU", "AMX", "AVX-512", "Arm"]
    for pair in row[5].split(", "):
        x, y = (said[names.index(name)] for name in pair.split(" and "))
        assert x != y, pair


def test_the_table_of_every_vendor_is_made_by_its_tool() -> None:
    assert bf16_table.table() in BF16


@pytest.mark.parametrize("name", bf16_table.UNITS)
def test_every_vendors_result_is_that_of_both_encodings(name: str) -> None:
    for each in bf16_table.SUMS:
        unit = bf16_table.unit_for(bf16_table.UNITS[name], each)
        a, b, c = each.codes(unit.k)
        ((mine, other),) = both_results(unit.spec, Rows.of([Codes(tuple(a), tuple(b), c)]))
        assert mine == other == bf16_table.result(bf16_table.UNITS[name], each), each.text


def test_the_right_ones_are_right() -> None:
    by_hand = [0x3F800000, 0x3F800000, 0x4B800001, 0x33000000, 0x3F800000, 0x00400000, 0x3F800000]
    assert [bf16_table.right(each) for each in bf16_table.SUMS] == by_hand


def test_every_pair_of_bf16_units_has_a_smallest_input() -> None:
    pairs = [frozenset(pair.split(" and ")) for row in BF16_ROWS for pair in row[5].split(", ")]
    assert len(pairs) == len(set(pairs)) == 6


@pytest.mark.parametrize(
    ("gpu_name", "tile", "k"),
    [
        ("HMMA.1688.F32.BF16", "TDPBF16PS.K16", 16),
        pytest.param("HMMA.16816.F32.BF16", "TDPBF16PS", 32, marks=pytest.mark.slow),
    ],
)
def test_two_instructions_are_named_with_their_architectures(gpu_name: str, tile: str, k: int) -> None:
    """Both ways; that of half the products is chained to those of the other."""
    gpu, processor = ARCHITECTURES["hopper"], ARCHITECTURES["sapphire_rapids"]
    pinned = [
        "a0=0x3f80",
        "b0=0x3f80",
        *(f"{side}{n}=0x0" for side in "ab" for n in range(1, k)),
        "c=0xb3000000",
    ]
    names = gpu_name, tile
    for x, y, left, right in ((gpu, processor, *names), (processor, gpu, *reversed(names))):
        answer = find_difference(x, y, left, right, where=pinned)
        assert isinstance(answer, Different)
        assert (answer.witness.x.k, answer.witness.y.k) == (k, k)
        assert set(answer.witness.results) == {0x3F7FFFFF, 0x3F800000}


@pytest.mark.slow
def test_a_smallest_bf16_input_is_found_and_proved() -> None:
    gpu = ARCHITECTURES["hopper"]["HMMA.1688.F32.BF16"].replace(k=2, L=2)
    amx = ARCHITECTURES["sapphire_rapids"]["TDPBF16PS.K2"]
    where = ["magnitude 0x1p-32 0x1p32", "a1=0", "b1=0"]
    for x, y in ((gpu, amx), (amx, gpu)):
        answer = find_difference(x, y, where=where, timeout=600)
        assert isinstance(answer, Different)
        assert answer.witness.case_text == BF16_ROWS[0][0].strip("`")
        assert all("proved minimal" in line for line in answer.minimality)
