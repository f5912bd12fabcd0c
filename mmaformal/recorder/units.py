"""Recording an instruction: its program, built and run here, or carried to a machine that has the unit and back."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.intrinsics import unit_of
from mmaformal.recorder import amd, nvidia, processors
from mmaformal.recorder.program import RecorderError, RecorderProgram, run_program
from mmaformal.recorder.rows import Outputs, RowLayout, check_request, read_outputs, stream
from mmaformal.recorder.writing import write_outputs
from mmaformal.recordings.layouts import layout_of, saver
from mmaformal.recordings.read import Recording
from mmaformal.recordings.schema import meta_of_unit
from mmaformal.recordings.write import replacing
from mmaformal.version import __version__


def record(
    instruction: Instruction | str,
    path: str | Path,
    *,
    rows: int = 100_000,
    seed: int = 0,
    compiler: str | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Record what this machine's own unit gives for random cases (`mmaformal.recorder.rows.stream`), as an `.npz`.

    instruction: one of the tables, or its name, "sapphire_rapids VDPBF16PS".  compiler: in place of those that are
    looked for; with options, if need be.  progress: called with a line of text as rows are done.
    The file appears when it is whole.  Raises RecorderError, a ValueError of one line, for what is missing: a program,
    a compiler, the unit.
    """
    instruction = instruction_meant(instruction)
    check_request(rows, seed)
    path = _checked(path)
    program = program_of(instruction, compiler)
    layout = RowLayout(instruction)
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        outputs = Path(folder, "rows")
        say = None if progress is None else lambda done: progress(f"{done:,} of {rows:,} rows")
        run_program(program, stream(instruction, rows, seed), layout.dtype.itemsize, outputs, say)
        return _write(read_outputs(outputs), path, {"emulator": processors.emulator(program)})


def from_outputs(outputs: str | Path, path: str | Path) -> Recording:
    """The recording of what a program wrote elsewhere.  Raises RecordingError, one line, if that is damaged."""
    return _write(read_outputs(Path(outputs)), _checked(path), {})


@dataclass(frozen=True, repr=False)
class Carried(ShortRepr):
    """A program and its rows, to be carried to a machine that has the unit."""

    source: Path
    rows: Path
    command: str  #: builds and runs it there, in the folder of both
    outputs: str  #: the file that this writes


def write_program(
    instruction: Instruction,
    folder: str | Path,
    *,
    rows: int = 100_000,
    seed: int = 0,
    compiler: str | None = None,
) -> Carried:
    """Write the program that `record` would run, and its rows, into a folder.  Needs no compiler here."""
    check_request(rows, seed)
    program = program_of(instruction, compiler, here=False)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    source, inputs = (folder / f"{instruction.name}{suffix}" for suffix in (program.suffix, ".rows"))
    with replacing(source) as new_source, replacing(inputs) as new_inputs:
        new_source.write_text(program.source, encoding="utf-8")
        with new_inputs.open("wb") as file:
            file.writelines(stream(instruction, rows, seed))
    outputs = f"{instruction.name}.out"
    return Carried(source, inputs, program.command_line(source.name, inputs.name, outputs), outputs)


def program_of(
    instruction: Instruction, compiler: str | None = None, *, here: bool = True
) -> RecorderProgram:
    """The program of an instruction, to run on this machine (`here`) or on another.  Raises RecorderError."""
    tabled = instruction.architecture in ARCHITECTURES and ARCHITECTURES[instruction.architecture]
    if not tabled or instruction.name not in tabled or tabled[instruction.name] != instruction:
        raise RecorderError(
            f"{instruction.label} is no instruction of the tables: nothing runs a hypothetical one, nor a chain at once"
        )
    unit = unit_of(instruction)
    if unit is not None:
        return processors.c_program(instruction, unit, compiler, here=here)
    if instruction.architecture in nvidia.GENERATIONS:
        return nvidia.mma_program(instruction, compiler, here=here)
    if instruction.architecture in amd.TARGETS:
        return amd.hip_program(instruction, compiler, here=here)
    raise RecorderError(f"{instruction.label}: there is no program for it")


def _checked(path: str | Path) -> Path:
    """A path whose suffix is that of a layout that can be written here; said before the work starts."""
    path = Path(path)
    saver(path)
    if layout_of(path) == "parquet" and find_spec("pyarrow") is None:
        raise RecorderError(f"{path.name} needs pyarrow: pip install 'mmaformal[parquet]'")
    return path


def _write(outputs: Outputs, path: Path, more: Mapping[str, object]) -> Recording:
    instruction = outputs.layout.instruction
    meta = {
        "gpu": more.get("emulator") or outputs.ran_on.get("device"),
        **meta_of_unit(instruction),
        **outputs.ran_on,
        **outputs.asked,
        "source": f"mmaformal {__version__}, record",
    }
    return write_outputs(outputs, path, meta)
