"""Both wings at once: traced on the same symbolic codes, or run on the same codes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.display import HtmlText, short_text
from mmaformal.encodings import executable, smt
from mmaformal.explain import code_text
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.lanes import Flag, Lane, LaneError, Sample, Tracer
from mmaformal.solver.asking import constants_of

_SAMPLES = 256


@dataclass(frozen=True)
class Lanes:
    """The inputs of a dot product-add as lanes."""

    a: tuple[Lane, ...]
    b: tuple[Lane, ...]
    c: Lane
    scale_a: tuple[Lane, ...]
    scale_b: tuple[Lane, ...]


@dataclass(frozen=True)
class Traces:
    """One dot product-add in both wings, on the same symbolic codes."""

    spec: DotAdd
    inputs: Inputs
    lanes: Lanes
    executable: Any  #: the executable wing's trace, of lanes
    smt: Any  #: the SMT wing's, of terms


def trace(spec: DotAdd, inputs: Inputs, tracer: Tracer) -> Traces:
    """Run both wings on symbolic codes; what the traces are of has its products in the order in which they are taken.

    Raises LaneError if the tracer is strict and an operation may wrap, or if on the lanes' samples the executable wing
    computes something else in NumPy: what it did on symbolic lanes is then not what runs.
    """
    rng = np.random.default_rng(0)

    def lane(code: z3.BitVecRef, fmt: Format | None) -> Lane:
        assert fmt is not None
        if z3.is_bv_value(code):
            return tracer.lift(_signed(code.as_long(), fmt))
        return tracer.input(code, _sample(fmt, rng))

    lanes = Lanes(
        tuple(lane(x, spec.a_format) for x in inputs.a),
        tuple(lane(x, spec.b_format) for x in inputs.b),
        lane(inputs.c, spec.c_format),
        tuple(lane(x, spec.scale_format) for x in inputs.scale_a),
        tuple(lane(x, spec.scale_format) for x in inputs.scale_b),
    )
    mine = executable.dot_add(spec, lanes.a, lanes.b, lanes.c, lanes.scale_a, lanes.scale_b)
    other = smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b)
    if tracer.strict:
        _check_samples(spec, lanes, mine)
    if not spec.product_order:
        return Traces(spec, inputs, lanes, mine, other)
    taken = spec.taken
    return Traces(
        spec.in_order,
        replace(inputs, a=tuple(inputs.a[k] for k in taken), b=tuple(inputs.b[k] for k in taken)),
        replace(lanes, a=tuple(lanes.a[k] for k in taken), b=tuple(lanes.b[k] for k in taken)),
        mine,
        other,
    )


def _check_samples(spec: DotAdd, lanes: Lanes, symbolic: Any) -> None:
    """That NumPy computes what the symbolic lanes' samples say, at every interface."""

    def samples(side: Sequence[Lane]) -> list[Sample]:
        return [lane.sample for lane in side]

    numbers = executable.dot_add(
        spec,
        samples(lanes.a),
        samples(lanes.b),
        lanes.c.sample,
        samples(lanes.scale_a),
        samples(lanes.scale_b),
    )
    for i, (node, array) in enumerate(zip(_parts(symbolic), _parts(numbers), strict=True)):
        sample = node.sample if isinstance(node, (Lane, Flag)) else node
        if not np.all(sample == array):
            raise LaneError(f"interface {i} of {spec.parameters.algorithm} is not what NumPy computes")


def _parts(x: Any) -> Iterator[Any]:
    """The lanes and flags of a trace, in order."""
    if is_dataclass(x):
        x = tuple(getattr(x, field.name) for field in fields(x))
    if isinstance(x, (tuple, list)):
        for part in x:
            yield from _parts(part)
    elif x is not None:
        yield x


def _signed(code: int, fmt: Format) -> int:
    """The lane that holds a code: as it is, but a 64-bit one as the signed number with its bits."""
    return code - (1 << 64) if code >> 63 else code


def _sample(fmt: Format, rng: np.random.Generator) -> Sample:
    """Codes of a format: any, and, as many, finite ones whose exponents are near 0, with all or no fraction bits."""
    half = _SAMPLES // 2
    any_code = rng.integers(0, fmt.codes, half, dtype=np.uint64, endpoint=False)
    field = np.clip(fmt.bias + rng.integers(-2, 3, half), 0, (1 << fmt.exponent_bits) - 1).astype(np.uint64)
    fraction = rng.choice(np.array([0, (1 << fmt.fraction_bits) - 1], np.uint64), half)
    sign = rng.integers(0, 2, half).astype(np.uint64) * np.uint64(fmt.sign_mask)
    fields = ((field << np.uint64(fmt.fraction_bits)) + fraction) << np.uint64(fmt.ignored_low_bits)
    return np.concatenate([any_code, fields | sign]).astype(np.int64)


