"""What exactness says of a step, alike for all algorithms: a condition, the exact sum, and that d is ρ of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from mmaformal.facts.exact_terms import prove_chain
from mmaformal.proof.composition import FIXED_POINT, Composing, Placed, total_of
from mmaformal.proof.definitions import is_rounded, last_index, read
from mmaformal.proof.sticky_sums import is_sharp, magnitude_of
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Exact:
    """What was proved of one step.  Formulas are claims, and connectives of claims."""

    ordinary: z3.BoolRef  #: that every input is a number
    condition: z3.BoolRef  #: that nothing is cut off
    conclusion: z3.BoolRef  #: where every input is a number
    letters: tuple[z3.BoolRef, ...]  #: of the conclusion, each one letter as a whole
    text: str  #: what it says
    chain: Callable[[Composing, DotAdd], Sequence[z3.BoolRef]] = (
        prove_chain  #: proves what a chain of steps is
    )


def conclude(proving: Composing, spec: DotAdd, exact: Exact) -> str:
    """That where every input is a number, the conclusion holds, of each step of a chain; returns that, for a person.

    Raises NotProvedError.
    """
    claim, text = z3.Implies(exact.ordinary, exact.conclusion), f"of numbers: {exact.text}"
    if spec.k > spec.parameters.step_products:
        claim = z3.And(claim, prove_steps(proving, spec, exact.chain))
        text += CHAIN
    proving.conclude("where every input is a number, d is exact as far as is said", claim, exact.letters)
    return text


CHAIN = (
    "; a step's c is the result before, so where the results before the last are exact sums, the last one rounds that"
    " of all"
)


def claims_of(proving: Composing, prove: Callable[[], z3.BoolRef]) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(what `prove` returns, all that it claimed)."""
    before = set(proving.steps)
    returned = prove()
    return returned, z3.And([claim for key, (_, claim) in proving.steps.items() if key not in before])


def no_bit_below(x: z3.BitVecRef, places: int) -> z3.BoolRef:
    """Whether the lowest `places` bits are 0."""
    return z3.Extract(places - 1, 0, x) == 0 if places else z3.BoolVal(True)


def prove_kept(proving: Composing, term: Placed, premises: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Proves that a term without a bit below the unit is aligned without an error."""
    whole = no_bit_below(term.exact, term.places)
    kept = z3.Implies(whole, term.kept == term.exact)
    text = "a term that has no bit below the unit is aligned exactly"
    proving.claim(f"{term.name} kept", text, kept, premises)
    no_error = z3.Implies(whole, term.error == 0)
    return proving.claim(f"{term.name} no error", "so it has no error", no_error, [kept])


def prove_number(
    proving: Composing,
    code: z3.BitVecRef,
    total: z3.BitVecRef,
    t: z3.BitVecRef,
    rho: Conversion,
    rounded: z3.BoolRef,
    none: z3.BoolRef,
) -> z3.BoolRef:
    """That where nothing is special and total · 2^t is a number of ρ's, the `index`-th of all, d is that number.

    `rounded` says that d is ρ of it then; returns both, without `none`, that nothing is special.
    """
    negative, m = magnitude_of(total)
    drop = rho.format.fraction_bits - rho.fraction_bits
    of_code = z3.Extract(rho.format.storage_bits - 2, drop, code)
    index = z3.BitVec("index", of_code.size())
    is_it = z3.And(z3.ULT(index, last_index(rho)), is_sharp(*read(index, t.size(), rho), m, t))
    claim = z3.Implies(is_it, of_code == index)
    text = f"if the sum is one of {rho}'s numbers, d is that number"
    proving.claim(f"number of {rho}", text, z3.Implies(none, claim), [rounded], [code, m, negative, t, none])
    return z3.And(rounded.arg(1), claim)


def prove_own_numbers(proving: Composing, rho: Conversion) -> z3.BoolRef:
    """That ρ of a number of ρ's is that number: no other code is right by definition."""
    fmt, drop = rho.format, rho.format.fraction_bits - rho.fraction_bits
    code = z3.BitVec("code", fmt.storage_bits)
    of_code = z3.Extract(fmt.storage_bits - 2, drop, code)
    index, negative = z3.BitVec("index", of_code.size()), z3.Bool("negative")
    m, t = read(index, fmt.exponent_bits + fmt.fraction_bits.bit_length() + 4, rho)
    given = z3.And(z3.ULT(index, last_index(rho)), is_rounded(m, t, code, rho, negative))
    text = f"{rho} of a number of {rho}'s is that number"
    return proving.claim(f"numbers of {rho}", text, z3.Implies(given, of_code == index))


def prove_steps(
    proving: Composing, spec: DotAdd, chain: Callable[[Composing, DotAdd], Sequence[z3.BoolRef]]
) -> z3.BoolRef:
    """Of a chain: that each step is one of the model, with the result before as its c; and that where the results
    before the last are exact, the last step's exact sum is that of all."""
    count = spec.k // spec.parameters.step_products
    return z3.And(*chain(proving, spec), prove_exact_so_far(proving, count, 4 << spec.d_format.exponent_bits))


def prove_exact_so_far(proving: Composing, count: int, bits: int) -> z3.BoolRef:
    """That in a fixed point of so many bits the last of `count` steps sums up all."""
    proving.rests_on(FIXED_POINT)
    d = [z3.BitVec(f"d{i}", bits) for i in range(count)]  # c, and the results before the last
    sums = [z3.BitVec(f"sum{i}", bits) for i in range(count)]  # of the products of a step
    exact = [after == before + own for before, after, own in zip(d[:-1], d[1:], sums[:-1], strict=True)]
    claim = z3.Implies(z3.And(exact), d[-1] + sums[-1] == total_of([d[0], *sums]))
    text = "where the results before the last are exact sums, the last step's exact sum is that of all"
    return proving.claim("exact so far", text, claim)
