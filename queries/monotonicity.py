"""Does d grow with c?  c ≤ c' ⇒ d ≤ d', all else the same.

    python -m mmaformal.queries.monotonicity ampere HMMA.16816.F32

Multi-term adders break it: a larger c may raise e_max, and then every product loses bits that it had before.  That is
at most one unit of the finer grid for each product, while c itself gained at least 2^(F − M) of them (M the fraction
bits of c, or F if those are more).  One product more does no harm where ρ cuts toward zero: what the sum then loses is
less than one coarser unit.  So a step of L products is monotone in c exactly where L is small enough,
`products_allowed`, and that is proved; for more products there is a witness.  For one product see
`monotonicity_products`.

It is enough to look at neighbouring codes c < c', since ≤ is transitive; and at one step, since a chain composes them.
A NaN is neither above nor below anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Efda, Fda, Fdrda, Gdfs, Gfdrda, Gps, Lowered, Rounding, Sfma
from mmaformal.cases.descents import codes_of_number, in_order, normal_code, order, position, shown
from mmaformal.cases.inputs import Codes, is_nan, symbolic_inputs
from mmaformal.cases.numerical import run, with_products, zeros
from mmaformal.encodings import smt
from mmaformal.encodings.smt import fdrda, gfdrda
from mmaformal.encodings.smt.blocks import negate_if
from mmaformal.explain import code_text
from mmaformal.facts.additions import prove_addition
from mmaformal.facts.exact_terms import (
    prove_chain,
    prove_groups_chain,
    prove_lowered,
    prove_special_codes,
    prove_tree,
)
from mmaformal.facts.fused_steps import Fused, fused_step, one_step, prove_e_max, prove_highest, prove_total
from mmaformal.facts.monotonicity_rounding import by_rounding, prove_grid, prove_special_addition
from mmaformal.facts.round_down import prove_ranges
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.proving import NotProvedError, Proving
from mmaformal.queries.monotonicity_products import PRODUCT as PRODUCT
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker

# ---- fda and gdfs, in c -----------------------------------------------------------------------------------------


def products_allowed(spec: DotAdd) -> int:
    """The most products (or groups) that a step of fda or gdfs may have to be monotone in c.

    c gains what 2^(F − M) of them can lose, at least one; with one more, all of them losing, the sum falls by less than
    one unit of the coarser grid, from above a number that it has: nothing that is cut toward zero shows.
    """
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    return covered(spec) + (p.rho.rounding is Rounding.RZ and p.rho.fraction_bits <= p.F)


def covered(spec: DotAdd) -> int:
    """The number of products of which c gains what they can lose."""
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
    """Raises NotProvedError where codes of c are not in order up to an infinity."""
    inputs, fmt = symbolic_inputs(one_step(spec)), spec.c_format
    whole = fmt.signed and 1 + fmt.exponent_bits + fmt.fraction_bits == fmt.storage_bits
    if fmt.infinity is None or not whole:
        raise NotProvedError("d grows with c", "unknown", f"there is no argument for c of {fmt}")
    sign, magnitude = z3.BitVec("sign", 1), z3.BitVec("magnitude", fmt.storage_bits - 1)
    small, large = (
        fused_step(spec, replace(inputs, c=z3.Concat(sign, x))) for x in (magnitude, magnitude + 1)
    )
    return Neighbours(small, large, sign, z3.ULT(magnitude, fmt.infinity))


def prove_zeros(proving: Proving, spec: DotAdd) -> None:
    """That a step gives the same number for c = −0 and c = +0: neighbours have one sign.  Not of gps, lowered."""
    one, fmt = one_step(spec), spec.c_format
    x = symbolic_inputs(one)
    zeros_of_c = (z3.BitVecVal(code, fmt.storage_bits) for code in (fmt.sign_mask, 0))
    minus, plus = (smt.dot_add(one, x.a, x.b, c, x.scale_a, x.scale_b).steps[0] for c in zeros_of_c)
    parts = [
        (minus.e_max, plus.e_max, "e_max is the same"),
        *((u, v, "the same is special") for u, v in zip(minus.special, plus.special, strict=True)),
        (minus.total, plus.total, "the sum is the same"),
    ]
    terms = minus.groups if isinstance(spec.parameters, Gdfs) else minus.products
    inside = [part for term in terms for part in term]
    same = [
        proving.claim(f"zeros of c {n}", f"for either zero of c, {text}", u == v, (), inside if n else ())
        for n, (u, v, text) in enumerate(parts)
    ]
    numbers = order(minus.result) == order(plus.result)
    nan = z3.And([is_nan(step.result, spec.d_format) for step in (minus, plus)])
    letters = [part for u, v, _ in parts for part in (u, v) if not z3.is_true(u) and not z3.is_false(u)]
    proving.claim(
        "zeros of c", "for either zero of c, d is the same number", z3.Or(numbers, nan), same, letters
    )


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
    _specials_of(proving, pair.sign, pair.finite, x.step, y.step, spec.d_format)
    prove_total(proving, x, below0)
    prove_total(proving, y, below1)
    prove_highest(proving, x, below0, some0)
    prove_highest(proving, y, below1, some1)
    for rise in range(furthest + 1):
        _sums(proving, pair, rise, covered(spec), [step, maxima], below0, below1[-1])
        _rounding(proving, pair, rise, covered(spec), low)


def _sums(
    proving: Proving,
    pair: Neighbours,
    rise: int,
    gains: int,
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
            z3.And(lost >= 0, lost <= rest, lost <= fit(u.aligned, wide)),
            [risen, under],
            [u.term.exponent, u.term.significand, E0, E1],
        )
    c0, c1 = (fit(side.step.aligned_c, wide) for side in (x, y))
    least = x.exponents.constant(x.low[-1])
    proving.claim(
        f"c on two grids, {rise}",
        f"{grids}, the larger c is larger by at least what {min(n, gains)} products can lose",
        z3.And(
            (c1 << rise) - c0 >= min(n, gains) * rest,
            z3.Or(rise == 0, least == E1, c0 >= (2 << x.F) - gains),
        ),
        [*given, risen, below[-1], c_below],
        [x.step.addend.exponent, y.step.addend.exponent, x.step.c.significand, y.step.c.significand, E0, E1],
    )
    _differences(proving, n, gains, rise, wide)


def _differences(proving: Proving, n: int, gains: int, rise: int, wide: int) -> None:
    """Arithmetic: if each of n terms loses at most 2^rise - 1, and c gains as much as all, the sum does not fall."""
    rest = (1 << rise) - 1
    R, S, u, v, lost, gained, D = z3.BitVecs("R S u v lost gained D", wide)
    largest, most = (1 << (wide - rise - 3)) // (n + 1), z3.BitVecVal(1 << (wide - 2), wide)
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

    def lost_by(k: int, D: z3.BitVecRef, R: z3.BitVecRef) -> z3.BoolRef:
        """k terms lose no more than one unit each; and only if all lose that way, more than k − 1 of them could."""
        bound, inner = k * rest, (k - 1) * rest
        return z3.And(bound >= D, -bound <= D, z3.Implies(inner < D, k <= R), z3.Implies(-inner > D, -k >= R))

    some = z3.And(lost >= 0, lost <= rest, lost <= u, u <= largest)
    for k in range(n):
        small = z3.And(largest * (k + 1) >= R, -largest * (k + 1) <= R)
        proving.claim(
            f"difference {k}, {rise}",
            "losses of terms add up to no more than one unit each, and to that only if all are of one sign",
            z3.Implies(
                z3.And(lost_by(k, D, R), some, small),
                lost_by(k + 1, D + negate_if(sign, lost), R + negate_if(sign, u)),
            ),
        )
    after = D - negate_if(sign, gained)
    proving.claim(
        f"difference with c, {rise}",
        "c gains no less than all lose, or all but one if each of them loses, and then only less than a unit is lost",
        z3.Implies(
            z3.And(lost_by(n, D, R), gained >= min(n, gains) * rest, gained <= most),
            z3.If(
                sign == 0,
                z3.Or(after <= 0, z3.And(n > gains, after <= rest, n <= R)),
                z3.Or(after >= 0, z3.And(n > gains, after >= -rest, -n >= R)),
            ),
        ),
    )


def fit_signed(x: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    return z3.SignExt(bits - x.size(), x)


def _specials_of(
    proving: Proving, sign: z3.BitVecRef, finite: z3.BoolRef, x: Any, y: Any, fmt: Format
) -> None:
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
    for side in (x, y):
        prove_special_codes(proving, side, fmt)


def _rounding(proving: Proving, pair: Neighbours, rise: int, gains: int, low: z3.BitVecRef) -> None:
    """Sums in order are rounded in order, e_max being `rise` higher for the second; and so are those that are less
    than one coarser unit out of order, the first one above all products' units and c (`_differences`)."""
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
    ]
    n, rest = len(x.summands) - 1, (1 << rise) - 1
    if n > gains and rise:
        size = z3.If(low == E1, z3.BitVecVal(n, wide), z3.BitVecVal(n + (2 << x.F) - gains, wide))
        almost = z3.And(a - b <= rest, a >= size), z3.And(b - a <= rest, -a >= size)
        premises.append(z3.If(pair.sign == 0, z3.Or(a <= b, almost[0]), z3.Or(a >= b, almost[1])))
    else:
        premises.append(z3.If(pair.sign == 0, a <= b, a >= b))
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
    _specials_of(proving, sign, finite, x, y, spec.d_format)


