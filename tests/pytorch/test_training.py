"""The study of accumulators in training: its settings, one training, results that are resumed, and what is told."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")
pytest.importorskip("sklearn", reason="scikit-learn is an extra: pip install 'mmaformal[training]'")

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cli.training import NETWORK_NAMES, STUDIES
from mmaformal.studies.training import report as reports
from mmaformal.studies.training import runs, sweep
from mmaformal.studies.training.language import (
    CHARACTERS,
    HELD_OUT,
    TRAINED_ON,
    Characters,
    training_text,
    yardsticks,
)
from mmaformal.studies.training.networks import Digits, digit_images
from mmaformal.studies.training.runs import Job, TrainingOutcome, TrainingUnit, angle_apart, train
from mmaformal.studies.training.sweep import Results, Setting, jobs, with_bits

# scikit-learn and its SciPy warn as they like
pytestmark = pytest.mark.filterwarnings("default")


def settings(study: str = "digits", *parts: str) -> list[Setting]:
    return sweep.settings(sweep.STUDIES[study], *([parts] if parts else []))


class Here(Executor):
    """Runs a job where it is submitted; stops after so many."""

    def __init__(self, most: int = 10**9) -> None:
        self.most = most

    def submit(self, function, /, *arguments, **named):
        future: Future[object] = Future()
        if self.most <= 0:
            raise KeyboardInterrupt
        self.most -= 1
        future.set_result(function(*arguments))
        return future


def made_up(job: Job) -> TrainingOutcome:
    """Accuracy grows with FracBits until 12; weights are the further from fp32's the fewer there are."""
    found = re.search(r"(?:frac_bits|F)=(\d+)", str(job.unit))
    bits = int(found[1]) if found else 30
    accuracy = 0.9 + min(bits, 12) / 1000 + job.seed / 10**4
    weights = np.ones(100, np.float32) + np.float32(2.0**-bits) * np.arange(100, dtype=np.float32)
    return TrainingOutcome(
        accuracy, 0.1, 1.0, (2.0**-bits,) * 4, (("a.weight", 2.0**-bits), ("b.weight", 0.0)), weights
    )


def test_the_images() -> None:
    x, y, test_x, test_y = digit_images()
    assert (x.shape, test_x.shape) == ((1437, 1, 8, 8), (360, 1, 8, 8))
    assert (float(x.min()), float(x.max())) == (-1.0, 1.0)
    assert sorted(set(y.tolist())) == sorted(set(test_y.tolist())) == list(range(10))


