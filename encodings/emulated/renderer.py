"""A step of an emulation, shown: words, what the unit gives for each product of them, and the sums outside of it."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import executable as emulated
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.formats import Format, fp32
from mmaformal.renderers.rows import Row, ShownStep, Steps, code_text, operand_code, sum_text
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[emulated.EmulatedStep], c: int) -> Steps:
    """Returns the rows of each step."""
    p = spec.parameters_as(Emulated)
    shown: Steps = []
    for n, step in enumerate(trace.steps):
        rows = [*_words(spec, p, step, n * p.step_products), *_runs(p, step, c)]
        shown.append(ShownStep([*rows, Row("encode", "d", code_text(operand_code(step.result, fp32), fp32))]))
        c = operand_code(step.result, fp32)
    return shown


def _is_zero(code: int, fmt: Format) -> bool:
    return fmt.is_finite(code) and fmt.value(code) == 0


def _words(spec: DotAdd, p: Emulated, step: emulated.EmulatedStep, first: int) -> Iterator[Row]:
    """The words of the factors whose products are not zero."""
    a, b = p.unit.a_format, p.unit.b_format
    converted = (spec.a_format, spec.b_format) != (a, b)
    if p.rounding is None and not converted:
        return
    for side, common in zip(("a", "b"), step.commons, strict=False):
        shift = p.common + fp32.bias - 1 - common.largest
        yield Row("split", f"every {side}", f"times 2^{shift}: below 2^{p.common}")
    for k, (x, y) in enumerate(zip(step.a, step.b, strict=True)):
        if all(_is_zero(code, fmt) for words, fmt in ((x, a), (y, b)) for code in words.codes):
            continue
        for side, words, fmt in (("a", x, a), ("b", y, b)):
            for i, code in enumerate(words.codes):
                scale = f" · 2^-{p.shift * i}" if p.shift * i else ""
                what = "" if converted else f", word {i}"
                stage = "convert" if converted else "split"
                yield Row(stage, f"{side}[{first + k}]{what}", code_text(code, fmt) + scale)


def _runs(p: Emulated, step: emulated.EmulatedStep, total: int) -> Iterator[Row]:
    """Each result of the unit, and each addition to the total."""
    done = 0
    for part in p.parts:
        each = part.every or p.blocks
        for first in range(0, p.blocks, each):
            run, blocks = step.runs[done], range(first, min(first + each, p.blocks))
            pairs = [(block, *pair) for block in blocks for pair in part.products]
            for (block, i, j), trace in zip(pairs, run.chain, strict=True):
                where = f" of block {block}" if p.blocks > 1 else ""
                label = "c + Σ a·b" if p.rounding is None else f"words {i} of a, {j} of b"
                label += where
                yield Row("unit", label, code_text(operand_code(trace.result, fp32), fp32))
            if run.addition is not None:
                scaled = operand_code(run.scaled, fp32)
                places = part.shift + sum(p.common + fp32.bias - 1 - each.largest for each in step.commons)
                what = f"total + sum · 2^{-places}" if places else "total + sum"
                yield Row("add", what, sum_text(total, scaled, operand_code(run.result, fp32)))
            total, done = operand_code(run.result, fp32), done + 1
