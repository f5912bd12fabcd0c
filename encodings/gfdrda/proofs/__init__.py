"""Facts of gfdrda."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fdrda import executable as executable_fdrda
from mmaformal.encodings.fdrda.proofs import FdrdaFacts


class GfdrdaFacts(FdrdaFacts):
    """Those of fdrda: its arguments know of groups."""

    def first_sum(self, step: object) -> Lane:
        assert isinstance(step, executable_fdrda.FdrdaStep)
        return step.dots[0].total


FACTS = GfdrdaFacts("gfdrda")
