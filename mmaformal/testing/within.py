"""A product within the proved bound of its unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix, ProductCodes
from mmaformal.queries.bound import provable
from mmaformal.shown_stages import code_text
from mmaformal.statistics import exact_errors
from mmaformal.structures import Structure
from mmaformal.testing.given import GivenProduct, as_float64
from mmaformal.testing.seen import saw
from mmaformal.where_wrong import where_wrong

Floats = NDArray[np.float64]

#: Room for the comparison in float64: an error this near to its bound counts as within it.
_NEAR = 1 + 2.0**-40


@dataclass(frozen=True, repr=False)
class Within(ShortRepr):
    """How much of its bound a product used."""

    used: float  #: the largest error over its bound; 1 is all of it
    place: tuple[int, ...]  #: of that element
    elements: int  #: of which the bound speaks
    left_out: int  #: elements of which it says nothing: an operand is no number, or an overflow is possible
    argued: bool  #: whether the bound is argued, not proved
    source: str  #: what it rests on
    theorem: str

    def __str__(self) -> str:
        more = f", {self.left_out:,} not covered" if self.left_out else ""
        spoken = counted(self.elements, "element")
        return f"{self.used:.3g} of the bound used ({self.source}), {spoken}{more}: {self.theorem}"


def assert_within(
    out: Matrix,
    A: Matrix,
    B: Matrix,
    C: Matrix | None = None,
    *,
    instruction: Instruction | str | None = None,
    structure: Structure | str | None = None,
    d_format: Format | str | None = None,
    promote_every: int | None = None,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    argued: bool = False,
) -> Within:
    """Assert that each element of `out` is within a bound of the exact C + A·B; returns how much was used.

    The theorem is `mmaformal bound`'s: whatever the unit gives for these operands is so near to the exact sum, if
    no step's sum overflows.  The exact sum is exact (`mmaformal.statistics`), the bound is that of each element:
    |d − exact| ≤ f·σ, σ = w(c) + Σ w(a)·w(b), and of a D that is rounded once more u·max(|exact| + f·σ, least) besides.
    It holds for every order of the products within a step, and of `structure` or `promote_every` in place of one chain.
    What is asked here is the number; `mmaformal bound INSTRUCTION --k K` has it proved by solvers.

    An element that is no number fails, unless an operand is none, or the sum might overflow: then nothing is said of
    it, and it counts as left out.  Where nothing is said of any element, ValueError is raised.

    Operands as `assert_matches` takes them.  `argued=True` takes the bounds of units that flush subnormal numbers too
    (cdna2, VDPBF16PS, …), and of acc_e9s12, which are argued and not proved.  Raises ValueError for a unit without a
    bound.
    """
    __tracebackhide__ = True
    given = GivenProduct.of(
        out,
        A,
        B,
        C,
        instruction=instruction,
        structure=structure,
        d_format=d_format,
        scale_a=scale_a,
        scale_b=scale_b,
    )
    if not argued:
        provable(given.instruction)
    K = given.operands.shape[2]
    bound = StructureBound.of(
        given.structure or given.instruction, K, promote_every=promote_every, d_format=given.d_format
    )
    bound.check_argued(argued)
    error, allowed, exact, covered = _all_compared(given, bound)
    if not covered.any():
        raise ValueError(
            "an operand of every element is no number, or its sum may overflow: no bound speaks of them"
        )
    wrong = covered & ~(error <= allowed * _NEAR)
    found = _used(bound, error, allowed, covered)
    if wrong.any():
        raise AssertionError(_text(given, found, wrong, error, allowed, exact))
    saw("within", given.instruction.label, found.elements, found.used)
    return found


def _used(bound: StructureBound, error: Floats, allowed: Floats, covered: NDArray[np.bool_]) -> Within:
    """How much of the bounds was used."""
    with np.errstate(all="ignore"):
        used = np.where(covered, np.where(error == 0, 0.0, error / allowed), 0.0)
    worst = tuple(int(x) for x in np.unravel_index(int(np.argmax(used)), used.shape))
    counts = int(covered.sum()), int((~covered).sum())
    return Within(float(used[worst]), worst, *counts, bound.argued, bound.source, bound.statement)


def _all_compared(
    given: GivenProduct, bound: StructureBound
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return what `_compared` returns, of all products of a batch."""
    shape = given.operands.outputs
    found = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape, bool)
    for where, each in given.products():
        parts = _compared(given, bound, each, np.asarray(given.out[where]))
        for whole, part in zip(found, parts, strict=True):
            whole[where] = part.reshape(whole[where].shape)
    return found


def _compared(
    given: GivenProduct, bound: StructureBound, each: ProductCodes, out: NDArray[np.unsignedinteger]
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return what each element is off, what it may be off, the exact sums, and of which of them the bound speaks."""
    i = given.instruction
    out = out.reshape(len(each.a), each.b.shape[1])
    finite = np.isfinite(as_float64(out, given.d_format))
    exact, error = _exact_errors(i, each, np.where(finite, out, np.zeros_like(out)), given.d_format)
    scales = {"scale_a": each.scale_a, "scale_b": each.scale_b}
    E = bound.sum_bound(each.a, each.b, each.c, **scales)
    allowed = bound.rounded_bound(E, exact)
    with np.errstate(all="ignore"):
        # No step's sum is above (1 + f)·σ, so that none overflows where that is a number of both formats.
        sigma = E / float(bound.f) + E
        most = min(float(fmt.value(fmt.largest)) for fmt in (i.d_format, bound.total, given.d_format))
        finite_sums = np.isfinite(exact) & np.isfinite(allowed)
        covered = finite_sums & (finite | (sigma + allowed < most))
        error = np.where(finite, np.abs(error), np.inf)
    return error, allowed, exact, covered


def _exact_errors(
    i: Instruction, each: ProductCodes, d: NDArray[np.unsignedinteger], d_format: Format
) -> tuple[Floats, Floats]:
    """The exact sums, and what d is off; NaN where an operand is no number."""
    c = np.zeros(d.shape, i.c_format.word) if each.c is None else each.c
    turned = [each.scale_a, None if each.scale_b is None else each.scale_b.T]
    s, t = (None if x is None else np.ascontiguousarray(x) for x in turned)
    a, b, c, d = (np.ascontiguousarray(x) for x in (each.a, each.b.T, c, d))
    return exact_errors(i, a, b=b, c=c, d=d, scale_a=s, scale_b=t, d_format=d_format)


def _text(
    given: GivenProduct,
    found: Within,
    wrong: NDArray[np.bool_],
    error: Floats,
    allowed: Floats,
    exact: Floats,
) -> str:
    first = tuple(int(x[0]) for x in np.nonzero(wrong))
    place, worst = (", ".join(map(str, x)) for x in (first, found.place))
    kind = "argued bound" if found.argued else "bound"
    return "\n".join(
        [
            f"{counted(int(wrong.sum()), 'element')} of {wrong.size:,} outside of the {kind} of "
            f"{given.instruction.label}: {where_wrong(wrong)}",
            f"the first, out[{place}]:",
            f"  out      {code_text(int(given.out[first]), given.d_format)}",
            f"  exact    {exact[first]:.17g}",
            f"  off by   {error[first]:.6g}",
            f"  allowed  {allowed[first]:.6g}",
            f"the worst, out[{worst}]: {found.used:.4g} times its bound",
            f"the theorem: {found.theorem}, where no step's sum overflows: no input makes this unit give these",
        ]
    )
