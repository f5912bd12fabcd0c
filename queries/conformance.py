"""Is every result one that RISC-V's standard allows of a dot product of bf16, fp8 or fp32?

    mmaformal prove conformance riscv vfwbdota.vv.n4
    mmaformal prove conformance datapath "fma(k=4, a=fp32)"

Of bf16 and fp8 the standard leaves open how the products are cut into sets, in which order the sets' sums and c are
added, and how much more than fp32 is kept on the way; `analysis/riscv_freedom.py` lists the results that it allows.

`Holds` where the unit is one of the conforming ones, of which the results are proved equal: the standard's pseudo-code,
corrected, of as many products as a step takes, the sets' sums added to c one after another.  (Sets need not be of
neighbours: products are numbered as they are taken.)  Or where each result is that of one of these members, not of the
same for every input.  `Fails` with an input whose result is none of all those allowed.

Of fp32 it leaves open whether products are rounded, and the tree of additions to nearest (`analysis/riscv_fp32.py`).
`Holds` of a chain of IEEE additions of products, rounded or exact (fma), in whatever order.  Where it is not known
which NaN a unit gives, that is left aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import z3

from mmaformal.analysis import riscv_fp32
from mmaformal.analysis.riscv_freedom import NAN, TooManyError, allowed, is_of_standard
from mmaformal.cases.inputs import Codes, symbolic_inputs, with_products, zeros
from mmaformal.cases.numerical import find_case, shown
from mmaformal.cases.run import run
from mmaformal.cases.shrink import shrink
from mmaformal.display import counted
from mmaformal.encodings import smt
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.rvbna import EXPRESSIONS, Rvbna
from mmaformal.encodings.sfma import Sfma
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import direct
from mmaformal.queries.property import Property
from mmaformal.rounding import IEEE_FP32, NanRule
from mmaformal.shown_stages import code_text
from mmaformal.solver.answers import Answer, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd, Parameters
from mmaformal.witness import WitnessError

#: Results on the way that are listed of an input; where there are more, it is not known whether a result is allowed.
_LISTED = 1_000

#: Cases that a solver is asked for, each of other factors, until one of them is not allowed.
_MODELS = 32

#: Cases drawn in the search for a result that is not allowed.
_CASES = 600


def member(spec: DotAdd, size: int) -> DotAdd:
    """Returns the conforming unit of the corrected text with sets of `size` products, added to c one after another."""
    return spec.replace(parameters=Rvbna(size, tuple(EXPRESSIONS)))


def members(spec: DotAdd) -> Iterator[DotAdd]:
    """Yields the members with sets of 1, 2, 4, … products."""
    size = 1
    while size <= spec.k:
        yield member(spec, size)
        size *= 2


def _is_a_member(spec: DotAdd, asker: Asker) -> tuple[DotAdd, Proof] | None:
    """Returns the member that a unit is proved to be; None if it is not proved to be one."""
    for of in members(spec):
        if of == spec:
            proof = _proved_chain(spec, of.parameters.step_products, "of steps of the corrected text", asker)
            if proof is not None:
                return of, proof
        if facts_of(of).alike(of, spec):
            proof = facts_of(of).prove_alike(asker, of, spec, symbolic_inputs(spec))
            if proof is not None:
                return of, proof
    return None


def _proved_chain(spec: DotAdd, size: int, of: str, asker: Asker) -> Proof | None:
    """Returns the proof that a unit is a chain of steps of `size` products, each of which takes the c before it."""
    a, b, c = _inputs(spec)
    one, chain = spec.replace(k=size), c
    for k in range(0, spec.k, size):
        chain = smt.dot_add(one, a[k : k + size], b[k : k + size], chain).result
    same = smt.dot_add(spec, a, b, c).result == chain
    text = f"the unit is a chain {of}, {counted(size, 'product')} each"
    return direct(asker.proved[-1]) if asker.prove("chain", text, same).verdict == "unsat" else None


def _inputs(spec: DotAdd) -> tuple[tuple[z3.BitVecRef, ...], tuple[z3.BitVecRef, ...], z3.BitVecRef]:
    inputs = symbolic_inputs(spec)
    return inputs.a, inputs.b, inputs.c


def _allowed(spec: DotAdd, codes: Codes) -> set[int]:
    """Returns the results that are allowed of an input.  Raises TooManyError."""
    if riscv_fp32.is_of_standard(spec):
        return riscv_fp32.allowed(codes.a, codes.b, codes.c, _LISTED)
    return allowed(spec, codes.a, codes.b, codes.c, _LISTED)


def _outside(spec: DotAdd, codes: Codes, result: int) -> bool:
    """Whether a result is not allowed; False where that is not known."""
    if spec.d_format.is_nan(result) and not spec.nan_is_canonical:
        result = NAN  # which one it is, is not known
    try:
        return result not in _allowed(spec, codes)
    except TooManyError:
        return False


class _Search:
    """The search for a result that is not allowed."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction, self.spec = instruction, instruction.spec
        self.simple = [
            Instruction(f"sets of {of.parameters.step_products}", "riscv", 1, 1, of)
            for of in (members(self.spec) if is_of_standard(self.spec) else ())
        ]

    def breaks(self, codes: Codes, result: int) -> bool:
        """Whether the result of a case is not allowed; what a member gives is."""
        of_a_member = any(run(i, [codes]) == [result] for i in self.simple)
        return not of_a_member and _outside(self.spec, codes, result)

    def shows(self, cases: Sequence[Codes]) -> map[bool]:
        return map(self.breaks, cases, run(self.instruction, cases))

    def drawn(self) -> Codes | None:
        """Returns a small case among those drawn."""
        return find_case(self.instruction, self.breaks, count=_CASES)

    def solved(self, model: Mapping[str, int]) -> Codes | None:
        """Returns a solver's case, made smaller; None if its result is allowed, though no member's."""
        inputs = symbolic_inputs(self.spec)
        codes = inputs.codes(self.spec, {str(x): 0 for x in inputs.flat()} | dict(model))
        return shrink(self.spec, codes, self.shows) if next(self.shows([codes])) else None

    def answer(self, question: str, codes: Codes, asker: Asker) -> Fails:
        spec = self.spec
        right = sorted(_allowed(spec, codes))
        few = ", ".join(code_text(code, spec.d_format) for code in right[:4])
        more = f", and {len(right) - 4} more" if len(right) > 4 else ""
        note = f"the standard allows {few}{more}"
        witness = shown(self.instruction, codes, (note,), ("made smaller step by step, not proved minimal",))
        if witness.results[0] in right:
            raise WitnessError(
                f"{self.instruction.label}: {codes} was to give what is not allowed, and does not"
            )
        return Fails(question, witness, "its result is none of those that the standard allows", asker.elapsed)


