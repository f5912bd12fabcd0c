"""Every input of a small unit, with its result, and on how many of them a property of results and sums is broken.

What is looked at is the executable's results, its stages' sums, and the exact sums as integers; rounding is by
definition, in rationals (`mmaformal/proof/definitions.py`).  `tools/docs/enumeration_table.py` compares the counts with
what `prove` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows
from mmaformal.cases.one_step import one_step
from mmaformal.cases.run import compiled_results, run_trace
from mmaformal.encodings.fda.executable import FdaStep
from mmaformal.facts.registry import facts_of
from mmaformal.formats import Format
from mmaformal.proof.definitions import grid_value, is_correct, is_faithful, rounded_index
from mmaformal.rounding import Conversion
from mmaformal.solver.answers import Answer, Holds
from mmaformal.spec import DotAdd

#: Rows that are computed at once.
BLOCK = 1 << 14

#: Exact sums are integers of this many places; c is e5m2, whose last place is 2^-16.
_PLACES = 16

#: The parameter of an algorithm by which a sum of products alone is rounded, before c is added.
_INNER = {"muladd": "product", "rnd2": "pair", "lowered": "rho"}


def every_row(spec: DotAdd) -> Iterator[Rows]:
    """All inputs, in blocks: the lowest bits of a row's number are c, then come a and b."""
    widths = [spec.c_format.storage_bits] + [spec.a_format.storage_bits] * spec.k
    widths += [spec.b_format.storage_bits] * spec.k
    for start in range(0, 1 << sum(widths), BLOCK):
        left = np.arange(start, min(start + BLOCK, 1 << sum(widths)), dtype=np.uint64)
        codes = []
        for width in widths:
            codes.append(left & np.uint64((1 << width) - 1))
            left = left >> np.uint64(width)
        none = np.zeros((len(left), 0), np.uint64)
        a, b = (np.stack(side, axis=1) for side in (codes[1 : 1 + spec.k], codes[1 + spec.k :]))
        yield Rows(a, b, codes[0], none, none)


@cache
def _integers(fmt: Format, places: int) -> NDArray[np.int64]:
    """Return each code's value · 2^places; 0 of what is no number."""
    values = [
        fmt.value(code) * 2**places if fmt.is_finite(code) else Fraction(0) for code in range(fmt.codes)
    ]
    assert all(value.denominator == 1 for value in values)
    return np.array([int(value) for value in values], np.int64)


@cache
def _numbers(fmt: Format) -> NDArray[np.float64]:
    """Return each code's value, infinities included; NaN of a NaN."""
    numbers = [fmt.is_finite(code) for code in range(fmt.codes)]
    signs = [-1.0 if code & fmt.sign_mask else 1.0 for code in range(fmt.codes)]
    return np.array(
        [
            float(fmt.value(code)) if number else np.nan if fmt.is_nan(code) else sign * np.inf
            for code, (number, sign) in enumerate(zip(numbers, signs, strict=True))
        ]
    )


def _finite(fmt: Format) -> NDArray[np.bool_]:
    return np.isfinite(_numbers(fmt))


