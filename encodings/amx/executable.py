"""Apple AMX, executable: fma16, fma32 and fma64 act on a state.  Source: corsix/amx, "fma16, fma32, fma64".

X and Y are pools of eight registers of 64 bytes, each read as a circular buffer of 512 bytes from any offset; Z has 64
rows of 64 bytes.  An instruction takes N = 64 / (bytes of an element) lanes of X and of Y:

- vector mode: `Z[z_row][i] += X[i]·Y[i]`;
- matrix mode: `Z[j·(64/N) + z_row mod (64/N)][i] += X[i]·Y[j]`;
- fma16 in matrix mode onto fp32: `Z[2j + i mod 2].f32[i div 2] += X[i]·Y[j]`.

Whatever the operand, each element of Z is one function of a lane of X, one of Y and itself; of which, and whether it
is written, follows from the operand.  So there is no branch on data, as in all of this encoding: a *byte* is a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Flag, Lane, invert, where
from mmaformal.encodings.executable.ieee import IEEE, convert_exactly
from mmaformal.encodings.sfma import executable as sfma
from mmaformal.formats import Format, fp16, fp32, fp64
from mmaformal.rounding import Conversion

POOL = 512  #: bytes of X, and of Y
ROWS = 64  #: of Z, of as many bytes
FORMATS = {"fma16": fp16, "fma32": fp32, "fma64": fp64}  #: of an instruction's elements


class Enable(NamedTuple):
    """Which lanes take part."""

    mode: Lane
    value: Lane


@dataclass(frozen=True)
class Fields:
    """The fields of an operand, each a lane."""

    y_offset: Lane  #: bytes
    x_offset: Lane
    z_row: Lane
    skip_z: Flag
    skip_y: Flag
    skip_x: Flag
    y_enable: Enable
    x_enable: Enable
    y_f16: Flag
    x_f16: Flag
    z_f32: Flag
    vector: Flag


class Skips(NamedTuple):
    """Flags of what is skipped of x·y + z, as `Fields` has it."""

    skip_x: Flag
    skip_y: Flag
    skip_z: Flag


def _bits(operand: Lane, low: int, width: int) -> Lane:
    return (operand >> low) & ((1 << width) - 1)


def _bit(operand: Lane, place: int) -> Flag:
    return _bits(operand, place, 1) == 1


def fields(operand: Lane) -> Fields:
    """Return the fields of an operand's 64 bits, given as a signed lane."""
    return Fields(
        y_offset=_bits(operand, 0, 9),
        x_offset=_bits(operand, 10, 9),
        z_row=_bits(operand, 20, 6),
        skip_z=_bit(operand, 27),
        skip_y=_bit(operand, 28),
        skip_x=_bit(operand, 29),
        y_enable=Enable(_bits(operand, 37, 2), _bits(operand, 32, 5)),
        x_enable=Enable(_bits(operand, 46, 2), _bits(operand, 41, 5)),
        y_f16=_bit(operand, 60),
        x_f16=_bit(operand, 61),
        z_f32=_bit(operand, 62),
        vector=_bit(operand, 63),
    )


def enabled(enable: Enable, lane: int, lanes: int) -> Flag:
    """Whether a lane takes part, of so many; values count them modulo their number."""
    mode, value = enable
    number = value & (lanes - 1)
    parity = (value == 1) if lane % 2 else (value == 2)
    listed = (value == 0) | parity
    first, last = (number == 0) | (number > lane), (number == 0) | (number >= lanes - lane)
    in_range = ((mode == 2) & first) | ((mode == 3) & last)
    return ((mode == 0) & listed) | ((mode == 1) & (number == lane)) | in_range


# ---- registers -----------------------------------------------------------------------------------------------------


