"""All results that RISC-V's standard allows of a bulk-normalised dot product, for one input: it leaves some freedom.

(`riscv_fp32` has those of the dot product of fp32, Zvfbdota32f.)

The text (riscv-isa-manual, src/zvdota.adoc, stored version 0256d622, "Bulk Normalization of Dot Products"), of n pairs:

1. The pairs are cut into equal-sized sets, not necessarily of neighbours; each is summed by RVBNA, in an output
   precision no less than the instruction's.  Or each product is exact.
2. The results may be converted, to odd, to a precision no less than the instruction's.
3. They and c are added by a tree of two-operand additions (`vfredusum.vs`), each rounded to odd to a format whose range
   and precision are no less than the instruction's.
4. The result is converted to the instruction's precision, to odd.

All are rounded to odd as RVBNA is: what is too large is infinite, a zero is +0, a NaN is the canonical one.  So every
number on the way may be cut, to odd, at any place that is not above fp32's last place for it (`cuts`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final, TypeVar

from mmaformal.formats import Format, bf16, e4m3, e5m2, exponent_of, fp32
from mmaformal.spec import DotAdd

ExtendedNumber = Fraction | float  #: a number, or an infinity or a NaN

#: The formats of a and b that the standard has such instructions for.
TYPES: Final = {(bf16, bf16), *((x, y) for x in (e4m3, e5m2) for y in (e4m3, e5m2))}

NAN = 0x7FC00000  #: the canonical NaN
_TOO_LARGE = Fraction(2) ** (fp32.max_exponent + 1)
_Q = fp32.fraction_bits + 1


class TooManyError(Exception):
    """An input has more results on the way than are listed."""


def is_of_standard(spec: DotAdd) -> bool:
    """Whether a unit has the types of `vfwbdota.vv` or `vfqwbdota[.alt].vv`, and a power of two of products."""
    types = (spec.a_format, spec.b_format) in TYPES and spec.c_format == spec.d_format == fp32
    return types and spec.k & (spec.k - 1) == 0 and not spec.scale_block


def last_bit_place(x: Fraction) -> int:
    """Returns the place of the last bit of a dyadic number that is not zero."""
    return (x.numerator & -x.numerator).bit_length() - x.denominator.bit_length()


def number_to_odd(x: Fraction, place: int) -> Fraction:
    """Returns x cut toward zero at 2^place, its last bit set if anything was lost."""
    grid = Fraction(2) ** place
    whole, lost = divmod(abs(x), grid)
    return (int(whole) | bool(lost)) * grid * (1 if x > 0 else -1)


def cuts(x: ExtendedNumber) -> Iterator[ExtendedNumber]:
    """Yields what x may become by rounding to odd, once or more, in formats that have fp32's numbers, or none."""
    yield x
    if not isinstance(x, Fraction) or not x:
        return
    if abs(x) >= _TOO_LARGE:
        yield math.copysign(math.inf, x)
    last = max(exponent_of(x) - _Q + 1, fp32.min_exponent - _Q + 1)
    for place in range(last_bit_place(x) + 1, last + 1):
        yield number_to_odd(x, place)


def single(x: ExtendedNumber) -> int:
    """Returns the code of x, converted to fp32 in the end."""
    if not isinstance(x, Fraction):
        return NAN if math.isnan(x) else (0x7F800000 if x > 0 else 0xFF800000)
    if not x:
        return 0
    sign = fp32.sign_mask if x < 0 else 0
    if abs(x) >= _TOO_LARGE:
        return sign | 0x7F800000
    e = max(exponent_of(x), fp32.min_exponent)
    place = e - _Q + 1
    whole = int(abs(number_to_odd(x, place)) / Fraction(2) ** place)
    return sign | whole + ((e - fp32.min_exponent) << fp32.fraction_bits)


def _number(code: int, fmt: Format) -> ExtendedNumber:
    if fmt.is_nan(code):
        return math.nan
    if not fmt.is_finite(code):
        return -math.inf if code & fmt.sign_mask else math.inf
    return fmt.value(code)


def _add(x: ExtendedNumber, y: ExtendedNumber) -> ExtendedNumber:
    if isinstance(x, Fraction):
        return x + y if isinstance(y, Fraction) else y
    return x if isinstance(y, Fraction) else x + y


def _product(x: ExtendedNumber, y: ExtendedNumber) -> ExtendedNumber:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if not x or not y:
        return math.nan  # 0·∞, 0·NaN
    return (float("inf") * (1 if x > 0 else -1) if not _is_nan(x) else math.nan) * (
        math.nan if _is_nan(y) else (1.0 if y > 0 else -1.0)
    )


