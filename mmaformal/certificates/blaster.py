"""From an SMT-LIB 2 script over bit-vectors to clauses: they can be met if and only if the script's assertions can.

The reader takes what `solver/script.py` writes, of the logic QF_BV: constants, definitions without parameters, and
assertions.  Each operator of the theory of fixed-size bit-vectors (SMT-LIB 2.6, FixedSizeBitVectors and QF_BV) has one
function with its circuit.  Raises ScriptError for anything else: nothing is guessed and nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from mmaformal.certificates.circuits import FALSE, TRUE, Bits, Circuit
from mmaformal.certificates.equalities import solved
from mmaformal.certificates.expressions import Expression, ScriptError, expressions

#: A value: bits of a bit-vector, or the one literal of a Bool.
BlastedValue = Bits | int


#: A polynomial: the coefficient of each product of bit-vectors, the factors in order.
_Polynomial = dict[tuple[Bits, ...], int]

#: A polynomial of more terms is not multiplied out further.
_TERMS = 64


def clauses_of(script: str, multiplied_out: bool = False) -> tuple[int, list[Bits]]:
    """Return the largest variable and the clauses of a script, made as `Blaster` says.  Raises ScriptError."""
    blaster, commands = Blaster(multiplied_out), list(expressions(script))
    for command in solved(commands) if multiplied_out else commands:
        blaster.do(command)
    return blaster.circuit.size, blaster.circuit.clauses(blaster.asserted)


class Blaster:
    """A circuit of what a script declared, defined and asserted so far.

    Sums and products are made as they are written, or, with `multiplied_out`, as polynomials with their terms in a
    fixed order: addition and multiplication modulo 2^n are commutative and associative, and products of sums are
    sums of products, so the value is the same, and two ways to write a polynomial are one circuit.  `clauses_of` then
    has each constant that is asserted to equal a term defined as that term, too (`equalities.py`).
    """

    def __init__(self, multiplied_out: bool = False) -> None:
        self.circuit = Circuit()
        self.asserted: list[int] = []
        self._multiplied_out = multiplied_out
        self._polynomials: dict[Bits, _Polynomial] = {}  #: of sums and products that were made
        self._named: dict[str, BlastedValue] = {"true": TRUE, "false": FALSE}
        self._over = False
        self.constants: dict[str, BlastedValue] = {}  #: those that were declared

    def do(self, command: Expression) -> None:
        """Obey one command.  Raises ScriptError."""
        if self._over:
            raise ScriptError("something follows (check-sat)")
        match command:
            case ["set-logic", "QF_BV"]:
                pass
            case ["declare-fun", str(name), [], sort]:
                self.constants[name] = self._constant(_width(sort))
                self._name(name, self.constants[name])
            case ["define-fun", str(name), [], sort, body]:
                value = self.value(body)
                if _width_of(value) != _width(sort):
                    raise ScriptError(f"{name} is not of its sort")
                self._name(name, value)
            case ["assert", body]:
                self.asserted.append(_bool(self.value(body)))
            case ["check-sat"]:
                self._over = True
            case _:
                raise ScriptError(f"not a command that is read here: {str(command)[:60]}")

    def _name(self, name: str, value: BlastedValue) -> None:
        if name in self._named:
            raise ScriptError(f"{name} has a meaning already")
        self._named[name] = value

    def _constant(self, width: int | None) -> BlastedValue:
        return self.circuit.input() if width is None else tuple(self.circuit.input() for _ in range(width))

    def value(self, expression: Expression) -> BlastedValue:
        """Return the bits of a term, or the literal of a formula.  Raises ScriptError."""
        match expression:
            case str(name):
                if name not in self._named:
                    raise ScriptError(f"{name} has no meaning")
                return self._named[name]
            case ["_", str(numeral), str(width)] if re.fullmatch(r"bv[0-9]+", numeral):
                return _bits_of(int(numeral[2:]), int(width))
            case ["ite", condition, left, right]:
                return self._chosen(_bool(self.value(condition)), self.value(left), self.value(right))
            case ["=" | "distinct" as head, left, right]:
                same = self._same(self.value(left), self.value(right))
                return same if head == "=" else -same
            case [str(head), *operands] if head in _ON_BOOLS:
                return _ON_BOOLS[head](self.circuit, [_bool(self.value(each)) for each in operands])
            case [str(head), operand] if head in _UNARY:
                return _UNARY[head](self.circuit, _vector(self.value(operand)))
            case [str(head), left, right] if head in _BINARY:
                x, y = _vector(self.value(left)), _vector(self.value(right))
                if head != "concat" and len(x) != len(y):
                    raise ScriptError(f"{head} of {len(x)} and {len(y)} bits")
                if self._multiplied_out and head in ("bvadd", "bvsub", "bvmul"):
                    return self._polynomial(head, x, y)
                return _BINARY[head](self.circuit, x, y)
            case [["_", str(head), *parameters], operand] if head in _INDEXED:
                return _INDEXED[head](_vector(self.value(operand)), *map(_numeral, parameters))
            case _:
                raise ScriptError(f"not a term that is read here: {str(expression)[:60]}")

    def _polynomial(self, head: str, x: Bits, y: Bits) -> Bits:
        """Return x + y, x - y or x·y, from the polynomials that both are, unless it has too many terms."""
        size = 1 << len(x)
        left, right = (self._polynomials.get(each) or _polynomial_of(each) for each in (x, y))
        if (len(left) * len(right) if head == "bvmul" else len(left) + len(right)) > _TERMS:
            left, right = {(x,): 1}, {(y,): 1}
        found: _Polynomial = {}
        if head == "bvmul":
            for (one, factor), (other, times) in product(left.items(), right.items()):
                factors = tuple(sorted(one + other))
                found[factors] = (found.get(factors, 0) + factor * times) % size
        else:
            sign = -1 if head == "bvsub" else 1
            found = {each: (left.get(each, 0) + sign * right.get(each, 0)) % size for each in (*left, *right)}
        total = _bits_of(0, len(x))
        for is_less, factor, factors in sorted(_signed_terms(found, size)):
            term = _bits_of(factor, len(x))
            for bits in factors:
                term = _multiply(self.circuit, term, bits)
            total = (_subtract if is_less else _add)(self.circuit, total, term)
        self._polynomials[total] = found
        return total

    def _chosen(self, condition: int, x: BlastedValue, y: BlastedValue) -> BlastedValue:
        if isinstance(x, int) or isinstance(y, int):
            return self.circuit.choice(condition, _bool(x), _bool(y))
        if len(x) != len(y):
            raise ScriptError(f"ite of {len(x)} and {len(y)} bits")
        return _choose(self.circuit, condition, x, y)

    def _same(self, x: BlastedValue, y: BlastedValue) -> int:
        if isinstance(x, int) or isinstance(y, int):
            return -self.circuit.odd(_bool(x), _bool(y))
        if len(x) != len(y):
            raise ScriptError(f"= of {len(x)} and {len(y)} bits")
        return _equal(self.circuit, x, y)


def _numeral(text: Expression) -> int:
    if not isinstance(text, str) or not re.fullmatch(r"0|[1-9][0-9]*", text):
        raise ScriptError(f"not a numeral: {str(text)[:60]}")
    return int(text)


def _width(sort: Expression) -> int | None:
    """Return how many bits a sort has, None for Bool."""
    match sort:
        case "Bool":
            return None
        case ["_", "BitVec", width] if _numeral(width) > 0:
            return _numeral(width)
        case _:
            raise ScriptError(f"not a sort that is read here: {str(sort)[:60]}")


def _width_of(value: BlastedValue) -> int | None:
    return None if isinstance(value, int) else len(value)


def _bool(value: BlastedValue) -> int:
    if not isinstance(value, int):
        raise ScriptError("a bit-vector stands where a Bool is needed")
    return value


def _vector(value: BlastedValue) -> Bits:
    if isinstance(value, int):
        raise ScriptError("a Bool stands where a bit-vector is needed")
    return value


def _bits_of(value: int, width: int) -> Bits:
    """Return a number's bits.  Raises ScriptError if it has more."""
    if not 0 <= value < 1 << width:
        raise ScriptError(f"{value} has not {width} bits")
    return tuple(TRUE if value >> i & 1 else FALSE for i in range(width))


