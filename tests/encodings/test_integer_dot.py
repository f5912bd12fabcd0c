"""integer_dot: integers clamped or wrapped around, against Python's integers, and proved equal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from support.slow import slow

from mmaformal import datapath, find_difference, prove
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Codes
from mmaformal.cases.run import both_results, compiled_results
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.integer_dot import IntegerDot
from mmaformal.encodings.integer_dot import smt as smt_integer
from mmaformal.formats import FORMATS, Format, integer_format
from mmaformal.queries.verify import verify
from mmaformal.rounding import RNE_FP32
from mmaformal.solver.answers import Different, Fails, Holds, Unknown
from mmaformal.spec import DotAdd

POINTS = [
    "integer(k=4,a=uint8,b=int8)",
    "integer(k=4,a=uint8,b=int8,clamp=1)",
    "integer(k=4,a=uint8,b=int8,clamp=1,group=2,inner=16,chain=2)",
    "integer(k=8,a=int4,b=uint4,c=int16,clamp=1)",
    "integer(k=2,a=int16)",
    "integer(k=1,a=int8,c=int8,clamp=1,chain=3)",
]


def number(code: int, bits: int, signed: bool) -> int:
    """The integer of a code, by what two's complement is: the top bit counts negatively."""
    return code - (2 * (code >> (bits - 1)) << (bits - 1) if signed else 0)


def wanted(spec: DotAdd, case: Codes) -> int:
    """The code of d, in Python's integers."""
    p = spec.parameters_as(IntegerDot)

    def of(codes: Sequence[int], fmt: Format) -> list[int]:
        return [number(code, fmt.storage_bits, fmt.signed) for code in codes]

    def clamped(x: int, bits: int) -> int:
        return sorted((-(2 ** (bits - 1)), x, 2 ** (bits - 1) - 1))[1]

    d = spec.d_format.storage_bits
    (total,) = of([case.c], spec.c_format)
    terms = [x * y for x, y in zip(of(case.a, spec.a_format), of(case.b, spec.b_format), strict=True)]
    for step in range(0, spec.k, p.L):
        group = p.group or 1
        sums = [sum(terms[k : k + group]) for k in range(step, step + p.L, group)]
        total += sum(clamped(x, p.inner) for x in sums) if p.inner else sum(sums)
        total = clamped(total, d) if p.clamps else number(total % 2**d, d, True)
    return total % 2**d


@pytest.mark.parametrize("name", POINTS)
def test_a_step_is_that_of_integers(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 1200, distributions=(*DISTRIBUTIONS, "edge"))
    got = compiled_results(spec, rows)
    for case, d in zip(rows.cases(), got, strict=True):
        assert int(d) == wanted(spec, case), case
    few = generate(spec, 6)
    for case, both in zip(few.cases(), both_results(spec, few), strict=True):
        assert both[0] == both[1] == wanted(spec, case)


@pytest.mark.parametrize("more", ["", ",clamp=1", ",clamp=1,group=2,inner=4"])
def test_all_inputs_of_small_formats(more: str) -> None:
    i = datapath[f"integer(k=2,a=uint2,b=int3,c=int4{more})"]
    cases = list(itertools.product(range(4), range(4), range(8), range(8), range(16)))
    codes = np.array(cases, np.uint64)
    got = i.dot_add(
        codes[:, :2].astype(np.uint8), codes[:, 2:4].astype(np.uint8), codes[:, 4].astype(np.uint8)
    )
    for each, d in zip(cases, got, strict=True):
        assert int(d) == wanted(i.spec, Codes(each[:2], each[2:4], each[4])), each


@pytest.mark.parametrize("name", slow(POINTS, ["integer(k=2,a=int16)"]))
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(datapath[name], timeout=400), Holds)


def test_the_proof_notices_a_sum_that_is_clamped_one_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smt_integer.saturated
    monkeypatch.setattr(
        smt_integer, "saturated", lambda x, bits: z3.If(real(x, bits) == 127, real(x, bits) - 1, x)
    )
    assert isinstance(verify(datapath[POINTS[1]], timeout=60), Fails)


