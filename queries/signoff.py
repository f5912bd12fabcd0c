"""Does a hardware design compute a model, for all inputs?  If not, the smallest input on which it does not.

    print(signoff("fda.sv", hopper["HMMA.16816.F32"]))

The design is combinational SystemVerilog, Verilog or BTOR2 with the ports a, b, c, scale_a and scale_b (where there are
scales) and d (`mmaformal.hardware.module`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.alike import Symmetries
from mmaformal.cases.codes import is_nan, is_zero, one_nan
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.questions import FoundCase, Places
from mmaformal.cases.run import compiled_results
from mmaformal.cases.shrink import fewer_products, shrink
from mmaformal.cases.smallest import SmallestSearch
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.encodings import smt
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.hardware.blackbox import Unit
from mmaformal.hardware.compiled import Compiled
from mmaformal.hardware.designs import Wired, wired
from mmaformal.hardware.matching import Follower, Matched, values_of
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.simulate import simulate
from mmaformal.hardware.sources import Sources, sources_of
from mmaformal.hardware.undefined import Choice, choose, constants_undefined, drawn, unused
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError, direct
from mmaformal.queries.constraints import Constraint, as_constraints, pins_of
from mmaformal.queries.elimination import RecordedRows
from mmaformal.queries.elimination import differ as rows_differ
from mmaformal.recordings.read import read, require_fit
from mmaformal.result import Result
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Outcome
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

#: Random cases on which a design is run before anything is proved, by distributions, and those that nodes are
#: compared on.
_CASES, _SEEN = 4000, 1000
#: Random cases that a compiled design is run on, and the seconds that have to be left for that.
_MANY, _WORTH = 100_000, 20.0
#: What may be alike, and what is said of it.
_ALIKE = {"nan": "all NaNs alike", "zero": "signs of zeros alike"}
#: Seconds that reading a design may take, however little time there is.
_READING = 60.0
#: The part of the time left in which a witness is made smaller; in the rest it is run once more.
_SHRINKING = 0.9
#: The part of the time left for d as one question, as long as single nodes are worth more time; and how much more of it
#: each has in the next round.
_DIRECT, _MORE = 1 / 3, 4.0
#: What is left that is not worth another round, in seconds.
_LEAST = 0.5
#: With which values of what is undefined cases are run: all 0, all 1, random.
_UNDEFINED = (0, 1, 2)
#: Undefined bits that a witness names one by one.
_NAMED = 8
#: Rows of a recording that are run at once.
_BLOCK = 100_000


def signoff(
    files: str | Path | Sequence[str | Path] | Unit,
    instruction: Instruction | str,
    *,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    includes: Sequence[str | Path] = (),
    lists: Sequence[str | Path] = (),
    ports: PortMap | Mapping[str, str] | None = None,
    ties: Mapping[str, str | int] | None = None,
    cycles: int | None = None,
    held: bool = False,
    where: Constraint | str | Iterable[Constraint | str] = (),
    alike: Collection[str] = (),
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    told: Progress | None = None,
    cache: Cache = False,
) -> Holds | Fails | Unknown:
    """Prove that a design gives the model's d for every input, or find the smallest input for which it does not.

    files: SystemVerilog or Verilog files read together, or one of BTOR2; or a design that `from_rtl` has read, which
    stands for the model once that is proved for every input and every bit of d.  top: the module (default: the one no
    other uses).  defines: of the preprocessor, `NAME` or `NAME=VALUE`.  parameters: of the module `top`, by name.
    includes: folders of include files.  lists: file lists, as simulators take them with -f.

    ports: where operands are, `{"a[0]": "ops_i[15:0]", "d": "result_o"}`.  ties: numbers of other inputs.  cycles:
    unroll a design with feedback from reset for so many.  held: operands stay until d is there.  where: constraints on
    the inputs, as `find_difference` takes them.  alike: "nan", any NaN is right where the model gives one, as it is
    where the model's NaN is not canonical; "zero", so is a zero of either sign.

    timeout: seconds in all.  memory: megabytes for each process of `solver` (default: all that are installed).  told:
    is called with the wiring before anything is asked.  cache: as `prove` has it.  What the design leaves undefined may
    be anything: each x, each signal that nothing drives, what is read beyond a vector's ends, and what is divided by
    zero.  Where d does not depend on some input, the answer says so in its notes.

    Raises HardwareError for a design that cannot be read, feeds back to itself where `cycles` is not given, or lacks a
    port for an operand; ValueError for a `where` that no input satisfies.
    """
    caller(progress)
    same = Same(as_constraints(where), alike)
    instruction, say = instruction_meant(instruction), progress or (lambda _: None)
    if isinstance(files, Unit):
        _check_takes(files, instruction)
        design = files.design
    else:
        sources = sources_of(files, top, defines, parameters)
        sources = replace(sources, includes=tuple(map(Path, includes)), lists=tuple(map(Path, lists)))
        mapped = port_map(ports, ties, cycles)
        design = read_design(sources, instruction, mapped, held, max(timeout, _READING), progress, told)
    with session(solver, memory, cache) as portfolio:
        signed = Signing.of(design, instruction, Asker(portfolio, timeout), say, same)
        answer = signed.asker.within(signed.question, signed.answer)
    assert isinstance(answer, Holds | Fails | Unknown)
    if isinstance(files, Unit) and isinstance(answer, Holds) and not (same.where or same.alike):
        files.proved = (instruction, answer)
    return answer


def _check_takes(unit: Unit, instruction: Instruction) -> None:
    """Raise ValueError where a design that was read takes other types than an instruction."""
    mine = (*Types.of(cast(DotAdd, unit.shape)), unit.shape.k)
    if mine != (*Types.of(instruction.spec), instruction.k):
        raise ValueError(f"{unit.name} was read for other types, or another K, than {instruction.label} has")


def read_design(
    sources: Sources,
    instruction: Instruction,
    said: PortMap,
    held: bool,
    timeout: float,
    progress: Progress | None = None,
    told: Progress | None = None,
) -> Wired:
    """A design wired to an instruction's operands.  Raises HardwareError as `signoff` does."""
    (progress or (lambda _: None))("the design is read")
    return wired(sources, instruction.spec, said, held=held, timeout=timeout, progress=told or progress)


