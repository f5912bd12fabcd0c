"""Bounds of words: what their parts show, by interval arithmetic, and then a solver proves.

The model's sums are as narrow as the true bounds of their terms allow, which widths alone do not show.
"""

from __future__ import annotations

from collections.abc import Callable

import z3

from mmaformal.hardware.between import Cutting, in_range, size_of
from mmaformal.hardware.sums import magnitude_of
from mmaformal.proof.kernel import Link

#: Seconds for a bound, in the first round.
_PATIENCE = 3.0
#: Terms of definition looked through.
_DEEP = 12


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
        if not deep or not z3.is_bv(term) or term.decl().kind() not in _BOUND:
            return None
        parts = [x for x in term.children() if z3.is_bv(x)]
        links = [self.of(x, deep - 1) if x.num_args() else None for x in parts]
        bound = _BOUND[term.decl().kind()]([_most(x, y) for x, y in zip(parts, links, strict=True)], parts)
        if bound >= (1 << term.size()) - 1:
            return None
        link, given = Link(z3.ULE(term, bound), (term,)), [each for each in links if each is not None]
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
    if z3.is_bv_value(term):
        return int(term.as_long())
    most: int = (1 << term.size()) - 1
    if link is None:
        return most
    claims = link.claim.children() if z3.is_and(link.claim) else [link.claim]
    bounds = [each.arg(1).as_long() for each in claims if z3.is_app_of(each, z3.Z3_OP_ULEQ)]
    return int(min([most, *bounds]))


def _concatenated(most: list[int], parts: list[z3.BitVecRef]) -> int:
    found = 0
    for each, part in zip(most, parts, strict=True):
        found = found << part.size() | each
    return found


#: By operation: a bound of what it gives, from those of its operands.
_BOUND: dict[int, Callable[[list[int], list[z3.BitVecRef]], int]] = {
    z3.Z3_OP_ZERO_EXT: lambda most, _: most[0],
    z3.Z3_OP_CONCAT: _concatenated,
    z3.Z3_OP_BLSHR: lambda most, _: most[0],
    z3.Z3_OP_EXTRACT: lambda most, _: most[0],
    z3.Z3_OP_ITE: lambda most, _: max(most),
    z3.Z3_OP_BSUB: lambda most, _: most[0],
    z3.Z3_OP_BMUL: lambda most, _: most[0] * most[1],
}


__all__ = ["Bounds"]
