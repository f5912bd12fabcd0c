"""Nodes of a model that a node of a design may be, by their values in all cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import z3

from mmaformal.hardware.sums import CaseValues, signed

#: The most bits of a word that may have wrapped around: an exponent.
_WRAPPED = 16
#: A word of fewer bits than this has the values of another by chance, and is tried with the same values only.
WORD = 4


class Candidates:
    """Which nodes of the model a node of the design may be."""

    def __init__(self, model: Sequence[z3.ExprRef], values: dict[int, CaseValues]) -> None:
        self.values = values
        self.same: dict[CaseValues, list[z3.ExprRef]] = {}
        self.apart: dict[CaseValues, list[z3.ExprRef]] = {}
        self.negative: dict[CaseValues, list[z3.BitVecRef]] = {}  #: by signed values, where some are negative
        self._modulo: dict[
            int, dict[bytes, list[z3.BitVecRef]]
        ] = {}  #: by bits, then by differences modulo these
        for node in model:
            seen = values[node.get_id()]
            if len(set(seen)) > 1:
                self.same.setdefault(seen, []).append(node)
                if isinstance(node, z3.BitVecRef) and node.size() >= WORD:
                    self.apart.setdefault(_differences(seen), []).append(node)
                    numbers = signed(seen, node.size())
                    if min(numbers) < 0:
                        self.negative.setdefault(numbers, []).append(node)

    def of(self, node: z3.ExprRef) -> Iterator[tuple[z3.ExprRef, Callable[[z3.ExprRef], z3.BitVecRef]]]:
        """Nodes of the model, and a node as a function of each: a word of its bits, of one bit if it is a Bool."""
        seen, bits = self.values[node.get_id()], _bits(node)
        for term in self.same.get(seen, ()):
            yield term, lambda x: as_word(x, bits)
        for term in self.same.get(_opposite(seen, bits), ()):
            yield term, lambda x: ~as_word(x, bits)
        for other in self.negative.get(signed(seen, bits), ()) if bits >= 2 * WORD else ():
            if other.size() != bits:
                yield other, lambda x: as_number(x, bits)
        for numbers in (seen, signed(seen, bits)) if bits >= WORD else ():
            for term in self.apart.get(_differences(numbers), ()):
                offset = numbers[0] - self.values[term.get_id()][0]
                if offset:
                    yield term, lambda x, offset=offset: as_word(x, bits) + offset  # type: ignore[misc]
        for term, offset in self._wrapped(seen, bits) if WORD <= bits <= _WRAPPED else ():
            yield term, lambda x, offset=offset: as_word(x, bits) + offset  # type: ignore[misc]

    def _wrapped(self, seen: CaseValues, bits: int) -> Iterator[tuple[z3.BitVecRef, int]]:
        """Words of which a node is one modulo 2^bits, by an offset, and not otherwise."""
        if bits not in self._modulo:
            found = self._modulo[bits] = {}
            for terms in self.apart.values():
                for term in terms:
                    if term.size() >= bits:
                        found.setdefault(_modulo(self.values[term.get_id()], bits), []).append(term)
            found.pop(bytes(2 * len(seen)), None)  # constants
        others = [self.apart.get(_differences(numbers), []) for numbers in (seen, signed(seen, bits))]
        known = {term.get_id() for terms in others for term in terms}
        for term in self._modulo[bits].get(_modulo(seen, bits), ()):
            if term.get_id() not in known:
                yield term, seen[0] - self.values[term.get_id()][0]

    def like(self, term: z3.ExprRef) -> list[z3.ExprRef]:
        """Other nodes of the model that may be functions of one."""
        seen, bits = self.values[term.get_id()], _bits(term)
        found = [*self.same.get(seen, ()), *self.same.get(_opposite(seen, bits), ())]
        found += self.apart.get(_differences(seen), ()) if bits >= WORD else ()
        others = {each.get_id(): each for each in found if any(x is term for x, _ in self.of(each))}
        return [each for number, each in others.items() if number != term.get_id()]


def _opposite(seen: CaseValues, bits: int) -> CaseValues:
    return tuple(((1 << bits) - 1) ^ x for x in seen)


def _bits(term: z3.ExprRef) -> int:
    return term.size() if isinstance(term, z3.BitVecRef) else 1


def _differences(seen: CaseValues) -> CaseValues:
    return tuple(x - seen[0] for x in seen)


def _modulo(seen: CaseValues, bits: int) -> bytes:
    """The differences to the first value, modulo 2^bits, which is at most 16."""
    words = np.array([x & 0xFFFF for x in seen], np.uint16)
    return bytes(((words - words[0]) & np.uint16((1 << bits) - 1)).data)


def as_word(term: z3.ExprRef, bits: int) -> z3.BitVecRef:
    """The term in so many bits."""
    if isinstance(term, z3.BoolRef):
        term = z3.If(term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    assert isinstance(term, z3.BitVecRef)
    if term.size() == bits:
        return term
    return z3.ZeroExt(bits - term.size(), term) if term.size() < bits else z3.Extract(bits - 1, 0, term)


def as_number(term: z3.ExprRef, bits: int) -> z3.BitVecRef:
    """The number in so many bits."""
    assert isinstance(term, z3.BitVecRef)
    return z3.SignExt(bits - term.size(), term) if term.size() < bits else as_word(term, bits)


def as_sort(word: z3.BitVecRef, term: z3.ExprRef) -> z3.ExprRef:
    """A word as a Bool, if a term is one."""
    return word if isinstance(term, z3.BitVecRef) else word == 1
