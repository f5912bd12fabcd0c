"""fdrda, fused dot, round-down add, executable.  Specification: semantics §3; MMA-Sim §IV-F (FDRDA), §IV-G.

One step takes L products and c:

1. special values as in fda, except that a product of exponent ≥ 128 is an infinity, unless an input that is
   infinite is the result before (`inputs_first`);
2. exact products, aligned to their largest exponent e_dot, F fractional bits kept, toward zero; summed exactly.
   Products that are zero do not take part in choosing e_dot, nor does c;
3. `e_max = max(e_dot, e_c)`; the sum is cut to `dot_bits` fractional bits, c to F, both down; they are added;
4. the sum is normalised, cut to `sum_bits` fractional bits, down, and converted with ρ.

K > L is a chain: one step's result is the next one's c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Term,
    align,
    bit_length,
    classify_addend,
    classify_product,
    decode,
    encode,
    invert,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    quiet_nan,
    resolve_special,
    select_special,
    shift_right,
    signed,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.formats import Format
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Dot:
    """The interfaces of one dot product, without c: the products aligned to the largest of them and summed."""

    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    total: Lane  #: accumulate; in units of 2^(e_max - F)


@dataclass(frozen=True)
class FdrdaStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    dots: tuple[Dot, ...]  #: align and accumulate the products: all of them here, even and odd ones in gfdrda
    dot: Dot
    e_max: Lane  #: align the dot product and c
    cut_dot: Lane
    cut_c: Lane
    total: Lane  #: accumulate; in units of 2^(e_max - dot_bits)
    cut_total: Sum  #: normalise & round
    rounded: Rounded
    result: Lane  #: encode


#: A function that adds products of so many fraction bits: their sums, and the sum of those.
Sums: TypeAlias = Callable[[Sequence[Term], int], tuple[tuple[Dot, ...], Dot]]


def overflow(product: Term, fraction_bits: int, limit: int) -> Special:
    """The infinity that a product counts as if its exponent, plus one if its significand is ≥ 2, is ≥ limit."""
    carry = where(product.significand >= 1 << (fraction_bits + 1), 1, 0)
    over = (product.exponent + carry >= limit) & (product.significand != 0)
    negative = product.sign == 1
    never = over ^ over
    return Special(never, over & invert(negative), over & negative)


def number(x: Special) -> Flag:
    """Whether it is nothing special."""
    flag: Flag = invert(x.nan | x.positive_infinity | x.negative_infinity)
    return flag


def only_if(condition: Flag, x: Special) -> Special:
    return Special(*(flag & condition for flag in x))


def _alternating(given: Sequence[Special], overflows: Sequence[Special]) -> list[Special]:
    """c's, then of each product what its factors make it and what its size does."""
    pairs = zip(given[1:], overflows, strict=True)
    return [given[0], *(part for pair in pairs for part in pair)]


def products_and_specials(
    spec: DotAdd, parameters: Fdrda, a: Sequence[Operand], b: Sequence[Operand], c: Operand
) -> tuple[tuple[Term, ...], Special]:
    """Stages classify and multiply."""
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    products = tuple(multiply(x, y) for x, y in zip(a, b, strict=True))
    given, overflows = [classify_addend(c)], []
    for x, y, product in zip(a, b, products, strict=True):
        special = classify_product(x, y)
        given.append(special)
        too_big = overflow(product, bits, spec.d_format.max_exponent + 1)
        overflows.append(only_if(number(special), too_big))
    if parameters.inputs_first:
        first, then = (resolve_special(reduce(merge_special, parts)) for parts in (given, overflows))
        special = merge_special(first, only_if(number(first), then))
    else:
        special = resolve_special(reduce(merge_special, _alternating(given, overflows)))
    if parameters.skip_zero_products:
        # Below every exponent of a product that is not zero, and not above c's: e_dot never comes from a zero.
        least = min(spec.a_format.min_exponent + spec.b_format.min_exponent, spec.c_format.min_exponent)
        products = tuple(with_zero_exponent(p, least) for p in products)
    return products, special


def dot_product(products: Sequence[Term], fraction_bits: int, F: int) -> Dot:
    e_max = reduce(maximum, (p.exponent for p in products))
    aligned = tuple(align(p, e_max, fraction_bits, F) for p in products)
    return Dot(e_max, aligned, sum(aligned))


class TakesC(Protocol):
    """An object that has the format of c: a `DotAdd`."""

    @property
    def c_format(self) -> Format: ...


class Summed(Protocol):
    """The sum of some products: a `Dot`."""

    @property
    def e_max(self) -> Lane: ...
    @property
    def total(self) -> Lane: ...


def add_c(
    spec: TakesC, parameters: Fdrda, dot: Summed, c: Operand, reach: int | None = None
) -> tuple[Lane, Lane, Lane, Lane]:
    """e_max, the cut dot product, the cut c, and their sum; a c more than `reach` below e_max is dropped."""
    F, dot_bits, cut = parameters.F, parameters.dot_bits, parameters.cut
    e_max = maximum(dot.e_max, c.exponent)
    cut_dot = shift_right(dot.total << (dot_bits - F), e_max - dot.e_max, cut)
    addend = signed(c.sign, c.significand << (F - spec.c_format.fraction_bits))
    cut_c = shift_right(addend, e_max - c.exponent, cut)
    if reach is not None:
        cut_c = where(c.exponent < e_max - reach, 0, cut_c)
    return e_max, cut_dot, cut_c, cut_dot + (cut_c << (dot_bits - F))


def round_total(parameters: Fdrda, total: Lane, e_max: Lane) -> tuple[Sum, Rounded]:
    """Normalised and cut to `sum_bits` fractional bits, then rounded with ρ."""
    unit, rho = e_max - parameters.dot_bits, parameters.rho
    exact = Sum(total, unit)
    if parameters.sum_bits is not None:
        magnitude = where(total < 0, -total, total)
        exponent = maximum(bit_length(magnitude) - 1 + unit, rho.format.min_exponent)
        drop = maximum(exponent - parameters.sum_bits - unit, 0)
        exact = Sum(shift_right(total, drop, parameters.cut), unit + drop)
    return exact, normalise_and_round(exact.total, exact.unit, rho)


def step_of_sums(
    spec: DotAdd,
    parameters: Fdrda,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    sums: Sums,
    reach: int | None,
) -> FdrdaStep:
    """Return one step; `sums` adds up its products, and a c more than `reach` below the largest exponent is dropped."""
    a_operands = tuple(decode(x, spec.a_format.layout) for x in a)
    b_operands = tuple(decode(x, spec.b_format.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)
    products, special = products_and_specials(spec, parameters, a_operands, b_operands, c_operand)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    dots, dot = sums(products, bits)
    e_max, cut_dot, cut_c, total = add_c(spec, parameters, dot, c_operand, reach)
    cut_total, rounded = round_total(parameters, total, e_max)
    rho = parameters.rho
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    return FdrdaStep(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        products=products,
        dots=dots,
        dot=dot,
        e_max=e_max,
        cut_dot=cut_dot,
        cut_c=cut_c,
        total=total,
        cut_total=cut_total,
        rounded=rounded,
        result=result,
    )


def step(spec: DotAdd, parameters: Fdrda, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> FdrdaStep:
    def sums(products: Sequence[Term], bits: int) -> tuple[tuple[Dot, ...], Dot]:
        dot = dot_product(products, bits, parameters.F)
        return (dot,), dot

    return step_of_sums(spec, parameters, a, b, c, sums, None)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Fdrda), a, b, c))
