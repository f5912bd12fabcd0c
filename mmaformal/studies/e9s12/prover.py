"""Proofs and refutations of what the paper says of the dot product-add of E9S12 halves: docs/e9s12.md.

    from mmaformal.studies.e9s12.prover import E9s12Prover
    with E9s12Prover() as prover:
        print(prover.prove("fma", "DP4A.FP32"))

`mmaformal e9s12` is the command.  What is proved is proved of the SMT encoding (`encodings/dpa_e9s12/proofs`), and
rests on the equality of both; where a claim fails, the case is one that this file chooses, re-run in both encodings and
judged by exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import z3

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact_of, shown_exact
from mmaformal.cases.run import run_both
from mmaformal.cases.witness import CaseWitness, Run
from mmaformal.display import Summarised
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12 import DpaE9s12, executable
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs.exact import prove_fma
from mmaformal.encodings.dpa_e9s12.proofs.exact_sums import OneFma
from mmaformal.encodings.dpa_e9s12.proofs.losses import places_kept, prove_losses
from mmaformal.encodings.executable.blocks import decode
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma.proofs import FmaSum
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.encodings.wfma import Wfma
from mmaformal.encodings.wfma.proofs.exact_sums import WideFmaSum
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.one_code import ModelPair, prove_one_code
from mmaformal.formats import Format, bf16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import NotProvedError, together
from mmaformal.proof.rules import Theory
from mmaformal.queries.rounding import CORRECT
from mmaformal.queries.verify import ProverOfMany
from mmaformal.rounding import IEEE_FP32
from mmaformal.shown_stages import code_text
from mmaformal.solver.answers import Answer, Fails, Holds, Number, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.spec import DotAdd
from mmaformal.studies.claims import Claim
from mmaformal.studies.e9s12.dot_claims import (
    prove_addition_of_products,
    prove_factor_halves,
    prove_single,
    spread,
)
from mmaformal.studies.e9s12.operators import OPERATORS
from mmaformal.studies.e9s12.short_fma import OneShortFma
from mmaformal.studies.e9s12.sums_of_terms import SUMS, correct, faithful
from mmaformal.witness import WitnessError

UNITS = ARCHITECTURES["e9s12"]
_16, _FP32 = ("DP4A.FP16", "DP16A.FP16"), ("DP1A.FP32", "DP4A.FP32")
_LOSSY = ("DP4A.BF16", "DP16A.BF16", "DP4A.FP32")

SettleProduct = Callable[[Instruction, Asker], Answer]
Prove = Callable[[Composing, DotAdd], z3.BoolRef]


@dataclass(frozen=True, repr=False)
class HalvesWitness(Summarised):
    """A code that is not the sum of its E9S12 numbers."""

    fmt: Format
    code: int
    parts: tuple[Fraction, ...]  #: what they are, in both encodings

    @property
    def summary(self) -> str:
        told = " + ".join(map(str, self.parts))
        return f"{code_text(self.code, self.fmt)} is cut into {told}, which is {sum(self.parts)}"

    def to_json(self) -> dict[str, object]:
        return {"format": str(self.fmt), "code": hex(self.code), "parts": [str(x) for x in self.parts]}


class E9s12Prover(ProverOfMany):
    """Proves one claim after another, of `CLAIMS` of instructions and `SUMS` of multi-additions."""

    def prove(self, claim: str, name: str, timeout: float = 600.0) -> Answer:
        """`Holds`, `Fails` or `Unknown`; `timeout` in seconds.  Raises ValueError for no claim, or not of this one."""
        products = {each.name: each for each in CLAIMS}
        sums = {each.name: each for each in SUMS}
        found = products.get(claim) or sums.get(claim)
        if found is None:
            raise ValueError(f"no claim {claim!r}; there are {', '.join((*products, *sums))}")
        if name not in found.of:
            raise ValueError(f"{claim} says nothing of {name!r}; of {', '.join(found.of)} it does")
        asker = Asker(self.portfolio, checked_timeout(timeout))
        question = f"{UNITS.name} {name}: {found.statement}"

        def settled() -> Answer:
            if claim in products:
                answer = products[claim].settle(UNITS[name], asker)
            else:
                answer = sums[claim].settle(OPERATORS[name], asker)
            assert isinstance(answer, (Holds, Fails, Unknown))
            return with_failure(replace(answer, question=question), asker)

        return asker.within(question, settled)


# ---- what holds --------------------------------------------------------------------------------------------------


def _holds(
    *proves: Prove, numbers: tuple[Number, ...] = (), accumulator_bits: int | None = None
) -> SettleProduct:
    """Settle by theorems about a step, all of them."""

    def settle(instruction: Instruction, asker: Asker) -> Answer:
        instruction = (
            instruction
            if accumulator_bits is None
            else instruction.replace(accumulator_bits=accumulator_bits)
        )
        proofs = []
        for prove in proves:
            proving = Composing(asker)
            try:
                proving.conclude_all(prove(proving, instruction.spec))
                proofs.append(proving.proof())
            except NotProvedError as error:
                known = (*(o for proof in proofs for o in proof.obligations), *proving.obligations)
                return Unknown(instruction.label, str(error), known, asker.elapsed)
        answer = Holds(instruction.label, together(*proofs), asker.elapsed, numbers)
        return of_both_encodings(answer, instruction, [instruction.spec], asker)

    return settle


def _fma_at(k: int) -> Prove:
    return lambda proving, spec: (prove_fma if spec.a_format == fp32 else prove_single)(proving, spec, k)


def _fma(instruction: Instruction, asker: Asker, accumulator_bits: int | None = None) -> Answer:
    places = range(instruction.spec.parameters.step_products)
    return _holds(*map(_fma_at, places), accumulator_bits=accumulator_bits)(instruction, asker)


#: IEEE 754's fusedMultiplyAdd, which shares nothing with the operator but the last stages.
FMA = DotAdd(1, fp32, fp32, fp32, fp32, Sfma(IEEE_FP32))
#: An fma of bf16 factors, converted exactly.
WIDE_FMA = DotAdd(1, bf16, bf16, fp32, fp32, Wfma(IEEE_FP32))


def _fma_code(instruction: Instruction, asker: Asker) -> Answer:
    """Prove for each place that the codes of the operator and of an fma are equal."""
    proofs: list[Proof] = []
    spec, long = instruction.spec, instruction.a_format == fp32
    for k in range(spec.parameters.step_products):
        one, theory = (OneFma if long else OneShortFma)(spec, k), Theory(asker)
        fma = FmaSum(FMA, one.inputs) if long else WideFmaSum(WIDE_FMA, one.inputs)
        try:
            prove_one_code(theory, ModelPair(one, fma))
        except NotProvedError as error:
            known = (*(o for proof in proofs for o in proof.obligations), *theory.obligations)
            return Unknown(instruction.label, str(error), known, asker.elapsed)
        proofs.append(theory.proof())
    answer = Holds(instruction.label, together(*proofs), asker.elapsed)
    return of_both_encodings(answer, instruction, [spec, FMA if long else WIDE_FMA], asker)


def _places(instruction: Instruction) -> int:
    """F: the places that the accumulator keeps below the largest exponent."""
    p = instruction.spec.parameters_as(DpaE9s12)
    return p.accumulator_bits - 3 - p.carries(instruction.spec)


def least_fma(instruction: Instruction) -> int:
    """The least L with which one product loses nothing: 46 fractional bits."""
    p = instruction.spec.parameters_as(DpaE9s12)
    return 3 + 46 + p.carries(instruction.spec)


def _least_fma(instruction: Instruction, asker: Asker) -> Answer:
    return _fma(instruction, asker, least_fma(instruction))


def _rounded(instruction: Instruction, asker: Asker) -> Answer:
    answer = CORRECT.settle(instruction, asker)
    if isinstance(answer, Holds):
        return of_both_encodings(answer, instruction, [instruction.spec], asker)
    return answer


def _errors(instruction: Instruction, asker: Asker) -> Answer:
    """Prove how far S is off at most, and show a case near that."""
    text = "units of 2^(E − F) that S is below the exact sum of products, at most"
    numbers = (Number("n", places_kept(instruction.spec).n, text),)
    return _holds(lambda proving, spec: prove_losses(proving, spec)[1], numbers=numbers)(instruction, asker)


# ---- what fails --------------------------------------------------------------------------------------------------


def _codes(instruction: Instruction, pairs: Sequence[tuple[str, str]], c: str) -> Codes:
    """A case from numbers; other products are of the codes 0."""
    k = instruction.k
    a = [instruction.a_format.code(x) for x, _ in pairs]
    b = [instruction.b_format.code(y) for _, y in pairs]
    return Codes((*a, *[0] * (k - len(a))), (*b, *[0] * (k - len(b))), instruction.c_format.code(c))


def _fails(
    case: Callable[[Instruction], Codes],
    why: str,
    judge: Callable[[int, Fraction], bool],
    change: Callable[[Instruction], Instruction] = lambda i: i,
    minimal: tuple[str, ...] = (),
) -> SettleProduct:
    """Settle by a case whose result `judge` refuses, of the exact sum."""

    def settle(instruction: Instruction, asker: Asker) -> Answer:
        changed = change(instruction)
        given = case(changed)
        witness = shown_exact(changed, given, (why,), minimal)
        x = exact_of(changed.spec, given)
        if x is None or judge(witness.results[0], x):
            raise WitnessError(f"{changed.label}: {given} was to be a counterexample, and is none")
        return Fails(instruction.label, witness, why, asker.elapsed)

    return settle


def _narrower(instruction: Instruction) -> Instruction:
    p = instruction.spec.parameters_as(DpaE9s12)
    return instruction.replace(accumulator_bits=p.accumulator_bits - 1)


def _narrow_fp16(instruction: Instruction) -> Codes:
    return _codes(instruction, [("0x1p+15", "0x1p+15"), ("0x1p-24", "0x1p-24")], "-0x1p+30")


def _one_odd_product(instruction: Instruction) -> Codes:
    """(1 + 2^−23)·(1 + 2^−23) less what fp32 has of it: 2^−46 is left."""
    return _codes(instruction, [("0x1.000002p+0", "0x1.000002p+0")], "-0x1.000004p+0")


def _two_products(instruction: Instruction) -> Codes:
    """1·1 − 1 and a product 2^−(F + 1), which is cut; 2^−F would not be."""
    far = _places(instruction) + 1
    return _codes(instruction, [("1", "1"), (f"0x1p-{far // 2}", f"0x1p-{far - far // 2}")], "-1")


def _tie_and_more(instruction: Instruction) -> Codes:
    """A product that is a tie in fp32, and one 2^−(F + 1) smaller, which decides it and is cut.

    A product of bf16 has 16 bits: it is a tie as half of the least subnormal number.
    """
    if instruction.a_format != fp32:
        least = fp32.min_exponent - fp32.fraction_bits - 1 - _places(instruction) - 1
        small = (f"0x1p{least // 2}", f"0x1p{least - least // 2}")
        return _codes(instruction, [("0x1p-75", "0x1p-75"), small], "0")
    far = _places(instruction) + 1
    tie, small = "0x1.001p+0", (f"0x1p-{far // 2}", f"0x1p-{far - far // 2}")
    return _codes(instruction, [(tie, tie), small], "0")


def _zero_beside(instruction: Instruction) -> Codes:
    return _codes(instruction, [("0", "0x1p+127"), ("0x1p-60", "0x1p-60")], "0")


def _as_printed(instruction: Instruction, asker: Asker) -> Answer:
    """The least subnormal number, by the paper's exponent of subnormal factors; in both encodings."""
    fmt, code = instruction.a_format, 1
    mine = executable.unpack(decode(code, fmt.layout), fmt, subnormal=0)
    other = smt_dpa.unpack(smt_blocks.decode(z3.BitVecVal(code, fmt.storage_bits), fmt), fmt, subnormal=0)
    place = executable.BIAS + executable.FRACTION
    parts = [Fraction(int(x.significand)) * Fraction(2) ** (int(x.exponent) - place) for x in mine]
    again = [
        Fraction(z3.simplify(x.significand).as_long())
        * Fraction(2) ** (z3.simplify(x.exponent).as_long() - place)
        for x in other
    ]
    if parts != again or sum(parts) == fmt.value(code):
        raise WitnessError(f"{fmt.text(code)} was to be cut wrongly in both encodings")
    why = "with the exponent field 0 for subnormal factors, they are halved; it is 1"
    return Fails(instruction.label, HalvesWitness(fmt, code, tuple(parts)), why, asker.elapsed)


