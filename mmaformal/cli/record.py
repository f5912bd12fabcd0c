"""`mmaformal record`: a recording from this machine's own unit or library, or from what a program wrote elsewhere."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from mmaformal.architectures import ARCHITECTURES, Architecture, UnknownInstructionError
from mmaformal.architectures.meant import instruction_meant
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered
from mmaformal.cli.signoff import DesignOptions, design_unit, is_design, unit_options
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.hardware.blackbox import DesignUnit
    from mmaformal.recordings.products import RecordedProduct
    from mmaformal.recordings.read import Recording


class _Shape(options.ParamKind):
    name = "shape"

    def convert(
        self,
        value: str | tuple[int, int, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, int, int]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d{1,9})[x,×](\d{1,9})[x,×](\d{1,9})", value.strip())
        if found is None:
            raise UsageError(f"--shape is M,K,N, as in 64,1024,64, not {value!r}", ctx)
        return int(found[1]), int(found[2]), int(found[3])


@click.command()
@click.argument("name", metavar="[INSTRUCTION|DESIGN]", type=options.INSTRUCTION, required=False)
@click.argument("files", nargs=-1, metavar="[FILE…]", type=options.FILE)
@click.option("--k", type=options.PRODUCTS, metavar="K", help="Products that d of a DESIGN has.")
@unit_options
@click.option(
    "--arch", type=options.ARCHITECTURE, metavar="A", help="The architecture, where several have it."
)
@click.option(
    "--out", type=options.OUTPUT_FILE, metavar="FILE", help="The recording to write: .npz, .parquet or .csv."
)
@click.option(
    "--rows",
    type=options.ROWS,
    default=100_000,
    metavar="N",
    help="How many dot product-adds (default 100000).",
)
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 63) - 1),
    default=0,
    metavar="S",
    help="Of the random cases (default 0).",
)
@click.option(
    "--compiler", metavar="CC", help="The compiler, with options if need be, in place of one that is found."
)
@click.option(
    "--source",
    type=options.OUTPUT_FOLDER,
    metavar="DIR",
    help="Write the program and its rows, to be carried to a machine that has the unit.",
)
@click.option(
    "--from",
    "outputs",
    type=options.FILE,
    metavar="OUTPUT",
    help="Make the recording of what such a program wrote.",
)
@click.option(
    "--library", type=click.Choice(["torch", "numpy"]), help="Record a product of matrices by a library."
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["bf16", "fp16", "fp32", "fp64"]),
    help="Of the matrices (default bf16, of numpy fp32).",
)
@click.option(
    "--shape",
    type=_Shape(),
    default=(64, 1024, 64),
    metavar="M,K,N",
    help="Of the product (default 64,1024,64).",
)
@click.option(
    "--jobs",
    cls=options.Renamed,
    old=["--threads"],
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Threads of the library (default: as it is set).",
)
@click.option(
    "--by-columns", type=click.Choice(["a", "b", "ab"]), help="Which matrices are stored column by column."
)
@click.option("--device", default="cpu", metavar="D", help="Of torch: cpu (default) or cuda.")
@options.model
@options.json
def record(
    name: str | None,
    files: tuple[Path, ...],
    k: int | None,
    types: str | None,
    arch: Architecture | None,
    out: Path | None,
    rows: int,
    seed: int,
    compiler: str | None,
    source: Path | None,
    outputs: Path | None,
    library: str | None,
    kind: str | None,
    shape: tuple[int, int, int],
    jobs: int | None,
    by_columns: str | None,
    device: str,
    as_json: bool,
    **given: Unpack[DesignOptions],
) -> int:
    """Record what this machine's unit of INSTRUCTION gives, row by row, for random cases.

    A small program with the instruction in it is compiled and run: C with intrinsics for processors, Arm's under QEMU
    where this is none; CUDA for NVIDIA's GPUs, HIP for AMD's. --source DIR writes it instead, for another machine; of
    what it writes there, --from makes a recording. --library records a whole product, for diagnose-gemm. A DESIGN, in
    SystemVerilog, Verilog or BTOR2, is read as `mmaformal signoff` reads it, with --k and --types, and compiled.

    Exit status: 0, or 2 if something is missing: a compiler, the unit, the library.
    """
    from mmaformal.recorder import from_outputs, record_product
    from mmaformal.recorder import record as record_unit

    named = [Path(each) for each in (name,) if each is not None] + list(files)
    if is_design(named, given):
        return _of_design(design_unit(named, k, types, given), _required(out), rows, seed)
    _check_one(name, files, outputs, library, source)
    if library is not None:
        stored = _layouts(by_columns)
        product = record_product(
            library, _required(out), type=kind, shape=shape, jobs=jobs, device=device, seed=seed, **stored
        )
        return _product_told(product, as_json)
    if outputs is not None:
        return _told(from_outputs(outputs, _required(out)), as_json)
    if name is None:
        raise UsageError("which INSTRUCTION? `mmaformal list` shows those there are")
    instruction = _instruction(name, arch)
    if source is not None:
        return _written(instruction, source, rows, seed, compiler)
    with Status(f"{instruction.label}: compiling") as status:
        found = record_unit(
            instruction,
            _required(out),
            rows=rows,
            seed=seed,
            compiler=compiler,
            progress=lambda line: status.show(f"{instruction.label}: {line}"),
        )
    return _told(found, as_json)


def _check_one(
    name: str | None, files: Sequence[Path], outputs: Path | None, library: str | None, source: Path | None
) -> None:
    """Raise UsageError unless at most one thing says what to record."""
    if files:
        raise UsageError(f"one INSTRUCTION is recorded: {files[0]} is one too many")
    asked = {"INSTRUCTION": name, "--from": outputs, "--library": library}
    if len(said := [what for what, value in asked.items() if value is not None]) > 1:
        raise UsageError(f"{' and '.join(said)}: one of them says what to record")
    if source is not None and name is None:
        raise UsageError("--source DIR needs an INSTRUCTION")


def _of_design(unit: DesignUnit, out: Path, rows: int, seed: int) -> int:
    count = unit.record(out, rows, seed)
    return answered(f"{out}: {count:,} rows of {unit.name}", SETTLED)


def _written(instruction: Instruction, folder: Path, rows: int, seed: int, compiler: str | None) -> int:
    """The program and its rows, and what to do with them."""
    from mmaformal.recorder import write_program

    carried = write_program(instruction, folder, rows=rows, seed=seed, compiler=compiler)
    recording = shlex.quote(f"{instruction.name}.npz")
    lines = [
        f"wrote {carried.source} and {carried.rows}: {rows:,} rows of {instruction.label}",
        f"there:  {carried.command}",
        f"here:   mmaformal record --from {shlex.quote(carried.outputs)} --out {recording}",
    ]
    return answered("\n".join(lines), SETTLED)


def _layouts(by_columns: str | None) -> dict[str, str]:
    """Return how A and B are stored, those named column by column."""
    return {f"{x}_layout": "column-major" if x in (by_columns or "") else "row-major" for x in "ab"}


def _required(out: Path | None) -> Path:
    if out is None:
        raise UsageError("--out FILE.npz says where the recording is to be written")
    return out


def _instruction(name: str, arch: Architecture | None) -> Instruction:
    """The instruction meant, where no architecture is named that of the one that has it."""
    if arch is not None:
        return options.instruction_of(arch, name)
    if len(name.split()) > 1:
        return instruction_meant(name)
    owners = [each for each in ARCHITECTURES.values() if name in each]
    if not owners:
        raise UnknownInstructionError(
            f"no architecture has an instruction {name!r}; `mmaformal list` shows the names"
        )
    if len(owners) > 1:
        raise UsageError(
            f"{name} is on {', '.join(each.name for each in owners)}: --arch A says which it is here"
        )
    return owners[0][name]


def _told(recording: Recording, as_json: bool) -> int:
    if as_json:
        told = {
            "file": str(recording.path),
            "instruction": recording.label,
            "rows": recording.rows,
            "device": recording.gpu,
        }
        return answered(json.dumps(told), SETTLED)
    text = f"{recording.path}: {recording.rows:,} rows of {recording.label}, from {recording.gpu}"
    return answered(text, SETTLED)


def _product_told(product: RecordedProduct, as_json: bool) -> int:
    m, k, n = product.A.shape[0], product.A.shape[1], product.B.shape[1]
    if as_json:
        told = {"file": str(product.path), "shape": [m, k, n], "origin": product.origin}
        return answered(json.dumps(told), SETTLED)
    types = f"{product.a_format} × {product.b_format} → {product.d_format}"
    return answered(f"{product.path}: {m}×{k} by {k}×{n}, {types}, by {product.origin}", SETTLED)
