"""Would the tests notice?  Change one thing in the sources and run the tests that are to see it.

    python tools/tested.py kernel_mutants                         every mutant of that module; goes on where it was
    python tools/tested.py kernel_mutants --only 'chunk'          those whose file or words contain that
    python tools/tested.py kernel_mutants --write docs/kernel-mutants.md

`tools/mutate.py` asks the proofs that both encodings agree; this asks tests, and so does for any source: kernels, the
GEMM, searches.  A mutant is *caught* if a test fails that passes without it, together with those that other mutants
name of the same file, or alone.  It is *no change* if all pass and the module of mutants says why that is right.
Anything else is *missed*, and the exit status is 1.  Each runs on a copy of the package that stands before the
installed one.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NotRequired, TypedDict

ROOT = Path(__file__).resolve().parent.parent

#: where sources stand in the package as it is installed
PLACES = {"mmaformal": "mmaformal", "encodings": "mmaformal/encodings", "queries": "mmaformal/queries"}


@dataclass(frozen=True)
class Mutant:
    """One change, and the tests (node ids of pytest) that are to see it."""

    file: str  #: below the repository
    what: str
    old: str  #: there once
    new: str
    tests: tuple[str, ...]
    same: str = ""  #: why nothing is different, where that is so


def layout(folder: Path, mutant: Mutant | None = None) -> None:
    """The package as it is installed, in a folder, with a mutant's change.

    Raises ValueError if the text to change is not there once.
    """
    ignored = shutil.ignore_patterns("__pycache__")
    for source, target in PLACES.items():
        shutil.copytree(ROOT / source, folder / target, dirs_exist_ok=True, ignore=ignored)
    if mutant is None:
        return
    top, _, rest = mutant.file.partition("/")
    path = folder / PLACES[top] / rest
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} has {mutant.old!r} {text.count(mutant.old)} times, not once")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


#: pytest on the package in a folder, and on no other
_PYTEST = """
import sys, mmaformal, mmaformal.encodings.smt, mmaformal.queries, pytest
folder = sys.argv.pop(1)
for module in (mmaformal, mmaformal.encodings.smt, mmaformal.queries):
    assert module.__file__.startswith(folder), f"{module.__file__} is not the mutant's"
sys.exit(pytest.main(sys.argv[1:]))
"""


def _absolute(test: str) -> str:
    """A test's node id from anywhere; options as they are."""
    return str(ROOT / test) if test.startswith("tests/") else test


class Said(TypedDict):
    """What the tests said of a mutant."""

    status: str
    by: str
    key: NotRequired[str]
    what: NotRequired[str]


