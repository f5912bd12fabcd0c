"""Which bits of a design's ports are which operands of an instruction, and what its other inputs are tied to.

`a=operand_a_i[15:0]`, `a[0]=ops_i[15:0]`, `a[0:3]=x_i`, `d=result_o[15:0]`, `a[0]=x_i@1` (only in cycle 1 after reset);
ties `rnd_mode_i=0`, `op_i[3:2]=0b10`, `start_i=1,0` (by cycle, the last one stays), `mode_i=any`.  What is not said is
guessed by names and widths, and told.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError, ports_of, reason
from mmaformal.spec import DotAdd

_TARGET = re.compile(r"(?P<name>a|b|c|d|scale_a|scale_b)(?:\[(?P<first>\d+)(?::(?P<last>\d+))?\])?")
_PLACE = re.compile(r"(?P<port>[^\[\]@=\s]+)(?:\[(?P<high>\d+)(?::(?P<low>\d+))?\])?(?:@(?P<cycle>\d+))?")
_SIZED = re.compile(r"(?:\d+)?'(?P<base>[bdhoBDHO])(?P<digits>[0-9a-fA-F_]+)")
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}
#: Names of the inputs that an operand is guessed to be, without prefixes and suffixes of directions.
_GUESSED = {
    "a": ("a", "x", "op1", "src1", "rs1", "in1", "in_a", "multiplicand", "a_bits", "vec_a", "va"),
    "b": ("b", "y", "op2", "src2", "rs2", "in2", "in_b", "multiplier", "b_bits", "vec_b", "vb"),
    "c": ("c", "z", "op3", "src3", "rs3", "in3", "in_c", "addend", "acc", "accumulator", "accum"),
    "d": ("d", "result", "res", "out", "q", "o", "sum", "dout", "fma", "out_result", "data", "z", "y", "r"),
    "scale_a": ("scale_a", "sa", "a_scale"),
    "scale_b": ("scale_b", "sb", "b_scale"),
}
_AROUND = re.compile(r"^(?:i_|o_|in_|op_|operand_|data_|io_)+|(?:_i|_o|_in|_out|_d|_data|_bits|_operand)+$")
_VECTORS = ("operands", "ops", "operand", "op", "srcs")
#: In which order operands may be in one port, the lowest bits first; in pairs, each code of b follows its code of a.
LAYOUTS = (
    "from the lowest bits on",
    "from the highest bits on",
    "in pairs from the lowest bits on",
    "in pairs from the highest bits on",
)
_RESET = re.compile(r"(^|_)(n?a?s?rst|n?a?s?reset)(_?(n|ni|b|l|i))?(_|$)")
_LOW = re.compile(r"(^|_)n(rst|reset)|(rst|reset)_?(n|ni|b|l)(_|$)")
_ONE = re.compile(r"(^|_)(valid|vld|ready|rdy|en|ena|enable|ce|clk_en|clken|start|go|req)(_|$)")
#: Those that are tied to 0 whatever else their names say.
_ZERO = re.compile(r"scan|test|dft|flush|clear|clr|stall|kill|bypass|debug")


@dataclass(frozen=True, repr=False)
class Place(ShortRepr):
    """Bits of a port of the design."""

    port: str
    high: int = -1  #: −1: to the port's highest
    low: int = 0
    cycle: int | None = None  #: the only one in which an operand is there; None: every one
    whole: bool = field(default=False, compare=False)  #: whether these are all bits of the port

    @property
    def bits(self) -> int:
        """How many there are."""
        return self.high - self.low + 1

    def __str__(self) -> str:
        bits = (
            ""
            if self.high < 0 or self.whole
            else f"[{self.high}:{self.low}]"
            if self.bits > 1
            else f"[{self.low}]"
        )
        return f"{self.port}{bits}" + ("" if self.cycle is None else f"@{self.cycle}")


@dataclass(frozen=True, repr=False)
class OperandBits(ShortRepr):
    """Bits of an operand: those from `low` on are at a place of the design."""

    operand: str
    low: int
    bits: int
    place: Place


@dataclass(frozen=True, repr=False)
class Tie(ShortRepr):
    """The numbers that bits of an input are tied to: one for each cycle, the last of which stays; none: anything."""

    place: Place
    values: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.place} = {', '.join(map(str, self.values)) if self.values else 'anything'}"


@dataclass(frozen=True, repr=False)
class PortMap(ShortRepr):
    """A user's word on the ports: `a[0]` is at `ops_i[15:0]`, and `rnd_mode_i` is `0`."""

    ports: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    top: str | None = None
    cycles: int | None = None

    def with_more(self, ports: Mapping[str, str], ties: Mapping[str, str]) -> PortMap:
        """The mapping with what is said besides, which counts where both say something."""
        return replace(self, ports={**self.ports, **ports}, ties={**self.ties, **ties})


