"""Exactness of a step of fda, gdfs and gfda: where alignment cuts nothing off, what is rounded is the exact sum.

Every term, and the sum, is an integer of one fixed point, `places` below the unit u = 2^(e_max − F).  The condition is
that no term has a bit below u: the lowest `places` bits of its exact magnitude are 0, as they are of a zero.  Then

1. *term*:    what is aligned is the term;
2. *sum*:     the accumulator is the sum of the exact terms, for its error is the sum of theirs;
3. *ρ*:       d is ρ of the accumulator, by definition; and if that is one of ρ's numbers, d is it.
"""

from __future__ import annotations

import z3

from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda import Fda
from mmaformal.facts.exact_terms import prove_inputs
from mmaformal.facts.exactness import Exact, claims_of, no_bit_below, prove_kept, prove_number
from mmaformal.facts.exactness_codes import Roundings, aligned, roundings_of_steps
from mmaformal.facts.fused_steps import (
    Aligned,
    Fused,
    fused_step,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_total,
    unit_exponent,
)
from mmaformal.proof.composition import Composing, Placed, place, prove_accumulated, total_of, wide
from mmaformal.spec import DotAdd


def placed_terms(x: Fused | Aligned) -> list[Placed]:
    """The terms of a step, or of a group, in a fixed point that holds every one of them exactly."""
    x = x.whole if isinstance(x, Fused) else x
    ex, most = x.exponents, max(s.fraction_bits for s in x.summands)
    places = (1 << ex.bits) - 1 + max(most - x.F, 0)
    bits = places + sum(x.bounds).bit_length() + 3
    return [
        place(
            s.name,
            s.term.sign,
            s.term.significand,
            below=x.e_max - s.term.exponent,
            aligned=s.aligned,
            places=places,
            bits=bits,
            lift=x.F - s.fraction_bits,
        )
        for s in x.summands
    ]


def condition(spec: DotAdd) -> z3.BoolRef:
    """That no term of a step has a bit below the unit."""
    return z3.And([no_bit_below(term.exact, term.places) for term in placed_terms(fused_step(spec))])


def prove_fused(proving: Composing, spec: DotAdd, inputs: Inputs | None = None) -> Exact:
    """Raises NotProvedError."""
    one = one_step(spec)
    inputs = symbolic_inputs(one) if inputs is None else inputs
    x = fused_step(spec, inputs)
    ordinary, terms = claims_of(proving, lambda: prove_inputs(proving, one, inputs, x.step))
    at_most, some = prove_e_max(proving, x)
    prove_total(proving, x, at_most)
    rounded = prove_rounding(proving, x, prove_highest(proving, x, at_most, some))
    none = z3.Not(z3.Or(*x.step.special))
    t = unit_exponent(x.step.e_max, x.exponents, x.F)
    number = prove_number(
        proving, x.step.result, total=x.step.total, t=t, rho=x.rho, rounded=rounded, none=none
    )
    same = prove_sum_kept(proving, x.whole, at_most)
    unit = f"2^(e_max − {x.F})"
    text = (
        f"in each step d = {x.rho}(S), and S = c + Σ a·b where no term has a bit below {unit}; if S is a number of"
        f" {x.rho}'s, d = S"
    )
    return Exact(ordinary, same.arg(0), z3.And(terms, same, number), (ordinary, none), text)


def prove_sum_kept(proving: Composing, x: Aligned, at_most: list[z3.BoolRef]) -> z3.BoolRef:
    """That where no term has a bit below the unit, the accumulator is the exact sum."""
    terms, total = placed_terms(x), x.total
    linked, _ = prove_accumulated(proving, terms, total, x.bounds)
    kept = [prove_kept(proving, term, [below]) for term, below in zip(terms, at_most, strict=True)]
    exact = total_of([term.signed_exact for term in terms])
    placed = wide(total, exact.size()) << terms[0].places
    whole = z3.And([claim.arg(0) for claim in kept])
    text = "so if no term has a bit below the unit, the sum is that of the exact terms"
    return proving.claim("exact sum", text, z3.Implies(whole, placed == exact), [linked, *kept])


# ---- on codes --------------------------------------------------------------------------------------------------------


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    p = spec.parameters
    assert isinstance(p, Fda)
    F, e_zero = p.F, p.e_zero
    return roundings_of_steps(spec, codes, lambda _, terms, c: aligned([*terms, c], F, e_zero))
