"""Why both encodings make the same of single lanes in the instructions of Apple AMX beside fma, for all codes.

What is made of an fma is proved with what that computes left open: of it is assumed only that of the same operands both
encodings make the same code, which `alu` proves (docs/proofs.md, 2, the rule *instance*).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import z3

from mmaformal.apple import tables
from mmaformal.cases.encodings import SAMPLES, sample_codes
from mmaformal.encodings.amx import executable as executable_amx
from mmaformal.encodings.amx import smt as smt_amx
from mmaformal.encodings.amx_lanes import (
    IEEE_BF16,
    SKIPS,
    Accumulation,
    FloatKind,
    Reduction,
    executable,
    smt,
)
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.formats import Format
from mmaformal.lanes import BITS, INT64, Tracer
from mmaformal.proof.encoding_links import link_code
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, Conversion
from mmaformal.studies.amx.alu import skip_claims

ALL = (IEEE_FP16, IEEE_BF16, IEEE_FP32, IEEE_FP64)

_ASSUMED = "elements of the same operands become the same codes"


class _Inputs:
    """Codes that both encodings read."""

    def __init__(self, **bits: int | Format) -> None:
        self.tracer, rng = Tracer(), np.random.default_rng(0)
        self.codes: list[z3.BitVecRef] = []
        self.lanes: list[Lane] = []
        for name, width in bits.items():
            size = width if isinstance(width, int) else width.storage_bits
            values = (
                sample_codes(width, rng)
                if isinstance(width, Format)
                else rng.integers(*INT64, SAMPLES)
                if size == BITS
                else rng.integers(0, 1 << size, SAMPLES)
            )
            self.codes.append(z3.BitVec(name, size))
            self.lanes.append(self.tracer.input(self.codes[-1], values))

    def links(self, argument: Argument) -> list[Link]:
        """The claims that lanes hold the codes."""
        links = [link_code(lane, code) for lane, code in zip(self.lanes, self.codes, strict=True)]
        for link, code in zip(links, self.codes, strict=True):
            argument.derive("inputs", "both encodings read the same", [link], inputs=[code])
        return links


def _argue(inputs: _Inputs, mine: Lane, other: z3.BitVecRef, statement: str) -> Argument:
    """The argument that a lane holds a code, from the inputs at once."""
    argument = Argument(inputs.tracer)
    result = link_code(mine, other)
    argument.derive("lanes", "the same is made of the same codes", [result], inputs.links(argument))
    argument.conclude(statement, result)
    return argument


# ---- integers --------------------------------------------------------------------------------------------------------


def argue_accumulated(on: Accumulation) -> Argument:
    """The argument for z ± (term >> s): the product first."""
    inputs = _Inputs(x=on.x_bits, y=on.y_bits, z=on.z_bits, shift=5)
    mine, other = executable.accumulated(on, *inputs.lanes), smt.accumulated(on, *inputs.codes)
    argument = Argument(inputs.tracer)
    read = inputs.links(argument)
    given = list(read)
    if on.term == "xy":
        sizes = [number(*pair) for pair in zip(mine[:2], other[:2], strict=True)]
        for link, code in zip(sizes, read, strict=False):
            argument.derive("lanes", "a code's magnitude is the same", [link], [code])
        product = number(mine.product, other.product)
        argument.derive("multiply", "the products are equal", [product], sizes)
        given = [product, *read]
    result = link_code(mine.result, other.result)
    argument.derive("lanes", "the same is made of the same codes", [result], given)
    argument.conclude(f"both encodings accumulate alike: {_told(on)}", result)
    return argument


def argue_reduced(on: Reduction) -> Argument:
    """The argument for a shift, saturating or not."""
    inputs = _Inputs(z=on.bits, shift=5)
    mine, other = executable.reduced(on, *inputs.lanes), smt.reduced(on, *inputs.codes)
    return _argue(inputs, mine, other, f"both encodings reduce alike: {_told(on)}")


def _told(on: Accumulation | Reduction) -> str:
    return ", ".join(f"{name}={value}" for name, value in on._asdict().items())


# ---- floating point --------------------------------------------------------------------------------------------------


def argue_exceeds(fmt: Format) -> Argument:
    """The argument for x > y, by which genlut searches its table."""
    inputs = _Inputs(x=fmt, y=fmt)
    one, zero = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
    mine = executable.exceeds(inputs.lanes[0], inputs.lanes[1], fmt).select(1, 0)
    other = z3.If(smt.exceeds(inputs.codes[0], inputs.codes[1], fmt), one, zero)
    return _argue(inputs, mine, other, f"codes of {fmt} exceed each other alike in both encodings")


def argue_chosen(kind: FloatKind, rho: Conversion) -> Argument:
    """The argument for what is no fma: the smaller, the larger, the positive part."""
    inputs = _Inputs(x=rho.format, y=rho.format, z=rho.format)
    (x, y, z), (u, v, w) = inputs.codes, inputs.lanes
    mine = executable.floating(kind, u, v, w, rho)
    return _argue(inputs, mine, smt.floating(kind, x, y, z, rho), f"{kind} of {rho.format} is the same code")


def fused(kind: FloatKind, rho: Conversion) -> Argument:
    """The argument for an operation that is an fma without something, what fma computes left open."""
    inputs, open_ = _Inputs(x=rho.format, y=rho.format, z=rho.format), _OpenFma()
    (x, y, z), (u, v, w) = inputs.codes, inputs.lanes
    mine = executable.floating(kind, u, v, w, rho, open_.executable)
    other = smt.floating(kind, x, y, z, rho, open_.smt)
    return open_.argue(inputs, mine, other, f"{kind} of {rho.format} is the same code in both encodings")


def argue_subtracted(rho: Conversion) -> Argument:
    """The argument for an element of fms, what fma computes left open."""
    inputs, open_ = _Inputs(x=rho.format, y=rho.format, z=rho.format, operand=BITS), _OpenFma()
    (x, y, z, operand), (u, v, w, operand_lane) = inputs.codes, inputs.lanes
    on = executable_amx.fields(operand_lane)
    skip = (on.skip_x, on.skip_y, on.skip_z)
    mine = executable.subtracted(rho, skip, u, v, w, open_.executable)
    other = smt.subtracted(rho, smt_amx.skips(operand), x, y, z, open_.smt)
    statement = f"an element of {rho.format} becomes the same code by fms in both encodings"
    return open_.argue(inputs, mine, other, statement, skip_claims(on, smt_amx.skips(operand)))


class _Open(Argument):
    """A theorem in which the connectives of what is assumed count."""

    connectives = True


class _OpenFma:
    """An fma whose results are constants, with the operands that it has in each encoding."""

    def __init__(self) -> None:
        self.operands: list[Lane] = []
        self.lane: Lane = None
        self.terms: list[z3.BitVecRef] = []
        self.code: z3.BitVecRef | None = None

    def executable(self, rho: Conversion, skip: object, x: Lane, y: Lane, z: Lane) -> Lane:
        self.operands = [x, y, z]
        code = z3.BitVec("executable_fma", rho.format.storage_bits)
        self.lane = x.tracer.input(code, sample_codes(rho.format, np.random.default_rng(1)))
        return self.lane

    def smt(
        self, rho: Conversion, skip: z3.BitVecRef, x: z3.BitVecRef, y: z3.BitVecRef, z: z3.BitVecRef
    ) -> z3.BitVecRef:
        self.terms, self.code = [x, y, z], z3.BitVec("smt_fma", rho.format.storage_bits)
        return self.code

    def argue(
        self, inputs: _Inputs, mine: Lane, other: z3.BitVecRef, statement: str, skip: Link | None = None
    ) -> Argument:
        """The argument, by the links of the fma's operands; what is skipped is constant if no link tells it."""
        argument = _Open(inputs.tracer)
        read = inputs.links(argument)
        if skip is not None:
            argument.derive("operand", "the same is skipped", [skip], [read[-1]])
            read = [*read[:-1], skip]
        given = [link_code(*pair) for pair in zip(self.operands, self.terms, strict=True)]
        for link in given:
            argument.derive("operand", "an operand of the fma is the same", [link], read)
        code, result = link_code(self.lane, self.code), link_code(mine, other)
        known = [*given, *([skip] if skip is not None else [])]
        said = z3.Implies(z3.And([link.said for link in known]), code.said)
        argument.assume(_ASSUMED, Link(said))
        argument.derive("select", "the code, or −0, is the same", [result], [code, *known])
        whole = [
            claim
            for each in argument.inferences
            if not each.assumed
            for claim in (*each.premises, *each.claims)
        ]
        argument.conclude(statement, result.said, whole)
        return argument


