"""Is one instruction ever less accurate than another?  The smallest input on which its d is farther from the exact sum.

    less_accurate(emulation["ootomo(volta HMMA.884.F32.F32)"], emulation["markidis(volta HMMA.884.F32.F32)"])

`mmaformal less-accurate` is the command.  Both take fp32 and give fp32: programs of the architecture "emulation",
mostly.  Inputs have a few nonzero products, the others being +0·+0, and c = +0; inputs and both results are finite.
With x, y the results and s the exact sum, x is farther from s than y if s lies beyond the middle of both, on the side
of y: 2s > x + y where x < y, 2s < x + y where x > y.  That is asked in fixed point, with all the places that products
and results of fp32 have: nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.cases.numerical import exact_of
from mmaformal.cases.questions import FoundCase, Places
from mmaformal.cases.run import run, run_both
from mmaformal.cases.shrink import shrink
from mmaformal.cases.smallest import SmallestSearch
from mmaformal.cases.symmetries import Symmetries, symmetry_classes
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.checked import Progress, caller, integer
from mmaformal.display import ShortRepr
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import BitVec, decode, resize
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.laws import Laws
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows as compiled
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError, by_rule, direct
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Portfolio
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.studies.emulation import one_product
from mmaformal.witness import WitnessError

#: the last place of a product of fp32, and how far above it the highest one is
_LAST = 2 * (fp32.min_exponent - fp32.fraction_bits)
_PLACES = 2 * fp32.max_exponent + 2 - _LAST


def less_accurate(
    x: Instruction | str,
    y: Instruction | str,
    *,
    products: int = 1,
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Find out whether x is ever farther from the exact sum than y, on inputs of at most so many nonzero products.

    `Fails` with the smallest such input, as `find_difference` has it; `Holds` if there is none, of both encodings.

    Raises ValueError for instructions of other types than fp32, or not of one K, and unless `products` is 1 or more;
    NoSolverError without a solver.  `memory`, `solver`, `progress` and `cache` are as `find_difference` has them.
    """
    caller(progress)
    checked_timeout(timeout)
    if integer(products, "products") < 1:
        raise ValueError(f"products is {products}: inputs have 1 nonzero product at least")
    x, y = instruction_meant(x), instruction_meant(y)
    for each in (x, y):
        formats = {each.a_format, each.b_format, each.c_format, each.d_format}
        if formats != {fp32} or each.k != x.k:
            raise ValueError(
                f"{each.label} computes {each.spec.types}, K = {each.k}: both are to take fp32, of one K"
            )
    with session(solver, memory, cache, Portfolio) as portfolio:
        asker = Asker(portfolio, timeout)
        search = _Smallest(x, y, asker, products, progress)
        answer = asker.within(search.question, search.answer)
        if isinstance(answer, Holds):
            holds = answer
            answer = asker.within(
                search.question, lambda: of_both_encodings(holds, x, (x.spec, y.spec), asker)
            )
        return answer


def nearest_product(
    x: Instruction, *, timeout: float = 600.0, memory: int = DEFAULT_MEMORY, solver: Solver = None
) -> Answer:
    """Where Ootomo and Yokota's product of two numbers is the nearest there is (`one_product`).

    Raises NoSolverError without a solver; ValueError for another instruction than an emulation.
    """
    checked_timeout(timeout)
    if not x.parameters.is_program:
        raise ValueError(f"{x.label} is no emulation")
    question = (
        f"{x.label}: of one nonzero product a·b, with c = 0, d is a·b rounded to nearest, so that no number of fp32 is "
        f"nearer, if b is a number of fp16, and a is 0, or has at most 23 significant bits, an exponent from "
        f"{one_product.LEAST} on, and a first word that is finite"
    )
    with session(solver, memory) as portfolio:
        asker = Asker(portfolio, timeout)

        def settle() -> Answer:
            proving = Composing(asker)
            try:
                one_product.prove_one_product(proving, x.spec)
            except NotProvedError as error:
                return Unknown(question, str(error), proving.obligations, asker.elapsed)
            answer = Holds(question, proving.proof(), asker.elapsed)
            return of_both_encodings(answer, x, (x.spec,), asker)

        return asker.within(question, settle)


# ---- in fixed point --------------------------------------------------------------------------------------------------


