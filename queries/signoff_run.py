"""Does a program that cannot be read compute a model?  It is run, on many rows: no answer is a proof.

Rows are drawn from the house's distributions, and aimed at the model's corners (`mmaformal.cases.aimed`).  Where the d
of a row is another, the input is made smaller run by run, and `Fails` has the smallest found.  Else the answer is
`Unknown`, with why the program was not read, how many rows agreed, and of what kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.aimed import KINDS_OF_ROWS, Pins
from mmaformal.cases.inputs import Codes, Rows, symbolic_inputs
from mmaformal.cases.shrink import fewer_products, shrink, size
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.checked import Progress
from mmaformal.display import counted
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.unread import UnreadProgramError
from mmaformal.instruction import Instruction
from mmaformal.queries.comparing import Agreement, Comparing
from mmaformal.queries.constraints import pins_of
from mmaformal.shown_stages import exact_dot_add, explain_case
from mmaformal.solver.answers import Fails, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

#: Rows of each kind in the first round and at most in one, and all that are run one by one.
_FIRST, _MOST, _ALL = 250, 2_000, 40_000
#: Rows of a round that a program is called with at once, for each that it is called with alone.
_AT_ONCE = 8
#: The parts of the time in which rows are run, and those of which kinds are told; wrong rows that are made smaller.
_RUNNING, _OF_KINDS, _SMALLER = 0.6, 0.3, 8
_SMALLEST = "smallest found, made smaller run by run; that nothing is smaller is not proved"


class SigningRuns(Comparing):
    """A program that is only run, beside a model."""

    def __init__(
        self,
        unread: UnreadProgramError,
        instruction: Instruction,
        asker: Asker,
        progress: Progress,
        same: Agreement,
    ) -> None:
        """Raises ValueError where what RISC-V's standard allows is asked."""
        if "standard" in same.alike:
            raise ValueError(f"{unread}: so it is only run, and what the standard allows is not asked")
        self.program, self.unread = unread.program, str(unread)
        inputs = symbolic_inputs(instruction.spec)
        super().__init__(instruction, inputs, self.program.name, asker, progress, same)
        self.alone, self.at_once = Counter[str](), Counter[str]()  #: rows that were right, by kinds
        self._together = self.program.together
        self.notes = (*self.program.told, f"not read, only run: {self.unread}")

    def answer(self) -> Fails | Unknown:
        """By rows, aimed ones among them."""
        self.check_some_input()
        self.asker.best = self.unknown
        wrong = self.wrong_rows()
        return self.unknown() if wrong is None else self.smallest_of(wrong.cases())

    def unknown(self) -> Unknown:
        """The answer where no row is wrong."""
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.alone.items())
        why = f"it was not read ({self.unread}), only run, which proves nothing of other inputs; "
        why += f"the same d on {counted(self.alone.total(), 'row')}" + (f": {kinds}" if kinds else "")
        if self.at_once:
            why += f"; and on {counted(self.at_once.total(), 'row')} of these kinds that it was called with at once"
        return Unknown(self.question, why, (), self.asker.elapsed)

    # ---- running ----------------------------------------------------------------------------------------------------

    def results_known(self, rows: Rows) -> NDArray[np.uint64]:
        """The program's d."""
        return self.program.run(rows)

    def wrong(self, rows: Rows) -> NDArray[np.bool_]:
        """On which rows the program's d is not the model's."""
        return self._differs(rows, self.results_known(rows))

    def _differs(self, rows: Rows, mine: NDArray[np.uint64]) -> NDArray[np.bool_]:
        wrong = self.is_shown(rows, mine, self.model_results(rows))
        where = np.flatnonzero(wrong)
        wrong[where] &= self.allowed(rows.at(where))
        return wrong

    def wrong_rows(self) -> Rows | None:
        """Rows that are wrong: those of the first kind that has some, and of as many kinds after it as there are."""
        found, more, until = list[Rows](), 2 * len(KINDS_OF_ROWS), self.asker.left * (1 - _RUNNING)
        for _, rows, wrong in self.blocks():
            if wrong.any():
                found.append(rows.at(wrong))
                if len(found) == 1:
                    self._note(self.found_wrong(found[0][0]))
            more -= bool(found)
            if found and (not more or self.asker.left < until):
                break
        return Rows.join(found) if found else None

    def rows_of_all_kinds(self) -> Rows:
        """Return rows of all kinds, those on which the program is wrong first, for the time there is."""
        found, until = list[Rows](), self.asker.left * (1 - _OF_KINDS)
        for _, rows, _ in self.blocks():
            found.append(rows)
            if self.asker.left < until:
                break
        return Rows.join(found)

    def blocks(self) -> Iterator[tuple[str, Rows, NDArray[np.bool_]]]:
        """Run rows kind by kind, in rounds, each time more; each is called alone, and some are called at once before.

        Those that are wrong where many are called at once count where they are wrong alone, too.
        """
        until, count, number = self.asker.left * (1 - _RUNNING), _FIRST, 0
        while self.alone.total() < _ALL:
            for kind, draw in KINDS_OF_ROWS.items():
                self.progress(f"rows {kind}: {self.alone.total() + self.at_once.total():,} were right")
                rows = self._rows(draw, count, number)
                mine = self.results_known(rows)
                wrong = self._differs(rows, mine)
                self.alone[kind] += int(np.sum(~wrong))
                yield kind, rows, wrong
                if self._is_same_at_once(rows, mine):
                    yield from self._block_at_once(kind, count * _AT_ONCE, number + 1)
                number += 2
                if self.asker.left < until and count > _FIRST:
                    return
            count = min(2 * count, _MOST)

    def _rows(self, draw: Callable[[DotAdd, int, int, Pins], Rows], count: int, seed: int) -> Rows:
        """Rows that satisfy the constraints."""
        rows = self.pinned(draw(self.spec, count, seed, pins_of(self.spec, self.same.where)))
        return rows.at(self.allowed(rows))

    def _is_same_at_once(self, rows: Rows, alone: NDArray[np.uint64]) -> bool:
        """Whether the program gives the same where it is called with all rows at once; if not, never more."""
        if self._together is not None and len(rows):
            found = self._together(rows)
            if found is None or (self.one_of_each(found) != self.one_of_each(alone)).any():
                self._together = None
                self.at_once.clear()
        return self._together is not None

    def _block_at_once(
        self, kind: str, count: int, seed: int
    ) -> Iterator[tuple[str, Rows, NDArray[np.bool_]]]:
        assert self._together is not None
        rows = self._rows(KINDS_OF_ROWS[kind], count, seed)
        mine = self._together(rows) if len(rows) else None
        if mine is None:
            return
        wrong = self._differs(rows, mine)
        self.at_once[kind] += int(np.sum(~wrong))
        some = rows.at(wrong)
        if len(some):
            yield kind, some, self.wrong(some)

    # ---- a case on which it is wrong --------------------------------------------------------------------------------

    def smallest_of(self, cases: Sequence[Codes]) -> Fails:
        """The answer that some cases lead to: the smallest that is found from them."""
        best: Codes | None = None
        for codes in sorted(cases, key=self._size)[:_SMALLER]:
            self._note(self.found_wrong(best or codes))
            self.progress("a smaller input")
            smaller = self.made_smaller(codes)
            best = smaller if best is None else min(best, smaller, key=self._size)
        assert best is not None
        return self.found_wrong(best)

    def _note(self, known: Fails) -> None:
        """An answer is known, if the time is up before another."""
        self.asker.best = lambda: replace(known, seconds=self.asker.elapsed)

    def fails(self, codes: Codes) -> Fails:
        """The answer that one case leads to."""
        return self.smallest_of([codes])

    def _size(self, codes: Codes) -> tuple[int, ...]:
        return size(self.spec, codes)

    def made_smaller(self, codes: Codes) -> Codes:
        """A case made smaller as far as small changes lead, each of which is run."""

        def shows(cases: Sequence[Codes]) -> Iterator[bool]:
            rows = Rows.of(cases)
            if self.program.started:
                yield from self._are_wrong(rows)
                return
            allowed = self.allowed(rows)
            for row in range(len(rows)):
                yield bool(allowed[row]) and bool(self._are_wrong(rows.at(slice(row, row + 1)))[0])

        return shrink(self.spec, shrink(self.spec, codes, shows, fewer_products), shows)

    def _are_wrong(self, rows: Rows) -> NDArray[np.bool_]:
        """On which rows the program is wrong; on none where it raises something for one."""
        try:
            return self.wrong(rows)
        except HardwareError:
            return np.zeros(len(rows), np.bool_)

    def found_wrong(self, codes: Codes) -> Fails:
        """The answer that an input gives, which is run once more.  Raises WitnessError if d is right there."""
        rows = Rows.of([codes])
        mine, model = (int(d[0]) for d in (self.results_known(rows), self.model_results(rows)))
        if not self._are_wrong(rows)[0]:
            raise WitnessError(f"{self.name} was to be wrong on {codes}, and is not")
        runs = (
            Run(self.program.how, self.spec, codes, mine),
            Run("the model", self.spec, codes, model),
        )
        given = codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b
        stages = explain_case(self.instruction, *given, whole=False).splitlines()
        witness = CaseWitness(
            self.instruction,
            runs,
            exact_dot_add(self.spec, *given),
            self.notes,
            (_SMALLEST,),
            stages=("the model, stage by stage:", *stages),
        )
        return Fails(self.question, witness, "The program gives another d:", self.asker.elapsed)
