"""How long proofs take, stage by stage and as one question: the table in docs/performance.md.

    python benchmarks/proofs.py

Each structural property of hopper's HMMA.16816.F32 with K = L = 4, 8, 16, 32, on this machine, one after the other.
*Monolithic* is the same statement as one formula about the whole instruction, put to all solvers at once; of
order-independence only the exchange of two products.  After one that is not settled, larger K are not run.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterable

import z3

from mmaformal import hopper
from mmaformal.encodings import smt
from mmaformal.instruction import Instruction
from mmaformal.queries import (
    accumulator_width,
    commutativity,
    order_independence,
    output_range,
    power_of_two_scaling,
    sign_symmetry,
    zero_padding,
)
from mmaformal.queries.inputs import symbolic_inputs
from mmaformal.queries.lemmas import Argument
from mmaformal.queries.pairs import prove
from mmaformal.queries.relations import is_nan
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio, Relay, installed_backends, solver_version

SIZES = (4, 8, 16, 32)


def _passes_c_on(i: Instruction) -> z3.BoolRef:
    c = z3.BitVec("c", i.c_format.storage_bits)
    zeros = [[z3.BitVecVal(0, fmt.storage_bits)] * i.k for fmt in (i.a_format, i.b_format)]
    number = z3.And(z3.Not(is_nan(c, i.c_format)), c != i.c_format.sign_mask)
    return z3.And(number, smt.dot_add(i.spec, *zeros, c).result != c)


def _beyond(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    (step,) = smt.dot_add(i.spec, x.a, x.b, x.c).steps
    bound = sum(accumulator_width.argument(i.spec)[1][0].bounds)
    return z3.Or(step.total > bound, step.total < -bound)


def _minus_zero(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    return smt.dot_add(i.spec, x.a, x.b, x.c).result == i.d_format.sign_mask


def _nan(i: Instruction) -> z3.BoolRef:
    x = symbolic_inputs(i.spec)
    finite = output_range.all_finite(i.spec)(x)
    return z3.And(finite, is_nan(smt.dot_add(i.spec, x.a, x.b, x.c).result, i.d_format))


def _swap(i: Instruction) -> z3.BoolRef:
    """Only the exchange of the first two products, the easiest part of what is proved stage by stage."""
    order = order_independence.within_blocks(i.spec)[0]
    return order_independence.relation(i.spec, order).broken(symbolic_inputs(i.spec))


#: name → the arguments of the staged proof, the formula that is to be refuted
QUESTIONS: dict[
    str, tuple[Callable[[Instruction], Iterable[Argument]], Callable[[Instruction], z3.BoolRef]]
] = {
    "order-independence": (
        lambda i: (order_independence.argument(i.spec, o) for o in order_independence.within_blocks(i.spec)),
        _swap,
    ),
    "commutativity": (
        lambda i: [commutativity.argument(commutativity.relation(i.spec))],
        lambda i: commutativity.relation(i.spec).broken(symbolic_inputs(i.spec)),
    ),
    "sign-symmetry": (
        lambda i: [sign_symmetry.argument(sign_symmetry.relation(i.spec))],
        lambda i: sign_symmetry.relation(i.spec).broken(symbolic_inputs(i.spec)),
    ),
    "zero-padding": (
        lambda i: [zero_padding.argument(zero_padding.padding(i.spec))],
        lambda i: zero_padding.relation(zero_padding.padding(i.spec)).broken(symbolic_inputs(i.spec)),
    ),
    "power-of-two-scaling": (
        lambda i: [power_of_two_scaling.argument(i.spec)],
        lambda i: power_of_two_scaling.relation(i.spec).broken(symbolic_inputs(i.spec)),
    ),
    "no-nan-from-finite": (lambda i: [output_range.no_nan(i.spec)], _nan),
    "never-minus-zero": (lambda i: [output_range.never_minus_zero(i.spec)], _minus_zero),
    "every-number": (lambda i: [output_range.passes_c_on(i.spec)], _passes_c_on),
    "accumulator-width": (lambda i: [accumulator_width.argument(i.spec)[0]], _beyond),
}


def staged(i: Instruction, arguments: Callable[[Instruction], Iterable[Argument]], limit: float) -> float:
    """Seconds, solver processes started anew."""
    start = time.monotonic()
    with Relay() as portfolio:
        prove(Asker(portfolio, limit), *arguments(i))
    return time.monotonic() - start


def monolithic(i: Instruction, formula: Callable[[Instruction], z3.BoolRef], limit: float) -> float | None:
    """Seconds, or None if it was not settled.  Raises AssertionError if it is refuted."""
    start = time.monotonic()
    with Portfolio() as portfolio:
        outcome = Asker(portfolio, limit).satisfy("monolithic", "as one question", [formula(i)], limit=limit)
    assert outcome.verdict != "sat", f"{i.label}: the property fails"
    return time.monotonic() - start if outcome.verdict == "unsat" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one monolithic question")
    args = parser.parse_args()
    versions = ", ".join(f"{name} {solver_version(name)}" for name in installed_backends())
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {versions}; monolithic stopped after {args.limit:.0f} s\n"
    )
    print("| property | " + " | ".join(f"K = {k}: staged | monolithic" for k in SIZES) + " |")
    print("|---" * (1 + 2 * len(SIZES)) + "|", flush=True)
    for name, (arguments, formula) in QUESTIONS.items():
        cells, settled = [], True
        for k in SIZES:
            i = hopper["HMMA.16816.F32"].replace(k=k, L=k)
            cells.append(f"{staged(i, arguments, 600):.1f}")
            if settled:
                seconds = monolithic(i, formula, args.limit)
                settled = seconds is not None
                cells.append(f"{seconds:.1f}" if seconds is not None else f"> {args.limit:.0f}")
            else:
                cells.append("not run")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
