"""In which order blocks of a function are run, loops in them nested, and how paths that meet become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import z3

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_values import all_true, any_true, untrue

#: Claims of which it is tried out whether one of several paths is always taken.
_TRIED = 8


@dataclass(frozen=True)
class Loop:
    """Blocks that are run again and again, the first of which is entered from outside."""

    head: str
    body: tuple[Item, ...]


Item = str | Loop
PathClaims = tuple[z3.BoolRef, ...]  #: claims that are true on it, in the order in which they were looked at


def topological(entry: str, after: Mapping[str, Sequence[str]]) -> tuple[Item, ...]:
    """The blocks that are reached, each after all that lead to it, and loops as one.

    Raises HardwareError for a loop that has two ways in.
    """
    return _ordered([entry], {*_reached(entry, after)}, after)


def _reached(entry: str, after: Mapping[str, Sequence[str]]) -> list[str]:
    found, stack = dict.fromkeys([entry]), [entry]
    while stack:
        for each in after[stack.pop()]:
            if each not in found:
                found[each] = None
                stack.append(each)
    return [*found]


def _ordered(entries: Iterable[str], among: set[str], after: Mapping[str, Sequence[str]]) -> tuple[Item, ...]:
    found: list[Item] = []
    for component in reversed(_components(entries, among, after)):
        if len(component) == 1 and component[0] not in after[component[0]]:
            found.append(component[0])
            continue
        inside = set(component)
        before = {x: [y for y in after if y in among - inside and x in after[y]] for x in component}
        heads = [x for x in component if before[x] or x in entries]
        if len(heads) != 1:
            raise HardwareError("a loop has two ways in (`goto`), which is not understood")
        (head,) = heads
        rest = inside - {head}
        starts = [x for x in after[head] if x in rest]
        found.append(Loop(head, _ordered(starts, rest, after)))
    return tuple(found)


def _components(
    entries: Iterable[str], among: set[str], after: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Strongly connected components (Tarjan's algorithm), each before those that lead to it."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    done: list[list[str]] = []
    for entry in entries:
        if entry in number:
            continue
        work = [(entry, iter([x for x in after[entry] if x in among]))]
        number[entry] = low[entry] = len(number)
        stack.append(entry)
        while work:
            node, rest = work[-1]
            step = next(rest, None)
            if step is not None:
                if step not in number:
                    number[step] = low[step] = len(number)
                    stack.append(step)
                    work.append((step, iter([x for x in after[step] if x in among])))
                elif step in stack:
                    low[node] = min(low[node], number[step])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == number[node]:
                at = stack.index(node)
                done.append(stack[at:])
                del stack[at:]
    return done


# ---- paths that meet ----------------------------------------------------------------------------------------------


def alike(x: PathClaims, y: PathClaims) -> int:
    """How many claims two paths begin with alike."""
    found = 0
    for each, other in zip(x, y, strict=False):
        if not each.eq(other):
            break
        found += 1
    return found


def met(x: PathClaims, y: PathClaims) -> tuple[z3.BoolRef, PathClaims]:
    """The claim that is true on the first of two paths, and not on the second; and what is true after both."""
    shared = alike(x, y)
    first, second = all_true(*x[shared:]), all_true(*y[shared:])
    path = x[:shared]
    if _always(first, second):
        return first, path
    return first, (*path, any_true(first, second))


def _always(first: z3.BoolRef, second: z3.BoolRef) -> bool:
    """Whether one of two claims is always true, as the claims that they are made of show."""
    if first.eq(untrue(second)) or second.eq(untrue(first)):
        return True
    atoms: dict[int, z3.ExprRef] = {}
    _atoms(first, atoms)
    _atoms(second, atoms)
    if len(atoms) > _TRIED:
        return False
    for values in product((False, True), repeat=len(atoms)):
        given = dict(zip(atoms, values, strict=True))
        if not (_value(first, given) or _value(second, given)):
            return False
    return True


def _atoms(term: z3.ExprRef, found: dict[int, z3.ExprRef]) -> None:
    if z3.is_and(term) or z3.is_or(term) or z3.is_not(term):
        for each in term.children():
            _atoms(each, found)
    elif not (z3.is_true(term) or z3.is_false(term)):
        found[term.get_id()] = term


def _value(term: z3.ExprRef, given: Mapping[int, bool]) -> bool:
    if z3.is_and(term):
        return all(_value(each, given) for each in term.children())
    if z3.is_or(term):
        return any(_value(each, given) for each in term.children())
    if z3.is_not(term):
        return not _value(term.arg(0), given)
    return bool(z3.is_true(term)) or given.get(term.get_id(), False)