def _is_nan(x: ExtendedNumber) -> bool:
    return isinstance(x, float) and math.isnan(x)


def _reference(code: int, fmt: Format) -> int:
    """Returns the reference exponent of a factor that is not zero."""
    field = code >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
    return max(field, 1) - fmt.bias


def _bulk(products: Sequence[tuple[ExtendedNumber, int]], size: int) -> set[ExtendedNumber]:
    """Returns the sums of one set of `size` products, of which these are not zero, by RVBNA of every precision."""
    if any(not isinstance(x, Fraction) for x, _ in products):
        total: ExtendedNumber = Fraction(0)
        for x, _ in products:
            total = _add(total, x)
        return {total}
    largest, guard = max(e for _, e in products), size.bit_length() - 1
    numbers = [x for x, _ in products if isinstance(x, Fraction)]
    exact = largest + 1 - guard - min(map(last_bit_place, numbers))
    return {
        sum((number_to_odd(x, largest - (q - 1) - guard) for x in numbers), Fraction(0))
        for q in range(_Q, max(_Q, exact) + 1)
    }


def _partitions(items: Sequence[int], sets: int, size: int) -> Iterator[list[list[int]]]:
    """Yields every way to put items into at most so many sets of at most `size`."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for before in _partitions(rest, sets, size):
        for i, block in enumerate(before):
            if len(block) < size:
                yield [*before[:i], [first, *block], *before[i + 1 :]]
        if len(before) < sets:
            yield [[first], *before]


V = TypeVar("V", bound=Hashable)


def closed(values: Iterable[V], limit: int, cuts: Callable[[V], Iterable[V]]) -> set[V]:
    """Returns what exact sums may become by `cuts`.  Raises TooManyError."""
    found: set[V] = set()
    for x in values:
        found.update(cuts(x))
        if len(found) > limit:
            raise TooManyError(f"more than {limit} results on the way")
    return found


def trees(
    leaves: Sequence[set[V]], limit: int, cuts: Callable[[V], Iterable[V]], add: Callable[[V, V], V]
) -> set[V]:
    """Returns every result of a tree of additions over the leaves, one of each one's values.  Raises TooManyError."""
    of: dict[int, set[V]] = {1 << i: values for i, values in enumerate(leaves)}
    for chosen in sorted(range(1, 1 << len(leaves)), key=int.bit_count):
        if chosen in of:
            continue
        sums, part = set[V](), (chosen - 1) & chosen
        while part > chosen ^ part:
            left, right = of[part], of[chosen ^ part]
            if len(left) * len(right) > limit:
                raise TooManyError(f"more than {limit} results on the way")
            sums |= {add(x, y) for x in left for y in right}
            part = (part - 1) & chosen
        of[chosen] = closed(sums, limit, cuts)
    return of[(1 << len(leaves)) - 1]


def allowed(spec: DotAdd, a: Sequence[int], b: Sequence[int], c: int, limit: int = 20_000) -> set[int]:
    """Returns the codes of d that a conforming unit may give for an input.

    Raises TooManyError where there are more than `limit` results on the way: of inputs of many products, far apart.
    """
    products: list[tuple[ExtendedNumber, int]] = []
    for x, y in zip(a, b, strict=True):
        value = _product(_number(x, spec.a_format), _number(y, spec.b_format))
        if value != 0:  # a zero changes nothing: a zero result is +0 whatever its terms are
            products.append((value, _reference(x, spec.a_format) + _reference(y, spec.b_format)))
    last = _number(c, spec.c_format)
    found, seen = set[int](), set[tuple[frozenset[ExtendedNumber], ...]]()
    size = 1
    while size <= spec.k:
        for blocks in _partitions(range(len(products)), spec.k // size, size):
            leaves = [_bulk([products[i] for i in block], size) for block in blocks]
            leaves = [*leaves, {last}] if last != 0 or not leaves else leaves
            key = tuple(map(frozenset, leaves))
            if key not in seen:
                seen.add(key)
                numbers = [closed(leaf, limit, cuts) for leaf in leaves]
                found |= {single(x) for x in trees(numbers, limit, cuts, _add)}
        size *= 2
    return found


def off_at_most(k: int) -> Fraction:
    """Returns how far a conforming unit of k products is off the exact sum at most, relative to |c| + Σ|a·b|.

    Where no factor is subnormal, and no number on the way too small or too large.  Of a set of m > 1 products what is
    aligned is off by less than 2^-23 of the largest, and its sum is cut; of m = 1 the product may be cut.  A leaf is
    then added k/m times at most.  So it goes through no more than k + 1 of these.
    """
    return (1 + Fraction(1, 1 << fp32.fraction_bits)) ** (k + 1) - 1
