"""A step of pfma is an addition: d is c plus the d of c = 0, by IEEE 754, where no such sum is subnormal.

The two differ where a sum is subnormal, which pfma flushes, in the signs of zeros, and in NaNs: pfma's keep payloads.
What is equal but for those stays so in a step, and in an addition, as long as no sum is subnormal; so it does in every
tree of additions whose leaves are steps, by induction over the tree.
"""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan, magnitude
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.pfma.smt import INVALID, flush
from mmaformal.encodings.smt import ieee
from mmaformal.facts.protocol import LastAddition
from mmaformal.formats import fp32
from mmaformal.proof.kernel import NotProvedError, by_rule, prove
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

_TREES = (
    "trees of additions: what is alike stays alike in a step and in an addition, so the results of two structures are "
    "alike if they add what the steps give alone in the same tree"
)

TEXT = "d is c plus the d of c = 0, in fp32 by IEEE 754, but for signs of zeros and NaNs, while no sum is subnormal"


def subnormal(code: z3.BitVecRef) -> z3.BoolRef:
    size = magnitude(code, fp32)
    return z3.And(size != 0, z3.ULT(size, 1 << fp32.fraction_bits))


def like(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """The same, or both zero, or both NaN."""
    zeros = z3.And(magnitude(x, fp32) == 0, magnitude(y, fp32) == 0)
    return z3.Or(x == y, zeros, z3.And(is_nan(x, fp32), is_nan(y, fp32)))


def prove_it(asker: Asker, spec: DotAdd) -> LastAddition | None:
    """None if it is not proved in the time left."""
    pairing, x = Pairing(), symbolic_inputs(spec)
    c, total = x.c, z3.BitVec("total", fp32.storage_bits)
    step = smt.dot_add(spec, x.a, x.b, c).steps[-1]
    alone = smt.dot_add(spec, x.a, x.b, z3.BitVecVal(0, fp32.storage_bits)).steps[-1]
    sum_ = ieee.add(total, alone.result, IEEE_FP32, INVALID).result
    given = pairing.assume("c is the total so far", Link(like(c, total), (c, total)))
    zero_added = Link(like(alone.result, flush(step.sum)), (alone.result, step.sum))
    pairing.derive("accumulate", "with c = 0, the result is the products' sum", [zero_added], [], [step.sum])
    text = "the results are alike, or the total is subnormal"
    link = Link(z3.Or(subnormal(total), subnormal(sum_), like(step.result, sum_)), ())
    pairing.derive("accumulate", text, [link], [given, zero_added])
    pairing.conclude(text, link)
    try:
        return LastAddition(TEXT, by_rule(_TREES, prove(asker, _additions()), prove(asker, pairing)))
    except NotProvedError:
        return None


def _additions() -> Pairing:
    """Sums of totals that are alike are alike."""
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
