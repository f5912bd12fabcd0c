"""An instruction: a `DotAdd` with the name, the architecture and the matrix shape it comes with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.algorithms import DotAdd, Parameters, parameter_text
from mmaformal.formats import Format

#: Rows evaluated at a time: the lanes of one chunk stay in the cache.
_CHUNK = 8192


@dataclass(frozen=True)
class Sizes:
    """The m and n that an instruction comes in, which do not touch the arithmetic (wgmma, tcgen05)."""

    m: tuple[int, ...]
    n: tuple[int, ...]

    def __contains__(self, size: tuple[int, int]) -> bool:
        return size[0] in self.m and size[1] in self.n


@dataclass(frozen=True)
class Instruction:
    """One matrix instruction of one architecture: D (m×n) = A (m×k) · B (k×n) + C (m×n), element by element
    the same dot product-add `spec`; with block scales, of A (m×k/S) and of B (k/S×n)."""

    name: str
    architecture: str
    m: int
    n: int
    spec: DotAdd
    aliases: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)  #: where each parameter is from
    issues: int = 1  #: how many hardware instructions, each one's result the next one's accumulator
    sizes: Sizes | None = None  #: other m and n that it comes in, with the same arithmetic

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

    # ---- variants ----------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Instruction:
        """A hypothetical instruction: `hopper["HMMA.16816.F32"].replace(F=30)`.

        Takes parameters of the algorithm, formats, `k`, or `name`, `m`, `n`, `architecture`.  Unless `name`
        is given, the changes are added to it.  Raises TypeError for an unknown name, ValueError for a
        combination that makes no sense.
        """
        own = {n: changes.pop(n) for n in ("name", "architecture", "m", "n") if n in changes}
        if changes:
            changed = "".join(f"[{n}={parameter_text(v)}]" for n, v in changes.items())
            own.setdefault("name", self.name + changed)
        sources = {n: s for n, s in self.sources.items() if n not in changes}
        sources |= {n: "hypothetical" for n in changes if n in self.parameters.keys()}  # noqa: SIM118
        return replace(self, spec=self.spec.replace(**changes), aliases=(), sources=sources, **own)

    def chained(self, k: int) -> Instruction:
        """The instruction issued k / self.k times, each result being the next one's accumulator.

        Of gps one thing is lost: an accumulator of −0 becomes +0 where an instruction reads it, which here is done for
        the first only, so the sign of a zero result may differ (`matmul` issues them one by one).

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

    def sized(self, m: int, n: int) -> Instruction:
        """The same instruction of another size, named so.  Raises ValueError if it does not come in it."""
        if (m, n) == (self.m, self.n):
            return self
        if self.sizes is None or (m, n) not in self.sizes:
            raise ValueError(f"{self.label} does not come with m = {m}, n = {n}")
        names = [
            re.sub(SHAPE, lambda shape: respell(shape, m, n), name) for name in (self.name, *self.aliases)
        ]
        return replace(self, name=names[0], aliases=tuple(names[1:]), m=m, n=n)

    # ---- evaluation --------------------------------------------------------------------------------------

    def dot_add(
        self,
        a: ArrayLike,
        b: ArrayLike,
        c: ArrayLike,
        scale_a: ArrayLike | None = None,
        scale_b: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """`d = c + Σ a_k·b_k` as this instruction rounds it.

        a, b: shape (…, K); c: shape (…); for an instruction with block scales, one for each S products,
        scale_a, scale_b: shape (…, K/S).  Unsigned integer arrays of bit patterns, one code per element
        (`mmaformal.packing` unpacks fp4 and fp6), or float arrays of exactly the instruction's types.
        Leading dimensions broadcast.  Returns bit patterns of d, shape (…).

        Raises ValueError for shapes that do not fit (fewer than K positions is an error, not padding) and for
        codes that do not exist, TypeError for other dtypes, and for scales missing or superfluous.
        """
        spec = self.spec
        self.check_scales(scale_a is not None, scale_b is not None)
        vectors = {
            "a": (as_codes(a, self.a_format, "a"), self.k),
            "b": (as_codes(b, self.b_format, "b"), self.k),
        }
        if spec.scale_format is not None:
            for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
                vectors[name] = (as_codes(scale, spec.scale_format, name), spec.scales)  # type: ignore[arg-type]
        c_codes = as_codes(c, self.c_format, "c")
        for name, (codes, length) in vectors.items():
            if codes.ndim == 0 or codes.shape[-1] != length:
                hint = (
                    "pad the missing positions with zeros yourself, if zeros are what you mean"
                    if name in ("a", "b")
                    else f"one {spec.scale_format} for each {spec.scale_block} products"
                )
                raise ValueError(
                    f"{self.label} needs {name} of shape (…, {length}), not {codes.shape}: {hint}"
                )
        try:
            shape = np.broadcast_shapes(*(codes.shape[:-1] for codes, _ in vectors.values()), c_codes.shape)
        except ValueError:
            shapes = ", ".join(f"{name} {codes.shape}" for name, (codes, _) in vectors.items())
            raise ValueError(
                f"leading dimensions do not fit: {shapes} (without their last), c {c_codes.shape}"
            ) from None
        rows = int(np.prod(shape, dtype=np.int64))
        rows_of = {
            name: np.broadcast_to(codes, (*shape, length)).reshape(rows, length)
            for name, (codes, length) in vectors.items()
        }
        c_rows = np.broadcast_to(c_codes, shape).reshape(rows)
        d = np.empty(rows, self.d_format.word)
        for start in range(0, rows, _CHUNK):
            part = slice(start, start + _CHUNK)
            d[part] = _evaluate(spec, {name: x[part] for name, x in rows_of.items()}, c_rows[part])
        return d.reshape(shape)[()]

    def run(
        self,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        scale_a: ArrayLike | None = None,
        scale_b: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """The whole instruction: A (m×k), B (k×n), C (m×n) → D (m×n), as bit patterns.

        With block scales of S products, scale_a is m×k/S and scale_b k/S×n.  Raises as `dot_add`.
        """
        m, n, k, spec = self.m, self.n, self.k, self.spec
        self.check_scales(scale_a is not None, scale_b is not None)
        given = [
            ("A", A, self.a_format, (m, k)),
            ("B", B, self.b_format, (k, n)),
            ("C", C, self.c_format, (m, n)),
        ]
        if spec.scale_format is not None and scale_a is not None and scale_b is not None:
            given.append(("scale_a", scale_a, spec.scale_format, (m, spec.scales)))
            given.append(("scale_b", scale_b, spec.scale_format, (spec.scales, n)))
        codes = {}
        for name, matrix, fmt, wanted in given:
            codes[name] = as_codes(matrix, fmt, name)
            if codes[name].shape != wanted:
                raise ValueError(f"{self.label} needs {name} of shape {wanted}, not {codes[name].shape}")
        return self.dot_add(
            codes["A"][:, None, :],
            codes["B"].T[None, :, :],
            codes["C"],
            codes["scale_a"][:, None, :] if "scale_a" in codes else None,
            codes["scale_b"].T[None, :, :] if "scale_b" in codes else None,
        )

    def check_scales(self, a: bool, b: bool) -> None:
        """Raise TypeError unless block scales are given (`a`, `b`: whether they are) exactly if they are needed."""
        spec = self.spec
        if spec.scale_format is None and (a or b):
            raise TypeError(f"{self.label} takes no block scales")
        if spec.scale_format is not None and not (a and b):
            missing = " and ".join(name for name, given in (("scale_a", a), ("scale_b", b)) if not given)
            raise TypeError(
                f"{self.label} needs {missing}: {spec.scales} {spec.scale_format} per row of A and column of "
                f"B, one for each {spec.scale_block} products"
            )


#: `m64n8k16` of a PTX name, `64x8x16` of a SASS or MFMA name
SHAPE = re.compile(r"\bm(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)\b|(?<=\.)(?P<M>\d+)x(?P<N>\d+)x(?P<K>\d+)(?=\.)")


def respell(shape: re.Match[str], m: int, n: int) -> str:
    """The matched shape with another m and n, in the same spelling."""
    return f"m{m}n{n}k{shape['k']}" if shape["k"] else f"{m}x{n}x{shape['K']}"


def as_codes(x: ArrayLike, fmt: Format, what: str) -> NDArray[Any]:
    """An array of bit patterns as the format's unsigned words; `Instruction.dot_add` says what it may be."""
    array = _from_python(x, fmt, what) if isinstance(x, (int, list, tuple)) else np.asarray(x)
    if fmt.dtype is not None and array.dtype == fmt.dtype:
        return array.view(fmt.word)
    if array.dtype.kind != "u":
        own = f" or {fmt.dtype}" if fmt.dtype is not None else ""
        raise TypeError(
            f"{what} is {array.dtype}; {fmt} needs unsigned integer bit patterns ({fmt.word}){own}: "
            f"x.view(np.{fmt.word}) reinterprets bits, x.astype(...) converts values"
        )
    if array.dtype.itemsize * 8 > fmt.storage_bits and array.size and int(array.max()) >= fmt.codes:
        raise ValueError(f"{what} holds {int(array.max()):#x}, which is no {fmt} code: {_range(fmt)}")
    return array.astype(fmt.word, copy=False)


def _from_python(x: Any, fmt: Format, what: str) -> NDArray[Any]:
    """Python numbers, nested or not.  NumPy alone makes floats of a list of fp64 codes, small and large."""
    objects = np.array(x, dtype=object)
    if objects.size == 0:
        return np.empty(objects.shape, fmt.word)
    if not all(type(code) is int for code in objects.flat):
        return np.asarray(x)
    if min(objects.flat) < 0:
        raise ValueError(f"{what} has a negative number; {fmt} bit patterns are 0 to {fmt.codes - 1:#x}")
    if max(objects.flat) >= fmt.codes:
        raise ValueError(f"{what} holds {max(objects.flat):#x}, which is no {fmt} code: {_range(fmt)}")
    return objects.astype(np.uint64)


def _range(fmt: Format) -> str:
    return f"codes are 0 to {fmt.codes - 1:#x}"


def _evaluate(spec: DotAdd, vectors: dict[str, NDArray[Any]], c: NDArray[Any]) -> NDArray[np.int64]:
    from mmaformal.encodings import executable

    lanes = {name: [lane.astype(np.int64) for lane in rows.T] for name, rows in vectors.items()}
    # NumPy wraps a 64-bit code into the signed lane with the same bits, and back.
    result: NDArray[np.int64] = executable.dot_add(spec, c=c.astype(np.int64), **lanes).result
    return result
