"""A computation told stage by stage, for a person: what the alignment cut off, what the accumulator held, what was
rounded away.  Told from the executable wing's trace, so it is what was computed, not a description of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from mmaformal.algorithms import DotAdd
from mmaformal.encodings import executable
from mmaformal.formats import Format, hex_float
from mmaformal.instruction import Instruction


@dataclass(frozen=True)
class Row:
    """One line of the telling: a stage, what it is about, and what came out there."""

    stage: str
    label: str
    text: str


#: The rows of one step, or None for a step that only passes c on.
Steps = list[list[Row]]


def decimal_text(value: Fraction, digits: int = 17) -> str:
    """An exact decimal if `digits` significant digits hold it, else one that starts with ≈."""
    with localcontext(Context(prec=digits)) as context:
        rounded = Decimal(value.numerator) / Decimal(value.denominator)
        inexact = bool(context.flags[_INEXACT])
    return f"{'≈' if inexact else ''}{rounded:g}"


_INEXACT = next(flag for flag in Context().flags if flag.__name__ == "Inexact")


def number_text(value: Fraction) -> str:
    """`0x1.8p-2 = 0.375`."""
    decimal = decimal_text(value)
    return f"{hex_float(value)} {decimal}" if decimal.startswith("≈") else f"{hex_float(value)} = {decimal}"


def code_text(code: int, fmt: Format) -> str:
    """`0x3c00  0x1p+0 = 1`, or `0x7fff  nan`."""
    digits = -(-fmt.storage_bits // 4)
    if not fmt.is_finite(code) or fmt.value(code) == 0:
        return f"{code:#0{digits + 2}x}  {fmt.text(code)}"
    return f"{code:#0{digits + 2}x}  {number_text(fmt.value(code))}"


def exact_dot_add(
    spec: DotAdd,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> Fraction | None:
    """The exact `c + Σ a_k·b_k`; None if an input is an infinity or a NaN."""
    codes = [(x, spec.a_format) for x in a] + [(x, spec.b_format) for x in b] + [(c, spec.c_format)]
    scale = spec.scale_format
    if scale is not None:
        codes += [(x, scale) for x in (*scale_a, *scale_b)]
    if not all(fmt.is_finite(code) for code, fmt in codes):
        return None
    total = spec.c_format.value(c)
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        product = spec.a_format.value(x) * spec.b_format.value(y)
        if scale is not None:
            block = k // spec.scale_block
            product *= scale.value(scale_a[block]) * scale.value(scale_b[block])
        total += product
    return total


# ---- fda ----------------------------------------------------------------------------------------------------------


def _scaled(significand: int, exponent: int) -> Fraction:
    return Fraction(significand) * Fraction(2) ** exponent


def _special_row(special: Any) -> Row | None:
    for flag, text in (
        (special.nan, "NaN"),
        (special.positive_infinity, "+∞"),
        (special.negative_infinity, "−∞"),
    ):
        if flag:
            return Row("classify", "special value", text)
    return None


def _kept_and_lost(kept: Fraction, exact: Fraction) -> str:
    return hex_float(kept) + (f"  (lost {hex_float(exact - kept)})" if kept != exact else "")


def _fda_steps(spec: DotAdd, trace: Any, c: int) -> Steps:
    F, L = spec.parameters["F"], spec.parameters["L"]
    product_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, step in enumerate(trace.steps):
        entering = c if number == 0 else trace.steps[number - 1].result
        special = _special_row(step.special)
        if not any(p.significand for p in step.products) and entering == step.result and not special:
            steps.append([])
            continue
        if special:
            steps.append([special, Row("encode", "d", code_text(step.result, spec.d_format))])
            continue
        unit = step.e_max - F
        rows = [Row("align", "largest exponent", str(step.e_max))]
        for k, (product, aligned) in enumerate(zip(step.products, step.aligned, strict=True)):
            if product.significand:
                exact = _scaled(product.significand * (-1) ** product.sign, product.exponent - product_bits)
                text = _kept_and_lost(_scaled(aligned, unit), exact)
                rows.append(Row("align", f"a[{number * L + k}]·b[{number * L + k}]", text))
        if step.addend.significand:
            exact = _scaled(
                step.addend.significand * (-1) ** step.addend.sign,
                step.addend.exponent - spec.c_format.fraction_bits,
            )
            rows.append(Row("align", "c", _kept_and_lost(_scaled(step.aligned_c, unit), exact)))
        total = _scaled(step.total, unit)
        rows.append(Row("accumulate", "sum", hex_float(total)))
        if spec.d_format.is_finite(step.result):
            lost = total - spec.d_format.value(step.result)
            rows.append(Row("round", "rounded away", hex_float(lost) if lost else "nothing"))
        else:
            rows.append(Row("round", "overflow", "to infinity"))
        rows.append(Row("encode", "d", code_text(step.result, spec.d_format)))
        steps.append(rows)
    return steps


_TELLERS: dict[str, Callable[[DotAdd, Any, int], Steps]] = {"fda": _fda_steps}


# ---- telling ------------------------------------------------------------------------------------------------------


def _steps(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> Steps:
    spec = instruction.spec
    scales = (list(scale_a), list(scale_b)) if spec.scale_format else ()
    trace = executable.dot_add(spec, list(a), list(b), c, *scales)
    return _TELLERS[spec.parameters.algorithm](spec, trace, c)


def explain_case(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> str:
    """One dot product-add of `instruction` on codes (Python ints), stage by stage."""
    steps = _steps(instruction, a, b, c, scale_a, scale_b)
    lines = []
    for number, rows in enumerate(steps, 1):
        title = f"step {number} of {len(steps)}" if len(steps) > 1 else "the step"
        if not rows:
            lines.append(f"{title}: all products are zero, c passes unchanged")
            continue
        lines.append(f"{title}:")
        width = max(len(row.label) for row in rows)
        lines += [f"  {row.stage:<10}  {row.label:<{width}}  {row.text}" for row in rows]
    return "\n".join(lines)


def explain_difference(
    x: Instruction,
    y: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> str:
    """Both computations side by side, the first difference named.

    Steps in which nothing happens are folded away; if what is left has not the same number of steps on both
    sides, the computations are told one after the other.
    """
    left, right = ([rows for rows in _steps(i, a, b, c, scale_a, scale_b) if rows] for i in (x, y))
    if len(left) != len(right):
        told = [
            f"{i.label} takes {len(steps)} step{'s' if len(steps) != 1 else ''} here:\n"
            + explain_case(i, a, b, c, scale_a, scale_b)
            for i, steps in ((x, left), (y, right))
        ]
        return "where they part: they do not add the same terms in one step\n\n" + "\n\n".join(told)

    table: list[tuple[str, str, str, str, str]] = []  # mark, stage, label, left, right
    first = ""
    for number, (rows, others) in enumerate(zip(left, right, strict=True), 1):
        prefix = f"{number}: " if len(left) > 1 else ""
        ours = {(r.stage, r.label): r.text for r in rows}
        theirs = {(r.stage, r.label): r.text for r in others}
        for key in _merged(list(ours), list(theirs)):
            mine, other = ours.get(key, "–"), theirs.get(key, "–")
            mark = " " if mine == other else "≠"
            if mark == "≠" and not first:
                first = f"{prefix}{key[0]}, {key[1]}"
            table.append((mark, prefix + key[0], key[1], mine, other))
    heads = (x.label, y.label) if x.label != y.label else (x.parameters.describe(), y.parameters.describe())
    widths = [max(len(row[i]) for row in [*table, ("", "", "", *heads)]) for i in range(4)]
    lines = [f"where they part: {first}", ""]
    lines.append(f"  {'':<{widths[0] + widths[1] + widths[2] + 4}}  {heads[0]:<{widths[3]}}  {heads[1]}")
    for mark, stage, label, mine, other in table:
        lines.append(
            f"  {mark} {stage:<{widths[1]}}  {label:<{widths[2]}}   {mine:<{widths[3]}}  {other}".rstrip()
        )
    return "\n".join(lines)


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
    "Row",
    "code_text",
    "decimal_text",
    "exact_dot_add",
    "explain_case",
    "explain_difference",
    "number_text",
    "ulps_apart",
]
