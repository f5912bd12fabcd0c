"""Results have the same bits whatever executor there is: none, threads, processes, Dask clusters of 1, 2, 3 workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from support.recorded import recorded, save

from mmaformal import (
    ARCHITECTURES,
    ampere,
    cdna2,
    check,
    grid,
    hopper,
    matmul,
    max_difference,
    mismatches,
    rtx_blackwell,
)
from mmaformal.cli.running import WRONG_USE, run_command
from mmaformal.executors import LostWorkerError, results_in_order, width_of, workers
from mmaformal.formats import Format
from mmaformal.queries.diagnose import diagnose
from mmaformal.queries.errors import Moments, errors
from mmaformal.site.comparing import SolverLimits, ask_solvers, compare_pairs, smallest_of_pair
from mmaformal.site.pairs import PairAnswer, PairStore, comparisons, questions
from mmaformal.statistics import join_samples, sample

REPOSITORY = Path(__file__).resolve().parents[2]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are counted in /proc")

FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
MX = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]

pytestmark = pytest.mark.filterwarnings("default")  # Dask's own


def dask(jobs: int) -> AbstractContextManager[Executor]:
    pytest.importorskip("distributed", reason="pip install 'mmaformal[cluster]'")
    return workers("local", jobs)


@pytest.fixture(scope="module", params=["threads", "processes", 1, 2, 3])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made = {"threads": lambda: ThreadPoolExecutor(3), "processes": lambda: workers(None, 2)}
    with made.get(request.param, lambda: dask(request.param))() as found:
        yield found


def codes(fmt: Format, shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, fmt.codes, shape, dtype=np.uint64).astype(fmt.word)


def small_blocks(m: int, n: int, k: int) -> list[tuple[slice, slice]]:
    return [(slice(i, i + 40), slice(j, j + 30)) for i in range(0, m, 40) for j in range(0, n, 30)]


HOW: list[dict[str, Any]] = [
    {},
    {"promote_every": 2},
    {"split_k": 2, "order": "pairwise"},
    {"accumulation": "random", "seed": 3},
]


def test_matmul(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "blocks", small_blocks)
    told: list[str] = []
    given = (
        codes(FP8.a_format, (2, 90, 200), 1),
        codes(FP8.b_format, (200, 70), 2),
        codes(FP8.c_format, (90, 70), 3),
    )
    for how in HOW:
        found = matmul(*given, instruction=FP8, executor=executor, progress=told.append, **how)
        assert np.array_equal(found, matmul(*given, instruction=FP8, **how))
    assert told[-1] == "15 of 15 parts"
    scales = {
        "scale_a": codes(MX.spec.scale_format, (90, 6), 5),
        "scale_b": codes(MX.spec.scale_format, (6, 70), 6),
    }
    given = (
        codes(MX.a_format, (90, 192), 1),
        codes(MX.b_format, (192, 70), 2),
        codes(MX.c_format, (90, 70), 3),
    )
    found = matmul(*given, instruction=MX, executor=executor, **scales)
    assert np.array_equal(found, matmul(*given, instruction=MX, **scales))


def test_statistics(executor: Executor) -> None:
    found = errors(FP8, 2**18 * 70, k=64, seed=4, executor=executor, promote_every=1)
    assert found == errors(FP8, 2**18 * 70, k=64, seed=4, promote_every=1, jobs=1)
    assert found.count == 2**18 * 70
    assert found != errors(FP8, 2**18, k=64, seed=4, promote_every=1, jobs=1)


def test_diagnosis(executor: Executor) -> None:
    file = REPOSITORY / "examples" / "bfdot_qemu.npz"
    plain, found = (
        diagnose(file, only=["oddsum", "muladd", "rnd2"], executor=each, jobs=1).to_json()
        for each in (None, executor)
    )
    assert plain.pop("seconds") != 0
    del found["seconds"]
    assert found == plain
    assert plain["explained"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40,000 rows of fp16, in three blocks, as ampere gives them, and as nothing does in three places."""
    arrays = recorded(ampere["HMMA.1688.F32"], 40_000)
    for row in (30_000, 20_001, 39_999):
        arrays["d"][row] ^= 4
    arrays["a"][20_001] = 0  # a smaller example than the others
    arrays["d"][20_001] = 5
    arrays["meta"] = arrays["meta"] | {"architecture": "hopper", "instruction": "HMMA.1688.F32"}
    return save(tmp_path_factory.mktemp("rows") / "rows.npz", arrays)


def test_checking(executor: Executor, rows: Path) -> None:
    plain = check(rows).to_json()
    assert check(rows, executor=executor).to_json() == plain
    (report,) = plain
    assert report["rows"] == 40_000
    assert 3 < int(str(report["mismatches"])) < 40_000


def test_mismatching_rows(executor: Executor, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("mmaformal.queries.mismatches"), "_EACH", 0.1)
    plain, found = (mismatches(rows, executor=each, timeout=1000.0) for each in (None, executor))
    assert [group.kind for group in plain.groups] == [group.kind for group in found.groups]
    assert len(plain.groups) > 1
    for one, other in zip(plain.groups, found.groups, strict=True):
        assert (one.rows, one.smallest, one.change) == (other.rows, other.smallest, other.change)
        assert (one.spoils, one.cause) == (other.spoils, other.cause)
    assert plain.complete
    assert found.complete
    assert (plain.recorded_rows, plain.tabled) == (found.recorded_rows, found.tabled)


def test_the_farthest_results(executor: Executor) -> None:
    how: dict[str, Any] = {"searches": 3, "seed": 3, "timeout": 1000.0}
    plain, found = (
        max_difference(ampere, hopper, "HMMA.1688.F32", executor=each, **how) for each in (None, executor)
    )
    assert plain.to_json() == found.to_json()
    alone = max_difference(ampere, hopper, "HMMA.1688.F32", seed=3, timeout=1000.0)
    assert alone.found <= plain.found


