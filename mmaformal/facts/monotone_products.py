"""d grows with a product, of sfma: one sum of two terms, a product and c.

A product is sign, significand and exponent; d depends on no more than its number.  So

1. *halving*:   a product of twice the significand, at the next lower exponent, gives the same sum on the same or on a
                finer grid; where c loses a bit, the sum is so large that it is rounded as with one more place;
2. *normal*:    so the product with no leading zero, or with the least exponent, gives the same (rule `ascent`);
3. *in order*:  of such products, each gives no more than the next (rule `successor`), as in c (`monotone_sticky`);
4. *codes*:     products in order, as numbers, are in order once they have no leading zero;
5. *chain*:     a step of the chain whose product is larger gives the next one a c that is not smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.algorithms import DotAdd, Sfma
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.out_of_order import not_below, order
from mmaformal.encodings.smt import sfma
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    Special,
    StickySum,
    Term,
    Trace,
    addend,
    bit,
    decode,
    encode,
    normalise,
    normalise_and_round,
    sticky_sum,
)
from mmaformal.facts.exact_steps import sfma_terms
from mmaformal.facts.fused_steps import one_step
from mmaformal.facts.monotone_steps import (
    Neighbours,
    any_special,
    flags,
    links_of,
    prove_chain,
    prove_outcome,
    same_results,
)
from mmaformal.facts.monotone_sticky import Pair, prove_pair_in_order, prove_step_in_c
from mmaformal.facts.ordered_rounding import not_above
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.kernel import demand
from mmaformal.proof.larger_products import LargerProduct, Number, larger_product, number, product
from mmaformal.proof.rules import Ascent, Successor, Theory, instance


@dataclass(frozen=True)
class Added:
    """A product and c added, as a step whose "c" is the product."""

    term: Term  #: c
    addend: Term  #: the product
    sum: StickySum
    result: z3.BitVecRef  #: the sum rounded

    @property
    def special(self) -> Special:
        return Special(*(z3.BoolVal(False),) * 3)


@dataclass(frozen=True)
class Products:
    """The products of a model, as terms, and what becomes of them."""

    spec: DotAdd

    @property
    def p(self) -> Sfma:
        assert isinstance(self.spec.parameters, Sfma)
        return self.spec.parameters

    @property
    def M(self) -> int:
        return self.spec.c_format.fraction_bits

    @property
    def ex(self) -> ExponentRange:
        return sfma.exponents_of(self.spec.c_format)

    @property
    def lowest(self) -> int:
        """The exponent of a zero."""
        return self.spec.c_format.min_exponent

    @property
    def bits(self) -> int:
        """Of a significand."""
        return 2 * self.M + 2

    @property
    def c(self) -> z3.BitVecRef:
        return symbolic_inputs(one_step(self.spec)).c

    @property
    def c_term(self) -> Term:
        fmt = self.spec.c_format
        return addend(decode(self.c, fmt), fmt.bias, self.ex, e_zero=None)

    @property
    def term(self) -> Term:
        """Any product."""
        names = (("sign", 1), ("exponent", self.ex.bits), ("significand", self.bits))
        return Term(*(z3.BitVec(f"{name} of a product", bits) for name, bits in names))

    def code(self, total: z3.BitVecRef, e_max: z3.BitVecRef) -> z3.BitVecRef:
        frame = sfma.frame_bits(self.M + 1)
        return encode(normalise_and_round(total, e_max, self.ex, frame, self.p.rho, self.lowest), self.p.rho)

    def added(self, term: Term) -> Added:
        c = self.c_term
        sum_ = sticky_sum(term, 2 * self.M, c, self.M, sfma.frame_bits(self.M + 1))
        return Added(c, term, sum_, self.code(sum_.total, sum_.e_max))

    # ---- products without a leading zero, as codes of a format of their own ----

    @property
    def field_bits(self) -> int:
        return int(self.ex.high - self.ex.low + 1).bit_length()

    @property
    def last(self) -> int:
        """The magnitude of the largest such code."""
        return ((self.ex.high - self.ex.low + 2) << (self.bits - 1)) - 1

    def of_code(self, code: z3.BitVecRef) -> Term:
        top = code.size() - 1
        field = z3.Extract(top - 1, self.bits - 1, code)
        normal = field != 0
        exponent = z3.If(normal, field - 1, z3.BitVecVal(0, field.size()))
        leading = z3.If(normal, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        return Term(
            z3.Extract(top, top, code),
            z3.Extract(self.ex.bits - 1, 0, exponent),
            z3.Concat(leading, z3.Extract(self.bits - 2, 0, code)),
        )

    def normal(self, term: Term) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """(significand, exponent) with no leading zero, or with the least exponent; and zero with that."""
        significand, left = normalise(term.significand, term.exponent)
        return significand, z3.If(term.significand == 0, z3.BitVecVal(0, left.size()), left)

    def magnitude(self, significand: z3.BitVecRef, exponent: z3.BitVecRef) -> z3.BitVecRef:
        """The magnitude of the code of such a product."""
        leading = z3.Extract(self.bits - 1, self.bits - 1, significand) == 1
        field = z3.If(leading, fit(exponent, self.field_bits) + 1, z3.BitVecVal(0, self.field_bits))
        return z3.Concat(field, z3.Extract(self.bits - 2, 0, significand))

    # ---- invariants ----

    def known(self, term: Term) -> z3.BoolRef:
        """A product has the leading bit of one factor, or the least exponent."""
        in_range = z3.ULE(term.exponent, self.ex.constant(self.ex.high))
        return z3.And(in_range, z3.Or(z3.UGE(term.significand, 1 << self.M), term.exponent == 0))


# ---- the same number -------------------------------------------------------------------------------------------------


def jammed(x: z3.BitVecRef) -> z3.BitVecRef:
    """x / 2, odd if a bit was lost."""
    return (x >> 1) | (x & 1)


def prove_halving(theory: Theory, all_: Products) -> z3.BoolRef:
    """That (m, e) gives the same as (2m, e − 1).  Raises NotProvedError."""
    term, M, ex, bits = all_.term, all_.M, all_.ex, all_.bits
    half = Term(term.sign, term.exponent - 1, term.significand << 1)
    x, y = all_.added(term), all_.added(half)
    s, t = x.sum, y.sum
    c = x.term
    top = z3.Extract(bits - 1, bits - 1, term.significand)
    given = z3.And(
        z3.ULE(term.exponent, ex.constant(ex.high)),
        z3.UGE(term.exponent, 1),
        z3.UGE(term.significand, 1 << M),
        top == 0,
    )
    of_c = [c.exponent, c.significand, c.sign]
    low = ex.constant(all_.lowest)
    in_range = theory.claim(
        "c in range",
        "c's exponent is in its range",
        z3.And(z3.UGE(c.exponent, low), z3.ULE(c.exponent, ex.constant(ex.high))),
    )
    above = z3.UGT(term.exponent, c.exponent)
    stays = z3.Implies(z3.And(given, z3.Not(above)), z3.And(s.e_max == t.e_max, s.x == t.x, s.y == t.y))
    text = "where c has the larger exponent, the grid is that of c, and so is what is left of the product"
    same = theory.claim("grid of c", text, stays, [in_range], of_c)
    falls = z3.Implies(
        z3.And(given, above),
        z3.And(
            t.e_max + 1 == s.e_max,
            t.x == s.x << 1,
            z3.Extract(s.x.size() - 1, s.x.size() - 1, s.x) == 0,
            z3.Extract(1, 0, s.x) == 0,
            s.y == z3.LShR(t.y, 1) | (t.y & 1),
            z3.UGE(t.x, 1 << (M + 4)),
        ),
    )
    text = "else the product is as it is on a grid twice as fine, and c has one place more"
    finer = theory.claim("grid of a product", text, falls, [in_range], of_c)
    odd = z3.Extract(0, 0, t.y) == 1
    text = "c is short where it loses bits"
    short = z3.Implies(z3.And(given, above, odd), z3.ULT(t.y, 1 << (M + 1)))
    brief = theory.claim("short c", text, short, [in_range], of_c)
    room = z3.And(jammed(t.total) == s.total, z3.Or(z3.Extract(0, 0, t.total) == 0, _large(t.total, M)))
    text = "so the sum is the one on the finer grid with a bit less, and large if that was lost"
    cut = [s.x, s.y, t.x, t.y, term.sign, c.sign, above, s.e_max, t.e_max]
    sums = theory.claim("two grids", text, z3.Implies(z3.And(given, above), room), [finer, brief], cut)
    return _conclude_halving(theory, all_, (given, above, in_range), (x, y), [same, finer, sums])


def _large(total: z3.BitVecRef, M: int) -> z3.BoolRef:
    return z3.Or(total >= 1 << (M + 3), total <= -(1 << (M + 3)))


def _conclude_halving(
    theory: Theory,
    all_: Products,
    given: tuple[z3.BoolRef, z3.BoolRef, z3.BoolRef],
    pair: tuple[Added, Added],
    known: Sequence[z3.BoolRef],
) -> z3.BoolRef:
    (inside, above, in_range), (x, y), (same, _, sums) = given, pair, known
    s, t, ex, c = x.sum, y.sum, all_.ex, x.term
    T, e = z3.BitVec("total", t.total.size()), z3.BitVec("e_max", ex.bits)
    low, reach = ex.constant(all_.lowest), (1 << (T.size() - 1)) - 1
    fits = z3.And(
        z3.UGE(e, low), z3.ULT(e, ex.constant(ex.high)), -reach <= T,
        z3.Or(z3.Extract(0, 0, T) == 0, _large(T, all_.M)),
    )  # fmt: skip
    text = "a sum is rounded as with one place less that is sticky, where it has places to spare"
    rounded = z3.Implies(fits, all_.code(T, e) == all_.code(jammed(T), e + 1))
    theory.holds("place to spare", text, rounded)
    said = instance(theory, rounded, [(T, t.total), (e, t.e_max)])
    cut = [x.addend.exponent, c.exponent]
    text = "e_max is in its range"
    at = z3.Implies(
        z3.And(inside, above), z3.And(z3.UGE(t.e_max, low), z3.ULT(t.e_max, ex.constant(ex.high)))
    )
    e_max = theory.claim("e_max of a half", text, at, [in_range], [*cut, x.addend.significand])
    small = t.total >= -reach
    text = "the sum is in its range"
    ranged = theory.claim("sum in range", text, small, (), [t.x, t.y, x.addend.sign, c.sign])
    equal = x.result == y.result
    text = "so both are rounded to the same"
    inner = [above, s.e_max, t.e_max, s.total, t.total, inside, said.arg(1).arg(0)]
    goal = z3.Implies(z3.And(inside, above), equal)
    one = theory.claim(
        "finer grid", text, goal, [sums, said, e_max, ranged, known[1]], [*inner, s.x, s.y, t.x, t.y]
    )
    goal = z3.Implies(z3.And(inside, z3.Not(above)), equal)
    cut = [s.e_max, t.e_max, s.x, s.y, t.x, t.y, above, inside, x.addend.sign, c.sign]
    other = theory.claim("same grid", text, goal, [same], cut)
    claim = z3.Implies(inside, equal)
    theory.claim("either grid", text, claim, [one, other], [above, inside, x.result, y.result])
    return theory.theorem(
        "a product of twice the significand and the next lower exponent gives the same", claim
    )


def _shifted(all_: Products, k: z3.BitVecRef) -> tuple[z3.BoolRef, z3.BitVecRef, z3.BitVecRef]:
    """(whether that loses nothing, significand, exponent), of a product shifted to the left by k > 0, or not at all."""
    m, e = all_.term.significand, all_.term.exponent
    by = z3.If(k > 0, k, z3.BitVecVal(0, k.size()))
    shift = _resized(by, all_.bits)
    moved = m << shift
    fits = z3.And(
        z3.LShR(moved, shift) == m,
        z3.UGE(_resized(e, e.size() + k.size()), _resized(by, e.size() + k.size())),
    )
    return fits, moved, e - _resized(by, e.size())


def _resized(x: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    return fit(x, bits) if bits >= x.size() else z3.Extract(bits - 1, 0, x)


@dataclass(frozen=True)
class Shifting:
    """What becomes of something about a product, where the product is shifted to the left, place by place."""

    all_: Products
    name: str
    of: Callable[[Term], z3.BitVecRef]
    keeps: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]  #: reflexive and transitive
    given: z3.BoolRef  #: of the constants

    @property
    def places(self) -> z3.BitVecRef:
        return z3.BitVec("places", (self.all_.bits - 1).bit_length() + 1)

    def result(self, places: z3.BitVecRef) -> z3.BitVecRef:
        fits, m, e = _shifted(self.all_, places)
        return z3.Concat(bit(fits), self.of(Term(self.all_.term.sign, e, m)))

    def relation(self, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        """Of a valid y, that x is valid, and kept; the highest bit says whether one is."""
        top = x.size() - 1
        valid, other = (z3.Extract(top, top, each) == 1 for each in (x, y))
        return z3.Implies(
            other, z3.And(valid, self.keeps(*(z3.Extract(top - 1, 0, each) for each in (x, y))))
        )

    @property
    def rule(self) -> Ascent:
        return Ascent(self.places, self.result(self.places), self.relation, self.all_.bits - 1, self.given)

    def prove(self, theory: Theory, halving: z3.BoolRef) -> z3.BoolRef:
        """That it is kept where the product loses its leading zeros, if it is when it loses one (`halving`)."""
        all_, rule, k, name = self.all_, self.rule, self.places, self.name
        term = all_.term
        inside = z3.And(self.given, k >= 0, k < all_.bits - 1)
        (fits, m, e), (fits_more, m_more, e_more) = _shifted(all_, k), _shifted(all_, k + 1)
        said = instance(theory, halving, [(term.significand, m), (term.exponent, e)])
        step = z3.And(fits, said.arg(0), m_more == m << 1, e_more == e - 1)
        text = (
            "a product shifted by one place more is that of twice the significand, at the next lower exponent"
        )
        one = theory.claim(f"one place, {name}", text, z3.Implies(z3.And(inside, fits_more), step))
        here, half, there = (
            self.of(Term(term.sign, *each)) for each in ((e, m), (e - 1, m << 1), (e_more, m_more))
        )
        text, cut = "equal products give the same", [m, e, m << 1, e - 1, m_more, e_more, fits, said.arg(0)]
        same = theory.claim(f"equal products, {name}", text, z3.Implies(step, half == there), (), cut)
        goal = self.relation(self.result(k), self.result(k + 1))
        text = "so one place more keeps it"
        cut = [here, half, there, fits, fits_more, said.arg(0), m_more == m << 1, e_more == e - 1]
        given = [one, said, same]
        up = theory.claim(f"one place more, {name}", text, z3.Implies(inside, goal), given, cut)
        text = "and where there is no place, nothing changes"
        alike = z3.Implies(k < 0, z3.And(fits == fits_more, m == m_more, e == e_more))
        still = theory.claim("not shifted", text, alike)
        cut = [m, e, m_more, e_more, fits, fits_more]
        none = theory.claim(f"no place, {name}", text, z3.Implies(k < 0, goal), [still], cut)
        cut = [self.result(k), self.result(k + 1), self.given]
        theory.claim(f"places, {name}", "either", rule.neighbours, [up, none], cut)
        theory.theorem(f"a product shifted by one place more: {name} is kept", rule.neighbours)
        theory.holds(f"{name} of three", "that is transitive", rule.transitive)
        theory.holds(f"{name} of one", "and reflexive", rule.reflexive)
        return self._conclude(theory, rule.conclude(theory))

    def _conclude(self, theory: Theory, ascent: z3.BoolRef) -> z3.BoolRef:
        all_, rule, name = self.all_, self.rule, self.name
        term, k = all_.term, rule.counted
        m, e = all_.normal(term)
        places, start = _resized(term.exponent - e, k.size()), z3.BitVecVal(0, k.size())
        said = instance(theory, ascent, [(rule.numbers[0], start), (rule.numbers[1], places)])
        (fits, m_by, e_by), (none, m_start, e_start) = _shifted(all_, places), _shifted(all_, start)
        inside = z3.And(all_.known(term), z3.Not(term.significand == 0))
        same = (m_by == m, e_by == e), (m_start == term.significand, e_start == term.exponent)
        claim = z3.Implies(inside, z3.And(fits, *same[0], *same[1], places >= 0, places <= all_.bits - 1))
        text = "the product without leading zeros is that shifted by some places"
        shifted = theory.claim("leading zeros", text, claim)
        pairs = ((e_start, m_start), (term.exponent, term.significand)), ((e_by, m_by), (e, m))
        results = [[self.of(Term(term.sign, *each)) for each in pair] for pair in pairs]
        text = "equal products give the same"
        equal = [
            theory.claim(
                f"product shifted, {name}", text, z3.Implies(z3.And(given), x == y), (), [*own, *other]
            )
            for given, (x, y), (own, other) in zip(reversed(same), results, pairs, strict=True)
        ]
        goal = z3.Implies(z3.And(inside, self.given), self.keeps(results[0][1], results[1][1]))
        text = f"so {name} is kept without leading zeros"
        cut = [*results[0], *results[1], fits, none, places, m, e, m_by, e_by, m_start, e_start, inside]
        theory.claim(f"no leading zeros, {name}", text, goal, [said, shifted, *equal], cut)
        return theory.theorem(text, goal)


def prove_normal(theory: Theory, all_: Products) -> z3.BoolRef:
    """That a product gives the same without leading zeros.  Raises NotProvedError."""
    halving, term = prove_halving(theory, all_), all_.term
    known = all_.known(term)
    sums = Shifting(all_, "the sum", lambda x: all_.added(x).result, lambda x, y: x == y, known)
    said = sums.prove(theory, halving)
    code = z3.Concat(term.sign, all_.magnitude(*all_.normal(term)))
    at, (m, e) = all_.of_code(code), all_.normal(term)
    text = "its code stands for it"
    leads = z3.And(_leads(all_, m, e), z3.ULE(e, all_.ex.constant(all_.ex.high)))
    same = z3.And(at.significand == m, at.exponent == e, at.sign == term.sign)
    decoded = theory.claim("code of a product", text, z3.Implies(leads, same), (), [m, e])
    text = "the product has no leading zero, or the least exponent"
    known = z3.And(known, z3.Not(term.significand == 0))
    normal = theory.claim("no leading zero", text, z3.Implies(known, leads))
    mine, own = all_.added(Term(term.sign, e, m)).result, all_.added(at).result
    cut = [m, e, at.significand, at.exponent, at.sign]
    text = "equal products give the same"
    equal = theory.claim("product of a code", text, z3.Implies(same, mine == own), (), cut)
    goal = z3.Implies(known, all_.added(term).result == own)
    text = "so a product gives the same as its code"
    cut = [*cut, all_.added(term).result, mine, own]
    theory.claim("code of a sum", text, goal, [said, decoded, normal, equal], cut)
    return theory.theorem(text, goal)


def _leads(all_: Products, m: z3.BitVecRef, e: z3.BitVecRef) -> z3.BoolRef:
    """No leading zero, or the least exponent."""
    return z3.Or(z3.Extract(all_.bits - 1, all_.bits - 1, m) == 1, e == 0)


# ---- in order --------------------------------------------------------------------------------------------------------


def prove_normal_in_order(theory: Theory, all_: Products) -> Successor:
    """That of two products without leading zeros, in order, the results are.  Raises NotProvedError."""
    code = z3.BitVec("code of a product", 1 + all_.field_bits + all_.bits - 1)

    def at(code: z3.BitVecRef) -> Added:
        whole = all_.added(all_.of_code(code))
        s = whole.sum
        return replace(whole, sum=StickySum(s.e_max, s.y, s.x, s.total))  # a `Pair` has what changes last

    rule = Successor(code, at(code).result, not_above, all_.last)
    pair = Neighbours(rule, *map(at, rule.neighbouring))
    prove_pair_in_order(theory, Pair(all_.spec, pair, all_.ex, all_.ex.low, all_.bits - 1, all_.lowest))
    theory.theorem("a product and the next one give results in order", rule.neighbours)
    theory.holds("zero products", "either zero gives the same", rule.zeros)
    theory.holds("≤ of results", "≤ is transitive", rule.transitive)
    theory.holds("a result", "and reflexive", rule.reflexive)
    rule.conclude(theory)
    return rule


def unit(all_: Products, exponent: z3.BitVecRef) -> z3.BitVecRef:
    """The exponent of a product's last place, as `larger_products` has it."""
    fmt = all_.spec.a_format
    bits = product(*(number(z3.BitVec("code", fmt.storage_bits), fmt),) * 2).exponent.size()
    return fit(exponent, bits) + (all_.ex.low - 2 * all_.M)


