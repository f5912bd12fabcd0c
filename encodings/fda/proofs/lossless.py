"""Why alignment loses no bit of any input in a step of fda: by the exponents that terms can have.

e_max is some term's exponent, so not above the largest that a finite term has (or e_zero).  A term that is not zero has
at least the least exponent of its format.  Between the two no more places are lost than F keeps.  So the condition of
`exactness` holds of every input, and with it its conclusion.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda.proofs.exactness import placed_terms, prove_fused
from mmaformal.facts.exactness import Exact, no_bit_below, prove_steps
from mmaformal.facts.fused_steps import Fused, fused_step, prove_e_max
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import demand
from mmaformal.spec import DotAdd


def prove_lossless(proving: Composing, spec: DotAdd) -> str:
    """That in each step what is rounded is the exact sum, for all numbers; returns that, for a person.

    Raises NotProvedError.
    """
    one = one_step(spec)
    claim, exact = prove_step(proving, one, symbolic_inputs(one))
    if spec != one:
        claim = z3.And(claim, prove_steps(proving, spec, exact.chain))
    proving.conclude(
        "no step loses a bit of any input, and d is its exact sum, rounded", claim, exact.letters
    )
    return f"in each step d = {spec.parameters.last_rounding}(c + Σ a·b): alignment loses no bit of any input"


def prove_step(proving: Composing, spec: DotAdd, inputs: Inputs) -> tuple[z3.BoolRef, Exact]:
    """That one step on these inputs rounds its exact sum, for all numbers; c may be a constant.

    Raises NotProvedError.
    """
    exact, x = prove_fused(proving, spec, inputs), fused_step(spec, inputs)
    if z3.is_bv_value(inputs.c):  # c has one exponent, and no other
        fmt, p = spec.c_format, spec.parameters
        assert isinstance(p, Fda)
        demand(inputs.c.as_long() == 0, "the constant c is +0")
        at = fmt.min_exponent if p.e_zero is None else p.e_zero
        x = replace(x, low=(*x.low[:-1], at), high=(*x.high[:-1], at))
    kept = _prove_condition(proving, spec, x, exact)
    return z3.And(z3.Implies(exact.ordinary, exact.conclusion), *kept), exact


def _prove_condition(proving: Composing, spec: DotAdd, x: Fused, exact: Exact) -> list[z3.BoolRef]:
    """That where every input is a number, no term has a bit below the unit: a claim for each."""
    p, ordinary, ex = spec.parameters, exact.ordinary, x.exponents
    assert isinstance(p, Fda)
    at_most, some = prove_e_max(proving, x)
    tops = [s.term.exponent == x.step.e_max for s in x.summands]
    high, low = [], []
    for s, least, most in zip(x.summands, x.low, x.high, strict=True):
        e = s.term.exponent
        most = most if p.e_zero is None else max(most, p.e_zero)
        text = "the exponent of a number is at most that of the largest, or e_zero"
        high.append(proving.claim(f"{s.name} high", text, z3.Implies(ordinary, z3.ULE(e, ex.constant(most)))))
        zero = z3.Or([factor == 0 for factor in s.factors])
        text = "a term that is not zero has at least the least exponent of its format"
        low.append(proving.claim(f"{s.name} low", text, z3.Or(zero, z3.UGE(e, ex.constant(least)))))
    claims = []
    for k, (s, term, below) in enumerate(zip(x.summands, placed_terms(x), at_most, strict=True)):
        kept = no_bit_below(term.exact, term.places)
        cases = []
        for j, top in enumerate(tops):
            text = (
                f"a {s.name} keeps every bit where {'it' if j == k else f'a {x.summands[j].name}'} has e_max"
            )
            claim = z3.Implies(z3.And(ordinary, top), kept)
            cases.append(proving.claim(f"{s.name} under {j}", text, claim, [high[j], low[k], below]))
        text = "so it keeps every bit, whichever has it"
        claims.append(proving.claim(f"{s.name} kept", text, z3.Implies(ordinary, kept), [*cases, some]))
    return claims
