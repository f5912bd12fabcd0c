"""How the functions that exactness is proved of are put together: the terms of a step are made once more, and compared.

`exactness.py` proves what each function gives for any arguments.  Here the step is made of them again, each given the
interfaces that it is to be given, and every term has to be the encoding's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings import smt
from mmaformal.encodings.residues import Residues
from mmaformal.encodings.residues import smt as residues
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    Operand,
    decode,
    maximum,
    normalise_and_round,
    product_range,
    resize,
)
from mmaformal.formats import Format
from mmaformal.proof.claims import ArgumentError
from mmaformal.proof.composition import Composing
from mmaformal.spec import DotAdd


def check_flow(spec: DotAdd) -> None:
    """Raise ArgumentError where a term of a step is made otherwise than exactness takes it to be."""
    p = spec.parameters_as(Residues)
    codes = [
        [z3.BitVec(f"{name}{i}", fmt.storage_bits) for i in range(spec.k)]
        for name, fmt in (("a", spec.a_format), ("b", spec.b_format))
    ]
    c = z3.BitVec("c", spec.c_format.storage_bits)
    step: residues.ResiduesStep = smt.dot_add(spec, codes[0], codes[1], c).steps[0]
    factors = [
        [decode(code, fmt) for code in side]
        for side, fmt in zip(codes, (spec.a_format, spec.b_format), strict=True)
    ]
    for side, largest, words, fmt in zip(
        factors, step.tops, (step.a, step.b), (spec.a_format, spec.b_format), strict=True
    ):
        _same("the largest exponent", largest, maximum([x.field for x in side]))
        for x, made in zip(side, words, strict=True):
            _check_word(x, made, largest, fmt, p)
    for t, made_sum in enumerate(step.sums):
        _check_sum(made_sum, step, t, p)
    _check_digits(step, p)
    _check_total(step, spec, p)


def prove_largest_word(proving: Composing, p: Residues, fmt: Format) -> list[Bool]:
    """Prove that no factor has an exponent above the one in common."""
    fields = [z3.BitVec(f"field{i}", fmt.exponent_bits) for i in range(p.products)]
    largest = maximum(fields)
    claim = z3.And([z3.UGE(largest, each) for each in fields])
    return [
        proving.claim("largest", f"no exponent of {p.products} factors is above the one in common", claim)
    ]


def _same(what: str, made: BitVec, wanted: BitVec) -> None:
    """Raise ArgumentError unless two terms are one."""
    if not made.eq(wanted):
        raise ArgumentError(f"not seen of the terms: {what} is not made as exactness takes it to be")


def _check_word(x: Operand, made: residues.FactorWord, largest: BitVec, fmt: Format, p: Residues) -> None:
    """Look at a word: its magnitude is the factor's, its bytes, and of each modulus the remainders of these."""
    _same("a word", made.magnitude, residues.word(x, largest, fmt, p).magnitude)
    _check_bytes("a word", made.bytes, made.magnitude)
    for modulus, left, remainder in zip(p.moduli, made.left, made.remainders, strict=True):
        _check_left("a word", left, made.bytes, modulus)
        _same("a remainder next to zero", remainder, residues.next_to_zero(x.sign, left[-1], modulus))


def _check_bytes(of: str, parts: Sequence[BitVec], number: BitVec) -> None:
    bits = residues.BYTE * len(parts)
    if bits < number.size():
        raise ArgumentError(f"not seen of the terms: {of} has more bits than its bytes")
    number = resize(number, bits)
    for i, part in enumerate(parts):
        low = residues.BYTE * i
        _same(f"a byte of {of}", part, z3.Extract(low + residues.BYTE - 1, low, number))


def _check_left(of: str, left: Sequence[BitVec], parts: Sequence[BitVec], modulus: int) -> None:
    above: BitVec = z3.BitVecVal(0, residues.BYTE)
    for part, found in zip(reversed(parts), left, strict=True):
        _same(f"what {of} leaves", found, residues.left_of(z3.Concat(above, part), modulus))
        above = found


def _check_sum(made: residues.SumOfRemainders, step: residues.ResiduesStep, t: int, p: Residues) -> None:
    """Look at a sum: the products of remainders of this modulus, one after the other, and what it leaves."""
    wanted: BitVec | None = None
    for x, y in zip(step.a, step.b, strict=True):
        u, v = (z3.SignExt(residues.WIDE - residues.BYTE, each.remainders[t]) for each in (x, y))
        wanted = u * v if wanted is None else wanted + u * v
    assert wanted is not None
    _same("a sum of products of remainders", made.total, wanted)
    _check_bytes("a sum", made.bytes, residues.positive(made.total, t, p))
    _check_left("a sum", made.left, made.bytes, p.moduli[t])


def _check_digits(step: residues.ResiduesStep, p: Residues) -> None:
    """Look at the digits: each of what its sum leaves, less every digit before, times that modulus' inverse."""
    for t, (modulus, total, made) in enumerate(zip(p.moduli, step.sums, step.digits, strict=True)):
        x = total.left[-1]
        befores = zip(made.steps, step.digits[:t], p.moduli[:t], strict=True)
        for (difference, after), digit, before in befores:
            left = residues.left_of(residues.less(x, digit.digit, modulus), modulus)
            _same("a difference of digits", difference, left)
            x = residues.left_of(residues.times(difference, pow(before, -1, modulus)), modulus)
            _same("a difference times an inverse", after, x)
        _same("a digit", made.digit, x)


def _check_total(step: residues.ResiduesStep, spec: DotAdd, p: Residues) -> None:
    """Look at the number of the digits, and at what is rounded: that less ⌊P/2⌋, in the unit of both words."""
    whole = resize(step.digits[-1].digit, max(p.whole.bit_length(), residues.BYTE))
    _same("the number of the last digit", step.wholes[0], whole)
    rest = zip(reversed(p.moduli[:-1]), reversed(step.digits[:-1]), step.wholes[1:], strict=True)
    for modulus, digit, made in rest:
        whole = residues.with_digit(whole, digit.digit, modulus)
        _same("the number of the digits", made, whole)
    _same("the sum", step.total, residues.less_half(whole, p))
    exponents = product_range(spec.a_format, spec.b_format)
    both = [resize(each, exponents.bits) for each in step.tops]
    wanted = exponents.from_field(both[0] + both[1], spec.a_format.bias + spec.b_format.bias)
    _same("the exponent of the sum", step.exponent, wanted)
    rounded = normalise_and_round(step.total, step.exponent, exponents, 2 * p.bits - 2, p.rho, exponents.low)
    _same("what is rounded", step.rounded.code, rounded.code)
