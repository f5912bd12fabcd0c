"""`mmaformal completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mmaformal.cli.running import COMPLETE_VARIABLE, SETTLED, printed


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print what makes a shell complete commands, options, architectures, instructions and properties.

    \b
    bash:  eval "$(mmaformal completion bash)"      in ~/.bashrc
    zsh:   eval "$(mmaformal completion zsh)"       in ~/.zshrc
    fish:  mmaformal completion fish | source       in ~/.config/fish/config.fish
    """
    script = get_completion_class(shell)
    assert script is not None
    return printed(script(context.find_root().command, {}, "mmaformal", COMPLETE_VARIABLE).source(), SETTLED)
