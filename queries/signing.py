"""A design as it is signed off against a model: what is asked of it, and the smallest input on which it is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.aimed import KINDS_OF_ROWS
from mmaformal.cases.codes import is_nan, is_zero
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.questions import FoundCase, Places
from mmaformal.cases.shrink import fewer_products, lessen, shrink
from mmaformal.cases.smallest import SmallestSearch, least_from
from mmaformal.cases.symmetries import Symmetries
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.checked import Progress
from mmaformal.display import counted
from mmaformal.encodings import smt
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.hardware.compiled import Compiled
from mmaformal.hardware.designs import Wired
from mmaformal.hardware.matching import Follower, Matched, values_of
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.undefined import Choice, choose, constants_undefined, drawn, unused
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError, direct
from mmaformal.queries.comparing import Agreement, Comparing
from mmaformal.queries.constraints import pins_of
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker, Settled
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

#: Random cases on which a design is run before anything is proved, by distributions, and those that nodes are
#: compared on.
_CASES, _SEEN = 4000, 1000
#: Cases of each kind that is aimed at the model's corners.
_AIMED = 200
#: Random cases that a compiled design is run on, and the seconds that have to be left for that.
_MANY, _WORTH = 100_000, 20.0
#: The part of the time left in which a witness is made smaller; in the rest it is run once more.
_SHRINKING = 0.9
#: The part of what is left of that for each question whether fewer products do.
_FEWER = 0.2
#: The part of the time left for d as one question, as long as single nodes are worth more time; and how much more of it
#: each has in the next round.
_DIRECT, _MORE = 1 / 3, 4.0
#: Time, in seconds, that is not worth another round.
_LEAST = 0.5
#: With which values of what is undefined cases are run: all 0, all 1, random.
_UNDEFINED = (0, 1, 2)
#: Undefined bits that a witness names one by one.
_NAMED = 8


def check_names(module: Module, inputs: Inputs) -> None:
    """Raises HardwareError where what is undefined has the name of an input, or a name twice: both would be one."""
    taken = {str(x) for x in inputs.flat()}
    for constant in constants_undefined(module):
        if str(constant) in taken:
            raise HardwareError(
                f"{module.name}: what is undefined is called {constant}, as another signal is"
            )
        taken.add(str(constant))


def same_d(spec: DotAdd, same: Agreement, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
    """Return the claim that two results are the same d of a model, or count as the same."""
    fmt, alike = spec.d_format, [mine == model]
    if "nan" in same.alike or not spec.nan_is_canonical:
        alike.append(z3.And(is_nan(mine, fmt), is_nan(model, fmt)))
    if "zero" in same.alike:
        alike.append(z3.And(is_zero(mine, fmt), is_zero(model, fmt)))
    return z3.Or(alike) if len(alike) > 1 else alike[0]


def claim_differ(spec: DotAdd, same: Agreement, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
    """Return the claim that two results are not the same d of a model."""
    return z3.Not(same_d(spec, same, mine, model))


class Signing(Comparing):
    """A design signed off against a model: what is asked of it, and how."""

    nothing = "the design is right"  #: what it means that no case is found
    expected = "the model"  #: what gives the d that is expected

    def __init__(
        self,
        instruction: Instruction,
        inputs: Inputs,
        module: Module,
        asker: Asker,
        progress: Progress,
        told: Sequence[str] = (),
        same: Agreement | None = None,
    ) -> None:
        self.module = module
        super().__init__(instruction, inputs, module.name, asker, progress, same)
        self.why = ""  #: why a proof that was complete but for its last lemma was none
        self._compiled: Compiled | None = None
        self.notes = (*told, *unused(module, inputs))

    @classmethod
    def of(
        cls,
        design: Wired,
        instruction: Instruction,
        asker: Asker,
        progress: Progress,
        same: Agreement | None = None,
    ) -> Signing:
        """Returns the question about a design.  Raises HardwareError where undefined signals have names of inputs."""
        inputs = symbolic_inputs(instruction.spec)
        check_names(design.module, inputs)
        return cls(instruction, inputs, design.module, asker, progress, design.told, same)

    def answer(self) -> Holds | Fails | Unknown:
        """By random cases, then node by node and as one question in turns, with more time in each round."""
        self.check_some_input()
        self.progress("random cases")
        wrong = self.random()
        if wrong is not None:
            return self.fails(wrong)
        rows = generate(self.spec, _SEEN, seed=1, distributions=(*DISTRIBUTIONS, "edge"))
        follower = Follower(
            self.asker, self.spec, self.inputs, self.module, rows, self.progress, self.is_same
        )
        self.asker.best = lambda: self._unknown(follower.matched)
        effort = 1.0
        while True:
            try:
                matched = follower.run(effort)
            except NotProvedError as error:
                matched, self.why = follower.matched, str(error)
            if matched.proof is not None:
                return self._holds(matched.proof)
            share = _DIRECT if follower.unsettled else 1.0
            outcome, found = self.smallest().least(self.asker.left * share)
            if found is not None:
                return self.fails(found.codes)
            if outcome.verdict == "unsat":
                return self._holds(direct(outcome))
            if self.asker.left < _LEAST or not follower.unsettled:
                return self._unknown(matched)
            effort *= _MORE

    def _unknown(self, matched: Matched) -> Unknown:
        ends = ", ".join(matched.unmatched[-6:])
        why = self.why or (
            f"{matched.proved} of {matched.nodes} nodes of the design are proved to be the model's, but not d; no "
            f"input was found on which it differs"
        )
        if ends:
            why += f"; named wires that are none of the model's: {ends}"
        why = "; ".join([why, *(note for note in self.notes if note.startswith("warning"))])
        return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)

    def _holds(self, proof: Proof) -> Holds | Fails | Unknown:
        """Says of the instruction, of both encodings, what is proved of the SMT encoding's model."""
        self.progress("the two encodings of the model agree")
        notes = (*self.notes, *self.open_nans)
        holds = Holds(self.question, proof, self.asker.elapsed, notes=notes)
        return of_both_encodings(holds, self.instruction, [self.spec], self.asker)

    # ---- running ----------------------------------------------------------------------------------------------------

    def random(self) -> Codes | None:
        """A case on which the design is wrong, of random ones and of those aimed at the model's corners."""
        for rows in self._tried():
            wrong = np.flatnonzero(self.wrong(rows))
            if len(wrong):
                return rows[int(wrong[0])]
        return None

    def _tried(self) -> Iterator[Rows]:
        """Rows that are run before anything is proved."""
        yield self.drawn(400, 2)
        yield self.drawn(_CASES, 3)
        if self.compile() and self.asker.left > _WORTH:
            yield self.drawn(_MANY, 4)
        pins = pins_of(self.spec, self.same.where)
        yield self.pinned(Rows.join([draw(self.spec, _AIMED, 3, pins) for draw in KINDS_OF_ROWS.values()]))

    def results(self, rows: Rows, undefined: Mapping[str, NDArray[np.object_]]) -> NDArray[np.uint64]:
        """The design's d, with values of what it leaves undefined."""
        if self._compiled is not None:
            columns = zip(self.inputs.flat(), rows.codes.flat(), strict=True)
            values = {str(term): column for term, column in columns}
            return self._compiled({**values, **undefined}, len(rows))
        return self._evaluated(rows, undefined)

    def results_known(self, rows: Rows) -> NDArray[np.uint64]:
        """The design's d, what it leaves undefined being 0."""
        return self.results(rows, drawn(self.module, len(rows), 0))

    def _evaluated(self, rows: Rows, undefined: Mapping[str, NDArray[np.object_]]) -> NDArray[np.uint64]:
        found = evaluate(self.module.outputs["d"], {**values_of(self.inputs, rows), **undefined})
        return np.broadcast_to(found, len(rows)).astype(np.uint64)

    def compile(self) -> bool:
        """Have the design compiled, if it can be."""
        constants = [*self.inputs.flat(), *constants_undefined(self.module)]
        with contextlib.suppress(ValueError):
            self._compiled = Compiled(self.module.outputs["d"], constants)
        return self._compiled is not None

    def wrong(self, rows: Rows) -> NDArray[np.bool_]:
        """On which rows the design's d is not the model's: for some of several values of what is undefined."""
        wrong = np.zeros(len(rows), bool)
        model = self.model_results(rows)
        for seed in _UNDEFINED if self.module.undefined else (0,):
            mine = self.results(rows, drawn(self.module, len(rows), seed))
            wrong |= self.is_shown(rows, mine, model)
        where = np.flatnonzero(wrong)
        wrong[where] &= self.allowed(rows.at(where))
        return wrong

    def model_term(self, inputs: Inputs) -> z3.BitVecRef:
        """The d that is expected, as a term."""
        return smt.dot_add(self.spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).result

    def claims(self, inputs: Inputs, mine: z3.BitVecRef, model: z3.BitVecRef) -> list[z3.BoolRef]:
        """Return what is claimed of a case that is looked for."""
        return [self.differ(mine, model)]

    def is_same(self, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
        """Return the claim that the design's d is the model's, or counts as it."""
        return same_d(self.spec, self.same, mine, model)

    def differ(self, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
        """Return the claim that the design's d is not the model's."""
        return claim_differ(self.spec, self.same, mine, model)

    # ---- a case on which it is wrong -----------------------------------------------------------------------------

    def smallest(self, share: float = 1.0) -> SmallestWrong:
        """The search for a small case, which may take a part of the time left."""
        return SmallestWrong(self, share)

    def fails(self, codes: Codes) -> Fails:
        """The answer that a case leads to: the smallest on which it is wrong, as far as the time goes."""
        search = self.smallest(_SHRINKING)
        found = least_from(search, codes, _FEWER)
        return self.found_wrong(found, search.minimality)

    def found_wrong(self, found: FoundCase, minimality: tuple[str, ...]) -> Fails:
        """The answer that an input gives, which is run once more.  Raises WitnessError if d is right there."""
        rows = Rows.of([found.codes])
        model = int(self.model_results(rows)[0])
        pairs = [
            (term, z3.BitVecVal(code, term.size()))
            for term, code in zip(self.inputs.flat(), found.codes.flat(), strict=True)
        ]
        d = z3.simplify(z3.substitute(self.module.outputs["d"], *pairs))
        choice = choose(self.module, self.differ(d, z3.BitVecVal(model, d.size())))
        values = {name: np.array([x], object) for name, x in (choice.values if choice else {}).items()}
        mine = int(self._evaluated(rows, drawn(self.module, 1, 0) | values)[0])
        if choice is None or mine == model:
            raise WitnessError(f"{self.module.name} was to be wrong on {found.codes}, and is not")
        runs = (
            Run(f"{self.module.name}, the design", self.spec, found.codes, mine),
            Run(self.expected, self.spec, found.codes, model),
        )
        notes = (*_of_undefined(choice), *self.notes)
        witness = CaseWitness(self.instruction, runs, notes=notes, minimality=minimality)
        return Fails(self.question, witness, "The design gives another d:", self.asker.elapsed)


def _of_undefined(choice: Choice) -> list[str]:
    """Say what undefined bits a wrong d needs, a line each."""
    said = [f"{name} = X: 0 or 1; in the design's d above it is {bit}" for name, bit in choice.needed.items()]
    more = len(said) - _NAMED
    if more <= 0:
        return said
    return [*said[:_NAMED], f"{counted(more, 'more undefined bit')} of which the same is to be said"]


class SmallestWrong(SmallestSearch):
    """The search for a small case on which the design is wrong; no two cases are known to be alike."""

    ignored_bits = True

    def __init__(self, signed: Signing, share: float = 1.0) -> None:
        """`share`: the part of the time left that it may take."""
        where = signed.same.where
        every = any(each.forbids_zero for each in where)
        super().__init__(signed.spec, signed.asker, pins_of(signed.spec, where), every, signed.progress)
        self.signed, self.nothing = signed, signed.nothing
        self._until = self.asker.elapsed + share * max(self.asker.left, 0)
        self._noted: tuple[int, ...] | None = None

    @property
    def left(self) -> float:
        return min(self._until - self.asker.elapsed, self.asker.left)

    def note(self, found: FoundCase) -> None:
        """A case was found: it is the answer if the time is up before another."""
        if self._noted is None or self.size(found) < self._noted:
            self._noted = self.size(found)
            said = self.nothing_proved(found, "the time given was used up")
            best = self.signed.found_wrong(found, said)  # at once: later there is no time to run it
            self.asker.best = lambda: replace(best, seconds=self.asker.elapsed)

    def least(self, limit: float) -> tuple[Settled, FoundCase | None]:
        """Whether there is a case at all."""
        text = f"{self.nothing} for every input{self.signed.same.said}"
        return self.ask(None, "all inputs at once", text, limit=limit, whole=True)

    def made_smaller(self, codes: Codes) -> Codes:
        return shrink(self.spec, shrink(self.spec, codes, self._wrong, fewer_products), self._wrong)

    def lesser(self, codes: Codes) -> Codes:
        return lessen(self.spec, codes, self._wrong)

    def _wrong(self, cases: Sequence[Codes]) -> list[bool]:
        return [bool(x) for x in self.signed.wrong(Rows.of(cases))]

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        signed, spec = self.signed, self.spec
        pairs = list(zip(signed.inputs.flat(), inputs.flat(), strict=True))
        mine = z3.substitute(signed.module.outputs["d"], *pairs)
        model, same = signed.model_term(inputs), signed.same
        given = same.on_inputs(spec, inputs) if same.where else []
        claims = signed.claims(inputs, mine, model)
        return [*claims, *given, *same.on_result(spec, model)], []

    def find_licences(self) -> Symmetries:
        return Symmetries(list(range(self.spec.k)), exchange=False, signs=False, zeros="any")
