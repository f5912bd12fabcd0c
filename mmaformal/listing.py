"""Tables of instructions and models in words, for a person."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mmaformal import accumulator, renamed
from mmaformal.architectures import (
    ARCHITECTURES,
    SPECIFIED_UNITS,
    Architecture,
    UnknownInstructionError,
)
from mmaformal.architectures.base import TYPE_SETS, canonical_name
from mmaformal.architectures.papers import PAPERS, resting_on
from mmaformal.architectures.products import NOT_MODELLED, PRODUCTS
from mmaformal.display import columns, counted, width_to_fit
from mmaformal.instruction import Instruction
from mmaformal.recordings.backing import backing
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, parameter_text, plain_parameter


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell, a rule under the head."""
    return "\n".join(columns([head, *rows], ruled=True))


def architecture_table(architecture: Architecture, wanted: Sequence[Instruction] | None = None) -> str:
    """The instructions of one architecture, or those of them that are wanted."""
    shown = architecture.instructions if wanted is None else wanted
    rows = [(i.name, f"{i.m}×{i.n}×{i.k}", i.spec.types, i.algorithm, brief_parameters(i)) for i in shown]
    head = ("instruction", "m×n×k", "types", "algorithm", "parameters")
    parts = [f"{architecture.name}: {architecture.gpus}", text_table(head, rows)]
    if wanted is None:
        parts += spellings(architecture)
    if architecture.exact:
        parts.append(_wrapped(architecture.exact_in_words, "", "  "))
    if wanted is None and architecture.revisions:
        parts.append(revisions([architecture]))
    return "\n\n".join(parts)


def spellings(architecture: Architecture) -> list[str]:
    """Return how instructions of an architecture may be spelled, where it has as many as there are arguments."""
    forms = getattr(architecture, "spellings", ())
    if not forms:
        return []
    head = _wrapped("Any of these is an INSTRUCTION; [what is in brackets] may be left out:", "")
    return ["\n".join([head, *(_wrapped(each, "  ", "      ") for each in forms)])]


def spelled_examples(architecture: Architecture) -> str:
    """Return `spellings` with examples, of an architecture that has any."""
    names = [f"  '{name}'" for name in architecture.keys()]  # noqa: SIM118 - an architecture iterates over instructions
    title = f"{architecture.name}: {architecture.gpus}"
    return "\n\n".join([title, *spellings(architecture), "\n".join(["for example:", *names])])


def matching(pattern: str, architectures: Iterable[Architecture] | None = None) -> list[Instruction]:
    """The instructions of all the architectures that a pattern means (`Architecture.find`).

    Raises UnknownInstructionError if there is none; the message has the nearest names.
    """
    searched = list(ARCHITECTURES.values() if architectures is None else architectures)
    found = [i for architecture in searched for i in architecture.find(pattern)]
    if found:
        return found
    names = {canonical_name(i.name): i.name for architecture in searched for i in architecture}
    near = difflib.get_close_matches(canonical_name(pattern), names, n=4, cutoff=0.5)
    hint = (
        f"nearest: {', '.join(names[each] for each in near)}" if near else "`mmaformal list` has all of them"
    )
    what = f"instruction on {searched[0].name}" if len(searched) == 1 else "architecture and no instruction"
    raise UnknownInstructionError(f"no {what} is called {pattern!r} or starts so; {hint}")


def matching_table(found: Sequence[Instruction]) -> str:
    """Instructions of several architectures."""
    rows = [(i.name, i.architecture, i.spec.types, i.algorithm, brief_parameters(i)) for i in found]
    return text_table(("instruction", "architecture", "types", "algorithm", "parameters"), rows)


def device_table() -> str:
    """The devices whose names stand for an architecture, with the source that says of what generation each is."""
    rows = [(each.architecture, ", ".join(each.names), each.source) for each in PRODUCTS]
    none = ", ".join(NOT_MODELLED)
    return "\n\n".join(
        [
            _wrapped(
                "Each name stands for the architecture beside it, in any case; words that drivers write around it "
                "(NVIDIA, SXM4, 80GB) are passed over. The models are of the devices that `mmaformal list ARCH` "
                "names; that others of their generation compute alike is taken, not measured.",
                "",
            ),
            text_table(("architecture", "devices", "source"), rows),
            _wrapped(f"not modelled: {none}", "", "  "),
        ]
    )


def devices_as_json() -> list[dict[str, object]]:
    """Return the devices of each architecture, with their source, as plain values."""
    return [{"architecture": x.architecture, "devices": list(x.names), "source": x.source} for x in PRODUCTS]


