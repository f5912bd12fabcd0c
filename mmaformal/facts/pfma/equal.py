"""Why both wings' steps of pfma give the same code."""

from __future__ import annotations

from typing import Any

import z3

from mmaformal.algorithms import IEEE_FP32, DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import pfma as smt_pfma
from mmaformal.formats import fp32
from mmaformal.proof.encoding_links import (
    add_codes,
    classify,
    decode,
    flags_and_zeros,
    inputs,
    multiply,
    same_code,
)
from mmaformal.proof.lemmas import Argument, Link, number


def derive(argument: Argument, traces: Traces) -> None:
    spec = traces.spec
    a, b, c, *_ = inputs(argument, traces)
    L = spec.parameters.step_products
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        (start,) = argument.derive("inputs", "both wings' sums start at zero", [Link(z3.BoolVal(True), ())])
        sums = [start, start]
        for k, (u, v) in enumerate(zip(mine.fmas, other.fmas, strict=True)):
            sums[k % 2] = _fma(argument, spec, (a[i * L + k], b[i * L + k], sums[k % 2]), u, v)
        pair = _add(argument, sums, mine.pair, other.pair, (mine.sum, other.sum))
        c = _add(argument, [c, pair], mine.addition, other.addition, (mine.result, other.result))


def _fma(argument: Argument, spec: DotAdd, codes: tuple[Link, Link, Link], mine: Any, other: Any) -> Link:
    operands = [
        decode(argument, code, u, v, fmt, f"{fmt} codes are decoded alike, subnormals as zero")
        for code, u, v, fmt in zip(
            codes, mine[:3], other[:3], (spec.a_format, spec.b_format, fp32), strict=True
        )
    ]
    x, y, z = operands
    special = classify(argument, flags_and_zeros(operands), mine.special, other.special)
    low = smt_pfma.exponents_of(spec).low
    product = multiply(argument, [x, y], mine.product, other.product, low)
    addend = multiply(argument, [z], mine.addend, other.addend, low)
    total = number(mine.total.total, other.sum.total, signed=True)
    unit = number(mine.total.unit, other.sum.e_max, low=low - smt_pfma.FRAME)
    least = Link(z3.UGE(other.sum.e_max, smt_pfma.LEAST - low), (other.sum.e_max,))
    text = "aligned terms have the same sum"
    argument.derive("align", text, [total, unit, least], [*product, *addend])
    rounded = same_code(mine.number, other.number)
    given = [total, unit, least, product.sign, addend.sign]
    argument.derive("round", "equal sums are rounded alike, and as tiny ones flushed", [rounded], given)
    result = same_code(mine.result, other.result)
    nans = [each.nan for each in operands]
    text = "equal numbers and specials, and NaNs of equal codes, give the same code"
    argument.derive("encode", text, [result], [rounded, special, *nans, *codes])
    return result


def _add(argument: Argument, codes: list[Link], mine: Any, other: Any, results: tuple[Any, Any]) -> Link:
    number_ = add_codes(argument, codes, mine, other, IEEE_FP32)
    result = same_code(*results)
    text = "equal sums are flushed alike, and NaNs of equal codes give the same code"
    argument.derive("encode", text, [result], [number_, *codes])
    return result
