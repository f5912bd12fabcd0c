"""Messages of failed tests: where it is wrong, the first wrong element stage by stage, and what else explains it."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mmaformal.brief import more
from mmaformal.display import counted
from mmaformal.gemm import CodeArray
from mmaformal.given_matrices import GivenMatrices
from mmaformal.given_scales import GivenScales
from mmaformal.instruction import Instruction
from mmaformal.operands import ProductCodes
from mmaformal.queries.explain import explain_given
from mmaformal.queries.explained import Explanation
from mmaformal.shown_stages import code_text, explain_case, ulps_apart
from mmaformal.structure_plans import products_of, scales_of
from mmaformal.structures import Structure, replay
from mmaformal.testing.given import GivenProduct
from mmaformal.where_wrong import where_wrong

#: Chains of one element whose results are told one by one, at most.
_CHAINS = 8
#: Seconds that a search takes at least.
_LEAST = 0.2


def mismatch_text(
    given: GivenProduct,
    expected: CodeArray,
    wrong: NDArray[np.bool_],
    how: Mapping[str, object],
    seconds: float,
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
        sides = operands.scale_a, operands.scale_b
        of_chain = None if sides[0] is None or sides[1] is None else (sides[0][[row]], sides[1][:, [column]])
        c = operands.c if operands.c is None else operands.c[row, column]
        return _chain_lines(given.structure, a, b, c, of_chain)
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
    a: CodeArray,
    b: CodeArray,
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


def _chain_lines(
    structure: Structure,
    a: CodeArray,
    b: CodeArray,
    c: CodeArray | None,
    scales: tuple[CodeArray, CodeArray] | None,
) -> list[str]:
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
        s, t = _of_chain(scales, i, taken, K)
        d = int(replay(a[None, taken], b[taken, None], *first, scale_a=s, scale_b=t)[0, 0])
        of = np.arange(K)[taken]
        lines.append(f"  chain {number}, products {of[0]} to {of[-1]}: {code_text(d, i.d_format)}")
    if (hidden := len(parts) - _CHAINS) > 0:
        lines.append(f"  {more(hidden, 'chain')}")
    taken = products_of(parts[0], i.k, K)
    of_first = [[] if x is None else x.ravel().tolist() for x in _of_chain(scales, i, taken, K)]
    begin = int(c) if starts and c is not None else 0
    return [*lines, "chain 0:", *_stages(i, a[taken], b[taken], begin, *of_first)]


def _of_chain(
    scales: tuple[CodeArray, CodeArray] | None, i: Instruction, taken: slice | NDArray[np.intp], K: int
) -> tuple[CodeArray | None, CodeArray | None]:
    """The block scales of the products of a chain, if there are any."""
    return (None, None) if scales is None else scales_of(*scales, i.spec.scale_block, taken, K)


def _others(given: GivenProduct, seconds: float) -> list[str]:
    """Returns what else explains every element, as `explain` finds it, of the unit itself, else of any."""
    operands = given.operands
    if seconds <= 0 or operands.batch:
        return []
    i, (_, each) = given.instruction, next(given.products())
    c_format, scales = None if each.c is None else i.c_format, None
    if each.scale_a is not None and each.scale_b is not None and i.spec.scale_format is not None:
        scales = GivenScales(each.scale_a, each.scale_b, i.spec.scale_format, i.spec.scale_block)
    formats = given.d_format, i.a_format, i.b_format, c_format
    of = GivenMatrices(given.out, each.a, each.b, each.c, *formats, scales=scales)
    end = time.monotonic() + seconds
    try:
        own = explain_given(of, None, i, timeout=seconds / 3, say=_silent)
        found = own if own.structure is not None or own.told else _of_any(of, end) or own
    except ValueError:  # no unit of the registry takes the types
        return []
    if found.structure is None or found.wrong.all():
        early = "" if found.complete else f", not all, for {seconds:g} s were up"
        nearest = [f"  the nearest leaves {count:,} wrong: {x}" for count, x in found.nearest[:1]]
        tried = f"nothing else explains every element (tried: {own.tried:,} structures{early})"
        return [tried, *nearest, *(f"  {line}" for line in found.told)]
    whose = f" of {i.label}" if found is own else ""
    many = (
        "one structure explains"
        if len(found.structures) == 1
        else f"{len(found.structures)} structures explain"
    )
    if found.unexplained.any():
        what = f"{many}{whose} all but {counted(int(found.unexplained.sum()), 'element')}, of the rest:"
    else:
        what = f"{many}{whose} every element{', the simplest:' if len(found.structures) > 2 else ':'}"
    return [what, *(line for x in found.structures[:2] for line in (f"  {x}", f"    structure={x.python}"))]


def _of_any(of: GivenMatrices, end: float) -> Explanation | None:
    left = end - time.monotonic()
    return explain_given(of, None, None, timeout=left, say=_silent) if left > _LEAST else None


def _silent(_: str) -> None:
    """Says nothing of what is tried."""
