"""Claims about one pass of the multi-addition of E9S12 halves.

1. *terms*:    a number is the sum of its halves, each a term whose exponent is 0 where it is zero;
2. *placed*:   a term none of whose bits lies below 2^(E − F) is placed exactly; no partial sum wraps;
3. *rounding*: d is ρ of the sum, by the definition of rounding (`proof/definitions`).

Where the exponents of all terms that are not zero are within F less a significand's fraction bits of each other, that
is the exact sum (`prove_near`).  Two fp32 terms need no condition (`prove_two`): of such that are farther apart the
smaller one is less than an eighth of the larger one's last place, and then d is the larger one, as it should be.

Each function returns under which condition on the terms its claims hold, and raises NotProvedError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.codes import is_infinite, is_nan, sign_bit
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs.exact import are_near, is_placed, prove_halves, prove_leading
from mmaformal.encodings.ma_e9s12 import smt as smt_ma
from mmaformal.encodings.smt.blocks import Operand, Term
from mmaformal.facts.exact_terms import prove_decoded, prove_special_codes, prove_special_values
from mmaformal.formats import fp16, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit, is_rounded, rounds_around
from mmaformal.proof.fixed_sums import FIXED_POINT, accumulate_signed, limited, wide
from mmaformal.proof.fused import prove_largest
from mmaformal.proof.sticky_sums import magnitude_of, prove_rounded_sum
from mmaformal.studies.e9s12.operators import MultiAddition
from mmaformal.studies.e9s12.same_sums import constants_of_terms

#: Fields of two terms that are farther apart are those of a number and of less than an eighth of its last place.
FAR = fp32.fraction_bits + 4
#: Bits of differences of exponents.
EXPONENT = 14
#: An fp32 number is `significand · 2^(field - 150)`.
_PLACE = fp32.bias + fp32.fraction_bits


def spread_of_sum(operator: MultiAddition) -> int:
    """By how much exponents may differ with no bit lost."""
    return operator.F - operator.fmt.fraction_bits


@dataclass(frozen=True)
class Adding:
    """A multi-addition of one pass, and claims about it."""

    proving: Composing
    operator: MultiAddition
    codes: Sequence[z3.BitVecRef]
    step: smt_ma.MultiAdd

    @classmethod
    def of(cls, proving: Composing, operator: MultiAddition) -> Adding:
        codes = constants_of_terms(operator)
        if operator.N != operator.D:
            raise ValueError(f"{operator}: claims are about one pass")
        step = smt_ma.multi_add(operator.fmt, operator.N, operator.accumulator_bits, operator.rho, codes)
        return cls(proving, operator, codes, step)

    @property
    def F(self) -> int:
        return self.operator.F

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.step.passes[0].products

    @property
    def placed(self) -> tuple[z3.BitVecRef, ...]:
        return self.step.passes[0].placed

    @property
    def e_max(self) -> z3.BitVecRef:
        return self.step.passes[0].e_max

    @property
    def S(self) -> z3.BitVecRef:
        return self.step.passes[0].partials[-1]

    @cached_property
    def sum(self) -> z3.BoolRef:
        """Return the claim, proved, that S is the sum of all placed terms, and not the least number: nothing wraps."""
        text, most = "a placed term is less than two of the largest exponent", (1 << (self.F + 1)) - 1
        small = [self.proving.claim("size", text, limited(placed, most)) for placed in self.placed]
        bounds, bits = [most] * len(small), self.operator.accumulator_bits + 6
        added = accumulate_signed(self.proving, self.S, self.placed, bounds, small, bits)
        return added.prove_total(self.proving)

    @cached_property
    def numbers(self) -> z3.BoolRef:
        """Return the claim that every term is a number."""
        return z3.And([z3.Not(flag) for x in self.step.x for flag in (x.infinite, x.nan)])

    # ---- what holds of all terms

    def prove_all(self) -> None:
        """Special values, operands, halves, that nothing wraps, and the rounding."""
        fmt = self.operator.fmt
        self._prove_specials()
        for code, x, halves in zip(self.codes, self.step.x, self.step.halves, strict=True):
            prove_decoded(self.proving, code, x, fmt)
            prove_halves(self.proving, x, halves, fmt)
        for half, term in zip((half for each in self.step.halves for half in each), self.terms, strict=True):
            exponent = z3.If(half.zero, z3.BitVecVal(0, term.exponent.size()), half.exponent)
            same = z3.And(
                term.sign == half.sign, term.significand == half.significand, term.exponent == exponent
            )
            text = "a term is an E9S12 number, of exponent 0 where that is zero"
            self.proving.claim("term", text, same)
        self.proving.rests_on(FIXED_POINT)
        prove_rounded_sum(
            self.proving,
            (self.S, self.e_max, self.F),
            smt_ma.EXPONENTS,
            self.operator.rho,
            (self.step.special, self.step.result),
            [self.sum],
        )

    def _prove_specials(self) -> None:
        fmt = self.operator.fmt
        some_nan = z3.Or([is_nan(code, fmt) for code in self.codes])
        infinite = [(is_infinite(code, fmt), sign_bit(code, fmt)) for code in self.codes]
        text = "an infinite term gives itself or a NaN, a NaN gives a NaN, and without one nothing is special"
        prove_special_values(self.proving, self.step.special, some_nan, infinite, text)
        prove_special_codes(self.proving, self.step, self.operator.rho.format)

    # ---- where they are placed

    def prove_own(self) -> list[z3.BoolRef]:
        """Prove of each term that it is zero with the exponent 0, or has the exponent of its number."""
        claims = []
        for k, term in enumerate(self.terms):
            x, place = self.of_number(k)
            zero = z3.And(term.exponent == 0, term.significand == 0)
            own = z3.And(term.exponent == place, term.significand != 0, z3.Not(x.significand == 0))
            known = prove_leading(self.proving, x, self.operator.fmt)
            text = "a term is zero and has the exponent 0, or that of its number"
            claims.append(self.proving.claim("own", text, z3.Or(zero, own), [known]))
        return claims

    def of_number(self, k: int) -> tuple[Operand, z3.BitVecRef]:
        """The number of the k-th term, and the exponent that is the term's, if it is not zero."""
        x, half = self.step.x[k // self.operator.halves], k % self.operator.halves
        bits = self.terms[0].exponent.size()
        fmt = self.operator.fmt
        lift = (12 if half == 0 else 0) if self.operator.halves == 2 else smt_dpa.BIAS - fmt.bias
        return x, fit(x.field, bits) + lift

    def prove_exact(self, near: Sequence[z3.BoolRef], most: int) -> list[z3.BoolRef]:
        """Prove that terms are placed without a loss where exponents differ by at most `most`, as is `near`."""
        exponents = [term.exponent for term in self.terms]
        none = z3.BitVecVal(0, self.e_max.size())
        at_most, some = prove_largest(self.proving, "exponents", self.e_max, [none, *exponents])
        own = self.prove_own()
        given, placed = z3.And(*near, self.numbers), []
        known = [self.prove_range(x) for x in self.step.x]
        span = most + (12 if self.operator.halves == 2 else 0)
        for k, term in enumerate(self.terms):
            close = z3.Or(term.significand == 0, z3.ULE(self.e_max - term.exponent, span))
            text = "no term is farther below the largest than its last place may be"
            claim = z3.Implies(given, close)
            bound = self.proving.claim("near", text, claim, [some, *at_most, *own, *known])
            low = self._prove_low(term)
            exact = is_placed(term, self.placed[k], self.e_max, self.F, smt_dpa.FRACTION)
            text = "so it is placed without a loss"
            claim = z3.Implies(z3.And(close, low), exact)
            one = self.proving.claim("term placed", text, claim, [at_most[k + 1]])
            claim = z3.Implies(given, exact)
            placed.append(self.proving.claim("term exact", text, claim, [bound, low, one]))
        return placed

    def prove_range(self, x: Operand) -> z3.BoolRef:
        """Prove that a number's exponent field is in its range."""
        fmt = self.operator.fmt
        claim = z3.Or(x.infinite, x.nan, z3.ULE(x.field, fmt.max_exponent + fmt.bias))
        text = "an exponent field is 1 or more, and of a number at most the largest"
        return self.proving.claim("field in range", text, z3.And(z3.UGE(x.field, 1), claim))

    def _prove_low(self, term: Term) -> z3.BoolRef:
        """Prove that a term has zeros below the fraction bits of its format."""
        below = smt_dpa.FRACTION - self.operator.fmt.fraction_bits
        if below <= 0:
            return z3.BoolVal(True)
        claim = z3.Extract(below - 1, 0, term.significand) == 0
        return self.proving.claim("multiple", "a term has zeros below", claim)


def prove_near(proving: Composing, operator: MultiAddition) -> z3.BoolRef:
    """Prove that terms are added exactly and rounded once where the exponents of those that are not zero differ by at
    most `spread_of_sum`; returns that, and that all are numbers."""
    x = Adding.of(proving, operator)
    x.prove_all()
    near = are_near(x.step.x, spread_of_sum(operator))
    x.prove_exact(near, spread_of_sum(operator))
    return z3.And(x.numbers, *near)


def prove_sum_rounded(proving: Composing, operator: MultiAddition) -> z3.BoolRef:
    """Prove that terms of fp16, whose exponents are never far apart, are added exactly and rounded once, if numbers.

    Raises ValueError for other formats.
    """
    fmt, x = operator.fmt, Adding.of(proving, operator)
    if fmt != fp16:
        raise ValueError(f"{operator}: exponents of {fmt} may be farther apart")
    x.prove_all()
    x.prove_exact([], fmt.max_exponent - fmt.min_exponent)
    return x.numbers


def prove_two(proving: Composing, operator: MultiAddition) -> z3.BoolRef:
    """Prove that two fp32 terms are added exactly and rounded once; returns that both are numbers.  Raises ValueError
    for another operator."""
    if operator.D != 2 or operator.fmt != fp32:
        raise ValueError(f"{operator} does not add two terms of fp32")
    x, most = Adding.of(proving, operator), min(spread_of_sum(operator), FAR - 1)
    x.prove_all()
    near = are_near(x.step.x, most)
    x.prove_exact(near, most)
    cases = [z3.And(near)]
    for large in range(2):
        pair = _Apart(x, large)
        cases.append(pair.prove_far())
        cases += [pair.prove_between(n) for n in range(most + 1, FAR)]
    text = "these are all cases that there are"
    proving.claim("cases", text, z3.Implies(x.numbers, z3.Or(cases)))
    return x.numbers


@dataclass(frozen=True)
class _Apart:
    """Two fp32 terms u and v, u of the larger exponent field."""

    x: Adding
    large: int  #: which is u

    @property
    def u(self) -> Operand:
        return self.x.step.x[self.large]

    @property
    def v(self) -> Operand:
        return self.x.step.x[1 - self.large]

    def parts(self, large: bool) -> list[tuple[Term, z3.BitVecRef]]:
        """The terms of u, or of v, and where they are placed."""
        k = 2 * (self.large if large else 1 - self.large)
        return list(zip(self.x.terms[k : k + 2], self.x.placed[k : k + 2], strict=True))

    @property
    def leading(self) -> list[z3.BoolRef]:
        """The claims that u and v have their leading bits, or the exponent field 1; and a field in its range."""
        leading = [prove_leading(self.x.proving, each, fp32) for each in (self.u, self.v)]
        return [*leading, *(self.x.prove_range(each) for each in (self.u, self.v))]

    @property
    def top(self) -> z3.BitVecRef:
        """The largest exponent, if u is normal."""
        return fit(self.u.field, self.x.e_max.size()) + 12

    def prove_top(self, given: z3.BoolRef) -> z3.BoolRef:
        """Prove that the largest exponent is that of u's upper half, where `given` puts v below it."""
        x, u = self.x, self.u
        text = "the largest exponent is that of the larger term's upper half"
        claim = z3.Implies(given, z3.And(x.e_max == self.top, z3.UGE(u.significand, 1 << fp32.fraction_bits)))
        return x.proving.claim("top", text, claim, self.leading)

    def apart(self, least: int, most: int | None = None) -> z3.BoolRef:
        """Whether u and v are numbers, v not zero, and v's field is lower by `least` at least, and `most` at most."""
        u, v = fit(self.u.field, 12), fit(self.v.field, 12)
        bounds = [z3.UGE(u, v + least), *([] if most is None else [z3.ULE(u, v + most)])]
        return z3.And(self.x.numbers, z3.Not(self.v.significand == 0), *bounds)

    def signed(self, shift: int, bits: int) -> z3.BitVecRef:
        """u · 2^shift, with its sign."""
        whole = fit(self.u.significand, bits) << shift
        return z3.If(self.u.sign == 1, -whole, whole)

    def prove_far(self) -> z3.BoolRef:
        """Prove that d is u where v's field is lower by `FAR` or more; and that ρ of all that is less than an eighth
        of u's last place from u is u, as the exact sum is.  Returns that it is lower by so much."""
        x, far, ulp = self.x, self.apart(FAR), self.x.F - fp32.fraction_bits
        top, bits = self.prove_top(far), self.x.operator.accumulator_bits + 6
        signed = self.signed(ulp, bits)
        upper, lower = (wide(placed, bits) for _, placed in self.parts(True))
        text = "the larger term is placed without a loss"
        known = [
            x.proving.claim("far u", text, z3.Implies(far, upper + lower == signed), [top, *self.leading])
        ]
        for (_, placed), size in zip(self.parts(False), (ulp - 3, ulp - 15), strict=True):
            text = "a half of the smaller term is less than an eighth of the larger one's last place"
            claim = z3.Implies(far, limited(wide(placed, bits), 1 << size))
            known.append(x.proving.claim("far v", text, claim, [top, *self.leading]))
        close = z3.Implies(far, limited(wide(x.S, bits) - signed, 3 << (ulp - 4)))
        text = "so the sum is less than three sixteenths of it away"
        known = [x.proving.claim("close", text, close, [*known, x.sum]), top, *self.leading]
        text = "which is rounded to the larger term"
        code, none = x.step.result, z3.Not(z3.Or(*x.step.special))
        of_u = (fit(self.u.field, 31) << fp32.fraction_bits) + fit(self.u.significand, 31)
        same = z3.And(
            z3.Extract(30, 0, code) == of_u - (1 << fp32.fraction_bits),
            z3.Extract(31, 31, code) == self.u.sign,
        )
        given = z3.And(far, none)
        known = [x.proving.claim("larger term", text, z3.Implies(given, same), known), top, *self.leading]
        m, t = fit(self.u.significand, 27) << 3, fit(self.u.field, EXPONENT) - (_PLACE + 3)
        around = z3.And(m != 0, rounds_around(m, t, code, x.operator.rho, self.u.sign == 1))
        text = "and so is all that is less than an eighth of its last place off"
        x.proving.claim("around the larger term", text, z3.Implies(given, around), known)
        small = z3.Not(
            at_least(self.v.significand, fit(self.v.field, EXPONENT), z3.BitVecVal(1, 1), t + _PLACE)
        )
        text = "as the exact sum is"
        x.proving.claim("smaller term", text, z3.Implies(far, small))
        return far

    def prove_between(self, n: int) -> z3.BoolRef:
        """Prove that where v's field is n lower, d is u + v, rounded: what is cut of v decides nothing.

        Returns that it is n lower.
        """
        x, given, cut_bits = self.x, self.apart(n, n), n - spread_of_sum(self.x.operator)
        top, bits = self.prove_top(given), x.operator.accumulator_bits + 6
        v = fit(self.v.significand, bits)
        exact = self.signed(n, bits) + z3.If(self.v.sign == 1, -v, v)
        text = "the smaller term loses its last places: the sum is the exact one, rounded down"
        places = [placed for large in (True, False) for _, placed in self.parts(large)]
        floors = [
            z3.Implies(given, sum(wide(p, bits) for p in places[:2]) == self.signed(n - cut_bits, bits)),
            z3.Implies(
                given, sum(wide(p, bits) for p in places[2:]) == z3.If(self.v.sign == 1, -v, v) >> cut_bits
            ),
        ]
        known = [x.proving.claim("between, placed", text, claim, [top, *self.leading]) for claim in floors]
        down = z3.Implies(given, wide(x.S, bits) == exact >> cut_bits)
        known = [x.proving.claim("between, added", text, down, [*known, x.sum]), top, *self.leading]
        code, none = x.step.result, z3.Not(z3.Or(*x.step.special))
        negative, m = magnitude_of(exact)
        t = fit(self.v.field, EXPONENT) - _PLACE
        sign = z3.Extract(31, 31, code) == 1
        rounded = z3.And(is_rounded(m, t, code, x.operator.rho, negative), sign == negative)
        text = "and is rounded as the exact one is"
        claim = z3.Implies(z3.And(given, none), rounded)
        x.proving.claim("between", text, claim, known)
        return given
