"""Why a step of an emulation has related results in two runs on related inputs.

A word is made of one factor alone.  So the words of a product that has moved are the same terms, at another place of
its block; and those of a negated factor are what the unit's own argument derives of its operands, from the factor's
code.  What is left is that argument, of each product of words, and that related sums are added up to related ones.
"""

from __future__ import annotations

import z3

from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.facts.related import chain, in_order
from mmaformal.formats import fp32
from mmaformal.proof.kernel import ArgumentError
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing, RelatedStep, Runs


def derive(step: RelatedStep[emulated.EmulatedStep], argument: Pairing) -> Link:
    """Raises ArgumentError where products change from one block to another, or words have an exponent in common."""
    p, done, total = step.runs.left_spec.parameters, 0, step.c
    assert isinstance(p, Emulated)
    if p.common:
        raise ArgumentError("no argument is known where words have an exponent in common")
    spec, zero = step.runs.left_spec, z3.BitVecVal(0, fp32.storage_bits)
    converted = (spec.a_format, spec.b_format) != (p.unit.a_format, p.unit.b_format)
    for part in p.parts:
        each = part.every or p.blocks
        for first in range(0, p.blocks, each):
            left, right = step.left.runs[done], step.right.runs[done]
            blocks = [block for block in range(first, min(first + each, p.blocks)) for _ in part.products]
            before, partial = total, total
            if part.every:
                partial = step.derive(
                    "inputs", "both runs begin at zero", step.kind.code(zero, zero, fp32), []
                )
            for block, x, y in zip(blocks, left.chain, right.chain, strict=True):
                runs = Runs(
                    step.kind,
                    p.unit,
                    p.unit,
                    left=x,
                    right=y,
                    match=_within(step, p, block),
                    nans_keep_sign=p.rounding is not None or converted,  # a word has one NaN
                )
                partial = chain(argument, in_order(runs), partial)
            total = partial
            if part.every:
                link = step.kind.code(left.result, right.result, fp32)
                total = step.derive(
                    "accumulate", "sums of related numbers are related", link, [before, partial]
                )
            done += 1
    return total


def _within(step: RelatedStep[emulated.EmulatedStep], p: Emulated, block: int) -> list[int]:
    """Which of a block's products of the first run those of the second are."""
    k = p.unit.k
    match = [i - block * k for i in step.order[block * k : (block + 1) * k]]
    if not all(0 <= i < k for i in match):
        raise ArgumentError("no argument is known where products change from one block to another")
    return match
