"""How objects look at a prompt and in a notebook: short reprs, and HTML without a library.

`repr` of anything of this package is a few lines, whatever it holds (tests/package/test_display.py); `print` tells all.
Everything that goes into HTML is escaped here and nowhere else.
"""

from __future__ import annotations

import csv
import html
import inspect
import io
import json
import reprlib
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from pathlib import Path

#: The most characters of one line of a repr.
LINE = 120

#: The most rows of a table in HTML, and the most characters of one of its cells.
HTML_ROWS, _HTML_CELL = 24, 160

_CELL = "text-align:left; vertical-align:top; padding:2px 10px 2px 0"


class LastingLine(str):
    """A line that `progress` is called with and that stays true: a terminal keeps it."""

    __slots__ = ()


def clipped(text: str, width: int = LINE) -> str:
    """The text on one line, its middle left out where it is longer than `width` characters."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    tail = width // 4
    return f"{text[: width - tail - 3]} … {text[len(text) - tail :]}"


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())


def counted(count: int, noun: str) -> str:
    """`1 obligation`, `3 obligations`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def mismatches_of(count: int, rows: int) -> str:
    """`3 mismatches (0.02%)`: with as many digits as it takes to show neither 0.0% nor 100.0% for what is not."""
    share = 100 * count / rows if rows else 0.0
    for digits in range(1, 18):
        text = f"{share:.{digits}f}"
        if (float(text) == 0) == (count == 0) and (float(text) == 100) == (count == rows):
            break
    return f"{count} {'mismatch' if count == 1 else 'mismatches'} ({text}%)"


# ---- tables ------------------------------------------------------------------------------------------------------

_width: ContextVar[int | None] = ContextVar("width", default=None)


#: How a claim ends that was proved.
_PROVED_MINIMAL = ": proved minimal"


def minimality_lines(claims: Sequence[str], width: int = 100) -> list[str]:
    """Returns what is known of a witness' size: what is proved in one paragraph, and a line for each other claim."""
    proved = [each.removesuffix(_PROVED_MINIMAL) for each in claims if each.endswith(_PROVED_MINIMAL)]
    others = [each for each in claims if not each.endswith(_PROVED_MINIMAL)]
    if not proved:
        return others
    text = f"proved minimal: {'; '.join(proved)}"
    width = min(width, width_to_fit() or width)
    return [*textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False), *others]


@contextmanager
def fitting(width: int | None) -> Iterator[None]:
    """Within this block tables are folded to so many columns (None: they are as wide as they are)."""
    token = _width.set(width)
    try:
        yield
    finally:
        _width.reset(token)


def width_to_fit() -> int | None:
    """How many columns a table has, if there is a limit."""
    return _width.get()


