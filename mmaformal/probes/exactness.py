"""Whether products are exact before they are added, and whether a sum has room for the carries of all its terms."""

from __future__ import annotations

from fractions import Fraction

from mmaformal.probes.box import Box, exact_code, power
from mmaformal.probes.special import Behaviour


def products_exact(box: Box) -> Behaviour:
    """(1 + ε)(1 + η) − (1 + ε + η) is εη, the last bit of the product."""
    t, case = box.types, "the last bit of a product"
    up = max(t.a.fraction_bits + t.b.fraction_bits + t.d.min_exponent, 0)
    x = (1 + power(-t.a.fraction_bits)) * power(up // 2)
    y = (1 + power(-t.b.fraction_bits)) * power(up - up // 2)
    last = power(up - t.a.fraction_bits - t.b.fraction_bits)
    a, b, c = exact_code(t.a, x), exact_code(t.b, y), exact_code(t.c, last - x * y)
    if a is None or b is None or c is None or exact_code(t.d, last) is None:
        return Behaviour(case, None)
    row = box.ask_codes([({0: (a, b)}, c)])[0]
    places = t.a.fraction_bits + t.b.fraction_bits
    does = "is kept" if box.number(row) == last else "is lost"
    return Behaviour(f"{case}, {places} places below its first, beside c", does, (row,))


def carries_seen(box: Box) -> Behaviour:
    """All terms 1, and all terms −1."""
    case, n = f"{box.k + 1} terms of 1", box.k + 1
    pair = [dict.fromkeys(range(n), Fraction(sign)) for sign in (1, -1)]
    rows = box.ask(pair)
    if exact_code(box.types.d, Fraction(n)) is None:
        return Behaviour(case, None, tuple(rows))
    right = [box.number(row) == sum(x.values()) for row, x in zip(rows, pair, strict=True)]
    if all(right):
        return Behaviour(case, f"sum to {n}: no carry is lost", tuple(rows))
    return Behaviour(case, f"give {box.types.d.text(rows[0].d)}: a carry is lost", tuple(rows))
