"""A program's source rewritten so that its conditions may be on symbolic values: `if`, `and`, `or`, `not`, calls.

A condition is a call of `Hooks`, which runs both sides and puts them together where it is symbolic; where it is not,
each does what Python does.  Lines keep their numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

#: Statements that no side of a condition that is put together has: it is left early, or binds names of other scopes.
_LEAVES = (
    ast.Return,
    ast.Break,
    ast.Continue,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Raise,
    ast.Assert,
    ast.Delete,
)
_SCOPED = (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.NamedExpr, ast.ClassDef, ast.Try)
#: Functions that look at the frame they are called from.
_OF_FRAMES = {"super", "locals", "globals", "vars", "eval", "exec", "dir", "breakpoint"}
HOOKS = "__mmaformal__"


def rewritten(source: bytes | str, path: str) -> ast.Module:
    """The syntax tree of a program with hooks in place of conditions and calls.  Raises SyntaxError."""
    tree = _Rewriter().visit(ast.parse(source, path))
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


def _hook(name: str, *arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    return ast.Call(
        ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load()), list(arguments), list(keywords)
    )


def _later(value: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, value)


def _has(nodes: Sequence[ast.AST], kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(x, kinds) for node in nodes for x in ast.walk(node))


def _assigned(nodes: Sequence[ast.AST]) -> list[str]:
    """Names that statements bind."""
    found = dict.fromkeys(
        x.id
        for node in nodes
        for x in ast.walk(node)
        if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)
    )
    named = (x.name for node in nodes for x in ast.walk(node) if isinstance(x, ast.FunctionDef))
    return list(dict.fromkeys((*found, *named)))


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self._inside = 0
        self._number = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._inside += 1
        self.generic_visit(node)
        self._inside -= 1
        yields = _has(node.body, (ast.Yield, ast.YieldFrom))
        if not yields:
            node.decorator_list.append(
                ast.copy_location(ast.Attribute(ast.Name(HOOKS, ast.Load()), "function", ast.Load()), node)
            )
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._inside += 1
        node.body = self.visit(node.body)
        self._inside -= 1
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        sides = (node.body, node.orelse)
        whole = not _has([*node.body, *node.orelse], _LEAVES + _SCOPED)
        names = _assigned([*node.body, *node.orelse])
        self.generic_visit(node)
        if not self._inside or not whole:
            return node
        self._number += 1
        functions: list[ast.AST] = []
        for side, body in zip(("then", "else"), sides, strict=True):
            given = ast.arguments(
                posonlyargs=[], args=[ast.arg(x) for x in names], kwonlyargs=[], kw_defaults=[], defaults=[]
            )
            made = ast.FunctionDef(
                f"_mmaformal_{side}{self._number}", given, [*body, ast.Return(_tuple(names, ast.Load()))], []
            )
            functions.append(ast.copy_location(made, node))
        before: list[ast.expr] = [
            _hook("bound", ast.Call(ast.Name("locals", ast.Load()), [], []), ast.Constant(x)) for x in names
        ]
        calls = [ast.Name(f"_mmaformal_{side}{self._number}", ast.Load()) for side in ("then", "else")]
        chosen = _hook("branch", node.test, *calls, ast.Tuple(before, ast.Load()))
        last = ast.Assign([_tuple(names, ast.Store())], chosen) if names else ast.Expr(chosen)
        return [*functions, ast.copy_location(last, node)]

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not self._inside or _has([node], (ast.NamedExpr, ast.Await, ast.Yield)):
            return node
        return ast.copy_location(_hook("either", node.test, _later(node.body), _later(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if not self._inside or _has([node], (ast.NamedExpr, ast.Await, ast.Yield)):
            return node
        made = node.values[-1]
        for value in reversed(node.values[:-1]):
            made = _hook("both" if isinstance(node.op, ast.And) else "one", value, _later(made))
        return ast.copy_location(made, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not self._inside or not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(_hook("opposite", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        of_none = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
        if self._inside and of_none and isinstance(node.ops[0], ast.Is | ast.IsNot):
            return ast.copy_location(
                _hook("is_none", node.left, ast.Constant(isinstance(node.ops[0], ast.Is))), node
            )
        middle = node.comparators[:-1]
        if not middle or not self._inside or not all(isinstance(x, ast.Name | ast.Constant) for x in middle):
            return node
        ends = [node.left, *node.comparators]
        pairs: list[ast.expr] = [ast.Compare(ends[i], [op], [ends[i + 1]]) for i, op in enumerate(node.ops)]
        made = pairs[-1]
        for each in reversed(pairs[:-1]):
            made = _hook("both", each, _later(made))
        return ast.copy_location(made, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if (
            not self._inside
            or not isinstance(node.ctx, ast.Load)
            or _has([node.slice], (ast.Slice, ast.Starred))
        ):
            return node
        return ast.copy_location(_hook("item", node.value, node.slice), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not self._inside or (isinstance(node.func, ast.Name) and node.func.id in _OF_FRAMES):
            return node
        return ast.copy_location(_hook("call", node.func, *node.args, keywords=node.keywords), node)


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(x, context) for x in names], context)