@dataclass(frozen=True, repr=False)
class Wiring(ShortRepr):
    """The ports of a design, all said."""

    parts: tuple[OperandBits, ...]  #: of the inputs
    result: Place
    ties: tuple[Tie, ...]
    resets: tuple[Tie, ...]  #: which are inactive there
    guessed: frozenset[str] = frozenset()  #: names of operands, and inputs that are tied
    vector: str = ""  #: the port in which several operands are guessed to be, in an order that is guessed too

    def told(self) -> list[str]:
        """Lines that say it."""
        by_operand: dict[str, list[str]] = {}
        for part in self.parts:
            by_operand.setdefault(part.operand, []).append(str(part.place))
        by_operand["d"] = [str(self.result)]
        said = [
            f"{name} = {', '.join(_some(where))}{' (guessed)' if name in self.guessed else ''}"
            for name, where in by_operand.items()
        ]
        lines = ["ports: " + "; ".join(said)]
        for guessed in (False, True):
            tied = [
                str(tie) for tie in (*self.resets, *self.ties) if (str(tie.place) in self.guessed) is guessed
            ]
            if tied:
                lines.append(("guessed to be tied: " if guessed else "tied: ") + "; ".join(tied))
        return lines


def read_mapping(path: Path) -> PortMap:
    """A mapping in TOML: tables `port` and `tie`, and `top` and `cycles`.  Raises HardwareError."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HardwareError(f"the mapping {path} cannot be read: {reason(error)}") from None
    other = [name for name in found if name not in ("port", "tie", "top", "cycles")]
    if other:
        raise HardwareError(f"{path}: {other[0]} is none of [port], [tie], top and cycles")
    ports, ties = ({str(k): str(v) for k, v in found.get(name, {}).items()} for name in ("port", "tie"))
    return PortMap(ports, ties, found.get("top"), found.get("cycles"))


def read_place(text: str) -> Place:
    """`result_o[15:0]`, `x[3]`, `x@2`.  Raises HardwareError."""
    found = _PLACE.fullmatch(text.strip())
    if found is None:
        raise HardwareError(
            f"{text!r} is no port: write NAME, NAME[7:0] or NAME[3], with @CYCLE for one cycle"
        )
    high = -1 if found["high"] is None else int(found["high"])
    low = max(high, 0) if found["low"] is None else int(found["low"])
    if 0 <= high < low:
        raise HardwareError(f"{text!r}: the higher bit is first, [{low}:{high}]")
    cycle = None if found["cycle"] is None else int(found["cycle"])
    return Place(found["port"], high, low, cycle)


def read_number(text: str) -> int:
    """A number as Verilog or Python has it.  Raises HardwareError."""
    sized = _SIZED.fullmatch(text.strip())
    try:
        return int(sized["digits"], _BASES[sized["base"].lower()]) if sized else int(text.strip(), 0)
    except ValueError:
        raise HardwareError(f"{text!r} is no number: write 5, 0x1f, 0b101 or 3'b101, or `any`") from None


def wiring(
    spec: DotAdd,
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    clock: str,
    said: PortMap,
    layout: str = LAYOUTS[0],
) -> Wiring:
    """The wiring of a design with inputs and outputs of so many bits; what is not said is guessed.

    layout: one of `LAYOUTS`, for operands that are guessed to be in one port.

    Raises HardwareError for a port that is not there, bits that are not, and an operand that has no port.
    """
    return _Wirer(spec, inputs, outputs, clock, layout).wiring(said)


class _Wirer:
    def __init__(
        self, spec: DotAdd, inputs: Mapping[str, int], outputs: Mapping[str, int], clock: str, layout: str
    ) -> None:
        self.spec, self.inputs, self.outputs, self.clock = spec, inputs, outputs, clock
        self.layout, self.vector = layout, ""
        self.needed = {**ports_of(spec), "d": spec.d_format.storage_bits}
        self.codes = {
            "a": spec.a_format.storage_bits,
            "b": spec.b_format.storage_bits,
            "scale_a": spec.scale_format.storage_bits if spec.scale_format else 0,
        }
        self.codes["scale_b"] = self.codes["scale_a"]
        self.taken: dict[str, int] = {}  #: of each input, the bits that are something
        self.guessed: set[str] = set()

    def wiring(self, said: PortMap) -> Wiring:
        parts: list[OperandBits] = []
        result: Place | None = None
        for target, text in said.ports.items():
            if target == "d":
                result = self.bits_of(read_place(text), self.outputs, "output")
                if result.bits != self.needed["d"]:
                    raise HardwareError(
                        f"d has {self.needed['d']} bits, {result} {result.bits}: name its bits, or another model"
                    )
            else:
                parts.append(self._part(target, text))
        self._complete(parts)
        ties = [self._tie(name, text) for name, text in said.ties.items()]
        parts += self._guess_parts({part.operand for part in parts})
        result = result or self._guess_result()
        resets, more = self._guess_ties(ties)
        others = tuple(tie for tie in (*ties, *more) if tie not in resets)
        return Wiring(tuple(parts), result, others, tuple(resets), frozenset(self.guessed), self.vector)

    def bits_of(self, place: Place, ports: Mapping[str, int], way: str = "input") -> Place:
        """A place with its bits.  Raises HardwareError where there are no such bits."""
        if place.port not in ports:
            has = ", ".join(f"{name} ({bits})" for name, bits in ports.items())
            raise HardwareError(f"there is no {way} {place.port}; there are {has}")
        bits = ports[place.port]
        if place.high < 0:
            return replace(place, high=bits - 1, low=0, whole=True)
        if place.high >= bits:
            raise HardwareError(f"{place}: {place.port} has the bits {bits - 1} to 0")
        return replace(place, whole=place.bits == bits)

    def _take(self, place: Place) -> None:
        """Note that bits of an input are something.  Raises HardwareError where they are already."""
        mask = ((1 << place.bits) - 1) << place.low
        if self.clock and place.port == self.clock.partition("[")[0] and "[" not in self.clock:
            raise HardwareError(f"{place.port} is the clock, and cannot be tied or an operand")
        if place.cycle is None and self.taken.get(place.port, 0) & mask:
            raise HardwareError(f"{place} is said to be two things")
        self.taken[place.port] = self.taken.get(place.port, 0) | mask

    def _part(self, target: str, text: str) -> OperandBits:
        found = _TARGET.fullmatch(target.strip())
        if found is None or found["name"] not in self.needed:
            names = ", ".join(self.needed)
            raise HardwareError(f"--port {target}={text}: {target} is none of {names}, a[0] and a[0:3]")
        name, whole = found["name"], self.needed[found["name"]]
        code = self.codes.get(name) or whole
        low, bits = 0, whole
        if found["first"] is not None:
            first, last = sorted((int(found["first"]), int(found["last"] or found["first"])))
            low, bits = first * code, (last - first + 1) * code
        if low + bits > whole:
            raise HardwareError(f"--port {target}={text}: {name} has {whole // code} codes")
        place = self.bits_of(read_place(text), self.inputs)
        if place.bits != bits:
            raise HardwareError(
                f"--port {target}={text}: {target} has {bits} bits, {place} {place.bits}; name the bits, "
                f"{place.port}[{bits - 1}:0]"
            )
        self._take(place)
        return OperandBits(name, low, bits, place)

    def _complete(self, parts: Sequence[OperandBits]) -> None:
        """Raises HardwareError where some codes of an operand have a port, and others none."""
        for name in {part.operand for part in parts}:
            has = sum(((1 << part.bits) - 1) << part.low for part in parts if part.operand == name)
            code = self.codes.get(name) or self.needed[name]
            for k in range(self.needed[name] // code):
                if not has >> (k * code) & 1:
                    raise HardwareError(
                        f"{name}[{k}] has no port, and the model has {self.spec.k} products: say "
                        f"--port '{name}[{k}]=…', or ask about a model of {k} "
                        f"(--replace k={k}, and L={k} where it has that)"
                    )

    def _tie(self, name: str, text: str) -> Tie:
        place = self.bits_of(read_place(name), self.inputs)
        self._take(place)
        if text.strip().lower() in ("any", "x"):
            return Tie(place, ())
        values = tuple(read_number(each) for each in text.split(","))
        for value in values:
            if not 0 <= value < 1 << place.bits:
                raise HardwareError(f"--tie {name}={text}: {value} does not fit in {place.bits} bits")
        return Tie(place, values)

    # ---- what is not said -------------------------------------------------------------------------------------

    def _guess_parts(self, said: set[str]) -> list[OperandBits]:
        missing = [name for name in self.needed if name != "d" and name not in said]
        if not missing:
            return []
        vector = self._vector(missing)
        if vector:
            missing = [name for name in missing if name not in {part.operand for part in vector}]
        found = list(vector)
        for name in missing:
            port = self._named(name, {x: bits for x, bits in self.inputs.items() if not self.taken.get(x)})
            if port is None:
                has = ", ".join(f"{x} ({bits})" for x, bits in self.inputs.items() if x != self.clock)
                bits = self.needed[name]
                codes = bits // (self.codes.get(name) or bits)
                many = f" ({codes} codes of {bits // codes})" if codes > 1 else ""
                raise HardwareError(
                    f"which input is {name}, of {bits} bits{many}? There are {has}; say --port "
                    f"'{name}=NAME[{bits - 1}:0]'"
                )
            place = self.bits_of(Place(port), self.inputs)
            self._take(place)
            if port != name:
                self.guessed.add(name)
            found.append(OperandBits(name, 0, self.needed[name], place))
        return found

    def _vector(self, missing: Sequence[str]) -> list[OperandBits]:
        """a, b and c in one port, or a and b, in the order of the layout."""
        for names in (["a", "b", "c"], ["a", "b"]):
            bits = sum(self.needed[name] for name in names)
            ports = [
                x
                for x, n in self.inputs.items()
                if n == bits and _plain(x) in _VECTORS and not self.taken.get(x)
            ]
            if set(names) <= set(missing) and len(ports) == 1:
                return self._laid_out(names, ports[0])
        return []

    def _laid_out(self, names: Sequence[str], port: str) -> list[OperandBits]:
        """Operands at bits of a port, in the order of the layout."""
        order = [(name, 0, self.needed[name]) for name in names]
        if "pairs" in self.layout:
            bits = {name: self.codes[name] for name in ("a", "b")}
            pairs = [(name, k * bits[name], bits[name]) for k in range(self.spec.k) for name in ("a", "b")]
            order = pairs + order[2:]
        if "highest" in self.layout:
            order.reverse()
        found, at = [], 0
        for name, low, bits_of_it in order:
            place = self.bits_of(Place(port, at + bits_of_it - 1, at), self.inputs)
            self._take(place)
            self.guessed.add(name)
            found.append(OperandBits(name, low, bits_of_it, place))
            at += bits_of_it
        self.vector = port
        return sorted(found, key=lambda part: (part.operand, part.low))

    def _named(self, name: str, ports: Mapping[str, int]) -> str | None:
        fitting = [port for port, bits in ports.items() if bits == self.needed[name]]
        if name in fitting:
            return name
        for guess in _GUESSED[name]:
            same = [port for port in fitting if _plain(port) == guess]
            if len(same) == 1:
                return same[0]
        return None

    def _guess_result(self) -> Place:
        port = self._named("d", self.outputs)
        fitting = [name for name, bits in self.outputs.items() if bits == self.needed["d"]]
        if port is None and len(fitting) == 1:
            port = fitting[0]
        if port is None:
            has = ", ".join(f"{x} ({bits})" for x, bits in self.outputs.items())
            bits = self.needed["d"]
            raise HardwareError(
                f"which output is d, of {bits} bits? There are {has}; say --port 'd=NAME[{bits - 1}:0]'"
            )
        if port != "d":
            self.guessed.add("d")
        return self.bits_of(Place(port), self.outputs, "output")

    def _guess_ties(self, said: Sequence[Tie]) -> tuple[list[Tie], list[Tie]]:
        """Resets, which are inactive, and other ties."""
        resets: list[Tie] = []
        others: list[Tie] = []
        for name, bits in self.inputs.items():
            is_reset = bits == 1 and _RESET.search(name.lower()) is not None
            if name == self.clock:
                continue
            taken = self.taken.get(name, 0)
            if name == self.clock.partition("[")[0]:
                taken |= 1 << read_place(self.clock).low
            for place in _free(name, bits, taken):
                value = 0
                if is_reset:
                    value = int(_LOW.search(name.lower()) is not None)
                elif bits == 1 and _ONE.search(_plain(name)) and not _ZERO.search(name.lower()):
                    value = 1
                self.guessed.add(str(place))
                (resets if is_reset else others).append(Tie(place, (value,)))
            if is_reset:
                resets += [tie for tie in said if tie.place.port == name and len(tie.values) == 1]
        return resets, others


def guessed_operands(name: str) -> list[str]:
    """The operands, and d, that something of this name is guessed to be."""
    plain = _plain(name)
    if name in _GUESSED:
        return [name]
    return [operand for operand, names in _GUESSED.items() if plain in names]


def _some(places: Sequence[str]) -> Sequence[str]:
    """Places, of many the first two and the last."""
    return [*places[:2], "…", places[-1]] if len(places) > 4 else places


def _plain(name: str) -> str:
    """A port's name in lower case, without what says that it is an input or an output."""
    return _AROUND.sub("", name.lower()) or name.lower()


def _free(name: str, bits: int, taken: int) -> Iterable[Place]:
    """The runs of bits of an input that nothing is said of."""
    low = 0
    while low < bits:
        if taken >> low & 1:
            low += 1
            continue
        high = low
        while high + 1 < bits and not taken >> (high + 1) & 1:
            high += 1
        yield Place(name, high, low, whole=high - low + 1 == bits)
        low = high + 1
