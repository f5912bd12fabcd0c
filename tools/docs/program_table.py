"""Bounds of programs over instructions against what programs do: a table of docs/emulation.md.

    python tools/docs/program_table.py --elements 100000 --out programs.md

Of each program: its constants (`emulation/programs`) for one program and for a longer product, and how near the bound
the errors of many results come.  Operands are made so that sums cut much (one product far above the others) and words
leave much (digits with which each word is off by almost half of its last place).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.rounding import Floats
from mmaformal.architectures.emulations import named
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, answered, run_command
from mmaformal.cli.terminal import Status
from mmaformal.display import ShortRepr
from mmaformal.formats import Format
from mmaformal.statistics import sample
from mmaformal.studies.emulation.programs import Program

#: Those of the table: each scheme, on units that cut and on units that round to nearest.
PROGRAMS = (
    "markidis(volta HMMA.884.F32.F32)",
    "markidis(ampere HMMA.16816.F32)",
    "markidis(hopper HMMA.16816.F32)",
    "markidis(cdna3 v_mfma_f32_16x16x16_f16)",
    "ootomo(volta HMMA.884.F32.F32)",
    "ootomo(ampere HMMA.16816.F32)",
    "ootomo(hopper HMMA.16816.F32)",
    "ootomo(hopper HMMA.16816.F32, k=64)",
    "ootomo(ampere HMMA.1688.F32.TF32)",
    "ootomo(cdna1 v_mfma_f32_16x16x16f16)",
    "ootomo(cdna3 v_mfma_f32_16x16x16_f16)",
    "fp16x2(hopper HMMA.16816.F32)",
    "bf16x3(ampere HMMA.16816.F32.BF16)",
    "bf16x3(hopper HMMA.16816.F32.BF16)",
    "bf16x6(hopper HMMA.16816.F32.BF16)",
    "bf16x9(hopper HMMA.16816.F32.BF16)",
    "bf16x9(cdna3 v_mfma_f32_16x16x16_bf16)",
    "tf32x3(ampere HMMA.1688.F32.TF32)",
    "tf32x3(hopper HMMA.1688.F32.TF32)",
    "promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=128, every=4)",
)

#: Rows and columns of the products that are made.
SIDE = 64

#: K of the longer products, at least.
LONG = 1024


@dataclass(frozen=True)
class Kind:
    """Operands: exponents from `low` on, so many; whether all signs are one; digits at random, or those at which words
    leave the most; and how far products but the first, or all of them, lie below that one or c, in places."""

    low: int = 0
    spread: int = 1
    one_sign: bool = True
    worst: bool = False
    below: int | None = None  #: more than the unit's F, or than 24 where a sum is added outside
    with_c: bool = False


KINDS = (
    Kind(spread=1),
    Kind(spread=4, one_sign=False, with_c=True),
    Kind(low=-30, spread=40, one_sign=False),
    Kind(worst=True),
    Kind(worst=True, with_c=True),
    Kind(worst=True, below=2),
    Kind(worst=True, below=1),
    Kind(worst=True, below=0, with_c=True),
    Kind(worst=True, below=2, with_c=True),
    Kind(worst=True, below=5),
)


@dataclass(frozen=True, repr=False)
class Row(ShortRepr):
    """One program's constants, in units of 2^-24, of products of K, and how near results came to the bound."""

    program: str
    K: int
    least: int
    alpha: float
    beta: float
    epsilon: float
    results: int  #: finite ones
    nearest: float  #: the largest error over its bound


