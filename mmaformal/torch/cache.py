"""Quantised operands that are used again, such as the weights of a model that generates text.

An operand is kept from its second use on: the first one leaves only a note of it, so that activations, which are used
once, cost no memory.  What is kept goes with the tensor's memory, and stays within `limit` bytes.  It is used again
only if the tensor's memory has the same contents, of which a digest of 64 bits is taken at each use.  This sees changes
that torch's version counter does not (`.data`, an array of NumPy's on the same memory, another thread's); two contents
of one digest, of which one in 2^64 pairs has them by chance, it does not distinguish.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

from mmaformal.kernels.compiled import driver
from mmaformal.quantise import Quantised
from mmaformal.torch.tensors import Tensor

#: Smaller tensors are quantised in less time than it takes to look for them.
_SMALLEST = 1 << 12

#: How many uses there are before those of memory that was freed are thrown away.
_SWEEP = 512


@driver
def _digest(words: NDArray[np.uint64]) -> np.uint64:
    """A digest of some words; two sequences that differ in one word have different ones.

    Each of four lanes is changed by a word through a bijection of both, and so is the digest by each lane.
    """
    factor, half = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = words.size // 4 * 4
    for i in range(0, whole, 4):
        a = (a ^ words[i]) * factor
        b = (b ^ words[i + 1]) * factor
        c = (c ^ words[i + 2]) * factor
        d = (d ^ words[i + 3]) * factor
        a ^= a >> half
        b ^= b >> half
        c ^= c >> half
        d ^= d >> half
    for i in range(whole, words.size):
        a = (a ^ words[i]) * factor
        a ^= a >> half
    for lane in (b, c, d):
        a = (a ^ lane) * factor
        a ^= a >> half
    return a


class _Note:
    """One operand: its memory, which it does not keep alive, and what was made of it."""

    __slots__ = ("digest", "memory", "operand", "used", "version")

    def __init__(self, memory: Tensor, version: int, used: int) -> None:
        self.memory, self.version, self.used = memory, version, used
        self.digest: int | None = None
        self.operand: Quantised | None = None

    @property
    def nbytes(self) -> int:
        parts = () if self.operand is None else self.operand
        return sum(x.nbytes for x in parts if x is not None)


class OperandCache:
    """Quantised operands by the memory of their tensors; one for all contexts and threads of a process."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit  #: bytes that are kept; 0 keeps nothing
        self.hits = 0  #: operands that were not quantised again
        self.misses = 0  #: operands that were
        self._notes: dict[Hashable, _Note] = {}
        self._uses = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return sum(note.nbytes for note in list(self._notes.values()))

    def clear(self) -> None:
        with self._lock:
            self._notes.clear()

    def get(
        self,
        x: Tensor,
        version: int,
        made_as: Hashable,
        quantised: Callable[[], Quantised],
        by_columns: bool = False,
    ) -> Quantised:
        """The operand that `quantised()` makes of a tensor; `made_as` is all else that it depends on.

        With `by_columns` what is kept lies in memory as a few rows times it read it.
        """
        words = _words(x) if self.limit and x.numel() >= _SMALLEST else None
        if words is None:
            self.misses += 1
            return quantised()
        storage = x.untyped_storage()
        key = storage._cdata, x.storage_offset(), tuple(x.shape), x.stride(), x.dtype, by_columns, made_as
        with self._lock:
            self._uses += 1
            note, now = self._notes.get(key), self._uses
            again = note is not None and (note.operand is not None or note.version == version)
            seen = 0 if note is None else note.used
        digest = int(_digest(words)) if again else None
        if note is not None and note.operand is not None and note.digest == digest:
            note.used, note.version = now, version
            self.hits += 1
            return note.operand
        self.misses += 1
        operand = quantised()
        note = _Note(StorageWeakRef(storage), version, now)
        with self._lock:
            self._notes.pop(key, None)
            if again:
                arranged = operand._replace(codes=np.asfortranarray(operand.codes)) if by_columns else operand
                self._keep(note, digest, arranged, seen)
            self._notes[key] = note
            if now % _SWEEP == 0:
                self._sweep()
        return operand

    def _keep(self, note: _Note, digest: int | None, operand: Quantised, seen: int) -> None:
        """Keep an operand, if those that were not used since it was seen last leave room for it."""
        note.digest, note.operand = digest, operand
        free = self.limit - self.nbytes - note.nbytes
        if free < 0:
            self._sweep()
            free = self.limit - self.nbytes - note.nbytes
        for key, other in sorted(self._notes.items(), key=lambda item: item[1].used):
            if free >= 0 or other.used > seen:
                break
            free += other.nbytes
            del self._notes[key]
        if free < 0:
            note.digest = note.operand = None

    def _sweep(self) -> None:
        """Throw away what belongs to memory that was freed."""
        for key in [key for key, note in self._notes.items() if note.memory.expired()]:
            del self._notes[key]


def version_of(x: Tensor) -> int:
    """How often torch saw the tensor change; it does not count for tensors of inference mode."""
    return 0 if x.is_inference() else x._version


def _words(x: Tensor) -> NDArray[np.uint64] | None:
    """The memory of a tensor that holds nothing else, as words; None for any other tensor."""
    order = sorted(range(x.dim()), key=lambda d: (x.stride(d), x.shape[d]), reverse=True)
    dense = x.detach().permute(order)
    size = x.numel() * x.element_size()
    if not size or size % 8 or x.is_neg() or not dense.is_contiguous():
        return None
    words: NDArray[np.uint64] = dense.reshape(-1).view(torch.uint8).numpy().view(np.uint64)
    return words


#: The operands that this process keeps.
kept = OperandCache()
