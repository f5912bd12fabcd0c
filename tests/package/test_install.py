"""The package as it is installed: from a clone by pip, and as a type checker sees it from another folder."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
USER = """\
from mmaformal import hopper
from mmaformal.encodings.executable import dot_add
from mmaformal.queries.constraints import finite

reveal_type(hopper)
reveal_type(finite)
"""


@pytest.fixture
def setup_arguments(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What setup.py gives to setuptools, in a folder."""
    setuptools = pytest.importorskip(
        "setuptools", reason="setuptools builds the package, and is not installed here"
    )

    def arguments(folder: Path) -> dict[str, Any]:
        given: dict[str, Any] = {}
        monkeypatch.setattr(setuptools, "setup", given.update)
        monkeypatch.chdir(folder)
        runpy.run_path(str(ROOT / "setup.py"))
        return given

    return arguments


@pytest.mark.parametrize("part", ["queries", "encodings/smt", "encodings/executable"])
def test_folders_beside_the_package_are_linked_into_it(part: str) -> None:
    assert (ROOT / "mmaformal" / part).samefile(ROOT / part)


def test_an_install_has_the_same_packages_with_and_without_symbolic_links(
    setup_arguments: Any, tmp_path: Path
) -> None:
    linked = setup_arguments(ROOT)
    for package in linked["packages"]:
        folder = tmp_path / package.replace(".", "/")
        if not {"queries", "smt", "executable"} & set(folder.parts):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
    (tmp_path / "mmaformal" / "queries").write_text("../queries")  # a link, where Git makes none
    mapped = setup_arguments(tmp_path)
    assert linked["packages"] == mapped["packages"]
    assert linked["package_dir"] == {"": "."}
    for package, folder in mapped["package_dir"].items():
        assert (ROOT / package.replace(".", "/")).samefile(ROOT / folder)


@pytest.mark.slow
def test_a_type_checker_finds_the_package_from_another_folder(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", "--no-deps"]
    installed = subprocess.run([*pip, "--editable", ROOT], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"pip installs nothing here: {installed.stderr.strip().splitlines()[-1]}")
    (tmp_path / "user.py").write_text(USER)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "user.py"]
    checked = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert 'Revealed type is "mmaformal.architectures.base.Architecture"' in checked.stdout
    assert "mmaformal.queries.constraints.finite" in checked.stdout
