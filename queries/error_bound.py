"""How far d is from the exact sum: the tightest bound of the form n · 2^(e_max − F) + rounding.

    python -m mmaformal.queries.error_bound hopper HMMA.16816.F32

One step of a fused algorithm rounds S = Σ (aligned terms) once, d = ρ(S), and

    |S − (c + Σ a·b)| ≤ n · 2^(e_max − F),

e_max the step's largest exponent.  n is a fraction: the most that alignment can cut off all terms together, counted
for the significands and exponents that the formats have.  It is proved for all inputs that are numbers, and reached:
the witness is an input whose |S − exact| *is* n · 2^(e_max − F), so no smaller n holds.  With ρ = RZ, d is then less
than one last place of d from S; with RNE, at most half of one (`exactness` proves that d = ρ(S) by definition).

A term loses at most λ < 1 units, and one that has the exponent e_max at most λ₀ (0 if its last place is not below the
unit).  Either c has the largest exponent, and all L products lose: n = L·λ + λ₀; or a product has it, and the others
and c lose: n = (L − 1)·λ + λ₀ + λ_c.  Products of one scale block lie close to each other, and lose less then.

In a chain each step's result enters the next exactly, so the errors of the steps, each with its own e_max, add up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import z3

from mmaformal.algorithms import IEEE_FP32, DotAdd, Efda, Fda, Gdfs, Gps, Sfma
from mmaformal.encodings import executable
from mmaformal.formats import Format, e2m1
from mmaformal.instruction import Instruction
from mmaformal.queries.definitions import conversion_of, fit
from mmaformal.queries.exact_steps import prove_addition, prove_products, prove_step
from mmaformal.queries.fused import (
    Loss,
    Summand,
    largest_loss,
    prove_loss,
    prove_losses_add_up,
)
from mmaformal.queries.fused_steps import (
    E2M1_PRODUCT,
    Fused,
    fused_step,
    one_step,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_total,
)
from mmaformal.queries.inputs import Codes
from mmaformal.queries.numerical import (
    NotProvedError,
    Proving,
    Shown,
    exact,
    inputs_text,
    run_both,
    with_products,
    zeros,
)
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.witness import WitnessError

NOTHING = Loss(Fraction(0), 0, 0)


@dataclass(frozen=True)
class Case:
    """One way of who has the largest exponent, and what is lost then."""

    largest: str  #: `c` or `product`
    neighbours: int  #: products that lose `near`: those of the same scale block
    near: Loss
    others: int  #: products that lose `far`
    far: Loss
    addend: Loss  #: of c
    at_top: Loss  #: of the term that has the largest exponent

    @property
    def losses(self) -> list[Fraction]:
        each = [self.near] * self.neighbours + [self.far] * self.others + [self.addend, self.at_top]
        return [loss.units for loss in each if loss.units]

    @property
    def n(self) -> Fraction:
        return sum(self.losses, Fraction(0))


# ---- fda and gdfs: what can be lost --------------------------------------------------------------------------------


def factor_bits(x: Summand) -> tuple[int, ...]:
    return tuple(factor.size() for factor in x.factors)


def loss_of(x: Summand, places: int, group_reach: int) -> Loss:
    """The most that a term can lose whose last place is at most `places` below the unit."""
    if x.name == "group":  # its first factor is a sum in two's complement, at most `group_reach`
        return largest_loss((0, *factor_bits(x)[1:]), places, limit=group_reach)
    return largest_loss(factor_bits(x), places)


@dataclass(frozen=True)
class Ranges:
    """Exponents that finite terms have; of products, `near` counts from their scales' exponents."""

    near: tuple[int, int]
    far: tuple[int, int]
    c: tuple[int, int]


def ranges_of(spec: DotAdd, x: Fused) -> Ranges:
    far, c = (x.low[0], x.high[0]), (x.low[-1], x.high[-1])
    if spec.scale_format is None:
        return Ranges(far, far, c)
    scale = spec.scale_format
    return Ranges((far[0] - 2 * scale.min_exponent, far[1] - 2 * scale.max_exponent), far, c)


