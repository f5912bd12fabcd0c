"""Why both wings' steps of fdrda and gfdrda give the same code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from mmaformal.algorithms import Fdrda, Gfdrda
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import blocks as executable
from mmaformal.encodings.smt import blocks as smt
from mmaformal.encodings.smt import fdrda as smt_fdrda
from mmaformal.facts.operands import step_operands
from mmaformal.proof.encoding_links import (
    TermLinks,
    align,
    classify,
    flags_and_zeros,
    inputs,
    multiply,
    round_and_encode,
    summands,
)
from mmaformal.proof.lemmas import Argument, Idle, Link, number


def derive(argument: Argument, traces: Traces) -> None:
    """Products are in one group, or (gfdrda) in two whose sums are aligned and added.

    A zero product has the exponent `least` in the executable wing, and the least of the products' range in the SMT
    wing.  Where those are not the same, it is *idle*: its exponent says only that.
    """
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Fdrda)
    own = smt.product_range(spec.a_format, spec.b_format)
    wide = smt_fdrda.exponents_of(spec)
    least = min(own.low, spec.c_format.min_exponent) if parameters.skip_zero_products else own.low
    a, b, c, *_ = inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), products, mine, other)
        exponents = [operand.exponent for operand in (*x, *y)]
        special = classify(argument, [*flags_and_zeros([*x, *y, z]), *exponents], mine.special, other.special)
        terms = [
            multiply(argument, pair, u, v, own.low, None if least == own.low else least)
            for pair, u, v in zip(zip(x, y, strict=True), mine.products, other.products, strict=True)
        ]
        zeros = [v.significand == 0 for v in other.products]
        dots = _Dots(argument, own.low, least, terms, zeros)
        if isinstance(parameters, Gfdrda):
            total, e_products, _ = dots.groups(mine, other)
        else:
            total, e_products, _ = dots.group(mine.dot, other.dot, other.e_products, slice(None))
        e_dot = number(mine.dot.e_max, other.e_dot, low=wide.low)
        factors = [(u.significand, v.significand) for u, v in zip(other.a, other.b, strict=True)]
        same_zeros = [
            Link(zero == z3.Or(u == 0, v == 0), ()) for zero, (u, v) in zip(zeros, factors, strict=True)
        ]
        for link, pair in zip(same_zeros, factors, strict=True):
            argument.derive("multiply", "a product is zero if a factor is", [link], inputs=pair)
        argument.derive(
            "align",
            "the exponent of the dot product is the same",
            [e_dot],
            [e_products, *same_zeros],
            inputs=[*zeros, *(u for pair in factors for u in pair)],
        )
        addend = multiply(argument, [z], executable.Term(*mine.c[:3]), other.addend, wide.low)
        e_max, below = argument.largest(
            "align", "exponents", mine.e_max, other.e_max, [e_dot, addend.exponent], wide.low
        )
        cut_dot = number(mine.cut_dot, other.dot_cut, signed=True)
        argument.derive("align", "the dot product is cut alike", [cut_dot], [total, e_dot, e_max, below[0]])
        cut_c = number(mine.cut_c, other.c_cut, signed=True)
        argument.derive("align", "c is cut alike", [cut_c], [*addend, e_max, below[1]])
        sum_ = number(mine.total, other.total, signed=True)
        argument.derive("accumulate", "the sums with c are equal", [sum_], [cut_dot, cut_c])
        rounding = mine.rounded, other.rounded, parameters.rho, (mine.result, other.result)
        c = round_and_encode(argument, [sum_, e_max], special, *rounding)


class _Dots:
    """Sums of products: each group is aligned to its own largest exponent."""

    def __init__(
        self,
        argument: Argument,
        low: int,
        least: int,
        terms: Sequence[TermLinks],
        zeros: Sequence[z3.BoolRef],
    ) -> None:
        self.argument, self.low, self.least, self.terms, self.zeros = argument, low, least, terms, zeros

    def idle(self, flags: Sequence[z3.BoolRef]) -> Idle | None:
        return None if self.least == self.low else Idle(flags, self.least)

    def group(
        self, mine: Any, sum_: z3.BitVecRef, largest: z3.BitVecRef, which: slice
    ) -> tuple[Link, Link, Idle | None]:
        """The links of one group's sum and exponent, and when that is idle."""
        argument, terms, idle = self.argument, self.terms[which], self.idle(self.zeros[which])
        exponents = [term.exponent for term in terms]
        e_max, below = argument.largest("align", "exponents", mine.e_max, largest, exponents, self.low, idle)
        parts = summands(sum_, len(terms))
        aligned = align(
            argument, terms, e_max=e_max, below=below, lanes=mine.aligned, aligned=parts, idle=idle
        )
        return argument.add_up("accumulate", "aligned products", mine.total, sum_, aligned), e_max, idle

    def groups(self, mine: Any, other: Any) -> tuple[Link, Link, Idle | None]:
        """The same of the sum of two groups."""
        argument, count = self.argument, len(mine.dots)
        parts = [
            self.group(mine.dots[g], other.groups[g], other.e_groups[g], slice(g, None, count))
            for g in range(count)
        ]
        idles = [idle.all for _, _, idle in parts if idle is not None]
        idle = self.idle(idles)
        e_max, below = argument.largest(
            "align",
            "exponents of groups",
            mine.dot.e_max,
            other.e_products,
            [e for _, e, _ in parts],
            self.low,
            idle,
        )
        cut = []
        for g, ((total, e_group, own), lane, summand) in enumerate(
            zip(parts, mine.dot.aligned, summands(other.dot, count), strict=True)
        ):
            link = number(lane, summand, signed=True)
            given = [total, e_group, e_max, below[g]]
            if own is not None:
                given.append(self._quiet(other.groups[g], self.terms[g::count], own))
            argument.derive("align", "sums of groups are cut alike", [link], given, idles)
            cut.append(link)
        return argument.add_up("accumulate", "sums of groups", mine.dot.total, other.dot, cut), e_max, idle

    def _quiet(self, sum_: z3.BitVecRef, terms: Sequence[TermLinks], idle: Idle) -> Link:
        """That the sum of idle products is zero."""
        parts = summands(sum_, len(terms))
        quiet = [Link(z3.Implies(flag, part == 0), ()) for flag, part in zip(idle.flags, parts, strict=True)]
        for link, term in zip(quiet, terms, strict=True):
            cut = [each.term for each in term]
            self.argument.derive("align", "an idle product is aligned to zero", [link], inputs=cut)
        link = Link(z3.Implies(idle.all, sum_ == 0), ())
        text = "the sum of idle products is zero"
        return self.argument.derive("accumulate", text, [link], quiet, [*parts, *idle.flags])[0]
