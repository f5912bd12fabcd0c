"""Each sum of a tree on its own: what it keeps, and how its result is rounded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mmaformal.display import ShortRepr
from mmaformal.probes.box import Box
from mmaformal.probes.groups import by_c, by_cancelling, with_groups
from mmaformal.probes.kept import (
    LEAVE_TRACES,
    BesideC,
    KeptPlaces,
    are_normalised,
    beside_c,
    cancelling,
    carried,
)
from mmaformal.probes.modes import WORDS
from mmaformal.probes.rounding import SumRounding, read_rounding
from mmaformal.probes.tree import Tree, flat
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class ProbedSum(ShortRepr):
    """One sum of a tree, as it was read."""

    node: Node  #: with its groups
    product: KeptPlaces | None  #: of a product beside larger products; None: not told, or two terms only
    c: KeptPlaces | None  #: of c beside larger products
    beside_c: BesideC | None  #: of products beside a larger c
    rounded: SumRounding
    groups_told: bool = True  #: whether products that are summed on their own first would have been seen
    carried: KeptPlaces | None = (
        None  #: what the next sum gets of the result; None: not told, or there is none
    )
    normalised: bool | None = None  #: whether products are normalised before they are aligned; None: not told

    @property
    def fused(self) -> bool:
        """Whether it is of more than two terms, those of its groups counted."""
        return self.terms > 2

    @property
    def terms(self) -> int:
        """Its terms, those of its groups counted."""
        return len(flat(self.node).children)

    @property
    def kept(self) -> KeptPlaces | None:
        """The places kept: of products, if something was seen to be lost; else beside c; else of c."""
        beside = self.beside_c.kept if self.beside_c else None
        found = [each for each in (self.product, beside, self.c) if each is not None]
        return next((each for each in found if not each.more), found[0] if found else None)

    def lines(self, c: int, last: bool) -> list[str]:
        """Say in lines what was read; `last`: whether the sum's result is d."""
        out = []
        if self.fused:
            parts = [(self.product, "a product beside a larger one")]
            if c in self.node.places:
                direct = c in flat(self.node).children
                parts.append(
                    (self.c, f"c{'' if direct else ', through the sums before,'} beside larger products")
                )
                parts.append((self.beside_c.kept if self.beside_c else None, "products beside a larger c"))
            out += [f"{name}: {_kept_words(kept)}" for kept, name in parts if kept is not None]
            if not out:
                out.append("places kept: cannot be told by these types")
            if self.beside_c is not None and self.beside_c.normalised_cut is not None:
                places, more = self.beside_c.aligned or (0, True)
                out.append(
                    f"after it is normalised, the sum is cut to {self.beside_c.normalised_cut} places; before, "
                    f"products beside c keep {places}{' or more' if more else ''}"
                )
            if not self.groups_told:
                grouped = any(isinstance(x, Node) and not x.rounded for x in self.node.children)
                whose = "products of a group" if grouped else "some products"
                out.append(f"whether {whose} are summed first, exactly, cannot be told by these types")
        if self.rounded.cut_at is not None:
            out.append(f"a term beside a larger one: {self.rounded.cut_at} fractional places kept")
        if self.normalised is not None:
            by = "after they are normalised" if self.normalised else "by the exponents of their factors"
            out.append(f"products are aligned {by}")
        if last:
            return [*out, f"result: {rounded_words(self.rounded)}"]
        if self.carried is not None:
            return [*out, f"result, as the next sum gets it: {carried_words(self.carried)}"]
        return [*out, f"result, as the sums after it leave it: {rounded_words(self.rounded)}"]

    def to_json(self, tree: Tree) -> dict[str, object]:
        """Plain values."""
        beside = self.beside_c
        return {
            "terms": Tree(self.node, tree.k).to_json(),
            "product": self.product and self.product.to_json(),
            "c": self.c and self.c.to_json(),
            "beside_c": beside.kept.to_json() if beside and beside.kept else None,
            "normalised_cut": beside.normalised_cut if beside else None,
            "groups_told": self.groups_told,
            "carried": self.carried and self.carried.to_json(),
            "normalised": self.normalised,
            "rounded": self.rounded.to_json(),
        }


def _kept_words(kept: KeptPlaces) -> str:
    ways = " or ".join(WORDS[name] for name in kept.cut)
    cut = f", the rest cut {ways}" if ways else ""
    drop = f"; a term more than {kept.reach} places below is dropped" if kept.reach is not None else ""
    return f"{kept.count} fractional places kept{cut}{drop}"


