"""The unit-level study of TensorGauge §VI-A, Fig. 6: error statistics of datapaths over FracBits and K.

Each sample is a, b (K products) and c, drawn from a normal distribution with mean 0 and variance 1 and rounded to the
input format, c to fp32; what a seed draws is the same for all datapaths of one K.  x is the exact c + Σ a·b of those, d
what the datapath gives, e = d − x.  The statistics are the paper's, after Tang ("Rounding Error Statistics as Numerics
Signature", ARITH 2025) and Sakr et al. (ICLR 2019): the mean of e² (MSE), the variance of e², and the variance
retention ratio, variance of d / variance of x.

Rows go to a file as they are made, and those that are there are not made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.rounding import Floats
from mmaformal.architectures import datapaths
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import decode
from mmaformal.formats import FORMATS, Format, fp32, fp64
from mmaformal.gemm import values
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows as kernels
from mmaformal.studies.rows import read_rows

CodeArray = NDArray[Any]

SAMPLES = 10_000
KINDS = ("fda", "sda")
GROUPS = (4, 8, 16, 32, 64)  #: K
FRAC_BITS = tuple(range(8, 33))

#: From which FracBits on the paper calls a metric stable (§VI-A).
PAPER = {"mse": 19, "variance_of_squared_error": 17, "variance_retention_ratio": 16}
#: And the magnitudes below which it says that they are there.
PAPER_BELOW = {"mse": 1e-8, "variance_of_squared_error": 1e-9}
METRICS = tuple(PAPER)
#: How near to its last value a metric stays where it has settled.
SETTLED_WITHIN = 0.05


@dataclass(frozen=True, repr=False)
class Design(ShortRepr):
    """A datapath of the study."""

    kind: str
    a: str
    rho: str
    cut: str
    k: int
    frac_bits: int

    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.a}, {self.rho}, cut {self.cut}, K = {self.k}, FracBits = {self.frac_bits}"
        )

    @property
    def instruction(self) -> Instruction:
        make = datapaths.KINDS[self.kind]
        own = {"dot": self.rho} if self.kind == "sda" else {"rho": self.rho, "c": "fp32"}
        return make(k=self.k, frac_bits=self.frac_bits, a=self.a, cut=self.cut, **own)


@dataclass(frozen=True, repr=False)
class DatapathErrors(ShortRepr):
    """A datapath's statistics."""

    kind: str
    a: str
    rho: str
    cut: str
    k: int
    frac_bits: int
    samples: int
    seed: int
    mse: float
    variance_of_squared_error: float
    variance_retention_ratio: float

    @property
    def design(self) -> Design:
        return Design(self.kind, self.a, self.rho, self.cut, self.k, self.frac_bits)


def designs(
    a: str = "fp16",
    rho: str = "RNE-FP32",
    cut: str = "RZ",
    kinds: Iterable[str] = KINDS,
    groups: Iterable[int] = GROUPS,
    frac_bits: Iterable[int] = FRAC_BITS,
) -> list[Design]:
    """Those of a study."""
    return [Design(kind, a, rho, cut, k, F) for kind, k, F in product(kinds, groups, frac_bits)]


# ---- samples ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Samples(ShortRepr):
    """Inputs as codes, and the exact results as sums of two float64."""

    a: CodeArray  #: (samples, K)
    b: CodeArray
    c: CodeArray  #: (samples,), of fp32
    high: Floats  #: the float64 nearest to x
    low: Floats  #: the float64 nearest to x − high


@lru_cache(maxsize=16)
def samples(fmt: Format, k: int, count: int, seed: int) -> Samples:
    """So many of K products of a format."""
    rng = np.random.default_rng([seed, k])
    a, b = (_codes(rng.normal(size=(count, k)), fmt) for _ in "ab")
    c = _codes(rng.normal(size=count), fp32)
    places = max(2 * (fmt.fraction_bits - fmt.min_exponent), fp32.fraction_bits - fp32.min_exponent)
    x, y = (_integers(codes, fmt) for codes in (a, b))
    z = _integers(c, fp32) << places - (fp32.fraction_bits - fp32.min_exponent)
    exact = ((x * y).sum(axis=1) << places - 2 * (fmt.fraction_bits - fmt.min_exponent)) + z
    unit = 1 << places
    high = np.array([each / unit for each in exact])  # Python divides integers with one rounding
    low = np.array([_rest(each, h, unit) for each, h in zip(exact, high.tolist(), strict=True)])
    return Samples(a, b, c, high, low)


