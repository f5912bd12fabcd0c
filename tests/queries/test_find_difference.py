"""find_difference against all inputs there are, where there are few; what it rests on; what it says and refuses."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.proofs import some_proof
from support.slow import slow

from mmaformal import (
    Different,
    Equal,
    Unknown,
    UnknownInstructionError,
    ampere,
    blackwell,
    cdna1,
    cdna2,
    cdna3,
    find_difference,
    hopper,
    rtx_blackwell,
    volta,
)
from mmaformal.cases import smallest
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes as Case
from mmaformal.cases.inputs import symbolic_inputs, zeros
from mmaformal.cases.symmetries import symmetry_classes
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as smt_fda
from mmaformal.encodings.fda.proofs.e_zero import applies, prove_equal
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.smt import stages
from mmaformal.formats import Format, e2m1, e2m3, e3m2, e4m3, e4m3fnuz, e5m2, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries.constraints import Constraint, finite, fixed, magnitude, nonzero
from mmaformal.queries.find_difference import IncomparableError
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, RNE_FP16, RNE_FP32, RZ_E8M13, RZ_FP32
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio
from mmaformal.spec import DotAdd, Parameters
from mmaformal.witness import WitnessError, case_size, full_size

Codes = NDArray[np.int64]

# ---- all inputs there are


def model(
    k: int, a: Format, b: Format, c: Format, d: Format, parameters: Parameters, name: str
) -> Instruction:
    return Instruction(name, "test", 16, 8, DotAdd(k, a, b, c, d, parameters))


@dataclass(frozen=True)
class Small:
    """Two models with few inputs: `b` and `c` may be fixed, `where` says more in words and as a predicate."""

    types: tuple[Format, Format, Format, Format]
    k: int
    x: Parameters
    y: Parameters
    b: tuple[int, ...] | None = None
    c: int | None = None
    where: tuple[Constraint | str, ...] = ()
    allows: Callable[[Codes, Codes, Codes], NDArray[np.bool_]] | None = None

    @property
    def models(self) -> tuple[Instruction, Instruction]:
        return model(self.k, *self.types, self.x, "X"), model(self.k, *self.types, self.y, "Y")

    @property
    def constraints(self) -> list[Constraint | str]:
        pins = fixed(b=dict(enumerate(self.b)) if self.b else None, c=self.c)
        return [*self.where, *([pins] if self.b or self.c is not None else [])]

    def cases(self) -> tuple[Codes, Codes, Codes]:
        """a, b of shape (cases, K), c of shape (cases,)."""
        a, b, c, _ = self.types
        axes = [np.arange(a.codes)] * self.k
        axes += [np.array([code]) for code in self.b] if self.b else [np.arange(b.codes)] * self.k
        axes += [np.arange(c.codes) if self.c is None else np.array([self.c])]
        columns = [axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")]
        all_a, all_b = np.stack(columns[: self.k], -1), np.stack(columns[self.k : -1], -1)
        if self.allows is None:
            return all_a, all_b, columns[-1]
        kept = self.allows(all_a, all_b, columns[-1])
        return all_a[kept], all_b[kept], columns[-1][kept]


@dataclass(frozen=True)
class Measures:
    """Measures of some codes: what counts in how large a case is."""

    zero: NDArray[np.bool_]
    finite: NDArray[np.bool_]
    bits: Codes
    exponent: Codes
    minus: Codes

    @staticmethod
    def of(codes: Codes, fmt: Format) -> Measures:
        distinct, back = np.unique(codes, return_inverse=True)
        rows = []
        for code in map(int, distinct):
            sign, field, fraction = fmt.fields(code)
            finite = fmt.is_finite(code)
            zero = finite and fmt.value(code) == 0
            exponent = 0 if zero else abs(max(field, 1) - fmt.bias)
            rows.append((zero, finite, bin(fraction).count("1"), exponent, sign))
        table = np.array(rows, np.int64)[back.reshape(codes.shape)]
        return Measures(table[..., 0] == 1, table[..., 1] == 1, *(table[..., i] for i in (2, 3, 4)))


def sizes(types: Sequence[Format], a: Codes, b: Codes, c: Codes) -> Codes:
    """Each case's nonzero products; c ≠ 0; significand bits; exponents; those of factors; minus signs."""
    of_a, of_b, of_c = (Measures.of(x, fmt) for x, fmt in zip((a, b, c), types, strict=False))
    active = ~((of_a.zero | of_b.zero) & of_a.finite & of_b.finite)
    factors = (active * (of_a.exponent + of_b.exponent)).sum(-1)
    return np.stack(
        [
            active.sum(-1),
            ~of_c.zero,
            (active * (of_a.bits + of_b.bits)).sum(-1) + of_c.bits * ~of_c.zero,
            factors + of_c.exponent,
            factors,
            of_a.minus.sum(-1) + of_b.minus.sum(-1) + of_c.minus,
        ],
        -1,
    )