def test_settings_are_the_paper_s() -> None:
    assert {name: study.networks for name, study in sweep.STUDIES.items()} == STUDIES
    assert {name for names in STUDIES.values() for name in names} == set(runs.TASKS)
    every = settings()
    assert every[0].unit is None
    for fmt in ("fp16", "e4m3"):
        assert {int(s.x) for s in every if s.part == "bits" and s.curve == fmt} >= set(range(8, 29, 4))
    assert {int(s.x) for s in every if s.part == "groups"} == {4, 8, 16, 32, 64}
    for s in every:
        if s.unit is not None:
            assert s.unit.arithmetic.jobs == 1
    wanted = jobs(every, NETWORK_NAMES, 5)
    assert len({job.key for job in wanted}) == len(wanted)
    fp4 = ARCHITECTURES["rtx_blackwell"]["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    assert with_bits("nvfp4", 35).arithmetic.instruction.spec == fp4.spec


def test_a_training_is_a_function_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NETWORK_NAMES:
        task = runs.TASKS[name]
        assert isinstance(task, Digits)
        monkeypatch.setitem(runs.TASKS, name, Digits(task.make, 1, 256, 0.01))
    runs._reference.cache_clear()
    for name in NETWORK_NAMES:
        state = torch.random.get_rng_state()
        own, again = train(Job(name, None, 0)), train(Job(name, None, 0))
        assert torch.equal(state, torch.random.get_rng_state())
        assert (own.score, own.progress) == (again.score, (0.0,) * 4)
        assert (own.weights == again.weights).all()
        narrow, wide = (train(Job(name, with_bits("fp16", bits), 0)) for bits in (4, 24))
        assert narrow.progress[-1] > 10 * wide.progress[-1] > 0
        assert [layer for layer, _ in wide.layers] == [layer for layer, _ in narrow.layers]
        assert not (train(Job(name, None, 1)).weights == own.weights).any()
    runs._reference.cache_clear()


def test_apart_is_one_minus_the_cosine() -> None:
    x, y = np.array([1.0, 0.0], np.float32), np.array([0.0, 2.0], np.float32)
    assert angle_apart(x, x) == 0
    assert angle_apart(x, y) == pytest.approx(1)
    assert angle_apart(x, -x) == pytest.approx(2)
    near = np.array([1.0, 2.0**-20], np.float32)
    assert angle_apart(x, near) == pytest.approx(2.0**-41, rel=1e-6)


def test_results_are_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "train", made_up)
    wanted = jobs(settings("digits", "units"), ["convolutional"], 2)
    results = Results(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sweep.run_sweep(wanted, results, Here(most=5), 2)
    file = tmp_path / "training.jsonl"
    with file.open("a") as out:
        out.write('{"key": "half a li')
    results = Results(tmp_path)
    kept = len(results.known)
    assert 0 < kept <= 5
    assert file.read_text().endswith("}\n")
    told: list[tuple[int, int]] = []
    sweep.run_sweep(wanted, results, Here(), 2, lambda done, of: told.append((done, of)))
    assert told[-1] == (len(wanted), len(wanted))
    assert len(file.read_text().splitlines()) == len(wanted)
    sweep.run_sweep(wanted, Results(tmp_path), Here(most=0), 2)
    assert (results.weights(wanted[1]) == made_up(wanted[1]).weights).all()
    file.write_text('{"n": 1}\n')
    with pytest.raises(ValueError, match="something else"):
        Results(tmp_path)


def test_what_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "train", made_up)
    every = settings()
    results = Results(tmp_path)
    sweep.run_sweep(jobs(every, NETWORK_NAMES, 3), results, Here(), 1)
    report = reports.StudyReport(results, every, NETWORK_NAMES, 3)
    assert report.stable_from("transformer", "fp16") == "10"
    assert report.settled_from("transformer", "fp16") == "10"
    assert report.settled_from("transformer", "nvfp4") == "16"
    told = reports.report_text(report)
    assert "| transformer | fp16 | 10 | 10 | – | – |" in told
    assert told.count("### transformer") == 4
    assert f"{len(report.wanted())} of {len(report.wanted())} runs are known, 0 of them proved" in told
    point = report.of("convolutional", "bits", "fp16")[0]
    assert point.apart_from_widest[0] == pytest.approx(
        angle_apart(
            made_up(Job("", with_bits("fp16", 2), 0)).weights,
            made_up(Job("", with_bits("fp16", 28), 0)).weights,
        )
    )
    rows = reports.report_rows(report)
    assert len(rows) == len(NETWORK_NAMES) * len(every)
    (row,) = [
        each
        for each in rows
        if (each["network"], each["part"], each["curve"], each["x"]) == ("convolutional", "bits", "fp16", "2")
    ]
    assert (row["seeds"], row["score"]) == (3, point.mean)
    assert row["apart_from_widest"] == pytest.approx(np.mean(point.apart_from_widest))
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from mmaformal.studies.training import figures

    assert len(figures.draw_training(report, tmp_path)) == 2
    # With a part of the results, what is known is told, with the number of seeds.
    part = reports.StudyReport(results, every, NETWORK_NAMES, 4)
    assert {len(p.scores) for points in part.points.values() for p in points} == {3}
    assert f" of {len(part.wanted())} runs are known" in reports.report_text(part)


def test_units_are_text() -> None:
    unit = TrainingUnit("hopper", "QGMMA.64x8x32.F32.E4M3.E4M3", options=(("promote_every", 4),))
    assert str(unit) == "hopper QGMMA.64x8x32.F32.E4M3.E4M3 promote_every=4"
    assert unit.arithmetic.division == {"promote_every": 4}
    assert "12 epochs of 128 at 0.015 | torch fp32 | 3" in Job("transformer", None, 3).key


def children(parent: int) -> list[int]:
    """Processes of that one and below, by `/proc`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found + [each for child in found for each in children(child)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
def test_one_command_interrupted_and_resumed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mmaformal.cli", "training", "--out", str(tmp_path), "--part", "units"]
    command += ["--network", "convolutional", "--seeds", "1", "--jobs", "2", "--no-plot"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    file = tmp_path / "training.jsonl"
    deadline = time.monotonic() + 120
    while not (file.exists() and file.read_text().count("\n") >= 2) and time.monotonic() < deadline:
        time.sleep(0.1)
    started = children(process.pid)
    assert started
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    deadline = time.monotonic() + 10  # Python's own resource tracker goes last
    while any(Path(f"/proc/{each}").exists() for each in started) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [each for each in started if Path(f"/proc/{each}").exists()]
    kept = file.read_text()
    again = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert file.read_text().startswith(kept)
    assert "| sapphire_rapids bf16 (TDPBF16PS) |" in again.stdout
    assert (tmp_path / "training.md").read_text() in again.stdout + "\n"


def test_the_text_is_python_s_own() -> None:
    assert not set(TRAINED_ON.split()) & set(HELD_OUT.split())
    x = training_text()
    assert len(x.trained) > 10**6 > len(x.held_out) > 10**5
    for part in x[:2]:
        assert 0 <= int(part.min()) <= int(part.max()) < CHARACTERS
    source = Path(re.__file__).parent.parent / "bisect.py"
    told = "".join("\n" if c == 0 else chr(c + 31) for c in x.held_out[:200].tolist())
    assert source.read_text().startswith(told)
    one, two = yardsticks()
    assert 15 < one < 30
    assert 8 < two < 14


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Characters:
    task = Characters(layers=1, width=16, heads=2, context=8, batch=4, steps=8, windows=4)
    monkeypatch.setitem(runs.TASKS, "language", task)
    runs._reference.cache_clear()
    return task


def of_bits(fmt: str, bits: int, counted: bool = False, seed: int = 0) -> Job:
    """The job of the language model's study with so many bits, whether or not it is among its settings."""
    unit = next(s.unit for s in settings("language", "bits") if s.curve == fmt)
    assert unit is not None
    return Job("language", replace(with_bits(fmt, bits), options=unit.options), seed, counted)


