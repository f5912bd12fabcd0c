"""Sums in a fixed point: where their terms stand, and proofs of their errors.

Numbers are integers of one fixed point, in two's complement wide enough that nothing wraps: the exact value of a term
is one too, so an error is a difference, and a bound a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import z3

from mmaformal.encodings.smt.blocks import negate_if, resize
from mmaformal.proof.composition import Composing
from mmaformal.proof.cuts import compared, of_sums
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import Rule, demand

FIXED_POINT = Rule(
    "fixed point",
    "numbers m · 2^t that are equal, in order, or less than a unit apart are so as integers of any fixed point that has"
    " them all; so what holds of the sums of any integers holds of their sums",
)

# ---- numbers of one fixed point ------------------------------------------------------------------------------------


def wide(x: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    """x, two's complement, sign-extended to `bits`."""
    return z3.SignExt(bits - x.size(), x) if bits > x.size() else x


def is_between(low: int, x: z3.BitVecRef, high: int) -> z3.BoolRef:
    bits = max(x.size(), *(abs(bound).bit_length() + 1 for bound in (low, high)))
    return z3.And(wide(x, bits) >= z3.BitVecVal(low, bits), wide(x, bits) <= z3.BitVecVal(high, bits))


def limited(x: z3.BitVecRef, bound: int) -> z3.BoolRef:
    return is_between(-bound, x, bound)


def if_else(condition: z3.BoolRef, yes: z3.BoolRef, no: z3.BoolRef) -> z3.BoolRef:
    """`yes` if the condition holds, `no` if not; with connectives alone."""
    return z3.And(z3.Implies(condition, yes), z3.Implies(z3.Not(condition), no))


def _doubled(x: z3.BitVecRef, times: int) -> z3.BitVecRef:
    """x · 2^times."""
    return x * (1 << times)


def shifted_by(x: z3.BitVecRef, amount: z3.BitVecRef) -> z3.BitVecRef:
    """x · 2^amount."""
    for i in range(amount.size()):
        x = z3.If(z3.Extract(i, i, amount) == 1, _doubled(x, 1 << i), x)
    return x


def prove_scaled(
    proving: Composing, x: z3.BitVecRef, y: z3.BitVecRef, amount: z3.BitVecRef
) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
    """x, y and d = x − y, each scaled by 2^amount; of these too, the last is the difference."""
    d, text = x - y, "a difference scaled is the difference of both scaled"
    proving.claim("difference", "x = y + (x − y)", x == y + d)
    for i in range(amount.size()):
        known, chosen = x == y + d, z3.Extract(i, i, amount) == 1
        larger = [_doubled(v, 1 << i) for v in (x, y, d)]
        of_sum = _doubled(y + d, 1 << i) == larger[1] + larger[2]
        proving.claim(f"doubled sum {i}", "a sum doubled is the sum of both doubled", of_sum)
        of_x = larger[0] == larger[1] + larger[2]
        proving.claim(f"doubled {i}", text, of_x, [known, of_sum])
        after = [z3.If(chosen, u, v) for u, v in zip(larger, (x, y, d), strict=True)]
        goal = after[0] == after[1] + after[2]
        cases = [
            proving.claim(f"scaled {i}", text, z3.Implies(chosen, goal), [of_x]),
            proving.claim(f"unscaled {i}", text, z3.Implies(z3.Not(chosen), goal), [known]),
        ]
        proving.claim("scaled", text, goal, cases)
        x, y, d = after
    proving.claim("scaled difference", text, x - y == d, [x == y + d])
    return x, y, d


@dataclass(frozen=True)
class Placed:
    """A term of a sum in a fixed point of `bits` bits, `places` of them below the unit that it is aligned to."""

    name: str
    sign: z3.BitVecRef
    exact: z3.BitVecRef  #: its magnitude
    aligned: z3.BitVecRef  #: its magnitude in units, as the accumulator has it
    places: int

    @property
    def kept(self) -> z3.BitVecRef:
        """The aligned magnitude in the same fixed point."""
        return fit(self.aligned, self.exact.size()) << self.places

    @property
    def signed_exact(self) -> z3.BitVecRef:
        return negate_if(self.sign, self.exact)

    @property
    def signed_kept(self) -> z3.BitVecRef:
        return negate_if(self.sign, self.kept)

    @property
    def error(self) -> z3.BitVecRef:
        return self.signed_kept - self.signed_exact


def placed_term(
    name: str,
    sign: z3.BitVecRef,
    significand: z3.BitVecRef,
    below: z3.BitVecRef,
    aligned: z3.BitVecRef,
    places: int,
    bits: int,
    lift: int,
) -> Placed:
    """A term whose last place is 2^lift units, divided by 2^below."""
    demand((1 << below.size()) - 1 <= places + lift, "an exact value has a bit below the fixed point")
    amount = max(below.size(), (places + abs(lift)).bit_length()) + 1
    up = z3.BitVecVal(places + lift, amount) - fit(below, amount)
    return Placed(name, sign, fit(significand, bits) << fit(up, bits), aligned, places)