def measure(program: Program, K: int, elements: int) -> Row:
    """At least so many finite results, if half of those that are tried are finite."""
    rng, results, nearest = np.random.default_rng(1), 0, 0.0
    for _ in range(2 * max(elements // (SIDE * SIDE * len(KINDS)), 1)):
        for kind in KINDS:
            if results < elements:
                count, most = _compare(program, K, kind, rng)
                results, nearest = results + count, max(nearest, most)
    alpha, beta, _, epsilon = (float(each) * 2**24 for each in program.constants(K))
    return Row(program.instruction.name, K, program.a.least, alpha, beta, epsilon, results, nearest)


def _compare(program: Program, K: int, kind: Kind, rng: np.random.Generator) -> tuple[int, float]:
    A, B, C = _operands(program, K, kind, rng)
    errors: Floats = sample(program.instruction, A, B, C).errors
    told = np.isfinite(errors)
    with np.errstate(all="ignore"):
        ratios = np.abs(errors[told]) / program.bound(A, B, C)[told]
    return int(told.sum()), float(np.max(ratios, initial=0.0))


Codes = NDArray[np.unsignedinteger]


def _operands(program: Program, K: int, kind: Kind, rng: np.random.Generator) -> tuple[Codes, Codes, Codes]:
    i, bits = program.instruction, program.a.format.fraction_bits
    A = _numbers(i.a_format, (SIDE, K), kind, bits, rng)
    B = _numbers(i.b_format, (K, SIDE), kind, bits, rng)
    C = np.zeros((SIDE, SIDE), i.c_format.word)
    if kind.with_c:
        C = _numbers(i.c_format, (SIDE, SIDE), kind, bits, rng)
    if kind.below is not None:
        below, first = program.unit.stages[0].F + kind.below, 0 if kind.with_c else 1
        A[:, first:] = _few_bits(i.a_format, A[:, first:].shape, -(below // 2), rng)
        B[first:] = _few_bits(i.b_format, B[first:].shape, below // 2 - below, rng)
    return A, B, C


def _numbers(fmt: Format, shape: tuple[int, int], kind: Kind, bits: int, rng: np.random.Generator) -> Codes:
    """Codes of numbers of a kind, whose first words have so many fraction bits."""
    M = fmt.fraction_bits
    fraction = rng.integers(0, 1 << M, shape)
    if kind.worst and bits < M:
        # Near the middle of two numbers of the words' format, by as much as the second word leaves most of.
        half, place = 1 << M - bits - 1, 1 << max(M - 2 * bits - 2, 0)
        less = place * rng.integers(1, 3, (shape[0], 1)) - place // 2 + rng.integers(0, 2, (shape[0], 1))
        fraction = half + np.where(rng.integers(0, 2, (shape[0], 1)), less, -less) + np.zeros(shape, np.int64)
    field = max(kind.low, fmt.min_exponent) + rng.integers(0, kind.spread, shape)
    return _codes(fmt, np.minimum(field, fmt.max_exponent), fraction, not kind.one_sign, rng)


def _few_bits(fmt: Format, shape: tuple[int, ...], exponent: int, rng: np.random.Generator) -> Codes:
    """Codes of numbers just below a power of two, that are their own first words."""
    M = fmt.fraction_bits
    fraction = (1 << M) - (1 << max(M - 6, 0)) - (rng.integers(0, 4, shape) << max(M - 6, 0))
    field = np.full(shape, max(exponent, fmt.min_exponent))
    return _codes(fmt, field, np.maximum(fraction, 0), False, rng)


def _codes(
    fmt: Format,
    exponent: NDArray[np.int64],
    fraction: NDArray[np.int64],
    signs: bool,
    rng: np.random.Generator,
) -> Codes:
    sign = rng.integers(0, 2, exponent.shape) if signs else np.zeros(exponent.shape, np.int64)
    field = sign << fmt.exponent_bits | exponent + fmt.bias
    found: Codes = ((field << fmt.fraction_bits | fraction) << fmt.ignored_low_bits).astype(fmt.word)
    return found


# ---- the table -------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """Markdown."""
    total, over = sum(row.results for row in rows), sum(row.nearest > 1 for row in rows)
    lines = [
        f"{total:,} finite results: **{over} exceed their bounds**.",
        "",
        "| program | least | K | α | β | of α, ε | results | nearest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| `{row.program}` | {row.least} | {row.K} | {row.alpha:.5g} | {row.beta:.5g} | {row.epsilon:.4g} "
            f"| {row.results:,} | {row.nearest:.3f} |"
        )
    return "\n".join(lines) + "\n"


@click.command()
@click.option(
    "--elements", type=click.IntRange(1), default=40_000, help="Finite results of each program and K."
)
@click.option("--out", type=options.OUTPUT_FILE, help="Where the table goes (default: printed).")
def command(elements: int, out: Path | None) -> int:
    """How near the bounds of programs their errors come.

    Exit status: 0; 1 if one exceeds its bound.
    """
    rows: list[Row] = []
    with Status() as status:
        for text in PROGRAMS:
            program = Program.of(named(text))
            k = program.instruction.k
            for K in (k, -(-LONG // k) * k):
                rows.append(measure(program, K, elements))
                status.show(f"{text}, K = {K}: {rows[-1].nearest:.3f} of its bound")
    text = table(rows)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    code = REFUTED if any(row.nearest > 1 for row in rows) else SETTLED
    return answered(text if out is None else text.split("\n")[0], code)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(command, sys.argv[1:] if argv is None else argv, "program_table")


if __name__ == "__main__":
    sys.exit(main())
