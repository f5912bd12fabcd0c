"""A structure in words: for a person, and as those who write kernels say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmaformal.structure_plans import levels_of

if TYPE_CHECKING:
    from mmaformal.structures import Structure

#: How sums are added, by the words for orders.
ORDER_WORDS = {
    "sequential": "in order",
    "pairwise": "in pairs",
    "halves": "each to that half of them on",
}
_C_WORDS = {
    "start": "the first from C",
    "first": "C before them",
    "last": "C after them",
}
_REST = {
    "first": "before them onto the first lane",
    "head": "or, if nothing is, one of these before them onto the first lane",
    "lane": "after them onto the first lane",
    "onto": "one after the other onto the sum",
    "apart": "as a chain of their own, added to the sum",
    "turn": "in the lanes anew, the first of which goes on from the sum",
    "level": "by turns onto the lanes that the first addition leaves",
    "eighth": "in an eighth of the lanes, added to the sum, and the last one after the other onto that",
}


_CHAINED = {
    "yes": "",
    "second first": ", its second product first",
    "no": ", each product rounded and then added",
}


def order_words(order: str, lanes: int) -> str:
    """Returns how the results of so many lanes, or of blocks, are added."""
    if order in ORDER_WORDS:
        return ORDER_WORDS[order]
    levels = levels_of(order, lanes) or ()
    said = [f"those {stride} apart{f', {n} in order' if n > 2 else ''}" for stride, n in levels]
    return ", then ".join(said)


def structure_text(x: Structure, name: str) -> str:
    """Returns the structure in words, its instruction by that name."""
    i = x.instruction
    start = "C" if x.c_enters == "start" and x.whole else "+0"
    chains = f"a chain of {name} over K, {i.k} at a time, from {start}{_CHAINED[x.chained]}"
    if not x.whole:
        added = f"added {order_words(x.order, x.lanes)} in {x.total}"
        chains = f"K in {_parts(x)}, each {chains.replace(' over K', '')}; {added}"
        if x.block is not None and x.lanes > 1:
            chains += ", and the blocks in order"
    if x.whole and x.c_enters in ("first", "last"):
        chains += f"; C added in {x.total}"
    elif not x.whole and x.c_enters in _C_WORDS:
        chains += f", {_C_WORDS[x.c_enters]}"
    chains += "" if x.stored is None else f"; the sum stored as {x.stored} after each"
    end = f"; rounded to {x.d_format} (RNE)" if x.d_format not in (None, i.d_format) else ""
    return chains + end + ("; then C added and rounded again" if x.c_enters == "after" else "")


def _parts(x: Structure) -> str:
    said = list[str]()
    if x.block is not None:
        blocks = f"blocks of {x.block}"
        if x.onto:
            blocks += f", the first {x.onto} of each onto the sum"
        if x.smaller:
            blocks += f", then of {' and '.join(map(str, x.smaller))}"
        if x.halved is not None:
            blocks += f", less than two left halved to a multiple of {x.halved}"
        if x.rest is not None and x.unit is None:
            blocks += f", what is left {_REST[x.rest]}{_unfused(x)}"
        said.append(blocks)
    if x.lanes > 1:
        lanes = f"{x.lanes} lanes by turns"
        if x.dealt_from > 1:
            lanes += f" (of fewer than {x.dealt_from}: one chain)"
        if x.peeled:
            lanes += f", {x.peeled} before them onto the first lane"
        if x.short == "first":
            lanes += ", a short turn first"
        if x.unit is not None and x.rest is not None:
            lanes += f", in multiples of {x.unit}, what is left {_REST[x.rest]}{_unfused(x)}"
        said.append(lanes)
    return ", each in ".join(said)


def _unfused(x: Structure) -> str:
    return {"yes": "", "second first": ", its second product first", "no": ", each product rounded first"}[
        x.fused
    ]
