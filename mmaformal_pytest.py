"""The pytest plugin of mmaformal: imports nothing of it until a test does.

- `--mmaformal-unit "h100 HMMA.16816.F32"` (or `mmaformal_unit` in pytest's configuration): the fixture `mmaformal_unit`
  is that instruction, so that one file of tests is run for several devices;
- where tests used `mmaformal.testing`, a line at the end of the run says how many products matched bit for bit, and how
  much of their proved bounds the others used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mmaformal.instruction import Instruction

_SEEN = "mmaformal.testing.seen"
_PROPERTY = "mmaformal"


def _keep_as_written() -> None:
    """Keep pytest from rewriting assertions in all of mmaformal, as it does in the packages of plugins: numba compiles
    functions of ours as they are written, and a rewritten module is imported more slowly."""
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("mmaformal")


_keep_as_written()


def pytest_addoption(parser: pytest.Parser) -> None:
    help_ = 'the unit of the fixture mmaformal_unit: "h100 HMMA.16816.F32"'
    parser.getgroup("mmaformal").addoption("--mmaformal-unit", metavar="NAME", default=None, help=help_)
    parser.addini("mmaformal_unit", help_, default="")


@pytest.fixture(scope="session")
def mmaformal_unit(request: pytest.FixtureRequest) -> Instruction:
    """The instruction that `--mmaformal-unit`, or `mmaformal_unit` in the configuration, names."""
    config = request.config
    name = config.getoption("--mmaformal-unit") or config.getini("mmaformal_unit")
    if not name:
        pytest.skip('no unit: --mmaformal-unit "h100 HMMA.16816.F32"')
    from mmaformal.architectures.meant import instruction_meant

    try:
        return instruction_meant(name)
    except (KeyError, ValueError) as error:
        raise pytest.UsageError(f"--mmaformal-unit: {error}") from None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note what a test tested, where it used `mmaformal.testing`."""
    yield
    module = sys.modules.get(_SEEN)
    if module is not None and (found := module.newly_seen()):
        item.user_properties.append((_PROPERTY, found))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell how many products matched, and how much of their bounds others used."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, [])]
    seen = [
        (each.nodeid, one)
        for each in reports
        if getattr(each, "when", "") == "call"
        for name, found in each.user_properties
        if name == _PROPERTY
        for one in found
    ]
    matches = [one for _, one in seen if one["what"] == "matches"]
    within = [(one["used"], one["unit"], node) for node, one in seen if one["what"] == "within"]
    told = []
    if matches:
        elements = sum(one["elements"] for one in matches)
        told.append(f"{len(matches)} product{'s' * (len(matches) != 1)} ({elements:,} elements) bit for bit")
    if within:
        used, unit, node = max(within)
        told.append(f"{len(within)} within their bounds, at most {used:.3g} of one used ({unit}, {node})")
    if told:
        terminalreporter.write_line(f"mmaformal: {'; '.join(told)}")