def smallest_difference(small: Small) -> list[int] | None:
    """The size of the smallest case on which the executables differ, looking at every case."""
    x, y = small.models
    a, b, c = small.cases()
    results = [
        i.dot_add(a.astype(i.a_format.word), b.astype(i.b_format.word), c.astype(i.c_format.word))
        for i in (x, y)
    ]
    d = x.d_format
    differ = results[0] != results[1]
    if not (x.spec.nan_is_canonical and y.spec.nan_is_canonical):
        codes = np.unique(np.concatenate(results))
        nans = codes[[d.is_nan(int(code)) for code in codes]]
        differ &= ~(np.isin(results[0], nans) & np.isin(results[1], nans))
    if not differ.any():
        return None
    all_sizes = sizes(small.types, a[differ], b[differ], c[differ])
    least: list[int] = all_sizes[np.lexsort(all_sizes.T[::-1])[0]].tolist()
    return least


_CLAIMS = (
    r"(\d+) nonzero products?",
    r"c (=|≠) 0",
    r"significand bits set: (\d+)",
    r"sum of \|exponent\|: (\d+)",
    r"of that in the products' factors: (\d+)",
    r"minus signs: (\d+)",
)
_FIRST = re.compile(r"first in order of place and code: (proved minimal|best found \(.+\))")


def claimed(answer: Different) -> tuple[list[int], list[bool]]:
    """Return the witness' size as the answer says it, and which parts of it are called proved minimal."""
    values, proved = [], []
    *lines, last = answer.minimality
    assert _FIRST.fullmatch(last)
    for pattern, line in zip(_CLAIMS, lines, strict=True):
        match = re.fullmatch(pattern + r": (proved minimal|best found \(.+\))", line)
        assert match, line
        values.append({"=": 0, "≠": 1}.get(match[1]) if match[1] in "=≠" else int(match[1]))
        proved.append(match[2] == "proved minimal")
    return values, proved  # type: ignore[return-value]


def check(small: Small, must_prove: bool = True, timeout: float = 60.0, solver: str | None = None) -> None:
    """Compare what find_difference answers with what looking at every case gives."""
    truth = smallest_difference(small)
    x, y = small.models
    answer = find_difference(x, y, where=small.constraints, timeout=timeout, solver=solver)
    if truth is None:
        assert isinstance(answer, Equal), f"they agree on every input, but: {answer}"
        assert answer.proof.obligations
        return
    assert isinstance(answer, Different), f"they differ on a case of size {truth}, but: {answer}"
    w = answer.witness
    a, b, c = (np.asarray(codes).astype(np.int64) for codes in (w.a, w.b, w.c))
    assert small.allows is None or small.allows(a[None], b[None], c[None]).all()
    assert small.b is None or tuple(b) == small.b
    assert small.c is None or int(c) == small.c
    values, proved = claimed(answer)
    assert values == sizes(small.types, a[None], b[None], c[None])[0].tolist()
    assert tuple(values[:4]) == w.size
    assert values >= truth
    for i, sure in enumerate(proved):
        if values[:i] == truth[:i] and sure:
            assert values[i] == truth[i], f"{answer.minimality[i]}, but there is a case of size {truth}"
    if must_prove:
        assert values == truth
        assert all(proved), answer.minimality


def codes_where(fmt: Format, allowed: Callable[[Any], bool]) -> NDArray[np.bool_]:
    """For each code of a small format: whether its value, None for infinities and NaNs, is allowed."""
    return np.array([allowed(fmt.value(c) if fmt.is_finite(c) else None) for c in range(fmt.codes)])


def fda(F: int, L: int = 1, e_zero: int | None = -60, rho: Any = RZ_FP32) -> Fda:
    return Fda(F, L, rho, e_zero)


NONZERO_E2M1 = codes_where(e2m1, lambda v: v != 0)
TINY_E2M1 = codes_where(e2m1, lambda v: v in (0, 0.5, -0.5))
NORMAL_E3M2 = codes_where(e3m2, lambda v: v == 0 or abs(v) >= 0.25)
code16, code32 = fp16.code, fp32.code

