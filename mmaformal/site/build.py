"""`mmaformal atlas build` and `atlas check`: the site, written into a folder, or compared with one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from time import monotonic

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.papers import PAPERS, resting_on
from mmaformal.display import ShortRepr, counted
from mmaformal.site import finding_pages, pages
from mmaformal.site.addresses import page_address, proof_address
from mmaformal.site.bundle import archive, package_files
from mmaformal.site.known_pairs import pair_slug
from mmaformal.site.pair_pages import (
    pair_address,
    pair_page,
    pair_words,
    pairs_page,
    types_address,
    types_page,
)
from mmaformal.site.proofs import ProofFolder, pair_claim, proof_page
from mmaformal.site.records import NO_PROPERTIES, Atlas, PropertyTable, shipped, unit_bounds
from mmaformal.site.search import device_words, search_words

#: Files of the npm packages that pages load: Python for browsers, and z3 for browsers.
PACKAGES = {
    "pyodide": (
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "python_stdlib.zip",
        "pyodide-lock.json",
    ),
    "z3-solver": ("build/z3-built.js", "build/z3-built.wasm"),
}

#: Where npm puts packages, below the folder that it was asked in.
NPM = Path("node_modules")


@dataclass(frozen=True, repr=False)
class SiteParts(ShortRepr):
    """The parts that a site is made of; one that is not named is looked for in the checkout and in node_modules."""

    pyodide: Path | None = None  #: a folder of the npm package of that name
    z3: Path | None = None  #: a folder of the npm package z3-solver
    properties: Path | None = None  #: a table as tables/properties.md
    bounds: Path | None = None  #: a table as tables/unit-bounds.md
    pairs: Path | None = None  #: a store as tables/pairs.jsonl
    proofs: Path | None = None  #: a folder as `mmaformal atlas prove` fills


@dataclass(frozen=True, repr=False)
class BuiltSite(ShortRepr):
    """A site that was written: where, how many pages, in which time, and what it lacks."""

    out: Path
    pages: int
    seconds: float
    pairs: int
    missing: int  #: pairs that no answer is known of
    lacks: dict[str, str] = field(default_factory=dict)  #: what was not there, with what to do about it

    @property
    def summary(self) -> str:
        """A line on the pages, one on pairs, and one for each thing that is missing."""
        lines = [
            f"{self.out}: {counted(self.pages, 'page')} in {self.seconds:.0f} s",
            f"`mmaformal serve {self.out}` shows them",
            f"{counted(self.pairs, 'pair')} of instructions, {self.missing} missing",
        ]
        return "\n".join([*lines, *(f"no {what}: {how}" for what, how in self.lacks.items())])


@dataclass(frozen=True, repr=False)
class CheckedSite(ShortRepr):
    """A site compared with what its data give: the files that are others, and those that are not there."""

    out: Path
    files: int
    edited: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def verdict(self) -> str:
        return "differs" if self.edited or self.missing else "as built"

    @property
    def summary(self) -> str:
        """A line for each file that is not what the data give, and one that counts."""
        lines = [
            *(f"{name}: not what the data give" for name in self.edited),
            *(f"{name}: missing" for name in self.missing),
        ]
        wrong = len(lines)
        last = f"{self.out}: {counted(self.files, 'file')}, {wrong or 'none'} other than the data give"
        return "\n".join([*lines[:_SHOWN], *([f"and {wrong - _SHOWN} more"] if wrong > _SHOWN else []), last])


def build_site(
    out: Path, given: SiteParts | None = None, *, told: Callable[[str], object] | None = None
) -> BuiltSite:
    """Write the site into a folder: pages, data, the playground with its Python, proofs with their scripts.

    `told` is called with a line of text as the work goes on.  Raises NoPackageError where a folder that is named lacks
    a file, OSError and ValueError where a table or a store cannot be read.
    """
    start, say = monotonic(), told or (lambda _: None)
    known = _read(given or SiteParts(), say)
    written = 0
    for name, content in _contents(known, say):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written += name.endswith(".html")
    words = [each.word for each in known.atlas.pairs.verdicts]
    missing = words.count("not compared")
    return BuiltSite(out, written, monotonic() - start, len(words), missing, known.lacks)


def check_site(
    out: Path, given: SiteParts | None = None, *, told: Callable[[str], object] | None = None
) -> CheckedSite:
    """Make every file of a site anew, and compare it with what its folder has: a page edited by hand is another.

    Raises what `build` raises, and NotADirectoryError where there is no such folder.
    """
    if not out.is_dir():
        raise NotADirectoryError(f"{out} is no folder: `mmaformal atlas build --out {out}` writes it")
    say = told or (lambda _: None)
    files, edited, missing = 0, [], []
    for name, content in _contents(_read(given or SiteParts(), say), say):
        files += 1
        if not (out / name).is_file():
            missing.append(name)
        elif (out / name).read_bytes() != content:
            edited.append(name)
    return CheckedSite(out, files, tuple(edited), tuple(missing))


#: Files that `CheckedSite` lists, at most.
_SHOWN = 20


@dataclass(frozen=True, repr=False)
class _Known(ShortRepr):
    """The data that pages are made of."""

    atlas: Atlas
    runtime: dict[str, list[Path]]  #: files of npm packages
    proofs: ProofFolder | None
    lacks: dict[str, str]


def _read(given: SiteParts, say: Callable[[str], object]) -> _Known:
    lacks: dict[str, str] = {}

    def table(named: Path | None, name: str, what: str, how: str) -> Path | None:
        path = named or shipped(name)
        if named is None and not path.is_file():
            lacks[what] = how
            return None
        return path

    properties = table(given.properties, "properties.md", "table of properties", "--properties FILE")
    bounds = table(given.bounds, "unit-bounds.md", "table of bounds", "--bounds FILE")
    pairs = table(given.pairs, "pairs.jsonl", "store of pairs", "`mmaformal atlas compare` fills one")
    folder = ProofFolder(given.proofs) if given.proofs is not None else None
    if folder is None:
        lacks["proofs to check"] = "`mmaformal atlas prove` fills a folder, --proofs names it"
    runtime = {name: _package(getattr(given, option), name, lacks) for name, option in _OPTIONS.items()}
    say("reading what is known")
    atlas = Atlas(
        NO_PROPERTIES if properties is None else PropertyTable.read(properties.read_text(encoding="utf-8")),
        {} if bounds is None else unit_bounds(bounds.read_text(encoding="utf-8")),
        pairs,
        {} if folder is None else folder.claims,
    )
    return _Known(atlas, runtime, folder, lacks)


def _contents(known: _Known, say: Callable[[str], object]) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site by its path."""
    atlas, runtime, folder = known.atlas, known.runtime, known.proofs
    texts = _texts(atlas, bool(runtime["pyodide"]), bool(runtime["z3-solver"]), say)
    yield from ((name, text.encode()) for name, text in texts)
    yield from ((f"data/{name}", text.encode()) for name, text in _data(atlas))
    for each in files("mmaformal.site").joinpath("static").iterdir():
        yield each.name, each.read_bytes()
    yield "playground.zip", archive()
    for name, some in runtime.items():
        yield from ((f"{name}/{file.name}", file.read_bytes()) for file in some)
    if folder is not None:
        for sha256 in sorted({x.sha256 for claim in folder.claims.values() for x in claim.lemmas}):
            script = folder.script(sha256)
            yield script.relative_to(folder.path).as_posix(), script.read_bytes()


