"""Products in the processor's floating point are exact, and no sum overflows: obligations for every specification.

They are about the numbers that codes of a and b have by the executable encoding, not about how `widths` was chosen.
Specifications that nobody has written yet are asked too: random formats, F and L, for what `widths` would choose.
"""

from __future__ import annotations

import pkgutil
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from math import floor, prod

import numpy as np
import pytest

from mmaformal import kernels
from mmaformal.architectures import ARCHITECTURES
from mmaformal.encodings import part, with_part
from mmaformal.encodings.efda.kernel import EfdaKernel
from mmaformal.encodings.executable.blocks import decode
from mmaformal.formats import Format, Specials, bf16, fp32, tf32
from mmaformal.kernels import choose
from mmaformal.kernels.kernel import Kernel
from mmaformal.kernels.widths import Near, Widths, near_one, widths
from mmaformal.listing import every_instruction
from mmaformal.spec import DotAdd

#: bits of the significand, least and greatest exponent of a normal number
FLOATS = {np.float32: (24, -126, 127), np.float64: (53, -1022, 1023)}


@lru_cache(maxsize=64)
def numbers(fmt: Format) -> dict[int, tuple[int, int]]:
    """The least and the largest significand of nonzero finite numbers, by exponent.

    All codes of 16 bits are looked at; of a wider format, for each exponent, fractions of few ones and few zeros.
    """
    codes = np.arange(1 << min(fmt.storage_bits, 16), dtype=np.int64)
    if fmt.storage_bits > 16:
        fraction = fmt.fraction_bits + fmt.ignored_low_bits
        ones = (1 << fraction) - 1
        few = [0, *(1 << bit for bit in range(fraction))]
        fractions = np.array([x for each in few for x in (each, ones - each)], np.int64)
        codes = (np.arange(1 << fmt.exponent_bits, dtype=np.int64)[:, None] << fraction | fractions).reshape(
            -1
        )
    x = decode(codes, fmt.layout)
    nonzero = ~(x.nan | x.infinite) & (x.significand != 0)
    exponents, significands = x.exponent[nonzero], x.significand[nonzero]
    found = {}
    for exponent in np.unique(exponents).tolist():
        of = significands[exponents == exponent]
        found[exponent] = int(of.min()), int(of.max())
    return found


def exponent_of(x: Fraction) -> int:
    """The exponent of a number as a normal float; its denominator is a power of two."""
    return x.numerator.bit_length() - x.denominator.bit_length()


def broken(spec: DotAdd, F: int, L: int, wide: Widths, near: Near | None = None) -> set[str]:
    """The obligations that do not hold of a fused sum of L products aligned to F bits; with `near`, of operands whose
    exponents it lets through, in float32."""
    sides = [(fmt.fraction_bits, numbers(fmt)) for fmt in (spec.a_format, spec.b_format)]
    if near is not None:
        inside = range(near.low, near.high + 1)
        sides = [(f, {e: s for e, s in found.items() if e in inside}) for f, found in sides]
        wide = replace(wide, value=np.float32, floor=near.floor, least=max(wide.least, 2 * near.low))
    significand, low, high = FLOATS[wide.value]
    bits = sum(fraction for fraction, _ in sides)
    least_ones, largest_ones, exponents, significands = [], [], [], []
    for fraction, found in sides:
        least_ones.append(min(s * Fraction(2) ** (e - fraction) for e, (s, _) in found.items()))
        largest_ones.append(max(s * Fraction(2) ** (e - fraction) for e, (_, s) in found.items()))
        significands.append(max(s for _, s in found.values()))
        exponents.append((min(found), max(found)))
    least, largest = least_ones[0] * least_ones[1], largest_ones[0] * largest_ones[1]
    bottom, top = (sum(each) for each in zip(*exponents, strict=True))
    product = significands[0] * significands[1]
    term = floor(product * Fraction(2) ** (F - bits))
    plane, sums = np.iinfo(wide.exponent), np.iinfo(wide.term)
    lowest = 2 * min(wide.zero, *(e for e, _ in exponents))
    scales = [max(F - e, wide.floor) for e in range(wide.least, top + 2)]
    obligations = {
        "an operand is a normal float": all(
            low <= exponent_of(x) <= high for x in (*least_ones, *largest_ones)
        ),
        "a float holds a product's significand": product.bit_length() <= significand,
        "the least product is normal": exponent_of(least) >= low,
        "the largest product is finite": exponent_of(largest) <= high,
        "exponents and their sums fit": plane.min <= lowest and top <= plane.max,
        "no product but of a zero is below the least": wide.least <= bottom,
        "a zero's product is below the least": wide.zero + max(e for _, e in exponents) < wide.least,
        "a scale is a normal float": low <= wide.floor and all(low <= s <= high for s in scales),
        "what the least scale is for is cut to zero": largest * Fraction(2) ** wide.floor < 1,
        "a scaled product is normal": exponent_of(least) + wide.floor >= low,
        "a scaled product is finite": (term + 1).bit_length() <= high,
        "a sum of terms fits": term * wide.chunk <= sums.max,
        "all terms and c's fit 64 bits": L * term + (1 << (F + 1)) < 1 << 63,
    }
    return {name for name, holds in obligations.items() if not holds}


