"""Links between the interfaces of single stages in the two encodings (`simulation`, `encodings/*/proofs/`).

No statement here is trusted: a wrong or missing one leaves a lemma that does not hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import z3

from mmaformal.cases.encodings import StepT, Traces
from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.executable import ieee as executable_ieee
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.encodings.smt import ieee
from mmaformal.formats import Format
from mmaformal.lanes import BITS, SymbolicLane, fit
from mmaformal.proof.lemmas import Argument, Idle, Link, at_most, condition, number
from mmaformal.rounding import Conversion


class CodeLinks(NamedTuple):
    a: list[Link]
    b: list[Link]
    c: Link
    scale_a: list[Link]
    scale_b: list[Link]


class OperandLinks(NamedTuple):
    sign: Link
    exponent: Link
    significand: Link
    infinite: Link
    nan: Link


class TermLinks(NamedTuple):
    sign: Link
    exponent: Link
    significand: Link


def link_code(lane: SymbolicLane, code: z3.BitVecRef) -> Link:
    """Return the link that says that a lane holds a code; one of 64 bits as a signed number."""
    return number(lane, code, signed=code.size() == BITS)


@dataclass(frozen=True)
class InnerTraces(Traces[StepT]):
    """Traces of an instruction within those of a program over it, whose inputs and lanes they have.

    Its codes are made there: what links them was derived before.
    """

    links: CodeLinks


def link_inputs(argument: Argument, traces: Traces[AnyStep]) -> CodeLinks:
    """Both encodings read the same codes."""
    if isinstance(traces, InnerTraces):
        return traces.links

    def link(lane: SymbolicLane, code: z3.BitVecRef) -> Link:
        return argument.derive(
            "inputs", "both encodings read the same codes", [link_code(lane, code)], inputs=[code]
        )[0]

    def links(lanes: Sequence[SymbolicLane], codes: Sequence[z3.BitVecRef]) -> list[Link]:
        return [link(*pair) for pair in zip(lanes, codes, strict=True)]

    x, y = traces.lanes, traces.inputs
    return CodeLinks(
        links(x.a, y.a),
        links(x.b, y.b),
        link(x.c, y.c),
        links(x.scale_a, y.scale_a),
        links(x.scale_b, y.scale_b),
    )


def link_operand(
    argument: Argument,
    code: Link,
    executable: executable_blocks.Operand,
    smt: smt_blocks.Operand,
    fmt: Format,
    flushed: bool = False,
) -> OperandLinks:
    """An operand of `fmt`, from the link of the code it is decoded from; one that is `flushed` is not subnormal."""
    significand = number(executable.significand, smt.significand)
    if flushed:
        normal = z3.Or(smt.significand == 0, z3.UGE(smt.significand, 1 << fmt.fraction_bits))
        significand = replace(significand, claim=z3.And(significand.claim, normal))
    links = OperandLinks(
        number(executable.sign, smt.sign),
        number(executable.exponent, smt.field, low=-fmt.bias),
        significand,
        condition(executable.infinite, smt.infinite),
        condition(executable.nan, smt.nan),
    )
    text = f"{fmt} codes are {'flushed' if flushed else 'decoded'} alike"
    argument.derive("decode", text, links, [code])
    return links


def link_special(
    argument: Argument,
    given: Sequence[Link],
    executable: executable_blocks.Special,
    smt: smt_blocks.Special,
) -> Link:
    """The three flags in one link, which says too that at most one of them is set."""
    same = [condition(x, y) for x, y in zip(executable, smt, strict=True)]
    at_most_one = z3.And([z3.Not(z3.And(x, y)) for x, y in combinations(smt, 2)])
    link = Link(
        z3.And(at_most_one, *(each.claim for each in same)),
        tuple(smt),
        tuple(pair for each in same for pair in each.defined),
    )
    argument.derive("classify", "special values are the same, and at most one", [link], given)
    return link


def flags_and_zeros(operands: Sequence[OperandLinks]) -> list[Link]:
    """Return the links that special values depend on."""
    return [link for x in operands for link in (x.sign, x.significand, x.infinite, x.nan)]


def link_product(
    argument: Argument,
    operands: Sequence[OperandLinks],
    executable: executable_blocks.Term,
    smt: smt_blocks.Term,
    low: int,
    zero_exponent: int | None = None,
) -> TermLinks:
    """A product, of two factors and maybe scales; or c as a term.  Exponents are `low` + the SMT encoding's.

    If `zero_exponent` is not None, the executable gives it to a product that is zero, and the SMT encoding `low`.
    """
    exponent = number(executable.exponent, smt.exponent, low=low)
    if zero_exponent is not None:
        exponent = number(
            executable.exponent, smt.exponent, low=low, idle=(smt.significand == 0, zero_exponent)
        )
    links = TermLinks(
        number(executable.sign, smt.sign), exponent, number(executable.significand, smt.significand)
    )
    given = [link for x in operands for link in (x.sign, x.exponent, x.significand)]
    what = "products are the same" if len(operands) > 1 else "c is the same term"
    argument.derive("multiply", what, links, given)
    return links


def summands(total: z3.BitVecRef, count: int) -> list[z3.BitVecRef]:
    """The terms of a sum that was added up from the left; fewer if it was not."""
    terms: list[z3.BitVecRef] = []
    while len(terms) < count - 1 and z3.is_app_of(total, z3.Z3_OP_BADD) and total.num_args() == 2:
        terms.append(total.arg(1))
        total = total.arg(0)
    return [total, *reversed(terms)]


def link_addends(total: SymbolicLane, count: int) -> list[SymbolicLane]:
    """The lanes of a sum that was added up from the left; fewer if it was not."""
    lanes: list[SymbolicLane] = []
    while len(lanes) < count and total.op == "+":
        total, lane = total.operands  # type: ignore[assignment]
        lanes.append(lane)  # type: ignore[arg-type]
    return lanes[::-1]


def link_aligned(
    argument: Argument,
    terms: Sequence[TermLinks],
    e_max: Link,
    below: Sequence[Link],
    lanes: Sequence[SymbolicLane],
    aligned: Sequence[z3.BitVecRef],
    idle: Idle | None = None,
) -> list[Link]:
    """Each aligned lane is the two's complement summand of the SMT encoding's sum."""
    links = []
    all_idle = [] if idle is None else [idle.all]
    for k, (term, order, lane, summand) in enumerate(zip(terms, below, lanes, aligned, strict=True)):
        link = number(lane, summand, signed=True)
        given = [e_max, order, *term]
        if idle is not None:
            one = Link(z3.Implies(idle.all, idle.flags[k]), ())
            argument.derive("align", "if all are idle, each is", [one], inputs=idle.flags)
            given.append(one)
        argument.derive("align", "aligned terms are the same", [link], given, all_idle)
        links.append(link)
    return links


def rounded_number(executable: executable_blocks.Rounded, smt: smt_blocks.Rounded, rho: Conversion) -> Link:
    """The fields of the executable's number are `(exponent - least) · 2^p + significand`: the leading bit of a normal
    number adds one to the exponent field, and so does a carry of rounding."""
    p, least = rho.fraction_bits, rho.format.min_exponent
    bits = max(executable.significand.term.size(), executable.exponent.term.size() + p, smt.code.size()) + 2
    exponent, significand = executable.exponent.fit(bits), executable.significand.fit(bits)
    fields = ((exponent - least) << p) + significand
    sign = number(executable.sign, smt.sign)
    return Link(
        z3.And(
            fields == fit(smt.code, False, bits),
            exponent >= least,
            significand <= 2 << p,
            z3.Or(significand >= 1 << p, exponent == least),
            sign.claim,
        ),
        (executable.exponent.term, executable.significand.term, smt.sign),
        ((smt.code, fit(fields, True, smt.code.size())), *sign.defined),
        (executable.exponent, executable.significand, executable.sign),
    )


def round_and_encode(
    argument: Argument,
    total: Sequence[Link],
    special: Link | None,
    executable: executable_blocks.Rounded,
    smt: smt_blocks.Rounded,
    rho: Conversion,
    results: tuple[SymbolicLane, z3.BitVecRef],
) -> Link:
    """From the links of the sum and its exponent to that of the result, which a special value may decide."""
    rounded = rounded_number(executable, smt, rho)
    argument.derive("round", f"equal sums are rounded alike with {rho}", [rounded], total)
    result = link_code(*results)
    text = f"{rho}: equal numbers and specials give the same code"
    argument.derive("encode", text, [result], [rounded, *([] if special is None else [special])])
    return result


# ---- IEEE addition of two codes ---------------------------------------------------------------------------------


def signed_total(executable: executable_blocks.Sum, sign: z3.BitVecRef, magnitude: z3.BitVecRef) -> Link:
    """Return the link that says that the executable's total is a magnitude with a sign."""
    total = executable.total
    bits = max(total.term.size(), magnitude.size()) + 2
    wide = fit(magnitude, False, bits)
    right = z3.If(sign == 1, -wide, wide)
    return Link(
        total.fit(bits) == right,
        (sign, magnitude),
        ((total.term, fit(right, True, total.term.size())),),
        (total,),
    )