def cases_of(spec: DotAdd, x: Fused) -> tuple[Case, Case]:
    """What is lost where c has the largest exponent, and where a product has it."""
    p, r, group = spec.parameters, ranges_of(spec, x), group_reach(spec)
    assert isinstance(p, (Fda, Gdfs))
    product, c = x.summands[0], x.summands[-1]
    f, M, count = product.fraction_bits, c.fraction_bits, len(x.summands) - 1

    def product_loss(top: int, low: int) -> Loss:
        return loss_of(product, (top - x.F) - (low - f), group)

    same = count_in_block(spec) - 1
    under_c = product_loss(r.c[1], r.far[0])
    case_c = Case("c", 0, NOTHING, count, under_c, NOTHING, loss_of(c, M - x.F, group))
    near, far = product_loss(r.near[1], r.near[0]), product_loss(r.far[1], r.far[0])
    lost_c = loss_of(c, (r.far[1] - x.F) - (r.c[0] - M), group)
    at_top = loss_of(product, f - x.F, group)
    return case_c, Case("product", same, near, count - 1 - same, far, lost_c, at_top)


def group_reach(spec: DotAdd) -> int:
    """The largest sum of a group's products, in units of its last place; 0 where there are no groups."""
    return spec.parameters.G * E2M1_PRODUCT if isinstance(spec.parameters, Gdfs) else 0


def count_in_block(spec: DotAdd) -> int:
    """How many terms of a step share their scales; all of them if there are none."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    each = p.G if isinstance(p, Gdfs) else 1
    return p.L // each if spec.scale_format is None else min(p.L, spec.scale_block) // each


# ---- fda and gdfs: proof -------------------------------------------------------------------------------------------


def prove_fused(proving: Proving, spec: DotAdd, x: Fused) -> None:
    """That no more is lost than `cases_of` says, the sum is exact, and d is ρ of it."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    e_max = x.step.e_max
    at_most, some = prove_e_max(proving, x)
    prove_total(proving, x, at_most)
    prove_rounding(proving, x, prove_highest(proving, x, at_most, some))

    r, with_c, with_product = ranges_of(spec, x), *cases_of(spec, x)
    bits = max(x.exponents.bits + 2, *(abs(e).bit_length() + 3 for e in (x.exponents.low, x.exponents.high)))
    top = fit(e_max, bits) + x.exponents.low
    *products, c = x.summands
    group = [z3.And(s.factors[0] <= group_reach(spec), s.factors[0] >= -group_reach(spec)) for s in products]
    for k, s in enumerate(products):
        e, zero = fit(s.term.exponent, bits) + x.exponents.low, z3.Or([f == 0 for f in s.factors])
        scales = scale_exponents(spec, x, k, bits)
        given = [at_most[k], *(group[k : k + 1] if isinstance(p, Gdfs) else [])]
        low = _claim_low(proving, s, zero, e >= r.far[0])
        near_low = _claim_low(proving, s, zero, e >= scales + r.near[0])
        high = e <= scales + r.near[1]
        high = z3.Or(high, e == p.e_zero) if p.e_zero is not None else high
        text = "a product's exponent is at most that of the largest numbers, or e_zero"
        proving.claim(f"{s.name} high", text, z3.Implies(_finite(x, k), high))
        places = [
            ("c has the largest exponent", with_c.far, [low, top <= max(r.c[1], p.e_zero or r.c[1])]),
            ("a product of its block has it", with_product.near, [near_low, top <= scales + r.near[1]]),
            ("another product has it", with_product.far, [low, top <= r.far[1]]),
        ]
        cut = [scales] if not z3.is_bv_value(scales) else []
        for where, loss, premises in places:
            prove_loss(proving, s, e_max, x.F, loss.units, [*given, *premises], where, cut)
        prove_loss(
            proving,
            s,
            e_max,
            x.F,
            with_product.at_top.units,
            [*given, s.term.exponent == e_max],
            "it has it itself",
        )
    e, zero = fit(c.term.exponent, bits) + x.exponents.low, c.term.significand == 0
    low = _claim_low(proving, c, zero, e >= r.c[0])
    finite = z3.Not(z3.Or(x.step.c.infinite, x.step.c.nan))
    proving.claim(
        "c high", "c's exponent is at most that of the largest number", z3.Implies(finite, e <= r.c[1])
    )
    prove_loss(
        proving,
        c,
        e_max,
        x.F,
        with_product.addend.units,
        [at_most[-1], low, top <= r.far[1]],
        "a product has it",
    )
    prove_loss(
        proving,
        c,
        e_max,
        x.F,
        with_c.at_top.units,
        [at_most[-1], c.term.exponent == e_max],
        "it has it itself",
    )
    if p.e_zero is not None:
        text = (
            "c is zero if e_zero is the largest exponent, so then only products lose, and fewer than under c"
        )
        assert p.e_zero <= r.c[1]
        claim = z3.Implies(top == p.e_zero, zero)
        proving.claim("e_zero", text, claim, [at_most[-1], low], [c.term.exponent, e_max, c.term.significand])
    for case in (with_c, with_product):
        if case.losses:
            prove_losses_add_up(proving, case.losses)


