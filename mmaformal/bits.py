"""Bits drawn: codes by their fields, and the terms of a sum one below the other with what alignment cuts off."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from mmaformal.display import columns
from mmaformal.formats import Format, exponent_of
from mmaformal.instruction import Instruction
from mmaformal.renderers.rows import Row, code_text
from mmaformal.shown_stages import NumberedStep, shown_steps

#: a, b, c and the block scales of both sides, as codes.
CaseCodes: TypeAlias = tuple[Sequence[int], Sequence[int], int, Sequence[int], Sequence[int]]

#: The most places that are drawn of what is cut off.
_CUT_PLACES = 24


def code_bits(code: int, fmt: Format) -> str:
    """`0 01111 0000000000`: sign, exponent field and fraction of a code, without those that the format lacks."""
    digits = f"{code:0{fmt.storage_bits}b}"
    signs = 1 if fmt.sign_mask else 0
    exponent_end = signs + fmt.exponent_bits
    parts = digits[:signs], digits[signs:exponent_end], digits[exponent_end:]
    return " ".join(part for part in parts if part)


def draw_codes(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
    *,
    d: int | None = None,
) -> str:
    """Lines for c and each operand that is not +0 (and d): sign, exponent field, fraction, and the number."""
    operands = [("a", a), ("b", b), ("scale_a", scale_a), ("scale_b", scale_b)]
    shown = [
        (f"{name}[{i}]", code, instruction.format_of(name))
        for name, codes in operands
        for i, code in enumerate(codes)
        if code
    ]
    shown.append(("c", c, instruction.c_format))
    if d is not None:
        shown.append(("d", d, instruction.d_format))
    rows = [("", "sign exponent fraction", "")]
    rows += [(name, code_bits(code, fmt), code_text(code, fmt)) for name, code, fmt in shown]
    return "\n".join(f"  {line}" for line in columns(rows))


def draw_alignment(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> str:
    """The terms of each sum, place below place, `|` being the end of what is kept; empty where none is told."""
    return drawn_steps(shown_steps(instruction, a, b, c, scale_a, scale_b))


def draw_witness(models: Sequence[Instruction], case: CaseCodes, columns: int, lines: int = 15) -> str:
    """The terms of several models on one input; nothing of a model whose drawing is larger than that."""
    drawn = ((i.label, draw_alignment(i, *case)) for i in models)
    return "\n\n".join(
        f"terms of {label}\n{text}"
        for label, text in drawn
        if text and max(map(len, text.splitlines())) <= columns and text.count("\n") < lines
    )


def drawn_steps(steps: Sequence[NumberedStep]) -> str:
    """`draw_alignment` of steps that are shown."""
    lines: list[str] = []
    for step in steps:
        cut = [row for row in step.rows if row.exact is not None]
        if cut and not step.passes_c:
            of_step = f"step {step.numbers.start + 1}, " if steps[-1].numbers.stop > 1 else ""
            for stage in dict.fromkeys((row.stage, row.unit) for row in cut):
                together = [row for row in cut if (row.stage, row.unit) == stage]
                lines += [
                    f"{of_step}{stage[0]}: places to 2^{stage[1]} are kept, | what is right of it is cut off"
                ]
                lines += _drawn(together)
    return "\n".join(lines)


def _drawn(rows: Sequence[Row]) -> list[str]:
    """Numbers with the same last place that is kept, drawn in binary, one below the other."""
    unit = rows[0].unit
    magnitudes = [abs(row.exact or Fraction(0)) for row in rows]
    top = max([unit, *(exponent_of(x) for x in magnitudes if x)])
    bottom = min([unit, *(last_place(x) for x in magnitudes if x)])
    last = max(bottom, unit - _CUT_PLACES)
    width = max(len(row.label) for row in rows)
    lines = []
    for row, x in zip(rows, magnitudes, strict=True):
        digits = [str(int(x / Fraction(2) ** place) & 1) for place in range(top, last - 1, -1)]
        kept, cut = "".join(digits[: top - unit + 1]), "".join(digits[top - unit + 1 :])
        sign = "-" if row.exact is not None and row.exact < 0 else "+"
        more = "…" if x and last_place(x) < last else ""
        text = f"  {row.label:<{width}}  {sign}{_quiet(kept)}|{cut.rstrip('0') if not more else cut}{more}"
        lines.append(text)
    return lines


def _quiet(digits: str) -> str:
    """Binary digits with `.` for the zeros before the first one."""
    return digits.replace("0", ".", len(digits) - len(digits.lstrip("0")))


def last_place(x: Fraction) -> int:
    """The place of the last one of a binary fraction."""
    n = x.numerator
    return (n & -n).bit_length() - x.denominator.bit_length()
