"""Does a function in C, or in LLVM's IR, compute a model, for all inputs?  If not, the smallest input on which it does
not, or on which its behaviour is undefined.

    print(signoff_c("dot4.c:dot4", volta["HMMA.884.F32.F32"]))

The function's text is run on terms (`mmaformal.hardware.programs.llvm_design`).  Each way to undefined behaviour is a
claim of its own, which is proved to be false for every input: an over-shift, a signed overflow, a division by zero, what
is read beyond an array's ends or before it is set.  Before `Holds` is said, the function as the compiler makes it is run
on rows, special ones among them, beside the terms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import z3

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows, symbolic_inputs
from mmaformal.cases.questions import FoundCase
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.checked import Progress, caller
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.programs.llvm_clang import Source, source_of
from mmaformal.hardware.programs.llvm_design import Program, read_program
from mmaformal.hardware.programs.llvm_native import native_results
from mmaformal.hardware.programs.llvm_run import Finding
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import direct, together
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.signoff import Same, Signing, check_names, port_map
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session

#: What is any where behaviour is undefined: the name of its constant has spaces in it, as no input's has.
_ANYTHING = "d where behaviour is undefined"
#: Rows on which what the compiler makes is run, random and special ones.
_RUN = 4000
#: The part of the time left for all ways to undefined behaviour at once, and then for each alone, together.
_AT_ONCE, _ALONE = 0.25, 0.5
#: Ways that a witness names.
_NAMED = 3


def signoff_c(
    program: str | Source,
    instruction: Instruction | str,
    *,
    includes: Sequence[str | Path] = (),
    defines: Sequence[str] = (),
    ports: PortMap | Mapping[str, str] | None = None,
    ties: Mapping[str, str | int] | None = None,
    where: Constraint | str | Iterable[Constraint | str] = (),
    alike: Collection[str] = (),
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    told: Progress | None = None,
    cache: Cache = False,
) -> Holds | Fails | Unknown:
    """Prove that a function gives the model's d for every input, its behaviour never undefined; or find the smallest
    input for which that is not so.

    program: `file.c:function` or `file.ll:function`.  includes, defines: of the preprocessor.  ports, ties: which
    parameters are which operands, and numbers of the others, as `signoff` takes them; the function's value is
    `return`.  The other keywords are those of `signoff`.

    Raises HardwareError for a function that cannot be compiled or read, with the line, ValueError for a `where` that no
    input satisfies.
    """
    caller(progress)
    same = Same(as_constraints(where), alike)
    instruction = instruction_meant(instruction)
    source = program if isinstance(program, Source) else source_of(program, tuple(map(Path, includes)), defines)
    if source is None:
        raise HardwareError(f"{program} names no function: write file.c:function or file.ll:function")
    say = progress or (lambda _: None)
    say("the program is read")
    design = read_program(source, instruction.spec, port_map(ports, ties, None), told or progress)
    with session(solver, memory, cache) as portfolio:
        signed = SigningProgram.of_program(design, instruction, Asker(portfolio, timeout), say, same)
        answer = signed.asker.within(signed.question, signed.answer)
    assert isinstance(answer, Holds | Fails | Unknown)
    return answer


class SigningProgram(Signing):
    """A function signed off against a model."""

    program: Program
    plain: Module  #: its d where no behaviour is undefined
    never: tuple[Proof, ...] = ()  #: that there is none

    @classmethod
    def of_program(
        cls,
        program: Program,
        instruction: Instruction,
        asker: Asker,
        progress: Progress,
        same: Same | None = None,
    ) -> SigningProgram:
        """Of a function that is read."""
        inputs, design = symbolic_inputs(instruction.spec), program.design
        check_names(design.module, inputs)
        signed = cls(instruction, inputs, design.module, asker, progress, design.told, same)
        signed.program, signed.plain = program, design.module
        signed.question += ", and its behaviour is never undefined"
        return signed

    def answer(self) -> Holds | Fails | Unknown:
        """By rows and by solvers: that no behaviour is undefined, then as of any design."""
        self.check_some_input()
        if self.program.findings:
            self.module = _trapped(self.plain, self.program.findings)
            self.progress("random cases")
            wrong = self.random()
            if wrong is None:
                self.progress("undefined behaviour")
                wrong = self._undefined()
            if wrong is not None:
                return wrong if isinstance(wrong, Unknown) else self.fails(wrong)
            self.module, self._compiled = self.plain, None
        return super().answer()

    def _undefined(self) -> Codes | Unknown | None:
        """An input for which behaviour is undefined; None where it is proved that there is none."""
        findings = self.program.findings
        found = self._ask(findings, self.asker.left * _AT_ONCE)
        if not isinstance(found, str):
            return found
        limit = self.asker.left * _ALONE / len(findings)
        for each in findings:
            found = self._ask([each], limit)
            if isinstance(found, str):
                why = f"whether behaviour is undefined was not settled: {each}: {found}"
                return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)
            if found is not None:
                return found
        return None

    def _ask(self, findings: Sequence[Finding], limit: float) -> Codes | str | None:
        """An input for which some behaviours are undefined, None where that is refuted, or why it is not settled."""
        reached = z3.Or([each.when for each in findings])
        where = self.same.on_inputs(self.spec, self.inputs)
        what = str(findings[0]) if len(findings) == 1 else f"all {len(findings)} ways to it"
        statement = f"no behaviour of {self.plain.name} is undefined: {what}"
        constants = {str(x): x.size() for x in self.inputs.flat()}
        outcome = self.asker.satisfy("undefined behaviour", statement, [reached, *where], constants, limit)
        if outcome.verdict == "sat":
            return _codes(self.inputs.flat(), outcome.model, len(self.inputs.a), len(self.inputs.scale_a))
        if outcome.verdict == "unknown":
            return outcome.why or "the time was up"
        self.never = (*self.never, direct(self.asker.proved[-1]))
        return None

    def _holds(self, proof: Proof) -> Holds | Fails | Unknown:
        self.progress("what the compiler makes is run")
        self.check_compiled()
        return super()._holds(together(*self.never, proof))

    def check_compiled(self) -> None:
        """Run what the compiler makes beside the terms.  Raises HardwareError where it gives anything else."""
        drawn = [self.drawn(_RUN, 5), generate(self.spec, _RUN // 4, seed=6, distributions=("edge",))]
        rows = Rows.join(drawn)
        rows = rows.at(self._allowed(rows))
        mine = self.results_known(rows)
        theirs = native_results(self.program, rows)
        wrong = np.flatnonzero(mine != theirs)
        if len(wrong):
            row = int(wrong[0])
            raise HardwareError(
                f"{self.plain.name} was read wrongly: for {rows[row].text} the compiler's code gives "
                f"{int(theirs[row]):#x}, and its terms {int(mine[row]):#x}; please report it with the file"
            )
        self.notes = (*self.notes, f"what the compiler makes of it gives the same d on {len(rows):,} rows")

    def found_wrong(self, found: FoundCase, minimality: tuple[str, ...]) -> Fails:
        """The answer that an input gives; where behaviour is undefined, which."""
        ways = self._undefined_at(found.codes)
        if not ways:
            return super().found_wrong(found, minimality)
        model = int(self.model_results(Rows.of([found.codes]))[0])
        run = Run(self.expected, self.spec, found.codes, model)
        notes = (*(f"undefined behaviour: {way}" for way in ways[:_NAMED]), *self.notes)
        witness = CaseWitness(self.instruction, (run,), notes=notes, minimality=minimality)
        return Fails(self.question, witness, "The function's behaviour is undefined here:", self.asker.elapsed)

    def _undefined_at(self, codes: Codes) -> list[str]:
        """The ways to undefined behaviour that an input takes, in the order of the program."""
        pairs = [
            (term, z3.BitVecVal(code, term.size()))
            for term, code in zip(self.inputs.flat(), codes.flat(), strict=True)
        ]

        def taken(findings: Sequence[Finding]) -> list[str]:
            there = [x for x in findings if not z3.is_false(z3.simplify(z3.substitute(x.when, *pairs)))]
            return list(dict.fromkeys(map(str, there)))

        ways = taken(self.program.findings)
        return [*ways, *(f"it comes from {each}" for each in taken(self.program.origins))] if ways else []


def _trapped(plain: Module, findings: Sequence[Finding]) -> Module:
    """The module whose d may be anything where behaviour is undefined."""
    d = plain.outputs["d"]
    anything = z3.BitVec(_ANYTHING, d.size())
    whole = z3.If(z3.Or([each.when for each in findings]), anything, d)
    used = {**plain.undefined, **_others(findings, plain), f"{_ANYTHING} ": anything}
    return replace(plain, outputs={"d": whole}, undefined=used)


def _others(findings: Sequence[Finding], plain: Module) -> dict[str, z3.BitVecRef]:
    """Constants that may be anything in the findings, besides those in d."""
    from mmaformal.hardware.rebuild import constants_in

    known = {str(x) for x in (*plain.inputs.values(), *plain.undefined.values())}
    found = constants_in([each.when for each in findings])
    return {
        f"{name} ": x for name, x in found.items() if isinstance(x, z3.BitVecRef) and " " in name and name not in known
    }


def _codes(terms: Sequence[z3.BitVecRef], model: Mapping[str, int], k: int, scales: int) -> Codes:
    """The codes of a solver's model; all bits as it has them."""
    values = [model.get(str(x), 0) for x in terms]
    a, b, c, rest = values[:k], values[k : 2 * k], values[2 * k], values[2 * k + 1 :]
    return Codes(tuple(a), tuple(b), c, tuple(rest[:scales]), tuple(rest[scales:]))


__all__ = ["SigningProgram", "signoff_c"]