def below(all_: Products, x: Term, y: Term) -> z3.BoolRef:
    """|x| ≤ |y|."""
    return at_least(y.significand, unit(all_, y.exponent), x.significand, unit(all_, x.exponent))


def prove_numbers_in_order(theory: Theory, all_: Products) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(that magnitudes in order have codes in order; that a code is in its range, and zero is 0)."""
    x, y, high = all_.term, other_term(all_), all_.ex.constant(all_.ex.high)
    half = Term(x.sign, x.exponent - 1, x.significand << 1)
    top = z3.Extract(all_.bits - 1, all_.bits - 1, x.significand)
    in_range = z3.And(z3.ULE(x.exponent, high), z3.ULE(y.exponent, high))
    given = z3.And(in_range, z3.UGE(x.exponent, 1), top == 0)
    shifted = []
    text = "twice the significand and the next lower exponent are the same number"
    functions: dict[str, Callable[[Term], z3.BitVecRef]] = {
        "first": lambda u: bit(below(all_, u, y)),
        "second": lambda u: bit(below(all_, y, u)),
    }
    for name, of in functions.items():
        one = z3.Implies(given, _follows(of(x), of(half)))
        theory.holds(f"half, {name}", text, one)
        inside = z3.And(all_.known(x), z3.ULE(y.exponent, high))
        shifted.append(Shifting(all_, f"the order, {name}", of, _follows, inside).prove(theory, one))
    code, zero = all_.magnitude(*all_.normal(x)), x.significand == 0
    claim = z3.Implies(all_.known(x), z3.And(z3.ULE(code, all_.last), z3.Implies(zero, code == 0)))
    text = "the code of a product is in its range, and that of zero is 0"
    ranges = theory.holds("codes in range", text, claim)
    return _conclude_in_order(theory, all_, (shifted[0], shifted[1]), ranges), ranges


def _follows(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    return z3.Implies(x == 1, y == 1)


def _conclude_in_order(
    theory: Theory, all_: Products, shifted: tuple[z3.BoolRef, z3.BoolRef], ranges: z3.BoolRef
) -> z3.BoolRef:
    x, y, high = all_.term, other_term(all_), all_.ex.constant(all_.ex.high)
    known = z3.And(all_.known(x), all_.known(y))
    in_range = z3.And(z3.ULE(x.exponent, high), z3.ULE(y.exponent, high))
    leads = z3.And(in_range, _leads(all_, x.significand, x.exponent), _leads(all_, y.significand, y.exponent))
    codes = [all_.magnitude(u.significand, u.exponent) for u in (x, y)]
    text = "products without leading zeros, in order, have codes in order"
    normal = z3.Implies(z3.And(leads, below(all_, x, y)), z3.ULE(*codes))
    theory.holds("normal in order", text, normal)
    (m, e), (m_y, e_y) = all_.normal(x), all_.normal(y)
    at_x, at_y = Term(x.sign, e, m), Term(y.sign, e_y, m_y)
    own, other = list(zip(x, y, strict=True)), list(zip(y, at_x, strict=True))
    second = instance(theory, shifted[1], [*own, *other])
    last = instance(theory, normal, [*zip(x, at_x, strict=True), *zip(y, at_y, strict=True)])
    claims = [
        theory.claim("no leading zero", "it has no leading zero", z3.Implies(
            z3.And(all_.known(u), u.significand != 0), z3.And(_leads(all_, *v), z3.ULE(v[1], high))))
        for u, v in ((x, (m, e)), (y, (m_y, e_y)))
    ]  # fmt: skip
    zero = z3.Implies(z3.And(in_range, below(all_, x, y), y.significand == 0), x.significand == 0)
    claims.append(theory.claim("zero below", "nothing but zero is as small as zero", zero))
    goal = z3.Implies(
        z3.And(known, below(all_, x, y)), z3.ULE(*(all_.magnitude(*v) for v in ((m, e), (m_y, e_y))))
    )
    text = "the magnitudes of products in order have codes in order"
    cut = [below(all_, u, v) for u, v in ((x, y), (at_x, y), (at_x, at_y))]
    cut += [m, e, m_y, e_y, *(all_.magnitude(*v) for v in ((m, e), (m_y, e_y)))]
    theory.claim("magnitudes in order", text, goal, [shifted[0], second, last, ranges, *claims], cut)
    return theory.theorem(text, goal)


def other_term(all_: Products) -> Term:
    return Term(*(z3.BitVec(f"{x}'", x.size()) for x in all_.term))


# ---- one step --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One of two runs of a step, and what the factors' codes stand for."""

    all_: Products
    step: sfma.Step
    factors: tuple[Number, Number]

    @property
    def number(self) -> Number:
        return product(*self.factors)

    @property
    def product(self) -> Term:
        return self.step.product

    @property
    def zero(self) -> z3.BoolRef:
        return self.product.significand == 0

    @property
    def term(self) -> Term:
        """The product; but a zero has the least exponent of products here, not of c."""
        x = self.product
        return x._replace(exponent=z3.If(self.zero, z3.BitVecVal(0, x.exponent.size()), x.exponent))

    @property
    def magnitude(self) -> z3.BitVecRef:
        return self.all_.magnitude(*self.all_.normal(self.term))

    @property
    def code(self) -> z3.BitVecRef:
        """Of the product, without leading zeros."""
        return z3.Concat(self.product.sign, self.magnitude)

    @property
    def exact(self) -> z3.BoolRef:
        """The product is the number."""
        term, same = self.term, self.number
        return z3.And(
            term.sign == same.sign,
            term.significand == same.significand,
            z3.Or(self.zero, unit(self.all_, term.exponent) == same.exponent),
        )

    @property
    def known(self) -> z3.BoolRef:
        """What is known of a product, and that a zero is not above the least c."""
        at_low = z3.ULE(self.product.exponent, self.all_.ex.constant(self.all_.lowest))
        return z3.And(self.exact, self.all_.known(self.term), z3.Implies(self.zero, at_low))

    def instead_of(self, term: Term) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
        return list(zip(term, self.term, strict=True))

    @property
    def sum_code(self) -> z3.BitVecRef:
        s = self.step.sum
        return self.all_.code(s.total, s.e_max)


