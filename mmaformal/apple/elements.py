"""Which elements of Z an instruction of Apple AMX writes, of which lanes of X and Y each is made, and what is made.

Source: corsix/amx, vecfp, matfp, mac16, vecint, matint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mmaformal.apple import tables
from mmaformal.apple.registers import ROW, Bytes, Flags, Int64Codes, codes_in, indexed, row_at, shuffled, used
from mmaformal.display import ShortRepr
from mmaformal.encodings.amx_lanes import IEEE_BF16, Accumulation, FloatKind, Reduction
from mmaformal.encodings.amx_lanes import executable as lanes
from mmaformal.encodings.executable.ieee import IEEE, convert_exactly
from mmaformal.formats import Format

RHO = IEEE | {"bf16": IEEE_BF16}
_PLACES = np.arange(ROW)


class Operation(Protocol):
    """An operation on lanes x and y and an element z."""

    def __call__(self, x: Int64Codes, y: Int64Codes, z: Int64Codes, /) -> Int64Codes: ...


class FloatingOperation(NamedTuple):
    """A floating-point operation on lanes of a format, widened to that of Z, a NaN as the default one."""

    kind: FloatKind
    source: Format
    target: Format

    def __call__(self, x: Int64Codes, y: Int64Codes, z: Int64Codes) -> Int64Codes:
        u, v = (convert_exactly(code, self.source, self.target) for code in (x, y))
        found: Int64Codes = lanes.floating(self.kind, u, v, z, RHO[self.target.name])
        return found


class IntegerOperation(NamedTuple):
    """An integer operation with its shift."""

    on: Accumulation
    shift: int

    def __call__(self, x: Int64Codes, y: Int64Codes, z: Int64Codes) -> Int64Codes:
        found: Int64Codes = lanes.accumulated(self.on, x, y, z, self.shift).result
        return found


class Reduced(NamedTuple):
    """A shift of elements of Z, saturating or not."""

    on: Reduction
    shift: int

    def __call__(self, x: Int64Codes, y: Int64Codes, z: Int64Codes) -> Int64Codes:
        found: Int64Codes = lanes.reduced(self.on, z, self.shift)
        return found


def _zeros(x: Int64Codes, y: Int64Codes, z: Int64Codes) -> Int64Codes:
    """Zeros, where what an operation makes is overridden."""
    return z * 0


@dataclass(frozen=True, repr=False)
class Elements(ShortRepr):
    """Elements of Z that are written, by their numbers of so many bytes, row by row."""

    operation: Operation
    x: Int64Codes
    y: Int64Codes
    places: Int64Codes
    size: int


class Sides(NamedTuple):
    """X, Y and the operand's fields."""

    x: Bytes
    y: Bytes
    on: dict[str, int]
    generation: int


# ---- lanes ------------------------------------------------------------------------------------------


def _lanes(sides: Sides, side: str, offset: int, size: int) -> Bytes:
    """The row of X or of Y that an instruction takes: loaded, indexed, shuffled."""
    on, pool = sides.on, getattr(sides, side)
    row = row_at(pool, offset)
    if on["indexed"] and on["indexed_y"] == (side == "y"):
        start = ROW * on["table"]
        row = indexed(row, pool[start : start + ROW], 4 if on["four_bits"] else 2, size)
    return shuffled(row, on[f"{side}_shuffle"], size)


def _alu(on: dict[str, int]) -> int:
    return 0 if on["indexed"] else on["alu"]


class _Pass(NamedTuple):
    """One of the vectors that vecfp or vecint computes: its row of Z, and where it reads."""

    z_row: int
    x_offset: int
    y_offset: int


class _Vectors(NamedTuple):
    """Returns what `several` and `broadcast` of vecfp and vecint say."""

    passes: list[_Pass]
    mode: int  #: of enabling
    value: int
    x_lane_0: bool


