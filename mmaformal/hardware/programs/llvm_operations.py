"""Results of LLVM's operations and intrinsic functions of integers, and for which operands there is none (poison).

Each follows the entry of its name in LLVM's language reference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import z3

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_values import (
    IrGroup,
    IrValue,
    IrWord,
    all_true,
    any_true,
    choice,
    claim,
    made,
    only_word,
    untrue,
)

Vector: TypeAlias = "z3.BitVecRef"


@dataclass(frozen=True)
class Made:
    """The value that an operation gives, and each way in which it gives nothing: a claim, and words for it."""

    value: IrValue
    nothing: tuple[tuple[z3.BoolRef, str], ...] = ()


def _vector(term: z3.ExprRef) -> Vector:
    found = made(term)
    assert isinstance(found, z3.BitVecRef)
    return found


def _number(value: int, like: Vector) -> Vector:
    return z3.BitVecVal(value, like.size())


def _top(x: Vector) -> z3.BoolRef:
    return claim(_vector(z3.Extract(x.size() - 1, x.size() - 1, x)) == z3.BitVecVal(1, 1))


def _wide(x: Vector, signed: bool, more: int) -> Vector:
    return _vector((z3.SignExt if signed else z3.ZeroExt)(more, x))


def _fits(exact: Vector, bits: int, signed: bool) -> z3.BoolRef:
    """Whether a word is one of so many bits, extended."""
    low = _vector(z3.Extract(bits - 1, 0, exact))
    return claim(exact == _wide(low, signed, exact.size() - bits))


_WRAPPING: dict[str, Callable[[Vector, Vector], Vector]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
}


def _overflows(op: str, x: Vector, y: Vector, signed: bool) -> z3.BoolRef:
    """Whether a sum, difference or product is no number of the operands' width."""
    bits = x.size()
    if signed and op != "mul":  # by signs: a solver has the sum already
        apart = claim(z3.Xor(_top(x), _top(y)))
        other = claim(z3.Xor(_top(x), _top(_vector(_WRAPPING[op](x, y)))))
        return all_true(apart if op == "sub" else untrue(apart), other)
    more = bits if op == "mul" else 1
    exact = _vector(_WRAPPING[op](_wide(x, signed, more), _wide(y, signed, more)))
    if op == "sub" and not signed:
        return claim(z3.ULT(x, y))
    return untrue(_fits(exact, bits, signed))


def _arithmetic(op: str, x: Vector, y: Vector, flags: Collection[str]) -> Made:
    nothing = [
        (_overflows(op, x, y, signed), f"{op} of {x.size()} bits overflows ({'' if signed else 'un'}signed)")
        for flag, signed in (("nsw", True), ("nuw", False))
        if flag in flags
    ]
    return Made(IrWord(made(_WRAPPING[op](x, y))), tuple(nothing))


def _shift(op: str, x: Vector, y: Vector, flags: Collection[str]) -> Made:
    bits = x.size()
    nothing = [
        (claim(z3.UGE(y, _number(bits, y))), f"a shift of {bits} bits by {bits} or more, or less than 0")
    ]
    found = _vector({"shl": lambda: x << y, "lshr": lambda: z3.LShR(x, y), "ashr": lambda: x >> y}[op]())
    if "nsw" in flags:
        nothing.append((claim(_vector(found >> y) != x), f"a shift of {bits} bits overflows (signed)"))
    if "nuw" in flags:
        nothing.append(
            (claim(_vector(z3.LShR(found, y)) != x), f"a shift of {bits} bits overflows (unsigned)")
        )
    if "exact" in flags:
        nothing.append((claim(_vector(found << y) != x), "an exact shift that loses bits"))
    return Made(IrWord(found), tuple(nothing))


def _division(op: str, x: Vector, y: Vector, flags: Collection[str]) -> Made:
    nothing = [(claim(y == 0), "a division by zero")]
    if op[0] == "s":
        least = claim(x == _number(1 << (x.size() - 1), x))
        nothing.append((all_true(least, claim(y == _number(-1, y))), "a quotient that overflows (signed)"))
    operations = {"udiv": z3.UDiv, "urem": z3.URem, "sdiv": lambda x, y: x / y, "srem": z3.SRem}
    if "exact" in flags:
        rest = z3.URem(x, y) if op[0] == "u" else z3.SRem(x, y)
        nothing.append((claim(_vector(rest) != 0), "an exact division that has a remainder"))
    return Made(IrWord(made(operations[op](x, y))), tuple(nothing))


