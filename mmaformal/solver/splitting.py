"""Cases of a question that no solver answers whole: by how much something is shifted, or what a short factor is.

A shift by a known amount is only wires, a product with a known factor a few additions, so that what is left of a
question in each case is easy.  The question is unsatisfiable if it is so in every case, and the cases are all there
are: that too is a script (`Split.exhaustive`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import z3

from mmaformal.display import ShortRepr
from mmaformal.solver.script import smtlib, with_assertions

_SHIFTS = (z3.Z3_OP_BSHL, z3.Z3_OP_BLSHR, z3.Z3_OP_BASHR)

#: The widest term whose shift is split, in bits: there is a case for each amount.
_WIDEST = 128

#: The longest factor that is split, in bits: there is a case for each value.
_LONGEST = 8

#: The beginning of terms' names in cases, once more in a case of a case; `smtlib`'s own begin with one.
_PREFIX = "$$"


@dataclass(frozen=True, repr=False)
class Split(ShortRepr):
    """The cases in which a term of the question is 0, 1, …; the last one is that it is that or more."""

    script: str
    term: z3.BitVecRef
    count: int

    @property
    def bits(self) -> int:
        """The width of the term."""
        return int(self.term.size())

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, case: int) -> str:
        """The question in this case.  Raises IndexError if there is no such case."""
        prefix = _PREFIX
        while f"(define-fun {prefix}0 " in self.script:
            prefix += "$"
        return with_assertions(self.script, [self._claim(self.term, case)], prefix)

    @property
    def exhaustive(self) -> str:
        """The script that a term is in none of the cases: unsatisfiable, so that they are all there are."""
        x = z3.BitVec("x", self.bits)
        return smtlib([z3.Not(self._claim(x, case)) for case in range(len(self))])

    def _claim(self, x: z3.BitVecRef, case: int) -> z3.BoolRef:
        if not 0 <= case < len(self):
            raise IndexError(case)
        return x == case if case < len(self) - 1 else z3.UGE(x, case)


def splits(script: str) -> list[Split]:
    """The ways to split a question, those with the fewest cases first; none if nothing is shifted or multiplied so."""
    found: dict[int, Split] = {}
    for term in _terms(z3.parse_smt2_string(script)):
        kind = term.decl().kind()
        if kind in _SHIFTS and term.size() <= _WIDEST:
            amount = _stripped(term.arg(1))
            if not z3.is_bv_value(amount):
                count = min(1 << amount.size(), term.size() + 1)
                found.setdefault(amount.get_id(), Split(script, amount, count))
        elif kind == z3.Z3_OP_BMUL:
            for factor in map(_stripped, term.children()):
                if not z3.is_bv_value(factor) and factor.size() <= _LONGEST:
                    found.setdefault(factor.get_id(), Split(script, factor, 1 << factor.size()))
    return sorted(found.values(), key=len)


def _terms(roots: z3.AstVector) -> Iterator[z3.ExprRef]:
    """Every term once."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            stack.extend(term.children())
            yield term


def _stripped(amount: z3.BitVecRef) -> z3.BitVecRef:
    """The term that an amount or a factor is made of, without the bits before and after it that are known."""
    while True:
        kind, children = amount.decl().kind(), amount.children()
        if kind in (z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT) or (
            kind == z3.Z3_OP_CONCAT and z3.is_bv_value(children[-1])
        ):
            amount = children[0]
        elif kind == z3.Z3_OP_CONCAT and z3.is_bv_value(children[0]):
            amount = children[-1]
        else:
            return amount
