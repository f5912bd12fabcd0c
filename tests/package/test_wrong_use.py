"""Wrong inputs and wrong uses, of every command and of the library: one line that says what is wrong, the right exit
status, no traceback, and none that takes long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaformal
from mmaformal import ARCHITECTURES, ampere, cdna2, cli, find_difference, hopper, matmul, rtx_blackwell
from mmaformal.formats import Format, fp16, fp32
from mmaformal.queries.constraints import fixed, magnitude, parse_constraint
from mmaformal.queries.max_difference import max_difference
from mmaformal.queries.properties import PROPERTIES
from mmaformal.queries.signoff import signoff
from mmaformal.queries.verify import verify
from mmaformal.solver.portfolio import Portfolio

#: Seconds of this process' own work that a wrong use may take to be told.
PATIENCE = 2.0

DIFF = ["diff", "ampere", "hopper", "HMMA.1688.F32"]
PROVE = ["prove", "commutativity", "ampere", "HMMA.1688.F32"]
VERIFY = ["verify", "volta", "HMMA.884.F16.F16"]
SHOW = ["show", "ampere", "HMMA.1688.F32"]
RUN = ["run", "ampere", "HMMA.1688.F32", "--a", "1", "--b", "1", "--pad"]
SCALED = ["run", "rtx_blackwell", "QMMA.SF.16832.F32.E4M3.E4M3.E8", "--a", "1", "--b", "1", "--pad"]

NO_SECONDS = ["inf", "nan", "-1", "0", "-inf", "abc", "", "1e400", "5s", "1,5", "0x10", "1e9"]
NO_MEGABYTES = ["0", "-1", "x", "1.5", "", "1e3", "99999999999", "inf"]
NO_PRODUCTS = ["0", "-1", "x", "1.5", "", "12", "1600000000", "inf", "9" * 30]
NO_CHANGE = [
    *("", "F", "F=", "=23", "F=23.5", "F=x", "F=0", "F=-1", "F=1000", "F=1e3", "F=true", "F=fields"),
    *("L=0", "L=-8", "X=3", "rho=RZ-FP99", "rho=5", "e_zero=x", "e_zero=1e5", "k=7", "k=0", "a_format=fp99"),
    *("F=99999999999999999999", "a_format=3", "G=2", "name=", "algorithm=sfma"),
]
NO_CONSTRAINT = [
    *(
        "finit",
        "",
        "c=",
        "c=x",
        "c=0x1ffffffff",
        "c=-1",
        "a99=0",
        "a0=0x10000",
        "d=0",
        "magnitude",
        "magnitude 1",
    ),
    *(
        "magnitude 2 1",
        "magnitude a b",
        "magnitude 1 2 d",
        "magnitude -1 2",
        "magnitude nan 1",
        "finite finite",
    ),
    *(
        "magnitude 0 1e999999999",
        "magnitude 1/0 2",
        "magnitude 0x1p99999 2",
        "a[0=1",
        "c=0x",
        "a0",
        "magnitude 1 2 abc abc",
    ),
]
NO_VALUE = [
    *(
        "",
        "x",
        "0x",
        "0xg",
        "1,,1",
        ",",
        "70000",
        "0x10000",
        "1e999",
        "-",
        "--",
        "1;2",
        "1 2",
        "infinite",
    ),
    *("0x1.8", "nann", "1e", "0x-1", "1_0_", "½", "1" * 400, "1e999999999", "-1e-999999999", "True"),
]

COMMANDS: list[list[str]] = [
    [],
    ["compare"],
    ["diffs"],
    ["DIFF"],
    ["--bogus"],
    ["-x"],
    [""],
    *([*base, "--timeout", text] for base in (DIFF, PROVE, VERIFY) for text in NO_SECONDS),
    *([*base, "--memory", text] for base in (DIFF, PROVE, VERIFY) for text in NO_MEGABYTES),
    *([*base, "--k", text] for base in (DIFF, PROVE, SHOW, RUN) for text in NO_PRODUCTS),
    *([*base, "--replace", text] for base in (DIFF, PROVE, SHOW, RUN) for text in NO_CHANGE),
    *([*VERIFY, "--jobs", text] for text in ("0", "-1", "x", "1.5", "", "100000")),
    *([*DIFF, "--where", text] for text in NO_CONSTRAINT),
    *(
        [*RUN[:3], option, text, other, "1", "--pad"]
        for text in NO_VALUE
        for option, other in (("--a", "--b"),)
    ),
    *([*RUN, "--c", text] for text in ("", "x", "1,2", "0x1ffffffff", "1e39", "1e999999999", "0x", "nan1")),
    [*RUN, "--scale-a", "1"],
    [*RUN[:-1]],
    RUN[:5],
    [*SCALED],
    [*SCALED, "--scale-a", "1"],
    [*SCALED, "--scale-a", "1,1", "--scale-b", "1"],
    [*SCALED, "--scale-a", "0", "--scale-b", "1"],
    [*SCALED, "--scale-a", "x", "--scale-b", "1"],
    *([*base, "--solver", text] for base in (DIFF, PROVE) for text in ("yices", "", "Z3", "z3,bitwuzla")),
    *([*base, "--bogus"] for base in (DIFF, PROVE, VERIFY, SHOW, RUN, ["list"], ["check", "x"])),
    *([*base, "extra", "extra"] for base in (DIFF, PROVE, VERIFY, SHOW, RUN, ["list"])),
    *([*base, "--no-cache", "--evidence", "new.db"] for base in (DIFF, PROVE, VERIFY)),
    *(
        [*base, "--evidence", path]
        for base in (DIFF, PROVE, VERIFY)
        for path in ("folder", "text", "text/x", "")
    ),
    *([*base, "--smtlib", path] for base in (DIFF, PROVE, VERIFY) for path in ("text", "text/x")),
    *([*DIFF, "--cuda", path] for path in ("folder", "text/x", "none/x", "")),
    [*PROVE, "--where", "finite"],
    ["diff", "cdna2", "cdna3", "f32_16x16x4f32", "--cuda", "new.cu"],
    *(["diff", *words] for words in ([], ["ampere"], ["ampere", "hopper"], ["ampere", "ampere", "HMMA"])),
    ["diff", "ampere", "hopper", "HMMA.1688.F32", "HMMA.16816.F32"],
    ["diff", "hopper", "hopper", "HMMA.16816.F32", "HMMA.16816.F16"],
    ["diff", "hopper", "cdna3", "HMMA.16816.F32"],
    *(
        ["diff", "ampere", name, "HMMA.1688.F32"]
        for name in ("hoper", "", "@", "hopper@", "hopper@v9", "HMMA")
    ),
    *(
        ["show", "ampere", name]
        for name in ("HGMMA.64x8x16.F32", "", "HMMA.1689.F32", "x" * 300, "\n", "*x", "[")
    ),
    *(["list", name] for name in ("hoper", "hopper@v9", "ZMMA*", "[", "@paper-v1")),
    ["list", "hopper", "ZMMA"],
    *(["prove", *words] for words in ([], ["commutativity"], ["commutativity", "ampere"])),
    ["prove", "comutativity", "ampere", "HMMA.1688.F32"],
    ["prove", "", "ampere", "HMMA.1688.F32"],
    ["prove", "order-independence", "vulcan", "HMMA.1688.F32"],
    ["prove", "order-independence", "ampere", "HMMA.1"],
    *(
        ["verify", *words]
        for words in ([], ["volta", "--all"], ["vulcan"], ["volta", "HMMA.1"], ["--all", "--jobs"])
    ),
    [*VERIFY, "--confirm", "yices"],
    [*VERIFY, "--cluster"],
    ["check"],
    ["check", "text", "--arch", "hoper"],
    ["check", "text", "--replace", "F"],
    ["check", "folder"],
    ["check", ""],
    ["explain", "", "", ""],
    ["probe", "hopper", "HMMA.16816.F32", ""],
    ["completion"],
    ["completion", "tcsh"],
    ["completion", "bash", "zsh"],
]

#: Files with mistakes, which are told of that file, on stdout, so that the others are checked.
FILES = ["none.npz", "text", "/dev/null", "cut.npz", "empty.npz", "other.npz", "pickle.npz"]


@pytest.fixture(autouse=True)
def _nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no solver be asked: a mistake is told before."""

    def ask(*_: Any, **__: Any) -> Any:
        raise AssertionError("a solver was asked")

    monkeypatch.setattr(Portfolio, "ask", ask)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with things that are not what they are taken for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("text\n")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.savez(tmp_path / "pickle.npz", a=np.array([{}], dtype=object))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:60])
    (tmp_path / "empty.npz").touch()
    return tmp_path


