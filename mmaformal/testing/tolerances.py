"""Tolerances that are theorems, for `torch.testing.assert_close` and `numpy.testing.assert_allclose`.

Both compare |actual − expected| ≤ atol + rtol·|expected|.  Let x be the exact sum, d the unit's result, S the sum
that is rounded to it, e a reference.  `analysis/structure_bounds` has |S − x| ≤ f·σ and |d − S| ≤ u·max(|S|, least).

A reference summed in fp64, in any order, of products that fp64 holds or fused with their additions or rounded alone, is
|e − x| ≤ g·σ, g = (1 + 2^−53)^(K + 2) − 1 (`prove_beside`: a tree of K additions at most, each product rounded once),
and 2^−1075 besides for each product that underflows.  With E = (f + g)·σ the triangle gives |S| ≤ |e| + E and

    |d − e| ≤ E + u·(|e| + E) + u·least,        so rtol = u and atol = (1 + u)·E + u·least.

If the reference is rounded to d's format too, e' = ρ(e), |e' − e| ≤ u·max(|e|, least), then |e| is at most
(|e'| + u·least)/(1 − u), and rtol = 2·u/(1 − u), atol = (1 + u)·E + (2·u + rtol·u)·least.  What is compared is computed
in that format then, which rounds atol, the product with rtol, their sum and the difference once each: times
(1 + u)/(1 − u)^4, and two subnormal places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.analysis.units import raised
from mmaformal.architectures.meant import instruction_meant
from mmaformal.display import ShortRepr
from mmaformal.formats import Format
from mmaformal.given_matrices import format_named
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.queries.bound import bound, provable
from mmaformal.solver.answers import Answer
from mmaformal.structures import Structure

Reference = Literal["fp64", "rounded"]
_FP64 = Fraction(1, 1 << 53)
#: The most that a product that underflows in fp64 is off.
_UNDERFLOW = Fraction(1, 1 << 1075)
#: Room for the rounding of a comparison in fp64.
_COMPARED = 1 + Fraction(1, 1 << 48)


@dataclass(frozen=True, repr=False)
class Tolerance(ShortRepr, Mapping[str, float]):
    """atol and rtol, and what they rest on; `**tolerance` gives both to a function that takes them."""

    atol: float
    rtol: float
    bound: StructureBound
    sigma: float  #: the largest σ of any element
    expected: Reference
    argued: bool  #: whether the bound is argued, not proved

    def __getitem__(self, name: str) -> float:
        if name not in ("atol", "rtol"):
            raise KeyError(name)
        return self.atol if name == "atol" else self.rtol

    def __iter__(self) -> Iterator[str]:
        return iter(("atol", "rtol"))

    def __len__(self) -> int:
        return 2

    def __hash__(self) -> int:
        return hash((self.atol, self.rtol))

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions of the theorem, a line each."""
        fmt = min((self.bound.total, *filter(None, [self.bound.narrowed])), key=lambda x: x.max_exponent)
        overflow = float(fmt.value(fmt.largest))
        safe = (1 + float(self.bound.f)) * self.sigma < overflow
        reference = "summed in fp64, in any order, and compared in fp64"
        if self.expected == "rounded":
            d = self.bound.narrowed or self.bound.unit.instruction.d_format
            reference = f"summed in fp64, rounded to {d} to nearest, and compared in {d}"
        return (
            "operands are numbers, within the magnitudes given",
            "no step's sum overflows: of these magnitudes none can"
            if safe
            else f"no step's sum is above {overflow:.6g}, which these magnitudes do not exclude",
            f"the reference is {reference}",
            f"the unit is as modelled: {self.bound.unit.instruction.label}",
        )

    @property
    def theorem(self) -> str:
        """The bound that it rests on."""
        return self.bound.statement

    def __str__(self) -> str:
        kind = self.bound.source
        lines = [f"atol={self.atol:.6g}, rtol={self.rtol:.6g} ({kind}): {self.theorem}; σ ≤ {self.sigma:.6g}"]
        return "\n".join([*lines, "assumes:", *(f"  {line}" for line in self.assumes)])

    def prove(self, timeout: float = 600.0) -> Answer:
        """Returns `Holds` of the bound that it rests on, asked of solvers (`mmaformal bound`), or `Unknown`."""
        what = self.bound.structure or self.bound.unit.instruction
        return bound(what, self.bound.K, d_format=self.bound.narrowed, timeout=timeout, cache=True)