@dataclass(frozen=True)
class Same:
    """What counts as the same: for which inputs, and which results are alike."""

    where: tuple[Constraint, ...] = ()
    alike: Collection[str] = ()

    def __post_init__(self) -> None:
        for each in self.alike:
            if each not in _ALIKE:
                raise ValueError(f"alike is {' or '.join(_ALIKE)}, not {each!r}")

    @property
    def said(self) -> str:
        """What follows `for every input` in a statement."""
        given = f" where {'; '.join(map(str, self.where))}" if self.where else ""
        return ", ".join([given, *(said for name, said in _ALIKE.items() if name in self.alike)])

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        """Claims that the constraints make of inputs, the codes that are given among them."""
        pairs = zip(inputs.flat(), symbolic_inputs(spec, pins_of(spec, self.where)).flat(), strict=True)
        given = [x == code for x, code in pairs if z3.is_bv_value(code)]
        return [*given, *(term for each in self.where for term in each.on_inputs(spec, inputs))]

    def on_result(self, spec: DotAdd, result: z3.BitVecRef) -> list[z3.BoolRef]:
        """Claims that the constraints make of a result."""
        return [term for each in self.where for term in each.on_result(spec, result)]


@dataclass(frozen=True, repr=False)
class Simulated(Result):
    """A design run on the rows of a recording."""

    recording: str
    recorded_rows: int
    wrong: int  #: rows whose d is another
    first: str  #: the first of them, if there is one

    @property
    def verdict(self) -> str:
        """`match` or `mismatch`."""
        return "mismatch" if self.wrong else "match"

    def __str__(self) -> str:
        first = f": {self.first}" if self.first else ""
        return f"{self.recording}: {counted(self.recorded_rows, 'row')}, {self.wrong:,} wrong{first}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "recording": self.recording,
            "rows": self.recorded_rows,
            "wrong": self.wrong,
            "first": self.first,
        }


def _only_module(files: Sequence[Path]) -> str:
    """The module that is named as its file, or the only one there is.  Raises HardwareError."""
    try:
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(f"{files[0]} cannot be read: {error}") from None
    names: list[str] = re.findall(r"^\s*module\s+(\w+)", text, re.MULTILINE)
    named = [name for name in names if name == files[0].stem] or names
    if len(named) != 1:
        raise HardwareError(f"there are {len(names)} modules in {files[0].name}: name one with --top")
    return named[0]