def _bitwise(op: str, x: IrWord, y: IrWord, flags: Collection[str]) -> Made:
    a, b = x.term, y.term
    shared = "bits that are said to be disjoint are not"
    if isinstance(a, z3.BoolRef) and isinstance(b, z3.BoolRef):
        logic = {"and": lambda: all_true(a, b), "or": lambda: any_true(a, b)}
        if op == "xor":
            found = untrue(a) if z3.is_true(b) else untrue(b) if z3.is_true(a) else claim(z3.Xor(a, b))
            return Made(IrWord(found))
        return Made(IrWord(logic[op]()), ((all_true(a, b), shared),) if "disjoint" in flags else ())
    u, v = x.vector, y.vector
    nothing = ((claim(_vector(u & v) != 0), shared),)
    operations = {"and": lambda: u & v, "or": lambda: u | v, "xor": lambda: u ^ v}
    return Made(IrWord(made(operations[op]())), nothing if "disjoint" in flags else ())


def binary(op: str, x: IrWord, y: IrWord, flags: Collection[str] = ()) -> Made:
    """The result of an operation of two words."""
    if op in ("and", "or", "xor"):
        return _bitwise(op, x, y, flags)
    if x.bits == 1:
        if op in ("add", "sub") and not flags:
            return _bitwise("xor", x, y, ())
        raise HardwareError(f"{op} of one bit is not understood")
    u, v = x.vector, y.vector
    if op in _WRAPPING:
        return _arithmetic(op, u, v, flags)
    if op in ("shl", "lshr", "ashr"):
        return _shift(op, u, v, flags)
    if op in ("udiv", "sdiv", "urem", "srem"):
        return _division(op, u, v, flags)
    raise HardwareError(f"{op} is not read: only operations of integers are")


_COMPARED: dict[str, Callable[[Vector, Vector], z3.BoolRef]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "ugt": z3.UGT,
    "uge": z3.UGE,
    "ult": z3.ULT,
    "ule": z3.ULE,
    "sgt": lambda x, y: x > y,
    "sge": lambda x, y: x >= y,
    "slt": lambda x, y: x < y,
    "sle": lambda x, y: x <= y,
}


def icmp(name: str, x: IrWord, y: IrWord, flags: Collection[str] = ()) -> Made:
    """Whether two words compare so."""
    if x.bits == 1 and name in ("eq", "ne"):
        made_of = _bitwise("xor", x, y, ()).value
        assert isinstance(made_of, IrWord)
        assert isinstance(made_of.term, z3.BoolRef)
        return Made(IrWord(made_of.term if name == "ne" else untrue(made_of.term)))
    u, v = x.vector, y.vector
    term = untrue(claim(u == v)) if name == "ne" else claim(_COMPARED[name](u, v))
    nothing = ((claim(z3.Xor(_top(u), _top(v))), "signs that are said to be the same are not"),)
    return Made(IrWord(term), nothing if "samesign" in flags else ())


def resized(op: str, x: IrWord, bits: int, flags: Collection[str] = ()) -> Made:
    """A word of another width."""
    u = x.vector
    more = bits - u.size()
    if op in ("zext", "sext"):
        nothing = ((_top(u), "a number that is said not to be negative is"),) if "nneg" in flags else ()
        return Made(IrWord(made((z3.ZeroExt if op == "zext" else z3.SignExt)(more, u))), nothing)
    if op == "trunc":
        found = _vector(z3.Extract(bits - 1, 0, u))
        kinds = (("nsw", True), ("nuw", False))
        lost = [
            (untrue(_fits(u, bits, signed)), "a number does not fit")
            for flag, signed in kinds
            if flag in flags
        ]
        return Made(_as_word(found), tuple(lost))
    if op == "bitcast" and more == 0:
        return Made(x)
    raise HardwareError(f"{op} is not read: only conversions of integers are")


def _as_word(term: Vector) -> IrWord:
    return IrWord(claim(term == z3.BitVecVal(1, 1)) if term.size() == 1 else term)


# ---- intrinsic functions ----------------------------------------------------------------------------------------


def _leading(x: Vector) -> Vector:
    """How many zeros are before the first one."""
    found = _number(x.size(), x)
    for place in range(x.size()):
        found = _vector(z3.If(_bit(x, place), _number(x.size() - 1 - place, x), found))
    return found


def _trailing(x: Vector) -> Vector:
    found = _number(x.size(), x)
    for place in reversed(range(x.size())):
        found = _vector(z3.If(_bit(x, place), _number(place, x), found))
    return found


def _bit(x: Vector, place: int) -> z3.BoolRef:
    return claim(_vector(z3.Extract(place, place, x)) == z3.BitVecVal(1, 1))


