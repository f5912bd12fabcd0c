"""Values of a program that is run on terms: words, addresses and what is put together of them.

A word says for which inputs nothing has set it: it may be copied then, and is not to be computed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_text import Type
from mmaformal.hardware.rebuild import is_value, operation_of

TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)
#: Bits of an address.
ADDRESS = 64


@dataclass(frozen=True, eq=False)
class IrWord:
    """An integer: a bit-vector, or of one bit a claim; `unset`: for which inputs nothing has set it."""

    term: z3.ExprRef
    unset: z3.BoolRef = FALSE

    @property
    def bits(self) -> int:
        """How many there are."""
        return self.term.size() if isinstance(self.term, z3.BitVecRef) else 1

    @property
    def vector(self) -> z3.BitVecRef:
        """The bits as a bit-vector."""
        if isinstance(self.term, z3.BitVecRef):
            return self.term
        found = made(z3.If(self.term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)))
        assert isinstance(found, z3.BitVecRef)
        return found

    @property
    def number(self) -> int | None:
        """The value, where it is known."""
        if not is_value(self.term):
            return None
        return self.term.as_long() if z3.is_bv_value(self.term) else int(z3.is_true(self.term))


@dataclass(frozen=True, eq=False)
class Target:
    """A place that an address may be: `base` bytes and a multiple of each term from where an object begins."""

    when: z3.BoolRef  #: for which inputs it is this one
    object: int
    base: int
    steps: tuple[tuple[z3.BitVecRef, int], ...] = ()  #: terms of 64 bits, and bytes for one


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address: one of several places."""

    targets: tuple[Target, ...]
    unset: z3.BoolRef = FALSE


@dataclass(frozen=True, eq=False)
class IrGroup:
    """The values of a struct or an array."""

    parts: tuple[IrValue, ...]


IrValue = IrWord | Pointer | IrGroup


def made(term: z3.ExprRef) -> z3.ExprRef:
    """A term whose operands that are numbers are worked out, as `Rebuilt` does."""
    parts = term.children()
    if not parts:
        return term
    kind = term.decl().kind()
    if kind == z3.Z3_OP_NOT and z3.is_not(parts[0]):
        return parts[0].arg(0)
    if kind == z3.Z3_OP_EXTRACT and term.params()[1] == 0 and parts[0].decl().kind() in _EXTENDED:
        return _extended(parts[0], term.params()[0] + 1)
    if kind in _EXTENDED and parts[0].decl().kind() == kind:
        return _extended(parts[0], term.size())
    if kind in _COMPARED and not all(map(is_value, parts)):
        for i in (0, 1):
            if is_value(parts[1 - i]) and _is_choice_of_numbers(parts[i]):
                return _of_choice(term, parts, i)
    return operation_of(term, parts)


_EXTENDED = (z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT)
_COMPARED: tuple[int, ...] = (
    z3.Z3_OP_EQ,
    z3.Z3_OP_DISTINCT,
    z3.Z3_OP_ULT,
    z3.Z3_OP_ULEQ,
    z3.Z3_OP_UGT,
    z3.Z3_OP_UGEQ,
)
_COMPARED += (z3.Z3_OP_SLT, z3.Z3_OP_SLEQ, z3.Z3_OP_SGT, z3.Z3_OP_SGEQ)


def _extended(term: z3.ExprRef, bits: int) -> z3.ExprRef:
    """The lowest bits of an extended word, or more of them: of the word itself."""
    inner = term.arg(0)
    size = inner.size()
    if bits == size:
        return inner
    if bits < size:
        return made(z3.Extract(bits - 1, 0, inner))
    extend = z3.ZeroExt if term.decl().kind() == z3.Z3_OP_ZERO_EXT else z3.SignExt
    return made(extend(bits - size, inner))


def _is_choice_of_numbers(term: z3.ExprRef) -> bool:
    """Whether a term is a flag as a word, extended or not."""
    if term.decl().kind() == z3.Z3_OP_ZERO_EXT:
        return _is_choice_of_numbers(term.arg(0))
    return term.decl().kind() == z3.Z3_OP_ITE and is_value(term.arg(1)) and is_value(term.arg(2))


def _of_choice(term: z3.ExprRef, parts: list[z3.ExprRef], at: int) -> z3.ExprRef:
    """A comparison of a flag as a word and a number: the flag, its opposite, or neither."""
    flag = parts[at].arg(0) if parts[at].decl().kind() == z3.Z3_OP_ZERO_EXT else parts[at]
    more = parts[at].size() - flag.size()
    found = []
    for value in flag.children()[1:]:
        operands = list(parts)
        operands[at] = z3.simplify(z3.ZeroExt(more, value)) if more else value
        found.append(operation_of(term, operands))
    return choice(flag.arg(0), found[0], found[1])


def claim(term: z3.ExprRef) -> z3.BoolRef:
    """`made` of a claim."""
    found = made(term)
    assert isinstance(found, z3.BoolRef)
    return found


def all_true(*claims: z3.BoolRef) -> z3.BoolRef:
    """Returns the claim that all of some claims are true."""
    rest = [each for each in claims if not z3.is_true(each)]
    if any(map(z3.is_false, rest)):
        return FALSE
    return rest[0] if len(rest) == 1 else z3.And(rest) if rest else TRUE


