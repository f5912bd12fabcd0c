"""Would the proofs and the tests notice if one thing were wrong?  Change it, and ask those that are to see it.

    python tools/mutate.py encodings                       a sample of a subject; goes on where it was
    python tools/mutate.py proofs --only 'kernel.py:derive' --limit 0   every mutant whose id contains that
    python tools/mutate.py --list kernels                  their ids and texts
    python tools/mutate.py --write tables/mutants.md         the table of what is known

Mutants are made by operators on the syntax tree (tools/mutation_operators.py) of the functions that tools/mutants.py
names, and have ids `file:function:operator:number`.  A sample is drawn by `--seed`, at most `--limit` of a function.
Each mutant runs on a copy of the package that stands before the installed one.  It is

- *caught* if `verify` answers `Fails` (encodings), or a test fails that passes without it (all else);
- *stopped* if it raises an exception, or is not settled within the time: nothing is claimed of it, so it is seen;
- *equal* if the proof holds for every instruction that is asked, and the golden vectors agree, or tools/mutants.py says
  why nothing changes;
- *survived* otherwise: the exit status is 1.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import functools
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import mutants
from mutants import EQUAL, EXTRA, GOLDEN, SUBJECTS, Target
from mutation_operators import called, operators

ROOT = Path(__file__).resolve().parent.parent
_MEMORY = 8 << 30  #: bytes of address space: a mutant may shift by anything

# ---- mutants -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One change of a file of the package."""

    file: str
    function: str
    operator: str
    number: int
    source: bytes  #: of the whole file
    start: int  #: where in it the text that is changed begins
    end: int
    new: str

    @property
    def id(self) -> str:
        return f"{self.file}:{self.function}:{self.operator}:{self.number}"

    @property
    def old(self) -> str:
        """The text that is changed."""
        return self.source[self.start : self.end].decode()

    @property
    def text(self) -> str:
        """The whole file, changed."""
        return (self.source[: self.start] + self.new.encode() + self.source[self.end :]).decode()

    @property
    def change(self) -> str:
        """The change in one line."""
        short = [re.sub(r"\s+", " ", each) for each in (self.old, self.new or "nothing")]
        return " → ".join(each if len(each) < 90 else f"{each[:87]}…" for each in short)


def _sites(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
    """The nodes that may be changed, in the order of the text, with the names of the functions they stand in."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        inside = f"{inside}.{node.name}".removeprefix("<module>.")
        children: list[ast.AST] = list(node.body)
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        # no assertion, annotation, message or docstring, and nothing in formatted text, which has no place of its own
        if isinstance(child, ast.Raise):
            yield inside, child
        if isinstance(
            child, ast.Assert | ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arguments
        ):
            continue
        text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if text or called(child) == "TypeVar":
            continue
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield inside, child
        yield from _sites(child, inside)


def _changed(node: ast.AST, operator: str) -> ast.AST:
    """The part of a node that an operator changes."""
    if isinstance(node, ast.If | ast.While):
        return node.test
    if isinstance(node, ast.For | ast.comprehension) and operator == "iterate":
        return node.iter
    return node


def _place(node: ast.AST, lines: Sequence[int]) -> tuple[int, int]:
    """Where a node's text begins and ends, in bytes."""
    first, last = (node.target, node.ifs[-1]) if isinstance(node, ast.comprehension) else (node, node)
    assert isinstance(first, ast.expr | ast.stmt)
    assert isinstance(last, ast.expr | ast.stmt)
    assert last.end_lineno is not None
    assert last.end_col_offset is not None
    return lines[first.lineno - 1] + first.col_offset, lines[last.end_lineno - 1] + last.end_col_offset


def _written(node: ast.AST | None) -> str:
    """The text that takes a node's place."""
    if node is None:
        return "pass"
    text = ast.unparse(ast.fix_missing_locations(node))
    if isinstance(node, ast.comprehension):
        return text.strip().removeprefix("for ")
    if isinstance(node, ast.stmt):
        return text
    return (
        text
        if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.List)
        else f"({text})"
    )


