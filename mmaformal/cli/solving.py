"""Commands that work an answer out share their limits, what they remember, and how they print it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey, Recordable
from mmaformal.cli.running import answered

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer

AnswerT = TypeVar("AnswerT", bound=Recordable)

#: Megabytes for each solver process.
_MEMORY = 4096


class QueryLimits(TypedDict):
    """The keywords of a query that limit it."""

    timeout: float
    memory: int
    solver: tuple[str, ...] | None


@dataclass(frozen=True)
class Solving:
    """The values of the options of `solving`."""

    timeout: float
    evidence: Path | None
    no_cache: bool
    as_json: bool
    memory: int = _MEMORY
    solvers: tuple[str, ...] = ()
    verbose: bool = False
    table: str | None = None
    smtlib: Path | None = None

    @property
    def limits(self) -> QueryLimits:
        return {"timeout": self.timeout, "memory": self.memory, "solver": self.solvers or None}

    @property
    def printed_at_once(self) -> bool:
        """Whether answers are printed as they come, and not all together as JSON or as a table."""
        return not self.as_json and self.table is None

    def recall(
        self,
        key: RecallKey,
        work: Callable[[], AnswerT],
        *,
        afresh: bool = False,
        whole: Callable[[AnswerT], object] | None = None,
        improvable: bool = False,
    ) -> AnswerT | Recalled:
        """Return the answer given before, or that of `work`, what is proved for it being recorded.

        afresh: do not look for one, as where all of it is to be written to files.  whole, improvable: as `RecallKey`
        takes them.
        """
        with options.remembering_option(self.evidence, self.no_cache) as store:
            kept = store if self.evidence is None and self.smtlib is None and not afresh else None
            brief = not (self.as_json or self.verbose)
            return key.ask(kept, self.timeout, work, whole=whole, improvable=improvable, shipped=brief)

    def show(self, answer: Recordable, status: int) -> int:
        """Print an answer as JSON or for a person; returns the status."""
        whole: Callable[[], str] = getattr(answer, "verbose", answer.__str__)
        text = whole() if self.verbose else str(answer)
        return answered(json.dumps(answer.to_json(), indent=2) if self.as_json else text, status)

    def write_smtlib(self, answer: Answer | Recalled, folder: str = "") -> None:
        """Write what was proved for an answer, where that is wanted, to a folder in the one named."""
        if self.smtlib is not None and not isinstance(answer, Recalled):
            answer.write_smtlib(self.smtlib / folder)


def solving(
    timeout: float,
    of: str = "for everything",
    *,
    solvers: bool = True,
    verbose: bool = True,
    table: bool = False,
    smtlib: bool = True,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Options of a command, which gets them as one `Solving`, `request`; `timeout` is the default, in seconds.

    Without `solvers` it has no --memory and no --solver, without `verbose` no --verbose, and so on.
    """
    chosen = [options.timeout(timeout, of)]
    chosen += [options.memory(_MEMORY), options.solver] if solvers else []
    chosen += [options.evidence, *([options.verbose] if verbose else []), options.json]
    chosen += [*([options.table_options] if table else []), *([options.smtlib] if smtlib else [])]

    def decorated(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def command(**given: object) -> int:
            own = {name: given.pop(name) for name in Solving.__dataclass_fields__ if name in given}
            return function(request=Solving(**own), **given)  # type: ignore[arg-type]

        made: Callable[..., int] = command
        for option in reversed(chosen):
            made = option(made)
        return made

    return decorated
