"""A computation shown stage by stage, for a person: what the alignment cut off, what the accumulator held, what was
rounded away.  Shown from the executable encoding's trace, so it is what was computed, not a description of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from mmaformal.brief import (
    MOST_GROUPS,
    MOST_LINES,
    first_rows,
    more,
    places_by_key,
    places_text,
    rows_together,
)
from mmaformal.display import columns
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.folding import fold
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.renderers import renderer_of
from mmaformal.renderers.rows import Row, ShownStep, code_text, decimal_text, number_text, operand_code
from mmaformal.spec import DotAdd


def exact_dot_add(
    spec: DotAdd,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> Fraction | None:
    """The exact `c + Σ a_k·b_k`, or what the unit is to give in its place (`DotAdd.exact_sum`); None if an input is an
    infinity or a NaN."""
    scale = spec.scale_format
    codes = [({*a}, spec.a_format), ({*b}, spec.b_format), ({c} if spec.reads_c else set(), spec.c_format)]
    if scale is not None:
        codes.append(({*scale_a, *scale_b}, scale))
    if not all(fmt.is_finite(code) for side, fmt in codes for code in side):
        return None
    products = Fraction(0)
    if scale is None:
        for (x, y), times in Counter(zip(a, b, strict=True)).items():
            products += times * spec.a_format.value(x) * spec.b_format.value(y)
    else:
        scales = ([int(side[k // spec.scale_block]) for k in range(spec.k)] for side in (scale_a, scale_b))
        for (x, y, u, v), times in Counter(zip(a, b, *scales, strict=True)).items():
            value = spec.a_format.value(x) * spec.b_format.value(y)
            products += times * value * scale.value(u) * scale.value(v)
    addend = spec.c_sign * spec.c_format.value(c) if spec.reads_c else Fraction(0)
    return addend + spec.product_sign * products


def input_lines(
    spec: DotAdd,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
    *,
    shown: Sequence[int],
    width: int,
    whole: bool = False,
) -> list[str]:
    """The inputs, equal ones together, of the products `shown`; names in `width` columns; c, then the scales, last."""

    pairs = places_by_key((k, (a[k], b[k])) for k in shown)
    kept = list(pairs) if whole else list(pairs)[:MOST_GROUPS]
    named: list[tuple[str, str]] = []
    for x, y in kept:
        where = places_text(pairs[x, y], whole)
        named += [(f"a[{where}]", code_text(x, spec.a_format)), (f"b[{where}]", code_text(y, spec.b_format))]
    if hidden := sum(map(len, list(pairs.values())[len(kept) :])):
        named.append((more(hidden, "product"), ""))
    named.append(("c", code_text(c, spec.c_format)))
    if spec.scale_format is not None:
        for name, scales in (("scale_a", scale_a), ("scale_b", scale_b)):
            for code, blocks in places_by_key(enumerate(scales)).items():
                named.append((f"{name}[{places_text(blocks, whole)}]", code_text(code, spec.scale_format)))
    width = max(width - 2, *(len(name) + 2 for name, text in named if text))
    return [f"  {name:<{width}}{text}".rstrip() for name, text in named]


# ---- showing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberedStep(ShownStep):
    """A step, and which ones of the chain it shows, from 0."""

    numbers: range = range(1)


def shown_steps(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> list[NumberedStep]:
    """The steps of one dot product-add of codes (Python ints), shown; like ones together."""
    spec = instruction.spec
    # Python's integers: those of a code of 64 bits are unsigned.
    sides = [
        np.array(side, np.uint64) for side in ((a, b, scale_a, scale_b) if spec.scale_format else (a, b))
    ]
    folded = fold(spec, sides[0], sides[1], c, *sides[2:])
    places = folded.kept[folded.spec.taken].tolist()
    return numbered_steps(folded.spec, folded.trace, c, folded.stand_for, places)


def numbered_steps(
    spec: DotAdd, trace: Trace[Any], c: int, numbers: Sequence[range], places: Sequence[int]
) -> list[NumberedStep]:
    """The steps of a trace shown: `numbers` has the steps of the chain that each tells of, `places` each product's."""
    rendered = renderer_of(spec)(spec.in_order, trace, c)
    if (inner := trace.inner) is not None:  # what is shown is of the codes with their signs changed
        d, fmt = operand_code(trace.result, spec.d_format), spec.d_format
        if "d" in spec.negated:
            rendered[-1].rows.append(Row("signs", "d, its sign changed", code_text(d, fmt)))
        start = [(f"a[{k}], its sign changed", x, spec.a_format) for k, x in enumerate(inner.a)]
        start = start if "a" in spec.negated else []
        if spec.c_sign == 0 or "c" in spec.negated:
            why = "c, its sign changed" if spec.reads_c else "c, not read"
            start.append((why, inner.c, spec.c_format))
        shown = [Row("signs", label, code_text(operand_code(x, fmt), fmt)) for label, x, fmt in start]
        rendered[0].rows[:0] = shown
    return [
        NumberedStep([replace(row, label=_placed(row.label, places)) for row in step.rows], step.passes_c, of)
        for step, of in zip(rendered, numbers, strict=True)
    ]


