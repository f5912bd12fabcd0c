"""Does a hardware design compute a model, for all inputs?  If not, the smallest input on which it does not.

    print(signoff("fda.sv", hopper["HMMA.16816.F32"]))

The design is combinational SystemVerilog, Verilog or BTOR2 with the ports a, b, c, scale_a and scale_b (where there are
scales) and d (`mmaformal.hardware.module`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.alike import Licences
from mmaformal.cases.codes import is_nan
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import MOODS, generate
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.questions import Found, Places
from mmaformal.cases.run import compiled_results
from mmaformal.cases.shrink import fewer_products, shrink
from mmaformal.cases.smallest import Search
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.display import ShortRepr, counted
from mmaformal.encodings import smt
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.hardware.matching import Matched, follow, values_of
from mmaformal.hardware.module import HardwareError, Module, ports_of, with_codes
from mmaformal.hardware.simulate import simulate
from mmaformal.hardware.yosys import design as read_design
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError, direct
from mmaformal.proof.lemmas import Relay
from mmaformal.queries.classes import one_nan
from mmaformal.queries.elimination import Recorded
from mmaformal.queries.elimination import differ as rows_differ
from mmaformal.recordings.read import read, require_fit
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Outcome
from mmaformal.spaces.common import Types

#: Random cases on which a design is run before anything is proved, by moods, and those that nodes are compared on.
_CASES, _SEEN = 4000, 1000
#: The part of the time given in which a witness is made smaller.
_SHRINKING = 0.6
#: Rows of a recording that are run at once.
_BLOCK = 100_000

Progress = Callable[[str], None]


def signoff(
    files: str | Path | Sequence[str | Path],
    instruction: Instruction,
    *,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int] | None = None,
    timeout: float = 600.0,
    progress: Progress | None = None,
) -> Holds | Fails | Unknown:
    """Whether a design gives the model's d for every input.

    files: Verilog files read together by yosys, or one of BTOR2.  top: the module (default: the one no other uses).
    defines: of the preprocessor, `NAME` or `NAME=VALUE`.  parameters: of the module `top`, by name.  timeout:
    seconds in all.  Where the model's NaN is not canonical any NaN of the design is right.  What the design leaves
    undefined (x) may be anything.

    Raises HardwareError for a design that cannot be read, has registers, or other ports than the instruction.
    """
    paths = [Path(x) for x in ([files] if isinstance(files, str | Path) else files)]
    say = progress or (lambda _: None)
    inputs = symbolic_inputs(instruction.spec)
    say("yosys reads the design")
    module = read_design(paths, top, defines, parameters, with_codes(inputs), timeout)
    check_ports(module, instruction)
    with Relay() as portfolio:
        asker = Asker(portfolio, timeout)
        signed = _Signoff(instruction, inputs, module, asker, say)
        answer = asker.within(signed.question, signed.answer)
    assert isinstance(answer, Holds | Fails | Unknown)
    return answer


@dataclass(frozen=True, repr=False)
class Simulated(ShortRepr):
    """A design run on the rows of a recording."""

    recording: str
    rows: int
    wrong: int  #: rows whose d is another
    first: str  #: the first of them, if there is one

    def __str__(self) -> str:
        first = f": {self.first}" if self.first else ""
        return f"{self.recording}: {counted(self.rows, 'row')}, {self.wrong:,} wrong{first}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {"recording": self.recording, "rows": self.rows, "wrong": self.wrong, "first": self.first}


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
    parameters: Mapping[str, int] | None = None,
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
        given = Recorded.of(block, types, spec.k)
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


def check_ports(module: Module, instruction: Instruction) -> None:
    """Raises HardwareError where a design has not the ports of an instruction."""
    needed = {**ports_of(instruction.spec), "d": instruction.d_format.storage_bits}
    has = {name: bits for name, bits in module.ports.items() if not name.startswith("undefined_")}
    missing = [
        f"{name} of {bits} bits"
        for name, bits in needed.items()
        if has.get(name) != bits and name in module.outputs
    ]
    missing += [f"{name} of {bits} bits" for name, bits in needed.items() if name not in has]
    extra = [name for name in module.inputs if name not in needed and not name.startswith("undefined_")]
    if missing:
        said = ", ".join(f"{name} ({bits})" for name, bits in has.items())
        raise HardwareError(
            f"{module.name} has not the port {missing[0]} of {instruction.label}; it has {said}"
        )
    if extra:
        raise HardwareError(f"{module.name} has an input {extra[0]}, which {instruction.label} has not")


class _Signoff:
    def __init__(
        self, instruction: Instruction, inputs: Inputs, module: Module, asker: Asker, progress: Progress
    ) -> None:
        self.instruction, self.spec, self.inputs, self.module = instruction, instruction.spec, inputs, module
        self.asker, self.progress = asker, progress
        self.question = f"{module.name} gives the d of {instruction.label} for every input"

    def answer(self) -> Holds | Fails | Unknown:
        self.progress("random cases")
        wrong = self._random()
        if wrong is not None:
            return self._fails(wrong)
        matched, why = Matched(None, 0, 0), ""
        rows = generate(self.spec, _SEEN, seed=1, moods=(*MOODS, "edge"))
        try:
            matched = follow(self.asker, self.spec, self.inputs, self.module, rows, self.progress)
        except NotProvedError as error:
            why = str(error)
        if matched.proof is not None:
            return self._holds(matched.proof)
        outcome, found = self._search().least()
        if found is not None:
            return self._fails(found.codes, found)
        if outcome.verdict == "unsat":
            return self._holds(direct(self.asker.proved[-1]))
        ends = ", ".join(matched.unmatched[-6:])
        why = why or (
            f"{matched.proved} of {matched.nodes} nodes of the design are proved to be the model's, but not d; no "
            f"input was found on which it differs"
        )
        if ends:
            why += f"; named wires that are none of the model's: {ends}"
        return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)

    def _holds(self, proof: Proof) -> Holds | Fails | Unknown:
        """What is proved of the SMT wing's model is said of the instruction: of both wings."""
        self.progress("the two encodings of the model agree")
        return of_both_encodings(
            Holds(self.question, proof, self.asker.elapsed), self.instruction, [self.spec], self.asker
        )

    # ---- running ----------------------------------------------------------------------------------------------------

    def _random(self) -> Codes | None:
        """A case on which the design is wrong, of random ones."""
        for count, seed in ((400, 2), (_CASES, 3)):
            rows = generate(self.spec, count, seed=seed, moods=(*MOODS, "edge"))
            wrong = np.flatnonzero(self.wrong(rows))
            if len(wrong):
                return rows[int(wrong[0])]
        return None

    def results(self, rows: Rows) -> NDArray[np.uint64]:
        """The design's d."""
        found = evaluate(self.module.outputs["d"], values_of(self.inputs, rows, self.module))
        return np.broadcast_to(found, len(rows)).astype(np.uint64)

    def wrong(self, rows: Rows) -> NDArray[np.bool_]:
        """On which rows the design's d is not the model's."""
        mine, model = self.results(rows), compiled_results(self.spec, rows)
        if not self.spec.nan_is_canonical:
            mine, model = (one_nan(d, self.spec.d_format) for d in (mine, model))
        return np.asarray(mine != model)

    # ---- a case on which it is wrong -----------------------------------------------------------------------------

    def _search(self) -> _Smallest:
        return _Smallest(self)

    def _fails(self, codes: Codes, found: Found | None = None) -> Fails:
        search = self._search()
        if found is None:
            codes = search.made_smaller(codes)
        found = search.shrink(search.at_places(Found(codes, ())))
        rows = Rows.of([found.codes])
        runs = (
            Run(f"{self.module.name}, the design", self.spec, found.codes, int(self.results(rows)[0])),
            Run("the model", self.spec, found.codes, int(compiled_results(self.spec, rows)[0])),
        )
        witness = CaseWitness(self.instruction, runs, minimality=search.minimality)
        return Fails(self.question, witness, "The design gives another d:", self.asker.elapsed)


