"""Run mypy and import-linter on the package as it is installed.

`encodings/` and `queries/` stand under `mmaformal/` there, which neither sees from the checkout (docs/design.md,
"Packaging").  Links the sources into one tree and checks that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "mmaformal": "mmaformal",
    "encodings/executable": "mmaformal/encodings/executable",
    "encodings/smt": "mmaformal/encodings/smt",
    "queries": "mmaformal/queries",
}
_CONFIG = str(ROOT / "pyproject.toml")


def link_sources(tree: Path) -> None:
    """Make the layout of the installed package, of links to the sources."""
    shutil.rmtree(tree, ignore_errors=True)
    for source, target in PLACES.items():
        for path in (ROOT / source).rglob("*.py"):
            link = tree / target / path.relative_to(ROOT / source)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def main() -> int:
    tree = ROOT / ".mypy_cache" / "tree"
    link_sources(tree)
    mypy = [sys.executable, "-m", "mypy", "--config-file", _CONFIG, "-p", "mmaformal"]
    mypy += ["--cache-dir", str(ROOT / ".mypy_cache"), *sys.argv[1:]]
    linter = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--config",
        _CONFIG,
        "--no-cache",
        "--no-logo",
    ]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return max(
        subprocess.run(mypy, cwd=tree, check=False).returncode,
        subprocess.run(linter, cwd=tree, env=environment, check=False).returncode,
    )


if __name__ == "__main__":
    sys.exit(main())
