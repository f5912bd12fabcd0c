"""Both encodings on cases: their traces and their results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.inputs import Codes, Columns, Inputs, Rows, symbolic_inputs
from mmaformal.encodings import executable, smt
from mmaformal.encodings.executable.blocks import AnyExecutableStep, Lane, Trace
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows as kernels
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError, results_differ

# ---- the executable encoding -----------------------------------------------------------------------------------------


def run_trace(spec: DotAdd, codes: Columns) -> Trace[AnyExecutableStep]:
    """The executable encoding's trace on columns of codes."""

    def lanes(side: Sequence[NDArray[np.uint64]]) -> list[NDArray[np.int64]]:
        return [np.asarray(x, np.uint64).astype(np.int64) for x in side]

    (c,) = lanes([codes.c])
    sides = [lanes(side) for side in (codes.a, codes.b, codes.scale_a, codes.scale_b)]
    with np.errstate(all="ignore"):
        return executable.dot_add(spec, sides[0], sides[1], c, sides[2], sides[3])


def codes_in_lane(lane: Lane, fmt: Format) -> NDArray[np.uint64]:
    """The codes in a lane."""
    codes: NDArray[np.uint64] = np.asarray(lane, np.int64).astype(np.uint64) & np.uint64(fmt.codes - 1)
    return codes


def results(spec: DotAdd, codes: Columns) -> NDArray[np.uint64]:
    """The codes of d that the executable encoding gives for columns of codes."""
    return codes_in_lane(run_trace(spec, codes).result, spec.d_format)


def compiled_results(spec: DotAdd, codes: Columns | Rows) -> NDArray[np.uint64]:
    """Return the results by compiled rows (`mmaformal.kernels.rows`)."""
    return kernels.dot_add(spec, *_row_by_row(codes)).astype(np.uint64)


def quick_results(spec: DotAdd, codes: Columns | Rows) -> NDArray[np.uint64]:
    """Return the results by NumPy's lanes, until compiled rows pay: for many models or many cases."""
    return kernels.quick_dot_add(spec, *_row_by_row(codes)).astype(np.uint64)


def _row_by_row(codes: Columns | Rows) -> tuple[NDArray[np.uint64], ...]:
    """Return a, b, c and both scales, a row for each case."""
    if isinstance(codes, Rows):
        return codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b
    sides = (codes.a, codes.b, codes.scale_a, codes.scale_b)
    none = np.empty((len(codes.c), 0), np.uint64)
    a, b, scale_a, scale_b = (np.stack(side, axis=1) if side else none for side in sides)
    return a, b, codes.c, scale_a, scale_b


def run(instruction: Instruction, cases: Sequence[Codes]) -> list[int]:
    """Return the results of a list of cases, in order."""
    found: list[int] = results(instruction.spec, Rows.of(cases).codes).tolist()
    return found


# ---- the SMT encoding ------------------------------------------------------------------------------------------------


def code_values(spec: DotAdd, codes: Codes) -> Inputs:
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


def smt_result(spec: DotAdd, codes: Codes) -> int:
    """The code of d that the SMT encoding gives for one case."""
    x = code_values(spec, codes)
    result: int = z3.simplify(smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).result).as_long()
    return result


class SmtEncoding:
    """The SMT encoding, for many cases at once."""

    def __init__(self, spec: DotAdd) -> None:
        self._inputs = symbolic_inputs(spec)
        x = self._inputs
        self._result = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).result

    def results(self, rows: Rows) -> list[int]:
        """The codes of d."""
        columns = zip(self._inputs.flat(), rows.codes.flat(), strict=True)
        found = evaluate(self._result, {str(term): column.astype(object) for term, column in columns})
        return [int(x) for x in np.broadcast_to(found, rows.c.shape)]


# ---- both --------------------------------------------------------------------------------------------------------


def both_results(spec: DotAdd, rows: Rows) -> list[tuple[int, int]]:
    """The codes of d, (executable, SMT)."""
    return list(zip(results(spec, rows.codes).tolist(), SmtEncoding(spec).results(rows), strict=True))


def run_both(instruction: Instruction, codes: Codes) -> int:
    """The code of d that both encodings give.  Raises WitnessError if they do not agree."""
    spec = instruction.spec
    (executable_d,), smt_d = run(instruction, [codes]), smt_result(spec, codes)
    if results_differ(spec, spec, executable_d, smt_d):
        raise WitnessError(
            f"{instruction.label}: the two encodings do not agree on {codes}: "
            f"executable {executable_d:#x}, bit-vector terms {smt_d:#x}"
        )
    return executable_d
