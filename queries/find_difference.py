"""Find an input on which two instructions differ, the smallest there is, or prove that there is none.

    find_difference(ampere, hopper, "HMMA.16816.F32")
    find_difference(hopper, sapphire_rapids, "HMMA.16816.F32.BF16", "TDPBF16PS")
    find_difference("a100", "h100", "HMMA.16816.F32")

How it is done: inputs with no, one and two nonzero products are tried first (a few solver calls of a fraction of a
second each; `unsat` proves that more products are needed), then all inputs at once.  A witness found is then made
smaller (`smallest`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

import z3

from mmaformal.architectures.base import Architecture
from mmaformal.architectures.emulations import in_one_format
from mmaformal.architectures.meant import architecture_meant, instruction_meant
from mmaformal.cases.codes import is_nan, is_zero
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.questions import FoundCase, Places
from mmaformal.cases.run import run, smt_result
from mmaformal.cases.shrink import shrink
from mmaformal.cases.smallest import SmallestSearch
from mmaformal.cases.symmetries import Symmetries, Zeros, symmetry_classes
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.encodings import smt
from mmaformal.facts import one_code, orders
from mmaformal.facts.both_encodings import equal_in_both_encodings
from mmaformal.facts.laws import AnyProduct, Laws, distinct, product_terms
from mmaformal.facts.registry import facts_of
from mmaformal.hardware.blackbox import DesignUnit
from mmaformal.instruction import Instruction
from mmaformal.proof.interfaces import hard
from mmaformal.proof.kernel import ArgumentError, NotProvedError, direct, prove
from mmaformal.queries import long_chains
from mmaformal.queries.constraints import Constraint, as_constraints, pins_of
from mmaformal.queries.difference_of_designs import difference_of_designs
from mmaformal.renamed import keywords
from mmaformal.solver.answers import Answer, Different, Equal, Unknown
from mmaformal.solver.asking import Asker, first_found, watching
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Outcome, Portfolio
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spec import DotAdd
from mmaformal.witness import Witness, WitnessError, results_differ

#: Seconds that the first solver has a question for itself: a race ends with the loser killed and started anew.
_HEAD_START = 1.0
#: Sparse inputs are tried up to this many nonzero products before all inputs at once.
_SPARSE = 2
#: The part of the time given that one sparse question has at first; what it leaves open is asked again later.
_FIRST_TRY = 0.05
#: The part of the time left in which two models may be proved equal beyond their products and shifts.
_OF_NUMBERS = 0.02
#: The part of the time left in which few products may be settled stage by stage.
_ARGUED = 0.5


class IncomparableError(ValueError):
    """The two instructions do not take the same inputs; the message says how to make them comparable."""


@keywords(backends="solver")
def find_difference(
    x: Architecture | Instruction | DesignUnit | str,
    y: Architecture | Instruction | DesignUnit | str,
    instruction: str | None = None,
    other: str | None = None,
    *,
    where: Constraint | str | Iterable[Constraint | str] = (),
    known: Codes | None = None,
    timeout: float = 120.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Find the smallest input on which x and y differ, or prove that they compute the same function.

    x, y: two architectures and the name of an instruction both have, or two Instructions of the same K and types;
    either by name, `"h100"` or `"hopper HMMA.16816.F32"`.  A design (`mmaformal.from_rtl`) that is proved to be a model
    is that model; one that is not is compared as it is, and the answer is `Fails`, `Holds` or `Unknown`.
    other: the name of y's instruction, where that is another one; if their K differ, both are chained to the least
    that they have in common.
    where: constraints on the inputs (`mmaformal.queries.constraints`, or their text).
    known: an input on which they differ, if one is known (not together with `where`): there is an answer at once, and
    what is asked is whether it is the smallest.  Of chains of many steps it is not used.
    timeout: seconds for everything; memory: megabytes per solver process; solver: one or several, by default all
    that are installed; progress: called with a line of text as the work goes on, of the first input found too; cache:
    whether, or in which file, what was proved is recorded, and looked up.

    Returns `Different` with a witness, `Equal` with a proof, or `Unknown` with the reason.  `Equal` is about both
    encodings: that those of x, and those of y, are equal is among its obligations.  Where the formats of one's a and b
    embed exactly in the other's, inputs are of the narrower ones, and the other converts them (`emulations.converted`).
    Raises IncomparableError if the instructions take different inputs, UnknownInstructionError for a name that an
    architecture lacks, NoSolverError if there is no solver, TypeError and ValueError for wrong arguments (a `where`
    that no input satisfies is one), WitnessError if a solver's model does not hold when it is re-run.
    """
    caller(progress)
    checked_timeout(timeout)
    if known is not None and where:
        raise ValueError("an input that is known is for all inputs: leave out either `known` or `where`")
    if any(isinstance(each, DesignUnit) and each.proved is None for each in (x, y)):
        if known is not None:
            raise ValueError("an input that is known is of two models: leave it out for a design")
        return difference_of_designs(
            x, y, where=where, timeout=timeout, memory=memory, solver=solver, progress=progress, cache=cache
        )
    left, right = comparable(x, y, instruction, other)
    constraints = as_constraints(where)
    with session(solver, memory, cache, Portfolio) as portfolio, watching(None, first_found(progress)):
        portfolio.head_start = _HEAD_START
        asker = Asker(portfolio, timeout)
        answer = _answer(left, right, constraints, known, asker, progress)
        if isinstance(answer, Equal) and left.spec != right.spec:
            # One function is equal to itself, in any encoding.
            if progress is not None:
                progress(f"{asker.elapsed:5.1f} s  proving that the encodings agree")
            with asker.limit:
                return equal_in_both_encodings(answer, (left, right), asker)
            return asker.late(answer.question)
        return answer


