"""An instruction: a `DotAdd` with the name, the architecture and the matrix shape it comes with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.algorithms import DotAdd, Parameters
from mmaformal.formats import Format

#: Rows evaluated at a time: the lanes of one chunk stay in the cache.
_CHUNK = 8192


@dataclass(frozen=True)
class Instruction:
    """One matrix instruction of one architecture: D (m×n) = A (m×k) · B (k×n) + C (m×n), element by element the
    same dot product-add `spec`."""

    name: str
    architecture: str
    m: int
    n: int
    spec: DotAdd
    aliases: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)  #: where each parameter is from
    issues: int = 1  #: how many hardware instructions, each one's result the next one's accumulator

    @property
    def k(self) -> int:
        return self.spec.k

    @property
    def a_format(self) -> Format:
        return self.spec.a_format

    @property
    def b_format(self) -> Format:
        return self.spec.b_format

    @property
    def c_format(self) -> Format:
        return self.spec.c_format

    @property
    def d_format(self) -> Format:
        return self.spec.d_format

    @property
    def algorithm(self) -> str:
        return self.spec.parameters.algorithm

    @property
    def parameters(self) -> Parameters:
        return self.spec.parameters

    @property
    def label(self) -> str:
        """`ampere HMMA.16816.F32`."""
        return f"{self.architecture} {self.name}"

    def __str__(self) -> str:
        return f"{self.label}: {self.spec.types}, K={self.k}, {self.algorithm} {self.parameters.describe()}"

    # ---- variants ---------------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Instruction:
        """A hypothetical instruction: `hopper["HMMA.16816.F32"].replace(F=30)`.

        Takes parameters of the algorithm, formats, `k`, or `name`, `m`, `n`, `architecture`.  Unless `name` is
        given, the changes are added to it.  Raises TypeError for an unknown name, ValueError for a combination
        that makes no sense.
        """
        own = {n: changes.pop(n) for n in ("name", "architecture", "m", "n") if n in changes}
        if changes:
            own.setdefault("name", self.name + "".join(f"[{n}={v}]" for n, v in changes.items()))
        sources = {n: s for n, s in self.sources.items() if n not in changes}
        sources |= {n: "hypothetical" for n in changes if n in self.parameters.keys()}  # noqa: SIM118
        return replace(self, spec=self.spec.replace(**changes), aliases=(), sources=sources, **own)

    def chained(self, k: int) -> Instruction:
        """The instruction issued k / self.k times, each result being the next one's accumulator.

        Raises ValueError unless k is a multiple of self.k and an accumulator can be one's own result.
        """
        if k == self.k:
            return self
        if k % self.k:
            raise ValueError(f"{self.label} has K = {self.k}; {k} is not a multiple of it")
        return replace(
            self,
            name=f"{self.name}[K={k}]",
            spec=self.spec.replace(k=k),
            aliases=(),
            issues=self.issues * (k // self.k),
        )

    # ---- evaluation -------------------------------------------------------------------------------------------

    def dot_add(
        self,
        a: ArrayLike,
        b: ArrayLike,
        c: ArrayLike,
        scale_a: ArrayLike | None = None,
        scale_b: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """`d = c + Σ a_k·b_k` as this instruction rounds it.

        a, b: shape (…, K); c: shape (…).  Unsigned integer arrays of bit patterns, or float arrays of exactly the
        instruction's types.  Leading dimensions broadcast.  Returns bit patterns of d, shape (…).

        Raises ValueError for shapes that do not fit (fewer than K positions is an error, not padding) and for
        codes that do not exist, TypeError for other dtypes.
        """
        if scale_a is not None or scale_b is not None:
            raise TypeError(f"{self.label} takes no block scales")
        a_codes = as_codes(a, self.a_format, "a")
        b_codes = as_codes(b, self.b_format, "b")
        c_codes = as_codes(c, self.c_format, "c")
        for name, codes in (("a", a_codes), ("b", b_codes)):
            if codes.ndim == 0 or codes.shape[-1] != self.k:
                raise ValueError(
                    f"{self.label} needs {name} of shape (…, {self.k}), not {codes.shape}: "
                    "pad the missing positions with zeros yourself, if zeros are what you mean"
                )
        try:
            shape = np.broadcast_shapes(a_codes.shape[:-1], b_codes.shape[:-1], c_codes.shape)
        except ValueError:
            raise ValueError(
                f"leading dimensions do not fit: a {a_codes.shape}, b {b_codes.shape} (without their last), "
                f"c {c_codes.shape}"
            ) from None
        rows = int(np.prod(shape, dtype=np.int64))
        a_rows = np.broadcast_to(a_codes, (*shape, self.k)).reshape(rows, self.k)
        b_rows = np.broadcast_to(b_codes, (*shape, self.k)).reshape(rows, self.k)
        c_rows = np.broadcast_to(c_codes, shape).reshape(rows)
        d = np.empty(rows, self.d_format.word)
        for start in range(0, rows, _CHUNK):
            part = slice(start, start + _CHUNK)
            d[part] = _evaluate(self.spec, a_rows[part], b_rows[part], c_rows[part])
        return d.reshape(shape)[()]

    def run(
        self,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        scale_a: ArrayLike | None = None,
        scale_b: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """The whole instruction: A (m×k), B (k×n), C (m×n) → D (m×n), as bit patterns.  Raises as `dot_add`."""
        a = as_codes(A, self.a_format, "A")
        b = as_codes(B, self.b_format, "B")
        c = as_codes(C, self.c_format, "C")
        wanted = {"A": (self.m, self.k), "B": (self.k, self.n), "C": (self.m, self.n)}
        for name, codes in (("A", a), ("B", b), ("C", c)):
            if codes.shape != wanted[name]:
                raise ValueError(f"{self.label} needs {name} of shape {wanted[name]}, not {codes.shape}")
        return self.dot_add(a[:, None, :], b.T[None, :, :], c, scale_a, scale_b)


def as_codes(x: ArrayLike, fmt: Format, what: str) -> NDArray[Any]:
    """An array of bit patterns as the format's unsigned words; see `Instruction.dot_add` for what is accepted."""
    array = np.asarray(x)
    if fmt.dtype is not None and array.dtype == fmt.dtype:
        return array.view(fmt.word)
    if array.dtype.kind == "i" and not isinstance(x, (np.ndarray, np.generic)):
        if array.size and array.min() < 0:
            raise ValueError(f"{what} has a negative number; {fmt} bit patterns are 0 to {fmt.codes - 1:#x}")
        array = array.astype(np.uint64)
    if array.size == 0:
        array = array.astype(fmt.word)
    if array.dtype.kind != "u":
        own = f" or {fmt.dtype}" if fmt.dtype is not None else ""
        raise TypeError(
            f"{what} is {array.dtype}; {fmt} needs unsigned integer bit patterns ({fmt.word}){own}: "
            f"x.view(np.{fmt.word}) reinterprets bits, x.astype(...) converts values"
        )
    if array.dtype.itemsize * 8 > fmt.storage_bits and array.size and int(array.max()) >= fmt.codes:
        raise ValueError(
            f"{what} holds {int(array.max()):#x}, which is no {fmt} code: codes are 0 to {fmt.codes - 1:#x}"
        )
    return array.astype(fmt.word, copy=False)


def _evaluate(spec: DotAdd, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.int64]:
    from mmaformal.encodings import executable

    a_lanes = [lane.astype(np.int64) for lane in a.T]
    b_lanes = [lane.astype(np.int64) for lane in b.T]
    result: NDArray[np.int64] = executable.dot_add(spec, a_lanes, b_lanes, c.astype(np.int64)).result
    return result
