"""Apple AMX as bit-vector terms: fma16, fma32 and fma64, of any operand and any state.  Source: corsix/amx, "fma.md".

Registers are long words, byte k at bits 8k … 8k+7: X and Y have 4096 bits, a row of Z has 512.  The 64 bytes from an
offset on are a shift of two copies of the pool; which lanes take part, and which rows, are masks.  An element of Z is a
function of a lane of X, one of Y and itself, which `alu` computes in one datapath: where x or y is skipped, the other
takes the place of the product, and where z is, the addend is −0, which adds nothing to any number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import z3

from mmaformal.encodings.sfma.smt import exponents_of, frame_bits
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    addend,
    classify,
    decode,
    encode,
    multiply,
    normalise_and_round,
    pad,
    quiet_nan,
    resize,
    select_special,
    sticky_sum,
)
from mmaformal.formats import fp16, fp32
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, Conversion

RHO = {"fma16": IEEE_FP16, "fma32": IEEE_FP32, "fma64": IEEE_FP64}  #: of an instruction's elements
ROWS = 64
_ROW, _POOL = 512, 4096  #: bits

T = TypeVar("T", BitVec, Bool)


class State(NamedTuple):
    """X and Y, 4096 bits each, and the 64 rows of Z, 512 bits each."""

    x: BitVec
    y: BitVec
    z: tuple[BitVec, ...]


def field(operand: BitVec, low: int, width: int) -> BitVec:
    return z3.Extract(low + width - 1, low, operand)


def flag(operand: BitVec, place: int) -> Bool:
    return field(operand, place, 1) == 1


def skips(operand: BitVec) -> BitVec:
    """Bits 29, 28, 27: whether x, y, z is skipped."""
    return field(operand, 27, 3)


# ---- which lanes, which rows ---------------------------------------------------------------------------------------


def enable_mask(mode: BitVec, value: BitVec, lanes: int) -> BitVec:
    """A bit for each of 8, 16 or 32 lanes; values count lanes modulo their number."""
    every = z3.BitVecVal(-1, lanes)
    odd = z3.BitVecVal(sum(2 << i for i in range(0, lanes, 2)), lanes)
    number = resize(resize(value, lanes.bit_length() - 1), lanes)
    none, one = z3.BitVecVal(0, lanes), z3.BitVecVal(1, lanes)
    listed = z3.If(value == 0, every, z3.If(value == 1, odd, z3.If(value == 2, ~odd, none)))
    first, last = ~(every << number), ~z3.LShR(every, number)
    counted = z3.If(number == 0, every, z3.If(mode == 2, first, last))
    return z3.If(mode == 0, listed, z3.If(mode == 1, one << number, counted))


def row_mask(operand: BitVec, stride: int) -> BitVec:
    """A bit for each row of Z: in vector mode z_row alone, in matrix mode one of each `stride`."""
    row = field(operand, 20, 6)
    one = z3.BitVecVal(1, stride) << resize(resize(row, stride.bit_length() - 1), stride)
    repeated = z3.Concat([one] * (ROWS // stride))
    return z3.If(flag(operand, 63), z3.BitVecVal(1, ROWS) << resize(row, ROWS), repeated)


# ---- registers -----------------------------------------------------------------------------------------------------


def loaded(pool: BitVec, offset: BitVec) -> BitVec:
    """The 64 bytes from an offset on, of a circular buffer of 512."""
    return resize(z3.LShR(z3.Concat(pool, pool), resize(pad(offset, 3), 2 * _POOL)), _ROW)


def split(row: BitVec, bits: int) -> list[BitVec]:
    """The elements of a row, the lowest first."""
    return [field(row, low, bits) for low in range(0, _ROW, bits)]


# ---- arithmetic ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alu:
    """The interfaces between the stages of one element's arithmetic, in order."""

    x: Operand  #: decode
    y: Operand
    z: Operand
    special: Special  #: classify
    product: Term  #: x·y, or the one that is not skipped, with as many fractional bits
    addend: Term  #: z, or −0
    sum: StickySum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    computed: BitVec  #: encode
    result: BitVec  #: that, or x, y, z or 0 alone


