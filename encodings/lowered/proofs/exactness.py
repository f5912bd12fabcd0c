"""Exactness and the error bound of a lowered instruction: those of its fda steps on converted operands, then of the
addition of c; and why alignment loses no bit of any input where all products are in one fda step from c = +0.

Converted numbers have few significand bits: a product's significand is one of the narrow formats', so it loses at most
λ, the most that those lose.  In the first step c is 0, and all but the largest product lose: n = (L − 1)·λ.  In the
others c is the result before, a multiple of the last place that any product has, 2^low, for

1. *products*: each is such a multiple, and so is what is left of it where it is aligned;
2. *sum*:      so is the accumulator, if c is;
3. *result*:   so is ρ of that, since ρ's numbers are closer to each other only where they are smaller.

So c loses at most λ_c = 1 − 2^-k, k its places from there to the largest unit, and no more than c has:
n = max(L·λ, (L − 1)·λ + λ_c).  Both are reached by inputs.  The last addition rounds the exact sum.

Cut to odd, a term is off by less than one unit either way, and most where it is the least number there is: it becomes
one unit, and was 2^-k of it.  So λ = 1 − 2^-k there, k the places from the least number to the largest unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import z3

from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs, with_products, zeros
from mmaformal.cases.low_bits import pairs_losing, product_codes
from mmaformal.cases.numerical import shown_exact
from mmaformal.cases.one_step import as_one_step, one_step
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings import executable
from mmaformal.encodings.fda import executable as executable_fda
from mmaformal.encodings.fda.proofs import exactness as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import Operand, decode, negate_if, resize
from mmaformal.facts.alignment import NOTHING, Case, KnownTerm, Ranges, most_lost, prove_fused_losses
from mmaformal.facts.exact_terms import prove_inputs, prove_links, prove_lowered
from mmaformal.facts.exactness import (
    Exact,
    claims_of,
    prove_exact_so_far,
    prove_exact_steps,
    settle_bound,
    too_many,
)
from mmaformal.facts.fused_steps import Fused, fused_step, prove_e_max, prove_highest
from mmaformal.facts.protocol import Lossless
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Answer, Number
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts


def _inner(spec: DotAdd) -> DotAdd:
    """The fused part of one instruction."""
    p = spec.parameters_as(Lowered)
    return p.inner_dot_add(spec)


def _addition_of(spec: DotAdd) -> AdditionFacts:
    """The addition that such an instruction ends with, of any two codes."""
    p, fmt = spec.parameters_as(Lowered), spec.d_format
    x, y = z3.BitVecs("x y", fmt.storage_bits)
    return AdditionFacts(x, y, ieee.add(x, y, p.addition, lowered.nan_code(p, fmt)).result, p.addition)


def _prove_rounds(proving: Composing, a: AdditionFacts) -> z3.BoolRef:
    a.prove(proving)
    return z3.Implies(a.finite, z3.And(a.rounded, a.is_kept))


def prove_lowered_exact(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    p = spec.parameters_as(Lowered)
    of_dot = fda.prove_fused(proving, _inner(spec))
    made, chain = prove_lowered(proving, spec), prove_links(proving, _inner(spec))
    fmt = spec.d_format
    a, z = _addition_of(spec), z3.BitVec("z", fmt.storage_bits)
    rounds = _prove_rounds(proving, a)
    number = a.prove_number(proving, z)
    count = _inner(spec).k // p.L + 1
    so_far = prove_exact_so_far(proving, count, 4 << fmt.exponent_bits)
    last = z3.Implies(z3.And(*a.finite.children(), a.is_sum(z)), number.arg(1))
    of_step = z3.Implies(of_dot.ordinary, of_dot.conclusion)
    converted = f"a and b are converted to {p.operands} exactly; then " if p.operands else ""
    text = (
        f"{converted}{of_dot.text}, c the result before, or +0; last d ="
        f" {p.addition}(c + the result before) if both are numbers, and if that is one of {fmt}, d is it; so where the"
        " results before are exact sums, d rounds that of all"
    )
    everything = z3.And(*made, *chain, of_step, rounds, last, so_far)
    return Exact(z3.BoolVal(True), of_dot.condition, everything, of_dot.atoms, text)


def decides_losses(spec: DotAdd) -> Lossless | None:
    """Returns what the width depends on; None where operands are converted, or one inner step's sum is the next one's
    c."""
    p = spec.parameters_as(Lowered)
    if p.operands is not None or len(p.order) != p.L:
        return None
    e_zero = spec.c_format.min_exponent if p.e_zero is None else p.e_zero
    return Lossless(spec.a_format, spec.b_format, None, p.L, e_zero)


def prove_lossless(proving: Composing, spec: DotAdd) -> str:
    """Prove that the products' exact sum is rounded, and then that of c and the result; returns that, for a person.

    Raises NotProvedError.
    """
    p, fmt = spec.parameters_as(Lowered), spec.d_format
    inner = p.inner_dot_add(one_step(spec))
    x = symbolic_inputs(inner)
    products, exact = fda.prove_step(proving, inner, Inputs(x.a, x.b, z3.BitVecVal(0, fmt.storage_bits)))
    made = prove_lowered(proving, spec)
    claim = z3.And(products, *made, _prove_rounds(proving, _addition_of(spec)))
    if spec != one_step(spec):
        claim = z3.And(claim, prove_exact_steps(proving, spec, exact.chain))
    proving.conclude("no step loses a bit of any input, and rounds its exact sum", claim, exact.atoms)
    return f"in each step d = {p.addition}(c + {p.rho}(Σ a·b)): alignment loses no bit of any input"


@dataclass(frozen=True)
class InnerSteps:
    """The inner steps of an instruction, and what is known of the numbers that enter them."""

    spec: DotAdd
    p: Lowered

    @property
    def fused(self) -> DotAdd:
        """All of them."""
        return self.p.inner_dot_add(self.spec)

    @property
    def one(self) -> DotAdd:
        return one_step(self.fused)

    @property
    def formats(self) -> tuple[Format, Format]:
        return self.spec.a_format, self.spec.b_format

    @property
    def low(self) -> int:
        """The exponent of the last place that a product can have."""
        return sum(fmt.min_exponent - fmt.fraction_bits for fmt in self.formats)

    @property
    def exponents(self) -> tuple[int, int]:
        """The least and largest exponents of products that are not 0: converted numbers are normalised, as far as their
        format goes."""
        low = 0
        for fmt in self.formats:
            to = self.p.taken_as(fmt)
            low += (
                fmt.min_exponent if to == fmt else max(to.min_exponent, fmt.min_exponent - fmt.fraction_bits)
            )
        return low, sum(fmt.max_exponent for fmt in self.formats)

    def zero_bits(self, fmt: Format) -> int:
        """How many of the last bits of a converted significand are 0."""
        return self.p.taken_as(fmt).fraction_bits - fmt.fraction_bits

    def step(self, c: z3.BitVecRef) -> tuple[Fused, Inputs]:
        """One step of converted codes and c."""
        sides = [
            tuple(
                ieee.convert(z3.BitVec(f"{name}{k}", fmt.storage_bits), fmt, self.p.taken_as(fmt))
                for k in range(self.p.L)
            )
            for name, fmt in zip("ab", self.formats, strict=True)
        ]
        inputs = Inputs(sides[0], sides[1], c)
        return fused_step(self.one, inputs), inputs

    def cases(self, first: bool) -> tuple[Ranges, tuple[Case, Case]]:
        """Return the losses of the first step, or of another one."""
        p, (low, high), c = self.p, self.exponents, self.spec.d_format
        bits, f = (
            tuple(fmt.fraction_bits + 1 for fmt in self.formats),
            sum(x.fraction_bits for x in self.formats),
        )
        e_zero = c.min_exponent if p.e_zero is None else p.e_zero
        of_c = (e_zero, e_zero) if first else (c.min_exponent, c.max_exponent)
        far, under_c = (most_lost(self.p.cut, bits, (top - p.F) - (low - f)) for top in (high, of_c[1]))
        top_of_c = top_of_product = lost_c = NOTHING
        if not first:
            top_of_c = most_lost(self.p.cut, (c.fraction_bits + 1,), c.fraction_bits - p.F)
            least = max(self.low, c.min_exponent - c.fraction_bits)
            lost_c = most_lost(self.p.cut, (c.fraction_bits + 1,), (high - p.F) - least)
        top_of_product = most_lost(self.p.cut, bits, f - p.F)
        case_c = Case("c", 0, near=NOTHING, others=p.L, far=under_c, addend=NOTHING, at_top=top_of_c)
        case_product = Case(
            "product", p.L - 1, near=far, others=0, far=far, addend=lost_c, at_top=top_of_product
        )
        return Ranges((low, high), (low, high), of_c), (case_c, case_product)


def multiple(m: z3.BitVecRef, places: z3.BitVecRef) -> z3.BoolRef:
    """Whether the lowest `places` bits of m are 0; `places` in two's complement."""
    wide = max(m.size(), places.size())
    low = fit(m, wide) & ((z3.BitVecVal(1, wide) << fit(places, wide)) - 1)
    return z3.Or(places <= 0, z3.If(places >= m.size(), m == 0, low == 0))


