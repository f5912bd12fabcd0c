"""`mmaformal diff`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from mmaformal.architectures import Architecture
from mmaformal.architectures.emulations import in_one_format
from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey, witness_told
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status, said, width
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer
    from mmaformal.witness import Witness

#: what a witness is written as, and where to, if it is wanted
Files: TypeAlias = Mapping[str, Path | None]


@click.command()
@click.argument("x", metavar="ARCH", type=options.ARCHITECTURE)
@click.argument("y", metavar="ARCH", type=options.ARCHITECTURE)
@options.name()
@click.argument("other", metavar="[INSTRUCTION]", type=options.INSTRUCTION, required=False)
@options.chain
@options.replace
@options.model
@options.where
@click.option(
    "--gemm", is_flag=True, help="What a product of matrices sees: `--where gemm`, c = 0 and finite."
)
@solving(120.0)
@click.option("--cuda", type=options.OUTPUT_FILE, metavar="FILE", help="Write the witness as a CUDA program.")
@click.option(
    "--c",
    "c_file",
    type=options.OUTPUT_FILE,
    metavar="FILE",
    help="Write the witness as a C program (Intel, Arm).",
)
@click.option(
    "--npz",
    type=options.OUTPUT_FILE,
    metavar="FILE",
    help="Write the witness as a recording of one row, .npz.",
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 where they differ, as `git diff` does.")
def diff(
    x: Architecture,
    y: Architecture,
    name: str,
    other: str | None,
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    where: tuple[str, ...],
    gemm: bool,
    request: Solving,
    cuda: Path | None,
    c_file: Path | None,
    npz: Path | None,
    exit_code: bool,
) -> int:
    """Find the smallest input on which two instructions differ, or prove that there is none.

    INSTRUCTION is a SASS, PTX or MFMA name, or a type (fp8); a second one is the second ARCH's, if it has another.
    --k is about both, --replace about the second.

    \b
    mmaformal diff a100 h100 HMMA.16816.F32
    mmaformal diff v100 h100 HMMA.884.F32.F32 HMMA.16816.F32 --k 16 --where finite

    Exit status: 0 for an answer (with --exit-code 1 where they differ), 3 for Unknown, 2 for wrong use, 1 if the
    models' two encodings disagree.
    """
    left = options.instruction_of(x, name, (), chain)
    right = options.instruction_of(y, other or name, changes, chain)
    left, right = in_one_format(left, right)
    files = {"CUDA program": cuda, "C program": c_file, "recording": npz}
    _check_programs(left, right, files)
    constraints = (*where, *(["gemm"] if gemm else []))

    def ask() -> Answer:
        return _asked(left, right, constraints, request)

    key = RecallKey("diff", (left, right), *constraints, *request.solvers)
    answer = request.recall(key, ask)
    found = answer.verdict
    code = request.show(
        answer, UNKNOWN if found == "unknown" else REFUTED if exit_code and found == "different" else SETTLED
    )
    witness = _witness(answer, (left, right))
    _draw(witness, request)
    for what, file in files.items():
        if file is not None:
            _write_witness(witness, file, what)
    request.write_smtlib(answer)
    return code


def _witness(answer: Answer | Recalled, models: tuple[Instruction, Instruction]) -> Witness | None:
    """The input on which both differ, run again in both where the answer was given before; None where there is none."""
    if isinstance(answer, Recalled):
        return witness_told(answer.json.get("witness"), models)
    return getattr(answer, "witness", None)


def _draw(witness: Witness | None, request: Solving) -> None:
    """Print the terms of both models, aligned, on a terminal that is wide enough."""
    from mmaformal.bits import draw_witness

    columns = width()
    if columns is None or request.as_json or witness is None:
        return
    if drawn := draw_witness((witness.x, witness.y), witness.ints, columns):
        answered(f"\n{drawn}", SETTLED)


def _asked(
    left: Instruction,
    right: Instruction,
    constraints: tuple[str, ...],
    request: Solving,
) -> Answer:
    from mmaformal.queries.find_difference import IncomparableError, find_difference
    from mmaformal.solver.asking import watching

    with Status() as status, watching(status.show, status.found):
        try:
            return find_difference(left, right, where=constraints, **request.limits)
        except IncomparableError as error:
            raise UsageError(options.made_comparable(left, right) or str(error)) from None


def _write_witness(witness: Witness | None, file: Path, what: str) -> None:
    """Write the witness as `what`; where there is none, say so."""
    if witness is None:
        said(f"mmaformal: no witness, so no {what} was written")
    elif what == "recording":
        witness.to_npz(file)
    else:
        program = witness.to_cuda() if what == "CUDA program" else witness.to_c()
        file.write_text(program, encoding="utf-8")


def _check_programs(x: Instruction, y: Instruction, files: Files) -> None:
    """Raise UsageError if a program is wanted that cannot be written for a witness, whatever it is."""
    if files["CUDA program"] is not None:
        _check_cuda(x, y)
    if files["C program"] is not None:
        _check_c(x, y)


def _check_cuda(x: Instruction, y: Instruction) -> None:
    """Raise UsageError if no CUDA program can be written for a witness, whatever it is."""
    from mmaformal.cuda_programs import cuda_program
    from mmaformal.mma import CudaUnavailableError

    for each in (x, y):
        zeros, scales = [0] * each.k, [0] * (each.spec.scales if each.spec.scale_format else 0)
        try:
            cuda_program([(each, 0)], zeros, zeros, 0, scales, scales)
        except CudaUnavailableError as error:
            raise UsageError(f"--cuda: {error}") from None


def _check_c(x: Instruction, y: Instruction) -> None:
    """Raise UsageError if no C program can be written for a witness, whatever it is."""
    from mmaformal.intrinsics import CUnavailableError, c_source

    try:
        c_source([(x, 0), (y, 0)], [0] * x.k, [0] * x.k, 0)
    except CUnavailableError as error:
        raise UsageError(f"--c: {error}") from None
    except ValueError:
        pass  # not comparable, which is said in another place
