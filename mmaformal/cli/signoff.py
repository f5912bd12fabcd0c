"""`mmaformal signoff`: whether a hardware design computes a model."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.cli import options
from mmaformal.cli.recall import Question, contents
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status, told
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.solver.answers import Fails, Holds, Unknown
    from mmaformal.solver.evidence import EvidenceStore

#: What a design reads of files that are not named: its content is not all that there is of it.
_READS_MORE = (b"`include", b"$readmem", b"$fopen")

_STATUS = {"holds": SETTLED, "fails": REFUTED, "unknown": UNKNOWN}


def _parameters(words: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = int(value, 0)
        except ValueError:
            raise UsageError(f"-G {word}: NAME=VALUE with an integer is needed") from None
    return found


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="DESIGN…", type=click.Path(path_type=Path))
@click.option("--against", nargs=2, required=True, metavar="ARCH INSTRUCTION", help="The model.")
@options.replace
@options.model
@click.option("--top", metavar="MODULE", help="The design's module (default: the one that no other uses).")
@click.option(
    "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define for the preprocessor; repeatable."
)
@click.option(
    "-G", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of MODULE; repeatable."
)
@click.option(
    "--simulate",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Only run the design on the rows of a recording (Verilator, else Icarus), and compare; repeatable.",
)
@options.timeout(600.0, "in all")
@options.memory(4096)
@options.solver
@options.evidence
@options.json
def signoff(
    files: tuple[Path, ...],
    against: tuple[str, str],
    changes: tuple[options.Change, ...],
    top: str | None,
    defines: tuple[str, ...],
    parameters: tuple[str, ...],
    recordings: tuple[Path, ...],
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    as_json: bool,
) -> int:
    """Prove that a combinational DESIGN computes a model, for all inputs; or show the smallest input where it does not.

    DESIGN is SystemVerilog or Verilog, which yosys reads, or BTOR2. Its ports are those of `mmaformal verilog`.

    Exit status: 0 proved (with --simulate: every row right), 1 refuted, 3 not settled, 2 wrong use.
    """
    from mmaformal.architectures import ARCHITECTURES
    from mmaformal.hardware.module import HardwareError
    from mmaformal.recordings.archive import RecordingError

    instruction = options.instruction_of(ARCHITECTURES[against[0]], against[1], changes, None)
    design = _Design(files, top, defines, _parameters(parameters))
    try:
        if recordings:
            return _simulated(design, instruction, recordings, timeout, as_json)
        with options.remembering(evidence, no_cache) as store:
            limits = _Limits(timeout, memory, solvers)
            return _signed(design, instruction, store if evidence is None else None, limits, as_json)
    except (HardwareError, RecordingError) as error:
        raise UsageError(str(error)) from None


@dataclass(frozen=True)
class _Limits:
    timeout: float
    memory: int
    solvers: tuple[str, ...]


@dataclass(frozen=True)
class _Design:
    files: tuple[Path, ...]
    top: str | None
    defines: tuple[str, ...]
    parameters: dict[str, int]

    @property
    def words(self) -> list[str] | None:
        """All that an answer about it depends on; None where it reads files that are not named."""
        for path in self.files:
            with contextlib.suppress(OSError):
                if any(each in path.read_bytes() for each in _READS_MORE):
                    return None
        given = [f"-G {name}={value}" for name, value in sorted(self.parameters.items())]
        return [
            f"--top {self.top}",
            *(f"-D {each}" for each in self.defines),
            *given,
            *contents(self.files),
            _program("yosys"),
        ]


def _program(name: str) -> str:
    """A program on the PATH, as it is installed now."""
    found = shutil.which(name)
    if found is None:
        return f"no {name}"
    state = Path(found).stat()
    return f"{found} {state.st_size} {state.st_mtime_ns}"


def _signed(
    design: _Design, instruction: Instruction, store: EvidenceStore | None, limits: _Limits, as_json: bool
) -> int:
    from mmaformal.queries.signoff import signoff as sign

    def ask() -> Holds | Fails | Unknown:
        with Status() as status:
            return sign(
                design.files,
                instruction,
                top=design.top,
                defines=design.defines,
                parameters=design.parameters,
                timeout=limits.timeout,
                memory=limits.memory,
                solver=limits.solvers or None,
                progress=status.show,
            )

    words = design.words
    question = Question("signoff", (instruction,), *(words or ()), *limits.solvers)
    answer = question.ask(store if words is not None else None, limits.timeout, ask)
    text = json.dumps(answer.to_json(), indent=2) if as_json else told(answer, False)
    return answered(text, _STATUS[answer.verdict])


def _simulated(
    design: _Design, instruction: Instruction, recordings: Sequence[Path], timeout: float, as_json: bool
) -> int:
    from mmaformal.queries.signoff import on_recording

    runs = [
        on_recording(
            design.files,
            instruction,
            path,
            top=design.top,
            defines=design.defines,
            parameters=design.parameters,
            timeout=timeout,
        )
        for path in recordings
    ]
    said = json.dumps([run.to_json() for run in runs], indent=2) if as_json else "\n".join(map(str, runs))
    return answered(said, SETTLED if all(run.wrong == 0 for run in runs) else REFUTED)