# ---- which instruction has which -------------------------------------------------------------------------------------


def _integers(name: str) -> Iterator[Accumulation | Reduction]:
    """Every operation of integers that an instruction has, whatever the operand and the generation."""
    if name in ("extrh", "extrv"):
        for size, wide, stride in tables.EXTRACT_WIDTHS.values():
            yield from _reductions(8 * wide, 8 * size, 8 * size) if stride else ()
        return
    if name == "mac16":
        for x_bits in (8, 16):
            for y_bits in (8, 16):
                for z_bits in (16, 32):
                    for with_z in (True, False):
                        for term in ("xy", "x", "y", "0"):
                            yield Accumulation(
                                term,
                                x_bits,
                                y_bits,
                                z_bits,
                                True,
                                True,
                                with_z=with_z,
                            )
        return
    for bits, saturated in (tables.VECINT_REDUCED if name == "vecint" else tables.MATINT_REDUCED).values():
        yield from _reductions(bits, bits, saturated)
    yield from _reductions(16, 16, 16)
    for alu in tables.VECINT_MODES if name == "vecint" else tables.MATINT_MODES:
        for x, y, z in {
            tables.integer_widths(name, alu, width, gen) for width in range(16) for gen in (1, 3)
        }:
            for signs in ((False, False), (False, True), (True, False), (True, True)):
                mode = tables.INTEGER_MODES[alu]
                yield mode._replace(x_bits=x, y_bits=y, z_bits=z, x_signed=signs[0], y_signed=signs[1])


