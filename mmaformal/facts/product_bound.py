"""From what is proved of one step to a product of any K: why errors grow by (1 + U) a step.

A step adds its products, of the exact sum p, and the result d0 before it as S, and rounds once, d = ρ(S).  Let w(x) be
max(|x|, the least normal number of x's format), P = Σ w(a)·w(b), σ0 = w(c) + Σ w(a)·w(b) of all steps before, x0 the
exact sum of those and c, and E0 a bound of |d0 − x0|.  Of the step it is known that

    |S − (d0 + p)| ≤ ν · 2^e_max  (ν = n · 2^−F: `error_bound`),     |d − S| ≤ u · max(|S|, least)  (`rounding_model`),

and that 2^e_max is at most P, or w(d0), or `least`, the least normal number of c's format (`prove_largest_exponent`).
Then, with U = ν + u + ν·u,

    |d − (x0 + p)| ≤ (1 + U)·E0 + U·(σ0 + P),

and if E0 ≤ (Q − 1)·σ0, that is at most ((1 + U)·Q − 1)·(σ0 + P): claims about real numbers, for all ν and u.  Of c
itself E0 = 0 and Q = 1, so after m steps Q = (1 + U)^m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as dpa_e9s12
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.facts.fused_steps import fused_step
from mmaformal.formats import Format
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import demand
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, LossModel

STEPS = Rule(
    "steps of a product",
    "numbers m · 2^t are real numbers; what holds of c, and of each step's result if it holds of the one before, holds "
    "of the last one",
)

#: Bits that hold every difference of exponents.
_BITS = 20


def is_within(x: z3.ArithRef, bound: z3.ArithRef) -> z3.BoolRef:
    return z3.And(x <= bound, -x <= bound)


def prove_growth(proving: Composing) -> None:
    """The claims about real numbers above, concluded.  Raises NotProvedError."""
    nu, u, sigma, P, E, Q, least = z3.Reals("nu u sigma P E Q least")
    before, exact, p, S, d, top, w = z3.Reals("before exact p S d top w")
    U, reach, after = nu + u + nu * u, sigma + P + E, sigma + P
    not_negative = z3.And(nu >= 0, u >= 0, P >= 0, E >= 0, least >= 0, least <= sigma)
    so_far = z3.And(is_within(before - exact, E), is_within(exact, sigma))
    weight = z3.Or(w <= before, w <= -before, w <= least)
    largest = z3.Or(top <= P, top <= w, top <= least)
    aligned, terms = is_within(S - (before + p), nu * top), is_within(p, P)
    rounded = z3.Or(is_within(d - S, u * S), is_within(d - S, -u * S), is_within(d - S, u * least))
    known = [not_negative, so_far, weight, largest, aligned, terms, rounded]

    text = "the largest exponent is not above all that was added, and its error"
    claim = z3.And(top <= reach, reach >= 0)
    highest = proving.claim("largest", text, claim, [not_negative, so_far, weight, largest])
    text = "so the sum is off by no more than ν times that"
    lost = is_within(S - (before + p), nu * reach)
    lost = proving.claim("aligned", text, lost, [not_negative, highest, aligned])
    text = "and no larger than 1 + ν times that"
    size = z3.And(is_within(S, reach + nu * reach), least <= reach)
    size = proving.claim("size", text, size, [not_negative, so_far, terms, lost])
    text = "rounding adds u times that"
    off = is_within(d - S, u * (reach + nu * reach))
    off = proving.claim("rounded", text, off, [not_negative, highest, size, rounded])
    error = z3.And(is_within(d - (exact + p), (1 + U) * E + U * after), is_within(exact + p, after))
    text = "together (1 + U)·E0 + U·σ"
    error = proving.claim("step", text, error, [not_negative, so_far, terms, lost, off])
    start = z3.And(Q >= 1, (Q - 1) * sigma >= E)
    text = "which is within (1 + U)·Q − 1 of σ, if the error before is within Q − 1 of it"
    grown = (1 + U) * E + U * after <= ((1 + U) * Q - 1) * after
    grown = proving.claim("growth", text, grown, [not_negative, start])
    proving.rests_on(STEPS)
    proving.conclude(
        "the error of a step is within (1 + U)·Q − 1 of all that was added",
        z3.Implies(z3.And(*known, start), z3.And(error, grown)),
    )


def prove_join(proving: Composing) -> None:
    """Prove of an instruction that adds its products from zero, and c last, that the errors of both, before they are
    added, are within R·Q − 1 of all that was added, if they are within R − 1 and Q − 1 of their own.

    Raises NotProvedError."""
    sigma, P, least, E, inner, Q, R = z3.Reals("sigma P least E inner Q R")
    known = z3.And(P >= 0, least >= 0, least <= sigma, Q >= 1, R >= 1)
    errors = z3.And((Q - 1) * sigma >= E, inner <= (R - 1) * (least + P))
    text = "the errors of a sum from zero and of c are together within the product of both factors"
    product = z3.And((Q - 1) * (R - 1) * (sigma + P) >= 0, (Q - 1) * P >= 0, (R - 1) * (sigma - least) >= 0)
    signs = proving.claim("signs", "products of what is not negative are not", product, [known])
    claim = E + inner <= (Q * R - 1) * (sigma + P)
    claim = proving.claim("join", text, claim, [known, errors, signs])
    proving.rests_on(STEPS)
    proving.conclude(text, z3.Implies(z3.And(known, errors), claim))


def prove_beside(proving: Composing) -> None:
    """Prove of sums made one by one and added outside that the errors of the total and of the next sum are together
    within Q − 1 of all that was added, if the total's is, and the sum's of its own.  Raises NotProvedError."""
    sigma, P, E, inner, Q, R = z3.Reals("sigma P E inner Q R")
    known = z3.And(sigma >= 0, P >= 0, R >= 1, Q >= R)
    errors = z3.And((Q - 1) * sigma >= E, inner <= (R - 1) * P)
    text = "the errors of a total and of a sum that is added to it are together within the larger factor"
    product = proving.claim("signs", "products of what is not negative are not", (Q - R) * P >= 0, [known])
    claim = proving.claim("beside", text, E + inner <= (Q - 1) * (sigma + P), [known, errors, product])
    proving.rests_on(STEPS)
    proving.conclude(text, z3.Implies(z3.And(known, errors), claim))


def prove_rescaled(proving: Composing) -> None:
    """Prove of a sum d0, off by E ≤ (Q − 1)·σ and multiplied by α ≥ 0, that d = ρ(α·d0) is off α·x by
    ((1 + u)·Q − 1)·(α·σ + least) at most.  Raises NotProvedError."""
    before, exact, d, E, sigma, u, least, Q, alpha = z3.Reals("before exact d E sigma u least Q alpha")
    known = z3.And(alpha >= 0, u >= 0, least >= 0, sigma >= 0, E >= 0, Q >= 1)
    near = z3.And(is_within(before - exact, E), is_within(exact, sigma), (Q - 1) * sigma >= E)
    S = alpha * before
    rounded = z3.Or(is_within(d - S, u * S), is_within(d - S, -u * S), is_within(d - S, u * least))
    text = "what is multiplied by α is off, and large, by α times as much"
    scaled = z3.And(is_within(S - alpha * exact, alpha * E), is_within(alpha * exact, alpha * sigma))
    scaled = proving.claim("scaled", text, scaled, [known, near])
    text = "its error is within Q − 1 of α·σ, which is not negative"
    factor = z3.And(alpha * E <= (Q - 1) * (alpha * sigma), alpha * sigma >= 0, alpha * E >= 0)
    factor = proving.claim("factor", text, factor, [known, near])
    reach = alpha * sigma + alpha * E
    text = "the product is no larger than α·σ and its error"
    size = z3.And(
        is_within(S, reach), u * S <= u * reach, -u * S <= u * reach, u * reach >= 0, u * least >= 0
    )
    size = proving.claim("size", text, size, [known, scaled, factor])
    text = "rounding adds u times that, or u times the least normal number"
    off = is_within(d - alpha * exact, alpha * E + u * reach + u * least)
    off = proving.claim("rounded", text, off, [scaled, size, rounded])
    text = "together within (1 + u)·Q − 1 of α·σ and the least normal number"
    whole = alpha * E + u * reach + u * least <= ((1 + u) * Q - 1) * (alpha * sigma + least)
    signs = z3.And(u * (alpha * E) <= u * ((Q - 1) * (alpha * sigma)), (1 + u) * (Q - 1) * least >= 0)
    signs = proving.claim("signs", "products of what is not negative are not", signs, [known, factor])
    whole = proving.claim("together", text, whole, [factor, signs])
    proving.rests_on(STEPS)
    claim = z3.And(
        is_within(d - alpha * exact, ((1 + u) * Q - 1) * (alpha * sigma + least)),
        is_within(alpha * exact, alpha * sigma + least),
    )
    claim = proving.claim("rescaled", text, claim, [known, scaled, off, whole])
    proving.conclude(text, z3.Implies(z3.And(known, near, rounded), claim))


def prove_narrowed(proving: Composing) -> None:
    """Proves that d = ρ(S) of a sum S that is off by E at most is off by E + u·(|x| + E) at most, x the exact one, or
    by E + u·least of a tiny S.  Raises NotProvedError."""
    S, exact, d, E, u, least, size = z3.Reals("S exact d E u least size")
    known = z3.And(E >= 0, u >= 0, least >= 0, is_within(exact, size), is_within(S - exact, E))
    rounded = z3.Or(is_within(d - S, u * S), is_within(d - S, -u * S), is_within(d - S, u * least))
    text = "a sum is no larger than the exact one and what it is off"
    reach = z3.And(is_within(S, size + E), u * S <= u * (size + E), -u * S <= u * (size + E))
    reach = proving.claim("reach", text, reach, [known])
    text = "rounded once more it is off by u times its size besides, or the least normal number's"
    off = z3.Or(is_within(d - exact, E + u * (size + E)), is_within(d - exact, E + u * least))
    off = proving.claim("narrowed", text, off, [known, reach, rounded])
    proving.rests_on(STEPS)
    proving.conclude(text, z3.Implies(z3.And(known, rounded), off))


def prove_apart(proving: Composing) -> None:
    """Prove that two results are no further apart than both are off.  Raises NotProvedError."""
    d, other, exact, A, B, sigma = z3.Reals("d other exact A B sigma")
    near = z3.And(is_within(d - exact, A * sigma), is_within(other - exact, B * sigma))
    text = "two results are no further apart than both are off the exact sum"
    claim = proving.claim("apart", text, is_within(d - other, (A + B) * sigma), [near])
    proving.rests_on(STEPS)
    proving.conclude(text, z3.Implies(near, claim))


# ---- 2^e_max ---------------------------------------------------------------------------------------------------------


def prove_largest_exponent(proving: Composing, spec: DotAdd) -> None:
    """Prove that a step's e_max is at most the sum of the exponents of some product's factors and their scales, or
    c's, or that of the least normal number of c's format; and that 2^e ≤ w(x) for the exponent e of each of these.

    Raises NotProvedError; ValueError for an algorithm that aligns nothing.
    """
    factors, c, e_max, low = _terms(one_step(spec))
    wide = fit(e_max, _BITS) + low
    bounds: list[z3.BitVecRef] = [
        _exponent(c, spec.c_format),
        z3.BitVecVal(spec.c_format.min_exponent, _BITS),
    ]
    known = []
    for product in factors:
        total = z3.BitVecVal(0, _BITS)
        for x, fmt in product:
            total = total + _exponent(x, fmt)
            known.append(_prove_weight(proving, x, fmt))
        bounds.append(total)
    known.append(_prove_weight(proving, c, spec.c_format))
    text = "e_max is that of a product's factors at most, or c's, or the least normal one of c's format"
    claim = z3.Or([wide <= bound for bound in bounds])
    proving.claim("e_max", text, claim, known)
    proving.conclude_all(z3.BoolVal(True))


def _exponent(x: Operand, fmt: Format) -> z3.BitVecRef:
    return fit(x.field, _BITS) - fmt.bias


def _prove_weight(proving: Composing, x: Operand, fmt: Format) -> z3.BoolRef:
    """Prove that 2^e is at most |x|, or the least normal number."""
    if not fmt.has_zero:
        return z3.BoolVal(True)  # a power of two
    text = "an operand has its leading bit, or the exponent of the least normal number"
    claim = z3.And(z3.UGE(x.field, 1), z3.Or(z3.UGE(x.significand, 1 << fmt.fraction_bits), x.field == 1))
    return proving.claim("weight", text, claim)


FormatFactor = tuple[Operand, Format]


def _terms(spec: DotAdd) -> tuple[list[list[FormatFactor]], Operand, z3.BitVecRef, int]:
    """(of each term its factors; c; e_max, and the exponent that 0 stands for)."""
    p = spec.parameters
    if p.loss in (LossModel.TERMS, LossModel.GROUPS):
        fused = fused_step(spec)
        step = fused.step
        scales: list[list[FormatFactor]] = [[] for _ in step.a]
        if spec.scale_format is not None:
            of = spec.scale_format
            scales = [[(s, of), (t, of)] for s, t in zip(*fused.scales, strict=True)]
        if p.loss is LossModel.GROUPS:  # of a group's products w is at least 1
            demand(spec.a_format.min_exponent >= 0, "a group's product may be less than 1")
            demand(spec.b_format.min_exponent >= 0, "a group's product may be less than 1")
            return scales, step.c, step.e_max, fused.exponents.low
        own = _pairs(spec, step.a, step.b)
        return [x + y for x, y in zip(own, scales, strict=True)], step.c, step.e_max, fused.exponents.low
    x = symbolic_inputs(spec)
    if p.loss is LossModel.ROUND_DOWN:
        assert isinstance(p, Fdrda)
        module = gfdrda if p.groups > 1 else fdrda
        one = module.step(spec, p, x.a, x.b, x.c)
        return _pairs(spec, one.a, one.b), one.c, one.e_max, fdrda.exponents_of(spec).low
    if p.loss is LossModel.HALVES:
        assert isinstance(p, DpaE9s12)
        e9 = dpa_e9s12.step(spec, p, x.a, x.b, x.c)
        return _pairs(spec, e9.a, e9.b), e9.c, e9.e_max, -2 * dpa_e9s12.BIAS
    raise ValueError(f"{p.algorithm} aligns no terms to a largest exponent")


def _pairs(spec: DotAdd, a: Sequence[Operand], b: Sequence[Operand]) -> list[list[FormatFactor]]:
    return [[(u, spec.a_format), (v, spec.b_format)] for u, v in zip(a, b, strict=True)]


# ---- the format that ρ rounds to -------------------------------------------------------------------------------------


def rounded_to(rho: Conversion) -> Format:
    """ρ's format, of the fraction bits that it keeps."""
    fmt, keep = rho.format, rho.fraction_bits
    if keep == fmt.fraction_bits:
        return fmt
    name, dropped = f"e{fmt.exponent_bits}m{keep}", fmt.fraction_bits - keep
    return replace(fmt, name=name, fraction_bits=keep, ignored_low_bits=dropped, dtype=None)


def is_nearest(rho: Conversion) -> bool:
    return rho.rounding in (Rounding.RNE, Rounding.RNA)
