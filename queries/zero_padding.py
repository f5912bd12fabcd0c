"""Does an extra zero product change anything?

Where a block can be one product shorter: a zero product, ±0 times any finite number, at the end of each block gives
what the same instruction gives without it.  Where it cannot (sfma has blocks of one product, gps powers of two), a
further block of zero products is added, whose scales, if it has some, are finite.  There the sign of a zero may change,
as IEEE 754 has it, −0 + +0 = +0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mmaformal.cases.codes import CodeOrFact, Fact, both, either, is_finite, magnitude, same_code, same_number
from mmaformal.cases.inputs import Columns, Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.relations import CaseT, Relation
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.facts.registry import facts_of
from mmaformal.facts.related import argue_related
from mmaformal.facts.settling import settle
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing, Runs, SameButZeroSigns, same
from mmaformal.queries.property import Property, nans_aside
from mmaformal.solver.answers import Answer, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Padding:
    """A longer and a shorter dot product-add, and the products of the longer one that are zero."""

    longer: DotAdd
    shorter: DotAdd
    zeros: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(k for k in range(self.longer.k) if k not in self.zeros)

    def further_scales(self, x: Columns | Inputs) -> list[tuple[CodeOrFact, Format]]:
        """Return the longer one's scales, among its inputs, that the shorter one does not have."""
        n, fmt = self.shorter.scales, self.longer.scale_format
        return [(scale, fmt) for scale in (*x.scale_a[n:], *x.scale_b[n:])] if fmt is not None else []


def padding(spec: DotAdd) -> Padding:
    """The shorter instruction that one is compared with, or the longer one.

    Raises ValueError if there is neither.
    """
    p = spec.parameters
    if (found := p.shorter(spec)) is not None:
        return Padding(spec, *found)
    n = math.lcm(p.step_products, spec.scale_block or 1)
    return Padding(spec.replace(k=spec.k + n), spec, tuple(range(spec.k, spec.k + n)))


def _is_zero_product(spec: DotAdd, a: CodeOrFact, b: CodeOrFact) -> Fact:
    """Whether both factors are finite and one is zero."""
    zero = either(magnitude(a, spec.a_format) == 0, magnitude(b, spec.b_format) == 0)
    return both(zero, is_finite(a, spec.a_format), is_finite(b, spec.b_format))


def relation_padded(pad: Padding) -> Relation:
    longer, d = pad.longer, pad.longer.d_format

    def image(x: CaseT) -> CaseT:
        a, b = (tuple(side[k] for k in pad.kept) for side in (x.a, x.b))
        n = pad.shorter.scales
        return replace(x, a=a, b=b, scale_a=x.scale_a[:n], scale_b=x.scale_b[:n])

    def allowed(x: CaseT) -> Fact:
        zeros = (_is_zero_product(longer, x.a[k], x.b[k]) for k in pad.zeros)
        return both(*zeros, *(is_finite(scale, fmt) for scale, fmt in pad.further_scales(x)))

    further = pad.longer.parameters == pad.shorter.parameters
    related = same_number if further else same_code
    return Relation(
        longer,
        pad.shorter,
        image,
        lambda x, y: related(x, y, d),
        f"without product{'s' if len(pad.zeros) > 1 else ''} " + ", ".join(map(str, pad.zeros)),
        allowed,
    )


def argue_padded(pad: Padding) -> Pairing:
    spec, inputs = pad.longer, symbolic_inputs(pad.longer)
    pairing, each = Pairing(), relation_padded(pad)
    left, right = each.traces(inputs)
    c = pairing.derive("inputs", "both runs read the same c", [same(inputs.c, inputs.c)], inputs=[inputs.c])[
        0
    ]
    dropped = {
        k: pairing.assume(
            "the products dropped are zero", Link(_is_zero_product(spec, inputs.a[k], inputs.b[k]), ())
        )
        for k in pad.zeros
    }
    if pad.longer.parameters != pad.shorter.parameters:
        runs = Runs(
            SameButZeroSigns(),
            spec,
            right_spec=pad.shorter,
            left=left,
            right=right,
            match=pad.kept,
            dropped=dropped,
        )
        return argue_related(runs, c, "the results are equal", pairing, (left.result, right.result))
    return _further_block(pad, inputs, left, right, dropped, pairing)


def _further_block(
    pad: Padding,
    inputs: Inputs,
    left: Trace[AnyStep],
    right: Trace[AnyStep],
    dropped: dict[int, Link],
    pairing: Pairing,
) -> Pairing:
    """A block of zeros more: all steps but the last are the same terms."""
    fmt = pad.longer.d_format
    before = right.result
    code = Link(before == before, (before,))
    pairing.derive("inputs", "both runs are the same up to the further block", [code], inputs=[before])
    given = [code]
    if (known := facts_of(pad.shorter).of_result(right.steps[-1])) is not None:
        flushed = Link(known.of(before), (before,))
        pairing.derive("encode", "a result is flushed", [flushed], inputs=known.made_of)
        given.append(flushed)
    link = Link(same_number(left.result, before, fmt), ())
    zeros = list(dropped.values())
    codes = [x for k in dropped for x in (inputs.a[k], inputs.b[k])]
    for scale, of in pad.further_scales(inputs):
        zeros.append(pairing.assume("the further scales are finite", Link(is_finite(scale, of), ())))
        codes.append(scale)
    pairing.derive(
        "further block", "a block of zero products changes no number", [link], [*given, *zeros], codes
    )
    pairing.conclude("the results are the same number", link)
    return pairing


def _answer(instruction: Instruction, asker: Asker) -> Answer:
    try:
        pad = padding(instruction.spec)
    except ValueError as error:
        question = f"{instruction.label} gives the same with a zero product more"
        return Unknown(question, f"there is nothing to compare it with: {error}", (), asker.elapsed)
    if pad.longer.parameters == pad.shorter.parameters:
        more = "a zero product" if len(pad.zeros) == 1 else f"{len(pad.zeros)} zero products"
        question = f"{instruction.label} gives the same number with {more} more"
    else:
        question = f"{instruction.label} gives the same code without the last product of each block, where it is zero"
    question += nans_aside(instruction.spec)
    return settle(instruction, asker, question, [relation_padded(pad)], lambda: [argue_padded(pad)])


def _about(spec: DotAdd) -> tuple[DotAdd, DotAdd]:
    pad = padding(spec)
    return pad.longer, pad.shorter


PROPERTY = Property(
    "zero-padding", "an extra zero product, ±0 times a finite number, changes nothing", _answer, about=_about
)
