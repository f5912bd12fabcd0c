"""Facts of sorted_fda: why both encodings make the same sum."""

from __future__ import annotations

from mmaformal.encodings.efda.proofs import stages
from mmaformal.encodings.sorted_fda import smt as smt_sorted
from mmaformal.facts.protocol import Facts


class SortedFacts(Facts[smt_sorted.SortedFdaStep]):
    stage_links = {"sorted_sum": stages.EQUAL["sorted_sum"]}  # noqa: RUF012


FACTS = SortedFacts("sorted_fda")
