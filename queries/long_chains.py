"""The difference of two long chains, from that of short ones.

A chain is a loop of *blocks*: as many products as whole steps of both sides have.  Two things carry over from short
chains to long ones, in a time that hardly depends on how long they are:

- *Equal*, by induction: if from every accumulator a block of x and a block of y give the same result, so do chains.
- *Different*, since idle steps merge: two steps in a row whose products are all zero do what one such step does, with
  the sign bits that both have, from any accumulator.  That is proved, for each side.  So a chain in which no more than
  m products are not zero computes what one of 2m + 1 blocks does: the idle ones before, between and after the busy ones
  are one each.  It has the same c and the same nonzero products, and no more minus signs.  What is refuted of all such
  cases of the short chain is refuted of the long one, and a witness of the short chain is one of the long chain, with
  one of its idle blocks (there is one: 2m + 1 > m) repeated.  Where idle steps are proved to pass their c on, or what
  the next step does not tell from it (`find_difference` has that for fda), m blocks do, and idle ones are added at the
  end.

The witness is run at full length in the executables, as every witness is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import z3

from mmaformal.cases.codes import is_nan
from mmaformal.checked import Progress
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.folding import step_of
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.interfaces import hard
from mmaformal.proof.kernel import by_rule, direct
from mmaformal.queries.constraints import Constraint
from mmaformal.solver.answers import Answer, Different, Equal, Proof, Unknown
from mmaformal.solver.asking import Asker, Settled
from mmaformal.spec import DotAdd
from mmaformal.witness import Witness, WitnessError, case_size

#: Chains of no more blocks than this are searched as they are.
SHORT = 16

#: Nonzero products with which differences are looked for in a shortened chain.
_PRODUCTS = (1, 2)

#: Chains that cannot be shortened are searched up to so many products.
MOST_TERMS = 1 << 12

_BY_INDUCTION = (
    "induction over blocks: chains are equal if their first blocks are from every c, and later ones from every "
    "accumulator"
)

_NOT_MERGED = "that steps of zero products merge is not proved"


class Searching(Protocol):
    def answer(self) -> Answer: ...

    def _idle_steps_pass(self, spec: DotAdd) -> bool: ...


ChainSearch = Callable[
    [Instruction, Instruction, tuple[Constraint, ...], Asker, "Progress | None"], Searching
]


def block_of(x: DotAdd, y: DotAdd) -> int:
    """Products of whole steps, and whole block scales, of both."""
    return math.lcm(step_of(x), step_of(y))


def apply(x: DotAdd, y: DotAdd) -> bool:
    """Whether these are long chains, of whole blocks."""
    block = block_of(x, y)
    return x.k % block == 0 and x.k // block > SHORT


# ---- blocks of terms ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChainPart:
    """The products of one step, or of several, and their scales, as terms."""

    a: tuple[z3.BitVecRef, ...]
    b: tuple[z3.BitVecRef, ...]
    scale_a: tuple[z3.BitVecRef, ...] = ()
    scale_b: tuple[z3.BitVecRef, ...] = ()


def _scales(spec: DotAdd, size: int, prefix: str) -> tuple[tuple[z3.BitVecRef, ...], ...]:
    fmt = spec.scale_format
    if fmt is None:
        return (), ()
    count = range(size // spec.scale_block)
    sides = [tuple(z3.BitVec(f"{prefix}s{side}{i}", fmt.storage_bits) for i in count) for side in "ab"]
    return sides[0], sides[1]


def any_part(spec: DotAdd, size: int, prefix: str) -> ChainPart:
    sides = [
        tuple(z3.BitVec(f"{prefix}{side}{k}", fmt.storage_bits) for k in range(size))
        for side, fmt in (("a", spec.a_format), ("b", spec.b_format))
    ]
    return ChainPart(sides[0], sides[1], *_scales(spec, size, prefix))


def idle_part(spec: DotAdd, size: int, prefix: str) -> ChainPart:
    """Products ±0·+0 (or +0·±0, where a has no −0), whose signs and scales are free."""

    def zeros(fmt: Format, signed: bool) -> tuple[z3.BitVecRef, ...]:
        zero = z3.BitVecVal(0, fmt.storage_bits)
        below = z3.BitVecVal(0, fmt.storage_bits - 1)
        return tuple(z3.Concat(z3.BitVec(f"{prefix}{k}", 1), below) if signed else zero for k in range(size))

    minus = [fmt.has_minus_zero for fmt in (spec.a_format, spec.b_format)]
    a, b = zeros(spec.a_format, minus[0]), zeros(spec.b_format, minus[1] and not minus[0])
    return ChainPart(a, b, *_scales(spec, size, prefix))


def _merged(spec: DotAdd, p: ChainPart, q: ChainPart) -> ChainPart:
    """The idle step that does what p and q do: a product is −0 where both are, a scale NaN where one is."""
    both = [tuple(x & y for x, y in zip(s, t, strict=True)) for s, t in ((p.a, q.a), (p.b, q.b))]
    if spec.scale_format is None:
        return ChainPart(both[0], both[1])
    fmt = spec.scale_format
    scales = [
        tuple(z3.If(is_nan(x, fmt), x, y) for x, y in zip(s, t, strict=True))
        for s, t in ((p.scale_a, q.scale_a), (p.scale_b, q.scale_b))
    ]
    return ChainPart(both[0], both[1], scales[0], scales[1])


def first(spec: DotAdd, parts: Sequence[ChainPart], c: z3.BitVecRef) -> z3.BitVecRef:
    """Return what the first blocks of a chain make of its c."""
    a, b, scale_a, scale_b = (
        [x for part in parts for x in getattr(part, side)] for side in ("a", "b", "scale_a", "scale_b")
    )
    return smt.dot_add(spec.replace(k=len(a)), a, b, c, scale_a, scale_b).result


def later(spec: DotAdd, parts: Sequence[ChainPart], accumulator: z3.BitVecRef) -> z3.BitVecRef:
    """Return what later blocks make of an accumulator: those of a longer chain, the result before them cut away."""
    size = len(parts[0].a)
    before = any_part(spec, size, "before")
    c = z3.BitVec("c", spec.c_format.storage_bits)
    a, b, scale_a, scale_b = (
        [x for part in (before, *parts) for x in getattr(part, side)]
        for side in ("a", "b", "scale_a", "scale_b")
    )
    trace = smt.dot_add(spec.replace(k=len(a)), a, b, c, scale_a, scale_b)
    entering = trace.steps[len(trace.steps) // (len(parts) + 1) - 1].result
    return z3.substitute(trace.result, (entering, accumulator))


def _alike(spec: DotAdd, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    same = x == y
    return (
        same
        if spec.nan_is_canonical
        else z3.Or(same, z3.And(is_nan(x, spec.d_format), is_nan(y, spec.d_format)))
    )


def _step_text(spec: DotAdd) -> str:
    return f"a step of {spec.types}, {spec.parameters.algorithm} {spec.parameters.describe()}"


# ---- what is proved of them --------------------------------------------------------------------------------------


def prove_idle_steps_merge(asker: Asker, spec: DotAdd) -> bool:
    """Whether two idle steps in a row, of any signs and scales, do what one does, from any accumulator."""
    size = step_of(spec)
    p, q = (idle_part(spec, size, prefix) for prefix in "pq")
    one = _merged(spec, p, q)
    c = z3.BitVec("c", spec.c_format.storage_bits)
    text = f"{_step_text(spec)}, with products ±0·±0, does nothing more after another such"
    claims = {
        "idle steps merge": (f"{text}, from any c", first(spec, [p, q], c), first(spec, [one], c)),
        "later idle steps merge": (
            f"{text}, from any result of a step",
            later(spec, [p, q], c),
            later(spec, [one], c),
        ),
    }
    # Two NaNs count as one where payloads are not specified: what follows must not tell them apart.
    after = later(spec, [any_part(spec, size, "")], c)
    if not spec.nan_is_canonical and not _nans_stay(asker, spec, after, c):
        return False
    of_result = z3.And([*_of_results(asker, spec, c)])
    return all(
        asker.prove(
            name,
            statement,
            z3.Implies(of_result, alike) if name.startswith("later") else alike,
            limit=asker.left / 4,
        ).verdict
        == "unsat"
        for name, (statement, two, merged_) in claims.items()
        for alike in [_alike(spec, two, merged_)]
    )


def _of_results(asker: Asker, spec: DotAdd, result: z3.BitVecRef) -> Iterator[z3.BoolRef]:
    """Yield what is proved of every result of a step, and needed."""
    part = any_part(spec, step_of(spec), "")
    c = z3.BitVec("c", spec.c_format.storage_bits)
    one = spec.replace(k=len(part.a))
    step = smt.dot_add(one, part.a, part.b, c, part.scale_a, part.scale_b).steps[0]
    if (known := facts_of(spec).of_result(step)) is None:
        return
    text = f"{_step_text(spec)}, never gives a subnormal"
    if asker.prove("flushed", text, known.of(step.result), cut=known.made_of).verdict == "unsat":
        yield known.of(result)


def results_may_differ(x: DotAdd, y: DotAdd, rx: z3.BitVecRef, ry: z3.BitVecRef) -> z3.BoolRef:
    """Whether two results differ, and are not NaNs of which one model leaves the payload open."""
    if x.nan_is_canonical and y.nan_is_canonical:
        return rx != ry
    return z3.And(rx != ry, z3.Not(z3.And(is_nan(rx, x.d_format), is_nan(ry, y.d_format))))


def blocks_alone(x: Instruction, y: Instruction, blocks: int = 1) -> tuple[Instruction, Instruction]:
    """Chains of so many blocks of two longer chains."""
    k = block_of(x.spec, y.spec) * blocks
    first, second = (
        replace(i, spec=i.spec.replace(k=k), name=f"{i.name.partition('[K=')[0]}[K={k}]", aliases=())
        for i in (x, y)
    )
    return first, second


def by_induction(asker: Asker, x: DotAdd, y: DotAdd, one: Proof) -> Proof | None:
    """The proof that two chains are equal, of that of their first blocks; None where it is not found."""
    settled = prove_induction(asker, x, y)
    return None if settled is None else by_rule(_BY_INDUCTION, one, *map(direct, settled))


def prove_induction(asker: Asker, x: DotAdd, y: DotAdd) -> list[Settled] | None:
    """Prove that later blocks are equal where first ones are: from any accumulator, and from two NaNs.

    Returns the questions that were refuted; None if one was not.
    """
    size = block_of(x, y)
    part, c = any_part(x, size, ""), z3.BitVec("c", x.c_format.storage_bits)
    functions = [(spec, later(spec, [part], c), first(spec, [part], c)) for spec in (x, y)]
    if all(after.eq(before) for _, after, before in functions):
        text = "{}, is the same function at the start of a chain and later"
        settled = [
            asker.prove("later steps", text.format(_step_text(spec)), after == before)
            for spec, after, before in functions
        ]
    else:
        text = (
            f"{_step_text(x)}, and one of {y.parameters.describe()}: later in a chain, the results are equal"
        )
        same = z3.Not(results_may_differ(x, y, functions[0][1], functions[1][1]))
        settled = [asker.prove("later steps", text, same, cut=hard([same]))]
        if settled[0].verdict != "unsat":
            settled = [asker.prove("later steps", text, same)]
    if settled[-1].verdict == "unsat" and not (x.nan_is_canonical and y.nan_is_canonical):
        settled += [_nans_stay(asker, spec, after, c) for spec, after, _ in functions]
    return settled if all(each.verdict == "unsat" for each in settled) else None


def _nans_stay(asker: Asker, spec: DotAdd, after: z3.BitVecRef, accumulator: z3.BitVecRef) -> Settled:
    """Prove that what comes after an accumulator that is a NaN is one too."""
    d = spec.d_format
    claim = z3.Implies(is_nan(accumulator, d), is_nan(after, d))
    return asker.prove("NaNs stay", f"{_step_text(spec)}, gives a NaN from a NaN", claim)


# ---- answers -----------------------------------------------------------------------------------------------------


class LongChains:
    """Two chains of equal length, long ones; `search` settles short ones."""

    def __init__(
        self,
        search: ChainSearch,
        x: Instruction,
        y: Instruction,
        constraints: tuple[Constraint, ...],
        asker: Asker,
        progress: Progress | None,
        question: str,
        zeros_are_alike: Callable[[DotAdd], bool],
    ) -> None:
        self.search, self.x, self.y, self.constraints = search, x, y, constraints
        self.asker, self.progress, self.question = asker, progress, question
        #: whether any zero product may be taken for ±0·+0: what merges, and what passes, is proved of those
        self.zeros_are_alike = zeros_are_alike
        self.block = block_of(x.spec, y.spec)
        self.blocks = x.k // self.block
        self._pass = False  #: whether idle steps may be left out altogether

    def _short(self, blocks: int, constraints: tuple[Constraint, ...]) -> Searching:
        return self.search(*blocks_alone(self.x, self.y, blocks), constraints, self.asker, self.progress)

    def _needed(self, products: int) -> int:
        """Blocks of a chain that stands for all with no more than so many nonzero products."""
        return products if self._pass else 2 * products + 1

    def answer(self) -> Answer:
        """`Different`, `Equal` or `Unknown`."""
        short: Answer
        positions = any(set(each.pins(self.x.spec)) - {"c"} for each in self.constraints)
        if positions or any(each.forbids_zero for each in self.constraints):
            return self._as_it_is()
        specs = self.x.spec, self.y.spec
        if all(facts_of(spec).may_pass_c_on(spec) for spec in specs):
            one = self._short(1, ())
            self._pass = all(map(one._idle_steps_pass, specs))
        found: list[Different] = []
        for products in _PRODUCTS:
            short = self._short(self._needed(products), self.constraints).answer()
            if isinstance(short, Equal):
                return self._equal(short)
            if not isinstance(short, Different):
                break
            found.append(short)
            if _products(short) <= products:
                return self.lift(short, "" if self._steps_merge() else _NOT_MERGED)
        if found:
            fewest = min(found, key=_products)
            return self.lift(
                fewest, f"in chains of {fewest.witness.x.k} products; longer ones were not tried"
            )
        assert isinstance(short, Unknown)
        return replace(short, question=self.question)

    def _as_it_is(self) -> Answer:
        """Constraints on single products, or on all of them to be nonzero: nothing can be left out."""
        if self.x.k > MOST_TERMS:
            why = (
                f"the constraints are about single products, and a chain of {self.x.k} is too long to be searched "
                f"product by product: {MOST_TERMS} at most"
            )
            return Unknown(self.question, why, (), self.asker.elapsed)
        return self.search(self.x, self.y, self.constraints, self.asker, self.progress).answer()

    def _steps_merge(self) -> bool:
        specs = dict.fromkeys((self.x.spec, self.y.spec))
        return all(map(self.zeros_are_alike, specs)) and (
            self._pass or all(prove_idle_steps_merge(self.asker, spec) for spec in specs)
        )

    def _equal(self, short: Answer) -> Answer:
        """Equal chains of a few blocks: so are all, if one block is from any accumulator."""
        one = short
        if self.constraints or self._needed(_PRODUCTS[0]) > 1:
            one = self._short(1, ()).answer()
        if isinstance(one, Equal):
            proof = by_induction(self.asker, self.x.spec, self.y.spec, one.proof)
            if proof is not None:
                return Equal(self.question, proof, self.asker.elapsed)
        why = (
            f"short chains of blocks of {self.block} products are equal, but that a block is, from any accumulator, "
            "is not proved"
        )
        return Unknown(self.question, why, tuple(self.asker.proved), self.asker.elapsed)

    def lift(self, short: Different, open_: str) -> Answer:
        """The difference of a short chain as one of the long chain; `open_` says why it may not be the smallest."""
        witness = short.witness
        sides = {
            "a": witness.a,
            "b": witness.b,
            "scale_a": witness.scale_a,
            "scale_b": witness.scale_b,
        }
        blocks = witness.x.k // self.block
        idle = None if self._pass else self._plainest(witness)
        if idle is None:  # where not even one block is idle, the longer chain is tried with +0·+0 at its end
            place, plain = blocks, self._pass
            sides = {
                name: np.append(codes, codes[: len(codes) // blocks] * 0) for name, codes in sides.items()
            }
        else:
            place, plain = idle
        long = {}
        times = np.ones(blocks + (idle is None), np.int64)
        times[place] += self.blocks - len(times)
        for name, codes in sides.items():
            long[name] = np.repeat(codes.reshape(len(times), -1), times, axis=0).reshape(-1).tolist()
        try:
            whole = Witness.of(
                self.x, self.y, long["a"], long["b"], int(witness.c), long["scale_a"], long["scale_b"]
            )
        except WitnessError:
            if not open_:
                raise
            why = f"{witness.x.label} and {witness.y.label} differ, but not their longer chains on that input; {open_}"
            return Unknown(self.question, why, short.obligations, self.asker.elapsed)
        return replace(
            short,
            question=self.question,
            witness=whole,
            minimality=tuple(_claim(line, open_, plain) for line in short.minimality),
            obligations=tuple(self.asker.proved),
            seconds=self.asker.elapsed,
        )

    def _plainest(self, witness: Witness) -> tuple[int, bool] | None:
        """The idle block of a case that costs least to repeat, the last of those; and whether it costs nothing.

        None if every block has a product that is not zero.
        """
        spec = self.x.spec.replace(k=self.block)
        costs: list[tuple[tuple[int, ...], int]] = []
        blocks = witness.x.k // self.block
        sides = [witness.a.reshape(blocks, -1), witness.b.reshape(blocks, -1)]
        sides += [side.reshape(blocks, -1) for side in (witness.scale_a, witness.scale_b)]
        for number, codes in enumerate(zip(*(side.tolist() for side in sides), strict=True)):
            size = case_size(spec, codes[0], codes[1], 0, *codes[2:])
            if size[0] == 0:
                costs.append(((*size[2:], sum(map(bool, (*codes[0], *codes[1])))), -number))
        if not costs:
            return None
        cost, number = min(costs)
        return -number, not any(cost)


def _products(answer: Different) -> int:
    return answer.witness.size[0]


def _claim(line: str, open_: str, plain: bool) -> str:
    """A line of what is minimal, as it is of the long chain."""
    what, _, how = line.rpartition(": ")
    if what.startswith("codes"):
        open_ = open_ or "of those of a shorter chain"
    if how != "proved minimal" or (plain and not open_):
        return line
    return f"{what}: best found ({open_ or 'the steps that were left out have minus signs'})"
