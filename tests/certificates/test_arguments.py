"""Arguments as text: honest ones are followed to the end, and whatever is followed to the end is true."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
import z3

from mmaformal.architectures.meant import instruction_meant
from mmaformal.certificates.check import FollowedArgument, RefusedError, read_expressions
from mmaformal.facts import equality
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import Link, Theorem, lemmas_of
from mmaformal.proof.rules import Theory, instance
from mmaformal.proof.written import WrittenArgument, argument_of, statement_of
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.solver.script import smtlib

X, Y, Z = (z3.BitVec(name, 3) for name in "xyz")
SUM, DOUBLE = X + Y, Y + Y


def _small(made: Theorem) -> None:
    """Claims with terms that are cut, a term that has a value, one lemma for each value, and two cases."""
    same = Link(SUM - X == Y, (Y,), ((SUM - X, Y),))
    made.derive("step", "the difference is y", [same], inputs=[])
    twice = Link(SUM - X + (SUM - X) == DOUBLE)
    made.derive("step", "so is its double", [twice], [same])
    low, high = Link(z3.ULT(DOUBLE, 4)), Link(z3.UGE(DOUBLE, 4))
    made.split("low or high", [low, high], terms=[DOUBLE])
    even = Link(z3.Extract(0, 0, DOUBLE) == 0)
    made.derive("step", "a double is even", [even], each_value_of=Y)
    goal = Link(z3.Or(*(value == DOUBLE for value in (0, 2, 4, 6))))
    for part in (low, high):
        made.derive("step", "an even number", [goal], [part, even], [DOUBLE])
    both = Link(z3.And(goal.claim, twice.claim))
    made.derive("step", "both", [both], [goal, twice])
    made.conclude("it is one of four, and twice the difference", both)


def _given(made: Theorem) -> None:
    known = made.assume("x is y", Link(X == Y))
    made.derive("step", "so are both with z", [Link(X + Z == Y + Z)], [known], [Z])
    made.conclude("x + z is y + z", Link(X + Z == Y + Z))


def _theorem(build: Callable[[Theorem], None]) -> Theorem:
    made = Theorem()
    build(made)
    return made


def _proved(script: str) -> bool:
    solver = z3.Solver()
    solver.from_string(script)
    return bool(solver.check() == z3.unsat)


def _followed(text: str, lemmas: dict[str, tuple[str, str]]) -> FollowedArgument:
    """Follow an argument; a lemma counts if it is one of those and does hold."""

    def script(name: str) -> str:
        if name not in lemmas or not _proved(lemmas[name][0]):
            raise RefusedError("no lemma")
        return lemmas[name][0]

    argument = FollowedArgument(script)
    argument.follow(text, "text")
    return argument


@pytest.mark.parametrize("build", [_small, _given])
def test_an_argument_is_followed_to_the_end_and_needs_every_lemma(build: Callable[[Theorem], None]) -> None:
    theorem = _theorem(build)
    written = argument_of(theorem)
    assert written.text.startswith(statement_of(theorem))
    assert _followed(written.text, written.lemmas).lemmas == written.lemmas.keys()
    for name in written.lemmas:
        left = {each: lemma for each, lemma in written.lemmas.items() if each != name}
        with pytest.raises(RefusedError, match="no lemma"):
            _followed(written.text, left)


def test_the_argument_of_a_unit_needs_the_ranges_of_its_lanes() -> None:
    theorem = equality.argue_equality(instruction_meant("volta HMMA.884.F16.F16").spec)
    written = argument_of(theorem)

    def script(name: str) -> str:
        return written.lemmas[name][0]

    argument = FollowedArgument(script)
    argument.follow(written.text, "text")
    assert argument.lemmas == written.lemmas.keys()
    rules = re.findall(r"^\(rule (\w+)\)$", written.text, re.MULTILINE)
    of_lanes = [each for each in lemmas_of(theorem) if each.stage == "64-bit lanes"]
    assert sorted(rules) == sorted({digest(smtlib([each.refuted])) for each in of_lanes})
    without = "\n".join(line for line in written.text.splitlines() if not line.startswith("(range"))
    with pytest.raises(RefusedError, match="a range that is not known"):
        FollowedArgument(script).follow(without, "text")


def test_claims_proved_as_they_are_made_and_rules_are_written_too() -> None:
    with LazyPortfolio() as portfolio:
        _are_written(Asker(portfolio, 60.0))


def _are_written(asker: Asker) -> None:
    proving = Composing(asker)
    first = proving.claim("first", "x + y is y + x", X + Y == Y + X)
    second = proving.claim("second", "so with z", X + Y + Z == Y + X + Z, [first])
    proving.conclude("both", z3.And(first, second))
    written = argument_of(proving)
    assert _followed(written.text, written.lemmas).rules == []
    theory = Theory(asker)
    law = theory.holds("law", "x + y is y + x", X + Y == Y + X)
    theory.theorem("2z + y is y + 2z", instance(theory, law, [(X, Z + Z)]))
    written = argument_of(theory)
    assert _followed(written.text, written.lemmas).rules == ["instance"]
    assert "(by-rule instance" in statement_of(theory)
    lines = written.text.splitlines()
    (premise,) = (line for line in lines if line.startswith("(infer"))
    (rule,) = (line for line in lines if line.startswith("(use-rule"))
    without = [line for line in lines if line != premise]
    changed = {premise: rule, rule: premise}  # then the rule comes first
    for text in (without, [changed.get(line, line) for line in lines]):
        with pytest.raises(RefusedError, match="the rule instance is given what is no theorem"):
            _followed("\n".join(text), written.lemmas)
    supposed = written.text.replace("(by-rule", "(assumed (= x y))\n(by-rule", 1)
    with pytest.raises(RefusedError, match="the rule instance is given what is no theorem"):
        _followed(supposed, written.lemmas)


@pytest.mark.parametrize("build", [_small, _given])
def test_every_step_is_needed(build: Callable[[Theorem], None]) -> None:
    written = argument_of(_theorem(build))
    lines = written.text.splitlines()
    steps = [line for line in lines if line.startswith(("(infer", "(cases", "(conclude ", "(assumed"))]
    assert len(steps) >= 3
    for step in steps:
        with pytest.raises(RefusedError, match=r"not inferred|does not reach"):
            _followed("\n".join(line for line in lines if line != step), written.lemmas)


# ---- what is refused -------------------------------------------------------------------------------------------------


def _is_true(text: str) -> bool:
    """Whether what a text states holds, for all values of its constants."""
    lines = text.splitlines()
    script = [line for line in lines if line.startswith(("(declare", "(define"))]
    for line in lines:
        if line.startswith(("(assumed", "(range")):
            script.append(f"(assert {_last(line)})")
        elif line.startswith("(concluded"):
            script.append(f"(assert (not {_last(line)}))")
    return _proved("\n".join(script))


def _last(line: str) -> str:
    """Return the claim of a line."""
    return re.sub(r"^\((assumed|range|concluded) (.*)\)$", r"\2", line)


def _changed(text: str, chance: random.Random) -> str:
    """Return a text with something else in it: a line left out, moved or twice, or a word in the place of another."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.randrange(5)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[other])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        else:
            words = re.findall(r"[^\s()]+", " ".join(lines))
            spots = [m.span() for m in re.finditer(r"[^\s()]+", lines[at])]
            start, end = chance.choice(spots)
            lines[at] = lines[at][:start] + chance.choice(words) + lines[at][end:]
        if not lines:
            return ""
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("build", [_small, _given])
def test_whatever_is_followed_to_the_end_is_true(build: Callable[[Theorem], None]) -> None:
    """Thousands of texts with errors in them: most are refused, and none of the others states what is false."""
    written, chance = argument_of(_theorem(build)), random.Random(34)
    accepted = refused = 0
    verdicts: dict[str, bool] = {}

    def script(name: str) -> str:
        if name not in written.lemmas:
            raise RefusedError("no lemma")
        return written.lemmas[name][0]

    assert all(_proved(text) for text, _ in written.lemmas.values())
    for _ in range(3000):
        text = _changed(written.text, chance)
        try:
            FollowedArgument(script).follow(text, "text")
        except RefusedError:
            refused += 1
            continue
        accepted += 1
        stated = text.partition("(infer")[0]
        try:
            verdicts.setdefault(stated, _is_true(text))
        except z3.Z3Exception:  # of sorts that do not fit: `statement_of` writes none
            continue
        assert verdicts[stated], text
    assert accepted > 100
    assert refused > 1000


