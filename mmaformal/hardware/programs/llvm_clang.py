"""A function in C as LLVM's text, by clang and llvmlite; and the same compiled, to be run."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.sources import Sources

#: Names of clang, the newest first.
_NAMES = ("clang", *(f"clang-{version}" for version in range(25, 12, -1)))
#: Seconds that a compiler may take.
_COMPILING = 60.0
#: Options by which clang's front end writes it, with no step that defines what is undefined; as if optimised,
#: since inline functions are left out else.
_READING = ("-O1", "-Xclang", "-disable-llvm-passes", "-fno-discard-value-names", "-g", "-w", "-fno-builtin")
_WRAPPER = """#include "{path}"
#ifdef __cplusplus
extern "C"
#endif
void *const {entry} = (void *){function};
"""
#: The variable that the function's address is in.
ENTRY = "mmaformal_entry"


def clang() -> str:
    """The compiler's path.  Raises HardwareError where there is none."""
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise HardwareError(
        "there is no clang, which C is read by: install it (Debian has a package of this name)"
    )


def llvm_text(source: Sources) -> str:
    """A source as LLVM prints it.  Raises HardwareError where it cannot be compiled or read."""
    try:
        module = llvm.parse_bitcode(_compiled(source, [*_READING, "-emit-llvm", "-c"]))
        module.verify()
    except RuntimeError as error:
        version = llvm.llvm_version_info[0]
        raise HardwareError(
            f"clang's code is not read by LLVM {version}: {_first_line(str(error))}"
        ) from None
    return str(module)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")[:200]


def library(source: Sources, driver: bytes) -> bytes:
    """A shared library of a C file, optimised, and of an object that finds the function's address in `ENTRY`."""
    return _compiled(source, ["-O2", "-w", "-shared", "-fPIC", "-Wl,-Bsymbolic", "driver.o"], driver)


def _compiled(source: Sources, flags: Sequence[str], driver: bytes = b"") -> bytes:
    """Returns what clang makes of a C file, with the function's address in a variable so that it is kept."""
    path = str(source.files[0].resolve())
    if re.search(r'["\n\\]', path):
        raise HardwareError(f"clang cannot be given the name {path!r}")
    wrapper = _WRAPPER.format(path=path, entry=ENTRY, function=source.top)
    name = f"program{source.files[0].suffix}"
    flags = [*flags, *(() if name == "program.c" else ("-fno-exceptions", "-fno-rtti"))]
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        place = Path(folder)
        (place / name).write_text(wrapper, encoding="utf-8")
        (place / "driver.o").write_bytes(driver)
        includes = [f"-I{each.resolve()}" for each in source.includes]
        command = [
            clang(),
            *flags,
            *includes,
            *(f"-D{each}" for each in source.defines),
            name,
            "-o",
            "out",
        ]
        try:
            done = subprocess.run(
                command,
                cwd=place,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMPILING,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HardwareError(f"clang did not end in {_COMPILING:g} s") from None
        if done.returncode:
            raise HardwareError(_error(source, done.stderr))
        return (place / "out").read_bytes()


def _error(source: Sources, text: str) -> str:
    """The first error in one line, with file and line."""
    errors = [line for line in text.splitlines() if "error:" in line]
    first = errors[0] if errors else _first_line(text) or "clang failed"
    if f"undeclared identifier '{source.top}'" in text and first.startswith("program."):
        return f"there is no function {source.top} in {source.files[0].name}"
    where, _, what = first.partition("error:")
    number = re.search(r":(\d+):\d+: ", where)
    named = Path(where.split(":")[0]).name if number else source.files[0].name
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    hint = ": name the folder of include files with -I" if "file not found" in what else ""
    return f"{named}:{number[1] if number else ''}: {what.strip()}{more}{hint}"
