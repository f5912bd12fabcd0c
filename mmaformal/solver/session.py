"""The keywords of every query that asks solvers, and how it is set up: `solver`, `memory`, `cache`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, TypedDict

from mmaformal.solver.evidence import EvidenceStore, default_path, recording
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio, Portfolio

#: `solver=`: one solver or several by their names; None: z3 and Bitwuzla.
Solver: TypeAlias = str | Sequence[str] | None
#: `cache=`: True: what was proved is recorded in the user's cache, and is not asked again; a path: in that file.
#: False: nothing is, but in a store that is in use (`with recording(store)`).
Cache: TypeAlias = bool | str | Path


class SolverKeywords(TypedDict, total=False):
    """The keywords of each of a query's questions to solvers, but for its time."""

    solver: Solver
    memory: int


@contextmanager
def remembering(cache: Cache) -> Iterator[None]:
    """Within this block `cache` is in use.  Raises EvidenceError where it cannot be read or written."""
    if cache is False:
        yield
        return
    with EvidenceStore(default_path() if cache is True else cache) as store, recording(store):
        yield


@contextmanager
def session(
    solver: Solver = None,
    memory: int = DEFAULT_MEMORY,
    cache: Cache = False,
    kind: type[Portfolio] = LazyPortfolio,
) -> Iterator[Portfolio]:
    """Gives solvers to ask: `memory` megabytes for each process of `solver`, within `cache`.

    Raises NoSolverError if no such solver is installed, ValueError for what is no solver, EvidenceError as
    `remembering`.
    """
    with remembering(cache), kind(solver, memory) as portfolio:
        yield portfolio


@contextmanager
def sessions(
    solver: Solver = None, memory: int = DEFAULT_MEMORY, cache: Cache = False
) -> Iterator[SolverKeywords]:
    """Gives the keywords of questions that each have a session of their own, within one `cache`.

    Raises what `session` does.
    """
    with session(solver, memory, cache):
        yield {"solver": solver, "memory": memory}
