"""For each algorithm, how a trace of the executable wing is told: rows of stage, what, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from typing import Any

from mmaformal.algorithms import DotAdd
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, fp32, hex_float


@dataclass(frozen=True, repr=False)
class Row(ShortRepr):
    """One line of the telling: a stage, what it is about, and what came out there."""

    stage: str
    label: str
    text: str


@dataclass(frozen=True, repr=False)
class ToldStep(ShortRepr):
    """The rows of one step; `idle` if its products are all zero and it only passes c on."""

    rows: list[Row]
    idle: bool = False


Steps = list[ToldStep]


# ---- numbers ------------------------------------------------------------------------------------------------------


def decimal_text(value: Fraction, digits: int = 17) -> str:
    """An exact decimal if `digits` significant digits hold it, else one that starts with ≈."""
    with localcontext(Context(prec=digits)) as context:
        rounded = Decimal(value.numerator) / Decimal(value.denominator)
        inexact = bool(context.flags[Inexact])
    return f"{'≈' if inexact else ''}{rounded:g}"


def number_text(value: Fraction) -> str:
    """`0x1.8p-2 = 0.375`."""
    decimal = decimal_text(value)
    return f"{hex_float(value)} {decimal}" if decimal.startswith("≈") else f"{hex_float(value)} = {decimal}"


def code_text(code: int, fmt: Format) -> str:
    """`0x3c00  0x1p+0 = 1`, or `0x7fff  nan`."""
    digits = -(-fmt.storage_bits // 4)
    if not fmt.is_finite(code) or fmt.value(code) == 0:
        return f"{code:#0{digits + 2}x}  {fmt.text(code)}"
    return f"{code:#0{digits + 2}x}  {number_text(fmt.value(code))}"


def _hex(value: Fraction, digits: int = 40) -> str:
    """A hexadecimal float; of one with very many digits the first ones, then `…`."""
    text = hex_float(value)
    head, _, exponent = text.partition("p")
    return f"{head[:digits]}…p{exponent}" if len(head) > digits else text


def _scaled(significand: int, exponent: int) -> Fraction:
    return Fraction(significand) * Fraction(2) ** exponent


def _term(term: Any, fraction_bits: int) -> Fraction:
    """The value of a `Term` or `Operand` of the executable wing."""
    return _scaled(-term.significand if term.sign else term.significand, term.exponent - fraction_bits)


def _code(lane: int, fmt: Format) -> int:
    """The code in a lane, which is signed: one of 64 bits may be negative there."""
    return lane & (fmt.codes - 1)


def _kept_and_lost(kept: Fraction, exact: Fraction) -> str:
    return _hex(kept) + (f"  (lost {_hex(exact - kept)})" if kept != exact else "")


# ---- rows that several algorithms share ---------------------------------------------------------------------------


def _special(special: Any, result: int, d: Format) -> list[Row]:
    """The rows of a step that special values decide, or none."""
    result = _code(result, d)
    for flag, text in (
        (special.nan, "NaN"),
        (special.positive_infinity, "+∞"),
        (special.negative_infinity, "−∞"),
    ):
        if flag:
            return [Row("classify", "special value", text), Row("encode", "d", code_text(result, d))]
    return []


def _ending(total: Fraction, result: int, d: Format) -> list[Row]:
    """The sum, what its rounding dropped, and d."""
    result = _code(result, d)
    rows = [Row("accumulate", "sum", _hex(total))]
    if d.is_finite(result):
        lost = total - d.value(result)
        rows.append(Row("round", "rounded away", _hex(lost) if lost else "nothing"))
    else:
        rows.append(Row("round", "overflow", "to infinity"))
    return [*rows, Row("encode", "d", code_text(result, d))]


def _entering(spec: DotAdd, trace: Any, c: int) -> list[int]:
    """The c of every step, a code."""
    return [c, *(_code(step.result, spec.d_format) for step in trace.steps[:-1])]


def _name(k: int) -> str:
    return f"a[{k}]·b[{k}]"


# ---- the algorithms -------------------------------------------------------------------------------------------------


def _idle(zero: bool, operands: Iterable[Any]) -> bool:
    """Whether products that are `zero` by their significands are products of numbers (∞·0 is none)."""
    return zero and not any(x.nan or x.infinite for x in operands)


def _sfma(spec: DotAdd, trace: Any, c: int) -> Steps:
    bits, d = spec.a_format.fraction_bits, spec.d_format
    steps: Steps = []
    for k, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        special = _special(step.special, step.result, d)
        zero = step.a.significand * step.b.significand == 0
        idle = _idle(zero, (step.a, step.b)) and entering == _code(step.result, d)
        if special:
            steps.append(ToldStep(special, idle))
            continue
        product = _term(step.a, bits) * _term(step.b, bits)
        rows = [Row("multiply", _name(k), _hex(product))]
        rows += _ending(product + _term(step.c, bits), step.result, d)
        steps.append(ToldStep(rows, idle))
    return steps


def _gps(spec: DotAdd, trace: Any, c: int) -> Steps:
    G = spec.parameters["G"]
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        idle = all(p.result & 0x7FFFFFFF == 0 for p in step.products) and entering == step.result
        rows = []
        for i, product in enumerate(step.products):
            text = code_text(product.result, fp32)
            exact = _term(product.exact, bits)
            special = (
                product.special.nan or product.special.positive_infinity or product.special.negative_infinity
            )
            if fp32.is_finite(product.result) and exact != fp32.value(product.result):
                text += f"  (lost {_hex(exact - fp32.value(product.result))})"
            if exact or special:
                rows.append(Row("multiply", _name(number * G + i), text))
        rows += [Row("pairwise", f"sum {i}", code_text(s.result, fp32)) for i, s in enumerate(step.sums)]
        rows.append(Row("group", "flushed", code_text(step.group, fp32)))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        steps.append(ToldStep(rows, idle))
    return steps


def _fda_step(spec: DotAdd, step: Any, F: int, names: Iterable[str]) -> list[Row]:
    special = _special(step.special, step.result, spec.d_format)
    if special:
        return special
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    unit = step.e_max - F
    rows = [Row("align", "largest exponent", str(step.e_max))]
    for name, product, aligned in zip(names, step.products, step.aligned, strict=True):
        if product.significand:
            rows.append(Row("align", name, _kept_and_lost(_scaled(aligned, unit), _term(product, bits))))
    if step.addend.significand:
        exact = _term(step.addend, spec.c_format.fraction_bits)
        rows.append(Row("align", "c", _kept_and_lost(_scaled(step.aligned_c, unit), exact)))
    return rows + _ending(_scaled(step.total, unit), step.result, spec.d_format)


def _fda(spec: DotAdd, trace: Any, c: int) -> Steps:
    F, L = spec.parameters["F"], spec.parameters["L"]
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        zero = not any(p.significand for p in step.products)
        operands = (*step.a, *step.b, *step.scale_a, *step.scale_b)
        idle = _idle(zero, operands) and entering == step.result
        names = [_name(number * L + i) for i in range(L)]
        steps.append(ToldStep(_fda_step(spec, step, F, names), idle))
    return steps


def _lowered(spec: DotAdd, trace: Any, c: int) -> Steps:
    p = spec.parameters
    order, inner = p["order"], p.inner_dot_add(spec)  # type: ignore[attr-defined]
    fused = len(order) // p["L"]
    steps: Steps = []
    for start in range(0, len(trace.steps), fused + 1):
        first = start // (fused + 1) * len(order)
        for i in range(fused):
            step = trace.steps[start + i]
            names = [_name(first + k) for k in order[i * p["L"] : (i + 1) * p["L"]]]
            idle = _idle(not any(x.significand for x in step.products), (*step.a, *step.b))
            steps.append(ToldStep(_fda_step(inner, step, p["F"], names), idle))
        addition = trace.steps[start + fused]
        special = _special(addition.special, addition.result, spec.d_format)
        bits = spec.d_format.fraction_bits
        total = _term(addition.x, bits) + _term(addition.y, bits)
        adding = [Row("add c", "fused sum", _hex(_term(addition.x, bits)))]
        steps.append(ToldStep(special or adding + _ending(total, addition.result, spec.d_format)))
    return steps


def _gdfs(spec: DotAdd, trace: Any, c: int) -> Steps:
    F, G = spec.parameters["F"], spec.parameters["G"]
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        special = _special(step.special, step.result, spec.d_format)
        zero = not any(g.significand for g in step.groups)
        idle = _idle(zero, (*step.scale_a, *step.scale_b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        scale = spec.scale_format
        assert scale is not None
        bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2 * scale.fraction_bits
        unit = step.e_max - F
        rows = [Row("align", "largest exponent", str(step.e_max))]
        for i, (group, aligned) in enumerate(zip(step.groups, step.aligned, strict=True)):
            if group.significand:
                first = (number * len(step.groups) + i) * G
                label = f"group {first}…{first + G - 1}"
                rows.append(Row("align", label, _kept_and_lost(_scaled(aligned, unit), _term(group, bits))))
        if step.addend.significand:
            exact = _term(step.addend, spec.c_format.fraction_bits)
            rows.append(Row("align", "c", _kept_and_lost(_scaled(step.aligned_c, unit), exact)))
        steps.append(ToldStep(rows + _ending(_scaled(step.total, unit), step.result, spec.d_format), idle))
    return steps


def _fdrda(spec: DotAdd, trace: Any, c: int) -> Steps:
    p = spec.parameters
    F, L, dot_bits = p["F"], p["L"], p["dot_bits"]
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        special = _special(step.special, step.result, spec.d_format)
        zero = not any(x.significand for x in step.products)
        idle = _idle(zero, (*step.a, *step.b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        rows = []
        stride = len(step.dots)
        names = ("products",) if stride == 1 else ("even products", "odd products")
        for g, (dot, name) in enumerate(zip(step.dots, names, strict=True)):
            if not any(x.significand for x in step.products[g::stride]):
                continue
            rows.append(Row("align", f"largest exponent, {name}", str(dot.e_max)))
            for i, aligned in enumerate(dot.aligned):
                product = step.products[g + i * stride]
                if product.significand:
                    text = _kept_and_lost(_scaled(aligned, dot.e_max - F), _term(product, bits))
                    rows.append(Row("align", _name(number * L + g + i * stride), text))
            rows.append(Row("accumulate", f"sum of {name}", _hex(_scaled(dot.total, dot.e_max - F))))
        exact_dots = sum((_scaled(dot.total, dot.e_max - F) for dot in step.dots), Fraction(0))
        if stride > 1:
            joined = _scaled(step.dot.total, step.dot.e_max - F)
            rows.append(Row("accumulate", "even + odd", _kept_and_lost(joined, exact_dots)))
        rows.append(Row("align", "largest exponent with c", str(step.e_max)))
        cut_dot = _scaled(step.cut_dot, step.e_max - dot_bits)
        rows.append(
            Row(
                "align",
                "sum of products",
                _kept_and_lost(cut_dot, _scaled(step.dot.total, step.dot.e_max - F)),
            )
        )
        if step.c.significand:
            cut_c = _scaled(step.cut_c, step.e_max - F)
            rows.append(Row("align", "c", _kept_and_lost(cut_c, _term(step.c, spec.c_format.fraction_bits))))
        total = _scaled(step.total, step.e_max - dot_bits)
        cut_total = _scaled(step.cut_total.total, step.cut_total.unit)
        rows.append(Row("accumulate", "sum with c", _kept_and_lost(cut_total, total)))
        steps.append(ToldStep(rows + _ending(cut_total, step.result, spec.d_format)[1:], idle))
    return steps


def _efda(spec: DotAdd, trace: Any, c: int) -> Steps:
    L = spec.parameters["L"]
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        special = _special(step.special, step.result, spec.d_format)
        zero = not any(x.significand for x in step.products)
        idle = _idle(zero, (*step.a, *step.b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        products = [_term(x, bits) for x in step.products]
        rows = [Row("multiply", _name(number * L + i), _hex(x)) for i, x in enumerate(products) if x]
        total = sum(products, _term(step.addend, spec.c_format.fraction_bits))
        steps.append(ToldStep(rows + _ending(total, step.result, spec.d_format), idle))
    return steps


def _pfma(spec: DotAdd, trace: Any, c: int) -> Steps:
    L, bits = spec.parameters["L"], spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, _entering(spec, trace, c), strict=True)):
        zero = not any(x.product.significand for x in step.fmas)
        factors = [x for each in step.fmas for x in (each.a, each.b)]
        idle = _idle(zero, factors) and entering == step.result
        rows = []
        for k, each in enumerate(step.fmas):
            exact = _term(each.product, bits)
            if each.product.significand or each.special.nan:
                name, sum_ = _name(number * L + k), f"sum {k % 2}"
                if fp32.is_finite(each.result):
                    lost = exact + _term(each.addend, fp32.fraction_bits) - fp32.value(each.result)
                    rows.append(Row("multiply", name, _hex(exact)))
                    text = code_text(each.result, fp32) + (f"  (lost {_hex(lost)})" if lost else "")
                else:
                    text = code_text(each.result, fp32)
                rows.append(Row("accumulate", f"{sum_} with {name}", text))
        rows.append(Row("pairwise", "sum 0 + sum 1", code_text(step.sum, fp32)))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        steps.append(ToldStep(rows, idle))
    return steps


def _untold(spec: DotAdd, trace: Any, c: int) -> Steps:
    """Of an algorithm that has no teller: the result of each step."""
    codes = [_code(step.result, spec.d_format) for step in trace.steps]
    return [ToldStep([Row("encode", "d", code_text(code, spec.d_format))]) for code in codes]


def teller_of(spec: DotAdd) -> Callable[[DotAdd, Any, int], Steps]:
    return TELLERS.get(spec.parameters.algorithm, _untold)


TELLERS: dict[str, Callable[[DotAdd, Any, int], Steps]] = {
    "sfma": _sfma,
    "gps": _gps,
    "fda": _fda,
    "lowered": _lowered,
    "gdfs": _gdfs,
    "fdrda": _fdrda,
    "gfdrda": _fdrda,
    "efda": _efda,
    "pfma": _pfma,
}