def _settle_fp32(instruction: Instruction, question: str, asker: Asker) -> Answer:
    """Returns the answer for a unit of fp32."""
    spec = instruction.spec
    p = spec.parameters
    chains: dict[Parameters, str] = {
        Muladd(IEEE_FP32, IEEE_FP32): "products rounded to fp32",
        Sfma(IEEE_FP32): "exact products",
        Sfma(IEEE_FP32, NanRule.DEFAULT): "exact products",
    }
    if p in chains and spec.plain == spec:
        proof = _proved_chain(spec, 1, f"of additions of {chains[p]}, in fp32", asker)
        if proof is not None:
            text = f"it is the conforming unit that adds {chains[p]} to c one after another, in fp32"
            return Holds(question, proof, asker.elapsed, notes=(text,))
    search, payload = _Search(instruction), with_products(zeros(spec), {0: (NAN | 1, 0)})
    codes = payload if next(search.shows([payload])) else search.drawn()
    if codes is not None:
        return search.answer(question, codes, asker)
    why = "no input was found whose result is not allowed, and it is no chain of IEEE additions or fma"
    return Unknown(question, why, (), asker.elapsed)


def _settle(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label}: every result is one that RISC-V's standard allows"
    if riscv_fp32.is_of_standard(spec):
        return _settle_fp32(instruction, question, asker)
    if not is_of_standard(spec):
        why = f"the standard has no dot product of {spec.k} products, {spec.types}: it has bf16, fp8, fp32, into fp32"
        return Unknown(question, why, (), asker.elapsed)
    found = _is_a_member(spec, asker)
    if found is not None:
        of, proof = found
        size = of.parameters.step_products
        sets = f"{spec.k // size} sets of {size}" if size < spec.k else f"one set of {size}"
        note = f"it is the conforming unit of {sets} products, added to c in this order"
        return Holds(question, proof, asker.elapsed, notes=(note,))
    search = _Search(instruction)
    codes = search.drawn()
    if codes is not None:
        return search.answer(question, codes, asker)
    return _one_of_the_members(search, question, asker)


def _outside_all(search: _Search, no_members: z3.BoolRef, asker: Asker) -> Codes | None:
    """Returns a case whose result is not allowed, of those that are no member's; None if none of some is.

    The standard allows more than the members' results, so a solver's case may be one of them: then factors of another
    case are asked for.
    """
    inputs, others = symbolic_inputs(search.spec), [no_members]
    for _ in range(_MODELS):
        met = asker.meet(z3.And(others))
        if met.verdict != "sat":
            return None
        codes = search.solved(met.model)
        if codes is not None:
            return codes
        others.append(z3.Or([x != met.model.get(str(x), 0) for x in (*inputs.a, *inputs.b)]))
    return None


def _one_of_the_members(search: _Search, question: str, asker: Asker) -> Answer:
    """Asks of the bits whether each result is that of some member, not of the same for every input."""
    spec, inputs = search.spec, _inputs(search.spec)
    result = smt.dot_add(spec, *inputs).result
    same = z3.Or([result == smt.dot_add(of, *inputs).result for of in members(spec)])
    text = "each result is that of a conforming unit with sets of 1, 2, 4, … products"
    outcome = asker.prove("one of the members", text, same)
    if outcome.verdict == "unsat":
        return Holds(question, direct(asker.proved[-1]), asker.elapsed)
    codes = _outside_all(search, z3.Not(same), asker) if outcome.verdict == "sat" else None
    if codes is not None:
        return search.answer(question, codes, asker)
    why = "no input was found whose result is not allowed; that each is of a member with sets of 1, 2, 4, … products"
    why += " is not so" if outcome.verdict == "sat" else f" is not settled: {outcome.why}"
    return Unknown(question, why, tuple(asker.proved), asker.elapsed)


PROPERTY = Property(
    "conformance",
    "d is one of the results that RISC-V's standard allows of a dot product",
    _settle,
)