def _population(x: Vector) -> Vector:
    found = _number(0, x)
    for place in range(x.size()):
        found = _vector(found + _wide(_vector(z3.Extract(place, place, x)), False, x.size() - 1))
    return found


def _swapped(x: Vector, step: int) -> Vector:
    parts = [_vector(z3.Extract(low + step - 1, low, x)) for low in range(0, x.size(), step)]
    return _vector(z3.Concat(*parts)) if len(parts) > 1 else parts[0]


def _funnel(x: Vector, y: Vector, by: Vector, left: bool) -> Vector:
    """Both words side by side, shifted; the half of it that counts."""
    bits = x.size()
    shift = (
        _vector(z3.URem(by, _number(bits, by))) if bits & (bits - 1) else _vector(by & _number(bits - 1, by))
    )
    whole, amount = z3.Concat(x, y), _wide(shift, False, bits)
    moved = _vector(whole << amount if left else z3.LShR(whole, amount))
    return _vector(z3.Extract(2 * bits - 1, bits, moved) if left else z3.Extract(bits - 1, 0, moved))


def _saturated(op: str, x: Vector, y: Vector, signed: bool) -> Vector:
    bits, over = x.size(), _overflows(op, x, y, signed)
    plain = _vector(_WRAPPING[op](x, y))
    if not signed:
        return _vector(z3.If(over, _number(-1 if op == "add" else 0, x), plain))
    least, most = _number(1 << (bits - 1), x), _number((1 << (bits - 1)) - 1, x)
    return _vector(z3.If(over, _vector(z3.If(_top(x), least, most)), plain))


def _least(x: Vector, y: Vector, smaller: z3.BoolRef) -> Vector:
    found = choice(claim(smaller), x, y)
    assert isinstance(found, z3.BitVecRef)
    return found


_OF_TWO: dict[str, Callable[[Vector, Vector], Vector]] = {
    "umin": lambda x, y: _least(x, y, z3.ULT(x, y)),
    "umax": lambda x, y: _least(x, y, z3.UGT(x, y)),
    "smin": lambda x, y: _least(x, y, x < y),
    "smax": lambda x, y: _least(x, y, x > y),
    "uadd.sat": lambda x, y: _saturated("add", x, y, False),
    "usub.sat": lambda x, y: _saturated("sub", x, y, False),
    "sadd.sat": lambda x, y: _saturated("add", x, y, True),
    "ssub.sat": lambda x, y: _saturated("sub", x, y, True),
}
_OF_ONE: dict[str, Callable[[Vector], Vector]] = {
    "ctpop": _population,
    "bswap": lambda x: _swapped(x, 8),
    "bitreverse": lambda x: _swapped(x, 1),
}


def intrinsic(name: str, operands: Sequence[IrValue]) -> Made | None:
    """Return the result of `llvm.NAME`; None for an unknown one.  `name` is without the types: `umin`, `sadd.sat`."""
    if name in ("fshl", "fshr"):
        x, y, by = (only_word(each).vector for each in operands)
        return Made(IrWord(_funnel(x, y, by, name == "fshl")))
    if name.endswith(".with.overflow"):
        x, y = (only_word(each).vector for each in operands)
        op = name[1:4]
        return Made(
            IrGroup((IrWord(made(_WRAPPING[op](x, y))), IrWord(_overflows(op, x, y, name[0] == "s"))))
        )
    if name in _OF_TWO:
        x, y = (only_word(each).vector for each in operands)
        return Made(IrWord(_OF_TWO[name](x, y)))
    if name in _OF_ONE:
        return Made(IrWord(_OF_ONE[name](only_word(operands[0]).vector)))
    if name in ("ctlz", "cttz", "abs"):
        return _with_a_flag(name, only_word(operands[0]).vector, only_word(operands[1]).number == 1)
    if name in ("expect", "expect.with.probability"):
        return Made(operands[0])
    return None


def _with_a_flag(name: str, x: Vector, poison: bool) -> Made:
    """Zeros before or behind, and an absolute value; whether the worst operand gives nothing is said."""
    if name == "abs":
        least = claim(x == _number(1 << (x.size() - 1), x))
        found = choice(_top(x), _vector(-x), x)
        return Made(IrWord(found), ((least, "the absolute value of the least number"),) if poison else ())
    found = _leading(x) if name == "ctlz" else _trailing(x)
    what = "leading" if name == "ctlz" else "trailing"
    return Made(IrWord(found), ((claim(x == 0), f"{what} zeros of 0 are counted"),) if poison else ())
