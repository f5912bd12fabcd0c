"""Registers cut out of a netlist, so that what is left is logic: each becomes an input, and its controls outputs.

The netlist is yosys' JSON of one flattened module.  All registers are to have one clock, of one edge, which is an
input; a clock gate (a latch of the enable that is open while the clock is inactive, and an AND) becomes an enable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError

NetBit = int | str  #: a net, or a constant "0", "1", "x", "z"

Json: TypeAlias = dict[str, Any]  #: what yosys writes of a module or a cell


#: Registers that are read, and the names of their control inputs with the parameters that say which value is active.
_KINDS: dict[str, tuple[str, ...]] = {
    "$dff": (),
    "$dffe": ("EN",),
    "$adff": ("ARST",),
    "$adffe": ("ARST", "EN"),
    "$aldff": ("ALOAD",),
    "$aldffe": ("ALOAD", "EN"),
    "$sdff": ("SRST",),
    "$sdffe": ("SRST", "EN"),
    "$sdffce": ("SRST", "EN"),
}
_OTHERS = ("$dlatch", "$adlatch", "$dlatchsr", "$sr", "$ff", "$dffsr", "$dffsre", "$mem", "$mem_v2")
_PREFIX = "mmaformal"
#: Cells that only pass a value on; True: its complement.
_PASSING = {"$buf": False, "$_BUF_": False, "$pos": False, "$not": True, "$logic_not": True, "$_NOT_": True}
_ANDS = ("$and", "$logic_and", "$_AND_")
_OUTPUTS = ("Y", "Q")


@dataclass(frozen=True, repr=False)
class Cut(ShortRepr):
    """One register that was cut out: the names of the ports in its place."""

    name: str  #: as the design calls it
    kind: str
    bits: int
    q: str
    inputs: Mapping[str, str]  #: by the cell's ports: D, EN, ARST, ALOAD, AD, SRST, and GATE of a gated clock
    active: Mapping[str, int]  #: which value of a control is active
    value: int = 0  #: of a reset


@dataclass(frozen=True, repr=False)
class Registers(ShortRepr):
    """All registers of a module."""

    cuts: tuple[Cut, ...] = ()
    clock: str = ""  #: the input that is their clock
    rising: bool = True  #: which edge of it counts


@dataclass
class _Netlist:
    module: Json
    drivers: dict[int, tuple[str, str, int]] = field(default_factory=dict)  #: net to cell, port and place
    ports: dict[int, tuple[str, int, int]] = field(default_factory=dict)  #: net to input, place and its bits
    names: dict[int, tuple[str, int]] = field(default_factory=dict)

    @staticmethod
    def of(module: Json) -> _Netlist:
        found = _Netlist(module)
        for name, cell in module["cells"].items():
            for port in _OUTPUTS:
                for place, bit in enumerate(cell["connections"].get(port, ())):
                    found.drivers[bit] = (name, port, place)
        for name, port in module["ports"].items():
            if port["direction"] == "input":
                for place, bit in enumerate(port["bits"]):
                    found.ports[bit] = (name, place, len(port["bits"]))
        nets = sorted(
            module["netnames"].items(), key=lambda each: (each[1].get("hide_name", 0), len(each[0]))
        )
        for name, net in nets:
            for place, bit in enumerate(net["bits"]):
                if isinstance(bit, int):
                    found.names.setdefault(bit, (name, place))
        return found

    def called(self, bits: list[NetBit]) -> str:
        """Return a person's name for some nets: the wire that has the first."""
        name, place = self.names.get(bits[0], ("a register without a name", 0)) if bits else ("", 0)  # type: ignore[arg-type]
        whole = self.module["netnames"].get(name, {"bits": []})["bits"]
        return name if whole == bits or len(whole) == 1 else f"{name}[{place + len(bits) - 1}:{place}]"


def cut_registers(module: Json) -> Registers:
    """Cut the registers out of a module, which is changed.  Raises HardwareError for what is no pipeline's register."""
    netlist = _Netlist.of(module)
    clocks: dict[tuple[str, bool], str] = {}
    cuts: list[Cut] = []
    latches: set[str] = set()
    for name, cell in list(_registers(module)):
        called = netlist.called(cell["connections"]["Q"])
        clock, rising, gate, gated_by = _Clock(netlist, called).of(cell)
        clocks.setdefault((clock, rising), called)
        latches |= gated_by
        cuts.append(_cut_out(module, name, called, len(cuts), gate))
    if len(clocks) > 1:
        said = ", ".join(
            f"{clock} ({'rising' if up else 'falling'}: {of})" for (clock, up), of in clocks.items()
        )
        raise HardwareError(f"there are registers of several clocks, {said}; only one clock and edge is read")
    for name in latches:
        del module["cells"][name]
    for name, cell in module["cells"].items():
        if cell["type"] in _OTHERS or (cell["type"] in _KINDS):
            raise HardwareError(_refused(netlist, name, cell))
    clock, rising = next(iter(clocks)) if clocks else ("", True)
    return Registers(tuple(cuts), clock, rising)


def _registers(module: Json) -> Iterator[tuple[str, Json]]:
    return ((name, cell) for name, cell in module["cells"].items() if cell["type"] in _KINDS)


