"""From products of words to the result of a program: what is left out, and how errors grow, sum by sum.

Real numbers.  Of each factor it is known (`words`) that a = Σ v_i + what is left, v_i the i-th word times 2^(−s·i),
that what is left is at most ρ·w(a), and the weight of v_i at most ω_i·w(a).  So of a product (`Products`)

    |a·b − Σ v_i·v_j| ≤ ε·w(a)·w(b),     ε = ρ + ρ' + ρ·ρ' + Σ ω_i·ω_j of the products of words that are left out.

Let t be the total, x the exact sum of c and of the products of words so far, σ ≥ |x| the sum of their weights and w(c),
and |t − x| ≤ G − σ.  Of c itself G = σ = w(c).

- A chain of the unit on the total, whose product is off by f at most of all its weights: σ becomes σ + P, P its own
  weights, and G becomes (1 + f)·(G + P) (`prove_chain_of_sums`).
- A sum from zero, off by g of its own weights P and of `least`, times κ = 2^−shift (η off), and added with a rounding
  of u: σ becomes σ + κ·P, and G becomes (1 + u)·(G + κ·P + κ·g·(least + P) + η) (`prove_outside`).

So in the last G the weights of each sum count with the product of all factors from there on, and w(c) with that of all.
No block of a product counts more than the first one, whose sums come first: `programs` counts.  Where that is
G − σ ≤ α'·Y + β·w(c) + γ, Y = Σ w(a)·w(b), then |d − (c + Σ a·b)| ≤ (α' + ε)·Y + β·w(c) + γ (`prove_together`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.encodings.smt.blocks import BitVec, canonical_nan, decode, resize
from mmaformal.encodings.smt.ieee import add, rescale
from mmaformal.facts.product_bound import STEPS, is_within
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.kernel import ArgumentError
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.studies.emulation.words import WordCut
from mmaformal.theory.additions import AdditionFacts

PROGRAM = Rule(
    "sums of a program",
    "what is claimed of any factor, product of words, chain of the unit, scaling and addition holds of those of the "
    "program, one after the other; what holds of each product holds of their sum",
)

#: The most that a scaling is off: half the last place of fp32's subnormal numbers.
HALF_PLACE = Fraction(1, 1 << 150)


# ---- products of words -----------------------------------------------------------------------------------------------


def left_out(p: Emulated) -> list[tuple[int, int]]:
    """The products of words that a program does not have."""
    taken = {pair for part in p.parts for pair in part.products}
    return [(i, j) for i in range(p.words) for j in range(p.words) if (i, j) not in taken]


def lost(p: Emulated, a: WordCut, b: WordCut) -> Fraction:
    """ε: what the products of words are off at most of a·b, relative to w(a)·w(b)."""
    omitted = sum((a.sizes[i] * b.sizes[j] for i, j in left_out(p)), Fraction(0))
    return a.loss + b.loss + a.loss * b.loss + omitted


def operations_of_program(part: Part) -> list[Part]:
    """A part as parts whose sums are one operation on the total each: a product of words on it, or a sum outside."""
    return [part] if part.every else [replace(part, products=(pair,)) for pair in part.products]


def share(part: Part, p: Emulated, a: WordCut, b: WordCut) -> Fraction:
    """The weights of a part's products of words, times 2^−shift, relative to w(a)·w(b), at most."""
    terms = (a.sizes[i] * b.sizes[j] * Fraction(2) ** (p.shift * (i + j)) for i, j in part.products)
    return sum(terms, Fraction(0)) / (1 << part.shift)


class WordNumbers(NamedTuple):
    """A factor, its weight, its words and theirs, as real numbers."""

    x: z3.ArithRef
    weight: z3.ArithRef
    words: tuple[z3.ArithRef, ...]
    weights: tuple[z3.ArithRef, ...]

    @classmethod
    def of(cls, name: str, count: int) -> WordNumbers:
        words, weights = ([z3.Real(f"{kind}{name}{i}") for i in range(count)] for kind in ("", "w_"))
        return cls(z3.Real(name), z3.Real(f"w_{name}"), tuple(words), tuple(weights))

    def left(self, p: Emulated) -> z3.ArithRef:
        """Return what all words leave of the factor."""
        return self.x - z3.Sum([_place(p, i) * word for i, word in enumerate(self.words)])

    def known(self, p: Emulated, cut: WordCut) -> z3.BoolRef:
        """Claim of numbers what is claimed of codes (`words.prove`)."""
        normal, y = _number(Fraction(2) ** cut.format.min_exponent), self.x
        known = [is_within(self.x, self.weight), self.weight >= _number(Fraction(2) ** cut.least)]
        for i, (word, weight) in enumerate(zip(self.words, self.weights, strict=True)):
            known.append(z3.Or(weight <= word, weight <= -word, weight <= normal))
            known.append(is_within(word, weight))
            if cut.places:
                y = _number(Fraction(1 << p.shift)) * (y - word)
                known.append(is_within(y * _place(p, i + 1), _number(cut.left[i + 1]) * self.weight))
            else:
                known.append(word == self.x)
        return z3.And(known)

    def sized(self, p: Emulated, cut: WordCut) -> list[tuple[z3.ArithRef, Fraction]]:
        """Return terms with shares of the factor's weight that bound them: factor, what is left, words and weights."""
        shares = [size * (1 << p.shift * i) for i, size in enumerate(cut.sizes)]
        each = [*zip(self.words, shares, strict=True), *zip(self.weights, shares, strict=True)]
        return [(self.x, Fraction(1)), (self.left(p), cut.loss), *each]


