"""Both encodings in lockstep: the links of what a stage makes, from those of what it is given, stage by stage.

The stages of two runs have the same names in the same order.  A link of each (`_LINKS`) says that both make the same
of the same; nothing is said of an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from mmaformal.cases.encodings import Traces
from mmaformal.cases.interfaces import AnyStep
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    flags_and_zeros,
    least_excluded,
    link_addends,
    link_addition,
    link_aligned,
    link_code,
    link_inputs,
    link_operand,
    link_product,
    link_special,
    link_sticky_sum,
    multiply_long,
    round_and_encode,
    summands,
)
from mmaformal.proof.kernel import ArgumentError, demand
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.stages import Stage, Value

#: A function that makes the links of a stage's output, from those of its inputs.
StageLink: TypeAlias = "Callable[[Simulation, Stage, Stage], Value]"


class Simulation:
    """The links of two runs' values: by those of the executable encoding, which are lanes or made of them."""

    def __init__(self, argument: Argument, traces: Traces[AnyStep], links: Mapping[str, StageLink]) -> None:
        self.argument, self.traces = argument, traces
        self._of = {**_LINKS, **links}
        codes = link_inputs(argument, traces)
        each = [*codes.a, *codes.b, codes.c, *codes.scale_a, *codes.scale_b]
        self._links: dict[int, tuple[Value, Value, Value]] = {
            id(link.lane): (link.lane, link, None) for link in each
        }

    def of(self, value: Value) -> Value:
        """The links of a value.  Raises ArgumentError if no stage made it."""
        try:
            return self._links[id(value)][1]
        except KeyError:
            raise ArgumentError("a stage is given what no stage before it made") from None

    def partner(self, value: Value) -> Value:
        """Return what the SMT encoding made where the executable encoding made the value."""
        return self._links[id(value)][2]

    def add(self, value: Value, links: Value, partner: Value = None) -> None:
        self._links[id(value)] = value, links, partner

    def run(self, executable: Sequence[Stage], smt: Sequence[Stage]) -> None:
        """Derive the links of every stage.  Raises ArgumentError where the runs have not the same stages."""
        demand(len(executable) == len(smt), "one encoding has more stages than the other")
        for mine, other in zip(executable, smt, strict=True):
            same = mine.name == other.name and len(mine.inputs) == len(other.inputs)
            demand(same, f"one encoding's {mine.name} is the other's {other.name}")
            self.add(mine.output, self._of[mine.name](self, mine, other), other.output)


def link_stages(
    argument: Argument, traces: Traces[AnyStep], links: Mapping[str, StageLink] = MappingProxyType({})
) -> None:
    """Derive, stage by stage, that both encodings make the same; `links` are of stages that one algorithm has alone.

    Raises ArgumentError.
    """
    run = Simulation(argument, traces, links)
    run.run(traces.executable.stages, traces.smt.stages)


def _code(run: Simulation, mine: Stage, other: Stage) -> Link:
    """A code that depends on what is given alone."""
    if any(mine.output is each for each in mine.inputs):
        return run.of(mine.output)  # type: ignore[no-any-return]
    link = link_code(mine.output, other.output)
    links = [run.of(each) for each in mine.inputs]
    if mine.name == "first_nan":  # of operands and special values, no more than whether they are NaNs
        links = [each.nan if isinstance(each, OperandLinks) else each for each in links]
    given = [each for part in links for each in _flat(part)]
    run.argument.derive(mine.name, CODES[mine.name], [link], given)
    return link


def _flat(links: Value) -> list[Link]:
    return [links] if isinstance(links, Link) else [link for part in links for link in _flat(part)]


def _decode(run: Simulation, mine: Stage, other: Stage) -> Value:
    (code,), given = mine.inputs, other.given
    made = mine.output, other.output
    return link_operand(run.argument, run.of(code), *made, given["fmt"], given.get("flushed", False))


