"""The bound of a whole product on an instruction, of any K, proved from its steps.

    from mmaformal.queries.bound import bound
    print(bound(hopper["HMMA.16816.F32"], 4096))
    print(bound(Structure(hopper["HMMA.16816.F32.BF16"], block=128, d_format=bf16), 4096))

`mmaformal bound` is the command.  `analysis/units` states the bound: ((1 + U)^m − 1) · (w(c) + Σ w(a)·w(b)) after m
steps, w(x) = max(|x|, the least normal number), where nothing overflows.  It rests on

- what a step's sum is off, `error_bound`, whose n is `analysis/units`', and that d is that sum rounded;
- what rounding is off, of ρ's format (`facts/rounding_model`);
- that 2^e_max is at most the weights of some term, and that errors grow as (1 + U) says (`facts/product_bound`);
- one rule: steps follow each other.

Of a structure, `analysis/structure_bounds` states it, and what is proved of totals and of the last rounding comes
besides.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.analysis.units import SumStage, Unit
from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.facts import product_bound, rounding_model
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import FORMATS, Format, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import NotProvedError, by_rule, prove
from mmaformal.queries import error_bound
from mmaformal.renamed import keywords, names
from mmaformal.rounding import Conversion, Rounding
from mmaformal.solver.answers import Answer, Holds, Number, Proof, Unknown
from mmaformal.solver.asking import Asker, watching
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Portfolio
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.structures import Structure
from mmaformal.witness import WitnessError


@keywords(K="k", backends="solver")
def bound(
    instruction: Instruction | Structure | str,
    k: int | None = None,
    *,
    promote_every: int | None = None,
    d_format: str | Format | None = None,
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove how far a product of k products (default: as many as the instruction has) is from the exact one, at most.

    Returns `Holds`, whose `.number` is the bound, or `Unknown`.  `promote_every`: as `matmul` has it, of results of
    fp32; or a `Structure` stands for the instruction.  `d_format`: what d is rounded to in the end, to nearest even
    (default: as it is).  `timeout` in seconds, `memory` in megabytes for each process of `solver` (default: all that
    are installed); `progress` is called with a line of text for each question; `cache`: as `prove` has it.

    Raises ValueError for an instruction without such a bound (`Unit.of`), NoSolverError if there is no solver.
    """
    caller(progress)
    what = instruction if isinstance(instruction, Structure) else instruction_meant(instruction)
    fmt = FORMATS[d_format] if isinstance(d_format, str) else d_format
    with session(solver, memory, cache) as portfolio, watching(progress):
        return of_instruction(what, portfolio, k, promote_every=promote_every, d_format=fmt, timeout=timeout)


def of_instruction(
    what: Instruction | Structure,
    portfolio: Portfolio,
    K: int | None = None,
    *,
    promote_every: int | None = None,
    d_format: Format | None = None,
    timeout: float = 600.0,
) -> Answer:
    """Returns what `bound` does, from solvers that are there."""
    instruction = what.instruction if isinstance(what, Structure) else what
    # The bound is of sums over all products, so the order in which they are taken does not enter.
    unit, k = provable(replace(instruction, spec=instruction.spec.in_order)), K or instruction.k
    spec = instruction.spec
    if promote_every is not None and (promote_every < 1 or spec.d_format != fp32):
        raise ValueError(f"{instruction.label}: promoted every n ≥ 1 instructions, of results of fp32")
    stated = StructureBound.of(what, k, promote_every=promote_every, d_format=d_format)
    promoted = f" promoted every {promote_every} instructions" if promote_every else ""
    promoted = f", {what}" if isinstance(what, Structure) else promoted
    weights = "w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number)"
    if stated.sums > 1 or promote_every:
        weights += ", once more for each sum"
    last = ""
    if stated.narrowed is not None:
        last = f" + u · max(|c + Σ a·b| + f · σ, 2^{stated.narrowed.min_exponent})"
    question = (
        f"{instruction.label}, K = {k}{promoted}: |d − (c + Σ a·b)| ≤ f · σ{last}, σ = {weights}, "
        f"{where_finite(instruction)}"
    )
    asker = Asker(portfolio, checked_timeout(timeout))

    def settled() -> Answer:
        answer: Answer
        try:
            answer = bound_from_terms(question, unit, stated, asker)
            if isinstance(answer, Holds) and spec.product_order:
                answer = replace(answer, proof=by_rule(_ORDER, answer.proof))
        except (NotProvedError, UnsupportedError) as error:
            answer = Unknown(question, str(error), tuple(asker.proved), asker.elapsed)
        if isinstance(answer, Holds):
            answer = of_both_encodings(answer, instruction, [spec], asker)
        return with_failure(answer, asker)

    return asker.within(question, settled)


