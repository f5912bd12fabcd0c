"""z3 terms as SMT-LIB 2 text that is a function of the terms alone.

z3's own text names and orders what it shares by the numbers that terms happen to have in a process.  Here the same
question is the same text in every process, today and tomorrow: so its hash stands for the question, and what was
proved is found again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import z3

from mmaformal.solver import terms
from mmaformal.solver.terms import REAL, ContextPointer, Handle, is_constant, name_of, operands_first, size_of

_CORE = {"=": "=", "distinct": "distinct", "if": "ite", "=>": "=>", "and": "and", "or": "or", "not": "not"}
_UNARY = ("bvnot", "bvneg", "extract", "zero_extend", "sign_extend", "repeat", "rotate_left", "rotate_right")
_BINARY = (
    *("concat", "bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod"),
    *("bvshl", "bvlshr", "bvashr", "bvand", "bvor", "bvxor", "bvnand", "bvnor", "bvxnor", "bvcomp"),
    *("bvule", "bvult", "bvuge", "bvugt", "bvsle", "bvslt", "bvsge", "bvsgt", "xor"),
)
#: Operations of real numbers.
_REAL = ("+", "-", "*", "<=", "<", ">=", ">")
#: Divisions as z3's simplifier makes them where the divisor is never zero.
_DIVISIONS = {f"{name}_i": name for name in ("bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod")}

#: Operations by the names that z3 gives them.
_NAMES = _CORE | _DIVISIONS | {name: name for name in (*_UNARY, *_BINARY, *_REAL)}

#: The kinds of z3's operations on Bools, numbers and bit-vectors: a function or constructor may be called as one is.
_OPERATIONS = (
    range(z3.Z3_OP_TRUE, z3.Z3_OP_TRUE + 0x100),
    range(z3.Z3_OP_ANUM, z3.Z3_OP_ANUM + 0x100),
    range(z3.Z3_OP_BNUM, z3.Z3_OP_BNUM + 0x100),
)

#: z3 lets these take any number of operands, SMT-LIB 2.6 two.
_FOLDED = frozenset((*_BINARY, *_DIVISIONS.values()))

#: Those of no operands; a conjunction of nothing is true.
_VALUES = {
    z3.Z3_OP_TRUE: "true",
    z3.Z3_OP_FALSE: "false",
    z3.Z3_OP_AND: "true",
    z3.Z3_OP_OR: "false",
}

#: Names whose meaning is fixed.
_RESERVED = frozenset(
    (*_NAMES.values(), "true", "false", "/", "let", "forall", "exists", "as", "_", "!", "par")
)

#: Longer terms get a name of their own, so that lines are short and nothing is deeply nested.
_LONG = 90

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.!]*")


def smtlib(assertions: Iterable[z3.BoolRef]) -> str:
    """An SMT-LIB 2 script of the conjunction, which stock solvers accept; equal for equal terms.

    Raises ValueError for what is neither of the logic QF_BV nor, with real numbers and no bit-vectors, of QF_NRA.
    """
    declared, defined, asserted, logic = _lines(list(assertions), "$")
    return f"(set-logic {logic})\n{declared}{defined}{asserted}{_END}"


def with_assertions(script: str, assertions: Iterable[z3.BoolRef], prefix: str) -> str:
    """The script, and assertions about the constants that it declares; `prefix` begins names that it has not.

    Raises ValueError if the script does not end with (check-sat), and for what is not of the logic QF_BV.
    """
    if not script.endswith(_END):
        raise ValueError("a script ends with (check-sat)")
    _, defined, asserted, _ = _lines(list(assertions), prefix)
    return f"{script.removesuffix(_END)}{defined}{asserted}{_END}"


_END = "(check-sat)\n"


def _lines(assertions: Sequence[z3.BoolRef], prefix: str) -> tuple[str, str, str, str]:
    """The declarations, the definitions, what is asserted, and of which logic it is."""
    declared, defined, said, logic = definitions(assertions, prefix)
    return "".join(declared), "".join(defined), "".join(f"(assert {each})\n" for each in said), logic


def definitions(terms_: Sequence[z3.ExprRef], prefix: str) -> tuple[list[str], list[str], list[str], str]:
    """Return lines that declare the constants of terms, lines that define what they share, each term in these names,
    and the logic.

    Raises ValueError as `smtlib`.
    """
    context, sorts, heads = terms.main_context(), _Sorts(), _Heads()
    nodes, uses = operands_first(terms_)
    said: dict[int, str] = {}
    declared: list[str] = []
    defined: list[str] = []
    names = set(_RESERVED)
    for node in nodes:
        number, handle, operands = node
        if not operands:
            text, constant = _say_leaf(context, handle)
            if constant:
                _name(text, names)
                declared.append(f"(declare-fun {text} () {sorts[context, handle]})\n")
        else:
            text = _say(heads[context, handle], [said[x] for x in operands])
            if uses[number] > 1 or len(text) > _LONG:
                name = f"{prefix}{len(defined)}"
                _name(name, names)
                defined.append(f"(define-fun {name} () {sorts[context, handle]} {text})\n")
                text = name
        said[number] = text
    return declared, defined, [said[term.get_id()] for term in terms_], sorts.logic


def _name(text: str, names: set[str]) -> None:
    """Note a name.  Raises ValueError if it is another's already, or cannot be written."""
    bare = text.removeprefix("|").removesuffix("|")
    if bare in names:
        raise ValueError(f"two things are called {bare} in one question")
    if "|" in bare or "\\" in bare:
        raise ValueError(f"no constant can be called {bare}")
    names.add(bare)


