"""Run mypy and import-linter on the package as it is imported (docs/design.md, "Layers"), mypy on tools too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_CONFIG = str(ROOT / "pyproject.toml")


def main() -> int:
    tools = [word for path in sorted((ROOT / "tools").rglob("*.py")) for word in ("-m", path.stem)]
    mypy = [sys.executable, "-m", "mypy", "--config-file", _CONFIG, "-p", "mmaformal", *tools, *sys.argv[1:]]
    linter = str(Path(sys.executable).with_name("lint-imports"))
    imports = [linter, "--config", _CONFIG, "--no-cache", "--no-logo"]
    places = os.pathsep.join(filter(None, (str(ROOT / "tools"), os.environ.get("PYTHONPATH"))))
    known = os.environ | {"PYTHONPATH": places}  # where the contracts are
    return max(subprocess.run(each, cwd=ROOT, check=False, env=known).returncode for each in (mypy, imports))


if __name__ == "__main__":
    sys.exit(main())
