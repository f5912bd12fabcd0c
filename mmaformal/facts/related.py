"""For each algorithm, why two runs on related inputs have related results (`proof/related_runs`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import z3

from mmaformal.encodings.smt import fdrda as smt_fdrda
from mmaformal.encodings.smt.blocks import (
    Operand,
    StickySum,
    Term,
    all_of,
    any_of,
    product_range,
)
from mmaformal.encodings.smt.gps import flush
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.facts.sorted_pairs import same_number
from mmaformal.proof.failure import named
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import (
    Opposite,
    Pairing,
    Runs,
    Same,
    Step,
    _terms,
    operand_codes,
    same,
)


def _fda(step: Step) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b, left.scale_a, left.scale_b, right.scale_a, right.scale_b]
    terms = []
    for j, i in enumerate(step.order):
        own = [left.a[i], left.b[i], right.a[j], right.b[j]]
        own += [x for s in (left.scale_a, left.scale_b) for x in s[i : i + 1]]
        own += [x for s in (right.scale_a, right.scale_b) for x in s[j : j + 1]]
        given = [factors[j]] if factors else []
        terms.append(step.product(left.products[i], right.products[j], own, given))
    special = step.special([c, *factors, *terms, *zeros.values()], operands)
    return _fused(step, left.products, right.products, terms, c, special, step.order, zeros)


def _fused(
    step: Step,
    lefts: Any,
    rights: Any,
    terms: list[Link],
    c: Link,
    special: Link,
    order: Sequence[int],
    zeros: Mapping[int, Link] | None = None,
) -> Link:
    """Align, accumulate and round terms and c."""
    left, right, zeros = step.left, step.right, zeros or {}
    addend = step.addend(c)
    exponents = [[*(t.exponent for t in ts), s.addend.exponent] for ts, s in ((lefts, left), (rights, right))]
    below = [
        step.not_largest(
            i,
            lefts[i],
            left.addend.exponent,
            zero,
            [step.c],
            *left.scale_a[i : i + 1],
            *left.scale_b[i : i + 1],
        )
        for i, zero in zeros.items()
    ]
    e_max = step.largest(left.e_max, exponents[0], right.e_max, exponents[1], [*terms, addend], below)
    nothing = _nothing(step, zeros, left.e_max)
    total = step.sum_of(
        left.total,
        right.total,
        [*order, len(lefts)],
        [[t] for t in (*terms, addend)],
        [e_max],
        nothing=nothing,
    )
    return step.result(total, [e_max, special], (left.total, right.total))


def _gdfs(step: Step) -> Link:
    left, right = step.left, step.right
    G = step.runs.left_spec.parameters.G  # type: ignore[attr-defined]
    c, factors = step.operand_c(), step.factors()
    scales = [left.scale_a, left.scale_b, right.scale_a, right.scale_b]
    special = step.special([c], scales)
    groups, order, zeros = [], [], step.zeros()
    n = len(step.order) // len(left.groups)  # products of the second run's groups
    for g in range(len(left.groups)):
        mine = range(g * n, (g + 1) * n)
        h = step.order[g * n] // G  # the first run's group that this one of the second is
        order.append(h)
        inside = [step.order[j] - h * G for j in mine]
        gone = {i: zero for i, zero in zeros.items() if i // G == h}
        links = []
        for i in gone:
            magnitude = left.products[i][1]
            none = Link(magnitude == 0, (), ((magnitude, z3.BitVecVal(0, magnitude.size())),))
            codes = operand_codes(left.a[i], left.b[i])
            links.append(step.derive("multiply", "a dropped product is zero", none, [step.dropped[i]], codes))
        nothing = _nothing(step, gone, None, _inside(h * G))
        for j in mine:
            i = step.order[j]
            x, y = left.products[i], right.products[j]
            pair = Term(x[0], x[1], x[1]), Term(y[0], y[1], y[1])  # no exponent: it is fixed point
            own = [left.a[i], left.b[i], right.a[j], right.b[j]]
            links.append(step.product(*pair, own, [factors[j]] if factors else []))
        given = [[link] for link in links[-n:]]
        total = step.sum_of(left.sums[h], right.sums[g], inside, given, nothing=nothing)
        own = [x[i] for x, i in zip(scales, (h, h, g, g), strict=True)]
        groups.append(
            step.product(
                left.groups[h], right.groups[g], own, [step.sizes(left.sums[h], right.sums[g], total), *links]
            )
        )
    return _fused(step, left.groups, right.groups, groups, c, special, order)


def _inside(first: int) -> Callable[[int], int]:
    """The place of a product in its group."""
    return lambda i: i - first


def _products(step: Step, factors: Sequence[Link]) -> list[Link]:
    left, right = step.left, step.right
    return [
        step.product(
            left.products[i],
            right.products[j],
            [left.a[i], left.b[i], right.a[j], right.b[j]],
            [factors[j]] if factors else [],
        )
        for j, i in enumerate(step.order)
    ]


def _fdrda(step: Step) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = _products(step, factors)
    quiet = [step.quiet(i, zero) for i, zero in zeros.items()]
    special = step.special([c, *factors, *terms, *zeros.values(), *quiet], operands)
    exponents = [[p.exponent for p in s.products] for s in (left, right)]
    if hasattr(left, "groups"):
        dot, e_products = _groups(step, terms, exponents, zeros)
    else:
        below = [step.not_largest(i, left.products[i], exponents[0][0], z, []) for i, z in zeros.items()]
        tops = left.e_products, exponents[0], right.e_products, exponents[1]
        e_products = step.largest(*tops, terms, below)
        given = [[t] for t in terms]
        nothing = _nothing(step, zeros, left.e_products)
        dot = step.sum_of(left.dot, right.dot, step.order, given, [e_products], nothing=nothing)
    e_dot = step.derive(
        "align",
        "the exponents of the dot products are equal",
        same(left.e_dot, right.e_dot),
        [e_products, *factors, *zeros.values()],
        _terms(operands),
    )
    addend = step.addend(c)
    if left.total.size() == right.total.size():
        return step.result(dot, [e_dot, addend, special])
    extra = left.total.size() - right.total.size()
    if not hasattr(right, "groups"):
        bounds = [step.argument.bounded(right.dot, len(right.products))]
    else:
        each = [step.argument.bounded(x, len(right.aligned[g::2])) for g, x in enumerate(right.groups)]
        bounds = [step.bounded_groups(each)]
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


def _reach(step: Step) -> list[Link]:
    """That the first run's largest exponent is in the range that exponents are held in."""
    left, spec = step.left, step.runs.left_spec
    own, wide = product_range(spec.a_format, spec.b_format), smt_fdrda.exponents_of(spec)
    if hasattr(left, "groups"):
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
    operands = _terms([left.a, left.b])
    dot = step.derive("align", text, at_most(left.e_dot, last), [top], operands)
    c = step.derive("multiply", "c's exponent is in range", at_most(left.addend.exponent, last), [step.c])
    first = z3.BitVecVal(spec.c_format.min_exponent - wide.low, wide.bits)
    low = step.derive("multiply", "c's exponent is in range", at_most(first, left.addend.exponent), [step.c])
    return [
        step.derive("align", text, at_most(left.e_max, last), [dot, c]),
        step.derive("align", text, at_most(first, left.e_max), [low], [left.e_dot]),
    ]


