"""Files with which others see for themselves what was found of a design, with their own tools.

- harness.sv: the design, its ports driven from codes of operands as signing off found them, cycle by cycle
- tb.sv, tb.cpp: the inputs that were found, what is expected and what was seen, and the model stage by stage
- model.sv, same.sv: the model, and which results are the same, as reference modules
- miter.sv, miter.sby: both designs side by side, for SymbiYosys
- design.f, Makefile: the design's files, and how each of these is run

Both testbenches end with an exit status that is not 0 if the design gives another d than is expected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.display import ShortRepr
from mmaformal.hardware.designs import Driven
from mmaformal.hardware.module import HardwareError, Module, model_of, ports_of
from mmaformal.hardware.ports import Place, Tie, read_place
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.spec import DotAdd

_WORD = 32


@dataclass(frozen=True, repr=False)
class Stimulus(ShortRepr):
    """One input, and what is expected of the design there."""

    title: str
    codes: Codes
    expected: int  #: the code of the model's d
    got: int | None = None  #: that of the design's, where it is another one
    story: str = ""  #: the model, stage by stage
    free: Mapping[str, int] = field(default_factory=dict)  #: inputs that may be anything, by their places


@dataclass(frozen=True, repr=False)
class Miter(ShortRepr):
    """A design and the model side by side, and what both are driven by."""

    sources: Sources
    top: str
    spec: DotAdd
    driven: Driven
    question: str
    cases: Sequence[Stimulus]
    same: Module  #: of x and y, whether they are the same d; its output is `same`
    allowed: Module | None = (
        None  #: of the operands and both results, whether they are asked about; output `allowed`
    )

    @property
    def clocked(self) -> bool:
        """Whether the design has registers."""
        return bool(self.driven.clock)

    @property
    def last(self) -> int:
        """The cycle, counted from the first one of reset, in which d is there."""
        return self.driven.reset + self.driven.cycles

    def free(self) -> dict[str, int]:
        """The inputs, or bits of them, that may be anything: their bits, by their places."""
        found: dict[str, int] = {}
        for name, bits in self.driven.inputs.items():
            for place, said in self._places(name, bits).items():
                if not said or (isinstance(said[0], Tie) and not said[0].values):
                    found[str(place)] = place.bits
        return found

    def _places(self, name: str, bits: int) -> dict[Place, list[object]]:
        """The bits of an input in places, with what is said of each: parts of operands, a tie, or nothing."""
        wiring, found = self.driven.wiring, dict[Place, list[object]]()
        for part in wiring.parts:
            if part.place.port == name:
                found.setdefault(Place(name, part.place.high, part.place.low), []).append(part)
        for tie in (*wiring.resets, *wiring.ties):
            if tie.place.port == name:
                found.setdefault(Place(name, tie.place.high, tie.place.low), []).append(tie)
        if self.clocked and self.driven.clock.partition("[")[0] == name:
            low = max(read_place(self.driven.clock).low, 0)
            found[Place(name, low, low)] = ["clk"]
        low = 0
        for place in sorted(found, key=lambda each: each.low):
            if place.low > low:
                found[Place(name, place.low - 1, low)] = []
            low = place.high + 1
        if low < bits:
            found[Place(name, bits - 1, low, whole=low == 0)] = []
        return found

    def harness(self) -> str:
        """The design, driven from operands and the number of the cycle."""
        ports = [f"input  logic {_range(bits)}{name}" for name, bits in self._inputs().items()]
        ports.append(f"output logic {_range(self.spec.d_format.storage_bits)}d")
        lines = [
            "// The design, its ports driven as `mmaformal signoff` does; t counts cycles, from 0.",
            *(f"// {line}" for line in self.driven.wiring.told()),
            "module mmaformal_harness (",
            ",\n".join(f"  {port}" for port in ports),
            ");",
        ]
        for name, bits in self.driven.inputs.items():
            lines.append(f"  wire {_range(bits)}p_{name};")
            for place, said in self._places(name, bits).items():
                lines.append(f"  assign p_{name}[{place.high}:{place.low}] = {self._driver(place, said)};")
        result = self.driven.wiring.result
        for name, bits in self.driven.outputs.items():
            lines.append(f"  wire {_range(bits)}p_{name};")
        wired = [f".{name}(p_{name})" for name in (*self.driven.inputs, *self.driven.outputs)]
        chosen = ", ".join(f".{name}({value})" for name, value in self.sources.parameters.items())
        lines += [
            f"  {self.top} {f'#({chosen}) ' if chosen else ''}dut ({', '.join(wired)});",
            f"  assign d = p_{result.port}[{result.high}:{result.low}];",
            "endmodule",
        ]
        return "\n".join(lines) + "\n"

    def _inputs(self) -> dict[str, int]:
        """The harness's inputs, and their bits."""
        clock = {"clk": 1} if self.clocked else {}
        free = {_name(place): bits for place, bits in self.free().items()}
        return {**clock, "t": 16, **ports_of(self.spec), **free}

    def _driver(self, place: Place, said: Sequence[object]) -> str:
        """Return what bits of an input are connected to, in Verilog."""
        if not said or (isinstance(said[0], Tie) and not said[0].values):
            return _name(str(place))
        if said == ["clk"]:
            return "clk"
        first = self.driven.reset
        text = f"{place.bits}'d0"
        for each in said:
            if isinstance(each, Tie):
                values = [_hex(value, place.bits) for value in each.values]
                text = values[-1]
                for cycle, value in reversed(list(enumerate(values[:-1]))):
                    text = f"t <= 16'd{first + cycle} ? {value} : {text}"
                if each in self.driven.wiring.resets and first:
                    text = f"t < 16'd{first} ? {_hex(~each.values[0], place.bits)} : {text}"
                return text
            part = each
            bits = f"{part.operand}[{part.low + part.bits - 1}:{part.low}]"  # type: ignore[attr-defined]
            cycle = part.place.cycle  # type: ignore[attr-defined]
            text = bits if cycle is None else f"t == 16'd{first + cycle} ? {bits} : {text}"
        return text

    # ---- both side by side ------------------------------------------------------------------------------------------

    def miter(self) -> str:
        """The design and the model side by side; the script of yosys has its outputs asserted and assumed."""
        bits, inputs = self.spec.d_format.storage_bits, self._inputs()
        operands = [name for name in inputs if name not in ("clk", "t")]
        given = ["clk", *operands] if self.clocked else operands
        lines = [
            f"// {self.question}",
            "// To be proved: whenever `checked`, `equal`; assuming `assumed` in every cycle.",
            "module mmaformal_miter (",
            *(f"  input  logic {_range(inputs[name])}{name}," for name in given),
            f"  output logic {_range(bits)}d_design, d_model,",
            "  output logic equal, checked, assumed",
            ");",
            "  logic [15:0] t;",
            "  logic same, allowed, stays;",
        ]
        if self.clocked:
            lines += [
                "  logic [15:0] count = 16'd0;",
                f"  always @(posedge clk) if (count != 16'd{self.last + 1}) count <= count + 16'd1;",
                "  assign t = count;",
            ]
            for name in operands:
                lines += [
                    f"  logic {_range(inputs[name])}{name}_before;",
                    f"  always @(posedge clk) {name}_before <= {name};",
                ]
            held = [f"{name} == {name}_before" for name in operands if name in ports_of(self.spec)]
            lines.append(f"  assign stays = count == 16'd0 || ({' && '.join(held)});")
        else:
            lines += ["  assign t = 16'd0;", "  assign stays = 1'b1;"]
        wired = [f".{name}({name})" for name in (*operands, "t")]
        if self.clocked:
            wired.append(f".clk({'clk' if self.driven.rising else '~clk'})")
        ports = [f".{name}({name})" for name in ports_of(self.spec)]
        lines += [
            f"  mmaformal_harness i_design ({', '.join([*wired, '.d(d_design)'])});",
            f"  mmaformal_model i_model ({', '.join([*ports, '.d(d_model)'])});",
            "  mmaformal_same i_same (.x(d_design), .y(d_model), .same(same));",
        ]
        if self.allowed is None:
            lines.append("  assign allowed = 1'b1;")
        else:
            both = [*ports, ".x(d_design)", ".y(d_model)"]
            lines.append(f"  mmaformal_allowed i_allowed ({', '.join(both)}, .allowed(allowed));")
        checked = f"t == 16'd{self.last} && allowed"
        lines += [
            "  assign equal = same;",
            f"  assign checked = {checked};",
            "  assign assumed = stays;",
            "endmodule",
        ]
        return "\n".join(lines) + "\n"

    def own(self) -> list[str]:
        """The files that are read beside the design's."""
        more = ["allowed.sv"] if self.allowed is not None else []
        return ["model.sv", "same.sv", *more, "harness.sv", "miter.sv"]

    def reading(self, files: Sequence[str], includes: Sequence[str]) -> str:
        """The commands of yosys that read the miter, from the design's files as they are named."""
        named = " ".join([*files, *self.own()])
        given = [*(f"-I {each}" for each in includes), *(f"-D {each}" for each in self.sources.defines)]
        if self.sources.systemverilog:
            flags = "--threads 1 --ignore-assertions --ignore-timing --relax-enum-conversions"
            return f"read_slang {flags} {' '.join(given)} --top mmaformal_miter {named}"
        plain = " ".join(each.replace(" ", "", 1) for each in given)
        return f"read_verilog -sv {plain} {named}".replace("  ", " ")

    def sby(self) -> str:
        """The script of SymbiYosys."""
        files = [(f"design{i}_{path.name}", path) for i, path in enumerate(self.sources.files)]
        includes = [(f"include{i}", path) for i, path in enumerate(self.sources.includes)]
        listed = [f"{name} {path.resolve()}" for name, path in (*files, *includes)]
        return _SBY.format(
            question=self.question,
            depth=self.last + 1,
            reading=self.reading([name for name, _ in files], [name for name, _ in includes]),
            files="\n".join([*listed, *self.own()]),
        )


