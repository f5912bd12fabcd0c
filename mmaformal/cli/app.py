"""The commands, in the groups and in the order in which help lists them."""

from __future__ import annotations

import click

from mmaformal.cli.running import Commands, UsageError
from mmaformal.version import __version__

#: The line of help for each command, which 80 columns hold; a docstring has the rest.
GROUPS: dict[str, dict[str, str]] = {
    "Look": {
        "list": "the architectures and their instructions",
        "show": "an instruction's model in words, with sources",
        "run": "evaluate c + Σ a·b, stage by stage",
    },
    "Compare": {
        "diff": "the smallest input on which two instructions differ",
        "max-difference": "how far apart their results can be",
        "less-accurate": "whether an emulation is ever the less accurate one",
        "fingerprint": "the fewest inputs that tell all units apart",
    },
    "Prove": {
        "prove": "a property for all inputs, or an input that breaks it",
        "bound": "how far a product of K is from the exact one, at most",
        "verify": "that both encodings of an instruction agree",
        "certify": "a proof, with a certificate of each of its lemmas",
        "check-certificate": "whether certificates prove what they say",
        "roundoff": "what error analysis assumes of rounding to a format",
        "amx": "what holds of Apple AMX, for all states",
        "e9s12": "what is said of the dot product-add of E9S12 halves",
    },
    "Your hardware": {
        "record": "rows of this machine's unit, or a library's product",
        "check": "recorded outputs against the models",
        "mismatches": "in which stage a model differs from a recording",
        "diagnose": "which arithmetic gave the rows of a recording",
        "diagnose-gemm": "which instruction made a library's product",
        "explain": "three matrices: the unit, the structure, what is wrong",
        "batch-invariant": "whether a row's result depends on its batch",
        "replay-model": "a PyTorch model's run, made again bit for bit",
        "probe": "what a unit does, read from its answers",
    },
    "Your design": {
        "verilog": "a model as SystemVerilog, BTOR2 or AIGER",
        "identify": "which arithmetic a design computes, by asking it",
        "signoff": "prove that a Verilog design computes a model",
        "sizes": "how many gates datapaths take, and how deep they are",
    },
    "Studies": {
        "errors": "rounding errors of as many results as are wanted",
        "unit-study": "errors of dot-adds over fractional bits and K",
        "training": "what accumulators do to small trained networks",
        "narrow-range": "figures of the error analysis of narrow formats",
    },
    "A site": {
        "atlas": "pages of all instructions, with a playground",
        "serve": "show them, on this machine alone",
    },
    "Else": {
        "warm-up": "compile what products need, before the first",
        "completion": "completion of names for bash, zsh or fish",
        "help": "this text, or that of a command",
    },
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


app.grouped(GROUPS)
