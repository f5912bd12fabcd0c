"""Recordings as text and as tables: read, written, damaged; and what is wrong told with the number of its row."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kernel_runs import near_one
from support.recorded import SHARED, meta, recorded, save

from mmaformal import ampere, cli, hopper, rtx_blackwell, volta
from mmaformal.instruction import Instruction
from mmaformal.recordings import CheckReport, Recording, RecordingError, check, check_file, read, write
from mmaformal.recordings.layouts import Arrays, layout_of
from mmaformal.recordings.write import replacing

HMMA = ampere["HMMA.16816.F32"]
SCALED = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
MIXED = hopper["QGMMA.64x8x32.F32.E4M3.E5M2"]
SUFFIXES = [".npz", ".csv", pytest.param(".parquet", marks=pytest.mark.parquet)]


def scaled(rows: int = 30) -> Arrays:
    """A recording of an instruction with block scales, whose hardware is the model."""
    rng, spec = np.random.default_rng(0), SCALED.spec
    assert spec.scale_format is not None
    found = {
        "a": near_one(rng, spec.a_format, (rows, spec.k)),
        "b": near_one(rng, spec.b_format, (rows, spec.k)),
        "c": near_one(rng, spec.c_format, (rows,)),
    }
    found |= {side: near_one(rng, spec.scale_format, (rows, spec.scales)) for side in ("scale_a", "scale_b")}
    return found | {"d": SCALED.dot_add(**found)}


@pytest.fixture
def good(tmp_path: Path) -> Recording:
    return read(save(tmp_path / "good.npz", recorded(HMMA, rows=40, terms=8)))


def assert_same(x: Recording, y: Recording) -> None:
    for one, other in zip(x.arrays(7), y.arrays(7), strict=True):
        assert one.keys() == other.keys()
        for name, codes in one.items():
            assert codes.dtype == other[name].dtype
            assert (codes == other[name]).all()


# ---- writing and reading again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("i", [HMMA, volta["HMMA.884.F32.F16"], MIXED, SCALED], ids=lambda i: i.name)
def test_what_is_written_is_read(tmp_path: Path, suffix: str, i: Instruction) -> None:
    arrays = scaled() if i is SCALED else recorded(i, rows=30)
    source = read(save(tmp_path / "x.npz", arrays | {"meta": said(i)}))
    written = write(source, tmp_path / f"y{suffix}")
    again = read(tmp_path / f"y{suffix}")
    assert (again.rows, again.terms, again.instruction) == (30, i.k, i)
    assert_same(source, written)
    assert_same(source, again)
    assert check(again).mismatches == 0
    assert_same(source, write(again, tmp_path / "z.npz"))


def said(i: Instruction) -> dict[str, Any]:
    told = meta(i, i.k, device="a chip", driver="1.2", source="a test")
    if i.a_format is not i.b_format:
        del told["input_format"]
        told |= {"a_format": i.a_format.name, "b_format": i.b_format.name}
    return told


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_is_left_of_what_was_not_written(good: Recording, tmp_path: Path, suffix: str) -> None:
    class Broken(Recording):
        def arrays(self, rows: int = 16) -> Iterator[Arrays]:
            yield from (each for _, each in zip(range(2), super().arrays(rows), strict=False))
            raise KeyboardInterrupt

    broken = Broken(**{name: getattr(good, name) for name in good.__dataclass_fields__})
    target = tmp_path / f"out{suffix}"
    target.write_bytes(b"was there")
    with pytest.raises(KeyboardInterrupt):
        write(broken, target)
    assert target.read_bytes() == b"was there"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["good.npz", target.name]


def test_no_other_suffix_is_written(good: Recording, tmp_path: Path) -> None:
    for name in ("x.txt", "x.dat", "x"):
        with pytest.raises(ValueError, match=r"written as .npz, .parquet or .csv, not x"):
            write(good, tmp_path / name)
    with pytest.raises(OSError, match="No such file"), replacing(tmp_path / "no" / "x.npz"):
        pass


def test_a_file_is_known_by_its_beginning(good: Recording, tmp_path: Path) -> None:
    shutil.copy(good.path, tmp_path / "recording")
    assert read(tmp_path / "recording").rows == 40
    (tmp_path / "strange").write_text("what?")
    for name in ("strange", "nothing"):
        with pytest.raises(RecordingError, match=r"no recording by its name|cannot be read: No such file"):
            read(tmp_path / name)
    assert layout_of(tmp_path / "X.CSV") == "csv"


# ---- what is wrong, with its row -----------------------------------------------------------------------------------


def lines(change: Callable[[list[str]], object]) -> Callable[[Path], object]:
    def apply(path: Path) -> None:
        text = path.read_text().split("\n")
        change(text)
        path.write_text("\n".join(text))

    return apply


def cell(text: list[str], line: int, column: int, value: str) -> None:
    words = text[line].split(",")
    words[column] = value
    text[line] = ",".join(words)


DAMAGED_CSV: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda p: p.write_bytes(b""), "no header: its first line names the columns"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-30]), r"line 42 \(row 39\) has 14 values, but .* 18"),
    "truncated after a row": (lines(lambda t: t.__delitem__(slice(-3, -1))), "'rows': 40, but 38 are there"),
    "too large": (lines(lambda t: cell(t, 5, 2, "1ffff")), r"line 6 \(row 3\): a2 is 0x1ffff, but fp16 codes are 0 to"),
    "no code": (lines(lambda t: cell(t, 9, 17, "1.5")), r"line 10 \(row 7\): d is '1.5', no hexadecimal code"),
    "negative": (lines(lambda t: cell(t, 9, 17, "-1")), r"line 10 \(row 7\): d is '-1', no hexadecimal code"),
    "underlined": (lines(lambda t: cell(t, 9, 0, "1_0")), r"line 10 \(row 7\): a0 is '1_0', no hexadecimal code"),
    "no value": (lines(lambda t: cell(t, 9, 8, "")), r"line 10 \(row 7\): b0 is '', no hexadecimal code"),
    "one more": (lines(lambda t: cell(t, 20, 17, "0,0")), r"line 21 \(row 18\) has 19 values, but there are 18"),
    "no d": (lines(lambda t: cell(t, 1, 17, "e")), "a column 'e': there are a0, a1, …, b0, b1, …, c, d: remove it"),
    "no a3": (lines(lambda t: cell(t, 1, 3, "a8")), "no column 'a3', but a later one of a"),
    "a twice": (lines(lambda t: cell(t, 1, 3, "a2")), "two columns 'a2'"),
    "fewer b": (lines(lambda t: cell(t, 1, 15, "scale_a0")), "there are block scales, but ampere HMMA"),
    "no meta": (lines(lambda t: t.pop(0)), "no line of '#' and a JSON object"),
    "other meta": (lines(lambda t: t.__setitem__(0, "# [1]")), r"meta is the JSON \[1\], not an object"),
    "no JSON": (lines(lambda t: t.__setitem__(0, "# yes")), "meta is not JSON"),
    "binary": (lambda p: p.write_bytes(b"\xff\xfe" * 100), "line 1 is no ASCII text"),
    "a line without end": (lambda p: p.write_bytes(b"0" * 100_000), "line 1 has more than 32768 characters"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED_CSV)
def test_damaged_text_is_one_clear_line(good: Recording, tmp_path: Path, damage: str) -> None:
    path = write(good, tmp_path / "x.csv").path
    change, message = DAMAGED_CSV[damage]
    change(path)
    with pytest.raises(RecordingError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_text_by_hand(tmp_path: Path) -> None:
    """Any order of columns, 0x or not, blanks, no end of the last line; meta from the caller."""
    path = tmp_path / "hand.csv"
    path.write_text("d, c ,b0,a0,b1,a1\r\n0x40400000,3F800000,3c00, 3c00,3C00,0x3c00\r\n\r\n0,0,0,0,0,0")
    recording = read(path, architecture="ampere", instruction="HMMA.16816.F32")
    assert (recording.rows, recording.terms) == (2, 2)
    assert check(recording).mismatches == 0


@pytest.mark.parquet
def test_damaged_parquet_is_one_clear_line(good: Recording, tmp_path: Path) -> None:
    path = write(good, tmp_path / "x.parquet").path
    whole = path.read_bytes()
    for content in (b"", whole[:4], whole[:-200], whole[: len(whole) // 2], b"PAR1" * 30, whole[200:]):
        path.write_bytes(content)
        with pytest.raises(RecordingError, match=r"no complete Parquet file|damaged") as caught:
            read(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parquet
def test_parquet_of_other_tools(good: Recording, tmp_path: Path) -> None:
    """A column for each product, signed integers; lists of unequal lengths, values that are none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    block, path = good.load(), tmp_path / "x.parquet"
    single = {
        f"{side}{k}": codes.astype(np.int64)
        for side in "ab"
        for k, codes in enumerate(getattr(block, side).T)
    }
    ends = {"c": block.c.astype(np.int64), "d": block.d.astype(np.int64)}
    names = {"architecture": "ampere", "instruction": "HMMA.16816.F32"}
    pq.write_table(pa.table(single | ends), path, row_group_size=11)
    assert_same(good, read(path, **names))

    lists = {side: getattr(block, side).tolist() for side in "ab"}
    damage: list[tuple[dict[str, Any], str]] = [
        ({"a": [*lists["a"][:30], [1, 2], *lists["a"][31:]]}, "a has 2 values in row 30, and 8 in row 0"),
        ({"a": [*lists["a"][:30], None, *lists["a"][31:]]}, "a has nothing in row 30"),
        ({"b": [*lists["b"][:9], [None] * 8, *lists["b"][10:]]}, "b has no value in row 9"),
        (
            {"b": [*lists["b"][:9], [1 << 16] * 8, *lists["b"][10:]]},
            "b holds 0x10000 in row 9, but fp16 codes are",
        ),
        ({"c": [-1, *ends["c"][1:].tolist()]}, "c holds -1 in row 0, but fp32 codes are"),
        ({"c": ends["c"].astype(float)}, "c is double: save bit patterns, as integers"),
        ({"a": ends["c"]}, "column 'a' is int64: lists of integers are needed"),
    ]
    for change, message in damage:
        pq.write_table(pa.table({**lists, **ends, **change}), path)
        with pytest.raises(RecordingError, match=message):
            for _ in read(path, **names).arrays(13):
                pass
    pq.write_table(pa.table({**lists, "c": ends["c"]}), path)
    with pytest.raises(RecordingError, match="no column 'd': a recording has a, b, c and d"):
        read(path, **names)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(RecordingError, match=r"Parquet needs pyarrow: pip install 'mmaformal\[parquet\]'"):
        read(tmp_path / "x.parquet")


