"""What a failed test says: where it is wrong, the first wrong element stage by stage, and what else explains it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mmaformal.brief import more
from mmaformal.display import counted
from mmaformal.gemm import Codes
from mmaformal.instruction import Instruction
from mmaformal.operands import ProductCodes
from mmaformal.queries.diagnose_gemm import GemmDiagnosis, diagnose_gemm
from mmaformal.shown_stages import code_text, explain_case, ulps_apart
from mmaformal.structure_plans import products_of
from mmaformal.structures import Structure, replay
from mmaformal.testing.given import GivenProduct
from mmaformal.where_wrong import where_wrong

#: Chains of one element whose results are told one by one, at most.
_CHAINS = 8
#: Elements of a product that is searched for another structure, at most: more rows cost time and tell no more.
_SEARCHED = 1 << 16


def mismatch_text(
    given: GivenProduct, expected: Codes, wrong: NDArray[np.bool_], how: Mapping[str, object], seconds: float
) -> str:
    """Returns the message of a product that differs; the search for what else explains it takes `seconds` at most."""
    divided = "".join(f", {name}={value!r}" for name, value in how.items())
    first = tuple(int(x[0]) for x in np.nonzero(wrong))
    place = ", ".join(map(str, first))
    mine, theirs = int(given.out[first]), int(expected[first])
    apart = ulps_apart(mine, theirs, given.d_format)
    lines = [
        f"{counted(int(wrong.sum()), 'element')} of {wrong.size:,} not as {given.label}{divided} gives: "
        f"{where_wrong(wrong)}",
        f"the first, out[{place}]:",
        f"  out       {code_text(mine, given.d_format)}",
        f"  the unit  {code_text(theirs, given.d_format)}" + (f"  {apart} ulp apart" if apart else ""),
    ]
    operands = _operands_at(given, first)
    lines += [*element_lines(given, operands, first[-2:], divided), *_others(given, seconds)]
    return "\n".join(lines)


def _operands_at(given: GivenProduct, place: tuple[int, ...]) -> ProductCodes:
    """The operands of the product of the batch that an element is of."""
    for where, each in given.products():
        if where is ... or where == place[:-2]:
            return each
    raise IndexError(place)


def element_lines(
    given: GivenProduct, operands: ProductCodes, place: tuple[int, ...], divided: str = ""
) -> list[str]:
    """Returns how the unit makes one element, stage by stage."""
    i, (row, column) = given.instruction, place
    a, b = operands.a[row], operands.b[:, column]
    if given.structure is not None and not given.structure.whole:
        return _chain_lines(
            given.structure, a, b, operands.c if operands.c is None else operands.c[row, column]
        )
    if divided:
        return [f"  the unit's sum of a[{row}, :]·b[:, {column}] is divided as said ({divided[2:]})"]
    c = 0 if operands.c is None else int(operands.c[row, column])
    scales = []
    for side in (
        None if operands.scale_a is None else operands.scale_a[row],
        None if operands.scale_b is None else operands.scale_b[:, column],
    ):
        scales.append([] if side is None else side.tolist())
    return ["how the unit makes it:", *_stages(i, a, b, c, scales[0], scales[1])]


def _stages(
    i: Instruction,
    a: Codes,
    b: Codes,
    c: int,
    scale_a: list[int] | None = None,
    scale_b: list[int] | None = None,
) -> list[str]:
    steps = max(-(-len(a) // i.k), 1)
    missing = steps * i.k - len(a)
    unit = i.chained(steps * i.k) if steps > 1 else i
    s, t = (list(side or []) for side in (scale_a, scale_b))
    for side in (s, t):
        side += side[-1:] * (unit.spec.scales - len(side))
    codes = [[*side.tolist(), *[0] * missing] for side in (a, b)]
    text = explain_case(unit, codes[0], codes[1], c, s, t, whole=False)
    return [f"  {line}" for line in text.splitlines()]


def _chain_lines(structure: Structure, a: Codes, b: Codes, c: Codes | None = None) -> list[str]:
    """Returns what each chain gives, and the first chain stage by stage."""
    i, K = structure.instruction, len(a)
    parts = structure.chains(K)
    alone, begun = Structure(i, total=structure.total), Structure(i, total=structure.total, c_enters="start")
    starts = c is not None and structure.c_enters == "start"
    lines = [
        f"how the structure makes it: {counted(len(parts), 'chain')}, whose results are added in {structure.total}"
    ]
    for number, part in enumerate(parts[:_CHAINS]):
        taken = products_of(part, i.k, K)
        first = (begun, c) if starts and not number else (alone, None)
        d = int(replay(a[None, taken], b[taken, None], *first)[0, 0])
        of = np.arange(K)[taken]
        lines.append(f"  chain {number}, products {of[0]} to {of[-1]}: {code_text(d, i.d_format)}")
    if (hidden := len(parts) - _CHAINS) > 0:
        lines.append(f"  {more(hidden, 'chain')}")
    taken = products_of(parts[0], i.k, K)
    return [*lines, "chain 0:", *_stages(i, a[taken], b[taken], int(c) if starts and c is not None else 0)]


def _others(given: GivenProduct, seconds: float) -> list[str]:
    """Returns what else explains every element: of the unit itself, else of any; or that nothing tried does."""
    operands = given.operands
    if seconds <= 0 or operands.c is not None or operands.scale_a is not None or operands.batch:
        return []
    end = time.monotonic() + seconds
    try:
        own = _searched(given, [given.instruction], seconds / 3)
        found = own if own.structures else _searched(given, None, max(end - time.monotonic(), 0.1))
    except ValueError:  # no unit of the registry takes the types
        return []
    rows = found.shape[0]
    part = "" if rows >= len(given.out) else f" of the first {rows} rows"
    if found.structures:
        many = len(found.structures) + found.not_compared
        one = "one structure explains" if many == 1 else f"{many} structures explain"
        whose = f" of {given.instruction.label}" if found is own else ""
        told = [
            line for each in found.structures[:2] for line in (f"  {each}", f"    structure={each.python}")
        ]
        return [f"{one}{whose} every element{part}" + (", the simplest:" if many > 2 else ":"), *told]
    early = "" if found.complete else f", not all, for {seconds:g} s were up"
    nearest = [f"  the nearest leaves {miss.wrong:,} wrong: {miss.structure}" for miss in found.nearest[:1]]
    tried = own.tried + found.tried
    return [f"nothing else explains every element{part} (tried: {tried:,} structures{early})", *nearest]


def _searched(
    given: GivenProduct, instructions: Sequence[Instruction] | None, seconds: float
) -> GemmDiagnosis:
    rows = max(_SEARCHED // max(given.out.shape[1], 1), 2)
    return diagnose_gemm(
        given.operands.a[:rows],
        given.operands.b,
        given.out[:rows],
        a_format=given.instruction.a_format,
        b_format=given.instruction.b_format,
        d_format=given.d_format,
        instructions=instructions,
        timeout=seconds,
    )


__all__ = ["element_lines", "mismatch_text"]
