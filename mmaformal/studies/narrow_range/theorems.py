"""The theorems of the error analysis of narrow-range formats: what of them follows from the rounding model.

    from mmaformal.studies.narrow_range.theorems import prove_theorem
    print(prove_theorem("3.1"))

`mmaformal narrow-range 3.1` is the command; the argument is in `argument`, the bound by number
`bounds.proved`.
"""

from __future__ import annotations

from collections.abc import Callable

from mmaformal.proof.composition import Composing
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import NotProvedError
from mmaformal.renamed import keywords
from mmaformal.solver.answers import Answer, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Portfolio
from mmaformal.solver.session import Solver, session
from mmaformal.studies.narrow_range.argument import prove_theorem_3_1, prove_theorem_4_1

#: By the paper's number: what is proved, and how.
THEOREMS: dict[str, tuple[str, Callable[[Composing], None]]] = {
    "3.1": (
        "‖Ĉ − AB‖ ≤ ((2u + u² + 4nω(1 + u) + 4n²ω²)·R + R − 1 + 4n(2n − 1)·R·G/θ²) ‖A‖ ‖B‖, R = (1 + U)^n, ω = g/θ: "
        "Theorem 3.1, sharpened, with R − 1 for n·U",
        prove_theorem_3_1,
    ),
    "4.1": (
        "of p words the same with u^p and u^(p − 1)g in the place of u and g, what is left out, and np(p + 1)/2 "
        "products: Theorem 4.1 but for its constants (studies.narrow_range.bounds.proved)",
        prove_theorem_4_1,
    ),
}


@keywords(backends="solver")
def prove_theorem(
    number: str, *, timeout: float = 60.0, memory: int = DEFAULT_MEMORY, solver: Solver = None
) -> Answer:
    """`Holds` or `Unknown` for "3.1" or "4.1"; `timeout` in seconds.

    Raises ValueError for no theorem, NoSolverError if there is no solver.
    """
    with session(solver, memory) as portfolio:
        return of_theorem(number, portfolio, timeout)


def of_theorem(number: str, portfolio: Portfolio, timeout: float = 60.0) -> Answer:
    """Prove a theorem as `prove_theorem` does, with solvers that are there."""
    if number not in THEOREMS:
        raise ValueError(f"no theorem {number!r}; there are {', '.join(THEOREMS)}")
    question, prove = THEOREMS[number]
    asker = Asker(portfolio, checked_timeout(timeout))

    def settle() -> Answer:
        proving = Composing(asker)
        try:
            prove(proving)
        except NotProvedError as error:
            return with_failure(Unknown(question, str(error), proving.obligations, asker.elapsed), asker)
        return Holds(question, proving.proof(), asker.elapsed)

    return asker.within(question, settle)
