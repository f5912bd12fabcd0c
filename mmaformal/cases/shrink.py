"""A case made smaller, as far as small changes lead, while it still shows what it was found for.

Small is what `size` says: fewest nonzero products first.  What comes out is no proof that nothing is smaller
(`smallest` asks solvers for that).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from mmaformal.cases.codes import opposite_code
from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.formats import Format
from mmaformal.spec import DotAdd
from mmaformal.witness import full_size

#: Which of several cases show something, in order; what is not asked for need not be worked out.
Shows = Callable[[Sequence[Codes]], Iterable[bool]]
ShrinkCandidates = Callable[[DotAdd, Codes], Iterable[Codes]]

_FEW = 6  #: products with which more is tried, pair by pair


def size(spec: DotAdd, x: Codes) -> tuple[int, ...]:
    """How large a case is; see `full_size`."""
    return full_size(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)


def shrink(spec: DotAdd, codes: Codes, shows: Shows, candidates: ShrinkCandidates | None = None) -> Codes:
    """The smallest of the `candidates` that shows the same, of that again, and so on."""
    candidates = candidates or smaller_cases

    def measure(x: Codes) -> tuple[int, ...]:
        return (*size(spec, x), sum(map(bool, (*x.a, *x.b, x.c))))

    while True:
        least = measure(codes)
        measured = [(measure(x), x) for x in dict.fromkeys(candidates(spec, codes))]
        some = [
            x for m, x in sorted((pair for pair in measured if pair[0] < least), key=lambda pair: pair[0])
        ]
        better = next((x for x, so in zip(some, shows(some), strict=True) if so), None) if some else None
        if better is None:
            return codes
        codes = better


def lessen(spec: DotAdd, codes: Codes, shows: Shows) -> Codes:
    """Return the case with lesser codes, place by place in order, that is no larger and shows the same."""
    largest = size(spec, codes)
    for lesser in [_lesser_products(spec, k) for k in range(spec.k)] + [_lesser_addend(spec)]:
        some = [x for x in lesser(codes) if size(spec, x) <= largest]
        codes = next((x for x, so in zip(some, shows(some), strict=True) if so), codes) if some else codes
    return codes


def _lesser_products(spec: DotAdd, k: int) -> Callable[[Codes], Iterator[Codes]]:
    """Return what makes factors of the product k zeros, or changes their signs, in ascending order."""
    minus_a, minus_b = spec.a_format.sign_mask, spec.b_format.sign_mask

    def lesser(x: Codes) -> Iterator[Codes]:
        a, b = x.a[k], x.b[k]
        for u in sorted({0, minus_a, a & ~minus_a, a}):
            for v in sorted({0, minus_b, b & ~minus_b, b, b ^ minus_b}):
                if (u, v) < (a, b):
                    yield with_products(x, {k: (u, v)})

    return lesser


def _lesser_addend(spec: DotAdd) -> Callable[[Codes], Iterator[Codes]]:
    minus = spec.c_format.sign_mask
    return lambda x: (replace(x, c=c) for c in sorted({0, minus, x.c & ~minus}) if c < x.c)


# ---- candidates --------------------------------------------------------------------------------------------------


def half_the_products(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    """The case without every other of its products, or without the first or the last half, if there are many."""
    active = _active(spec, x)
    if len(active) > _FEW:
        for some in (active[::2], active[1::2], active[: len(active) // 2], active[len(active) // 2 :]):
            yield with_products(x, dict.fromkeys(some, (0, 0)))


def fewer_products(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    """The case without some of its products, or without c."""
    active = _active(spec, x)
    yield from half_the_products(spec, x)
    for some in ([k] for k in active):
        yield with_products(x, dict.fromkeys(some, (0, 0)))
    for k in active[1:] if len(active) > 2 else ():
        yield with_products(x, dict.fromkeys((active[0], k), (0, 0)))
    yield replace(x, c=0)


def smaller_cases(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    """Cases a little smaller than x, and some that are not."""
    yield from fewer_products(spec, x)
    yield from _simpler_products(spec, x)
    for c in _simpler(x.c, spec.c_format):
        yield replace(x, c=c)
    yield from _simpler_scales(spec, x)
    yield from _moved_together(spec, x)


def _active(spec: DotAdd, x: Codes) -> list[int]:
    return [k for k in range(spec.k) if x.a[k] or x.b[k]]


def _simpler_products(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    """One factor simpler, or that of all products equal or opposite to it; or a product the same as another."""
    active = _active(spec, x)
    for k in active:
        for code in _simpler(x.a[k], spec.a_format):
            yield with_products(x, {k: (code, x.b[k])})
        for code in _simpler(x.b[k], spec.b_format):
            yield with_products(x, {k: (x.a[k], code)})
    for j, k in itertools.permutations(active if len(active) <= _FEW else [], 2):
        yield with_products(x, {k: (x.a[j], x.b[j])})
    minus_a, minus_b = spec.a_format.sign_mask, spec.b_format.sign_mask
    alike: dict[tuple[int, int], list[int]] = {}
    for k in active:
        alike.setdefault((x.a[k] & ~minus_a, x.b[k] & ~minus_b), []).append(k)
    for (a, b), places in alike.items():
        if len(places) > 1:
            signs = {k: (x.a[k] & minus_a, x.b[k] & minus_b) for k in places}
            pairs = [(u, b) for u in _simpler(a, spec.a_format)] + [
                (a, v) for v in _simpler(b, spec.b_format)
            ]
            for u, v in pairs:
                yield with_products(
                    x, {k: (u | s if u else u, v | t if v else v) for k, (s, t) in signs.items()}
                )


def _simpler_scales(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    if spec.scale_format is None:
        return
    yield replace(x, scale_a=zeros(spec).scale_a, scale_b=zeros(spec).scale_b)
    for i in range(spec.scales):
        for code in _simpler(x.scale_a[i], spec.scale_format):
            yield replace(x, scale_a=_at(x.scale_a, i, code))
        for code in _simpler(x.scale_b[i], spec.scale_format):
            yield replace(x, scale_b=_at(x.scale_b, i, code))


def _at(side: tuple[int, ...], k: int, code: int) -> tuple[int, ...]:
    return (*side[:k], code, *side[k + 1 :])


def _moved_together(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    """All exponents of one side nearer 0 together, and one side's up with the other's down."""
    bits = max(fmt.exponent_bits for fmt in (spec.a_format, spec.b_format))
    for by in (sign << i for i in range(max(4, bits - 1)) for sign in (1, -1)):
        a = tuple(_moved(code, spec.a_format, by) for code in x.a)
        b = tuple(_moved(code, spec.b_format, -by) for code in x.b)
        yield replace(x, a=a, b=b)
        yield replace(x, a=a, c=_moved(x.c, spec.c_format, by))
        yield replace(x, b=b, c=_moved(x.c, spec.c_format, -by))
        for k in _active(spec, x):
            yield with_products(x, {k: (a[k], b[k])})


def _simpler(code: int, fmt: Format) -> Iterator[int]:
    """Codes near one, with fewer bits or a smaller exponent, or zero."""
    if not fmt.is_finite(code):
        return
    if fmt.is_integer:
        yield from (0, code & ~fmt.sign_mask, code & -code, opposite_code(code, fmt))
        yield from (code & ~(1 << i) for i in range(fmt.storage_bits))
        return
    sign, field, fraction = fmt.fields(code)

    def word(sign: int, field: int, fraction: int) -> int:
        return (fmt.sign_mask if sign else 0) | (
            (field << fmt.fraction_bits) + fraction
        ) << fmt.ignored_low_bits

    if fmt.has_zero:
        yield 0
    if sign:
        yield word(0, field, fraction)
    yield word(sign, field, 0)
    if fmt.fraction_bits > 16:  # many bits: several at a time
        yield word(sign, field, fraction & -fraction)
        for part in (2, 4, 8):
            bits = -(-fmt.fraction_bits // part)
            for low in range(0, fmt.fraction_bits, bits):
                yield word(sign, field, fraction & ~((1 << bits) - 1 << low))
    for i in range(fmt.fraction_bits):
        if fraction >> i & 1:
            yield word(sign, field, fraction ^ 1 << i)
    distance = fmt.bias - field
    for part in dict.fromkeys(int(distance / (1 << i)) for i in range(fmt.exponent_bits + 1)):
        if field + part < 1 << fmt.exponent_bits:  # a bias may be more than the field holds
            yield word(sign, field + part, fraction)
            yield word(sign, field + part, 0)


def _moved(code: int, fmt: Format, by: int) -> int:
    """The code with another exponent, if there is such a number; zero stays zero."""
    field = fmt.fields(code)[1]
    moved = code + (by << (fmt.fraction_bits + fmt.ignored_low_bits))
    inside = 0 < field + by < (1 << fmt.exponent_bits) - 1
    return moved if field and inside and fmt.is_finite(moved) else code
