"""d grows with c and with a product, of wfma: as sfma's of the converted factors, whose products are in the same order.

The significand of a converted factor is that of the factor, shifted to the left, and its exponent is as much lower.  So
it is with a product of two, and which of two products is larger does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations

import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.inputs import Inputs
from mmaformal.cases.out_of_order import two_runs
from mmaformal.facts.fused_steps import one_step
from mmaformal.facts.monotone_products import Taken, prove_in_products
from mmaformal.facts.monotone_steps import conclude_steps, links_of
from mmaformal.facts.monotone_sticky import prove_step_in_c
from mmaformal.facts.wfma.widened import converted, widened
from mmaformal.formats import Format
from mmaformal.proof.composition import between, wide
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.kernel import demand
from mmaformal.proof.larger_products import LargerProduct, Number, larger_product, number, product
from mmaformal.proof.rules import Theory, instance


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    runs, inner = two_runs(spec), widened(spec)
    step, theorem = prove_step_in_c(theory, inner)
    links = links_of(spec, runs.first.steps, runs.second.steps, taken=partial(converted, spec), inner=inner)
    conclude_steps(theory, runs, step, theorem, runs.c, links)


def prove_in_product(theory: Theory, spec: DotAdd) -> None:
    """`larger_product(spec, k).statement` of each k.  Raises NotProvedError."""
    theorem = _prove_order(theory, one_step(spec))
    alone = larger_product(one_step(spec), 0)

    def larger(theory: Theory, runs: LargerProduct, as_taken: z3.BoolRef) -> None:
        (k,) = runs.places
        own, mine = (
            [codes[at] for x in (each.x, each.y) for codes in (x.a, x.b)]
            for each, at in ((alone, 0), (runs, k))
        )
        said = instance(theory, theorem, list(zip(own, mine, strict=True)))
        demand(
            said.eq(z3.Implies(z3.And(runs.premises), as_taken)),
            "what is said of one run is not what is taken of it",
        )

    prove_in_products(theory, spec, Taken(widened(spec), partial(converted, spec), larger))


# ---- products of converted factors -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shifted:
    """A number, and the same one whose significand is shifted to the left, by at most so many places."""

    own: Number
    wide: Number
    most: int

    @property
    def bits(self) -> int:
        """So many that the shift loses none."""
        return int(self.own.significand.size()) + self.most

    @property
    def long(self) -> Number:
        """Its own, with an exponent of as many bits as the other's."""
        return replace(self.own, exponent=wide(self.own.exponent, self.wide.exponent.size()))

    @property
    def places(self) -> z3.BitVecRef:
        return self.long.exponent - self.wide.exponent

    @property
    def both(self) -> tuple[Number, Number]:
        return self.own, self.wide

    @property
    def zeros(self) -> list[z3.BoolRef]:
        return [x.significand == 0 for x in self.both]

    @property
    def flags(self) -> z3.BoolRef:
        """What both have in common, but for the sign of a NaN."""
        x, y = self.both
        zeros = self.zeros[0] == self.zeros[1]
        return z3.And(x.nan == y.nan, x.infinite == y.infinite, z3.Or(x.nan, x.sign == y.sign), zeros)

    def agree(self, bits: int) -> z3.BoolRef:
        """That both are zero, or the same number."""
        m, n = (fit(x.significand, bits) for x in self.both)
        shifted = z3.And(between(0, self.places, self.most), n == m << fit(self.places, bits))
        return z3.Or(z3.And(self.zeros), shifted)

    def same(self, bits: int) -> z3.BoolRef:
        """The same, unless they are special."""
        return z3.Or(self.own.nan, self.own.infinite, self.agree(bits))

    @property
    def numbers(self) -> list[z3.ExprRef]:
        return [part for x in self.both for part in (x.significand, x.exponent)]

    @property
    def special(self) -> list[z3.ExprRef]:
        return [part for x in self.both for part in (x.nan, x.infinite, x.sign)]


def _prove_order(theory: Theory, spec: DotAdd) -> z3.BoolRef:
    """That a·b ≤ a'·b' gives the same of the converted factors, of one step.  Raises NotProvedError."""
    runs, inner = larger_product(spec, 0), larger_product(widened(spec), 0)
    own, mine = (
        [codes[0] for x in pair for codes in (x.a, x.b)]
        for pair in ((inner.x, inner.y), [converted(spec, x) for x in (runs.x, runs.y)])
    )
    as_taken = z3.substitute(z3.And(inner.premises), *zip(own, mine, strict=True))
    x, y = products = [_product(spec, each) for each in (runs.x, runs.y)]
    known = [claim for each in (runs.x, runs.y) for claim in _prove_product(theory, spec, each)]
    known += [claim for pair in ((x, y), (y, x)) for claim in _prove_compared(theory, spec, *pair)]
    text = "so they are in order as they are before"
    cut = [below(u, v) for u, v in permutations((*x.both, *y.both, x.long, y.long), 2)
           if u.exponent.size() == v.exponent.size()]  # fmt: skip
    cut += [each.agree(each.bits) for each in products]
    cut += [part for each in products for part in (*each.special, *each.zeros)]
    goal = z3.Implies(z3.And(runs.premises), as_taken)
    theory.claim("same order", text, goal, known, cut)
    return theory.theorem("products of converted factors are in the same order", goal)


def below(x: Number, y: Number) -> z3.BoolRef:
    """|x| ≤ |y|, of numbers."""
    return at_least(y.significand, y.exponent, x.significand, x.exponent)


