"""Products of 8-bit integers by the libraries of this machine: `python benchmarks/library_integers.py`.

A sum of integers is the same in every order, unless something saturates or is rounded on the way.  So each product is
compared with sums in 64 bits, none of which overflows: of factors at random, and of the largest, where vpmaddubsw,
which adds two products in 16 bits, would saturate.  `QLinearMatMul` and quantised layers round:
their sums, of fp32, plus the bias over the factors' scales, times one scale, to nearest even; then 8 bits saturate.
`--json FILE` keeps what was found for docs/libraries.md.
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
#: Quantised layers of PyTorch.
LAYER, LAYER_BIAS = "quantized.linear", "quantized.linear+bias"


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


Product = Callable[[Array, Array], Array]


def sums(a: Array, b: Array) -> Array:
    """The exact sums."""
    return np.asarray(a.astype(np.int64) @ b.astype(np.int64))


def by_torch() -> Iterator[tuple[IntegerCall, Factors, Product, Product]]:
    """`matmul` of int8, which is kept in int8, `_int_mm`, and quantised layers of each engine."""
    torch = importlib.import_module("torch")
    name = f"PyTorch {torch.__version__.partition('+')[0]}"
    yield (
        IntegerCall(name, "matmul", "int8", "int8", "int8"),
        (S8, S8),
        lambda a, b: (torch.from_numpy(a) @ torch.from_numpy(b)).numpy(),
        sums,
    )
    yield (
        IntegerCall(name, "_int_mm", "int8", "int8", "int32"),
        (S8, S8),
        lambda a, b: torch._int_mm(torch.from_numpy(a), torch.from_numpy(b)).numpy(),
        sums,
    )

    for engine in ("x86", "fbgemm", "onednn"):
        for call in (LAYER, LAYER_BIAS) if engine in torch.backends.quantized.supported_engines else ():
            made = IntegerCall(name, f"{call} ({engine})", "uint8", "int8", "uint8")
            yield made, (U8, S8), quantised_layer(torch, engine, call), requantised_by(call)


def quantised_layer(torch: Any, engine: str, call: str) -> Product:
    """`torch.ops.quantized.linear` of an engine."""

    def product(a: Array, b: Array) -> Array:
        torch.backends.quantized.engine = engine
        x = quantised(a, b)
        tensors = [
            torch._make_per_tensor_quantized_tensor(torch.from_numpy(each), float(scale), int(zero))
            for each, scale, zero in ((a, x["As"], x["Az"]), (np.ascontiguousarray(b.T), x["Bs"], x["Bz"]))
        ]
        added = torch.from_numpy(bias(b.shape[1])) if call == LAYER_BIAS else None
        packed = torch.ops.quantized.linear_prepack(tensors[1], added)
        d = torch.ops.quantized.linear(tensors[0], packed, float(x["Ds"]), int(x["Dz"]))
        return np.asarray(d.int_repr().numpy())

    return product


def bias(columns: int) -> Array:
    """A bias of a layer."""
    return np.random.default_rng(columns).standard_normal(columns).astype(np.float32)


def by_onnxruntime() -> Iterator[tuple[IntegerCall, Factors, Product, Product]]:
    """`MatMulInteger`, of each pair of types, and `QLinearMatMul`."""
    ort = importlib.import_module("onnxruntime")

    def run(operator: str, operands: dict[str, Array], result: type[np.integer[Any]]) -> Array:
        ends = [(name, x.dtype.type, (*x.shape,)) for name, x in operands.items()]
        size = len(operands["A"]), operands["B"].shape[1]
        model = onnx_model(operator, ends, ("D", result, size))
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, operands)[0])

    name = f"ONNX Runtime {ort.__version__}"
    for types in ((U8, S8), (U8, U8), (S8, S8)):
        a, b = (np.dtype(each).name for each in types)
        made = IntegerCall(name, "MatMulInteger", a, b, "int32")
        yield made, types, lambda a, b: run("MatMulInteger", {"A": a, "B": b}, np.int32), sums
    for types in ((U8, S8), (U8, U8), (S8, S8)):
        a, b = (np.dtype(each).name for each in types)
        made = IntegerCall(name, "QLinearMatMul", a, b, a)
        yield made, types, lambda a, b: run("QLinearMatMul", quantised(a, b), a.dtype.type), requantised_by()


def quantised(a: Array, b: Array) -> dict[str, Array]:
    """The operands of QLinearMatMul: scales under which 8 bits hold most of D; layers have no zero of B but 0."""
    spread = 74.0 * 74.0 * np.sqrt(a.shape[1]) / 40
    zeros = [np.array(128 if x.dtype == U8 else zero, x.dtype) for x, zero in ((a, 3), (b, 0), (a, 3))]
    scales = [np.array(x, np.float32) for x in (0.0173, 0.0119, 0.0173 * 0.0119 * spread)]
    of = [y for x in zip(scales, zeros, strict=True) for y in x]
    return dict(zip(("A", "As", "Az", "B", "Bs", "Bz", "Ds", "Dz"), (a, *of[:2], b, *of[2:]), strict=True))


def requantised_by(call: str = "") -> Product:
    """Return what QLinearMatMul or a layer makes of them."""

    def product(a: Array, b: Array) -> Array:
        x = quantised(a, b)
        total = sums(a.astype(np.int64) - x["Az"], b.astype(np.int64) - x["Bz"]).astype(np.float32)
        if call == LAYER_BIAS:
            total = total + bias(b.shape[1]) / (x["As"] * x["Bs"])
        rounded = np.rint(total * (x["As"] * x["Bs"] / x["Ds"])) + x["Dz"]
        limits = np.iinfo(a.dtype)
        return np.asarray(np.clip(rounded, limits.min, limits.max))

    return product


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
    product: Product,
    wanted_of: Product,
    outputs: int,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
) -> None:
    """Count the elements that are not what is wanted: the exact sums, modulo what the result's type holds."""
    seed, largest = 0, True
    while case.outputs < outputs or largest:
        for shape in shapes:
            A, B = factors(types, shape, None if largest else seed)
            wanted = wanted_of(A, B).astype(case.result)  # modulo 2 to its bits
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
            for case, types, product, wanted in calls():
                compared(case, types, product, wanted, given.outputs)
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
