"""Exactness of gdfs on codes; its proof is that of fda."""

from __future__ import annotations

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.facts.exactness_codes import (
    Number,
    Rounding,
    Roundings,
    addend,
    aligned,
    exponent_of,
    products,
    total,
)
from mmaformal.spec import DotAdd


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    p, terms = spec.parameters, products(spec, codes)
    assert isinstance(p, Gdfs)
    c = spec.c_format.value(codes.c)
    for start in range(0, spec.k, p.L):
        groups = [_group(spec, codes, g, terms[g : g + p.G]) for g in range(start, start + p.L, p.G)]
        whole = aligned([*groups, addend(c, spec.c_format)], p.F, p.e_zero)
        c += total(groups)
        yield Rounding(whole, c, p.rho)


def _group(spec: DotAdd, codes: Codes, start: int, terms: list[Number]) -> Number:
    """A group's sum, and the exponent of its scales."""
    scale, block = spec.scale_format, start // spec.scale_block
    assert scale is not None
    exponent = exponent_of(codes.scale_a[block], scale) + exponent_of(codes.scale_b[block], scale)
    return total(terms), exponent
