"""A matrix unit of your own, in one file, beside the ones there are.

A made-up accelerator: 8-bit inputs in a format that no table has (1 sign, 3 exponent and 4 fraction bits, with
infinities and NaNs as IEEE 754 has them), and fp16; products summed in blocks of four with F = 20 fractional bits, the
rest cut off; c is taken into the first block; each block's sum is rounded to nearest, ties to even, to fp32.  A block
is every fourth product of 16: 0, 4, 8, 12, then 1, 5, 9, 13, and so on.

    python examples/own_unit.py
    mmaformal diff --model examples/own_unit.py:acme hopper acme HMMA.16816.F32 DOT.16.F16
    mmaformal prove --model examples/own_unit.py:acme order-independence acme DOT.32.E3M4
"""

from __future__ import annotations

import numpy as np

from mmaformal import Architecture, Instruction, find_difference, hopper, matmul, prove
from mmaformal.encodings.fda import Fda
from mmaformal.formats import Format, Specials, fp16, fp32
from mmaformal.spec import DotAdd

e3m4 = Format("e3m4", storage_bits=8, exponent_bits=3, fraction_bits=4, bias=3, specials=Specials.IEEE)

#: one block: four products and the accumulator, aligned to the largest of them; zeros count as smaller than all
block = Fda(F=20, L=4, rho="RNE-FP32", e_zero=-133)

#: the order in which products are taken, period by period
interleaved = tuple(k for lane in range(4) for k in range(lane, 16, 4))


def unit(name: str, k: int, fmt: Format) -> Instruction:
    spec = DotAdd(k, fmt, fmt, fp32, fp32, block, product_order=interleaved)
    return Instruction(name, "acme", m=8, n=8, spec=spec)


acme = Architecture(
    "acme",
    "a made-up accelerator",
    [unit("DOT.32.E3M4", 32, e3m4), unit("DOT.16.F16", 16, fp16)],
)


def main() -> None:
    narrow, half = acme["DOT.32.E3M4"], acme["DOT.16.F16"]
    print(find_difference(hopper["HMMA.16816.F32"], half))
    print()
    for name in ("order-independence", "error-bound"):
        print(prove(name, narrow))
    rng = np.random.default_rng(1)
    A, B = (rng.integers(0, narrow.a_format.codes, shape, np.uint8) & 0xBF for shape in ((4, 64), (64, 4)))
    print("\na product of random e3m4 matrices, K = 64:")
    print(matmul(A, B, instruction=narrow).view(np.float32))


if __name__ == "__main__":
    main()
