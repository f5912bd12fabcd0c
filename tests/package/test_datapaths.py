"""Datapaths as data: NVIDIA's are points of the space, each computes what it says, names lead back to it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import exact
from support.slow import slow

from mmaformal import ARCHITECTURES, Equal, find_difference, matmul
from mmaformal.architectures import UnknownInstructionError, datapaths
from mmaformal.encodings import executable
from mmaformal.encodings.muladd import smt as smt_muladd
from mmaformal.encodings.smt import stages
from mmaformal.formats import FORMATS, Format, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.limits import most_places
from mmaformal.listing import instruction_in_words
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Fails, Holds

#: a point of each kind, with narrow formats and ways to cut
POINTS = [
    "mul_add(k=2)",
    "mul_add(k=3,a=bf16,product=RNE-E8M7,rho=RD-FP32)",
    "mul_add(k=2,a=e4m3,b=e5m2,rho=RNE-FP16)",
    "mul_add(k=1,a=fp32)",
    "fma(k=2,a=e4m3)",
    "fma(k=2,a=tf32)",
    "fma(k=2,a=fp32,rho=RZ-FP32)",
    "fda(k=4,frac_bits=12)",
    "fda(k=4,frac_bits=12,cut=RO)",
    "fda(k=2,frac_bits=30,cut=RO,a=fp32)",
    "fda(k=2,frac_bits=20,a=bf16,cut=RO,rho=RNE-BF16,chain=2)",
    "fda(k=4,frac_bits=11,a=e4m3,b=e5m2,cut=RO,scale=ue8m0,block=4)",
    "fda(k=4,frac_bits=56)",
    "fda(k=1,frac_bits=58,a=fp32,cut=RO)",
    "sda(k=16,frac_bits=54,a=e4m3)",
    "sda(k=4,frac_bits=12)",
    "sda(k=4,frac_bits=9,a=e4m3,b=e5m2,cut=RO)",
    "sda(k=4,frac_bits=20,a=e5m2,step=2,operands=fp16,order=0.2.1.3,rho=IEEE-FP16,dot=RNE-FP16)",
    "gfda(k=8,group=4,frac_bits=20,scale=ue4m3,block=4)",
    "gfda(k=8,group=4,frac_bits=12,a=e4m3,b=e3m2)",
    "gfda(k=4,group=2,frac_bits=9,a=fp16,group_bits=14,cut=RO)",
    "gfda(k=6,group=3,frac_bits=20,a=bf16,rho=RZ-FP32,e_zero=fields)",
]


def codes(fmt: Format) -> st.SearchStrategy[int]:
    """Codes of a format, half of them of numbers near 1."""
    near = st.builds(
        lambda e, m, s: (
            (((fmt.bias + e) << fmt.fraction_bits | m) << fmt.ignored_low_bits) % fmt.sign_mask
            | s * fmt.sign_mask
        ),
        st.integers(-12, 12).map(lambda e: max(e, -fmt.bias)),
        st.integers(0, (1 << fmt.fraction_bits) - 1),
        st.integers(0, 1),
    )
    return st.one_of(near, st.integers(0, fmt.codes - 1))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Instruction, list[int], list[int], int, list[list[int]]]:
    i = datapaths.named(draw(st.sampled_from(POINTS)))
    a, b = (draw(st.lists(codes(fmt), min_size=i.k, max_size=i.k)) for fmt in (i.a_format, i.b_format))
    scales = [
        draw(st.lists(st.integers(60, 70), min_size=i.spec.scales, max_size=i.spec.scales))
        for _ in range(2 if i.spec.scale_format else 0)
    ]
    return i, a, b, draw(codes(i.c_format)), scales


@given(cases())
@settings(max_examples=80, deadline=None)
def test_a_point_computes_what_exact_arithmetic_says(
    case: tuple[Instruction, list[int], list[int], int, list[list[int]]],
) -> None:
    i, a, b, c, scales = case
    expected = exact.dot_add(i.spec, a, b, c, *scales)
    words = [np.array(x, f.word) for x, f in ((a, i.a_format), (b, i.b_format))]
    more = [np.array(x, np.uint8) for x in scales]
    assert int(i.dot_add(*words, i.c_format.word.type(c), *more)) == expected


@pytest.mark.parametrize("text", POINTS)
def test_a_name_leads_back(text: str) -> None:
    i = datapaths.named(text)
    assert datapaths.named(i.name) == i
    assert ARCHITECTURES["datapath"][f" {text} "] == i
    assert datapaths.point_of(i).spec == i.spec


@pytest.mark.parametrize(
    "architecture", ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell"]
)
def test_every_path_of_nvidia_is_a_point(architecture: str) -> None:
    for i in ARCHITECTURES[architecture]:
        assert datapaths.point_of(i).spec == i.spec, i.label


@pytest.mark.parametrize(("products", "F"), [(1, 58), (2, 57), (4, 56), (16, 54), (64, 52), (1 << 12, 46)])
def test_a_sum_has_as_many_bits_as_a_lane_holds(products: int, F: int) -> None:
    """The largest sum there is, on Python's integers and on NumPy's; with a bit more there is no such unit."""
    assert most_places(products) == F
    i = datapaths.fda(k=products, frac_bits=F, a="fp32", rho="RU-FP32")
    largest = (2 - Fraction(1, 1 << 23)) * Fraction(2) ** 60
    x, y = (fp32.code(str(largest / Fraction(2) ** 30)), fp32.code(str(largest / Fraction(2) ** 30)))
    a, b, c = [x] * products, [y] * products, fp32.code(str(largest))
    expected = exact.dot_add(i.spec, a, b, c)
    assert executable.dot_add(i.spec, a, b, c).result == expected
    rows = [np.array([side], np.uint32) for side in (a, b)]
    assert int(i.dot_add(*rows, np.array([c], np.uint32))[0]) == expected
    with pytest.raises(ValueError, match=f"1 ≤ F ≤ {F} for L = {products}"):
        datapaths.fda(k=products, frac_bits=F + 1)


def test_points_that_are_spelled_out() -> None:
    spelled = {
        ("hopper", "HMMA.16816.F32"): "fda(k=16, frac_bits=25, rho=RZ-FP32, e_zero=-133)",
        ("hopper", "QGMMA.64x8x32.F32.E4M3.E4M3"): "fda(k=32,frac_bits=13,a=e4m3,rho=RZ-E8M13,e_zero=-133)",
        ("blackwell", "UTCQMMA.F32.E4M3.E5M2"): "fda(k=32,frac_bits=25,a=e4m3,b=e5m2,rho=RZ-FP32,e_zero=-133)",
        ("blackwell", "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"):
            "gfda(k=64,group=16,frac_bits=35,rho=RZ-FP32,e_zero=-139,scale=ue4m3,block=16)",
        ("ampere", "HMMA.16816.F32"): "fda(k=8,frac_bits=24,rho=RZ-FP32,e_zero=-132,chain=2)",
    }  # fmt: skip
    for (architecture, name), text in spelled.items():
        assert datapaths.named(text).spec == ARCHITECTURES[architecture][name].spec
    hopper = ARCHITECTURES["hopper"]["HMMA.16816.F32"]
    assert isinstance(find_difference(hopper, datapaths.named(spelled["hopper", hopper.name])), Equal)


def test_the_space_is_found_and_not_listed() -> None:
    assert "datapath" in ARCHITECTURES
    assert "datapath" not in list(ARCHITECTURES)
    space = ARCHITECTURES["datapath"]
    assert {each.name.partition("(")[0] for each in space} == set(datapaths.KINDS)
    assert all(space[each.name] == each for each in space)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fda(k=16)", "frac_bits missing"),
        ("fda(k=16,frac_bits=20,width=3)", "'width=3' is no argument of fda("),
        ("fda(k=16,k=8,frac_bits=20)", "k is given twice"),
        ("fdb(k=16)", "no datapath 'fdb(k=16)': mul_add, pair_add, fma, "),
        ("fda(k=16,frac_bits=20,a=fp17)", "fp17"),
        ("fda(k=16,frac_bits=20,cut=RNE)", "cut RZ or RO, not RNE"),
        ("fda(k=16,frac_bits=99)", "1 ≤ F ≤ 54 for L = 16"),
        ("fda(k=two,frac_bits=20)", "two"),
        ("fma(k=2,a=fp64,b=fp32)", "products of at most 48 bits, or of fp64"),
        ("mul_add(k=1,a=fp64)", "48 bits"),
    ],
)
def test_what_is_no_datapath_is_told(text: str, told: str) -> None:
    with pytest.raises(UnknownInstructionError) as caught:
        ARCHITECTURES["datapath"][text]
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert text not in ARCHITECTURES["datapath"]


@pytest.mark.parametrize("text", POINTS)
def test_a_point_is_shown_in_words(text: str) -> None:
    words = instruction_in_words(datapaths.named(text))
    assert "TensorGauge" in words or text.startswith(("fma", "mul_add", "pair_add"))
    assert "no source recorded" not in words


# ---- laws ------------------------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_separated_sum_does_not_depend_on_c(data: st.DataObject) -> None:
    i = datapaths.sda(k=3, frac_bits=10)
    a, b = (data.draw(st.lists(codes(fp16), min_size=3, max_size=3)) for _ in "ab")
    c = data.draw(codes(fp32))
    dot = exact.dot_add(i.spec, a, b, 0x80000000)
    one = datapaths.fma(k=1, a="fp32")
    assert (
        exact.dot_add(i.spec, a, b, c) == exact.dot_add(one.spec, [dot], [0x3F800000], c)
        or exact.read(exact.dot_add(i.spec, a, b, c), fp32).special == exact.NAN
    )


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_to_odd_is_within_a_place_of_one_toward_zero(data: st.DataObject) -> None:
    """A place of each term; and the same where nothing is cut off."""
    a, b = (data.draw(st.lists(codes(FORMATS["e2m1"]), min_size=4, max_size=4)) for _ in "ab")
    for frac_bits in (4, 16):
        zero, odd = (datapaths.fda(k=4, frac_bits=frac_bits, a="e2m1", cut=cut) for cut in ("RZ", "RO"))
        x, y = (
            fp32.value(int(i.dot_add(np.array(a, np.uint8), np.array(b, np.uint8), np.uint32(0))))
            for i in (zero, odd)
        )
        assert x == y if frac_bits == 16 else abs(x - y) <= 4


def test_swamping_of_figure_2() -> None:
    """2^13 and −2^13 cancel; of the small term nothing is left toward zero, and a place of the sum cut to odd."""
    a, b = (
        np.array(x, np.float16).view(np.uint16) for x in ([2**7, -(2**7), 2**-6, 0], [2**6, 2**6, 2**-6, 0])
    )
    results = {
        cut: float(fp32.value(int(datapaths.fda(k=4, frac_bits=20, cut=cut).dot_add(a, b, np.uint32(0)))))
        for cut in ("RZ", "RO")
    }
    assert results == {"RZ": 0.0, "RO": 2.0**13 * 2**-20}
    assert float(fp32.value(int(datapaths.fda(k=4, frac_bits=25).dot_add(a, b, np.uint32(0))))) == 2.0**-12


@pytest.mark.parametrize(
    "text",
    slow(
        ["mul_add(k=8,product=RZ-E8M9)", "fda(k=8,frac_bits=14,cut=RO)", "sda(k=8,frac_bits=14)"],
        ["fda(k=8,frac_bits=14,cut=RO)", "sda(k=8,frac_bits=14)"],
    ),
)
def test_matmul_takes_a_datapath(text: str) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(3, 40)).astype(np.float16), rng.normal(size=(40, 5)).astype(np.float16)
    i = datapaths.named(text)
    d, each = matmul(a, b, instruction=i), i.chained(40)
    for m in range(3):
        for n in range(5):
            assert d[m, n] == each.dot_add(a[m], b[:, n].copy(), np.float32(0))


# ---- proofs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["fda(k=2,frac_bits=8,a=e4m3,cut=RO)", "mul_add(k=1,a=e4m3,rho=RNE-FP16)"])
def test_both_encodings_agree(text: str) -> None:
    assert isinstance(verify(datapaths.named(text), timeout=60), Holds)


@pytest.mark.slow
@pytest.mark.parametrize("text", [each for each in POINTS if "fma" not in each])
def test_both_encodings_of_every_point_agree(text: str) -> None:
    assert isinstance(verify(datapaths.named(text), timeout=120), Holds)


def test_a_proof_of_sticky_places_notices_an_encoding_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "align_sticky", stages.align)
    assert isinstance(verify(datapaths.named("fda(k=2,frac_bits=8,a=e4m3,cut=RO)"), timeout=30), Fails)


def test_a_proof_of_muladd_notices_products_that_are_not_rounded_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = smt_muladd.rounded_product

    def as_sums(spec: Any, pi: Any, *operands: Any) -> Any:
        return real(spec, spec.parameters.rho, *operands)

    monkeypatch.setattr(smt_muladd, "rounded_product", as_sums)
    i = datapaths.named("mul_add(k=1,a=bf16,product=RNE-E8M7)")
    assert isinstance(verify(i, timeout=30), Fails)
