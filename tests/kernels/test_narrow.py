"""Kernels on words of 32 bits are proved to be the executable encoding's stages, for all inputs.

Every obligation is of one function (`kernels/narrow`), with the words that come in free but for what is said here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import z3
from support.symbolic import Flag, Lane, holds

from mmaformal.encodings.executable.blocks import (
    align,
    decode,
    encode,
    normalise_and_round,
    term,
    with_zero_exponent,
)
from mmaformal.encodings.fda.kernel import FdaKernel
from mmaformal.formats import FORMATS, Format, e5m2, fp16, fp32
from mmaformal.kernels import kernel_for, narrow
from mmaformal.listing import every_instruction
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd

REACH = 1 << 14  #: exponents are nearer to zero than this


def wide(x: z3.BitVecRef) -> Lane:
    """A signed word as a lane of 64 bits."""
    return Lane(z3.SignExt(64 - x.size(), x))


def unsigned(x: z3.BitVecRef, bits: int) -> Lane:
    return Lane(z3.ZeroExt(bits - x.size(), x))


def same(word: Lane, lane: Lane) -> z3.BoolRef:
    """The word is the lane, as a signed number."""
    return z3.SignExt(32, word.term) == lane.term


def near(x: z3.BitVecRef) -> z3.BoolRef:
    return z3.And(x > -REACH, x < REACH)


# ---- the obligations ---------------------------------------------------------------------------------------


def decoding(fmt: Format) -> z3.BoolRef:
    """`decode` on words is `decode` on lanes."""
    code = z3.BitVec("code", fmt.storage_bits)
    x, y = (decode(unsigned(code, bits), fmt.layout) for bits in (32, 64))
    flags = z3.And(x.infinite.term == y.infinite.term, x.nan.term == y.nan.term)
    return z3.And(
        flags, *(same(getattr(x, each), getattr(y, each)) for each in ("sign", "exponent", "significand"))
    )


def addends(fmt: Format) -> z3.BoolRef:
    """`addend_of` is `decode`, and `addend_exponent` the exponent of c as a term."""
    code, zero = z3.BitVec("code", fmt.storage_bits), z3.BitVec("zero", 32)
    x, y = narrow.addend_of(unsigned(code, 32), fmt), decode(unsigned(code, 64), fmt.layout)
    given = Lane(zero)
    placed = with_zero_exponent(term(y), wide(zero))  # type: ignore[arg-type]
    return z3.And(
        x.sign.term == z3.If((y.sign == 1).term, z3.BitVecVal(-1, 32), z3.BitVecVal(0, 32)),
        same(x.exponent, y.exponent),
        same(x.significand, y.significand),
        x.special.term == (y.infinite | y.nan).term,
        same(narrow.addend_exponent(x, given), placed.exponent),  # type: ignore[arg-type]
    )


def sums(fmt: Format, F: int) -> z3.BoolRef:
    """`plus_addend` is `total` and c aligned, where e_max is no less than c's exponent and `total` not −2^31."""
    code, zero = z3.BitVec("code", fmt.storage_bits), z3.BitVec("zero", 32)
    total, e_max = z3.BitVec("total", 32), z3.BitVec("e_max", 32)
    x = with_zero_exponent(term(decode(unsigned(code, 64), fmt.layout)), wide(zero))  # type: ignore[arg-type]
    expected = wide(total) + align(x, wide(e_max), fmt.fraction_bits, F)
    found = narrow.plus_addend(
        Lane(total), narrow.addend_of(unsigned(code, 32), fmt), Lane(e_max), fmt.fraction_bits, F
    )
    given = z3.And(
        near(zero), near(e_max), (wide(e_max) >= x.exponent).term, total != z3.BitVecVal(1 << 31, 32)
    )
    size = z3.ZeroExt(32, found.size.term)
    value = z3.If(found.negative.term, -size, size)
    return z3.Implies(given, z3.And(value == expected.term, found.negative.term == (expected < 0).term))


