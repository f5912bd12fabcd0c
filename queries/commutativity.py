"""Does it matter which factor is A's and which is B's?

Where A and B have different formats, the instruction is compared with the one whose formats are exchanged.
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.cases.codes import same_code
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.relations import CaseT, Relation
from mmaformal.facts.related import argue_same
from mmaformal.facts.settling import settle
from mmaformal.instruction import Instruction
from mmaformal.proof.related_runs import Pairing
from mmaformal.queries.property import Property, nans_aside
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def _exchanged(x: CaseT) -> CaseT:
    """Inputs with A and B, and their scales, exchanged."""
    return replace(x, a=x.b, b=x.a, scale_a=x.scale_b, scale_b=x.scale_a)


def relation_exchanged(spec: DotAdd) -> Relation:
    other = spec.replace(a_format=spec.b_format, b_format=spec.a_format)
    return Relation(spec, other, _exchanged, lambda x, y: same_code(x, y, spec.d_format), "A and B exchanged")


def argue_exchanged(relation: Relation) -> Pairing:
    inputs = symbolic_inputs(relation.left)
    return argue_same(relation.left, relation.right, inputs, _exchanged(inputs), range(relation.left.k))


def _answer(instruction: Instruction, asker: Asker) -> Answer:
    question = f"{instruction.label} gives the same code with A and B exchanged"
    if instruction.a_format != instruction.b_format:
        question += ", in their formats too"
    question += nans_aside(instruction.spec)
    each = relation_exchanged(instruction.spec)
    return settle(instruction, asker, question, [each], lambda: [argue_exchanged(each)])


PROPERTY = Property(
    "commutativity",
    "exchanging A and B changes nothing",
    _answer,
    about=lambda spec: (spec, relation_exchanged(spec).right),
    of_integers=True,
)
