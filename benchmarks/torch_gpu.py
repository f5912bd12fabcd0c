"""Products on CUDA tensors through Triton's kernels: every bit against the processor's, and times beside native fp16.

    python benchmarks/torch_gpu.py                     # on a machine with a GPU
    python benchmarks/torch_gpu.py --interpreter all   # without one: every instruction of the tables, bits alone

A product is M = N = K = SIZE, of normally distributed numbers and, in its first rows, of subnormals, infinities and
NaNs.  Ours is `run` on codes that are there; native is `torch.matmul` of fp16.  Each is the median of REPEATS, between
CUDA events.  The exit status is 1 if a bit differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

sys.path.append(sys.path.pop(0))  # where `profile` is not the standard library's, which torch imports

import numpy as np
import torch

from mmaformal import ARCHITECTURES, Instruction, ada, ampere, blackwell, cdna3, hopper, matmul
from mmaformal.formats import Format
from mmaformal.lanes import LaneError
from mmaformal.torch.triton_kernel import run_kernel
from mmaformal.torch.triton_source import NoSourceError

CHOSEN = [
    hopper["HMMA.16816.F32"],
    hopper["HMMA.16816.F32.BF16"],
    hopper["HMMA.1688.F32.TF32"],
    hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
    ampere["HMMA.16816.F16"],
    ada["QMMA.16832.F32.E4M3.E4M3"],
    blackwell["UTCQMMA.F32.E4M3.E4M3"],
    cdna3["f32_16x16x16_f16"],
]


def codes(fmt: Format, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Numbers near 1, and any codes in the first rows and columns."""
    field = fmt.bias + rng.integers(-3, 2, shape)
    field = np.clip(field, 0, (1 << fmt.exponent_bits) - 2) if fmt.fraction_bits else field
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape)
    sign = rng.integers(0, 1 + fmt.signed, shape)
    found = ((sign << fmt.exponent_bits | field) << fmt.fraction_bits | fraction) << fmt.ignored_low_bits
    found = found.astype(np.uint64)
    few = min(4, shape[0])
    found[:few] = rng.integers(0, fmt.codes, (few, shape[1]), dtype=np.uint64)
    return found.astype(fmt.word)


def tensor(x: np.ndarray, device: str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}"))[None].to(device)


def operands(i: Instruction, m: int, n: int, k: int) -> list[np.ndarray | None]:
    """A, B, C and block scales, as codes."""
    rng = np.random.default_rng(0)
    made: list[np.ndarray | None] = [
        codes(i.a_format, (m, k), rng),
        codes(i.b_format, (n, k), rng).T,
        codes(i.c_format, (m, n), rng),
    ]
    fmt = i.spec.scale_format
    blocks = -(-k // i.spec.scale_block) if fmt is not None else 0
    return made + (
        [None, None] if fmt is None else [codes(fmt, (m, blocks), rng), codes(fmt, (n, blocks), rng).T]
    )


def wrong(i: Instruction, m: int, n: int, k: int, device: str) -> int:
    """How many results are another code than the processor's kernels give."""
    a, b, c, s, t = operands(i, m, n, k)
    found = run_kernel(i.spec, *(None if x is None else tensor(x, device) for x in (a, b, c, s, t)))
    wanted = matmul(a, b, c, instruction=i, scale_a=s, scale_b=t)
    return int((found[0].cpu().numpy().view(i.d_format.word) != wanted).sum())


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """The median, after one call that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return float(np.median(times))


def on_gpu(size: int, repeats: int) -> bool:
    """Print a table of times; returns whether every bit is right."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, M = N = K = {size}\n")
    x, y = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    native, right = milliseconds(lambda: x @ y, repeats), True
    print(
        f"native fp16: {native:.3f} ms\n\n| instruction | ms | times native | results that differ |\n|---|---|---|---|"
    )
    for i in CHOSEN:
        given = [None if x is None else tensor(x, "cuda") for x in operands(i, size, size, size)]
        ours = milliseconds(lambda given=given, i=i: run_kernel(i.spec, *given), repeats)
        differ = wrong(i, size, size, size, "cuda")
        right &= not differ
        print(f"| {i.label} | {ours:.2f} | {ours / native:.0f} | {differ} |", flush=True)
    return right


def each_function() -> Iterator[Instruction]:
    seen = set()
    for i in (i for architecture in ARCHITECTURES.values() for i in architecture):
        if i.spec not in seen:
            seen.add(i.spec)
            yield i


def interpreted(chosen: list[Instruction]) -> bool:
    """Compare bits in Triton's interpreter, of an instruction and a part of another; returns whether all are right."""
    right, done = True, 0
    for i in chosen:
        k = i.k if i.c_format != i.d_format else i.k + max(i.k // 4, 1)
        try:
            differ = wrong(i, 17, 19, k, "cpu")
        except (LaneError, NoSourceError) as error:
            print(f"{i.label}: no kernel ({error})", flush=True)
            continue
        done += 1
        right &= not differ
        print(f"{i.label}: {i.spec.parameters.algorithm}, K = {k}, {differ} of {17 * 19} differ", flush=True)
    print(
        f"{done} of {len(chosen)} functions have a kernel; no time is told: this is an interpreter on the processor"
    )
    return right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--interpreter", choices=["few", "all"])
    args = parser.parse_args()
    if args.interpreter:
        return not interpreted(CHOSEN if args.interpreter == "few" else list(each_function()))
    if not torch.cuda.is_available():
        print("no GPU is here; --interpreter few compares bits without one", file=sys.stderr)
        return 2
    return not on_gpu(args.size, args.repeats)


if __name__ == "__main__":
    sys.exit(main())
