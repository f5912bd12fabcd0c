"""lowered, a PTX instruction that the compiler makes several of: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.encodings.fda import Fda
from mmaformal.formats import Format, fp16, fp32
from mmaformal.limits import aligned, cut_text, factors, holds_narrower, own_bits, product_bound, widest, zero
from mmaformal.rounding import Conversion, NanRule, Rounding
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class Lowered(Parameters):
    """A PTX instruction that the compiler lowers to several (semantics §6, "Lowered PTX").

    a and b are converted to `operands`, exactly, unless that is None.  fda steps (`inner`) take the products, L at a
    time, in the order `order` (indices into the `len(order)` products of one instruction), starting from c = +0,
    each step's result the next one's c.  Last comes the real c, in one ordinary IEEE addition, rounded with
    `addition`.  RISC-V's bulk-normalised dot products (semantics §11) are such: one step, then c, to odd both.
    """

    F: int
    L: int  #: products of one inner fda step
    rho: Conversion  #: of the inner fda
    e_zero: int | None
    operands: Format | None  #: what a and b are converted to; None: they are taken as they are
    order: tuple[int, ...]  #: in which the products of one instruction are taken
    addition: Conversion  #: rounding of the last addition, in the type of d
    cut: Rounding = Rounding.RZ  #: of the inner fda
    nan: NanRule = NanRule.ANY

    algorithm: ClassVar[str] = "lowered"
    loss: ClassVar[LossModel] = LossModel.INNER
    meanings: ClassVar[Mapping[str, str]] = {**Fda.meanings, "nan": "which NaN the addition of c gives"}
    aligns: ClassVar[bool] = True
    summary: ClassVar[str] = "fda steps from zero, of operands that may be converted first; c is added last"
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        self.needs(self.operands in (None, fp16, fp32), f"operands of fp16 or fp32, not {self.operands}")
        self.needs(len(self.order) >= 1, "an order of at least one product")
        self.needs(sorted(self.order) == list(range(len(self.order))), "an order that is a permutation")
        self.needs(len(self.order) % self.L == 0, f"{len(self.order)} products a multiple of L = {self.L}")
        self.needs(self.nan in (NanRule.ANY, NanRule.DEFAULT), f"one NaN, not {self.nan.value}")

    @property
    def step_products(self) -> int:
        return len(self.order)

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.c_format == spec.d_format, f"c and d of one type, not {spec.types}")
        self.needs(self.addition.format == spec.d_format, f"an addition in {spec.d_format}")
        for x in (spec.a_format, spec.b_format):
            to = self.taken_as(x)
            self.needs(holds_narrower(to, x), f"a, b that {to} holds, not {x}")
        self.inner_dot_add(spec)  # raises where the fused steps cannot be

    def class_of(self, k: int) -> Hashable:
        """The products of an inner step."""
        n = len(self.order)
        return k // n, self.order.index(k % n) // self.L

    @property
    def last_rounding(self) -> Conversion:
        return self.addition

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        d = spec.d_format  # of the inner c
        products = [product_bound(spec, self.F, self.cut)] * self.L
        begins_with_zero = len(self.order) == self.L
        return [*products, 0 if begins_with_zero else aligned(widest(d), d.fraction_bits, self.F, self.cut)]

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        if self.L == 1:
            return None
        n = len(self.order)
        last = [self.order[i] for i in range(self.L - 1, n, self.L)]
        kept = sorted(set(range(n)) - set(last))
        order = tuple(kept.index(k) for k in self.order if k not in last)
        zeros = tuple(step + k for step in range(0, spec.k, n) for k in sorted(last))
        return spec.replace(k=spec.k - len(zeros), L=self.L - 1, order=order), zeros

    def taken(self, k: int) -> list[int]:
        n = len(self.order)
        return [start + place for start in range(0, k, n) for place in self.order]

    def keeps(self, spec: DotAdd) -> str:
        d = spec.d_format
        nearest = self.addition.rounding is Rounding.RNE
        how = "an ordinary" if nearest else f"a correctly rounded ({self.addition.rounding.name})"
        return (
            f"keeps {self.F} fractional bits below the largest term of a step, {cut_text(self.cut)} ({own_bits(d)}); "
            f"c is added in the end, by {how} {d} addition"
        )

    @property
    def inner(self) -> Fda:
        return Fda(self.F, self.L, self.rho, self.e_zero, self.cut)

    def taken_as(self, fmt: Format) -> Format:
        """Returns the format that operands of a format are converted to."""
        return self.operands or fmt

    def made_of(self, spec: DotAdd) -> DotAdd:
        return self.inner_dot_add(spec)

    def inner_dot_add(self, spec: DotAdd) -> DotAdd:
        """The fused part of one instruction: its products in `order`, on converted operands."""
        a, b = self.taken_as(spec.a_format), self.taken_as(spec.b_format)
        return DotAdd(len(self.order), a, b, spec.d_format, spec.d_format, self.inner)

    def zero_exponent(self, spec: DotAdd) -> int:
        """The inner steps' c is of the type of d."""
        least = spec.a_format.min_exponent + spec.b_format.min_exponent
        return max(least, spec.d_format.min_exponent) if self.e_zero is None else self.e_zero

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        inner: list[Node | int] = []
        for start in range(0, len(places), self.L):
            part = [*inner, *places[start : start + self.L]]
            inner = [Node(tuple(part))] if len(part) > 1 else part
        return Node((before, *inner))

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        if spec.k != len(self.order):
            return None
        own = {
            "k": spec.k,
            "frac_bits": self.F,
            "dot": self.rho,
            "rho": self.addition,
            "cut": self.cut.name,
            "step": self.L,
        }
        more = {"operands": self.operands} if self.operands else {}
        order = {} if self.order == tuple(range(spec.k)) else {"order": ".".join(map(str, self.order))}
        return "sda", {**own, **factors(spec), **more, **zero(self.e_zero), **order}
