"""Two runs of one model on related inputs, in lockstep: as `simulation` walks both encodings, with other links.

A stage of the second run has the stage of the first that made the like of the like: products may have changed their
places, or some be of the first run alone, each of them zero.  A link of each stage (`_LINKS`) says that related
inputs make related outputs; nothing is said of an algorithm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial

import z3

from mmaformal.encodings.smt.blocks import Term
from mmaformal.formats import Format
from mmaformal.proof.kernel import ArgumentError, demand
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Kind, Opposite, Pairing, Relating, operand_codes, same
from mmaformal.solver.asking import constants_of
from mmaformal.stages import Stage, Value


def _key(value: Value) -> Hashable:
    """What two terms have in common that are one; other values, if they are one object."""
    return ("term", value.get_id()) if isinstance(value, z3.ExprRef) else ("object", id(value))


class RelatedRuns(Relating):
    """The links of what the second run makes, each with what the first run made in its place."""

    def __init__(self, argument: Pairing, kind: Kind, runs: tuple[Sequence[Stage], Sequence[Stage]]) -> None:
        self.argument, self._kind = argument, kind
        self.left, self.right = runs
        self._open = list(self.left)  #: the first run's stages that no stage of the second has yet
        self._made = {_key(part): stage for stage in self.left for part in _parts(stage.output)}
        self._place: dict[Hashable, Value] = {}
        self._links: dict[Hashable, Link] = {}
        self._dropped: dict[Hashable, tuple[Stage, Link]] = {}

    @property
    def kind(self) -> Kind:
        return self._kind

    def know(self, link: Link) -> None:
        """Takes the link of a code that no stage made."""
        for term in (*link.free, *(x for pair in link.defined for x in pair)):
            self._links[_key(term)] = link

    def drop(self, zeros: Iterable[Link]) -> None:
        """Takes claims about the codes of products of the first run alone: that each is zero."""
        claims = {frozenset(map(_key, constants_of(link.claim))): link for link in zeros}
        for stage in self.left if claims else ():
            if stage.name in ("multiply", "scaled_sum"):
                for factors in _factors(stage):
                    codes = operand_codes(*factors) if stage.name == "multiply" else factors
                    link = claims.get(frozenset(map(_key, codes)))
                    for value in (stage.output, *factors) if link is not None else ():
                        assert link is not None
                        self._dropped[_key(value)] = stage, link

    def run(self) -> Link:
        """Derives the links of every stage; returns the last one.  Raises ArgumentError."""
        link: Link | None = None
        for number, mine in enumerate(self.right):
            other = self._match(number, mine)
            link = _LINKS[mine.name](self, other, mine)
            if link is not None:
                self.add(mine.output, link)
            for x, y in zip(_parts(other.output), _parts(mine.output), strict=True):
                self._place[_key(y)] = x
        assert link is not None
        return link

    def _match(self, number: int, mine: Stage) -> Stage:
        """The stage of the first run that made the like of this one."""
        if isinstance(self.kind, Opposite):  # every product is in its place, and its codes are other ones
            other = self.left[number]
            demand(other.name == mine.name, "the runs have not the same stages")
            for x, y in zip(other.inputs, mine.inputs, strict=True):
                self._place.setdefault(_key(y), x)
            return other
        wanted = Counter(_key(self.place(x)) for x in mine.inputs)
        for i, other in enumerate(self._open):
            if other.name == mine.name and not wanted - Counter(map(_key, other.inputs)):
                return self._open.pop(i)
        raise ArgumentError("no argument is known where products change from one step to another")

    def place(self, value: Value) -> Value:
        """What the first run has in the place of a value of the second; of a code, itself."""
        return self._place.get(_key(value), value)

    def add(self, value: Value, link: Link) -> None:
        self._links[_key(value)] = link

    def of(self, value: Value) -> Link:
        return self._links[_key(value)]

    def known(self, values: Iterable[Value]) -> list[Link]:
        """The links of those that have one: the others are the same in both runs."""
        return [self._links[_key(x)] for x in values if _key(x) in self._links]

    def shared(self, values: Iterable[Value]) -> list[z3.ExprRef]:
        """The terms of those that have no link."""
        return [term for x in values if _key(x) not in self._links for term in _terms(x)]

    def order(self, other: Sequence[Value], mine: Sequence[Value]) -> list[int]:
        """Where the first run has each of the second's."""
        places: dict[Hashable, list[int]] = {}
        for i, x in reversed([*enumerate(other)]):
            places.setdefault(_key(x), []).append(i)
        return [places[_key(self.place(x))].pop() for x in mine]

    def dropped(self, other: Sequence[Value], mine: Sequence[Value]) -> dict[int, tuple[Stage, Link]]:
        """What the first run has alone, by place: the stage that made it, and that its product is zero."""
        both = {_key(self.place(x)) for x in mine}
        alone = [i for i, x in enumerate(other) if _key(x) not in both]
        for i in alone:
            demand(
                _key(other[i]) in self._dropped, "no argument is known where a sum has fewer terms in one run"
            )
        return {i: self._dropped[_key(other[i])] for i in alone}