def _number(x: Fraction) -> z3.RatNumRef:
    return z3.Q(x.numerator, x.denominator)


def _place(p: Emulated, i: int) -> z3.RatNumRef:
    """Return what the i-th word counts."""
    return _number(Fraction(1, 1 << p.shift * i))


class WordProducts:
    """Claims about the products of words of two factors."""

    def __init__(self, p: Emulated, a: WordCut, b: WordCut) -> None:
        self.p, self.a, self.b = p, a, b
        self.x, self.y = WordNumbers.of("a", p.words), WordNumbers.of("b", p.words)
        self.both = self.x.weight * self.y.weight
        #: by the id of what has it: whose weight, and how much
        self.shares: dict[int, tuple[z3.ArithRef, Fraction]] = {}
        self.known = z3.And(self.x.known(p, a), self.y.known(p, b))

    def prove(self, proving: Composing) -> None:
        """Raises NotProvedError."""
        for factor, cut in ((self.x, self.a), (self.y, self.b)):
            sized = factor.sized(self.p, cut)
            self.shares |= {what.get_id(): (factor.weight, share) for what, share in sized}
            bounds = [self._bound(what) for what, _ in sized]
            text = "words leave no more than is claimed, and none is larger than its share of the factor's weight"
            claim = z3.And(*bounds, factor.weight >= 0)
            proving.claim("words", text, claim, [factor.known(self.p, cut)])
        claims = [self._prove_error(proving)]
        claims += [
            self._prove_weights(proving, one) for part in self.p.parts for one in operations_of_program(part)
        ]
        proving.rests_on(PROGRAM)
        epsilon, out = float(lost(self.p, self.a, self.b)), len(left_out(self.p))
        text = f"products of words are off by {epsilon:.6g} of both weights at most, {out} of them left out"
        proving.conclude(text, z3.Implies(self.known, z3.And(claims)))

    def _bound(self, what: z3.ArithRef) -> z3.BoolRef:
        weight, share = self.shares[what.get_id()]
        return is_within(what, _number(share) * weight)

    def _prove_product(self, proving: Composing, x: z3.ArithRef, y: z3.ArithRef) -> z3.BoolRef:
        """Prove that x·y is no larger than both shares together."""
        (of_x, share), (of_y, other) = self.shares[x.get_id()], self.shares[y.get_id()]
        claim = is_within(x * y, _number(share * other) * self.both)
        text = "a product is no larger than its share of both weights"
        given = [self._bound(x), self._bound(y), of_x >= 0, of_y >= 0]
        return proving.claim("product", text, claim, given)

    def _prove_error(self, proving: Composing) -> z3.BoolRef:
        """Prove that what is taken is off by ε at most."""
        p, x, y = self.p, self.x, self.y
        u, v = x.left(p), y.left(p)
        terms = [(Fraction(1), x.x, v), (Fraction(1), u, y.x), (Fraction(-1), u, v)]
        terms += [(Fraction(1, 1 << p.shift * (i + j)), x.words[i], y.words[j]) for i, j in left_out(p)]
        taken = z3.Sum([_sum(part, x.words, y.words) for part in p.parts])
        error = x.x * y.x - taken
        text = "a·b is the sum of the products of words, of those left out, and of what words leave"
        rest = z3.Sum([_number(scale) * (one * other) for scale, one, other in terms])
        whole = proving.claim("distributive law", text, error == rest)
        bounds = [self._prove_product(proving, one, other) for _, one, other in terms]
        text = "so the products of words are off by no more than the sum of these shares"
        claim = is_within(error, _number(lost(p, self.a, self.b)) * self.both)
        return proving.claim("products of words", text, claim, [whole, *bounds])

    def _prove_weights(self, proving: Composing, part: Part) -> z3.BoolRef:
        """Prove that the weights of a part's products are its share of both weights at most."""
        pairs = [(self.x.weights[i], self.y.weights[j]) for i, j in part.products]
        bounds = [self._prove_product(proving, one, other) for one, other in pairs]
        claim = (
            _sum(part, self.x.weights, self.y.weights)
            <= _number(share(part, self.p, self.a, self.b)) * self.both
        )
        text = "the weights of a part's products are together no more than its share"
        return proving.claim("weights of a part", text, claim, bounds)


