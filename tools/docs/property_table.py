"""Every property of every instruction, as a table: tables/properties.md.

    python tools/docs/property_table.py --cache properties.jsonl --out tables/properties.md
    python tools/docs/property_table.py --architecture sme --architecture riscv --keep tables/properties.md --out …

With `--architecture` these are settled alone; with `--keep` rows of all others are taken from a table made before.
Instructions with equal `DotAdd`s compute the same function and are settled once.  Answers are appended to the cache
as they come, so that a run that was stopped goes on where it was; an answer in the cache stands until the property's
statement, the instruction's specification or a source file of the SMT encoding, which proofs are about, changes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import click

import mmaformal.encodings.smt
from mmaformal.architectures import ARCHITECTURES, SPECIFIED_UNITS
from mmaformal.cli import options
from mmaformal.cli.running import DEFECT, SETTLED, run_command
from mmaformal.identity import identity
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import PROPERTIES
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd

_UNITS = (*ARCHITECTURES, *SPECIFIED_UNITS)  #: whose properties the table has
_VERDICT = {Holds: "holds", Fails: "fails", Unknown: "unknown"}
_SIGN = {"holds": "✓", "fails": "✗", "unknown": "?"}


def distinct() -> dict[DotAdd, list[Instruction]]:
    """The instructions of each specification."""
    found: dict[DotAdd, list[Instruction]] = {}
    for name in _UNITS:
        for instruction in ARCHITECTURES[name]:
            found.setdefault(instruction.spec, []).append(instruction)
    return found


def sources() -> str:
    """A digest of the SMT encoding, which every proof is about."""
    digest = hashlib.sha256()
    assert mmaformal.encodings.smt.__file__ is not None
    shared = Path(mmaformal.encodings.smt.__file__).resolve().parent
    for path in (*sorted(shared.glob("*.py")), *sorted(shared.parent.glob("*/smt.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def key(each: Property, spec: DotAdd) -> str:
    text = f"{each.name}: {each.statement}\n{identity(spec)}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


class Kept(TypedDict):
    """An answer as it is kept."""

    key: str
    property: str
    instruction: str
    verdict: str
    question: str
    seconds: float
    encodings: NotRequired[str]  #: `sources`
    obligations: NotRequired[int]
    rules: NotRequired[list[str]]
    witness: NotRequired[str]
    evidence: NotRequired[dict[str, object]]
    why: NotRequired[str]


def row(each: Property, instruction: Instruction, answer: Answer) -> Kept:
    """Return what is kept of an answer."""
    out: Kept = {
        "key": key(each, instruction.spec),
        "property": each.name,
        "instruction": instruction.label,
        "verdict": _VERDICT[type(answer)],
        "question": answer.question,
        "seconds": round(answer.seconds, 2),
    }
    if isinstance(answer, Holds):
        out["obligations"] = len(answer.proof.obligations)
        out["rules"] = list(answer.proof.rules)
    elif isinstance(answer, Fails):
        out["witness"] = getattr(answer.witness, "summary", None) or answer.why
        out["evidence"] = answer.witness.to_json()
    elif isinstance(answer, Unknown):
        out["why"] = answer.why
    return out


def read(cache: Path) -> dict[str, Kept]:
    """The answers kept, by key; those about another SMT encoding are left out.  A line cut short is no answer."""
    found: dict[str, Kept] = {}
    if cache.exists():
        now = sources()
        for line in cache.read_text().splitlines():
            try:
                kept = json.loads(line)
            except ValueError:
                continue
            if kept.get("encodings") == now:
                found[kept["key"]] = kept
    return found


def settle_all(
    cache: Path,
    properties: Sequence[Property],
    timeout: float,
    again: bool = False,
    chosen: Sequence[str] = (),
) -> int:
    """Settle what the cache does not have, of all architectures or the chosen ones; with `again`, what it has as
    Unknown too.

    Returns how many questions ended in an error of ours; it is told, and the others go on.
    """
    known, encodings = read(cache), sources()
    specs = distinct()
    todo = [
        (each, instructions[0])
        for each in properties
        for spec, instructions in specs.items()
        if not chosen or any(i.architecture in chosen for i in instructions)
        if (k := key(each, spec)) not in known or (again and known[k]["verdict"] == "unknown")
    ]
    start, errors, portfolio = time.monotonic(), 0, LazyPortfolio()
    for n, (each, instruction) in enumerate(todo, 1):
        if n == 1 or each is not todo[n - 2][0]:
            # What was proved with a portfolio is remembered with it: one for each property, to bound the memory.
            portfolio.close()
            portfolio = LazyPortfolio()
        try:
            answer = each.of_terms(instruction, Asker(portfolio, timeout))
        except Exception:  # an answer that is missing is better than all that would have followed
            print(f"{each.name}: {instruction.label}: {traceback.format_exc()}", file=sys.stderr, flush=True)
            errors += 1
            continue
        kept = row(each, instruction, answer) | {"encodings": encodings}
        with cache.open("a") as file:
            file.write(json.dumps(kept) + "\n")
        left = (time.monotonic() - start) / n * (len(todo) - n)
        print(
            f"{n}/{len(todo)} {each.name}: {instruction.label}: {kept['verdict']} ({answer.seconds:.1f} s; "
            f"{left / 60:.0f} min left)",
            flush=True,
        )
    portfolio.close()
    return errors


# ---- the table ---------------------------------------------------------------------------------------------------


class Page:
    """A table made before: its rows by their first label, seconds by property, and witnesses by both."""

    def __init__(self, text: str) -> None:
        self.rows: dict[str, list[str]] = {}  #: the signs of a row, and its seconds
        self.seconds: dict[str, float] = {}
        self.witnesses: dict[tuple[str, str], str] = {}  #: by property and algorithm
        heading = ""
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")]
            if line.startswith(("## ", "### ")):
                heading = line.strip("# ")
            elif line.startswith("- "):
                self.witnesses[heading, line[2:].split(",")[0]] = line
            elif len(cells) == len(PROPERTIES) + 2 and cells[-1].isdigit():
                self.rows[cells[0].split(" (+")[0]] = cells[1:]
            elif len(cells) == 7 and cells[1] in PROPERTIES:
                self.seconds[cells[1]] = float(cells[-1])

    def row_of(self, instructions: Sequence[Instruction]) -> list[str] | None:
        """The row of one of these, which share a specification."""
        found = (self.rows[i.label] for i in instructions if i.label in self.rows)
        return next(found, None)


def markdown(known: dict[str, Kept], properties: Sequence[Property], before: Page) -> str:
    """tables/properties.md: what is known, and what was `before` where nothing is."""
    specs = distinct()
    old = {spec: before.row_of(names) for spec, names in specs.items()}
    numbers = {each.name: n for n, each in enumerate(properties, 1)}
    answers = {
        (each.name, spec): known[k]
        for each in properties
        for spec in specs
        if (k := key(each, spec)) in known
    }
    origin = [""]
    if before.rows:  # beside a table made before, what nothing is known of is left out
        origin = ["", "Cells that were not asked anew are those of the page before.", ""]
        told = {spec for _, spec in answers}
        specs = {spec: names for spec, names in specs.items() if spec in told or old[spec] is not None}
    lines = [
        "# Properties",
        "",
        "Made by `python tools/docs/property_table.py`; do not edit. Each property of each instruction, at its",
        "full K: ✓ holds, with a proof for all inputs; ✗ fails, with a witness that both encodings reproduce (of",
        "every-number, a code and the proof that nothing gives it); ? not settled in the time given; a blank is not",
        "run. `mmaformal prove PROPERTY ARCH INSTRUCTION` gives proof or witness.",
        *origin,
        "| | property | statement | ✓ | ✗ | ? | seconds, all |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in properties:
        mine = [answers[each.name, spec] for spec in specs if (each.name, spec) in answers]
        signs = [_SIGN[x["verdict"]] for x in mine]
        signs += [
            row[numbers[each.name] - 1]
            for spec, row in old.items()
            if row is not None and (each.name, spec) not in answers
        ]
        counts = [signs.count(sign) for sign in _SIGN.values()]
        seconds = sum(x["seconds"] for x in mine) + before.seconds.get(each.name, 0.0)
        lines.append(
            f"| {numbers[each.name]} | {each.name} | {each.statement.replace('|', chr(92) + '|')} | "
            + " | ".join(map(str, counts))
            + f" | {seconds:.0f} |"
        )
    total = len(specs)
    lines += [
        "",
        f"Counts are of the {total} different specifications; instructions that share one share its row.",
        "",
    ]
    lines += ["## Matrix", ""]
    by_algorithm: dict[str, list[DotAdd]] = {}
    for spec in specs:
        by_algorithm.setdefault(spec.parameters.algorithm, []).append(spec)
    for algorithm, mine_ in by_algorithm.items():
        lines += [f"### {algorithm}", ""]
        lines.append("| instructions | " + " | ".join(str(n) for n in numbers.values()) + " | seconds |")
        lines.append("|---" * (len(numbers) + 2) + "|")
        for spec in mine_:
            cells, kept = [answers.get((each.name, spec)) for each in properties], old[spec] or []
            others = [other or " " for other in kept[:-1]] or [" "] * len(cells)
            signs = [_SIGN[x["verdict"]] if x else other for x, other in zip(cells, others, strict=True)]
            seconds = sum(x["seconds"] for x in cells if x) or float(kept[-1] if kept else 0)
            lines.append(f"| {_names(specs[spec])} | " + " | ".join(signs) + f" | {seconds:.0f} |")
        lines.append("")
    lines += _witnesses(properties, answers, by_algorithm, before)
    unknown = [x for x in answers.values() if x["verdict"] == "unknown"]
    if unknown:
        lines += ["## Not settled", ""]
        lines += [f"- {x['property']}, {x['instruction']}: {x['why']}" for x in unknown] + [""]
    return "\n".join(lines)


def _witnesses(
    properties: Sequence[Property],
    answers: Mapping[tuple[str, DotAdd], Kept],
    by_algorithm: Mapping[str, Sequence[DotAdd]],
    before: Page,
) -> list[str]:
    """The lines of what properties fail on."""
    lines = [
        "## Witnesses",
        "",
        "The witness of each property for the first instruction of each algorithm on which it fails.",
        "",
    ]
    for each in properties:
        said: list[str] = []
        for algorithm, mine_ in by_algorithm.items():
            if (each.name, algorithm) in before.witnesses:
                said.append(before.witnesses[each.name, algorithm])
                continue
            for spec in mine_:
                x = answers.get((each.name, spec))
                if x and x["verdict"] == "fails":
                    said.append(f"- {algorithm}, {x['instruction']}: {x['witness']}")
                    break
        if said:
            lines += [f"### {each.name}", "", *said, ""]
    return lines


def _names(instructions: Iterable[Instruction]) -> str:
    """The first label, and how many more there are."""
    labels = [each.label for each in instructions]
    return labels[0] + (f" (+{len(labels) - 1})" if len(labels) > 1 else "")


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option(
    "--cache",
    type=options.OUTPUT_FILE,
    default="properties.jsonl",
    metavar="FILE",
    help="Answers as they come.",
)
@click.option("--out", type=options.OUTPUT_FILE, metavar="FILE", help="Write the table here.")
@click.option(
    "--property", "chosen", multiple=True, type=click.Choice(list(PROPERTIES)), help="Only this; repeatable."
)
@click.option(
    "--architecture",
    "units",
    multiple=True,
    type=click.Choice(_UNITS),
    help="Only this; repeatable.",
)
@click.option(
    "--keep",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A table made before, for all else.",
)
@options.timeout(30.0, "for each question")
@click.option("--again", is_flag=True, help="Ask again what was not settled.")
@click.option("--table-only", is_flag=True, help="Settle nothing.")
def command(
    cache: Path,
    out: Path | None,
    chosen: tuple[str, ...],
    units: tuple[str, ...],
    keep: Path | None,
    timeout: float,
    again: bool,
    table_only: bool,
) -> int:
    errors = 0
    if not table_only:
        errors = settle_all(cache, [PROPERTIES[name] for name in chosen or PROPERTIES], timeout, again, units)
    if out:
        before = Page(keep.read_text(encoding="utf-8") if keep else "")
        out.write_text(markdown(read(cache), list(PROPERTIES.values()), before), encoding="utf-8")
    return DEFECT if errors else SETTLED


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0, or 70 if a question ended in an error of ours."""
    return run_command(command, sys.argv[1:] if argv is None else argv, "property_table")


if __name__ == "__main__":
    sys.exit(main())
