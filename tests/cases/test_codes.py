"""Relations of codes are what they say, of arrays and of terms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import z3

from mmaformal.cases.codes import same_code, same_number
from mmaformal.formats import fp16

ZEROS, NANS = {0, 0x8000}, {0x7C01, 0xFFFF}
CODES = [*ZEROS, *NANS, 1, 0x3C00, 0x7C00, 0xFC00]


@pytest.mark.parametrize(("relation", "alike"), [(same_code, [NANS]), (same_number, [NANS, ZEROS])])
def test_relations_are_what_they_say_of_arrays_and_terms(
    relation: Callable[..., Any], alike: list[set[int]]
) -> None:
    for x, y in product(CODES, CODES):
        related = x == y or any({x, y} <= each for each in alike)
        array = relation(np.array([x], np.uint64), np.array([y], np.uint64), fp16)[0]
        term = z3.simplify(relation(z3.BitVecVal(x, 16), z3.BitVecVal(y, 16), fp16))
        assert bool(array) == z3.is_true(term) == related
