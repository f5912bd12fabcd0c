"""Apple AMX: instructions that act on a state of three register files.

    from mmaformal.apple import AmxState, Operand, execute

    state = AmxState(x=…, y=…, z=…)                        # 512, 512 and 4096 bytes
    state = execute(state, "fma32", Operand(z_row=1))       # or an operand's 64 bits
    state = execute(state, "vecint", tables.encode("vecint", alu=4, shift=3), generation=2)

Source: corsix/amx.  fma16, fma32 and fma64 are `encodings/amx/executable.py`, which this runs; fms is fma of X, or
where X is skipped of Y, with its signs changed; what others make of single lanes is `encodings/amx_lanes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mmaformal.apple import tables
from mmaformal.apple.elements import ARITHMETIC, Elements, Sides
from mmaformal.apple.memory import Transfer, move
from mmaformal.apple.moving import extract, lookup
from mmaformal.apple.operand import FIELDS, MOVES, NUMBERS, OPS, AmxOperand, Word, disassemble
from mmaformal.apple.registers import Int64Codes, codes_in, to_bytes
from mmaformal.apple.state import SIZES, AmxState
from mmaformal.encodings.amx import executable as amx
from mmaformal.encodings.amx_lanes import executable as lanes
from mmaformal.rounding import Conversion

Operand = AmxOperand  #: the name that is exported, and stays


def execute(state: AmxState, name: str, operand: AmxOperand | int, generation: int = 1) -> AmxState:
    """The state after an instruction with an operand, its fields or its 64 bits, as an M1, M2, M3 or M4 has it.

    `set` and `clr` clear all registers, and ignore the operand.  Raises ValueError for a load or store (`move` does
    them) or another instruction, an operand of more bits, or another generation.
    """
    if name in ("set", "clr"):
        return AmxState()
    if name not in NUMBERS:
        raise ValueError(f"no AMX instruction {name!r} here; there are {', '.join(NUMBERS)}, set, clr")
    if generation not in (1, 2, 3, 4):
        raise ValueError(f"a generation is 1 to 4, of M1 to M4, not {generation!r}")
    bits = operand.encode() if isinstance(operand, AmxOperand) else operand
    on = tables.decode(name, bits)
    if name in ARITHMETIC:
        z = np.frombuffer(state.z, np.uint8).copy()
        for each in elements(state, name, bits, generation):
            before = codes_in(z, each.size)[each.places]
            _write(z, each, each.operation(each.x, each.y, before))
        return replace(state, z=z.tobytes())
    if name in ("extrh", "extrv"):
        return extract(name, state, on, generation)
    if name == "genlut":
        return lookup(state, on, generation)
    return _fma(state, name, bits) if name in OPS else _fms(state, name, bits)


def elements(state: AmxState, name: str, bits: int, generation: int = 1) -> list[Elements]:
    """The elements of Z that vecfp, vecint, matfp, matint or mac16 writes, and what each is made of."""
    x, y = (np.frombuffer(side, np.uint8) for side in (state.x, state.y))
    return list(ARITHMETIC[name](Sides(x, y, tables.decode(name, bits), generation)))


def _write(z: np.ndarray[tuple[int], np.dtype[np.uint8]], on: Elements, values: Int64Codes) -> None:
    """Put codes in the places of elements."""
    z.reshape(-1, on.size)[on.places] = to_bytes(values, on.size).reshape(-1, on.size)


def _at_once(rho: Conversion, on: amx.Fields, elements: Sequence[amx.LaneElement]) -> list[int]:
    """Returns all elements of an instruction, computed as one array."""
    x, y, z = (np.array([getattr(each, name) for each in elements], np.int64) for name in SIZES)
    after: list[int] = amx.alu(x, y, z, on, rho).result.tolist()
    return after


def _minus(rho: Conversion, on: amx.Fields, elements: Sequence[amx.LaneElement]) -> list[int]:
    """Returns all elements of fms, of lanes whose signs are changed."""
    x, y, z = (np.array([getattr(each, name) for each in elements], np.int64) for name in SIZES)
    after = lanes.without_all(rho, (on.skip_x, on.skip_y, on.skip_z), x, y, z)
    found: list[int] = np.broadcast_to(after, z.shape).tolist()
    return found


def _fma(state: AmxState, name: str, bits: int, unit: amx.LaneUnit = _at_once) -> AmxState:
    signed = bits - (1 << 64) if bits >> 63 else bits
    x, y, z = (list(getattr(state, name)) for name in SIZES)
    after = amx.execute(name, amx.State(x, y, z), signed, unit).state
    return AmxState(state.x, state.y, bytes(int(byte) for byte in after.z))


def _fms(state: AmxState, name: str, bits: int) -> AmxState:
    """z − x·y as fma does it of −x, or of −y where x is skipped; −0 where all three are."""
    on = AmxOperand.decode(bits)
    fmt = amx.FORMATS[fma := name.replace("s", "a")]
    side, size = ("y" if on.skip_x else "x"), fmt.storage_bits // 8
    half = name == "fms32" and getattr(on, f"{side}_f16")
    pool = np.frombuffer(getattr(state, side), np.uint8).copy()
    pool[(getattr(on, f"{side}_offset") + np.arange(1 if half else size - 1, 64, size)) % len(pool)] ^= 0x80
    changed = replace(state, **{side: pool.tobytes()})
    return replace(_fma(changed, fma, bits, _minus), x=state.x, y=state.y)


__all__ = [
    "FIELDS",
    "MOVES",
    "NUMBERS",
    "OPS",
    "AmxState",
    "Operand",
    "Transfer",
    "Word",
    "disassemble",
    "execute",
    "move",
    "tables",
]
