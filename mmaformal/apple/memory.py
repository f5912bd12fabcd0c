"""Loads and stores of Apple AMX: 64 bytes between memory and a register, or 128 and two of them.

    state, memory = move(state, memory, "ldx", Transfer(pointer=128, register=1))

Source: corsix/amx, "ldx, ldy, ldz, stx, …" (ldst.md); a pair is two registers, as on M1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mmaformal.apple.operand import MOVES
from mmaformal.apple.state import AmxState
from mmaformal.display import ShortRepr

_BYTES = 64  #: of a register


@dataclass(frozen=True, repr=False)
class Transfer(ShortRepr):
    """The operand of a load or a store.  Raises ValueError if a field does not fit."""

    pointer: int = 0  #: an address, 56 bits
    register: int = 0  #: of X or Y, or a row of Z; to ldzi and stzi even rows are left halves, odd ones right
    pair: int = 0  #: 1: 128 bytes, two registers; the pointer is a multiple of 128

    def __post_init__(self) -> None:
        for name, bits in (("pointer", 56), ("register", 6), ("pair", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < 1 << bits:
                raise ValueError(f"{name} has {bits} bits: 0 to {(1 << bits) - 1}, not {value!r}")

    @classmethod
    def decode(cls, bits: int) -> Transfer:
        """The fields of 64 bits; those that are ignored are left out.  Raises ValueError if not 64 bits."""
        if not 0 <= bits < 1 << 64:
            raise ValueError(f"an operand has 64 bits, not {bits:#x}")
        return cls(bits & ((1 << 56) - 1), (bits >> 56) & 63, (bits >> 62) & 1)

    def encode(self) -> int:
        """The 64 bits."""
        return self.pair << 62 | self.register << 56 | self.pointer

    def __str__(self) -> str:
        return f"pointer={self.pointer:#x} register={self.register}{' pair' if self.pair else ''}"


def move(state: AmxState, memory: bytes, name: str, operand: Transfer | int) -> tuple[AmxState, bytes]:
    """The state and the memory, from address 0 on, after ldx, ldy, ldz, ldzi, stx, sty, stz or stzi.

    Raises ValueError for another instruction, an operand of more bits, an address outside of the memory, and one of a
    pair that is no multiple of 128.
    """
    if name not in MOVES:
        raise ValueError(f"no load or store {name!r}; there are {', '.join(MOVES)}")
    at = Transfer.decode(operand.encode() if isinstance(operand, Transfer) else operand)
    side = name[2]
    places = _places(at, getattr(state, side), halves=name.endswith("i"))
    start, stop = at.pointer, at.pointer + len(places)
    if stop > len(memory):
        raise ValueError(f"{name} of the bytes {start:#x} to {stop:#x} of a memory of {len(memory):#x}")
    if len(places) > _BYTES and start % len(places):
        raise ValueError(
            f"{name} of a pair needs an address that is a multiple of {len(places)}, not {start:#x}"
        )
    held = bytearray(getattr(state, side))
    if name.startswith("st"):
        moved = bytes(held[place] for place in places)
        return state, memory[:start] + moved + memory[stop:]
    for place, byte in zip(places, memory[start:stop], strict=True):
        held[place] = byte
    return replace(state, **{side: bytes(held)}), memory


def _places(at: Transfer, held: bytes, halves: bool) -> list[int]:
    """The bytes of a register file that bytes of memory are moved to or from, in the memory's order."""
    registers = len(held) // _BYTES
    if not halves:
        first = _BYTES * (at.register % registers)
        return [(first + n) % len(held) for n in range(_BYTES << at.pair)]
    row, right = at.register & ~1, at.register & 1
    lanes = (_BYTES * (row + m % 2) + 4 * (8 * right + m // 2) for m in range(_BYTES // 4))
    return [lane + n for lane in lanes for n in range(4)]
