"""Does a hardware design compute a model, for all inputs?  If not, the smallest input on which it does not.

    print(signoff("fda.sv", hopper["HMMA.16816.F32"]))

The design is combinational SystemVerilog, Verilog or BTOR2 with the ports a, b, c, scale_a and scale_b (where there are
scales) and d (`mmaformal.hardware.module`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.inputs import Rows, zeros
from mmaformal.checked import Progress, caller
from mmaformal.display import LastingLine, counted
from mmaformal.hardware.blackbox import DesignUnit
from mmaformal.hardware.designs import Wired, wired
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.simulate import simulate
from mmaformal.hardware.sources import Sources, sources_of
from mmaformal.hardware.unread import UnreadProgramError, WrongUseError
from mmaformal.instruction import Instruction
from mmaformal.queries.comparing import Agreement
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.elimination import RecordedRows, rows_differ
from mmaformal.queries.signing import Signing
from mmaformal.queries.signoff_program import SigningProgram
from mmaformal.queries.signoff_run import SigningRuns
from mmaformal.queries.signoff_standard import SigningStandard, StandardProgram
from mmaformal.recordings.read import read, require_fit
from mmaformal.renamed import keywords
from mmaformal.result import Result
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Seconds that reading a design may take, however little time there is.
_READING = 60.0
#: Rows of a recording that are run at once.
_BLOCK = 100_000


@keywords(told="progress")
def signoff(
    files: str | Path | Sequence[str | Path] | DesignUnit,
    instruction: Instruction | str,
    *,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    includes: Sequence[str | Path] = (),
    lists: Sequence[str | Path] = (),
    ports: PortMap | Mapping[str, str] | None = None,
    ties: Mapping[str, str | int] | None = None,
    cycles: int | None = None,
    held: bool = False,
    where: Constraint | str | Iterable[Constraint | str] = (),
    alike: Collection[str] = (),
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Holds | Fails | Unknown:
    """Prove that a design gives the model's d for every input, or find the smallest input for which it does not.

    files: SystemVerilog or Verilog files read together, or one of BTOR2; or a design that `from_rtl` has read, which
    stands for the model once that is proved for every input and every bit of d.  top: the module (default: the one no
    other uses).  defines: of the preprocessor, `NAME` or `NAME=VALUE`.  parameters: of the module `top`, by name.
    includes: folders of include files.  lists: file lists, as simulators take them with -f.

    ports: where operands are, `{"a[0]": "ops_i[15:0]", "d": "result_o"}`.  ties: numbers of other inputs.  cycles:
    unroll a design with feedback from reset for so many.  held: operands stay until d is there.  where: constraints on
    the inputs, as `find_difference` takes them.  alike: "nan", any NaN is right where the model gives one, as it is
    where the model's NaN is not canonical; "zero", so is a zero of either sign; "standard", what RISC-V's allows.

    timeout: seconds in all.  memory: megabytes for each process of `solver` (default: z3 and Bitwuzla).  progress:
    is called with the wiring before anything is asked, then with what is asked.  cache: as `prove` has it.  What the
    design leaves undefined may be anything: each x, each signal that nothing drives, what is read beyond a vector's
    ends, and what is divided by zero.  Where d does not depend on some input, the notes say so.  A program that cannot
    be read is run, never proved.

    Raises HardwareError for a design that cannot be read, feeds back to itself where `cycles` is not given, or lacks a
    port for an operand; ValueError for a `where` that no input satisfies.
    """
    caller(progress)
    same, timeout = Agreement(as_constraints(where), alike), checked_timeout(timeout)
    instruction, say = instruction_meant(instruction), progress or (lambda _: None)
    if isinstance(files, DesignUnit):
        _check_takes(files, instruction)
        design: Wired | UnreadProgramError = files.design
    else:
        sources = sources_of(files, top, defines, parameters)
        sources = replace(sources, includes=tuple(map(Path, includes)), lists=tuple(map(Path, lists)))
        mapped = port_map(ports, ties, cycles)
        design = read_or_run(sources, instruction, mapped, held, max(timeout, _READING), progress)
    with session(solver, memory, cache) as portfolio:
        signed = _signing(design, instruction, Asker(portfolio, timeout), say, same)
        answer = signed.asker.within(signed.question, signed.answer)
    assert isinstance(answer, Holds | Fails | Unknown)
    if isinstance(files, DesignUnit) and isinstance(answer, Holds) and not (same.where or same.alike):
        files.proved = (instruction, answer)
    return answer


def _signing(
    design: Wired | UnreadProgramError,
    instruction: Instruction,
    asker: Asker,
    progress: Progress,
    same: Agreement,
) -> Signing | SigningRuns:
    """A design to be signed off; of a program, its undefined behaviour too, or what it gives as it is run."""
    if isinstance(design, UnreadProgramError):
        return SigningRuns(design, instruction, asker, progress, same)
    of_standard = "standard" in same.alike
    if design.behaviour is None:
        return (SigningStandard if of_standard else Signing).of(design, instruction, asker, progress, same)
    return (StandardProgram if of_standard else SigningProgram)(design, instruction, asker, progress, same)


def _check_takes(unit: DesignUnit, instruction: Instruction) -> None:
    """Raise ValueError where a design that was read takes other types than an instruction."""
    mine = (*Types.of(cast(DotAdd, unit.shape)), unit.shape.k)
    if mine != (*Types.of(instruction.spec), instruction.k):
        raise ValueError(f"{unit.name} was read for other types, or another K, than {instruction.label} has")


def read_or_run(
    sources: Sources,
    instruction: Instruction,
    said: PortMap,
    held: bool,
    timeout: float,
    progress: Progress | None = None,
) -> Wired | UnreadProgramError:
    """A design wired to an instruction's operands; of a program that cannot be read, though it runs, why it cannot.

    Raises HardwareError as `signoff` does, also for what is not read and does not run.
    """
    say = progress or (lambda _: None)
    say("the design is read")
    try:
        return wired(sources, instruction.spec, said, held=held, timeout=timeout, progress=progress)
    except UnreadProgramError as error:
        try:
            error.program.run(Rows.of([zeros(instruction.spec)]))
        except WrongUseError:
            raise
        except HardwareError:
            raise error from None  # it does not run either
        for line in (*error.program.told, f"it cannot be read, so it is only run: {error}"):
            say(LastingLine(line))
        return error


@dataclass(frozen=True, repr=False)
class Simulated(Result):
    """A design run on the rows of a recording."""

    recording: str
    recorded_rows: int
    wrong: int  #: rows whose d is another
    first: str  #: the first of them, if there is one

    @property
    def verdict(self) -> str:
        """`match` or `mismatch`."""
        return "mismatch" if self.wrong else "match"

    def __str__(self) -> str:
        first = f": {self.first}" if self.first else ""
        return f"{self.recording}: {counted(self.recorded_rows, 'row')}, {self.wrong:,} wrong{first}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "recording": self.recording,
            "rows": self.recorded_rows,
            "wrong": self.wrong,
            "first": self.first,
        }


def _only_module(files: Sequence[Path]) -> str:
    """The module that is named as its file, or the only one there is.  Raises HardwareError."""
    try:
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(f"{files[0]} cannot be read: {error}") from None
    names: list[str] = re.findall(r"^\s*module\s+(\w+)", text, re.MULTILINE)
    named = [name for name in names if name == files[0].stem] or names
    if len(named) != 1:
        raise HardwareError(f"there are {len(names)} modules in {files[0].name}: name one with --top")
    return named[0]


def on_recording(
    files: Sequence[Path],
    instruction: Instruction,
    path: Path,
    *,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    simulator: str | None = None,
    timeout: float = 600.0,
) -> Simulated:
    """Run a design on every row of a recording, and compare its d with the recorded one.

    Raises HardwareError as `simulate` does, RecordingError for what is no recording, or one of other types.
    """
    spec, recording = instruction.spec, read(path)
    require_fit(recording, instruction)
    types = Types.of(spec)
    wrong, first, done = 0, "", 0
    for block in recording.blocks(_BLOCK):
        given = RecordedRows.of(block, types, spec.k)
        d = simulate(
            files,
            spec,
            given.rows,
            top or _only_module(files),
            defines=defines,
            parameters=parameters,
            simulator=simulator,
            timeout=timeout,
        )
        differ = rows_differ(spec, d, given.d)
        if differ.any() and not first:
            row = int(np.flatnonzero(differ)[0])
            first = f"row {done + row}: recorded {int(given.d[row]):#x}, the design gives {int(d[row]):#x}"
        wrong, done = wrong + int(differ.sum()), done + len(d)
    return Simulated(path.name, done, wrong, first)


def port_map(
    ports: PortMap | Mapping[str, str] | None, ties: Mapping[str, str | int] | None, cycles: int | None
) -> PortMap:
    """Return what is said of the ports, as one."""
    found = ports if isinstance(ports, PortMap) else PortMap(dict(ports or {}))
    found = found.with_more({}, {name: str(value) for name, value in (ties or {}).items()})
    return found if cycles is None else replace(found, cycles=cycles)