def _classify(run: Simulation, mine: Stage, other: Stage) -> Link:
    given = flags_and_zeros([run.of(x) for x in mine.inputs])
    return link_special(run.argument, given, mine.output, other.output)


def _multiply(run: Simulation, mine: Stage, other: Stage) -> TermLinks:
    operands = [run.of(x) for x in mine.inputs]
    if (long := mine.given.get("long")) is not None:
        x, y = operands
        made = mine.output, other.output
        return multiply_long(run.argument, (x, y), long, *made, other.given["low"], mine.given["shift"])
    return link_product(run.argument, operands, mine.output, other.output, other.given["low"])


def _scaled_sum(run: Simulation, mine: Stage, other: Stage) -> None:
    """Links the term, from the codes of its products and from its scales."""
    *codes, first, second = (run.of(x) for x in mine.inputs)
    u, v = mine.output, other.output
    count = len(u.products)
    links, zeros = [], []
    added = zip(link_addends(u.total, count), summands(v.total, count), strict=True)
    for k, (lane, summand) in enumerate(added):
        significand, magnitude = u.products[k].significand, v.products[k][1]
        same = (significand.term == 0) == (magnitude == 0)
        links.append(number(lane, summand, signed=True))
        zeros.append(Link(same, (significand.term, magnitude), (), (significand,)))
        text, given = "products in fixed point are the same", [codes[k], codes[count + k]]
        run.argument.derive("multiply", text, [links[-1], zeros[-1]], given)
    total = run.argument.add_up("multiply", "products of a group", u.total, v.total, links)
    x, y = u.term, v.term
    exponent = number(x.exponent, y.exponent, low=other.given["low"])
    term = TermLinks(number(x.sign, y.sign), exponent, number(x.significand, y.significand))
    scales = [link for scale in (first, second) for link in (scale.exponent, scale.significand)]
    # σ·s_α·s_β and σ·(s_α·s_β) are hard to see equal unless one factor is known; it has a few bits.
    few = second.significand.term if second.significand.term.size() > 1 else None
    text = "scaled sums of groups are the same"
    run.argument.derive("multiply", text, term, [total, *zeros, *scales], each_value_of=few)
    run.add(x, term, y)


def _largest(run: Simulation, mine: Stage, other: Stage) -> tuple[Link, dict[int, Link]]:
    """The link of the largest exponent; and of each term, that its exponent is not above it."""
    exponents = [run.of(x).exponent for x in mine.inputs]
    e_max, below = run.argument.largest(
        "align", "exponents", mine.output, other.output, exponents, other.given["low"]
    )
    return e_max, {id(x): link for x, link in zip(mine.inputs, below, strict=True)}


def _accumulate(run: Simulation, mine: Stage, other: Stage) -> tuple[Link, list[Link]]:
    """The links of the sum and of what is added; the encodings add the same terms, each in an order of its own."""
    *terms, exponent = mine.inputs
    (e_max, below), added = run.of(exponent), summands(other.output.total, len(terms))
    places = _places(run, terms, other.inputs[:-1])
    links = link_aligned(
        run.argument,
        [run.of(x) for x in terms],
        e_max,
        [below[id(x)] for x in terms],
        mine.output.terms,
        [added[place] for place in places],
    )
    total = mine.output.total, other.output.total
    return run.argument.add_up("accumulate", "aligned terms", *total, links), links


def _places(run: Simulation, terms: Sequence[Value], others: Sequence[Value]) -> list[int]:
    """Where the other encoding has each term."""
    where = {id(x): place for place, x in enumerate(others)}
    places = [where.get(id(run.partner(x)), -1) for x in terms]
    demand(sorted(places) == list(range(len(others))), "the encodings do not add the same terms")
    return places


def _as_term(run: Simulation, mine: Stage, other: Stage) -> TermLinks:
    (total, parts), (e_max, _) = (run.of(x) for x in mine.inputs)
    u, v, sum_ = mine.output, other.output, other.inputs[0].total
    links = TermLinks(number(u.sign, v.sign), e_max, number(u.significand, v.significand))
    least = least_excluded(sum_)
    run.argument.derive("accumulate", "the sum of a group is no least number", [least], parts)
    text = "the sum of a group has the same sign and magnitude"
    run.argument.derive("accumulate", text, [links.sign, links.significand], [total, least])
    return links


