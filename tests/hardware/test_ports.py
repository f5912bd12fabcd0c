"""Ports of a design as they are given or guessed, and file lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaformal import datapath, volta
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.ports import LAYOUTS, PortMap, Wiring, read_mapping, read_number, read_place, wiring
from mmaformal.hardware.sources import Sources

SPEC = volta["HMMA.884.F32.F32"].spec
FMA = datapath["fma(k=1,a=fp16,rho=IEEE-FP16)"].spec
OUTPUTS = {"result_o": 32, "out_valid_o": 1}
INPUTS = {"clk_i": 1, "rst_ni": 1, "in_valid_i": 1, "flush_i": 1, "rm_i": 3}


def wired(inputs: dict[str, int], **said: str) -> Wiring:
    ports = {name.replace("_at_", "[") + ("]" if "_at_" in name else ""): x for name, x in said.items()}
    return wiring(SPEC, INPUTS | inputs, OUTPUTS, "clk_i", PortMap(ports))


def test_ports_are_guessed_by_names_and_widths_and_told() -> None:
    told = wired({"op_a_i": 64, "op_b_i": 64, "addend_i": 32}).told()
    assert told == [
        "ports: a = op_a_i (guessed); b = op_b_i (guessed); c = addend_i (guessed); d = result_o (guessed)",
        "guessed to be tied: rst_ni = 1; in_valid_i = 1; flush_i = 0; rm_i = 0",
    ]


def test_three_operands_in_one_port_are_a_b_and_c() -> None:
    found = wiring(FMA, {"operands_i": 48}, {"result_o": 16}, "", PortMap())
    assert found.told()[0] == (
        "ports: a = operands_i[15:0] (guessed); b = operands_i[31:16] (guessed); c = operands_i[47:32] (guessed); "
        "d = result_o (guessed)"
    )


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (LAYOUTS[0], ["ops[31:0]", "ops[63:32]", "ops[95:64]"]),
        (LAYOUTS[1], ["ops[95:64]", "ops[63:32]", "ops[31:0]"]),
        (LAYOUTS[2], ["ops[15:0], ops[47:32]", "ops[31:16], ops[63:48]", "ops[95:64]"]),
        (LAYOUTS[3], ["ops[95:80], ops[63:48]", "ops[79:64], ops[47:32]", "ops[31:0]"]),
    ],
)
def test_operands_in_one_port_are_in_one_of_several_orders(layout: str, said: list[str]) -> None:
    spec = datapath["fda(k=2,frac_bits=24,a=fp16)"].spec
    found = wiring(spec, {"ops": 96}, {"d": 32}, "", PortMap(), layout)
    assert found.vector == "ops"
    assert found.told()[0].split(" (guessed)")[:3] == [
        f"{'ports: ' if name == 'a' else '; '}{name} = {each}" for name, each in zip("abc", said, strict=True)
    ]


def test_codes_of_an_operand_have_places_of_their_own() -> None:
    x = {f"a_at_{k}": f"x_i[{16 * k + 15}:{16 * k}]" for k in (0, 1)} | {"a_at_2:3": "y_i[31:0]"}
    found = wired({"x_i": 32, "y_i": 40, "b": 64, "c": 32}, **x)
    assert [(part.low, part.bits, str(part.place)) for part in found.parts[:3]] == [
        (0, 16, "x_i[15:0]"),
        (16, 16, "x_i[31:16]"),
        (32, 32, "y_i[31:0]"),
    ]
    assert "y_i[39:32] = 0" in found.told()[-1]


@pytest.mark.parametrize(
    ("ports", "ties", "said"),
    [
        ({"a": "x"}, {}, "there is no input x; there are clk_i"),
        ({"a": "a_i[31:0]"}, {}, "a has 64 bits"),
        ({"a[0]": "a_i[15:0]"}, {}, r"a\[1\] has no port.*, or ask about a model of 1 \(--replace k=1"),
        ({"a[4]": "a_i[15:0]"}, {}, "a has 4 codes"),
        ({"q": "a_i"}, {}, "q is none of a, b, c, d"),
        ({"d": "out_valid_o"}, {}, "d has 32 bits"),
        ({}, {"rm_i": "9"}, "9 does not fit in 3 bits"),
        ({}, {"rm_i": "high"}, "'high' is no number"),
        ({}, {"clk_i": "0"}, "clk_i is the clock"),
        ({"c": "c"}, {"c[3]": "0"}, r"c\[3\] is said to be two things"),
    ],
)
def test_what_cannot_be_wired_is_said_in_one_line(
    ports: dict[str, str], ties: dict[str, str], said: str
) -> None:
    inputs = INPUTS | {"a_i": 64, "b": 64, "c": 32}
    with pytest.raises(HardwareError, match=said):
        wiring(SPEC, inputs, OUTPUTS, "clk_i", PortMap(ports, ties))


def test_numbers_and_places() -> None:
    assert [read_number(x) for x in ("5", "0x1f", "0b101", "3'b101", "8'hff")] == [5, 31, 5, 5, 255]
    assert str(read_place("x[3]")) == "x[3]"
    assert str(read_place("ops_i[15:0]@2")) == "ops_i[15:0]@2"
    with pytest.raises(HardwareError, match="the higher bit is first"):
        read_place("x[0:3]")


def test_a_mapping_is_read(tmp_path: Path) -> None:
    path = tmp_path / "unit.toml"
    path.write_text(
        'top = "unit"\ncycles = 3\n[port]\n"a[0]" = "x[15:0]"\n[tie]\nrm_i = 1\n', encoding="utf-8"
    )
    found = read_mapping(path)
    assert (found.top, found.cycles) == ("unit", 3)
    assert found.ports == {"a[0]": "x[15:0]"}
    assert found.ties == {"rm_i": "1"}
    path.write_text("[ports]\n", encoding="utf-8")
    with pytest.raises(HardwareError, match=r"ports is none of \[port\]"):
        read_mapping(path)


def test_a_file_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    (inner / "inc").mkdir(parents=True)
    for name in ("p.sv", "q.sv"):
        (inner / name).write_text("", encoding="utf-8")
    (inner / "inner.f").write_text("+incdir+inc\np.sv // a package\n/* none */ q.sv\n", encoding="utf-8")
    monkeypatch.setenv("PLACE", str(tmp_path))
    outer = tmp_path / "outer.f"
    outer.write_text("# all\n+define+X=1+Y -F ${PLACE}/inner/inner.f\n--top unit\n", encoding="utf-8")
    found = Sources((), lists=(outer,)).complete()
    assert found.files == (inner / "p.sv", inner / "q.sv")
    assert found.includes == (inner / "inc",)
    assert (found.defines, found.top) == (("X=1", "Y"), "unit")
    outer.write_text("-f outer.f\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HardwareError, match="names itself"):
        Sources((), lists=(outer,)).complete()
    outer.write_text("--strange\n", encoding="utf-8")
    with pytest.raises(HardwareError, match="--strange is not understood"):
        Sources((), lists=(outer,)).complete()
