"""The memory of a program that is run on terms: objects of bytes, each of which is part of a value that was stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import gcd

import z3

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_text import Type
from mmaformal.hardware.programs.llvm_values import (
    ADDRESS,
    FALSE,
    TRUE,
    IrGroup,
    IrValue,
    IrWord,
    Pointer,
    Target,
    all_true,
    any_true,
    bits_of,
    claim,
    made,
    of_bits,
    picked,
    unset_value,
    untrue,
)

#: Places that an index that is no number may be.
_MOST_PLACES = 1 << 12

Byte = tuple[IrValue, int] | None  #: a value, and which byte of it; nothing where nothing was stored
#: Takes what happens for some inputs only, and what it is called.
ReportCase = Callable[[z3.BoolRef, str], None]


@dataclass(frozen=True)
class Object:
    """An object that an address is in: a variable, a parameter's array, a table."""

    number: int
    name: str
    size: int


@dataclass
class IrMemory:
    """Bytes of each object; a copy shares them until one of both is changed."""

    objects: dict[int, Object] = field(default_factory=dict)  #: all that there ever were
    bytes: dict[int, list[Byte]] = field(default_factory=dict)  #: of those that there are
    tables: dict[int, list[Byte]] = field(default_factory=dict)  #: of those that never change
    numbers: count[int] = field(default_factory=count)
    fresh: Callable[[str, int], z3.BitVecRef] | None = None  #: makes a constant that may be anything

    def copy(self) -> IrMemory:
        return IrMemory(self.objects, dict(self.bytes), self.tables, self.numbers, self.fresh)

    def new(self, name: str, size: int) -> Object:
        """An object that nothing is stored in."""
        found = Object(next(self.numbers), name, size)
        self.objects[found.number] = found
        self.bytes[found.number] = [None] * size
        return found

    def make_constant(self, number: int) -> None:
        """Make an object a table, which is there for ever and never changes."""
        self.tables[number] = self.bytes.pop(number)

    def held(self, number: int) -> list[Byte]:
        """The bytes of an object that there is."""
        return self.bytes[number] if number in self.bytes else self.tables[number]

    def put(self, number: int, at: int, value: IrValue, size: int) -> None:
        """Put a value of so many bytes in its place."""
        bytes_of = list(self.bytes[number])
        bytes_of[at : at + size] = [(value, i) for i in range(size)]
        self.bytes[number] = bytes_of

    # ---- what a program reads and writes -------------------------------------------------------------------

    def load(self, address: Pointer, kind: Type, report: ReportCase) -> IrValue:
        """The value of a type at an address; `report` is told for which inputs there is none."""
        if kind.kind in ("struct", "array"):
            return IrGroup(tuple(self.load(x, each, report) for x, each in parts_of(address, kind)))
        found: IrValue | None = None
        for when, number, at in self._places(address, kind.stored, "reads", report):
            value = self._read(number, at, kind)
            found = value if found is None else picked(when, value, found)
        return unset_value(kind) if found is None else found

    def store(self, address: Pointer, value: IrValue, kind: Type, report: ReportCase) -> None:
        """Store a value; `report` is told for which inputs there is no place for it."""
        if isinstance(value, IrGroup):
            for (x, each), part in zip(parts_of(address, kind), value.parts, strict=True):
                self.store(x, part, each, report)
            return
        size = kind.stored
        whole: IrWord | Pointer = value
        if isinstance(value, IrWord) and value.bits != 8 * size:
            whole = IrWord(made(z3.ZeroExt(8 * size - value.bits, value.vector)), value.unset)
        places = list(self._places(address, size, "writes", report))
        for when, number, at in places:
            if number in self.tables:
                report(when, f"writes to {self.objects[number].name}, which is constant")
                continue
            if z3.is_true(when):
                self.put(number, at, whole, size)
            else:
                self.put(number, at, picked(when, whole, self._read(number, at, _word_of(whole, size))), size)

    def copy_bytes(
        self, to: Pointer, of: Pointer, size: int, report: ReportCase, apart: bool = False
    ) -> None:
        """Copy so many bytes, as they are; from and to bytes that do not overlap, if they are to be apart."""
        sources = self._places(of, size, "reads", report)
        places = self._places(to, size, "writes", report)
        if not (sources and places):
            return
        if len(sources) > 1 or len(places) > 1 or not z3.is_true(places[0][0]):
            raise HardwareError("a copy between places that depend on the inputs is not read")
        (_, source, first), (_, number, at) = sources[0], places[0]
        if number in self.tables:
            report(TRUE, f"writes to {self.objects[number].name}, which is constant")
            return
        if apart and number == source and 0 < abs(at - first) < size:
            report(TRUE, "copies between bytes that overlap (memmove does that)")
        bytes_of = list(self.bytes[number])
        bytes_of[at : at + size] = self.held(source)[first : first + size]
        self.bytes[number] = bytes_of

    def _places(
        self, address: Pointer, size: int, does: str, report: ReportCase
    ) -> list[tuple[z3.BoolRef, int, int]]:
        """The places that an address may be, each with when it is; the last one's claim counts for all others.

        Told is for which inputs it is none of them.
        """
        report(address.unset, f"{does} at an address that nothing has set")
        found: list[tuple[z3.BoolRef, int, int]] = []
        somewhere: list[z3.BoolRef] = []
        for target in address.targets:
            somewhere.append(target.when)
            if target.object not in self.bytes and target.object not in self.tables:
                name = self.objects[target.object].name
                report(target.when, f"{does} {name} after the function that it belongs to has returned")
                continue
            found += self._within(target, size, does, report)
        report(untrue(any_true(*somewhere)), f"{does} at a null address")
        return found

    def _within(
        self, target: Target, size: int, does: str, report: ReportCase
    ) -> list[tuple[z3.BoolRef, int, int]]:
        """Does so for one object."""
        thing = self.objects[target.object]
        last = thing.size - size
        beyond = f"{does} beyond the ends of {thing.name}, which has {thing.size} bytes"
        if not target.steps:
            if 0 <= target.base <= last:
                return [(target.when, target.object, target.base)]
            report(target.when, beyond)
            return []
        stride = gcd(*(step for _, step in target.steps))
        places = range(target.base % stride, last + 1, stride)
        if len(places) > _MOST_PLACES:
            raise HardwareError(
                f"an index into {thing.name} has {len(places)} places; {_MOST_PLACES} are read at most"
            )
        found = [(all_true(target.when, _is_at(target, at)), target.object, at) for at in places]
        report(all_true(target.when, untrue(any_true(*(_is_at(target, at) for at in places)))), beyond)
        return found

    def _read(self, number: int, at: int, kind: Type) -> IrValue:
        """The value of a type in bytes of an object."""
        bytes_of = self.held(number)[at : at + kind.stored]
        whole = _whole(bytes_of)
        bits = 0 if kind.kind == "ptr" else bits_of(kind)
        if whole is not None and kind.kind == "ptr" and isinstance(whole, Pointer):
            return whole
        if whole is not None and bits and isinstance(whole, IrWord):
            return whole if whole.bits == bits else of_bits(whole.vector, bits, whole.unset)
        if all(each is None for each in bytes_of):
            return unset_value(kind)
        if kind.kind == "ptr":
            raise HardwareError(f"an address is put together of bytes of {self.objects[number].name}")
        parts = [self._byte(each, self.objects[number].name) for each in bytes_of]
        term = _joined([part.vector for part in parts])
        return of_bits(term, bits, any_true(*(part.unset for part in parts)))

    def _byte(self, byte: Byte, name: str) -> IrWord:
        """A byte as a word; one that nothing was stored in beside others may be anything."""
        if byte is None:
            assert self.fresh is not None
            return IrWord(self.fresh(f"a byte of {name} that nothing sets", 8))
        value, place = byte
        if not isinstance(value, IrWord):
            raise HardwareError(f"a byte of an address in {name} is read, which is not understood")
        low = 8 * place
        return IrWord(made(z3.Extract(low + 7, low, value.vector)), value.unset)

    # ---- both of two -----------------------------------------------------------------------------------------

    def merge(self, when: z3.BoolRef, other: IrMemory) -> None:
        """Become this memory where a claim is true, else the other."""
        for number in list(self.bytes):
            if number not in other.bytes:
                del self.bytes[number]
                continue
            mine, theirs = self.bytes[number], other.bytes[number]
            if mine is not theirs:
                self.bytes[number] = self._merged(when, mine, theirs, self.objects[number].name)

    def _merged(self, when: z3.BoolRef, mine: list[Byte], theirs: list[Byte], name: str) -> list[Byte]:
        found: list[Byte] = []
        while (at := len(found)) < len(mine):
            if _same(mine[at], theirs[at]):
                found.append(mine[at])
                continue
            size = max(_extent(mine, at), _extent(theirs, at))
            pair = [_whole(side[at : at + size]) for side in (mine, theirs)]
            none = [all(each is None for each in side[at : at + size]) for side in (mine, theirs)]
            value = self._one_of(when, pair, none)
            if value is None:
                size = 1
                value = self._one_of(when, [self._as_byte(side[at], name) for side in (mine, theirs)], none)
            assert value is not None
            found += [(value, i) for i in range(size)]
        return found

    def _as_byte(self, byte: Byte, name: str) -> IrValue | None:
        return None if byte is None else self._byte(byte, name)

    def _one_of(
        self, when: z3.BoolRef, pair: Sequence[IrValue | None], none: Sequence[bool]
    ) -> IrValue | None:
        """One of two values; that of the other where one is not set, and unset then."""
        first, second = pair
        if first is not None and second is not None and type(first) is type(second):
            if isinstance(first, IrWord) and isinstance(second, IrWord) and first.bits != second.bits:
                return None
            return picked(when, first, second)
        if first is not None and none[1]:
            return _only(when, first)
        if second is not None and none[0]:
            return _only(untrue(when), second)
        return None


