"""Questions about anything that gives a d, a design or a program, beside a model: on which rows it is another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.codes import is_zero, one_nan
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Inputs, Rows, symbolic_inputs
from mmaformal.cases.run import quick_results
from mmaformal.checked import Progress
from mmaformal.formats import Specials
from mmaformal.hardware.matching import values_of
from mmaformal.instruction import Instruction
from mmaformal.queries.constraints import Constraint, pins_of
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

#: Results that may be alike, and what is said of them.
_ALIKE = {
    "nan": "all NaNs alike",
    "zero": "signs of zeros alike",
    "standard": "or another that RISC-V's standard allows",
}
#: What is said of a proof against a model of which a NaN's code is not known.
_OPEN_NANS = "codes of NaNs were not compared: the model leaves open which NaN d is"


@dataclass(frozen=True)
class Agreement:
    """The rule by which d counts as the same: for which inputs, and which results are alike."""

    where: tuple[Constraint, ...] = ()
    alike: Collection[str] = ()

    def __post_init__(self) -> None:
        for each in self.alike:
            if each not in _ALIKE:
                raise ValueError(f"alike is {' or '.join(_ALIKE)}, not {each!r}")

    @property
    def said(self) -> str:
        """The words that follow `for every input` in a statement."""
        alike = (said for name, said in _ALIKE.items() if name in self.alike)
        return ", ".join([self.said_of_inputs, *alike])

    @property
    def said_of_inputs(self) -> str:
        """The words for which inputs count."""
        return f" where {'; '.join(map(str, self.where))}" if self.where else ""

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        """Claims that the constraints make of inputs, the codes that are given among them."""
        pairs = zip(inputs.flat(), symbolic_inputs(spec, pins_of(spec, self.where)).flat(), strict=True)
        given = [x == code for x, code in pairs if z3.is_bv_value(code)]
        return [*given, *(term for each in self.where for term in each.on_inputs(spec, inputs))]

    def on_result(self, spec: DotAdd, result: z3.BitVecRef) -> list[z3.BoolRef]:
        """Claims that the constraints make of the model's result; a design may give any."""
        return [term for each in self.where for term in each.on_result(spec, result)]


class Comparing:
    """A d beside the model's: which inputs count, which results are alike, and on which rows they are not."""

    def __init__(
        self,
        instruction: Instruction,
        inputs: Inputs,
        name: str,
        asker: Asker,
        progress: Progress,
        same: Agreement | None = None,
    ) -> None:
        """`name`: what gives the d."""
        self.instruction, self.spec, self.inputs, self.name = instruction, instruction.spec, inputs, name
        self.asker, self.progress = asker, progress
        self.same = same = same or Agreement()
        self.nans, self.zeros = "nan" in same.alike or not self.spec.nan_is_canonical, "zero" in same.alike
        self.question = self.asked

    @property
    def asked(self) -> str:
        """Return the question, in words."""
        return f"{self.name} gives the d of {self.instruction.label} for every input{self.same.said}"

    @property
    def open_nans(self) -> tuple[str, ...]:
        """Return a note where all NaNs count as the same because the model leaves open which one d is."""
        has_nan = self.spec.d_format.specials not in (Specials.NONE, Specials.INTEGER)
        named = "nan" in self.same.alike
        return (_OPEN_NANS,) if has_nan and not named and not self.spec.nan_is_canonical else ()

    def check_some_input(self) -> None:
        """Raise ValueError where no input satisfies the constraints: of none, anything would be proved."""
        claims = self.same.on_inputs(self.spec, self.inputs)
        if claims and self.asker.meet(z3.And(claims)).verdict == "unsat":
            given = "; ".join(map(str, self.same.where))
            raise ValueError(f"no input satisfies {given}: there is nothing to compare")

    def drawn(self, count: int, seed: int) -> Rows:
        """Random cases, in which inputs have the codes that constraints give them."""
        return self.pinned(generate(self.spec, count, seed=seed, distributions=(*DISTRIBUTIONS, "edge")))

    def pinned(self, rows: Rows) -> Rows:
        """Rows whose inputs have the codes that constraints give them."""
        for name, code in pins_of(self.spec, self.same.where).items():
            side, place = getattr(rows, name[0]), int(name[1:] or 0)
            side[(slice(None), place) if name[1:] else slice(None)] = code
        return rows

    def model_results(self, rows: Rows) -> NDArray[np.uint64]:
        """The d that is expected for rows."""
        return quick_results(self.spec, rows)

    def is_shown(self, rows: Rows, mine: NDArray[np.uint64], model: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """The rows that are looked for, by the d of both: here those on which the two differ."""
        return np.asarray(self.one_of_each(mine) != self.one_of_each(model))

    def allowed(self, rows: Rows) -> NDArray[np.bool_]:
        """The rows that satisfy the constraints, on their inputs and on the model's results."""
        claims = self.same.on_inputs(self.spec, self.inputs)
        if not claims or not len(rows):
            return np.ones(len(rows), np.bool_)
        found = np.broadcast_to(evaluate(z3.And(claims), values_of(self.inputs, rows)), len(rows))
        return found.astype(np.bool_) & self._allowed_results(self.model_results(rows))

    def _allowed_results(self, d: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """The model's results that satisfy the constraints."""
        result = z3.BitVec("d", self.spec.d_format.storage_bits)
        if not (claims := self.same.on_result(self.spec, result)):
            return np.ones(len(d), np.bool_)
        return np.broadcast_to(evaluate(z3.And(claims), {"d": d.astype(object)}), len(d)).astype(np.bool_)

    def one_of_each(self, d: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Codes, those that are alike being the same one."""
        d = one_nan(d, self.spec.d_format) if self.nans else d
        if not self.zeros:
            return d
        return np.where(np.asarray(is_zero(d.astype(np.int64), self.spec.d_format)), np.uint64(0), d)
