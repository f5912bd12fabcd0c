"""Parts of units, conversions and formats are checked where these are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mmaformal import Instruction, cdna1, cdna2, cdna3, hopper, rtx_blackwell
from mmaformal.encodings.fda import Fda
from mmaformal.formats import FORMATS, Format, Specials, bf16, e3m2, fp16, fp32, fp64, tf32
from mmaformal.rounding import CONVERSIONS, DETERMINISTIC, RNE_FP16, Conversion, Rounding
from mmaformal.spec import DotAdd

H = hopper["HMMA.16816.F32"]
GFDRDA = cdna3["f32_16x16x32_fp8_fp8"]
LOWERED = hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"]
OMMA = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
GPS = cdna2["f32_16x16x16f16"]


def conversion(*given: Any) -> Callable[[], Conversion]:
    return lambda: Conversion("W", *given)


def fmt(*given: Any, **more: Any) -> Callable[[], Format]:
    return lambda: Format("x", *given, **more)


def changed(i: Instruction, **changes: Any) -> Callable[[], Instruction]:
    return lambda: i.replace(**changes)


NO_NUMBER = "is an integer, not"

WRONG = [
    *((changed(H, **{name: value}), TypeError, f"{name} {NO_NUMBER}") for name in ("F", "L", "e_zero", "k", "m", "n")
      for value in (23.5, 23.0, True, "23")),
    *((changed(GFDRDA, **{name: 25.5}), TypeError, NO_NUMBER) for name in ("dot_bits", "sum_bits", "c_reach")),
    (changed(GFDRDA, skip_zero_products=1), TypeError, "is True or False"),
    (changed(GFDRDA, cut="RNE"), ValueError, "cut RD or RZ"),
    (changed(GFDRDA, cut="down"), ValueError, "no rounding 'down'"),
    (changed(GFDRDA, cut=3), TypeError, "a Rounding or its name"),
    (changed(GFDRDA, L=1 << 28, k=1 << 28), ValueError, "64-bit lanes"),
    (changed(GFDRDA, c_reach=10**30), ValueError, "c_reach"),
    (changed(cdna3["f32_32x32x8_f16"], a_format="fp64", b_format="fp64"), ValueError, "at most 48 bits"),
    (changed(H, rho="RNE-FP31"), ValueError, "no ρ named 'RNE-FP31'"),
    (changed(H, rho="UP-FP32"), ValueError, "no ρ named"),
    (changed(H, rho=3), TypeError, "a Conversion or its name"),
    (changed(H, rho=RNE_FP16), ValueError, "but d is fp32"),
    (changed(H, a_format="bf17"), ValueError, "no format 'bf17'"),
    (changed(H, a_format=16), TypeError, "a Format or its name"),
    (changed(H, a_format="ue8m0"), ValueError, "a format of scales"),
    (changed(H, c_format="ue4m3"), ValueError, "a format of scales"),
    (changed(H, scale_format="e4m3", scale_block=16), ValueError, "scales are unsigned"),
    (changed(H, scale_block=4), ValueError, "without a scale format"),
    (changed(H, e_zero=10**9), ValueError, "e_zero"),
    (changed(H, F=48, L=1 << 12, k=1 << 12), ValueError, "64-bit lanes"),
    (changed(H, G=4), TypeError, "no parameter 'G'"),
    (changed(H, m=0), ValueError, "counts from 1"),
    (changed(H, name=3), TypeError, "is a str"),
    (changed(H, name=""), ValueError, "is empty"),
    (changed(H, architecture=b"x"), TypeError, "is a str"),
    (changed(H, parameters=24), TypeError, "those of an algorithm"),
    (changed(OMMA, G=0), ValueError, "a multiple of G"),
    (changed(OMMA, L=0), ValueError, "a multiple of G"),
    (changed(OMMA, F=40, L=1 << 14, k=1 << 14), ValueError, "64-bit lanes"),
    (changed(GPS, a_format=Format("wide", 16, 9, 6, 255, Specials.IEEE, None)), ValueError, "that fp32 holds"),
    (changed(GPS, a_format=Format("low", 16, 8, 7, 140, Specials.IEEE, None)), ValueError, "that fp32 holds"),
    (changed(LOWERED, L=0), ValueError, "L ≥ 1"),
    (changed(LOWERED, F=60), ValueError, "1 ≤ F ≤ 54 for L = 16"),
    (changed(LOWERED, order=()), ValueError, "at least one product"),
    (changed(LOWERED, order="0123"), TypeError, "a sequence of integers"),
    (changed(LOWERED, order=(0, 1.0)), TypeError, NO_NUMBER),
    (changed(LOWERED, operands=bf16), ValueError, "operands of fp16 or fp32"),
    (changed(LOWERED, a_format=bf16), ValueError, "that fp16 holds"),
    *((lambda k=k: H.chained(k), TypeError, NO_NUMBER) for k in (32.0, True, "32", None)),
    *((lambda k=k: H.chained(k), ValueError, "not a multiple") for k in (0, -16, 24)),
    (conversion(fp32, 30, Rounding.RZ), ValueError, "1 to 23 fraction bits, not 30"),
    (conversion(fp32, 0, Rounding.RZ), ValueError, "1 to 23 fraction bits, not 0"),
    (conversion(fp32, 3.0, Rounding.RZ), TypeError, NO_NUMBER),
    (conversion(fp32, True, Rounding.RZ), TypeError, NO_NUMBER),
    (conversion(fp32, 23, "up"), ValueError, "no rounding 'up'"),
    (conversion(fp32, 23, None), TypeError, "a Rounding or its name"),
    (conversion(fp32, 23, "RU", 1), TypeError, "is True or False"),
    (conversion(tf32, 10, "RZ"), ValueError, "results of tf32 are not modelled"),
    (conversion(e3m2, 2, "RZ"), ValueError, "results of e3m2 are not modelled"),
    (conversion(8, 3, "RZ"), TypeError, "a Format or its name"),
    (lambda: Conversion(32, fp32, 23, Rounding.RZ), TypeError, "name is a str"),  # type: ignore[arg-type]
    (fmt(8, 4.0, 3, 7, Specials.FN, None), TypeError, NO_NUMBER),
    (fmt(8, 4, 3, 7, 2, None), TypeError, "a Specials"),
    (fmt(8, 5, 3, 15, Specials.IEEE, None), ValueError, "9 to 64 bits of storage"),
    (fmt(80, 15, 64, 16383, Specials.IEEE, None), ValueError, "1 to 11 exponent bits"),
    (fmt(16, 5, 10, 129, Specials.IEEE, None), ValueError, "a bias"),
    (fmt(16, 5, 0, 15, Specials.IEEE, None), ValueError, "fraction bits"),
    (fmt(8, 8, 0, 127, Specials.IEEE, None, signed=False, has_zero=False), ValueError, "where there is no zero"),
    (fmt(8, 4, 3, 7, Specials.FNUZ, None, signed=False), ValueError, "a sign"),
    (fmt(8, 4, 3, 7, Specials.FN, np.dtype("uint16")), ValueError, "a NumPy dtype of 8 bits"),
    (lambda: DotAdd(8, fp16, fp16, fp32, fp32, 24), TypeError, "those of an algorithm"),  # type: ignore[arg-type]
    (lambda: Fda(24, 8, "RZ", None), ValueError, "no ρ named 'RZ'"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "told"), WRONG)
def test_what_is_wrong_is_refused_in_one_line(make: Callable[[], Any], error: type, told: str) -> None:
    with pytest.raises(error, match=told) as found:
        make()
    assert "\n" not in str(found.value)


def test_names_and_numpy_integers_are_fine() -> None:
    i = H.replace(F=np.int64(30), k=np.uint8(32), a_format="bf16", b_format="bf16", rho="RNE-FP32")
    j = H.replace(F=30, k=32, a_format=bf16, b_format=bf16, rho=CONVERSIONS["RNE-FP32"])
    assert i == j
    assert type(i.parameters["F"]) is int
    assert i.name == j.name == "HMMA.16816.F32[F=30][k=32][a_format=bf16][b_format=bf16][rho=RNE-FP32]"
    assert H.chained(np.int32(32)) == H.chained(32)
    assert GFDRDA.replace(cut="RZ") == GFDRDA.replace(cut=Rounding.RZ)
    assert LOWERED.replace(order=list(LOWERED.parameters["order"]), name=LOWERED.name).spec == LOWERED.spec
    assert Fda(24, 8, "RZ-FP32", None) == Fda(24, 8, CONVERSIONS["RZ-FP32"], None)  # type: ignore[arg-type]


def test_a_rounding_and_a_format_name_a_conversion() -> None:
    for rounding in DETERMINISTIC:
        for name, fmt in (("FP16", fp16), ("BF16", bf16), ("FP32", fp32), ("FP64", fp64)):
            rho = Conversion.named(f"{rounding.name}-{name}")
            assert (rho.format, rho.fraction_bits, rho.rounding) == (fmt, fmt.fraction_bits, rounding)
            assert Conversion.named(f"{rho.name}±0") == rho.with_signed_zero()
    for name, rho in CONVERSIONS.items():
        assert Conversion.named(name) is rho


def test_a_format_of_any_number_of_bits_has_a_word() -> None:
    words = {fmt.storage_bits: fmt.word.itemsize for fmt in FORMATS.values()}
    assert words == {4: 1, 6: 1, 8: 1, 16: 2, 32: 4, 64: 8}
    nine = Format("e5m3", 9, 5, 3, 15, Specials.IEEE, None)
    assert nine.word == np.uint16
    unit = cdna1["f32_16x16x16f16"].replace(a_format=nine, b_format=nine)
    one = nine.bias << 3
    assert int(unit.dot_add(np.full(16, one, np.uint16), np.full(16, one, np.uint16), 0)) == fp32.code("16")
