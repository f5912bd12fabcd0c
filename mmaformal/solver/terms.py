"""z3 terms, walked by their handles: the objects that z3's Python makes of each operand cost more than the walk.

A handle is good as long as the term is that it was reached from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import z3
from z3 import z3core

#: In place of a number of bits: the sort of real numbers.
REAL = 0

Handle: TypeAlias = z3.Ast  #: of the C interface


class Node(NamedTuple):
    """A term, once, with its operands' ids from left to right."""

    id: int
    handle: Handle
    operands: tuple[int, ...]


def operands_first(roots: Sequence[z3.ExprRef]) -> tuple[list[Node], Counter[int]]:
    """Every term once, its operands before it and from left to right; and how often each is used, by id."""
    uses: Counter[int] = Counter()
    order: list[Node] = []
    done: set[int] = set()
    context = z3.main_ctx().ref()
    stack: list[tuple[int, Handle, tuple[int, ...] | None]] = [
        (root.get_id(), root.as_ast(), None) for root in reversed(roots)
    ]
    while stack:
        number, handle, ready = stack.pop()
        if ready is not None:
            order.append(Node(number, handle, ready))
        elif number not in done:
            done.add(number)
            operands = _operands(context, handle)
            stack.append((number, handle, tuple(each for each, _ in operands)))
            for each, operand in reversed(operands):
                uses[each] += 1
                stack.append((each, operand, None))
    return order, uses


def _operands(context: z3.ContextObj, handle: Handle) -> list[tuple[int, Handle]]:
    """(id, handle) of each operand."""
    if z3core.Z3_get_ast_kind(context, handle) != z3.Z3_APP_AST:
        return []
    found = [
        z3core.Z3_get_app_arg(context, handle, i) for i in range(z3core.Z3_get_app_num_args(context, handle))
    ]
    return [(z3core.Z3_get_ast_id(context, each), each) for each in found]


def constants_of(term: z3.ExprRef) -> list[z3.ExprRef]:
    """The uninterpreted constants of a term, in the order in which they first occur."""
    context = z3.main_ctx().ref()
    nodes, _ = operands_first([term])
    return [
        z3.Const(_symbol(context, each.handle), _sort(context, each.handle))
        for each in nodes
        if not each.operands and is_constant(context, each.handle)
    ]


def apart(wanted: Sequence[z3.ExprRef], terms: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    """Constants that occur in none of the terms: those wanted, each with a `!` or more behind its name if need be."""
    marked = [(each, z3.Const(f"{each.decl().name()}!", each.sort())) for each in wanted]
    if not marked or all(z3.substitute(term, *marked).eq(term) for term in terms):
        return list(wanted)
    names = {str(each.decl().name()) for each in wanted}
    taken = {str(each.decl().name()) for term in terms for each in constants_of(term)}
    found = []
    for each in wanted:
        name = str(each.decl().name())
        while name in taken:
            name += "!"
            while name in names:
                name += "!"
        taken.add(name)
        found.append(z3.Const(name, each.sort()))
    return found


def is_constant(context: z3.ContextObj, handle: Handle) -> bool:
    """Whether a term without operands is an uninterpreted constant."""
    if z3core.Z3_get_ast_kind(context, handle) != z3.Z3_APP_AST:
        return False
    declaration = z3core.Z3_get_app_decl(context, handle)
    return bool(z3core.Z3_get_decl_kind(context, declaration) == z3.Z3_OP_UNINTERPRETED)


def name_of(context: z3.ContextObj, handle: Handle) -> str:
    """The name of a term's operation, or of a constant."""
    symbol = _symbol(context, handle)
    return symbol if isinstance(symbol, str) else f"k!{symbol}"


def _symbol(context: z3.ContextObj, handle: Handle) -> str | int:
    """What z3 calls an operation or a constant: two constants of one name are two if one is a number's."""
    symbol = z3core.Z3_get_decl_name(context, z3core.Z3_get_app_decl(context, handle))
    if z3core.Z3_get_symbol_kind(context, symbol) == z3.Z3_INT_SYMBOL:
        return int(z3core.Z3_get_symbol_int(context, symbol))
    return str(z3core.Z3_get_symbol_string(context, symbol))


def size_of(context: z3.ContextObj, handle: Handle) -> int | None:
    """The bits of a bit-vector; None for a Bool, `REAL` for a real number.  Raises ValueError for anything else."""
    sort = z3core.Z3_get_sort(context, handle)
    kind = z3core.Z3_get_sort_kind(context, sort)
    if kind == z3.Z3_BV_SORT:
        return int(z3core.Z3_get_bv_sort_size(context, sort))
    if kind == z3.Z3_BOOL_SORT:
        return None
    if kind == z3.Z3_REAL_SORT:
        return REAL
    raise ValueError("neither a bit-vector nor a Bool nor a real number")


def _sort(context: z3.ContextObj, handle: Handle) -> z3.SortRef:
    size = size_of(context, handle)
    if size == REAL:
        return z3.RealSort()
    return z3.BoolSort() if size is None else z3.BitVecSort(size)
