"""Explanations of wrong elements of a product: one value, another row's, a sum without a part of K.

And what a whole D is that is no product at all: a multiple of it, one with C or without, a reference's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import counted
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import fp64
from mmaformal.gemm import rounded_codes, values
from mmaformal.given_matrices import Floats, GivenMatrices, is_near, looked_at
from mmaformal.queries.other_products import exchanged, other_products
from mmaformal.queries.structure_search import ChainsOfRows, codes_differ
from mmaformal.shown_stages import code_text
from mmaformal.structure_plans import Chain, instructions_of
from mmaformal.structures import CodeArray, Structure, exactly, made_product

#: Wrong elements that are looked at: of so many rows and columns; and so many parts of K that may be missing.
_ROWS, _COLUMNS, _PARTS = 4, 64, 1024
#: The part of D's elements that are exact sums, rounded, where it is a reference.
_REFERENCE = 0.999
#: How many places the middle wrong element is off at most, where it is another order of sums that is seen.
_ROUNDINGS = 64
#: The most that roundings are, as a share of the sum of the magnitudes of terms.
_OF_TERMS = 2.0**-12
#: How far the middle ratio is off where D is a multiple of the product.
_SPREAD = 0.02


def gross_faults(given: GivenMatrices) -> list[str]:
    """Returns why D is no A·B + C at all, a line each; empty where it is one but for its roundings."""
    some = looked_at(given)
    d, total = some.sums()
    if is_near(d, total) is not False or _is_rounding(some, d - total):
        return []
    finite = np.isfinite(d) & np.isfinite(total) & (total != 0)
    ratios = d[finite] / total[finite]
    middle, scale = float(np.median(np.abs(ratios - 1))), float(np.median(ratios))
    spread = float(np.median(np.abs(ratios / scale - 1))) if scale else np.inf
    what = "A·B" if given.c is None else "A·B + C"
    lines = [
        f"D is no {what}, whatever the order of its sums: the middle element is off by {middle:.2g} of itself"
    ]
    if spread < _SPREAD:
        lines.append(f"it is near {scale:.4g} · ({what}): divide it by that, if a kernel's alpha did it")
    elif given.c is not None and is_near(d, _without_c(some)):
        lines.append("it is near A·B alone: C was not added, or is zero there")
    elif given.c is None and not np.any(d):
        lines.append("it is zero throughout: the kernel did not write it")
    else:
        lines += exchanged(given) or other_products(given)
    return lines


def _is_rounding(given: GivenMatrices, off: Floats) -> bool:
    """Whether D is so near to a sum whose terms cancel as the roundings of these terms are."""
    a, b = (np.abs(values(x, fmt, fp64)) for x, fmt in ((given.a, given.a_format), (given.b, given.b_format)))
    with np.errstate(all="ignore"):
        return bool(np.median(np.abs(off)) < _OF_TERMS * np.median(a @ b))


def _without_c(given: GivenMatrices) -> NDArray[np.float64]:
    bare = GivenMatrices(
        given.d, given.a, given.b, None, given.d_format, given.a_format, given.b_format, None
    )
    return bare.sums()[1]


def is_reference(given: GivenMatrices) -> list[str]:
    """Returns a line if D is what float64 gives, rounded once: a reference, and no unit's."""
    some = looked_at(given)
    _, total = some.sums()
    once = rounded_codes(total, fp64, some.d_format, quiet_nan(some.d_format))
    same = float((~codes_differ(once, some.d, some.d_format)).mean())
    if same < _REFERENCE:
        return []
    return [f"{same:.4g} of it is what float64 gives, rounded once: a reference's, of no unit that was tried"]


def what_they_are(
    given: GivenMatrices, structure: Structure, wrong: NDArray[np.bool_], unit: CodeArray
) -> list[str]:
    """Returns what wrong elements are instead, a line each; empty where it is not seen.

    unit (M, N): what the structure gives.
    """
    values_ = np.unique(given.d[wrong])
    if len(values_) == 1:
        count = int(wrong.sum())
        each = "it is" if count == 1 else "each of them is"
        return [f"{each} {code_text(int(values_[0]), given.d_format)}"]
    return _moved(given, wrong, unit) or _left_out(given, structure, wrong)


