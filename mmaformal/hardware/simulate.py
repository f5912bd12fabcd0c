"""A design run on cases by a simulator: Verilator, or Icarus Verilog where that is not there."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows
from mmaformal.formats import Format
from mmaformal.hardware.module import HardwareError, ports_of
from mmaformal.spec import DotAdd

_BENCH = """`timescale 1ns/1ns
module mmaformal_bench;
{ports}
    reg [{last}:0] rows [0:{end}];
    {top} {parameters}unit ({wired});
    initial begin
        $readmemh("rows.hex", rows);
        for (int i = 0; i <= {end}; i++) begin
            {{{names}}} = rows[i];
            #1 $display("d %h", d);
        end
        $finish;
    end
endmodule
"""


def simulators() -> list[str]:
    """Those on the PATH, the one that is taken first."""
    return [name for name in ("verilator", "iverilog") if shutil.which(name)]


def simulate(
    files: Sequence[Path],
    spec: DotAdd,
    rows: Rows,
    top: str,
    *,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    simulator: str | None = None,
    timeout: float = 600.0,
) -> NDArray[np.uint64]:
    """The codes of d that a design gives for rows.  Raises HardwareError where there is no simulator, or it fails."""
    there = simulators()
    chosen = simulator or (there[0] if there else None)
    if chosen is None or chosen not in there:
        missing = f"no {simulator}" if simulator else "neither verilator nor iverilog"
        raise HardwareError(f"there is {missing} on the PATH; Debian has packages of these names")
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        place = Path(folder)
        (place / "rows.hex").write_text(_hex(spec, rows), encoding="ascii")
        (place / "bench.sv").write_text(_bench(spec, len(rows), top, parameters), encoding="ascii")
        sources = [str(path.resolve()) for path in files] + ["bench.sv"]
        given = [f"-D{each}" for each in defines]
        if chosen == "verilator":
            flags = ["--binary", "--timing", "-Wno-fatal", "-Wno-lint", "--top-module", "mmaformal_bench"]
            _run(["verilator", *flags, *given, *sources, "-o", "bench"], place, timeout)
            said = _run(["./obj_dir/bench"], place, timeout)
        else:
            _run(
                ["iverilog", "-g2012", "-s", "mmaformal_bench", "-o", "bench", *given, *sources],
                place,
                timeout,
            )
            said = _run(["vvp", "-n", "bench"], place, timeout)
    found = [line.split()[1] for line in said.splitlines() if line.startswith("d ")]
    if len(found) != len(rows) or any(set(word) - set("0123456789abcdef") for word in found):
        raise HardwareError(
            f"{chosen} gave {len(found)} results for {len(rows)} rows, or some that are undefined"
        )
    return np.array([int(word, 16) for word in found], np.uint64)


def _run(command: Sequence[str], folder: Path, timeout: float) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HardwareError(f"{command[0]} did not end in {timeout:g} s; --timeout gives it more") from None
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]  # warnings come first
        raise HardwareError(f"{command[0]}: {(errors or lines or ['it failed'])[0]}")
    return done.stdout


def _bench(spec: DotAdd, count: int, top: str, parameters: Mapping[str, int | str] | None) -> str:
    ports = ports_of(spec)
    lines = [f"    logic [{bits - 1}:0] {name};" for name, bits in ports.items()]
    lines.append(f"    wire [{spec.d_format.storage_bits - 1}:0] d;")
    chosen = ", ".join(f".{name}({value})" for name, value in (parameters or {}).items())
    return _BENCH.format(
        ports="\n".join(lines),
        last=sum(ports.values()) - 1,
        end=count - 1,
        top=top,
        parameters=f"#({chosen}) " if chosen else "",
        wired=", ".join(f".{name}({name})" for name in (*ports, "d")),
        names=", ".join(ports),
    )


def _hex(spec: DotAdd, rows: Rows) -> str:
    """A line per row, its ports from left to right."""

    def word(codes: Sequence[int], fmt: Format) -> tuple[int, int]:
        bits = fmt.storage_bits
        return sum(int(x) << (k * bits) for k, x in enumerate(codes)), bits * len(codes)

    lines = []
    for case in rows.cases():
        words = [word(case.a, spec.a_format), word(case.b, spec.b_format), word((case.c,), spec.c_format)]
        if spec.scale_format is not None:
            words += [word(case.scale_a, spec.scale_format), word(case.scale_b, spec.scale_format)]
        row = 0
        for value, bits in words:
            row = row << bits | value
        lines.append(f"{row:x}\n")
    return "".join(lines)
