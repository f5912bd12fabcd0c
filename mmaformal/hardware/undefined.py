"""Undefined bits (x) of a design: which values there make its d wrong, and what its bits are called.

Also which inputs d does not depend on; and of a program, for which inputs its behaviour is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.inputs import Inputs, Rows
from mmaformal.display import ShortRepr
from mmaformal.hardware.module import Module
from mmaformal.solver.asking import constants_of

#: Milliseconds that z3 may take to find values of what is undefined where the inputs are known.
_PATIENCE = 5000
#: Milliseconds that its simplifier may take to see that d does not depend on an input.
_SIMPLIFYING = 2000

#: The name of d where a program's behaviour is undefined, and it may be anything: no input's name has spaces.
_ANYTHING = "d where behaviour is undefined"

ConstantBit = tuple[str, int]  #: of a constant, by its name


@dataclass(frozen=True, repr=False)
class Finding(ShortRepr):
    """A way to undefined behaviour: for which inputs, what it is, and where."""

    when: z3.BoolRef
    what: str
    line: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.line})" if self.line else self.what


@dataclass(frozen=True, repr=False)
class ProgramBehaviour(ShortRepr):
    """The program that a design is, besides its terms: itself, to be run, and where it is undefined."""

    plain: Module  #: its d for inputs for which its behaviour is not undefined
    run: Callable[[Rows], NDArray[np.uint64]]  #: the program's own d, as it is run; raises HardwareError
    how: str  #: what is run: `fma as clang compiles it`
    findings: tuple[Finding, ...] = ()  #: the ways to undefined behaviour
    rows: int = 4000  #: random rows on which it is run before it is said to be right

    @property
    def trapped(self) -> Module:
        """The program as a module whose d may be anything where behaviour is undefined."""
        if not self.findings:
            return self.plain
        claims = [each.when for each in self.findings]
        d = self.plain.outputs["d"]
        anything = z3.BitVec(_ANYTHING, d.size())
        known = {str(x) for x in (*self.plain.inputs.values(), *self.plain.undefined.values())}
        others = {
            f"{x} ": x for each in claims for x in constants_of(each) if " " in str(x) and str(x) not in known
        }
        undefined = {**self.plain.undefined, **others, f"{_ANYTHING} ": anything}
        return replace(self.plain, outputs={"d": z3.If(z3.Or(claims), anything, d)}, undefined=undefined)


@dataclass(frozen=True, repr=False)
class Choice(ShortRepr):
    """Values of what is undefined with which d is wrong, and the bits that have to be so."""

    values: Mapping[str, int]  #: by the constants' names
    needed: Mapping[str, int]  #: by what a person calls the bits


def constants_undefined(module: Module) -> list[z3.BitVecRef]:
    """The constants that stand for what is undefined, in the order of the design."""
    return list(module.undefined.values())


def drawn(module: Module, count: int, seed: int) -> dict[str, NDArray[np.object_]]:
    """Values of what is undefined for a number of cases: all 0 for the seed 0, all 1 for 1, else random."""
    random = np.random.default_rng(seed)
    found = {}
    for constant in constants_undefined(module):
        bits = constant.size()
        column = np.zeros(count, object)
        for low in range(0, bits, 32):
            word = random.integers(0, 1 << min(32, bits - low), count).astype(object)
            column = column | (word << low)
        ones = (1 << bits) - 1
        found[str(constant)] = column if seed > 1 else np.full(count, ones * seed, object)
    return found


def choose(module: Module, wrong: z3.BoolRef) -> Choice | None:
    """Values with which a claim about what is undefined alone is true; None if z3 finds none.

    No fewer of the needed bits make it true whatever the others are, as far as z3 settles that.
    """
    constants = [each for each in constants_undefined(module) if each.get_id() in _ids(wrong)]
    solver = z3.Solver()
    solver.set("timeout", _PATIENCE)
    solver.add(wrong)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    values = {str(x): model.eval(x, model_completion=True).as_long() for x in constants}
    core = _core(wrong, constants, values)
    names = names_of_bits(module)
    needed = {names[bit]: values[bit[0]] >> bit[1] & 1 for bit in core}
    return Choice({str(x): values.get(str(x), 0) for x in constants_undefined(module)}, needed)


def _ids(term: z3.ExprRef) -> set[int]:
    return {constant.get_id() for constant in constants_of(term)}


def _core(
    wrong: z3.BoolRef, constants: Sequence[z3.BitVecRef], values: Mapping[str, int]
) -> list[ConstantBit]:
    """Bits whose values make a claim true whatever the others are: all of them where z3 does not settle that."""
    marks: dict[ConstantBit, z3.BoolRef] = {}
    solver = z3.Solver()
    solver.set("timeout", _PATIENCE)
    solver.add(z3.Not(wrong))
    for x in constants:
        for bit in range(x.size()):
            mark = z3.Bool(f"bit {bit} of {x}")
            solver.add(z3.Implies(mark, z3.Extract(bit, bit, x) == (values[str(x)] >> bit & 1)))
            marks[str(x), bit] = mark
    kept = list(marks)
    if solver.check(*marks.values()) == z3.unsat:
        core = {str(mark) for mark in solver.unsat_core()}
        kept = [bit for bit in kept if str(marks[bit]) in core]
    for each in list(kept):
        fewer = [bit for bit in kept if bit != each]
        if solver.check(*(marks[bit] for bit in fewer)) == z3.unsat:
            kept = fewer
    return kept


def names_of_bits(module: Module) -> dict[ConstantBit, str]:
    """Return a name for each undefined bit: a bit of the first wire or output that has it; `x1[0]` if none does."""
    found: dict[ConstantBit, str] = {}
    for name, term in (*module.wires.items(), *module.outputs.items()):
        for place, of in places(term):
            found.setdefault(of, f"{name}[{place}]")
    for i, (key, constant) in enumerate(module.undefined.items(), 1):
        name = key.strip() if key.endswith(" ") else f"x{i}"
        signal, _, use = str(constant).partition(", use ")
        for bit in range(constant.size()):
            own = f"{found[signal, bit]} at use {use}" if (signal, bit) in found and use else f"{name}[{bit}]"
            found.setdefault((str(constant), bit), own)
    return found


def places(term: z3.ExprRef) -> list[tuple[int, ConstantBit]]:
    """The bits of a term that are bits of constants: their places in it, and which they are."""
    if z3.is_app_of(term, z3.Z3_OP_CONCAT):
        found, low = [], 0
        for part in reversed(term.children()):
            found += [(low + place, bit) for place, bit in places(part)]
            low += part.size()
        return found
    if z3.is_app_of(term, z3.Z3_OP_ZERO_EXT) or z3.is_app_of(term, z3.Z3_OP_SIGN_EXT):
        return places(term.arg(0))
    low, size = 0, term.size() if isinstance(term, z3.BitVecRef) else 0
    if z3.is_app_of(term, z3.Z3_OP_EXTRACT):
        low, term = term.params()[1], term.arg(0)
    if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        name = term.decl().name()  # what z3 prints, which takes it long
        return [(place, (name, low + place)) for place in range(size)]
    return []


def not_used(module: Module, inputs: Inputs) -> list[str]:
    """The inputs that d does not depend on, `a[3]`, neighbours together: those that its simplified term has not."""
    d = module.outputs["d"]
    used = {str(x) for x in constants_of(z3.simplify(d, timeout=_SIMPLIFYING))}
    found = []
    for name in ("a", "b", "c", "scale_a", "scale_b"):
        side = getattr(inputs, name)
        if name == "c":
            found += ["c"] if str(side) not in used else []
            continue
        places = [i for i, term in enumerate(side) if str(term) not in used]
        found += [f"{name}{text}" for text in _runs(places)]
    return found


def unused(module: Module, inputs: Inputs) -> tuple[str, ...]:
    """The line that warns of inputs that d does not depend on, or none."""
    names = not_used(module, inputs)
    return (f"warning: d does not depend on {', '.join(names)}",) if names else ()


def _runs(places: Sequence[int]) -> list[str]:
    """`[3]`, `[5…8]`."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return [f"[{first}]" if first == last else f"[{first}…{last}]" for first, last in runs]
