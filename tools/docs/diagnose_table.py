"""Every recording diagnosed: which model is named first, and how many explain every row of it.

python tools/docs/diagnose_table.py ../shared/recordings       # the table of docs/hardware.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, answered, run_command
from mmaformal.queries.diagnose import Diagnosis, diagnose
from mmaformal.recordings import RecordingError, read

HEAD = ["| file | rows | models tried | that explain all | named first | s |", "|---|---|---|---|---|---|"]


def files(folder: Path) -> list[Path]:
    """The recordings of rows under a folder; what is none, such as whole products, is left out."""
    found = []
    for path in sorted(folder.rglob("*.npz")):
        try:
            read(path)
        except RecordingError:
            continue
        found.append(path)
    return found


def line(name: str, found: Diagnosis) -> str:
    """A row of the table.  Models are counted but for what zeros and special values do."""
    first = found.classes[0].model.text if found else "—"
    counts = f"{found.recorded_rows:,} | {found.tried:,} | {found.families_in_all:,}"
    return f"| {name} | {counts} | {first} | {found.seconds:.0f} |"


@click.command(help="Diagnose every recording of rows under FOLDER.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@options.timeout(15.0, "for solvers, of each recording")
@click.option("--jobs", type=click.IntRange(1), default=2, help="Worker processes (default 2).")
def command(folder: Path, timeout: float, jobs: int) -> int:
    lines, explained = list(HEAD), True
    for path in files(folder):
        found = diagnose(path, timeout=timeout, jobs=jobs)
        lines.append(line(str(path.relative_to(folder).with_suffix("")), found))
        print(lines[-1], file=sys.stderr, flush=True)
        explained &= bool(found)
    return answered("\n".join(lines), SETTLED if explained else REFUTED)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 if every recording is explained, 1 if not."""
    return run_command(command, sys.argv[1:] if argv is None else argv, "diagnose_table")


if __name__ == "__main__":
    sys.exit(main())
