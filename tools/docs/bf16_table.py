"""Sums of bf16 on every vendor's unit, and which of them round correctly: a table of docs/bf16-differences.md.

python tools/docs/bf16_table.py
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaformal import ARCHITECTURES
from mmaformal.encodings.wfma import Wfma
from mmaformal.formats import bf16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

#: An fma of fp32 whose a and b are bf16: what vecfp and matfp of Apple's M2 make of one lane.
APPLE = Instruction("vecfp.BF16", "apple_amx", 1, 1, DotAdd(1, bf16, bf16, fp32, fp32, Wfma(IEEE_FP32)))

#: Names of rows, and the instruction that each is about
UNITS: dict[str, Instruction] = {
    "NVIDIA Ampere, Ada `HMMA.16816`": ARCHITECTURES["ampere"]["HMMA.16816.F32.BF16"],
    "NVIDIA Hopper, Blackwell `HMMA.16816`": ARCHITECTURES["hopper"]["HMMA.16816.F32.BF16"],
    "AMD CDNA1 `…16x16x8bf16`": ARCHITECTURES["cdna1"]["v_mfma_f32_16x16x8bf16"],
    "AMD CDNA2 `…16x16x16bf16_1k`": ARCHITECTURES["cdna2"]["v_mfma_f32_16x16x16bf16_1k"],
    "AMD CDNA3 `…16x16x16_bf16`": ARCHITECTURES["cdna3"]["v_mfma_f32_16x16x16_bf16"],
    "Intel AMX `TDPBF16PS`": ARCHITECTURES["sapphire_rapids"]["TDPBF16PS"],
    "Intel AVX-512 `VDPBF16PS`": ARCHITECTURES["sapphire_rapids"]["VDPBF16PS"],
    "Arm `BFDOT`, EBF = 0": ARCHITECTURES["armv8_6"]["BFDOT"],
    "Arm `BFDOT`, EBF = 1": ARCHITECTURES["armv9_ebf16"]["BFDOT"],
    "POWER10 `XVBF16GER2PP`": ARCHITECTURES["power10"]["XVBF16GER2PP"],
    "RISC-V `vfwbdota.vv`, n = 8": ARCHITECTURES["riscv"]["vfwbdota.vv.n8"],
    "Apple M2 `vecfp`": APPLE,
}


@dataclass(frozen=True)
class Sum:
    """Products of bf16 numbers and c, as a person writes them."""

    text: str
    products: tuple[tuple[str, str], ...]
    c: str

    @property
    def exact(self) -> Fraction:
        """Returns the value of the sum."""
        parts = (bf16.value(bf16.code(x)) * bf16.value(bf16.code(y)) for x, y in self.products)
        return sum(parts, fp32.value(fp32.code(self.c)))

    def codes(self, k: int) -> tuple[list[int], list[int], int]:
        """Returns a, b and c, the products after these zero."""
        a, b = ([bf16.code(pair[side]) for pair in self.products] for side in (0, 1))
        rest = [0] * (k - len(a))
        return a + rest, b + rest, fp32.code(self.c)


SUMS = (
    Sum("1·1 − 2^−25", (("1", "1"),), "-0x1p-25"),
    Sum("1·1 + 2^−24", (("1", "1"),), "0x1p-24"),
    Sum("1·1 + 1·1 + 2^24", (("1", "1"), ("1", "1")), "0x1p24"),
    Sum("1·1 + 2^−8·2^−17 − 1", (("1", "1"), ("0x1p-8", "0x1p-17")), "-1"),
    Sum("2^24·1 + 1·1 − 2^24·1", (("0x1p24", "1"), ("1", "1"), ("-0x1p24", "1")), "0"),
    Sum("2^−64·2^−63", (("0x1p-64", "0x1p-63"),), "0"),
    Sum("2^64·2^64 − 2^64·2^64 + 1", (("0x1p64", "0x1p64"), ("-0x1p64", "0x1p64")), "1"),
)


def unit_for(unit: Instruction, sum_: Sum) -> Instruction:
    """Returns the instruction, issued as often as a sum has products."""
    times = -(-len(sum_.products) // unit.k)
    return unit if times == 1 else unit.chained(times * unit.k)


def right(sum_: Sum) -> int:
    """Returns the code of the exact sum, rounded to nearest, ties to even; these sums are positive."""
    exact = sum_.exact
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent = max(exponent - (Fraction(2) ** exponent > exact), fp32.min_exponent)
    places = round(exact / Fraction(2) ** (exponent - fp32.fraction_bits))  # Python's ties go to even
    return places + ((exponent - fp32.min_exponent) << fp32.fraction_bits)


def result(unit: Instruction, sum_: Sum) -> int:
    """Returns the code that a unit gives of a sum."""
    issued = unit_for(unit, sum_)
    a, b, c = sum_.codes(issued.k)
    return int(issued.dot_add(np.array(a, np.uint16), np.array(b, np.uint16), np.uint32(c)))


def cell(code: int, wanted: int) -> str:
    """Returns a result as a number, in bold where it is the right one."""
    text = "NaN" if fp32.is_nan(code) else fp32.text(code)
    text = text.replace("0x1p", "2^").replace("+", "").replace("-", "−").replace("inf", "∞")
    text = {"0x0p0": "0", "2^0": "1", "2^1": "2"}.get(text, f"`{code:#010x}`" if "." in text else text)
    return f"**{text}**" if code == wanted else text


def table() -> str:
    """Returns the table: a row for each unit, a column for each sum, and how many are right."""
    lines = [
        "| unit | " + " | ".join(each.text for each in SUMS) + " | right |",
        "|---" * (len(SUMS) + 2) + "|",
    ]
    wanted = [right(each) for each in SUMS]
    for name, unit in UNITS.items():
        found = [result(unit, each) for each in SUMS]
        cells = [cell(code, exact) for code, exact in zip(found, wanted, strict=True)]
        count = sum(code == exact for code, exact in zip(found, wanted, strict=True))
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {count} of {len(SUMS)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
    sys.exit(0)
