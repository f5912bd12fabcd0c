"""Facts of integer_dot: why both encodings make the same integers."""

from __future__ import annotations

from mmaformal.encodings.integer_dot import smt as smt_integer
from mmaformal.facts.protocol import Facts
from mmaformal.proof.encoding_links import link_code
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import Link, number
from mmaformal.proof.related_runs import Same, same
from mmaformal.proof.related_stages import RelatedRuns
from mmaformal.proof.simulation import Simulation
from mmaformal.stages import Stage

_TEXTS = {
    "integer_product": ("multiply", "products are equal"),
    "integer_value": ("decode", "c is the same integer"),
    "integer_clamp": ("accumulate", "sums are clamped alike"),
}


def _number(run: Simulation, mine: Stage, other: Stage) -> Link:
    """The link of an integer made of what is given alone."""
    stage, text = _TEXTS[mine.name]
    link = number(mine.output, other.output, signed=True)
    run.argument.derive(stage, text, [link], [run.of(each) for each in mine.inputs])
    return link


def _sum(run: Simulation, mine: Stage, other: Stage) -> Link:
    """The link of a sum, from those of partial sums."""
    terms = [run.of(each) for each in mine.inputs]
    given: list[Link] = terms[:1]
    for k in range(1, len(terms)):
        term = other.given["partial"][k]
        link = number(mine.given["partial"][k], term, signed=True)
        run.argument.derive("accumulate", "partial sums are equal", [link], [*given, terms[k]])
        given = [link]
    return given[0]


def _code(run: Simulation, mine: Stage, other: Stage) -> Link:
    """The link of the code of d."""
    link = link_code(mine.output, other.output)
    run.argument.derive("encode", "the codes are equal", [link], [run.of(mine.inputs[0])])
    return link


def _related(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    """The link of two integers of two runs, made of the same in any order."""
    demand(isinstance(run.kind, Same), "no argument relates integers with changed signs")
    given, (x, y) = run.known(mine.inputs), (other.output, mine.output)
    if not given and x.eq(y):
        return None
    text = "integers made of the same are the same"
    return run.derive("accumulate", text, same(x, y), given, run.shared(mine.inputs))


class IntegerFacts(Facts[smt_integer.IntegerStep]):
    stage_links = {  # noqa: RUF012
        **dict.fromkeys(_TEXTS, _number),
        "integer_sum": _sum,
        "integer_code": _code,
    }
    related_links = dict.fromkeys(stage_links, _related)


FACTS = IntegerFacts("integer_dot")
