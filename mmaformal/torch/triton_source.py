"""Triton source of an instruction: its executable encoding, traced on symbolic lanes, printed operation by operation.

A trace's operations are those whose ranges `verify` proves (`mmaformal.lanes`).  Two things are made of that:

- what a lane holds needs 64 bits only where its range does: all else is computed in 32;
- what depends on a alone is computed for the rows of a tile, on b alone for its columns, and is broadcast;
- there is a kernel for numbers alone, in which no operand is an infinity or a NaN.  It has fewer operations, and tells
  for which outputs it does not hold; it is left out where it has not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import Template

import numpy as np
import z3

from mmaformal.cases.encodings import check_samples, sample_codes
from mmaformal.encodings import executable
from mmaformal.formats import Format
from mmaformal.lanes import LaneOrFlag, Range, SymbolicFlag, SymbolicLane, Tracer
from mmaformal.spec import DotAdd
from mmaformal.stages import Stage

#: An algorithm that takes more operations for one output is not worth compiling: that would take minutes.
MOST = 20_000
#: A kernel of numbers alone has at most this part of the operations.
_SHORTER = 0.85
_INT32 = Range(-(1 << 31), (1 << 31) - 1)
_WRAPS = ("+", "-", "*", "&", "|", "^", "<<")  #: right modulo any power of two


class NoSourceError(ValueError):
    """An instruction has no Triton source."""


@dataclass(frozen=True)
class RepeatedStep:
    """The part that a kernel repeats: the codes of some products and c, and the code that they give, as lanes."""

    spec: DotAdd
    a: tuple[SymbolicLane, ...]
    b: tuple[SymbolicLane, ...]
    c: SymbolicLane
    scale_a: tuple[SymbolicLane, ...]
    scale_b: tuple[SymbolicLane, ...]
    result: SymbolicLane
    #: whether each operand is an infinity or a NaN, by its name; nothing of algorithms that have no stage `decode`
    special: Mapping[str, tuple[SymbolicFlag, ...]]


def repeated(spec: DotAdd) -> DotAdd:
    """The part of a chain that is repeated: one step, where an instruction is nothing but several."""
    if spec.is_signed or spec.c_format != spec.d_format or spec.k % spec.period:
        return spec
    return spec.replace(k=spec.period)


def _traced(spec: DotAdd) -> RepeatedStep:
    """The step of an instruction on symbolic codes.

    Raises LaneError if an operation may wrap, or if NumPy computes something else of the samples.
    """
    step, tracer, rng = repeated(spec), Tracer(), np.random.default_rng(0)

    def lane(name: str, fmt: Format) -> SymbolicLane:
        return tracer.input(z3.BitVec(name, fmt.storage_bits), sample_codes(fmt, rng))

    def lanes(name: str, count: int, fmt: Format | None) -> tuple[SymbolicLane, ...]:
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
    made = RepeatedStep(step, a, b, c, scales[0], scales[1], tracer.lift(symbolic.result), {})
    return replace(made, special=_special(made, symbolic.stages))


def _named(step: RepeatedStep) -> dict[str, SymbolicLane]:
    """The operands of a step, by the names that they have in a kernel."""
    sides = {"a": step.a, "b": step.b, "sa": step.scale_a, "sb": step.scale_b}
    return {f"{name}{k}": lane for name, lanes in sides.items() for k, lane in enumerate(lanes)} | {
        "code": step.c
    }


def _special(step: RepeatedStep, stages: Sequence[Stage]) -> dict[str, tuple[SymbolicFlag, ...]]:
    names = {id(lane): name for name, lane in _named(step).items()}
    found = {}
    for stage in stages:
        if stage.name == "decode" and id(stage.inputs[0]) in names:
            flags = stage.output.infinite, stage.output.nan
            found[names[id(stage.inputs[0])]] = tuple(x for x in flags if x.value is None)
    return found


# ---- printing ----------------------------------------------------------------------------------------------


@dataclass
class _Printer:
    """Statements that compute lanes and flags, each once."""

    lines: list[str] = field(default_factory=list)
    names: dict[tuple[int, int], str] = field(default_factory=dict)  #: by node and bits; flags have none
    known: dict[int, LaneOrFlag | bool] = field(
        default_factory=dict
    )  #: flags whose value is assumed; and what comes of it

    def new(self, text: str) -> str:
        name = f"x{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def node(self, node: LaneOrFlag | bool) -> str:
        """The name of a node, all that it is made of being printed before."""
        node = self.settled(node)
        assert not isinstance(node, bool)
        stack: list[LaneOrFlag] = [node]
        while stack:
            top = stack[-1]
            below = [] if self.is_there(top) else [x for x in self.operands(top) if not self.is_there(x)]
            if below:
                stack += below
                continue
            stack.pop()
            if not self.is_there(top):
                self.names[id(top), _bits(top)] = self.new(self.text(top))
        return (
            self.names[id(node), _bits(node)]
            if isinstance(node, SymbolicFlag)
            else self.lane(node, _bits(node))
        )

    def operands(self, node: LaneOrFlag) -> list[LaneOrFlag]:
        """The operands of a node that have no known value."""
        return [x for x in map(self.settled, node.operands) if not isinstance(x, bool)]

    def settled(self, node: LaneOrFlag | bool) -> LaneOrFlag | bool:
        """A flag's value, where flags that are known tell it; or a node that is the same."""
        if isinstance(node, bool) or not self.known:
            return node
        if id(node) not in self.known:
            self.known[id(node)] = node
            self.known[id(node)] = self._settled(node)
        return self.known[id(node)]

    def _settled(self, node: LaneOrFlag) -> LaneOrFlag | bool:
        if node.op == "select":
            flag = self.settled(node.operands[0])
            return self.settled(node.operands[1 if flag else 2]) if isinstance(flag, bool) else node
        if not isinstance(node, SymbolicFlag) or node.op not in ("&", "|", "^", "not"):
            return node
        flags = [self.settled(x) for x in node.operands]
        if node.op == "not":
            return not flags[0] if isinstance(flags[0], bool) else node
        value, other = sorted(flags, key=lambda x: not isinstance(x, bool))
        if not isinstance(value, bool):
            return node
        if node.op == "^":
            return other if not value else (not other if isinstance(other, bool) else node)
        return other if value is (node.op == "&") else value

    def is_there(self, node: LaneOrFlag) -> bool:
        return _constant(node) is not None or (id(node), _bits(node)) in self.names

    def flag(self, node: LaneOrFlag) -> str:
        flag = self.settled(node)
        return str(int(flag)) if isinstance(flag, bool) else self.names[id(flag), 0]

    def lane(self, node: LaneOrFlag, bits: int) -> str:
        """A lane in so many bits, or its residue."""
        lane = self.settled(node)
        assert isinstance(lane, SymbolicLane)
        if (value := _constant(lane)) is not None:
            return str(_residue(value, bits)) if bits == 32 or _fits(value) else self.wide(value)
        if (id(lane), bits) not in self.names:
            self.names[id(lane), bits] = self.new(f"{self.names[id(lane), _bits(lane)]}.to(tl.int{bits})")
        return self.names[id(lane), bits]

    def wide(self, value: int) -> str:
        return f"tl.full((1, 1), {value}, tl.int64)"

    def text(self, node: LaneOrFlag) -> str:
        """The operation that a node is of."""
        op, operands = node.op, node.operands
        if isinstance(node, SymbolicFlag):
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


