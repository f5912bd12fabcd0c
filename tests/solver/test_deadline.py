"""Work that ends in time and at Ctrl-C, whatever it is doing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import z3

from mmaformal.solver.deadline import Deadline, TimeUpError, check_time, shielded

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")

GENEROUS = 5.0  # seconds that a loaded machine may take for what takes milliseconds


class Released:
    """Spends its time where Python drops exceptions, as z3's terms do."""

    def __del__(self) -> None:
        for _ in range(300):
            len("")


def forever(work: Callable[[], object] = Released) -> None:
    while True:
        work()


def with_callback() -> None:
    class Thing:
        pass

    def callback(_: object) -> None:
        for _ in range(300):
            len("")

    thing = Thing()
    reference = weakref.ref(thing, callback)
    del thing
    assert reference() is None


@pytest.mark.parametrize("work", [Released, with_callback, lambda: len("")])
def test_work_is_broken_off(work: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    with Deadline(0.1) as deadline:
        forever(work)
    assert deadline.expired
    assert 0.1 <= time.monotonic() - start < GENEROUS
    assert "ignored" not in capsys.readouterr().err


def test_an_object_of_z3_is_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `__del__` fails where its `__init__` was broken off."""
    get_context, dropped = z3.z3._get_ctx, []
    made = False

    def slow(context: Any) -> Any:
        nonlocal made
        if sys._getframe(1).f_code.co_name == "__init__":
            while not deadline.at < time.monotonic() - 0.02:  # the signal comes here
                len("")
            made = True
        return get_context(context)

    x = z3.BitVec("x", 8)
    monkeypatch.setattr(z3.z3, "_get_ctx", slow)
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    with Deadline(0.1) as deadline:
        forever(lambda: x + 1)
    assert deadline.expired
    assert made
    assert not dropped


@pytest.mark.parametrize("work", [Released, with_callback])
def test_ctrl_c_is_not_dropped(work: Callable[[], object]) -> None:
    for _ in range(5):
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt), Deadline(60):
            forever(work)
        timer.join()


def test_ctrl_c_is_whose_it_was() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        with Deadline(GENEROUS) as deadline:
            os.kill(os.getpid(), signal.SIGINT)
            while not seen:
                check_time()
        assert not deadline.expired
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_outer_one_ends_the_inner_one() -> None:
    inner = Deadline(60)
    with Deadline(0.05) as outer, inner:
        forever()
    assert outer.expired
    assert not inner.expired
    with Deadline(60) as outer:
        with inner, Deadline(0.05) as innermost:
            forever()
        assert innermost.expired
    assert not outer.expired
    assert not inner.expired


def test_nothing_is_left_behind() -> None:
    rung = []
    handler = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    interrupt = signal.getsignal(signal.SIGINT)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        for _ in range(50):
            with Deadline(0.001):
                forever()
        assert signal.getsignal(signal.SIGINT) is interrupt
        end = time.monotonic() + GENEROUS
        while not rung and time.monotonic() < end:
            time.sleep(0.01)
        assert rung, "the timer that was set before did not ring"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def test_what_cleans_up_is_not_broken_off() -> None:
    done = []

    @shielded
    def whole() -> None:
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            len("")
        done.append("shielded")

    with Deadline(0.05) as deadline:
        whole()
        forever()
    assert deadline.expired
    with Deadline(0.05) as deadline:
        try:
            forever()
        finally:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                len("")
            done.append("finally")
    assert deadline.expired
    assert done == ["shielded", "finally"]


@pytest.mark.parametrize(
    ("module", "name"),
    [("numba.core.dispatcher", "compile"), ("llvmlite.binding", "link"), ("mmaformal.x", "<module>")],
)
def test_a_compiler_and_an_import_are_not_broken_off(module: str, name: str) -> None:
    done: list[str] = []

    def slow() -> None:
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            len("")
        done.append(name)

    work = compile("slow()", module, "exec")
    with Deadline(0.05) as deadline:
        exec(work.replace(co_name=name), {"__name__": module, "slow": slow})
        forever()
    assert deadline.expired
    assert done == [name]


def test_other_threads_look_at_the_time_themselves() -> None:
    expired = []

    def work() -> None:
        with Deadline(0.05) as deadline:
            forever(check_time)
        expired.append(deadline.expired)
        with Deadline() as deadline:
            check_time()
        expired.append(deadline.expired)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(GENEROUS)
    assert expired == [True, False]
    check_time()


def test_only_its_own() -> None:
    with Deadline(60) as other, pytest.raises(TimeUpError):
        raise TimeUpError(Deadline(1))
    assert not other.expired
