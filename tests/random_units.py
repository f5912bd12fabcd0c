"""Random hypothetical units, and everything that is said of them, attacked.

    python tests/random_units.py --count 500 --seed 0 --properties 1

Of each unit: `dot_add` against exact rational arithmetic (`exact`), the SMT wing's terms on the same cases, the
kernel; `find_difference` with a neighbour; and properties.  What is affirmed is tried on cases of its own, a witness is
computed again by `exact`.  No exception is allowed but one line where a unit is made.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import exact
import numpy as np

from mmaformal import find_difference
from mmaformal.algorithms import (
    RNE_FP16,
    RNE_FP32,
    RZ_E8M13,
    RZ_FP32,
    Conversion,
    DotAdd,
    Efda,
    Fda,
    Fdrda,
    Gdfs,
    Gfdrda,
    Gps,
    Lowered,
    Parameters,
    Rounding,
    Sfma,
)
from mmaformal.encodings import smt
from mmaformal.formats import FORMATS, Format, Specials, bf16, e2m1, fp16, fp32, fp64, ue4m3, ue8m0
from mmaformal.instruction import Instruction
from mmaformal.kernels.choose import kernel_for
from mmaformal.queries import order_independence, zero_padding
from mmaformal.queries.evaluate import evaluate
from mmaformal.queries.inputs import Codes, symbolic_inputs
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Different, Equal, Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Relay

TABLE = [f for f in FORMATS.values() if f.signed]

# ---- units -----------------------------------------------------------------------------------------------------------


def own_format(rng: random.Random) -> Format:
    """A format of one's own; may raise ValueError."""
    storage = rng.choice((4, 5, 6, 7, 8, 8, 16, 16))
    signed = rng.random() < 0.9
    exponent_bits = rng.randint(1, min(8, storage - 2))
    fraction_bits = storage - exponent_bits - signed
    bias = (1 << (exponent_bits - 1)) - 1 + rng.choice((0, 0, 0, 1, -1, 3, -4))
    specials = rng.choice(list(Specials))
    name = f"own{storage}_{exponent_bits}_{fraction_bits}_{bias}_{specials.name}"
    return Format(name, storage, exponent_bits, fraction_bits, bias, specials, None, signed=signed)


def conversion(rng: random.Random, fmt: Format | None = None) -> Conversion:
    """A ρ, a shipped one or one's own."""
    if fmt is None and rng.random() < 0.5:
        return rng.choice((RZ_FP32, RZ_E8M13, RNE_FP16, RNE_FP32))
    fmt = fmt or rng.choice((fp16, fp32, fp32, bf16, fp64))
    bits = rng.choice((fmt.fraction_bits, fmt.fraction_bits, rng.randint(1, fmt.fraction_bits)))
    return Conversion("own", fmt, bits, rng.choice(list(Rounding)), rng.random() < 0.3)


def input_formats(rng: random.Random) -> tuple[Format, Format]:
    a = own_format(rng) if rng.random() < 0.4 else rng.choice(TABLE)
    return a, (a if rng.random() < 0.6 else own_format(rng) if rng.random() < 0.4 else rng.choice(TABLE))


def e_zero(rng: random.Random) -> int | None:
    return rng.choice(
        (None, rng.randint(-200, -10), rng.randint(-40, 40), -4096, 4096, rng.randint(100, 400))
    )


