"""Operands of `matmul`: batches, vectors, a broadcast C, as NumPy has them; what is refused; few columns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mmaformal import ARCHITECTURES, Instruction, hopper, matmul, rtx_blackwell, volta
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import compiled_results

H = hopper["HMMA.16816.F32"]
Q = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
SCALED = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]


def drawn(shape: tuple[int, ...], dtype: Any = np.float16, seed: int = 0) -> Any:
    return (4 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


def bits(x: Any) -> Any:
    return np.asarray(x).view(np.uint32)


# ---- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ((3, 5, 20), (20, 7), None),
        ((3, 5, 20), (20, 7), (7,)),
        ((3, 5, 20), (20, 7), (5, 1)),
        ((2, 3, 5, 20), (3, 20, 7), (3, 5, 7)),
        ((5, 20), (3, 20, 7), (3, 1, 1)),
        ((2, 1, 5, 20), (3, 20, 7), (2, 3, 5, 7)),
        ((1, 5, 20), (1, 20, 7), ()),
        ((20,), (20,), ()),
        ((20,), (20, 7), (7,)),
        ((5, 20), (20,), (1,)),
        ((3, 5, 20), (20,), (3, 1)),
        ((20,), (3, 20, 7), (7,)),
        ((0, 5, 20), (20, 7), None),
        ((3, 5, 0), (3, 0, 7), (3, 5, 7)),
        ((3, 0, 20), (20, 7), None),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "how", [{}, {"split_k": 2}, {"stream_k": 2, "tile": (2, 4)}, {"accumulation": "random"}], ids=str
)
def test_shapes_are_numpy_s(
    a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...] | None, how: dict[str, Any]
) -> None:
    A, B = drawn(a), drawn(b, seed=1)
    C = None if c is None else drawn(c, np.float32, 2)
    D = matmul(A, B, C, instruction=H, **how)
    expected = np.matmul(A.astype(float), B.astype(float))
    assert D.shape == expected.shape
    assert D.dtype == np.float32
    # each product of the batch is what it is alone
    rows, columns = A if A.ndim > 1 else A[None], B if B.ndim > 1 else B[:, None]
    batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:]))
    columns = np.broadcast_to(columns, (*batch, *columns.shape[-2:]))
    added = (
        None
        if C is None
        else np.broadcast_to(C, expected.shape).reshape(*batch, rows.shape[-2], columns.shape[-1])
    )
    whole = D.reshape(*batch, rows.shape[-2], columns.shape[-1])
    for index in np.ndindex(*batch):
        alone = matmul(
            rows[index], columns[index], None if added is None else added[index], instruction=H, **how
        )
        assert (bits(alone) == bits(whole[index])).all()


def test_scales_of_a_batch() -> None:
    random = np.random.default_rng(3)
    A, B = (random.integers(0, 120, shape).astype(np.uint8) for shape in ((3, 4, 72), (3, 72, 5)))
    sa, sb = (random.integers(120, 134, shape).astype(np.uint8) for shape in ((3, 4, 3), (3, 3, 5)))
    D = matmul(A, B, instruction=SCALED, scale_a=sa, scale_b=sb)
    for i in range(3):
        assert (matmul(A[i], B[i], instruction=SCALED, scale_a=sa[i], scale_b=sb[i]) == D[i]).all()
    shared = matmul(A, B[0], instruction=SCALED, scale_a=sa[0], scale_b=sb[0])
    assert (matmul(A[1], B[0], instruction=SCALED, scale_a=sa[0], scale_b=sb[0]) == shared[1]).all()
    row = matmul(A[0, 0], B[0], instruction=SCALED, scale_a=sa[0, 0], scale_b=sb[0])
    assert (matmul(A[0], B[0], instruction=SCALED, scale_a=sa[0], scale_b=sb[0])[0] == row).all()
    with pytest.raises(ValueError, match=r"scale_a has shape \(2, 4, 3\); \(3, 4, 3\) is needed"):
        matmul(A, B, instruction=SCALED, scale_a=sa[:2], scale_b=sb)


@pytest.mark.parametrize(
    ("a", "b", "c", "said"),
    [
        ((), (20, 7), None, "M×K and K×N"),
        ((5, 20), (), None, "M×K and K×N"),
        ((5, 20), (21, 7), None, "M×K and K×N"),
        ((2, 5, 20), (3, 20, 7), None, "do not broadcast"),
        ((5, 20), (20, 7), (2, 5, 7), r"C has shape \(2, 5, 7\); \(5, 7\) is needed"),
        ((5, 20), (20, 7), (7, 5), r"C has shape \(7, 5\); \(5, 7\) is needed"),
        ((5, 20), (20,), (5, 1), r"C has shape \(5, 1\); \(5,\) is needed"),
    ],
)
def test_shapes_that_do_not_fit(
    a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        matmul(drawn(a), drawn(b), None if c is None else drawn(c, np.float32), instruction=H)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_masked_arrays_are_refused(name: str) -> None:
    given = {"A": drawn((3, 20)), "B": drawn((20, 4)), "C": drawn((3, 4), np.float32)}
    given[name] = np.ma.masked_greater(given[name], 1)
    with pytest.raises(TypeError, match=f"{name} is a masked array"):
        matmul(**given, instruction=H)
    with pytest.raises(TypeError, match="a is a masked array"):
        H.dot_add(np.ma.masked_greater(drawn((16,)), 1), drawn((16,)), np.float32(0))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tile": 5}, r"tile is two sizes, such as \(128, 128\), not 5"),
        ({"tile": "ab"}, r"tile is two sizes, such as \(128, 128\), not 'ab'"),
        ({"tile": (1, 2, 3)}, r"tile is two sizes, such as \(128, 128\), not \(1, 2, 3\)"),
        ({"tile": (0, 3)}, r"a tile of \(0, 3\); two sizes, from 1 on"),
        ({"progress": 5}, "progress is True, False, None or a function of a line of text, not 5"),
        ({"progress": "yes"}, "progress is True, False, None or a function of a line of text, not 'yes'"),
        ({"seed": "a"}, "seed is an integer, not 'a'"),
        ({"seed": -1}, "seed is -1; it counts from 0"),
        ({"seed": None}, "seed is an integer, not None"),
        *(
            ({name: True}, f"{name} is an integer, not True")
            for name in ("split_k", "promote_every", "stream_k", "jobs")
        ),
        *(
            ({name: 2.0}, f"{name} is an integer, not 2.0")
            for name in ("split_k", "promote_every", "stream_k", "jobs")
        ),
        *(
            ({name: "2"}, f"{name} is an integer, not '2'")
            for name in ("split_k", "promote_every", "stream_k", "jobs")
        ),
        *(
            ({name: 0}, f"{name} is 0; it counts from 1")
            for name in ("split_k", "promote_every", "stream_k", "jobs")
        ),
        *(
            ({name: -1}, f"{name} is -1; it counts from 1")
            for name in ("split_k", "promote_every", "stream_k", "jobs")
        ),
        ({"split_k": None}, "split_k is an integer, not None"),
        ({"order": 5}, 'order is "sequential" or "pairwise", not 5'),
        ({"order": ["pairwise"]}, 'order is "sequential" or "pairwise", not'),
        ({"accumulation": []}, r"accumulation is natural, .*, not \[\]"),
        ({"instruction": "hopper HMMA"}, "HMMA"),
        ({"instruction": 5}, "expected an Instruction or its name"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_in_one_line_that_says_what_would_do(
    wrong: dict[str, Any], said: str
) -> None:
    given = {"instruction": H, **wrong}
    for shape in ((3, 20), (0, 20)):  # where there is nothing to do too
        with pytest.raises((TypeError, ValueError, KeyError), match=said) as error:
            matmul(drawn(shape), drawn((20, 4)), **given)
        assert "\n" not in str(error.value)


def test_an_instruction_by_its_name() -> None:
    A, B = drawn((3, 20)), drawn((20, 4))
    assert (
        bits(matmul(A, B, instruction="hopper HMMA.16816.F32")) == bits(matmul(A, B, instruction=H))
    ).all()


# ---- few columns -----------------------------------------------------------------------------------------------------


def exchanging() -> list[Instruction]:
    every = {i.spec: i for name in ARCHITECTURES for i in ARCHITECTURES[name]}
    return [i for i in every.values() if i.a_format == i.b_format and i.spec.parameters.factors_commute]


def test_factors_commute_where_the_algorithm_says_so() -> None:
    """Codes of NaNs too; that it is so of all inputs is the property `commutativity`."""
    found = exchanging()
    assert len(found) > 50
    by_algorithm = {(i.algorithm, i.spec.types): i for i in found}
    for i in by_algorithm.values():
        rows = generate(i.spec, 200, seed=5, distributions=(*DISTRIBUTIONS, "edge"))
        turned = Rows(rows.b, rows.a, rows.c, rows.scale_b, rows.scale_a)
        assert (compiled_results(i.spec, rows) == compiled_results(i.spec, turned)).all(), i.label


def test_units_whose_nan_is_an_operand_s_are_not_turned() -> None:
    i = ARCHITECTURES["sapphire_rapids"]["VFMADD231PH"]
    assert not i.spec.parameters.factors_commute
    A, B = np.full((200, 1), 0x7E01, np.uint16), np.full((1, 3), 0x7E02, np.uint16)
    assert (matmul(A, B, instruction=i) == i.dot_add(A[0], B[:, 0], 0)).all()


@pytest.mark.parametrize("how", [{}, {"promote_every": 2}, {"accumulation": "kahan"}], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_few_columns_are_what_they_are_among_many(how: dict[str, Any], threads: int) -> None:
    A, C = drawn((700, 70)).view(np.uint16), drawn((700, 300), np.float32, 2)
    A[3, 5], A[4, 6] = 0x7E01, 0xFC00
    B = drawn((70, 300), seed=1).view(np.uint16)
    B[6, 0] = 0
    whole = matmul(A, B, bits(C), instruction=H, **how)
    for columns in (slice(0, 1), slice(0, 3)):
        few = matmul(A, B[:, columns], bits(C)[:, columns], instruction=H, jobs=threads, **how)
        assert (few == whole[:, columns]).all()
        fortran = np.asfortranarray(A), np.asfortranarray(B[:, columns])
        assert (matmul(*fortran, bits(C)[:, columns], instruction=H, jobs=threads, **how) == few).all()
    one = matmul(A[:1], B, bits(C)[:1], instruction=H, jobs=threads, **how)
    assert (one == whole[:1]).all()


def test_one_column_takes_no_longer_than_one_row() -> None:
    """It took 5 to 12 times as long."""
    W, x = (drawn(shape).astype(Q.a_format.dtype) for shape in ((512, 512), (512, 1)))

    def fastest(work: Callable[[], object]) -> float:
        seconds = []
        for _ in range(12):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    row = fastest(lambda: matmul(x.T, W.T, instruction=Q, jobs=1))
    assert fastest(lambda: matmul(W, x, instruction=Q, jobs=1)) < 3 * row


def test_wide_sums_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads take columns where there are few rows."""
    monkeypatch.setattr("mmaformal.gemm._PLANES_BYTES", 1 << 16)
    i = volta["HMMA.884.F32.F32"]
    A, B = drawn((2, 40)), drawn((40, 2000), seed=1)
    told: list[str] = []
    wide = matmul(A, B, instruction=i, jobs=5, progress=told.append)
    assert (bits(wide) == bits(matmul(A, B, instruction=i, jobs=1))).all()
    assert told[-1].startswith(f"{2 * 2000 * 40:,} of ")