def _only(when: z3.BoolRef, value: IrValue) -> IrValue:
    """A value that is not set where a claim is false."""
    unset = any_true(value.unset, untrue(when)) if not isinstance(value, IrGroup) else FALSE
    if isinstance(value, IrWord):
        return IrWord(value.term, unset)
    assert isinstance(value, Pointer)
    return Pointer(value.targets, unset)


def _same(x: Byte, y: Byte) -> bool:
    return x is y or (x is not None and y is not None and x[0] is y[0] and x[1] == y[1])


def _size(value: IrValue) -> int:
    return 8 if isinstance(value, Pointer) else value.bits // 8 if isinstance(value, IrWord) else 0


def _extent(side: Sequence[Byte], at: int) -> int:
    byte = side[at]
    return 1 if byte is None else _size(byte[0]) - byte[1]


def _whole(bytes_of: Sequence[Byte]) -> IrValue | None:
    """The value that bytes are, if they are one."""
    first = bytes_of[0] if bytes_of else None
    if first is None or len(bytes_of) != _size(first[0]):
        return None
    whole = all(each is not None and each[0] is first[0] and each[1] == i for i, each in enumerate(bytes_of))
    return first[0] if whole else None


def _word_of(value: IrValue, size: int) -> Type:
    return Type("ptr") if isinstance(value, Pointer) else Type("int", 8 * size)


