"""The dot product-add of E9S12 halves against exact arithmetic: `python tools/e9s12_cases.py --rows N`.

The operator is run by its compiled rows.  What it is compared with is written apart from both encodings: a long
accumulator of 768 bits (Kulisch), into which the products of halves are put where they belong, cut to F places as the
paper says; rounded by looking at the bits.  Of fp16, and of rows with one product that is not zero, it is compared with
the exact sum too, nothing cut.  Each row is of one kind: anything; sums that cancel; one product; subnormal factors and
results; a c far from the products, or near their last place; zeros beside large factors.
"""

from __future__ import annotations

import time

import click
import numpy as np
from numba import njit
from numpy.typing import NDArray

from mmaformal import e9s12
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows as compiled
from mmaformal.losses import LossModel

KINDS = ("any", "cancellation", "one product", "subnormal", "extreme c", "zeros beside large factors")
LOW, LIMBS = 400, 24  #: the accumulator's last place is 2^-LOW; limbs of 32 bits

Codes = NDArray[np.uint32]


@njit(cache=False, nogil=True)  # type: ignore[untyped-decorator]
def put(acc: NDArray[np.int64], m: int, position: int) -> None:
    """Add m · 2^position, |m| < 2^30, in units of the last place."""
    limb, shift = position >> 5, position & 31
    value = np.int64(m) << shift
    acc[limb] += value & 0xFFFFFFFF
    acc[limb + 1] += value >> 32


@njit(cache=False, nogil=True)  # type: ignore[untyped-decorator]
def rounded(acc: NDArray[np.int64]) -> int:
    """The code of fp32 nearest to what is accumulated, ties to even; −1 if that is zero."""
    for i in range(LIMBS - 1):
        acc[i + 1] += acc[i] >> 32
        acc[i] &= 0xFFFFFFFF
    negative = acc[LIMBS - 1] < 0
    if negative:
        for i in range(LIMBS):
            acc[i] = -acc[i]
        for i in range(LIMBS - 1):
            acc[i + 1] += acc[i] >> 32
            acc[i] &= 0xFFFFFFFF
    top = -1
    for i in range(LIMBS):
        for j in range(32):
            if (acc[i] >> j) & 1:
                top = 32 * i + j
    if top < 0:
        return -1
    e = max(top - LOW, -126)
    last = e - 23 + LOW
    kept, more, half = 0, False, False
    for position in range(top + 1):
        if (acc[position >> 5] >> (position & 31)) & 1:
            if position >= last:
                kept |= 1 << (position - last)
            elif position == last - 1:
                half = True
            else:
                more = True
    if half and (more or kept & 1):
        kept += 1
    code = min(((e + 126) << 23) + kept, 0x7F800000)
    return code | (1 << 31) if negative else code


