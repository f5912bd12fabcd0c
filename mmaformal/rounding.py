"""How numbers are rounded to codes, as data: the rounding, the format, which NaN, what is tiny.  No arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from mmaformal.checked import integer, text, truth
from mmaformal.display import clipped
from mmaformal.formats import FORMATS, Format, Specials, bf16, e5m2, fp16, fp32, fp64

#: formats of results, as a name of ρ spells them
_RESULTS = {"E5M2": e5m2, "FP16": fp16, "BF16": bf16, "FP32": fp32, "FP64": fp64}
#: the same by their exponent bits, where ρ keeps fewer fraction bits: RNE-E8M10
_WORDS = {"5": fp16, "8": fp32, "11": fp64}
#: the names that RISC-V has for roundings, where they are others
_RISCV = {"RTZ": "RZ", "RDN": "RD", "RUP": "RU", "RMM": "RNA"}

E = TypeVar("E", bound=Enum)


def _member(kind: type[E], value: object, name: str, word: str) -> E:
    """A member, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {kind.__name__} or its name, not {value!r}")
    if value not in kind.__members__:
        raise ValueError(f"{name}: no {word}{value!r}; there are {', '.join(kind.__members__)}")
    return kind[value]


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
        return _member(cls, value, name, "rounding ")


class NanRule(Enum):
    """Which NaN an operation gives."""

    ANY = "some NaN: which one is not known"
    DEFAULT = "always the same: positive, quiet, without a payload"
    INDEFINITE = "always the same: negative, quiet, without a payload"
    FIRST = "the first NaN among a, b and c, made quiet; if none is, the negative quiet one without a payload"
    FIRST_ACB = (
        "the first NaN among a, c and b, made quiet; if none is, the positive quiet one without a payload"
    )

    @property
    def order(self) -> tuple[str, ...]:
        """Return the operands of an fma whose first NaN, made quiet, is the result; none where that is no rule."""
        return {NanRule.FIRST: ("a", "b", "c"), NanRule.FIRST_ACB: ("a", "c", "b")}.get(self, ())

    @property
    def default_is_negative(self) -> bool:
        """Return whether the NaN of an operation without one among its operands has its sign set."""
        return self is NanRule.FIRST

    @classmethod
    def named(cls, value: object, name: str) -> NanRule:
        """A rule, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        return _member(cls, value, name, "rule ")


class Tininess(Enum):
    """When a result counts as tiny, below the least normal number (IEEE 754-2019 §7.5): one that is flushed to zero."""

    BEFORE = "before rounding: the exact result is below"
    AFTER = "after rounding: the result is, rounded as if exponents had no least"

    @classmethod
    def named(cls, value: object, name: str) -> Tininess:
        """One of both, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        return _member(cls, value, name, "")