#: name → models with few enough inputs to look at all of them
SMALL = {
    "one product": Small((e2m1, e2m1, e4m3, fp32), 1, fda(2), fda(3)),
    "only c differs": Small((e2m1, e3m2, e3m2, fp32), 1, fda(6, e_zero=6), fda(6, e_zero=-8)),
    "nothing is lost": Small((e2m1, e2m1, e2m3, fp32), 1, fda(12), fda(9)),
    "e_zero below all": Small((e3m2, e2m1, e3m2, fp32), 1, fda(4, e_zero=-20), fda(4, e_zero=-21)),
    "sign of a rounded zero": Small(
        (e5m2, e5m2, fp16, fp16), 1, fda(9, rho=RNE_FP16), fda(9, rho=IEEE_FP16), c=code16("0")
    ),
    "coarse output": Small((e4m3, e2m1, e4m3, fp32), 1, fda(25), fda(25, rho=RZ_E8M13)),
    "coarse output and c": Small(
        (e4m3, e4m3, fp32, fp32), 1, fda(25), fda(25, rho=RZ_E8M13), c=code32("0x1.00008p+1")
    ),
    "two products": Small((e2m1, e2m1, e2m1, fp32), 2, fda(3, 2), fda(4, 2), c=2),
    "two of FNUZ": Small((e4m3fnuz, e2m1, fp32, fp32), 2, fda(5, 2), fda(6, 2), b=(3, 12), c=code32("-0.25")),
    # Two steps of one product against one step of two, and steps that are idle.
    "chain": Small(
        (e4m3, e2m1, fp16, fp16), 2, fda(5, 1, rho=RNE_FP16), fda(5, 2, rho=RNE_FP16), b=(3, 9), c=0
    ),
    # At the first place of the product there are fewer exponents, at the second one fewer significand bits.
    "places differ": Small((e4m3, e2m1, fp32, fp32), 2, fda(1, e_zero=-2), fda(2, e_zero=-2), b=(9, 10), c=0),
    "no zeros": Small(
        (e2m1, e2m1, e2m1, fp32),
        2,
        fda(3, 2),
        fda(4, 2),
        b=(3, 5),
        where=(nonzero(),),
        allows=lambda a, b, c: NONZERO_E2M1[a].all(-1) & NONZERO_E2M1[b].all(-1) & NONZERO_E2M1[c],
    ),
    "small a": Small(  # exchanging the factors is not allowed
        (e2m1, e2m1, e2m1, fp32),
        1,
        fda(1),
        fda(2),
        where=(magnitude(0.5, 0.5, "a"),),
        allows=lambda a, b, c: TINY_E2M1[a].all(-1),
    ),
    "large b": Small(  # with the factors exchanged there is no difference
        (e2m1, e2m1, e2m1, fp32),
        1,
        fda(1),
        fda(2),
        c=6,
        where=(magnitude(0.5, 0.5, "a"),),
        allows=lambda a, b, c: TINY_E2M1[a].all(-1),
    ),
    # A step of zeros cuts the c that the one before it gives.
    "idle steps": Small(
        (e2m1, e2m1, fp32, fp32), 2, fda(3, 1, e_zero=3), fda(3, 2, e_zero=3), c=code32("0x1.4p+0")
    ),
    "normal": Small(
        (e3m2, e2m1, e3m2, fp32),
        1,
        fda(3),
        fda(4),
        where=("normal",),
        allows=lambda a, b, c: NORMAL_E3M2[a].all(-1) & (np.isin(b % 8, [1]) ^ True).all(-1) & NORMAL_E3M2[c],
    ),
    "a fixed product": Small(
        (e2m1, e2m1, e3m2, fp32),
        2,
        fda(3, 2),
        fda(4, 2),
        b=(13, 2),
        where=(fixed(a={0: 11}),),
        allows=lambda a, b, c: a[:, 0] == 11,
    ),
    "a fixed minus zero": Small(
        (e2m1, e2m1, fp32, fp32),
        2,
        fda(2),
        fda(3),
        c=code32("-4"),
        where=("a1=0x8",),
        allows=lambda a, b, c: a[:, 1] == 8,
    ),
    # Other algorithms.
    "exact against fda": Small((e5m2, e2m1, fp32, fp32), 2, Efda(2, RNE_FP32), fda(10, 2), b=(2, 3), c=0),
    "pairwise against exact": Small(
        (e5m2, e2m1, fp32, fp32), 2, Gps(2), Efda(2, RNE_FP32), b=(7, 1), c=code32("-3")
    ),
    "round down": Small(
        (e5m2, e2m1, fp32, fp32), 2, Fdrda(24, 2, RNE_FP32), Gfdrda(24, 2, RNE_FP32), b=(2, 4), c=0
    ),
    "lowered": Small(
        (e5m2, e2m1, fp32, fp32),
        1,
        Lowered(5, 1, RZ_FP32, -60, fp16, (0,), IEEE_FP32),
        fda(5),
        b=(5,),
        c=code32("0x1.8p-4"),
    ),
}


