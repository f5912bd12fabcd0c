"""Pages of sources, with what rests on each, and of generations of units, with what the newer ones lose."""

from __future__ import annotations

import re
from html import escape

from mmaformal.architectures.papers import PAPERS, resting_on
from mmaformal.display import counted
from mmaformal.instruction import Instruction
from mmaformal.site.addresses import address
from mmaformal.site.html import Markup, link, page, table
from mmaformal.site.records import CHAIN, Atlas


def source_slug(name: str) -> str:
    """The name of a source's page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


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
    intro = "<p>Papers, manuals and programs that parameters are taken from, and what rests on each.</p>\n"
    return page("Sources", intro + table(head, rows, "sources"))


def source_page(atlas: Atlas, name: str) -> str:
    """A source: each instruction with a parameter that it gives, and where in it that stands."""
    rows = [
        (
            link(i.name, address(i, "../")),
            link(i.architecture, f"../architecture/{i.architecture}.html"),
            escape(", ".join(f"{p} = {i.parameters[p]}" if p in i.parameters else p for p in given)),
            escape("; ".join(dict.fromkeys(i.sources[p] for p in given))),
        )
        for i, given in resting_on(name, atlas.instructions)
    ]
    body = f"<p>{escape(PAPERS[name])}</p>\n<p>{counted(len(rows), 'instruction')} rest on it.</p>\n"
    head = ("instruction", "architecture", "parameters", "where it stands")
    return page(name, body + table(head, rows, f"what rests on {name}"), depth=1)


def written_sources(atlas: Atlas) -> dict[str, str]:
    """The pages of all sources that something rests on, by path."""
    names = [name for name in PAPERS if resting_on(name, atlas.instructions)]
    return {f"source/{source_slug(name)}.html": source_page(atlas, name) for name in names}


# ---- generations ---------------------------------------------------------------------------------------------------


def _bound(atlas: Atlas, i: Instruction) -> float | None:
    found = atlas.bound(i)
    return None if found is None else found.of(CHAIN)


def generations(atlas: Atlas) -> dict[str, list[tuple[Instruction, float]]]:
    """Instructions of one name and the same types on several architectures, in their order, with their bounds."""
    found: dict[str, list[tuple[Instruction, float]]] = {}
    for i in atlas.instructions:
        if (bound := _bound(atlas, i)) is not None:
            found.setdefault(f"{i.name} {i.spec.types}", []).append((i, bound))
    return {key: each for key, each in found.items() if len({bound for _, bound in each}) > 1}


def generations_page(atlas: Atlas) -> str:
    """The losses of products on each generation of one instruction, and where a newer one loses more."""
    rows: list[tuple[Markup, ...]] = []
    for each in generations(atlas).values():
        before: float | None = None
        for i, bound in each:
            change = (
                ""
                if before is None
                else "more"
                if bound > before
                else "less"
                if bound < before
                else "as much"
            )
            told = f'<strong class="verdict fails">{change}</strong>' if change == "more" else change
            rows.append(
                (link(i.name, address(i)), i.architecture, escape(i.spec.types), f"{bound:.4g}", told)
            )
            before = bound
    body = (
        f"<p>What a chain of {CHAIN:,} products is off at most, by the bound of one step, in units of "
        "2^-24 of w(c) + Σ w(a)·w(b). The bound of a step is proved; but of units that take subnormal numbers for "
        "zero, and of acc_e9s12, it is argued only, and the former are off by an absolute part besides, which is "
        "not in this table. Instructions whose bound is the same on all architectures are left out.</p>\n"
    )
    head = ("instruction", "architecture", "types", "at most", "than the one before")
    return page("Generations", body + table(head, rows, "generations"))
