"""`mmaformal run`."""

from __future__ import annotations

import json
from typing import TypeAlias

import click
import numpy as np

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered
from mmaformal.cli.terminal import width
from mmaformal.display import clipped, counted
from mmaformal.formats import Format
from mmaformal.instruction import Instruction

#: The arguments of one dot product-add after the instruction: codes of a, b, c and block scales.
RunArguments: TypeAlias = tuple[list[int], list[int], int, *tuple[list[int], ...]]


@click.command()
@options.arch()
@options.name()
@click.option("--a", required=True, metavar="A0,A1,…")
@click.option("--b", required=True, metavar="B0,B1,…")
@click.option("--c", default="0", metavar="C", help="Default 0.")
@click.option("--scale-a", metavar="S0,…", help="Block scales of a, for instructions that take them.")
@click.option("--scale-b", metavar="S0,…", help="Block scales of b.")
@click.option("--pad", is_flag=True, help="Fill missing positions with +0.")
@click.option(
    "--bits", is_flag=True, help="Draw the bits: sign, exponent, fraction, and what alignment cuts off."
)
@options.chain
@options.replace
@options.model
@options.verbose
@options.json
def run(
    arch: Architecture,
    name: str,
    a: str,
    b: str,
    c: str,
    scale_a: str | None,
    scale_b: str | None,
    pad: bool,
    bits: bool,
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    verbose: bool,
    as_json: bool,
) -> int:
    """Evaluate one dot product-add, c + Σ a·b, stage by stage.

    Inputs are comma-separated: bit patterns as 0x…, numbers as decimals (or inf, nan). A number that the
    format does not have is rounded to the nearest one, with a note.
    """
    i = options.instruction_of(arch, name, changes, chain)
    spec = i.spec
    notes: list[str] = []
    a_codes = _codes(a, spec.a_format, i.k, "--a", pad, notes)
    b_codes = _codes(b, spec.b_format, i.k, "--b", pad, notes)
    c_code = _codes(c, spec.c_format, 1, "--c", False, notes)[0]
    scales: list[list[int]] = []
    if spec.scale_format is not None:
        for what, text in (("--scale-a", scale_a), ("--scale-b", scale_b)):
            if text is None:
                raise UsageError(
                    f"{i.label} needs {what}: {counted(spec.scales, f'{spec.scale_format} value')}"
                )
            scales.append(_codes(text, spec.scale_format, spec.scales, what, False, notes))
    elif scale_a or scale_b:
        raise UsageError(f"{i.label} takes no block scales")
    d = int(
        i.dot_add(
            np.array(a_codes, spec.a_format.word), np.array(b_codes, spec.b_format.word), c_code, *scales
        )
    )
    if as_json:
        told: dict[str, object] = {"instruction": i.name, "architecture": i.architecture, "d": f"{d:#x}"}
        return answered(json.dumps(told | ({"rounded": notes} if notes else {})), SETTLED)
    rounded = [note.replace("; ", "\n  ") for note in notes]
    return answered(
        "\n".join([*rounded, *_told(i, (a_codes, b_codes, c_code, *scales), d, bits, verbose)]), SETTLED
    )


def _told(i: Instruction, case: RunArguments, d: int, bits: bool, whole: bool) -> list[str]:
    """The computation stage by stage, and its bits if they are asked for."""
    from mmaformal.bits import draw_alignment, draw_codes
    from mmaformal.shown_stages import code_text, exact_dot_add, explain_case, number_text

    lines = [str(i)]
    drawn = draw_alignment(i, *case) if bits or width() else ""
    if bits:
        lines.append(draw_codes(i, *case, d=d))
    if drawn and (bits or max(map(len, drawn.splitlines())) <= (width() or 0)):
        lines.append(drawn)
    lines.append(explain_case(i, *case, whole=whole))
    exact = exact_dot_add(i.spec, *case)
    if exact is not None:
        lines.append(f"exact:  {number_text(exact)}")
    return [*lines, f"d:      {code_text(d, i.d_format)}"]


def _codes(text: str, fmt: Format, count: int, what: str, pad: bool, notes: list[str]) -> list[int]:
    """The codes of an option; of each number that was rounded, a line in `notes`."""
    words = [word.strip() for word in text.split(",")]
    if any(len(word.split()) > 1 for word in words):
        raise UsageError(f"{what}: values are separated by commas, not {clipped(repr(text), 40)}")
    if len(words) > count or (len(words) < count and not pad):
        hint = "; --pad fills the rest with +0" if len(words) < count and what in ("--a", "--b") else ""
        raise UsageError(f"{what} needs {counted(count, 'value')}, not {len(words)}{hint}")
    return [_code(word, fmt, what, notes) for word in words] + [0] * (count - len(words))


def _code(word: str, fmt: Format, what: str, notes: list[str]) -> int:
    hexadecimal = word.lower().startswith("0x") and "p" not in word.lower()
    try:
        code = int(word, 16) if hexadecimal else fmt.code(word)
        fmt.fields(code)
        return code
    except ValueError as error:
        if hexadecimal or word.lower().strip("+-") in ("inf", "infinity", "nan"):
            raise UsageError(f"{what}: {error}") from None
        return _rounded(word, fmt, what, notes)


def _rounded(word: str, fmt: Format, what: str, notes: list[str]) -> int:
    """The code of the nearest number, with a note.  Raises UsageError where there is none."""
    from mmaformal.shown_stages import code_text

    try:
        nearest, other = fmt.nearest(word)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None
    note = (
        f"{what}: {word} is not a value of {fmt}; rounded to the nearest: {code_text(nearest, fmt)}; "
        f"its other neighbour: {code_text(other, fmt)}"
    )
    if note not in notes:
        notes.append(note)
    return nearest
