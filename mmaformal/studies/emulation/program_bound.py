"""The bound of a whole product by a program over instructions, of any K, proved from its unit's and of its words.

`mmaformal bound emulation 'ootomo(hopper HMMA.16816.F32)' --k 4096` is the command.  `programs` states the bound:

    |d − (c + Σ a·b)| ≤ α · Σ w(a)·w(b) + β · w(c) + γ,     w(a) = max(|a|, 2^least),  w(c) = max(|c|, 2^−126),

where every factor's first word is finite and nothing overflows.  It rests on

- what a product on the unit is off, as `queries/bound` proves it of the unit itself;
- how much of a factor its words are, and how large they are (`words`);
- what products of words are off of the product, and how errors grow with each sum (`sums`);
- what scalings and additions in fp32 are off (`sums`, `facts/rounding_model`);
- that the program's terms are these sums, which is seen of the terms, and one rule: one sum follows the other.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.encodings.emulated import Part
from mmaformal.facts import rounding_model
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import ArgumentError, NotProvedError, by_rule, prove
from mmaformal.queries import bound
from mmaformal.queries.bound import rounded_up, theorem
from mmaformal.solver.answers import Answer, Holds, Number, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import Portfolio
from mmaformal.studies.emulation import sums, words
from mmaformal.studies.emulation.programs import Program
from mmaformal.witness import WitnessError


def of_program(
    instruction: Instruction,
    portfolio: Portfolio,
    K: int | None = None,
    *,
    least: int | None = None,
    timeout: float = 600.0,
) -> Answer:
    """Return `Holds` or `Unknown`: how far a product of K (of the instruction's own) is from the exact one, at most.

    `least`: another exponent than the program's own from which factors count as they are.  `timeout` in seconds.

    Raises ValueError for an instruction without such a bound (`Program.of`), NoSolverError if there is no solver.
    """
    program, k = Program.of(instruction, least), K or instruction.k
    bound.provable(program.unit.instruction)
    question = _question(program, k)
    asker = Asker(portfolio, checked_timeout(timeout))

    def settled() -> Answer:
        answer: Answer
        try:
            answer = _settle(question, program, k, asker)
        except (NotProvedError, UnsupportedError, ArgumentError) as error:
            answer = Unknown(question, str(error), tuple(asker.proved), asker.elapsed)
        if isinstance(answer, Holds):
            answer = of_both_encodings(answer, instruction, [instruction.spec], asker)
        return with_failure(answer, asker)

    return asker.within(question, settled)


def _question(program: Program, K: int) -> str:
    weights = [f"w({x}) = max(|{x}|, 2^{cut.least})" for x, cut in (("a", program.a), ("b", program.b))]
    where = "no sum is above the largest number"
    if program.parameters.rounding is not None:
        where = f"every factor's first word is a finite {program.a.format} and {where}"
    k = program.instruction.k
    padded = f", padded with zeros to {-(-K // k) * k}" if K % k else ""
    return (
        f"{program.instruction.label}, K = {K}{padded}: |d − (c + Σ a·b)| ≤ α · Σ w(a)·w(b) + β · w(c) + γ, "
        f"{', '.join(weights)}, w(c) = max(|c|, 2^{fp32.min_exponent}), where c is finite, {where}"
    )


def _settle(question: str, program: Program, K: int, asker: Asker) -> Holds | Unknown:
    p, unit = program.parameters, program.unit
    longest = max([p.unit.k, *(program.chain(part) for part in p.parts)])
    of_unit = bound.bound_from_terms(question, unit, StructureBound.of(unit.instruction, longest), asker)
    if not isinstance(of_unit, Holds):
        why = f"of its unit, {unit.instruction.label}: {of_unit.why}"
        return Unknown(question, why, of_unit.obligations, asker.elapsed)
    sums.check_flow_of_sums(program.instruction.spec)
    proofs = [of_unit.proof, *_of_words(program, asker)]
    proofs.append(theorem(sums.WordProducts(p, program.a, program.b).prove, asker))
    proofs += [_of_part(part, asker) for part in p.parts]
    proofs.append(theorem(sums.prove_together, asker))
    _check(program, min(program.programs(K), _EXACTLY))
    found = program.constants(K)
    numbers = (
        _number("α", found.alpha, "what d is off at most, relative to the weights of products"),
        _number("β", found.beta, "and relative to that of c"),
        _number("γ", found.gamma, "and what sums from zero and scalings add"),
        _number("ε", found.epsilon, "of that α, what products of words are off"),
        _number(
            "f", unit.factor(p.unit.k), "what the unit is off at most, relative to the weights of its terms"
        ),
    )
    rule = f"{sums.PROGRAM.name}: {sums.PROGRAM.statement}"
    return Holds(question, by_rule(rule, *proofs), asker.elapsed, numbers)


#: Programs in a row for which the constants are counted again; those of more are counted the same way.
_EXACTLY = 3


def _check(program: Program, programs: int) -> None:
    """Check that constants are those of the claims, counted from the first sum to the last.  Raises WitnessError."""
    p, unit = program.parameters, program.unit
    found = program.constants(programs * p.step_products)
    half_place, u = (
        Fraction(1, 1 << 150),
        Fraction(1, 1 << 24),
    )  # of `prove_scaling`, and of fl(x) = x·(1 + δ) + η

    def counted(where: tuple[int, int] | None, below: bool = False) -> Fraction:
        """G − σ where the weight 1 is that of a block of a program, or of c; or where there is none, with `below` that
        of what sums from zero, and scalings, add."""
        G = sigma = Fraction(where is None and not below)
        for n, part in product(range(programs), p.parts):
            each = part.every or 1
            for first in range(0, p.blocks, each):
                here = where is not None and where[0] == n and first <= where[1] < first + each
                for one in sums.operations_of_program(part):
                    P = sums.share(one, p, program.a, program.b) if here else Fraction(0)
                    off, more = (
                        (u, P * unit.factor(program.chain(part)))
                        if part.every
                        else (unit.factor(p.unit.k), P * 0)
                    )
                    if below and part.every:
                        least = Fraction(2) ** (fp32.min_exponent - part.shift)
                        more += unit.factor(program.chain(part)) * least + (half_place if part.shift else 0)
                    G, sigma = (1 + off) * (G + P + more), sigma + P
        return G - sigma

    blocks = max(counted(where) for where in product(range(programs), range(p.blocks)))
    for name, told, least in (
        ("α", found.alpha - found.epsilon, blocks),
        ("β", found.beta, counted(None)),
        ("γ", found.gamma, counted(None, below=True)),
        ("ε", found.epsilon, sums.lost(p, program.a, program.b)),
    ):
        if told < least:
            raise WitnessError(
                f"{program.instruction.label}: {name} = {float(told)} is less than the claims count"
            )


def _number(name: str, x: Fraction, meaning: str) -> Number:
    return Number(name, rounded_up(x), f"{meaning}; rounded up")


def _of_words(program: Program, asker: Asker) -> list[Proof]:
    """Prove what words leave of both factors."""
    p = program.parameters
    both = {(p.unit.a_format, program.a): None, (p.unit.b_format, program.b): None}
    claims = [partial(words.prove_words_of, p=p, fmt=fmt, cut=cut) for fmt, cut in both if cut.places]
    return [theorem(each, asker) for each in claims]


def _of_part(part: Part, asker: Asker) -> Proof:
    """How the errors of a part's sums make the total's grow."""
    if not part.every:
        return theorem(sums.prove_chain_of_sums, asker)
    proofs = [
        theorem(sums.prove_outside, asker),
        theorem(sums.prove_addition_outside, asker),
        prove(asker, rounding_model.argue_rounding(fp32)),
    ]
    if part.shift:
        proofs.append(theorem(partial(sums.prove_scaling, shift=part.shift), asker))
    return by_rule(f"{sums.PROGRAM.name}: {sums.PROGRAM.statement}", *proofs)
