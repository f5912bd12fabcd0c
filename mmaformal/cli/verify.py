"""`mmaformal verify`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Unpack

import click

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.cli.running import SETTLED, UsageError, answered, tabulated
from mmaformal.solver.portfolio import BACKENDS

if TYPE_CHECKING:
    from mmaformal.cli.verification import Limits


@click.command()
@options.arch(required=False)
@options.name(required=False)
@click.option("--all", "everything", is_flag=True, help="Every instruction there is.")
@options.jobs
@options.cluster
@options.evidence
@options.model
@click.option(
    "--smtlib",
    type=options.OUTPUT_FOLDER,
    metavar="DIR",
    help="Write each obligation as SMT-LIB 2, named by its hash.",
)
@click.option(
    "--confirm",
    is_flag=False,
    flag_value="",
    type=click.Choice(("", *BACKENDS)),
    metavar="[SOLVER]",
    help="Put each obligation to the other solvers too, until one confirms it (to this one alone, where it was not "
    "the first).",
)
@click.option(
    "--confirm-timeout",
    type=options.SECONDS,
    hidden=True,
)
@options.timeout(600.0, "for each obligation, half as many to confirm one")
@options.memory(2048)
@options.solver
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, at the end.")
@options.table_options
def verify(
    arch: Architecture | None,
    name: str | None,
    everything: bool,
    cluster: str | None,
    **limits: Unpack[Limits],
) -> int:
    """Prove that both encodings of instructions agree.

    It is proved, for every input, that the executable encoding of each instruction gives the same code as the SMT
    encoding, and that none of its 64-bit operations wraps. What is proved is recorded at once: interrupted or killed,
    the same command goes on where it was, and repeats nothing.

    Exit status: 0 all proved, 1 one refuted, 3 one not settled (with --confirm, not confirmed; or solvers contradict
    each other), 2 wrong use.
    """
    limits["confirm_timeout"] = limits["confirm_timeout"] or limits["timeout"] / 2
    if everything == (arch is not None):
        raise UsageError("verify what? ARCH, ARCH INSTRUCTION, or --all: one of them")
    if cluster is not None and find_spec("distributed") is None:
        raise UsageError("--cluster needs Dask: pip install 'mmaformal[cluster]'")
    if everything:
        instructions = [i for each in ARCHITECTURES.values() for i in each]
    else:
        assert arch is not None
        instructions = [options.instruction_of(arch, name)] if name else list(arch)

    from mmaformal.cli.verification import Request, Verified, run_campaign
    from mmaformal.solver.evidence import EvidenceError, EvidenceStore

    question = RecallKey("verify", tuple(instructions), *limits["solvers"])
    plain = cluster is None and limits["confirm"] is None and not (limits["evidence"] or limits["smtlib"])
    if plain and not limits["no_cache"] and (known := _known(question, limits["timeout"])) is not None:
        return _told_again(known, limits["as_json"], limits["table"])

    def keep(found: Verified, store: EvidenceStore) -> None:
        if plain and not limits["no_cache"]:
            question.remember(store, found, limits["timeout"])

    try:
        return run_campaign(Request(instructions, cluster=cluster, **limits), keep)
    except EvidenceError as error:
        if limits["evidence"] is not None:
            raise
        raise EvidenceError(f"{error} (--evidence FILE records elsewhere, --no-cache nowhere)") from None


def _known(question: RecallKey, timeout: float) -> Recalled | None:
    """Return what was proved before; None where nothing can be remembered, which the run says itself."""
    from mmaformal.solver.evidence import EvidenceError, EvidenceStore, default_path

    try:
        with EvidenceStore(default_path()) as store:
            return question.recall(store, timeout)
    except EvidenceError:
        return None


def _told_again(known: Recalled, as_json: bool, table: str | None) -> int:
    """Print what was proved before, and return the status of that: only what is proved is kept."""
    from mmaformal.cli.verification import campaign_rows

    if table is not None:
        return tabulated(table, campaign_rows(known.to_json()), SETTLED)
    return answered(json.dumps(known.to_json(), indent=2) if as_json else str(known), SETTLED)
