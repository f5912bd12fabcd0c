"""LLVM's text, as LLVM itself prints a module that it has checked, as types, constants, functions and instructions.

Nothing has a meaning here; what is not understood is refused where it is used, with the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mmaformal.display import counted
from mmaformal.hardware.module import HardwareError

_TOKEN = re.compile(
    r"""c?"[^"]*"            # a string
      |[%@](?:"[^"]*"|[-$.\w]+)  # a name
      |[-+]?\d[\w.+-]*     # a number
      |\.\.\.|[#!]?[A-Za-z_$.][\w$.]*|[#!]\d+|[()\[\]{}<>,=*:!]""",
    re.VERBOSE,
)
_TYPE = re.compile(r"void|i\d+|ptr|float|double|half|bfloat|fp128|x86_fp80|[\[{<]|%.*")
_NAMED = re.compile(r'%(?:"[^"]*"|[-$.\w]+)')
_ATTACHED = re.compile(r",? !([\w.]+) !(\d+)")
_DEFINE = re.compile(r"^(?:define|declare) .*?@(\"[^\"]*\"|[-$.\w]+)\(")
_FLAGS = re.compile(r"nsw|nuw|exact|disjoint|nneg|samesign|inbounds|nusw|volatile|atomic")
#: How many operands instructions have that are read alike.
_OPERANDS = {
    **dict.fromkeys(
        ("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor"), 2
    ),
    **dict.fromkeys(("trunc", "zext", "sext", "bitcast", "freeze", "load", "extractvalue"), 1),
    **dict.fromkeys(("icmp", "store", "insertvalue"), 2),
    "select": 3,
    "unreachable": 0,
    **dict.fromkeys(("br", "ret", "alloca", "getelementptr"), None),
}
#: Words that an operand may begin with, besides a name, a number and a bracket.
_VALUES = re.compile(r"true|false|null|none|undef|poison|zeroinitializer|getelementptr")

Each = TypeVar("Each")


