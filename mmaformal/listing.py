"""Tables of instructions and models in words, for a person."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.instruction import Instruction


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell, a rule under the head."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()

    return "\n".join([line(head), "  ".join("-" * width for width in widths), *map(line, rows)])


def architecture_table(architecture: Architecture) -> str:
    rows = [
        (i.name, f"{i.m}×{i.n}×{i.k}", i.spec.types, i.algorithm, i.parameters.describe())
        for i in architecture.instructions
    ]
    head = ("instruction", "m×n×k", "types", "algorithm", "parameters")
    return f"{architecture.name}: {architecture.gpus}\n\n{table(head, rows)}"


def instruction_tables() -> str:
    """Rows instructions, columns architectures, cells the algorithm with its parameters; one table per vendor."""
    vendors: dict[bool, list[Architecture]] = {False: [], True: []}
    for architecture in ARCHITECTURES.values():
        vendors[architecture.name.startswith("cdna")].append(architecture)
    parts = []
    for architectures in filter(None, vendors.values()):
        names = list(dict.fromkeys(i.name for a in architectures for i in a))
        rows = []
        for name in names:
            cells = []
            for architecture in architectures:
                here = next((i for i in architecture if i.name == name), None)
                cells.append(f"{here.algorithm} {_brief(here)}".strip() if here else "–")
            rows.append((name, *cells))
        parts.append(table(("instruction", *(a.name for a in architectures)), _collapsed(rows)))
    return "\n\n".join(parts)


def _brief(i: Instruction) -> str:
    return " ".join(f"{name}={i.parameters[name]}" for name in ("F", "L", "G") if name in i.parameters.keys())  # noqa: SIM118


#: Names of sets of types, as seed 000 Table III has them.
_TYPE_SETS = (
    ("f8f6f4type", frozenset({"E4M3", "E5M2", "E2M3", "E3M2", "E2M1"})),
    ("f8type", frozenset({"E4M3", "E5M2"})),
)


def _collapsed(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows that differ in their input types alone become one: `QMMA.16832.F32.f8type.f8type`."""
    every = _TYPE_SETS[0][1]
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for row in rows:
        stem = tuple("*" if part.upper() in every else part for part in row[0].split("."))
        groups.setdefault((stem, row[1:]), []).append(row[0])
    out: list[tuple[str, ...]] = []
    for (stem, cells), names in groups.items():
        used = {part.upper() for name in names for part in name.split(".") if part.upper() in every}
        label = next((label for label, types in _TYPE_SETS if used == types), None)
        if len(names) == 1 or label is None:
            out.extend((name, *cells) for name in names)
            continue
        others = "" if len(names) == len(used) ** stem.count("*") else " (the others)"
        out.append((".".join(label if part == "*" else part for part in stem) + others, *cells))
    return out


def in_words(i: Instruction) -> str:
    """What the instruction computes, each parameter with where it is from."""
    summary = i.parameters.summary
    lines = [
        f"{i.label}" + (f"  ({', '.join(i.aliases)})" if i.aliases else ""),
        f"  D (m×n) = A (m×k) · B (k×n) + C, m×n×k = {i.m}×{i.n}×{i.k}; {i.spec.types}",
        f"  every element: d = c + Σ a_k·b_k over {i.k} products, by {i.algorithm}:",
        f"  {summary}",
    ]
    step = i.parameters.step_products
    if step < i.k:
        lines.append(f"  in {i.k // step} steps of {step} products, each step's d being the next one's c")
    if i.spec.scale_format is not None:
        lines.append(f"  with one {i.spec.scale_format} scale of each side per {i.spec.scale_block} products")
    lines.append("parameters:")
    for name in i.parameters.keys():  # noqa: SIM118 - Parameters is no dict
        value = i.parameters[name]
        shown = "that of its fields" if value is None else str(value)
        lines.append(f"  {name} = {shown}".ljust(24) + f"  [{i.sources.get(name, 'no source recorded')}]")
    return "\n".join(lines)
