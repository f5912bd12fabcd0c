"""What the numerical properties have in common: a case that shows something, and how one is found and made small.

A case is looked for among many, made of few products of simple and of extreme numbers, in the executable wing; then it
is made smaller as long as it still shows the same.  Before anyone sees it, both wings have given the same result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.inputs import Codes
from mmaformal.display import HtmlText, short_text
from mmaformal.encodings import smt
from mmaformal.explain import code_text, number_text
from mmaformal.formats import Format, Specials
from mmaformal.instruction import Instruction
from mmaformal.witness import WitnessError, case_size

# ---- running -----------------------------------------------------------------------------------------------------


def run(instruction: Instruction, cases: Sequence[Codes]) -> list[int]:
    """The codes of d of many cases, by the executable wing."""
    spec = instruction.spec

    def array(side: list[Any], fmt: Format) -> np.ndarray[Any, Any]:
        return np.array(side, fmt.word)

    scales = []
    if spec.scale_format is not None:
        scales = [array([getattr(x, s) for x in cases], spec.scale_format) for s in ("scale_a", "scale_b")]
    a, b = array([x.a for x in cases], spec.a_format), array([x.b for x in cases], spec.b_format)
    return [int(d) for d in instruction.dot_add(a, b, array([x.c for x in cases], spec.c_format), *scales)]


def run_both(instruction: Instruction, codes: Codes) -> int:
    """The code of d that both wings give.  Raises WitnessError if they do not agree."""
    spec = instruction.spec
    (mine,) = run(instruction, [codes])

    def terms(side: Sequence[int], fmt: Format | None) -> list[z3.BitVecRef]:
        return [z3.BitVecVal(x, fmt.storage_bits) for x in side] if fmt is not None else []

    a, b, (c,) = terms(codes.a, spec.a_format), terms(codes.b, spec.b_format), terms([codes.c], spec.c_format)
    scales = terms(codes.scale_a, spec.scale_format), terms(codes.scale_b, spec.scale_format)
    other: int = z3.simplify(smt.dot_add(spec, a, b, c, *scales).result).as_long()
    both_nan = spec.d_format.is_nan(mine) and spec.d_format.is_nan(other)
    if mine != other and not (both_nan and not spec.nan_is_canonical):
        raise WitnessError(f"{instruction.label}: the wings disagree on {codes}: {mine:#x} and {other:#x}")
    return mine


def exact(spec: DotAdd, codes: Codes) -> Fraction | None:
    """The exact c + Σ a·b; None if an input is an infinity or a NaN."""
    scale = spec.scale_format
    if scale is not None and not all(map(scale.is_finite, (*codes.scale_a, *codes.scale_b))):
        return None
    if not spec.c_format.is_finite(codes.c):
        return None
    total = spec.c_format.value(codes.c)
    for k, (x, y) in enumerate(zip(codes.a, codes.b, strict=True)):
        if not (spec.a_format.is_finite(x) and spec.b_format.is_finite(y)):
            return None
        if x and y:
            product = spec.a_format.value(x) * spec.b_format.value(y)
            if scale is not None:
                block = k // spec.scale_block
                product *= scale.value(codes.scale_a[block]) * scale.value(codes.scale_b[block])
            total += product
    return total


def size(spec: DotAdd, codes: Codes) -> tuple[int, ...]:
    """How large a case is: as `witness.case_size` has it, then codes that are not 0."""
    size = case_size(spec, codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)
    return (*size, sum(map(bool, (*codes.a, *codes.b, codes.c))))


# ---- what is shown -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Shown(HtmlText):
    """Inputs, what the instruction makes of them, and what that shows."""

    instruction: Instruction
    codes: Codes
    result: int  #: the code of d, in both wings
    exact: Fraction | None  #: c + Σ a·b
    notes: tuple[str, ...]  #: what is to be seen
    minimality: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        spec, codes = self.instruction.spec, self.codes
        sides = {"a": codes.a, "b": codes.b, "scale_a": codes.scale_a, "scale_b": codes.scale_b}
        return {
            "instruction": self.instruction.label,
            **{name: [hex(x) for x in side] for name, side in sides.items() if side},
            "c": hex(codes.c),
            "result": hex(self.result),
            "exact": None if self.exact is None else str(self.exact),
            "notes": list(self.notes),
            "minimality": list(self.minimality),
            "types": spec.types,
        }

    def __str__(self) -> str:
        spec = self.instruction.spec
        lines = inputs_text(spec, self.codes)
        if self.exact is not None:
            lines.append(f"  exact     {number_text(self.exact)}")
        lines.append(f"  d         {code_text(self.result, spec.d_format)}")
        lines += ["", *self.notes]
        if self.minimality:
            lines += ["", "minimal?", *(f"  {line}" for line in self.minimality)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        result = f"d = {code_text(self.result, self.instruction.d_format)}"
        return short_text(self, self.instruction.label, result, *self.notes[:1])


def inputs_text(spec: DotAdd, codes: Codes) -> list[str]:
    """A case for a person; products of two codes 0 are left out."""
    shown = [k for k in range(spec.k) if codes.a[k] or codes.b[k]]
    hidden = spec.k - len(shown)
    lines = ["inputs" + (f"  ({hidden} products of the codes 0 not shown)" if hidden else "")]
    for k in shown:
        lines.append(f"  a[{k}]".ljust(12) + code_text(codes.a[k], spec.a_format))
        lines.append(f"  b[{k}]".ljust(12) + code_text(codes.b[k], spec.b_format))
    lines.append("  c".ljust(12) + code_text(codes.c, spec.c_format))
    if spec.scale_format is not None:
        for side, scales in (("a", codes.scale_a), ("b", codes.scale_b)):
            lines += [
                f"  scale_{side}[{i}]".ljust(14) + code_text(x, spec.scale_format)
                for i, x in enumerate(scales)
            ]
    return lines


# ---- searching ---------------------------------------------------------------------------------------------------


def one(fmt: Format) -> int:
    """The code of 1."""
    return fmt.bias << (fmt.fraction_bits + fmt.ignored_low_bits)


def zeros(spec: DotAdd) -> Codes:
    """All codes 0, scales of 1."""
    scales = (one(spec.scale_format),) * spec.scales if spec.scale_format is not None else ()
    return Codes((0,) * spec.k, (0,) * spec.k, 0, scales, scales)


def with_products(codes: Codes, products: dict[int, tuple[int, int]]) -> Codes:
    """The same with some pairs (a_k, b_k) replaced."""
    a, b = list(codes.a), list(codes.b)
    for k, (x, y) in products.items():
        a[k], b[k] = x, y
    return replace(codes, a=tuple(a), b=tuple(b))


def negated(code: int, fmt: Format) -> int:
    """The code of the opposite number; 0 where a format has no −0."""
    return code if fmt.specials == Specials.FNUZ and code == 0 else code ^ fmt.sign_mask


def numbers(fmt: Format, rng: random.Random, near: int | None = None) -> Iterator[int]:
    """Codes of finite numbers without end: simple and extreme significands, exponents anywhere or near one."""
    low, ones = fmt.ignored_low_bits, (1 << fmt.fraction_bits) - 1
    top = fmt.max_exponent + fmt.bias
    while True:
        if near is None:
            field = rng.choice((0, 0, 1, top - 1, top, rng.randint(0, top), rng.randint(0, top)))
        else:
            field = min(max(near + fmt.bias + rng.choice((0, 0, 0, 1, -1, 2, -2)), 0), top)
        fraction = rng.choice((0, 0, 1, ones, max(ones - 1, 0), (ones + 1) // 2, rng.randint(0, ones)))
        code = ((field << fmt.fraction_bits) + fraction) << low | rng.choice((0, fmt.sign_mask))
        if fmt.is_finite(code):
            yield code


def sparse_cases(spec: DotAdd, count: int, seed: int = 0) -> list[Codes]:
    """Cases of one to three products and c, or of many equal ones: cancelling, near each other, or far apart."""
    rng = random.Random(seed)
    places = sorted({0, 1 % spec.k, spec.k // 2, spec.k - 1})
    out: list[Codes] = []
    while len(out) < count:
        codes = zeros(spec)
        if spec.scale_format is not None and rng.random() < 0.3:
            near = rng.randint(-6, 6)
            scales = [next(numbers(spec.scale_format, rng, near)) for _ in range(2 * spec.scales)]
            codes = replace(codes, scale_a=tuple(scales[: spec.scales]), scale_b=tuple(scales[spec.scales :]))
        exponents = [rng.randint(f.min_exponent, f.max_exponent) for f in (spec.a_format, spec.b_format)]
        products: dict[int, tuple[int, int]] = {}
        n = rng.choice((1, 2, 2, 3))
        for k in rng.sample(places, min(n, len(places))):
            near_a, near_b = exponents if rng.random() < 0.5 else (None, None)
            products[k] = next(numbers(spec.a_format, rng, near_a)), next(numbers(spec.b_format, rng, near_b))
        used = list(products)
        if len(used) > 1 and rng.random() < 0.7:
            x, y = products[used[0]]
            products[used[1]] = negated(x, spec.a_format), y
        if rng.random() < 0.15:
            products = dict.fromkeys(range(spec.k), products[used[0]])
        c = next(numbers(spec.c_format, rng, sum(exponents) if rng.random() < 0.4 else None))
        if rng.random() < 0.25:
            c = 0
        codes = replace(with_products(codes, products), c=c)
        if all(spec.a_format.is_finite(x) and spec.b_format.is_finite(y) for x, y in products.values()):
            out.append(codes)
    return out


_BATCH = 200  #: cases that are run at once

Breaks = Callable[[Codes, int], bool]  #: whether a case, with its result, shows what is looked for


def find_case(instruction: Instruction, breaks: Breaks, *, count: int = 3000, seed: int = 0) -> Codes | None:
    """A small case that `breaks` holds for, or None if there is none among `count`."""
    for start in range(0, count, _BATCH):
        cases = sparse_cases(instruction.spec, _BATCH, seed + start)
        cases.sort(key=lambda codes: size(instruction.spec, codes))
        for codes, result in zip(cases, run(instruction, cases), strict=True):
            if breaks(codes, result):
                return shrink(instruction, codes, breaks)
    return None


def shrink(instruction: Instruction, codes: Codes, breaks: Breaks) -> Codes:
    """The case made smaller, one step after another, as long as `breaks` still holds."""
    spec = instruction.spec
    least = size(spec, codes)
    progress = True
    while progress:
        progress = False
        smaller = []
        for candidate in _simpler(spec, codes):
            measure = size(spec, candidate)
            if measure < least:
                smaller.append((measure, candidate))
        smaller.sort(key=lambda pair: pair[0])
        results = run(instruction, [x for _, x in smaller]) if smaller else []
        for (measure, candidate), result in zip(smaller, results, strict=True):
            if breaks(candidate, result):
                codes, least, progress = candidate, measure, True
                break
    return codes


def _simpler(spec: DotAdd, codes: Codes) -> Iterator[Codes]:
    """Cases that differ in one place or two: a zero, a significand bit cleared, an exponent nearer 0, scales of 1."""

    def simpler(code: int, fmt: Format) -> Iterator[int]:
        low = fmt.ignored_low_bits
        sign, field, fraction = fmt.fields(code)
        top = sign << (fmt.storage_bits - 1) if fmt.signed else 0

        def made(field: int, fraction: int) -> int:
            return (((field << fmt.fraction_bits) + fraction) << low) | top

        if code & fmt.sign_mask:
            yield code ^ fmt.sign_mask
        yield made(field, 0)
        for i in range(fmt.fraction_bits):
            if fraction >> i & 1:
                yield made(field, fraction ^ (1 << i))
        for target in (fmt.bias, (field + fmt.bias) // 2, field + (1 if field < fmt.bias else -1)):
            if 0 <= target < 1 << fmt.exponent_bits:
                yield made(target, fraction)

    active = [k for k in range(spec.k) if codes.a[k] or codes.b[k]]
    for k in active:
        yield with_products(codes, {k: (0, 0)})
    if len(active) > 2:
        for k in active[1:]:
            yield with_products(codes, dict.fromkeys([k, active[0]], (0, 0)))
    yield replace(codes, c=0)
    for c in simpler(codes.c, spec.c_format):
        if spec.c_format.is_finite(c):
            yield replace(codes, c=c)
    if spec.scale_format is not None:
        yield replace(codes, scale_a=zeros(spec).scale_a, scale_b=zeros(spec).scale_b)
    by_value: dict[tuple[int, int], list[int]] = {}
    for k in active:
        magnitude = codes.a[k] & ~spec.a_format.sign_mask, codes.b[k] & ~spec.b_format.sign_mask
        by_value.setdefault(magnitude, []).append(k)
    for places in by_value.values():  # products that are equal or opposite change together
        x, y = codes.a[places[0]], codes.b[places[0]]
        pairs = [(u, y) for u in simpler(x, spec.a_format)] + [(x, v) for v in simpler(y, spec.b_format)]
        for u, v in pairs:
            if not (spec.a_format.is_finite(u) and spec.b_format.is_finite(v)):
                continue
            changed = {}
            for k in places:
                opposite = (
                    (codes.a[k] ^ x) & spec.a_format.sign_mask,
                    (codes.b[k] ^ y) & spec.b_format.sign_mask,
                )
                changed[k] = u ^ opposite[0], v ^ opposite[1]
            if all(spec.a_format.is_finite(p) and spec.b_format.is_finite(q) for p, q in changed.values()):
                yield with_products(codes, changed)


# ---- proving -----------------------------------------------------------------------------------------------------
