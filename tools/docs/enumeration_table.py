"""Compares the theorems of the smallest units with every input: what is proved has to hold, what is refuted to fail.

    python tools/docs/enumeration_table.py results.jsonl [ALGORITHM …] [--models 2] [--timeout 60]

a and b have 4 bits (e2m1, with infinities and NaNs too), K = 2, c and d are e5m2, the smallest format of results.  Each
of the 2^24 inputs is run through the executable encoding and through the circuit of the bit-vectors
(`certificates/all_inputs.py`).  A property of two runs is enumerated in both; one of sums and roundings by
`enumerated_results.py`, of the results, which are seen to be equal.  Each is asked of `prove`.  Run
again, it goes on where it was.  Exit status 1 if an answer is not what enumeration shows.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypedDict

import numpy as np
import z3
from enumerated_results import both_of, broken, every_row
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.cases.relations import Relation
from mmaformal.cases.run import compiled_results
from mmaformal.certificates.all_inputs import AllInputs
from mmaformal.encodings import smt, with_part
from mmaformal.formats import Format, Specials, e2m1, e5m2
from mmaformal.instruction import Instruction
from mmaformal.queries import (
    commutativity,
    order_independence,
    output_range,
    power_of_two_scaling,
    sign_symmetry,
    zero_padding,
)
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Answer, Fails, Holds
from mmaformal.solver.script import smtlib
from mmaformal.spaces import details, models
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: e2m1 with an IEEE format's special values.
E2M1I = Format("e2m1i", 4, 2, 1, 1, Specials.IEEE, None)
TYPES = (Types(e2m1, e2m1, e5m2, e5m2), Types(E2M1I, E2M1I, e5m2, e5m2))


def _padded(spec: DotAdd) -> Relation | None:
    try:
        pad = zero_padding.padding(spec)
    except ValueError:  # there is no shorter one
        return None
    return zero_padding.relation_padded(pad) if pad.longer == spec else None


def _exchanged(spec: DotAdd) -> Relation | None:
    return order_independence.relation_reordered(spec, (1, 0)) if spec.k == 2 else None


#: The relation of two runs for each property; None where there is nothing to exchange, or an input of another K.
RELATIONS: dict[str, Callable[[DotAdd], Relation | None]] = {
    "order-independence": lambda spec: _exchanged(spec) if spec.parameters.step_products > 1 else None,
    "order-independence-across-blocks": _exchanged,
    "commutativity": commutativity.relation_exchanged,
    "sign-symmetry": sign_symmetry.relation_negated,
    "zero-padding": _padded,
    "power-of-two-scaling": power_of_two_scaling.relation_doubled,
    "no-nan-from-finite": output_range.relation_no_nan,
    "never-minus-zero": output_range.relation_minus_zero,
}


def _values(rows: Rows) -> dict[str, NDArray[np.uint64]]:
    sides = {"a": rows.a, "b": rows.b}
    return {f"{side}{k}": codes[:, k] for side, codes in sides.items() for k in range(codes.shape[1])} | {
        "c": rows.c
    }


def _script(claim: z3.BoolRef) -> AllInputs:
    return AllInputs(smtlib([claim]))


def different(spec: DotAdd) -> int:
    """Return on how many inputs the executable's result is not that of the bit-vectors."""
    x = symbolic_inputs(spec)
    d = z3.BitVec("d", spec.d_format.storage_bits)
    same = _script(smt.dot_add(spec, x.a, x.b, x.c).result == d)
    blocks = ((_values(rows), compiled_results(spec, rows)) for rows in every_row(spec))
    return sum(int((~same.hold({**values, "d": d})).sum()) for values, d in blocks)


@dataclass(frozen=True)
class Enumerated:
    """On how many inputs a property is broken, and what is proved of it."""

    by_bits: int  #: by the circuit of the bit-vectors
    by_numbers: int  #: by the executable encoding
    verdict: str  #: `holds`, `fails` or `unknown`

    @property
    def agrees(self) -> bool:
        proved = {"holds": self.by_bits == 0, "fails": self.by_bits > 0, "unknown": True}[self.verdict]
        return proved and self.by_bits == self.by_numbers

    @property
    def cell(self) -> str:
        known = {"holds": "proved", "fails": f"fails on {self.by_bits:,}", "unknown": f"? ({self.by_bits:,})"}
        return known[self.verdict] if self.agrees else f"WRONG: {self}"


