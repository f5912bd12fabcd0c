"""Why a fused multiply-add computes a model: in a case for each distance of the exponents of the product and of c.

What aligns, normalises and rounds in a design need not be what does so in the model: near and far path, one wide
window, an anticipated leading one.  Where the distance of both exponents is known, the alignment is only wires, and
where the product is cut, no multiplier is left; the whole of what both do after that is one question that solvers
settle (Jacobi, Weber, Paruthi and Baumgartner, DATE 2005).  Distances beyond which one of both is sticky alone are two
cases, which are halved where they are too much.  That the cases are all there are is a lemma as the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.evaluate import evaluate_all
from mmaformal.display import ShortRepr
from mmaformal.encodings.smt.blocks import BitVec, Operand, all_of, any_of, is_zero
from mmaformal.formats import Format
from mmaformal.hardware.graph import Graph
from mmaformal.hardware.normalised import Attempting, NormalProduct
from mmaformal.proof.kernel import Link, Theorem
from mmaformal.spec import DotAdd

#: Seconds for a case, and the part of the time left that it may take once another one was proved.
_PATIENCE, _SHARE = 60.0, 0.25
#: Seconds for a case of several numbers of leading zeros, which can be halved.
_RANGE = 10.0
#: Seconds for what is to be said of the product, and for what is constant in a case.
_OF_PRODUCT = 20.0
#: Places beyond the last one of the other at which the product, or c, is sticky alone.
_BEYOND = 3
#: Rows of a case on which nodes are compared with constants; and pieces that their lemma may be put into.
_ROWS, _PIECES = 256, 16
#: Rows that are drawn to find some of a case.
_TRIES = 20_000
#: Operations that a node that is constant in a case has not: a lemma of it might be hard.
_HARD = (z3.Z3_OP_BMUL, z3.Z3_OP_BSHL, z3.Z3_OP_BLSHR, z3.Z3_OP_BASHR)


class Proving(Attempting, Protocol):
    """A prover of single claims about the terms of a design and a model, in one theorem and a limited time."""

    @property
    def theorem(self) -> Theorem:
        """The theorem in which claims are derived."""

    @property
    def graph(self) -> Graph:
        """The terms."""

    @property
    def left(self) -> float:
        """The seconds left."""


@dataclass(frozen=True, repr=False)
class Multiplication(ShortRepr):
    """The operands of the one product of a model and c, and the product."""

    a: Operand
    b: Operand
    c: Operand
    product: BitVec

    @property
    def finite(self) -> z3.BoolRef:
        """Return the claim that no operand is an infinity or a NaN."""
        return z3.Not(any_of([flag for x in (self.a, self.b, self.c) for flag in (x.infinite, x.nan)]))

    @property
    def zero(self) -> z3.BoolRef:
        """Return the claim that a factor is zero."""
        return z3.Or(is_zero(self.a), is_zero(self.b))

    def apart(self, spec: DotAdd) -> BitVec:
        """By how much the product's exponent is above c's, in two's complement."""
        fields = [self.a.field, self.b.field, self.c.field]
        bias = spec.a_format.bias + spec.b_format.bias - spec.c_format.bias
        bits = max(max(x.size() for x in fields) + 3, bias.bit_length() + 2)
        a, b, c = (z3.ZeroExt(bits - x.size(), x) for x in fields)
        return a + b - c - bias


def multiplication_of(steps: Sequence[object]) -> Multiplication | None:
    """The product and the operands of a model of one step and one product; None of others."""
    if len(steps) != 1:
        return None
    (step,) = steps
    found = [_only(getattr(step, name, None), Operand) for name in ("a", "b", "c")]
    terms = getattr(step, "products", None) or getattr(step, "product", None)
    if hasattr(terms, "significand"):
        terms = (terms,)
    if any(x is None for x in found) or not isinstance(terms, tuple) or len(terms) != 1:
        return None
    if not hasattr(terms[0], "significand"):  # of a group of one
        return None
    a, b, c = found
    assert a is not None
    assert b is not None
    assert c is not None
    return Multiplication(a, b, c, terms[0].significand)


def _only(x: object, kind: type[Operand]) -> Operand | None:
    """An operand, or the only one of several."""
    if isinstance(x, tuple) and not isinstance(x, kind) and len(x) == 1:
        (x,) = x
    return x if isinstance(x, kind) else None


