"""Count the parts of the dot product-add of E9S12 halves, as the SMT encoding has it: `python tools/e9s12_cost.py`.

Of a step, each term once: multipliers by the bits of their factors, shifters by the bits that they shift, adders by
their bits (negations and differences too), comparisons by theirs.  The widths are those that lose nothing, not what a
synthesis would make of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import z3

from mmaformal import e9s12
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.efda import Efda
from mmaformal.formats import fp16, fp32
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

_SHIFTS = (z3.Z3_OP_BSHL, z3.Z3_OP_BLSHR, z3.Z3_OP_BASHR)
_SUMS = (z3.Z3_OP_BADD, z3.Z3_OP_BSUB, z3.Z3_OP_BNEG)
_ORDERS = (z3.Z3_OP_ULEQ, z3.Z3_OP_UGEQ, z3.Z3_OP_ULT, z3.Z3_OP_UGT)


def counted(spec: DotAdd) -> dict[str, int]:
    """Bits of each kind of one step."""
    x = symbolic_inputs(spec)
    found, seen, stack = Counter[str](), set[int](), [smt.dot_add(spec, x.a, x.b, x.c).result]
    while stack:
        term: z3.ExprRef = stack.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        stack += term.children()
        kind = term.decl().kind() if z3.is_app(term) else None
        if kind == z3.Z3_OP_BMUL:
            found["multipliers"] += 1
            found["partial products"] += narrow(term.arg(0)) * narrow(term.arg(1))
        elif kind in _SHIFTS and not z3.is_bv_value(term.arg(1)):
            found["shifters"] += 1
            found["shifted"] += narrow(term.arg(0))
        elif kind in _SUMS:
            found["adders"] += 1
            found["added"] += term.size()
        elif kind in _ORDERS:
            found["compared"] += term.arg(0).size()
    return dict(found)


def narrow(x: z3.ExprRef) -> int:
    """The bits of a term, without those that are zero by its making."""
    if z3.is_app_of(x, z3.Z3_OP_ZERO_EXT):
        return narrow(x.arg(0))
    assert isinstance(x, z3.BitVecRef)
    return int(x.size())


def rows() -> list[tuple[str, DotAdd]]:
    of = e9s12["DP16A.FP16"].spec
    looped = replace(of, parameters=AccE9s12(16, 16, 85, IEEE_FP32))
    short = replace(e9s12["DP4A.FP32"].spec, parameters=DpaE9s12(4, 53, IEEE_FP32))
    exact = DotAdd(16, fp16, fp16, fp32, fp32, Efda(16, IEEE_FP32))
    return [
        ("16 fp16, fixed point, exact (efda)", exact),
        *((f"{i.name}, L = {i.parameters['accumulator_bits']}", i.spec) for i in e9s12),
        ("DP4A.FP32 with the least L of an fma, 53", short),
        ("16 fp16, looped accumulator, L = 85", looped),
    ]


def main() -> None:
    kinds = ("multipliers", "partial products", "shifters", "shifted", "adders", "added", "compared")
    print("| | " + " | ".join(kinds) + " |")
    print("|---|" + "---:|" * len(kinds))
    for name, spec in rows():
        found = counted(spec)
        print(f"| {name} | " + " | ".join(f"{found.get(kind, 0):,}" for kind in kinds) + " |")


if __name__ == "__main__":
    main()