def enumerated(spec: DotAdd, name: str, relation: Relation, timeout: float) -> Enumerated:
    """Return how often a relation is broken, in both encodings, and what `prove` says of the property."""
    broken = _script(relation.broken(symbolic_inputs(spec)))
    bits = numbers = 0
    for rows in every_row(spec):
        bits += int(broken.hold(_values(rows)).sum())
        numbers += int(relation.runs(rows)[2].sum())
    return Enumerated(bits, numbers, verdict_of(asked(spec, name, timeout)))


def asked(spec: DotAdd, name: str, timeout: float) -> Answer:
    """Return what `prove` says of a property."""
    return PROPERTIES[name].prove(Instruction("unit", "small", 1, 1, spec), timeout=timeout)


def verdict_of(answer: Answer) -> str:
    """Return `holds`, `fails` or `unknown`."""
    return "holds" if isinstance(answer, Holds) else "fails" if isinstance(answer, Fails) else "unknown"


def cells(spec: DotAdd, timeout: float) -> Iterator[tuple[str, bool]]:
    """Yield a cell for each property, and whether enumeration shows what `prove` says."""
    unit, step = both_of(spec)
    for name in PROPERTIES:
        if name in RELATIONS:
            relation = RELATIONS[name](spec)
            found = None if relation is None else enumerated(spec, name, relation, timeout)
        else:
            answer = asked(spec, name, timeout)
            count = broken(name, unit, step, answer)
            found = None if count is None else Enumerated(count, count, verdict_of(answer))
            if found is None and isinstance(answer, Holds):
                yield "proved, not seen", True
                continue
        yield ("–", True) if found is None else (found.cell, found.agrees)


def chosen(algorithm: str, types: Types, number: int) -> list[DotAdd]:
    """Return models of an algorithm, drawn with a fixed seed from its space; none if it does not take the types."""
    try:
        every = list(islice(models(types, 2, algorithm), 500))
    except ValueError:
        return []
    chance = random.Random(algorithm)
    return [
        chance.choice(list(islice(details(spec), 200)))
        for spec in chance.sample(every, min(number, len(every)))
    ]


class Row(TypedDict):
    """A model, and its cell of each property; `wrong`: how many are not what enumeration shows."""

    types: str
    algorithm: str
    parameters: str
    cells: dict[str, str]
    wrong: int


def row_of(name: str, spec: DotAdd, timeout: float) -> Row:
    """Return the row of a model of an algorithm."""
    apart, found = different(spec), list(cells(spec, timeout))
    same = "equal" if not apart else f"WRONG: {apart:,} differ"
    named = dict(zip(PROPERTIES, (cell for cell, _ in found), strict=True))
    return {
        "types": str(spec.types),
        "algorithm": name,
        "parameters": str(spec.parameters),
        "cells": {"both encodings": same, **named},
        "wrong": (apart > 0) + sum(not agrees for _, agrees in found),
    }


def tables(rows: Sequence[Row]) -> str:
    """Return a table for each kind of types: a line for each property, a column for each model; then the models."""
    lines: list[str] = []
    for types in dict.fromkeys(row["types"] for row in rows):
        its = [row for row in rows if row["types"] == types]
        lines += [f"| {types} | {' | '.join(row['algorithm'] for row in its)} |", "|---|" + "---|" * len(its)]
        lines += [f"| {name} | {' | '.join(row['cells'][name] for row in its)} |" for name in its[0]["cells"]]
        lines += ["", "; ".join(f"`{row['parameters']}`" for row in its), ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("algorithm", nargs="*")
    parser.add_argument("--models", type=int, default=1, help="of each algorithm and kind of a and b")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each property")
    args = parser.parse_args()
    rows = (
        [json.loads(line) for line in args.results.read_text().splitlines()] if args.results.exists() else []
    )
    done, without = {(row["types"], row["parameters"]) for row in rows}, []
    for name in args.algorithm or sorted(with_part("space")):
        specs = [spec for types in TYPES for spec in chosen(name, types, args.models)]
        without += [] if specs else [name]
        for spec in specs:
            if (str(spec.types), str(spec.parameters)) not in done:
                rows.append(row_of(name, spec, args.timeout))
                with args.results.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
    print(tables(sorted(rows, key=lambda row: (row["types"], row["algorithm"]))))
    print(f"Without a unit of these types: {', '.join(without) or 'none'}.")
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
