"""The bound of attention by blocks of keys (`analysis/flash_attention`), proved from the steps of its instruction.

    print(attention_bound(FlashAttention(hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], promote_every=4), 4096))

It rests on what the bound of a product rests on (`queries/bound`), and besides on what multiplying O by α does to the
bound (`facts/product_bound.prove_rescaled`), and what the division in the end is off.
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.analysis.flash_attention import FlashAttention
from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.checked import Progress, caller
from mmaformal.facts import product_bound, rounding_model
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import fp32
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import NotProvedError, by_rule, prove
from mmaformal.queries.bound import bound_from_terms, provable, rounded_up, theorem, where_finite
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.solver.asking import Asker, watching
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session


def attention_bound(
    attention: FlashAttention,
    keys: int,
    *,
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove how far the output of attention to so many keys is off the exact one, of its weights as they are, at most.

    Returns `Holds`, whose `.number` is the factor of σ, or `Unknown`.  Keywords as `bound` has them.

    Raises ValueError for an instruction without such a bound, NoSolverError if there is no solver.
    """
    caller(progress)
    i, block = attention.instruction, min(attention.keys, keys)
    unit = provable(replace(i, spec=i.spec.in_order))
    how = "chains that go on from O"
    if attention.promote_every is not None:
        how = f"sums of {attention.promote_every} instructions, added in fp32"
    question = (
        f"{i.label}, {keys} keys in blocks of {attention.keys}, {how}: |O − (the exact sums of p·v, times α)| ≤ f · σ, "
        "σ = Σ w(p)·w(v), times α, and the least normal number for each block and sum; and of D = O / l, "
        f"|D − exact / l| ≤ f · σ/l + u · max(|exact|/l + f · σ/l, least), {where_finite(i)}"
    )
    with session(solver, memory, cache) as portfolio, watching(progress):
        asker = Asker(portfolio, checked_timeout(timeout))

        def settled() -> Answer:
            answer: Answer
            try:
                of_block = StructureBound.of(i, block, promote_every=attention.promote_every)
                answer = bound_from_terms(question, unit, of_block, asker)
                if isinstance(answer, Holds):
                    answer = _with_blocks(answer, attention, keys, asker)
            except (NotProvedError, UnsupportedError) as error:
                answer = Unknown(question, str(error), tuple(asker.proved), asker.elapsed)
            if isinstance(answer, Holds):
                answer = of_both_encodings(answer, i, [i.spec], asker)
            return with_failure(answer, asker)

        return asker.within(question, settled)


def _with_blocks(block: Holds, attention: FlashAttention, keys: int, asker: Asker) -> Holds:
    """The answer of one block as that of all of them.  Raises NotProvedError."""
    proofs = [
        theorem(product_bound.prove_rescaled, asker),
        theorem(product_bound.prove_narrowed, asker),
        prove(asker, rounding_model.argue_rounding(fp32)),
    ]
    meaning = "what O is off at most, relative to all terms' weights; rounded up"
    f = Number("f", rounded_up(attention.factor(keys)), meaning)
    steps = product_bound.STEPS
    proof = by_rule(f"{steps.name}: {steps.statement}", block.proof, *proofs)
    others = tuple(x for x in block.numbers if x.name not in ("f", "u"))
    return replace(block, proof=proof, numbers=(f, *others), seconds=asker.elapsed)


__all__ = ["attention_bound"]
