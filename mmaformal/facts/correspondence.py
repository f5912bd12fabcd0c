"""For each algorithm, the argument that both wings give the same code.

Each function derives the links of a stage's interfaces from those of the stages before, step by step of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from mmaformal.algorithms import IEEE_FP32, DotAdd, Efda, Fda, Fdrda, Gdfs, Gfdrda, Gps, Lowered, Sfma
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import blocks as executable
from mmaformal.encodings.smt import blocks as smt
from mmaformal.encodings.smt import efda as smt_efda
from mmaformal.encodings.smt import fda as smt_fda
from mmaformal.encodings.smt import fdrda as smt_fdrda
from mmaformal.encodings.smt import gdfs as smt_gdfs
from mmaformal.encodings.smt import sfma as smt_sfma
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    add_codes,
    add_long,
    addends,
    align,
    classify,
    decode,
    decode_flushed,
    flags_and_zeros,
    inputs,
    least_excluded,
    long_product,
    multiply,
    round_and_encode,
    same_code,
    summands,
    wide_number,
)
from mmaformal.proof.lemmas import Argument, Idle, Link, number


def _operands(
    argument: Argument,
    spec: DotAdd,
    codes: tuple[Sequence[Link], Sequence[Link], Link],
    products: Sequence[int],
    mine: Any,
    other: Any,
) -> tuple[list[OperandLinks], list[OperandLinks], OperandLinks]:
    """The operands of one step: each product's a and b, and c."""
    a, b, c = codes
    x = [
        decode(argument, a[k], u, v, spec.a_format) for k, u, v in zip(products, mine.a, other.a, strict=True)
    ]
    y = [
        decode(argument, b[k], u, v, spec.b_format) for k, u, v in zip(products, mine.b, other.b, strict=True)
    ]
    return x, y, decode(argument, c, mine.c, other.c, spec.c_format)


# ---- fda -------------------------------------------------------------------------------------------------------


