"""A property as a relation between two runs: search for an input that breaks it, and what such an input looks like.

"The result does not depend on the order of the products" says of two runs, the second on permuted inputs, that their
results are the same.  Most structural properties are of this kind.  A `Relation` says how the second run's inputs
are made from the first's, and how the results must be related.  It is written once, for codes that are bit-vector
terms (to ask solvers) as well as for arrays of codes (to run many cases).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.algorithms import DotAdd
from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.display import HtmlText, ShortRepr, short_text
from mmaformal.encodings import executable, smt
from mmaformal.explain import code_text
from mmaformal.formats import Format, Specials
from mmaformal.instruction import Instruction
from mmaformal.witness import WitnessError

#: A code, or a fact about one: a bit-vector term, an array of unsigned 64-bit integers, or an int.
Code = Any
Fact = Any


def select(fact: Fact, x: Code, y: Code) -> Code:
    """x where the fact is true, else y."""
    if isinstance(fact, z3.BoolRef):
        return z3.If(fact, x, y)
    return np.where(fact, x, y)


def both(*facts: Fact) -> Fact:
    return z3.And(facts) if any(isinstance(x, z3.BoolRef) for x in facts) else np.logical_and.reduce(facts)


def either(*facts: Fact) -> Fact:
    return z3.Or(facts) if any(isinstance(x, z3.BoolRef) for x in facts) else np.logical_or.reduce(facts)


def negation(fact: Fact) -> Fact:
    return z3.Not(fact) if isinstance(fact, z3.BoolRef) else ~fact


def magnitude(code: Code, fmt: Format) -> Code:
    """The code without its sign and without the storage bits that the unit ignores."""
    ones = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    return code & (ones << fmt.ignored_low_bits)


def is_nan(code: Code, fmt: Format) -> Fact:
    """Whether a code is a NaN."""
    if fmt.specials == Specials.IEEE:
        greater: Callable[[Any, Any], Any] = z3.UGT if isinstance(code, z3.BitVecRef) else np.greater
        return greater(magnitude(code, fmt), fmt.infinity)
    return negation(is_finite(code, fmt))  # there are no infinities


def same(x: Code, y: Code, fmt: Format) -> Fact:
    """The same code, a NaN's payload aside."""
    return either(x == y, both(is_nan(x, fmt), is_nan(y, fmt)))


def same_number(x: Code, y: Code, fmt: Format) -> Fact:
    """The same code, a NaN's payload and the sign of a zero aside."""
    zeros = both(magnitude(x, fmt) == 0, magnitude(y, fmt) == 0)
    return either(x == y, both(is_nan(x, fmt), is_nan(y, fmt)), zeros)


