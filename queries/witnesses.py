"""Witnesses that the premises of certified theorems can be met, each of which runs through both encodings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import z3

from mmaformal.cases.inputs import Codes, one, symbolic_inputs, with_products, zeros
from mmaformal.cases.run import run_both
from mmaformal.certificates.check import RefusedError
from mmaformal.certificates.expressions import ScriptError
from mmaformal.certificates.premises import premises_met, write_met
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import Premises
from mmaformal.solver.evidence import digest
from mmaformal.solver.script import smtlib
from mmaformal.solver.terms import constants_of
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError


class NoWitnessError(Exception):
    """No values were found that meet a theorem's premises."""


def witnesses(
    instruction: Instruction, noted: Iterable[Premises], folder: Path, seconds: float
) -> list[dict[str, object]]:
    """Return a witness of each theorem's premises, for a manifest, after writing its assignment to a folder.

    Where no theorem has premises, any input is a witness.  Raises NoWitnessError, and WitnessError if both encodings do
    not agree on one.
    """
    found: dict[str, dict[str, object]] = {}
    words: dict[str, dict[str, None]] = {}
    for premises in noted:
        if not premises.words:
            continue
        script = smtlib([premises.claim])
        words.setdefault(script, {}).update(dict.fromkeys(premises.words))
        if script not in found:
            values = _values(premises, seconds)
            try:
                files = write_met(script, values, folder)
            except (ScriptError, RefusedError) as error:
                raise NoWitnessError(f"{' and '.join(premises.words)}: {error}") from None
            found[script] = {**files, "values": values}
    every = [{"assumed": list(words[script]), **each} for script, each in found.items()] or [{"assumed": []}]
    return [each | _run(instruction, each.get("values")) for each in every]


def _values(premises: Premises, seconds: float) -> dict[str, int]:
    """Return values of the constants that meet premises.  Raises NoWitnessError."""
    solver = z3.Solver()
    solver.set(timeout=int(1000 * min(seconds, 1e6)))
    solver.add(premises.claim)
    verdict = solver.check()
    if verdict != z3.sat:
        why = "nothing meets them" if verdict == z3.unsat else solver.reason_unknown()
        raise NoWitnessError(f"no witness of its premises, {' and '.join(premises.words)}: {why}")
    model, found = solver.model(), {}
    for each in constants_of(premises.claim):  # a model also has what scripts defined that this process read
        value = model[each]
        if value is None:  # any does
            continue
        if not z3.is_bv_value(value) and not z3.is_true(value) and not z3.is_false(value):
            raise NoWitnessError(f"no witness of bits: {each} is {value}")
        found[each.sexpr()] = value.as_long() if z3.is_bv_value(value) else int(z3.is_true(value))
    return dict(sorted(found.items()))


def _run(instruction: Instruction, values: object) -> dict[str, object]:
    """Return the inputs of a witness and what both encodings give for them.  Raises WitnessError."""
    codes = _codes(instruction.spec, values if isinstance(values, dict) else {})
    return {"inputs": codes.to_json(), "d": f"{run_both(instruction, codes):#x}"}


def _codes(spec: DotAdd, values: Mapping[str, int]) -> Codes:
    """Return the codes that values give to inputs; without any value 1·1 + 0, and those that have none are 0."""
    codes, terms = zeros(spec), symbolic_inputs(spec)
    if not values:
        return with_products(codes, {0: (one(spec.a_format), one(spec.b_format))})

    def side(name: str) -> tuple[int, ...]:
        return tuple(
            values.get(str(term), code)
            for term, code in zip(getattr(terms, name), getattr(codes, name), strict=True)
        )

    sides = {name: side(name) for name in ("a", "b", "scale_a", "scale_b")}
    return replace(codes, c=values.get(str(terms.c), codes.c), **sides)


def check_witnesses(
    instruction: Instruction, noted: Iterable[Premises], told: Iterable[Mapping[str, object]], said: str
) -> None:
    """Raises RefusedError unless the witnesses told meet the premises noted, and run to what is told of them.

    The files of each were checked before (`check.check_premises`).
    """
    by_name = {}
    for each in told:
        by_name[str(each.get("smt2", ""))] = each
        if _run_told(instruction, each.get("values")) != {name: each.get(name) for name in ("inputs", "d")}:
            raise RefusedError(f"manifest.json: {said}: both encodings do not give the witness what is told")
    for premises in noted:
        if not premises.words:
            continue
        script = smtlib([premises.claim])
        entry = by_name.get(digest(script))
        words = " and ".join(premises.words)
        if entry is None or not set(premises.words) <= set(_list(entry.get("assumed"))):
            raise RefusedError(f"{said}: without a witness of its premises: {words}")
        values = entry.get("values")
        try:
            texts = premises_met(script, values if isinstance(values, dict) else {})
        except (ScriptError, RefusedError, TypeError) as error:
            raise RefusedError(f"{said}: its witness does not meet {words}: {error}") from None
        if any(digest(text) != entry.get(kind) for kind, text in texts.items()):
            raise RefusedError(f"{digest(script)}.cnf or .model: not those of the premises: {words}")


def _run_told(instruction: Instruction, values: object) -> dict[str, object]:
    try:
        return _run(instruction, values)
    except (TypeError, ValueError, OverflowError, WitnessError) as error:
        raise RefusedError(f"manifest.json: a witness that cannot be run: {error}") from None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
