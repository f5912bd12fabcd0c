"""The commands, in the order in which help lists them."""

from __future__ import annotations

import click

from mmaformal import __version__
from mmaformal.cli.amx import amx
from mmaformal.cli.bound import bound
from mmaformal.cli.check import check
from mmaformal.cli.completion import completion
from mmaformal.cli.diagnose import diagnose
from mmaformal.cli.diagnose_gemm import diagnose_gemm
from mmaformal.cli.diff import diff
from mmaformal.cli.e9s12 import e9s12
from mmaformal.cli.fingerprint import fingerprint
from mmaformal.cli.less_accurate import less_accurate
from mmaformal.cli.list import list_
from mmaformal.cli.max_difference import max_difference
from mmaformal.cli.mismatches import mismatches
from mmaformal.cli.narrow_range import narrow_range
from mmaformal.cli.probe import probe
from mmaformal.cli.prove import prove
from mmaformal.cli.record import record
from mmaformal.cli.roundoff import roundoff
from mmaformal.cli.run import run
from mmaformal.cli.running import Commands, UsageError
from mmaformal.cli.show import show
from mmaformal.cli.signoff import signoff
from mmaformal.cli.sizes import sizes
from mmaformal.cli.training import training
from mmaformal.cli.unit_study import unit_study
from mmaformal.cli.verify import verify
from mmaformal.cli.verilog import verilog


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 an answer, 1 refuted, 2 wrong use, 3 not settled, 70 a defect of ours, 130 interrupted. "
    "NO_COLOR=1 keeps a terminal free of colour. `mmaformal completion bash` (zsh, fish) completes names.",
)
@click.version_option(__version__, prog_name="mmaformal", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """A formal model of matrix-multiply units, and a verifier over it."""
    if context.invoked_subcommand is None:
        raise UsageError(f"which COMMAND? There are {', '.join(app.commands)}; `mmaformal --help` says more")


for _command in (
    diff,
    prove,
    list_,
    show,
    run,
    record,
    probe,
    check,
    mismatches,
    diagnose,
    diagnose_gemm,
    fingerprint,
    verify,
    amx,
    e9s12,
    roundoff,
    bound,
    max_difference,
    less_accurate,
    narrow_range,
    training,
    unit_study,
    verilog,
    sizes,
    signoff,
    completion,
):
    app.add_command(_command)
