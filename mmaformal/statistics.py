"""Rounding errors of a matrix unit against the exact result, and what is usually said of them.

    from mmaformal import cdna3
    from mmaformal.statistics import sample
    errors = sample(cdna3["f32_32x32x8_f16"], A, B, C)
    print(errors.statistics())

The exact result is exact: products and sums in fixed point, as wide as the data need, rounded to float64 only when
the statistics are taken (`mmaformal.kernels.reference`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr, counted, short_text
from mmaformal.encodings.executable.blocks import decode
from mmaformal.formats import Format, fp64
from mmaformal.gemm import Division, matmul, values
from mmaformal.instruction import Instruction
from mmaformal.kernels.rows import processors
from mmaformal.operands import Matrix, as_operand
from mmaformal.result import Result

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Statistics(Result):
    """The usual figures about a sample of errors e = d - x, x the exact results.

    Nothing overflows on the way; a number that float64 itself does not reach is infinity, or 0.
    """

    count: int  #: finite results
    special: int  #: results left out: d or an operand is an infinity or a NaN
    bias: float  #: mean of e
    mean_absolute: float  #: mean of |e|
    mse: float  #: mean of e²
    variance_of_squared_error: float  #: variance of e²
    variance_retention_ratio: float  #: variance of d / variance of x (TensorGauge §VI; 1 if nothing is lost)
    relative: float  #: √(mean of e² / mean of x²)
    bias_ulp: float  #: of e in ulp, that is in units of the last place of x in d's format
    mean_absolute_ulp: float
    max_ulp: float
    exact: float  #: share of results without an error

    def __str__(self) -> str:
        width = max(len(f.name) for f in fields(self))
        lines = []
        for f in fields(self):
            value = getattr(self, f.name)
            lines.append(f"{f.name:{width}}  {value if isinstance(value, int) else f'{value:.6g}'}")
        return "\n".join(lines)

    @property
    def verdict(self) -> str:
        """`measured`."""
        return "measured"

    @property
    def summary(self) -> str:
        """Returns how many results there are, and how large their errors are."""
        return (
            f"{counted(self.count, 'result')}: relative {self.relative:.4g}, at most {self.max_ulp:.4g} ulp"
        )

    def rows(self) -> list[dict[str, object]]:
        """Returns one row, of all figures."""
        return [dict(vars(self))]

    def to_json(self) -> dict[str, object]:
        """Returns plain values; null for what is no finite number."""
        return {name: value if math.isfinite(value) else None for name, value in vars(self).items()}

    def __repr__(self) -> str:
        told = ("relative", "bias_ulp", "mean_absolute_ulp", "max_ulp", "exact")
        values = ", ".join(f"{name} {getattr(self, name):.4g}" for name in told)
        return short_text(self, f"{counted(self.count, 'result')}, {self.special:,} left out", values)


@dataclass(frozen=True, repr=False)
class Errors(ShortRepr):
    """Results of a matrix unit, the exact ones and their differences, as float64; NaN where a value is special."""

    format: Format  #: of the results
    results: Floats  #: d, exactly
    exact: Floats  #: the float64 nearest to the exact result x, of those that are finite
    errors: Floats  #: the float64 nearest to d - x, which is not the difference of the two others

    @property
    def ulps(self) -> Floats:
        """Errors in units of the last place that x has in the format of d."""
        fmt = self.format
        _, exponent = np.frexp(self.exact)
        exponent = np.where(self.exact == 0, fmt.min_exponent, np.maximum(exponent - 1, fmt.min_exponent))
        with np.errstate(over="ignore"):
            ulps: Floats = np.ldexp(self.errors, fmt.fraction_bits - exponent)
        return ulps

    def statistics(self) -> Statistics:
        """Raises ValueError if no result is finite."""
        kept = np.isfinite(self.errors)
        if not kept.any():
            raise ValueError("no finite result: there are no errors to speak of")
        e, x, d, u = (_Scaled.of(each[kept]) for each in (self.errors, self.exact, self.results, self.ulps))
        return Statistics(
            count=int(kept.sum()),
            special=int(kept.size - kept.sum()),
            bias=e.times(e.mean(e.numbers), 1),
            mean_absolute=e.times(e.mean(np.abs(e.numbers)), 1),
            mse=e.times(e.mean(e.numbers**2), 2),
            variance_of_squared_error=e.times(float(np.var(e.numbers**2)), 4),
            variance_retention_ratio=d.ratio(float(d.numbers.var()), x, float(x.numbers.var()), 2),
            relative=e.ratio(math.sqrt(e.mean(e.numbers**2)), x, math.sqrt(x.mean(x.numbers**2)), 1),
            bias_ulp=u.times(u.mean(u.numbers), 1),
            mean_absolute_ulp=u.times(u.mean(np.abs(u.numbers)), 1),
            max_ulp=u.times(float(np.abs(u.numbers).max()), 1),
            exact=float(np.mean(e.numbers == 0)),
        )


@dataclass(frozen=True)
class _Scaled:
    """numbers · 2^exponent, the largest magnitude in 1/2 … 1, so that no square or sum leaves the range of float64.

    What is lost is more than 2^1000 times smaller than the largest.
    """

    numbers: Floats
    exponent: int

    @classmethod
    def of(cls, x: Floats) -> _Scaled:
        largest = np.abs(x).max()
        exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
        return cls(np.ldexp(x, -exponent), exponent)

    def mean(self, x: Floats) -> float:
        return math.fsum(x.tolist()) / x.size if np.isfinite(x).all() else float(x.mean())

    def times(self, x: float, power: int) -> float:
        """x · 2^(power · exponent); infinity where float64 does not reach so far."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(x, power * self.exponent))

    def ratio(self, x: float, other: _Scaled, y: float, power: int) -> float:
        """x, scaled as these numbers to that power, over y, scaled as the others; NaN over zero."""
        if not y:
            return float("nan")
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(x / y, power * (self.exponent - other.exponent)))


