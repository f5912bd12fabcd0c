"""Mutate the netlists of the tests' designs in small formats, and see whether any that is wrong is called equal.

python tools/mutate_designs.py                          # 50 mutants of each design, and 10 that are rewritten
python tools/mutate_designs.py dpa gated --count 10 --seed 3 --timeout 20
python tools/mutate_designs.py fda --write docs/netlists.md     # its row of the table there

An operator changes one term of d: a sum into a difference, a comparison's bound, a constant, the branches of a choice,
a bit that is stuck, or wrong for one input of 2^8 to 2^80.  Others write a term in another way that means the same: a
redundant term, a wider word, a sum by its carries, a choice by masks.  What `signoff` says of the mutant is compared
with the truth, which is found by running mutant and model on every input there is: 2^24 of them in these formats.  Of a
design that has no small format, the truth is that a row is wrong, or else what a solver says of the mutant beside the
design as it was, with no node matched.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal import datapath
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.cases.run import compiled_results
from mmaformal.encodings.adder_tree import AdderTree
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.encodings.sorted_fda import SortedFda
from mmaformal.formats import Format, Specials, fp16
from mmaformal.hardware.compiled import Compiled
from mmaformal.hardware.designs import Wired, wired
from mmaformal.hardware.module import model_of
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.hardware.undefined import constants_undefined
from mmaformal.instruction import Instruction
from mmaformal.queries.signing import Signing
from mmaformal.rounding import Conversion, NanRule, Rounding
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session
from mmaformal.spec import DotAdd, Parameters

DESIGNS = Path(__file__).resolve().parents[1] / "tests" / "hardware" / "designs"
#: Factors of 4 bits and sums of 8, with infinities and NaNs as IEEE 754 has them.
FACTOR = Format("e2m1i", 4, 2, 1, 1, Specials.IEEE)
SUM = Format("e4m3i", 8, 4, 3, 7, Specials.IEEE)
FINE = Format("e3m4i", 8, 3, 4, 3, Specials.IEEE)
K = 2
_BLOCK = 1 << 19
#: Bits of all operands up to which every input is run; and the rows that are run of a design with more.
_MOST_BITS, _ROWS = 24, 2_000_000


def small_model(rounding: Rounding, e_zero: int | None, k: int = K) -> Instruction:
    """Return the model of k products and c, in the small formats."""
    rho = Conversion(f"{rounding.name}-small", SUM, SUM.fraction_bits, rounding)
    spec = DotAdd(k, FACTOR, FACTOR, SUM, SUM, Fda(F=5, L=k, rho=rho, e_zero=e_zero))
    return Instruction("small", "mutated", 1, 1, spec)


def small_fma() -> Instruction:
    """Return the fused multiply-add of the small sums' format, to nearest even."""
    rho = Conversion("RNE-small±0", SUM, SUM.fraction_bits, Rounding.RNE, signed_zero=True)
    return Instruction("small fma", "mutated", 1, 1, DotAdd(1, SUM, SUM, SUM, SUM, Fma(rho)))


def small_of(fmt: Format, parameters: Callable[[Conversion], Parameters], zeros: bool = True) -> Instruction:
    """Return a model of K products and c, to nearest even in a format; `zeros`: whether they have a sign."""
    rho = Conversion("RNE-small", fmt, fmt.fraction_bits, Rounding.RNE, signed_zero=zeros)
    spec = DotAdd(K, FACTOR, FACTOR, fmt, fmt, parameters(rho))
    return Instruction("small", "mutated", 1, 1, spec)


@dataclass(frozen=True)
class Small:
    """A design in small formats, and the model that it computes."""

    model: Instruction
    read: Callable[[Path, DotAdd], Wired]
    name: str  #: in the table of docs/netlists.md


