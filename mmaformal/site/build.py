"""`mmaformal atlas build`: the site, written into a folder."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from mmaformal.architectures import ARCHITECTURES
from mmaformal.display import ShortRepr, counted
from mmaformal.site import pages
from mmaformal.site.bundle import archive, pyodide_files
from mmaformal.site.records import NO_PROPERTIES, Atlas, PropertyTable, shipped_page

#: Where npm puts Python for browsers, below the folder that it was asked in.
NPM = Path("node_modules", "pyodide")


@dataclass(frozen=True, repr=False)
class BuiltSite(ShortRepr):
    """A site that was written: where, how many pages, and what it has."""

    out: Path
    pages: int
    pyodide: bool  #: whether the playground has its Python
    properties: bool  #: whether there was a table of properties

    @property
    def summary(self) -> str:
        """One line, and one for each thing that is missing."""
        lines = [f"{self.out}: {counted(self.pages, 'page')}; `mmaformal serve {self.out}` shows them"]
        if not self.pyodide:
            lines.append(
                "the playground has no Python: `npm install pyodide`, then --pyodide node_modules/pyodide"
            )
        if not self.properties:
            lines.append("no table of properties: --properties tables/properties.md of a checkout")
        return "\n".join(lines)


def build(out: Path, *, pyodide: Path | None = None, properties: Path | None = None) -> BuiltSite:
    """Write the site into a folder: pages, data, and the playground with its Python.

    `pyodide`: a folder of the npm package of that name (default: node_modules/pyodide, where it is there).
    `properties`: a table as tables/properties.md (default: that of the checkout).  Raises NoPyodideError where the
    folder that is named lacks a file, OSError and ValueError where a table cannot be read.
    """
    table = properties or shipped_page()
    known = properties is not None or table.is_file()
    atlas = Atlas(PropertyTable.read(table.read_text(encoding="utf-8")) if known else NO_PROPERTIES)
    if pyodide is None and NPM.is_dir():
        pyodide = NPM
    runtime = [] if pyodide is None else pyodide_files(pyodide)
    written = {
        "index.html": pages.index(atlas),
        "playground.html": pages.playground_page(bool(runtime)),
    }
    for name, architecture in ARCHITECTURES.items():
        if architecture.instructions:
            written[f"architecture/{name}.html"] = pages.architecture_page(atlas, architecture)
    for name in atlas.properties.statements:
        written[f"property/{name}.html"] = pages.property_page(atlas, name)
    for i in atlas.instructions:
        written[pages.address(i)] = pages.instruction_page(atlas, i)
    for name, text in written.items():
        _file(out, name).write_text(text, encoding="utf-8")
    _data(out, atlas)
    for each in files("mmaformal.site").joinpath("static").iterdir():
        _file(out, each.name).write_bytes(each.read_bytes())
    _file(out, "playground.zip").write_bytes(archive())
    for file in runtime:
        shutil.copyfile(file, _file(out, f"pyodide/{file.name}"))
    return BuiltSite(out, len(written), bool(runtime), known)


def _file(out: Path, name: str) -> Path:
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _data(out: Path, atlas: Atlas) -> None:
    """Write the tables as CSV and JSON, and what the playground lists."""
    rows = atlas.rows()
    _file(out, "data/instructions.json").write_text(
        json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8"
    )
    with _file(out, "data/instructions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    _file(out, "data/catalogue.json").write_text(json.dumps(atlas.catalogue()), encoding="utf-8")
