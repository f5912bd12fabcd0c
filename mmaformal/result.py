"""The forms that every query's result has: a verdict, numbers, text, JSON, HTML and a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mmaformal.display import Tabular, clipped, html_text, html_title, written

if TYPE_CHECKING:
    from mmaformal.solver.answers import Number


class Result(Tabular):
    """Base of what queries give back.

    `str` of it is for reading and `verbose()` tells all; `verdict` is one word and `summary` one line; `to_json()` is
    plain values and `json()` their text; `table()`, `to_csv()` and `to_latex()` have its rows, by default one of its
    verdict, its summary and its numbers; a notebook shows it as HTML.
    """

    @property
    def verdict(self) -> str:
        """One word for what was found; each kind of result documents its own."""
        raise NotImplementedError

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers that it is about; none, if it is about none."""
        return ()

    @property
    def summary(self) -> str:
        """Returns what was found, in one line."""
        return str(self).partition("\n")[0]

    def verbose(self) -> str:
        """Returns the whole of it as text; `str` may leave out what is long."""
        return str(self)

    def to_json(self) -> object:
        """Returns plain values: what `json` writes and `--json` prints."""
        raise NotImplementedError

    def json(self, path: str | Path | None = None) -> str:
        """Returns the plain values as JSON; written to a file too, if one is named."""
        return written(json.dumps(self.to_json(), indent=2), path)

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict of plain values for each row of its table."""
        numbers = {each.name: float(each) for each in self.numbers}
        return [{"verdict": self.verdict, "summary": self.summary, **numbers}]

    def to_html(self, path: str | Path | None = None) -> str:
        """Returns the HTML that a notebook shows; written to a file too, if one is named."""
        return written(self._repr_html_(), path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {clipped(self.summary)}>"

    def _repr_html_(self) -> str:
        first, *rest = str(self).splitlines()
        return html_title(type(self).__name__, first) + (html_text("\n".join(rest)) if rest else "")


def how_many(explaining: int, complete: bool) -> str:
    """Returns the verdict of a search for what explains something: `none`, `one` or `several`, or `unknown`.

    It is `unknown` where not everything was tried and what is left might make it another.
    """
    if explaining > 1:
        return "several"
    if not complete:
        return "unknown"
    return "one" if explaining else "none"