def related(
    argument: Pairing,
    kind: Kind,
    runs: tuple[Sequence[Stage], Sequence[Stage]],
    c: Link,
    zeros: Iterable[Link],
) -> Link:
    """Derives, stage by stage, that two runs have related results; returns that link.  Raises ArgumentError."""
    walk = RelatedRuns(argument, kind, runs)
    walk.know(c)
    walk.drop(zeros)
    return walk.run()


def _terms(value: Value) -> list[z3.ExprRef]:
    return [value] if isinstance(value, z3.ExprRef) else [term for part in value for term in _terms(part)]


def _parts(value: Value) -> list[Value]:
    """An output, and its parts that are outputs of their own: the code of a sum, the term of a scaled sum."""
    return [value, *(getattr(value, name) for name in ("result", "term") if hasattr(value, name))]


def _factors(stage: Stage) -> list[tuple[Value, Value]]:
    """The factors of each product of a stage."""
    if stage.name == "multiply":
        return [(stage.inputs[0], stage.inputs[1])]
    codes = stage.inputs[:-2]
    return list(zip(codes[: len(codes) // 2], codes[len(codes) // 2 :], strict=True))


# ---- codes ----------------------------------------------------------------------------------------------------------


def _code(
    run: RelatedRuns,
    stage: str,
    text: str,
    fmt: Format,
    pair: tuple[z3.BitVecRef, z3.BitVecRef],
    given: Sequence[Link],
    inputs: Sequence[z3.ExprRef] = (),
) -> Link:
    """The link of two codes."""
    return run.derive(stage, text, run.kind.code(pair[0], pair[1], fmt), given, inputs)


def _zero(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    pair = other.output, mine.output
    return _code(run, "inputs", "both runs begin at zero", mine.given["fmt"], pair, [], [])


def _convert(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    if mine.output.eq(other.output):
        return None
    codes, pair = [*constants_of(other.output)], (other.output, mine.output)
    return _code(run, "convert", "related codes are converted alike", mine.given["target"], pair, [], codes)


def _decode(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    x, y = other.output, mine.output
    given = run.known(mine.inputs)
    if not given and all(u.eq(v) for u, v in zip(x, y, strict=True)):
        return None
    codes = [] if given else operand_codes(x, y)
    return run.derive("decode", "related codes are decoded alike", run.kind.decoded(x, y), given, codes)


def _classify(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    alone = run.dropped(other.inputs, mine.inputs)
    zeros = {id(stage): (stage, link) for stage, link in alone.values()}
    factors = [run.zero_factors(stage.inputs[0], stage.inputs[1], link) for stage, link in zeros.values()]
    inputs = run.shared([*mine.inputs, *(other.inputs[i] for i in alone)])
    given = [*run.known(mine.inputs), *factors]
    text, special = "special values are related", run.kind.special(other.output, mine.output)
    link = run.derive("classify", text, special, given, inputs)
    if isinstance(run.kind, Opposite):
        _unless_nan(run, other, mine, link)
    return link


def _unless_nan(run: RelatedRuns, other: Stage, mine: Stage, special: Link) -> None:
    """Split: the result is a NaN in both runs; or no operand is one, so that all have the other sign."""
    nan = other.output.nan
    some, none = Link(nan), Link(z3.Not(nan))
    run.argument.split("the result is a NaN or not", [some, none], terms=[nan])
    for x, y in zip(run.left, run.right, strict=True):
        if any(each is mine.output for each in y.inputs):
            pair, inputs = (x.output.result, y.output.result), [*x.output.rounded, *y.output.rounded]
            text = "two NaN results are related"
            _code(run, "encode", text, y.given["rho"].format, pair, [special, some], inputs)
    flags = [term for x in other.inputs for term in _terms(x)]
    for x, y in zip(other.inputs, mine.inputs, strict=True):
        for weak in run.known([y]):
            number = Link(z3.Not(x.nan), (x.nan,))
            run.derive("classify", "no operand is a NaN", number, [none], flags)
            text = "numbers of related codes are opposite"
            run.add(y, run.derive("decode", text, run.kind.operand(x, y), [weak, number]))


# ---- terms and sums -------------------------------------------------------------------------------------------------


def _multiply(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    inputs = run.shared(mine.inputs)
    return run.product(other.output, mine.output, inputs, run.known(mine.inputs))


def _largest(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    exponents = [[term.exponent for term in stage.inputs] for stage in (other, mine)]
    below = []
    for i, (stage, zero) in run.dropped(other.inputs, mine.inputs).items():
        x, y, *scales = stage.inputs
        above = next((t for t in other.inputs if run._made[_key(t)].name == "addend"), None)
        if above is None:
            raise ArgumentError("no argument is known where a sum without c has fewer terms in one run")
        (c,) = run._made[_key(above)].inputs
        code = run.known(run._made[_key(c)].inputs)
        factors = run.zero_factors(x, y, zero)
        below.append(run.below_another(x, y, other.inputs[i], above.exponent, factors, code, scales))
    links = [run.of(term) for term in mine.inputs]
    return run.argument.maxima(other.output, exponents[0], mine.output, exponents[1], links, below)


def _accumulate(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    (*lefts, e_left), (*rights, e_right) = other.inputs, mine.inputs
    nothing = {}
    for i, (stage, zero) in run.dropped(lefts, rights).items():
        x, y, *_ = stage.inputs
        nothing[i] = partial(run.adds_nothing, x, y, e_max=e_left, zero=run.zero_factors(x, y, zero))
    widths = {x.size() for x in other.output.terms}
    return run.sum_of(
        other.output.total,
        mine.output.total,
        run.order(lefts, rights),
        [[run.of(x)] for x in rights],
        [run.of(e_right)],
        widths.pop() if len(widths) == 1 else None,
        nothing,
    )


def _sticky_sum(run: RelatedRuns, other: Stage, mine: Stage) -> None:
    """Links the exponent and the total."""
    x, y, terms = other.output, mine.output, [run.of(term) for term in mine.inputs]
    run.add(y.e_max, run.derive("align", "the sums are at the same exponent", same(x.e_max, y.e_max), terms))
    given = [*terms, run.of(y.e_max)]
    if isinstance(run.kind, Opposite):
        given, pairs = [], zip(other.inputs, mine.inputs, (x.x, x.y), (y.x, y.y), terms, strict=True)
        for u, v, left, right, term in pairs:
            flip = z3.Or(u.sign != v.sign, left == 0)
            link = Link(z3.And(left == right, flip), (left, u.sign, v.sign), ((right, left),))
            text = "aligned terms are opposite"
            given.append(run.derive("align", text, link, [term, run.of(y.e_max)]))
    total = run.kind.summand(x.total, y.total, x.total.size() - 1)
    run.derive("accumulate", "the sums are related", total, given)
    run.add(y.total, run.sizes(x.total, y.total, total, bounded=True))


def _as_term(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    (u, _), (v, e_max) = other.inputs, mine.inputs
    sizes = run.sizes(u.total, v.total, run.of(v))
    term = run.kind.term(other.output, mine.output)
    return run.derive("accumulate", "sums of groups are related terms", term, [sizes, run.of(e_max)])


def _scaled_sum(run: RelatedRuns, other: Stage, mine: Stage) -> None:
    """Links the term."""
    x, y = other.output, mine.output
    m, n = len(x.products), len(y.products)
    order = [i % m for i in run.order(other.inputs, mine.inputs[:n])]
    pairs, nothing, gone = _factors(other), {}, []
    for i in set(range(m)).difference(order):
        zero = run._dropped.get(_key(pairs[i][0]))
        if zero is None:
            raise ArgumentError("a product of one group is one of another in the second run")
        dropped = partial(run.derive_zero, given=[zero[1]], inputs=pairs[i])
        gone.append(dropped("multiply", "a dropped product is zero", x.products[i][1]))
        nothing[i] = partial(dropped, "align", "a dropped product adds nothing")
    links = []
    for i, (sign, magnitude) in zip(order, y.products, strict=True):
        left, right = (Term(s, size, size) for s, size in (x.products[i], (sign, magnitude)))
        links.append(run.product(left, right, list(pairs[i]), []))  # no exponent: it is fixed point
    total = run.sum_of(x.total, y.total, order, [[link] for link in links], nothing=nothing)
    scales, sizes = run.shared(mine.inputs[-2:]), run.sizes(x.total, y.total, total)
    run.add(y.term, run.product(x.term, y.term, scales, [sizes, *links, *gone]))


# ---- results --------------------------------------------------------------------------------------------------------


def _round(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    total, e_max, special = (run.of(x) for x in mine.inputs)
    sizes = run.sizes(other.output.total, mine.output.total, total)
    return _result(
        run, "round", "related sums are rounded to related results", other, mine, [sizes, e_max, special]
    )


def _round_sum(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    total, *terms, special = mine.inputs
    given = [run.of(x) for x in (total.total, total.e_max, *terms, special)]
    return _result(run, "round", "related sums are rounded to related results", other, mine, given)


def _round_product(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    text = "related products are rounded to related codes"
    return _result(run, "round", text, other, mine, run.known(mine.inputs))


def _add(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    text = "sums of related numbers are related"
    return _result(run, "accumulate", text, other, mine, run.known(mine.inputs), run.shared(mine.inputs))


def _result(
    run: RelatedRuns,
    stage: str,
    text: str,
    other: Stage,
    mine: Stage,
    given: Sequence[Link],
    inputs: Sequence[z3.ExprRef] = (),
) -> Link:
    pair = other.output.result, mine.output.result
    link = _code(run, stage, text, mine.given["rho"].format, pair, given, inputs)
    run.add(mine.output.result, link)
    return link


def _negate(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    if mine.output.eq(other.output):
        return None
    pair, text = (other.output, mine.output), "related codes with their signs changed are related"
    return _code(run, "signs", text, mine.given["fmt"], pair, run.known(mine.inputs), run.shared(mine.inputs))


def _constant(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    return None


_LINKS: Mapping[str, Callable[[RelatedRuns, Stage, Stage], Link | None]] = {
    "convert": _convert,
    "zero": _zero,
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
    "add": _add,
    "negate": _negate,
    "constant": _constant,
}


__all__ = ["related"]