# ---- witnesses ------------------------------------------------------------------------------------------------------


def crossing_addend(instruction: Instruction) -> Iterator[tuple[Codes, Codes, int]]:
    """(with c, with the next c, number of products): c = (2 - ulp)·2^e and 2^(e+1), and products of an odd number of
    units 2^(e - F), each of which loses one when e_max rises with c; with fewest products first."""
    spec, p = instruction.spec, instruction.parameters
    if not isinstance(p, Fda):  # no such input is known of gdfs
        return
    fmt = spec.c_format
    for e in sorted(range(max(fmt.min_exponent, -40), min(fmt.max_exponent, 60)), key=lambda e: abs(e - p.F)):
        c = normal_code(Fraction(2) ** (e + 1), fmt)
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


#: what no obligation states, of a monotonicity in c that is not by one rounding of an exact sum (sfma, efda)
IN_WORDS = (
    "that the obligations, of neighbouring codes of c and one or more for each stage, give the statement"
)


# ---- the properties ---------------------------------------------------------------------------------------------


def settle_addend(instruction: Instruction, asker: Asker) -> Answer:
    spec, p = instruction.spec, instruction.parameters
    question = f"{instruction.label}: c ≤ c' ⇒ d ≤ d'"
    proving = Composing(asker)
    if isinstance(p, (Sfma, Efda)):
        return by_rounding(question, proving, spec)
    if isinstance(p, (Gps, Lowered, Fdrda)):
        try:
            if isinstance(p, Fdrda):
                prove_zeros(proving, spec)
                prove_chain(proving, spec)
                prove_addend_round_down(proving, spec)
            else:  # c is added last, by additions of their own
                if isinstance(p, Gps):
                    prove_tree(proving, spec)
                    prove_groups_chain(proving, spec)
                else:
                    prove_lowered(proving, spec)
                    prove_chain(proving, spec)
                prove_addition(proving, spec.parameters.last_rounding)
                prove_grid(proving, spec.parameters.last_rounding)
                prove_special_addition(proving, spec.parameters.last_rounding)
        except NotProvedError as error:
            return Unknown(question, str(error), proving.obligations, asker.elapsed)
        return Holds(question, proving.unconcluded(), asker.elapsed, words=(IN_WORDS,))
    assert isinstance(p, (Fda, Gdfs))
    terms = p.L if isinstance(p, Fda) else p.L // p.G
    allowed = products_allowed(spec)
    try:
        if terms <= allowed:
            prove_zeros(proving, spec)
            prove_chain(proving, spec)
            prove_addend_fused(proving, spec)
            return Holds(question, proving.unconcluded(), asker.elapsed, words=(IN_WORDS,))
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


ADDEND = Property("monotonicity-in-c", "c ≤ c' ⇒ d ≤ d', all else the same", settle_addend)

main = ADDEND.main

if __name__ == "__main__":
    sys.exit(main())