def _placed(label: str, places: Sequence[int]) -> str:
    """A label of products with their places in the whole chain."""
    if not label.startswith(("a[", "group ")):
        return label
    return re.sub(r"\d+", lambda k: str(places[int(k[0])]), label)


def explain_case(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
    *,
    whole: bool = True,
) -> str:
    """One dot product-add of `instruction` on codes (Python ints), stage by stage.

    Not the `whole`: where that is long, the first step that cuts something off, and the result.
    """
    steps = shown_steps(instruction, a, b, c, scale_a, scale_b)
    count = steps[-1].numbers.stop
    rendered = [_step_lines(step, count, whole=True) for step in steps]
    if whole or sum(map(len, rendered)) <= MOST_LINES:
        return "\n".join(line for lines in rendered for line in lines)
    shown = next((step for step in steps if not step.passes_c and _cuts(step)), steps[0])
    lines = _step_lines(shown, count, whole=False)
    if len(steps) > 1:
        d = steps[-1].rows[-1]
        others = count - len(shown.numbers)
        lines += [more(others, "step"), f"  {d.stage:<10}  {d.label}, in the end  {d.text}"]
    return "\n".join(lines)


def _step_lines(step: NumberedStep, count: int, whole: bool) -> list[str]:
    """A step, of so many of the chain."""
    first, last = step.numbers.start + 1, step.numbers.stop
    title = f"step {first} of {count}" if count > 1 else "the step"
    if last > first:
        title = f"steps {first} to {last} of {count}, all alike"
    if step.passes_c:
        return [f"{title}: all products are zero, c passes unchanged"]
    given = [("", row.stage, row.label, row.text) for row in step.rows]
    rows = rows_together(given, 2) if whole else first_rows(given, 2)
    width = max(len(label) for _, _, label, text in rows if text)
    return [
        f"{title}:",
        *(f"  {stage:<10}  {label:<{width}}  {text}".rstrip() for _, stage, label, text in rows),
    ]


def _cuts(step: NumberedStep) -> bool:
    """Whether it cuts or rounds something off."""
    return any("(lost " in row.text or (row.stage == "round" and row.text != "nothing") for row in step.rows)


