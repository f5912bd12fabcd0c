"""Proofs of what a step adds up: the very products and c that the codes stand for, each of them once.

Other modules prove what becomes of terms: aligned, added, rounded.  Here is what goes before, and after:

1. *terms*:   each operand is the number of its code, each product the exact one of its factors, and c is its number;
2. *sums*:    of sfma and efda: what is added up is those terms, with their signs, and no sum wraps;
3. *special*: of sfma and efda: an infinite product or c gives that infinity or a NaN, a NaN a NaN, and the code of d is
              that; of all: without one nothing is special;
4. *chain*:   each step's c is the result of the one before, and the last one's is d.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import z3

from mmaformal.cases.codes import is_finite, is_infinite, is_nan, magnitude_field, sign_bit
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AddsC, Judged
from mmaformal.cases.one_step import one_step, scales_of_step
from mmaformal.encodings import smt
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import smt as gfda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.oddsum import smt as oddsum
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    Operand,
    Special,
    StickySum,
    Term,
    decode,
    exponent_range,
    negate_if,
    product_range,
    quiet_nan,
    resize,
)
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.fused_steps import E2M1_PRODUCT
from mmaformal.formats import Format, Specials, fp32
from mmaformal.limits import widest
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.kernel import demand
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel

AnySticky: TypeAlias = (
    sfma.SfmaStep | efda.FixedStep | efda.SortedStep
)  #: sums of two terms, with a sticky last place
AnyFused: TypeAlias = fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep | fdrda.FdrdaStep | gfdrda.GfdrdaStep


def smt_step(spec: DotAdd, x: Inputs) -> AnySticky:
    p = spec.parameters
    if isinstance(p, Sfma):
        return sfma.step(p.rho, x.a[0], x.b[0], x.c, p.nan)
    assert isinstance(p, Efda)
    step = efda.step(spec, p, x.a[: p.L], x.b[: p.L], x.c, Stages())
    assert not isinstance(step, efda.LongStep)
    return step


# ---- the chain ---------------------------------------------------------------------------------------------------


def prove_links(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """Prove that d is the last step's result, and each step one of its own, whose c is the result before."""
    one, x, L = one_step(spec), symbolic_inputs(spec), spec.parameters.step_products
    trace = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
    results = [step.result for step in trace.steps]
    claims, text = [], "a step of the chain is a step of its own, whose c is the result before"
    for i, (c, d) in enumerate(zip([x.c, *results[:-1]], results, strict=True)):
        k = slice(i * L, (i + 1) * L)
        scales = [scales_of_step(spec, side, k.start) for side in (x.scale_a, x.scale_b)]
        alone = smt.dot_add(one, x.a[k], x.b[k], c, *scales).result
        claims.append(proving.claim(f"step {i + 1}", text, d == alone))
    last = trace.result == results[-1]
    return [*claims, proving.claim("result", "the result is the last step's", last)]


# ---- special values ----------------------------------------------------------------------------------------------


def prove_specials(proving: Composing, spec: DotAdd, x: Inputs, step: Judged) -> None:
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
    some_nan = z3.Or([is_nan(code, fmt) for code, fmt in codes])
    text = "an infinite product or c gives itself or a NaN, a NaN gives a NaN, and without one nothing is special"
    prove_special_values(proving, step.special, some_nan, infinite, text)
    prove_special_codes(proving, step, spec.d_format)


def prove_special_values(
    proving: Composing,
    special: Special,
    some_nan: z3.BoolRef,
    infinite: Sequence[tuple[z3.BoolRef, z3.BitVecRef]],
    text: str,
) -> None:
    """Prove that a NaN gives a NaN, and what is `infinite`, with a sign, gives that or a NaN; and nothing else does."""
    nan, plus, minus = special
    each = [z3.Implies(flag, z3.Or(nan, z3.If(sign == 0, plus, minus))) for flag, sign in infinite]
    none = z3.Not(z3.Or(some_nan, *(flag for flag, _ in infinite)))
    claim = z3.And(*each, z3.Implies(some_nan, nan), z3.Implies(none, z3.Not(z3.Or(nan, plus, minus))))
    proving.claim("special values", text, claim)


def prove_special_codes(proving: Composing, step: Judged, fmt: Format) -> None:
    """Prove that d is the special value where there is one, whatever the sum is."""
    nan, plus, minus = step.special
    infinity = fmt.infinity
    demand(fmt.specials == Specials.IEEE, "special codes are those of IEEE 754")
    assert infinity is not None
    claim = z3.And(
        z3.Implies(nan, is_nan(step.result, fmt)),
        z3.Implies(z3.And(plus, z3.Not(nan)), step.result == infinity),
        z3.Implies(z3.And(minus, z3.Not(z3.Or(plus, nan))), step.result == infinity | fmt.sign_mask),
    )
    text = "d is a NaN, or the infinity, that the inputs decide"
    proving.claim("special codes", text, claim)