# ---- on codes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class WingWitness(HtmlText):
    """Codes for which the two wings differ, or for which an operation of the executable wing wraps."""

    instruction: Instruction
    codes: Codes
    executable: int  #: code of d
    smt: int  #: code of d
    wraps: str | None  #: where in the executable wing, and what

    def to_json(self) -> dict[str, Any]:
        codes = self.codes
        sides = {"a": codes.a, "b": codes.b, "scale_a": codes.scale_a, "scale_b": codes.scale_b}
        return {
            "instruction": self.instruction.label,
            **{name: [hex(x) for x in side] for name, side in sides.items() if side},
            "c": hex(codes.c),
            "executable": hex(self.executable),
            "smt": hex(self.smt),
            "wraps": self.wraps,
        }

    def __str__(self) -> str:
        spec, codes = self.instruction.spec, self.codes
        lines = ["inputs (those not shown are the code 0)"]
        for name, side, fmt in (
            ("a", codes.a, spec.a_format),
            ("b", codes.b, spec.b_format),
            ("scale_a", codes.scale_a, spec.scale_format),
            ("scale_b", codes.scale_b, spec.scale_format),
        ):
            if fmt is not None:
                lines += [f"  {name}[{k}]".ljust(14) + code_text(x, fmt) for k, x in enumerate(side) if x]
        lines += ["  c".ljust(14) + code_text(codes.c, spec.c_format), "results"]
        for name, result in (("executable", self.executable), ("smt", self.smt)):
            lines.append(f"  {name}".ljust(14) + code_text(result, spec.d_format))
        return "\n".join([*lines, f"wraps: {self.wraps}"] if self.wraps else lines)

    def __repr__(self) -> str:
        results = f"executable {self.executable:#x}, smt {self.smt:#x}"
        return short_text(self, self.instruction.label, results, *([self.wraps] if self.wraps else []))


def compare(instruction: Instruction, codes: Codes) -> WingWitness | None:
    """Run both wings on codes; None if their results are equal and nothing wraps."""
    spec = instruction.spec

    def each(x: Any) -> Any:
        return {
            "a": [x(code, spec.a_format) for code in codes.a],
            "b": [x(code, spec.b_format) for code in codes.b],
            "c": x(codes.c, spec.c_format),
            "scale_a": [x(code, spec.scale_format) for code in codes.scale_a],
            "scale_b": [x(code, spec.scale_format) for code in codes.scale_b],
        }

    with np.errstate(all="ignore"):
        lanes = each(lambda code, fmt: np.array([_signed(code, fmt)], np.int64))
        mine = int(executable.dot_add(spec, **lanes).result[0]) % spec.d_format.codes
    terms = each(lambda code, fmt: z3.BitVecVal(code, fmt.storage_bits))
    other = z3.simplify(smt.dot_add(spec, **terms).result).as_long()
    wraps = None
    tracer = Tracer()
    try:
        executable.dot_add(spec, **each(lambda code, fmt: tracer.lift(_signed(code, fmt))))
    except LaneError as error:
        wraps = str(error)
    return WingWitness(instruction, codes, mine, other, wraps) if wraps or mine != other else None


