"""Claims about dpa_e9s12 that are no properties of other algorithms: halves, one product, sums of numbers.

Each function proves claims and returns under which condition on the inputs they hold; `conclude_all` of `Composing`
concludes.  Each raises NotProvedError.
"""

from __future__ import annotations

import z3

from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs import exact
from mmaformal.encodings.dpa_e9s12.proofs.exact import BITS, HALF, OneProduct, Summation, is_placed
from mmaformal.encodings.smt.blocks import decode
from mmaformal.facts.exact_terms import prove_decoded
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.fixed_sums import FIXED_POINT
from mmaformal.proof.sticky_sums import magnitude_of
from mmaformal.spec import DotAdd


def prove_factor_halves(proving: Composing, spec: DotAdd, subnormal: int = 1) -> z3.BoolRef:
    """Prove that a factor is the sum of its E9S12 numbers, its zeros told, and special where its code is; of all
    codes."""
    fmt = spec.a_format
    code = z3.BitVec("code", fmt.storage_bits)
    x = decode(code, fmt)
    prove_decoded(proving, code, x, fmt)
    exact.prove_halves(proving, x, smt_dpa.unpack(x, fmt, subnormal), fmt)
    return z3.BoolVal(True)


def _prove_floors(proving: Composing, spec: DotAdd) -> Summation:
    """Prove that each product is rounded down to a multiple of 2^(E − F), and those of the largest exponent are
    exact."""
    x = Summation.of(proving, spec)
    x.prove_terms()
    for k, below in enumerate(x.prove_largest()):
        _prove_floor(x, k, below)
    x.prove_rounded()
    proving.rests_on(FIXED_POINT)
    return x


def _prove_floor(x: Summation, k: int, below: z3.BoolRef) -> None:
    """Prove that the k-th product is placed as its floor, and exactly where its exponent is the largest."""
    product, placed, e_max = x.step.products[k], x.step.placed[k], x.step.e_max
    bits = BITS + x.F.bit_length() + 3
    unit, last = fit(e_max, bits) - x.F, fit(product.exponent, bits) - smt_dpa.PLACES
    negative, m = magnitude_of(placed)
    significand, more = product.significand, fit(m, m.size() + 1)
    down = z3.And(at_least(significand, last, m, unit), z3.Not(at_least(significand, last, more + 1, unit)))
    up = z3.And(
        m != 0, at_least(m, unit, significand, last), z3.Not(at_least(m - 1, unit, significand, last))
    )
    minus = z3.And(product.sign == 1, significand != 0)
    claim = z3.And(z3.If(minus, up, down), z3.Or(m == 0, negative == minus))
    text = "a placed product is the exact one, rounded down to the last place"
    x.proving.claim("floor", text, claim, [below])
    claim = z3.Implies(product.exponent == e_max, is_placed(product, placed, e_max, x.F))
    text = "a product of the largest exponent is placed without a loss"
    x.proving.claim("floor at the top", text, claim)


def prove_single(proving: Composing, spec: DotAdd, active: int) -> z3.BoolRef:
    """Prove of fp16 and bf16 that where all products but the `active` one are zero, a step is U·V + c, rounded once.

    Returns that they are, and all are numbers.
    """
    x = _prove_floors(proving, spec)
    one = OneProduct(x, active)
    idle = [claim for k in one.others for claim in one.prove_idle(k)]
    flags, products = [one.idle(k) for k in one.others], x.step.products
    (mine,) = one.products(active)
    at_most = [z3.ULE(product.exponent, x.step.e_max) for product in products]
    claim = z3.Implies(z3.And(flags), mine.exponent == x.step.e_max)
    text = "the largest exponent is that of the one product, which is placed without a loss"
    proving.claim("one exponent", text, claim, [x.some, *at_most, *idle])
    return z3.And(x.numbers, *flags)


#: The largest difference of exponents of fp32 numbers whose sum loses no bit.
def spread(spec: DotAdd) -> int:
    """Return how far exponents of numbers, as products with 1, may be apart in the accumulator of `spec`: F − 23."""
    p = spec.parameters
    return smt_dpa.kept(int(str(p["accumulator_bits"])), 4 * p.step_products) - fp32.fraction_bits


def prove_addition_of_products(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that numbers, as products with 1, and c are added exactly and rounded once, where the exponents of those
    that are not zero differ by no more than `spread`.

    Returns that, and that all are numbers.
    """
    x = Summation.of(proving, spec)
    x.prove_terms()
    at_most, most = x.prove_largest(), spread(spec)
    fields = [y.field for y in x.step.a]
    ones = z3.And([code == fp32.code("1") for code in x.inputs.b])
    far = exact.are_near(x.step.a, most)
    terms = [_prove_term(x, k) for k in range(len(fields))]
    bound = []
    each = [term for four in terms for term in four]
    products = x.step.products
    for k, product in enumerate(products):
        near = z3.Or(product.significand == 0, z3.ULE(x.step.e_max - product.exponent, most + 12))
        text = "no term is farther below the largest than its last place may be"
        claim = z3.Implies(ones, near)
        bound.append(proving.claim("near", text, claim, [x.some, *at_most, *each, *far]))
        low = _prove_low(x, k)
        placed = is_placed(product, x.step.placed[k], x.step.e_max, x.F)
        multiple = z3.Extract(smt_dpa.FRACTION - 1, 0, product.significand) == 0
        text = "so it is placed without a loss"
        whole = proving.claim("term placed", text, z3.Implies(z3.And(near, multiple), placed), [at_most[k]])
        claim = z3.Implies(ones, placed)
        proving.claim("term exact", text, claim, [bound[-1], low, whole])
    x.prove_rounded()
    proving.rests_on(FIXED_POINT)
    return z3.And(x.numbers, ones, *far)


def _prove_term(x: Summation, k: int) -> list[z3.BoolRef]:
    """Prove of the products of the k-th number's halves and 1's: those with 1's upper half have the number's exponents,
    or are zero, and the others are zero; all have the exponent 0 where they are zero."""
    number, claims = x.step.a[k], []
    one = x.inputs.b[k] == fp32.code("1")
    M = fp32.fraction_bits
    normal = z3.Or(z3.UGE(number.significand, 1 << M), number.field == 1)
    for i, product in enumerate(x.step.products[4 * k : 4 * k + 4]):
        zero = z3.And(product.exponent == 0, product.significand == 0)
        place = fit(number.field, BITS) + smt_dpa.BIAS + (HALF if i == 0 else 0)
        own = z3.And(product.exponent == place, product.significand != 0, z3.Not(number.significand == 0))
        claim = z3.Or(zero, own) if i in (0, 2) else zero
        text = "a half times 1 is itself, and times 1's lower half is zero"
        ones = z3.And([code == fp32.code("1") for code in x.inputs.b])
        inner = x.proving.claim(
            "half of a term", text, z3.Implies(one, claim), [normal, z3.UGE(number.field, 1)]
        )
        whole = z3.Implies(ones, claim)
        claims.append(x.proving.claim("term", text, whole, [inner]))
    return claims


def _prove_low(x: Summation, k: int) -> z3.BoolRef:
    """Prove that a number's half times 1 is a multiple of 2^11."""
    product = x.step.products[k]
    ones = z3.And([code == fp32.code("1") for code in x.inputs.b])
    multiple = z3.Extract(smt_dpa.FRACTION - 1, 0, product.significand) == 0
    text = "a half times 1 has zeros below"
    return x.proving.claim("multiple", text, z3.Implies(ones, multiple))