def of_operand(x: Operand, fmt: Format, low: int) -> z3.BoolRef:
    """Whether a number is a multiple of 2^low."""
    bits = max(fmt.exponent_bits, abs(low).bit_length(), (fmt.bias + fmt.fraction_bits).bit_length()) + 3
    return multiple(x.significand, (low + fmt.bias + fmt.fraction_bits) - fit(x.field, bits))


# ---- proof -----------------------------------------------------------------------------------------------------------


def prove_step(proving: Composing, inner: InnerSteps, first: bool) -> tuple[z3.BoolRef, list[z3.BoolRef]]:
    """The bound of the first step, or of another one, whose c is assumed to be a multiple of 2^low; and the parts of it
    that are one proposition each."""
    fmt = inner.spec.d_format
    c = z3.BitVecVal(0, fmt.storage_bits) if first else z3.BitVec("c", fmt.storage_bits)
    x, inputs = inner.step(c)
    ordinary, terms = claims_of(proving, lambda: prove_inputs(proving, inner.one, inputs, x.step))
    factors = []
    for u, v in zip(x.step.a, x.step.b, strict=True):
        ends = [
            z3.Extract(inner.zero_bits(f) - 1, 0, y.significand) == 0
            for y, f in zip((u, v), inner.formats, strict=True)
            if inner.zero_bits(f)
        ]
        for end in ends:
            proving.claim("converted", "the last bits of a converted significand are 0", end)
        factors.append(ends)
    addend = x.summands[-1].term
    if first:
        of_c = addend.significand == 0
        proving.claim("c is 0", "c is 0", of_c)
        assumed = z3.BoolVal(True)
    else:
        assumed = of_operand(x.step.c, fmt, inner.low)
        of_c = multiple(addend.significand, _places(inner, x, addend.exponent, fmt.fraction_bits))
        text = "c is a multiple of the least last place of products"
        proving.claim("c is a multiple", text, of_c, [assumed])
    ranges, cases = inner.cases(first)
    bounded = prove_fused_losses(proving, inner.one, x, KnownTerm(ranges, cases, factors, [of_c]))
    none = z3.Not(z3.Or(*x.step.special))
    said = z3.And(terms, bounded)
    if not first:
        said = z3.And(said, _prove_multiple(proving, inner, x, of_c, none))
    return z3.Implies(z3.And(ordinary, assumed), said), [ordinary, none]


