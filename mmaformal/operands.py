"""Operands of `matmul` as codes: arrays, torch tensors, whatever has `__dlpack__`; and batches, as NumPy has them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.formats import Format, format_called, format_of_dtype
from mmaformal.instruction import GivenOperand, Instruction, check_meant, kind_of, read_operand

CodeArray = NDArray[Any]
#: an array, numbers or lists of them, or a tensor of torch, which need not be there
Matrix: TypeAlias = Any

#: formats that NumPy's DLPack does not know
_NOT_BY_DLPACK = frozenset(("bf16", "e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "ue8m0"))


def _viewed(x: Matrix) -> Format | None:
    """The format of a tensor that NumPy takes as bit patterns alone."""
    fmt = format_called(str(x.dtype)) if is_tensor(x) else None
    return fmt if fmt is not None and fmt.name in _NOT_BY_DLPACK else None


def is_tensor(x: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def as_operand(x: Matrix, fmt: Format, name: str) -> GivenOperand:
    """`instruction.read_operand`, of a torch tensor and whatever has `__dlpack__` too."""
    if is_tensor(x):
        # A view may say that its numbers are to be negated or conjugated, of which DLPack knows nothing.
        x = x.detach().resolve_conj().resolve_neg()
    if (viewed := _viewed(x)) is not None:
        if viewed != fmt:
            raise TypeError(f"{name} is {x.dtype}; {fmt} is needed")
        torch = sys.modules["torch"]
        x = np.from_dlpack(x.view(torch.uint8 if x.element_size() == 1 else torch.uint16)).view(fmt.dtype)
    elif is_tensor(x) or (not isinstance(x, np.ndarray) and hasattr(x, "__dlpack__")):
        x = np.from_dlpack(x)
    return read_operand(x, fmt, name)


def float_format(x: Matrix) -> Format | None:
    """Return the format of an array or tensor of floats (of float32 it is fp32); None of bit patterns, and of numbers
    and lists, which have no type of their own."""
    if (viewed := _viewed(x)) is not None:
        return viewed
    if not hasattr(x, "dtype"):
        return None
    try:
        dtype = np.dtype(str(x.dtype).removeprefix("torch.")) if is_tensor(x) else np.asarray(x).dtype
        return format_of_dtype(dtype)
    except TypeError:  # of no array that NumPy reads
        return None


@dataclass(frozen=True, repr=False)
class ProductCodes(ShortRepr):
    """The codes of one product of matrices."""

    a: CodeArray  #: (M, K)
    b: CodeArray  #: (K, N)
    c: CodeArray | None  #: (M, N)
    scale_a: CodeArray | None  #: (M, blocks)
    scale_b: CodeArray | None  #: (blocks, N)

    def turned(self) -> ProductCodes:
        """The transposed product, its factors exchanged."""
        c, scale_a, scale_b = (None if x is None else x.T for x in (self.c, self.scale_a, self.scale_b))
        return ProductCodes(self.b.T, self.a.T, c, scale_b, scale_a)


@dataclass(frozen=True, repr=False)
class Operands(ShortRepr):
    """Products of matrices, with the axes before the last two broadcast; each operand has all of its axes."""

    a: CodeArray
    b: CodeArray
    c: CodeArray | None
    scale_a: CodeArray | None
    scale_b: CodeArray | None
    batch: tuple[int, ...]
    dropped: tuple[int, ...]  #: axes of D that a vector has not
    kind: str

    @classmethod
    def of(
        cls,
        i: Instruction,
        A: Matrix,
        B: Matrix,
        C: Matrix | None,
        scale_a: Matrix | None,
        scale_b: Matrix | None,
    ) -> Operands:
        """Read and put in shape.

        Raises ValueError for shapes that do not fit, and as `check_meant`; TypeError as `as_operand`.
        """
        i.check_scales(scale_a is not None, scale_b is not None)
        given = {"A": A, "B": B, "C": C, "scale_a": scale_a, "scale_b": scale_b}
        read = {name: as_operand(x, i.format_of(name), name) for name, x in given.items() if x is not None}
        check_meant(read)
        kind = ("torch " if is_tensor(A) else "") + kind_of(read)
        a, b = read["A"].codes, read["B"].codes
        if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-min(b.ndim, 2)]:
            raise ValueError(f"A of shape {a.shape} times B of shape {b.shape}: M×K and K×N are needed")
        dropped = (-2,) * (a.ndim == 1) + (-1,) * (b.ndim == 1)
        sides = {"scale_a": a.shape, "scale_b": b.shape}
        a, b = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        try:
            batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            raise ValueError(
                f"A of shape {a.shape} times B of shape {b.shape}: the axes before the last two do not broadcast"
            ) from None
        blocks = -(-a.shape[-1] // i.spec.scale_block) if i.spec.scale_format is not None else 0
        scales = [
            _scales(read[name].codes, name, side, blocks) if name in read else None
            for name, side in sides.items()
        ]
        c = _addend(read["C"].codes, (*batch, a.shape[-2], b.shape[-1]), dropped) if "C" in read else None
        return cls(a, b, c, scales[0], scales[1], batch, dropped, kind)

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N, K."""
        return self.a.shape[-2], self.b.shape[-1], self.b.shape[-2]

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of D with all axes."""
        return (*self.batch, *self.shape[:2])

    def permuted(self, order: NDArray[np.int64]) -> Operands:
        """Return these operands with the products in another order."""
        a, b = self.a[..., order], self.b[..., order, :]
        return Operands(a, b, self.c, self.scale_a, self.scale_b, self.batch, self.dropped, self.kind)

    def products(self, *, together: bool) -> Iterator[tuple[EllipsisType | tuple[int, ...], ProductCodes]]:
        """Where each product's results belong in D, and its operands.

        All that share B are one product of more rows if they may be `together`: then where is the whole of D.
        """
        m, n, k = self.shape
        shared = prod(self.b.shape[:-2]) == 1 and (self.scale_b is None or prod(self.scale_b.shape[:-2]) == 1)
        if shared and (together or not self.batch):
            rows = prod(self.batch) * m

            def as_rows(x: CodeArray | None) -> CodeArray | None:
                return None if x is None else self._whole(x).reshape(rows, x.shape[-1])

            a, scale_b = as_rows(self.a), self.scale_b
            assert a is not None
            scale_b = None if scale_b is None else scale_b.reshape(scale_b.shape[-2:])
            yield ..., ProductCodes(a, self.b.reshape(k, n), as_rows(self.c), as_rows(self.scale_a), scale_b)
            return
        every = [
            None if x is None else self._whole(x)
            for x in (self.a, self.b, self.c, self.scale_a, self.scale_b)
        ]
        for index in np.ndindex(*self.batch):
            a, b, c, scale_a, scale_b = (None if x is None else x[index] for x in every)
            assert a is not None
            assert b is not None
            yield index, ProductCodes(a, b, c, scale_a, scale_b)

    def _whole(self, x: CodeArray) -> CodeArray:
        """An operand with the axes of the batch."""
        return np.broadcast_to(x, (*self.batch, *x.shape[-2:]))

    def give_back(self, d: CodeArray, fmt: Format) -> Matrix:
        """D as what the operands are, without the axes that vectors have not."""
        d = d.reshape([size for axis, size in enumerate(d.shape, -d.ndim) if axis not in self.dropped])
        out = d.view(fmt.dtype) if self.kind.endswith("floats") and fmt.dtype is not None else d
        return sys.modules["torch"].from_dlpack(out) if self.kind.startswith("torch") else out


def _scales(x: CodeArray, name: str, side: tuple[int, ...], blocks: int) -> CodeArray:
    """Scales with all axes.  Raises ValueError unless there is one for each block of each row or column."""
    row = name == "scale_a"
    one = len(side) == 1
    wanted = (blocks,) if one else (*side[:-2], side[-2], blocks) if row else (*side[:-2], blocks, side[-1])
    if x.ndim >= 1 and one and x.shape == (blocks,):
        return x[None] if row else x[:, None]
    core = wanted[-2:] if not one else (1, blocks) if row else (blocks, 1)
    if x.ndim < 2 or x.shape[-2:] != core or (x.ndim > 2 and not _broadcasts(x.shape[:-2], side[:-2])):
        raise ValueError(f"{name} has shape {x.shape}; {wanted} is needed")
    return x


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _addend(c: CodeArray, outputs: tuple[int, ...], dropped: tuple[int, ...]) -> CodeArray:
    """C broadcast to D.  Raises ValueError where it is not of D's shape, or one that is broadcast to it."""
    seen = tuple(size for axis, size in enumerate(outputs, -len(outputs)) if axis not in dropped)
    if not _broadcasts(c.shape, seen):
        raise ValueError(f"C has shape {c.shape}; {seen} is needed, or one that is broadcast to it")
    return np.broadcast_to(c, seen).reshape(outputs)
