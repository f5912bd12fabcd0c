"""`mmaformal atlas`."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered, wrong_use


@click.group()
def atlas() -> None:
    """Write a site of all instructions, with a playground that runs them in a browser (docs/site.md)."""


@atlas.command()
@click.option("--out", required=True, type=options.OUTPUT_FOLDER, metavar="DIR", help="Write the site there.")
@click.option(
    "--pyodide",
    type=options.FILE,
    metavar="DIR",
    help="The npm package pyodide, Python for browsers (default: node_modules/pyodide).",
)
@click.option(
    "--properties",
    type=options.FILE,
    metavar="FILE",
    help="A table as tables/properties.md (default: that of the checkout).",
)
def build(out: Path, pyodide: Path | None, properties: Path | None) -> int:
    """Write the pages, their data, and the playground.

    `mmaformal serve DIR` shows them.

    Exit status: 0, or 2 for wrong use.
    """
    from mmaformal.site.build import build
    from mmaformal.site.bundle import NoPyodideError

    with wrong_use(NoPyodideError, ValueError):
        return answered(build(out, pyodide=pyodide, properties=properties).summary, SETTLED)
