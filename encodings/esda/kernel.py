"""Rows of esda: an efda step from +0, and the addition of c, by the executable's stages."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda.kernel import EfdaKernel, exact_step, frame_of
from mmaformal.encodings.esda import Esda
from mmaformal.encodings.esda.executable import nan_code
from mmaformal.encodings.executable.blocks import Lane, quiet_nan, where
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.pfma.executable import without_subnormal
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.given import conversion
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.spec import DotAdd


@step_of("esda")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own = on.of, on.rho, on.own
    dot = exact_step(of, rho, own, a, b, np.int64(0))
    nan, flush, last = own[5], own[6] != 0, conversion(own, 7, of.d_format)
    result = ieee_add(code, dot, last, nan).result
    return where(flush, without_subnormal(result), result)


class EsdaKernel(OnlyRows):
    """The compiled rows of esda."""

    @classmethod
    def compiles_rows(cls, spec: DotAdd) -> bool:
        """Return whether efda's rows are compiled for the sum of products."""
        return EfdaKernel.compiles_rows(spec.parameters_as(Esda).inner(spec))

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Esda)
        inner = p.inner(spec)
        exact = inner.parameters_as(Efda)
        own = quiet_nan(spec.d_format), *frame_of(inner, exact)
        chain("esda", spec, rows, p.dot, p.L, *own, nan_code(p), p.flush, p.rho)


KERNEL = EsdaKernel
