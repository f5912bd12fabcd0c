"""Attacks on what is said to hold of a unit: random inputs, related as the property says, on the executables.

Each attack looks at a property's own statement, with exact rational arithmetic where it is about numbers, and shares
nothing with the code that settled it but the table of formats.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.facts.laws import first_step
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.queries import order_independence, zero_padding
from mmaformal.rounding import Conversion
from mmaformal.solver.answers import Holds
from mmaformal.spec import DotAdd
from support import exact
from support.exact import exact_sum
from support.random_cases import cases, code, run, same, value
from support.rounded_once import examine

Number = Fraction | float | None


@dataclass(frozen=True)
class Attack:
    """A unit of which a property is said to hold, and cases to try."""

    unit: Instruction
    rng: random.Random
    given: list[Codes]
    answer: Holds | None

    @property
    def spec(self) -> DotAdd:
        return self.unit.spec

    def value(self, result: int) -> Number:
        return value(self.spec.d_format, result)

    def results(self) -> list[int]:
        return run(self.unit, self.given)

    def number(self, name: str) -> Fraction | None:
        """A number that the answer states."""
        stated = {each.name: each.value for each in self.answer.numbers} if self.answer is not None else {}
        return Fraction(stated[name]) if name in stated else None

    def differing(
        self, images: Sequence[Codes], other: Instruction, agree: Callable[[int, int], bool]
    ) -> str | None:
        for x, mine, its in zip(self.given, self.results(), run(other, images), strict=True):
            if not agree(mine, its):
                return f"{mine:#x} and {its:#x} of {x}"
        return None


def reordered(attack: Attack, across: bool) -> str | None:
    spec, rng = attack.spec, attack.rng
    S = spec.scale_block
    blocks = order_independence.products_together(spec)
    if across:  # with scales, products within their blocks and whole blocks
        blocks = [list(range(i, i + S)) for i in range(0, spec.k, S)] if S else [list(range(spec.k))]
    order = list(range(spec.k))
    for block in blocks:
        for i, j in zip(block, rng.sample(block, len(block)), strict=True):
            order[i] = j
    scales = list(range(spec.scales))
    if across and S:
        rng.shuffle(scales)
        order = [order[i * S + j] for i in scales for j in range(S)]
    images = [
        Codes(
            tuple(x.a[j] for j in order),
            tuple(x.b[j] for j in order),
            x.c,
            *(tuple(side[i] for i in scales) for side in (x.scale_a, x.scale_b)),
        )
        for x in attack.given
    ]
    return attack.differing(images, attack.unit, lambda x, y: same(spec, x, y))


def commutativity(attack: Attack) -> str | None:
    spec = attack.spec
    other = replace(attack.unit, spec=spec.replace(a_format=spec.b_format, b_format=spec.a_format))
    images = [Codes(x.b, x.a, x.c, x.scale_b, x.scale_a) for x in attack.given]
    return attack.differing(images, other, lambda x, y: same(spec, x, y))


def sign_symmetry(attack: Attack) -> str | None:
    spec = attack.spec
    if any(not f.has_minus_zero for f in (spec.a_format, spec.c_format)):
        return None
    images = [
        replace(x, a=tuple(u ^ spec.a_format.sign_mask for u in x.a), c=x.c ^ spec.c_format.sign_mask)
        for x in attack.given
    ]

    def opposite(x: int, y: int) -> bool:
        u, v = attack.value(x), attack.value(y)
        return u == v if u is None or v is None else u == -v

    return attack.differing(images, attack.unit, opposite)


def padding(attack: Attack) -> str | None:
    spec, rng, unit = attack.spec, attack.rng, attack.unit
    pad = zero_padding.padding(spec)
    zeroed = []
    for x in cases(pad.longer, rng, len(attack.given)):
        sides = [list(x.a), list(x.b)]
        for k in pad.zeros:
            for side, fmt in zip(sides, (spec.a_format, spec.b_format), strict=True):
                while not fmt.is_finite(side[k]):
                    side[k] = code(fmt, rng)
            n = rng.randrange(2)
            minus = rng.randrange(2) if (spec.a_format, spec.b_format)[n].has_minus_zero else 0
            sides[n][k] = minus * (spec.a_format, spec.b_format)[n].sign_mask
        zeroed.append(replace(x, a=tuple(sides[0]), b=tuple(sides[1])))
    short = [replace(x, a=tuple(x.a[k] for k in pad.kept), b=tuple(x.b[k] for k in pad.kept)) for x in zeroed]
    n = pad.shorter.scales  # a further block has scales of its own
    short = [replace(x, scale_a=x.scale_a[:n], scale_b=x.scale_b[:n]) for x in short]
    wide, narrow = run(replace(unit, spec=pad.longer), zeroed), run(replace(unit, spec=pad.shorter), short)
    for x, mine, its in zip(zeroed, wide, narrow, strict=True):
        further = (*x.scale_a[n:], *x.scale_b[n:])
        if spec.scale_format is not None and not all(map(spec.scale_format.is_finite, further)):
            continue
        if not same(spec, mine, its) and attack.value(mine) != attack.value(its):
            return f"{mine:#x} and {its:#x} of {x}"
    return None


def scaling(attack: Attack) -> str | None:
    """d(2a, b, 2c) = 2·d(a, b, c), where all steps of both runs stay within range; not of inner steps."""
    spec = attack.spec
    one = first_step(spec)
    if one is None or isinstance(spec.parameters, Lowered):
        return None
    for x in attack.given:
        a, c = [doubled(u, spec.a_format) for u in x.a], doubled(x.c, spec.c_format)
        finite = [exact_sum(spec, x) is not None]
        if None in a or c is None or not all(finite):
            continue
        image = replace(x, a=tuple(a), c=c)  # type: ignore[arg-type]
        runs = [
            [attack.value(d) for _, d in steps(replace(attack.unit, spec=one), spec, y)] for y in (x, image)
        ]
        if not all(inside(d, spec.d_format) for each in runs for d in each):
            continue
        if 2 * runs[0][-1] != runs[1][-1]:  # type: ignore[operator]
            return f"{runs[0][-1]} and {runs[1][-1]} of {x}"
    return None


def doubled(x: int, fmt: Format) -> int | None:
    """The code of twice the number; a zero's own; None unless both are zero or normal."""
    if not fmt.is_finite(x):
        return None
    if fmt.value(x) == 0:
        return x
    twice = x + (1 << fmt.fraction_bits + fmt.ignored_low_bits)
    within = fmt.fields(x)[1] >= 1 and twice < fmt.codes and fmt.is_finite(twice)
    return twice if within and fmt.value(twice) == 2 * fmt.value(x) else None


