"""The table of docs/libraries.md, from what benchmarks/libraries.py kept.

python benchmarks/libraries.py --outputs 1000000 --json cases.json
python tools/docs/libraries_table.py cases.json            # rewrites the table in docs/libraries.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libraries.md"
START, END = "<!-- table -->", "<!-- end of the table -->"
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
    """What benchmarks/libraries.py keeps of a case, as far as the table tells it."""

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


def short(text: str) -> str:
    """A structure in fewer words: all chains are of fma, from +0."""
    for words, fewer in _WORDS:
        text = text.replace(words, fewer)
    return text


def rows(cases: list[KeptCase]) -> list[str]:
    """A row for each explained case, those of one structure together; then those not explained."""
    table = [
        "| library | type | M×K×N | structure | outputs | wrong |",
        "|---|---|---|---|---:|---:|",
    ]
    grouped: dict[tuple[str, str, str], list[KeptCase]] = {}
    for each in cases:
        if each["verdict"] == "explained":
            what = short(each["structure"])
            if each["regions"] > 1:
                what += f"; and {each['regions'] - 1} more, by regions of D"
            grouped.setdefault((f"{each['library']} {each['call']}", each["type"], what), []).append(each)
    for (library, type_, what), of in grouped.items():
        shapes = ", ".join(f"{x['M']}×{x['K']}×{x['N']}" for x in of)
        outputs, wrong = sum(x["outputs"] for x in of), sum(x["wrong"] for x in of)
        table.append(f"| {library} | {type_} | {shapes} | {what} | {outputs:,} | {wrong} |")
    left = [x for x in cases if x["verdict"] != "explained"]
    table += ["", f"Explained: {len(cases) - len(left)} of {len(cases)} products. Not explained:", ""]
    table += [
        f"- {x['library']} {x['call']}, {x['type']}, {x['M']}×{x['K']}×{x['N']}: {x['verdict']}"
        + (f"; the nearest: {short(x['structure'])}" if x["structure"] else "")
        for x in left
    ]
    return table


def main() -> None:
    """Rewrite the table."""
    cases = list(json.loads(Path(sys.argv[1]).read_text()).values())
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + START, "", *rows(cases), "", END + after]))


if __name__ == "__main__":
    main()