def on_recording(
    files: Sequence[Path],
    instruction: Instruction,
    path: Path,
    *,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    simulator: str | None = None,
    timeout: float = 600.0,
) -> Simulated:
    """Run a design on every row of a recording, and compare its d with the recorded one.

    Raises HardwareError as `simulate` does, RecordingError for what is no recording, or one of other types.
    """
    spec, recording = instruction.spec, read(path)
    require_fit(recording, instruction)
    types = Types.of(spec)
    wrong, first, done = 0, "", 0
    for block in recording.blocks(_BLOCK):
        given = RecordedRows.of(block, types, spec.k)
        d = simulate(
            files,
            spec,
            given.rows,
            top or _only_module(files),
            defines=defines,
            parameters=parameters,
            simulator=simulator,
            timeout=timeout,
        )
        differ = rows_differ(spec, d, given.d)
        if differ.any() and not first:
            row = int(np.flatnonzero(differ)[0])
            first = f"row {done + row}: recorded {int(given.d[row]):#x}, the design gives {int(d[row]):#x}"
        wrong, done = wrong + int(differ.sum()), done + len(d)
    return Simulated(path.name, done, wrong, first)


def port_map(
    ports: PortMap | Mapping[str, str] | None, ties: Mapping[str, str | int] | None, cycles: int | None
) -> PortMap:
    """What is said of the ports, as one."""
    found = ports if isinstance(ports, PortMap) else PortMap(dict(ports or {}))
    found = found.with_more({}, {name: str(value) for name, value in (ties or {}).items()})
    return found if cycles is None else replace(found, cycles=cycles)


def check_names(module: Module, inputs: Inputs) -> None:
    """Raises HardwareError where what is undefined has the name of an input, or a name twice: both would be one."""
    taken = {str(x) for x in inputs.flat()}
    for constant in constants_undefined(module):
        if str(constant) in taken:
            raise HardwareError(
                f"{module.name}: what is undefined is called {constant}, as another signal is"
            )
        taken.add(str(constant))