def _claim_low(proving: Proving, x: Summand, zero: z3.BoolRef, low: z3.BoolRef) -> z3.BoolRef:
    text = "a term that is not zero has an exponent that numbers of its format have"
    return proving.claim(f"{x.name} low", text, z3.Or(zero, low))


def _finite(x: Fused, k: int) -> z3.BoolRef:
    """Whether no input of the k-th product (or group) is special."""
    step = x.step
    scales = [side[k] for side in (step.scale_a, step.scale_b) if side]
    operands = scales if x.summands[k].name == "group" else [step.a[k], step.b[k], *scales]
    return z3.Not(z3.Or([flag for operand in operands for flag in (operand.infinite, operand.nan)]))


def scale_exponents(spec: DotAdd, x: Fused, k: int, bits: int) -> z3.BitVecRef:
    """The sum of the exponents of the k-th term's scales, 0 without them."""
    if spec.scale_format is None:
        return z3.BitVecVal(0, bits)
    fields = fit(x.step.scale_a[k].field, bits) + fit(x.step.scale_b[k].field, bits)
    return fields - 2 * spec.scale_format.bias


# ---- fda and gdfs: an input that reaches the bound -------------------------------------------------------------------


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
    found = np.argwhere(np.outer(x, y) & ((1 << places) - 1) == part)
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


def reaching(spec: DotAdd, x: Fused, case: Case) -> Codes | None:
    """An input of one step that loses `case.n` units."""
    p, M = spec.parameters, spec.c_format.fraction_bits
    assert isinstance(p, (Fda, Gdfs))
    r, f = ranges_of(spec, x), x.summands[0].fraction_bits
    high = r.c[1] if case.largest == "c" else r.far[1]
    low = r.c[0] if case.largest == "c" else r.far[0]
    for e_max in sorted(range(low, high + 1), key=abs):
        codes = _reaching_at(spec, x, case, e_max, f, M)
        if codes is not None:
            return codes
    return None


