"""The order of codes, and two inputs in order whose results are not: the witness against monotonicity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, symbolic_inputs, with_products
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.run import run, run_both
from mmaformal.cases.shrink import shrink
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import Trace, negate_if
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

# ---- order ------------------------------------------------------------------------------------------------------


def order(code: z3.BitVecRef) -> z3.BitVecRef:
    """A number that orders the codes of an IEEE format as their values; both zeros are 0."""
    top = code.size() - 1
    return negate_if(z3.Extract(top, top, code), z3.ZeroExt(1, z3.Extract(top - 1, 0, code)))


def position(code: int, fmt: Format) -> int | None:
    """Return a number that orders codes as their values, as `order` does of terms; None for a NaN."""
    if fmt.is_nan(code):
        return None
    magnitude = code & (fmt.sign_mask - 1)
    return -magnitude if code & fmt.sign_mask else magnitude


def not_below(pair: tuple[z3.BitVecRef, z3.BitVecRef], fmt: Format) -> z3.BoolRef:
    """Say of a pair x and y that y is no smaller than x, or that one of them is a NaN."""
    x, y = pair
    return z3.Or(is_nan(x, fmt), is_nan(y, fmt), order(x) <= order(y))


@dataclass(frozen=True)
class TwoRuns:
    """Two runs of a model in the SMT encoding, the second with another c."""

    spec: DotAdd
    first: Trace[AnyStep]
    second: Trace[AnyStep]
    c: tuple[z3.BitVecRef, z3.BitVecRef]

    @property
    def statement(self) -> z3.BoolRef:
        """c ≤ c' ⇒ d ≤ d': if c' is not below c, then d' is not below d."""
        results = self.first.result, self.second.result
        return z3.Implies(not_below(self.c, self.spec.c_format), not_below(results, self.spec.d_format))


def two_runs(spec: DotAdd) -> TwoRuns:
    x = symbolic_inputs(spec)
    c = x.c, z3.BitVec("c'", x.c.size())
    first, second = (smt.dot_add(spec, x.a, x.b, code, x.scale_a, x.scale_b) for code in c)
    return TwoRuns(spec, first, second, c)


# ---- witnesses --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutOfOrder:
    """A failure of a property of the order of results: an input, and why."""

    witness: CaseWitness
    why: str


def is_out_of_order(instruction: Instruction, first: Codes, second: Codes) -> bool:
    """Whether the second result is the lesser one: a counterexample, where the inputs are in order."""
    x, y = (position(d, instruction.d_format) for d in run(instruction, [first, second]))
    return x is not None and y is not None and x > y


def shown_out_of_order(
    instruction: Instruction, first: Codes, second: Codes, what: str, minimality: tuple[str, ...]
) -> CaseWitness:
    """Two inputs in order whose results are not, `what` being larger in the second.

    Raises WitnessError unless both encodings give results out of order.
    """
    spec = instruction.spec
    runs = (
        Run("", spec, first, run_both(instruction, first)),
        Run(f"with {what}", spec, second, run_both(instruction, second)),
    )
    places = [position(each.result, spec.d_format) for each in runs]
    if places[0] is None or places[1] is None or places[0] <= places[1]:
        raise WitnessError(f"{instruction.label}: {first} and {second} were to give results out of order")
    return CaseWitness(instruction, runs, minimality=minimality)


def codes_of_number(value: Fraction, spec: DotAdd) -> tuple[int, int] | None:
    """Codes of a and b with a·b = value > 0, both normal and of exponents near each other; None if there are none."""
    numerator, denominator = value.numerator, value.denominator
    shift = -(denominator.bit_length() - 1)
    while numerator % 2 == 0:
        numerator, shift = numerator // 2, shift + 1
    for odd in sorted((d for d in range(1, numerator + 1, 2) if numerator % d == 0), reverse=True):
        half = shift // 2
        for e in sorted(range(half - 12, half + 13), key=lambda e: abs(e - half)):
            x, y = (
                normal_code(Fraction(n) * Fraction(2) ** at, fmt)
                for n, at, fmt in ((odd, e, spec.a_format), (numerator // odd, shift - e, spec.b_format))
            )
            if x is not None and y is not None:
                return x, y
    return None


def any_code(value: Fraction, fmt: Format) -> int | None:
    """The code of a number; None if the format does not have it."""
    try:
        return fmt.code(str(value))
    except ValueError:
        return None


def normal_code(value: Fraction, fmt: Format) -> int | None:
    """Return the code of a number; None if the format does not have it as a normal one."""
    code = any_code(value, fmt)
    return code if code is not None and fmt.fields(code)[1] else None


# ---- search -----------------------------------------------------------------------------------------------------

#: Cases that are tried, so many at once.
_TRIED, _BATCH = 3000, 200


def next_above(code: int, fmt: Format) -> int | None:
    """Return the code of the next number above a code's, or of infinity; None where there is none, or of a NaN."""
    place = position(code, fmt)
    if place is None:
        return None
    above = place + 1
    found = above if above >= 0 else fmt.sign_mask | -above
    return None if fmt.is_nan(found) or position(found, fmt) != above else found


def larger_c(spec: DotAdd, codes: Codes) -> Codes | None:
    """Return a case with the next larger c; None if there is none."""
    c = next_above(codes.c, spec.c_format)
    return None if c is None else replace(codes, c=c)


def larger_first_product(spec: DotAdd, codes: Codes) -> Codes | None:
    """Return a case whose first nonzero product is larger, by one place of a; None if there is none."""
    for k, (x, y) in enumerate(zip(codes.a, codes.b, strict=True)):
        if not position(x, spec.a_format) or not position(y, spec.b_format):
            continue
        opposite = spec.a_format.sign_mask if y & spec.b_format.sign_mask else 0
        a = next_above(x ^ opposite, spec.a_format)
        return None if a is None else with_products(codes, {k: (a ^ opposite, y)})
    return None


def search(
    instruction: Instruction, larger: Callable[[DotAdd, Codes], Codes | None], what: str, why: str
) -> OutOfOrder | None:
    """Look among cases at random for one whose result a `larger` input makes smaller, and make it smaller.

    None if there is none among them, which proves nothing.
    """
    spec = instruction.spec

    def shows(cases: Sequence[Codes]) -> list[bool]:
        pairs = [(each, larger(spec, each)) for each in cases]
        wanted = [(x, y) for x, y in pairs if y is not None]
        results = run(instruction, [each for pair in wanted for each in pair]) if wanted else []
        places = [position(d, spec.d_format) for d in results]
        lower = {
            x
            for (x, _), first, second in zip(wanted, places[::2], places[1::2], strict=True)
            if first is not None and second is not None and first > second
        }
        return [x in lower for x in cases]

    for start in range(0, _TRIED, _BATCH):
        cases = generate(spec, _BATCH, start, ["numbers"]).cases()
        found = next((x for x, so in zip(cases, shows(cases), strict=True) if so), None)
        if found is not None:
            least = shrink(spec, found, shows)
            above = larger(spec, least)
            assert above is not None
            minimal = ("made smaller step by step, not proved minimal",)
            return OutOfOrder(shown_out_of_order(instruction, least, above, what, minimal), why)
    return None
