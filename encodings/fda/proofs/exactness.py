"""Exactness and error bound of a step of fda, gdfs and gfda, and why alignment loses no bit where it is wide enough.

Every term, and the sum, is an integer of one fixed point, `places` below the unit u = 2^(e_max − F).  The condition is
that no term has a bit below u: the lowest `places` bits of its exact magnitude are 0, as they are of a zero.  Then

1. *term*:    what is aligned is the term;
2. *sum*:     the accumulator is the sum of the exact terms, for its error is the sum of theirs;
3. *ρ*:       d is ρ of the accumulator, by definition; and if that is one of ρ's numbers, d is it.

e_max is some term's exponent, so not above the largest that a finite term has (or e_zero).  A term that is not zero has
at least the least exponent of its format.  Where between the two no more places are lost than F keeps, the condition
holds of every input, and with it its conclusion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.cases.witness import inputs_text
from mmaformal.encodings.fda import Fda
from mmaformal.facts import alignment
from mmaformal.facts.exact_terms import prove_inputs
from mmaformal.facts.exactness import (
    ERRORS_OF_CHAIN,
    Exact,
    claims_of,
    conclude_bound,
    no_bit_below,
    prove_exact_steps,
    prove_kept,
    prove_number,
    settle_bound,
    too_many,
)
from mmaformal.facts.fused_steps import (
    AlignedTerms,
    Fused,
    fused_step,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_small,
    unit_exponent,
)
from mmaformal.facts.reaching import reach
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.fixed_sums import prove_accumulated, total_of, wide
from mmaformal.proof.kernel import demand
from mmaformal.solver.answers import Answer, Number
from mmaformal.spec import DotAdd, LossModel


def no_bit_below_unit(spec: DotAdd) -> z3.BoolRef:
    """Return the claim that no term of a step has a bit below the unit."""
    return z3.And(
        [no_bit_below(term.exact, term.places) for term in alignment.placed_terms(fused_step(spec))]
    )


def prove_fused(proving: Composing, spec: DotAdd, inputs: Inputs | None = None) -> Exact:
    """Raises NotProvedError."""
    one = one_step(spec)
    inputs = symbolic_inputs(one) if inputs is None else inputs
    x = fused_step(spec, inputs)
    ordinary, terms = claims_of(proving, lambda: prove_inputs(proving, one, inputs, x.step))
    at_most, some = prove_e_max(proving, x)
    prove_small(proving, x, at_most)
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


def prove_sum_kept(proving: Composing, x: AlignedTerms, at_most: list[z3.BoolRef]) -> z3.BoolRef:
    """Prove that where no term has a bit below the unit, the accumulator is the exact sum."""
    terms, total = alignment.placed_terms(x), x.total
    linked, _ = prove_accumulated(proving, terms, total, x.bounds)
    kept = [prove_kept(proving, term, [below]) for term, below in zip(terms, at_most, strict=True)]
    exact = total_of([term.signed_exact for term in terms])
    placed = wide(total, exact.size()) << terms[0].places
    whole = z3.And([claim.arg(0) for claim in kept])
    text = "so if no term has a bit below the unit, the sum is that of the exact terms"
    return proving.claim("exact sum", text, z3.Implies(whole, placed == exact), [linked, *kept])


def prove_lossless(proving: Composing, spec: DotAdd) -> str:
    """Prove that in each step what is rounded is the exact sum, for all numbers; returns that, for a person.

    Raises NotProvedError.
    """
    one = one_step(spec)
    claim, exact = prove_step(proving, one, symbolic_inputs(one))
    if spec != one:
        claim = z3.And(claim, prove_exact_steps(proving, spec, exact.chain))
    proving.conclude("no step loses a bit of any input, and d is its exact sum, rounded", claim, exact.atoms)
    return f"in each step d = {spec.parameters.last_rounding}(c + Σ a·b): alignment loses no bit of any input"


def prove_step(proving: Composing, spec: DotAdd, inputs: Inputs) -> tuple[z3.BoolRef, Exact]:
    """Prove that one step on these inputs rounds its exact sum, for all numbers; c may be a constant.

    Raises NotProvedError.
    """
    exact, x = prove_fused(proving, spec, inputs), fused_step(spec, inputs)
    if z3.is_bv_value(inputs.c):  # c has one exponent, and no other
        fmt, p = spec.c_format, spec.parameters_as(Fda)
        demand(inputs.c.as_long() == 0, "the constant c is +0")
        at = fmt.min_exponent if p.e_zero is None else p.e_zero
        x = replace(x, low=(*x.low[:-1], at), high=(*x.high[:-1], at))
    kept = _prove_condition(proving, spec, x, exact)
    return z3.And(z3.Implies(exact.ordinary, exact.conclusion), *kept), exact


def _prove_condition(proving: Composing, spec: DotAdd, x: Fused, exact: Exact) -> list[z3.BoolRef]:
    """Prove that where every input is a number, no term has a bit below the unit: a claim for each."""
    p, ordinary, ex = spec.parameters_as(Fda), exact.ordinary, x.exponents
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
    for k, (s, term, below) in enumerate(zip(x.summands, alignment.placed_terms(x), at_most, strict=True)):
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


def error_bound(instruction: Instruction, proving: Composing) -> Answer:
    """Return the error bound of a step of fda or gdfs, proved and reached."""
    spec = one_step(instruction.spec)
    answer = None if spec.parameters.loss is LossModel.GROUPS else too_many(instruction, proving)
    if answer is not None:
        return answer
    x = fused_step(spec)
    case = max(alignment.cases_of(spec, x), key=lambda case: case.n)
    n = Number("n", case.n, f"what the sum of a step is off at most, in units of 2^(e_max − {x.F})")
    question = (
        f"{instruction.label}: in each step d = {spec.parameters.last_rounding}(S) with "
        f"|S − exact| ≤ n · 2^(e_max − {x.F}), {n.text}, and no smaller n will do"
    )
    question += ERRORS_OF_CHAIN if spec != instruction.spec else ""

    def prove() -> None:
        bounded = partial(alignment.prove_fused_losses, proving, spec, x)
        conclude_bound(proving, instruction.spec, spec, x.step, bounded)

    return settle_bound(question, proving, (n,), prove, _reached(instruction))


def _reached(instruction: Instruction) -> Iterator[tuple[str | None, str]]:
    """Yield by which input the bound is reached, or why that is not known."""
    witness = reach(instruction)
    if witness is None:
        yield None, "the bound is proved, but no input was found that reaches it"
    else:
        codes = " ".join(inputs_text(witness.instruction.spec, witness.codes)[-1].split())
        yield f"reached (`reaching.reach`), with {codes}: {witness.notes[0]}", ""
