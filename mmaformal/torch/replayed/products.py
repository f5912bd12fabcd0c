"""Products of matrices as PyTorch's libraries make them on this processor, by structures learnt for each shape.

A structure is learnt from random operands of the same shape and layout, on which torch is asked once; the tensors that
are replayed are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.formats import Format, bf16, fp32
from mmaformal.instruction import Instruction
from mmaformal.structures import CodeArray, CPlace, Structure, replay
from mmaformal.torch.replayed.lanes import F32, fma_unit
from mmaformal.torch.tensors import Call, Tensor

#: Rows with which a structure is compared.
_ROWS = 16
#: Elements that tell structures apart.
_TELLING = 64
#: About what additions in fp32 lose of numbers near 1.
_LOST = 2.0**-20


class NoRuleError(Exception):
    """A call that is not replayed, with the reason."""


@dataclass(frozen=True)
class _Layout:
    """Types, shapes and layout: a library chooses its kernel by these."""

    operator: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    begins: tuple[
        int, ...
    ]  #: numbers before the first in its cache line, by which kernels for vectors are aligned


@dataclass(frozen=True)
class ProductCall:
    """PyTorch's own dot products of bf16: 64 lanes, what is left in 8 lanes, and the last products one by one.

    Source: aten/src/ATen/native/cpu/ReducedPrecisionFloatGemvFastPathKernel.cpp.
    """

    whole: Structure
    left: Structure
    last: Structure

    @classmethod
    def of(cls, unit: Instruction) -> ProductCall:
        """Returns that of an fma."""
        whole, left = (Structure(unit, lanes=each, order="halves") for each in (64, 8))
        return cls(whole, left, Structure(unit, c_enters="start"))

    @property
    def text(self) -> str:
        """In words, for a person."""
        return (
            f"K in {self.whole.lanes} lanes by turns of IEEE fma, added each to that half of them on in fp32; what is "
            f"left of it in {self.left.lanes}, added; the last products by fma from there; rounded to bf16 (RNE)"
        )

    def made(self, a: F32, b: F32, c: F32 | None) -> CodeArray:
        """Returns what it makes of numbers of fp32, as codes of bf16."""
        K = a.shape[1]
        ends = 0, K // self.whole.lanes * self.whole.lanes, K // (2 * self.left.lanes) * 2 * self.left.lanes
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for structure, (first, end) in zip((self.whole, self.left), pairwise(ends), strict=True):
            if first < end:
                total = total + _made(structure, a[:, first:end], b[first:end], None).view(np.float32)
        if ends[-1] < K:
            total = _made(self.last, a[:, ends[-1] :], b[ends[-1] :], total).view(np.float32)
        return _codes(torch.from_numpy(total if c is None else c + total).bfloat16())


@dataclass(frozen=True)
class Dealt:
    """PyTorch's own sums of bf16 products whose factors do not lie along K: four lanes, the first with the rest.

    Source: aten/src/ATen/native/cpu/BlasKernel.cpp.
    """

    lane: Structure
    lanes: int = 4

    @property
    def text(self) -> str:
        """In words, for a person."""
        return (
            f"K in {self.lanes} lanes by turns of IEEE fma, the first with what is left of it; added in order in fp32; "
            "rounded to bf16 (RNE)"
        )

    def made(self, a: F32, b: F32, c: F32 | None) -> CodeArray:
        """Returns what it makes of numbers of fp32, as codes of bf16."""
        K = a.shape[1]
        whole = K // self.lanes * self.lanes
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for lane in range(self.lanes if whole else 1):
            taken = np.arange(lane, whole, self.lanes)
            if lane == 0:
                taken = np.concatenate([taken, np.arange(whole, K)])
            total = total + _made(self.lane, a[:, taken], b[taken], None).view(np.float32)
        return _codes(torch.from_numpy(total if c is None else c + total).bfloat16())


@dataclass(frozen=True)
class ByRegions:
    """Structures of the regions of D, for one M and N."""

    structures: tuple[Structure, ...]
    which: NDArray[np.intp]

    @property
    def text(self) -> str:
        """In words, for a person."""
        return f"{self.structures[0].text}; and {len(self.structures) - 1} more, by regions of D"

    def made(self, a: F32, b: F32, c: F32 | None) -> CodeArray:
        """Returns what they make of numbers of fp32."""
        return np.asarray(np.choose(self.which, [_made(x, a, b, c) for x in self.structures]))


#: The maker of a product.
ProductMaker = Structure | ProductCall | Dealt | ByRegions


def _usual(dtype: Tensor, added: bool, K: int) -> list[ProductMaker]:
    """Returns what PyTorch's libraries do most often: MKL in fp32, and in bf16 oneDNN and kernels of PyTorch's own.

    MKL takes K in blocks of 192, and what is less than two of them in halves; oneDNN, where the processor has
    VDPBF16PS or TDPBF16PS, in blocks of 1024 or 512.
    """
    unit = fma_unit()
    if dtype == torch.float32:
        block = K // 2 if _BLOCK < K < 2 * _BLOCK else _BLOCK
        return [Structure(unit, block, c_enters="first" if added else None)]
    last: CPlace | None = "last" if added else None
    chains = [Structure(x, y, d_format=bf16, c_enters=last) for x in bf16_units() for y in _LONG_BLOCKS]
    return [*chains, ProductCall.of(unit), Dealt(Structure(unit))]


_BLOCK = 192
_LONG_BLOCKS = (1024, 512)


@cache
def bf16_units() -> tuple[Instruction, ...]:
    """Returns the instructions of AVX-512 and AMX that add products of bf16 to fp32."""
    return tuple(instruction_meant(f"sapphire_rapids {name}") for name in ("VDPBF16PS", "TDPBF16PS"))


class ProductSearch(Protocol):
    """Looks for what gives D of A and B (both fp32) and C; D's codes are of the format that is given."""

    def __call__(
        self, D: CodeArray, A: F32, B: F32, C: F32 | None, d_format: Format
    ) -> ProductMaker | None: ...


