"""The error bounds of a step of fdrda or gfdrda, and inputs that are as far from the exact sum as can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.cases.low_bits import encode_number, product_codes
from mmaformal.cases.numerical import exact_of, shown_exact
from mmaformal.cases.one_step import as_one_step, one_step
from mmaformal.cases.witness import CaseWitness, inputs_text
from mmaformal.encodings import executable
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import executable as executable_fdrda
from mmaformal.encodings.fdrda.proofs import bounds
from mmaformal.encodings.fdrda.proofs.bounds import (
    StepLosses,
    losing_product,
    losses_of,
    prove_highest_exponent,
)
from mmaformal.facts.exactness import ERRORS_OF_CHAIN, conclude_bound, settle_bound, too_many
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.solver.answers import Answer, Number
from mmaformal.spec import DotAdd


def _reaching(spec: DotAdd, losses: StepLosses, *, above: bool) -> list[Codes]:
    """Inputs of one step that might lose `losses.below`, or gain `losses.above`."""
    p, M = spec.parameters_as(Fdrda), spec.c_format.fraction_bits
    e_max, formats = prove_highest_exponent(spec), (spec.a_format, spec.b_format)
    top = product_codes([(1 << formats[0].fraction_bits, 1 << formats[1].fraction_bits)], e_max, formats)
    small = losing_product(spec, p, losses.product, e_max)
    if top is None or small is None:
        return []
    if above:
        small = small[0] ^ formats[0].sign_mask, small[1]
    tops = p.L - losses.losing
    codes = with_products(zeros(spec), {k: top if k < tops else small for k in range(p.L)})
    ones, sign = (2 << M) - 1, spec.c_format.sign_mask
    least = encode_number(1, spec.c_format.min_exponent, spec.c_format)
    dropped = kept = None
    if p.reach is not None:
        dropped = encode_number(ones, e_max - p.reach - 1, spec.c_format)
        kept = encode_number(ones, e_max - p.reach, spec.c_format)
    negative = [x | sign for x in (dropped, least) if x is not None]
    return [replace(codes, c=c) for c in ([0, *negative] if above else [x for x in (*negative, kept) if x])]


def kept_sum(spec: DotAdd, codes: Codes) -> tuple[Fraction, int]:
    """(S, e_max) of one step of the executable encoding."""
    step = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c).steps[0]
    assert isinstance(step, executable_fdrda.FdrdaStep)
    return Fraction(step.cut_total.total) * Fraction(2) ** step.cut_total.unit, step.e_max


def reach(instruction: Instruction, *, above: bool) -> CaseWitness | None:
    """An input of one step that is as far below (or above) the exact sum as can be, in both encodings."""
    spec = one_step(instruction.spec)
    p = spec.parameters_as(Fdrda)
    losses, single = losses_of(spec, p), as_one_step(instruction)
    n = losses.above if above else -losses.below
    for codes in _reaching(spec, losses, above=above):
        S, e_max = kept_sum(spec, codes)
        value = exact_of(spec, codes)
        if value is None or S - value != n * Fraction(2) ** (e_max - p.F):
            continue
        notes = (f"S − exact = {_text_of(losses, above=above)} · 2^({e_max} − {p.F})",)
        return shown_exact(single, codes, notes)
    return None


def _text_of(losses: StepLosses, *, above: bool) -> str:
    """A bound for a person, with its sign."""
    c = losses.c_above if above else losses.c_below
    text = f"{losses.losing} · {losses.product.units}"
    if c:
        places = c.denominator.bit_length() - 1
        whole = c + Fraction(1, 1 << places)
        text += f" + {whole} − 2^-{places}"
    return text if above else f"−({text})"


def settle_error_bound(instruction: Instruction, proving: Composing) -> Answer:
    """fdrda and gfdrda: a bound on either side."""
    answer = too_many(instruction, proving)
    if answer is not None:
        return answer
    x = bounds.step_frame(instruction.spec)
    low, high = (_text_of(x.losses, above=above) for above in (False, True))
    unit = f"the sum of a step is off at most so far {{}}, in units of 2^(e_max − {x.p.F})"
    numbers = (
        Number("below", x.losses.below, unit.format("below the exact one")),
        Number("above", x.losses.above, unit.format("above it")),
    )
    question = (
        f"{instruction.label}: in each step d = {x.spec.parameters.last_rounding}(S) with"
        f" {low} ≤ (S − exact) / 2^(e_max − {x.p.F}) ≤ {high}, and no closer bounds will do,"
        " products below 2^128"
    )
    question += ERRORS_OF_CHAIN if x.spec != instruction.spec else ""

    def prove() -> None:
        bounded = partial(bounds.prove_bound_of_rounding, proving, x)
        conclude_bound(proving, instruction.spec, x.spec, x.step, bounded)

    return settle_bound(question, proving, numbers, prove, _reached(instruction, x.losses))


def _reached(instruction: Instruction, losses: StepLosses) -> Iterator[tuple[str | None, str]]:
    """Yield by which inputs both bounds are reached, or why that is not known."""
    for above in (False, True):
        witness, bound = reach(instruction, above=above), _text_of(losses, above=above)
        if witness is None:
            yield None, f"both bounds are proved, but no input was found that reaches {bound}"
        else:
            codes = " ".join(inputs_text(witness.instruction.spec, witness.codes)[-1].split())
            yield f"{bound} reached, with {codes}: {witness.notes[0]}", ""
