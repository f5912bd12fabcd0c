"""What a matrix unit computes, as data: an algorithm's name, its parameters and its types.  No arithmetic.

Every element of D is one *dot product-add*, `d = c + Σ a_k·b_k`.  A `DotAdd` says how it is rounded, and is
all that the two encodings (`encodings/smt`, `encodings/executable`) know: not which GPU it came from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, TypeVar

from mmaformal.checked import integer, text, truth
from mmaformal.display import LINE, clipped, counted
from mmaformal.formats import Format, Specials, bf16, e2m1, fp16, fp32, fp64

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Data = TypeVar("_Data", bound="DataclassInstance")

#: formats of results, as a name of ρ spells them
_RESULTS = {"FP16": fp16, "BF16": bf16, "FP32": fp32, "FP64": fp64}

#: the same by their exponent bits, where ρ keeps fewer fraction bits: RNE-E8M10
_WORDS = {"5": fp16, "8": fp32, "11": fp64}


class Rounding(Enum):
    """How a significand is cut to its last place (IEEE 754-2019 §4.3; RO: Boldo and Melquiond 2008)."""

    RZ = "toward zero"
    RNE = "to nearest, ties to even"
    RNA = "to nearest, ties away from zero"
    RD = "down, toward −∞"
    RU = "up, toward +∞"
    RO = "to odd: toward zero, and the last bit set if anything was lost"

    @classmethod
    def named(cls, value: object, name: str) -> Rounding:
        """A rounding, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        if isinstance(value, Rounding):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{name} is a Rounding or its name, not {value!r}")
        if value not in cls.__members__:
            raise ValueError(f"{name}: no rounding {value!r}; there are {', '.join(cls.__members__)}")
        return cls[value]


class NanRule(Enum):
    """Which NaN an operation gives."""

    ANY = "some NaN: which one is not known"
    DEFAULT = "always the same: positive, quiet, without a payload"
    FIRST = "the first NaN among a, b and c, made quiet; if none is, the negative quiet one without a payload"

    @classmethod
    def named(cls, value: object, name: str) -> NanRule:
        """A rule, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        if isinstance(value, NanRule):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{name} is a NanRule or its name, not {value!r}")
        if value not in cls.__members__:
            raise ValueError(f"{name}: no rule {value!r}; there are {', '.join(cls.__members__)}")
        return cls[value]


class Tininess(Enum):
    """When a result counts as tiny, below the least normal number (IEEE 754-2019 §7.5): one that is flushed to zero."""

    BEFORE = "before rounding: the exact result is below"
    AFTER = "after rounding: the result is, rounded as if exponents had no least"

    @classmethod
    def named(cls, value: object, name: str) -> Tininess:
        """One of both, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        if isinstance(value, Tininess):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{name} is a Tininess or its name, not {value!r}")
        if value not in cls.__members__:
            raise ValueError(f"{name}: no {value!r}; there are {', '.join(cls.__members__)}")
        return cls[value]


@dataclass(frozen=True, repr=False)
class Conversion:
    """ρ: from an exact `sum · 2^e` to a code of `format` (semantics §4).

    The significand is kept to `fraction_bits` fractional bits, fewer than the format's own where the
    unit's output is coarser (RZ-E8M13); subnormals are kept.

    Overflow: the sum is rounded as if there were no largest exponent, and what is then 2^(e_max + 1) or more
    in magnitude is infinity.  So RZ and RO never reach it from below 2^(e_max + 1), RD only from below zero,
    RU only from above.  That is what units that cut toward zero do, and Arm's BFDOT that rounds to odd
    (semantics §4, §10); IEEE 754 would give the largest number instead where a rounding is toward zero.

    A sum of exactly zero is +0 whatever the rounding (in IEEE 754, −0 with RD); a negative one that is
    rounded to zero is −0 if `signed_zero`, else +0.

    Raises ValueError unless the format has infinities and every bit of its word is used, and keeps 1 to all of its
    fraction bits; TypeError for what is no number.
    """

    name: str
    format: Format
    fraction_bits: int
    rounding: Rounding
    signed_zero: bool = False

    def __post_init__(self) -> None:
        text(self.name, "name")
        for name, kind in (
            ("format", Format.named),
            ("fraction_bits", integer),
            ("rounding", Rounding.named),
            ("signed_zero", truth),
        ):
            object.__setattr__(self, name, kind(getattr(self, name), name))
        fmt = self.format
        whole = fmt.signed and 1 + fmt.exponent_bits + fmt.fraction_bits == fmt.storage_bits
        if fmt.specials is not Specials.IEEE or not whole or fmt.storage_bits not in (8, 16, 32, 64):
            raise ValueError(
                f"ρ = {self.name}: results of {fmt} are not modelled; fp16, bf16, fp32 and fp64 are"
            )
        if not 1 <= self.fraction_bits <= fmt.fraction_bits:
            raise ValueError(
                f"ρ = {self.name}: {fmt} holds 1 to {fmt.fraction_bits} fraction bits, not {self.fraction_bits}"
            )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        kept = f"{self.format}, {self.fraction_bits} fractional bits, {self.rounding.name}"
        return f"<Conversion {clipped(self.name)}: {kept}{', −0' if self.signed_zero else ''}>"

    def with_signed_zero(self) -> Conversion:
        return replace(self, name=f"{self.name}±0", signed_zero=True)

    @classmethod
    def named(cls, value: object, name: str = "rho") -> Conversion:
        """A conversion, or that of a name: one of `CONVERSIONS`, or a rounding and a format, as RD-FP32, RNA-BF16; or
        its exponent bits and the fraction bits that are kept, as RNE-E8M10 (in an fp32 word).

        Raises ValueError for an unknown name, TypeError for anything else.
        """
        if isinstance(value, Conversion):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{name} is a Conversion or its name, not {value!r}")
        if value in CONVERSIONS:
            return CONVERSIONS[value]
        found = re.fullmatch(r"([A-Z]+)-([A-Z0-9]+?)(±0)?", value)
        fmt = _RESULTS.get(found[2]) if found else None
        short = re.fullmatch(r"E(\d+)M(\d+)", found[2]) if found and fmt is None else None
        if short:
            fmt = _WORDS.get(short[1])
        if not found or fmt is None or found[1] not in Rounding.__members__:
            raise ValueError(
                f"no ρ named {value!r}; there are {', '.join(CONVERSIONS)}, and "
                f"{'|'.join(Rounding.__members__)} - {'|'.join(_RESULTS)}|E8M…"
            )
        bits = int(short[2]) if short else fmt.fraction_bits
        made = Conversion(f"{found[1]}-{found[2]}", fmt, bits, Rounding[found[1]])
        return made.with_signed_zero() if found[3] else made


RZ_FP32 = Conversion("RZ-FP32", fp32, 23, Rounding.RZ)
RZ_E8M13 = Conversion("RZ-E8M13", fp32, 13, Rounding.RZ)
RNE_FP16 = Conversion("RNE-FP16", fp16, 10, Rounding.RNE)
RNE_FP32 = Conversion("RNE-FP32", fp32, 23, Rounding.RNE)
IEEE_FP16 = Conversion("IEEE-FP16", fp16, 10, Rounding.RNE, signed_zero=True)
IEEE_FP32 = Conversion("IEEE-FP32", fp32, 23, Rounding.RNE, signed_zero=True)
IEEE_FP64 = Conversion("IEEE-FP64", fp64, 52, Rounding.RNE, signed_zero=True)
RO_FP32 = Conversion("RO-FP32±0", fp32, 23, Rounding.RO, signed_zero=True)

CONVERSIONS = {
    rho.name: rho for rho in (RZ_FP32, RZ_E8M13, RNE_FP16, RNE_FP32, IEEE_FP16, IEEE_FP32, IEEE_FP64, RO_FP32)
}