Asked = tuple[DotAdd, int, int, Widths]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """Every choice of widths that a kernel makes."""
    found: list[Asked] = []

    def spy(spec: DotAdd, F: int, L: int) -> Widths | None:
        wide = widths(spec, F, L)
        if wide is not None:
            found.append((spec, F, L, wide))
        return wide

    for module in MODULES:
        if getattr(module, "widths", None) is widths:
            monkeypatch.setattr(module, "widths", spy)
    return found


#: Every module that kernels are made of.
MODULES = [
    *(import_module(f"{kernels.__name__}.{each.name}") for each in pkgutil.iter_modules(kernels.__path__)),
    *(part(name, "kernel") for name in with_part("kernel")),
]


def kernels_of(kernel: object) -> Iterator[Kernel]:
    """A kernel, and those that it is made of."""
    if isinstance(kernel, Kernel):
        yield kernel
        for each in vars(kernel).values():
            yield from kernels_of(each)


def every_specification() -> set[DotAdd]:
    return {i.spec for i in every_instruction()}


def test_they_hold_of_every_specification(asked: list[Asked]) -> None:
    for spec in every_specification():
        before = len(asked)
        for kernel in kernels_of(
            choose.choose_kernel(spec)
        ):  # no kernel has widths that were not asked for here
            wide = getattr(kernel, "widths", None)
            assert wide is None or any(wide is each for *_, each in asked[before:]), spec
    assert {wide.value for *_, wide in asked} == {np.float32, np.float64}
    for each in asked:
        assert broken(*each) == set(), each
    narrower = {each: near for each in asked if (near := near_one(each[0], each[1], each[3])) is not None}
    assert {spec.a_format for spec, *_ in narrower} == {bf16, tf32}
    for each, near in narrower.items():
        assert broken(*each, near) == set(), each


H = ARCHITECTURES["hopper"]["HMMA.16816.F32"].spec


def random_format(rng: random.Random) -> Format | None:
    """A format of up to 32 bits, with any bias that it may have."""
    exponent, fraction = rng.randint(1, 11), rng.randint(0, 20)
    bias = rng.choice([(1 << exponent - 1) - 1, 1 << exponent - 1, rng.randint(0, (1 << exponent) + 40)])
    kind = rng.choice([Specials.IEEE, Specials.FN, Specials.FNUZ, Specials.NONE])
    try:
        return Format("random", 1 + exponent + fraction, exponent, fraction, bias, kind)
    except ValueError:
        return None


def has_numbers(spec: DotAdd, near: Near) -> bool:
    """Whether both formats have numbers with exponents that `near` lets through."""
    return all(
        any(near.low <= e <= near.high for e in numbers(fmt)) for fmt in (spec.a_format, spec.b_format)
    )


def test_they_hold_of_specifications_that_are_not_there_yet() -> None:
    rng, chosen, narrower = random.Random(0), Counter[object](), 0
    while chosen.total() < 400:
        a, b = random_format(rng), random_format(rng)
        F, L = rng.randint(1, 58), rng.choice([1, 2, 4, 8, 16, 32, 64])
        if a is None or b is None or (wide := widths(H.replace(a_format=a, b_format=b), F, L)) is None:
            continue
        chosen[wide.value, wide.exponent, wide.term] += 1
        spec = H.replace(a_format=a, b_format=b)
        if (near := near_one(spec, F, wide)) is not None and has_numbers(spec, near):
            narrower += 1
            assert broken(spec, F, L, wide, near) == set(), (a.layout, b.layout, F, L, wide, near)
        assert broken(H.replace(a_format=a, b_format=b), F, L, wide) == set(), (
            a.layout,
            b.layout,
            F,
            L,
            wide,
        )
    assert len(chosen) == 2 * 2 * 2  # every choice there is
    assert narrower > 20


def broken_of_floats(spec: DotAdd) -> set[str]:
    """The obligations that do not hold of efda's products and sums in float64, which `next_product` sees to be exact
    or not, and of the rounding to odd that comes before the one to fp32."""
    significand, low, high = FLOATS[np.float64]
    last = low - significand + 1  # the place of the least float
    sides = [(fmt.fraction_bits, numbers(fmt)) for fmt in (spec.a_format, spec.b_format)]
    places = [min(found) - fraction for fraction, found in sides]
    product, top = (
        prod(max(s for _, s in found.values()) for _, found in sides),
        sum(max(f) for _, f in sides),
    )
    obligations = {
        "an operand is a float": all(place >= last for place in places),
        "a float holds a product's significand": product.bit_length() <= significand,
        "the last place of a product is one of a float": sum(places) >= last,
        "the largest product is finite": top + 2 <= high,
        "odd rounding leaves two bits for the next": significand >= fp32.fraction_bits + 3,
        "and at its least place": last <= fp32.min_exponent - fp32.fraction_bits - 2,
    }
    return {name for name, holds in obligations.items() if not holds}