def _only_step(trace: Trace[AnyStep]) -> sfma.Step:
    (step,) = trace.steps
    assert isinstance(step, sfma.Step)
    return step


def prove_step(theory: Theory, spec: DotAdd) -> z3.BoolRef:
    """`larger_product(one_step(spec), 0).statement`.  Raises NotProvedError."""
    all_ = Products(spec)
    normal, rule = prove_normal(theory, all_), prove_normal_in_order(theory, all_)
    numbers = prove_numbers_in_order(theory, all_)
    runs = larger_product(one_step(spec), 0)
    first, second = (
        Side(all_, _only_step(trace), (number(x.a[0], spec.a_format), number(x.b[0], spec.b_format)))
        for trace, x in zip(runs.traces, (runs.x, runs.y), strict=True)
    )
    sides = first, second
    known = [_prove_product(theory, side) for side in sides]
    codes = _prove_codes(theory, runs, sides, known, numbers)
    sums = [
        _prove_sum(theory, side, each, (normal, numbers[1])) for side, each in zip(sides, known, strict=True)
    ]
    said = instance(
        theory, rule.conclusion, list(zip(rule.codes, (side.code for side in sides), strict=True))
    )
    results = [side.step.result for side in sides]
    none = z3.Not(z3.Or([any_special(side.step) for side in sides]))
    text = "so where nothing is special, the results are in order"
    claim = z3.Implies(z3.And(runs.premises[0], none), order(results[0]) <= order(results[1]))
    ends = [all_.added(all_.of_code(side.code)).result for side in sides]
    cut = [*results, *ends, *(side.code for side in sides), *(side.magnitude for side in sides),
           *(f for side in sides for f in flags(side.step)), runs.premises[0]]  # fmt: skip
    ordered = theory.claim("numbers", text, claim, [said, codes, *sums], cut)
    _prove_specials(theory, runs, sides, ordered)
    return theory.theorem("a·b ≤ a'·b' ⇒ d ≤ d' in one step", runs.statement)


