"""The table of docs/libraries.md, from what benchmarks/libraries.py kept.

python benchmarks/libraries.py --outputs 1000000 --json cases.json
python tools/docs/libraries_table.py cases.json            # rewrites the table in docs/libraries.md
python tools/docs/libraries_table.py --second cases.json …   # and that of the second machine

OPENBLAS_CORETYPE=Haswell python benchmarks/libraries.py --only NumPy --random 20 --outputs 20000 --json haswell.json
python tools/docs/libraries_table.py --random Haswell=haswell.json SkylakeX=…    # rewrites that of shapes at random

python benchmarks/library_integers.py --json integers.json
python tools/docs/libraries_table.py --integers integers.json                    # rewrites that of integers
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NotRequired, TypedDict

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libraries.md"
START, END = "<!-- table -->", "<!-- end of the table -->"
RANDOM, RANDOM_END = "<!-- at random -->", "<!-- end of those at random -->"
SECOND, SECOND_END = "<!-- second machine -->", "<!-- end of the second machine -->"
INTEGERS, INTEGERS_END = "<!-- integers -->", "<!-- end of the integers -->"
_WORDS = (
    (", each a chain of IEEE fma of bf16 × bf16 onto fp32, 1 at a time, from +0", ""),
    (", each a chain of IEEE fma of fp16 × fp16 onto fp32, 1 at a time, from +0", ""),
    (", each a chain of IEEE fma, 1 at a time, from +0", ""),
    (" of IEEE fma of bf16 × bf16 onto fp32", " of fma"),
    (" of IEEE fma of fp16 × fp16 onto fp32", " of fma"),
    (" of IEEE fma", " of fma"),
    (", 1 at a time, from +0", ""),
    (" (RNE)", ""),
)


class KeptCase(TypedDict):
    """A case as benchmarks/libraries.py keeps it, as far as the table tells it."""

    library: str
    call: str
    type: str
    M: int
    N: int
    K: int
    verdict: str
    structure: str
    regions: int
    outputs: int
    wrong: int
    threads: int
    multiplied: NotRequired[str]


def short(text: str) -> str:
    """A structure in fewer words: all chains are of fma, from +0."""
    for words, fewer in _WORDS:
        text = text.replace(words, fewer)
    return text


def rows(cases: list[KeptCase]) -> list[str]:
    """A row for each explained case, those of one structure together; then those not explained."""
    table = [
        "| library | type | M×K×N | threads | structure | outputs | wrong |",
        "|---|---|---|---|---|---:|---:|",
    ]
    threads: dict[tuple[str, ...], list[int]] = {}
    for each in cases:
        threads.setdefault((call_of(each), each["type"], shape_of(each), said_of(each)), []).append(
            each["threads"]
        )
    grouped: dict[tuple[str, ...], list[KeptCase]] = {}
    for each in cases:
        if each["verdict"] == "explained":
            number = threads[call_of(each), each["type"], shape_of(each), said_of(each)]
            key = (call_of(each), each["type"], ", ".join(map(str, sorted(number))), said_of(each))
            grouped.setdefault(key, []).append(each)
    for (call, type_, counts, what), of in grouped.items():
        shapes = ", ".join(dict.fromkeys(shape_of(x) for x in of))
        outputs, wrong = sum(x["outputs"] for x in of), sum(x["wrong"] for x in of)
        table.append(f"| {call} | {type_} | {shapes} | {counts} | {what} | {outputs:,} | {wrong} |")
    left = [x for x in cases if x["verdict"] != "explained"]
    outputs, wrong = (sum(x[name] for x in cases if x not in left) for name in ("outputs", "wrong"))
    said = f"{len(cases) - len(left)} of {len(cases)} products, {outputs:,} outputs replayed, {wrong} wrong."
    table += ["", f"Explained: {said} Not explained:", ""]
    table += [
        f"- {call_of(x)}, {x['type']}, {shape_of(x)}, threads {x['threads']}: {x['verdict']}"
        + (f"; the nearest: {short(x['structure'])}" if x["structure"] else "")
        for x in left
    ]
    return table


def call_of(case: KeptCase) -> str:
    """Return what was called."""
    return f"{case['library']} {case['call'].replace(',', ', ')}"


def shape_of(case: KeptCase) -> str:
    """Return the shape, as the table has it."""
    return f"{case['M']}×{case['K']}×{case['N']}"


def said_of(case: KeptCase) -> str:
    """Return the structure, where alpha is, and how many more there are."""
    what = short(case["structure"])
    if case["regions"] > 1:
        what += f"; and {case['regions'] - 1} more, by regions of D"
    return what + (f"; alpha times {case['multiplied']} first" if case.get("multiplied") else "")


def at_random(named: list[str]) -> list[str]:
    """A row for each name and type of NAME=FILE, all files of a name together; then what is not explained."""
    cases: dict[tuple[str, str], list[KeptCase]] = {}
    for each in named:
        name, _, file = each.partition("=")
        for case in json.loads(Path(file).read_text()).values():
            cases.setdefault((name, case["type"]), []).append(case)
    table = [
        "| kernels of | type | products | explained, replayed without a wrong bit | with | not explained | outputs |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    left = []
    for (name, type_), of in sorted(cases.items()):
        explained = [x for x in of if x["verdict"] == "explained"]
        wrong, outputs = sum(x["wrong"] > 0 for x in explained), sum(x["outputs"] for x in explained)
        counts = len(of), len(explained) - wrong, wrong, len(of) - len(explained)
        table.append(f"| {name} | {type_} | {' | '.join(map(str, counts))} | {outputs:,} |")
        left += [
            f"- {name}, {type_}, {x['M']}×{x['K']}×{x['N']}: "
            + (f"{x['wrong']} of {x['outputs']:,} wrong" if x["verdict"] == "explained" else x["verdict"])
            for x in of
            if x["verdict"] != "explained" or x["wrong"]
        ]
    return [*table, "", *left] if left else table


class KeptIntegers(TypedDict):
    """A call as benchmarks/library_integers.py keeps it."""

    library: str
    call: str
    a: str
    b: str
    result: str
    outputs: int
    wrong: int
    extreme: int
    extreme_wrong: int


def of_integers(calls: list[KeptIntegers]) -> list[str]:
    """A row for each call."""
    table = [
        "| library | factors | result | outputs | wrong | of the largest factors | wrong |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for x in calls:
        counts = f"{x['outputs']:,} | {x['wrong']:,} | {x['extreme']:,} | {x['extreme_wrong']:,}"
        table.append(f"| {x['library']} {x['call']} | {x['a']} × {x['b']} | {x['result']} | {counts} |")
    return table


def rewritten(text: str, start: str, end: str, table: list[str]) -> str:
    """The page with another table between two marks."""
    before, after = text.split(start)[0], text.split(end)[1]
    return before + start + "\n\n" + "\n".join(table) + "\n\n" + end + after


def main() -> None:
    """Rewrite a table."""
    if sys.argv[1] == "--random":
        page = rewritten(PAGE.read_text(), RANDOM, RANDOM_END, at_random(sys.argv[2:]))
    elif sys.argv[1] == "--integers":
        calls = json.loads(Path(sys.argv[2]).read_text())
        page = rewritten(PAGE.read_text(), INTEGERS, INTEGERS_END, of_integers(calls))
    elif sys.argv[1] == "--second":
        kept = [json.loads(Path(file).read_text()) for file in sys.argv[2:]]
        cases = list({name: case for each in kept for name, case in each.items()}.values())
        page = rewritten(PAGE.read_text(), SECOND, SECOND_END, rows(cases))
    else:
        cases = list(json.loads(Path(sys.argv[1]).read_text()).values())
        page = rewritten(PAGE.read_text(), START, END, rows(cases))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
