"""Operands of Apple AMX instructions beside fma, as tables: the bits of their fields, what modes and widths mean.

Source: corsix/amx, the file of each instruction.  Where a field's place in the text and in the emulator beside it,
which its author ran against M1 to M4, are not the same, it is the emulator's (docs/apple-amx.md, "Text and emulator").
"""

from __future__ import annotations

from collections.abc import Mapping

from mmaformal.apple.operand import FIELDS as FMA
from mmaformal.encodings.amx_lanes import Accumulation, FloatKind
from mmaformal.formats import Format, bf16, fp16, fp32, fp64

#: Lowest bit and width of each field.
FieldPlaces = Mapping[str, tuple[int, int]]

_OFFSETS = {"y_offset": (0, 9), "x_offset": (10, 9)}
_SHUFFLES = {"y_shuffle": (27, 2), "x_shuffle": (29, 2)}
_ENABLE = {"enable_value": (32, 6), "enable_mode": (38, 3)}
_MODES = {"width": (42, 4), "alu": (47, 6)}
#: `alu` where lanes are taken as they are; where `indexed`, these are in its place
_INDEXED = {"indexed": (53, 1), "indexed_y": (47, 1), "four_bits": (48, 1), "table": (49, 3)}
_SEVERAL = {"four": (25, 1), "several": (31, 1), "broadcast": (32, 3)}
_VECTOR = _OFFSETS | {"z_row": (20, 6)} | _SHUFFLES | _ENABLE | _MODES | _INDEXED | _SEVERAL
_REDUCED = {
    "signed_range": (26, 1),
    "rounding": (29, 1),
    "saturate": (30, 1),
    "shift": (58, 5),
    "z_signed": (63, 1),
}
_SIGNS = {"y_signed": (26, 1), "x_signed": (63, 1)}
_EXTRACTED = {
    "offset": (0, 9), "to_y": (10, 1), "width": (11, 4), "z_place": (20, 6), "four": (25, 1), "whole": (26, 1),
    "between": (27, 1), "several": (31, 1), **_ENABLE, "rounding": (54, 1), "saturate": (55, 1),
    "signed_range": (56, 1), "z_signed": (57, 1), "shift": (58, 5), "to_bf16": (62, 1), "float": (63, 1),
    "narrow_width": (28, 2),
}  # fmt: skip

#: Fields of each instruction; some share bits, and which are meant another one says (`indexed`, `several`, `alu` of 4).
FIELDS: dict[str, FieldPlaces] = {
    **dict.fromkeys(("fma16", "fma32", "fma64", "fms16", "fms32", "fms64"), FMA),
    "mac16": {k: v for k, v in FMA.items() if k not in ("y_f16", "x_f16", "z_f32")}
    | {"shift": (55, 5), "y_i8": (60, 1), "x_i8": (61, 1), "z_i32": (62, 1)},
    "vecfp": _VECTOR | {"zero": (54, 3)},
    "vecint": _VECTOR | {"zero": (54, 3)} | _REDUCED | _SIGNS,
    "matfp": _OFFSETS | {"z_row": (20, 3), "y_enable_mode": (23, 3)} | _SHUFFLES | _ENABLE | _MODES | _INDEXED
    | {"zero": (54, 3), "y_enable_value": (58, 5)},
    "matint": _OFFSETS | {"z_row": (20, 2), "enable_y": (25, 1)} | _SHUFFLES | _ENABLE | _MODES | _INDEXED
    | {"indexed_bytes": (54, 1), "zero": (55, 2)} | _REDUCED | _SIGNS,
    "extrh": _EXTRACTED | {"x_offset": (10, 9), "x_register": (16, 3), "y_register": (20, 3),
                           "x_enable_value": (41, 5), "x_enable_mode": (46, 2)},
    "extrv": _EXTRACTED | {"y_register": (6, 3), "x_register": (20, 3), "y_enable_value": (32, 5),
                           "y_enable_mode": (37, 2)},
    "genlut": {"offset": (0, 9), "from_y": (10, 1), "register": (20, 3), "row": (20, 6), "to_y": (25, 1),
               "to_z": (26, 1), "bf16": (30, 1), "mode": (53, 4), "table_y": (59, 1), "table": (60, 3)},
}  # fmt: skip

#: Results of the ALU modes of vecfp, of matfp the first three; from M2 on the last three.
FLOAT_MODES: dict[int, FloatKind] = {0: "z+xy", 1: "z-xy", 4: "x<=0?0:y", 5: "min", 7: "max",
                                     10: "xy", 11: "z+x", 12: "z+y"}  # fmt: skip
#: The formats of lanes and of z by width modes of vecfp and matfp, where not `FLOAT_WIDTH`; the first two from M2 on.
FLOAT_WIDTHS: dict[int, tuple[Format, Format]] = {
    0: (bf16, bf16), 1: (bf16, fp32), 3: (fp16, fp32), 4: (fp32, fp32), 7: (fp64, fp64)
}  # fmt: skip
FLOAT_WIDTH = (fp16, fp16)
#: Modes that an M1 has not.
FROM_M2 = {"modes": (10, 11, 12), "widths": (0, 1)}