def _prove_product(theory: Theory, side: Side) -> z3.BoolRef:
    """That the product is the number of the codes, and as a product of the model is."""
    all_, step, term = side.all_, side.step, side.product
    sfma_terms(theory, step, all_.p.rho)
    factors, ex = (step.a, step.b), all_.ex
    text = "a factor is the number of its code"
    same = [
        theory.claim("factor", text, z3.And(x.sign == n.sign, x.significand == n.significand))
        for x, n in zip(factors, side.factors, strict=True)
    ]
    parts = [part for x in (*factors, *side.factors) for part in (x.sign, x.significand)]
    exact = side.exact
    text = "the product is that of the numbers"
    theory.claim("product of numbers", text, z3.And(*exact.children()[:2]), same, parts)
    some_zero = z3.Or([x.significand == 0 for x in factors])
    exponent = z3.Or(some_zero, unit(all_, term.exponent) == side.number.exponent)
    text = "its exponent is the sum of theirs, if it is not zero"
    theory.claim("exponent of numbers", text, exponent, (), [x.significand for x in factors])
    zeros = z3.Implies(some_zero, z3.And(side.zero, term.exponent == ex.constant(all_.lowest)))
    text = "a product's exponent is in its range"
    in_range = z3.ULE(term.exponent, ex.constant(ex.high))
    theory.claim("exponent in range", text, in_range, (), [x.significand for x in factors])
    of_product = z3.Or(
        z3.And(side.zero, term.exponent == ex.constant(all_.lowest)),
        z3.UGE(term.significand, 1 << all_.M),
        term.exponent == ex.constant(ex.low),
    )
    claim, n = side.known, side.number
    text = (
        "the product is that of the codes: zero, or with the leading bit of one factor, or the least exponent"
    )
    cut = [term.significand, n.significand, term.sign, n.sign, term.exponent, n.exponent, some_zero]
    given = [z3.And(*exact.children()[:2]), exponent, zeros, in_range, of_product]
    return theory.claim("product", text, claim, given, cut)


