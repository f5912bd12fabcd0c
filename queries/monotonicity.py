"""Does d grow with c, and with one product?  c ≤ c' ⇒ d ≤ d', and a·b ≤ a'·b' ⇒ d ≤ d', all else the same.

    python -m mmaformal.queries.monotonicity ampere HMMA.16816.F32

Multi-term adders break it: a larger c may raise e_max, and then every product loses bits that it had before.  That is
at most one unit of the finer grid for each product, while c itself gained at least 2^(F − M) of them (M the fraction
bits of c, or F if those are more).  So a step of L products is monotone in c exactly where L is small enough,
`products_allowed`, and that is proved; for more products there is a witness.  In one product it fails wherever a unit
aligns by the exponents of the factors: the same number, made of other factors, has another exponent.

It is enough to look at neighbouring codes c < c', since ≤ is transitive; and at one step, since a chain composes them.
A NaN is neither above nor below anything.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import z3

from mmaformal.algorithms import Conversion, DotAdd, Efda, Fda, Fdrda, Gdfs, Gfdrda, Gps, Lowered, Sfma
from mmaformal.encodings.smt import efda, fdrda, gfdrda, gps, ieee, sfma
from mmaformal.encodings.smt.blocks import negate_if, quiet_nan
from mmaformal.explain import code_text, number_text
from mmaformal.formats import Format, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries.definitions import conversion_of, fit
from mmaformal.queries.exact_steps import prove_addition, prove_monotone, prove_step
from mmaformal.queries.fused_steps import Fused, fused_step, one_step, prove_e_max, prove_highest, prove_total
from mmaformal.queries.inputs import Codes, symbolic_inputs
from mmaformal.queries.numerical import (
    NotProvedError,
    Proving,
    inputs_text,
    negated,
    run,
    run_both,
    with_products,
    zeros,
)
from mmaformal.queries.numerical import size as size_of
from mmaformal.queries.property import Property
from mmaformal.queries.round_down import prove_ranges
from mmaformal.solver.answers import Answer, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.witness import WitnessError

# ---- order ------------------------------------------------------------------------------------------------------


def order(code: z3.BitVecRef) -> z3.BitVecRef:
    """A number that orders the codes of an IEEE format as their values; both zeros are 0."""
    top = code.size() - 1
    return negate_if(z3.Extract(top, top, code), z3.ZeroExt(1, z3.Extract(top - 1, 0, code)))


def position(code: int, fmt: Format) -> int | None:
    """The same of a code; None for a NaN."""
    if fmt.is_nan(code):
        return None
    magnitude = code & (fmt.sign_mask - 1)
    return -magnitude if code & fmt.sign_mask else magnitude


def in_order(sign: z3.BitVecRef, smaller: z3.BitVecRef, larger: z3.BitVecRef) -> z3.BoolRef:
    """Whether results are in order for two c of one sign, the smaller and the larger in magnitude."""
    x, y = order(smaller), order(larger)
    return z3.If(sign == 0, x <= y, y <= x)


# ---- fda and gdfs, in c -----------------------------------------------------------------------------------------


def products_allowed(spec: DotAdd) -> int:
    """The most products (or groups) that a step of fda or gdfs may have to be monotone in c: 2^(F − M), at least 1."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    return int(1 << max(0, p.F - spec.c_format.fraction_bits))


@dataclass(frozen=True)
class Neighbours:
    """A step with c, and with the next code of larger magnitude and of the same sign."""

    small: Fused
    large: Fused
    sign: z3.BitVecRef
    finite: z3.BoolRef  #: whether the smaller one is


def neighbours(spec: DotAdd) -> Neighbours:
    inputs, fmt = symbolic_inputs(one_step(spec)), spec.c_format
    sign, magnitude = z3.BitVec("sign", 1), z3.BitVec("magnitude", fmt.storage_bits - 1)
    small, large = (
        fused_step(spec, replace(inputs, c=z3.Concat(sign, x))) for x in (magnitude, magnitude + 1)
    )
    assert fmt.infinity is not None
    return Neighbours(small, large, sign, z3.ULT(magnitude, fmt.infinity))


