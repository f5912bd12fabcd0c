"""A unit whose NaNs are its operands' gives the codes of the same unit with one NaN, but where both give a NaN."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.smt.blocks import Operand, any_of
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing, SameButNans
from mmaformal.spec import DotAdd


def argue_same_but_nans(spec: DotAdd, other: DotAdd) -> Pairing:
    """Argue that both give the same code for the same inputs, or NaNs both; no changes of signs around them."""
    pairing, x, kind, fmt = Pairing(), symbolic_inputs(spec), SameButNans(), spec.d_format
    left, right = (smt.dot_add(each, x.a, x.b, x.c) for each in (spec, other))
    c = kind.code(x.c, x.c, fmt)
    pairing.derive("inputs", "both read the same c", [c], inputs=[x.c])
    start = x.c, x.c
    for u, v in zip(left.steps, right.steps, strict=True):
        demand(isinstance(u, rnd2.Rnd2Step) and u.sum.total.eq(v.sum.total), "not the same pairs")
        c = _step(pairing, spec, u, v, c, start)
        start = u.result, v.result
    pairing.conclude("the codes are the same, or both are NaNs", c)
    return pairing


def _step(
    pairing: Pairing,
    spec: DotAdd,
    u: rnd2.Rnd2Step,
    v: rnd2.Rnd2Step,
    c: Link,
    start: tuple[z3.BitVecRef, z3.BitVecRef],
) -> Link:
    """The link of the results, from that of both c, which are `start`."""
    kind, fmt = SameButNans(), spec.d_format
    of_c = u.nans[-1][0]
    operands = [flags for flags, _ in u.nans if isinstance(flags, Operand) and flags is not of_c]
    inputs = [term for x in operands for term in (x.nan, x.infinite, x.sign, x.significand)]
    found = any_of([flags.nan for flags, _ in u.nans[:-1]])
    some = Link(z3.Implies(found, u.special.nan), (*(flags.nan for flags, _ in u.nans[:-1]), u.special.nan))
    pairing.derive("classify", "a NaN among the factors makes the pair a NaN", [some], inputs=inputs)
    pair = Link(z3.Implies(u.special.nan, is_nan(u.summand, fmt)), (u.special.nan, u.summand))
    inputs = [*u.special, *u.pair.rounded]
    pairing.derive("encode", "a pair that is a NaN has the code of one", [pair], inputs=inputs)
    both = kind.code(u.summand, v.summand, fmt)
    pairing.derive("encode", "both pairs are the same, or NaNs both", [both], inputs=inputs)
    added = kind.code(u.addition.result, v.addition.result, fmt)
    pairing.derive("accumulate", "both sums are the same, or NaNs both", [added], [c, both])
    nan = z3.Implies(z3.Or(is_nan(u.summand, fmt), is_nan(start[0], fmt)), is_nan(u.addition.result, fmt))
    total = Link(nan, (u.summand, start[0], u.addition.result))
    pairing.derive("accumulate", "a NaN makes the sum a NaN", [total], [], [u.summand, start[0]])
    decoded = Link(of_c.nan == is_nan(start[0], fmt), (of_c.nan, start[0]))
    pairing.derive("decode", "c is a NaN where its code is one", [decoded], [], [start[0]])
    result, codes = kind.code(u.result, v.result, fmt), [code for _, code in u.nans]
    text = "only where the sum is a NaN is another one taken"
    return pairing.derive("encode", text, [result], [some, pair, added, total, decoded], codes)[0]
