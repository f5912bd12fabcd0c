"""An instruction: a `DotAdd` with the name, the architecture and the matrix shape it comes with."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.checked import integer, some_text
from mmaformal.corridor import corridor_svg
from mmaformal.display import LINE, ShortRepr, clipped, html_table, html_title, short_repr
from mmaformal.formats import Format
from mmaformal.kernels import rows as kernels
from mmaformal.quick import Quick
from mmaformal.renamed import new_names
from mmaformal.spec import DotAdd, Parameters, parameter_text, with_changes

#: Rows evaluated at a time: the lanes of one chunk stay in the cache.
_CHUNK = 8192

_OF_SPEC = {each.name for each in fields(DotAdd)}


@dataclass(frozen=True, repr=False)
class FreeSizes(ShortRepr):
    """The m and n that an instruction comes in, which do not touch the arithmetic (wgmma, tcgen05)."""

    n_of: tuple[tuple[int, range], ...]  #: each m with the n that it comes with

    def __contains__(self, size: tuple[int, int]) -> bool:
        m, n = size
        return any(m == each and n in ns for each, ns in self.n_of)


@dataclass(frozen=True, repr=False)
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
    sizes: FreeSizes | None = None  #: other m and n that it comes in, with the same arithmetic
    depths: range = range(0)  #: other K that it may be configured for, all products in one step

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
        given = self.parameters.describe() + self.spec.signs
        return f"{self.label}: {self.spec.types}, K={self.k}, {self.algorithm} {given}"

    def __repr__(self) -> str:
        return f"<Instruction {clipped(str(self), 2 * LINE)}>"

    def _repr_html_(self) -> str:
        named = [(name, parameter_text(self.parameters[name], name)) for name in self.parameters]
        rows = [(name, text, self.sources.get(name, "")) for name, text in named]
        title = html_title(self.label, self.spec.types, f"{self.m}×{self.n}×{self.k}, {self.algorithm}")
        return title + html_table(("parameter", "is", "source"), rows) + corridor_svg(self.spec)

    def row(self) -> dict[str, object]:
        """The instruction as plain values, parameters in columns of their own; None where it has no such parameter."""
        types = {f"{side}_format": str(getattr(self, f"{side}_format")) for side in "abcd"}
        scale = self.spec.scale_format
        out: dict[str, object] = {
            "architecture": self.architecture,
            "instruction": self.name,
            **{name: getattr(self, name) for name in "mnk"},
            **types,
            "scale_format": None if scale is None else str(scale),
            "scale_block": self.spec.scale_block or None,
            "algorithm": self.algorithm,
        }
        for name in ("F", "L", "G", "accumulator_bits", "rho", "e_zero"):
            value = self.parameters[name] if name in self.parameters.keys() else None  # noqa: SIM118
            out[name] = str(value) if name == "rho" and value is not None else value
        return out

    # ---- variants ----------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        if not isinstance(self.spec, DotAdd):
            raise TypeError(f"spec is a DotAdd, not {self.spec!r}")
        for name in ("name", "architecture"):
            some_text(getattr(self, name), name)
        for name in ("m", "n", "issues"):
            object.__setattr__(self, name, integer(getattr(self, name), name))
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it counts from 1")

    def replace(self, **changes: object) -> Instruction:
        """A hypothetical instruction: `hopper["HMMA.16816.F32"].replace(F=30, rho="RNE-FP32")`.

        Takes parameters of the algorithm, formats, `k`, or `name`, `m`, `n`, `architecture`; formats, conversions and
        roundings by name too.  Unless `name` is given, the changes are added to it.  Raises TypeError for an unknown
        parameter and for a value that is none (F=23.5, F=True), ValueError for a combination that makes no sense.
        """
        own: dict[str, object] = {
            n: changes.pop(n) for n in ("name", "architecture", "m", "n") if n in changes
        }
        changes = new_names(changes, self.parameters.renamed, self.algorithm)
        spec = self.spec.replace(**changes)
        if changes:
            new = {n: getattr(spec, n, None) if n in _OF_SPEC else spec.parameters[n] for n in changes}
            changed = "".join(f"[{n}={parameter_text(v, n)}]" for n, v in new.items())
            own.setdefault("name", self.name + changed)
        sources = {n: s for n, s in self.sources.items() if n not in changes}
        sources |= {n: "hypothetical" for n in changes if n in self.parameters.keys()}  # noqa: SIM118
        return with_changes(self, own | {"spec": spec, "aliases": (), "sources": sources})

    def configured(self, k: int) -> Instruction:
        """The instruction as configured for another K, `NAME.K8`: `sapphire_rapids["TDPBF16PS"].configured(8)`.

        Raises ValueError where it may not be (`depths`), TypeError unless k is an integer.
        """
        k = integer(k, "k")
        if k == self.k:
            return self
        if k not in self.depths:
            have = f"its K is {', '.join(map(str, self.depths))}" if self.depths else "its K is fixed"
            raise ValueError(f"{self.label} cannot be configured for K = {k}: {have}")
        return replace(self, name=f"{self.name}.K{k}", spec=self.spec.replace(k=k, L=k), depths=range(0))

    def chained(self, k: int) -> Instruction:
        """The instruction issued k / self.k times, each result being the next one's accumulator.

        Of gps one thing is lost: an accumulator of −0 becomes +0 where an instruction reads it, which here is done for
        the first only, so the sign of a zero result may differ (`matmul` issues them one by one).

        Raises ValueError unless k is a positive multiple of self.k and an accumulator can be one's own result,
        TypeError unless k is an integer.
        """
        k = integer(k, "k")
        if k == self.k:
            return self
        if not self.spec.passes_on:
            raise ValueError(f"{self.label} changes its c, or does not read it: its steps are no chain")
        if k < 1 or k % self.k:
            raise ValueError(f"{self.label} has K = {self.k}; {k} is not a multiple of it")
        return replace(
            self,
            name=f"{self.name}[K={k}]",
            spec=self.spec.replace(k=k),
            aliases=(),
            issues=self.issues * (k // self.k),
        )

    def sized(self, m: int, n: int) -> Instruction:
        """Return the instruction in another size, named so.  Raises ValueError if it does not come in it."""
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
        scale_a, scale_b: shape (…, K/S).  Leading dimensions broadcast.

        Either all of a, b, c are bit patterns: unsigned integer arrays, one code per element (`mmaformal.packing`
        unpacks fp4 and fp6), or Python ints.  Or all are numbers: float arrays of exactly the instruction's types, or
        Python floats that these hold exactly.  Scales may be of either kind, but Python ints are bit patterns here too
        and go with those.  Returns d, shape (…), of the same kind: floats for floats, bit patterns for bit patterns,
        and these for a type of d that NumPy does not know.

        Raises ValueError for shapes that do not fit (fewer than K positions is an error, not padding), for codes that
        do not exist, Python floats that are no value of the type, and Python ints for a and b that would all be
        subnormal numbers (`check_meant`); TypeError for other dtypes, for numbers beside bit patterns, and for scales
        missing or superfluous.
        """
        if scale_a is None and scale_b is None and (d := self.quick.dot_add(a, b, c)) is not None:
            return d
        given = {"a": a, "b": b, "c": c, "scale_a": scale_a, "scale_b": scale_b}
        codes, kind = self._operands(given)
        return self._returned(_dot_add(self, codes), kind)

    def _operands(self, given: Mapping[str, ArrayLike | None]) -> tuple[dict[str, NDArray[Any]], OperandKind]:
        """The codes of operands, by name (a, b, c, scale_a, scale_b; upper case too), and what they are."""
        self.check_scales(*(given[name] is not None for name in ("scale_a", "scale_b")))
        read = {
            name: read_operand(x, self.format_of(name), name) for name, x in given.items() if x is not None
        }
        check_meant(read)
        return {name: each.codes for name, each in read.items()}, kind_of(read)

    def format_of(self, name: str) -> Format:
        """The format of an operand: a, b, c, scale_a or scale_b, in lower or upper case."""
        fmt = getattr(self.spec, f"{name[:5] if name.startswith('scale') else name.lower()}_format")
        assert isinstance(fmt, Format)
        return fmt

    def _returned(self, d: NDArray[Any], kind: OperandKind) -> NDArray[Any]:
        return d.view(self.d_format.dtype) if kind == "floats" and self.d_format.dtype is not None else d

    def run(
        self,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        scale_a: ArrayLike | None = None,
        scale_b: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """The whole instruction: A (m×k), B (k×n), C (m×n) → D (m×n).

        With block scales of S products, scale_a is m×k/S and scale_b k/S×n.  Operands, result and errors as in
        `dot_add`.
        """
        shapes = (self.m, self.k), (self.k, self.n)
        if self.quick.kernel is not None and (np.shape(A), np.shape(B)) == shapes:
            d = self.quick.product(A, B, C)
            if d is not None:
                return d
        began = time.perf_counter()
        given = {"A": A, "B": B, "C": C, "scale_a": scale_a, "scale_b": scale_b}
        codes, kind = self._operands(given)
        d = self._returned(_dot_add(self, _of_rows_and_columns(self, codes)), kind)
        self.quick.spend(began)
        return d

    @cached_property
    def quick(self) -> Quick:
        """The quick way for common arguments."""
        return Quick(self.spec)

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


def _of_rows_and_columns(i: Instruction, codes: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the operands of each element of D, made of those of matrices.  Raises ValueError for other shapes."""
    m, n, k, scales = i.m, i.n, i.k, i.spec.scales
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n), "scale_a": (m, scales), "scale_b": (scales, n)}
    for name, each in codes.items():
        if each.shape != shapes[name]:
            raise ValueError(f"{i.label} needs {name} of shape {shapes[name]}, not {each.shape}")
    rows = {name[-1].lower() if name in "AB" else name: codes[name] for name in codes if name != "C"}
    lanes = {name: x.T[None, :, :] if name in ("b", "scale_b") else x[:, None, :] for name, x in rows.items()}
    return {**lanes, "c": codes["C"]}


#: `m64n8k16` of a PTX name, `64x8x16` of a SASS or MFMA name
SHAPE = re.compile(
    r"\bm(?P<m>[1-9]\d*)n(?P<n>[1-9]\d*)k(?P<k>[1-9]\d*)\b"
    r"|(?<=\.)(?P<M>[1-9]\d*)x(?P<N>[1-9]\d*)x(?P<K>[1-9]\d*)(?=\.)"
)


def respell(shape: re.Match[str], m: int, n: int) -> str:
    """The matched shape with another m and n, in the same spelling."""
    return f"m{m}n{n}k{shape['k']}" if shape["k"] else f"{m}x{n}x{shape['K']}"


#: what operands are: floats of their formats, or bit patterns
OperandKind = Literal["floats", "codes"]


class GivenOperand(NamedTuple):
    """Bit patterns, and what they were given as."""

    codes: NDArray[Any]
    kind: OperandKind
    python: bool  #: Python numbers, or lists of them
    fmt: Format

    def __repr__(self) -> str:
        return short_repr(self)


def as_codes(x: ArrayLike, fmt: Format, what: str) -> NDArray[Any]:
    """An array of bit patterns as the format's unsigned words; `Instruction.dot_add` says what it may be."""
    return read_operand(x, fmt, what).codes


def read_operand(x: ArrayLike, fmt: Format, what: str) -> GivenOperand:
    """An operand of any kind.  Raises as `Instruction.dot_add`; of one operand only."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{what} is a masked array, and a mask means nothing here: give {what}.data or {what}.filled(…)"
        )
    if isinstance(x, (int, float, list, tuple)) and not isinstance(x, np.generic):
        read = _from_python(x, fmt, what)
        if read is not None:
            return read
    array = np.asarray(x)
    if fmt.dtype is not None and array.dtype == fmt.dtype:
        return GivenOperand(array.view(fmt.word), "floats", False, fmt)
    if array.dtype.kind != "u":
        own = f" or {fmt.dtype}" if fmt.dtype is not None else ""
        raise TypeError(
            f"{what} is {array.dtype}; {fmt} needs unsigned integer bit patterns ({fmt.word}){own}: "
            f"x.view(np.{fmt.word}) reinterprets bits, x.astype(...) converts values"
        )
    if array.itemsize * 8 > fmt.storage_bits and array.size and int(array.max()) >= fmt.codes:
        raise ValueError(f"{what} holds {int(array.max()):#x}, which is no {fmt} code: {_range(fmt)}")
    return GivenOperand(array.astype(fmt.word, copy=False), "codes", False, fmt)


def kind_of(operands: Mapping[str, GivenOperand]) -> OperandKind:
    """Return the kind that all operands are of.  Raises TypeError where numbers stand beside bit patterns.

    Bit patterns of a format that NumPy has no floats of go with numbers, and so do arrays of scales.
    """
    floats = [name for name, x in operands.items() if x.kind == "floats" and not name.startswith("scale")]
    codes = [
        name
        for name, x in operands.items()
        if x.kind == "codes" and (x.python or (x.fmt.dtype is not None and not name.startswith("scale")))
    ]
    if floats and codes:
        fmt, one = operands[codes[0]].fmt, "1.0"
        typed = f", or an array of {fmt.dtype}" if fmt.dtype is not None else ""
        other = operands[floats[0]].fmt.word
        raise TypeError(
            f"{floats[0]} is a number and {codes[0]} a bit pattern, as every integer is: give {codes[0]} as a Python "
            f"float ({one}){typed}, or {floats[0]} as bit patterns too (.view(np.{other}))"
        )
    return "floats" if floats else "codes"


def check_meant(operands: Mapping[str, GivenOperand]) -> None:
    """Raise ValueError where Python ints are given for a and b, and every nonzero one would be a subnormal number.

    `dot_add([1] * 16, [1] * 16, 0)` is meant for ones, which are `1.0`; as bit patterns they are 2^-24 in fp16.
    """
    factors = {name: x for name, x in operands.items() if name.lower() in ("a", "b")}
    if not all(x.python and x.kind == "codes" and x.codes.any() for x in factors.values()):
        return
    magnitudes = ((x.codes & ((x.fmt.sign_mask or x.fmt.codes) - 1), x.fmt) for x in factors.values())
    if any(bool((codes >> _normal_shift(fmt)).any()) for codes, fmt in magnitudes):
        return
    name, x = next(iter(factors.items()))
    code = int(x.codes[x.codes != 0].flat[0])
    raise ValueError(
        f"every integer is a bit pattern, and {code} is {x.fmt.text(code)} in {x.fmt}: for the number write {code}.0, "
        f"for the bit pattern np.array({name}, np.{x.fmt.word})"
    )


def _normal_shift(fmt: Format) -> int:
    """Codes without sign that are shorter are those of zero and subnormal numbers."""
    return fmt.fraction_bits + fmt.ignored_low_bits


def _from_python(x: object, fmt: Format, what: str) -> GivenOperand | None:
    """Python numbers, nested or not; None for others.  NumPy alone makes floats of a list of fp64 codes, small and
    large, and rounds every float to fp64's or fp32's."""
    objects = np.array(x, dtype=object)
    if objects.size == 0:
        return GivenOperand(np.empty(objects.shape, fmt.word), "codes", False, fmt)
    types = {type(each) for each in objects.flat}
    if types <= {int, float} and float in types:
        codes = [_code_of(float(each), fmt, what) for each in objects.flat]
        return GivenOperand(np.array(codes, fmt.word).reshape(objects.shape), "floats", True, fmt)
    if types != {int}:
        return None
    if min(objects.flat) < 0:
        raise ValueError(f"{what} has a negative number; {fmt} bit patterns are 0 to {fmt.codes - 1:#x}")
    if max(objects.flat) >= fmt.codes:
        raise ValueError(f"{what} holds {max(objects.flat):#x}, which is no {fmt} code: {_range(fmt)}")
    return GivenOperand(objects.astype(np.uint64).astype(fmt.word), "codes", True, fmt)


@lru_cache(maxsize=4096)
def _code_of_text(number: str, fmt: Format) -> int:
    return fmt.code(number)


def _code_of(x: float, fmt: Format, what: str) -> int:
    """The code of a Python float.  Raises ValueError if it is no value of the format."""
    try:
        return _code_of_text(x.hex(), fmt)
    except ValueError as error:
        raise ValueError(
            f"{what}: {error}" if x != x or math.isinf(x) else f"{what}: {x} is no value of {fmt}"
        ) from None


def _range(fmt: Format) -> str:
    return f"codes are 0 to {fmt.codes - 1:#x}"


# ---- on codes ----------------------------------------------------------------------------------------------------


def _dot_add(instruction: Instruction, given: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """`Instruction.dot_add` on codes: as rows, some at a time."""
    spec, c_codes = instruction.spec, given["c"]
    vectors = {name: given[name] for name in ("a", "b", "scale_a", "scale_b") if name in given}
    _check_lengths(instruction, vectors)
    shape = _leading_shape(vectors, c_codes)
    rows = math.prod(shape)

    def as_rows(codes: NDArray[Any], *last: int) -> NDArray[Any]:
        whole = codes if codes.shape == (*shape, *last) else np.broadcast_to(codes, (*shape, *last))
        return whole.reshape(rows, *last)

    rows_of = {name: as_rows(codes, codes.shape[-1]) for name, codes in vectors.items()}
    d = _of_rows(spec, rows_of, as_rows(c_codes))
    answer: NDArray[Any] = d.reshape(shape)[()]
    return answer


def _of_rows(spec: DotAdd, vectors: Mapping[str, NDArray[Any]], c: NDArray[Any]) -> NDArray[Any]:
    """The codes of d: many rows by a kernel, few on NumPy's lanes, until those have taken longer than a kernel."""
    if kernels.compiled_pays(spec, len(c) * spec.k):
        scales = vectors.get("scale_a"), vectors.get("scale_b")
        return kernels.dot_add(spec, vectors["a"], vectors["b"], c, *scales, threads=kernels.processors())
    began = time.perf_counter()
    d = np.empty(len(c), spec.d_format.word)
    for start in range(0, len(c), _CHUNK):
        part = slice(start, start + _CHUNK)
        d[part] = _evaluate(spec, {name: x[part] for name, x in vectors.items()}, c[part])
    kernels.lanes_took(spec, time.perf_counter() - began)
    return d


def _check_lengths(instruction: Instruction, vectors: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless vectors have an element for each product, or each block of them."""
    spec = instruction.spec
    for name, codes in vectors.items():
        length = spec.scales if name.startswith("scale") else spec.k
        if codes.ndim == 0 or codes.shape[-1] != length:
            hint = (
                "pad the missing positions with zeros yourself, if zeros are what you mean"
                if name in ("a", "b")
                else f"one {spec.scale_format} for each {spec.scale_block} products"
            )
            raise ValueError(
                f"{instruction.label} needs {name} of shape (…, {length}), not {codes.shape}: {hint}"
            )


def _leading_shape(vectors: Mapping[str, NDArray[Any]], c: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape that the leading dimensions broadcast to.  Raises ValueError if they do not."""
    try:
        return np.broadcast_shapes(*(codes.shape[:-1] for codes in vectors.values()), c.shape)
    except ValueError:
        shapes = ", ".join(f"{name} {codes.shape}" for name, codes in vectors.items())
        raise ValueError(
            f"leading dimensions do not fit: {shapes} (without their last), c {c.shape}"
        ) from None


def _evaluate(spec: DotAdd, vectors: dict[str, NDArray[Any]], c: NDArray[Any]) -> NDArray[np.int64]:
    from mmaformal.folding import fold

    # NumPy wraps a 64-bit code into the signed lane with the same bits, and back.
    result: NDArray[np.int64] = fold(spec, c=c.astype(np.int64), **vectors).trace.result
    return result