def below_numbers(x: Number, y: Number) -> z3.BoolRef:
    """|x| ≤ |y|, as `larger_products` has it."""
    return at_least(y.significand, y.exponent, x.significand, x.exponent)


def _prove_compared(theory: Theory, sides: tuple[Side, Side]) -> list[z3.BoolRef]:
    """That products are in order if their numbers are: where they are the same, and where one is zero."""
    (x, y), all_ = sides, sides[0].all_
    numbers, terms = below_numbers(x.number, y.number), below(all_, x.term, y.term)
    same = [
        z3.And(s.term.significand == s.number.significand, unit(all_, s.term.exponent) == s.number.exponent)
        for s in sides
    ]
    cut = [unit(all_, s.term.exponent) for s in sides]
    cut += [part for s in sides for v in (s.term, s.number) for part in (v.significand, v.exponent)]
    said = (
        ("same numbers", "the same numbers are in the same order", z3.Implies(z3.And(same), numbers == terms)),
        ("zero first", "zero is below all", z3.Implies(x.zero, terms)),
        ("zero last", "and nothing else is below zero", z3.Implies(y.number.significand == 0, z3.Or(
            x.number.significand == 0, z3.Not(numbers)))),
    )  # fmt: skip
    return [theory.claim(name, text, claim, (), cut) for name, text, claim in said]


