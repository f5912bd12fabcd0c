"""Would the proofs notice?  Change one thing in one wing and prove again that both agree: that has to fail.

    python tools/mutate.py                        every mutant of mutants.py; goes on where it was
    python tools/mutate.py --only 'ties'          those whose file or words contain that
    python tools/mutate.py --write docs/mutants.md

A mutant is *caught* if `prove_encodings` answers `Fails`, with an input that was run through both wings, and *no
change* if it answers `Holds`: a proof that the changed wing still gives the same code for every input, which is only
right where mutants.py says why.  Anything else is *missed*, and the exit status is 1.

Each runs in a process of its own, on a copy of `encodings/` that stands before the installed one.  What came of it is
kept until a file that it depends on changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
ENCODINGS = ROOT / "encodings"

#: What a verdict depends on: the encodings, the tables, and how they are proved and witnesses are looked for.
_USED = (
    *(
        "encodings",
        "mmaformal/architectures",
        "mmaformal/rounding.py",
        "mmaformal/spec.py",
        "mmaformal/limits.py",
    ),
    *("mmaformal/formats.py",),
    *("mmaformal/lanes.py", "mmaformal/stages.py", "mmaformal/proof"),
    *("mmaformal/facts/equality.py", "mmaformal/facts/operands.py"),
    *(
        f"mmaformal/cases/{name}.py"
        for name in (["codes", "encodings", "evaluate", "generate", "inputs", "run", "shrink"])
    ),
)


class Said(TypedDict):
    """What `prove_encodings` said of a mutant, as JSON."""

    answer: str
    seconds: float
    why: NotRequired[str]
    witness: NotRequired[Shown]
    key: NotRequired[str]


class Shown(TypedDict):
    """What is read of a witness."""

    runs: list[dict[str, str]]
    notes: list[str]


def mutate(mutant: Mutant, folder: Path) -> None:
    """Copy the encodings to a folder and change them.  Raises ValueError if the text to change is not there once."""
    shutil.copytree(ENCODINGS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} has {mutant.old!r} {text.count(mutant.old)} times, not once")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def prove(mutant: Mutant, evidence: Path, timeout: float) -> Said:
    """`prove_encodings` of the mutant's instruction in a process that has the mutant's encodings."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        mutate(mutant, Path(name))
        command = [sys.executable, __file__, "--in", name, *mutant.instruction.split(" ", 1)]
        command += ["--timeout", str(timeout), "--evidence", str(evidence)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = round(time.monotonic() - start, 1)
    if run.returncode != 0:
        return {"answer": "crash", "why": run.stderr.strip().rpartition("\n")[2], "seconds": seconds}
    answer: Said = json.loads(run.stdout)
    return {**answer, "seconds": seconds}


def _prove_here(folder: str, arch: str, name: str, timeout: float, evidence: str) -> None:
    import mmaformal.encodings

    mmaformal.encodings.__path__.insert(0, folder)
    from mmaformal.architectures import ARCHITECTURES
    from mmaformal.encodings import executable, smt
    from mmaformal.queries.prove_encodings import prove_encodings
    from mmaformal.solver.evidence import EvidenceStore, recording

    for wing in (executable, smt):
        assert str(wing.__file__).startswith(folder), f"{wing.__file__} is not the mutant's"
    with EvidenceStore(evidence) as store, recording(store):
        answer = prove_encodings(ARCHITECTURES[arch][name], timeout=timeout).to_json()
    proof = answer.pop("proof", None)
    answer["obligations"] = len(proof.get("obligations", ())) if isinstance(proof, dict) else 0
    print(json.dumps(answer))


def verdict(mutant: Mutant, answer: Said) -> str:
    expected = {"fails": "caught"} if not mutant.same else {"holds": "no change"}
    return expected.get(answer["answer"], "MISSED")


# ---- what is known -----------------------------------------------------------------------------------------------


def key(mutant: Mutant) -> str:
    """Of everything that decides a mutant's verdict: itself, the encodings, the argument."""
    digest = hashlib.sha256(repr(mutant).encode())
    for top in _USED:
        for path in sorted((ROOT / top).rglob("*.py")) or [ROOT / top]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def read(path: Path) -> dict[str, Said]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {entry["key"]: entry for entry in map(json.loads, lines)}


# ---- the table ---------------------------------------------------------------------------------------------------

_HEAD = """\
# Mutants

Would the proofs notice if one encoding were wrong? `tools/mutate.py` changes one thing in one wing and asks
`prove_encodings` again, {count} times. Generated by `python tools/mutate.py --write docs/mutants.md`; do not edit.

- **caught** ({caught}): `Fails`, with an input on which the wings differ or a 64-bit operation wraps. The input was run
  through both wings, one of them changed; the table shows the codes of d. *Found by* names the stage of the first
  lemma that does not hold; it is *tracing* where a lane cannot be kept within 64 bits at all.
- **no change** ({same}): `Holds`. The change leaves every result the same, which is proved like everything else; the
  reason was written down before.
- **missed** ({missed}): anything else.
"""


def table(entries: Sequence[tuple[Mutant, Said]]) -> str:
    verdicts = Counter(verdict(*entry) for entry in entries)
    head = _HEAD.format(
        count=len(entries),
        caught=verdicts["caught"],
        same=verdicts["no change"],
        missed=verdicts["MISSED"],
    )
    lines = [head]
    for wing, title in (("executable", "Executable wing"), ("smt", "SMT wing")):
        lines += [
            f"## {title}",
            "",
            "| file | what is changed | instruction | verdict | found by | d: executable, SMT |",
        ]
        lines.append("|---|---|---|---|---|---|")
        for mutant, answer in entries:
            if mutant.encoding == wing:
                row = (
                    mutant.name,
                    mutant.what,
                    mutant.instruction,
                    verdict(mutant, answer),
                    *_found(mutant, answer),
                )
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        lines.append("")
    return "\n".join(lines)


def _found(mutant: Mutant, answer: Said) -> tuple[str, str]:
    """By what a mutant was caught, and the results that differ."""
    if answer["answer"] == "holds":
        return mutant.same, ""
    if answer["answer"] != "fails":
        return answer["why"], ""
    stage, colon, _ = answer["why"].removeprefix("The proof failed: ").partition(": ")
    if not colon or ".py:" in stage:  # the wings' traces are not what is argued about, or one cannot be had
        stage = "tracing"
    witness = answer["witness"]
    in_executable, in_smt = (run["d"] for run in witness["runs"])
    results = f"{in_executable}, {in_smt}"
    if in_executable == in_smt:
        results = f"wraps: {witness['notes'][0].split(': ', 2)[2]}"
    return stage, results


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutate.py", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="in a mutant's file or words; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--write", metavar="FILE", help="write the table")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S", help="seconds for each")
    parser.add_argument("--results", metavar="FILE", type=Path, help="where to keep what came of them")
    parser.add_argument("--evidence", metavar="FILE", type=Path, help="where to keep what was proved")
    parser.add_argument("--in", dest="within", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("instruction", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.within:
        arch, name = args.instruction
        _prove_here(args.within, arch, name, args.timeout, args.evidence)
        return 0

    from mmaformal.solver.evidence import default_path

    results = args.results or default_path().with_name("mutants.jsonl")
    evidence = args.evidence or default_path()
    results.parent.mkdir(parents=True, exist_ok=True)
    known = read(results)
    chosen = [m for m in MUTANTS if not args.only or any(t in f"{m.file} {m.what}" for t in args.only)]
    entries = []
    for n, mutant in enumerate(chosen, 1):
        if args.list:
            print(f"{mutant.file}: {mutant.what} ({mutant.instruction})")
            continue
        name = key(mutant)
        if name not in known:
            known[name] = {"key": name, **prove(mutant, evidence, args.timeout)}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[name]) + os.linesep)
        entries.append((mutant, known[name]))
        said = verdict(*entries[-1])
        print(
            f"{n:3}/{len(chosen)} {said:9} {known[name]['seconds']:6.1f} s  {mutant.file}: {mutant.what}",
            flush=True,
        )
        if said == "MISSED":
            print(f"        {known[name]['answer']}: {known[name].get('why', '')}", flush=True)
    if args.write and entries:
        Path(args.write).write_text(table(entries), encoding="utf-8")
    counts = Counter(verdict(*entry) for entry in entries)
    print(", ".join(f"{counts[said]} {said}" for said in ("caught", "no change", "MISSED")))
    return 1 if counts["MISSED"] else 0


if __name__ == "__main__":
    sys.exit(main())