def test_float64_holds_the_products_of_efda() -> None:
    kernels_ = {spec: choose.choose_kernel(spec) for spec in every_specification()}
    found = {spec for spec, kernel in kernels_.items() if isinstance(kernel, EfdaKernel)}
    assert found
    for spec in found:
        assert broken_of_floats(spec) == set(), spec


def test_efda_has_no_kernel_where_float64_does_not_hold_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats of every range, also those that no `Efda` could be made of: its own limits are set aside."""
    efda = next(s for s in every_specification() if isinstance(choose.choose_kernel(s), EfdaKernel))
    monkeypatch.setattr(EfdaKernel, "compiles_rows", classmethod(lambda cls, spec: True))
    monkeypatch.setattr(EfdaKernel, "__init__", lambda self, spec: None)
    monkeypatch.setattr(DotAdd, "__post_init__", lambda self: None)
    rng, kept, refused = random.Random(0), 0, 0
    while min(kept, refused) < 100:
        a, b = random_format(rng), random_format(rng)
        if a is None or b is None:
            continue
        spec = efda.replace(a_format=a, b_format=b)
        if EfdaKernel.of(spec) is None:
            refused += bool(broken_of_floats(spec))
        else:
            kept += 1
            assert broken_of_floats(spec) == set(), (a.layout, b.layout)


TWELVE, THIRTEEN = (Format(f"m{m}", 16, 15 - m, m, 3, Specials.IEEE, None) for m in (11, 12))


LONG = H.replace(a_format=TWELVE, b_format=THIRTEEN)
BF16, FP32 = (H.replace(a_format=fmt, b_format=fmt) for fmt in (bf16, fp32))
OUTSIDE = {
    "an operand is a normal float",
    "the least product is normal",
    "the largest product is finite",
    "a scale is a normal float",
    "a scaled product is normal",
}


@pytest.mark.parametrize(
    ("spec", "change", "names"),
    [
        (LONG, {"value": np.float32}, {"a float holds a product's significand"}),
        (BF16, {"value": np.float32}, OUTSIDE),
        (FP32, {"value": np.float32}, {*OUTSIDE, "a float holds a product's significand"}),
        (BF16, {"exponent": np.int8}, {"exponents and their sums fit"}),
        (H, {"least": -27}, {"no product but of a zero is below the least"}),
        (H, {"zero": -43}, {"a zero's product is below the least"}),
        (H, {"floor": -31}, {"what the least scale is for is cut to zero"}),
        (H, {"floor": -127}, {"a scale is a normal float", "a scaled product is normal"}),
        (H, {"chunk": 40}, {"a sum of terms fits"}),
    ],
)
def test_each_is_seen_to_break(spec: DotAdd, change: dict[str, object], names: set[str]) -> None:
    wide = widths(spec, 24, 16)
    assert wide is not None
    assert broken(spec, 24, 16, wide) == set()
    assert broken(spec, 24, 16, replace(wide, **change)) == names  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"low": -1}, {"a scaled product is normal"}),
        ({"high": 1}, {"what the least scale is for is cut to zero"}),
        ({"floor": -2}, {"a scaled product is normal"}),
        ({"floor": 2}, {"what the least scale is for is cut to zero"}),
    ],
)
def test_each_bound_near_one_is_needed(change: dict[str, int], names: set[str]) -> None:
    spec = BF16.replace(a_format=tf32, b_format=tf32)
    wide = widths(spec, 24, 16)
    assert wide is not None
    near = near_one(spec, 24, wide)
    assert near is not None
    (name, by), *_ = change.items()
    assert broken(spec, 24, 16, wide, near) == set()
    assert broken(spec, 24, 16, wide, near._replace(**{name: getattr(near, name) + by})) == names


def test_a_fine_alignment_leaves_no_scale_too_large() -> None:
    wide = widths(BF16, 45, 16)
    assert wide is not None
    near = near_one(BF16, 45, wide)
    assert near is not None
    assert broken(BF16, 45, 16, wide, near) == set()
    assert "a scale is a normal float" in broken(BF16, 45, 16, wide, near._replace(low=near.low - 1))


def test_more_bits_than_words_hold_are_seen() -> None:
    wide = widths(H, 24, 16)
    assert wide is not None
    assert "all terms and c's fit 64 bits" in broken(H, 60, 16, replace(wide, term=np.int64, chunk=1))
    assert "a scaled product is finite" in broken(H, 128, 1, replace(wide, term=np.int64))
