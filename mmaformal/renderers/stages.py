"""A trace shown stage by stage: a renderer for each stage (`_ROWS`), whichever algorithm it is of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from mmaformal.encodings.executable.blocks import Lane, Special, Trace
from mmaformal.formats import Format
from mmaformal.renderers.rows import (
    Row,
    ShownStep,
    Steps,
    code_text,
    cut_row,
    ending_rows,
    hex_text,
    is_idle,
    operand_code,
    product_name,
    rounded_text,
    scaled,
    special_rows,
    term_value,
)
from mmaformal.stages import Stage, Value

_LAST = ("round", "round_sum", "select", "special", "add", "first_nan")  #: stages that give a step's code


def steps(trace: Trace[Any], c: int, order: Sequence[int] = (0,)) -> Steps:
    """Returns the rows of each step, which ends with a code that was rounded; of several codes, with the last.

    `order`: the order in which the first products are taken, and so each as many.
    """
    run = _Shown(trace.stages, c, order)
    parts: list[list[Stage]] = [[]]
    for stage in trace.stages:
        parts[-1].append(stage)
        if stage.name in _LAST:
            parts.append([])
    each = (len(parts) - 1) // len(trace.steps)
    joined = (parts[first : first + each] for first in range(0, len(parts) - 1, each))
    return [run.step([stage for part in some for stage in part]) for some in joined]


class _Shown:
    """A record of what was shown so far: the names of terms, and the rows of the step that is shown."""

    def __init__(self, stages: Sequence[Stage], c: int, order: Sequence[int]) -> None:
        self.names: dict[int, str] = {}  #: by the ids of terms
        decoded = [each for each in stages if each.name == "decode"]
        self.codes = {id(each.output): each.inputs[0] for each in decoded}
        self.places = {id(each.output): each.given["fmt"].fraction_bits for each in decoded}
        self.exact: dict[int, Fraction] = {}  #: by the ids of terms
        self.terms: list[Value] = []  #: those that are not summed yet
        self.groups = {id(each.inputs[0]) for each in stages if each.name == "as_term"}
        self.order = order
        self.products, self.latest, self.entering = 0, c, c
        self.sums, self.rows = 0, list[Row]()

    def step(self, stages: Sequence[Stage]) -> ShownStep:
        """Returns a step's rows."""
        self.rows, self.sums = [], 0
        for stage in stages:
            made = _ROWS[stage.name](self, stage)
            self.rows = [*self.rows, *made]
        factors = [x for each in stages for x in _factors(each)]
        products = [x for each in stages for x in self.products_of(each)]
        fmt = _format(stages[-1])
        passes_on = operand_code(self.entering, fmt) == operand_code(self.latest, fmt)
        idle = bool(products) and is_idle(not any(products), factors) and passes_on
        return ShownStep(self.rows, idle)

    def products_of(self, stage: Stage) -> list[Value]:
        """Returns what is zero where the products of a stage are."""
        if stage.name == "scaled_sum":
            return [stage.output.term.significand]
        return [self.exact[id(stage.output)]] if stage.name == "multiply" else []

    def product(self, count: int = 1) -> int:
        """Returns the number of the next product, the first of so many."""
        block, place = divmod(self.products, len(self.order))
        self.products += count
        return block * len(self.order) + self.order[place]

    def name(self, term: Value, name: str) -> list[Row]:
        self.names[id(term)] = name
        return []


def _format(stage: Stage) -> Format:
    """Returns the format of the code that a stage gives."""
    fmt: Format = stage.given["fmt"] if "fmt" in stage.given else stage.given["rho"].format
    return fmt


def _factors(stage: Stage) -> Sequence[Value]:
    """Returns what makes a product that is zero a NaN: operands, or scales."""
    return {"multiply": stage.inputs, "scaled_sum": stage.inputs[-2:]}.get(stage.name, ())


def _nothing(run: _Shown, stage: Stage) -> list[Row]:
    return []


def _multiply(run: _Shown, stage: Stage) -> list[Row]:
    values = [term_value(x, run.places[id(x)]) for x in stage.inputs]
    run.exact[id(stage.output)] = math.prod(values, start=Fraction(1))
    run.terms.append(stage.output)
    return run.name(stage.output, product_name(run.product()))


def _scaled_sum(run: _Shown, stage: Stage) -> list[Row]:
    count = len(stage.output.products)
    first = run.product(count)
    return run.name(stage.output.term, f"group {first}…{first + count - 1}")


def _addend(run: _Shown, stage: Stage) -> list[Row]:
    (c,) = stage.inputs
    run.entering, run.exact[id(stage.output)] = run.codes[id(c)], term_value(c, run.places[id(c)])
    run.terms.append(stage.output)
    return run.name(stage.output, "c")