def prove_addend_fused(proving: Proving, spec: DotAdd) -> None:
    """That a step of fda or gdfs is monotone in c.  Raises NotProvedError."""
    p, pair = spec.parameters, neighbours(spec)
    assert isinstance(p, (Fda, Gdfs))
    x, y = pair.small, pair.large
    ex, M = x.exponents, spec.c_format.fraction_bits
    low = ex.constant(spec.c_format.min_exponent)
    e0, e1, E0, E1 = x.step.addend.exponent, y.step.addend.exponent, x.step.e_max, y.step.e_max
    s0, s1 = x.step.addend.significand, y.step.addend.significand
    signs = z3.And(x.step.addend.sign == pair.sign, y.step.addend.sign == pair.sign)
    zero_exponent = ex.constant(spec.c_format.min_exponent if p.e_zero is None else p.e_zero)
    from_zero = z3.And(s0 == 0, s1 == 1, e0 == zero_exponent, e1 == low)
    step = proving.claim(
        "neighbouring c",
        "the next c has one more in its last place, or the next exponent, or is the least after zero",
        z3.And(
            signs,
            z3.Or(
                from_zero,
                z3.And(s0 != 0, e1 == e0, s1 == s0 + 1, s0 != -1),
                z3.And(s0 == -1, z3.ULT(e0, e1), e1 == e0 + 1, s1 == 1 << M),
            ),
        ),
        [pair.finite],
    )
    below0, some0 = prove_e_max(proving, x)
    below1, some1 = prove_e_max(proving, y)
    products = [s.term.exponent for s in x.summands[:-1]]
    same, next_up = E1 == E0, z3.And(z3.ULT(E0, E1), E1 == E0 + 1, e0 == E0, e1 == E1, s0 == -1)
    risen = z3.And(from_zero, low == E1, z3.ULT(E0, low), z3.UGE(E0, zero_exponent))
    maxima = proving.claim(
        "e_max of neighbours",
        "e_max stays, or rises by one with c, or from below the least exponent of c to that",
        z3.Or(same, next_up, risen),
        [step, *below0, *below1, some0, some1],
        [e0, e1, s0, s1, E0, E1, *products, x.step.addend.sign, y.step.addend.sign],
    )
    furthest = max(
        1, spec.c_format.min_exponent - (spec.c_format.min_exponent if p.e_zero is None else p.e_zero)
    )
    few = z3.And(z3.ULE(E0, E1), z3.ULE(E1 - E0, furthest))
    proving.claim(
        "rise of e_max", f"so e_max rises by at most {furthest}", few, [maxima], [e0, e1, s0, s1, E0, E1]
    )
    _specials_of(proving, pair.sign, pair.finite, x.step, y.step)
    prove_total(proving, x, below0)
    prove_total(proving, y, below1)
    prove_highest(proving, x, below0, some0)
    prove_highest(proving, y, below1, some1)
    for rise in range(furthest + 1):
        _sums(proving, pair, rise, [step, maxima], below0, below1[-1])
        _rounding(proving, pair, rise, low)


def _sums(
    proving: Proving,
    pair: Neighbours,
    rise: int,
    given: list[z3.BoolRef],
    below: list[z3.BoolRef],
    c_below: z3.BoolRef,
) -> None:
    """That the sum with the larger c is the larger one, where e_max is `rise` higher for it.

    Both sums are exact (`prove_total`), so their difference is Σ ± what each product loses, and what c gains.
    """
    x, y = pair.small, pair.large
    E0, E1 = x.step.e_max, y.step.e_max
    n, rest = len(x.summands) - 1, (1 << rise) - 1
    wide = x.step.total.size() + rise + 3
    grids = f"where e_max rises by {rise}"
    risen = z3.And(E0 + rise == E1, z3.ULE(E0, E1))
    for u, v, under in zip(x.summands[:-1], y.summands[:-1], below, strict=False):
        lost = fit(u.aligned, wide) - (fit(v.aligned, wide) << rise)
        proving.claim(
            f"{u.name} on two grids, {rise}",
            f"{grids}, a term loses less than one unit of the coarser grid",
            z3.And(lost >= 0, lost <= rest),
            [risen, under],
            [u.term.exponent, u.term.significand, E0, E1],
        )
    c0, c1 = (fit(side.step.aligned_c, wide) for side in (x, y))
    proving.claim(
        f"c on two grids, {rise}",
        f"{grids}, the larger c is larger by at least what {n} products can lose",
        (c1 << rise) - c0 >= n * rest,
        [*given, risen, below[-1], c_below],
        [x.step.addend.exponent, y.step.addend.exponent, x.step.c.significand, y.step.c.significand, E0, E1],
    )
    _differences(proving, n, rise, wide)


