"""`mmaformal certify`: proofs whose lemmas have certificates."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.prove import PROPERTY_NAMES
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status


@click.command()
@options.arch(required=False)
@options.name(required=False)
@click.option("--all", "everything", is_flag=True, help="Every instruction there is.")
@click.option(
    "--property",
    "properties",
    type=click.Choice(PROPERTY_NAMES),
    metavar="PROPERTY",
    multiple=True,
    help="Certify this property too (`mmaformal prove --list` has them); repeatable.",
)
@click.option(
    "--against",
    metavar='"ARCH INSTRUCTION"',
    help="Certify how it differs from this instruction: that both are equal, or that an input is the smallest.",
)
@click.option(
    "--out", type=options.OUTPUT_FOLDER, metavar="DIR", required=True, help="The folder of the certificates."
)
@options.jobs
@options.model
@options.timeout(600.0, "for each proof, and for the SAT solver at each lemma")
@options.memory(4096)
@options.solver
@options.evidence
@options.json
def certify(
    arch: Architecture | None,
    name: str | None,
    everything: bool,
    properties: tuple[str, ...],
    against: str | None,
    out: Path,
    jobs: int | None,
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    as_json: bool,
) -> int:
    """Prove that both encodings agree, and write a certificate of each lemma.

    \b
    mmaformal certify v100 HMMA.884.F32.F32 --out DIR
    mmaformal certify v100 HMMA.884.F32.F32 --out DIR --property commutativity
    mmaformal certify a100 HMMA.1688.F32 --out DIR --against "h100 HMMA.1688.F32"
    python DIR/check.py DIR           checks derivations; needs this file alone
    mmaformal check-certificate DIR   checks clauses and statements too

    A certificate is the lemma's opposite in SMT-LIB 2, its clauses, and a derivation of the empty clause from them
    (LRAT). Needs CaDiCaL (Debian: cadical), or pip install 'mmaformal[certificates]'.

    Exit status: 0 everything has a certificate, 3 something has none, 2 wrong use.
    """
    if everything == (arch is not None):
        raise UsageError("certify what? ARCH, ARCH INSTRUCTION, or --all: one of them")
    from mmaformal.queries.certify import certify as write

    if everything:
        instructions = [each for of in ARCHITECTURES.values() for each in of]
    else:
        assert arch is not None
        instructions = [options.instruction_of(arch, name)] if name else list(arch)
    with options.remembering_option(evidence, no_cache), Status() as status:
        found = write(
            instructions,
            out,
            properties=properties,
            against=against,
            timeout=timeout,
            memory=memory,
            jobs=jobs,
            solver=solvers or None,
            progress=status.show,
        )
    return answered(
        found.json() if as_json else str(found), SETTLED if found.verdict == "certified" else UNKNOWN
    )
