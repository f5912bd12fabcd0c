"""A program as it is: how it takes operands, and what it gives for rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows
from mmaformal.display import counted
from mmaformal.formats import Format
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.tracing.kinds import NUMPY, PYTHON, DType, Library, torch
from mmaformal.hardware.unread import WrongUseError
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Slot:
    """How an operand is given: the library, the type, bits that its codes are shifted by, codes in each value."""

    library: Library
    kind: DType
    shift: int = 0
    packed: int = 1

    def __str__(self) -> str:
        shift = f" << {self.shift}" if self.shift else ""
        return f"{self.kind.name}{shift}{f', {self.packed} codes each' if self.packed > 1 else ''}"


def format_of(name: str, spec: DotAdd) -> Format:
    """The format of an operand."""
    formats = {"a": spec.a_format, "b": spec.b_format, "c": spec.c_format, "scale_a": spec.scale_format}
    found = formats.get(name, spec.scale_format)
    assert isinstance(found, Format)
    return found


def run_each(
    function: Callable[..., Any],
    name: str,
    slots: Mapping[str, Slot],
    spec: DotAdd,
    rows: Rows,
    strict: bool = False,
) -> NDArray[np.uint64]:
    """The program's own d for each row, called for each alone.

    strict: whether what it returns is looked at, since nobody has followed it.  Raises HardwareError where it raises
    anything, and for what is no d.
    """
    found, bits = np.zeros(len(rows), np.uint64), spec.d_format.storage_bits
    for i in range(len(rows)):
        arguments = []
        for operand, slot in slots.items():
            column = getattr(rows.codes, operand)
            codes = [int(column[i])] if operand == "c" else [int(x[i]) for x in column]
            given = _concrete(codes, slot, format_of(operand, spec).storage_bits)
            arguments.append(given[0] if operand == "c" else given)
        try:
            with np.errstate(all="ignore"):
                result = function(*arguments)
                if strict:
                    _check(result, bits, name)
                found[i] = _concrete_code(result, bits)
        except HardwareError:
            raise
        except Exception as error:
            raise HardwareError(f"{name} raises {type(error).__name__} for {rows[i].text}: {error}") from None
    return found


def _concrete(codes: list[int], slot: Slot, bits: int) -> Any:
    if slot.packed > 1:
        parts = [codes[i : i + slot.packed] for i in range(0, len(codes), slot.packed)]
        codes = [sum(x << bits * (slot.packed - 1 - j) for j, x in enumerate(part)) for part in parts]
    codes = [x << slot.shift for x in codes]
    if slot.library is PYTHON:
        return codes
    return _as_array(np.array(codes, np.uint64), slot)


def _concrete_code(result: Any, bits: int) -> int:
    if "torch" in sys.modules and isinstance(result, torch().Tensor):
        words = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
        result = int(result.reshape(-1)[0].view(getattr(torch(), words[result.element_size()])).item())
    elif isinstance(result, np.ndarray | np.generic):
        value = np.asarray(result).reshape(-1)[:1]
        result = int(value.view(f"u{value.dtype.itemsize}")[0])
    elif isinstance(result, float):
        return int(np.float64(result).view(np.uint64))
    return int(result) % (1 << bits)


def _check(result: Any, bits: int, name: str) -> None:
    """Raise WrongUseError for what is no code, or number, of so many bits."""
    many, is_float, width = 1, isinstance(result, float), 64
    if "torch" in sys.modules and isinstance(result, torch().Tensor):
        many, is_float, width = result.numel(), result.is_floating_point(), 8 * result.element_size()
    elif isinstance(result, np.ndarray | np.generic):
        many, is_float, width = result.size, result.dtype.kind not in "biu", 8 * result.dtype.itemsize
    elif not isinstance(result, int | float):
        raise WrongUseError(f"{name} returns {type(result).__name__}, which is no d")
    if many != 1:
        raise WrongUseError(f"{name} returns {counted(many, 'value')}, not one d")
    if is_float:
        if width != bits:
            raise WrongUseError(f"{name} returns a number of {width} bits, where the model's d has {bits}")
    elif isinstance(result, int) or width != bits:
        code = int(result)
        if not 0 <= code < 1 << bits:
            raise WrongUseError(
                f"{name} returns {code}, which is no code: end it with & {(1 << bits) - 1:#x}"
            )


def run_together(
    function: Callable[..., Any], slots: Mapping[str, Slot], spec: DotAdd, rows: Rows
) -> NDArray[np.uint64] | None:
    """Return what a program gives that is called once, for a and b of shape (n, K), c of (n,); None if that fails."""
    arguments, bits = [], spec.d_format.storage_bits
    for operand, slot in slots.items():
        if slot.packed > 1:
            return None
        column = getattr(rows, operand) << np.uint64(slot.shift)
        arguments.append(_as_array(column, slot))
    try:
        with np.errstate(all="ignore"):
            result = function(*arguments)
        if "torch" in sys.modules and isinstance(result, torch().Tensor):
            result = result.view(getattr(torch(), f"int{8 * result.element_size()}")).numpy()
        if not isinstance(result, np.ndarray) or result.shape != (len(rows),):
            return None
        if 8 * result.dtype.itemsize != bits:
            return None
        return result.view(f"u{result.dtype.itemsize}").astype(np.uint64)
    except Exception:
        return None


def _as_array(codes: NDArray[np.uint64], slot: Slot) -> Any:
    size = (slot.kind.bits or 64) // 8
    data = np.ascontiguousarray(codes.astype(f"u{size}"))
    if slot.library is NUMPY:
        return data.view(slot.library.dtype(slot.kind))
    signed = data if size == 1 else data.view(f"i{size}")
    return torch().from_numpy(signed).view(slot.library.dtype(slot.kind))
