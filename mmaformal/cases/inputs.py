"""Inputs of a dot product-add: the codes of one case, many cases as arrays, and cases as bit-vector terms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, SupportsInt

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.formats import Format
from mmaformal.solver.asking import constants_of
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Codes(ShortRepr):
    """The codes of one case: K of a and of b, one c, and one scale of each side per block, if there are any."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()

    def flat(self) -> list[int]:
        """All of them in a row."""
        return [*self.a, *self.b, self.c, *self.scale_a, *self.scale_b]

    def to_json(self) -> dict[str, object]:
        """Codes as hexadecimal strings."""
        sides = {"a": self.a, "b": self.b, "scale_a": self.scale_a, "scale_b": self.scale_b}
        told: dict[str, object] = {name: [f"{x:#x}" for x in side] for name, side in sides.items() if side}
        return {**told, "c": f"{self.c:#x}"}

    @staticmethod
    def from_json(told: Mapping[str, object]) -> Codes:
        """Return the codes that `to_json` gave.  Raises ValueError for anything else."""

        def side(name: str) -> tuple[int, ...]:
            codes = told.get(name, [])
            if not isinstance(codes, list):
                raise ValueError(f"{name}: expected codes in a list, not {codes!r}")
            return tuple(int(str(x), 16) for x in codes)

        return Codes(side("a"), side("b"), int(str(told.get("c")), 16), side("scale_a"), side("scale_b"))

    @property
    def text(self) -> str:
        """`a[1]·b[1] = 0x3c00·0x3c00, c = 0x0`: without the products of two codes 0."""
        pairs = [(k, x, y) for k, (x, y) in enumerate(zip(self.a, self.b, strict=True)) if x or y]
        sides = (("scale_a", self.scale_a), ("scale_b", self.scale_b))
        scales = [f"{name} = {' '.join(map(hex, side))}" for name, side in sides if side]
        return ", ".join(
            [*(f"a[{k}]·b[{k}] = {x:#x}·{y:#x}" for k, x, y in pairs), f"c = {self.c:#x}", *scales]
        )

    def __str__(self) -> str:
        """All of them, for an error that says on what codes something went wrong."""
        sides = {"a": self.a, "b": self.b, "scale_a": self.scale_a, "scale_b": self.scale_b}
        told = (f"{name} = {' '.join(map(hex, side))}" for name, side in sides.items() if side)
        return f"{', '.join(told)}, c = {self.c:#x}"


class HasCodes(Protocol):
    """A case whose codes are numbers or arrays: a witness, a row."""

    @property
    def a(self) -> Iterable[int]: ...
    @property
    def b(self) -> Iterable[int]: ...
    @property
    def c(self) -> SupportsInt: ...
    @property
    def scale_a(self) -> Iterable[int]: ...
    @property
    def scale_b(self) -> Iterable[int]: ...


def plain_codes(case: HasCodes) -> Codes:
    """Return the codes of a case as plain integers."""
    a, b, scale_a, scale_b = (tuple(map(int, side)) for side in (case.a, case.b, case.scale_a, case.scale_b))
    return Codes(a, b, int(case.c), scale_a, scale_b)


@dataclass(frozen=True, repr=False)
class Columns(ShortRepr):
    """Many cases by columns: each code is an array of all cases."""

    a: tuple[NDArray[np.uint64], ...]
    b: tuple[NDArray[np.uint64], ...]
    c: NDArray[np.uint64]
    scale_a: tuple[NDArray[np.uint64], ...]
    scale_b: tuple[NDArray[np.uint64], ...]

    def flat(self) -> list[NDArray[np.uint64]]:
        """All of them in a row."""
        return [*self.a, *self.b, self.c, *self.scale_a, *self.scale_b]


def one(fmt: Format) -> int:
    """The code of 1, or of the power of two nearest to it."""
    if fmt.is_integer:
        return 1
    return min(fmt.bias, fmt.max_exponent + fmt.bias) << (fmt.fraction_bits + fmt.ignored_low_bits)


def zeros(spec: DotAdd) -> Codes:
    """All codes 0, scales of 1."""
    scales = (one(spec.scale_format),) * spec.scales if spec.scale_format is not None else ()
    return Codes((0,) * spec.k, (0,) * spec.k, 0, scales, scales)


def with_products(codes: Codes, products: Mapping[int, tuple[int, int]]) -> Codes:
    """Return the case with some pairs (a_k, b_k) replaced."""
    a, b = list(codes.a), list(codes.b)
    for k, (x, y) in products.items():
        a[k], b[k] = x, y
    return replace(codes, a=tuple(a), b=tuple(b))