_ORDER = (
    "order of products: a model that takes products in another order is, by its definition, the one that takes them as "
    "they are numbered, of products that are numbered so; |d − (c + Σ a·b)| and σ are the same in either numbering"
)


def where_finite(*instructions: Instruction) -> str:
    """Return for which inputs a bound is claimed, in words: nothing that is rounded overflows."""
    rounded = any(i.spec.parameters.product_rounding is not None for i in instructions)
    return f"where no step's {'product or ' if rounded else ''}sum is above the largest number"


def provable(instruction: Instruction) -> Unit:
    """Raises ValueError for an instruction of which no bound is proved."""
    unit = Unit.of(instruction)
    if unit.flushing is not None:
        raise ValueError(
            f"{instruction.label} takes subnormal numbers for zero: its bound is argued, not proved"
        )
    of_product = instruction.spec.parameters.product_rounding
    for rho in (*(stage.rho for stage in unit.stages), *([of_product] if of_product else [])):
        if rho.rounding not in (Rounding.RNE, Rounding.RZ, Rounding.RO):
            raise ValueError(
                f"{instruction.label}: {rho} is neither to nearest even, nor toward zero, nor to odd"
            )
    return unit


def bound_from_terms(question: str, unit: Unit, error: StructureBound, asker: Asker) -> Holds | Unknown:
    """The answer of the SMT encoding's terms.  Raises NotProvedError."""
    step = error_bound.settle_step_error(unit.instruction, asker)
    if not isinstance(step, Holds):
        assert isinstance(step, Unknown)
        return Unknown(question, f"of a step: {step.why}", step.obligations, asker.elapsed)
    most = max(Fraction(x.value) for x in step.numbers)
    _check(unit, most, error.K)
    proofs = [step.proof, *(prove_rounding_model(stage.rho, asker) for stage in unit.stages)]
    spec = unit.instruction.spec
    if (of_product := spec.parameters.product_rounding) is not None:
        proofs.append(
            prove_rounding_model(of_product, asker)
        )  # of a product p, at most w(a)·w(b): top is |p|, or `least`
    elif unit.stages[0].n:
        inner = spec.parameters.made_of(spec) or spec
        proofs.append(theorem(lambda proving: product_bound.prove_largest_exponent(proving, inner), asker))
    proofs.append(theorem(product_bound.prove_growth, asker))
    if spec.parameters.made_of(spec) is not None:
        proofs.append(theorem(product_bound.prove_join, asker))
    if error.structure is not None:
        proofs += [
            theorem(product_bound.prove_beside, asker),
            prove(asker, rounding_model.argue_rounding(error.total)),
        ]
    numbers = [
        Number("f", rounded_up(error.f), "what d is off at most, relative to all terms' weights; rounded up")
    ]
    if (fmt := error.narrowed) is not None:
        proofs += [
            theorem(product_bound.prove_narrowed, asker),
            prove(asker, rounding_model.argue_rounding(fmt)),
        ]
        numbers.append(Number("u", error.u, f"of the last rounding, to nearest in {fmt}"))
    for i, stage in enumerate(unit.stages, 1):
        name = f"U_{i}" if len(unit.stages) > 1 else "U"
        numbers.append(Number(name, rounded_up(stage.U), _meaning(stage)))
    return Holds(question, by_rule(_text(), *proofs), asker.elapsed, tuple(numbers))


