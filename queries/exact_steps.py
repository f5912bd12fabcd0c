"""Proof that one step of sfma or efda is the exact sum, rounded once."""

from __future__ import annotations

from mmaformal.algorithms import DotAdd
from mmaformal.queries.numerical import NotProvedError, Proving


def prove_step(proving: Proving, spec: DotAdd) -> None:
    """Prove that a step is correctly rounded.  Raises NotProvedError."""
    raise NotProvedError(
        f"a step of {spec.parameters.algorithm} is correctly rounded", "unknown", "no proof yet"
    )
