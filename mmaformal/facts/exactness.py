"""Claims of exactness and error bounds about a step and a chain, alike for all algorithms; and of codes, in rationals.

Exactness has a condition, the exact sum, and that d is ρ of it (`Exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import symbolic_inputs, with_products, zeros
from mmaformal.cases.numerical import exact_of, shown_exact
from mmaformal.cases.witness import CaseWitness
from mmaformal.facts.exact_terms import AnyFused, prove_inputs, prove_links
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import code_parts, is_rounded, last_index
from mmaformal.proof.fixed_sums import FIXED_POINT, Placed, total_of
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.sticky_sums import is_sharp, magnitude_of
from mmaformal.rounding import Conversion
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.answers import Number as Figure
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError


@dataclass(frozen=True)
class Exact:
    """Claims proved of one step's exactness.  Formulas are claims, and connectives of claims."""

    ordinary: z3.BoolRef  #: that every input is a number
    condition: z3.BoolRef  #: that nothing is cut off
    conclusion: z3.BoolRef  #: where every input is a number
    atoms: tuple[z3.BoolRef, ...]  #: formulas of the conclusion that are one proposition each
    text: str  #: what it says
    chain: Callable[[Composing, DotAdd], Sequence[z3.BoolRef]] = (
        prove_links  #: proves what a chain of steps is
    )


def conclude_exact(proving: Composing, spec: DotAdd, exact: Exact) -> str:
    """Prove that where every input is a number, the conclusion holds, of each step of a chain; return it in words.

    Raises NotProvedError.
    """
    claim, text = z3.Implies(exact.ordinary, exact.conclusion), f"of numbers: {exact.text}"
    if spec.k > spec.parameters.step_products:
        claim = z3.And(claim, prove_exact_steps(proving, spec, exact.chain))
        text += CHAIN
    proving.conclude("where every input is a number, d is exact as far as is said", claim, exact.atoms)
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
    """Prove that where nothing is special and total · 2^t is a number of ρ's, the `index`-th of all, d is that number.

    `rounded` says that d is ρ of it then; returns both, without `none`, that nothing is special.
    """
    negative, m = magnitude_of(total)
    drop = rho.format.fraction_bits - rho.fraction_bits
    of_code = z3.Extract(rho.format.storage_bits - 2, drop, code)
    index = z3.BitVec("index", of_code.size())
    is_it = z3.And(z3.ULT(index, last_index(rho)), is_sharp(*code_parts(index, t.size(), rho), m, t))
    claim = z3.Implies(is_it, of_code == index)
    text = f"if the sum is one of {rho}'s numbers, d is that number"
    proving.claim(f"number of {rho}", text, z3.Implies(none, claim), [rounded], [code, m, negative, t, none])
    return z3.And(rounded.arg(1), claim)


def prove_own_numbers(proving: Composing, rho: Conversion) -> z3.BoolRef:
    """Prove that ρ of a number of ρ's is that number: no other code is right by definition."""
    fmt, drop = rho.format, rho.format.fraction_bits - rho.fraction_bits
    code = z3.BitVec("code", fmt.storage_bits)
    of_code = z3.Extract(fmt.storage_bits - 2, drop, code)
    index, negative = z3.BitVec("index", of_code.size()), z3.Bool("negative")
    m, t = code_parts(index, fmt.exponent_bits + fmt.fraction_bits.bit_length() + 4, rho)
    given = z3.And(z3.ULT(index, last_index(rho)), is_rounded(m, t, code, rho, negative))
    text = f"{rho} of a number of {rho}'s is that number"
    return proving.claim(f"numbers of {rho}", text, z3.Implies(given, of_code == index))


def prove_exact_steps(
    proving: Composing, spec: DotAdd, chain: Callable[[Composing, DotAdd], Sequence[z3.BoolRef]]
) -> z3.BoolRef:
    """Prove of a chain that each step is one of the model, with the result before as its c; and that where the results
    before the last are exact, the last step's exact sum is that of all."""
    count = spec.k // spec.parameters.step_products
    return z3.And(*chain(proving, spec), prove_exact_so_far(proving, count, 4 << spec.d_format.exponent_bits))


