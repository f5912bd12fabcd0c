"""Instructions of every algorithm, and rows that the playground is asked."""

from __future__ import annotations

from random import Random

import numpy as np

from mmaformal import ARCHITECTURES, Instruction
from mmaformal.formats import Format

_SPELLED = [ARCHITECTURES["datapath"], ARCHITECTURES["emulation"]]

#: An instruction of each algorithm: the first of the tables, or the first that is spelled as an example.
EXAMPLES = {
    i.algorithm: i
    for architecture in reversed([*ARCHITECTURES.values(), *_SPELLED])
    for i in reversed([architecture[name] for name in architecture.keys()])  # noqa: SIM118 - it iterates over rows
}


def asked(i: Instruction, random: Random) -> dict[str, list[str]]:
    """Codes of all operands, of every kind, as a request has them."""
    scales = i.spec.scales if i.spec.scale_format is not None else 0
    counts = {"a": i.k, "b": i.k, "c": 1, "scale_a": scales, "scale_b": scales}

    def code(fmt: Format) -> str:
        return f"{random.randrange(fmt.codes) & random.randrange(fmt.codes):#x}"

    return {side: [code(i.format_of(side)) for _ in range(count)] for side, count in counts.items() if count}


def expected(i: Instruction, words: dict[str, list[str]]) -> int:
    """The code that `dot_add` gives."""
    codes = {
        side: np.array([int(word, 16) for word in each], i.format_of(side).word)
        for side, each in words.items()
    }
    return int(i.dot_add(**(codes | {"c": codes["c"][0]})))
