"""z3 terms as SMT-LIB 2 text that is a function of the terms alone.

z3's own text names and orders what it shares by the numbers that terms happen to have in a process.  Here the same
question is the same text in every process, today and tomorrow: so its hash stands for the question, and what was
proved is found again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import z3

_CORE = {"=": "=", "distinct": "distinct", "if": "ite", "=>": "=>", "and": "and", "or": "or", "not": "not"}
_UNARY = ("bvnot", "bvneg", "extract", "zero_extend", "sign_extend", "repeat", "rotate_left", "rotate_right")
_BINARY = (
    *("concat", "bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod"),
    *("bvshl", "bvlshr", "bvashr", "bvand", "bvor", "bvxor", "bvnand", "bvnor", "bvxnor", "bvcomp"),
    *("bvule", "bvult", "bvuge", "bvugt", "bvsle", "bvslt", "bvsge", "bvsgt", "xor"),
)
#: What z3's simplifier makes of a division whose divisor is never zero.
_DIVISIONS = {f"{name}_i": name for name in ("bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod")}

#: Operations by the names that z3 gives them.
_NAMES = _CORE | _DIVISIONS | {name: name for name in (*_UNARY, *_BINARY)}

#: z3 lets these take any number of operands, SMT-LIB 2.6 two.
_FOLDED = frozenset((*_BINARY, *_DIVISIONS.values()))

#: Longer terms get a name of their own, so that lines are short and nothing is deeply nested.
_LONG = 90

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.!]*")


def smtlib(assertions: Iterable[z3.BoolRef]) -> str:
    """An SMT-LIB 2 script of the conjunction, which stock solvers accept; equal for equal terms.

    Raises ValueError for what is not of the logic QF_BV.
    """
    declared, defined, asserted = _lines(list(assertions), "$")
    return f"(set-logic QF_BV)\n{declared}{defined}{asserted}{_END}"


def with_assertions(script: str, assertions: Iterable[z3.BoolRef], prefix: str) -> str:
    """The script, and assertions about the constants that it declares; `prefix` begins names that it has not.

    Raises ValueError if the script does not end with (check-sat), and for what is not of the logic QF_BV.
    """
    if not script.endswith(_END):
        raise ValueError("a script ends with (check-sat)")
    _, defined, asserted = _lines(list(assertions), prefix)
    return f"{script.removesuffix(_END)}{defined}{asserted}{_END}"


_END = "(check-sat)\n"


def _lines(assertions: Sequence[z3.BoolRef], prefix: str) -> tuple[str, str, str]:
    """The declarations, the definitions, and what is asserted."""
    terms, uses = _operands_first(assertions)
    said: dict[int, str] = {}
    declared: list[str] = []
    defined: list[str] = []
    for term in terms:
        text = _say(term, [said[x.get_id()] for x in term.children()])
        if _is_constant(term):
            declared.append(f"(declare-fun {text} () {_sort(term)})\n")
        elif term.num_args() and (uses[term.get_id()] > 1 or len(text) > _LONG):
            name = f"{prefix}{len(defined)}"
            defined.append(f"(define-fun {name} () {_sort(term)} {text})\n")
            text = name
        said[term.get_id()] = text
    asserted = [f"(assert {said[term.get_id()]})\n" for term in assertions]
    return "".join(declared), "".join(defined), "".join(asserted)


def _operands_first(roots: Sequence[z3.ExprRef]) -> tuple[list[z3.ExprRef], Counter[int]]:
    """Every term once, its operands before it and from left to right; and how often each is used, by id."""
    uses: Counter[int] = Counter()
    order: list[z3.ExprRef] = []
    done: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        term, ready = stack.pop()
        if ready:
            order.append(term)
        elif term.get_id() not in done:
            done.add(term.get_id())
            stack.append((term, True))
            for x in reversed(term.children()):
                uses[x.get_id()] += 1
                stack.append((x, False))
    return order, uses


def _is_constant(term: z3.ExprRef) -> bool:
    return bool(z3.is_const(term)) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED


def _sort(term: z3.ExprRef) -> str:
    if isinstance(term, z3.BitVecRef):
        return f"(_ BitVec {term.size()})"
    if isinstance(term, z3.BoolRef):
        return "Bool"
    raise ValueError(f"neither a bit-vector nor a Bool: {str(term)[:80]}")


def _say(term: z3.ExprRef, operands: Sequence[str]) -> str:
    if isinstance(term, z3.BitVecNumRef):
        return f"(_ bv{term.as_long()} {term.size()})"
    name = str(term.decl().name())
    if not operands:
        if _is_constant(term):
            return name if _SIMPLE.fullmatch(name) else f"|{name}|"
        return {"and": "true", "or": "false"}.get(name, name)  # true, false
    if len(operands) == 1 and name in ("and", "or"):  # z3 has those of one and of none, the standard does not
        return operands[0]
    if name not in _NAMES:
        raise ValueError(f"not an operation of QF_BV: {name}")
    head = _NAMES[name]
    if parameters := term.params():
        head = f"(_ {head} {' '.join(map(str, parameters))})"
    if head not in _FOLDED:
        return f"({head} {' '.join(operands)})"
    text = operands[0]
    for operand in operands[1:]:
        text = f"({head} {text} {operand})"
    return text