class _Smallest(Search):
    """The search for a small case on which the design is wrong; no two cases are known to be alike."""

    nothing = "the design is right"

    def __init__(self, signed: _Signoff) -> None:
        super().__init__(signed.spec, signed.asker, progress=signed.progress)
        self.signed = signed
        self._until = self.asker.elapsed + _SHRINKING * max(self.asker.left, 0)

    @property
    def left(self) -> float:
        return min(self._until - self.asker.elapsed, self.asker.left)

    def least(self) -> tuple[Outcome, Found | None]:
        """Whether there is a case at all."""
        return self.ask(None, "all inputs at once", "the design is right for every input")

    def made_smaller(self, codes: Codes) -> Codes:
        def shows(cases: Sequence[Codes]) -> list[bool]:
            return [bool(x) for x in self.signed.wrong(Rows.of(cases))]

        return shrink(self.spec, shrink(self.spec, codes, shows, fewer_products), shows)

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        signed, spec = self.signed, self.spec
        pairs = list(zip(signed.inputs.flat(), inputs.flat(), strict=True))
        mine = z3.substitute(signed.module.outputs["d"], *pairs)
        model = smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).result
        differ = mine != model
        if not spec.nan_is_canonical:
            differ = z3.And(differ, z3.Not(z3.And(is_nan(mine, spec.d_format), is_nan(model, spec.d_format))))
        return [differ], []

    def find_licences(self) -> Licences:
        return Licences(list(range(self.spec.k)), exchange=False, signs=False, zeros="any")


if __name__ == "__main__":
    from mmaformal.cli import main as command

    sys.exit(command(["signoff", *sys.argv[1:]]))