def fda(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Fda)
    a, b, c, *scales = inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = _operands(argument, spec, (a, b, c), products, mine, other)
        s = [
            [
                decode(argument, codes[k // spec.scale_block], u, v, spec.scale_format)
                for k, u, v in zip(products, us, vs, strict=True)
            ]
            for codes, us, vs in zip(
                scales, (mine.scale_a, mine.scale_b), (other.scale_a, other.scale_b), strict=True
            )
            if spec.scale_format is not None
        ]
        c = fda_step(argument, spec, parameters, [x, y, *s], z, mine, other)


def fda_step(
    argument: Argument,
    spec: DotAdd,
    parameters: Fda,
    factors: Sequence[Sequence[OperandLinks]],
    c: OperandLinks,
    mine: Any,
    other: Any,
) -> Link:
    """The link of a step's result; `factors` are the links of a, b and maybe both scales, each one per product."""
    low = smt_fda.exponents_of(spec, parameters).low
    special = classify(
        argument, flags_and_zeros([*(x for each in factors for x in each), c]), mine.special, other.special
    )
    terms = [multiply(argument, [c], mine.addend, other.addend, low)]
    for operands, u, v in zip(zip(*factors, strict=True), mine.products, other.products, strict=True):
        terms.append(multiply(argument, operands, u, v, low))
    return fused_sum(argument, parameters, terms, low, special, mine, other)


def fused_sum(
    argument: Argument,
    parameters: Fda | Gdfs,
    terms: Sequence[TermLinks],
    low: int,
    special: Link,
    mine: Any,
    other: Any,
) -> Link:
    """The link of the result, from those of the terms: c first, as the executable adds them."""
    exponents = [term.exponent for term in terms]
    e_max, below = argument.largest("align", "exponents", mine.e_max, other.e_max, exponents, low)
    *added, added_c = summands(other.total, len(terms))
    lanes = (mine.aligned_c, *mine.aligned)
    aligned = align(argument, terms, e_max, below, lanes, (added_c, *added))
    total = argument.add_up("accumulate", "aligned terms", mine.total, other.total, aligned)
    rounding = mine.rounded, other.rounded, parameters.rho, (mine.result, other.result)
    return round_and_encode(argument, [total, e_max], special, *rounding)


# ---- gdfs ------------------------------------------------------------------------------------------------------


def gdfs(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Gdfs)
    assert spec.scale_format is not None
    G, low = parameters.G, smt_gdfs.exponents_of(spec, parameters).low
    a, b, c, *scales = inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        first = i * parameters.L
        z = decode(argument, c, mine.c, other.c, spec.c_format)
        s = [
            [
                decode(argument, codes[(first + g * G) // spec.scale_block], u, v, spec.scale_format)
                for g, (u, v) in enumerate(zip(us, vs, strict=True))
            ]
            for codes, us, vs in zip(
                scales, (mine.scale_a, mine.scale_b), (other.scale_a, other.scale_b), strict=True
            )
        ]
        given = [link for each in s for x in each for link in (x.nan,)]
        special = classify(argument, [*given, *flags_and_zeros([z])], mine.special, other.special)
        terms = [multiply(argument, [z], mine.addend, other.addend, low)]
        for g, (scale_a, scale_b) in enumerate(zip(*s, strict=True)):
            terms.append(_group(argument, a, b, first, g, G, (scale_a, scale_b), mine, other, low))
        c = fused_sum(argument, parameters, terms, low, special, mine, other)


def _group(
    argument: Argument,
    a: Sequence[Link],
    b: Sequence[Link],
    first: int,
    g: int,
    G: int,
    scales: tuple[OperandLinks, OperandLinks],
    mine: Any,
    other: Any,
    low: int,
) -> TermLinks:
    """Term g, from the codes of its products and the links of its scales."""
    lanes, sum_ = addends(mine.group_sums[g], G), other.sums[g]
    links, zeros = [], []
    for k, lane, summand in zip(range(g * G, (g + 1) * G), lanes, summands(sum_, G), strict=True):
        significand, magnitude = mine.products[k].significand, other.products[k][1]
        link = number(lane, summand, signed=True)
        zero = Link(
            (significand.term == 0) == (magnitude == 0), (significand.term, magnitude), (), (significand,)
        )
        codes = [a[first + k], b[first + k]]
        argument.derive("multiply", "products in fixed point are the same", [link, zero], codes)
        links.append(link)
        zeros.append(zero)
    total = argument.add_up("multiply", "products of a group", mine.group_sums[g], sum_, links)
    u, v = mine.groups[g], other.groups[g]
    term = TermLinks(
        number(u.sign, v.sign), number(u.exponent, v.exponent, low=low), number(u.significand, v.significand)
    )
    given = [link for scale in scales for link in (scale.exponent, scale.significand)]
    # σ·s_α·s_β and σ·(s_α·s_β) are hard to see equal unless one factor is known; it has a few bits.
    few = scales[1].significand.term if scales[1].significand.term.size() > 1 else None
    text = "scaled sums of groups are the same"
    argument.derive("multiply", text, term, [total, *zeros, *given], each_value_of=few)
    return term


# ---- fdrda, gfdrda ---------------------------------------------------------------------------------------------


def fdrda(argument: Argument, traces: Traces) -> None:
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
        x, y, z = _operands(argument, spec, (a, b, c), products, mine, other)
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
        aligned = align(argument, terms, e_max, below, mine.aligned, parts, idle)
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


# ---- gps -------------------------------------------------------------------------------------------------------


def gps(argument: Argument, traces: Traces) -> None:
    """Codes from the products on.  Flushing them is part of what is made of them next."""
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Gps)
    a, b, d, *_ = inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        level: list[Link] = []
        for k, product in enumerate(mine.products):
            operands = (
                (a, product.a, other.a[k], spec.a_format),
                (b, product.b, other.b[k], spec.b_format),
            )
            given = [
                link
                for codes, u, v, fmt in operands
                for link in decode_flushed(argument, codes[i * parameters.G + k], u, v, fmt)
            ]
            rounded = same_code(product.result, other.products[k])
            level += argument.derive("multiply", "rounded products are the same", [rounded], given)
        sums = iter(zip(mine.sums, other.sums, strict=True))
        while len(level) > 1:
            level = [
                add_codes(argument, [x, y], *next(sums), IEEE_FP32)
                for x, y in zip(level[::2], level[1::2], strict=True)
            ]
        d = add_codes(argument, [d, level[0]], mine.addition, other.addition, IEEE_FP32)
    result = same_code(traces.executable.result, traces.smt.result)
    argument.derive("encode", "results are flushed alike", [result], [d])


# ---- lowered ---------------------------------------------------------------------------------------------------


def lowered(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Lowered)
    inner, width = parameters.inner_dot_add(spec), len(parameters.order)
    assert isinstance(inner.parameters, Fda)
    a, b, c, *_ = inputs(argument, traces)
    stride = width // parameters.L + 1  # the executable's steps: those of the fda, then the addition
    for i, other in enumerate(traces.smt.steps):
        *fused, addition = traces.executable.steps[i * stride : (i + 1) * stride]
        (dot,) = argument.derive("inputs", "both wings begin at zero", [Link(z3.BoolVal(True), ())])
        for n, (mine, step) in enumerate(zip(fused, other.inner, strict=True)):
            order = [i * width + k for k in parameters.order[n * parameters.L : (n + 1) * parameters.L]]
            x, y = (
                [
                    decode(argument, codes[k], u, v, inner.a_format, f"{fmt} codes are converted alike")
                    for k, u, v in zip(order, us, vs, strict=True)
                ]
                for codes, us, vs, fmt in (
                    (a, mine.a, step.a, spec.a_format),
                    (b, mine.b, step.b, spec.b_format),
                )
            )
            z = decode(argument, dot, mine.c, step.c, inner.c_format)
            dot = fda_step(argument, inner, inner.parameters, [x, y], z, mine, step)
        c = add_codes(argument, [dot, c], addition, other.addition, parameters.addition)


# ---- sfma ------------------------------------------------------------------------------------------------------


def sfma(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Sfma)
    rho = parameters.rho
    frame = smt_sfma.frame_bits(rho.fraction_bits + 1)
    a, b, c, *_ = inputs(argument, traces)
    for k, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        x = decode(argument, a[k], mine.a, other.a, spec.a_format)
        y = decode(argument, b[k], mine.b, other.b, spec.b_format)
        z = decode(argument, c, mine.c, other.c, spec.c_format)
        special = classify(argument, flags_and_zeros([x, y, z]), mine.special, other.special)
        low = smt_sfma.exponents_of(rho.format).low
        addend = multiply(argument, [z], mine.addend, other.addend, low)
        total = (_long_fma if mine.long else _fma)(argument, x, y, addend, mine, other, low, frame)
        c = round_and_encode(
            argument,
            [*total, number(mine.product.sign, other.product.sign), addend.sign],
            special,
            mine.rounded,
            other.rounded,
            rho,
            (mine.result, other.result),
        )


def _fma(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    addend: TermLinks,
    mine: Any,
    other: Any,
    low: int,
    frame: int,
) -> list[Link]:
    """The links of the exact sum and its exponent, where product and sum fit in a lane."""
    product = multiply(argument, [x, y], mine.product, other.product, low)
    total = number(mine.total.total, other.sum.total, signed=True)
    unit = number(mine.total.unit, other.sum.e_max, low=low - frame)
    return [*argument.derive("align", "aligned terms have the same sum", [total, unit], [*product, *addend])]


def _long_fma(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    addend: TermLinks,
    mine: Any,
    other: Any,
    low: int,
    frame: int,
) -> list[Link]:
    """The same, where they do not."""
    product, sum_, wide = other.product, other.sum, mine.wide
    significand = long_product(
        argument,
        (x.significand, y.significand),
        mine.long,
        product.significand,
        frame - product.significand.size() + 2,
    )
    sign, exponent = (
        number(mine.product.sign, product.sign),
        number(mine.product.exponent, product.exponent, low=low),
    )
    given = [link for z in (x, y) for link in (z.sign, z.exponent, z.significand)]
    argument.derive("multiply", "signs and exponents of products are the same", [sign, exponent], given)
    signs = product.sign, other.addend.sign
    return add_long(argument, [sign, exponent, significand], addend, wide, signs, sum_, low)


# ---- efda ------------------------------------------------------------------------------------------------------


def efda(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Efda)
    rho = parameters.rho
    a, b, c, *_ = inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = _operands(argument, spec, (a, b, c), products, mine, other)
        special = classify(argument, flags_and_zeros([*x, *y, z]), mine.special, other.special)
        fixed = isinstance(other, smt_efda.FixedStep)
        own = smt.product_range(spec.a_format, spec.b_format)
        low = own.low if fixed else smt_efda.exponents_of(spec).low
        terms = [
            multiply(argument, pair, u, v, low)
            for pair, u, v in zip(zip(x, y, strict=True), mine.products, other.products, strict=True)
        ]
        c_low = spec.c_format.min_exponent if fixed else low
        addend = multiply(argument, [z], mine.addend, other.addend, c_low)
        total = (_fixed_sum if fixed else _sorted_sum)(argument, spec, terms, addend, mine, other, low)
        rounding = mine.rounded, other.rounded, rho, (mine.result, other.result)
        c = round_and_encode(argument, total, special, *rounding)


def _fixed_sum(
    argument: Argument,
    spec: DotAdd,
    terms: Sequence[TermLinks],
    addend: TermLinks,
    mine: Any,
    other: Any,
    low: int,
) -> list[Link]:
    """Products in fixed point.  The executable's unit lies below the SMT wing's by the places that c may need."""
    assert isinstance(spec.parameters, Efda)
    fixed, below = mine.sum, smt_efda.places_below(smt_efda.precision(spec, spec.parameters))
    placed: list[Link] = []
    bits = other.placed[0].size()
    for term, lanes, summand in zip(terms, fixed.placed, summands(other.dot, len(terms)), strict=True):
        link = wide_number(lanes, summand, signed=True, below=below)
        inside = Link(z3.And(summand < 1 << bits, summand > -(1 << bits)), (summand,))
        text = "products in fixed point are the same"
        placed += argument.derive("align", text, [link, inside], term)
    dot = wide_number(fixed.dot, other.dot, signed=True, below=below)
    sums = argument.derive(
        "accumulate", "the sums of products are equal", [dot, least_excluded(other.dot)], placed
    )
    u, v, least = fixed.term, other.term, spec.c_format.min_exponent
    significand = wide_number(u.significand, v.significand, below=below)
    product = [number(u.sign, v.sign), number(u.exponent, v.exponent, low=least), significand]
    argument.derive("accumulate", "the sum of products is the same term", product, sums)
    signs = v.sign, other.addend.sign
    return add_long(argument, product, addend, fixed.wide, signs, other.sum, least)


def _sorted_sum(
    argument: Argument,
    spec: DotAdd,
    terms: Sequence[TermLinks],
    addend: TermLinks,
    mine: Any,
    other: Any,
    low: int,
) -> list[Link]:
    exponents = smt_efda.exponents_of(spec)
    zero = exponents.constant(smt_efda.lowest(spec))

    def link(u: executable.Term, v: smt.Term) -> list[Link]:
        exponent = number(u.exponent, v.exponent, low=low)
        above = Link(z3.UGE(v.exponent, zero), (v.exponent,))
        return [number(u.sign, v.sign), exponent, number(u.significand, v.significand), above]

    def sum_links(u: executable.Sum, v: smt.StickySum, frame: int) -> list[Link]:
        total, unit = number(u.total, v.total, signed=True), number(u.unit, v.e_max, low=low - frame)
        return [total, unit, least_excluded(v.total), Link(z3.UGE(v.e_max, zero), (v.e_max,))]

    sum_, p = mine.sum, spec.parameters["rho"].fraction_bits
    none = argument.derive("align", "both wings have the same zero", [Link(z3.BoolVal(True), ())])
    normal: list[Link] = []
    given = [*terms, *[none] * (2 - len(terms)), addend]
    for term, u, v in zip(given, sum_.terms, other.terms, strict=True):
        normal += argument.derive("align", "terms are normalised alike", link(u, v), term)
    links = [link(u, v) for u, v in zip(sum_.sorted, other.sorted, strict=True)]
    first, second, _ = (term.exponent for term in other.sorted)
    in_order = [each for term in links for each in term] + [Link(z3.ULE(second, first), ())]
    argument.derive("align", "terms are sorted alike", in_order, normal)
    partial = sum_links(sum_.partial, other.partial, p + smt_efda.NEAR)
    argument.derive("accumulate", "partial sums are equal", partial, in_order)
    carried = link(sum_.normal, other.normal)[
        :3
    ]  # far below all terms, if not for what the terms are made of
    argument.derive("accumulate", "partial sums are normalised alike", carried, partial)
    total = sum_links(sum_.total, other.sum, p + smt_efda.NEAR + 2)[:3]
    argument.derive("accumulate", "the sums are equal", total, [*carried, *in_order])
    return total


ARGUMENTS: dict[str, Callable[[Argument, Traces], None]] = {
    "fda": fda,
    "gdfs": gdfs,
    "fdrda": fdrda,
    "gfdrda": fdrda,
    "gps": gps,
    "lowered": lowered,
    "sfma": sfma,
    "efda": efda,
}
