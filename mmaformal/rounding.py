"""How numbers are rounded to codes, as data: the rounding, the format, which NaN, what is tiny.  No arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from mmaformal.checked import integer, some_text, truth
from mmaformal.display import clipped
from mmaformal.formats import FORMATS, Format, Specials, bf16, e5m2, fp16, fp32, fp64

#: formats of results, as a name of ρ spells them
_RESULTS = {"E5M2": e5m2, "FP16": fp16, "BF16": bf16, "FP32": fp32, "FP64": fp64}
#: the most random bits of a stochastic rounding, which 64-bit lanes hold beside what is lost
MOST_RANDOM_BITS = 30
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
    """How a significand is cut to its last place (IEEE 754-2019 §4.3; RO: Boldo and Melquiond 2008; SA, SB and SC:
    P3109's interim report §4.7.4)."""

    RZ = "toward zero"
    RNE = "to nearest, ties to even"
    RNA = "to nearest, ties away from zero"
    RD = "down, toward −∞"
    RU = "up, toward +∞"
    RO = "to odd: toward zero, and the last bit set if anything was lost"
    SA = "stochastic, A: away from zero if the first N bits that are lost, and R, are 2^N or more"
    SB = "stochastic, B: away from zero if the first N + 1 bits that are lost, and 2·R + 1, are 2^(N + 1) or more"
    SC = "stochastic, C: away from zero if what is lost, to N bits to nearest even, and R, are 2^N or more"

    @property
    def is_stochastic(self) -> bool:
        """Return whether it takes random bits: R, of N bits."""
        return self in (Rounding.SA, Rounding.SB, Rounding.SC)

    @classmethod
    def named(cls, value: object, name: str) -> Rounding:
        """A rounding, or that of a name.  Raises ValueError for an unknown name, TypeError for anything else."""
        return _member(cls, value, name, "rounding ")


#: the roundings that take no random bits
DETERMINISTIC = tuple(each for each in Rounding if not each.is_stochastic)


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

    A stochastic rounding is a function of its `random_bits`, N, and of the `random` number R that they are, which is
    part of the report's name of it: SA4.7 has N = 4 and R = 7.  A unit that draws R anew is the set of the 2^N
    conversions.

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
    random_bits: int = 0  #: N of a stochastic rounding
    random: int = 0  #: R of it, below 2^N

    def __post_init__(self) -> None:
        some_text(self.name, "name")
        for name, kind in (
            ("format", Format.named),
            ("fraction_bits", integer),
            ("rounding", Rounding.named),
            ("signed_zero", truth),
            ("ieee", truth),
            ("random_bits", integer),
            ("random", integer),
        ):
            object.__setattr__(self, name, kind(getattr(self, name), name))
        self._check_random()
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

    def _check_random(self) -> None:
        stochastic, bits = self.rounding.is_stochastic, self.random_bits
        if not (1 <= bits <= MOST_RANDOM_BITS if stochastic else bits == 0):
            allowed = f"1 to {MOST_RANDOM_BITS} random bits" if stochastic else "no random bits"
            raise ValueError(f"ρ = {self.name}: {self.rounding.name} takes {allowed}, not {bits}")
        if not 0 <= self.random < 1 << bits:
            raise ValueError(f"ρ = {self.name}: {bits} random bits are no {self.random}")

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
        one of P3109, as RNE-BINARY8P4SE (without saturation), RZ-BINARY6P3SF-SatFinite, RO-BINARY8P3SE-SatPropagate,
        SC4.7-BINARY8P4SE (stochastic, of N = 4 random bits that are R = 7); or one that overflows to the largest
        number, as IEEE-FP16-SatPropagate.

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
        found = re.fullmatch(
            r"([A-Z]+)(?:(\d+)\.(\d+))?-([A-Z0-9]+?)(?:(±0)|-Sat(None|Finite|Propagate))?", value
        )
        if not found or found[1] not in Rounding.__members__:
            raise _unnamed(value)
        rounding, zero, mode = Rounding[found[1]], bool(found[5]), (found[6] or "").upper()
        bits, random = int(found[2] or 0), int(found[3] or 0)
        target = found[4].lower()
        known = target in FORMATS  # which makes those of P3109 when they are asked for
        other = FORMATS[target] if known else fp32
        if (other.one_nan is not None and not zero) or other.specials is Specials.FN:
            saturation, short = Saturation[mode or "NONE"], value.removesuffix("-SatNone")
            return Conversion(
                short, other, other.fraction_bits, rounding, zero, saturation, False, bits, random
            )
        fmt, keep = _word(found[4])
        if fmt is None:
            raise _unnamed(value)
        short, kept = value.removesuffix("±0"), Saturation[mode] if mode else None
        keep = fmt.fraction_bits if keep is None else keep
        made = Conversion(short, fmt, keep, rounding, False, kept, False, bits, random)
        return made.with_signed_zero() if zero else made


def _word(name: str) -> tuple[Format | None, int | None]:
    """Return the format of IEEE 754's kind of a name, as FP32; or of an E8M10, and how many fraction bits it keeps."""
    short = re.fullmatch(r"E(\d+)M(\d+)", name)
    if name in _RESULTS or not short:
        return _RESULTS.get(name), None
    return _WORDS.get(short[1]), int(short[2])


def _unnamed(value: str) -> ValueError:
    """Return the error of a name that no conversion has."""
    roundings = "|".join(
        f"{name}N.R" if each.is_stochastic else name for name, each in Rounding.__members__.items()
    )
    return ValueError(
        f"no ρ named {value!r}; there are {', '.join(CONVERSIONS)}, and "
        f"{roundings} - {'|'.join(_RESULTS)}|E8M…|BINARY8P4SE…[-SatFinite|-SatPropagate]"
    )


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
