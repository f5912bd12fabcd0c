"""Each property as one formula about a whole instruction of fda, satisfiable where the property fails.

What solvers are asked if nothing is cut: of one step, but for order across blocks.  The exact sum is a fixed-point
number of all places that products and c have, some 300 bits for fp16 and fp32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.out_of_order import order
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import decode, multiply, negate_if, product_range, resize
from mmaformal.facts import reaching
from mmaformal.facts.fused_steps import Fused, fused_step
from mmaformal.instruction import Instruction
from mmaformal.proof.definitions import at_least, code_parts, is_rounded
from mmaformal.proof.fused import loses_no_bit
from mmaformal.proof.sticky_sums import magnitude_of
from mmaformal.queries import (
    accumulator_width,
    commutativity,
    order_independence,
    output_range,
    power_of_two_scaling,
    sign_symmetry,
    zero_padding,
)
from mmaformal.rounding import Conversion, Rounding

# ---- structural --------------------------------------------------------------------------------------------------


def within(i: Instruction) -> z3.BoolRef:
    """Only the exchange of the first two products, the easiest part of what is proved stage by stage."""
    chosen = order_independence.within_blocks(i.spec)[0]
    return order_independence.relation_reordered(i.spec, chosen).broken(symbolic_inputs(i.spec))


def across(i: Instruction) -> z3.BoolRef:
    """The exchange of a product of one block with one of the next."""
    (chosen,) = order_independence.across_blocks(i.spec)
    return order_independence.relation_reordered(i.spec, chosen).broken(symbolic_inputs(i.spec))


def passes_c_on(i: Instruction) -> z3.BoolRef:
    c = z3.BitVec("c", i.c_format.storage_bits)
    none = [[z3.BitVecVal(0, fmt.storage_bits)] * i.k for fmt in (i.a_format, i.b_format)]
    number = z3.And(z3.Not(is_nan(c, i.c_format)), c != i.c_format.sign_mask)
    return z3.And(number, smt.dot_add(i.spec, *none, c).result != c)


def beyond(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    (step,) = smt.dot_add(i.spec, x.a, x.b, x.c).steps
    bound = sum(accumulator_width.argue_width(i.spec)[1][0].bounds)
    return z3.Or(step.total > bound, step.total < -bound)


def minus_zero(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    return smt.dot_add(i.spec, x.a, x.b, x.c).result == i.d_format.sign_mask


def nan(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    finite = output_range.all_finite(i.spec)(x)
    return z3.And(finite, is_nan(smt.dot_add(i.spec, x.a, x.b, x.c).result, i.d_format))


# ---- numerical ---------------------------------------------------------------------------------------------------


def exact_sum(i: Instruction, x: Inputs) -> tuple[z3.BoolRef, z3.BitVecRef, int]:
    """(whether no input is special, c + Σ a·b in two's complement, the exponent of its last place)."""
    a, b, c = i.a_format, i.b_format, i.c_format
    own = product_range(a, b)
    places = a.fraction_bits + b.fraction_bits
    unit = min(own.low - places, c.min_exponent - c.fraction_bits)
    bits = max(own.high + 2, c.max_exponent + 1) - unit + i.k.bit_length() + 2
    operands = [(decode(u, a), decode(v, b)) for u, v in zip(x.a, x.b, strict=True)]
    addend = decode(x.c, c)
    total = z3.BitVecVal(0, bits)
    for u, v in operands:
        p = multiply(u, v, a.bias + b.bias, own, e_zero=None)
        shift = resize(p.exponent, bits) + (own.low - places - unit)
        total += negate_if(p.sign, resize(p.significand, bits) << shift)
    shift = resize(addend.field, bits) + (c.min_exponent - 1 - c.fraction_bits - unit)
    total += negate_if(addend.sign, resize(addend.significand, bits) << shift)
    every = [*(side for pair in operands for side in pair), addend]
    return z3.Not(z3.Or([flag for y in every for flag in (y.infinite, y.nan)])), total, unit


def rounding(i: Instruction, faithful: bool = False) -> z3.BoolRef:
    """Whether d is not ρ of the exact sum; or not one of its two neighbours in the grid."""
    x, rho = symbolic_inputs(i.spec), i.spec.parameters.last_rounding
    finite, total, unit = exact_sum(i, x)
    d = smt.dot_add(i.spec, x.a, x.b, x.c).result
    return z3.And(finite, z3.Not(_rounds(total, unit, d, rho, faithful)))


def _rounds(total: z3.BitVecRef, unit: int, d: z3.BitVecRef, rho: Conversion, faithful: bool) -> z3.BoolRef:
    negative, m = magnitude_of(total)
    t = z3.BitVecVal(unit, m.size().bit_length() + rho.format.exponent_bits + 4)
    top = d.size() - 1
    zero, sign = z3.Extract(top - 1, 0, d) == 0, z3.Extract(top, top, d) == 1
    right = is_rounded(m, t, d, rho, negative)
    if faithful:
        assert rho.rounding is Rounding.RZ
        below = d - (1 << (rho.format.fraction_bits - rho.fraction_bits))  # the next number toward zero
        up = z3.And(
            z3.Not(zero), is_rounded(m, t, below, rho, negative), z3.Not(_is_number(m, t, below, rho))
        )
        right = z3.Or(right, up)
    return z3.And(right, z3.Or(zero, m == 0, sign == negative))


def _is_number(m: z3.BitVecRef, t: z3.BitVecRef, code: z3.BitVecRef, rho: Conversion) -> z3.BoolRef:
    """Whether m · 2^t is what the code stands for, if that is not above it."""
    index = z3.Extract(code.size() - 2, rho.format.fraction_bits - rho.fraction_bits, code)
    significand, q = code_parts(index, t.size(), rho)
    return at_least(significand, q, m, t)


def _step(i: Instruction) -> tuple[Inputs, Fused]:
    x = symbolic_inputs(i.spec)
    return x, fused_step(i.spec, x)


def inexact(i: Instruction) -> z3.BoolRef:
    """Whether no term has a bit below the unit, and d is not ρ of the exact sum."""
    x, fused = _step(i)
    finite, total, unit = exact_sum(i, x)
    kept = z3.And([loses_no_bit(s, fused.step.e_max, fused.F) for s in fused.summands])
    return z3.And(finite, kept, z3.Not(_rounds(total, unit, fused.step.result, fused.rho, faithful=False)))


def beyond_bound(i: Instruction) -> z3.BoolRef:
    """Whether |S − exact| > n · 2^(e_max − F)."""
    x, fused = _step(i)
    finite, total, unit = exact_sum(i, x)
    n = reaching.least_n(i)
    below = n.denominator.bit_length() - 1  # of the unit: n · 2^-(below) is an integer
    e_low = fused.least - fused.F - below
    low, bits = min(unit, e_low), fused.exponents.high - min(unit, e_low) + fused.step.total.size() + 8
    e = resize(fused.step.e_max, bits) + (fused.exponents.low - fused.F - low)
    wide_total = z3.SignExt(bits - total.size(), total) if bits > total.size() else total
    exact = wide_total << (unit - low)
    aligned = z3.SignExt(bits - fused.step.total.size(), fused.step.total) << e
    allowed = z3.BitVecVal(n.numerator, bits) << (e - below)
    return z3.And(finite, z3.Or(aligned - exact > allowed, exact - aligned > allowed))


def loses_a_bit(i: Instruction) -> z3.BoolRef:
    x, fused = _step(i)
    finite = exact_sum(i, x)[0]
    return z3.And(
        finite, z3.Not(z3.And([loses_no_bit(s, fused.step.e_max, fused.F) for s in fused.summands]))
    )


def falls_with_c(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    larger = z3.BitVec("larger_c", x.c.size())
    d, e = (smt.dot_add(i.spec, x.a, x.b, c).result for c in (x.c, larger))
    numbers = [z3.Not(is_nan(code, fmt)) for code, fmt in ((x.c, i.c_format), (larger, i.c_format))]
    numbers += [z3.Not(is_nan(code, i.d_format)) for code in (d, e)]
    return z3.And(*numbers, order(x.c) <= order(larger), order(d) > order(e))


def falls_with_a_product(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    a, b = z3.BitVec("other_a", x.a[0].size()), z3.BitVec("other_b", x.b[0].size())
    y = replace(x, a=(a, *x.a[1:]), b=(b, *x.b[1:]))
    d, e = (smt.dot_add(i.spec, z.a, z.b, z.c).result for z in (x, y))
    single = i.replace(k=1, L=1)
    none = z3.BitVecVal(0, x.c.size())
    (finite, p, _), (also, q, _) = (exact_sum(single, Inputs(z.a[:1], z.b[:1], none)) for z in (x, y))
    numbers = [finite, also, *(z3.Not(is_nan(code, i.d_format)) for code in (d, e))]
    return z3.And(*numbers, p <= q, order(d) > order(e))


#: name → the formula that is satisfiable if the property fails
FORMULAS: dict[str, Callable[[Instruction], z3.BoolRef]] = {
    "order-independence": within,
    "order-independence-across-blocks": across,
    "commutativity": lambda i: commutativity.relation_exchanged(i.spec).broken(symbolic_inputs(i.spec)),
    "sign-symmetry": lambda i: sign_symmetry.relation_negated(i.spec).broken(symbolic_inputs(i.spec)),
    "zero-padding": lambda i: zero_padding.relation_padded(zero_padding.padding(i.spec)).broken(
        symbolic_inputs(i.spec)
    ),
    "power-of-two-scaling": lambda i: power_of_two_scaling.relation_doubled(i.spec).broken(
        symbolic_inputs(i.spec)
    ),
    "no-nan-from-finite": nan,
    "never-minus-zero": minus_zero,
    "every-number": passes_c_on,
    "accumulator-width": beyond,
    "monotonicity-in-c": falls_with_c,
    "monotonicity-in-a-product": falls_with_a_product,
    "exactness": inexact,
    "error-bound": beyond_bound,
    "lossless-width": loses_a_bit,
    "correct-rounding": rounding,
    "faithful-rounding": lambda i: rounding(i, faithful=True),
    "correct-rounding-of-each-step": rounding,
}