def _answer(
    x: Instruction,
    y: Instruction,
    constraints: tuple[Constraint, ...],
    known: Codes | None,
    asker: Asker,
    progress: Progress | None,
) -> Answer:
    """Return the answer about one encoding of each."""
    if long_chains.apply(x.spec, y.spec):
        return _of_long_chains(x, y, constraints, asker, progress)
    search = _Search(x, y, constraints, asker, progress)
    if known is not None:
        search.start_from(known)
    with asker.limit:
        return search.answer()
    return asker.late(search.question)


def _of_long_chains(
    x: Instruction,
    y: Instruction,
    constraints: tuple[Constraint, ...],
    asker: Asker,
    progress: Progress | None,
) -> Answer:
    """Return the answer for chains of many steps, which are compared step by step."""
    question, alike = _question(x, y, constraints), Laws(asker).zeros
    chains = long_chains.LongChains(
        search=_Search,
        x=x,
        y=y,
        constraints=constraints,
        asker=asker,
        progress=progress,
        question=question,
        zeros_are_alike=lambda spec: bool(alike(spec)),
    )
    with asker.limit as limit:
        answer = chains.answer()
    if limit.expired:
        answer = asker.late(question)
    if isinstance(answer, Different) and answer.witness.x.k != x.k:  # the best of a search broken off
        return chains.lift(answer, "the time given was used up")
    return answer


def comparable(
    x: Architecture | Instruction | DesignUnit | str,
    y: Architecture | Instruction | DesignUnit | str,
    instruction: str | None = None,
    other: str | None = None,
) -> tuple[Instruction, Instruction]:
    """The two instructions that are meant, as `find_difference` takes them.

    Raises IncomparableError, UnknownInstructionError and TypeError as it does.
    """
    left, right = _instruction(x, instruction), _instruction(y, instruction if other is None else other)
    left, right = in_one_format(left, right)
    if other is not None:
        left, right = (each.chained(math.lcm(left.k, right.k)) for each in (left, right))
    _check_comparable(left, right)
    return left, right


def _instruction(x: Architecture | Instruction | DesignUnit | str, name: str | None) -> Instruction:
    if isinstance(x, DesignUnit):
        x = x.as_instruction()
    if isinstance(x, str):
        x = instruction_meant(x) if name is None else architecture_meant(x)
    if isinstance(x, Instruction):
        if name is not None and name != x.name:
            raise TypeError(f"two Instructions need no name; {x.label} was given together with {name!r}")
        return x
    if not isinstance(x, Architecture):
        raise TypeError(f"expected an Architecture or an Instruction, not {type(x).__name__}")
    if name is None:
        raise TypeError(
            f'which instruction of {x.name}? find_difference({x.name}, …, "{x.instructions[0].name}"), for example'
        )
    return x.meant(name)


def _check_comparable(x: Instruction, y: Instruction) -> None:
    def types(i: Instruction) -> tuple[object, ...]:
        s = i.spec
        return s.a_format, s.b_format, s.c_format, s.d_format, s.scale_format, s.scale_block

    if types(x) != types(y):
        raise IncomparableError(
            f"{x.label} computes {x.spec.types} and {y.label} {y.spec.types}: they do not take the same inputs. "
            "Choose instructions of the same types (`mmaformal list` shows them)"
        )
    if x.k != y.k:
        short, long = sorted((x, y), key=lambda i: i.k)
        if long.k % short.k == 0:
            hint = f'compare {short.architecture}["{short.name}"].chained({long.k}) with {long.label}'
        else:
            hint = "chain both to a common multiple: .chained(K)"
        raise IncomparableError(f"{x.label} has K = {x.k}, {y.label} has K = {y.k}: {hint}")