PAIRS = questions(
    comparisons([ARCHITECTURES["datapath"][f"fda(k=1,frac_bits={bits},a=e4m3)"] for bits in (20, 21, 22)])
)


def smallest_inputs(answers: Mapping[str, PairAnswer]) -> dict[str, tuple[object, ...]]:
    return {key: (each.answer, each.smallest, each.codes) for key, each in answers.items()}


def test_the_pairs_of_the_atlas(executor: Executor, tmp_path: Path) -> None:
    if isinstance(executor, ThreadPoolExecutor):
        pytest.skip("terms of z3 belong to one thread")
    store, told = PairStore(tmp_path / "pairs.jsonl", PAIRS), list[str]()
    compare_pairs(PAIRS, store, str)
    ask_solvers(PAIRS, store, told.append, SolverLimits(1000.0, cache=False), executor)
    assert smallest_inputs(store.answers) == smallest_inputs(plain_answers())
    assert len(told) == len(PAIRS) == 3


@lru_cache(maxsize=1)
def plain_answers() -> dict[str, PairAnswer]:
    """Return what one process answers, one pair after the other."""
    return {key: smallest_of_pair(pair, None, 1000.0, 2048, False) for key, pair in PAIRS.items()}


def test_width(executor: Executor) -> None:
    assert width_of(executor) in (1, 2, 3)


def test_blocks_cover_all_once() -> None:
    seen = np.zeros((5000, 9000), np.int8)
    for where in grid.blocks(5000, 9000, 4096):
        seen[where] += 1
    assert (seen == 1).all()


def test_tiles_whose_cuts_depend_on_all_of_d_are_refused() -> None:
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="leave executor out"):
        matmul(
            np.ones((4, 4)),
            np.ones((4, 4)),
            instruction=cdna2["f64_16x16x4f64"],
            stream_k=2,
            executor=executor,
        )


# ---- moments -------------------------------------------------------------------------------------------------


def test_moments_are_the_statistics_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    i = hopper["HMMA.16816.F16"]
    samples = [
        sample(i, rng.standard_normal((30, 40)).astype("f2"), rng.standard_normal((40, 20)).astype("f2"))
        for _ in "abc"
    ]
    samples[1].errors[3, 4] = np.nan
    parts = [Moments.of(each) for each in samples]
    x, y, z = parts
    assert (x + y) + z == z + (y + x)
    whole, found = join_samples(samples).statistics(), (x + y + z).statistics()
    assert (found.count, found.special, found.exact) == (whole.count, 1, whole.exact)
    for name, value in vars(whole).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-13), name


@pytest.mark.parametrize("power", [-900, 0, 480])
def test_moments_reach_as_far_as_float64(power: int) -> None:
    rng = np.random.default_rng(0)
    i = cdna2["f64_16x16x4f64"]
    found = sample(i, rng.standard_normal((9, 40)) * 2.0**power, rng.standard_normal((40, 9)))
    mine, whole = Moments.of(found).statistics(), found.statistics()
    for name, value in vars(whole).items():
        assert getattr(mine, name) == pytest.approx(value, rel=1e-13), name


# ---- workers that end ----------------------------------------------------------------------------------------


def test_a_lost_worker_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with workers(None, 1) as executor, pytest.raises(LostWorkerError) as lost:
        list(results_in_order(executor, os._exit, [(1,), (1,)]))

    @click.command()
    def command() -> None:
        raise lost.value

    assert run_command(command, []) == WRONG_USE
    assert (
        capsys.readouterr().err
        == "mmaformal: a worker was lost (out of memory?): 2 parts are not done; run it again\n"
    )


def _killing_one(once: str, x: int) -> int:
    """Kill the process that this runs in, the first time."""
    try:
        Path(once).touch(exist_ok=False)
    except FileExistsError:
        return x
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


@linux
def test_dask_gives_what_a_lost_worker_was_at_to_another(tmp_path: Path) -> None:
    with dask(2) as executor:
        found = [
            x
            for _, x in results_in_order(
                executor, _killing_one, [(str(tmp_path / "once"), x) for x in range(20)]
            )
        ]
    assert found == list(range(20))


def test_an_error_in_a_worker_is_raised_and_the_rest_taken_back() -> None:
    with ThreadPoolExecutor(1) as executor, pytest.raises(ZeroDivisionError):
        list(results_in_order(executor, divmod, [(1, 1), (1, 0), *[(1, 1)] * 50]))


BIG = """
from mmaformal import hopper
from mmaformal.executors import workers
from mmaformal.queries.errors import errors

with workers({address!r}, 2) as executor:
    errors(hopper["HMMA.16816.F32"], 10**11, executor=executor, progress=lambda line: print(line, flush=True))
"""


@linux
@pytest.mark.parametrize("address", [None, "local"])
def test_ctrl_c_leaves_no_worker_behind(address: str | None) -> None:
    if address is not None:
        pytest.importorskip("distributed", reason="pip install 'mmaformal[cluster]'")
    program = subprocess.Popen(
        [sys.executable, "-c", BIG.format(address=address)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline().endswith("parts\n")
    os.killpg(program.pid, signal.SIGINT)
    program.communicate(timeout=60)
    assert program.returncode != 0
    end = time.monotonic() + 20
    while left := _of_session(program.pid):
        assert time.monotonic() < end, left
        time.sleep(0.2)


def _of_session(session: int) -> list[str]:
    """The processes of a session that still run."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = each.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(of) == session and state != "Z":
            found.append(each.parent.name)
    return found
