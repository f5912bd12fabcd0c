"""Record what is proved, question by question, so that a change to the proofs can be compared cell by cell.

    python tools/theorems.py --write                        # settle what benchmarks/theorems.jsonl lacks
    python tools/theorems.py --write --out after.jsonl --only exactness --jobs 2 --timeout 120
    python tools/theorems.py --compare benchmarks/theorems.jsonl after.jsonl

A question is an instruction of each distinct specification with `verify`, with each property of tables/properties.md
and with `bound`; an emulation with `bound`, `verify` and two properties; a claim of docs/e9s12.md and
docs/apple-amx.md; a format's rounding model (`roundoff`); a theorem about narrow ranges.  Its line has the verdict,
the digests of what is said (`states`: the answer's words and numbers) and of the formulas that were concluded
(`concludes`), how many obligations there are, and the seconds.  Answers are appended as they come, and sorted at the
end; a run that was stopped goes on where it was."""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import z3

from mmaformal.analysis.units import Unit
from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.emulations import emulation
from mmaformal.formats import FORMATS
from mmaformal.instruction import Instruction
from mmaformal.proof import kernel
from mmaformal.queries import bound
from mmaformal.queries import roundoff as rounding_model
from mmaformal.queries.properties import PROPERTIES
from mmaformal.queries.property import Property, numbered_as_taken
from mmaformal.queries.verify import Prover
from mmaformal.solver.answers import Answer, Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.solver.script import smtlib
from mmaformal.studies.amx import prover as amx
from mmaformal.studies.claims import Claim
from mmaformal.studies.e9s12 import prover as e9s12
from mmaformal.studies.e9s12.sums_of_terms import SUMS
from mmaformal.studies.emulation import program_bound
from mmaformal.studies.emulation.programs import Program
from mmaformal.studies.narrow_range import theorems as narrow_range

FILE = Path(__file__).parents[1] / "benchmarks" / "theorems.jsonl"

#: Properties that are proved of emulations too.
OF_EMULATIONS = ("exactness", "commutativity")

#: A question is slower if it takes so many times as long, and so many seconds more.
SLOWER, AT_LEAST = 1.3, 2.0


class Question(NamedTuple):
    """A question to settle; questions of one `family` follow each other, with one portfolio."""

    family: str
    subject: str
    settle: Callable[[LazyPortfolio, float], Answer]

    @property
    def name(self) -> str:
        return f"{self.family}: {self.subject}"


class Row(TypedDict, total=False):
    """A line of the file."""

    question: str
    verdict: str
    states: str
    concludes: str
    obligations: int
    seconds: float
    why: str


# ---- questions -----------------------------------------------------------------------------------------------------


@cache
def questions(sample: bool = False) -> list[Question]:
    """All of them, those of a family together; of a `sample`, of one instruction for each algorithm, c and d."""
    instructions = distinct(sample)
    return list(_questions(instructions, [*emulation()]))


def _questions(instructions: Sequence[Instruction], emulations: Sequence[Instruction]) -> Iterator[Question]:
    for number in narrow_range.THEOREMS:
        yield Question("narrow-range", number, partial(narrow_range.of_theorem, number))
    for name in rounding_model.NAMES:
        for subnormals in (True, False):
            for nearest in (True, False):
                how = f"{name}{'' if subnormals else ', without subnormals'}{'' if nearest else ', toward zero'}"
                yield Question("roundoff", how, partial(_roundoff, name, subnormals, nearest))
    yield from (
        Question("verify", each.label, partial(_verify, each)) for each in (*instructions, *emulations)
    )
    claims: tuple[Claim[Any], ...] = (*e9s12.CLAIMS, *SUMS)
    for claim in claims:
        yield from (
            Question("e9s12", f"{claim.name} {name}", partial(_e9s12, claim.name, name)) for name in claim.of
        )
    for statement in amx.STATEMENTS:
        yield from (
            Question("amx", f"{statement} {name}", partial(_amx, statement, name)) for name in amx.NAMES
        )
    for each in PROPERTIES.values():
        more = emulations if each.name in OF_EMULATIONS else []
        yield from (Question(each.name, i.label, partial(_property, each, i)) for i in (*instructions, *more))
    yield from (Question("bound", i.label, partial(_bound, i)) for i in instructions if _has_bound(i))
    yield from (Question("bound", i.label, partial(_program, i)) for i in emulations if _is_program(i))