_OPTIONS = {"pyodide": "pyodide", "z3-solver": "z3"}


def _package(named: Path | None, name: str, lacks: dict[str, str]) -> list[Path]:
    """The files of a package that pages load; none, and a line in `lacks`, where it is not there."""
    where = named or NPM / name
    if named is None and not where.is_dir():
        lacks[f"{name} for browsers"] = f"`npm install {name}`, or --{_OPTIONS[name]} DIR"
        return []
    return package_files(where, name, PACKAGES[name])


def _texts(atlas: Atlas, pyodide: bool, z3: bool, say: Callable[[str], object]) -> Iterator[tuple[str, str]]:
    """Every page, and every program that one links, by its path."""
    yield "index.html", pages.index(atlas)
    yield "playground.html", pages.playground_page(pyodide)
    yield "questions.html", pages.jobs_page()
    yield "pairs.html", pairs_page(atlas.pairs)
    yield "sources.html", finding_pages.sources_page(atlas)
    yield "generations.html", finding_pages.generations_page(atlas)
    yield from finding_pages.written_sources(atlas).items()
    for name, architecture in ARCHITECTURES.items():
        if architecture.instructions:
            yield f"architecture/{name}.html", pages.architecture_page(atlas, architecture)
    for name in atlas.properties.statements:
        yield f"property/{name}.html", pages.property_page(atlas, name)
    for i in atlas.instructions:
        yield page_address(i), pages.instruction_page(atlas, i)
    for claim in atlas.proofs.values():
        yield proof_address(claim.label, claim.property), proof_page(claim, z3)
    for slug, some in atlas.pairs.types().items():
        yield types_address(slug), types_page(atlas.pairs, slug, some)
    for number, (key, pair) in enumerate(atlas.pairs.questions.items(), 1):
        proved, path = pair_claim(pair_slug(pair)), pair_address(pair)
        made = pair_page(atlas.pairs, key, proof_address(*proved) if proved in atlas.proofs else "")
        yield path, made.text
        for suffix, program in made.programs.items():
            yield path.removesuffix("html") + suffix, program
        if number % 100 == 0:
            say(f"{number} of {len(atlas.pairs.questions)} pairs")


def _data(atlas: Atlas) -> Iterator[tuple[str, str]]:
    """Yield the tables as CSV and JSON, what the playground lists, and what the search finds beside the first page."""
    for name, rows in (("instructions", atlas.rows()), ("pairs", [*atlas.pairs.rows()])):
        yield f"{name}.json", _json(rows)
        yield f"{name}.csv", _csv(rows)
    yield "catalogue.json", _json(atlas.catalogue())
    found = [
        [
            f"{pair.x.label} and {pair.y.label}",
            f"{pair.x.spec.types} pair",
            pair_address(pair),
            pair_words(atlas.pairs, key),
        ]
        for key, pair in atlas.pairs.questions.items()
    ]
    found += [
        [some[0].spec.types, "map of types", types_address(slug), " ".join(search_words(some[0]))]
        for slug, some in atlas.pairs.types().items()
    ]
    found += [
        [name, "source", f"source/{finding_pages.source_slug(name)}.html"]
        for name in PAPERS
        if resting_on(name, atlas.instructions)
    ]
    found += [
        [
            f"{x.property} of {x.label}".replace(" of pair ", " and "),
            "proof",
            proof_address(x.label, x.property),
        ]
        for x in atlas.proofs.values()
    ]
    found += [
        [question, "command", "index.html", f"{command} {answer}"]
        for question, answer, command in pages.tasks(atlas)
    ]
    yield "search.json", _json(found)
    yield "devices.json", _json(device_words())


def _csv(rows: Sequence[dict[str, object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
