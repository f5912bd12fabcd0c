"""adder_tree, rounded products added by a tree of IEEE additions, executable.  Specification: semantics §3.

Products are rounded with φ; then sum by sum, what is innermost first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.adder_tree import AdderTree, C, PlaceTree
from mmaformal.encodings.executable.blocks import Lane, quiet_nan
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition, convert
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.formats import Format
from mmaformal.spec import DotAdd


class TreeStep(NamedTuple):
    """The interfaces of one step: products, then sums, the innermost first."""

    products: tuple[Code, ...]
    sums: tuple[Addition, ...]
    result: Lane


def step(
    spec: DotAdd, p: AdderTree, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> TreeStep:
    """All products and sums of one step."""
    products: list[Code] = []
    places, phi = spec.a_format.fraction_bits + spec.b_format.fraction_bits, p.product
    for u, v in zip(a, b, strict=True):
        x, y = stages.decode(u, spec.a_format), stages.decode(v, spec.b_format)
        special, exact = stages.classify([(x, y)]), stages.multiply(x, y)
        products.append(stages.round_product(exact, places, phi, special, quiet_nan(phi.format)))
    sums: list[Addition] = []

    def code(tree: PlaceTree) -> tuple[Lane, Format]:
        if isinstance(tree, int):
            return (c, spec.c_format) if tree == C else (products[tree].result, phi.format)
        rho = p.of(tree)
        x, y = (stages.convert(*code(child), rho.format) for child in tree)
        sums.append(stages.add(x, y, rho, quiet_nan(rho.format)))
        return sums[-1].result, rho.format

    result, fmt = code(p.tree)
    if p.of(p.tree) != p.rho:
        result = stages.code("convert", [result], convert(result, fmt, p.rho), p.rho.format)
    return TreeStep(tuple(products), tuple(sums), result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(AdderTree), a, b, c, stages))
