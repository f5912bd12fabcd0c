"""Symbolic lanes, the arguments over them, and the proof that both encodings agree.

Proofs of whole instructions are the work of `mmaformal verify`; here are one of each kind that is quick, and what each
part of the machinery has to refuse.  tools/mutate.py breaks the encodings in more than a hundred ways.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from mmaformal import cdna1, cdna3, volta
from mmaformal.encodings.executable import blocks, limbs, stages
from mmaformal.encodings.smt import blocks as smt
from mmaformal.facts.equality import argue_equality
from mmaformal.formats import e2m1
from mmaformal.lanes import INT64, LaneError, SymbolicLane, Tracer
from mmaformal.proof import encoding_links
from mmaformal.proof.kernel import Lemma, Link
from mmaformal.proof.lemmas import Argument, number
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Holds

SMALL = volta["HMMA.884.F32.F32"].replace(a_format=e2m1, b_format=e2m1, k=2, L=2)

# ---- lanes -----------------------------------------------------------------------------------------------------

BITS = 6
VALUES = np.arange(1 << BITS)


def proved(formula: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(z3.Not(formula))
    verdict = solver.check()
    assert verdict != z3.unknown
    return bool(verdict == z3.unsat)


def traced(f: Callable[..., Any], count: int, strict: bool = True) -> tuple[Tracer, Any, list[z3.BitVecRef]]:
    """f on `count` lanes of any 6-bit value."""
    tracer, codes = Tracer(strict), [z3.BitVec(f"x{i}", BITS) for i in range(count)]
    return tracer, f(*(tracer.input(code, VALUES) for code in codes)), codes


def value_of(lane: SymbolicLane, codes: list[z3.BitVecRef], values: tuple[int, ...]) -> int:
    pairs = [(code, z3.BitVecVal(v, BITS)) for code, v in zip(codes, values, strict=True)]
    term = z3.simplify(z3.substitute(lane.term, *pairs))
    return int(term.as_signed_long() if lane.range.signed else term.as_long())


OPERATIONS = (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor)


@st.composite
def programs(draw: st.DrawFn, operations: tuple[Callable[..., Any], ...] = OPERATIONS) -> Callable[..., Any]:
    """A few operations on two integers, each on what came before, with selections and constant shifts."""
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from([*operations, "min", "neg", "right", "left"]),
                st.integers(0, 5),
                st.integers(0, 5),
            ),
            min_size=1,
            max_size=6,
        )
    )

    def run(x: Any, y: Any) -> Any:
        values = [x, y]
        for operation, i, j in steps:
            u, v = values[i % len(values)], values[j % len(values)]
            if operation == "min":
                values.append(blocks.minimum(u, v))
            elif operation == "neg":
                values.append(blocks.where(u < v, -u, u))
            elif operation == "right":
                values.append(u >> j)
            elif operation == "left":
                values.append(u << j)
            else:
                values.append(operation(u, v))
        return values[-1]

    return run


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(0, 63), st.integers(0, 63))
def test_a_lane_is_the_integer_and_lies_in_its_range(program: Callable[..., Any], x: int, y: int) -> None:
    try:
        _, lane, codes = traced(program, 2)
    except LaneError:
        return  # products of products may leave 64 bits; the next tests say when
    wanted = program(x, y)
    assert lane.range.low <= wanted <= lane.range.high
    assert value_of(lane, codes, (x, y)) == wanted


@settings(max_examples=15, deadline=None)
@given(programs(tuple(each for each in OPERATIONS if each is not operator.mul)))  # which z3 takes seconds for
def test_every_rule_holds(program: Callable[..., Any]) -> None:
    try:
        tracer, _, _ = traced(program, 2)
    except LaneError:
        return
    for rule in tracer.rules.values():
        assert proved(rule.claim), rule.statement


def test_what_may_wrap_is_refused_and_where_is_told() -> None:
    def power(x: Any) -> Any:
        for _ in range(4):
            x = x * x
        return x

    with pytest.raises(LaneError, match=r"x \* y may leave 64 bits"):
        traced(power, 1)
    tracer, lane, codes = traced(power, 1, strict=False)
    assert lane.range == INT64
    wraps = z3.Or(tracer.violations)
    for x in (0, 1, 15, 16, 63):
        pinned = z3.simplify(z3.substitute(wraps, (codes[0], z3.BitVecVal(x, BITS))))
        assert z3.is_true(pinned) == (x**16 >= 2**63)


def test_a_shift_amount_outside_a_word_is_refused() -> None:
    with pytest.raises(LaneError, match=r"a shift by -32 … 31, outside 0 … 63"):
        traced(lambda x: x >> (x - 32), 1)


def test_a_lane_and_a_flag_have_no_truth_value() -> None:
    with pytest.raises(LaneError, match="where"):
        traced(lambda x: x if x > 3 else -x, 1)
    with pytest.raises(LaneError, match="truth value"):
        traced(lambda x: x or 1, 1)


def test_what_arrays_do_otherwise_is_refused() -> None:
    """Operators in place change an array under all of its names; flags compare by element; floats stay floats."""

    def in_place(x: Any) -> Any:
        y = x
        y += 1
        return x

    with pytest.raises(LaneError, match="other names"):
        traced(in_place, 1)
    with pytest.raises(LaneError, match="flags are not compared"):
        traced(lambda x, y: blocks.where((x > 3) == (y > 3), x, y), 2)
    for other in (0.5, np.float64(0.9), np.uint64(1), "1"):
        with pytest.raises(LaneError, match="no integer"):
            traced(lambda x, other=other: x + other, 1)


def test_an_encoding_that_tells_arrays_from_lanes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blocks.encode

    def encode(x: blocks.Rounded, rho: Any) -> Any:
        return right(x, rho) ^ 1 if isinstance(x.sign, np.ndarray) else right(x, rho)

    monkeypatch.setattr(stages, "encode", encode)
    with pytest.raises(LaneError, match="not what NumPy computes"):
        argue_equality(SMALL.spec)


def test_the_executable_encoding_knows_what_kind_of_lane_it_has_in_one_place_only() -> None:
    """`blocks.where`; anything else that asks would be a path that is traced and not run, or run and not traced."""
    shared = Path(blocks.__file__).resolve().parent
    for path in (*shared.glob("*.py"), *shared.parent.glob("*/executable.py")):
        parts = [part for part in ast.parse(path.read_text()).body if getattr(part, "name", "") != "where"]
        for node in (node for part in parts for node in ast.walk(part)):
            if isinstance(node, ast.AugAssign):
                assert isinstance(node.op, ast.Add), f"{path.name}:{node.lineno}"  # of lists and tuples
            if isinstance(node, ast.Name):
                assert node.id not in ("hasattr", "getattr", "type", "np"), f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                # `product`: in one lane or in limbs, whatever lanes are; `tree`: the parameters', what is added to what
                what = ast.unparse(node.args[0])
                assert what in ("parameters", "product", "tree"), f"{path}:{node.lineno}"


def test_rules_of_shared_and_of_different_operands_are_two(tmp_path: Path) -> None:
    """`u - u` is 0; the same expression of two numbers is not, and its rule is another.

    Ranges are guessed, told in terms of what comes into a call, in files of the executable encoding only.
    """
    probe = tmp_path / "executable" / "probe.py"
    names: dict[str, Any] = {}
    exec(compile("def difference(u, v):\n    return (u - v) << 60\n", str(probe), "exec"), names)

    def program(x: Any) -> Any:
        names["difference"](x, x << 0)
        return names["difference"](x, blocks.where(x == 64, x - 1, x))  # 64 is no sample

    tracer = Tracer()
    program(tracer.input(z3.BitVec("x", BITS + 1), VALUES))
    assert not all(proved(rule.claim) for rule in tracer.rules.values())


# ---- arguments --------------------------------------------------------------------------------------------------


def settled(argument: Argument) -> dict[str, bool]:
    """Which statements hold."""
    return {lemma.statement: proved(lemma.formula) for lemma in argument.lemmas.values()}


def sum_of_two(claimed: Callable[[Any, Any], Any], derive_first: bool = True) -> dict[str, bool]:
    """An argument that a lane is the sum of two codes, in which the second code's link may be left underived."""
    tracer, total, (x, y) = traced(lambda x, y: x + y, 2)
    left, right = total.operands
    argument = Argument(tracer)
    links = [number(lane, code) for lane, code in ((left, x), (right, y))]
    argument.derive("inputs", "first", links[:1], inputs=[x])
    if derive_first:
        argument.derive("inputs", "second", links[1:], inputs=[y])
    wide = [z3.ZeroExt(1, code) for code in (x, y)]
    result = number(total, claimed(*wide))
    argument.derive("sum", "sum", [result], links)
    argument.conclude("in both encodings d is the same code", result)
    return settled(argument)


