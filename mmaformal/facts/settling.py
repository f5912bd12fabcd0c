"""Whether relations between two runs hold: by cases, then by an argument, then by a solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import z3

from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.questions import Places
from mmaformal.cases.relations import Relation, sample_broken, witness_of
from mmaformal.cases.shrink import shrink
from mmaformal.cases.smallest import SmallestSearch, least_from
from mmaformal.cases.symmetries import Symmetries, Zeros, is_zero_product, symmetry_classes
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.facts.laws import AnyProduct, Laws, distinct, product_terms
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, NotProvedError, direct, prove
from mmaformal.proof.lemmas import Argument
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker, Settled
from mmaformal.solver.portfolio import SolverVerdict

_SOME = 100  #: cases that are run to see that a relation is about some

_PATIENCE = 0.4  #: the part of the time given in which a witness is made smaller


class _Smallest(SmallestSearch):
    """The search for a small case that breaks a relation."""

    nothing = "nothing breaks it"

    def __init__(self, asker: Asker, relation: Relation) -> None:
        super().__init__(relation.left, asker)
        self.relation = relation
        self._until = asker.elapsed + _PATIENCE * asker.timeout

    @property
    def left(self) -> float:
        return min(self._until - self.asker.elapsed, self.asker.left)

    def quarter(self) -> float:
        return self.left / 4

    def made_smaller(self, codes: Codes) -> Codes:
        return shrink(self.spec, codes, self.relation.breaks)

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        return [self.relation.broken(inputs)], []

    def find_licences(self) -> Symmetries:
        """Return what leaves both runs' results as they are, and is allowed if what stands for it is."""
        relation, laws, inputs = self.relation, Laws(self.asker), symbolic_inputs(self.spec)
        product, of_products = AnyProduct(self.spec), product_terms([relation.broken(inputs)], inputs)

        def changes_nothing(law: str) -> bool:
            change, (premise, text) = product.change(law), product.premise(law)
            return change is not None and all(
                self.asker.prove(
                    f"law: {law}",
                    f"{text}: it breaks the relation too",
                    terms.unchanged(change, premise),
                    limit=self.left / 10,
                ).verdict
                == "unsat"
                for terms in distinct(of_products)
            )

        zeros: Zeros = "signed" if changes_nothing("signed zeros") else "any"
        if zeros == "any" and "plus" in laws.zeros(relation.left) & laws.zeros(relation.right):
            zeros = "plus" if self._image_keeps_zeros(inputs) else "any"
        exchange, signs = changes_nothing("exchange"), changes_nothing("signs")
        return Symmetries(self._classes(inputs, laws), exchange, signs, zeros)

    def _classes(self, inputs: Inputs, laws: Laws) -> list[Hashable]:
        """Classes of products that may change places: in both runs, and in what is allowed."""
        relation, K = self.relation, self.spec.k
        if not (laws.order(relation.left) and laws.order(relation.right)):
            return list(range(K))
        allowed = product_terms(self._allowed(inputs, laws), inputs)
        if any(terms.values for terms in allowed):
            return list(range(K))
        classes = symmetry_classes(self.spec, self.spec)
        found: list[Hashable] = []
        firsts: dict[Hashable, list[int]] = {}
        for k in range(K):
            key = classes[k], allowed[k].key
            alike = firsts.setdefault(key, [])
            first = next((j for j in alike if self._image_swaps(inputs, j, k)), k)
            if first == k:
                alike.append(k)
            found.append(first)
        return found

    def _allowed(self, inputs: Inputs, laws: Laws) -> list[z3.BoolRef]:
        """Return what is allowed for any results of the steps: products that change places leave those alike."""
        allowed = self.relation.allowed(inputs)
        if allowed is True:
            return []
        results = []
        for trace, spec in zip(
            self.relation.traces(inputs), (self.relation.left, self.relation.right), strict=True
        ):
            parts = spec.parameters.made_of(spec)
            inner = parts is not None and laws.order(parts)
            for step in trace.steps:
                if inner:
                    assert isinstance(step, lowered.LoweredStep)
                    results += [each.result for each in step.inner]
                results.append(step.result)
        return [z3.substitute(allowed, *((x, z3.FreshConst(x.sort(), "step")) for x in results))]

    def _image_swaps(self, inputs: Inputs, i: int, j: int) -> bool:
        """Whether the second run's inputs are the same but for the places of products of its classes, if those of the
        first run change places."""
        relation = self.relation
        if relation.image is None:
            return True
        order = list(range(self.spec.k))
        order[i], order[j] = j, i
        moved = replace(inputs, a=tuple(inputs.a[k] for k in order), b=tuple(inputs.b[k] for k in order))
        classes = symmetry_classes(relation.right, relation.right)

        def products(x: Inputs) -> Counter[Hashable]:
            pairs = zip(classes, x.a, x.b, strict=True)
            return Counter((each, a.get_id(), b.get_id()) for each, a, b in pairs)

        def rest(x: Inputs) -> list[int]:
            return [code.get_id() for code in (x.c, *x.scale_a, *x.scale_b)]

        one, other = relation.image(inputs), relation.image(moved)
        return products(one) == products(other) and rest(one) == rest(other)

    def _image_keeps_zeros(self, inputs: Inputs) -> bool:
        """Whether a zero product is one in the second run too, and is allowed if another one is."""
        relation, product = self.relation, AnyProduct(self.spec)
        change, (premise, _) = product.change("zeros"), product.premise("zeros")
        image = relation.image(inputs) if relation.image is not None else inputs
        zeros = [is_zero_product(a, b, relation.right) for a, b in zip(image.a, image.b, strict=True)]
        rest = [code == code for code in (image.c, *image.scale_a, *image.scale_b)]
        allowed = relation.allowed(inputs)
        conditions = product_terms([*zeros, *rest, *([] if allowed is True else [allowed])], inputs)
        assert change is not None
        if any(terms.values for terms in conditions):
            return False
        return all(
            self.asker.prove(
                "law: zeros", "a zero product is one in the second run", terms.unchanged(change, premise)
            ).verdict
            == "unsat"
            for terms in distinct(conditions)
        )


