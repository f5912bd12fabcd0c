"""The blaster's circuits are the operators of SMT-LIB: every input of every operator at small widths, and by proof."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import pytest
import z3

from mmaformal.certificates.blaster import Blaster, clauses_of
from mmaformal.certificates.circuits import Bits, Circuit
from mmaformal.certificates.expressions import ScriptError, expressions

ARITHMETIC = ("bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod")
OTHERS = (
    *("bvshl", "bvlshr", "bvashr", "bvand", "bvor", "bvxor", "bvnand", "bvnor", "bvxnor", "bvcomp"),
    *("bvult", "bvule", "bvugt", "bvuge", "bvslt", "bvsle", "bvsgt", "bvsge", "concat", "=", "distinct"),
)
UNARY = ("bvnot", "bvneg")


def values_of(circuit: Circuit, inputs: Sequence[bool]) -> list[bool]:
    """Return each gate's value, by what its function is called; gate 0 is no gate."""
    given = iter(inputs)
    values = [False]
    for function, operands in circuit.gates[1:]:
        x = [values[abs(each)] == (each > 0) for each in operands]
        values.append(
            {
                "true": lambda x: True,
                "input": lambda x: next(given),
                "and": lambda x: x[0] and x[1],
                "xor": lambda x: x[0] != x[1],
                "ite": lambda x: x[1] if x[0] else x[2],
                "maj": lambda x: sum(x) >= 2,
            }[function](x)
        )
    return values


def code_of(bits: Bits | int, values: Sequence[bool]) -> int:
    literals = (bits,) if isinstance(bits, int) else bits
    return sum((values[abs(bit)] == (bit > 0)) << i for i, bit in enumerate(literals))


def blasted(term: str, widths: Sequence[int], multiplied_out: bool = False) -> tuple[Circuit, Bits | int]:
    """Return a term over x, y, … of so many bits, as a circuit."""
    blaster = Blaster(multiplied_out)
    for name, width in zip("xyzw", widths, strict=False):
        for command in expressions(f"(declare-fun {name} () (_ BitVec {width}))"):
            blaster.do(command)
    (term_read,) = expressions(term)
    return blaster.circuit, blaster.value(term_read)


def by_z3(term: str, widths: Sequence[int], codes: Sequence[int]) -> int:
    """Return what z3 makes of a term of numbers."""
    names = "xyzw"[: len(widths)]
    declared = "".join(f"(declare-fun {n} () (_ BitVec {w}))" for n, w in zip(names, widths, strict=True))
    (holder,) = z3.parse_smt2_string(f"{declared}(assert (= {term} {term}))")
    found = z3.simplify(
        z3.substitute(
            holder.arg(0),
            *((z3.BitVec(n, w), z3.BitVecVal(c, w)) for n, w, c in zip(names, widths, codes, strict=True)),
        )
    )
    return found.as_long() if z3.is_bv_value(found) else int(z3.is_true(found))


def bits_in(codes: Sequence[int], widths: Sequence[int]) -> list[bool]:
    return [bool(code >> i & 1) for code, width in zip(codes, widths, strict=True) for i in range(width)]


@pytest.mark.parametrize("operator", [*ARITHMETIC, *OTHERS])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_circuit_is_its_operator_for_every_input(operator: str, width: int) -> None:
    circuit, bits = blasted(f"({operator} x y)", [width] * 2)
    for codes in itertools.product(range(1 << width), repeat=2):
        values = values_of(circuit, bits_in(codes, [width] * 2))
        assert code_of(bits, values) == by_z3(f"({operator} x y)", [width] * 2, codes), (operator, codes)


@pytest.mark.slow
@pytest.mark.parametrize("operator", [*ARITHMETIC, *OTHERS])
@pytest.mark.parametrize("width", [4, 5])
def test_so_it_is_at_four_and_five_bits(operator: str, width: int) -> None:
    test_a_circuit_is_its_operator_for_every_input(operator, width)


INDEXED = [
    *(f"((_ extract {high} {low}) x)" for high in range(4) for low in range(high + 1)),
    *(
        f"((_ {name} {by}) x)"
        for name in ("zero_extend", "sign_extend", "rotate_left", "rotate_right")
        for by in range(6)
    ),
    *(f"((_ repeat {times}) x)" for times in (1, 2, 3)),
    *(f"({name} x)" for name in UNARY),
]


