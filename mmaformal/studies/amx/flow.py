"""Why both encodings of Apple AMX make the same state of a state, if they compute the same of single elements.

An instruction is what it computes of an element, and a flow of data around it: which bytes of X and Y it reads, which
of them meet at which element of Z, which elements are written.  Here the flow is run with what elements become left
open: each is a constant, of which only this is assumed: where both encodings give an element the same operands, it
becomes the same code.  `amx_alu` proves that of what they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import z3

from mmaformal.cases.encodings import SAMPLES, check_samples, sample_codes
from mmaformal.encodings.amx import executable, smt
from mmaformal.lanes import BITS, INT64, SymbolicLane, Tracer
from mmaformal.proof.encoding_links import link_code
from mmaformal.proof.kernel import ArgumentError, conjunction
from mmaformal.proof.lemmas import Argument, Link, condition, number
from mmaformal.rounding import Conversion
from mmaformal.studies.amx.alu import range_of, skip_claims
from mmaformal.studies.amx.terms import OpenElements, constants

ROWS = smt.ROWS


@dataclass(frozen=True)
class _Traces:
    """One instruction in both encodings, on the same symbolic state and operand."""

    state: smt.State
    operand: z3.BitVecRef
    lanes: executable.State  #: of bytes
    operand_lane: SymbolicLane
    executable: executable.AmxTrace
    smt: smt.AmxTrace


def argue_flow(name: str) -> Argument:
    """The argument for fma16, fma32 or fma64, its lemmas not proved."""
    tracer = Tracer()
    flow = _Flow(tracer, _trace(name, tracer))
    mine, other = flow.traces.executable, flow.traces.smt
    fields = flow.fields()
    x = flow.side("x", mine.x, other.x, fields)
    y = flow.side("y", mine.y, other.y, fields)
    after = flow.grid(mine.grid, other.grid, fields, partial(flow.operands, fields, x, y, flow.rows(fields)))
    if mine.pairs is not None and other.pairs is not None:
        pairs = flow.grid(mine.pairs, other.pairs, fields, partial(flow.operands_of_pairs, x, y))
        after = flow.either(fields, pairs, after)
    said = [claim for each in flow.inferences if not each.assumed for claim in (*each.premises, *each.claims)]
    flow.conclude(f"{name} makes the same Z in both encodings", conjunction(row.said for row in after), said)
    return flow


# ---- both encodings, what elements become left open -----------------------------------------------------------------


def _trace(name: str, tracer: Tracer) -> _Traces:
    rng = np.random.default_rng(0)

    def lanes(word: z3.BitVecRef) -> list[SymbolicLane]:
        parts = (z3.Extract(low + 7, low, word) for low in range(0, word.size(), 8))
        return [tracer.input(part, rng.integers(0, 256, SAMPLES)) for part in parts]

    state = constants()
    x, y, _ = state
    mine = executable.State(lanes(x), lanes(y), [lane for row in state.z for lane in lanes(row)])
    operand = z3.BitVec("operand", BITS)
    operand_lane = tracer.input(operand, rng.integers(*INT64, SAMPLES))
    open_: dict[str, list[SymbolicLane]] = {}

    def unit(
        rho: Conversion, on: executable.Fields, elements: Sequence[executable.LaneElement]
    ) -> list[SymbolicLane]:
        bits, kind = rho.format.storage_bits, rho.format.name
        if any(not lane.range.inside(range_of(rho)) for x in elements for lane in (x.x, x.y, x.z)):
            raise ArgumentError(f"an operand is no code of {kind}, which is all that is proved of elements")
        codes = (z3.BitVec(f"executable_{kind}_{n}", bits) for n in range(len(elements)))
        open_[kind] = [tracer.input(code, sample_codes(rho.format, rng)) for code in codes]
        return open_[kind]

    traced = executable.execute(name, mine, operand_lane, unit)
    numbers = executable.State(*([lane.sample for lane in side] for side in mine))
    made = {kind: [lane.sample for lane in lanes] for kind, lanes in open_.items()}
    check_samples(
        traced,
        executable.execute(
            name, numbers, operand_lane.sample, lambda rho, on, elements: made[rho.format.name]
        ),
    )
    return _Traces(
        state,
        operand,
        mine,
        operand_lane,
        traced,
        smt.execute(name, state, operand, OpenElements("smt").unit),
    )


# ---- links ---------------------------------------------------------------------------------------------------------


class _Fields(NamedTuple):
    """Claims that both encodings read the same fields of the operand."""

    skip: Link
    x_offset: Link
    y_offset: Link
    z_row: Link
    x_enable: Link
    y_enable: Link
    x_f16: Link
    y_f16: Link
    vector: Link
    mixed: Link  #: vector and z_f32


class _Side(NamedTuple):
    """Claims that both encodings read the same codes of X or of Y, and that the same lanes are enabled."""

    widened: list[Link]
    taken: list[Link]
    enabled: list[Link]


class _Operands(NamedTuple):
    """Claims that an element is a function of the same codes, but for its own, and is written in both encodings or
    in none."""

    x: Link
    y: Link
    written: Link


def _held(lanes: Sequence[SymbolicLane], word: z3.BitVecRef) -> Link:
    """Return the link that says that lanes are the bytes of a word, the lowest first."""
    parts = tuple(lane.term for lane in lanes)
    whole = z3.Concat(parts[::-1])
    return Link(word == whole, parts, ((word, whole),), tuple(lanes))


def _all_of(links: Sequence[Link], term: z3.BitVecRef) -> Link:
    """Several links, of parts of one term."""
    lanes = tuple(lane for link in links for lane in link.lanes)
    defined = tuple(pair for link in links for pair in link.defined)
    return Link(conjunction(link.claim for link in links), (term,), defined, lanes)


class _Flow(Argument):
    """A theorem in which the connectives of what is assumed count."""

    connectives = True

    def __init__(self, tracer: Tracer, traces: _Traces) -> None:
        super().__init__(tracer)
        self.traces = traces

    def fields(self) -> _Fields:
        on, operand = self.traces.executable.on, self.traces.operand
        whole = link_code(self.traces.operand_lane, operand)
        self.derive("inputs", "both encodings read the same operand", [whole], inputs=[operand])

        def enable(fields: executable.Enable, low: int) -> Link:
            bits = smt.field(operand, low, 7)
            return _all_of(
                [number(fields.mode, smt.field(bits, 5, 2)), number(fields.value, smt.field(bits, 0, 5))],
                bits,
            )

        kind = smt.field(operand, 62, 2)
        links = _Fields(
            skip=skip_claims(on, smt.skips(operand)),
            x_offset=number(on.x_offset, smt.field(operand, 10, 9)),
            y_offset=number(on.y_offset, smt.field(operand, 0, 9)),
            z_row=number(on.z_row, smt.field(operand, 20, 6)),
            x_enable=enable(on.x_enable, 41),
            y_enable=enable(on.y_enable, 32),
            x_f16=condition(on.x_f16, smt.flag(operand, 61)),
            y_f16=condition(on.y_f16, smt.flag(operand, 60)),
            vector=condition(on.vector, smt.flag(operand, 63)),
            mixed=_all_of(
                [condition(on.vector, smt.flag(kind, 1)), condition(on.z_f32, smt.flag(kind, 0))], kind
            ),
        )
        self.derive("operand", "both encodings read the same fields", links, [whole])
        return links

    def side(self, name: str, mine: executable.Lanes, other: smt.Lanes, fields: _Fields) -> _Side:
        offset, half, enable = (getattr(fields, f"{name}_{what}") for what in ("offset", "f16", "enable"))
        row = self._loaded(getattr(self.traces.state, name), mine, other, offset)
        codes = [link_code(*pair) for pair in zip(mine.codes, other.codes, strict=True)]
        wide = [link_code(*pair) for pair in zip(mine.widened, other.widened, strict=True)]
        enabled = [condition(flag, smt.flag(other.enabled, i)) for i, flag in enumerate(mine.enabled)]
        for code in codes:
            self.derive("load", "a lane has the same code", [code], [row])
        for code, link in zip(codes, wide, strict=bool(wide)):
            self.derive("convert", "fp16 codes are widened alike", [link], [code])
        for flag in enabled:
            self.derive("operand", "a lane takes part in both encodings, or in none", [flag], [enable])
        taken = codes
        if mine.taken is not mine.codes:
            taken = [link_code(*pair) for pair in zip(mine.taken, other.taken, strict=True)]
            for link, given in zip(taken, zip(wide, codes, strict=True), strict=True):
                self.derive("convert", "fp32, or fp16 widened, is taken alike", [link], [half, *given])
        return _Side(wide, taken, enabled)

    def _loaded(self, pool: z3.BitVecRef, mine: executable.Lanes, other: smt.Lanes, offset: Link) -> Link:
        """Return the link that says that the 64 bytes are the same: by stages, as shifts of two copies of the pool by
        each bit of the offset."""
        word = z3.Concat(pool, pool)
        link = _held(mine.stages[0], pool)
        self.derive("load", "lanes are the bytes of a pool", [link], inputs=[pool])
        for place, stage in zip(range(8, -1, -1), mine.stages[1:], strict=True):
            here, there = (smt.field(word, by, 8 * len(stage)) for by in (0, 8 << place))
            word = z3.If(smt.flag(other.offset, place), there, here)
            before, link = link, _held(stage, word)
            self.derive("load", "a pool is rotated by one bit of the offset", [link], [before, offset])
        same = Link(other.row == word, (word,), ((other.row, word),))
        text = "a shift by an offset is that by its bits"
        self.derive("load", text, [same], inputs=[pool, other.offset], each_value_of=other.offset)
        row = _held(mine.stages[-1], other.row)
        self.derive("load", "the 64 bytes read are the same", [row], [link, same])
        return row

    def rows(self, fields: _Fields) -> list[Link]:
        """Derive that the same rows may change in both encodings."""
        mask = self.traces.smt.rows
        links = [condition(flag, smt.flag(mask, r)) for r, flag in enumerate(self.traces.executable.rows)]
        for link in links:
            self.derive(
                "rows",
                "a row may change in both encodings, or in none",
                [link],
                [fields.z_row, fields.vector],
            )
        return links

    # ---- elements --------------------------------------------------------------------------------------------------

    def operands(
        self, fields: _Fields, x: _Side, y: _Side, rows: list[Link], place: tuple[int, int],
        mine: executable.LaneElement, other: smt.LaneElement,
    ) -> _Operands:  # fmt: skip
        """Derive the links of an element as wide as the instruction's lanes: operands, and whether it is written."""
        r, i = place
        j = r * len(x.taken) // ROWS
        code, written = link_code(mine.y, other.y), condition(mine.written, other.written)
        text = "lane i of Y in vector mode, lane j in matrix mode"
        self.derive("elements", text, [code], [fields.vector, y.taken[i], y.taken[j]])
        given = [rows[r], fields.vector, y.enabled[j], x.enabled[i]]
        self.derive("elements", "an element is written in both encodings, or in none", [written], given)
        return _Operands(x.taken[i], code, written)

    def operands_of_pairs(
        self, x: _Side, y: _Side, place: tuple[int, int], mine: executable.LaneElement, other: smt.LaneElement
    ) -> _Operands:
        """Derive the links of an element of fma16 onto fp32: its operands, and whether it is written."""
        r, n = place
        i, j, written = 2 * n + r % 2, r // 2, condition(mine.written, other.written)
        given = [y.enabled[j], x.enabled[i]]
        self.derive("elements", "an element is written in both encodings, or in none", [written], given)
        return _Operands(x.widened[i], y.widened[j], written)

    def grid(
        self,
        mine: executable.Grid,
        other: smt.Grid,
        fields: _Fields,
        operands: Callable[[tuple[int, int], executable.LaneElement, smt.LaneElement], _Operands],
    ) -> list[Link]:
        """The links of the rows of Z after, if elements of the same operands become the same."""
        count = len(other.elements[0])
        size = ROWS // count
        rows = []
        for r, row in enumerate(other.elements):
            links: list[Link] = []
            for i, element in enumerate(row):
                n = r * count + i
                old = _held(self.traces.lanes.z[n * size : (n + 1) * size], element.z)
                self.derive("elements", "bytes of Z are an element's", [old], inputs=[self.traces.state.z[r]])
                z = link_code(mine.elements[n].z, element.z)
                self.derive("elements", "an element had the same code", [z], [old])
                given = operands((r, i), mine.elements[n], element)
                code = link_code(mine.codes[n], other.codes[r][i])
                self._assume_same(code, [fields.skip, given.x, given.y, z])
                new = _held(mine.after[n * size : (n + 1) * size], other.merged[r][i])
                text = "what is written, or was there, is the same"
                links += self.derive("elements", text, [new], [given.written, code, old])
            whole = _held(mine.after[64 * r : 64 * r + 64], other.after[r])
            self.derive("elements", "elements make the same row", [whole], links)
            rows.append(whole)
        return rows

    def _assume_same(self, code: Link, operands: list[Link]) -> None:
        given = z3.And([link.said for link in operands])
        what = "elements of the same operands become the same codes"
        self.assume(what, Link(z3.Implies(given, code.said)))

    def either(self, fields: _Fields, pairs: list[Link], plain: list[Link]) -> list[Link]:
        """The rows of fma16: those onto fp32, or those onto fp16."""
        rows = []
        for r, given in enumerate(zip(pairs, plain, strict=True)):
            row = _held(self.traces.executable.state.z[64 * r : 64 * r + 64], self.traces.smt.state.z[r])
            self.derive("elements", "fp32 or fp16 rows are chosen alike", [row], [fields.mixed, *given])
            rows.append(row)
        return rows
