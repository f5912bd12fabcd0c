"""`mmaformal replay-model`: a PyTorch model's run made again bit for bit, and the first tensor that is not equal."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status

#: The exit status of each verdict.
_STATUS = {"equal": SETTLED, "differs": REFUTED, "part": UNKNOWN}


@click.command("replay-model")
@click.argument("model", metavar="FILE.py:NAME | MODEL.pt2")
@click.argument("inputs", required=False, metavar="[INPUTS.pt]", type=options.FILE)
@click.option(
    "--jobs",
    cls=options.Renamed,
    old=["--threads"],
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Threads of torch's (default: its own).",
)
@options.json
def replay_model(model: str, inputs: Path | None, jobs: int | None, as_json: bool) -> int:
    """Find whether a PyTorch model's run can be made again bit for bit, and which tensor is the first that is not.

    NAME of FILE.py is a function without arguments that returns a model and what it is called with: a tuple, or a dict
    of keywords. MODEL.pt2 is a program that torch.export saved; INPUTS.pt has a tensor, or a tuple or dict of these,
    and is used instead of a function's own too. FILE.py is run.

    \b
    mmaformal replay-model llama.py:tiny
    mmaformal replay-model model.pt2 inputs.pt --jobs 1

    Exit status: 0 if every tensor is equal, 1 if one is not, 2 for wrong use, 3 if calls were not replayed.
    """
    from mmaformal.architectures.models import ModelError
    from mmaformal.queries.replay_model import replay_model as find
    from mmaformal.torch.replayed.loading import load_model

    try:
        run = load_model(model, inputs)
    except ModelError as error:
        raise UsageError(str(error)) from None
    with Status() as status:
        found = find(run.model, *run.args, named=run.named, jobs=jobs, progress=status.show)
    return answered(found.json() if as_json else str(found), _STATUS[found.verdict])