@dataclass(frozen=True, repr=False)
class Distances(ShortRepr):
    """The cases from one distance to another, and of numbers of leading zeros of the factors, if they count."""

    low: int
    high: int
    #: the fewest and the most of each factor; any where nothing is said
    zeros: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> int:
        counts = (high - low + 1 for low, high in self.zeros)
        return math.prod(counts, start=self.high - self.low + 1)

    @property
    def halves(self) -> tuple[Distances, Distances]:
        if self.low < self.high:
            middle = (self.low + self.high) // 2
            return replace(self, high=middle), replace(self, low=middle + 1)
        at = max(range(len(self.zeros)), key=lambda i: self.zeros[i][1] - self.zeros[i][0])
        low, high = self.zeros[at]
        middle = (low + high) // 2
        first, second = (
            (*self.zeros[:at], each, *self.zeros[at + 1 :]) for each in ((low, middle), (middle + 1, high))
        )
        return replace(self, zeros=first), replace(self, zeros=second)

    def __str__(self) -> str:
        ranges = [str(low) if low == high else f"{low} to {high}" for low, high in self.zeros]
        zeros = f", {' and '.join(ranges)} leading zeros" if any(high for _, high in self.zeros) else ""
        return (str(self.low) if self.low == self.high else f"{self.low} to {self.high}") + zeros


