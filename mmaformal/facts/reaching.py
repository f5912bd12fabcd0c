"""An input of a step of fda or gdfs that loses as much as can be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

from mmaformal.cases.inputs import Codes, with_products, zeros
from mmaformal.cases.low_bits import encode_number, pairs_losing, product_codes
from mmaformal.cases.numerical import exact_of, shown_exact
from mmaformal.cases.one_step import as_one_step, one_step
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings import executable
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import executable as executable_fda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import executable as executable_gdfs
from mmaformal.facts.alignment import (
    NOTHING,
    Case,
    cases_of,
    exponent_ranges,
)
from mmaformal.facts.fused_steps import Fused, fused_step
from mmaformal.formats import Format, e2m1
from mmaformal.instruction import Instruction
from mmaformal.proof.fused import Loss
from mmaformal.spec import DotAdd, LossModel
from mmaformal.witness import WitnessError

# ---- fda and gdfs: an input that reaches the bound -------------------------------------------------------------------


def reaching(spec: DotAdd, x: Fused, case: Case) -> Codes | None:
    """An input of one step that loses `case.n` units."""
    p, M = spec.parameters, spec.c_format.fraction_bits
    assert isinstance(p, (Fda, Gdfs))
    r, f = exponent_ranges(spec, x), x.summands[0].fraction_bits
    high = r.c[1] if case.largest == "c" else r.far[1]
    low = r.c[0] if case.largest == "c" else r.far[0]
    for e_max in sorted(range(low, high + 1), key=abs):
        codes = _reaching_at(spec, x, case, e_max, f, M)
        if codes is not None:
            return codes
    return None


def _reaching_at(spec: DotAdd, x: Fused, case: Case, e_max: int, f: int, M: int) -> Codes | None:
    codes = zeros(spec)
    if case.largest == "c":
        c = encode_number(1 << M | case.at_top.significand, e_max, spec.c_format)
    elif case.addend.units:
        part, places = case.addend.significand, case.addend.places
        exponent = e_max - x.F - places + M
        normal = encode_number(1 << M | part, exponent, spec.c_format) if places <= M else None
        c = encode_number(part, exponent, spec.c_format) if normal is None else normal
    else:
        c = 0
    if c is None:
        return None
    codes = replace(codes, c=c)
    if spec.parameters.loss is LossModel.GROUPS:
        return _groups(spec, x, case, e_max, f, codes)
    formats = spec.a_format, spec.b_format
    wanted = [(case.at_top, e_max)] if case.largest == "product" else []
    wanted += [(case.near, e_max - x.F - case.near.places + f)] * case.neighbours
    wanted += [(case.far, e_max - x.F - case.far.places + f)] * case.others
    shift = 0
    if spec.scale_format is not None:  # one block: scales that bring its products to both sides of 0
        shift = 2 * ((wanted[0][1] + wanted[-1][1]) // 4)
        scale = spec.scale_format
        half = shift // 2 + scale.bias
        if not 0 <= half < (1 << scale.exponent_bits) - 1:
            return None
        codes = replace(codes, scale_a=(half,) * spec.scales, scale_b=(half,) * spec.scales)
    made: dict[tuple[Loss, int], tuple[int, int] | None] = {}
    for each in dict.fromkeys(wanted):
        loss, exponent = each
        part = loss.significand % (1 << loss.places)
        pairs = pairs_losing(part, loss.places, formats) if loss.units or loss is case.at_top else []
        made[each] = product_codes(pairs, exponent - shift, formats) if pairs else (0, 0)
        if made[each] is None:
            return None
    return with_products(codes, {k: made[each] for k, each in enumerate(wanted)})  # type: ignore[misc]


def _groups(spec: DotAdd, x: Fused, case: Case, e_max: int, f: int, codes: Codes) -> Codes | None:
    """Return codes that lose as much for gdfs, by sums of groups and the scales of each; None if none are found."""
    p, scale = spec.parameters_as(Gdfs), spec.scale_format
    assert scale is not None
    m, count = scale.fraction_bits, p.L // p.G
    wanted = [(NOTHING, e_max)] if case.largest == "product" else []
    wanted += [(case.near, e_max - x.F - case.near.places + f)] * case.neighbours
    wanted += [(case.far, e_max - x.F - case.far.places + f)] * case.others
    scales_a, scales_b = list(codes.scale_a), list(codes.scale_b)
    products: dict[int, tuple[int, int]] = {}
    for g, (loss, exponent) in zip(range(count), wanted, strict=True):
        made = _group(loss, exponent, m, scale, p.G)
        if made is None:
            return None
        pairs, (alpha, beta) = made
        products |= {g * p.G + k: pair for k, pair in enumerate(pairs)}
        block = g * p.G // spec.scale_block
        scales_a[block], scales_b[block] = alpha, beta
    return with_products(replace(codes, scale_a=tuple(scales_a), scale_b=tuple(scales_b)), products)


def _group(
    loss: Loss, exponent: int, m: int, scale: Format, G: int
) -> tuple[list[tuple[int, int]], tuple[int, int]] | None:
    """(e2m1 factors, scales) of a group whose significand ends with the part that `loss` loses."""
    low, high = scale.min_exponent, scale.max_exponent
    for u, v in sorted(
        ((u, v) for u in range(1, 2 << m) for v in range(1, 2 << m)), key=lambda pair: -min(pair)
    ):
        total = loss.significand // (u * v) if loss.units else 4
        if loss.units and total * u * v != loss.significand:
            continue
        pairs = _e2m1_sum(total, G)
        if pairs is None:
            continue
        for e in sorted(range(low, high + 1), key=lambda e: abs(2 * e - exponent)):
            a, b = _scale_code(u, e, scale), _scale_code(v, exponent - e, scale)
            if a is not None and b is not None:
                return pairs, (a, b)
    return None


def _scale_code(significand: int, exponent: int, scale: Format) -> int | None:
    if scale.has_zero:
        return encode_number(significand, exponent, scale)
    field = exponent + scale.bias
    return field if 0 <= field < (1 << scale.exponent_bits) - 1 else None


@cache
def _e2m1_sums(G: int) -> list[dict[int, tuple[int, int, int]]]:
    """After each of G products: sum (in units of 1/4) → the sum before, and the codes of the last product's factors."""
    codes = {int(2 * e2m1.value(code)): code for code in range(8)}
    minus = {-x: code | e2m1.sign_mask for x, code in codes.items() if x}
    coins = {x * y: (codes[x], code) for x in codes for y, code in (codes | minus).items()}
    layers: list[dict[int, tuple[int, int, int]]] = [{0: (0, 0, 0)}]
    for _ in range(G):
        layer: dict[int, tuple[int, int, int]] = {}
        for before in layers[-1]:
            for coin, pair in coins.items():
                layer.setdefault(before + coin, (before, *pair))
        layers.append(layer)
    return layers