def _with_dot2(names: list[str], swaps: dict[str, str], said: PortMap) -> Callable[[Path, DotAdd], Wired]:
    """Read files about the module dot2, which is written for the small model, with other widths."""

    def read(folder: Path, spec: DotAdd) -> Wired:
        files = []
        for name in names:
            text = (DESIGNS / name).read_text(encoding="utf-8")
            for old, new in swaps.items():
                text = text.replace(old, new)
            (folder / name).write_text(text, encoding="utf-8")
            files.append(folder / name)
        (folder / "dot2.sv").write_text(systemverilog(model_of(spec, "dot2")), encoding="utf-8")
        return wired(Sources((*files, folder / "dot2.sv"), said.top), spec, said)

    return read


_DPA = """module dpa_small import dpa_pkg::*; (
  input logic clk_i, rst_ni, in_valid_i, out_ready_i, flush_i,
  input logic [7:0] a, b, c, output logic [7:0] d
);
  dpa #(.SrcFmt('{exp_bits: 2, man_bits: 1}), .DstFmt('{exp_bits: 4, man_bits: 3}), .K(2), .F(5), .ZeroExp(-12),
        .Tree(TREE)) i_dpa (
    .clk_i, .rst_ni, .operands_i({b[7:4], a[7:4], b[3:0], a[3:0]}), .addend_i(c), .rnd_mode_i(RTZ), .in_valid_i,
    .in_ready_o(), .flush_i, .result_o(d), .out_valid_o(), .out_ready_i);
endmodule
"""


def _dpa(tree: int) -> Callable[[Path, DotAdd], Wired]:
    def read(folder: Path, spec: DotAdd) -> Wired:
        (folder / "small.sv").write_text(_DPA.replace("TREE", str(tree)), encoding="utf-8")
        names = ("dpa_pkg.sv", "dpa_csa.sv", "dpa_pipe.sv", "dpa.sv")
        files = (*(DESIGNS / name for name in names), folder / "small.sv")
        return wired(Sources(files, "dpa_small", (DESIGNS / "inc",)), spec)

    return read


def _fda(folder: Path, spec: DotAdd) -> Wired:
    sizes = {"K": K, "EA": 2, "MA": 1, "EC": 4, "MC": 3, "F": 5, "EZ": -12}
    return wired(Sources((DESIGNS.parent / "fda.sv",), "fda", parameters=sizes), spec)


def _plain(
    name: str, sizes: Mapping[str, int] | None = None, d: str | None = None, parts: tuple[str, ...] = ()
) -> Callable[[Path, DotAdd], Wired]:
    """Read the module that a file is named after, in these sizes; `d` is its output where it has several.

    parts: the files of modules that it is made of.
    """

    def read(folder: Path, spec: DotAdd) -> Wired:
        files = tuple(DESIGNS / each for each in (name, *parts))
        sources = Sources(files, Path(name).stem, parameters=sizes or {})
        return wired(sources, spec, PortMap({"d": d} if d else {}))

    return read


def _fma16(folder: Path, spec: DotAdd) -> Wired:
    places = {"a": "operands_i[47:32]", "b": "operands_i[31:16]", "c": "operands_i[15:0]"}
    return wired(Sources((DESIGNS / "fma16.sv",), "fma16"), spec, PortMap(places))