def _sign_of_zero(instruction: Instruction, asker: Asker) -> Answer:
    """−0·1 − 0 beside products that are +0."""
    i, minus = instruction, 0x80000000
    given = Codes((minus, *[0] * (i.k - 1)), (fp32.code("1"), *[0] * (i.k - 1)), minus)
    fma = replace(i, name="fma", spec=FMA)
    alone = Codes(given.a[:1], given.b[:1], minus)
    runs = (
        Run("the operator, beside products that are +0", i.spec, given, run_both(i, given)),
        Run("fma of the one product", fma.spec, alone, run_both(fma, alone)),
    )
    if runs[0].result == runs[1].result:
        raise WitnessError("the sign of zero was to be another")
    why = "the sum of zeros of both signs is +0; the fma of −0·1 and −0 is −0 (with −0 in the other places, so is this)"
    return Fails(i.label, CaseWitness(i, runs, None, (why,)), why, asker.elapsed)


# ---- the looped accumulator --------------------------------------------------------------------------------------


def _looped(instruction: Instruction) -> Instruction:
    """The variant of §IV-D, of as many fractional bits: L more by what c's two numbers need."""
    p, spec = instruction.spec.parameters_as(DpaE9s12), instruction.spec
    own = AccE9s12(p.N, p.N, p.accumulator_bits, p.rho)
    accumulator_bits = p.accumulator_bits - p.carries(spec) + own.carries(spec)
    short = AccE9s12(p.N, p.N, min(accumulator_bits, 85), p.rho)
    return replace(instruction, name=f"{instruction.name}[looped]", spec=replace(spec, parameters=short))


