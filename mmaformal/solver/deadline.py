"""Work that ends when its time is up, and at Ctrl-C, whatever it is doing.

    with Deadline(20) as deadline:
        return prove(…)
    return Unknown(…)  # the time was up

Questions to solvers have limits of their own; this is for all the rest, which can take longer than any solver: terms
are built, written and released in Python, a few microseconds each, by the million.  In the main thread a timer's signal
raises `TimeUpError` wherever the work is, and Ctrl-C raises KeyboardInterrupt there.  Python drops an exception that is
raised in a `__del__` or a callback, and z3 releases each of its terms in one; so nothing is raised inside of those,
and what was dropped all the same is raised again.  Neither is raised inside of what must not stay half-done:
functions that are `shielded`, the `__enter__` and `__exit__` of whatever is entered, and the `__init__` of z3's
objects, whose `__del__` fails where that was broken off.  A kernel is compiled to its end, and a module imported.

In other threads, and where there are no such signals (Windows), the time is looked at where `check` is called, which
`Asker` does before every question.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import TypeAlias, TypeVar

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | signal.Handlers | None
_F = TypeVar("_F", bound=Callable[..., object])
_T = TypeVar("_T")

#: `from_param` is called by ctypes, which makes an error of its own of whatever is raised in it.
_SHIELDED_NAMES = frozenset(("__del__", "__enter__", "__exit__", "from_param"))
_shielded: set[CodeType] = set()
#: Packages whose state does not survive being broken off while they compile, or are imported.
_COMPILERS = frozenset(("numba", "llvmlite"))

#: Seconds until it is tried again to raise what could not be raised, and what may have been dropped.
_SOON, _AGAIN = 0.002, 0.05


class TimeUpError(BaseException):
    """The time of a `Deadline` is up; it catches this itself.  No Exception, so that nobody else does."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__(f"{deadline.seconds:.3g} s are up")
        self.deadline = deadline


def shielded(function: _F) -> _F:
    """A function that runs to its end, with all that it calls, before its deadline or Ctrl-C takes effect."""
    _shielded.add(function.__code__)
    return function


class Deadline:
    """A block of work that is broken off after so many seconds (None: only by Ctrl-C); `expired` says if it was.

    Deadlines nest.  Ctrl-C is left alone where a handler other than Python's own is in place.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        if math.isnan(self.seconds):
            raise ValueError("a deadline is in a number of seconds, not nan")
        self.expired = False

    def __enter__(self) -> Deadline:
        self.at = time.monotonic() + self.seconds
        _mine().append(self)
        if threading.current_thread() is threading.main_thread():
            _watch.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        _mine().remove(self)
        if threading.current_thread() is threading.main_thread():
            _watch.end()
        self.expired = isinstance(error, TimeUpError) and error.deadline is self
        return self.expired


def checked_timeout(seconds: float) -> float:
    """The seconds given to a query.  Raises TypeError or ValueError unless they are a number above 0, and finite."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"timeout is a number of seconds, not {seconds!r}")
    if not 0 < seconds < math.inf:
        raise ValueError(f"timeout is a number of seconds above 0, not {seconds}")
    return seconds


def check_time() -> None:
    """Raise TimeUpError if the time of a deadline around this is up."""
    due = _due()
    if due is not None:
        raise TimeUpError(due)


def checking(items: Iterable[_T]) -> Iterator[_T]:
    """The items, with a `check_time` before each."""
    for each in items:
        check_time()
        yield each


def last_within(seconds: float, items: Iterable[_T], last: _T) -> tuple[_T, bool]:
    """The last of the items that there are before the time is up (`last`, if none is), and whether it was up."""
    with Deadline(seconds) as deadline:
        for each in checking(items):
            last = each
    return last, deadline.expired


_local = threading.local()


def _mine() -> list[Deadline]:
    """This thread's deadlines, the innermost last."""
    deadlines: list[Deadline] = _local.__dict__.setdefault("deadlines", [])
    return deadlines


def _due() -> Deadline | None:
    """The outermost deadline whose time is up."""
    now = time.monotonic()
    return next((deadline for deadline in _mine() if deadline.at <= now), None)


class _Watch:
    """The signals of the main thread, while it has deadlines; how it was before is how it will be."""

    def __init__(self) -> None:
        self.interrupted = False
        self.raised: BaseException | None = None
        self.handlers: dict[int, _Handler] = {}
        self.hook: Callable[[sys.UnraisableHookArgs], object] = sys.unraisablehook
        self.timer = (0.0, 0.0)  #: the one that somebody else had set: seconds left, interval
        self.since = 0.0

    def begin(self) -> None:
        if len(_mine()) == 1:
            self.interrupted, self.raised = False, None
            self.hook, sys.unraisablehook = sys.unraisablehook, self.on_dropped
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self.handlers[signal.SIGINT] = signal.signal(signal.SIGINT, self.on_signal)
            if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is not None:
                self.handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self.on_signal)
                self.timer, self.since = signal.setitimer(signal.ITIMER_REAL, 0), time.monotonic()
        self.arm()

    def end(self) -> None:
        if _mine():
            self.arm()
            return
        sys.unraisablehook = self.hook
        self.raised = None  # its traceback holds whatever was being built
        before, self.handlers = self.handlers, {}  # from here on nothing is armed
        if signal.SIGINT in before:
            signal.signal(signal.SIGINT, before[signal.SIGINT])
        if hasattr(signal, "SIGALRM") and signal.SIGALRM in before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before[signal.SIGALRM])
            left, interval = self.timer
            if left:
                passed = time.monotonic() - self.since
                signal.setitimer(signal.ITIMER_REAL, max(left - passed, 1e-6), interval)

    def arm(self, seconds: float | None = None) -> None:
        """Have the timer ring after so many seconds, or else when the next deadline is due."""
        if not hasattr(signal, "SIGALRM") or signal.SIGALRM not in self.handlers:
            return
        if seconds is None:
            first = min((deadline.at for deadline in _mine()), default=math.inf)  # the last may be ending
            seconds = 0.0 if math.isinf(first) else max(first - time.monotonic(), 1e-6)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.interrupted = True
        due = _due()
        if not self.interrupted and due is None:
            self.arm()
        elif self.on_its_way() or _is_shielded(frame):
            self.arm(_SOON)
        else:
            self.arm(_AGAIN)
            self.raised = KeyboardInterrupt() if due is None or self.interrupted else TimeUpError(due)
            raise self.raised

    def on_dropped(self, what: sys.UnraisableHookArgs) -> None:
        """An exception was dropped in a callback.  If it is ours, nobody need be told, and not again in that one."""
        if what.exc_value is not self.raised:
            self.hook(what)
        elif code := getattr(what.object, "__code__", None):
            _shielded.add(code)

    def on_its_way(self) -> bool:
        """Whether what was raised last is being handled: a `finally` or an `except` is at work."""
        error = sys.exc_info()[1]
        while error is not None and error is not self.raised:
            error = error.__context__
        return error is not None


def _is_shielded(frame: FrameType | None) -> bool:
    while frame is not None:
        name = frame.f_code.co_name
        if name in _SHIELDED_NAMES or frame.f_code in _shielded:
            return True
        module: str = frame.f_globals.get("__name__", "")
        root = module.partition(".")[0]
        if (name == "__init__" and root == "z3") or root in _COMPILERS:
            return True
        if name == "<module>" and root == "mmaformal":  # is being imported
            return True
        frame = frame.f_back
    return False


_watch = _Watch()