def dot_add_of(rng: random.Random) -> DotAdd:
    """A specification; may raise ValueError."""
    a, b = input_formats(rng)
    n = rng.choice((1, 1, 2, 3))  # steps of a chain
    L = rng.choice((1, 2, 2, 3, 4, 5, 8))
    p: Parameters
    match rng.choice(
        ("sfma", "gps", "fda", "fda", "fda", "gdfs", "gdfs", "fdrda", "gfdrda", "efda", "efda", "lowered")
    ):
        case "sfma":
            fmt = rng.choice((fp32, fp64))
            return DotAdd(n, fmt, fmt, fmt, fmt, Sfma(conversion(rng, fmt)))
        case "gps":
            G = rng.choice((2, 4, 8))
            return DotAdd(G * n, a, b, fp32, fp32, Gps(G))
        case "fda":
            rho = conversion(rng)
            F = rng.choice((1, 2, rng.randint(3, 48), rng.randint(10, 30), 48))
            c = rho.format if n > 1 or rng.random() < 0.7 else rng.choice([*TABLE, own_format(rng)])
            scale: dict[str, Any] = {}
            if rng.random() < 0.25:
                scale = {"scale_format": ue8m0, "scale_block": rng.choice((1, L, L * n, 2, 3))}
            return DotAdd(L * n, a, b, c, rho.format, Fda(F, L, rho, e_zero(rng)), **scale)
        case "gdfs":
            G, groups, rho = rng.choice((1, 2, 3, 4, 16)), rng.choice((1, 2, 4)), conversion(rng)
            block = G * rng.choice((1, groups, groups * n))
            c = rho.format if n > 1 or rng.random() < 0.7 else rng.choice(TABLE)
            p = Gdfs(rng.randint(8, 40), G, G * groups, rho, e_zero(rng))
            own = rng.choice((ue8m0, ue4m3, ue4m3, FORMATS["ue8m0"]))
            return DotAdd(G * groups * n, e2m1, e2m1, c, rho.format, p, own, block)
        case "fdrda" | "gfdrda" as name:
            F = rng.randint(23, 40)
            more = {
                "dot_bits": rng.randint(F, 40),
                "sum_bits": rng.choice((None, rng.randint(24, 40))),
                "skip_zero_products": rng.random() < 0.5,
                "inputs_first": rng.random() < 0.3,
                "cut": rng.choice((Rounding.RD, Rounding.RZ)),
            }
            if name == "gfdrda":
                p = Gfdrda(F, L, conversion(rng, fp32), **more, c_reach=rng.choice((25, 0, 3, 60, -5)))  # type: ignore[arg-type]
            else:
                p = Fdrda(F, L, conversion(rng, fp32), **more)  # type: ignore[arg-type]
            return DotAdd(L * n, a, b, fp32, fp32, p)
        case "efda":
            return DotAdd(L * n, a, b, fp32, fp32, Efda(L, conversion(rng, fp32)))
        case _:
            rho = conversion(rng, rng.choice((fp16, fp32)))
            order = list(range(L * rng.choice((1, 2))))
            rng.shuffle(order)
            p = Lowered(
                rng.randint(1, 40), L, rho, e_zero(rng), fp16, tuple(order), conversion(rng, rho.format)
            )
            return DotAdd(len(order) * n, a, b, rho.format, rho.format, p)


def units(seed: int, refused: Counter[str] | None = None) -> Iterator[tuple[int, Instruction]]:
    """Units without end, each with the seed that it is made of again.

    Raises AssertionError where a unit is refused by more than a line.
    """
    number = seed * 1_000_000
    while True:
        number += 1
        rng = random.Random(number)
        try:
            spec = dot_add_of(rng)
        except ValueError as error:
            if "\n" in str(error):
                raise AssertionError(f"more than a line: {error}") from error
            if refused is not None:
                refused[str(error).partition(" needs ")[0].partition(" own")[0][:40]] += 1
            continue
        yield number, Instruction(f"unit {number}", "random", 8, 8, spec)


# ---- cases -----------------------------------------------------------------------------------------------------------


def code(fmt: Format, rng: random.Random) -> int:
    """A code: any, or one of those that matter."""
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(fmt.codes)
    low = fmt.ignored_low_bits
    top = (1 << fmt.exponent_bits) - 1
    field = rng.choice(
        (0, 0, 1, fmt.bias, fmt.bias, fmt.bias + 1, fmt.bias - 1, top - 1, top, rng.randint(0, top))
    )
    ones = (1 << fmt.fraction_bits) - 1
    fraction = (
        rng.choice((0, 0, 1, ones, ones >> 1, 1 << max(fmt.fraction_bits - 1, 0), rng.randint(0, ones)))
        & ones
    )
    found = (min(max(field, 0), top) << fmt.fraction_bits | fraction) << low
    return (found | (fmt.sign_mask if rng.random() < 0.5 else 0)) % fmt.codes


