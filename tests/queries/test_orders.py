"""Orders of products, found from rows or refuted by them; no list has them."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

import mmaformal.queries.elimination as elimination
import mmaformal.queries.orders as module
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import compiled_results as results
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.wfma import Wfma
from mmaformal.formats import FORMATS
from mmaformal.queries.elimination import RecordedRows
from mmaformal.queries.orders import explaining, ordered
from mmaformal.queries.paths import Paths
from mmaformal.rounding import IEEE_FP32, RZ_FP32
from mmaformal.spaces import details
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd, Parameters

_SHUFFLED = (4, 1, 6, 3, 0, 7, 2, 5)
_PAIRS = (2, 7, 0, 5, 3, 4, 1, 6)  #: in the order in which `Paths` has it: those of a step ascend


def model(parameters: Parameters, order: tuple[int, ...], a: str = "fp16") -> DotAdd:
    one, fp32 = FORMATS[a], FORMATS["fp32"]
    return DotAdd(len(order), one, one, fp32, fp32, parameters, product_order=order)


def recorded(spec: DotAdd, rows: int = 300, seed: int = 1) -> RecordedRows:
    """Rows of normal numbers near 1, as most recordings have them."""
    rng = np.random.default_rng(seed)

    def codes(name: str, *shape: int) -> np.ndarray:
        fmt, x = FORMATS[name], rng.standard_normal(shape).astype(np.float32)
        if name == "fp16":
            return x.astype(np.float16).view(np.uint16).astype(np.uint64)
        return (x.view(np.uint32) >> (32 - fmt.storage_bits)).astype(np.uint64)

    a, b = (codes(fmt.name, rows, spec.k) for fmt in (spec.a_format, spec.b_format))
    none = np.empty((rows, 0), np.uint64)
    given = Rows(a, b, codes("fp32", rows), none, none)
    return RecordedRows(given, results(spec, given), Types.of(spec), spec.k)


def found(spec: DotAdd, rows: RecordedRows, seconds: float = 60) -> list[tuple[int, ...]]:
    return list(explaining(spec.in_order, rows, time.monotonic() + seconds))


MADE = {
    "fma of widened factors": model(Wfma(IEEE_FP32), _SHUFFLED),
    "flushed fma": model(Ffma(), _SHUFFLED, "bf16"),
    "fused sums of two": model(Fda(24, 2, RZ_FP32, -132), _PAIRS),
    "fused sums, products first": model(Fdrda(24, 2, IEEE_FP32), _PAIRS),
}


@pytest.mark.parametrize("name", MADE)
def test_the_order_is_found_and_no_other(name: str) -> None:
    spec = MADE[name]
    assert found(spec, recorded(spec)) == [spec.product_order]


@pytest.mark.parametrize("name", MADE)
def test_one_wrong_row_is_explained_by_no_order(name: str) -> None:
    spec = MADE[name]
    rows = recorded(spec)
    rows.d[77] ^= np.uint64(1)
    assert found(spec, rows) == []


def test_other_parameters_have_no_order() -> None:
    spec = MADE["fused sums of two"]
    assert found(spec.replace(F=23), recorded(spec)) == []


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_as_many_orders_as_there_are(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six products have all their orders listed, and each is run."""
    monkeypatch.setattr(module, "_LISTED", 3)
    spec = model(Wfma(IEEE_FP32), (3, 0, 5, 1, 4, 2))
    few = recorded(spec, rows)
    one_by_one = {
        order
        for order in itertools.permutations(range(6))
        if not few.differ(spec.replace(product_order=order)).any()
    }
    assert spec.product_order in one_by_one
    assert sorted(found(spec, few)) == sorted(one_by_one)


def test_a_graph_too_large_for_sums_leaves_no_order_out(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = MADE["fused sums of two"]
    rows = recorded(spec)
    monkeypatch.setattr(module, "_LARGE", 300)
    assert found(spec, rows) == [spec.product_order]


def test_rows_in_which_zeros_decide_leave_it_open() -> None:
    """Where a sum is zero, an exponent of zero that is not known yet may decide."""
    spec = model(Fda(24, 1, RZ_FP32, 0), (1, 0))
    one, tiny = 0x3C00, 0x0400  # c + a[1]·b[1] is 0, whose exponent cuts a[0]·b[0] off
    none = np.empty((1, 0), np.uint64)
    a, b = np.array([[tiny, one]], np.uint64), np.array([[tiny, one]], np.uint64)
    row = Rows(a, b, np.array([0xBF800000], np.uint64), none, none)
    rows = RecordedRows(row, results(spec, row), Types.of(spec), 2)
    assert rows.differ(spec.replace(e_zero=None)).all()
    assert spec.taken in [list(order) for order in found(spec.replace(e_zero=None), rows)]


def test_a_state_taken_for_known_would_refute_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that the same row is said to be explained by no order, which is wrong."""
    monkeypatch.setattr(elimination, "is_zero", lambda codes, fmt: np.zeros(codes.shape, np.bool_))
    with pytest.raises(AssertionError):
        test_rows_in_which_zeros_decide_leave_it_open()


def test_the_likeliest_parameters_are_told() -> None:
    spec = MADE["fused sums of two"]
    rows = recorded(spec)
    told = ordered(rows, ["fda"], 60, lambda _: None)
    assert {family.in_order.replace(e_zero=-132) for _, family in told.exact} == {spec.in_order}
    assert spec in dict(told.exact)
    rows.d[5] ^= np.uint64(1)
    told = ordered(rows, ["fda"], 60, lambda _: None)
    assert not told.exact
    assert spec.in_order in [each.replace(e_zero=-132) for each in told.refuted]
    assert told.lines[0].startswith("no order of products explains these rows, for ")


def test_no_time_is_no_proof() -> None:
    spec = MADE["fma of widened factors"]
    told = ordered(recorded(spec), ["wfma"], 0, lambda _: None)
    assert not told.exact
    assert not told.refuted
    assert told.left + len(told.unsettled) == len(list(module._families(Types.of(spec), 8, "wfma")))


def test_what_rows_do_not_tell_is_not_settled() -> None:
    """Products of 0: every order explains them."""
    spec = model(Sfma(IEEE_FP32), tuple(range(8)), "fp32")
    x = recorded(spec, 4)
    rows = replace(x.rows, a=np.zeros_like(x.rows.a))
    told = ordered(replace(x, rows=rows, d=rows.c), ["sfma"], 30, lambda _: None)
    assert told.unsettled
    assert "more than 16 orders explain" in told.lines[0]


def test_steps_are_counted() -> None:
    spec = model(Gps(4), tuple(range(8)), "bf16")
    classes = tuple(spec.class_of(i) for i in range(4))
    assert Paths.steps(8, classes) == len(Paths.all(8, classes)) == 2 * 70 * 6
    assert Paths.all(8, classes).count == 70 * 36


@pytest.mark.parametrize("name", [*MADE, "a chain of sums of four"])
def test_details_show_only_where_they_may(name: str) -> None:
    """On rows of every distribution, and with every detail."""
    spec = (MADE | {"a chain of sums of four": model(Fda(24, 4, RZ_FP32, None), _PAIRS)})[name]
    rows = generate(spec, 1500, seed=2, distributions=(*DISTRIBUTIONS, "edge", "tiny"))
    known = elimination.without_details(spec, RecordedRows(rows, rows.c, Types.of(spec), spec.k))
    assert known.any()
    wanted = results(spec, rows)
    others = [results(each, rows) for each in details(spec)]
    assert all(np.array_equal(each[known], wanted[known]) for each in others)
    assert len(others) == 1 or any(not np.array_equal(each, wanted) for each in others)
