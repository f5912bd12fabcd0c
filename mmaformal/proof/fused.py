"""Lemmas of what is lost where terms are aligned and added, in the steps of fda, gdfs, fdrda and gfdrda.

Of a step in the SMT encoding, with its interfaces cut: in units of u = 2^(e_max - F),

1. *largest*:     every exponent is at most e_max, and one of them is e_max;
2. *alignment*:   an aligned magnitude A is the floor of the exact one: A·u ≤ |term| < (A + 1)·u.

The sum of these is in `fixed_sums`.

How much of a term can be lost at most, for the significands that its format has, is counted here; that no more is
lost is proved in `error_bound`.  Numbers `m · 2^t` are compared exactly (`definitions.at_least`): nothing here rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.encodings.smt.blocks import Term
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit

# ---- the largest exponent ----------------------------------------------------------------------------------------


def prove_largest(
    proving: Composing, what: str, largest: z3.BitVecRef, exponents: Sequence[z3.BitVecRef]
) -> tuple[list[z3.BoolRef], z3.BoolRef]:
    """(each exponent is at most `largest`; one of them is it), down the tree of a maximum."""

    def node(tree: z3.BitVecRef, leaves: Sequence[z3.BitVecRef]) -> tuple[list[z3.BoolRef], list[z3.BoolRef]]:
        if len(leaves) == 1 or not z3.is_app_of(tree, z3.Z3_OP_ITE):
            at_most = [z3.ULE(e, tree) for e in leaves]
            equal = [e == tree for e in leaves]
            text = f"{what}: the largest is one of {len(leaves)}, and none is above it"
            proving.claim(f"{what} largest", text, z3.And(*at_most, z3.Or(equal)))
            return at_most, equal
        half = len(leaves) // 2
        parts = [(tree.arg(1), leaves[:half]), (tree.arg(2), leaves[half:])]
        sides = [top for top, _ in parts]
        text = f"{what}: the larger of two is one of them, and neither is above it"
        bigger = proving.claim(
            f"{what} larger of two",
            text,
            z3.And(*(z3.ULE(side, tree) for side in sides), z3.Or([side == tree for side in sides])),
        )
        at_most, some = [], []
        for top, part in parts:
            below, equal = node(top, part)
            at_most += [
                proving.claim(f"{what} at most", f"{what}: ≤ is transitive", z3.ULE(e, tree), [b, bigger])
                for e, b in zip(part, below, strict=True)
            ]
            some.append((top, z3.Or(equal)))
        equal = [e == tree for e in leaves]
        proving.claim(
            f"{what} some",
            f"{what}: one of {len(leaves)} is the larger of the two largest",
            z3.Or(equal),
            [claim for _, claim in some] + [bigger],
        )
        return at_most, equal

    at_most, equal = node(largest, exponents)
    return at_most, z3.Or(equal)


# ---- one term ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summand:
    """A term of a step, `(-1)^sign · significand · 2^(exponent - fraction_bits)`, aligned to `aligned` units."""

    name: str
    term: Term
    aligned: z3.BitVecRef
    fraction_bits: int
    factors: tuple[z3.BitVecRef, ...]  #: terms that the significand is the product of


def last_places(x: Summand, e_max: z3.BitVecRef, F: int) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    """The exponents of the term's last place and of the unit, offset alike, in two's complement."""
    bits = e_max.size() + max(F, x.fraction_bits).bit_length() + 10
    return fit(x.term.exponent, bits) - x.fraction_bits, fit(e_max, bits) - F


def loses_no_bit(x: Summand, e_max: z3.BitVecRef, F: int) -> z3.BoolRef:
    """Whether no set bit of the term lies below 2^(e_max - F): a condition on its exponent and trailing zeros."""
    e, u = last_places(x, e_max, F)
    significand, gap = x.term.significand, u - e
    width = significand.size()
    wide = max(width, gap.size())
    low = fit(significand, wide) & ((z3.BitVecVal(1, wide) << fit(gap, wide)) - 1)
    return z3.Or(gap <= 0, z3.If(gap >= width, significand == 0, low == 0))


# ---- how much of a significand can be lost -----------------------------------------------------------------------


@cache
def _products(factor_bits: tuple[int, ...], limit: int | None) -> NDArray[np.int64]:
    """All products of unsigned numbers of so many bits; the first at most `limit`."""
    values = np.arange(1 << factor_bits[0] if limit is None else limit + 1, dtype=np.int64)
    for bits in factor_bits[1:]:
        present = np.zeros((int(values.max()) << bits) + 1, np.bool_)
        present[np.outer(values, np.arange(1 << bits, dtype=np.int64))] = True
        values = np.flatnonzero(present)
    return values


@dataclass(frozen=True)
class Loss:
    """The most that can be lost of one term, in units of u; and by which significand and how many places."""

    units: Fraction
    significand: int
    places: int  #: how far the term's last place is below u


@cache
def largest_loss(factor_bits: tuple[int, ...], places: int, limit: int | None = None) -> Loss:
    """The largest part below u of a significand that is a product of factors of so many bits, if its last place is at
    most `places` below u.  `limit` bounds the first factor.

    Beyond its own width a significand is lost as a whole, and further down it is only smaller.
    """
    best = Loss(Fraction(0), 0, 0)
    if places <= 0:
        return best
    if len(factor_bits) == 1 and limit is None:
        s = min(places, factor_bits[0])
        ones = (1 << s) - 1
        return Loss(Fraction(ones, 1 << s), ones, s)
    values = _products(factor_bits, limit)
    for s in range(1, min(places, int(values.max()).bit_length()) + 1):
        parts = values & ((1 << s) - 1)
        i = int(parts.argmax())
        units = Fraction(int(parts[i]), 1 << s)
        if units > best.units:
            best = Loss(units, int(values[i]), s)
    return best
