"""Code blocks of the documents, by what is done with them (tests/tools/test_blocks.py).

    console     commands after `$ ` with what they print: run, and compared
    sh          commands: those of mmaformal are parsed
    python      run, block after block of a page in one module; a `text` block that follows is what it prints
    anything else, or a block after `<!-- not run: WHY -->`: only shown, and a block of no language is an error

`<!-- needs: NAME, NAME -->` before a block: it is run where these packages or programs are.

`…` on a line of its own stands for any lines.  Times and dates are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (?P<kind>not run|needs)(?:: (?P<why>[^>]+))? -->\s*\Z")
_CHANGING = re.compile(r"\b\d[\d.,]* s\b( on \d{4}-\d\d-\d\d(, shipped [0-9a-f]{8})?)?|\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""  #: `not run`, `needs`, or nothing
    why: str = ""  #: the reason why it is not run, or the programs and packages that it needs

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether it is run, where what it needs is there."""
        return self.language in ("console", "python") and self.mark != "not run"


def pages() -> list[Path]:
    """Return the documents that people write: README.md and those of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for each in _BLOCK.finditer(text):
        language = each["language"] or _kind(each["text"])
        mark = _MARK.search(text[: each.start()])
        line = text.count("\n", 0, each.start()) + 1
        kind, why = (mark["kind"], mark["why"] or "") if mark else ("", "")
        found.append(Block(page, line, language, each["text"], kind, why))
    return found


def _kind(text: str) -> str:
    """Return the language of a block that says none: commands with or without what they print, or none."""
    if text.startswith("$ "):
        return "console"
    return "sh" if re.match(r"(mmaformal|npm|make|pip|python) ", text) else ""


def commands(text: str) -> Iterator[str]:
    """Yield the commands of mmaformal that a block has, comments left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = line.removeprefix("$ ").strip()
        if words.startswith("mmaformal "):
            yield re.sub(r"\s+# .*", "", words)


def sessions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a `console` block, with the lines that it prints."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").splitlines()
        yield re.sub(r"\s+# .*", "", command), lines


def fits(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether lines of a page are those that were printed; a line `…` stands for any."""
    wanted = [_CHANGING.sub("…", line.rstrip()) for line in shown]
    given = [_CHANGING.sub("…", line.rstrip()) for line in printed]
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "…" else f"{re.escape(line)}\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in given)) is not None
