"""numba compiles in a thread of its own, so that what waits for it can be broken off: by a `Deadline`, by Ctrl-C.

LLVM does not survive an exception in the middle of its work, and a signal handler raises in the main thread only.  What
was not waited for to its end is compiled all the same, and then there for the next call.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Seconds between two looks at whether a kernel is compiled; a signal is handled at once.
_LOOK = 0.5

_left: set[threading.Thread] = set()  #: threads that compile, and may be waited for by nobody


def compiling() -> bool:
    """Whether a kernel is being compiled that nobody waits for any more."""
    _left.difference_update([each for each in _left if not each.is_alive()])
    return bool(_left)


def in_background(compile_for: Callable[_P, _R]) -> Callable[_P, _R]:
    """`compile_for`, run in a thread that the main thread waits for; in other threads it is as it was.

    Raises what `compile_for` raises, or whatever a signal handler raises meanwhile.
    """

    def waiting(*args: _P.args, **options: _P.kwargs) -> _R:
        if threading.current_thread() is not threading.main_thread():
            return compile_for(*args, **options)
        answers: list[_R] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(compile_for(*args, **options))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, name="mmaformal-compiles", daemon=True)
        _left.add(thread)
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
        _left.discard(thread)
        if errors:
            raise errors[0]
        return answers[0]

    return waiting


@atexit.register
def _end() -> None:
    """Wait for what still compiles: a thread that the interpreter stops within LLVM ends the process with a crash."""
    for thread in list(_left):
        thread.join()