def carried_words(kept: KeptPlaces) -> str:
    """One sentence about what a sum hands to the next."""
    if kept.more:
        return f"{kept.count} fractional places"
    ways = " or ".join(f"{WORDS[name]} ({name})" for name in kept.cut)
    return f"{kept.count} fractional places, {ways or 'rounded in a way that is not told'}"


def rounded_words(found: SumRounding) -> str:
    """One sentence about a rounding."""
    if found.places is None:
        return f"its rounding cannot be told: {found.why_not}"
    places = f"{found.places}{' or more' if found.more else ''} fractional places"
    if found.why_not:
        ways = " or ".join(found.names) if 0 < len(found.names) < len(WORDS) else "which way cannot be told"
        return f"{places}; {ways}: {found.why_not}"
    if not found.names:
        return f"{places}, rounded in a way that is none of those known"
    return f"{places}, {' or '.join(f'{WORDS[name]} ({name})' for name in found.names)}"


def read_sums(box: Box, tree: Tree) -> tuple[Tree, tuple[ProbedSum, ...]]:
    """The tree with its groups, and each sum, the last one first."""
    after = {id(x): node for node in tree.sums for x in node.children if isinstance(x, Node)}
    sums = [_read(box, node, after.get(id(node))) for node in tree.sums]
    replaced = {id(node): each.node for node, each in zip(tree.sums, sums, strict=True)}
    return Tree(_rebuilt(tree.root, replaced), tree.k), tuple(sums)


def _rebuilt(node: Node, replaced: dict[int, Node]) -> Node:
    """The node with what was read of each sum below it."""
    mine = replaced.get(id(node), node)
    children = [_rebuilt(x, replaced) if isinstance(x, Node) else x for x in mine.children]
    return replace(mine, children=tuple(children))


def slots(box: Box, node: Node) -> tuple[int | None, list[int], list[int]]:
    """c, if it is under the node; one product for each of its other terms; and those that are terms themselves."""
    c = box.c if box.c in node.places else None
    products = [min(part) for part in node.parts if box.c not in part]
    own = sorted(x for x in node.children if isinstance(x, int) and x != box.c)
    return c, products, own


def _carried(box: Box, node: Node, after: Node | None) -> KeptPlaces | None:
    """Return what the next sum gets of the result of a sum; None without one, or where the order is open."""
    if after is None or node.open or after.open:
        return None
    places = [min(part, key=lambda x: (x == box.c, x)) for part in node.parts]
    places.sort(key=lambda x: x == box.c)
    others = [min(part, key=lambda x: (x == box.c, x)) for part in after.parts if part != node.places]
    return carried(box, (places[0], places[-1]), min(others, key=lambda x: x == box.c))


def _read(box: Box, node: Node, after: Node | None) -> ProbedSum:
    c, products, own = slots(box, node)
    product = small_c = None
    beside, unlike = None, None
    if len(node.children) > 2 and not node.open:
        x, y, *more = own if len(own) > 2 else [*own, *(p for p in products if p not in own)]
        if more:
            product = cancelling(box, (x, y), more[0])
            unlike = are_normalised(box, (x, y, more[0]), product) if product is not None else None
        if c is not None:
            small_c = cancelling(box, (x, y), c)
    kept = product or small_c
    order = [*([] if c is None else [c]), *products]
    first = read_rounding(box, order, kept.places if kept else None)
    if len(node.children) > 2 and c is not None and first.places is not None and own:
        tie = own[1] if len(own) > 1 else None
        beside = beside_c(box, first.places, tie, own[0], product.places if product else 0)
        if beside.kept is not None and beside.kept.more and _leaves_traces(product or small_c):
            beside = None  # a product is seen beside c however much of it is cut
        elif kept is None or kept.more:
            kept = beside.kept
            first = read_rounding(box, order, kept.places if kept else None)
    fine = by_cancelling(box, own, product) if product is not None else None
    coarse = by_c(box, own, beside, own[1] if len(own) > 1 else None) if beside is not None else None
    told = fine is not None if c is None else coarse is not None and (fine is not None or not coarse)
    told = told or len(node.children) == 2
    found = with_groups(node, [*(fine or []), *(coarse or [])])
    return ProbedSum(found, product, small_c, beside, first, told, _carried(box, node, after), unlike)


def _leaves_traces(kept: KeptPlaces | None) -> bool:
    return kept is not None and not kept.more and bool(kept.cut) and set(kept.cut) <= LEAVE_TRACES