def _differences(proving: Proving, n: int, rise: int, wide: int) -> None:
    """Arithmetic: if each of n terms loses at most 2^rise - 1, and c gains as much as all, the sum does not fall."""
    rest = (1 << rise) - 1
    R, S, u, v, lost, gained, D = z3.BitVecs("R S u v lost gained D", wide)
    sign, factor = z3.BitVec("sign", 1), 1 << rise
    for word, after, lose in (
        ("added", (R + u) - (S + v) * factor, u - v * factor),
        ("taken away", (R - u) - (S - v) * factor, v * factor - u),
    ):
        proving.claim(
            f"one more term {word}, {rise}",
            "the difference of two sums on two grids changes by what the next term loses",
            after == R - S * factor + lose,
        )
    for k in range(n):
        bound, next_bound, changed = k * rest, (k + 1) * rest, D + negate_if(sign, lost)
        given = z3.And(bound >= D, -bound <= D, lost >= 0, lost <= rest)
        proving.claim(
            f"difference {k}, {rise}",
            "losses of terms add up to no more than one unit each",
            z3.Implies(given, z3.And(changed <= next_bound, changed >= -next_bound)),
        )
    largest = z3.BitVecVal(1 << (wide - 2), wide)
    bound = n * rest
    proving.claim(
        f"difference with c, {rise}",
        "c gains no less than all lose, so the sum with the larger c is the larger",
        z3.Implies(
            z3.And(bound >= D, -bound <= D, gained >= bound, gained <= largest),
            z3.If(sign == 0, D - gained <= 0, D + gained >= 0),
        ),
    )


