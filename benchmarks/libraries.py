"""Products by the libraries of this machine, explained and made again: `python benchmarks/libraries.py --replay`.

Each case is a library, a type, a shape and a number of threads.  Its structure is found from one product by
`mmaformal.explain`; then products of fresh numbers, and of fresh shapes where the structure has no regions of its own,
are made by the library and by the structure, and compared bit for bit.  torch, onnxruntime and jax are asked where they
are installed.  `--only NAME` takes cases whose name has that text, `--json FILE` keeps what was found for
docs/libraries.md (`tools/docs/libraries_table.py`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mmaformal import explain
from mmaformal.formats import FORMATS
from mmaformal.queries.explained import Explanation
from mmaformal.recorder.library import LibraryCall, factors

Array = NDArray[Any]
Product = Callable[[Array, Array], Array]
DTYPES: dict[str, Any] = {
    "fp32": np.float32,
    "fp64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}
#: Types that this processor has no unit for, which are widened to fp32.  fp32 and fp64: whatever takes them.
UNITS = {"bf16": "datapath fma(k=1,a=bf16)", "fp16": "datapath fma(k=1,a=fp16)"}
#: M, N, K: a whole matrix, with edges and without, K of several blocks, one row, one column, few of both.
Shapes = dict[str, list[tuple[int, int, int]]]
SHAPES: Shapes = {
    "GEMM": [(37, 41, 78), (64, 64, 96), (96, 80, 1000), (5, 70, 130)],
    "GEMV, one column": [(200, 1, 78), (200, 1, 64)],
    "GEMV, one row": [(1, 200, 78), (1, 200, 64)],
}
#: The largest M, N and K of shapes drawn at random; calls for each of these, down and across, and of one row or column.
_LARGEST, _CALLS, _OF_ONE = 300, 5, 24


@dataclass
class Case:
    """A product that a library is asked for, and what became of it."""

    library: str
    call: str
    type: str
    kind: str
    M: int
    N: int
    K: int
    threads: int
    verdict: str = ""
    structure: str = ""
    regions: int = 0
    outputs: int = 0
    wrong: int = 0
    fresh_shapes: int = 0
    seconds: float = 0.0
    calls: int = 1

    @property
    def name(self) -> str:
        """Words to choose it by."""
        return f"{self.library} {self.call} {self.type} {self.M}x{self.K}x{self.N}"


def by_numpy(threads: int) -> dict[str, tuple[tuple[str, ...], Product]]:
    """NumPy's product, of the BLAS that it has."""
    return {f"NumPy {np.__version__} matmul": (("fp32", "fp64"), lambda a, b: a @ b)}


def by_torch(threads: int) -> dict[str, tuple[tuple[str, ...], Product]]:
    """matmul and linear of PyTorch on the processor."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)

    def tensor(x: Array) -> Any:
        if x.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(x.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(np.ascontiguousarray(x))

    def array(x: Any) -> Array:
        if x.dtype == torch.bfloat16:
            return x.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return np.asarray(x.numpy())

    version = torch.__version__.partition("+")[0]
    types = ("fp32", "fp64", "bf16", "fp16")
    return {
        f"PyTorch {version} matmul": (types, lambda a, b: array(tensor(a) @ tensor(b))),
        f"PyTorch {version} linear": (
            types,
            lambda a, b: array(torch.nn.functional.linear(tensor(a), tensor(b).t().contiguous())),
        ),
    }


def by_jax(threads: int) -> dict[str, tuple[tuple[str, ...], Product]]:
    """jnp.dot of JAX, compiled, on the processor."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    dot = jax.jit(jax.numpy.dot)
    return {f"JAX {jax.__version__} dot": (tuple(DTYPES), lambda a, b: np.asarray(dot(a, b)))}


def by_onnxruntime(threads: int) -> dict[str, tuple[tuple[str, ...], Product]]:
    """MatMul of ONNX Runtime; the model is written here, byte by byte, since onnx need not be installed."""
    ort = importlib.import_module("onnxruntime")
    sessions: dict[tuple[Any, ...], Any] = {}

    def product(a: Array, b: Array) -> Array:
        key = (a.dtype, *a.shape, b.shape[1])
        if key not in sessions:
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            model = matmul_model(a.dtype, a.shape[0], a.shape[1], b.shape[1])
            sessions[key] = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return np.asarray(sessions[key].run(None, {"A": a, "B": b})[0])

    return {f"ONNX Runtime {ort.__version__} MatMul": (("fp32", "fp64"), product)}


def matmul_model(dtype: Any, M: int, K: int, N: int) -> bytes:
    """An ONNX model of one MatMul, in protobuf's wire format."""

    def number(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)

    def field(tag: int, value: bytes | int) -> bytes:
        if isinstance(value, int):
            return number(tag << 3) + number(value)
        return number(tag << 3 | 2) + number(len(value)) + value

    def matrix(name: bytes, shape: tuple[int, int]) -> bytes:
        dims = b"".join(field(1, field(1, size)) for size in shape)
        kind = {np.dtype(np.float32): 1, np.dtype(np.float64): 11}[np.dtype(dtype)]
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))

    node = field(1, b"A") + field(1, b"B") + field(2, b"D") + field(4, b"MatMul")
    ends = field(11, matrix(b"A", (M, K))) + field(11, matrix(b"B", (K, N))) + field(12, matrix(b"D", (M, N)))
    return field(1, 8) + field(7, field(1, node) + field(2, b"g") + ends) + field(8, field(2, 13))