def _name(words: list[str]) -> str:
    return " ".join(words)[:60] or "nothing"


def test_there_are_enough() -> None:
    assert len(COMMANDS) + len(FILES) + len(CALLS) >= 400


@pytest.mark.parametrize("words", COMMANDS, ids=_name)
def test_a_command_tells_wrong_use_in_a_line(
    words: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(place.iterdir())
    start = time.process_time()
    status = cli.main(words)
    assert time.process_time() - start < PATIENCE
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("mmaformal: ")
    assert err.count("\n") == 1
    assert len(err) < 700
    assert "Traceback" not in err
    assert sorted(place.iterdir()) == before, "something was written"


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_no_recording_is_told_in_a_line(
    file: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = time.process_time()
    status = cli.main(["check", file])
    assert time.process_time() - start < PATIENCE
    out, err = capsys.readouterr()
    assert (status, err) == (2, "")
    assert out.count("\n") == 1
    assert "error: " in out


H = hopper["HMMA.16816.F32"]
SFMA = cdna2["v_mfma_f32_16x16x4f32"]
MX = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
A, B, C = np.zeros(16, np.uint16), np.zeros(16, np.uint16), np.uint32(0)

#: one or the other
WRONG = (TypeError, ValueError, LookupError)


def _multiply(a: Any, b: Any, **more: Any) -> Any:
    return matmul(a, b, instruction=H, **more)


def _zeros(rows: int, columns: int, dtype: Any = np.float16) -> Any:
    return np.zeros((rows, columns), dtype)


#: (what is wrong, what is called, what it raises)
CALLS: list[tuple[str, Callable[[], Any], Any]] = [
    ("an architecture there is not", lambda: ARCHITECTURES["hoper"], KeyError),
    ("an instruction there is not", lambda: hopper["HMMA.1"], KeyError),
    ("a number for a name", lambda: hopper[16816], (KeyError, TypeError)),  # type: ignore[index]
    ("a revision there is not", lambda: hopper.revision("v9"), KeyError),
    *(
        (f"replace {name}={value!r}", lambda n=name, v=value: H.replace(**{n: v}), WRONG)
        for name, value in [
            *(("F", value) for value in (23.5, True, "23", None, 0, -1, 1000, [23])),
            *(("L", value) for value in (0, -1, 1.5, "8")),
            *(("rho", value) for value in ("RZ-FP99", 5, None, fp32)),
            *(("e_zero", value) for value in (1.5, "x", True)),
            *(("k", value) for value in (0, -16, 7.5, "16", True)),
            *(("a_format", value) for value in ("fp99", 16, None)),
            *((name, 1) for name in ("X", "G", "algorithm", "spec")),
        ]
    ),
    *((f"chained({k!r})", lambda k=k: H.chained(k), WRONG) for k in (32.0, "32", 0, -16, 17, None, True)),
    ("sized(7, 7)", lambda: H.sized(7, 7), ValueError),
    *(
        (f"dot_add of {what}", lambda x=x: H.dot_add(x, B, C), WRONG)
        for what, x in [
            ("fewer", A[:8]),
            ("floats", A.astype(np.float32)),
            ("signed integers", A.astype(np.int16)),
            ("codes too large", np.full(16, 1 << 16, np.uint32)),
            ("negative codes", [-1] * 16),
            ("booleans", A.astype(bool)),
            ("text", ["x"] * 16),
            ("nothing", None),
            ("a number", 1),
            ("objects", np.array([{}] * 16)),
            ("too many dimensions that do not fit", np.zeros((3, 16), np.uint16)[:, :9]),
            ("ragged lists", [[0] * 16, [0] * 15]),
            ("complex numbers", A.astype(complex)),
        ]
    ),
    ("dot_add with scales", lambda: H.dot_add(A, B, C, A, A), TypeError),
    (
        "dot_add without scales",
        lambda: MX.dot_add(np.zeros(32, np.uint8), np.zeros(32, np.uint8), C),
        TypeError,
    ),
    ("run of other shapes", lambda: H.run(A, B, C), ValueError),
    ("matmul of shapes that do not fit", lambda: _multiply(_zeros(4, 16), _zeros(8, 4)), ValueError),
    ("matmul of other types", lambda: _multiply(_zeros(4, 16, float), _zeros(16, 4, float)), WRONG),
    ("matmul with split_k 0", lambda: _multiply(_zeros(4, 16), _zeros(16, 4), split_k=0), ValueError),
    ("find_difference without a name", lambda: find_difference(ampere, hopper), TypeError),
    (
        "find_difference of texts that name nothing",
        lambda: find_difference("h10", "hopper", "HMMA.1688.F32"),
        WRONG,
    ),
    ("find_difference of what cannot be compared", lambda: find_difference(H, SFMA), ValueError),
    *(
        (f"find_difference with timeout={value!r}", lambda v=value: find_difference(H, H, timeout=v), WRONG)
        for value in (0, -1, float("nan"), float("inf"), "5", None)
    ),
    *(
        (
            f"prove with timeout={value!r}",
            lambda v=value: PROPERTIES["commutativity"].prove(H, timeout=v),
            WRONG,
        )
        for value in (0, -1, float("nan"), float("inf"), "5")
    ),
    *(
        (f"verify with timeout={value!r}", lambda v=value: verify(H, timeout=v), WRONG)
        for value in (0, -1, float("nan"), float("inf"), "5")
    ),
    ("find_difference with no such solver", lambda: find_difference(H, H, solver=["yices"]), ValueError),
    ("find_difference with memory=0", lambda: find_difference(H, H, memory=0), ValueError),
    ("find_difference with a number for a constraint", lambda: find_difference(H, H, where=5), WRONG),  # type: ignore[arg-type]
    ("prove with no such property", lambda: mmaformal.prove("comutativity", H), (KeyError, ValueError)),
    ("prove of a text that names no instruction", lambda: mmaformal.prove("commutativity", "hopper"), WRONG),
    ("Portfolio of nothing", lambda: Portfolio([]), ValueError),
    ("Portfolio with memory=-1", lambda: Portfolio(memory=-1), ValueError),
    ("magnitude from 2 to 1", lambda: magnitude(2, 1), ValueError),
    ("magnitude of d", lambda: magnitude(1, 2, "d"), ValueError),
    ("fixed at a place there is not", lambda: find_difference(H, H, where=fixed(a={16: 0})), ValueError),
    ("parse of nothing", lambda: parse_constraint(""), ValueError),
    ("a value that is none", lambda: fp16.code("1e999"), ValueError),
    ("a code that is none", lambda: fp16.value(1 << 16), ValueError),
    ("a Format too wide", lambda: Format("wide", 100, 20), WRONG),
]


@pytest.mark.parametrize(("what", "call", "raises"), CALLS, ids=[what for what, *_ in CALLS])
def test_a_call_tells_wrong_use_in_a_line(what: str, call: Callable[[], Any], raises: Any) -> None:
    start = time.process_time()
    with pytest.raises(raises) as caught:
        call()
    assert time.process_time() - start < PATIENCE
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 700


@pytest.mark.parametrize(
    "call",
    [
        lambda: find_difference(ampere, hopper, "HMMA.1688.F32", progress=True),
        lambda: mmaformal.prove("commutativity", H, progress=1),
        lambda: max_difference(ampere, hopper, "HMMA.1688.F32", progress=True),
        lambda: mmaformal.diagnose("rows.npz", progress=True),
        lambda: mmaformal.mismatches("rows.npz", progress=True),
        lambda: mmaformal.identify(H, progress=True),
        lambda: mmaformal.fingerprint([H, SFMA], progress=True),
        lambda: signoff("unit.sv", H, progress=True),
    ],
)
def test_a_progress_that_is_no_function_is_refused_before_any_work(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="progress is a function of a line of text, print for example, not"):
        call()


# ---- as processes: streams that are closed, full, narrow, or that nobody reads


def _shell(words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -m mmaformal {words}'
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


SHELL = pytest.mark.skipif(sys.platform != "linux", reason="needs bash and /dev/full")


@SHELL
@pytest.mark.parametrize(
    ("words", "status", "lines"),
    [
        ("list >&-", 0, 0),
        ("list >/dev/full", 2, 1),
        ("list | head -1; exit ${PIPESTATUS[0]}", 0, 0),
        ("--help | true; exit ${PIPESTATUS[0]}", 0, 0),
        ("show hopper HMMA.16816.F32 2>&-", 0, 0),
        ("show hoper HMMA.16816.F32 2>&-", 2, 0),
        ("show hoper HMMA.16816.F32 2>/dev/full", 2, 0),
        ("list <&- >&- 2>&-", 0, 0),
    ],
)
def test_streams_that_fail_are_a_line_or_none(words: str, status: int, lines: int) -> None:
    done = _shell(words)
    assert (done.returncode, done.stderr.count("\n")) == (status, lines), done.stderr


@SHELL
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_cannot_show_is_shown_as_something_else(encoding: str) -> None:
    done = _shell("show hopper HMMA.16816.F32", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rho = RZ-FP32" in done.stdout