def prove_exact_so_far(proving: Composing, count: int, bits: int) -> z3.BoolRef:
    """Prove that in a fixed point of so many bits the last of `count` steps sums up all."""
    proving.rests_on(FIXED_POINT)
    d = [z3.BitVec(f"d{i}", bits) for i in range(count)]  # c, and the results before the last
    sums = [z3.BitVec(f"sum{i}", bits) for i in range(count)]  # of the products of a step
    exact = [after == before + own for before, after, own in zip(d[:-1], d[1:], sums[:-1], strict=True)]
    claim = z3.Implies(z3.And(exact), d[-1] + sums[-1] == total_of([d[0], *sums]))
    text = "where the results before the last are exact sums, the last step's exact sum is that of all"
    return proving.claim("exact so far", text, claim)


def prove_errors_of_steps(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that each step of a chain is one step of the model, with the result before as its c; and that the error
    of the last result is the sum of the errors of all."""
    claims, count = prove_links(proving, spec), spec.k // spec.parameters.step_products
    bits = 4 << spec.d_format.exponent_bits
    proving.rests_on(FIXED_POINT)
    d = [z3.BitVec(f"d{i}", bits) for i in range(count + 1)]  # c, and the results
    sums = [z3.BitVec(f"sum{i}", bits) for i in range(count)]  # of the products of a step
    errors = [after - (before + own) for before, after, own in zip(d[:-1], d[1:], sums, strict=True)]
    text = "the error of the last result is the sum of the errors of all steps"
    error = d[-1] - total_of([d[0], *sums]) == total_of(errors)
    return z3.And(*claims, proving.claim("errors of steps", text, error))


def conclude_bound(
    proving: Composing, spec: DotAdd, one: DotAdd, step: AnyFused, prove: Callable[[], z3.BoolRef]
) -> None:
    """Conclude that the sum of a step is within the bounds that `prove` proves, of the products and c of its codes; and
    of a chain that its errors are those of its steps.  Raises NotProvedError."""
    ordinary, terms = claims_of(proving, lambda: prove_inputs(proving, one, symbolic_inputs(one), step))
    conclusion, none = z3.And(terms, prove()), z3.Not(z3.Or(*step.special))
    if one != spec:
        conclusion = z3.And(conclusion, prove_errors_of_steps(proving, spec))
    proving.conclude("d is ρ of a sum within these bounds", conclusion, [ordinary, none])


def settle_bound(
    question: str,
    proving: Composing,
    numbers: Sequence[Figure],
    prove: Callable[[], object],
    reached: Iterable[tuple[str | None, str]],
) -> Answer:
    """Return the bounds, if `prove` proves them and inputs reach them: of each how, or None and why that is unknown."""
    notes, asker = [], proving.asker
    try:
        prove()
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    for note, why in reached:
        if note is None:
            return Unknown(question, why, proving.obligations, asker.elapsed)
        notes.append(note)
    return Holds(question, proving.proof(), asker.elapsed, tuple(numbers), tuple(notes))


#: Words on a chain, after those on a step.
ERRORS_OF_CHAIN = (
    "; where every step's result is a number, the error of the last is the sum of the steps' errors"
)

#: Bits of products' significands whose losses are found by listing them all: some hundred megabytes.
LISTED = 26


def too_many(instruction: Instruction, proving: Composing) -> Unknown | None:
    """The answer where significands of products have too many bits to be listed."""
    spec = instruction.spec
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    if bits <= LISTED:
        return None
    question = f"{instruction.label}: |S − exact| ≤ n · 2^(e_max − F)"
    why = f"the significands of products of {bits} bits are too many to list; {LISTED} bits are listed"
    return Unknown(question, why, (), proving.asker.elapsed)


def no_bound_where_flushed(instruction: Instruction, proving: Composing) -> Answer:
    """Return the input that shows that errors of a unit that flushes have no bound."""
    question = f"{instruction.label}: |d − exact| is at most the rounding of each step's sums"
    why = "it is not so that errors are bounded by those of rounding"
    return Fails(question, flushed(instruction), why, proving.asker.elapsed)


def flushed(instruction: Instruction) -> CaseWitness:
    """Return the input on which a subnormal factor counts as zero, and its product is lost.

    Raises WitnessError if the product is not lost.
    """
    spec = instruction.spec
    a, b = 1 << spec.a_format.ignored_low_bits, spec.b_format.code(f"0x1p{spec.b_format.max_exponent}")
    codes = with_products(zeros(spec), {0: (a, b)})
    notes = ("a subnormal factor counts as zero, so a product that d's format holds exactly is lost",)
    witness, value = shown_exact(instruction, codes, notes), exact_of(spec, codes)
    if (
        value is None
        or witness.results != (0,)
        or value <= spec.d_format.value(1 << spec.d_format.fraction_bits)
    ):
        raise WitnessError(f"{instruction.label}: {codes} was to be flushed, and is not")
    return witness