def _nothing(
    step: Step,
    zeros: Mapping[int, Link],
    e_max: z3.BitVecRef | None,
    place: Callable[[int], int] = lambda i: i,
) -> dict[int, Callable[[z3.BitVecRef], Link]]:
    """For dropped products, by the places of their summands, the link that these are zero."""

    def make(i: int, zero: Link) -> Callable[[z3.BitVecRef], Link]:
        return lambda x: step.nothing(i, x, e_max, zero)

    return {place(i): make(i, zero) for i, zero in zeros.items()}


def _groups(
    step: Step, terms: Sequence[Link], exponents: Sequence[Sequence[Any]], zeros: Mapping[int, Link]
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
        below = [step.not_largest(i, left.products[i], lefts[0], zero, []) for i, zero in own.items()]
        top = step.largest(left.e_groups[g], lefts, right.e_groups[g], rights, links, below)
        inside = [step.order[j] // count for j in mine]
        nothing = _nothing(step, own, left.e_groups[g], lambda i: i // count)
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


def _efda(step: Step) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = _products(step, factors)
    special = step.special([c, *factors, *terms, *zeros.values()], operands)
    addend = step.addend(c)
    if hasattr(left, "placed"):
        nothing = _nothing(step, zeros, None)
        dot = step.sum_of(left.dot, right.dot, step.order, [[t] for t in terms], nothing=nothing)
        term = step.derive("multiply", "sums are related terms", step.kind.term(left.term, right.term), [dot])
        return _rounded(step, left.sum, right.sum, [term, addend], [special])
    links, permuted = [], isinstance(step.kind, Same) and list(step.order) != sorted(step.order)
    for j, i in enumerate(step.order):
        link = step.kind.term(left.terms[i], right.terms[j])
        links.append(step.derive("align", "normalised terms are related", link, [terms[j]]))
    for i, zero in zeros.items():  # the second run has a constant zero in its place
        x, y = left.a[i], left.b[i]
        link = step.kind.term(left.terms[i], right.terms[i])
        links.append(step.derive("align", "a dropped product is zero", link, [zero], [x.field, y.field]))
    link = step.kind.term(left.terms[-1], right.terms[-1])
    links.append(step.derive("align", "normalised terms are related", link, [addend]))
    if permuted:
        codes = [*(operand_codes(x, y) for x, y in zip(left.a, left.b, strict=True)), []]
        number = same_number(step, links, codes)
        text, result = "one number in two units is rounded alike", same(left.result, right.result)
        return step.derive("round", text, result, [number, special])
    sorted_ = []
    for x, y in zip(left.sorted, right.sorted, strict=True):
        sorted_.append(step.derive("align", "terms are sorted alike", step.kind.term(x, y), links))
    partial = step.kind.summand(left.partial.total, right.partial.total)
    e_partial = same(left.partial.e_max, right.partial.e_max)
    step.derive("accumulate", "partial sums are related", partial, sorted_)
    step.derive("accumulate", "partial sums are at the same exponent", e_partial, sorted_)
    sizes = step.sizes(left.partial.total, right.partial.total, partial)
    normal = step.kind.term(left.normal, right.normal)
    step.derive("accumulate", "partial sums are normalised alike", normal, [sizes, e_partial])
    return _sorted_result(step, [normal, *sorted_], special)


def _sorted_result(step: Step, given: Sequence[Link], special: Link) -> Link:
    x, y = step.left.sum, step.right.sum
    e_max, total = same(x.e_max, y.e_max), step.kind.summand(x.total, y.total, x.total.size() - 1)
    step.derive("accumulate", "sums are at the same exponent", e_max, given)
    step.derive("accumulate", "sums are related", total, given)
    result = step.kind.code(step.left.result, step.right.result, step.runs.left_spec.d_format)
    sizes = step.sizes(x.total, y.total, total, whole=True)
    return step.derive(
        "round", "related sums are rounded to related results", result, [sizes, e_max, special]
    )


def _rounded(step: Step, x: StickySum, y: StickySum, terms: Sequence[Link], given: Sequence[Link]) -> Link:
    """The link of the results, from the links of two terms that are added."""
    e_max = step.derive("align", "the sums are at the same exponent", same(x.e_max, y.e_max), terms)
    total = step.kind.summand(x.total, y.total, x.total.size() - 1)
    if isinstance(step.kind, Opposite):
        aligned = []
        for mine, other, term in ((x.x, y.x, terms[0]), (x.y, y.y, terms[1])):
            signs = term.free[:2]  # of `Opposite.term`
            flip = z3.Or(signs[0] != signs[1], mine == 0)
            link = Link(z3.And(mine == other, flip), (mine, *signs), ((other, mine),))
            aligned.append(step.derive("align", "aligned terms are opposite", link, [term, e_max]))
        step.derive("accumulate", "the sums are related", total, aligned)
    else:
        step.derive("accumulate", "the sums are related", total, [*terms, e_max])
    sizes = step.sizes(x.total, y.total, total, bounded=True)
    return step.result(sizes, [e_max, *terms, *given])


def _sfma(step: Step) -> Link:
    left, right = step.left, step.right
    c = step.operand_c()
    given = []
    if isinstance(step.kind, Opposite):
        codes = operand_codes(left.a, right.a)
        text = "negated codes are decoded to related operands"
        given.append(step.derive("decode", text, step.kind.operand(left.a, right.a), [], codes))
    operands = [left.a, left.b, right.a, right.b]
    product = step.product(left.product, right.product, operands, given)
    special = step.special([c, *given, product], operands)
    return _rounded(step, left.sum, right.sum, [product, step.addend(c)], [special])


def _gps(step: Step) -> Link:
    left, right, kind, fmt = step.left, step.right, step.kind, step.runs.left_spec.d_format
    G = len(step.order)
    codes: list[Link] = []
    factors = step.factors()
    for j, i in enumerate(step.order):
        link = kind.code(left.products[i], right.products[j], fmt)
        operands = _terms(left.a[i], left.b[i], right.a[j], right.b[j])
        codes.append(
            step.derive("multiply", "products are related", link, [factors[j]] if factors else [], operands)
        )
    # Sums of pairs, then of pairs of those: `order` are the places of the second run's numbers in the first.
    order, n, at = list(step.order), G, 0
    while n > 1:
        n //= 2
        pairs = []
        for j in range(n):
            i = order[2 * j] // 2
            pairs.append(_addition(step, left.sums[at + i], right.sums[at + j], codes[2 * j : 2 * j + 2]))
            order[j] = i
        codes, at = pairs, at + n
    return _addition(step, left.addition, right.addition, [step.c, *codes])


def _addition(step: Step, left: Addition, right: Addition, given: Sequence[Link]) -> Link:
    """The link of two sums of gps, flushed."""
    kind, fmt = step.kind, step.runs.left_spec.d_format
    link = kind.code(left.result, right.result, fmt)
    step.derive("accumulate", "sums of related numbers are related", link, given)
    x, y = (flush(each.result, keep_sign=True) for each in (left, right))
    return step.derive("encode", "flushed alike", kind.code(x, y, fmt), [link])


def _lowered(step: Step) -> Link:
    left, right, runs = step.left, step.right, step.runs
    specs = runs.left_spec, runs.right_spec
    (inner, other), (order, other_order) = (
        [spec.parameters.inner_dot_add(spec) for spec in specs],  # type: ignore[attr-defined]
        [spec.parameters.order for spec in specs],  # type: ignore[attr-defined]
    )
    zero = z3.BitVecVal(0, runs.left_spec.d_format.storage_bits)
    # order[t] is the place of the t-th product taken; the second run's t-th is the first's at[t]-th.
    at = [order.index(step.order[k]) for k in other_order]
    dropped = {order.index(k): link for k, link in step.dropped.items()}
    dot = step.kind.code(zero, zero, runs.left_spec.d_format)
    step.derive("inputs", "the inner steps start from +0", dot, [])
    dot = _chain(
        step.argument, Runs(step.kind, inner, other, left.inner, right.inner, at, dropped, True), dot
    )
    link = step.kind.code(left.result, right.result, runs.left_spec.d_format)
    return step.derive("accumulate", "sums of related numbers are related", link, [dot, step.c])


_STEPS: dict[str, Callable[[Step], Link]] = {
    "fda": _fda,
    "gdfs": _gdfs,
    "fdrda": _fdrda,
    "gfdrda": _fdrda,
    "efda": _efda,
    "sfma": _sfma,
    "gps": _gps,
    "lowered": _lowered,
}


def _chain(argument: Pairing, runs: Runs, c: Link) -> Link:
    """From the link of c, step by step, to that of d.

    Raises ArgumentError if products are not matched within steps.
    """
    n, m = (spec.parameters.step_products for spec in (runs.left_spec, runs.right_spec))
    for s, (left, right) in enumerate(zip(runs.left, runs.right, strict=True)):
        order = [k - s * n for k in runs.match[s * m : (s + 1) * m]]
        if not all(0 <= k < n for k in order):
            raise ArgumentError("no argument is known where products change from one step to another")
        dropped = {k - s * n: link for k, link in runs.dropped.items() if s * n <= k < (s + 1) * n}
        step = Step(argument, runs, left, right, c, order, dropped)
        if isinstance(runs.kind, Opposite) and isinstance(getattr(left, "c", None), Operand):
            c = _unless_nan(step)
        else:
            c = _STEPS[runs.left_spec.parameters.algorithm](step)
    return c


def _unless_nan(step: Step) -> Link:
    """The link of the results: that of numbers if there is no NaN to keep its sign, else that both are NaN."""
    left, right, argument = step.left, step.right, step.argument
    pairs = [(left.c, right.c)]
    if step.runs.nans_keep_sign:
        pairs += [(left.a[i], right.a[j]) for j, i in enumerate(step.order)]
    flags = [x.nan for x, _ in pairs if not z3.is_false(x.nan)]
    some, none = Link(any_of(flags), ()), Link(all_of([z3.Not(flag) for flag in flags]), ())
    argument.split("there is a NaN or not", flags, some, none)

    alike = []
    for x, y in pairs:
        if not z3.is_false(x.nan):
            link = Link(x.nan == y.nan, (x.nan, y.nan))
            given, inputs = ([step.c], []) if x is left.c else ([], operand_codes(x, y))
            alike.append(step.derive("classify", "negated NaNs are NaNs", link, given, inputs))
    yes, nans = z3.BoolVal(True), (left.special.nan, right.special.nan)
    both_nan = Link(z3.And(*nans), (), tuple((nan, yes) for nan in nans))
    step.derive("classify", "a NaN makes the result a NaN", both_nan, [*alike, some])
    result = step.kind.code(left.result, right.result, step.runs.left_spec.d_format)
    step.derive("encode", "two NaN results are related", result, [both_nan])

    for flag in flags:
        link = Link(z3.Not(flag), ())
        step.no_nan[flag.get_id()] = step.derive("cases", "none is a NaN", link, [none], flags)
    return _STEPS[step.runs.left_spec.parameters.algorithm](step)


def argue(
    runs: Runs, c: Link, statement: str, argument: Pairing, results: tuple[z3.BitVecRef, z3.BitVecRef]
) -> Pairing:
    """The argument that the results of both runs are related, from the link of both c.

    Whatever the last step gives: it is the codes of d that are to be related.
    """
    argument.interfaces = lambda: (*named("first.steps", runs.left), *named("second.steps", runs.right))
    _chain(argument, runs, c)
    argument.conclude(runs.kind.code(*results, runs.left_spec.d_format), statement)
    return argument
