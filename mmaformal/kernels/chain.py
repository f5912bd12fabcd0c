"""Rows as a chain of steps, each compiled from the executable's stages; a step takes parameters as numbers.

A kernel's step makes the code of d of that of c: `step(algorithm, on, scales, a, b, code)`, where
a and b are the codes of the products that it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.compiled import ConstantType, Numba, driver, inlined, vectorised
from mmaformal.kernels.given import CONVERSION, OWN, conversion, formats, numbers, scale_block, scale_format
from mmaformal.kernels.kernel import Plane
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.spec import DotAdd

F = TypeVar("F", bound=Callable[..., Any])

_STEPS: dict[str, Callable[..., Any]] = {}


class Scales(NamedTuple):
    """The block scales of an output; `block` is 0 if there are none."""

    format: Format
    block: int
    first: int  #: the first product of the step
    row: int  #: of the scales


class RowStep(NamedTuple):
    """The arguments that all steps of all rows are given."""

    of: DotAdd  #: the formats
    rho: Conversion
    own: Plane  #: the algorithm's own numbers
    room: Plane  #: four rows of as many lanes as K
    scale_a: Plane
    scale_b: Plane


class Algorithm:
    """An argument that stands for an algorithm and the sources of kernels; the type of each is its own."""

    def __init__(self, name: str) -> None:
        self._numba_type_ = ConstantType(("a chain of", name))


_ALGORITHMS: dict[str, Algorithm] = {}


def step_of(name: str) -> Callable[[F], F]:
    """Register the step of an algorithm; compiled code can also call it."""

    def register(function: F) -> F:
        _STEPS[name], _ALGORITHMS[name] = function, Algorithm(name)
        return inlined(function)

    return register


def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    raise NotImplementedError("compiled code only")


@overload(step, inline="always", strict=False)
def _step(algorithm: Numba, on: Numba, scales: Numba, a: Numba, b: Numba, code: Numba) -> Callable[..., Any]:
    return _STEPS[algorithm.value[1]]


@driver
def run_chain(
    algorithm: Algorithm,
    given: Plane,
    room: Plane,
    a: Plane,
    b: Plane,
    c: Plane,
    scale_a: Plane,
    scale_b: Plane,
    d: Plane,
) -> None:
    vectorised()
    of, fmt, block = formats(given), scale_format(given), scale_block(given)
    rho, at = conversion(given, OWN, of.d_format), OWN + CONVERSION
    L, own = given[at], given[at + 1 :]
    on = RowStep(of, rho, own, room, scale_a, scale_b)
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            x, y = a[i, first : first + L], b[i, first : first + L]
            code = step(algorithm, on, Scales(fmt, block, first, i), x, y, code)
        d[i] = code


def chain(
    name: str, spec: DotAdd, rows: Batch, rho: Conversion | None, products: int, *own: int | Conversion
) -> None:
    """Fill in the results of rows by steps of so many products; `rho` is None where ρ is none of its parameters."""
    room = np.empty((4, rows.a.shape[1]), np.int64)
    run_chain(_ALGORITHMS[name], numbers(spec, rho or IEEE_FP32, products, *own), room, *rows)