def _integers(value: object, name: str) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a sequence of integers, not {value!r}")
    return tuple(integer(each, f"each of {name}") for each in value)


def _parts(value: object, name: str) -> tuple[Part, ...]:
    if not isinstance(value, tuple) or not all(isinstance(part, Part) for part in value):
        raise TypeError(f"{name} are a tuple of `Part`, not {value!r}")
    return value


def _dot_add(value: object, name: str) -> DotAdd:
    if not isinstance(value, DotAdd):
        raise TypeError(f"{name} is a DotAdd, not {value!r}")
    return value


def _parameters(value: object, name: str) -> Parameters:
    if not isinstance(value, Parameters) or type(value) is Parameters:
        raise TypeError(f"{name} are those of an algorithm, as Fda, not {value!r}")
    return value


#: what makes a value of a field's type, or says why it is none
_KINDS: dict[str, Callable[[object, str], object]] = {
    "int": integer,
    "bool": truth,
    "str": text,
    "tuple[int, ...]": _integers,
    "Rounding": Rounding.named,
    "NanRule": NanRule.named,
    "Tininess": Tininess.named,
    "Conversion": Conversion.named,
    "Format": Format.named,
    "Parameters": _parameters,
    "DotAdd": _dot_add,
    "tuple[Part, ...]": _parts,
}


def _settle(data: DataclassInstance) -> None:
    """Make the fields of a frozen dataclass what their types say, from names and NumPy's integers too.

    Raises TypeError, ValueError.
    """
    for name, settled, optional in _kinds(type(data)):
        value = getattr(data, name)
        if value is not None or not optional:
            object.__setattr__(data, name, settled(value, name))


@lru_cache(maxsize=64)
def _kinds(of: type[DataclassInstance]) -> tuple[tuple[str, Callable[[object, str], object], bool], ...]:
    """Of each field its name, what makes a value of its type, and whether it may be None."""
    told = ((each.name, *str(each.type).partition(" | ")) for each in fields(of))
    return tuple((name, _KINDS[kind], bool(optional)) for name, kind, _, optional in told)


def with_changes(data: _Data, changes: Mapping[str, object]) -> _Data:
    """The same with other fields, which it makes what their types say."""
    return replace(data, **changes)