@dataclass(frozen=True, repr=False)
class Relation(ShortRepr):
    """For all inputs of `left` that are `allowed`, its result and that of `right` on the `image` are `related`.

    Without an image it is a statement about one run, whose result is given twice.
    """

    left: DotAdd
    right: DotAdd
    image: Callable[[Any], Any] | None  #: of Codes or Inputs
    related: Callable[[Code, Code], Fact]
    second: str  #: what the second run is, in a few words
    allowed: Callable[[Any], Fact] = lambda _: True

    def traces(self, inputs: Inputs) -> tuple[smt.Trace[Any], smt.Trace[Any]]:
        """Both runs in the SMT wing."""

        def trace(spec: DotAdd, x: Inputs) -> smt.Trace[Any]:
            return smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)

        first = trace(self.left, inputs)
        return first, first if self.image is None else trace(self.right, self.image(inputs))

    def broken(self, inputs: Inputs) -> z3.BoolRef:
        """The question whose models break it."""
        first, second = (trace.result for trace in self.traces(inputs))
        allowed = self.allowed(inputs)
        broken = z3.Not(self.related(first, second))
        return broken if allowed is True else z3.And(allowed, broken)

    def runs(self, rows: Rows) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Both results of many cases, by the executable wing, and which cases break it."""
        codes = rows.codes
        first = run(self.left, codes)
        second = first if self.image is None else run(self.right, self.image(codes))
        allowed = self.allowed(codes)
        return first, second, both(np.broadcast_to(allowed, first.shape), ~self.related(first, second))


def is_finite(code: Code, fmt: Format) -> Fact:
    low = magnitude(code, fmt)
    less: Callable[[Any, Any], Any] = z3.ULT if isinstance(code, z3.BitVecRef) else np.less
    if not fmt.has_zero:
        return low != fmt.codes - 1
    if fmt.specials == Specials.IEEE:
        return less(low, fmt.infinity)
    if fmt.specials == Specials.FN:
        return low != magnitude(fmt.codes - 1, fmt)
    return code != fmt.sign_mask if fmt.specials == Specials.FNUZ else low == low


# ---- cases -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Rows(ShortRepr):
    """Many cases, one per row: a, b of shape (n, K), c of (n,), scales of (n, K / block); unsigned 64-bit."""

    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]
    scale_a: NDArray[Any]
    scale_b: NDArray[Any]

    @staticmethod
    def of(cases: Sequence[Codes]) -> Rows:
        def array(side: Sequence[Any]) -> NDArray[Any]:
            return np.array(side, np.uint64)

        return Rows(
            *(array([getattr(x, name) for x in cases]) for name in ("a", "b", "c", "scale_a", "scale_b"))
        )

    @property
    def codes(self) -> Codes:
        """The same by columns: each code is an array of all rows."""
        sides: list[Any] = [tuple(x.T) for x in (self.a, self.b, self.scale_a, self.scale_b)]
        return Codes(sides[0], sides[1], self.c, sides[2], sides[3])  # type: ignore[arg-type]

    def __getitem__(self, row: int) -> Codes:
        def ints(x: NDArray[Any]) -> tuple[int, ...]:
            return tuple(int(v) for v in x[row])

        return Codes(ints(self.a), ints(self.b), int(self.c[row]), ints(self.scale_a), ints(self.scale_b))


def run_trace(spec: DotAdd, codes: Codes) -> Any:
    """The executable wing's trace on columns of codes."""

    def lanes(side: Sequence[Any]) -> list[NDArray[np.int64]]:
        return [np.asarray(x, np.uint64).astype(np.int64) for x in side]

    (c,) = lanes([codes.c])
    sides = [lanes(side) for side in (codes.a, codes.b, codes.scale_a, codes.scale_b)]
    with np.errstate(all="ignore"):
        return executable.dot_add(spec, sides[0], sides[1], c, sides[2], sides[3])


def as_codes(lane: Any, fmt: Format) -> NDArray[np.uint64]:
    """The codes in a lane."""
    codes: NDArray[np.uint64] = np.asarray(lane, np.int64).astype(np.uint64) & np.uint64(fmt.codes - 1)
    return codes


def run(spec: DotAdd, codes: Codes) -> NDArray[np.uint64]:
    """The codes of d that the executable wing gives for columns of codes."""
    return as_codes(run_trace(spec, codes).result, spec.d_format)


