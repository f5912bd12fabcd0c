"""Triton source of an instruction: its executable encoding, traced on symbolic lanes, printed operation by operation.

A trace's operations are those whose ranges `verify` proves (`mmaformal.lanes`).  Two things are made of that:

- what a lane holds needs 64 bits only where its range does: all else is computed in 32;
- what depends on a alone is computed for the rows of a tile, on b alone for its columns, and is broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Template

import numpy as np
import z3

from mmaformal.cases.encodings import check_samples, sample
from mmaformal.encodings import executable
from mmaformal.formats import Format
from mmaformal.lanes import Flag, Lane, Node, Range, Tracer
from mmaformal.spec import DotAdd

#: An algorithm that takes more operations for one output is not worth compiling: that would take minutes.
MOST = 20_000
_INT32 = Range(-(1 << 31), (1 << 31) - 1)
_WRAPS = ("+", "-", "*", "&", "|", "^", "<<")  #: right modulo any power of two


class NoSourceError(ValueError):
    """An instruction has no Triton source."""


@dataclass(frozen=True)
class Step:
    """The part that a kernel repeats: the codes of some products and c, and the code that they give, as lanes."""

    spec: DotAdd
    a: tuple[Lane, ...]
    b: tuple[Lane, ...]
    c: Lane
    scale_a: tuple[Lane, ...]
    scale_b: tuple[Lane, ...]
    result: Lane


def repeated(spec: DotAdd) -> DotAdd:
    """The part of a chain that is repeated: one step, where an instruction is nothing but several."""
    if spec.is_signed or spec.c_format != spec.d_format or spec.k % spec.period:
        return spec
    return spec.replace(k=spec.period)


def traced(spec: DotAdd) -> Step:
    """The step of an instruction on symbolic codes.

    Raises LaneError if an operation may wrap, or if NumPy computes something else of the samples.
    """
    step, tracer, rng = repeated(spec), Tracer(), np.random.default_rng(0)

    def lane(name: str, fmt: Format) -> Lane:
        return tracer.input(z3.BitVec(name, fmt.storage_bits), sample(fmt, rng))

    def lanes(name: str, count: int, fmt: Format | None) -> tuple[Lane, ...]:
        return () if fmt is None else tuple(lane(f"{name}{k}", fmt) for k in range(count))

    a, b, c = (
        lanes("a", step.k, step.a_format),
        lanes("b", step.k, step.b_format),
        lane("c", step.c_format),
    )
    scales = [lanes(name, step.scales, step.scale_format) for name in ("sa", "sb")]
    symbolic = executable.dot_add(step, a, b, c, *scales)
    numbers = executable.dot_add(
        step,
        [x.sample for x in a],
        [x.sample for x in b],
        c.sample,
        *([x.sample for x in side] for side in scales),
    )
    check_samples(symbolic, numbers)
    return Step(step, a, b, c, scales[0], scales[1], tracer.lift(symbolic.result))


# ---- printing ----------------------------------------------------------------------------------------------


@dataclass
class _Printer:
    """Statements that compute lanes and flags, each once."""

    lines: list[str] = field(default_factory=list)
    names: dict[tuple[int, int], str] = field(default_factory=dict)  #: by node and bits; flags have none

    def new(self, text: str) -> str:
        name = f"x{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def node(self, node: Node) -> str:
        """The name of a node, all that it is made of being printed before."""
        stack: list[Node] = [node]
        while stack:
            top = stack[-1]
            below = [] if self.is_there(top) else [x for x in top.operands if not self.is_there(x)]
            if below:
                stack += below
                continue
            stack.pop()
            if not self.is_there(top):
                self.names[id(top), _bits(top)] = self.new(self.text(top))
        return self.names[id(node), _bits(node)] if isinstance(node, Flag) else self.lane(node, _bits(node))

    def is_there(self, node: Node) -> bool:
        return _constant(node) is not None or (id(node), _bits(node)) in self.names

    def flag(self, node: Node) -> str:
        return self.names[id(node), 0]

    def lane(self, lane: Node, bits: int) -> str:
        """A lane in so many bits, or its residue."""
        assert isinstance(lane, Lane)
        value = _constant(lane)
        key = (id(lane) if value is None else -1 - abs(hash(value)), bits)
        if key not in self.names:
            if value is not None:
                return str(_residue(value, bits)) if bits == 32 or _fits(value) else self.wide(value)
            self.names[key] = self.new(f"{self.names[id(lane), _bits(lane)]}.to(tl.int{bits})")
        return self.names[key]

    def wide(self, value: int) -> str:
        return f"tl.full((1, 1), {value}, tl.int64)"

    def text(self, node: Node) -> str:
        """The operation that a node is of."""
        op, operands = node.op, node.operands
        if isinstance(node, Flag):
            if op == "not":
                return f"~{self.flag(operands[0])}"
            if op in ("&", "|", "^"):
                return f"{self.flag(operands[0])} {op} {self.flag(operands[1])}"
            bits = max(map(_bits, operands))
            return f"{self.lane(operands[0], bits)} {op} {self.lane(operands[1], bits)}"
        bits = _bits(node)
        if op == "select":
            flag, x, y = operands
            u, v = self.lane(x, bits), self.lane(y, bits)
            if _constant(x) is not None and _constant(y) is not None and bits == 64:
                u = self.wide(_constant(x) or 0)
            return f"tl.where({self.flag(flag)}, {u}, {v})"
        x, y = operands
        if op in _WRAPS and not (op == "<<" and not y.range.inside(Range(0, 31))):  # type: ignore[union-attr]
            return f"{self.lane(x, bits)} {op} {self.lane(y, bits)}"
        own = max(bits, *(map(_bits, operands))) if op == ">>" else 64
        amount = self.lane(y, own)
        if own == 32 and not y.range.inside(Range(0, 31)):  # type: ignore[union-attr]
            amount = f"tl.minimum({amount}, 31)" if _constant(y) is None else "31"
        text = f"{self.lane(x, own)} {op} {amount}"
        return text if own == bits else f"({text}).to(tl.int{bits})"


def _constant(node: Node) -> int | None:
    """The number that a lane always is."""
    return node.range.low if isinstance(node, Lane) and node.range.low == node.range.high else None


def _bits(node: Node) -> int:
    """The bits of a lane's word; 0 of a flag."""
    if isinstance(node, Flag):
        return 0
    return 32 if node.range.inside(_INT32) else 64


