"""Which codes a pair can be: none is subnormal where no product is as small."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import magnitude
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.spec import DotAdd


def no_subnormal_pair(spec: DotAdd) -> tuple[Pairing, int, str]:
    """Of a unit that does not read c: d is the pair, which is zero or at least the last place of the least products."""
    pairing, x, fmt = Pairing(), symbolic_inputs(spec), spec.d_format
    trace = smt.dot_add(spec, x.a, x.b, x.c)
    (step,) = trace.steps
    demand(isinstance(step, rnd2.Rnd2Step) and not spec.negated, "a pair alone")

    def normal(code: z3.BitVecRef) -> Link:
        low = magnitude(code, fmt)
        return Link(z3.Or(low == 0, z3.UGE(low, 1 << fmt.fraction_bits)), (code,))

    signs = [term.sign for term in step.products]
    inputs = [*step.special, step.sum.total, step.sum.e_max, *signs]
    pair, text = normal(step.pair.result), "no pair is subnormal"
    pairing.derive("round", text, [pair], [], inputs)
    summand = normal(step.summand)
    pairing.derive("signs", text, [summand], [pair])
    total = normal(step.addition.result)
    pairing.derive("accumulate", "nor is it with −0 added", [total], [summand])
    text, link = "no result is subnormal", normal(trace.result)
    inputs = [code for _, code in step.nans]
    inputs += [flags.nan for flags, _ in step.nans]
    pairing.derive("encode", text, [link], [total], [x for x in inputs if not z3.is_bv_value(x)])
    pairing.conclude(text, link)
    return pairing, 1, text


__all__ = ["no_subnormal_pair"]
