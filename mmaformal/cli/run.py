"""`mmaformal run`."""

from __future__ import annotations

import json

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered
from mmaformal.display import counted
from mmaformal.formats import Format


@click.command()
@options.arch()
@options.name()
@click.option("--a", required=True, metavar="A0,A1,…")
@click.option("--b", required=True, metavar="B0,B1,…")
@click.option("--c", default="0", metavar="C", help="Default 0.")
@click.option("--scale-a", metavar="S0,…", help="Block scales of a, for instructions that take them.")
@click.option("--scale-b", metavar="S0,…", help="Block scales of b.")
@click.option("--pad", is_flag=True, help="Fill missing positions with +0.")
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
    chain: int | None,
    changes: tuple[options.Change, ...],
    verbose: bool,
    as_json: bool,
) -> int:
    """Evaluate one dot product-add, c + Σ a·b, stage by stage.

    Inputs are comma-separated: bit patterns as 0x…, numbers as decimals (or inf, nan) that the format holds exactly.
    """
    from mmaformal.explain import code_text, exact_dot_add, explain_case, number_text

    i = options.instruction_of(arch, name, changes, chain)
    spec = i.spec
    a_codes = _codes(a, spec.a_format, i.k, "--a", pad)
    b_codes = _codes(b, spec.b_format, i.k, "--b", pad)
    c_code = _codes(c, spec.c_format, 1, "--c", False)[0]
    scales: list[list[int]] = []
    if spec.scale_format is not None:
        for what, text in (("--scale-a", scale_a), ("--scale-b", scale_b)):
            if text is None:
                raise UsageError(
                    f"{i.label} needs {what}: {counted(spec.scales, f'{spec.scale_format} value')}"
                )
            scales.append(_codes(text, spec.scale_format, spec.scales, what, False))
    elif scale_a or scale_b:
        raise UsageError(f"{i.label} takes no block scales")
    d = int(i.dot_add(a_codes, b_codes, c_code, *scales))
    if as_json:
        told = {"instruction": i.name, "architecture": i.architecture, "d": f"{d:#x}"}
        return answered(json.dumps(told), SETTLED)
    lines = [str(i), explain_case(i, a_codes, b_codes, c_code, *scales, whole=verbose)]
    exact = exact_dot_add(spec, a_codes, b_codes, c_code, *scales)
    if exact is not None:
        lines.append(f"exact:  {number_text(exact)}")
    lines.append(f"d:      {code_text(d, spec.d_format)}")
    return answered("\n".join(lines), SETTLED)


def _codes(text: str, fmt: Format, count: int, what: str, pad: bool) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if len(words) > count or (len(words) < count and not pad):
        hint = "; --pad fills the rest with +0" if len(words) < count and what in ("--a", "--b") else ""
        raise UsageError(f"{what} needs {counted(count, 'value')}, not {len(words)}{hint}")
    return [_code(word, fmt, what) for word in words] + [0] * (count - len(words))


def _code(word: str, fmt: Format, what: str) -> int:
    hexadecimal = word.lower().startswith("0x") and "p" not in word.lower()
    try:
        code = int(word, 16) if hexadecimal else fmt.code(word)
        fmt.fields(code)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None
    return code
