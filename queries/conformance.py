"""Is every result one that RISC-V's standard allows of a dot product of bf16, fp8 or fp32?

    mmaformal prove conformance riscv vfwbdota.vv.n4
    mmaformal prove conformance datapath "fma(k=4, a=fp32)"

Of bf16 and fp8 the standard leaves open how the products are cut into sets, in which order the sets' sums and c are
added, and how much more than fp32 is kept on the way.  Of fp32 it leaves open whether products are rounded, and the
tree of additions.  `queries/standard_units.py` has the set.

`Holds` where the unit is one of the set: the standard's pseudo-code, corrected, of as many products as a step takes,
which is proved of its terms; or a chain of steps each of which is by its definition one of those that the standard
allows, which the proof tells as a rule.  Or where each result is that of one of some members, not of the same for every
input.  `Fails` with the smallest input whose result is none of all those allowed: of smaller ones a solver refuted that
the result is no member's.  Where it is not known which NaN a unit gives, that is left aside.

A design is asked by `signoff --alike standard` (`queries/signoff_standard.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import z3

from mmaformal.analysis.riscv_freedom import NAN
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs, with_products, zeros
from mmaformal.cases.numerical import find_case, shown_exact
from mmaformal.cases.questions import FoundCase, Places
from mmaformal.cases.run import run
from mmaformal.cases.shrink import shrink
from mmaformal.cases.smallest import SmallestSearch, least_from
from mmaformal.cases.symmetries import Symmetries, Zeros, symmetry_classes
from mmaformal.display import counted
from mmaformal.encodings import smt
from mmaformal.encodings.rvbna import Rvbna
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.laws import Laws
from mmaformal.facts.registry import facts_of
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import by_rule, direct
from mmaformal.queries.property import Property
from mmaformal.queries.standard_units import Standard, member
from mmaformal.solver.answers import Answer, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

#: Cases drawn in the search for a result that is not allowed.
_CASES = 600

#: What is not proved of a smallest input: smaller ones are refuted up to these symmetries.
_SYMMETRIC = (
    "the unit's symmetries are proved; that the set of the standard has them is read from its definition"
)

#: The part of the time left in which a case is made smaller, and of that for each question whether fewer products do.
_SHRINKING, _FEWER = 0.9, 0.3


def conforming(spec: DotAdd, standard: Standard, asker: Asker) -> tuple[str, Proof] | None:
    """Returns in words which conforming unit a unit is proved to be, and the proof; None if it is not proved."""
    step = spec.parameters.step_products
    for of in () if standard.is_fp32 else (member(spec, 1 << i) for i in range(spec.k.bit_length())):
        if of != spec and facts_of(of).may_agree(of, spec):
            proof = facts_of(of).prove_agreement(asker, of, spec, symbolic_inputs(spec))
            if proof is not None:
                return _sets_of(spec, of.parameters_as(Rvbna).n), proof
    text = standard.step_of(spec)
    proof = _proved_chain(spec, step, asker) if text else None
    if proof is None:
        return None
    if not standard.is_fp32 and spec == member(spec, step):
        return _sets_of(spec, step), proof
    rule = f"conforming steps: by its definition a step is one that the standard allows: {text}"
    return f"the conforming unit whose steps are: {text}", by_rule(rule, proof)


def _sets_of(spec: DotAdd, size: int) -> str:
    sets = f"{spec.k // size} sets of {size}" if size < spec.k else f"one set of {size}"
    return f"the conforming unit of {sets} products, added to c in this order"


def _proved_chain(spec: DotAdd, size: int, asker: Asker) -> Proof | None:
    """Returns the proof that a unit is a chain of its steps of `size` products, each of which takes the c before it."""
    inputs = symbolic_inputs(spec)
    one, chain = spec.replace(k=size), inputs.c
    for k in range(0, spec.k, size):
        chain = smt.dot_add(one, inputs.a[k : k + size], inputs.b[k : k + size], chain).result
    same = smt.dot_add(spec, inputs.a, inputs.b, inputs.c).result == chain
    text = f"the unit is a chain of its steps, {counted(size, 'product')} each"
    outcome = asker.prove("chain", text, same)
    return direct(outcome) if outcome.verdict == "unsat" else None


class _SmallestOutside(SmallestSearch):
    """The search for the smallest input whose result is not allowed."""

    nothing = "every result is that of a conforming unit"

    def __init__(self, instruction: Instruction, standard: Standard, question: str, asker: Asker) -> None:
        super().__init__(instruction.spec, asker)
        self.instruction, self.standard, self.question = instruction, standard, question
        self.any_nan = not self.spec.nan_is_canonical
        self.simple = () if standard.is_fp32 else (member(self.spec, self.spec.k), member(self.spec, 1))
        self._until = asker.elapsed + asker.left
        self._noted: tuple[int, ...] | None = None

    @property
    def left(self) -> float:
        return min(self._until - self.asker.elapsed, self.asker.left)

    # ---- cases --------------------------------------------------------------------------------------------------

    def breaks(self, codes: Codes, result: int) -> bool:
        """Whether the result of a case is not allowed; what a member gives is."""
        of_a_member = any(run(replace(self.instruction, spec=of), [codes]) == [result] for of in self.simple)
        return not of_a_member and self.standard.is_outside(codes, result, self.any_nan)

    def breaking(self, cases: Sequence[Codes]) -> Iterable[bool]:
        return map(self.breaks, cases, run(self.instruction, cases))

    def drawn(self) -> Codes | None:
        """Returns a case whose result is not allowed: zeros of −0 or with a NaN's payload, or one of those drawn."""
        plain, minus = zeros(self.spec), self.spec.a_format.sign_mask
        payload = NAN | 1 if self.spec.a_format == fp32 else 0
        first = [
            replace(with_products(plain, dict.fromkeys(range(self.spec.k), (minus, 0))), c=fp32.sign_mask)
        ]
        first += [with_products(plain, {0: (payload, 0)})] if payload else []
        for codes, breaks in zip(first, self.breaking(first), strict=True):
            if breaks:
                return codes
        return find_case(self.instruction, self.breaks, count=_CASES)

    # ---- as SmallestSearch has them -----------------------------------------------------------------------------

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        mine = smt.dot_add(self.spec, inputs.a, inputs.b, inputs.c).result
        return self.standard.gives_none(mine, inputs, active, self.any_nan), [mine]

    def is_shown(self, codes: Codes) -> bool:
        return any(self.breaking([codes]))

    def made_smaller(self, codes: Codes) -> Codes:
        return shrink(self.spec, codes, self.breaking)

    def find_licences(self) -> Symmetries:
        """Return what leaves the unit's results as they are.

        The standard's set has every such symmetry by its definition: it knows no order of products or factors, only
        products, and of fp32 the signs of those that are zero.
        """
        laws, spec = Laws(self.asker), self.spec
        known = laws.zeros(spec)
        best: Zeros = (
            "plus" if "plus" in known and not self.standard.is_fp32 else "signed" if known else "any"
        )
        classes = symmetry_classes(spec, spec) if laws.order(spec) else list(range(spec.k))
        exchange = spec.a_format == spec.b_format and laws.exchange(spec)
        return Symmetries(classes, exchange, laws.signs(spec), best)

    def note(self, found: FoundCase) -> None:
        """The answer from now on, if the time is up before a smaller case is found."""
        if self._noted is None or self.size(found) < self._noted:
            self._noted = self.size(found)
            best = self.fails(found, self.nothing_proved(found, "the time given was used up"))
            self.asker.best = lambda: replace(best, seconds=self.asker.elapsed)

    # ---- answers ------------------------------------------------------------------------------------------------

    def smallest(self, codes: Codes) -> Fails:
        """Returns the answer that a case leads to: the smallest that is not allowed, as far as the time goes."""
        self._until = self.asker.elapsed + _SHRINKING * self.asker.left
        found = least_from(self, codes, _FEWER)
        return self.fails(found, self.minimality)

    def fails(self, found: FoundCase, minimality: Sequence[str]) -> Fails:
        """Returns the answer that shows a case.  Raises WitnessError if its result is allowed after all."""
        codes = found.codes
        witness = shown_exact(self.instruction, codes, (), minimality)
        if not self.breaks(codes, witness.results[0]):
            raise WitnessError(
                f"{self.instruction.label}: {codes} was to give what is not allowed, and does not"
            )
        notes = [self.standard.nearest(codes, witness.results[0])]
        if any(line.endswith("proved minimal") for line in minimality):
            notes.append(_SYMMETRIC)
        witness = replace(witness, notes=tuple(notes))
        why = "its result is none of those that the standard allows"
        return Fails(self.question, witness, why, self.asker.elapsed)


def _settle(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label}: every result is one that RISC-V's standard allows"
    try:
        standard = Standard(spec)
    except ValueError as error:
        return Unknown(question, str(error), (), asker.elapsed)
    found = conforming(spec, standard, asker)
    if found is not None:
        of, proof = found
        return Holds(question, proof, asker.elapsed, notes=(f"it is {of}",))
    search = _SmallestOutside(instruction, standard, question, asker)
    codes = search.drawn()
    if codes is not None:
        return search.smallest(codes)
    text = "each result is that of a conforming unit, not of the same for every input"
    outcome, case = search.ask(None, "one of the members", text, whole=True)
    if case is not None:
        return search.smallest(case.codes)
    if outcome.verdict == "unsat":
        holds = Holds(question, direct(outcome), asker.elapsed)
        return of_both_encodings(holds, instruction, standard.members(), asker)
    why = "no input was found whose result is not allowed; that each is of a conforming unit is not settled"
    return Unknown(question, f"{why}: {outcome.why}", tuple(asker.proved), asker.elapsed)


PROPERTY = Property(
    "conformance",
    "d is one of the results that RISC-V's standard allows of a dot product",
    _settle,
)