def _prove_codes(
    theory: Theory,
    runs: LargerProduct,
    sides: tuple[Side, Side],
    known: list[z3.BoolRef],
    theorems: tuple[z3.BoolRef, z3.BoolRef],
) -> z3.BoolRef:
    """That larger products have larger codes, which are in their range, where nothing is special."""
    (x, y), all_ = sides, sides[0].all_
    for side in sides:
        text, n = "where nothing is special, the product is a number", side.number
        theory.claim("finite product", text, z3.Or(any_special(side.step), z3.Not(z3.Or(n.infinite, n.nan))))
    finite = [z3.Or(any_special(s.step), z3.Not(z3.Or(s.number.infinite, s.number.nan))) for s in sides]
    none = z3.Not(z3.Or([any_special(side.step) for side in sides]))
    where = z3.And(runs.premises[0], none)
    less, more = below(all_, x.term, y.term), below(all_, y.term, x.term)
    compared = [claim for pair in ((x, y), (y, x)) for claim in _prove_compared(theory, pair)]
    minus = x.term.sign == 1
    positive, zero = y.term.sign == 0, z3.And(x.zero, y.zero)
    by_sign = z3.And(
        z3.Implies(minus, z3.Or(positive, more)),
        z3.Implies(z3.Not(minus), z3.And(less, z3.Or(positive, zero))),
    )
    text = "the products are in order, by sign and magnitude"
    cut = [less, more, *(below_numbers(u.number, v.number) for u, v in ((x, y), (y, x)))]
    cut += [part for s in sides for v in (s.term, s.number) for part in (v.sign, v.significand, v.exponent)]
    cut += [flag for s in sides for flag in (s.number.infinite, s.number.nan)]
    cut += [flag for s in sides for flag in flags(s.step)]
    given = [*known, *finite, *compared]
    signs = theory.claim("products in order", text, z3.Implies(where, by_sign), given, cut)
    ordered, ranges = theorems
    small, large = all_.term, other_term(all_)
    both = [
        instance(theory, ordered, [*u.instead_of(small), *v.instead_of(large)]) for u, v in ((x, y), (y, x))
    ]
    ranged = [instance(theory, ranges, side.instead_of(small)) for side in sides]
    inside = [z3.ULE(z3.Extract(side.code.size() - 2, 0, side.code), all_.last) for side in sides]
    claim = z3.Implies(where, z3.And(*inside, order(x.code) <= order(y.code)))
    text = "so their codes are in order"
    cut = [x.magnitude, y.magnitude, x.term.sign, y.term.sign, less, more, x.zero, y.zero,
           *(all_.known(side.term) for side in sides), where]  # fmt: skip
    own = [all_.known(side.term) for side in sides]
    for each, claimed in zip(own, known, strict=True):
        theory.claim("known product", "a part of that", each, [claimed], claimed.children())
    return theory.claim("codes in order", text, claim, [signs, *both, *ranged, *own], cut)