@dataclass(frozen=True, repr=False)
class Parameters:
    """Parameters of an algorithm; readable as attributes and, like a mapping, by name.

    Each class raises ValueError for numbers that make no sense or do not fit the encodings, TypeError for what is no
    number.  Conversions, formats and roundings may be given by name.
    """

    algorithm: ClassVar[str]
    summary: ClassVar[str]
    #: whether a and b may have block scales
    takes_scales: ClassVar[bool] = False
    #: whether its rule is IEEE 754's or correct rounding, so that exact rational arithmetic can say what is right
    rounds_correctly: ClassVar[bool] = False
    #: whether terms are aligned for good, and may lose bits before their sum is rounded
    aligns: ClassVar[bool] = False
    #: what a parameter is, in words, where it is this algorithm's own or not what it is elsewhere
    meanings: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        _settle(self)

    def keys(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __getitem__(self, name: str) -> object:
        if name not in self.keys():
            raise KeyError(f"{self.algorithm} has no parameter {name!r}: it has {', '.join(self.keys())}")
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {clipped(self.describe(), 2 * LINE)}>"

    def describe(self) -> str:
        """`F=24 L=8 ρ=RZ-FP32 e_zero=-132`; a parameter that has a default is named where it differs."""
        shown = (f.name for f in fields(self) if f.default is MISSING or getattr(self, f.name) != f.default)
        return " ".join(
            f"{'ρ' if name == 'rho' else name}={parameter_text(self[name], name)}" for name in shown
        )

    @property
    def step_products(self) -> int:
        """How many products one step of the algorithm takes; a greater K is a chain of steps."""
        raise NotImplementedError

    @property
    def nan_is_canonical(self) -> bool:
        """Whether the code of a NaN result is known; if not, its payload is left open, and only "a NaN" is modelled."""
        return False

    @property
    def factors_commute(self) -> bool:
        """Whether b·a gives the codes of a·b, those of NaNs too, so that a product may be made as its transpose."""
        return False

    def check(self, spec: DotAdd) -> None:
        """Raise ValueError if these parameters make no sense with the types of `spec`."""

    # What is known of an algorithm without a proof; that products of a class may change places is proved of each model.

    def class_of(self, k: int) -> Hashable:
        """The class of the k-th product of a chain: those of one class are added in no order of their own.

        Within a step of a fused algorithm products enter only a maximum and an exact sum, so these are one class.
        """
        return k // self.step_products

    @property
    def last_rounding(self) -> Conversion:
        """The rounding that a result has gone through last."""
        rho = self["rho"]
        assert isinstance(rho, Conversion)
        return rho

    def sum_bounds(self, spec: DotAdd) -> list[int] | None:
        """The largest magnitudes of the aligned terms of a step's first fixed-point sum; None if it has no such sum."""
        return None

    def keeps(self, spec: DotAdd) -> str:
        """What the accumulator keeps of its terms, in words: how the sentence "the accumulator …" goes on."""
        raise NotImplementedError

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        """The specification with one product less in each step, and the places of those; None if there is none."""
        return None

    def _one_less(self, spec: DotAdd, group: int, **less: int) -> tuple[DotAdd, tuple[int, ...]]:
        """The same, where each `group` of consecutive products loses its last."""
        last = tuple(range(group - 1, spec.k, group))
        if spec.scale_format is not None:
            less["scale_block"] = spec.scale_block // group * (group - 1)
        return spec.replace(k=spec.k - len(last), **less), last

    @property
    def sum_places(self) -> int:
        """Fractional places, below the largest exponent, of the sum that is rounded; of what `aligns`."""
        F = self["F"]
        assert isinstance(F, int)
        return F

    def taken(self, k: int) -> list[int]:
        """The places of k products, in the order in which steps take them."""
        return list(range(k))

    def made_of(self, spec: DotAdd) -> DotAdd | None:
        """The steps that one step is made of, where those are another algorithm's."""
        return None

    #: what `sum_bounds` are of
    summed: ClassVar[str] = "the exact sum of what is kept"

    def _needs(self, condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(f"{self.algorithm} needs {what}")


#: what a sum in a lane stays below
_LANE = 1 << 61


def most_places(products: int) -> int:
    """The most fractional bits F with which a sum of so many aligned products and c stays within a lane.

    A product is below 4 and c below 2, so that the sum is at most products · (2^(F+2) − 1) + 2^(F+1) ≤ 2^61.
    """
    return ((_LANE + products) // (4 * products + 2)).bit_length() - 1


def _check_exponent(parameters: Parameters, e_zero: int | None) -> None:
    parameters._needs(e_zero is None or abs(e_zero) <= 4096, f"−4096 ≤ e_zero ≤ 4096, not {e_zero}")


def _check_products(parameters: Parameters, spec: DotAdd) -> None:
    product_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    parameters._needs(product_bits <= 48, f"products of at most 48 bits, not {product_bits}")


def widest(fmt: Format) -> int:
    """The largest significand of a format, as an integer."""
    return (2 << fmt.fraction_bits) - 1


def aligned(significand: int, places: int, F: int, cut: Rounding = Rounding.RZ) -> int:
    """A significand with so many fractional places, with F, cut toward zero or to odd."""
    kept = significand << F - places if places <= F else significand >> places - F
    lost = significand << F != kept << places
    return kept | 1 if lost and cut is Rounding.RO else kept


def _product_bound(spec: DotAdd, F: int, cut: Rounding = Rounding.RZ) -> int:
    """The largest aligned product of a fused step."""
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    return aligned(widest(spec.a_format) * widest(spec.b_format), places, F, cut)


def _check_cut(parameters: Parameters, cut: Rounding) -> None:
    parameters._needs(cut in (Rounding.RZ, Rounding.RO), f"cut RZ or RO, not {cut.name}")


def _cut(cut: Rounding) -> str:
    return "toward zero" if cut is Rounding.RZ else "to odd"


def _holds_narrower(wide: Format, x: Format) -> bool:
    """Whether every number of x is one of `wide`, which has no narrower significand and no later last place."""
    last_places = (wide.min_exponent - wide.fraction_bits, x.min_exponent - x.fraction_bits)
    narrow = x.fraction_bits <= wide.fraction_bits and last_places[0] <= last_places[1]
    return narrow and x.max_exponent <= wide.max_exponent


def _significant(fmt: Format) -> str:
    return f"{fmt} ({fmt.fraction_bits + 1} significant bits)"


def _own(d: Format) -> str:
    return f"{d} itself has {d.fraction_bits}"


def plain_parameter(value: object) -> int | float | str | None:
    """A parameter's value for JSON: a rounding, or a rule, by its name."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, DotAdd) or (isinstance(value, tuple) and any(isinstance(x, Part) for x in value)):
        return parameter_text(value)
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def parameter_text(value: object, name: str = "e_zero") -> str:
    """A parameter's value for a person; what None means depends on the parameter."""
    if value is None:
        return {"sum_bits": "uncut", "operands": "as they are", "rounding": "none"}.get(name, "fields")
    if isinstance(value, (Rounding, NanRule, Tininess)):
        return value.name
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, DotAdd):
        return f"[{value.types}, K={value.k}, {value.text}]"
    return str(value)


@dataclass(frozen=True, repr=False)
class Sfma(Parameters):
    """sfma, sequential fused multiply-add (semantics §3; MMA-Sim §IV-A).

    `d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K−1, each correctly rounded with ρ, subnormals kept,
    specials and the sign of zero as IEEE 754 (an exact zero is +0 unless product and addend are both −0, which a ρ
    without signed zeros makes +0 too).
    """

    rho: Conversion
    nan: NanRule = NanRule.ANY

    algorithm: ClassVar[str] = "sfma"
    rounds_correctly: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {"nan": "which NaN an fma gives"}
    summary: ClassVar[str] = "sequential fused multiply-add: K correctly rounded fma, in order"

    @property
    def factors_commute(self) -> bool:
        return self.nan is not NanRule.FIRST

    @property
    def step_products(self) -> int:
        return 1

    def check(self, spec: DotAdd) -> None:
        one = spec.a_format == spec.b_format == spec.c_format
        self._needs(one and spec.d_format == self.rho.format, f"one type throughout, not {spec.types}")
        self._needs(spec.a_format == self.rho.format, f"a, b, c of {self.rho.format}, the type of ρ")
        self._needs(self.rho.format in (fp16, fp32, fp64), "fp16, fp32 or fp64")

    @property
    def nan_is_canonical(self) -> bool:
        return self.nan is not NanRule.ANY

    def keeps(self, spec: DotAdd) -> str:
        return f"rounds after every product: each fma is exact until it is rounded to {_significant(spec.d_format)}"


@dataclass(frozen=True, repr=False)
class Wfma(Parameters):
    """wfma, fused multiply-add of widened factors (semantics §10), of Apple AMX's fma16 onto fp32.

    As sfma, `d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K−1, but a and b are of a narrower format, and are
    converted to ρ's exactly.  A NaN is `NanRule.DEFAULT`.
    """

    rho: Conversion

    algorithm: ClassVar[str] = "wfma"
    summary: ClassVar[str] = (
        "fma of widened factors: K correctly rounded fma, in order, a and b converted exactly"
    )

    @property
    def nan_is_canonical(self) -> bool:
        return True

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return 1

    def check(self, spec: DotAdd) -> None:
        for x in (spec.a_format, spec.b_format):
            self._needs(x != fp32 and _holds_narrower(fp32, x), f"a and b that fp32 holds, not {spec.types}")
        self._needs(spec.c_format == spec.d_format == self.rho.format == fp32, "c, d and ρ of fp32")

    def keeps(self, spec: DotAdd) -> str:
        return f"rounds after every product: each fma is exact until it is rounded to {_significant(spec.d_format)}"


@dataclass(frozen=True, repr=False)
class Ffma(Parameters):
    """ffma, flushed fused multiply-add in order (semantics §10), of Intel's AVX512_BF16.

    `d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K−1, each as one of pfma: IEEE fp32, to nearest even, but a
    subnormal operand counts as zero of its sign, and so does a result that is tiny; `NanRule.FIRST`.  Which product is
    taken first is the `product_order` of the `DotAdd`.
    """

    tiny: Tininess = Tininess.AFTER

    meanings: ClassVar[Mapping[str, str]] = {"tiny": "when a result counts as tiny, which is flushed to zero"}
    algorithm: ClassVar[str] = "ffma"
    summary: ClassVar[str] = "flushed fma: K fma of fp32 in order, subnormals zero before and after each"

    @property
    def nan_is_canonical(self) -> bool:
        return True  # measured

    @property
    def step_products(self) -> int:
        return 1

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.a_format == spec.b_format == bf16, f"a and b of bf16, not {spec.types}")
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")

    @property
    def last_rounding(self) -> Conversion:
        return IEEE_FP32

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"rounds after every product: each fma is exact until it is rounded to {_significant(fp32)}, and zero "
            f"where it is below the least normal number {self.tiny.name.lower()} that"
        )


@dataclass(frozen=True, repr=False)
class Muladd(Parameters):
    """muladd, multiplier and adder apart (semantics §3; TensorGauge §IV-B, "Adder/multiplier").

    `d = c`, then `d = ρ(d + φ(a_k·b_k))` for k = 0 … K−1, φ being `product`: each product is rounded, and each sum.
    Subnormals are kept, specials and the signs of zeros as IEEE 754, but for a φ or ρ without signed zeros.
    """

    product: Conversion  #: φ, of products
    rho: Conversion

    algorithm: ClassVar[str] = "muladd"
    meanings: ClassVar[Mapping[str, str]] = {"product": "how each product is rounded, before it is added"}
    summary: ClassVar[str] = "multiply, then add: each product rounded, and each sum, in order"

    @property
    def step_products(self) -> int:
        return 1

    def check(self, spec: DotAdd) -> None:
        one = spec.c_format == spec.d_format == self.rho.format == self.product.format
        self._needs(one, f"c, d, products and ρ of one type, not {spec.types} and {self.product.format}")
        self._needs(self.rho.format.storage_bits <= 32, f"sums of 16 or 32 bits, not {self.rho.format}")
        _check_products(self, spec)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"rounds twice for every product: that to {self.product.fraction_bits} fractional bits, then their sum to "
            f"{_significant(spec.d_format)}"
        )


@dataclass(frozen=True, repr=False)
class Gps(Parameters):
    """gps, group pairwise sum (semantics §3; MMA-Sim §IV-B).

    Each operation is IEEE fp32, to nearest even, its subnormal result flushed to zero of the same sign.
    1. A subnormal a, b or c, and −0, becomes +0.  2. Products.  3. Each G consecutive products are summed
    pairwise: `p0+p1` for G = 2, `(p0+p1)+(p2+p3)` for G = 4.  4. `d = c`, then `d = d + group`, in order.
    """

    G: int

    algorithm: ClassVar[str] = "gps"
    meanings: ClassVar[Mapping[str, str]] = {
        "G": "products that are summed in pairs before the sum so far is added"
    }
    summary: ClassVar[str] = "group pairwise sum: fp32 products and sums, each rounded, subnormals flushed"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.G in (2, 4, 8), f"G of 2, 4 or 8, not {self.G}")

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.G

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        for x in (spec.a_format, spec.b_format):
            holds = fp32.min_exponent <= x.min_exponent and x.max_exponent <= fp32.max_exponent
            self._needs(x.fraction_bits <= 10 and holds, f"a, b that fp32 holds, not {x}")

    def class_of(self, k: int) -> Hashable:
        """The two addends of one IEEE addition."""
        return k // 2

    @property
    def last_rounding(self) -> Conversion:
        return IEEE_FP32

    def keeps(self, spec: DotAdd) -> str:
        return f"has no wide accumulator: every product and every sum is rounded to {_significant(spec.d_format)}"