def _joined(parts: Sequence[z3.BitVecRef]) -> z3.BitVecRef:
    """Words side by side, the lowest first; neighbouring bits of one word are bits of it."""
    found: list[z3.BitVecRef] = []
    for part in parts:
        if found and (both_of := _neighbours(part, found[-1])) is not None:
            found[-1] = both_of
        else:
            found.append(part)
    whole = found[-1]
    for part in reversed(found[:-1]):
        term = made(z3.Concat(whole, part))
        assert isinstance(term, z3.BitVecRef)
        whole = term
    return whole


def _neighbours(high: z3.BitVecRef, low: z3.BitVecRef) -> z3.BitVecRef | None:
    """Both as bits of one word, if they are that."""
    if not (z3.is_app_of(high, z3.Z3_OP_EXTRACT) and z3.is_app_of(low, z3.Z3_OP_EXTRACT)):
        return None
    (top, above), (below, bottom) = high.params(), low.params()
    if above != below + 1 or not high.arg(0).eq(low.arg(0)):
        return None
    found = made(z3.Extract(top, bottom, high.arg(0)))
    assert isinstance(found, z3.BitVecRef)
    return found


def same_place(x: Pointer, y: Pointer) -> z3.BoolRef:
    """Whether two addresses are the same.  Raises HardwareError where they may be in different variables."""
    found = [all_true(*(untrue(each.when) for each in (*x.targets, *y.targets)))]  # both are null
    for s in x.targets:
        for t in y.targets:
            if s.object != t.object:
                raise HardwareError("addresses in different variables are compared")
            found.append(all_true(s.when, t.when, claim(_offset(s) == _offset(t))))
    return any_true(*found)


def _offset(target: Target) -> z3.BitVecRef:
    """Bytes from where an object begins."""
    total = z3.BitVecVal(target.base, ADDRESS)
    for term, step in target.steps:
        total = total + term * step
    return total


def _is_at(target: Target, at: int) -> z3.BoolRef:
    """A place so many bytes from where an object begins, and when an address is there."""
    if len(target.steps) == 1:
        ((term, step),) = target.steps
        return claim(term == z3.BitVecVal((at - target.base) // step, ADDRESS))
    return claim(_offset(target) == z3.BitVecVal(at, ADDRESS))


def moved(address: Pointer, by: int, index: IrWord | None = None, step: int = 0) -> Pointer:
    """An address so many bytes, and an index times a step, further."""
    targets = []
    for each in address.targets:
        base, steps = each.base + by, each.steps
        if index is not None:
            steps = (*steps, (index.vector, step))
        targets.append(Target(each.when, each.object, base, steps))
    return Pointer(tuple(targets), address.unset)


def parts_of(address: Pointer, kind: Type) -> list[tuple[Pointer, Type]]:
    """Where each value of a struct or an array is."""
    if kind.kind == "array":
        return [(moved(address, i * kind.fields[0].size), kind.fields[0]) for i in range(kind.bits)]
    return [(moved(address, kind.offset(i)), each) for i, each in enumerate(kind.fields)]


def address_of(thing: Object) -> Pointer:
    """Where an object begins."""
    return Pointer((Target(TRUE, thing.number, 0),))