def test_the_proof_notices_an_unsigned_factor_taken_for_a_signed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt_integer, "extended", lambda x, _, bits: z3.SignExt(bits - x.size(), x))
    assert isinstance(verify(datapath[POINTS[0]], timeout=60), Fails)


# ---- what follows ----------------------------------------------------------------------------------------------------


def test_sums_that_wrap_do_not_depend_on_the_order_of_their_products() -> None:
    for name in ("order-independence", "order-independence-across-blocks", "commutativity"):
        assert isinstance(prove(name, datapath["integer(k=4,chain=2)"]), Holds), name


def test_pairs_that_are_clamped_do() -> None:
    """The pairs of vpmaddubsw: each pair of products is clamped to 16 bits, so that another pairing is another sum."""
    unit = datapath["integer(k=4,a=uint8,b=int8,group=2,inner=16)"]
    assert isinstance(prove("order-independence", unit), Holds)
    assert isinstance(prove("order-independence-across-blocks", unit), Fails)


def test_a_difference_is_found_and_shown() -> None:
    """255·127 + 255·127 is 64770, beyond 16 bits: the least such input is told with the group that is clamped."""
    x, y = datapath["integer(k=2,a=uint8,b=int8,group=2,inner=16)"], datapath["integer(k=2,a=uint8,b=int8)"]
    answer = find_difference(x, y)
    assert isinstance(answer, Different)
    assert "group 0" in str(answer)
    assert answer.witness.results[0] == 0xFFFF8000


@pytest.mark.parametrize("name", ["correct-rounding", "monotonicity-in-c", "error-bound", "sign-symmetry"])
def test_what_is_about_floating_point_numbers_is_not_asked(name: str) -> None:
    answer = prove(name, datapath["integer(k=4)"])
    assert isinstance(answer, Unknown)
    assert "of floating-point numbers" in answer.why


# ---- formats ---------------------------------------------------------------------------------------------------------


@given(st.integers(3, 32), st.booleans(), st.data())
def test_a_code_is_its_integer(bits: int, signed: bool, data: st.DataObject) -> None:
    fmt = integer_format(bits, signed)
    code = data.draw(st.integers(0, fmt.codes - 1))
    value = number(code, bits, signed)
    assert fmt.value(code) == value
    assert fmt.text(code) == str(value)
    assert fmt.code(str(value)) == code
    assert fmt.is_finite(code)
    assert FORMATS[fmt.name] == fmt


def test_numbers_that_no_code_is_are_refused_or_have_neighbours() -> None:
    int8, uint8 = FORMATS["int8"], FORMATS["uint8"]
    for fmt, text in ((int8, "128"), (int8, "0.5"), (uint8, "-1"), (uint8, "256")):
        with pytest.raises(ValueError, match=fmt.name):
            fmt.code(text)
    assert [int8.value(code) for code in int8.nearest("-2.75")] == [-3, -2]
    assert [int8.value(code) for code in int8.nearest("2.5")] == [2, 3]
    assert int8.value(int8.largest) == Fraction(127)
    for name in ("int2", "int33", "uint1", "int08", "int"):
        assert name not in FORMATS


def test_integers_are_for_integer_dot_alone() -> None:
    with pytest.raises(ValueError, match="fda takes and gives no integers"):
        DotAdd(
            4, FORMATS["int8"], FORMATS["int8"], FORMATS["fp32"], FORMATS["fp32"], Fda(24, 4, RNE_FP32, None)
        )
    with pytest.raises(KeyError, match="integer_dot needs integers"):
        datapath["integer(k=4,a=fp16)"]
    with pytest.raises(KeyError, match="groups where there are bits"):
        datapath["integer(k=4,group=2)"]
    with pytest.raises(KeyError, match="at most 62 bits"):
        datapath["integer(k=4,a=int32)"]