def link_addition(
    argument: Argument,
    codes: Sequence[Link],
    executable: executable_ieee.Addition,
    smt: ieee.Addition,
    rho: Conversion,
) -> Link:
    """The link of `x + y`, from those of the two codes, or of what they are made from.

    The SMT encoding sorts the two by magnitude, the executable aligns both to the larger exponent; the sum of the
    aligned magnitudes is the same, for there is the same number of bits below.
    """
    fmt = rho.format
    special = link_special(argument, codes, executable.special, smt.special)
    total = signed_total(executable.total, smt.big.sign, smt.total)
    unit = number(executable.total.unit, smt.big.field, low=-fmt.bias - fmt.fraction_bits - 3)
    signs = executable.x.sign, executable.y.sign
    zero_sign = executable_blocks.sum_sign(rho, *(sign.term for sign in signs))
    zero = Link(
        zero_sign == smt.zero_sign, (signs[0].term, signs[1].term), ((smt.zero_sign, zero_sign),), signs
    )
    argument.derive("align", f"{fmt}: the aligned operands have the same sum", [total, unit, zero], codes)
    return round_and_encode(
        argument,
        [total, unit, zero],
        special=special,
        executable=executable.rounded,
        smt=smt.rounded,
        rho=rho,
        results=(executable.result, smt.result),
    )


