"""The bridge to numba: the executable encoding's stage functions become compiled code, as they stand.

A stage function is plain Python on lanes.  These make the same function compile for 64-bit lanes:

- `where` and `bit_length` get a compiled form (a select, and a count of leading zeros), as do five functions that do
  not compile as they stand: `sign_word`, efda's `select` and `normalise`, pfma's `operand` and `first_nan`;
- the data that a stage is given — a `Conversion`, a `Format`, `Parameters`, a `Rounding` — is a constant of the
  compiled code, a type of its own with that one value (`ConstantType`), so what depends on it alone is decided at
  compile time (in `rows` they are arguments: tuples of numbers with the same fields);
- everything else is `register_jitable`, which leaves the function what it was.

What is cached on disk is good for the sources it was made from only, which numba looks at one file at a time; the
name of every `ConstantType` therefore holds a digest of all of them.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import EnumMeta
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from types import FunctionType
from typing import Any, ClassVar, TypeAlias, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin, lower_constant
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    intrinsic,
    lower_getattr_generic,
    models,
    overload,
    register_jitable,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array

from mmaformal.display import ShortRepr, short_text
from mmaformal.encodings.acc_e9s12 import executable as acc_e9s12
from mmaformal.encodings.dpa_e9s12 import executable as dpa_e9s12
from mmaformal.encodings.efda import executable as efda
from mmaformal.encodings.executable import blocks, ieee, limbs, stages
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fdrda import executable as fdrda
from mmaformal.encodings.gps import executable as gps
from mmaformal.encodings.oddsum import executable as oddsum
from mmaformal.encodings.pfma import executable as pfma
from mmaformal.formats import Format
from mmaformal.identity import identity
from mmaformal.kernels.background import in_background
from mmaformal.rounding import DETERMINISTIC, Conversion, Rounding
from mmaformal.spec import Parameters

Numba: TypeAlias = Any  #: what numba, which has no types of its own, gives and takes while it compiles
F = TypeVar("F", bound=Callable[..., object])


def sources_digest() -> str:
    """A digest of the sources that compiled code is made from."""
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parent
    executable = Path(blocks.__file__).resolve().parent
    own = (
        x
        for name in ("executable.py", "kernel.py", "kernel/*.py")
        for x in executable.parent.glob(f"*/{name}")
    )
    for path in (*sorted(package.rglob("*.py")), *sorted(executable.glob("*.py")), *sorted(own)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = sources_digest()


#: What only compiled code calls needs no ways in from Python and C, which numba makes else, and compiles.
_NO_WRAPPERS: dict[str, Numba] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

#: Arrays are their caller's: no reference to one is counted, which takes two locked instructions for every slice.
_BORROWED: dict[str, Numba] = {"_nrt": False}


def driver(function: F) -> F:
    """Compile a function that a kernel calls: without Python's lock, and kept on disk where there is a place for it.

    It makes no arrays but on the `stack`.
    """
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **_BORROWED}
    try:
        compiled: Numba = numba.njit(cache=True, **options)(function)
        file = compiled._cache._cache_file
        file._load_index = _or_nothing(file._load_index)
    except RuntimeError:  # numba finds no folder that it may write to
        compiled = numba.njit(**options)(function)
    compiled._compile_for_args = in_background(compiled._compile_for_args)  # what a call of new types calls
    result: F = compiled
    return result


def _or_nothing(load: Callable[[], dict[Numba, str]]) -> Callable[[], dict[Numba, str]]:
    """Return a loader of numba's list of what is on disk, which is empty where another version of this package wrote
    it, with classes that are no more: numba reads the whole before it looks whether its source is the same."""

    def loaded() -> dict[Numba, str]:
        try:
            return load()
        except (AttributeError, ImportError, UnpicklingError, EOFError, TypeError, ValueError):
            return {}

    return loaded


class Direct:
    """A driver whose arguments are of the same types at every call: numba asks for them at the first only.

    That is so of NumPy arrays of one dtype each, of as many axes, contiguous or not; which is the caller's to see to.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self.driver: Numba = function
        self.entry: Callable[..., object] | None = None

    def __repr__(self) -> str:
        return short_text(self, self.driver.__name__)

    def __call__(self, *arguments: object) -> None:
        if self.entry is not None:
            self.entry(*arguments)
            return
        self.driver(*arguments)
        self.entry = self.driver.overloads[tuple(map(numba.typeof, arguments))].entry_point