#: of those whose like are in tests/cases/test_enumeration.py or quick, or that take long
LONG = [
    *("pairwise against exact", "exact against fda", "round down"),
    *("coarse output", "two products", "a fixed minus zero", "e_zero below all"),
]


@pytest.mark.parametrize("name", slow(SMALL, LONG))
def test_answers_are_those_of_looking_at_every_input(name: str) -> None:
    check(SMALL[name])


@pytest.mark.parametrize("seed", slow(range(6), range(3, 6)))
def test_answers_for_models_at_random_are_those_of_looking_at_every_input(seed: int) -> None:
    rng = random.Random(seed)
    rho = rng.choice([RNE_FP16, RZ_FP32])
    x, y = (
        fda(rng.randint(1, 7), rng.choice([1, 1, 2]), rng.choice([-20, -8, -2, 0, 4]), rho) for _ in range(2)
    )
    b = (rng.randrange(16), rng.randrange(16))
    c = rho.format.code(rng.choice(["0", "1", "-0.25", "1024", "-24"]))
    check(Small((rng.choice([e4m3, e5m2]), e2m1, rho.format, rho.format), 2, x, y, b, c))


def test_of_places_not_looked_at_nothing_is_called_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smallest, "_WAYS", 1)
    small = SMALL["places differ"]
    check(small, must_prove=False)
    answer = find_difference(*small.models, where=small.constraints)
    assert isinstance(answer, Different)
    open_ = "best found (other places for the products not tried)"
    assert any(line.endswith(open_) for line in answer.minimality)


def test_zero_products_of_another_exponent_are_not_ruled_out_by_zeros() -> None:
    # With the exponents of the fields, 6·0 and c differ where +0·+0 and c do not: 0 products, not 1.
    large = codes_where(e2m1, lambda v: v is not None)
    small = Small(
        (e2m1, e2m1, e2m3, fp32),
        1,
        fda(3, e_zero=None),
        fda(4, e_zero=None),
        where=(magnitude(1, 7.5, "c"),),
        allows=lambda a, b, c: large[a].all(-1) & codes_where(e2m3, lambda v: v == 0 or abs(v) >= 1)[c],
    )
    check(small)


# ---- what the search rests on, on the executables

#: one of each algorithm and kind of types
KINDS = [
    volta["HMMA.884.F16.F16"].chained(16),
    ampere["HMMA.16816.F32"],
    ampere["HMMA.1688.F32.TF32"],
    ampere["DMMA.884"],
    hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
    hopper["mma.m16n8k32.f32.e4m3.e5m2.f32"],
    hopper.revision("paper-v1")["HMMA.16816.F32"],
    rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"].chained(64),
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    cdna1["f32_32x32x8f16"],
    cdna2["f32_32x32x8f16"],
    cdna2["f32_32x32x4bf16"],
    cdna3["f32_32x32x8_f16"].chained(16),
    cdna3["f32_32x32x16_fp8_fp8"],
]