#: Results of the ALU modes of vecint and matint (4 is `Reduction`); vecint has 10 to 12 from M2 on, matint 8 and 9.
INTEGER_MODES: dict[int, Accumulation] = {
    0: Accumulation("xy"),
    1: Accumulation("xy", negative=True),
    2: Accumulation("x+y"),
    3: Accumulation("x+y", negative=True),
    5: Accumulation("xy", high_half=True),
    6: Accumulation("xy", high_half=True, negative=True),
    8: Accumulation("xy"),
    9: Accumulation("equal bits"),
    10: Accumulation("xy", with_z=False),
    11: Accumulation("x"),
    12: Accumulation("y"),
}
VECINT_MODES, MATINT_MODES = (0, 1, 2, 3, 5, 6, 10, 11, 12), (0, 1, 2, 3, 5, 6, 8, 9)
REDUCE = 4

#: Bits of x, y, z by width modes; by ALU mode in matint.
_HALF = (16, 16, 16)
VECINT_WIDTHS = {3: (16, 16, 32), 10: (8, 8, 32), 11: (8, 8, 16), 12: (8, 16, 32), 13: (16, 8, 32)}
MATINT_WIDTHS = {3: (16, 16, 32)}
MATINT_BYTES = {10: (8, 8, 32), 12: (8, 8, 16)}
MATINT_BYTES_M3 = MATINT_BYTES | {12: (8, 16, 32)}
MATINT_EQUAL = {3: (16, 16, 32), 4: (32, 32, 32)}
#: Bits of z, and of what it saturates to, of ALU mode 4.
MATINT_REDUCED = {3: (32, 16), 4: (32, 32), 10: (32, 8), 11: (16, 8)}
VECINT_REDUCED = MATINT_REDUCED | {9: (8, 8)}


def integer_widths(name: str, alu: int, width: int, generation: int) -> tuple[int, int, int]:
    """The bits of x, y and z, where the ALU mode is not 4."""
    if alu in (5, 6):
        return _HALF
    if name == "vecint":
        return VECINT_WIDTHS.get(width, _HALF)
    if alu == 8:
        return (MATINT_BYTES_M3 if generation >= 3 else MATINT_BYTES).get(width, (8, 8, 16))
    return (MATINT_EQUAL if alu == 9 else MATINT_WIDTHS).get(width, _HALF)


#: Bytes of a lane and of an element of Z by (float, width) of extrh and extrv, and the rows between its lanes.
EXTRACT_WIDTHS: dict[tuple[int, int], tuple[int, int, int]] = {
    (0, 0): (1, 1, 0), (0, 8): (4, 4, 0), (0, 9): (2, 4, 1), (0, 10): (2, 4, 2), (0, 11): (1, 4, 1),
    (0, 13): (1, 2, 1), (1, 1): (8, 8, 0), (1, 8): (4, 4, 0), (1, 9): (2, 4, 1), (1, 10): (2, 4, 2),
}  # fmt: skip
EXTRACT_WIDTH = (2, 2, 0)
EXTRACT_FROM_M2 = ((1, 9), (1, 10))

#: Lanes' bits, bits of an index, and what lanes are compared as, by modes of genlut: the first seven make indices, the
#: others look them up.
LOOKUPS: dict[int, tuple[int, int, Format | bool | None]] = {
    0: (32, 4, fp32), 1: (16, 5, fp16), 2: (64, 4, fp64), 3: (32, 4, True), 4: (16, 5, True), 5: (32, 4, False),
    6: (16, 5, False), 7: (32, 2, None), 8: (16, 2, None), 9: (8, 2, None), 10: (64, 4, None), 11: (32, 4, None),
    12: (16, 4, None), 13: (8, 4, None), 14: (16, 5, None), 15: (8, 5, None),
}  # fmt: skip


def encode(name: str, **fields: int) -> int:
    """The 64 bits of an operand.  Raises ValueError for a field that there is not, or that does not fit."""
    places, bits = FIELDS[name], 0
    for field, value in fields.items():
        if field not in places:
            raise ValueError(f"{name} has no field {field!r}; there are {', '.join(places)}")
        low, width = places[field]
        if not isinstance(value, int) or not 0 <= value < 1 << width:
            raise ValueError(f"{field} of {name} has {width} bits: 0 to {(1 << width) - 1}, not {value!r}")
        bits |= value << low
    return bits


def decode(name: str, bits: int) -> dict[str, int]:
    """Returns what each field of 64 bits says; fields that share bits have all their values.  Raises ValueError if
    not 64."""
    if not 0 <= bits < 1 << 64:
        raise ValueError(f"an operand has 64 bits, not {bits:#x}")
    return {name: bits >> low & (1 << width) - 1 for name, (low, width) in FIELDS[name].items()}
