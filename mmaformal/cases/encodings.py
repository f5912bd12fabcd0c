"""Both encodings at once, traced on the same symbolic codes; and a case on which they are not the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.run import run, smt_result
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.encodings import executable, smt
from mmaformal.encodings.executable.blocks import AnyExecutableStep as ExecutableStep
from mmaformal.encodings.executable.blocks import Lane as ExecutableLane
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.lanes import LaneError, Sample, SymbolicFlag, SymbolicLane, Tracer
from mmaformal.solver.asking import constants_of
from mmaformal.spec import DotAdd

#: Values that each input of a trace is run on: a third of each kind.
SAMPLES = 384


@dataclass(frozen=True)
class InputLanes:
    """The inputs of a dot product-add as lanes."""

    a: tuple[SymbolicLane, ...]
    b: tuple[SymbolicLane, ...]
    c: SymbolicLane
    scale_a: tuple[SymbolicLane, ...]
    scale_b: tuple[SymbolicLane, ...]


StepT = TypeVar("StepT", bound=AnyStep, covariant=True)  #: of the SMT encoding


@dataclass(frozen=True)
class Traces(Generic[StepT]):
    """One dot product-add in both encodings, on the same symbolic codes."""

    spec: DotAdd
    inputs: Inputs
    lanes: InputLanes
    executable: Trace[ExecutableStep]  #: the executable encoding's trace, of lanes
    smt: smt.Trace[StepT]  #: the SMT encoding's, of terms


def trace(spec: DotAdd, inputs: Inputs, tracer: Tracer) -> Traces[AnyStep]:
    """Run both encodings on symbolic codes; what the traces are of has its products in the order in which they are
    taken.

    Raises LaneError if the tracer is strict and an operation may wrap, or if on the lanes' samples the executable
    encoding computes something else in NumPy: what it did on symbolic lanes is then not what runs.
    """
    rng = np.random.default_rng(0)

    def lane(code: z3.BitVecRef, fmt: Format | None) -> SymbolicLane:
        assert fmt is not None
        if z3.is_bv_value(code):
            return tracer.lift(_signed(code.as_long(), fmt))
        return tracer.input(code, sample_codes(fmt, rng))

    lanes = InputLanes(
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


def _check_samples(spec: DotAdd, lanes: InputLanes, symbolic: Trace[ExecutableStep]) -> None:
    """Check that NumPy computes what the symbolic lanes' samples say, at every interface.  Raises LaneError."""

    def samples(side: Sequence[SymbolicLane]) -> list[Sample]:
        return [lane.sample for lane in side]

    numbers = executable.dot_add(
        spec,
        samples(lanes.a),
        samples(lanes.b),
        lanes.c.sample,
        samples(lanes.scale_a),
        samples(lanes.scale_b),
    )
    check_samples(symbolic, numbers)


def check_samples(symbolic: object, numbers: object) -> None:
    """Check that NumPy's numbers are the samples of the symbolic lanes, at every interface.  Raises LaneError."""
    for i, (node, array) in enumerate(zip(_parts(symbolic), _parts(numbers), strict=True)):
        sample = node.sample if isinstance(node, (SymbolicLane, SymbolicFlag)) else node
        if not np.all(sample == array):
            raise LaneError(f"interface {i} is not what NumPy computes")


def _parts(x: object) -> Iterator[ExecutableLane]:
    """The lanes and flags of a trace's steps, in order."""
    if is_dataclass(x):
        x = tuple(getattr(x, field.name) for field in fields(x) if field.compare)
    if isinstance(x, (tuple, list)):
        for part in x:
            yield from _parts(part)
    elif x is not None:
        yield x


def _signed(code: int, fmt: Format) -> int:
    """The lane that holds a code: as it is, but a 64-bit one as the signed number with its bits."""
    return code - (1 << 64) if code >> 63 else code


def sample_codes(fmt: Format, rng: np.random.Generator) -> Sample:
    """Codes of a format: any, and, as many, finite ones whose exponents are near 0, with all or no fraction bits; and
    as many of which most are zero, and the others' exponents are farther apart."""
    third = SAMPLES // 3
    any_code = rng.integers(0, fmt.codes, third, dtype=np.uint64, endpoint=False)
    near = _fields(fmt, rng, rng.integers(-2, 3, third))
    (other,) = rng.spawn(1)
    far = _fields(fmt, other, other.integers(-30, 31, third))
    few = np.where(other.random(third) < 0.25, far, far & np.uint64(fmt.sign_mask))
    return np.concatenate([any_code, near, few]).astype(np.int64)


def _fields(fmt: Format, rng: np.random.Generator, exponents: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Finite codes of such exponents, with all or no fraction bits."""
    field = np.clip(fmt.bias + exponents, 0, (1 << fmt.exponent_bits) - 1).astype(np.uint64)
    fraction = rng.choice(np.array([0, (1 << fmt.fraction_bits) - 1], np.uint64), len(exponents))
    sign = rng.integers(0, 2, len(exponents)).astype(np.uint64) * np.uint64(fmt.sign_mask)
    fields = ((field << np.uint64(fmt.fraction_bits)) + fraction) << np.uint64(fmt.ignored_low_bits)
    codes: NDArray[np.uint64] = fields | sign
    return codes


# ---- on codes ------------------------------------------------------------------------------------------------


def wraps(spec: DotAdd, codes: Codes) -> str | None:
    """Where in the executable encoding an operation wraps, and what; None if nothing does."""
    tracer = Tracer()

    def lift(side: Sequence[int], fmt: Format | None) -> list[SymbolicLane]:
        return [tracer.lift(_signed(code, fmt)) for code in side] if fmt is not None else []

    (c,), a, b = lift([codes.c], spec.c_format), lift(codes.a, spec.a_format), lift(codes.b, spec.b_format)
    scales = lift(codes.scale_a, spec.scale_format), lift(codes.scale_b, spec.scale_format)
    try:
        executable.dot_add(spec, a, b, c, *scales)
    except LaneError as error:
        return str(error)
    return None


def compare_encodings(instruction: Instruction, codes: Codes) -> CaseWitness | None:
    """Run both encodings on codes; None if they give the same code, NaNs included, and nothing wraps."""
    spec = instruction.spec
    (in_executable,), in_smt = run(instruction, [codes]), smt_result(spec, codes)
    where = wraps(spec, codes)
    if where is None and in_executable == in_smt:
        return None
    runs = Run("executable", spec, codes, in_executable), Run("smt", spec, codes, in_smt)
    return CaseWitness(instruction, runs, notes=(f"wraps: {where}",) if where else ())


def codes_of_model(inputs: Inputs, model: Mapping[str, int]) -> Codes:
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
