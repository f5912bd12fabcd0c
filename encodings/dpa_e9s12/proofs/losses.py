"""Exactness and the error bound of a step of dpa_e9s12 whose products may lose bits: of bf16, or of several of fp32.

Claims in one fixed point prove what is lost where products are rounded down.  Let E be the largest exponent, F the
places kept below 2^E, and P so large that every product is an integer in units of 2^(E − F − P).  The i-th E9S12
product of a pair is x_i there, and x_i − e_i what is kept of it, a multiple of 2^P.

1. *loss*:   0 ≤ e_i ≤ 2^P − q_i, since x_i is a multiple of q_i: the last place of the least such product, E being
             the largest that there is;
2. *top*:    e_i = 0 of a product that has the exponent E; and of all four of two fp32 factors, if one of them has it;
3. *whole*:  e_i = 0 where x_i has no bit below 2^P;
4. *sum*:    so S, as it is kept, is Σ x_i − e with 0 ≤ e ≤ (N − 1) · Σ (2^P − q_i), for N pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact_of as exact_sum
from mmaformal.cases.numerical import shown_exact
from mmaformal.cases.one_step import as_one_step, one_step
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings import executable
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import executable as executable_dpa
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs.exact import HALF, OneProduct, Summation
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.smt.blocks import negate_if
from mmaformal.facts.exact_steps import prove_off
from mmaformal.facts.exact_terms import prove_links
from mmaformal.facts.exactness import (
    Exact,
    claims_of,
    no_bit_below,
    prove_own_numbers,
    settle_bound,
)
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import Format, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import FIXED_POINT, wide
from mmaformal.shown_stages import code_text
from mmaformal.solver.answers import Answer
from mmaformal.solver.answers import Number as Figure
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError


@dataclass(frozen=True)
class LossPlaces:
    """Exponents and places of the products of numbers of a format, of a step that keeps F places."""

    fmt: Format
    F: int
    pairs: int

    @property
    def halves(self) -> tuple[int, ...]:
        """The distance of each product's exponent above that of the lowest, in a pair."""
        return (2 * HALF, HALF, HALF, 0) if self.fmt == fp32 else (0,)

    @property
    def low(self) -> int:
        """The least exponent of a product, with the bias of E9S12 products."""
        return 2 * (self.fmt.min_exponent + smt_dpa.BIAS - (HALF if self.fmt == fp32 else 0))

    @property
    def high(self) -> int:
        """The largest one."""
        return 2 * (self.fmt.max_exponent + smt_dpa.BIAS)

    @property
    def below(self) -> int:
        """P: places below the last one kept."""
        return max(0, self.high - self.low - (self.F - smt_dpa.PLACES))

    @property
    def zeros(self) -> int:
        """Bits of every product that are 0, from the last one on."""
        return 2 * max(0, smt_dpa.FRACTION - self.fmt.fraction_bits)

    @property
    def losses(self) -> tuple[int, ...]:
        """2^P − q_i."""
        return tuple((1 << self.below) - (1 << max(0, i + self.zeros + self._rest)) for i in self.halves)

    @property
    def _rest(self) -> int:
        return self.below - (self.high - self.low - (self.F - smt_dpa.PLACES))

    @property
    def of_pair(self) -> int:
        return sum(self.losses)

    @property
    def n(self) -> Fraction:
        """The most that S loses, in units of 2^(E − F)."""
        return Fraction((self.pairs - 1) * self.of_pair, 1 << self.below)

    @property
    def bits(self) -> int:
        """Wide enough for all sums."""
        return self.F + 4 + self.below + 2 * len(self.halves) * self.pairs.bit_length() + 2