def _polynomial_of(x: Bits) -> _Polynomial:
    """Return the polynomial of a bit-vector that is no sum or product: a number, or itself."""
    if all(abs(bit) == TRUE for bit in x):
        return {(): sum((bit == TRUE) << i for i, bit in enumerate(x))}
    return {(x,): 1}


def _signed_terms(polynomial: _Polynomial, size: int) -> Iterator[tuple[bool, int, tuple[Bits, ...]]]:
    """Yield each term's sign, magnitude and factors; coefficients from half the size on are negative."""
    for factors, coefficient in polynomial.items():
        is_less = 2 * coefficient > size
        yield is_less, size - coefficient if is_less else coefficient, factors


# ---- Bools -----------------------------------------------------------------------------------------------------------


def _and(c: Circuit, operands: Sequence[int]) -> int:
    found = TRUE
    for each in operands:
        found = c.both(found, each)
    return found


def _or(c: Circuit, operands: Sequence[int]) -> int:
    return -_and(c, [-each for each in operands])


def _implies(c: Circuit, operands: Sequence[int]) -> int:
    """Return the implication, which associates to the right."""
    return _or(c, [*(-each for each in operands[:-1]), operands[-1]])


def _xor(c: Circuit, operands: Sequence[int]) -> int:
    found = FALSE
    for each in operands:
        found = c.odd(found, each)
    return found