def _sum(part: Part, x: Sequence[z3.ArithRef], y: Sequence[z3.ArithRef]) -> z3.ArithRef:
    return _number(Fraction(1, 1 << part.shift)) * z3.Sum([x[i] * y[j] for i, j in part.products])


# ---- sums ------------------------------------------------------------------------------------------------------------


class Total(NamedTuple):
    """The total before a sum, what it is exactly, and how far it may be off."""

    t: z3.ArithRef
    exact: z3.ArithRef
    sigma: z3.ArithRef
    G: z3.ArithRef
    least: z3.ArithRef

    @classmethod
    def any(cls) -> Total:
        return cls(*z3.Reals("t x sigma G least"))

    @property
    def near(self) -> z3.BoolRef:
        """|t − x| ≤ G − σ."""
        size = z3.And(self.least >= 0, self.least <= self.sigma, is_within(self.exact, self.sigma))
        return z3.And(is_within(self.t - self.exact, self.G - self.sigma), size)

    def after(self, d: z3.ArithRef, p: z3.ArithRef, P: z3.ArithRef, G: z3.ArithRef) -> Total:
        """The next total."""
        return Total(d, self.exact + p, self.sigma + P, G, self.least)


def prove_chain_of_sums(proving: Composing) -> None:
    """Prove the error of a chain of the unit on the total, off by f at most of w(t) and the weights of its products.

    Raises NotProvedError."""
    total = Total.any()
    d, p, P, f, w = z3.Reals("d p P f w")
    signs = z3.And(P >= 0, f >= 0, is_within(p, P))
    heavier = z3.Or(w <= total.t, w <= -total.t, w <= total.least)
    unit = is_within(d - (total.t + p), f * (w + P))
    text = "the weight of the total is no more than G"
    reach = proving.claim("weight", text, w <= total.G, [total.near, heavier])
    text = "so a chain on it is off by f times G and its own weights at most"
    larger = proving.claim("larger", text, f * (w + P) <= f * (total.G + P), [signs, reach])
    after = total.after(d, p, P, (1 + f) * (total.G + P)).near
    after = proving.claim("chain", text, after, [signs, total.near, unit, larger])
    proving.rests_on(STEPS)
    text = "after a chain of the unit on the total G is (1 + f)·(G + P)"
    proving.conclude(text, z3.Implies(z3.And(signs, total.near, heavier, unit), after))


def prove_outside(proving: Composing) -> None:
    """Prove the error of a sum from zero that is scaled and added to the total.  Raises NotProvedError."""
    total = Total.any()
    d, p, P, u, inner, scaled, g, kappa, eta = z3.Reals("d p P u inner scaled g kappa eta")
    more = kappa * g * (total.least + P) + eta
    given = z3.And(P >= 0, u >= 0, g >= 0, kappa >= 0, eta >= 0, is_within(p, P))
    unit = is_within(inner - p, g * (total.least + P))
    scaling = is_within(scaled - kappa * inner, eta)
    S = total.t + scaled
    rounding = z3.Or(is_within(d - S, u * S), is_within(d - S, -u * S), is_within(d - S, u * total.least))

    text = "numbers and errors that are scaled are within what is scaled"
    own = g * (total.least + P)
    times = z3.And(
        is_within(kappa * (inner - p), kappa * own), is_within(kappa * p, kappa * P), kappa * P >= 0
    )
    times = proving.claim("scaled", text, times, [given, unit])
    text = "products of what is not negative are not"
    positive = proving.claim("signs", text, kappa * own >= 0, [total.near, given])
    text = "what is added is off by κ times its own error, and the scaling"
    close = proving.claim("off", text, is_within(scaled - kappa * p, more), [times, scaling])
    reach = total.G + kappa * P + more
    text = "the sum is no larger than G, the weights and that"
    size = z3.And(is_within(S, reach), total.least <= reach)
    size = proving.claim("size", text, size, [given, total.near, close, times, positive])
    text = "rounding adds u times that"
    off = proving.claim("rounded", text, is_within(d - S, u * reach), [given, size, rounding])
    after = total.after(d, kappa * p, kappa * P, (1 + u) * reach).near
    after = proving.claim("outside", text, after, [total.near, close, times, off])
    proving.rests_on(STEPS)
    text = "after a sum that is added outside G is (1 + u)·(G + κ·P + what the sum is off)"
    proving.conclude(text, z3.Implies(z3.And(given, total.near, unit, scaling, rounding), after))


