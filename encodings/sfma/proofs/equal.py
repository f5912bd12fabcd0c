"""Why both wings' steps of sfma give the same code."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable.blocks import Term
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import executable as executable_sfma
from mmaformal.encodings.sfma import smt as smt_sfma
from mmaformal.encodings.smt import blocks as smt_blocks
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
from mmaformal.rounding import Conversion, NanRule


def derive(argument: Argument, traces: Traces[smt_sfma.Step]) -> None:
    parameters = traces.spec.parameters
    assert isinstance(parameters, Sfma)
    a, b, c, *_ = inputs(argument, traces)
    for k, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_sfma.Step)
        c = fma(argument, parameters.rho, parameters.nan, (a[k], b[k], c), executable, smt)


def fma(
    argument: Argument,
    rho: Conversion,
    nan: NanRule,
    codes: tuple[Link, Link, Link],
    executable: executable_sfma.Step,
    smt: smt_sfma.Step,
) -> Link:
    """The link of the result, from those of three codes of ρ's format."""
    frame, low = smt_sfma.frame_bits(rho.fraction_bits + 1), smt_sfma.exponents_of(rho.format).low
    lanes, terms = (executable.a, executable.b, executable.c), (smt.a, smt.b, smt.c)
    x, y, z = (
        decode(argument, code, lane, term, rho.format)
        for code, lane, term in zip(codes, lanes, terms, strict=True)
    )
    special = classify(argument, flags_and_zeros([x, y, z]), executable.special, smt.special)
    addend = multiply(argument, [z], executable.addend, smt.addend, low)
    product = products(argument, x, y, executable, smt.product, low, frame)
    total = sums(argument, product, addend, executable, smt.sum, low, frame)
    return round_and_encode(
        argument,
        [*total, product.sign, addend.sign],
        special=special,
        executable=executable.rounded,
        smt=smt.rounded,
        rho=rho,
        results=(executable.result, smt.result),
        given=[*codes, x.nan, y.nan, z.nan] if nan is NanRule.FIRST else [],
    )


def products(
    argument: Argument,
    x: OperandLinks,
    y: OperandLinks,
    executable: executable_sfma.Step,
    smt: smt_blocks.Term,
    low: int,
    frame: int,
) -> TermLinks:
    """The links of the product; its significand is of two limbs where a lane is too short."""
    long = executable.long
    if long is None:
        assert isinstance(executable.product, Term)
        return multiply(argument, [x, y], executable.product, smt, low)
    shift = frame - smt.significand.size() + 2
    significand = long_product(argument, (x.significand, y.significand), long, smt.significand, shift)
    sign = number(executable.product.sign, smt.sign)
    exponent = number(executable.product.exponent, smt.exponent, low=low)
    given = [link for z in (x, y) for link in (z.sign, z.exponent, z.significand)]
    argument.derive("multiply", "signs and exponents of products are the same", [sign, exponent], given)
    return TermLinks(sign, exponent, significand)


def sums(
    argument: Argument,
    product: TermLinks,
    addend: TermLinks,
    executable: executable_sfma.Step,
    smt: smt_blocks.StickySum,
    low: int,
    frame: int,
) -> list[Link]:
    """The links of the exact sum and its exponent."""
    if executable.wide is not None:
        signs = product.sign.term, addend.sign.term
        return add_long(argument, product, addend, executable=executable.wide, signs=signs, smt=smt, low=low)
    total = number(executable.total.total, smt.total, signed=True)
    unit = number(executable.total.unit, smt.e_max, low=low - frame)
    text = "aligned terms have the same sum"
    return [*argument.derive("align", text, [total, unit], [*product, *addend])]
