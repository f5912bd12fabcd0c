"""A function as a compiler makes it, run on rows: in a process of its own, which may end as it likes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.inputs import Rows
from mmaformal.display import ShortRepr
from mmaformal.hardware.designs import Bound
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_clang import ENTRY, library
from mmaformal.hardware.programs.llvm_signature import VALUE, Parameter, Signature
from mmaformal.hardware.programs.llvm_text import Type
from mmaformal.hardware.sources import Sources

#: Seconds that all rows may take.
_RUNNING = 60.0
#: Bytes that each argument's place in a row is a multiple of.
_PLACE = 16

#: A loop that calls the function for each row.
_DRIVER = f"""@{ENTRY} = external constant ptr
define void @mmaformal_run(i64 %n, ptr %rows, ptr %values) {{{{
entry:
  %function = load ptr, ptr @{ENTRY}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %row.at = mul i64 %i, {{stride}}
  %row = getelementptr i8, ptr %rows, i64 %row.at
  %value.at = mul i64 %i, {{out}}
  %value = getelementptr i8, ptr %values, i64 %value.at
{{body}}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}}}
"""
#: The process: rows and values are files, which it overwrites.
_CHILD = """
import ctypes, os, sys
count, folder = int(sys.argv[1]), sys.argv[2]
names = [os.path.join(folder, name) for name in ("rows", "values")]
buffers = [ctypes.create_string_buffer(open(name, "rb").read()) for name in names]
program = ctypes.CDLL(os.path.join(folder, "program.so"), mode=getattr(os, "RTLD_LAZY", 0))
program.mmaformal_run(ctypes.c_int64(count), *buffers)
for name, buffer in zip(names, buffers):
    open(name, "wb").write(buffer.raw[:-1])
"""


@dataclass(frozen=True, repr=False)
class Native(ShortRepr):
    """A function as a compiler makes it."""

    source: Sources
    signature: Signature
    bound: Bound  #: its ports as terms over codes
    _compiled: list[bytes] = field(default_factory=list)  #: the library, once there is one

    def results(self, rows: Rows) -> NDArray[np.uint64]:
        """The d that it gives for each row; what may be anything is 0.

        Raises HardwareError where it cannot be compiled, and where it crashes or does not end.
        """
        place, kind = self.bound.wiring.result, self.signature.value
        places, stride = _layout(self.signature.parameters)
        out = max(8, -(-kind.size // 8) * 8 if kind.kind != "void" else 0)
        after, values = self._run(rows, places, stride, out)
        if place.port == VALUE:
            whole = _numbers(values, 0, out)
        else:
            each = next(x for x in self.signature.parameters if x.name == place.port)
            whole = _numbers(after, places[place.port], each.width // 8)
        return np.asarray((whole >> place.low) & ((1 << place.bits) - 1), np.uint64)

    def _run(
        self, rows: Rows, places: dict[str, int], stride: int, out: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The bytes of each row's arguments after the call, and those of the value."""
        name = f"{self.source.top} as it is compiled"
        with tempfile.TemporaryDirectory(prefix="mmaformal-") as path:
            folder = Path(path)
            if not self._compiled:
                driver = _object(_driver(self.signature, places, stride, out))
                self._compiled.append(library(self.source, driver))
            (folder / "program.so").write_bytes(self._compiled[0])
            (folder / "rows").write_bytes(self._row_bytes(rows, places, stride).tobytes())
            (folder / "values").write_bytes(bytes(len(rows) * out))
            command = [sys.executable, "-I", "-S", "-c", _CHILD, str(len(rows)), path]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_RUNNING, check=False)
            except subprocess.TimeoutExpired:
                raise HardwareError(f"{name} did not end in {_RUNNING:g} s") from None
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise HardwareError(f"{name} could not be run: {last}")
            found = [np.frombuffer((folder / each).read_bytes(), np.uint8) for each in ("rows", "values")]
        return found[0].reshape(len(rows), stride), found[1].reshape(len(rows), out)

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
        at += -(-max(each.width // 8, 1) // _PLACE) * _PLACE
    return places, max(at, _PLACE)


def _driver(given: Signature, places: dict[str, int], stride: int, out: int) -> str:
    """The driver in LLVM's IR."""
    lines, arguments = [], []
    for i, each in enumerate(given.parameters):
        lines.append(f"  %at{i} = getelementptr i8, ptr %row, i64 {places[each.name]}")
        if each.count:
            arguments.append(f"ptr %at{i}")
            continue
        lines.append(f"  %in{i} = load {each.type}, ptr %at{i}, align 1")
        extend = re.search(r"\b(zeroext|signext)\b", each.attributes)
        arguments.append(f"{each.type} {extend[1] if extend else ''} %in{i}")
    text = _text(given.value)
    call = f"call {text} %function({', '.join(arguments)})"
    if given.value.kind == "void":
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


def _object(text: str) -> bytes:
    """LLVM's IR as an object file for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
    return bytes(machine.emit_object(llvm.parse_assembly(text)))