def prove_together(proving: Composing) -> None:
    """The bound, from what is known of the last total and of products of words.  Raises NotProvedError."""
    total = Total.any()
    Y, alpha, beta, gamma, epsilon, target, w = z3.Reals("Y alpha beta gamma epsilon target w")
    counted = total.G - total.sigma <= alpha * Y + beta * w + gamma
    words = is_within(total.exact - target, epsilon * Y)
    text = "the errors of sums and of words are together within the bound"
    claim = is_within(total.t - target, (alpha + epsilon) * Y + beta * w + gamma)
    claim = proving.claim("together", text, claim, [total.near, counted, words])
    proving.rests_on(STEPS)
    proving.conclude(text, z3.Implies(z3.And(total.near, counted, words), claim))


# ---- scalings and additions, of codes --------------------------------------------------------------------------------


def prove_scaling(proving: Composing, shift: int) -> None:
    """Prove that a finite code of fp32 times 2^−shift is off by half a place of subnormal numbers at most.  Raises
    NotProvedError."""
    code = z3.BitVec("code", fp32.storage_bits)
    x, z = decode(code, fp32), decode(rescale(code, fp32, IEEE_FP32, -shift), fp32)
    bits = fp32.fraction_bits + shift + 4
    m, n = resize(x.significand, bits), resize(z.significand, bits)
    below = z3.BitVecVal(1, bits) << (
        shift + 1 - resize(x.field, bits)
    )  # units of x, scaled, in a subnormal one
    off = n * below - m
    exact = z3.And(z.significand == x.significand, resize(z.field, bits) == resize(x.field, bits) - shift)
    near = z3.And(z.field == 1, 2 * off <= below, -2 * off <= below)
    finite = z3.Not(z3.Or(z.infinite, z.nan))
    claim = z3.And(finite, z.sign == x.sign, z3.If(z3.UGT(x.field, shift), exact, near))
    text = f"a number times 2^−{shift} is exact, or off by half the last place of subnormal numbers"
    proving.claim("scaling", text, claim, [is_finite(code, fp32)])
    proving.conclude_all(is_finite(code, fp32))


def check_flow_of_sums(spec: DotAdd) -> None:
    """Check that each sum of each program is the unit's, of words of its factors, from the total or from +0; and is the
    total, or is scaled and added to it, to nearest: seen of the terms, which are the same ones.

    Raises ArgumentError."""
    p = spec.parameters_as(Emulated)
    # A longer chain has a loop of its own (`facts/both_encodings` follows it): two programs show what each one's c is.
    few = spec.replace(k=min(spec.k, 2 * p.step_products))
    x = symbolic_inputs(few)
    trace, total = smt.dot_add(few, x.a, x.b, x.c), x.c
    a, b = (
        [emulated.words(code, p, fmt).codes for code in codes]
        for codes, fmt in ((x.a, p.unit.a_format), (x.b, p.unit.b_format))
    )
    for n, step in enumerate(trace.steps):
        assert isinstance(step, emulated.EmulatedStep)
        runs, end = iter(step.runs), (n + 1) * p.step_products
        for part in p.parts:
            size = (part.every or p.blocks) * p.unit.k
            for start in range(n * p.step_products, end, size):
                stop = min(start + size, end)
                total = _sum_of(p, part, a[start:stop], b[start:stop], total)
                if not total.eq(next(runs).result):
                    raise ArgumentError(f"{p}: a sum is not the unit's, of the words that are told")
        if next(runs, None) is not None or not step.result.eq(total):
            raise ArgumentError(f"{p}: d is not the last total")
    if len(trace.steps) * p.step_products != few.k or not trace.result.eq(total):
        raise ArgumentError(f"{p}: d is not the last program's")


def _sum_of(
    p: Emulated, part: Part, a: Sequence[tuple[BitVec, ...]], b: Sequence[tuple[BitVec, ...]], total: BitVec
) -> BitVec:
    """The total after one sum of words, as it is told."""
    k, partial = p.unit.k, z3.BitVecVal(0, fp32.storage_bits) if part.every else total
    for start in range(0, len(a), k):
        for i, j in part.products:
            x, y = [u[i] for u in a[start : start + k]], [v[j] for v in b[start : start + k]]
            partial = smt.dot_add(p.unit, x, y, partial).result
    if not part.every:
        return partial
    scaled = rescale(partial, fp32, IEEE_FP32, -part.shift) if part.shift else partial
    return add(total, scaled, IEEE_FP32, canonical_nan(fp32)).result


def prove_addition_outside(proving: Composing) -> None:
    """Prove that an addition outside of the unit is the exact sum of two numbers, rounded once.  Raises
    NotProvedError."""
    x, y = z3.BitVecs("x y", fp32.storage_bits)
    addition = AdditionFacts(x, y, add(x, y, IEEE_FP32, canonical_nan(fp32)).result, IEEE_FP32)
    claim = addition.prove(proving)
    text = "an addition outside of the unit is the exact sum of two finite numbers, rounded once"
    proving.conclude(text, claim)
