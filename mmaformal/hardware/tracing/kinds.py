"""Types of a program's values, and what type an operation gives, as NumPy, torch and Python have it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mmaformal.formats import FORMATS, Format
from mmaformal.hardware.tracing.refusal import refused


@dataclass(frozen=True)
class DType:
    """A type: a Boolean, an integer of so many bits (of Python, any number), or a number of a format."""

    name: str
    letter: str  #: b, i, u, f
    bits: int | None = None
    fmt: Format | None = None

    @property
    def is_float(self) -> bool:
        return self.letter == "f"

    @property
    def range(self) -> tuple[int, int] | None:
        """The integers that it holds; None of all."""
        if self.bits is None:
            return None
        return (
            (0, (1 << self.bits) - 1)
            if self.letter == "u"
            else (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        )


BOOL = DType("bool", "b", 8)
INT = DType("int", "i")
FLOAT = DType("float", "f", 64, FORMATS["fp64"])
_WHOLE = {
    f"{'u' * (x == 'u')}int{bits}": DType(f"{'u' * (x == 'u')}int{bits}", x, bits)
    for x in "iu"
    for bits in (8, 16, 32, 64)
}
_FLOATS = {
    name: DType(name, "f", FORMATS[fmt].storage_bits, FORMATS[fmt])
    for name, fmt in {
        "float64": "fp64",
        "float32": "fp32",
        "float16": "fp16",
        "bfloat16": "bf16",
        "float8_e5m2": "e5m2",
        "float8_e4m3fn": "e4m3",
        "float8_e5m2fnuz": "e5m2fnuz",
        "float8_e4m3fnuz": "e4m3fnuz",
        "float8_e8m0fnu": "ue8m0",
    }.items()
}
KINDS = {"bool": BOOL, **_WHOLE, **_FLOATS}


def torch() -> Any:
    """The module torch, which only programs that use it need."""
    return import_module("torch")


class Library:
    """A library's types, and what its operations make of them; here Python's own."""

    name = "python"

    def kind(self, dtype: object) -> DType:
        """The kind that a library calls so."""
        for plain, kind in ((bool, BOOL), (int, INT), (float, FLOAT)):
            if dtype is plain:
                return kind
        raise refused(f"{dtype} is no type that is followed")

    def dtype(self, kind: DType) -> object:
        """Return what the library calls a kind."""
        return {"b": bool, "i": int, "f": float}[kind.letter]

    def joined(self, one: Typed, other: Typed) -> DType:
        """The type of a sum, say, of two."""
        letters = {one.kind.letter, other.kind.letter}
        return FLOAT if "f" in letters else INT

    def divided(self, kind: DType) -> DType:
        """The type of a quotient."""
        return kind if kind.is_float else FLOAT

    def of_bools(self) -> DType:
        """The type of a sum of Booleans."""
        return INT


@dataclass(frozen=True)
class Typed:
    """An operand, as far as the type of a result depends on it: kind and shape, and whether it is a Python number."""

    kind: DType
    dimensions: int
    plain: bool  #: a number of Python's beside arrays


class OfNumpy(Library):
    """NumPy's types (NEP 50)."""

    name = "numpy"

    def kind(self, dtype: object) -> DType:
        try:
            found = KINDS.get(np.dtype(dtype).name)  # type: ignore[call-overload]
        except TypeError:
            found = None
        if found is None:
            raise refused(f"{dtype} is no type that is followed")
        return found

    def dtype(self, kind: DType) -> object:
        if kind.bits is None:
            return np.dtype("int64")
        try:
            return np.dtype(kind.name)
        except TypeError:
            import_module("ml_dtypes")
            return np.dtype(kind.name)

    def joined(self, one: Typed, other: Typed) -> DType:
        def sample(x: Typed) -> object:
            if x.plain:
                return {"b": True, "i": 1, "f": 1.0}[x.kind.letter]
            return np.zeros((1,) * x.dimensions, np.dtype(self.dtype(x.kind)))  # type: ignore[call-overload]

        return self.kind(np.result_type(sample(one), sample(other)))  # type: ignore[arg-type]

    def divided(self, kind: DType) -> DType:
        return kind if kind.is_float else KINDS["float64"]

    def of_bools(self) -> DType:
        return KINDS["int64"]


class OfTorch(Library):
    """The types of torch."""

    name = "torch"

    def kind(self, dtype: object) -> DType:
        plain = next(
            (name for x, name in ((int, "int64"), (float, "float32"), (bool, "bool")) if dtype is x), None
        )
        found = KINDS.get(plain or str(dtype).removeprefix("torch."))
        if found is None:
            raise refused(f"{dtype} is no type that is followed")
        return found

    def dtype(self, kind: DType) -> object:
        return getattr(torch(), "int64" if kind.bits is None else kind.name)

    def joined(self, one: Typed, other: Typed) -> DType:
        def sample(x: Typed) -> object:
            if x.plain:
                return {"b": True, "i": 1, "f": 1.0}[x.kind.letter]
            return torch().zeros((1,) * x.dimensions, dtype=self.dtype(x.kind))

        return self.kind(torch().result_type(sample(one), sample(other)))

    def divided(self, kind: DType) -> DType:
        return kind if kind.is_float else KINDS["float32"]

    def of_bools(self) -> DType:
        return KINDS["int64"]


PYTHON, NUMPY, TORCH = Library(), OfNumpy(), OfTorch()