_GATED = {
    "logic [15:0] a_i, b_i, input logic [15:0] c_i, output logic [15:0] d_o": (
        "logic [7:0] a_i, b_i, input logic [7:0] c_i, output logic [7:0] d_o"
    ),
    "logic [15:0] a_q, b_q, c_q, d;": "logic [7:0] a_q, b_q, c_q, d;",
}
_SERIAL = {"[7:0]": "[3:0]", "[15:0]": "[7:0]"}
_SERIAL_MAP = PortMap(
    {"a[0]": "x@0", "a[1]": "x@1", "b[0]": "y@0", "b[1]": "y@1", "c": "z@0", "d": "result"},
    {"start": "1,0", "valid": "0,1,0"},
    "mac_serial",
    2,
)
_STAGES = {'`include "dot2_defs.vh"': "`define CODES 8", "[15:0]": "[7:0]"}
_SIZES = {"E": 2, "M": 1, "EC": 4, "MC": 3, "F": 5}
_NEAREST, _ZERO = small_model(Rounding.RNE, None), small_model(Rounding.RZ, -12)
SMALL = {
    "dpa": Small(_ZERO, _dpa(0), "dpa.sv, chain of adders"),
    "dpa-tree": Small(_ZERO, _dpa(1), "dpa.sv, carry-save tree"),
    "fda": Small(_ZERO, _fda, "fda.sv"),
    "gated": Small(_NEAREST, _with_dot2(["gated.sv"], _GATED, PortMap(top="gated")), "gated.sv"),
    "dot2_stages": Small(
        _NEAREST, _with_dot2(["dot2_stages.v"], _STAGES, PortMap(top="dot2_top")), "dot2_stages.v"
    ),
    "mac_serial": Small(
        _NEAREST, _with_dot2(["dpa_pkg.sv", "mac_serial.sv"], _SERIAL, _SERIAL_MAP), "mac_serial.sv"
    ),
    "fma_lza": Small(small_fma(), _plain("fma_lza.sv", {"E": 4, "M": 3}), "fma_lza.sv"),
    "fma_lza-booth": Small(
        small_fma(),
        _plain("fma_lza.sv", {"E": 4, "M": 3, "Booth": 2}, parts=("booth_mul.sv",)),
        "fma_lza.sv, Booth",
    ),
    "three_terms": Small(
        small_of(SUM, lambda rho: SortedFda(F=5, G=7, rho=rho, nan=NanRule.DEFAULT)),
        _plain("three_terms.sv", _SIZES),
        "three_terms.sv",
    ),
    "joined_dot": Small(
        small_of(SUM, lambda rho: JoinedFda(F=5, L=K, rho=rho, e_zero=-7), zeros=False),
        _plain("joined_dot.sv", {**_SIZES, "K": K}),
        "joined_dot.sv",
    ),
    "add_tree": Small(
        small_of(fp16, lambda rho: AdderTree(rho, (rho,), rho, "(0+1)+c", NanRule.DEFAULT)),
        _plain("add_tree.sv", {"K": K, "E": 2, "M": 1}),
        "add_tree.sv",
    ),
    "exact_dot": Small(
        small_of(FINE, lambda rho: Efda(K, rho, minus_zero=True, nan=NanRule.DEFAULT)),
        _plain("exact_dot.sv", {"K": K, "E": 2, "M": 1, "EC": 3, "MC": 4}),
        "exact_dot.sv",
    ),
    "idot": Small(
        datapath["integer(k=2,a=uint4,b=int4,c=int8,clamp=1,group=2,inner=8)"],
        _plain("idot.sv", {"K": 2, "N": 4, "W": 8}),
        "idot.sv",
    ),
    "fma_status": Small(
        datapath["fma(a=e5m2,rho=IEEE-E5M2)"],
        _plain("fma_status.sv", d="result_o"),
        "fma_status.sv, d",
    ),
    "fma_status-flags": Small(
        datapath["flags(a=e5m2,rho=IEEE-E5M2)"],
        _plain("fma_status.sv", d="status_o"),
        "fma_status.sv, its exceptions",
    ),
    "fma_status-normal": Small(
        small_fma(),
        _plain("fma_status.sv", {"E": 4, "M": 3, "Normal": 1}, d="result_o"),
        "fma_status.sv, factors normalised",
    ),
    "scaled_dot": Small(
        datapath["gfda(k=4,group=4,frac_bits=35,rho=RZ-FP32,scale=ue4m3,block=4)"],
        _plain("scaled_dot.sv"),
        "scaled_dot.sv, NVFP4",
    ),
    "fma16": Small(datapath["fma(k=1,a=fp16,rho=IEEE-FP16)"], _fma16, "fma16.sv"),
}


# ---- mutants --------------------------------------------------------------------------------------------------------