@dataclass(frozen=True, repr=False)
class Fda(Parameters):
    """fda, the fused dot-add (semantics §3; MMA-Sim §IV-C, D).

    Per step, L products and c are aligned to the largest exponent, cut to F fractional bits toward zero,
    summed exactly, and converted with ρ.  With `cut` RO the last bit kept is sticky: set, if anything was cut off
    (TensorGauge, Fig. 2).  With block scales (ue8m0, one pair for each `scale_block`
    products) the exponents of the scales are added to the product's; a NaN scale makes the result NaN.
    """

    F: int  #: fractional bits kept at the alignment
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    e_zero: int | None  #: exponent of a term that is exactly zero; None: that of its fields (paper-v1)
    cut: Rounding = Rounding.RZ  #: of the aligned magnitudes: RZ, or RO

    algorithm: ClassVar[str] = "fda"
    aligns: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {"cut": "how aligned magnitudes are cut to F bits"}
    summary: ClassVar[str] = (
        "fused dot-add: align all terms to F fractional bits (toward zero), sum exactly, convert once"
    )
    takes_scales: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        _check_cut(self, self.cut)
        most = most_places(self.L)
        self._needs(most >= 1, f"fewer products per step, in 64-bit lanes, than L = {self.L}")
        what = f"1 ≤ F ≤ {most} for L = {self.L} (a sum is one of the executable's 64-bit lanes)"
        self._needs(1 <= self.F <= most, f"{what}, not F = {self.F}")
        _check_exponent(self, self.e_zero)

    @property
    def nan_is_canonical(self) -> bool:
        return True  # MMA-Sim §IV-C step 1

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        _check_products(self, spec)
        if spec.scale_format is not None:
            self._needs(
                not spec.scale_format.has_zero, f"scales that are powers of two, not {spec.scale_format}"
            )

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        c = spec.c_format
        products = [_product_bound(spec, self.F, self.cut)] * self.L
        return [*products, aligned(widest(c), c.fraction_bits, self.F, self.cut)]

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        if self.L == 1 or (spec.scale_block and spec.scale_block % self.L):  # scale blocks are no whole steps
            return None
        return self._one_less(spec, self.L, L=self.L - 1)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.F} fractional bits below the largest term of a step, {_cut(self.cut)}: of all {self.L} "
            f"products and c, what is under 2^(e − {self.F}) is cut off, e being the largest exponent "
            f"({_own(spec.d_format)})"
        )


@dataclass(frozen=True, repr=False)
class Gdfs(Parameters):
    """gdfs, group dot, fused sum (semantics §3; MMA-Sim §IV-E), on e2m1 with block scales.

    NaN if a scale or c is NaN, else c if c is ±∞.  Each G consecutive products are summed exactly, σ_g,
    and scaled, `σ_g·s_α·s_β · 2^(e_α+e_β)`, the exponent that of the scales' fields alone.  A group whose
    products are all zero, or that has a zero scale, takes the exponent e_zero; so does c = ±0, but not a
    group that only cancels.  The groups and c are aligned to F fractional bits (toward zero), summed
    exactly and converted with ρ.
    """

    F: int
    G: int  #: products per group
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    e_zero: int | None  #: None: the exponents of the fields (paper-v1)

    algorithm: ClassVar[str] = "gdfs"
    meanings: ClassVar[Mapping[str, str]] = {"G": "products of one group; their exact sum is one term"}
    aligns: ClassVar[bool] = True
    summary: ClassVar[str] = "group dot, fused sum: exact sums of G scaled products, then as fda with c"
    takes_scales: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(
            1 <= self.G <= 64 and self.L >= 1 and self.L % self.G == 0,
            f"L = {self.L} a multiple of G = {self.G}, 1 to 64",
        )
        self._needs(8 <= self.F <= 40, f"8 ≤ F ≤ 40 (the executable's lanes have 64 bits), not {self.F}")
        _check_exponent(self, self.e_zero)

    @property
    def nan_is_canonical(self) -> bool:
        return True  # MMA-Sim §IV-E step 1

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.a_format == spec.b_format == e2m1, f"e2m1 × e2m1, not {spec.types}")
        self._needs(spec.scale_format is not None, "block scales")
        self._needs(spec.scale_block % self.G == 0, f"scale blocks that are multiples of G = {self.G}")
        assert spec.scale_format is not None
        m = spec.scale_format.fraction_bits
        self._needs(
            2 + 2 * m <= self.F, f"F ≥ {2 + 2 * m}, so that nothing of a scaled group is below its places"
        )
        most = (_LANE - (2 << self.F)) // (144 << self.F)  # 36·(2 − 2^-m)² < 144 for each product
        self._needs(most >= self.L, f"L ≤ {most}, where F = {self.F} (64-bit lanes), not {self.L}")

    def class_of(self, k: int) -> Hashable:
        """The products of an exact sum."""
        return k // self.G

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        a, b, scale, c = spec.a_format, spec.b_format, spec.scale_format, spec.c_format
        assert scale is not None
        # A group is summed at one exponent: what counts are the largest numbers, not the largest significands.
        group = self.G * (widest(a) * widest(b) << a.max_exponent + b.max_exponent) * widest(scale) ** 2
        places = a.fraction_bits + b.fraction_bits + 2 * scale.fraction_bits
        groups = [aligned(group, places, self.F)] * (self.L // self.G)
        return [*groups, aligned(widest(c), c.fraction_bits, self.F)]

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        G = self.G - 1
        return self._one_less(spec, self.G, G=G, L=self.L // self.G * G) if G else None

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.F} fractional bits below the largest term; a term is the exact sum of {self.G} scaled "
            f"products, or c; lower bits are cut off, toward zero ({_own(spec.d_format)})"
        )


