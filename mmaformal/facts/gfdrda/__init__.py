"""Facts of gfdrda."""

from __future__ import annotations

from typing import Any

from mmaformal.facts.fdrda import FdrdaFacts


class GfdrdaFacts(FdrdaFacts):
    """Those of fdrda: its arguments know of groups."""

    def first_sum(self, step: Any) -> Any:
        return step.dots[0].total


FACTS = GfdrdaFacts("gfdrda")
