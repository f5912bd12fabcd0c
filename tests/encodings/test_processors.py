"""Units of processors but TDPBF16PS (test_pfma): against exact arithmetic, against recordings, and what is proved."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processors import fma, half_fma, odd_pair, some_code
from support.recorded import PROCESSORS, SHARED

from mmaformal import armv8_6, sapphire_rapids
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import both_results
from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import prove
from mmaformal.queries.verify import verify
from mmaformal.recordings import read
from mmaformal.rounding import RZ_FP32, Conversion, NanRule
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd, Parameters

VDP, HALF = sapphire_rapids["VDPBF16PS"], sapphire_rapids["VFMADD231PH"]
DOT, MATRIX = armv8_6["BFDOT"], armv8_6["BFMMLA"]
UNITS = (VDP, HALF, DOT, MATRIX)

one_of_each = pytest.mark.parametrize("i", UNITS, ids=lambda i: i.name)


def both(i: Instruction, a: list[int], b: list[int], c: int) -> int:
    """The code of d in both encodings, which have to agree."""
    ((mine, other),) = both_results(i.spec, Rows.of([Codes(tuple(a), tuple(b), c)]))
    assert mine == other
    return mine


# ---- in exact arithmetic -----------------------------------------------------------------------------------------


def pair_of_fma(a: list[int], b: list[int], c: int) -> int:
    return fma(a[0], b[0], fma(a[1], b[1], c))


def two_pairs(a: list[int], b: list[int], c: int) -> int:
    return odd_pair(a[2:], b[2:], odd_pair(a[:2], b[:2], c))


def one_half(a: list[int], b: list[int], c: int) -> int:
    return half_fma(a[0], b[0], c)


REFERENCES = {"VDPBF16PS": pair_of_fma, "VFMADD231PH": one_half, "BFDOT": odd_pair, "BFMMLA": two_pairs}


def some_cases(i: Instruction, count: int) -> Iterator[Codes]:
    """About one exponent each, so that terms meet; near both ends of the range, too."""
    rng, fmt, d = random.Random(i.name), i.a_format, i.d_format
    low, high, least = fmt.min_exponent, fmt.max_exponent, d.min_exponent
    for _ in range(count):
        e = rng.choice((0, least, least - 1, d.max_exponent, rng.randint(least - 24, d.max_exponent + 2)))
        e = min(max(e, 2 * low), 2 * high)
        a, b = [], []
        for _ in range(i.k):
            e_a = rng.randint(max(low, e - high), min(high, e - low))
            a.append(some_code(rng, fmt, e_a))
            b.append(some_code(rng, fmt, e - e_a))
        if rng.random() < 0.5:  # cancelling, for sums that are small beside what they are made of
            a[-1], b[-1] = a[0] ^ fmt.sign_mask, b[0] ^ rng.choice((0, 1))
        yield Codes(tuple(a), tuple(b), some_code(rng, i.c_format, e))


@one_of_each
def test_both_encodings_are_the_reference(i: Instruction) -> None:
    cases = list(some_cases(i, 2000))
    for case, pair in zip(cases, both_results(i.spec, Rows.of(cases)), strict=True):
        wanted = REFERENCES[i.name](list(case.a), list(case.b), case.c)
        assert pair == (wanted, wanted), case


def test_the_odd_product_of_vdpbf16ps_comes_first() -> None:
    """1 + 2^-24 is 1, a tie to even; 2^-24 and then 2^-24 are 1 + 2^-23, if they meet first."""
    half, one = bf16.code("0x1p-12"), bf16.code("1")
    tiny = bf16.code("0x1p-24")
    assert both(VDP, [half, one], [half, tiny], fp32.code("1")) == fp32.code("1")
    assert both(VDP, [half, one], [half, one], 0) == fp32.code("1")  # 1, then 2^-24
    assert both(VDP, [one, half], [one, half], fp32.code("0x1p-24")) == fp32.code("0x1.000002p+0")


def test_nans_of_vdpbf16ps_and_vfmadd231ph() -> None:
    one = 0x3F80
    assert (
        both(VDP, [0x7F81, 0xFFC2], [one, one], 0) == 0x7FC10000
    )  # a_0 of the last fma, before what was so far
    assert both(VDP, [one, 0xFFC2], [one, 0x7F81], 0x7FC00003) == 0xFFC20000
    assert both(VDP, [one, one], [one, one], 0x7F800003) == 0x7FC00003
    assert both(VDP, [0x7F80, 0], [1, 0], 0) == 0xFFC00000  # a subnormal is zero
    assert both(HALF, [0x7C01], [0xFE02], 0x7E03) == 0x7E01
    assert both(HALF, [0x3C00], [0xFC02], 0x7E03) == 0xFE02
    assert both(HALF, [0x3C00], [0x3C00], 0xFC03) == 0xFE03
    assert both(HALF, [0x7C00], [0], 0x3C00) == both(HALF, [0x7C00], [0x3C00], 0xFC00) == 0xFE00


def test_rounding_to_odd() -> None:
    one, small = bf16.code("1"), bf16.code("0x1p-30")
    assert both(DOT, [one, small], [one, one], 0) == fp32.code("0x1.000002p+0")
    assert both(DOT, [one, small ^ 0x8000], [one, one], 0) == fp32.code("0x1.fffffep-1")  # odd as it is
    assert both(DOT, [0x7F00, 0], [0x3F80, 0], 0x7EFFFFFF) == 0x7F7FFFFF  # 2^127 + 2^127 − 2^103: no overflow
    assert both(DOT, [0x7F00, 0], [0x3F80, 0], 0x7F000000) == 0x7F800000
    assert both(DOT, [0x7FFF, 0], [one, 0], 0) == both(DOT, [0x7F80, 0], [1, 0], 0) == 0x7FC00000
    assert (
        both(DOT, [0x8080, 0], [0x3F00, 0], 0x80000000) == 0
    )  # a tiny product is −0, but the other one is +0
    assert both(DOT, [0, 0], [0x8000, 0x8000], 0x80000001) == 0x80000000


@pytest.mark.skipif(not PROCESSORS, reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize(
    "path", [path for path in PROCESSORS if "tdp" not in path.stem], ids=lambda path: path.stem
)
def test_the_smt_encoding_is_what_was_recorded(path: Path) -> None:
    """All rows; which NaN it is, too.  tests/recordings has them in the executable encoding."""
    assert path.is_relative_to(SHARED)
    rows = read(path).load()
    i = next(i for i in UNITS if i.name.lower() in path.stem)
    columns = zip(rows.a.tolist(), rows.b.tolist(), rows.c.tolist(), strict=True)
    found = both_results(i.spec, Rows.of([Codes(tuple(a), tuple(b), c) for a, b, c in columns]))
    assert [x for _, x in found] == [x for x, _ in found] == rows.d.tolist()
    assert sum(i.d_format.is_nan(int(d)) for d in rows.d) > 40


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: DotAdd(2, fp16, bf16, fp32, fp32, Ffma()), "ffma needs a and b of bf16"),
        (lambda: DotAdd(2, bf16, bf16, fp16, fp16, Ffma()), "ffma needs c and d of fp32"),
        (lambda: DotAdd(2, bf16, fp16, fp32, fp32, Oddsum("RO-FP32±0")), "oddsum needs a and b of bf16"),
        (lambda: DotAdd(2, bf16, bf16, fp32, fp32, Oddsum(RZ_FP32)), "the sign of zero"),
        (lambda: DotAdd(2, bf16, bf16, fp32, fp32, Oddsum("RNE-FP32±0")), "RO or RZ"),
        (lambda: DotAdd(3, bf16, bf16, fp32, fp32, Oddsum("RO-FP32±0")), "multiple of the 2 products"),
        (lambda: HALF.replace(nan="INDEFINITE"), "sfma needs another NaN"),
        (lambda: HALF.replace(nan="LAST"), "no rule 'LAST'; there are ANY, DEFAULT, INDEFINITE, FIRST"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


def test_parameters_are_told_and_may_be_given_by_name() -> None:
    assert HALF.parameters.describe() == "ρ=IEEE-FP16 nan=FIRST"
    assert HALF.replace(nan="ANY").spec.nan_is_canonical is False
    assert HALF.replace(nan="DEFAULT").parameters["nan"] is NanRule.DEFAULT
    assert DOT.parameters == Oddsum(Conversion.named("RO-FP32±0"))
    with pytest.raises(TypeError, match="nan is a NanRule or its name"):
        HALF.replace(nan=1)
    assert isinstance(VDP.parameters, Parameters)


def test_a_tile_is_configured_for_fewer_products() -> None:
    tile = sapphire_rapids["TDPBF16PS"]
    small = sapphire_rapids["tdpbf16ps.k6"]
    assert (small.name, small.k, small.parameters["L"]) == ("TDPBF16PS.K6", 6, 6)
    assert small == tile.configured(6)
    assert tile.configured(32) is tile is sapphire_rapids["TDPBF16PS"]
    for name in ("TDPBF16PS.K7", "TDPBF16PS.K0", "TDPBF16PS.K34", "VDPBF16PS.K4", "TDPBF16PS.K"):
        assert name not in sapphire_rapids
    with pytest.raises(ValueError, match="cannot be configured for K = 7: its K is 2, 4, 6"):
        tile.configured(7)
    with pytest.raises(ValueError, match="its K is fixed"):
        VDP.configured(4)


# ---- proofs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "i", [HALF, VDP, *(pytest.param(i, marks=pytest.mark.slow) for i in (DOT, MATRIX))], ids=str
)
def test_both_encodings_are_proved_equal(i: Instruction) -> None:
    assert isinstance(verify(i, timeout=600), Holds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "i",
    [HALF.replace(rho="IEEE-FP32", a_format=fp32, b_format=fp32, c_format=fp32, d_format=fp32), HALF.replace(k=2),
     HALF.replace(nan="DEFAULT"), VDP.replace(k=4), DOT.replace(rho="RZ-FP32±0")],
    ids=str,
)  # fmt: skip
def test_both_encodings_of_others_of_their_kind_are_proved_equal(i: Instruction) -> None:
    assert isinstance(verify(i, timeout=600), Holds)


#: of order-independence, … (queries/properties.py), which hold; of each unit
HOLDS = {
    "order-independence": UNITS,
    "order-independence-across-blocks": (HALF, DOT),
    "commutativity": UNITS,
    "sign-symmetry": UNITS,
    "zero-padding": UNITS,
    "power-of-two-scaling": (HALF,),
    "no-nan-from-finite": (VDP, HALF),
    "never-minus-zero": (),
    "every-number": (HALF,),
    "accumulator-width": UNITS,
    "monotonicity-in-c": UNITS,
    "monotonicity-in-a-product": (HALF,),
    "exactness": UNITS,
    "error-bound": (HALF,),
    "lossless-width": (HALF,),
    "correct-rounding": (HALF,),
    "faithful-rounding": (HALF,),
    "correct-rounding-of-each-step": (HALF,),
}
#: the least of a kind, of which each takes a second or two
QUICK = {
    ("commutativity", "VDPBF16PS"),
    ("monotonicity-in-a-product", "BFDOT"),
    ("error-bound", "VDPBF16PS"),
    ("correct-rounding", "BFDOT"),
}


def _properties() -> Iterator[object]:
    for name, units in HOLDS.items():
        for i in UNITS:
            marks = () if (name, i.name) in QUICK else pytest.mark.slow
            yield pytest.param(name, i, i in units, id=f"{name} {i.name}", marks=marks)


@pytest.mark.parametrize(("name", "i", "holds"), list(_properties()))
def test_every_property_is_settled(name: str, i: Instruction, holds: bool) -> None:
    answer = prove(name, i, timeout=300 if holds else 30)
    assert isinstance(answer, Holds if holds else Fails), answer
