"""No sum of fdrda and gfdrda wraps: how large each stage is at most."""

from __future__ import annotations

import z3

from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.proof.composition import Composing
from mmaformal.proof.fused import prove_sum


def within(x: z3.BitVecRef, bound: int) -> z3.BoolRef:
    wide = z3.SignExt(2, x)  # a bound may be one more than x can hold
    return z3.And(wide <= bound, wide >= -bound)


def prove_ranges(proving: Composing, p: Fdrda, step: fdrda.FdrdaStep | gfdrda.GfdrdaStep) -> None:
    """No sum of products wraps, and how large they, what is left of them, and c are at most."""
    for members, total in zip(
        p.members(), step.groups if isinstance(step, gfdrda.GfdrdaStep) else (step.dot,), strict=True
    ):
        aligned = [step.aligned[k] for k in members]
        bounds = [(1 << magnitude.size()) - 1 for magnitude in aligned]
        terms = [(step.products[k].sign, step.aligned[k]) for k in members]
        small = [z3.ULE(magnitude, bound) for magnitude, bound in zip(aligned, bounds, strict=True)]
        summed = prove_sum(proving, total, terms, bounds, small)
        text = "a sum of products is at most that of their bounds"
        proving.claim("range of a sum", text, within(total, sum(bounds)), [summed])
    bound = fdrda.dot_bound(p, p.L)
    if isinstance(step, gfdrda.GfdrdaStep):
        cuts = []
        for members, group, cut in zip(p.members(), step.groups, step.groups_cut, strict=True):
            own = fdrda.dot_bound(p, len(members))
            text = "a group's sum is no larger when cut"
            claim = within(cut, own)
            cuts.append(proving.claim("range of a group", text, claim, [within(group, own)]))
        text = "so the sum of both groups is at most that of their bounds"
        proving.claim("range of both", text, within(step.dot, bound), cuts)
    reach = bound << (p.dot_bits - p.F)
    proving.claim(
        "range of the dot product",
        "the dot product is no larger when cut",
        within(step.dot_cut, reach),
        [within(step.dot, bound)],
    )
    proving.claim(
        "range of c",
        "c is below 2",
        within(step.c_cut, 1 << (p.F + 1)),
    )
