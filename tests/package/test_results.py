"""Every query gives back a `Result`: what it says of itself, and that its forms say the same."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType

import pytest

import mmaformal
from mmaformal import Result, ampere, check, hopper, probe, volta
from mmaformal.queries.max_difference import Apart, max_difference
from mmaformal.queries.signoff import Simulated
from mmaformal.recordings.report import Checks

#: Functions that ask nothing, and what they give back instead.
NO_QUERIES = {
    "matmul": "a matrix",
    "replay": "a matrix",
    "record": "a recording",
    "from_rtl": "a design as a unit",
}


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for name in mmaformal.__all__:
        found = getattr(mmaformal, name)
        if inspect.isfunction(found):
            yield name, found


def returned(function: Callable[..., object]) -> tuple[type, ...]:
    """The classes that a function's annotation says it returns."""
    annotation = inspect.signature(function).return_annotation
    kind = eval(annotation, vars(sys.modules[function.__module__]))
    return kind.__args__ if isinstance(kind, UnionType) else (kind,)


@pytest.mark.parametrize("name", [name for name, _ in functions() if name not in NO_QUERIES])
def test_every_query_gives_back_a_result(name: str) -> None:
    assert all(issubclass(kind, Result) for kind in returned(getattr(mmaformal, name)))


def test_what_is_no_query_is_there() -> None:
    there = dict(functions())
    assert set(NO_QUERIES) <= set(there)
    for name in NO_QUERIES:
        assert not any(isinstance(kind, type) and issubclass(kind, Result) for kind in returned(there[name]))


def all_results(kind: type = Result) -> set[type]:
    return {kind}.union(*(all_results(each) for each in kind.__subclasses__()))


def test_every_result_has_a_verdict_and_plain_values() -> None:
    for kind in all_results() - {Result}:
        assert kind.verdict is not Result.verdict, kind
        if kind is not mmaformal.Answer:
            assert kind.to_json is not Result.to_json, kind


def test_forms_say_the_same(tmp_path: Path) -> None:
    same, apart = max_difference(hopper["HMMA.16816.F32"], hopper["HMMA.16816.F32"]), Simulated("r", 2, 1, "")
    assert isinstance(same, Apart)
    assert (same.verdict, apart.verdict) == ("equal", "mismatch")
    results: list[Result] = [
        same,
        apart,
        probe(volta["HMMA.884.F32.F32"]),
        check("recordings-of-nothing.npz"),
    ]
    for each in results:
        assert each.json(tmp_path / "x.json") == (tmp_path / "x.json").read_text()
        assert json.loads(each.json()) == json.loads(json.dumps(each.to_json()))
        assert each.to_html(tmp_path / "x.html") == each._repr_html_()
        assert (tmp_path / "x.html").exists()
        assert each.to_csv().count("\n") > len(each.rows())
        assert "\n" not in each.summary
    assert same.table() == {"verdict": ["equal"], "summary": [same.summary], "bound": [0.0], "found": [0.0]}
    assert [str(each.name) for each in same.numbers] == ["bound", "found"]
    assert isinstance(results[-1], Checks)
    assert results[-1].verdict == "unknown"
    assert ampere.rows()  # a table, and no result