_OTHER = {
    z3.Z3_OP_BADD: lambda x: x.arg(0) - x.arg(1),
    z3.Z3_OP_BSUB: lambda x: x.arg(0) + x.arg(1),
    z3.Z3_OP_BAND: lambda x: x.arg(0) | x.arg(1),
    z3.Z3_OP_BOR: lambda x: x.arg(0) & x.arg(1),
    z3.Z3_OP_BXOR: lambda x: x.arg(0) | x.arg(1),
    z3.Z3_OP_BMUL: lambda x: x.arg(0) + x.arg(1),
    z3.Z3_OP_BSHL: lambda x: z3.LShR(x.arg(0), x.arg(1)),
    z3.Z3_OP_BLSHR: lambda x: x.arg(0) >> x.arg(1),
    z3.Z3_OP_BNOT: lambda x: x.arg(0),
    z3.Z3_OP_BNEG: lambda x: ~x.arg(0),
    z3.Z3_OP_ITE: lambda x: z3.If(x.arg(0), x.arg(2), x.arg(1)),
    z3.Z3_OP_ULEQ: lambda x: z3.ULT(x.arg(0), x.arg(1)),
    z3.Z3_OP_ULT: lambda x: z3.ULE(x.arg(0), x.arg(1)),
    z3.Z3_OP_SLEQ: lambda x: x.arg(0) < x.arg(1),
    z3.Z3_OP_SLT: lambda x: x.arg(0) <= x.arg(1),
    z3.Z3_OP_EQ: lambda x: x.arg(0) != x.arg(1),
    z3.Z3_OP_NOT: lambda x: x.arg(0),
    z3.Z3_OP_AND: lambda x: z3.Or(x.children()),
    z3.Z3_OP_OR: lambda x: z3.And(x.children()),
    z3.Z3_OP_SIGN_EXT: lambda x: z3.ZeroExt(x.size() - x.arg(0).size(), x.arg(0)),
}


#: A comparison, and the one that is its negation with the terms exchanged.
_TURNED = {
    z3.Z3_OP_ULEQ: z3.ULT,
    z3.Z3_OP_ULT: z3.ULE,
    z3.Z3_OP_SLEQ: lambda x, y: x < y,
    z3.Z3_OP_SLT: lambda x, y: x <= y,
    z3.Z3_OP_UGEQ: z3.UGT,
    z3.Z3_OP_UGT: z3.UGE,
    z3.Z3_OP_SGEQ: lambda x, y: x > y,
    z3.Z3_OP_SGT: lambda x, y: x >= y,
}


def _terms(term: z3.ExprRef) -> list[z3.ExprRef]:
    """Return every term in a term once, in an order that depends on the term alone."""
    found: dict[int, z3.ExprRef] = {}
    stack = [term]
    while stack:
        each = stack.pop()
        if each.get_id() not in found:
            found[each.get_id()] = each
            stack += each.children()
    return list(found.values())


def _rarely(spec: DotAdd, chance: random.Random) -> tuple[str, z3.BoolRef]:
    """Return that some of the operands have certain codes, and how many bits these are."""
    operands = symbolic_inputs(spec).flat()
    chosen = chance.sample(operands, chance.randint(2, len(operands)))
    bits = sum(x.size() for x in chosen)
    return f"1 of 2^{bits} inputs", z3.And([x == chance.randrange(1 << x.size()) for x in chosen])