def _codes(x: Floats, fmt: Format) -> CodeArray:
    """Numbers rounded to a format.  Raises ValueError for one that NumPy has no type of."""
    if fmt.dtype is None or not (fmt.signed and fmt.has_zero):
        raise ValueError(f"no samples of {fmt}: the formats of samples are those that NumPy has types of")
    codes: CodeArray = x.astype(fmt.dtype).view(fmt.word)
    return codes


def _rest(exact: int, high: float, unit: int) -> float:
    """exact / unit − high."""
    numerator, denominator = high.as_integer_ratio()
    return (exact * denominator - numerator * unit) / (unit * denominator)


def _integers(codes: CodeArray, fmt: Format) -> NDArray[Any]:
    """Numbers as Python's integers, in units of the format's last place."""
    x = decode(codes.astype(np.int64), fmt.layout)
    found = x.significand.astype(object) << (x.exponent - fmt.min_exponent).astype(object)
    signed: NDArray[Any] = np.where(x.sign == 1, -found, found)
    return signed


# ---- measuring -------------------------------------------------------------------------------------------------------


def measured_unit(design: Design, count: int, seed: int) -> DatapathErrors:
    """A datapath's row."""
    i, fmt = design.instruction, FORMATS[design.a]
    s = samples(fmt, design.k, count, seed)
    if i.c_format != fp32:
        raise ValueError(f"{design}: the study has an fp32 c, not {i.c_format}")
    d = values(kernels.dot_add(i.spec, s.a, s.b, s.c), i.d_format, fp64)
    # The difference of d and the nearer part of x is rounded by 2^-53 of itself at most.
    e = (d - s.high) - s.low
    squares = e * e
    return DatapathErrors(
        **asdict(design),
        samples=count,
        seed=seed,
        mse=float(squares.mean()),
        variance_of_squared_error=float(squares.var()),
        variance_retention_ratio=float(d.var() / s.high.var()),
    )


def measure_errors(
    wanted: Sequence[Design], file: Path, count: int = SAMPLES, seed: int = 1, jobs: int = 1
) -> Iterator[DatapathErrors]:
    """The rows of all designs: those of the file, and the others as they are made, which go there.

    Raises ValueError for a file that holds something else, OSError if it cannot be read or written.
    """
    known = {
        row.design: row for row in read_rows(file, DatapathErrors) if (row.samples, row.seed) == (count, seed)
    }
    yield from (known[each] for each in wanted if each in known)
    left = [each for each in wanted if each not in known]
    for fmt, k in dict.fromkeys((FORMATS[each.a], each.k) for each in left):
        samples(fmt, k, count, seed)  # once, before several threads ask for them
    with ThreadPoolExecutor(jobs) as pool, file.open("a", encoding="utf-8") as out:
        for row in pool.map(lambda each: measured_unit(each, count, seed), left):
            out.write(json.dumps(asdict(row)) + "\n")
            out.flush()
            yield row


# ---- what is read of them --------------------------------------------------------------------------------------------


def _from(rows: Sequence[DatapathErrors], holds: Callable[[DatapathErrors], bool]) -> int | None:
    """From which FracBits on something holds; None if it does not at the last.  Rows of one kind and K."""
    found = None
    for row in sorted(rows, key=lambda row: -row.frac_bits):
        if not holds(row):
            break
        found = row.frac_bits
    return found


def settled_from(rows: Sequence[DatapathErrors], metric: str) -> int | None:
    """From which FracBits on a metric stays within `SETTLED_WITHIN` of its last value; of rows of one kind and K."""
    last = getattr(max(rows, key=lambda row: row.frac_bits), metric)
    return _from(rows, lambda row: abs(getattr(row, metric) - last) <= SETTLED_WITHIN * last)


def below_from(rows: Sequence[DatapathErrors], metric: str, bound: float) -> int | None:
    """From which FracBits on a metric stays below a bound; None if it is not below it at the last."""
    return _from(rows, lambda row: getattr(row, metric) < bound)


def within_from(rows: Sequence[DatapathErrors], distance: float) -> int | None:
    """From which FracBits on the variance retention ratio stays so near to 1."""
    return _from(rows, lambda row: abs(row.variance_retention_ratio - 1) < distance)


def by_kind_and_k(rows: Iterable[DatapathErrors]) -> dict[tuple[str, int], list[DatapathErrors]]:
    """Rows by kind and K, of which each is a curve over FracBits."""
    found: dict[tuple[str, int], list[DatapathErrors]] = {}
    for row in rows:
        found.setdefault((row.kind, row.k), []).append(row)
    return found
