"""Exactness and the error bound of a step of dpa_e9s12 whose products may lose bits: of bf16, or of several of fp32."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact as exact_sum
from mmaformal.cases.numerical import shown
from mmaformal.cases.one_step import as_one_step, one_step
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings import executable
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import executable as executable_dpa
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs.losses import Places, prove_losses
from mmaformal.encodings.executable import limbs
from mmaformal.explain import code_text
from mmaformal.facts.exact_steps import prove_off
from mmaformal.facts.exact_terms import prove_chain
from mmaformal.facts.exactness import Exact, claims_of, prove_own_numbers
from mmaformal.facts.exactness_codes import (
    Number,
    Rounding,
    Roundings,
    exponent_of,
    has_no_bit_below,
    products,
    total,
)
from mmaformal.formats import Format, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.solver.answers import Answer, Holds, Unknown
from mmaformal.solver.answers import Number as Figure
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

if TYPE_CHECKING:
    from mmaformal.encodings.dpa_e9s12.proofs.losses import Losses


def places_of(spec: DotAdd) -> Places:
    p = spec.parameters
    assert isinstance(p, DpaE9s12)
    return Places(spec.a_format, smt_dpa.kept(p.L, p.summands(spec)), p.N)


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


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    """The condition on codes: no product of halves has a bit below the last place kept."""
    c, places, L = spec.c_format.value(codes.c), places_of(spec), spec.parameters.step_products
    pairs = products(spec, codes)
    for start in range(0, spec.k, L):
        c += total(pairs[start : start + L])
        halves = [part for k in range(start, start + L) for part in _halves(spec, codes, k)]
        e_max = max((e for value, e in halves if value), default=0)
        whole = all(has_no_bit_below(value, e_max - places.F) for value, _ in halves)
        yield Rounding(whole, c, spec.parameters.last_rounding)


def _halves(spec: DotAdd, codes: Codes, k: int) -> list[Number]:
    """The E9S12 products of the k-th pair, each with its exponent."""
    sides = [_cut(code, spec.a_format) for code in (codes.a[k], codes.b[k])]
    return [(x * y, e + f) for x, e in sides[0] for y, f in sides[1]]


def _cut(code: int, fmt: Format) -> list[Number]:
    value, exponent = fmt.value(code), exponent_of(code, fmt)
    if fmt != fp32:
        return [(value, exponent)]
    unit = Fraction(2) ** (exponent - fp32.fraction_bits)
    upper = (abs(value) / unit).__floor__() >> smt_dpa.SIGNIFICAND_BITS << smt_dpa.SIGNIFICAND_BITS
    high = upper * unit * (-1 if value < 0 else 1)
    return [(high, exponent), (value - high, exponent - smt_dpa.SIGNIFICAND_BITS)]


# ---- how much is lost -----------------------------------------------------------------------------------------------


def error_bound(instruction: Instruction, proving: Composing) -> Answer:
    """The least n, proved and reached."""
    spec = instruction.spec
    places = places_of(spec)
    n = Figure(
        "n", places.n, f"units of 2^(E − {places.F}) that S is below the exact sum of products, at most"
    )
    question = (
        f"{instruction.label}: in each step d = {spec.parameters.last_rounding}(S + c) with"
        f" 0 ≤ Σ a·b − S ≤ n · 2^(E − {places.F}), E the largest exponent of an E9S12 product, {n.text}"
    )
    try:
        _, numbers = prove_losses(proving, one_step(spec))
        prove_chain(proving, spec)
        proving.conclude_all(numbers)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, proving.asker.elapsed)
    witness = reach(instruction)
    small = code_text(witness.codes.b[-1], spec.b_format)
    notes = (f"reached, by 2^127·2^127 and all others −x·x, x = {small}, with c = 0: {witness.notes[0]}",)
    return Holds(question, proving.proof(), proving.asker.elapsed, (n,), notes)


def reach(instruction: Instruction) -> CaseWitness:
    """An input of one step that loses n units, in both encodings: one product of the largest exponent, the others
    negative, as small as can be with no half zero.

    Raises WitnessError if it loses another number.
    """
    spec = one_step(instruction.spec)
    places, fmt = places_of(spec), spec.a_format
    large = fmt.code("0x1p127")
    small = (1 << smt_dpa.SIGNIFICAND_BITS) + 1 if fmt == fp32 else 1
    rest = spec.k - 1
    codes = Codes((large, *[small | fmt.sign_mask] * rest), (large, *[small] * rest), 0)
    value = exact_sum(spec, codes)
    S, unit = _sum_of(spec, places, codes)
    if value is None or value - S != places.n * unit:
        raise WitnessError(f"{instruction.label}: {codes} was to lose {places.n} units, and does not")
    return shown(as_one_step(instruction), codes, (f"S − Σ a·b is n units of {_power(unit)}",))


def _sum_of(spec: DotAdd, places: Places, codes: Codes) -> tuple[Fraction, Fraction]:
    """(S, its unit), of the executable encoding."""
    step = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c).steps[0]
    assert isinstance(step, executable_dpa.DpaE9s12Step)
    S: limbs.Wide = step.partials[-1]
    unit = Fraction(2) ** (int(step.e_max) - 2 * executable_dpa.BIAS - places.F)
    return Fraction((int(S.high) << limbs.BITS) + int(S.low), 1 << executable_dpa.BELOW) * unit, unit


def _power(x: Fraction) -> str:
    return f"2^{x.numerator.bit_length() - x.denominator.bit_length()}"