def _reductions(bits: int, out: int, saturated: int) -> Iterator[Reduction]:
    for n in range(16):
        signed, signed_range, rounding, saturate = (bool(n >> place & 1) for place in range(4))
        yield Reduction(bits, out, saturated, signed, signed_range, rounding, saturate)


def conversions_of(name: str) -> tuple[Conversion, ...]:
    """ρ of the elements of which an instruction's fma, that its lanes are proved with left open, is to be proved."""
    fms = {"fms16": (IEEE_FP16, IEEE_FP32), "fms32": (IEEE_FP32,), "fms64": (IEEE_FP64,)}
    return ALL if name in ("vecfp", "matfp") else fms.get(name, ())


def arguments(name: str) -> dict[str, Callable[[], Argument]]:
    """Return what is to be proved of an instruction's lanes, each once, by its name."""
    if name.startswith("fms"):
        return {str(rho.format): lambda rho=rho: argue_subtracted(rho) for rho in conversions_of(name)}  # type: ignore[misc]
    if name in ("vecfp", "matfp"):
        kinds = list(tables.FLOAT_MODES.values())[: 3 if name == "matfp" else None]
        return {
            f"{kind} of {rho.format}": lambda kind=kind, rho=rho: (fused if kind in SKIPS else argue_chosen)(
                kind, rho
            )  # type: ignore[misc]
            for kind in kinds
            for rho in ALL
        }
    if name == "genlut":
        return {str(rho.format): lambda rho=rho: argue_exceeds(rho.format) for rho in ALL}  # type: ignore[misc]
    return {
        _told(on): lambda on=on: argue_accumulated(on) if isinstance(on, Accumulation) else argue_reduced(on)  # type: ignore[misc]
        for on in _integers(name)
    }