@dataclass(frozen=True, repr=False)
class Rows(ShortRepr):
    """Many cases, one per row: a, b of shape (n, K), c of (n,), scales of (n, K / block); unsigned 64-bit."""

    a: NDArray[np.uint64]
    b: NDArray[np.uint64]
    c: NDArray[np.uint64]
    scale_a: NDArray[np.uint64]
    scale_b: NDArray[np.uint64]

    @staticmethod
    def of(cases: Sequence[Codes]) -> Rows:
        names = ("a", "b", "c", "scale_a", "scale_b")
        return Rows(*(np.array([getattr(x, name) for x in cases], np.uint64) for name in names))

    @property
    def codes(self) -> Columns:
        """These cases by columns: each code is an array of all rows."""
        a, b, scale_a, scale_b = (tuple(x.T) for x in (self.a, self.b, self.scale_a, self.scale_b))
        return Columns(a, b, self.c, scale_a, scale_b)

    @staticmethod
    def join(parts: Sequence[Rows]) -> Rows:
        """All of several, of which there is one at least."""
        names = ("a", "b", "c", "scale_a", "scale_b")
        return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def at(self, where: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Rows:
        """Some of them."""
        return Rows(*(side[where] for side in (self.a, self.b, self.c, self.scale_a, self.scale_b)))

    def __getitem__(self, row: int) -> Codes:
        def ints(x: NDArray[np.uint64]) -> tuple[int, ...]:
            return tuple(int(v) for v in x[row])

        return Codes(ints(self.a), ints(self.b), int(self.c[row]), ints(self.scale_a), ints(self.scale_b))

    def __len__(self) -> int:
        return len(self.c)

    def cases(self) -> list[Codes]:
        return [self[row] for row in range(len(self))]


@dataclass(frozen=True, repr=False)
class Inputs(ShortRepr):
    """A case as bit-vector terms of each format's storage width: constants to solve for, or values."""

    a: tuple[z3.BitVecRef, ...]
    b: tuple[z3.BitVecRef, ...]
    c: z3.BitVecRef
    scale_a: tuple[z3.BitVecRef, ...] = ()
    scale_b: tuple[z3.BitVecRef, ...] = ()

    def flat(self) -> list[z3.BitVecRef]:
        """All of them in a row."""
        return [*self.a, *self.b, self.c, *self.scale_a, *self.scale_b]

    def constants(self) -> dict[str, int]:
        """Name → width of the constants to solve for."""
        return {str(c): c.size() for x in self.flat() for c in constants_of(x)}

    def codes(self, spec: DotAdd, model: Mapping[str, int], *, ignored: bool = False) -> Codes:
        """Return the codes that a model stands for.

        Storage bits that the unit ignores are 0 in the codes that the model chose, unless `ignored` keeps them.
        """

        def code(x: z3.BitVecRef, fmt: Format) -> int:
            values = [(c, z3.BitVecVal(model[str(c)], c.size())) for c in constants_of(x)]
            if not values:
                return z3.simplify(x).as_long()  # type: ignore[no-any-return]
            value: int = z3.simplify(z3.substitute(x, *values)).as_long()
            if ignored:
                return value
            used = value >> fmt.ignored_low_bits << fmt.ignored_low_bits
            top = fmt.has_zero and not fmt.signed and not fmt.is_whole  # the top bit, of ue4m3
            return used & (fmt.codes // 2 - 1) if top else used

        scale = spec.scale_format
        return Codes(
            tuple(code(x, spec.a_format) for x in self.a),
            tuple(code(x, spec.b_format) for x in self.b),
            code(self.c, spec.c_format),
            tuple(code(x, scale) for x in self.scale_a) if scale else (),
            tuple(code(x, scale) for x in self.scale_b) if scale else (),
        )


def symbolic_inputs(
    spec: DotAdd,
    pinned: Mapping[str, int] | None = None,
    *,
    zeros: Collection[str] = (),
    positive: Collection[str] = (),
    bare: bool = False,
) -> Inputs:
    """Constants named a0, a1, …, b0, …, c, sa0, …, sb0, … but for those in `pinned`, which have that value.

    Of those in `zeros` only the sign is free; those in `positive` have a sign of 0.  `bare` leaves only sign and
    exponent field free (the trailing significand is 0): powers of two, zeros, infinities.
    """
    pinned = pinned or {}

    def term(name: str, fmt: Format) -> z3.BitVecRef:
        bits, low = fmt.storage_bits, fmt.fraction_bits + fmt.ignored_low_bits
        if name in pinned:
            return z3.BitVecVal(pinned[name], bits)
        if name in zeros:
            return z3.Concat(z3.BitVec(name, 1), z3.BitVecVal(0, bits - 1))
        parts: list[z3.BitVecRef] = [z3.BitVecVal(0, 1)] if name in positive else []
        low = low if bare else 0
        parts.append(z3.BitVec(name, bits - len(parts) - low))
        if low:
            parts.append(z3.BitVecVal(0, low))
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]

    blocks = spec.k // spec.scale_block if spec.scale_format else 0
    scale = spec.scale_format
    return Inputs(
        tuple(term(f"a{k}", spec.a_format) for k in range(spec.k)),
        tuple(term(f"b{k}", spec.b_format) for k in range(spec.k)),
        term("c", spec.c_format),
        tuple(term(f"sa{i}", scale) for i in range(blocks)) if scale else (),
        tuple(term(f"sb{i}", scale) for i in range(blocks)) if scale else (),
    )