def _prove_sum(
    theory: Theory, side: Side, known: z3.BoolRef, theorems: tuple[z3.BoolRef, z3.BoolRef]
) -> z3.BoolRef:
    """That d is what the product gives without leading zeros, where nothing is special."""
    all_, step, (normal, ranges) = side.all_, side.step, theorems
    term, own = side.product, all_.added(all_.of_code(side.code))
    c, sum_ = own.term, step.sum
    text = "where nothing is special, d is the rounded sum; a zero may have another sign"
    linked = z3.Or(any_special(step), order(step.result) == order(side.sum_code))
    cut = [sum_.total, sum_.e_max, term.sign, step.addend.sign, *flags(step)]
    theory.claim("rounded sum", text, linked, (), cut)
    said = instance(theory, normal, side.instead_of(all_.term))
    zero_code = instance(theory, ranges, side.instead_of(all_.term))
    given = all_.known(side.term)
    theory.claim("known product", "a part of that", given, [known], known.children())
    there, low = all_.added(side.term), all_.ex.constant(all_.lowest)
    c_low = z3.And(z3.UGE(c.exponent, low), z3.ULE(c.exponent, all_.ex.constant(all_.ex.high)))
    theory.claim("c in range", "c's exponent is in its range", c_low)

    def same_sum(other: Added) -> z3.BoolRef:
        return z3.And(other.sum.total == sum_.total, other.sum.e_max == sum_.e_max)

    text, parts = "it gives the same sum", [*term, *c]
    nonzero = z3.Implies(z3.Not(side.zero), same_sum(there))
    theory.claim("sum of a product", text, nonzero, (), parts)
    none = z3.Implies(z3.And(side.zero, side.magnitude == 0), same_sum(own))
    at_low = side.known.arg(2)
    theory.claim("a part", "a part of that", at_low, [known], known.children())
    theory.claim("sum of zero", text, none, [at_low, c_low], [side.magnitude, *parts])
    rounded = []
    for other in (there, own):
        text, cut = (
            "the same sum is rounded to the same",
            [*other.sum[:1], other.sum.total, sum_.total, sum_.e_max],
        )
        claim = z3.Implies(same_sum(other), other.result == side.sum_code)
        rounded.append(theory.claim("same sum", text, claim, (), cut))
    text = "so d is that of the product without leading zeros"
    goal = z3.Or(any_special(step), order(step.result) == order(own.result))
    cut = [step.result, side.sum_code, own.result, there.result, *flags(step), side.zero, side.magnitude,
           same_sum(own), same_sum(there), given]  # fmt: skip
    return theory.claim(
        "d of a product", text, goal, [linked, said, zero_code, given, nonzero, none, *rounded], cut
    )


