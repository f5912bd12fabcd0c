"""Bounds of words: what their parts show, by interval arithmetic, and then a solver proves.

The model's sums are as narrow as the true bounds of their terms allow, which widths alone do not show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import z3

from mmaformal.hardware.between import Cutting, in_range, is_max, prove_size, signed_of
from mmaformal.hardware.sums import magnitude_term
from mmaformal.proof.kernel import Link

#: Seconds for a bound, in the first round.
_PATIENCE = 3.0
#: Terms of definition looked through.
_DEEP = 12


Interval: TypeAlias = tuple[int, int]


class Bounds:
    """The bounds that are proved of words, each once."""

    def __init__(self, by: Cutting) -> None:
        self.by = by
        self._links: dict[int, Link | None] = {}

    def of(self, term: z3.ExprRef, deep: int = _DEEP) -> Link | None:
        """The link that says in which range a word is; None where nothing but its width is known."""
        number = term.get_id()
        if number not in self._links:
            inner = signed_of(term)
            if inner is not None and deep:
                self.of(inner, deep - 1)  # `prove_size` goes by its bound
            found = self._known(number)
            if found is None and magnitude_term(term) is not None:
                found = self._signed(term, deep)
            found = found or in_range(self.by, term) or prove_size(self.by, term)
            if found is None or _says_nothing(term, found):
                found = self._signed(term, deep) or self._by_parts(term, deep) or found
            self._links[number] = found
        return self._links[number]

    def _known(self, number: int) -> Link | None:
        """Return the bound of a number with a sign that is known already."""
        found = [link for free, link in self.by.below if free == {number} and _largest(link) is not None]
        return min(found, key=lambda link: _largest(link) or 0, default=None)

    def _signed(self, term: z3.ExprRef, deep: int) -> Link | None:
        """Return the bound of a magnitude with a sign, or of sums and shifts of numbers that have a sign."""
        magnitude = magnitude_term(term)
        if magnitude is not None and z3.is_bv(magnitude):
            parts, known = [magnitude], [self.of(magnitude, deep)]
            bound = _most(magnitude, known[0]) if known[0] is not None else None
        else:
            parts = _numbers_in(term) if deep else []
            parts = [] if all(map(z3.is_bv_value, parts)) else parts
            known = [None if z3.is_bv_value(x) else self.of(x, deep - 1) for x in parts]
            bounds = [
                abs(x.as_signed_long()) if z3.is_bv_value(x) else None if link is None else _largest(link)
                for x, link in zip(parts, known, strict=True)
            ]
            bound = (
                None if None in bounds or not parts else _bound_of(term, [x for x in bounds if x is not None])
            )
        if bound is None or 2 * bound >= 1 << term.size():
            return None
        link = Link(z3.And(term <= bound, term >= -bound), (term,))
        if not self.by.attempt(link, [each for each in known if each is not None], _PATIENCE, parts):
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
        if is_max(term):
            low = max(least for least, _ in ranges)
        if low > high or high >= (1 << term.size()) - 1:
            return None
        claims = [z3.UGE(term, low)] * (low > 0) + [z3.ULE(term, high)]
        link, given = Link(z3.And(claims) if low else claims[0], (term,)), [x for x in links if x is not None]
        if z3.is_app_of(term, z3.Z3_OP_BSUB):  # of a maximum and a number not above it
            between = {x.get_id() for x in parts}
            given += [each for free, each in self.by.below if free <= between]
        return link if self.by.attempt(link, given, _PATIENCE, [x for x in parts if x.num_args()]) else None


def _says_nothing(term: z3.BitVecRef, link: Link) -> bool:
    """Whether a link says that a word is in the range of its width, and nothing else: no gap, no bound with a sign."""
    claims = link.claim.children() if z3.is_and(link.claim) else [link.claim]
    ends = all(each.decl().kind() in (z3.Z3_OP_ULEQ, z3.Z3_OP_UGEQ) for each in claims)
    return ends and _range(term, link) == (0, (1 << term.size()) - 1)


def _numbers_in(term: z3.ExprRef) -> list[z3.BitVecRef]:
    """Return the numbers with a sign that a term is the sum of, one of, or shifted from, if it may be that."""
    kind, parts = term.decl().kind(), [x for x in term.children() if z3.is_bv(x)]
    if kind in (z3.Z3_OP_BASHR, z3.Z3_OP_SIGN_EXT):
        return parts[:1]
    if kind == z3.Z3_OP_CONCAT and len(parts) == 2 and z3.is_bv_value(parts[1]) and not parts[1].as_long():
        return parts[:1]
    return parts if kind in (z3.Z3_OP_BADD, z3.Z3_OP_ITE) and z3.is_bv(term) else []


def _bound_of(term: z3.ExprRef, bounds: list[int]) -> int:
    """Return the bound of a term that is made of numbers whose bounds are given."""
    if z3.is_app_of(term, z3.Z3_OP_CONCAT):
        return bounds[0] << int(term.arg(1).size())
    return sum(bounds) if z3.is_app_of(term, z3.Z3_OP_BADD) else max(bounds)


def _largest(link: Link) -> int | None:
    """Return the largest magnitude of a number with a sign whose bound a link says; None of another link."""
    said = link.claim.children()[:1] if z3.is_and(link.claim) else []
    return int(said[0].arg(1).as_long()) if said and z3.is_app_of(said[0], z3.Z3_OP_SLEQ) else None


def _most(term: z3.BitVecRef, link: Link | None) -> int:
    """Return the largest number that a word may be: that of its bound, or of its width."""
    return _range(term, link)[1]


def _range(term: z3.BitVecRef, link: Link | None) -> Interval:
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


def _concatenated(ranges: list[Interval], parts: list[z3.BitVecRef]) -> Interval:
    low = high = 0
    for (least, most), part in zip(ranges, parts, strict=True):
        low, high = low << part.size() | least, high << part.size() | most
    return low, high


#: By operation: the range of what it gives, from those of its operands, if nothing wraps around.
_RANGE: dict[int, Callable[[list[Interval], list[z3.BitVecRef]], Interval]] = {
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