def distinct(sample: bool) -> list[Instruction]:
    """The first instruction of each specification; of a `sample`, of each algorithm and formats of c and d."""
    found: dict[object, Instruction] = {}
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            spec = instruction.spec
            like = (spec.parameters.algorithm, spec.c_format.name, spec.d_format.name)
            found.setdefault(like if sample else spec, instruction)
    return list(found.values())


def _has_bound(instruction: Instruction) -> bool:
    try:
        bound.provable(instruction)
    except ValueError:
        return False
    return bool(Unit.of(instruction).stages)


def _is_program(instruction: Instruction) -> bool:
    try:
        bound.provable(Program.of(instruction, None).unit.instruction)
    except ValueError:
        return False
    return True


def _roundoff(name: str, subnormals: bool, nearest: bool, portfolio: LazyPortfolio, limit: float) -> Answer:
    fmt = FORMATS[name]
    return rounding_model.of_format(fmt, portfolio, subnormals=subnormals, nearest=nearest, timeout=limit)


def _verify(instruction: Instruction, portfolio: LazyPortfolio, limit: float) -> Answer:
    prover = Prover()
    prover.portfolio = portfolio
    return prover.prove(instruction, limit)


def _e9s12(claim: str, name: str, portfolio: LazyPortfolio, limit: float) -> Answer:
    prover = e9s12.E9s12Prover()
    prover.portfolio = portfolio
    return prover.prove(claim, name, limit)


def _amx(claim: str, name: str, portfolio: LazyPortfolio, limit: float) -> Answer:
    prover = amx.AmxProver()
    prover.portfolio = portfolio
    return prover.prove(claim, name, limit)


def _property(each: Property, instruction: Instruction, portfolio: LazyPortfolio, limit: float) -> Answer:
    asker = Asker(portfolio, limit)
    return asker.within(each.statement, lambda: each.settle(numbered_as_taken(instruction), asker))


def _bound(instruction: Instruction, portfolio: LazyPortfolio, limit: float) -> Answer:
    return bound.of_instruction(instruction, portfolio, timeout=limit)


def _program(instruction: Instruction, portfolio: LazyPortfolio, limit: float) -> Answer:
    return program_bound.of_program(instruction, portfolio, timeout=limit)


# ---- settling ------------------------------------------------------------------------------------------------------


@contextmanager
def concluding() -> Iterator[dict[kernel.Theorem, z3.BoolRef]]:
    """The last conclusion of each theorem that is made within this block."""
    found: dict[kernel.Theorem, z3.BoolRef] = {}
    real = kernel.Theorem.conclude

    def conclude(
        self: kernel.Theorem,
        statement: str,
        conclusion: kernel.Link | z3.BoolRef,
        whole: Sequence[z3.BoolRef] = (),
    ) -> None:
        real(self, statement, conclusion, whole)
        assert self.conclusion is not None
        found[self] = self.conclusion

    kernel.Theorem.conclude = conclude  # type: ignore[method-assign]
    try:
        yield found
    finally:
        kernel.Theorem.conclude = real  # type: ignore[method-assign]


def row(question: Question, portfolio: LazyPortfolio, limit: float) -> Row:
    """The line of a question, after settling it."""
    start = time.monotonic()
    with concluding() as concluded:
        answer = question.settle(portfolio, limit)
    seconds = time.monotonic() - start
    out: Row = {"question": question.name, "verdict": type(answer).__name__.lower()}
    said = [answer.question, *(f"{each.name} = {each.value}" for each in answer.numbers)]
    if isinstance(answer, Holds):
        said += [answer.proof.obligations[-1].statement, *sorted(answer.proof.rules)]
        scripts = sorted({_script(claim) for claim in concluded.values()})
        out |= {"concludes": _digest(scripts), "obligations": len(answer.proof.obligations)}
    elif isinstance(answer, Fails):
        out["why"] = getattr(answer.witness, "summary", None) or answer.why
    else:
        out["why"] = str(getattr(answer, "why", answer))
    out |= {"states": _digest(said), "seconds": round(seconds, 2)}
    return out


