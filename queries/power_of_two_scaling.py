"""Is d(2a, b, 2c) = 2·d(a, b, c), within range?

Within range means: b and the scales are finite; every a_k and c that is not zero is a normal number, before and after
doubling; and every step's result that is not zero is finite and above the least normal number, before and after.  (The
least normal number itself may be rounded up from below, where the last place does not follow the exponent.)  Steps
are also the inner ones of a lowered instruction.  By induction it is so for every power of two all of whose steps stay
within range.

What doubles: each nonzero term's exponent goes up by one and its significand stays; zero terms keep theirs.  Either
the largest exponent goes up by one: then shifts, aligned terms and sum are the same.  Or it is one that zeros have, in
both runs: then the sum is zero, or so small that it is cut at the least exponent, where rounding still doubles.  So at
every stage that aligns (`proof/scaling`).  It fails where a product is flushed (gps on bf16), and in gdfs, whose
groups take their exponents from the scales: those of products stay where c's goes up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import z3

from mmaformal.cases.codes import CodeOrFact, Fact, both, is_finite, same_code
from mmaformal.cases.inputs import Columns, Inputs, Rows, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.relations import CaseT, Image, Relation
from mmaformal.cases.run import codes_in_lane, run_trace
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.facts.settling import fails, settle
from mmaformal.instruction import Instruction
from mmaformal.proof import doubled_stages
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.scaling import double_of, doubles, same_double, well_inside
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def _image_of(spec: DotAdd) -> Image:
    def image(x: CaseT) -> CaseT:
        return replace(
            x, a=tuple(double_of(code, spec.a_format) for code in x.a), c=double_of(x.c, spec.c_format)
        )

    return image


def results_of_steps(spec: DotAdd, x: Columns | Inputs) -> list[CodeOrFact]:
    """The codes of all steps' results, those of inner steps among them: a lowered instruction's, esda's exact sum."""
    if isinstance(x, Inputs):
        return _of_steps(smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps)
    return [codes_in_lane(step.result, spec.d_format) for step in run_trace(spec, x).steps]


def _of_steps(steps: Sequence[AnyStep]) -> list[z3.BitVecRef]:
    return [each.result for step in steps for each in (*_inner(step), step)]


def _inner(step: AnyStep) -> tuple[AnyStep, ...]:
    inner: tuple[AnyStep, ...] | AnyStep = getattr(step, "inner", ())
    return inner if isinstance(inner, tuple) else (inner,)


def relation_doubled(spec: DotAdd) -> Relation:
    d, image = spec.d_format, _image_of(spec)

    def allowed(x: CaseT) -> Fact:
        facts = [doubles(code, spec.a_format) for code in x.a]
        facts += [is_finite(code, spec.b_format) for code in x.b]
        if spec.scale_format is not None:
            facts += [is_finite(code, spec.scale_format) for code in (*x.scale_a, *x.scale_b)]
        facts.append(doubles(x.c, spec.c_format))
        for run in (x, image(x)):
            facts += [well_inside(code, d) for code in results_of_steps(spec, run)]
        return both(*facts)

    return Relation(
        spec, spec, image, lambda x, y: same_code(double_of(x, d), y, d), "A and c doubled", allowed
    )


# ---- the argument ------------------------------------------------------------------------------------------------


def argue_doubled(spec: DotAdd) -> Pairing:
    pairing, inputs = Pairing(), symbolic_inputs(spec)
    image = _image_of(spec)(inputs)
    assumed = {}
    for codes, fmt, fact, what in (
        (inputs.a, spec.a_format, doubles, "every a is zero, or normal and so is its double"),
        (inputs.b, spec.b_format, is_finite, "b and the scales are finite"),
        (inputs.scale_a, spec.scale_format, is_finite, "b and the scales are finite"),
        (inputs.scale_b, spec.scale_format, is_finite, "b and the scales are finite"),
    ):
        for code in codes:
            assert fmt is not None
            assumed[code.get_id()] = pairing.assume(what, Link(fact(code, fmt), ()))
    c = same_double(inputs.c, image.c, spec.c_format)
    fits = pairing.assume(
        "c is zero, or normal and so is its double", Link(doubles(inputs.c, spec.c_format), ())
    )
    pairing.derive("inputs", "the second run reads the doubled c", [c], [fits], [inputs.c])
    first, second = (smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b) for x in (inputs, image))
    _doubled(pairing, spec, (first, second), (inputs.c, image.c, c), assumed)
    result = same_double(first.result, second.result, spec.d_format)
    pairing.conclude("the second result is the double of the first", result)
    return pairing


def _doubled(
    pairing: Pairing,
    spec: DotAdd,
    traces: tuple[smt.Trace[AnyStep], smt.Trace[AnyStep]],
    codes: tuple[z3.BitVecRef, z3.BitVecRef, Link],
    assumed: Mapping[int, Link],
) -> None:
    """Derives, stage by stage, that results double, from both c and their link: also through changes of signs."""
    (first, second), (left, right, c) = traces, codes
    if first.inner is not None and second.inner is not None:
        x, y, text = first.inner, second.inner, "a double with its sign changed is the double still"
        start = same_double(x.c, y.c, spec.c_format)
        if not x.c.eq(left):
            pairing.derive("signs", text, [start], [c] if spec.reads_c else [])
        within = replace(first, inner=None), replace(second, inner=None)
        _doubled(pairing, spec.plain, within, (x.c, y.c, start), assumed)
        if "d" in spec.negated:
            given = same_double(x.result, y.result, spec.d_format)
            pairing.derive("signs", text, [same_double(first.result, second.result, spec.d_format)], [given])
        return
    facts, results = facts_of(spec), _of_steps([*first.steps, *second.steps])
    stages = facts.stages(spec, first, left), facts.stages(spec, second, right)
    doubled_stages.link_doubled_runs(pairing, stages, (left, c), assumed, results, facts.doubled_links)


def settle_scaling(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label}: d(2a, b, 2c) = 2·d(a, b, c), within range"
    each = relation_doubled(spec)
    codes = facts_of(spec).scaling_breaker(spec)
    if codes is not None and each.runs(Rows.of([codes]))[2][0]:
        return fails(instruction, asker, question, each, codes)
    return settle(instruction, asker, question, [each], lambda: [argue_doubled(spec)])


PROPERTY = Property(
    "power-of-two-scaling",
    "d(2a, b, 2c) = 2·d(a, b, c) within range: b finite; a, c, 2a, 2c zero or normal; both runs' step results zero or "
    "finite and above the least normal number",
    settle_scaling,
)
