"""Claims about fma16, fma32 and fma64 for all operands and all states, as formulas about the SMT encoding.

What elements become is left open where a claim does not depend on it.  Which lanes are enabled, and which row and place
a lane has, is said here once more, as the tables of corsix/amx have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.encodings.amx import smt as amx
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks, ieee
from mmaformal.encodings.smt.blocks import BitVec, Bool
from mmaformal.proof.kernel import Link, Theorem
from mmaformal.rounding import Conversion
from mmaformal.studies.amx.alu import equal
from mmaformal.studies.amx.terms import OpenElements, constants

ROWS = amx.ROWS

#: Lowest bit and width of what no instruction uses, of what one does not, and what vector mode does not.
_UNUSED = ((48, 12), (39, 2), (30, 2), (26, 1), (19, 1), (9, 1))
_UNUSED_BY = {"fma16": ((60, 2),), "fma32": ((62, 1),), "fma64": ((60, 3),)}
_UNUSED_IN_VECTOR_MODE = ((62, 1), (37, 2), (32, 5))

#: Bits of z_row that matrix mode uses: of those that are congruent, one row in two, four, eight.
_ROW_BITS = {"fma16": 1, "fma32": 2, "fma64": 3}


@dataclass(frozen=True)
class InstructionRun:
    """An instruction on any state, what elements become left open."""

    name: str
    operand: BitVec
    before: amx.State
    trace: amx.AmxTrace
    elements: OpenElements

    @classmethod
    def of(cls, name: str, operand: BitVec, elements: str = "element") -> InstructionRun:
        before = constants()
        open_ = OpenElements(elements)
        return cls(name, operand, before, amx.execute(name, before, operand, open_.unit), open_)

    @property
    def lanes(self) -> int:
        return len(self.trace.x.codes)

    @property
    def stride(self) -> int:
        return ROWS // self.lanes

    @property
    def vector(self) -> Bool:
        return amx.flag(self.operand, 63)

    @property
    def mixed(self) -> Bool:
        """Whether it is fma16 onto fp32."""
        return z3.And(z3.Not(self.vector), amx.flag(self.operand, 62), z3.BoolVal(self.name == "fma16"))

    @property
    def row(self) -> BitVec:
        return amx.field(self.operand, 20, 6)

    @property
    def grids(self) -> list[amx.Grid]:
        return [grid for grid in (self.trace.grid, self.trace.pairs) if grid is not None]

    def kept(self, row: int) -> Bool:
        return self.trace.state.z[row] == self.before.z[row]


class ElementOperation(NamedTuple):
    """One element's arithmetic, on codes x, y and z of ρ's format."""

    rho: Conversion
    skip: int  #: bits 29, 28, 27
    result: BitVec
    expected: BitVec


class AmxQuestion(NamedTuple):
    """A formula that is to hold for all values of its constants: of runs, or of one element."""

    statement: str
    formula: Bool
    runs: tuple[InstructionRun, ...] = ()
    operation: ElementOperation | None = None
    theorem: Theorem | None = None  #: how it is proved, if not at once


@dataclass(frozen=True)
class AmxClaim:
    """A claim about an instruction: its words, and the questions that settle it."""

    name: str
    statement: str
    questions: Callable[
        [str], Iterable[AmxQuestion]
    ]  #: of fma16, fma32, fma64; none where it says nothing of it


OPERAND = z3.BitVec("operand", 64)


# ---- which rows, which lanes ---------------------------------------------------------------------------------------


def _enabled(enable: BitVec, lane: int, lanes: int) -> Bool:
    """Whether a lane takes part, by the table of enable modes; `enable` has the mode above the value."""
    mode, value = amx.field(enable, 5, 2), amx.field(enable, 0, 5)
    n = z3.URem(z3.ZeroExt(1, value), lanes)
    listed = z3.Or(value == 0, value == (1 if lane % 2 else 2))
    few = z3.Or(n == 0, z3.If(mode == 2, z3.ULT(lane, n), z3.UGE(lane, lanes - n)))
    return z3.If(mode == 0, listed, z3.If(mode == 1, n == lane, few))


def _disabled(name: str) -> Iterator[AmxQuestion]:
    run = InstructionRun.of(name, OPERAND)
    in_x, in_y = (
        [_enabled(amx.field(OPERAND, low, 7), i, run.lanes) for i in range(run.lanes)] for low in (41, 32)
    )
    size = 8 * run.stride
    for r in range(ROWS):
        j = r // run.stride
        after, before = (amx.split(z[r], size) for z in (run.trace.state.z, run.before.z))
        taken = z3.Or(run.vector, in_y[j])
        claims = [z3.Implies(z3.Not(z3.And(in_x[i], taken)), after[i] == before[i]) for i in range(run.lanes)]
        formula = z3.Implies(z3.Not(run.mixed), z3.And(claims))
        but = ", but for matrix mode onto fp32" if name == "fma16" else ""
        yield AmxQuestion(f"disabled lanes of row {r} keep their bytes{but}", formula, (run,))
        if name == "fma16":
            after, before = (amx.split(z[r], 32) for z in (run.trace.state.z, run.before.z))
            part = [z3.And(in_x[2 * p + r % 2], in_y[r // 2]) for p in range(16)]
            claims = [z3.Implies(z3.Not(part[p]), after[p] == before[p]) for p in range(16)]
            formula = z3.Implies(run.mixed, z3.And(claims))
            yield AmxQuestion(
                f"disabled lanes of row {r} keep their bytes in matrix mode onto fp32", formula, (run,)
            )


def _vector_row(name: str) -> Iterator[AmxQuestion]:
    run = InstructionRun.of(name, OPERAND)
    kept = [z3.Or(run.row == r, run.kept(r)) for r in range(ROWS)]
    yield AmxQuestion(
        "in vector mode all rows but z_row are kept", z3.Implies(run.vector, z3.And(kept)), (run,)
    )


def _matrix_rows(name: str) -> Iterator[AmxQuestion]:
    run = InstructionRun.of(name, OPERAND)
    congruent = [z3.URem(run.row, run.stride) == r % run.stride for r in range(ROWS)]
    kept = z3.And([z3.Or(here, run.kept(r)) for r, here in enumerate(congruent)])
    given = z3.And(z3.Not(run.vector), z3.Not(run.mixed))
    mode = "in matrix mode" + (" onto fp16" if name == "fma16" else "")
    text = f"{mode} rows that are not congruent to z_row modulo {run.stride} are kept"
    yield AmxQuestion(text, z3.Implies(given, kept), (run,))


def _bijection(name: str) -> Iterator[AmxQuestion]:
    if name != "fma16":
        return
    i, j, row, place = z3.BitVec("i", 5), z3.BitVec("j", 5), z3.BitVec("row", 6), z3.BitVec("place", 4)

    def there(i: BitVec, j: BitVec) -> BitVec:
        """Row 2j + i mod 2, and place i div 2 in it."""
        row = 2 * z3.ZeroExt(1, j) + z3.URem(z3.ZeroExt(1, i), 2)
        return z3.Concat(row, z3.Extract(3, 0, z3.UDiv(i, z3.BitVecVal(2, 5))))

    i_of = 2 * z3.ZeroExt(1, place) + z3.Extract(4, 0, z3.URem(row, 2))
    j_of = z3.Extract(4, 0, z3.UDiv(row, z3.BitVecVal(2, 6)))
    onto = there(i_of, j_of) == z3.Concat(row, place)
    yield AmxQuestion("each place of Z is that of a pair of lanes", onto)
    k, m = z3.BitVec("k", 5), z3.BitVec("m", 5)
    one = z3.Implies(there(i, j) == there(k, m), z3.And(i == k, j == m))
    yield AmxQuestion("and of one pair only", one)
    run = InstructionRun.of(name, OPERAND)
    pairs = run.trace.pairs
    assert pairs is not None
    claims = []
    for r, p in ((r, p) for r in range(ROWS) for p in range(16)):
        at, lane_i, lane_j = pairs.elements[r][p], 2 * p + r % 2, r // 2
        x, y = amx.widened(run.trace.x.codes[lane_i]), amx.widened(run.trace.y.codes[lane_j])
        here = amx.split(run.trace.state.z[r], 32)[p]
        claims.append(
            z3.And(at.x == x, at.y == y, at.z == amx.split(run.before.z[r], 32)[p], here == pairs.codes[r][p])
        )
    everything = z3.And(amx.field(OPERAND, 41, 7) == 0, amx.field(OPERAND, 32, 7) == 0, run.mixed)
    text = "onto fp32 with all lanes enabled, lanes i of X and j of Y make what is at the place of (i, j)"
    yield AmxQuestion(text, z3.Implies(everything, z3.And(claims)), (run,))


# ---- what is ignored -----------------------------------------------------------------------------------------------


def _ignored(name: str) -> Iterator[AmxQuestion]:
    always = (*_UNUSED, *_UNUSED_BY[name])
    high = (20 + _ROW_BITS[name], 6 - _ROW_BITS[name])
    modes: list[tuple[str, tuple[tuple[int, int], ...], dict[int, int]]] = [
        ("in vector mode", (*always, *_UNUSED_IN_VECTOR_MODE), {63: 1}),
        ("in matrix mode", (*always, high), {63: 0}),
    ]
    if name == "fma16":
        modes.append(("onto fp32", (*always, (20, 6)), {63: 0, 62: 1}))
    for what, fields, fixed in modes:
        other = {low + n: z3.BitVec("other", 64) for low, width in fields for n in range(width)}
        runs = (
            InstructionRun.of(name, _varied({}, fixed)),
            InstructionRun.of(name, _varied(other, fixed), "other_element"),
        )
        yield _same(what, *runs)


def _varied(other: Mapping[int, BitVec], fixed: Mapping[int, int]) -> BitVec:
    """The operand with bits of another one in some places, and a known bit in others."""
    bits = [
        z3.BitVecVal(fixed[n], 1) if n in fixed else amx.field(other.get(n, OPERAND), n, 1) for n in range(64)
    ]
    return z3.simplify(z3.Concat(bits[::-1]))


def _same(what: str, one: InstructionRun, other: InstructionRun) -> AmxQuestion:
    """Ask whether two runs make the same state, since elements of the same operands become the same."""
    agree = _Agreement()
    function = [
        z3.Implies(agree([one.trace.skip, *x[:3]], [other.trace.skip, *y[:3]]), u == v)
        for grid, varied in zip(one.grids, other.grids, strict=True)
        for r in range(ROWS)
        for x, y, u, v in zip(
            grid.elements[r], varied.elements[r], grid.codes[r], varied.codes[r], strict=True
        )
    ]
    same = [x == y for x, y in zip(one.trace.state.z, other.trace.state.z, strict=True)]
    formula = z3.simplify(z3.Implies(z3.And(function), z3.And(same)))
    return AmxQuestion(f"{what} Z does not depend on the ignored bits", formula, (one, other))


class _Agreement:
    """Claims that terms are equal, as far as z3's simplifier does not see it."""

    def __init__(self) -> None:
        self._said: dict[tuple[int, int], Bool] = {}

    def __call__(self, xs: Sequence[BitVec], ys: Sequence[BitVec]) -> Bool:
        return z3.And([self._equal(x, y) for x, y in zip(xs, ys, strict=True)])

    def _equal(self, x: BitVec, y: BitVec) -> Bool:
        key = x.get_id(), y.get_id()
        if key not in self._said:
            self._said[key] = z3.simplify(x == y)
        return self._said[key]


