"""Colour on a terminal, and a line that says what is being done: all that it shows beyond the text.

Rich does both, and honours NO_COLOR and TERM=dumb.  It is imported where a stream is a terminal only.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

from mmaformal.display import LastingLine, folded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from mmaformal.solver.answers import Answer

#: Seconds before there is anything to say of what is being done.
_QUIET = 0.5

#: Seconds between two lines of what is being done, where stderr is no terminal.
EVERY = 10.0

#: Words that stand out, as (pattern, style of Rich).
_STYLES = (
    (r"^(Different|Equal|Holds):", "bold green"),
    (r"^Fails:", "bold red"),
    (r"^Unknown:", "bold yellow"),
    (r"^  ≠ .*$", "red"),
    (r"^(inputs|results|minimal\?|proved:|where they part:)", "bold"),
    (r"best found", "yellow"),
)


class Readable(Protocol):
    """A text that comes in two lengths."""

    def verbose(self) -> str: ...


def told(answer: Readable, verbose: bool) -> str:
    """An answer for a person; with `verbose`, all that was proved for it."""
    return answer.verbose() if verbose else str(answer)


def width(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal that a stream is, stdout where none is given; None if it is none."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def said(text: str) -> None:
    """Print a line on stderr, folded to a terminal's columns; a stream that is closed or gone is no reason to fail."""
    with contextlib.suppress(OSError, ValueError):
        print(folded(text, width(sys.stderr)), file=sys.stderr, flush=True)


def styled(text: str) -> str:
    """The text with what stands out in colour, if stdout is a terminal that has any."""
    if not sys.stdout.isatty():
        return text
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, soft_wrap=True, highlight=False)
    if console.no_color or console.color_system is None:
        return text
    rich = Text(text)
    for pattern, style in _STYLES:
        rich.highlight_regex(re.compile(pattern, re.MULTILINE), style)
    with console.capture() as capture:
        console.print(rich, end="")
    return capture.get()


class Status:
    """A word on stderr of what is being done: on a terminal a line that changes, elsewhere one every ten seconds."""

    def __init__(self, text: str = "starting") -> None:
        self._start, self._text = time.monotonic(), text
        self._said = self._start
        self._live: Live | None = None

    def show(self, text: str) -> None:
        """Say what is being done now; a line that lasts stays."""
        if isinstance(text, LastingLine):
            self.line(text)
            return
        self._text = text
        now = time.monotonic()
        if self._live is None and now - self._said >= EVERY:
            self._said = now
            said(f"mmaformal: {now - self._start:.0f} s: {text}")

    def line(self, text: str) -> None:
        """Say something that stays."""
        if self._live is None:
            said(text)
        else:
            from rich.text import Text

            self._live.console.print(Text(text))

    def found(self, answer: Answer) -> None:
        """Say the first witness of a search, on a terminal; elsewhere the smallest is soon enough."""
        summary = getattr(getattr(answer, "witness", None), "summary", None)
        if self._live is not None and summary is not None:
            self.line(f"found: {summary}; a smaller one is looked for")

    def __rich__(self) -> RenderableType:
        from rich.table import Table

        elapsed = time.monotonic() - self._start
        if elapsed < _QUIET:
            return ""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=1)
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(self._spinner, f"{elapsed:.0f} s", self._text)
        return grid

    def __enter__(self) -> Status:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live
            from rich.spinner import Spinner

            self._spinner = Spinner("dots" if _unicode() else "line")
            self._live = Live(
                self, console=Console(file=sys.stderr, highlight=False), transient=True, refresh_per_second=8
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def _unicode() -> bool:
    return (sys.stderr.encoding or "").lower().replace("-", "").startswith("utf")
