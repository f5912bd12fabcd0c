"""Circuits for all inputs at once are what their operators are for each, and a wrong answer shows in the table."""

from __future__ import annotations

import enumeration_table
import numpy as np
import pytest
from enumeration_table import different, enumerated
from numpy.typing import NDArray

from mmaformal.certificates.all_inputs import AllInputs
from mmaformal.certificates.expressions import ScriptError
from mmaformal.encodings.fda import Fda
from mmaformal.formats import Format, Specials, e5m2
from mmaformal.queries import commutativity, sign_symmetry
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd

DECLARED = "".join(f"(declare-fun {name} () (_ BitVec 4))" for name in "xyd") + "(declare-fun f () Bool)"
TINY = Format("e1m1", 3, 1, 1, 0, Specials.NONE, None)
UNIT = DotAdd(1, TINY, TINY, e5m2, e5m2, Fda(2, 1, Conversion("RZ-E5M2", e5m2, 2, Rounding.RZ), None))


def every_pair() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    n = np.arange(256, dtype=np.uint64)
    return n >> np.uint64(4), n & np.uint64(15)


@pytest.mark.parametrize(
    ("term", "function"),
    [
        ("(bvmul x y)", lambda x, y: x * y & 15),
        ("(bvadd x (bvnot y))", lambda x, y: x + 15 - y & 15),
        ("(ite (bvult x y) x y)", np.minimum),
        ("(bvshl x y)", lambda x, y: np.where(y < 4, x << np.minimum(y, 4) & 15, 0)),
    ],
)
def test_a_script_holds_where_its_operators_say_so(term, function) -> None:  # type: ignore[no-untyped-def]
    script = AllInputs(f"{DECLARED}(assert (= d {term}))(assert f)(check-sat)")
    x, y = every_pair()
    d, f = function(x.astype(np.int64), y.astype(np.int64)).astype(np.uint64), np.ones(256, np.uint64)
    assert script.hold({"x": x, "y": y, "d": d, "f": f}).all()
    assert not script.hold({"x": x, "y": y, "d": d ^ np.uint64(1), "f": f}).any()
    assert not script.hold({"x": x, "y": y, "d": d, "f": 0 * f}).any()
    f[7] = 0
    assert np.flatnonzero(~script.hold({"x": x, "y": y, "d": d, "f": f})).tolist() == [7]


def test_a_constant_without_values_is_refused() -> None:
    script = AllInputs(f"{DECLARED}(assert (= x y))(check-sat)")
    with pytest.raises(ScriptError, match="no values of d, f"):
        script.hold(dict(zip("xy", every_pair(), strict=True)))


def test_two_encodings_that_differ_differ_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert different(UNIT) == 0
    right, other = enumeration_table.compiled_results, UNIT.replace(F=1)
    monkeypatch.setattr(enumeration_table, "compiled_results", lambda spec, rows: right(other, rows))
    assert different(UNIT) > 0


def test_a_wrong_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = enumerated(UNIT, "commutativity", commutativity.relation_exchanged(UNIT), 30.0)
    assert (found.cell, found.agrees) == ("proved", True)
    down = UNIT.replace(rho=Conversion("RD-E5M2", e5m2, 2, Rounding.RD))
    broken = enumerated(down, "sign-symmetry", sign_symmetry.relation_negated(down), 30.0)
    assert broken.agrees
    assert broken.cell == f"fails on {broken.by_bits:,}"
    taken_for_another = enumerated(down, "commutativity", sign_symmetry.relation_negated(down), 30.0)
    assert taken_for_another.by_bits == broken.by_bits == broken.by_numbers > 0
    assert taken_for_another.cell.startswith("WRONG")