def _not(c: Circuit, operands: Sequence[int]) -> int:
    if len(operands) != 1:
        raise ScriptError(f"not of {len(operands)} operands")
    return -operands[0]


# ---- sums ------------------------------------------------------------------------------------------------------------


def _add(c: Circuit, x: Bits, y: Bits, carry: int = FALSE) -> Bits:
    found = []
    for a, b in zip(x, y, strict=True):
        found.append(c.odd(c.odd(a, b), carry))
        carry = c.most(a, b, carry)
    return tuple(found)


def _invert(c: Circuit, x: Bits) -> Bits:
    return tuple(-bit for bit in x)


def _subtract(c: Circuit, x: Bits, y: Bits) -> Bits:
    return _add(c, x, _invert(c, y), TRUE)


def _negate(c: Circuit, x: Bits) -> Bits:
    return _add(c, _invert(c, x), (FALSE,) * len(x), TRUE)


def _multiply(c: Circuit, x: Bits, y: Bits) -> Bits:
    """Return the product's last bits: shifted rows, added one by one.  Factors are ordered, so that xy is yx."""
    x, y = sorted((x, y), key=lambda bits: (-bits.count(FALSE), bits))
    for one, other in ((x, y), (y, x)):
        minus = _negate(c, one) if all(abs(bit) == TRUE for bit in one) else one
        if minus.count(TRUE) < one.count(TRUE):
            return _negate(c, _multiply(c, minus, other))
    found: Bits = (FALSE,) * len(x)
    for i, bit in enumerate(x):
        if bit != FALSE:
            row = (FALSE,) * i + tuple(c.both(bit, each) for each in y[: len(y) - i])
            found = _add(c, found, row)
    return found


# ---- comparisons -----------------------------------------------------------------------------------------------------


def _equal(c: Circuit, x: Bits, y: Bits) -> int:
    return _and(c, [-c.odd(a, b) for a, b in zip(x, y, strict=True)])


def _less(c: Circuit, x: Bits, y: Bits) -> int:
    """Return whether x < y, unsigned: no carry leaves x + not y + 1."""
    carry = TRUE
    for a, b in zip(x, y, strict=True):
        carry = c.most(a, -b, carry)
    return -carry


def _signed(x: Bits) -> Bits:
    """Return bits whose unsigned order is the signed order of x."""
    return (*x[:-1], -x[-1])


# ---- choices and shifts ----------------------------------------------------------------------------------------------


def _choose(c: Circuit, condition: int, x: Bits, y: Bits) -> Bits:
    return tuple(c.choice(condition, a, b) for a, b in zip(x, y, strict=True))


def _shift(c: Circuit, x: Bits, by: Bits, fill: int, left: bool) -> Bits:
    """Return x shifted by as many places, those that become free filled; all of them from its width on."""
    width = len(x)
    for i, bit in enumerate(by):
        free = (fill,) * min(1 << i, width)
        kept = width - len(free)
        shifted = free + x[:kept] if left else x[width - kept :] + free
        x = _choose(c, bit, shifted, x)
    return x


# ---- divisions -------------------------------------------------------------------------------------------------------


def _divide(c: Circuit, x: Bits, y: Bits) -> tuple[Bits, Bits]:
    """Return quotient and remainder, unsigned, by long division; of y = 0 all ones and x, as the standard has it."""
    wide = (*y, FALSE)
    rest: Bits = (FALSE,) * len(wide)
    quotient = []
    for bit in reversed(x):
        rest = (bit, *rest[:-1])
        fits = -_less(c, rest, wide)
        rest = _choose(c, fits, _subtract(c, rest, wide), rest)
        quotient.append(fits)
    return tuple(reversed(quotient)), rest[:-1]