# ---- arithmetic ----------------------------------------------------------------------------------------------------


def _operations(name: str) -> Iterator[AmxQuestion]:
    rho = amx.RHO[name]
    bits = rho.format.storage_bits
    x, y, z = codes = [z3.BitVec(code, bits) for code in "xyz"]
    one = z3.BitVecVal(rho.format.bias << rho.format.fraction_bits, bits)
    said: dict[str, BitVec | sfma.SfmaStep] = {
        "fma(x, y, z)": sfma.step(rho, x, y, z),
        "x·y": _product(rho, x, y),
        "x + z, which is fma(x, 1, z)": sfma.step(rho, x, one, z),
        "x": x,
        "y + z, which is fma(1, y, z)": sfma.step(rho, one, y, z),
        "y": y,
        "z": z,
        "0": z3.BitVecVal(0, bits),
    }
    for number, (text, code) in enumerate(said.items()):
        mine = amx.alu(rho, z3.BitVecVal(number, 3), *codes)
        text = f"with bits 29, 28, 27 = {number:03b} an element becomes {text}"
        theorem = _is_fma(mine, code, text, codes) if isinstance(code, sfma.SfmaStep) else None
        expected = code.result if isinstance(code, sfma.SfmaStep) else code
        operation = ElementOperation(rho, number, mine.result, expected)
        yield AmxQuestion(text, mine.result == expected, operation=operation, theorem=theorem)