@pytest.mark.parametrize("term", INDEXED)
def test_a_part_is_its_operator_for_every_input(term: str) -> None:
    circuit, bits = blasted(term, [4])
    for code in range(16):
        assert code_of(bits, values_of(circuit, bits_in([code], [4]))) == by_z3(term, [4], [code])


def conditions() -> Iterator[str]:
    for head in ("and", "or", "=>", "xor"):
        yield f"({head} (= x #) (= y #) (= z #))"
    yield "(not (= x #))"
    yield "(ite (= x #) (= y #) (= z #))"
    yield "(ite (= x #) y z)"
    yield "(= (= x #) (= y #))"
    yield "(distinct (= x #) (= y #))"


@pytest.mark.parametrize("term", [each.replace("#", "(_ bv1 1)") for each in conditions()])
def test_a_condition_is_its_operator_for_every_input(term: str) -> None:
    circuit, bits = blasted(term, [1, 1, 1])
    for codes in itertools.product(range(2), repeat=3):
        assert code_of(bits, values_of(circuit, bits_in(codes, [1, 1, 1]))) == by_z3(term, [1, 1, 1], codes)


SUMS = (
    "(bvadd (bvadd x y) (bvadd z w))",
    "(bvsub (bvadd x y) (bvsub z w))",
    "(bvsub (bvsub x y) (bvadd (bvsub z w) (_ bv3 3)))",
    "(bvadd x (bvsub (bvadd x x) (bvsub x x)))",
    "(bvmul (bvadd x y) (bvsub z (bvmul w (_ bv5 3))))",
    "(bvmul (bvmul (bvadd x y) (bvadd x y)) (bvsub x (_ bv6 3)))",
    "(bvsub (bvmul x y) (bvmul y x))",
)


@pytest.mark.parametrize("term", SUMS)
def test_a_polynomial_multiplied_out_is_the_polynomial(term: str) -> None:
    circuit, bits = blasted(term, [3] * 4, multiplied_out=True)
    for codes in random.Random(7).sample(list(itertools.product(range(8), repeat=4)), 300):
        assert code_of(bits, values_of(circuit, bits_in(codes, [3] * 4))) == by_z3(term, [3] * 4, codes)


@pytest.mark.parametrize(
    "term",
    [
        "(= (bvadd (bvadd (bvadd x y) z) w) (bvadd (bvadd w z) (bvadd y x)))",
        "(= (bvmul (bvadd x y) (bvadd z w)) (bvadd (bvmul y w) (bvadd (bvmul z (bvadd y x)) (bvmul x w))))",
    ],
)
def test_two_ways_to_write_a_polynomial_are_one_circuit(term: str) -> None:
    assert blasted(term, [33] * 4, multiplied_out=True)[1] == 1
    assert blasted(term, [33] * 4)[1] != 1


# ---- by proof --------------------------------------------------------------------------------------------------------


