"""Exactness of a lowered instruction: that of its fda steps on converted operands, then of the addition of c; and why
alignment loses no bit of any input in a separated dot-add: all products in one fda step from c = +0.
"""

from __future__ import annotations

from fractions import Fraction

import z3

from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda.proofs import exactness as fda
from mmaformal.encodings.fda.proofs.exactness import prove_step
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import canonical_nan
from mmaformal.facts.exact_terms import prove_chain, prove_lowered
from mmaformal.facts.exactness import (
    Exact,
    Rounding,
    Roundings,
    addend,
    aligned,
    products,
    prove_exact_so_far,
    prove_steps,
    total,
)
from mmaformal.facts.protocol import Lossless
from mmaformal.proof.composition import Composing
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import Addition


def inner(spec: DotAdd) -> DotAdd:
    """The fused part of one instruction."""
    p = spec.parameters
    assert isinstance(p, Lowered)
    return p.inner_dot_add(spec)


def condition(spec: DotAdd) -> z3.BoolRef:
    """Returns the condition of one of the fda steps."""
    return fda.condition(inner(spec))


def _addition_of(spec: DotAdd) -> Addition:
    """The addition that such an instruction ends with, of any two codes."""
    p, fmt = spec.parameters, spec.d_format
    assert isinstance(p, Lowered)
    x, y = z3.BitVecs("x y", fmt.storage_bits)
    return Addition(x, y, ieee.add(x, y, p.addition, canonical_nan(fmt)).result, p.addition)


def _prove_rounds(proving: Composing, a: Addition) -> z3.BoolRef:
    a.prove(proving)
    return z3.Implies(a.finite, z3.And(a.rounded, a.is_kept))


def prove_lowered_exact(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    p = spec.parameters
    assert isinstance(p, Lowered)
    of_dot = fda.prove_fused(proving, inner(spec))
    made, chain = prove_lowered(proving, spec), prove_chain(proving, inner(spec))
    fmt = spec.d_format
    a, z = _addition_of(spec), z3.BitVec("z", fmt.storage_bits)
    rounds = _prove_rounds(proving, a)
    number = a.prove_number(proving, z)
    count = inner(spec).k // p.L + 1
    so_far = prove_exact_so_far(proving, count, 4 << fmt.exponent_bits)
    last = z3.Implies(z3.And(*a.finite.children(), a.is_sum(z)), number.arg(1))
    of_step = z3.Implies(of_dot.ordinary, of_dot.conclusion)
    converted = f"a and b are converted to {p.operands} exactly; then " if p.operands else ""
    text = (
        f"{converted}{of_dot.text}, c the result before, or +0; last d ="
        f" {p.addition}(c + the result before) if both are numbers, and if that is one of {fmt}, d is it; so where the"
        " results before are exact sums, d rounds that of all"
    )
    everything = z3.And(*made, *chain, of_step, rounds, last, so_far)
    return Exact(z3.BoolVal(True), of_dot.condition, everything, of_dot.letters, text)


def decides_losses(spec: DotAdd) -> Lossless | None:
    """Returns what the width depends on; None where operands are converted, or one inner step's sum is the next one's
    c."""
    p = spec.parameters
    assert isinstance(p, Lowered)
    if p.operands is not None or len(p.order) != p.L:
        return None
    e_zero = spec.c_format.min_exponent if p.e_zero is None else p.e_zero
    return Lossless(spec.a_format, spec.b_format, None, p.L, e_zero)


def prove_lossless(proving: Composing, spec: DotAdd) -> str:
    """Prove that the products' exact sum is rounded, and then that of c and the result; returns that, for a person.

    Raises NotProvedError.
    """
    p, fmt = spec.parameters, spec.d_format
    assert isinstance(p, Lowered)
    inner = p.inner_dot_add(one_step(spec))
    x = symbolic_inputs(inner)
    products, exact = prove_step(proving, inner, Inputs(x.a, x.b, z3.BitVecVal(0, fmt.storage_bits)))
    made = prove_lowered(proving, spec)
    claim = z3.And(products, *made, _prove_rounds(proving, _addition_of(spec)))
    if spec != one_step(spec):
        claim = z3.And(claim, prove_steps(proving, spec, exact.chain))
    proving.conclude("no step loses a bit of any input, and rounds its exact sum", claim, exact.letters)
    return f"in each step d = {p.addition}(c + {p.rho}(Σ a·b)): alignment loses no bit of any input"


# ---- on codes --------------------------------------------------------------------------------------------------------


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    p, terms = spec.parameters, products(spec, codes)
    assert isinstance(p, Lowered)
    c = spec.c_format.value(codes.c)
    for start in range(0, spec.k, p.step_products):
        dot = Fraction(0)
        for first in range(0, p.step_products, p.L):
            part = [terms[start + k] for k in p.order[first : first + p.L]]
            whole = aligned([*part, addend(dot, spec.d_format)], p.F, p.e_zero)
            dot += total(part)
            yield Rounding(whole, dot, p.rho)
        c += dot
        yield Rounding(True, c, p.addition)