def _is_fma(mine: amx.Alu, other: sfma.SfmaStep, text: str, codes: list[BitVec]) -> Theorem:
    """Argue that an element becomes what an fma gives, by what is added up in both."""
    theorem = Theorem()
    parts = [
        equal(other.product, mine.product),
        equal(other.addend, mine.addend),
        equal(other.special, mine.special),
    ]
    for part in parts:
        theorem.derive("operation", "the same is added up", [part], inputs=codes)
    result = Link(mine.result == other.result)
    theorem.derive("operation", text, [result], parts, codes)
    theorem.conclude(text, result)
    return theorem


def _product(rho: Conversion, a: BitVec, b: BitVec) -> BitVec:
    """IEEE 754 multiplication: the exact product rounded once, without an addition."""
    fmt, M = rho.format, rho.format.fraction_bits
    x, y = blocks.decode(a, fmt), blocks.decode(b, fmt)
    exponents = sfma.exponents_of(fmt)
    term = blocks.multiply(x, y, 2 * fmt.bias, exponents, e_zero=fmt.min_exponent)
    total = z3.ZeroExt(1, term.significand)
    rounded = blocks.normalise_and_round(total, term.exponent, exponents, 2 * M, rho, exponents.low)
    rounded = rounded._replace(sign=term.sign)
    special = blocks.classify([(x, y)], [])
    return blocks.select_special(special, blocks.encode(rounded, rho), fmt, blocks.quiet_nan(fmt))


