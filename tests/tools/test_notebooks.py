"""The notebooks of notebooks/ run, each in a kernel of its own, and print what they were saved with."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="no nbformat: pip install 'mmaformal[notebooks]'")
nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install 'mmaformal[notebooks]'")
pytest.importorskip("ipykernel", reason="no ipykernel: pip install 'mmaformal[notebooks]'")

BOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


def _printed(book: object) -> str:
    cells = [cell for cell in book.cells if cell.cell_type == "code"]  # type: ignore[attr-defined]
    outputs = [output for cell in cells for output in cell.outputs]
    return "".join(each.text for each in outputs if each.get("name") == "stdout")


def test_there_are_two() -> None:
    assert len(BOOKS) == 2


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    saved = _printed(book)
    nbclient.NotebookClient(book, timeout=240, kernel_name="python3").execute()
    assert _printed(book) == saved != ""