def explain_difference(
    x: Instruction,
    y: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
    *,
    whole: bool = True,
) -> str:
    """Both computations side by side, the first difference named.

    Steps in which nothing happens are folded away; if what is left has not the same number of steps on both
    sides, the computations are shown one after the other.  Not the `whole`: where that is long, the first step that
    differs.
    """
    left, right = foldable([shown_steps(i, a, b, c, scale_a, scale_b) for i in (x, y)])
    if len(left) != len(right):
        apart = [
            f"{i.label} takes {len(steps)} step{'s' if len(steps) != 1 else ''} here:\n"
            + explain_case(i, a, b, c, scale_a, scale_b, whole=whole)
            for i, steps in ((x, left), (y, right))
        ]
        return "where they part: they do not add the same terms in one step\n\n" + "\n\n".join(apart)

    tables, first = side_by_side([left, right])
    heads = (x.label, y.label) if x.label != y.label else (x.parameters.describe(), y.parameters.describe())
    table, rest = _shown(tables, whole)
    rendered = [("", "", "", *heads), *((f"  {mark}", *cells) for mark, *cells in table)]
    return "\n".join([f"where they part: {first}", "", *columns(rendered, (" ", "  ", "   ", "  ")), *rest])


def side_by_side(sides: Sequence[Sequence[ShownStep]]) -> tuple[list[list[tuple[str, ...]]], str]:
    """The rows of as many steps of each side (mark, stage, label, a text of each), and the first one that differs."""
    tables: list[list[tuple[str, ...]]] = []
    first = ""
    for number, steps in enumerate(zip(*sides, strict=True), 1):
        prefix = f"{number}: " if len(sides[0]) > 1 else ""
        told = [{(r.stage, r.label): r.text for r in step.rows} for step in steps]
        tables.append([])
        for key in reduce(_merged, map(list, told)):
            texts = [each.get(key) for each in told]
            mark = "≠" if len({*texts} - {None}) > 1 else " "
            if mark == "≠" and not first:
                first = f"{prefix}{key[0]}, {key[1]}"
            tables[-1].append((mark, prefix + key[0], key[1], *(text or "–" for text in texts)))
    return tables, first


def _shown(
    tables: Sequence[Sequence[tuple[str, ...]]], whole: bool
) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows of all steps, or of the first that differs where they are many; and what is said of the rest."""
    rows = [row for table in tables for row in rows_together(table, 2)]
    if whole or len(rows) <= MOST_LINES:
        return rows, []
    differing = next((table for table in tables if any(row[0] == "≠" for row in table)), tables[0])
    rest = [f"  {more(len(tables) - 1, 'step')}"] if len(tables) > 1 else []
    return first_rows(differing, 2), rest


def foldable(sides: Sequence[list[NumberedStep]]) -> list[list[NumberedStep]]:
    """Each side without steps that only pass c on; where all have equally many steps, without those that do on all."""
    if len({steps[-1].numbers.stop for steps in sides}) == 1:
        numbered = [{step.numbers.start: step for step in steps} for steps in sides]
        common = [number for number in numbered[0] if all(number in each for each in numbered)]
        busy = [number for number in common if not all(each[number].passes_c for each in numbered)]
        return [[each[number] for number in busy] for each in numbered]
    return [[step for step in steps if not step.passes_c] or steps[-1:] for steps in sides]


def _merged(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Both lists in one order: the first one's, the second's own entries after what they follow."""
    merged = list(first)
    for position, key in enumerate(second):
        if key not in merged:
            before = second[position - 1] if position else None
            merged.insert(merged.index(before) + 1 if before is not None else 0, key)
    return merged


def ulps_apart(x: int, y: int, fmt: Format) -> int | None:
    """How many codes of `fmt` lie between two results, plus one; None if one is a NaN."""
    if fmt.is_nan(x) or fmt.is_nan(y):
        return None

    def ordinal(code: int) -> int:
        magnitude = code & (fmt.sign_mask - 1)
        return -magnitude if code & fmt.sign_mask else magnitude

    return abs(ordinal(x) - ordinal(y)) >> fmt.ignored_low_bits


__all__ = [
    "code_text",
    "decimal_text",
    "exact_dot_add",
    "explain_case",
    "explain_difference",
    "number_text",
    "ulps_apart",
]