def cases(spec: DotAdd, rng: random.Random, count: int) -> list[Codes]:
    """Few products or all, cancelling, near c or far from it, with special values now and then."""
    out = []
    for _ in range(count):
        busy = [k for k in range(spec.k) if rng.random() < rng.choice((0.2, 0.7, 1.0))]
        a, b = [0] * spec.k, [0] * spec.k
        for k in busy:
            a[k], b[k] = code(spec.a_format, rng), code(spec.b_format, rng)
            if k and busy[0] != k and rng.random() < 0.3:  # the opposite of another
                a[k], b[k] = a[busy[0]] ^ spec.a_format.sign_mask, b[busy[0]]
        if rng.random() < 0.2:  # zeros of other signs and factors
            k = rng.randrange(spec.k)
            a[k], b[k] = spec.a_format.sign_mask, code(spec.b_format, rng)
        c = code(spec.c_format, rng)
        scales: tuple[tuple[int, ...], ...] = ((), ())
        if spec.scale_format is not None:
            near = rng.random() < 0.7
            one = spec.scale_format.bias << spec.scale_format.fraction_bits
            scales = tuple(
                tuple(
                    min(max(one + rng.randint(-9, 9), 0), spec.scale_format.codes - 1)
                    if near
                    else code(spec.scale_format, rng)
                    for _ in range(spec.scales)
                )
                for _ in "ab"
            )
        if rng.random() < 0.3:
            c = opposite_of_products(spec, Codes(tuple(a), tuple(b), 0, *scales), rng) or c
        out.append(Codes(tuple(a), tuple(b), c, *scales))
    return out


def total(spec: DotAdd, x: Codes) -> Fraction | None:
    """The exact sum; None where an input is no number."""
    named = [(y, spec.a_format) for y in x.a] + [(y, spec.b_format) for y in x.b] + [(x.c, spec.c_format)]
    if spec.scale_format is not None:
        named += [(y, spec.scale_format) for y in (*x.scale_a, *x.scale_b)]
    if not all(f.is_finite(y) for y, f in named):
        return None
    value = spec.c_format.value(x.c)
    for k, (u, v) in enumerate(zip(x.a, x.b, strict=True)):
        product = spec.a_format.value(u) * spec.b_format.value(v)
        if spec.scale_format is not None:
            i = k // spec.scale_block
            product *= spec.scale_format.value(x.scale_a[i]) * spec.scale_format.value(x.scale_b[i])
        value += product
    return value


def opposite_of_products(spec: DotAdd, x: Codes, rng: random.Random) -> int | None:
    """A c near the opposite of the products' sum."""
    value, fmt = total(spec, x), spec.c_format
    if not value or not fmt.signed or not fmt.has_zero:
        return None
    field = min(max(exact.exponent_of(value) + fmt.bias, 0), (1 << fmt.exponent_bits) - 2)
    unit = Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_bits)
    significand = min(int(abs(value) / unit), (2 << fmt.fraction_bits) - 1) - (
        (1 << fmt.fraction_bits) if field else 0
    )
    near = (field << fmt.fraction_bits) + max(significand, 0) + rng.choice((0, 0, 1, -1))
    found = (max(near, 0) << fmt.ignored_low_bits) | (fmt.sign_mask if value > 0 else 0)
    return found if found < fmt.codes else None


# ---- values ----------------------------------------------------------------------------------------------------------


def columns(spec: DotAdd, given: Sequence[Codes]) -> list[np.ndarray[Any, Any]]:
    arrays = [
        np.array([x.a for x in given], spec.a_format.word),
        np.array([x.b for x in given], spec.b_format.word),
        np.array([x.c for x in given], spec.c_format.word),
    ]
    if spec.scale_format is not None:
        arrays += [
            np.array([getattr(x, s) for x in given], spec.scale_format.word) for s in ("scale_a", "scale_b")
        ]
    return arrays


def run(unit: Instruction, given: Sequence[Codes]) -> list[int]:
    return [int(d) for d in unit.dot_add(*columns(unit.spec, given))]


