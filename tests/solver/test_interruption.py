"""Time limits and Ctrl-C, of real processes: both end everything, at any moment, and say so."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.solvers import solver_processes, wait_until

from mmaformal import hopper
from mmaformal.certificates.refuting import refutation
from mmaformal.queries.find_difference import find_difference
from mmaformal.queries.properties import PROPERTIES
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Unknown
from mmaformal.solver.pool import processes

GENEROUS = 20.0  # seconds for what takes two on a quiet machine

#: Commands that would take minutes, and are at different things: building terms, solvers, both, assembling proofs.
COMMANDS = {
    "terms": ["diff", "ampere", "hopper", "HMMA.16816.F32", "--k", "4096", "--where", "nonzero"],
    "difference": ["diff", "ampere", "hopper", "HMMA.16816.F32", "--no-cache"],
    "property": ["prove", "correct-rounding", "hopper", "DMMA.884", "--no-cache"],
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("what", "after"),
    [
        ("terms", 6.0),
        *(pytest.param(w, s, marks=pytest.mark.slow) for w in COMMANDS for s in (5.0, 7.0, 11.0)),
    ],
)
def test_ctrl_c_ends_a_command(what: str, after: float) -> None:
    command = [sys.executable, "-m", "mmaformal", *COMMANDS[what]]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        time.sleep(after)
        if process.poll() is not None:
            pytest.skip("it had ended by then")
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert time.monotonic() - sent < GENEROUS
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "ignored" not in errors
    assert wait_until(lambda: not solver_processes(process.pid), GENEROUS)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals are not blocked on this platform")
def test_ctrl_c_passes_by_workers_that_start() -> None:
    none: list[signal.Signals] = []
    with processes(1) as executor:
        blocked = executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, none).result()
    assert signal.SIGINT in blocked  # since it was started: nothing else blocks it there
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, none)


def test_workers_do_not_run_the_callers_script_again() -> None:
    script = """
from mmaformal.solver.pool import processes
import os
with processes(1) as executor:
    print(executor.submit(os.getppid).result() == os.getpid())
"""
    run = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("True\n", "")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_an_ended_worker_leaves_no_sat_solver_and_no_files(tmp_path: Path) -> None:
    script = "import sys, time; open(sys.argv[2], 'w').write(sys.argv[1]); time.sleep(600)"
    program = [sys.executable, "-c", f"import os; os.environ['X'] = {str(tmp_path)!r}; {script}"]

    def running() -> list[Path]:
        """The folders of the clauses that such a program is at."""
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = each.read_text().split("\0")
                found += [Path(words[-3]).parent] if str(tmp_path) in each.read_text() else []
        return found

    with processes(1) as executor:
        executor.submit(refutation, "p cnf 1 0\n", 600.0, program)
        assert wait_until(lambda: bool(running()), GENEROUS)
        (folder,) = running()
        assert folder.is_dir()
    assert wait_until(lambda: not running() and not folder.exists(), GENEROUS)


def test_no_thread_of_the_workers_is_left_which_would_race_with_the_end_of_the_interpreter() -> None:
    before = set(threading.enumerate())
    with processes(1) as executor:
        for _ in range(30):
            executor.submit(time.sleep, 5)
        time.sleep(1)  # some are under way
    assert not [thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()]


def test_a_limit_holds_while_terms_are_built() -> None:
    x = hopper["HMMA.16816.F32"].chained(1 << 12)
    start = time.monotonic()
    answer = find_difference(x, x.replace(F=24), where="nonzero", timeout=2)
    assert isinstance(answer, Unknown)
    assert "used up" in answer.why
    assert time.monotonic() - start < 2 + GENEROUS


@pytest.mark.parametrize(
    "name", ["order-independence", "monotonicity-in-c", "correct-rounding", "no-nan-from-finite"]
)
def test_a_limit_holds_for_properties(name: str) -> None:
    x = hopper["HMMA.16816.F32"].chained(1 << 14)
    start = time.monotonic()
    PROPERTIES[name].prove(x, timeout=1)
    assert time.monotonic() - start < 1 + GENEROUS


def test_a_limit_holds_for_proofs_of_encodings() -> None:
    start = time.monotonic()
    assert isinstance(verify(hopper["HMMA.16816.F32"].chained(1 << 13), timeout=1), Unknown)
    assert time.monotonic() - start < 1 + GENEROUS
    assert not solver_processes(os.getpid())