def _as_term(run: _Shown, stage: Stage) -> list[Row]:
    run.sums += 1
    return run.name(stage.output, f"sum {run.sums - 1}")


def _accumulate(run: _Shown, stage: Stage) -> list[Row]:
    """Returns what is kept of each term that is not zero, c last; of a group, its sum too."""
    *terms, e_max = stage.inputs
    unit, run.terms = e_max - stage.given["F"], []
    group = id(stage.output) in run.groups
    rows = [] if group else [Row("align", "largest exponent", str(e_max))]
    aligned = [*zip(terms, stage.given["places"], stage.output.terms, strict=True)]
    for term, places, lane in sorted(aligned, key=lambda each: run.names[id(each[0])] == "c"):
        if term.significand:
            name, exact = run.names[id(term)], term_value(term, places)
            rows.append(cut_row("group" if group else "align", name, scaled(lane, unit), exact, unit))
    if group and stage.output.total:
        rows.append(Row("group", f"sum {run.sums}", hex_text(scaled(stage.output.total, unit))))
    return rows


def _round(run: _Shown, stage: Stage) -> list[Row]:
    _, e_max, special = stage.inputs
    total, result, d = stage.output.total, stage.output.result, stage.given["rho"].format
    run.latest = result
    rows = special_rows(special, result, d)
    if rows:
        run.rows = []
    return rows or ending_rows(scaled(total, e_max - stage.given["F"]), result, d)


def _round_sum(run: _Shown, stage: Stage) -> list[Row]:
    """Returns the products, of several those that are not zero, and how their sum with c is rounded."""
    special = next((x for x in stage.inputs if isinstance(x, Special)), None)
    if special is None:  # it is another stage that looks at special values
        return []
    code: Lane = getattr(stage.output, "result", stage.output)
    run.latest, d = code, _format(stage)
    terms, run.terms = [(run.names[id(x)], run.exact[id(x)]) for x in run.terms], []
    shown = [(name, x) for name, x in terms if name != "c" and (x or len(terms) < 3)]
    rows = [Row("multiply", name, hex_text(x)) for name, x in shown]
    ending = ending_rows(sum((x for _, x in terms), Fraction(0)), run.latest, d)
    return special_rows(special, run.latest, d) or [*rows, *ending]


def _round_product(run: _Shown, stage: Stage) -> list[Row]:
    x, result, fmt = stage.inputs[0], stage.output.result, stage.given["rho"].format
    run.latest = result
    text = rounded_text(term_value(x, stage.given["F"]), result, fmt)
    return [Row("multiply", run.names[id(x)], text)]


def _add(run: _Shown, stage: Stage) -> list[Row]:
    """Returns the sum of c and the code before; and that one, if it was shown in a step of its own."""
    made, d = stage.output, stage.given["rho"].format
    (c, other), (first, second) = stage.inputs, (term_value(x, d.fraction_bits) for x in (made.x, made.y))
    if other != run.latest:
        c, first, second = other, second, first
    rows = [] if run.rows else [Row("add c", "fused sum", hex_text(second))]
    run.entering, run.latest = c, made.result
    special = special_rows(made.special, made.result, d)
    return special or [*rows, *ending_rows(first + second, made.result, d)]


def _change_sign(run: _Shown, stage: Stage) -> list[Row]:
    run.latest = stage.output
    return [
        Row(
            "signs", "its sign changed", code_text(operand_code(stage.output, _format(stage)), _format(stage))
        )
    ]


def _first_nan(run: _Shown, stage: Stage) -> list[Row]:
    """Returns the NaN that is taken in the place of the result, if one is."""
    run.latest, fmt = stage.output, _format(stage)
    code = operand_code(stage.output, fmt)
    return (
        []
        if code == operand_code(stage.inputs[0], fmt)
        else [Row("encode", "first NaN", code_text(code, fmt))]
    )


_ROWS: Mapping[str, Callable[[_Shown, Stage], list[Row]]] = {
    "convert": _nothing,
    "nan": _nothing,
    "change_sign": _change_sign,
    "first_nan": _first_nan,
    "zero": _nothing,
    "decode": _nothing,
    "classify": _nothing,
    "multiply": _multiply,
    "addend": _addend,
    "scaled_sum": _scaled_sum,
    "largest": _nothing,
    "accumulate": _accumulate,
    "as_term": _as_term,
    "round": _round,
    "round_product": _round_product,
    "sticky_sum": _nothing,
    "fixed_sum": _nothing,
    "sorted_sum": _nothing,
    "long_sum": _nothing,
    "join": _nothing,
    "round_flushed": _nothing,
    "round_sum": _round_sum,
    "select": _round_sum,
    "special": _round_sum,
    "add": _add,
}
