"""Products by the libraries of this machine, explained and made again: `python benchmarks/libraries.py --replay`.

Each case is a library, a type, a shape and a number of threads, and perhaps a C.  Its structure is found from one
product by `mmaformal.explain`, and where one is not enough, from several calls; then products of fresh numbers, and of
fresh shapes where the structure has no regions of its own, are made by the library and by the structure, and compared
bit for bit.  Where a call has alpha or beta, its C is told multiplied by beta, and one factor by alpha, each rounded
first, as BLAS packs them.  torch, onnxruntime and jax are asked where they are installed.  `--only NAME` takes
cases whose name has that text, `--json FILE` keeps what was found for docs/libraries.md
(`tools/docs/libraries_table.py`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mmaformal import explain
from mmaformal.formats import FORMATS
from mmaformal.queries.explained import Explanation
from mmaformal.recorder.library import LibraryCall, draw_factors

Array = NDArray[Any]
Product = Callable[..., Array]
DTYPES: dict[str, Any] = {
    "fp32": np.float32,
    "fp64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}
#: What multiplies types that are not added as they are: a unit that some processors have, and what is widened to fp32.
#: fp32 and fp64: whatever takes them.
UNITS: dict[str, tuple[str | None, ...]] = {
    "bf16": ("sapphire_rapids TDPBF16PS", "sapphire_rapids VDPBF16PS", "datapath fma(k=1,a=bf16)"),
    "fp16": ("datapath fma(k=1,a=fp16)",),
}
#: M, N, K: a whole matrix, with edges and without, K of several blocks, one row, one column, few of both.
Shapes = dict[str, list[tuple[int, int, int]]]
SHAPES: Shapes = {
    "GEMM": [(37, 41, 78), (64, 64, 96), (96, 80, 1000), (5, 70, 130)],
    "GEMV, one column": [(200, 1, 78), (200, 1, 64)],
    "GEMV, one row": [(1, 200, 78), (1, 200, 64)],
}
RANDOM = "at random"
#: The largest M, N and K of shapes drawn at random; calls for each of these, down and across, and of one row or column.
_LARGEST, _CALLS, _OF_ONE = 300, 5, 24
#: Kinds of shapes that are asked for with C.
WITH_C = ("GEMM", RANDOM)
#: Calls that take C: of one row that is added to all, or as large as D, both as they are or times alpha and beta.
BIAS, ADDEND, GEMM = "linear+bias", "addmm", "Gemm"
#: Alpha and beta: C halved; products doubled; neither a power of two.
TIMES: tuple[tuple[float, float], ...] = ((1.0, 0.5), (2.0, 1.0), (0.3, 0.7))
#: How many powers of two C's exponents are below those of products; so narrow a D would show nothing else but C.
_BELOW = 24


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
    alpha: float = 1.0
    beta: float = 1.0
    multiplied: str = ""  #: the factor that alpha is on, A or B; empty where it is 1

    @property
    def c_rows(self) -> int:
        """The rows of C; 0 where there is none."""
        return {BIAS: 1, ADDEND: self.M, GEMM: self.M}.get(self.call.partition("(")[0], 0)

    def told(self, A: Array, B: Array, C: Sequence[Array]) -> tuple[Array, Array, list[Array]]:
        """The factors and C as `explain` and `replay` take them: times alpha and beta, each rounded first."""
        if self.multiplied == "A":
            A = (A * A.dtype.type(self.alpha)).astype(A.dtype)
        elif self.multiplied:
            B = (B * B.dtype.type(self.alpha)).astype(B.dtype)
        if self.beta != 1:
            wide = np.float64 if self.type == "fp64" else np.float32
            C = [x.astype(wide) * wide(self.beta) for x in C]
        return A, B, list(C)

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
        return torch.from_numpy(np.ascontiguousarray(x)).clone()  # where torch has it: kernels see addresses

    def array(x: Any) -> Array:
        if x.dtype == torch.bfloat16:
            return x.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return np.asarray(x.numpy())

    def linear(a: Array, b: Array, *c: Array) -> Array:
        bias = [tensor(x)[0] for x in c]
        return array(torch.nn.functional.linear(tensor(a), tensor(b).t().contiguous(), *bias))

    def addmm(alpha: float, beta: float) -> Product:
        return lambda a, b, c: array(torch.addmm(tensor(c), tensor(a), tensor(b), alpha=alpha, beta=beta))

    version = torch.__version__.partition("+")[0]
    types = ("fp32", "fp64", "bf16", "fp16")
    return {
        f"PyTorch {version} matmul": (types, lambda a, b: array(tensor(a) @ tensor(b))),
        f"PyTorch {version} linear": (types, linear),
        f"PyTorch {version} {BIAS}": (types, linear),
        f"PyTorch {version} {ADDEND}": (types, addmm(1, 1)),
        **{f"PyTorch {version} {scaled(ADDEND, *each)}": (types, addmm(*each)) for each in TIMES},
    }


def scaled(call: str, alpha: float, beta: float) -> str:
    """A call's name with its alpha and beta."""
    return f"{call}(alpha={alpha:g},beta={beta:g})"