def codes(rho: Conversion) -> z3.BoolRef:
    """`encoded` is rounding and encoding."""
    negative, size, unit = z3.Bool("negative"), z3.BitVec("size", 32), z3.BitVec("unit", 32)
    magnitude = z3.ZeroExt(32, size)
    total = Lane(z3.If(negative, -magnitude, magnitude))
    expected = encode(normalise_and_round(total, wide(unit), rho), rho)
    found = narrow.encoded(narrow.Magnitude(Flag(z3.And(negative, size != 0)), Lane(size)), Lane(unit), rho)
    return z3.Implies(near(unit), z3.ZeroExt(32, found.term) == expected.term)


# ---- that they hold ----------------------------------------------------------------------------------------


def every_specification() -> set[DotAdd]:
    return {i.spec for i in every_instruction()}


def on_words() -> list[DotAdd]:
    """The specifications whose kernels compute on words."""
    kernels = [kernel_for(spec) for spec in every_specification()]
    return [x.spec for x in kernels if isinstance(x, FdaKernel) and x.on_words]


def conversions() -> list[Conversion]:
    """Every conversion that `fits_conversion` knows, up to its name."""
    return [
        Conversion(f"{rounding.name}-{fmt}-{bits}", fmt, bits, rounding)
        for fmt in narrow.FORMATS
        for bits in range(1, fmt.fraction_bits + 1)
        for rounding in narrow.ROUNDINGS
    ]


@pytest.mark.parametrize("fmt", [x for x in FORMATS.values() if x.storage_bits <= 32], ids=str)
def test_words_decode(fmt: Format) -> None:
    assert holds(decoding(fmt))


@pytest.mark.parametrize("fmt", narrow.FORMATS, ids=str)
def test_addends(fmt: Format) -> None:
    assert holds(addends(fmt))


def test_what_the_registry_needs_is_proved() -> None:
    specs = on_words()
    assert len(specs) > 40
    for fmt, F in {(x.c_format, x.parameters["F"]) for x in specs}:
        assert holds(sums(fmt, F)), (fmt, F)
    for rho in {replace(x.parameters["rho"], name="rho") for x in specs}:
        assert holds(codes(rho)), rho


@pytest.mark.slow
@pytest.mark.parametrize("F", range(narrow.MOST_BITS + 1))
@pytest.mark.parametrize("fmt", narrow.FORMATS, ids=str)
def test_all_sums(fmt: Format, F: int) -> None:
    assert holds(sums(fmt, F))


@pytest.mark.slow
@pytest.mark.parametrize("rho", conversions(), ids=str)
def test_all_conversions(rho: Conversion) -> None:
    assert narrow.fits_conversion(rho)
    assert holds(codes(rho))


# ---- that they would fail ----------------------------------------------------------------------------------


def test_more_bits_wrap() -> None:
    assert not holds(sums(fp32, narrow.MOST_BITS + 2))


@pytest.mark.parametrize(
    ("name", "broken", "obligation"),
    [
        (
            "leading_zeros",
            lambda x: x.leading_zeros() - 1,
            lambda: codes(Conversion("rho", fp32, 23, Rounding.RZ)),
        ),
        ("BITS", 31, lambda: codes(Conversion("rho", fp16, 10, Rounding.RNE))),
        ("larger_word", lambda x, least: x, lambda: codes(Conversion("rho", e5m2, 2, Rounding.RZ))),
        ("logical", lambda x, n: x >> n, lambda: codes(Conversion("rho", fp32, 13, Rounding.RZ))),
        ("where", lambda flag, x, y: x, lambda: sums(fp16, 24)),
    ],
)
def test_each_is_seen_to_break(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: object, obligation: Callable[[], z3.BoolRef]
) -> None:
    monkeypatch.setattr(narrow, name, broken)
    assert not holds(obligation())


def test_other_conversions_are_left_to_lanes() -> None:
    rho = Conversion("rho", fp32, 23, Rounding.RZ)
    assert narrow.fits_conversion(rho)
    for change in ({"rounding": Rounding.RO}, {"signed_zero": True}, {"signed_zero": True, "ieee": True}):
        assert not narrow.fits_conversion(replace(rho, **change))  # type: ignore[arg-type]
