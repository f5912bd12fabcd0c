"""Random hypothetical units, and everything that is said of them, attacked.

    PYTHONPATH=tests python -m support.random_units --count 500 --seed 0 --properties 1

Of each unit: `dot_add` against exact rational arithmetic (`exact`), the SMT encoding's terms on the same cases, the
kernel; `find_difference` with a neighbour; and properties.  What is affirmed is tried on cases of its own, a witness is
computed again by `exact`.  No exception is allowed but one line where a unit is made.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from mmaformal import find_difference
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.inputs import Codes, symbolic_inputs
from mmaformal.cases.relations import Relation
from mmaformal.cases.shrink import size, smaller_cases
from mmaformal.encodings import smt
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.sfma import Sfma
from mmaformal.facts import settling
from mmaformal.formats import FORMATS, Format, Specials, bf16, e2m1, fp16, fp32, fp64, ue4m3, ue8m0
from mmaformal.instruction import Instruction
from mmaformal.kernels.choose import choose_kernel
from mmaformal.limits import most_places
from mmaformal.queries.constraints import Constraint, finite, fixed, magnitude, nonzero, normal
from mmaformal.queries.output_range import Unreachable
from mmaformal.queries.properties import PROPERTIES
from mmaformal.queries.verify import verify
from mmaformal.rounding import DETERMINISTIC, RNE_FP16, RNE_FP32, RZ_E8M13, RZ_FP32, Conversion, Rounding
from mmaformal.solver.answers import Different, Equal, Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd, Parameters
from mmaformal.witness import results_differ
from support import exact
from support.attacks import attack
from support.minimality import refuted
from support.random_cases import cases, code, columns, run, same

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
    return Conversion("own", fmt, bits, rng.choice(DETERMINISTIC), rng.random() < 0.3)


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
        (
            "sfma",
            "gps",
            "fda",
            "fda",
            "fda",
            "gdfs",
            "gdfs",
            "fdrda",
            "gfdrda",
            "efda",
            "efda",
            "lowered",
            "muladd",
            "gfda",
        )
    ):
        case "sfma":
            fmt = rng.choice((fp32, fp64))
            return DotAdd(n, fmt, fmt, fmt, fmt, Sfma(conversion(rng, fmt)))
        case "gps":
            G = rng.choice((2, 4, 8))
            return DotAdd(G * n, a, b, fp32, fp32, Gps(G))
        case "fda":
            rho = conversion(rng)
            most = most_places(L)
            F = rng.choice((1, 2, rng.randint(3, most), rng.randint(10, 30), most))
            c = rho.format if n > 1 or rng.random() < 0.7 else rng.choice([*TABLE, own_format(rng)])
            scale: dict[str, Any] = {}
            if rng.random() < 0.25:
                scale = {"scale_format": ue8m0, "scale_block": rng.choice((1, L, L * n, 2, 3))}
            cut = rng.choice((Rounding.RZ, Rounding.RZ, Rounding.RO))
            return DotAdd(L * n, a, b, c, rho.format, Fda(F, L, rho, e_zero(rng), cut), **scale)
        case "gdfs":
            G, groups, rho = rng.choice((1, 2, 3, 4, 16)), rng.choice((1, 2, 4)), conversion(rng)
            block = G * rng.choice((1, groups, groups * n))
            c = rho.format if n > 1 or rng.random() < 0.7 else rng.choice(TABLE)
            p = Gdfs(rng.randint(8, 40), G, G * groups, rho, e_zero(rng))
            own = rng.choice((ue8m0, ue4m3, ue4m3, FORMATS["ue8m0"]))
            return DotAdd(G * groups * n, e2m1, e2m1, c, rho.format, p, own, block)
        case "gfda":
            rho, G, F = conversion(rng), rng.choice((1, 2, 3, 4)), rng.randint(1, 40)
            W, step = rng.randint(F, min(F + 12, 46)), G * rng.choice((1, 2, 3))
            cut = rng.choice((Rounding.RZ, Rounding.RO))
            p = Gfda(F, G, step, W, rho, e_zero(rng), cut)
            return DotAdd(step * n, a, b, rho.format, rho.format, p)
        case "muladd":
            fmt = rng.choice((fp16, bf16, fp32, fp32))
            return DotAdd(n, a, b, fmt, fmt, Muladd(conversion(rng, fmt), conversion(rng, fmt)))
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
            last, cut = conversion(rng, rho.format), rng.choice((Rounding.RZ, Rounding.RZ, Rounding.RO))
            operands = rng.choice((None, fp16))
            p = Lowered(rng.randint(1, 40), L, rho, e_zero(rng), operands, tuple(order), last, cut)
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


# ---- values ----------------------------------------------------------------------------------------------------------


def by_terms(spec: DotAdd, given: Sequence[Codes]) -> list[int]:
    """The SMT encoding."""
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
    kernel, out = choose_kernel(spec), []
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


def wrong_values(unit: Instruction, given: Sequence[Codes], kernel: bool = False) -> list[str]:
    """Where an encoding is not what exact arithmetic gives."""
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
    """The unit with one parameter changed, or of another algorithm; None if there is none that makes sense."""
    changes = _changed_parameters(unit, rng)
    others = _other_algorithms(unit.spec)
    rng.shuffle(changes)
    rng.shuffle(others)
    for change in (*others, *changes) if rng.random() < 0.3 else (*changes, *others):
        try:
            return unit.replace(**change)
        except ValueError:
            continue
    return None


def _changed_parameters(unit: Instruction, rng: random.Random) -> list[dict[str, Any]]:
    p = unit.parameters
    changes: list[dict[str, Any]] = []
    numbers = {
        "F": (1, -1, 3, 9),
        "dot_bits": (1, -1),
        "sum_bits": (1, -1, 5),
        "c_reach": (-1, 1),
        "e_zero": (-1, 1, 50),
    }
    for name, by in numbers.items():
        if name in p.keys() and p[name] is not None:  # noqa: SIM118
            changes += [{name: p[name] + d} for d in by]
    for name in ("L", "G"):
        if name in p.keys():  # noqa: SIM118
            changes += [{name: n} for n in (1, 2, 4, 8, p[name] * 2) if n != p[name]]
    for name in ("skip_zero_products", "inputs_first"):
        if name in p.keys():  # noqa: SIM118
            changes.append({name: not p[name]})
    if "cut" in p.keys():  # noqa: SIM118
        other = Rounding.RD if isinstance(p, Fdrda) else Rounding.RO
        changes.append({"cut": other if p["cut"] is Rounding.RZ else Rounding.RZ})
    if "order" in p.keys():  # noqa: SIM118
        changes.append({"order": tuple(rng.sample(p["order"], len(p["order"])))})
    for name in ("rho", "addition"):
        if name in p.keys():  # noqa: SIM118
            changes += [
                {name: replace(p[name], name="other", rounding=r)}
                for r in DETERMINISTIC
                if r != p[name].rounding
            ]
            changes.append({name: replace(p[name], name="signed", signed_zero=not p[name].signed_zero)})
    return changes


def _other_algorithms(spec: DotAdd) -> list[dict[str, Any]]:
    """Parameters of other algorithms, some of which may take the same types."""
    n, rho = spec.parameters.step_products, spec.parameters.last_rounding
    others: list[Parameters] = []
    made: list[Callable[[], Parameters]] = [
        lambda: Fda(30, n, rho, -200),
        lambda: Fda(24, n, rho, None),
        lambda: Efda(n, rho),
        lambda: Efda(1, rho),
        lambda: Gps(n),
        lambda: Muladd(rho, rho),
        lambda: Fdrda(24, n, rho),
        lambda: Gfdrda(24, n, rho),
        lambda: Lowered(24, n, rho, -200, fp16, tuple(range(n)), rho),
    ]
    if spec.scale_format is not None:
        made = [
            lambda: Fda(30, n, rho, -200),
            lambda: Gdfs(30, 2, n, rho, -200),
            lambda: Gdfs(30, 1, n, rho, None),
        ]
    for each in made:
        try:
            others.append(each())
        except ValueError:
            continue
    return [{"parameters": p} for p in others if p != spec.parameters]


def constraint(spec: DotAdd, rng: random.Random) -> list[Constraint]:
    """Return what the inputs of a difference are restricted to: mostly nothing."""
    kind = rng.random()
    if kind < 0.6:
        return []
    if kind < 0.7:
        return [finite()]
    if kind < 0.78:
        return [normal(), finite()]
    if kind < 0.85:
        return [nonzero()]
    if kind < 0.92:
        operands = rng.choice(("abc", "ab", "a", "c"))
        return [magnitude(Fraction(2) ** rng.randint(-8, 0), Fraction(2) ** rng.randint(0, 8), operands)]
    if kind < 0.96:
        return [fixed(c=code(spec.c_format, rng))]
    return [fixed(b={k: code(spec.b_format, rng) for k in range(spec.k)})]


def allowed(given: Sequence[Constraint], spec: DotAdd, x: Codes, results: Sequence[int] = ()) -> bool:
    """Whether a case satisfies constraints, by the values of its codes."""
    sides = {"a": (x.a, spec.a_format), "b": (x.b, spec.b_format), "c": ((x.c,), spec.c_format)}
    operands = [(u, fmt) for codes, fmt in sides.values() for u in codes]
    scales = [(s, spec.scale_format) for s in (*x.scale_a, *x.scale_b)]

    def one(each: Constraint) -> bool:
        if isinstance(each, finite):
            whole = [*operands, *scales, *((d, spec.d_format) for d in results)]
            return all(fmt.is_finite(u) for u, fmt in whole if fmt is not None)
        if isinstance(each, normal):
            return all(
                fmt.is_finite(u) and (fmt.value(u) == 0 or fmt.fields(u)[1] > 0) for u, fmt in operands
            )
        if isinstance(each, nonzero):
            return all(not fmt.is_finite(u) or fmt.value(u) != 0 for u, fmt in operands)
        if isinstance(each, magnitude):
            chosen = [(u, fmt) for name in each.operands for u in sides[name][0] for fmt in [sides[name][1]]]
            return all(
                fmt.is_finite(u) and (fmt.value(u) == 0 or each.low <= abs(fmt.value(u)) <= each.high)
                for u, fmt in chosen
            )
        assert isinstance(each, fixed)
        pinned = {(name, k): u for name in "ab" for k, u in (getattr(each, name) or {}).items()}
        return (each.c is None or each.c == x.c) and all(
            (x.a if name == "a" else x.b)[k] == u for (name, k), u in pinned.items()
        )

    return all(map(one, given))


def meant_for(given: Sequence[Constraint], x: Codes) -> Codes:
    """The case with what constraints fix."""
    for each in given:
        if isinstance(each, fixed):
            b = tuple((each.b or {}).get(k, u) for k, u in enumerate(x.b))
            x = replace(x, b=b, c=x.c if each.c is None else each.c)
    return x


def of_witness(w: Any) -> Codes:
    sides = [tuple(int(u) for u in side) for side in (w.a, w.b, w.scale_a, w.scale_b)]
    return Codes(sides[0], sides[1], int(w.c), *(sides[2:] if w.x.spec.scale_format is not None else ()))


def near(spec: DotAdd, x: Codes, rng: random.Random, count: int) -> list[Codes]:
    """Cases like one and smaller, some by several changes; and sparse ones."""
    found, level = {x}, [x]
    for _ in range(2):
        level = [y for z in level for y in itertools.islice(smaller_cases(spec, z), count)]
        level = rng.sample(level, min(len(level), 12))
        found |= set(level) | {y for z in level for y in itertools.islice(smaller_cases(spec, z), count)}
    return [y for y in found if all(0 <= u < f.codes for u, f in _all_codes(spec, y))][: 20 * count]


def _all_codes(spec: DotAdd, x: Codes) -> list[tuple[int, Format]]:
    scale = spec.scale_format or spec.a_format
    sides = ((x.a, spec.a_format), (x.b, spec.b_format), ((x.c,), spec.c_format))
    return [(u, fmt) for side, fmt in (*sides, ((*x.scale_a, *x.scale_b), scale)) for u in side]


def wrong_difference(
    x: Instruction,
    y: Instruction,
    rng: random.Random,
    timeout: float,
    where: Sequence[Constraint] = (),
) -> tuple[str, list[str]]:
    """(the answer's kind, what is wrong with it)."""
    given = [meant_for(where, z) for z in cases(x.spec, rng, 400)]
    try:
        answer = find_difference(x, y, where=where, timeout=timeout)
    except ValueError as error:
        if "no input satisfies" not in str(error):
            raise
        results = zip(run(x, given), run(y, given), strict=True)
        some = [z for z, d in zip(given, results, strict=True) if allowed(where, x.spec, z, d)]
        return "nothing allowed", [f"an input satisfies {where}: {some[0]}"] if some else []
    wrong = []
    if isinstance(answer, Different):
        z = of_witness(answer.witness)
        results = [exact.dot_add(i.spec, z.a, z.b, z.c, z.scale_a, z.scale_b) for i in (x, y)]
        if same(x.spec, *results):
            wrong.append(f"no difference: both give {results[0]:#x} of {z}")
        if not allowed(where, x.spec, z, results):
            wrong.append(f"not allowed by {where}: {z}")
        given = given[:100] + [meant_for(where, near_by) for near_by in near(x.spec, z, rng, 40)]
        pairs = list(zip(given, run(x, given), run(y, given), strict=True))
        sizes = [
            size(x.spec, z)
            for z, *d in pairs
            if results_differ(x.spec, y.spec, *d) and allowed(where, x.spec, z, d)
        ]
        found = refuted(answer.minimality, sizes)
        wrong += [f"{found}, where {where}"] if found else []
    elif isinstance(answer, Equal):
        for case, mine, other in zip(given, run(x, given), run(y, given), strict=True):
            if not same(x.spec, mine, other) and allowed(where, x.spec, case, (mine, other)):
                wrong.append(f"not equal: {mine:#x} and {other:#x} of {case}")
                break
    str(answer), json.dumps(answer.to_json())
    return type(answer).__name__, wrong


def wrong_property(name: str, unit: Instruction, rng: random.Random, timeout: float) -> tuple[str, list[str]]:
    """(the answer's kind, what is wrong with it)."""
    with LazyPortfolio() as portfolio, relations_broken() as relations:
        answer = PROPERTIES[name].settle(unit, Asker(portfolio, timeout))
    wrong: list[str] = []
    if isinstance(answer, Holds):
        found = attack(name, unit, rng, answer=answer)
        wrong += [f"{name} holds, but {found}"] if found else []
    elif isinstance(answer, Fails):
        wrong += [f"{name}: {each}" for each in wrong_witness(answer.witness, unit, rng, relations)]
    str(answer), json.dumps(answer.to_json())
    return type(answer).__name__, wrong


@contextmanager
def relations_broken() -> Iterator[list[Relation]]:
    """The relations of which a witness is made smaller within."""
    found: list[Relation] = []
    smallest = settling.smallest_breaking

    def noting(asker: Asker, relation: Relation, codes: Codes) -> Any:
        found.append(relation)
        return smallest(asker, relation, codes)

    with mock.patch.object(settling, "smallest_breaking", noting):
        yield found


def wrong_witness(
    witness: Any, unit: Instruction, rng: random.Random, relations: Sequence[Relation]
) -> list[str]:
    """Say what is wrong with a witness: results that exact arithmetic does not give, or a smaller case."""

    if isinstance(witness, Unreachable):
        some = cases(unit.spec, rng, 1000)
        some += [replace(x, c=witness.code) for x in some if unit.spec.c_format == unit.spec.d_format]
        given = [x for x, d in zip(some, run(unit, some), strict=True) if d == witness.code]
        return [f"{given[0]} gives {witness.code:#x}"] if given else []
    wrong = []
    for each in witness.runs:
        x = each.codes
        its = exact.dot_add(each.spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
        if not same(each.spec, its, each.result):
            wrong.append(f"{its:#x} of its witness {x}, not {each.result:#x}")
    for relation in relations if len(witness.minimality) == 7 else ():
        rows = [*cases(relation.left, rng, 100), *near(relation.left, witness.codes, rng, 40)]
        sizes = [size(relation.left, z) for z, b in zip(rows, relation.breaks(rows), strict=True) if b]
        found = refuted(witness.minimality, sizes)
        wrong += [found] if found else []
    return wrong


# ---- the campaign ----------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    """A plan of what is done with each unit."""

    cases: int = 150
    kernel_every: int = 0  #: units between two whose kernel is compiled; 0: none
    chain_every: int = 0  #: units between two that are chained before they are compared; 0: none
    encodings_every: int = 0  #: units between two whose encodings are proved equal; 0: none
    difference: bool = True
    properties: int = 1
    timeout: float = 4.0


def try_unit(number: int, unit: Instruction, plan: Plan) -> tuple[list[str], list[str]]:
    """(what is wrong, the answers' kinds)."""
    rng = random.Random(number + 1)
    kernel = bool(plan.kernel_every) and number % plan.kernel_every == 0
    wrong, kinds = wrong_values(unit, cases(unit.spec, rng, plan.cases), kernel), []
    kinds += ["kernel"] if kernel else []
    if plan.encodings_every and number % plan.encodings_every == 0:
        answer = verify(unit, timeout=plan.timeout)
        kinds.append(f"both encodings: {type(answer).__name__}")
        wrong += [f"the encodings differ: {answer}"] if isinstance(answer, Fails) else []
    other = neighbour(unit, rng) if plan.difference else None
    if other is not None:
        x, y, where = unit, other, constraint(unit.spec, rng)
        if plan.chain_every and number % plan.chain_every == 0 and unit.c_format == unit.d_format:
            x, y = (each.chained(unit.k * 24) for each in (x, y))
        kind, bad = wrong_difference(x, y, rng, plan.timeout, where)
        name = f"difference{' of long chains' if x.k > unit.k else ''}{' where …' if where else ''}"
        kinds.append(f"{name}: {kind}")
        wrong += bad
    # Of 18 units in a row, each is asked about another property; more are drawn.
    names = sorted(PROPERTIES)
    for name in [names[number % len(names)], *rng.sample(names, len(names))][: plan.properties]:
        kind, bad = wrong_property(name, unit, rng, plan.timeout)
        kinds.append(f"{name}: {kind}")
        wrong += bad
    return wrong, kinds


def tried(number: int, unit: Instruction, plan: Plan) -> dict[str, Any]:
    """A record of one unit: what it is, the answers' kinds, what is wrong with them, and the seconds."""
    start = time.monotonic()
    try:
        wrong, kinds = try_unit(number, unit, plan)
    except Exception as error:  # what is looked for
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
        wrong, kinds = [f"{type(error).__name__} at {at}: {error}"], ["exception"]
    return {
        "number": number,
        "algorithm": unit.algorithm,
        "answers": kinds,
        "wrong": wrong,
        "unit": repr(unit.spec),
        "seconds": round(time.monotonic() - start, 1),
    }


def recorded(log: Path | None) -> dict[int, dict[str, Any]]:
    """The units that a log has, by their numbers; what a line cut short says is tried again."""
    found = {}
    for line in log.read_text().splitlines() if log is not None and log.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[record["number"]] = record
    return found


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
    parser.add_argument(
        "--chain-every", type=int, default=0, help="units between two that are compared as long chains"
    )
    parser.add_argument(
        "--encodings-every", type=int, default=0, help="units between two whose encodings are proved equal"
    )
    parser.add_argument("--no-difference", action="store_true")
    parser.add_argument("--timeout", type=float, default=4.0, help="seconds for each answer")
    parser.add_argument(
        "--log", type=Path, help="a line for each unit; those that it has are not tried again"
    )
    args = parser.parse_args(argv)
    plan = Plan(
        args.cases,
        args.kernel_every,
        args.chain_every,
        args.encodings_every,
        not args.no_difference,
        args.properties,
        args.timeout,
    )
    refused, algorithms, answers = Counter[str](), Counter[str](), Counter[str]()
    known, bad, seconds = recorded(args.log), 0, 0.0
    for number, unit in itertools.islice(units(args.seed, refused), args.count):
        record = known.get(number)
        if record is None:
            record = tried(number, unit, plan)
            if args.log is not None:
                with args.log.open("a") as log:
                    log.write(json.dumps(record) + "\n")
        algorithms[record["algorithm"]] += 1
        answers.update(record["answers"])
        bad += bool(record["wrong"])
        seconds += record["seconds"]
        for line in record["wrong"]:
            print(f"{number} {record['unit']}\n    {line}", flush=True)
    print(f"{args.count} units, {bad} with something wrong, {seconds:.0f} s")
    for title, counts in (("algorithms", algorithms), ("refused", refused), ("answers", answers)):
        print(f"{title}: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
