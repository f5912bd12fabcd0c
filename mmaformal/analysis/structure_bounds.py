"""Bounds the error of a whole product in a structure: chains of one instruction, their results added, the sum rounded.

    error = StructureBound.of(hopper["HMMA.16816.F32"], 4096, d_format=bf16)
    error.bound(A, B)           # of each element, at most so far from the exact C + A·B

Of each chain `analysis/units` has (1 + U)^m − 1 of the weights of its terms, σ.  Results that are added outside, by
IEEE 754 additions to nearest, are off by the larger factor of both and u of their sum (`facts/product_bound`,
`prove_beside`); a tree of additions h high makes (1 + f)·(1 + u)^h − 1 of it.  The sum S, which is E = f·σ off, is then
rounded to D's format: |d − x| ≤ E + u·max(|x| + E, least) of the exact sum x (`prove_narrowed`).  `queries/bound` puts
the proofs together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaformal.analysis.rounding import Floats
from mmaformal.analysis.units import Unit, raised
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, fp32, fp64
from mmaformal.gemm import holds
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.spec import LossModel
from mmaformal.structure_plans import Chain, evaluated, instructions_of
from mmaformal.structures import Structure

#: Room for what numbers of binary64 lose on the way, generously: a bound is not below the theorem's.
_UP = 1 + 2.0**-48


@dataclass(frozen=True, repr=False)
class StructureBound(ShortRepr):
    """The factor f of σ, and the format that the sum is rounded to in the end."""

    unit: Unit
    K: int
    f: Fraction  #: what the sum is off at most, relative to σ
    sums: int  #: chains that start at +0; their results are added
    total: Format  #: in which they are
    narrowed: Format | None  #: what the sum is rounded to, to nearest even; None: it stays what it is
    structure: Structure | None = None

    @classmethod
    def of(
        cls,
        what: Instruction | Structure,
        K: int,
        *,
        promote_every: int | None = None,
        d_format: Format | None = None,
    ) -> StructureBound:
        """Returns the bound of a structure, of one chain, or of chains that are added after every so many instructions.

        Raises ValueError for a unit without a bound (`Unit.of`), for a unit whose bound is of one chain alone because
        it takes subnormal numbers for zero, and for a D that the results do not round to.
        """
        structure = what if isinstance(what, Structure) else None
        i = what if isinstance(what, Instruction) else what.instruction
        if promote_every is not None:
            if structure is not None:
                raise ValueError("a structure says itself how K is divided: leave promote_every out")
            total = fp32 if holds(fp32, i.d_format) else fp64
            structure = Structure(i, block=promote_every * i.k, total=total)
        if i.c_format != i.d_format and i.k < K:
            raise ValueError(f"{i.label}: d of {i.d_format} is no c of {i.c_format}, so it has no chain")
        if structure is not None and structure.stored is not None:
            raise ValueError("of a sum that is stored after each block there is no bound")
        if structure is not None and structure.chained == "no":
            raise ValueError("of chains whose products are rounded apart there is no bound")
        if structure is not None and structure.c_enters is not None:
            raise ValueError("of a structure with C there is no bound: leave c_enters out")
        unit = Unit.of(i)
        depth, chains = (_Depth(1, 0), 1) if structure is None else _depth(structure, K)
        several = structure is not None and chains > 1
        made = structure.total if several and structure is not None else i.d_format
        said = structure.d_format if structure is not None else None
        wanted = d_format or said or made
        if (said not in (None, made) and wanted != said) or not holds(made, wanted):
            raise ValueError(f"D is {d_format}, and results of {said or made} are not rounded to that")
        narrowed = wanted if wanted != made else None
        if structure is None or not several:
            return cls(unit, K, unit.factor(K), 1, made, narrowed, structure)
        if unit.flushing is not None:
            raise ValueError(f"{i.label}: its bound is of one chain, not of chains that are added")
        one = unit.factor(depth.steps * i.k)
        u = Fraction(1, 1 << (made.fraction_bits + 1))
        f = (1 + one) * raised(1 + u, depth.additions + 1) - 1  # one more, for a C that is added to all
        return cls(unit, K, f, chains, made, narrowed, structure)

    @property
    def u(self) -> Fraction:
        """Returns what the last rounding is off at most, relative to what is rounded: 0 where there is none."""
        return Fraction(1, 1 << (self.narrowed.fraction_bits + 1)) if self.narrowed else Fraction(0)

    @property
    def least(self) -> Fraction:
        """The least normal number of what the sum is rounded to."""
        return Fraction(2) ** self.narrowed.min_exponent if self.narrowed else Fraction(0)

    @property
    def argued(self) -> bool:
        """Whether the bound is argued, and not proved by `mmaformal bound`: of units that flush, and of acc_e9s12."""
        passes = self.unit.instruction.spec.parameters.loss is LossModel.PASSES
        return passes or self.unit.flushing is not None

    @property
    def source(self) -> str:
        """Return what the bound rests on; nothing is asked of a solver here."""
        return "argued, not proved" if self.argued else "the theorem of `mmaformal bound`"

    def check_argued(self, argued: bool) -> None:
        """Raises ValueError for an argued bound, unless `argued` ones will do."""
        if self.argued and not argued:
            raise ValueError(f"{self.unit.instruction.label}: its bound is argued, not proved")

    @property
    def statement(self) -> str:
        """The theorem, in a line."""
        last = ""
        if self.narrowed is not None:
            last = f" + 2^−{self.narrowed.fraction_bits + 1} · max(|exact| + f·σ, 2^{self.narrowed.min_exponent})"
        return (
            f"|d − exact| ≤ f·σ{last}, f = {float(self.f):.6g}, σ = w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least "
            "normal number)" + (f", which counts once for each of {self.sums} sums" if self.sums > 1 else "")
        )

    def sum_bound(
        self,
        A: Matrix,
        B: Matrix,
        C: Matrix | None = None,
        *,
        scale_a: Matrix | None = None,
        scale_b: Matrix | None = None,
    ) -> Floats:
        """E of each element: what the sum is off before it is rounded to D's format.  Operands as `Unit.bound`."""
        if self.unit.flushing is not None:
            return self.unit.bound(A, B, C)
        sigma = self.unit.sigma(A, B, C, scale_a=scale_a, scale_b=scale_b, sums=self.sums)
        found: Floats = float(self.f) * _UP * sigma
        return found

    def rounded_bound(self, E: Floats, exact: Floats) -> Floats:
        """Returns what each element is off at most, of sums that are E off at most and of the exact ones."""
        if self.narrowed is None:
            return E
        found: Floats = (E + float(self.u) * np.maximum((np.abs(exact) + E) * _UP, float(self.least))) * _UP
        return found


@dataclass(repr=False)
class _Depth(ShortRepr):
    """The most that lies between a product and the sum: instructions of chains, and additions."""

    steps: int
    additions: int


def _depth(structure: Structure, K: int) -> tuple[_Depth, int]:
    """The deepest product of a structure, and how many chains it has that begin at +0."""
    begun = 0

    def run(chain: Chain, begin: _Depth | None) -> _Depth:
        nonlocal begun
        begun += begin is None
        before = _Depth(0, 0) if begin is None else begin
        return _Depth(before.steps + len(instructions_of(chain)), before.additions)

    def add(x: _Depth, y: _Depth) -> _Depth:
        return _Depth(max(x.steps, y.steps), max(x.additions, y.additions) + 1)

    return evaluated(structure.segments(K), structure.order, run, add), begun
