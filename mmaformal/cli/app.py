"""The commands, in the groups and in the order in which help lists them."""

from __future__ import annotations

import click

from mmaformal.cli.amx import amx
from mmaformal.cli.atlas import atlas
from mmaformal.cli.batch_invariant import batch_invariant
from mmaformal.cli.bound import bound
from mmaformal.cli.certify import certify
from mmaformal.cli.check import check
from mmaformal.cli.check_certificate import check_certificate
from mmaformal.cli.completion import completion
from mmaformal.cli.diagnose import diagnose
from mmaformal.cli.diagnose_gemm import diagnose_gemm
from mmaformal.cli.diff import diff
from mmaformal.cli.e9s12 import e9s12
from mmaformal.cli.explain import explain
from mmaformal.cli.fingerprint import fingerprint
from mmaformal.cli.help import help_
from mmaformal.cli.identify import identify
from mmaformal.cli.less_accurate import less_accurate
from mmaformal.cli.list import list_
from mmaformal.cli.max_difference import max_difference
from mmaformal.cli.mismatches import mismatches
from mmaformal.cli.narrow_range import narrow_range
from mmaformal.cli.probe import probe
from mmaformal.cli.prove import prove
from mmaformal.cli.record import record
from mmaformal.cli.replay_model import replay_model
from mmaformal.cli.roundoff import roundoff
from mmaformal.cli.run import run
from mmaformal.cli.running import Commands, UsageError
from mmaformal.cli.serve import serve
from mmaformal.cli.show import show
from mmaformal.cli.signoff import signoff
from mmaformal.cli.sizes import sizes
from mmaformal.cli.training import training
from mmaformal.cli.unit_study import unit_study
from mmaformal.cli.verify import verify
from mmaformal.cli.verilog import verilog
from mmaformal.version import __version__

#: What help says of each command, in a line that 80 columns hold; a docstring has the rest.
GROUPS: dict[str, tuple[tuple[click.Command, str], ...]] = {
    "Look": (
        (list_, "the architectures and their instructions"),
        (show, "an instruction's model in words, with sources"),
        (run, "evaluate c + Σ a·b, stage by stage"),
    ),
    "Compare": (
        (diff, "the smallest input on which two instructions differ"),
        (max_difference, "how far apart their results can be"),
        (less_accurate, "whether an emulation is ever the less accurate one"),
        (fingerprint, "the fewest inputs that tell all units apart"),
    ),
    "Prove": (
        (prove, "a property for all inputs, or an input that breaks it"),
        (bound, "how far a product of K is from the exact one, at most"),
        (verify, "that both encodings of an instruction agree"),
        (certify, "a proof, with a certificate of each of its lemmas"),
        (check_certificate, "whether certificates prove what they say"),
        (roundoff, "what error analysis assumes of rounding to a format"),
        (amx, "what holds of Apple AMX, for all states"),
        (e9s12, "what is said of the dot product-add of E9S12 halves"),
    ),
    "Your hardware": (
        (record, "rows of this machine's unit, or a library's product"),
        (check, "recorded outputs against the models"),
        (mismatches, "in which stage a model differs from a recording"),
        (diagnose, "which arithmetic gave the rows of a recording"),
        (diagnose_gemm, "which instruction made a library's product"),
        (explain, "three matrices: the unit, the structure, what is wrong"),
        (batch_invariant, "whether a row's result depends on its batch"),
        (replay_model, "a PyTorch model's run, made again bit for bit"),
        (probe, "what a unit does, read from its answers"),
    ),
    "Your design": (
        (verilog, "a model as SystemVerilog, BTOR2 or AIGER"),
        (identify, "which arithmetic a design computes, by asking it"),
        (signoff, "prove that a Verilog design computes a model"),
        (sizes, "how many gates datapaths take, and how deep they are"),
    ),
    "Studies": (
        (unit_study, "errors of dot-adds over fractional bits and K"),
        (training, "what accumulators do to small trained networks"),
        (narrow_range, "figures of the error analysis of narrow formats"),
    ),
    "A site": (
        (atlas, "pages of all instructions, with a playground"),
        (serve, "show them, on this machine alone"),
    ),
    "Else": (
        (completion, "completion of names for bash, zsh or fish"),
        (help_, "this text, or that of a command"),
    ),
}


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 an answer, 1 refuted, 2 wrong use, 3 not settled, 70 a defect of ours, 130 interrupted. "
    "NO_COLOR=1 keeps a terminal free of colour.",
)
@click.version_option(__version__, "-V", "--version", prog_name="mmaformal", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """A formal model of matrix-multiply units, and a verifier over it.

    \b
    mmaformal diff a100 h100 HMMA.16816.F32
    mmaformal list h100 fp8
    mmaformal help diff
    """
    if context.invoked_subcommand is None:
        raise UsageError(
            "which COMMAND? `mmaformal --help` lists them; `mmaformal help COMMAND` tells of one"
        )


for _group, _commands in GROUPS.items():
    for _command, _short in _commands:
        _command.short_help = _short
        app.add_command(_command)
    app.groups[_group] = tuple(_command.name or "" for _command, _ in _commands)