def _constant(node: LaneOrFlag) -> int | None:
    """The number that a lane always is."""
    return node.range.low if isinstance(node, SymbolicLane) and node.range.low == node.range.high else None


def _bits(node: LaneOrFlag) -> int:
    """The bits of a lane's word; 0 of a flag."""
    if isinstance(node, SymbolicFlag):
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


def source(spec: DotAdd, finite: bool = False) -> str:
    """The text of a module with `kernel`, which computes a tile of D for each program of its grid.

    `finite`: of numbers alone; `seen` is set of outputs that were made of an infinity or a NaN.  Raises LaneError as
    `_traced`, NoSourceError for what is too long, and where a kernel of numbers alone has not much fewer operations.
    """
    step = _traced(spec)
    printer, result, seen = _printed(step, finite)
    if len(printer.lines) > MOST:
        raise NoSourceError(f"{len(printer.lines):,} operations for an output")
    if finite and len(printer.lines) > _SHORTER * len(_printed(step, False)[0].lines):
        raise NoSourceError("numbers alone are not worth a kernel of their own")
    word = f"tl.int{max(step.spec.c_format.word_bits, step.spec.d_format.word_bits)}"
    body = [*_loads(step.spec), *printer.lines, *seen, f"acc = ({result}).to({word})"]
    return _MODULE.substitute(
        types=step.spec.types,
        how=f"{step.spec.parameters.algorithm} {step.spec.parameters.describe()}",
        products=step.spec.k,
        scales=step.spec.scales,
        word=word,
        body="\n".join(f"        {line}" for line in body),
        end=_LAST if finite else "",
    )


