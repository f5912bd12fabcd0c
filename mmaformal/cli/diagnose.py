"""`mmaformal diagnose`: which arithmetic gave the rows of a recording."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey, contents
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.signoff import DesignOptions, design_unit, is_design, unit_options
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.queries.diagnose import Diagnosis

#: Random rows that a design gives.
_ROWS = 100_000


@click.command()
@click.argument("files", nargs=-1, metavar="FILE…|DESIGN…", type=options.FILE)
@click.option("--k", type=options.PRODUCTS, metavar="K", help="Products that d of a DESIGN has.")
@unit_options
@click.option(
    "--only", multiple=True, metavar="ALGORITHM", help="Try the models of this algorithm; repeatable."
)
@click.option(
    "--arch",
    type=options.ARCHITECTURE,
    metavar="A",
    help="The architecture, where the file names none; it is not used but to read the file.",
)
@click.option("--instruction", metavar="NAME", help="The instruction, likewise.")
@options.jobs
@options.cluster
@options.model
@solving(120.0, verbose=False, smtlib=False)
@click.option(
    "--order-timeout",
    cls=options.Renamed,
    old=["--orders"],
    type=options.SECONDS,
    hidden=True,
)
def diagnose(
    files: tuple[Path, ...],
    k: int | None,
    types: str | None,
    only: tuple[str, ...],
    arch: Architecture | None,
    instruction: str | None,
    jobs: int | None,
    cluster: str | None,
    request: Solving,
    order_timeout: float | None,
    **given: Unpack[DesignOptions],
) -> int:
    """Find which arithmetic gave the rows of each FILE (.npz), or of a DESIGN, told nothing but their types.

    Every model there is for the types is run on the rows: every algorithm with every value of its parameters. Those
    that explain every row are told, those of one function together, with inputs that tell the others apart. Where none
    does, all orders in which a chain might take the products are searched, for the likeliest parameters. A DESIGN is
    read as `mmaformal signoff` reads it, with --k and --types, and gives 100,000 random rows.

    Exit status: 0 if every file is explained, 1 if nothing explains one, 2 if one cannot be read, 3 if the time was up.
    """
    from mmaformal.executors import workers
    from mmaformal.queries.diagnose import diagnose as diagnosis
    from mmaformal.recordings.read import read

    # what an explanation is known as depends on all the models there are, those of `--model` too
    every = tuple(i for each in ARCHITECTURES.values() for i in each)
    said = [f"--arch {arch.name if arch else None}", f"--instruction {instruction}", *only]
    said.append(f"--order-timeout {order_timeout}")

    def ask(path: Path) -> Diagnosis:
        with Status() as status:
            return diagnosis(
                read(path, architecture=arch.name if arch else None, instruction=instruction, modelled=False),
                only=only or None,
                **request.limits,
                order_timeout=order_timeout,
                jobs=jobs,
                executor=executor,
                progress=status.show,
            )

    def asked(path: Path) -> tuple[Path, Diagnosis | Recalled]:
        key = RecallKey("diagnose", every, *said, *contents([path]), *request.solvers)
        work, whole = partial(ask, path), attrgetter("complete")
        answer = request.recall(key, work, whole=whole, improvable=True)
        if not request.as_json:
            answered("\n".join([path.name, *(f"  {line}" for line in str(answer).splitlines())]), SETTLED)
        return path, answer

    with ExitStack() as stack:
        executor = None if cluster is None else stack.enter_context(workers(cluster, jobs))
        found = [asked(path) for path in stack.enter_context(_recordings(files, k, types, given))]
    return _answered(found, request.as_json)


@contextmanager
def _recordings(
    files: Sequence[Path], k: int | None, types: str | None, given: DesignOptions
) -> Iterator[Sequence[Path]]:
    """The recordings that are meant: those named, or one of a design's rows, which is gone after this block."""
    if not files and not given["lists"]:
        raise UsageError("name a recording, or the files of a DESIGN")
    if not is_design(files, given):
        yield files
        return
    unit = design_unit(files, k, types, given)
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        path = Path(folder) / f"{unit.name}.npz"
        unit.record(path, _ROWS)
        yield [path]


def _answered(found: Sequence[tuple[Path, Diagnosis | Recalled]], as_json: bool) -> int:
    """Print what was found of all files, as JSON, and return the exit status."""
    told = [{"file": str(path), **answer.to_json()} for path, answer in found]
    return answered(json.dumps(told, indent=2), _status(told)) if as_json else _status(told)


def _status(told: Sequence[Mapping[str, object]]) -> int:
    """Return the exit status of what was told of each file."""
    missed = [each for each in told if not each["explained"]]
    return SETTLED if not missed else REFUTED if all(each["complete"] for each in missed) else UNKNOWN
