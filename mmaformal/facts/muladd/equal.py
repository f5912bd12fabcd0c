"""Why both wings' steps of muladd give the same code."""

from __future__ import annotations

from mmaformal.algorithms import Muladd
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import muladd as executable_muladd
from mmaformal.encodings.smt import muladd as smt_muladd
from mmaformal.encodings.smt.blocks import product_range
from mmaformal.proof.encoding_links import (
    add_codes,
    classify,
    decode,
    flags_and_zeros,
    inputs,
    multiply,
    round_and_encode,
)
from mmaformal.proof.lemmas import Argument, number


def derive(argument: Argument, traces: Traces[smt_muladd.Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Muladd)
    low = product_range(spec.a_format, spec.b_format).low
    a, b, c, *_ = inputs(argument, traces)
    for k, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_muladd.Step)
        u, v = executable.product, smt.product
        x = decode(argument, a[k], u.a, smt.a[0], spec.a_format)
        y = decode(argument, b[k], u.b, smt.b[0], spec.b_format)
        special = classify(argument, flags_and_zeros([x, y]), u.special, v.special)
        term = multiply(argument, [x, y], u.exact, v.exact, low)
        total = number(u.total, v.total, signed=True)
        argument.derive("multiply", "products with their signs are the same", [total], [*term])
        product = round_and_encode(
            argument,
            [total, term.exponent, term.sign],
            special=special,
            executable=u.rounded,
            smt=v.rounded,
            rho=parameters.product,
            results=(u.result, v.result),
        )
        c = add_codes(argument, [c, product], executable.addition, smt.addition, parameters.rho)