def rotated(pool: Sequence[Lane], offset: Lane) -> list[list[Lane]]:
    """A circular buffer from an offset on, the last stage 64 bytes: stage by stage, as far as each is still needed."""
    stages = [list(pool)]
    for place in range(len(pool).bit_length() - 2, -1, -1):
        flag, found, by = _bit(offset, place), stages[-1], 1 << place
        needed = min(len(pool), ROWS + by - 1)
        stages.append([where(flag, found[(i + by) % len(found)], found[i]) for i in range(needed)])
    return stages


def element(row: Sequence[Lane], number: int, size: int) -> Lane:
    """The code of `size` bytes, the first one the lowest; of 8 bytes as a signed lane."""
    parts = row[number * size : (number + 1) * size]
    code = parts[-1] if size < 8 else where(parts[-1] > 127, parts[-1] - 256, parts[-1])
    for part in reversed(parts[:-1]):
        code = code * 256 + part
    return code


def as_bytes(code: Lane, size: int) -> list[Lane]:
    return [(code >> (8 * i)) & 255 for i in range(size)]


# ---- arithmetic ----------------------------------------------------------------------------------------------------


class Alu(NamedTuple):
    """The interfaces of one element's arithmetic, in order."""

    x: Lane  #: the factors and the addend, something in the place of what is skipped
    y: Lane
    z: Lane
    fma: sfma.SfmaStep
    result: Lane


def alu(x: Lane, y: Lane, z: Lane, on: Fields | Skips, rho: Conversion) -> Alu:
    """Return what one element of Z becomes: x·y + z without what is skipped.

    Without z the addend is −0, to which a product adds up with its own sign; without y or x the other factor is 1.
    """
    fmt = rho.format
    one = fmt.bias << fmt.fraction_bits
    minus_zero = -(1 << 63) if fmt is fp64 else 1 << (fmt.storage_bits - 1)
    u, v, w = where(on.skip_x, one, x), where(on.skip_y, one, y), where(on.skip_z, minus_zero, z)
    fma = sfma.step(rho, u, v, w)
    alone = where(on.skip_y, x, y)
    either = where(on.skip_z & (on.skip_x | on.skip_y), alone, fma.result)
    return Alu(u, v, w, fma, where(on.skip_x & on.skip_y, where(on.skip_z, z * 0, z), either))


def widened(code: Lane) -> Lane:
    """An fp16 code as one of fp32; a NaN as the default one."""
    return convert_exactly(code, fp16, fp32)


# ---- instructions --------------------------------------------------------------------------------------------------


class State(NamedTuple):
    """The bytes of X, Y and Z, each a lane."""

    x: Sequence[Lane]
    y: Sequence[Lane]
    z: Sequence[Lane]


class Lanes(NamedTuple):
    """The lanes that an instruction reads of X or of Y, in order."""

    stages: list[list[Lane]]  #: bytes; the last stage has the 64 that are read
    codes: list[Lane]
    widened: list[Lane]  #: of fma16 and fma32, the fp16 codes as fp32
    taken: list[Lane]  #: the operands of elements as wide as the instruction's
    enabled: list[Flag]


@dataclass(frozen=True)
class LaneElement:
    """One element of Z: the lanes that it becomes a function of, and whether it is written."""

    x: Lane
    y: Lane
    z: Lane
    written: Flag


class Grid(NamedTuple):
    """All elements of Z, row by row; what each becomes, if it is written; and the bytes of Z after."""

    elements: list[LaneElement]
    codes: Sequence[Lane]
    after: list[Lane]


@dataclass(frozen=True)
class AmxTrace:
    """The interfaces of one instruction, in order."""

    on: Fields
    x: Lanes
    y: Lanes
    rows: list[Flag]  #: which rows may change, but for fma16 onto fp32
    grid: Grid
    pairs: Grid | None  #: of fma16 onto fp32, whether it is that or not
    state: State


#: A function of elements that are written: what each becomes, by its three lanes and what is skipped.
LaneUnit = Callable[[Conversion, Fields, Sequence[LaneElement]], Sequence[Lane]]


def one_by_one(rho: Conversion, on: Fields, elements: Sequence[LaneElement]) -> list[Lane]:
    return [alu(each.x, each.y, each.z, on, rho).result for each in elements]


