"""For each algorithm, how a trace of the executable wing is told: the function `tell` of the module of its name."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from mmaformal.encodings.executable.blocks import AnyStep, Trace
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import Row, Steps, ToldStep, code_of, code_text

Teller = Callable[[DotAdd, Trace[AnyStep], int], Steps]


def told() -> list[str]:
    """The algorithms that have a teller."""
    return [each.name for each in pkgutil.iter_modules(__path__) if each.name != "rows"]


def teller_of(spec: DotAdd) -> Teller:
    """`(spec, trace, code of c)` to the rows of each step."""
    name = spec.parameters.algorithm
    if name not in told():
        return _untold
    tell: Teller = import_module(f"{__name__}.{name}").tell
    return tell


def _untold(spec: DotAdd, trace: Trace[AnyStep], c: int) -> Steps:
    """Of an algorithm that has no teller: the result of each step."""
    codes = [code_of(step.result, spec.d_format) for step in trace.steps]
    return [ToldStep([Row("encode", "d", code_text(code, spec.d_format))]) for code in codes]
