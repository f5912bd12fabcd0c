"""Terms with others in the place of constants: what becomes a number is one, and nothing else is rewritten.

z3's own simplifier changes how a term is built, and nodes of a design are to be found in terms as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import z3

from mmaformal.hardware.read_btor2 import sliced

_AND, _OR = (z3.Z3_OP_AND, z3.Z3_OP_BAND), (z3.Z3_OP_OR, z3.Z3_OP_BOR)
_SHIFTS = (z3.Z3_OP_BSHL, z3.Z3_OP_BLSHR, z3.Z3_OP_BASHR)
_PLUS = (z3.Z3_OP_BADD, z3.Z3_OP_BXOR)
_EXTENDED = (z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT)


class Rebuilt:
    """Terms with what `values` has in the place of constants, by name.  Values may be added before they are needed."""

    def __init__(self, values: Mapping[str, z3.ExprRef]) -> None:
        self.values = values
        self._done: dict[int, z3.ExprRef] = {}
        self._kept: list[z3.ExprRef] = []  #: so that no id is given twice

    def __call__(self, term: z3.ExprRef) -> z3.BitVecRef:
        """The term with the values in it."""
        done, stack = self._done, [(term, False)]
        while stack:
            node, ready = stack.pop()
            number = node.get_id()
            if number in done:
                continue
            operands = node.children()
            if not ready:
                stack.append((node, True))
                stack += [(x, False) for x in operands if x.get_id() not in done]
                continue
            self._kept.append(node)
            done[number] = self._new(node, operands)
        found = done[term.get_id()]
        assert isinstance(found, z3.BitVecRef)
        return found

    def _new(self, node: z3.ExprRef, operands: list[z3.ExprRef]) -> z3.ExprRef:
        if not operands:
            return self.values.get(node.decl().name(), node) if is_variable(node) else node
        parts = [self._done[x.get_id()] for x in operands]
        same = all(x is y or x.eq(y) for x, y in zip(operands, parts, strict=True))
        if same and not all(map(is_value, parts)):  # a design has constants of its own, as `.ready(1'b1)`
            return node
        return operation_of(node, parts)


def is_variable(term: z3.ExprRef) -> bool:
    """Whether a term is a constant that has a name, and no value."""
    return bool(z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED)


def is_value(term: z3.ExprRef) -> bool:
    """Whether a term is a number, or true or false."""
    return bool(z3.is_bv_value(term) or z3.is_true(term) or z3.is_false(term))


def operation_of(node: z3.ExprRef, parts: list[z3.ExprRef]) -> z3.ExprRef:
    """An operation of new operands; those that are numbers are worked out."""
    kind = node.decl().kind()
    if all(map(is_value, parts)):
        return z3.simplify(_applied(node, parts))
    if kind == z3.Z3_OP_EXTRACT:
        high, low = node.params()
        return _sliced(parts[0], high, low)
    if kind == z3.Z3_OP_ITE:
        if is_value(parts[0]):
            return parts[1] if z3.is_true(parts[0]) else parts[2]
        return parts[1] if parts[1].eq(parts[2]) else _applied(node, parts)
    if kind in _AND or kind in _OR:
        return _lattice(node, parts, kind in _OR)
    if kind in _PLUS and len(parts) == 2:
        for number, other in (parts, parts[::-1]):
            if _is(number, 0):
                return other
    if kind in _SHIFTS and _is(parts[1], 0):
        return parts[0]
    if kind == z3.Z3_OP_BMUL and any(_is(x, 0) for x in parts):
        return next(x for x in parts if _is(x, 0))
    if kind == z3.Z3_OP_EQ and parts[0].eq(parts[1]):
        return z3.BoolVal(True)
    return _applied(node, parts)


def _sliced(term: z3.ExprRef, high: int, low: int) -> z3.BitVecRef:
    """Bits of a term; those of an extended one that are all its own are taken there."""
    assert isinstance(term, z3.BitVecRef)
    while term.decl().kind() in _EXTENDED and high < term.arg(0).size():
        term = term.arg(0)
    found = sliced(term, high, low)
    return z3.simplify(found) if found.num_args() and all(map(is_value, found.children())) else found


def _lattice(node: z3.ExprRef, parts: list[z3.ExprRef], is_or: bool) -> z3.ExprRef:
    """AND, or OR, without operands that say nothing; or what one operand alone decides."""
    decides, ignored = (_ones, _zeros) if is_or else (_zeros, _ones)
    for part in parts:
        if decides(part):
            return part
    rest = [part for part in parts if not ignored(part)]
    if not rest:
        return parts[0]
    return rest[0] if len(rest) == 1 else _applied(node, rest)


def _applied(node: z3.ExprRef, parts: list[z3.ExprRef]) -> z3.ExprRef:
    kind = node.decl().kind()
    if len(parts) != node.num_args():
        build: Mapping[int, Callable[..., z3.ExprRef]] = {z3.Z3_OP_AND: z3.And, z3.Z3_OP_OR: z3.Or}
        if kind in build:
            return build[kind](*parts)
        out = parts[0]
        for part in parts[1:]:
            out = out | part if kind == z3.Z3_OP_BOR else out & part
        return out
    return node.decl()(*parts) if kind != z3.Z3_OP_CONCAT or len(parts) > 1 else parts[0]


def _is(term: z3.ExprRef, number: int) -> bool:
    return bool(z3.is_bv_value(term)) and term.as_long() == number


def _zeros(term: z3.ExprRef) -> bool:
    return bool(z3.is_false(term)) or _is(term, 0)


def _ones(term: z3.ExprRef) -> bool:
    return bool(z3.is_true(term)) or (bool(z3.is_bv_value(term)) and term.as_long() == (1 << term.size()) - 1)


def constants_in(terms: Iterable[z3.ExprRef]) -> dict[str, z3.ExprRef]:
    """The constants in some terms, by name."""
    found: dict[str, z3.ExprRef] = {}
    seen: set[int] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if is_variable(term):
            found[term.decl().name()] = term  # what z3 prints, which takes it long
        stack += term.children()
    return found


class Reaches:
    """Whether terms have one of some constants, by name; what is found of a term counts for all that it is part of."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._known: dict[int, bool] = {}
        self._kept: list[z3.ExprRef] = []  #: so that no other term is given the number of one that is gone

    def __call__(self, term: z3.ExprRef) -> bool:
        stack = [term]
        while stack:
            x = stack[-1]
            operands = [] if x.get_id() in self._known else x.children()
            waiting = [each for each in operands if each.get_id() not in self._known]
            stack += waiting
            if waiting:
                continue
            stack.pop()
            if x.get_id() not in self._known:
                found = is_variable(x) and x.decl().name() in self._names
                self._known[x.get_id()] = found or any(self._known[each.get_id()] for each in operands)
                self._kept.append(x)
        return self._known[term.get_id()]
