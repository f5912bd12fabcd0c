"""Operators make mutants: each yields what may stand in the place of a node of a syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {}
for _one, _other in (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)),
    *((ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
):
    _COMPARE |= {_one: _other, _other: _one}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {ast.BitXor: ast.BitOr}
for _this, _that in ((ast.BitAnd, ast.BitOr), (ast.Add, ast.Sub), (ast.LShift, ast.RShift)):
    _BINARY |= {_this: _that, _that: _this}
_TERMS = (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd, ast.BitXor, ast.LShift, ast.RShift)
_ORDERED = (ast.Sub, ast.LShift, ast.RShift, ast.FloorDiv, ast.Mod)
_ORDERED_CALLS = {"Concat", "Implies", "LShR", "UGE", "UGT", "ULE", "ULT", "shift_left", "shift_right"}
_PAIRS = (
    *(("ULT", "ULE"), ("UGT", "UGE"), ("And", "Or"), ("any", "all"), ("max", "min"), ("maximum", "minimum")),
    *(
        ("ZeroExt", "SignExt"),
        ("either", "both"),
        ("a", "b"),
        ("x", "y"),
        ("left", "right"),
        ("one", "other"),
    ),
    *(("first", "second"), ("even", "odd"), ("positive", "negative"), ("before", "after"), ("old", "new")),
    *(("RNE", "RZ"), ("RD", "RU"), ("RO", "RZ"), ("NEAREST", "ZERO")),
    *(("low", "high"), ("least", "most"), ("sat", "unsat"), ("start", "stop"), ("now", "before")),
)
_OTHER = {x: y for pair in _PAIRS for x, y in (pair, pair[::-1])}
_CALLS = {
    "ULT",
    "ULE",
    "UGT",
    "UGE",
    "And",
    "Or",
    "any",
    "all",
    "max",
    "min",
    "maximum",
    "minimum",
    "ZeroExt",
    "SignExt",
}
_CALLS |= {"RNE", "RZ", "RD", "RU", "RO"}
_SELECT = {"If", "where"}  #: calls of three: a condition and two branches
_WIDTH = re.compile(r"(^|_)(bits|width|F)$")


#: Calls whose one argument is no result in their place.
_KEPT = {
    "range",
    "len",
    "list",
    "tuple",
    "set",
    "dict",
    "sorted",
    "enumerate",
    "int",
    "str",
    "id",
    "isinstance",
    "cast",
}
_BUT_ONE = ((ast.Constant(1), None), (None, ast.UnaryOp(ast.USub(), ast.Constant(1))))


def called(node: ast.AST) -> str:
    """The name of the function that a call calls; empty if there is none."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _with(node: _Node, **changes: object) -> _Node:
    """A node of other fields."""
    return type(node)(**{**{name: getattr(node, name, None) for name in node._fields}, **changes})


def _plus(node: ast.expr, n: int) -> ast.expr:
    return ast.BinOp(node, ast.Add() if n > 0 else ast.Sub(), ast.Constant(abs(n)))


def _swapped(name: str, known: frozenset[str]) -> str:
    """The name with one of its words changed for its opposite, if the function has that name too; empty if not."""
    words = name.split("_")
    for i, word in enumerate(words):
        other = "_".join([*words[:i], _OTHER.get(word, word), *words[i + 1 :]])
        if other != name and other in known:
            return other
    return ""


def operators(node: ast.AST, known: frozenset[str]) -> Iterator[tuple[str, ast.AST | None]]:
    """Each operator that applies to a node, with what takes its place; None where a statement is dropped."""
    yield from _of_values(node, known)
    yield from _of_calls(node)
    yield from _of_parts(node, known)
    yield from _of_guards(node)