def _changed(term: z3.ExprRef, spec: DotAdd, chance: random.Random) -> tuple[str, z3.ExprRef]:
    """Return a term changed by an operator that fits it, and what was done."""
    ways: list[tuple[str, z3.ExprRef]] = []
    kind = term.decl().kind()
    if isinstance(term, z3.BitVecRef):
        bits, at = term.size(), chance.randrange(term.size())
        one = z3.BitVecVal(1 << at, bits)
        ways += [(f"bit {at} stuck at 1", term | one), (f"bit {at} stuck at 0", term & ~one)]
        ways += [(f"bit {at} flipped", term ^ one)]
        name, rare = _rarely(spec, chance)
        ways += [(f"bit {at} flipped for {name}", z3.If(rare, term ^ one, term))] * 2
        if z3.is_bv_value(term):
            ways += [("one more", z3.simplify(term + 1)), ("one less", z3.simplify(term - 1))] * 2
    else:
        ways += [("true", z3.BoolVal(True)), ("false", z3.BoolVal(False))]
    if kind in _OTHER:
        ways += [(f"{term.decl().name()} changed", _OTHER[kind](term))] * 4
    if kind == z3.Z3_OP_EXTRACT:
        high, low = term.params()
        for by in (1, -1):
            if low + by >= 0 and high + by < term.arg(0).size():
                ways += [(f"taken {by} higher", z3.Extract(high + by, low + by, term.arg(0)))] * 2
    return chance.choice(ways)


def _rewritten(term: z3.ExprRef, spec: DotAdd, chance: random.Random) -> tuple[str, z3.ExprRef]:
    """Return a term that has the same value for every input, and how it is written."""
    code = chance.choice(symbolic_inputs(spec).flat())
    kind = term.decl().kind()
    if not isinstance(term, z3.BitVecRef):
        bit = z3.Extract(0, 0, code) == 1
        ways = [("a redundant case", z3.Or(z3.And(term, bit), z3.And(term, z3.Not(bit))))]
        if kind in _TURNED:
            ways += [("a comparison turned round", z3.Not(_TURNED[kind](term.arg(1), term.arg(0))))] * 3
        return chance.choice(ways)
    bits = term.size()
    other = z3.Extract(bits - 1, 0, z3.ZeroExt(bits, code))
    ways = [
        ("a redundant term", (term & other) | (term & ~other)),
        ("exclusive or, twice", (term ^ other) ^ other),
    ]
    x, *more = term.children() or [term]
    if kind in (z3.Z3_OP_BADD, z3.Z3_OP_BSUB, z3.Z3_OP_BMUL) and len(more) == 1:
        wide = {
            z3.Z3_OP_BADD: lambda u, v: u + v,
            z3.Z3_OP_BSUB: lambda u, v: u - v,
            z3.Z3_OP_BMUL: lambda u, v: u * v,
        }
        whole = wide[kind](z3.ZeroExt(3, x), z3.SignExt(3, more[0]))
        ways += [("in a wider word", z3.Extract(bits - 1, 0, whole))] * 3
    if kind == z3.Z3_OP_BADD and len(more) == 1:
        ways += [("a sum by its carries", (x ^ more[0]) + ((x & more[0]) << 1))] * 3
    if kind == z3.Z3_OP_BSUB:
        ways += [("a difference by complements", ~(~x + more[0]))] * 3
    if kind == z3.Z3_OP_BNEG:
        ways += [("a complement and one", ~x + 1)] * 3
    if kind == z3.Z3_OP_ITE:
        mask = z3.If(x, z3.BitVecVal(-1, bits), z3.BitVecVal(0, bits))
        ways += [("a choice by masks", (more[0] & mask) | (more[1] & ~mask))] * 3
    return chance.choice(ways)


def mutants(
    design: Wired, spec: DotAdd, count: int, seed: int, alike: bool = False
) -> Iterator[tuple[str, Wired]]:
    """Yield so many mutants of a design, with what was changed; `alike`: those that are only written another way."""
    chance, d = random.Random(seed), design.module.outputs["d"]
    terms = _terms(d)
    while count:
        term = chance.choice(terms)
        what, other = (_rewritten if alike else _changed)(term, spec, chance)
        pair = (term, other)
        changed = z3.substitute(d, pair)
        if changed.eq(d) or (alike and not term.children()):
            continue
        wires = {name: z3.substitute(x, pair) for name, x in design.module.wires.items()}
        yield what, replace(design, module=replace(design.module, outputs={"d": changed}, wires=wires))
        count -= 1


