"""Run mypy on the package as it is installed: `encodings/` and `queries/` stand under `mmaformal/` there, which mypy
cannot see from the checkout (docs/design.md, "Packaging").  Links the sources into one tree and checks that."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "mmaformal": "mmaformal",
    "encodings/executable": "mmaformal/encodings/executable",
    "encodings/smt": "mmaformal/encodings/smt",
    "queries": "mmaformal/queries",
}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        for source, target in PLACES.items():
            for path in (ROOT / source).rglob("*.py"):
                link = Path(folder) / target / path.relative_to(ROOT / source)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
        config = ROOT / "pyproject.toml"
        cache = ROOT / ".mypy_cache"
        command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(cache)]
        return subprocess.run(
            [*command, "-p", "mmaformal", *sys.argv[1:]], cwd=folder, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