def of_source(file: str, source: bytes) -> tuple[Mutant, ...]:
    """Every mutant of a file's text, in the order of the text."""
    tree = ast.parse(source)
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    sites = list(_sites(tree, "<module>"))
    names: dict[str, set[str]] = defaultdict(set)
    for function, node in sites:
        names[function] |= {getattr(node, "id", ""), getattr(node, "attr", "")}
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef):
            truth = {"-> bool"} if isinstance(each.returns, ast.Name) and each.returns.id == "bool" else set()
            for inside in [name for name in names if name.split(".")[-1] == each.name]:
                names[inside] |= {argument.arg for argument in each.args.args} | truth
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for function, node in sites:
        for operator, other in operators(node, frozenset(names[function])):
            counts[function, operator] += 1
            place = _place(_changed(node, operator), lines)
            number = counts[function, operator]
            found.append(Mutant(file, function, operator, number, source, *place, _written(other)))
    return tuple(found)


@functools.cache
def of_file(file: str) -> tuple[Mutant, ...]:
    """Every mutant of a file of the package."""
    return of_source(file, path_of(file).read_bytes())


def path_of(file: str) -> Path:
    """A file of the package, that of an algorithm in its folder too.  Raises FileNotFoundError if there is none."""
    path = ROOT / "mmaformal" / file
    folder, _, name = file.removeprefix("encodings/").partition("/")
    beside = ROOT / "mmaformal" / "encodings" / name.removesuffix(".py") / f"{folder}.py"
    for each in (path, beside):
        if each.exists():
            return each
    raise FileNotFoundError(file)


def extra(target: Target) -> list[Mutant]:
    """The changes by hand that no operator makes.  Raises ValueError if a text to change is not there once."""
    found = []
    for part in re.split(r"\n(?=[^-+])", EXTRA.strip("\n")):
        head, *lines = part.split("\n")
        file, what = head.split(": ", 1)
        if file == target.file:
            old, new = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
            source, text = path_of(file).read_bytes(), old.encode()
            if source.count(text) != 1:
                raise ValueError(f"{file} has {old!r} {source.count(text)} times, not once")
            start = source.index(text)
            found.append(Mutant(file, what, "by hand", 1, source, start, start + len(text), new))
    return found


def of_target(target: Target) -> list[Mutant]:
    """The mutants of a target's functions, and those of its file that are made by hand."""
    made = [m for m in of_file(target.file) if any(fnmatch.fnmatch(m.function, f) for f in target.functions)]
    return made + extra(target)


def sample(target: Target, seed: int, limit: int) -> list[Mutant]:
    """At most `limit` mutants of each function, drawn by a seed, and all that are made by hand; all for 0."""
    by_function = defaultdict(list)
    for mutant in of_target(target):
        by_function[mutant.function].append(mutant)
    drawn = []
    for function, each in by_function.items():
        if limit and len(each) > limit and each[0].operator != "by hand":
            each = random.Random(f"{seed} {target.file}:{function}").sample(each, limit)
        drawn += each
    return sorted(drawn, key=lambda m: m.start)


# ---- asking ------------------------------------------------------------------------------------------------------


def layout(folder: Path, mutant: Mutant | None) -> None:
    """Copy the package to a folder, with the folders that its links lead to, and a mutant's change."""
    for name in ("mmaformal", "encodings", "queries"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored, symlinks=True)
    if mutant is not None:
        place = path_of(mutant.file).relative_to(ROOT)
        (folder / place).write_text(mutant.text, encoding="utf-8")


#: A program that runs in a folder, on the package that is there and on no other.
_HERE = """
import sys, mmaformal, mmaformal.encodings.smt, mmaformal.queries
folder = sys.argv.pop(1)
for module in (mmaformal, mmaformal.encodings.smt, mmaformal.queries):
    assert module.__file__.startswith(folder), f"{module.__file__} is not the mutant's"
"""
_PYTEST = f"{_HERE}\nimport pytest\nsys.exit(pytest.main(sys.argv[1:]))"
_PROVE = f"""{_HERE}
import json
from mmaformal.architectures import ARCHITECTURES
from mmaformal.queries.verify import verify
from mmaformal.solver.evidence import EvidenceStore, recording
for each in sys.argv[2:]:
    arch, _, name = each.partition(" ")
    with EvidenceStore(sys.argv[1]) as store, recording(store):  # what is asked of the next mutant too is known
        said = verify(ARCHITECTURES[arch][name], timeout=150).to_json()
    print(json.dumps({{"answer": said["answer"], "why": said.get("why", ""), "instruction": each}}), flush=True)
    if said["answer"] != "holds":
        break
"""


