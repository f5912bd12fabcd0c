"""The steps of the fused algorithms in the SMT encoding, seen alike: terms, the unit they are aligned to, a sum, ρ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import smt as gfda
from mmaformal.encodings.smt.blocks import ExponentRange, Operand, Term, exponent_range
from mmaformal.encodings.smt.stages import Stages
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit, is_rounded
from mmaformal.proof.fixed_sums import accumulate
from mmaformal.proof.fused import Summand, prove_largest
from mmaformal.proof.sticky_sums import magnitude_of
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel


@dataclass(frozen=True)
class Fused:
    """A step of fda, gdfs or gfda: all terms, c the last of them, are aligned to one unit u = 2^(e_max - F)."""

    step: fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep
    summands: tuple[Summand, ...]
    exponents: ExponentRange
    low: tuple[int, ...]  #: of each summand, the least exponent it has where it is not zero
    high: tuple[int, ...]  #: and the largest one of finite inputs
    least: int  #: a lower bound of e_max
    F: int
    rho: Conversion
    bounds: tuple[int, ...]  #: of each aligned magnitude

    @property
    def scales(self) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """The scales of a and those of b, one for each product or group; gfda has none."""
        step = self.step
        return ((), ()) if isinstance(step, gfda.GfdaStep) else (step.scale_a, step.scale_b)

    @property
    def whole(self) -> AlignedTerms:
        """All of its terms, and their sum."""
        return AlignedTerms(
            self.summands,
            self.bounds,
            e_max=self.step.e_max,
            total=self.step.total,
            exponents=self.exponents,
            F=self.F,
        )


@dataclass(frozen=True)
class AlignedTerms:
    """Terms that are aligned to one unit 2^(e_max - F) and added: all of a step, or a group."""

    summands: tuple[Summand, ...]
    bounds: tuple[int, ...]  #: of each aligned magnitude
    e_max: z3.BitVecRef
    total: z3.BitVecRef
    exponents: ExponentRange
    F: int

    @property
    def signed(self) -> list[tuple[z3.BitVecRef, z3.BitVecRef]]:
        """Signs and aligned magnitudes."""
        return [(s.term.sign, s.aligned) for s in self.summands]


def fused_step(spec: DotAdd, inputs: Inputs | None = None) -> Fused:
    """The step of an fda, gdfs or gfda model on symbolic inputs."""
    p = spec.parameters
    x = symbolic_inputs(one_step(spec)) if inputs is None else inputs
    c = exponent_range(spec.c_format)
    c_high = spec.c_format.max_exponent
    step: fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep
    terms: Sequence[Term]
    factors: list[tuple[z3.BitVecRef, ...]]
    if p.loss is LossModel.TERMS_AND_GROUPS:
        assert isinstance(p, Gfda)
        step = gfda.step(spec, p, x.a, x.b, x.c, Stages())
        f, low = p.W, spec.a_format.min_exponent + spec.b_format.min_exponent
        high = spec.a_format.max_exponent + spec.b_format.max_exponent
        factors = [(group.total,) for group in step.groups]
        terms, exponents = [group.term for group in step.groups], gfda.exponents_of(spec, p)
    elif p.loss is LossModel.TERMS:
        assert isinstance(p, Fda)
        step = fda.dot_add(one_step(spec), x.a, x.b, x.c, x.scale_a, x.scale_b).steps[0]
        f = spec.a_format.fraction_bits + spec.b_format.fraction_bits
        low = spec.a_format.min_exponent + spec.b_format.min_exponent
        high = spec.a_format.max_exponent + spec.b_format.max_exponent
        if spec.scale_format is not None:
            low, high = low + 2 * spec.scale_format.min_exponent, high + 2 * spec.scale_format.max_exponent
        factors = [(u.significand, v.significand) for u, v in zip(step.a, step.b, strict=True)]
        terms, exponents = step.products, fda.exponents_of(spec, p)
    else:
        assert isinstance(p, Gdfs)
        assert spec.scale_format is not None
        step = gdfs.dot_add(one_step(spec), x.a, x.b, x.c, x.scale_a, x.scale_b).steps[0]
        m = spec.scale_format.fraction_bits
        f = 2 + 2 * m
        low, high = 2 * spec.scale_format.min_exponent, 2 * spec.scale_format.max_exponent
        pairs = zip(step.scale_a, step.scale_b, strict=True)
        significands = [(u.significand, v.significand) if m else () for u, v in pairs]
        factors = [(total, *pair) for total, pair in zip(step.sums, significands, strict=True)]
        terms, exponents = step.groups, gdfs.exponents_of(spec, p)
    names = ["product" if p.loss is LossModel.TERMS else "group"] * len(terms)
    summands = [
        Summand(name, term, aligned, f, tuple(pair))
        for name, term, aligned, pair in zip(names, terms, step.aligned, factors, strict=True)
    ]
    bounds = [(1 << aligned.size()) - 1 for aligned in (*step.aligned, step.aligned_c)]
    if p.loss is LossModel.GROUPS:
        assert isinstance(p, Gdfs)
        bounds[:-1] = [gdfs.group_bound(spec, p) << (p.F - f)] * len(terms)
    M = spec.c_format.fraction_bits
    summands.append(Summand("c", step.addend, step.aligned_c, M, (step.c.significand,)))
    return Fused(
        step,
        tuple(summands),
        exponents=exponents,
        low=(low,) * len(terms) + (c.low,),
        high=(high,) * len(terms) + (c_high,),
        least=fda.lowest_e_max(spec, p.e_zero),
        F=p.F,
        rho=p.rho,
        bounds=tuple(bounds),
    )


# ---- what is proved of each --------------------------------------------------------------------------------------


def prove_e_max(proving: Composing, x: Fused) -> tuple[list[z3.BoolRef], z3.BoolRef]:
    """(each term's exponent is at most e_max; one of them is it)."""
    return prove_largest(proving, "exponents", x.step.e_max, [s.term.exponent for s in x.summands])


def prove_small(proving: Composing, x: Fused, at_most: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
    """Each aligned magnitude is at most its bound.  `at_most` is from `prove_e_max`."""
    return [_within(proving, x, k, at_most[k]) for k in range(len(x.summands))]


#: The largest product of two e2m1 numbers, in units of its last place.
E2M1_PRODUCT = 144


def _within(proving: Composing, x: Fused, k: int, below: z3.BoolRef) -> z3.BoolRef:
    """Return the claim that the k-th aligned magnitude is at most its bound."""
    summand, bound = x.summands[k], x.bounds[k]
    small = z3.ULE(summand.aligned, bound)
    if bound == (1 << summand.aligned.size()) - 1:
        return small
    # gdfs: products of e2m1, their sum, that with its scales, and that aligned.
    step = x.step
    assert isinstance(step, gdfs.GdfsStep)
    products = step.products[k * len(step.products) // (len(x.summands) - 1) :]
    products = products[: len(step.products) // (len(x.summands) - 1)]
    each = [
        proving.claim("e2m1 product", "a product of e2m1 is at most 36", z3.ULE(magnitude, E2M1_PRODUCT))
        for _, magnitude in products
    ]
    sigma = step.sums[k]
    bounds = [E2M1_PRODUCT] * len(products)
    of_sum = accumulate(proving, sigma, products, bounds, each).prove_range(proving)
    largest = bound >> max(x.F - summand.fraction_bits, 0)
    scaled = proving.claim(
        "scaled group",
        "and with its scales, at most that times the largest of them",
        z3.ULE(summand.term.significand, largest),
        [of_sum],
    )
    return proving.claim("aligned group", "and no more when aligned", small, [scaled, below])


def unit_exponent(e_max: z3.BitVecRef, exponents: ExponentRange, F: int) -> z3.BitVecRef:
    """e_max - F in two's complement, wide enough for `is_rounded`."""
    bits = exponents.bits + max(abs(exponents.low - F), 1).bit_length() + 3
    return fit(e_max, bits) + (exponents.low - F)


def prove_highest(
    proving: Composing, x: Fused, at_most: Sequence[z3.BoolRef], some: z3.BoolRef
) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(e_max is in its range; it is at least `x.least`), from what `prove_e_max` gives."""
    e_max, high, least = x.step.e_max, x.exponents.constant(x.exponents.high), x.exponents.constant(x.least)
    each = [
        proving.claim(f"{s.name} in range", "no exponent is above its range", z3.ULE(s.term.exponent, high))
        for s in x.summands
    ]
    highest = proving.claim(
        "e_max in range", "so e_max is not above its range", z3.ULE(e_max, high), [*each, some]
    )
    c = x.summands[-1].term.exponent
    lowest = proving.claim("c's exponent", f"c's exponent is at least {x.least}", z3.UGE(c, least))
    text = f"so e_max is at least {x.least}"
    return highest, proving.claim("e_max", text, z3.UGE(e_max, least), [lowest, at_most[-1]])


def prove_rounding(proving: Composing, x: Fused, e_max_range: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Where no input is special, d is ρ(total · 2^(e_max - F)), by the definition of rounding.

    `e_max_range` is what `prove_highest` gives.
    """
    e_max, total, special = x.step.e_max, x.step.total, x.step.special
    reach = sum(x.bounds)
    t = unit_exponent(e_max, x.exponents, x.F)
    return prove_fused_rounded(
        proving,
        x.step.result,
        total=total,
        t=t,
        rho=x.rho,
        special=special,
        premises=[*e_max_range],
        reach=reach,
    )


def prove_fused_rounded(
    proving: Composing,
    code: z3.BitVecRef,
    total: z3.BitVecRef,
    t: z3.BitVecRef,
    rho: Conversion,
    special: Sequence[z3.BoolRef],
    premises: Sequence[z3.BoolRef],
    reach: int,
) -> z3.BoolRef:
    """Where nothing is special, `code` is ρ(total · 2^t), for |total| ≤ reach."""
    negative, m = magnitude_of(total)
    sign = z3.Extract(code.size() - 1, code.size() - 1, code) == 1
    zero = z3.Extract(code.size() - 2, 0, code) == 0
    return proving.claim(
        f"rounded by {rho}",
        f"d is {rho} of the sum: by definition, no other number of the format is the right one",
        z3.Implies(
            z3.Not(z3.Or(*special)),
            z3.And(is_rounded(m, t, code, rho, negative), z3.Or(zero, sign == negative)),
        ),
        [*premises, total <= reach, total >= -reach],
    )
