"""Facts of a unit that changes signs (`DotAdd.negated`), or does not read c: those of the same unit without (`_plain`),
given other codes.

A change of signs maps codes onto codes, and changes the sign of the number that each is, and nothing else; so what is
proved of the plain unit for all codes is true of the changed ones:

- d is what the plain unit gives, changed: by definition, and proved as a claim about terms (`prove_signs`);
- where the plain unit's d is its exact sum, rounded once, or off by so much before, this one's d is, of
  `DotAdd.exact_sum`: if the sign of d is changed, ρ has to round x and −x alike;
- an order of c, or of a product, is turned round by each change of sign on its way to d: an even number of them keep
  it, with an odd number d falls, and an input shows it;
- where c is not read, it is −0, one of the codes that the plain unit was proved for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.encodings import Traces
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.one_step import one_step
from mmaformal.cases.out_of_order import OutOfOrder, is_out_of_order, not_below, shown_out_of_order, two_runs
from mmaformal.cases.shrink import size
from mmaformal.encodings import smt
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import StepSum
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.encoding_links import InnerTraces, link_code, link_inputs
from mmaformal.proof.kernel import NotProvedError, Rule, demand
from mmaformal.proof.lemmas import Argument
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.rules import Theory, instance
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import coded_number, larger_product

SIGNS = Rule(
    "changes of signs",
    "what is proved of a unit and its exact sum for all codes holds of codes with their signs changed; that d is what "
    "the unit gives for those, changed, and that a change of sign is all that happens to a number, is proved",
)


def _negative(code: int, fmt: Format) -> int:
    """The code with its sign changed; a NaN as it is."""
    return code if fmt.is_nan(code) else code ^ fmt.sign_mask


def changed(spec: DotAdd, codes: Codes) -> Codes:
    """The codes that the plain unit is given for those that `spec` is; and the other way round, if c is read."""
    a = tuple(_negative(x, spec.a_format) for x in codes.a) if "a" in spec.negated else codes.a
    c = _negative(codes.c, spec.c_format) if "c" in spec.negated else codes.c
    return replace(codes, a=a, c=c if spec.reads_c else spec.c_format.sign_mask)


def changed_inputs(spec: DotAdd, x: Inputs) -> Inputs:
    """Return the terms that the plain unit is given for those that `spec` is, as `changed` does of codes."""
    stages = Stages()
    a = tuple(stages.change_sign(code, spec.a_format) for code in x.a) if "a" in spec.negated else x.a
    c = stages.change_sign(x.c, spec.c_format) if "c" in spec.negated else x.c
    return replace(x, a=a, c=c if spec.reads_c else z3.BitVecVal(spec.c_format.sign_mask, c.size()))


def _plain(instruction: Instruction) -> Instruction:
    """The instruction without changes of signs."""
    name = f"{instruction.name}[signs as they are]"
    return replace(instruction, spec=instruction.spec.plain, name=name, aliases=())


class SignedFacts(Facts[AnyStep]):
    """Those of another unit's `facts`, and of changes of signs around it."""

    def __init__(self, facts: Facts[AnyStep]) -> None:
        super().__init__(facts.algorithm)
        self.inner = facts

    # ---- both encodings

    def equal(self, argument: Argument, traces: Traces[AnyStep]) -> None:
        """Derive that changed codes are equal, what the plain unit's facts derive, and that its changed result is."""
        spec, codes = traces.spec, link_inputs(argument, traces)
        mine, other = traces.executable.inner, traces.smt.inner
        demand(mine is not None and other is not None, "an encoding changes no signs")
        assert mine is not None
        assert other is not None
        text = "signs are changed alike"
        a, c = list(codes.a), codes.c
        if "a" in spec.negated:
            a = [
                argument.derive("signs", text, [link_code(x, y)], [link])[0]
                for x, y, link in zip(mine.a, other.a, a, strict=True)
            ]
        if "c" in spec.negated:
            (c,) = argument.derive("signs", text, [link_code(mine.c, other.c)], [c])
        if not spec.reads_c:
            (c,) = argument.derive("signs", "a c that is not read is −0", [link_code(mine.c, other.c)])
        within = InnerTraces(
            spec.plain,
            replace(traces.inputs, a=other.a, c=other.c),
            replace(traces.lanes, a=mine.a, c=mine.c),
            replace(traces.executable, result=mine.result, inner=None),
            replace(traces.smt, result=other.result, inner=None),
            codes._replace(a=a, c=c),
        )
        self.inner.equal(argument, within)
        if "d" in spec.negated:
            given = link_code(mine.result, other.result)
            result = link_code(traces.executable.result, traces.smt.result)
            argument.derive("signs", text, [result], [given])

    # ---- two runs on related inputs

    def nan_of_operands(self, spec: DotAdd) -> bool:
        return self.inner.nan_of_operands(spec.plain)

    # ---- two models

    def but_for_nans(self, spec: DotAdd) -> DotAdd | None:
        other = self.inner.but_for_nans(spec.plain)
        return None if other is None else spec.replace(parameters=other.parameters)

    def same_but_nans(self, spec: DotAdd, other: DotAdd) -> Pairing:
        """The argument of the units without changes of signs: these keep NaNs, and change equal codes alike."""
        return self.inner.same_but_nans(spec.plain, other.plain)

    # ---- sums

    def sums(self, spec: DotAdd, step: AnyStep) -> list[StepSum]:
        if not spec.reads_c:
            return self.inner.sums_without_c(spec.plain, step)
        return self.inner.sums(spec.plain, step)

    def largest_case(self, spec: DotAdd) -> Codes:
        return changed(spec, self.inner.largest_case(spec.plain))

    def first_sum(self, step: object) -> object:
        return self.inner.first_sum(step)

    # ---- codes of results

    @property
    def unreachable(self) -> Sequence[Callable[[DotAdd], tuple[Pairing, int, str]]]:  # type: ignore[override]
        ways = [partial(_unless_changed, way) for way in self.inner.unreachable]
        return [*ways, *(partial(_unread, way) for way in self.inner.unreachable_without_c)]

    def every_exact_sum(self, spec: DotAdd) -> Rule:
        return self.inner.every_exact_sum(spec)

    # ---- one run, against the exact sum

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_signs(proving, spec)
        if spec.reads_c:
            self.inner.rounds_exact_sum(proving, spec.plain)
        else:
            self.inner.rounds_exact_sum_without_c(proving, spec.plain)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        _, signs = claims_of(proving, lambda: prove_signs(proving, spec))
        exact = self.inner.exactness(proving, spec.plain)
        text = f"of the codes with their signs changed, d being {spec.exact_sum}: {exact.text}"
        return replace(exact, conclusion=z3.And(exact.conclusion, signs), text=text)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        prove_signs(proving, instruction.spec)
        return self.inner.error_bound(_plain(instruction), proving)

    # ---- two runs in order

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        spec = instruction.spec
        runs = two_runs(spec)
        if not spec.reads_c:
            text = "c is not read, so the results are the same"
            theory.claim("c not read", text, runs.first.result == runs.second.result)
            theory.claim("order", text, runs.statement, [runs.first.result == runs.second.result])
            theory.theorem(text, runs.statement)
            return None
        if spec.c_sign < 0:
            return falls(instruction, lambda x: _other_c(spec, x), "another c")
        found = self.inner.monotone_in_c(_plain(instruction), theory)
        if found is not None:
            return falls(instruction, lambda x: _other_c(spec, x), "another c")
        own, x = two_runs(spec.plain), symbolic_inputs(spec)
        first, second = (changed_inputs(spec, replace(x, c=c)) for c in runs.c)
        back = "c" in spec.negated
        c = (second.c, first.c) if back else (first.c, second.c)
        pairs = [*zip(symbolic_inputs(spec.plain).a, first.a, strict=True), *zip(own.c, c, strict=True)]
        said = instance(theory, own.statement, _moved(pairs))
        results = [each.inner.result if each.inner else each.result for each in (runs.first, runs.second)]
        _conclude(theory, spec, runs.c if back else None, results, said, runs.statement, runs)
        return None

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        spec = instruction.spec
        if spec.product_sign < 0:
            return falls_with_products(instruction)
        found = self.inner.monotone_in_product(_plain(instruction), theory)
        if found is not None:
            return falls_with_products(instruction)
        if "a" in spec.negated or "d" in spec.negated:
            self.unsupported("whether d follows a product whose sign is changed twice")
        x = symbolic_inputs(spec)
        for k in range(spec.k):
            own, mine = larger_product(spec.plain, k), larger_product(spec, k)
            said = instance(theory, own.statement, _moved([(x.c, changed_inputs(spec, x).c)]))
            text = f"d is not smaller if product {k} is not"
            theory.claim(f"product {k}", text, mine.statement, [said])
            theory.theorem(text, mine.statement)
        return None


