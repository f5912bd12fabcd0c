"""Statistics of as many results of a unit as are wanted, on as many workers as there are.

    print(errors(hopper["HMMA.16816.F32"], 10**10, executor=executor))

Results are made in blocks, of which each has random numbers of its own, told by the seed and its number; what is
summed of a block is summed exactly, but for roundings within the block that depend on nothing else.  So the statistics
are the same, bit for bit, whatever the workers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller, integer
from mmaformal.display import ShortRepr
from mmaformal.executors import checked_jobs, each_in_order, told_parts, workers_given
from mmaformal.gemm import matmul
from mmaformal.instruction import Instruction
from mmaformal.kernels import moments
from mmaformal.quantise import quantise
from mmaformal.statistics import Errors, Statistics, errors_of

#: Rows and columns of a block, and blocks that a worker makes at a time: a second or so of work.
SIDE, TOGETHER = 512, 16


@dataclass(frozen=True, repr=False)
class Moments(ShortRepr):
    """Sums over a sample: exact numbers, so that samples are added in any order."""

    count: int = 0  #: finite results
    special: int = 0  #: others
    exact: int = 0  #: results without an error
    max_ulp: float = 0.0
    #: Σ of e, |e|, e², e⁴, x, x², d, d², u and |u|
    sums: tuple[Fraction, ...] = field(default=(Fraction(0),) * moments.SUMS)

    def __add__(self, other: Moments) -> Moments:
        sums = tuple(x + y for x, y in zip(self.sums, other.sums, strict=True))
        return Moments(
            self.count + other.count,
            self.special + other.special,
            self.exact + other.exact,
            max(self.max_ulp, other.max_ulp),
            sums,
        )

    @classmethod
    def of(cls, errors: Errors) -> Moments:
        """The sums of a sample; each product of numbers is rounded, no addition is."""
        e, x, d = (
            np.ascontiguousarray(each).reshape(-1) for each in (errors.errors, errors.exact, errors.results)
        )
        u = np.empty(e.size)
        moments.ulps_of(e, x, errors.format.fraction_bits, errors.format.min_exponent, u)
        exponents = [_exponent(each) for each in (e, x, d, u)]
        sums = np.zeros((moments.SUMS, 2))
        scale = np.ldexp(1.0, [-each for each in exponents])
        count, exact, largest = moments.add_moments(e, x, d, u, scale, sums)
        powers = (1, 1, 2, 4, 1, 2, 1, 2, 1, 1)
        own = (0, 0, 0, 0, 1, 1, 2, 2, 3, 3)
        found = [
            (Fraction(high) + Fraction(low)) * Fraction(2) ** (power * exponents[which])
            for (high, low), power, which in zip(sums.tolist(), powers, own, strict=True)
        ]
        return cls(int(count), e.size - int(count), int(exact), float(largest), tuple(found))

    def statistics(self) -> Statistics:
        """The figures of the sample.  Raises ValueError if no result is finite."""
        if not self.count:
            raise ValueError("no finite result: there are no errors to speak of")
        e, absolute, squares, fourths, x, xx, d, dd, u, absolute_u = (each / self.count for each in self.sums)
        return Statistics(
            count=self.count,
            special=self.special,
            bias=_float(e),
            mean_absolute=_float(absolute),
            mse=_float(squares),
            variance_of_squared_error=_float(fourths - squares**2),
            variance_retention_ratio=_ratio(dd - d**2, xx - x**2),
            relative=math.sqrt(_ratio(squares, xx)),
            bias_ulp=_float(u),
            mean_absolute_ulp=_float(absolute_u),
            max_ulp=self.max_ulp,
            exact=self.exact / self.count,
        )


def _exponent(x: np.ndarray) -> int:
    """An exponent by which the finite numbers are near 1, so that no power of them overflows."""
    largest = float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
    return max(min(math.frexp(largest)[1], 1000), -1000)


def _float(x: Fraction) -> float:
    """The nearest float64; infinity where it does not reach so far."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _ratio(x: Fraction, y: Fraction) -> float:
    return _float(x / y) if y else math.nan


def errors(
    instruction: Instruction | str,
    outputs: int = 10**7,
    *,
    k: int | None = None,
    seed: int = 0,
    promote_every: int | None = None,
    split_k: int = 1,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Statistics:
    """Measure the rounding errors of so many results, at least, of normally distributed numbers; c is +0.

    They are made as elements of products of matrices of 512 rows and columns (`SIDE`) and K = `k`, one instruction's if
    not given, whose numbers are rounded to the instruction's formats, scaled as `mmaformal.quantise` has it.  K
    is divided as in `matmul`.  jobs: worker processes (default: one for each core), or the workers of an `executor`, of
    which the figures do not depend.  progress: called with a line of text.

    Raises ValueError, TypeError for numbers that make no sense, LostWorkerError, and as `matmul`.
    """
    caller(progress)
    instruction = instruction_meant(instruction)
    blocks = -(-_counted(outputs, "outputs") // SIDE**2)
    k = instruction.k if k is None else _counted(k, "k")
    if integer(seed, "seed") < 0:
        raise ValueError(f"seed is {seed}; it counts from 0")
    work = [
        (instruction, k, seed, range(first, min(first + TOGETHER, blocks)), promote_every, split_k)
        for first in range(0, blocks, TOGETHER)
    ]
    told, total = told_parts(progress, len(work)), Moments()
    with workers_given(executor, min(checked_jobs(jobs), len(work))) as workers:
        for done, each in enumerate(each_in_order(workers, _sampled, work), 1):
            total += each
            told(done)
    return total.statistics()


def _counted(value: int, name: str) -> int:
    if integer(value, name) < 1:
        raise ValueError(f"{name} is {value}; it counts from 1")
    return int(value)


def _sampled(
    instruction: Instruction,
    k: int,
    seed: int,
    blocks: Sequence[int],
    promote_every: int | None,
    split_k: int,
) -> Moments:
    """The sums of some blocks, in a worker."""
    total = Moments()
    instruction.quick.kernel_of(len(blocks) * SIDE**2 * k)  # the compiled one, if all are many
    for block in blocks:
        rng = np.random.default_rng([seed, block])
        a, b = (quantise(rng.standard_normal((SIDE, k)), instruction, side, None) for side in ("a", "b"))
        scales = None if b.scales is None else np.ascontiguousarray(b.scales.T)
        d = matmul(
            a.codes, b.codes.T, instruction=instruction, scale_a=a.scales, scale_b=scales,
            promote_every=promote_every, split_k=split_k, jobs=1, progress=False,
        )  # fmt: skip
        total += Moments.of(errors_of(instruction, a.codes, b.codes, d, a.scales, b.scales))
    return total