def inside(x: Number, fmt: Format) -> bool:
    """Whether a result is zero, or finite and above the least normal number in magnitude."""
    if not isinstance(x, Fraction):
        return False
    return x == 0 or abs(x) > Fraction(2) ** fmt.min_exponent


def steps(one: Instruction, spec: DotAdd, x: Codes) -> Iterator[tuple[Codes, int]]:
    """The steps of a chain, each on its own: its case and its result."""
    L, S, c = one.spec.k, spec.scale_block, x.c
    for start in range(0, spec.k, L):
        part = slice(start, start + L)
        scales = [
            side[start // S : max((start + L) // S, start // S + 1)] if S else ()
            for side in (x.scale_a, x.scale_b)
        ]
        step = Codes(x.a[part], x.b[part], c, *scales)
        (c,) = run(one, [step])
        yield step, c


def no_nan(attack: Attack) -> str | None:
    for x, result in zip(attack.given, attack.results(), strict=True):
        if exact_sum(attack.spec, x) is not None and attack.spec.d_format.is_nan(result):
            return f"a NaN of {x}"
    return None


def minus_zero(attack: Attack) -> str | None:
    for x, result in zip(attack.given, attack.results(), strict=True):
        if result == attack.spec.d_format.sign_mask:
            return f"−0 of {x}"
    return None


def every_number(attack: Attack) -> str | None:
    """It is proved by c alone: with products of zeros every number and both infinities come back."""
    spec, rng, d = attack.spec, attack.rng, attack.spec.d_format
    if spec.c_format != d:
        return None
    zeros, one = (
        (0,) * spec.k,
        spec.scale_format and spec.scale_format.bias << spec.scale_format.fraction_bits,
    )
    scales = (one or 0,) * spec.scales
    given = [Codes(zeros, zeros, code(d, rng), scales, scales) for _ in attack.given]
    for x, result in zip(given, run(attack.unit, given), strict=True):
        if not d.is_nan(x.c) and attack.value(result) != attack.value(x.c):
            return f"{result:#x} of {x}"
    return None


def edge(x: int, fmt: Format) -> tuple[int, int]:
    """The last number of x's exponent, and the code after it."""
    last = x | ((1 << fmt.fraction_bits) - 1) << fmt.ignored_low_bits
    after = last + (1 << fmt.ignored_low_bits)
    return last, after if after < fmt.codes and after & fmt.sign_mask == x & fmt.sign_mask else last


def in_c(attack: Attack) -> str | None:
    """Attack with any two c, and with two about a power of two, where the largest exponent changes."""
    spec, rng, fmt = attack.spec, attack.rng, attack.spec.c_format
    pairs = [edge(x.c, fmt) if rng.random() < 0.7 else (x.c, code(fmt, rng)) for x in attack.given]
    given = [replace(x, c=c) for x, (c, _) in zip(attack.given, pairs, strict=True)]
    others = [replace(x, c=c) for x, (_, c) in zip(attack.given, pairs, strict=True)]
    attack = replace(attack, given=given)
    places = [[value(spec.c_format, x.c) for x in given] for given in (attack.given, others)]
    return _out_of_order(attack, others, places)


def in_a_product(attack: Attack) -> str | None:
    spec, rng = attack.spec, attack.rng
    given, others, places = [], [], []
    for x in attack.given:
        k = rng.randrange(spec.k)
        kind = rng.random()
        if kind < 0.5:
            last, after = edge(x.a[k], spec.a_format)
            x, pair = replace(x, a=(*x.a[:k], last, *x.a[k + 1 :])), (after, x.b[k])
        elif kind < 0.7:  # the same product of other factors, or nearly
            pair = (
                doubled(x.a[k], spec.a_format),
                x.b[k] - (1 << spec.b_format.fraction_bits + spec.b_format.ignored_low_bits),
            )
            pair = pair if pair[0] is not None and pair[1] >= 0 else (x.a[k], x.b[k])
        else:
            pair = rng.choice(
                ((code(spec.a_format, rng), x.b[k]), (code(spec.a_format, rng), code(spec.b_format, rng)))
            )
        y = replace(
            x,
            a=(*x.a[:k], pair[0], *x.a[k + 1 :]),
            b=(*x.b[:k], pair[1], *x.b[k + 1 :]),  # type: ignore[arg-type]
        )
        given.append(x)
        others.append(y)
        places.append([_product(spec, z.a[k], z.b[k]) for z in (x, y)])
    values = [list(each) for each in zip(*places, strict=True)]
    return _out_of_order(replace(attack, given=given), others, values, sign=True)


def _product(spec: DotAdd, a: int, b: int) -> Number:
    """None unless both factors are finite."""
    if not (spec.a_format.is_finite(a) and spec.b_format.is_finite(b)):
        return None
    return spec.a_format.value(a) * spec.b_format.value(b)


def _out_of_order(
    attack: Attack, others: Sequence[Codes], places: Sequence[Sequence[Number]], sign: bool = False
) -> str | None:
    """Two cases in order whose results are not.  `sign`: scales are not negative, so what is compared may be equal."""
    pairs = zip(attack.given, others, *places, attack.results(), run(attack.unit, others), strict=True)
    for x, y, u, v, mine, its in pairs:
        r, s = attack.value(mine), attack.value(its)
        if u is None or v is None or r is None or s is None:
            continue
        if (u < v and r > s) or (u > v and r < s) or (sign and u == v and r != s):
            return f"{mine:#x} of {x}, {its:#x} of {y}"
    return None


def exactness(attack: Attack) -> str | None:
    spec, rho = attack.spec, rounding_of(attack.spec)
    for x, result in zip(attack.given, attack.results(), strict=True):
        sum_ = exact_sum(spec, x)
        if sum_ is None:
            continue
        said = examine(attack.unit, x)
        if said.once and attack.value(result) != value(spec.d_format, exact.convert(sum_, rho)):
            return f"{result:#x} of {x}, whose sum is rounded once"
        if said.exact and attack.value(result) != sum_:
            return f"{result:#x} of {x}, which is exact"
    return None


def rounding_of(spec: DotAdd) -> Conversion:
    p = spec.parameters
    return exact.IEEE_FP32 if isinstance(p, Gps) else p.addition if isinstance(p, Lowered) else p["rho"]


def rounded(attack: Attack, faithful: bool = False, each_step: bool = False) -> str | None:
    """d, or each step's, against the exact sum rounded by `exact.convert`; or against both its neighbours."""
    spec, rho = attack.spec, rounding_of(attack.spec)
    one = first_step(spec) if each_step else spec
    if one is None or (each_step and isinstance(spec.parameters, (Gps, Lowered))):
        return None
    ways = [rho] if not faithful else [_to(rho, name) for name in ("RD", "RU")]
    unit = replace(attack.unit, spec=one)
    for x in attack.given:
        for step, result in steps(unit, spec, x):
            sum_ = exact_sum(one, step)
            if sum_ is None or (isinstance(spec.parameters, Fdrda) and spec.d_format.is_infinite(result)):
                continue
            if attack.value(result) not in [value(spec.d_format, exact.convert(sum_, way)) for way in ways]:
                return f"{result:#x} of {step}, whose sum is {float(sum_)!r}"
    return None


def _to(rho: Conversion, rounding: str) -> Conversion:
    return replace(rho, name=rounding, rounding=exact.Rounding[rounding])


def _sums(attack: Attack) -> Iterator[tuple[Codes, list[tuple[Fraction, int]], Fraction | None]]:
    """Yield of first steps the case, the sums of aligned terms with their exponents, and what is converted first."""
    spec = attack.spec
    one = first_step(spec)
    if one is None:
        return
    L, n = one.k, one.scales
    sums: list[tuple[Fraction, int]] = []
    converted: list[Fraction] = []
    fused_sum, convert = exact.fused_sum, exact.convert

    def sum_(*given: Any) -> Any:
        sums.append(fused_sum(*given))
        return sums[-1]

    def conversion(x: Fraction, *given: Any) -> int:
        converted.append(x)
        return convert(x, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "fused_sum", sum_)
        patch.setattr(exact, "convert", conversion)
        for x in attack.given:
            step = Codes(x.a[:L], x.b[:L], x.c, x.scale_a[:n], x.scale_b[:n])
            sums.clear()
            converted.clear()
            exact.dot_add(one, step.a, step.b, step.c, step.scale_a, step.scale_b)
            yield step, list(sums), converted[-1] if converted else None


def error_bound(attack: Attack) -> str | None:
    p, n = attack.spec.parameters, attack.number("n")
    if n is None or not isinstance(p, (Fda, Gdfs)):
        return None
    one = first_step(attack.spec)
    assert one is not None
    for step, sums, _ in _sums(attack):
        whole = exact_sum(one, step)
        for sum_, e in sums if whole is not None else ():
            off = abs(sum_ - whole / Fraction(2) ** e) * 2**p.F  # type: ignore[operator]
            if off > n:
                return f"the sum is off by {float(off)} units of {step}"
    return None


def accumulator(attack: Attack) -> str | None:
    p, bits = attack.spec.parameters, attack.number("sum bits")
    if bits is None or not isinstance(p, (Fda, Gdfs, Fdrda, Lowered)):
        return None
    for step, sums, _ in _sums(attack):
        for sum_, _ in sums:
            if abs(sum_ * 2**p.F) >= 1 << int(bits):
                return f"a sum of {float(sum_ * 2**p.F)} of {step}"
    return None


ATTACKS: dict[str, Callable[[Attack], str | None]] = {
    "order-independence": lambda x: reordered(x, across=False),
    "order-independence-across-blocks": lambda x: reordered(x, across=True),
    "commutativity": commutativity,
    "sign-symmetry": sign_symmetry,
    "zero-padding": padding,
    "power-of-two-scaling": scaling,
    "no-nan-from-finite": no_nan,
    "never-minus-zero": minus_zero,
    "every-number": every_number,
    "accumulator-width": accumulator,
    "monotonicity-in-c": in_c,
    "monotonicity-in-a-product": in_a_product,
    "exactness": exactness,
    "error-bound": error_bound,
    "lossless-width": lambda x: rounded(x, each_step=True),
    "correct-rounding": rounded,
    "faithful-rounding": lambda x: rounded(x, faithful=True),
    "correct-rounding-of-each-step": lambda x: rounded(x, each_step=True),
}


def attack(
    name: str, unit: Instruction, rng: random.Random, count: int = 300, answer: Holds | None = None
) -> str | None:
    """A case that breaks a property that is said to hold, or None."""
    return ATTACKS[name](Attack(unit, rng, cases(unit.spec, rng, count), answer))