def _reaching_at(spec: DotAdd, x: Fused, case: Case, e_max: int, f: int, M: int) -> Codes | None:
    codes = zeros(spec)
    if case.largest == "c":
        c = encode_number(1 << M | case.at_top.significand, e_max, spec.c_format)
    elif case.addend.units:
        part, places = case.addend.significand, case.addend.places
        exponent = e_max - x.F - places + M
        normal = encode_number(1 << M | part, exponent, spec.c_format) if places <= M else None
        c = encode_number(part, exponent, spec.c_format) if normal is None else normal
    else:
        c = 0
    if c is None:
        return None
    codes = replace(codes, c=c)
    if isinstance(spec.parameters, Gdfs):
        return _groups(spec, x, case, e_max, f, codes)
    formats = spec.a_format, spec.b_format
    wanted = [(case.at_top, e_max)] if case.largest == "product" else []
    wanted += [(case.near, e_max - x.F - case.near.places + f)] * case.neighbours
    wanted += [(case.far, e_max - x.F - case.far.places + f)] * case.others
    shift = 0
    if spec.scale_format is not None:  # one block: scales that bring its products to both sides of 0
        shift = 2 * ((wanted[0][1] + wanted[-1][1]) // 4)
        scale = spec.scale_format
        half = shift // 2 + scale.bias
        if not 0 <= half < (1 << scale.exponent_bits) - 1:
            return None
        codes = replace(codes, scale_a=(half,) * spec.scales, scale_b=(half,) * spec.scales)
    made: dict[tuple[Loss, int], tuple[int, int] | None] = {}
    for each in dict.fromkeys(wanted):
        loss, exponent = each
        part = loss.significand % (1 << loss.places)
        pairs = pairs_losing(part, loss.places, formats) if loss.units or loss is case.at_top else []
        made[each] = product_codes(pairs, exponent - shift, formats) if pairs else (0, 0)
        if made[each] is None:
            return None
    return with_products(codes, {k: made[each] for k, each in enumerate(wanted)})  # type: ignore[misc]


def _groups(spec: DotAdd, x: Fused, case: Case, e_max: int, f: int, codes: Codes) -> Codes | None:
    """The same for gdfs: sums of groups, and the scales of each."""
    p, scale = spec.parameters, spec.scale_format
    assert isinstance(p, Gdfs)
    assert scale is not None
    m, count = scale.fraction_bits, p.L // p.G
    wanted = [(NOTHING, e_max)] if case.largest == "product" else []
    wanted += [(case.near, e_max - x.F - case.near.places + f)] * case.neighbours
    wanted += [(case.far, e_max - x.F - case.far.places + f)] * case.others
    scales_a, scales_b = list(codes.scale_a), list(codes.scale_b)
    products: dict[int, tuple[int, int]] = {}
    for g, (loss, exponent) in zip(range(count), wanted, strict=True):
        made = _group(loss, exponent, m, scale, p.G)
        if made is None:
            return None
        pairs, (alpha, beta) = made
        products |= {g * p.G + k: pair for k, pair in enumerate(pairs)}
        block = g * p.G // spec.scale_block
        scales_a[block], scales_b[block] = alpha, beta
    return with_products(replace(codes, scale_a=tuple(scales_a), scale_b=tuple(scales_b)), products)


def _group(
    loss: Loss, exponent: int, m: int, scale: Format, G: int
) -> tuple[list[tuple[int, int]], tuple[int, int]] | None:
    """(e2m1 factors, scales) of a group whose significand ends with the part that `loss` loses."""
    low, high = scale.min_exponent, scale.max_exponent
    for u, v in sorted(
        ((u, v) for u in range(1, 2 << m) for v in range(1, 2 << m)), key=lambda pair: -min(pair)
    ):
        total = loss.significand // (u * v) if loss.units else 4
        if loss.units and total * u * v != loss.significand:
            continue
        pairs = _e2m1_sum(total, G)
        if pairs is None:
            continue
        for e in sorted(range(low, high + 1), key=lambda e: abs(2 * e - exponent)):
            a, b = _scale_code(u, e, scale), _scale_code(v, exponent - e, scale)
            if a is not None and b is not None:
                return pairs, (a, b)
    return None


def _scale_code(significand: int, exponent: int, scale: Format) -> int | None:
    if scale.has_zero:
        return encode_number(significand, exponent, scale)
    field = exponent + scale.bias
    return field if 0 <= field < (1 << scale.exponent_bits) - 1 else None


@cache
def _e2m1_sums(G: int) -> list[dict[int, tuple[int, int, int]]]:
    """After each of G products: sum (in units of 1/4) → the sum before, and the codes of the last product's factors."""
    codes = {int(2 * e2m1.value(code)): code for code in range(8)}
    minus = {-x: code | e2m1.sign_mask for x, code in codes.items() if x}
    coins = {x * y: (codes[x], code) for x in codes for y, code in (codes | minus).items()}
    layers: list[dict[int, tuple[int, int, int]]] = [{0: (0, 0, 0)}]
    for _ in range(G):
        layer: dict[int, tuple[int, int, int]] = {}
        for before in layers[-1]:
            for coin, pair in coins.items():
                layer.setdefault(before + coin, (before, *pair))
        layers.append(layer)
    return layers


def _e2m1_sum(total: int, G: int) -> list[tuple[int, int]] | None:
    """Codes of G pairs of e2m1 numbers whose products add up to `total` / 4; None if there are none."""
    layers = _e2m1_sums(G)
    if total not in layers[G]:
        return None
    pairs = []
    for layer in reversed(layers[1:]):
        total, a, b = layer[total]
        pairs.append((a, b))
    return pairs


# ---- the property ----------------------------------------------------------------------------------------------------


def rounded_sum(spec: DotAdd, x: Fused, codes: Codes) -> tuple[Fraction, int]:
    """(S, e_max) of one step of the executable wing."""
    scales = (list(codes.scale_a), list(codes.scale_b)) if spec.scale_format is not None else ()
    step = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c, *scales).steps[0]
    return Fraction(step.total) * Fraction(2) ** (step.e_max - x.F), step.e_max