# ---- terms and sums ----------------------------------------------------------------------------------------------


def prove_terms(proving: Composing, spec: DotAdd, x: Inputs, step: AnySticky) -> None:
    """Prove that what is added up are the products of the numbers that a and b are, and c."""
    c, formats = exponent_range(spec.c_format), (spec.a_format, spec.b_format)
    sides: tuple[tuple[Operand, ...], tuple[Operand, ...]]
    if isinstance(step, sfma.SfmaStep):
        sides, products = ((step.a,), (step.b,)), [step.product]
        ex = c_exponents = sfma.exponents_of(spec.a_format)
    else:
        sides, products = (step.a, step.b), list(step.products)
        fixed = isinstance(step, efda.FixedStep)
        ex = product_range(*formats) if fixed else efda.exponents_of(spec)
        c_exponents = c.union(step_top(spec)) if fixed else ex
    prove_operands(proving, spec, x, sides, step.c)
    bias = spec.a_format.bias + spec.b_format.bias
    for u, v, product in zip(*sides, products, strict=True):
        prove_product(proving, product, (u, v), (), bias, ex)
    _prove_c(proving, spec, step, c_exponents)
    if isinstance(step, efda.FixedStep):
        _prove_fixed(proving, spec, step)
    for name, sum_, signs in _sums(step):
        prove_sum_of_both(proving, name, sum_, signs)


