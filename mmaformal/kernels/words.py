"""Words, lanes of 32 bits that wrap, for compiled code: twice as many fit a vector as lanes of 64.

numba's own integers of 32 bits become 64 with every constant.  A `Word` stays one: what it is combined with is cut to
32 bits.  `<<`, `>>` (which keeps the sign) and `logical` take their amount as an unsigned number; of 32 and more they
give 0, or the sign: as SMT-LIB's shifts do, so that the functions of `narrow` are the same on symbolic words
(tests/kernels/test_narrow.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion as Fit
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, overload_attribute, register_model

from mmaformal.kernels.compiled import INLINED, Numba

CompiledWord: TypeAlias = Any  #: a word of compiled code, or a symbolic one

BITS = 32
_I32, _BOOL = ir.IntType(BITS), ir.IntType(1)


class _WordType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Word")

    def can_convert_from(self, typing: Numba, other: Numba) -> Numba:
        return Fit.safe if isinstance(other, types.Integer) else None

    def unify(self, typing: Numba, other: Numba) -> Numba:
        return self if isinstance(other, types.Integer) else None


WORD = _WordType()


@register_model(_WordType)
class _WordModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Numba, ty: Numba) -> None:
        super().__init__(manager, ty, _I32)


def _cut(builder: Numba, value: Numba, ty: Numba) -> Numba:
    """A number of any type as a word."""
    width = value.type.width
    if width == BITS:
        return value
    if width > BITS:
        return builder.trunc(value, _I32)
    signed = getattr(ty, "signed", False)
    return builder.sext(value, _I32) if signed else builder.zext(value, _I32)


@lower_cast(types.Integer, _WordType)
def _cast(context: Numba, builder: Numba, given: Numba, target: Numba, value: Numba) -> Numba:
    return _cut(builder, value, given)


# ---- operators ---------------------------------------------------------------------------------------------


def _operator(op: Callable[..., object], result: Numba, make: Callable[..., Numba]) -> None:
    """Register an operator of two words, or a word and a number."""
    sides = (WORD, WORD), (WORD, types.int64), (types.int64, WORD)

    @infer_global(op)
    class _Typing(ConcreteTemplate):  # type: ignore[misc]
        cases = [signature(result, *each) for each in sides]  # noqa: RUF012

    def lower(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
        words = (_cut(builder, value, ty) for value, ty in zip(arguments, of.args, strict=True))
        return make(builder, *words)

    for each in sides:
        lower_builtin(op, *each)(lower)


def _number(x: int) -> Numba:
    return ir.Constant(_I32, x)


def _shifted(shift: str) -> Callable[..., Numba]:
    """A shift that fills with zeros; LLVM leaves shifts by 32 and more undefined."""

    def make(builder: Numba, x: Numba, n: Numba) -> Numba:
        inside = builder.icmp_unsigned("<", n, _number(BITS))
        return builder.select(inside, getattr(builder, shift)(x, n), _number(0))

    return make


def _arithmetic(builder: Numba, x: Numba, n: Numba) -> Numba:
    inside = builder.icmp_unsigned("<", n, _number(BITS - 1))
    return builder.ashr(x, builder.select(inside, n, _number(BITS - 1)))


for _name in ("add", "sub", "mul", "and_", "or_", "xor"):
    _operator(getattr(operator, _name), WORD, lambda builder, x, y, name=_name: getattr(builder, name)(x, y))
_operator(operator.lshift, WORD, _shifted("shl"))
_operator(operator.rshift, WORD, _arithmetic)
for _op, _sign in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    _operator(_op, types.boolean, lambda builder, x, y, sign=_sign: builder.icmp_signed(sign, x, y))


@infer_global(operator.neg)
class _Negated(ConcreteTemplate):  # type: ignore[misc]
    cases = [signature(WORD, WORD)]  # noqa: RUF012


@lower_builtin(operator.neg, WORD)
def _negated(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
    return builder.neg(arguments[0])


# ---- functions ---------------------------------------------------------------------------------------------


@intrinsic
def word32(typing: Numba, x: Numba) -> Numba:
    """A number as a word: its low 32 bits."""

    def generate(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
        return _cut(builder, arguments[0], of.args[0])

    return WORD(types.int64 if isinstance(x, types.IntegerLiteral) else x), generate


@intrinsic
def _bits(typing: Numba, x: Numba) -> Numba:
    return types.int32(WORD), lambda context, builder, of, arguments: arguments[0]


@overload_attribute(_WordType, "number", strict=False)
def _number_of(x: Numba) -> Numba:
    """The word as one of numba's integers, signed."""
    return lambda x: _bits(x)


@intrinsic
def _float_of_word(typing: Numba, x: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(WORD), generate


@intrinsic
def _double_of_word(typing: Numba, x: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
        wide = builder.zext(arguments[0], ir.IntType(64))
        return builder.bitcast(builder.shl(wide, ir.Constant(wide.type, 52)), ir.DoubleType())

    return types.float64(WORD), generate


def two_to(exponent: CompiledWord, like: CompiledWord) -> CompiledWord:
    """2^exponent as a float of the type of `like`; exponents outside its normal range give the end of the range."""
    raise NotImplementedError("compiled code only")


@overload(two_to, **INLINED)
def _two_to(exponent: Numba, like: Numba) -> Numba:
    if like == types.float32:

        def single(exponent: CompiledWord, like: CompiledWord) -> CompiledWord:
            field = exponent + 127
            field = field if field > 1 else word32(1)
            field = field if field < 254 else word32(254)
            return _float_of_word(field << 23)

        return single

    def double(exponent: CompiledWord, like: CompiledWord) -> CompiledWord:
        field = exponent + 1023
        field = field if field > 1 else word32(1)
        return _double_of_word(field if field < 2046 else word32(2046))

    return double


def logical(x: CompiledWord, n: CompiledWord) -> CompiledWord:
    """x >> n, filled with zeros."""
    return x.logical(n)


@intrinsic
def _logical(typing: Numba, x: Numba, n: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
        return _shifted("lshr")(builder, arguments[0], _cut(builder, arguments[1], of.args[1]))

    return WORD(WORD, n), generate


@overload(logical, **INLINED)
def _logical_of(x: Numba, n: Numba) -> Numba:
    return lambda x, n: _logical(x, n)


def leading_zeros(x: CompiledWord) -> CompiledWord:
    """The zeros above the leading one of an unsigned word; 32 of 0."""
    return x.leading_zeros()


@intrinsic
def _leading(typing: Numba, x: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, of: Numba, arguments: Numba) -> Numba:
        return builder.ctlz(arguments[0], ir.Constant(_BOOL, 0))

    return WORD(WORD), generate


@overload(leading_zeros, **INLINED)
def _leading_of(x: Numba) -> Numba:
    return lambda x: _leading(x)
