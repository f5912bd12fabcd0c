"""The sums of a dot product-add as a tree: what is added to what, and what is rounded between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmaformal.display import ShortRepr


@dataclass(frozen=True, repr=False)
class Node(ShortRepr):
    """A sum of its children, each a place (0 … K−1 a product, K the c) or a sum.

    With more than two children it is fused: no partial sum of them is rounded.
    """

    children: tuple[Node | int, ...]
    rounded: bool = (
        True  #: False: a group, summed on its own within a fused sum, neither normalised nor rounded
    )
    lossless: bool = False  #: no bit of three terms was lost, as far as the types reach
    open: bool = False  #: how its products are added to each other before c meets them is not told

    @property
    def places(self) -> frozenset[int]:
        """The places under it."""
        return frozenset().union(*self.parts)

    @property
    def parts(self) -> list[frozenset[int]]:
        """The places under each child."""
        return [frozenset({x}) if isinstance(x, int) else x.places for x in self.children]

    @property
    def nodes(self) -> Iterator[Node]:
        """It and all below it, what is summed first last."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.nodes

    def ordered(self, c: int) -> list[Node | int]:
        """Its children: sums first, then c, then products."""

        def key(child: Node | int) -> tuple[int, int]:
            if isinstance(child, Node):
                return (0 if c in child.places else 1, min(child.places))
            return (2, -1 if child == c else child)

        return sorted(self.children, key=key)


def groups(parts: list[list[int]]) -> list[Node | int]:
    """Return the sum of each part, none of them rounded; of one place it is that."""
    return [Node(tuple(each), rounded=False) if len(each) > 1 else each[0] for each in parts]