def test_an_argument_holds_if_all_its_lemmas_do() -> None:
    assert all(sum_of_two(lambda x, y: y + x).values())


def test_a_wrong_claim_is_a_lemma_that_does_not_hold() -> None:
    holds = sum_of_two(lambda x, y: x + y + 1)
    assert [statement for statement, holding in holds.items() if not holding] == ["sum"]


def test_a_premise_that_was_never_derived_is_missed_by_the_composition() -> None:
    holds = sum_of_two(lambda x, y: x + y, derive_first=False)
    (missing,) = (statement for statement, holding in holds.items() if not holding)
    assert "in both encodings d is the same code" in missing


def test_what_a_link_determines_is_part_of_what_is_to_be_derived() -> None:
    """A link may not bring along a value that its claim does not say."""
    tracer, total, (x,) = traced(lambda x: x + 1, 1)
    argument = Argument(tracer)
    argument.derive("inputs", "nothing", [Link(z3.BoolVal(True), ())])
    smuggled = Link(z3.BoolVal(True), (x,), ((total.term, z3.BitVecVal(0, total.term.size())),))
    result = number(total, z3.BitVecVal(0, total.term.size()))
    argument.derive("sum", "zero", [result], [smuggled])
    argument.conclude("in both encodings d is the same code", result)
    assert not all(settled(argument).values())


