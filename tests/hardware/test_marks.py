"""Exponents of zeros that a design marks by a number of its own."""

from __future__ import annotations

import pytest
import z3

from mmaformal import cdna3
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import maximum, resize
from mmaformal.hardware.marks import Marked
from mmaformal.hardware.matching import Follower
from mmaformal.hardware.module import Module, with_codes
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session

SPEC = cdna3["v_mfma_f32_32x32x4_2b_f16"].spec
#: By how much the exponents of the design are below the model's.
APART = 28
BITS = 11


def marks(mark: int) -> list[Marked]:
    """The marks that are found in a design with this one."""
    inputs = symbolic_inputs(SPEC)
    (step,) = smt.dot_add(SPEC, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).steps
    exponents = [
        z3.If(x.significand == 0, z3.BitVecVal(mark, BITS), resize(x.exponent, BITS) - APART)
        for x in step.products
    ]
    top = maximum([x + 1000 for x in exponents])
    module = Module("marked", with_codes(inputs), {"d": resize(top, 32)})
    rows = generate(SPEC, 1000, seed=1, distributions=(*DISTRIBUTIONS, "edge"))
    with session(None, 4096, False) as pool:
        follower = Follower(Asker(pool, 60), SPEC, inputs, module, rows, lambda _: None)
        return follower.marks


def test_a_mark_is_found_and_the_model_s_exponents_are_functions_of_it() -> None:
    (found,) = marks(-999)
    largest = found.largest
    assert len(largest.terms) == SPEC.k
    assert set(found.follows) == {x.get_id() for x in (*largest.terms, largest.top)}
    assert len(largest.definitions) == SPEC.k
    assert any(largest.total is not None and x.free == (largest.top, largest.total) for x in found.of_top)


@pytest.mark.parametrize("mark", [-28, -20])
def test_what_is_not_below_all_exponents_is_no_mark(mark: int) -> None:
    assert marks(mark) == []