@dataclass(frozen=True, repr=False)
class Gfda(Parameters):
    """gfda, grouped fused dot-add (semantics §3; TensorGauge §IV-B, GFDA), of any formats, without block scales.

    Per step, each G consecutive products are aligned to the largest exponent of their group, cut to W fractional bits
    and added exactly; these sums, with the exponents of their groups, and c are aligned to the largest exponent, cut to
    F fractional bits, added exactly, and converted with ρ.  `cut` as in fda.  Where W loses nothing of a product
    (`exact`), groups are summed exactly.
    """

    F: int
    G: int  #: products per group
    L: int  #: products per step; K > L is a chain of steps
    W: int  #: fractional bits kept at the alignment of a group
    rho: Conversion
    e_zero: int | None
    cut: Rounding = Rounding.RZ

    algorithm: ClassVar[str] = "gfda"
    aligns: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        "G": "products of one group; their sum is one term",
        "W": "fractional bits that a product keeps once aligned to the largest of its group",
        "cut": "how aligned magnitudes are cut to W and F bits",
    }
    summary: ClassVar[str] = (
        "grouped fused dot-add: groups of products summed with W bits, then as fda with c"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(
            1 <= self.G <= 64 and self.L >= 1 and self.L % self.G == 0,
            f"L = {self.L} a multiple of G = {self.G}, 1 to 64",
        )
        self._needs(1 <= self.F <= self.W <= 59, f"1 ≤ F = {self.F} ≤ W = {self.W} ≤ 59")
        _check_cut(self, self.cut)
        _check_exponent(self, self.e_zero)
        most = min(_LANE // (4 << self.W), (_LANE - (2 << self.F)) // (4 << self.F) // self.L * self.G)
        self._needs(most >= self.G, f"G ≤ {most}, where W = {self.W} (64-bit lanes), not {self.G}")

    @property
    def nan_is_canonical(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        _check_products(self, spec)

    def class_of(self, k: int) -> Hashable:
        """The products of a group."""
        return k // self.G

    def exact(self, spec: DotAdd) -> bool:
        """Whether no product loses a bit in its group."""
        a, b = spec.a_format, spec.b_format
        spread = a.max_exponent + b.max_exponent - a.min_exponent - b.min_exponent
        return self.G == 1 or spread + a.fraction_bits + b.fraction_bits <= self.W

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.W} fractional bits below the largest product of a group, and {self.F} of the sums of groups "
            f"and of c below the largest of these, {_cut(self.cut)} ({_own(spec.d_format)})"
        )


@dataclass(frozen=True, repr=False)
class Fdrda(Parameters):
    """fdrda, fused dot, round-down add (semantics §3; MMA-Sim §IV-F).

    1. Specials as fda, but a product of exponent ≥ 128 (the sum of its factors', plus one if its
       significand is ≥ 2) counts as an infinity: together with those of the inputs and c, or, if
       `inputs_first`, only where there are none of those.
    2. The products are aligned to their largest exponent e_dot, c excluded, and zero products too if
       `skip_zero_products`; cut to F fractional bits toward zero; summed exactly.
    3. `e_max = max(e_dot, e_c)`, e_c of the fields even for c = ±0.  The sum is cut to `dot_bits`
       fractional bits at e_max, c to F, both rounded with `cut`, and they are added.
    4. That is normalised (exponent ≥ −126) and cut with `cut` to `sum_bits` fractional bits (None: not
       cut), then converted with ρ.
    """

    F: int
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    dot_bits: int = 32
    sum_bits: int | None = 31  #: None: the sum is not cut
    skip_zero_products: bool = True
    cut: Rounding = Rounding.RD
    inputs_first: bool = (
        False  #: an infinite input or c is the result before products can overflow (paper-v1)
    )

    algorithm: ClassVar[str] = "fdrda"
    aligns: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "fused dot, round-down add: products summed as in fda, then c added, rounding down"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        self._needs(
            23 <= self.F <= self.dot_bits <= 40, f"23 ≤ F = {self.F} ≤ dot_bits = {self.dot_bits} ≤ 40"
        )
        self._needs(
            self.sum_bits is None or 24 <= self.sum_bits <= 40, f"24 ≤ sum_bits ≤ 40, not {self.sum_bits}"
        )
        self._needs(self.cut in (Rounding.RD, Rounding.RZ), f"cut RD or RZ, not {self.cut.name}")
        most = (_LANE - (4 << self.dot_bits)) // (4 << self.dot_bits)
        self._needs(
            most >= self.L, f"L ≤ {most}, where dot_bits = {self.dot_bits} (64-bit lanes), not {self.L}"
        )

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        _check_products(self, spec)

    summed: ClassVar[str] = "the exact sum of the products"
    _largest: ClassVar[str] = "largest product"

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        return [_product_bound(spec, self.F)] * self.L

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        return self._one_less(spec, self.L, L=self.L - 1) if self.L > 1 else None

    @property
    def sum_places(self) -> int:
        return self.dot_bits

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.F} fractional bits of each product below the {self._largest}, cut toward zero; then, to add "
            f"c, {self.dot_bits} of their sum and {self.F} of c below the larger of the two, cut {self.cut.value} "
            f"({_own(spec.d_format)})"
        )


@dataclass(frozen=True, repr=False)
class Gfdrda(Fdrda):
    """gfdrda, grouped fdrda (semantics §3; MMA-Sim §IV-H): as fdrda, with two changes.

    Step 2 is done for the products of even index and for those of odd index, each group aligned to its own
    largest exponent; the two sums are aligned to the larger one, e_dot, with F fractional bits rounded with
    `cut`, and added.  In step 3, c becomes 0 if `e_c < e_max − c_reach`.
    """

    c_reach: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.L >= 2, f"L ≥ 2 products per step, even and odd ones, not {self.L}")
        self._needs(abs(self.c_reach) <= 4096, f"−4096 ≤ c_reach ≤ 4096, not {self.c_reach}")

    algorithm: ClassVar[str] = "gfdrda"
    summary: ClassVar[str] = "grouped fdrda: even and odd products aligned apart, a c far below dropped"
    _largest: ClassVar[str] = "largest product of its group"

    def class_of(self, k: int) -> Hashable:
        return k // self.L, k % 2

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        return self._one_less(spec, self.L, L=self.L - 1) if self.L > 2 else None

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        return [_product_bound(spec, self.F)] * -(-self.L // 2)


@dataclass(frozen=True, repr=False)
class Efda(Parameters):
    """efda, exact fused dot-add (semantics §3): per step, `d = ρ(c + Σ a_k·b_k)`, the exact sum rounded once.

    Subnormals are kept, specials as IEEE 754; a sum of exactly zero is +0.
    """

    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion

    algorithm: ClassVar[str] = "efda"
    rounds_correctly: ClassVar[bool] = True
    summary: ClassVar[str] = "exact fused dot-add: the exact sum of L products and c, rounded once"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        self._needs(
            self.L <= 2 or self._sum_bits(spec) <= 112,
            f"L ≤ 2, or a sum of products and c of at most 112 bits, not L = {self.L} and {self._sum_bits(spec)} bits",
        )
        product_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
        self._needs(product_bits <= 24, f"products of at most 24 bits, not {product_bits}")

    def _sum_bits(self, spec: DotAdd) -> int:
        """Bits of the fixed point that holds every sum of L products, the places of c's that still count below it, a
        carry and a sign."""
        a, b = spec.a_format, spec.b_format
        top = a.max_exponent + b.max_exponent + 2 + (self.L - 1).bit_length()
        low = a.min_exponent - a.fraction_bits + b.min_exponent - b.fraction_bits
        return top - low + max(spec.c_format.fraction_bits, self.rho.fraction_bits) + 5

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        return self._one_less(spec, self.L, L=self.L - 1) if self.L > 1 else None

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps every bit: the sum of {counted(self.L, 'product')} and c is exact until it is rounded, once, "
            f"to {_significant(spec.d_format)}"
        )


