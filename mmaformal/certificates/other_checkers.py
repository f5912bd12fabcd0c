"""Checkers of others, which may be given each lemma's clauses and derivation too: they can only refuse more."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from mmaformal.certificates.check import RefusedError

#: Lines that cake_lpr, lrat-trim and lrat-check print of a derivation that is right.
_VERIFIED = re.compile(r"^(s VERIFIED( UNSAT)?|c VERIFIED)\s*$", re.MULTILINE)


def checker_named(name: str) -> str:
    """Return the path of a program.  Raises FileNotFoundError."""
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"no program {name}: give the path of a checker of LRAT, such as cake_lpr")
    return found


def check_also(program: str, lemma: Path, seconds: float) -> None:
    """Raises RefusedError unless another checker says that a lemma's derivation refutes its clauses."""
    files = [str(lemma.with_suffix(kind)) for kind in (".cnf", ".lrat")]
    try:
        run = subprocess.run(
            [program, *files], capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(f"{lemma.name}.lrat: {Path(program).name} did not end in {seconds:g} s") from None
    if not _VERIFIED.search(run.stdout):
        said = (run.stdout + run.stderr).strip().splitlines()
        raise RefusedError(
            f"{lemma.name}.lrat: {Path(program).name}: {said[-1][:200] if said else 'no word'}"
        )
