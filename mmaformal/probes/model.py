"""The model that was read: a tree of sums, run on rows of numbers and compared with the unit's answers.

Numbers are integers of one fixed point, so that every sum is exact until it is cut or rounded as was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.codes import is_finite, same_code
from mmaformal.cases.generate import Distribution, generate
from mmaformal.cases.in_common import Trait, in_common
from mmaformal.cases.inputs import Rows
from mmaformal.display import ShortRepr
from mmaformal.formats import Format
from mmaformal.probes.box import Box, Response
from mmaformal.probes.modes import MODES
from mmaformal.probes.special import Behaviour
from mmaformal.probes.sums import ProbedSum
from mmaformal.probes.tree import Tree
from mmaformal.probes.zeros import ZeroExponent
from mmaformal.spaces.common import Types
from mmaformal.summation import Node

_DISTRIBUTIONS: tuple[Distribution, ...] = ("near", "edge", "numbers", "subnormal", "cancel", "equal")
#: How many rows are drawn for each that is asked: some have no finite inputs, or leave d's range.
_DRAWN = 3


class Variant(NamedTuple):
    """Two choices that are not read, but made so that most answers agree."""

    twice: bool = False  #: the last sum is kept as those before it are, and then rounded to d
    products: bool = False  #: products below d's least normal number are flushed before they are added

    def __str__(self) -> str:
        said = (
            "the last sum being rounded as those before it and then to d",
            "products being flushed before they are added",
        )
        return " and ".join(text for text, chosen in zip(said, self, strict=True) if chosen)


class NoModelError(Exception):
    """The parts of a unit that were read are not enough to compute a row."""


@dataclass(frozen=True, repr=False)
class Check(ShortRepr):
    """How many answers of the unit the model that was read gives."""

    rows: int  #: of finite numbers, whose products and sums are in d's range
    agree: int  #: signs of zeros aside
    why_not: str = ""  #: why no model was made of the reading
    in_common: tuple[Trait, ...] = ()  #: of the rows that it gets wrong
    wrong: tuple[Response, ...] = ()  #: the first of them
    how: str = ""  #: what was chosen so that most answers agree
    changed: int = 0  #: rows that have another answer when asked again

    @property
    def right(self) -> bool:
        """Whether the model gives every answer that was asked."""
        return 0 < self.rows == self.agree

    @property
    def says(self) -> str:
        """One sentence."""
        if self.why_not:
            return f"no model can be made of this reading: {self.why_not}"
        if not self.rows:
            return "the model read was not checked: no row of finite numbers stays in d's range"
        how = f", {self.how}" if self.how else ""
        only = "" if self.right else "only "
        return f"the model read reproduces {only}{self.agree:,} of {self.rows:,} rows of finite numbers{how}"

    def lines(self, types: Types) -> list[str]:
        """The sentence, and of rows that the model gets wrong what they have in common."""
        if self.changed:
            again = f"the unit is no function: {self.changed:,} rows have another answer when asked again"
            return [self.says, again]
        common = [f"  rows that it gets wrong: {trait}" for trait in self.in_common]
        if self.wrong and not common:
            common = ["  nothing that was looked for is common to the rows that it gets wrong"]
        return [self.says, *common, *(f"  one of them: {row.text(types)}" for row in self.wrong[:1])]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        common, wrong = [str(trait) for trait in self.in_common], [row.to_json() for row in self.wrong]
        return {
            "rows": self.rows,
            "agree": self.agree,
            "how": self.how,
            "changed": self.changed,
            "why_not": self.why_not,
            "in_common": common,
            "wrong": wrong,
        }


@dataclass(frozen=True)
class _Takes:
    """The types and sizes that cases are drawn for."""

    types: Types
    k: int
    scale_format: None = None
    scales: int = 0

    @property
    def a_format(self) -> Format:
        return self.types.a

    @property
    def b_format(self) -> Format:
        return self.types.b

    @property
    def c_format(self) -> Format:
        return self.types.c

    @property
    def d_format(self) -> Format:
        return self.types.d


@dataclass(frozen=True)
class _Term:
    """A number in units of the last place, and the exponent by which it is aligned; a zero's may be None."""

    value: int
    exponent: int | None


Evaluation: TypeAlias = Callable[[Sequence[_Term]], _Term]


class _OutOfRangeError(Exception):
    """A product or a sum is beyond d's largest number."""


