"""Structures that explain every element of a product, those of one function together, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.architectures.known import without_nan_rule
from mmaformal.cases.codes import is_nan, one_nan
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.run import compiled_results
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
from mmaformal.spec import DotAdd
from mmaformal.structures import Merging, Structure, merged, products

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


@dataclass(frozen=True)
class _Planned:
    """A structure, and what it does with K products whatever its instruction computes."""

    structure: Structure
    K: int

    @cached_property
    def chains(self) -> tuple[Hashable, ...]:
        """The products that each chain takes."""
        x = self.structure
        return tuple(_places(products(part, x.instruction.k, self.K)) for part in x.parts(self.K))

    @cached_property
    def tree(self) -> tuple[Hashable, ...]:
        """In which order the results of the chains are added, two of one addition in either order."""
        leaves = list(range(len(self.structure.parts(self.K))))
        pairs: dict[tuple[int, int], int] = {}
        return merged(leaves, self.structure.order, _adding(pairs)), *pairs

    def same_plan(self, other: _Planned) -> bool:
        return self.chains == other.chains and self.tree == other.tree


def _places(taken: slice | NDArray[np.intp]) -> Hashable:
    """The products that one chain takes, a run of them by its two ends."""
    if isinstance(taken, slice):
        return taken.start, taken.stop
    places = tuple(map(int, taken))
    first, last = places[0], places[-1] + 1
    return (first, last) if places == tuple(range(first, last)) else places


def _adding(pairs: dict[tuple[int, int], int]) -> Callable[[int, int], int]:
    """An addition of two numbered terms, whose sum is numbered too: the same number for the same two, in any order."""

    def add(x: int, y: int) -> int:
        return pairs.setdefault((min(x, y), max(x, y)), -1 - len(pairs))

    return add


def additions(structure: Structure, K: int, pairs: dict[tuple[int, int], int]) -> int:
    """The tree of additions that a structure is, if an instruction adds what its products are to c.

    Its leaves are the instructions; `pairs` numbers trees by the two that are added, in either order.
    """
    add = _adding(pairs)
    return merged([merged(part, "sequential", add) for part in structure.parts(K)], structure.order, add)


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
        self._planned = [_Planned(x, K) for x in sorted(exact, key=self._simplest)[:MOST]]
        self._equal: dict[tuple[DotAdd, DotAdd], tuple[str, Proof] | None] = {}
        self._last: dict[DotAdd, tuple[str, Proof] | None] = {}

    def _simplest(self, x: Structure) -> tuple[bool, int, int]:
        return not x.whole, len(x.parts(self.K)), ORDERS.index(x.order)

    def find(self) -> None:
        """Compare each with those kept before it; `kept` and `same` hold at any time, also if this is broken off."""
        self.kept = [each.structure for each in self._planned]
        firsts: list[_Planned] = []
        for planned in self._planned:
            for other in firsts:
                if (found := self._why_same(planned, other)) is not None:
                    self.same.append(SameAs(planned.structure, other.structure, *found))
                    self.kept.remove(planned.structure)
                    break
            else:
                firsts.append(planned)
        for structure in tuple(self.kept):
            self._compare_twins(structure)

    def _compare_twins(self, structure: Structure) -> None:
        for twin in self.twins(structure.instruction):
            try:
                same = replace(structure, instruction=twin)
            except ValueError:
                continue  # its K does not divide the blocks
            if (found := self._why_same(_Planned(same, self.K), _Planned(structure, self.K))) is not None:
                self.same.append(SameAs(same, structure, *found))
            else:
                self.kept.append(same)

    def _why_same(self, p: _Planned, q: _Planned) -> tuple[str, Proof | None] | None:
        """Why both give the same D for all A and B; None where that is not known."""
        x, y, K = p.structure, q.structure, self.K
        if (x.result, x.total, x.c_enters) != (y.result, y.total, y.c_enters):
            return None
        if p.same_plan(q):
            if x.instruction.spec == y.instruction.spec:
                return f"the same additions for K = {K}; another K may tell them apart", None
            # The last instruction may take zeros for products that are not there, and not as many in both.
            i, j = x.instruction, y.instruction
            alike = i.k == j.k or K % i.k == K % j.k == 0
            return self._steps_equal(i, j) if alike else None
        if x.instruction.spec != y.instruction.spec or x.total != fp32:
            return None
        pairs: dict[tuple[int, int], int] = {}
        if additions(x, K, pairs) != additions(y, K, pairs):
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
    answer = find_difference(as_instruction(x), as_instruction(y), timeout=min(asker.left, limit))
    return ("the same additions, of steps proved equal", answer.proof) if isinstance(answer, Equal) else None


def _differ_somewhere(x: DotAdd, y: DotAdd) -> bool:
    """Whether a random case tells two models of the same types apart."""
    rows = generate(x, _CASES, distributions=(*DISTRIBUTIONS, "edge", "tiny"))
    d = [one_nan(compiled_results(spec, rows.codes), spec.d_format) for spec in (x, y)]
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


__all__ = ["MOST", "ORDERS", "SameAs", "StructureClasses", "additions", "same_but_for_nans", "steps_equal"]
