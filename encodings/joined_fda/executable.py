"""joined_fda, fused dot-add with one sticky bit for all terms, executable.  Specification: semantics §3.

Terms are aligned and added as those of fda.  Of each it is asked whether what was shifted out was anything but zeros;
if so of one, the magnitude of the sum has a last bit, below its own, that is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Special,
    Term,
    canonical_nan,
    clamp,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Aligned, Code, Stages
from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.spec import DotAdd


class JoinedStep(NamedTuple):
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    terms: tuple[Term, ...]  #: multiply; c last
    e_max: Lane  #: align
    sum: Aligned  #: accumulate
    lost: tuple[Flag, ...]  #: of each term, whether anything was cut off
    joined: Aligned
    code: Code  #: normalise & round, encode
    result: Lane


def is_cut(x: Term, e_max: Lane, places: int, F: int) -> Flag:
    """Whether a term of so many fractional bits, of which F are kept at e_max, loses anything."""
    value, n = x.significand << max(F - places, 0), clamp(e_max - x.exponent + max(places - F, 0), 0, 62)
    return (value >> n) << n != value


def _joined(total: Lane, lost: Sequence[Flag]) -> Lane:
    """Twice the sum, and one more in magnitude if anything was lost."""
    last = where(reduce(or_, lost), 1, 0)
    return where(total < 0, total * 2 - last, total * 2 + last)


def step(
    spec: DotAdd, p: JoinedFda, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> JoinedStep:
    """One step over L products."""
    x, y = (
        [stages.decode(code, fmt) for code in side] for side, fmt in ((a, spec.a_format), (b, spec.b_format))
    )
    z = stages.decode(c, spec.c_format)
    factors = list(zip(x, y, strict=True))
    special = stages.classify(factors, [z])
    terms = (*(stages.multiply(u, v, p.e_zero) for u, v in factors), stages.addend(z, p.e_zero))
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    places = [*[bits] * len(factors), spec.c_format.fraction_bits]
    e_max = stages.largest(terms)
    total = stages.accumulate(list(zip(terms, places, strict=True)), e_max, p.F)
    lost = tuple(is_cut(term, e_max, bits, p.F) for term, bits in zip(terms, places, strict=True))
    whole = stages.made("join", [*terms, e_max, total], Aligned((), _joined(total.total, lost)), lost=lost)
    code = stages.round(whole, e_max, p.F + 1, p.rho, special, canonical_nan(p.rho.format))
    return JoinedStep(tuple(x), tuple(y), z, special, terms, e_max, total, lost, whole, code, code.result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(JoinedFda), a, b, c, stages))
