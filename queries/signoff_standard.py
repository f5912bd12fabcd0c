"""Is every result of a design one that RISC-V's standard allows?  If not, the smallest input, and what is allowed.

    mmaformal signoff dot2.sv --against riscv vfqwbdota.vv.E4M3.n2 --alike standard

The model says the types, and is one of the units that the design may be.  `Holds` where the design is proved to be a
conforming unit, the model or another member (`queries/standard_units.py`), or where each result is that of one of
them.  `Fails` with an input whose result is none of those allowed, which are listed for it; smaller ones are refuted as
those of models are (`queries/conformance.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.inputs import Codes, Inputs, Rows
from mmaformal.cases.questions import FoundCase, Places
from mmaformal.cases.run import quick_results
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.display import counted
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.formats import fp32
from mmaformal.hardware.undefined import drawn
from mmaformal.proof.kernel import direct, together
from mmaformal.queries.conformance import conforming
from mmaformal.queries.signing import Signing, SmallestWrong
from mmaformal.queries.signoff_program import SigningProgram
from mmaformal.queries.standard_units import Standard
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

#: Rows that no member explains whose allowed results are listed, at once.
_LOOKED_UP = 60
#: Rows on which a member has to give the design's d before it is proved to be the design, and the part of the time left
#: that each of these has.
_FITTING, _EACH = 2_000, 0.6


class SigningStandard(Signing):
    """A design signed off against the set of results that the standard allows."""

    nothing = "every result is that of a conforming unit"

    @property
    def asked(self) -> str:
        """Return the question, in words.  Raises ValueError where the standard has no such dot product."""
        return (
            f"{self.module.name}: every result is one that RISC-V's standard allows of "
            f"{counted(self.standard.spec.k, 'product')}, {self.spec.types}{replace(self.same, alike=self._plain).said}"
        )

    @cached_property
    def standard(self) -> Standard:
        """The set.  Raises ValueError where the standard has no such dot product."""
        return Standard(self.spec)

    @cached_property
    def members(self) -> tuple[DotAdd, ...]:
        """Members of the set that the design may be: the model, if it is one, first."""
        own = (self.spec,) if self.standard.step_of(self.spec) else ()
        return *own, *self.standard.models(), *self.standard.members()

    @property
    def _plain(self) -> list[str]:
        """Return what counts as the same of two results, but for the standard."""
        return [each for each in self.same.alike if each != "standard"]

    # ---- results ----------------------------------------------------------------------------------------------------

    def is_outside(self, codes: Codes, d: int) -> bool:
        """Whether a result is not allowed; False where that is not known."""
        ways = {d, d ^ fp32.sign_mask} if self.zeros and d & ~fp32.sign_mask == 0 else {d}
        return all(self.standard.is_outside(codes, each, self.nans) for each in ways)

    def is_shown(self, rows: Rows, mine: NDArray[np.uint64], model: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """The rows whose results are not allowed, of the first that are no member's."""
        shown, d = np.zeros(len(rows), np.bool_), self.one_of_each(mine)
        open_ = np.arange(len(rows))
        for of in self.members:
            other = d[open_] != self.one_of_each(quick_results(of, rows.at(open_)))
            open_ = open_[other]
            if not len(open_):
                return shown
        for row in open_[:_LOOKED_UP]:
            shown[row] = self.is_outside(rows[int(row)], int(mine[row]))
        return shown

    def claims(self, inputs: Inputs, mine: z3.BitVecRef, model: z3.BitVecRef) -> list[z3.BoolRef]:
        """Nothing of the model: `_SmallestOutside` claims that d is no member's."""
        return []

    def smallest(self, share: float = 1.0) -> SmallestWrong:
        return _SmallestOutside(self, share)

    # ---- the answer -------------------------------------------------------------------------------------------------

    def answer(self) -> Holds | Fails | Unknown:
        """By random cases, as one of the members, then as one question."""
        self.check_some_input()
        self.progress("random cases")
        wrong = self.random()
        if wrong is not None:
            return self.fails(wrong)
        why = "it gives what is allowed, so far, but no one member's results"
        for of in self._fitting():
            said = self._as_member(of)
            if isinstance(said, Holds):
                return self._holds(said.proof)
            if isinstance(said, Codes):
                return self.fails(said)
            why = said or why
        outcome, found = self.smallest().least(self.asker.left)
        if found is not None:
            return self.fails(found.codes)
        if outcome.verdict == "unsat":
            answer = self._holds(direct(outcome))
            if not isinstance(answer, Holds):
                return answer
            return of_both_encodings(answer, self.instruction, self.standard.members(), self.asker)
        why = f"no input was found whose result is not allowed; {why}"
        return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)

    def _fitting(self) -> Iterator[DotAdd]:
        """Yields the members that give the design's d on random rows: the model first, if it is one."""
        rows = self.drawn(_FITTING, 8)
        rows = rows.at(self.allowed(rows))
        d = self.one_of_each(self.results_known(rows))
        for of in dict.fromkeys((self.spec, *self.members)):
            if np.array_equal(d, self.one_of_each(quick_results(of, rows))):
                yield of

    def _as_member(self, of: DotAdd) -> Holds | Codes | str:
        """`Holds` if the design is proved to be a member; else an input that is not allowed, or why it is neither."""
        self.progress(f"as {of.text}")
        asker = Asker(self.asker.portfolio, _EACH * max(self.asker.left, 0))
        asker.store = self.asker.store
        member = conforming(of, self.standard, asker)
        if member is None:
            return ""
        text, conforms = member
        instruction = replace(self.instruction, spec=of, name=f"{self.instruction.name} ({of.text})")
        same = replace(self.same, alike=self._plain)
        signed = Signing(instruction, self.inputs, self.module, asker, self.progress, (), same)
        answer = asker.within(signed.question, signed.answer)
        if isinstance(answer, Holds):
            self.notes = (*self.notes, f"it is {text}")
            return replace(answer, proof=together(conforms, answer.proof))
        if isinstance(answer, Fails) and isinstance(answer.witness, CaseWitness):
            codes = answer.witness.codes
            wrong = answer.witness.instruction.spec == of and self.wrong(Rows.of([codes]))[0]
            return codes if wrong else f"it is not {text}"
        return f"that it is {text} is not settled"

    def _holds(self, proof: Proof) -> Holds | Fails | Unknown:
        notes = (*self.notes, *self.open_nans)
        return Holds(self.question, proof, self.asker.elapsed, notes=notes)

    def found_wrong(self, found: FoundCase, minimality: tuple[str, ...]) -> Fails:
        """The answer that an input gives, which is run once more.  Raises WitnessError if d is allowed there."""
        codes, rows = found.codes, Rows.of([found.codes])
        ways = range(3) if self.module.undefined else range(1)
        given = [int(self._evaluated(rows, drawn(self.module, 1, seed))[0]) for seed in ways]
        mine = next((d for d in given if self.is_outside(codes, d)), None)
        if mine is None:
            raise WitnessError(f"{self.module.name} was to give what is not allowed on {codes}, and does not")
        run = Run(f"{self.module.name}, the design", self.spec, codes, mine)
        notes = (self.standard.nearest(codes, mine), *self.notes)
        witness = CaseWitness(self.instruction, (run,), notes=notes, minimality=minimality)
        why = "The design gives what the standard does not allow:"
        return Fails(self.question, witness, why, self.asker.elapsed)


class StandardProgram(SigningProgram, SigningStandard):
    """A function of a program signed off against what the standard allows."""


class _SmallestOutside(SmallestWrong):
    """The search for a small case on which a design gives what the standard does not allow."""

    signed: SigningStandard

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        claims, seen = super().shows(inputs, active)
        return [*claims, *self._none(inputs, active)], seen

    def _none(self, inputs: Inputs, active: Places | None) -> list[z3.BoolRef]:
        signed = self.signed
        pairs = list(zip(signed.inputs.flat(), inputs.flat(), strict=True))
        mine = z3.substitute(signed.module.outputs["d"], *pairs)
        return signed.standard.gives_none(mine, inputs, active, signed.nans)

    def is_shown(self, codes: Codes) -> bool:
        return bool(self.signed.wrong(Rows.of([codes]))[0])
