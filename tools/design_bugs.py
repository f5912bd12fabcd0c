"""Sign off the tests' designs with each of their bugs, and say how far the smallest input is proved minimal.

python tools/design_bugs.py                                   # every bug of every design
python tools/design_bugs.py fma16 fda --timeout 300 --write docs/netlists.md

A bug is one that people make, compiled in by a macro BUG_….  What is printed is a row of the table of docs/netlists.md:
the input, which of the measures of its size are proved least, and the seconds that it took.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from mutate_designs import DESIGNS, write_row

from mmaformal import datapath, volta
from mmaformal.cases.witness import CaseWitness, case_text
from mmaformal.encodings.fda import Fda
from mmaformal.formats import e5m2, fp16
from mmaformal.hardware.module import HardwareError, model_of
from mmaformal.hardware.ports import PortMap, read_mapping
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.instruction import Instruction
from mmaformal.queries.classes import as_instruction
from mmaformal.queries.signoff import signoff
from mmaformal.rounding import CONVERSIONS
from mmaformal.solver.answers import Fails
from mmaformal.spec import DotAdd

NOT_FOUND = "NOT FOUND"
HEAD = "| design | bug | smallest input | the design's d, the model's | proved minimal | s |\n"


@dataclass(frozen=True)
class Buggy:
    """A design with bugs, and the model that it computes without them."""

    model: Instruction
    files: tuple[str, ...]
    bugs: Mapping[str, str]  #: what each macro makes of it
    top: str | None = None
    ports: PortMap = field(default_factory=PortMap)
    parameters: Mapping[str, int] = field(default_factory=dict)
    defines: Mapping[str, str] = field(default_factory=dict)  #: that a bug needs besides
    dot2: bool = False  #: whether it is put together with a module that is written for the model


_HALF = datapath["fma(k=1,a=fp16,rho=IEEE-FP16)"]
_VOLTA = volta["HMMA.884.F32.F32"]
_SMALL = as_instruction(
    DotAdd(2, e5m2, e5m2, fp16, fp16, Fda(F=13, L=2, rho=CONVERSIONS["RNE-FP16"], e_zero=None))
)
_CLAMP = "a long shift wraps around"
_NAN = "∞·0 is no NaN"
#: Bugs of designs that are signed off against a standard, with c of the smallest input, whose products are 1·1 and 0·0
#: (tests/hardware/test_signoff_standard.py).
OF_STANDARD = {("rv_dot2", "STICKY"): 0x32000000, ("rv_dot2", "NEAREST"): 0x33800000}

BUGGY = {
    "fda": Buggy(
        _VOLTA,
        ("../fda.sv",),
        {
            "CLAMP": _CLAMP,
            "CARRY": "one bit too few for the carries",
            "SPECIAL": _NAN,
            "ZERO_EXPONENT": "zeros at the exponent of their fields",
        },
        "fda",
        parameters={"K": 4, "F": 23, "EZ": -131},
    ),
    "fda, e5m2": Buggy(
        _SMALL,
        ("../fda.sv",),
        {"STICKY": "to nearest even without the bits below the half", "SPECIAL": _NAN},
        "fda",
        parameters={"K": 2, "EA": 5, "MA": 2, "EC": 5, "MC": 10, "F": 13, "NEAREST": 1, "FIELDS": 1},
    ),
    "dpa": Buggy(
        _VOLTA,
        ("dpa_pkg.sv", "dpa_csa.sv", "dpa_pipe.sv", "dpa.sv"),
        {
            "NAN": _NAN,
            "HIDDEN": "a subnormal number has a hidden bit",
            "CLAMP": _CLAMP,
            "PIPE": "a signal skips a stage",
            "ZERO_SIGN": "the sign is a cycle late",
        },
        "dpa",
        read_mapping(DESIGNS / "dpa.toml"),
    ),
    "gated": Buggy(
        datapath["fda(k=2,frac_bits=13,a=e5m2,rho=RNE-FP16)"],
        ("gated.sv",),
        {"CLOCK": "the gate's clock is tied", "LATCH": "the enable is not held while the clock is high"},
        "gated",
        dot2=True,
    ),
    "mac_serial": Buggy(
        datapath["fda(k=2,frac_bits=13,a=e5m2,rho=RNE-FP16)"],
        ("dpa_pkg.sv", "mac_serial.sv"),
        {"RESET": "nothing sets c"},
        "mac_serial",
        PortMap(
            {"a[0]": "x@0", "a[1]": "x@1", "b[0]": "y@0", "b[1]": "y@1", "c": "z@0", "d": "result"},
            {"start": "1,0", "valid": "0,1,0"},
            cycles=2,
        ),
        dot2=True,
    ),
    "fma16": Buggy(
        _HALF,
        ("fma16.sv",),
        {
            "HIDDEN": "a zero has a hidden bit",
            "CLAMP": _CLAMP,
            "STICKY": "bits far below the half are forgotten",
            "JOINED": "what is shifted out joined on the wrong side",
            "LZA": "an anticipated leading one, off by one",
            "TINY": "what is just below the least normal number is not tiny",
            "SUBNORMAL": "a subnormal result is not denormalised",
            "CARRY": "a carry of the rounding is lost",
            "OVERFLOW": "the largest number in the place of ∞",
            "ZERO_SIGN": "x − x has the sign of x",
            "NAN": _NAN,
        },
        "fma16",
        PortMap({"a": "operands_i[47:32]", "b": "operands_i[31:16]", "c": "operands_i[15:0]"}),
        defines={"LZA": "LZA"},
    ),
    "fma_lza": Buggy(
        _HALF,
        ("fma_lza.sv",),
        {
            "CLAMP": _CLAMP,
            "STICKY": "what is lost counts in additions alone",
            "LZA": "an anticipated leading one, off by one",
            "TIE": "ties are rounded away",
        },
        "fma_lza",
    ),
    "fma_status": Buggy(
        datapath["flags(a=e5m2,rho=IEEE-E5M2)"],
        ("fma_status.sv",),
        {
            "BEFORE": "tiny before rounding",
            "INEXACT": "an exact number that overflows is not inexact",
            "QUIET": "a quiet NaN is invalid",
            "HIDDEN": "a quiet NaN hides 0·∞",
        },
        "fma_status",
        PortMap({"d": "status_o"}),
    ),
    "fma_status, normalised": Buggy(
        _HALF,
        ("fma_status.sv",),
        {
            "PLACES": "the number of places that a factor is shifted by lacks a bit",
            "LOWERED": "the exponent is lowered for one factor alone",
        },
        "fma_status",
        PortMap({"d": "result_o"}),
        parameters={"M": 10, "Normal": 1},
    ),
    "three_terms": Buggy(
        datapath["two_largest(frac_bits=13,a=e5m2,rho=IEEE-FP16,nan=DEFAULT)"],
        ("three_terms.sv",),
        {
            "SORT": "c is never sorted",
            "STICKY": "what the first alignment loses is forgotten",
            "SMALLEST": "what is shifted out of the smallest is forgotten",
            "ZERO_SIGN": "a zero is +0",
        },
        "three_terms",
    ),
    "joined_dot": Buggy(
        datapath["joined(k=4,frac_bits=13,a=e5m2,rho=RNE-FP16)"],
        ("joined_dot.sv",),
        {
            "ZERO": "a zero sets the sticky bit",
            "ADDEND": "what c loses is forgotten",
            "SIDE": "the sticky bit is joined to a negative sum, not to its magnitude",
            "TIE": "ties are rounded away",
        },
        "joined_dot",
    ),
    "add_tree": Buggy(
        datapath["tree(k=4,a=e5m2,rho=IEEE-FP16,nan=DEFAULT)"],
        ("add_tree.sv",),
        {
            "ORDER": "products are paired by halves",
            "STICKY": "bits below the guard bits are forgotten",
            "FLUSH": "subnormal products are lost",
            "ZERO_SIGN": "x − x has the sign of x",
            "PIPE": "a product skips a register",
        },
        "add_tree",
    ),
    "exact_dot": Buggy(
        datapath["exact(k=2,a=e5m2,rho=IEEE-RD-FP16,nan=DEFAULT)"],
        ("exact_dot.sv",),
        {
            "ZERO_SIGN": "rounded down, x − x is +0",
            "CARRY": "no room for the carries",
            "STICKY": "bits far below the half are forgotten",
            "DIRECTION": "what is rounded down goes toward zero",
            "OVERFLOW": "∞ where the largest number is nearer",
        },
        "exact_dot",
        PortMap(ties={"rnd_mode_i": "2"}),
    ),
    "idot": Buggy(
        datapath["integer(k=4,a=uint8,b=int8,c=int16,clamp=1,group=2,inner=16)"],
        ("idot.sv",),
        {
            "SIGN": "an unsigned factor is taken for a signed one",
            "PAIR": "a pair wraps around",
            "CLAMP": "an overflow is looked for in one bit",
        },
        "idot",
        parameters={"W": 16},
    ),
    "scaled_dot": Buggy(
        datapath["gfda(k=4,group=4,frac_bits=35,rho=RZ-FP32,scale=ue4m3,block=4)"],
        ("scaled_dot.sv",),
        {
            "SUBNORMAL": "a subnormal scale has an exponent one too low",
            "NAN": "a scale that is a NaN is forgotten",
        },
        "scaled_dot",
    ),
    "fma_lza, Booth": Buggy(
        _HALF,
        ("fma_lza.sv", "booth_mul.sv"),
        {
            "NEGATIVE": "a negative row of Booth's digits has zeros below",
            "PREFIX": "a level of the prefix adder is missing",
        },
        "fma_lza",
        parameters={"Booth": 2},
    ),
}


def row(name: str, bug: str, timeout: float) -> str:
    """A row of the table: what signing off says of a design with a bug; `NOT FOUND` is in it where that is no input."""
    buggy, start = BUGGY[name], time.monotonic()
    files = [DESIGNS / each for each in buggy.files]
    with tempfile.TemporaryDirectory() as folder:
        if buggy.dot2:
            files.append(Path(folder) / "dot2.sv")
            files[-1].write_text(systemverilog(model_of(buggy.model.spec, "dot2")), encoding="utf-8")
        more = [each for key, each in buggy.defines.items() if key == bug]
        try:
            answer = signoff(
                files,
                buggy.model,
                top=buggy.top,
                ports=buggy.ports,
                parameters=buggy.parameters,
                includes=[DESIGNS / "inc"],
                defines=[f"BUG_{bug}", *more],
                timeout=timeout,
            )
        except HardwareError as error:
            said = f"refused: {re.split('[,;] ', str(error))[0]} | | "
        else:
            if isinstance(answer, Fails):
                said = _told(cast(CaseWitness, answer.witness))
            else:
                said = f"{NOT_FOUND}: {answer.summary} | | "
    seconds = time.monotonic() - start
    return f"| {name} | {buggy.bugs[bug]} (`{bug}`) | {said} | {seconds:,.0f} |\n"


def _told(witness: CaseWitness) -> str:
    """The input, both d, and what of its size is proved least."""
    open_ = [each for each in witness.minimality if not each.endswith("proved minimal")]
    proved = len(witness.minimality) - len(open_)
    said = "yes" if not open_ else f"{proved} of {len(witness.minimality)}: {open_[0]}"
    first = witness.runs[0]
    design, model = (first.spec.d_format.text(run.result) for run in witness.runs)
    return f"{case_text(first.spec, first.codes)} | {design}, {model} | {said}"


def main() -> int:
    """Print a row for each bug; the exit status is 1 where one is not found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(BUGGY), metavar="DESIGN", help=", ".join(BUGGY))
    parser.add_argument("--bug", help="this one alone")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each (default 600)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="a document whose table has the rows")
    given = parser.parse_args()
    print(HEAD, end="")
    missed = 0
    for name in given.names:
        for bug in BUGGY[name].bugs if given.bug is None else [given.bug]:
            line = row(name, bug, given.timeout)
            print(line, end="", flush=True)
            missed += NOT_FOUND in line
            if given.write is not None:
                write_row(given.write, line, HEAD, 2)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