def roundings_off(given: GivenMatrices, wrong: NDArray[np.bool_], unit: CodeArray) -> list[str]:
    """Returns a line where wrong elements are so near to what the structure gives as another order of sums is."""
    d, by_unit = (values(x[wrong], given.d_format, fp64) for x in (given.d, unit))
    with np.errstate(all="ignore"):
        apart = np.median(np.abs(d - by_unit) / np.abs(by_unit))
    if apart < _ROUNDINGS * 2.0**-given.d_format.fraction_bits:
        return ["they are roundings off, as of another order of the sums, and not as of wrong data"]
    return []


def _moved(given: GivenMatrices, wrong: NDArray[np.bool_], unit: CodeArray) -> list[str]:
    """Rows, or columns, that hold what another one should."""
    for name, d, should, bad in (
        ("row", given.d, unit, wrong.any(axis=1)),
        ("column", given.d.T, unit.T, wrong.any(axis=0)),
    ):
        lines = list[str]()
        for place in np.flatnonzero(bad)[:_ROWS]:
            others = np.flatnonzero((should == d[place]).all(axis=1))
            if len(others) and d.shape[1] > 1:
                lines.append(f"{name} {place} of D is what {name} {others[0]} should be")
        if lines and len(lines) == min(int(bad.sum()), _ROWS):
            return lines
    return []


def _left_out(given: GivenMatrices, structure: Structure, wrong: NDArray[np.bool_]) -> list[str]:
    """A part of K without which the structure gives the wrong elements."""
    rows = np.flatnonzero(wrong.any(axis=1))[:_ROWS]
    columns = np.flatnonzero(wrong[rows].any(axis=0))[:_COLUMNS]
    part, where = given.part(rows, columns), wrong[np.ix_(rows, columns)]
    for d, words in _without(part, structure):
        if not codes_differ(d, part.d, part.d_format)[where].any():
            return [f"as if {words} {'was' if words == 'C' else 'were'} left out"]
    return []


def _without(part: GivenMatrices, structure: Structure) -> Iterator[tuple[CodeArray, str]]:
    """Yield what the structure gives without each of its parts, with what is left out."""
    i, K = structure.instruction, part.shape[1]
    rows, chains = ChainsOfRows(i, part.a, part.b, part.scales), structure.chains(K)
    c = None
    if part.c is not None and part.c_format is not None and structure.c_enters is not None:
        c = exactly(part.c, part.c_format, structure.c_format)
        yield rows.made(replace(structure, c_enters=None, d_format=structure.result)), "C"

    def shortened(which: Chain, left: Chain) -> CodeArray:
        """D with a part of one chain, or none of it."""

        def run(chain: Chain, begin: CodeArray | None) -> CodeArray:
            return rows.run(left if chain == which else chain, begin)

        return made_product(structure, K, run, c)

    for each in chains[:_PARTS] if len(chains) > 1 else ():
        yield shortened(each, ()), _products_words(each, i.k, K)
    last = instructions_of(chains[-1])
    for kept in range(len(last) - 1, 0, -1)[:_PARTS]:
        left = tuple(range(step, step + 1) for step in last[:kept])
        yield shortened(chains[-1], left), f"the last {counted(K - last[kept] * i.k, 'product')}"
    for first in range(1, min(len(last), _PARTS // i.k)) if len(chains) == 1 and c is None else ():
        late = (range(first, len(last)),)
        yield shortened(chains[0], late), f"the first {counted(first * i.k, 'product')}"


def _products_words(chain: Chain, k: int, K: int) -> str:
    steps = instructions_of(chain)
    step = chain[0].step if len(chain) == 1 else 1
    of = f"products {min(steps) * k} to {min(max(steps) * k + k, K) - 1}"
    return of + (f" in steps of {step * k}" if step > 1 else "" if len(chain) == 1 else ", some of them,")