def every_instruction() -> list[Instruction]:
    """Return the instructions of all architectures and of the specified units."""
    return [i for name in (*ARCHITECTURES, *SPECIFIED_UNITS) for i in ARCHITECTURES[name]]


def _of_architectures(instructions: Sequence[Instruction]) -> str:
    """How many there are, and of which architectures."""
    architectures = ", ".join(dict.fromkeys(i.architecture for i in instructions))
    return f"{counted(len(instructions), 'instruction')} of {architectures}"


def sources_as_json() -> list[dict[str, object]]:
    """Return each source of parameters, its title, and how many instructions of which architectures rest on it."""
    resting = {name: [i for i, _ in resting_on(name, every_instruction())] for name in PAPERS}
    return [
        {
            "source": name,
            "title": PAPERS[name],
            "instructions": len(some),
            "architectures": list(dict.fromkeys(i.architecture for i in some)),
        }
        for name, some in resting.items()
    ]


def sources_table() -> str:
    """Each source of parameters, with how many instructions rest on it, and its title below."""
    lines = []
    for name, title in PAPERS.items():
        some = [i for i, _ in resting_on(name, every_instruction())]
        lines += [f"{name}: {_of_architectures(some) if some else 'none'}", _wrapped(title, "    ")]
    return "\n".join(lines)


def resting_as_json(name: str) -> list[dict[str, object]]:
    """Return the parameters that a source gives: of which instruction, their values, and where in it each stands."""
    return [
        {
            "instruction": i.name,
            "architecture": i.architecture,
            "parameters": {p: _value(i, p) for p in given},
            "where": {p: i.sources[p] for p in given},
            "evidence": None if (backed := backing(i)) is None else backed.text(),
        }
        for i, given in resting_on(name, every_instruction())
    ]


def _value(i: Instruction, parameter: str) -> str | None:
    """A parameter's value as it is spelled; None of what has a source and is no parameter."""
    return parameter_text(i.parameters[parameter], parameter) if parameter in i.parameters else None


def resting_table(name: str) -> str:
    """A source's title, and each parameter that it gives: where in it that stands, its values, and who has them."""
    groups: dict[str, dict[str, dict[str, list[Instruction]]]] = {}
    for i, given in resting_on(name, every_instruction()):
        for p in given:
            values = groups.setdefault(p, {}).setdefault(i.sources[p], {})
            values.setdefault(_value(i, p) or "", []).append(i)
    lines = [_wrapped(f"{name}: {PAPERS[name]}", "", "  ")]
    for p, places in groups.items():
        lines += ["", p]
        for where, values in places.items():
            lines.append(_wrapped(where, "  ", "    "))
            for value, some in values.items():
                lines.append(
                    _wrapped(f"{value}{': ' if value else ''}{_of_architectures(some)}", "    ", "      ")
                )
    return "\n".join(lines)


def revisions(architectures: Iterable[Architecture]) -> str:
    """The revisions that architectures have, by what they are called; those of one meaning on one line."""
    named: dict[str, list[str]] = {}
    for architecture in architectures:
        for revision in architecture.revisions.values():
            named.setdefault(revision.summary, []).append(f"{architecture.name}@{revision.name}")
    lines = ["revisions, other readings where sources differ (docs/semantics.md §9):"]
    for summary, names in named.items():
        lines.append(_wrapped(f"{', '.join(names)}: {summary}", "  ", "    "))
    return "\n".join(lines)