def _looped_fma(instruction: Instruction) -> Codes:
    """(1 + 2^−12)² is a tie; c decides it, and is cut."""
    return _codes(instruction, [("0x1.001p+0", "0x1.001p+0")], "0x1p-100")


def _large_c(instruction: Instruction) -> Codes:
    """A product that is half of c's last place, and another one, which decides and is cut."""
    return _codes(instruction, [("0x1p+8", "0x1p+8"), ("0x1p-24", "0x1p-24")], "0x1p+40")


def _small_c(instruction: Instruction) -> Codes:
    """1·1 − 1·1 beside the least c."""
    return _codes(instruction, [("1", "1"), ("-1", "1")], "0x1p-149")


# ---- sums of numbers ---------------------------------------------------------------------------------------------


def _terms(instruction: Instruction) -> Codes:
    """1 − 1 + 2^−(D + 1) · (1 + 2^−23), all times 1."""
    far = spread(instruction.spec) + 1
    one = "1"
    return _codes(instruction, [("1", one), ("-1", one), (f"0x1.000002p-{far}", one)], "0")


# ---- the bound of errors -----------------------------------------------------------------------------------------


def _most_lost(instruction: Instruction) -> Codes:
    """1·1 − 1 beside products that are negative and as small as can be: each is rounded down to −1 unit."""
    least = "0x1.001p-137" if instruction.a_format == fp32 else "0x1p-133"  # fp32: neither half is zero
    return _codes(instruction, [("1", "1"), *[(f"-{least}", least)] * (instruction.k - 1)], "-1")