RANDOM = "at random"
LIBRARIES = {"numpy": by_numpy, "torch": by_torch, "onnxruntime": by_onnxruntime, "jax": by_jax}


def products(threads: int, only: str, of: Shapes) -> Iterator[tuple[Case, Product]]:
    """All cases of these shapes, of the libraries that there are."""
    for make in LIBRARIES.values():
        try:
            calls = make(threads)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for called, (types, product) in calls.items():
            library, _, call = called.rpartition(" ")
            for type_ in types:
                for kind, shapes in of.items():
                    for M, N, K in shapes:
                        calls = _CALLS if kind == RANDOM else 1
                        case = Case(library, call, type_, kind, M, N, K, threads, calls=calls)
                        if only.lower() in case.name.lower():
                            yield case, product


def numbers(case: Case, M: int, N: int, K: int, seed: int) -> tuple[Array, Array]:
    """Numbers of the case's type of which half of the products are the opposites of the others, so that orders tell."""
    call = LibraryCall(FORMATS[case.type], (M, K, N))
    A, B = factors(call, np.random.default_rng(seed))
    return A.view(DTYPES[case.type]), B.view(DTYPES[case.type])


def explained(case: Case, product: Product, timeout: float) -> Explanation:
    """Find what made a product of the case, or several: every A of some by every B, side by side."""
    down, across = (
        1 if case.calls == 1 else _OF_ONE if size == 1 else case.calls for size in (case.M, case.N)
    )
    factors_ = [numbers(case, case.M, case.N, case.K, 1 + number) for number in range(max(down, across))]
    left, right = [A for A, _ in factors_[:down]], [B for _, B in factors_[:across]]
    D = np.block([[product(A, B) for B in right] for A in left])
    found = explain(
        D,
        np.vstack(left),
        np.hstack(right),
        call=(case.M, case.N),
        against=UNITS.get(case.type),
        timeout=timeout,
    )
    case.verdict, case.seconds = found.verdict, round(found.seconds, 1)
    if found.structure is not None:
        case.structure = found.structure.text
        case.regions = 1 if found.regions is None else len(np.unique(found.regions.which))
    return found


def random_shapes(count: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """M, N and K from 1 to `_LARGEST`; one in four has one row, or one column, so that GEMV's kernels are asked too."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        M, N, K = (int(x) for x in rng.integers(1, _LARGEST + 1, 3))
        kind = int(rng.integers(8))
        yield (1 if kind == 0 else M), (1 if kind == 1 else N), K


def replayed(case: Case, product: Product, found: Explanation, outputs: int) -> None:
    """Compare fresh products with what the structures give: held-out numbers, and shapes where there are no regions."""
    seed = 1000
    word = f"u{np.dtype(DTYPES[case.type]).itemsize}"
    while case.outputs < outputs:
        seed += 1
        M, N = case.M, case.N
        if (
            found.regions is None and not found.parts and case.kind != RANDOM
        ):  # more of what there are many of
            M, N = (max(M, 4096) if N == 1 else 4 * M if M > 1 else 1), (max(N, 4096) if M == 1 else N)
            case.fresh_shapes = 1
        A, B = numbers(case, M, N, case.K, seed)
        D, made = product(A, B).view(word), found.remade(A, B)
        case.wrong += int((made != D).sum())
        case.outputs += D.size


def main() -> None:
    """Explain all cases, make fresh products of those explained, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each product")
    parser.add_argument("--outputs", type=int, default=0, help="elements of fresh products to compare")
    parser.add_argument("--random", type=int, default=0, help="so many shapes at random, not the usual ones")
    parser.add_argument("--seed", type=int, default=0, help="of the shapes drawn")
    parser.add_argument("--json", type=Path, help="keep the cases in this file, with what it has")
    given = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false" if given.threads == 1 else "")
    kept = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    shapes = {RANDOM: list(random_shapes(given.random, given.seed))} if given.random else SHAPES
    for case, product in products(given.threads, given.only, shapes):
        key = f"{case.name} {case.threads}"
        if key in kept and kept[key]["outputs"] >= given.outputs:
            continue
        start = time.monotonic()
        found = explained(case, product, given.timeout)
        if found.verdict == "explained" and given.outputs:
            replayed(case, product, found, given.outputs)
        kept[key] = asdict(case)
        held = f"{case.wrong} wrong of {case.outputs:,}" if case.outputs else ""
        print(
            f"{case.name}: {case.verdict}; {case.structure}; {held} ({time.monotonic() - start:.0f} s)",
            flush=True,
        )
        if given.json:
            given.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
