"""The files that the playground needs in a browser, found by running it, as one archive."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from mmaformal.display import counted

#: Starts the playground as a browser does: stand-ins first, then all that it imports.
_START = """
import json, runpy, sys
runpy.run_path({absent!r})["install"]()
from mmaformal.encodings import part, with_part
from mmaformal.site import absent, playground
for name in ("executable", "renderer"):
    for algorithm in with_part(name):
        part(algorithm, name)
found = {{name: module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "mmaformal"}}
print(json.dumps(found))
"""


class NoPackageError(Exception):
    """A folder has not the files of an npm package; the message says which ones are missing."""


def bundled_modules() -> dict[str, Path]:
    """The modules of this package that the playground imports, by name, with their files."""
    here = Path(__file__).parent
    start = _START.format(absent=str(here / "absent.py"))
    path = str(here.parent.parent)
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{start}"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(ran.stdout)
    return {name: Path(file) for name, file in sorted(found.items())}


def archive() -> bytes:
    """The modules as a zip archive; equal files give equal bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in bundled_modules().items():
            inside = name.replace(".", "/") + ("/__init__.py" if file.name == "__init__.py" else ".py")
            packed.writestr(zipfile.ZipInfo(inside), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def package_files(folder: Path, package: str, names: Sequence[str]) -> list[Path]:
    """The files of these names in a folder of an npm package.  Raises NoPackageError."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise NoPackageError(
            f"{folder} lacks {counted(len(missing), 'file')} of {package}: {', '.join(missing)}"
        )
    return [folder / name for name in names]