def by_terms(spec: DotAdd, given: Sequence[Codes]) -> list[int]:
    """The SMT wing."""
    x = symbolic_inputs(spec)
    result = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).result
    values: dict[str, Any] = {"c": np.array([y.c for y in given], object)}
    for side in ("a", "b", "scale_a", "scale_b"):
        for k, term in enumerate(getattr(x, side)):
            values[str(term)] = np.array([getattr(y, side)[k] for y in given], object)
    return [int(d) for d in np.broadcast_to(evaluate(result, values), len(given))]


def by_kernel(spec: DotAdd, given: Sequence[Codes]) -> list[int] | None:
    """The compiled kernel, one case after another; None where codes of c do not fit d's words."""
    if spec.c_format.word_bits > spec.d_format.word_bits:
        return None
    kernel, out = kernel_for(spec), []
    for x in given:
        a, b, c, *scales = columns(spec, [x])
        d = c.astype(spec.d_format.word)[:, None]
        planes = (
            kernel.rows(a, *(s for s in scales[:1])),
            kernel.columns(np.ascontiguousarray(b.T), *(np.ascontiguousarray(s.T) for s in scales[1:])),
        )
        kernel.run(*planes, d, 0, 1)
        out.append(int(d[0, 0]))
    return out


def same(spec: DotAdd, x: int, y: int) -> bool:
    return x == y or (not spec.nan_is_canonical and spec.d_format.is_nan(x) and spec.d_format.is_nan(y))


def wrong_values(unit: Instruction, given: Sequence[Codes], kernel: bool = False) -> list[str]:
    """Where a wing is not what exact arithmetic gives."""
    spec = unit.spec
    expected = [exact.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b) for x in given]
    ways: dict[str, Callable[[], list[int] | None]] = {
        "dot_add": lambda: run(unit, given),
        "terms": lambda: by_terms(spec, given),
    }
    if kernel:
        ways["kernel"] = lambda: by_kernel(spec, given)
    wrong = []
    for name, way in ways.items():
        found = way()
        if found is None:
            continue
        for x, mine, other in zip(given, found, expected, strict=True):
            if not same(spec, mine, other):
                wrong.append(f"{name}: {mine:#x}, exactly {other:#x}, of {x}")
                break
    return wrong


# ---- answers ---------------------------------------------------------------------------------------------------------


def neighbour(unit: Instruction, rng: random.Random) -> Instruction | None:
    """The unit with one parameter changed a little; None if there is none that makes sense."""
    p = unit.parameters
    changes: list[dict[str, Any]] = []
    for name, by in (("F", (1, -1, 3)), ("dot_bits", (1,)), ("c_reach", (-1, 1)), ("e_zero", (-1, 1, 50))):
        if name in p.keys() and p[name] is not None:  # noqa: SIM118
            changes += [{name: p[name] + d} for d in by]
    if "rho" in p.keys():  # noqa: SIM118
        rho = p["rho"]
        changes += [{"rho": replace(rho, name="other", rounding=r)} for r in Rounding if r != rho.rounding]
    rng.shuffle(changes)
    for change in changes:
        try:
            return unit.replace(**change)
        except ValueError:
            continue
    return None


def wrong_difference(
    x: Instruction, y: Instruction, rng: random.Random, timeout: float
) -> tuple[str, list[str]]:
    """(the answer's kind, what is wrong with it)."""
    answer = find_difference(x, y, timeout=timeout)
    wrong = []
    if isinstance(answer, Different):
        w = answer.witness
        scales = (w.scale_a, w.scale_b) if x.spec.scale_format is not None else ((), ())
        codes = (
            [[int(u) for u in side] for side in (w.a, w.b)],
            int(w.c),
            [[int(u) for u in s] for s in scales],
        )
        results = [exact.dot_add(i.spec, *codes[0], codes[1], *codes[2]) for i in (x, y)]
        if same(x.spec, *results):
            wrong.append(f"no difference: both give {results[0]:#x} of {codes}")
    elif isinstance(answer, Equal):
        given = cases(x.spec, rng, 400)
        for case, mine, other in zip(given, run(x, given), run(y, given), strict=True):
            if not same(x.spec, mine, other):
                wrong.append(f"not equal: {mine:#x} and {other:#x} of {case}")
                break
    str(answer), json.dumps(answer.to_json())
    return type(answer).__name__, wrong