def columns(
    rows: Sequence[Sequence[str]], gaps: Sequence[str] | None = None, ruled: bool = False
) -> list[str]:
    """Lines in which cells of one column begin at one place, `gaps` (two spaces) between columns.

    `ruled`: with a rule under the first row.

    Where that is wider than what is to be fitted into, the widest columns are folded, but not the first: names are
    copied.
    """
    gaps = ["  "] * (len(rows[0]) - 1) if gaps is None else gaps
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    width = width_to_fit()
    if width is not None:
        others = max(width - widths[0] - sum(map(len, gaps)), 8 * len(gaps))
        while sum(widths[1:]) > others:
            widths[widths.index(max(widths[1:]), 1)] -= 1
    lines = []
    for number, row in enumerate(rows):
        if number == 1 and ruled:
            lines.append("".join("-" * wide + gap for wide, gap in zip(widths, [*gaps, ""], strict=True)))
        folded = [_folded(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for cells in zip_longest(*folded, fillvalue=""):
            padded = [cell.ljust(wide) for cell, wide in zip(cells, widths, strict=True)]
            lines.append("".join(x + y for x, y in zip(padded, [*gaps, ""], strict=True)).rstrip())
    return lines


def folded(text: str, width: int | None = None) -> str:
    """Lines broken between words where they are wider than what is to be fitted into, or than `width`.

    What a line goes on with stands two columns further in than its beginning.
    """
    width = width_to_fit() if width is None else width
    return text if width is None else "\n".join(_broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    inside = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line,
        width,
        subsequent_indent=inside,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _folded(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_on_hyphens=False)


# ---- reprs -------------------------------------------------------------------------------------------------------


class _Values(reprlib.Repr):
    """Reprs of the values of fields: arrays and terms of solvers by their shape, long things by their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxtuple = self.maxlist = self.maxdict = 4
        self.maxstring = self.maxother = 60
        self.maxlong = 40

    def repr_instance(self, x: object, level: int) -> str:
        if isinstance(x, type):
            return x.__qualname__
        if hasattr(x, "dtype") and hasattr(x, "shape"):
            return f"{x.dtype}{list(x.shape)}" if x.shape else f"{x.dtype}({x})"
        if hasattr(x, "sexpr"):  # a term may be as large as a whole encoding
            return f"<{type(x).__name__}>"
        if callable(x):
            return f"<{getattr(x, '__name__', type(x).__name__)}>"
        return clipped(repr(x), self.maxother)


_values = _Values()


def short_repr(x: object) -> str:
    """A repr of a dataclass or a named tuple that is short whatever its fields hold."""
    names = [f.name for f in fields(x) if f.repr] if is_dataclass(x) else list(getattr(x, "_fields", ()))
    shown = ", ".join(f"{name}={_values.repr(getattr(x, name))}" for name in names)
    return clipped(f"{type(x).__name__}({shown})", 3 * LINE)


class ShortRepr:
    """Gives a dataclass (declared with `repr=False`) that repr."""

    def __repr__(self) -> str:
        return short_repr(self)


def short_text(x: object, label: str, *lines: str) -> str:
    """`<Witness: label`, then a line each of what else there is."""
    return "<" + "\n  ".join(map(clipped, [f"{type(x).__name__}: {label}", *lines])) + ">"


# ---- tables for programs -----------------------------------------------------------------------------------------


def columns_of(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """Rows of the same keys as columns: `pandas.DataFrame` and `polars.DataFrame` take them, and find their types.

    (Of a list of rows, polars finds the types by the first hundred.)
    """
    return {key: [row[key] for row in rows] for key in (rows[0] if rows else {})}


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of the same keys as CSV, with a line of names; what is neither text nor a number is JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(list(rows[0]) if rows else [])
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    return out.getvalue()


def latex_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of the same keys as a LaTeX `tabular`: numbers to the right, everything escaped."""
    names = list(rows[0]) if rows else []
    numeric = [all(_is_number(row[name]) for row in rows) for name in names]
    lines = [" & ".join(_latex(str(name)) for name in names)]
    lines += [" & ".join(_latex(str(_plain(row[name]))) for name in names) for row in rows]
    # after the end of a line, TeX reads [ and * as its arguments
    head, *body = (f"{{}}{line} \\\\" if line.startswith(("[", "*")) else f"{line} \\\\" for line in lines)
    form = "".join("r" if each else "l" for each in numeric)
    return "\n".join(
        [f"\\begin{{tabular}}{{{form}}}", "\\hline", head, "\\hline", *body, "\\hline", "\\end{tabular}", ""]
    )


#: How a table is written for other programs, by name.
TABLES: Mapping[str, Callable[[Sequence[Mapping[str, object]]], str]] = {"csv": csv_text, "latex": latex_text}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _plain(value: object) -> object:
    """A cell: text and numbers as they are, nothing for None, anything else as JSON."""
    if value is None:
        return ""
    return (
        value
        if isinstance(value, str) or _is_number(value)
        else json.dumps(value, ensure_ascii=False, default=str)
    )


_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "→": r"$\to$",
    "⇒": r"$\Rightarrow$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "√": r"$\surd$",
    "½": r"$\frac12$",
    "²": "$^2$",
    "Σ": r"$\Sigma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "η": r"$\eta$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
    "ω": r"$\omega$",
    "…": r"\ldots{}",
    "–": "--",
    "’": "'",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.splitlines()))


class Tabular:
    """An object with `rows()`, a dict of plain values for each, which can be a table, CSV or LaTeX."""

    def rows(self) -> list[dict[str, object]]:
        raise NotImplementedError

    def table(self) -> dict[str, list[object]]:
        """The rows as columns: `pandas.DataFrame(x.table())`, `polars.DataFrame(x.table())`."""
        return columns_of(self.rows())

    def to_csv(self, path: str | Path | None = None) -> str:
        """The rows as CSV; written to a file too, if one is named."""
        return written(csv_text(self.rows()), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The rows as a LaTeX `tabular`; written to a file too, if one is named."""
        return written(latex_text(self.rows()), path)


def written(text: str, path: str | Path | None) -> str:
    """The text; written to a file too, if one is named."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


# ---- HTML, for notebooks -----------------------------------------------------------------------------------------


def escaped(value: object) -> str:
    return html.escape(str(value))


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], more: str = "table()") -> str:
    """A table; cells are escaped, and cut where they are long.

    Of many rows the first ones are shown, and `more` is what gives the rest.
    """
    rows = [[clipped(str(cell), _HTML_CELL) for cell in row] for row in rows]
    left_out = len(rows) - HTML_ROWS

    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f'<{tag} style="{_CELL}">{escaped(cell)}</{tag}>' for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows[:HTML_ROWS])
    rest = f"<div>… and {counted(left_out, 'row')} more: {escaped(more)}</div>" if left_out > 0 else ""
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>{rest}"


def html_text(text: str) -> str:
    """Text whose columns line up."""
    return f"<pre>{escaped(text)}</pre>"


class HtmlText:
    """Gives a class whose `str` is for people the same as HTML."""

    def _repr_html_(self) -> str:
        return html_text(str(self))


class Summarised(HtmlText, ABC):
    """Gives a class a `str` and a `repr` that are its `summary`, a line."""

    @property
    @abstractmethod
    def summary(self) -> str: ...

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return short_text(self, self.summary)


def html_title(kind: str, text: str, note: str = "") -> str:
    """`<b>Holds</b>: what holds (1.8 s)`."""
    small = f" <small>({escaped(note)})</small>" if note else ""
    return f"<div><b>{escaped(kind)}</b>: {escaped(text)}{small}</div>"


def html_folded(summary: str, inside: str, shown: bool = False) -> str:
    """HTML that is shown when asked for, or that can be hidden (`shown`)."""
    return f"<details{' open' if shown else ''}><summary>{escaped(summary)}</summary>{inside}</details>"
