"""A computation told stage by stage, for a person: what the alignment cut off, what the accumulator held, what was
rounded away.  Told from the executable wing's trace, so it is what was computed, not a description of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mmaformal.algorithms import DotAdd
from mmaformal.encodings import executable
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.tellers import TELLERS, Steps, code_text, decimal_text, number_text


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
    return TELLERS[spec.parameters.algorithm](spec, trace, c)


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
    for number, step in enumerate(steps, 1):
        title = f"step {number} of {len(steps)}" if len(steps) > 1 else "the step"
        if step.idle:
            lines.append(f"{title}: all products are zero, c passes unchanged")
            continue
        lines.append(f"{title}:")
        width = max(len(row.label) for row in step.rows)
        lines += [f"  {row.stage:<10}  {row.label:<{width}}  {row.text}" for row in step.rows]
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
    left, right = _foldable(*(_steps(i, a, b, c, scale_a, scale_b) for i in (x, y)))
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
        ours = {(r.stage, r.label): r.text for r in rows.rows}
        theirs = {(r.stage, r.label): r.text for r in others.rows}
        for key in _merged(list(ours), list(theirs)):
            mine, other = ours.get(key), theirs.get(key)
            mark = "≠" if mine != other and mine is not None and other is not None else " "
            if mark == "≠" and not first:
                first = f"{prefix}{key[0]}, {key[1]}"
            table.append((mark, prefix + key[0], key[1], mine or "–", other or "–"))
    heads = (x.label, y.label) if x.label != y.label else (x.parameters.describe(), y.parameters.describe())
    widths = [max(len(row[i]) for row in [*table, ("", "", "", *heads)]) for i in range(4)]
    lines = [f"where they part: {first}", ""]
    lines.append(f"  {'':<{widths[0] + widths[1] + widths[2] + 4}}  {heads[0]:<{widths[3]}}  {heads[1]}")
    for mark, stage, label, mine, other in table:
        lines.append(
            f"  {mark} {stage:<{widths[1]}}  {label:<{widths[2]}}   {mine:<{widths[3]}}  {other}".rstrip()
        )
    return "\n".join(lines)


def _foldable(x: Steps, y: Steps) -> tuple[Steps, Steps]:
    """Both without their idle steps; where they have equally many steps, without those idle on both sides."""
    if len(x) == len(y):
        busy = [pair for pair in zip(x, y, strict=True) if not (pair[0].idle and pair[1].idle)]
        return [mine for mine, _ in busy], [other for _, other in busy]
    busy_x, busy_y = ([step for step in steps if not step.idle] for steps in (x, y))
    return busy_x or x[-1:], busy_y or y[-1:]


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
