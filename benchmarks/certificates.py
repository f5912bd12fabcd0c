"""How many lemmas of all proofs that both encodings agree have a certificate, at what cost.

    python benchmarks/certificates.py results.jsonl [--timeout 60] [--jobs 2] [--every 4]

Each specification's lemmas are made without a solver, and each lemma's certificate is written, checked by the plain
checker (`check.py`'s) and by the compiled one, and thrown away.  A line of results.jsonl is a lemma: its logic, seconds
to solve, to make and to check, bytes; run again, it goes on where it was.  `--every N` takes every N-th specification.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from concurrent.futures import as_completed
from pathlib import Path

from mmaformal import ARCHITECTURES
from mmaformal.certificates.check import check_derivation, clauses_in
from mmaformal.certificates.fast_check import accepts
from mmaformal.certificates.lemmas import NoCertificate, write_certificate
from mmaformal.facts.equality import argue
from mmaformal.proof.kernel import Scripts, lemmas_of
from mmaformal.solver.evidence import digest
from mmaformal.solver.pool import processes
from mmaformal.solver.portfolio import Portfolio


def lemma(script: str, label: str, statement: str, timeout: float) -> dict[str, object]:
    """Return what the certificate of a lemma cost; `why` where there is none."""
    line: dict[str, object] = {"name": digest(script), "of": label, "statement": statement}
    line["logic"] = script.partition("(set-logic ")[2].partition(")")[0]
    with Portfolio() as portfolio:
        line["solving"] = portfolio.ask(script, {}, timeout).seconds
    with tempfile.TemporaryDirectory() as folder:
        made = write_certificate(script, Path(folder), timeout)
        line["seconds"] = made.seconds
        if isinstance(made, NoCertificate):
            return line | {"why": made.why}
        clauses, derivation = ((Path(folder) / f"{made.name}.{kind}").read_text() for kind in ("cnf", "lrat"))
    start = time.perf_counter()
    check_derivation(clauses_in(clauses, "cnf"), derivation.splitlines(), "lrat")
    plain = time.perf_counter()
    if not accepts(clauses, derivation):
        raise AssertionError(f"the compiled checker does not accept {made.name}")
    fast = time.perf_counter()
    costs = {"bytes": made.size, "plain": plain - start, "compiled": fast - plain}
    return line | costs | {"multiplied_out": made.multiplied_out}


def summary(lines: list[dict[str, object]]) -> str:
    """Return totals, and those that have no certificate."""

    def total(name: str) -> float:
        return sum(float(str(line.get(name, 0))) for line in lines)

    without = [line for line in lines if "why" in line]
    out = [
        f"{len(lines) - len(without)} of {len(lines)} lemmas with a certificate, {total('bytes') / 1e6:.0f} MB; "
        f"solved in {total('solving'):.0f} s, made in {total('seconds'):.0f} s, checked in {total('plain'):.0f} s, "
        f"compiled {total('compiled'):.0f} s"
    ]
    logics = Counter(str(line["logic"]) for line in lines)
    out += [f"  {count} of the logic {logic}" for logic, count in logics.most_common()]
    return "\n".join([*out, *(f"  {line['of']}: {line['statement']}: {line['why']}" for line in without)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    lines = [json.loads(x) for x in args.results.read_text().splitlines()] if args.results.exists() else []
    done, scripts = {line["name"] for line in lines}, Scripts()
    specs = {i.spec: i.label for each in ARCHITECTURES.values() for i in each}
    with processes(args.jobs) as executor, args.results.open("a") as out:
        for spec, label in list(specs.items())[:: args.every]:
            asked = {}
            for each in lemmas_of(argue(spec)):
                script = scripts[each]
                if digest(script) not in done:
                    asked[digest(script)] = script, each.statement
            done |= set(asked)
            waiting = [executor.submit(lemma, s, label, words, args.timeout) for s, words in asked.values()]
            for future in as_completed(waiting):
                lines.append(future.result())
                out.write(json.dumps(lines[-1]) + "\n")
                out.flush()
            print(f"{label}: {len(lines)} lemmas", flush=True)
    print(summary(lines))


if __name__ == "__main__":
    main()