def _printed(step: RepeatedStep, finite: bool) -> tuple[_Printer, str, list[str]]:
    """The statements of a step, the name of its result, and statements that say what is no number."""
    names = {(id(lane), _bits(lane)): name for name, lane in _named(step).items()}
    printer, seen = _Printer(names=names), list[str]()
    if finite:
        if not all(name in step.special for name in _named(step)):
            raise NoSourceError("operands that are not decoded")
        seen = _seen(printer, step)
        printer.known = {id(flag): False for flags in step.special.values() for flag in flags}
    return printer, printer.node(step.result), seen


def _seen(printer: _Printer, step: RepeatedStep) -> list[str]:
    """Statements that set `special` where an operand is an infinity or a NaN."""
    told = []
    for sides in (("a", "sa"), ("b", "sb"), ("code",)):
        flags = [
            x for name, flags in step.special.items() if name.rstrip("0123456789") in sides for x in flags
        ]
        if flags:
            told.append(" | ".join(printer.node(flag) for flag in flags))
    return [f"special = special | ({each})" for each in told]


def _loads(one: DotAdd) -> list[str]:
    """Statements that load the codes of a step."""
    products, c = range(one.k), one.c_format
    loads = [_load(f"a{k}", f"a + {k} * a_k", f"rows & (left > {k})", 0, one.a_format) for k in products]
    loads += [_load(f"b{k}", f"b + {k} * b_k", f"columns & (left > {k})", 0, one.b_format) for k in products]
    if one.scale_format is not None:
        fmt = one.scale_format
        unit = fmt.bias << fmt.fraction_bits  # padding has the scale 1
        for q in range(one.scales):
            for side, inside in (("a", "rows"), ("b", "columns")):
                mask = f"{inside} & (left_blocks > {q})"
                loads.append(_load(f"s{side}{q}", f"s{side} + {q} * s{side}_k", mask, unit, fmt))
    code = "acc.to(tl.int32)" if c.storage_bits < 32 else "acc.to(tl.int64)"
    return [*loads, f"code = {code}" + ("" if c.word_bits == 64 else f" & {(1 << c.word_bits) - 1:#x}")]


#: The end of a kernel of numbers alone.
_LAST = """
    tl.store(seen + out, special.to(tl.int8), mask=rows & columns)
"""

_MODULE = Template("""\
# $types
# $how
import triton
import triton.language as tl


@triton.jit(do_not_specialize=[
    "M", "N", "K", "blocks", "steps", "a_batch", "a_row", "a_k", "b_batch", "b_k", "b_column",
    "sa_batch", "sa_row", "sa_k", "sb_batch", "sb_k", "sb_column",
])
def kernel(
    a, b, sa, sb, c, d, seen, M, N, K, blocks, steps,
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
    special = tl.full((ROWS, COLUMNS), 0, tl.int1)
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
    tl.store(d + out, acc, mask=rows & columns)$end
""")
