"""RISC-V's standard as a set of units: which units it allows, what they give, and all results of one input.

A unit conforms if each of its results is that of some unit of the set, not of the same for every input.  The set has
too many units to be listed; of one input the results are (`analysis/riscv_freedom.py`, `analysis/riscv_fp32.py`).
Solvers are asked about some *members*, as terms: what no member gives may be allowed all the same, and is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TypeAlias

import z3

from mmaformal.analysis import riscv_fp32
from mmaformal.analysis.riscv_freedom import NAN, TooManyError, allowed, is_of_standard
from mmaformal.architectures.riscv import bulk_normalised
from mmaformal.cases.codes import is_nan
from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.cases.questions import Places
from mmaformal.encodings import smt
from mmaformal.encodings.adder_tree import AdderTree
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.esda import Esda
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rvbna import EXPRESSIONS, Rvbna
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import fp32
from mmaformal.rounding import IEEE_FP32, Conversion, NanRule, Rounding
from mmaformal.shown_stages import code_text
from mmaformal.spec import DotAdd, Parameters

#: Results on the way that are listed of an input; where there are more, it is not known whether a result is allowed.
_LISTED = 1_000

#: Products that are taken in every order, those whose exact sum is a member asked about, and results that are named.
_ORDERED, _EXACT, _NAMED = 3, 2, 4

_ODD = Conversion.named("RO-FP32")


def member(spec: DotAdd, size: int) -> DotAdd:
    """Returns the conforming unit of the corrected text with sets of `size` products, added to c one after another."""
    return spec.replace(parameters=Rvbna(size, tuple(EXPRESSIONS)))


def _text(spec: DotAdd) -> str:
    p = spec.parameters_as(Rvbna)
    return "the sum of a set by RVBNA, then c" if p == Rvbna(p.n, tuple(EXPRESSIONS)) else ""


def _set_in_more_bits(spec: DotAdd) -> str:
    p = spec.parameters_as(Lowered)
    own = bulk_normalised(p.L, spec.a_format, spec.b_format)
    wider = p == replace(own, F=p.F) and p.F > own.F  # the set's own is proved to be the text
    return f"the sum of a set by RVBNA in {p.F - own.F} more bits, converted to odd, then c" if wider else ""


def _exact_then_c(spec: DotAdd) -> str:
    p = spec.parameters_as(Esda)
    right = p == Esda(p.L, p.dot, p.rho, False, NanRule.DEFAULT) and _are_odd((p.dot, p.rho))
    return "the exact sum of products, converted to odd, then c" if right else ""


def _fma(spec: DotAdd) -> str:
    p = spec.parameters_as(Fma)
    return _ONE if p == Fma(p.rho, p.nan) else ""


def _exact(spec: DotAdd) -> str:
    return "" if spec.parameters_as(Efda).flush_inputs else "the exact sum of products and c, converted"


def _pair(spec: DotAdd) -> str:
    return "" if spec.parameters_as(Rnd2).negate_pair else "two exact products, added, then c"


def _tree(spec: DotAdd) -> str:
    return f"products, converted, and c, added as {spec.parameters_as(AdderTree).order}"


_ONE = "an exact product, added to c"

StepText: TypeAlias = Callable[
    [DotAdd], str
]  #: what a step is, in words; nothing where it is none that is meant

#: Steps of RVBNA, and those that add c last, by algorithm; roundings are among what they look at.
_OF_SETS: dict[str, StepText] = {"rvbna": _text, "lowered": _set_in_more_bits, "esda": _exact_then_c}

#: Steps of IEEE 754's operations, or several, by algorithm; how they round is not looked at.
_OF_OPERATIONS: dict[str, StepText] = {
    "muladd": lambda _: "a product, converted, then added to c",
    "sfma": lambda _: _ONE,
    "wfma": lambda _: _ONE,
    "fma": _fma,
    "efda": _exact,
    "rnd2": _pair,
    "adder_tree": _tree,
}


def _odd_step(spec: DotAdd) -> str:
    """Return what a step is, in the standard's words, where it is one that it allows of bf16 and fp8; else nothing."""
    p = spec.parameters
    if p.algorithm in _OF_SETS:
        return _OF_SETS[p.algorithm](spec)
    return _operations(spec) if _are_odd(_roundings(p)) and not _keeps_minus_zero(p) else ""


def _nearest_step(spec: DotAdd) -> str:
    """Return what a step is, in the standard's words, where it is one that it allows of fp32; else nothing."""
    p = spec.parameters
    return _operations(spec) if set(_roundings(p)) == {IEEE_FP32} and _keeps_minus_zero(p) else ""


def _operations(spec: DotAdd) -> str:
    p = spec.parameters
    known = "nan" not in p or p["nan"] in (NanRule.ANY, NanRule.DEFAULT)
    step = _OF_OPERATIONS.get(p.algorithm)
    return step(spec) if known and step is not None else ""


def _keeps_minus_zero(p: Parameters) -> bool:
    """Whether a sum of −0 and −0 is −0."""
    return any(x.signed_zero for x in _roundings(p)) and ("minus_zero" not in p or bool(p["minus_zero"]))


def _roundings(p: Parameters) -> list[Conversion]:
    values = [p[name] for name in p]
    return [
        x
        for each in values
        for x in (each if isinstance(each, tuple) else (each,))
        if isinstance(x, Conversion)
    ]


