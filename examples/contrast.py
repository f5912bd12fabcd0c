"""One line of arithmetic on every matrix unit: which of them notice the small terms?

    a = [−2^13, −0.5, −0.25, −0.125],  b = [2^10, 1, 1, 1],  c = 2^23        exact: −0.875

The large product and c cancel; what is left depends on what the alignment kept of the small products, and how it was
rounded.  (MMA-Sim §VI has the idea; docs/semantics.md §3 the algorithms.)  Rows: input types, of those that hold
these numbers exactly and give fp32 or fp64.  Columns: architectures.  Where instructions of one architecture and
type differ, each result is followed by the K it is for; an instruction of one product is chained.  The last columns
are units that a text defines and nobody has run (docs/specified.md).

    python examples/contrast.py
"""

from __future__ import annotations

from mmaformal import ARCHITECTURES, Instruction
from mmaformal.architectures import SPECIFIED_UNITS
from mmaformal.listing import text_table

A, B, C = ("-8192", "-0.5", "-0.25", "-0.125"), ("1024", "1", "1", "1"), "8388608"


def result(i: Instruction) -> float | None:
    """d of the instruction on the line above, or None if it does not hold these numbers, has K = 2 or changes signs."""
    if i.spec.is_signed:
        return None
    i = i.chained(len(A)) if i.k == 1 else i
    if i.k < len(A) or i.spec.scale_format is not None:
        return None
    try:
        a = [i.a_format.code(x) for x in A]
        b = [i.b_format.code(x) for x in B]
        c = i.c_format.code(C)
    except ValueError:  # not a number of that format
        return None
    padding = [0] * (i.k - len(A))
    d = int(i.dot_add(a + padding, b + padding, c))
    return float(i.d_format.value(d))


def cell(instructions: list[Instruction]) -> str:
    """All results of one architecture and type: one number if they agree."""
    results: dict[float, list[int]] = {}
    for i in instructions:
        if (d := result(i)) is not None:
            results.setdefault(d, []).append(i.k)
    if not results:
        return "–"
    if len(results) == 1:
        return f"{next(iter(results)):g}"
    return ", ".join(f"{d:g} (K={'/'.join(map(str, sorted(set(ks))))})" for d, ks in results.items())


def main() -> None:
    rows: dict[str, dict[str, list[Instruction]]] = {}
    names = [*ARCHITECTURES, *SPECIFIED_UNITS]
    for architecture in (ARCHITECTURES[name] for name in names):
        for i in architecture:
            types = f"{i.a_format}×{i.b_format}" if i.a_format != i.b_format else str(i.a_format)
            types += " (lowered)" if i.name.startswith("mma.") else " (1k)" if i.name.endswith("_1k") else ""
            rows.setdefault(types, {}).setdefault(architecture.name, []).append(i)
    cells = [(types, *(cell(here.get(name, [])) for name in names)) for types, here in rows.items()]
    print("d = 2^23 − 2^13·2^10 − 0.5 − 0.25 − 0.125     (exact: -0.875)\n")
    print(text_table(("inputs", *names), [row for row in cells if set(row[1:]) != {"–"}]))


if __name__ == "__main__":
    main()