def _magnitude(c: Circuit, x: Bits) -> Bits:
    return _choose(c, x[-1], _negate(c, x), x)


def _signed_divide(c: Circuit, x: Bits, y: Bits) -> Bits:
    quotient, _ = _divide(c, _magnitude(c, x), _magnitude(c, y))
    return _choose(c, c.odd(x[-1], y[-1]), _negate(c, quotient), quotient)


def _signed_remainder(c: Circuit, x: Bits, y: Bits) -> Bits:
    """Return the remainder that has the sign of x."""
    _, rest = _divide(c, _magnitude(c, x), _magnitude(c, y))
    return _choose(c, x[-1], _negate(c, rest), rest)


def _signed_modulo(c: Circuit, x: Bits, y: Bits) -> Bits:
    """Return the remainder that has the sign of y."""
    rest = _signed_remainder(c, x, y)
    other_sign = c.both(-_equal(c, rest, (FALSE,) * len(x)), c.odd(x[-1], y[-1]))
    return _choose(c, other_sign, _add(c, rest, y), rest)


# ---- parts -----------------------------------------------------------------------------------------------------------


def _extract(x: Bits, high: int, low: int) -> Bits:
    if not 0 <= low <= high < len(x):
        raise ScriptError(f"bits {high} to {low} of {len(x)}")
    return x[low : high + 1]


def _rotate_left(x: Bits, by: int) -> Bits:
    by %= len(x)
    return x[len(x) - by :] + x[: len(x) - by]


def _repeat(x: Bits, times: int) -> Bits:
    if times < 1:
        raise ScriptError("a bit-vector repeated no time")
    return x * times


_ON_BOOLS: dict[str, Callable[[Circuit, Sequence[int]], int]] = {
    "and": _and,
    "or": _or,
    "=>": _implies,
    "xor": _xor,
    "not": _not,
}

_UNARY: dict[str, Callable[[Circuit, Bits], BlastedValue]] = {"bvnot": _invert, "bvneg": _negate}

_INDEXED: dict[str, Callable[..., Bits]] = {
    "extract": _extract,
    "zero_extend": lambda x, by: x + (FALSE,) * by,
    "sign_extend": lambda x, by: x + (x[-1],) * by,
    "repeat": _repeat,
    "rotate_left": _rotate_left,
    "rotate_right": lambda x, by: _rotate_left(x, -by),
}


def _each(function: Callable[[Circuit, int, int], int]) -> Callable[[Circuit, Bits, Bits], Bits]:
    """Return the operator that applies a function to each pair of bits."""
    return lambda c, x, y: tuple(function(c, a, b) for a, b in zip(x, y, strict=True))


_BINARY: dict[str, Callable[[Circuit, Bits, Bits], BlastedValue]] = {
    "concat": lambda c, x, y: y + x,
    "bvadd": _add,
    "bvsub": _subtract,
    "bvmul": _multiply,
    "bvudiv": lambda c, x, y: _divide(c, x, y)[0],
    "bvurem": lambda c, x, y: _divide(c, x, y)[1],
    "bvsdiv": _signed_divide,
    "bvsrem": _signed_remainder,
    "bvsmod": _signed_modulo,
    "bvshl": lambda c, x, y: _shift(c, x, y, FALSE, left=True),
    "bvlshr": lambda c, x, y: _shift(c, x, y, FALSE, left=False),
    "bvashr": lambda c, x, y: _shift(c, x, y, x[-1], left=False),
    "bvand": _each(Circuit.both),
    "bvor": _each(Circuit.either),
    "bvxor": _each(Circuit.odd),
    "bvnand": _each(lambda c, a, b: -c.both(a, b)),
    "bvnor": _each(lambda c, a, b: -c.either(a, b)),
    "bvxnor": _each(lambda c, a, b: -c.odd(a, b)),
    "bvcomp": lambda c, x, y: (_equal(c, x, y),),
    "bvult": _less,
    "bvule": lambda c, x, y: -_less(c, y, x),
    "bvugt": lambda c, x, y: _less(c, y, x),
    "bvuge": lambda c, x, y: -_less(c, x, y),
    "bvslt": lambda c, x, y: _less(c, _signed(x), _signed(y)),
    "bvsle": lambda c, x, y: -_less(c, _signed(y), _signed(x)),
    "bvsgt": lambda c, x, y: _less(c, _signed(y), _signed(x)),
    "bvsge": lambda c, x, y: -_less(c, _signed(x), _signed(y)),
}