@dataclass(frozen=True)
class Every:
    """All inputs of a unit, in the order of `every_row`."""

    spec: DotAdd

    def _of_rows(self, of: Callable[[Rows], NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate([of(rows) for rows in every_row(self.spec)])

    @cached_property
    def results(self) -> NDArray[np.int64]:
        """The code of d."""
        return self._of_rows(lambda rows: compiled_results(self.spec, rows).astype(np.int64))

    @cached_property
    def products(self) -> NDArray[np.int64]:
        """The exact sum of products, in units of 2^-16."""
        spec = self.spec
        a, b = _integers(spec.a_format, 1), _integers(spec.b_format, 1)
        return self._of_rows(
            lambda rows: spec.product_sign * (a[rows.a] * b[rows.b]).sum(axis=1) << (_PLACES - 2)
        )

    @cached_property
    def addends(self) -> NDArray[np.int64]:
        """The value of c, in units of 2^-16."""
        spec = self.spec
        return self._of_rows(lambda rows: spec.c_sign * _integers(spec.c_format, _PLACES)[rows.c])

    @cached_property
    def are_numbers(self) -> NDArray[np.bool_]:
        """Whether all inputs are numbers."""
        fits = {fmt: _finite(fmt) for fmt in (self.spec.a_format, self.spec.b_format, self.spec.c_format)}

        def of(rows: Rows) -> NDArray[np.int64]:
            factors = fits[self.spec.a_format][rows.a] & fits[self.spec.b_format][rows.b]
            return (factors.all(axis=1) & fits[self.spec.c_format][rows.c]).astype(np.int64)

        return self._of_rows(of).astype(np.bool_)

    def count(
        self,
        judge: Callable[[int, Fraction, Conversion], bool],
        rho: Conversion,
        sums: NDArray[np.int64],
        where: NDArray[np.bool_],
    ) -> int:
        """Return on how many of the inputs `where` the result is not what `judge` allows of a sum."""
        codes = self.spec.d_format.codes
        keys, counts = np.unique(sums[where] * codes + self.results[where], return_counts=True)
        pairs = zip((keys // codes).tolist(), (keys % codes).tolist(), counts.tolist(), strict=True)
        return sum(n for x, d, n in pairs if not judge(d, Fraction(x, 1 << _PLACES), rho))

    def misrounded(
        self,
        judge: Callable[[int, Fraction, Conversion], bool],
        sums: NDArray[np.int64] | None = None,
        where: NDArray[np.bool_] | None = None,
    ) -> int:
        """Return on how many inputs d is not a rounding of its exact sum."""
        sums = self.products + self.addends if sums is None else sums
        here = self.are_numbers if where is None else self.are_numbers & where
        return self.count(judge, self.spec.parameters.last_rounding, sums, here)

    # ---- order ---------------------------------------------------------------------------------------------------

    def out_of_order(self, keys: NDArray[np.float64]) -> int:
        """Return on how many inputs another one of the same row, whose key is no smaller, has a smaller d.

        The last axis of `keys` is what changes; a NaN is in no order.
        """
        numbers = _numbers(self.spec.d_format)[self._arranged(self.results, keys.shape)]
        order = np.argsort(keys, kind="stable")  # NaNs come last
        keys, d = keys[order], numbers[:, order]
        known = ~np.isnan(keys)
        least = np.where(np.isnan(d) | ~known, np.inf, d)
        after = np.minimum.accumulate(least[:, ::-1], axis=1)[:, ::-1]
        first = np.searchsorted(keys[known], keys[known], side="left")  # of those with an equal key
        return int((after[:, first] < d[:, known]).sum())

    def _arranged(self, of: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
        return of.reshape(-1, *shape)

    def out_of_order_in_c(self) -> int:
        """Return on how many inputs a larger c has a smaller d."""
        return self.out_of_order(_numbers(self.spec.c_format))

    def out_of_order_in_products(self) -> int:
        """Return on how many inputs and places a larger product has a smaller d."""
        spec, kept = self.spec, self.results
        a, b, c = spec.a_format.codes, spec.b_format.codes, spec.c_format.codes
        axes = kept.reshape([b] * spec.k + [a] * spec.k + [c])  # the last place comes first
        with np.errstate(invalid="ignore"):  # 0·∞ is in no order
            keys = (_numbers(spec.b_format)[:, None] * _numbers(spec.a_format)[None, :]).reshape(-1)
        count = 0
        for place in range(spec.k):
            moved = np.moveaxis(axes, (place, spec.k + place), (-2, -1)).reshape(-1)
            count += Every._with(spec, moved).out_of_order(keys)
        return count

    @staticmethod
    def _with(spec: DotAdd, results: NDArray[np.int64]) -> Every:
        every = Every(spec)
        every.__dict__["results"] = results
        return every

    # ---- the stages' sums ----------------------------------------------------------------------------------------

    def unreached(self) -> int:
        """Return how many of d's numbers, and infinities, no input gives; −0 need not be one."""
        fmt = self.spec.d_format
        given = np.zeros(fmt.codes, np.bool_)
        given[np.unique(self.results)] = True
        wanted = ~np.isnan(_numbers(fmt))
        wanted[fmt.sign_mask] = False
        return int((wanted & ~given).sum())

    def sum_bits(self) -> int | None:
        """Return how many bits the largest sum of a step takes; None of a unit whose steps have no such sum."""
        first_sum, most = facts_of(self.spec).first_sum, 0
        for rows in every_row(self.spec):
            steps = run_trace(self.spec, rows.codes).steps
            for step in (each for each in steps if type(each) is type(steps[0])):  # the last may add c alone
                if (total := first_sum(step)) is None:
                    return None
                most = max(most, int(np.abs(np.asarray(total)).max()))
        return most.bit_length()

    @cached_property
    def losses(self) -> NDArray[np.float64] | None:
        """How far an aligned sum is off, in units of 2^(e_max − F); None of a unit that does not align."""
        spec, p = self.spec, self.spec.parameters
        inner = (p.made_of(spec) or spec).parameters
        found: list[NDArray[np.float64]] = []
        exact = self.products + (0 if p.made_of(spec) else self.addends)
        for start, rows in enumerate(every_row(spec)):
            steps = [each for each in run_trace(spec, rows.codes).steps if isinstance(each, FdaStep)]
            if len(steps) != 1:
                return None
            total = np.asarray(steps[0].total, np.float64)
            places = inner.sum_places - np.asarray(steps[0].e_max) - _PLACES
            of = exact[start * BLOCK : start * BLOCK + len(rows)].astype(np.float64)
            found.append(total - np.ldexp(of, places))
        return np.where(self.are_numbers, np.concatenate(found), 0.0)

    def rounded(
        self, sums: NDArray[np.int64], rho: Conversion
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return ρ of each sum, and whether that is finite."""
        keys, places = np.unique(sums, return_inverse=True)
        values, finite = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        for i, key in enumerate(keys.tolist()):
            x = Fraction(key, 1 << _PLACES)
            size = grid_value(rounded_index(x, rho), rho) * (1 << _PLACES)
            assert size.denominator == 1
            values[i] = int(size) if key >= 0 else -int(size)
            finite[i] = size < 2 ** (rho.format.max_exponent + 1 + _PLACES)
        return values[places.reshape(-1)], finite[places.reshape(-1)]


def not_the_rounded_sum(every: Every) -> int | None:
    """Return on how many inputs a step is not what its roundings, by definition, make of its exact sums.

    An aligned sum is looked at where it is exact.  None of a unit whose sum is another.
    """
    p = every.spec.parameters
    inner: Conversion | None = getattr(p, _INNER.get(p.algorithm, ""), None)
    where = np.ones(len(every.results), np.bool_)
    if p.aligns:
        if every.losses is None:
            return None
        where = every.losses == 0
    sums = every.products + every.addends
    if inner is not None:
        part, finite = every.rounded(every.products, inner)
        sums, where = part + every.addends, where & finite
    return every.misrounded(is_correct, sums, where)


def _lossy(unit: Every, step: Every) -> int | None:
    if not unit.spec.parameters.aligns:
        return step.misrounded(is_correct)
    return None if unit.losses is None else int((unit.losses != 0).sum())


def _off_more(every: Every, answer: Answer) -> int | None:
    """Return on how many inputs a sum is off by more than is proved; −1 if none is off as much.

    Where no aligned sum is seen, whether each rounding is of the exact sum.
    """
    if not isinstance(answer, Holds) or every.losses is None:
        return not_the_rounded_sum(every)
    most, sizes = float(answer.numbers[0].value), np.abs(every.losses)
    return int((sizes > most).sum()) if sizes.max() >= most else -1


def broken(name: str, unit: Every, step: Every, answer: Answer) -> int | None:
    """Return how often a property is broken among all inputs, given all of `unit` and of one `step` of it.

    −1 where what was proved is true but not the least; None where enumeration does not see the property's subject.
    """
    if name == "accumulator-width":
        bits = unit.sum_bits()
        claimed = {each.name: each.value for each in answer.numbers} if isinstance(answer, Holds) else {}
        return None if bits is None or not claimed else int(bits - claimed["sum bits"])
    if name == "error-bound":
        return _off_more(step, answer)
    counts: dict[str, Callable[[], int | None]] = {
        "every-number": unit.unreached,
        "monotonicity-in-c": unit.out_of_order_in_c,
        "monotonicity-in-a-product": unit.out_of_order_in_products,
        "exactness": lambda: not_the_rounded_sum(step),
        "lossless-width": lambda: _lossy(unit, step),
        "correct-rounding": lambda: unit.misrounded(is_correct),
        "faithful-rounding": lambda: unit.misrounded(is_faithful),
        "correct-rounding-of-each-step": lambda: step.misrounded(is_correct),
    }
    return counts[name]()


def both_of(spec: DotAdd) -> tuple[Every, Every]:
    """Return all inputs of a unit, and of one step of it."""
    unit = Every(spec)
    alone = one_step(spec)
    return unit, unit if alone == spec else Every(alone)
