"""Rows of a trace shown: stage, what, and what came out; and what several renderers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from typing import Any

from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import AnyExecutableStep, Operand, Special, Term, Trace
from mmaformal.formats import Format, fp32, hex_float
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Row(ShortRepr):
    """One line of what is shown: a stage, what it is about, and what came out there."""

    stage: str
    label: str
    text: str
    exact: Fraction | None = None  #: of a number that is cut off: before
    unit: int = 0  #: of such a number: 2^unit is the last place that is kept


@dataclass(frozen=True, repr=False)
class ShownStep(ShortRepr):
    """The rows of one step; `passes_c` if its products are all zero and it only passes c on."""

    rows: list[Row]
    passes_c: bool = False


Steps = list[ShownStep]


# ---- numbers ------------------------------------------------------------------------------------------------------


def decimal_text(value: Fraction, digits: int = 17) -> str:
    """An exact decimal if `digits` significant digits hold it, else one that starts with ≈."""
    with localcontext(Context(prec=digits)) as context:
        rounded = Decimal(value.numerator) / Decimal(value.denominator)
        inexact = bool(context.flags[Inexact])
    return f"{'≈' if inexact else ''}{rounded:g}"


def number_text(value: Fraction) -> str:
    """`0x1.8p-2 = 0.375`."""
    decimal = decimal_text(value)
    return f"{hex_float(value)} {decimal}" if decimal.startswith("≈") else f"{hex_float(value)} = {decimal}"


def code_text(code: int, fmt: Format) -> str:
    """`0x3c00  0x1p+0 = 1`, or `0x7fff  nan`, or of an integer `0x80  -128`."""
    digits = -(-fmt.storage_bits // 4)
    if not fmt.is_finite(code) or fmt.value(code) == 0 or fmt.is_integer:
        return f"{code:#0{digits + 2}x}  {fmt.text(code)}"
    return f"{code:#0{digits + 2}x}  {number_text(fmt.value(code))}"


def hex_text(value: Fraction, digits: int = 40) -> str:
    """A hexadecimal float; of one with very many digits the first ones, then `…`."""
    text = hex_float(value)
    head, _, exponent = text.partition("p")
    return f"{head[:digits]}…p{exponent}" if len(head) > digits else text


def scaled(significand: int, exponent: int) -> Fraction:
    return Fraction(significand) * Fraction(2) ** exponent


def term_value(term: Term | Operand, fraction_bits: int) -> Fraction:
    """The value of a `Term` or `Operand` of the executable encoding."""
    return scaled(-term.significand if term.sign else term.significand, term.exponent - fraction_bits)


def operand_code(lane: int, fmt: Format) -> int:
    """The code in a lane, which is signed: one of 64 bits may be negative there."""
    return lane & (fmt.codes - 1)


def kept_and_lost(kept: Fraction, exact: Fraction) -> str:
    return hex_text(kept) + (f"  (lost {hex_text(exact - kept)})" if kept != exact else "")


def cut_row(stage: str, label: str, kept: Fraction, exact: Fraction, unit: int) -> Row:
    """The row of a number of which the places below 2^unit are cut off."""
    return Row(stage, label, kept_and_lost(kept, exact), exact, unit)


# ---- rows that several algorithms share ---------------------------------------------------------------------------


def special_rows(special: Special, result: int, d: Format) -> list[Row]:
    """The rows of a step that special values decide, or none."""
    result = operand_code(result, d)
    for flag, text in (
        (special.nan, "NaN"),
        (special.positive_infinity, "+∞"),
        (special.negative_infinity, "−∞"),
    ):
        if flag:
            return [Row("classify", "special value", text), Row("encode", "d", code_text(result, d))]
    return []


def ending_rows(total: Fraction, result: int, d: Format) -> list[Row]:
    """The sum, what its rounding dropped, and d."""
    result = operand_code(result, d)
    rows = [Row("accumulate", "sum", hex_text(total))]
    if d.is_finite(result):
        lost = total - d.value(result)
        rows.append(Row("round", "rounded away", hex_text(lost) if lost else "nothing"))
    else:
        rows.append(Row("round", "overflow", "to infinity"))
    return [*rows, Row("encode", "d", code_text(result, d))]


def rounded_text(exact: Fraction, code: int, fmt: Format) -> str:
    """The code that a number was rounded to, and what that took away."""
    lost = exact - fmt.value(code) if fmt.is_finite(code) else Fraction(0)
    return code_text(code, fmt) + (f"  (lost {hex_text(lost)})" if lost else "")


def sum_text(x: int, y: int, result: int) -> str:
    """A sum of two fp32 codes as it was rounded, and what that took away."""
    if not all(map(fp32.is_finite, (x, y, result))):
        return code_text(result, fp32)
    return rounded_text(fp32.value(x) + fp32.value(y), result, fp32)


def addends(spec: DotAdd, trace: Trace[AnyExecutableStep], c: int) -> list[int]:
    """The c of every step, a code."""
    return [c, *(operand_code(step.result, spec.d_format) for step in trace.steps[:-1])]


def bits_of_products(spec: DotAdd) -> int:
    """Returns the fraction bits of a product."""
    return spec.a_format.fraction_bits + spec.b_format.fraction_bits


def product_name(k: int) -> str:
    return f"a[{k}]·b[{k}]"


def is_idle(zero: bool, operands: Iterable[Operand]) -> bool:
    """Whether products that are `zero` by their significands are products of numbers (∞·0 is none)."""
    return zero and not any(x.nan or x.infinite for x in operands)


def step_rows(
    spec: DotAdd,
    trace: Trace[Any],
    c: int,
    any_product: Callable[[Any], bool],
    rows: Callable[[int, Any], list[Row]],
) -> Steps:
    """Returns the rows of each step, of which this is its number: its special value, or what `rows` gives.

    `any_product`: whether a product of a step is not zero.
    """
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        factors = [x for side in (step.a, step.b) for x in ([side] if isinstance(side, Operand) else side)]
        passes_on = entering == operand_code(step.result, spec.d_format)
        special = special_rows(step.special, step.result, spec.d_format)
        shown = special or rows(number, step)
        steps.append(ShownStep(shown, is_idle(not any_product(step), factors) and passes_on))
    return steps