def as_z3(circuit: Circuit, inputs: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
    """Return each gate as a z3 term."""
    given = iter(inputs)
    terms = [z3.BoolVal(False)]
    for function, operands in circuit.gates[1:]:
        x = [terms[each] if each > 0 else z3.Not(terms[-each]) for each in operands]
        terms.append(
            {
                "true": lambda x: z3.BoolVal(True),
                "input": lambda x: next(given),
                "and": lambda x: z3.And(x),
                "xor": lambda x: z3.Xor(*x),
                "ite": lambda x: z3.If(*x),
                "maj": lambda x: z3.Or(z3.And(x[0], x[1]), z3.And(x[0], x[2]), z3.And(x[1], x[2])),
            }[function](x)
        )
    return terms


def proved(operator: str, width: int) -> bool:
    circuit, bits = blasted(f"({operator} x y)", [width] * 2)
    x, y = z3.BitVecs("x y", width)
    terms = as_z3(circuit, [z3.Extract(i, i, each) == 1 for each in (x, y) for i in range(width)])
    (told,) = z3.parse_smt2_string(
        f"(declare-fun x () (_ BitVec {width}))(declare-fun y () (_ BitVec {width}))(assert (= ({operator} x y) "
        f"({operator} x y)))"
    )
    meant, solver = told.arg(0), z3.Solver()
    literals = (bits,) if isinstance(bits, int) else bits
    made = [terms[each] if each > 0 else z3.Not(terms[-each]) for each in literals]
    if z3.is_bool(meant):
        solver.add(meant != made[0])
    else:
        solver.add(z3.Or([(z3.Extract(i, i, meant) == 1) != each for i, each in enumerate(made)]))
    return solver.check() == z3.unsat


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize("operator", ["bvadd", "bvsub", *OTHERS])
def test_a_circuit_is_proved_its_operator_at_the_widths_in_use(operator: str, width: int) -> None:
    assert proved(operator, width)


@pytest.mark.parametrize("operator", ["bvmul", "bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod"])
def test_products_and_quotients_are_proved_at_five_bits(operator: str) -> None:
    assert proved(operator, 5)


@pytest.mark.parametrize("width", [11, 24, 53, 64])
def test_a_product_is_one_of_integers(width: int) -> None:
    circuit, bits = blasted("(bvmul x y)", [width] * 2)
    draw = random.Random(width)
    for _ in range(50):
        x, y = (draw.getrandbits(width) & draw.getrandbits(width) | draw.getrandbits(3) for _ in range(2))
        assert code_of(bits, values_of(circuit, bits_in([x, y], [width] * 2))) == x * y % (1 << width)


# ---- clauses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["and", "xor", "ite", "maj"])
def test_clauses_are_met_by_what_the_gate_gives_and_nothing_else(function: str) -> None:
    circuit = Circuit()
    x, y, z = (circuit.input() for _ in range(3))
    for signs in itertools.product((1, -1), repeat=3):
        a, b, c = (each * sign for each, sign in zip((x, y, z), signs, strict=True))
        made = {
            "and": lambda: circuit.both(a, b),  # noqa: B023
            "xor": lambda: circuit.odd(a, b),  # noqa: B023
            "ite": lambda: circuit.choice(a, b, c),  # noqa: B023
            "maj": lambda: circuit.most(a, b, c),  # noqa: B023
        }[function]()
        clauses = circuit.clauses([made])
        for inputs in itertools.product((False, True), repeat=3):
            values = values_of(circuit, inputs)
            holds = code_of(made, values) == 1
            assert all(any(values[abs(each)] == (each > 0) for each in clause) for clause in clauses) == holds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(declare-fun x () (_ BitVec 0))", "not a sort"),
        ("(declare-fun x () Real)", "not a sort"),
        ("(declare-fun x (Bool) Bool)", "not a command"),
        ("(assert x)", "no meaning"),
        ("(declare-fun x () Bool)(declare-fun x () Bool)", "a meaning already"),
        ("(declare-fun true () Bool)", "a meaning already"),
        ("(define-fun a () (_ BitVec 2) (_ bv0 3))", "not of its sort"),
        ("(assert (_ bv1 1))", "where a Bool"),
        ("(assert (= (_ bv1 1) (_ bv1 2)))", "bits"),
        ("(assert (bvult true (_ bv1 2)))", "where a bit-vector"),
        ("(assert (= (_ bv4 2) (_ bv1 2)))", "has not 2 bits"),
        ("(assert (= ((_ extract 2 0) (_ bv1 2)) (_ bv1 3)))", "bits 2 to 0"),
        ("(assert (= true true true))", "not a term"),
        ("(assert true", "not closed"),
        ("(assert true))", "closes nothing"),
        ("(check-sat)(assert true)", "follows"),
        ('(assert "x")', "not SMT-LIB"),
        ("(push)", "not a command"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, why: str) -> None:
    with pytest.raises(ScriptError, match=why):
        clauses_of(text)


# ---- constants that equal a term -------------------------------------------------------------------------------------


def _script(asserted: Sequence[str], defined: str = "") -> str:
    declared = "".join(f"(declare-fun {name} () (_ BitVec 2))" for name in "xyz")
    bools = "".join(f"(declare-fun {name} () Bool)" for name in "pq")
    asserts = "".join(f"(assert {each})" for each in asserted)
    return f"(set-logic QF_BV){declared}{bools}{defined}{asserts}(check-sat)"


def _can_be_met(clauses: Sequence[Bits]) -> bool:
    """Whether z3's SAT solver finds an assignment."""
    solver = z3.Solver()
    for clause in clauses:
        literals = [z3.Bool(str(abs(each))) for each in clause]
        solver.add(z3.Or([x if each > 0 else z3.Not(x) for x, each in zip(literals, clause, strict=True)]))
    return bool(solver.check() == z3.sat)


def _random_formula(rng: random.Random, depth: int) -> str:
    def term(deep: int) -> str:
        if deep == 0 or rng.random() < 0.4:
            return rng.choice(["x", "y", "z", "(_ bv1 2)", "(_ bv3 2)"])
        return f"({rng.choice(['bvadd', 'bvsub', 'bvmul', 'bvand'])} {term(deep - 1)} {term(deep - 1)})"

    if depth == 0 or rng.random() < 0.5:
        return rng.choice(["p", "q", f"(= {term(0)} {term(2)})", f"(= {term(2)} {term(0)})", "(= p q)"])
    inner = _random_formula(rng, depth - 1)
    if rng.random() < 0.3:
        return f"(not {inner})"
    return f"({rng.choice(['and', 'or', '=>', 'xor'])} {inner} {_random_formula(rng, depth - 1)})"


@pytest.mark.parametrize("seed", range(12))
def test_clauses_can_be_met_if_and_only_if_a_script_of_equalities_can(seed: int) -> None:
    rng = random.Random(seed)
    verdicts = set()
    for _ in range(50):
        script = _script([_random_formula(rng, 3) for _ in range(rng.randrange(1, 7))])
        solver = z3.Solver()
        solver.from_string(script)
        wanted = bool(solver.check() == z3.sat)
        verdicts.add(wanted)
        assert _can_be_met(clauses_of(script, multiplied_out=True)[1]) == wanted, script
    assert verdicts == {False, True}


def test_what_equals_a_term_of_itself_is_no_definition() -> None:
    for asserted, met in (
        (["(= x (bvadd x (_ bv1 2)))"], False),
        (["(= x (bvmul x x))", "(= y (bvsub x (_ bv1 2)))", "(= x (bvadd y (_ bv1 2)))"], True),
        (["(= x (bvadd y (_ bv1 2)))", "(= y (bvadd z (_ bv1 2)))", "(= z (bvadd x (_ bv2 2)))"], True),
        (["(= x (bvadd y (_ bv1 2)))", "(= y (bvadd z (_ bv1 2)))", "(= z x)"], False),
        (["(= p q)", "(not (= q p))"], False),
        (["p", "(not p)"], False),
    ):
        assert _can_be_met(clauses_of(_script(asserted), multiplied_out=True)[1]) == met, asserted


def test_a_sum_less_its_parts_is_seen_through_equalities() -> None:
    """Solvers do not multiply 285 bits; what an addition loses is so many of them."""
    names = ("whole", "high", "low", "floor", "unit", "below")
    declared = "".join(f"(declare-fun {name} () (_ BitVec 285))" for name in names)
    given = "(and (= whole (bvadd high floor)) (= low (bvadd (bvmul floor unit) below)))"
    claim = "(= (bvsub (bvadd (bvmul high unit) low) (bvmul whole unit)) below)"
    script = f"{declared}(assert (not (or (not {given}) {claim})))"
    assert len(clauses_of(script, multiplied_out=True)[1]) < 5


@pytest.mark.parametrize(
    ("defined", "why"),
    [
        ("(define-fun a () (_ BitVec 2) b)(define-fun b () (_ BitVec 2) a)", "defined by itself"),
        ("(declare-fun x () (_ BitVec 2))", "x has a meaning already"),
        ("(define-fun a () (_ BitVec 2) x)(define-fun a () (_ BitVec 2) y)", "a has a meaning already"),
    ],
)
def test_scripts_that_define_nothing_are_refused(defined: str, why: str) -> None:
    with pytest.raises(ScriptError, match=why):
        clauses_of(_script(["(= x y)"], defined), multiplied_out=True)


def test_a_constant_is_not_defined_as_a_term_of_another_sort() -> None:
    with pytest.raises(ScriptError):
        clauses_of(_script(["(= x ((_ zero_extend 1) y))"]), multiplied_out=True)
