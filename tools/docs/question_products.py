"""Products for docs/questions.md, made by models: `python tools/docs/question_products.py FOLDER` writes them.

Each is an .npz of A, B and D, bit patterns or floats, as `mmaformal explain` reads it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from mmaformal import Structure, replay
from mmaformal.structures import CodeArray

CPU_BF16 = Structure.named("datapath fma(k=1,a=bf16)", lanes=4, unit=4, rest="lane", d_format="bf16")
TWO_LEVELS = Structure.named("h100 QGMMA.64x8x32.F32.E4M3.E4M3", block=128)
ONE_CHAIN = Structure.named("h100 HMMA.16816.F32")
SPLIT_K = Structure.named("h100 HMMA.16816.F32", block=128, order="pairwise")
NARROW = Structure.named("h100 HMMA.16816.F16")
GEMM = Structure.named("cdna1 v_mfma_f32_32x32x1f32")
GEMV = Structure.named(
    "cdna1 v_mfma_f32_32x32x1f32", lanes=8, order="4 1 2", unit=8, rest="apart", fused="no"
)


def factors(dtype: DTypeLike, M: int, K: int, N: int, seed: int) -> tuple[CodeArray, CodeArray]:
    """Normal numbers of a type."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((M, K)).astype(dtype), rng.standard_normal((K, N)).astype(dtype)


def made(structure: Structure, A: CodeArray, B: CodeArray) -> CodeArray:
    """The product that a structure makes, as floats."""
    dtype = structure.result.dtype
    if dtype is None:
        raise ValueError(f"{structure.result} has no type of NumPy's")
    return replay(A, B, structure, progress=False).view(dtype).copy()


def write(folder: Path) -> None:
    """Write the products."""
    folder.mkdir(parents=True, exist_ok=True)

    def save(name: str, D: CodeArray, A: CodeArray, B: CodeArray) -> None:
        words = {np.dtype(ml_dtypes.bfloat16): np.uint16, np.dtype(ml_dtypes.float8_e4m3fn): np.uint8}
        np.savez(
            folder / f"{name}.npz",
            allow_pickle=False,
            **{key: x.view(words.get(x.dtype, x.dtype)) for key, x in (("D", D), ("A", A), ("B", B))},
        )

    A, B = factors(ml_dtypes.float8_e4m3fn, 32, 512, 48, 1)
    save("fp8", made(TWO_LEVELS, A, B), A, B)
    A, B = factors(np.float16, 64, 512, 48, 2)
    save("batch64", made(ONE_CHAIN, A, B), A, B)
    save("batch16", made(ONE_CHAIN, A[:16], B), A[:16], B)
    save("split16", made(SPLIT_K, A[16:32], B), A[16:32], B)
    save("half", made(NARROW, A, B), A, B)
    D = made(ONE_CHAIN, A, B)
    D[17, 8:16] = D[17, 0:8]
    save("wrong", D, A, B)
    save("bias", made(ONE_CHAIN, A, B) + np.linspace(1, 9, 48, dtype=np.float32), A, B)
    short = A.copy()
    short[:, 448:] = 0
    save("tile", made(ONE_CHAIN, short, B), A, B)
    A, B = factors(ml_dtypes.bfloat16, 48, 39, 48, 3)
    order = np.random.default_rng(3).permutation(
        78
    )  # of terms that cancel: rounded sums of others tell little
    A, B = np.hstack([A, -A])[:, order], np.vstack([B, B])[order]
    save("cpu", made(CPU_BF16, A, B), A, B)
    A, B = factors(np.float32, 40, 75, 24, 4)
    save("gemm", made(GEMM, A, B), A, B)
    save("gemv", made(GEMV, A, B[:, :1]), A, B[:, :1])
    first, second = (x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (A, B))
    save("rounded", made(GEMM, first, second), A, B)


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "questions"))
