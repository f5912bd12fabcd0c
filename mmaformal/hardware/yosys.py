"""yosys: a design in SystemVerilog or Verilog as terms, its size in cells, and AIGER.

yosys is a program (Debian's package `yosys`), found on the PATH; nothing of it is linked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import z3

from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.read_btor2 import REGISTERS, read_btor2
from mmaformal.hardware.rtlil import check_drivers, check_initial

#: What is read of a vector beyond its ends is undefined, which yosys' writer of BTOR2 takes for 0.
_BEYOND = """(* techmap_celltype = "$shiftx" *)
module beyond_the_ends_is_undefined (A, B, Y);
    parameter A_SIGNED = 0, B_SIGNED = 0, A_WIDTH = 1, B_WIDTH = 1, Y_WIDTH = 1;
    input [A_WIDTH-1:0] A;
    input [B_WIDTH-1:0] B;
    output [Y_WIDTH-1:0] Y;
    wire [Y_WIDTH-1:0] found, inside;
    \\$shift #(.A_SIGNED(0), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH))
        of_it (.A(A), .B(B), .Y(found));
    generate if (!B_SIGNED && B_WIDTH < 31 && (1 << B_WIDTH) + Y_WIDTH - 1 <= A_WIDTH)
        assign inside = {Y_WIDTH{1'b1}};
    else
        \\$shift #(.A_SIGNED(0), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH))
            of_ones (.A({A_WIDTH{1'b1}}), .B(B), .Y(inside));
    endgenerate
    assign Y = found | ({Y_WIDTH{1'bx}} & ~inside);
endmodule
"""
#: To words of many bits, as they are written.  What is undefined may be anything: each x is a signal of its own, before
#: a pass takes it for what suits it, and what a pass leaves undefined, or nothing drives, is another.
_TO_WORDS = (
    "setundef -anyseq; proc; write_rtlil {folder}/design.il; flatten; techmap -map {folder}/beyond.v; "
    "setundef -undriven -anyseq; opt_clean; write_btor {folder}/design.btor"
)
#: Errors of yosys in our words: what is in its message, and what is said.
_SAID = (
    (("$dlatch", "Latch inferred", "$dff", "$adff", "$sdff", "$ff"), REGISTERS),
    (("topological loop",), "the design has a combinational loop; only what has a value without one is read"),
    (("driving constant bits",), "a signal has several drivers, one of them a constant: give it one"),
)


@dataclass(frozen=True, repr=False)
class Size(ShortRepr):
    """What generic synthesis makes of a design: gates of at most two inputs, and multiplexers."""

    cells: int
    depth: int  #: the most cells on a way from an input to an output
    by_kind: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        return {"cells": self.cells, "depth": self.depth, "by_kind": dict(self.by_kind)}


def yosys(script: str, timeout: float | None = None) -> str:
    """Run a script of yosys' commands, and return what it printed.

    Raises HardwareError if there is no yosys, if a command fails, with its message, and when the time is up.
    """
    program = shutil.which("yosys")
    if program is None:
        raise HardwareError("there is no yosys on the PATH; Debian has it as the package yosys")
    try:
        done = subprocess.run(
            [program, "-Q", "-T", "-p", script], capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise HardwareError(f"yosys did not end in {timeout:g} s; --timeout gives it more") from None
    if done.returncode:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        error = errors[0] if errors else done.stderr.strip() or "it failed"
        known = [said for words, said in _SAID if any(word in error for word in words)]
        raise HardwareError(known[0] if known else f"yosys: {error}")
    return done.stdout


def _reading(
    files: Sequence[Path],
    top: str | None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int] | None = None,
    *,
    trees: bool = False,
) -> str:
    """The commands that read a design; with `trees` its syntax trees are printed."""
    for path in files:
        if not path.is_file():
            raise HardwareError(f"there is no file {path}")
        if re.search(r'["\n;]', str(path)):
            raise HardwareError(f"yosys cannot be given the name {str(path)!r}")
    names = " ".join(f'"{path}"' for path in files)
    given = "".join(f" -D{each}" for each in defines)
    if parameters and not top:
        raise HardwareError("parameters are of a module that is named: give it with --top")
    chosen = f"-top {top}" if top else "-auto-top"
    chosen += "".join(f" -chparam {name} {_decimal(value)}" for name, value in (parameters or {}).items())
    return f"read_verilog -sv{' -dump_ast2' if trees else ''}{given} {names}; hierarchy -check {chosen}"


def _decimal(value: int) -> str:
    """A number as yosys reads it: negative ones in 32 bits."""
    return str(value) if value >= 0 else f"32'b{value & 0xFFFFFFFF:032b}"


def design(
    files: Sequence[Path],
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int] | None = None,
    ports: Mapping[str, z3.BitVecRef] | None = None,
    timeout: float | None = None,
) -> Module:
    """A combinational design of Verilog files as terms, its named wires too (BTOR2 files are read without yosys).

    `ports` as in `read_btor2`.  Raises HardwareError for what yosys does not read, for registers, several drivers of
    one bit, `inout` ports and values given once at the start (`initial`).
    """
    if len(files) == 1 and files[0].suffix in (".btor", ".btor2"):
        return read_btor2(_text(files[0]), files[0].stem, ports)
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as place:
        folder = Path(place)
        (folder / "beyond.v").write_text(_BEYOND, encoding="utf-8")
        reading = _reading(files, top, defines, parameters, trees=True)
        check_initial(yosys(f"{reading}; {_TO_WORDS.format(folder=folder)}", timeout))
        check_drivers((folder / "design.il").read_text(encoding="utf-8"))
        text = (folder / "design.btor").read_text(encoding="utf-8")
    named = re.search(r"for module (\S+?)\.?$", text.splitlines()[0])
    name = named[1] if named else files[0].stem
    return read_btor2(text, name, ports, of_verilog=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(f"{path} cannot be read: {error}") from None


def size_of(
    files: Sequence[Path],
    top: str | None = None,
    parameters: Mapping[str, int] | None = None,
    timeout: float | None = None,
) -> Size:
    """Cells and depth after generic synthesis (`synth -flatten -noabc; abc -fast -g simple`)."""
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        out = Path(folder) / "size.json"
        synthesis = (
            f"{_reading(files, top, (), parameters)}; synth -flatten -noabc; abc -fast -g simple; opt_clean"
        )
        said = yosys(f"{synthesis}; tee -o {out} stat -json; ltp -noff", timeout)
        found = json.loads(out.read_text(encoding="utf-8"))["design"]
    depth = re.search(r"Longest topological path in .* \(length=(\d+)\)", said)
    return Size(found["num_cells"], int(depth[1]) if depth else 0, found["num_cells_by_type"])


def write_aiger(verilog: str, top: str, out: Path, timeout: float | None = None) -> None:
    """Write a module as an AIGER file (binary; with a symbol table)."""
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        source = Path(folder) / "module.sv"
        source.write_text(verilog, encoding="utf-8")
        made = Path(folder) / "module.aig"
        yosys(
            f"{_reading([source], top)}; synth -flatten -noabc; aigmap; write_aiger -symbols {made}",
            timeout,
        )
        shutil.move(made, out)


__all__ = ["Size", "design", "size_of", "write_aiger", "yosys"]
