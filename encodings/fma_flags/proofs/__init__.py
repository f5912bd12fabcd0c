"""Facts of fma_flags: why both encodings raise the same."""

from __future__ import annotations

from mmaformal.encodings.fma_flags import smt as smt_flags
from mmaformal.facts.protocol import Facts
from mmaformal.proof.encoding_links import link_code
from mmaformal.proof.lemmas import Link, condition
from mmaformal.proof.simulation import Simulation
from mmaformal.stages import Stage


def _raised(run: Simulation, mine: Stage, other: Stage) -> Link:
    """The link of the code, from one of each exception."""
    u, v, derive = mine.given["raised"], other.given["raised"], run.argument.derive
    total, special, *rest = (run.of(each) for each in mine.inputs)
    operands = [link for each in rest[:3] for link in (each.sign, each.significand, each.infinite, each.nan)]
    flags = [condition(u.invalid, v.invalid)]
    derive("classify", "both see what is invalid", flags, [*operands, *rest[3:]])
    for name in ("overflow", "lost", "tiny"):
        flags.append(condition(getattr(u, name), getattr(v, name)))
        derive("round", f"both see whether a sum is {name}", flags[-1:], list(total))
    link = link_code(mine.output, other.output)
    derive("encode", "the same exceptions have the same code", [link], [*flags, special])
    return link


class FlagsFacts(Facts[smt_flags.FlagsStep]):
    stage_links = {"raised": _raised}  # noqa: RUF012


FACTS = FlagsFacts("fma_flags")