def _places(inner: InnerSteps, x: Fused, exponent: z3.BitVecRef, fraction_bits: int) -> z3.BitVecRef:
    """How many of the places of a number that has this exponent lie below 2^low."""
    ex = x.exponents
    bits = ex.bits + abs(ex.low).bit_length() + 4
    return (inner.low + fraction_bits - ex.low) - fit(exponent, bits)


def _prove_multiple(
    proving: Composing, inner: InnerSteps, x: Fused, of_c: z3.BoolRef, none: z3.BoolRef
) -> z3.BoolRef:
    """Prove that a step's result is a multiple of 2^low, if c is."""
    step, e_max = x.step, x.step.e_max
    at_most, some = prove_e_max(proving, x)
    places = _places(inner, x, e_max, inner.p.F)
    running = z3.BitVecVal(0, step.total.size())
    known: list[z3.BoolRef] = []
    for k, (s, below) in enumerate(zip(x.summands, at_most, strict=True)):
        own = of_c
        if s.name == "product":
            own = multiple(s.term.significand, _places(inner, x, s.term.exponent, s.fraction_bits))
            proving.claim("multiple", "a product is a multiple of the least last place of products", own)
        aligned = multiple(s.aligned, places)
        text = "so is what is left of it where it is aligned"
        proving.claim("aligned multiple", text, aligned, [own, below])
        part = negate_if(s.term.sign, resize(s.aligned, step.total.size()))
        after = running + part if k else part
        text = "so is a sum of those"
        claim = multiple(after, places)
        proving.claim("multiples", text, claim, [*known, aligned])
        running, known = after, [claim]
    total = multiple(step.total, places)
    if not running.eq(step.total):
        same = running == step.total
        proving.claim("sum", "the accumulator's order of summation does not matter", same)
        proving.claim("multiple sum", "so is the accumulator", total, [*known, same])
    fmt = inner.spec.d_format
    d = decode(step.result, fmt)
    result = of_operand(d, fmt, inner.low)
    reach = sum(x.bounds)
    small = [step.total <= reach, step.total >= -reach]
    claim = z3.Implies(z3.And(none, z3.Not(z3.Or(d.infinite, d.nan))), result)
    premises = [total, *prove_highest(proving, x, at_most, some), z3.And(*small)]
    text = "so is ρ of it"
    return proving.claim("multiple result", text, claim, premises)


