"""What a step of sfma or efda adds up: the very products and c that the codes stand for, each of them once.

`exact_steps` proves that a step rounds its sum correctly, from its terms on.  Here is what goes before, and after:

1. *terms*:   each operand is the number of its code, each product the exact one of its factors, and c is its number;
2. *sums*:    what is added up is those terms, with their signs, and no sum wraps;
3. *special*: an infinite product or c gives that infinity or a NaN, a NaN a NaN, and the code of d is that; without
              one nothing is special;
4. *chain*:   each step's c is the result of the one before, and the last one's is d.
"""

from __future__ import annotations

from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Efda, Sfma
from mmaformal.encodings import smt
from mmaformal.encodings.smt import efda, sfma
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    Operand,
    StickySum,
    Term,
    exponent_range,
    negate_if,
    product_range,
)
from mmaformal.formats import Format, Specials
from mmaformal.queries.definitions import fit
from mmaformal.queries.inputs import Inputs, is_infinite, is_nan, magnitude_field, sign_bit, symbolic_inputs
from mmaformal.queries.numerical import Proving


def step_of(spec: DotAdd, x: Inputs) -> Any:
    p = spec.parameters
    if isinstance(p, Sfma):
        return sfma.step(p.rho, x.a[0], x.b[0], x.c)
    assert isinstance(p, Efda)
    return efda.step(spec, p, x.a[: p.L], x.b[: p.L], x.c)


# ---- the chain ---------------------------------------------------------------------------------------------------


def prove_chain(proving: Proving, spec: DotAdd) -> None:
    """That d is the last step's result, and each step's c the one's before."""
    x, L = symbolic_inputs(spec), spec.parameters.step_products
    trace = smt.dot_add(spec, x.a, x.b, x.c)
    c = x.c
    for n, step in enumerate(trace.steps):
        mine = slice(n * L, (n + 1) * L)
        own = step_of(spec, Inputs(x.a[mine], x.b[mine], c))
        text = "a step is that of its products and of the result before"
        proving.claim("chain", text, step.result == own.result, (), [c])
        c = step.result
    proving.claim("d", "d is the last step's result", trace.result == c, (), [c])


# ---- special values ----------------------------------------------------------------------------------------------


def prove_specials(proving: Proving, spec: DotAdd, x: Inputs, step: Any) -> None:
    """Infinities and NaNs keep the order: what they decide is what they are."""
    formats = (spec.a_format, spec.b_format)
    count = spec.parameters.step_products
    codes = [(code, fmt) for side, fmt in zip((x.a, x.b), formats, strict=True) for code in side[:count]]
    codes.append((x.c, spec.c_format))
    infinite = [
        (z3.Or([is_infinite(u, f) for u, f in zip(pair, formats, strict=True)]),
         sign_bit(pair[0], formats[0]) ^ sign_bit(pair[1], formats[1]))
        for pair in zip(x.a[:count], x.b[:count], strict=True)
    ]  # fmt: skip
    infinite.append((is_infinite(x.c, spec.c_format), sign_bit(x.c, spec.c_format)))
    nan, plus, minus = step.special
    some_nan = z3.Or([is_nan(code, fmt) for code, fmt in codes])
    each = [z3.Implies(flag, z3.Or(nan, z3.If(sign == 0, plus, minus))) for flag, sign in infinite]
    none = z3.Not(z3.Or(some_nan, *(flag for flag, _ in infinite)))
    text = "an infinite product or c gives itself or a NaN, a NaN gives a NaN, and without one nothing is special"
    claim = z3.And(*each, z3.Implies(some_nan, nan), z3.Implies(none, z3.Not(z3.Or(nan, plus, minus))))
    proving.claim("special values", text, claim)
    prove_special_codes(proving, step, spec.d_format)


def prove_special_codes(proving: Proving, step: Any, fmt: Format) -> None:
    """That d is the special value where there is one, whatever the sum is."""
    nan, plus, minus = step.special
    infinity = fmt.infinity
    assert infinity is not None
    assert fmt.specials == Specials.IEEE
    claim = z3.And(
        z3.Implies(nan, is_nan(step.result, fmt)),
        z3.Implies(z3.And(plus, z3.Not(nan)), step.result == infinity),
        z3.Implies(z3.And(minus, z3.Not(z3.Or(plus, nan))), step.result == infinity | fmt.sign_mask),
    )
    text = "d is a NaN, or the infinity, that the inputs decide"
    proving.claim("special codes", text, claim, (), [flag for flag in step.special if not _constant(flag)])


def _constant(flag: z3.BoolRef) -> bool:
    return bool(z3.is_true(flag) or z3.is_false(flag))


# ---- terms and sums ----------------------------------------------------------------------------------------------