def cases(spec: DotAdd, count: int) -> list[Codes]:
    """Codes of many moods: any bits; products near each other, equal, cancelling, or few; results near the least and
    the largest there are; special values."""
    rng = random.Random(0)
    least = spec.d_format.min_exponent - spec.d_format.fraction_bits

    def near(fmt: Format, exponent: int) -> int:
        """A code whose exponent is near the given one."""
        field = min(
            max(exponent + fmt.bias + rng.choice((0, 0, 0, -1, 1, 2, -2)), 0), (1 << fmt.exponent_bits) - 1
        )
        ones = (1 << fmt.fraction_bits) - 1
        fraction = rng.choice((0, 1, ones, rng.randint(0, ones)))
        code = ((field << fmt.fraction_bits) + fraction) << fmt.ignored_low_bits
        return code | rng.choice((0, fmt.sign_mask))

    def special(fmt: Format) -> int:
        top = fmt.codes - 1
        infinity = fmt.infinity or top
        code = rng.choice((0, 1, top, infinity, infinity - 1, infinity + 1, rng.randint(0, top)))
        return (code ^ rng.choice((0, fmt.sign_mask))) & top

    def case() -> Codes:
        K, scale = spec.k, spec.scale_format
        mood = rng.choice(("bits", "near", "equal", "cancel", "few", "special", "least", "largest"))
        e_a, e_b = (rng.randint(f.min_exponent, f.max_exponent) for f in (spec.a_format, spec.b_format))
        if mood in ("least", "largest"):
            e = (
                least + rng.randint(-8, 8)
                if mood == "least"
                else spec.d_format.max_exponent - rng.randint(-1, 3)
            )
            low, high = e - spec.b_format.max_exponent, e - spec.b_format.min_exponent
            e_a = min(max(rng.randint(low, high), spec.a_format.min_exponent), spec.a_format.max_exponent)
            e_b = min(max(e - e_a, spec.b_format.min_exponent), spec.b_format.max_exponent)
        a, b = [near(spec.a_format, e_a) for _ in range(K)], [near(spec.b_format, e_b) for _ in range(K)]
        c = near(spec.c_format, e_a + e_b + rng.choice((0, 1, 2, 24, -24, rng.randint(-60, 60))))
        scales = [near(scale, rng.randint(-8, 8)) for _ in range(2 * spec.scales)] if scale else []
        if mood == "bits":
            a, b = ([rng.randrange(f.codes) for _ in range(K)] for f in (spec.a_format, spec.b_format))
            c, scales = rng.randrange(spec.c_format.codes), [rng.randrange(256) for _ in scales]
        elif mood == "equal":
            a, b = a[:1] * K, b[:1] * K
        elif mood == "cancel":
            a[1::2], b[1::2] = [x ^ spec.a_format.sign_mask for x in a[: K // 2 * 2 : 2]], b[: K // 2 * 2 : 2]
        elif mood == "few":
            a, b = ([x if rng.random() < 2 / K else 0 for x in side] for side in (a, b))
        elif mood == "least":
            c = rng.choice((c, 0, spec.c_format.sign_mask))
        elif mood == "special":
            k = rng.randrange(K)
            scales = [special(scale) if scale and rng.random() < 0.1 else x for x in scales]
            a[k], b[k], c = (
                special(spec.a_format),
                special(spec.b_format),
                rng.choice((c, special(spec.c_format))),
            )
        return Codes(tuple(a), tuple(b), c, tuple(scales[: spec.scales]), tuple(scales[spec.scales :]))

    return [case() for _ in range(count)]


def _flat(x: Codes | Inputs) -> list[Any]:
    return [*x.a, *x.b, x.c, *x.scale_a, *x.scale_b]


def results(spec: DotAdd, codes: Sequence[Codes]) -> list[tuple[int, int]]:
    """The codes of d, (executable, SMT): NumPy's, and those of the terms."""
    inputs = symbolic_inputs(spec)
    terms = smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b)
    columns = np.array([_flat(x) for x in codes], np.uint64).T
    a, b, c, scale_a, scale_b = np.split(
        columns.astype(np.int64), np.cumsum([spec.k, spec.k, 1, spec.scales])
    )
    with np.errstate(all="ignore"):
        mine = executable.dot_add(spec, [*a], [*b], c[0], [*scale_a], [*scale_b]).result
    values = {str(term): column.astype(object) for term, column in zip(_flat(inputs), columns, strict=True)}
    other = evaluate(terms.result, values)
    return [(int(x) % spec.d_format.codes, int(y)) for x, y in zip(mine, other, strict=True)]


def codes_of(inputs: Inputs, model: Mapping[str, int]) -> Codes:
    """The codes that a model stands for."""

    def code(term: z3.BitVecRef) -> int:
        values = [(c, z3.BitVecVal(model[str(c)], c.size())) for c in constants_of(term)]
        value: int = z3.simplify(z3.substitute(term, *values) if values else term).as_long()
        return value

    def codes(terms: Sequence[z3.BitVecRef]) -> tuple[int, ...]:
        return tuple(map(code, terms))

    return Codes(
        codes(inputs.a), codes(inputs.b), code(inputs.c), codes(inputs.scale_a), codes(inputs.scale_b)
    )
