"""pfma (Intel AMX): against exact arithmetic, against the processor, and what is proved of it.

The recordings are of a processor; tests/recordings/test_recordings.py has all rows in the executable encoding.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest
from support.processors import add, fma, some_code
from support.recorded import SHARED

from mmaformal import sapphire_rapids
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import SmtEncoding, both_results, results
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.pfma import executable as pfma
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries.elimination import RecordedRows, types_of_recording
from mmaformal.queries.properties import prove
from mmaformal.queries.verify import verify
from mmaformal.recordings import read
from mmaformal.rounding import Tininess
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.spec import DotAdd

TDP = sapphire_rapids["TDPBF16PS"]
RECORDING = SHARED / "processors" / "emr_tdpbf16ps.npz"


def unit(K: int, L: int | None = None) -> Instruction:
    return TDP.replace(k=K, L=L or K)


smt_encoding = cache(SmtEncoding)  #: its terms are made once


def both(instruction: Instruction, a: list[int], b: list[int], c: int) -> int:
    """The code of d in both encodings, which have to agree."""
    rows = Rows.of([Codes(tuple(a), tuple(b), c)])
    (mine,), (other,) = (
        results(instruction.spec, rows.codes).tolist(),
        smt_encoding(instruction.spec).results(rows),
    )
    assert mine == other
    return int(mine)


# ---- a reference in exact arithmetic -----------------------------------------------------------------------------


def reference(L: int, a: list[int], b: list[int], c: int, before: bool = False) -> int:
    for start in range(0, len(a), L):
        sums = [0, 0]
        for k in range(start, start + L):
            sums[k % 2] = fma(a[k], b[k], sums[k % 2], before=before)
        c = add(c, add(*sums))
    return c


def some_cases(K: int, count: int, seed: int) -> Iterator[Codes]:
    rng = random.Random(seed)
    for _ in range(count):
        e = rng.choice((0, -126, -127, -125, 127, rng.randint(-150, 130)))
        a, b = [], []
        for _ in range(K):
            e_a = rng.randint(max(-126, e - 127), min(127, e + 126))
            a.append(some_code(rng, bf16, e_a))
            b.append(some_code(rng, bf16, e - e_a))
        if K > 2 and rng.random() < 0.5:  # cancelling, for sums that are small beside what they are made of
            a[2], b[2] = a[0] ^ 0x8000, b[0] ^ rng.choice((0, 1))
        yield Codes(tuple(a), tuple(b), some_code(rng, fp32, e))


@pytest.mark.parametrize("tiny", Tininess)
@pytest.mark.parametrize(
    ("K", "L", "count"),
    [
        (2, 2, 1500),
        (4, 4, 1500),
        (6, 2, 500),
        (32, 32, 100),
        pytest.param(6, 2, 1500, marks=pytest.mark.slow),
        pytest.param(32, 32, 1500, marks=pytest.mark.slow),
    ],
)
def test_both_encodings_are_the_reference(K: int, L: int, count: int, tiny: Tininess) -> None:
    cases = list(some_cases(K, count, K))
    spec = unit(K, L).spec.replace(tiny=tiny)
    for case, pair in zip(cases, both_results(spec, Rows.of(cases)), strict=True):
        wanted = reference(L, list(case.a), list(case.b), case.c, tiny is Tininess.BEFORE)
        assert pair == (wanted, wanted), case


@pytest.mark.parametrize(
    ("tiny", "wanted"), [("AFTER", [1, 1, 1, 0, 0, 0, 0]), ("BEFORE", [1, 0, 0, 0, 0, 0, 0])]
)
def test_tiny_is_what_is_below_the_least_normal_number(tiny: str, wanted: list[int]) -> None:
    """Rounded to a multiple of 2^-149, as fp32's subnormals are, 2^-126 − 3·2^-152 and − 4·2^-152 would be 2^-126."""
    u = unit(4).replace(tiny=tiny)

    def nearly(parts: int) -> int:
        """2^-126·1, and −parts·2^-26 times 2^-126."""
        a = [0x0080, 0, bf16.code(f"-0x{parts:x}p-26"), 0]
        return both(u, a, [0x3F80, 0, 0x0080, 0], 0)

    assert [nearly(parts) for parts in (0, 1, 2, 3, 4, 8, 16)] == [x * 0x00800000 for x in wanted]


@pytest.mark.slow
def test_a_unit_that_flushes_what_is_tiny_before_rounding_is_proved_too() -> None:
    assert isinstance(verify(sapphire_rapids["VDPBF16PS"].replace(tiny="BEFORE")), Holds)