@njit(cache=False, nogil=True)  # type: ignore[untyped-decorator]
def expected(
    a: Codes, b: Codes, c: Codes, M: int, bits: int, bias: int, F: int, cut: bool, out: Codes
) -> None:
    """d of each row of finite codes, products cut to F places or not at all."""
    K, halves = a.shape[1], 2 if M == 23 else 1
    mask = (1 << bits) - 1
    m, e = np.zeros((2, K, 2), np.int64), np.zeros((2, K, 2), np.int64)
    acc = np.zeros(LIMBS, np.int64)
    for row in range(a.shape[0]):
        negative = c[row] >> 31 == 1
        for side in range(2):
            for k in range(K):
                code = np.int64(a[row, k] if side == 0 else b[row, k])
                field, fraction = (code >> M) & mask, code & ((1 << M) - 1)
                if field:
                    fraction |= 1 << M
                else:
                    field = np.int64(1)
                sign = -1 if (code >> (M + bits)) & 1 else 1
                if halves == 1:
                    m[side, k, 0], e[side, k, 0] = sign * (fraction << (11 - M)), field - bias
                else:
                    m[side, k, 0], e[side, k, 0] = sign * (fraction >> 12), field - bias
                    m[side, k, 1], e[side, k, 1] = sign * (fraction & 4095), field - bias - 12
        for k in range(K):
            negative = negative and ((a[row, k] ^ b[row, k]) >> (M + bits)) & 1 == 1
        largest = -(10**6)
        for k in range(K):
            for i in range(halves):
                for j in range(halves):
                    if m[0, k, i] != 0 and m[1, k, j] != 0:
                        largest = max(largest, e[0, k, i] + e[1, k, j])
        acc[:] = 0
        for k in range(K):
            for i in range(halves):
                for j in range(halves):
                    p, at = m[0, k, i] * m[1, k, j], e[0, k, i] + e[1, k, j] - 22
                    unit = largest - F
                    if p != 0 and cut and at < unit:
                        p, at = p >> min(unit - at, 63), unit
                    if p != 0:
                        put(acc, p, at + LOW)
        field, fraction = np.int64((c[row] >> 23) & 255), np.int64(c[row] & 0x7FFFFF)
        if field:
            fraction |= 1 << 23
        put(acc, -fraction if c[row] >> 31 else fraction, max(int(field), 1) - 150 + LOW)
        code = rounded(acc)
        out[row] = (np.uint32(0x80000000) if negative else 0) if code < 0 else code


# ---- cases ----------------------------------------------------------------------------------------------------------


def numbers(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], low: int, high: int) -> Codes:
    """Codes whose exponent fields are low … high, with few, all, or any fraction bits."""
    M = fmt.fraction_bits
    field = rng.integers(max(low, 0), min(high, (1 << fmt.exponent_bits) - 2) + 1, shape)
    fraction = rng.integers(0, 1 << M, shape)
    which = rng.integers(0, 4, shape)
    fraction = np.where(which == 0, 0, np.where(which == 1, (1 << M) - 1, fraction))
    fraction = np.where(which == 2, 1 << rng.integers(0, M, shape), fraction)
    sign = rng.integers(0, 2, shape)
    return ((sign << (fmt.storage_bits - 1)) | (field << M) | fraction).astype(np.uint32)


