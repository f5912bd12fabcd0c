"""How far apart are two instructions?  A bound of |d - d'|, and the input found on which they differ most.

    python -m mmaformal.queries.max_difference ampere hopper HMMA.16816.F32

Measured relative to σ = w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number), which is |c| + Σ|a·b| where
nothing is subnormal.  Each of the two is off the exact sum by at most its own factor times σ (`analysis/units`), so
their results are no further apart than both factors together, where both are finite.  What is proved is each step's
bound (`error_bound`); that the factor follows from it, and the sum of the two, is argued.

The input is searched: operands of several kinds, and from the best of those codes changed a few at a time.  It need not
be the largest: the answer says how far from the bound it is.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import click
import numpy as np

from mmaformal.analysis.rounding import Floats
from mmaformal.analysis.units import Unit, weights
from mmaformal.architectures import Architecture
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import compiled_results
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered, execute
from mmaformal.display import HtmlText, short_text
from mmaformal.formats import fp64
from mmaformal.gemm import values
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import IncomparableError, comparable
from mmaformal.queries.unit_table import KINDS, operands_of
from mmaformal.witness import Witness

#: Cases of each round of the search, and how many of the best are kept for the next.
_ROUND, _KEPT = 4096, 64

#: Rounds without a better case after which the search ends.
_PATIENCE = 40


@dataclass(frozen=True, repr=False)
class Apart(HtmlText):
    """How far two instructions are apart, relative to σ."""

    bound: Fraction  #: no input's results are further apart
    found: Fraction  #: and so far they are, of the witness; exactly
    ulps: float  #: the same in units of the last place of the larger result
    witness: Witness | None  #: None if none was found

    @property
    def gap(self) -> float:
        """How many times the bound is what was found."""
        return float(self.bound / self.found) if self.found else math.inf

    def __str__(self) -> str:
        unit = 2.0**24
        if not self.bound:
            return "they are one function"
        if self.witness is None:
            return f"at most {float(self.bound) * unit:.4g} · 2^-24 of |c| + Σ|a·b|; no input was found that differs"
        lines = [
            f"{self.witness.x.label} and {self.witness.y.label}: |d - d'| / (|c| + Σ|a·b|)",
            f"  at most  {float(self.bound) * unit:.4g} · 2^-24, from the proved bounds of their steps",
            f"  found    {float(self.found) * unit:.4g} · 2^-24, {self.ulps:.4g} ulp of d: the bound is "
            f"{self.gap:.2g} times that",
            str(self.witness),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return short_text(self, f"found {float(self.found):.4g}, at most {float(self.bound):.4g}")


def max_difference(
    x: Architecture | Instruction,
    y: Architecture | Instruction,
    instruction: str | None = None,
    *,
    seconds: float = 20.0,
    seed: int = 0,
) -> Apart:
    """The largest difference of results, relative to |c| + Σ|a·b|: a bound, and the largest that a search found.

    x, y, instruction: as `find_difference` takes them.  `seconds` at most for the search.

    Raises ValueError for instructions that have no error bound, and those with block scales; otherwise as
    `find_difference`.
    """
    left, right = comparable(x, y, instruction)
    if left.spec.scale_format is not None:
        raise ValueError(f"{left.label} has block scales, for which there is no search yet")
    units = Unit.of(left), Unit.of(right)
    if left.spec == right.spec:
        return Apart(Fraction(0), Fraction(0), 0.0, None)
    bound = units[0].factor(left.k) + units[1].factor(right.k)
    best = _search(left, right, units, time.monotonic() + seconds, np.random.default_rng(seed))
    if best is None:
        return Apart(bound, Fraction(0), 0.0, None)
    witness = Witness.of(left, right, best.a, best.b, best.c)
    one, other = (left.d_format.value(code) for code in witness.results)
    apart = abs(one - other)
    exponent = math.frexp(float(max(abs(one), abs(other))))[1] - 1
    place = Fraction(2) ** (max(exponent, left.d_format.min_exponent) - left.d_format.fraction_bits)
    return Apart(bound, apart / _sigma(left, best), float(apart / place), witness)


def _sigma(i: Instruction, codes: Codes) -> Fraction:
    """σ, exactly."""

    def w(code: int, name: str) -> Fraction:
        fmt = {"a": i.a_format, "b": i.b_format, "c": i.c_format}[name]
        return max(abs(fmt.value(code)), Fraction(2) ** fmt.min_exponent)

    products = (w(a, "a") * w(b, "b") for a, b in zip(codes.a, codes.b, strict=True))
    return w(codes.c, "c") + sum(products, Fraction(0))


def _search(
    x: Instruction, y: Instruction, units: tuple[Unit, Unit], until: float, rng: np.random.Generator
) -> Codes | None:
    """The case with the largest difference that is found."""
    pool = _first(x, units, rng)
    scores = _scores(x, y, pool)
    without = 0
    while without < _PATIENCE and time.monotonic() < until:
        order = np.lexsort((rng.random(len(scores)), scores))  # of cases alike, others each time
        kept = order[-_KEPT:]
        best, pool = float(scores[kept[-1]]), pool.at(kept)
        if best <= 0:
            return None
        changed = _changed(pool, x, rng)
        pool = Rows.join([pool, changed])
        scores = np.concatenate([scores[kept], _scores(x, y, changed)])
        without = 0 if float(scores.max()) > best else without + 1
    at = int(scores.argmax())
    return pool[at] if scores[at] > 0 else None


def _first(x: Instruction, units: tuple[Unit, Unit], rng: np.random.Generator) -> Rows:
    """Cases of all kinds."""
    parts = [generate(x.spec, _ROUND, int(rng.integers(1 << 30)))]
    for unit in units:
        for kind in KINDS:
            A, B, C = operands_of(unit, kind, rng, x.k)
            n = len(A)
            parts.append(
                Rows(
                    A.astype(np.uint64),
                    B.T.astype(np.uint64),
                    C[np.arange(n), np.arange(n)].astype(np.uint64),
                    np.empty((n, 0), np.uint64),
                    np.empty((n, 0), np.uint64),
                )
            )
    return Rows.join(parts)


def _changed(pool: Rows, i: Instruction, rng: np.random.Generator) -> Rows:
    """Cases with few codes changed: a bit, the next code, that of another product; or a product in several places."""
    found = pool.at(rng.integers(0, len(pool), _ROUND))
    rows = np.arange(_ROUND)
    for _ in range(int(rng.integers(1, 4))):
        k, other = rng.integers(0, i.k, _ROUND), rng.integers(0, i.k, _ROUND)
        copied = (rng.random((_ROUND, i.k)) < rng.random((_ROUND, 1))) & (rng.random((_ROUND, 1)) < 0.3)
        for side, fmt in ((found.a, i.a_format), (found.b, i.b_format)):
            low = np.uint64(1) << np.uint64(fmt.ignored_low_bits)
            bits = low << rng.integers(0, fmt.storage_bits - fmt.ignored_low_bits, _ROUND).astype(np.uint64)
            code, how = side[rows, k], rng.integers(0, 6, _ROUND)
            choices = [code ^ bits, code + low, code - low, side[rows, other], code, code]
            side[rows, k] = np.choose(how, choices) & np.uint64(fmt.codes - 1)
            side[:] = np.where(copied, side[rows, other][:, None], side)
        bits = np.uint64(1) << rng.integers(0, i.c_format.storage_bits, _ROUND).astype(np.uint64)
        found.c[:] = np.where(rng.random(_ROUND) < 0.3, found.c ^ bits, found.c)
    return found


def _scores(x: Instruction, y: Instruction, cases: Rows) -> Floats:
    """|d - d'| / σ of each case; 0 where one is not finite."""
    with np.errstate(all="ignore"):
        one, other = (
            values(compiled_results(i.spec, cases).astype(i.d_format.word), i.d_format, fp64).astype(
                np.float64
            )
            for i in (x, y)
        )
        a, b = (weights(c.astype(f.word), f, "") for c, f in ((cases.a, x.a_format), (cases.b, x.b_format)))
        sigma = (a * b).sum(axis=1) + weights(cases.c.astype(x.c_format.word), x.c_format, "c")
        found: Floats = np.abs(one - other) / sigma
    return np.where(np.isfinite(found), found, 0.0)


@click.command()
@options.arch()
@click.argument("other", metavar="ARCH", type=options.ARCHITECTURE)
@options.name()
@click.option("--seconds", type=options.SECONDS, default=20.0, help="For the search (default 20).")
def command(arch: Architecture, other: Architecture, name: str, seconds: float) -> int:
    """How far apart the results of one instruction on two architectures are, at most, and on the input found."""
    try:
        return answered(str(max_difference(arch, other, name, seconds=seconds)), SETTLED)
    except IncomparableError as error:
        raise UsageError(str(error)) from None


def main(argv: Sequence[str] | None = None) -> int:
    return execute(command, sys.argv[1:] if argv is None else argv, "max_difference")


if __name__ == "__main__":
    sys.exit(main())
