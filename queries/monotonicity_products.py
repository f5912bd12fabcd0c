"""Does d grow with one product?  a·b ≤ a'·b' ⇒ d ≤ d', all else the same.

It fails wherever a unit aligns by the exponents of the factors: the same number, made of other factors, has another
exponent, and the other terms lose other bits.  It holds where each step rounds its exact sum (`monotonicity_rounding`),
and where products are summed exactly and aligned by the exponents of their scales (`monotonicity_groups`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

from mmaformal.algorithms import DotAdd, Efda, Fda, Gdfs, Gps, Lowered, Sfma
from mmaformal.cases.descents import any_code, codes_of_number, position, shown
from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import negated, run, with_products, zeros
from mmaformal.cases.numerical import size as size_of
from mmaformal.explain import code_text, number_text
from mmaformal.facts.monotonicity_groups import prove_groups
from mmaformal.facts.monotonicity_rounding import by_rounding
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.proving import NotProvedError
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker

# ---- witnesses ------------------------------------------------------------------------------------------------------


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
        least = Fraction(2) ** a.min_exponent
        for first, second in (
            ((half * x, half * y), (eighth * x, 2 * y)),
            ((half * x, half * y), (2 * x, eighth * y)),
            ((least, down * y), (down * least, y)),
        ):
            codes = [any_code(v, fmt) for v, fmt in zip((*first, *second), (a, b, a, b), strict=True)]
            if None not in codes:
                yield (codes[0], codes[1]), (codes[2], codes[3])  # type: ignore[misc]


def product_cases(spec: DotAdd, count: int, seed: int = 0) -> list[tuple[Codes, Codes]]:
    """Two inputs that differ in one product, but not in its value; up to `count` of them."""
    rng = random.Random(seed)
    p = spec.parameters
    F = getattr(p, "F", 24)
    out: list[tuple[Codes, Codes]] = []
    for low, high in equal_products(spec, rng, 2 * count):
        if len(out) >= count:
            break
        exponent = exponent_of(spec, high)
        base, other = zeros(spec), {}
        places = p.order if isinstance(p, Lowered) else range(spec.k)  # neighbours in one step
        if rng.random() < 0.6:
            other[places[1 % spec.k]] = negated(low[0], spec.a_format), low[1]
        size = (
            rng.choice((1, 3, 5, 7))
            * rng.choice((1, -1))
            * Fraction(2) ** (exponent - F - rng.randint(-1, 4))
        )
        if rng.random() < 0.85 and not isinstance(p, Lowered):
            c = any_code(size, spec.c_format)
            if c is None:
                continue
            base = replace(base, c=c)
        else:
            factors = codes_of_number(abs(size), spec)
            if factors is None or spec.k < 3:
                continue
            other[places[2]] = (negated(factors[0], spec.a_format) if size < 0 else factors[0]), factors[1]
        x, y = (with_products(base, other | {0: mine}) for mine in (low, high))
        out += [(x, y), (y, x)]
    return out


def exponent_of(spec: DotAdd, factors: tuple[int, int]) -> int:
    """The sum of the exponents of two factors, those that their fields have."""
    formats = spec.a_format, spec.b_format
    return sum(max(fmt.fields(x)[1], 1) - fmt.bias for x, fmt in zip(factors, formats, strict=True))


def narrow_cases(spec: DotAdd) -> list[tuple[Codes, Codes]]:
    """Two inputs that differ in one product, but not in its value, where the formats are so narrow that all products
    can be looked at: with a larger sum of exponents it takes a bit from the only term that does not cancel.

    That term is c, and another product cancels the first one; or it is a product, and c cancels the first one.
    """
    p, a, b = spec.parameters, spec.a_format, spec.b_format
    if not isinstance(p, Fda) or spec.k < 2 or max(a.codes, b.codes) > 256:
        return []
    alike: dict[Fraction, dict[int, tuple[int, int]]] = {}
    for factors in product(range(1, a.sign_mask), range(1, b.sign_mask)):
        if a.is_finite(factors[0]) and b.is_finite(factors[1]):
            value = a.value(factors[0]) * b.value(factors[1])
            alike.setdefault(value, {})[exponent_of(spec, factors)] = factors
    raised = [(max(each), min(each), value) for value, each in alike.items() if len(each) > 1]
    out: list[tuple[Codes, Codes]] = []
    for high, low, value in sorted(raised, key=lambda case: (-case[0], case[1], case[2]))[:12]:
        second, first = alike[value][high], alike[value][low]
        opposite = negated(first[0], a), first[1]
        for units, below in product((1, 3), (1, 2, 3)):
            rest = units * Fraction(2) ** (high - p.F - below)
            c, cancelling = any_code(rest, spec.c_format), any_code(-value, spec.c_format)
            others = [(c, {1: opposite})] if c is not None else []
            if rest in alike and cancelling is not None:
                others.append((cancelling, {1: alike[rest][min(alike[rest])]}))
            for code, more in others:
                base = replace(zeros(spec), c=code)
                out.append(tuple(with_products(base, more | {0: mine}) for mine in (first, second)))  # type: ignore[arg-type]
    return out


def flushed_cases(spec: DotAdd) -> list[tuple[Codes, Codes]]:
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


def find_product(instruction: Instruction) -> tuple[Codes, Codes] | None:
    """Two inputs that differ in the first product, not smaller in the second, whose result is."""
    spec = instruction.spec
    p = spec.parameters
    random_cases = [partial(product_cases, count=60, seed=seed) for seed in range(8)]
    searches: list[Callable[[DotAdd], list[tuple[Codes, Codes]]]]
    searches = [flushed_cases] if isinstance(p, Gps) else [random_cases[0], narrow_cases, *random_cases[1:]]
    for search in searches:
        cases = search(spec)
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


def settle_product(instruction: Instruction, asker: Asker) -> Answer:
    spec, p = instruction.spec, instruction.parameters
    question = f"{instruction.label}: a·b ≤ a'·b' ⇒ d ≤ d'"
    proving = Composing(asker)
    if isinstance(p, (Sfma, Efda)):
        return by_rounding(question, proving, spec)
    if isinstance(p, Gdfs):
        try:
            prove_groups(proving, spec)
        except NotProvedError as error:
            return Unknown(question, str(error), proving.obligations, asker.elapsed)
        return Holds(question, proving.unconcluded(), asker.elapsed)
    found = find_product(instruction)
    if found is None:
        return Unknown(question, "no argument, and no input was found that breaks it", (), asker.elapsed)
    first, second = found
    values = [value_of_product(spec, x, 0) for x in found]
    what = (
        f"a[0] = {code_text(second.a[0], spec.a_format)}, b[0] = {code_text(second.b[0], spec.b_format)}, "
        + ("the same product" if values[0] == values[1] else f"a product of {number_text(values[1])}")
    )
    nonzero = sum(value_of_product(spec, first, k) != 0 for k in range(spec.k))
    minimality = (f"{nonzero} nonzero products, the fewest found; at least one is needed to be changed",)
    witness = shown(instruction, first, second, what, minimality)
    return Fails(question, witness, "d depends on how a product is made of its factors", asker.elapsed)


PRODUCT = Property("monotonicity-in-a-product", "a·b ≤ a'·b' ⇒ d ≤ d', all else the same", settle_product)