def _unless_changed(
    way: Callable[[DotAdd], tuple[Pairing, int, str]], spec: DotAdd
) -> tuple[Pairing, int, str]:
    """The argument that a plain unit gives no such code, of one whose d is what that gives."""
    demand("d" not in spec.negated and spec.reads_c, "the sign of d is changed, or c is not read")
    return way(spec.plain)


def _unread(way: Callable[[DotAdd], tuple[Pairing, int, str]], spec: DotAdd) -> tuple[Pairing, int, str]:
    demand(not spec.reads_c, "c is read")
    return way(spec)


def _moved(pairs: Sequence[tuple[z3.ExprRef, z3.ExprRef]]) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
    return [(x, y) for x, y in pairs if not x.eq(y)]


def _conclude(
    theory: Theory,
    spec: DotAdd,
    c: tuple[z3.BitVecRef, z3.BitVecRef] | None,
    results: Sequence[z3.BitVecRef],
    said: z3.BoolRef,
    statement: z3.BoolRef,
    runs: object,
) -> None:
    """From an instance of the plain unit's theorem to the statement: changes of signs turn an order round."""
    given = [said]
    if c is not None:
        given.append(_turned(theory, c, spec.c_format))
    if "d" in spec.negated:
        given.append(_turned(theory, (results[0], results[1]), spec.d_format))
    text = "changed signs turn the order of c round, and that of d"
    if not said.eq(statement):
        theory.claim("signs", text, statement, given)
    theory.theorem(text, statement)