def alu(rho: Conversion, skip: BitVec, x: BitVec, y: BitVec, z: BitVec) -> Alu:
    """Return what an element of Z becomes: x·y + z without what `skip` (3 bits: x, y, z) skips; codes of ρ's format."""
    fmt, M = rho.format, rho.format.fraction_bits
    no_x, no_y, no_z = (flag(skip, place) for place in (2, 1, 0))
    u, v, w = (decode(code, fmt) for code in (x, y, z))
    finite = z3.Not(no_z)
    seen = w._replace(infinite=z3.And(w.infinite, finite), nan=z3.And(w.nan, finite))
    either = (classify(products, [*one, seen]) for products, one in (([], [u]), ([], [v]), ([(u, v)], [])))
    special = Special(*(_choose(no_y, no_x, *parts) for parts in zip(*either, strict=True)))

    exponents, lowest = exponents_of(fmt), fmt.min_exponent
    product = multiply(u, v, 2 * fmt.bias, exponents, e_zero=lowest)
    terms = (_alone(u, fmt.bias, M, exponents), _alone(v, fmt.bias, M, exponents), product)
    product = Term(*(_choose(no_y, no_x, *parts) for parts in zip(*terms, strict=True)))
    nothing = Term(z3.BitVecVal(1, 1), exponents.constant(lowest), z3.BitVecVal(0, M + 1))
    c = Term(
        *(z3.If(no_z, *parts) for parts in zip(nothing, addend(w, fmt.bias, exponents, None), strict=True))
    )

    frame = frame_bits(M + 1)
    sum_ = sticky_sum(product, 2 * M, c, M, frame)
    rounded = normalise_and_round(sum_.total, sum_.e_max, exponents, frame, rho, lowest)
    rounded = rounded._replace(sign=z3.If(sum_.total == 0, product.sign & c.sign, rounded.sign))
    computed = select_special(special, encode(rounded, rho), fmt, quiet_nan(fmt))
    result = computed
    for skipped, code in ((0b011, x), (0b101, y), (0b110, z), (0b111, z3.BitVecVal(0, fmt.storage_bits))):
        result = z3.If(skip == skipped, code, result)
    return Alu(u, v, w, special, product, c, sum_, rounded, computed, result)


def _alone(x: Operand, bias: int, bits: int, exponents: ExponentRange) -> Term:
    """An operand as a product of so many more fractional bits, two integer bits."""
    return Term(x.sign, exponents.from_field(x.field, bias), resize(pad(x.significand, bits), 2 * bits + 2))


def _choose(no_y: Bool, no_x: Bool, without_y: T, without_x: T, both: T) -> T:
    chosen: T = z3.If(no_y, without_y, z3.If(no_x, without_x, both))
    return chosen


def widened(code: BitVec) -> BitVec:
    """An fp16 code as one of fp32; a NaN as the default one."""
    return ieee.convert(code, fp16, fp32)


# ---- instructions --------------------------------------------------------------------------------------------------


class Lanes(NamedTuple):
    """The lanes that an instruction reads of X or of Y, in order."""

    offset: BitVec
    row: BitVec  #: the 64 bytes that are read
    codes: list[BitVec]
    widened: list[BitVec]  #: of fma16 and fma32, the fp16 codes as fp32
    taken: list[BitVec]  #: the operands of elements as wide as the instruction's
    enabled: BitVec  #: a mask


class LaneElement(NamedTuple):
    """An element of Z: the three codes that it becomes a function of, and whether it is written."""

    x: BitVec
    y: BitVec
    z: BitVec
    written: Bool


class Grid(NamedTuple):
    """The elements of each row of Z, what each becomes, written or not, and the rows after."""

    elements: list[list[LaneElement]]
    codes: list[list[BitVec]]
    merged: list[list[BitVec]]  #: what is written, or what was there
    after: list[BitVec]