class ReadModel:
    """A unit as it was read, as a function of its inputs.  Raises NoModelError where something needed is not told."""

    def __init__(
        self,
        types: Types,
        tree: Tree | None,
        sums: Sequence[ProbedSum],
        exact_products: Behaviour,
        zero: ZeroExponent | None,
        subnormals: Sequence[Behaviour],
        variant: Variant,
    ) -> None:
        if tree is None:
            raise NoModelError("the order of summation is not told")
        if exact_products.does == "is lost":
            raise NoModelError("products are not exact, and how they are rounded is not read")
        self.types, self.tree, self.zero = types, tree, zero
        self.flushed = {each.case for each in subnormals if each.does == "flushed to zero"}
        self.sums = {id(node): each for node, each in zip(tree.sums, sums, strict=True)}
        self.last = sums[0]
        least = types.a.min_exponent + types.b.min_exponent - types.a.fraction_bits - types.b.fraction_bits
        self.base = min(
            least, types.c.min_exponent - types.c.fraction_bits, types.d.min_exponent - types.d.fraction_bits
        )
        between = (x for each in sums if (x := _between(each)) is not None)
        self.before = next(between, None) if variant.twice else None
        self.flushes_products = variant.products and "a product that is subnormal in d" in self.flushed
        self.root = self._sum(tree.root)

    def __call__(self, a: Sequence[int], b: Sequence[int], c: int) -> Fraction | None:
        """The result for codes of finite numbers; None if a product or a sum leaves d's range."""
        try:
            terms = [self._product(x, y) for x, y in zip(a, b, strict=True)]
            terms.append(self._operand(self.types.c, c, "a subnormal c", self.base))
            return Fraction(self.root(terms).value) * Fraction(2) ** self.base
        except _OutOfRangeError:
            return None

    # ---- terms ----

    def _operand(self, fmt: Format, code: int, case: str, base: int) -> _Term:
        value, exponent = _decoded(fmt, code, base)
        if case in self.flushed and exponent == fmt.min_exponent and not fmt.fields(code)[1]:
            value = 0
        return self._zero() if not value else _Term(value, exponent)

    def _zero(self, exponent: int | None = None) -> _Term:
        """A zero term; of a product, the exponent of its fields."""
        if self.zero is None:
            return _Term(0, None)
        raised = exponent if self.zero.fields else None
        known = [x for x in (raised, self.zero.exponent) if x is not None]
        return _Term(0, max(known, default=None))

    def _product(self, a: int, b: int) -> _Term:
        low = self.types.a.min_exponent - self.types.a.fraction_bits
        x = self._operand(self.types.a, a, "a subnormal a", low)
        y = self._operand(self.types.b, b, "a subnormal b", self.base - low)
        exponent = _decoded(self.types.a, a, low)[1] + _decoded(self.types.b, b, self.base - low)[1]
        value = x.value * y.value
        if abs(value).bit_length() - 1 + self.base > self.types.d.max_exponent:
            raise _OutOfRangeError
        if self.flushes_products and abs(value).bit_length() - 1 + self.base < self.types.d.min_exponent:
            value = 0
        return _Term(value, exponent) if value else self._zero(exponent)

    # ---- sums ----

    def _sum(self, node: Node | int) -> Evaluation:
        """A node of the tree as a function of all terms."""
        if isinstance(node, int):
            return lambda terms: terms[node]
        if node.open:
            raise NoModelError("the order within a sum is open")
        each = self.sums[id(node)]
        if groups := [x for x in node.children if isinstance(x, Node) and not x.rounded]:
            return self._with_group(each, node, groups[0])
        parts = [self._sum(x) for x in node.children]
        round_ = self._rounding(each)
        if not each.fused:
            places = each.rounded.cut_at
            cut = _Cut(places, "RZ") if places is not None else None
            return lambda terms: round_(self._added([part(terms) for part in parts], [cut] * len(parts)))
        cuts = [self._cut(each, x) for x in node.children]
        return lambda terms: round_(self._added([part(terms) for part in parts], cuts))

    def _with_group(self, each: ProbedSum, node: Node, group: Node) -> Evaluation:
        """Products that are summed on their own, and then added to c."""
        others = [x for x in node.children if x is not group]
        beside, first = each.beside_c, each.product
        if len(others) != 1 or not all(isinstance(x, int) for x in group.children):
            raise NoModelError("how several groups are aligned is not read")
        if beside is None or beside.kept is None or first is None or each.c is None or each.c.more:
            raise NoModelError("how a group is aligned to c is not told")
        parts, c = [self._sum(x) for x in group.children], self._sum(others[0])
        inner = None if first.more else _Cut(first.places, first.cut[0] if first.cut else "RZ")
        way = (beside.cut or each.c.cut or ("RZ",))[0]
        places = (beside.aligned or (beside.kept.places, beside.kept.more))[0]
        outer = [_Cut(places, way), _Cut(each.c.places, each.c.cut[0] if each.c.cut else way)]
        last = None if beside.normalised_cut is None else _Cut(beside.normalised_cut, way)
        round_ = self._rounding(each)

        def evaluated(terms: Sequence[_Term]) -> _Term:
            dot = self._added([part(terms) for part in parts], [inner] * len(parts))
            total = self._added([dot, c(terms)], outer)
            if last is not None and total.value:
                exponent = abs(total.value).bit_length() - 1
                total = _Term(last.of(total.value, exponent), total.exponent)
            return round_(total)

        return evaluated

    def _cut(self, each: ProbedSum, child: Node | int) -> _Cut | None:
        """How one child of a fused sum is cut; None: it is not, as far as was seen."""
        c = isinstance(child, Node) or child == self.tree.k
        beside = each.beside_c.kept if each.beside_c else None
        kept = (each.c if c else each.product) or each.product or beside or each.c
        if kept is None:
            raise NoModelError("how many places a fused sum keeps is not told")
        if not c and each.product is not None and beside is not None and not beside.more:
            if each.product.places != beside.places and not each.product.more:
                raise NoModelError("products keep other places beside c than beside each other")
            kept = kept if not kept.more else beside
        if kept.more:
            return None
        return _Cut(kept.places, kept.cut[0] if kept.cut else "RZ")

    def _added(self, terms: Sequence[_Term], cuts: Sequence[_Cut | None]) -> _Term:
        """The sum of aligned terms."""
        top = max((self._aligned(x) for x in terms if x.exponent is not None), default=None)
        total = 0
        for term, cut in zip(terms, cuts, strict=True):
            total += term.value if cut is None or top is None else cut.of(term.value, top - self.base)
        return _Term(total, top)

    def _aligned(self, term: _Term) -> int:
        assert term.exponent is not None
        if term.value and any(each.normalised for each in self.sums.values()):
            return (
                term.value.bit_length() - 1 + self.base
                if term.value > 0
                else (-term.value).bit_length() - 1 + self.base
            )
        return term.exponent

    def _rounding(self, each: ProbedSum) -> Callable[[_Term], _Term]:
        """How the result of a sum is rounded, and flushed."""
        d = self.types.d
        kept = _result(each, self.last)
        flushes = "a sum that is subnormal in d" in self.flushed

        def rounded(total: _Term) -> _Term:
            value = total.value
            if not value:
                return self._zero()
            exponent = abs(value).bit_length() - 1 + self.base
            if self.before is not None and each is self.last:
                value = self.before.of(value, exponent - self.base)
                exponent = abs(value).bit_length() - 1 + self.base
            narrow = kept is not None and kept.places <= d.fraction_bits
            if kept is not None:
                value = kept.of(value, (max(exponent, d.min_exponent) if narrow else exponent) - self.base)
            exponent = abs(value).bit_length() - 1 + self.base if value else 0
            if value and exponent > d.max_exponent:
                raise _OutOfRangeError
            if flushes and exponent < d.min_exponent:
                value = 0
            return _Term(value, max(exponent, d.min_exponent)) if value else self._zero()

        return rounded


