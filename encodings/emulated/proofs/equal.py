"""Why both encodings' steps of an emulation give the same code.

Words, what they leave, scalings and the last sums are codes, each linked from that of the code before; in between are
traces of the unit, whose own facts derive that their results are the same, from the links of the words.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import executable as executable_emulated
from mmaformal.encodings.emulated import smt as smt_emulated
from mmaformal.encodings.executable.blocks import AnyStep as ExecutableStep
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.smt import Trace as SmtTrace
from mmaformal.facts.registry import facts_of
from mmaformal.lanes import Lane
from mmaformal.proof.encoding_links import CodeLinks, InnerTraces, add_codes, inputs, same_code
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.rounding import IEEE_FP32


def derive(argument: Argument, traces: Traces[smt_emulated.EmulatedStep]) -> None:
    p = traces.spec.parameters
    assert isinstance(p, Emulated)
    a, b, c, *_ = inputs(argument, traces)
    size = p.step_products
    for n, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_emulated.EmulatedStep)
        some = slice(n * size, (n + 1) * size)
        tops = [
            common_exponent(argument, links[some], mine, other)
            for links, mine, other in zip((a, b), executable.commons, smt.commons, strict=False)
        ]
        x, y = (
            [
                words(argument, p, [link, *top], mine, other, narrower)
                for link, mine, other in zip(links[some], *both, strict=True)
            ]
            for links, both, top, narrower in (
                (a, (executable.a, smt.a), tops[:1], traces.spec.a_format != p.unit.a_format),
                (b, (executable.b, smt.b), tops[1:], traces.spec.b_format != p.unit.b_format),
            )
        )
        done = 0
        for part in p.parts:
            each = part.every or p.blocks
            for first in range(0, p.blocks, each):
                blocks = range(first, min(first + each, p.blocks))
                pairs = [(block, *pair) for block in blocks for pair in part.products]
                c = run(argument, traces, pairs, (x, y), c, tops, executable.runs[done], smt.runs[done])
                done += 1


def common_exponent(
    argument: Argument,
    codes: Sequence[Link],
    executable: executable_emulated.Common,
    smt: smt_emulated.Common,
) -> Link:
    """The link of the largest exponent field."""
    links: list[Link] = []
    for code, lane, field in zip(codes, executable.fields, smt.fields, strict=True):
        text = "exponent fields of equal codes are equal"
        links += argument.derive("common", text, [number(lane, field)], [code])
    largest, _ = argument.largest("common", "exponent fields", executable.largest, smt.largest, links, 0)
    return largest


def _converted(argument: Argument, what: str, lane: Lane, code: z3.BitVecRef, *given: Link) -> Link:
    """The link of a code that is made of another one, and maybe an exponent."""
    return argument.derive("words", what, [same_code(lane, code)], given)[0]


def words(
    argument: Argument,
    p: Emulated,
    factor: Sequence[Link],
    executable: executable_emulated.Words,
    smt: smt_emulated.Words,
    converted: bool = False,
) -> list[Link]:
    """The links of a factor's words, from its own, and that of the exponent in common if there is one.

    `converted`: whether its format is narrower than its word's.
    """
    left, *common = factor
    if p.rounding is None:
        if not converted:
            return [left]
        what = "factors of a narrower format are converted alike"
        return [_converted(argument, what, executable.codes[0], smt.codes[0], left)]
    if smt.aligned is not None:
        text = "factors are scaled by the exponent in common alike"
        left = _converted(argument, text, executable.aligned, smt.aligned, left, *common)
    what = f"{p.rounding}: words of equal codes are equal"
    links: list[Link] = []
    for n, (mine, other) in enumerate(zip(executable.codes, smt.codes, strict=True)):
        if n:
            rest, same = executable.rests[n - 1], smt.rests[n - 1]
            minus = _converted(
                argument, "words are widened and negated alike", rest.minus, same.minus, links[-1]
            )
            left = add_codes(argument, [left, minus], rest.subtraction, same.subtraction, IEEE_FP32)
            if p.shift:
                text = f"what is left is scaled by 2^{p.shift} alike"
                left = _converted(argument, text, rest.scaled, same.scaled, left)
        integer = left
        for each, alike in zip(executable.wholes[n : n + 1], smt.wholes[n : n + 1], strict=True):
            integer = add_codes(argument, [integer], each.up, alike.up, IEEE_FP32)
            integer = add_codes(argument, [integer], each.down, alike.down, IEEE_FP32)
        links.append(_converted(argument, what, mine, other, integer))
    return links


def run(
    argument: Argument,
    traces: Traces[smt_emulated.EmulatedStep],
    pairs: Sequence[tuple[int, int, int]],
    factors: tuple[Sequence[Sequence[Link]], Sequence[Sequence[Link]]],
    total: Link,
    tops: Sequence[Link],
    executable: executable_emulated.Run,
    smt: smt_emulated.Run,
) -> Link:
    """The link of the total after one sum; `pairs` are the blocks and words that its chain takes."""
    p, partial = traces.spec.parameters, total
    assert isinstance(p, Emulated)
    if executable.addition is not None:
        begin = same_code(executable.start, smt.start)
        (partial,) = argument.derive("inputs", "both encodings begin at zero", [begin])
    for (block, i, j), mine, other in zip(pairs, executable.chain, smt.chain, strict=True):
        some = range(block * p.unit.k, (block + 1) * p.unit.k)
        x, y = ([side[k][word] for k in some] for side, word in zip(factors, (i, j), strict=True))
        partial = of_unit(argument, traces, CodeLinks(x, y, partial, [], []), mine, other)
    if executable.addition is None:
        return partial
    assert smt.addition is not None
    if executable.scaled is not executable.chain[-1].result:
        partial = _converted(argument, "sums are scaled alike", executable.scaled, smt.scaled, partial, *tops)
    return add_codes(argument, [total, partial], executable.addition, smt.addition, IEEE_FP32)


def of_unit(
    argument: Argument,
    traces: Traces[smt_emulated.EmulatedStep],
    links: CodeLinks,
    executable: Trace[ExecutableStep],
    smt: SmtTrace[AnyStep],
) -> Link:
    """The link of a result of the unit, as its own facts derive it from those of its operands."""
    assert isinstance(traces.spec.parameters, Emulated)
    unit = traces.spec.parameters.unit
    a, b = ([side[k] for k in unit.taken] for side in (links.a, links.b))
    links = links._replace(a=a, b=b)
    inner = InnerTraces(unit.in_order, traces.inputs, traces.lanes, executable, smt, links)
    facts_of(unit).equal(argument, inner)
    return same_code(executable.result, smt.result)