@dataclass(frozen=True)
class AmxTrace:
    """The interfaces of one instruction, in order."""

    skip: BitVec
    x: Lanes
    y: Lanes
    rows: BitVec  #: a mask of those that may change, but for fma16 onto fp32
    grid: Grid
    pairs: Grid | None  #: of fma16 onto fp32, whether it is that or not
    state: State


#: A function of an element that is written: what it becomes, by ρ, by what is skipped, and by its three codes.
LaneUnit = Callable[[Conversion, BitVec, LaneElement], BitVec]


def computed(rho: Conversion, skip: BitVec, element: LaneElement) -> BitVec:
    return alu(rho, skip, element.x, element.y, element.z).result


def execute(name: str, state: State, operand: BitVec, unit: LaneUnit = computed) -> AmxTrace:
    """fma16, fma32 or fma64 with an operand of 64 bits."""
    rho, skip = RHO[name], skips(operand)
    x = _lanes(name, state.x, field(operand, 10, 9), flag(operand, 61), field(operand, 41, 7))
    y = _lanes(name, state.y, field(operand, 0, 9), flag(operand, 60), field(operand, 32, 7))
    rows = row_mask(operand, ROWS // len(x.codes))
    grid = _grid(rho, skip, _elements(flag(operand, 63), rows, x, y, state.z), unit)
    if name != "fma16":
        return AmxTrace(skip, x, y, rows, grid, None, State(state.x, state.y, tuple(grid.after)))
    pairs = _grid(IEEE_FP32, skip, _pairs(x, y, state.z), unit)
    mixed = field(operand, 62, 2) == 1
    z = tuple(z3.If(mixed, u, v) for u, v in zip(pairs.after, grid.after, strict=True))
    return AmxTrace(skip, x, y, rows, grid, pairs, State(state.x, state.y, z))


def _lanes(name: str, pool: BitVec, offset: BitVec, half: Bool, enable: BitVec) -> Lanes:
    row = loaded(pool, offset)
    codes = split(row, RHO[name].format.storage_bits)
    wide = [] if name == "fma64" else [widened(resize(code, 16)) for code in codes]
    taken = codes
    if name == "fma32":
        taken = [z3.If(half, u, v) for u, v in zip(wide, codes, strict=True)]
    mask = enable_mask(field(enable, 5, 2), field(enable, 0, 5), len(codes))
    return Lanes(offset, row, codes, wide, taken, mask)


def _elements(vector: Bool, rows: BitVec, x: Lanes, y: Lanes, z: Sequence[BitVec]) -> list[list[LaneElement]]:
    """Return elements as wide as the N lanes; in matrix mode row r belongs to lane r div (64 / N) of Y."""
    count, out = len(x.taken), []
    for r, row in enumerate(z):
        j = r // (ROWS // count)
        here = z3.And(flag(rows, r), z3.Or(vector, flag(y.enabled, j)))
        ys = [z3.If(vector, y.taken[i], y.taken[j]) for i in range(count)]
        written = [z3.And(here, flag(x.enabled, i)) for i in range(count)]
        out.append(
            [LaneElement(*each) for each in zip(x.taken, ys, split(row, _ROW // count), written, strict=True)]
        )
    return out


def _pairs(x: Lanes, y: Lanes, z: Sequence[BitVec]) -> list[list[LaneElement]]:
    """Twice as wide as the lanes: row 2j has the even lanes of X with lane j of Y, row 2j + 1 the odd ones."""
    return [
        [
            LaneElement(
                x.widened[i], y.widened[r // 2], code, z3.And(flag(x.enabled, i), flag(y.enabled, r // 2))
            )
            for i, code in zip(range(r % 2, len(x.widened), 2), split(row, 32), strict=True)
        ]
        for r, row in enumerate(z)
    ]


def _grid(rho: Conversion, skip: BitVec, elements: list[list[LaneElement]], unit: LaneUnit) -> Grid:
    codes = [[unit(rho, skip, each) for each in row] for row in elements]
    merged = [
        [z3.If(each.written, code, each.z) for each, code in zip(row, after, strict=True)]
        for row, after in zip(elements, codes, strict=True)
    ]
    return Grid(elements, codes, merged, [z3.Concat(row[::-1]) for row in merged])