@dataclass(frozen=True)
class Losses:
    """Claims about what each product of a step, and their sum, loses.  Each method raises NotProvedError."""

    x: Summation

    @property
    def proving(self) -> Composing:
        return self.x.proving

    @property
    def places(self) -> LossPlaces:
        return LossPlaces(self.x.spec.a_format, self.x.F, self.x.parameters.step_products)

    # ---- the numbers

    def exact(self, k: int) -> z3.BitVecRef:
        """The k-th product in units of 2^(E − F − P)."""
        product, P = self.x.step.products[k], self.places
        m = negate_if(product.sign, fit(product.significand, P.bits))
        place = z3.BitVecVal(P.below + P.F - smt_dpa.PLACES, P.bits)
        return m << (place - fit(self.x.step.e_max - product.exponent, P.bits))

    def kept(self, k: int) -> z3.BitVecRef:
        return wide(self.x.step.placed[k], self.places.bits) << self.places.below

    def error(self, k: int) -> z3.BitVecRef:
        return self.exact(k) - self.kept(k)

    def sums(self) -> list[z3.BitVecRef]:
        """The exact sums of the first products, of one on."""
        sums = [self.exact(0)]
        for k in range(1, len(self.x.step.products)):
            sums.append(sums[-1] + self.exact(k))
        return sums

    def kept_sums(self) -> list[z3.BitVecRef]:
        return [wide(partial, self.places.bits) << self.places.below for partial in self.x.step.partials]

    @property
    def condition(self) -> z3.BoolRef:
        """Return the claim that no product has a bit below the last place kept."""
        count = len(self.x.step.products)
        return z3.And([no_bit_below(self.exact(k), self.places.below) for k in range(count)])

    # ---- claims

    def prove(self) -> None:
        """How much the sum of products loses; that it loses nothing where `condition` holds; and that d is the sum of
        what is left and c, rounded once."""
        x = self.x
        at_most, top, ranges = self.prove_ranges()
        errors = [
            self._prove_error(k, [of, below, top])
            for k, (of, below) in enumerate(zip(ranges, at_most, strict=True))
        ]
        x.prove_rounded()
        differences = self._prove_differences()
        self._prove_sum(at_most, errors, differences)
        self._prove_whole(len(errors), differences)

    def _prove_range(self, k: int) -> z3.BoolRef:
        """The exponent and the last bits of the k-th product, of numbers."""
        product, P = self.x.step.products[k], self.places
        low = P.low + P.halves[k % len(P.halves)]
        claim = z3.And(
            z3.ULE(product.exponent, P.high),
            z3.Or(product.significand == 0, z3.UGE(product.exponent, low)),
            no_bit_below(product.significand, P.zeros),
        )
        text = "a product of numbers is no larger than the largest, and a multiple of the least"
        return self.proving.claim("range", text, z3.Or(self._special(k), claim))

    def _special(self, k: int) -> z3.BoolRef:
        k //= len(self.places.halves)
        sides = self.x.step.a, self.x.step.b
        return z3.Or([flag for side in sides for flag in (side[k].infinite, side[k].nan)])

    def prove_ranges(self) -> tuple[list[z3.BoolRef], z3.BoolRef, list[z3.BoolRef]]:
        """(that each exponent is at most the largest, that this is at most that of the largest numbers, and of each
        product, of numbers, its exponent and its last bits)."""
        at_most = self.x.prove_largest()
        ranges = [self._prove_range(k) for k in range(len(self.x.step.products))]
        numbers = [z3.Not(self._special(k)) for k in range(len(ranges))]
        text = "the largest exponent is no larger than any of numbers"
        claim = z3.ULE(self.x.step.e_max, self.places.high)
        top = self.proving.claim("largest of all", text, claim, [self.x.some, *ranges, *numbers])
        return at_most, top, [of.arg(1) for of in ranges]

    def _prove_error(self, k: int, known: Sequence[z3.BoolRef]) -> z3.BoolRef:
        x, P = self.x, self.places
        product, error = x.step.products[k], self.error(k)
        most = P.losses[k % len(P.losses)]
        claim = z3.And(error >= 0, error <= most)
        text = "a product loses less than one unit, by no less than its last place"
        lost = self.proving.claim("loss", text, claim, known)
        claim = z3.Implies(no_bit_below(self.exact(k), P.below), error == 0)
        text = "and nothing, if it has no bit below the unit"
        self.proving.claim("no loss", text, claim, known)
        claim = z3.Implies(z3.ULE(x.step.e_max - product.exponent, self._near), error == 0)
        text = "nor if its exponent is near the largest"
        self.proving.claim("near the largest", text, claim, known)
        return lost

    @property
    def _near(self) -> int:
        return self.places.halves[0]

    def _prove_differences(self) -> list[z3.BoolRef]:
        """Prove that what a sum loses is what its summands lose, partial sum by partial sum."""
        exact, kept, claims = self.sums(), self.kept_sums(), []
        for k, step in enumerate(self.x.prove_sum().steps, 1):
            claim = kept[k] == kept[k - 1] + self.kept(k)
            text = "what is kept of a sum is the sum of what is kept"
            whole = self.proving.claim("kept sum", text, claim, [step])
            claim = exact[k] - kept[k] == (exact[k - 1] - kept[k - 1]) + self.error(k)
            text = "so a sum loses what its summands lose"
            claims.append(self.proving.claim("lost in a sum", text, claim, [whole]))
        return claims

    def _prove_sum(
        self, at_most: Sequence[z3.BoolRef], errors: Sequence[z3.BoolRef], differences: Sequence[z3.BoolRef]
    ) -> None:
        """Prove that all but one pair lose what they can, at most."""
        P, each, count = self.places, len(self.places.halves), self.places.pairs
        lost = [x - y for x, y in zip(self.sums(), self.kept_sums(), strict=True)]
        nothing = [self._prove_pair(pair, at_most) for pair in range(count)]
        flags = [claim.arg(0) for claim in nothing]
        bound: z3.BoolRef | None = None
        for k, difference in enumerate(lost):
            pair, i = divmod(k, each)
            so_far = P.of_pair * pair + sum(P.losses[: i + 1])
            before = P.of_pair * max(0, pair - 1) + (sum(P.losses[: i + 1]) if pair else 0)
            spared = z3.Or(flags[:pair]) if pair else z3.BoolVal(False)
            claim = z3.And(
                difference >= 0,
                difference <= so_far,
                z3.Implies(spared, difference <= before),
                z3.Implies(flags[pair], difference <= P.of_pair * pair),
            )
            given = [errors[k], nothing[pair], *([bound, differences[k - 1]] if k else [])]
            text = "a sum loses no more than its summands, less a pair's if that loses nothing"
            bound = self.proving.claim("loss of a sum", text, claim, given)
        assert bound is not None
        claim = z3.Or(flags)
        text = "some pair has the largest exponent"
        of_some = self.proving.claim("one pair", text, claim, [self.x.some])
        goal = z3.And(lost[-1] >= 0, lost[-1] <= (count - 1) * P.of_pair)
        text = (
            "so the sum of products, as it is kept, is below the exact one by what all pairs but one can lose"
        )
        self.proving.claim("loss of all", text, goal, [bound, of_some])

    def _prove_pair(self, pair: int, at_most: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Prove that a pair one of whose products has the largest exponent loses nothing."""
        each, x = len(self.places.halves), self.x
        places = range(each * pair, each * (pair + 1))
        top = z3.Or([x.step.products[k].exponent == x.step.e_max for k in places])
        whole = z3.And([self.error(k) == 0 for k in places])
        near = [self._is_near(pair, k, top, at_most) for k in places]
        text = "a pair that has the largest exponent loses nothing"
        exact = [self._near_is_exact(k) for k in places]
        return self.proving.claim("pair", text, z3.Implies(top, whole), [*near, *exact])

    def _is_near(self, pair: int, k: int, top: z3.BoolRef, at_most: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Return the claim that the products of a pair are near each other, or zero."""
        x, each = self.x, len(self.places.halves)
        product, e_max = x.step.products[k], x.step.e_max
        near = z3.Or(product.significand == 0, z3.ULE(e_max - product.exponent, self._near))
        text = "products of one pair have exponents near each other, or are zero"
        given = list(at_most[each * pair : each * (pair + 1)])
        if each > 1:
            one = OneProduct(x, pair)
            given += [*one.prove_active(), z3.UGE(one.top, 2 * HALF + 2), z3.ULE(one.top, 2 * (254 + HALF))]
        return self.proving.claim("near", text, z3.Implies(top, near), given)

    def _near_is_exact(self, k: int) -> z3.BoolRef:
        product, e_max = self.x.step.products[k], self.x.step.e_max
        near = z3.Or(product.significand == 0, z3.ULE(e_max - product.exponent, self._near))
        claim = z3.Implies(near, self.error(k) == 0)
        zero = z3.Implies(product.significand == 0, self.error(k) == 0)
        zero = self.proving.claim("loss of zero", "zero loses nothing", zero)
        known = z3.Implies(z3.ULE(e_max - product.exponent, self._near), self.error(k) == 0)
        text = "so a product near the largest, or zero, loses nothing"
        return self.proving.claim("near or zero", text, claim, [zero, known])

    def _prove_whole(self, count: int, differences: Sequence[z3.BoolRef]) -> None:
        """Prove that the sum is the exact one where no product has a bit below the unit."""
        P = self.places
        lost = [x - y for x, y in zip(self.sums(), self.kept_sums(), strict=True)]
        whole = [no_bit_below(self.exact(k), P.below) for k in range(count)]
        same: z3.BoolRef | None = None
        for k, difference in enumerate(lost):
            claim = z3.Implies(z3.And(whole[: k + 1]), difference == 0)
            known = z3.Implies(whole[k], self.error(k) == 0)
            given = [known, *([same, differences[k - 1]] if same is not None else [])]
            text = "a sum of products without a bit below the unit loses nothing"
            same = self.proving.claim("whole", text, claim, given)


def prove_exact(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that a step of fp16 products is the exact sum, rounded once; returns that every input is a number.

    Raises NotProvedError; UnsupportedError for other formats.
    """
    if spec.a_format != fp16:
        raise UnsupportedError(spec.parameters.algorithm, "when no product loses a bit")
    x = Summation.of(proving, spec)
    x.prove_terms()
    at_most, top, ranges = Losses(x).prove_ranges()
    for k, (known, below) in enumerate(zip(ranges, at_most, strict=True)):
        x.prove_placed(k, [known, below, top])
    x.prove_rounded()
    proving.rests_on(FIXED_POINT)
    return x.numbers


def prove_losses(proving: Composing, spec: DotAdd) -> tuple[Losses, z3.BoolRef]:
    """(what was claimed, that every input is a number).  Raises NotProvedError."""
    x = Summation.of(proving, spec)
    x.prove_terms()
    losses = Losses(x)
    losses.prove()
    if spec.a_format == fp32:
        for k in range(len(x.step.a)):
            OneProduct(x, k).prove_whole()
    proving.rests_on(FIXED_POINT)
    return losses, x.numbers


def places_kept(spec: DotAdd) -> LossPlaces:
    p = spec.parameters_as(DpaE9s12)
    return LossPlaces(spec.a_format, smt_dpa.kept(p.accumulator_bits, p.summands(spec)), p.N)


def exactness(proving: Composing, spec: DotAdd) -> Exact:
    """Where no product has a bit below 2^(E − F), d is the exact sum, rounded once.  Raises NotProvedError."""
    (losses, numbers), claims = _claims(proving, one_step(spec))
    off = prove_off(proving, 4 << spec.d_format.exponent_bits)
    rho = spec.parameters.last_rounding
    own = prove_own_numbers(proving, rho)
    text = (
        f"where no E9S12 product has a bit below 2^(E − {losses.places.F}), E the largest exponent of one, in each step"
        f" d = {rho}(c + Σ a·b): no product is rounded, and c and their sum are each exact, or an odd integer less than"
        f" one unit off, and then d is {rho} of all that is less than one unit from the sum of those;"
        f" {rho} of a number of {rho}'s is that number"
    )
    return Exact(numbers, losses.condition, z3.And(claims, off, own), (), text)


def _claims(proving: Composing, spec: DotAdd) -> tuple[tuple[Losses, z3.BoolRef], z3.BoolRef]:
    found: list[tuple[Losses, z3.BoolRef]] = []

    def prove() -> z3.BoolRef:
        found.append(prove_losses(proving, spec))
        return found[0][1]

    _, claims = claims_of(proving, prove)
    return found[0], claims


# ---- how much is lost -----------------------------------------------------------------------------------------------


def error_bound(instruction: Instruction, proving: Composing) -> Answer:
    """The least n, proved and reached."""
    spec = instruction.spec
    places = places_kept(spec)
    n = Figure(
        "n", places.n, f"units of 2^(E − {places.F}) that S is below the exact sum of products, at most"
    )
    question = (
        f"{instruction.label}: in each step d = {spec.parameters.last_rounding}(S + c) with"
        f" 0 ≤ Σ a·b − S ≤ n · 2^(E − {places.F}), E the largest exponent of an E9S12 product, {n.text}"
    )

    def prove() -> None:
        _, numbers = prove_losses(proving, one_step(spec))
        prove_links(proving, spec)
        proving.conclude_all(numbers)

    def reached() -> Iterator[tuple[str, str]]:
        witness = reach(instruction)
        small = code_text(witness.codes.b[-1], spec.b_format)
        how = f"by 2^127·2^127 and all others −x·x, x = {small}, with c = 0"
        yield f"reached, {how}: {witness.notes[0]}", ""

    return settle_bound(question, proving, (n,), prove, reached())


def reach(instruction: Instruction) -> CaseWitness:
    """An input of one step that loses n units, in both encodings: one product of the largest exponent, the others
    negative, as small as can be with no half zero.

    Raises WitnessError if it loses another number.
    """
    spec = one_step(instruction.spec)
    places, fmt = places_kept(spec), spec.a_format
    large = fmt.code("0x1p127")
    small = (1 << smt_dpa.SIGNIFICAND_BITS) + 1 if fmt == fp32 else 1
    rest = spec.k - 1
    codes = Codes((large, *[small | fmt.sign_mask] * rest), (large, *[small] * rest), 0)
    value = exact_sum(spec, codes)
    S, unit = _sum_of(spec, places, codes)
    if value is None or value - S != places.n * unit:
        raise WitnessError(f"{instruction.label}: {codes} was to lose {places.n} units, and does not")
    return shown_exact(as_one_step(instruction), codes, (f"S − Σ a·b is n units of {_power(unit)}",))


def _sum_of(spec: DotAdd, places: LossPlaces, codes: Codes) -> tuple[Fraction, Fraction]:
    """(S, its unit), of the executable encoding."""
    step = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c).steps[0]
    assert isinstance(step, executable_dpa.DpaE9s12Step)
    S: limbs.Wide = step.partials[-1]
    unit = Fraction(2) ** (int(step.e_max) - 2 * executable_dpa.BIAS - places.F)
    return Fraction((int(S.high) << limbs.BITS) + int(S.low), 1 << executable_dpa.BELOW) * unit, unit


def _power(x: Fraction) -> str:
    return f"2^{x.numerator.bit_length() - x.denominator.bit_length()}"
