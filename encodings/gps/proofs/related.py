"""Why a step of gps has related results in two runs on related inputs."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.gps.smt import flush
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    RelatedStep,
    _terms,
)


def derive(step: RelatedStep[gps.GpsStep]) -> Link:
    left, right, kind, fmt = step.left, step.right, step.kind, step.runs.left_spec.d_format
    G = len(step.order)
    codes: list[Link] = []
    factors = step.factors()
    for j, i in enumerate(step.order):
        link = kind.code(left.products[i], right.products[j], fmt)
        operands = _terms(left.a[i], left.b[i], right.a[j], right.b[j])
        codes.append(
            step.derive("multiply", "products are related", link, [factors[j]] if factors else [], operands)
        )
    # Sums of pairs, then of pairs of those: `order` are the places of the second run's numbers in the first.
    order, n, at = list(step.order), G, 0
    while n > 1:
        n //= 2
        pairs = []
        for j in range(n):
            i = order[2 * j] // 2
            pairs.append(_addition(step, left.sums[at + i], right.sums[at + j], codes[2 * j : 2 * j + 2]))
            order[j] = i
        codes, at = pairs, at + n
    return _addition(step, left.addition, right.addition, [step.c, *codes])


def _addition(step: RelatedStep[gps.GpsStep], left: Addition, right: Addition, given: Sequence[Link]) -> Link:
    """The link of two sums of gps, flushed."""
    kind, fmt = step.kind, step.runs.left_spec.d_format
    link = kind.code(left.result, right.result, fmt)
    step.derive("accumulate", "sums of related numbers are related", link, given)
    x, y = (flush(each.result, keep_sign=True) for each in (left, right))
    return step.derive("encode", "flushed alike", kind.code(x, y, fmt), [link])
