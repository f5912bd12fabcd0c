"""`mmaformal show`."""

from __future__ import annotations

import json

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered
from mmaformal.cli.terminal import width
from mmaformal.corridor import corridor_text
from mmaformal.listing import (
    architecture_table,
    as_json_object,
    instruction_in_words,
    spelled_examples,
    spellings,
)
from mmaformal.survival import survival


@click.command()
@options.arch()
@options.name(required=False)
@options.chain
@options.replace
@options.model
@options.json
def show(
    arch: Architecture,
    name: str | None,
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    as_json: bool,
) -> int:
    """Show a model in words, each parameter with what it means and its source.

    INSTRUCTION may be the beginning of a name, a pattern ('QGMMA*') or a type (fp8); where that means several, they are
    listed; without one, all of ARCH are. `mmaformal show datapath` and `show emulation` say what can be spelled. A
    terminal that is wide enough shows the accumulator of a step drawn to scale.
    """
    if name is None:
        if as_json:
            return answered(json.dumps([as_json_object(i) for i in arch], indent=2), SETTLED)
        text = spelled_examples(arch) if spellings(arch) else architecture_table(arch)
        return answered(text, SETTLED)
    found = arch.find(name)
    if len(found) > 1 and not changes and chain is None:
        several = [as_json_object(i) for i in found]
        return answered(
            json.dumps(several, indent=2) if as_json else architecture_table(arch, found), SETTLED
        )
    only = found[0].name if len(found) == 1 else name
    instruction = options.instruction_of(arch, only, changes, chain)
    if as_json:
        return answered(json.dumps(as_json_object(instruction), indent=2), SETTLED)
    drawn = corridor_text(instruction.spec, width() or 0)
    told = [instruction_in_words(instruction), *([f"drawn to scale:\n{drawn}"] if drawn else [])]
    if drawn and (kept := survival(instruction.spec)) is not None:
        told.append(
            f"bits kept of {kept.bits} of a product, by how much larger c's exponent is:\n  {kept.in_words}"
        )
    return answered("\n".join(told), SETTLED)
