"""Does a function of a program compute a model, for all inputs?  What is asked of it besides what is asked of a design.

Each way to undefined behaviour is a claim of its own, which is proved to be false for every input: an over-shift, a
signed overflow, a division by zero, what is read beyond an array's ends or before it is set.  Before `Holds` is said,
the program itself is run on rows, special ones among them, beside the terms; a witness is run by it too.  What a
program's language or library leaves open may be anything in its terms; on rows it is what the program gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.codes import is_nan
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.questions import FoundCase
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.checked import Progress
from mmaformal.hardware.designs import Wired
from mmaformal.hardware.matching import Matched
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.undefined import Finding, drawn
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import direct, together
from mmaformal.queries.comparing import Agreement
from mmaformal.queries.signing import Signing, check_names
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker

#: Rows on which the program itself is run before anything is asked.
_START = 200
#: The part of the time left for all ways to undefined behaviour at once, and with each alone; seconds for each alone at
#: first, and how much more for those that are not settled.
_AT_ONCE, _ALONE, _FIRST, _MORE = 0.1, 0.6, 1.0, 4.0
#: Ways that a witness names.
_NAMED = 3


class SigningProgram(Signing):
    """A function signed off against a model."""

    never: tuple[Proof, ...] = ()  #: that no behaviour is undefined

    def __init__(
        self,
        design: Wired,
        instruction: Instruction,
        asker: Asker,
        progress: Progress,
        same: Agreement | None = None,
    ) -> None:
        inputs = symbolic_inputs(instruction.spec)
        check_names(design.module, inputs)
        super().__init__(instruction, inputs, design.module, asker, progress, design.told, same)
        assert design.behaviour is not None
        self.behaviour = design.behaviour
        if self.behaviour.findings:
            self.question += ", and its behaviour is never undefined"

    def answer(self) -> Holds | Fails | Unknown:
        """By rows and by solvers: that no behaviour is undefined, then as of any design."""
        self.check_some_input()
        self.compile()
        if self.behaviour.findings:
            self.progress("random cases")
            wrong: Codes | Unknown | None = self.random()
            if wrong is None:
                self.progress("undefined behaviour")
                wrong = self._undefined()
            if wrong is not None:
                return wrong if isinstance(wrong, Unknown) else self.fails(wrong)
            self.module, self._compiled = self.behaviour.plain, None
            self.compile()
        else:
            self.check_run(self.drawn(_START, 7))
        return super().answer()

    def _undefined(self) -> Codes | Unknown | None:
        """An input for which behaviour is undefined; None where it is proved that there is none."""
        waiting = list(self.behaviour.findings)
        until, limit = self.asker.left * (1 - _ALONE), _FIRST
        found = self._ask(waiting, self.asker.left * _AT_ONCE)
        if not isinstance(found, str):
            return found
        while True:
            unsettled: list[Finding] = []
            for each in waiting:
                found = self._ask([each], max(_FIRST, min(limit, self.asker.left - until)))
                if isinstance(found, str):
                    unsettled.append(each)
                elif found is not None:
                    return found
            if not unsettled:
                return None
            if self.asker.left < until:
                first = unsettled[0]
                why = f"whether behaviour is undefined was not settled: {first}"
                return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)
            waiting, limit = unsettled, limit * _MORE

    def _ask(self, findings: Sequence[Finding], limit: float) -> Codes | str | None:
        """An input for which some behaviours are undefined, None where that is refuted, or why it is not settled."""
        reached = z3.Or([each.when for each in findings])
        where = self.same.on_inputs(self.spec, self.inputs)
        what = str(findings[0]) if len(findings) == 1 else f"all {len(findings)} ways to it"
        statement = f"no behaviour of {self.module.name} is undefined{self.same.said_of_inputs}: {what}"
        constants = {str(x): x.size() for x in self.inputs.flat()}
        asked = [reached, *where]
        outcome = self.asker.satisfy("undefined behaviour", statement, asked, constants, limit, whole=True)
        if outcome.verdict == "sat":
            return _codes(self.inputs, [outcome.model.get(name, 0) for name in constants])
        if outcome.verdict == "unknown":
            return outcome.why or "the time was up"
        self.never = (*self.never, direct(outcome))
        return None

    def _unknown(self, matched: Matched) -> Unknown:
        found = super()._unknown(matched)
        if not self.behaviour.findings:
            return found
        return replace(found, why=f"{found.why}; that its behaviour is never undefined is proved")

    def _holds(self, proof: Proof) -> Holds | Fails | Unknown:
        self.progress("the program is run")
        count = self.behaviour.rows
        rows = Rows.join(
            [self.drawn(count, 5), generate(self.spec, count // 4, seed=6, distributions=("edge",))]
        )
        rows = rows.at(self.allowed(rows))
        self.check_run(rows, right=True)
        self.notes = (*self.notes, f"{self.behaviour.how} gives the same d on {len(rows):,} rows")
        return super()._holds(together(*self.never, proof))

    def check_run(self, rows: Rows, right: bool = False) -> None:
        """Run the program itself beside the terms, and the model if they are the model's.

        Raises HardwareError where it gives anything else.
        """
        mine, theirs = self.results_known(rows), self.behaviour.run(rows)
        differ = (mine != theirs) & ~self._left_open(rows, mine, theirs)
        if right:
            differ |= self.is_shown(rows, theirs, self.model_results(rows))
        wrong = np.flatnonzero(differ)
        if len(wrong):
            row = int(wrong[0])
            raise HardwareError(
                f"{self.module.name} was read wrongly: for {rows[row].text} {self.behaviour.how} gives "
                f"{int(theirs[row]):#x}, and its terms {int(mine[row]):#x}; please report it with the file"
            )

    def _left_open(
        self, rows: Rows, mine: NDArray[np.uint64], theirs: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """The rows on which both may differ: NaNs of which none is said, and others of which anything may be left."""
        if not self.module.undefined:
            return np.zeros(len(rows), np.bool_)
        fmt = self.spec.d_format
        nans = np.asarray(is_nan(mine.astype(np.int64), fmt) & is_nan(theirs.astype(np.int64), fmt), np.bool_)
        return np.asarray(nans | (mine != self.results(rows, drawn(self.module, len(rows), 1))), np.bool_)

    def found_wrong(self, found: FoundCase, minimality: tuple[str, ...]) -> Fails:
        """The answer that an input gives; where behaviour is undefined, which; else the program is run on it."""
        rows, ways = Rows.of([found.codes]), self._undefined_at(found.codes)
        if not ways:
            answer = super().found_wrong(found, minimality)
            open_ = not z3.is_bv_value(self._at(self.behaviour.plain.outputs["d"], found.codes))
            if open_ and self.behaviour.findings:
                return answer
            self.check_run(rows)
            assert isinstance(answer.witness, CaseWitness)
            said = f"{self.behaviour.how} gives {self._given(rows) if open_ else 'this d'}"
            notes = (said, *answer.witness.notes)
            return replace(answer, witness=replace(answer.witness, notes=notes))
        run = Run(self.expected, self.spec, found.codes, int(self.model_results(rows)[0]))
        notes = (*(f"undefined behaviour: {way}" for way in ways[:_NAMED]), *self.notes)
        witness = CaseWitness(self.instruction, (run,), notes=notes, minimality=minimality)
        return Fails(
            self.question, witness, "The function's behaviour is undefined here:", self.asker.elapsed
        )

    def _given(self, rows: Rows) -> str:
        """Say what the program gives for one row where its d is left open, and whether that is wrong."""
        theirs = self.behaviour.run(rows)
        wrong = bool(self.is_shown(rows, theirs, self.model_results(rows))[0])
        more = "" if wrong else ", which another processor or version of a library need not give"
        return f"{int(theirs[0]):#x}{more}"

    def _at(self, term: z3.ExprRef, codes: Codes) -> z3.ExprRef:
        """A term where the inputs are codes."""
        pairs = [
            (each, z3.BitVecVal(code, each.size()))
            for each, code in zip(self.inputs.flat(), codes.flat(), strict=True)
        ]
        return z3.simplify(z3.substitute(term, *pairs))

    def _undefined_at(self, codes: Codes) -> list[str]:
        """The ways to undefined behaviour that an input takes, in the order of the program."""
        there = [x for x in self.behaviour.findings if not z3.is_false(self._at(x.when, codes))]
        return list(dict.fromkeys(map(str, there)))


def _codes(inputs: Inputs, values: Sequence[int]) -> Codes:
    """Codes in the order in which inputs are flat."""
    rest = iter(values)
    a, b, c, scale_a, scale_b = (
        tuple(next(rest) for _ in side)
        for side in (inputs.a, inputs.b, (inputs.c,), inputs.scale_a, inputs.scale_b)
    )
    return Codes(a, b, c[0], scale_a, scale_b)
