"""Write tests/store anew: run the quick suite, everything asked, and keep what came of it (`tests/support/known.py`).

    python tools/proved.py                 every question is asked: minutes
    python tools/proved.py --add           only what is not known yet is asked, and nothing is forgotten

With `--add` the records are still said to be asked by the code that asked the old ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mmaformal.solver.portfolio import installed_backends, solver_version

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "tests" / "store" / "proved.txt"

#: Hexadecimal digits of a digest that are kept: by chance no two questions have the same 128 bits.
KEPT = 32

_HEAD = "what the quick suite proved; written by `python tools/proved.py`, asked by"


def asking_digest() -> str:
    """A digest of the code by which an answer is got, turned into a proof and recorded."""
    files = [
        *(ROOT / "mmaformal" / "solver").glob("*.py"),
        ROOT / "mmaformal" / "proof" / "kernel.py",
        ROOT / "mmaformal" / "proof" / "claims.py",
        ROOT / "tests" / "support" / "answers.py",
        ROOT / "tests" / "support" / "known.py",
        Path(__file__),
    ]
    read = hashlib.sha256()
    for path in sorted(files):
        read.update(path.name.encode() + b"\n" + path.read_bytes())
    return read.hexdigest()[:KEPT]


@dataclass(frozen=True)
class Proved:
    """Digests of unsatisfiable scripts, by solver and version, and of the code that asked."""

    asked_by: str = ""
    of: Mapping[str, frozenset[str]] = field(default_factory=dict)  #: `bitwuzla 0.9.1`: digests

    @staticmethod
    def read(path: Path = PATH) -> Proved:
        """Return what a file holds; nothing if there is none."""
        asked_by, of, solver = "", dict[str, set[str]](), ""
        with suppress(FileNotFoundError):
            for line in path.read_text(encoding="ascii").splitlines():
                if line.startswith("# "):
                    asked_by = line.rpartition(" ")[2]
                elif " " in line:
                    solver = line
                else:
                    of.setdefault(solver, set()).add(line)
        return Proved(asked_by, {solver: frozenset(digests) for solver, digests in of.items()})

    def write(self, path: Path = PATH) -> None:
        """Write the digests as text, in an order that depends on nothing else."""
        lines = [f"# {_HEAD} {self.asked_by}"]
        for solver, digests in sorted(self.of.items()):
            lines += [solver, *sorted(digests)]
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="ascii")

    def joined(self, other: Proved) -> Proved:
        """Return what either holds, asked by the code of this one."""
        of = {
            solver: self.of.get(solver, frozenset()) | other.of.get(solver, frozenset())
            for solver in {*self.of, *other.of}
        }
        return Proved(self.asked_by, of)

    def usable(self) -> dict[str, tuple[str, str]]:
        """Solver and version by digest, of the solvers that are installed here in that version."""
        here = {
            f"{name} {solver_version(name)}": (name, solver_version(name)) for name in installed_backends()
        }
        return {
            digest: here[solver]
            for solver, digests in self.of.items()
            if solver in here
            for digest in digests
        }


def answers_beside(path: Path) -> Path:
    """Where the answers stand that are no proofs (`tests/support/answers.py`)."""
    return path.with_name("answers.json" if path == PATH else f"{path.name}.json")


def read_answers(path: Path) -> dict[str, dict[str, object]]:
    """Returns the fields of each answer in a file, by its question's key; none if there is no file."""
    found: dict[str, dict[str, object]] = (
        json.loads(path.read_text(encoding="ascii")) if path.exists() else {}
    )
    return found


def write_answers(answers: Mapping[str, Mapping[str, object]], path: Path) -> None:
    """Write answers, one to a line, in an order that depends on nothing else."""
    lines = [f"{json.dumps(key)}: {json.dumps(answers[key], sort_keys=True)}" for key in sorted(answers)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


def command(path: Path, add: bool, more: Sequence[str]) -> list[str]:
    """The run of pytest that writes what it proved, and what it knew, to a file."""
    asked = [] if add else ["--ask-all"]
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile"]
    return [*pytest, *asked, f"--write-proved={path}", *more]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite, write the file, say how large it is; the exit status is pytest's."""
    parser = argparse.ArgumentParser(prog="proved.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--add", action="store_true", help="keep what is known, ask what is not")
    parser.add_argument("more", nargs="*", metavar="PYTEST", help="what else pytest is given, after --")
    args = parser.parse_args(argv)
    before, new = Proved.read(), PATH.with_suffix(".new")
    status = subprocess.run(command(new, args.add, args.more), cwd=ROOT, check=False).returncode
    if not new.exists():
        return status or 1
    found = Proved.read(new)
    answers = read_answers(answers_beside(new))
    new.unlink()
    answers_beside(new).unlink()
    if args.add and before.of:
        found = before.joined(found)
        answers = read_answers(answers_beside(PATH)) | answers
    found.write()
    write_answers(answers, answers_beside(PATH))
    count, size = sum(map(len, found.of.values())), PATH.stat().st_size
    print(f"{count} questions, {size:,} bytes: {PATH.relative_to(ROOT)}; {len(answers)} answers beside it")
    return status


if __name__ == "__main__":
    sys.exit(main())
