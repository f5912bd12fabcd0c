"""Proof that a step of sfma, or of efda in fixed point, is its exact sum rounded once.

Both add two terms x and y, a product (or the exact sum of the products) and c, at the larger of their exponents, and
keep a number of places, the last one sticky (`blocks.sticky_sum`).  That the terms are those of the codes, with their
signs, is in `exact_terms`.  With u the last place,

1. *sticky*:    an aligned magnitude A is |x| / u, or it is odd and (A − 1)·u < |x| < (A + 1)·u;
2. *one*:       the term that has the larger exponent is exact, and even;
3. *room*:      where the other one is not, the sum S is so large, or u so small, that ρ's boundaries are even
                multiples of u;
4. *rounding*:  d is ρ(S·u) by definition; and where S is odd and has that room, ρ of all that is strictly between
                (S − 1)·u and (S + 1)·u, the exact sum among it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from mmaformal.algorithms import IEEE_FP32, Conversion, DotAdd, Efda, Sfma
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.smt import efda, gps, ieee, sfma
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    StickySum,
    Term,
    decode,
    exponent_range,
    product_range,
    quiet_nan,
)
from mmaformal.facts.exact_terms import prove_chain, prove_specials, prove_terms, step_of
from mmaformal.facts.fused_steps import one_step
from mmaformal.facts.sorted_steps import prove_sorted
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit, is_rounded, read, rounds_between
from mmaformal.proof.fused import prove_sum
from mmaformal.proof.proving import Proving
from mmaformal.proof.sticky_sums import (
    e_max_in_range,
    has_room,
    is_around,
    is_larger,
    is_odd,
    is_sharp,
    prove_parity,
    prove_rounded,
    wide_enough,
)


@dataclass(frozen=True)
class Sticky:
    """A step that rounds the sticky sum of two terms."""

    x: Term
    x_bits: int
    y: Term
    y_bits: int
    sum: StickySum
    frame: int
    exponents: ExponentRange
    rho: Conversion
    special: Any
    result: z3.BitVecRef
    invariants: tuple[z3.BoolRef, ...]  #: of the terms, proved before


def prove_step(proving: Proving, spec: DotAdd) -> None:
    """Prove that each step of a model of sfma or efda is correctly rounded.  Raises NotProvedError."""
    p, inputs = spec.parameters, symbolic_inputs(one_step(spec))
    assert isinstance(p, (Sfma, Efda))
    step = step_of(spec, inputs)
    prove_chain(proving, spec)
    prove_specials(proving, spec, inputs, step)
    prove_terms(proving, spec, inputs, step)
    if isinstance(p, Sfma):
        prove_sticky(proving, _sfma(proving, step, p.rho))
    elif isinstance(step, efda.SortedStep):
        prove_sorted(proving, spec, step)
    else:
        prove_sticky(proving, _efda(proving, spec, p, step))
    if isinstance(proving, Composing):
        operands = (step.a, step.b, step.c) if isinstance(step, sfma.Step) else (*step.a, *step.b, step.c)
        special = [flag for x in operands for flag in (x.infinite, x.nan)]
        proving.conclude_all(z3.And([z3.Not(flag) for flag in special]))


def _efda(proving: Proving, spec: DotAdd, p: Efda, step: efda.FixedStep) -> Sticky:
    """The exact sum of the products as one term, and c."""
    a, b, c = spec.a_format, spec.b_format, exponent_range(spec.c_format)
    own = product_range(a, b)
    largest = ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)
    highest = a.max_exponent + b.max_exponent - own.low
    finite = largest << highest
    small = []
    for k, product in enumerate(step.products):
        x, y = step.a[k], step.b[k]
        special = z3.Or(x.infinite, x.nan, y.infinite, y.nan)
        significand = proving.claim(
            "product's significand",
            "a product's significand is at most that of the largest factors",
            z3.ULE(product.significand, largest),
            (),
            [x.significand, y.significand],
        )
        exponent = proving.claim(
            "product's exponent",
            "a finite product's exponent is at most that of the largest",
            z3.Or(special, z3.ULE(product.exponent, highest)),
        )
        small.append(
            proving.claim(
                "placed product",
                "a finite product is at most the largest",
                z3.ULE(step.placed[k], finite),
                [significand, exponent, z3.Not(special)],
                [product.significand, product.exponent, special],
            )
        )
    dot = prove_sum(
        proving,
        step.dot,
        [(product.sign, placed) for product, placed in zip(step.products, step.placed, strict=True)],
        [finite] * p.L,
        small,
    )
    reach = p.L * finite
    bits = reach.bit_length()
    top = own.low - efda.fraction_bits(spec) + bits
    exponents = c.union(top)
    least = exponents.constant(c.low)
    term = proving.claim(
        "sum of products",
        "the sum of the products is below its exponent's place, or zero with c's least exponent",
        z3.And(
            z3.ULE(step.term.significand, reach),
            z3.If(
                step.term.significand == 0,
                step.term.exponent == least,
                step.term.exponent == exponents.constant(top),
            ),
        ),
        [dot],
        [step.dot],
    )
    M = spec.c_format.fraction_bits
    not_special = z3.Not(z3.Or(step.c.infinite, step.c.nan))
    addend = proving.claim(
        "c",
        "c's exponent is in its range, and c has its leading bit or the least exponent",
        z3.Implies(
            not_special,
            z3.And(
                z3.UGE(step.addend.exponent, least),
                z3.ULE(step.addend.exponent, exponents.constant(c.high)),
                z3.Or(z3.UGE(step.addend.significand, 1 << M), step.addend.exponent == least),
            ),
        ),
    )
    frame = bits + efda.places_below(efda.precision(spec, p))
    return Sticky(
        step.term,
        bits,
        step.addend,
        M,
        step.sum,
        frame,
        exponents,
        p.rho,
        step.special,
        step.result,
        (term, addend.arg(1)),
    )


def _sfma(proving: Proving, step: sfma.Step, rho: Conversion) -> Sticky:
    fmt = rho.format
    M, ex, c = fmt.fraction_bits, sfma.exponents_of(fmt), exponent_range(fmt)
    product, addend = step.product, step.addend
    finite = z3.Not(z3.Or([flag for x in (step.a, step.b, step.c) for flag in (x.infinite, x.nan)]))
    fields, parts = [step.a.field, step.b.field], [step.a.significand, step.b.significand]
    normal = proving.claim(
        "operands",
        "an operand has its leading bit, or the least exponent",
        z3.And([z3.Or(z3.UGE(x.significand, 1 << M), x.field == 1) for x in (step.a, step.b, step.c)]),
    )
    large = [
        proving.claim(
            f"product of {n}",
            "a product of nonzero significands is not below either of them",
            z3.Implies(
                z3.And(parts[0] != 0, parts[1] != 0), z3.UGE(product.significand, fit(part, 2 * M + 2))
            ),
            (),
            parts,
        )
        for n, part in enumerate(parts)
    ]
    zero = proving.claim(
        "product of zero",
        "a product with a zero factor is zero, and has the least exponent of c",
        z3.Implies(
            z3.Or(parts[0] == 0, parts[1] == 0),
            z3.And(product.significand == 0, product.exponent == ex.constant(fmt.min_exponent)),
        ),
        (),
        [*parts, *fields],
    )
    of_product = proving.claim(
        "exponent of a product",
        "a product that is not zero has the leading bit of one factor, or the least exponent of products",
        z3.Or(
            z3.And(product.significand == 0, product.exponent == ex.constant(fmt.min_exponent)),
            z3.UGE(product.significand, 1 << M),
            product.exponent == ex.constant(ex.low),
        ),
        [normal, *large, zero],
        [*parts, *fields, product.significand],
    )
    in_range = proving.claim(
        "exponents in range",
        "exponents are in their range",
        z3.Implies(
            finite,
            z3.And(
                z3.ULE(product.exponent, ex.constant(ex.high)),
                z3.UGE(addend.exponent, ex.constant(c.low)),
                z3.ULE(addend.exponent, ex.constant(ex.high)),
                z3.Or(z3.UGE(addend.significand, 1 << M), addend.exponent == ex.constant(c.low)),
            ),
        ),
        (),
        parts,
    )
    bounds = in_range.arg(1)
    proving.claim("finite", "where nothing is special, the operands are finite", z3.Or(finite, *step.special))
    return Sticky(
        product,
        2 * M,
        addend,
        M,
        step.sum,
        sfma.frame_bits(M + 1),
        ex,
        rho,
        step.special,
        step.result,
        (of_product, bounds),
    )


def prove_sticky(proving: Proving, s: Sticky) -> None:
    x, y, e_max, total = s.x, s.y, s.sum.e_max, s.sum.total
    wide = wide_enough(s.exponents, s.frame, s.rho)
    unit = fit(e_max, wide) + (s.exponents.low - s.frame)
    cut = [x.exponent, y.exponent, e_max]
    largest = proving.claim(
        "larger exponent",
        "e_max is the larger exponent",
        is_larger(s.sum, x, y),
        (),
        cut[:2],
    )
    kept = []
    for name, term, bits_of, A in (("product", x, s.x_bits, s.sum.x), ("c", y, s.y_bits, s.sum.y)):
        e = fit(term.exponent, wide) + (s.exponents.low - bits_of)
        sharp, odd = is_sharp(A, unit, term.significand, e), is_odd(A)
        inside = [*cut, x.significand, y.significand]
        under = z3.ULE(term.exponent, e_max)
        text = "an aligned magnitude is exact, or odd and less than one unit off"
        around = z3.And(odd, is_around(A, unit, term.significand, e))
        proving.claim(f"{name} sticky", text, z3.Or(sharp, around), [under, *s.invariants], inside)
        at_top = z3.Implies(term.exponent == e_max, z3.And(sharp, z3.Not(odd)))
        proving.claim(
            f"{name} at the top", "the term of the larger exponent is exact and even", at_top, (), inside
        )
        kept.append(sharp)
    room = has_room(total, e_max, s.exponents, s.frame, s.rho)
    proving.claim(
        "room",
        "where a term loses bits, ρ's boundaries are even multiples of the last place",
        z3.Or(z3.And(kept), room),
        [largest, *s.invariants],
        [*cut, x.significand, y.significand, x.sign, y.sign],
    )
    small = prove_parity(proving, s.sum, [x.sign, y.sign])
    in_range = proving.claim(
        "least e_max",
        "e_max is in its range, from the least exponent of the format",
        e_max_in_range(e_max, s.exponents, s.rho),
        [largest, *s.invariants],
        [*cut, x.significand, y.significand],
    )
    prove_rounded(
        proving,
        (total, e_max, s.frame),
        s.exponents,
        s.rho,
        (s.special, s.result),
        [in_range, small],
        [x.sign, y.sign],
    )


# ---- IEEE operations ---------------------------------------------------------------------------------------------


def prove_addition(proving: Proving, rho: Conversion) -> None:
    """Prove that `ieee.add` of two finite codes is their exact sum, rounded once.

    The exact sum is a multiple of the larger operand's last place and three places more, but for what of the smaller
    one lies below.
    """
    fmt = rho.format
    x, y = z3.BitVecs("x y", fmt.storage_bits)
    code = ieee.add(x, y, rho, quiet_nan(fmt)).result
    swap = z3.ULT(z3.Extract(fmt.storage_bits - 2, 0, x), z3.Extract(fmt.storage_bits - 2, 0, y))
    large, small = decode(z3.If(swap, y, x), fmt), decode(z3.If(swap, x, y), fmt)
    bits = fmt.fraction_bits + 5
    distance = fit(large.field - small.field, bits)
    high, low = (fit(v.significand, bits) << 3 for v in (large, small))
    floor = z3.LShR(low, distance)
    lost = floor << distance != low
    borrow = z3.If(lost, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    m = z3.If(large.sign == small.sign, high + floor, high - floor - borrow)
    t = fit(large.field, fmt.exponent_bits + 4) - (fmt.bias + fmt.fraction_bits + 3)
    sign = z3.Extract(fmt.storage_bits - 1, fmt.storage_bits - 1, code)
    zero = z3.Extract(fmt.storage_bits - 2, 0, code) == 0
    negative = large.sign == 1
    correct = z3.If(lost, rounds_between(m, t, code, rho, negative), is_rounded(m, t, code, rho, negative))
    finite = [z3.Not(z3.Or(v.infinite, v.nan)) for v in (large, small)]
    proving.claim(
        f"addition in {fmt}",
        f"an addition in {fmt} is the exact sum of two finite numbers, rounded once",
        z3.And(correct, z3.Or(zero, sign == large.sign)),
        finite,
    )


def prove_products(proving: Proving, spec: DotAdd) -> None:
    """Prove that a product of gps is exact, or beyond fp32: infinity, or flushed."""
    a, b = spec.a_format, spec.b_format
    x, y = z3.BitVec("x", a.storage_bits), z3.BitVec("y", b.storage_bits)
    u, v = gps.decode_flushed(x, a), gps.decode_flushed(y, b)
    code = gps.multiply(u, v, a, b)
    bits = u.significand.size() + v.significand.size()
    m = fit(u.significand, bits) * fit(v.significand, bits)
    wide = max(a.exponent_bits, b.exponent_bits, 5) + 4  # no less than fp32's exponents need
    t = fit(u.field, wide) + fit(v.field, wide) - (a.bias + b.bias + a.fraction_bits + b.fraction_bits)
    index = z3.Extract(fp32.storage_bits - 2, 0, code)
    significand, q = read(index, wide, IEEE_FP32)
    same = z3.And(at_least(m, t, significand, q), at_least(significand, q, m, t))
    one = z3.BitVecVal(1, 1)
    tiny = z3.Not(at_least(m, t, one, z3.BitVecVal(fp32.min_exponent, wide)))
    huge = at_least(m, t, one, z3.BitVecVal(fp32.max_exponent + 1, wide))
    finite = [z3.Not(z3.Or(side.infinite, side.nan)) for side in (u, v)]
    proving.claim(
        "product",
        "a product of finite numbers is exact; or infinite, above all of fp32; or 0, below its normal numbers",
        z3.If(huge, index == fp32.infinity, z3.If(tiny, index == 0, same)),
        finite,
    )
