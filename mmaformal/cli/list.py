"""`mmaformal list`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import click

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.architectures.base import is_type_word, takes
from mmaformal.architectures.papers import UnknownSourceError, source_named
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered, tabulated, wrong_use
from mmaformal.listing import (
    architecture_table,
    as_json_object,
    device_table,
    devices_as_json,
    instruction_tables,
    matching,
    matching_table,
    resting_as_json,
    resting_table,
    sources_as_json,
    sources_table,
)


@click.command("list")
@click.argument("wanted", metavar="[ARCH|PATTERN]", type=options.ARCHITECTURE_OR_INSTRUCTION, required=False)
@click.argument("pattern", metavar="[PATTERN]", required=False)
@click.option(
    "--type", "kind", metavar="TYPE", help="Only those whose a and b are of TYPE: fp8, e4m3, fp16+fp32."
)
@click.option("--devices", is_flag=True, help="The GPUs and processors whose names stand for an ARCH.")
@click.option("--sources", is_flag=True, help="The papers and manuals that parameters are taken from.")
@click.option("--source", metavar="NAME", help="What rests on one of these: MMA-Sim, 'Arm ARM', SDM.")
@options.json
@options.table_options
@options.model
def list_(
    wanted: str | None,
    pattern: str | None,
    kind: str | None,
    devices: bool,
    sources: bool,
    source: str | None,
    as_json: bool,
    table: str | None,
) -> int:
    """List the instructions: all, those of ARCH, or those that PATTERN means.

    ARCH is a name of the table, a revision (hopper@paper-v1) or a device: h100, 'RTX 4090', gfx90a (--devices lists
    them). PATTERN is the beginning of a name, a pattern as a shell has them, or a type: HMMA, 'QGMMA*',
    mma.m16n8k16, fp8.
    """
    if devices:
        return _told(devices_as_json, device_table, as_json, table)
    if sources:
        return _told(sources_as_json, sources_table, as_json, table)
    if source is not None:
        with wrong_use(UnknownSourceError):
            name = source_named(source)
        return _told(partial(resting_as_json, name), partial(resting_table, name), as_json, table)
    if kind is not None and not is_type_word(kind):
        raise UsageError(
            f"--type {kind}: no type of that name; fp16, bf16, e4m3, fp8, mxfp8, fp16+fp32 are some"
        )
    if wanted is None and kind is None:
        shown, text = [i for each in ARCHITECTURES.values() for i in each], instruction_tables
    elif wanted is None:
        shown = [i for each in ARCHITECTURES.values() for i in each if takes(i, kind or "")]
        text = partial(matching_table, shown)
    elif pattern is not None or ARCHITECTURES.canonical(wanted.partition("@")[0]) is not None:
        arch = ARCHITECTURES[wanted]
        found = None if pattern is None else matching(pattern, [arch])
        if kind is not None:
            found = [i for i in (arch if found is None else found) if takes(i, kind)]
        shown, text = list(arch if found is None else found), partial(architecture_table, arch, found)
    else:
        try:
            shown = [i for i in matching(wanted) if kind is None or takes(i, kind)]
        except UnknownInstructionError as error:
            said = ARCHITECTURES.not_found(wanted)
            raise UsageError(said if "; there are" not in said else str(error)) from None
        text = partial(matching_table, shown)
    if not shown:
        raise UsageError(f"none of these instructions takes {kind}")
    if table is not None:
        return tabulated(table, [i.row() for i in shown], SETTLED)
    return answered(json.dumps([as_json_object(i) for i in shown], indent=2) if as_json else text(), SETTLED)


def _told(
    rows: Callable[[], list[dict[str, object]]], text: Callable[[], str], as_json: bool, table: str | None
) -> int:
    """Print rows as a table for other programs or as JSON, or a text; return the exit status."""
    if table is not None:
        return tabulated(table, rows(), SETTLED)
    return answered(json.dumps(rows(), indent=2) if as_json else text(), SETTLED)