def _run(code: str, words: Sequence[str], mutant: Mutant | None, timeout: float) -> tuple[int, str]:
    """The status and output of code on a copy; -1 if it took too long."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        layout(Path(name), mutant)
        cache = Path(name) / "cache"
        environment = {
            **os.environ,
            "PYTHONPATH": name,
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": str(cache),
        }
        process = subprocess.Popen(
            [sys.executable, "-c", code, name, *words],
            cwd=name,
            env=environment,
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY)),
        )
        try:
            out = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return -1, process.communicate()[0]
    return process.returncode, out


def _tested(tests: Sequence[str], mutant: Mutant | None, timeout: float) -> tuple[str, str]:
    """Run tests and return what they say: passes, fails or stopped, and which failed."""
    options = ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-x", "--tb=line"]
    options += ["-m", "" if any("::" in each for each in tests) else "not slow"]
    options += ["--every", "-p", "no:cacheprovider", "-p", "no:randomly"]
    # The package is imported before pytest is, which would rewrite its assertions since it has a plugin.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    words = [str(ROOT / each) if each.startswith("tests/") else each for each in tests]
    status, out = _run(_PYTEST, [*options, *words], mutant, timeout)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?::[^\n]*?)(?: - .*)?$", out, re.MULTILINE)
    if status == 0:
        return "passes", ""
    if failed and status == 1:
        return "fails", failed[1].rpartition("tests/")[2]
    return "stopped", "time" if status == -1 else out.strip().rpartition("\n")[2][-160:]


def _proved(instructions: Sequence[str], mutant: Mutant | None, timeout: float) -> tuple[str, str]:
    """Return what the proof that both encodings agree says, of one instruction after the other until it fails."""
    evidence = ROOT / "build" / "mutants.db"
    evidence.parent.mkdir(exist_ok=True)
    status, out = _run(_PROVE, [str(evidence), *instructions], mutant, timeout)
    said = [json.loads(line) for line in out.splitlines() if line.startswith('{"answer"')]
    if status == -1:
        return "stopped", "time"
    if status != 0:
        return "stopped", out.strip().rpartition("\n")[2][-160:]
    last = said[-1]
    if last["answer"] == "holds":
        return "passes", ""
    return ("fails" if last["answer"] == "fails" else "stopped"), f"{last['instruction']}: {last['why']}"[
        :160
    ]


def ask(target: Target, mutant: Mutant | None, timeout: float) -> tuple[str, str]:
    """Ask a target's proofs, or its tests, about a mutant; the golden vectors too about one that is proved."""
    if not target.proved:
        return _tested(target.asked, mutant, timeout)
    said = _proved(target.asked, mutant, timeout)
    return _tested(GOLDEN, mutant, timeout) if said[0] == "passes" and mutant is not None else said


def verdict(target: Target, mutant: Mutant, status: str) -> str:
    """Return the name of a mutant's end, given what was said of it."""
    if status == "passes":
        return "equal" if target.proved or reason(mutant) else "survived"
    return "caught" if status == "fails" else "stopped"


def reason(mutant: Mutant) -> str:
    """Why a mutant changes nothing, as written down; empty if it is not."""
    return next(
        (why for f, old, new, why in EQUAL if f == mutant.file and (old, new) == (mutant.old, mutant.new)), ""
    )


def key(target: Target, mutant: Mutant) -> str:
    """A digest of what is changed and who is asked."""
    return hashlib.sha256("\n".join((mutant.id, mutant.text, *target.asked)).encode()).hexdigest()[:24]