def _vectors(sides: Sides, sizes: tuple[int, int]) -> _Vectors:
    """One vector, or from M2 on two or four."""
    on = sides.on
    x_offset, y_offset, row = on["x_offset"], on["y_offset"], on["z_row"]
    if sides.generation < 2 or not on["several"]:
        return _Vectors([_Pass(row, x_offset, y_offset)], on["enable_mode"], on["enable_value"], False)
    kind, step = on["broadcast"], 16 if on["four"] else 32
    mode, value = (1, 0) if kind == 7 else (0, {1: 3, 4: 4, 5: 5}.get(kind, 0))
    steps = []
    for side, still, size in (("x", (2, 6), sizes[0]), ("y", (3, 7), sizes[1])):
        by = 0 if kind in still else ROW
        if on["indexed"] and on["indexed_y"] == (side == "y"):
            by = by * (4 if on["four_bits"] else 2) // (8 * size)
        steps.append(by)
    if sides.generation >= 4:
        x_offset &= _aligned(on, "x", kind == 6, sizes[0], step)
        y_offset &= _aligned(on, "y", kind == 7, sizes[1], step)
    passes = [
        _Pass(z_row, x_offset + n * steps[0], y_offset + n * steps[1])
        for n, z_row in enumerate(range(row % step, ROW, step))
    ]
    return _Vectors(passes, mode, value, kind == 6)


