"""Where each rounding is of an exact sum: d grows with c, and with each product.

A step of sfma or efda is its exact sum, rounded once (`exact_steps`).  The rest of the argument is about ρ: whatever is
rounded to a number lies below what is rounded to a larger one, so ρ, by its definition, keeps the order of any two
numbers.  Infinities and NaNs keep it too, since what they decide is what they are.
"""

from __future__ import annotations

import z3

from mmaformal.algorithms import Conversion, DotAdd, Efda, Rounding, Sfma
from mmaformal.cases.descents import order
from mmaformal.encodings.smt import gps, ieee
from mmaformal.encodings.smt.blocks import quiet_nan
from mmaformal.facts.exact_steps import prove_step
from mmaformal.formats import fp32
from mmaformal.proof.definitions import at_least, is_rounded, last_index, read
from mmaformal.proof.proving import NotProvedError, Proving
from mmaformal.solver.answers import Answer, Holds, Unknown


def by_rounding(question: str, proving: Proving, spec: DotAdd) -> Answer:
    """sfma, efda: each step is its exact sum, correctly rounded, and that is monotone in what is summed."""
    try:
        prove_by_rounding(proving, spec)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, proving.asker.elapsed)
    return Holds(question, proving.proof(), proving.asker.elapsed)


def prove_by_rounding(proving: Proving, spec: DotAdd) -> None:
    """That a model of sfma or efda is monotone in c and in each product.  Raises NotProvedError."""
    p = spec.parameters
    assert isinstance(p, (Sfma, Efda))
    prove_grid(proving, p.rho)
    prove_step(proving, spec)


# ---- the grid ----------------------------------------------------------------------------------------------------


def prove_grid(proving: Proving, rho: Conversion) -> None:
    """That ρ, by its definition, keeps the order of any two numbers of one sign.  Raises NotProvedError.

    What is rounded to the index-th number lies between two bounds; the upper one is the lower one of the next index,
    and no number that is both is rounded to both.
    """
    match rho.rounding:
        case Rounding.RO:
            text = f"what {rho} rounds to an odd number is between even ones, which are themselves alone"
            raise NotProvedError(text, "unknown", "no argument for rounding to odd")
        case Rounding.RD | Rounding.RU:
            for negative in (False, True):
                away = negative is (rho.rounding is Rounding.RD)
                prove_grid_of_sign(proving, rho, None if away else Rounding.RZ, negative)
        case _:
            prove_grid_of_sign(proving, rho, rho.rounding, negative=False)
    prove_order(proving)


def prove_grid_of_sign(proving: Proving, rho: Conversion, rounding: Rounding | None, negative: bool) -> None:
    """`prove_grid` of numbers of one sign, whose magnitudes are rounded with `rounding`; None: away from zero."""
    fmt = rho.format
    bits, drop = fmt.exponent_bits + 6, fmt.fraction_bits - rho.fraction_bits
    last = last_index(rho)
    code = z3.BitVec("code", fmt.storage_bits)
    index = z3.Extract(fmt.storage_bits - 2, drop, code)
    m, t = z3.BitVec("m", rho.fraction_bits + 5), z3.BitVec("t", bits)
    lower, upper, q = bounds(index, bits, rho, rounding)
    even = z3.Extract(0, 0, index) == 0 if rounding is Rounding.RNE else z3.BoolVal(False)
    takes_upper = z3.BoolVal(True) if rounding is None else even
    below = z3.And(at_least(upper, q, m, t), z3.Or(takes_upper, z3.Not(at_least(m, t, upper, q))))
    above = at_least(m, t, lower, q)
    if rounding in (Rounding.RNE, None):
        above = z3.And(above, z3.Or(even, z3.Not(at_least(lower, q, m, t))))
    within = z3.And(z3.ULE(index, last), z3.Or(index == last, below), z3.Or(index == 0, above))
    rounded = is_rounded(m, t, code, rho, z3.BoolVal(negative))
    far = 1 << (fmt.exponent_bits + 3)
    text = f"what {rho} rounds to a number lies between its bounds"
    proving.claim(f"bounds of {rho}", text, z3.Implies(z3.And(rounded, t <= far, t >= -far), within))
    after = index + 1
    next_lower, _, next_q = bounds(after, bits, rho, rounding)
    follows = z3.And(at_least(next_lower, next_q, upper, q), at_least(upper, q, next_lower, next_q))
    text = "the bounds of one number end where those of the next begin, and not both take in that end"
    parity = z3.Extract(0, 0, index) != z3.Extract(0, 0, after)
    grows = z3.Or(index == 0, z3.Not(at_least(lower, q, upper, q)))
    proving.claim(f"grid of {rho}", text, z3.Implies(z3.ULT(index, last), z3.And(follows, parity, grows)))