def _of_values(node: ast.AST, known: frozenset[str]) -> Iterator[tuple[str, ast.AST | None]]:
    """The operators of conditions, constants, names and operations."""
    match node:
        case ast.If(test=test) | ast.While(test=test):
            yield "negate", ast.UnaryOp(ast.Not(), test)  # in the place of the condition alone
        case ast.IfExp(body=one, orelse=other):
            yield "branches", _with(node, body=other, orelse=one)
            yield from (("branch", each) for each in (one, other))
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield from (("constant", ast.Constant(value + n)) for n in (1, -1) if value + n >= 0 or value < 2)
        case ast.Constant(value=bool() as value):
            yield "negate", ast.Constant(not value)
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            if _WIDTH.search(name):
                yield from (("width", _plus(node, n)) for n in (1, -1))
            other_name = _swapped(name, known | (_CALLS if name in _CALLS else frozenset()))
            if other_name:
                field = "id" if isinstance(node, ast.Name) else "attr"
                yield "name", _with(node, **{field: other_name})
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            if not isinstance(operand, ast.Constant):
                yield "negate", operand
        case ast.BinOp(left=left, op=op, right=right):
            if isinstance(op, _TERMS):
                yield from (("drop", each) for each in (left, right))
            if isinstance(op, _ORDERED):
                yield "swap", ast.BinOp(right, op, left)
            if isinstance(op, ast.Add | ast.Sub):
                yield from (("off by one", _plus(node, n)) for n in (1, -1))
            if type(op) in _BINARY:
                yield "other", ast.BinOp(left, _BINARY[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield "other", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
            for i in range(len(values)):
                rest = values[:i] + values[i + 1 :]
                yield "drop", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)


def _of_calls(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """The operators of comparisons and calls."""
    match node:
        case ast.Compare(
            left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=value)]
        ):
            yield "compare", ast.Compare(left, [_COMPARE[type(op)]()], node.comparators)
            if value in ("sat", "unsat"):  # what is not settled is taken for the other
                yield "settled", ast.Compare(left, [_COMPARE[type(op)]()], [ast.Constant(_OTHER[value])])
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield "compare", ast.Compare(left, [_COMPARE[type(op)]()], [right])
            if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                yield "swap", ast.Compare(right, [op], [left])
        case ast.Call(args=args) if not node.keywords and len(args) == 3 and called(node) in _SELECT:
            yield "branches", _with(node, args=[args[0], args[2], args[1]])
            yield from (("branch", each) for each in args[1:])
        case ast.Call(args=args):
            name = called(node)
            if name in _ORDERED_CALLS and len(args) >= 2:
                yield "swap", _with(node, args=[args[1], args[0], *args[2:]])
            if name in ("And", "Or") and len(args) > 1:
                yield from (("drop", _with(node, args=args[:i] + args[i + 1 :])) for i in range(len(args)))
            if name in ("max", "min", "maximum", "minimum") and len(args) == 2:
                yield from (("term", each) for each in args)
            if name == "Not" and len(args) == 1:
                yield "negate", args[0]
            yield from (
                ("drop", _with(node, keywords=node.keywords[:i] + node.keywords[i + 1 :]))
                for i, each in enumerate(node.keywords)
                if each.arg and len(node.keywords) < 4
            )


def _of_parts(node: ast.AST, known: frozenset[str]) -> Iterator[tuple[str, ast.AST | None]]:
    """The operators of lists, slices and statements."""
    match node:
        case (
            ast.List(elts=[_, _, *_] as elts, ctx=ast.Load())
            | ast.Tuple(elts=[_, _, *_] as elts, ctx=ast.Load())
        ):
            if isinstance(node, ast.List) or any(isinstance(each, ast.Starred) for each in elts):
                yield from (("drop", _with(node, elts=elts[:i] + elts[i + 1 :])) for i in range(len(elts)))
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper), ctx=ast.Load()):
            yield from (("slice", node.value) for _ in [0])
            yield from (("slice", _with(node, slice=ast.Slice(*ends))) for ends in _ends(lower, upper))
        case ast.Subscript(slice=ast.Name(), ctx=ast.Load()):
            yield "index", _with(node, slice=ast.Constant(0))
        case ast.comprehension(ifs=[_, *_]):
            yield from (
                ("drop", _with(node, ifs=node.ifs[:i] + node.ifs[i + 1 :])) for i in range(len(node.ifs))
            )
        case ast.Expr() | ast.AugAssign():
            yield "statement", None
        case ast.Raise():
            yield "raise", None
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value)):
                yield "statement", None
        case ast.Return(value=value) if value is not None and known >= {"-> bool"}:
            yield from (("result", ast.Return(ast.Constant(each))) for each in (True, False))


def _of_guards(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """The operators of guards, calls of one argument and loops."""
    if isinstance(node, ast.If):  # a guard is never met, or always
        yield from (("guard", ast.Constant(each)) for each in (False, True))
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords and called(node) not in _KEPT:
        yield "unwrap", node.args[0]
    if isinstance(node, ast.For | ast.comprehension) and not isinstance(node.iter, ast.Starred):
        whole = ast.Call(ast.Name("list", ast.Load()), [node.iter], [])
        yield from (("iterate", ast.Subscript(whole, ast.Slice(*ends))) for ends in _BUT_ONE)


def _ends(
    lower: ast.expr | None, upper: ast.expr | None
) -> Iterator[tuple[ast.expr | None, ast.expr | None]]:
    if lower is not None:
        yield _plus(lower, 1), upper
    if upper is not None:
        yield lower, _plus(upper, -1)
