"""Apple AMX: instructions that act on a state of three register files.

    from mmaformal.apple import AmxState, Operand, execute

    state = AmxState(x=…, y=…, z=…)                        # 512, 512 and 4096 bytes
    state = execute(state, "fma32", Operand(z_row=1))       # or an operand's 64 bits

Source: corsix/amx, as in `encodings/amx/executable.py`, which this runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaformal.apple.memory import Transfer, move
from mmaformal.apple.operand import FIELDS, MOVES, OPS, Operand, Word, disassemble
from mmaformal.apple.state import SIZES, AmxState
from mmaformal.encodings.amx import executable as amx
from mmaformal.rounding import Conversion


def execute(state: AmxState, name: str, operand: Operand | int) -> AmxState:
    """The state after fma16, fma32 or fma64 with an operand, its fields or its 64 bits.

    Raises ValueError for another instruction, or an operand of more bits.
    """
    if name not in OPS:
        raise ValueError(f"no AMX instruction {name!r} here; there are {', '.join(OPS)}")
    bits = operand.encode() if isinstance(operand, Operand) else operand
    Operand.decode(bits)
    signed = bits - (1 << 64) if bits >> 63 else bits
    x, y, z = (list(getattr(state, name)) for name in SIZES)
    after = amx.execute(name, amx.State(x, y, z), signed, _at_once).state
    return AmxState(state.x, state.y, bytes(int(byte) for byte in after.z))


def _at_once(rho: Conversion, on: amx.Fields, elements: Sequence[amx.Element]) -> list[int]:
    """What all elements become, computed as one array."""
    x, y, z = (np.array([getattr(each, name) for each in elements], np.int64) for name in SIZES)
    after: list[int] = amx.alu(x, y, z, on, rho).result.tolist()
    return after


__all__ = [
    "FIELDS",
    "MOVES",
    "OPS",
    "AmxState",
    "Operand",
    "Transfer",
    "Word",
    "disassemble",
    "execute",
    "move",
]