def random_cases(spec: DotAdd, count: int, seed: int = 0, sparse: bool = False) -> Rows:
    """Cases in which things happen: few products or many, of nearby exponents, equal or cancelling; some special.

    `sparse`: at most three products, and c = 0.
    """
    rng = np.random.default_rng(seed)
    K = spec.k

    def code(fmt: Format, exponent: NDArray[Any]) -> NDArray[Any]:
        """Codes of an exponent near the given one."""
        shape, M = exponent.shape, fmt.fraction_bits
        field = exponent + fmt.bias + rng.choice([0, 0, 0, 0, -1, 1, -2, 2], shape)
        field = np.clip(field, 0, (1 << fmt.exponent_bits) - 1 - (fmt.infinity is not None)).astype(np.uint64)
        ones = (1 << M) - 1
        fraction = np.stack(
            [
                np.zeros(shape),
                np.ones(shape),
                np.full(shape, ones),
                rng.integers(0, ones, shape, endpoint=True),
            ]
        ).astype(np.uint64)
        which = rng.integers(0, 4, shape)
        chosen = np.take_along_axis(fraction, which[None], 0)[0] & np.uint64(ones)
        word = ((field << np.uint64(M)) | chosen) << np.uint64(fmt.ignored_low_bits)
        codes: NDArray[Any] = word | (rng.integers(0, 2, shape).astype(np.uint64) * np.uint64(fmt.sign_mask))
        return codes

    def exponents(fmt: Format, shape: tuple[int, ...]) -> NDArray[Any]:
        return rng.integers(fmt.min_exponent, fmt.max_exponent, shape, endpoint=True)

    far = rng.integers(-60, 60, (count, K)) * (rng.random((count, K)) < 0.1)
    e_a, e_b = exponents(spec.a_format, (count, 1)), exponents(spec.b_format, (count, 1))
    a, b = code(spec.a_format, e_a + far), code(spec.b_format, e_b + np.zeros_like(far))
    offset = rng.choice([0, 1, 2, 4, 12, 24, -24, 30, -30, 99], count)
    offset = np.where(offset == 99, rng.integers(-90, 90, count), offset)
    c = code(spec.c_format, e_a[:, 0] + e_b[:, 0] + offset)

    if K > 1:  # every other product the one before, or its negative
        rows = rng.random(count) < 0.4
        even, odd = slice(0, K - 1, 2), slice(1, K, 2)
        negated = np.uint64(spec.a_format.sign_mask) * rng.integers(0, 2, (count, 1)).astype(np.uint64)
        a[:, odd] = np.where(rows[:, None], a[:, even] ^ negated, a[:, odd])
        b[:, odd] = np.where(rows[:, None], b[:, even], b[:, odd])
    most = rng.choice([1, 2, 3] if sparse else [1, 2, 3, 4, K], count)
    few = rng.integers(1, np.minimum(most, K), endpoint=True)
    rank = np.argsort(np.argsort(rng.random((count, K)), axis=1), axis=1)
    off = rank >= few[:, None]
    one_side = rng.integers(0, 3, (count, K))
    a = np.where(
        off & (one_side != 1), rng.integers(0, 2, (count, K)).astype(np.uint64) * _minus(spec.a_format), a
    )
    b = np.where(
        off & (one_side != 2), rng.integers(0, 2, (count, K)).astype(np.uint64) * _minus(spec.b_format), b
    )
    no_c = rng.random(count) < (1.0 if sparse else 0.3)
    c = np.where(no_c, rng.integers(0, 2, count).astype(np.uint64) * _minus(spec.c_format), c)

    anything = rng.random((count, K)) < 0.01
    a = np.where(anything, _any(spec.a_format, rng, (count, K)), a)
    b = np.where(anything & (one_side == 0), _any(spec.b_format, rng, (count, K)), b)
    c = np.where(rng.random(count) < (0.0 if sparse else 0.03), _any(spec.c_format, rng, (count,)), c)
    scales = np.zeros((2, count, 0), np.uint64)
    if spec.scale_format is not None:
        e = rng.integers(-8, 8, (2, count, spec.scales))
        scales = np.where(
            rng.random((2, count, 1)) < 0.5,
            code(spec.scale_format, e),
            np.uint64(1) * _one(spec.scale_format),
        )
    return Rows(a, b, c, scales[0], scales[1])


def _minus(fmt: Format) -> Any:
    """The sign bit of a zero; a format without −0 has none."""
    return np.uint64(0 if fmt.is_nan(fmt.sign_mask) else fmt.sign_mask)


def _one(fmt: Format) -> Any:
    return np.uint64(fmt.bias << fmt.fraction_bits)