@dataclass(frozen=True)
class _Cut:
    """So many places are kept below an exponent, and the rest is cut or rounded."""

    places: int
    mode: str

    def of(self, value: int, exponent: int) -> int:
        """The value cut, in the same units; the exponent is in those too."""
        shift = exponent - self.places
        if shift <= 0 or not value & ((1 << shift) - 1):
            return value
        if self.mode == "RZ":
            return value >> shift << shift if value >= 0 else -(-value >> shift << shift)
        return MODES[self.mode](Fraction(value, 1 << shift)) << shift


def _between(each: ProbedSum) -> _Cut | None:
    """Return what the next sum gets of a result, where that has more places than d seems to; else None."""
    kept = each.carried
    return _Cut(kept.places, kept.cut[0]) if kept is not None and kept.cut and not kept.more else None


def _result(each: ProbedSum, last: ProbedSum) -> _Cut | None:
    """How a result is rounded, as the last one where it has as many places and more is not told; None: it is not."""
    kept = each.carried
    if each is not last and kept is not None:
        if kept.more:
            return None
        if kept.cut:
            return _Cut(kept.places, kept.cut[0])
        each = each if each.rounded.names else last
        if each.rounded.places != kept.places:
            raise NoModelError("how the result of a sum is rounded before the next one is not told")
    if each.rounded.places is None or not each.rounded.names:
        raise NoModelError("how results are rounded is not told")
    return _Cut(each.rounded.places, each.rounded.names[0])


