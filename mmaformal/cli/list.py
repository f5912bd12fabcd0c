"""`mmaformal list`."""

from __future__ import annotations

import json
from functools import partial

import click

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered
from mmaformal.listing import (
    architecture_table,
    as_json_object,
    instruction_tables,
    matching,
    matching_table,
)


@click.command("list")
@click.argument("wanted", metavar="[ARCH|PATTERN]", type=options.ARCHITECTURE_OR_INSTRUCTION, required=False)
@click.argument("pattern", metavar="[PATTERN]", required=False)
@options.json
@options.model
def list_(wanted: str | None, pattern: str | None, as_json: bool) -> int:
    """What instructions there are: all, those of ARCH, or those that PATTERN means.

    PATTERN is the beginning of a name, or a pattern as a shell has them: HMMA, 'QGMMA*', mma.m16n8k16. It is looked for
    on ARCH, or on all architectures. ARCH may be a revision, such as hopper@paper-v1.
    """
    if wanted is None:
        shown, text = [i for each in ARCHITECTURES.values() for i in each], instruction_tables
    elif pattern is not None or wanted.partition("@")[0] in ARCHITECTURES:
        arch = ARCHITECTURES[wanted]
        found = None if pattern is None else matching(pattern, [arch])
        shown, text = list(arch if found is None else found), partial(architecture_table, arch, found)
    else:
        try:
            shown = matching(wanted)
        except UnknownInstructionError as error:
            raise UsageError(f"{ARCHITECTURES.not_found(wanted)}; and {error}") from None
        text = partial(matching_table, shown)
    return answered(json.dumps([as_json_object(i) for i in shown], indent=2) if as_json else text(), SETTLED)