def _any(fmt: Format, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    return rng.integers(0, fmt.codes, shape, dtype=np.uint64)


# ---- witnesses ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class RelationWitness(HtmlText):
    """Inputs that break a relation, re-run in both wings."""

    instruction: Instruction
    relation: Relation
    codes: Codes
    results: tuple[int, int]  #: of the first and of the second run
    minimality: tuple[str, ...]

    @staticmethod
    def of(
        instruction: Instruction, relation: Relation, codes: Codes, minimality: Sequence[str] = ()
    ) -> RelationWitness:
        """Raises WitnessError unless both wings give the same two results, and these break the relation."""
        rows = Rows.of([codes])
        first, second, broken = relation.runs(rows)
        ran = int(first[0]), int(second[0])
        seen = evaluate(relation.left, codes), evaluate(relation.right, image_of(relation, codes))
        specs = relation.left, relation.right
        if not broken[0] or not all(_alike(*each) for each in zip(specs, ran, seen, strict=True)):
            raise WitnessError(
                f"the two encodings do not agree on {codes}: executable {ran}, bit-vector terms {seen}"
            )
        return RelationWitness(instruction, relation, codes, ran, tuple(minimality))

    def to_json(self) -> dict[str, Any]:
        relation = self.relation
        first, second = (
            _hex(x, s.d_format) for x, s in zip(self.results, (relation.left, relation.right), strict=True)
        )
        out: dict[str, Any] = {"instruction": self.instruction.label}
        if relation.image is None:
            out |= codes_json(relation.left, self.codes) | {"d": first}
        else:
            out["first"] = codes_json(relation.left, self.codes) | {"d": first}
            out["second"] = codes_json(relation.right, image_of(relation, self.codes)) | {"d": second}
            out["second_is"] = relation.second
        return out | {"minimality": list(self.minimality)}

    @property
    def summary(self) -> str:
        """One line: the products that are not zero, c, and both results."""
        relation, d = self.relation, self.relation.left.d_format
        text = f"{case_text(relation.left, self.codes)} gives {d.text(self.results[0])}"
        if relation.image is None:
            return text
        return f"{text}; {relation.second}: {relation.right.d_format.text(self.results[1])}"

    def __str__(self) -> str:
        relation = self.relation
        runs = [("inputs" if relation.image is None else "first", relation.left, self.codes, self.results[0])]
        if relation.image is not None:
            second = image_of(relation, self.codes)
            runs.append((f"second: {relation.second}", relation.right, second, self.results[1]))
        lines = []
        for title, spec, codes, result in runs:
            lines += [title, *case_lines(spec, codes), "  d".ljust(14) + code_text(result, spec.d_format)]
        if self.minimality:
            lines += ["minimal?", *(f"  {line}" for line in self.minimality)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return short_text(self, self.instruction.label, self.summary)


def image_of(relation: Relation, codes: Codes) -> Codes:
    """The second run's inputs of one case, as ints."""
    if relation.image is None:
        return codes
    image = relation.image(Rows.of([codes]).codes)

    def ints(side: Sequence[Any]) -> tuple[int, ...]:
        return tuple(int(np.asarray(x).reshape(-1)[0]) for x in side)

    return Codes(ints(image.a), ints(image.b), ints([image.c])[0], ints(image.scale_a), ints(image.scale_b))


def values(spec: DotAdd, codes: Codes) -> Inputs:
    """The codes of one case as bit-vector values."""

    def side(codes: Sequence[int], fmt: Format | None) -> tuple[z3.BitVecRef, ...]:
        return tuple(z3.BitVecVal(x, fmt.storage_bits) for x in codes) if fmt is not None else ()

    return Inputs(
        side(codes.a, spec.a_format),
        side(codes.b, spec.b_format),
        z3.BitVecVal(codes.c, spec.c_format.storage_bits),
        side(codes.scale_a, spec.scale_format),
        side(codes.scale_b, spec.scale_format),
    )


def evaluate(spec: DotAdd, codes: Codes) -> int:
    """The SMT wing on one case."""
    x = values(spec, codes)
    result: int = z3.simplify(smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).result).as_long()
    return result


def _alike(spec: DotAdd, x: int, y: int) -> bool:
    return x == y or (spec.d_format.is_nan(x) and spec.d_format.is_nan(y) and not spec.nan_is_canonical)


def _hex(code: int, fmt: Format) -> str:
    return f"{code:#0{2 + -(-fmt.storage_bits // 4)}x}"


def _sides(spec: DotAdd, codes: Codes) -> Iterator[tuple[str, tuple[int, ...], Format]]:
    yield "a", codes.a, spec.a_format
    yield "b", codes.b, spec.b_format
    if spec.scale_format is not None:
        yield "scale_a", codes.scale_a, spec.scale_format
        yield "scale_b", codes.scale_b, spec.scale_format


def codes_json(spec: DotAdd, codes: Codes) -> dict[str, Any]:
    sides = {name: [_hex(x, fmt) for x in side] for name, side, fmt in _sides(spec, codes)}
    return {**sides, "c": _hex(codes.c, spec.c_format)}


def case_lines(spec: DotAdd, codes: Codes) -> list[str]:
    """The inputs, one per line, but for products +0·+0."""
    lines = []
    for k, (a, b) in enumerate(zip(codes.a, codes.b, strict=True)):
        if a or b:
            lines.append(f"  a[{k}]".ljust(14) + code_text(a, spec.a_format))
            lines.append(f"  b[{k}]".ljust(14) + code_text(b, spec.b_format))
    lines.append("  c".ljust(14) + code_text(codes.c, spec.c_format))
    for name, side, fmt in _sides(spec, codes):
        if name.startswith("scale"):
            lines += [f"  {name}[{i}]".ljust(14) + code_text(x, fmt) for i, x in enumerate(side)]
    return lines


def case_text(spec: DotAdd, codes: Codes) -> str:
    """The same in one line."""
    a, b = spec.a_format, spec.b_format
    parts = [
        f"a{k}·b{k} = {a.text(x)}·{b.text(y)}"
        for k, (x, y) in enumerate(zip(codes.a, codes.b, strict=True))
        if x or y
    ]
    parts.append(f"c = {spec.c_format.text(codes.c)}")
    if spec.scale_format is not None:
        parts.append(
            "scales " + ", ".join(spec.scale_format.text(x) for x in (*codes.scale_a, *codes.scale_b))
        )
    return ", ".join(parts)


# ---- searching ---------------------------------------------------------------------------------------------------

_CODES, _FEWEST_ROWS = (
    4000 * 64,
    40,
)  #: an array operation on more codes takes longer than a limit may be overrun
_ROWS = 4000  #: cases that are run before a solver is asked
_TRIES = 3  #: times that, with other random numbers
_FEW = 6  #: products with which more is tried, pair by pair


def sample(relation: Relation, rows: int = _ROWS) -> Codes | None:
    """A case among random ones that breaks the relation, of the smallest there; of long chains there are fewer."""
    rows = min(rows, max(_FEWEST_ROWS, _CODES // relation.left.k))
    for seed in range(_TRIES):
        cases = random_cases(relation.left, rows, seed)
        broken = relation.runs(cases)[2]
        found = [cases[int(row)] for row in np.flatnonzero(broken)]
        if found:
            few = random_cases(relation.left, rows, seed, sparse=True)
            found += [few[int(row)] for row in np.flatnonzero(relation.runs(few)[2])]
            return min(found, key=lambda x: size(relation.left, x))
    return None


def size(spec: DotAdd, x: Codes) -> tuple[int, ...]:
    """`smallest.size`, faster where many cases are compared; then few nonzero codes."""
    a, b = (
        [_measure(code, fmt) for code in side] for side, fmt in ((x.a, spec.a_format), (x.b, spec.b_format))
    )
    active = [k for k, (y, z) in enumerate(zip(a, b, strict=True)) if not _zero_product(y, z)]
    counted = [side[k] for side in (a, b) for k in active]
    factors = sum(each.exponent for each in counted)
    c = _measure(x.c, spec.c_format)
    counted += [] if c.zero else [c]
    if spec.scale_format is not None:
        counted += [_measure(code, spec.scale_format) for code in (*x.scale_a, *x.scale_b)]
    bits, exponents = sum(each.bits for each in counted), sum(each.exponent for each in counted)
    signs = sum(each.sign for each in (*a, *b, c))
    return len(active), int(not c.zero), bits, exponents, factors, signs, sum(map(bool, (*x.a, *x.b)))


class _Measures(NamedTuple):
    """Of one code, as `case_size` counts them."""

    zero: bool
    finite: bool
    bits: int
    exponent: int
    sign: int


def _zero_product(a: _Measures, b: _Measures) -> bool:
    return a.finite and b.finite and (a.zero or b.zero)


_MEASURED: dict[tuple[Format, int], _Measures] = {}


def _measure(code: int, fmt: Format) -> _Measures:
    key = fmt, code
    if key not in _MEASURED:
        sign, field, fraction = fmt.fields(code)
        zero = fmt.has_zero and field == fraction == 0 and not fmt.is_nan(code)
        exponent = abs((max(field, 1) if fmt.has_zero else field) - fmt.bias)
        _MEASURED[key] = _Measures(
            zero, fmt.is_finite(code), fraction.bit_count(), 0 if zero else exponent, sign
        )
    return _MEASURED[key]


def shrink(relation: Relation, codes: Codes) -> Codes:
    """A smaller case, as far as small changes lead; every candidate is run in the executable wing."""
    best = size(relation.left, codes)
    while True:
        candidates = [x for x in _smaller(relation.left, codes) if size(relation.left, x) < best]
        candidates = list(dict.fromkeys(candidates))
        if not candidates:
            return codes
        broken = relation.runs(Rows.of(candidates))[2]
        left = [x for x, b in zip(candidates, broken, strict=True) if b]
        if not left:
            return codes
        codes = min(left, key=lambda x: size(relation.left, x))
        best = size(relation.left, codes)


def _smaller(spec: DotAdd, x: Codes) -> Iterator[Codes]:
    """Cases a little smaller than x."""
    active = [k for k in range(spec.k) if x.a[k] or x.b[k]]

    def at(side: tuple[int, ...], k: int, code: int) -> tuple[int, ...]:
        return (*side[:k], code, *side[k + 1 :])

    if len(active) > _FEW:  # half of them at once
        for some in (active[::2], active[1::2], active[: len(active) // 2], active[len(active) // 2 :]):
            fewer = [tuple(0 if k in some else v for k, v in enumerate(side)) for side in (x.a, x.b)]
            yield replace(x, a=fewer[0], b=fewer[1])
    for k in active:
        yield replace(x, a=at(x.a, k, 0), b=at(x.b, k, 0))
        for code in _simpler(x.a[k], spec.a_format):
            yield replace(x, a=at(x.a, k, code))
        for code in _simpler(x.b[k], spec.b_format):
            yield replace(x, b=at(x.b, k, code))
    for j, k in itertools.permutations(active if len(active) <= _FEW else [], 2):
        yield replace(x, a=at(x.a, k, x.a[j]), b=at(x.b, k, x.b[j]))
    for code in _simpler(x.c, spec.c_format):
        yield replace(x, c=code)
    if spec.scale_format is not None:
        for k in range(spec.scales):
            for code in _simpler(x.scale_a[k], spec.scale_format):
                yield replace(x, scale_a=at(x.scale_a, k, code))
            for code in _simpler(x.scale_b[k], spec.scale_format):
                yield replace(x, scale_b=at(x.scale_b, k, code))
    # All exponents of one side nearer 0 together, and one side's up with the other's down.
    for by in (1, -1, 2, -2, 4, -4, 8, -8):
        a = tuple(_moved(code, spec.a_format, by) for code in x.a)
        b = tuple(_moved(code, spec.b_format, -by) for code in x.b)
        c = _moved(x.c, spec.c_format, by)
        yield replace(x, a=a, b=b)
        yield replace(x, a=a, c=c)
        yield replace(x, b=b, c=_moved(x.c, spec.c_format, -by))
        for k in active:
            yield replace(x, a=at(x.a, k, a[k]), b=at(x.b, k, b[k]))


def _simpler(code: int, fmt: Format) -> Iterator[int]:
    """Codes near one, with fewer bits or a smaller exponent, or zero."""
    if not fmt.is_finite(code):
        return
    sign, field, fraction = fmt.fields(code)

    def word(sign: int, field: int, fraction: int) -> int:
        return (fmt.sign_mask if sign else 0) | (
            (field << fmt.fraction_bits) + fraction
        ) << fmt.ignored_low_bits

    if fmt.has_zero:
        yield 0
    if sign:
        yield word(0, field, fraction)
    yield word(sign, field, 0)
    if fmt.fraction_bits > 16:  # many bits: halves at a time first
        for half in (fraction >> fmt.fraction_bits // 2 << fmt.fraction_bits // 2, fraction & -fraction):
            yield word(sign, field, half)
    for i in range(fmt.fraction_bits):
        if fraction >> i & 1:
            yield word(sign, field, fraction ^ 1 << i)
    distance = fmt.bias - field
    for part in {distance, distance // 2, distance // 4, (distance > 0) - (distance < 0)}:
        if field + part < 1 << fmt.exponent_bits:  # a bias may be more than the field holds
            yield word(sign, field + part, fraction)
            yield word(sign, field + part, 0)


def _moved(code: int, fmt: Format, by: int) -> int:
    """The code with another exponent, if there is such a number; zero stays zero."""
    field = fmt.fields(code)[1]
    moved = code + (by << (fmt.fraction_bits + fmt.ignored_low_bits))
    inside = 0 < field + by < (1 << fmt.exponent_bits) - 1
    return moved if field and inside and fmt.is_finite(moved) else code


# ---- settling ----------------------------------------------------------------------------------------------------