def _fits(value: int) -> bool:
    return _INT32.low <= value <= _INT32.high


def _residue(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _load(name: str, pointer: str, mask: str, other: int, fmt: Format) -> str:
    """A statement that loads a code: a lane without sign, or the 64 bits of its number."""
    stored, bits = fmt.word_bits, fmt.storage_bits
    word = "tl.int32" if bits < 32 else "tl.int64"
    code = f"tl.load({pointer}, mask={mask}, other={other}).to({word})"
    return f"{name} = {code}" + ("" if stored == 64 else f" & {(1 << stored) - 1:#x}")


def source(spec: DotAdd) -> str:
    """The text of a module with `kernel`, which computes a tile of D for each program of its grid.

    Raises NoSourceError for what is too long, LaneError as `traced`.
    """
    step = traced(spec)
    printer = _Printer()
    _inputs(printer, step)
    result = printer.node(step.result)
    if len(printer.lines) > MOST:
        raise NoSourceError(f"{len(printer.lines):,} operations for an output")
    one, c = step.spec, step.spec.c_format
    loads = [_load(f"a{k}", f"a + {k} * a_k", f"rows & (left > {k})", 0, one.a_format) for k in range(one.k)]
    loads += [
        _load(f"b{k}", f"b + {k} * b_k", f"columns & (left > {k})", 0, one.b_format) for k in range(one.k)
    ]
    if one.scale_format is not None:
        fmt = one.scale_format
        unit, each = fmt.bias << fmt.fraction_bits, one.scales  # padding has the scale 1
        for q in range(each):
            for side, inside in (("a", "rows"), ("b", "columns")):
                mask = f"{inside} & (left_blocks > {q})"
                loads.append(_load(f"s{side}{q}", f"s{side} + {q} * s{side}_k", mask, unit, fmt))
    word = f"tl.int{max(c.word_bits, one.d_format.word_bits)}"
    code = "acc.to(tl.int32)" if c.storage_bits < 32 else "acc.to(tl.int64)"
    loads.append(f"code = {code}" + ("" if c.word_bits == 64 else f" & {(1 << c.word_bits) - 1:#x}"))
    body = [*loads, *printer.lines, f"acc = ({result}).to({word})"]
    return _MODULE.substitute(
        types=one.types,
        how=f"{one.parameters.algorithm} {one.parameters.describe()}",
        products=one.k,
        scales=one.scales,
        word=word,
        body="\n".join(f"        {line}" for line in body),
    )


def _inputs(printer: _Printer, step: Step) -> None:
    sides: Sequence[tuple[str, Sequence[Lane]]] = (
        ("a", step.a),
        ("b", step.b),
        ("sa", step.scale_a),
        ("sb", step.scale_b),
    )
    for name, lanes in sides:
        for k, lane in enumerate(lanes):
            printer.names[id(lane), _bits(lane)] = f"{name}{k}"
    printer.names[id(step.c), _bits(step.c)] = "code"


_MODULE = Template("""\
# $types
# $how
import triton
import triton.language as tl


@triton.jit
def kernel(
    a, b, sa, sb, c, d, M, N, K, blocks, steps,
    a_batch, a_row, a_k, b_batch, b_k, b_column, sa_batch, sa_row, sa_k, sb_batch, sb_k, sb_column,
    HAS_C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    tiles = (N + COLUMNS - 1) // COLUMNS
    i = (tl.program_id(0) // tiles * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    j = (tl.program_id(0) % tiles * COLUMNS + tl.arange(0, COLUMNS)[None, :]).to(tl.int64)
    batch = tl.program_id(1).to(tl.int64)
    rows, columns = i < M, j < N
    a += batch * a_batch + i * a_row
    b += batch * b_batch + j * b_column
    sa += batch * sa_batch + i * sa_row
    sb += batch * sb_batch + j * sb_column
    out = batch * M * N + i * N + j
    acc = tl.full((ROWS, COLUMNS), 0, $word)
    if HAS_C:
        acc = tl.load(c + out, mask=rows & columns, other=0).to($word)
    left = tl.full((1, 1), 0, tl.int32) + K
    left_blocks = tl.full((1, 1), 0, tl.int32) + blocks
    for s in range(steps):
$body
        left -= $products
        left_blocks -= $scales
        a += $products * a_k
        b += $products * b_k
        sa += $scales * sa_k
        sb += $scales * sb_k
    tl.store(d + out, acc, mask=rows & columns)
""")
