"""Products of 8-bit integers by the libraries of this machine: `python benchmarks/library_integers.py`.

A sum of integers is the same in every order, unless something saturates or is rounded on the way.  So each product is
compared with sums in 64 bits, none of which overflows: of factors at random, and of the largest, where vpmaddubsw,
which adds two products in 16 bits, would saturate.  `--json FILE` keeps what was found for docs/libraries.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from libraries import Array, onnx_model

#: M, K, N of the products.
SHAPES = ((37, 78, 41), (200, 64, 1), (1, 78, 200), (64, 4096, 64), (300, 301, 302))
Factors = tuple[type[np.integer[Any]], type[np.integer[Any]]]
S8, U8 = np.int8, np.uint8


@dataclass
class IntegerCall:
    """A product of integers that a library is asked for, how many of its elements are not exact, and what they are."""

    library: str
    call: str
    a: str
    b: str
    result: str
    outputs: int = 0
    wrong: int = 0
    extreme: int = 0  #: outputs whose factors are the largest
    extreme_wrong: int = 0


def by_torch() -> Iterator[tuple[IntegerCall, Factors, Callable[[Array, Array], Array]]]:
    """`matmul` of int8, which is kept in int8, and `_int_mm`."""
    torch = importlib.import_module("torch")
    name = f"PyTorch {torch.__version__.partition('+')[0]}"
    yield (
        IntegerCall(name, "matmul", "int8", "int8", "int8"),
        (S8, S8),
        lambda a, b: (torch.from_numpy(a) @ torch.from_numpy(b)).numpy(),
    )
    yield (
        IntegerCall(name, "_int_mm", "int8", "int8", "int32"),
        (S8, S8),
        lambda a, b: torch._int_mm(torch.from_numpy(a), torch.from_numpy(b)).numpy(),
    )


def by_onnxruntime() -> Iterator[tuple[IntegerCall, Factors, Callable[[Array, Array], Array]]]:
    """`MatMulInteger`, of each pair of types."""
    ort = importlib.import_module("onnxruntime")

    def product(a: Array, b: Array) -> Array:
        (M, K), N = a.shape, b.shape[1]
        ends = [("A", a.dtype.type, (M, K)), ("B", b.dtype.type, (K, N))]
        model = onnx_model("MatMulInteger", ends, ("D", np.int32, (M, N)))
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {"A": a, "B": b})[0])

    for types in ((U8, S8), (U8, U8), (S8, S8)):
        a, b = (np.dtype(each).name for each in types)
        yield IntegerCall(f"ONNX Runtime {ort.__version__}", "MatMulInteger", a, b, "int32"), types, product


def factors(types: Factors, shape: tuple[int, int, int], seed: int | None) -> list[Array]:
    """A and B at random; without a seed of the largest numbers of either sign."""
    M, K, N = shape
    rng = np.random.default_rng(0 if seed is None else seed)
    found: list[Array] = []
    for kind, size in zip(types, ((M, K), (K, N)), strict=True):
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        x = rng.integers(least, most, size, endpoint=True)
        if seed is None:
            x = np.where(rng.random(size) < 0.9, most if rng.random() < 0.5 or least == 0 else least, x)
        found.append(x.astype(kind))
    return found


def compared(
    case: IntegerCall,
    types: Factors,
    product: Callable[[Array, Array], Array],
    outputs: int,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
) -> None:
    """Count the elements that are not the exact sums, modulo what the result's type holds."""
    seed, largest = 0, True
    while case.outputs < outputs or largest:
        for shape in shapes:
            A, B = factors(types, shape, None if largest else seed)
            wanted = (A.astype(np.int64) @ B.astype(np.int64)).astype(case.result)  # modulo 2 to its bits
            wrong = int((product(A, B) != wanted).sum())
            case.outputs, case.wrong = case.outputs + wanted.size, case.wrong + wrong
            if largest:
                case.extreme, case.extreme_wrong = (
                    case.extreme + wanted.size,
                    case.extreme_wrong + wrong,
                )
            seed += 1
        largest = False


def main() -> None:
    """Compare all calls, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=int, default=1_000_000, help="elements of each call")
    parser.add_argument("--json", type=Path, help="keep what was found in this file")
    given = parser.parse_args()
    kept = []
    for calls in (by_torch, by_onnxruntime):
        try:
            for case, types, product in calls():
                compared(case, types, product, given.outputs)
                kept.append(asdict(case))
                print(
                    f"{case.library} {case.call} {case.a} x {case.b} -> {case.result}: {case.wrong} wrong of "
                    f"{case.outputs:,}; {case.extreme_wrong} of {case.extreme:,} of the largest factors",
                    flush=True,
                )
        except ImportError as error:
            print(f"left out: {error}")
    if given.json:
        given.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
