"""adder_tree, rounded products added by a tree of IEEE additions: its parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

from mmaformal.limits import check_products, factors, holds_narrower, significant
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node

#: A sum of two of these: the place of a product, −1 for c, or another sum.
PlaceTree: TypeAlias = "tuple[PlaceTree, PlaceTree] | int"
C = -1

_TOKEN = re.compile(r"\s*(?:(\d+)|([c()+]))")


def parse(text: str) -> PlaceTree:
    """Return the tree that is spelled, as `((0+1)+(2+3))+c`; without parentheses from the left.  Raises ValueError."""
    tokens, at = list[str](), 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"order: {text!r} is no sum of products 0, 1, … and c")
        tokens.append(found[1] or found[2])
        at = found.end()
    tree, rest = _sum(tokens, text)
    if rest:
        raise ValueError(f"order: {text!r} has {rest[0]!r} too much")
    return tree


def _sum(tokens: list[str], text: str) -> tuple[PlaceTree, list[str]]:
    total, tokens = _one(tokens, text)
    while tokens and tokens[0] == "+":
        other, tokens = _one(tokens[1:], text)
        total = total, other
    return total, tokens


def _one(tokens: list[str], text: str) -> tuple[PlaceTree, list[str]]:
    if not tokens or tokens[0] in "+)":
        raise ValueError(f"order: {text!r} lacks what is added")
    first, rest = tokens[0], tokens[1:]
    if first != "(":
        return (C if first == "c" else int(first)), rest
    inner, rest = _sum(rest, text)
    if not rest or rest[0] != ")":
        raise ValueError(f"order: {text!r} lacks a parenthesis")
    return inner, rest[1:]


def leaves(tree: PlaceTree) -> list[int]:
    """Return the places of a tree, from the left."""
    return [tree] if isinstance(tree, int) else [x for child in tree for x in leaves(child)]


def height(tree: PlaceTree) -> int:
    """Return the most sums that are one within the other."""
    return 0 if isinstance(tree, int) else 1 + max(map(height, tree))


def _conversions(value: object, name: str) -> tuple[Conversion, ...]:
    """Conversions, or their names with dots between.  Raises ValueError, TypeError."""
    parts = value.split(".") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        raise TypeError(f"{name} are conversions, not {value!r}")
    return tuple(Conversion.named(each, name) for each in parts)


@dataclass(frozen=True, repr=False)
class AdderTree(Parameters):
    """adder_tree, rounded products added by a tree of IEEE additions, a datapath (semantics §3).

    Each product is rounded with φ; `order` says what is added to what, c once among it.  Of a sum that has h sums one
    within the other, `sums[h − 1]` rounds, or the last of these; the last sum is rounded with ρ again, if its own
    rounding is another.  Terms are converted to the format of their sum exactly.  Subnormals are kept; specials and
    zeros as IEEE 754.
    """

    product: Conversion  #: φ
    sums: tuple[Conversion, ...]  #: by height
    rho: Conversion
    order: str  #: ((0+1)+(2+3))+c
    nan: NanRule = NanRule.ANY

    algorithm: ClassVar[str] = "adder_tree"
    loss: ClassVar[LossModel] = LossModel.OPERATIONS
    kinds: ClassVar[Mapping[str, Callable[[object, str], object]]] = {"tuple[Conversion, ...]": _conversions}
    meanings: ClassVar[Mapping[str, str]] = {
        "product": "how each product is rounded before it is added",
        "sums": "how sums are rounded, by how many are one within the other",
        "order": "what is added to what",
        "nan": "which NaN an operation gives",
    }
    summary: ClassVar[str] = (
        "rounded products added by a tree of IEEE additions, each stage rounded its own way"
    )
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(bool(self.sums), "a rounding of sums")
        taken, k = sorted(leaves(self.tree)), len(leaves(self.tree)) - 1
        self.needs(
            taken == [C, *range(k)] and k >= 1,
            f"an order of c and products 0 … {k - 1}, each once, not {self.order}",
        )
        self.needs(self.nan in (NanRule.ANY, NanRule.DEFAULT), f"one NaN, not {self.nan.value}")

    @cached_property
    def tree(self) -> PlaceTree:
        """Returns what is added to what, as a tree."""
        return parse(self.order)

    def of(self, tree: PlaceTree) -> Conversion:
        """Return how a sum is rounded."""
        return self.sums[min(height(tree), len(self.sums)) - 1]

    @property
    def step_products(self) -> int:
        return len(leaves(self.tree)) - 1

    def class_of(self, k: int) -> Hashable:
        """Each is added in a place of its own."""
        return k

    def check(self, spec: DotAdd) -> None:
        check_products(self, spec)
        for rho in (self.product, *self.sums, self.rho):
            usual = rho.saturation is None and rho.format.storage_bits in (16, 32)
            self.needs(usual, f"numbers of 16 or 32 bits, not {rho.format}")
        self._check_held(self.tree, spec)

    def _check_held(self, tree: PlaceTree, spec: DotAdd) -> None:
        if isinstance(tree, int):
            return
        wide = self.of(tree).format
        for child in tree:
            own = self.of(child) if not isinstance(child, int) else None
            narrow = own.format if own else spec.c_format if child == C else self.product.format
            self.needs(
                narrow == wide or holds_narrower(wide, narrow),
                f"sums of {wide} of what that holds, not {narrow}",
            )
            self._check_held(child, spec)

    def keeps(self, spec: DotAdd) -> str:
        return f"rounds every product, and every sum of two, the last one to {significant(spec.d_format)}"

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        def node(tree: PlaceTree) -> Node | int:
            if isinstance(tree, int):
                return before if tree == C else places[tree]
            return Node(tuple(map(node, tree)))

        whole = node(self.tree)
        assert isinstance(whole, Node)
        return whole

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {"k": spec.k, **factors(spec), "c": spec.c_format, "order": self.order, "product": self.product}
        return "tree", own | {"sums": ".".join(map(str, self.sums)), "rho": self.rho, "nan": self.nan.name}
