"""Why both wings' steps of sfma give the same code."""

from __future__ import annotations

from mmaformal.algorithms import NanRule, Sfma
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import sfma as executable_sfma
from mmaformal.encodings.executable.blocks import Term
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


def derive(argument: Argument, traces: Traces[smt_sfma.Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Sfma)
    rho = parameters.rho
    frame = smt_sfma.frame_bits(rho.fraction_bits + 1)
    a, b, c, *_ = inputs(argument, traces)
    for k, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_sfma.Step)
        x = decode(argument, a[k], executable.a, smt.a, spec.a_format)
        y = decode(argument, b[k], executable.b, smt.b, spec.b_format)
        z = decode(argument, c, executable.c, smt.c, spec.c_format)
        special = classify(argument, flags_and_zeros([x, y, z]), executable.special, smt.special)
        low = smt_sfma.exponents_of(rho.format).low
        addend = multiply(argument, [z], executable.addend, smt.addend, low)
        total = (_long_fma if executable.long else _fma)(argument, x, y, addend, executable, smt, low, frame)
        c = round_and_encode(
            argument,
            [*total, number(executable.product.sign, smt.product.sign), addend.sign],
            special=special,
            executable=executable.rounded,
            smt=smt.rounded,
            rho=rho,
            results=(executable.result, smt.result),
            given=[a[k], b[k], c, x.nan, y.nan, z.nan] if parameters.nan is NanRule.FIRST else [],
        )


def _fma(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    addend: TermLinks,
    executable: executable_sfma.Step,
    smt: smt_sfma.Step,
    low: int,
    frame: int,
) -> list[Link]:
    """The links of the exact sum and its exponent, where product and sum fit in a lane."""
    assert isinstance(executable.product, Term)
    product = multiply(argument, [x, y], executable.product, smt.product, low)
    total = number(executable.total.total, smt.sum.total, signed=True)
    unit = number(executable.total.unit, smt.sum.e_max, low=low - frame)
    return [*argument.derive("align", "aligned terms have the same sum", [total, unit], [*product, *addend])]


def _long_fma(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    addend: TermLinks,
    executable: executable_sfma.Step,
    smt: smt_sfma.Step,
    low: int,
    frame: int,
) -> list[Link]:
    """The same, where they do not."""
    product, sum_, long, wide = smt.product, smt.sum, executable.long, executable.wide
    assert long is not None
    assert wide is not None
    significand = long_product(
        argument,
        (x.significand, y.significand),
        long,
        product.significand,
        frame - product.significand.size() + 2,
    )
    sign, exponent = (
        number(executable.product.sign, product.sign),
        number(executable.product.exponent, product.exponent, low=low),
    )
    given = [link for z in (x, y) for link in (z.sign, z.exponent, z.significand)]
    argument.derive("multiply", "signs and exponents of products are the same", [sign, exponent], given)
    signs = product.sign, smt.addend.sign
    return add_long(
        argument, [sign, exponent, significand], y=addend, executable=wide, signs=signs, smt=sum_, low=low
    )
