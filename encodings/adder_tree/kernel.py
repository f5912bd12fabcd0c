"""Rows of adder_tree by the executable's stages, where all sums are in the format of d: the tree is in numbers."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.adder_tree import AdderTree, C, PlaceTree
from mmaformal.encodings.executable.blocks import (
    Lane,
    classify_product,
    decode,
    multiply,
    quiet_nan,
    resolve_special,
)
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.executable.stages import code_of_product
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.given import CONVERSION, conversion
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

_SUM = CONVERSION + 2  #: numbers that a sum takes: its rounding, and the places of its terms


@step_of("adder_tree")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, own, room = on.of, on.own, on.room
    nan, phi = own[0], conversion(own, 1, of.d_format)
    places = of.a_format.fraction_bits + of.b_format.fraction_bits
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout)
        special = resolve_special(classify_product(x, y))
        room[0, k] = code_of_product(multiply(x, y), places, phi, special, nan).result
    result = code
    # There are as many sums as products.  A term's place is 0 … of a product, −1 of c, −2 … of a sum.
    for i in range(a.size):
        at = 1 + CONVERSION + i * _SUM
        left, right = own[at + CONVERSION], own[at + CONVERSION + 1]
        u = room[0, left] if left >= 0 else code if left == -1 else room[1, -2 - left]
        v = room[0, right] if right >= 0 else code if right == -1 else room[1, -2 - right]
        result = ieee_add(u, v, conversion(own, at, of.d_format), nan).result
        room[1, i] = result
    return result


class AdderTreeKernel(OnlyRows):
    """The compiled rows of adder_tree, but where a sum has another format than d, or d is rounded once more."""

    @classmethod
    def compiles_rows(cls, spec: DotAdd) -> bool:
        p = spec.parameters_as(AdderTree)
        formats = {spec.c_format, p.product.format, *(rho.format for rho in p.sums)}
        return formats == {spec.d_format} and p.of(p.tree) == p.rho

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(AdderTree)
        sums: list[Conversion | int] = []

        def place(tree: PlaceTree) -> int:
            if isinstance(tree, int):
                return -1 if tree == C else tree
            left, right = (place(child) for child in tree)
            sums.extend((p.of(tree), left, right))
            return -1 - len(sums) // 3

        place(p.tree)
        chain("adder_tree", spec, rows, p.rho, p.step_products, quiet_nan(p.rho.format), p.product, *sums)


KERNEL = AdderTreeKernel