def join_samples(samples: list[Errors]) -> Errors:
    """Samples of one format as one."""
    if len({each.format for each in samples}) != 1:
        raise ValueError("samples of one format are needed")
    columns = ("results", "exact", "errors")
    flat = {name: np.concatenate([getattr(each, name).reshape(-1) for each in samples]) for name in columns}
    return Errors(samples[0].format, **flat)


def sample(
    instruction: Instruction,
    A: Matrix,
    B: Matrix,
    C: Matrix | None = None,
    *,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    D: Matrix | None = None,
    **how: Unpack[Division],
) -> Errors:
    """The errors of D = A·B + C on this instruction; operands, and `how` K is divided, as `matmul` takes them.

    `D`, if given, is taken for the result instead, as codes or floats of the instruction's type of d.  Raises as
    `matmul`.
    """
    i = instruction
    if D is None:
        D = matmul(A, B, C, instruction=i, scale_a=scale_a, scale_b=scale_b, **how)
    a, b, d = (
        as_operand(x, f, n).codes
        for x, f, n in ((A, i.a_format, "A"), (B, i.b_format, "B"), (D, i.d_format, "D"))
    )
    c = np.zeros_like(d, i.c_format.word) if C is None else as_operand(C, i.c_format, "C").codes
    if d.shape != (len(a), b.shape[1]) or c.shape != d.shape:
        raise ValueError(f"A {a.shape}, B {b.shape}, C {c.shape} and D {d.shape} do not fit")
    scaled = i.spec.scale_format is not None
    s, t = (None, None)
    if scaled:
        assert i.spec.scale_format is not None
        s = as_operand(scale_a, i.spec.scale_format, "scale_a").codes
        t = as_operand(scale_b, i.spec.scale_format, "scale_b").codes.T
    return errors_of(i, a, b.T, d, s, t, c)


def errors_of(
    i: Instruction,
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[Any],
    scale_a: NDArray[Any] | None = None,
    scale_b: NDArray[Any] | None = None,
    c: NDArray[Any] | None = None,
) -> Errors:
    """`exact_errors` of codes a (m, K), b (n, K), d and c (m, n), +0 if not given, with the results."""
    c = np.zeros(d.shape, i.c_format.word) if c is None else c
    exact, errors = exact_errors(i, a, b=b, c=c, d=d, scale_a=scale_a, scale_b=scale_b)
    with np.errstate(all="ignore"):
        results = values(d, i.d_format, fp64)
    return Errors(i.d_format, np.where(np.isfinite(errors), results, np.nan), exact, errors)


