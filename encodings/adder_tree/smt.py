"""adder_tree, rounded products added by a tree of IEEE additions, as bit-vector terms.  Specification: semantics §3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.adder_tree import AdderTree, C, PlaceTree
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import BitVec, product_range, quiet_nan
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.formats import Format
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class TreeStep:
    """The interfaces of one step."""

    products: tuple[Code, ...]
    sums: tuple[Addition, ...]  #: from the left, the innermost first
    result: BitVec


def rounded_products(
    spec: DotAdd, p: AdderTree, a: Sequence[BitVec], b: Sequence[BitVec], stages: Stages
) -> tuple[Code, ...]:
    """Every φ(a·b)."""
    fmt_a, fmt_b, phi = spec.a_format, spec.b_format, p.product
    exponents, F = product_range(fmt_a, fmt_b), fmt_a.fraction_bits + fmt_b.fraction_bits
    made: list[Code] = []
    for k in range(len(a)):
        pair = stages.decode(a[k], fmt_a), stages.decode(b[k], fmt_b)
        special = stages.classify([pair])
        term = stages.multiply(*pair, fmt_a.bias + fmt_b.bias, exponents)
        made.append(stages.round_product(term, exponents, F, phi, special, quiet_nan(phi.format)))
    return tuple(made)


def _added(
    tree: PlaceTree,
    p: AdderTree,
    given: dict[int, tuple[BitVec, Format]],
    stages: Stages,
    sums: list[Addition],
) -> tuple[BitVec, Format]:
    """The code of a tree and its format; every sum is put down in `sums`."""
    if isinstance(tree, int):
        return given[tree]
    rho, operands = p.of(tree), []
    for child in tree:
        code, fmt = _added(child, p, given, stages, sums)
        operands.append(stages.convert(code, fmt, rho.format))
    sums.append(stages.add(operands[0], operands[1], rho, quiet_nan(rho.format)))
    return sums[-1].result, rho.format


def step(
    spec: DotAdd, p: AdderTree, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> TreeStep:
    """One step over all products of the tree."""
    products = rounded_products(spec, p, a, b, stages)
    given = {k: (each.result, p.product.format) for k, each in enumerate(products)}
    sums: list[Addition] = []
    code, fmt = _added(p.tree, p, given | {C: (c, spec.c_format)}, stages, sums)
    if p.of(p.tree) != p.rho:
        code = stages.code("convert", [code], ieee.rescale(code, fmt, p.rho), p.rho.format)
    return TreeStep(products, tuple(sums), code)


dot_add = looped(AdderTree, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