def same_d(spec: DotAdd, same: Same, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
    """Return the claim that two results are the same d of a model, or count as the same."""
    fmt, alike = spec.d_format, [mine == model]
    if "nan" in same.alike or not spec.nan_is_canonical:
        alike.append(z3.And(is_nan(mine, fmt), is_nan(model, fmt)))
    if "zero" in same.alike:
        alike.append(z3.And(is_zero(mine, fmt), is_zero(model, fmt)))
    return z3.Or(alike) if len(alike) > 1 else alike[0]


def differ(spec: DotAdd, same: Same, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
    """Return the claim that two results are not the same d of a model."""
    return z3.Not(same_d(spec, same, mine, model))


class Signing:
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
        same: Same | None = None,
    ) -> None:
        self.instruction, self.spec, self.inputs, self.module = instruction, instruction.spec, inputs, module
        self.asker, self.progress = asker, progress
        self.why = ""  #: why a proof that was complete but for its last lemma was none
        self.same = same = same or Same()
        self.nans, self.zeros = "nan" in same.alike or not self.spec.nan_is_canonical, "zero" in same.alike
        self.question = f"{module.name} gives the d of {instruction.label} for every input{same.said}"
        self._compiled: Compiled | None = None
        self.notes = (*told, *unused(module, inputs))

    @classmethod
    def of(
        cls,
        design: Wired,
        instruction: Instruction,
        asker: Asker,
        progress: Progress,
        same: Same | None = None,
    ) -> Signing:
        """Of a design that is read.  Raises HardwareError where its undefined signals are called as inputs are."""
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
            outcome, found = SmallestWrong(self).least(self.asker.left * share)
            if found is not None:
                return self.fails(found.codes)
            if outcome.verdict == "unsat":
                return self._holds(direct(self.asker.proved[-1]))
            if self.asker.left < _LEAST or not follower.unsettled:
                return self._unknown(matched)
            effort *= _MORE

    def check_some_input(self) -> None:
        """Raise ValueError where no input satisfies the constraints: of none, anything would be proved."""
        claims = self.same.on_inputs(self.spec, self.inputs)
        if claims and self.asker.meet(z3.And(claims)).verdict == "unsat":
            given = "; ".join(map(str, self.same.where))
            raise ValueError(f"no input satisfies {given}: there is nothing to compare")

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
        """What is proved of the SMT encoding's model is said of the instruction: of both encodings."""
        self.progress("the two encodings of the model agree")
        holds = Holds(self.question, proof, self.asker.elapsed, notes=self.notes)
        return of_both_encodings(holds, self.instruction, [self.spec], self.asker)

    # ---- running ----------------------------------------------------------------------------------------------------

    def random(self) -> Codes | None:
        """A case on which the design is wrong, of random ones."""
        for count, seed in ((400, 2), (_CASES, 3), (_MANY, 4)):
            if count == _MANY and not (self.compile() and self.asker.left > _WORTH):
                break
            rows = self.drawn(count, seed)
            wrong = np.flatnonzero(self.wrong(rows))
            if len(wrong):
                return rows[int(wrong[0])]
        return None

    def drawn(self, count: int, seed: int) -> Rows:
        """Random cases, in which inputs have the codes that constraints give them."""
        rows = generate(self.spec, count, seed=seed, distributions=(*DISTRIBUTIONS, "edge"))
        for name, code in pins_of(self.spec, self.same.where).items():
            side, place = getattr(rows, name[0]), int(name[1:] or 0)
            side[(slice(None), place) if name[1:] else slice(None)] = code
        return rows

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
            wrong |= self.is_shown(rows, mine, model) & self._allowed_results(mine)
        where = np.flatnonzero(wrong)
        wrong[where] &= self._allowed(rows.at(where))
        return wrong

    def model_results(self, rows: Rows) -> NDArray[np.uint64]:
        """The d that is expected for rows."""
        return compiled_results(self.spec, rows)

    def model_term(self, inputs: Inputs) -> z3.BitVecRef:
        """The d that is expected, as a term."""
        return smt.dot_add(self.spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).result

    def is_shown(self, rows: Rows, mine: NDArray[np.uint64], model: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """The rows that are looked for, by the d of both: here those on which the two differ."""
        return np.asarray(self.one_of_each(mine) != self.one_of_each(model))

    def claims(self, inputs: Inputs, mine: z3.BitVecRef, model: z3.BitVecRef) -> list[z3.BoolRef]:
        """What is claimed of a case that is looked for."""
        return [self.differ(mine, model)]

    def _allowed(self, rows: Rows) -> NDArray[np.bool_]:
        """The rows that satisfy the constraints, on their inputs and on the model's results."""
        claims = self.same.on_inputs(self.spec, self.inputs)
        if not claims or not len(rows):
            return np.ones(len(rows), np.bool_)
        found = np.broadcast_to(evaluate(z3.And(claims), values_of(self.inputs, rows)), len(rows))
        return found.astype(np.bool_) & self._allowed_results(self.model_results(rows))

    def _allowed_results(self, d: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """The results that satisfy the constraints."""
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

    def is_same(self, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
        """Return the claim that the design's d is the model's, or counts as it."""
        return same_d(self.spec, self.same, mine, model)

    def differ(self, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
        """Return the claim that the design's d is not the model's."""
        return differ(self.spec, self.same, mine, model)

    # ---- a case on which it is wrong -----------------------------------------------------------------------------

    def fails(self, codes: Codes) -> Fails:
        """The answer that a case leads to: the smallest on which it is wrong, as far as the time goes."""
        search = SmallestWrong(self, _SHRINKING)
        found = search.at_places(FoundCase(search.made_smaller(codes), ()))
        search.note(found)
        found = search.shrink(found)
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
    """What is said of the undefined bits that a wrong d needs."""
    said = [f"{name} = X: 0 or 1; in the design's d above it is {bit}" for name, bit in choice.needed.items()]
    more = len(said) - _NAMED
    if more <= 0:
        return said
    return [*said[:_NAMED], f"{counted(more, 'more undefined bit')} of which the same is to be said"]


class SmallestWrong(SmallestSearch):
    """The search for a small case on which the design is wrong; no two cases are known to be alike."""

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

    def least(self, limit: float) -> tuple[Outcome, FoundCase | None]:
        """Whether there is a case at all."""
        return self.ask(None, "all inputs at once", f"{self.nothing} for every input", limit=limit)

    def made_smaller(self, codes: Codes) -> Codes:
        def shows(cases: Sequence[Codes]) -> list[bool]:
            return [bool(x) for x in self.signed.wrong(Rows.of(cases))]

        return shrink(self.spec, shrink(self.spec, codes, shows, fewer_products), shows)

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        signed, spec = self.signed, self.spec
        pairs = list(zip(signed.inputs.flat(), inputs.flat(), strict=True))
        mine = z3.substitute(signed.module.outputs["d"], *pairs)
        model, same = signed.model_term(inputs), signed.same
        given = same.on_inputs(spec, inputs) if same.where else []
        claims = signed.claims(inputs, mine, model)
        return [*claims, *given, *same.on_result(spec, mine), *same.on_result(spec, model)], []

    def find_licences(self) -> Symmetries:
        return Symmetries(list(range(self.spec.k)), exchange=False, signs=False, zeros="any")