def prove_cut_error(
    proving: Composing, before: z3.BitVecRef, exact: z3.BitVecRef, error: z3.BitVecRef, after: z3.BitVecRef
) -> z3.BoolRef:
    """From error = before − exact, claimed: after − exact = error − lost, where lost = before − after."""
    text = "an error after a cut is that before it, less what was cut off"
    both = after - exact == (before - exact) - (before - after)
    identity = proving.claim("identity", text, both)
    claim = after - exact == error - (before - after)
    return proving.claim("error after a cut", text, claim, [identity, before - exact == error])


# ---- sums ----------------------------------------------------------------------------------------------------------


def prove_error(
    proving: Composing,
    x: Placed,
    most: int,
    when: z3.BoolRef,
    premises: Sequence[z3.BoolRef],
    why: str,
    either_way: bool = False,
    hint: Sequence[z3.ExprRef] = (),
) -> z3.BoolRef:
    """Where `when` holds, alignment cuts at most `most` off the magnitude: |error| ≤ most, whatever the sign.

    Or it adds as much at most, if magnitudes may change `either_way`; then a `hint` is what the term is made of, so
    that one lemma serves all terms.
    """
    kept, exact = x.kept, x.exact
    loss = exact - kept
    text = "a term's error is what is cut off its magnitude, with its sign or the other"
    small = z3.Implies(when, z3.And(limited(loss, most), limited(-loss, most)))
    if either_way:
        off = f"{why}, a term is off by at most {most} · 2^-{x.places} units"
        proving.claim(f"{x.name} off", off, small, premises, hint)
    else:
        cut_off = proving.claim(
            f"{x.name} loss",
            f"{why}, what is cut off a term is at most {most} · 2^-{x.places} units",
            z3.Implies(when, z3.ULE(loss, most)),
            premises,
        )
        proving.claim("size of an error", text, small, [cut_off])
    bits = exact.size()
    signed = [
        of_sums(proving, f"signed error {s}", text, z3.Implies(x.sign == s, x.error == same), [], bits)
        for s, same in ((0, -loss), (1, loss))
    ]
    claim = z3.Implies(when, limited(x.error, most))
    return proving.claim(
        "signed error", text, claim, [small, *signed], compared([small, *signed, claim], [when])
    )


def total_of(xs: Sequence[z3.BitVecRef]) -> z3.BitVecRef:
    return reduce(lambda x, y: x + y, xs)


def prove_errors_add_up(
    proving: Composing,
    terms: Sequence[Placed],
    facts: Sequence[Sequence[z3.BoolRef]],
    bound: Callable[[int, z3.BitVecRef], z3.BoolRef],
) -> z3.BoolRef:
    """Proves `bound(n, D)`, D the sum of all n errors, term by term.

    `facts` are claims of each term's error; `bound(i, D)` is about the first i terms.
    """
    running = terms[0].error
    known = proving.claim("error of the first", _ADD_UP, bound(1, running), facts[0])
    for i, x in enumerate(terms[1:], 1):
        after = running + x.error
        known = proving.claim(f"errors of {i + 1}", _ADD_UP, bound(i + 1, after), [known, *facts[i]])
        running = after
    return known


_ADD_UP = "errors of terms add up to no more than the sum of their bounds"


@dataclass(frozen=True)
class Accumulated:
    """A sum of terms, one more each time: no partial sum of it wraps."""

    total: z3.BitVecRef
    summands: Sequence[tuple[z3.BitVecRef, z3.BitVecRef]]  #: signs and magnitudes, if terms are these
    small: Sequence[z3.BoolRef]  #: that each term is at most its bound
    value: z3.BitVecRef  #: the total as an integer of a fixed point
    terms: list[z3.BitVecRef]  #: so are these
    sums: list[z3.BitVecRef]  #: and the sums of the first term, of the first two, …
    steps: list[z3.BoolRef]  #: that each of the accumulator's, but the first, is the one before and a term
    claims: list[z3.BoolRef]  #: that the accumulator has these sums, and how large both are at most
    reach: int  #: what the last is at most
    order: list[z3.BoolRef]  #: that the order of summation does not matter, where it is another

    @property
    def ranges(self) -> list[z3.BoolRef]:
        """How large each sum is at most."""
        return [claim.arg(2) for claim in self.claims]

    @property
    def known(self) -> list[z3.BoolRef]:
        """The claims that the total is the last sum, and in its range."""
        return [self.claims[-1], *self.order]

    @property
    def in_range(self) -> z3.BoolRef:
        return z3.And(self.total <= self.reach, self.total >= -self.reach)

    def prove_range(self, proving: Composing) -> z3.BoolRef:
        """`in_range`: where the total has bits for what its terms add up to at most."""
        text = "so it is at most the sum of the bounds"
        return proving.claim("range of the sum", text, self.in_range, self.known)

    def prove_total(self, proving: Composing) -> z3.BoolRef:
        """The total, as an integer, is the sum of the terms; and `in_range`."""
        claim = z3.And(self.value == self.sums[-1], *self.in_range.children())
        return proving.claim("accumulator", "so the accumulator is the sum", claim, self.known)


