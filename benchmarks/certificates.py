"""How many lemmas of all proofs that both encodings agree have a certificate, at what cost.

    python benchmarks/certificates.py results.jsonl [--timeout 60] [--jobs 2] [--every 4]

Each specification's lemmas are made without a solver, and each lemma's certificate is written, checked by the plain
checker (`check.py`'s) and by the compiled one, and thrown away; its argument is written, and followed by the checker.
A line of results.jsonl is a lemma: its logic, seconds to solve, to make and to check, bytes; or an argument.  Run
again, it goes on where it was.  `--every N` takes every N-th specification.
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
from mmaformal.certificates.check import FollowedArgument, RefusedError, check_derivation, clauses_in
from mmaformal.certificates.fast_check import accepts
from mmaformal.certificates.lemmas import NoCertificate, write_certificate
from mmaformal.facts.equality import argue_equality
from mmaformal.proof.kernel import Scripts, Theorem, lemmas_of
from mmaformal.proof.written import argument_of
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


def argument(theorem: Theorem, label: str) -> dict[str, object]:
    """Return what an argument cost; `why` where the checker does not follow it."""
    start = time.perf_counter()
    written = argument_of(theorem)
    made = time.perf_counter()
    line: dict[str, object] = {"argument": label, "bytes": len(written.text), "seconds": made - start}
    try:
        FollowedArgument(lambda name: written.lemmas[name][0]).follow(written.text, label)
    except RefusedError as error:
        line["why"] = str(error)
    return line | {"plain": time.perf_counter() - made}


def summary(lines: list[dict[str, object]]) -> str:
    """Return totals, and those that have no certificate."""
    arguments = [line for line in lines if "argument" in line]
    lines = [line for line in lines if "argument" not in line]

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
    told = [
        f"{len(arguments)} arguments, {sum('why' not in line for line in arguments)} of them followed, "
        + ", ".join(
            f"{words} {sum(float(str(line[name])) for line in arguments) / unit:.0f} {of}"
            for words, name, unit, of in (
                ("written in", "seconds", 1, "s"),
                ("followed in", "plain", 1, "s"),
                ("in all", "bytes", 1e6, "MB"),
            )
        )
    ]
    told += [f"  {line['argument']}: {line['why']}" for line in arguments if "why" in line]
    out += told if arguments else []
    return "\n".join([*out, *(f"  {line['of']}: {line['statement']}: {line['why']}" for line in without)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    lines = [json.loads(x) for x in args.results.read_text().splitlines()] if args.results.exists() else []
    done, scripts = {line.get("name", line.get("argument")) for line in lines}, Scripts()
    specs = {i.spec: i.label for each in ARCHITECTURES.values() for i in each}
    with processes(args.jobs) as executor, args.results.open("a") as out:
        for spec, label in list(specs.items())[:: args.every]:
            if label in done:
                continue
            asked, theorem = {}, argue_equality(spec)
            for each in lemmas_of(theorem):
                script = scripts[each]
                if digest(script) not in done:
                    asked[digest(script)] = script, each.statement
            done |= set(asked)
            waiting = [executor.submit(lemma, s, label, words, args.timeout) for s, words in asked.values()]
            for future in as_completed(waiting):
                lines.append(future.result())
                out.write(json.dumps(lines[-1]) + "\n")
                out.flush()
            lines.append(argument(theorem, label))
            out.write(json.dumps(lines[-1]) + "\n")
            print(f"{label}: {len(lines)} lemmas and arguments", flush=True)
    print(summary(lines))


if __name__ == "__main__":
    import certificates  # this file as a module, in which workers find what they are to do

    certificates.main()
