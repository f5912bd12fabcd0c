"""Apple AMX, executable: fma16, fma32 and fma64 act on a state.  Source: corsix/amx, "fma16, fma32, fma64".

X and Y are pools of eight registers of 64 bytes, each read as a circular buffer of 512 bytes from any offset; Z has 64
rows of 64 bytes.  An instruction takes N = 64 / (bytes of an element) lanes of X and of Y:

- vector mode: `Z[z_row][i] += X[i]·Y[i]`;
- matrix mode: `Z[j·(64/N) + z_row mod (64/N)][i] += X[i]·Y[j]`;
- fma16 in matrix mode onto fp32: `Z[2j + i mod 2].f32[i div 2] += X[i]·Y[j]`.

Whatever the operand, each element of Z is one function of a lane of X, one of Y and itself; of which, and whether it
is written, follows from the operand.  So there is no branch on data, as in all of this wing: a *byte* is a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmaformal.algorithms import Conversion
from mmaformal.encodings.executable import sfma
from mmaformal.encodings.executable.blocks import IEEE, Flag, Lane, convert_exactly, invert, where
from mmaformal.formats import Format, fp16, fp32, fp64

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


def bits(operand: Lane, low: int, width: int) -> Lane:
    return (operand >> low) & ((1 << width) - 1)


def bit(operand: Lane, place: int) -> Flag:
    return bits(operand, place, 1) == 1


def fields(operand: Lane) -> Fields:
    """Of the 64 bits of an operand, as a signed lane."""
    return Fields(
        y_offset=bits(operand, 0, 9),
        x_offset=bits(operand, 10, 9),
        z_row=bits(operand, 20, 6),
        skip_z=bit(operand, 27),
        skip_y=bit(operand, 28),
        skip_x=bit(operand, 29),
        y_enable=Enable(bits(operand, 37, 2), bits(operand, 32, 5)),
        x_enable=Enable(bits(operand, 46, 2), bits(operand, 41, 5)),
        y_f16=bit(operand, 60),
        x_f16=bit(operand, 61),
        z_f32=bit(operand, 62),
        vector=bit(operand, 63),
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


# ---- registers -------------------------------------------------------------------------------------------------------


def rotated(pool: Sequence[Lane], offset: Lane) -> list[Lane]:
    """The 64 bytes from an offset on, of a circular buffer: stage by stage, as far as each is still needed."""
    found, size = list(pool), len(pool)
    stages = range(size.bit_length() - 2, -1, -1)
    for stage in stages:
        flag, needed = bit(offset, stage), min(size, ROWS + (1 << stage) - 1)
        found = [where(flag, found[(i + (1 << stage)) % len(found)], found[i]) for i in range(needed)]
    return found[:ROWS]


def element(row: Sequence[Lane], number: int, size: int) -> Lane:
    """The code of `size` bytes, the first one the lowest; of 8 bytes as a signed lane."""
    parts = row[number * size : (number + 1) * size]
    code = parts[-1] if size < 8 else where(parts[-1] > 127, parts[-1] - 256, parts[-1])
    for part in reversed(parts[:-1]):
        code = code * 256 + part
    return code


def as_bytes(code: Lane, size: int) -> list[Lane]:
    return [(code >> (8 * i)) & 255 for i in range(size)]


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def alu(x: Lane, y: Lane, z: Lane, on: Fields, rho: Conversion) -> Lane:
    """What one element of Z becomes: x·y + z without what is skipped.

    Without z the addend is −0, to which a product adds up with its own sign; without y or x the other factor is 1.
    """
    fmt = rho.format
    one = fmt.bias << fmt.fraction_bits
    minus_zero = -(1 << 63) if fmt is fp64 else 1 << (fmt.storage_bits - 1)
    both = on.skip_x & on.skip_y
    sum_ = sfma.step(
        rho, where(on.skip_x, one, x), where(on.skip_y, one, y), where(on.skip_z, minus_zero, z)
    ).result
    alone = where(on.skip_y, x, y)
    either = where(on.skip_z & (on.skip_x | on.skip_y), alone, sum_)
    return where(both, where(on.skip_z, z * 0, z), either)


def widened(code: Lane) -> Lane:
    """An fp16 code as one of fp32; a NaN as the default one."""
    return convert_exactly(code, fp16, fp32)


# ---- instructions ----------------------------------------------------------------------------------------------------


class State(NamedTuple):
    """The bytes of X, Y and Z, each a lane."""

    x: Sequence[Lane]
    y: Sequence[Lane]
    z: Sequence[Lane]


@dataclass(frozen=True)
class Element:
    """One element of Z: the lanes that it becomes a function of, and whether it is written."""

    x: Lane
    y: Lane
    z: Lane
    written: Flag


#: Makes an array of lanes of which each element has one, so that all are computed at once.
Stack = Callable[[Sequence[Sequence[Lane]]], Sequence[Lane]]


def execute(name: str, state: State, operand: Lane, stack: Stack | None = None) -> State:
    """fma16, fma32 or fma64 with an operand, a signed lane of 64 bits."""
    on, fmt = fields(operand), FORMATS[name]
    size = fmt.storage_bits // 8
    x, y = rotated(state.x, on.x_offset), rotated(state.y, on.y_offset)
    xs, ys = ([element(row, i, size) for i in range(ROWS // size)] for row in (x, y))
    if name == "fma32":
        own = (
            [where(flag, widened(code & 0xFFFF), code) for code in row]
            for flag, row in ((on.x_f16, xs), (on.y_f16, ys))
        )
        return State(state.x, state.y, _written(state.z, _elements(on, size, state.z, *own), on, fmt, stack))
    z = _written(state.z, _elements(on, size, state.z, xs, ys), on, fmt, stack)
    if name == "fma16":
        mixed = on.z_f32 & invert(on.vector)
        wide = ([widened(code) for code in row] for row in (xs, ys))
        pairs = _written(state.z, _mixed_elements(on, state.z, *wide), on, fp32, stack)
        z = [where(mixed, u, v) for u, v in zip(pairs, z, strict=True)]
    return State(state.x, state.y, z)


def _written(
    z: Sequence[Lane], elements: Sequence[Element], on: Fields, fmt: Format, stack: Stack | None
) -> list[Lane]:
    """The bytes of Z, of which these are the elements, in order."""
    size, rho = fmt.storage_bits // 8, IEEE[fmt.name]
    if stack is None:
        codes = [alu(each.x, each.y, each.z, on, rho) for each in elements]
    else:
        x, y, before = stack([[e.x for e in elements], [e.y for e in elements], [e.z for e in elements]])
        codes = list(alu(x, y, before, on, rho))
    out: list[Lane] = []
    for n, (each, code) in enumerate(zip(elements, codes, strict=True)):
        old = z[n * size : (n + 1) * size]
        out += [
            where(each.written, after, byte) for after, byte in zip(as_bytes(code, size), old, strict=True)
        ]
    return out


def _elements(
    on: Fields, size: int, z: Sequence[Lane], xs: Sequence[Lane], ys: Sequence[Lane]
) -> list[Element]:
    """Of rows of elements as wide as the instruction's, in vector mode and in matrix mode."""
    lanes, stride = ROWS // size, size  # 64 / N rows for each lane of Y: as many as an element has bytes
    in_x, in_y = ([enabled(enable, i, lanes) for i in range(lanes)] for enable in (on.x_enable, on.y_enable))
    out: list[Element] = []
    for r in range(ROWS):
        j = r // stride
        here = where(on.vector, on.z_row == r, (on.z_row & (stride - 1)) == r % stride)
        row = here & (on.vector | in_y[j])
        for i in range(lanes):
            y = where(on.vector, ys[i], ys[j])
            out.append(Element(xs[i], y, element(z, r * lanes + i, size), row & in_x[i]))
    return out


def _mixed_elements(on: Fields, z: Sequence[Lane], xs: Sequence[Lane], ys: Sequence[Lane]) -> list[Element]:
    """Of rows of fp32, of which even ones take even lanes of X, and odd ones odd lanes."""
    lanes, out = len(xs), []
    in_x, in_y = ([enabled(enable, i, lanes) for i in range(lanes)] for enable in (on.x_enable, on.y_enable))
    for r in range(ROWS):
        for place in range(ROWS // 4):
            i, j = 2 * place + r % 2, r // 2
            code = element(z, r * (ROWS // 4) + place, 4)
            out.append(Element(xs[i], ys[j], code, in_x[i] & in_y[j]))
    return out


__all__ = ["Fields", "State", "alu", "execute", "fields"]