class _Sorts:
    """Sorts as text, each made once."""

    def __init__(self) -> None:
        self._said: dict[int | None, str] = {None: "Bool", REAL: "Real"}
        self._met: set[int | None] = set()

    def __getitem__(self, of: tuple[ContextPointer, Handle]) -> str:
        size = size_of(*of)
        self._met.add(size)
        return self._said.get(size) or self._said.setdefault(size, f"(_ BitVec {size})")

    @property
    def logic(self) -> str:
        """Raises ValueError where real numbers stand beside bit-vectors."""
        if REAL not in self._met:
            return "QF_BV"
        if self._met - {REAL, None}:
            raise ValueError("bit-vectors and real numbers in one question")
        return "QF_NRA"


class _Heads:
    """Operations as text, each made once."""

    def __init__(self) -> None:
        self._said: dict[int, str] = {}

    def __getitem__(self, of: tuple[ContextPointer, Handle]) -> str:
        """Raises ValueError for what is not of the logic QF_BV."""
        context, handle = of
        declaration = terms.app_decl(context, handle)
        number = terms.decl_id(context, declaration)
        if number not in self._said:
            name = name_of(context, handle)
            kind = terms.decl_kind(context, declaration)
            if name not in _NAMES or not any(kind in each for each in _OPERATIONS):
                raise ValueError(f"not an operation of QF_BV: {name}")
            head = _NAMES[name]
            count = terms.decl_num_parameters(context, declaration)
            parameters = [str(terms.decl_int_parameter(context, declaration, i)) for i in range(count)]
            self._said[number] = f"(_ {head} {' '.join(parameters)})" if parameters else head
        return self._said[number]


def _say_leaf(context: ContextPointer, handle: Handle) -> tuple[str, bool]:
    """The text of a number or a name, and whether it is an uninterpreted constant."""
    if terms.ast_kind(context, handle) == z3.Z3_NUMERAL_AST:
        number, size = terms.numeral_string(context, handle).decode(), size_of(context, handle)
        return (_say_real(number) if size == REAL else f"(_ bv{number} {size})"), False
    name = name_of(context, handle)
    if is_constant(context, handle):
        return symbol(name), True
    kind = terms.decl_kind(context, terms.app_decl(context, handle))
    if kind not in _VALUES:  # a constructor, which may be called as a constant is
        raise ValueError(f"neither a constant nor a value: {name}")
    return _VALUES[kind], False


def symbol(name: str) -> str:
    """Return the name of a constant as a script has it."""
    return name if _SIMPLE.fullmatch(name) else f"|{name}|"


def _say_real(numeral: str) -> str:
    """Return a real number as the standard writes it, of `3` or `-1/2`."""
    parts = [f"{part}.0" for part in numeral.removeprefix("-").split("/")]
    text = parts[0] if len(parts) == 1 else f"(/ {parts[0]} {parts[1]})"
    return f"(- {text})" if numeral.startswith("-") else text


def _say(head: str, operands: Sequence[str]) -> str:
    if len(operands) == 1 and head in ("and", "or"):  # z3 has those of one and of none, the standard does not
        return operands[0]
    if head not in _FOLDED:
        return f"({head} {' '.join(operands)})"
    text = operands[0]
    for operand in operands[1:]:
        text = f"({head} {text} {operand})"
    return text
