"""The recordings room: what real GPUs returned, and what becomes of files not what they should be."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.recorded import FILES, SHARED, meta, padded, real_files, recorded, save

from mmaformal import ARCHITECTURES, ampere, cli, hopper, turing, volta
from mmaformal.architectures import Architecture, UnknownInstructionError
from mmaformal.cli.check import _Progress
from mmaformal.display import mismatches_of
from mmaformal.encodings.fda import Fda
from mmaformal.formats import FORMATS, Format, fp32
from mmaformal.instruction import Instruction
from mmaformal.recordings import (
    CheckReport,
    FileFailure,
    NotModelled,
    NotModelledError,
    RecordingError,
    check,
    check_file,
    check_files,
    exit_code,
    names,
    read,
    row_sizes,
)
from mmaformal.recordings.names import look_up
from mmaformal.rounding import RZ_FP32
from mmaformal.shown_stages import explain_case
from mmaformal.spec import DotAdd
from mmaformal.witness import case_size

INSTRUCTIONS = [i for a in ARCHITECTURES.values() for i in a]
#: Those that a recording's meta can describe in full
RECORDABLE = [i for i in INSTRUCTIONS if i.a_format is i.b_format and i.spec.scale_format is None]

#: Well-formed, and in no GPU: stands for an instruction that no table has yet
NOT_MODELLED = "QMMA.8x8x8.F32.E4M3.E4M3"


# ---- making recordings -------------------------------------------------------------------------------------


HMMA = ampere["HMMA.16816.F32"]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return save(tmp_path / "good.npz", recorded(HMMA, rows=40, terms=8))


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """One file to write over and over; Hypothesis tests cannot use tmp_path, which is per test function."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "recording.npz"


# ---- what real GPUs returned -------------------------------------------------------------------------------


@real_files
def test_hardware_agrees_with_the_model(path: Path) -> None:
    outcome = check_file(path)
    if isinstance(outcome, NotModelled):
        assert outcome.recording.a_format.name in {"e4m3", "e5m2"}
        assert outcome.recording.name in str(outcome)
        pytest.skip(f"{outcome.recording.label} is not modelled yet")
    assert isinstance(outcome, CheckReport), outcome
    of_processors = {"emr_tdpbf16ps": 6300, "emr_vdpbf16ps": 6400, "emr_vfmadd231ph": 6016}
    rows = of_processors.get(path.stem, {"lowered": 1500, "processors": 4000}.get(path.parent.name, 3000))
    if path.parent.name == "emulators":  # 3,260 to 3,380 in each
        with np.load(path) as arrays:
            rows = len(arrays["d"])
    assert (outcome.rows, outcome.mismatches) == (rows, 0)


@pytest.mark.skipif(not FILES, reason="no ../shared/recordings beside this checkout")
def test_ampere_does_not_keep_23_bits() -> None:
    path = SHARED / "a100_fp16_fp32.npz"
    report = check_file(path, replace={"F": 23})
    assert isinstance(report, CheckReport)
    assert report.mismatches > 0
    assert report.exit_code == 1
    wrong = report.smallest
    assert wrong is not None
    assert wrong.modelled == HMMA.replace(F=23).dot_add(wrong.a, wrong.b, wrong.c)
    assert wrong.recorded == HMMA.dot_add(wrong.a, wrong.b, wrong.c)
    assert f"recorded d = {wrong.recorded:#010x}" in str(report)

    rows = read(path).load()
    modelled = HMMA.replace(F=23).dot_add(padded(rows.a, 16), padded(rows.b, 16), rows.c)
    assert report.mismatches == np.count_nonzero(modelled != rows.d)


# ---- checking ----------------------------------------------------------------------------------------------


def size(spec: DotAdd, a: list[int], b: list[int], c: int) -> tuple[int, int, int, int]:
    """The order of `row_sizes`, one code at a time from the definition of the fields."""

    def zero(fmt: Format, code: int) -> bool:
        return fmt.is_finite(code) and fmt.value(code) == 0

    def bits(fmt: Format, code: int) -> int:
        return bin(fmt.fields(code)[2]).count("1")

    def exponent(fmt: Format, code: int) -> int:
        if zero(fmt, code):
            return 0
        return abs(max(fmt.fields(code)[1], 1) - fmt.bias)

    fa, fb, fc = spec.a_format, spec.b_format, spec.c_format
    factors, products = [], 0
    for x, y in zip(a, b, strict=True):
        special = not fa.is_finite(x) or not fb.is_finite(y)
        if special or not (zero(fa, x) or zero(fb, y)):
            factors += [(fa, x), (fb, y)]
            products += 1
    if not zero(fc, c):
        factors.append((fc, c))
    return (
        products,
        int(not zero(fc, c)),
        sum(bits(*factor) for factor in factors),
        sum(exponent(*factor) for factor in factors),
    )


