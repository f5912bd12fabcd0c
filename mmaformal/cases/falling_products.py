"""Two inputs that differ in one product, in order, whose results are not: the same number, made of other factors, has
another exponent, and the other terms lose other bits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import TypeAlias

from mmaformal.cases.codes import opposite_code
from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.cases.out_of_order import OutOfOrder, any_code, codes_of_number, position, shown_out_of_order
from mmaformal.cases.run import run
from mmaformal.cases.shrink import size as size_of
from mmaformal.instruction import Instruction
from mmaformal.shown_stages import code_text, number_text
from mmaformal.spec import DotAdd

CodesPair: TypeAlias = tuple[Codes, Codes]


def equal_products(
    spec: DotAdd, rng: random.Random, tries: int
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of factors with the same product, whose exponents have another sum: 1.5 · 1.5 and 1.125 · 2, or a subnormal
    number times a power of two and a normal one times a smaller one.  The second has the larger exponents.

    A format may have neither; after so many tries there are no more.
    """
    a, b = spec.a_format, spec.b_format
    half, eighth = Fraction(3, 2), Fraction(9, 8)
    for _ in range(tries):
        i, j = rng.randint(a.min_exponent, a.max_exponent), rng.randint(b.min_exponent, b.max_exponent)
        x, y = Fraction(2) ** i, Fraction(2) ** j
        down = Fraction(1, 1 << rng.randint(1, a.fraction_bits))
        low = max(down, Fraction(1, 1 << b.fraction_bits))
        least, least_b = Fraction(2) ** a.min_exponent, Fraction(2) ** b.min_exponent
        for first, second in (
            ((half * x, half * y), (eighth * x, 2 * y)),
            ((half * x, half * y), (2 * x, eighth * y)),
            ((least, down * y), (down * least, y)),
            ((low * x, least_b), (x, low * least_b)),
        ):
            codes = [any_code(v, fmt) for v, fmt in zip((*first, *second), (a, b, a, b), strict=True)]
            if None not in codes:
                yield (codes[0], codes[1]), (codes[2], codes[3])  # type: ignore[misc]


def product_cases(
    spec: DotAdd, F: int, count: int = 60, seed: int = 0, order: Sequence[int] = ()
) -> list[CodesPair]:
    """Two inputs that differ in one product, but not in its value; up to `count` of them, for an alignment to F places.

    `order`: that of the products, where c is no term of the sum.
    """
    rng = random.Random(seed)
    out: list[CodesPair] = []
    for low, high in equal_products(spec, rng, 2 * count):
        if len(out) >= count:
            break
        exponent = exponent_of_factors(spec, high)
        base, other = zeros(spec), {}
        places = order or range(spec.k)  # neighbours in one step
        if rng.random() < 0.6:
            other[places[1 % spec.k]] = opposite_code(low[0], spec.a_format), low[1]
        size = (
            rng.choice((1, 3, 5, 7))
            * rng.choice((1, -1))
            * Fraction(2) ** (exponent - F - rng.randint(-1, 4))
        )
        if rng.random() < 0.85 and not order:
            c = any_code(size, spec.c_format)
            if c is None:
                continue
            base = replace(base, c=c)
        else:
            factors = codes_of_number(abs(size), spec)
            if factors is None or len(places) < 2:
                continue
            place = places[min(2, len(places) - 1)]  # of two, none cancels the first, which may be subnormal
            other[place] = (opposite_code(factors[0], spec.a_format) if size < 0 else factors[0]), factors[1]
        x, y = (with_products(base, other | {0: mine}) for mine in (low, high))
        out += [(x, y), (y, x)]
    return out


def exponent_of_factors(spec: DotAdd, factors: tuple[int, int]) -> int:
    """The sum of the exponents of two factors, those that their fields have."""
    formats = spec.a_format, spec.b_format
    return sum(max(fmt.fields(x)[1], 1) - fmt.bias for x, fmt in zip(factors, formats, strict=True))


