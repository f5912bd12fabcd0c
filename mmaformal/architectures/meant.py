"""Architectures and instructions by their names, where a function takes either.

architecture_meant("h100")                     # hopper
instruction_meant("h100 HMMA.16816.F32")       # hopper["HMMA.16816.F32"]
instruction_meant("RTX 4090 e4m3")             # the one function of ada that takes e4m3
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mmaformal.architectures import (
    ARCHITECTURES,
    Architecture,
    UnknownArchitectureError,
    UnknownInstructionError,
)
from mmaformal.instruction import Instruction


def architecture_meant(x: Architecture | str) -> Architecture:
    """The architecture itself, or the one of that name.

    Raises UnknownArchitectureError or UnknownRevisionError; TypeError for anything else.
    """
    if isinstance(x, str):
        return ARCHITECTURES[x]
    if not isinstance(x, Architecture):
        raise TypeError(f"expected an Architecture or its name, not {type(x).__name__}")
    return x


@runtime_checkable
class StandsForInstruction(Protocol):
    """Stands for an instruction once it is proved to be one, as a design does (`mmaformal.from_rtl`)."""

    def as_instruction(self) -> Instruction:
        """The instruction; raises ValueError where it is not known to be one."""


def instruction_meant(x: Instruction | StandsForInstruction | str) -> Instruction:
    """The instruction itself, or the one that `ARCH INSTRUCTION` names; ARCH may have several words.

    A design is the model that it is proved to be, and raises ValueError where none is proved.  Raises
    UnknownInstructionError, UnknownArchitectureError or UnknownRevisionError; TypeError for anything else.
    """
    if isinstance(x, Instruction):
        return x
    if isinstance(x, StandsForInstruction):
        return x.as_instruction()
    if not isinstance(x, str):
        raise TypeError(
            f'expected an Instruction or its name ("hopper HMMA.16816.F32"), not {type(x).__name__}'
        )
    words = x.split()
    if len(words) < 2:
        raise UnknownInstructionError(
            f'{x.strip()!r} names no instruction: write "ARCH INSTRUCTION", "hopper HMMA.16816.F32"'
        )
    for count in range(len(words) - 1, 0, -1):
        name = " ".join(words[:count])
        if ARCHITECTURES.canonical(name.partition("@")[0]) is not None:
            return ARCHITECTURES[name].meant(" ".join(words[count:]))
    raise UnknownArchitectureError(ARCHITECTURES.not_found(words[0]))
