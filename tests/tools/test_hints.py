"""Hints are counted under whatever name a claim is made (tools/hints.py)."""

from __future__ import annotations

import hints
import pytest

WRAPPER = """
class Step:
    def derive(self, name, claim, given=(), hint=()):
        return self.theory.claim(name, "so", claim, given, [x for x in hint if x])
    def for_each(self, name, claim, cut, values):
        self.derive(name, values, (), [values])
        return [self.derive(name, claim, (), [*cut, values]) for _ in values]
"""
FUNCTION = "def sure(theory, claim, *, terms=()):\n    return theory.claim('n', 's', claim, (), terms)\n"


def lines(text: str, **others: str) -> list[int]:
    """Return the lines of a file's hints."""
    sources = {
        "mmaformal/theory/own.py": text,
        **{f"mmaformal/theory/{name}.py": x for name, x in others.items()},
    }
    return [line for path, line in hints.Hints(sources).all() if path == "mmaformal/theory/own.py"]


@pytest.mark.parametrize(
    "text",
    [
        "theory.claim('n', 's', p, [q], [x])",
        "theory.claim('n', 's', p, hint=[x])",
        "theory.claim_each('n', 's', p, v, [q], [x])",
        "def f(theory):\n    claim = theory.claim; claim('n', 's', p, hint=[x])",
        "def f(theory):\n    of, (y, z) = theory.claim, pair; of('n', 's', p, [q], y)",
        "def f(theory):\n    of, z = theory.claim, 1\n    def g(): return of('n', 's', p, [q], z)",
        "def f(theory, terms):\n    theory.claim('n', 's', terms[0], [q], terms)",  # no more than one, whoever calls it
        "def f(theory, terms):\n    theory.claim('n', 's', p, [q], [terms.x])",
    ],
)
def test_a_hint_is_one(text: str) -> None:
    assert len(lines(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "theory.claim('n', 's', p, [q])",
        "theory.claim('n', 's', p, [q], ())",
        "theory.claim('n', 's', p, hint=propositions([p, q]))",
        "theory.other('n', 's', p, [q], [x])",
        "def f(theory, claim): return claim('n', 's', p, [q], [x])",  # a function of its own
    ],
)
def test_no_other_is(text: str) -> None:
    assert lines(text) == []


def test_what_is_passed_on_is_one_for_each_call() -> None:
    calls = """
    def prove(self):
        derive = self.derive
        derive("n", p)
        derive("n", p, (), [x])
        self.for_each("n", p, [x], v)
        return self.for_each("n", p, [], v)
"""
    assert lines(WRAPPER) == [6]
    assert lines(WRAPPER + calls) == [6, 12, 13]


def test_what_is_passed_on_in_another_file_is_seen() -> None:
    own = "from mmaformal.theory.other import sure as certain\n{}(theory, p, terms=[x])\ncertain(theory, p)\n"
    assert lines(own.format("certain"), other=FUNCTION) == [2]
    assert lines(own.format("sure"), other=FUNCTION) == []  # a function of another name
    assert lines(FUNCTION + "sure(theory, p, terms=x)") == [3]
    assert lines("step.derive('n', p, (), [x])", other=WRAPPER) == [1]
    assert (
        lines("step.derive('n', p, (), [x])", other=WRAPPER, third="def derive(): ...") == []
    )  # or that one
