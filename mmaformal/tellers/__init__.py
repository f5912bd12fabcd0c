"""For each algorithm, how a trace of the executable wing is told: `tell` of `renderer` in its folder."""

from __future__ import annotations

from collections.abc import Callable

from mmaformal.encodings import part, with_part
from mmaformal.encodings.executable.blocks import AnyStep, Trace
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import Row, Steps, ToldStep, code_of, code_text

Teller = Callable[[DotAdd, Trace[AnyStep], int], Steps]


def told() -> list[str]:
    """The algorithms that have a teller."""
    return with_part("renderer")


def teller_of(spec: DotAdd) -> Teller:
    """`(spec, trace, code of c)` to the rows of each step."""
    renderer = part(spec.parameters.algorithm, "renderer")
    tell: Teller = _untold if renderer is None else renderer.tell
    return tell


def _untold(spec: DotAdd, trace: Trace[AnyStep], c: int) -> Steps:
    """Of an algorithm that has no teller: the result of each step."""
    codes = [code_of(step.result, spec.d_format) for step in trace.steps]
    return [ToldStep([Row("encode", "d", code_text(code, spec.d_format))]) for code in codes]
