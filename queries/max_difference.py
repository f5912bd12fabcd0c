"""How far apart are two instructions?  A bound of |d - d'|, and the input found on which they differ most.

    from mmaformal.queries.max_difference import max_difference
    print(max_difference(ampere, hopper, "HMMA.16816.F32"))

`mmaformal max-difference` is the command.  Measured relative to σ = w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least
normal number), which is |c| + Σ|a·b| where no operand is subnormal or zero; where one is, it may be far more.  Each of
the two is off the exact sum by at most its own factor times σ (`analysis/units`), so their results are no further apart
than both factors together, where all are finite.  With `prove` both factors are proved (`queries/bound`), and
that their sum is a bound.

Of one fused step the same is told in units u = 2^(e_max − F) of the coarser alignment: what both align is off by
n + n'·2^(F − F'), and rounding adds its share of the largest sum there is, of all terms of exponent e_max.  In ulps of
d there is no bound, since d may cancel.

The input is searched: operands of several kinds, and from the best of those codes changed a few at a time.  It need not
be the largest: the answer says how far from the bound it is.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.analysis.operands import KINDS, draw_scales, operands_of
from mmaformal.analysis.rounding import Floats
from mmaformal.analysis.units import Unit, weights
from mmaformal.architectures import Architecture
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows, symbolic_inputs
from mmaformal.cases.run import quick_results
from mmaformal.checked import Progress, caller, integer
from mmaformal.display import ShortRepr
from mmaformal.executors import each_in_order, told_parts, workers_given
from mmaformal.facts.product_bound import prove_apart
from mmaformal.formats import Format, exponent_of, fp32, fp64
from mmaformal.gemm import rounded_codes, values
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError, together
from mmaformal.queries.bound import of_instruction, where_finite
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.find_difference import comparable
from mmaformal.renamed import keywords, warn
from mmaformal.result import Result
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import Deadline, check_time, checked_timeout, checking, last_within
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Portfolio
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spec import LossModel
from mmaformal.witness import Witness, WitnessError

#: Cases of each round of the search, and how many of the best are kept for the next; cases tried before the first.
_ROUND, _KEPT, _FEW = 4096, 64, 64

#: The part of the time for the search; the rest is for normally distributed operands.
_SEARCHING = 0.85

#: Rounds without a better case after which the search ends.
_PATIENCE = 40


@dataclass(frozen=True, repr=False)
class Apart(Result):
    """How far two instructions are apart, relative to σ."""

    bound: Fraction  #: no input's results are further apart
    found: Fraction  #: and so far they are, of the witness; exactly
    ulps: float  #: the same in units of the last place of the larger result
    witness: Witness | None  #: None if none was found
    units: Units | None = None  #: of one step
    #: the most of operands that are normally distributed; None if the time was up before it was known
    random: float | None = None
    proof: Answer | None = None  #: of the bound, if it was asked for
    searched: bool = True  #: whether inputs were searched; if not, the time was up

    @property
    def verdict(self) -> str:
        """`equal`: the bound is 0; `different`: an input was found; `unknown`: none was, or the bound is not proved."""
        if not self.bound:
            return "equal"
        return "unknown" if isinstance(self.proof, Unknown) or not self.found else "different"

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The bound, and how far apart the results of the input found are."""
        return (
            Number("bound", self.bound, "no input's results are further apart, relative to σ"),
            Number("found", self.found, "how far apart those of the input found are, relative to σ"),
        )

    @property
    def summary(self) -> str:
        """One line."""
        return f"found {float(self.found):.4g}, at most {float(self.bound):.4g}"

    @property
    def gap(self) -> float:
        """How many times the bound is what was found."""
        return float(self.bound / self.found) if self.found else math.inf

    def __str__(self) -> str:
        return self._text(whole=False)

    def verbose(self) -> str:
        """`str` of it, with every product and every step of the witness, and what was proved."""
        return self._text(whole=True)

    def _text(self, whole: bool) -> str:
        unit = 2.0**24
        if not self.bound:
            return "they are one function"
        proved = "" if self.proof is None else f"\n{self.proof.verbose() if whole else self.proof}"
        if self.witness is None:
            none = "no input was found that differs"
            none = none if self.searched else "the time was up before any input was tried: give it more"
            return f"at most {float(self.bound) * unit:.4g} · 2^-24 of σ; {none}{proved}"
        random = "not known: the time was up"
        if self.random is not None:
            random = f"{self.random * unit:.4g} · 2^-24, the most of normally distributed numbers"
        lines = [
            f"{self.witness.x.label} and {self.witness.y.label}: |d − d'| / σ",
            "  σ = w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number)",
            f"  at most  {float(self.bound) * unit:.4g} · 2^-24, from the bounds of their steps",
            f"  found    {float(self.found) * unit:.4g} · 2^-24, {self.ulps:.4g} ulp of d: the bound is {self.gap:.2g} "
            "times as large",
            f"  random   {random}",
        ]
        if self.units is not None:
            lines.append(f"  {self.units}")
        return "\n".join([*lines, self.witness.verbose() if whole else str(self.witness)]) + proved

    def to_json(self) -> dict[str, object]:
        return {
            "bound": float(self.bound),
            "found": float(self.found),
            "ulps": self.ulps,
            "random": self.random,
            "searched": self.searched,
            "units": None if self.units is None else vars(self.units),
            "witness": None if self.witness is None else self.witness.to_json(),
            "proof": None if self.proof is None else self.proof.to_json(),
        }


