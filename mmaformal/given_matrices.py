"""Matrices of one product as people have them: D, A, B and C as codes, whatever holds them and however they lie.

Floats of a format's own type, wider floats whose elements are numbers of it, bit patterns; a factor that fits, or gives
D, only as its transpose is taken so, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import FORMATS, Format, format_called, fp32, fp64
from mmaformal.gemm import holds, rounded_codes, values
from mmaformal.given_scales import GivenScales, ScaleLayout, ways
from mmaformal.operands import Matrix, as_operand, float_format, is_tensor
from mmaformal.scale_layouts import from_pairs
from mmaformal.structures import CodeArray, exactly

Floats = NDArray[np.float64]

#: A product is near another one where the middle difference is less than this part of the middle element.
_NEAR = 0.25
#: Rows and columns that are looked at for that.
_LOOKED_AT = 64


def format_named(x: str | Format | None, matrix: Matrix, name: str) -> Format:
    """Returns the format that is named, or that of the matrix's floats; raises ValueError if there is none."""
    if x is None:
        if (fmt := float_format(matrix)) is None:
            dtype = getattr(matrix, "dtype", type(matrix).__name__)
            raise ValueError(
                f"{name} is {dtype}, no array of floats: {name.lower()}_format says what it holds"
            )
        return fmt
    if isinstance(x, Format):
        return x
    if (fmt := format_called(x)) is None:
        raise ValueError(f"no format {x!r}; there are {', '.join(FORMATS)}")
    return fmt


def given_codes(x: Matrix, fmt: Format, name: str) -> CodeArray:
    """The codes of a matrix of a format: of its floats, of wider floats that are all numbers of it, of bit patterns.

    Raises ValueError for a wider float that is no number of the format, and for what is no array of its codes.
    """
    given = float_format(x)
    if given is not None and given != fmt and holds(given, fmt):
        wide = as_operand(x, given, name).codes
        floats = values(wide, given, fp32 if holds(fp32, given) else fp64)
        codes = rounded_codes(floats, fp32 if holds(fp32, given) else fp64, fmt, quiet_nan(fmt))
        wrong = np.argwhere((exactly(codes, fmt, given) != wide) & ~np.isnan(floats))
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            raise ValueError(
                f"{name} is {given}, and {name}{list(place)} = {float(floats[place])!r} is no {fmt} number"
            )
        return codes
    if given is None and hasattr(x, "dtype"):
        array = np.from_dlpack(x) if is_tensor(x) else np.asarray(x)
        if array.dtype.kind in "iV" and array.dtype.itemsize == fmt.word.itemsize:
            x = np.ascontiguousarray(array).view(
                fmt.word
            )  # bit patterns, in words that there was no better name for
    try:
        return as_operand(x, fmt, name).codes
    except TypeError as error:
        raise ValueError(str(error)) from None


def is_of(codes: CodeArray, given: Format, fmt: Format) -> bool:
    """Whether codes of a format are all of numbers of a narrower one."""
    try:
        given_codes(codes.view(given.dtype), fmt, "")
    except ValueError:
        return False
    return True


class OperandScales(NamedTuple):
    """Block scales as they were given."""

    a: Matrix
    b: Matrix
    layout: ScaleLayout = "auto"
    format: str | Format | None = None


def given_scales(
    scale_a: Matrix | None, scale_b: Matrix | None, layout: ScaleLayout, fmt: str | Format | None
) -> OperandScales | None:
    """Returns the block scales, if there are any.  Raises ValueError for those of one side alone."""
    if scale_a is not None and scale_b is not None:
        return OperandScales(scale_a, scale_b, layout, fmt)
    if scale_a is not None or scale_b is not None:
        raise ValueError("block scales are of both A and B: give scale_a and scale_b")
    return None


