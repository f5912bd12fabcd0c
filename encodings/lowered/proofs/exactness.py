"""Exactness of a lowered instruction: that of its fda steps on converted operands, then of the addition of c."""

from __future__ import annotations

from fractions import Fraction

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.fda.proofs import exactness as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import canonical_nan
from mmaformal.facts.additions import Addition, finite
from mmaformal.facts.exact_terms import prove_chain, prove_lowered
from mmaformal.facts.exactness import Exact, prove_exact_so_far
from mmaformal.facts.exactness_codes import Rounding, Roundings, addend, aligned, products, total
from mmaformal.proof.composition import Composing
from mmaformal.spec import DotAdd


def inner(spec: DotAdd) -> DotAdd:
    """The fused part of one instruction."""
    p = spec.parameters
    assert isinstance(p, Lowered)
    return p.inner_dot_add(spec)


def condition(spec: DotAdd) -> z3.BoolRef:
    """Of one of the fda steps."""
    return fda.condition(inner(spec))


def prove_lowered_exact(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    p = spec.parameters
    assert isinstance(p, Lowered)
    of_dot = fda.prove_fused(proving, inner(spec))
    made, chain = prove_lowered(proving, spec), prove_chain(proving, inner(spec))
    fmt = spec.d_format
    x, y, z = z3.BitVecs("x y z", fmt.storage_bits)
    a = Addition(x, y, ieee.add(x, y, p.addition, canonical_nan(fmt)).result, p.addition)
    a.prove(proving)
    number = a.prove_number(proving, z)
    count = inner(spec).k // p.L + 1
    so_far = prove_exact_so_far(proving, count, 4 << fmt.exponent_bits)
    addition = z3.Implies(z3.And(finite(x, fmt), finite(y, fmt)), z3.And(a.rounded, a.is_kept))
    last = z3.Implies(z3.And(finite(x, fmt), finite(y, fmt), a.is_sum(z)), number.arg(1))
    of_step = z3.Implies(of_dot.ordinary, of_dot.conclusion)
    converted = f"a and b are converted to {p.operands} exactly; then " if p.operands else ""
    text = (
        f"{converted}{of_dot.text}, c the result before, or +0; last d ="
        f" {p.addition}(c + the result before) if both are numbers, and if that is one of {fmt}, d is it; so where the"
        " results before are exact sums, d rounds that of all"
    )
    everything = z3.And(*made, *chain, of_step, addition, last, so_far)
    return Exact(z3.BoolVal(True), of_dot.condition, everything, of_dot.letters, text)


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