def _value(fmt: Format, x: int) -> float | Fraction | None:
    if fmt.is_nan(x):
        return None
    if fmt.is_infinite(x):
        return float("-inf") if x & fmt.sign_mask else float("inf")
    return fmt.value(x)


def attack(name: str, unit: Instruction, rng: random.Random, count: int = 300) -> str | None:
    """A case that breaks a property that is said to hold, or None."""
    spec, d = unit.spec, unit.spec.d_format
    given = cases(spec, rng, count)
    results = run(unit, given)
    finite = [total(spec, x) for x in given]
    one = spec.k == spec.parameters.step_products

    def differing(images: list[Codes], other: Instruction, agree: Callable[[int, int], bool]) -> str | None:
        for x, mine, its in zip(given, results, run(other, images), strict=True):
            if not agree(mine, its):
                return f"{mine:#x} and {its:#x} of {x}"
        return None

    match name:
        case "order-independence" | "order-independence-across-blocks":
            blocks = order_independence.blocks(spec)
            if name != "order-independence":
                if spec.scale_format is not None:
                    return None
                blocks = [list(range(spec.k))]
            order = list(range(spec.k))
            for block in blocks:
                moved = rng.sample(block, len(block))
                for i, j in zip(block, moved, strict=True):
                    order[i] = j
            images = [
                replace(x, a=tuple(x.a[j] for j in order), b=tuple(x.b[j] for j in order)) for x in given
            ]
            return differing(images, unit, lambda x, y: same(spec, x, y))
        case "commutativity":
            other = replace(unit, spec=spec.replace(a_format=spec.b_format, b_format=spec.a_format))
            images = [Codes(x.b, x.a, x.c, x.scale_b, x.scale_a) for x in given]
            return differing(images, other, lambda x, y: same(spec, x, y))
        case "sign-symmetry" if all(
            f.signed and f.specials != Specials.FNUZ for f in (spec.a_format, spec.c_format)
        ):
            images = [
                replace(x, a=tuple(u ^ spec.a_format.sign_mask for u in x.a), c=x.c ^ spec.c_format.sign_mask)
                for x in given
            ]

            def opposite(x: int, y: int) -> bool:
                u, v = _value(d, x), _value(d, y)
                return (u is None) == (v is None) and (u is None or v is None or u == -v)

            return differing(images, unit, opposite)
        case "zero-padding":
            pad = zero_padding.padding(spec)
            longer = replace(unit, spec=pad.longer)
            given = cases(pad.longer, rng, count)
            zeroed = []
            for x in given:
                a, b = list(x.a), list(x.b)
                for k in pad.zeros:
                    a[k] = (
                        rng.choice((0, pad.longer.a_format.sign_mask))
                        if spec.a_format.specials != Specials.FNUZ
                        else 0
                    )
                    while not spec.b_format.is_finite(b[k]):
                        b[k] = code(spec.b_format, rng)
                zeroed.append(replace(x, a=tuple(a), b=tuple(b)))
            short = [
                replace(x, a=tuple(x.a[k] for k in pad.kept), b=tuple(x.b[k] for k in pad.kept))
                for x in zeroed
            ]
            for x, mine, its in zip(
                zeroed, run(longer, zeroed), run(replace(unit, spec=pad.shorter), short), strict=True
            ):
                if not same(spec, mine, its) and _value(d, mine) != _value(d, its):
                    return f"{mine:#x} and {its:#x} of {x}"
        case "no-nan-from-finite":
            for x, result, value in zip(given, results, finite, strict=True):
                if value is not None and d.is_nan(result):
                    return f"a NaN of {x}"
        case "never-minus-zero":
            for x, result in zip(given, results, strict=True):
                if result == d.sign_mask:
                    return f"−0 of {x}"
        case "monotonicity-in-c":
            others = [replace(x, c=code(spec.c_format, rng)) for x in given]
            for x, y, mine, its in zip(given, others, results, run(unit, others), strict=True):
                u, v, r, s = (
                    _value(spec.c_format, x.c),
                    _value(spec.c_format, y.c),
                    _value(d, mine),
                    _value(d, its),
                )
                if None not in (u, v, r, s) and ((u < v and r > s) or (u > v and r < s)):  # type: ignore[operator]
                    return f"{mine:#x} of {x}, {its:#x} of c = {y.c:#x}"
        case "correct-rounding" | "correct-rounding-of-each-step" | "lossless-width" if (
            one and not isinstance(spec.parameters, (Lowered, Gps))
        ):
            rho = spec.parameters["rho"]
            for x, result, value in zip(given, results, finite, strict=True):
                if value is None or isinstance(spec.parameters, Fdrda):
                    continue
                rounded = exact.convert(value, rho)
                if _value(d, result) != _value(d, rounded):
                    return f"{result:#x}, correctly rounded {rounded:#x}, of {x}"
    return None


