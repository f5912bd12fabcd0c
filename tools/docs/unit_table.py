"""Bounds of whole products on units against what units do: tables/unit-bounds.md.

    python tools/docs/unit_table.py --elements 600000 --rows unit-bounds.jsonl --out tables/unit-bounds.md

Of every instruction that computes something of its own: its constants (`analysis/units`), and how near the bound the
errors of many results come, of operands of several kinds; and of the input that loses most in one step, which
`error_bound` constructs.  Rows go to a file as they are made, and those that are there are not made again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis import operands
from mmaformal.analysis.operands import KINDS, OperandArrays, draw_scales, operands_of
from mmaformal.analysis.rounding import Floats
from mmaformal.analysis.units import Unit
from mmaformal.architectures import ARCHITECTURES
from mmaformal.cases.inputs import Codes
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, answered, run_command
from mmaformal.cli.terminal import Status
from mmaformal.display import ShortRepr
from mmaformal.encodings.fdrda.proofs import error_bound as reaching_down
from mmaformal.facts.reaching import reach
from mmaformal.instruction import Instruction
from mmaformal.spec import LossModel
from mmaformal.statistics import sample


@dataclass(frozen=True, repr=False)
class Row(ShortRepr):
    """One instruction's bound, and how near results came to it."""

    instruction: str
    algorithm: str
    products: int  #: of a step
    n: float
    F: int
    rho: str
    U: float  #: in units of 2^-24
    results: int  #: finite ones
    nearest: float  #: the largest error over its bound
    nearest_made: float | None  #: of the input that loses most


def instructions() -> list[Instruction]:
    """One of each function that has a bound."""
    found: dict[object, Instruction] = {}
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            found.setdefault(instruction.spec, instruction)
    return [each for each in found.values() if _has_bound(each)]


def _has_bound(instruction: Instruction) -> bool:
    try:
        Unit.of(instruction)
    except ValueError:
        return False
    return True