def _additions(name: str) -> Iterator[AmxQuestion]:
    rho = amx.RHO[name]
    x, y, z = codes = [z3.BitVec(code, rho.format.storage_bits) for code in "xyz"]
    of_x, of_y = (amx.alu(rho, z3.BitVecVal(skip, 3), *codes).result for skip in (2, 4))
    sum_ = ieee.add(x, z, rho, blocks.quiet_nan(rho.format)).result
    text = "x + z is what an IEEE 754 adder gives"
    yield AmxQuestion(text, of_x == sum_, operation=ElementOperation(rho, 2, of_x, sum_))
    other = amx.alu(rho, z3.BitVecVal(2, 3), y, x, z).result
    text = "y + z is what x + z is of the same codes"
    yield AmxQuestion(text, of_y == other, operation=ElementOperation(rho, 4, of_y, other))


CLAIMS = (
    AmxClaim("disabled-lanes", "disabled lanes keep their bytes", _disabled),
    AmxClaim("vector-mode", "vector mode changes one row at most", _vector_row),
    AmxClaim(
        "matrix-mode", "matrix mode (fma16: onto fp16) changes only the rows congruent to z_row", _matrix_rows
    ),
    AmxClaim("interleaved", "onto fp32, pairs of lanes and places of Z correspond one to one", _bijection),
    AmxClaim("ignored-bits", "bits that the tables call ignored are ignored", _ignored),
    AmxClaim("operations", "bits 27 to 29 choose the operation that the table says", _operations),
    AmxClaim("additions", "x + z and y + z are IEEE 754 additions", _additions),
)
