"""How far apart may two units be that RISC-V's standard allows?  A bound of every such unit, of any number of products.

    mmaformal prove freedom riscv vfwbdota.vv.n64

A result is made of products that may be rounded, or of sets of them that are aligned and rounded, by a tree of
additions that round, and is converted in the end.  What is proved, as claims about real numbers, is of one place of the
tree: with what is exact S, |S| ≤ σ, and a number within (Q − 1)·σ of it,

- *set*: terms of which each is off by 2^E·u/m at most are together off by u·σ at most, where 2^E is no more than σ;
- *rounding*: rounded with u once more, it is within ((1 + u)·Q − 1)·σ;
- *addition*: so is a rounded sum of two of them, of the sum of both σ, Q being the larger one.

u = 2^-24 to nearest and 2^-23 to odd are proved of fp32 (`facts/rounding_model`); more precision has a smaller u.
By induction over the tree a result is within (1 + u)^r − 1, r being the most roundings from a product to d: a tree of
k + 1 leaves is no more than k additions deep.  Where no factor is subnormal and nothing is too large or too small.
"""

from __future__ import annotations

from fractions import Fraction

import z3

from mmaformal.analysis import riscv_fp32, riscv_freedom
from mmaformal.facts.product_bound import is_within, prove_apart
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.kernel import NotProvedError, by_rule
from mmaformal.queries.bound import prove_rounding_model, rounded_up, theorem
from mmaformal.queries.property import Property
from mmaformal.queries.standard_units import Standard
from mmaformal.rounding import IEEE_FP32, RO_FP32
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

TREE = Rule(
    "roundings of a tree",
    "what holds of a number, of its rounding and of a rounded sum of two, holds of a tree of them, with as many "
    "factors 1 + u as a path has roundings; of k + 1 leaves no path has more than k additions; a format with fp32's "
    "range and more precision rounds with no larger u",
)


def prove_set(proving: Composing) -> None:
    """Proves what aligned products are off together, one more of them at a time.  Raises NotProvedError."""
    S, exact, term, own, place, count = z3.Reals("S exact term own place count")
    known = z3.And(place >= 0, count >= 0, is_within(S - exact, count * place), is_within(term - own, place))
    text = "one term more that is off by a place makes the sum off by a place more"
    more = proving.claim("term", text, is_within(S + term - (exact + own), (count + 1) * place), [known])
    m, u, top, sigma = z3.Reals("m u top sigma")
    given = z3.And(m >= 1, u >= 0, m * place == u * top, top <= sigma)
    text = "m places, of which each is u·2^E/m, are u·σ at most"
    whole = proving.claim("set", text, m * place <= u * sigma, [given])
    proving.rests_on(TREE)
    proving.conclude(text, z3.And(z3.Implies(known, more), z3.Implies(given, whole)))


def _prove_rounded(proving: Composing) -> None:
    """Proves what a number is off once it is rounded.  Raises NotProvedError."""
    s, d, exact, sigma, E, Q, u = z3.Reals("s d exact sigma E Q u")
    near = z3.And(
        is_within(s - exact, E), is_within(exact, sigma), (Q - 1) * sigma >= E, Q >= 1, u >= 0, E >= 0
    )
    rounded = z3.Or(is_within(d - s, u * s), is_within(d - s, -u * s))
    text = "a number is no larger than its exact one and what it is off"
    size = z3.And(u * s <= u * (sigma + E), -u * s <= u * (sigma + E))
    size = proving.claim("size", text, z3.And(is_within(s, sigma + E), size), [near])
    off = is_within(d - exact, E + u * (sigma + E))
    off = proving.claim("off", "rounding adds u times that", off, [near, rounded, size])
    text = "which is within (1 + u)·Q − 1 of σ"
    grown = E + u * (sigma + E) <= ((1 + u) * Q - 1) * sigma
    grown = proving.claim("grown", text, grown, [near])
    claim = is_within(d - exact, ((1 + u) * Q - 1) * sigma)
    claim = proving.claim("rounded", "so it is", claim, [off, grown])
    proving.rests_on(TREE)
    proving.conclude(text, z3.Implies(z3.And(near, rounded), claim))


def prove_added(proving: Composing) -> None:
    """Proves that a sum of two is off by no more than both are, with the larger factor.  Raises NotProvedError."""
    s, t, S, T, sigma, tau, Q, R, P = z3.Reals("s t S T sigma tau Q R P")
    near = z3.And(
        is_within(s - S, (Q - 1) * sigma),
        is_within(t - T, (R - 1) * tau),
        is_within(S, sigma),
        is_within(T, tau),
    )
    factors = z3.And(sigma >= 0, tau >= 0, P >= Q, P >= R)
    text = "products of what is not negative are not"
    signs = proving.claim("signs", text, z3.And((P - Q) * sigma >= 0, (P - R) * tau >= 0), [factors])
    text = "a sum of two is within (P − 1)·(σ + τ), P being the larger factor, and the exact one within σ + τ"
    claim = z3.And(is_within(s + t - (S + T), (P - 1) * (sigma + tau)), is_within(S + T, sigma + tau))
    claim = proving.claim("sum", text, claim, [near, factors, signs])
    proving.rests_on(TREE)
    proving.conclude(text, z3.Implies(z3.And(near, factors), claim))


def most_roundings(spec: DotAdd, fp32_products: bool) -> int:
    """Returns the most roundings between a product and d, of every way that the standard leaves open.

    Of fp32: a product, k additions, the conversion.  Else of sets of m products: the alignment of m > 1, the set's sum
    (of m = 1 the product) and as many additions as there are sets; what is cut to odd twice is cut once.
    """
    if fp32_products:
        return 1 + spec.k + 1
    sizes = [1 << i for i in range(spec.k.bit_length())]
    return max((2 if m > 1 else 1) + spec.k // m for m in sizes)


def _settle(instruction: Instruction, asker: Asker) -> Answer:
    spec, k = instruction.spec, instruction.k
    question = (
        f"every unit of {k} products, {spec.types}, that RISC-V's standard allows, is off c + Σ a·b by no more than f "
        f"times |c| + Σ |a·b|, where no factor is subnormal and nothing is too large or too small"
    )
    try:
        standard = Standard(spec)
    except ValueError as error:
        return Unknown(question, str(error), (), asker.elapsed)
    nearest = standard.is_fp32
    u = Fraction(1, 1 << fp32.fraction_bits + nearest)
    f = (1 + u) ** most_roundings(spec, nearest) - 1
    said = riscv_fp32.fp32_off_at_most(k) if nearest else riscv_freedom.off_at_most(k)
    if f > said:
        raise WitnessError(f"{k} products: the proved bound {f} is above {said}, which is said of them")
    claims = (*(() if nearest else (prove_set,)), _prove_rounded, prove_added, prove_apart)
    try:
        proofs = [
            prove_rounding_model(IEEE_FP32 if nearest else RO_FP32, asker),
            *(theorem(x, asker) for x in claims),
        ]
    except NotProvedError as error:
        return Unknown(question, str(error), tuple(asker.proved), asker.elapsed)
    numbers = (
        Number("f", rounded_up(f), "what one unit is off at most, relative to |c| + Σ |a·b|; rounded up"),
        Number("2f", rounded_up(2 * f), "how far apart two such units are at most; rounded up"),
    )
    return Holds(question, by_rule(f"{TREE.name}: {TREE.statement}", *proofs), asker.elapsed, numbers)


PROPERTY = Property(
    "freedom",
    "how far any two units that RISC-V's standard allows can be apart, at most",
    _settle,
    about=lambda _: (),
)