# ---- the table ---------------------------------------------------------------------------------------------------


def table(known: dict[str, dict[str, str]], path: str) -> str:
    """The page of what is known of all subjects."""
    lines = [mutants.HEAD.format(path=path)]
    lines += [
        "| subject | can be made | asked | caught | stopped | equal | survived |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    by_operator: dict[str, Counter[str]] = defaultdict(Counter)
    noted: list[str] = []
    for subject, targets in SUBJECTS.items():
        made, counts = 0, Counter[str]()
        for target in targets:
            for mutant in of_target(target):
                made += 1
                entry = known.get(key(target, mutant))
                if entry is None:
                    continue
                said = verdict(target, mutant, entry["status"])
                counts[said] += 1
                by_operator[mutant.operator][said] += 1
                if said in ("equal", "survived"):
                    why = reason(mutant) or ("proved" if said == "equal" else "")
                    cells = f"`{mutant.file}` {mutant.function}", f"`{mutant.change}`", said, why
                    noted.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        numbers = (
            made,
            counts.total(),
            *(counts[each] for each in ("caught", "stopped", "equal", "survived")),
        )
        lines.append(f"| {subject} | " + " | ".join(map(str, numbers)) + " |")
    lines += ["", "| operator | asked | caught | stopped | equal | survived |", "|---|--:|--:|--:|--:|--:|"]
    for operator, counts in sorted(by_operator.items()):
        numbers = (counts.total(), *(counts[each] for each in ("caught", "stopped", "equal", "survived")))
        lines.append(f"| {operator} | " + " | ".join(map(str, numbers)) + " |")
    lines += ["", mutants.NOTED, "| where | change | verdict | why |", "|---|---|---|---|", *noted]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutate.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("subject", nargs="?", choices=SUBJECTS, help="what is changed")
    parser.add_argument(
        "--only", metavar="TEXT", action="append", default=[], help="in a mutant's id; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument(
        "--limit", type=int, default=1, metavar="N", help="of each function; 0: all (default 1)"
    )
    parser.add_argument("--most", type=int, default=0, metavar="N", help="of the subject; 0: all (default)")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="for each (default 300)")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutants.jsonl", metavar="FILE")
    parser.add_argument("--write", metavar="FILE", help="write the table of what is known")
    args = parser.parse_args(argv)
    lines = args.results.read_text(encoding="utf-8").splitlines() if args.results.exists() else []
    known: dict[str, dict[str, str]] = {entry["key"]: entry for entry in map(json.loads, lines)}
    chosen = [
        (target, mutant)
        for target in SUBJECTS.get(args.subject, ())
        for mutant in sample(target, args.seed, args.limit)
        if not args.only or any(text in mutant.id for text in args.only)
    ]
    if args.most and len(chosen) > args.most:
        chosen = random.Random(args.seed).sample(chosen, args.most)

    @functools.cache
    def pass_unchanged(tests: tuple[str, ...]) -> bool:
        return _tested(tests, None, 4 * args.timeout)[0] == "passes"

    args.results.parent.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    for target, mutant in chosen:
        if args.list:
            print(f"{mutant.id}: {mutant.change}")
            continue
        name = key(target, mutant)
        if (
            name not in known or verdict(target, mutant, known[name]["status"]) == "survived"
        ):  # tests are mended
            status, by = ask(target, mutant, args.timeout)
            if status != "passes" and not pass_unchanged(GOLDEN if target.proved else target.asked):
                print(f"mutate.py: what {mutant.file} is asked fails without a change", file=sys.stderr)
                return 2
            known[name] = {"key": name, "id": mutant.id, "status": status, "by": by}
            with args.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[name]) + "\n")
        said = verdict(target, mutant, known[name]["status"])
        counts[said] += 1
        print(f"{said:8}  {mutant.id}: {mutant.change} ({known[name]['by']})", flush=True)
    if counts:
        print(", ".join(f"{counts[each]} {each}" for each in ("caught", "stopped", "equal", "survived")))
    if args.write:
        Path(args.write).write_text(table(known, args.write), encoding="utf-8")
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
