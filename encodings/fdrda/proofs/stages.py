"""The stages of a step of fdrda or gfdrda, related in both encodings and in two runs on related inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeGuard

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import executable as executable_fdrda
from mmaformal.encodings.fdrda import smt as smt_fdrda
from mmaformal.encodings.fdrda.smt import FdrdaStep
from mmaformal.encodings.gfdrda.smt import GfdrdaStep
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.encodings.smt.blocks import (
    Term,
    Trace,
    all_of,
    product_range,
)
from mmaformal.encodings.smt.stages import Aligned, Code
from mmaformal.facts.operands import begun, step_operands
from mmaformal.proof.doubled_runs import DoubledRuns, DoubledSum, DoubledTerm
from mmaformal.proof.doubled_stages import as_term
from mmaformal.proof.encoding_links import (
    TermLinks,
    flags_and_zeros,
    link_aligned,
    link_inputs,
    link_product,
    link_special,
    round_and_encode,
    summands,
)
from mmaformal.proof.lemmas import Argument, Idle, Link, at_most, number
from mmaformal.proof.related_runs import operand_codes, same, terms_of
from mmaformal.proof.related_steps import RelatedStep, dropped_terms, products
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded, Stage

AnyFdrda: TypeAlias = FdrdaStep | GfdrdaStep


# ---- both encodings ------------------------------------------------------------------------------------------------


def link_encodings(argument: Argument, traces: Traces[AnyFdrda]) -> None:
    """Products are in one group, or (gfdrda) in two whose sums are aligned and added.

    A zero product has the exponent `least` in the executable encoding, and the least of the products' range in the SMT
    encoding.  Where those are not the same, it is *idle*: its exponent says only that.
    """
    spec, parameters = traces.spec, traces.spec.parameters_as(Fdrda)
    own = smt_blocks.product_range(spec.a_format, spec.b_format)
    wide = smt_fdrda.exponents_of(spec)
    least = min(own.low, spec.c_format.min_exponent) if parameters.skip_zero_products else own.low
    a, b, c, *_ = link_inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_fdrda.FdrdaStep)
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        exponents = [operand.exponent for operand in (*x, *y)]
        special = link_special(
            argument, [*flags_and_zeros([*x, *y, z]), *exponents], executable.special, smt.special
        )
        terms = [
            link_product(argument, pair, u, v, own.low, None if least == own.low else least)
            for pair, u, v in zip(zip(x, y, strict=True), executable.products, smt.products, strict=True)
        ]
        zeros = [v.significand == 0 for v in smt.products]
        dots = _Dots(argument, own.low, least, terms, zeros)
        if isinstance(smt, GfdrdaStep):
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
        addend = link_product(argument, [z], executable_blocks.Term(*executable.c[:3]), smt.addend, wide.low)
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
        aligned = link_aligned(
            argument, terms, e_max=e_max, below=below, lanes=executable.aligned, aligned=parts, idle=idle
        )
        return argument.add_up("accumulate", "aligned products", executable.total, sum_, aligned), e_max, idle

    def groups(
        self, executable: executable_fdrda.FdrdaStep, smt: GfdrdaStep
    ) -> tuple[Link, Link, Idle | None]:
        """Return the links of the sum of two groups, as those of one are returned."""
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


# ---- two runs on related inputs ------------------------------------------------------------------------------------


def _has_groups(step: RelatedStep[AnyFdrda]) -> TypeGuard[RelatedStep[GfdrdaStep]]:
    return isinstance(step.left, GfdrdaStep) and isinstance(step.right, GfdrdaStep)


def link_runs(step: RelatedStep[AnyFdrda]) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = products(step, factors)
    quiet = [step.quiet(i, zero) for i, zero in zeros.items()]
    special = step.special([c, *factors, *terms, *zeros.values(), *quiet], operands)
    exponents = [[p.exponent for p in s.products] for s in (left, right)]
    if _has_groups(step):
        dot, e_products = _groups(step, terms, exponents, zeros)
    else:
        below = [step.not_largest(i, left.products[i], exponents[0][0], z) for i, z in zeros.items()]
        tops = left.e_products, exponents[0], right.e_products, exponents[1]
        e_products = step.largest(*tops, terms, below)
        given = [[t] for t in terms]
        nothing = dropped_terms(step, zeros, left.e_products)
        dot = step.sum_of(left.dot, right.dot, step.order, given, [e_products], nothing=nothing)
    e_dot = step.derive(
        "align",
        "the exponents of the dot products are equal",
        same(left.e_dot, right.e_dot),
        [e_products, *factors, *zeros.values()],
        terms_of(operands),
    )
    addend = step.addend(c)
    if left.total.size() == right.total.size():
        return step.result(dot, [e_dot, addend, special])
    extra = left.total.size() - right.total.size()
    if _has_groups(step):
        groups = enumerate(step.right.groups)
        each = [step.argument.bounded(x, len(right.aligned[g::2])) for g, x in groups]
        bounds = [step.bounded_groups(each)]
    else:
        bounds = [step.argument.bounded(right.dot, len(right.products))]
    e_max = step.derive(
        "align", "the largest exponents are equal", same(left.e_max, right.e_max), [e_dot, addend]
    )
    wide = z3.SignExt(extra, right.total)
    least = -1 << (right.total.size() - 1)
    claim = z3.And(left.total == wide, right.total != least)
    total = Link(claim, (right.total,), ((left.total, wide),))
    step.derive(
        "accumulate", "the sums with c are the same number", total, [dot, *bounds, e_dot, addend, e_max]
    )
    reach = _reach(step)
    return step.result(total, [e_max, special, *reach], (left.total, right.total))


def _reach(step: RelatedStep[AnyFdrda]) -> list[Link]:
    """Derive that the first run's largest exponent is in the range that exponents are held in."""
    left, spec = step.left, step.runs.left_spec
    own, wide = product_range(spec.a_format, spec.b_format), smt_fdrda.exponents_of(spec)
    if isinstance(left, GfdrdaStep):
        return []  # the bits of exponents hold nothing else
    highest = z3.BitVecVal(own.high - own.low, own.bits)
    below = {}
    for x, y, product in zip(left.a, left.b, left.products, strict=True):
        link = at_most(product.exponent, highest)
        codes = operand_codes(x, y)
        below[product.exponent.get_id()] = step.derive("multiply", "exponents are in range", link, [], codes)
    text = "the largest exponents are in range"
    top = step.argument.at_most_all(left.e_products, highest, below)
    last = z3.BitVecVal(wide.high - wide.low, wide.bits)
    operands = terms_of([left.a, left.b])
    dot = step.derive("align", text, at_most(left.e_dot, last), [top], operands)
    c = step.derive("multiply", "c's exponent is in range", at_most(left.addend.exponent, last), [step.c])
    first = z3.BitVecVal(spec.c_format.min_exponent - wide.low, wide.bits)
    low = step.derive("multiply", "c's exponent is in range", at_most(first, left.addend.exponent), [step.c])
    return [
        step.derive("align", text, at_most(left.e_max, last), [dot, c]),
        step.derive("align", text, at_most(first, left.e_max), [low], [left.e_dot]),
    ]


