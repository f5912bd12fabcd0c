"""Facts of gfda.  Exactness of a step is that of fda, with the sums of groups as terms, and of each group's sum.

The sum of a group, the term, is that of its products where none of these has a bit below 2^(g − W), g the group's
largest exponent.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.cases.falling_products import falls_with_a_product, random_searches
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.fda.proofs.exactness import prove_fused, prove_sum_kept
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import smt as gfda
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.facts.fused_steps import AlignedTerms, fused_step
from mmaformal.facts.monotone_fused import products_allowed, prove_in_c
from mmaformal.facts.protocol import Facts
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import limited, wide
from mmaformal.proof.fused import Summand, prove_largest
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


def _prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    p, step = spec.parameters_as(Gfda), fused_step(spec).step
    assert isinstance(step, gfda.GfdaStep)
    sums = [
        claims_of(proving, lambda i=i: _prove_group(proving, _group_sum(spec, step, i), step.groups[i]))  # type: ignore[misc]
        for i in range(len(step.groups))
    ]
    of_step = prove_fused(proving, spec)
    kept = [whole for whole, _ in sums]
    text = (
        f"in each step d = {p.rho}(S), and S = c + Σ s where no s and not c has a bit below 2^(e_max − {p.F}); if S is"
        f" a number of {p.rho}'s, d = S; s, the sum of a group, is that of its products where none has a bit below"
        f" 2^(g − {p.W}), g the group's largest exponent"
    )
    conclusion = z3.And(of_step.conclusion, *(claims for _, claims in sums))
    return replace(of_step, condition=z3.And(of_step.condition, *kept), conclusion=conclusion, text=text)


def _group_sum(spec: DotAdd, step: gfda.GfdaStep, i: int) -> AlignedTerms:
    """The products of a group, and their sum."""
    p, group = spec.parameters_as(Gfda), step.groups[i]
    inside = slice(i * p.G, (i + 1) * p.G)
    f = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    factors = [(u.significand, v.significand) for u, v in zip(step.a[inside], step.b[inside], strict=True)]
    summands = [
        Summand("product", product, magnitude, f, pair)
        for product, magnitude, pair in zip(step.products[inside], group.aligned, factors, strict=True)
    ]
    bounds = tuple((1 << magnitude.size()) - 1 for magnitude in group.aligned)
    exponents = gfda.exponents_of(spec, p)
    return AlignedTerms(
        tuple(summands), bounds, e_max=group.e_max, total=group.total, exponents=exponents, F=p.W
    )


def _prove_group(proving: Composing, x: AlignedTerms, group: gfda.Group) -> z3.BoolRef:
    """Prove that the term is the sum of a group's products where none has a bit below the unit; returns that none
    has."""
    at_most, _ = prove_largest(
        proving, "exponents of a group", x.e_max, [s.term.exponent for s in x.summands]
    )
    same = prove_sum_kept(proving, x, at_most)
    bits = x.total.size() + 1
    magnitude = fit(group.term.significand, bits)
    signed = z3.If(group.term.sign == 1, -magnitude, magnitude) == wide(x.total, bits)
    proving.claim("group", "the term is the sum of the group", signed, [limited(x.total, sum(x.bounds))])
    return same.arg(0)


class GfdaFacts(Facts[gfda.GfdaStep]):
    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return _prove_step(proving, spec)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        spec, p = instruction.spec, instruction.spec.parameters_as(Gfda)
        allowed = products_allowed(spec)  # c gains what so many groups lose
        if p.cut is not Rounding.RZ or allowed < p.L // p.G:
            why = f"there is an argument for {allowed} groups whose sums are cut toward zero"
            raise NotProvedError("d grows with c", "unknown", why)
        prove_in_c(theory, spec)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        p = instruction.spec.parameters_as(Gfda)
        return falls_with_a_product(instruction, random_searches(instruction.spec, p.F))


FACTS = GfdaFacts("gfda")