def part(function: F) -> F:
    """Compile a function that drivers are made of.  No two arrays that it is given may overlap."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", **_BORROWED, **_NO_WRAPPERS)(function)
    return compiled


def inlined(function: F) -> F:
    """Compile a function of one output.  A call left in a loop would keep the loop from being made vectors."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", forceinline=True, **_BORROWED, **_NO_WRAPPERS)(
        function
    )
    return compiled


#: how a compiled form is registered
INLINED: dict[str, Numba] = {"strict": False, "jit_options": {"forceinline": True, **_NO_WRAPPERS}}


# ---- constants ---------------------------------------------------------------------------------------------


class ConstantType(types.Type):
    """The type whose only value is `value`."""

    def __init__(self, value: object) -> None:
        self.value = value
        text = f"{_SOURCES} {identity(value)}"
        super().__init__(
            name=f"Constant{type(value).__name__}{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        )


register_model(ConstantType)(models.OpaqueModel)
_typeof_other_enum = typeof_impl.dispatch(EnumMeta)


@lru_cache(maxsize=4096, typed=True)
def constant_type(value: object) -> ConstantType:
    """The type of a value; a call of compiled code asks for it again and again."""
    return ConstantType(value)


def _typeof_constant(value: Numba, context: Numba) -> ConstantType:
    return constant_type(value)


@dataclass(frozen=True, repr=False)
class Ends(ShortRepr):
    """The formats of a `DotAdd` that fdrda's stages read."""

    c_format: Format


for _class in (Conversion, Rounding, Format, Parameters, Ends):
    typeof_impl.register(_class)(_typeof_constant)


@typeof_impl.register(EnumMeta)
def _typeof_enum(value: Numba, context: Numba) -> Numba:
    """numba makes the members of an enumeration numbers or strings, to be compared when the code runs."""
    return ConstantType(value) if value is Rounding else _typeof_other_enum(value, context)


@lower_constant(ConstantType)
def _constant(context: Numba, builder: Numba, ty: Numba, value: Numba) -> Numba:
    return context.get_dummy_value()


@unbox(ConstantType)
def _unbox(ty: Numba, value: Numba, c: Numba) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


def _type_of_attribute(value: Numba) -> Numba:
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, int):
        return types.int64
    return types.none if value is None else numba.typeof(value)


@infer_getattr
class _ConstantAttribute(AttributeTemplate):  # type: ignore[misc]
    key = ConstantType

    def generic_resolve(self, ty: ConstantType, name: str) -> Numba:
        if hasattr(ty.value, name):
            return _type_of_attribute(getattr(ty.value, name))
        return None


@lower_getattr_generic(ConstantType)
def _attribute(context: Numba, builder: Numba, ty: ConstantType, value: Numba, name: str) -> Numba:
    known = getattr(ty.value, name)
    kind = _type_of_attribute(known)
    if kind is types.none:
        return context.get_dummy_value()
    return context.get_constant_generic(builder, kind, known)