def test_the_proof_needs_both_encodings_to_flush_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pfma, "tiny_before", lambda spec: False)
    found = verify(sapphire_rapids["VDPBF16PS"].replace(tiny="BEFORE"), timeout=10)
    assert isinstance(found, Fails | Unknown)


@pytest.mark.skipif(not RECORDING.exists(), reason="no ../shared/recordings beside this checkout")
def test_recorded_rows_decide_when_a_result_is_tiny() -> None:
    recording = read(RECORDING)
    rows = RecordedRows.of(recording.load(), types_of_recording(recording), recording.terms)
    assert not rows.differ(TDP.spec).any()
    assert rows.differ(TDP.spec.replace(tiny=Tininess.BEFORE)).sum() == 156


def test_zeros_and_nans() -> None:
    u, one = unit(2), 0x3F80
    minus = 0x80000000
    assert both(u, [0, 0], [0, 0], minus) == 0  # the sums start at +0
    assert both(u, [1, 0], [one, 0], 0x3F800000) == 0x3F800000  # a subnormal factor is zero
    assert both(u, [0, 0], [0, 0], 0x80000001) == 0
    assert both(u, [0x0080, 0], [0x8080, 0], minus) == 0  # a tiny product is −0, the other sum +0
    assert both(u, [0x7F81, 0], [0xFFC2, 0], 0x7FC00003) == 0x7FC00003  # c before the sums
    assert both(u, [0x7F81, 0], [0xFFC2, 0], 0) == 0x7FC10000  # a before b, made quiet
    assert both(u, [0, 0xFFC2], [0, one], 0) == 0xFFC20000
    assert both(u, [0x7F81, 0xFFC2], [one, one], 0) == 0x7FC10000  # t_0 before t_1
    assert both(u, [1, 0], [0x7F80, 0], 0) == 0xFFC00000  # a subnormal times infinity
    assert both(u, [0x7F80, 0xFF80], [one, one], 0) == 0xFFC00000
    assert both(unit(4), [0, 0, 0x7F85, 0], [0x7F80, 0, one, 0], 0) == 0x7FC50000  # a before the addend


@pytest.mark.skipif(not RECORDING.exists(), reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize("each", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_the_smt_encoding_is_the_processor(each: int) -> None:
    """Each of so many rows; which NaN it is, too."""
    rows = read(RECORDING).load()
    a, b, c, d = (codes[::each].tolist() for codes in (rows.a, rows.b, rows.c, rows.d))
    columns = zip(a, b, c, strict=True)
    found = both_results(TDP.spec, Rows.of([Codes(tuple(a), tuple(b), c) for a, b, c in columns]))
    assert [x for _, x in found] == [x for x, _ in found] == d
    assert sum(map(fp32.is_nan, d)) > 500 // each


def test_other_types_and_odd_steps_are_refused() -> None:
    for a, c, p in ((fp16, fp32, 2), (bf16, fp16, 2), (bf16, fp32, 3), (bf16, fp32, 0)):
        with pytest.raises(ValueError, match="pfma needs"):
            DotAdd(6, a, bf16, c, c, Pfma(p))
    with pytest.raises(ValueError, match="multiple of the 4 products"):
        DotAdd(6, bf16, bf16, fp32, fp32, Pfma(4))


# ---- proofs ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("K", range(2, 34, 2))
def test_both_encodings_are_proved_equal(K: int) -> None:
    assert isinstance(verify(unit(K), timeout=600), Holds)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        pytest.param("order-independence", True, marks=pytest.mark.slow),
        pytest.param("order-independence-across-blocks", False, marks=pytest.mark.slow),
        pytest.param("power-of-two-scaling", False, marks=pytest.mark.slow),
        ("no-nan-from-finite", False),
        pytest.param("never-minus-zero", False, marks=pytest.mark.slow),
        ("every-number", False),
        ("monotonicity-in-a-product", False),
        ("correct-rounding", False),
        ("faithful-rounding", False),
        ("correct-rounding-of-each-step", False),
    ],
)
def test_properties(name: str, holds: bool) -> None:
    answer = prove(name, unit(4), timeout=60 if holds else 15)
    assert isinstance(answer, Holds if holds else Fails), answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["commutativity", "sign-symmetry", "zero-padding", "accumulator-width", "monotonicity-in-c", "exactness"],
)
@pytest.mark.parametrize("K", [2, 32])
def test_properties_that_are_proved(K: int, name: str) -> None:
    assert isinstance(prove(name, unit(K), timeout=300), Holds)
