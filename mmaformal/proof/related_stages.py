"""Two runs of one model on related inputs, in lockstep: as `simulation` walks both encodings, with other links.

A stage of the second run has the stage of the first that made the like of the like: products may have changed their
places, or some be of the first run alone, each of them zero.  A link of each stage (`_LINKS`) says that related
inputs make related outputs; nothing is said of an algorithm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.encodings.smt.blocks import Operand, Term
from mmaformal.formats import Format
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.kernel import ArgumentError, demand
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    Opposite,
    Pairing,
    Relating,
    RunRelation,
    link_opposite,
    operand_codes,
    same,
)
from mmaformal.proof.simulation import CODES
from mmaformal.solver.asking import constants_of
from mmaformal.stages import Stage, Value


def _key(value: Value) -> Hashable:
    """Return a key that values have in common if they are the same terms."""
    return value.get_id() if isinstance(value, z3.ExprRef) else tuple(map(_key, value))


#: A function that derives the link of a stage's output, from the stages of both runs; None where both are the same.
RelatedLink: TypeAlias = "Callable[[RelatedRuns, Stage, Stage], Link | None]"


class RelatedRuns(Relating):
    """The links of what the second run makes, each with what the first run made in its place."""

    def __init__(
        self,
        argument: Pairing,
        kind: RunRelation,
        runs: tuple[Sequence[Stage], Sequence[Stage]],
        links: Mapping[str, RelatedLink],
    ) -> None:
        self.argument, self._kind, self._of = argument, kind, {**_LINKS, **links}
        self.left, self.right = runs
        self._open = list(self.left)  #: the first run's stages that no stage of the second has yet
        self._made = {_key(part): stage for stage in self.left for part in _parts(stage.output)}
        self._place: dict[Hashable, Value] = {}
        self._links: dict[Hashable, Link] = {}
        self._dropped: dict[Hashable, tuple[Stage, Link]] = {}
        self._turned: set[Hashable] = set()
        self.numbers: dict[Hashable, Link] = {}  #: of operands with turned signs, that they are no NaNs

    @property
    def kind(self) -> RunRelation:
        return self._kind

    def know(self, link: Link) -> None:
        """Takes the link of two codes that no stage made."""
        left, right = (*link.free, *(term for term, _ in link.defined))
        self._place[_key(right)] = left
        for term in (left, right):
            self._links[_key(term)] = link

    def turn(self, left: Value, right: Value) -> None:
        """Takes two codes, or what is decoded of them, that have not the same sign: they are not linked, and what both
        factors of a product make together is looked up in their codes."""
        self._place[_key(right)] = left
        self._turned.add(_key(right))

    def is_turned(self, value: Value) -> bool:
        return _key(value) in self._turned

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
            if mine.name not in self._of:
                raise ArgumentError(f"no argument relates two runs at the stage {mine.name}")
            link = self._of[mine.name](self, other, mine)
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
        """Return what the first run has in the place of a value of the second; of a code, itself."""
        return self._place.get(_key(value), value)

    def add(self, value: Value, link: Link) -> None:
        self._links[_key(value)] = link

    def of(self, value: Value) -> Link:
        return self._links[_key(value)]

    def known(self, values: Iterable[Value]) -> list[Link]:
        """The links of those that have one: the others are the same in both runs."""
        return [self._links[_key(x)] for x in values if _key(x) in self._links]

    def shared(self, values: Iterable[Value]) -> list[z3.ExprRef]:
        """The terms of those that have no link: they are the same in both runs, or made of the same constants."""
        found: list[z3.ExprRef] = []
        for x in values:
            if _key(x) not in self._links:
                same = _key(self.place(x)) == _key(x)
                found += _terms(x) if same else [each for t in _terms(x) for each in constants_of(t)]
        return found

    def order(self, other: Sequence[Value], mine: Sequence[Value]) -> list[int]:
        """Where the first run has each of the second's."""
        places: dict[Hashable, list[int]] = {}
        for i, x in reversed([*enumerate(other)]):
            places.setdefault(_key(x), []).append(i)
        try:
            return [places[_key(self.place(x))].pop() for x in mine]
        except (KeyError, IndexError):
            raise ArgumentError(
                "no argument is known where products change from one sum to another"
            ) from None

    def makes(self, value: Value) -> Stage:
        """The stage that made a value of the first run."""
        return self._made[_key(value)]

    def code_of_addend(self, terms: Iterable[Value]) -> tuple[Value | None, list[Link]]:
        """The term of the first run that is c, and the link of its code, if that has one."""
        c = next((x for x in terms if self.makes(x).name == "addend"), None)
        return (None, []) if c is None else (c, self.known(self.makes(self.makes(c).inputs[0]).inputs))

    def dropped(self, other: Sequence[Value], mine: Sequence[Value]) -> dict[int, tuple[Stage, Link]]:
        """Return what the first run has alone, by place: the stage that made it, and that its product is zero."""
        both = {_key(self.place(x)) for x in mine}
        alone = [i for i, x in enumerate(other) if _key(x) not in both]
        for i in alone:
            demand(
                _key(other[i]) in self._dropped, "no argument is known where a sum has fewer terms in one run"
            )
        return {i: self._dropped[_key(other[i])] for i in alone}


