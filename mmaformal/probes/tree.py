"""The order of summation as a tree, drawn as text and as SVG."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from mmaformal.display import ShortRepr
from mmaformal.spec import DotAdd
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class Tree(ShortRepr):
    """The order in which K products and c are summed."""

    root: Node
    k: int

    @staticmethod
    def of(spec: DotAdd) -> Tree:
        """The order in which a model sums.  Raises ValueError for a program of sums, which adds words of products."""
        p = spec.parameters
        taken = spec.taken if spec.product_order else p.taken(spec.k)
        root: Node | int = spec.k
        for start in range(0, spec.k, p.step_products):
            root = p.sum_tree(spec, root, taken[start : start + p.step_products])
        assert isinstance(root, Node)
        return Tree(root, spec.k)

    def __str__(self) -> str:
        return self.to_text()

    @property
    def nodes(self) -> list[Node]:
        """All sums, the last one first."""
        return list(self.root.nodes)

    @property
    def sums(self) -> list[Node]:
        """All sums whose results are rounded, the last one first."""
        return [node for node in self.nodes if node.rounded]

    @cached_property
    def shape(self) -> object:
        """A value that equal trees have in common, whatever the order of their children."""
        return _shape(self.root)

    def flat(self) -> Tree:
        """Return the tree without groups: their places are the fused sum's own."""
        return Tree(flat(self.root), self.k)

    @property
    def c_enters(self) -> str:
        """Where c is added: `first`, `last`, or `inside`; `once` where there is one sum only."""
        root = flat(self.root)
        if all(isinstance(x, int) for x in root.children):
            return "once"
        if self.k in root.children:
            return "last"
        depths = list(self._depths(root, 0))
        mine = max(depth for depth, node in depths if self.k in node.places)
        return "first" if mine == max(depth for depth, _ in depths) else "inside"

    def _depths(self, node: Node, depth: int) -> Iterator[tuple[int, Node]]:
        yield depth, node
        for child in node.children:
            if isinstance(child, Node):
                yield from self._depths(child, depth + 1)

    def to_json(self) -> object:
        """Nested lists of places, and "c"."""

        def plain(child: Node | int) -> object:
            if isinstance(child, int):
                return "c" if child == self.k else child
            terms = [plain(x) for x in child.ordered(self.k)]
            return {"rounded": child.rounded, "lossless": child.lossless, "open": child.open, "terms": terms}

        return plain(self.root)

    # ---- drawings ----------------------------------------------------------------------------------------

    def to_text(self) -> str:
        """One line for each sum and each run of products."""
        return "\n".join(self._lines(self.root, "", ""))

    def title(self, node: Node) -> str:
        """Say in a few words what a sum is."""
        if not node.rounded:
            return f"group of {len(node.children)}, not rounded"
        n = len(flat(node).children)
        if n == 2:
            return "sum, rounded"
        if node.open:
            return f"sum of {n}, rounded; the order within is open"
        return f"sum of {n} that lost nothing, rounded" if node.lossless else f"fused sum of {n}, rounded"

    def _lines(self, node: Node, first: str, rest: str) -> Iterator[str]:
        yield first + self.title(node)
        entries: list[Node | str] = []
        leaves: list[int] = []
        for child in node.ordered(self.k):
            if isinstance(child, Node):
                entries.append(child)
            else:
                leaves.append(child)
        if self.k in leaves:
            entries.append("c")
        entries += [_products(run) for run in _runs([x for x in leaves if x != self.k])]
        for number, entry in enumerate(entries):
            last = number == len(entries) - 1
            branch, stem = ("└─ ", "   ") if last else ("├─ ", "│  ")
            if isinstance(entry, Node):
                yield from self._lines(entry, rest + branch, rest + stem)
            else:
                yield rest + branch + entry

    def to_svg(self) -> str:
        """A drawing: the terms along the bottom, each sum above what it adds; a group is a dashed one."""
        drawing = _Drawing(self)
        top = drawing.draw(self.root)
        width, height = drawing.x + _GAP, drawing.height(self.root) * _LEVEL + 2 * _GAP + 16
        body = "\n".join(drawing.lines + drawing.marks)
        label = html.escape(f"order of summation of {self.k} products and c")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="11" text-anchor="middle" role="img" '
            f'aria-label="{label}">\n<rect width="100%" height="100%" fill="white"/>\n'
            f'<path d="M{top.x} {top.y}V8" stroke="black"/>\n{body}\n</svg>\n'
        )


def _shape(child: Node | int) -> object:
    if isinstance(child, int):
        return child
    return (child.rounded, frozenset(_shape(x) for x in child.children))


def flat(node: Node) -> Node:
    """The node without groups: their places are the fused sum's own."""
    children: list[Node | int] = []
    for child in node.children:
        if isinstance(child, int):
            children.append(child)
            continue
        inner = flat(child)
        children += [inner] if child.rounded else inner.children
    return replace(node, children=tuple(children))


def _runs(places: list[int]) -> Iterator[range]:
    """Places as runs of an even distance: 0 … 7; 0, 2 … 14."""
    rest = places
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 1
        n = 1
        while n < len(rest) and rest[n] - rest[n - 1] == step:
            n += 1
        if n == 2 and step > 1:
            n = 1
        yield range(rest[0], rest[n - 1] + 1, step if n > 1 else 1)
        rest = rest[n:]


def _products(run: range) -> str:
    if len(run) == 1:
        return f"product {run[0]}"
    if len(run) == 2:
        return f"products {run[0]}, {run[1]}"
    start = f"{run[0]}" if run.step == 1 else f"{run[0]}, {run[1]}"
    return f"products {start} … {run[-1]}"


_GAP, _LEVEL = 22, 34


class _Point(NamedTuple):
    x: float
    y: float


class _Drawing:
    """Lines and marks of an SVG, places from left to right as they are drawn."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.x = tree, _GAP
        self.lines: list[str] = []
        self.marks: list[str] = []
        self.bottom = self.height(tree.root) * _LEVEL + _GAP

    def height(self, child: Node | int) -> int:
        if isinstance(child, int):
            return 0
        return 1 + max(map(self.height, child.children))

    def draw(self, child: Node | int) -> _Point:
        if isinstance(child, int):
            return self._leaf(child)
        below = [self.draw(x) for x in child.ordered(self.tree.k)]
        at = _Point((below[0].x + below[-1].x) / 2, self.bottom - self.height(child) * _LEVEL + 10)
        dash = "" if child.rounded else ' stroke-dasharray="3 2"'
        bar = f"M{below[0].x} {at.y}H{below[-1].x}" + "".join(f"M{p.x} {p.y}V{at.y}" for p in below)
        self.lines.append(f'<path d="{bar}" fill="none" stroke="#444"{dash}/>')
        terms = len(flat(child).children) if child.rounded else len(below)
        text = "+" if terms == 2 else f"Σ{terms}"
        self.marks.append(
            f'<rect x="{at.x - 13}" y="{at.y - 9}" width="26" height="18" rx="9" fill="white" stroke="black"{dash}/>'
            f'<text x="{at.x}" y="{at.y + 4}">{text}</text>'
        )
        return at

    def _leaf(self, place: int) -> _Point:
        at = _Point(self.x, self.bottom)
        self.x += _GAP
        name = "c" if place == self.tree.k else str(place)
        weight = ' font-weight="bold"' if name == "c" else ""
        self.marks.append(f'<text x="{at.x}" y="{at.y + 14}"{weight}>{name}</text>')
        return at
