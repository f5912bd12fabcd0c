"""Instructions of Apple AMX that write X or Y (or rows of Z): extrh, extrv, genlut.  Source: corsix/amx."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmaformal.apple import tables
from mmaformal.apple.registers import (
    ROW,
    Bytes,
    Flags,
    Int64Codes,
    codes_in,
    indexed,
    packed,
    row_at,
    to_bytes,
    used,
)
from mmaformal.apple.state import AmxState
from mmaformal.encodings.amx_lanes import IEEE_BF16, Reduction
from mmaformal.encodings.amx_lanes import executable as lanes
from mmaformal.encodings.executable.ieee import convert
from mmaformal.formats import Format, bf16, fp32
from mmaformal.rounding import IEEE_FP16

_PLACES = np.arange(ROW)


class _Extract(NamedTuple):
    """A move of extrh or extrv: where to, which bytes of each row, of how many bytes and rows of Z."""

    to: str
    offset: int
    enable: Flags
    size: int
    wide: int
    stride: int
    places: range  #: rows or columns of Z, one for each row that is written


def extract(name: str, state: AmxState, on: dict[str, int], generation: int) -> AmxState:
    """The state after extrh or extrv: a row or a column of Z, or a register, to X or Y."""
    if on["between"] and not on["whole"]:
        return _copied(name, state, on)
    what = _whole(on, generation) if on["whole"] else _plain(name, on)
    z = np.frombuffer(state.z, np.uint8).reshape(ROW, ROW)
    pool = np.frombuffer(getattr(state, what.to), np.uint8).copy()
    for n, place in enumerate(what.places):
        row = _extracted(name == "extrh", z, place, what, on)
        if on["whole"] and (on["enable_mode"], on["enable_value"]) == (0, 3) and not _several(on, generation):
            row = row * 0
        at = (what.offset + ROW * n + _PLACES[what.enable]) % len(pool)
        pool[at] = row[what.enable]
    return replace(state, **{what.to: pool.tobytes()})


def _copied(name: str, state: AmxState, on: dict[str, int]) -> AmxState:
    """The state after a register of Y is copied to X (extrh), or the other way round."""
    source, target = ("y", "x") if name == "extrh" else ("x", "y")
    data = bytearray(getattr(state, target))
    start, there = ROW * on[f"{source}_register"], ROW * on[f"{target}_register"]
    data[there : there + ROW] = getattr(state, source)[start : start + ROW]
    return replace(state, **{target: bytes(data)})


def _several(on: dict[str, int], generation: int) -> bool:
    return bool(generation >= 2 and on["several"])


def _whole(on: dict[str, int], generation: int) -> _Extract:
    """The variant with nine bits of enabling, shifts and widths."""
    kind = (on["float"], on["width"])
    known = generation >= 2 or kind not in tables.EXTRACT_FROM_M2
    size, wide, stride = (
        tables.EXTRACT_WIDTHS.get(kind, tables.EXTRACT_WIDTH) if known else tables.EXTRACT_WIDTH
    )
    step, offset, mode = ROW, on["offset"], (on["enable_mode"], on["enable_value"])
    if _several(on, generation):
        step, mode = 16 if on["four"] else 32, (0, 0)
        offset &= -ROW if generation >= 4 else -1
    places = range(on["z_place"] % step, ROW, step)
    return _Extract("y" if on["to_y"] else "x", offset, used(*mode, size), size, wide, stride, places)


def _plain(name: str, on: dict[str, int]) -> _Extract:
    """The variant with seven bits of enabling."""
    side = "x" if name == "extrh" else "y"
    size = max(2, 8 >> on["narrow_width"])
    mode = (on[f"{side}_enable_mode"], on[f"{side}_enable_value"])
    enable = used(*mode, size, several_zeros=False)
    if on["narrow_width"] == 3:
        enable = enable & (_PLACES % 2 == 0)
    offset = on["x_offset"] if side == "x" else on["offset"]
    return _Extract(side, offset, enable, size, size, 0, range(on["z_place"], on["z_place"] + 1))


def _extracted(across: bool, z: Bytes, place: int, what: _Extract, on: dict[str, int]) -> Bytes:
    """64 bytes of lanes, of a row of Z or of a column."""
    size, wide = what.size, what.wide
    i = _PLACES[::size]
    turn = place + (i & (wide - 1)) // size * what.stride
    low = turn & (wide - 1)
    rows = ((place if across else i) & -wide) | low
    columns = (i if across else np.full(len(i), place)) // wide
    found = codes_in(z.reshape(-1), wide).reshape(ROW, -1)[rows, columns]
    return to_bytes(_narrowed(found, what, on) if what.stride else found, size)


def _narrowed(found: Int64Codes, what: _Extract, on: dict[str, int]) -> Int64Codes:
    """fp32 rounded to fp16 or bf16, or an integer shifted and saturated."""
    if on["float"]:
        return np.asarray(convert(found, fp32, IEEE_BF16 if on["to_bf16"] else IEEE_FP16))
    flags = (bool(on[each]) for each in ("z_signed", "signed_range", "rounding", "saturate"))
    reduction = Reduction(8 * what.wide, 8 * what.size, 8 * what.size, *flags)
    return np.asarray(lanes.reduced(reduction, found, on["shift"]))


# ---- tables ------------------------------------------------------------------------------------------


def lookup(state: AmxState, on: dict[str, int], generation: int) -> AmxState:
    """The state after genlut: which lane of a table comes before each lane, or the lanes of such numbers."""
    bits, index_bits, kind = tables.LOOKUPS[on["mode"]]
    if on["mode"] == 1 and on["bf16"] and generation >= 2:
        kind = bf16
    size = bits // 8
    source = np.frombuffer(state.y if on["from_y"] else state.x, np.uint8)
    start = ROW * on["table"]
    table = np.frombuffer(state.y if on["table_y"] else state.x, np.uint8)[start : start + ROW]
    row = row_at(source, on["offset"])
    makes = kind is not None
    found = (
        packed(_numbers(row, table, size, kind), index_bits)
        if makes
        else indexed(row, table, index_bits, size)
    )
    to = "z" if on["to_z"] and not makes else "y" if on["to_y"] else "x"
    data = bytearray(getattr(state, to))
    start = ROW * (on["row"] if to == "z" else on["register"])
    data[start : start + ROW] = found.tobytes()
    return replace(state, **{to: bytes(data)})


def _numbers(row: Bytes, table: Bytes, size: int, kind: Format | bool | None) -> Int64Codes:
    """One less than the number of the table's first lane that exceeds each lane; all ones if none does."""
    mine, other = codes_in(row, size)[:, None], codes_in(table, size)[None, :]
    if isinstance(kind, Format):
        beyond = lanes.exceeds(other, mine, kind)
    else:
        beyond = lanes.integer(other, 8 * size, bool(kind)) > lanes.integer(mine, 8 * size, bool(kind))
    found: Int64Codes = np.where(beyond.any(axis=1), beyond.argmax(axis=1), ROW // size) - 1
    return found & (ROW // size - 1)
