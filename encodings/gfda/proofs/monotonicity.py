"""Whether d grows with c, of gfda: as of fda, with the sums of groups, which do not depend on c, as terms; and an input
with which it does not grow with a product."""

from __future__ import annotations

from mmaformal.cases.falling_products import falls_with_a_product, random_searches
from mmaformal.cases.out_of_order import Descends
from mmaformal.encodings.gfda import Gfda
from mmaformal.facts.monotone_fused import products_allowed, prove_in_c
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding


def in_c(instruction: Instruction, theory: Theory) -> None:
    """That d grows with c, of as few groups as c gains what they lose.  Raises NotProvedError."""
    spec, p = instruction.spec, instruction.parameters
    assert isinstance(p, Gfda)
    allowed = products_allowed(spec)
    if p.cut is not Rounding.RZ or allowed < p.L // p.G:
        why = f"there is an argument for {allowed} groups whose sums are cut toward zero"
        raise NotProvedError("d grows with c", "unknown", why)
    prove_in_c(theory, spec)


def in_product(instruction: Instruction) -> Descends | None:
    """An input on which a larger product gives a smaller d, if one is found."""
    spec, p = instruction.spec, instruction.parameters
    assert isinstance(p, Gfda)
    return falls_with_a_product(instruction, random_searches(spec, p.F))
