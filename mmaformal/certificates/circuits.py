"""Boolean circuits: gates, each made once, and the clauses that say what they are.

A literal is an integer other than 0: a positive one is an input or the output of a gate, a negative one its opposite.
Each gate is a constant, an input, or one of four functions, and has for clauses all of its prime implicates: an
assignment meets them if and only if the output is the function of the inputs.  A circuit asserts literals; its clauses
are those of the gates that these depend on, and the literals themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

TRUE = 1
FALSE = -1

Bits = tuple[int, ...]  #: literals, the least significant first

#: A gate: its function, and the literals that it is of.
Gate = tuple[str, Bits]


_FUNCTIONS: dict[str, Callable[..., bool]] = {
    "true": lambda: True,
    "and": lambda x, y: x and y,
    "xor": lambda x, y: x != y,
    "ite": lambda c, x, y: x if c else y,
    "maj": lambda x, y, z: x + y + z > 1,
}


class Circuit:
    """Gates by number: gate n is the literal n.  Gate 1 is the constant true."""

    def __init__(self) -> None:
        self.gates: list[Gate] = [("", ()), ("true", ())]  #: by number; 0 is none
        self._numbers: dict[Gate, int] = {}

    @property
    def size(self) -> int:
        """How many gates and inputs there are, the constant included."""
        return len(self.gates) - 1

    def input(self) -> int:
        """Return a new literal that may be true or false."""
        self.gates.append(("input", ()))
        return self.size

    def _gate(self, function: str, operands: Bits) -> int:
        gate = function, operands
        if gate not in self._numbers:
            self.gates.append(gate)
            self._numbers[gate] = self.size
        return self._numbers[gate]

    # ---- functions ---------------------------------------------------------------------------------------------------

    def both(self, x: int, y: int) -> int:
        """Return x and y."""
        if x == y or y == TRUE:
            return x
        if x == TRUE:
            return y
        if x == -y or FALSE in (x, y):
            return FALSE
        return self._gate("and", (min(x, y), max(x, y)))

    def either(self, x: int, y: int) -> int:
        """Return x or y."""
        return -self.both(-x, -y)

    def odd(self, x: int, y: int) -> int:
        """Return x exclusive-or y."""
        sign = -1 if (x < 0) != (y < 0) else 1
        x, y = sorted((abs(x), abs(y)))
        if x == y:
            return FALSE * sign
        if x == TRUE:
            return -y * sign
        return self._gate("xor", (x, y)) * sign

    def choice(self, condition: int, x: int, y: int) -> int:
        """Return x if the condition is true, y if not."""
        if condition < 0:
            condition, x, y = -condition, y, x
        if condition == TRUE or x == y:
            return x
        if x == -y:
            return self.odd(-condition, x)
        if x in (TRUE, condition):
            return self.either(condition, y)
        if x in (FALSE, -condition):
            return self.both(-condition, y)
        if y in (TRUE, -condition):
            return self.either(-condition, x)
        if y in (FALSE, condition):
            return self.both(condition, x)
        sign = -1 if x < 0 else 1
        return self._gate("ite", (condition, x * sign, y * sign)) * sign

    def most(self, x: int, y: int, z: int) -> int:
        """Return whether at least two of three are true: the carry of a full adder."""
        for one, other, third in ((x, y, z), (x, z, y), (y, z, x)):
            if one == other:
                return one
            if one == -other:
                return third
            if third == FALSE:
                return self.both(one, other)
            if third == TRUE:
                return self.either(one, other)
        operands = tuple(sorted((x, y, z), key=abs))
        sign = -1 if operands[0] < 0 else 1
        return self._gate("maj", tuple(each * sign for each in operands)) * sign

    def values(self, true: Collection[int]) -> list[bool]:
        """Return the value of each gate by number, where those inputs are true that are among `true`."""
        found = [False]
        for number, (function, operands) in enumerate(self.gates[1:], 1):
            of = [found[abs(x)] != (x < 0) for x in operands]
            found.append(number in true if function == "input" else _FUNCTIONS[function](*of))
        return found

    # ---- clauses -----------------------------------------------------------------------------------------------------

    def clauses(self, asserted: Iterable[int]) -> list[Bits]:
        """Return clauses that an assignment of all literals meets if and only if it makes the asserted ones true."""
        asserted = list(asserted)
        needed, waiting = {TRUE}, [abs(literal) for literal in asserted]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting += map(abs, self.gates[number][1])
        found = [clause for number in sorted(needed) for clause in _clauses(number, self.gates[number])]
        return found + [(literal,) for literal in asserted]


def _clauses(z: int, gate: Gate) -> Sequence[Bits]:
    """Return the prime implicates of z = gate, but for those with z and not z."""
    function, operands = gate
    if function == "true":
        return [(z,)]
    if function == "input":
        return []
    if function == "and":
        x, y = operands
        return [(-z, x), (-z, y), (z, -x, -y)]
    if function == "xor":
        x, y = operands
        return [(-z, x, y), (-z, -x, -y), (z, -x, y), (z, x, -y)]
    if function == "ite":
        c, x, y = operands
        return [(-z, -c, x), (z, -c, -x), (-z, c, y), (z, c, -y), (-z, x, y), (z, -x, -y)]
    if function == "maj":
        x, y, w = operands
        return [(-z, x, y), (-z, x, w), (-z, y, w), (z, -x, -y), (z, -x, -w), (z, -y, -w)]
    raise ValueError(f"there is no gate {function}")
