"""`mmaformal.verilog`: a model written as a combinational module.

verilog(hopper["HMMA.16816.F32"], "unit.sv")
print(verilog("hopper HMMA.16816.F32", format="btor2"))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mmaformal.architectures.meant import instruction_meant
from mmaformal.hardware.btor2 import btor2
from mmaformal.hardware.module import model_of
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.hardware.yosys import write_aiger
from mmaformal.instruction import Instruction
from mmaformal.result import Result

#: The formats that models are written in, and the suffixes of files by which one is chosen.
FORMATS = ("sv", "btor2", "aiger")
_SUFFIXES = {".btor2": "btor2", ".btor": "btor2", ".aig": "aiger", ".aiger": "aiger"}


@dataclass(frozen=True, repr=False)
class Netlist(Result):
    """A model as a combinational module."""

    name: str
    format: str  #: one of `FORMATS`
    ports: Mapping[str, int]  #: bits of each, inputs first
    about: str  #: of which model it is
    text: str  #: empty of AIGER, which is binary
    path: Path | None  #: the file it was written to

    @property
    def verdict(self) -> str:
        """The format."""
        return self.format

    @property
    def summary(self) -> str:
        """Returns of which model it is, and where it was written."""
        return self.about if self.path is None else f"{self.path}: {self.about}"

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict of name and bits for each port."""
        return [{"port": name, "bits": bits} for name, bits in self.ports.items()]

    def to_json(self) -> dict[str, object]:
        """Returns plain values."""
        path = None if self.path is None else str(self.path)
        return {
            "name": self.name,
            "format": self.format,
            "ports": dict(self.ports),
            "file": path,
            "text": self.text,
        }

    def __str__(self) -> str:
        return self.text or self.summary


def verilog(
    instruction: Instruction | str,
    path: str | Path | None = None,
    *,
    format: str | None = None,
    name: str | None = None,
) -> Netlist:
    """Write a model as a combinational module: SystemVerilog, BTOR2, or (by yosys) AIGER.

    path: the file to write to, if any.  format: one of `FORMATS` (default: by the suffix of the file, else "sv").
    name: of the module (default: that of the instruction).

    Raises ValueError for another format and for AIGER without a file, HardwareError for what cannot be written.
    """
    instruction, path = instruction_meant(instruction), None if path is None else Path(path)
    kind = format or _SUFFIXES.get(path.suffix.lower() if path is not None else "", "sv")
    if kind not in FORMATS:
        raise ValueError(f"a model is written as {', '.join(FORMATS)}, not as {kind!r}")
    called = name or re.sub(r"\W+", "_", f"{instruction.architecture}_{instruction.name}").lower()
    about = f"{instruction.label}: {instruction.spec.types}, K={instruction.k}, {instruction.parameters.describe()}"
    module, text = model_of(instruction.spec, called), ""
    if kind == "aiger":
        if path is None:
            raise ValueError("AIGER is binary: name a file to write it to")
        write_aiger(systemverilog(module), called, path)
    else:
        text = btor2(module) if kind == "btor2" else systemverilog(module, about)
        if path is not None:
            path.write_text(text, encoding="utf-8")
    return Netlist(called, kind, module.ports, about, text, path)
