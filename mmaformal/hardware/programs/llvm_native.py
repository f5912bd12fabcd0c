"""A function as a compiler makes it, run on rows: in a process of its own, which may end as it likes.

`python -m mmaformal.hardware.programs.llvm_native FOLDER` is that process.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.inputs import Rows
from mmaformal.display import ShortRepr
from mmaformal.hardware.designs import Bound
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_clang import compiled_library
from mmaformal.hardware.programs.llvm_signature import VALUE, Parameter, Signature
from mmaformal.hardware.programs.llvm_text import Type
from mmaformal.hardware.sources import Sources

#: Seconds that all rows may take.
_RUNNING = 60.0
#: Bytes for a scalar among a row's bytes.
_SCALAR = 16

_DRIVER = """define void @run(i64 %n, ptr %rows, ptr %values, ptr %function) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %row.at = mul i64 %i, {stride}
  %row = getelementptr i8, ptr %rows, i64 %row.at
  %value.at = mul i64 %i, {out}
  %value = getelementptr i8, ptr %values, i64 %value.at
{body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@dataclass(frozen=True, repr=False)
class Native(ShortRepr):
    """A function as a compiler makes it."""

    source: Sources
    signature: Signature
    bound: Bound  #: its ports as terms over codes

    def results(self, rows: Rows) -> NDArray[np.uint64]:
        """The d that it gives for each row; what may be anything is 0.

        Raises HardwareError where it cannot be compiled, and where it crashes or does not end.
        """
        name, place = f"{self.source.top} as it is compiled", self.bound.wiring.result
        with tempfile.TemporaryDirectory(prefix="mmaformal-") as path:
            folder = Path(path)
            places, out = self._write(folder, rows)
            command = [sys.executable, "-P", "-m", __name__, path]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_RUNNING, check=False)
            except subprocess.TimeoutExpired:
                raise HardwareError(f"{name} did not end in {_RUNNING:g} s") from None
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise HardwareError(f"{name} could not be run: {last}")
            after, values = np.load(folder / "after.npy"), np.load(folder / "values.npy")
        if place.port == VALUE:
            whole = _numbers(values, 0, out)
        else:
            each = next(x for x in self.signature.parameters if x.name == place.port)
            whole = _numbers(after, places[place.port], each.width // 8)
        return np.asarray((whole >> place.low) & ((1 << place.bits) - 1), np.uint64)

    def _write(self, folder: Path, rows: Rows) -> tuple[dict[str, int], int]:
        """Write the program, what calls it, and rows; where each parameter is among a row's bytes, and the bytes of a
        value.
        """
        places, stride = _layout(self.signature.parameters)
        kind = self.signature.value
        out = 0 if kind.kind == "void" else -(-kind.size // 8) * 8
        compiled_library(self.source, folder)
        (folder / "driver.ll").write_text(_driver(self.signature, places, stride, out), encoding="ascii")
        np.save(folder / "rows.npy", self._row_bytes(rows, places, stride))
        np.save(folder / "values.npy", np.zeros((len(rows), max(out, 1)), np.uint8))
        return places, out

    def _row_bytes(self, rows: Rows, places: dict[str, int], stride: int) -> NDArray[np.uint8]:
        """The bytes of each row's arguments."""
        found = np.zeros((len(rows), stride), np.uint8)
        ports = self.bound.values(0)
        columns = zip(self.bound.codes.flat(), rows.codes.flat(), strict=True)
        values = {str(term): column.astype(object) for term, column in columns}
        values |= {str(x): np.zeros(1, object) for x in self.bound.free.values()}
        for name, term in ports.items():
            column = np.broadcast_to(evaluate(term, values), len(rows)).astype(object)
            for i in range(-(-term.size() // 8)):
                found[:, places[name] + i] = ((column >> (8 * i)) & 0xFF).astype(np.uint8)
        return found


def _numbers(table: NDArray[np.uint8], at: int, size: int) -> NDArray[np.object_]:
    found = np.zeros(len(table), object)
    for i in range(size):
        found = found | (table[:, at + i].astype(object) << (8 * i))
    return found


def _layout(parameters: Sequence[Parameter]) -> tuple[dict[str, int], int]:
    """Where each parameter is among a row's bytes, and how many these are."""
    places, at = {}, 0
    for each in parameters:
        places[each.name] = at
        at += -(-max(each.width // 8, 1) // _SCALAR) * _SCALAR
    return places, max(at, _SCALAR)


def _driver(given: Signature, places: dict[str, int], stride: int, out: int) -> str:
    """A loop that calls the function for each row, in LLVM's IR."""
    lines, arguments = [], []
    for i, each in enumerate(given.parameters):
        lines.append(f"  %at{i} = getelementptr i8, ptr %row, i64 {places[each.name]}")
        if each.count:
            arguments.append(f"ptr %at{i}")
            continue
        lines.append(f"  %in{i} = load {each.type}, ptr %at{i}, align 1")
        extend = re.search(r"\b(zeroext|signext)\b", each.attributes)
        arguments.append(f"{each.type} {extend[1] if extend else ''} %in{i}")
    kind = given.value
    text = _text(kind)
    call = f"call {text} %function({', '.join(arguments)})"
    if kind.kind == "void":
        lines.append(f"  {call}")
    else:
        lines += [f"  %given = {call}", f"  store {text} %given, ptr %value, align 1"]
    return _DRIVER.format(stride=stride, out=out, body="\n".join(lines))


def _text(kind: Type) -> str:
    """A type as LLVM writes it."""
    if kind.kind == "struct":
        return "{ " + ", ".join(map(_text, kind.fields)) + " }"
    if kind.kind == "array":
        return f"[{kind.bits} x {_text(kind.fields[0])}]"
    return str(kind)


def main(folder: Path) -> None:
    """Run the function on the rows of a folder, and leave there what it gives."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly((folder / "driver.ll").read_text("ascii")), machine
    )
    library = ctypes.CDLL(str(folder / "program.so"), mode=os.RTLD_LAZY)
    address = ctypes.c_void_p.in_dll(library, "mmaformal_entry").value
    engine.finalize_object()
    rows, values = np.load(folder / "rows.npy"), np.load(folder / "values.npy")
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        engine.get_function_address("run")
    )
    run(len(rows), rows.ctypes.data, values.ctypes.data, address)
    np.save(folder / "after.npy", rows)
    np.save(folder / "values.npy", values)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

__all__ = ["Native"]
