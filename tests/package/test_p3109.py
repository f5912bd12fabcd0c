"""The formats of IEEE P3109: every code of every one, by the interim report's own formula, and in both encodings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import z3

from mmaformal.cases.codes import is_infinite, is_nan, is_zero, opposite_code
from mmaformal.encodings.executable import blocks
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.formats import (
    FORMATS,
    P3109_FORMATS,
    Format,
    Specials,
    e4m3fnuz,
    e5m2fnuz,
    p3109,
)

EACH = pytest.mark.parametrize("fmt", P3109_FORMATS, ids=str)


def decoded(fmt: Format, code: int) -> Fraction | str:
    """ωDecode of the interim report (§4.7.2), from the name alone."""
    letters = fmt.name.removeprefix("binary")
    K, P, signed, extended = int(letters[0]), int(letters[2]), letters[3] == "s", letters[4] == "e"
    if signed and code > 2 ** (K - 1):
        x = decoded(fmt, code - 2 ** (K - 1))
        return f"-{x}" if isinstance(x, str) else -x
    if code == (2 ** (K - 1) if signed else 2**K - 1):
        return "nan"
    if extended and code == (2 ** (K - 1) - 1 if signed else 2**K - 2):
        return "inf"
    B = Fraction(2) ** (K - P - 1) if signed else Fraction(2) ** (K - P)
    field, T = divmod(code, 2 ** (P - 1))
    if field == 0:
        return Fraction(T) * Fraction(2) ** (1 - P) * Fraction(2) ** int(1 - B)
    return (1 + Fraction(T) * Fraction(2) ** (1 - P)) * Fraction(2) ** int(field - B)


def some_codes(fmt: Format) -> Iterator[int]:
    """All of six bits; of more, those near zero, infinities and NaNs, and where the exponent changes."""
    step = 1 if fmt.storage_bits <= 6 else 1 << max(fmt.fraction_bits, 4)
    near = {edge + d for edge in range(0, fmt.codes + 1, step) for d in (-3, -2, -1, 0, 1)}
    return iter(sorted(near & set(range(fmt.codes))))


def test_there_are_120_and_each_is_found_by_its_name() -> None:
    assert len({fmt.name for fmt in P3109_FORMATS}) == len(P3109_FORMATS) == 120
    for fmt in P3109_FORMATS:
        assert Format.named(fmt.name) is fmt is FORMATS[fmt.name]
        assert fmt.name in FORMATS
    assert not any(name.startswith("binary") for name in FORMATS), "the table lists none of the family"
    for name in ("binary8p8se", "binary8p0se", "binary9p3se", "binary2p1ue", "binary8p4", "Binary8p4se", ""):
        assert name not in FORMATS
        with pytest.raises(ValueError, match=r"no format .* of P3109"):
            Format.named(name)
        with pytest.raises(KeyError):
            FORMATS[name]
    with pytest.raises(ValueError, match="K = 3 … 8, P = 1 … K − 1"):
        p3109(8, 8)


@EACH
def test_every_code_is_the_datum_of_the_report(fmt: Format) -> None:
    codes = np.arange(fmt.codes)
    x = blocks.decode(codes, fmt.layout)
    facts = [np.asarray(each(codes.astype(np.uint64), fmt)) for each in (is_nan, is_infinite, is_zero)]
    for code in range(fmt.codes):
        wanted = decoded(fmt, code)
        kinds = wanted == "nan", wanted in ("inf", "-inf"), wanted == 0
        assert (fmt.is_nan(code), fmt.is_infinite(code), code == 0) == kinds
        assert (x.nan[code], x.infinite[code]) == kinds[:2]
        assert tuple(fact[code] for fact in facts) == kinds
        assert fmt.code(fmt.text(code)) == code
        if isinstance(wanted, Fraction):
            places = int(x.exponent[code]) - fmt.fraction_bits
            magnitude = int(x.significand[code]) * Fraction(2) ** places
            assert fmt.value(code) == wanted == (-1) ** int(x.sign[code]) * magnitude
        else:
            assert fmt.text(code) == wanted
            assert x.sign[code] == (wanted == "-inf") or wanted == "nan"
            assert x.significand[code] or wanted == "nan", "∞ · 0 is told by significands"


@EACH
def test_both_encodings_decode_alike(fmt: Format) -> None:
    term = z3.BitVec("code", fmt.storage_bits)
    tuple_ = smt_blocks.decode(term, fmt)
    for code in some_codes(fmt):
        mine = blocks.decode(code, fmt.layout)
        given = (term, z3.BitVecVal(code, fmt.storage_bits))
        other = [z3.simplify(z3.substitute(part, given)) for part in tuple_]
        sign, field, significand = (part.as_long() for part in other[:3])
        assert (sign, field - fmt.bias, significand) == (mine.sign, mine.exponent, mine.significand)
        assert (z3.is_true(other[3]), z3.is_true(other[4])) == (mine.infinite, mine.nan)


@EACH
def test_codes_are_in_order_and_have_opposites(fmt: Format) -> None:
    numbers = [fmt.value(code) for code in range(fmt.codes) if fmt.is_finite(code)]
    assert len(set(numbers)) == len(numbers), "no number has two codes, zero neither"
    magnitudes = [fmt.value(code) for code in range(fmt.largest + 1)]
    assert magnitudes == sorted(magnitudes)
    assert magnitudes[-1] == max(numbers)
    assert fmt.max_exponent == len(bin(int(magnitudes[-1] * 2**200))) - 203
    assert fmt.infinity == (fmt.largest + 1 if fmt.name.endswith("e") else None)
    assert fmt.codes - len(numbers) == 1 + fmt.name.endswith("e") * (1 + fmt.signed), (
        "one NaN, an infinity a sign"
    )
    nan = fmt.one_nan
    assert nan is not None
    assert fmt.is_nan(nan)
    assert nan == fmt.code("nan")
    for code in range(fmt.codes) if fmt.signed else ():
        if fmt.is_finite(code):
            assert fmt.value(opposite_code(code, fmt)) == -fmt.value(code)


#: the largest number, the least, and the code of 1, as the tables of values print them (P3109/Public, June 2026)
PRINTED = {
    "binary8p1se": ("0x1p62", "0x1p-63", 0x40),
    "binary8p3se": ("0x1.8p15", "0x1p-17", 0x40),
    "binary8p4se": ("0x1.cp7", "0x1p-10", 0x40),
    "binary8p4sf": ("0x1.ep7", "0x1p-10", 0x40),
    "binary8p4ue": ("0x1.ap15", "0x1p-18", 0x80),
    "binary8p8uf": ("0x1.fcp0", "0x1p-7", 0x80),
    "binary6p3uf": ("0x1.8p7", "0x1p-9", 0x20),
    "binary4p3sf": ("0x1.cp0", "0x1p-2", 0x4),
    "binary3p1se": ("0x1p0", "0x1p-1", 0x2),
    "binary3p2ue": ("0x1.8p0", "0x1p-2", 0x4),
    "binary3p3ue": ("0x1.4p0", "0x1p-2", 0x4),
}


#: by K: SHA-256 (its first half) of the lines "name datum datum …" of the working group's own tables of values, in the
#: order of `P3109_FORMATS`: github.com/P3109/Public, "Value Tables/Hexadecimal", commit 26df0d04 of 28 June 2026;
#: numbers as Python's float.hex writes them.  gfloat 0.5.2 (`format_info_p3109`, `decode_float`) gives the same.
DIGESTS = {
    3: "a992646b32979f3839319ced64264d09",
    4: "450594294ce2a4095cdc3e01bccf29ea",
    5: "f705f9b0686e2c132dac007bf9f04f5e",
    6: "a2059b4cd5bac88d677a2d91951a5922",
    7: "de61af439f6515507ad531a0a5ab636a",
    8: "e38311105e7bcb4eebc320466399785a",
}


@pytest.mark.parametrize("K", DIGESTS)
def test_every_value_is_the_published_table_s(K: int) -> None:
    """All 13,296 values of 120 tables."""
    lines = hashlib.sha256()
    for fmt in P3109_FORMATS:
        if fmt.storage_bits == K:
            data = (
                float(fmt.value(code)).hex() if fmt.is_finite(code) else fmt.text(code)
                for code in range(fmt.codes)
            )
            lines.update(f"{fmt.name} {' '.join(data)}\n".encode())
    assert lines.hexdigest().startswith(DIGESTS[K])


@pytest.mark.parametrize("name", PRINTED)
def test_numbers_of_the_published_tables(name: str) -> None:
    fmt, (largest, least, one) = FORMATS[name], PRINTED[name]
    assert (fmt.code(largest), fmt.code(least), fmt.code("1")) == (fmt.largest, 1, one)


def test_the_report_s_examples() -> None:
    """§3.1, note 2: 2.0 is 0x48 in Binary8p4se, and infinity 0x7F."""
    fmt = FORMATS["binary8p4se"]
    assert (fmt.code("2"), fmt.code("inf"), fmt.code("nan"), fmt.code("-inf")) == (0x48, 0x7F, 0x80, 0xFF)
    with pytest.raises(ValueError, match="no −∞"):
        FORMATS["binary8p4ue"].code("-inf")


@pytest.mark.parametrize(("mine", "other"), [("binary8p4sf", e4m3fnuz), ("binary8p3sf", e5m2fnuz)])
def test_finite_signed_formats_are_the_fnuz_ones(mine: str, other: Format) -> None:
    fmt = FORMATS[mine]
    assert fmt.layout == other.layout
    assert fmt.specials is Specials.FNUZ