def run(tests: Sequence[str], mutant: Mutant | None, timeout: float) -> Said:
    """What pytest says of some tests: its exit status, and the first test that failed."""
    with tempfile.TemporaryDirectory() as name:
        layout(Path(name), mutant)
        command = [
            sys.executable,
            "-c",
            _PYTEST,
            name,
            "--rootdir",
            str(ROOT),
            "-c",
            str(ROOT / "pyproject.toml"),
        ]
        command += [
            "-x",
            "-q",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "-m",
            "",
        ]  # terms take long to be shown
        command += [_absolute(test) for test in tests]
        environment = {**os.environ, "PYTHONPATH": name, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=name,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"status": "time limit", "by": ""}
    failed = re.search(r"^FAILED (\S+?::[^\n]*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode > 1 or (done.returncode == 1 and not failed):
        return {"status": "broken", "by": (done.stdout + done.stderr).strip().rpartition("\n")[2]}
    return {
        "status": "fails" if failed else "passes",
        "by": f"tests/{failed[1].rpartition('tests/')[2]}" if failed else "",
    }


def same_file(tests: tuple[str, ...], every: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Some tests, with all others of their files: starting pytest takes longer than most of them."""

    def file(test: str) -> str:
        return test.partition("::")[0]

    if not all("::" in test for test in tests):  # there are options among them
        return tests
    files = set(map(file, tests))
    found = {test for each in every if {*map(file, each)} <= files for test in each if "::" in test}
    return tuple(sorted(found))


def verdict(mutant: Mutant, status: str) -> str:
    expected = {"passes": "no change"} if mutant.same else {"fails": "caught"}
    return expected.get(status, "MISSED")


def key(mutant: Mutant) -> str:
    """Of a mutant, its file, and the files of its tests."""
    digest = hashlib.sha256(repr(mutant).encode())
    files = {test.partition("::")[0] for test in mutant.tests if test.startswith("tests/")}
    for name in sorted({mutant.file, *files}):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


HEAD = """\
# {title}

{what} Generated by `python tools/tested.py {module} --write {path}`; do not edit.

- **caught** ({caught}): a test fails, the one that is named.
- **no change** ({same}): all its tests pass, and the reason why the change changes no result was written down before.
- **missed** ({missed}): anything else.

| file | what is changed | verdict | by, or why |
|---|---|---|---|
"""


def table(module: ModuleType, name: str, path: str, entries: Sequence[tuple[Mutant, Said]]) -> str:
    verdicts = Counter(verdict(mutant, found["status"]) for mutant, found in entries)
    head = HEAD.format(
        title=module.TITLE,
        what=module.WHAT,
        module=name,
        path=path,
        caught=verdicts["caught"],
        same=verdicts["no change"],
        missed=verdicts["MISSED"],
    )
    rows = [
        (f"`{m.file}`", m.what, verdict(m, found["status"]), m.same or found["by"].replace("tests/", ""))
        for m, found in entries
    ]
    return (
        head + "\n".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |" for row in rows) + "\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tested.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("module", help="the module of mutants, in tools/")
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="in a mutant's file or words; repeatable"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="default build/<module>.jsonl")
    parser.add_argument("--write", metavar="FILE", help="write the table")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--timeout", type=float, default=600, metavar="S", help="for each mutant (default 600)"
    )
    args = parser.parse_args(argv)
    module = importlib.import_module(args.module)
    results = args.results or ROOT / "build" / f"{args.module}.jsonl"
    chosen = [m for m in module.MUTANTS if not args.only or any(w in f"{m.file} {m.what}" for w in args.only)]
    results.parent.mkdir(parents=True, exist_ok=True)
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    known: dict[str, Said] = {entry["key"]: entry for entry in map(json.loads, lines)}

    @functools.cache
    def sound(tests: tuple[str, ...]) -> bool:
        return bool(run(tests, None, args.timeout * len(tests))["status"] == "passes")

    def passes_without(mutant: Mutant) -> bool:
        together = same_file(mutant.tests, [m.tests for m in chosen])
        return sound(together) or (together != mutant.tests and sound(mutant.tests))

    def settle(mutant: Mutant) -> Said:
        entry = known.get(key(mutant))
        if entry is None:
            found = run(mutant.tests, mutant, args.timeout)
            if found["status"] == "fails" and not passes_without(mutant):
                found = {"status": "broken", "by": "its tests fail without it"}
            entry = {"key": key(mutant), "what": mutant.what, **found}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        print(
            f"{verdict(mutant, entry['status']):9}  {mutant.file}: {mutant.what} ({entry['by']})", flush=True
        )
        return entry

    with ThreadPoolExecutor(args.jobs) as pool:
        entries = list(zip(chosen, pool.map(settle, chosen), strict=True))
    verdicts = Counter(verdict(mutant, entry["status"]) for mutant, entry in entries)
    print(", ".join(f"{verdicts[name]} {name}" for name in ("caught", "no change", "MISSED")))
    if args.write:
        Path(args.write).write_text(table(module, args.module, args.write, entries), encoding="utf-8")
    return 1 if verdicts["MISSED"] else 0


if __name__ == "__main__":
    sys.exit(main())
