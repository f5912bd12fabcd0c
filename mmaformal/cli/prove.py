"""`mmaformal prove`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey, brief
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status
from mmaformal.display import clipped, columns, width_to_fit
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer

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

#: Asked of the units that one standard is about, and not by `--all`.
OF_A_STANDARD = ("conformance", "freedom")

#: The exit status of each kind of answer.
_STATUS = {"holds": SETTLED, "fails": REFUTED, "unknown": UNKNOWN}


class _Property(options.ParamKind):
    name = "property"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = (*PROPERTY_NAMES, *OF_A_STANDARD)
        return [CompletionItem(each) for each in names if each.startswith(incomplete.lower())]


def _is_architecture(word: str) -> bool:
    return ARCHITECTURES.canonical(word.partition("@")[0]) is not None


class _AfterProperty(options.ArchitectureName):
    """An architecture; where the property was left out, what comes here is an instruction's name."""

    def convert(
        self, value: Architecture | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Architecture | str:
        before = ctx.params.get("wanted") if ctx is not None else None
        if isinstance(before, str) and _is_architecture(before):
            return value
        return super().convert(value, param, ctx)


@click.command()
@click.argument("wanted", metavar="[PROPERTY]", type=_Property(), required=False)
@click.argument("arch", metavar="[ARCH]", type=_AfterProperty(), required=False)
@options.name(required=False)
@click.option("--list", "listing", is_flag=True, help="List the properties.")
@click.option("--all", "every", is_flag=True, help="Every property of ARCH INSTRUCTION, in one table.")
@options.chain
@options.replace
@options.model
@click.option("--where", multiple=True, hidden=True)
@solving(120.0, table=True)
def prove(
    wanted: str | None,
    arch: Architecture | str | None,
    name: str | None,
    listing: bool,
    every: bool,
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    where: tuple[str, ...],
    request: Solving,
) -> int:
    """Prove a property of an instruction for all inputs, or show one for which it is false.

    \b
    mmaformal prove order-independence h100 HMMA.16816.F32
    mmaformal prove --all h100 HMMA.16816.F32      every property, in one table
    mmaformal prove --list                         the properties
    mmaformal prove conformance riscv vfwbdota.vv.n4  to RISC-V's standard
    mmaformal prove freedom riscv vfwbdota.vv.n64     what it leaves open

    What was proved is recorded, and is not asked again.

    Exit status: 0 Holds, 1 Fails, 3 Unknown, 2 wrong use; with --all, 0 where all are settled.
    """
    if listing:
        return _list(request)
    if where:
        raise UsageError("prove takes no --where: a property is about all inputs (diff takes it)")
    of, named = _about(wanted, arch, name, every)
    instruction = options.instruction_of(of, named, changes, chain)

    if every:
        return _all(instruction, request)
    assert wanted is not None
    answer = _settled(wanted.lower(), instruction, request)
    status = _STATUS[answer.verdict]
    if request.table is not None:
        code = tabulated(request.table, _rows({wanted.lower(): answer}), status)
    else:
        code = request.show(answer, status)
    request.write_smtlib(answer)
    return code


def _settled(name: str, instruction: Instruction, request: Solving) -> Answer | Recalled:
    key = RecallKey("prove", (instruction,), name, *request.solvers)
    return request.recall(key, partial(_asked, name, instruction, request))


def _asked(name: str, instruction: Instruction, request: Solving) -> Answer:
    from mmaformal.queries.properties import property_named
    from mmaformal.solver.asking import watching

    with Status(f"{name}: starting") as status, watching(status.show, status.found):
        return property_named(name).prove(instruction, **request.limits)


def _about(
    wanted: str | None, arch: Architecture | str | None, name: str | None, every: bool
) -> tuple[Architecture, str]:
    """The architecture and the instruction's name; raises UsageError where one of them or the property is missing."""
    properties = f"the properties are {', '.join(PROPERTY_NAMES)}"
    if wanted is not None and _is_architecture(wanted):
        of = f"{wanted} {arch}" if isinstance(arch, str) else f"{wanted} INSTRUCTION"
        if not every:
            raise UsageError(
                f"which property of {wanted}? `mmaformal prove PROPERTY {of}`, or --all; {properties}"
            )
        if not isinstance(arch, str) or name is not None:
            raise UsageError(f"--all proves every property of one instruction: `mmaformal prove --all {of}`")
        return ARCHITECTURES[wanted], arch
    if every:
        raise UsageError("--all proves every property: `mmaformal prove --all ARCH INSTRUCTION` names none")
    if wanted is None:
        raise UsageError(f"prove needs PROPERTY ARCH INSTRUCTION; {properties}")
    names = (*PROPERTY_NAMES, *OF_A_STANDARD)
    if wanted.lower() not in names:
        near = get_close_matches(wanted.lower(), names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PROPERTY_NAMES)}"
        raise UsageError(f"no property {wanted!r}; {hint} (prove --list says what each states)")
    if arch is None or name is None:
        lacks = "ARCH INSTRUCTION" if arch is None else "INSTRUCTION"
        raise UsageError(f"{lacks} is missing: `mmaformal prove {wanted} {arch or 'ARCH'} INSTRUCTION`")
    assert isinstance(arch, Architecture)
    return arch, name


def _all(instruction: Instruction, request: Solving) -> int:
    """Every property of an instruction, a row each as it is settled."""
    answers: dict[str, Answer | Recalled] = {}
    wide = max(map(len, PROPERTY_NAMES))
    for name in PROPERTY_NAMES:
        answers[name] = answer = _settled(name, instruction, request)
        request.write_smtlib(answer, name)
        if not request.printed_at_once:
            continue
        if len(answers) == 1:
            answered(f"{instruction.label}, every property for all inputs:\n", SETTLED)
        left = f"{name:<{wide}}  {answer.verdict.capitalize():<7}"
        room = (width_to_fit() or 120) - len(left) - 2
        answered(f"{left}  {clipped(brief(answer), room)}".rstrip(), SETTLED)
        if request.verbose:
            answered(f"{answer.verbose()}\n", SETTLED)
    if request.table is not None:
        tabulated(request.table, _rows(answers), SETTLED)
    elif request.as_json:
        answered(json.dumps({name: answer.to_json() for name, answer in answers.items()}, indent=2), SETTLED)
    return UNKNOWN if any(answer.verdict == "unknown" for answer in answers.values()) else SETTLED


def _rows(answers: Mapping[str, Answer | Recalled]) -> list[dict[str, object]]:
    """Prints what `--all` says, a line for each property."""
    return [
        {"property": name, "answer": answer.verdict, "found": brief(answer)}
        for name, answer in answers.items()
    ]


def _list(request: Solving) -> int:
    from mmaformal.queries import properties

    every = properties.Properties({**properties.PROPERTIES, **properties.OF_A_STANDARD})
    if request.table is not None:
        return tabulated(request.table, every.rows(), SETTLED)
    statements = {each.name: each.statement for each in every.values()}
    lines = columns([*statements.items()])
    return answered(json.dumps(statements, indent=2) if request.as_json else "\n".join(lines), SETTLED)