@dataclass(frozen=True, repr=False)
class GivenMatrices(ShortRepr):
    """D (M, N), A (M, K), B (K, N) and C (M, N) as codes."""

    d: CodeArray
    a: CodeArray
    b: CodeArray
    c: CodeArray | None
    d_format: Format
    a_format: Format
    b_format: Format
    c_format: Format | None
    notes: tuple[str, ...] = ()  #: how they were taken, where not as they were given
    call: tuple[int, int] | None = None  #: rows and columns of one call, where D is of several
    scales: GivenScales | None = None
    paired: tuple[tuple[str, str], ...] = ()  #: factors in pairs of fp4, and what makes numbers of them

    @classmethod
    def of(
        cls,
        D: Matrix,
        A: Matrix,
        B: Matrix,
        C: Matrix | None = None,
        formats: tuple[str | Format | None, ...] = (None, None, None, None),
        call: tuple[int, int] | None = None,
        scales: OperandScales | None = None,
    ) -> GivenMatrices:
        """Read them; formats are of A, B, C and D, None for that of its floats; call: the rows and columns of one call.

        Of fp4, a byte above 15 is two numbers, along K.  Raises ValueError for shapes that do not fit or are empty, and
        as `codes_of` and `given_scales.ways`.
        """
        given = {"A": A, "B": B, "C": C, "D": D}
        named = {
            name: format_named(fmt, given[name], name)
            for name, fmt in zip(given, formats, strict=True)
            if given[name] is not None
        }
        whole = {name: _of_pairs(given, fmt, name) for name, fmt in named.items()}
        codes = {name: given_codes(x, named[name], name) for name, (x, _) in whole.items()}
        paired = tuple((name, how) for name, (_, how) in whole.items() if how)
        d, fitting = _arranged(codes["A"], codes["B"], codes["D"])
        c = codes.get("C")
        if c is not None:
            try:
                c = np.ascontiguousarray(
                    np.broadcast_to(c.reshape(-1, c.shape[-1]) if c.ndim > 2 else c, d.shape)
                )
            except ValueError:
                raise ValueError(
                    f"C has shape {c.shape}; {d.shape} is needed, or one that is broadcast to it"
                ) from None
        if call is not None and (min(call) < 1 or d.shape[0] % call[0] or d.shape[1] % call[1]):
            raise ValueError(f"D of {d.shape[0]}×{d.shape[1]} is not of calls of {call[0]}×{call[1]} each")
        formats_ = named["D"], named["A"], named["B"], named.get("C")
        found = [
            cls(d, a, b, c, *formats_, _notes(turned, each), call, each, paired)
            for a, b, turned in fitting
            for each in _scales_of(scales, (len(a), a.shape[1], b.shape[1]), (named["A"], named["B"]))
        ]
        near = (x for x in found if is_near(*looked_at(x).sums())) if len(found) > 1 else iter(())
        return next(near, found[0])

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, K, N."""
        return len(self.a), self.a.shape[1], self.b.shape[1]

    @property
    def written(self) -> list[str]:
        """Returns D, A, B and C as a program writes them that has them as they were given."""
        turned = {note.split()[0] for note in self.notes if "as its transpose" in note}
        names = ["D", "A", "B"] if self.c is None else ["D", "A", "B", "C"]
        read = {name: dict(self.paired).get(name, name) for name in names}
        return [f"{read[name]}.T" if name in turned else read[name] for name in names]

    @property
    def written_scales(self) -> str:
        """Returns two more arguments of such a program, the block scales as they were given."""
        if self.scales is None:
            return ""
        (M, _, N), blocks = self.shape, self.scales.a.shape[1]
        read = {"tiles": "from_tiles", "padded": "unpadded"}.get(self.scales.words)
        codes = ".view(np.uint8)" if self.scales.typed else ""
        a, b = (f"scale_{x}{codes}" for x in "ab")
        if read:
            a, b = f"{read}({a}, {M}, {blocks})", f"{read}({b}, {N}, {blocks})"
        return f"scale_a={a}, scale_b={b}" + (".T" if read or self.scales.turned else "")

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> GivenMatrices:
        """Returns some rows and columns of D, with what they are made of."""
        return GivenMatrices(
            self.d[np.ix_(rows, columns)],
            self.a[rows],
            np.ascontiguousarray(self.b[:, columns]),
            None if self.c is None else self.c[np.ix_(rows, columns)],
            *(self.d_format, self.a_format, self.b_format, self.c_format, self.notes),
            scales=None if self.scales is None else self.scales.part(rows, columns),
        )

    @property
    def scale_codes(self) -> tuple[CodeArray | None, CodeArray | None]:
        """Scales of A and B, as `matmul` takes them."""
        return (None, None) if self.scales is None else (self.scales.a, self.scales.b)

    def sums(self) -> tuple[Floats, Floats]:
        """D and C + A·B in float64."""
        d, a, b = (
            values(codes, fmt, fp64)
            for codes, fmt in ((self.d, self.d_format), (self.a, self.a_format), (self.b, self.b_format))
        )
        with np.errstate(all="ignore"):
            if self.scales is not None:
                of_a, of_b = self.scales.numbers(a.shape[1])
                a, b = a * of_a, b * of_b
            total: Floats = a @ b
            if self.c is not None and self.c_format is not None:
                total = total + values(self.c, self.c_format, fp64)
        return d, total


def is_near(d: Floats, total: Floats) -> bool | None:
    """Whether D is a product but for its roundings; None where there are no numbers to tell by."""
    finite = np.isfinite(d) & np.isfinite(total)
    size = np.median(np.abs(total[finite])) if finite.any() else 0.0
    if not size:
        return None
    return bool(np.median(np.abs(d[finite] - total[finite])) < _NEAR * size)


def looked_at(given: GivenMatrices) -> GivenMatrices:
    """Some rows and columns, by which a gross fault is told."""
    rows, columns = (
        np.unique(np.linspace(0, size - 1, _LOOKED_AT).astype(np.intp)) for size in given.d.shape
    )
    return given.part(rows, columns)


def _scales_of(
    scales: OperandScales | None, shape: tuple[int, int, int], formats: tuple[Format, Format]
) -> list[GivenScales | None]:
    """Returns the block scales that may be meant, None if there are none."""
    if scales is None:
        return [None]
    return [*ways(scales.a, scales.b, shape, formats, scales.layout, scales.format)]


def _notes(turned: list[str], scales: GivenScales | None) -> tuple[str, ...]:
    notes = [f"{name} is taken as its transpose: D is no A·B of them as they were given" for name in turned]
    if scales is not None and scales.words != "plain":
        notes.append(f"scales of {scales.fmt} are taken as {scales.words}")
    return tuple(notes)


def _of_pairs(given: Mapping[str, Matrix | None], fmt: Format, name: str) -> tuple[Matrix, str]:
    """A matrix, and nothing; of fp4 in pairs, one of its codes, and what makes it of the pairs.

    Pairs of A, and of B as its transpose, lie along the last axis.
    """
    x = given[name]
    assert x is not None
    array = np.asarray(x) if fmt.storage_bits == 4 and isinstance(x, np.ndarray) else None
    if array is None or array.dtype.itemsize != 1 or float_format(array) is not None or array.ndim != 2:
        return x, ""
    codes, a = array.view(np.uint8), given["A"]
    if not (codes >= fmt.codes).any():
        return codes, ""
    packed = None if a is None or name != "B" else np.shape(a)[-1]
    first = packed is not None and codes.shape[0] == packed != codes.shape[1]
    found = from_pairs(codes.T).T if first else from_pairs(codes)
    return np.ascontiguousarray(found), f"from_pairs({name}.T).T" if first else f"from_pairs({name})"


def _arranged(
    a: CodeArray, b: CodeArray, d: CodeArray
) -> tuple[CodeArray, list[tuple[CodeArray, CodeArray, list[str]]]]:
    """D as a matrix, and A and B as they fit, with which of them are turned."""
    shown = f"A {a.shape}, B {b.shape}, D {d.shape}"
    if b.ndim > 2:
        raise ValueError(f"{shown}: give one product at a time, D[0], A[0], B[0]")
    if a.ndim == 1:
        a, d = a[None], d[None] if d.ndim == 1 else d
    if b.ndim == 1:
        b, d = b[:, None], d[..., None] if d.shape[-1:] != (1,) else d
    if a.ndim > 2 and d.shape[:-1] == a.shape[:-1]:
        a, d = a.reshape(-1, a.shape[-1]), d.reshape(-1, d.shape[-1])
    if not (a.size and b.size and d.size):
        raise ValueError(f"{shown}: a product without elements, or of no products, tells nothing")
    fitting = list[tuple[CodeArray, CodeArray, list[str]]]()
    for turn_b, turn_a in product((False, True), (False, True)):
        x, y = a.T if turn_a else a, b.T if turn_b else b
        if a.ndim == d.ndim == 2 and x.shape[1] == y.shape[0] and d.shape == (len(x), y.shape[1]):
            turned = ["A"] * turn_a + ["B"] * turn_b
            fitting.append((np.ascontiguousarray(x), np.ascontiguousarray(y), turned))
    if not fitting:
        raise ValueError(
            f"{shown}: M×K, K×N and M×N are needed, or a transpose of A or B{_exchanged(a, b, d)}"
        )
    return np.ascontiguousarray(d), fitting


def _exchanged(a: CodeArray, b: CodeArray, d: CodeArray) -> str:
    """Returns a hint where one of the factors has the shape of the product of the other two matrices."""
    for words, of, x, y in (("A, B, D", b, d, a), ("A, D, B", a, d, b), ("B, A, D", b, a, d)):
        if of.ndim == x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] and of.shape == (len(x), y.shape[1]):
            return f"; they fit in the order {words}, and D is to be the first"
    return ""