def smallest_breaking(asker: Asker, relation: Relation, codes: Codes) -> tuple[Codes, tuple[str, ...]]:
    """A case that breaks the relation, as small as a part of the time given allows, and what is known to be minimal."""
    search = _Smallest(asker, relation)
    found = least_from(search, codes, 1 / 2)
    return found.codes, search.minimality


def settle(
    instruction: Instruction,
    asker: Asker,
    question: str,
    relations: Sequence[Relation],
    arguments: Callable[[], Iterable[Argument]],
) -> Answer:
    """Whether relations hold: run cases first, then prove the arguments, then ask for a case that breaks one.

    Raises WitnessError if a case does not hold when both encodings re-run it.
    """
    for relation in relations:
        found = sample_broken(relation)
        if found is not None:
            return fails(instruction, asker, question, relation, found)
    some = [_some_case(asker, relation) for relation in relations]
    if "unknown" in some:
        return Unknown(question, "no case was found that it is about", tuple(asker.proved), asker.elapsed)
    notes = ("no input is such as it asks for: it is about nothing",) if "unsat" in some else ()
    try:
        return Holds(question, prove(asker, *arguments()), asker.elapsed, notes=notes)
    except (NotProvedError, ArgumentError) as error:
        why, known = str(error), tuple(asker.proved)
    settled: list[Settled] = []
    for relation in relations:
        statement = question if len(relations) == 1 else f"{question}, {relation.second}"
        search = _Smallest(asker, relation)
        if (case := search.with_products(0, search.quarter)) is not None:
            return fails(instruction, asker, question, relation, case.codes)
        outcome, case = search.ask(None, "all inputs at once", statement, limit=asker.left / 2, whole=True)
        if case is not None:
            return fails(instruction, asker, question, relation, case.codes)
        if outcome.verdict == "unsat":
            settled.append(outcome)
    if relations and len(settled) == len(relations):  # no argument is known, and a small one needs none
        return Holds(question, direct(*settled), asker.elapsed, notes=notes)
    return Unknown(question, f"{why}; no input was found that shows it", known, asker.elapsed)


def _some_case(asker: Asker, relation: Relation) -> SolverVerdict:
    """Whether any input is allowed, `sat` if so: one of those that are run, or else one that a solver finds."""
    rows = generate(relation.left, _SOME)
    if np.any(relation.allowed(rows.codes)):
        return "sat"
    allowed = relation.allowed(symbolic_inputs(relation.left))
    return asker.meet(z3.BoolVal(allowed) if isinstance(allowed, bool) else z3.And(allowed)).verdict


def fails(instruction: Instruction, asker: Asker, question: str, relation: Relation, codes: Codes) -> Fails:
    """The answer that shows a case, made smaller."""

    def answer(codes: Codes, minimality: Sequence[str]) -> Fails:
        witness = witness_of(instruction, relation, codes, minimality)
        return Fails(question, witness, f"Not so: {witness.summary}.", asker.elapsed)

    asker.best = lambda: answer(codes, ["not made smaller (the time given was used up)"])
    return answer(*smallest_breaking(asker, relation, codes))
