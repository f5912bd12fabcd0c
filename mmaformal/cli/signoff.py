"""`mmaformal signoff`: whether a hardware design computes a model."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey, contents
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, wrong_use
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status, said
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.hardware.blackbox import DesignUnit
    from mmaformal.hardware.ports import PortMap
    from mmaformal.hardware.sources import Sources
    from mmaformal.queries.signoff_all import Kinds
    from mmaformal.solver.answers import Fails, Holds, Unknown

#: Words by which a design reads files that are not named: its content is not all that there is of it.
_READS_MORE = (b"`include", b"$readmem", b"$fopen")

_STATUS = {"holds": SETTLED, "fails": REFUTED, "unknown": UNKNOWN}


def _parameters(words: tuple[str, ...]) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for name, value in _pairs("-G", words).items():
        try:
            found[name] = int(value, 0)
        except ValueError:
            if not re.fullmatch(r"[\w':.]+", value):
                raise UsageError(f"-G {name}={value}: NAME=VALUE with a number is needed") from None
            found[name] = value
    return found


def _pairs(option: str, words: tuple[str, ...]) -> dict[str, str]:
    """Words NAME=VALUE."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {word}: NAME=VALUE is needed")
        found[name.strip()] = value.strip()
    return found


def design_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options that say what a design is read from, and what its ports are."""
    for option in reversed(_DESIGN):
        command = option(command)
    return command


def unit_options(command: Callable[..., object]) -> Callable[..., object]:
    """Options that say what a design is read from, and `--types`, which says what it takes where no model does."""
    return click.option(
        "--types", metavar="A[,B],C[,D]", help="Formats of a DESIGN, as fp16,fp32 or e4m3,e5m2,fp32,fp16."
    )(design_options(command))


class DesignOptions(TypedDict):
    """The values that the options of `design_options` give a command."""

    lists: tuple[Path, ...]
    top: str | None
    includes: tuple[Path, ...]
    defines: tuple[str, ...]
    parameters: tuple[str, ...]
    ports: tuple[str, ...]
    ties: tuple[str, ...]
    mapping: Path | None
    cycles: int | None
    held: bool


def is_design(files: Sequence[Path], given: DesignOptions) -> bool:
    """Whether files and options are of a hardware design."""
    return bool(given["lists"]) or any(options.is_design_file(str(path)) for path in files)


def design_unit(files: Sequence[Path], k: int | None, types: str | None, given: DesignOptions) -> DesignUnit:
    """The design that files and options say, compiled as a function of codes.  Raises UsageError where it is none."""
    from mmaformal.hardware.blackbox import from_rtl
    from mmaformal.hardware.module import HardwareError

    if k is None or types is None:
        raise UsageError("of a DESIGN, --k and --types say what it takes, as --k 4 --types fp16,fp32")
    with wrong_use(HardwareError):
        design = design_of(tuple(files), **given)
        return from_rtl(
            design.sources,
            k=k,
            **_formats(types),
            ports=design.said,
            held=design.held,
            progress=said,
        )


class _Formats(TypedDict):
    a_format: str
    b_format: str
    c_format: str
    d_format: str


def _formats(types: str) -> _Formats:
    """The formats by their keywords.  `fp16,fp32`: of a and b, and of c and d; of three, a, b, and c and d."""
    words = [word.strip() for word in types.split(",")]
    if not 2 <= len(words) <= 4:
        raise UsageError(f"--types {types}: two to four formats are needed, as fp16,fp32")
    if len(words) == 2:
        words = [words[0], words[0], words[1]]
    a, b, c, d = [*words, words[-1]][:4]
    return {"a_format": a, "b_format": b, "c_format": c, "d_format": d}


_DESIGN = (
    click.option(
        "-f", "lists", multiple=True, type=options.FILE, metavar="FILE",
        help="A list of files and options, as simulators take it; repeatable.",
    ),
    click.option("--top", metavar="MODULE", help="The design's module (default: the one that no other uses)."),
    click.option(
        "-I", "includes", multiple=True, type=options.FILE, metavar="FOLDER",
        help="A folder of include files; repeatable.",
    ),
    click.option(
        "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define for the preprocessor; repeatable."
    ),
    click.option(
        "-G", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of MODULE; repeatable."
    ),
    click.option(
        "--port", "ports", multiple=True, metavar="NAME=PORT[H:L]",
        help="Where an operand is: a=op_a_i[15:0], a[0]=ops_i[15:0], d=result_o; repeatable (default: by names).",
    ),
    click.option(
        "--tie", "ties", multiple=True, metavar="PORT=VALUE",
        help="What another input is: rnd_mode_i=0, start_i=1,0 by cycle, mode_i=any; repeatable.",
    ),
    click.option(
        "--mapping", type=options.FILE, metavar="FILE",
        help="Ports and ties in TOML, tables [port] and [tie].",
    ),
    click.option(
        "--cycles",
        type=click.IntRange(min=1),
        metavar="N",
        help="Read d N cycles after reset (default: a pipeline is folded)."
    ),
    click.option("--held", is_flag=True, help="Operands stay until d is there, whatever the pipeline's depth."),
)  # fmt: skip


@click.command()
@click.argument("files", nargs=-1, metavar="DESIGN…", type=options.FILE)
@click.option("--against", nargs=2, required=True, metavar="ARCH INSTRUCTION", help="The model.")
@options.replace
@options.model
@design_options
@options.where
@click.option(
    "--alike",
    multiple=True,
    type=click.Choice(["nan", "zero", "standard"]),
    help="Any NaN is right where the model gives one; or a zero of either sign; or what RISC-V's standard allows "
    "(docs/riscv.md); repeatable.",
)
@click.option(
    "--flags",
    metavar="PORT[H:L]",
    help="The exceptions of a single fma, in the place of d: NV, DZ, OF, UF, NX from the highest bit, tiny after "
    "rounding.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="After a difference the next of another kind, with its smallest input.",
)
@click.option(
    "--testbench",
    type=options.OUTPUT_FOLDER,
    metavar="DIR",
    help="Write testbenches of the inputs found (SystemVerilog, Verilator C++), and a SymbiYosys script.",
)
@click.option(
    "--simulate",
    "recordings",
    multiple=True,
    type=options.FILE,
    metavar="FILE",
    help="Only run the design on the rows of a recording (Verilator, else Icarus), and compare; repeatable.",
)
@solving(600.0, "in all", verbose=False, smtlib=False)
def signoff(
    files: tuple[Path, ...],
    against: tuple[str, str],
    changes: tuple[options.ParameterChange, ...],
    where: tuple[str, ...],
    alike: tuple[str, ...],
    flags: str | None,
    every: bool,
    testbench: Path | None,
    recordings: tuple[Path, ...],
    request: Solving,
    **given: Unpack[DesignOptions],
) -> int:
    """Prove that a DESIGN computes a model, for all inputs; or show the smallest input where it does not.

    DESIGN is SystemVerilog (the extra [rtl]), Verilog, BTOR2, or a function of a program, as dot4.c:dot4 (clang) or
    dot4.py:dot4. What its ports are is guessed where it is not said, and told. Pipelines are folded into logic; designs
    with feedback are unrolled with --cycles. A program that cannot be read is run on many rows: refuted, or unsettled.

    Exit status: 0 proved (with --simulate: every row right), 1 refuted, 3 not settled, 2 wrong use.
    """
    from mmaformal.architectures import ARCHITECTURES
    from mmaformal.architectures.datapaths import flags_of
    from mmaformal.hardware.module import HardwareError
    from mmaformal.recordings.archive import RecordingError

    if against[1].startswith("-"):
        raise UsageError(
            f"--against takes an ARCH and an INSTRUCTION, and {against[1]!r} is none: name it behind {against[0]}"
        )
    instruction = options.instruction_of(ARCHITECTURES[against[0]], against[1], changes, None)
    if flags is not None:
        given["ports"] = (*given["ports"], f"d={flags}")
        with wrong_use(ValueError):
            instruction = flags_of(instruction)
    if "standard" in alike and (every or testbench is not None):
        raise UsageError(
            "of --alike standard one input is shown, and no model's d: leave out --all and --testbench"
        )
    asked = _Asked(instruction, alike, where, every, testbench)
    with wrong_use(HardwareError, RecordingError):
        design = design_of(files, **given)
        if design.sources.program and (recordings or testbench is not None):
            raise UsageError(
                "a program is no hardware: leave out --simulate and --testbench; `mmaformal record` runs it"
            )
        if recordings:
            return _simulated(design, instruction, recordings, request)
        return _signed(design, asked, request)


@dataclass(frozen=True)
class _Asked:
    """A question about a design: the model, what counts as alike, conditions, how much is asked, a testbench."""

    model: Instruction
    alike: tuple[str, ...]
    where: tuple[str, ...]
    every: bool
    testbench: Path | None


@dataclass(frozen=True)
class _Design:
    sources: Sources
    said: PortMap
    held: bool = False

    @property
    def words(self) -> list[str] | None:
        """All that an answer about it depends on; None where it reads files that are not named."""
        from mmaformal.hardware.engines import build_of, engines

        if self.sources.program:  # what it includes or imports is not known
            return None
        for path in self.sources.files:
            with contextlib.suppress(OSError):
                if any(each in path.read_bytes() for each in _READS_MORE):
                    return None
        return [
            f"--top {self.sources.top}",
            *(f"-D {each}" for each in self.sources.defines),
            *(f"-G {name}={value}" for name, value in sorted(self.sources.parameters.items())),
            *(f"--port {name}={value}" for name, value in sorted(self.said.ports.items())),
            *(f"--tie {name}={value}" for name, value in sorted(self.said.ties.items())),
            f"--cycles {self.said.cycles} --held {self.held}",
            *contents(self.sources.files),
            *([] if self.sources.btor2 else map(build_of, engines(self.sources))),
        ]


def design_of(
    files: tuple[Path, ...],
    lists: tuple[Path, ...],
    top: str | None,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    parameters: tuple[str, ...],
    ports: tuple[str, ...],
    ties: tuple[str, ...],
    mapping: Path | None,
    cycles: int | None,
    held: bool,
) -> _Design:
    """A design as options say it.  Raises HardwareError for files that are not there."""
    from mmaformal.hardware.ports import PortMap, read_mapping
    from mmaformal.hardware.sources import Sources

    said = PortMap() if mapping is None else read_mapping(mapping)
    said = said.with_more(_pairs("--port", ports), _pairs("--tie", ties))
    said = said if cycles is None else replace(said, cycles=cycles)
    sources = Sources(files, top or said.top, includes, defines, _parameters(parameters), lists)
    return _Design(sources.complete(), said, held)


def _signed(design: _Design, asked: _Asked, request: Solving) -> int:
    from mmaformal.queries.signoff import signoff as sign
    from mmaformal.queries.signoff_all import signoff_all

    def ask() -> Holds | Fails | Unknown | Kinds:
        with Status() as status:
            return (signoff_all if asked.every else sign)(
                design.sources.files,
                asked.model,
                top=design.sources.top,
                defines=design.sources.defines,
                parameters=design.sources.parameters,
                includes=design.sources.includes,
                ports=design.said,
                held=design.held,
                where=asked.where,
                alike=asked.alike,
                **request.limits,
                progress=status.show,
            )

    afresh, words = asked.every or asked.testbench is not None, list[str]()
    if not afresh:
        known = design.words
        afresh, words = known is None, [*(known or ()), *(f"--where {each}" for each in asked.where)]
    key = RecallKey("signoff", (asked.model,), *words, *asked.alike, *request.solvers)
    answer = request.recall(key, ask, afresh=afresh)
    code = request.show(answer, _STATUS[answer.verdict])
    if asked.testbench is not None and not isinstance(answer, Recalled):
        _write_testbench(design, asked, asked.testbench, answer)
    return code


def _write_testbench(
    design: _Design, asked: _Asked, folder: Path, answer: Holds | Fails | Unknown | Kinds
) -> None:
    """Write the testbenches of what was found, and say where they are."""
    from mmaformal.queries.signoff_testbench import write_testbench

    files = write_testbench(
        folder,
        design.sources,
        asked.model,
        answer,
        said=design.said,
        held=design.held,
        where=asked.where,
        alike=asked.alike,
    )
    said(f"wrote {folder}: {', '.join(path.name for path in files)}")


def _simulated(
    design: _Design, instruction: Instruction, recordings: Sequence[Path], request: Solving
) -> int:
    from mmaformal.queries.signoff import on_recording

    runs = [
        on_recording(
            design.sources.files,
            instruction,
            path,
            top=design.sources.top,
            defines=design.sources.defines,
            parameters=design.sources.parameters,
            timeout=request.timeout,
        )
        for path in recordings
    ]
    said = (
        json.dumps([run.to_json() for run in runs], indent=2)
        if request.as_json
        else "\n".join(map(str, runs))
    )
    return answered(said, SETTLED if all(run.wrong == 0 for run in runs) else REFUTED)