def _placed(sign: BitVec, significand: BitVec, place: BitVec, bits: int) -> BitVec:
    """A number, in two's complement: a significand whose last place is so many above the last of all."""
    magnitude = resize(significand, bits) << resize(place, bits)
    return z3.If(sign == 1, -magnitude, magnitude)


def _number(code: BitVec, bits: int) -> BitVec:
    """The number that a finite code is."""
    x = decode(code, fp32)
    lowest = fp32.min_exponent - fp32.fraction_bits - _LAST  # of a code whose field is 1
    return _placed(x.sign, x.significand, resize(x.field, 16) + (lowest - 1), bits)


def _product(a: BitVec, b: BitVec, bits: int) -> BitVec:
    """The exact product of two finite codes."""
    x, y = decode(a, fp32), decode(b, fp32)
    width = x.significand.size() + y.significand.size()
    significand = resize(x.significand, width) * resize(y.significand, width)
    return _placed(x.sign ^ y.sign, significand, resize(x.field, 16) + resize(y.field, 16) - 2, bits)


def farther(x: BitVec, y: BitVec, terms: Sequence[tuple[BitVec, BitVec]]) -> z3.BoolRef:
    """Return the claim that the number of x is farther from the sum of products than that of y; all codes finite."""
    bits = _PLACES + 4 + len(terms).bit_length()
    u, v = _number(x, bits), _number(y, bits)
    zero = z3.BitVecVal(0, bits)
    twice, both = sum((_product(a, b, bits) for a, b in terms), start=zero) << 1, u + v
    return z3.Or(z3.And(u < v, twice > both), z3.And(u > v, twice < both))


# ---- on random data --------------------------------------------------------------------------------------------------

#: Distributions of a and b.
DRAWN: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform in (-1, 1)": lambda rng, shape: rng.uniform(-1, 1, shape),
    "uniform in (0, 1)": lambda rng, shape: rng.uniform(0, 1, shape),
    "normal, times 2^-12": lambda rng, shape: np.ldexp(rng.standard_normal(shape), -12),
}


@dataclass(frozen=True, repr=False)
class Often(ShortRepr):
    """A count among random rows: how many have x's result farther from the exact sum than y's, and how many nearer."""

    drawn: str
    rows: int
    farther: int
    nearer: int
    errors: tuple[float, float]  #: of x and y: root mean squares, in 2^-24 of that of the exact sums

    def to_json(self) -> dict[str, object]:
        counts = {"rows": self.rows, "farther": self.farther, "nearer": self.nearer}
        return {"drawn": self.drawn, **counts, "errors": list(self.errors)}

    def __str__(self) -> str:
        same = self.rows - self.farther - self.nearer
        shares = ", ".join(
            f"{what} {100 * count / self.rows:.2f} %"
            for what, count in (("farther", self.farther), ("as far", same), ("nearer", self.nearer))
        )
        errors = "errors {:.3g} and {:.3g} · 2^-24".format(*self.errors)
        return f"{self.drawn}, {self.rows} rows: {shares}; {errors}"


