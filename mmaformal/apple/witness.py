"""A state and an operand that show something of an instruction of Apple AMX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mmaformal.apple.operand import AmxOperand
from mmaformal.apple.state import SIZES, AmxState
from mmaformal.display import Summarised


@dataclass(frozen=True, repr=False)
class AmxWitness(Summarised):
    """A state and an operand, with a note of what is to be seen where the instruction is run on them."""

    name: str
    operand: int  #: 64 bits
    state: AmxState
    note: str

    def to_json(self) -> dict[str, object]:
        state = {name: getattr(self.state, name).hex() for name in SIZES}
        return {"instruction": self.name, "operand": f"{self.operand:#018x}", **state, "note": self.note}

    @property
    def summary(self) -> str:
        return f"{self.name} with the operand {self.operand:#018x}: {self.note}"

    def __str__(self) -> str:
        lines = [f"operand  {self.operand:#018x}  {AmxOperand.decode(self.operand)}"]
        for name in SIZES:
            data = getattr(self.state, name)
            rows = [(start, data[start : start + 64]) for start in range(0, len(data), 64)]
            lines += [f"{name}[{start}:]".ljust(9) + row.hex() for start, row in rows if any(row)]
        return "\n".join(
            [self.name, *(f"  {line}" for line in lines), "  all other bytes of the state are 0", self.note]
        )


def least_state(state: AmxState, shows: Callable[[AmxState], bool]) -> AmxState:
    """The state with as many registers zero as leave what it shows."""
    for name, size in SIZES.items():
        for start, stop in ((0, size), (0, size // 2), (size // 2, size)):
            data = getattr(state, name)
            trial = replace(state, **{name: data[:start] + bytes(stop - start) + data[stop:]})
            if trial != state and shows(trial):
                state = trial
    return state
