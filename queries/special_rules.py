"""A unit's own ways with special values, where a model explains the rest.

Subnormal numbers taken for zeros, results that saturate, signs of zeros, NaNs: each is a finding beside a model, not
another model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.codes import (
    exponent,
    exponent_field,
    is_finite,
    is_infinite,
    is_nan,
    magnitude,
    some_nan,
)
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import quick_results
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import Format
from mmaformal.solver.deadline import checking
from mmaformal.spaces import details
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Fewer rows than these without special values say little.
FEW = 100
#: Models that rules are fitted to, details of the best of them, rows for these, and how many are tried on all rows.
_MODELS, _DETAILS, _ROWS, _LIKELY = 8, 600, 400, 60
#: Sets of rules that details are tried with.
_RULES = 10

_OPERANDS = {"a": "a subnormal a is taken for zero", "b": "a subnormal b is taken for zero"}
_SAID = {**_OPERANDS, "c": "a subnormal c is taken for zero", "d": "a subnormal result is zero"}


@dataclass(frozen=True, repr=False)
class SpecialRules(ShortRepr):
    """The rules for special values before and after a model; by default there are none."""

    flushed: frozenset[str] = frozenset()  #: of "a", "b", "c", "d": whose subnormal numbers are zeros
    saturates: bool = False  #: an infinity of finite inputs is the largest number
    one_nan: bool = False  #: NaNs are not distinguished
    one_zero: bool = False  #: nor the signs of zero results

    def __bool__(self) -> bool:
        return self != SpecialRules()

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.flushed) + self.saturates + self.one_nan + self.one_zero

    def inputs(self, rows: Rows, types: Types) -> Rows:
        """The inputs as the unit takes them."""
        named = {"a": types.a, "b": types.b, "c": types.c}
        taken = {x: _flushed(getattr(rows, x), fmt) for x, fmt in named.items() if x in self.flushed}
        return replace(rows, **taken)

    def contradicted(self, rows: Rows, d: NDArray[np.uint64], types: Types) -> NDArray[np.bool_]:
        """The answers that a unit with these rules cannot give."""
        found = np.zeros(len(d), np.bool_)
        if "d" in self.flushed:
            found |= _subnormal(d, types.d) & (_magnitude(d, types.d) != 0)
        if self.saturates:
            found |= _of(is_infinite, d, types.d) & _finite_inputs(rows, types)
        return found

    def results(self, d: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
        """Results, those the same that the rules make the same."""
        if "d" in self.flushed:
            d = _flushed(d, fmt)
        if self.saturates and fmt.infinity is not None:
            step = np.uint64(1 << fmt.ignored_low_bits)
            largest = _magnitude(d, fmt) == np.uint64(fmt.infinity) - step
            d = np.where(largest, d + step, d)
        if self.one_zero:
            d = np.where(_magnitude(d, fmt) == 0, np.uint64(0), d)
        return np.where(_of(is_nan, d, fmt), np.uint64(some_nan(fmt)), d) if self.one_nan else d


def _finite_inputs(rows: Rows, types: Types) -> NDArray[np.bool_]:
    factors = _of(is_finite, rows.a, types.a).all(axis=1) & _of(is_finite, rows.b, types.b).all(axis=1)
    return factors & _of(is_finite, rows.c, types.c)


def _of(fact: object, codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    if not callable(fact):
        raise TypeError(f"{fact!r} is no function")
    return np.asarray(fact(codes.astype(np.int64), fmt))


def _magnitude(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
    return np.asarray(magnitude(codes.astype(np.int64), fmt)).astype(np.uint64)


def _subnormal(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    """Say which codes are subnormal numbers or zeros."""
    least = _of(exponent_field, codes, fmt) == 0
    return np.asarray(_of(is_finite, codes, fmt) & least if fmt.has_zero else np.zeros_like(least))


def _flushed(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
    """Return the codes with zeros of their signs in place of subnormal numbers."""
    signs = np.uint64(0 if fmt.is_nan(fmt.sign_mask) else fmt.sign_mask)
    return np.where(_subnormal(codes, fmt), codes & signs, codes)


def wrong(
    spec: DotAdd, rows: Rows, d: NDArray[np.uint64], rules: SpecialRules | None = None
) -> NDArray[np.bool_]:
    """The rows that a model with some rules does not explain; a NaN that the model does not know is any."""
    rules = rules or SpecialRules()
    rules = rules if spec.nan_is_canonical else replace(rules, one_nan=True)
    types = Types.of(spec)
    gives = quick_results(spec, rules.inputs(rows, types))
    found = np.asarray(rules.results(gives, types.d) != rules.results(d, types.d))
    return found | rules.contradicted(rows, d, types)


# ---- rows where no rule shows ----------------------------------------------------------------------------------------


def rows_without_special(rows: Rows, d: NDArray[np.uint64], types: Types) -> NDArray[np.bool_]:
    """The rows without special values: inputs and result are normal numbers, and so is every sum on the way.

    Where few rows are so, sums on the way may be subnormal.
    """
    normal = _of(is_finite, d, types.d) & ~_subnormal(d, types.d)
    for margin in (types.a.fraction_bits + types.b.fraction_bits, 0):
        found = plain_inputs(rows, types, margin) & normal
        if found.sum() >= FEW:
            break
    return found


def plain_inputs(rows: Rows, types: Types, margin: int = 0) -> NDArray[np.bool_]:
    """The rows whose inputs are normal numbers, and whose terms are: `margin` places above the least one of d."""
    sides = [(rows.a, types.a), (rows.b, types.b), (rows.c[:, None], types.c)]
    if types.scale is not None:
        sides += [(rows.scale_a, types.scale), (rows.scale_b, types.scale)]
    good = np.ones(len(rows), np.bool_)
    for codes, fmt in sides:
        good &= (_of(is_finite, codes, fmt) & ~_subnormal(codes, fmt)).all(axis=1)
    products = exponent(rows.a, types.a) + exponent(rows.b, types.b)
    if types.scale is not None:
        scales = exponent(rows.scale_a, types.scale) + exponent(rows.scale_b, types.scale)
        products = products + np.repeat(scales, products.shape[1] // scales.shape[1], axis=1)
    c = exponent(rows.c, types.c)
    low, high = types.d.min_exponent, types.d.max_exponent - products.shape[1].bit_length() - 2
    good &= (products >= low + margin).all(axis=1) & (products <= high).all(axis=1)
    good &= (c >= low + min(margin, types.c.fraction_bits)) & (c <= high)
    return good


# ---- finding the rules -----------------------------------------------------------------------------------------------


def fitted(
    specs: Sequence[DotAdd], rows: Rows, d: NDArray[np.uint64], detailed: bool
) -> tuple[DotAdd, SpecialRules]:
    """The model and the rules that leave the fewest rows unexplained; of several, the fewest rules.

    detailed: the models stand for all that they may do with zeros and special values.
    """

    given = _rules()
    best, _ = _fewest(product(specs[:_MODELS], given), rows, d)[0]
    likely = [(best, rules) for rules in given]
    if detailed:  # rules may hide that a detail is wrong, and details that there is a rule
        few = _telling(best, rows, d)
        some = sorted(given, key=lambda rules: int(wrong(best, *few, rules).sum()))[:_RULES]
        likely += _fewest(product(islice(details(best), _DETAILS), some), *few)
    needed = [(spec, _needed(spec, rules, rows, d)) for spec, rules in checking(_fewest(likely, rows, d))]
    return min(needed, key=lambda pair: pair[1].size)


Fit: TypeAlias = tuple[DotAdd, SpecialRules]


def _fewest(pairs: Iterable[Fit], rows: Rows, d: NDArray[np.uint64]) -> list[Fit]:
    """Those that leave the fewest rows unexplained."""
    found = [(int(wrong(spec, rows, d, rules).sum()), (spec, rules)) for spec, rules in checking(pairs)]
    least = min((n for n, _ in found), default=0)
    return [pair for n, pair in found if n == least][:_LIKELY]


def _telling(spec: DotAdd, rows: Rows, d: NDArray[np.uint64]) -> tuple[Rows, NDArray[np.uint64]]:
    """Rows with special values, the ones first that the model does not explain."""
    special = np.nonzero(~rows_without_special(rows, d, Types.of(spec)))[0]
    missed = wrong(spec, rows.at(special), d[special], SpecialRules(one_nan=True, one_zero=True))
    few = special[np.argsort(~missed, kind="stable")][:_ROWS]
    return rows.at(few), d[few]


def _rules() -> list[SpecialRules]:
    """All of them, NaNs and zeros being one each."""
    sets = chain.from_iterable(combinations("abcd", n) for n in range(5))
    found = (
        SpecialRules(frozenset(flushed), saturates, True, True)
        for flushed, saturates in product(sets, (False, True))
    )
    return sorted(found, key=lambda rules: rules.size)


def _needed(spec: DotAdd, rules: SpecialRules, rows: Rows, d: NDArray[np.uint64]) -> SpecialRules:
    """Returns the rules with NaNs and zeros distinguished where that leaves no more rows unexplained."""
    least = int(wrong(spec, rows, d, rules).sum())
    for name in ("one_zero", "one_nan"):
        zero, nan = (getattr(rules, each) and name != each for each in ("one_zero", "one_nan"))
        stricter = replace(rules, one_zero=zero, one_nan=nan)
        if int(wrong(spec, rows, d, stricter).sum()) == least:
            rules = stricter
    return rules


# ---- findings --------------------------------------------------------------------------------------------------------


def findings(
    spec: DotAdd, rules: SpecialRules, rows: Rows, d: NDArray[np.uint64], nan_rule: str | None
) -> list[str]:
    """Return the rules in words, a sentence each; `nan_rule`: what was read of its NaNs, if they are not all one."""
    fmt, types = spec.d_format, Types.of(spec)
    gives = quick_results(spec, rules.inputs(rows, types))
    said = [_SAID[name] for name in sorted(rules.flushed)]
    if rules.saturates:
        said.append(_overflow(gives, d, rows, types))
    if rules.one_zero:
        said.append(_zeros(gives, d, fmt))
    if rules.one_nan:
        said.append(_nans(gives, d, fmt, nan_rule))
    return said


def _overflow(gives: NDArray[np.uint64], d: NDArray[np.uint64], rows: Rows, types: Types) -> str:
    """Say what becomes of infinities that the model gives: of finite inputs, and whether of infinite ones too."""
    finite = _finite_inputs(rows, types)
    infinite, kept = (_of(is_infinite, x, types.d) for x in (gives, d))
    others = " and so is an infinity" if (infinite & ~finite).any() and not kept.any() else ""
    return f"an overflow of finite inputs is the largest number{others}"


def _zeros(gives: NDArray[np.uint64], d: NDArray[np.uint64], fmt: Format) -> str:
    zero = _magnitude(d, fmt) == 0
    both = zero & (_magnitude(gives, fmt) == 0)
    signs = {"+0": 0, "−0": fmt.sign_mask}
    for name, code in signs.items():
        if (d[zero] == code).all():
            return f"a zero result is always {name}"
    other = int((both & (d != gives)).sum())
    return f"a zero result has the other sign in {other:,} of {counted(int(both.sum()), 'row')}"


def _nans(gives: NDArray[np.uint64], d: NDArray[np.uint64], fmt: Format, rule: str | None) -> str:
    """Its NaN, or NaNs, beside the model's."""
    both = _of(is_nan, d, fmt) & _of(is_nan, gives, fmt)
    own, models = (np.unique(x[both]).tolist() for x in (d, gives))
    of_model = f", the model's {models[0]:#x}" if len(models) == 1 else ""
    if len(own) == 1:
        return f"its NaN is {own[0]:#x}{of_model}"
    if len(own) == 2 and own[0] ^ own[1] == fmt.sign_mask:
        return f"its NaN is {own[0]:#x} of either sign{of_model}"
    told = rule.removeprefix("NaN: ") if rule else f"{len(own):,} codes"
    return f"its NaN is {told}{of_model}"