def accumulate(
    proving: Composing,
    total: z3.BitVecRef,
    summands: Sequence[tuple[z3.BitVecRef, z3.BitVecRef]],
    bounds: Sequence[int],
    small: Sequence[z3.BoolRef],
    bits: int | None = None,
    places: int = 0,
) -> Accumulated:
    """Prove that `total` is the sum of signed magnitudes, (sign, magnitude): no partial sum wraps.

    `small` are claims that each magnitude is at most its bound, proved before where that is less than its bits hold.
    The integers have so many bits, or enough, `places` of them below the unit of the total.  Where the accumulator does
    not add from the left, that its order does not matter is one claim more.
    """
    bits = bits or _enough(total, bounds, places)
    for claim, (_, magnitude), bound in zip(small, summands, bounds, strict=True):
        if bound == (1 << magnitude.size()) - 1:
            proving.claim("width", "a magnitude is no more than its bits hold", claim)
    parts = [negate_if(sign, resize(magnitude, total.size())) for sign, magnitude in summands]
    terms = [negate_if(sign, _placed(fit(magnitude, bits), places)) for sign, magnitude in summands]
    return replace(_add_up(proving, total, parts, terms, bounds, small, places), summands=summands)


def accumulate_signed(
    proving: Composing,
    total: z3.BitVecRef,
    parts: Sequence[z3.BitVecRef],
    bounds: Sequence[int],
    small: Sequence[z3.BoolRef],
    bits: int | None = None,
    places: int = 0,
) -> Accumulated:
    """Prove the same of parts in two's complement; that each is at most its bound was proved before."""
    bits = bits or _enough(total, bounds, places)
    terms = [_placed(wide(part, bits), places) for part in parts]
    parts = [wide(part, total.size()) for part in parts]
    return _add_up(proving, total, parts, terms, bounds, small, places)


def _enough(total: z3.BitVecRef, bounds: Sequence[int], places: int) -> int:
    """Bits of integers that hold the total and all sums of terms, in units so many places below the total's."""
    return int(max(total.size(), (2 * sum(bounds)).bit_length() + 2)) + 1 + places


def _placed(x: z3.BitVecRef, places: int) -> z3.BitVecRef:
    return x << places if places else x


def _add_up(
    proving: Composing,
    total: z3.BitVecRef,
    parts: Sequence[z3.BitVecRef],
    terms: list[z3.BitVecRef],
    bounds: Sequence[int],
    small: Sequence[z3.BoolRef],
    places: int,
) -> Accumulated:
    """Prove that `total` is the sum of parts, no partial sum of which wraps; `terms` are those as integers.

    Raises ArgumentError for integers that the total or a sum might not fit.
    """
    bits = terms[0].size()
    fits = bits >= total.size() + places and (sum(bounds) << places) < 1 << (bits - 1)
    demand(fits, "the integers of a sum do not hold it")

    def value(x: z3.BitVecRef) -> z3.BitVecRef:
        return _placed(wide(x, bits), places)

    running, sums, reach = parts[0], terms[:1], bounds[0]
    text, steps, claims = "no partial sum of the accumulator wraps", list[z3.BoolRef](), list[z3.BoolRef]()
    for k, part in enumerate(parts):
        given = [small[0]]
        if k:
            here, before, running, reach = running, reach, running + part, reach + bounds[k]
            sums.append(sums[-1] + terms[k])
            claim = z3.And(value(running) == value(here) + terms[k], limited(running, reach))
            known = [limited(here, before), small[k]]
            steps.append(proving.claim(f"next sum {k}", text, claim, known))
            given = [claims[-1], steps[-1]]
        ranges = limited(running, reach), limited(sums[k], reach << places)
        same = z3.And(value(running) == sums[k], *ranges)
        claims.append(proving.claim(f"partial sum {k}", text, same, given))
    order = []
    if not running.eq(total):
        text = "the accumulator's order of summation does not matter"
        order.append(proving.claim("sum", text, running == total))
    return Accumulated(total, (), small, value(total), terms, sums, steps, claims, reach, order)


def prove_accumulated(
    proving: Composing, terms: Sequence[Placed], total: z3.BitVecRef, bounds: Sequence[int]
) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(the accumulator, less the exact sum, is the sum of the errors; it is at most Σ bounds, as `prove_range` says).

    `bounds` are of the aligned magnitudes, each claimed before, or all ones.
    """
    places, size = terms[0].places, terms[0].exact.size()
    small = [z3.ULE(x.aligned, bound) for x, bound in zip(terms, bounds, strict=True)]
    summands = [(x.sign, x.aligned) for x in terms]
    done = accumulate(proving, total, summands, bounds, small, size, places)
    done.prove_range(proving)
    exact, errors = [x.signed_exact for x in terms], [x.error for x in terms]
    text = "the difference of two sums is the sum of the differences"
    difference = done.sums[-1] - total_of(exact) == total_of(errors)
    proving.claim("difference", text, difference)
    error = (wide(total, size) << places) - total_of(exact)
    link = z3.And(error == total_of(errors), limited(total, done.reach))
    text = "so the accumulator's error is the sum of the terms' errors"
    proving.claim("error of the sum", text, link, [*done.known, difference])
    return link.arg(0), link.arg(1)
