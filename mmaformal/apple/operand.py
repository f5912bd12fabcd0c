"""Words of Apple AMX: the 64-bit operand of fma and fms by named fields, and A64 instruction words.

Source: corsix/amx, "Instruction encoding" and the tables of fma16, fma32, fma64.  Other operands are in `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from mmaformal.display import ShortRepr

#: The number of each instruction, in its A64 word.
OPS = {"fma64": 10, "fma32": 12, "fma16": 15}
#: and of all that act on the registers alone; those that move a row between X, Y and Z are variants of extrh and extrv
NUMBERS = OPS | {
    "fms64": 11, "fms32": 13, "fms16": 16, "mac16": 14, "vecint": 18, "vecfp": 19, "matint": 20, "matfp": 21,
    "extrh": 8, "extrv": 9, "genlut": 22,
}  # fmt: skip
#: set and clr have a number in the place of a register.
_STATE, _STATE_OP = ("set", "clr"), 17
#: and of loads and stores (`memory`)
MOVES = {name: op for op, name in enumerate(("ldx", "ldy", "stx", "sty", "ldz", "stz", "ldzi", "stzi"))}
_WORDS = MOVES | NUMBERS
_NAMES = {op: name for name, op in _WORDS.items()}
_RESERVED = 0x00201000  #: an A64 word that no other instruction has; below it, the number and a register

#: (lowest bit, width) of each field of an operand.
FIELDS = {
    "y_offset": (0, 9),
    "x_offset": (10, 9),
    "z_row": (20, 6),
    "skip_z": (27, 1),
    "skip_y": (28, 1),
    "skip_x": (29, 1),
    "y_enable_value": (32, 5),
    "y_enable_mode": (37, 2),
    "x_enable_value": (41, 5),
    "x_enable_mode": (46, 2),
    "y_f16": (60, 1),
    "x_f16": (61, 1),
    "z_f32": (62, 1),
    "vector": (63, 1),
}


@dataclass(frozen=True, repr=False)
class AmxOperand(ShortRepr):
    """The operand of an fma: what each field of the 64 bits says.  Raises ValueError if one does not fit."""

    y_offset: int = 0  #: in bytes, into the pool of Y
    x_offset: int = 0  #: in bytes, into the pool of X
    z_row: int = 0
    skip_z: int = 0  #: 1: without z
    skip_y: int = 0  #: 1: without y
    skip_x: int = 0  #: 1: without x
    y_enable_value: int = 0
    y_enable_mode: int = 0  #: 0: all, odd, even, no lanes; 1: one; 2: the first; 3: the last
    x_enable_value: int = 0
    x_enable_mode: int = 0
    y_f16: int = 0  #: fma32 alone: 1 for fp16 in the low half of each lane
    x_f16: int = 0
    z_f32: int = 0  #: fma16 in matrix mode alone: 1 for accumulation in fp32
    vector: int = 0  #: 1: vector mode, 0: matrix mode

    def __post_init__(self) -> None:
        for name, (_, width) in FIELDS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < 1 << width:
                raise ValueError(
                    f"{name} has {width} bit{'s' if width > 1 else ''}: 0 to {(1 << width) - 1}, not {value!r}"
                )

    @classmethod
    def decode(cls, bits: int) -> AmxOperand:
        """The fields of 64 bits; those that the instructions ignore are left out.  Raises ValueError if not 64 bits."""
        if not 0 <= bits < 1 << 64:
            raise ValueError(f"an operand has 64 bits, not {bits:#x}")
        return cls(**{name: (bits >> low) & ((1 << width) - 1) for name, (low, width) in FIELDS.items()})

    def encode(self) -> int:
        """The 64 bits."""
        return sum(getattr(self, name) << low for name, (low, _) in FIELDS.items())

    def __str__(self) -> str:
        """The fields that are not 0."""
        told = [f"{each.name}={value}" for each in fields(self) if (value := getattr(self, each.name))]
        return " ".join(told) or "0"


@dataclass(frozen=True, repr=False)
class Word(ShortRepr):
    """An A64 instruction word of AMX: an instruction, and the register that holds its operand."""

    name: str
    register: int = 0  #: set and clr have none

    def __post_init__(self) -> None:
        if self.name not in _WORDS and self.name not in _STATE:
            raise ValueError(
                f"no AMX instruction {self.name!r} here; there are {', '.join(_WORDS)}, set, clr"
            )
        if self.name in _STATE and self.register:
            raise ValueError(f"{self.name} has no register, not {self.register!r}")
        if not 0 <= self.register <= 31:
            raise ValueError(f"a register is one of x0 to x30, or 31, not {self.register!r}")

    @classmethod
    def decode(cls, word: int) -> Word | None:
        """None if the word is no instruction of AMX that is modelled."""
        op, low = (word >> 5) & 31, word & 31
        if word & ~0x3FF != _RESERVED or (op not in _NAMES and (op != _STATE_OP or low >= len(_STATE))):
            return None
        return cls(_STATE[low]) if op == _STATE_OP else cls(_NAMES[op], low)

    def encode(self) -> int:
        if self.name in _STATE:
            return _RESERVED | _STATE_OP << 5 | _STATE.index(self.name)
        return _RESERVED | _WORDS[self.name] << 5 | self.register

    def __str__(self) -> str:
        if self.name in _STATE:
            return self.name
        return f"{self.name} {'xzr' if self.register == 31 else f'x{self.register}'}"


def disassemble(words: Iterable[int]) -> Iterator[str]:
    """A line for each 32-bit word: its place in bytes, its digits, and what it is; else `.word`."""
    for n, word in enumerate(words):
        if not 0 <= word < 1 << 32:
            raise ValueError(f"an instruction word has 32 bits, not {word:#x}")
        found = Word.decode(word)
        yield f"{4 * n:8x}:  {word:08x}  {found if found else f'.word {word:#010x}'}"