def settle(instruction: Instruction, asker: Asker) -> Answer:
    spec = one_step(instruction.spec)
    proving = Proving(asker)
    if not isinstance(spec.parameters, (Fda, Gdfs)):
        return _without_alignment(instruction, proving)
    x = fused_step(spec)
    case = max(cases_of(spec, x), key=lambda case: case.n)
    question = (
        f"{instruction.label}: in each step d = {conversion_of(spec)}(S) with |S − exact| ≤ n · 2^(e_max − {x.F}),"
        f" n = {case.n} ({float(case.n):.6g}), and no smaller n will do"
    )
    try:
        prove_fused(proving, spec, x)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    witness = reach(instruction)
    if witness is None:
        why = "the bound is proved, but no input was found that reaches it"
        return Unknown(question, why, proving.obligations, asker.elapsed)
    reached = inputs_text(witness.instruction.spec, witness.codes)[-1].strip()
    question += f"; reached (`error_bound.reach`), with {reached}: {witness.notes[0]}"
    return Holds(question, Proof(proving.obligations), asker.elapsed)


def least_n(instruction: Instruction) -> Fraction:
    """The n of an instruction of fda or gdfs."""
    spec = one_step(instruction.spec)
    return max(case.n for case in cases_of(spec, fused_step(spec)))


def reach(instruction: Instruction) -> Shown | None:
    """An input of one step of fda or gdfs that loses n units, in both wings; None if none was found.

    Raises WitnessError if it loses another number.
    """
    spec = one_step(instruction.spec)
    x = fused_step(spec)
    case = max(cases_of(spec, x), key=lambda case: case.n)
    codes = reaching(spec, x, case)
    if codes is None:
        return None
    block = {"scale_block": spec.scale_block} if spec.scale_block else {}
    single = instruction.replace(k=spec.k, **block)
    result, value = run_both(single, codes), exact(spec, codes)
    total, e_max = rounded_sum(spec, x, codes)
    if value is None or abs(total - value) != case.n * Fraction(2) ** (e_max - x.F):
        raise WitnessError(f"{instruction.label}: {codes} was to lose {case.n} units, and does not")
    notes = (f"S − exact = {(total - value) / Fraction(2) ** (e_max - x.F)} · 2^({e_max} − {x.F})",)
    return Shown(single, codes, result, value, notes)


def _without_alignment(instruction: Instruction, proving: Proving) -> Answer:
    """sfma, efda and gps align nothing for good, n = 0: each rounding is of an exact sum."""
    spec, asker = instruction.spec, proving.asker
    question = f"{instruction.label}: n = 0, each rounding is of an exact sum or product"
    try:
        if isinstance(spec.parameters, (Sfma, Efda)):
            prove_step(proving, spec)
        elif isinstance(spec.parameters, Gps):
            prove_products(proving, spec)
            prove_addition(proving, IEEE_FP32)
        else:
            why = f"no argument for what {instruction.algorithm} loses; exactness says when it loses nothing"
            return Unknown(
                f"{instruction.label}: |d − exact| ≤ n · 2^(e_max − F) + rounding", why, (), asker.elapsed
            )
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    return Holds(question, Proof(proving.obligations), asker.elapsed)


PROPERTY = Property(
    "error-bound",
    "in each step |d − exact| ≤ n · 2^(e_max − F) + rounding, for a number n that no smaller one can replace",
    settle,
)
main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
