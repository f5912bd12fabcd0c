"""Hooks of mkdocs (mkdocs.yml): pages of the site that are no files of docs/, and links that lead to them.

- tables/*.md are pages below `tables/`; they are made by tools, and stay out of docs/.
- A file of the repository that a page links to is a page below `source/`, its text as it is; of a folder, its names.
- `<!-- api -->` in docs/api.md becomes an entry for each public name of `mmaformal`, from its docstring.

On GitHub all links lead to the files themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import mmaformal

ROOT = Path(__file__).resolve().parents[2]

_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LEXERS = {".py": "python", ".sv": "systemverilog", ".v": "verilog", ".c": "c", ".ipynb": "json"}
_API = "<!-- api -->"


def address(path: Path) -> str:
    """Return where the site has a file or folder of the repository, as the name of a page's text."""
    place = path.relative_to(ROOT)
    if place.parts[0] == "docs":
        return place.relative_to("docs").as_posix()
    return place.as_posix() if place.parts[0] == "tables" else f"source/{place.as_posix()}.md"


def origin(uri: str) -> Path:
    """Return the file of the repository that a page was made of: the opposite of `address`."""
    if uri.startswith("source/"):
        return ROOT / uri.removeprefix("source/").removesuffix(".md")
    return ROOT / uri if uri.startswith("tables/") else ROOT / "docs" / uri


def linked(text: str, path: Path) -> Iterator[Path]:
    """Yield what the links of a page lead to, of files of the repository."""
    for _, target, _ in _LINK.findall(_CODE.sub("", text)):
        found = Path(os.path.normpath(path.parent / target))
        if found.exists() and found.is_relative_to(ROOT):
            yield found


def relinked(text: str, path: Path) -> str:
    """Return a page's text with its links as the site has them."""
    here = Path(address(path)).parent

    def now(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(path.parent / found[2]))
        if not target.exists() or not target.is_relative_to(ROOT):
            return found[0]
        return f"{found[1]}{os.path.relpath(address(target), here)}{found[3]}"

    return _LINK.sub(now, text)


def source_page(path: Path) -> str:
    """Return a page that shows a file, or the names in a folder."""
    title = f"# {path.relative_to(ROOT).as_posix()}\n\n"
    if path.is_dir():
        return title + "\n".join(f"- `{each.name}`" for each in sorted(path.iterdir()))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    fence = "`" * 4
    return f"{title}{fence}{_LEXERS.get(path.suffix, 'text')}\n{text}{fence}\n"


def entries() -> str:
    """Return the directives that make the reference of every public function and class."""
    places = mmaformal._LAZY
    public = [name for name in mmaformal.__all__ if name in places]
    kinds = {
        "Functions": [name for name in public if name[0].islower()],
        "Classes": [name for name in public if not name[0].islower() and not name.isupper()],
    }
    lines = []
    for kind, names in kinds.items():
        lines.append(f"## {kind}\n")
        lines += [f"::: {places[name]}.{name}\n" for name in names]
    return "\n".join(lines)


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the tables, and what is linked to."""
    wanted = sorted((ROOT / "tables").glob("*.md"))
    pages = [ROOT / "docs" / each.src_uri for each in files.documentation_pages()]
    for path in [*pages, *wanted]:
        wanted += linked(path.read_text(encoding="utf-8"), path)
    known = set(files.src_uris)
    for path in dict.fromkeys(wanted):
        if (uri := address(path)) not in known and path.suffix != ".png":
            files.append(File.generated(config, uri, content=source_page(path)))
    return files


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in the reference, and lead the links to the site's pages."""
    uri = page.file.src_uri
    text = markdown.replace(_API, entries()) if uri == "api.md" else markdown
    return relinked(text, origin(uri))