def cases(rng: np.random.Generator, i: Instruction, kind: str, n: int) -> tuple[Codes, Codes, Codes]:
    fmt, K = i.a_format, i.k
    top, half = (1 << fmt.exponent_bits) - 2, fmt.bias
    sign = np.uint32(fmt.sign_mask)
    spread = int(rng.integers(0, min(half, 60) + 1))
    a, b = (numbers(rng, fmt, (n, K), half - spread, half + spread) for _ in range(2))
    c = numbers(rng, i.c_format, (n,), 127 - 2 * spread, 127 + 2 * spread)
    if kind == "any":
        a, b = (numbers(rng, fmt, (n, K), 0, top) for _ in range(2))
        c = numbers(rng, i.c_format, (n,), 0, 254)
    elif kind == "cancellation":
        if K > 1:
            a[:, K // 2 :], b[:, K // 2 :] = a[:, : K // 2] ^ sign, b[:, : K // 2]
        near = rng.integers(0, K, n)
        one = np.arange(n)
        a[one, near] ^= np.uint32(1) << rng.integers(0, 4, n).astype(np.uint32)
        some = rng.random((n, K)) < 0.3
        a, b = np.where(some, 0, a).astype(np.uint32), b
        sums = np.empty(n, np.uint32)
        zero = np.zeros(n, np.uint32)
        kept = i.parameters["accumulator_bits"] - 3 - i.parameters.carries(i.spec)  # type: ignore[attr-defined, operator]
        expected(a, b, zero, fmt.fraction_bits, fmt.exponent_bits, fmt.bias, kept, False, sums)
        finite = (sums & 0x7F800000) != 0x7F800000
        c = np.where(finite & (rng.random(n) < 0.6), (sums ^ 0x80000000) + rng.integers(0, 2, n), c).astype(
            np.uint32
        )
        c = np.where((c & 0x7F800000) == 0x7F800000, 0, c).astype(np.uint32)
    elif kind == "one product":
        one = rng.integers(0, K, n)
        keep = np.arange(K)[None, :] == one[:, None]
        x, y = (numbers(rng, fmt, (n, K), 0, top) for _ in range(2))
        a = np.where(keep, x, rng.integers(0, 2, (n, K)) * sign).astype(np.uint32)
        b = np.where(keep, y, a if K == 1 else numbers(rng, fmt, (n, K), 0, top)).astype(np.uint32)
        c = numbers(rng, i.c_format, (n,), 0, 254)
        near = x[np.arange(n), one] >> fmt.fraction_bits & top | 0
        other = y[np.arange(n), one] >> fmt.fraction_bits & top | 0
        field = np.clip(near.astype(np.int64) + other - 2 * fmt.bias + 127 + rng.integers(-60, 60, n), 0, 254)
        c = np.where(rng.random(n) < 0.7, c & 0x807FFFFF | (field.astype(np.uint32) << 23), c).astype(
            np.uint32
        )
    elif kind == "subnormal":
        a = numbers(rng, fmt, (n, K), 0, 1 if fmt.exponent_bits == 5 else 70)
        b = numbers(rng, fmt, (n, K), 0, 3 if fmt.exponent_bits == 5 else 70)
        c = numbers(rng, i.c_format, (n,), 0, 3)
    elif kind == "extreme c":
        edge = rng.choice(np.array([0, 1, 2, 3, 20, 40, 60, 127, 160, 200, 252, 253, 254]), n)
        c = (c & 0x807FFFFF | (edge.astype(np.uint32) << 23)).astype(np.uint32)
        if rng.random() < 0.5:
            a[:, 1:] = 0
    else:
        large = numbers(rng, fmt, (n, K), top - 2, top)
        as_zero = rng.random((n, K)) < 0.6
        a = np.where(as_zero, rng.integers(0, 2, (n, K)) * sign, numbers(rng, fmt, (n, K), 0, half)).astype(
            np.uint32
        )
        b = np.where(as_zero, large, numbers(rng, fmt, (n, K), 0, half)).astype(np.uint32)
    return a, b, c


@click.command()
@click.option("--rows", default=10_000_000, help="Cases, of all instructions and kinds.")
@click.option("--seed", default=0)
@click.option("--batch", default=20_000)
def main(rows: int, seed: int, batch: int) -> None:
    """Count the differences."""
    rng, start = np.random.default_rng(seed), time.time()
    counts: dict[tuple[str, str], list[int]] = {}
    done = wrong = 0
    while done < rows:
        for i in [each for each in e9s12 if each.parameters.loss is LossModel.HALVES]:
            for kind in KINDS:
                a, b, c = cases(rng, i, kind, batch)
                fmt, p = i.a_format, i.parameters
                F = int(p["accumulator_bits"]) - 3 - p.carries(i.spec)  # type: ignore[call-overload, attr-defined]
                d = compiled.dot_add(i.spec, a, b, c)
                exact = np.empty(len(c), np.uint32)
                tally = counts.setdefault((i.name, kind), [0, 0, 0])
                for cut in (True, False) if fmt.name == "fp16" or kind == "one product" else (True,):
                    expected(a, b, c, fmt.fraction_bits, fmt.exponent_bits, fmt.bias, F, cut, exact)
                    tally[1 if cut else 2] += int((d != exact).sum())
                    wrong += int((d != exact).sum())
                tally[0] += batch
                done += batch
        click.echo(f"{done:,} cases, {wrong} differences, {time.time() - start:.0f} s", err=True)
    for (name, kind), (n, by_rule, whole) in counts.items():
        exactly = name.endswith("FP16") or kind == "one product"
        beside = f", {whole} from the exact sum" if exactly else ""
        click.echo(f"{name:12} {kind:28} {n:>9,}  {by_rule} from the rule{beside}")
    click.echo(f"{done:,} cases, {wrong} differences, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