def _factors(spec: DotAdd, x: Inputs) -> tuple[Shifted, Shifted]:
    y, fmt = converted(spec, x), spec.c_format
    sides = (x.a[0], y.a[0], spec.a_format), (x.b[0], y.b[0], spec.b_format)
    a, b = (Shifted(number(code, own), number(to, fmt), fmt.fraction_bits) for code, to, own in sides)
    return a, b


def _product(spec: DotAdd, x: Inputs) -> Shifted:
    a, b = _factors(spec, x)
    return Shifted(product(a.own, b.own), product(a.wide, b.wide), a.most + b.most)


def in_range(x: Number, *formats: Format) -> z3.BoolRef:
    """Whether an exponent is one of a product of codes of these formats, or of one code."""
    last = sum(fmt.bias + fmt.fraction_bits for fmt in formats)
    return between(
        len(formats) - last, x.exponent, sum((1 << fmt.exponent_bits) - 1 for fmt in formats) - last
    )


def _ranges(spec: DotAdd, x: Shifted) -> list[z3.BoolRef]:
    """Of a product's exponents."""
    return [in_range(x.own, spec.a_format, spec.b_format), in_range(x.wide, spec.c_format, spec.c_format)]


def _prove_product(theory: Theory, spec: DotAdd, x: Inputs) -> list[z3.BoolRef]:
    """That a product of converted factors is the product of the factors; and exponents are in their range."""
    factors, both, known = _factors(spec, x), _product(spec, x), []
    formats, wide_format = (spec.a_format, spec.b_format), spec.c_format
    ranges: list[z3.BoolRef] = []
    for each, fmt in zip(factors, formats, strict=True):
        text = "a converted factor has the same flags and sign, and its significand is shifted to the left"
        known += [theory.claim("converted", text, claim) for claim in (each.flags, each.same(both.bits))]
        for end, of in zip(each.both, (fmt, wide_format), strict=True):
            text = "a factor's exponent is in its range"
            ranges.append(theory.claim("exponent", text, in_range(end, of)))
    parts = [part for each in factors for part in (*each.special, *each.numbers)]
    text = "so has their product"
    claims = [theory.claim("flags of a product", text, both.flags, known, parts)]
    text = "and its exponents are in their range"
    claims += [
        theory.claim("exponent of a product", text, each, ranges, parts) for each in _ranges(spec, both)
    ]
    return [*claims, _prove_shifted(theory, factors, both, known, ranges)]


def _prove_shifted(
    theory: Theory,
    factors: tuple[Shifted, Shifted],
    both: Shifted,
    known: Sequence[z3.BoolRef],
    ranges: Sequence[z3.BoolRef],
) -> z3.BoolRef:
    """That a product of shifted significands is the product, shifted by both.

    `known` is of the factors, `ranges` of their exponents.
    """
    bits, (x, y) = both.bits, factors
    m, n = (fit(each.own.significand, bits) for each in factors)
    u, v = (fit(each.wide.significand, bits) for each in factors)
    s, t = (fit(each.places, bits) for each in factors)
    equal = z3.Implies(z3.And(u == m << s, v == n << t), u * v == (m << s) * (n << t))
    given = [theory.claim("equal factors", "they have equal products", equal, (), [u, v, m << s, n << t])]
    small = z3.And(z3.ULE(s, both.most), z3.ULE(t, both.most))
    moved = z3.Implies(small, (m << s) * (n << t) == (m * n) << (s + t))
    text = "a shift is a product with a power of two"
    given.append(theory.claim("shifted factors", text, moved, (), [m, n, s, t]))
    few = z3.And([between(0, each.places, each.most) for each in factors])
    total = z3.And(fit(both.places, bits) == s + t, small, between(0, both.places, both.most))
    exponents = [end.exponent for each in factors for end in each.both]
    given.append(theory.claim("places", "places add up", z3.Implies(few, total), ranges, exponents))
    ends = [fit(each.significand, bits) for each in both.both]
    pairs = [(x.own, y.own), (x.wide, y.wide)]
    for end, whole, zero, pair in zip(ends, (m * n, u * v), both.zeros, pairs, strict=True):
        letters = [each.significand for each in pair]
        text = "a product of as many bits is the same"
        given.append(theory.claim("wide product", text, end == whole, (), letters))
        nothing = z3.Implies(z3.Or([part == 0 for part in letters]), zero)
        given.append(theory.claim("product of zero", "it is zero", nothing, (), letters))
    text = "the product is shifted by the places of both"
    cut = [*ends, u * v, (m << s) * (n << t), m * n, m << s, n << t, u, v, s + t, fit(both.places, bits), s, t,
           *(part for each in factors for part in each.special),
           *(part for each in (*factors, both) for part in (each.places, *each.zeros))]  # fmt: skip
    return theory.claim("shifted product", text, both.same(bits), [*known, *given], cut)


def _prove_compared(theory: Theory, spec: DotAdd, x: Shifted, y: Shifted) -> list[z3.BoolRef]:
    """That |x| ≤ |y| is the same of what they are shifted to: of one after the other."""
    ways = (
        ((x.own, y.own), (x.long, y.long), z3.BoolVal(True)),
        ((x.long, y.long), (x.long, y.wide), y.agree(y.bits)),
        ((x.long, y.wide), (x.wide, y.wide), x.agree(x.bits)),
    )
    given, cut = [*_ranges(spec, x), *_ranges(spec, y)], [*x.numbers, *y.numbers]
    text = "a number and the same one, shifted, are above the same numbers, and below the same"
    return [
        theory.claim("compared", text, z3.Implies(same, below(*before) == below(*after)), given, cut)
        for before, after, same in ways
    ]