def _turned(theory: Theory, pair: tuple[z3.BitVecRef, z3.BitVecRef], fmt: Format) -> z3.BoolRef:
    """Return the claim that codes with their signs changed are in the opposite order."""
    stages = Stages()
    x, y = pair
    other = stages.change_sign(y, fmt), stages.change_sign(x, fmt)
    text = "codes with their signs changed are in the opposite order"
    return theory.claim("opposite order", text, not_below(pair, fmt) == not_below(other, fmt))


def falls(instruction: Instruction, others: Callable[[Codes], Iterator[Codes]], what: str) -> OutOfOrder:
    """An input on which d falls, a small one of some that are run.  Raises NotProvedError where there is none."""
    found: tuple[Codes, Codes] | None = None
    for codes in generate(instruction.spec, 300, 0, ["numbers"]).cases():
        for other in others(codes):
            smaller = found is None or size(instruction.spec, codes) < size(instruction.spec, found[0])
            if smaller and is_out_of_order(instruction, codes, other):
                found = codes, other
    if found is None:
        raise NotProvedError("d grows", "unknown", "no input was found on which it falls")
    witness = shown_out_of_order(instruction, *found, what, ("the smallest of some that were run",))
    return OutOfOrder(witness, f"d falls where the exact sum, {instruction.spec.exact_sum}, does")


def falls_with_products(instruction: Instruction) -> OutOfOrder:
    """Return a witness that a result falls with a larger product 0."""
    return falls(instruction, lambda x: _other_product(instruction.spec, x), "other factors")


def _other_c(spec: DotAdd, codes: Codes) -> Iterator[Codes]:
    """Inputs with a larger c."""
    fmt = spec.c_format
    for value in ("0", "1", "2"):
        code = fmt.code(value)
        if fmt.value(code) > fmt.value(codes.c):
            yield replace(codes, c=code)


def _other_product(spec: DotAdd, codes: Codes) -> Iterator[Codes]:
    """Inputs with a larger product 0."""
    x, y = spec.a_format, spec.b_format
    one = y.code("1")
    product = x.value(codes.a[0]) * y.value(codes.b[0])
    for value in ("0", "1", "2"):
        code = x.code(value)
        if x.value(code) > product:
            yield replace(codes, a=(code, *codes.a[1:]), b=(one, *codes.b[1:]))


def prove_signs(proving: Composing, spec: DotAdd) -> None:
    """Prove that d is what the plain unit gives for changed codes, changed; and that a change of its sign is all that
    happens to a number.  Raises NotProvedError."""
    rho = spec.parameters.last_rounding
    if "d" in spec.negated and rho.rounding in (Rounding.RD, Rounding.RU):
        raise NotProvedError("signs", "unknown", f"{rho} does not round x and −x alike")
    proving.rests_on(SIGNS)
    one = one_step(spec)
    x, stages = symbolic_inputs(one), Stages()
    inner = changed_inputs(one, x)
    d = smt.dot_add(one.plain, inner.a, inner.b, inner.c, x.scale_a, x.scale_b).result
    d = stages.change_sign(d, spec.d_format) if "d" in spec.negated else d
    own = smt.dot_add(one, x.a, x.b, x.c, x.scale_a, x.scale_b).result
    text = "d is what the unit without changes of signs gives for the changed codes, changed"
    proving.claim("changes of signs", text, own == d)
    for name in spec.negated:
        fmt = getattr(spec, f"{name}_format")
        code = z3.BitVec(f"a code of {name}", fmt.storage_bits)
        u, v = coded_number(code, fmt), coded_number(stages.change_sign(code, fmt), fmt)
        alike = z3.And(
            u.infinite == v.infinite,
            u.sign != v.sign,
            u.significand == v.significand,
            u.exponent == v.exponent,
        )
        text = "a code with its sign changed is the number of the other sign, and a NaN stays as it is"
        claim = z3.If(is_nan(code, fmt), stages.change_sign(code, fmt) == code, alike)
        proving.claim(f"sign of {name}", text, claim)