@pytest.mark.parquet
def test_memory_is_bounded_by_pieces(tmp_path: Path) -> None:
    rows = 100_000
    arrays = {n: np.zeros((rows, 16), np.uint16) for n in "ab"} | {n: np.zeros(rows, np.uint32) for n in "cd"}
    source = read(save(tmp_path / "long.npz", arrays | {"meta": meta(HMMA, 16)}))
    path = write(source, tmp_path / "long.parquet").path
    total = sum(x.nbytes for x in arrays.values())
    del arrays
    tracemalloc.start()
    try:
        assert read(path).rows == rows
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < total / 3


# ---- block scales --------------------------------------------------------------------------------------------------


def test_block_scales_are_checked(tmp_path: Path) -> None:
    arrays = scaled() | {"meta": said(SCALED)}
    wrong = arrays["d"].copy()
    wrong[7] ^= 1
    report = check(read(save(tmp_path / "x.npz", arrays | {"d": wrong})))
    assert (report.mismatches, report.first_row) == (1, 7)
    assert report.smallest is not None
    assert report.smallest.scale_a == tuple(arrays["scale_a"][7].tolist())
    assert "scale_b = 0x" in str(report)
    assert cli.main(["check", str(tmp_path / "x.npz")]) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_a": None, "scale_b": None}, r"block scales are not there, and rtx_b.* takes ue4m3, one per 16"),
        ({"scale_b": None}, "no scale_b, but there is its other side"),
        ({"scale_a": np.zeros((30, 2), np.uint8)}, r"scale_b has shape \(30, 4\), but .* it needs \(30, 2\)"),
        ({side: np.zeros((30, 2), np.uint8) for side in ("scale_a", "scale_b")}, "2 block scales per row, but"),
        ({"scale_a": np.zeros(30, np.uint8)}, r"scale_a has shape \(30,\), but needs \(rows, K / block\)"),
        ({"scale_a": np.zeros((30, 4), np.uint16)}, "scale_a is uint16, but ue4m3 bit patterns are uint8"),
    ],
)  # fmt: skip
def test_scales_that_are_not_there(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    arrays = {name: x for name, x in (scaled() | change).items() if x is not None}
    with pytest.raises(RecordingError, match=message):
        read(save(tmp_path / "x.npz", arrays | {"meta": said(SCALED)}))


# ---- text files of one operand each --------------------------------------------------------------------------------


def folder_of(path: Path, recording: Recording, device: str = "A100", wide: bool = True) -> Path:
    """The validation data's way: fp32 words in hexadecimal and binary."""
    path.mkdir()
    block = recording.load()
    formats = {
        "a": recording.a_format,
        "b": recording.b_format,
        "c": recording.d_format,
        "d": recording.d_format,
    }
    for name, fmt in formats.items():
        codes = getattr(block, name).reshape(recording.rows, -1)
        bits = 32 if wide else fmt.storage_bits
        if wide and fmt.storage_bits < 32:
            codes = codes.view(fmt.dtype).astype(np.float32).view(np.uint32)
        word = f"{{:0{bits // 4}x}}" if name in "ab" else f"{{:0{bits}b}}"
        text = "".join(" ".join(word.format(int(x)) for x in row) + "\n" for row in codes)
        (path / f"{name}_{device}_{'fp32' if name == 'c' else fmt.name}.txt").write_text(text)
    return path


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("name", ["a100_fp16_fp32", "v100_fp16_fp16", "h100_tf32_fp32", "ada_e4m3_fp16"])
def test_text_files_of_one_operand_each(tmp_path: Path, name: str, wide: bool) -> None:
    if not SHARED.exists():
        pytest.skip("no ../shared/recordings beside this checkout")
    source = read(SHARED / f"{name}.npz")
    device = name.partition("_")[0]
    folder = folder_of(tmp_path / "x", source, {"ada": "Ada"}.get(device, device.upper()), wide)
    if not wide and source.d_format.name == "fp16":
        (folder / f"c_{device}_fp32.txt").unlink(missing_ok=True)
    with pytest.raises(RecordingError, match="meta lacks 'instruction': --instruction names it"):
        read(folder)
    found = check_file(folder, instruction=source.name)
    assert isinstance(found, CheckReport), found
    assert (found.rows, found.mismatches) == (3000, 0)
    (folder / "meta.json").write_text(json.dumps({"instruction": source.name}))
    one = next(folder.glob("d_*.txt"))
    assert isinstance(found := check_file(one), CheckReport)
    assert found.mismatches == 0


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        ("a_A100_fp16.txt", 4, "xyz 0 0 0 0 0 0 0", r"line 5 \(row 4\): 'xyz' is no hexadecimal word"),
        ("a_A100_fp16.txt", 4, "3f800000", r"line 5 \(row 4\) has 1 words, and 8 are needed"),
        ("b_A100_fp16.txt", 39, "47800000 " + "0 " * 7, r"line 40 \(row 39\): 65536 is more than fp16 holds"),
        (
            "b_A100_fp16.txt",
            39,
            "3c0 " + "0 " * 7,
            r"line 40 \(row 39\): '3c0' is a word neither of fp16 nor of fp32",
        ),
        ("c_A100_fp32.txt", 0, "2" * 32, r"line 1 \(row 0\): '2+.* is no binary word"),
        ("d_A100_fp32.txt", 40, "0" * 32, r"a has shape \(40, 8\), but with d \(41,\)"),
        ("d_A100_fp32.txt", 0, "1 1", r"line 1 \(row 0\) has 2 words, and 1 are needed"),
    ],
)
def test_damaged_text_files_are_one_clear_line(
    good: Recording, tmp_path: Path, name: str, line: int, text: str, message: str
) -> None:
    folder = folder_of(tmp_path / "x", good)
    whole = (folder / name).read_text().splitlines()
    whole[line : line + 1] = [text]
    (folder / name).write_text("\n".join(whole))
    with pytest.raises(RecordingError, match=message) as caught:
        read(folder, instruction="HMMA.16816.F32")
    assert "\n" not in str(caught.value)


def test_folders_that_are_no_recording(good: Recording, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "x", good)
    shutil.copy(folder / "d_A100_fp32.txt", folder / "d_A100_fp16.txt")
    with pytest.raises(
        RecordingError, match=r"one file d_DEVICE_TYPE.txt is needed, .* has d_A100_fp16.txt, d_"
    ):
        read(folder)
    assert read(folder / "d_A100_fp32.txt", instruction="HMMA.16816.F32").rows == 40
    (folder / "b_A100_fp16.txt").unlink()
    with pytest.raises(
        RecordingError, match=r"one file b_DEVICE_TYPE.txt is needed, and the folder has none"
    ):
        read(folder / "d_A100_fp32.txt")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(RecordingError, match=r"named as d_H100_fp32.txt"):
        read(tmp_path / "notes.txt")
    (folder / "b_A100_e9m9.txt").write_text("")
    with pytest.raises(RecordingError, match=r"b_A100_e9m9.txt names no type"):
        read(folder / "d_A100_fp32.txt")
