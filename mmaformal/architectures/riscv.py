"""RISC-V's bulk-normalised dot products (RVBNA), as a table, and the standard's pseudo-code as it is printed.

Sources: the RISC-V instruction set manual (`papers.py`), chapters on RVBNA, Zvfwbdota16bf and Zvfqwbdota8f; the numbers
were compared with Spike's own code for them, bit for bit (docs/semantics.md §11).  n, the products of one sum, is a
constant of an implementation.  The standard also lets an implementation cut the products into sets, and add these
and c in other orders (`analysis/riscv_freedom.py`); here they are one set, added to c.  Revisions have smaller sets.
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.architectures.base import Architecture, Revision
from mmaformal.encodings.adder_tree import AdderTree
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.rvbna import EXPRESSIONS, Rvbna
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, bf16, e4m3, e5m2, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32, RO_FP32, Conversion, NanRule, Rounding
from mmaformal.spec import DotAdd

#: Products of one sum: the powers of two that the standard has vectors for.
SIZES = (2, 4, 8, 16, 32, 64)

_DOT = Conversion.named("RO-FP32")  #: a sum of zero is +0, whatever the signs of its terms

_SOURCES = {
    "F": "RISC-V ISA, RVBNA: q − 1 + g fractional bits, g = log2 n guard bits",
    "L": "chosen: n is a constant of an implementation",
    "rho": "RISC-V ISA, RVBNA: round to odd, beyond the largest number to infinity",
    "e_zero": "RISC-V ISA, RVBNA: the reference exponent of a product with a zero factor",
    "operands": "RISC-V ISA, RVBNA: factors are multiplied as they are",
    "order": "RISC-V ISA, RVBNA: the sum is exact, its order no matter",
    "cut": "RISC-V ISA, RVBNA: aligned products are rounded to odd",
    "addition": "RISC-V ISA, Zvfwbdota16bf and Zvfqwbdota8f; Spike, f32_add_odd",
    "nan": "RISC-V ISA, RVBNA: the canonical quiet NaN",
}


_ADDITIONS = (
    "RISC-V ISA, Zvfbdota32f and vfredusum.vs: additions round, by the dynamic mode; here to nearest even"
)

_SOURCES_FP32 = {
    "product": "RISC-V ISA, Zvfbdota32f: products may be rounded to FP32; here they are",
    "sums": _ADDITIONS,
    "rho": _ADDITIONS,
    "order": "chosen: any tree is allowed (vfredusum.vs)",
    "nan": "RISC-V ISA, F: the canonical quiet NaN",
}


def bulk_normalised(n: int, a: Format, b: Format) -> Lowered:
    """Returns RVBNA's sum of n products, and the addition of c to odd."""
    return Lowered(
        F=fp32.fraction_bits + (n - 1).bit_length(),
        L=n,
        rho=_DOT,
        e_zero=-a.bias - b.bias,  # 0, in the text's count of biased exponents
        operands=None,
        order=tuple(range(n)),
        addition=RO_FP32,
        cut=Rounding.RO,
        nan=NanRule.DEFAULT,
    )


def added_in_order(order: str) -> AdderTree:
    """Returns a step of products of fp32, rounded, that are added to each other and c in an order, each sum rounded."""
    return AdderTree(IEEE_FP32, (IEEE_FP32,), IEEE_FP32, order, NanRule.DEFAULT)


def _in_pairs(first: int, count: int) -> str:
    """Returns how the sum of so many products by halves is spelled."""
    if count == 1:
        return str(first)
    half = count // 2
    return f"({_in_pairs(first, half)}+{_in_pairs(first + half, half)})"


def _text(corrected: tuple[int, ...], name: str, summary: str, ieee: bool = False) -> Revision:
    """Returns the pseudo-code with some of its expressions corrected, as another reading of the table."""

    def revise(i: Instruction) -> Instruction | None:
        if i.a_format == fp32:
            return None
        spec = replace(i.spec, parameters=Rvbna(i.k, corrected, ieee))
        return replace(
            i, spec=spec, sources=dict.fromkeys(("n", "corrected", "ieee"), "RISC-V ISA, RVBNA, pseudo-code")
        )

    return Revision(name, summary, revise)


def _sets(size: int, name: str, summary: str) -> Revision:
    """Returns units of fewer products a set: the sets' sums are added to c one after another."""

    def revise(i: Instruction) -> Instruction:
        n = min(size, i.k)
        if i.a_format == fp32:
            spec = i.spec.replace(parameters=added_in_order(f"c+{_in_pairs(0, n)}"))
            return replace(i, spec=spec, sources=_SOURCES_FP32)
        return replace(i, spec=i.spec.replace(parameters=bulk_normalised(n, i.a_format, i.b_format)))

    return Revision(name, summary, revise)


_ALL = tuple(EXPRESSIONS)
REVISIONS = (
    _sets(1, "products", "another conforming unit: each product is added to c by itself"),
    _sets(2, "pairs", "another conforming unit: sets of two products, added to c one after another"),
    _sets(4, "fours", "another conforming unit: sets of four products, added to c one after another"),
    _text((), "printed", "the standard's pseudo-code as it is printed"),
    _text(
        (), "printed-ieee", "the same, of operands in IEEE's encodings as it says: e4m3 with infinities", True
    ),
    *(
        _text(tuple(x for x in _ALL if x != n), f"printed-{n}", f"the pseudo-code, but for {what} corrected")
        for n, what in EXPRESSIONS.items()
    ),
    _text(_ALL, "corrected", "the pseudo-code with its three wrong expressions corrected"),
)


def riscv() -> Architecture:
    """Returns vfwbdota.vv and vfqwbdota[.alt].vv for each n; `.alt` is b of e5m2, and a's type stands in vtype.

    And vfbdota.vv: the standard leaves its tree of additions open, and whether products are rounded; here exact ones
    are added to c in order.
    """
    name = "riscv"

    def unit(opcode: str, n: int, a: Format, b: Format) -> Instruction:
        spec = DotAdd(n, a, b, fp32, fp32, bulk_normalised(n, a, b))
        return Instruction(f"{opcode}.n{n}", name, 1, 1, spec, sources=_SOURCES)

    single = [
        Instruction(
            *(f"vfbdota.vv.n{n}", name, 1, 1),
            DotAdd(n, fp32, fp32, fp32, fp32, Sfma(IEEE_FP32, NanRule.DEFAULT)),
            sources={name: _SOURCES_FP32[name] for name in ("rho", "nan")},
        )
        for n in SIZES
    ]
    wide = [unit("vfwbdota.vv", n, bf16, bf16) for n in SIZES]
    narrow = [
        unit(f"vfqwbdota{'.alt' if b is e5m2 else ''}.vv.{a.name.upper()}", n, a, b)
        for a in (e4m3, e5m2)
        for b in (e4m3, e5m2)
        for n in SIZES
    ]
    units = [*wide, *narrow, *single]
    return Architecture(name, "Zvfwbdota16bf, Zvfqwbdota8f (Spike); Zvfbdota32f", units, REVISIONS)
