"""Clauses put to a SAT solver that writes down why they cannot be met: CaDiCaL, as a program or in `python-sat`.

Nothing here is trusted: what comes of it is elaborated to a certificate and checked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from mmaformal.certificates.circuits import Bits
from mmaformal.solver.pool import undone_at_end
from mmaformal.solver.portfolio import NoSolverError

_REFUTED = 20  #: the exit status of a SAT solver that says so
_MET = 10


class NotRefutedError(Exception):
    """Clauses were not refuted: they can be met, or the time was up."""


def dimacs(variables: int, clauses: Sequence[Bits]) -> str:
    """Return clauses as DIMACS text."""
    lines = [f"p cnf {variables} {len(clauses)}", *(" ".join(map(str, (*clause, 0))) for clause in clauses)]
    return "\n".join(lines) + "\n"


def sat_solver() -> list[str]:
    """Return the command of the SAT solver, which takes a DIMACS file and the file to write a DRAT proof to.

    Raises NoSolverError.
    """
    program = shutil.which("cadical")
    if program is not None:
        return [program, "-q", "--no-binary"]
    if find_spec("pysat") is None:
        raise NoSolverError(
            "no SAT solver that writes proofs: pip install 'mmaformal[certificates]', or install cadical"
        )
    return [sys.executable, "-P", str(Path(__file__).with_name("sat_worker.py"))]


def refutation(text: str, seconds: float, solver: Sequence[str]) -> str:
    """Return the DRAT proof that a DIMACS text's clauses cannot be met.  Raises NotRefutedError."""
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        clauses, proof = Path(folder) / "cnf", Path(folder) / "drat"
        clauses.write_text(text, encoding="ascii")
        with (
            undone_at_end(partial(shutil.rmtree, folder, ignore_errors=True)),
            subprocess.Popen(
                [*solver, str(clauses), str(proof)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            ) as done,
            undone_at_end(done.kill),
        ):
            try:
                _, complaint = done.communicate(timeout=seconds)
            except BaseException as error:
                done.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise NotRefutedError(f"not settled in {seconds:g} s") from None
                raise
        if done.returncode == _MET:
            raise NotRefutedError("an assignment meets the clauses: the lemma does not hold")
        if done.returncode != _REFUTED:
            said = complaint.decode(errors="replace").strip().splitlines()
            raise NotRefutedError(
                f"the SAT solver ended with {done.returncode}: {said[-1] if said else 'no word'}"
            )
        return proof.read_text(encoding="ascii")