@lru_cache(maxsize=1 << 14)
def _decoded(fmt: Format, code: int, base: int) -> tuple[int, int]:
    """The number in units of 2^base, and the exponent of its fields."""
    value = fmt.value(code) / Fraction(2) ** base
    assert value.denominator == 1
    return int(value), max(fmt.fields(code)[1], 1) - fmt.bias


# ---- the check -------------------------------------------------------------------------------------------------------


def checked(box: Box, make: Callable[[Variant], ReadModel], rows: int) -> Check:
    """How many answers of rows of finite numbers, drawn as cases are, the model read gives; of its variants, the one
    that gives most."""
    drawn = _finite(box.types, generate(_Takes(box.types, box.k), rows * _DRAWN, 17, _DISTRIBUTIONS))
    drawn = drawn.at(np.random.default_rng(3).permutation(len(drawn)))
    best: Check | None = None
    for variant in (Variant(*each) for each in product((False, True), repeat=2)):
        try:
            found = _of_model(box, make(variant), drawn, rows)
        except NoModelError as error:
            return Check(0, 0, str(error), changed=_changed(box, drawn.at(slice(0, rows))))
        if best is None or found.agree > best.agree:
            best = replace(found, how=str(variant))
        if best.right or best.changed:
            break
    assert best is not None
    return best


def _finite(t: Types, rows: Rows) -> Rows:
    """The rows of finite numbers."""
    sides = [(rows.a, t.a), (rows.b, t.b), (rows.c[:, None], t.c)]
    good = [np.asarray(is_finite(codes.astype(np.int64), fmt)).all(axis=1) for codes, fmt in sides]
    return rows.at(np.logical_and.reduce(good))


def _of_model(box: Box, model: ReadModel, drawn: Rows, rows: int) -> Check:
    """One model, on the first rows whose sums stay in d's range."""
    chosen: list[int] = []
    expected: list[Fraction] = []
    for i in range(len(drawn)):
        case = drawn[i]
        value = model(case.a, case.b, case.c)
        if value is not None:
            chosen.append(i)
            expected.append(value)
        if len(chosen) == rows:
            break
    return _compared(box, drawn.at(np.array(chosen, np.intp)), expected) if chosen else Check(0, 0)


def _changed(box: Box, rows: Rows, first: NDArray[np.uint64] | None = None) -> int:
    """How many rows have another answer when asked again, in another order."""
    if first is None:
        first = box.run(rows.a, rows.b, rows.c)
    again = box.run(rows.a[::-1], rows.b[::-1], rows.c[::-1])[::-1]
    return int((~np.asarray(same_code(first.astype(np.int64), again.astype(np.int64), box.types.d))).sum())


def _compared(box: Box, rows: Rows, expected: Sequence[Fraction]) -> Check:
    t = box.types
    answers = box.run(rows.a, rows.b, rows.c)
    d = answers.tolist()
    numbers = [t.d.value(code) if t.d.is_finite(code) else None for code in d]
    wrong = np.array([x != y for x, y in zip(numbers, expected, strict=True)])
    cases = [(rows[int(i)], d[int(i)]) for i in np.nonzero(wrong)[0][:3]]
    shown = tuple(Response(case.a, case.b, case.c, code) for case, code in cases)
    common = in_common(t[:4], rows, wrong) if wrong.any() else []
    changed = _changed(box, rows, answers)
    return Check(len(d), int((~wrong).sum()), "", tuple(common), shown, changed=changed)
