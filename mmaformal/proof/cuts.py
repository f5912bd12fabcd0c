"""Terms to cut in claims, found by their shape: propositions, or the integers that sums are made of.

Any term may be cut: a claim proved for every value of it holds of its own.  The fewer are left, the less a solver has
to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import z3

from mmaformal.proof.composition import Composing

_LOGICAL = {z3.Z3_OP_AND, z3.Z3_OP_OR, z3.Z3_OP_NOT, z3.Z3_OP_IMPLIES, z3.Z3_OP_TRUE, z3.Z3_OP_FALSE}
_EITHER = {z3.Z3_OP_ITE, z3.Z3_OP_EQ, z3.Z3_OP_DISTINCT}
_EXTENDING = {z3.Z3_OP_SIGN_EXT, z3.Z3_OP_ZERO_EXT}
_ADDING = {z3.Z3_OP_BADD, z3.Z3_OP_BSUB, z3.Z3_OP_BNEG, z3.Z3_OP_ITE, z3.Z3_OP_BNUM}


def follows(
    theory: Composing,
    name: str,
    statement: str,
    claim: z3.BoolRef,
    using: Sequence[z3.BoolRef],
    whole: Iterable[z3.BoolRef] = (),
) -> z3.BoolRef:
    """A claim that follows from others as a proposition; those that are `whole` are one proposition each."""
    return theory.claim(name, statement, claim, using, propositions([claim, *using], whole))


def of_sums(
    theory: Composing, name: str, statement: str, claim: z3.BoolRef, using: Sequence[z3.BoolRef], bits: int
) -> z3.BoolRef:
    """A claim about sums of integers of so many bits, whatever those integers are."""
    return theory.claim(name, statement, claim, using, sum_parts([claim, *using], bits))


def propositions(claims: Iterable[z3.BoolRef], whole: Iterable[z3.BoolRef] = ()) -> list[z3.ExprRef]:
    """Return the propositions of claims: parts without a connective between them, and those that are `whole`."""
    found: dict[int, z3.ExprRef] = {}
    left, seen = [*claims], set()
    apart = {each.get_id() for each in whole}
    while left:
        claim = left.pop()
        if claim.get_id() in seen:
            continue
        seen.add(claim.get_id())
        if claim.get_id() not in apart and _is_connective(claim):
            left += claim.children()
        else:
            found[claim.get_id()] = claim
    return list(found.values())


def _is_connective(claim: z3.ExprRef) -> bool:
    kind = claim.decl().kind()
    return kind in _LOGICAL or (kind in _EITHER and z3.is_bool(claim.children()[-1]))


def compared(claims: Iterable[z3.BoolRef], whole: Sequence[z3.BoolRef] = ()) -> list[z3.ExprRef]:
    """Return the terms that claims compare, constants aside, however extended; other propositions; and `whole` ones."""
    found: dict[int, z3.ExprRef] = {each.get_id(): each for each in whole}
    for claim in propositions(claims, whole):
        if claim.get_id() in found:
            continue
        for side in claim.children() if any(map(z3.is_bv, claim.children())) else [claim]:
            while side.decl().kind() in _EXTENDING:
                side = side.arg(0)
            if not z3.is_bv_value(side):
                found[side.get_id()] = side
    return list(found.values())


def sum_parts(claims: Iterable[z3.BoolRef], bits: int) -> list[z3.ExprRef]:
    """The integers of `bits` bits that are no sums or negatives, what is compared with constants, and other claims."""
    found: dict[int, z3.ExprRef] = {}
    left, seen = [*claims], set()
    while left:
        term = left.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if _is_of_sums(term, bits):
            left += term.children()
        elif not z3.is_bv_value(term):
            found[term.get_id()] = term
    return list(found.values())


def _is_of_sums(term: z3.ExprRef, bits: int) -> bool:
    """Whether to look into a term: a connective, a comparison of such integers or with a constant, a sum, its bits."""
    if isinstance(term, z3.BitVecRef):
        kind = term.decl().kind()
        if kind == z3.Z3_OP_EXTRACT:
            return _size(term.arg(0)) == bits
        return term.size() == bits and kind in _ADDING
    if _is_connective(term):
        return True
    parts = term.children()
    return len(parts) == 2 and (
        _size(parts[0]) == bits or any(z3.is_bv_value(part) or _is_bits(part, bits) for part in parts)
    )


def _is_bits(term: z3.ExprRef, bits: int) -> bool:
    return term.decl().kind() == z3.Z3_OP_EXTRACT and _size(term.arg(0)) == bits


def _size(term: z3.ExprRef) -> int:
    return term.size() if isinstance(term, z3.BitVecRef) else 0
