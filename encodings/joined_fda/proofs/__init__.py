"""Facts of joined_fda: why both encodings join the same bit."""

from __future__ import annotations

from mmaformal.encodings.joined_fda import smt as smt_joined
from mmaformal.facts.protocol import Facts
from mmaformal.proof.encoding_links import least_excluded
from mmaformal.proof.lemmas import Link, condition, number
from mmaformal.proof.simulation import Simulation
from mmaformal.stages import Stage


def _join(run: Simulation, mine: Stage, other: Stage) -> tuple[Link, list[Link]]:
    """The link of the sum with the bit that is joined."""
    *terms, exponent, total = mine.inputs
    (e_max, below), (sum_, parts) = run.of(exponent), run.of(total)
    lost: list[Link] = []
    for term, flag, bit in zip(terms, mine.given["lost"], other.given["lost"], strict=True):
        given = [e_max, below[id(term)], *run.of(term)]
        text = "both see whether a term is cut"
        lost += run.argument.derive("align", text, [condition(flag, bit)], given)
    least = least_excluded(other.inputs[-1].total)
    run.argument.derive("accumulate", "the sum is no least number", [least], parts)
    joined = number(mine.output.total, other.output.total, signed=True)
    run.argument.derive("accumulate", "what was cut off is joined alike", [joined], [sum_, least, *lost])
    return joined, []


class JoinedFacts(Facts[smt_joined.JoinedStep]):
    stage_links = {"join": _join}  # noqa: RUF012


FACTS = JoinedFacts("joined_fda")