def _script(claim: z3.BoolRef) -> str:
    """Return a claim as a script; one that has two constants of one name, of two widths, as z3 prints it."""
    try:
        return smtlib([claim])
    except ValueError:
        return str(claim.sexpr())


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def settle_family(names: Sequence[str], file: Path, limit: float) -> int:
    """Settle questions of one family, appending lines to the file; returns how many ended in an error of ours."""
    wanted, errors = set(names), 0
    with LazyPortfolio() as portfolio:
        for question in questions():
            if question.name not in wanted:
                continue
            try:
                line = row(question, portfolio, limit)
            except Exception:
                print(f"{question.name}: {traceback.format_exc()}", file=sys.stderr, flush=True)
                errors += 1
                continue
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
            print(f"{question.name}: {line['verdict']} ({line['seconds']} s)", flush=True)
    return errors


def read(file: Path) -> dict[str, Row]:
    """The lines of a file, by question; the last of each counts, and one that was cut short is none."""
    found: dict[str, Row] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            each: Row = json.loads(line)
        except ValueError:
            continue
        found[each["question"]] = each
    return found


def write(file: Path, patterns: Sequence[str], sample: bool, jobs: int, limit: float, again: bool) -> int:
    """Settle what the file lacks, of the questions that match; returns how many ended in an error of ours."""
    known = read(file)
    todo = [
        each
        for each in questions(sample)
        if matches(each.name, patterns)
        and (each.name not in known or (again and known[each.name]["verdict"] == "unknown"))
    ]
    families = [[each.name for each in group] for _, group in groupby(todo, lambda each: each.family)]
    settle = partial(settle_family, file=file, limit=limit)
    if jobs == 1:
        errors = sum(map(settle, families))
    else:
        with ProcessPoolExecutor(jobs) as pool:
            errors = sum(pool.map(settle, families))
    lines = sorted(read(file).items())
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for _, line in lines), "utf-8")
    return errors


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a question's name has one of the patterns in it, or there is none."""
    return not patterns or any(fnmatch.fnmatch(name.lower(), f"*{each.lower()}*") for each in patterns)


# ---- comparing -----------------------------------------------------------------------------------------------------


def compare(before: dict[str, Row], after: dict[str, Row]) -> list[str]:
    """Return what differs, a line each: theorems lost first, then what else changed, then times."""
    lost: list[str] = []
    other: list[str] = []
    slow: list[str] = []
    both = [name for name in before if name in after]
    for name in both:
        x, y = before[name], after[name]
        if x["verdict"] != y["verdict"]:
            text = f"{name}: {x['verdict']} → {y['verdict']} {y.get('why', '')}".rstrip()
            (lost if x["verdict"] != "unknown" else other).append(
                f"{'LOST' if x['verdict'] != 'unknown' else 'new'}  {text}"
            )
        elif x["verdict"] == "holds":
            changed = [key for key in ("states", "concludes") if x.get(key) != y.get(key)]
            if changed:
                other.append(f"changed  {name}: {' and '.join(changed)}")
        if y["seconds"] > SLOWER * x["seconds"] and y["seconds"] > x["seconds"] + AT_LEAST:
            slow.append(f"slower  {name}: {x['seconds']} s → {y['seconds']} s")
    for family, names in groupby(both, lambda name: name.partition(":")[0]):
        chosen = list(names)
        times = [sum(rows[name]["seconds"] for name in chosen) for rows in (before, after)]
        slow.append(f"time  {family}: {len(chosen)} questions, {times[0]:.0f} s → {times[1]:.0f} s")
    missing = [f"not asked  {name}" for name in before if name not in after]
    added = [f"new  {name}: {after[name]['verdict']}" for name in after if name not in before]
    return lost + other + added + slow + ([*missing[:5], f"{len(missing)} not asked"] if missing else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="settle what the file lacks")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--out", type=Path, default=FILE, help="the file (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="repeatable")
    parser.add_argument("--sample", action="store_true", help="one instruction for each algorithm, c and d")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each question")
    parser.add_argument("--again", action="store_true", help="ask again what was not settled")
    parser.add_argument("--list", action="store_true", help="print the questions")
    args = parser.parse_args()
    if args.list:
        print("\n".join(each.name for each in questions(args.sample) if matches(each.name, args.only)))
    if args.write and write(args.out, args.only, args.sample, args.jobs, args.timeout, args.again):
        return 70
    if args.compare:
        before, after = map(read, args.compare)
        chosen = [{k: v for k, v in rows.items() if matches(k, args.only)} for rows in (before, after)]
        lines = compare(*chosen)
        print("\n".join(lines))
        return int(any(line.startswith("LOST") for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
