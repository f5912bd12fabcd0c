"""`mmaformal prove`."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered
from mmaformal.cli.terminal import Status, told
from mmaformal.display import columns

#: Known here, so that completion need not import a solver.
PROPERTY_NAMES = (
    "order-independence",
    "order-independence-across-blocks",
    "commutativity",
    "sign-symmetry",
    "zero-padding",
    "power-of-two-scaling",
    "no-nan-from-finite",
    "never-minus-zero",
    "every-number",
    "accumulator-width",
    "monotonicity-in-c",
    "monotonicity-in-a-product",
    "exactness",
    "error-bound",
    "lossless-width",
    "correct-rounding",
    "faithful-rounding",
    "correct-rounding-of-each-step",
)


class _Property(options.Kind):
    name = "property"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(each) for each in PROPERTY_NAMES if each.startswith(incomplete.lower())]


@click.command()
@click.argument("wanted", metavar="[PROPERTY]", type=_Property(), required=False)
@options.arch(required=False)
@options.name(required=False)
@click.option("--list", "listing", is_flag=True, help="What properties there are.")
@options.chain
@options.replace
@options.model
@click.option("--where", multiple=True, hidden=True)
@options.timeout(120.0)
@options.memory(4096)
@options.solver
@options.evidence
@options.verbose
@options.json
@options.smtlib
def prove(
    wanted: str | None,
    arch: Architecture | None,
    name: str | None,
    listing: bool,
    chain: int | None,
    changes: tuple[options.Change, ...],
    where: tuple[str, ...],
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    verbose: bool,
    as_json: bool,
    smtlib: Path | None,
) -> int:
    """Prove a property of an instruction for all inputs, or show one for which it is false.

    What was proved is recorded, and is not asked again.

    Exit status: 0 Holds, 1 Fails, 3 Unknown, 2 wrong use.
    """
    from mmaformal.queries.properties import PROPERTIES
    from mmaformal.queries.property import STATUS

    if listing:
        statements = {each.name: each.statement for each in PROPERTIES.values()}
        return answered(json.dumps(statements, indent=2) if as_json else _table(statements), SETTLED)
    if where:
        raise UsageError("prove takes no --where: a property is about all inputs (diff takes it)")
    if wanted is None or arch is None or name is None:
        raise UsageError(
            "prove needs a property, an architecture and an instruction; --list shows the properties"
        )
    if wanted.lower() not in PROPERTIES:
        near = get_close_matches(wanted.lower(), PROPERTIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PROPERTIES)}"
        raise UsageError(f"no property {wanted!r}; {hint} (prove --list says what each states)")
    instruction = options.instruction_of(arch, name, changes, chain)

    from mmaformal.solver.asking import watching

    with options.remembering(evidence, no_cache), Status() as status, watching(status.show):
        answer = PROPERTIES[wanted.lower()].prove(
            instruction, timeout=timeout, backends=solvers or None, memory=memory
        )
    text = json.dumps(answer.to_json(), indent=2) if as_json else told(answer, verbose)
    code = answered(text, STATUS[type(answer)])
    if smtlib is not None:
        answer.write_smtlib(smtlib)
    return code


def _table(statements: dict[str, str]) -> str:
    return "\n".join(columns([*statements.items()]))
