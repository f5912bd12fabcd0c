"""z3 terms, walked by their handles: the objects that z3's Python makes of each operand cost more than the walk.

A handle is good as long as the term is that it was reached from.  Of a good handle these functions of z3's library
raise nothing; so they are called as they are: asking after each call whether there was an error takes as long as the
call, and an object for each handle longer.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import z3
from z3 import z3core
from z3.z3 import _to_expr_ref

#: In place of a number of bits: the sort of real numbers.
REAL = 0

#: Pairs that a substitution has room for, at first.
_PAIRS = 16
#: Terms whose operands are remembered, at most; then all are forgotten.
_REMEMBERED = 400_000

TermT = TypeVar("TermT", bound=z3.ExprRef)
Handle: TypeAlias = int  #: of the C interface, as are those of a declaration, a sort and a symbol
ContextPointer: TypeAlias = ctypes.c_void_p


def _function(name: str, result: Any, *numbers: Any) -> Callable[..., Any]:
    """A function of z3's library, of a context, a handle and numbers."""
    (own,) = getattr(z3core, name).__defaults__  # what z3 calls before it asks for an error
    address = ctypes.cast(own.f, ctypes.c_void_p).value
    assert address is not None
    return ctypes.CFUNCTYPE(result, ContextPointer, ctypes.c_void_p, *numbers)(address)


ast_kind = _function("Z3_get_ast_kind", ctypes.c_uint)
ast_id = _function("Z3_get_ast_id", ctypes.c_uint)
app_arg = _function("Z3_get_app_arg", ctypes.c_void_p, ctypes.c_uint)
app_num_args = _function("Z3_get_app_num_args", ctypes.c_uint)
app_decl = _function("Z3_get_app_decl", ctypes.c_void_p)
decl_id = _function("Z3_get_func_decl_id", ctypes.c_uint)
decl_kind = _function("Z3_get_decl_kind", ctypes.c_uint)
decl_name = _function("Z3_get_decl_name", ctypes.c_void_p)
decl_num_parameters = _function("Z3_get_decl_num_parameters", ctypes.c_uint)
decl_int_parameter = _function("Z3_get_decl_int_parameter", ctypes.c_int, ctypes.c_uint)
numeral_string = _function("Z3_get_numeral_string", ctypes.c_char_p)
symbol_int = _function("Z3_get_symbol_int", ctypes.c_int)
symbol_kind = _function("Z3_get_symbol_kind", ctypes.c_uint)
symbol_string = _function("Z3_get_symbol_string", ctypes.c_char_p)
sort_of = _function("Z3_get_sort", ctypes.c_void_p)
sort_kind = _function("Z3_get_sort_kind", ctypes.c_uint)
sort_size = _function("Z3_get_bv_sort_size", ctypes.c_uint)


def main_context() -> ContextPointer:
    """z3's context, as the functions above take it."""
    return ctypes.c_void_p(z3.main_ctx().ref().value)


class TermNode(NamedTuple):
    """A term, once, with its operands' ids from left to right."""

    id: int
    handle: Handle
    operands: tuple[int, ...]


#: The terms that were walked, by id, and all that are below them; `_KEPT` keeps them, so that their ids are no others'.
_NODES: dict[int, TermNode] = {}
_KEPT: list[z3.ExprRef] = []


def _walk(root: z3.ExprRef) -> None:
    """Remember the operands of a term and of all below it.  Raises ValueError for a quantifier."""
    if root.get_id() in _NODES:
        return
    context, new = main_context(), dict[int, TermNode]()
    left: list[tuple[int, Handle]] = [(root.get_id(), root.as_ast().value)]
    while left:
        number, handle = left.pop()
        if number not in _NODES and number not in new:
            operands = _operands(context, handle)
            new[number] = TermNode(number, handle, tuple(each for each, _ in operands))
            left += operands
    _NODES.update(new)
    _KEPT.append(root)


def operands_first(roots: Sequence[z3.ExprRef]) -> tuple[list[TermNode], Counter[int]]:
    """Every term once, its operands before it and from left to right; and how often each is used, by id.

    Raises ValueError for a quantifier, whose constants a walk does not see, and for terms of another z3 context, where
    ids are of other terms.
    """
    if any(root.ctx is not z3.main_ctx() for root in roots):
        raise ValueError("a term of another z3 context")
    if len(_NODES) > _REMEMBERED or (_KEPT and _KEPT[0].ctx is not z3.main_ctx()):
        _NODES.clear()
        _KEPT.clear()
    for root in roots:
        _walk(root)
    uses: Counter[int] = Counter()
    order: list[TermNode] = []
    done: set[int] = set()
    # A term is on the stack by its id; by −1 − its id where its operands are above it, and it is next after them.
    stack = [root.get_id() for root in reversed(roots)]
    while stack:
        number = stack.pop()
        if number < 0:
            order.append(_NODES[-1 - number])
        elif number not in done:
            done.add(number)
            node = _NODES[number]
            if node.operands:
                stack.append(-1 - number)
                stack += node.operands[::-1]
                for each in node.operands:
                    uses[each] += 1
            else:
                order.append(node)
    return order, uses


def _operands(context: ContextPointer, handle: Handle) -> list[tuple[int, Handle]]:
    """(id, handle) of each operand.  Raises ValueError for a quantifier, and what it binds."""
    kind = ast_kind(context, handle)
    if kind == z3.Z3_NUMERAL_AST:
        return []
    if kind != z3.Z3_APP_AST:
        raise ValueError("a quantifier in a claim")
    found = [app_arg(context, handle, i) for i in range(app_num_args(context, handle))]
    return [(ast_id(context, each), each) for each in found]


