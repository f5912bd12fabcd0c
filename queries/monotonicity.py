"""Does d grow with c?  c ≤ c' ⇒ d ≤ d', all else the same.  And with one product?  a·b ≤ a'·b' ⇒ d ≤ d'.

    mmaformal prove monotonicity-in-c ampere HMMA.16816.F32

Multi-term adders break it: a larger c may raise e_max, and then every product loses bits that it had before.  That is
at most one unit of the finer grid for each product, while c itself gained at least 2^(F − M) of them (M the fraction
bits of c, or F if those are more).  One product more does no harm where ρ cuts toward zero: what the sum then loses is
less than one coarser unit.  So a step of L products is monotone in c exactly where L is small enough, and that is
proved; for more products there is a witness.

In a product it fails wherever a unit aligns by the exponents of the factors: the same number, made of other factors,
has another exponent, and the other terms lose other bits.  It holds where each step rounds its exact sum, and where
products are summed exactly and aligned by the exponents of their scales.

A NaN is neither above nor below anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import z3

from mmaformal.cases.out_of_order import OutOfOrder, larger_c, larger_first_product, search, two_runs
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import larger_product

#: Seconds that have to be left for a search at random.
_LOOKING = 1.0


def _settled(
    instruction: Instruction,
    asker: Asker,
    statement: str,
    prove: Callable[[Instruction, Theory], OutOfOrder | None],
    theorems: Callable[[DotAdd], Sequence[z3.BoolRef]],
    look: Callable[[], OutOfOrder | None],
) -> Answer:
    """Return what `prove` finds, or that it ended with the very theorems; where it does neither, what `look` finds."""
    question, theory = f"{instruction.label}: {statement}", Theory(asker)
    try:
        found = prove(instruction, theory)
        if found is None and not all(map(theory.proves, theorems(instruction.spec))):
            raise NotProvedError(statement, "unknown", "the argument does not end with it")
    except NotProvedError as error:
        if asker.left < _LOOKING or (found := look()) is None:
            return Unknown(question, str(error), theory.obligations, asker.elapsed)
    if found is not None:
        return Fails(question, found.witness, found.why, asker.elapsed)
    return Holds(question, theory.proof(), asker.elapsed)


def settle_addend(instruction: Instruction, asker: Asker) -> Answer:
    facts = facts_of(instruction.spec)
    statement = "c ≤ c' ⇒ d ≤ d'"
    return _settled(
        instruction,
        asker,
        statement,
        facts.monotone_in_c,
        lambda spec: [two_runs(spec).statement],
        partial(search, instruction, larger_c, "a larger c", "a larger c gives a smaller d"),
    )


def settle_product(instruction: Instruction, asker: Asker) -> Answer:
    facts = facts_of(instruction.spec)
    statement = "a·b ≤ a'·b' ⇒ d ≤ d'"
    return _settled(
        instruction,
        asker,
        statement,
        facts.monotone_in_product,
        lambda spec: [larger_product(spec, k).statement for k in range(spec.k)],
        partial(
            search,
            instruction,
            larger_first_product,
            "a larger product",
            "a larger product gives a smaller d",
        ),
    )


ADDEND = Property("monotonicity-in-c", "c ≤ c' ⇒ d ≤ d', all else the same", settle_addend)
PRODUCT = Property("monotonicity-in-a-product", "a·b ≤ a'·b' ⇒ d ≤ d', all else the same", settle_product)
