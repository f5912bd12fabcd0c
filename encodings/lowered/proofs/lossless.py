"""Why alignment loses no bit of any input in a separated dot-add: all products in one fda step from c = +0.

That is `fda/lossless` of a c that is the constant +0; then c is added by an IEEE addition, which rounds the exact sum.
"""

from __future__ import annotations

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda.proofs.lossless import prove_step
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import canonical_nan
from mmaformal.facts.additions import Addition, finite
from mmaformal.facts.exact_terms import prove_lowered
from mmaformal.facts.exactness import prove_steps
from mmaformal.facts.protocol import Lossless
from mmaformal.proof.composition import Composing
from mmaformal.spec import DotAdd


def decides(spec: DotAdd) -> Lossless | None:
    """What the width depends on; None where operands are converted, or one inner step's sum is the next one's c."""
    p = spec.parameters
    assert isinstance(p, Lowered)
    if p.operands is not None or len(p.order) != p.L:
        return None
    e_zero = spec.c_format.min_exponent if p.e_zero is None else p.e_zero
    return Lossless(spec.a_format, spec.b_format, None, p.L, e_zero)


def prove_lossless(proving: Composing, spec: DotAdd) -> str:
    """That the products' exact sum is rounded, and then that of c and the result; returns that, for a person.

    Raises NotProvedError.
    """
    p, fmt = spec.parameters, spec.d_format
    assert isinstance(p, Lowered)
    inner = p.inner_dot_add(one_step(spec))
    x = symbolic_inputs(inner)
    products, exact = prove_step(proving, inner, Inputs(x.a, x.b, z3.BitVecVal(0, fmt.storage_bits)))
    made = prove_lowered(proving, spec)
    u, v = z3.BitVecs("x y", fmt.storage_bits)
    a = Addition(u, v, ieee.add(u, v, p.addition, canonical_nan(fmt)).result, p.addition)
    a.prove(proving)
    addition = z3.Implies(z3.And(finite(u, fmt), finite(v, fmt)), z3.And(a.rounded, a.is_kept))
    claim = z3.And(products, *made, addition)
    if spec != one_step(spec):
        claim = z3.And(claim, prove_steps(proving, spec, exact.chain))
    proving.conclude("no step loses a bit of any input, and rounds its exact sum", claim, exact.letters)
    return f"in each step d = {p.addition}(c + {p.rho}(Σ a·b)): alignment loses no bit of any input"
