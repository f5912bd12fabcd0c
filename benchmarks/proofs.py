"""How long proofs take, stage by stage and as one question: the table in docs/performance.md.

    python benchmarks/proofs.py

Each property of hopper's HMMA.16816.F32 with K = L = 4, 8, 16, 32, on this machine, one after the other; order across
blocks with two blocks of K/2.  *Staged* is what `mmaformal prove` does, witnesses included.  *Monolithic* is the same
statement as one formula about the whole instruction (`monolithic.py`), put to all solvers at once; of order only the
exchange of two products.  After one that is not settled, larger K are not run.  Of witnesses, what is left of the time
goes into making them smaller.
"""

from __future__ import annotations

import argparse
import os
import platform
import time

from monolithic import FORMULAS

from mmaformal import hopper
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio, Portfolio, installed_backends, solver_version

SIZES = (4, 8, 16, 32)


def staged(name: str, i: Instruction, limit: float) -> tuple[float, str]:
    """(seconds, verdict), solver processes started anew."""
    start = time.monotonic()
    with LazyPortfolio() as portfolio:
        answer = PROPERTIES[name].settle(i, Asker(portfolio, limit))
    verdict = "✓" if isinstance(answer, Holds) else "✗" if isinstance(answer, Fails) else "?"
    return time.monotonic() - start, verdict


def monolithic(name: str, i: Instruction, limit: float) -> tuple[float, str]:
    """Return seconds and verdict of one question that says it all."""
    start = time.monotonic()
    with Portfolio() as portfolio:
        outcome = Asker(portfolio, limit).satisfy(
            name, "as one question", [FORMULAS[name](i)], limit=limit, whole=True
        )
    return time.monotonic() - start, {"unsat": "✓", "sat": "✗"}.get(outcome.verdict, "?")


def instruction(name: str, k: int) -> Instruction:
    return hopper["HMMA.16816.F32"].replace(k=k, L=k // 2 if name.endswith("across-blocks") else k)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each cell")
    parser.add_argument("--property", action="append", choices=list(PROPERTIES), help="only this")
    args = parser.parse_args()
    versions = ", ".join(f"{name} {solver_version(name)}" for name in installed_backends())
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {versions}; each stopped after {args.limit:.0f} s\n"
    )
    print("| property | " + " | ".join(f"K = {k}: staged | monolithic" for k in SIZES) + " |")
    print("|---" * (1 + 2 * len(SIZES)) + "|", flush=True)
    for name in args.property or PROPERTIES:
        cells, settled = [], True
        for k in SIZES:
            i = instruction(name, k)
            seconds, verdict = staged(name, i, args.limit)
            cells.append(f"{seconds:.1f} {verdict}")
            if settled:
                seconds, other = monolithic(name, i, args.limit)
                settled = other != "?"
                assert not settled or other == verdict, f"{name} of {i.label}: {verdict} and {other}"
                cells.append(f"{seconds:.1f} {other}" if settled else f"> {args.limit:.0f}")
            else:
                cells.append("not run")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