# ---- what is said of them, and what is true -------------------------------------------------------------------------


@cache
def expected(spec: DotAdd) -> NDArray[np.uint8]:
    """Return what a model gives, for every input there is."""
    return np.concatenate([compiled_results(spec, rows).astype(np.uint8) for rows in every_input(spec)])


def every_input(spec: DotAdd) -> Iterator[Rows]:
    """Yield every input of a model, in blocks."""
    widths = [spec.a_format.storage_bits] * spec.k + [spec.b_format.storage_bits] * spec.k
    widths.append(spec.c_format.storage_bits)
    block = min(_BLOCK, 1 << sum(widths))
    none = np.zeros((block, 0), np.uint64)
    for start in range(0, 1 << sum(widths), block):
        left = np.arange(start, start + block, dtype=np.uint64)
        columns: list[NDArray[np.uint64]] = []
        for bits in widths:
            columns.append(left & np.uint64((1 << bits) - 1))
            left = left >> np.uint64(bits)
        a, b = (np.stack(columns[side * spec.k : (side + 1) * spec.k], 1) for side in (0, 1))
        yield Rows(a, b, columns[-1], none, none)


def is_equal(signed: Signing) -> bool:
    """Whether a design gives the model's d on every input there is."""
    d = signed.module.outputs["d"]
    run = Compiled(d, [*signed.inputs.flat(), *constants_undefined(signed.module)])
    for number, rows in enumerate(every_input(signed.spec)):
        values = {str(x): column for x, column in zip(signed.inputs.flat(), rows.codes.flat(), strict=True)}
        zeros = {str(x): np.zeros(1, object) for x in constants_undefined(signed.module)}
        mine = run({**values, **zeros}, len(rows))
        model = expected(signed.spec)[number * _BLOCK : (number + 1) * _BLOCK].astype(np.uint64)
        if (signed.one_of_each(mine) != signed.one_of_each(model)).any():
            return False
    return True


def agree(design: Wired, was: Wired, timeout: float) -> str:
    """Returns whether two designs give the same d, by solvers alone: `equal`, `wrong` or `undecided`."""
    mine, before = design.module.outputs["d"], was.module.outputs["d"]
    with session() as portfolio:
        verdict = (
            Asker(portfolio, timeout).satisfy("mutant", "as it was", [mine != before], whole=True).verdict
        )
    return {"unsat": "equal", "sat": "wrong"}.get(verdict, "undecided")


def judged(design: Wired, model: Instruction, timeout: float, was: Wired | None = None) -> tuple[str, str]:
    """Returns the verdict of signing off a design, and the truth: it is `equal` to the model, `wrong`, or `undecided`.

    was: the design that it is a mutant of, and is compared with where there are too many inputs to run all of them.  A
    mutant that random rows show to be wrong is not made smaller: what is said of it is the same.
    """
    with session() as portfolio:
        signed = Signing.of(design, model, Asker(portfolio, timeout), lambda _: None)
        if signed.random() is not None:
            return "fails", "wrong"
        said = signed.asker.within(signed.question, signed.answer).verdict
    if sum(x.size() for x in signed.inputs.flat()) <= _MOST_BITS:
        return said, "equal" if is_equal(signed) else "wrong"
    assert was is not None
    rows = generate(signed.spec, _ROWS, seed=9)
    return said, "wrong" if signed.compile() and signed.wrong(rows).any() else agree(design, was, timeout)


# ---- the table ------------------------------------------------------------------------------------------------------

#: Kinds that are counted, in the order of columns: whether it was only rewritten, what was said, and the truth.
_COLUMNS: tuple[tuple[bool, str, str], ...] = (
    (False, "fails", "wrong"),
    (False, "holds", "equal"),
    (False, "unknown", "equal"),
    (False, "unknown", "wrong"),
    (True, "holds", "equal"),
    (True, "unknown", "equal"),
)
_HEAD = (
    "| design | changed | refuted | equal, called so | equal, not settled | wrong, not settled | rewritten | "
    "called equal | not settled | wrong answers | truth unknown | s |\n"
)