# ---- inputs that reach it --------------------------------------------------------------------------------------------


#: More places than a product has.
_ALL_PLACES = 62


def _reaching(inner: InnerSteps, n: int) -> Iterator[Codes]:
    """Inputs whose n-th inner step, 0 or 1, might lose as much as can be."""
    p, spec, formats = inner.p, inner.spec, inner.formats
    f, (low, high) = sum(x.fraction_bits for x in formats), inner.exponents
    case = max(inner.cases(n == 0)[1], key=lambda case: case.n)
    before, members = p.order[: p.L], p.order[n * p.L : (n + 1) * p.L]
    for e_max in sorted(range(low, high + 1), key=abs):
        products: dict[int, tuple[int, int] | None] = {}
        loss, count = (case.far, case.others) if case.largest == "c" else (case.near, case.neighbours)
        ends = loss.places if p.cut is Rounding.RZ else _ALL_PLACES  # to odd, the least number is off most
        pairs = pairs_losing(loss.significand % (1 << ends), ends, formats)
        losing = product_codes(pairs, e_max - p.F - loss.places + f, formats) if loss.units else (0, 0)
        products |= dict.fromkeys(members[len(members) - count :], losing)
        if case.largest == "product":
            top = case.at_top
            pairs = pairs_losing(top.significand % (1 << top.places), top.places, formats)
            products[members[0]] = (
                product_codes(pairs, e_max - p.F - top.places + f, formats)
                if top.units
                else _power(e_max, formats, normal=True)
            )
        if n:
            lost = case.addend.places
            last = e_max - p.F - lost
            parts = [(e_max, 0)] if case.largest == "c" else [(last + lost, 0), (last, 1)] if lost else []
            for k, (exponent, negative) in zip(before, parts, strict=False):
                found = _power(exponent, formats)
                products[k] = found and (found[0] | negative * formats[0].sign_mask, found[1])
        if all(pair is not None for pair in products.values()):
            yield with_products(zeros(spec), {k: pair for k, pair in products.items() if pair is not None})