def _off_by_less(code: int, x: Fraction) -> bool:
    """Whether d is less than 12 − 2^−100 (of 4 products 3 − 2^−100) units of 2^−78 from x."""
    units = abs(fp32.value(code) - x) * 2**78
    return units < round(units) - Fraction(1, 2**100)


# ---- all of them -------------------------------------------------------------------------------------------------


def _at(accumulator_bits: Callable[[Instruction], int]) -> Callable[[Instruction], Instruction]:
    return lambda i: i.replace(accumulator_bits=accumulator_bits(i))


def _undetected(instruction: Instruction) -> Instruction:
    return instruction.replace(detects_zeros=False)


_HALVES = ("DP4A.FP16", "DP4A.BF16", "DP1A.FP32")
_ONE = ("two products are the fewest: of one, d is rounded once (claim fma)",)
_NO_C = (*_ONE, "c is 0")

CLAIMS: tuple[Claim[Instruction], ...] = (
    Claim(
        "halves",
        "every factor is the sum of its E9S12 numbers, and zeros are told",
        _HALVES,
        _holds(prove_factor_halves),
    ),
    Claim(
        "halves-as-printed", "so it is if subnormal factors have the exponent field 0", _HALVES, _as_printed
    ),
    Claim("fp16-rounded", "d is the exact c + Σ a·b, rounded once", _16, _rounded),
    Claim(
        "fp16-narrower",
        "d is the exact c + Σ a·b, rounded once, with L − 1",
        _16,
        _fails(_narrow_fp16, "the last place of the least product is lost", correct, _narrower),
    ),
    Claim(
        "fma", "where all products but one are zero, d is U·V + c, rounded once", (*_FP32, *_LOSSY[:2]), _fma
    ),
    Claim(
        "fma-code",
        "where all products but one are zero, of numbers, d is the code that sfma gives of U, V and c (wfma, of bf16), "
        "special values included, unless U·V and c are −0, and another product is +0",
        (*_FP32, *_LOSSY[:2]),
        _fma_code,
    ),
    Claim("fma-least", "so it is with L = 49 + log2 of the E9S12 products", _FP32, _least_fma),
    Claim(
        "fma-narrower",
        "so it is with one bit less",
        _FP32,
        _fails(
            _one_odd_product, "the product of 48 bits loses one", correct, _at(lambda i: least_fma(i) - 1)
        ),
    ),
    Claim(
        "fma-49",
        "so it is with L = 49, of which log2 of the E9S12 products are carries",
        _FP32,
        _fails(
            _one_odd_product,
            "so counted, 48 bits and a sign are not left; §IV-C's L > 48 counts no carries, and is right: the products"
            " of one pair's halves need none (fma-least, accumulator-width)",
            correct,
            _at(lambda i: 49),
        ),
    ),
    Claim(
        "fma-undetected",
        "so it is if zeros are not told",
        _FP32[1:],
        _fails(_zero_beside, "a zero beside a large factor has the largest exponent", correct, _undetected),
    ),
    Claim(
        "fma-sign",
        "so it is, the sign of zero included, if the other products are +0",
        _FP32[1:],
        _sign_of_zero,
    ),
    Claim(
        "rounded",
        "d is the exact c + Σ a·b, rounded once",
        _LOSSY,
        _fails(_tie_and_more, "what is shifted out would decide a tie", correct, minimal=_NO_C),
    ),
    Claim(
        "faithful",
        "d is a neighbour of the exact c + Σ a·b",
        _LOSSY,
        _fails(
            _two_products, "what is shifted out is not there when the rest cancels", faithful, minimal=_ONE
        ),
    ),
    Claim(
        "error",
        "d is S + c, rounded once, and S at most n · 2^(E − F) below the exact sum of products",
        _LOSSY,
        _errors,
    ),
    Claim(
        "error-less",
        "S is less than (n − 2^−100) · 2^(E − F) below the exact sum",
        _LOSSY,
        _fails(_most_lost, "each product but those of the largest loses nearly 1", _off_by_less),
    ),
    Claim(
        "looped-fma",
        "with the looped accumulator, d is U·V + c, rounded once, where all products but one are zero",
        _FP32[:1],
        _fails(_looped_fma, "c is cut to the accumulator's last place", correct, _looped),
    ),
    Claim(
        "looped-large-c",
        "with the looped accumulator, fp16 products and c are added exactly and rounded once",
        _16[:1],
        _fails(_large_c, "beside a large c, products are cut", correct, _looped),
    ),
    Claim(
        "looped-small-c",
        "with the looped accumulator, d is a neighbour of the exact sum",
        _16[:1],
        _fails(_small_c, "beside larger products, c is cut", faithful, _looped),
    ),
    Claim(
        "addition",
        "fp32 numbers, times 1, whose exponents differ by at most F − 23 are added exactly and rounded once",
        _FP32[1:],
        _holds(prove_addition_of_products),
    ),
    Claim(
        "addition-wider",
        "so are numbers whose exponents differ by one more",
        _FP32[1:],
        _fails(_terms, "the last place of the smallest is lost", correct),
    ),
)
