"""Which codes a step can give, where it rounds one sum: that no finite input gives a NaN, and no input gives −0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import z3

from mmaformal.cases.codes import is_nan, magnitude
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.interfaces import AnyStep, RoundsOnce
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import ExponentRange, Operand
from mmaformal.facts.protocol import Facts
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd

RoundsOnceT = TypeVar("RoundsOnceT", bound=RoundsOnce)
StepT = TypeVar("StepT", bound=AnyStep)


def finite_operands(pairing: Pairing, step: object, assumed: dict[int, Link]) -> list[Link]:
    """Derive that decoded operands of finite codes are finite."""
    links: list[Link] = []
    for side in ("a", "b", "scale_a", "scale_b"):
        for x in _operands(step, side):
            flags = [flag for flag in (x.nan, x.infinite) if not z3.is_false(flag)]
            if not flags:
                continue
            codes = operand_codes(x)
            given = [assumed[code.get_id()] for code in codes]
            link = Link(z3.And([z3.Not(flag) for flag in flags]), tuple(flags))
            links += pairing.derive(
                "decode", "finite codes are decoded to finite operands", [link], given, codes
            )
    return links


def not_nan(
    pairing: Pairing,
    result: z3.BitVecRef,
    spec: DotAdd,
    given: Sequence[Link],
    text: str,
    inputs: Sequence[z3.ExprRef] = (),
) -> Link:
    link = Link(z3.Not(is_nan(result, spec.d_format)), (result,))
    return pairing.derive("encode", text, [link], given, inputs)[0]


def no_nan(pairing: Pairing, spec: DotAdd, step: RoundsOnce, assumed: dict[int, Link], c: Link) -> Link:
    finite = finite_operands(pairing, step, assumed)
    number = Link(z3.Not(step.c.nan), (step.c.nan,))
    pairing.derive("decode", "c is no NaN", [number], [c])
    special = Link(z3.Not(step.special.nan), (step.special.nan,))
    single = [x for side in ("a", "b") for x in _operands(step, side)]
    inputs = [term for x in (*single, step.c) for term in (x.sign, x.significand)] + [step.c.infinite]
    pairing.derive("classify", "nothing makes a NaN", [special], [*finite, number], inputs)
    inputs = [step.special.positive_infinity, step.special.negative_infinity, *step.rounded]
    return not_nan(pairing, step.result, spec, [special], "a rounded number is no NaN", inputs)


def _operands(step: object, side: str) -> Sequence[Operand]:
    found = getattr(step, side, ())
    return [found] if isinstance(found, Operand) else list(found)


def not_minus_zero(
    pairing: Pairing,
    spec: DotAdd,
    step: RoundsOnce,
    given: Sequence[Link] = (),
    inputs: Sequence[z3.ExprRef] = (),
) -> Link:
    """Derive that a result is not −0: of whatever is rounded, or of what the given links, if any, are about."""
    link = Link(step.result != spec.d_format.sign_mask, (step.result,))
    inputs = inputs if given else [*step.special, *step.rounded]
    text = "no nonzero sum is rounded to −0" if given else "no number is encoded as −0"
    return pairing.derive("round" if given else "encode", text, [link], given, inputs)[0]


def places_in(
    total: z3.BitVecRef, e_max: z3.BitVecRef, exponents: ExponentRange, F: int, spec: DotAdd
) -> Link:
    """Return the link that says that the last place of a sum at e_max, at least d's least exponent, is one of d; or
    the bits below are zero.

    And that the sum is not the least number of its width, whose magnitude would have one more bit.
    """
    d = spec.d_format
    enough = exponents.constant(d.min_exponent - d.fraction_bits + F)
    below = z3.Extract(F - d.fraction_bits - 1, 0, total)
    low = z3.And(z3.UGE(e_max, exponents.constant(d.min_exponent)), below == 0)
    fits = total != 1 << (total.size() - 1)
    return Link(z3.And(fits, z3.Or(z3.UGE(e_max, enough), low)), (e_max, total))


class RoundsOneSum(Facts[RoundsOnceT]):
    """Those of an algorithm whose steps decode operands, tell special values apart, and round one sum."""

    def no_nan(
        self,
        pairing: Pairing,
        spec: DotAdd,
        step: RoundsOnceT,
        assumed: dict[int, Link],
        c: Link,
        finite: Link,
    ) -> Link:
        return no_nan(pairing, spec, step, assumed, c)

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[RoundsOnceT], c: z3.BitVecRef
    ) -> Link:
        return not_minus_zero(pairing, spec, steps[-1])


def no_subnormals(
    of: Callable[[StepT], Sequence[z3.ExprRef]],
) -> Callable[[DotAdd], tuple[Pairing, int, str]]:
    """Return the argument that no result is the least subnormal number of fp32, since the last step flushes; its code;
    and what every result is.  `of` gives what a step's result is made of."""

    def argue(spec: DotAdd) -> tuple[Pairing, int, str]:
        pairing, x = Pairing(), symbolic_inputs(spec)
        step = smt.dot_add(spec, x.a, x.b, x.c).steps[-1]
        low = magnitude(step.result, fp32)
        link = Link(z3.Or(low == 0, z3.UGE(low, 1 << fp32.fraction_bits)), ())
        text = "no result is subnormal"
        pairing.derive("encode", text, [link], [], of(step))
        pairing.conclude(text, link)
        return pairing, 1, text

    return argue