def prove_inputs(proving: Composing, spec: DotAdd, x: Inputs, step: AnyFused) -> z3.BoolRef:
    """Prove what a step of fda, gdfs, gfda, fdrda or gfdrda adds; nothing is special if all inputs are numbers.

    Returns that they are, and of fdrda and gfdrda that no product is 2^128 or more, which counts as an infinity.
    """
    p, a, b = spec.parameters, spec.a_format, spec.b_format
    prove_operands(proving, spec, x, (step.a, step.b), step.c)
    flags = [z3.Not(is_finite(x.c, spec.c_format))]
    scales: Sequence[tuple[Operand, ...]] = [()] * len(step.a)
    bias = a.bias + b.bias
    if spec.scale_format is not None:
        assert isinstance(step, (fda.FdaStep, gdfs.GdfsStep))
        scales = list(zip(step.scale_a, step.scale_b, strict=True))
        for codes, side in ((x.scale_a, step.scale_a), (x.scale_b, step.scale_b)):
            flags += [z3.Not(is_finite(code, spec.scale_format)) for code in codes]
            for k, operand in enumerate(side):
                prove_decoded(proving, codes[k * len(codes) // len(side)], operand, spec.scale_format)
        bias += 2 * spec.scale_format.bias
    if isinstance(step, gdfs.GdfsStep):
        assert isinstance(p, Gdfs)
        _prove_groups(proving, spec, p, step, scales)
        ex = gdfs.exponents_of(spec, p)
    else:
        flags += [z3.Not(is_finite(code, a)) for code in x.a] + [z3.Not(is_finite(code, b)) for code in x.b]
        own, ex = product_range(a, b), fdrda.exponents_of(spec)
        if p.loss is LossModel.TERMS:
            assert isinstance(p, Fda)
            own = ex = fda.exponents_of(spec, p)
        elif p.loss is LossModel.TERMS_AND_GROUPS:
            assert isinstance(p, Gfda)
            own = ex = gfda.exponents_of(spec, p)
        for u, v, pair, product in zip(step.a, step.b, scales, step.products, strict=True):
            prove_product(proving, product, (u, v), pair, bias, own)
            if p.loss is LossModel.ROUND_DOWN:
                flags.append(_is_huge(product, own, fdrda.fraction_bits(spec)))
    _prove_c(proving, spec, step, ex)
    ordinary, none = z3.Not(z3.Or(*flags)), z3.Not(z3.Or(*step.special))
    text = "where every input is a number, nothing is special"
    proving.claim("not special", text, z3.Implies(ordinary, none))
    return ordinary


def _is_huge(product: Term, own: ExponentRange, fraction_bits: int) -> z3.BoolRef:
    """Whether a product is 2^128 or more."""
    bits = own.bits + (own.high - own.low + fraction_bits + 256).bit_length() + 2
    t = fit(product.exponent, bits) + (own.low - fraction_bits)
    return at_least(product.significand, t, z3.BitVecVal(1, 1), z3.BitVecVal(fdrda.OVERFLOW, bits))


def _prove_groups(
    proving: Composing, spec: DotAdd, p: Gdfs, step: gdfs.GdfsStep, scales: Sequence[tuple[Operand, ...]]
) -> None:
    """Prove that e2m1 products are exact, and a group is their sum times its scales."""
    assert spec.scale_format is not None
    for u, v, (sign, magnitude) in zip(step.a, step.b, step.products, strict=True):
        wide = magnitude.size() + 8
        exact = [fit(y.significand, wide) << (fit(y.field, wide) - 1) for y in (u, v)]
        claim = z3.And(sign == u.sign ^ v.sign, fit(magnitude, wide) == exact[0] * exact[1])
        fields = [z3.And(z3.UGE(y.field, 1), z3.ULE(y.field, 3)) for y in (u, v)]
        for field in fields:
            proving.claim("e2m1 field", "the exponent field of an e2m1 operand is 1 to 3", field)
        proving.claim("e2m1 product", "a product is that of its factors, in quarters", claim, fields)
    m, ex = spec.scale_format.fraction_bits, gdfs.exponents_of(spec, p)
    for total, group, pair in zip(step.sums, step.groups, scales, strict=True):
        top, bits = total.size() - 1, group.significand.size()
        demand((p.G * E2M1_PRODUCT * ((2 << m) - 1) ** 2).bit_length() <= bits, "a group that wraps")
        sign = z3.Extract(top, top, total)
        value = resize(z3.Extract(top - 1, 0, negate_if(sign, total)), bits)
        if m:
            each = [fit(y.significand, 2 * (m + 1)) for y in pair]
            value = value * resize(each[0] * each[1], bits)
        reach = p.G * E2M1_PRODUCT
        small = z3.And(total <= reach, total >= -reach)
        claim = z3.And(group.sign == sign, group.significand == value)
        text = "a group is the sum of its products times its scales"
        proving.claim("group", text, claim, [small])
        # A zero may have the exponent e_zero; a group of zero products, or one with a zero scale, is one.
        zero = group.significand == 0
        claim = z3.Or(zero, _is_exponent(group, pair, 2 * spec.scale_format.bias, ex))
        text = "the exponent of a group is that of its scales, if it is not zero"
        proving.claim("group's exponent", text, claim)


def prove_groups_chain(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """gps: each step is one of its own, whose c is the result before; the first one's is c, flushed."""
    p, x = spec.parameters_as(Gps), symbolic_inputs(spec)
    trace = gps.dot_add(spec, x.a, x.b, x.c)
    c = gps.flush(x.c, keep_sign=False)
    text = "a step of the chain is a step of its own, whose c is the result before"
    claims = []
    for n, step in enumerate(trace.steps):
        k = slice(n * p.G, (n + 1) * p.G)
        same = step.result == gps.step(spec, x.a[k], x.b[k], c, Stages()).result
        claims.append(proving.claim(f"step {n + 1}", text, same))
        c = step.result
    last = proving.claim("result", "the result is the last step's", trace.result == c)
    return [*claims, last]


def prove_lowered(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """Prove that the fda steps of a lowered instruction take a and b, converted, in their order, from +0; and that c
    is added last."""
    p, x = spec.parameters_as(Lowered), symbolic_inputs(one_step(spec))
    step = lowered.step(spec, p, x.a, x.b, x.c, Stages())
    claims = []
    for codes, mine, fmt in ((x.a, step.a, spec.a_format), (x.b, step.b, spec.b_format)):
        code = z3.BitVec("code", fmt.storage_bits)
        claims.append(prove_conversion(proving, code, fmt, p.taken_as(fmt)))
        for converted, k in zip(mine, p.order, strict=True):
            same = converted == ieee.convert(codes[k], fmt, p.taken_as(fmt))
            text = "the steps take converted operands in their order"
            claims.append(proving.claim("order", text, same))
    zero = z3.BitVecVal(0, spec.d_format.storage_bits)
    alone = fda.dot_add(p.inner_dot_add(spec), step.a, step.b, zero).result
    text = "the fda steps start from zero, and c is added to what they give"
    total = ieee.add(step.dot, x.c, p.addition, lowered.nan_code(p, spec.d_format)).result
    claims.append(proving.claim("from zero", text, step.dot == alone))
    return [*claims, proving.claim("c last", text, step.result == total)]


def prove_conversion(proving: Composing, code: z3.BitVecRef, source: Format, target: Format) -> z3.BoolRef:
    x, y = decode(code, source), decode(ieee.convert(code, source, target), target)
    bits = (
        max(source.exponent_bits, target.exponent_bits) + max(source.fraction_bits, target.fraction_bits) + 4
    )
    t, q = (fit(v.field, bits) - (f.bias + f.fraction_bits) for v, f in ((x, source), (y, target)))
    same = [at_least(x.significand, t, y.significand, q), at_least(y.significand, q, x.significand, t)]
    finite = z3.Not(z3.Or(x.infinite, x.nan))
    text = f"a code of {source} is converted to {target} exactly"
    claim = z3.If(finite, z3.And(x.sign == y.sign, *same), z3.And(x.infinite == y.infinite, x.nan == y.nan))
    return proving.claim("conversion", text, claim)


def group_of(spec: DotAdd, x: Inputs) -> gps.GpsStep:
    """One step of gps or oddsum."""
    p, L = spec.parameters, spec.parameters.step_products
    if isinstance(p, Oddsum):
        return oddsum.step(spec, p.rho, x.a[:L], x.b[:L], x.c, Stages())
    assert isinstance(p, Gps)
    return gps.step(spec, x.a[:L], x.b[:L], x.c, Stages())


def prove_tree(proving: Composing, spec: DotAdd) -> None:
    """Prove that a step of gps or oddsum is the tree of its products, added in pairs and then to its c, which is
    flushed before; subnormals flushed after each."""
    x, rho = symbolic_inputs(one_step(spec)), spec.parameters.last_rounding
    step = group_of(spec, x)
    for codes, operands, fmt in ((x.a, step.a, spec.a_format), (x.b, step.b, spec.b_format)):
        for code, operand in zip(codes, operands, strict=False):
            prove_flushed(proving, code, operand, fmt)
    for u, v, product in zip(step.a, step.b, step.products, strict=True):
        same = product == gps.multiply(u, v, spec.a_format, spec.b_format)
        proving.claim("products", "each product is that of its factors", same)
    level = list(step.products)
    while len(level) > 1:
        level = [_flushed_sum(u, v, rho) for u, v in zip(level[::2], level[1::2], strict=True)]
    text = "products are added in pairs, then those sums, then c"
    proving.claim("tree", text, step.result == _flushed_sum(step.c, level[0], rho))


def prove_flushed(proving: Composing, code: z3.BitVecRef, x: Operand, fmt: Format) -> None:
    index: z3.BitVecRef = magnitude_field(code, fmt)
    M = fmt.fraction_bits
    field, fraction = z3.LShR(index, M), index & ((1 << M) - 1)
    value = z3.And(
        fit(x.significand, index.size()) == fraction + (1 << M),
        fit(x.field, index.size()) == field,
        x.sign == sign_bit(code, fmt),
    )
    special = z3.And(x.infinite == is_infinite(code, fmt), x.nan == is_nan(code, fmt))
    claim = z3.And(special, z3.If(field == 0, x.significand == 0, value))
    text = "an operand is the number of its code, or zero if that is subnormal"
    proving.claim("decode", text, claim)


def _flushed_sum(x: z3.BitVecRef, y: z3.BitVecRef, rho: Conversion) -> z3.BitVecRef:
    code = ieee.add(x, y, rho, quiet_nan(fp32)).result
    top, M = fp32.storage_bits - 1, fp32.fraction_bits
    zero = z3.Concat(z3.Extract(top, top, code), z3.BitVecVal(0, top))
    return z3.If(z3.Extract(top - 1, M, code) == 0, zero, code)


def prove_operands(
    proving: Composing, spec: DotAdd, x: Inputs, sides: Sequence[Sequence[Operand]], c: Operand
) -> None:
    formats = (spec.a_format, spec.b_format)
    for codes, operands, fmt in zip((x.a, x.b), sides, formats, strict=True):
        for code, operand in zip(codes, operands, strict=False):
            prove_decoded(proving, code, operand, fmt)
    prove_decoded(proving, x.c, c, spec.c_format)


def prove_product(
    proving: Composing,
    product: Term,
    factors: tuple[Operand, Operand],
    scales: Sequence[Operand],
    bias: int,
    ex: ExponentRange,
) -> None:
    """Prove that a product is exact: its sign, its significand, and its exponent, scales included, if it is not
    zero."""
    u, v = factors
    bits = product.significand.size()
    significand = fit(u.significand, bits) * fit(v.significand, bits)
    same = z3.And(product.sign == u.sign ^ v.sign, product.significand == significand)
    proving.claim("product", "a product is that of its factors", same)
    zero = z3.Or(u.significand == 0, v.significand == 0)
    text = "the exponent of a product is the sum of those of its factors, if it is not zero"
    fields = [z3.UGE(operand.field, 1) for operand in factors]
    claim = z3.Or(zero, _is_exponent(product, (u, v, *scales), bias, ex))
    proving.claim("exponent", text, claim, fields)


def _prove_c(proving: Composing, spec: DotAdd, step: AddsC, ex: ExponentRange) -> None:
    prove_addend(proving, step.addend, step.c, spec.c_format.bias, ex)


def prove_addend(proving: Composing, term: Term, c: Operand, bias: int, ex: ExponentRange) -> None:
    """Prove that a term is the number of an operand."""
    same = z3.And(term.sign == c.sign, term.significand == c.significand)
    exponent = _is_exponent(term, (c,), bias, ex)
    proving.claim("c", "the term of c is c", z3.And(same, z3.Or(c.significand == 0, exponent)))


def step_top(spec: DotAdd) -> int:
    """The exponent of the place above an exact sum of products in fixed point."""
    a, b = spec.a_format, spec.b_format
    own, largest = product_range(a, b), widest(a) * widest(b)
    finite = largest << (a.max_exponent + b.max_exponent - own.low)
    return own.low - efda.fraction_bits(spec) + (spec.parameters.step_products * finite).bit_length()


def prove_decoded(proving: Composing, code: z3.BitVecRef, x: Operand, fmt: Format) -> None:
    """Prove that an operand is the number, the infinity or the NaN that the code stands for."""
    index: z3.BitVecRef = magnitude_field(code, fmt)
    M = fmt.fraction_bits
    if not fmt.has_zero:
        power = z3.And(x.significand == 1, fit(x.field, index.size()) == index, x.nan == is_nan(code, fmt))
        proving.claim("decode", "a scale is the power of two of its code", z3.And(power, z3.Not(x.infinite)))
        return
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


def _is_exponent(term: Term, factors: Sequence[Operand], bias: int, ex: ExponentRange) -> z3.BoolRef:
    """Whether a term's exponent is the sum of its factors' fields, less the bias."""
    sizes = (term.exponent.size(), *(x.field.size() for x in factors), (bias + abs(ex.low)).bit_length())
    bits = max(sizes) + 3
    total = reduce(lambda x, y: x + y, [fit(x.field, bits) for x in factors])
    return fit(term.exponent, bits) + ex.low == total - bias


def _prove_fixed(proving: Composing, spec: DotAdd, step: efda.FixedStep) -> None:
    """Prove that no product loses a bit where it is placed, and the sum of all is the term that c is added to."""
    a, b = spec.a_format, spec.b_format
    own, largest = product_range(a, b), widest(a) * widest(b)
    for product, placed in zip(step.products, step.placed, strict=True):
        wide = product.significand.size() + (1 << product.exponent.size())
        exact = fit(product.significand, wide) << fit(product.exponent, wide)
        given = [z3.ULE(product.exponent, own.high - own.low), z3.ULE(product.significand, largest)]
        text = "a product is placed without a loss"
        claim = z3.Implies(z3.And(given), fit(placed, wide) == exact)
        proving.claim("placed", text, claim)
    bits, least = step.dot.size(), z3.BitVecVal(1 << (step.dot.size() - 1), step.dot.size())
    total = negate_if(step.term.sign, fit(step.term.significand, bits))
    text = "the term is the sum of the products"
    proving.claim("term", text, z3.Implies(step.dot != least, total == step.dot))


def _sums(step: AnySticky) -> list[tuple[str, StickySum, tuple[z3.BitVecRef, z3.BitVecRef]]]:
    """Returns the sums of two terms: name, sum and the terms' signs."""
    if not isinstance(step, efda.SortedStep):
        first = step.product if isinstance(step, sfma.SfmaStep) else step.term
        return [("sum", step.sum, (first.sign, step.addend.sign))]
    one, two, three = step.sorted
    bits = one.exponent.size()
    near = z3.ULE(one.exponent - two.exponent, z3.BitVecVal(efda.NEAR, bits))
    signs = z3.If(near, one.sign, three.sign), z3.If(near, three.sign, one.sign)
    return [
        ("first sum", step.partial, (signs[0], two.sign)),
        ("sum", step.sum, (step.normal.sign, signs[1])),
    ]


def prove_sum_of_both(
    proving: Composing, name: str, sum_: StickySum, signs: tuple[z3.BitVecRef, z3.BitVecRef]
) -> None:
    wide = sum_.total.size() + 2
    parts = [negate_if(sign, fit(x, wide)) for sign, x in zip(signs, (sum_.x, sum_.y), strict=True)]
    claim = z3.SignExt(2, sum_.total) == parts[0] + parts[1]
    proving.claim(name, "the sum is that of both terms, with their signs", claim)
