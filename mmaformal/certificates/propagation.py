"""Unit propagation with two watched literals, which notes what each conclusion rests on (`elaboration`), compiled.

A learnt clause follows by reverse unit propagation if its opposite leads to a false clause.  What it passes through is
written as hints: a given clause's number, or -1 - n for step n.  Literals that hold without any assumption have steps
of their own, so that no hint is followed twice.

Moskewicz, Madigan, Zhao, Zhang and Malik, "Chaff: engineering an efficient SAT solver" (2001), for watched literals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.certificates.compiling import compiled_function

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_SIZE, _STEPS, _HINTS = 0, 1, 2  #: places of `Clauses.counts`


class Clauses(NamedTuple):
    """Clauses, from 1, and what is known of literals; a literal's index is 2·variable, its opposite's 1 more."""

    literals: Ints  #: of all clauses; the first two of a clause are watched
    starts: Longs  #: where each clause begins
    heads: Longs  #: of each literal, the first link that watches it
    nexts: Longs  #: of each link (2·clause + side), the next
    gone: NDArray[np.bool_]  #: of each clause, whether it is forgotten
    value: NDArray[np.int8]  #: of each literal: 1 true, -1 false, 0 open
    reason: Longs  #: of each variable, the clause that gave it its value
    trail: Ints  #: literals that are true, in order
    unit_hint: Longs  #: of each variable that is known without assumption, its hint
    clause_hint: Longs  #: of each clause, its hint
    seen: NDArray[np.bool_]  #: of each variable, for `_explain`
    counts: Longs  #: literals on the trail, steps, hints

    def __repr__(self) -> str:
        return f"<Clauses: {len(self.gone) - 1}>"


class ClauseSteps(NamedTuple):
    """Steps: each a clause by its number, or where that is 0 a literal, or where that is 0 too the empty clause."""

    clauses: Longs
    units: Ints
    ends: Longs  #: step s has the hints from ends[s] to ends[s + 1]
    hints: Longs


def clauses_held(variables: int, starts: Longs, literals: Ints) -> Clauses:
    """Return the state in which nothing is known."""
    clauses, longs = len(starts) - 2, np.int64
    return Clauses(
        literals,
        starts,
        np.full(2 * variables + 2, -1, longs),
        np.full(2 * clauses + 2, -1, longs),
        np.zeros(clauses + 1, np.bool_),
        np.zeros(2 * variables + 2, np.int8),
        np.zeros(variables + 1, longs),
        np.zeros(variables + 1, np.int32),
        np.zeros(variables + 1, longs),
        np.arange(clauses + 1),
        np.zeros(variables + 1, np.bool_),
        np.zeros(3, longs),
    )


@compiled_function
def _index(literal: int) -> int:
    return 2 * literal if literal > 0 else 1 - 2 * literal


@compiled_function
def _assign(state: Clauses, literal: int, reason: int) -> None:
    """Make a literal true."""
    state.value[_index(literal)], state.value[_index(-literal)] = 1, -1
    state.reason[abs(literal)] = reason
    state.trail[state.counts[_SIZE]] = literal
    state.counts[_SIZE] += 1


@compiled_function
def _propagate(state: Clauses, at: int) -> int:
    """Follow unit clauses from place `at` of the trail; return a clause that is false, or 0."""
    literals, starts, value = state.literals, state.starts, state.value
    while at < state.counts[_SIZE]:
        false = -state.trail[at]
        at += 1
        link, kept, conflict = state.heads[_index(false)], -1, 0
        while link >= 0:
            following = state.nexts[link]
            clause, side = link >> 1, link & 1
            begin, end = starts[clause], starts[clause + 1]
            other = literals[begin + 1 - side]
            stays = not state.gone[clause]
            if stays and not conflict and value[_index(other)] != 1:
                for place in range(begin + 2, end):
                    if value[_index(literals[place])] != -1:
                        literals[begin + side], literals[place] = literals[place], false
                        new = _index(literals[begin + side])
                        state.nexts[link], state.heads[new] = state.heads[new], link
                        stays = False
                        break
                if stays and value[_index(other)] == -1:
                    conflict = clause
                elif stays:
                    _assign(state, other, clause)
            if stays:
                state.nexts[link], kept = kept, link
            link = following
        state.heads[_index(false)] = kept
        if conflict:
            return conflict
    return 0


@compiled_function
def _attach(state: Clauses, clause: int) -> int:
    """Add a clause where nothing is assumed, and follow it; return a clause that is false, or 0."""
    literals, begin, end = state.literals, state.starts[clause], state.starts[clause + 1]
    found = 0
    for place in range(begin, end):
        if state.value[_index(literals[place])] == 1:
            return 0  # it holds for good
    for place in range(begin, end):
        if found < 2 and state.value[_index(literals[place])] == 0:
            literals[begin + found], literals[place] = literals[place], literals[begin + found]
            found += 1
    if found == 0:
        return clause
    if found == 1:
        at = state.counts[_SIZE]
        _assign(state, literals[begin], clause)
        return _propagate(state, at)
    for side in range(2):
        which = _index(literals[begin + side])
        state.nexts[2 * clause + side], state.heads[which] = state.heads[which], 2 * clause + side
    return 0


@compiled_function
def _with_room(state: Clauses, steps: ClauseSteps, hints: int) -> ClauseSteps:
    """Return steps with room for one more, and for so many hints."""
    clauses, units, ends, held = steps
    if state.counts[_STEPS] + 2 > len(clauses):
        more = len(clauses)
        clauses = np.append(clauses, np.zeros(more, np.int64))
        units = np.append(units, np.zeros(more, np.int32))
        ends = np.append(ends, np.zeros(more, np.int64))
    if state.counts[_HINTS] + hints > len(held):
        held = np.append(held, np.zeros(len(held) + hints, np.int64))
    return ClauseSteps(clauses, units, ends, held)


@compiled_function
def _hint(state: Clauses, steps: ClauseSteps, hint: int) -> None:
    steps.hints[state.counts[_HINTS]] = hint
    state.counts[_HINTS] += 1


@compiled_function
def _end_step(state: Clauses, steps: ClauseSteps, clause: int, unit: int) -> int:
    """End a step; return the hint that names it."""
    number = state.counts[_STEPS]
    steps.clauses[number], steps.units[number] = clause, unit
    steps.ends[number + 1] = state.counts[_HINTS]
    state.counts[_STEPS] += 1
    return -1 - int(number)


@compiled_function
def _explain(state: Clauses, steps: ClauseSteps, clause: int, low: int) -> ClauseSteps:
    """Append the hints under which `clause` is false: those of literals that are known, then the reasons of those that
    stand from `low` on the trail, in their order, then its own."""
    at, now = state.counts[_SIZE], clause
    chain, known = np.empty(at - low + 1, np.int64), np.empty(low, np.int64)
    met = units = 0
    while True:
        chain[met] = state.clause_hint[now]
        met += 1
        for place in range(state.starts[now], state.starts[now + 1]):
            variable = abs(state.literals[place])
            if state.seen[variable] or (now != clause and state.reason[variable] == now):
                continue
            state.seen[variable] = True
            if state.unit_hint[variable]:
                known[units] = variable
                units += 1
        now = 0
        while at > low and not now:
            at -= 1
            variable = abs(state.trail[at])
            if state.seen[variable]:
                state.seen[variable] = False
                now = state.reason[variable]
        if not now:
            break
    steps = _with_room(state, steps, units + met)
    for i in range(units):
        state.seen[known[i]] = False
        _hint(state, steps, state.unit_hint[known[i]])
    for i in range(met):
        _hint(state, steps, chain[met - 1 - i])
    return steps


@compiled_function
def _derive(state: Clauses, steps: ClauseSteps, clause: int) -> tuple[bool, ClauseSteps]:
    """Write the step of a learnt clause; return whether it follows."""
    low, true, conflict = state.counts[_SIZE], 0, 0
    for place in range(state.starts[clause], state.starts[clause + 1]):
        literal = state.literals[place]
        if state.value[_index(literal)] == 1:
            true = literal
            break
        if state.value[_index(literal)] == 0:
            _assign(state, -literal, 0)
    if true and state.unit_hint[abs(true)]:
        steps = _with_room(state, steps, 1)
        _hint(state, steps, state.unit_hint[abs(true)])
        conflict = 1
    elif not true:
        conflict = _propagate(state, low)
        if conflict:
            steps = _explain(state, steps, conflict, low)
    for at in range(low, state.counts[_SIZE]):
        state.value[_index(state.trail[at])] = state.value[_index(-state.trail[at])] = 0
    state.counts[_SIZE] = low
    if not conflict:
        return False, steps
    steps = _with_room(state, steps, 0)
    state.clause_hint[clause] = _end_step(state, steps, clause, 0)
    return True, steps


@compiled_function
def _note_units(state: Clauses, steps: ClauseSteps, low: int) -> ClauseSteps:
    """Write a step for each literal that has become known."""
    for at in range(low, state.counts[_SIZE]):
        variable = abs(state.trail[at])
        cause = state.reason[variable]
        begin, end = state.starts[cause], state.starts[cause + 1]
        if end - begin == 1:
            state.unit_hint[variable] = state.clause_hint[cause]
            continue
        steps = _with_room(state, steps, end - begin)
        for place in range(begin, end):
            if abs(state.literals[place]) != variable:
                _hint(state, steps, state.unit_hint[abs(state.literals[place])])
        _hint(state, steps, state.clause_hint[cause])
        state.unit_hint[variable] = _end_step(state, steps, 0, state.trail[at])
    return steps


@compiled_function
def derive_all(state: Clauses, given: int, script: Longs) -> tuple[bool, ClauseSteps]:
    """Add the given clauses, then follow a script (+n: clause n is learnt, -n: it is forgotten).

    Return whether the empty clause was reached, and the steps to it, as far as `state.counts` tells.
    """
    steps = ClauseSteps(
        np.zeros(1024, np.int64), np.zeros(1024, np.int32), np.zeros(1024, np.int64), np.zeros(1024, np.int64)
    )
    for turn in range(given + len(script)):
        clause = turn + 1 if turn < given else script[turn - given]
        if clause < 0:
            state.gone[-clause] = True
            continue
        if clause > given:
            follows, steps = _derive(state, steps, clause)
            if not follows:
                return False, steps
        low = state.counts[_SIZE]
        conflict = _attach(state, clause)
        steps = _note_units(state, steps, low)
        if conflict:
            begin, end = state.starts[conflict], state.starts[conflict + 1]
            steps = _with_room(state, steps, end - begin + 1)
            for place in range(begin, end):
                _hint(state, steps, state.unit_hint[abs(state.literals[place])])
            _hint(state, steps, state.clause_hint[conflict])
            _end_step(state, steps, 0, 0)
            return True, steps
    return False, steps