def constants_of(term: z3.ExprRef) -> list[z3.ExprRef]:
    """The uninterpreted constants of a term, in the order in which they first occur."""
    context = main_context()
    nodes, _ = operands_first([term])
    return [expression(each) for each in nodes if not each.operands and is_constant(context, each.handle)]


_CONSTANTS: dict[tuple[str, Handle], z3.ExprRef] = {}


def constant_like(name: str, term: z3.ExprRef) -> z3.ExprRef:
    """The constant of this name and of a term's sort."""
    if term.ctx is not z3.main_ctx():
        return z3.Const(name, term.sort())
    key = name, sort_of(main_context(), term.as_ast().value)
    found = _CONSTANTS.get(key)
    if found is None or found.ctx is not term.ctx:
        found = _CONSTANTS[key] = z3.Const(name, term.sort())  # which keeps its sort
    return found


class Substitution:
    """Puts values in the place of terms, in one expression after another; each pair is checked once.

    `z3.substitute` checks all pairs at each call, which takes longer than the substitution.
    """

    def __init__(self, pairs: Iterable[tuple[z3.ExprRef, z3.ExprRef]] = ()) -> None:
        self._pairs: list[
            tuple[z3.ExprRef, z3.ExprRef]
        ] = []  # whose handles are good as long as they are kept
        self._before, self._after = (z3.Ast * _PAIRS)(), (z3.Ast * _PAIRS)()
        for term, value in pairs:
            self.add(term, value)

    def add(self, term: z3.ExprRef, value: z3.ExprRef) -> None:
        """Put a value in the place of a term, from now on.  Raises ValueError where they are of two sorts."""
        if term.ctx is not value.ctx or not _same_sort(term, value):
            raise ValueError(f"{value.sort()} in the place of {term.sort()}")
        count = len(self._pairs)
        if count == len(self._before):
            for name in ("_before", "_after"):
                grown = (z3.Ast * (2 * count))(*getattr(self, name))
                setattr(self, name, grown)
        self._before[count], self._after[count] = term.as_ast(), value.as_ast()
        self._pairs.append((term, value))

    def __call__(self, term: TermT) -> TermT:
        """Return an expression with all values in the places of their terms at once."""
        if not self._pairs:
            return term
        handle = z3core.Z3_substitute(
            term.ctx.ref(), term.as_ast(), len(self._pairs), self._before, self._after
        )
        found: TermT = _to_expr_ref(handle, term.ctx)
        return found


_MARKED: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}


def _marked(constant: z3.ExprRef) -> tuple[z3.ExprRef, z3.ExprRef]:
    """The constant, and another one of its sort."""
    known = _MARKED.get(constant.get_id())
    if known is None or known[0].ctx is not constant.ctx:
        mark = z3.Const(f"{constant.decl().name()}!", constant.sort())
        known = _MARKED[constant.get_id()] = constant, mark  # kept, so that its id is no other's
    return known


def apart(wanted: Sequence[z3.ExprRef], terms: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    """Constants that occur in none of the terms: those wanted, each with a `!` or more behind its name if need be."""
    marked = Substitution(map(_marked, wanted))
    if all(marked(term).eq(term) for term in terms):
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


def _same_sort(x: z3.ExprRef, y: z3.ExprRef) -> bool:
    """Whether terms of one context are of one sort, of which that has one each."""
    context = ctypes.c_void_p(x.ctx.ref().value)
    return bool(sort_of(context, x.as_ast().value) == sort_of(context, y.as_ast().value))


def expression(node: TermNode) -> z3.ExprRef:
    """The term as z3's Python has it."""
    found: z3.ExprRef = _to_expr_ref(z3.Ast.from_buffer_copy(ctypes.c_void_p(node.handle)), z3.main_ctx())
    return found


def is_constant(context: ContextPointer, handle: Handle) -> bool:
    """Whether a term without operands is an uninterpreted constant."""
    if ast_kind(context, handle) != z3.Z3_APP_AST:
        return False
    return bool(decl_kind(context, app_decl(context, handle)) == z3.Z3_OP_UNINTERPRETED)


def name_of(context: ContextPointer, handle: Handle) -> str:
    """The name of a term's operation, or of a constant."""
    symbol = _symbol(context, handle)
    return symbol if isinstance(symbol, str) else f"k!{symbol}"


def _symbol(context: ContextPointer, handle: Handle) -> str | int:
    """Return z3's name of an operation or a constant: two constants of one name are two if one is a number's."""
    symbol = decl_name(context, app_decl(context, handle))
    if symbol_kind(context, symbol) == z3.Z3_INT_SYMBOL:
        return int(symbol_int(context, symbol))
    return str(symbol_string(context, symbol).decode())


def size_of(context: ContextPointer, handle: Handle) -> int | None:
    """The bits of a bit-vector; None for a Bool, `REAL` for a real number.  Raises ValueError for anything else."""
    sort = sort_of(context, handle)
    kind = sort_kind(context, sort)
    if kind == z3.Z3_BV_SORT:
        return int(sort_size(context, sort))
    if kind == z3.Z3_BOOL_SORT:
        return None
    if kind == z3.Z3_REAL_SORT:
        return REAL
    raise ValueError("neither a bit-vector nor a Bool nor a real number")