def measure(instruction: Instruction, elements: int) -> Row:
    """The bound against at least so many finite results, if half of those that are tried are finite."""
    unit, rng = Unit.of(instruction), np.random.default_rng(1)
    results, nearest = 0, 0.0
    for _ in range(2 * max(elements // (operands.SIDE**2 * len(KINDS)), 1)):
        for kind in KINDS:
            if results >= elements:
                break
            made = operands_of(unit, kind, rng)
            scales = draw_scales(instruction, made[0].shape[1], rng)
            count, most = _compare(unit, made, scales)
            results, nearest = results + count, max(nearest, most)
    stage = unit.stages[0]
    return Row(
        instruction.label,
        instruction.spec.parameters.algorithm,
        stage.products,
        float(stage.n),
        stage.F,
        str(stage.rho),
        float(stage.U) * 2**24,
        results,
        nearest,
        _nearest_made(unit),
    )


def _compare(
    unit: Unit, made: OperandArrays, scales: dict[str, NDArray[np.unsignedinteger]]
) -> tuple[int, float]:
    """How many results are finite, and the largest of their errors over its bound."""
    A, B, C = made
    scale_a, scale_b = scales.get("scale_a"), scales.get("scale_b")
    errors: Floats = sample(unit.instruction, A, B, C, scale_a=scale_a, scale_b=scale_b).errors
    told = np.isfinite(errors)
    with np.errstate(all="ignore"):
        ratios = np.abs(errors[told]) / unit.bound(A, B, C, scale_a=scale_a, scale_b=scale_b)[told]
    return int(told.sum()), float(np.max(ratios, initial=0.0))


def _nearest_made(unit: Unit) -> float | None:
    i = unit.instruction
    witnesses = []
    if i.parameters.loss in (LossModel.TERMS, LossModel.GROUPS):
        witnesses = [reach(i)]
    elif i.parameters.loss is LossModel.ROUND_DOWN:
        witnesses = [reaching_down.reach(i, above=above) for above in (True, False)]
    ratios = [_of_codes(unit, each.instruction, each.codes) for each in witnesses if each is not None]
    return max(ratios, default=None)


def _of_codes(unit: Unit, one_step: Instruction, codes: Codes) -> float:
    unit = Unit.of(one_step)
    fmt, other = one_step.a_format, one_step.b_format
    A, B = np.array([codes.a], fmt.word), np.array([codes.b], other.word).T
    C = np.array([[codes.c]], one_step.c_format.word)
    scales = {}
    scale = one_step.spec.scale_format
    if scale is not None:
        scales = {
            "scale_a": np.array([codes.scale_a], scale.word),
            "scale_b": np.array([codes.scale_b], scale.word).T,
        }
    return _compare(unit, (A, B, C), scales)[1]


# ---- the table ---------------------------------------------------------------------------------------------


def rows(file: Path, elements: int) -> Iterator[Row]:
    """The rows of the file, and the others as they are made."""
    known = {}
    if file.exists():
        known = {
            row.instruction: row
            for row in (Row(**json.loads(line)) for line in file.read_text().splitlines())
        }
    for instruction in instructions():
        row = known.get(instruction.label)
        if row is None:
            row = measure(instruction, elements)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")
        yield row


def table(found: Sequence[Row]) -> str:
    """Markdown: the table, and what it sums up to."""
    total, most = sum(row.results for row in found), max(row.nearest for row in found)
    made = [row.nearest_made for row in found if row.nearest_made is not None]
    lines = [
        "# Bounds of units",
        "",
        "What a product on an instruction is off at most (`mmaformal/analysis/units.py`; [narrow-range.md]"
        "(../docs/narrow-range.md)), and how near errors came.",
        "Made by `python tools/docs/unit_table.py`.",
        "",
        f"{len(found)} instructions that differ, {total:,} finite results: **{sum(row.nearest > 1 for row in found)} "
        f"exceed their bounds**; the nearest is {most:.3f} of it, of the inputs that lose most in one step "
        f"(`error-bound`) {max(made):.3f}.",
        "",
        "*n* and *F*: of one step, |S - exact| ≤ n · 2^(e_max - F), proved and reached; *U*, in units of 2^-24: the "
        "bound of m steps is (1 + U)^m - 1; *nearest*: the largest error over its bound; *made*: of the input that "
        "loses most. Units that take subnormal numbers for zero have an absolute part besides, which inputs of any "
        "codes reach; theirs, and acc_e9s12's n, are argued, not proved.",
        "",
        "| instruction | algorithm | products of a step | n | F | ρ | U | results | nearest | made |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        made_ = "" if row.nearest_made is None else f"{row.nearest_made:.3f}"
        lines.append(
            f"| {row.instruction} | {row.algorithm} | {row.products} | {row.n:.6g} | {row.F or ''} | {row.rho} "
            f"| {row.U:.4g} | {row.results:,} | {row.nearest:.3f} | {made_} |"
        )
    return "\n".join(lines) + "\n"


@click.command()
@click.option(
    "--elements", type=click.IntRange(1), default=100_000, help="Finite results of each instruction."
)
@click.option(
    "--rows", "file", type=click.Path(path_type=Path), default=Path("unit-bounds.jsonl"), help="The rows."
)
@click.option("--out", type=options.OUTPUT_FILE, help="Where the table goes (default: printed).")
def command(elements: int, file: Path, out: Path | None) -> int:
    """How near the bounds of all instructions their errors come.

    Exit status: 0; 1 if one exceeds its bound.
    """
    found: list[Row] = []
    with Status() as status:
        for row in rows(file, elements):
            found.append(row)
            status.show(f"{len(found)}: {row.instruction}, {row.nearest:.3f} of its bound")
    text = table(found)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    code = REFUTED if any(row.nearest > 1 for row in found) else SETTLED
    return answered(text if out is None else text.split("\n")[5], code)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(command, sys.argv[1:] if argv is None else argv, "unit_table")


if __name__ == "__main__":
    sys.exit(main())
