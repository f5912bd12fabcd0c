"""Why both encodings' steps of pfma give the same code."""

from __future__ import annotations

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable.blocks import Addition, Lane
from mmaformal.encodings.pfma import executable as executable_pfma
from mmaformal.encodings.pfma import smt as smt_pfma
from mmaformal.encodings.smt import ieee
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
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd


def derive(argument: Argument, traces: Traces[smt_pfma.PfmaStep]) -> None:
    spec = traces.spec
    a, b, c, *_ = inputs(argument, traces)
    L = spec.parameters.step_products
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_pfma.PfmaStep)
        (start,) = argument.derive(
            "inputs", "both encodings' sums start at zero", [Link(z3.BoolVal(True), ())]
        )
        sums = [start, start]
        for k, (u, v) in enumerate(zip(executable.fmas, smt.fmas, strict=True)):
            sums[k % 2] = fma(argument, spec, (a[i * L + k], b[i * L + k], sums[k % 2]), u, v)
        pair = _add(argument, sums, executable.pair, smt.pair, (executable.sum, smt.sum))
        c = _add(argument, [c, pair], executable.addition, smt.addition, (executable.result, smt.result))


def fma(
    argument: Argument,
    spec: DotAdd,
    codes: tuple[Link, Link, Link],
    executable: executable_pfma.Fma,
    smt: smt_pfma.Fma,
) -> Link:
    operands = [
        decode(argument, code, u, v, fmt, f"{fmt} codes are decoded alike, subnormals as zero")
        for code, u, v, fmt in zip(
            codes, executable[:3], (smt.a, smt.b, smt.c), (spec.a_format, spec.b_format, fp32), strict=True
        )
    ]
    x, y, z = operands
    special = classify(argument, flags_and_zeros(operands), executable.special, smt.special)
    low = smt_pfma.exponents_of(spec).low
    product = multiply(argument, [x, y], executable.product, smt.product, low)
    addend = multiply(argument, [z], executable.addend, smt.addend, low)
    total = number(executable.total.total, smt.sum.total, signed=True)
    unit = number(executable.total.unit, smt.sum.e_max, low=low - smt_pfma.FRAME)
    least = Link(z3.UGE(smt.sum.e_max, smt_pfma.LEAST - low), (smt.sum.e_max,))
    text = "aligned terms have the same sum"
    argument.derive("align", text, [total, unit, least], [*product, *addend])
    rounded = same_code(executable.number, smt.number)
    given = [total, unit, least, product.sign, addend.sign]
    argument.derive("round", "equal sums are rounded alike, and as tiny ones flushed", [rounded], given)
    result = same_code(executable.result, smt.result)
    nans = [each.nan for each in operands]
    text = "equal numbers and specials, and NaNs of equal codes, give the same code"
    argument.derive("encode", text, [result], [rounded, special, *nans, *codes])
    return result


def _add(
    argument: Argument,
    codes: list[Link],
    executable: Addition,
    smt: ieee.Addition,
    results: tuple[Lane, z3.BitVecRef],
) -> Link:
    number_ = add_codes(argument, codes, executable, smt, IEEE_FP32)
    result = same_code(*results)
    text = "equal sums are flushed alike, and NaNs of equal codes give the same code"
    argument.derive("encode", text, [result], [number_, *codes])
    return result
