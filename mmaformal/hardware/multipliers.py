"""Multipliers made of rows that are added up: Booth's digits, or any words that depend on few bits of a factor each.

What is added up is F(a, b).  With the bits of b from place j on cleared it is F_j, and F_{j+1} is F_j and a·2^j if
bit j of b is set, for each j: the words that differ are few, and what they are made of is seen by a solver at once,
whatever recoding is used.  Σ b_j·2^j·a is the product by the distributive law, which is asked too.  What else is added
up with it, as c is in a fused multiplier, is F_0.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.display import ShortRepr
from mmaformal.encodings.smt.blocks import BitVec, Operand, Trace, resize
from mmaformal.hardware.carry_save import AddedWords, Compressor, added_words
from mmaformal.hardware.normalised import Attempting
from mmaformal.hardware.sums import CaseValues
from mmaformal.proof.kernel import Link
from mmaformal.solver.terms import constants_of

#: Seconds for a lemma about one bit of a factor.
_OF_BIT = 30.0
#: Seconds for one about a row, or an adder.
_OF_SUM = 30.0


class DesignProver(Attempting, Protocol):
    """A prover of single claims, with the nodes of a design and the trace of a model."""

    inputs: Inputs
    nodes: list[z3.BitVecRef]  #: of the design
    rows: dict[int, Compressor]  #: its rows of full adders
    values: dict[int, CaseValues]
    progress: Callable[[str], None]

    @property
    def trace(self) -> Trace[Any]:
        """The model."""

    def seen(self, term: z3.ExprRef) -> CaseValues:
        """The values of a term in all cases."""


def recovered(proving: DesignProver) -> Iterator[tuple[BitVec, Link]]:
    """Nodes of a design that are proved to be a product of the model and what else is added up, and their links."""
    products = list(_products(proving))
    sums = list(_sums(proving)) if products else []
    for number, product in enumerate(products):
        for node, row, through in sums:
            if node.size() < product.word.size():
                continue
            total = functools.reduce(operator.add, through.words)
            found = _as_product(
                proving, product, total, f"product {number} as a sum of {len(through.words)} words"
            )
            if found is None:
                continue
            value = found.defined[0][1]
            link = Link(node == value, found.free, ((node, value),))
            if _is_sum(proving, node, row, through, total) and proving.attempt(
                link, [Link(node == total, (), ((node, total),)), found], _OF_SUM
            ):
                yield node, link
                break


def _products(proving: DesignProver) -> Iterator[ModelProduct]:
    """The products of a model of one step, where that has its operands decoded."""
    if len(proving.trace.steps) == 1 and hasattr(step := proving.trace.steps[0], "a"):
        several = isinstance(step.a, Sequence) and not isinstance(step.a, Operand)
        sides = (step.a, step.b) if several else ((step.a,), (step.b,))
        terms = getattr(step, "products", None) or getattr(step, "product", None)
        terms = (terms,) if hasattr(terms, "significand") else terms or ()
        for *factors, term, a, b in zip(*sides, terms, proving.inputs.a, proving.inputs.b, strict=False):
            if not hasattr(term, "significand"):  # of a group: a sign and a magnitude in fixed point
                return
            yield ModelProduct((factors[0], factors[1]), (a, b), term.significand)


def _sums(proving: DesignProver) -> Iterator[tuple[BitVec, Compressor | None, AddedWords]]:
    """Nodes that add up what went into rows: additions, and those that have the values of the last row's two words."""
    by_value: dict[tuple[int, CaseValues], list[Compressor]] = {}
    for row in proving.rows.values():
        bits, columns = row.sum.size(), [proving.values[x.get_id()] for x in (row.sum, row.carry)]
        seen = tuple((x + y) % (1 << bits) for x, y in zip(*columns, strict=True))
        by_value.setdefault((bits, seen), []).append(row)
    for node in proving.nodes:
        for last in (None, *by_value.get((node.size(), proving.values[node.get_id()]), ())):
            through = added_words(node if last is None else last.sum + last.carry, proving.rows)
            if through is not None:
                yield node, last, through


def _is_sum(
    proving: DesignProver, node: BitVec, row: Compressor | None, through: AddedWords, total: BitVec
) -> bool:
    """Whether a node is proved to be the sum of what went into rows."""
    rows = [x.link for x in through.rows]
    if not all(proving.attempt(x.link, [], _OF_SUM, x.words) for x in through.rows):
        return False
    if row is not None:
        value = row.sum + row.carry
        adder = Link(node == value, (), ((node, value),))
        if not proving.attempt(adder, [], _OF_SUM, [row.sum, row.carry]):
            return False
        rows.append(adder)
    flat = Link(node == total, (), ((node, total),))
    return proving.attempt(flat, rows, _OF_SUM, through.words)