@dataclass
class Products:
    """Products of one replay, and the structures learnt for them."""

    search: ProductSearch
    structures: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  #: by operator: a structure's text and its uses
    _learnt: dict[_Layout, ProductMaker | None] = field(default_factory=dict)

    def run(self, function: Call, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        """Returns a·b + c of one product or of a batch.

        Raises NoRuleError for other types, and where no structure of the space reproduces torch's.
        """
        name = function._schema.name.partition("::")[2]
        if a.dtype not in (torch.float32, torch.bfloat16) or b.dtype != a.dtype:
            raise NoRuleError(f"a product of {a.dtype}")
        if 0 in (*a.shape, *b.shape):
            raise NoRuleError("a product of no numbers")
        structure = self._structure(name, function, a, b, c)
        self._use(name, structure)
        left, right = (x.float().numpy() for x in (a, b))
        if a.dim() == 2:
            return self._tensor(_made(structure, left, right, _broadcast(c, a, b)), a)
        return torch.stack(
            [self._tensor(_made(structure, x, y, None), a) for x, y in zip(left, right, strict=True)]
        )

    def in_fp32(self, a: F32, b: F32, c: F32 | None, *, turned: bool) -> F32:
        """Returns a product within attention, in fp32.

        Operands may be numbers of bf16: MKL makes their product as it makes that of fp32.

        Raises NoRuleError where no structure of the space reproduces the library's, and for vectors: their kernels
        depend on a layout that attention alone has.
        """
        if 1 in (len(a), b.shape[1]):
            raise NoRuleError("attention of one query, or of one key, in a block")
        right = torch.from_numpy(np.ascontiguousarray(b.T)).T if turned else torch.from_numpy(b)
        left = torch.from_numpy(np.ascontiguousarray(a))
        if c is None:
            structure = self._structure("mm", torch.ops.aten.mm.default, left, right, None)
        else:
            structure = self._structure(
                "addmm", torch.ops.aten.addmm.default, left, right, torch.from_numpy(c)
            )
        self._use("attention", structure)
        return _made(structure, a, b, c).view(np.float32)

    def _use(self, name: str, structure: ProductMaker) -> None:
        uses = self.structures.setdefault(name, {})
        uses[structure.text] = uses.get(structure.text, 0) + 1

    def _tensor(self, codes: CodeArray, like: Tensor) -> Tensor:
        if like.dtype == torch.float32:
            return torch.from_numpy(codes.view(np.float32))
        return torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def _structure(self, name: str, function: Call, a: Tensor, b: Tensor, c: Tensor | None) -> ProductMaker:
        given = [x for x in (c, a, b) if x is not None]
        shapes, strides = (
            tuple(tuple(of(x)) for x in given) for of in (torch.Tensor.size, torch.Tensor.stride)
        )
        layout = _Layout(name, str(a.dtype), shapes, strides, tuple(map(_begins, given)))
        if layout not in self._learnt:
            self._learnt[layout] = self._learn(function, given)
        found = self._learnt[layout]
        if found is None:
            sizes = " by ".join("×".join(map(str, x.shape)) for x in (a, b))
            raise NoRuleError(f"no structure that was tried makes this library's {sizes} in {a.dtype}")
        return found

    def _learn(self, function: Call, given: list[Tensor]) -> ProductMaker | None:
        """Returns the structure of torch's products of random operands, the usual ones tried first.

        Few elements fit many structures: then several products have to be of the one that is found.
        """
        first = _asked(function, given, 0)
        further = range(1, max(_TELLING // first.d.size, 1))
        products = [first, *(_asked(function, given, seed) for seed in further)]
        for known in _usual(given[-1].dtype, first.c is not None, first.a.shape[1]):
            if all(x.is_of(known) for x in products):
                return known
        found = self.search(first.d, first.a, first.b, first.c, _format(given[-1]))
        return found if found is not None and all(x.is_of(found) for x in products) else None


@dataclass(frozen=True)
class _AskedProduct:
    """A product that torch was asked for."""

    a: F32
    b: F32
    c: F32 | None
    d: CodeArray

    def is_of(self, structure: ProductMaker) -> bool:
        """Whether a structure gives its D, of some rows."""
        some = np.arange(len(self.a))
        if not isinstance(structure, ByRegions):  # which are of all rows
            some = np.unique(np.linspace(0, len(self.a) - 1, _ROWS).astype(np.intp))
        made = _made(structure, self.a[some], self.b, None if self.c is None else self.c[some])
        return bool((made == self.d[some]).all())


def _asked(function: Call, given: list[Tensor], seed: int) -> _AskedProduct:
    """Returns a product of operands in the shapes, the layouts and the types of others, on which orders differ.

    In every other row each product has its opposite elsewhere in K, so that what is left is what additions lose, or,
    of an odd K, one product of that size; every other column of C is zero.
    """
    generator = torch.Generator().manual_seed(seed)
    *added, a, b = (torch.randn(x.shape, generator=generator) for x in given)
    half = a.shape[-1] // 2
    order = torch.randperm(half, generator=generator)
    a[..., ::2, half : 2 * half] = -a[..., ::2, order]
    b[..., half : 2 * half, :] = b[..., order, :]
    a[..., ::2, 2 * half :] *= _LOST
    for c in added:
        c[..., ::2] = 0
    *added, a, b = (_laid_as(x, like) for x, like in zip([*added, a, b], given, strict=True))
    with torch.no_grad():
        d = function(*added, a, b)
    c_ = _broadcast(added[0] if added else None, a, b)
    if a.dim() == 3:
        a, b, d = a[-1], b[-1], d[-1]
    left, right = (np.ascontiguousarray(x.float().numpy()) for x in (a, b))
    return _AskedProduct(left, right, c_, _codes(d))


def _laid_as(x: Tensor, like: Tensor) -> Tensor:
    """Returns numbers in the layout and the type of a tensor."""
    once = [1 if stride == 0 else size for size, stride in zip(like.shape, like.stride(), strict=True)]
    begins = _begins(like)
    span = 1 + sum((size - 1) * stride for size, stride in zip(once, like.stride(), strict=True))
    made = torch.empty(begins + span, dtype=like.dtype).as_strided(once, like.stride(), begins)
    return made.copy_(x[tuple(slice(0, size) for size in once)]).expand(like.shape)


def _begins(x: Tensor) -> int:
    """Returns how many numbers stand before a tensor's first in its cache line, where its memory is aligned."""
    return int(x.storage_offset()) % (_LINE // int(x.element_size()))


#: Bytes by which torch aligns memory.
_LINE = 64


def _broadcast(c: Tensor | None, a: Tensor, b: Tensor) -> F32 | None:
    """Returns C in fp32, in D's shape."""
    if c is None:
        return None
    return np.ascontiguousarray(c.expand(a.shape[-2], b.shape[-1]).float().numpy())


def _format(x: Tensor) -> Format:
    return fp32 if x.dtype == torch.float32 else bf16


def _codes(d: Tensor) -> CodeArray:
    words = (torch.int16, np.uint16) if d.dtype == torch.bfloat16 else (torch.int32, np.uint32)
    return np.asarray(d.contiguous().view(words[0]).numpy().view(words[1]))


def _made(structure: ProductMaker, a: F32, b: F32, c: F32 | None) -> CodeArray:
    """Returns what a structure makes of numbers of fp32."""
    match structure:
        case ProductCall() | Dealt() | ByRegions():
            return structure.made(a, b, c)
        case Structure(block=int(block)) if block >= a.shape[1]:
            structure = replace(structure, block=None, halved=None)
    left, right = (_factor(x, structure.instruction.a_format) for x in (a, b))
    return replay(left, right, structure, c, progress=False)


def _factor(x: F32, fmt: Format) -> CodeArray:
    """Returns numbers of fp32, which hold those of bf16, as an instruction takes them."""
    x = np.ascontiguousarray(x)
    return (x.view(np.uint32) >> 16).astype(np.uint16) if fmt == bf16 else x
