"""Does a function in Python, NumPy or torch compute a model, for all inputs?  If not, the smallest input on which it
does not.

    print(signoff_python("emulator.py:dot", volta["HMMA.884.F32.F32"]))

The function is run on symbolic values (`mmaformal.hardware.tracing`), and what it gives is signed off as a design is.
The terms are taken for the function's, and that is checked: before anything is asked the function itself is run beside
them on rows, special ones among them, before `Holds` is said on more, and on each input that refutes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.codes import is_nan
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.cases.questions import FoundCase
from mmaformal.checked import Progress, caller
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.tracing.reading import TracedProgram, read_traced
from mmaformal.hardware.undefined import drawn
from mmaformal.instruction import Instruction
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.signing import Same, Signing, check_names
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session

#: Rows on which a program is run beside its terms: before anything is asked, and before it is said to be right.
_FIRST, _LAST = 200, 1000


def signoff_python(
    program: str,
    instruction: Instruction | str,
    *,
    ports: Mapping[str, str] | None = None,
    where: Constraint | str | Iterable[Constraint | str] = (),
    alike: Collection[str] = (),
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    told: Progress | None = None,
    cache: Cache = False,
) -> Holds | Fails | Unknown:
    """Prove that a function gives the model's d for every input, or find the smallest input for which it does not.

    program: `file.py:function`, of a, b, c (and scale_a, scale_b): K codes or numbers each, and one c.  ports: types
    of operands that its annotations do not say, `{"a": "float16"}`.  The other keywords are those of `signoff`.

    Raises HardwareError for a program that cannot be loaded, does what is not followed, with its line, or raises an
    exception; ValueError for a `where` that no input satisfies.
    """
    caller(progress)
    same, say = Same(as_constraints(where), alike), progress or (lambda _: None)
    instruction = instruction_meant(instruction)
    say("the program is read")
    with session(solver, memory, cache) as portfolio:
        asker = Asker(portfolio, timeout)
        question = f"{program} gives the d of {instruction.label} for every input{same.said}"

        def answer() -> Holds | Fails | Unknown:
            read = read_traced(program, instruction.spec, dict(ports or {}), asker)
            for line in read.told:
                (told or say)(line)
            signed = SigningPython.of_traced(read, question, instruction, asker, say, same)
            signed.check(signed.drawn(_FIRST, 7))
            return signed.answer()

        found = asker.within(question, answer)
    assert isinstance(found, Holds | Fails | Unknown)
    return found


class SigningPython(Signing):
    """A program signed off against a model."""

    program: TracedProgram

    @classmethod
    def of_traced(
        cls,
        program: TracedProgram,
        question: str,
        instruction: Instruction,
        asker: Asker,
        say: Progress,
        same: Same,
    ) -> SigningPython:
        """Of a program that is read."""
        inputs = symbolic_inputs(instruction.spec)
        check_names(program.module, inputs)
        signed = cls(instruction, inputs, program.module, asker, say, program.told, same)
        signed.program, signed.question = program, question
        return signed

    def check(self, rows: Rows) -> None:
        """Run the program beside its terms.  Raises HardwareError where it gives anything else."""
        theirs, mine = self.program.run(rows), self.results_known(rows)
        wrong = (theirs != mine) & ~self._left_open(rows, mine, theirs)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise HardwareError(
                f"{self.module.name} was followed wrongly: for {rows[row].text} it gives {int(theirs[row]):#x}, and "
                f"its terms {int(mine[row]):#x}; please report it with the file"
            )

    def _left_open(
        self, rows: Rows, mine: NDArray[np.uint64], theirs: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """The rows on which both may differ: NaNs of which none is said, and what the program's types leave open."""
        fmt = self.spec.d_format
        nans = np.asarray(is_nan(mine.astype(np.int64), fmt) & is_nan(theirs.astype(np.int64), fmt), np.bool_)
        if not self.module.undefined:
            return np.zeros(len(rows), np.bool_)
        other = self.results(rows, drawn(self.module, len(rows), 1))
        return np.asarray(nans | (mine != other), np.bool_)

    def _holds(self, proof: Proof) -> Holds | Fails | Unknown:
        self.progress("the program itself is run")
        edge = generate(self.spec, _LAST // 4, seed=6, distributions=("edge",))
        rows = Rows.join(
            [self.drawn(_LAST, 5), edge, generate(self.spec, 1, seed=8, distributions=DISTRIBUTIONS)]
        )
        rows = rows.at(self._allowed(rows))
        theirs, model = self.program.run(rows), self.model_results(rows)
        wrong = np.flatnonzero(self.is_shown(rows, theirs, model))
        if len(wrong):
            row = int(wrong[0])
            raise HardwareError(
                f"{self.module.name} was followed wrongly: its terms are the model's, but for {rows[row].text} it "
                f"gives {int(theirs[row]):#x}, not {int(model[row]):#x}; please report it with the file"
            )
        self.notes = (*self.notes, f"run as it is on {len(rows):,} rows, it gives the model's d")
        return super()._holds(proof)

    def found_wrong(self, found: FoundCase, minimality: tuple[str, ...]) -> Fails:
        """The answer that an input gives; the program itself is run on it."""
        rows = Rows.of([found.codes])
        self.check(rows)
        theirs, model = self.program.run(rows), self.model_results(rows)
        shown = bool(self.is_shown(rows, theirs, model)[0])
        said = f"run as it is, it gives {int(theirs[0]):#x} there"
        if not shown:
            said += ", which another processor or version of a library need not give"
        notes, self.notes = self.notes, (*self.notes, said)
        try:
            return super().found_wrong(found, minimality)
        finally:
            self.notes = notes


__all__ = ["SigningPython", "signoff_python"]
