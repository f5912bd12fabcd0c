"""Symbolic inputs of a dot product-add, and what can be said about their codes as bit-vector terms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import z3

from mmaformal.algorithms import DotAdd
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, Specials
from mmaformal.solver.asking import constants_of


@dataclass(frozen=True, repr=False)
class Codes(ShortRepr):
    """The codes of one case: K of a and of b, one c, and one scale of each side per block, if there are any."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()

    def __str__(self) -> str:
        """All of them, for an error that says on what codes something went wrong."""
        sides = {"a": self.a, "b": self.b, "scale_a": self.scale_a, "scale_b": self.scale_b}
        told = (f"{name} = {' '.join(map(hex, side))}" for name, side in sides.items() if side)
        return f"{', '.join(told)}, c = {self.c:#x}"


@dataclass(frozen=True, repr=False)
class Inputs(ShortRepr):
    """The same, as bit-vector terms of each format's storage width: constants to solve for, or values."""

    a: tuple[z3.BitVecRef, ...]
    b: tuple[z3.BitVecRef, ...]
    c: z3.BitVecRef
    scale_a: tuple[z3.BitVecRef, ...] = ()
    scale_b: tuple[z3.BitVecRef, ...] = ()

    def _flat(self) -> list[z3.BitVecRef]:
        return [*self.a, *self.b, self.c, *self.scale_a, *self.scale_b]

    def constants(self) -> dict[str, int]:
        """Name → width of the constants to solve for."""
        return {str(c): c.size() for x in self._flat() for c in constants_of(x)}

    def codes(self, spec: DotAdd, model: Mapping[str, int]) -> Codes:
        """The codes a model stands for; in those it chose, the storage bits that the unit ignores are 0."""

        def code(x: z3.BitVecRef, fmt: Format) -> int:
            values = [(c, z3.BitVecVal(model[str(c)], c.size())) for c in constants_of(x)]
            if not values:
                return z3.simplify(x).as_long()  # type: ignore[no-any-return]
            value: int = z3.simplify(z3.substitute(x, *values)).as_long()
            used = value >> fmt.ignored_low_bits << fmt.ignored_low_bits
            return used if fmt.signed or not fmt.has_zero else used & (fmt.codes // 2 - 1)

        scale = spec.scale_format
        return Codes(
            tuple(code(x, spec.a_format) for x in self.a),
            tuple(code(x, spec.b_format) for x in self.b),
            code(self.c, spec.c_format),
            tuple(code(x, scale) for x in self.scale_a) if scale else (),
            tuple(code(x, scale) for x in self.scale_b) if scale else (),
        )


def symbolic_inputs(
    spec: DotAdd,
    pinned: Mapping[str, int] | None = None,
    *,
    zeros: Collection[str] = (),
    positive: Collection[str] = (),
    bare: bool = False,
) -> Inputs:
    """Constants named a0, a1, …, b0, …, c, sa0, …, sb0, … but for those in `pinned`, which have that value.

    Of those in `zeros` only the sign is free; those in `positive` have a sign of 0.  `bare` leaves only sign and
    exponent field free (the trailing significand is 0): powers of two, zeros, infinities.
    """
    pinned = pinned or {}

    def term(name: str, fmt: Format) -> z3.BitVecRef:
        bits, low = fmt.storage_bits, fmt.fraction_bits + fmt.ignored_low_bits
        if name in pinned:
            return z3.BitVecVal(pinned[name], bits)
        if name in zeros:
            return z3.Concat(z3.BitVec(name, 1), z3.BitVecVal(0, bits - 1))
        parts: list[z3.BitVecRef] = [z3.BitVecVal(0, 1)] if name in positive else []
        low = low if bare else 0
        parts.append(z3.BitVec(name, bits - len(parts) - low))
        if low:
            parts.append(z3.BitVecVal(0, low))
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]

    blocks = spec.k // spec.scale_block if spec.scale_format else 0
    scale = spec.scale_format
    return Inputs(
        tuple(term(f"a{k}", spec.a_format) for k in range(spec.k)),
        tuple(term(f"b{k}", spec.b_format) for k in range(spec.k)),
        term("c", spec.c_format),
        tuple(term(f"sa{i}", scale) for i in range(blocks)) if scale else (),
        tuple(term(f"sb{i}", scale) for i in range(blocks)) if scale else (),
    )