@st.composite
def sized_rows(draw: st.DrawFn) -> tuple[DotAdd, list[list[int]], list[list[int]], list[int]]:
    inputs = st.sampled_from(
        [
            fmt
            for fmt in FORMATS.values()
            if fmt.signed and fmt.has_zero and fmt.exponent_bits + fmt.fraction_bits < 24
        ]
    )
    spec = DotAdd(3, draw(inputs), draw(inputs), fp32, fp32, Fda(F=24, L=3, rho=RZ_FP32, e_zero=-132))

    def codes(fmt: Format) -> st.SearchStrategy[int]:
        around = [0, 1, fmt.codes >> 1, (fmt.codes >> 1) + 1, (fmt.codes >> 1) - 1, fmt.codes - 1]
        return st.sampled_from(around) | st.integers(0, fmt.codes - 1)

    def matrix(fmt: Format) -> st.SearchStrategy[list[list[int]]]:
        return st.lists(st.lists(codes(fmt), min_size=3, max_size=3), min_size=4, max_size=4)

    c = draw(st.lists(codes(fp32), min_size=4, max_size=4))
    return spec, draw(matrix(spec.a_format)), draw(matrix(spec.b_format)), c


@given(sized_rows())
def test_row_sizes_follow_the_fields(
    case: tuple[DotAdd, list[list[int]], list[list[int]], list[int]],
) -> None:
    spec, a, b, c = case
    sizes = row_sizes(
        spec, np.array(a, spec.a_format.word), np.array(b, spec.b_format.word), np.array(c, np.uint32)
    )
    rows = list(zip(a, b, c, strict=True))
    assert [tuple(row) for row in sizes.tolist()] == [size(spec, *row) for row in rows]
    assert [tuple(row) for row in sizes.tolist()] == [case_size(spec, *row) for row in rows]


@given(st.data())
def test_exactly_the_corrupted_rows_are_found(scratch: Path, data: st.DataObject) -> None:
    instruction = data.draw(st.sampled_from(RECORDABLE))
    rows = data.draw(st.integers(1, 12))
    terms = data.draw(st.integers(1, instruction.k))
    wrong = data.draw(st.sets(st.integers(0, rows - 1)))
    arrays = recorded(instruction, rows, terms, seed=data.draw(st.integers(0, 1000)))
    zeros = np.random.default_rng(0).random(arrays["a"].shape) < data.draw(st.sampled_from([0, 0.5, 0.9]))
    arrays["a"][zeros] = 0
    arrays["d"] = instruction.dot_add(
        padded(arrays["a"], instruction.k), padded(arrays["b"], instruction.k), arrays["c"]
    )
    truth = arrays["d"].tolist()
    for i in wrong:
        arrays["d"][i] = 0 if instruction.d_format.is_nan(truth[i]) else truth[i] ^ 1

    report = check(read(save(scratch, arrays)))
    assert (report.rows, report.mismatches, report.rate) == (rows, len(wrong), len(wrong) / rows)
    assert report.first_row == min(wrong, default=None)
    if not wrong:
        assert report.smallest is None
        return
    a, b = padded(arrays["a"], instruction.k).tolist(), padded(arrays["b"], instruction.k).tolist()
    c = arrays["c"].tolist()
    least = min(sorted(wrong), key=lambda i: size(instruction.spec, a[i], b[i], c[i]))
    found = report.smallest
    assert found is not None
    assert found.row == least
    assert (list(found.a), list(found.b), found.c) == (a[least], b[least], c[least])
    assert (found.recorded, found.modelled) == (arrays["d"][least], truth[least])


def test_the_smallest_row_is_found_across_blocks(tmp_path: Path) -> None:
    rows = 40_000
    arrays = recorded(HMMA, rows, terms=2)
    arrays["a"][:] = arrays["b"][:] = 0x3C01  # 1 + ulp
    arrays["c"][:] = 0
    arrays["a"][[17_000, 20_000, 39_999], 1] = 0
    arrays["a"][[20_000, 39_999], 0] = 0x3C00
    arrays["d"] = HMMA.dot_add(padded(arrays["a"], 16), padded(arrays["b"], 16), arrays["c"])
    arrays["d"][17_000:] = 0x7F800000
    report = check(read(save(tmp_path / "long.npz", arrays)))
    assert report.mismatches == rows - 17_000
    assert report.first_row == 17_000
    assert report.smallest is not None
    assert report.smallest.row == 20_000  # the first of two that are equally small


def test_fda_compares_nans_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = recorded(HMMA, rows=3)
    arrays["a"][:, 0] = 0x7E00
    arrays["d"][:] = [0x7FFFFFFF, 0x7FC00000, 0xFFFFFFFF]
    recording = read(save(tmp_path / "nan.npz", arrays))
    assert check(recording).mismatches == 2

    monkeypatch.setattr(DotAdd, "nan_is_canonical", property(lambda self: False))
    assert check(recording).mismatches == 0
    arrays["d"][1] = 0x7F800000
    assert check(read(save(tmp_path / "nan.npz", arrays))).mismatches == 1


