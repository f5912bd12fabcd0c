"""`mmaformal serve`."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, printed


@click.command()
@click.argument("site", metavar="[DIR]", type=options.FILE, default="site")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Default 8000; 0 takes a free one.")
def serve(site: Path, port: int) -> int:
    """Show a site that `mmaformal atlas build` wrote, on 127.0.0.1 alone, until Ctrl-C.

    DIR is site, unless it is given.
    """
    from mmaformal.site.serve import HOST, server

    if not (site / "index.html").is_file():
        raise UsageError(f"{site} has no index.html: `mmaformal atlas build --out {site}` writes one")
    try:
        found = server(site, port)
    except OSError as error:
        raise UsageError(f"port {port} of {HOST}: {error.strerror}") from None
    printed(f"http://{HOST}:{found.server_address[1]}/", SETTLED)
    with found:
        found.serve_forever()
    return SETTLED
