"""Operands and states of Apple AMX for digests: made from an instruction's name alone, the same in every run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmaformal.apple import AmxState, tables

COUNT = 100  #: of each instruction

#: Fields that are 0 in every other operand, so that all lanes are enabled, and of one vector.
_PLAIN = ("several", "zero", "broadcast")


def cases(name: str) -> Iterator[tuple[int, int, AmxState]]:
    """Yield 64-bit operands, generations 1 to 4 and random states; most modes are those that there are."""
    rng = np.random.default_rng(list(name.encode()))
    for n in range(COUNT):
        fields = {f: int(rng.integers(0, 1 << width)) for f, (_, width) in tables.FIELDS[name].items()}
        if "alu" in fields:
            fields |= {"alu": int(rng.integers(0, 13)), "indexed": int(n % 5 == 4)}
            left_out = ("alu",) if fields["indexed"] else ("indexed_y", "four_bits", "table")
            fields = {f: value for f, value in fields.items() if f not in left_out}
        if n % 2:
            fields = {f: 0 if "enable" in f or f in _PLAIN else value for f, value in fields.items()}
        operand = 0
        for f, value in fields.items():
            operand |= value << tables.FIELDS[name][f][0]
        x, y, z = (rng.integers(0, 256, size, dtype=np.uint8).tobytes() for size in (512, 512, 4096))
        yield operand, 1 + n % 4, AmxState(x, y, z)
