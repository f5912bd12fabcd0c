"""Stand-ins for proofs, where a test is not about what was proved."""

from mmaformal.proof.kernel import direct
from mmaformal.solver import asking
from mmaformal.solver.answers import Obligation, Proof
from mmaformal.solver.asking import Settled, obligation
from mmaformal.solver.portfolio import Outcome


def answered(
    name: str, statement: str, script: str, solver: str = "z3", version: str = "", seconds: float = 0.0
) -> Obligation:
    """The obligation that there would be if the solver had answered so."""
    return obligation(name, statement, script, Outcome("unsat", solver, version, seconds), whole=True)


NOTHING = answered("nothing", "true is true", "(assert false)(check-sat)")


def refuted(each: Obligation) -> Settled:
    """The end of a question that left this obligation."""
    return asking._settled(Outcome("unsat", each.solver, each.version, each.seconds), each)


def some_proof(*obligations: Obligation) -> Proof:
    """A proof of whatever it is said of."""
    return direct(*map(refuted, obligations or (NOTHING,)))