def tolerance(
    instruction: Instruction | Structure | str,
    K: int | None = None,
    *,
    A: Matrix | None = None,
    B: Matrix | None = None,
    C: Matrix | None = None,
    largest: tuple[float, float] | tuple[float, float, float] | None = None,
    promote_every: int | None = None,
    d_format: Format | str | None = None,
    expected: Reference = "fp64",
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    argued: bool = False,
) -> Tolerance:
    """Return atol and rtol that no result of the unit exceeds: `torch.testing.assert_close(out, ref, **tolerance(…))`.

    Of the operands `A`, `B` and `C` themselves; or of K products whose factors' magnitudes are at most `largest`
    (of a, of b, and of c, 0 if left out), which is looser.  `instruction` may be a `Structure`; `promote_every` and
    `d_format`, what d is rounded to in the end, as `assert_within` takes them.

    expected: what it is compared with: "fp64", a reference summed in fp64 and compared in fp64 (`out.double()`), or
    "rounded", that reference rounded to d's format and compared in it.

    The bound is relative to σ = |c| + Σ|a·b|, so that atol is: no rtol holds where a sum cancels.  `print` of it says
    the theorem and what it assumes; `.prove()` asks solvers for the bound.

    Raises ValueError where neither operands nor K and magnitudes are given, and for a unit whose bound is not proved
    (`argued=True` takes it).
    """
    what = instruction if isinstance(instruction, Structure) else instruction_meant(instruction)
    i = what.instruction if isinstance(what, Structure) else what
    if not argued:
        provable(i)
    if expected not in ("fp64", "rounded"):
        raise ValueError(f'expected is "fp64" or "rounded", not {expected!r}')
    if A is not None and B is not None:
        K = int(np.shape(A)[-1])
    elif K is None or not isinstance(largest, (tuple, list)):
        raise ValueError(
            "give A and B, or K and the largest magnitudes: tolerance(…, 4096, largest=(4.0, 4.0))"
        )
    fmt = None if d_format is None else format_named(d_format, A, "d")
    stated = StructureBound.of(what, K, promote_every=promote_every, d_format=fmt)
    stated.check_argued(argued)
    if A is not None and B is not None:
        E = stated.sum_bound(A, B, C, scale_a=scale_a, scale_b=scale_b)
        off = Fraction(float(np.max(E))) if np.isfinite(E).all() else None
    else:
        assert largest is not None
        off = _of_magnitudes(stated, largest)
    if off is None:
        raise ValueError("an operand is no number, or the sum of magnitudes overflows: there is no tolerance")
    sigma = off / stated.f
    reference = sigma * (raised(1 + _FP64, K + 2) - 1) + K * _UNDERFLOW
    atol, rtol = _tolerances(stated, off + reference, expected)
    return Tolerance(_float(atol), _float(rtol), stated, float(sigma), expected, stated.argued)


def _of_magnitudes(stated: StructureBound, largest: tuple[float, ...]) -> Fraction | None:
    """f·σ of K products of factors of these magnitudes; None of what is no number."""
    i = stated.unit.instruction
    if stated.unit.flushing is not None or i.spec.scale_format is not None:
        raise ValueError(f"{i.label}: give A and B, of which its bound speaks, not magnitudes")
    if len(largest) not in (2, 3) or not np.isfinite(largest).all() or min(largest) < 0:
        return None
    formats = (i.a_format, i.b_format, i.c_format)
    a, b, c = (
        max(Fraction(x), Fraction(2) ** fmt.min_exponent)
        for x, fmt in zip((*largest, 0.0)[:3], formats, strict=True)
    )
    least = Fraction(2) ** i.c_format.min_exponent
    return stated.f * (stated.K * a * b + c + stated.sums * least)


def _tolerances(stated: StructureBound, E: Fraction, expected: Reference) -> tuple[Fraction, Fraction]:
    """atol and rtol, as the docstring of the module has them."""
    if expected == "fp64":
        return _COMPARED * ((1 + stated.u) * E + stated.u * stated.least), _COMPARED * stated.u
    fmt = stated.narrowed or stated.total
    u, least = Fraction(1, 1 << (fmt.fraction_bits + 1)), Fraction(2) ** fmt.min_exponent
    rtol = 2 * u / (1 - u)
    atol = (1 + u) * E + (2 * u + rtol * u) * least
    compared = (1 + u) / (1 - u) ** 4
    place = least / (1 << fmt.fraction_bits)
    return compared * atol + 2 * place, compared * rtol


def _float(x: Fraction) -> float:
    """The float64 next above."""
    found = float(x)
    return found if Fraction(found) >= x else float(np.nextafter(found, np.inf))
