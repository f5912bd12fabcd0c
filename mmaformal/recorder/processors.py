"""Units of processors: C with intrinsics, compiled and run here; Arm's and Power's under QEMU where it is no such one.

Sources: as `mmaformal/intrinsics.py`; the processor's name: Intel's SDM, CPUID (leaves 80000002H to 80000004H), and
Linux, Documentation/arch/arm64/cpu-feature-registers.rst (MIDR_EL1).
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from string import Template

from mmaformal.instruction import Instruction
from mmaformal.intrinsics import Intrinsic, function, preamble
from mmaformal.recorder.program import (
    RecorderError,
    RecorderProgram,
    compiler_words,
    program_source,
    tool_found,
)
from mmaformal.recorder.rows import RowLayout

_COMPILERS = ("gcc", "cc", "clang")
#: For those that QEMU runs elsewhere: the compiler, the emulator, and Debian's packages of both.
_EMULATED = {
    "__aarch64__": (
        "aarch64-linux-gnu-gcc",
        ("qemu-aarch64", "-cpu", "max"),
        "gcc-aarch64-linux-gnu, qemu-user",
    ),
    "__powerpc64__": (
        "powerpc64le-linux-gnu-gcc",
        ("qemu-ppc64le", "-cpu", "power10"),
        "gcc-powerpc64le-linux-gnu, qemu-user",
    ),
}
#: Python's names of processors that have a target's instructions.
_MACHINES = {
    "__x86_64__": ("x86_64", "AMD64"),
    "__aarch64__": ("aarch64", "arm64"),
    "__powerpc64__": ("ppc64le",),
}
_NAMES = {
    "__x86_64__": "an x86-64 processor",
    "__aarch64__": "an Arm processor (AArch64)",
    "__powerpc64__": "a Power processor",
}

_UNIT = Template("""\
#ifndef $target
#error "to be compiled for $processor"
#endif

$function

$describe

static const char *prepare(char *device, size_t size) {
    if (!($has)) return "$label: this processor has no $flag";
    describe(device, size);
    return 0;
}

static const char *run(struct Row *rows, int n) {
    for (int i = 0; i < n; ++i) rows[i].d = unit(rows[i].a, rows[i].b, rows[i].c);
    return 0;
}""")

_DESCRIBE = {
    "__x86_64__": """\
static void describe(char *device, size_t size) {
    unsigned name[13] = {0};
    for (unsigned i = 0; i < 3; ++i)
        __get_cpuid(0x80000002 + i, name + 4 * i, name + 4 * i + 1, name + 4 * i + 2, name + 4 * i + 3);
    unsigned a = 0, b, c, d;
    __get_cpuid(1, &a, &b, &c, &d);
    unsigned family = a >> 8 & 15, model = (a >> 4 & 15) | (a >> 12 & 0xF0);
    if (family == 15) family += a >> 20 & 255;
    snprintf(device, size, "\\"device\\": \\"%s (family %u, model %u)\\"", (char *)name, family, model);
}""",
    "__aarch64__": """\
static void describe(char *device, size_t size) {
    unsigned long midr = 0;
    if (getauxval(AT_HWCAP) >> 11 & 1) __asm__("mrs %0, midr_el1" : "=r"(midr));
    snprintf(device, size, "\\"device\\": \\"Arm, MIDR_EL1 %#lx\\"", midr);
}""",
    "__powerpc64__": """\
static void describe(char *device, size_t size) {
    const char *platform = (const char *)getauxval(AT_PLATFORM);
    snprintf(device, size, "\\"device\\": \\"Power, %s\\"", platform ? platform : "of no name");
}""",
}


def c_program(
    instruction: Instruction, unit: Intrinsic, compiler: str | None = None, *, here: bool = True
) -> RecorderProgram:
    """The program of a processor's unit.

    here: it is to run on this machine, so that the tools for that have to be found; else the compiler is as named, or
    cc.  Raises RecorderError, one line, for what is missing.
    """
    if not here:
        tools: tuple[tuple[str, ...], tuple[str, ...]] = ((compiler or "cc",), ())
    elif platform.machine() in _MACHINES[unit.target]:
        tools = (compiler_words(compiler) if compiler else (_native(instruction),), ())
    elif unit.target in _EMULATED:
        tools = _emulated(instruction, unit.target, compiler)
    else:
        raise RecorderError(
            f"{instruction.label} needs {_NAMES[unit.target]}: this one is {platform.machine()}"
        )
    layout = RowLayout(instruction)
    body = _UNIT.substitute(
        target=unit.target,
        processor=_NAMES[unit.target],
        function=function(instruction, unit, "unit"),
        describe=_DESCRIBE[unit.target],
        has=unit.has,
        flag=unit.flag,
        label=instruction.label,
    )
    text = program_source(layout, headers=preamble([(instruction, unit)]), unit=body, block=4096)
    flags = ("-O2", *(["-static"] if tools[1] else []))
    return RecorderProgram(text, ".c", *tools[:1], flags, tools[1])


def emulator(program: RecorderProgram) -> str | None:
    """Return the name of the emulator that makes the program's results; None if a processor does."""
    if not program.runner:
        return None
    said = subprocess.run(
        [program.runner[0], "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = said.splitlines()[0] if said else program.runner[0]
    return f"{version}, {' '.join(program.runner[1:])}: an emulator, not hardware"


def _native(instruction: Instruction) -> str:
    compiler = tool_found(_COMPILERS)
    if compiler is None:
        raise RecorderError(
            f"{instruction.label} needs a C compiler, and there is no {' or '.join(_COMPILERS)} here"
        )
    return compiler


def _emulated(
    instruction: Instruction, target: str, compiler: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    cross, runner, packages = _EMULATED[target]
    missing = [tool for tool in ([] if compiler else [cross]) + [runner[0]] if shutil.which(tool) is None]
    if missing:
        raise RecorderError(
            f"{instruction.label} needs {_NAMES[target]}, or {cross} and {runner[0]}: "
            f"no {' and no '.join(missing)} here (Debian: {packages})"
        )
    return (compiler_words(compiler) if compiler else (cross,)), runner