def narrow_cases(spec: DotAdd, F: int) -> list[CodesPair]:
    """Two inputs that differ in one product, but not in its value, where the formats are so narrow that all products
    can be looked at: with a larger sum of exponents it takes a bit from the only term that does not cancel, or, cut to
    odd, gives it one.

    That term is c, and another product cancels the first one; or it is a product, and c cancels the first one.
    """
    a, b = spec.a_format, spec.b_format
    if spec.k < 2 or max(a.codes, b.codes) > 256:
        return []
    alike: dict[Fraction, dict[int, tuple[int, int]]] = {}
    for factors in product(range(1, a.sign_mask), range(1, b.sign_mask)):
        if a.is_finite(factors[0]) and b.is_finite(factors[1]):
            value = a.value(factors[0]) * b.value(factors[1])
            alike.setdefault(value, {})[exponent_of_factors(spec, factors)] = factors
    raised = [(max(each), min(each), value) for value, each in alike.items() if len(each) > 1]
    out: list[CodesPair] = []
    for high, low, value in sorted(raised, key=lambda case: (-case[0], case[1], case[2]))[:12]:
        second, first = alike[value][high], alike[value][low]
        opposite = opposite_code(first[0], a), first[1]
        for units, below in product((1, 3), (1, 2, 3)):
            rest = units * Fraction(2) ** (high - F - below)
            c, cancelling = any_code(rest, spec.c_format), any_code(-value, spec.c_format)
            others = [(c, {1: opposite})] if c is not None else []
            if rest in alike and cancelling is not None:
                others.append((cancelling, {1: alike[rest][min(alike[rest])]}))
            for code, more in others:
                base = replace(zeros(spec), c=code)
                x, y = (with_products(base, more | {0: mine}) for mine in (first, second))
                out += [(x, y), (y, x)]
    return out


def flushed_cases(spec: DotAdd) -> list[CodesPair]:
    """gps: a subnormal factor counts as 0, so its product is below a smaller one of normal factors."""
    a, b = spec.a_format, spec.b_format
    subnormal, large = 1 << a.ignored_low_bits, any_code(Fraction(2) ** b.max_exponent, b)
    normal = any_code(Fraction(2) ** a.min_exponent, a)
    smaller = any_code(Fraction(2) ** max(b.min_exponent, b.max_exponent - a.fraction_bits - 1), b)
    pairs = (normal, smaller), (subnormal, large)
    x, y = (with_products(zeros(spec), {0: pair}) for pair in pairs)  # type: ignore[dict-item]
    return [(x, y)]


def value_of_product(spec: DotAdd, codes: Codes, k: int) -> Fraction:
    return spec.a_format.value(codes.a[k]) * spec.b_format.value(codes.b[k])


def find_product(
    instruction: Instruction, searches: Iterable[Callable[[], list[CodesPair]]]
) -> tuple[Codes, Codes] | None:
    """Two inputs that differ in the first product, not smaller in the second, whose result is."""
    spec = instruction.spec
    for search in searches:
        cases = search()
        if not cases:
            continue
        cases.sort(key=lambda case: size_of(spec, case[0]))
        results = [run(instruction, [case[i] for case in cases]) for i in (0, 1)]
        for (first, second), x, y in zip(cases, *results, strict=True):
            places = [position(d, spec.d_format) for d in (x, y)]
            in_turn = value_of_product(spec, first, 0) <= value_of_product(spec, second, 0)
            if in_turn and places[0] is not None and places[1] is not None and places[0] > places[1]:
                return first, second
    return None


def falls_with_a_product(
    instruction: Instruction, searches: Iterable[Callable[[], list[CodesPair]]]
) -> OutOfOrder | None:
    """Return what `find_product` finds, re-run in both encodings; None if it finds nothing."""
    spec, found = instruction.spec, find_product(instruction, searches)
    if found is None:
        return None
    first, second = found
    values = [value_of_product(spec, x, 0) for x in found]
    what = (
        f"a[0] = {code_text(second.a[0], spec.a_format)}, b[0] = {code_text(second.b[0], spec.b_format)}, "
        + ("the same product" if values[0] == values[1] else f"a product of {number_text(values[1])}")
    )
    nonzero = sum(value_of_product(spec, first, k) != 0 for k in range(spec.k))
    minimality = (f"{nonzero} nonzero products, the fewest found; at least one is needed to be changed",)
    witness = shown_out_of_order(instruction, first, second, what, minimality)
    return OutOfOrder(witness, "d depends on how a product is made of its factors")


def falls_where_flushed(instruction: Instruction) -> OutOfOrder | None:
    """Return an input on which a larger product gives a smaller d, of a unit that takes subnormal factors for zero."""
    return falls_with_a_product(instruction, [partial(flushed_cases, instruction.spec)])


def random_searches(
    spec: DotAdd, F: int, *more: Callable[[], list[CodesPair]], order: Sequence[int] = ()
) -> list[Callable[[], list[CodesPair]]]:
    """Random cases of many seeds, and after the first of them what else there is."""
    searches = [partial(product_cases, spec, F, seed=seed, order=order) for seed in range(8)]
    return [searches[0], *more, *searches[1:]]