@dataclass(frozen=True, repr=False)
class Units(ShortRepr):
    """A difference in units 2^(e_max − F) of a step."""

    F: int
    bound: float
    found: float  #: of the witness, whose largest exponent is e_max

    def __str__(self) -> str:
        return (
            f"units    {self.found:.4g} · 2^(e_max − {self.F}) of that input, {self.bound:.4g} at most of any"
        )


class Allowed:
    """Which cases constraints allow."""

    def __init__(self, x: Instruction, constraints: Sequence[Constraint]) -> None:
        self.x, self.constraints = x, constraints
        self.pins = {name: code for each in constraints for name, code in each.pins(x.spec).items()}
        self.said: z3.BoolRef | None = None
        self.of_result: z3.BoolRef | None = None
        if not constraints:
            return
        self.inputs, self.result = symbolic_inputs(x.spec), z3.BitVec("d", x.d_format.storage_bits)
        terms = [term for each in constraints for term in each.on_inputs(x.spec, self.inputs)]
        results = [term for each in constraints for term in each.on_result(x.spec, self.result)]
        self.said = z3.And(*terms) if terms else None
        self.of_result = z3.And(*results) if results else None

    def pinned(self, cases: Rows) -> Rows:
        """Return the cases with the codes that are given put into them."""
        for name, code in self.pins.items():
            if name == "c":
                cases.c[:] = code
            else:
                getattr(cases, name.rstrip("0123456789"))[:, int(name.lstrip("abscle_"))] = code
        return cases

    def inside(self, cases: Rows) -> NDArray[np.bool_]:
        """Say for each case whether it is allowed."""
        if self.said is None:
            return np.ones(len(cases), bool)
        columns = cases.codes
        values = {
            str(term): codes.astype(object)
            for terms, sides in (
                (self.inputs.a, columns.a),
                (self.inputs.b, columns.b),
                ((self.inputs.c,), (columns.c,)),
                (self.inputs.scale_a, columns.scale_a),
                (self.inputs.scale_b, columns.scale_b),
            )
            for term, codes in zip(terms, sides, strict=True)
        }
        return np.broadcast_to(evaluate(self.said, values), len(cases)).astype(bool)

    def results(self, codes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if self.of_result is None:
            return np.ones(len(codes), bool)
        found = evaluate(self.of_result, {str(self.result): codes.astype(object)})
        return np.broadcast_to(found, len(codes)).astype(bool)


@keywords(seconds="timeout")
def max_difference(
    x: Architecture | Instruction | str,
    y: Architecture | Instruction | str,
    instruction: str | None = None,
    other: str | None = None,
    *,
    where: Constraint | str | Iterable[Constraint | str] = (),
    seed: int = 0,
    searches: int = 1,
    prove: bool = False,
    timeout: float = 20.0,
    proof_timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Apart:
    """Find the largest difference of results, relative to σ: a bound, and the largest that a search finds.

    x, y, instruction, other, where: as `find_difference` takes them; the bound is that of all inputs.  `timeout`
    seconds at most for the search, which ends with the best found until then; a kernel that numba compiles, once on a
    machine, is compiled to its end all the same.  Of so many `searches`, each of numbers of its own, for as
    long, the best counts; where all end by themselves, that does not depend on the workers that take them: `jobs`
    processes (default: this one), or those of an `executor`.  With `prove` both bounds are proved, in `proof_timeout`
    more seconds for each; `memory`, `solver` and `cache` are for that.  progress: told what is being done.

    Raises ValueError for instructions that have no bound relative to their terms; otherwise as `find_difference`.
    """
    caller(progress)
    if not isinstance(prove, bool):
        warn("max_difference(prove=SECONDS) is (prove=True, proof_timeout=SECONDS) now", above=3)
        prove, proof_timeout = bool(prove), prove or proof_timeout
    timeout, proof_timeout = checked_timeout(timeout), checked_timeout(proof_timeout)
    left, right = comparable(x, y, instruction, other)
    units = _units_of(left, right)
    if left.spec == right.spec:
        return Apart(Fraction(0), Fraction(0), 0.0, None, random=0.0)
    bound = units[0].factor(left.k) + units[1].factor(right.k)
    say = progress or (lambda _: None)
    proof = None
    if prove:
        say("proving the bounds")
        with session(solver, memory, cache) as portfolio:
            proof = _proved(left, right, bound, portfolio, proof_timeout)
    say("searching")
    deadline = time.monotonic() + timeout
    seeds, constraints = (seed, searches), as_constraints(where)
    with workers_given(executor, jobs) as workers:
        found = _searched(left, right, units, constraints, seeds, timeout, workers, say)
    searched, best = any(each.tried for each in found), _farthest(left, right, found)
    random = _random_within(deadline, timeout if searches > 1 else 0, left, right, [seed, 1])
    return _apart(left, right, Apart(bound, Fraction(0), 0.0, None, None, random, proof, searched), best)


def _apart(x: Instruction, y: Instruction, known: Apart, best: Codes | None) -> Apart:
    """Returns the answer of what is known, with the input found.  Raises WitnessError where it refutes the bound."""
    if best is None:
        return known
    witness = Witness.of(x, y, best.a, best.b, best.c, best.scale_a, best.scale_b)
    apart, place = _distance(witness, x.d_format)
    if apart > known.bound * _sigma(x, best):
        raise WitnessError(f"{x.label} and {y.label} are farther apart than their bound, on {witness}")
    found, units = apart / _sigma(x, best), _units(_units_of(x, y), best, apart)
    return replace(known, found=found, ulps=float(apart / place), witness=witness, units=units, searched=True)


class _Searched(NamedTuple):
    """A search's finding."""

    tried: bool  #: whether inputs were tried; if not, the time was up
    best: Codes | None


def _searched(
    x: Instruction,
    y: Instruction,
    units: tuple[Unit, Unit],
    constraints: tuple[Constraint, ...],
    seeds: tuple[int, int],
    timeout: float,
    executor: Executor | None,
    say: Progress,
) -> list[_Searched]:
    """Returns the findings of so many searches of a seed, the first as with the seed alone."""
    seed, count = seeds
    if integer(count, "searches") < 1:
        raise ValueError(f"searches is {count}; it counts from 1")
    drawn = [(seed,), *((seed, n) for n in range(2, count + 1))]
    parts = [(x, y, units, constraints, each, timeout * _SEARCHING) for each in drawn]
    told, found = told_parts(say if count > 1 else None, count), []
    for each in each_in_order(executor, _one_search, parts):
        found.append(each)
        told(len(found))
    return found


#: z3 is for one thread at a time.
_z3 = threading.Lock()


def _one_search(
    x: Instruction,
    y: Instruction,
    units: tuple[Unit, Unit],
    constraints: tuple[Constraint, ...],
    seed: tuple[int, ...],
    seconds: float,
) -> _Searched:
    """One search, in a worker."""
    rng = np.random.default_rng(seed[0] if len(seed) == 1 else seed)
    with _z3 if constraints else nullcontext():
        allowed = Allowed(x, constraints)
        bests = (_Searched(True, best) for best in _search(x, y, units, rng, allowed))
        found, _ = last_within(seconds, bests, _Searched(False, None))
        del bests, allowed
    return found


def _farthest(x: Instruction, y: Instruction, found: Sequence[_Searched]) -> Codes | None:
    """The case whose results are farthest apart, the first of those alike."""
    cases = [each.best for each in found if each.best is not None]

    def apart(case: Codes) -> Fraction:
        witness = Witness.of(x, y, case.a, case.b, case.c, case.scale_a, case.scale_b)
        return _distance(witness, x.d_format)[0] / _sigma(x, case)

    return max(cases, key=apart, default=None) if len(cases) > 1 else next(iter(cases), None)


def _units_of(x: Instruction, y: Instruction) -> tuple[Unit, Unit]:
    """Return the instructions' units; raise ValueError for one that has no bound relative to its terms."""
    units = Unit.of(x), Unit.of(y)
    if flushing := [unit.instruction.label for unit in units if unit.flushing is not None]:
        raise ValueError(f"{flushing[0]} takes subnormal numbers for zero: no bound relative to the terms")
    return units


def _distance(witness: Witness, fmt: Format) -> tuple[Fraction, Fraction]:
    """Return how far apart the two results are, and the unit in the last place of the larger."""
    one, two = (fmt.value(code) for code in witness.results)
    exponent = math.frexp(float(max(abs(one), abs(two))))[1] - 1
    return abs(one - two), Fraction(2) ** (max(exponent, fmt.min_exponent) - fmt.fraction_bits)


def _proved(x: Instruction, y: Instruction, bound: Fraction, portfolio: Portfolio, timeout: float) -> Answer:
    """Proves that both bounds hold, and so their sum."""
    question = (
        f"{x.label} and {y.label}: |d − d'| ≤ {float(bound):.7g} · (w(c) + Σ w(a)·w(b)), {where_finite(x, y)}"
    )
    proofs = []
    for each in (x, y):
        answer = of_instruction(each, portfolio, timeout=timeout)
        if not isinstance(answer, Holds):
            assert isinstance(answer, Unknown)
            return replace(answer, question=question)
        proofs.append(answer)
    asker = Asker(portfolio, timeout)
    proving = Composing(asker)
    try:
        prove_apart(proving)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    together_ = together(*(answer.proof for answer in proofs), proving.proof())
    return Holds(question, together_, asker.elapsed + sum(answer.seconds for answer in proofs))


def _units(units: tuple[Unit, Unit], codes: Codes, apart: Fraction) -> Units | None:
    """In units of the coarser alignment, of one step of fused sums; None of others."""
    one, other = (unit.stages for unit in units)
    i = units[0].instruction
    steps = [len(stages) == 1 and stages[0].n and stages[0].products == i.k for stages in (one, other)]
    if not all(steps) or LossModel.PRODUCTS in {unit.instruction.spec.parameters.loss for unit in units}:
        return None
    F = min(one[0].F, other[0].F)
    lost = sum((stage.n / Fraction(2) ** (stage.F - F) for stage in (one[0], other[0])), Fraction(0))
    # A product is less than 4 · 2^e_max, c less than 2; what is lost makes the sum no larger than one unit of each.
    largest = (4 * i.k + 2) * 2**F + lost
    bound = lost + sum((stage.u_rho for stage in (one[0], other[0])), Fraction(0)) * largest
    if i.spec.scale_format is not None:
        return None
    pairs = zip(codes.a, codes.b, strict=True)
    exponents = [
        _exponent(a, i.a_format) + _exponent(b, i.b_format)
        for a, b in pairs
        if i.a_format.value(a) and i.b_format.value(b)
    ]
    e_max = max([*exponents, _exponent(codes.c, i.c_format)])
    return Units(F, float(bound), float(apart / Fraction(2) ** (e_max - F)))


def _exponent(code: int, fmt: Format) -> int:
    """Return the exponent of a number; the least one of a subnormal number."""
    value = abs(fmt.value(code))
    if value < Fraction(2) ** fmt.min_exponent:
        return fmt.min_exponent
    return exponent_of(value)


#: Products of matrices of normally distributed numbers, and their rows.
_RANDOM, _SIDE = 4, 256


def _random(x: Instruction, y: Instruction, rng: np.random.Generator) -> float:
    """The most of normally distributed operands, scales 1."""
    most = 0.0
    for _ in checking(range(_RANDOM)):
        a, b = (_codes_of(rng.standard_normal((_SIDE, x.k)), fmt) for fmt in (x.a_format, x.b_format))
        c = _codes_of(rng.standard_normal(_SIDE), x.c_format)
        ones = np.full((_SIDE, x.spec.scales), 0, np.uint64)
        if x.spec.scale_format is not None:
            ones += np.uint64(x.spec.scale_format.code("1"))
        most = max(most, float(_scores(x, y, Rows(a, b, c, ones, ones)).max()))
    return most


def _random_within(
    deadline: float, timeout: float, x: Instruction, y: Instruction, seed: list[int]
) -> float | None:
    """`_random`, however far the search came, until a time, or for its part of a timeout; None if the time was up."""
    with Deadline(max(deadline - time.monotonic(), timeout * (1 - _SEARCHING))):
        return _random(x, y, np.random.default_rng(seed))
    return None


def _codes_of(x: NDArray[np.float64], fmt: Format) -> NDArray[np.uint64]:
    """Rounded to nearest; of tf32, cut."""
    if fmt.ignored_low_bits:
        mask = np.uint64(0xFFFFFFFF >> fmt.ignored_low_bits << fmt.ignored_low_bits)
        return rounded_codes(x, fp64, fp32, 0).astype(np.uint64) & mask
    if fmt.storage_bits > 8:
        return rounded_codes(x, fp64, fmt, 0).astype(np.uint64)
    finite = sorted((fmt.value(code), code) for code in range(fmt.codes) if fmt.is_finite(code))
    numbers = np.array([float(value) for value, _ in finite])
    at = np.clip(np.searchsorted(numbers, x), 1, len(numbers) - 1)
    nearer = np.where(x - numbers[at - 1] < numbers[at] - x, at - 1, at)
    return np.array([code for _, code in finite], np.uint64)[nearer]


def _sigma(i: Instruction, codes: Codes) -> Fraction:
    """σ, exactly."""

    def w(code: int, fmt: Format) -> Fraction:
        return max(abs(fmt.value(code)), Fraction(2) ** fmt.min_exponent)

    total = w(codes.c, i.c_format)
    for k, (a, b) in enumerate(zip(codes.a, codes.b, strict=True)):
        scale = Fraction(1)
        if (fmt := i.spec.scale_format) is not None:
            block = k // i.spec.scale_block
            scale = w(codes.scale_a[block], fmt) * w(codes.scale_b[block], fmt)
        total += w(a, i.a_format) * w(b, i.b_format) * scale
    return total


def _search(
    x: Instruction,
    y: Instruction,
    units: tuple[Unit, Unit],
    rng: np.random.Generator,
    allowed: Allowed,
) -> Iterator[Codes | None]:
    """The case with the largest difference so far, among those that are allowed, if there is any; after every round."""
    without = 0
    few = allowed.pinned(generate(x.spec, _FEW))
    few = few.at(allowed.inside(few))
    if len(few):
        yield _best(few, _scores(x, y, few, allowed))
    pool = allowed.pinned(_first(x, units, rng))
    pool = Rows.join([few, pool.at(allowed.inside(pool))])
    if not len(pool):
        yield None
        return
    scores = _scores(x, y, pool, allowed)
    while (best_case := _best(pool, scores)) and without < _PATIENCE:
        yield best_case
        check_time()
        order = np.lexsort((rng.random(len(scores)), scores))  # of cases alike, others each time
        kept = order[-_KEPT:]
        best, pool = float(scores[kept[-1]]), pool.at(kept)
        changed = allowed.pinned(_changed(pool, x, rng))
        changed = changed.at(allowed.inside(changed))
        pool = Rows.join([pool, changed])
        scores = np.concatenate([scores[kept], _scores(x, y, changed, allowed)])
        without = 0 if float(scores.max()) > best else without + 1
    yield best_case


def _best(pool: Rows, scores: Floats) -> Codes | None:
    """The case of the largest score, if that is above 0."""
    at = int(scores.argmax())
    return pool[at] if scores[at] > 0 else None


def _first(x: Instruction, units: tuple[Unit, Unit], rng: np.random.Generator) -> Rows:
    """Cases of all kinds."""
    parts = [generate(x.spec, _ROUND, int(rng.integers(1 << 30)))]
    for unit in units:
        for kind in checking(KINDS):
            A, B, C = operands_of(unit, kind, rng, x.k)
            n, scales = len(A), (draw_scales(x, x.k, rng) if x.spec.scale_format is not None else {})
            none = np.empty((n, 0), np.uint64)
            scale_a = scales["scale_a"].astype(np.uint64) if scales else none
            scale_b = scales["scale_b"].T.astype(np.uint64) if scales else none
            parts.append(
                Rows(
                    A.astype(np.uint64),
                    B.T.astype(np.uint64),
                    C[np.arange(n), np.arange(n)].astype(np.uint64),
                    scale_a,
                    scale_b,
                )
            )
    return Rows.join(parts)


def _changed(pool: Rows, i: Instruction, rng: np.random.Generator) -> Rows:
    """Cases with few codes changed: a bit, the next code, that of another product; or a product in several places."""
    found = pool.at(rng.integers(0, len(pool), _ROUND))
    rows = np.arange(_ROUND)
    for _ in range(int(rng.integers(1, 4))):
        k, other = rng.integers(0, i.k, _ROUND), rng.integers(0, i.k, _ROUND)
        copied = (rng.random((_ROUND, i.k)) < rng.random((_ROUND, 1))) & (rng.random((_ROUND, 1)) < 0.3)
        for side, fmt in ((found.a, i.a_format), (found.b, i.b_format)):
            low = np.uint64(1) << np.uint64(fmt.ignored_low_bits)
            bits = low << rng.integers(0, fmt.storage_bits - fmt.ignored_low_bits, _ROUND).astype(np.uint64)
            code, how = side[rows, k], rng.integers(0, 6, _ROUND)
            choices = [code ^ bits, code + low, code - low, side[rows, other], code, code]
            side[rows, k] = np.choose(how, choices) & np.uint64(fmt.codes - 1)
            side[:] = np.where(copied, side[rows, other][:, None], side)
        if i.spec.scale_format is not None:
            for scale in (found.scale_a, found.scale_b):
                block = rng.integers(0, i.spec.scales, _ROUND)
                step = rng.integers(-2, 3, _ROUND).astype(np.uint64)
                scale[rows, block] = (scale[rows, block] + step) & np.uint64(i.spec.scale_format.codes - 1)
        bits = np.uint64(1) << rng.integers(0, i.c_format.storage_bits, _ROUND).astype(np.uint64)
        found.c[:] = np.where(rng.random(_ROUND) < 0.3, found.c ^ bits, found.c)
    return found


def _scores(x: Instruction, y: Instruction, cases: Rows, allowed: Allowed | None = None) -> Floats:
    """|d - d'| / σ of each case; 0 where one is not finite, or not allowed."""
    with np.errstate(all="ignore"):
        codes = [quick_results(i.spec, cases) for i in (x, y)]
        one, other = (
            values(each.astype(i.d_format.word), i.d_format, fp64).astype(np.float64)
            for i, each in zip((x, y), codes, strict=True)
        )
        a, b = (weights(c.astype(f.word), f, "") for c, f in ((cases.a, x.a_format), (cases.b, x.b_format)))
        products = a * b
        if (fmt := x.spec.scale_format) is not None:
            for scale in (cases.scale_a, cases.scale_b):
                each = np.repeat(weights(scale.astype(fmt.word), fmt, ""), x.spec.scale_block, axis=1)
                products = products * each[:, : x.k]
        sigma = products.sum(axis=1) + weights(cases.c.astype(x.c_format.word), x.c_format, "c")
        found: Floats = np.abs(one - other) / sigma
    if allowed is not None:
        found = np.where(allowed.results(codes[0]) & allowed.results(codes[1]), found, 0.0)
    return np.where(np.isfinite(found), found, 0.0)