def any_true(*claims: z3.BoolRef) -> z3.BoolRef:
    """Returns the claim that one of some claims is true."""
    rest: list[z3.BoolRef] = []
    for each in claims:
        if not z3.is_false(each) and not any(each.eq(x) for x in rest):
            rest.append(each)
    if any(map(z3.is_true, rest)):
        return TRUE
    return rest[0] if len(rest) == 1 else z3.Or(rest) if rest else FALSE


def untrue(term: z3.BoolRef) -> z3.BoolRef:
    """Returns the claim that a claim is false."""
    return claim(z3.Not(term))


def choice(when: z3.BoolRef, first: z3.ExprRef, second: z3.ExprRef) -> z3.ExprRef:
    """`first` where a claim is true, else `second`."""
    if first.eq(second):
        return first
    if isinstance(first, z3.BoolRef):
        if z3.is_true(first) and z3.is_false(second):
            return when
        if z3.is_false(first) and z3.is_true(second):
            return untrue(when)
        if z3.is_false(second):
            return all_true(when, first)
        if z3.is_true(first):
            return any_true(when, second)
        if z3.is_false(first):
            return all_true(untrue(when), second)
        if z3.is_true(second):
            return any_true(untrue(when), first)
    return made(z3.If(when, first, second))


def only_word(value: IrValue) -> IrWord:
    """A value that is a word.  Raises HardwareError for an address."""
    if isinstance(value, IrWord):
        return value
    raise HardwareError("an address is used as a number, which is not understood")


def literal(number: int, bits: int) -> IrWord:
    """A number as a word."""
    return IrWord(z3.BoolVal(bool(number & 1)) if bits == 1 else z3.BitVecVal(number, bits))


def of_bits(term: z3.BitVecRef, bits: int, unset: z3.BoolRef = FALSE) -> IrWord:
    """The lowest bits of a term as a word."""
    low = made(z3.Extract(bits - 1, 0, term)) if term.size() > bits else term
    return IrWord(claim(low == z3.BitVecVal(1, 1)) if bits == 1 else low, unset)


def picked(when: z3.BoolRef, first: IrValue, second: IrValue) -> IrValue:
    """The first value where a claim is true, else the second."""
    if first is second:
        return first
    if isinstance(first, IrWord) and isinstance(second, IrWord):
        unset = choice(when, first.unset, second.unset)
        assert isinstance(unset, z3.BoolRef)
        return IrWord(choice(when, first.term, second.term), unset)
    if isinstance(first, IrGroup) and isinstance(second, IrGroup):
        pairs = zip(first.parts, second.parts, strict=True)
        return IrGroup(tuple(picked(when, x, y) for x, y in pairs))
    if isinstance(first, Pointer) and isinstance(second, Pointer):
        unset = choice(when, first.unset, second.unset)
        assert isinstance(unset, z3.BoolRef)
        targets = [_when(when, each) for each in first.targets]
        for each in second.targets:
            same = next((i for i, x in enumerate(targets) if _same_place(x, each)), None)
            if same is None:
                targets.append(_when(untrue(when), each))
            else:
                whole = choice(when, first.targets[same].when, each.when)
                assert isinstance(whole, z3.BoolRef)
                targets[same] = Target(whole, each.object, each.base, each.steps)
        return Pointer(tuple(targets), unset)
    raise HardwareError("an address and a number meet in one variable, which is not understood")


def _when(when: z3.BoolRef, target: Target) -> Target:
    return Target(all_true(when, target.when), target.object, target.base, target.steps)


def _same_place(x: Target, y: Target) -> bool:
    if (x.object, x.base, len(x.steps)) != (y.object, y.base, len(y.steps)):
        return False
    pairs = zip(x.steps, y.steps, strict=True)
    return all(n == m and s.eq(t) for (s, n), (t, m) in pairs)


def unset_value(kind: Type) -> IrValue:
    """A value of a type that nothing has set."""
    if kind.kind == "ptr":
        return Pointer((), TRUE)
    if kind.kind == "array":
        return IrGroup(tuple(unset_value(kind.fields[0]) for _ in range(kind.bits)))
    if kind.kind == "struct":
        return IrGroup(tuple(map(unset_value, kind.fields)))
    return IrWord(literal(0, bits_of(kind)).term, TRUE)


def zero_value(kind: Type) -> IrValue:
    """A value of a type whose bits are all 0; an address is none."""
    if kind.kind == "ptr":
        return Pointer(())
    if kind.kind == "array":
        return IrGroup(tuple(zero_value(kind.fields[0]) for _ in range(kind.bits)))
    if kind.kind == "struct":
        return IrGroup(tuple(map(zero_value, kind.fields)))
    return literal(0, bits_of(kind))


def bits_of(kind: Type) -> int:
    """Bits of an integer type.  Raises HardwareError for any other."""
    if kind.kind != "int":
        what = "floating-point numbers are" if kind.kind in _FLOATS else f"the type {kind} is"
        raise HardwareError(f"{what} not read: only integers, their arrays and structs")
    return kind.bits


_FLOATS = ("float", "double", "half", "bfloat", "fp128", "x86_fp80")


def unset_of(values: Sequence[IrValue]) -> z3.BoolRef:
    """For which inputs nothing has set one of some values."""
    found: list[z3.BoolRef] = []
    for each in values:
        found.append(unset_of(each.parts) if isinstance(each, IrGroup) else each.unset)
    return any_true(*found)
