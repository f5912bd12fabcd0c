"""`torch.einsum` as products of two tensors at a time, from the left."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import torch

from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.calls import operands, wide_matmul
from mmaformal.torch.tensors import Call, Tensor


def einsum(arithmetic: Arithmetic, *given: Call, **_: Call) -> Tensor:
    """Sums over an index that only one tensor has, and diagonals, are torch's: they hold no product."""
    equation, *tensors = given if isinstance(given[0], str) else _as_text(given)
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = list(tensors[0])
    terms = operands("einsum", *tensors, cast=False)
    names, out = _names(equation, [x.dim() for x in terms])
    parts = [_without_diagonals(x, own) for x, own in zip(terms, names, strict=True)]
    found, own = parts[0]
    for place, (other, theirs) in enumerate(parts[1:], 1):
        later = set(out).union(*(each for _, each in parts[place + 1 :]))
        found, own = _contracted(arithmetic, found, own, other, theirs, later)
    found, own = _summed(found, own, set(out))
    return found.permute([own.index(name) for name in out])


def _as_text(given: Sequence[Call]) -> list[Call]:
    """The form `einsum(a, [0, 1], b, [1, 2], [0, 2])` as an equation."""

    def spelled(indices: Sequence[Call]) -> str:
        return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in indices)

    pairs = len(given) // 2
    text = ",".join(spelled(given[2 * i + 1]) for i in range(pairs))
    out = "->" + spelled(given[-1]) if len(given) % 2 else ""
    return [text + out, *(given[2 * i] for i in range(pairs))]


def _names(equation: str, dims: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The index names of every term and of the result; those that `...` stands for are numbers, the last one 0."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(dims):
        raise RuntimeError(f"einsum: {equation} is of {len(terms)} tensors, not {len(dims)}")

    def listed(term: str, hidden: int) -> list[str]:
        before, dots, after = term.partition("...")
        between = [str(i) for i in reversed(range(hidden))] if dots else []
        return [*before, *between, *after]

    hidden = [dim - len(term.replace("...", "")) for term, dim in zip(terms, dims, strict=True)]
    if any(count < 0 or (count and "..." not in term) for term, count in zip(terms, hidden, strict=True)):
        raise RuntimeError(f"einsum: {equation} does not fit tensors of {list(dims)} dimensions")
    names = [listed(term, count) for term, count in zip(terms, hidden, strict=True)]
    if arrow:
        return names, listed(right, max(hidden))
    letters = sorted(each for each in set(left) if each.isalpha() and left.count(each) == 1)
    return names, listed("..." + "".join(letters), max(hidden))


def _without_diagonals(x: Tensor, names: list[str]) -> tuple[Tensor, list[str]]:
    """An index that a term has twice, once."""
    for name in sorted(set(names)):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            x = x.diagonal(dim1=first, dim2=second)
            names = [each for place, each in enumerate(names) if place not in (first, second)] + [name]
    return x, names


def _summed(x: Tensor, names: list[str], kept: set[str]) -> tuple[Tensor, list[str]]:
    dims = [place for place, name in enumerate(names) if name not in kept]
    return (x.sum(dims), [name for name in names if name in kept]) if dims else (x, names)


def _contracted(
    arithmetic: Arithmetic, a: Tensor, of_a: list[str], b: Tensor, of_b: list[str], later: set[str]
) -> tuple[Tensor, list[str]]:
    """The product of two terms, over the indices that nothing needs later.  A size of 1 stands for any other."""
    a, of_a = _summed(a, of_a, later | set(of_b))
    b, of_b = _summed(b, of_b, later | set(of_a))
    both = [name for name in of_a if name in of_b]
    batch, inner = [n for n in both if n in later], [n for n in both if n not in later]
    free_a, free_b = [n for n in of_a if n not in both], [n for n in of_b if n not in both]
    size: dict[str, int] = {}
    for x, names in ((a, of_a), (b, of_b)):
        for name, count in zip(names, x.shape, strict=True):
            size[name] = max(size.get(name, 1), count)

    def arranged(x: Tensor, names: list[str], order: list[list[str]]) -> Tensor:
        wanted = [name for group in order for name in group]
        x = x.permute([names.index(name) for name in wanted]).expand([size[name] for name in wanted])
        return x.reshape([math.prod(size[name] for name in group) for group in order])

    if inner:  # without a sum it is a product of elements to torch, whose type autocast leaves alone
        a, b = operands("einsum", a, b)
    kind = torch.promote_types(a.dtype, b.dtype)
    left, right = arranged(a, of_a, [batch, free_a, inner]), arranged(b, of_b, [batch, inner, free_b])
    names = [*batch, *free_a, *free_b]
    return wide_matmul(arithmetic, left, right).to(kind).reshape([size[name] for name in names]), names
