"""What the interfaces of the two wings have to say to each other, stage by stage, algorithm by algorithm.

For each algorithm there is a function that builds the argument that both traces of one instruction give the same
code: it derives the links of a stage's interfaces (`lemmas.Link`) from those of the stages before.  No statement here
is trusted: a wrong or missing one leaves a lemma that does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import z3

from mmaformal.algorithms import Conversion, Fda
from mmaformal.encodings.executable import blocks as executable
from mmaformal.encodings.smt import blocks as smt
from mmaformal.encodings.smt import fda as smt_fda
from mmaformal.formats import Format
from mmaformal.queries.lanes import BITS, Lane, fit
from mmaformal.queries.lemmas import Argument, Link, condition, number
from mmaformal.queries.wings import Traces


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


def same_code(lane: Lane, code: z3.BitVecRef) -> Link:
    """That a lane holds a code; one of 64 bits as a signed number."""
    return number(lane, code, signed=code.size() == BITS)


class CodeLinks(NamedTuple):
    a: list[Link]
    b: list[Link]
    c: Link
    scale_a: list[Link]
    scale_b: list[Link]


def unpack(argument: Argument, traces: Traces) -> CodeLinks:
    """The inputs are the same codes in both wings."""

    def link(lane: Lane, code: z3.BitVecRef) -> Link:
        return argument.derive(
            "inputs", "both wings read the same codes", [same_code(lane, code)], inputs=[code]
        )[0]

    def links(lanes: Sequence[Lane], codes: Sequence[z3.BitVecRef]) -> list[Link]:
        return [link(*pair) for pair in zip(lanes, codes, strict=True)]

    x, y = traces.lanes, traces.inputs
    return CodeLinks(
        links(x.a, y.a),
        links(x.b, y.b),
        link(x.c, y.c),
        links(x.scale_a, y.scale_a),
        links(x.scale_b, y.scale_b),
    )


def decode(
    argument: Argument, code: Link, mine: executable.Operand, other: smt.Operand, fmt: Format
) -> OperandLinks:
    links = OperandLinks(
        number(mine.sign, other.sign),
        number(mine.exponent, other.field, low=-fmt.bias),
        number(mine.significand, other.significand),
        condition(mine.infinite, other.infinite),
        condition(mine.nan, other.nan),
    )
    argument.derive("decode", f"{fmt} codes are decoded alike", links, [code])
    return links


def classify(
    argument: Argument, operands: Sequence[OperandLinks], mine: executable.Special, other: smt.Special
) -> Link:
    same = [condition(x, y) for x, y in zip(mine, other, strict=True)]
    one = z3.And([z3.Not(z3.And(x, y)) for x, y in combinations(other, 2)])
    link = Link(
        z3.And(one, *(each.claim for each in same)),
        tuple(other),
        tuple(pair for each in same for pair in each.defined),
    )
    given = [link for x in operands for link in (x.sign, x.significand, x.infinite, x.nan)]
    argument.derive("classify", "special values are the same, and at most one", [link], given)
    return link


def multiply(
    argument: Argument, operands: Sequence[OperandLinks], mine: executable.Term, other: smt.Term, low: int
) -> TermLinks:
    """A product, of two factors and maybe scales; or c as a term."""
    links = TermLinks(
        number(mine.sign, other.sign),
        number(mine.exponent, other.exponent, low=low),
        number(mine.significand, other.significand),
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


def round_and_encode(
    argument: Argument,
    total: Sequence[Link],
    special: Link,
    mine: executable.Rounded,
    other: smt.Rounded,
    rho: Conversion,
    results: tuple[Lane, z3.BitVecRef],
) -> Link:
    """From the links of the sum and its exponent to that of the result.

    The fields of the executable's number are `(exponent - least) · 2^p + significand`: the leading bit of a normal
    number adds one to the exponent field, and so does a carry of rounding.
    """
    p, least = rho.fraction_bits, rho.format.min_exponent
    bits = max(mine.significand.term.size(), mine.exponent.term.size() + p, other.code.size()) + 2
    exponent, significand = mine.exponent.fit(bits), mine.significand.fit(bits)
    fields = ((exponent - least) << p) + significand
    rounded = Link(
        z3.And(
            fields == fit(other.code, False, bits),
            exponent >= least,
            significand <= 2 << p,
            z3.Or(significand >= 1 << p, exponent == least),
            mine.sign.fit(2) == fit(other.sign, False, 2),
        ),
        (mine.exponent.term, mine.significand.term, other.sign),
        ((other.code, fit(fields, True, other.code.size())), *number(mine.sign, other.sign).defined),
        (mine.exponent, mine.significand, mine.sign),
    )
    argument.derive("round", f"equal sums are rounded alike with {rho}", [rounded], total)
    result = same_code(*results)
    argument.derive(
        "encode", f"{rho}: equal numbers and specials give the same code", [result], [rounded, special]
    )
    return result


def fda(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Fda)
    exponents = smt_fda.exponents_of(spec, parameters)
    low = exponents.low
    a, b, c, *scales = unpack(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        first = i * parameters.L
        products = range(parameters.L)
        x = [decode(argument, a[first + k], mine.a[k], other.a[k], spec.a_format) for k in products]
        y = [decode(argument, b[first + k], mine.b[k], other.b[k], spec.b_format) for k in products]
        z = decode(argument, c, mine.c, other.c, spec.c_format)
        factors = [[x[k], y[k]] for k in products]
        scale_operands = []
        if spec.scale_format is not None:
            for codes, u, v in (
                (scales[0], mine.scale_a, other.scale_a),
                (scales[1], mine.scale_b, other.scale_b),
            ):
                each = [
                    decode(argument, codes[(first + k) // spec.scale_block], u[k], v[k], spec.scale_format)
                    for k in products
                ]
                scale_operands += each
                factors = [[*f, s] for f, s in zip(factors, each, strict=True)]
        special = classify(argument, [*x, *y, z, *scale_operands], mine.special, other.special)
        terms = [multiply(argument, factors[k], mine.products[k], other.products[k], low) for k in products]
        addend = multiply(argument, [z], mine.addend, other.addend, low)
        e_max, below = argument.largest(
            "align", "exponents", mine.e_max, other.e_max, [t.exponent for t in (addend, *terms)], low
        )
        *added, added_c = summands(other.total, parameters.L + 1)
        aligned = []
        for term, order, lane, summand in zip(
            (addend, *terms), below, (mine.aligned_c, *mine.aligned), (added_c, *added), strict=True
        ):
            link = number(lane, summand, signed=True)
            argument.derive("align", "aligned terms are the same", [link], [e_max, order, *term])
            aligned.append(link)
        total = argument.add_up("accumulate", "aligned terms", mine.total, other.total, aligned)
        c = round_and_encode(
            argument,
            [total, e_max],
            special,
            mine.rounded,
            other.rounded,
            parameters.rho,
            (mine.result, other.result),
        )

    argument.conclude(c)


ARGUMENTS: dict[str, Callable[[Argument, Traces], None]] = {"fda": fda}