def bounds(
    index: z3.BitVecRef, bits: int, rho: Conversion, rounding: Rounding | None
) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
    """(lower, upper, q): lower · 2^q and upper · 2^q enclose what is rounded to the index-th number."""
    significand, q = read(index, bits, rho)
    if rounding is Rounding.RZ:
        return significand, significand + 1, q
    keep = rho.fraction_bits
    field, fraction = z3.Extract(index.size() - 1, keep, index), z3.Extract(keep - 1, 0, index)
    down = z3.If(z3.And(z3.UGT(field, 1), fraction == 0), z3.BitVecVal(1, keep + 5), 2)
    if rounding is None:
        return 2 * significand - down, 2 * significand, q - 1
    return 4 * significand - down, 4 * significand + 2, q - 2


def prove_order(proving: Proving) -> None:
    """The conclusion, of numbers of which only the order matters: x ≤ y are not rounded to i > j.

    y is at most j's upper bound, x at least i's lower one, which is not below it; and where they are one number, i is
    the next of j, and either takes it in only if it is even.  Any four numbers are ordered as some four of 8.
    """
    x, y, upper, lower = z3.BitVecs("x y upper lower", 3)
    i_takes, j_takes = z3.Bools("i_takes j_takes")
    premises = z3.And(
        z3.ULE(x, y),
        z3.ULE(upper, lower),
        z3.Or(z3.ULT(y, upper), z3.And(y == upper, j_takes)),
        z3.Or(z3.ULT(lower, x), z3.And(lower == x, i_takes)),
        z3.Or(upper != lower, z3.Not(z3.And(i_takes, j_takes))),
    )
    text = "so of two numbers in order, the second is not rounded to less"
    proving.claim("composition", text, z3.Not(premises))


# ---- additions of their own --------------------------------------------------------------------------------------


def prove_special_addition(proving: Proving, rho: Conversion) -> None:
    """gps, lowered: the same of an addition; and flushing keeps the order."""
    fmt = rho.format
    x, y = z3.BitVecs("x y", fmt.storage_bits)
    code, infinity = ieee.add(x, y, rho, quiet_nan(fmt)).result, fmt.infinity
    magnitudes = [z3.Extract(fmt.storage_bits - 2, 0, v) for v in (x, y, code)]
    is_infinite = [m == infinity for m in magnitudes]
    nan = z3.UGT(magnitudes[2], infinity)
    proving.claim(
        "special values",
        "an infinite summand gives itself or a NaN, if the other is no NaN",
        z3.And(
            z3.Implies(is_infinite[0], z3.Or(nan, code == x)),
            z3.Implies(is_infinite[1], z3.Or(nan, code == y)),
        ),
        [z3.ULE(magnitudes[0], infinity), z3.ULE(magnitudes[1], infinity)],
    )
    if fmt == fp32:
        for keep in (False, True):
            flushed = [order(gps.flush(v, keep_sign=keep)) for v in (x, y)]
            text = "flushing keeps the order of numbers"
            proving.claim("flush", text, z3.Implies(order(x) <= order(y), flushed[0] <= flushed[1]))