def _e2m1_sum(total: int, G: int) -> list[tuple[int, int]] | None:
    """Codes of G pairs of e2m1 numbers whose products add up to `total` / 4; None if there are none."""
    layers = _e2m1_sums(G)
    if total not in layers[G]:
        return None
    pairs = []
    for layer in reversed(layers[1:]):
        total, a, b = layer[total]
        pairs.append((a, b))
    return pairs


def rounded_sum(spec: DotAdd, x: Fused, codes: Codes) -> tuple[Fraction, int]:
    """(S, e_max) of one step of the executable encoding."""
    scales = (list(codes.scale_a), list(codes.scale_b)) if spec.scale_format is not None else ()
    step = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c, *scales).steps[0]
    assert isinstance(step, (executable_fda.FdaStep, executable_gdfs.GdfsStep))
    return Fraction(step.total) * Fraction(2) ** (step.e_max - x.F), step.e_max


def least_n(instruction: Instruction) -> Fraction:
    """The n of an instruction of fda or gdfs."""
    spec = one_step(instruction.spec)
    return max(case.n for case in cases_of(spec, fused_step(spec)))


def reach(instruction: Instruction) -> CaseWitness | None:
    """An input of one step of fda or gdfs that loses n units, in both encodings; None if none was found.

    Raises WitnessError if it loses another number.
    """
    spec = one_step(instruction.spec)
    x = fused_step(spec)
    case = max(cases_of(spec, x), key=lambda case: case.n)
    codes = reaching(spec, x, case)
    if codes is None:
        return None
    single = as_one_step(instruction)
    value = exact_of(spec, codes)
    total, e_max = rounded_sum(spec, x, codes)
    if value is None or abs(total - value) != case.n * Fraction(2) ** (e_max - x.F):
        raise WitnessError(f"{instruction.label}: {codes} was to lose {case.n} units, and does not")
    notes = (f"S − exact = {(total - value) / Fraction(2) ** (e_max - x.F)} · 2^({e_max} − {x.F})",)
    return shown_exact(single, codes, notes)
