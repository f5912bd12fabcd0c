"""A step is an addition: d is c plus the d of c = 0, by IEEE 754.

Of pfma, where no such sum is subnormal; of muladd, whose rounded product is added to c; and of an fma of products that
fp32 holds, which is proved to be that muladd.  Both d may differ in the signs of zeros, and in NaNs: pfma's keep
payloads.  What is equal but for those stays so in a step, and in an addition; so it does in every tree of additions
whose leaves are steps, by induction over the tree.
"""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan, magnitude
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import smt as muladd
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.smt import INVALID, flush
from mmaformal.encodings.smt import ieee
from mmaformal.facts.one_code import prove_codes_equal
from mmaformal.facts.protocol import LastAddition
from mmaformal.facts.registry import facts_of
from mmaformal.formats import fp32
from mmaformal.proof.kernel import NotProvedError, by_rule, prove
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

_TREES = (
    "trees of additions: what is alike stays alike in a step and in an addition, so the results of two structures are "
    "alike if they add what the steps give alone in the same tree"
)

TEXT = "d is c plus the d of c = 0, in fp32 by IEEE 754, but for signs of zeros and NaNs"
WITHOUT_SUBNORMALS = f"{TEXT}, while no sum is subnormal"


def subnormal(code: z3.BitVecRef) -> z3.BoolRef:
    size = magnitude(code, fp32)
    return z3.And(size != 0, z3.ULT(size, 1 << fp32.fraction_bits))


def like(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """The codes are the same, or both zero, or both NaN."""
    zeros = z3.And(magnitude(x, fp32) == 0, magnitude(y, fp32) == 0)
    return z3.Or(x == y, zeros, z3.And(is_nan(x, fp32), is_nan(y, fp32)))


def of_flushed_pairs(asker: Asker, spec: DotAdd) -> LastAddition | None:
    """The addition that a step of pfma is, proved; None if it is not proved in the time left."""
    x = symbolic_inputs(spec)
    step = pfma.dot_add(spec, x.a, x.b, x.c).steps[-1]
    alone = pfma.dot_add(spec, x.a, x.b, _zero()).steps[-1]
    return _settled(
        asker, WITHOUT_SUBNORMALS, _is_addition(x, step.result, alone.result, step.sum, flushed=True)
    )


def of_exact_products(asker: Asker, spec: DotAdd) -> LastAddition | None:
    """The addition that a step is whose d is the exact c + a·b, rounded once, if fp32 holds every product; None if it
    is not proved in the time left.

    It is that of muladd, which the step is proved to be, or is.
    """
    added = spec if isinstance(spec.parameters, Muladd) else _added(spec)
    if added is None or not _is_ieee(added):
        return None
    same: tuple[Proof, ...] = ()
    if added != spec:
        proof = prove_codes_equal(asker, spec, added, z3.BoolVal(True))
        if proof is None:
            return None
        same = (proof,)
    x = symbolic_inputs(added)
    step = muladd.dot_add(added, x.a, x.b, x.c).steps[-1]
    alone = muladd.dot_add(added, x.a, x.b, _zero()).steps[-1]
    return _settled(asker, TEXT, _is_addition(x, step.result, alone.result, step.product.result), *same)


def _added(spec: DotAdd) -> DotAdd | None:
    """The muladd in fp32 of a model's factors; None where fp32 does not hold every product."""
    try:
        added = spec.replace(parameters=Muladd(product=IEEE_FP32, rho=IEEE_FP32))
    except ValueError:
        return None
    return added if facts_of(added).rounds_exactly(added) is not None else None


def _is_ieee(spec: DotAdd) -> bool:
    """Whether a muladd of one product adds in fp32 by IEEE 754."""
    return spec.parameters.last_rounding == IEEE_FP32 and spec.c_format == spec.d_format == fp32


def _zero() -> z3.BitVecRef:
    return z3.BitVecVal(0, fp32.storage_bits)


def _settled(asker: Asker, text: str, pairing: Pairing, *same: Proof) -> LastAddition | None:
    try:
        return LastAddition(text, by_rule(_TREES, *same, prove(asker, _additions()), prove(asker, pairing)))
    except NotProvedError:
        return None


def _is_addition(
    x: Inputs, d: z3.BitVecRef, alone: z3.BitVecRef, products: z3.BitVecRef, flushed: bool = False
) -> Pairing:
    """The theorem that the `d` of c is like a total, if c is, plus the d of c = 0, which is `alone`; `flushed`: or a
    sum is subnormal, and subnormal products are flushed."""
    pairing, c, total = Pairing(), x.c, z3.BitVec("total", fp32.storage_bits)
    sum_ = ieee.add(total, alone, IEEE_FP32, INVALID).result
    given = pairing.assume("c is the total so far", Link(like(c, total), (c, total)))
    kept = flush(products) if flushed else products
    zero_added = Link(like(alone, kept), (alone, products))
    pairing.derive("accumulate", "with c = 0, the result is the products' sum", [zero_added], [], [products])
    unless = [subnormal(total), subnormal(sum_)] if flushed else []
    text = "the results are alike" + (", or the total is subnormal" if flushed else "")
    link = Link(z3.Or(*unless, like(d, sum_)), ())
    pairing.derive("accumulate", text, [link], [given, zero_added])
    pairing.conclude(text, link)
    return pairing


def _additions() -> Pairing:
    """The theorem that sums of totals that are alike are alike."""
    pairing, bits = Pairing(), fp32.storage_bits
    x, y, u, v = (z3.BitVec(name, bits) for name in ("x", "y", "u", "v"))
    given = [
        pairing.assume(f"{one} and {other} are totals that are alike", Link(like(*pair), pair))
        for one, other, pair in (("x", "u", (x, u)), ("y", "v", (y, v)))
    ]
    sums = [ieee.add(one, other, IEEE_FP32, INVALID).result for one, other in ((x, y), (u, v))]
    link = Link(like(*sums), ())
    text = "sums of totals that are alike are alike"
    pairing.derive("accumulate", text, [link], given)
    pairing.conclude(text, link)
    return pairing