class ExponentCases:
    """The proof that d is the model's in cases of a fused multiply-add's exponents."""

    def __init__(
        self,
        proving: Proving,
        spec: DotAdd,
        of: Multiplication,
        claim: Link,
        rows: Callable[[int, NDArray[np.object_]], Mapping[str, NDArray[np.object_]]],
        progress: Callable[[str], None],
    ) -> None:
        """`claim`: what is to be proved; `rows`: values of the constants, given so many rows of codes of a, b and c."""
        self.proving, self.spec, self.of, self.claim = proving, spec, of, claim
        self.rows, self.progress = rows, progress
        self.apart = of.apart(spec)
        #: the product of a design that shifts subnormal factors until their leading one is on top
        self.normalised: NormalProduct | None = None
        self._proved: dict[str, list[Link]] = {}  #: the cases that make one up
        self._hard: set[object] = (
            set()
        )  #: numbers of zeros that were too many at once, by which exponent is larger
        self._about: list[Link] | None = None

    # ---- the cases -------------------------------------------------------------------------------------------------

    def cases(self) -> list[Distances]:
        """All distances, those at which product and c meet one by one, the middle first: the hardest."""
        a, b, c = self.spec.a_format, self.spec.b_format, self.spec.c_format
        bias = a.bias + b.bias - c.bias
        least = 1 - bias - (1 << c.exponent_bits)
        most = (1 << a.exponent_bits) + (1 << b.exponent_bits) - 2 - bias
        low = max(-c.fraction_bits - _BEYOND, least)
        high = min(a.fraction_bits + b.fraction_bits + _BEYOND, most)
        near = [Distances(i, i) for i in range(low, high + 1)]
        near.sort(key=lambda each: abs(each.low))
        far = [Distances(least, low - 1), Distances(high + 1, most)]
        every = [*near, *(each for each in far if each.count > 0)]
        return [each for zeros in self._zeros() for each in (replace(x, zeros=zeros) for x in every)]

    def _zeros(self) -> list[tuple[tuple[int, int], ...]]:
        """Which factors are normal, where they are normalised: their exponents are others then."""
        if self.normalised is None:
            return [()]
        ranges = [((0, 0), (1, x.size() - 1)) for x in (self.of.a.significand, self.of.b.significand)]
        return [(a, b) for a in ranges[0] for b in ranges[1] if a[0] <= a[1] and b[0] <= b[1]]

    def _in(self, distances: Distances) -> Link:
        """Return the link that says that the operands are finite, the product is not zero, and how far apart."""
        low, high = (z3.BitVecVal(x, self.apart.size()) for x in (distances.low, distances.high))
        where = self.apart == low if distances.count == 1 else z3.And(self.apart >= low, self.apart <= high)
        factors = zip((self.of.a.significand, self.of.b.significand), distances.zeros, strict=False)
        within = [claim for word, zeros in factors for claim in _within(word, *zeros)]
        return Link(all_of([self.of.finite, z3.Not(self.of.zero), where, *within]))

    # ---- the proof -------------------------------------------------------------------------------------------------

    def run(self, links: Sequence[Link]) -> Link | None:
        """The link that d is the model's, if it is proved in every case; `links` say what of the design is the product.

        What was proved in a round before is not asked again.
        """
        given = [*self.about_product(), *links] if self.normalised is None else list(self.normalised.links)
        finite, zero = self.of.finite, self.of.zero
        for name, case in (
            ("infinities and NaNs", z3.Not(finite)),
            ("products of zero", z3.And(finite, zero)),
        ):
            self.progress(f"d in cases: {name}")
            if name not in self._proved and not self._attempt(Link(case), given):
                return None
            self._proved[name] = [Link(case)]
        cases = self.cases()
        for number, each in enumerate(cases):
            self.progress(f"d in cases: {number} of {len(cases)} proved; exponents {each} apart")
            if not self._by_distance(each, given):
                return None
        claims = [link for found in self._proved.values() for link in found]
        terms = [
            self.of.a.field,
            self.of.b.field,
            self.of.c.field,
            self.of.a.significand,
            self.of.b.significand,
        ]
        self.proving.theorem.split("the exponents are one of these distances apart", claims, terms=terms)
        return self.claim

    def _by_distance(self, case: Distances, given: Sequence[Link]) -> bool:
        """Whether d is proved in a case, or in those that make it up."""
        if str(case) in self._proved:
            return True
        several = case.low == case.high and case.count > 1
        alike = case.low >= 0, case.zeros
        if not several or alike not in self._hard:
            link = self._in(case)
            known = [*self._constants(case, link), *given]
            if self._attempt(link, known, _RANGE if several else None):
                self._proved[str(case)] = [link]
                return True
            self._hard.add(alike)
        return case.count > 1 and all(self._by_distance(half, given) for half in case.halves)

    def _attempt(self, case: Link, given: Sequence[Link], patience: float | None = None) -> bool:
        more = self.proving.left * _SHARE if self._proved else 0.0
        patience = max(_PATIENCE, more) if patience is None else patience
        cut = self.of.product if self.normalised is None else self.normalised.product
        return self.proving.attempt(self.claim, [case, *given], patience, [cut])

    # ---- what is constant in a case --------------------------------------------------------------------------------

    def _constants(self, case: Distances, link: Link) -> list[Link]:
        """Proves that nodes of both are constants in a case, as the amounts of shifts are, or a number of leading zeros
        and a constant.

        What the case itself says is none of them: with a constant in its place it would say nothing.
        """
        codes = rows_apart(self.spec, case, _ROWS)
        if codes is None:
            return []
        zeros = () if self.normalised is None else self.normalised.zeros
        roots = [self.claim.claim, *zeros]
        values = evaluate_all(roots, self.rows(_ROWS, codes))
        several = [x for x, (low, high) in zip(zeros, case.zeros, strict=True) if low < high]
        said = {node.get_id() for node in self.proving.graph.nodes([link.claim, *several])}
        found = [_ranging(x, *case.zeros[i]) for i, x in enumerate(zeros) if x in several]
        easy: set[int] = set()
        for node in self.proving.graph.nodes(roots):
            parts = self.proving.graph.operands(node)
            if node.decl().kind() in _HARD or any(x.get_id() not in easy for x in parts):
                continue
            easy.add(node.get_id())
            seen = values[node.get_id()]
            if parts and node.get_id() not in said and np.ndim(seen):
                found += _seen_as(node, seen, [(x, values[x.get_id()]) for x in several])
        return list(self._those_proved(found, link, _PIECES))

    def _those_proved(self, links: Sequence[Link], case: Link, pieces: int) -> Iterator[Link]:
        """Those of several that are proved, all at once, or in halves."""
        if not links or pieces < 1:
            return
        if self.proving.attempt_all(links, [case], _OF_PRODUCT):
            yield from links
        elif len(links) > 1:
            half = len(links) // 2
            yield from self._those_proved(links[:half], case, pieces // 2)
            yield from self._those_proved(links[half:], case, pieces // 2)

    def about_product(self) -> list[Link]:
        """Return links about the product where it is cut: how large it is at least, by how many factors are normal."""
        if self._about is None:
            a, b, product = self.of.a.significand, self.of.b.significand, self.of.product
            tops = [_top(a), _top(b)]
            bits = product.size()
            both = z3.BitVecVal(1 << (a.size() + b.size() - 2), bits)
            claims = [
                z3.Implies(z3.And(tops[0] == 1, tops[1] == 1), z3.UGE(product, both)),
                z3.Implies(
                    z3.And(tops[0] == 1, b != 0), z3.UGE(product, z3.BitVecVal(1 << (a.size() - 1), bits))
                ),
                z3.Implies(
                    z3.And(tops[1] == 1, a != 0), z3.UGE(product, z3.BitVecVal(1 << (b.size() - 1), bits))
                ),
                z3.Implies(z3.And(a != 0, b != 0), product != 0),
                z3.Implies(z3.Or(a == 0, b == 0), product == 0),
            ]
            links = [Link(claim, (product,)) for claim in claims]
            factors = [a, b]
            self._about = [link for link in links if self.proving.attempt(link, [], _OF_PRODUCT, factors)]
        return self._about


def rows_apart(spec: DotAdd, case: Distances, count: int) -> NDArray[np.object_] | None:
    """So many rows of codes of a, b and c that are finite, and normal or subnormal, at such distances; None if there
    are none."""
    random = np.random.default_rng(1)
    formats = (spec.a_format, spec.b_format, spec.c_format)
    bias = spec.a_format.bias + spec.b_format.bias - spec.c_format.bias
    chosen: list[tuple[int, int, int]] = []
    largest = [(1 << x.exponent_bits) - 2 for x in formats]
    for _ in range(_TRIES):
        apart = int(random.integers(case.low, case.high + 1))
        a, b = (
            0 if zeros and zeros[0] else int(random.integers(1 if zeros else 0, most + 1))
            for most, zeros in zip(largest, (*case.zeros, (), ())[:2], strict=False)
        )
        if not random.integers(8) and not (case.zeros and case.zeros[1][0]):
            b = max(0, min(1 + bias + apart - max(a, 1), largest[1]))
        c = max(a, 1) + max(b, 1) - bias - apart
        if 1 <= c <= largest[2]:
            chosen.append((a, b, 0 if c == 1 and random.integers(2) else c))
            if len(chosen) == count:
                break
    if not chosen:
        return None
    fields = np.array([chosen[i % len(chosen)] for i in range(count)], object)
    zeros = (*case.zeros, (), (), ())[:3]
    columns = [_codes(x, fields[:, i], random, zeros[i], i == 2) for i, x in enumerate(formats)]
    return np.array(columns, object)


def _codes(
    fmt: Format,
    fields: NDArray[np.object_],
    random: np.random.Generator,
    zeros: Sequence[int],
    zero: bool,
) -> NDArray[np.object_]:
    """Codes with these exponent fields, of any sign and fraction, some 0 and some all ones; zero itself if it may be.
    Of a subnormal number with so many leading zeros, if those count."""
    bits, count = fmt.fraction_bits, len(fields)
    signs = random.integers(0, 2, count).astype(object)
    fractions = random.integers(0, 1 << bits, count).astype(object)
    places = random.integers(0, bits + 1, count).astype(object)
    fractions[::3] >>= places[::3]
    fractions[1::3] = (fractions[1::3] << places[1::3]) & (1 << bits) - 1
    if zeros and zeros[0]:
        tops = 1 << bits - random.integers(zeros[0], zeros[1] + 1, count).astype(object)
        fractions = tops | fractions & tops - 1
    elif not zero:
        fractions[(fields == 0) & (fractions == 0)] = 1
    return np.asarray(
        (((signs << fmt.exponent_bits) + fields << bits) + fractions) << fmt.ignored_low_bits, object
    )


def _within(word: BitVec, fewest: int, most: int) -> list[z3.BoolRef]:
    """Claims that a word has so many leading zeros."""
    bits = word.size()
    below = [z3.ULT(word, z3.BitVecVal(1 << bits - fewest, bits))] if fewest else []
    return [*below, z3.UGE(word, z3.BitVecVal(1 << bits - 1 - most, bits))]


def _ranging(word: BitVec, fewest: int, most: int) -> Link:
    """Return the link that says that a number of leading zeros is one of some."""
    bits = word.size()
    claim = z3.And(z3.UGE(word, z3.BitVecVal(fewest, bits)), z3.ULE(word, z3.BitVecVal(most, bits)))
    return Link(claim, (word,))


def _seen_as(
    node: z3.ExprRef, seen: NDArray[np.object_], words: Sequence[tuple[BitVec, NDArray[np.object_]]]
) -> list[Link]:
    """The link that a node is a constant, or one of some words more or less a constant, as it is seen; none if it is
    not."""
    if (seen == seen[0]).all():
        bits = node.size() if isinstance(node, z3.BitVecRef) else 0
        value = z3.BitVecVal(int(seen[0]), bits) if bits else z3.BoolVal(bool(seen[0]))
        return [Link(node == value, (), ((node, value),))]
    for word, numbers in words if isinstance(node, z3.BitVecRef) else ():
        bits = node.size()
        for sign in (1, -1):
            rest = (seen - sign * numbers) % (1 << bits)
            if bits >= word.size() and (rest == rest[0]).all():
                value = z3.BitVecVal(int(rest[0]), bits) + sign * z3.ZeroExt(bits - word.size(), word)
                return [Link(node == value, (word,), ((node, value),))]
    return []


def _top(x: BitVec) -> BitVec:
    return z3.Extract(x.size() - 1, x.size() - 1, x)
