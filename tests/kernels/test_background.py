"""Waiting for a kernel that is compiled can be broken off, and the kernel is there later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest

from mmaformal.kernels import background
from mmaformal.kernels.background import compiling, in_background
from mmaformal.kernels.compiled import driver
from mmaformal.solver.deadline import Deadline


def successor(x: int) -> int:
    """A function to be compiled."""
    return x + 1


def test_a_kernel_whose_time_was_up_is_compiled_all_the_same() -> None:
    compiled = driver(successor)
    with Deadline(1e-4) as deadline:
        compiled(1)
    assert deadline.expired
    assert compiled(1) == 2
    for _ in range(500):  # the thread that compiled may still be on its way out
        if not compiling():
            break
        time.sleep(0.01)
    assert not compiling()


def test_ctrl_c_is_raised_while_a_kernel_is_compiled() -> None:
    free = threading.Event()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    waiting = in_background(free.wait)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            waiting()
    assert compiling()
    free.set()
    background._end()
    assert not compiling()


def test_errors_of_a_compiler_are_raised() -> None:
    def broken(x: int) -> int:
        return x.what  # type: ignore[attr-defined, no-any-return]

    compiled: Callable[[int], int] = driver(broken)
    with pytest.raises(numba.core.errors.TypingError):
        compiled(1)
    assert not compiling()


def test_other_threads_compile_by_themselves() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_background(threading.current_thread)).result() is not threading.current_thread()
        name = pool.submit(in_background(lambda: threading.current_thread().name)).result()
    assert name != "mmaformal-compiles"
