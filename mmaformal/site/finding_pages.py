"""Pages of sources, with what rests on each, and of generations of units, with what the newer ones lose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from mmaformal.architectures import ON_PAPER
from mmaformal.architectures.papers import ADDRESSES, PAPERS, resting_on
from mmaformal.display import ShortRepr, counted
from mmaformal.instruction import Instruction
from mmaformal.listing import parameters_in_words
from mmaformal.site.addresses import page_address
from mmaformal.site.html import Markup, link, page, page_table
from mmaformal.site.records import CHAIN, Atlas, bits_kept
from mmaformal.site.search import maker, search_words


def source_slug(name: str) -> str:
    """The name of a source's page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def linked_sources(text: str, root: str) -> Markup:
    """A text with the names of sources in it as links to their pages."""
    names = sorted(PAPERS, key=len, reverse=True)
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text)
    return "".join(
        link(part, f"{root}source/{source_slug(part)}.html") if part in PAPERS else escape(part)
        for part in parts
    )


def sources_page(atlas: Atlas) -> str:
    """All sources, with how many instructions rest on each."""
    rows = [
        (
            link(name, f"source/{source_slug(name)}.html"),
            escape(title),
            str(len(some)),
            ", ".join(dict.fromkeys(i.architecture for i, _ in some)),
        )
        for name, title in PAPERS.items()
        if (some := resting_on(name, atlas.instructions))
    ]
    head = ("source", "title", "instructions", "architectures")
    intro = (
        "<p>Papers, manuals and programs that parameters are taken from, and what rests on each. Units that a text "
        "alone specifies have no pages; <code>mmaformal list --sources</code> counts them, too.</p>\n"
    )
    return page("Sources", intro + page_table(head, rows, "sources"))


def source_page(atlas: Atlas, name: str) -> str:
    """A source: each value that it gives to a parameter, where in it that stands, and the instructions that have it."""
    resting = resting_on(name, atlas.instructions)
    said: dict[tuple[str, str, str, str], list[Instruction]] = {}
    for i, given in resting:
        values = {each.name: each.value for each in parameters_in_words(i)}
        for p in given:
            said.setdefault((p, values.get(p, ""), i.sources[p], i.architecture), []).append(i)
    rows, words = [], []
    for (parameter, value, where, architecture), some in said.items():
        links = ", ".join(link(i.name, page_address(i, "../")) for i in some)
        listed = links if len(some) < 4 else f"<details><summary>{len(some)}</summary>{links}</details>"
        rows.append(
            (
                escape(f"{parameter} = {value}" if value else parameter),
                link(architecture, f"../architecture/{architecture}.html"),
                listed,
                escape(where),
            )
        )
        words.append(" ".join(dict.fromkeys(word for i in some for word in search_words(i))))
    address_ = f' <a href="{ADDRESSES[name]}">{escape(ADDRESSES[name])}</a>' if name in ADDRESSES else ""
    body = f"<p>{escape(PAPERS[name])}.{address_}</p>\n<p>{counted(len(resting), 'instruction')} rest on it.</p>\n"
    head = ("parameter", "architecture", "instructions", "where it stands")
    return page(name, body + page_table(head, rows, f"what rests on {name}", words), depth=1)


def written_sources(atlas: Atlas) -> dict[str, str]:
    """The pages of all sources that something rests on, by path."""
    names = [name for name in PAPERS if resting_on(name, atlas.instructions)]
    return {f"source/{source_slug(name)}.html": source_page(atlas, name) for name in names}


# ---- generations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class BoundOfArchitecture(ShortRepr):
    """The instructions of an architecture that take some types and have one bound."""

    instructions: tuple[Instruction, ...]
    bound: float  #: of a chain of CHAIN products, in units of 2^-24 of w(c) + Σ w(a)·w(b)
    change: str  #: of the least bound of its architecture against the least of the one before: more, less, as much


def generations(atlas: Atlas) -> dict[tuple[str, str], list[BoundOfArchitecture]]:
    """The bounds of each maker's architectures for some types, in their order, where they are not all the same."""
    bounds: dict[tuple[str, str], dict[str, dict[float, list[Instruction]]]] = {}
    for i in atlas.instructions:
        if (found := atlas.bound(i)) is not None and i.architecture not in ON_PAPER:
            of_types = bounds.setdefault((maker(i.architecture), i.spec.types), {})
            of_types.setdefault(i.architecture, {}).setdefault(found.of(CHAIN), []).append(i)
    told = {}
    for key, architectures in bounds.items():
        before, rows = None, []
        for each in architectures.values():
            least = min(each)
            change = "" if before is None else _change(least, before)
            rows += [
                BoundOfArchitecture(tuple(some), bound, change if bound == least else "")
                for bound, some in sorted(each.items())
            ]
            before = least
        if any(row.change in ("more", "less") for row in rows):
            told[key] = rows
    return told


def _change(bound: float, before: float) -> str:
    return "more" if bound > before else "less" if bound < before else "as much"


def generations_page(atlas: Atlas) -> str:
    """The losses of products on each generation of a maker's units, and where a newer one loses more."""
    found = generations(atlas)
    rows: list[tuple[Markup, ...]] = []
    words = []
    for (who, types), generation in sorted(
        found.items(), key=lambda item: all(x.change != "more" for x in item[1])
    ):
        for each in generation:
            first = each.instructions[0]
            more = f" +{len(each.instructions) - 1}" if len(each.instructions) > 1 else ""
            change = each.change
            told = f'<strong class="verdict fails">{change}</strong>' if change == "more" else change
            rows.append(
                (
                    f"{escape(who)}: {escape(types)}",
                    link(first.architecture, f"architecture/{first.architecture}.html"),
                    link(first.name, page_address(first)) + more,
                    bits_kept(first),
                    f"{each.bound * 2.0**-24:.2g}",
                    told,
                )
            )
            words.append(" ".join(search_words(first)))
    worse = sorted(
        {
            f"{who} {x.instructions[0].architecture}"
            for (who, _), g in found.items()
            for x in g
            if x.change == "more"
        }
    )
    body = (
        f"<p>The most that a chain of {CHAIN:,} products can be off, as a share of |c| + Σ |a·b| (of the numbers next "
        "to them where these are subnormal), by the bound of one step: for each maker and types, its architectures in "
        f"order. A newer unit can lose more: {escape(', '.join(worse)) or 'none here'}; <em>more</em> compares the "
        "most exact instructions of two generations. The bound of a step is proved; but of units that take subnormal "
        "numbers for zero, it is argued only, and these are off by an absolute part besides, which is not in this "
        "table. +n: n more instructions have it.</p>\n"
    )
    head = ("types", "architecture", "instruction", "keeps", "off at most", "than the one before")
    return page("Generations", body + page_table(head, rows, "generations", words))