def least_excluded(total: z3.BitVecRef) -> Link:
    """Return the link that says that a two's complement sum is not the least number of its width, whose negation
    would not fit."""
    return Link(total != 1 << (total.size() - 1), (total,))


# ---- numbers of two limbs ---------------------------------------------------------------------------------------


def wide_number(executable: limbs.Wide, term: z3.BitVecRef, *, signed: bool = False, below: int = 0) -> Link:
    """Return the link that says that two limbs hold the number `term · 2^below`."""
    high, low = executable
    bits = max(high.term.size() + limbs.BITS, term.size() + below) + 2
    right = fit(term, signed, bits) << below
    low_part = fit(z3.Extract(limbs.BITS - 1, 0, right), False, low.term.size())
    high_part = fit(right >> limbs.BITS, True, high.term.size())
    return Link(
        z3.And((high.fit(bits) << limbs.BITS) + low.fit(bits) == right, low.fit(bits) >= 0),
        (term,),
        ((high.term, high_part), (low.term, low_part)),
        (high, low),
    )


def signed_wide(executable: limbs.Wide, sign: z3.BitVecRef, magnitude: z3.BitVecRef) -> Link:
    """Return the link that says that two limbs hold a magnitude with a sign."""
    high, _ = executable
    bits = max(high.term.size() + limbs.BITS, magnitude.size()) + 2
    wide = fit(magnitude, False, bits)
    link = wide_number(executable, z3.If(sign == 1, -wide, wide), signed=True)
    return Link(link.claim, (sign, magnitude), link.defined, link.lanes)


