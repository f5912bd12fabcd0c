"""Run mypy on the package as it is installed: `encodings/` and `queries/` stand under `mmaformal/` there, which mypy
cannot see from the checkout (docs/design.md, "Packaging").  Links the sources into one tree and checks that."""

from __future__ import annotations

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


def main() -> int:
    tree = ROOT / ".mypy_cache" / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for source, target in PLACES.items():
        for path in (ROOT / source).rglob("*.py"):
            link = tree / target / path.relative_to(ROOT / source)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), "-p", "mmaformal", *sys.argv[1:]]
    return subprocess.run(command, cwd=tree, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