# ---- what a code is ---------------------------------------------------------------------------------------------


def exponent_field(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    low = fmt.ignored_low_bits + fmt.fraction_bits
    return z3.Extract(low + fmt.exponent_bits - 1, low, code)


def fraction_field(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """The trailing significand; a format without one (ue8m0) has a zero bit instead."""
    if not fmt.fraction_bits:
        return z3.BitVecVal(0, 1)
    return z3.Extract(fmt.ignored_low_bits + fmt.fraction_bits - 1, fmt.ignored_low_bits, code)


def magnitude_field(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """Exponent and trailing significand as one unsigned number, which orders finite magnitudes."""
    low = fmt.ignored_low_bits
    return z3.Extract(low + fmt.fraction_bits + fmt.exponent_bits - 1, low, code)


def is_zero(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    if not fmt.has_zero:
        return z3.BoolVal(False)
    zero = magnitude_field(code, fmt) == 0
    if fmt.specials == Specials.FNUZ:
        return z3.And(zero, z3.Not(is_nan(code, fmt)))
    return zero


def is_nan(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    top = exponent_field(code, fmt) == z3.BitVecVal(-1, fmt.exponent_bits)
    fraction = fraction_field(code, fmt)
    if not fmt.has_zero:
        return top
    if fmt.specials == Specials.IEEE:
        return z3.And(top, fraction != 0)
    if fmt.specials == Specials.FN:
        return z3.And(top, fraction == z3.BitVecVal(-1, fmt.fraction_bits))
    if fmt.specials == Specials.FNUZ:
        return code == z3.BitVecVal(fmt.sign_mask, fmt.storage_bits)
    return z3.BoolVal(False)


def is_infinite(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    if fmt.specials != Specials.IEEE:
        return z3.BoolVal(False)
    top = exponent_field(code, fmt) == z3.BitVecVal(-1, fmt.exponent_bits)
    return z3.And(top, fraction_field(code, fmt) == 0)


def is_finite(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    return z3.Not(z3.Or(is_nan(code, fmt), is_infinite(code, fmt)))


# ---- how large a case is, for minimal witnesses --------------------------------------------------------------------


def at_most(terms: Sequence[z3.BitVecRef], bound: int) -> list[z3.BoolRef]:
    """The sum of unsigned terms is at most `bound`.  A bound of 0 is said term by term, which simplifies further."""
    if bound == 0:
        return [term == 0 for term in terms]
    # Wide enough that neither the sum of the terms nor the bound wraps.
    bits = max([bound.bit_length(), *(len(terms).bit_length() + term.size() for term in terms)])
    total = z3.BitVecVal(0, bits)
    for term in terms:
        total = total + z3.ZeroExt(bits - term.size(), term)
    return [z3.ULE(total, z3.BitVecVal(bound, bits))]


def significand_bits(code: z3.BitVecRef, fmt: Format) -> list[z3.BitVecRef]:
    """The bits of the trailing significand, to be counted."""
    fraction = fraction_field(code, fmt)
    return [z3.Extract(i, i, fraction) for i in range(fraction.size())]


def sign_bit(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """1 for a minus sign; 0 for formats that have none."""
    top = fmt.storage_bits - 1
    return z3.Extract(top, top, code) if fmt.signed else z3.BitVecVal(0, 1)


def exponent_distance(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """|exponent| as read off the fields, 0 for zero."""
    bits = fmt.exponent_bits + 1
    field = z3.ZeroExt(1, exponent_field(code, fmt))
    if fmt.has_zero:
        field = z3.If(field == 0, z3.BitVecVal(1, bits), field)
    bias = z3.BitVecVal(fmt.bias, bits)
    distance = z3.If(z3.UGE(field, bias), field - bias, bias - field)
    return z3.If(is_zero(code, fmt), z3.BitVecVal(0, bits), distance)
