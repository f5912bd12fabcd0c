"""Two designs, or a design and a model, compared by the solvers as they are: `find_difference` of what is not proved.

find_difference(from_rtl("dpa.sv", …), from_rtl("dpa_new.sv", …))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.architectures.meant import StandsForInstruction, instruction_meant
from mmaformal.cases.inputs import Inputs, Rows, symbolic_inputs
from mmaformal.checked import Progress
from mmaformal.hardware.blackbox import DesignUnit
from mmaformal.hardware.module import HardwareError
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import direct
from mmaformal.queries.comparing import Agreement
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.signing import Signing, SmallestWrong
from mmaformal.queries.signoff import signoff
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spaces import algorithms, models
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd


def difference_of_designs(
    x: object,
    y: object,
    *,
    where: Constraint | str | Iterable[Constraint | str] = (),
    timeout: float = 120.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove that a design gives what another design, or a model, gives, or find the smallest input where it does not.

    A design against a model is signed off.  Of two designs random rows are compared, then the solvers are asked.
    Raises TypeError where neither is a design, ValueError where the two take other types, HardwareError where the d of
    the second one depends on what it leaves undefined.
    """
    if not (isinstance(x, DesignUnit) and isinstance(y, DesignUnit)):
        unit, model = (x, y) if isinstance(x, DesignUnit) else (y, x)
        if not isinstance(unit, DesignUnit) or not isinstance(
            model, Instruction | StandsForInstruction | str
        ):
            raise TypeError(f"a design and a model are compared, not {x!r} and {y!r}")
        return signoff(
            unit,
            instruction_meant(model),
            where=where,
            timeout=timeout,
            memory=memory,
            solver=solver,
            progress=progress,
            cache=cache,
        )
    if x.takes != y.takes:
        raise ValueError(f"{x.name} and {y.name} were read for other types, or another K")
    say = progress or (lambda _: None)
    with session(solver, memory, cache) as portfolio:
        signed = _TwoDesigns(x, y, Asker(portfolio, timeout), say, Agreement(as_constraints(where)))
        return signed.asker.within(signed.question, signed.answer)


def _named(unit: DesignUnit) -> Instruction:
    """An instruction of a design's types, for what a witness says of these: its parameters are nobody's.

    Raises HardwareError for types that no model has.
    """
    s = unit.shape
    types = Types(s.a_format, s.b_format, s.c_format, s.d_format, s.scale_format, s.scale_block)
    spec = next((each for name in algorithms() for each in models(types, s.k, name)), None)
    if spec is None:
        raise HardwareError(f"no model takes the types of {unit.name}: {types}")
    return Instruction(unit.name, "rtl", 1, 1, spec)


class _TwoDesigns(Signing):
    """A design signed off against another one."""

    nothing = "both designs give the same"

    def __init__(
        self, x: DesignUnit, y: DesignUnit, asker: Asker, progress: Progress, same: Agreement
    ) -> None:
        instruction, told = _named(x), (*x.notes, *y.notes)
        inputs = symbolic_inputs(cast(DotAdd, x.shape))
        super().__init__(instruction, inputs, x.design.module, asker, progress, told, same)
        self.other, module = y, y.design.module
        own = [(u, z3.BitVec(f"{u} of {y.name}, the other", u.size())) for u in module.undefined.values()]
        self.other_d = z3.substitute(module.outputs["d"], *own)
        self.expected = f"{y.name}, the other"
        self.nans = "nan" in same.alike
        self.question = f"{x.name} gives the d of {y.name} for every input{same.said}"

    def model_results(self, rows: Rows) -> NDArray[np.uint64]:
        return self.other.results(rows)

    def model_term(self, inputs: Inputs) -> z3.BitVecRef:
        pairs = list(zip(self.inputs.flat(), inputs.flat(), strict=True))
        return cast(z3.BitVecRef, z3.substitute(self.other_d, *pairs))

    def differ(self, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
        return mine != model

    def answer(self) -> Holds | Fails | Unknown:
        """By random rows, then as one question."""
        self.check_some_input()
        self.progress("random rows")
        wrong = self.random()
        if wrong is not None:
            return self.fails(wrong)
        outcome, found = SmallestWrong(self).least(self.asker.left)
        if found is not None:
            return self.fails(found.codes)
        if outcome.verdict == "unsat":
            return Holds(self.question, direct(outcome), self.asker.elapsed, notes=self.notes)
        why = outcome.why or "the time given was used up"
        return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)
