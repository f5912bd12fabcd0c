"""A step of sums by remainders, shown: words, of each modulus the sum of int32, the sum put together, and d."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.executable.limbs import BITS
from mmaformal.encodings.residues import Residues
from mmaformal.encodings.residues import executable as residues
from mmaformal.renderers.rows import Row, ShownStep, Steps, code_text, operand_code, rounded_text
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[residues.ResiduesStep], c: int) -> Steps:
    """Returns the rows of each step."""
    shown: Steps = []
    for n, step in enumerate(trace.steps):
        shown.append(ShownStep([*_rows(spec, step, n * spec.parameters_as(Residues).products, c)]))
        c = operand_code(step.result, spec.d_format)
    return shown


def _rows(spec: DotAdd, step: residues.ResiduesStep, first: int, c: int) -> Iterator[Row]:
    p, fmt = spec.parameters_as(Residues), spec.d_format
    for side, top in zip("ab", step.tops, strict=True):
        yield Row("split", f"every {side}", f"an integer, in units of 2^{int(top) + 1 - p.bits}")
    for k, ((x, y), u, v) in enumerate(zip(step.operands, step.a, step.b, strict=True)):
        if u.magnitude and v.magnitude:
            for side, operand, word in (("a", x, u), ("b", y, v)):
                sign = "-" if operand.sign else ""
                yield Row("split", f"{side}[{first + k}]", f"{sign}{int(word.magnitude)}")
    for modulus, each in zip(p.moduli, step.sums, strict=True):
        text = f"{int(each.total)}, which leaves {int(each.total) % modulus}"
        yield Row("int8", f"Σ remainders of {modulus}", text)
    whole = step.whole
    total = (int(whole.total.high) << BITS) + int(whole.total.low)
    yield Row("join", "Σ words", f"{total}, in units of 2^{int(whole.unit)}")
    dot, result = operand_code(step.dot, fmt), operand_code(step.result, fmt)
    yield Row("round", "Σ a·b", code_text(dot, fmt))
    yield Row(
        "add",
        "c + Σ a·b",
        rounded_text(fmt.value(c) + fmt.value(dot), result, fmt)
        if all(map(fmt.is_finite, (c, dot, result)))
        else code_text(result, fmt),
    )
    yield Row("encode", "d", code_text(result, fmt))
