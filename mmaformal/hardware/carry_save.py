"""Carry-save trees: three words made two by rows of full adders, and what the last two words add up to.

A row gives s = x ⊕ y ⊕ z and twice the majority, c; that s + c is x + y + z, modulo 2 to their width, is one small
lemma for all rows of a width.  The lowest bit of c, which has no carry, may be anything that is to be added too.  With
s replaced by x + y + z − c the carries cancel, so that what is added after a tree is a sum of the words that went into
it, which can be followed as any sum.  Which c belongs to which s is seen on cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import z3

from mmaformal.display import ShortRepr
from mmaformal.hardware.sums import CaseValues
from mmaformal.proof.kernel import Link

CarrySaveWords = tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]

#: Words of fewer bits are no rows: other words have their values by chance.
_LEAST = 4


@dataclass(frozen=True, repr=False)
class Compressor(ShortRepr):
    """Three words, and the two with the same sum."""

    words: CarrySaveWords
    sum: z3.BitVecRef
    carry: z3.BitVecRef

    @property
    def low(self) -> z3.BitVecRef | None:
        """Returns what is in the lowest place of the carry, as a word; None where it is 0."""
        low = z3.simplify(z3.Extract(0, 0, self.carry))
        return None if z3.is_bv_value(low) and low.as_long() == 0 else z3.ZeroExt(self.carry.size() - 1, low)

    @property
    def link(self) -> Link:
        """Return the link that says that the sum is that of the three words less the carry."""
        x, y, z = self.words
        value = x + y + z - self.carry
        if self.low is not None:
            value = value + self.low
        return Link(self.sum == value, (self.carry,), ((self.sum, value),))


def rows_of(nodes: Sequence[z3.ExprRef], values: Mapping[int, CaseValues]) -> dict[int, Compressor]:
    """The rows among a design's nodes, by the id of the sum."""
    xors = [node for node in nodes if z3.is_app_of(node, z3.Z3_OP_BXOR) and node.size() >= _LEAST]
    if not xors:
        return {}
    by_value: dict[tuple[int, CaseValues], list[z3.BitVecRef]] = {}
    for node in nodes:
        if isinstance(node, z3.BitVecRef):
            seen = tuple(x & ~1 for x in values[node.get_id()])
            by_value.setdefault((node.size(), seen), []).append(node)
    operands = [[x.get_id() for x in node.children()] for node in nodes if node.num_args() in (2, 3)]
    beside = {
        pair for each in operands for pair in permutations(each, 2)
    }  #: what goes into one node together
    found = {}
    for node in xors:
        for words in _triples(node):
            bits, columns = node.size(), [values[x.get_id()] for x in (*words, node)]
            twice = tuple((x + y + z - s) % (1 << bits) for x, y, z, s in zip(*columns, strict=True))
            carries = [x for x in by_value.get((bits, twice), ()) if x.get_id() != node.get_id()]
            if carries:
                used = (x for x in carries if (node.get_id(), x.get_id()) in beside)
                found[node.get_id()] = Compressor(words, node, next(used, carries[0]))
                break
    return found


def _triples(node: z3.ExprRef) -> Iterator[CarrySaveWords]:
    """The three words that an xor may be of: its operands, or one of two and those of the other."""
    parts = node.children()
    if len(parts) == 3:
        x, y, z = parts
        yield x, y, z
    for one, other in (parts, parts[::-1]) if len(parts) == 2 else ():
        if z3.is_app_of(other, z3.Z3_OP_BXOR) and other.num_args() == 2:
            yield one, other.arg(0), other.arg(1)


@dataclass(frozen=True, repr=False)
class AddedWords(ShortRepr):
    """The words that an addition adds up, of what went into the rows behind it."""

    words: tuple[z3.BitVecRef, ...]
    rows: tuple[Compressor, ...]  #: those it is seen through, the first first


def added_words(node: z3.ExprRef, rows: Mapping[int, Compressor]) -> AddedWords | None:
    """The words that an addition of words of rows adds up; None of another term, and where a carry is left."""
    if not z3.is_app_of(node, z3.Z3_OP_BADD):
        return None
    counts: dict[int, tuple[z3.BitVecRef, int]] = {}
    used: dict[int, Compressor] = {}

    def add(term: z3.BitVecRef, sign: int) -> None:
        row = rows.get(term.get_id())
        if z3.is_app_of(term, z3.Z3_OP_BADD):
            for each in term.children():
                add(each, sign)
        elif row is not None:
            for each in row.words:
                add(each, sign)
            add(row.carry, -sign)
            if row.low is not None:
                add(row.low, sign)
            used.setdefault(term.get_id(), row)
        else:
            _, before = counts.get(term.get_id(), (term, 0))
            counts[term.get_id()] = term, before + sign

    assert isinstance(node, z3.BitVecRef)
    add(node, 1)
    left = [(term, count) for term, count in counts.values() if count]
    if not used or not left or any(count != 1 for _, count in left):
        return None
    return AddedWords(tuple(term for term, _ in left), tuple(used.values()))
