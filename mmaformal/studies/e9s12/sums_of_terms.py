"""Proofs and refutations about the multi-addition of E9S12 halves: claims of `mmaformal e9s12` (docs/e9s12.md).

What is proved is proved of the SMT encoding (`sum_claims`) and rests on the equality of both
(`same_sums`); where a claim fails, the case is one that this file chooses, re-run in both encodings and judged
by exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import z3

from mmaformal.display import Summarised
from mmaformal.encodings.ma_e9s12 import smt as ma_e9s12
from mmaformal.formats import fp32
from mmaformal.lanes import LaneError
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import is_correct, is_faithful
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove, together
from mmaformal.rounding import IEEE_FP32
from mmaformal.shown_stages import code_text, number_text
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.studies.claims import Claim
from mmaformal.studies.e9s12.operators import OPERATORS, MultiAddition
from mmaformal.studies.e9s12.same_sums import argue_same_sums, constants_of_terms
from mmaformal.studies.e9s12.sum_claims import prove_near, prove_sum_rounded, prove_two, spread_of_sum
from mmaformal.witness import WitnessError

SettleSum = Callable[[MultiAddition, Asker], Answer]


@dataclass(frozen=True, repr=False)
class SumWitness(Summarised):
    """Terms whose sum is not as it should be."""

    operator: MultiAddition
    codes: tuple[int, ...]
    result: int  #: in both encodings

    @property
    def exact(self) -> Fraction:
        return sum((self.operator.fmt.value(code) for code in self.codes), Fraction(0))

    @property
    def summary(self) -> str:
        terms = ", ".join(code_text(code, self.operator.fmt) for code in self.codes if code)
        d = code_text(self.result, self.operator.rho.format)
        return f"{self.operator} of {terms} is {d}; exactly, {number_text(self.exact)}"

    def to_json(self) -> dict[str, object]:
        return {
            "operator": self.operator.name,
            "accumulator_bits": self.operator.accumulator_bits,
            "terms": [hex(code) for code in self.codes],
            "d": hex(self.result),
            "exact": str(self.exact),
        }


def run_both_sums(operator: MultiAddition, codes: Sequence[int]) -> int:
    """The code of the sum.  Raises WitnessError if the encodings disagree."""
    mine = int(operator(np.array(codes, operator.fmt.word)))
    bits, own = operator.fmt.storage_bits, (operator.fmt, operator.N, operator.accumulator_bits, operator.rho)
    terms = [z3.BitVecVal(code, bits) for code in codes]
    other = z3.simplify(ma_e9s12.multi_add(*own, terms).result).as_long()
    if mine != other:
        raise WitnessError(f"{operator}: {codes} give {mine:#x} and {other:#x} in the two encodings")
    return mine


# ---- what holds --------------------------------------------------------------------------------------------------


def _both(operator: MultiAddition, asker: Asker) -> Answer:
    try:
        return Holds(operator.name, prove(asker, argue_same_sums(operator)), asker.elapsed)
    except (LaneError, ArgumentError, NotProvedError) as error:
        return Unknown(operator.name, str(error), tuple(asker.proved), asker.elapsed)


def _holds(
    claims: Callable[[Composing, MultiAddition], z3.BoolRef],
    accumulator_bits: Callable[[MultiAddition], int] | None = None,
) -> SettleSum:
    def settle(operator: MultiAddition, asker: Asker) -> Answer:
        operator = (
            operator
            if accumulator_bits is None
            else replace(operator, accumulator_bits=accumulator_bits(operator))
        )
        equal, proving = _both(operator, asker), Composing(asker)
        if not isinstance(equal, Holds):
            return equal
        try:
            given = claims(proving, operator)
            _check_given(operator, given)
            proving.conclude_all(given)
        except NotProvedError as error:
            return Unknown(operator.name, str(error), proving.obligations, asker.elapsed)
        return Holds(operator.name, together(equal.proof, proving.proof()), asker.elapsed)

    return settle


def _check_given(operator: MultiAddition, given: z3.BoolRef) -> None:
    """Check that what is assumed of the terms holds of ones: nothing is proved of no terms.  Raises WitnessError."""
    one = z3.BitVecVal(operator.fmt.code("1"), operator.fmt.storage_bits)
    pairs = [(code, one) for code in constants_of_terms(operator)]
    if not z3.is_true(z3.simplify(z3.substitute(given, *pairs))):
        raise WitnessError(f"{operator}: what is assumed of the terms does not hold of ones")


# ---- what fails --------------------------------------------------------------------------------------------------


def _fails(
    case: Callable[[MultiAddition], Sequence[str]],
    why: str,
    judge: Callable[[int, Fraction], bool],
    accumulator_bits: Callable[[MultiAddition], int] | None = None,
) -> SettleSum:
    """Settle by a case whose result `judge` refuses, of the exact sum."""

    def settle(operator: MultiAddition, asker: Asker) -> Answer:
        changed = (
            operator
            if accumulator_bits is None
            else replace(operator, accumulator_bits=accumulator_bits(operator))
        )
        given = [operator.fmt.code(x) for x in case(changed)]
        codes = (*given, *[0] * (operator.D - len(given)))
        witness = SumWitness(changed, codes, run_both_sums(changed, codes))
        if judge(witness.result, witness.exact):
            raise WitnessError(f"{operator}: {codes} was to be a counterexample, and is none")
        return Fails(operator.name, witness, why, asker.elapsed)

    return settle


def correct(code: int, x: Fraction) -> bool:
    """Return whether a code is the number, rounded once to fp32."""
    return is_correct(code, x, IEEE_FP32)


def faithful(code: int, x: Fraction) -> bool:
    """Return whether a code is a neighbour of the number in fp32."""
    return is_faithful(code, x, IEEE_FP32)


def least_exact(operator: MultiAddition) -> int:
    """Return the least `accumulator_bits` that has all places of any terms of fp16."""
    fmt = operator.fmt
    return 2 + operator.carries + fmt.max_exponent - fmt.min_exponent + fmt.fraction_bits


def least_two(operator: MultiAddition) -> int:
    """The least `accumulator_bits` with which two fp32 terms are added as IEEE 754 has it: 48 fractional bits."""
    return 2 + operator.carries + 2 * (fp32.fraction_bits + 1)


def _last_place(operator: MultiAddition) -> list[str]:
    """The largest power of two, less itself, and the least number."""
    return ["0x1p+15", "-0x1p+15", "0x1p-24"]


def _farther(operator: MultiAddition) -> list[str]:
    """1 − 1 and a number whose last place is one below what is kept."""
    far, ones = spread_of_sum(operator) + 1, "0x1.000002p" if operator.fmt == fp32 else "0x1.02p"
    return ["1", "-1", f"{ones}-{far}"]


def _lost(operator: MultiAddition) -> list[str]:
    return ["1", "-1", f"0x1p-{operator.F + 1}"]


def _half_an_ulp(operator: MultiAddition) -> list[str]:
    """An odd number less what is nearly half its last place."""
    return ["0x1.000002p+0", "-0x1.fffffep-25"]


_FP32, _FP16, _BF16, _TWO = ("MA8.FP32",), ("MA16.FP16",), ("MA16.BF16",), ("MA2.FP32",)

SUMS: tuple[Claim[MultiAddition], ...] = (
    Claim("sum-encodings", "both encodings give the same code for all terms", tuple(OPERATORS), _both),
    Claim("sum-rounded", "d is the exact sum, rounded once", _FP16, _holds(prove_sum_rounded)),
    Claim(
        "sum-rounded-least",
        "so it is with L = 41 + log2 of the terms",
        _FP16,
        _holds(prove_sum_rounded, least_exact),
    ),
    Claim(
        "sum-rounded-narrower",
        "so it is with one bit less",
        _FP16,
        _fails(
            _last_place, "the last place of the least number is lost", correct, lambda x: least_exact(x) - 1
        ),
    ),
    Claim(
        "sum-near",
        "d is the exact sum, rounded once, where the exponents of terms that are not zero differ by at most F − 23 "
        "(of bf16 F − 7)",
        (*_FP32, *_BF16),
        _holds(prove_near),
    ),
    Claim(
        "sum-near-wider",
        "so it is where they differ by one more",
        (*_FP32, *_BF16),
        _fails(_farther, "the last place of the smallest term is lost", correct),
    ),
    Claim("sum-of-two", "d is the exact sum, rounded once, of all terms", _TWO, _holds(prove_two)),
    Claim(
        "sum-of-two-least",
        "so it is with L = 50 + log2 of the E9S12 terms",
        _TWO,
        _holds(prove_two, least_two),
    ),
    Claim(
        "sum-of-two-narrower",
        "so it is with one bit less",
        _TWO,
        _fails(
            _half_an_ulp,
            "what is rounded down is a tie, and was not",
            correct,
            lambda x: least_two(x) - 1,
        ),
    ),
    Claim(
        "sum-faithful",
        "d is a neighbour of the exact sum",
        (*_FP32, *_BF16),
        _fails(_lost, "what is shifted out is not there when the rest cancels", faithful),
    ),
)
