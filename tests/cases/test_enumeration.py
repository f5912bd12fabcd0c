"""Minimal witnesses against every case there is, of all algorithms, with block scales and under constraints.

Formats are narrow, or codes few: an input's codes are chosen from a list, which the search is told by a constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from support.minimality import (
    Choices,
    Chosen,
    chosen_from,
    claims,
    every_case,
    is_nan,
    least,
    measures,
    places,
)

from mmaformal import Different, find_difference
from mmaformal.cases.codes import both, either, is_finite, negation
from mmaformal.cases.codes import is_nan as nan_of
from mmaformal.cases.inputs import Rows
from mmaformal.cases.relations import Relation
from mmaformal.cases.run import results
from mmaformal.cases.shrink import size
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.sfma import Sfma
from mmaformal.facts import orders
from mmaformal.facts.settling import smallest_breaking as smallest_of
from mmaformal.formats import Format, Specials, bf16, e2m1, e4m3, e5m2, fp16, fp32, ue4m3, ue8m0
from mmaformal.instruction import Instruction
from mmaformal.queries import (
    order_independence,
    output_range,
    power_of_two_scaling,
    sign_symmetry,
    zero_padding,
)
from mmaformal.queries.constraints import Constraint, finite, fixed, magnitude, nonzero, normal
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, RNE_FP32, RZ_FP32, Conversion, Rounding
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd, Parameters

TINY = Format("e1m1", 3, 1, 1, 0, Specials.NONE, None)  #: 0, 1, 2, 3, and their opposites
E2M1_IEEE = Format("e2m1i", 4, 2, 1, 1, Specials.IEEE, None)  #: with infinities and NaNs
UE3 = Format("ue3m0", 3, 3, 0, 3, Specials.NONE, None, signed=False, has_zero=False)
UE4_LOW = Format("ue4m0", 4, 4, 0, 16, Specials.NONE, None, signed=False, has_zero=False)
RNE_E5M2 = Conversion("RNE-E5M2", e5m2, 2, Rounding.RNE)
RZ_E5M2 = Conversion("RZ-E5M2", e5m2, 2, Rounding.RZ)
IEEE_E5M2 = Conversion("IEEE-E5M2", e5m2, 2, Rounding.RNE, signed_zero=True)
RD_E5M2 = Conversion("RD-E5M2", e5m2, 2, Rounding.RD, signed_zero=True)
RD_FP32 = Conversion("RD-FP32", fp32, 23, Rounding.RD)
RU_FP32 = Conversion("RU-FP32", fp32, 23, Rounding.RU, signed_zero=True)


def codes(fmt: Format, *values: str) -> list[int]:
    return [fmt.code(x) for x in values]


#: values of c in fp32 about those of small products, near and far, special ones too
C32 = codes(fp32, "0", "-0", "1", "-1", "0x1.000002p+0", "-0x1.8p-3", "0x1p-24", "-0x1p-25", "0x1p+24", "-0x1p+30",
            "0x1p-149", "inf", "nan")  # fmt: skip
FEW32 = C32[:8]


# ---- differences -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two models of the same types, and the codes that their inputs have; `b` may be fixed at each place."""

    x: DotAdd
    y: Parameters
    choices: Choices = field(default_factory=dict)
    where: tuple[Constraint, ...] = ()
    allows: Callable[[Rows], Any] | None = None  #: what `where` says, of arrays

    @property
    def models(self) -> tuple[Instruction, Instruction]:
        return tuple(Instruction(name, "test", 16, 8, spec) for name, spec in self.specs)  # type: ignore[return-value]

    @property
    def specs(self) -> list[tuple[str, DotAdd]]:
        return [("X", self.x), ("Y", replace(self.x, parameters=self.y))]

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Inputs of one code are fixed; the others are chosen from a list that is the same at each place."""
        alike = {
            side: list(given) for side, given in self.choices.items() if not isinstance(given[0], Sequence)
        }
        pins: dict[str, dict[int, int]] = {"a": {}, "b": {}}
        for side, k, fmt in places(self.x):
            if side in pins and side not in alike and side in self.choices:
                (pins[side][k],) = chosen_from(self.choices, side, k, fmt)
        where = [fixed(a=pins["a"], b=pins["b"])] if any(pins.values()) else []
        return (*self.where, *where, *([Chosen(alike)] if alike else []))


def check_difference(pair: Pair, timeout: float = 120.0) -> None:
    """Compare the answer with what the executables give for every case.  Raises AssertionError."""
    every = every_case(pair.x, pair.choices)
    d = pair.x.d_format
    x, y = (results(spec, every.codes) for _, spec in pair.specs)
    differ = x != y
    if not all(spec.nan_is_canonical for _, spec in pair.specs):
        differ &= ~(is_nan(x, d) & is_nan(y, d))
    if pair.allows is not None:
        differ &= pair.allows(every)
        if any(isinstance(each, finite) for each in pair.where):
            differ &= is_finite(x, d) & is_finite(y, d)
    assert differ.any(), "the models agree"
    truth = least(measures(pair.x, every)[differ])
    answer = find_difference(*pair.models, where=pair.constraints, timeout=timeout)
    assert isinstance(answer, Different), f"they differ on a case of size {truth}, but: {answer}"
    w = answer.witness
    rows = Rows(*(np.array([side], np.uint64) for side in (w.a, w.b, w.c, w.scale_a, w.scale_b)))
    own = measures(pair.x, rows)[0].tolist()
    assert [number for number, _ in claims(answer.minimality)] == own
    assert tuple(own[:4]) == w.size
    assert own == truth, answer.minimality
    assert all(line.endswith("proved minimal") for line in answer.minimality), answer.minimality


A32 = codes(
    fp32, "0", "-0", "1", "-0x1.000002p+0", "0x1.fffffep+0", "0x1p-75", "0x1p-140", "0x1p+100", "inf", "nan"
)
BF = codes(bf16, "0", "-0", "1", "-0x1.02p+0", "0x1p-70", "-0x1.8p-60", "0x1p-130", "0x1p+100")
WIDE = codes(e5m2, "0", "-0", "1", "-1.75", "0x1p-16", "0x1p+15", "-0x1.4p-7", "inf")


def scaled(
    p: Parameters, k: int, block: int, scale: Format = UE3, a: Format = e2m1, c: Format = e5m2
) -> DotAdd:
    d = p["rho"].format
    return DotAdd(k, a, a, c, d, p, scale, block)


def plain(p: Parameters, k: int, a: Format, b: Format, c: Format = fp32, d: Format = fp32) -> DotAdd:
    return DotAdd(k, a, b, c, d, p)


def values_in(fmt: Format, allowed: Callable[[Any], bool]) -> Any:
    return np.array([allowed(fmt.value(x) if fmt.is_finite(x) else None) for x in range(fmt.codes)])


NONZERO = values_in(e2m1, lambda v: v != 0)

#: name → two models whose smallest difference is looked for
PAIRS: dict[str, Pair] = {
    # block scales, of fda: a pair for all products, one for each product of a step, one for two steps
    "scaled: one block": Pair(
        scaled(Fda(3, 2, RNE_E5M2, -9), 2, 2, a=TINY),
        Fda(4, 2, RNE_E5M2, -9),
        {"c": codes(e5m2, "0", "1", "-2.5", "nan"), "b": [1, 2, 7], "a": [0, 1, 4, 6]},
    ),
    "scaled: blocks narrower than a step": Pair(
        scaled(Fda(3, 2, RZ_E5M2, -9), 2, 1, a=TINY),
        Fda(4, 2, RZ_E5M2, -9),
        {"a": [0, 3, 6], "b": [[2], [3]], "c": codes(e5m2, "0", "1.25", "-3")},
    ),
    "scaled: a block of two steps": Pair(
        scaled(Fda(4, 1, RNE_E5M2, -12), 2, 2, a=TINY),
        Fda(4, 2, RNE_E5M2, -12),
        {"a": [0, 1, 3, 7], "b": [[3], [2]], "c": codes(e5m2, "0", "1.25", "-3")},
    ),
    "scaled: zeros with exponents of their scales": Pair(
        scaled(Fda(3, 1, RNE_E5M2, None), 1, 1, a=TINY),
        Fda(3, 1, RNE_E5M2, -9),
        {"c": codes(e5m2, "0", "1", "1.25", "-3.5", "0x1p-14")},
    ),
    # 6·0 has a larger exponent than 0·0, and cuts c: no product has to be nonzero.
    "scaled: which zeros there are matters": Pair(
        scaled(Fda(3, 2, RNE_E5M2, None), 2, 2),
        Fda(4, 2, RNE_E5M2, None),
        {
            "a": [0, 1, 7, 9],
            "b": [0, 2, 3],
            "c": [x for x in range(e5m2.codes) if 60 <= x % 128 < 124],
            "scale_a": [3],
            "scale_b": [3],
        },
    ),
    "scaled: NaN scales allowed, numbers above 1 only": Pair(
        scaled(Fda(2, 1, RZ_E5M2, -9), 1, 1, a=E2M1_IEEE),
        Fda(3, 1, RZ_E5M2, -9),
        {"c": codes(e5m2, "0", "1.25", "-3")},
    ),
    "scaled: ue8m0": Pair(
        scaled(Fda(3, 2, RNE_E5M2, -20), 2, 1, ue8m0),
        Fda(5, 2, RNE_E5M2, -20),
        {
            "a": [0, 3, 13],
            "b": [1, 5],
            "c": codes(e5m2, "0", "1.25"),
            "scale_a": [0, 120, 127, 130],
            "scale_b": [126, 128, 255],
        },
    ),
    # gdfs
    "groups: one": Pair(
        scaled(Gdfs(8, 2, 2, RNE_FP32, -40), 2, 2, ue4m3, c=fp32),
        Gdfs(9, 2, 2, RNE_FP32, -40),
        {
            "a": [0, 3, 8, 13],
            "b": [[5], [2]],
            "c": FEW32,
            "scale_a": [0, 56, 57, 8, 127],
            "scale_b": [1, 56, 63],
        },
    ),
    "groups: two with scales of their own": Pair(
        scaled(Gdfs(8, 1, 2, RZ_FP32, -40), 2, 1, ue4m3, c=fp32),
        Gdfs(9, 1, 2, RZ_FP32, -40),
        {"a": [0, 3, 13], "b": [[5], [2]], "c": FEW32[:2], "scale_a": [0, 57, 8, 9], "scale_b": [56, 63, 2]},
    ),
    "groups: of two and of one": Pair(
        scaled(Gdfs(8, 2, 2, RZ_FP32, 12), 2, 2, ue4m3, c=fp32),
        Gdfs(8, 1, 2, RZ_FP32, 12),
        {"b": [[5], [2]], "c": FEW32, "scale_a": [56, 57, 80], "scale_b": [56, 63]},
    ),
    "groups: e_zero": Pair(
        scaled(Gdfs(8, 2, 2, RZ_FP32, None), 2, 2, ue4m3, c=fp32),
        Gdfs(8, 2, 2, RZ_FP32, -40),
        {"a": [0, 1, 9, 8], "b": [[2], [2]], "c": FEW32, "scale_a": [0, 56, 80, 127], "scale_b": [0, 56, 90]},
    ),
    # exact sums
    "exact: rounded otherwise": Pair(
        plain(Efda(1, RNE_FP32), 1, e5m2, e2m1),
        Efda(1, RZ_FP32),
        {"c": C32},
    ),
    "exact: sorted terms and single ones": Pair(
        plain(Efda(2, RNE_FP32), 2, e5m2, e2m1),
        Efda(1, RNE_FP32),
        {"a": WIDE, "b": [2, 7], "c": FEW32},
    ),
    "exact: fixed point and single ones": Pair(
        plain(Efda(3, RNE_FP32), 3, e4m3, e2m1),
        Efda(1, RNE_FP32),
        {"a": [0, 1, 56, 126, 184], "b": [[2], [7], [9]], "c": FEW32},
    ),
    # pairwise sums
    "pairwise: groups of two and four": Pair(
        plain(Gps(4), 4, bf16, e2m1),
        Gps(2),
        {"a": BF[:7], "b": [[2], [2], [10], [3]], "c": FEW32[:5]},
    ),
    "pairwise: flushed": Pair(
        plain(Gps(2), 2, bf16, bf16),
        Efda(2, RNE_FP32),
        {"a": BF, "b": BF[2:6], "c": C32},
    ),
    # fma
    "fma: rounded otherwise": Pair(
        plain(Sfma(RNE_FP32), 1, fp32, fp32), Sfma(RU_FP32), {"a": A32, "b": A32, "c": [*A32, *C32]}
    ),
    "fma: two of them, signs of zeros": Pair(
        plain(Sfma(IEEE_FP32), 2, fp32, fp32),
        Sfma(RNE_FP32),
        {"a": A32[:6], "b": A32[:4], "c": A32[:5]},
    ),
    # rounding down
    "round down: cut toward zero": Pair(
        plain(Fdrda(23, 1, RNE_FP32), 1, e5m2, e2m1),
        Fdrda(23, 1, RNE_FP32, cut=Rounding.RZ),
        {"c": C32},
    ),
    "round down: zero products": Pair(
        plain(Fdrda(23, 2, RNE_FP32, 23, 24), 2, e5m2, e2m1),
        Fdrda(23, 2, RNE_FP32, 23, 24, skip_zero_products=False),
        {"a": WIDE, "b": [0, 2, 7], "c": FEW32},
    ),
    "round down: infinities first": Pair(
        plain(Fdrda(23, 2, RNE_FP32), 2, bf16, bf16),
        Fdrda(23, 2, RNE_FP32, inputs_first=True),
        {
            "a": codes(bf16, "0", "1", "-0x1p+100", "0x1p+127"),
            "b": codes(bf16, "-0", "1", "0x1p+60"),
            "c": C32,
        },
    ),
    "round down: grouped, c dropped": Pair(
        plain(Gfdrda(23, 2, RNE_FP32), 2, e5m2, e2m1),
        Gfdrda(23, 2, RNE_FP32, c_reach=3),
        {"a": WIDE, "b": [2, 7], "c": FEW32},
    ),
    "round down: grouped and not": Pair(
        plain(Gfdrda(24, 4, RNE_FP32, 24), 4, e5m2, e2m1),
        Fdrda(24, 4, RNE_FP32, 24),
        {"a": codes(e5m2, "0", "-1.75", "0x1p-16", "0x1p+15"), "b": [[2], [7], [3], [2]], "c": FEW32},
    ),
    # lowered
    "lowered: c added at the end": Pair(
        plain(Lowered(1, 1, RZ_FP32, -60, fp16, (0,), IEEE_FP32), 1, e5m2, e2m1),
        Lowered(2, 1, RZ_FP32, -60, fp16, (0,), IEEE_FP32),
        {"c": C32},
    ),
    "lowered: another order": Pair(
        plain(Lowered(2, 1, IEEE_FP16, -60, fp16, (0, 1), IEEE_FP16), 2, e4m3, e2m1, fp16, fp16),
        Lowered(2, 1, IEEE_FP16, -60, fp16, (1, 0), IEEE_FP16),
        {"a": [0, 1, 56, 57, 126, 184, 190], "b": [2, 3, 12], "c": codes(fp16, "0", "-1")},
    ),
    # constraints
    "allowed: normal numbers with scales": Pair(
        scaled(Fda(2, 1, RZ_E5M2, None), 1, 1),
        Fda(3, 1, RZ_E5M2, None),
        {"c": codes(e5m2, "0", "1.25", "-3", "0x1p-15")},
        (normal(),),
        lambda x: (x.a[:, 0] % 8 != 1) & (x.b[:, 0] % 8 != 1) & (x.c != e5m2.code("0x1p-15")),
    ),
    "allowed: no zeros, rounding down": Pair(
        plain(Fdrda(23, 2, RNE_FP32), 2, e2m1, e2m1),
        Fdrda(23, 2, RNE_FP32, cut=Rounding.RZ),
        {"b": [[2], [13]], "c": FEW32},
        (nonzero(),),
        lambda x: NONZERO[x.a].all(-1) & ~np.isin(x.c, C32[:2]),
    ),
    "allowed: large a, exact": Pair(
        plain(Efda(2, RNE_FP32), 2, e2m1, e2m1),
        Efda(2, RU_FP32),
        {"b": [1, 2, 10], "c": C32},
        (magnitude(2, 4, "a"), finite()),
        lambda x: (np.isin(x.a % 8, [0, 4, 5, 6]).all(-1)) & (x.c != C32[-1]) & (x.c != C32[-2]),
    ),
    "allowed: two odd sets": Pair(
        # −0 is no a, and +0 no b: zero products are of some signs only.
        plain(Fda(2, 2, RNE_E5M2, None), 2, e2m1, e2m1, e5m2, e5m2),
        Fda(3, 2, RNE_E5M2, None),
        {"a": [0, 3, 5, 13], "b": [8, 1, 2, 11], "c": codes(e5m2, "-0", "1.25", "-3", "0x1p-16")},
    ),
    "allowed: a alone is limited": Pair(
        plain(Fda(2, 1, RNE_E5M2, -9), 2, e2m1, e2m1, e5m2, e5m2),
        Fda(3, 1, RNE_E5M2, -9),
        {"a": [0, 3, 5, 13], "b": [[3], [10]], "c": codes(e5m2, "1.25", "-3", "0x1p-16")},
    ),
}

QUICK_PAIRS = {
    "fma: rounded otherwise",
    "fma: two of them, signs of zeros",
    "allowed: normal numbers with scales",
    "allowed: two odd sets",
    "groups: e_zero",
    "scaled: one block",
    "scaled: zeros with exponents of their scales",
    "scaled: which zeros there are matters",
    "round down: zero products",
    "lowered: c added at the end",
}


def _marked(names: Mapping[str, Any], quick: set[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in quick)) for name in names]


@pytest.mark.parametrize("name", _marked(PAIRS, QUICK_PAIRS))
def test_the_smallest_difference_is_that_of_all_cases(name: str) -> None:
    check_difference(PAIRS[name])


# ---- properties ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """A relation that some case breaks, and the codes that its inputs have."""

    relation: Relation
    choices: Choices = field(default_factory=dict)

    @property
    def limited(self) -> Relation:
        spec, choices = self.relation.left, self.choices

        def allowed(x: Any) -> Any:
            facts = [self.relation.allowed(x)] if self.relation.allowed(x) is not True else []
            for side, k, fmt in places(spec):
                if side in choices:
                    code = x.c if side == "c" else getattr(x, side)[k]
                    facts.append(either(*(code == each for each in chosen_from(choices, side, k, fmt))))
            return both(*facts) if facts else True

        return replace(self.relation, allowed=allowed)


def across(spec: DotAdd) -> Relation:
    return order_independence.relation_reordered(spec, orders.across_blocks(spec)[0])


def padded(spec: DotAdd) -> Relation:
    return zero_padding.relation_padded(zero_padding.padding(spec))


def no_nan(spec: DotAdd) -> Relation:
    allowed = output_range.all_finite(spec)
    return Relation(spec, spec, None, lambda x, _: negation(nan_of(x, spec.d_format)), "", allowed)


def no_minus_zero(spec: DotAdd) -> Relation:
    return Relation(spec, spec, None, lambda x, _: x != spec.d_format.sign_mask, "")


BROKEN: dict[str, Broken] = {
    "order: scaled, across steps": Broken(
        across(scaled(Fda(4, 1, RNE_E5M2, -12), 2, 2, a=TINY)),
        {"a": [0, 1, 3, 7], "b": [[3], [2]], "c": codes(e5m2, "0", "1.25", "-3")},
    ),
    "order: scales change places with their blocks": Broken(
        across(scaled(Fda(4, 1, RNE_E5M2, -12), 2, 1, a=TINY)),
        {
            "a": [0, 3, 7],
            "b": [[3], [2]],
            "c": codes(e5m2, "0", "1.25"),
            "scale_a": [1, 3, 4],
            "scale_b": [3, 5],
        },
    ),
    "order: two fma": Broken(
        across(plain(Sfma(RNE_FP32), 2, fp32, fp32)),
        {"a": A32[:8], "b": A32[2:5], "c": FEW32[:5]},
    ),
    "order: pairs": Broken(
        across(plain(Gps(4), 4, bf16, e2m1)),
        {"a": BF[:6], "b": [[2], [2], [10], [3]], "c": FEW32[:5]},
    ),
    "order: exact steps": Broken(
        across(plain(Efda(1, RNE_FP32), 2, e5m2, e2m1)),
        {"a": WIDE, "b": [2, 7, 9], "c": FEW32},
    ),
    "order: rounding down": Broken(
        across(plain(Fdrda(23, 1, RNE_FP32), 2, e5m2, e2m1)),
        {"a": WIDE, "b": [2, 7, 9], "c": FEW32},
    ),
    "order: lowered": Broken(
        across(plain(Lowered(2, 1, RNE_FP32, -60, fp16, (0, 1), IEEE_FP32), 2, e4m3, e2m1)),
        {"a": [0, 1, 56, 57, 126, 184, 190], "b": [2, 3, 12], "c": FEW32[:4]},
    ),
    "signs: rounding down": Broken(
        sign_symmetry.relation_negated(plain(Fdrda(23, 1, RNE_FP32), 1, e5m2, e2m1)),
        {"c": FEW32},
    ),
    "signs: scaled": Broken(
        sign_symmetry.relation_negated(scaled(Fda(6, 1, RD_E5M2, -9), 1, 1, a=TINY)),
        {"c": codes(e5m2, "0", "-0", "1.25", "-1.25", "3", "-3", "nan")},
    ),
    "signs: groups": Broken(
        sign_symmetry.relation_negated(scaled(Gdfs(8, 1, 1, RD_E5M2, -40), 1, 1, ue4m3)),
        {
            "b": [0, 3, 5, 10],
            "c": codes(e5m2, "0", "-0", "1.25", "-3"),
            "scale_a": [0, 56, 57, 2],
            "scale_b": [56, 63, 3, 127],
        },
    ),
    "signs: exact": Broken(
        sign_symmetry.relation_negated(plain(Efda(1, RU_FP32), 1, e5m2, e2m1)),
        {"c": [*FEW32, fp32.code("0x1.8p-3")]},
    ),
    "zeros: scaled, with exponents of their fields": Broken(
        padded(scaled(Fda(3, 2, RNE_E5M2, None), 2, 2)),
        {"c": codes(e5m2, "0", "1", "1.25"), "a": [0, 1, 6, 13], "b": [0, 3, 6], "scale_b": [2, 3, 5]},
    ),
    "zeros: rounding down, not skipped": Broken(
        padded(plain(Fdrda(23, 2, RNE_FP32, 23, 24, skip_zero_products=False), 2, e5m2, e2m1)),
        {"a": WIDE, "b": [0, 2, 7], "c": FEW32},
    ),
    "zeros: groups": Broken(
        padded(scaled(Gdfs(8, 1, 1, RZ_FP32, None), 1, 1, ue4m3, c=fp32)),
        {"a": [0, 3, 8], "b": [1, 5], "c": FEW32, "scale_a": [0, 56, 80], "scale_b": [56, 90]},
    ),
    "doubled: groups": Broken(
        power_of_two_scaling.relation_doubled(scaled(Gdfs(8, 2, 2, RZ_FP32, -40), 2, 2, ue4m3, c=fp32)),
        {
            "a": [0, 2, 3, 10, 12],
            "b": [[2], [2]],
            "c": [*C32[:10], fp32.code("0x1.02p-1")],
            "scale_a": [56, 57, 80],
            "scale_b": [56, 40],
        },
    ),
    "doubled: flushed": Broken(
        power_of_two_scaling.relation_doubled(plain(Gps(2), 2, bf16, bf16)),
        {
            "a": [*BF, *codes(bf16, "0x1p-69", "0x1.8p-57")],
            "b": [*BF[2:6], *codes(bf16, "0x1p-57")],
            "c": C32[:6],
        },
    ),
    "a NaN: a sum of two infinities": Broken(
        no_nan(plain(Gps(2), 2, bf16, bf16)), {"a": [*BF, BF[-1] ^ 0x8000], "b": BF[2:], "c": C32[:5]}
    ),
    "a NaN: products rounded up to an infinity": Broken(
        no_nan(plain(Fdrda(23, 2, RNE_FP32), 2, bf16, bf16)),
        {
            "a": codes(bf16, "0", "1", "-0x1p+100", "0x1p+127"),
            "b": codes(bf16, "-0", "1", "0x1p+60"),
            "c": C32,
        },
    ),
    "minus zero: scaled": Broken(
        no_minus_zero(scaled(Fda(6, 1, IEEE_E5M2, -30), 1, 1, UE4_LOW, a=TINY)),
        {"c": codes(e5m2, "0", "-0", "-1", "3")},
    ),
    "minus zero: fma": Broken(
        no_minus_zero(plain(Sfma(IEEE_FP32), 1, fp32, fp32)),
        {"a": A32[1:], "b": A32[2:], "c": A32[1:]},
    ),
    "minus zero: pairs": Broken(
        no_minus_zero(plain(Gps(2), 2, bf16, bf16)),
        {"a": [*BF, bf16.code("0x1p-56")], "b": BF[2:], "c": [*C32[1:6], fp32.code("-0x1.8p-126")]},
    ),
}

QUICK_BROKEN = {
    "minus zero: fma",
    "signs: groups",
    "signs: scaled",
    "signs: rounding down",
    "zeros: scaled, with exponents of their fields",
}


@pytest.mark.parametrize("name", _marked(BROKEN, QUICK_BROKEN))
def test_the_smallest_case_that_breaks_a_property_is_that_of_all_cases(
    solvers: LazyPortfolio, name: str
) -> None:
    check_property(solvers, BROKEN[name])


def check_property(solvers: LazyPortfolio, broken: Broken) -> None:
    """Compare the smallest case with that of all, started from the largest.  Raises AssertionError."""
    relation, spec = broken.limited, broken.relation.left
    every = every_case(spec, broken.choices)
    breaks = relation.runs(every)[2]
    assert breaks.any(), "no case breaks it"
    sizes = measures(spec, every)[breaks]
    truth = least(sizes)
    start = every[int(np.flatnonzero(breaks)[np.lexsort(sizes.T[::-1])[-1]])]
    found, minimality = smallest_of(Asker(solvers, 300), relation, start)
    own = measures(spec, Rows.of([found]))[0].tolist()
    assert [number for number, _ in claims(minimality)] == own == list(size(spec, found))
    assert own == truth, minimality
    assert all(line.endswith("proved minimal") for line in minimality), minimality