def random_codes(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Codes of like exponents, and now and then zeros, subnormals, infinities, NaNs."""
    codes = rng.integers(0, fmt.codes, shape, np.uint64, endpoint=False)
    if fmt.has_zero:
        middle = (fmt.bias << (fmt.fraction_bits + fmt.ignored_low_bits)) & (fmt.codes - 1)
        tame = (codes & np.uint64(fmt.sign_mask)) | np.uint64(middle)
        tame ^= codes & np.uint64((7 << fmt.fraction_bits + fmt.ignored_low_bits) >> 3)
        kind = rng.integers(0, 8, shape)
        codes = np.where(kind < 5, tame, np.where(kind < 7, codes & np.uint64(fmt.sign_mask), codes))
    return codes.astype(fmt.word)


def random_rows(i: Instruction, rng: np.random.Generator, rows: int = 256) -> list[NDArray[Any]]:
    spec = i.spec
    arrays = [random_codes(spec.a_format, (rows, i.k), rng), random_codes(spec.b_format, (rows, i.k), rng)]
    arrays.append(random_codes(spec.c_format, (rows,), rng))
    if spec.scale_format is not None:
        bias = spec.scale_format.bias << spec.scale_format.fraction_bits
        arrays += [
            rng.integers(bias - 6, bias + 6, (rows, spec.scales)).astype(spec.scale_format.word) for _ in "ab"
        ]
    return arrays


def results(i: Instruction, rows: Sequence[NDArray[Any]]) -> list[int | str]:
    """Results; NaNs without a known payload are all the same."""
    d = i.d_format
    codes = [int(code) for code in i.dot_add(*rows)]
    return ["nan" if d.is_nan(code) and not i.spec.nan_is_canonical else code for code in codes]


@pytest.mark.parametrize("i", KINDS, ids=lambda i: i.label)
@pytest.mark.parametrize("seed", range(2))
class TestLicences:
    """Each law lets the search look at fewer cases; no other may be used."""

    def test_products_of_one_class_change_places(self, i: Instruction, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = random_rows(i, rng)
        classes = symmetry_classes(i.spec, i.spec)
        order = list(range(i.k))
        for each in set(classes):
            members = [k for k in range(i.k) if classes[k] == each]
            for k, other in zip(members, rng.permutation(members), strict=True):
                order[k] = int(other)
        moved = [rows[0][:, order], rows[1][:, order], *rows[2:]]
        assert results(i, moved) == results(i, rows)

    def test_factors_change_sides(self, i: Instruction, seed: int) -> None:
        if i.a_format != i.b_format:
            pytest.skip("factors of two types")
        rows = random_rows(i, np.random.default_rng(seed))
        here = np.random.default_rng(seed).random(rows[0].shape) < 0.5
        swapped = [np.where(here, rows[1], rows[0]), np.where(here, rows[0], rows[1]), *rows[2:]]
        assert results(i, swapped) == results(i, rows)

    def test_two_minus_signs_are_none(self, i: Instruction, seed: int) -> None:
        rows = random_rows(i, np.random.default_rng(seed))
        if "fnuz" in i.a_format.name:
            keep = (rows[0] % i.a_format.sign_mask != 0) & (rows[1] % i.b_format.sign_mask != 0)
        else:
            keep = np.ones_like(rows[0], bool)
        here = keep & (np.random.default_rng(seed).random(rows[0].shape) < 0.5)
        flipped = [
            np.where(here, x ^ x.dtype.type(fmt.sign_mask), x)
            for x, fmt in zip(rows[:2], (i.a_format, i.b_format), strict=True)
        ]
        assert results(i, [*flipped, *rows[2:]]) == results(i, rows)

    def test_zero_products_are_alike_but_for_their_sign(self, i: Instruction, seed: int) -> None:
        rows = random_rows(i, np.random.default_rng(seed))
        a, b = (x.copy() for x in rows[:2])
        formats = (i.a_format, i.b_format)
        zero, number = (
            [np.vectorize(test(fmt), otypes=[bool])(x) for x, fmt in zip((a, b), formats, strict=True)]
            for test in (
                lambda fmt: lambda code: fmt.is_finite(int(code)) and fmt.value(int(code)) == 0,
                lambda fmt: lambda code: fmt.is_finite(int(code)),
            )
        )
        here = (zero[0] | zero[1]) & number[0] & number[1]
        assert here.any()
        a_sign, b_sign = (
            x & x.dtype.type(fmt.sign_mask) != 0 for x, fmt in zip((a, b), formats, strict=True)
        )
        minus = np.zeros_like(here) if "fnuz" in i.a_format.name else a_sign ^ b_sign
        a[here] = np.where(minus, a.dtype.type(i.a_format.sign_mask), a.dtype.type(0))[here]
        b[here] = 0
        same = results(i, [a, b, *rows[2:]]) == results(i, rows)
        assert same or getattr(i.parameters, "e_zero", 0) is None or i.algorithm == "gps"

    def test_idle_steps_pass_but_for_minus_zero_and_nan(self, i: Instruction, seed: int) -> None:
        if not isinstance(i.parameters, Fda) or i.parameters.e_zero is None or i.spec.scale_format:
            pytest.skip("no steps are left out")
        rng = np.random.default_rng(seed)
        step, d = i.parameters.step_products, i.d_format
        c = random_codes(i.c_format, (500,), rng)
        if i.parameters.rho is RZ_E8M13:
            c &= c.dtype.type(0xFFFFFC00)
        idle = i.replace(k=step).dot_add(
            *(np.zeros((500, step), f.word) for f in (i.a_format, i.b_format)), c
        )
        for before, after in zip(c.tolist(), idle.tolist(), strict=True):
            if d.is_nan(before):
                assert d.is_nan(after)
            else:
                assert after == (0 if before == d.sign_mask else before)


def test_the_zero_law_can_fail() -> None:
    """The revision whose zero products keep their exponents breaks it, so the test above does look."""
    i = hopper.revision("paper-v1")["HMMA.16816.F32"]
    a, b, c = (
        np.zeros((2, 16), np.uint16),
        np.zeros((2, 16), np.uint16),
        np.full(2, fp32.code("0x1.000002p-9")),
    )
    a[0, 0] = fp16.code("32768")
    first, second = i.dot_add(a, b, c.astype(np.uint32))
    assert first != second


def test_steps_and_groups_and_scales_are_not_mixed() -> None:
    def number(x: Instruction, y: Instruction) -> int:
        return len(set(symmetry_classes(x.spec, y.spec)))

    one, two = hopper["HMMA.16816.F32"], ampere["HMMA.16816.F32"]
    assert (number(one, one), number(one, two), number(two, two)) == (1, 2, 2)
    assert number(ampere["DMMA.884"], ampere["DMMA.884"]) == 4
    fp8 = cdna3["f32_32x32x16_fp8_fp8"]
    assert number(fp8, fp8) == 2
    scaled = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8.4X"]
    assert number(scaled, scaled) == 4


@settings(max_examples=50)
@given(st.data())
def test_case_size_counts_what_it_says(data: st.DataObject) -> None:
    k, types = 3, [data.draw(st.sampled_from([e2m1, e4m3, e4m3fnuz, e5m2, fp16])) for _ in range(3)]
    a, b = ([data.draw(st.integers(0, fmt.codes - 1)) for _ in range(k)] for fmt in types[:2])
    c = data.draw(st.integers(0, types[2].codes - 1))
    spec = DotAdd(k, *types, fp32, fda(8, k))
    expected = sizes(types, np.array([a]), np.array([b]), np.array([c]))[0].tolist()
    assert list(case_size(spec, a, b, c)) == expected[:4]


# ---- the three answers


HOPPER, AMPERE = (i["HMMA.1688.F32"].replace(k=2, L=2) for i in (hopper, ampere))


def test_one_and_the_same_term_is_equal_at_once() -> None:
    start = time.monotonic()
    answer = find_difference(hopper, blackwell, "HMMA.16816.F32")
    assert isinstance(answer, Equal)
    assert answer.proof.obligations[-1].script.endswith("(check-sat)\n")
    assert time.monotonic() - start < 20  # 1 s is what is wanted, on a machine that does nothing else
    told = json.loads(json.dumps(answer.to_json()))
    assert told["answer"] == "equal"
    assert "hopper HMMA.16816.F32 = blackwell HMMA.16816.F32" in told["question"]
    assert told["proof"]["obligations"][-1]["sha256"]


def test_a_difference_is_shown_and_told() -> None:
    answer = find_difference(AMPERE, HOPPER, where="c=0x3f800000")
    assert isinstance(answer, Different)
    assert answer.minimality[0] == "1 nonzero product: proved minimal"
    assert answer.witness.rerun() == answer.witness.results
    shown = str(answer)
    for words in ("Different", "inputs", "results", "where they part", "proved minimal:", "ulp apart"):
        assert words in shown
    told = json.loads(json.dumps(answer.to_json()))
    assert told["answer"] == "different"
    assert [m["result"] for m in told["witness"]["models"]] == [f"{r:#010x}" for r in answer.witness.results]
    assert len(told["obligations"]) == len(answer.obligations) > 0


def test_no_time_is_unknown() -> None:
    answer = find_difference(HOPPER.replace(k=8, L=8), AMPERE.replace(k=8, L=8), timeout=0.01)
    assert isinstance(answer, Unknown)
    assert answer.why
    told = json.loads(json.dumps(answer.to_json()))
    assert (told["answer"], told["why"]) == ("unknown", answer.why)
    assert answer.why in str(answer)


def test_little_time_gives_no_wrong_claim() -> None:
    # The first witness is found, but what makes it small is left open.
    small = dataclass_replace(SMALL["places differ"])
    for timeout in (0.6, 1.2):
        x, y = small.models
        answer = find_difference(x, y, where=small.constraints, timeout=timeout, solver="z3")
        if isinstance(answer, Different):
            truth = smallest_difference(small)
            assert truth is not None
            values, proved = claimed(answer)
            assert values >= truth
            assert (
                all(v == t for v, t, sure in zip(values, truth, proved, strict=True) if sure)
                or values > truth
            )
        else:
            assert isinstance(answer, Unknown)


@pytest.mark.parametrize(
    "answer",
    [Equal("q", some_proof(), 0.0), Unknown("q", "why", (), 0.0), Different("q", None, (), (), 0.0)],  # type: ignore[arg-type]
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_is_not_true_or_false(answer: Equal | Unknown | Different) -> None:
    with pytest.raises(TypeError, match="is not true or false"):
        bool(answer)
    with pytest.raises(TypeError):
        assert answer


def test_progress_is_told() -> None:
    lines: list[str] = []
    find_difference(*SMALL["one product"].models, progress=lines.append, solver="z3")
    assert lines
    (first,) = [line for line in lines if line.startswith("found: ")]
    assert first.endswith("; a smaller one is looked for")
    assert all(re.match(r" *\d+\.\d s  \S", line) for line in lines if line != first)


# ---- staged equality


class TestStaged:
    def test_e_zero_below_everything_that_counts_is_equal(self, terms_alone: None) -> None:
        x = hopper["HMMA.16816.F32"]
        answer = find_difference(x, x.replace(e_zero=-134), timeout=100)
        assert isinstance(answer, Equal)
        names = [o.name for o in answer.proof.obligations]
        assert names[0] == "e_max"
        assert names[-2:] == ["results", "composition"]
        assert names.count("sums") == 1
        assert sum(name.startswith("align ") for name in names) == 17

    @pytest.mark.parametrize(
        ("name", "e_zero", "factors", "p"),
        [
            # A sum of half the least fp16 number and more is rounded up if e_zero lets the more be seen.
            pytest.param(*("HMMA.1688.F16", -24, ("0x1p-10", "0x1p-15"), "0x1p-48"), marks=pytest.mark.slow),
            # The least fp32 number less a little is cut to 0 if e_zero lets the little be seen.
            ("HMMA.1688.F32.BF16", -134, ("0x1p-100", "0x1p-49"), "-0x1p-159"),
        ],
    )
    def test_e_zero_that_counts_is_different(
        self, name: str, e_zero: int, factors: tuple[str, str], p: str
    ) -> None:
        x = hopper[name].replace(k=2, L=2)
        y = x.replace(e_zero=e_zero)
        assert applies(x.spec, y.spec)
        a, b = map(x.a_format.code, factors)
        answer = find_difference(x, y, where=fixed(a={0: a}, b={0: b}, c=0), solver="bitwuzla")
        assert isinstance(answer, Different)
        w = answer.witness
        assert answer.minimality[0] == "2 nonzero products: proved minimal"
        # The product that this takes is no smaller than the one that was thought of.
        least = Fraction(float.fromhex(p))
        found = x.a_format.value(int(w.a[1])) * x.b_format.value(int(w.b[1]))
        assert abs(found) >= abs(least)
        assert (found > 0) == (least > 0)

    def test_it_applies_to_nothing_else(self) -> None:
        x = hopper["HMMA.16816.F32"].spec
        assert applies(x, x.replace(e_zero=None))
        for other in (x.replace(F=24), x.replace(L=8), x.replace(rho=RZ_E8M13), x.replace(e_zero=-134, F=24)):
            assert not applies(x, other)
        scaled = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"].spec
        assert not applies(scaled, scaled.replace(e_zero=-150))
        assert not applies(x, ampere["DMMA.884"].spec)

    #: one stage's interface of the second model → what it is made to be
    BROKEN: ClassVar[dict[str, Callable[[Any], dict[str, Any]]]] = {
        "align": lambda s: {"aligned": (s.aligned[0] + 1, *s.aligned[1:])},
        "align c": lambda s: {"aligned_c": s.aligned_c ^ 1},
        "accumulate": lambda s: {"total": s.total + 2},
        "round": lambda s: {"result": s.result ^ 1},
        "e_max": lambda s: {"e_max": s.e_max + 1},
    }

    @pytest.mark.parametrize("stage", BROKEN)
    def test_a_stage_that_is_wrong_is_not_proved(self, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
        x = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].replace(k=2, L=2).spec
        y = x.replace(e_zero=-134)
        step, count = smt_fda.step, 0

        def broken(*args: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            made = step(*args, **more)
            return made if count == 1 else dataclass_replace(made, **self.BROKEN[stage](made))

        with Portfolio("z3") as portfolio:
            inputs = symbolic_inputs(x)
            assert prove_equal(Asker(portfolio, 60), x, y, inputs)
            monkeypatch.setattr(smt_fda, "step", broken)
            assert not prove_equal(Asker(portfolio, 60), x, y, inputs)


# ---- an encoding that is wrong


def _off_by_one(align: Callable[..., z3.BitVecRef]) -> Callable[..., z3.BitVecRef]:
    """Aligns to one bit fewer than F in the SMT encoding."""
    return lambda x, e_max, fraction_bits, F: (
        align(x, e_max, fraction_bits, F) & ~z3.BitVecVal(1, align(x, e_max, fraction_bits, F).size())
    )


def test_an_encoding_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = SMALL["one product"].models
    monkeypatch.setattr(stages, "align", _off_by_one(stages.align))
    with pytest.raises(WitnessError, match=r"an encoding is wrong|encodings disagree"):
        find_difference(x, y, solver="z3")


def test_encodings_that_differ_alike_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both models' results have one bit wrong: they differ where they should, but not by what they should.
    x, y = SMALL["one product"].models
    step = smt_fda.step

    def wrong(*args: Any, **more: Any) -> Any:
        made = step(*args, **more)
        return dataclass_replace(made, result=made.result ^ 1)

    monkeypatch.setattr(smt_fda, "step", wrong)
    with pytest.raises(WitnessError, match="encodings disagree"):
        find_difference(x, y, solver="z3")


# ---- what is refused


def test_instructions_of_other_types_or_sizes_are_incomparable() -> None:
    with pytest.raises(IncomparableError, match=r"fp16 × fp16 \+ fp32 → fp32.*bf16.*same types"):
        find_difference(ampere["HMMA.16816.F32"], ampere["HMMA.16816.F32.BF16"])
    with pytest.raises(IncomparableError, match=r'volta\["HMMA.884.F32.F32"\].chained\(16\)'):
        find_difference(volta["HMMA.884.F32.F32"], hopper["HMMA.16816.F32"])
    chained = volta["HMMA.884.F32.F32"].chained(16), hopper["HMMA.16816.F32"]
    assert isinstance(find_difference(*chained, timeout=0.01, where=finite()), Unknown)  # comparable
    with pytest.raises(IncomparableError, match=r"chain both to a common multiple"):
        find_difference(HOPPER, HOPPER.replace(k=3, L=3))


def test_names_that_are_not_there_are_errors() -> None:
    with pytest.raises(UnknownInstructionError, match="Nearest on volta"):
        find_difference(volta, hopper, "HMMA.16816.F32")
    with pytest.raises(TypeError, match="which instruction of ampere"):
        find_difference(ampere, hopper)
    with pytest.raises(TypeError, match="two Instructions need no name"):
        find_difference(AMPERE, HOPPER, "HMMA.16816.F32")
    with pytest.raises(UnknownInstructionError, match="'ampere' names no instruction"):
        find_difference("ampere", HOPPER)
    for wrong in (None, 5, AMPERE.spec):
        with pytest.raises(TypeError, match="expected an Architecture or an Instruction"):
            find_difference(wrong, HOPPER)  # type: ignore[arg-type]


def test_limits_that_are_none_are_errors() -> None:
    for timeout in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            find_difference(AMPERE, HOPPER, timeout=timeout)
    with pytest.raises(ValueError, match="megabytes"):
        find_difference(AMPERE, HOPPER, memory=0)
    with pytest.raises(ValueError, match="solvers are"):
        find_difference(AMPERE, HOPPER, solver=["yices"])


def test_no_memory_is_unknown() -> None:
    answer = find_difference(AMPERE, HOPPER, memory=8, timeout=20)
    assert isinstance(answer, Unknown)
    assert "z3" in answer.why
    assert "bitwuzla" in answer.why


# ---- from an input that is known -------------------------------------------------------------------------------------


def known_difference(x: Instruction, y: Instruction) -> Case:
    """The first of some random cases on which they differ."""
    rows = generate(x.spec, 2000, seed=3)
    one, other = (i.dot_add(rows.a, rows.b, rows.c) for i in (x, y))
    return rows[int(np.nonzero(one != other)[0][0])]


def test_a_known_input_is_made_the_smallest() -> None:
    x = volta["HMMA.884.F16.F16"].replace(k=2, L=2, F=10)
    y = x.replace(F=9)
    known = known_difference(x, y)
    answer, without = find_difference(x, y, known=known), find_difference(x, y)
    assert isinstance(answer, Different)
    assert isinstance(without, Different)
    assert case_size_of(answer) == case_size_of(without)
    assert all("proved minimal" in each for each in answer.minimality)


def case_size_of(answer: Different) -> tuple[int, ...]:
    w = answer.witness
    return full_size(w.x.spec, w.a.tolist(), w.b.tolist(), int(w.c))


def test_a_known_input_is_an_answer_where_there_is_no_time() -> None:
    x = hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"]
    y = x.replace(order=tuple(range(32)))
    answer = find_difference(x, y, known=known_difference(x, y), timeout=1)
    assert isinstance(answer, Different)
    assert any("best found" in each for each in answer.minimality)
    assert case_size_of(answer)[0] <= 4


def test_what_is_said_to_be_known_is_checked() -> None:
    x = volta["HMMA.884.F32.F32"]
    with pytest.raises(ValueError, match="do not differ on"):
        find_difference(x, x.replace(F=24), known=zeros(x.spec))
    with pytest.raises(ValueError, match="leave out either"):
        find_difference(x, x.replace(F=24), known=zeros(x.spec), where="c = 0")