@lower_builtin(operator.is_, ConstantType, ConstantType)
def _is(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
    x, y = signature.args
    return ir.Constant(ir.IntType(1), x.value == y.value)


#: A rounding that is an argument is its place here.
ROUNDINGS = DETERMINISTIC


@lower_builtin(operator.is_, types.Integer, ConstantType)
def _is_rounding(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
    kind, known = signature.args
    return builder.icmp_signed("==", arguments[0], context.get_constant(kind, ROUNDINGS.index(known.value)))


@dataclass(frozen=True, repr=False)
class KernelSources(ShortRepr):
    """An argument that stands for these sources: what takes it is not found on disk once they are others."""

    _numba_type_: ClassVar[ConstantType] = ConstantType("sources")


SOURCES = KernelSources()


# ---- lanes -------------------------------------------------------------------------------------------------


@overload(blocks.where, **INLINED)
def _where(flag: Numba, x: Numba, y: Numba) -> Numba:
    return lambda flag, x, y: x if flag else y


@intrinsic
def _leading_zeros(typing: Numba, x: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@overload(blocks.bit_length, **INLINED)
def _bit_length(x: Numba) -> Numba:
    return lambda x: 64 - _leading_zeros(x)


@overload(blocks.sign_word, **INLINED)
def _sign_word(target: Numba) -> Numba:
    if not isinstance(target, ConstantType):
        return lambda target: np.int64(1) << (target.storage_bits - 1)
    known: Numba = target.value
    word = blocks.sign_word(known)  # 1 << 63 would be a constant beyond the lane
    return lambda target: word


@overload(efda.select, **INLINED)
def _select(flag: Numba, x: Numba, y: Numba) -> Numba:
    Term, where = blocks.Term, blocks.where
    return lambda flag, x, y: Term(
        where(flag, x.sign, y.sign),
        where(flag, x.exponent, y.exponent),
        where(flag, x.significand, y.significand),
    )


@overload(efda.normalise, **INLINED)
def _normalise(x: Numba, x_bits: Numba, bits: Numba, lowest: Numba) -> Numba:
    Term, where, bit_length = blocks.Term, blocks.where, blocks.bit_length

    def compiled(x: Lane, x_bits: Lane, bits: Lane, lowest: Lane) -> Lane:
        zero = x.significand == 0
        length = bit_length(x.significand)
        shift = where(zero, 0, bits + 1 - length)
        return Term(x.sign, where(zero, lowest, x.exponent + length - 1 - x_bits), x.significand << shift)

    return compiled


@overload(pfma.operand, **INLINED)
def _operand(code: Numba, of: Numba) -> Numba:
    Operand, where, decode = blocks.Operand, blocks.where, blocks.decode

    def compiled(code: Lane, of: Lane) -> Lane:
        x = decode(code, of.layout)
        significand = where(x.significand < 1 << of.fraction_bits, 0, x.significand)
        return Operand(x.sign, x.exponent, significand, x.infinite, x.nan)

    return compiled


@overload(pfma.first_nan, **INLINED)
def _first_nan(operands: Numba, otherwise: Numba) -> Numba:
    where = blocks.where

    def two(operands: Lane, otherwise: Lane) -> Lane:
        (x_nan, x), (y_nan, y) = operands
        return where(x_nan, x | 0x00400000, where(y_nan, y | 0x00400000, otherwise))

    def three(operands: Lane, otherwise: Lane) -> Lane:
        (x_nan, x), (y_nan, y), (z_nan, z) = operands
        last = where(z_nan, z | 0x00400000, otherwise)
        return where(x_nan, x | 0x00400000, where(y_nan, y | 0x00400000, last))

    return {2: two, 3: three}[len(operands)]


#: functions that have a compiled form of their own above
_OWN = (
    blocks.where,
    blocks.bit_length,
    blocks.sign_word,
    efda.select,
    efda.normalise,
    pfma.operand,
    pfma.first_nan,
)

for _module in (blocks, ieee, limbs, stages, dpa_e9s12, acc_e9s12, fdrda, efda, gps, pfma, oddsum):
    for _function in vars(_module).values():
        if (
            isinstance(_function, FunctionType)
            and _function.__module__ == _module.__name__
            and _function not in _OWN
        ):
            register_jitable(forceinline=True, **_NO_WRAPPERS)(
                _function
            )  # compiled when compiled code calls it


@intrinsic
def stack(typing: Numba, dtype: Numba, size: Numba) -> Numba:
    """An array of so many numbers that lasts until the function that asks for it returns; not for a loop."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        each = context.get_data_type(signature.return_type.dtype)
        data = builder.alloca(each, size=arguments[1])
        data.align = 64
        array = context.make_array(signature.return_type)(context, builder)
        itemsize = context.get_abi_sizeof(each)
        populate_array(
            array, data, [arguments[1]], [context.get_constant(types.intp, itemsize)], itemsize, None
        )
        return array._getvalue()

    return types.Array(dtype.dtype, 1, "C")(dtype, types.intp), generate


@intrinsic
def _prefetch(typing: Numba, x: Numba, index: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        name = "llvm.prefetch.p0i8"
        callee = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(callee, [place, ir.Constant(word, 1), ir.Constant(word, 3), ir.Constant(word, 1)])
        return context.get_dummy_value()

    return types.none(x, types.intp), generate


#: Bytes of a line of the cache.
_LINE = 64


@part
def prefetch(rows: Lane, wanted: Lane) -> None:
    """Have the processor read rows, each in one line of memory, into its first-level cache meanwhile, if `wanted`."""
    if wanted:
        for i in range(rows.shape[0]):
            for j in range(0, rows.shape[1], _LINE // rows.itemsize):
                _prefetch(rows[i], j)


# ---- the processor's floating point ------------------------------------------------------------------------


@intrinsic
def _float32_of_bits(typing: Numba, bits: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def _float64_of_bits(typing: Numba, bits: Numba) -> Numba:
    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


_DATA = re.compile(r"arg\.\w+\.4")  #: numba's name of the pointer to an array argument's data


@intrinsic
def vectorised(typing: Numba) -> Numba:
    """Tell LLVM what it must know to make good vectors of the loops of this function, a `part`.

    The data of its array arguments do not overlap, so that it need not compare their addresses first; vectors may have
    512 bits where the processor has them, since it would rather use half of that; and the function stays one of its
    own, since loops that are put among others are made worse vectors.
    """

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        for argument in builder.function.args:
            if _DATA.fullmatch(argument.name) and isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        builder.function.attributes.add("noinline")
        if llvm.get_host_cpu_features().get("avx512f"):
            set.add(
                builder.function.attributes, '"prefer-vector-width"="512"'
            )  # llvmlite knows no such attribute
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def fma(typing: Numba, x: Numba, y: Numba, z: Numba) -> Numba:
    """The IEEE 754 fusedMultiplyAdd of three floats of one type."""

    def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
        return builder.fma(*arguments)

    return x(x, x, x), generate


def power_of_two(exponent: Lane, like: Lane) -> Lane:
    """2^exponent as a float of the type of `like`; exponents outside its normal range give the end of the range."""
    raise NotImplementedError("compiled code only")


@overload(power_of_two, **INLINED)
def _power_of_two(exponent: Numba, like: Numba) -> Numba:
    if like == types.float32:

        def single(exponent: Lane, like: Lane) -> Lane:
            field = min(max(exponent + 127, 1), 254)
            return _float32_of_bits(np.int32(field << 23))

        return single

    def double(exponent: Lane, like: Lane) -> Lane:
        field = min(max(exponent + 1023, 1), 2046)
        return _float64_of_bits(np.int64(field << 52))

    return double


def typed(x: Lane, like: Lane) -> Lane:
    """x in the type of `like`: an integer wrapped, a float cut toward zero to an integer."""
    raise NotImplementedError("compiled code only")


@overload(typed, **INLINED)
def _cast(x: Numba, like: Numba) -> Numba:
    target = like
    return lambda x, like: target(x)


# ---- operands ----------------------------------------------------------------------------------------------


def at(x: Lane, k: Lane, j: Lane) -> Lane:
    """Product k's entry of a plane for the output j: one for all outputs, or each output's own."""
    raise NotImplementedError("compiled code only")


@overload(at, **INLINED)
def _at(x: Numba, k: Numba, j: Numba) -> Numba:
    if x.ndim == 1:
        return lambda x, k, j: x[k]
    return lambda x, k, j: x[k, j]


def lane(x: Lane, j: Lane) -> Lane:
    """A number for all outputs, or that of the output j."""
    raise NotImplementedError("compiled code only")


@overload(lane, **INLINED)
def _lane(x: Numba, j: Numba) -> Numba:
    if isinstance(x, types.Array):
        return lambda x, j: x[j]
    return lambda x, j: x