@dataclass(frozen=True, repr=False)
class Lowered(Parameters):
    """A PTX instruction that the compiler lowers to several (semantics §6, "Lowered PTX").

    a and b are converted to `operands`, exactly, unless that is None.  fda steps (`inner`) take the products, L at a
    time, in the order `order` (indices into the `len(order)` products of one instruction), starting from c = +0,
    each step's result the next one's c.  Last comes the real c, in one ordinary IEEE addition, rounded with
    `addition`.  Its NaN payload is not recorded.
    """

    F: int
    L: int  #: products of one inner fda step
    rho: Conversion  #: of the inner fda
    e_zero: int | None
    operands: Format | None  #: what a and b are converted to; None: they are taken as they are
    order: tuple[int, ...]  #: in which the products of one instruction are taken
    addition: Conversion  #: rounding of the last addition, in the type of d
    cut: Rounding = Rounding.RZ  #: of the inner fda

    algorithm: ClassVar[str] = "lowered"
    meanings: ClassVar[Mapping[str, str]] = Fda.meanings
    aligns: ClassVar[bool] = True
    summary: ClassVar[str] = "lowered PTX: operands converted, fda steps from zero, c added last"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        self._needs(self.operands in (None, fp16, fp32), f"operands of fp16 or fp32, not {self.operands}")
        self._needs(len(self.order) >= 1, "an order of at least one product")
        self._needs(sorted(self.order) == list(range(len(self.order))), "an order that is a permutation")
        self._needs(len(self.order) % self.L == 0, f"{len(self.order)} products a multiple of L = {self.L}")

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return len(self.order)

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.c_format == spec.d_format, f"c and d of one type, not {spec.types}")
        self._needs(self.addition.format == spec.d_format, f"an addition in {spec.d_format}")
        for x in (spec.a_format, spec.b_format):
            to = self.taken_as(x)
            self._needs(_holds_narrower(to, x), f"a, b that {to} holds, not {x}")
        self.inner_dot_add(spec)  # raises where the fused steps cannot be

    def class_of(self, k: int) -> Hashable:
        """The products of an inner step."""
        n = len(self.order)
        return k // n, self.order.index(k % n) // self.L

    @property
    def last_rounding(self) -> Conversion:
        return self.addition

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        d = spec.d_format  # of the inner c
        products = [_product_bound(spec, self.F, self.cut)] * self.L
        return [*products, aligned(widest(d), d.fraction_bits, self.F, self.cut)]

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        if self.L == 1:
            return None
        n = len(self.order)
        last = [self.order[i] for i in range(self.L - 1, n, self.L)]
        kept = sorted(set(range(n)) - set(last))
        order = tuple(kept.index(k) for k in self.order if k not in last)
        zeros = tuple(step + k for step in range(0, spec.k, n) for k in sorted(last))
        return spec.replace(k=spec.k - len(zeros), L=self.L - 1, order=order), zeros

    def taken(self, k: int) -> list[int]:
        n = len(self.order)
        return [start + place for start in range(0, k, n) for place in self.order]

    def keeps(self, spec: DotAdd) -> str:
        d = spec.d_format
        return (
            f"keeps {self.F} fractional bits below the largest term of a step, {_cut(self.cut)} ({_own(d)}); "
            f"c is added in the end, by an ordinary {d} addition"
        )

    @property
    def inner(self) -> Fda:
        return Fda(self.F, self.L, self.rho, self.e_zero, self.cut)

    def taken_as(self, fmt: Format) -> Format:
        """What operands of a format are converted to."""
        return self.operands or fmt

    def made_of(self, spec: DotAdd) -> DotAdd:
        return self.inner_dot_add(spec)

    def inner_dot_add(self, spec: DotAdd) -> DotAdd:
        """The fused part of one instruction: its products in `order`, on converted operands."""
        a, b = self.taken_as(spec.a_format), self.taken_as(spec.b_format)
        return DotAdd(len(self.order), a, b, spec.d_format, spec.d_format, self.inner)


#: places by which a word, or a sum, of an emulation is scaled at most
MOST_SHIFT = 64


@dataclass(frozen=True)
class Part:
    """A part of an emulated product (`Emulated`): which products of words go into one sum, and where that goes."""

    products: tuple[tuple[int, int], ...]  #: word of a, word of b, in the order in which the unit takes them
    every: int = (
        0  #: after so many blocks the sum, which began at +0, is added to the total; 0: it is the total
    )
    shift: int = 0  #: the sum is added times 2^-shift

    def __post_init__(self) -> None:
        pairs = tuple(_integers(pair, "a product of words") for pair in self.products)
        object.__setattr__(self, "products", pairs)
        for name in ("every", "shift"):
            object.__setattr__(self, name, integer(getattr(self, name), name))
        if not pairs or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
            raise ValueError(f"a part has products of two words each, numbered from 0, not {self.products}")
        if self.every < 0 or not 0 <= self.shift <= MOST_SHIFT:
            raise ValueError(f"every ≥ 0 and 0 ≤ shift ≤ {MOST_SHIFT}, not {self.every} and {self.shift}")
        if self.shift and not self.every:
            raise ValueError("a part that is the total itself is not scaled")

    def __str__(self) -> str:
        words = "+".join(f"{i}·{j}" for i, j in self.products)
        scaled = f"/2^{self.shift}" if self.shift else ""
        return f"({words}){scaled} every {self.every}" if self.every else f"({words})"


@dataclass(frozen=True, repr=False)
class Emulated(Parameters):
    """emulated, a program over another instruction (semantics §3): words, their products, corrections, last sums.

    fp32 factors become `words` words each, of the unit's formats: the first is φ(x), each later one φ(2^shift·rest),
    the rest being what the word before left, by an IEEE subtraction.  Without φ, a and b are
    one word each, of the unit's formats, or of narrower ones, whose numbers are converted exactly.
    With `common`, all a of a step have an exponent in common, and all b: words are integers of at most 2^common.

    The total starts as c.  Each of `parts` in turn takes the K products block by block, as many as one instruction
    of the unit has: of each block it gives the unit its products of words, each result being the next one's c.  A
    part's sum is the total itself, or it starts at +0 and is added to the total after every so many blocks, and after
    the last, times 2^-shift, by IEEE operations of fp32.
    """

    unit: DotAdd
    parts: tuple[Part, ...]
    blocks: int = (
        1  #: instructions of the unit for one product of words; K more than theirs is a chain of steps
    )
    rounding: Conversion | None = None  #: φ, of a and b, which are fp32 then; None: they are the unit's
    words: int = 1  #: of each factor
    shift: int = 0  #: each word stands for 2^-shift of the one before
    common: int = 0  #: bits of the first word below an exponent in common; 0: each factor has its own

    algorithm: ClassVar[str] = "emulated"
    summary: ClassVar[str] = (
        "a program over instructions: factors cut in words, products of words, corrections"
    )
    meanings: ClassVar[Mapping[str, str]] = {
        "unit": "the instruction that takes the products of words",
        "parts": "which products of words go into one sum, and after how many blocks it is added to the total",
        "blocks": "instructions of the unit for one product of words",
        "rounding": "how a word is rounded",
        "words": "of each factor",
        "shift": "each word stands for 2^-shift of the one before",
        "common": "bits of a word below the exponent that all a of a step, or all b, have in common; 0: they have none",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.blocks >= 1, f"blocks ≥ 1, not {self.blocks}")
        self._needs(self.words >= 1, f"words ≥ 1, not {self.words}")
        self._needs(0 <= self.shift <= MOST_SHIFT, f"0 ≤ shift ≤ {MOST_SHIFT}, not {self.shift}")
        self._needs(len(self.parts) >= 1, "a part at least")
        self._needs(not isinstance(self.unit.parameters, Emulated), "a unit that is none itself")
        if self.rounding is None:
            self._needs(self.words == 1 and not self.shift, "a φ, for more than one word")
        else:
            self._needs(self.rounding.signed_zero, f"a φ that keeps the sign of zero, not {self.rounding}")
        for part in self.parts:
            used = max(max(pair) for pair in part.products)
            self._needs(used < self.words, f"words up to {used}, of which there are {self.words}")
            self._needs(part.every <= self.blocks, f"a sum of {self.blocks} blocks, not every {part.every}")
        if self.common:
            most = 0 if self.rounding is None else self.rounding.fraction_bits + 1
            self._needs(0 < self.common <= most, f"words of 1 to {most} bits, not {self.common}")
            self._needs(
                self.shift == self.common + 1, f"a word {self.common + 1} places below the one before"
            )
            self._needs(all(part.every for part in self.parts), "sums of their own, which are scaled last")

    @property
    def step_products(self) -> int:
        return self.blocks * self.unit.k

    def check(self, spec: DotAdd) -> None:
        unit = self.unit
        self._needs(unit.scale_format is None, "a unit without block scales")
        for x, word in ((spec.a_format, unit.a_format), (spec.b_format, unit.b_format)):
            if self.rounding is None:
                narrower = word in (fp16, fp32) and _holds_narrower(word, x)
                self._needs(x == word or narrower, f"a and b that the unit's formats hold, not {spec.types}")
            else:
                self._needs(x == fp32, f"a and b of fp32, not {spec.types}")
                kept = self.rounding.format.storage_bits, self.rounding.fraction_bits
                self._needs(kept == (word.storage_bits, word.fraction_bits), f"a φ that gives {word}")
                self._needs(
                    self.rounding.format.exponent_bits == word.exponent_bits, f"a φ that gives {word}"
                )
        one = spec.c_format == spec.d_format == unit.c_format == unit.d_format == fp32
        self._needs(one, f"c and d of fp32, the unit's too, not {spec.types} and {unit.types}")

    def class_of(self, k: int) -> Hashable:
        """The block, and the unit's own classes there."""
        return k // self.unit.k, self.unit.class_of(k % self.unit.k)

    @property
    def last_rounding(self) -> Conversion:
        return IEEE_FP32 if self.parts[-1].every else self.unit.parameters.last_rounding

    def keeps(self, spec: DotAdd) -> str:
        own = "the total is fp32" if self.parts[-1].every else "the total is the unit's"
        return f"{self.unit.parameters.keeps(self.unit)}, in the unit; {own}"


