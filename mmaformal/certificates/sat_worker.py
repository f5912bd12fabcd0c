"""CaDiCaL of `python-sat` as a program: python sat_worker.py CLAUSES PROOF, with the exit status of a SAT solver."""

from __future__ import annotations

import sys
from pathlib import Path


def main(clauses: str, proof: str) -> int:
    """Refute a DIMACS file and write the proof; return 20, or 10 if the clauses can be met."""
    from pysat.formula import CNF
    from pysat.solvers import Cadical195

    with Cadical195(bootstrap_with=CNF(from_file=clauses), with_proof=True) as solver:
        if solver.solve():
            return 10
        steps = solver.get_proof()
    Path(proof).write_text("".join(f"{step}\n" for step in steps), encoding="ascii")
    return 20


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