def _groups(
    step: RelatedStep[GfdrdaStep],
    terms: Sequence[Link],
    exponents: Sequence[Sequence[z3.BitVecRef]],
    zeros: Mapping[int, Link],
) -> tuple[Link, Link]:
    left, right = step.left, step.right
    sums, tops = [], []
    count = len(left.groups)
    for g in range(count):
        mine = range(g, len(step.order), count)
        links = [terms[j] for j in mine]
        lefts = exponents[0][g::count]
        rights = [exponents[1][k] for k in mine]
        own = {i: zero for i, zero in zeros.items() if i % count == g}
        below = [step.not_largest(i, left.products[i], lefts[0], zero) for i, zero in own.items()]
        top = step.largest(left.e_groups[g], lefts, right.e_groups[g], rights, links, below)
        inside = [step.order[j] // count for j in mine]
        nothing = dropped_terms(step, own, left.e_groups[g], lambda i: i // count)
        given = [[t] for t in links]
        sums.append(step.sum_of(left.groups[g], right.groups[g], inside, given, [top], nothing=nothing))
        tops.append(top)
    e_products = step.largest(left.e_products, left.e_groups, right.e_products, right.e_groups, tops)
    dot = step.sum_of(
        left.dot,
        right.dot,
        list(range(count)),
        [[s, t] for s, t in zip(sums, tops, strict=True)],
        [e_products],
    )
    return dot, e_products


# ---- what doubling a and c does ------------------------------------------------------------------------------------


def stages_of(spec: DotAdd, trace: Trace[AnyFdrda], c: z3.BitVecRef) -> Sequence[Stage]:
    """The stages of a run; sums of products are terms in two's complement, which have no sign of their own."""
    record, rho = Recorded(), spec.parameters.rho  # type: ignore[attr-defined]
    for step in trace.steps:
        begun(record, spec, step, c)
        for x, y, product in zip(step.a, step.b, step.products, strict=True):
            record.made("multiply", [x, y], product)
        record.made("addend", [step.c], step.addend)
        terms: Sequence[Term] = step.products
        if isinstance(step, GfdrdaStep):
            terms = _record_groups(record, step)
        record.made("largest", terms, step.e_products)
        dot = record.made("accumulate", [*terms, step.e_products], Aligned((), step.dot))
        inputs = [dot, step.e_products, *step.products]
        term = record.made("sum_of_products", inputs, _signed(step.e_dot, step.dot))
        record.made("largest", [term, step.addend], step.e_max)
        cuts = step.dot_cut, step.c_cut
        total = record.made("add_c", [term, step.addend, step.e_max], Aligned(cuts, step.total))
        code = Code(step.total, step.rounded, step.result)
        record.made("round", [total, step.e_max, step.special], code, rho=rho)
        c = step.result
    return record


def _record_groups(record: Recorded, step: GfdrdaStep) -> list[Term]:
    """Records the sums of groups; returns them as terms."""
    count, terms = len(step.groups), []
    for g, (top, total) in enumerate(zip(step.e_groups, step.groups, strict=True)):
        products = step.products[g::count]
        record.made("largest", products, top)
        made = record.made("accumulate", [*products, top], Aligned((), total))
        terms.append(record.made("as_term", [made, top], _signed(top, total)))
    return terms


def _signed(exponent: z3.BitVecRef, total: z3.BitVecRef) -> Term:
    return Term(z3.BitVecVal(0, 1), exponent, total)


def sum_of_products(run: DoubledRuns, left: Stage, right: Stage) -> DoubledTerm:
    """The link of a sum of products as a term, whose exponent may depend on whether all of them are zero."""
    _, top, *products = left.inputs
    _, other, *others = right.inputs
    zero = z3.BitVecVal(run.of(products[0]).zero, top.size())
    links, text = [], "of the doubled products, those that are zero have the least exponent, and no others"
    for x, y in zip(products, others, strict=True):
        z, also = x.exponent.arg(0), y.exponent.arg(0)
        link = Link(z == (y.exponent == zero), (z, y.exponent), ((also, z),))
        links.append(run.derive("multiply", text, link, [each.link for each in run.operands[id(x)]]))
    z, also = (all_of([x.exponent.arg(0) for x in each]) for each in (products, others))
    link = Link(z == (other == zero), (z, other), ((also, z),))
    text = "all products are zero if the largest exponent is the least"
    return as_term(run, left, right, (run.derive("align", text, link, links), z, also))


def _add_c(run: DoubledRuns, left: Stage, right: Stage) -> DoubledSum:
    """The link of a sum of products and c, both cut as signed numbers at the larger exponent: it is the same, or half
    that of the second run, rounded down."""
    (*lefts, e_max), (*rights, other) = left.inputs, right.inputs
    top: DoubledSum = run.of(e_max)
    x, y = left.output, right.output
    given = [*(term.link for term in top.terms), *run.orders((e_max, lefts), (other, rights))]
    text = "where the largest exponent goes up, the sums with c are the same"
    total = run.derive("accumulate", text, same(x.total, y.total), [*given, top.up])
    half = y.total >> 1
    claim = z3.And(y.total != 1 << (y.total.size() - 1), x.total == half)
    text = "where it is c's least one, the first sum is half the second, rounded down"
    dot, c = top.terms
    assert dot.size is not None
    _, bound = dot.size()
    known = [*given, c.above, bound, top.still]
    small = run.derive("accumulate", text, Link(claim, (y.total,), ((x.total, half),)), known)
    return replace(top, where_up=[total], where_still=[small])


DOUBLED = {"sum_of_products": sum_of_products, "add_c": _add_c}