@dataclass(frozen=True, repr=False)
class Pfma(Parameters):
    """pfma, paired fused multiply-add (semantics §10), of Intel AMX.

    Two partial sums start at +0; even products are added to one, odd ones to the other, each by an fma; d is
    `c + (t_0 + t_1)`.  Every operation is IEEE fp32, to nearest even, but a subnormal operand counts as zero of its
    sign, and so does a result that is tiny.  A NaN operand is the result, made quiet, the first one of
    a, b, addend; of t_0 + t_1 and c + s it is the first one too.  0·∞ and ∞ − ∞ give 0xFFC00000.
    """

    L: int  #: products of one instruction; K > L is a chain of them
    tiny: Tininess = Tininess.AFTER

    algorithm: ClassVar[str] = "pfma"
    meanings: ClassVar[Mapping[str, str]] = {"tiny": "when a result counts as tiny, which is flushed to zero"}
    summary: ClassVar[str] = (
        "paired fma: even and odd products in two chains of fp32 fma, their sum added to c"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.L >= 2 and self.L % 2 == 0, f"L even, a pair of products or several, not {self.L}")

    @property
    def nan_is_canonical(self) -> bool:
        return True  # measured

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.a_format == spec.b_format == bf16, f"a and b of bf16, not {spec.types}")
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")

    def class_of(self, k: int) -> Hashable:
        """Each is added in a place of its own."""
        return k

    @property
    def last_rounding(self) -> Conversion:
        return IEEE_FP32

    def keeps(self, spec: DotAdd) -> str:
        return f"has two parts, of even and odd products, rounded to {_significant(fp32)} after every product"


@dataclass(frozen=True, repr=False)
class Oddsum(Parameters):
    """oddsum, pairs rounded to odd (semantics §10), of Arm's BFDOT and BFMMLA without extended bfloat16 arithmetic.

    Per step, `d = c ⊕ (a_0·b_0 ⊕ a_1·b_1)`; each product and each sum ⊕ is rounded with ρ.  A subnormal operand counts
    as zero of its sign, and so does a result that is tiny before rounding.  A NaN is 0x7FC00000.
    """

    rho: Conversion

    algorithm: ClassVar[str] = "oddsum"
    summary: ClassVar[str] = "pairs rounded to odd: fp32 products, their sum, and c, subnormals flushed"

    @property
    def nan_is_canonical(self) -> bool:
        return True  # Arm's manual: FPDefaultNaN

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return 2

    def check(self, spec: DotAdd) -> None:
        self._needs(spec.a_format == spec.b_format == bf16, f"a and b of bf16, not {spec.types}")
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        whole = self.rho.fraction_bits == fp32.fraction_bits and self.rho.signed_zero
        self._needs(whole, f"a ρ that keeps all of fp32, and the sign of zero, not {self.rho}")
        self._needs(
            self.rho.rounding in (Rounding.RO, Rounding.RZ),
            f"RO or RZ, which leave tiny what is tiny before rounding, not {self.rho}",
        )

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has no wide accumulator: every product and every sum is cut to {_significant(fp32)}, "
            f"{self.rho.rounding.value}"
        )


@dataclass(frozen=True, repr=False)
class DpaE9s12(Parameters):
    """dpa_e9s12, dot product-add of E9S12 halves (semantics §11), of Desrentes, Dupont de Dinechin and de Dinechin.

    Per step, `d = ρ(c + φ(Σ_N a_k·b_k))`.  fp16 and bf16 factors become one E9S12 number each, fp32 factors two, so
    that their product is four.  φ: the E9S12 products, in two's complement, are shifted right to the largest exponent,
    rounded down, and added in L bits, which include the sign and what carries need.  c is added to that sum exactly.
    A sum of exactly zero is −0 (if ρ keeps its sign) where all products and c are.
    """

    N: int  #: products of a step, of the given format; K > N is a chain of steps
    L: int  #: bits of the accumulator
    rho: Conversion
    detects_zeros: bool = True  #: whether E9S12 products that are zero are left out of the largest exponent

    algorithm: ClassVar[str] = "dpa_e9s12"
    summary: ClassVar[str] = (
        "dot product-add of E9S12 halves: products aligned in L bits (down), c added exactly"
    )
    meanings: ClassVar[Mapping[str, str]] = {
        "N": "products of one step; of fp32 each is four of E9S12",
        "L": "bits of the accumulator, its sign and carries included",
        "detects_zeros": "whether the exponents of zero products do not count",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.N >= 1, f"N ≥ 1 products per step, not {self.N}")
        self._needs(self.L <= 85, f"L ≤ 85 (the executable's limbs hold 112 bits), not {self.L}")

    @property
    def step_products(self) -> int:
        return self.N

    def check(self, spec: DotAdd) -> None:
        one = spec.a_format == spec.b_format and spec.a_format in (fp16, bf16, fp32)
        self._needs(one, f"a and b of fp16, bf16 or fp32, not {spec.types}")
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        least = 25 + self.carries(spec)
        self._needs(least <= self.L, f"L ≥ {least}, which hold the largest products, not {self.L}")

    def summands(self, spec: DotAdd) -> int:
        """E9S12 products of a step."""
        return 4 * self.N if spec.a_format == fp32 else self.N

    def carries(self, spec: DotAdd) -> int:
        """Bits of the accumulator above those that one product needs."""
        return (self.summands(spec) - 1).bit_length()

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        if self.N == 1:
            return None
        L = self.L - self.carries(spec)
        less = replace(self, N=self.N - 1, L=L + replace(self, N=self.N - 1).carries(spec))
        return self._one_less(spec, self.N, N=less.N, L=less.L)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has {self.L} bits: {self.L - 3 - self.carries(spec)} fractional bits below the largest exponent of an "
            f"E9S12 product, rounded down ({_own(spec.d_format)}); c is added to their sum exactly"
        )