def prove_terms(proving: Proving, spec: DotAdd, x: Inputs, step: Any) -> None:
    """That what is added up are the products of the numbers that a and b are, and c."""
    p, c = spec.parameters, exponent_range(spec.c_format)
    formats = (spec.a_format, spec.b_format)
    if isinstance(p, Sfma):
        sides, products = ((step.a,), (step.b,)), [step.product]
        ex = c_exponents = sfma.exponents_of(spec.a_format)
    else:
        sides, products = (step.a, step.b), list(step.products)
        fixed = isinstance(step, efda.FixedStep)
        ex = product_range(*formats) if fixed else efda.exponents_of(spec)
        c_exponents = c.union(step_top(spec)) if fixed else ex
    for codes, operands, fmt in zip((x.a, x.b), sides, formats, strict=True):
        for code, operand in zip(codes, operands, strict=False):
            _decoded(proving, code, operand, fmt)
    _decoded(proving, x.c, step.c, spec.c_format)
    bias = spec.a_format.bias + spec.b_format.bias
    for u, v, product in zip(*sides, products, strict=True):
        significand = fit(u.significand, product.significand.size()) * fit(
            v.significand, product.significand.size()
        )
        cut = [u.significand, v.significand, u.field, v.field, u.sign, v.sign]
        same = z3.And(product.sign == u.sign ^ v.sign, product.significand == significand)
        proving.claim("product", "a product is that of its factors", same, (), cut)
        zero = z3.Or(u.significand == 0, v.significand == 0)
        text = "the exponent of a product is the sum of those of its factors, if it is not zero"
        fields = [z3.UGE(operand.field, 1) for operand in (u, v)]
        proving.claim("exponent", text, z3.Or(zero, _is_exponent(product, (u, v), bias, ex)), fields, cut)
    text = "the term of c is c"
    same = z3.And(step.addend.sign == step.c.sign, step.addend.significand == step.c.significand)
    proving.claim(
        "c", text, z3.And(same, _is_exponent(step.addend, (step.c,), spec.c_format.bias, c_exponents))
    )
    if isinstance(step, efda.FixedStep):
        _prove_fixed(proving, spec, step)
    for name, sum_, signs, cut in _sums(step):
        _prove_sum(proving, name, sum_, signs, cut)


def step_top(spec: DotAdd) -> int:
    """The exponent of the place above an exact sum of products in fixed point."""
    a, b = spec.a_format, spec.b_format
    own, largest = product_range(a, b), ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)
    finite = largest << (a.max_exponent + b.max_exponent - own.low)
    return own.low - efda.fraction_bits(spec) + (spec.parameters.step_products * finite).bit_length()


def _decoded(proving: Proving, code: z3.BitVecRef, x: Operand, fmt: Format) -> None:
    """That an operand is the number, the infinity or the NaN that the code stands for."""
    index, M = magnitude_field(code, fmt), fmt.fraction_bits
    field, fraction = z3.LShR(index, M), index & ((1 << M) - 1)
    value = z3.If(field == 0, fraction, fraction + (1 << M))
    claim = z3.And(
        x.sign == sign_bit(code, fmt),
        fit(x.significand, index.size()) == value,
        fit(x.field, index.size()) == z3.If(field == 0, 1, field),
        x.infinite == is_infinite(code, fmt),
        x.nan == is_nan(code, fmt),
    )
    proving.claim("decode", "an operand is the number of its code", claim)
    proving.claim("field", "an exponent field is not 0: that of a subnormal number is 1", z3.UGE(x.field, 1))


def _is_exponent(term: Term, factors: tuple[Operand, ...], bias: int, ex: ExponentRange) -> z3.BoolRef:
    """Whether a term's exponent is the sum of its factors' fields, less the bias."""
    bits = (
        max(term.exponent.size(), *(x.field.size() for x in factors), (bias + abs(ex.low)).bit_length()) + 2
    )
    fields = [fit(x.field, bits) for x in factors]
    total = fields[0] if len(fields) == 1 else fields[0] + fields[1]
    return fit(term.exponent, bits) + ex.low == total - bias


def _prove_fixed(proving: Proving, spec: DotAdd, step: efda.FixedStep) -> None:
    """That no product loses a bit where it is placed, and the sum of all is the term that c is added to."""
    a, b = spec.a_format, spec.b_format
    own, largest = product_range(a, b), ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)
    for product, placed in zip(step.products, step.placed, strict=True):
        wide = product.significand.size() + (1 << product.exponent.size())
        exact = fit(product.significand, wide) << fit(product.exponent, wide)
        given = [z3.ULE(product.exponent, own.high - own.low), z3.ULE(product.significand, largest)]
        text = "a product is placed without a loss"
        claim = z3.Implies(z3.And(given), fit(placed, wide) == exact)
        proving.claim("placed", text, claim, (), [product.exponent, product.significand])
    bits, least = step.dot.size(), z3.BitVecVal(1 << (step.dot.size() - 1), step.dot.size())
    total = negate_if(step.term.sign, fit(step.term.significand, bits))
    text = "the term is the sum of the products"
    proving.claim("term", text, z3.Implies(step.dot != least, total == step.dot), (), [step.dot])


def _sums(step: Any) -> list[tuple[str, StickySum, tuple[z3.BitVecRef, z3.BitVecRef], list[z3.ExprRef]]]:
    """The sums of two terms: name, sum, the terms' signs, and what these are made of."""
    if not isinstance(step, efda.SortedStep):
        first = step.product if isinstance(step, sfma.Step) else step.term
        return [("sum", step.sum, (first.sign, step.addend.sign), [first.sign, step.addend.sign])]
    one, two, three = step.sorted
    bits = one.exponent.size()
    near = z3.ULE(one.exponent - two.exponent, z3.BitVecVal(efda.NEAR, bits))
    signs = z3.If(near, one.sign, three.sign), z3.If(near, three.sign, one.sign)
    cut = [near, one.sign, two.sign, three.sign, step.normal.sign]
    return [
        ("first sum", step.partial, (signs[0], two.sign), cut),
        ("sum", step.sum, (step.normal.sign, signs[1]), cut),
    ]


def _prove_sum(
    proving: Proving,
    name: str,
    sum_: StickySum,
    signs: tuple[z3.BitVecRef, z3.BitVecRef],
    cut: list[z3.ExprRef],
) -> None:
    wide = sum_.total.size() + 2
    parts = [negate_if(sign, fit(x, wide)) for sign, x in zip(signs, (sum_.x, sum_.y), strict=True)]
    claim = z3.SignExt(2, sum_.total) == parts[0] + parts[1]
    proving.claim(name, "the sum is that of both terms, with their signs", claim, (), [sum_.x, sum_.y, *cut])