class Saturation(Enum):
    """The fate of a number beyond the largest, once rounded, in a format of P3109 (interim report §4.7.5).

    PROPAGATE is what Arm's FPMR.OSM = 1 asks for in fp16 and fp32.
    """

    NONE = "none: the infinity where there is one and the rounding goes there, else the largest number"
    FINITE = "finite: the largest number, of infinities too"
    PROPAGATE = "propagate: the largest number; infinities remain, where there are any"

    @classmethod
    def named(cls, value: object, name: str) -> Saturation:
        """A mode, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        return _member(cls, value, name, "mode ")


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

    With `ieee`, of RZ, RD and RU, all that is as in IEEE 754 (§6.3, §7.4): what overflows is the largest number
    where the rounding goes toward zero, and an exact zero of terms that are not of one sign is −0 with RD, in those
    algorithms that give zeros a sign.  To nearest there is no difference but for signed zeros.

    A format with one NaN and no −0 (of P3109, or FNUZ) has a `saturation`, NONE if it is not said, all of its fraction
    bits are kept, and the interim report of P3109 says what overflows (§4.7.3-5).  So has OCP's e4m3, whose overflow is
    the NaN without saturation, and the largest number with it, infinities too.  A format of IEEE 754 whose overflow is
    the largest number, to nearest, has PROPAGATE: infinities stay (Arm ARM, FPRoundBase, `satoflo`).

    Raises ValueError unless the format is one of these, or has infinities and every bit of its word is used, and keeps
    1 to all of its fraction bits; TypeError for what is no number.
    """

    name: str
    format: Format
    fraction_bits: int
    rounding: Rounding
    signed_zero: bool = False
    saturation: Saturation | None = (
        None  #: of formats of P3109, of e4m3, and of overflow to the largest number
    )
    ieee: bool = False  #: whether a directed rounding overflows, and signs zeros, as in IEEE 754

    def __post_init__(self) -> None:
        text(self.name, "name")
        for name, kind in (
            ("format", Format.named),
            ("fraction_bits", integer),
            ("rounding", Rounding.named),
            ("signed_zero", truth),
            ("ieee", truth),
        ):
            object.__setattr__(self, name, kind(getattr(self, name), name))
        fmt = self.format
        directed = self.rounding in (Rounding.RZ, Rounding.RD, Rounding.RU)
        if self.ieee and not (directed and self.signed_zero and fmt.one_nan is None):
            raise ValueError(
                f"ρ = {self.name}: IEEE 754's overflow and zeros are told apart with RZ, RD or RU, of zeros with a sign"
            )
        if fmt.one_nan is not None or (fmt.specials is Specials.FN and fmt.is_whole and fmt.signed):
            mode = Saturation.NONE if self.saturation is None else self.saturation
            object.__setattr__(self, "saturation", Saturation.named(mode, "saturation"))
            if self.fraction_bits != fmt.fraction_bits or (self.signed_zero and not fmt.has_minus_zero):
                raise ValueError(
                    f"ρ = {self.name}: {fmt} holds {fmt.fraction_bits} fraction bits, all of them kept"
                    + ("" if fmt.has_minus_zero else ", and no −0")
                )
            return
        if self.saturation is not None:
            object.__setattr__(self, "saturation", Saturation.named(self.saturation, "saturation"))
            if self.saturation is not Saturation.PROPAGATE or self.rounding is not Rounding.RNE:
                raise ValueError(
                    f"ρ = {self.name}: {fmt} saturates to nearest even, and keeps its infinities"
                )
        whole = fmt.signed and 1 + fmt.exponent_bits + fmt.fraction_bits == fmt.storage_bits
        if fmt.specials is not Specials.IEEE or not whole or fmt.storage_bits not in (8, 16, 32, 64):
            raise ValueError(
                f"ρ = {self.name}: results of {fmt} are not modelled; e4m3, e5m2, fp16, bf16, fp32, fp64 and "
                "P3109's are"
            )
        if not 1 <= self.fraction_bits <= fmt.fraction_bits:
            raise ValueError(
                f"ρ = {self.name}: {fmt} holds 1 to {fmt.fraction_bits} fraction bits, not {self.fraction_bits}"
            )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        kept = f"{self.format}, {self.fraction_bits} fractional bits, {self.rounding.name}"
        more = (
            ", −0"
            if self.signed_zero
            else f", Sat{self.saturation.name.capitalize()}"
            if self.saturation
            else ""
        )
        return f"<Conversion {clipped(self.name)}: {kept}{more}>"

    @property
    def saturates_ieee(self) -> bool:
        """Return whether whatever overflows a format of IEEE 754 is its largest number."""
        return self.saturation is not None and self.format.specials is Specials.IEEE

    @property
    def stays(self) -> bool:
        """Return whether some of what overflows is the largest number: where the rounding goes there, or all of it."""
        return self.ieee or self.saturates_ieee

    def with_signed_zero(self) -> Conversion:
        return replace(self, name=f"{self.name}±0", signed_zero=True)

    @classmethod
    def named(cls, value: object, name: str = "rho") -> Conversion:
        """A conversion, or that of a name: one of `CONVERSIONS`, or a rounding and a format, as RD-FP32, RNA-BF16; or
        its exponent bits and the fraction bits that are kept, as RNE-E8M10 (in an fp32 word); IEEE 754's, as IEEE-BF16
        (to nearest even), IEEE-RD-FP32, IEEE-RZ-E8M10, whose roundings may have RISC-V's names, as IEEE-RMM-FP16; or
        one of P3109, as RNE-BINARY8P4SE (without saturation), RZ-BINARY6P3SF-SatFinite, RO-BINARY8P3SE-SatPropagate; or
        one that overflows to the largest number, as IEEE-FP16-SatPropagate.

        Raises ValueError for an unknown name, TypeError for anything else.
        """
        if isinstance(value, Conversion):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{name} is a Conversion or its name, not {value!r}")
        if value in CONVERSIONS:
            return CONVERSIONS[value]
        if value.startswith("IEEE-"):
            return _ieee(value, name)
        found = re.fullmatch(r"([A-Z]+)-([A-Z0-9]+?)(?:(±0)|-Sat(None|Finite|Propagate))?", value)
        if found and found[1] in Rounding.__members__ and found[2].lower() in FORMATS:
            other = FORMATS[found[2].lower()]
            if (other.one_nan is not None and not found[3]) or other.specials is Specials.FN:
                mode = Saturation[(found[4] or "None").upper()]
                short_name, zero = value.removesuffix("-SatNone"), bool(found[3])
                return Conversion(short_name, other, other.fraction_bits, Rounding[found[1]], zero, mode)
        fmt = _RESULTS.get(found[2]) if found else None
        short = re.fullmatch(r"E(\d+)M(\d+)", found[2]) if found and fmt is None else None
        if short:
            fmt = _WORDS.get(short[1])
        if not found or fmt is None or found[1] not in Rounding.__members__:
            raise ValueError(
                f"no ρ named {value!r}; there are {', '.join(CONVERSIONS)}, and "
                f"{'|'.join(Rounding.__members__)} - {'|'.join(_RESULTS)}|E8M…|BINARY8P4SE…[-SatFinite|-SatPropagate]"
            )
        bits = int(short[2]) if short else fmt.fraction_bits
        saturation = Saturation[found[4].upper()] if found[4] else None
        made = Conversion(value.removesuffix("±0"), fmt, bits, Rounding[found[1]], saturation=saturation)
        return made.with_signed_zero() if found[3] else made


def _ieee(value: str, name: str) -> Conversion:
    """Returns the conversion of IEEE 754 that is so called, as `Conversion.named` has them.  Raises ValueError."""
    found = re.fullmatch(r"IEEE-(?:([A-Z]+)-)?([A-Z0-9]+)(-Sat\w+)?", value)
    rounding = Rounding.__members__.get(_RISCV.get(found[1], found[1]) or "RNE") if found else None
    if found is None or rounding is None or rounding is Rounding.RO:
        raise ValueError(
            f"{name}: no ρ named {value!r}; of IEEE 754 there are IEEE-[RNE|RNA|RZ|RD|RU-]FORMAT"
        )
    like = Conversion.named(f"{rounding.name}-{found[2]}{found[3] or ''}", name)
    if like.format.one_nan is not None:
        raise ValueError(f"{name}: {like.format} is no format of IEEE 754's kind")
    told = "" if rounding is Rounding.RNE else f"{rounding.name}-"
    ieee = rounding in (Rounding.RZ, Rounding.RD, Rounding.RU)
    return replace(like, name=f"IEEE-{told}{like.name.partition('-')[2]}", signed_zero=True, ieee=ieee)


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