def test_a_recording_can_be_checked_against_another_instruction(good: Path) -> None:
    recording = read(good)
    assert check(recording, hopper["HMMA.16816.F32"].replace(F=24, L=8, e_zero=-132)).mismatches == 0
    with pytest.raises(RecordingError, match=r"a is recorded as fp16, but ampere HMMA.16816.F32.BF16"):
        check(recording, ampere["HMMA.16816.F32.BF16"])
    with pytest.raises(RecordingError, match=r"8 terms per row, but volta HMMA.884.F32.F32 has K = 4"):
        check(recording, volta["HMMA.884.F32.F32"])
    with pytest.raises(
        RecordingError, match=r"block scales are not there, and .* takes ue8m0, one per 8 products"
    ):
        check(recording, HMMA.replace(scale_format=FORMATS["ue8m0"], scale_block=8))


def test_an_instruction_whose_c_is_not_of_the_type_of_d(tmp_path: Path) -> None:
    instruction = volta["HMMA.884.F32.F16"]
    recording = read(save(tmp_path / "mixed.npz", recorded(instruction, rows=50)))
    assert (recording.c_format.name, recording.d_format.name) == ("fp16", "fp32")
    assert check(recording).mismatches == 0


# ---- reading -----------------------------------------------------------------------------------------------


@given(
    block_rows=st.integers(1, 50),
    compressed=st.booleans(),
    columns=st.booleans(),
    order=st.sampled_from("<>"),
)
def test_blocks_are_the_arrays(
    scratch: Path, block_rows: int, compressed: bool, columns: bool, order: str
) -> None:
    arrays = recorded(HMMA, rows=40, terms=8)
    stored = {n: x.astype(x.dtype.newbyteorder(order)) for n, x in arrays.items() if n != "meta"}
    if columns:
        stored["a"], stored["b"] = np.asfortranarray(stored["a"]), np.asfortranarray(stored["b"])
    recording = read(save(scratch, {**stored, "meta": arrays["meta"]}, compressed=compressed))
    assert (recording.rows, recording.terms) == (40, 8)
    blocks = list(recording.blocks(block_rows))
    assert all(len(block.d) <= block_rows for block in blocks)
    for name, whole in next(recording.arrays(40)).items():
        assert whole.dtype == arrays[name].dtype
        np.testing.assert_array_equal(whole, arrays[name])
        np.testing.assert_array_equal(np.concatenate([getattr(block, name) for block in blocks]), whole)


def test_a_file_that_changes_after_reading_is_noticed(good: Path) -> None:
    recording = read(good)
    save(good, recorded(HMMA, rows=41, terms=8))
    with pytest.raises(RecordingError, match="has changed"):
        list(recording.blocks())


def test_memory_is_bounded_by_blocks_not_rows(tmp_path: Path) -> None:
    rows = 200_000
    arrays = {n: np.zeros((rows, 16), np.uint16) for n in "ab"} | {n: np.zeros(rows, np.uint32) for n in "cd"}
    path = save(tmp_path / "long.npz", arrays | {"meta": meta(HMMA, 16)})
    total = sum(x.nbytes for x in arrays.values())
    del arrays
    tracemalloc.start()
    try:
        recording = read(path)
        assert sum(len(block.d) for block in recording.blocks()) == rows
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < total / 3