def by_jax(threads: int) -> dict[str, tuple[tuple[str, ...], Product]]:
    """jnp.dot of JAX, compiled, on the processor."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    dot = jax.jit(jax.numpy.dot)
    return {f"JAX {jax.__version__} dot": (tuple(DTYPES), lambda a, b: np.asarray(dot(a, b)))}


def by_onnxruntime(threads: int) -> dict[str, tuple[tuple[str, ...], Product]]:
    """MatMul and Gemm of ONNX Runtime; models are written here, byte by byte, since onnx need not be installed."""
    ort = importlib.import_module("onnxruntime")
    sessions: dict[tuple[Any, ...], Any] = {}

    def run(operator: str, operands: dict[str, Array], **floats: float) -> Array:
        ends = [(name, x.dtype.type, (*x.shape,)) for name, x in operands.items()]
        key = (operator, *ends, *floats.values())
        if key not in sessions:
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            size = operands["A"].shape[0], operands["B"].shape[1]
            model = onnx_model(operator, ends, ("D", operands["A"].dtype.type, size), floats)
            sessions[key] = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return np.asarray(sessions[key].run(None, operands)[0])

    def gemm(alpha: float, beta: float) -> Product:
        return lambda a, b, c: run("Gemm", {"A": a, "B": b, "C": c}, alpha=alpha, beta=beta)

    name, types = f"ONNX Runtime {ort.__version__}", ("fp32", "fp64")
    return {
        f"{name} MatMul": (types, lambda a, b: run("MatMul", {"A": a, "B": b})),
        **{f"{name} {scaled(GEMM, *each)}": (types, gemm(*each)) for each in ((1.0, 1.0), *TIMES)},
    }


#: ONNX's numbers of types.
ONNX_TYPES: dict[Any, int] = {np.float32: 1, np.uint8: 2, np.int8: 3, np.int32: 6, np.float64: 11}
#: The name, the type and the shape of an operand of an ONNX model.
Operand = tuple[str, Any, tuple[int, ...]]


def onnx_model(
    operator: str, inputs: Sequence[Operand], output: Operand, floats: Mapping[str, float] = {}
) -> bytes:
    """An ONNX model of one operator with these attributes, in protobuf's wire format."""

    def number(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)

    def field(tag: int, value: bytes | int) -> bytes:
        if isinstance(value, int):
            return number(tag << 3) + number(value)
        return number(tag << 3 | 2) + number(len(value)) + value

    def end(tag: int, operand: Operand) -> bytes:
        name, kind, shape = operand
        dims = b"".join(field(1, field(1, size)) for size in shape)
        return field(
            tag, field(1, name.encode()) + field(2, field(1, field(1, ONNX_TYPES[kind]) + field(2, dims)))
        )

    def attribute(name: str, value: float) -> bytes:
        single = number(2 << 3 | 5) + np.float32(value).tobytes()
        return field(5, field(1, name.encode()) + single + field(20, 1))

    names = b"".join(field(1, name.encode()) for name, *_ in inputs)
    node = names + field(2, output[0].encode()) + field(4, operator.encode())
    node += b"".join(attribute(*each) for each in floats.items())
    ends = b"".join(end(11, x) for x in inputs) + end(12, output)
    return field(1, 8) + field(7, field(1, node) + field(2, b"g") + ends) + field(8, field(2, 13))


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
                        case = Case(library, call, type_, kind, M, N, K, threads)
                        case.alpha, case.beta = times(call)
                        if case.c_rows and kind not in WITH_C:
                            continue
                        if only.lower() in case.name.lower():
                            yield case, product


def times(call: str) -> tuple[float, float]:
    """Alpha and beta of a call, as `scaled` writes them."""
    _, _, said = call.rstrip(")").partition("(")
    given = dict(x.split("=") for x in said.split(",")) if said else {}
    return float(given.get("alpha", 1)), float(given.get("beta", 1))


def numbers(case: Case, M: int, N: int, K: int, seed: int) -> tuple[Array, Array]:
    """Numbers of the case's type of which half of the products are the opposites of the others, so that orders tell."""
    call = LibraryCall(FORMATS[case.type], (M, K, N))
    A, B = draw_factors(call, np.random.default_rng(seed))
    return A.view(DTYPES[case.type]), B.view(DTYPES[case.type])


