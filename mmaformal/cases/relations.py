"""A property as a relation between two runs: search for an input that breaks it, and what such an input looks like.

"The result does not depend on the order of the products" says of two runs, the second on permuted inputs, that their
results are the same.  Most structural properties are of this kind.  A `Relation` says how the second run's inputs
are made from the first's, and how the results must be related.  It is written once, for codes that are bit-vector
terms (to ask solvers) as well as for arrays of codes (to run many cases).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol, TypeVar

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.codes import CodeOrFact, Fact, both
from mmaformal.cases.generate import Distribution, generate
from mmaformal.cases.inputs import Codes, Columns, Inputs, Rows
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.run import results, smt_result
from mmaformal.cases.shrink import shrink, size
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.display import ShortRepr
from mmaformal.encodings import smt
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError, results_differ

CaseT = TypeVar("CaseT", Columns, Inputs)


class Image(Protocol):
    """Makes the inputs of a second run from those of the first."""

    def __call__(self, x: CaseT, /) -> CaseT: ...


class Condition(Protocol):
    """A fact about a case."""

    def __call__(self, x: CaseT, /) -> Fact: ...


@dataclass(frozen=True, repr=False)
class Relation(ShortRepr):
    """For all inputs of `left` that are `allowed`, its result and that of `right` on the `image` are `related`.

    Without an image it is a statement about one run, whose result is given twice.
    """

    left: DotAdd
    right: DotAdd
    image: Image | None
    related: Callable[[CodeOrFact, CodeOrFact], Fact]
    second: str  #: what the second run is, in a few words
    allowed: Condition = lambda _: True

    def traces(self, inputs: Inputs) -> tuple[smt.Trace[AnyStep], smt.Trace[AnyStep]]:
        """Both runs in the SMT encoding."""

        def trace(spec: DotAdd, x: Inputs) -> smt.Trace[AnyStep]:
            return smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)

        first = trace(self.left, inputs)
        return first, first if self.image is None else trace(self.right, self.image(inputs))

    def broken(self, inputs: Inputs) -> z3.BoolRef:
        """The question whose models break it."""
        first, second = (trace.result for trace in self.traces(inputs))
        allowed = self.allowed(inputs)
        broken = z3.Not(self.related(first, second))
        return broken if allowed is True else z3.And(allowed, broken)

    def runs(self, rows: Rows) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
        """Both results of many cases, by the executable encoding, and which cases break it."""
        codes = rows.codes
        first = results(self.left, codes)
        second = first if self.image is None else results(self.right, self.image(codes))
        allowed = self.allowed(codes)
        return first, second, both(np.broadcast_to(allowed, first.shape), ~self.related(first, second))

    def breaks(self, cases: Sequence[Codes]) -> NDArray[np.bool_]:
        """Which cases break it."""
        return self.runs(Rows.of(cases))[2]


def witness_of(
    instruction: Instruction, relation: Relation, codes: Codes, minimality: Sequence[str] = ()
) -> CaseWitness:
    """Inputs that break a relation, re-run in both encodings.

    Raises WitnessError unless both encodings give the same results, and these break the relation.
    """
    first, second, broken = relation.runs(Rows.of([codes]))
    runs = [Run("", relation.left, codes, int(first[0]))]
    if relation.image is not None:
        image = _image_of(relation, codes)
        runs.append(Run(relation.second, relation.right, image, int(second[0])))
    seen = [smt_result(run.spec, run.codes) for run in runs]
    differ = [results_differ(x.spec, x.spec, x.result, d) for x, d in zip(runs, seen, strict=True)]
    if not broken[0] or any(differ):
        ran = tuple(run.result for run in runs)
        raise WitnessError(
            f"the two encodings do not agree on {codes}: executable {ran}, bit-vector terms {tuple(seen)}"
        )
    return CaseWitness(instruction, tuple(runs), minimality=tuple(minimality))


def _image_of(relation: Relation, codes: Codes) -> Codes:
    """The second run's inputs of one case, as ints."""
    if relation.image is None:
        return codes
    image = relation.image(Rows.of([codes]).codes)

    def ints(side: Sequence[NDArray[np.uint64]]) -> tuple[int, ...]:
        return tuple(int(np.asarray(x).reshape(-1)[0]) for x in side)

    return Codes(ints(image.a), ints(image.b), ints([image.c])[0], ints(image.scale_a), ints(image.scale_b))


# ---- searching ---------------------------------------------------------------------------------------------------

#: an array operation on more codes takes longer than a limit may be overrun
_CODES, _FEWEST_ROWS = 4000 * 64, 40
_ROWS = 4000  #: cases that are run before a solver is asked
_TRIES = 3  #: times that, with other random numbers
_STARTS = 3  #: cases of few products that are made smaller, to see which gets smallest


def sample_broken(relation: Relation, rows: int = _ROWS) -> Codes | None:
    """A case among random ones that breaks the relation, made smaller; of long chains there are fewer."""
    spec = relation.left

    def by_size(x: Codes) -> tuple[int, ...]:
        return size(spec, x)

    rows = min(rows, max(_FEWEST_ROWS, _CODES // spec.k))

    def broken(distribution: Distribution, seed: int) -> list[Codes]:
        cases = generate(spec, rows, seed, [distribution])
        return [cases[int(row)] for row in np.flatnonzero(relation.runs(cases)[2])]

    distributions: tuple[Distribution, ...] = ("near", "edge")
    for distribution, seed in product(distributions, range(_TRIES)):
        found = broken(distribution, seed)
        if found:
            sparse = [*broken("sparse", seed), *broken("sparse", seed + _TRIES)]
            some = [min(found, key=by_size), *sorted(sparse, key=by_size)[:_STARTS]]
            return min((shrink(spec, x, relation.breaks) for x in some), key=by_size)
    return None