def test_a_language_model_is_trained_forward_and_backward_on_the_unit(tiny: Characters) -> None:
    own = train(Job("language", None, 0))
    wide, again = train(of_bits("e4m3", 24)), train(of_bits("e4m3", 24))
    assert (wide.digest, wide.score, wide.progress) == (again.digest, again.score, again.progress)
    assert 1 < own.score < 200
    assert own.score != wide.score
    # Only the forward pass on the unit is another training, and so is a broken accumulator.
    unit = of_bits("e4m3", 24).unit
    assert unit is not None
    forward = train(Job("language", replace(unit, options=()), 0))
    broken = train(of_bits("e4m3", 3))
    assert len({own.digest, wide.digest, forward.digest, broken.digest}) == 4
    assert broken.progress[-1] > 3 * wide.progress[-1] > 0
    assert train(of_bits("e4m3", 24, seed=1)).digest != wide.digest


def test_one_step_of_a_network_that_fp32_has_trained(
    tiny: Characters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(runs.TASKS, "step", replace(tiny, after="language"))
    trained, own = train(Job("language", None, 0)), train(Job("step", None, 0))
    assert own.score == trained.score
    assert own.weights.shape == trained.weights.shape
    assert abs(own.weights).max() < abs(trained.weights).max()  # a gradient
    assert own.progress == (0.0,) * 4
    wide, narrow = (train(replace(of_bits("e4m3", bits), network="step")) for bits in (24, 3))
    assert narrow.progress[-1] > 3 * wide.progress[-1] > 0
    assert train(replace(of_bits("e4m3", 24), network="step")).digest == wide.digest


def test_a_counted_run_proves_wider_ones_equal(
    tiny: Characters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = of_bits("mxfp4", 40, counted=True)
    results = Results(tmp_path)
    sweep.run_sweep([counted], results, Here(), 1)
    needed = results[counted].needed
    assert needed is not None
    assert 8 < needed < 40
    # What is said to be equal is equal: it is trained.
    for bits in (needed, needed + 1):
        assert train(of_bits("mxfp4", bits)).digest == results[counted].digest
    assert train(of_bits("mxfp4", 8)).digest != results[counted].digest
    others = [of_bits("mxfp4", needed - 1), of_bits("mxfp4", needed), of_bits("nvfp4", needed + 2)]
    others += [of_bits("mxfp4", needed, seed=1)]
    trained: list[Job] = []
    monkeypatch.setattr(sweep, "train", lambda job: trained.append(job) or train(job))
    sweep.run_sweep([counted, *others], results, Here(), 1)
    assert trained == [others[0], *others[2:]]
    assert results[others[1]].equal_to == counted.key
    assert results[others[1]].score == results[counted].score
    assert (Results(tmp_path).weights(others[1]) == results.weights(counted)).all()


def test_the_language_model_s_settings() -> None:
    every = settings("language")
    for fmt, fine in (("e4m3", range(18, 27)), ("nvfp4", range(18, 33)), ("mxfp4", range(18, 33))):
        of = {int(s.x): s for s in every if (s.part, s.curve) == ("bits", fmt)}
        assert of.keys() >= set(fine)
        assert all(of[x].seeds is None for x in fine)
        assert [s.counted for s in of.values()].count(True) == 1
    assert [s.curve for s in every if s.part == "orders"] == [
        "natural",
        "random",
        "kahan",
        "grouped",
        "anti-kahan",
    ]
    for s in every[1:]:
        assert s.unit is not None
        assert s.unit.arithmetic.backward == "through"
    wanted = jobs(every, ["language"], 3)
    assert len({job.key for job in wanted}) == len(wanted)
    assert all(training_text().digest in job.key for job in wanted)
