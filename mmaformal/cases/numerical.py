"""Against the exact sum: what it is, and the search for a small case whose result shows something of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from mmaformal.cases.generate import Distribution, generate
from mmaformal.cases.inputs import Codes
from mmaformal.cases.run import run, run_both
from mmaformal.cases.shrink import shrink, size
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.instruction import Instruction
from mmaformal.shown_stages import exact_dot_add
from mmaformal.spec import DotAdd

Breaks = Callable[[Codes, int], bool]  #: whether a case, with its result, shows what is looked for

_BATCH = 200  #: cases that are run at once
_STARTS = 2  #: of those that show something, how many are made smaller


def exact_of(spec: DotAdd, codes: Codes) -> Fraction | None:
    """The exact c + Σ a·b; None if an input is an infinity or a NaN."""
    return exact_dot_add(spec, codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)


def find_case(
    instruction: Instruction,
    breaks: Breaks,
    *,
    count: int = 3000,
    distributions: Sequence[Distribution] = ("numbers",),
) -> Codes | None:
    """A small case that `breaks` holds for, or None if there is none among `count` of these distributions."""
    spec = instruction.spec

    def shows(cases: Sequence[Codes]) -> map[bool]:
        return map(breaks, cases, run(instruction, cases) if cases else [])

    for start in (*range(0, count, _BATCH), None):
        if start is None:  # at last, what was rounded away before c was added is all that is left
            cases = _cancelling(instruction, generate(spec, _BATCH, 0, distributions).cases())
        else:
            cases = generate(spec, _BATCH, start, distributions).cases()
        cases.sort(key=lambda codes: size(spec, codes))
        found = (codes for codes, so in zip(cases, shows(cases), strict=True) if so)
        small = [shrink(spec, codes, shows) for codes in islice(found, _STARTS)]
        if small:
            return min(small, key=lambda codes: size(spec, codes))
    return None


def _cancelling(instruction: Instruction, cases: Sequence[Codes]) -> list[Codes]:
    """Yields these products with the c that makes d zero if it is added last; none where c and d have other formats."""
    spec = instruction.spec
    if spec.c_format != spec.d_format or not spec.reads_c:
        return []
    alone = [replace(codes, c=0) for codes in cases]
    given = zip(alone, run(instruction, alone), strict=True)
    turned = spec.d_format.sign_mask if spec.c_sign > 0 else 0
    return [replace(codes, c=d ^ turned) for codes, d in given if spec.d_format.is_finite(d)]


def shown_exact(
    instruction: Instruction, codes: Codes, notes: Sequence[str], minimality: Sequence[str] = ()
) -> CaseWitness:
    """A case beside its exact sum.  Raises WitnessError if the encodings do not agree on it."""
    spec = instruction.spec
    run_of = Run("", spec, codes, run_both(instruction, codes))
    return CaseWitness(instruction, (run_of,), exact_of(spec, codes), tuple(notes), tuple(minimality))