@dataclass(frozen=True, repr=False)
class _Numbers(ShortRepr):
    """Numbers as integers in parts, and the places of their last bits."""

    parts: NDArray[np.int32]
    places: NDArray[np.int32]
    special: NDArray[np.bool_]

    def range(self) -> tuple[int, int]:
        """The places of the last and of the first bit of any that is not zero; (0, 0) if all are."""
        from mmaformal.kernels.reference import PART

        there = np.asarray(self.parts.any(axis=-1))
        if not there.any():
            return 0, 0
        places = self.places[there]
        if self.parts.shape[-1] > 1:
            return int(places.min()), int(places.max()) + PART * self.parts.shape[-1]
        lengths = np.frexp(self.parts[there][:, 0].astype(np.float64))[1]
        return int(places.min()), int((places + lengths).max())


def _numbers(
    fmt: Format, codes: NDArray[Any], scales: tuple[Format, NDArray[Any], int] | None = None
) -> _Numbers:
    """Codes as numbers, times their block scales (format, codes, block)."""
    from mmaformal.kernels.reference import PART

    x = decode(codes.astype(np.int64), fmt.layout)
    special = x.nan | x.infinite
    significand, place = np.where(special, 0, x.significand), x.exponent - fmt.fraction_bits
    bits = fmt.fraction_bits + 1
    if scales is not None:
        scale_format, scale_codes, block = scales
        s = decode(scale_codes.astype(np.int64), scale_format.layout)
        each = [np.repeat(y, block, axis=1)[:, : codes.shape[1]] for y in (s.significand, s.exponent, s.nan)]
        significand = np.where(each[2], 0, significand * each[0])
        place = place + each[1] - scale_format.fraction_bits
        special = special | each[2]
        bits += scale_format.fraction_bits + 1
    # Trailing zeros that all have in common, as fp16 has that was fp8.
    common = int(np.bitwise_or.reduce(significand, axis=None)) or 1
    zeros = (common & -common).bit_length() - 1
    significand, place, bits = significand >> zeros, place + zeros, max(bits - zeros, 1)
    cut = [(significand >> (PART * q)) & ((1 << PART) - 1) for q in range(-(-bits // PART))]
    parts = np.stack([np.where(x.sign == 1, -each, each) for each in cut], axis=-1)
    return _Numbers(parts.astype(np.int32), place.astype(np.int32), special)


def exact_errors(
    i: Instruction,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    d: NDArray[Any],
    scale_a: NDArray[Any] | None = None,
    scale_b: NDArray[Any] | None = None,
    *,
    d_format: Format | None = None,
) -> tuple[Floats, Floats]:
    """x = c + Σ a_k·b_k and d - x for codes a (m, K), b (n, K), c and d (m, n); NaN where one is special.

    d_format: of d, if it is not the instruction's.
    """
    from mmaformal.kernels import reference

    if scale_a is None and (found := _in_lanes(i, a, b, c, d, d_format or i.d_format)) is not None:
        return found
    fmt, block = i.spec.scale_format, i.spec.scale_block
    x = _numbers(i.a_format, a, None if fmt is None or scale_a is None else (fmt, scale_a, block))
    y = _numbers(i.b_format, b, None if fmt is None or scale_b is None else (fmt, scale_b, block))
    d_format = d_format or i.d_format
    z, result = _numbers(i.c_format, c), _numbers(d_format, d)

    (x_low, x_high), (y_low, y_high), ends = x.range(), y.range(), (z.range(), result.range())
    low = min(x_low + y_low, *(each[0] for each in ends))
    high = max(x_high + y_high, *(each[1] for each in ends)) + max(a.shape[1], 1).bit_length() + 2
    count = (high - low) // reference.LIMB + 3
    products = x_high + y_high - x_low - y_low + max(a.shape[1], 1).bit_length()
    lane = x_low + y_low if products <= 62 and x.parts.shape[-1] == y.parts.shape[-1] == 1 else None
    exact, error = np.empty(d.shape), np.empty(d.shape)

    def run(rows: slice) -> None:
        reference.put_errors(
            d_format,
            x.parts[rows],
            a_place=x.places[rows],
            b=y.parts,
            b_place=y.places,
            c=z.parts[rows],
            c_place=z.places[rows],
            d=result.parts[rows],
            d_place=result.places[rows],
            low=low,
            count=count,
            lane=lane,
            exact=exact[rows],
            error=error[rows],
        )

    size = max((1 << 22) // max(d.shape[1] * max(a.shape[1], 1), 1), 1)
    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(run, [slice(start, start + size) for start in range(0, len(d), size)]))
    rows, columns = np.asarray(x.special.any(axis=1)), np.asarray(y.special.any(axis=1))
    special = rows[:, None] | columns[None] | z.special | result.special
    largest = np.finfo(np.float64).max
    exact = np.clip(exact, -largest, largest)
    return np.where(special, np.nan, exact), np.where(special, np.nan, error)


def _in_lanes(
    i: Instruction, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], d: NDArray[Any], d_format: Format
) -> tuple[Floats, Floats] | None:
    """`exact_errors`, where all are numbers, and multiples of one that fit 62 bits; else None."""
    sides = [_numbers(i.a_format, a), _numbers(i.b_format, b)]
    if any(x.special.any() or x.parts.shape[-1] > 1 for x in sides):
        return None
    lows = [x.range()[0] for x in sides]
    bits = sum(x.range()[1] - low for x, low in zip(sides, lows, strict=True))
    low = min(sum(lows), _numbers(i.c_format, c).range()[0] if c.any() else 0)
    lift, sums = sum(lows) - low, max(a.shape[1], 1).bit_length()
    if lift + bits + sums > 61 or not -1022 <= low <= low + 64 < 1023:
        return None
    x, y = (
        each.parts[..., 0].astype(np.int64) << np.where(each.parts[..., 0] == 0, 0, each.places - lowest)
        for each, lowest in zip(sides, lows, strict=True)
    )
    with np.errstate(all="ignore"):
        results, addends = (
            np.ldexp(values(codes, fmt, fp64), -low) for codes, fmt in ((d, d_format), (c, i.c_format))
        )
        if not max(np.abs(results).max(initial=0), np.abs(addends).max(initial=0)) < 1 << 60:  # NaNs too
            return None
        whole = [each.astype(np.int64) for each in (results, addends)]
    if any((each != exact).any() for each, exact in zip(whole, (results, addends), strict=True)):
        return None
    exact = ((x @ y.T) << lift) + whole[1]
    return np.ldexp(exact.astype(np.float64), low), np.ldexp((whole[0] - exact).astype(np.float64), low)


def plot(errors: Mapping[str, Errors], path: str | Path, *, title: str = "") -> None:
    """Histograms of the errors of several units, one below the other, on the same axis.

    The axis holds 99.8 % of the errors.  Raises ImportError, saying how to install it, without matplotlib.
    """
    pyplot = matplotlib_pyplot()
    finite = {name: each.errors[np.isfinite(each.errors)] for name, each in errors.items()}
    pooled = np.concatenate(list(finite.values()))
    edge = float(np.quantile(np.abs(pooled), 0.998)) or 1.0
    figure, axes = pyplot.subplots(
        len(finite),
        1,
        figsize=(6.4, 2.2 * len(finite) + 0.6),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (name, each) in zip(axes[:, 0], finite.items(), strict=True):
        axis.hist(each, bins=np.linspace(-edge, edge, 201), density=True, color="0.35")
        axis.axvline(0, color="k", linewidth=0.6)
        axis.axvline(each.mean(), color="tab:red", linewidth=1.2, label=f"mean {each.mean():+.3g}")
        axis.set_title(name, fontsize=10)
        axis.set_ylabel("density")
        axis.legend(loc="upper left", fontsize=8)
    axes[-1, 0].set_xlabel("d − exact")
    if title:
        figure.suptitle(title)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def matplotlib_pyplot() -> ModuleType:
    """matplotlib.pyplot, drawing to files."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'mmaformal[plots]'") from None
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")