FALSE = "(declare-fun x () (_ BitVec 3))\n(declare-fun y () (_ BitVec 3))\n(concluded (= x y))\n"


def _lemma(claim: z3.BoolRef) -> WrittenArgument:
    made = Theorem()
    made.derive("step", "a lemma", [Link(claim)], inputs=[])
    made.conclude("so", Link(claim))
    return argument_of(made)


def _name_of(written: WrittenArgument, said: str = "a lemma") -> str:
    return next(name for name, (_, statement) in written.lemmas.items() if statement == said)


BIT = z3.BitVec("b", 1)
NEGATED = _lemma(-BIT == BIT)  # of one bit alone
P, Q, R = z3.BitVecs("p q r", 3)


def _transitive() -> WrittenArgument:
    made = Theorem()
    links = [made.assume("p is q", Link(P == Q, (P, Q))), made.assume("q is r", Link(Q == R, (Q, R)))]
    made.derive("step", "a lemma", [Link(P == R)], links)
    made.conclude("so", Link(P == R))
    return argument_of(made)


TRANSITIVE = _transitive()
SAME = _lemma(BIT == BIT)


class _Simplified(Theorem):
    simplified = True


def _written_simplified() -> WrittenArgument:
    made = _Simplified()
    below = [made.assume(f"{x} ≤ {y}", Link(z3.ULE(x, y), (x, y))) for x, y in ((P, Q), (Q, P))]
    made.derive("step", "so they are equal", [Link(P == Q)], below)
    made.conclude("so", Link(P == Q))
    return argument_of(made)