def wrong_property(name: str, unit: Instruction, rng: random.Random, timeout: float) -> tuple[str, list[str]]:
    """(the answer's kind, what is wrong with it)."""
    with Relay() as portfolio:
        answer = PROPERTIES[name].settle(unit, Asker(portfolio, timeout))
    wrong: list[str] = []
    if isinstance(answer, Holds):
        found = attack(name, unit, rng)
        wrong += [f"{name} holds, but {found}"] if found else []
    elif isinstance(answer, Fails):
        witness: Any = answer.witness
        if hasattr(witness, "codes") and hasattr(witness, "result"):
            x, spec = witness.codes, witness.instruction.spec
            its = exact.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
            wrong += [] if same(spec, its, witness.result) else [f"{name}: {its:#x} of its witness {x}"]
        elif hasattr(witness, "relation"):
            x, spec = witness.codes, witness.relation.left
            its = exact.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
            wrong += [] if same(spec, its, witness.results[0]) else [f"{name}: {its:#x} of its witness {x}"]
    str(answer), json.dumps(answer.to_json())
    return type(answer).__name__, wrong


# ---- the campaign ----------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    """What is done with each unit."""

    cases: int = 150
    kernel_every: int = 0  #: units between two whose kernel is compiled; 0: none
    difference: bool = True
    properties: int = 1
    timeout: float = 4.0


def try_unit(number: int, unit: Instruction, plan: Plan) -> tuple[list[str], list[str]]:
    """(what is wrong, the answers' kinds)."""
    rng = random.Random(number + 1)
    kernel = bool(plan.kernel_every) and number % plan.kernel_every == 0
    wrong, kinds = wrong_values(unit, cases(unit.spec, rng, plan.cases), kernel), []
    other = neighbour(unit, rng) if plan.difference else None
    if other is not None:
        kind, bad = wrong_difference(unit, other, rng, plan.timeout)
        kinds.append(f"difference: {kind}")
        wrong += bad
    for name in rng.sample(sorted(PROPERTIES), plan.properties):
        kind, bad = wrong_property(name, unit, rng, plan.timeout)
        kinds.append(f"{name}: {kind}")
        wrong += bad
    return wrong, kinds


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--properties", type=int, default=1, help="of each unit")
    parser.add_argument(
        "--kernel-every", type=int, default=0, help="units between two whose kernel is compiled"
    )
    parser.add_argument("--no-difference", action="store_true")
    parser.add_argument("--timeout", type=float, default=4.0, help="seconds for each answer")
    args = parser.parse_args(argv)
    plan = Plan(args.cases, args.kernel_every, not args.no_difference, args.properties, args.timeout)
    refused, algorithms, answers = Counter[str](), Counter[str](), Counter[str]()
    start, bad = time.monotonic(), 0
    for i, (number, unit) in enumerate(units(args.seed, refused)):
        if i == args.count:
            break
        algorithms[unit.algorithm] += 1
        try:
            wrong, kinds = try_unit(number, unit, plan)
        except Exception as error:  # what is looked for
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            at = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
            wrong, kinds = [f"{type(error).__name__} at {at}: {error}"], ["exception"]
        answers.update(kinds)
        bad += bool(wrong)
        for line in wrong:
            print(f"{number} {unit.spec}\n    {line}", flush=True)
    print(f"{args.count} units, {bad} with something wrong, {time.monotonic() - start:.0f} s")
    for title, counts in (("algorithms", algorithms), ("refused", refused), ("answers", answers)):
        print(f"{title}: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
