"""Bounds of words: what their parts show, by interval arithmetic, and then a solver proves.

The model's sums are as narrow as the true bounds of their terms allow, which widths alone do not show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import z3

from mmaformal.hardware.between import Cutting, in_range, size_of
from mmaformal.hardware.sums import magnitude_of
from mmaformal.proof.kernel import Link

#: Seconds for a bound, in the first round.
_PATIENCE = 3.0
#: Terms of definition looked through.
_DEEP = 12


Range: TypeAlias = tuple[int, int]


class Bounds:
    """The bounds that are proved of words, each once."""

    def __init__(self, by: Cutting) -> None:
        self.by = by
        self._links: dict[int, Link | None] = {}

    def of(self, term: z3.ExprRef, deep: int = _DEEP) -> Link | None:
        """The link that says in which range a word is; None where nothing but its width is known."""
        number = term.get_id()
        if number not in self._links:
            found = in_range(self.by, term) or size_of(self.by, term)
            self._links[number] = found or self._signed(term, deep) or self._by_parts(term, deep)
        return self._links[number]

    def _signed(self, term: z3.ExprRef, deep: int) -> Link | None:
        """Return the bound of a magnitude with a sign, or of a sum of such."""
        magnitude = magnitude_of(term)
        if magnitude is not None and z3.is_bv(magnitude):
            parts, known = [magnitude], [self.of(magnitude, deep)]
            bounds = [
                _most(x, link) if link is not None else None for x, link in zip(parts, known, strict=True)
            ]
        elif z3.is_app_of(term, z3.Z3_OP_BADD):
            parts, known = term.children(), [self.of(x, deep - 1) for x in term.children()]
            bounds = [_largest(link) if link is not None else None for link in known]
        else:
            return None
        given, bound = [each for each in known if each is not None], sum(each or 0 for each in bounds)
        if None in bounds or 2 * bound >= 1 << term.size():
            return None
        link = Link(z3.And(term <= bound, term >= -bound), (term,))
        if not self.by.attempt(link, given, _PATIENCE, parts):
            return None
        self.by.below.append(({term.get_id()}, link))
        return link

    def _by_parts(self, term: z3.ExprRef, deep: int) -> Link | None:
        if not deep or not z3.is_bv(term) or term.decl().kind() not in _RANGE:
            return None
        parts = [x for x in term.children() if z3.is_bv(x)]
        links = [self.of(x, deep - 1) if x.num_args() else None for x in parts]
        ranges = [_range(x, y) for x, y in zip(parts, links, strict=True)]
        low, high = _RANGE[term.decl().kind()](ranges, parts)
        if _is_larger(term):
            low = max(least for least, _ in ranges)
        if low > high or high >= (1 << term.size()) - 1:
            return None
        claims = [z3.UGE(term, low)] * (low > 0) + [z3.ULE(term, high)]
        link, given = Link(z3.And(claims) if low else claims[0], (term,)), [x for x in links if x is not None]
        if z3.is_app_of(term, z3.Z3_OP_BSUB):  # of a maximum and a number not above it
            between = {x.get_id() for x in parts}
            given += [each for free, each in self.by.below if free <= between]
        return link if self.by.attempt(link, given, _PATIENCE, [x for x in parts if x.num_args()]) else None


def _largest(link: Link) -> int | None:
    """Return the largest magnitude of a number with a sign whose bound a link says; None of another link."""
    said = link.claim.children()[:1] if z3.is_and(link.claim) else []
    return int(said[0].arg(1).as_long()) if said and z3.is_app_of(said[0], z3.Z3_OP_SLEQ) else None


def _most(term: z3.BitVecRef, link: Link | None) -> int:
    """Return the largest number that a word may be: that of its bound, or of its width."""
    return _range(term, link)[1]


def _range(term: z3.BitVecRef, link: Link | None) -> Range:
    """Return the range that a link says a word is in, or that of its width."""
    if z3.is_bv_value(term):
        return int(term.as_long()), int(term.as_long())
    low, high = 0, (1 << term.size()) - 1
    claims = [] if link is None else link.claim.children() if z3.is_and(link.claim) else [link.claim]
    for each in claims:
        if z3.is_app_of(each, z3.Z3_OP_ULEQ):
            high = min(high, each.arg(1).as_long())
        elif z3.is_app_of(each, z3.Z3_OP_UGEQ):
            low = max(low, each.arg(1).as_long())
    return low, high


def _is_larger(term: z3.BitVecRef) -> bool:
    """Whether a term is the larger of two, `If(x > y, x, y)`."""
    if not z3.is_app_of(term, z3.Z3_OP_ITE) or not z3.is_app_of(term.arg(0), z3.Z3_OP_UGT):
        return False
    return bool(term.arg(0).arg(0).eq(term.arg(1)) and term.arg(0).arg(1).eq(term.arg(2)))


def _concatenated(ranges: list[Range], parts: list[z3.BitVecRef]) -> Range:
    low = high = 0
    for (least, most), part in zip(ranges, parts, strict=True):
        low, high = low << part.size() | least, high << part.size() | most
    return low, high


#: By operation: the range of what it gives, from those of its operands, if nothing wraps around.
_RANGE: dict[int, Callable[[list[Range], list[z3.BitVecRef]], Range]] = {
    z3.Z3_OP_ZERO_EXT: lambda ranges, _: ranges[0],
    z3.Z3_OP_CONCAT: _concatenated,
    z3.Z3_OP_BLSHR: lambda ranges, _: (0, ranges[0][1]),
    z3.Z3_OP_EXTRACT: lambda ranges, _: (0, ranges[0][1]),
    z3.Z3_OP_ITE: lambda ranges, _: (min(low for low, _ in ranges), max(high for _, high in ranges)),
    z3.Z3_OP_BADD: lambda ranges, _: (sum(low for low, _ in ranges), sum(high for _, high in ranges)),
    z3.Z3_OP_BSUB: lambda ranges, _: (max(0, ranges[0][0] - ranges[1][1]), ranges[0][1] - ranges[1][0]),
    z3.Z3_OP_BMUL: lambda ranges, _: (0, ranges[0][1] * ranges[1][1]),
}


__all__ = ["Bounds"]