def _question(x: Instruction, y: Instruction, constraints: Sequence[Constraint]) -> str:
    given = f" where {'; '.join(map(str, constraints))}" if constraints else ""
    labels = [x.label, y.label]
    if labels[0] == labels[1]:
        labels = [f"{i.label} ({i.parameters.describe()})" for i in (x, y)]
    return f"{labels[0]} = {labels[1]}{given}"


def prove_idle_steps_pass(asker: Asker, spec: DotAdd) -> bool:
    """Whether a step whose products are all ±0·±0 may be left out of a chain.

    Such a step gives back its c, but for −0 (which becomes +0) and NaNs (which become canonical); the step after
    it does not distinguish those, and the step before it does not give −0.
    """
    one = spec.replace(k=spec.parameters.step_products, product_order=())
    d = spec.d_format
    signed = {"a": one.a_format.has_minus_zero, "b": one.b_format.has_minus_zero}
    names = {f"{side}{k}": signed[side] for side in "ab" for k in range(one.k)}
    idle = symbolic_inputs(
        one,
        {name: 0 for name, sign in names.items() if not sign},
        zeros=[name for name, sign in names.items() if sign],
    )
    busy = symbolic_inputs(one)
    after = smt.dot_add(one, idle.a, idle.b, idle.c).result
    plus, minus = z3.BitVecVal(0, d.storage_bits), z3.BitVecVal(d.sign_mask, d.storage_bits)
    with_plus, with_minus, with_any = (smt.dot_add(one, busy.a, busy.b, c) for c in (plus, minus, busy.c))
    sums = [with_any.steps[0].total, with_any.steps[0].e_max]
    claims: dict[str, tuple[z3.BoolRef, list[z3.ExprRef]]] = {
        "gives back its c, as +0 for −0 and as a NaN for a NaN": (
            z3.If(is_nan(idle.c, d), is_nan(after, d), after == z3.If(idle.c == minus, plus, idle.c)),
            [],
        ),
        "takes c = −0 as c = +0": (with_plus.result == with_minus.result, []),
        "with c a NaN gives a NaN": (z3.Implies(is_nan(busy.c, d), is_nan(with_any.result, d)), []),
        "never gives −0": (with_any.result != minus, sums),
    }
    step = f"a step of {spec.types}, {spec.parameters.algorithm} {spec.parameters.describe()},"
    idle_step = f"{step} with products ±0·±0"
    return all(
        asker.prove(what, f"{idle_step if what.startswith('gives') else step} {what}", claim, cut=cut).verdict
        == "unsat"
        for what, (claim, cut) in claims.items()
    )


def _allowed(spec: DotAdd, constraints: Iterable[Constraint], pins: Mapping[str, int]) -> z3.BoolRef:
    """Return what constraints and pins say of the inputs, as a formula."""
    inputs = symbolic_inputs(spec)
    pairs = zip(inputs.flat(), symbolic_inputs(spec, pins).flat(), strict=True)
    said = [term for each in constraints for term in each.on_inputs(spec, inputs)]
    return z3.And([z3.BoolVal(True), *said, *(x == code for x, code in pairs if not x.eq(code))])


def _both_zero(spec: DotAdd, inputs: Inputs, k: int) -> bool:
    """Whether both factors of a product are written as zeros."""
    zero = z3.And(is_zero(inputs.a[k], spec.a_format), is_zero(inputs.b[k], spec.b_format))
    return bool(z3.is_true(z3.simplify(zero)))


