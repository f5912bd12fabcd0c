"""A witness that premises can be met: their clauses, and an assignment that meets every one of them (`check.py`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from mmaformal.certificates.blaster import Blaster
from mmaformal.certificates.check import check_assignment, clauses_in
from mmaformal.certificates.expressions import ScriptError, expressions
from mmaformal.certificates.lemmas import write_whole
from mmaformal.certificates.refuting import dimacs


def premises_met(script: str, values: Mapping[str, int]) -> dict[str, str]:
    """Return the texts of a script, its clauses and their assignment by values of its constants; the others are 0.

    Raises ScriptError if the script is not read or has no such constant, RefusedError if a clause is not met.
    """
    blaster = Blaster()
    for command in expressions(script):
        blaster.do(command)
    true = set()
    for name, value in values.items():
        if name not in blaster.constants:
            raise ScriptError(f"the premises have no constant {name}")
        bits = blaster.constants[name]
        bits = (bits,) if isinstance(bits, int) else bits
        if not 0 <= value < 1 << len(bits):
            raise ScriptError(f"{name} = {value} has more than {len(bits)} bits")
        true |= {bit for i, bit in enumerate(bits) if value >> i & 1}
    circuit = blaster.circuit
    clauses = dimacs(circuit.size, circuit.clauses(blaster.asserted))
    signs = circuit.values(true)
    model = " ".join(str(n if signs[n] else -n) for n in range(1, circuit.size + 1)) + " 0\n"
    texts = {"smt2": script, "cnf": clauses, "model": model}
    name = hashlib.sha256(script.encode()).hexdigest()
    check_assignment(clauses_in(clauses, f"{name}.cnf"), model, name)
    return texts


def write_met(script: str, values: Mapping[str, int], folder: Path) -> dict[str, str]:
    """Write the texts of `premises_met` to a folder, named by the first one's SHA-256; return the SHA-256 of each."""
    texts = premises_met(script, values)
    digests = {kind: hashlib.sha256(text.encode()).hexdigest() for kind, text in texts.items()}
    for kind, text in texts.items():
        write_whole(folder / f"{digests['smt2']}.{kind}", text)
    return digests