@dataclass(frozen=True, repr=False)
class Bench(Miter):
    """All that the files are written from: the miter, and testbenches of cases."""

    def write(self, folder: Path) -> list[Path]:
        """Write the files, and return their paths.  Raises HardwareError for a design of BTOR2."""
        if self.sources.btor2:
            raise HardwareError("a testbench is of Verilog or SystemVerilog, and the design is BTOR2")
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "harness.sv": self.harness(),
            "tb.sv": self.systemverilog(),
            "tb.cpp": self.cpp(),
            "model.sv": systemverilog(model_of(self.spec, "mmaformal_model"), f"The model: {self.spec.text}"),
            "same.sv": systemverilog(self.same, "Whether two results are the same."),
            "miter.sv": self.miter(),
            "miter.sby": self.sby(),
            "design.f": self._file_list(),
            "Makefile": _MAKEFILE,
        }
        if self.allowed is not None:
            texts["allowed.sv"] = systemverilog(self.allowed, "Which inputs are asked about.")
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        return [folder / name for name in texts]

    # ---- the design and its ports -----------------------------------------------------------------------------------

    def _values(self, case: Stimulus) -> dict[str, int]:
        """The values of the harness's inputs, but the clock and the cycle."""
        spec, x = self.spec, case.codes
        sides = {"a": (x.a, spec.a_format), "b": (x.b, spec.b_format), "c": ((x.c,), spec.c_format)}
        if spec.scale_format is not None:
            sides |= {"scale_a": (x.scale_a, spec.scale_format), "scale_b": (x.scale_b, spec.scale_format)}
        found = {
            name: sum(int(code) << k * fmt.storage_bits for k, code in enumerate(codes))
            for name, (codes, fmt) in sides.items()
        }
        return {**found, **{_name(place): case.free.get(place, 0) for place in self.free()}}

    def _told(self, number: int, case: Stimulus, before: str) -> list[str]:
        """Return the lines of a comment about a case."""
        d = self.spec.d_format
        got = "" if case.got is None else f", the design gave {case.got:#x} = {d.text(case.got)}"
        said = [
            f"case {number}: {case.title}",
            case.codes.text,
            f"expected {case.expected:#x} = {d.text(case.expected)}{got}",
            *(["the model:"] if case.story else []),
            *case.story.splitlines(),
        ]
        return [f"{before}// {line}".rstrip() for line in said]

    def systemverilog(self) -> str:
        """The testbench in SystemVerilog."""
        bits, inputs = self.spec.d_format.storage_bits, self._inputs()
        lines = [f"// {self.question}", "module mmaformal_tb;"]
        lines += [f"  logic {_range(width)}{name};" for name, width in inputs.items()]
        lines += [f"  logic {_range(bits)}d, expected;", "  logic same;", "  int wrong = 0;"]
        wired = ", ".join(f".{name}({name})" for name in (*inputs, "d"))
        lines += [
            f"  mmaformal_harness i_harness ({wired});",
            "  mmaformal_same i_same (.x(d), .y(expected), .same(same));",
            "  task automatic run(int number);",
            f"    for (int i = 0; i < {self.last}; i++) begin",
            "      t = 16'(i);",
            *(["      #1 clk = EDGE;", "      #1 clk = ~clk;"] if self.clocked else ["      #1;"]),
            "    end",
            f"    t = 16'd{self.last};",
            "    #1;",
            '    if (same) $display("case %0d: d = %h, as expected", number, d);',
            '    else begin wrong++; $display("case %0d: d = %h, expected %h", number, d, expected); end',
            "  endtask",
            "  initial begin",
            *(["    clk = ~EDGE;"] if self.clocked else []),
        ]
        for number, case in enumerate(self.cases, 1):
            lines += self._told(number, case, "    ")
            lines += [f"    {name} = {_hex(x, inputs[name])};" for name, x in self._values(case).items()]
            lines += [f"    expected = {_hex(case.expected, bits)};", f"    run({number});"]
        count = len(self.cases)
        lines += [
            f'    if (wrong != 0) $fatal(1, "%0d of {count} cases are wrong", wrong);',
            f'    $display("all of {count} cases are right");',
            "    $finish;",
            "  end",
            "endmodule",
        ]
        return "\n".join(lines).replace("~EDGE", self._edge(False)).replace("EDGE", self._edge(True)) + "\n"

    def _edge(self, active: bool) -> str:
        return f"1'b{int(self.driven.rising == active)}"

    def cpp(self) -> str:
        """The testbench in C++, for Verilator."""
        inputs, active = self._inputs(), int(self.driven.rising)
        clock = [f"dut.clk = {active}; dut.eval(); dut.clk = {1 - active};"] if self.clocked else []
        before = f"dut.clk = {1 - active}; " if self.clocked else ""
        body: list[str] = []
        for number, case in enumerate(self.cases, 1):
            body += self._told(number, case, "  ")
            for name, x in self._values(case).items():
                words = [x >> low & 0xFFFFFFFF for low in range(0, inputs[name], _WORD)]
                body.append(f"  set(dut.{name}, {{{', '.join(f'{word:#x}u' for word in words)}}});")
            body.append(f"  run(dut, {number}, {case.expected:#x}ull);")
        return _CPP.format(
            question=self.question,
            same=self._same_cpp(),
            last=self.last,
            before=before,
            clock=" ".join(clock) or ";",
            body="\n".join(body),
            count=len(self.cases),
        )

    def _same_cpp(self) -> str:
        """The expression in C++ that two codes are the same."""
        fmt, said = self.spec.d_format, ["x == y"]
        bits = [z3.BitVecVal(code, fmt.storage_bits) for code in (_nan(fmt.codes, fmt.is_nan), 0)]
        if bits[0].as_long() and self.sames(bits[0], z3.BitVecVal(bits[0].as_long() ^ 1, fmt.storage_bits)):
            exponent = ((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.ignored_low_bits)
            fraction = ((1 << fmt.fraction_bits) - 1) << fmt.ignored_low_bits
            nan = "({0} & {1:#x}ull) == {1:#x}ull && ({0} & {2:#x}ull)"
            said.append("(" + " && ".join(nan.format(each, exponent, fraction) for each in "xy") + ")")
        if self.sames(bits[1], z3.BitVecVal(fmt.sign_mask, fmt.storage_bits)):
            said.append(f"!((x | y) & {fmt.sign_mask - 1:#x}ull)")
        return " || ".join(said)

    def sames(self, x: z3.BitVecRef, y: z3.BitVecRef) -> bool:
        """Whether two codes are the same d."""
        pairs = [(self.same.inputs["x"], x), (self.same.inputs["y"], y)]
        return bool(z3.simplify(z3.substitute(self.same.outputs["same"], *pairs)).as_long())

    # ---- how they are run -------------------------------------------------------------------------------------------

    def _file_list(self) -> str:
        lines = [f"+incdir+{path.resolve()}" for path in self.sources.includes]
        lines += [f"+define+{each}" for each in self.sources.defines]
        return "\n".join([*lines, *(str(path.resolve()) for path in self.sources.files)]) + "\n"


def _nan(codes: int, is_nan: object) -> int:
    """The code of a NaN with its highest bits set, or 0 where the format has none."""
    for code in (codes // 2 - 1, codes // 2 - 2):
        if callable(is_nan) and is_nan(code) and is_nan(code ^ 1):
            return code
    return 0


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] "


def _name(place: str) -> str:
    """A name for what may be anything."""
    return "any_" + re.sub(r"\W+", "_", place).strip("_")


def _hex(value: int, bits: int) -> str:
    return f"{bits}'h{value & (1 << bits) - 1:x}"


_CPP = """// {question}
// verilator --cc --exe --build --top-module mmaformal_harness -f design.f harness.sv tb.cpp
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include "Vmmaformal_harness.h"
#include "verilated.h"

static int wrong = 0;

template <typename T> static void set(T& port, std::initializer_list<uint32_t> words) {{
  if constexpr (requires {{ port[0]; }}) {{
    int i = 0;
    for (uint32_t word : words) port[i++] = word;
  }} else {{
    uint64_t value = 0;
    int low = 0;
    for (uint32_t word : words) {{ value |= uint64_t(word) << low; low += 32; }}
    port = value;
  }}
}}

static bool same(uint64_t x, uint64_t y) {{ return {same}; }}

static void run(Vmmaformal_harness& dut, int number, uint64_t expected) {{
  {before}
  for (int t = 0; t < {last}; t++) {{
    dut.t = t;
    dut.eval();
    {clock}
    dut.eval();
  }}
  dut.t = {last};
  dut.eval();
  const uint64_t d = dut.d;
  if (same(d, expected)) {{
    std::printf("case %d: d = %llx, as expected\\n", number, (unsigned long long)d);
  }} else {{
    wrong++;
    std::printf("case %d: d = %llx, expected %llx\\n", number, (unsigned long long)d, (unsigned long long)expected);
  }}
}}

int main(int argc, char** argv) {{
  Verilated::commandArgs(argc, argv);
  Vmmaformal_harness dut;
{body}
  if (wrong) std::printf("%d of {count} cases are wrong\\n", wrong);
  else std::printf("all of {count} cases are right\\n");
  return wrong != 0;
}}
"""

_SBY = """# {question}
# sby -f miter.sby
[options]
mode bmc
depth {depth}

[engines]
smtbmc

[script]
{reading}
prep -flatten -top mmaformal_miter
add -assume assumed
add -assert equal -if checked

[files]
{files}
"""

_MAKEFILE = """# make sv: the testbench in SystemVerilog; make cpp: that in C++; make sby: a proof, or a counterexample
VERILATOR = verilator
FLAGS = -Wno-fatal -Wno-lint -Wno-ENUMVALUE -f design.f

.PHONY: sv cpp sby
sv:
\t$(VERILATOR) --binary --timing $(FLAGS) same.sv harness.sv tb.sv --top-module mmaformal_tb --Mdir obj_sv -o tb
\t./obj_sv/tb
cpp:
\t$(VERILATOR) --cc --exe --build -CFLAGS -std=c++20 $(FLAGS) harness.sv tb.cpp --top-module mmaformal_harness \\
\t\t--Mdir obj_cpp -o tb
\t./obj_cpp/tb
sby:
\tsby -f miter.sby
"""