def test_null_instruction_is_looked_up_by_ptx(tmp_path: Path) -> None:
    arrays = recorded(HMMA, rows=5)
    arrays["meta"] |= {"instruction": None, "ptx": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"}
    recording = read(save(tmp_path / "ptx.npz", arrays))
    assert recording.instruction is HMMA
    assert recording.instruction_name is None
    assert check(recording).mismatches == 0


def test_names_given_by_the_caller_replace_those_in_the_file(tmp_path: Path) -> None:
    arrays = recorded(HMMA, rows=5)
    said = arrays.pop("meta")
    bare = save(tmp_path / "bare.npz", arrays)
    with pytest.raises(RecordingError, match="no array 'meta'"):
        read(bare, architecture="ampere")
    recording = read(bare, architecture="ampere", instruction="HMMA.16816.F32")
    assert check(recording).mismatches == 0

    del said["architecture"]
    part = save(tmp_path / "part.npz", arrays | {"meta": said})
    with pytest.raises(RecordingError, match="meta lacks 'architecture': --arch"):
        read(part)
    assert read(part, architecture="ada").instruction is ARCHITECTURES["ada"]["HMMA.16816.F32"]
    with pytest.raises(RecordingError, match="takes bf16"):
        read(part, architecture="ada", instruction="HMMA.16816.F32.BF16")


class Payload:
    """Unpickling it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.path),)


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    for name in ("a", "meta"):
        arrays = recorded(HMMA, rows=5)
        arrays[name] = np.array([Payload(trap)] * 5, dtype=object)
        with pytest.raises(RecordingError, match=f"{name} holds pickled Python objects"):
            read(save(tmp_path / "object.npz", arrays))
    assert not trap.exists()


def claiming(header: str, data: bytes = b"") -> bytes:
    """An .npy file with any header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def with_member(path: Path, name: str, content: bytes) -> None:
    """Put a member in place of an array of the archive at `path`, with a right checksum."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for n, old in members.items():
            archive.writestr(n, content if n == f"{name}.npy" else old)


def with_entry(path: Path, **changes: int) -> None:
    """Make the archive's directory say something else about its last member, d."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members["d.npy"] = members.pop("d.npy")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for name, value in changes.items():
            setattr(archive.getinfo("d.npy"), name, value)


Arrays = dict[str, Any]


def edit(**changes: Callable[[Any], Any] | None) -> Callable[[Arrays], None]:
    """A function that replaces arrays by what they are mapped to, or drops them (None)."""

    def apply(arrays: Arrays) -> None:
        for name, change in changes.items():
            if change is None:
                del arrays[name]
            else:
                arrays[name] = change(arrays[name])

    return apply


def said(**changes: Any) -> Callable[[Arrays], None]:
    return edit(meta=lambda meta: meta | changes)


def unsaid(name: str) -> Callable[[Arrays], None]:
    return edit(meta=lambda meta: {n: x for n, x in meta.items() if n != name})


def text(content: Any) -> Callable[[Arrays], None]:
    return edit(meta=lambda _: np.array(content))


DAMAGED_CONTENT: dict[str, tuple[Callable[[Arrays], None], str]] = {
    "no a": (edit(a=None), "no array 'a'"),
    "no d": (edit(d=None), "no array 'd'"),
    "no meta": (edit(meta=None), "no array 'meta'"),
    "signed": (
        edit(a=lambda a: a.view(np.int16)),
        "a is int16, but fp16 bit patterns are uint16: save a.view",
    ),
    "float": (
        edit(c=lambda c: c.view(np.float32)),
        "c is float32, but fp32 bit patterns are uint32: save c.view",
    ),
    "too wide": (edit(b=lambda b: b.astype(np.uint32)), "b is uint32, but fp16 bit patterns are uint16"),
    "complex": (edit(d=lambda d: d.astype(complex)), "d is complex128"),
    "a of one dimension": (edit(a=lambda a: a[:, 0]), r"a has shape \(40,\), but needs \(rows, terms\)"),
    "a transposed": (edit(a=lambda a: a.T), r"a has shape \(8, 40\), but with d \(40,\)"),
    "a and b transposed": (edit(a=lambda a: a.T, b=lambda b: b.T), r"a has shape \(8, 40\)"),
    "b shorter": (edit(b=lambda b: b[:, :7]), r"b has shape \(40, 7\)"),
    "c shorter": (edit(c=lambda c: c[:39]), r"c has shape \(39,\)"),
    "d shorter": (edit(d=lambda d: d[:39]), r"a has shape \(40, 8\), but with d \(39,\)"),
    "d as a column": (edit(d=lambda d: d[:, None]), r"d has shape \(40, 1\), but needs \(rows,\)"),
    "d a scalar": (edit(d=lambda d: d[0]), r"d has shape \(\), but needs \(rows,\)"),
    "no rows": (edit(**{n: lambda x: x[:0] for n in "abcd"}), "no rows"),
    "no terms": (edit(a=lambda a: a[:, :0], b=lambda b: b[:, :0]), "0 terms"),
    "a thousand terms": (
        edit(a=lambda a: np.tile(a, 125), b=lambda b: np.tile(b, 125)),
        "1000 terms are no instruction's K",
    ),
    "more terms than K": (
        lambda arrays: arrays.update(recorded(HMMA.chained(32), 40) | {"meta": meta(HMMA, 32)}),
        "32 terms per row, but ampere HMMA.16816.F32 has K = 16",
    ),
    "terms that are not a's": (said(terms=9), r"meta has 'terms': 9, but a has shape \(40, 8\)"),
    "terms true": (said(terms=True), "meta has 'terms': True"),
    "terms a string": (said(terms="8"), "meta has 'terms': '8'"),
    "bad JSON": (text('{"gpu": '), "meta is not JSON"),
    "no JSON": (text(""), "meta is not JSON"),
    "bytes that are no text": (text(b"\xff\xfe"), "meta is not JSON"),
    "JSON too deep": (text("[" * 100_000), "meta is not JSON"),
    "JSON of a list": (text("[1]"), r"meta is the JSON \[1\], not an object"),
    "meta a number": (text(3.5), "meta is float64"),
    "several metas": (text(["{}", "{}"]), r"meta is <U2 of shape \(2,\)"),
    "a meta of megabytes": (text(" " * 300_000), "meta has 1200000 bytes"),
    "no architecture": (unsaid("architecture"), "meta lacks 'architecture'"),
    "no instruction": (unsaid("instruction"), "meta lacks 'instruction'"),
    "no input format": (unsaid("input_format"), "meta lacks 'input_format'"),
    "no output format": (unsaid("output_format"), "meta lacks 'output_format'"),
    "no term count": (unsaid("terms"), "meta lacks 'terms'"),
    "unknown architecture": (said(architecture="kepler"), "no architecture 'kepler'; there are volta"),
    "architecture a number": (said(architecture=80), "meta has 'architecture': 80"),
    "architecture null": (said(architecture=None), "no architecture None"),
    "gibberish instruction": (said(instruction="FOO.1"), "ampere has no instruction 'FOO.1'"),
    "almost an instruction": (said(instruction="HMMA.16816.F3"), "Nearest on ampere: HMMA.16816.F32"),
    "another's instruction": (said(instruction="HMMA.884.F32.F32"), "is on: volta, turing"),
    "AMD's instruction": (said(instruction="v_mfma_f32_32x32x8f16"), "ampere has no instruction 'v_mfma"),
    "instruction of several lines": (said(instruction="HMMA\n.16816\x1b[2J"), r"no instruction 'HMMA\\n"),
    "instruction a list": (said(instruction=["HMMA"]), r"meta has 'instruction': \['HMMA'\]"),
    "nothing to go by": (said(instruction=None), "null instruction and no 'ptx'"),
    "gibberish PTX": (said(instruction=None, ptx="mma.f32"), "ampere has no instruction 'mma.f32'"),
    "a PTX name that contradicts": (
        said(ptx="mma.m16n8k16.f32.bf16.bf16.f32"),
        "contradicts itself: instruction is HMMA.16816.F32, but ptx is that of HMMA.16816.F32.BF16",
    ),
    "unknown format": (said(input_format="fp17"), "meta has 'input_format': 'fp17'; formats are fp64"),
    "format a list": (said(output_format=["fp32"]), r"meta has 'output_format': \['fp32'\]"),
    "input type mismatch": (
        said(input_format="bf16"),
        "a is recorded as bf16, but ampere HMMA.16816.F32 takes",
    ),
    "output type mismatch": (
        lambda arrays: arrays.update(recorded(ampere["HMMA.16816.F16"], 40, 8) | {"meta": arrays["meta"]}),
        "c is uint16, but fp32",
    ),
    "gpu a number": (said(gpu=100), "meta has 'gpu': 100"),
    "codes that do not exist": (
        lambda arrays: arrays.update(
            a=np.full((40, 8), 0x0F, np.uint8) + np.uint8(np.arange(40) == 7)[:, None],
            b=np.zeros((40, 8), np.uint8),
            meta=arrays["meta"] | {"input_format": "e2m1", "instruction": NOT_MODELLED},
        ),
        "a holds 0x10 in row 7, but e2m1 codes are 0 to 0xf",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED_CONTENT)
def test_damaged_content_is_one_clear_line(tmp_path: Path, damage: str) -> None:
    change, message = DAMAGED_CONTENT[damage]
    arrays = recorded(HMMA, rows=40, terms=8)
    change(arrays)
    path = save(tmp_path / "damaged.npz", arrays)
    with pytest.raises(RecordingError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()
    assert len(caught.value.reason) < 700
    outcome = check_file(path)
    assert isinstance(outcome, FileFailure)
    assert outcome.exit_code == 2


def header(shape: str, descr: str = "<u4") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"


D40 = np.zeros(40, np.uint32).tobytes()

DAMAGED_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda p: p.unlink(), "cannot be read: No such file"),
    "a folder": (lambda p: (p.unlink(), p.mkdir()), "cannot be read: "),
    "empty": (lambda p: p.write_bytes(b""), "not a complete .npz archive"),
    "text": (lambda p: p.write_text("a,b,c,d\n"), "not a complete .npz archive"),
    "one array": (lambda p: p.write_bytes(claiming(header("(40,)"), D40)), "not a complete .npz archive"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-300]), "not a complete .npz archive"),
    "bit flipped": (
        lambda p: p.write_bytes(p.read_bytes()[:400] + b"\x00" * 8 + p.read_bytes()[408:]),
        "damaged|not a complete",
    ),
    "not an array": (lambda p: with_member(p, "d", b"hello, world"), "d is no plain .npy array"),
    "no bytes": (lambda p: with_member(p, "d", b""), "d is no plain .npy array"),
    "header of nonsense": (
        lambda p: with_member(p, "d", claiming("(((,\n", D40)),
        "d is no plain .npy array",
    ),
    "header of an open string": (
        lambda p: with_member(p, "d", claiming("{'descr': '''<u4, \n", D40)),
        "d is no plain .npy array",
    ),
    "header too deep": (lambda p: with_member(p, "d", claiming("-" * 9000 + "1", D40)), "d is no plain .npy"),
    "later .npy version": (
        lambda p: with_member(p, "d", b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little") + D40),
        "d is no plain .npy array .version",
    ),
    "fewer bytes than claimed": (
        lambda p: with_member(p, "d", claiming(header("(40,)"), D40[:-1])),
        r"d is uint32 of shape \(40,\), 160 bytes, but 159 are stored",
    ),
    "more bytes than claimed": (
        lambda p: with_member(p, "d", claiming(header("(40,)"), D40 + b"\0")),
        "160 bytes, but 161 are stored",
    ),
    "terabytes claimed": (
        lambda p: with_member(p, "d", claiming(header("(1000000000000,)"), D40)),
        "4000000000000 bytes, but 160 are stored",
    ),
    "encrypted": (lambda p: with_entry(p, flag_bits=1), "damaged .*encrypted"),
    "unknown compression": (lambda p: with_entry(p, compress_type=99), "damaged .*compression method"),
    "a member past the end": (lambda p: with_entry(p, header_offset=1 << 30), "not a complete .npz archive"),
    "data past the end": (
        lambda p: (
            save(p, recorded(HMMA, rows=4000, terms=1)),
            with_member(p, "d", claiming(header("(4000,)"), D40)),
            with_entry(p, file_size=128 + 16000, compress_size=128 + 16000),
        ),
        r"damaged \(EOFError\)",
    ),
    "negative shape": (
        lambda p: with_member(p, "a", claiming(header("(-4, -10)"), D40)),
        r"a has shape \(-4, -10\)",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED_FILES)
def test_damaged_files_are_one_clear_line(good: Path, damage: str) -> None:
    change, message = DAMAGED_FILES[damage]
    change(good)
    with pytest.raises(RecordingError, match=message) as caught:
        read(good)
    assert str(caught.value).isprintable()


@pytest.fixture(scope="module", params=[True, False], ids=["compressed", "stored"])
def sound(request: pytest.FixtureRequest) -> tuple[bytes, dict[str, Any]]:
    arrays = recorded(HMMA, rows=6, terms=3)
    buffer = io.BytesIO()
    save(buffer, arrays, compressed=request.param)  # type: ignore[arg-type]
    return buffer.getvalue(), arrays


@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=4),
    cut=st.none() | st.floats(0, 1),
)
@example(flips=[], cut=None)
def test_a_damaged_file_is_never_read_as_something_else(
    scratch: Path, sound: tuple[bytes, dict[str, Any]], flips: list[tuple[float, int]], cut: float | None
) -> None:
    content = bytearray(sound[0])
    for where, change in flips:
        content[int(where * len(content))] ^= change
    scratch.write_bytes(content if cut is None else content[: int(cut * len(content))])
    try:
        (block,) = read(scratch).arrays(6)
    except RecordingError as error:
        event(error.reason[:20])
        if (not flips and cut is None) or not str(error).isprintable():
            raise
    else:
        for name, array in block.items():
            np.testing.assert_array_equal(array, sound[1][name])