@dataclass(frozen=True, repr=False)
class AccE9s12(Parameters):
    """acc_e9s12, the variant of dpa_e9s12 with a looped accumulator (semantics §3; Desrentes et al. §IV-D).

    c is cut in two E9S12 numbers, which the first pass adds as products with 1.  Each pass of N products shifts what
    is accumulated, too, to the largest exponent, rounded down; after the last one, ρ rounds what there is, once.
    """

    D: int  #: products in all
    N: int  #: products of a pass, of the given format
    L: int  #: bits of the accumulator, its sign and the carries of all passes included
    rho: Conversion

    algorithm: ClassVar[str] = "acc_e9s12"
    summary: ClassVar[str] = "looped accumulator of E9S12 products: c is a product, rounded down as they are"
    meanings: ClassVar[Mapping[str, str]] = {
        "D": "products in all, before the accumulator is rounded",
        "N": "products of one pass; of fp32 each is four of E9S12",
        "L": "bits of the accumulator, its sign and carries included",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._needs(self.N >= 1 and self.D % self.N == 0, f"D a multiple of N ≥ 1, not {self.D} and {self.N}")
        self._needs(self.L <= 85, f"L ≤ 85, not {self.L}")

    @property
    def step_products(self) -> int:
        return self.D

    def class_of(self, k: int) -> Hashable:
        """The products of a pass."""
        return k // self.N

    def check(self, spec: DotAdd) -> None:
        one = spec.a_format == spec.b_format and spec.a_format in (fp16, bf16, fp32)
        self._needs(one, f"a and b of fp16, bf16 or fp32, not {spec.types}")
        self._needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        least = 25 + self.carries(spec)
        self._needs(least <= self.L, f"L ≥ {least}, which hold the largest products, not {self.L}")

    def carries(self, spec: DotAdd) -> int:
        """Bits of the accumulator above those that one product needs, c's two among them."""
        return ((4 * self.D if spec.a_format == fp32 else self.D) + 1).bit_length()

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has {self.L} bits, {self.L - 3 - self.carries(spec)} fractional bits below a pass's largest exponent, "
            f"c's and its own among them, rounded down ({_own(spec.d_format)})"
        )


#: A longer chain is refused: its inputs alone would fill the memory.
MOST_PRODUCTS = 1 << 24


@dataclass(frozen=True, repr=False)
class DotAdd:
    """One dot product-add as data: `k` products of `a_format`·`b_format`, plus c, giving d.

    With a `scale_format`, each `scale_block` consecutive a have a scale in common, and so have the b.
    With a `product_order`, a permutation of a period of products, the algorithm takes them in that order, period by
    period: with (0, 2, 1, 3) and steps of two products, the first step takes products 0 and 2.
    Formats may be given by name.  Raises ValueError for a combination that makes no sense or that the encodings do not
    hold, TypeError for what is no number, no format, or no parameters.
    """

    k: int
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    parameters: Parameters
    scale_format: Format | None = None
    scale_block: int = 0  #: products per pair of scales; 0 where there are none
    product_order: tuple[int, ...] = ()  #: in which products are taken; empty: as they are numbered

    def __post_init__(self) -> None:
        _settle(self)
        p = self.parameters
        for name in ("a", "b", "c", "d"):
            fmt = getattr(self, f"{name}_format")
            if not (fmt.signed and fmt.has_zero):
                raise ValueError(f"{name} cannot be {fmt}, a format of scales")
        if self.k > MOST_PRODUCTS:
            raise ValueError(f"K = {self.k} is too long a chain: at most {MOST_PRODUCTS} products")
        if self.k < 1 or self.k % p.step_products:
            raise ValueError(
                f"K = {self.k} is not a multiple of the {p.step_products} products of one {p.algorithm} step"
            )
        if self.k > p.step_products and self.c_format != self.d_format:
            raise ValueError(
                f"a chain needs c and d of one type, since one step's d is the next one's c: "
                f"c is {self.c_format}, d is {self.d_format}"
            )
        rho = getattr(p, "rho", None)
        if rho is not None and rho.format != self.d_format:
            raise ValueError(f"ρ = {rho} gives {rho.format}, but d is {self.d_format}")
        if self.scale_format is None and self.scale_block:
            raise ValueError(f"a scale block of {self.scale_block} without a scale format")
        if self.scale_format is not None:
            if not p.takes_scales:
                raise ValueError(f"{p.algorithm} takes no block scales")
            if self.scale_format.signed or self.scale_format.specials is Specials.IEEE:
                raise ValueError(
                    f"scales are unsigned and never infinite; {self.scale_format} is no format of them"
                )
            if self.scale_block < 1 or self.k % self.scale_block:
                raise ValueError(f"K = {self.k} is not a multiple of the scale block of {self.scale_block}")
            if self.scale_block % p.step_products and p.step_products % self.scale_block:
                raise ValueError(
                    f"scale blocks of {self.scale_block} straddle the steps of {p.step_products} products: "
                    "one has to be a multiple of the other"
                )
        self._check_order()
        p.check(self)

    def _check_order(self) -> None:
        order, step = self.product_order, self.parameters.step_products
        if not order:
            return
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"a product order is a permutation of 0 … {len(order) - 1}, not {order}")
        if len(order) % step or self.k % len(order):
            raise ValueError(
                f"a product order of {len(order)} has to hold whole steps of {step} products, and K = {self.k} whole "
                "orders"
            )
        if self.scale_format is not None:
            raise ValueError("a product order and block scales together are not modelled")
        if order == tuple(range(len(order))):
            object.__setattr__(self, "product_order", ())  # as they are numbered

    def __repr__(self) -> str:
        return f"<DotAdd {clipped(f'{self.types}, K={self.k}, {self.text}', 2 * LINE)}>"

    @property
    def text(self) -> str:
        """`fda F=24 L=8 ρ=RZ-FP32 e_zero=-132`: the algorithm, its parameters and the order of its products."""
        told = f"{self.parameters.algorithm} {self.parameters.describe()}".rstrip()
        order = (
            f", products in the order {','.join(map(str, self.product_order))}" if self.product_order else ""
        )
        return told + order

    @property
    def taken(self) -> list[int]:
        """The products, in the order in which they are taken."""
        period = self.product_order or (0,)
        return [start + k for start in range(0, self.k, len(period)) for k in period]

    @property
    def in_order(self) -> DotAdd:
        """The same, whose products are taken as they are numbered."""
        return replace(self, product_order=()) if self.product_order else self

    @property
    def period(self) -> int:
        """Products of whole steps, whole orders, and whole block scales: what a chain repeats."""
        return math.lcm(self.parameters.step_products, len(self.product_order) or 1, self.scale_block or 1)

    def class_of(self, k: int) -> Hashable:
        """The class of the k-th product (`Parameters.class_of`)."""
        n = len(self.product_order)
        return self.parameters.class_of(k - k % n + self.product_order.index(k % n) if n else k)

    @property
    def scales(self) -> int:
        """How many scales a has, and b too: K / scale_block, or 0."""
        return self.k // self.scale_block if self.scale_block else 0

    @property
    def types(self) -> str:
        scaled = f" (scales {self.scale_format}, one per {self.scale_block})" if self.scale_format else ""
        return f"{self.a_format} × {self.b_format} + {self.c_format} → {self.d_format}{scaled}"

    @property
    def nan_is_canonical(self) -> bool:
        """Whether the code of a NaN result is known; if not, any two NaN results count as equal."""
        return self.parameters.nan_is_canonical

    def replace(self, **changes: object) -> DotAdd:
        """The same with some of `k`, the formats, or the parameters (by their own names) changed.

        Raises TypeError for a name that is neither.
        """
        _parameters(changes.get("parameters", self.parameters), "parameters")
        own = {f.name for f in fields(self)}
        mine = {n: v for n, v in changes.items() if n in own}
        theirs = {n: v for n, v in changes.items() if n not in own}
        unknown = sorted(set(theirs) - set(self.parameters.keys()))
        if unknown:
            raise TypeError(
                f"{self.parameters.algorithm} has no parameter {unknown[0]!r}: "
                f"it has {', '.join(self.parameters.keys())}; also {', '.join(sorted(own))}"
            )
        parameters = _parameters(mine.pop("parameters", self.parameters), "parameters")
        return with_changes(self, mine | {"parameters": with_changes(parameters, theirs)})
