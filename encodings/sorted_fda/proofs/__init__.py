"""Facts of sorted_fda: why both encodings make the same sum."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.encodings.efda.proofs import stages
from mmaformal.encodings.sorted_fda import smt as smt_sorted
from mmaformal.facts.protocol import Facts

Step: TypeAlias = smt_sorted.SortedFdaStep


class SortedFacts(Facts[Step]):
    stage_links = {"sorted_sum": stages.EQUAL["sorted_sum"]}  # noqa: RUF012


FACTS = SortedFacts("sorted_fda")
