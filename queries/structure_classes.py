"""Structures that explain every element of a product, those of one function together, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import lcm

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.architectures.known import without_nan_rule
from mmaformal.cases.codes import is_nan, one_nan
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.run import quick_results
from mmaformal.display import ShortRepr
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.formats import Format, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError, by_rule, prove
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.queries.classes import as_instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Equal, Proof
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import SolverKeywords
from mmaformal.spec import DotAdd
from mmaformal.structure_plans import Chain, Merging, evaluated, instructions_of, products_of
from mmaformal.structures import Structure

ORDERS: tuple[Merging, ...] = ("sequential", "pairwise", "halves")

#: More structures than these that explain every element are counted, and not compared.
MOST = 64
#: Seconds for proving that two steps are equal, and that two are which round one exact sum (`facts.one_code`: half a
#: minute alone); random cases that are tried before.
_EACH, _ONE_SUM, _CASES = 30.0, 150.0, 2000

_NANS = (
    "which NaN: steps that give the same number for the same inputs, or both a NaN, and a NaN wherever c is one, give "
    "the same numbers, and NaNs in the same places, in every chain and every sum of chains, by induction over the steps"
)


@dataclass(frozen=True, repr=False)
class SameAs(ShortRepr):
    """A structure that explains every element, as another one does, and why they are one answer."""

    structure: Structure
    other: Structure
    why: str
    proof: Proof | None = None


#: Numbers of terms: a leaf, or two that are added, in either order.
Numbered = dict[Hashable, int]


def plan_of(structure: Structure, K: int, numbers: Numbered) -> int:
    """Return the number of the sum that a structure makes of K products, whatever its instruction computes.

    `numbers` has those of chains, by their products and what they go on from, and of sums of two, in either order.
    """
    k = structure.instruction.k
    adds = partial(_added, numbers)

    def run(chain: Chain, begin: int | None) -> int:
        return numbers.setdefault((_places(products_of(chain, k, K)), begin), len(numbers))

    kept = None if structure.stored is None else structure.stored.name
    stored = None if kept is None else lambda x: numbers.setdefault((kept, x), len(numbers))
    return evaluated(structure.segments(K), structure.order, run, adds, stored=stored)


def _places(taken: slice | NDArray[np.intp]) -> Hashable:
    """The products that one chain takes, a run of them by its two ends."""
    if isinstance(taken, slice):
        return taken.start, taken.stop
    places = tuple(map(int, taken))
    first, last = places[0], places[-1] + 1
    return (first, last) if places == tuple(range(first, last)) else places


def _added(numbers: Numbered, x: int, y: int) -> int:
    """An addition of two numbered terms, whose sum is numbered too: the same number for the same two, in any order."""
    return numbers.setdefault(frozenset((x, y)) if x != y else (x, x), len(numbers))


def additions(structure: Structure, K: int, numbers: Numbered) -> int:
    """The tree of additions that a structure is, if an instruction adds what its products are to c.

    Its leaves are the instructions; `numbers` has trees by the two that are added, in either order.
    """
    adds = partial(_added, numbers)

    def run(chain: Chain, begin: int | None) -> int:
        steps = [numbers.setdefault(("step", step), len(numbers)) for step in instructions_of(chain)]
        return reduce(adds, steps if begin is None else [begin, *steps])

    return evaluated(structure.segments(K), structure.order, run, adds)


class StructureClasses:
    """One structure of each function, the simplest, and why others are the same."""

    def __init__(
        self,
        exact: Sequence[Structure],
        K: int,
        asker: Asker,
        twins: Callable[[Instruction], Sequence[Instruction]] = lambda _: (),
    ) -> None:
        """twins: instructions that differ from one in their NaNs, so that no D tells them apart, and were not run."""
        self.K, self.asker, self.twins = K, asker, twins
        self.kept: list[Structure] = []
        self.same: list[SameAs] = []
        self._plans: Numbered = {}
        self._planned = sorted(exact, key=self._simplest)[:MOST]
        self._equal: dict[tuple[DotAdd, DotAdd], tuple[str, Proof] | None] = {}
        self._last: dict[DotAdd, tuple[str, Proof] | None] = {}

    def _simplest(self, x: Structure) -> tuple[bool, int, int]:
        order = ORDERS.index(x.order) if x.order in ORDERS else len(ORDERS)
        return not x.whole, len(x.chains(self.K)), order

    def find(self) -> None:
        """Compare each with those kept before it; `kept` and `same` hold at any time, also if this is broken off."""
        self.kept = list(self._planned)
        firsts: list[Structure] = []
        for structure in self._planned:
            for other in firsts:
                if (found := self._why_same(structure, other)) is not None:
                    self.same.append(SameAs(structure, other, *found))
                    self.kept.remove(structure)
                    break
            else:
                firsts.append(structure)
        for structure in tuple(self.kept):
            self._compare_twins(structure)

    def _compare_twins(self, structure: Structure) -> None:
        for twin in self.twins(structure.instruction):
            try:
                same = replace(structure, instruction=twin)
            except ValueError:
                continue  # its K does not divide the blocks
            if (found := self._why_same(same, structure)) is not None:
                self.same.append(SameAs(same, structure, *found))
            else:
                self.kept.append(same)

    def _why_same(self, x: Structure, y: Structure) -> tuple[str, Proof | None] | None:
        """Why both give the same D for all A and B; None where that is not known."""
        K = self.K
        if (x.result, x.total, x.c_enters) != (y.result, y.total, y.c_enters):
            return None
        if plan_of(x, K, self._plans) == plan_of(y, K, self._plans):
            if x.instruction.spec == y.instruction.spec:
                return f"the same additions for K = {K}; another K may tell them apart", None
            # The last instruction may take zeros for products that are not there, and not as many in both.
            i, j = x.instruction, y.instruction
            alike = i.k == j.k or K % i.k == K % j.k == 0
            return self._steps_equal(i, j) if alike else None
        if x.instruction.spec != y.instruction.spec or x.total != fp32 or x.stored or y.stored:
            return None
        numbers: Numbered = {}
        if additions(x, K, numbers) != additions(y, K, numbers):
            return None
        return self._adds_c_last(x.instruction)

    def _adds_c_last(self, i: Instruction) -> tuple[str, Proof] | None:
        spec = i.spec.in_order
        spec = spec.replace(k=i.parameters.step_products)
        if spec.k != i.k:
            return None
        if spec not in self._last:
            found = facts_of(spec).adds_c_last(self.asker, spec)
            self._last[spec] = None if found is None else (found.text, found.proof)
        if (known := self._last[spec]) is None:
            return None
        return f"{known[0]}; both add what the instructions give alone in the same order", known[1]

    def _steps_equal(self, x: Instruction, y: Instruction) -> tuple[str, Proof] | None:
        """Why chains of two instructions are one function, all NaNs being one; None if that is not proved."""
        k = lcm(x.spec.period, y.spec.period)
        first, second = (i.spec.replace(k=k) for i in (x, y))
        if (first, second) not in self._equal:
            self._equal[first, second] = steps_equal(first, second, self.asker)
        return self._equal[first, second]


def steps_equal(x: DotAdd, y: DotAdd, asker: Asker) -> tuple[str, Proof] | None:
    """Why chains of two models are one function, all NaNs being one, with the proof; None if none is found in time."""
    if (x.types, x.k) != (y.types, y.k):
        return None
    if without_nan_rule(x) == without_nan_rule(y):
        proof = same_but_for_nans(x, y, asker)
        return (
            None if proof is None else ("the same additions, of steps that differ in their NaNs alone", proof)
        )
    if _differ_somewhere(x, y) or asker.left <= 0:
        return None
    limit = _ONE_SUM if all(facts_of(spec).rounds_exactly(spec) for spec in (x, y)) else _EACH
    solvers: SolverKeywords = {"solver": asker.portfolio.backends, "memory": asker.portfolio.memory}
    models = as_instruction(x), as_instruction(y)
    answer = find_difference(*models, timeout=min(asker.left, limit), **solvers)
    return ("the same additions, of steps proved equal", answer.proof) if isinstance(answer, Equal) else None


def _differ_somewhere(x: DotAdd, y: DotAdd) -> bool:
    """Whether a random case tells two models of the same types apart."""
    rows = generate(x, _CASES, distributions=(*DISTRIBUTIONS, "edge", "tiny"))
    d = [one_nan(quick_results(spec, rows.codes), spec.d_format) for spec in (x, y)]
    return bool((d[0] != d[1]).any())


def same_but_for_nans(x: DotAdd, y: DotAdd, asker: Asker) -> Proof | None:
    """Proof of the SMT encoding that chains of two models differ at most in their NaNs; None if it is not proved."""
    inputs, d = symbolic_inputs(x), x.d_format
    results = [smt.dot_add(spec, inputs.a, inputs.b, inputs.c).result for spec in (x, y)]
    numbers, nans = Pairing(), Pairing()
    _shown(numbers, "the results are the same, or both NaN", _same_number(results[0], results[1], d))
    given = nans.assume("c is a NaN", Link(is_nan(inputs.c, d), (inputs.c,)))
    _shown(nans, "the results are NaNs", z3.And([is_nan(each, d) for each in results]), given)
    try:
        return by_rule(_NANS, prove(asker, numbers), prove(asker, nans))
    except NotProvedError:
        return None


def _shown(pairing: Pairing, text: str, claim: z3.BoolRef, *given: Link) -> None:
    link = Link(claim, ())
    pairing.derive("normalise and round", text, [link], given)
    pairing.conclude(text, link)


def _same_number(x: z3.BitVecRef, y: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    return z3.Or(x == y, z3.And(is_nan(x, fmt), is_nan(y, fmt)))