def addend(case: Case, seed: int) -> list[Array]:
    """C, if the case has one: every other column 0, the others from far below the products up to their size."""
    if not case.c_rows:
        return []
    rng, size = np.random.default_rng(seed), (case.c_rows, case.N)
    exponents = rng.integers(-_BELOW, 1, size) / (2 if case.type == "fp16" else 1)
    C = rng.uniform(-2, 2, size) * 2.0 ** np.floor(exponents)
    C[:, ::2] = 0
    return [C.astype(DTYPES[case.type])]


def settled(case: Case, product: Product, timeout: float, outputs: int) -> None:
    """Find what made a product of the case, of one call or, where that does not tell or not hold, of several."""
    start = time.monotonic()
    for calls in (1, _CALLS) if case.kind != RANDOM else (_CALLS,):
        case.calls = calls
        found = explained(case, product, timeout)
        if found.verdict == "explained" and outputs:
            replayed(case, product, found, outputs)
        if found.verdict == "explained" and not case.wrong:
            break
    case.verdict, case.seconds = found.verdict, round(time.monotonic() - start, 1)
    case.structure = "" if found.structure is None else found.structure.text
    case.regions = 1 if found.regions is None else len(np.unique(found.regions.which))


def explained(case: Case, product: Product, timeout: float) -> Explanation:
    """Find what made so many calls of the case: every A of some by every B, side by side."""
    for factor in ("B", "A") if case.alpha != 1 else ("",):
        case.multiplied = factor
        for unit in UNITS.get(case.type, (None,)):
            found = explained_by(case, product, unit, timeout)
            if found.verdict == "explained":
                return found
    return found


def explained_by(case: Case, product: Product, unit: str | None, timeout: float) -> Explanation:
    """Ask `explain` of one unit."""
    down, across = (
        1 if case.calls == 1 else _OF_ONE if size == 1 else case.calls for size in (case.M, case.N)
    )
    factors_ = [numbers(case, case.M, case.N, case.K, 1 + number) for number in range(max(down, across))]
    left, right = [A for A, _ in factors_[:down]], [B for _, B in factors_[:across]]
    C = addend(case, 1)
    D = np.block([[product(A, B, *C) for B in right] for A in left])
    whole = [np.tile(np.broadcast_to(c, (case.M, case.N)), (down, across)) for c in C]
    A, B, whole = case.told(np.vstack(left), np.hstack(right), whole)
    return explain(D, A, B, *whole, call=(case.M, case.N), against=unit, timeout=timeout)


def random_shapes(count: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """M, N and K from 1 to `_LARGEST`; one in four has one row, or one column, so that GEMV's kernels are asked too."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        M, N, K = (int(x) for x in rng.integers(1, _LARGEST + 1, 3))
        kind = int(rng.integers(8))
        yield (1 if kind == 0 else M), (1 if kind == 1 else N), K


def replayed(case: Case, product: Product, found: Explanation, outputs: int) -> None:
    """Compare fresh products with what the structures give: held-out numbers, and shapes where there are no regions.

    A library may take another kernel for more rows; then the case's own shape alone is replayed.
    """
    plain = found.regions is None and not found.parts and case.kind != RANDOM and not case.c_rows
    for case.fresh_shapes in (1, 0) if plain else (0,):
        case.outputs, case.wrong, seed = 0, 0, 1000
        M, N = case.M, case.N
        if case.fresh_shapes:  # more of what there are many of
            M, N = (max(M, 4096) if N == 1 else 4 * M if M > 1 else 1), (max(N, 4096) if M == 1 else N)
        while case.outputs < outputs:
            seed += 1
            outputs_wrong(case, product, found, (M, N), seed)
        if not case.wrong:
            break


def outputs_wrong(case: Case, product: Product, found: Explanation, size: tuple[int, int], seed: int) -> None:
    """Compare one fresh product of so many rows and columns."""
    word = f"u{np.dtype(DTYPES[case.type]).itemsize}"
    A, B = numbers(case, *size, case.K, seed)
    C = addend(case, seed)
    D = product(A, B, *C).view(word)
    a, b, c = case.told(A, B, C)
    case.wrong += int((found.remade(a, b, *c) != D).sum())
    case.outputs += D.size


def with_threads(threads: int) -> None:
    """Begin anew with so many threads for OpenBLAS, OpenMP and XLA, which ask for it once, as they are loaded."""
    wanted = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    if threads == 1:
        wanted["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


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
    with_threads(given.threads)
    kept = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    shapes = {RANDOM: list(random_shapes(given.random, given.seed))} if given.random else SHAPES
    for case, product in products(given.threads, given.only, shapes):
        key = f"{case.name} {case.threads}"
        if key in kept and kept[key]["outputs"] >= given.outputs:
            continue
        start = time.monotonic()
        settled(case, product, given.timeout, given.outputs)
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