@given(
    st.text(st.characters(max_codepoint=255), max_size=60)
    | st.sampled_from(["(" * 200, "[" * 200, "'''", "{"])
)
def test_no_npy_header_is_too_strange(scratch: Path, junk: str) -> None:
    save(scratch, recorded(HMMA, rows=6, terms=3))
    with_member(scratch, "d", claiming("{'descr': '<u4', 'shape': " + junk, D40))
    with pytest.raises(RecordingError, match=r"^[ -~]*: d "):
        read(scratch)


# ---- which instruction -------------------------------------------------------------------------------------

#: docs/semantics.md §6, with who may come to have them
WELL_FORMED = [
    ("ampere", "DMMA.884"),
    ("hopper", "DMMA.16x8x16"),
    ("ada", "QMMA.16816.F16.E4M3.E5M2"),
    ("rtx_blackwell", "QMMA.16832.F32.E4M3.E2M1"),
    ("rtx_blackwell", "QMMA.SF.16832.F32.E5M2.E3M2.E8"),
    ("rtx_blackwell", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    ("rtx_blackwell", "mma.m16n8k32.kind::f8f6f4.f32.e4m3.e2m1.f32"),
    ("rtx_blackwell", "mma.m16n8k32.kind::mxf8f6f4.block32.f32.e5m2.e3m2.f32.ue8m0"),
    ("rtx_blackwell", "mma.m16n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.f32.ue4m3"),
    ("hopper", "HGMMA.64x256x16.F32"),
    ("hopper", "HGMMA.64x8x8.F32.TF32"),
    ("hopper", "QGMMA.64x8x32.F32.E4M3.E4M3"),
    ("hopper", "wgmma.m64n8k16.f32.f16.f16"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"),
    ("hopper", "mma.m16n8k32.f16.e5m2.e5m2.f16"),
    ("blackwell", "UTCHMMA.F32.TF32"),
    ("blackwell", "UTCQMMA.F32.E4M3.E2M1"),
    ("blackwell", "UTCQMMA.SF.F32.E4M3.E2M1.E8"),
    ("blackwell", "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"),
    ("blackwell", "tcgen05.mma.m64n8k32.kind::f8f6f4.f32.e4m3.e4m3"),
    ("blackwell", "tcgen05.mma.m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3"),
    ("ampere", NOT_MODELLED),
]


@pytest.mark.parametrize(("architecture", "name"), WELL_FORMED)
def test_a_well_formed_name_is_modelled_or_named_as_not_modelled(architecture: str, name: str) -> None:
    table = ARCHITECTURES[architecture]
    found = look_up(table, name)
    assert found == table[name] if name in table else found is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "HMMA",
        "HMMA.F32",
        "HMMA.16816",
        "HMMA.16816.F32.",
        "XHMMA.16816.F32",
        "HMMA.17816.F32",
        "HMMA.16816.F32.E4M3",
        "QMMA.16832.F32.E4M3",
        "UTCHMMA",
        "FFMA.16816.F32",
        "mma.m16n8.f32.f16.f16.f32",
        "mma.m16n8k16.f32.f16.f16",
        "mma.m16n8k16.f32.f16.f16.f33",
        "v_mfma_f32_32x32x8f16",
        "ΗMMA.16832.F32",
        "QMMA.8x8x1٦.F32.E4M3.E4M3",
    ],
)
def test_other_names_are_errors(name: str) -> None:
    with pytest.raises(UnknownInstructionError):
        look_up(hopper, name)


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.label)
def test_the_grammar_covers_the_tables(instruction: Instruction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name would be `not modelled yet` if it were taken out of the tables."""
    whole = ARCHITECTURES[instruction.architecture]
    others = [i for i in whole if i is not instruction]
    if not others:
        pytest.skip(f"{whole.name} has no other instruction")
    rest = Architecture(whole.name, whole.gpus, others)
    monkeypatch.setattr(names, "ARCHITECTURES", {rest.name: rest})
    for name in (instruction.name, *instruction.aliases):
        assert look_up(rest, name) is None


def test_ptx_runs_on_newer_architectures_only() -> None:
    assert look_up(ampere, "mma.m8n8k4.f32.f16.f16.f32") is None  # volta's; ampere lowers it
    with pytest.raises(UnknownInstructionError, match="is on: ampere"):
        look_up(turing, "mma.m16n8k16.f32.f16.f16.f32")
    with pytest.raises(UnknownInstructionError, match="is on: volta, turing"):
        look_up(ampere, "HMMA.884.F32.F32")


def test_an_instruction_not_modelled_yet_is_named_and_no_error(tmp_path: Path) -> None:
    arrays = recorded(HMMA, rows=5)
    arrays["meta"] |= {"instruction": NOT_MODELLED}
    path = save(tmp_path / "new.npz", arrays)
    recording = read(path)
    assert recording.instruction is None
    with pytest.raises(NotModelledError, match=NOT_MODELLED):
        check(recording)
    outcome = check_file(path)
    assert str(outcome) == f"new.npz   ampere {NOT_MODELLED}   5 rows   not modelled yet, not checked"
    assert outcome.to_json()["status"] == "not modelled"
    assert exit_code([outcome]) == 0


# ---- reports and the command -------------------------------------------------------------------------------


def run(*arguments: str | Path) -> int:
    return cli.main(["check", *map(str, arguments)])


@pytest.fixture
def several(tmp_path: Path) -> list[Path]:
    """In this order: damaged, matching, not modelled, mismatching."""
    arrays = recorded(HMMA, rows=2000, terms=8)
    sound = {"a": arrays["a"] & 0xBBFF, "b": arrays["b"] & 0xBBFF, "c": arrays["c"] & 0xBFFFFFFF}  # finite
    arrays |= sound | {"d": HMMA.dot_add(padded(sound["a"], 16), padded(sound["b"], 16), sound["c"])}
    wrong = arrays | {"d": arrays["d"] ^ (np.arange(2000) == 1234).astype(np.uint32)}
    paths = [tmp_path / f"{name}.npz" for name in ("damaged", "match", "new", "wrong")]
    paths[0].write_bytes(b"PK")
    save(paths[1], arrays)
    save(paths[2], arrays | {"meta": arrays["meta"] | {"instruction": NOT_MODELLED}})
    save(paths[3], wrong)
    return paths


def test_a_damaged_file_does_not_keep_the_others_from_being_checked(several: list[Path]) -> None:
    outcomes = check_files(several)
    assert [type(x) for x in outcomes] == [FileFailure, CheckReport, NotModelled, CheckReport]
    assert [x.path for x in outcomes] == several
    assert [x.exit_code for x in outcomes] == [2, 0, 0, 1]
    assert exit_code(outcomes) == 2
    assert exit_code(outcomes[1:]) == 1
    assert exit_code(outcomes[1:3]) == 0


def test_a_report_is_one_line_and_the_smallest_mismatch(several: list[Path]) -> None:
    _, match, _, wrong = check_files(several)
    assert str(match) == "match.npz   ampere HMMA.16816.F32   2000 rows   0 mismatches (0.0%)"
    assert isinstance(wrong, CheckReport)
    assert wrong.smallest is not None
    lines = str(wrong).splitlines()
    assert lines[0] == "wrong.npz   ampere HMMA.16816.F32   2000 rows   1 mismatch (0.1%)"
    assert lines[1] == "  smallest mismatching row: 1234"
    assert lines[2] == "  a = " + " ".join(f"0x{x:04x}" for x in wrong.smallest.a)
    assert lines[4] == f"  c = 0x{wrong.smallest.c:08x}"
    assert lines[5].startswith(f"  recorded d = 0x{wrong.smallest.recorded:08x} (")
    assert lines[6].startswith(f"  modelled d = 0x{wrong.smallest.recorded ^ 1:08x} (")


def test_json_holds_every_outcome(several: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", *several) == 2
    damaged, match, new, wrong = json.loads(capsys.readouterr().out)
    assert [x["status"] for x in (damaged, match, new, wrong)] == [
        "error",
        "match",
        "not modelled",
        "mismatch",
    ]
    assert [x["file"] for x in (damaged, match, new, wrong)] == [str(path) for path in several]
    assert "not a complete .npz archive" in damaged["reason"]
    assert (match["rows"], match["mismatches"], match["rate"], match["smallest_mismatch"]) == (
        2000,
        0,
        0.0,
        None,
    )
    assert wrong["mismatches"] == 1
    row = wrong["smallest_mismatch"]
    assert row["row"] == wrong["first_mismatching_row"] == 1234
    codes = [[int(x, 16) for x in row[side]] for side in "ab"]
    assert HMMA.dot_add(*codes, int(row["c"], 16)) == int(row["modelled"], 16) == int(row["recorded"], 16) ^ 1


def test_the_command_explains_the_smallest_mismatch(
    several: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(several[3]) == 1
    out = capsys.readouterr().out
    report = check_file(several[3])
    assert isinstance(report, CheckReport)
    assert report.smallest is not None
    trace = explain_case(HMMA, report.smallest.a, report.smallest.b, report.smallest.c)
    assert "".join(f"  {line}\n" for line in trace.splitlines()) in out


def test_the_command_prints_a_line_per_file(several: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*several[:3]) == 2
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("damaged.npz   error: not a complete .npz archive")
    assert lines[1].startswith("match.npz     ampere HMMA.16816.F32")
    assert lines[3] == "3 files: 1 matches, 1 not modelled yet, 1 could not be checked"
    assert captured.err == ""  # no progress but on a terminal


@pytest.mark.parametrize(("terminal", "seconds"), [(True, 10), (True, 0), (False, 10)])
def test_progress_is_shown_on_a_terminal_after_a_while(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, seconds: int
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with _Progress("x.npz") as progress:
        progress._start -= seconds
        progress(1_500_000, 3_000_000)
        shown = screen.getvalue()
    if terminal and seconds:
        assert shown == f"\rx.npz: [{'=' * 10}{' ' * 10}] 1,500,000 of 3,000,000 rows"
        assert screen.getvalue() == shown + "\r" + " " * (len(shown) - 1) + "\r"
    else:
        assert screen.getvalue() == ""


def test_files_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / folder / "x.npz" for folder in ("one", "two")]
    assert run(*paths) == 2
    out = capsys.readouterr().out
    assert all(f"{path}   error: cannot be read: No such file" in out for path in paths)


def test_hypotheses_from_the_command_line(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--replace", "F=10", "--replace", "e_zero=fields", good) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert report["instruction"] == "HMMA.16816.F32[F=10][e_zero=fields]"
    assert run("--json", "--replace", "F=24", "--replace", "rho=RZ-FP32", good) == 0
    assert run("--json", "--arch", "hopper", "--instruction", "mma.m16n8k16.f32.f16.f16.f32", good) in (0, 1)
    capsys.readouterr()

    for hypothesis, reason in {
        "G=4": "which has no parameter 'G': it has F, L, rho, e_zero",
        "L=3": "K = 16 is not a multiple of the",
        "F=0": "fda needs 1 ≤ F ≤ 55",
        "F=fields": "F of ampere HMMA.16816.F32 is 24, and cannot be None",
        "F=RZ-FP32": "F of ampere HMMA.16816.F32 is 24, and cannot be RZ-FP32",
        "rho=3": "rho of ampere HMMA.16816.F32 is RZ-FP32, and cannot be 3",
        "rho=RNE-FP16": "ρ = RNE-FP16 gives fp16, but d is fp32",
    }.items():
        assert run("--replace", hypothesis, good) == 2
        assert reason in capsys.readouterr().out

    for nonsense in ("F=1.5", "F=1e9"):
        assert run("--replace", nonsense, good) == 2
        assert "F of ampere HMMA.16816.F32 is 24, and cannot be 1" in capsys.readouterr().out
    for nonsense in ("F", "F=", "=3", f"F={1 << 40}"):
        assert run("--replace", nonsense, good) == 2
        told = capsys.readouterr().err
        assert "--replace is NAME=VALUE" in told or "is too large" in told


@pytest.mark.parametrize(
    ("mismatches", "rows", "shown"),
    [(0, 7, "0.0%"), (7, 7, "100.0%"), (1, 3, "33.3%"), (1, 3_000_000, "0.00003%"), (2999, 3000, "99.97%")],
)
def test_a_rate_never_shows_as_none_or_all_when_it_is_not(mismatches: int, rows: int, shown: str) -> None:
    assert mismatches_of(mismatches, rows).endswith(f" ({shown})")


def test_a_folder_is_checked_by_the_command_as_by_the_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = Path(__file__).resolve().parents[2] / "examples" / "bfdot_qemu.npz"
    (tmp_path / shown.name).write_bytes(shown.read_bytes())
    assert cli.main(["check", str(tmp_path)]) == 0
    assert shown.name in capsys.readouterr().out
    assert cli.main(["check", str(tmp_path / "none")]) == 2
