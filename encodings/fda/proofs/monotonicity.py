"""Whether d grows with c and with a product, of fda: c up to a number of products, and an input with one more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from mmaformal.cases.falling_products import falls_with_a_product, narrow_cases, random_searches
from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.cases.out_of_order import (
    OutOfOrder,
    codes_of_number,
    normal_code,
    position,
    shown_out_of_order,
)
from mmaformal.cases.run import run
from mmaformal.encodings.fda import Fda
from mmaformal.facts.monotone_fused import products_allowed, prove_in_c
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.shown_stages import code_text


def in_c(instruction: Instruction, theory: Theory) -> OutOfOrder | None:
    """Prove that d grows with c, or return an input with which it does not.  Raises NotProvedError."""
    spec, p = instruction.spec, instruction.spec.parameters_as(Fda)
    allowed = products_allowed(spec)
    if allowed >= p.L:
        prove_in_c(theory, spec)
        return None
    found = find_addend(instruction)
    if found is None:
        raise NotProvedError(
            "d grows with c", "unknown", "no argument, and no input was found that breaks it"
        )
    first, second, n = found
    minimal = f"{n} nonzero products are the fewest of this kind"
    if spec.c_format.fraction_bits <= p.F and spec.scale_format is None:
        minimal += _told_of_fewer(theory, instruction.replace(k=allowed, L=allowed))
    what = f"c = {code_text(second.c, spec.c_format)}"
    witness = shown_out_of_order(instruction, first, second, what, (minimal,))
    return OutOfOrder(witness, f"e_max rises with c, and {n} products lose bits; F = {p.F} allows {allowed}")


def _told_of_fewer(theory: Theory, fewer: Instruction) -> str:
    """Say that steps of fewer products are monotone, if that is proved; else nothing."""
    smaller = Theory(theory.asker)
    try:
        prove_in_c(smaller, fewer.spec)
    except NotProvedError:
        return ""
    count = len(smaller.obligations)
    return f"; steps of up to {fewer.spec.k} are monotone (proved, {count} obligations)"


def in_product(instruction: Instruction) -> OutOfOrder | None:
    spec, p = instruction.spec, instruction.spec.parameters_as(Fda)
    return falls_with_a_product(instruction, random_searches(spec, p.F, partial(narrow_cases, spec, p.F)))


def crossing_addend(instruction: Instruction) -> Iterator[tuple[Codes, Codes, int]]:
    """(with c, with the next c, number of products): c = (2 - ulp)·2^e and 2^(e+1), and products of an odd number of
    units 2^(e - F), each of which loses one when e_max rises with c; with fewest products first."""
    spec, p = instruction.spec, instruction.spec.parameters_as(Fda)
    fmt = spec.c_format
    for e in sorted(range(max(fmt.min_exponent, -40), min(fmt.max_exponent, 60)), key=lambda e: abs(e - p.F)):
        c = normal_code(Fraction(2) ** (e + 1), fmt)
        units = {
            odd: codes_of_number(odd * Fraction(2) ** (e - p.F), spec) for odd in (1, 3, 5, 7, 9, 15, 21, 25)
        }
        if c is None or units[1] is None:
            continue
        first, second = replace(zeros(spec), c=c - (1 << fmt.ignored_low_bits)), replace(zeros(spec), c=c)
        for n in range(products_allowed(spec) + 1, p.L + 1):
            for more in (odd for odd, codes in units.items() if codes is not None):
                for several in range(n):
                    products = {k: units[more if k < several else 1] for k in range(n)}
                    yield with_products(first, products), with_products(second, products), n  # type: ignore[arg-type]
        return


def find_addend(instruction: Instruction) -> tuple[Codes, Codes, int] | None:
    """A failing pair of neighbouring c of an fda model, of few products."""
    cases = list(crossing_addend(instruction))
    if not cases:
        return None
    firsts, seconds = run(instruction, [x for x, _, _ in cases]), run(instruction, [y for _, y, _ in cases])
    for case, x, y in zip(cases, firsts, seconds, strict=True):
        places = [position(d, instruction.d_format) for d in (x, y)]
        if places[0] is not None and places[1] is not None and places[0] > places[1]:
            return case
    return None
