"""Facts of gfdrda."""

from __future__ import annotations

from mmaformal.facts.fdrda import FdrdaFacts


class GfdrdaFacts(FdrdaFacts):
    """Those of fdrda: its arguments know of groups."""


FACTS = GfdrdaFacts("gfdrda")
