"""Fixtures of every test: Hypothesis times no examples, and no solver process outlives the test that started it."""

from __future__ import annotations

import importlib
import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support.known import pytest_addoption as add_options_of_known
from support.known import (  # noqa: F401 - hooks
    pytest_configure,
    pytest_configure_node,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
    pytest_unconfigure,
)
from support.solvers import solver_processes
from support.thorough import leave_out

from mmaformal.cli import recall, terminal
from mmaformal.facts import laws
from mmaformal.kernels import first, rows
from mmaformal.proof.rules import Theory
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio

# The machines that run this are shared and slow at times; what is slow is told by the suite's own limit.
settings.register_profile("mmaformal", deadline=None)
settings.load_profile("mmaformal")


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a machine takes is not what a test of stderr is about (tests/cli/test_terminal.py has progress)."""
    monkeypatch.setattr(terminal, "EVERY", math.inf)


@pytest.fixture(autouse=True)
def no_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer no test what another one asked (tests/cli/test_recall.py has what is kept)."""
    monkeypatch.setattr(recall, "enabled", False)


# What a shell starts in the background ignores Ctrl-C, and so would the processes that tests send one to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options_of_known(parser)
    parser.addoption("--thorough", action="store_true", help="run the tests that the quick suite leaves out")
    parser.addoption("--every", action="store_true", help="run these and the quick suite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out(config, items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("parquet"):
        pytest.importorskip("pyarrow")


def has_children() -> bool:
    """Whether this process has started any that is there still; so too where it cannot be told (not on Linux)."""
    try:
        lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    except OSError:  # a thread ended meanwhile
        return True
    return not lists or any(lists)


@pytest.fixture(autouse=True)
def _no_solver_is_left() -> Iterator[None]:
    yield
    left = solver_processes(os.getpid()) if has_children() else []
    assert not left, f"solver processes {left} are still running"


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests prove apart from the user's cache: it is neither looked up nor recorded there."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
            patch.setenv(name, str(tmp_path_factory.mktemp("cache")))
        patch.setattr(
            rows, "PATIENCE", float("inf")
        )  # few rows are run by the executable, which tests change
        patch.setattr(
            first, "MANY", 0
        )  # and products by compiled kernels (tests/kernels/test_first.py has others)
        yield


@pytest.fixture
def solvers() -> Iterator[LazyPortfolio]:
    with LazyPortfolio() as portfolio:
        yield portfolio


@pytest.fixture
def theory() -> Iterator[Theory]:
    with LazyPortfolio(["bitwuzla"]) as portfolio:
        yield Theory(Asker(portfolio, 400.0))


@pytest.fixture
def terms_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`find_difference` says `Equal` of the SMT encoding's terms, without the proof that the encodings are equal."""
    module = importlib.import_module("mmaformal.queries.find_difference")
    monkeypatch.setattr(module, "equal_in_both_encodings", lambda answer, *_: answer)


@pytest.fixture(autouse=True)
def _laws_are_of_these_encodings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget what was proved of models where encodings are changed, before and after."""
    changes = "monkeypatch" in request.fixturenames
    if changes:
        laws.forget_laws()
    yield
    if changes:
        laws.forget_laws()
