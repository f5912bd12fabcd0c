"""Whether rounding is what error analysis takes it for: fl(x) = x(1 + δ) + η, |δ| ≤ u, |η| ≤ g_min, δη = 0.

    from mmaformal.queries.roundoff import roundoff
    print(roundoff("e4m3"))

Of all real numbers x within the range of a format, argued in `facts/rounding_model`.  `mmaformal roundoff` is the
command.
"""

from __future__ import annotations

from fractions import Fraction

from mmaformal.analysis.arithmetic import FloatArithmetic
from mmaformal.checked import Progress, caller
from mmaformal.facts.rounding_model import argue_rounding
from mmaformal.formats import FORMATS, Format, hex_float
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import NotProvedError, prove
from mmaformal.renamed import keywords, names
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.solver.asking import Asker, watching
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Portfolio
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.witness import WitnessError

#: The formats that numbers are rounded to: all but those without a sign.
NAMES = tuple(name for name, fmt in FORMATS.items() if fmt.signed and fmt.has_zero)


@keywords(backends="solver")
def roundoff(
    fmt: Format | str,
    *,
    subnormals: bool = True,
    nearest: bool = True,
    timeout: float = 60.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove what rounding to a format costs; to `nearest`, ties to even, or toward zero.  Returns `Holds` or `Unknown`.

    `timeout` in seconds; `memory`, `solver`, `progress` and `cache` are as `mmaformal.prove` has them.

    Raises ValueError for a format without a sign or zero, NoSolverError if there is no solver.
    """
    caller(progress)
    with session(solver, memory, cache) as portfolio, watching(progress):
        return of_format(
            Format.named(fmt), portfolio, subnormals=subnormals, nearest=nearest, timeout=timeout
        )


def of_format(
    fmt: Format, portfolio: Portfolio, *, subnormals: bool = True, nearest: bool = True, timeout: float = 60.0
) -> Answer:
    """Returns what `roundoff` does, from solvers that are there."""
    if not (fmt.signed and fmt.has_zero):
        raise ValueError(f"nothing is rounded to {fmt.name}: it has no sign; {', '.join(NAMES)} have one")
    u, g_min = _constants(fmt, subnormals)
    factor = 1 if nearest else 2
    how = "to nearest" if nearest else "toward zero"
    question = (
        f"{fmt}, {how}, {'with' if subnormals else 'without'} subnormals: "
        "fl(x) = x(1 + δ) + η, |δ| ≤ u, |η| ≤ g, δη = 0, for all |x| ≤ f_max"
    )
    numbers = (
        Number(
            "u",
            factor * u,
            "what x is off at most, relative to x, where |x| is at least the least normal number",
        ),
        Number("g", factor * g_min, "what x is off at most where |x| is less"),
    )
    asker = Asker(portfolio, checked_timeout(timeout))

    def settle() -> Answer:
        try:
            proof = prove(asker, argue_rounding(fmt, subnormals=subnormals, nearest=nearest))
        except NotProvedError as error:
            return with_failure(Unknown(question, str(error), tuple(asker.proved), asker.elapsed), asker)
        notes = _reached(fmt, subnormals) if nearest else ()
        return Holds(question, proof, asker.elapsed, numbers, notes)

    return asker.within(question, settle)


def _constants(fmt: Format, subnormals: bool) -> tuple[Fraction, Fraction]:
    """u, and g_min by (2.1)."""
    u, f_min = Fraction(1, 2 << fmt.fraction_bits), Fraction(2) ** fmt.min_exponent
    return u, u * f_min if subnormals else f_min / 2


def _reached(fmt: Format, subnormals: bool) -> tuple[str, ...]:
    """Numbers that are off as far as can be: ties above f_min and above 0, which go to those.  Raises WitnessError."""
    u, g_min = _constants(fmt, subnormals)
    f_min = Fraction(2) ** fmt.min_exponent
    above = f_min * (1 + u)
    notes = [
        f"|δ| = u/(1 + u), the most there is, of x = {hex_float(above)}; |η| = g of x = {hex_float(g_min)}"
    ]
    if fmt.name != "fp64" or subnormals:
        arithmetic = FloatArithmetic.of(fmt, subnormals=subnormals)
        if (arithmetic.fl(above), arithmetic.fl(g_min)) != (f_min, Fraction(0)):
            raise WitnessError(f"{arithmetic} does not round {above} and {g_min} down")
    return tuple(notes)


__getattr__ = names(__name__, prove_rounding_model="roundoff")