def fit_signed(x: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    return z3.SignExt(bits - x.size(), x)


def _specials_of(proving: Proving, sign: z3.BitVecRef, finite: z3.BoolRef, x: Any, y: Any) -> None:
    """That a finite c decides nothing, and an infinite one is the largest there is, or a NaN."""
    same = z3.And([u == v for u, v in zip(x.special, y.special, strict=True)])
    largest = z3.If(sign == 0, y.special.positive_infinity, y.special.negative_infinity)
    nan, plus, minus = y.special
    one = z3.Not(z3.Or(z3.And(nan, plus), z3.And(nan, minus), z3.And(plus, minus)))
    proving.claim(
        "special values",
        "special values are those of the products, or c's infinity",
        z3.And(one, z3.If(y.c.infinite, z3.Or(nan, largest), same)),
        [finite],
    )


def _rounding(proving: Proving, pair: Neighbours, rise: int, low: z3.BitVecRef) -> None:
    """Sums in order are rounded in order, e_max being `rise` higher for the second."""
    x, y = pair.small, pair.large
    E0, E1, t0, t1 = x.step.e_max, y.step.e_max, x.step.total, y.step.total
    reach = sum(x.bounds)
    wide = t0.size() + rise + 1
    a, b = fit_signed(t0, wide), fit_signed(t1, wide) << rise
    ex = x.exponents
    premises = [
        E0 + rise == E1,
        z3.UGE(E0, ex.constant(x.least)),
        z3.ULE(E1, ex.constant(ex.high)),
        z3.ULE(E0, E1),
        *(z3.And(t <= reach, t >= -reach) for t in (t0, t1)),
        z3.If(pair.sign == 0, a <= b, a >= b),
    ]
    if rise > 1:
        premises.append(low == E1)
    none = z3.Not(z3.Or(*x.step.special, *y.step.special))
    proving.claim(
        f"rounding with e_max {rise} higher",
        f"sums in order are rounded in order, where e_max is {rise} higher for the larger c",
        z3.Implies(none, in_order(pair.sign, x.step.result, y.step.result)),
        premises,
        [E0, E1, t0, t1, *x.step.special, *y.step.special],
    )


# ---- where each rounding is of an exact sum ------------------------------------------------------------------------


def _special_step(proving: Proving, spec: DotAdd) -> None:
    """sfma, efda: infinities keep the order: one, of a product or of c, gives itself or a NaN."""
    p, x = spec.parameters, symbolic_inputs(one_step(spec))
    assert isinstance(p, (Sfma, Efda))
    step: Any = (
        sfma.step(p.rho, x.a[0], x.b[0], x.c) if isinstance(p, Sfma) else efda.step(spec, p, x.a, x.b, x.c)
    )
    a, b = ([step.a], [step.b]) if isinstance(p, Sfma) else (step.a, step.b)
    signs = [(z3.Or(u.infinite, v.infinite), u.sign ^ v.sign) for u, v in zip(a, b, strict=True)]
    signs.append((step.c.infinite, step.c.sign))
    nan, plus, minus = step.special
    each = [z3.Implies(infinite, z3.Or(nan, z3.If(sign == 0, plus, minus))) for infinite, sign in signs]
    none = z3.Not(z3.Or([u.nan for u in (*a, *b, step.c)] + [infinite for infinite, _ in signs]))
    text = "an infinite product or c gives itself or a NaN, and without one nothing is special"
    proving.claim("special values", text, z3.And(*each, z3.Implies(none, z3.Not(z3.Or(nan, plus, minus)))))


def _special_addition(proving: Proving, rho: Conversion) -> None:
    """gps, lowered: the same of an addition; and flushing keeps the order."""
    fmt = rho.format
    x, y = z3.BitVecs("x y", fmt.storage_bits)
    code, infinity = ieee.add(x, y, rho, quiet_nan(fmt)).result, fmt.infinity
    magnitudes = [z3.Extract(fmt.storage_bits - 2, 0, v) for v in (x, y, code)]
    is_infinite = [m == infinity for m in magnitudes]
    nan = z3.UGT(magnitudes[2], infinity)
    proving.claim(
        "special values",
        "an infinite summand gives itself or a NaN, if the other is no NaN",
        z3.And(
            z3.Implies(is_infinite[0], z3.Or(nan, code == x)),
            z3.Implies(is_infinite[1], z3.Or(nan, code == y)),
        ),
        [z3.ULE(magnitudes[0], infinity), z3.ULE(magnitudes[1], infinity)],
    )
    if fmt == fp32:
        for keep in (False, True):
            flushed = [order(gps.flush(v, keep_sign=keep)) for v in (x, y)]
            text = "flushing keeps the order of numbers"
            proving.claim("flush", text, z3.Implies(order(x) <= order(y), flushed[0] <= flushed[1]))


# ---- fdrda and gfdrda, in c -------------------------------------------------------------------------------------


def prove_addend_round_down(proving: Proving, spec: DotAdd) -> None:
    """That a step of fdrda or gfdrda is monotone in c: the sum of products does not depend on it, and every cut is
    toward −∞, on a grid that the next c can only make coarser by one bit.  Raises NotProvedError."""
    p, fmt = spec.parameters, spec.c_format
    assert isinstance(p, Fdrda)
    assert fmt.infinity is not None
    inputs, ex = symbolic_inputs(one_step(spec)), fdrda.exponents_of(spec)
    sign, magnitude = z3.BitVec("sign", 1), z3.BitVec("magnitude", fmt.storage_bits - 1)
    module = gfdrda if isinstance(p, Gfdrda) else fdrda
    x, y = (module.step(spec, p, inputs.a, inputs.b, z3.Concat(sign, m)) for m in (magnitude, magnitude + 1))
    finite = z3.ULT(magnitude, fmt.infinity)
    bound = fdrda.dot_bound(p, p.L)
    e0, e1, E0, E1 = x.addend.exponent, y.addend.exponent, x.e_max, y.e_max
    s0, s1, M = x.addend.significand, y.addend.significand, fmt.fraction_bits
    up = z3.And(s0 == -1, z3.ULT(e0, e1), e1 == e0 + 1, s1 == 1 << M)
    low = ex.constant(fmt.min_exponent)
    step = proving.claim(
        "neighbouring c",
        "the next c has one more in its last place, or the next exponent",
        z3.And(
            x.addend.sign == sign,
            y.addend.sign == sign,
            z3.UGE(e0, low),
            z3.ULE(e1, ex.constant(ex.high)),
            z3.Or(z3.And(e1 == e0, s1 == s0 + 1, s0 != -1), up),
        ),
        [finite],
    )
    maxima = proving.claim(
        "e_max of neighbours",
        "e_max stays, or rises by one with c",
        z3.And(
            z3.ULE(x.e_dot, E0),
            z3.ULE(e0, E0),
            z3.ULE(e1, E1),
            z3.Or(E1 == E0, z3.And(z3.ULT(E0, E1), E1 == E0 + 1, e0 == E0, e1 == E1, s0 == -1)),
        ),
        [step],
        [x.e_dot, e0, e1, s0, s1, x.addend.sign, y.addend.sign],
    )
    for side in (x, y):
        prove_ranges(proving, p, side)
    significands = [operand.significand for operand in (*y.a, *y.b, y.c)]
    text = "e_max is in its range"
    proving.claim("e_max in range", text, z3.ULE(E1, ex.constant(ex.high)), (), significands)
    within = z3.And(x.dot <= bound, x.dot >= -bound)
    reach = (bound + (1 << (p.F + 1))) << (p.dot_bits - p.F)
    for rise in (0, 1):
        wide = x.total.size() + rise + 1
        a, b = fit_signed(x.total, wide), fit_signed(y.total, wide) << rise
        ordered = z3.If(sign == 0, a <= b, a >= b)
        risen = z3.And(E0 + rise == E1, z3.ULE(E0, E1))
        in_range = z3.And([z3.And(t <= reach, t >= -reach) for t in (x.total, y.total)])
        cut = [x.dot, x.e_dot, e0, e1, s0, s1, E0, E1, x.addend.sign, y.addend.sign]
        proving.claim(
            f"sums of neighbours, {rise}",
            f"where e_max rises by {rise}, the sum with the larger c is the larger",
            z3.And(ordered, in_range),
            [step, maxima, within, risen],
            cut,
        )
        none = z3.Not(z3.Or(*x.special, *y.special))
        highest = z3.And(z3.UGE(E0, low), z3.ULE(E1, ex.constant(ex.high)))
        proving.claim(
            f"rounding with e_max {rise} higher",
            f"sums in order are rounded in order, where e_max is {rise} higher for the larger c",
            z3.Implies(none, in_order(sign, x.result, y.result)),
            [risen, highest, in_range, ordered],
            [E0, E1, x.total, y.total, *x.special, *y.special],
        )
    _specials_of(proving, sign, finite, x, y)


# ---- witnesses --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Descent:
    """Two inputs, in order, whose results are not."""

    instruction: Instruction
    first: Codes
    second: Codes
    results: tuple[int, int]
    what: str  #: what is larger in the second
    minimality: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        def codes(x: Codes) -> dict[str, Any]:
            sides = {"a": x.a, "b": x.b, "scale_a": x.scale_a, "scale_b": x.scale_b}
            return {**{name: [hex(v) for v in side] for name, side in sides.items() if side}, "c": hex(x.c)}

        return {
            "instruction": self.instruction.label,
            "first": codes(self.first),
            "second": codes(self.second),
            "results": [hex(x) for x in self.results],
            "what": self.what,
            "minimality": list(self.minimality),
        }

    def __str__(self) -> str:
        spec = self.instruction.spec
        lines = inputs_text(spec, self.first)
        lines.append(f"  d         {code_text(self.results[0], spec.d_format)}")
        lines += ["", f"with {self.what}"]
        lines.append(f"  d         {code_text(self.results[1], spec.d_format)}")
        lines += ["", "minimal?", *(f"  {line}" for line in self.minimality)]
        return "\n".join(lines)


def descends(instruction: Instruction, first: Codes, second: Codes) -> bool:
    x, y = (position(d, instruction.d_format) for d in run(instruction, [first, second]))
    return x is not None and y is not None and x > y


def shown(
    instruction: Instruction, first: Codes, second: Codes, what: str, minimality: tuple[str, ...]
) -> Descent:
    """The witness, its results given by both wings.  Raises WitnessError."""
    results = run_both(instruction, first), run_both(instruction, second)
    places = [position(d, instruction.d_format) for d in results]
    if places[0] is None or places[1] is None or places[0] <= places[1]:
        raise WitnessError(f"{instruction.label}: {first} and {second} were to give results out of order")
    return Descent(instruction, first, second, results, what, minimality)


def codes_of_number(value: Fraction, spec: DotAdd) -> tuple[int, int] | None:
    """Codes of a and b with a·b = value > 0, both normal and of exponents near each other; None if there are none."""
    numerator, denominator = value.numerator, value.denominator
    shift = -(denominator.bit_length() - 1)
    while numerator % 2 == 0:
        numerator, shift = numerator // 2, shift + 1
    for odd in sorted((d for d in range(1, numerator + 1, 2) if numerator % d == 0), reverse=True):
        half = shift // 2
        for e in sorted(range(half - 12, half + 13), key=lambda e: abs(e - half)):
            x, y = (
                _code(Fraction(n) * Fraction(2) ** at, fmt)
                for n, at, fmt in ((odd, e, spec.a_format), (numerator // odd, shift - e, spec.b_format))
            )
            if x is not None and y is not None:
                return x, y
    return None


def _code(value: Fraction, fmt: Format) -> int | None:
    try:
        code = fmt.code(str(value))
    except ValueError:
        return None
    return code if fmt.fields(code)[1] else None


def crossing_addend(instruction: Instruction) -> Iterator[tuple[Codes, Codes, int]]:
    """(with c, with the next c, number of products): c = (2 - ulp)·2^e and 2^(e+1), and products of an odd number of
    units 2^(e - F), each of which loses one when e_max rises with c; with fewest products first."""
    spec, p = instruction.spec, instruction.parameters
    assert isinstance(p, Fda)
    fmt = spec.c_format
    for e in sorted(range(max(fmt.min_exponent, -40), min(fmt.max_exponent, 60)), key=lambda e: abs(e - p.F)):
        c = _code(Fraction(2) ** (e + 1), fmt)
        units = {
            odd: codes_of_number(odd * Fraction(2) ** (e - p.F), spec) for odd in (1, 3, 5, 7, 9, 15, 21, 25)
        }
        if c is None or units[1] is None:
            continue
        first, second = replace(zeros(spec), c=c - (1 << fmt.ignored_low_bits)), replace(zeros(spec), c=c)
        for n in range(products_allowed(spec) + 1, p.L + 1):
            for more in (odd for odd, codes in units.items() if codes is not None):
                for several in range(n):
                    products = {k: units[more if k < several else 1] for k in range(n)}
                    yield with_products(first, products), with_products(second, products), n  # type: ignore[arg-type]
        return


def find_addend(instruction: Instruction) -> tuple[Codes, Codes, int] | None:
    """A failing pair of neighbouring c of an fda model, of few products."""
    cases = list(crossing_addend(instruction))
    if not cases:
        return None
    firsts, seconds = run(instruction, [x for x, _, _ in cases]), run(instruction, [y for _, y, _ in cases])
    for case, x, y in zip(cases, firsts, seconds, strict=True):
        places = [position(d, instruction.d_format) for d in (x, y)]
        if places[0] is not None and places[1] is not None and places[0] > places[1]:
            return case
    return None


# ---- one product ------------------------------------------------------------------------------------------------


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
            codes = [_any_code(v, fmt) for v, fmt in zip((*first, *second), (a, b, a, b), strict=True)]
            if None not in codes:
                yield (codes[0], codes[1]), (codes[2], codes[3])  # type: ignore[misc]


def _any_code(value: Fraction, fmt: Format) -> int | None:
    try:
        return fmt.code(str(value))
    except ValueError:
        return None


def product_cases(spec: DotAdd, count: int, seed: int = 0) -> list[tuple[Codes, Codes]]:
    """Two inputs that differ in one product, but not in its value; up to `count` of them."""
    rng = random.Random(seed)
    p = spec.parameters
    F = getattr(p, "F", 24)
    out: list[tuple[Codes, Codes]] = []
    for low, high in equal_products(spec, rng, 2 * count):
        if len(out) >= count:
            break
        exponent = sum(
            max(fmt.fields(x)[1], 1) - fmt.bias
            for x, fmt in zip(high, (spec.a_format, spec.b_format), strict=True)
        )
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
            c = _any_code(size, spec.c_format)
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


def flushed_cases(spec: DotAdd) -> list[tuple[Codes, Codes]]:
    """gps: a subnormal factor counts as 0, so its product is below a smaller one of normal factors."""
    a, b = spec.a_format, spec.b_format
    subnormal, large = 1 << a.ignored_low_bits, _any_code(Fraction(2) ** b.max_exponent, b)
    normal = _any_code(Fraction(2) ** a.min_exponent, a)
    smaller = _any_code(Fraction(2) ** max(b.min_exponent, b.max_exponent - a.fraction_bits - 1), b)
    pairs = (normal, smaller), (subnormal, large)
    x, y = (with_products(zeros(spec), {0: pair}) for pair in pairs)  # type: ignore[dict-item]
    return [(x, y)]


def value_of_product(spec: DotAdd, codes: Codes, k: int) -> Fraction:
    return spec.a_format.value(codes.a[k]) * spec.b_format.value(codes.b[k])


def find_product(instruction: Instruction) -> tuple[Codes, Codes] | None:
    """Two inputs that differ in the first product, not smaller in the second, whose result is."""
    spec = instruction.spec
    for seed in range(8):
        cases = flushed_cases(spec) if isinstance(spec.parameters, Gps) else product_cases(spec, 60, seed)
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
    proving = Proving(asker)
    if isinstance(p, (Sfma, Efda)):
        return _by_rounding(question, proving, spec)
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


def _by_rounding(question: str, proving: Proving, spec: DotAdd) -> Answer:
    """sfma, efda: each step is its exact sum, correctly rounded, and that is monotone in what is summed."""
    try:
        prove_step(proving, spec)
        prove_monotone(proving, conversion_of(spec))
        _special_step(proving, spec)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, proving.asker.elapsed)
    return Holds(question, Proof(proving.obligations), proving.asker.elapsed)


# ---- the properties ---------------------------------------------------------------------------------------------


def settle_addend(instruction: Instruction, asker: Asker) -> Answer:
    spec, p = instruction.spec, instruction.parameters
    question = f"{instruction.label}: c ≤ c' ⇒ d ≤ d'"
    proving = Proving(asker)
    if isinstance(p, (Sfma, Efda)):
        return _by_rounding(question, proving, spec)
    if isinstance(p, (Gps, Lowered, Fdrda)):
        try:
            if isinstance(p, Fdrda):
                prove_addend_round_down(proving, spec)
            else:  # c is added last, by additions of their own
                prove_addition(proving, conversion_of(spec))
                prove_monotone(proving, conversion_of(spec))
                _special_addition(proving, conversion_of(spec))
        except NotProvedError as error:
            return Unknown(question, str(error), proving.obligations, asker.elapsed)
        return Holds(question, Proof(proving.obligations), asker.elapsed)
    assert isinstance(p, (Fda, Gdfs))
    terms = p.L if isinstance(p, Fda) else p.L // p.G
    allowed = products_allowed(spec)
    try:
        if terms <= allowed:
            prove_addend_fused(proving, spec)
            return Holds(question, Proof(proving.obligations), asker.elapsed)
        found = find_addend(instruction)
        if found is None:
            return Unknown(question, "no argument, and no input was found that breaks it", (), asker.elapsed)
        first, second, n = found
        minimal = f"{n} nonzero products are the fewest of this kind"
        if spec.c_format.fraction_bits <= p.F and spec.scale_format is None:
            prove_addend_fused(proving, spec.replace(k=allowed, L=allowed))
            minimal += (
                f"; steps of up to {allowed} are monotone (proved, {len(proving.obligations)} obligations)"
            )
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    witness = shown(instruction, first, second, f"c = {code_text(second.c, spec.c_format)}", (minimal,))
    why = f"e_max rises with c, and {n} products lose bits; F = {p.F} allows {allowed}"
    return Fails(question, witness, why, asker.elapsed)


PRODUCT = Property("monotonicity-in-a-product", "a·b ≤ a'·b' ⇒ d ≤ d', all else the same", settle_product)
ADDEND = Property("monotonicity-in-c", "c ≤ c' ⇒ d ≤ d', all else the same", settle_addend)

main = ADDEND.main

if __name__ == "__main__":
    sys.exit(main())