def _check(unit: Unit, n: Fraction, K: int) -> None:
    """Check that `analysis/units` speaks of the steps of which n is proved, and takes no root.  Raises WitnessError."""
    spec, p, label = unit.instruction.spec, unit.instruction.spec.parameters, unit.instruction.label
    steps = spec.k // p.step_products
    proved = [(n, p.kept_places(spec) if n else 0, p.last_rounding, steps)]
    if (of_product := p.product_rounding) is not None:
        # Beside what is proved to be exact, each product is off by one unit at most, of a normal number's last place,
        # or half of that (`rounding_model`).
        places = of_product.fraction_bits + product_bound.is_nearest(of_product)
        proved = [(n + 1, places, p.last_rounding, steps)]
    if (inner := p.made_of(spec)) is not None:
        own, F = inner.parameters, p.kept_places(spec)
        inner_steps = steps * inner.k // own.step_products
        proved = [(n, F, own.last_rounding, inner_steps), (Fraction(0), F, p.last_rounding, steps)]
    told = [
        (stage.n, stage.F if stage.n else 0, stage.rho, spec.k // stage.products if stage.products else steps)
        for stage in unit.stages
    ]
    proved = [(n, F if n else 0, rho, count) for n, F, rho, count in proved]
    for mine, other in zip(proved, told, strict=True):
        if mine[0] > other[0]:
            raise WitnessError(f"{label}: the proved n is {mine[0]}, not {other[0]}")
        if mine[1:] != other[1:]:
            raise WitnessError(f"{label}: the proved steps are {mine}, not {other}")
    instructions = max(-(-K // spec.k), 1)
    exact = Fraction(1)
    for (_, _, _, count), stage in zip(proved, unit.stages, strict=True):
        exact *= (1 + stage.U) ** (count * min(instructions, _EXACTLY))
    if unit.factor(min(instructions, _EXACTLY) * spec.k) < exact - 1:
        raise WitnessError(f"{label}: the factor is below the power that it stands for")


#: Instructions in a row for which the power is compared exactly; of more, `Unit.factor` rounds up the same way.
_EXACTLY = 64


def most_promoted(instruction: Instruction, K: int, within: float) -> int | None:
    """After how many instructions the accumulator is to be promoted, at most, for K products to be off by no more than
    `within` of the weights of all terms, by the bound; None if even 1 is too many, or all of K need none."""
    unit = Unit.of(instruction)
    if unit.factor(K) <= within:
        return None
    # One sum alone grows with n, and the total is off by more than that: no n above the last that fits will do.
    whole = -(-K // instruction.k)
    last = bisect_left(range(1, whole), True, key=lambda n: unit.factor(n * instruction.k) > within)
    return next((n for n in range(last, 0, -1) if unit.promoted_factor(K, n) <= within), None)


def rounded_up(x: Fraction) -> Fraction:
    """Not below x, of 24 bits, so that it can be read."""
    if not x:
        return x
    scale = Fraction(2) ** (23 - math.floor(math.log2(x)))
    return Fraction(math.ceil(x * scale)) / scale


def _text() -> str:
    return f"{product_bound.STEPS.name}: {product_bound.STEPS.statement}"


def _meaning(stage: SumStage) -> str:
    what = f"a step of {counted(stage.products, 'product')}" if stage.products else "the addition of c"
    lost = f"n · 2^−{stage.F} for what is aligned, and " if stage.n else ""
    return f"of {what}, in place of the unit roundoff: {lost}{stage.rho}; rounded up"


def prove_rounding_model(rho: Conversion, asker: Asker) -> Proof:
    """Prove what ρ is off.  Raises NotProvedError."""
    fmt = product_bound.rounded_to(rho)
    nearest, to_odd = product_bound.is_nearest(rho), rho.rounding is Rounding.RO
    return prove(asker, rounding_model.argue_rounding(fmt, nearest=nearest, to_odd=to_odd))


def theorem(claims: Callable[[Composing], None], asker: Asker) -> Proof:
    """The proof of claims that end with a conclusion.  Raises NotProvedError."""
    proving = Composing(asker)
    claims(proving)
    return proving.proof()


__getattr__ = names(__name__, prove_product_bound="bound")
