"""What a matrix unit computes, as data: an algorithm's name, its parameters and its types.  No arithmetic.

Every element of D is one *dot product-add*, `d = c + Σ a_k·b_k`.  A `DotAdd` says how it is rounded, and is
all that the two encodings (`encodings/smt`, `encodings/executable`) know: not which GPU it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, ClassVar

from mmaformal.formats import Format, fp16, fp32


class Rounding(Enum):
    """How a significand is cut to its last place."""

    RZ = "toward zero"
    RNE = "to nearest, ties to even"


@dataclass(frozen=True)
class Conversion:
    """ρ: from an exact `sum · 2^e` to a code of `format` (semantics §4).

    The significand is kept to `fraction_bits` fractional bits, fewer than the format's own where the unit's
    output is coarser (RZ-E8M13); overflow gives infinity, subnormals are kept, a zero result is +0.
    """

    name: str
    format: Format
    fraction_bits: int
    rounding: Rounding

    def __str__(self) -> str:
        return self.name


RZ_FP32 = Conversion("RZ-FP32", fp32, 23, Rounding.RZ)
RZ_E8M13 = Conversion("RZ-E8M13", fp32, 13, Rounding.RZ)
RNE_FP16 = Conversion("RNE-FP16", fp16, 10, Rounding.RNE)
RNE_FP32 = Conversion("RNE-FP32", fp32, 23, Rounding.RNE)

CONVERSIONS = {rho.name: rho for rho in (RZ_FP32, RZ_E8M13, RNE_FP16, RNE_FP32)}


@dataclass(frozen=True)
class Parameters:
    """Parameters of an algorithm; readable as attributes and, like a mapping, by name."""

    algorithm: ClassVar[str]
    summary: ClassVar[str]
    #: whether a NaN result is one known code; if not, its payload is unspecified and only "a NaN" is modelled
    nan_is_canonical: ClassVar[bool] = False

    def keys(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(f"{self.algorithm} has no parameter {name!r}: it has {', '.join(self.keys())}")
        return getattr(self, name)

    def describe(self) -> str:
        """`F=24 L=8 ρ=RZ-FP32 e_zero=-132`."""
        return " ".join(
            f"{'ρ' if name == 'rho' else name}={'fields' if self[name] is None else self[name]}"
            for name in self
        )


@dataclass(frozen=True)
class Fda(Parameters):
    """fda, the fused dot-add (semantics §3; seed 000 §IV-C, D): per step, L products and c are aligned to the
    largest exponent, cut to F fractional bits toward zero, summed exactly, and converted with ρ."""

    F: int  #: fractional bits kept at the alignment
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    e_zero: int | None  #: exponent of a term that is exactly zero; None: that of its fields (paper-v1)

    algorithm: ClassVar[str] = "fda"
    summary: ClassVar[str] = (
        "fused dot-add: align all terms to F fractional bits (toward zero), sum exactly, convert once"
    )
    nan_is_canonical: ClassVar[bool] = True  # seed 000 §IV-C step 1

    def __post_init__(self) -> None:
        if self.L < 1:
            raise ValueError(f"fda needs L ≥ 1 products per step, not {self.L}")
        if not 1 <= self.F <= 48:
            raise ValueError(f"fda needs 1 ≤ F ≤ 48 (the executable's lanes have 64 bits), not {self.F}")


@dataclass(frozen=True)
class DotAdd:
    """One dot product-add as data: `k` products of `a_format`·`b_format`, plus c, giving d."""

    k: int
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    parameters: Parameters

    def __post_init__(self) -> None:
        p = self.parameters
        if isinstance(p, Fda):
            if self.k % p.L:
                raise ValueError(f"K = {self.k} is not a multiple of the L = {p.L} products of one fda step")
            if self.k > p.L and self.c_format is not self.d_format:
                raise ValueError(
                    f"a chain needs c and d of one type, since one step's d is the next one's c: "
                    f"c is {self.c_format}, d is {self.d_format}"
                )
            if p.rho.format is not self.d_format:
                raise ValueError(f"ρ = {p.rho} gives {p.rho.format}, but d is {self.d_format}")

    @property
    def types(self) -> str:
        return f"{self.a_format} × {self.b_format} + {self.c_format} → {self.d_format}"

    @property
    def nan_is_canonical(self) -> bool:
        """Whether a NaN result is always the same code; if not, any two NaN results count as equal."""
        return self.parameters.nan_is_canonical

    def replace(self, **changes: Any) -> DotAdd:
        """The same with some of `k`, the formats, or the parameters (by their own names) changed.

        Raises TypeError for a name that is neither.
        """
        own = {f.name for f in fields(self)}
        mine = {n: v for n, v in changes.items() if n in own}
        theirs = {n: v for n, v in changes.items() if n not in own}
        unknown = sorted(set(theirs) - set(self.parameters.keys()))
        if unknown:
            raise TypeError(
                f"{self.parameters.algorithm} has no parameter {unknown[0]!r}: "
                f"it has {', '.join(self.parameters.keys())}; also {', '.join(sorted(own))}"
            )
        parameters = mine.pop("parameters", self.parameters)
        return replace(self, parameters=replace(parameters, **theirs), **mine)
