"""The sum of a pair of products, rounded once, and that d grows with a product where such pairs are added to c.

The pair does, since ρ keeps the order of exact sums, and d grows with the pair as with c.  So do POWER10's and Arm
SME's sums of two products (rnd2), and RISC-V's of two that lose nothing but what rounding to odd remembers (lowered).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings.smt.blocks import ExponentRange, Operand
from mmaformal.facts.exact_steps import Sticky, TwoTerms, prove_sticky, span_of
from mmaformal.facts.monotone_addition import AdditionOfC, MonotoneLastAddition
from mmaformal.proof.rules import Theory, instance
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import ChainStep, OrderedSums, prove_chain_in_order, same_results
from mmaformal.theory.numbers import CodeNumbers, larger_product
from mmaformal.theory.rounded_sums import RoundsExactly, Span, SumTheorem, conclude, prove_finite
from mmaformal.theory.rounding import RoundingGrid


def span_of_pair(exponents: ExponentRange, frame: int, total: z3.BitVecRef, rho: Conversion) -> Span:
    """Return the span of a pair and of all numbers of ρ's format."""
    span, fmt = span_of(exponents, frame, total, rho), rho.format
    return span._replace(
        low=min(span.low, fmt.min_exponent - fmt.fraction_bits), high=max(span.high, fmt.max_exponent + 1)
    )


def prove_pair(
    grid: RoundingGrid,
    model: RoundsExactly,
    terms: Sticky,
    factors: Sequence[tuple[Operand, Operand]],
) -> SumTheorem:
    """Return the theorem that a model's step rounds the sum of both products once.  Raises NotProvedError.

    `terms` are the products, with what is known of them, and `factors` those of each.
    """
    w, theory, step = grid.numbers, grid.numbers.theory, model.step
    codes = CodeNumbers(w, model.spec)
    prove_sticky(theory, terms)
    finite = prove_finite(theory, step, [x for pair in factors for x in pair])
    sums = TwoTerms(w, terms, dict(theory.named))
    shown = sums.prove()
    products = [
        codes.prove_product(k, term, size, factors[k], finite.arg(0), terms.invariants[k])
        for k, (term, size) in enumerate(((terms.x, sums.first), (terms.y, sums.addend)))
    ]
    nothing = theory.claim("no c", "−0 adds nothing", codes.integers[-1] == 0)
    none = z3.Not(z3.Or(*step.special))
    same, text = z3.Implies(none, sums.exact == codes.total), "the sum is that of the codes' products"
    same = theory.claim("sum of codes", text, same, [*products, nothing, finite])
    return conclude(grid, shown, step, model.zero, same, codes.total)


# ---- d grows with a product ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grows:
    """Theorems of one step: that the pair grows with its products, and d with the pair and with c."""

    pair: RoundsExactly
    taken: Callable[[AnyStep], tuple[z3.BitVecRef, z3.BitVecRef]]
    with_product: Sequence[z3.BoolRef]
    with_pair: tuple[MonotoneLastAddition, z3.BoolRef]
    with_c: tuple[MonotoneLastAddition, z3.BoolRef] | None  #: where a step is followed by others


def prove_in_products(
    theory: Theory,
    spec: DotAdd,
    pair: RoundsExactly,
    add: Callable[[z3.BitVecRef, z3.BitVecRef], AdditionOfC],
    taken: Callable[[AnyStep], tuple[z3.BitVecRef, z3.BitVecRef]],
) -> None:
    """Prove `larger_product(spec, k).statement` of each k.  Raises NotProvedError.

    `pair` is the sum of a step's two products, `add` adds it to c, and `taken` of a step is (the pair, what is added).
    """
    fmt, L = spec.d_format, spec.parameters.step_products
    sums = OrderedSums.of(theory, pair)
    products = [sums.prove_in_product(j) for j in range(L)]
    ways = [
        (last, last.prove(theory))
        for last in (
            MonotoneLastAddition(fmt, lambda pair, c: add(c, pair)),
            MonotoneLastAddition(fmt, add),
        )[: spec.k // L]
    ]
    grows = _Grows(pair, taken, products, ways[0], ways[1] if len(ways) > 1 else None)
    for k in range(spec.k):
        _prove_in_product(theory, spec, k, grows)


def _prove_in_product(theory: Theory, spec: DotAdd, k: int, grows: _Grows) -> None:
    L, fmt = spec.parameters.step_products, spec.d_format
    i, j = divmod(k, L)
    runs, alone = larger_product(spec, k), larger_product(grows.pair.spec, j)
    first, second = (trace.steps for trace in runs.traces)
    c = first[i - 1].result if i else runs.x.c
    at = slice(i * L, (i + 1) * L)
    own = [*alone.x.a, *alone.x.b, alone.y.a[j], alone.y.b[j]]
    mine = [*runs.x.a[at], *runs.x.b[at], runs.y.a[k], runs.y.b[k]]
    moved = [(u, v) for u, v in zip(own, mine, strict=True) if not u.eq(v)]
    if moved:
        instance(theory, grows.with_product[j], moved)
    own_pairs = [z3.substitute(grows.pair.run(x).result, *moved) for x in (alone.x, alone.y)]
    pairs = grows.taken(first[i])[0], grows.taken(second[i])[0]
    text = "a pair is a pair of its own"
    same_results(theory, f"pair {k}", text, pairs, (own_pairs[0], own_pairs[1]), fmt)
    last, theorem = grows.with_pair
    results = first[i].result, second[i].result
    prove_chain_in_order(theory, last.step, theorem, pairs, [([(last.other, c)], results)])
    if grows.with_c is not None:
        last, theorem = grows.with_c
        rest = zip(first[i + 1 :], second[i + 1 :], strict=True)
        links: list[ChainStep] = [([(last.other, grows.taken(x)[1])], (x.result, y.result)) for x, y in rest]
        prove_chain_in_order(theory, last.step, theorem, results, links)
    ends = tuple(trace.result for trace in runs.traces)
    text = "the result is the last step's"
    same_results(theory, f"result, {k}", text, (ends[0], ends[1]), (first[-1].result, second[-1].result), fmt)
    theory.theorem(f"d is not smaller if product {k} is not", runs.statement)