def _round(run: Simulation, mine: Stage, other: Stage) -> Link:
    (total, _), (e_max, _), special = (run.of(x) for x in mine.inputs)
    return _encoded(run, mine, other, [total, e_max], special)


def _round_product(run: Simulation, mine: Stage, other: Stage) -> Link:
    term, special = (run.of(x) for x in mine.inputs)
    total = number(mine.output.total, other.output.total, signed=True)
    run.argument.derive("multiply", "products with their signs are the same", [total], [*term])
    return _encoded(run, mine, other, [total, term.exponent, term.sign], special)


def _sticky_sum(run: Simulation, mine: Stage, other: Stage) -> list[Link]:
    """The links of the exact sum, or of what is rounded alike, and of its exponent."""
    x, y = (run.of(term) for term in mine.inputs)
    sums, given = (mine.output, mine.given["wide"]), other.given
    return link_sticky_sum(
        run.argument, (x, y), sums, other.output, given["low"], given["frame"], given["least"]
    )


def _round_sum(run: Simulation, mine: Stage, other: Stage) -> Link:
    total, *rest = (run.of(each) for each in mine.inputs)
    signs = [x.sign for x in rest if isinstance(x, TermLinks)]
    special = next((x for x in rest if isinstance(x, Link)), None)
    return _encoded(run, mine, other, [*total, *signs], special)


def _round_flushed(run: Simulation, mine: Stage, other: Stage) -> Link:
    """The link of the code, whose number is rounded in one encoding before exponents have a least."""
    total, x, y = (run.of(each) for each in mine.inputs)
    link = link_code(mine.output.result, other.output.result)
    text = "equal sums are rounded alike, and as tiny ones flushed"
    run.argument.derive("round", text, [link], [*total, x.sign, y.sign])
    run.add(mine.output.result, link)
    return link


def _encoded(
    run: Simulation, mine: Stage, other: Stage, total: Sequence[Link], special: Link | None = None
) -> Link:
    (_, rounded, lane), (_, other_rounded, code) = mine.output, other.output
    link = round_and_encode(
        run.argument, total, special, rounded, other_rounded, other.given["rho"], (lane, code)
    )
    run.add(lane, link)
    return link


def _add(run: Simulation, mine: Stage, other: Stage) -> Link:
    codes = [run.of(x) for x in mine.inputs]
    link = link_addition(run.argument, codes, mine.output, other.output, other.given["rho"])
    run.add(mine.output.result, link)
    return link


#: Stages that make a code of what they are given alone, and what is said of them.
CODES: Mapping[str, str] = {
    "change_sign": "signs are changed alike",
    "constant": "both have the same constant",
    "convert": "codes of a narrower format are converted alike",
    "first_nan": "equal operands give the same NaN",
    "flush": "codes are flushed alike",
    "nan": "both have the same NaN",
    "negate": "words are widened and negated alike",
    "product": "products are rounded alike",
    "scale": "codes are scaled alike",
    "special": "equal numbers and special values give the same code",
    "select": "equal numbers and specials, and NaNs of equal codes, give the same code",
    "word": "words of equal codes are equal",
    "zero": "both begin at zero",
}

_LINKS: Mapping[str, StageLink] = {
    **dict.fromkeys(CODES, _code),
    "decode": _decode,
    "classify": _classify,
    "multiply": _multiply,
    "addend": _multiply,
    "scaled_sum": _scaled_sum,
    "largest": _largest,
    "accumulate": _accumulate,
    "as_term": _as_term,
    "round": _round,
    "round_product": _round_product,
    "sticky_sum": _sticky_sum,
    "round_sum": _round_sum,
    "round_flushed": _round_flushed,
    "add": _add,
}