SIMPLIFIED = _written_simplified()
SHARED = _lemma((P + Q) * (P + Q) == P * P + 2 * P * Q + Q * Q)

#: Steps that are wrong, behind a statement that is false, with what is said.
WRONG = {
    "a term of another sort": (
        f"(infer () ((= (bvneg x) x)) () (({_name_of(NEGATED)} ((b x)) ())))",
        "another sort",
    ),
    "one constant for two terms": (
        f"(infer () ((= x y)) () (({_name_of(NEGATED)} ((b ((_ extract 0 0) x)) (b ((_ extract 0 0) y))) ())))",
        "stands for two terms",
    ),
    "a lemma that says something else": (
        f"(infer () ((= x y)) () (({_name_of(NEGATED)} () ())))",
        "says something else",
    ),
    "no lemma": ("(infer () ((= x y)) () ())", "no lemma"),
    "a lemma that there is not": (f"(infer () ((= x y)) () (({'0' * 64} () ())))", "no lemma"),
    "a range that is not known": (
        f"(infer () ((= x y)) ((bvult x y)) (({_name_of(NEGATED)} () ())))",
        "a range that is not known",
    ),
    "a premise that is left out": (
        f"(infer () ((= x y)) () (({_name_of(TRANSITIVE)} ((t0_3 x) (t1_3 y) (t2_3 y)) ())))",
        "says something else",
    ),
    "a term in the place of one that has a meaning": (
        f"(infer () ((= x y)) () (({_name_of(SHARED)} (($0 x)) ())))",
        "is no constant",
    ),
    "a premise that is left out of a lemma that is simplified": (
        f"(infer () ((= x y)) () (({_name_of(SIMPLIFIED, 'so they are equal')} ((t0_3 x) (t1_3 y)) ())))",
        "says something else",
    ),
    "values of two terms": (
        "(infer () ((= b c)) () ("
        + " ".join(f"({_name_of(SAME)} ((b (_ bv{n} 1))) ((b (_ bv{n} 1)) (c (_ bv{n} 1))))" for n in (0, 1))
        + "))",
        "not one for each value",
    ),
    "a value of another sort": (
        f"(infer ((true ((x (_ bv0 2))))) ((= x y)) () (({_name_of(NEGATED)} () ())))",
        "a value of another sort",
    ),
    "an assumption after the statement": ("(assumed (= x y))", "after the statement"),
    "a range after the statement": ("(range (= x y))", "after the statement"),
    "a rule after the statement": ("(by-rule instance (= x y) ())", "after the statement"),
    "a rule that is not stated": ("(use-rule (= x y))", "expression"),
    "a second statement": ("(concluded true)", "after the statement"),
    "a step that there is not": ("(believe (= x y))", "not a step"),
    "nothing": ("", "does not reach"),
    "a name that has a meaning": ("(define-fun x () (_ BitVec 3) y)", "has a meaning already"),
    "a definition of another sort": ("(define-fun z () (_ BitVec 4) y)", "not of its sort"),
    "an operator that there is not": ("(infer () ((bvsame x y)) () ())", "has no meaning|no lemma"),
    "a parenthesis": ("(infer", "not closed"),
}


LEMMAS = {
    name: lemma
    for each in (NEGATED, TRANSITIVE, SHARED, SIMPLIFIED, SAME)
    for name, lemma in each.lemmas.items()
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_is_refused(wrong: str) -> None:
    step, why = WRONG[wrong]
    declared = "(declare-fun b () (_ BitVec 1))\n(declare-fun c () (_ BitVec 1))\n"
    with pytest.raises(RefusedError, match=why):
        _followed(f"{declared}{FALSE}{step}\n", LEMMAS)


def test_every_value_of_a_term_has_a_lemma() -> None:
    made = Theorem()
    made.derive("step", "an even number", [Link(z3.Extract(0, 0, DOUBLE) == 0)], each_value_of=Y)
    made.conclude("it is even", Link(z3.Extract(0, 0, DOUBLE) == 0))
    written = argument_of(made)
    assert _followed(written.text, written.lemmas)
    (line,) = (line for line in written.text.splitlines() if line.startswith("(infer"))
    (_, given, claims, ranges, uses) = next(iter(read_expressions(line, "line")))
    assert len(uses) == 8
    for left_out in range(8):
        less = [each for n, each in enumerate(uses) if n != left_out]
        text = written.text.replace(line, _text(["infer", given, claims, ranges, less]))
        with pytest.raises(RefusedError, match="not one for each value"):
            _followed(text, written.lemmas)


def _text(expression: object) -> str:
    if isinstance(expression, list):
        return f"({' '.join(map(_text, expression))})"
    return str(expression)