def _wrapped(text: str, first: str = "  ", others: str | None = None) -> str:
    """Text broken at 80 columns."""
    indent = first if others is None else others
    return textwrap.fill(
        text,
        80,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
        parts += _side_by_side(("instruction", *(a.name for a in architectures)), _collapsed(rows))
    parts.append(_wrapped(_LEGEND, ""))
    parts.append(_wrapped(_DEVICES, ""))
    parts.append(revisions(ARCHITECTURES.values()))
    return "\n\n".join(parts)


def brief_parameters(i: Instruction) -> str:
    """Its parameters, a long list among them by its beginning: `show` has all of it."""
    return re.sub(r"((?:\d+,){4})(?:\d+,)+\d+", r"\1…", i.parameters.describe()) + i.spec.signs


def _side_by_side(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """One table, or as many as it takes for all columns to fit, each with the first one."""
    width, start, tables = width_to_fit() or 1 << 30, 1, []
    while start < len(head):
        end = start + 1
        while end < len(head) and _width([head, *rows], [0, *range(start, end + 1)]) <= width:
            end += 1
        kept = [[row[0], *row[start:end]] for row in rows if any(cell != "–" for cell in row[start:end])]
        tables.append(text_table([head[0], *head[start:end]], kept))
        start = end
    return tables


def _width(rows: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    return sum(max(len(row[i]) for row in rows) + 2 for i in shown) - 2


_IN_BRIEF = ("F", "L", "G", "accumulator_bits")


def _brief(i: Instruction) -> str:
    return " ".join(f"{name}={i.parameters[name]}" for name in _IN_BRIEF if name in i.parameters.keys())  # noqa: SIM118


_LEGEND = (
    "f8type is e4m3 or e5m2, f8f6f4type any of e4m3, e5m2, e2m3, e3m2 and e2m1; where a row names some "
    "of these types, or has the shorter set, the row with the longer one is about the others. "
    "`mmaformal show ARCH NAME` tells what a name does; `mmaformal list ARCH` has the types."
)

_DEVICES = (
    "An architecture may be called by a device that has it (h100, 'RTX 4090', MI300X, graviton3, sm_80, gfx90a): "
    "`mmaformal list --devices` has the names, each with its source."
)


def _collapsed(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows that differ in their input types alone become one: `QMMA.16832.F32.f8type.f8type`."""
    every = {each.upper() for each in TYPE_SETS["f8f6f4type"]}
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for row in rows:
        stem = tuple("*" if part.upper() in every else part for part in row[0].split("."))
        groups.setdefault((stem, row[1:]), []).append(row[0])
    out: list[tuple[str, ...]] = []
    for (stem, cells), names in groups.items():
        used = {part.upper() for name in names for part in name.split(".") if part.upper() in every}
        label = next(
            (label for label, types in TYPE_SETS.items() if used == {x.upper() for x in types}), None
        )
        if len(names) == 1 or label is None:
            out.extend((name, *cells) for name in names)
            continue
        out.append((".".join(label if part == "*" else part for part in stem), *cells))
    return out


class ParameterInWords(NamedTuple):
    """A parameter with its value, what it means and where it is from."""

    name: str
    value: str
    meaning: str
    source: str


def parameters_in_words(i: Instruction) -> list[ParameterInWords]:
    """Each parameter of the instruction's algorithm."""
    told, p = [], i.parameters
    for name in p:
        is_ = p[name]
        value = _VALUES.get((name, is_), str(getattr(is_, "name", is_)))
        if isinstance(is_, tuple):
            value = ",".join(map(str, is_))
        source = i.sources.get(name, "no source recorded")
        told.append(ParameterInWords(name, value, _meaning(name, i), source))
    return told


def fields_in_words(i: Instruction) -> dict[str, str]:
    """Return what the instruction computes, how much it keeps and what stands behind that, by what each is called."""
    sum_ = i.spec.exact_sum.replace("a·b", "a_k·b_k")
    out = {
        "accumulator": "; ".join(accumulator.accumulator_in_words(i.spec)),
        "algorithm": f"{i.algorithm}: {i.parameters.summary}",
        "every element": f"d = {sum_} over {counted(i.k, 'product')}{_steps(i)}",
    }
    if i.spec.scale_format is not None:
        scales = f"one {i.spec.scale_format} scale of each side per {i.spec.scale_block} products"
        out["block scales"] = scales
    if (backed := backing(i)) is not None:
        out["evidence"] = backed.text()
    if i.depths:
        out["other K"] = f"{i.depths[0]} to {i.depths[-1]}, as configured: {i.name}.K{i.depths[0]}, …"
    if i.architecture in ARCHITECTURES:
        out["integers"] = ARCHITECTURES[i.architecture].exact_in_words
    return {name: text for name, text in out.items() if text}


def sources_cited(i: Instruction) -> dict[str, str]:
    """The titles of the papers that an instruction's sources name."""
    return {name: text for name, text in PAPERS.items() if any(name in each for each in i.sources.values())}


def instruction_in_words(i: Instruction) -> str:
    """Describe what the instruction computes, how much it keeps, and each parameter with its meaning and source."""
    k, p = i.k, i.parameters
    lines = [i.label]
    if i.aliases:
        lines.append(_wrapped(f"also called {', '.join(i.aliases)}"))
    lines.append(_wrapped(f"D = A·B + C: A {i.m}×{k}, B {k}×{i.n}, C and D {i.m}×{i.n}; {i.spec.types}"))
    for name, text in fields_in_words(i).items():
        lines.append(_wrapped(text, f"  {name + ':':<15}", " " * 17))
    lines.append("parameters:" if len(p) else "parameters: none of its own")
    lines += [
        _wrapped(f"{name}: [{text}]", "  ", "      ") for name, text in i.sources.items() if name not in p
    ]
    for each in parameters_in_words(i):
        lines.append(_wrapped(f"{each.name} = {each.value}: {each.meaning}", "  ", "      "))
        lines.append(_wrapped(f"[{each.source}]", "      "))
    if cited := sources_cited(i):
        lines += ["sources:", *(_wrapped(f"{name}: {text}", "  ", "      ") for name, text in cited.items())]
    return "\n".join(lines)


def as_json_object(i: Instruction) -> dict[str, object]:
    """Return the object that `--json` prints of an instruction."""
    out: dict[str, object] = {
        "name": i.name,
        "architecture": i.architecture,
        "aliases": list(i.aliases),
        "m": i.m,
        "n": i.n,
        "k": i.k,
        "a_format": str(i.a_format),
        "b_format": str(i.b_format),
        "c_format": str(i.c_format),
        "d_format": str(i.d_format),
        "algorithm": i.algorithm,
        "parameters": {
            name: plain_parameter(i.parameters[name])
            for name in i.parameters.keys()  # noqa: SIM118 - Parameters is no dict
        },
        "sources": dict(i.sources),
    }
    if i.spec.scale_format is not None:
        out |= {"scale_format": str(i.spec.scale_format), "scale_block": i.spec.scale_block}
    return out


def _steps(i: Instruction) -> str:
    step = i.parameters.step_products
    return (
        f", {counted(i.k // step, 'step')} of {step}, each step's d being the next one's c"
        if step < i.k
        else ""
    ) + (
        (f", products taken in the order {i.spec.product_order}" if i.spec.product_order else "")
        + (f", signs changed: {', '.join(i.spec.negated)}" if i.spec.negated else "")
        + ("" if i.spec.reads_c else ", c not read")
    )


#: How values read that say little by themselves.
_VALUES: dict[tuple[str, object], str] = {
    ("e_zero", None): "that of its fields",
    ("sum_bits", None): "not cut",
    ("operands", None): "as they are",
}

#: Meanings of parameters that are the same for all instructions.
_MEANINGS = {
    "L": "products that one step takes",
    "dot_bits": "fractional bits that the sum of the products keeps where c is added to it",
    "sum_bits": "fractional bits that their sum with c keeps, normalised, before ρ",
    "skip_zero_products": "whether products that are zero are left out where the largest exponent is looked for",
    "cut": "how those two are cut",
    "inputs_first": "whether an infinite input or c is the result before products that are too large are looked at",
    "c_reach": "places by which c may lie below the larger exponent and still count; one further below is dropped",
    "operands": "the type that a and b are converted to, exactly, before they are multiplied",
    "order": "in which the products are taken",
}


def _meaning(name: str, i: Instruction) -> str:
    p = i.parameters
    if name == "F":
        return f"fractional bits that a term keeps once aligned to the largest; below 2^(e − {p['F']}) all is lost"
    if name in p.meanings:
        return p.meanings[name]
    if name == "e_zero":
        if p["e_zero"] is None:
            return "the exponent with which a term that is zero takes part where the largest is looked for"
        return (
            "the exponent with which a term that is exactly zero takes part where the largest is looked for: a step "
            f"with one keeps nothing below 2^({p['e_zero']} − {p['F']})"
        )
    if name in ("rho", "addition"):
        rho = p[name]
        assert isinstance(rho, Conversion)
        what = "how the sum of a step" if name == "rho" else "how the last sum, that with c,"
        zero = "gives −0" if rho.signed_zero else "gives +0"
        return (
            f"(ρ) {what} becomes {rho.format}: rounded {rho.rounding.value}, to {rho.fraction_bits} fractional bits; "
            f"a negative sum that is rounded to zero {zero}"
        )
    return _MEANINGS[name]


def change_text(spec: DotAdd, change: tuple[str, object] | None) -> str:
    """Return what a change of a model is, after a comma; nothing where there is none."""
    if change is None:
        return ""
    name, value = change
    was = spec.product_order or "as numbered" if name == "product_order" else spec.parameters[name]
    return f", {name} = {parameter_text(value, name)}, not {parameter_text(was, name)}"


__getattr__ = renamed.names(__name__, table="text_table")
