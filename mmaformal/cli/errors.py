"""`mmaformal errors`: statistics of many results of an instruction against the exact sums."""

from __future__ import annotations

import json

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered, wrong_use
from mmaformal.cli.terminal import Status

#: Results, where their number is not given: some seconds of one processor.
_OUTPUTS = 10**7


@click.command()
@options.arch()
@options.name()
@click.option(
    "--outputs",
    type=options.OUTPUTS,
    default=_OUTPUTS,
    metavar="N",
    help="Results, at least so many: 1000000, 1e9 (default 1e7).",
)
@click.option(
    "--k", type=options.PRODUCTS, metavar="K", help="Products of each result (default: one instruction's)."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the numbers drawn (default 0).")
@click.option(
    "--promote-every",
    type=click.IntRange(1),
    metavar="N",
    help="Add the accumulator to an fp32 total after every N instructions.",
)
@click.option(
    "--split-k",
    type=click.IntRange(1),
    default=1,
    metavar="S",
    help="Cut K into S ranges, and add their sums.",
)
@options.replace
@options.jobs
@options.cluster
@options.model
@options.json
def errors(
    arch: Architecture,
    name: str,
    outputs: int,
    k: int | None,
    seed: int,
    promote_every: int | None,
    split_k: int,
    changes: tuple[options.ParameterChange, ...],
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Measure the rounding errors of so many results of INSTRUCTION against the exact sums.

    Results are elements of A·B of normally distributed numbers, rounded to the instruction's formats, scaled as
    `mmaformal.quantise` has it; c is +0. The figures depend on the seed, and not on the workers: --jobs processes of
    this machine, or those of --cluster.

    \b
    mmaformal errors hopper HMMA.16816.F32 --k 4096
    mmaformal errors h100 fp8 --k 4096 --promote-every 4
    mmaformal errors cdna3 fp16 --outputs 1e9 --cluster tcp://scheduler:8786

    Exit status: 0 an answer, 2 wrong use.
    """
    from mmaformal.queries.errors import errors as find

    instruction = options.instruction_of(arch, name, changes)
    with (
        Status("starting workers") as status,
        options.asked_workers(cluster, jobs if cluster else None) as executor,
        wrong_use(ValueError),
    ):
        found = find(
            instruction,
            outputs,
            k=k,
            seed=seed,
            promote_every=promote_every,
            split_k=split_k,
            jobs=jobs,
            executor=executor,
            progress=status.show,
        )
    if not as_json:
        about = f"{instruction.label}, K = {k or instruction.k}, seed {seed}"
        return answered(f"{about}\n{found}", SETTLED)
    asked = {"instruction": instruction.label, "k": k or instruction.k, "seed": seed}
    divided = {"promote_every": promote_every, "split_k": split_k}
    return answered(json.dumps({**asked, **divided, **found.to_json()}, indent=2), SETTLED)
