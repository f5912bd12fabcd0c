"""Why both encodings' steps of gps, and of oddsum, give the same code."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.gps import executable as executable_gps
from mmaformal.encodings.gps import smt as smt_gps
from mmaformal.proof.encoding_links import (
    add_codes,
    decode_flushed,
    inputs,
    same_code,
)
from mmaformal.proof.lemmas import Argument, Link


def derive(argument: Argument, traces: Traces[smt_gps.GpsStep]) -> None:
    """Codes from the products on.  Flushing them is part of what is made of them next."""
    spec, L, rho = traces.spec, traces.spec.parameters.step_products, traces.spec.parameters.last_rounding
    a, b, d, *_ = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_gps.GpsStep)
        level: list[Link] = []
        for k, product in enumerate(executable.products):
            operands = (
                (a, product.a, smt.a[k], spec.a_format),
                (b, product.b, smt.b[k], spec.b_format),
            )
            given = [
                link
                for codes, u, v, fmt in operands
                for link in decode_flushed(argument, codes[i * L + k], u, v, fmt)
            ]
            rounded = same_code(product.result, smt.products[k])
            level += argument.derive("multiply", "rounded products are the same", [rounded], given)
        sums = iter(zip(executable.sums, smt.sums, strict=True))
        while len(level) > 1:
            level = [
                add_codes(argument, [x, y], *next(sums), rho)
                for x, y in zip(level[::2], level[1::2], strict=True)
            ]
        d = add_codes(argument, [d, level[0]], executable.addition, smt.addition, rho)
    result = same_code(traces.executable.result, traces.smt.result)
    argument.derive("encode", "results are flushed alike", [result], [d])
