"""Which codes can come out?

- No finite input gives a NaN.  It fails where products or sums overflow and then meet.
- The result is never −0.
- Every number of d's format but −0, and both infinities, is the result of some input.  Mostly c alone gives them all;
  where it does not, a code is shown that no input gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import z3

from mmaformal.cases.codes import CodeOrFact, Fact, both, is_finite, is_nan, negation
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.relations import CaseT, Condition, Relation
from mmaformal.display import HtmlText, counted, short_text
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.facts.settling import settle
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import ArgumentError, Link, NotProvedError, prove
from mmaformal.proof.related_runs import Pairing
from mmaformal.queries.property import Property
from mmaformal.shown_stages import code_text
from mmaformal.solver.answers import Answer, Fails, Holds, Obligation, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def _runs(spec: DotAdd, related: Callable[[CodeOrFact], Fact], allowed: Condition) -> Relation:
    return Relation(spec, spec, None, lambda x, _: related(x), "", allowed)


def all_finite(spec: DotAdd) -> Condition:
    def allowed(x: CaseT) -> Fact:
        facts = [is_finite(code, spec.a_format) for code in x.a]
        facts += [is_finite(code, spec.b_format) for code in x.b]
        facts.append(is_finite(x.c, spec.c_format))
        if spec.scale_format is not None:
            facts += [is_finite(code, spec.scale_format) for code in (*x.scale_a, *x.scale_b)]
        return both(*facts)

    return allowed


# ---- no NaN ------------------------------------------------------------------------------------------------------


def argue_no_nan(spec: DotAdd) -> Pairing:
    """Argue that no finite input gives a NaN."""
    pairing, inputs, facts = Pairing(), symbolic_inputs(spec), facts_of(spec)
    assumed: dict[int, Link] = {}
    sides = [(inputs.a, spec.a_format), (inputs.b, spec.b_format)]
    if spec.scale_format is not None:
        sides += [(inputs.scale_a, spec.scale_format), (inputs.scale_b, spec.scale_format)]
    for codes, fmt in sides:
        for code in codes:
            assumed[code.get_id()] = pairing.assume("inputs are finite", Link(is_finite(code, fmt), ()))
    finite_c = pairing.assume("inputs are finite", Link(is_finite(inputs.c, spec.c_format), (inputs.c,)))
    c_code = inputs.c
    c = Link(z3.Not(is_nan(c_code, spec.c_format)), (c_code,))
    pairing.derive("decode", "a finite c is no NaN", [c], [finite_c])
    given = finite_c
    for step in smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).steps:
        c = given = facts.no_nan(pairing, spec, step, assumed, c, given)
    pairing.conclude("the result is no NaN", c)
    return pairing


def relation_no_nan(spec: DotAdd) -> Relation:
    return _runs(spec, lambda d: negation(is_nan(d, spec.d_format)), all_finite(spec))


def answer_no_nan(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} gives no NaN for finite inputs"
    return settle(instruction, asker, question, [relation_no_nan(spec)], lambda: [argue_no_nan(spec)])


# ---- never −0 ----------------------------------------------------------------------------------------------------


def never_minus_zero(spec: DotAdd) -> Pairing:
    """Argue that no result is −0: of the last step, whatever its c (of gps: whatever c that is no −0 and no subnormal).

    Where ρ keeps the sign of a zero, a nonzero sum must not be rounded to zero: its last place is at least the least
    subnormal's, or it is a multiple of that.
    """
    pairing, x = Pairing(), symbolic_inputs(spec)
    steps = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps
    link = facts_of(spec).never_minus_zero(pairing, spec, steps, x.c)
    pairing.conclude("the result is not −0", link)
    return pairing


def relation_minus_zero(spec: DotAdd) -> Relation:
    return _runs(spec, lambda d: d != spec.d_format.sign_mask, lambda _: True)


def answer_minus_zero(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} never gives −0"
    relation = relation_minus_zero(spec)
    return settle(instruction, asker, question, [relation], lambda: [never_minus_zero(spec)])


# ---- every number ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Unreachable(HtmlText):
    """A code that no input gives, and the proof of it."""

    instruction: Instruction
    code: int
    what: str  #: what every result is instead
    obligations: tuple[Obligation, ...]

    @property
    def summary(self) -> str:
        d = self.instruction.d_format
        return f"nothing gives {self.code:#x} = {d.text(self.code)}: {self.what}"

    def to_json(self) -> dict[str, object]:
        return {
            "instruction": self.instruction.label,
            "unreachable": hex(self.code),
            "because": self.what,
            "obligations": [each.to_json() for each in self.obligations],
        }

    def __str__(self) -> str:
        lines = [
            "no input gives",
            "  d".ljust(14) + code_text(self.code, self.instruction.d_format),
            self.what,
        ]
        return "\n".join([*lines, f"proved: {counted(len(self.obligations), 'obligation')}"])

    def __repr__(self) -> str:
        return short_text(self, self.instruction.label, self.summary)


def passes_c_on(spec: DotAdd) -> Pairing:
    """Argue that with products that are +0 in the exact sum (and scales 1) the result is c, or −c where that is in the
    sum, for every c but NaNs and the one that gives −0."""
    if spec.c_format != spec.d_format:
        raise ArgumentError(f"c is {spec.c_format}, d is {spec.d_format}")
    pairing, fmt = Pairing(), spec.d_format
    c = z3.BitVec("c", fmt.storage_bits)
    zero = 0 if spec.product_sign > 0 else spec.a_format.sign_mask
    a, b = z3.BitVecVal(zero, spec.a_format.storage_bits), z3.BitVecVal(0, spec.b_format.storage_bits)
    scales: list[z3.BitVecRef] = []
    if (scale := spec.scale_format) is not None:
        scales = [z3.BitVecVal(scale.bias << scale.fraction_bits, scale.storage_bits)] * spec.scales
    trace = smt.dot_add(spec, [a] * spec.k, [b] * spec.k, c, scales, scales)
    if spec.is_signed:
        return _passes_on(pairing, spec, c, trace.result)
    number = Link(z3.And(z3.Not(is_nan(c, fmt)), c != fmt.sign_mask), (c,))
    pairing.assume("c is neither a NaN nor −0", number)
    given = [number]
    for step in trace.steps:
        link = Link(step.result == c, (), ((step.result, c),))
        pairing.derive("identity", "a step whose products are +0·+0 gives back its c", [link], given)
        given = [number, link]
    pairing.conclude("the result is c", link)
    return pairing


def _passes_on(pairing: Pairing, spec: DotAdd, c: z3.BitVecRef, result: z3.BitVecRef) -> Pairing:
    """Argue that a unit that changes signs gives back c, or −c, for products that are +0 in the sum."""
    if not spec.reads_c:
        raise ArgumentError("c is not read")
    fmt = spec.d_format
    wanted = c if spec.c_sign > 0 else c ^ fmt.sign_mask
    number = Link(z3.And(z3.Not(is_nan(c, fmt)), wanted != fmt.sign_mask), (c,))
    pairing.assume("c is neither a NaN nor the zero that is −0 in the sum", number)
    link = Link(result == wanted, (), ((result, wanted),))
    pairing.derive("identity", "products that are +0 in the sum give back c, or −c", [link], [number])
    pairing.conclude("the result is c, or −c", link)
    return pairing


def passes_factor_on(spec: DotAdd) -> Pairing:
    """Argue that a unit of one product that does not read c gives back a, for b = 1, of a that are no NaNs."""
    if spec.reads_c or spec.k != 1 or spec.a_format != spec.d_format or spec.product_sign < 0:
        raise ArgumentError("it is no product of one format")
    pairing, fmt = Pairing(), spec.d_format
    a, one = z3.BitVec("a", fmt.storage_bits), z3.BitVecVal(fmt.bias << fmt.fraction_bits, fmt.storage_bits)
    number = pairing.assume("a is no NaN", Link(z3.Not(is_nan(a, fmt)), (a,)))
    d = smt.dot_add(spec, [a], [one], z3.BitVecVal(0, fmt.storage_bits)).result
    link = Link(d == a, (), ((d, a),))
    pairing.derive("identity", "a·1 is a", [link], [number])
    pairing.conclude("the result is a", link)
    return pairing


def exact_sums(spec: DotAdd, asker: Asker) -> Proof:
    """The proof that every number is the exact sum of some input, and d that, rounded.  Raises NotProvedError or
    ArgumentError."""
    facts, proving = facts_of(spec), Composing(asker)
    proving.rests_on(facts.every_exact_sum(spec))
    a, b, c = (
        [z3.BitVecVal(0, fmt.storage_bits)] * count
        for fmt, count in ((spec.a_format, spec.k), (spec.b_format, spec.k), (spec.c_format, 1))
    )
    proving.claim("zero", "products +0·+0 give +0", smt.dot_add(spec, a, b, c[0]).result == 0)
    for sign, text in ((0, "∞"), (1, "−∞")):
        factor, wanted = (
            0 if fmt.infinity is None else fmt.infinity | sign * fmt.sign_mask
            for fmt in (spec.a_format, spec.d_format)
        )
        if not factor or not wanted:
            raise ArgumentError("a or d has no infinities")
        one = z3.BitVecVal(spec.b_format.bias << spec.b_format.fraction_bits, spec.b_format.storage_bits)
        infinite = z3.BitVecVal(factor, spec.a_format.storage_bits)
        d = smt.dot_add(spec, [infinite, *a[1:]], [one, *b[1:]], c[0]).result
        proving.claim("infinity", f"{text}·1 gives {text}", d == wanted)
    facts.rounds_exact_sum(proving, spec)
    return proving.proof()


def answer_every_number(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} gives every number of {spec.d_format} but −0, and both infinities, for some input"
    why = []
    for passes_on in (passes_c_on, passes_factor_on) if spec.is_signed else (passes_c_on,):
        try:
            return Holds(question, prove(asker, passes_on(spec)), asker.elapsed)
        except (NotProvedError, ArgumentError) as error:
            why.append(str(error))
    try:
        return Holds(question, exact_sums(spec, asker), asker.elapsed)
    except (NotProvedError, ArgumentError) as error:
        why.append(str(error))
    for way in facts_of(spec).unreachable:
        try:
            pairing, code, text = way(spec)
            proof = prove(asker, pairing)
        except (NotProvedError, ArgumentError) as error:
            why.append(str(error))
            continue
        witness = Unreachable(instruction, code, text, proof.obligations)
        return Fails(question, witness, f"Not so: {witness.summary}.", asker.elapsed)
    return Unknown(question, "; ".join(why), tuple(asker.proved), asker.elapsed)


NO_NAN = Property("no-nan-from-finite", "no finite input gives a NaN", answer_no_nan)
NEVER_MINUS_ZERO = Property("never-minus-zero", "the result is never −0", answer_minus_zero)
EVERY_NUMBER = Property(
    "every-number",
    "every number of d's format but −0, and both infinities, is the result of some input",
    answer_every_number,
)