def long_product(
    argument: Argument,
    factors: tuple[Link, Link],
    executable: limbs.LongProduct,
    product: z3.BitVecRef,
    shift: int,
) -> Link:
    """Return the link that says that two limbs hold `product · 2^shift`, where `product` is the bit-vector product of
    the extended factors.

    No solver multiplies: the halves of the factors are cut, and their products are then too, so that what is left is
    an identity of polynomials, and sums.  It is written with multiplications by powers of two, not with shifts: z3
    and Bitwuzla both expand those.
    """
    half, bits = executable.x.low.term.size(), product.size()
    base = z3.BitVecVal(1 << half, bits)
    halves = []
    for link, lanes, factor in zip(factors, (executable.x, executable.y), product.children(), strict=True):
        cut = z3.Extract(link.term.size() - 1, half, link.term), z3.Extract(half - 1, 0, link.term)
        high, low = (z3.ZeroExt(bits - part.size(), part) for part in cut)
        whole = Link(factor == high * base + low, (high, low), ((factor, high * base + low),))
        each = [number(lanes.high, cut[0]), number(lanes.low, cut[1]), whole]
        halves.append(argument.derive("multiply", "factors are cut in halves alike", each, [link]))
    parts: list[Link] = []
    for lane, (u, v) in zip(executable.parts, itertools.product(*(pair[:2] for pair in halves)), strict=True):
        x, y = (z3.ZeroExt(bits - z.term.size(), z.term) for z in (u, v))
        part = number(lane, x * y)
        text = "products of halves are the same"
        parts += argument.derive("multiply", text, [part], [u, v], alone=True)
    high, *middle, low = (part.term for part in parts)
    sum_ = high * (base * base) + (middle[0] + middle[1]) * base + low
    expanded = Link(product == sum_, tuple(part.term for part in parts), ((product, sum_),))
    wholes = [pair[2] for pair in halves]
    text = "the product is the sum of the products of halves"
    argument.derive("multiply", text, [expanded], wholes, alone=True)
    link = wide_number(executable.product, product, below=shift)
    return argument.derive(
        "multiply", "the products of halves add up to the same", [link], [*parts, expanded]
    )[0]


def add_long(
    argument: Argument,
    x: Sequence[Link],
    y: Sequence[Link],
    executable: limbs.WideSum,
    signs: tuple[z3.BitVecRef, z3.BitVecRef],
    smt: smt_blocks.StickySum,
    low: int,
) -> list[Link]:
    """The links of the sum of two terms and of its exponent, from those of sign, exponent and significand of each."""
    e_max = number(executable.e_max, smt.e_max, low=low)
    exponents = [x[1], y[1]]
    argument.derive("align", "the larger exponents are equal", [e_max], exponents)
    below = [at_most(each.term, smt.e_max) for each in exponents]
    text = "neither exponent is above the larger"
    argument.derive("align", text, below, inputs=[each.term for each in exponents])
    aligned: list[Link] = []
    for term, sign, lanes, magnitude, order in zip(
        (x, y), signs, (executable.x, executable.y), (smt.x, smt.y), below, strict=True
    ):
        link = signed_wide(lanes, sign, magnitude)
        aligned += argument.derive("align", "the aligned terms are the same", [link], [*term, e_max, order])
    total = [wide_number(executable.total, smt.total, signed=True), least_excluded(smt.total)]
    argument.derive("accumulate", "the sums of two limbs are equal", total, aligned)
    return [*total, e_max]


def multiply_long(
    argument: Argument,
    operands: tuple[OperandLinks, OperandLinks],
    long: limbs.LongProduct,
    executable: limbs.WideTerm,
    smt: smt_blocks.Term,
    low: int,
    shift: int,
) -> TermLinks:
    """A product whose significand is of two limbs, with `shift` places below, for a lane is too short."""
    x, y = operands
    significand = long_product(argument, (x.significand, y.significand), long, smt.significand, shift)
    sign = number(executable.sign, smt.sign)
    exponent = number(executable.exponent, smt.exponent, low=low)
    given = [link for z in operands for link in (z.sign, z.exponent, z.significand)]
    argument.derive("multiply", "signs and exponents of products are the same", [sign, exponent], given)
    return TermLinks(sign, exponent, significand)


def link_sticky_sum(
    argument: Argument,
    terms: tuple[TermLinks, TermLinks],
    executable: tuple[executable_blocks.Sum, limbs.WideSum | None],
    smt: smt_blocks.StickySum,
    low: int,
    frame: int,
    least: int | None = None,
) -> list[Link]:
    """The links of the sum of two terms, with a sticky last place, and of its exponent, which is not below `least`."""
    (x, y), (total, wide) = terms, executable
    if wide is not None:
        return add_long(argument, x, y, executable=wide, signs=(x.sign.term, y.sign.term), smt=smt, low=low)
    links = [number(total.total, smt.total, signed=True), number(total.unit, smt.e_max, low=low - frame)]
    if least is not None:
        links.append(Link(z3.UGE(smt.e_max, least - low), (smt.e_max,)))
    return [*argument.derive("align", "aligned terms have the same sum", links, [*x, *y])]
