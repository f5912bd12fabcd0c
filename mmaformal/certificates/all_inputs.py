"""A script for all values of its constants: each gate of its circuit is computed for as many inputs as an array has.

This is a second opinion on a proof, of another kind: no solver, no argument, no clause; only the blaster's circuits.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mmaformal.certificates.blaster import Blaster
from mmaformal.certificates.circuits import TRUE
from mmaformal.certificates.expressions import ScriptError, expressions

_Packed = NDArray[np.uint8]  #: eight rows a byte


class AllInputs:
    """The assertions of a script, to be evaluated.  Raises ScriptError if it is not read."""

    def __init__(self, script: str) -> None:
        blaster = Blaster()
        for command in expressions(script):
            blaster.do(command)
        self._gates, self._constants = blaster.circuit.gates, blaster.constants
        self._asserted = list(blaster.asserted)
        needed, waiting = {TRUE}, [abs(each) for each in self._asserted]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting += map(abs, self._gates[number][1])
        self._order = sorted(needed)
        self._last = {abs(x): n for n in self._order for x in self._gates[n][1]}

    def __len__(self) -> int:
        """Return how many gates the assertions depend on."""
        return len(self._order)

    def hold(self, values: Mapping[str, NDArray[np.uint64]]) -> NDArray[np.bool_]:
        """Return for each row whether all assertions hold; `values` has an array of codes, (rows,), for each constant.

        Raises ScriptError if the script has a constant without values, ValueError if the arrays differ in length.
        """
        if missing := self._constants.keys() - values.keys():
            raise ScriptError(f"no values of {', '.join(sorted(missing))}")
        if len({len(each) for each in values.values()}) != 1:
            raise ValueError("an array of values for each constant, all of one length")
        rows = len(next(iter(values.values())))
        found: dict[int, _Packed] = {TRUE: np.full((rows + 7) // 8, 255, np.uint8)}
        for name, literals in self._constants.items():
            bits = (literals,) if isinstance(literals, int) else literals
            found |= {
                bit: np.packbits((values[name] >> np.uint64(i) & np.uint64(1)) == 1)
                for i, bit in enumerate(bits)
            }
        kept = {TRUE, *map(abs, self._asserted)}
        for number in self._order:
            function, operands = self._gates[number]
            if operands:
                found[number] = _computed(function, [_value(found, x) for x in operands])
            for x in map(abs, operands):
                if self._last[x] == number and x not in kept:
                    found.pop(x, None)
        whole = found[TRUE]
        for literal in self._asserted:
            whole = whole & _value(found, literal)
        return np.unpackbits(whole, count=rows).astype(np.bool_)


def _value(found: Mapping[int, _Packed], literal: int) -> _Packed:
    return found[literal] if literal > 0 else ~found[-literal]


def _computed(function: str, of: list[_Packed]) -> _Packed:
    if function == "and":
        return of[0] & of[1]
    if function == "xor":
        return of[0] ^ of[1]
    if function == "ite":
        return (of[0] & of[1]) | (~of[0] & of[2])
    if function == "maj":
        return (of[0] & of[1]) | (of[2] & (of[0] | of[1]))
    raise ValueError(f"there is no gate {function}")
