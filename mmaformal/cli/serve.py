"""`mmaformal serve`."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, printed, wrong_use
from mmaformal.cli.terminal import said


@click.command()
@click.argument("site", metavar="[DIR]", type=options.FILE, required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Default 8000; 0 takes a free one.")
@click.option(
    "--recording",
    "recordings",
    type=options.FILE,
    multiple=True,
    metavar="FILE",
    help="To be checked; repeatable.",
)
@click.option(
    "--design",
    "designs",
    multiple=True,
    metavar="ARGUMENTS",
    help="To be signed off: what `mmaformal signoff` takes, in quotes; repeatable.",
)
@options.model_options(told=True)
def serve(
    site: Path | None,
    port: int,
    recordings: tuple[Path, ...],
    designs: tuple[str, ...],
    models: tuple[str, ...],
) -> int:
    """Show a site that `mmaformal atlas build` wrote, on 127.0.0.1 alone.

    DIR is site, unless it is given. With --model, a site of the tables and
    your own units is built, for as long as it is shown. Its page of questions
    runs diff, prove, check and signoff here, at most two at a time. Ctrl-C
    ends it, with what it started.
    """
    from mmaformal.site.build import build_site
    from mmaformal.site.bundle import NoPackageError
    from mmaformal.site.jobs import Served
    from mmaformal.site.serve import HOST, server

    if len({each.name for each in recordings}) < len(recordings):
        raise UsageError("two recordings have one name")
    for design in designs:
        try:
            shlex.split(design)
        except ValueError as error:
            raise UsageError(f"--design {design}: {str(error).lower()}; it is what a shell takes") from None
    with ExitStack() as stack:
        if site is None and models:
            site = Path(stack.enter_context(TemporaryDirectory(prefix="mmaformal-site-")))
            with wrong_use(NoPackageError, ValueError):
                build_site(site, told=said)
        site = site or Path("site")
        if not (site / "index.html").is_file():
            raise UsageError(f"{site} has no index.html: `mmaformal atlas build --out {site}` writes one")
        try:
            found = server(site, port, Served(models, recordings, designs))
        except OSError as error:
            raise UsageError(f"port {port} of {HOST}: {error.strerror}") from None
        printed(f"http://{HOST}:{found.server_address[1]}/", SETTLED)
        with found:
            found.serve_forever()
    return SETTLED
