"""Write tests/store/thorough.txt: the tests that the quick suite leaves out (`tests/support/thorough.py`).

    python tools/thorough.py                  run all but the slow tests, and write down what each takes: minutes
    python tools/thorough.py --costs FOLDER   by what was written down before

The costliest are left out, until the others take no more than `--seconds` of processor time; those of `ALWAYS` stay.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "tests" / "store" / "thorough.txt"

#: of the 600 seconds that two processors have in five minutes; the kernels that a fresh clone compiles take some 200,
#: whichever test needs them first, starting and collecting 100
SECONDS = 270.0

#: never left out: an edit anywhere may break what these say of the package's text and classes
ALWAYS = (
    "tests/kernels/test_widths.py",
    "tests/package/test_display.py",
    "tests/package/test_lengths.py",
    "tests/package/test_types.py",
)


def costliest(costs: Mapping[str, float], seconds: float) -> list[str]:
    """Return the names of the fewest tests without which the others take no more than so many seconds."""
    left, found = sum(costs.values()), []
    for name in sorted(
        (each for each in costs if not each.startswith(ALWAYS)), key=lambda each: (-costs[each], each)
    ):
        if left <= seconds:
            break
        found.append(name)
        left -= costs[name]
    return sorted(found)


def read(folder: Path) -> dict[str, float]:
    """Return the seconds that each test took, by its name."""
    lines = [line for path in folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    return {name: float(taken) for taken, _, name in (line.partition(" ") for line in lines)}


def run(folder: Path) -> int:
    """Run all but the slow tests; returns pytest's exit status."""
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-m", "not slow"]
    path = os.pathsep.join(filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))))
    command = [*pytest, "-p", "support.costs", f"--write-costs={folder}"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def main(argv: Sequence[str] | None = None) -> int:
    """Write the list, say what is left; the exit status is pytest's."""
    parser = argparse.ArgumentParser(prog="thorough.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--costs", type=Path, metavar="FOLDER", help="what `--write-costs` wrote there")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of the quick suite (default: %(default)g)"
    )
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as made:
        folder = args.costs or Path(made)
        status = 0 if args.costs else run(folder)
        costs = read(folder)
    found = costliest(costs, args.seconds)
    PATH.write_text("\n".join(found) + "\n", encoding="utf-8")
    rest = sum(taken for name, taken in costs.items() if name not in set(found))
    print(
        f"{len(found)} of {len(costs)} tests are thorough; the others take {rest:.0f} s: {PATH.relative_to(ROOT)}"
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
