"""Partial sums of a model's terms, in whatever order and width a design adds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import z3

from mmaformal.display import ShortRepr

CaseValues = tuple[int, ...]  #: of a node in all cases

#: A sum of fewer terms has few orders, which solvers see through.
_TERMS = 4


@dataclass(frozen=True, repr=False)
class NetlistSum(ShortRepr):
    """A two's complement sum of bit-vectors of one width in a model."""

    total: z3.BitVecRef
    terms: tuple[z3.BitVecRef, ...]


@dataclass(frozen=True, repr=False)
class Partial(ShortRepr):
    """The sum of some of the terms, added in the design's order, and a bound of its magnitude."""

    of: NetlistSum
    places: frozenset[int]  #: of the terms
    term: z3.BitVecRef
    bound: int

    @property
    def whole(self) -> bool:
        return len(self.places) == len(self.of.terms)

    @property
    def bounded(self) -> z3.BoolRef:
        """Return the claim that the bound holds."""
        return z3.And(self.term <= self.bound, self.term >= -self.bound)

    @property
    def fits(self) -> bool:
        """Whether the bound is a number of the sum's width."""
        return bool(self.bound < 1 << (self.term.size() - 1))


def long_sums(nodes: Sequence[z3.ExprRef]) -> Iterator[NetlistSum]:
    """Sums of four terms or more that are no part of a larger one, and not of exponents: words without a sign."""
    added = [node for node in nodes if isinstance(node, z3.BitVecRef) and z3.is_app_of(node, z3.Z3_OP_BADD)]
    parts = {x.get_id() for node in added for x in node.children() if z3.is_app_of(x, z3.Z3_OP_BADD)}
    for node in added:
        if node.get_id() not in parts:
            terms = _terms(node)
            if len(terms) >= _TERMS and not all(z3.is_app_of(x, z3.Z3_OP_ZERO_EXT) for x in terms):
                yield NetlistSum(node, tuple(terms))


def _terms(node: z3.BitVecRef) -> list[z3.BitVecRef]:
    """Those of a chain of additions; one with a sign, `(x ^ mask) + bit` or `If(sign, -x, x)`, is a term."""
    found: list[z3.BitVecRef] = []
    stack: list[z3.ExprRef] = [node]
    while stack:
        x = stack.pop()
        if z3.is_app_of(x, z3.Z3_OP_BADD) and not magnitude_term(x):
            stack += reversed(x.children())
        else:
            assert isinstance(x, z3.BitVecRef)
            found.append(x)
    return found


def magnitude_term(x: z3.ExprRef) -> z3.ExprRef | None:
    """Return the magnitude of a term with a sign; None for another term."""
    if z3.is_app_of(x, z3.Z3_OP_BADD):
        for y in x.children():
            if z3.is_app_of(y, z3.Z3_OP_BXOR):
                return y.arg(0)
    if (
        z3.is_app_of(x, z3.Z3_OP_ITE)
        and z3.is_app_of(x.arg(1), z3.Z3_OP_BNEG)
        and x.arg(1).arg(0).eq(x.arg(2))
    ):
        return x.arg(2)
    return None


def seen_bound(term: z3.BitVecRef) -> int:
    """A bound of a term's magnitude, as its zeros above show it; the largest of its width if they do not."""
    x = magnitude_term(term)
    x = term if x is None else x
    bits: int = term.size() - 1
    if z3.is_app_of(x, z3.Z3_OP_ZERO_EXT):
        bits = min(bits, x.arg(0).size())
    elif z3.is_app_of(x, z3.Z3_OP_CONCAT) and z3.is_bv_value(x.arg(0)) and x.arg(0).as_long() == 0:
        bits = min(bits, x.size() - x.arg(0).size())
    return (1 << bits) - 1


def inside(term: z3.BitVecRef) -> list[z3.ExprRef]:
    """Return the parts of a term with a sign, so that its bound is seen whatever they are."""
    x = magnitude_term(term)
    return [y for y in (term if x is None else x).children() if y.num_args()]


class Partials:
    """The partial sums that were met in a design, by their values as signed numbers."""

    def __init__(
        self,
        sums: Sequence[NetlistSum],
        values: Mapping[int, CaseValues],
        bound: Callable[[z3.BitVecRef], int] = seen_bound,
    ) -> None:
        self.pools: list[tuple[NetlistSum, dict[CaseValues, Partial]]] = []
        for each in sums:
            pool: dict[CaseValues, Partial] = {}
            for place, term in enumerate(each.terms):
                seen = signed(values[term.get_id()], term.size())
                pool.setdefault(seen, Partial(each, frozenset((place,)), term, bound(term)))
            self.pools.append((each, pool))

    def of(self, seen: CaseValues) -> Partial | None:
        """One met before, or the sum of two, if a node of these values is one."""
        for each, pool in self.pools:
            if seen in pool:
                return pool[seen]
            first = {value[0] for value in pool}
            for value, x in pool.items():
                if seen[0] - value[0] not in first:
                    continue
                y = pool.get(tuple(s - v for s, v in zip(seen, value, strict=True)))
                if y is not None and not x.places & y.places:
                    return Partial(each, x.places | y.places, x.term + y.term, x.bound + y.bound)
        return None

    def add(self, seen: CaseValues, found: Partial) -> None:
        """A partial sum that a node of the design is."""
        for each, pool in self.pools:
            if each is found.of:
                pool.setdefault(seen, found)


def signed(seen: CaseValues, bits: int) -> CaseValues:
    """Return the numbers of so many bits that are seen as two's complement."""
    return tuple(x - (x >> (bits - 1) << bits) for x in seen)
