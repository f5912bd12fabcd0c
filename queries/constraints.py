"""Constraints on the inputs that a query may use: `find_difference(…, where=[finite(), magnitude(2**-8, 2**8)])`.

Each constraint also reads from text, for the command line: `finite`, `gemm`, `normal`, `nonzero`,
`magnitude 0x1p-8 256`, `c=0x0`, `a3=0x3c00`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import z3

from mmaformal.cases.codes import exponent_field, is_finite, is_zero, magnitude_field
from mmaformal.cases.inputs import Inputs
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, exact_number
from mmaformal.spec import DotAdd


class Constraint:
    """Something that must hold of the inputs, and of the results if it says so.

    What it says of inputs may be anything: which cases are alike under it, a search proves.  Single codes that are
    given are to be said by `pins`, and that no product is zero by `forbids_zero`, on which searches rely.
    """

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        return []

    def on_result(self, spec: DotAdd, result: z3.BitVecRef) -> list[z3.BoolRef]:
        return []

    def pins(self, spec: DotAdd) -> Mapping[str, int]:
        """Inputs with a given value: name (`a0`, `b3`, `c`) → code."""
        return {}

    @property
    def forbids_zero(self) -> bool:
        """Whether every product must have two nonzero factors."""
        return False


def _operands(spec: DotAdd, inputs: Inputs) -> list[tuple[z3.BitVecRef, Format]]:
    return [
        *((x, spec.a_format) for x in inputs.a),
        *((x, spec.b_format) for x in inputs.b),
        (inputs.c, spec.c_format),
    ]


@dataclass(frozen=True)
class finite(Constraint):  # noqa: N801 - written as a word in where=[…]
    """No input and no result is an infinity or a NaN."""

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        scales = [(x, spec.scale_format) for x in (*inputs.scale_a, *inputs.scale_b)]
        return [is_finite(x, fmt) for x, fmt in _operands(spec, inputs) + scales if fmt is not None]

    def on_result(self, spec: DotAdd, result: z3.BitVecRef) -> list[z3.BoolRef]:
        return [is_finite(result, spec.d_format)]

    def __str__(self) -> str:
        return "finite inputs and results"


@dataclass(frozen=True)
class gemm(finite):  # noqa: N801
    """The inputs of the first instruction of a matrix product without C: c = +0, inputs and results are finite."""

    def pins(self, spec: DotAdd) -> Mapping[str, int]:
        return {"c": 0}

    def __str__(self) -> str:
        return "c = +0, finite inputs and results"


@dataclass(frozen=True)
class normal(Constraint):  # noqa: N801
    """Every input is a normal number or zero: no subnormals, infinities, NaNs.  (`nonzero()` excludes the zeros.)"""

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        return [
            z3.And(is_finite(x, fmt), z3.Or(exponent_field(x, fmt) != 0, is_zero(x, fmt)))
            for x, fmt in _operands(spec, inputs)
        ]

    def __str__(self) -> str:
        return "normal numbers or zeros"


@dataclass(frozen=True)
class nonzero(Constraint):  # noqa: N801
    """No input is zero."""

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        return [z3.Not(is_zero(x, fmt)) for x, fmt in _operands(spec, inputs)]

    @property
    def forbids_zero(self) -> bool:
        return True

    def __str__(self) -> str:
        return "no zeros"


@dataclass(frozen=True)
class magnitude(Constraint):  # noqa: N801
    """Every input named in `operands` is zero or has low ≤ |x| ≤ high.

    Raises ValueError unless 0 ≤ low ≤ high and `operands` is made of the letters a, b, c.
    """

    low: float | Fraction
    high: float | Fraction
    operands: str = "abc"

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"a magnitude range needs 0 ≤ low ≤ high, not {self.low} and {self.high}")
        if not self.operands or set(self.operands) - set("abc"):
            raise ValueError(f"operands are some of a, b, c, not {self.operands!r}")

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        chosen: list[tuple[z3.BitVecRef, Format]] = []
        if "a" in self.operands:
            chosen += [(x, spec.a_format) for x in inputs.a]
        if "b" in self.operands:
            chosen += [(x, spec.b_format) for x in inputs.b]
        if "c" in self.operands:
            chosen.append((inputs.c, spec.c_format))
        return [z3.Or(is_zero(x, fmt), self._within(x, fmt)) for x, fmt in chosen]

    def _within(self, x: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
        codes = finite_magnitudes_within(fmt, self.low, self.high)
        if not codes:
            return z3.BoolVal(False)
        field = magnitude_field(x, fmt)
        return z3.And(is_finite(x, fmt), z3.UGE(field, codes[0]), z3.ULE(field, codes[-1]))

    def __str__(self) -> str:
        return f"{self.low} ≤ |{', '.join(self.operands)}| ≤ {self.high} or zero"


def finite_magnitudes_within(fmt: Format, low: float | Fraction, high: float | Fraction) -> range:
    """The magnitude fields of the finite codes with low ≤ |x| ≤ high, which are consecutive.

    Comparing a Fraction with a float is exact, and an infinite `high` is above every finite number.
    """

    def value(field: int) -> Fraction | None:
        code = field << fmt.ignored_low_bits
        return fmt.value(code) if fmt.is_finite(code) else None

    end = 1 << (fmt.fraction_bits + fmt.exponent_bits)

    def first(above: float | Fraction, strictly: bool) -> int:
        start, stop = 0, end
        while start < stop:
            middle = (start + stop) // 2
            at = value(middle)
            if at is None or at > above or (at == above and not strictly):
                stop = middle
            else:
                start = middle + 1
        return start

    return range(first(low, strictly=False), first(high, strictly=True))


@dataclass(frozen=True, repr=False)
class fixed(Constraint, ShortRepr):  # noqa: N801
    """Given inputs have given codes: `fixed(c=0x0, a={0: 0x3C00})`."""

    a: Mapping[int, int] | None = None
    b: Mapping[int, int] | None = None
    c: int | None = None

    def pins(self, spec: DotAdd) -> Mapping[str, int]:
        """Raises ValueError for positions or codes that the instruction does not have."""
        pins = {}
        for side, codes, fmt in (("a", self.a, spec.a_format), ("b", self.b, spec.b_format)):
            for position, code in (codes or {}).items():
                if not 0 <= position < spec.k:
                    raise ValueError(f"there is no {side}[{position}]: positions are 0 to {spec.k - 1}")
                fmt.fields(code)
                pins[f"{side}{position}"] = code
        if self.c is not None:
            spec.c_format.fields(self.c)
            pins["c"] = self.c
        return pins

    def __str__(self) -> str:
        parts = [
            f"{side}[{position}] = {code:#x}"
            for side, codes in (("a", self.a), ("b", self.b))
            for position, code in (codes or {}).items()
        ]
        return ", ".join(parts + ([f"c = {self.c:#x}"] if self.c is not None else []))


def pins_of(spec: DotAdd, constraints: Iterable[Constraint]) -> dict[str, int]:
    """The inputs that constraints give a code, by name.  Raises ValueError where two give one another code."""
    pins: dict[str, int] = {}
    for constraint in constraints:
        for name, code in constraint.pins(spec).items():
            if pins.setdefault(name, code) != code:
                raise ValueError(f"{name} is fixed to {pins[name]:#x} and to {code:#x}")
    return pins


def parse_constraint(text: str) -> Constraint:
    """A constraint from its text (see the module).  Raises ValueError with what it could have been."""
    words = text.split()
    plain = {"finite": finite, "gemm": gemm, "normal": normal, "nonzero": nonzero}
    if len(words) == 1 and words[0] in plain:
        return plain[words[0]]()
    if words and words[0] == "magnitude" and len(words) in (3, 4):
        try:
            return magnitude(exact_number(words[1]), exact_number(words[2]), *words[3:])
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
    if match := re.fullmatch(r"(?:c|([ab])(?:(\d+)|\[(\d+)\]))\s*=\s*(0x[0-9a-fA-F]+|\d+)", text.strip()):
        side, position, code = match[1], match[2] or match[3], int(match[4], 16)
        if code and not match[4].startswith("0x"):
            raise ValueError(f"{text!r}: a code is hexadecimal, as 0x{match[4]}; {match[4]} may be a number")
        if side is None:
            return fixed(c=code)
        return fixed(a={int(position): code}) if side == "a" else fixed(b={int(position): code})
    raise ValueError(
        f"{text!r} is no constraint; there are: finite, gemm, normal, nonzero, "
        "'magnitude LOW HIGH [abc]', 'c=0xCODE', 'a3=0xCODE', 'b3=0xCODE'"
    )


def as_constraints(where: Constraint | str | Iterable[Constraint | str]) -> tuple[Constraint, ...]:
    """One constraint or several, as objects or text.  Raises TypeError for others, ValueError as `parse_constraint`."""
    if isinstance(where, (Constraint, str)) or not isinstance(where, Iterable):
        where = (where,)
    constraints = tuple(parse_constraint(w) if isinstance(w, str) else w for w in where)
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise TypeError(f"{constraint!r} is no constraint: write finite(), 'finite', magnitude(1, 2), …")
    return constraints