def row(small: Small, counts: Counter[tuple[bool, str, str]], seconds: float) -> str:
    """A row of the table: the mutants of one design by what was said of them and by what is true."""
    changed, rewritten = (
        sum(n for (way, *_), n in counts.items() if way is alike) for alike in (False, True)
    )
    by = [counts[each] for each in _COLUMNS]
    undecided = sum(n for (_, _, truth), n in counts.items() if truth == "undecided")
    wrongly = sum(counts[way, *pair] for way in (False, True) for pair in _WRONGLY)
    told = [changed, *by[:4], rewritten, *by[4:], wrongly, undecided]
    return f"| {small.name} | " + " | ".join(f"{n:,}" for n in told) + f" | {seconds:,.0f} |\n"


def write_row(path: Path, line: str, head: str = _HEAD, key: int = 1) -> None:
    """Put a row into the table of a document, in the place of that with the same first `key` columns, or as the last.

    Raises ValueError where there is no such table.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if head not in lines:
        raise ValueError(f"{path} has no table that begins with {head.strip()}")
    at = lines.index(head) + 2
    while lines[at].startswith("|") and lines[at].split("|")[: key + 1] != line.split("|")[: key + 1]:
        at += 1
    lines[at : at + lines[at].startswith("|")] = [line]
    path.write_text("".join(lines), encoding="utf-8")


_WRONGLY = (("holds", "wrong"), ("fails", "equal"))


@cache
def _design(name: str) -> Wired:
    with tempfile.TemporaryDirectory() as folder:
        return SMALL[name].read(Path(folder), SMALL[name].model.spec)


def judged_by_number(
    name: str, alike: bool, number: int, seed: int, timeout: float
) -> tuple[str, tuple[bool, str, str]]:
    """Returns what was changed in a mutant of a design, by its number from 0 on, and the count that it adds to."""
    small, design = SMALL[name], _design(name)
    made = mutants(design, small.model.spec, number + 1, seed, alike)
    what, mutant = next(islice(made, number, None))
    return what, (alike, *judged(mutant, small.model, timeout, design))


def counted_of(name: str, given: argparse.Namespace) -> Counter[tuple[bool, str, str]]:
    """Mutants of a design by whether they were only rewritten, what was said, and what is true; some are printed."""
    counts: Counter[tuple[bool, str, str]] = Counter()
    asked = [(False, number) for number in range(given.count)]
    asked += [(True, number) for number in range(given.rewritten)]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        found = [pool.submit(judged_by_number, name, *each, given.seed, given.timeout) for each in asked]
        for future, (_, number) in zip(found, asked, strict=True):
            what, (alike, said, truth) = future.result()
            counts[alike, said, truth] += 1
            if said != "fails" or (said, truth) in _WRONGLY:
                print(f"  {name} {number + 1}: {what}: {said}, {truth}", flush=True)
    return counts


def main() -> int:
    """Mutate, and print what was said; exit with 1 if a wrong mutant is called equal, or an equal one wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(SMALL), metavar="DESIGN", help=", ".join(SMALL))
    parser.add_argument("--count", type=int, default=50, help="mutants of each (default 50)")
    parser.add_argument("--rewritten", type=int, default=10, help="more that mean the same (default 10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one that rows do not refute")
    parser.add_argument("--jobs", type=int, default=1, help="mutants asked at once (default 1)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="a document whose table has the rows")
    given = parser.parse_args()
    false = 0
    print(_HEAD, end="")
    for name in given.names:
        small, start = SMALL[name], time.monotonic()
        counts = counted_of(name, given)
        line = row(small, counts, time.monotonic() - start)
        print(line, end="", flush=True)
        if given.write is not None:
            write_row(given.write, line)
        false += sum(counts[way, *pair] for way in (False, True) for pair in _WRONGLY)
    return int(bool(false))


if __name__ == "__main__":
    sys.exit(main())