def test_a_maximum_is_its_own_in_any_order() -> None:
    x = [z3.BitVec(f"x{i}", 3) for i in range(5)]
    tracer = Tracer()
    lanes = [tracer.input(each, np.arange(8)) for each in x]
    top = lanes[0]
    for lane in lanes[1:]:
        top = blocks.maximum(top, lane)
    for maximum, holds in ((smt.maximum(x), True), (smt.maximum(x[:4]), False)):
        argument = Argument(tracer)
        links = [number(lane, each) for lane, each in zip(lanes, x, strict=True)]
        argument.derive("inputs", "codes", links, inputs=x)
        link, _ = argument.largest("align", "largest", top, maximum, links, 0)
        argument.conclude("in both encodings d is the same code", link)
        assert all(proved(lemma.formula) for lemma in argument.lemmas.values()) == holds


def test_a_long_product_is_an_identity_of_polynomials() -> None:
    """With a wrong sum of the halves' products the identity does not hold; nothing multiplies 53 by 53 bits."""
    tracer = Tracer()
    codes = [z3.BitVec(name, 53) for name in "xy"]
    x, y = (tracer.input(code, np.array([0, (1 << 53) - 1])) for code in codes)
    long = limbs.multiply(x, y, 3)
    product = z3.ZeroExt(53, codes[0]) * z3.ZeroExt(53, codes[1])
    argument = Argument(tracer)
    factors = tuple(
        argument.derive("inputs", "codes", [number(lane, code)], inputs=[code])[0]
        for lane, code in zip((x, y), codes, strict=True)
    )
    encoding_links.long_product(argument, factors, long, product, 3)  # type: ignore[arg-type]
    by_statement: dict[str, Lemma] = {lemma.statement: lemma for lemma in argument.lemmas.values()}
    assert proved(by_statement["the products of halves add up to the same"].formula)
    swapped = long._replace(parts=(long.parts[3], *long.parts[1:3], long.parts[0]))
    wrong = Argument(tracer)
    encoding_links.long_product(wrong, factors, swapped, product, 3)  # type: ignore[arg-type]
    statements = {lemma.statement: lemma for lemma in wrong.lemmas.values()}
    assert not proved(statements["products of halves are the same"].formula)


# ---- whole instructions -------------------------------------------------------------------------------------------


def test_both_encodings_of_a_small_dot_product_agree() -> None:
    answer = verify(SMALL, timeout=120)
    assert isinstance(answer, Holds), answer
    assert {o.solver for o in answer.proof.obligations} <= {"z3", "bitwuzla"}


@pytest.mark.slow
def test_both_encodings_agree_on_the_papers_reading_of_cdna3() -> None:
    """Infinite inputs before products that overflow, zero products aligned too, and the sum not cut."""
    instruction = cdna3.revision("paper-v1")["f32_4x4x4_16b_bf16"]
    assert isinstance(verify(instruction, timeout=300), Holds)


def test_the_conclusion_is_about_the_codes_of_d() -> None:
    """The last lemma speaks of the result, whatever the argument of the algorithm ended with."""
    argument = argue_equality(cdna1["f32_32x32x2bf16"].spec)
    assert [lemma.stage for lemma in argument.lemmas.values()][-1] == "composition"
    argument.conclude("it holds", Link(z3.Bool("never derived"), ()))
    last = [*argument.lemmas.values()][-1]
    assert not proved(last.formula)