def _prove_specials(
    theory: Theory, runs: LargerProduct, sides: tuple[Side, Side], ordered: z3.BoolRef
) -> None:
    """`runs.in_order`, from that of what is not special."""
    (x, y), fmt = (side.step for side in sides), runs.spec.d_format
    (nan, plus, minus), (nan_y, plus_y, _) = x.special, y.special
    premise = runs.premises[0]
    none = z3.Not(z3.Or(any_special(x), any_special(y)))
    infinite = z3.Or(none, nan, nan_y, z3.And(minus, z3.Not(plus)), z3.And(plus_y, z3.Not(nan_y)))
    text = "where something is special, there is a NaN, or the first is −∞, or the second +∞"
    cut = [part for side in sides for part in (side.number.significand, side.number.exponent)]
    special = theory.claim("specials", text, z3.Implies(premise, infinite), (), cut)
    outcomes = [prove_outcome(theory, each, fmt) for each in (x, y)]
    results = x.result, y.result
    goal = z3.Implies(premise, not_below(results, fmt))
    text = "so the results are in order"
    cut = [*results, *flags(x), *flags(y), premise]
    theory.claim("in order", text, goal, [special, *outcomes, ordered], cut)
    ends = tuple(trace.result for trace in runs.traces)
    if not runs.in_order.eq(goal.arg(1)):
        same_results(theory, "result", "the result is the step's", ends, results, fmt)


# ---- the chain -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    """How the steps of a model are those of `inner`, one of sfma: on the codes that `codes` makes of its inputs.

    `larger` proves, of a product that is not smaller, that it is not so as it is taken.
    """

    inner: DotAdd
    codes: Callable[[Inputs], Inputs] = lambda x: x
    larger: Callable[[Theory, LargerProduct, z3.BoolRef], None] | None = None


def prove_in_products(theory: Theory, spec: DotAdd, taken: Taken | None = None) -> None:
    """`larger_product(spec, k).statement` of each k.  Raises NotProvedError."""
    by = taken or Taken(spec)
    alone = larger_product(one_step(by.inner), 0)
    theorem = prove_step(theory, by.inner)
    one, grows = prove_step_in_c(theory, by.inner)
    for k in range(spec.k):
        runs = larger_product(spec, k)
        first, second = (trace.steps for trace in runs.traces)
        x, y = by.codes(runs.x), by.codes(runs.y)
        c = first[k - 1].result if k else runs.x.c
        own = [alone.x.a[0], alone.x.b[0], alone.y.a[0], alone.y.b[0], alone.x.c]
        mine = [x.a[k], x.b[k], y.a[k], y.b[k], c]
        said = instance(theory, theorem, list(zip(own, mine, strict=True)))
        said_of = tuple(z3.substitute(t.result, *zip(own, mine, strict=True)) for t in alone.traces)
        start = first[k].result, second[k].result
        text = "a step of the chain is a step of its own, whose c is the result before"
        same_results(theory, f"product {k}", text, start, said_of, spec.d_format)
        if by.larger is None:
            demand(
                said.arg(0).eq(z3.And(runs.premises)), "what is said of one run is not what is taken of it"
            )
        else:
            by.larger(theory, runs, said.arg(0))
        prove_chain(theory, one, grows, start, links_of(spec, first, second, k + 1, by.codes, by.inner))
        ends = tuple(trace.result for trace in runs.traces)
        text = "the result is the last step's"
        same_results(theory, f"result, {k}", text, ends, (first[-1].result, second[-1].result), spec.d_format)
        theory.theorem(f"d is not smaller if product {k} is not", runs.statement)