def _are_odd(roundings: Iterable[Conversion]) -> bool:
    """Whether roundings are the standard's, to odd, in fp32."""
    return {(x.rounding, x.format, x.fraction_bits) for x in roundings} == {(Rounding.RO, fp32, 23)}


class Standard:
    """The results, and the units, that the standard allows of dot products of some types."""

    def __init__(self, spec: DotAdd) -> None:
        """Raises ValueError where the standard has no dot product of these types, or of as many products."""
        self.spec, self.is_fp32 = spec, riscv_fp32.is_fp32_of_standard(spec)
        if not (self.is_fp32 or is_of_standard(spec)):
            raise ValueError(
                f"the standard has no dot product of {spec.k} products, {spec.types}: it has bf16, fp8, fp32, into fp32"
            )

    # ---- one input --------------------------------------------------------------------------------------------------

    def allowed(self, codes: Codes) -> set[int]:
        """Returns the results that are allowed of an input.  Raises TooManyError."""
        if self.is_fp32:
            return riscv_fp32.allowed_fp32(codes.a, codes.b, codes.c, _LISTED)
        return allowed(self.spec, codes.a, codes.b, codes.c, _LISTED)

    def is_outside(self, codes: Codes, result: int, any_nan: bool) -> bool:
        """Whether a result is not allowed; False where that is not known.  `any_nan`: any NaN counts as right."""
        if any_nan and fp32.is_nan(result):
            result = NAN
        try:
            return result not in self.allowed(codes)
        except TooManyError:
            return False

    def nearest(self, codes: Codes, result: int) -> str:
        """Returns the allowed results nearest to one, in words."""
        right = sorted(self.allowed(codes), key=lambda code: (abs(_place(code) - _place(result)), code))
        few = ", ".join(code_text(code, fp32) for code in right[:_NAMED])
        more = f", nearest first, and {len(right) - _NAMED} more" if len(right) > _NAMED else ""
        return f"the standard allows {few}{more}"

    # ---- members ----------------------------------------------------------------------------------------------------

    def step_of(self, spec: DotAdd) -> str:
        """Returns what a unit's step is, in the standard's words, where its steps are ones that this allows."""
        if spec.plain != spec:
            return ""
        return (_nearest_step if self.is_fp32 else _odd_step)(spec)

    def models(self) -> Iterator[DotAdd]:
        """Yields members as the model has them, of which `members` has the text: sets of 1, 2, 4, … products."""
        spec = self.spec
        for size in () if self.is_fp32 else (1 << i for i in range(spec.k.bit_length())):
            yield spec.replace(parameters=bulk_normalised(size, spec.a_format, spec.b_format))

    def members(self) -> Iterator[DotAdd]:
        """Yields members that are asked about for all inputs."""
        spec = self.spec
        if self.is_fp32:
            yield spec.replace(parameters=Muladd(IEEE_FP32, IEEE_FP32))
            yield spec.replace(parameters=Sfma(IEEE_FP32, NanRule.DEFAULT))
            return
        yield from (member(spec, 1 << i) for i in range(spec.k.bit_length()))
        if spec.k <= _EXACT:
            yield self.exact(spec.k)

    def exact(self, k: int) -> DotAdd:
        """Returns the member that adds k exact products and c exactly."""
        return self.spec.replace(k=k, parameters=Efda(k, _ODD, nan=NanRule.DEFAULT))

    def gives_none(
        self, mine: z3.BitVecRef, inputs: Inputs, active: Places | None, any_nan: bool
    ) -> list[z3.BoolRef]:
        """Returns the claims that a result is that of none of the members (`results`)."""
        right = is_nan(mine, fp32) if any_nan else mine == NAN
        return [z3.Not(z3.If(is_nan(d, fp32), right, mine == d)) for d in self.results(inputs, active)]

    def results(self, inputs: Inputs, active: Places | None) -> list[z3.BitVecRef]:
        """Returns results of members; of inputs whose products are zeros but at `active`, of more members.

        A product that is zero changes no sum of bf16's or fp8's: it is left out, or where it is in a set by itself.
        """
        spec, whole = self.spec, (inputs.a, inputs.b, inputs.c)
        if active is None or self.is_fp32:
            return [smt.dot_add(of, *whole).result for of in self.members()]
        count, found = max(len(active), 1), list[z3.BitVecRef]()
        places = active or (0,)
        orders = list(permutations(places)) if count <= _ORDERED else [places]
        chain = member(spec, 1).replace(k=count)
        found += [_of(chain, inputs, order) for order in orders]
        if count <= _EXACT:
            found.append(_of(self.exact(count), inputs, places))
        if count > 1:
            found.append(smt.dot_add(member(spec, spec.k), *whole).result)
        return found


def _of(spec: DotAdd, inputs: Inputs, places: Sequence[int]) -> z3.BitVecRef:
    a, b = ([side[k] for k in places] for side in (inputs.a, inputs.b))
    return smt.dot_add(spec, a, b, inputs.c).result


def _place(code: int) -> int:
    """Returns where a code stands in the order of numbers."""
    magnitude = code & ~fp32.sign_mask
    return -magnitude if code & fp32.sign_mask else magnitude
