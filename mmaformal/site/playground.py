"""Answers to the playground: units on codes, stage by stage, by the executable encoding on Python's integers.

A browser runs this file, with stand-ins for NumPy (`absent`): `answer` takes and returns JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import lcm

from mmaformal.architectures import ARCHITECTURES
from mmaformal.bits import code_bits, drawn_steps
from mmaformal.display import ShortRepr
from mmaformal.encodings import executable
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.renderers.rows import code_text, number_text, operand_code
from mmaformal.shown_stages import NumberedStep, exact_dot_add, foldable, numbered_steps, side_by_side

#: Operands in the order in which a unit takes them.
SIDES = ("a", "b", "c", "scale_a", "scale_b")


class UnreadableError(ValueError):
    """A question makes no sense; the message says why."""


@dataclass(frozen=True, repr=False)
class ReadOperand(ShortRepr):
    """A code, and what is said of it where the number that was typed is none of its format."""

    code: int
    note: str = ""


def typed_code(word: str, fmt: Format) -> ReadOperand:
    """The code of what is typed: bits (0x3c00, 0b11), a decimal, a fraction, a hexadecimal float, inf, nan; else +0.

    A number that the format does not have is rounded to the nearest one, with a note.  Raises UnreadableError.
    """
    word = word.strip().lower() or ("0" if fmt.has_zero else "1")
    digits = word.replace("_", "")
    base = 2 if digits.startswith("0b") else 16 if digits.startswith("0x") and "p" not in digits else 0
    try:
        if base:
            code = int(digits, base)
            fmt.fields(code)
            return ReadOperand(code)
        return ReadOperand(fmt.code(word))
    except ValueError as error:
        if base or word.strip("+-") in ("inf", "infinity", "nan"):
            raise UnreadableError(str(error)) from None
    try:
        code, _ = fmt.nearest(word)
    except ValueError as error:
        raise UnreadableError(str(error)) from None
    return ReadOperand(code, f"{word} is no value of {fmt}; rounded to the nearest")


def instructions_called(labels: Sequence[str]) -> list[Instruction]:
    """The instructions of labels (`hopper HMMA.16816.F32`), chained to one K.

    Raises UnreadableError where there is none of a label, or where they do not take the same types.
    """
    found = []
    for label in labels:
        architecture, _, name = label.partition(" ")
        if architecture not in ARCHITECTURES or name not in ARCHITECTURES[architecture]:
            raise UnreadableError(f"no instruction is called {label}")
        found.append(ARCHITECTURES[architecture][name])
    if not found:
        raise UnreadableError("choose an instruction")
    taken = [(i.a_format, i.b_format, i.c_format, i.spec.scale_format, i.spec.scale_block) for i in found]
    for other, types in zip(found, taken, strict=True):
        if types != taken[0]:
            raise UnreadableError(f"{found[0].label} and {other.label} do not take the same types")
    k = lcm(*(i.k for i in found))
    try:
        return [i.chained(k) for i in found]
    except ValueError as error:
        raise UnreadableError(str(error)) from None


def traced(instruction: Instruction, codes: Sequence[Sequence[int]]) -> tuple[int, list[NumberedStep]]:
    """The code of d and the steps that made it, of codes of a, b, c and block scales."""
    spec = instruction.spec
    a, b, (c,), scale_a, scale_b = codes
    trace = executable.dot_add(spec, a, b, c, scale_a, scale_b)
    numbers = [range(step, step + 1) for step in range(len(trace.steps))]
    return operand_code(trace.result, spec.d_format), numbered_steps(spec, trace, c, numbers, spec.taken)


def _operands(instruction: Instruction, asked: Mapping[str, Sequence[str]]) -> list[list[ReadOperand]]:
    """Read what is typed for each side, +0 where nothing is.  Raises UnreadableError."""
    read_sides, error = _read(instruction, asked)
    if error:
        raise UnreadableError(error)
    return read_sides


def _read(
    instruction: Instruction, asked: Mapping[str, Sequence[str]]
) -> tuple[list[list[ReadOperand]], str]:
    """Read what is typed for each side, +0 where nothing is; of what cannot be read +0, and the first reason."""
    spec, read_sides, error = instruction.spec, [], ""
    for side in SIDES:
        scales = spec.scales if spec.scale_format is not None else 0
        count = 1 if side == "c" else scales if side.startswith("scale") else spec.k
        words = [*asked.get(side, ())]
        if any(words[count:]):
            error = error or f"{side} has {count} places, not {len(words)}"
        operands = []
        for place, word in enumerate([*words, *[""] * count][:count]):
            try:
                operands.append(typed_code(word, instruction.format_of(side)))
            except UnreadableError as why:
                error = error or f"{side}[{place}]: {why}"
                operands.append(typed_code("", instruction.format_of(side)))
        read_sides.append(operands)
    return read_sides, error


def _told(operand: ReadOperand, fmt: Format) -> dict[str, object]:
    text = code_text(operand.code, fmt)
    return {
        "code": text.split()[0],
        "text": text.split(maxsplit=1)[1],
        "bits": code_bits(operand.code, fmt),
        "note": operand.note,
    }


def _evaluated(labels: Sequence[str], asked: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """Return what units make of what is typed, side by side.  Raises UnreadableError."""
    units = instructions_called(labels)
    first = units[0]
    operands = _operands(first, asked)
    codes = [[each.code for each in side] for side in operands]
    a, b, (c,), scale_a, scale_b = codes
    made = [traced(i, codes) for i in units]
    busy = foldable([steps for _, steps in made])
    together = len({len(steps) for steps in busy}) == 1
    tables, parts = side_by_side(busy) if together else ([], "they do not add the same terms in one step")
    results = []
    for i, (d, steps), shown in zip(units, made, busy, strict=True):
        exact = exact_dot_add(i.spec, a, b, c, scale_a, scale_b)
        results.append(
            {
                "label": i.label,
                "model": str(i),
                **_told(ReadOperand(d), i.d_format),
                "exact": "" if exact is None else number_text(exact),
                "alignment": drawn_steps(steps),
                "tables": [] if together else side_by_side([shown])[0],
            }
        )
    return {**_inputs(first, operands), "units": results, "tables": tables, "parts": parts}


def _inputs(first: Instruction, operands: Sequence[Sequence[ReadOperand]]) -> dict[str, object]:
    """Return what was read, as it is shown."""
    formats = {side: first.format_of(side) for side, each in zip(SIDES, operands, strict=True) if each}
    return {
        "k": first.k,
        "formats": {side: str(fmt) for side, fmt in formats.items()},
        "operands": {
            side: [_told(x, formats[side]) for x in each]
            for side, each in zip(SIDES, operands, strict=True)
            if each
        },
    }


def answer(request: str) -> str:
    """The answer to a request, both JSON: units and words of each side; an `error` where it makes no sense.

    Beside an error about one operand the others are told as they were read.
    """
    asked = json.loads(request)
    sides = {side: [str(word) for word in asked.get(side, ())] for side in SIDES}
    try:
        return json.dumps(_evaluated(asked["units"], sides), ensure_ascii=False)
    except UnreadableError as error:
        told: dict[str, object] = {"error": str(error)}
        with suppress(UnreadableError):
            first = instructions_called(asked["units"])[0]
            told |= _inputs(first, _read(first, sides)[0])
        return json.dumps(told, ensure_ascii=False)