def _aligned(on: dict[str, int], side: str, one_lane: bool, size: int, step: int) -> int:
    """The mask of an offset's bits that an M4 reads, of several vectors."""
    if on["indexed"] and on["indexed_y"] == (side == "y"):
        return -ROW | -(512 * (4 if on["four_bits"] else 2) // (size * step))
    return -size if one_lane else -ROW


# ---- vectors ------------------------------------------------------------------------------------------


def vecfp(sides: Sides) -> Iterator[Elements]:
    """Return what vecfp writes."""
    on = sides.on
    kind = tables.FLOAT_MODES.get(_alu(on))
    if on["zero"] or kind is None or (sides.generation < 2 and _alu(on) in tables.FROM_M2["modes"]):
        return
    source, target = _float_width(sides)
    size, wide = source.storage_bits // 8, target.storage_bits // 8
    yield from _vector(sides, (size, size, wide), FloatingOperation(kind, source, target), value_bits=5)


def vecint(sides: Sides) -> Iterator[Elements]:
    """Return what vecint writes."""
    on, alu = sides.on, _alu(sides.on)
    if on["zero"]:
        return
    if alu == tables.REDUCE:
        bits, saturated = tables.VECINT_REDUCED.get(on["width"], (16, 16))
        size = bits // 8
        for at in (vectors := _vectors(sides, (1, 1))).passes:
            every = vectors.mode == 1
            flags = np.full(ROW, True) if every else used(vectors.mode, vectors.value, size)
            chosen = _PLACES[::size][flags[::size]]
            yield _of_z(_reduction(on, bits, saturated), vectors, (at.z_row * ROW + chosen) // size, size)
        return
    if alu not in tables.VECINT_MODES or (sides.generation < 2 and alu >= 10):
        return
    bits3 = tables.integer_widths("vecint", alu, on["width"], sides.generation)
    x, y, z = (bits // 8 for bits in bits3)
    yield from _vector(sides, (x, y, z), _accumulated(on, alu, bits3))


def _vector(
    sides: Sides, sizes: tuple[int, int, int], operation: Operation, value_bits: int = 6
) -> Iterator[Elements]:
    """Lanes i of X and Y meet at one element; where Z is wider, rows in turn take lanes in turn."""
    x_size, y_size, wide = sizes
    vectors = _vectors(sides, (x_size, y_size))
    mode, value = vectors.mode, vectors.value & ((1 << value_bits) - 1)
    step = min(x_size, y_size)
    spread = wide // step - 1
    i = _PLACES[::step]
    for at in vectors.passes:
        x, y = _lanes(sides, "x", at.x_offset, x_size), _lanes(sides, "y", at.y_offset, y_size)
        in_x, in_y = i & (0 if vectors.x_lane_0 else -x_size), i & -y_size
        chosen = np.full(len(i), True)
        if mode == 1:
            in_y = np.full(len(i), value * y_size % ROW)
        else:
            chosen = used(mode, value, x_size)[in_x] & used(mode, value, y_size)[in_y]
        if mode == 0 and value in (4, 5):
            x, y = (x * 0, y) if value == 4 else (x, y * 0)
        rows = (at.z_row & ~spread) | (i // step & spread)
        yield Elements(
            _zeros if (mode, value) == (0, 3) else operation,
            codes_in(x, x_size)[in_x[chosen] // x_size],
            codes_in(y, y_size)[in_y[chosen] // y_size],
            ((rows * ROW + i) // wide)[chosen],
            wide,
        )


def _float_width(sides: Sides) -> tuple[Format, Format]:
    width = sides.on["width"]
    if sides.generation < 2 and width in tables.FROM_M2["widths"]:
        return tables.FLOAT_WIDTH
    return tables.FLOAT_WIDTHS.get(width, tables.FLOAT_WIDTH)


def _accumulated(on: dict[str, int], alu: int, bits: tuple[int, int, int]) -> IntegerOperation:
    mode = tables.INTEGER_MODES[alu]
    shift = 0 if mode.term == "equal bits" else on["shift"]
    return IntegerOperation(
        mode._replace(
            x_bits=bits[0],
            y_bits=bits[1],
            z_bits=bits[2],
            x_signed=bool(on["x_signed"]),
            y_signed=bool(on["y_signed"]),
        ),
        shift,
    )


def _reduction(on: dict[str, int], bits: int, saturated: int) -> Reduced:
    flags = (bool(on[each]) for each in ("z_signed", "signed_range", "rounding", "saturate"))
    return Reduced(Reduction(bits, bits, saturated, *flags), on["shift"])


def _of_z(operation: Reduced, vectors: _Vectors, places: Int64Codes, size: int) -> Elements:
    nothing = np.zeros(len(places), np.int64)
    over = (vectors.mode, vectors.value) == (0, 3)
    return Elements(_zeros if over else operation, nothing, nothing, places, size)


# ---- matrices ------------------------------------------------------------------------------------------


def _matrix(
    x: Bytes,
    y: Bytes,
    enable: tuple[Flags, Flags],
    sizes: tuple[int, int, int],
    z_row: int,
    operation: Operation,
) -> Elements:
    """Lane i of X and lane j of Y meet at one element; where Z is wider, rows in turn take lanes of X in turn."""
    x_size, y_size, wide = sizes
    i = _PLACES[::x_size]
    i = i[enable[0][i]]
    j = _PLACES[:: wide if x_size == 1 else x_size]
    j = j[enable[1][j]]
    spread = wide // x_size - 1
    first = (j & -x_size) | (z_row & (x_size - 1))
    rows = (first[:, None] & ~spread) | (i // x_size & spread)
    u, v = codes_in(x, x_size)[i // x_size], codes_in(y, y_size)[j // y_size]
    shape = rows.shape
    return Elements(
        operation,
        np.broadcast_to(u, shape).reshape(-1),
        np.broadcast_to(v[:, None], shape).reshape(-1),
        ((rows * ROW + i) // wide).reshape(-1),
        wide,
    )


def matfp(sides: Sides) -> Iterator[Elements]:
    """Return what matfp writes."""
    on, alu = sides.on, _alu(sides.on)
    if on["zero"] or alu not in (0, 1, 4):
        return
    source, target = _float_width(sides)
    size, wide = source.storage_bits // 8, target.storage_bits // 8
    x, y = (_lanes(sides, side, on[f"{side}_offset"], size) for side in "xy")
    modes = ((on["enable_mode"], on["enable_value"] & 31), (on["y_enable_mode"], on["y_enable_value"]))
    x, y = (row * 0 if mode in ((0, 4), (0, 5)) else row for row, mode in zip((x, y), modes, strict=True))
    flags = (used(*modes[0], size), used(*modes[1], size))
    operation = _zeros if (0, 3) in modes else FloatingOperation(tables.FLOAT_MODES[alu], source, target)
    yield _matrix(x, y, flags, (size, size, wide), on["z_row"], operation)


def matint(sides: Sides) -> Iterator[Elements]:
    """Return what matint writes."""
    on = sides.on
    if on["zero"] or (on["indexed_bytes"] and not on["indexed"]):
        return
    alu = 8 * on["indexed_bytes"] if on["indexed"] else on["alu"]
    mode, of_y = (on["enable_mode"], on["enable_value"]), on["enable_y"]
    if alu == tables.REDUCE:
        bits, saturated = tables.MATINT_REDUCED.get(on["width"], (16, 16))
        size = bits // 8
        place, flags = _PLACES[::size], used(*mode, size)
        row, column = np.meshgrid(place, place, indexing="ij")
        chosen = flags[row if of_y else column]
        rows = row | (on["z_row"] & (size - 1))
        alone = _Vectors([], *mode, False)
        places = ((rows * ROW + column) // size)[chosen]
        yield _of_z(_reduction(on, bits, saturated), alone, places, size)
        return
    if alu not in tables.MATINT_MODES:
        return
    bits3 = tables.integer_widths("matint", alu, on["width"], sides.generation)
    x_size, y_size, wide = (each // 8 for each in bits3)
    x, y = _lanes(sides, "x", on["x_offset"], x_size), _lanes(sides, "y", on["y_offset"], y_size)
    if mode in ((0, 4), (0, 5)):
        x, y = (x, y * 0) if of_y else (x * 0, y)
    every = np.full(ROW, True)
    enable = (every, used(*mode, y_size)) if of_y else (used(*mode, x_size), every)
    operation = _zeros if mode == (0, 3) else _accumulated(on, alu, bits3)
    yield _matrix(x, y, enable, (x_size, y_size, wide), on["z_row"], operation)


def mac16(sides: Sides) -> Iterator[Elements]:
    """Return what mac16 writes."""
    on = sides.on
    x, y = row_at(sides.x, on["x_offset"]), row_at(sides.y, on["y_offset"])
    wide = 4 if on["z_i32"] and not on["vector"] else 2
    term = {(0, 0): "xy", (0, 1): "x", (1, 0): "y", (1, 1): "0"}[on["skip_x"], on["skip_y"]]
    bits = {f"{side}_bits": 8 if on[f"{side}_i8"] else 16 for side in "xy"}
    mode = Accumulation(term, **bits, z_bits=8 * wide, x_signed=True, y_signed=True, with_z=not on["skip_z"])  # type: ignore[arg-type]
    enable = [used(on[f"{s}_enable_mode"], on[f"{s}_enable_value"], 2, several_zeros=False) for s in "xy"]
    operation = IntegerOperation(mode, on["shift"])
    if not on["vector"]:
        yield _low_bytes(_matrix(x, y, (enable[0], enable[1]), (2, 2, wide), on["z_row"], operation), mode)
        return
    chosen = enable[0][::2]
    places = np.arange(ROW // 2)[chosen] + ROW // 2 * on["z_row"]
    yield _low_bytes(Elements(operation, codes_in(x, 2)[chosen], codes_in(y, 2)[chosen], places, wide), mode)


def _low_bytes(found: Elements, on: Accumulation) -> Elements:
    """Lanes cut to the bits that the operation takes."""
    x, y = found.x & ((1 << on.x_bits) - 1), found.y & ((1 << on.y_bits) - 1)
    return Elements(found.operation, x, y, found.places, found.size)


ARITHMETIC = {"vecfp": vecfp, "vecint": vecint, "matfp": matfp, "matint": matint, "mac16": mac16}
