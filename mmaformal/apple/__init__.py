"""Apple AMX: instructions that act on a state of three register files.

    from mmaformal.apple import AmxState, Operand, execute

    state = AmxState(x=…, y=…, z=…)                        # 512, 512 and 4096 bytes
    state = execute(state, "fma32", Operand(z_row=1))       # or an operand's 64 bits

Source: corsix/amx, as in `encodings/executable/amx.py`, which this runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.apple.operand import FIELDS, OPS, Operand, Word, disassemble
from mmaformal.encodings.executable import amx

_SIZES = {"x": amx.POOL, "y": amx.POOL, "z": amx.ROWS * amx.ROWS}


@dataclass(frozen=True, repr=False)
class AmxState:
    """X and Y, pools of eight registers of 64 bytes, and Z, 64 rows of 64.  Raises ValueError for another size."""

    x: bytes = bytes(_SIZES["x"])
    y: bytes = bytes(_SIZES["y"])
    z: bytes = bytes(_SIZES["z"])

    def __post_init__(self) -> None:
        for name, size in _SIZES.items():
            value = getattr(self, name)
            if not isinstance(value, (bytes, bytearray)) or len(value) != size:
                what = f"{len(value)}" if isinstance(value, (bytes, bytearray)) else type(value).__name__
                raise ValueError(f"{name} has {size} bytes, not {what}")

    def row(self, number: int) -> bytes:
        """A row of Z, 64 bytes."""
        return self.z[64 * number : 64 * number + 64]

    def __repr__(self) -> str:
        told = [
            f"{name}: {sum(map(bool, getattr(self, name)))} of {size} bytes" for name, size in _SIZES.items()
        ]
        return f"<AmxState not zero in {', '.join(told)}>"


def execute(state: AmxState, name: str, operand: Operand | int) -> AmxState:
    """The state after fma16, fma32 or fma64 with an operand, its fields or its 64 bits.

    Raises ValueError for another instruction, or an operand of more bits.
    """
    if name not in OPS:
        raise ValueError(f"no AMX instruction {name!r} here; there are {', '.join(OPS)}")
    bits = operand.encode() if isinstance(operand, Operand) else operand
    Operand.decode(bits)
    signed = bits - (1 << 64) if bits >> 63 else bits
    x, y, z = (list(getattr(state, name)) for name in _SIZES)
    after = amx.execute(name, amx.State(x, y, z), signed, _at_once)
    return AmxState(state.x, state.y, bytes(int(byte) for byte in after.z))


def _at_once(columns: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Lanes of one kind as one array."""
    return [np.array(column, np.int64) for column in columns]


__all__ = ["FIELDS", "OPS", "AmxState", "Operand", "Word", "disassemble", "execute"]
