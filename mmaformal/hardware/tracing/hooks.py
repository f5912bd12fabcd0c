"""Functions that a rewritten program calls in place of `if`, `and`, `or`, `not` and functions (`rewriting`)."""

from __future__ import annotations

import builtins
import functools
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from mmaformal.hardware.tracing.context import is_reading
from mmaformal.hardware.tracing.kinds import BOOL, FLOAT, INT, KINDS, PYTHON, torch
from mmaformal.hardware.tracing.paths import explored
from mmaformal.hardware.tracing.refusal import ProgramError, refused
from mmaformal.hardware.tracing.traced import (
    UNBOUND,
    Alternatives,
    Operators,
    Traced,
    as_kind,
    lifted,
    merged,
    operate,
)


def _both_ways(test: Any, run: Callable[[bool], Any], roots: Sequence[Any]) -> Any:
    """Return what is made of a condition, put together of both sides where it is symbolic."""
    if not isinstance(test, Operators):
        return run(bool(test))
    return explored(lambda: run(bool(test)), merged, roots)


class Hooks:
    """The functions that a rewritten program calls."""

    @staticmethod
    def function(f: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose ways are put together each time that it is called."""

        @functools.wraps(f)
        def every_way(*args: Any, **kwargs: Any) -> Any:
            if not is_reading():
                return f(*args, **kwargs)
            return explored(lambda: f(*args, **kwargs), merged, (args, kwargs, f, f.__globals__))

        return every_way if isinstance(f, FunctionType) else f

    @staticmethod
    def bound(variables: Mapping[str, Any], name: str) -> Any:
        """The variable of a name; a mark where it is not set."""
        return variables.get(name, UNBOUND)

    @staticmethod
    def branch(test: Any, then: FunctionType, other: FunctionType, names: tuple[Any, ...]) -> Any:
        """`if` with the values that both sides may set."""
        roots = (names, then, other, then.__globals__)
        return _both_ways(test, lambda holds: (then if holds else other)(*names), roots)

    @staticmethod
    def either(test: Any, then: FunctionType, other: FunctionType) -> Any:
        """`then if test else other`."""
        return _both_ways(test, lambda holds: then() if holds else other(), (then, other, then.__globals__))

    @staticmethod
    def both(x: Any, y: FunctionType) -> Any:
        """`x and y`."""
        no = False if isinstance(x, Traced) and x.kind == BOOL else x
        return _both_ways(x, lambda holds: y() if holds else no, (y, y.__globals__))

    @staticmethod
    def one(x: Any, y: FunctionType) -> Any:
        """`x or y`."""
        yes = True if isinstance(x, Traced) and x.kind == BOOL else x
        return _both_ways(x, lambda holds: yes if holds else y(), (y, y.__globals__))

    @staticmethod
    def opposite(x: Any) -> Any:
        """`not x`."""
        return operate("logical_not", x) if isinstance(x, Operators) else not x

    @staticmethod
    def is_none(x: Any, holds: bool) -> Any:
        """`x is None`, or that it is not."""
        x = x.narrowed() if isinstance(x, Alternatives) else x
        return x.is_none(holds) if isinstance(x, Alternatives) else (x is None) is holds

    @staticmethod
    def item(x: Any, index: Any) -> Any:
        """`x[index]`, of a table of known values too."""
        if isinstance(index, Traced) and not isinstance(x, Operators | dict):
            return operate("getitem", lifted(x), index)
        return x[index]

    @staticmethod
    def call(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A function that knows no symbolic values, of symbolic ones; any other as it is."""
        if not is_reading():
            return f(*args, **kwargs)
        if _is_maker(f):
            return _copied(f(*args, **kwargs))
        if len(args) == 1 and isinstance(args[0], Iterator) and f in (max, min, any, all):
            args = (list(args[0]),)
        stand_in = _STAND_INS.get(getattr(f, "__name__", ""))
        if stand_in is not None and f is stand_in[0] and _symbolic((args, kwargs)):
            return stand_in[1](*args, **kwargs)
        if isinstance(f, type) and issubclass(f, np.generic) and _symbolic(args):
            return operate("astype", operate("numpy_of", args[0]), f)
        if getattr(f, "__module__", "") == "math" and _symbolic(args):
            return operate(_MATH.get(f.__name__, f.__name__), *args)
        if getattr(f, "__name__", "") in ("array", "asarray", "tensor", "as_tensor") and _symbolic(args):
            return operate(f"{f.__name__}_of", *args, **kwargs)
        return f(*args, **kwargs)


def _symbolic(x: Any) -> bool:
    if isinstance(x, Operators | _Packed):
        return True
    return (
        any(map(_symbolic, x.values() if isinstance(x, dict) else x))
        if isinstance(x, list | tuple | dict)
        else False
    )


def _is_maker(f: Any) -> bool:
    """Whether a function makes an array that a program fills."""
    name = getattr(f, "__name__", "")
    if name not in ("zeros", "empty", "ones", "full"):
        return False
    return f is getattr(np, name) or ("torch" in sys.modules and f is getattr(torch(), name))


def _copied(x: Any) -> Any:
    try:
        return lifted(x)
    except ProgramError:  # of a type that is not followed: the program may not use it with symbolic values
        return x


def _extreme(name: str) -> Callable[..., Any]:
    def of(*given: Any, key: Callable[[Any], Any] | None = None, **kwargs: Any) -> Any:
        every = list(given[0]) if len(given) == 1 else list(given)
        if not every and "default" in kwargs:
            return kwargs["default"]
        made = every[0]
        for x in every[1:]:
            if key is None:
                made = operate(name, made, x)
                continue
            u, v = key(x), key(made)
            further = u > v if name == "maximum" else u < v
            made = (
                merged(operate("truth", further), x, made)
                if isinstance(further, Operators)
                else x
                if further
                else made
            )
        return made

    return of


def _folded(any_of: bool) -> Callable[..., Any]:
    def of(given: Any) -> Any:
        made: Any = not any_of
        for x in given:
            made = operate("logical_or" if any_of else "logical_and", made, x)
        return made

    return of


def _as_python(kind: Any) -> Callable[..., Any]:
    def of(x: Any) -> Any:
        if x.kind.is_float and kind is INT:
            return operate("trunc_to_int", x)
        if x.data.size != 1:
            raise refused("one number of an array of several")
        return Traced(as_kind(x, kind).data.reshape(()), kind, PYTHON, plain=True)

    return of


#: struct's letters.
_LETTERS = {
    "e": "float16",
    "f": "float32",
    "d": "float64",
    "b": "int8",
    "h": "int16",
    "i": "int32",
    "l": "int32",
    "q": "int64",
}
_LETTERS |= {"B": "uint8", "H": "uint16", "I": "uint32", "L": "uint32", "Q": "uint64"}


class _Packed:
    """Bytes of one symbolic value."""

    def __init__(self, order: str, value: Traced) -> None:
        self.order, self.value = order, value


def _letter(form: str) -> tuple[str, str]:
    plain = form.lstrip("<>=!@")
    if plain not in _LETTERS:
        raise refused(f"struct of {form}: one letter of {''.join(_LETTERS)} is followed")
    return form[:-1].replace("!", ">").replace("=", "<").replace("@", "<") or "<", _LETTERS[plain]


def _pack(form: str, value: Any) -> _Packed:
    order, name = _letter(form)
    x = lifted(value)
    if x.kind.is_float != KINDS[name].is_float:
        raise refused(f"struct.pack({form!r}) of {x.kind.name}")
    return _Packed(order, as_kind(x, KINDS[name]))


def _unpack(form: str, packed: _Packed) -> tuple[Any]:
    order, name = _letter(form)
    if order != packed.order:
        raise refused("struct.unpack in another order of bytes than struct.pack")
    bits = operate("view", Traced(packed.value.data, packed.value.kind, PYTHON), KINDS[name])
    kind = FLOAT if bits.kind.is_float else INT
    return (Traced(as_kind(bits, kind).data, kind, PYTHON, plain=True),)


#: Functions of Python's, and what stands for them.
_STAND_INS: dict[str, tuple[object, Callable[..., Any]]] = {
    "max": (builtins.max, _extreme("maximum")),
    "min": (builtins.min, _extreme("minimum")),
    "any": (builtins.any, _folded(True)),
    "all": (builtins.all, _folded(False)),
    "int": (int, _as_python(INT)),
    "float": (float, _as_python(FLOAT)),
    "bool": (bool, _as_python(BOOL)),
    "pack": (struct.pack, _pack),
    "unpack": (struct.unpack, _unpack),
}
_MATH = {"fabs": "abs", "floor": "floor_to_int", "trunc": "trunc_to_int", "ceil": "ceil_to_int"}
