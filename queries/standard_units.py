"""RISC-V's standard as a set of units: which units it allows, what they give, and all results of one input.

A unit conforms if each of its results is that of some unit of the set, not of the same for every input.  The set has
too many units to be listed; of one input the results are (`analysis/riscv_freedom.py`, `analysis/riscv_fp32.py`).
Solvers are asked about some *members*, as terms: what no member gives may be allowed all the same, and is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

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
from mmaformal.encodings.wfma import Wfma
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


def _odd_step(spec: DotAdd, p: Parameters) -> str:
    """Returns what a step is, in the standard's words, where it is one that it allows of bf16 and fp8; else nothing."""
    if isinstance(p, Rvbna) and p == Rvbna(p.n, tuple(EXPRESSIONS)):
        return "the sum of a set by RVBNA, then c"
    if isinstance(p, Lowered):
        own = bulk_normalised(p.L, spec.a_format, spec.b_format)
        wider = p == replace(own, F=p.F) and p.F > own.F  # the set's own is proved to be the text
        return (
            f"the sum of a set by RVBNA in {p.F - own.F} more bits, converted to odd, then c" if wider else ""
        )
    if isinstance(p, Esda) and p == Esda(p.L, p.dot, p.rho, False, NanRule.DEFAULT):
        return "the exact sum of products, converted to odd, then c" if _are_odd((p.dot, p.rho)) else ""
    if isinstance(p, Efda) and p.minus_zero and p.rho.signed_zero:
        return ""
    plus = isinstance(p, Efda) or not any(x.signed_zero for x in _roundings(p))
    return _ieee_step(p) if plus and _are_odd(_roundings(p)) else ""


def _nearest_step(_: DotAdd, p: Parameters) -> str:
    """Returns what a step is, in the standard's words, where it is one that it allows of fp32; else nothing."""
    if isinstance(p, Efda) and not p.minus_zero:
        return ""
    return _ieee_step(p) if set(_roundings(p)) == {IEEE_FP32} else ""


def _ieee_step(p: Parameters) -> str:
    """Returns what a step is, in words, where it is an operation of IEEE 754, or several, but for their roundings."""
    if "nan" in p and p["nan"] not in (NanRule.ANY, NanRule.DEFAULT):
        return ""
    if isinstance(p, Muladd):
        return "a product, converted, then added to c"
    if isinstance(p, Sfma | Wfma) or (isinstance(p, Fma) and p == Fma(p.rho, p.nan)):
        return "an exact product, added to c"
    if isinstance(p, Efda) and not p.flush_inputs:
        return "the exact sum of products and c, converted"
    if isinstance(p, Rnd2) and not p.negate_pair:
        return "two exact products, added, then c"
    if isinstance(p, AdderTree):
        return f"products, converted, and c, added as {p.order}"
    return ""


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
    """What the standard allows of dot products of some types."""

    def __init__(self, spec: DotAdd) -> None:
        """Raises ValueError where the standard has no dot product of these types, or of as many products."""
        self.spec, self.is_fp32 = spec, riscv_fp32.is_of_standard(spec)
        if not (self.is_fp32 or is_of_standard(spec)):
            raise ValueError(
                f"the standard has no dot product of {spec.k} products, {spec.types}: it has bf16, fp8, fp32, into fp32"
            )

    # ---- one input --------------------------------------------------------------------------------------------------

    def allowed(self, codes: Codes) -> set[int]:
        """Returns the results that are allowed of an input.  Raises TooManyError."""
        if self.is_fp32:
            return riscv_fp32.allowed(codes.a, codes.b, codes.c, _LISTED)
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
        return (_nearest_step if self.is_fp32 else _odd_step)(spec, spec.parameters)

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
