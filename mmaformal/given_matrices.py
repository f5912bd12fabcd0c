"""Matrices of one product as people have them: D, A, B and C as codes, whatever holds them and however they lie.

Floats of a format's own type, wider floats whose elements are numbers of it, bit patterns; a factor that fits, or gives
D, only as its transpose is taken so, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import FORMATS, Format, format_called, fp32, fp64
from mmaformal.gemm import holds, rounded, values
from mmaformal.operands import Matrix, as_operand, float_format, is_tensor
from mmaformal.structures import Codes, exactly

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


def codes_of(x: Matrix, fmt: Format, name: str) -> Codes:
    """The codes of a matrix of a format: of its floats, of wider floats that are all numbers of it, of bit patterns.

    Raises ValueError for a wider float that is no number of the format, and for what is no array of its codes.
    """
    given = float_format(x)
    if given is not None and given != fmt and holds(given, fmt):
        wide = as_operand(x, given, name).codes
        floats = values(wide, given, fp32 if holds(fp32, given) else fp64)
        codes = rounded(floats, fp32 if holds(fp32, given) else fp64, fmt, quiet_nan(fmt))
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


def is_of(codes: Codes, given: Format, fmt: Format) -> bool:
    """Whether codes of a format are all of numbers of a narrower one."""
    try:
        codes_of(codes.view(given.dtype), fmt, "")
    except ValueError:
        return False
    return True


@dataclass(frozen=True, repr=False)
class GivenMatrices(ShortRepr):
    """D (M, N), A (M, K), B (K, N) and C (M, N) as codes."""

    d: Codes
    a: Codes
    b: Codes
    c: Codes | None
    d_format: Format
    a_format: Format
    b_format: Format
    c_format: Format | None
    notes: tuple[str, ...] = ()  #: how they were taken, where not as they were given
    call: tuple[int, int] | None = None  #: rows and columns of one call, where D is of several

    @classmethod
    def of(
        cls,
        D: Matrix,
        A: Matrix,
        B: Matrix,
        C: Matrix | None = None,
        formats: tuple[str | Format | None, ...] = (None, None, None, None),
        call: tuple[int, int] | None = None,
    ) -> GivenMatrices:
        """Read them; formats are of A, B, C and D, None for that of its floats; call: the rows and columns of one call.

        Raises ValueError for shapes that do not fit or are empty, and as `codes_of`.
        """
        given = {"A": A, "B": B, "C": C, "D": D}
        named = {
            name: format_named(fmt, given[name], name)
            for name, fmt in zip(given, formats, strict=True)
            if given[name] is not None
        }
        codes = {name: codes_of(given[name], fmt, name) for name, fmt in named.items()}
        a, b, d, notes = _arranged(codes["A"], codes["B"], codes["D"], named)
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
        return cls(d, a, b, c, named["D"], named["A"], named["B"], named.get("C"), tuple(notes), call)

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, K, N."""
        return len(self.a), self.a.shape[1], self.b.shape[1]

    @property
    def written(self) -> list[str]:
        """Returns D, A, B and C as a program writes them that has them as they were given."""
        turned = {note.split()[0] for note in self.notes if "as its transpose" in note}
        names = ["D", "A", "B"] if self.c is None else ["D", "A", "B", "C"]
        return [f"{name}.T" if name in turned else name for name in names]

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> GivenMatrices:
        """Returns some rows and columns of D, with what they are made of."""
        return GivenMatrices(
            self.d[np.ix_(rows, columns)],
            self.a[rows],
            np.ascontiguousarray(self.b[:, columns]),
            None if self.c is None else self.c[np.ix_(rows, columns)],
            *(self.d_format, self.a_format, self.b_format, self.c_format, self.notes),
        )

    def sums(self) -> tuple[Floats, Floats]:
        """D and C + A·B in float64."""
        d, a, b = (
            values(codes, fmt, fp64)
            for codes, fmt in ((self.d, self.d_format), (self.a, self.a_format), (self.b, self.b_format))
        )
        with np.errstate(all="ignore"):
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


def _arranged(
    a: Codes, b: Codes, d: Codes, formats: dict[str, Format]
) -> tuple[Codes, Codes, Codes, list[str]]:
    """A, B and D as matrices that fit, and what was turned; a factor that gives D as its transpose alone is turned."""
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
    fitting = list[tuple[Codes, Codes, list[str]]]()
    for turn_b, turn_a in product((False, True), (False, True)):
        x, y = a.T if turn_a else a, b.T if turn_b else b
        if a.ndim == d.ndim == 2 and x.shape[1] == y.shape[0] and d.shape == (len(x), y.shape[1]):
            fitting.append((x, y, ["A"] * turn_a + ["B"] * turn_b))
    if not fitting:
        raise ValueError(
            f"{shown}: M×K, K×N and M×N are needed, or a transpose of A or B{_exchanged(a, b, d)}"
        )
    x, y, turned = fitting[0]
    for each in fitting if len(fitting) > 1 else ():
        tried = GivenMatrices(d, *each[:2], None, formats["D"], formats["A"], formats["B"], None)
        if is_near(*looked_at(tried).sums()):
            x, y, turned = each
            break
    notes = [f"{name} is taken as its transpose: D is no A·B of them as they were given" for name in turned]
    return np.ascontiguousarray(x), np.ascontiguousarray(y), np.ascontiguousarray(d), notes


def _exchanged(a: Codes, b: Codes, d: Codes) -> str:
    """Returns a hint where one of the factors has the shape of the product of the other two matrices."""
    for words, of, x, y in (("A, B, D", b, d, a), ("A, D, B", a, d, b), ("B, A, D", b, a, d)):
        if of.ndim == x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0] and of.shape == (len(x), y.shape[1]):
            return f"; they fit in the order {words}, and D is to be the first"
    return ""
