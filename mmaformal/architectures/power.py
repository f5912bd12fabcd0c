"""Matrix units of IBM's processors, as tables.

Source: the Power ISA (`papers.py`), chapter "VSX Matrix-Multiply Assist"; compared with QEMU 7.2 in user mode, an
emulator (docs/semantics.md §11).  Elements are numbered as in memory on a little-endian system: product 0 is that of
the low halves of words, which the ISA calls halfword 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.architectures.base import Architecture
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32, IEEE_FP64, Conversion, NanRule
from mmaformal.spec import DotAdd

#: Instructions that round nothing (Power ISA), and are not modelled
_EXACT = {
    **dict.fromkeys(("XVI4GER8", "XVI4GER8PP", "XVI8GER4", "XVI8GER4PP"), "int4 or int8, sums modulo 2^32"),
    **dict.fromkeys(("XVI16GER2", "XVI16GER2PP"), "int16, sums modulo 2^32"),
    **dict.fromkeys(("XVI8GER4SPP", "XVI16GER2S", "XVI16GER2SPP"), "the same, saturating"),
}

#: The signs that each form changes: of the product or the pair of products, of c, and of the rounded result
_OF_FMA = {"pp": "", "np": "cd", "pn": "c", "nn": "d"}


def power10() -> Architecture:
    units = [
        *_pairs("f16", fp16),
        *_pairs("bf16", bf16),
        *_fmas("f32", 4, IEEE_FP32),
        *_fmas("f64", 2, IEEE_FP64),
    ]
    return Architecture("power10", "Power10 and later, FPSCR = 0", units, exact=_EXACT)


def _pairs(name: str, fmt: Format) -> Iterator[Instruction]:
    """xvf16ger2, xvbf16ger2, and their forms."""
    sources = {
        "pair": "Power ISA, two products to a single-precision sum",
        "rho": "Power ISA, then the sum with the accumulator",
        "nan": "QEMU 7.2",
        "negate_pair": "Power ISA, Negative multiply",
    }
    for form in ("", "pp", "np", "pn", "nn"):
        own = sources | _sources_of_form(form, "c" if form.endswith("n") else "")
        unit = Rnd2(IEEE_FP32, IEEE_FP32, NanRule.FIRST_ACB, form.startswith("n"))
        negated = "c" if form.endswith("n") else ""
        spec = DotAdd(2, fmt, fmt, fp32, fp32, unit, negated=negated, reads_c=form != "")
        yield Instruction(f"XV{name.upper()}GER2{form.upper()}", "power10", 4, 4, spec, sources=own)


def _fmas(name: str, columns: int, rho: Conversion) -> Iterator[Instruction]:
    """xvf32ger, xvf64ger, and their forms."""
    sources = {"rho": "Power ISA, multiply-add, rounded once", "nan": "QEMU 7.2"}
    for form in ("", *_OF_FMA):
        own = sources | _sources_of_form(form, _OF_FMA.get(form, ""))
        fmt, unit = rho.format, Sfma(rho, NanRule.FIRST_ACB)
        spec = DotAdd(1, fmt, fmt, fmt, fmt, unit, negated=_OF_FMA.get(form, ""), reads_c=form != "")
        yield Instruction(f"XV{name.upper()}GER{form.upper()}", "power10", 4, columns, spec, sources=own)


def _sources_of_form(form: str, negated: str) -> dict[str, str]:
    """Where a form's changes of signs are from."""
    found = {"negated": "Power ISA, Positive and Negative multiply, accumulate"} if negated else {}
    return found | ({} if form else {"reads_c": "Power ISA: the accumulator is written and not read"})
