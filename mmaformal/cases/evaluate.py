"""z3 terms on many values at once, to try cases by the thousand; nothing that is proved rests on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import z3
from numpy.typing import NDArray

Column: TypeAlias = "NDArray[Any]"  # Python's integers, unsigned, a row per case; or Booleans


def evaluate(term: z3.ExprRef, values: Mapping[str, Column]) -> Column:
    """The term for each row of the values of its constants, by name: object arrays of unsigned integers.

    Raises KeyError for a constant without values, ValueError for an operation that is not of bit-vectors.
    """
    return evaluate_all([term], values)[term.get_id()]


def evaluate_all(terms: Sequence[z3.ExprRef], values: Mapping[str, Column]) -> dict[int, Column]:
    """Return the rows of several terms and of everything in them, by its id.  Raises as `evaluate` does."""
    done: dict[int, Column] = {}
    waiting: dict[int, list[int]] = {}  #: terms, and what for
    stack = list(terms)
    while stack:
        t = stack[-1]
        name = t.get_id()
        if name not in done and name not in waiting:
            waiting[name] = _operands(t)
            if todo := [t.arg(i) for i, x in enumerate(waiting[name]) if x not in done]:
                stack += todo
                continue
        stack.pop()
        if name not in done:
            done[name] = _apply(t, [done[x] for x in waiting.pop(name)], values)
    return done


def _operands(term: z3.ExprRef) -> list[int]:
    """The ids of a term's operands: what most of the time went to, where each was made an object for that."""
    context, ast = term.ctx_ref(), term.as_ast()
    parts = (z3.Z3_get_app_arg(context, ast, i) for i in range(z3.Z3_get_app_num_args(context, ast)))
    return [z3.Z3_get_ast_id(context, part) for part in parts]


def _apply(term: z3.ExprRef, operands: list[Column], values: Mapping[str, Column]) -> Column:
    if isinstance(term, z3.BitVecNumRef):
        return np.array(term.as_long(), object)
    kind = term.decl().kind()
    if not operands and kind == z3.Z3_OP_UNINTERPRETED:
        return values[str(term.decl().name())]
    if kind not in _FUNCTIONS:
        raise ValueError(f"not an operation on bit-vectors: {term.decl().name()}")
    if kind in _FOLDED and len(operands) > 1:
        out = operands[0]
        for operand in operands[1:]:
            out = _FUNCTIONS[kind](term, out, operand)
    else:
        out = _FUNCTIONS[kind](term, *operands)
    # NumPy makes an int of what is done to arrays without an axis.
    return np.asarray(out & _ones(term.size()), object) if isinstance(term, z3.BitVecRef) else out


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _signed(x: Column, bits: int) -> Column:
    out: Column = x - ((x >> (bits - 1)) << bits)
    return out


def _order(compare: Callable[[Column, Column], object], signed: bool) -> Callable[..., Column]:
    def apply(term: z3.ExprRef, x: Column, y: Column) -> Column:
        bits = term.arg(0).size()
        u, v = (_signed(z, bits) if signed else z for z in (x, y))
        return np.asarray(compare(u, v), bool)

    return apply


def _shift(shift: Callable[[Column, Column], Column], signed: bool = False) -> Callable[..., Column]:
    def apply(term: z3.BitVecRef, x: Column, n: Column) -> Column:
        bits = term.size()
        return shift(_signed(x, bits) if signed else x, np.asarray(np.minimum(n, bits)))

    return apply


def _division(of: Callable[[Column, Column, Column], Column], signed: bool = False) -> Callable[..., Column]:
    """Returns the dividend, the divisor with 1 in the place of 0, and where that is."""

    def apply(term: z3.BitVecRef, x: Column, y: Column) -> Column:
        u, v = (_signed(z, term.size()) if signed else z for z in (x, y))
        zero = np.asarray(v == 0, bool)
        return of(u, np.where(zero, 1, v), zero)

    return apply


def _truncated(x: Column, y: Column, zero: Column) -> Column:
    """The quotient toward zero; by zero, 1 of a negative number and −1 of another."""
    negative = np.asarray(x < 0, bool)
    quotient = abs(x) // abs(y)
    quotient = np.where(negative == np.asarray(y < 0, bool), quotient, -quotient)
    return np.where(zero, np.where(negative, 1, -1), quotient)


