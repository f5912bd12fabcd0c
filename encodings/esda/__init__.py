"""esda, an exact dot product rounded once, then added: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.display import counted
from mmaformal.encodings.efda import Efda
from mmaformal.formats import fp32
from mmaformal.limits import significant
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class Esda(Parameters):
    """esda, exact dot product rounded once, then added (semantics §3: Intel's AMX-FP8).

    Per step, `d = ρ(c + δ(Σ a_k·b_k))`: the exact sum of L products is rounded with δ, `dot`, to a code of d's format
    (efda from +0), which is then added to c.  With `flush` a subnormal result is zero of its sign; subnormal operands
    are kept.  A NaN is what `nan` says.
    """

    L: int  #: products of one sum; K > L is a chain of steps
    dot: Conversion  #: δ, of the sum of products
    rho: Conversion
    flush: bool
    nan: NanRule

    algorithm: ClassVar[str] = "esda"
    is_design: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.INNER
    meanings: ClassVar[Mapping[str, str]] = {
        "dot": "how the exact sum of the products is rounded, before c is added",
        "flush": "whether a subnormal result is zero of its sign",
        "nan": "which NaN comes out",
    }
    summary: ClassVar[str] = "exact dot product of L products, rounded once, then added to c"
    nan_is_canonical = True
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        self.needs(self.nan in (NanRule.DEFAULT, NanRule.INDEFINITE), f"one NaN, not {self.nan.value}")

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.c_format == spec.d_format == fp32, f"c and d of fp32, not {spec.types}")
        whole = all(x.format == fp32 and x.fraction_bits == fp32.fraction_bits for x in (self.dot, self.rho))
        self.needs(whole, f"roundings to all of fp32, not {self.dot} and {self.rho}")
        self.inner(spec)  # raises where the sum cannot be

    def inner(self, spec: DotAdd) -> DotAdd:
        """Returns the sum of the products of one step, from +0."""
        return DotAdd(self.L, spec.a_format, spec.b_format, fp32, fp32, self.exact)

    @property
    def exact(self) -> Efda:
        """Returns the parameters of the sum of the products of one step."""
        return Efda(self.L, self.dot)

    @property
    def last_rounding(self) -> Conversion:
        return self.rho

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps every bit of the sum of {counted(self.L, 'product')}, which is rounded once to "
            f"{significant(fp32)}; c is added in the end, by an ordinary fp32 addition"
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, Node(tuple(places)) if len(places) > 1 else places[0]))