def _power(exponent: int, formats: Sequence[Format], *, normal: bool = False) -> tuple[int, int] | None:
    """Codes of two numbers whose product is 2^exponent; normal ones, if that is asked for."""
    a, b = (fmt.fraction_bits for fmt in formats)
    for i in range(a, a - 1 if normal else -1, -1):
        for j in range(b, b - 1 if normal else -1, -1):
            found = product_codes([(1 << i, 1 << j)], exponent + a + b - i - j, formats)
            if found is not None:
                return found
    return None


def off(inner: InnerSteps, codes: Codes, n: int) -> tuple[Fraction, int]:
    """(S − exact of the n-th inner step in units of 2^(e_max − F), e_max), by the executable encoding."""
    p, spec = inner.p, inner.spec
    steps = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c).steps
    step = steps[n]
    assert isinstance(step, executable_fda.FdaStep)
    value = spec.d_format.value(steps[n - 1].result) if n else Fraction(0)
    for k in p.order[n * p.L : (n + 1) * p.L]:
        value += spec.a_format.value(codes.a[k]) * spec.b_format.value(codes.b[k])
    unit = Fraction(2) ** (step.e_max - p.F)
    return step.total - value / unit, step.e_max


def reach(instruction: Instruction, n: int) -> CaseWitness | None:
    """An input whose n-th inner step is off by as much as can be, in both encodings; None if none was found."""
    spec = one_step(instruction.spec)
    inner = InnerSteps(spec, spec.parameters_as(Lowered))
    most = max(case.n for case in inner.cases(n == 0)[1])
    for codes in _reaching(inner, n):
        error, e_max = off(inner, codes, n)
        if abs(error) == most:
            single = as_one_step(instruction)
            notes = (f"of inner step {n + 1}, S − exact = {error} · 2^({e_max} − {inner.p.F})",)
            return shown_exact(single, codes, notes)
    return None


# ---- the property ----------------------------------------------------------------------------------------------------


def error_bound(instruction: Instruction, proving: Composing) -> Answer:
    """Return the bounds of the inner steps, proved and reached."""
    answer = too_many(instruction, proving)
    if answer is not None:
        return answer
    spec = instruction.spec
    p = spec.parameters_as(Lowered)
    inner = InnerSteps(spec, p)
    steps = range(min(len(p.order) // p.L, 2))
    names = ("the first inner step", "the others")
    numbers = tuple(
        Number(
            ("n_1", "n")[n],
            max(case.n for case in inner.cases(n == 0)[1]),
            f"what the sum of {names[n]} is off at most, in units of 2^(e_max − {p.F})",
        )
        for n in steps
    )
    converted = "a and b are converted exactly; " if p.operands else ""
    question = (
        f"{instruction.label}: {converted}in each inner step d = {p.rho}(S) with |S − exact| ≤ n ·"
        f" 2^(e_max − {p.F}), {', '.join(number.text for number in numbers)}, and no smaller n will do; then c is"
        f" added, d = {p.addition}(the exact sum)"
    )

    def reached() -> Iterator[tuple[str | None, str]]:
        for n in steps:
            witness = reach(instruction, n)
            why = f"the bounds are proved, but no input was found that reaches that of {names[n]}"
            yield None if witness is None else f"reached (`lowered.exactness.reach`): {witness.notes[0]}", why

    return settle_bound(question, proving, numbers, partial(_prove, proving, spec, inner, steps), reached())


def _prove(proving: Composing, spec: DotAdd, inner: InnerSteps, steps: Sequence[int]) -> None:
    fmt = spec.d_format
    made = [*prove_lowered(proving, spec), *prove_links(proving, inner.fused)]
    if spec.k > inner.p.step_products:
        made += prove_links(proving, spec)
    atoms: list[z3.BoolRef] = []
    for n in steps:
        claim, whole = prove_step(proving, inner, n == 0)
        made.append(claim)
        atoms += whole
    zero = of_operand(decode(z3.BitVecVal(0, fmt.storage_bits), fmt), fmt, inner.low)
    made.append(proving.claim("zero", "0 is a multiple of all", zero))
    proving.conclude(
        "each d is ρ of a sum within its bounds", z3.And(*made, _addition_of(spec).prove(proving)), atoms
    )
