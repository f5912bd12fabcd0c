"""The documentation is built as a site, warnings being errors; no link is dead, and every public name has an entry."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import mmaformal

pytest.importorskip("material", reason="no mkdocs: pip install 'mmaformal[docs]'")
pytest.importorskip("mkdocstrings", reason="no mkdocstrings: pip install 'mmaformal[docs]'")

from mkdocs_pages import ROOT, address, origin, relinked

TABLES = sorted((ROOT / "tables").glob("*.md"))


class Page(HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")
            if (tag, name) in (("a", "href"), ("link", "href"), ("script", "src"), ("img", "src")):
                self.links.append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    known = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return out


def test_no_link_of_the_site_is_dead(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data", "mailto"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else None
            if not target.is_file() or (
                anchors is not None and parts.fragment and unquote(parts.fragment) not in anchors
            ):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []
    assert len(pages) > 60


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|<link[^>]*stylesheet[^>]*href)="https?://[^"]*', text) == []


def test_every_public_function_and_class_has_an_entry(site: Path) -> None:
    found = Page(site / "api.html").anchors
    names = [f"{place}.{name}" for name, place in mmaformal._LAZY.items() if not name.isupper()]
    assert [name for name in names if name not in found] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_tables_are_pages(site: Path, table: Path) -> None:
    rows = [line for line in table.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    text = (site / "tables" / f"{'index' if table.stem == 'README' else table.stem}.html").read_text(
        encoding="utf-8"
    )
    assert text.count("<tr") >= len(rows) - 2 * text.count("<table")


def test_links_lead_to_the_sites_pages() -> None:
    here = ROOT / "docs" / "tutorials" / "first.md"
    said = "[a](../../tables/evidence.md) [b](../guide.md#prove) [c](https://a.b/c.md) [d](../../examples/own_unit.py)"
    assert relinked(said, here) == (
        "[a](../tables/evidence.md) [b](../guide.md#prove) [c](https://a.b/c.md) [d](../source/examples/own_unit.py.md)"
    )
    for path in (here, TABLES[0], ROOT / "examples" / "own_unit.py"):
        assert origin(address(path)) == path
