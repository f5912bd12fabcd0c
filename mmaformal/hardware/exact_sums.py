"""Proves a code that a design makes of an exact sum in fixed point to be the model's, which aligns c to the products.

The model adds c to the sum of products at the larger exponent, a design may add all terms in one long word.  Unless
that sum of products is 0, the model's sum is that word, shifted by a constant; if it is 0, c is the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.display import ShortRepr
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda.smt import FixedStep, places_below, precision, sum_places
from mmaformal.encodings.smt.blocks import BitVec, negate_if, pad, product_range, resize
from mmaformal.hardware.normalised import leading_one
from mmaformal.hardware.rounders import NodeProver
from mmaformal.hardware.sums import NetlistSum
from mmaformal.proof.kernel import Link
from mmaformal.spec import DotAdd

#: Seconds for a lemma, in the first round.
_PATIENCE = 10.0


@dataclass(frozen=True, repr=False)
class ExactSum(ShortRepr):
    """All terms of a step in fixed point, in units of the least place that one has, and their sum."""

    step: FixedStep
    terms: tuple[BitVec, ...]  #: two's complement, c last
    total: BitVec
    up: int  #: places of the products above the least one
    shift: int  #: places of the model's sum below that one

    @property
    def of_netlist(self) -> NetlistSum:
        """Return the sum as one that a design may add in any order."""
        return NetlistSum(self.total, self.terms)

    @property
    def with_c(self) -> Link:
        """Return that it is the sum of products and c."""
        dot, bits = self.step.dot, self.total.size()
        products = resize(z3.SignExt(bits - dot.size(), dot) << self.up, bits)
        return Link(self.total == products + self.terms[-1], (self.total, dot))

    @property
    def shifted(self) -> Link:
        """Return that the model's sum is this one, at a constant exponent, unless the products add up to 0."""
        total, end = self.step.sum.total, self.step.sum
        bits = max(total.size(), self.total.size() + self.shift)
        own = z3.SignExt(bits - self.total.size(), self.total) << self.shift
        alike = z3.SignExt(bits - total.size(), total) == own
        top = self.step.term.exponent.arg(2)
        claim = z3.Or(self.step.dot == 0, z3.And(alike, end.e_max == top))
        return Link(claim, (self.step.dot, total, end.e_max, self.total))


def exact_sum(spec: DotAdd, steps: Sequence[object]) -> ExactSum | None:
    """The sum of a model of one step in fixed point; None of others, and where c has places that the model loses."""
    if len(steps) != 1 or not isinstance(steps[0], FixedStep):
        return None
    step, c, own = steps[0], spec.c_format, product_range(spec.a_format, spec.b_format)
    products = own.low - spec.a_format.fraction_bits - spec.b_format.fraction_bits
    c_low, c_high = c.min_exponent - c.fraction_bits, c.max_exponent + 1
    below = places_below(precision(spec, spec.parameters_as(Efda)))
    up, down = max(0, products - c_low), max(0, c_low - products)
    if up > below or c_high > products + sum_places(spec, len(step.products)):
        return None
    of_c = c.fraction_bits + 1 + c_high - c.min_exponent + down
    amount = resize(step.addend.exponent, of_c) + down
    placed = [*(pad(x, up) for x in step.placed), resize(step.addend.significand, of_c) << amount]
    bits = max(max(x.size() for x in placed) + len(placed).bit_length() + 1, step.dot.size() + up)
    signs = [*(x.sign for x in step.products), step.addend.sign]
    terms = [negate_if(sign, resize(x, bits)) for sign, x in zip(signs, placed, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return ExactSum(step, tuple(terms), total, up, below - up)


def rounded_exact(by: NodeProver, sum_: ExactSum, node: BitVec, term: BitVec) -> Link | None:
    """The link of a design's result to the model's, in a case for each place of the leading one of the sum, once a word
    of the design is proved to be that; None where it is not proved."""
    total, dot, c = sum_.total, sum_.step.dot, sum_.step.addend
    wanted = {x.get_id() for x in (total, *sum_.step.special)}
    given = by.given(node, term, 0, lambda link: wanted >= {x.get_id() for x in link.free} != set())
    last = Link(node == term, (term,), ((node, term),))
    if not any(x.get_id() == total.get_id() for link in given for x in link.free):
        return None
    top = dot.size() - 1
    parts = [x for y, p in zip(sum_.step.placed, sum_.step.products, strict=True) for x in (y, p.sign)]
    number = Link(dot != z3.BitVecVal(1 << top, top + 1), (dot,))
    sign = z3.Extract(total.size() - 1, total.size() - 1, total)
    size = negate_if(sign, total)
    signed = Link(total == negate_if(sign, size), (total, sign, size))
    steps: list[tuple[Link, list[Link], list[BitVec]]] = [
        (number, [], parts),
        (sum_.with_c, [], [*parts, *c]),
        (sum_.shifted, [number, sum_.with_c], []),
        (signed, [], [total]),
    ]
    if not all(by.attempt(link, before, _PATIENCE, cut) for link, before, cut in steps):
        return None
    none, some = Link(dot == 0, (dot,)), Link(dot != 0, (dot,))
    if not by.attempt(last, [none, sum_.with_c, *given], _PATIENCE):
        return None
    cases = [leading_one(size, i) for i in range(-1, size.size())]
    for i, case in enumerate(cases):
        by.progress(f"d, where the leading one of the exact sum of {size.size()} bits is at {i - 1}")
        if not by.attempt(last, [some, case, signed, sum_.shifted, *given], _PATIENCE):
            return None
    by.theorem.split("a word is 0 or not", [none, some], terms=[dot])
    by.theorem.split("a word has a leading one, or is 0", cases, terms=[size])
    return last
