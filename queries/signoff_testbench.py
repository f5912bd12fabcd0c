"""Testbenches for others of what signing off found: `mmaformal.hardware.testbench` of the inputs of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import z3

from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows, symbolic_inputs
from mmaformal.cases.run import quick_results
from mmaformal.cases.witness import CaseWitness
from mmaformal.hardware.designs import Wired, wired
from mmaformal.hardware.module import Module, codes_at, ports_of
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.testbench import Bench, Stimulus
from mmaformal.hardware.undefined import choose
from mmaformal.instruction import Instruction
from mmaformal.queries.comparing import Agreement
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.signing import claim_differ
from mmaformal.queries.signoff_all import Kinds
from mmaformal.shown_stages import explain_case
from mmaformal.solver.answers import Fails
from mmaformal.spec import DotAdd

#: Random cases of a design of which no input is known on which it is wrong.
_RANDOM = 8


def write_testbench(
    folder: str | Path,
    sources: Sources,
    instruction: Instruction,
    answer: object,
    *,
    said: PortMap | None = None,
    held: bool = False,
    where: Constraint | str | Iterable[Constraint | str] = (),
    alike: Collection[str] = (),
) -> list[Path]:
    """Write testbenches of the inputs that an answer of `signoff` or `signoff_all` has, and return their paths.

    Where it has none, random cases are written.  Raises HardwareError as `signoff` does, and for a design of BTOR2.
    """
    spec, same = instruction.spec, Agreement(as_constraints(where), alike)
    design = wired(sources, spec, said, held=held)
    cases = [
        _case(instruction, design, same, title, codes, got) for title, codes, got in _found(answer)
    ] or _random(instruction)
    name = design.module.name
    question = f"{name} gives the d of {instruction.label} for every input{same.said}"
    bench = Bench(
        sources, name, spec, design.driven, question, cases, _same(spec, same), _allowed(spec, same)
    )
    return bench.write(Path(folder))


def _found(answer: object) -> list[tuple[str, Codes, int]]:
    """The inputs of an answer, with what each shows and the design's d there."""
    if isinstance(answer, Kinds):
        named = [(each.kind, each.answer) for each in answer.kinds if each.answer is not None]
    else:
        named = [("the smallest input that was found", answer)] if isinstance(answer, Fails) else []
    return [
        (kind, each.witness.codes, each.witness.results[0])
        for kind, each in named
        if isinstance(each.witness, CaseWitness)
    ]


def _case(
    instruction: Instruction, design: Wired, same: Agreement, title: str, codes: Codes, got: int
) -> Stimulus:
    """A case, with the values of inputs that may be anything with which the design is wrong."""
    spec = instruction.spec
    expected = int(quick_results(spec, Rows.of([codes]))[0])
    free: dict[str, int] = {}
    if design.module.undefined:
        pairs = [
            (term, z3.BitVecVal(code, term.size()))
            for term, code in zip(symbolic_inputs(spec).flat(), codes.flat(), strict=True)
        ]
        d = z3.simplify(z3.substitute(design.module.outputs["d"], *pairs))
        chosen = choose(design.module, claim_differ(spec, same, d, z3.BitVecVal(expected, d.size())))
        values = chosen.values if chosen is not None else {}
        free = {name.removesuffix(" (any)"): value for name, value in values.items()}
    story = explain_case(instruction, codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)
    return Stimulus(title, codes, expected, got, story, free)


def _random(instruction: Instruction) -> list[Stimulus]:
    """Random cases with what is expected."""
    rows = generate(instruction.spec, _RANDOM, seed=6)
    results = quick_results(instruction.spec, rows)
    return [Stimulus("at random", codes, int(d)) for codes, d in zip(rows.cases(), results, strict=True)]


def _same(spec: DotAdd, same: Agreement) -> Module:
    """The module that says whether x and y are the same d."""
    x, y = (z3.BitVec(name, spec.d_format.storage_bits) for name in "xy")
    equal = z3.If(claim_differ(spec, same, x, y), z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))
    return Module("mmaformal_same", {"x": x, "y": y}, {"same": z3.simplify(equal)})


def _allowed(spec: DotAdd, same: Agreement) -> Module | None:
    """The module that says whether operands, and the model's result y, satisfy the constraints."""
    if not same.where:
        return None
    ports = {name: z3.BitVec(name, bits) for name, bits in ports_of(spec).items()}
    x, y = (z3.BitVec(name, spec.d_format.storage_bits) for name in "xy")
    claims = same.on_inputs(spec, codes_at(ports, spec))
    claims += same.on_result(spec, y)
    allowed = z3.If(z3.And(claims), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    return Module("mmaformal_allowed", {**ports, "x": x, "y": y}, {"allowed": allowed})
