"""Codes of numbers, and of products, with a given exponent and given low bits: what a witness of a loss is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaformal.formats import Format


def encode_number(significand: int, exponent: int, fmt: Format) -> int | None:
    """The code of `significand · 2^(exponent - M)`, the significand with its leading bit as the format holds it;
    None if there is none."""
    field, M = exponent + fmt.bias, fmt.fraction_bits
    if significand >> M == 0:
        if exponent != fmt.min_exponent:
            return None
        field = 0
    if significand >> (M + 1) or not 0 <= field < 1 << fmt.exponent_bits or (field == 0 and significand >> M):
        return None
    code = ((field << M) + significand % (1 << M)) << fmt.ignored_low_bits
    return code if fmt.is_finite(code) else None


def pairs_losing(part: int, places: int, formats: Sequence[Format]) -> list[tuple[int, int]]:
    """Significands of two factors whose product ends with `part` in its last `places` bits; normal ones first."""
    x, y = (np.arange(1 << (fmt.fraction_bits + 1), dtype=np.int64) for fmt in formats)
    if places == 0:
        return [(1 << formats[0].fraction_bits, 1 << formats[1].fraction_bits)]
    found = np.argwhere(np.outer(x, y) & ((1 << min(places, 62)) - 1) == part)
    pairs = [(int(u), int(v)) for u, v in found[:: max(1, len(found) // 400)]]
    subnormal = [1 << fmt.fraction_bits for fmt in formats]
    return sorted(pairs, key=lambda pair: sum(s < least for s, least in zip(pair, subnormal, strict=True)))


def product_codes(
    pairs: Sequence[tuple[int, int]], exponent: int, formats: Sequence[Format]
) -> tuple[int, int] | None:
    """Codes of two factors, one of the pairs of significands, with that sum of exponents."""
    a, b = formats
    for u, v in pairs:
        middle = (exponent + a.max_exponent - b.max_exponent) // 2
        near = sorted(range(a.min_exponent, a.max_exponent + 1), key=lambda e: abs(e - middle))
        for e in near:
            x, y = encode_number(u, e, a), encode_number(v, exponent - e, b)
            if x is not None and y is not None:
                return x, y
    return None