@dataclass(frozen=True)
class Type:
    """A type: `int` of so many bits, `ptr`, `void`, `array` of so many, `struct`, or the name of another."""

    kind: str
    bits: int = 0  #: of an int; of an array, how many
    fields: tuple[Type, ...] = ()
    packed: bool = False

    def __str__(self) -> str:
        return f"i{self.bits}" if self.kind == "int" else self.kind

    @property
    def align(self) -> int:
        """Bytes that an address is a multiple of, on a machine of 64 bits."""
        if self.kind == "int":
            return min(16, 1 << max(0, (self.bits - 1) // 8).bit_length())
        if self.kind in ("array", "struct"):
            return 1 if self.packed else max((each.align for each in self.fields), default=1)
        return {"ptr": 8, "float": 4, "double": 8, "half": 2, "bfloat": 2}.get(self.kind, 1)

    @property
    def size(self) -> int:
        """Bytes from one to the next.  Raises HardwareError for a type that is not laid out."""
        if self.kind == "array":
            return self.bits * self.fields[0].size
        if self.kind == "struct":
            return _up(self.offset(len(self.fields)), self.align)
        if self.kind == "int":
            return _up(-(-self.bits // 8), self.align)
        if self.kind in ("ptr", "float", "double", "half", "bfloat"):
            return self.align
        raise HardwareError(f"a variable of the type {self} is not understood")

    @property
    def stored(self) -> int:
        """Bytes that are read and written of it: of 24 bits three, where one is four bytes from the next."""
        return -(-self.bits // 8) if self.kind == "int" else self.size

    def offset(self, place: int) -> int:
        """Bytes before a field of a struct."""
        at = 0
        for i, each in enumerate(self.fields):
            if each.kind == "int" and each.bits > 64:
                raise HardwareError("a number of more than 64 bits in a struct is not understood")
            at = at if self.packed else _up(at, each.align)
            if i == place:
                return at
            at += each.size
        return at


def _up(size: int, align: int) -> int:
    return -(-size // align) * align


@dataclass(frozen=True)
class IrOperand:
    """`local` and `global` have a name, `int` a value, `many` and `gep` operands; `zero`, `null`, `poison`, `bytes`."""

    kind: str
    type: Type
    name: str = ""
    value: int = 0
    parts: tuple[IrOperand, ...] = ()
    data: bytes = b""
    element: Type | None = None  #: that an address is counted in


@dataclass(frozen=True)
class IrInstruction:
    """One instruction; `operands` in their order, `labels` of blocks, `places` of fields."""

    op: str
    text: str
    line: str  #: `file.c:12`, or as much as is known
    result: str = ""
    type: Type = Type("void")
    operands: tuple[IrOperand, ...] = ()
    flags: frozenset[str] = frozenset()
    labels: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    name: str = ""  #: of a comparison, or of what is called


@dataclass
class Function:
    """A function: parameters with their types and attributes, and blocks; none where it is only declared."""

    name: str
    type: Type
    parameters: list[tuple[str, Type, str]]
    blocks: dict[str, list[IrInstruction]] = field(default_factory=dict)
    debug: int = -1  #: number of what is known of its source


@dataclass
class Text:
    """A module."""

    types: dict[str, Type] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, IrOperand] = field(default_factory=dict)  #: initial values of what does not change
    variables: dict[str, IrOperand] = field(default_factory=dict)  #: of what may
    metadata: Mapping[int, str] = field(default_factory=dict)

    def type_of(self, text: str) -> Type:
        """A type as it is written."""
        return _Line(text, self.types).type()


class _Line:
    """Words of a line, one after the other."""

    def __init__(self, text: str, types: Mapping[str, Type]) -> None:
        self.text, self.types = text, types
        self.words = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def next(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def take(self, word: str) -> bool:
        """Whether the next word is this one, which is taken."""
        found = self.peek() == word
        self.at += found
        return found

    def need(self, word: str) -> None:
        if not self.take(word):
            raise HardwareError(f"{word!r} is expected before {self.peek()!r} in {self.text.strip()!r}")

    def flags(self) -> frozenset[str]:
        found = set()
        while _FLAGS.fullmatch(self.peek()):
            found.add(self.next())
        return frozenset(found)

    def type(self) -> Type:
        """The next type; what follows in parentheses is a function's."""
        word = self.next()
        if re.fullmatch(r"i\d+", word):
            found = Type("int", int(word[1:]))
        elif word == "[":
            count = int(self.next())
            self.need("x")
            found = Type("array", count, (self.type(),))
            self.need("]")
        elif word == "{" or (word == "<" and self.peek() == "{"):
            packed = word == "<" and self.take("{")
            fields = tuple(self._list(self.type, "}"))
            found = Type("struct", 0, fields, packed)
            if packed:
                self.need(">")
        elif word == "<":
            while self.next() not in (">", ""):
                pass
            found = Type("vector")
        elif word.startswith("%"):
            found = self.types.get(word, Type(f"unknown {word}"))
        else:
            found = Type(word)
        if self.peek() == "(" and found.kind != "metadata":
            self.skip()
        return found

    def _list(self, each: Callable[[], Each], end: str) -> Iterator[Each]:
        while not self.take(end):
            if not self.peek():
                raise HardwareError(f"{end!r} is missing in {self.text.strip()!r}")
            yield each()
            self.take(",")

    def is_type(self) -> bool:
        """Whether a type is next; a name is one if it is a type's."""
        word = self.peek()
        return word in self.types or (word[:1] != "%" and _TYPE.fullmatch(word) is not None)

    def attributes_before_type(self) -> None:
        """Pass by words that say how something is linked and called."""
        while (word := self.peek()) and not _TYPE.fullmatch(word):
            self.next()
            if word == "align":
                self.next()
            if self.peek() == "(":
                self.skip()

    def skip(self) -> str:
        """Skip what is in parentheses, and return it."""
        start, depth = self.at, 0
        while word := self.next():
            depth += (word in ("(", "[", "{", "<")) - (word in (")", "]", "}", ">"))
            if depth == 0:
                break
        return " ".join(self.words[start : self.at])

    def typed(self) -> IrOperand:
        """A type, attributes, and an operand of it."""
        kind = self.type()
        self.attributes()
        return self.operand(kind)

    def attributes(self) -> str:
        found = []
        while (word := self.peek()) and not _VALUES.fullmatch(word) and re.match(r"[A-Za-z_#]", word):
            if word.startswith('c"'):
                break
            found.append(self.next())
            if word == "align":
                self.next()
            if self.peek() == "(":
                found.append(self.skip())
        return " ".join(found)

    def operand(self, kind: Type) -> IrOperand:
        word = self.next()
        if word.startswith("%"):
            return IrOperand("local", kind, word)
        if word.startswith("@"):
            return IrOperand("global", kind, word)
        if word in ("true", "false"):
            return IrOperand("int", kind, value=int(word == "true"))
        if word in ("undef", "poison"):
            return IrOperand("poison", kind)
        if word in ("null", "zeroinitializer", "none"):
            return IrOperand("zero", kind)
        if word.startswith('c"'):
            return IrOperand("bytes", kind, data=_bytes(word[2:-1]))
        if word in ("[", "{", "<") and kind.kind != "vector":
            if word == "<":
                self.need("{")
            parts = tuple(self._list(self.typed, "]" if word == "[" else "}"))
            if word == "<":
                self.need(">")
            return IrOperand("many", kind, parts=parts)
        if word == "getelementptr":
            self.flags()
            if self.peek() == "inrange":
                self.next()
                self.skip()
            self.need("(")
            element = self.type()
            self.need(",")
            return IrOperand("gep", kind, parts=tuple(self._list(self.typed, ")")), element=element)
        if re.fullmatch(r"-?\d+", word) and kind.kind == "int":
            return IrOperand("int", kind, value=int(word))
        return IrOperand("other", kind, name=word)


def _bytes(text: str) -> bytes:
    found = bytearray()
    at = 0
    while at < len(text):
        if text[at] == "\\":
            if text[at + 1] == "\\":
                found.append(ord("\\"))
                at += 2
            else:
                found.append(int(text[at + 1 : at + 3], 16))
                at += 3
        else:
            found += text[at].encode()
            at += 1
    return bytes(found)


def read_text(text: str) -> Text:
    """A module from what LLVM prints.  Raises HardwareError for a line that is not understood."""
    found = Text()
    lines = text.splitlines()
    metadata: dict[int, str] = {}
    named: dict[str, str] = {}
    for line in lines:
        if line.startswith("!") and (match := re.match(r"!(\d+) = (.*)", line)):
            metadata[int(match[1])] = match[2]
        elif match := re.match(r'(%(?:"[^"]*"|\S+)) = type (.*)', line):
            named[match[1]] = match[2]
    found.metadata = metadata
    while ready := [x for x, text in named.items() if all(y in found.types for y in _NAMED.findall(text))]:
        for name in ready:  # those that others are made of come first
            found.types[name] = _Line(named.pop(name), found.types).type()
    for line in lines:
        if line.startswith("@llvm.global_ctors"):
            raise HardwareError(
                "what runs before main (a constructor, C++'s dynamic initialisation) is not read"
            )
        if line.startswith("@"):
            _global(found, line)
    at = 0
    while at < len(lines):
        if _DEFINE.match(lines[at]):
            at = _function(found, lines, at)
        at += 1
    return found


def _global(found: Text, text: str) -> None:
    words = _Line(_ATTACHED.sub("", text), found.types)
    name = words.next()
    words.need("=")
    while words.peek() not in ("constant", "global", "alias", "ifunc", ""):
        words.next()
        if words.peek() == "(":
            words.skip()
    among = {"constant": found.constants, "global": found.variables}.get(words.next())
    kind = words.type() if among is not None else None
    if (
        among is not None and kind is not None and words.peek() not in ("", ",")
    ):  # there it is of another file
        among[name] = words.operand(kind)


def _function(found: Text, lines: list[str], at: int) -> int:
    """Read a function from a line on; returns the number of its last line."""
    head = lines[at]
    before, _, after = head.partition("@")
    words = _Line(before, found.types)
    words.next()
    words.attributes_before_type()
    kind = words.type()
    rest = _Line("@" + after, found.types)
    name = rest.next()
    rest.need("(")
    parameters = []
    while not rest.take(")"):
        if rest.take("..."):
            continue
        each, attributes = rest.type(), rest.attributes()
        named = rest.next() if rest.peek().startswith("%") else ""
        parameters.append((named, each, attributes))
        rest.take(",")
    debug = re.search(r"!dbg !(\d+)", after)
    function = Function(name, kind, parameters, debug=int(debug[1]) if debug else -1)
    found.functions[name] = function
    if head.startswith("declare"):
        return at
    unnamed = sum(not each or each[1:].isdigit() for each, _, _ in parameters)
    block, at = f"%{unnamed}", at + 1
    while lines[at] != "}":
        line = lines[at].split(" ; ")[0] if ";" in lines[at] and '"' not in lines[at] else lines[at]
        label = re.match(r"(\"[^\"]*\"|[-$.\w]+):", line)
        if label:
            block = "%" + label[1]
        elif line.strip() and not line.strip().startswith("#dbg"):
            while line.rstrip().endswith("[") or ("switch" in line and "]" not in line):
                at += 1
                line += " " + lines[at].strip()
            function.blocks.setdefault(block, []).append(_instruction(line, found))
        at += 1
    return at


def _instruction(text: str, found: Text) -> IrInstruction:
    """An instruction; one that is not understood is `other …`, and refused if it is ever run."""
    debug = dict(_ATTACHED.findall(text))
    line = line_of(found.metadata, int(debug["dbg"])) if "dbg" in debug else ""
    words = _Line(_ATTACHED.sub("", text), found.types)
    result = ""
    if words.peek().startswith("%"):
        result = words.next()
        words.need("=")
    while words.peek() in ("tail", "musttail", "notail"):
        words.next()
    op = words.next()
    made = IrInstruction(op, text.strip(), line, result)
    if op == "load" and "range" in debug:  # clang says so of bools alone
        made = replace(made, flags=frozenset({"range"}))
    if op in _READERS:
        return _READERS[op](made, words)
    if op not in _OPERANDS:
        return replace(made, op=f"other {op}")
    made = replace(made, flags=words.flags() | made.flags, name=words.next() if op == "icmp" else "")
    return _read(made, words)


def _read(made: IrInstruction, words: _Line) -> IrInstruction:
    """Types and operands of an instruction: an operand without a type has the one before it."""
    kinds: list[Type] = []
    operands: list[IrOperand] = []
    labels: list[str] = []
    places: list[int] = []
    while (word := words.peek()) and word != "align":
        if words.take("label"):
            labels.append(words.next())
        elif words.take("to") or words.is_type():
            kinds.append(words.type())
            words.attributes()
            if words.peek() not in (",", "", "to"):
                operands.append(words.operand(kinds[-1]))
        elif kinds and kinds[-1].kind != "int" and word.isdigit():
            places.append(int(words.next()))
        elif kinds:
            operands.append(words.operand(kinds[-1]))
        else:
            raise HardwareError(f"a type is expected before {word!r} in {words.text.strip()!r}")
        words.take(",")
    op = made.op
    needed = _OPERANDS[op]
    if needed is not None and len(operands) != needed:
        raise HardwareError(f"{counted(needed, 'operand')} are expected in {words.text.strip()!r}")
    first = op in ("load", "alloca", "getelementptr", "extractvalue", "insertvalue")
    kind = Type("int", 1) if op == "icmp" else kinds[0 if first else -1] if kinds else Type("void")
    return replace(made, type=kind, operands=tuple(operands), labels=tuple(labels), places=tuple(places))


def _phi(made: IrInstruction, words: _Line) -> IrInstruction:
    kind, operands, labels = words.type(), [], []
    while words.take("["):
        operands.append(words.operand(kind))
        words.need(",")
        labels.append(words.next())
        words.need("]")
        words.take(",")
    return replace(made, type=kind, operands=tuple(operands), labels=tuple(labels))


def _switch(made: IrInstruction, words: _Line) -> IrInstruction:
    operands, labels = [words.typed()], []
    words.need(",")
    words.need("label")
    labels.append(words.next())
    words.need("[")
    while not words.take("]"):
        operands.append(words.typed())
        words.need(",")
        words.need("label")
        labels.append(words.next())
    return replace(made, operands=tuple(operands), labels=tuple(labels))


def _call(made: IrInstruction, words: _Line) -> IrInstruction:
    words.attributes_before_type()
    kind, name = words.type(), words.next()
    if name == "asm":
        return replace(made, op="other inline assembly")
    if name[0] not in "@%":
        return replace(made, op="other call")
    words.need("(")
    operands = []
    while not words.take(")"):
        if not words.peek() or words.peek() == "metadata":
            return replace(made, op="other call")
        operands.append(words.typed())
        words.take(",")
    return replace(made, type=kind, name=name, operands=tuple(operands))


_READERS: Mapping[str, Callable[[IrInstruction, _Line], IrInstruction]] = {
    "phi": _phi,
    "switch": _switch,
    "call": _call,
}


def line_of(metadata: Mapping[int, str], number: int) -> str:
    """`file.c:12` of what is known of an instruction's place; empty if that is nothing."""
    location = metadata.get(number, "")
    line = re.search(r"\bline: (\d+)", location)
    if line is None:
        return ""
    file = _file_of(metadata, location)
    return f"{file}:{line[1]}" if file else f"line {line[1]}"


def _file_of(metadata: Mapping[int, str], text: str) -> str:
    for _ in range(64):
        file = re.search(r"\bfile: !(\d+)", text)
        if file is not None:
            named = re.search(r'filename: "([^"]*)"', metadata.get(int(file[1]), ""))
            return named[1].rpartition("/")[2] if named else ""
        scope = re.search(r"\bscope: !(\d+)", text)
        if scope is None:
            return ""
        text = metadata.get(int(scope[1]), "")
    return ""