def how_often(x: Instruction, y: Instruction, drawn: str, rows: int, seed: int = 0) -> Often:
    """On rows of one of `DRAWN`, c = 0.  Every comparison is exact: products of fp32 are exact in fp64, and `math.fsum`
    rounds once, so that it has the sign of what is left of the sum without the middle of both results."""
    rng = np.random.default_rng(seed)
    a, b = (DRAWN[drawn](rng, (rows, x.k)).astype(np.float32) for _ in range(2))
    u, v = (
        compiled.dot_add(i.spec, a.view(np.uint32), b.view(np.uint32), np.zeros(rows, np.uint32))
        .view(np.float32)
        .astype(np.float64)
        for i in (x, y)
    )
    products = (a.astype(np.float64) * b).tolist()

    def left(of: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is left of the exact sums without numbers."""
        return np.array([math.fsum((*row, -each)) for row, each in zip(products, of.tolist(), strict=True)])

    beyond = left((u + v) / 2)
    side = np.sign(beyond) * np.sign(v - u)  # 1: the sum lies on the side of y
    size = float(np.sqrt(np.mean(left(np.zeros(rows)) ** 2)))
    errors = [float(np.sqrt(np.mean(left(d) ** 2))) * 2**24 / size for d in (u, v)]
    return Often(drawn, rows, int((side > 0).sum()), int((side < 0).sum()), (errors[0], errors[1]))


# ---- the search ------------------------------------------------------------------------------------------------------


_ONE_PLACE = (
    "places: products that change places without a change of either result need be tried at one of them"
)


class _Smallest(SmallestSearch):
    """The search for the smallest input on which x is farther from the exact sum."""

    nothing = "x is nowhere farther from the exact sum, other products being +0·+0, c = +0, all finite,"
    tells_all = True

    def __init__(
        self, x: Instruction, y: Instruction, asker: Asker, products: int, progress: Progress | None
    ) -> None:
        super().__init__(x.spec, asker, {"c": 0}, False, progress)
        self.x, self.y, self.most = x, y, min(products, x.k)
        self._best: FoundCase | None = None
        some = "one nonzero product" if self.most == 1 else f"at most {self.most} nonzero products"
        self.question = (
            f"{x.label} is never farther from the exact sum than {y.label}, with {some}, the others +0·+0, c = +0, and "
            f"finite inputs and results"
        )
        self.laws = Laws(asker)

    def find_licences(self) -> Symmetries:
        """Products of a class may change places, if that is proved of both; idle ones are +0·+0 by the question."""
        models = self.x.spec, self.y.spec
        ordered = all(map(self.laws.order, models))
        classes = symmetry_classes(*models) if ordered else list(range(self.spec.k))
        return Symmetries(classes, exchange=False, signs=False, zeros="plus", given=True)

    def shows(self, inputs: Inputs, active: Places | None) -> tuple[list[z3.BoolRef], list[z3.BitVecRef]]:
        results = [smt.dot_add(i.spec, inputs.a, inputs.b, inputs.c).result for i in (self.x, self.y)]
        places = range(self.spec.k) if active is None else active
        pairs = [(inputs.a[k], inputs.b[k]) for k in places]
        codes = [*results, *(code for pair in pairs for code in pair)]
        return [*(is_finite(code, fp32) for code in codes), farther(results[0], results[1], pairs)], results

    def note(self, found: FoundCase) -> None:
        """The answer from now on, if the time is up before a smaller case is found."""
        if self._best is None or self.size(found) < self.size(self._best):
            self.minimality = self.nothing_proved(found, "the time given was used up")
            best, self._best = self._fails(found), found
            self.asker.best = lambda: replace(best, seconds=self.asker.elapsed)

    def made_smaller(self, codes: Codes) -> Codes:
        return shrink(self.spec, codes, self._seen)

    def _seen(self, cases: Sequence[Codes]) -> list[bool]:
        """Whether cases show it, by the executables and exact arithmetic."""

        def one(codes: Codes, x: int, y: int) -> bool:
            s = exact_of(self.spec, codes)
            if s is None or codes.c or not (fp32.is_finite(x) and fp32.is_finite(y)):
                return False
            idle = all(a == b == 0 for a, b in zip(codes.a, codes.b, strict=True) if not (a and b))
            return idle and abs(fp32.value(x) - s) > abs(fp32.value(y) - s)

        return [one(*each) for each in zip(cases, run(self.x, cases), run(self.y, cases), strict=True)]

    def answer(self) -> Answer:
        for count in range(self.most + 1):
            found = self.with_products(count, lambda: self.asker.left)
            if found is not None:
                return self._fails(self.shrink(self.at_places(FoundCase(self.made_smaller(found.codes), ()))))
            if count in self.unsettled:
                return Unknown(
                    self.question, self.unsettled[count], tuple(self.asker.proved), self.asker.elapsed
                )
        laws = [proof for each in (self.x.spec, self.y.spec) for proof in self.laws.order_proofs(each)]
        proof = direct(*self.questions)
        return Holds(self.question, by_rule(_ONE_PLACE, *laws, proof) if laws else proof, self.asker.elapsed)

    def _fails(self, found: FoundCase) -> Fails:
        """With the witness, which both encodings re-run."""
        codes = found.codes
        if self._seen([codes]) != [True]:
            raise WitnessError(f"a solver is wrong: the first is not farther from the exact sum on {codes}")
        runs = tuple(Run(i.name, i.spec, codes, run_both(i, codes)) for i in (self.x, self.y))
        witness = CaseWitness(self.x, runs, exact_of(self.spec, codes), minimality=self.minimality)
        return Fails(self.question, witness, "the first is farther from the exact sum", self.asker.elapsed)
