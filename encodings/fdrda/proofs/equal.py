"""Why both encodings' steps of fdrda and gfdrda give the same code."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import executable as executable_fdrda
from mmaformal.encodings.fdrda import smt as smt_fdrda
from mmaformal.encodings.gfdrda import smt as smt_gfdrda
from mmaformal.encodings.smt import blocks as smt_blocks
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


def derive(argument: Argument, traces: Traces[smt_fdrda.FdrdaStep | smt_gfdrda.GfdrdaStep]) -> None:
    """Products are in one group, or (gfdrda) in two whose sums are aligned and added.

    A zero product has the exponent `least` in the executable encoding, and the least of the products' range in the SMT
    encoding.  Where those are not the same, it is *idle*: its exponent says only that.
    """
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Fdrda)
    own = smt_blocks.product_range(spec.a_format, spec.b_format)
    wide = smt_fdrda.exponents_of(spec)
    least = min(own.low, spec.c_format.min_exponent) if parameters.skip_zero_products else own.low
    a, b, c, *_ = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_fdrda.FdrdaStep)
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        exponents = [operand.exponent for operand in (*x, *y)]
        special = classify(
            argument, [*flags_and_zeros([*x, *y, z]), *exponents], executable.special, smt.special
        )
        terms = [
            multiply(argument, pair, u, v, own.low, None if least == own.low else least)
            for pair, u, v in zip(zip(x, y, strict=True), executable.products, smt.products, strict=True)
        ]
        zeros = [v.significand == 0 for v in smt.products]
        dots = _Dots(argument, own.low, least, terms, zeros)
        if isinstance(smt, smt_gfdrda.GfdrdaStep):
            total, e_products, _ = dots.groups(executable, smt)
        else:
            total, e_products, _ = dots.group(executable.dot, smt.dot, smt.e_products, slice(None))
        e_dot = number(executable.dot.e_max, smt.e_dot, low=wide.low)
        factors = [(u.significand, v.significand) for u, v in zip(smt.a, smt.b, strict=True)]
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
        addend = multiply(argument, [z], executable_blocks.Term(*executable.c[:3]), smt.addend, wide.low)
        e_max, below = argument.largest(
            "align", "exponents", executable.e_max, smt.e_max, [e_dot, addend.exponent], wide.low
        )
        cut_dot = number(executable.cut_dot, smt.dot_cut, signed=True)
        argument.derive("align", "the dot product is cut alike", [cut_dot], [total, e_dot, e_max, below[0]])
        cut_c = number(executable.cut_c, smt.c_cut, signed=True)
        argument.derive("align", "c is cut alike", [cut_c], [*addend, e_max, below[1]])
        sum_ = number(executable.total, smt.total, signed=True)
        argument.derive("accumulate", "the sums with c are equal", [sum_], [cut_dot, cut_c])
        rounding = executable.rounded, smt.rounded, parameters.rho, (executable.result, smt.result)
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
        self, executable: executable_fdrda.Dot, sum_: z3.BitVecRef, largest: z3.BitVecRef, which: slice
    ) -> tuple[Link, Link, Idle | None]:
        """The links of one group's sum and exponent, and when that is idle."""
        argument, terms, idle = self.argument, self.terms[which], self.idle(self.zeros[which])
        exponents = [term.exponent for term in terms]
        e_max, below = argument.largest(
            "align", "exponents", executable.e_max, largest, exponents, self.low, idle
        )
        parts = summands(sum_, len(terms))
        aligned = align(
            argument, terms, e_max=e_max, below=below, lanes=executable.aligned, aligned=parts, idle=idle
        )
        return argument.add_up("accumulate", "aligned products", executable.total, sum_, aligned), e_max, idle

    def groups(
        self, executable: executable_fdrda.FdrdaStep, smt: smt_gfdrda.GfdrdaStep
    ) -> tuple[Link, Link, Idle | None]:
        """The same of the sum of two groups."""
        argument, count = self.argument, len(executable.dots)
        parts = [
            self.group(executable.dots[g], smt.groups[g], smt.e_groups[g], slice(g, None, count))
            for g in range(count)
        ]
        idles = [idle.all for _, _, idle in parts if idle is not None]
        idle = self.idle(idles)
        e_max, below = argument.largest(
            "align",
            "exponents of groups",
            executable.dot.e_max,
            smt.e_products,
            [e for _, e, _ in parts],
            self.low,
            idle,
        )
        cut = []
        for g, ((total, e_group, own), lane, summand) in enumerate(
            zip(parts, executable.dot.aligned, summands(smt.dot, count), strict=True)
        ):
            link = number(lane, summand, signed=True)
            given = [total, e_group, e_max, below[g]]
            if own is not None:
                given.append(self._quiet(smt.groups[g], self.terms[g::count], own))
            argument.derive("align", "sums of groups are cut alike", [link], given, idles)
            cut.append(link)
        return (
            argument.add_up("accumulate", "sums of groups", executable.dot.total, smt.dot, cut),
            e_max,
            idle,
        )

    def _quiet(self, sum_: z3.BitVecRef, terms: Sequence[TermLinks], idle: Idle) -> Link:
        """Return the link that says that the sum of idle products is zero."""
        parts = summands(sum_, len(terms))
        quiet = [Link(z3.Implies(flag, part == 0), ()) for flag, part in zip(idle.flags, parts, strict=True)]
        for link, term in zip(quiet, terms, strict=True):
            cut = [each.term for each in term]
            self.argument.derive("align", "an idle product is aligned to zero", [link], inputs=cut)
        link = Link(z3.Implies(idle.all, sum_ == 0), ())
        text = "the sum of idle products is zero"
        return self.argument.derive("accumulate", text, [link], quiet, [*parts, *idle.flags])[0]