@dataclass(frozen=True, repr=False)
class ModelProduct(ShortRepr):
    """A product of the model."""

    factors: tuple[Operand, Operand]
    codes: tuple[BitVec, BitVec]
    word: BitVec


@dataclass(frozen=True, repr=False)
class PartialProducts(ShortRepr):
    """A sum of words, as it is where low bits of a factor are all that is set of it."""

    total: BitVec
    factor: Operand
    code: BitVec  #: the factor's

    @property
    def bits(self) -> int:
        """How many bits the factor's significand has."""
        return int(self.factor.significand.size())

    def below(self, place: int) -> BitVec:
        """The sum with the bits from a place on cleared; all of it with the place of the number of bits."""
        if place == self.bits:
            return self.total
        code = z3.BitVecVal(0, self.code.size() - place)
        if place:
            code = z3.Concat(code, z3.Extract(place - 1, 0, self.code))
        return z3.simplify(z3.substitute(self.total, (self.code, code)))


def _as_product(proving: DesignProver, product: ModelProduct, total: BitVec, name: str) -> Link | None:
    """The link that a sum of words is a product, shifted, and what is left of it where a factor is 0, if it is proved;
    None if not."""
    for at in (1, 0):
        rows = PartialProducts(total, product.factors[at], product.codes[at])
        rest = rows.below(0)
        if any(x.eq(code) for x in constants_of(rest) for code in product.codes):
            continue
        place = _place(proving.seen(total), proving.seen(rest), proving.seen(product.word), total.size())
        if place is None or place + product.word.size() > total.size():
            continue
        proving.progress(name)
        link = _by_bits(proving, rows, product.factors[1 - at].significand, product.word, place)
        if link is not None:
            return link
    return None


def _place(seen: CaseValues, least: CaseValues, product: CaseValues, bits: int) -> int | None:
    """By how much the product is shifted in a sum; None if the sum is not what is left without it, and the product."""
    rest = [(x - y) % (1 << bits) for x, y in zip(seen, least, strict=True)]
    some = next(((x, y) for x, y in zip(rest, product, strict=True) if y), None)
    if some is None or not some[0]:
        return None
    place = some[0].bit_length() - some[1].bit_length()
    return place if place >= 0 and all(x == y << place for x, y in zip(rest, product, strict=True)) else None


def _by_bits(
    proving: DesignProver, rows: PartialProducts, other: BitVec, product: BitVec, place: int
) -> Link | None:
    """The link of the sum of words to the product, bit by bit of the factor that it is made for."""
    size, factor = rows.total.size(), rows.factor.significand
    one = resize(other, size)
    bits = [z3.ZeroExt(size - 1, z3.Extract(i, i, factor)) for i in range(rows.bits)]
    sums = [rows.below(i) for i in range(rows.bits + 1)]
    steps = []
    for i, bit in enumerate(bits):
        value = sums[i] + (one * bit << place + i)
        steps.append(Link(sums[i + 1] == value, (sums[i], one, bit), ((sums[i + 1], value),)))
        if not sums[i + 1].eq(value) and not proving.attempt(steps[-1], [], _OF_BIT):
            return None
    whole = resize(factor, size)
    parts = bits[0]
    for i, bit in enumerate(bits[1:], 1):
        parts = parts + (bit << i)
    split = Link(whole == parts, tuple(bits), ((whole, parts),))
    word, both = one * whole, resize(product, size)
    wide = Link(word == both, (product,), ((word, both),))
    values = [sums[0] + (x << place if place else x) for x in (word, both)]
    middle, last = (
        Link(rows.total == value, (x,), ((rows.total, value),))
        for value, x in zip(values, (word, product), strict=True)
    )
    done = (
        proving.attempt(split, [], _OF_BIT, [factor])
        and proving.attempt(wide, [], _OF_BIT, [other, factor])
        and proving.attempt(middle, [*_chained(steps), split], _OF_BIT, [sums[0]])
        and proving.attempt(last, [middle, wide], _OF_BIT, [sums[0]])
    )
    return last if done else None


def _chained(steps: Sequence[Link]) -> list[Link]:
    """Links of sums, each of which is what the one before says and a term: the sums between are not cut."""
    return [replace(link, free=link.free[1:]) for link in steps]
