"""Constants that a script asserts to equal a term, written as definitions of them.

If x = t is asserted, and t does not depend on x, the script can be met if and only if it can be met with t in x's
place: an assignment of the others gives x its value.  The assertion itself stays, and is then true of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mmaformal.certificates.expressions import Expression, ScriptError


def solved(script: Sequence[Expression]) -> list[Expression]:
    """Return commands that can be met if and only if the script can: constants that equal a term are defined as it.

    Each name is defined after those that it is made of; assertions come last, in their order.
    """
    sorts: dict[str, Expression] = {}
    bodies: dict[str, Expression] = {}
    rest: dict[bool, list[Expression]] = {False: [], True: []}  #: before names are declared, and after
    for command in script:
        match command:
            case ["declare-fun" | "define-fun", str(name), [], sort, *body] if len(body) < 2:
                if name in sorts:
                    raise ScriptError(f"{name} has a meaning already")
                sorts[name] = sort
                bodies.update((name, each) for each in body)
            case _:
                rest[bool(sorts)].append(command)
    asserted = [command[1] for command in script if command[:1] == ["assert"] and len(command) == 2]
    for constant, term in _equalities(asserted, bodies):
        if constant in sorts and constant not in bodies and constant not in _names(term, bodies):
            bodies[constant] = term
    declared: list[Expression] = [
        ["declare-fun", name, [], sort] for name, sort in sorts.items() if name not in bodies
    ]
    defined: list[Expression] = [
        ["define-fun", name, [], sorts[name], bodies[name]] for name in _in_order(bodies)
    ]
    return [*rest[False], *declared, *defined, *rest[True]]


def _equalities(
    asserted: Sequence[Expression], bodies: Mapping[str, Expression]
) -> Iterator[tuple[str, Expression]]:
    """Yield each word and the term that it equals wherever the asserted formulas are true, in their order."""
    waiting = [(each, True) for each in reversed(asserted)]
    while waiting:
        formula, wanted = waiting.pop()
        match formula, wanted:
            case str(name), _ if name in bodies:
                waiting.append((bodies[name], wanted))
            case str(name), _:
                yield name, "true" if wanted else "false"
            case ["not", inner], _:
                waiting.append((inner, not wanted))
            case (["and", *parts], True) | (["or", *parts], False):
                waiting += [(each, wanted) for each in reversed(parts)]
            case ["=>", *parts, last], False:
                waiting += [(last, False), *((each, True) for each in reversed(parts))]
            case ["=", left, right], True:
                yield from ((x, y) for x, y in ((left, right), (right, left)) if isinstance(x, str))


def _names(term: Expression, bodies: Mapping[str, Expression]) -> set[str]:
    """Return the words of a term, and of what defines them."""
    found: set[str] = set()
    waiting = [term]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, str):
            waiting += each
        elif each not in found:
            found.add(each)
            if each in bodies:
                waiting.append(bodies[each])
    return found


def _in_order(bodies: Mapping[str, Expression]) -> list[str]:
    """Return the defined names, each after those that it is made of."""
    found: dict[str, None] = {}
    begun: set[str] = set()
    waiting = [(name, False) for name in reversed(list(bodies))]
    while waiting:
        name, is_ready = waiting.pop()
        if is_ready:
            found[name] = None
        elif name in begun and name not in found:
            raise ScriptError(f"{name} is defined by itself")
        elif name not in found:
            begun.add(name)
            waiting.append((name, True))
            waiting += [
                (each, False) for each in _names(bodies[name], {}) if each in bodies and each not in found
            ]
    return list(found)