def _remainder(x: Column, y: Column, zero: Column) -> Column:
    """The remainder of the quotient toward zero, which has x's sign; by zero it is x."""
    rest = abs(x) % abs(y)
    return np.where(zero, x, np.where(np.asarray(x < 0, bool), -rest, rest))


def _concat(term: z3.BitVecRef, *parts: Column) -> Column:
    out = parts[0]
    for part, operand in zip(parts[1:], term.children()[1:], strict=True):
        out = (out << operand.size()) | part
    return out


def _where(term: z3.ExprRef, flag: Column, x: Column, y: Column) -> Column:
    chosen: Column = np.where(flag, x, y)
    return chosen


def _all(term: z3.BoolRef, *flags: Column) -> Column:
    return np.logical_and.reduce(np.broadcast_arrays(*flags)) if flags else np.array(True)


def _any(term: z3.BoolRef, *flags: Column) -> Column:
    return np.logical_or.reduce(np.broadcast_arrays(*flags)) if flags else np.array(False)


_FUNCTIONS: dict[int, Callable[..., Column]] = {
    z3.Z3_OP_TRUE: lambda t: np.array(True),
    z3.Z3_OP_FALSE: lambda t: np.array(False),
    z3.Z3_OP_AND: _all,
    z3.Z3_OP_OR: _any,
    z3.Z3_OP_NOT: lambda t, x: ~x,
    z3.Z3_OP_XOR: lambda t, x, y: x ^ y,
    z3.Z3_OP_IMPLIES: lambda t, x, y: ~x | y,
    z3.Z3_OP_EQ: lambda t, x, y: np.asarray(x == y, bool),
    z3.Z3_OP_DISTINCT: lambda t, x, y: np.asarray(x != y, bool),
    z3.Z3_OP_ITE: _where,
    z3.Z3_OP_BADD: lambda t, x, y: x + y,
    z3.Z3_OP_BSUB: lambda t, x, y: x - y,
    z3.Z3_OP_BMUL: lambda t, x, y: x * y,
    z3.Z3_OP_BNEG: lambda t, x: -x,
    z3.Z3_OP_BNOT: lambda t, x: ~x,
    z3.Z3_OP_BAND: lambda t, x, y: x & y,
    z3.Z3_OP_BOR: lambda t, x, y: x | y,
    z3.Z3_OP_BXOR: lambda t, x, y: x ^ y,
    z3.Z3_OP_BUDIV: _division(lambda x, y, zero: np.where(zero, -1, x // y)),
    z3.Z3_OP_BUREM: _division(lambda x, y, zero: np.where(zero, x, x % y)),
    z3.Z3_OP_BSDIV: _division(_truncated, signed=True),
    z3.Z3_OP_BSREM: _division(_remainder, signed=True),
    z3.Z3_OP_BSMOD: _division(lambda x, y, zero: np.where(zero, x, x % y), signed=True),
    z3.Z3_OP_BSHL: _shift(lambda x, n: x << n),
    z3.Z3_OP_BLSHR: _shift(lambda x, n: x >> n),
    z3.Z3_OP_BASHR: _shift(lambda x, n: x >> n, signed=True),
    z3.Z3_OP_CONCAT: _concat,
    z3.Z3_OP_EXTRACT: lambda t, x: x >> t.params()[1],
    z3.Z3_OP_ZERO_EXT: lambda t, x: x,
    z3.Z3_OP_SIGN_EXT: lambda t, x: _signed(x, t.arg(0).size()),
    z3.Z3_OP_ULEQ: _order(lambda x, y: x <= y, False),
    z3.Z3_OP_ULT: _order(lambda x, y: x < y, False),
    z3.Z3_OP_UGEQ: _order(lambda x, y: x >= y, False),
    z3.Z3_OP_UGT: _order(lambda x, y: x > y, False),
    z3.Z3_OP_SLEQ: _order(lambda x, y: x <= y, True),
    z3.Z3_OP_SLT: _order(lambda x, y: x < y, True),
    z3.Z3_OP_SGEQ: _order(lambda x, y: x >= y, True),
    z3.Z3_OP_SGT: _order(lambda x, y: x > y, True),
}

#: z3 lets these take more than two operands.
_FOLDED = frozenset((z3.Z3_OP_XOR, z3.Z3_OP_BADD, z3.Z3_OP_BMUL, z3.Z3_OP_BAND, z3.Z3_OP_BOR, z3.Z3_OP_BXOR))
