"""yosys: a design in SystemVerilog or Verilog as terms, its size in cells, and AIGER (`engines` has its builds)."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import z3

from mmaformal.checked import Progress
from mmaformal.display import ShortRepr
from mmaformal.hardware.engines import Engine, SyntaxNotReadError, engines, prepare
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.read_btor2 import REGISTERS, read_btor2
from mmaformal.hardware.registers import cut_registers
from mmaformal.hardware.rtlil import check_drivers, check_initial
from mmaformal.hardware.sequential import Sequential
from mmaformal.hardware.sources import Sources, sources_of

#: A vector read beyond its ends is undefined there, which yosys' writer of BTOR2 takes for 0.
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
    "setundef -anyseq; proc; write_rtlil {folder}/design.il; flatten; chformal -assert -cover -remove; "
    "memory_collect; memory_map; bmuxmap; opt_clean; write_json {folder}/design.json"
)
#: From the netlist, without its registers, to BTOR2.
_TO_BTOR2 = (
    "read_json {folder}/logic.json; techmap -map {folder}/beyond.v; setundef -undriven -anyseq; opt_clean; "
    "write_btor {folder}/design.btor"
)


#: What an error of the module that is named says, and how many others are told then.
_NAME_ONE, _TOLD = "name one with --top", 6
#: The modules that slang found used by no other, of which yosys would take the first.
_TOPS = re.compile(r"^Top level design units:\n((?:    \S+\n)+)", re.MULTILINE)


@dataclass(frozen=True, repr=False)
class Size(ShortRepr):
    """The size of a design after generic synthesis: gates of at most two inputs, and multiplexers."""

    cells: int
    depth: int  #: the most cells on a way from an input to an output
    by_kind: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        return {"cells": self.cells, "depth": self.depth, "by_kind": dict(self.by_kind)}


def read_design(
    sources: Sources,
    ports: Mapping[str, z3.BitVecRef] | None = None,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Sequential:
    """A design as terms, its named wires too, and its registers as inputs (BTOR2 files are read without yosys).

    `ports` as in `read_btor2`.  Raises HardwareError for what no build of yosys reads, for latches, several clocks,
    several drivers of one bit, and `inout` ports.
    """
    sources = sources.complete()
    if sources.btor2:
        return Sequential(read_btor2(_text(sources.files[0]), sources.files[0].stem, ports))
    error: HardwareError | None = None
    for engine in engines(sources):
        prepare(engine, progress)
        try:
            return _read_by(engine, sources, ports, timeout)
        except SyntaxNotReadError as found:
            error = error or found
        except HardwareError as found:
            raise _of_top(found, sources) from None
    assert error is not None
    raise HardwareError(str(error))


def _of_top(error: HardwareError, sources: Sources) -> HardwareError:
    """An error, or, where the module that is named is none in the files, which there are."""
    there = sources.modules() if sources.top and _NAME_ONE in str(error) else []
    if not there or sources.top in there:
        return error
    more = ", …" if len(there) > _TOLD else ""
    return HardwareError(
        f"--top {sources.top}: there is no such module; there are {', '.join(there[:_TOLD])}{more}"
    )


def _read_by(
    engine: Engine, sources: Sources, ports: Mapping[str, z3.BitVecRef] | None, timeout: float | None
) -> Sequential:
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as place:
        folder = Path(place)
        seen = engine.at(folder)
        reading = engine.reading(sources, folder, trees=True)
        said = engine.run(f"{reading}; {_TO_WORDS.format(folder=seen)}", timeout)
        if not engine.slang:
            check_initial(said)
        elif not sources.top and (listed := _TOPS.search(said)) is not None:
            _check_one(listed[1].split())
        check_drivers((folder / "design.il").read_text(encoding="utf-8"))
        netlist = json.loads((folder / "design.json").read_text(encoding="utf-8"))
        name, module = _top(netlist)
        registers = cut_registers(module)
        (folder / "logic.json").write_text(json.dumps({"modules": {name: module}}), encoding="utf-8")
        (folder / "beyond.v").write_text(_BEYOND, encoding="utf-8")
        engine.run(_TO_BTOR2.format(folder=seen), timeout)
        text = (folder / "design.btor").read_text(encoding="utf-8")
    return Sequential(read_btor2(text, name, ports, of_verilog=True), registers)


def _top(netlist: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    modules: dict[str, dict[str, Any]] = netlist["modules"]
    tops = [name for name, module in modules.items() if "top" in module.get("attributes", {})] or [*modules]
    if not tops:
        raise HardwareError("there is no module in what was read: name the file that has the design's")
    _check_one(tops)
    return tops[0], modules[tops[0]]


def _check_one(tops: Sequence[str]) -> None:
    """Raise HardwareError where several modules are used by no other."""
    if len(tops) > 1:
        raise HardwareError(
            f"{len(tops)} modules are used by no other ({', '.join(tops[:6])}): name one with --top"
        )


def design(
    files: Sequence[Path],
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    ports: Mapping[str, z3.BitVecRef] | None = None,
    timeout: float | None = None,
) -> Module:
    """A combinational design as terms.  Raises HardwareError as `read_design` does, and for registers."""
    found = read_design(sources_of(files, top, defines, parameters), ports, timeout)
    if found.registers.cuts:
        raise HardwareError(REGISTERS)
    return found.logic


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(f"{path} cannot be read: {error}") from None


def synthesised(
    files: Sequence[Path],
    top: str | None = None,
    parameters: Mapping[str, int | str] | None = None,
    timeout: float | None = None,
) -> Size:
    """Cells and depth after generic synthesis (`synth -flatten -noabc; abc -fast -g simple`)."""
    engine = engines()[0]
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        out = Path(folder) / "size.json"
        reading = engine.reading(sources_of(files, top, (), parameters).complete(), Path(folder))
        synthesis = f"{reading}; synth -flatten -noabc; abc -fast -g simple; opt_clean"
        said = engine.run(f"{synthesis}; tee -o {engine.at(out)} stat -json; ltp -noff", timeout)
        found = json.loads(out.read_text(encoding="utf-8"))["design"]
    depth = re.search(r"Longest topological path in .* \(length=(\d+)\)", said)
    return Size(found["num_cells"], int(depth[1]) if depth else 0, found["num_cells_by_type"])


def write_aiger(verilog: str, top: str, out: Path, timeout: float | None = None) -> None:
    """Write a module as an AIGER file (binary; with a symbol table)."""
    engine = engines()[0]
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        source = Path(folder) / "module.sv"
        source.write_text(verilog, encoding="utf-8")
        made = Path(folder) / "module.aig"
        reading = engine.reading(sources_of(source, top), Path(folder))
        engine.run(
            f"{reading}; synth -flatten -noabc; aigmap; write_aiger -symbols {engine.at(made)}", timeout
        )
        shutil.move(made, out)