def related(
    argument: Pairing,
    kind: RunRelation,
    runs: tuple[Sequence[Stage], Sequence[Stage]],
    codes: Iterable[Link],
    zeros: Iterable[Link],
    links: Mapping[str, RelatedLink] = MappingProxyType({}),
    turned: Iterable[tuple[z3.BitVecRef, z3.BitVecRef]] = (),
) -> Link:
    """Derives, stage by stage, that two runs have related results; returns that link.  Raises ArgumentError.

    `codes` are the links of c, and of other codes that are made before; `links` of stages that one algorithm has alone;
    `turned` are codes with changed signs, each with what stands in its place in the second run.
    """
    walk = RelatedRuns(argument, kind, runs, links)
    for pair in turned:
        walk.turn(*pair)
    for code in codes:
        walk.know(code)
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


def _made_alike(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    """A code that depends on what is given alone."""
    given, pair = run.known(mine.inputs), (other.output, mine.output)
    if not given and mine.inputs and pair[0].eq(pair[1]):
        return None
    text = f"related: {CODES[mine.name]}"
    return _code(run, mine.name, text, mine.given["fmt"], pair, given, run.shared(mine.inputs))


def _select(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    """The result, a number or special, or the NaN of an operand: which one is looked up in the codes."""
    codes = [x for x in mine.inputs if not isinstance(x, Operand)]
    inputs = [constant for term in run.shared(codes) for constant in constants_of(term)]
    text, pair = "related numbers, or related NaNs, make related results", (other.output, mine.output)
    return _code(run, "encode", text, mine.given["fmt"], pair, run.known(codes), inputs)


def _decode(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    x, y = other.output, mine.output
    given = run.known(mine.inputs)
    if run.is_turned(mine.inputs[0]):
        run.turn(x, y)
        return None
    if not given and all(u.eq(v) for u, v in zip(x, y, strict=True)):
        return None
    related, text = run.kind.decoded(x, y), "related codes are decoded alike"
    if (choice := _choice(run.right, y)) is not None:
        related = run.kind.operand(x, y)
        if given and constants_of(mine.inputs[0]):
            given = [_unless_both_nan(run, other, mine, (_choice(run.left, x), choice))]
    return run.derive("decode", text, related, given, [] if given else operand_codes(x, y))


def _choice(stages: Sequence[Stage], operand: Value) -> Stage | None:
    """The stage whose result is the operand's NaN, where it is one."""
    some = (stage for stage in stages if stage.name == "select")
    return next((stage for stage in some if any(x is operand for x in stage.inputs)), None)


def _unless_both_nan(
    run: RelatedRuns, other: Stage, mine: Stage, choices: tuple[Stage | None, Stage]
) -> Link:
    """Split: two codes are both NaNs, which may be any two, and so are results; or neither is, which is returned."""
    (x,), (y,), fmt = other.inputs, mine.inputs, mine.given["fmt"]
    left, right = choices
    demand(left is not None, "the runs have not the same stages")
    assert left is not None
    (code,) = run.known([y])
    nans = [is_nan(each, fmt) for each in (x, y)]
    some = Link(z3.And(code.claim, *nans), (x, y))
    none = Link(z3.And(code.claim, *(z3.Not(nan) for nan in nans)), (x, y))
    run.argument.split("both codes are NaNs, or neither", [some, none], [code])
    inputs = [*(term for each in choices for part in each.inputs[:2] for term in _terms(part))]  # type: ignore[union-attr]
    codes = [each for each in right.inputs[2:] if not isinstance(each, Operand) and not each.eq(y)]
    inputs += [constant for term in run.shared(codes) for constant in constants_of(term)]
    pair, given = (left.output, right.output), [some, *run.known(codes)]
    flags = [each.inputs[1].nan for each in choices if each is not None]
    if all(
        code.arg(0).eq(nan) for code, nan in zip(pair, flags, strict=True)
    ):  # a NaN is looked for under this alone
        found = Link(z3.And(flags), tuple(flags))
        given.append(run.derive("classify", "a NaN as addend makes the sum one", found, [some]))
    _code(run, "encode", "a NaN as addend makes related NaNs", fmt, pair, given, inputs)
    run.know(none)
    return none


def _classify(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    alone = run.dropped(other.inputs, mine.inputs)
    zeros = {id(stage): (stage, link) for stage, link in alone.values()}
    factors = [run.zero_factors(stage.inputs[0], stage.inputs[1], link) for stage, link in zeros.values()]
    inputs = run.shared([*mine.inputs, *(other.inputs[i] for i in alone)])
    given = [*run.known(mine.inputs), *factors]
    text, special = "special values are related", run.kind.special(other.output, mine.output)
    link = run.derive("classify", text, special, given, inputs)
    chosen = any(
        stage.name == "select" and any(x is mine.output for x in stage.inputs) for stage in run.right
    )
    if (isinstance(run.kind, Opposite) or any(map(run.is_turned, mine.inputs))) and not chosen:
        _unless_nan(run, other, mine, link)
    return link


def _unless_nan(run: RelatedRuns, other: Stage, mine: Stage, special: Link) -> None:
    """Split: the result is a NaN in both runs; or no operand is one, so that all have the other sign."""
    nan = other.output.nan
    some, none = Link(nan), Link(z3.Not(nan))
    run.argument.split("the result is a NaN or not", [some, none], terms=[nan])
    for x, y in zip(run.left, run.right, strict=True):
        if any(each is mine.output for each in y.inputs):
            demand(hasattr(y.output, "rounded"), f"no argument relates two runs at the stage {y.name}")
            pair, inputs = (x.output.result, y.output.result), [*x.output.rounded, *y.output.rounded]
            text = "two NaN results are related"
            _code(run, "encode", text, y.given["rho"].format, pair, [special, some], inputs)
    flags = [term for x in other.inputs for term in _terms(x)]
    for y in mine.inputs:
        x = run.place(y)
        number, turned = Link(z3.Not(x.nan), (x.nan,)), run.is_turned(y)
        if not turned and not run.known([y]):
            continue
        run.derive("classify", "no operand is a NaN", number, [none], flags)
        if turned:  # a NaN keeps its sign, so that products of other factors' signs are the same ones
            run.numbers[_key(y)] = run.derive("decode", "no operand is a NaN", Link(number.claim), [number])
            continue
        text, (weak,) = "numbers of related codes are opposite", run.known([y])
        run.add(y, run.derive("decode", text, run.kind.operand(x, y), [weak, number]))


# ---- terms and sums -------------------------------------------------------------------------------------------------


def _multiply(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    inputs, numbers = run.shared(mine.inputs), [run.numbers.get(_key(x)) for x in mine.inputs]
    given = [*run.known(mine.inputs), *(link for link in numbers if link is not None)]
    return run.product(other.output, mine.output, inputs, given)


def _largest(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    exponents = [[term.exponent for term in stage.inputs] for stage in (other, mine)]
    below = []
    for i, (stage, zero) in run.dropped(other.inputs, mine.inputs).items():
        x, y, *scales = stage.inputs
        above, code = run.code_of_addend(other.inputs)
        if above is None:
            raise ArgumentError("no argument is known where a sum without c has fewer terms in one run")
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
    if isinstance(run.kind, Opposite):
        total = _opposite_total(run, other, mine, terms)
    else:
        total = run.kind.summand(x.total, y.total, x.total.size() - 1)
        run.derive("accumulate", "the sums are related", total, [*terms, run.of(y.e_max)])
    run.add(y.total, run.sizes(x.total, y.total, total, bounded=True))


def _opposite_total(run: RelatedRuns, other: Stage, mine: Stage, terms: Sequence[Link]) -> Link:
    """Derives that aligned terms are opposite, what they add is, and so are the sums."""
    x, y = other.output, mine.output
    bits, links = max(x.x.size(), x.y.size()), []
    signed = zip(summands(x.total, 2), summands(y.total, 2), strict=True)
    pairs = zip(other.inputs, mine.inputs, (x.x, x.y), (y.x, y.y), terms, signed, strict=True)
    for u, v, left, right, term, (s, t) in pairs:
        flip = z3.Or(u.sign != v.sign, left == 0)
        link = Link(z3.And(left == right, flip), (left, u.sign, v.sign), ((right, left),))
        text = "aligned terms are opposite"
        run.derive("align", text, link, [term, run.of(y.e_max)])
        links.append(run.derive("align", text, link_opposite(s, t, (1 << bits) - 1), [link]))
    return run.argument.opposite_sum(x.total, y.total, links, 2, bits)


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
    total, *rest = mine.inputs
    given = [run.of(x) for x in (total.total, total.e_max, *rest)]
    return _result(run, "round", "related sums are rounded to related results", other, mine, given)


def _round_product(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    text = "related products are rounded to related codes"
    return _result(run, "round", text, other, mine, run.known(mine.inputs))


def _add(run: RelatedRuns, other: Stage, mine: Stage) -> Link | None:
    text = "sums of related numbers are related"
    if not run.known(mine.inputs) and mine.output.result.eq(other.output.result):
        return None
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


_LINKS: Mapping[str, RelatedLink] = {
    **dict.fromkeys(CODES, _made_alike),
    "select": _select,
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
    "round_flushed": _round_sum,
    "add": _add,
}
