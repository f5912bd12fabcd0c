"""Why both wings' steps of sfma give the same code."""

from __future__ import annotations

from typing import Any

from mmaformal.algorithms import Sfma
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import sfma as smt_sfma
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    add_long,
    classify,
    decode,
    flags_and_zeros,
    inputs,
    long_product,
    multiply,
    round_and_encode,
)
from mmaformal.proof.lemmas import Argument, Link, number


def derive(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Sfma)
    rho = parameters.rho
    frame = smt_sfma.frame_bits(rho.fraction_bits + 1)
    a, b, c, *_ = inputs(argument, traces)
    for k, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        x = decode(argument, a[k], mine.a, other.a, spec.a_format)
        y = decode(argument, b[k], mine.b, other.b, spec.b_format)
        z = decode(argument, c, mine.c, other.c, spec.c_format)
        special = classify(argument, flags_and_zeros([x, y, z]), mine.special, other.special)
        low = smt_sfma.exponents_of(rho.format).low
        addend = multiply(argument, [z], mine.addend, other.addend, low)
        total = (_long_fma if mine.long else _fma)(argument, x, y, addend, mine, other, low, frame)
        c = round_and_encode(
            argument,
            [*total, number(mine.product.sign, other.product.sign), addend.sign],
            special=special,
            mine=mine.rounded,
            other=other.rounded,
            rho=rho,
            results=(mine.result, other.result),
        )


def _fma(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    addend: TermLinks,
    mine: Any,
    other: Any,
    low: int,
    frame: int,
) -> list[Link]:
    """The links of the exact sum and its exponent, where product and sum fit in a lane."""
    product = multiply(argument, [x, y], mine.product, other.product, low)
    total = number(mine.total.total, other.sum.total, signed=True)
    unit = number(mine.total.unit, other.sum.e_max, low=low - frame)
    return [*argument.derive("align", "aligned terms have the same sum", [total, unit], [*product, *addend])]


def _long_fma(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    addend: TermLinks,
    mine: Any,
    other: Any,
    low: int,
    frame: int,
) -> list[Link]:
    """The same, where they do not."""
    product, sum_, wide = other.product, other.sum, mine.wide
    significand = long_product(
        argument,
        (x.significand, y.significand),
        mine.long,
        product.significand,
        frame - product.significand.size() + 2,
    )
    sign, exponent = (
        number(mine.product.sign, product.sign),
        number(mine.product.exponent, product.exponent, low=low),
    )
    given = [link for z in (x, y) for link in (z.sign, z.exponent, z.significand)]
    argument.derive("multiply", "signs and exponents of products are the same", [sign, exponent], given)
    signs = product.sign, other.addend.sign
    return add_long(
        argument, [sign, exponent, significand], y=addend, mine=wide, signs=signs, other=sum_, low=low
    )
