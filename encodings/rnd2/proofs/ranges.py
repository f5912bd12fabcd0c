"""Which codes a pair can be: none is subnormal where no product is as small; or every number is one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import z3

from mmaformal.cases.codes import magnitude
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.proof.kernel import Rule, demand
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.spec import DotAdd

TWO_PRODUCTS = Rule(
    "sums of two products",
    "every number of d's format is (u·v·2^(p + 1) + w·z)·2^t of integers of the factors' p bits, looked up in Python "
    "for each odd one; as an exact sum that is a number, rounded, it is d",
)


def no_subnormal_pair(spec: DotAdd) -> tuple[Pairing, int, str]:
    """Argue of a unit that does not read c that d is the pair: zero, or no less than the last place of products."""
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


@lru_cache(maxsize=4)
def all_are_sums(bits: int, precision: int) -> bool:
    """Whether each odd number of `bits` bits is u·v·2^(p + 1) + w·z, of integers of p = `precision` bits.

    Of each odd z there is one w modulo 2^(p + 1) that leaves a multiple of that, which is looked up among products.
    """
    size, unit = 1 << precision, 2 << precision
    factors = np.arange(size)
    is_product = np.zeros(size * size, np.bool_)
    for u in factors:
        is_product[u * factors] = True
    left = np.arange(1, 1 << bits, 2, dtype=np.int32)
    for z in range(size - 1, 0, -2):
        w = ((left & (unit - 1)) * pow(z, -1, unit)) & (unit - 1)
        w[w > unit // 2] -= unit
        rest = (left - w * z) >> (precision + 1)
        made = (abs(w) < size) & (rest >= 0) & (rest < size * size)
        left = left[~(made & is_product[np.where(made, rest, 0)])]
        if not len(left):
            return True
    return False


def every_sum(spec: DotAdd) -> Rule:
    """The rule that each number of d's format is a sum of two products.  Raises ArgumentError if it is not so."""
    fmt, d, precision = spec.a_format, spec.d_format, spec.a_format.fraction_bits + 1
    bits = d.fraction_bits + 1
    demand(
        not spec.reads_c and not spec.negated and fmt == spec.b_format, "not a sum of products of one format"
    )
    demand(bits <= 3 * precision <= 24, f"products of {fmt} have too few bits, or too many to try")
    least, most = (2 * (e - fmt.fraction_bits) for e in (fmt.min_exponent, fmt.max_exponent))
    inside = least <= d.min_exponent - d.fraction_bits and d.max_exponent + precision + 1 <= most
    demand(inside, f"products of {fmt} are not as small or as large as {d} is")
    demand(all_are_sums(bits, precision), f"not every number of {bits} bits is a sum of two products")
    return TWO_PRODUCTS