def _proved_alike(asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> bool:
    """Whether both are proved equal on inputs, within a share of the time left; the proof's obligations are kept."""
    own = Asker(asker.portfolio, _ARGUED * asker.left)
    own.store = asker.store
    proof = facts_of(x).prove_agreement(own, x, y, inputs)
    asker.proved += proof.obligations if proof is not None else ()
    return proof is not None


class _Search(SmallestSearch):
    """The search for a case on which two models differ."""

    nothing = "no difference"

    def __init__(
        self,
        x: Instruction,
        y: Instruction,
        constraints: tuple[Constraint, ...],
        asker: Asker,
        progress: Progress | None,
    ) -> None:
        self.x, self.y, self.constraints = x, y, constraints
        pins = pins_of(x.spec, constraints)
        super().__init__(x.spec, asker, pins, any(c.forbids_zero for c in constraints), progress)
        self._laws = Laws(asker)
        self._idle: dict[DotAdd, bool] = {}
        self._best: FoundCase | None = None
        self._start: FoundCase | None = None
        self.question = _question(x, y, constraints)

    # ---- which cases are alike --------------------------------------------------------------------------------

    def find_licences(self) -> Symmetries:
        """Return the laws that leave both models' results, and what constraints say of the inputs, as they are."""
        laws, models = self._laws, (self.x.spec, self.y.spec)
        inputs = symbolic_inputs(self.spec)
        said = [term for c in self.constraints for term in c.on_inputs(self.spec, inputs)]
        of_products = product_terms(said, inputs)
        product = AnyProduct(self.spec)

        def allowed(law: str) -> bool:
            change, (premise, text) = product.change(law), product.premise(law)
            return change is not None and all(
                self.asker.prove(
                    f"law: {law}", f"{text}: what is allowed stays allowed", terms.unchanged(change, premise)
                ).verdict
                == "unsat"
                for terms in (distinct(of_products) if said else ())
            )

        zeros = laws.zeros(models[0]) & laws.zeros(models[1])
        zeros = {each for each in zeros if allowed("signed zeros" if each == "signed" else "zeros")}
        exchange = (
            self.spec.a_format == self.spec.b_format
            and all(map(laws.exchange, models))
            and allowed("exchange")
        )
        signs = all(map(laws.signs, models)) and allowed("signs")
        classes: list[Hashable] = list(range(self.spec.k))
        if not any(terms.values for terms in of_products) and all(map(laws.order, models)):
            told = [terms.key for terms in of_products]
            classes = list(zip(symmetry_classes(*models), told, strict=True))
        best: Zeros = "plus" if "plus" in zeros else "signed" if "signed" in zeros else "any"
        return Symmetries(classes, exchange, signs, best)

    def _prepare(self, count: int) -> None:
        """Prove what questions about cases of `count` nonzero products rest on, before any of those is asked."""
        if self._licences is None:
            self.progress(f"{self.asker.elapsed:5.1f} s  proving which cases are alike")
            self.know(self.find_licences())
        for spec in (self.x.spec, self.y.spec):
            if self._may_leave_out(spec):
                self._laws.order(spec)
                if count:
                    self._idle_steps_pass(spec)

    # ---- formulas ---------------------------------------------------------------------------------------------

    def _may_leave_out(self, spec: DotAdd) -> bool:
        """Whether idle steps of a model might be left out, if that is proved."""
        return not spec.product_order and facts_of(spec).may_pass_c_on(spec)

    def _result(self, spec: DotAdd, inputs: Inputs, active: Places | None) -> z3.BitVecRef:
        """The result of one model; for sparse inputs, of the same model with its idle steps left out.

        Inside a step nonzero products are written first, so that cases that differ in their places only are one
        question.  Both are licensed: order by `Laws.order`, idle steps by `_idle_steps_pass`.
        """
        k = list(range(spec.k))
        scales = (inputs.scale_a, inputs.scale_b) if spec.scale_format else ()
        if active is not None and self._may_leave_out(spec):
            L = spec.parameters.step_products
            steps = [k[start : start + L] for start in range(0, spec.k, L)]
            busy = [s for s in steps if not all(_both_zero(self.spec, inputs, i) for i in s)]
            if not busy or (len(busy) < len(steps) and not self._idle_steps_pass(spec)):
                busy = steps
            if self._laws.order(spec):
                busy = [sorted(s, key=lambda i: i not in active) for s in busy]
            k = [i for s in busy for i in s]
            spec = spec.replace(k=len(k))
        return smt.dot_add(spec, [inputs.a[i] for i in k], [inputs.b[i] for i in k], inputs.c, *scales).result

    def _idle_steps_pass(self, spec: DotAdd) -> bool:
        """Whether a step whose products are all ±0·±0 may be left out: proved, once for each model."""
        if spec not in self._idle:
            one_step = spec.k == spec.parameters.step_products
            self._idle[spec] = one_step or prove_idle_steps_pass(self.asker, spec)
        return self._idle[spec]

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        """Return assertions that the results differ under the constraints; and both results."""
        rx, ry = (self._result(i.spec, inputs, active) for i in (self.x, self.y))
        assertions = [long_chains.results_may_differ(self.x.spec, self.y.spec, rx, ry)]
        for constraint in self.constraints:
            assertions += constraint.on_inputs(self.spec, inputs)
            assertions += constraint.on_result(self.spec, rx) + constraint.on_result(self.spec, ry)
        return assertions, [rx, ry]

    def nothing_at(self, active: Places) -> bool:
        """Whether both are proved equal, stage by stage, where nonzero products are only at `active`."""
        x, y = self.x.spec, self.y.spec
        if not active or not facts_of(x).may_agree_on_few(x, y, len(active)):
            return False
        self.progress(f"{self.asker.elapsed:5.1f} s  {counted(len(active), 'product')}, stage by stage")
        return _proved_alike(self.asker, x, y, self.inputs(active)[0])

    def note(self, found: FoundCase) -> None:
        """The answer from now on, if the time is up before a smaller case is found."""
        if self._best is None or self.size(found) < self.size(self._best):
            self.minimality = self.nothing_proved(found, "the time given was used up")
            best = self._different(found)  # at once: later there is no time to run it
            self._best = found
            self.asker.best = lambda: replace(
                best, obligations=tuple(self.asker.proved), seconds=self.asker.elapsed
            )

    # ---- the search -------------------------------------------------------------------------------------------

    def start_from(self, known: Codes) -> None:
        """Search from an input on which they differ.  Raises ValueError if they do not."""

        def shows(cases: Sequence[Codes]) -> Iterable[bool]:
            x, y = (run(i, cases) for i in (self.x, self.y))
            return [results_differ(self.x.spec, self.y.spec, *each) for each in zip(x, y, strict=True)]

        (differs,) = shows([known])
        if not differs:
            raise ValueError(f"{self.x.label} and {self.y.label} do not differ on {known}")
        codes = shrink(self.spec, known, shows)
        seen = tuple(smt_result(i.spec, codes) for i in (self.x, self.y))
        self._start = self.at_places(FoundCase(codes, (), seen))
        self.note(self._start)

    def answer(self) -> Answer:
        answer = self._answer()
        if not isinstance(answer, Equal) or not self.constraints:
            return answer
        given, some = "; ".join(map(str, self.constraints)), self._some_input()
        if some.verdict == "unsat":
            raise ValueError(f"no input satisfies {given}: there is nothing to compare")
        if some.verdict == "unknown":
            why = f"no input that is allowed shows a difference, but none was found that satisfies {given} ({some.why})"
            return Unknown(answer.question, why, answer.proof.obligations, self.asker.elapsed)
        return answer

    def _some_input(self) -> Outcome:
        """Whether an input satisfies the constraints: of none, anything would be proved."""
        inputs = symbolic_inputs(self.spec, self.pins)
        allowed = [term for c in self.constraints for term in c.on_inputs(self.spec, inputs)]
        for model in (self.x, self.y):
            result = self._result(model.spec, inputs, None)
            allowed += [term for c in self.constraints for term in c.on_result(self.spec, result)]
        return self.asker.meet(z3.And(allowed))

    def _answer(self) -> Answer:
        if self._start is not None:
            products = self.products(self._start)
            fewest = self._fewer_products(self._start, range(len(self.forced), products))
            return self._smallest(self._settle_products(*fewest))
        equal = _prove_equal_quickly(self)
        if equal is not None:
            return equal
        found, products = self._sparse()
        if found is None:
            said = f"no input makes the results of {self.question} differ"
            outcome, found = self.ask(None, "all inputs at once", said, whole=True)
            if outcome.verdict == "unsat":
                return Equal(self.question, direct(outcome), self.asker.elapsed)
            if found is None:
                return Unknown(self.question, outcome.why, tuple(self.asker.proved), self.asker.elapsed)
            found, products = self._fewer_products(found, self._not_tried(found))
        return self._smallest(self._settle_products(found, products))

    def _smallest(self, found: FoundCase) -> Different:
        """The answer that a case gives, made as small as the time allows."""
        self._prepare(self.products(found))
        return self._different(self.shrink(found))

    def _with_products(self, count: int, share: float, first_try: bool = True) -> FoundCase | None:
        """A case with `count` nonzero products, looked for until a part of the time given is used up."""
        limit = _FIRST_TRY * self.asker.timeout if first_try else None
        self._prepare(count)
        return self.with_products(count, lambda: self.asker.left - (1 - share) * self.asker.timeout, limit)

    def _sparse(self) -> tuple[FoundCase | None, int]:
        """Look for a witness with few products; notes what is thereby known about their least number."""
        for count in range(len(self.forced), min(self.spec.k, len(self.forced) + _SPARSE) + 1):
            found = self._with_products(count, share=0.4)
            if found is not None:
                return found, count
        return None, 0

    def _not_tried(self, found: FoundCase) -> range:
        """The numbers of products below a witness' that `_sparse` did not look at."""
        return range(len(self.forced) + _SPARSE + 1, self.products(found))

    def _fewer_products(self, found: FoundCase, counts: Iterable[int]) -> tuple[FoundCase, int]:
        """From a witness to one with one of fewer numbers of products, the first that the time allows."""
        have = self.products(found)
        for count in counts:
            better = self._with_products(count, share=0.7)
            if better is not None:
                return better, count
        return self.at_places(found), have

    def _settle_products(self, found: FoundCase, count: int) -> FoundCase:
        """Ask again, with more time, whether fewer products do."""
        for fewer in sorted(n for n in self.unsettled if n < count):
            better = self._with_products(fewer, share=0.7, first_try=False)
            if better is not None:
                return better
        return found

    # ---- the end ----------------------------------------------------------------------------------------------

    def _different(self, found: FoundCase) -> Different:
        codes = found.codes
        witness = Witness.of(
            self.x, self.y, codes.a, codes.b, codes.c, scale_a=codes.scale_a, scale_b=codes.scale_b
        )
        models = (self.x.spec, self.y.spec)
        if any(
            ran != seen
            and not (spec.d_format.is_nan(ran) and spec.d_format.is_nan(seen) and not spec.nan_is_canonical)
            for spec, ran, seen in zip(models, witness.results, found.seen, strict=True)
        ):
            raise WitnessError(
                f"the two encodings disagree: executables give {witness.results}, bit-vector terms {found.seen} "
                f"for {witness.to_json()}; please report this"
            )
        return Different(
            self.question, witness, self.minimality, tuple(self.asker.proved), self.asker.elapsed
        )


def _prove_equal_quickly(search: _Search) -> Equal | None:
    """Returns `Equal` where the models are proved equal without a search: by one term, or by an argument."""
    inputs = symbolic_inputs(search.spec, search.pins)
    rx, ry = (search._result(i.spec, inputs, None) for i in (search.x, search.y))
    if rx.eq(ry):
        statement = f"{search.question}: both are one and the same term"
        outcome = search.asker.prove("same term", statement, rx == ry, cut=[rx])
        if outcome.verdict == "unsat":
            return Equal(search.question, direct(outcome), search.asker.elapsed)
    if type(search.x.spec.parameters) is type(search.y.spec.parameters):  # the numbers may be the same terms
        same = z3.Not(long_chains.results_may_differ(search.x.spec, search.y.spec, rx, ry))
        statement = f"{search.question}: of one and the same numbers"
        limit = _OF_NUMBERS * search.asker.left
        outcome = search.asker.prove("same numbers", statement, same, cut=hard([same]), limit=limit)
        if outcome.verdict == "unsat":
            return Equal(search.question, direct(outcome), search.asker.elapsed)
    if search.x.spec.in_order == search.y.spec.in_order:
        try:
            proof = prove(search.asker, orders.argue_alike(search.x.spec, search.y.spec))
            return Equal(search.question, proof, search.asker.elapsed)
        except (ArgumentError, NotProvedError):
            return None
    facts = facts_of(search.x.spec)
    if facts.may_agree(search.x.spec, search.y.spec):
        search.progress(f"{search.asker.elapsed:5.1f} s  proving equality stage by stage")
        known = facts.prove_agreement(
            search.asker, search.x.spec, search.y.spec, symbolic_inputs(search.spec)
        )
        if known is not None:
            return Equal(search.question, known, search.asker.elapsed)
    if long_chains.block_of(search.x.spec, search.y.spec) < search.spec.k and not search.constraints:
        one = _Search(*long_chains.blocks_alone(search.x, search.y), (), search.asker, search.progress)
        first = _prove_equal_quickly(one)
        known = None
        if first is not None:
            known = long_chains.by_induction(search.asker, search.x.spec, search.y.spec, first.proof)
        if known is not None:
            return Equal(search.question, known, search.asker.elapsed)
    known = one_code.prove_codes_equal(
        search.asker, search.x.spec, search.y.spec, _allowed(search.spec, search.constraints, search.pins)
    )
    return None if known is None else Equal(search.question, known, search.asker.elapsed)
