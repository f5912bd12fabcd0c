"""Is d(−a, b, −c) = −d(a, b, c)?

It is where rounding does not know up from down, and fails where something is rounded toward −∞ (cdna3); of an unsigned
a, a format of P3109, it is no question.  The sign of
a zero result is left open, since a sum of exactly zero is +0 for either sign, and NaNs have none to speak of.
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.cases.codes import CodeOrFact, either, same_number, select
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.relations import CaseT, Relation
from mmaformal.facts.related import argue_related
from mmaformal.facts.settling import settle
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.related_runs import Opposite, Pairing, Runs
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def _negative(code: CodeOrFact, fmt: Format) -> CodeOrFact:
    """The code of −x; where there is no −0, zero is its own, and so is the NaN that has its code."""
    if fmt.has_minus_zero:
        return code ^ fmt.sign_mask
    return select(either(code == 0, code == fmt.sign_mask), code, code ^ fmt.sign_mask)


def relation_negated(spec: DotAdd) -> Relation:
    d = spec.d_format

    def image(x: CaseT) -> CaseT:
        return replace(
            x, a=tuple(_negative(code, spec.a_format) for code in x.a), c=_negative(x.c, spec.c_format)
        )

    return Relation(spec, spec, image, lambda x, y: same_number(_negative(x, d), y, d), "A and c negated")


def argue_negated(relation: Relation) -> Pairing:
    pairing, spec, inputs = Pairing(), relation.left, symbolic_inputs(relation.left)
    left, right = relation.traces(inputs)
    runs = Runs(Opposite(), spec, spec, left, right, range(spec.k))
    c = Opposite().code(inputs.c, _negative(inputs.c, spec.c_format), spec.c_format)
    pairing.derive("inputs", "the second run reads the negated c", [c], inputs=[inputs.c])
    return argue_related(
        runs, c, "the results are opposite, or both zero, or both NaN", pairing, (left.result, right.result)
    )


def _answer(instruction: Instruction, asker: Asker) -> Answer:
    question = f"{instruction.label}: d(−a, b, −c) = −d(a, b, c), the signs of zeros and NaNs aside"
    if not instruction.a_format.signed:
        return Unknown(question, f"{instruction.a_format} has no −a", (), asker.elapsed)
    each = relation_negated(instruction.spec)
    return settle(instruction, asker, question, [each], lambda: [argue_negated(each)])


PROPERTY = Property("sign-symmetry", "d(−a, b, −c) = −d(a, b, c), the signs of zeros and NaNs aside", _answer)
