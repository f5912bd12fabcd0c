"""`mmaformal help`."""

from __future__ import annotations

import click

from mmaformal.cli.running import SETTLED, UsageError, answered


@click.command("help")
@click.argument("wanted", metavar="[COMMAND]", required=False)
@click.pass_context
def help_(context: click.Context, wanted: str | None) -> int:
    """Print the help of COMMAND, or of all."""
    above = context.parent
    assert above is not None
    assert isinstance(above.command, click.Group)
    if wanted is None:
        return answered(above.get_help(), SETTLED)
    command = above.command.get_command(above, wanted)
    if command is None:
        raise UsageError(f"no command {wanted!r}; there are {', '.join(above.command.commands)}")
    with click.Context(command, info_name=wanted, parent=above) as its:
        return answered(its.get_help(), SETTLED)
