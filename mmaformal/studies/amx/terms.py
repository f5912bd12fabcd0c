"""The SMT encoding of Apple AMX with what elements become left open, and on states of bytes.

An element's arithmetic is a term of hundreds of operations, and a state has up to 3072 elements.  So terms of a state
have a constant in the place of each, and the arithmetic is one term, evaluated for all elements together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
import z3

from mmaformal.apple.state import SIZES, AmxState
from mmaformal.cases.evaluate import Column, evaluate
from mmaformal.encodings.amx import smt as amx
from mmaformal.encodings.smt.blocks import BitVec
from mmaformal.rounding import Conversion

#: Constants and their values.
ConstantValues: TypeAlias = list[tuple[z3.ExprRef, z3.ExprRef]]


class AluCall(NamedTuple):
    """An element whose result is left open: what would be computed of it, and the constant that stands for it."""

    rho: Conversion
    skip: BitVec
    element: amx.LaneElement
    code: BitVec


class OpenElements:
    """Constants that stand for what elements become, each with a number in its name."""

    def __init__(self, name: str = "element") -> None:
        self.name = name
        self.calls: list[AluCall] = []

    def unit(self, rho: Conversion, skip: BitVec, element: amx.LaneElement) -> BitVec:
        code = z3.BitVec(f"{self.name}{len(self.calls)}", rho.format.storage_bits)
        self.calls.append(AluCall(rho, skip, element, code))
        return code

    def values(self, pairs: ConstantValues) -> ConstantValues:
        """The constants and what is computed, where operand and state have values."""
        found: ConstantValues = []
        for rho in dict.fromkeys(call.rho for call in self.calls):
            calls = [call for call in self.calls if call.rho is rho]
            columns = {"skip": _values([call.skip for call in calls], pairs)}
            for name in ("x", "y", "z"):
                columns[name] = _values([getattr(call.element, name) for call in calls], pairs)
            codes = evaluate(_alu(rho), columns)
            found += [
                (call.code, z3.BitVecVal(int(code), call.code.size()))
                for call, code in zip(calls, codes, strict=True)
            ]
        return found


def _word(data: bytes) -> BitVec:
    """The first byte the lowest."""
    return z3.BitVecVal(int.from_bytes(data, "little"), 8 * len(data))


def _words(state: AmxState) -> amx.State:
    return amx.State(_word(state.x), _word(state.y), tuple(_word(state.row(r)) for r in range(amx.ROWS)))


def constants() -> amx.State:
    """Any state."""
    x, y = (z3.BitVec(side, 8 * SIZES[side]) for side in "xy")
    return amx.State(x, y, tuple(z3.BitVec(f"z{r}", 512) for r in range(amx.ROWS)))


def named_words(state: AmxState) -> ConstantValues:
    """The `constants`, and what they are in a state."""
    (x, y, z), (u, v, w) = constants(), _words(state)
    return [(x, u), (y, v), *zip(z, w, strict=True)]


def execute_terms(state: AmxState, name: str, operand: int) -> AmxState:
    """The state after fma16, fma32 or fma64, as the SMT encoding has it."""
    open_ = OpenElements()
    after = amx.execute(name, _words(state), z3.BitVecVal(operand, 64), open_.unit).state
    whole = z3.simplify(z3.substitute(z3.Concat(after.z[::-1]), *open_.values([])))
    return AmxState(state.x, state.y, _integer(whole).to_bytes(len(state.z), "little"))


def _integer(value: BitVec) -> int:
    """Python makes none of so many decimal digits."""
    text = value.sexpr()
    return int(text[2:], 2 if text.startswith("#b") else 16)


def _values(terms: Sequence[BitVec], pairs: ConstantValues) -> Column:
    distinct = {term.get_id(): term for term in terms}
    # All at once: a substitution takes as long for one term.
    shared = z3.simplify(z3.substitute(z3.Concat([z3.BitVecVal(0, 1), *distinct.values()]), *pairs))
    digits, low, found = _integer(shared), 0, {}
    for number, term in reversed(distinct.items()):
        found[number] = (digits >> low) & ((1 << term.size()) - 1)
        low += term.size()
    return np.array([found[term.get_id()] for term in terms], object)


@cache
def _alu(rho: Conversion) -> BitVec:
    x, y, z = (z3.BitVec(name, rho.format.storage_bits) for name in ("x", "y", "z"))
    return amx.alu(rho, z3.BitVec("skip", 3), x, y, z).result
