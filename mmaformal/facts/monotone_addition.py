"""d grows with c where c is added last, by an addition of its own, to what does not depend on it: of gps, oddsum,
pfma, lowered and muladd.

The sum of c and the other summand is in units of the larger one's last place, with three places more; the next c gives
a sum that is not smaller, in the same units or in those of the next exponent, and rounding and flushing keep that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import z3

from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.out_of_order import not_below, two_runs
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import Operand, Rounded, Special, negate_if
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import Format
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import wide
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import ChainStep, Neighbours, OneStep, SameResult, conclude_steps, is_same


@dataclass(frozen=True)
class AdditionOfC:
    """The interfaces of an addition, and of what is done to its result."""

    big: Operand
    small: Operand
    special: Special
    total: z3.BitVecRef  #: a magnitude
    rounded: Rounded
    result: z3.BitVecRef

    @property
    def signed(self) -> z3.BitVecRef:
        return negate_if(self.big.sign, fit(self.total, self.total.size() + 1))


def addition_of_c(
    addition: Addition, after: Callable[[z3.BitVecRef], z3.BitVecRef] = lambda code: code
) -> AdditionOfC:
    x = addition
    return AdditionOfC(x.big, x.small, x.special, x.total, x.rounded, after(x.result))


def ieee_addition(
    rho: Conversion, nan: int, c_first: bool = True
) -> Callable[[z3.BitVecRef, z3.BitVecRef], AdditionOfC]:
    """Return the addition of c and another code, rounded with ρ, which has one NaN."""
    return lambda c, other: addition_of_c(ieee.add(*((c, other) if c_first else (other, c)), rho, nan))


@dataclass(frozen=True)
class MonotoneLastAddition:
    """A step that ends with the addition of c to `other`, any code of the format."""

    fmt: Format
    add: Callable[[z3.BitVecRef, z3.BitVecRef], AdditionOfC]  #: of c and the other

    @property
    def c(self) -> z3.BitVecRef:
        return z3.BitVec("c", self.fmt.storage_bits)

    @property
    def other(self) -> z3.BitVecRef:
        return z3.BitVec("other summand", self.fmt.storage_bits)

    @property
    def step(self) -> OneStep[AdditionOfC]:
        return OneStep(lambda c: self.add(c, self.other), self.c, self.fmt, self.fmt)

    def prove(self, theory: Theory) -> z3.BoolRef:
        """Prove that d grows with c, as `OneStep.prove` says.  Raises NotProvedError."""
        return self.step.prove(theory, self._in_order)

    def _in_order(self, proving: Composing, runs: Neighbours[AdditionOfC]) -> None:
        _prove_in_order(proving, runs, self.other)


def prove_in_c(
    theory: Theory,
    spec: DotAdd,
    add: Callable[[z3.BitVecRef, z3.BitVecRef], AdditionOfC],
    other: Callable[[AnyStep], z3.BitVecRef],
    *,
    flush: Callable[[z3.BitVecRef], z3.BitVecRef] | None = None,
    same: SameResult = is_same,
) -> None:
    """Prove `two_runs(spec).statement`: each step `add`s its c to what `other` gives of it.  Raises NotProvedError.

    The first step takes c as it is, or what `flush` makes of it; d is the `same` as the sum.
    """
    runs, last = two_runs(spec), MonotoneLastAddition(spec.d_format, add)
    theorem, start = last.prove(theory), runs.c
    if flush is not None:
        start = flush(runs.c[0]), flush(runs.c[1])
        claim = z3.Implies(not_below(runs.c, spec.c_format), not_below(start, spec.c_format))
        theory.claim("flush", "flushing keeps the order of numbers, and NaNs", claim)
    links: list[ChainStep] = [
        ([(last.other, other(x))], (x.result, y.result))
        for x, y in zip(runs.first.steps, runs.second.steps, strict=True)
    ]
    conclude_steps(theory, runs, last.step, theorem, start, links, same)


def _prove_in_order(proving: Composing, runs: Neighbours[AdditionOfC], other: z3.BitVecRef) -> None:
    x, y, sign = runs.small, runs.large, runs.sign
    E0, E1 = x.big.field, y.big.field
    ways = []
    for rise in (0, 1):
        way = z3.And(E0 + rise == E1, z3.ULE(E0, E1))
        bits = x.signed.size() + 1
        a, b = wide(x.signed, bits), wide(y.signed, bits) << rise
        sums = z3.And(way, runs.in_turn(a <= b, a >= b))
        ways.append(sums)
        text = f"sums in order are rounded in order, where the exponent is {rise} higher for the larger c"
        claim = z3.Implies(sums, runs.ordered)
        proving.claim(f"rounding, {rise}", text, claim, [z3.UGE(E0, 1)])
    proving.claim(
        "least exponent", "an exponent field is not 0: that of a subnormal number is 1", z3.UGE(E0, 1)
    )
    text = "the sum with the larger c is the larger, on the same grid or on the next"
    top = other.size() - 1
    over = z3.UGT(z3.Extract(top - 1, 0, other), runs.rule.magnitude)
    alike = z3.Extract(top, top, other) == sign
    cases = []
    for larger in (over, z3.Not(over)):
        for signs in (alike, z3.Not(alike)):
            claim = z3.Implies(z3.And(runs.none, larger, signs), z3.Or(ways))
            cases.append(proving.claim("sums of neighbours", text, claim, [runs.finite]))
    sums = z3.Implies(runs.none, z3.Or(ways))
    proving.claim("either is larger", text, sums, cases)