def execute(name: str, state: State, operand: Lane, unit: LaneUnit = one_by_one) -> AmxTrace:
    """fma16, fma32 or fma64 with an operand, a signed lane of 64 bits."""
    on, fmt = fields(operand), FORMATS[name]
    x = _lanes(name, state.x, on.x_offset, on.x_f16, on.x_enable)
    y = _lanes(name, state.y, on.y_offset, on.y_f16, on.y_enable)
    stride = ROWS // len(x.codes)
    rows = [changes(on, r, stride) for r in range(ROWS)]
    grid = _grid(state.z, _elements(on, rows, state.z, x, y), on, fmt, unit)
    if name != "fma16":
        return AmxTrace(on, x, y, rows, grid, None, State(state.x, state.y, grid.after))
    pairs = _grid(state.z, _pairs(state.z, x, y), on, fp32, unit)
    mixed = on.z_f32 & invert(on.vector)
    z = [where(mixed, u, v) for u, v in zip(pairs.after, grid.after, strict=True)]
    return AmxTrace(on, x, y, rows, grid, pairs, State(state.x, state.y, z))


def changes(on: Fields, row: int, stride: int) -> Flag:
    """Whether a row is z_row, or in matrix mode one of each `stride`."""
    congruent = (on.z_row & (stride - 1)) == row % stride
    return (on.vector & (on.z_row == row)) | (invert(on.vector) & congruent)


def _lanes(name: str, pool: Sequence[Lane], offset: Lane, half: Flag, enable: Enable) -> Lanes:
    size = FORMATS[name].storage_bits // 8
    count, stages = ROWS // size, rotated(pool, offset)
    codes = [element(stages[-1], i, size) for i in range(count)]
    wide = [] if name == "fma64" else [widened(code & 0xFFFF) for code in codes]
    taken = [where(half, u, v) for u, v in zip(wide, codes, strict=True)] if name == "fma32" else codes
    return Lanes(stages, codes, wide, taken, [enabled(enable, i, count) for i in range(count)])


def _grid(z: Sequence[Lane], elements: list[LaneElement], on: Fields, fmt: Format, unit: LaneUnit) -> Grid:
    """Return the elements of a format, the codes that they become, and the bytes of Z after that."""
    size, codes = fmt.storage_bits // 8, unit(IEEE[fmt.name], on, elements)
    after: list[Lane] = []
    for n, (each, code) in enumerate(zip(elements, codes, strict=True)):
        old = z[n * size : (n + 1) * size]
        after += [where(each.written, new, byte) for new, byte in zip(as_bytes(code, size), old, strict=True)]
    return Grid(elements, codes, after)


def _elements(on: Fields, rows: list[Flag], z: Sequence[Lane], x: Lanes, y: Lanes) -> list[LaneElement]:
    """Return elements as wide as the instruction's lanes, in vector mode and in matrix mode."""
    count = len(x.taken)
    size = stride = ROWS // count  # as many rows for each lane of Y as an element has bytes
    in_y = [on.vector | flag for flag in y.enabled]
    ys = [[where(on.vector, y.taken[i], other) for i in range(count)] for other in y.taken]
    return [
        LaneElement(
            x.taken[i],
            ys[r // stride][i],
            element(z, r * count + i, size),
            rows[r] & in_y[r // stride] & x.enabled[i],
        )
        for r in range(ROWS)
        for i in range(count)
    ]


def _pairs(z: Sequence[Lane], x: Lanes, y: Lanes) -> list[LaneElement]:
    """Return the elements of fp32: even rows of Z take even lanes of X, odd rows odd ones."""
    count = len(x.widened)
    return [
        LaneElement(x.widened[i], y.widened[j], element(z, n, 4), x.enabled[i] & y.enabled[j])
        for n, (i, j) in enumerate(
            (2 * place + r % 2, r // 2) for r in range(ROWS) for place in range(count // 2)
        )
    ]