def _refused(netlist: _Netlist, name: str, cell: Json) -> str:
    called = netlist.called(cell["connections"].get("Q") or cell["connections"].get("RD_DATA") or [])
    if "latch" in cell["type"]:
        return (
            f"the design has latches ({called}); what is read are registers of one clock, and latches only in clock "
            f"gates (a latch of the enable that is open while the clock is inactive, and an AND)"
        )
    kind = "a memory" if "mem" in cell["type"] else f"a register of the kind {cell['type']}"
    return f"{called or name} is {kind}, which is not read; only edge-triggered registers are"


def _number(parameters: Json, name: str, default: int = 1) -> int:
    value = parameters.get(name, default)
    return int(value.replace("x", "0") or "0", 2) if isinstance(value, str) else int(value)


def _cut_out(module: Json, name: str, called: str, number: int, gate: list[NetBit]) -> Cut:
    """Take one register's cell out of a module, and put ports in its place."""
    cell = module["cells"].pop(name)
    wired, parameters = cell["connections"], cell["parameters"]
    kind = cell["type"]
    needed = ["D", *(["AD"] if "ALOAD" in _KINDS[kind] else []), *_KINDS[kind]]
    if gate:
        wired, needed = {**wired, "GATE": gate}, [*needed, "GATE"]
    q = f"{_PREFIX}_q{number}"
    module["ports"][q] = {"direction": "input", "bits": wired["Q"]}
    inputs = {}
    for each in needed:
        inputs[each] = f"{_PREFIX}_{each.lower()}{number}"
        module["ports"][inputs[each]] = {"direction": "output", "bits": wired[each]}
    active = {each: _number(parameters, f"{each}_POLARITY") & 1 for each in _KINDS[kind]}
    value = _number(parameters, "ARST_VALUE" if "ARST" in active else "SRST_VALUE", 0)
    return Cut(called, kind, len(wired["Q"]), q, inputs, active, value)


@dataclass
class _Clock:
    """The clock of one register, followed through inverters and gates to an input."""

    netlist: _Netlist
    register: str

    def of(self, cell: Json) -> tuple[str, bool, list[NetBit], set[str]]:
        """The input, whether its rising edge counts, the enables of gates, and the latches in them."""
        rising = bool(_number(cell["parameters"], "CLK_POLARITY") & 1)
        (bit,) = cell["connections"]["CLK"]
        gate: list[NetBit] = []
        latches: set[str] = set()
        while True:
            bit, rising = self._source(bit, rising)
            name, _, _ = self.netlist.drivers.get(bit, ("", "", 0)) if isinstance(bit, int) else ("", "", 0)
            if not name:
                return self._input(bit), rising, gate, latches
            cell = self.netlist.module["cells"][name]
            if cell["type"] not in _ANDS or len(cell["connections"]["Y"]) != 1 or not rising:
                raise HardwareError(
                    f"the clock of {self.register} is made by logic ({self.netlist.called([bit])}, {cell['type']}); "
                    f"only an input, its complement, and clock gates with a latch are read"
                )
            bit, enable, latch = self._gate(cell)
            gate.append(enable)
            latches.add(latch)

    def _source(self, bit: NetBit, rising: bool) -> tuple[NetBit, bool]:
        """A net followed to where it is driven, through buffers and inverters."""
        while isinstance(bit, int) and bit in self.netlist.drivers:
            name, _, place = self.netlist.drivers[bit]
            cell = self.netlist.module["cells"][name]
            wide = len(cell["connections"].get("A", ()))
            if cell["type"] not in _PASSING or place >= wide or (cell["type"] == "$logic_not" and wide > 1):
                return bit, rising
            bit, rising = cell["connections"]["A"][place], rising != _PASSING[cell["type"]]
        return bit, rising

    def _input(self, bit: NetBit) -> str:
        if bit in self.netlist.ports:
            name, place, bits = self.netlist.ports[bit]
            return name if bits == 1 else f"{name}[{place}]"
        if isinstance(bit, str) and bit in "01":
            raise HardwareError(
                f"the clock of {self.register} is the constant {bit}, so that it never changes: connect the clock"
            )
        raise HardwareError(f"nothing drives the clock of {self.register}: connect the clock")

    def _gate(self, cell: Json) -> tuple[NetBit, NetBit, str]:
        """Return an AND's clock, the enable that is latched, and the latch.  Raises HardwareError for another AND."""
        sides = [cell["connections"]["A"][0], cell["connections"]["B"][0]]
        for clock, enable in (sides, sides[::-1]):
            source, plain = self._source(enable, True)
            name = self.netlist.drivers.get(source, ("",))[0] if isinstance(source, int) else ""
            latch = self.netlist.module["cells"].get(name)
            if latch is None or latch["type"] != "$dlatch" or not plain:
                continue
            place = latch["connections"]["Q"].index(source)
            opened = bool(_number(latch["parameters"], "EN_POLARITY") & 1)
            if self._source(latch["connections"]["EN"][0], opened) == (self._source(clock, True)[0], False):
                return clock, latch["connections"]["D"][place], name
        raise HardwareError(
            f"the clock of {self.register} is gated without a latch of the enable ({self.netlist.called(sides)}), "
            f"which makes glitches; use a clock gate with a latch that is open while the clock is low"
        )
