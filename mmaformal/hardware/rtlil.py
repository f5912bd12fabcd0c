"""Checks of what yosys' passes take for granted: each bit has one driver, and nothing is set once at the start.

`assign d = x; assign d = ~x;` makes x and ~x one signal to yosys, which then proves what it likes of it; its own
`check` does not see a constant among several drivers.  So the design is looked at where each driver is still written:
in yosys' text of it (RTLIL), and in its syntax trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mmaformal.hardware.module import HardwareError

#: Names of ports that are outputs, of the cells that yosys makes itself.
_OUTPUTS = frozenset(("\\Y", "\\Q", "\\X", "\\CO", "\\RD_DATA", "\\DATA"))
#: Cells whose port DATA is an input.
_WRITES = ("$memwr", "$meminit")
_WIRE = re.compile(r"\s*wire\s+(?P<options>.*?)(?P<name>[\\$]\S+)\s*$")
_INITIAL = re.compile(r"^(?P<before>\s*)AST_INITIAL <(?P<where>[^>]*)>")
_ASSIGNS = re.compile(r"^(?P<before>\s*)AST_ASSIGN(?:_EQ|_LE|W)? <(?P<where>[^>]*)>")
_STR = re.compile(r"str='\\?([^']*)'")
_TOKEN = re.compile(r"\{|\}|\[\d+(?::\d+)?\]|\S+")

NetBits = list[tuple[str, int]]


@dataclass
class _Module:
    name: str
    widths: dict[str, int] = field(default_factory=dict)
    directions: dict[str, str] = field(default_factory=dict)
    assigned: list[str] = field(default_factory=list)  #: left-hand sides
    cells: list[tuple[str, str, str]] = field(default_factory=list)  #: type, port, what is connected to it


def check_drivers(text: str) -> None:
    """Look at each module of yosys' text of a design.  Raises HardwareError for a bit with two drivers, and `inout`."""
    modules = {module.name: module for module in _modules(text)}
    for module in modules.values():
        for name, direction in module.directions.items():
            if direction == "inout":
                raise HardwareError(
                    f"the port {_plain(name)} of {_plain(module.name)} is inout: make it input or output"
                )
        driven: set[tuple[str, int]] = set()
        for bit in _drivers(module, modules):
            if bit in driven:
                wire, index = bit
                raise HardwareError(
                    f"{_plain(module.name)}: {_plain(wire)}[{index}] has several drivers (two assigns, or an assign to "
                    f"an input): give it one"
                )
            driven.add(bit)


def check_initial(text: str) -> None:
    """Look at yosys' syntax trees.  Raises HardwareError where an `initial` block, or the declaration of a variable,
    assigns a value, which holds at the start alone."""
    inside: int | None = None
    name_next = ""
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if name_next:
            found = _STR.search(line)
            name = f" {found[1]}" if found else ""
            raise HardwareError(
                f"a value is given once, at the start ({name_next}:{name}): only combinational designs are read; write "
                f"`assign` or a localparam in the place of `initial` or `logic x = …`"
            )
        start = _INITIAL.match(line)
        if start is not None:
            inside = depth
        elif inside is not None and depth <= inside:
            inside = None
        elif inside is not None and (given := _ASSIGNS.match(line)) is not None:
            name_next = given["where"]


def _plain(name: str) -> str:
    return name.lstrip("\\")


def _modules(text: str) -> Iterator[_Module]:
    module: _Module | None = None
    cell = ""
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "module":
            module = _Module(words[1])
        elif module is None:
            continue
        elif words[0] == "wire" and (found := _WIRE.match(line)) is not None:
            options = found["options"].split()
            width = int(options[options.index("width") + 1]) if "width" in options else 1
            module.widths[found["name"]] = width
            for direction in ("input", "output", "inout"):
                if direction in options:
                    module.directions[found["name"]] = direction
        elif words[0] == "cell":
            cell = words[1]
        elif words[0] == "end":
            if not cell:
                yield module
                module = None
            cell = ""
        elif words[0] == "connect" and cell:
            module.cells.append((cell, words[1], line.split(None, 2)[2]))
        elif words[0] == "connect":
            module.assigned.append(line.split(None, 1)[1])


def _drivers(module: _Module, modules: dict[str, _Module]) -> Iterator[tuple[str, int]]:
    """Each bit of a module that something drives, as often as it is driven."""
    for name, direction in module.directions.items():
        if direction == "input":
            yield from ((name, bit) for bit in range(module.widths[name]))
    for text in module.assigned:
        yield from _left(text, module)
    for kind, port, text in module.cells:
        if kind in modules:
            drives = modules[kind].directions.get(port) == "output"
        else:
            drives = port in _OUTPUTS and not (port == "\\DATA" and kind.startswith(_WRITES))
        if drives:
            yield from _left(text, module)


def _left(text: str, module: _Module) -> NetBits:
    """The bits of the first signal that is written in a text: a wire, some of its bits, or several in braces."""
    found: NetBits = []
    depth = 0
    tokens = _TOKEN.findall(text)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        depth += (token == "{") - (token == "}")
        if token in module.widths:
            high, low = module.widths[token] - 1, 0
            while at + 1 < len(tokens) and tokens[at + 1].startswith("["):
                at += 1
                ends = [int(x) for x in tokens[at].strip("[]").split(":")]
                high, low = low + ends[0], low + ends[-1]
            found += [(token, bit) for bit in range(low, high + 1)]
        at += 1
        if depth == 0:
            break
    return found
