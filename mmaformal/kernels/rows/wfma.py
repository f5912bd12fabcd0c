"""Rows of wfma: factors converted by tables, then `sfma`."""

from __future__ import annotations

from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.wfma import Wfma
from mmaformal.kernels.rows import sfma
from mmaformal.kernels.rows.batch import Batch, converted
from mmaformal.spec import DotAdd


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Wfma)
    target = p.rho.format
    sfma.run(
        spec.replace(a_format=target, b_format=target, parameters=Sfma(p.rho)),
        converted(rows, spec, target, target),
    )
