"""Recording a whole product of matrices as a library makes it, for `diagnose_gemm`.

Half of the products of each element are the opposites of the others, in another order along K: their exact sum is 0, so
that D is made of rounding errors, and a wrong guess of the structure shows in most elements.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.formats import FORMATS, Format, bf16, fp16, fp32, fp64
from mmaformal.recorder.program import RecorderError
from mmaformal.recorder.rows import check_seed
from mmaformal.recordings.layouts.npz import NpzColumn, write_archive
from mmaformal.recordings.products import RecordedProduct, read_product
from mmaformal.recordings.write import replacing
from mmaformal.renamed import keywords
from mmaformal.version import __version__

WordArray = NDArray[Any]

#: Rows and columns of D that are kept of a larger one: enough to tell structures apart, and quick to explain.
KEPT = 24
_MOST = 1 << 16
#: Exponents of the factors: −4 to 4.
_SPREAD = 4
LAYOUTS = ("row-major", "column-major")


@dataclass(frozen=True, repr=False)
class LibraryCall(ShortRepr):
    """A product that a library is asked for: A (M×K) times B (K×N), one type for all."""

    fmt: Format
    shape: tuple[int, int, int]  #: M, K, N
    threads: int | None = None  #: None: as the library is set
    a_layout: str = LAYOUTS[0]
    b_layout: str = LAYOUTS[0]
    device: str = "cpu"

    def check(self) -> None:
        """Raise ValueError unless it makes sense."""
        if len(self.shape) != 3 or not all(1 <= size <= _MOST for size in self.shape) or self.shape[1] < 2:
            raise ValueError(f"shape is M, K, N of 1 to {_MOST}, and K at least 2, not {self.shape}")
        for name in ("a_layout", "b_layout"):
            if getattr(self, name) not in LAYOUTS:
                raise ValueError(f"{name} is {' or '.join(LAYOUTS)}, not {getattr(self, name)!r}")
        if self.threads is not None and not 1 <= self.threads <= 1024:
            raise ValueError(f"threads is {self.threads}; 1 to 1024 make sense")


@keywords(threads="jobs")
def record_product(
    library: str,
    path: str | Path,
    *,
    type: str | None = None,
    shape: tuple[int, int, int] = (64, 1024, 64),
    jobs: int | None = None,
    a_layout: str = LAYOUTS[0],
    b_layout: str = LAYOUTS[0],
    device: str = "cpu",
    seed: int = 0,
) -> RecordedProduct:
    """Record A·B as a library computes it, as an `.npz` (`mmaformal/recordings/products.py` has the layout).

    library: torch or numpy.  type: of A, B and D: bf16, fp16, fp32 or fp64; bf16 of torch and fp32 of numpy if it is
    not given.  jobs: threads of the library.  device: cpu, or what torch calls a GPU.
    Of a larger D, 24 rows and columns are kept.  Raises RecorderError, one line, for what is missing.
    """
    if library not in LIBRARIES:
        raise RecorderError(f"products are recorded of {' and '.join(LIBRARIES)}, not of {library!r}")
    if type is None:
        type = _USUAL[library]
    if type not in FORMATS or FORMATS[type] not in _TYPES:
        raise RecorderError(f"products are recorded of {', '.join(map(str, _TYPES))}, not of {type!r}")
    call = LibraryCall(FORMATS[type], shape, jobs, a_layout, b_layout, device)
    call.check()
    check_seed(seed)
    path = Path(path)
    if path.suffix != ".npz":
        raise RecorderError(f"{path}: a recording is written as .npz")
    rng = np.random.default_rng(seed)
    A, B = draw_factors(call, rng)
    D, told = LIBRARIES[library](call, A, B)
    rows, columns = (np.sort(rng.permutation(size)[:KEPT]) for size in D.shape)
    kept = {"A": A[rows], "B": B[:, columns], "D": D[np.ix_(rows, columns)], "rows": rows, "columns": columns}
    meta = {
        "kind": "gemm",
        "cpu": processor(),
        **told,
        "shape": list(call.shape),
        "threads": jobs,
        "a_layout": a_layout,
        "b_layout": b_layout,
        **{f"{name}_format": str(call.fmt) for name in "abd"},
        "seed": seed,
        "note": "A (rows, K), B (K, columns), D: the rows and columns named of a larger product; C was absent",
        "source": f"mmaformal {__version__}, record",
    }
    with replacing(path) as new:
        write_archive(new, {name: NpzColumn(x.dtype, x.shape, iter([x])) for name, x in kept.items()}, meta)
        read_product(new)
    return read_product(path)


def draw_factors(call: LibraryCall, rng: np.random.Generator) -> tuple[WordArray, WordArray]:
    """A and B as bit patterns; every product along K but, of an odd K, the last has its opposite elsewhere.

    That one is about as small as what additions lose: else D would be it, and tell nothing of them.
    """
    m, k, n = call.shape
    half, fmt = k // 2, call.fmt
    order = rng.permutation(2 * half)
    A, B = _codes(fmt, (m, k), rng), _codes(fmt, (k, n), rng)
    A[:, half : 2 * half] = A[:, :half] ^ fmt.word.type(fmt.sign_mask)
    B[half : 2 * half] = B[:half]
    A[:, : 2 * half], B[: 2 * half] = A[:, order], B[order]
    if k % 2:
        below = (fp64 if fmt == fp64 else fp32).fraction_bits - _SPREAD
        exponent = max(fmt.bias - below, 1)
        A[:, -1] &= ~fmt.word.type((1 << fmt.exponent_bits) - 1 << fmt.fraction_bits)
        A[:, -1] |= fmt.word.type(exponent << fmt.fraction_bits)
    return A, B


def _codes(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> WordArray:
    exponent = rng.integers(fmt.bias - _SPREAD, fmt.bias + _SPREAD, shape, np.uint64, endpoint=True)
    sign = rng.integers(0, 2, shape, np.uint64) * np.uint64(fmt.sign_mask)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape, np.uint64)
    codes: WordArray = (sign | exponent << np.uint64(fmt.fraction_bits) | fraction).astype(fmt.word)
    return codes


# ---- libraries -----------------------------------------------------------------------------------------------

#: Torch's name of each type.
_TYPES = {bf16: "bfloat16", fp16: "float16", fp32: "float32", fp64: "float64"}
#: The type that a library multiplies where none is named.
_USUAL = {"torch": "bf16", "numpy": "fp32"}


class _Tensor(Protocol):
    """The methods used of a tensor of torch, which need not be here to be typed."""

    def view(self, dtype: object) -> _Tensor: ...
    def to(self, device: str) -> _Tensor: ...
    def t(self) -> _Tensor: ...
    def contiguous(self) -> _Tensor: ...
    def cpu(self) -> _Tensor: ...
    def numpy(self) -> WordArray: ...


class _Torch(Protocol):
    """The functions used of torch, which need not be here to be typed."""

    __version__: str

    def from_numpy(self, x: WordArray) -> _Tensor: ...
    def matmul(self, a: _Tensor, b: _Tensor) -> _Tensor: ...
    def get_num_threads(self) -> int: ...
    def set_num_threads(self, n: int) -> None: ...
    def get_float32_matmul_precision(self) -> str: ...


def _by_torch(call: LibraryCall, A: WordArray, B: WordArray) -> tuple[WordArray, Mapping[str, object]]:
    try:
        module = importlib.import_module("torch")
    except ImportError as error:
        raise RecorderError(f"no torch here ({error}): pip install torch") from None
    torch = cast(_Torch, module)
    signed = np.dtype(f"int{call.fmt.word_bits}")

    def tensor(words: WordArray, layout: str) -> _Tensor:
        found = torch.from_numpy(words.view(signed).copy()).view(getattr(module, _TYPES[call.fmt]))
        found = found.to(call.device)
        return found if layout == LAYOUTS[0] else found.t().contiguous().t()

    try:
        with _threads(torch, call.threads):
            d = torch.matmul(tensor(A, call.a_layout), tensor(B, call.b_layout))
    except (RuntimeError, AssertionError) as error:
        raise RecorderError(f"torch: {' '.join(str(error).split())[:300]}") from None
    found = d.cpu().contiguous().view(getattr(module, signed.name)).numpy().view(call.fmt.word)
    parts = re.search(r"(?:oneDNN|MKL-DNN) v([\d.]+)", module.__config__.show())
    told = {"library": f"PyTorch {torch.__version__}{f' (oneDNN {parts[1]})' if parts else ''}, torch.matmul"}
    if not call.device.startswith("cpu"):
        told |= {"gpu": module.cuda.get_device_name(call.device)}
    if call.fmt is fp32:
        told |= {"float32_matmul_precision": torch.get_float32_matmul_precision()}
    return found, told


@contextmanager
def _threads(torch: _Torch, threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _by_numpy(call: LibraryCall, A: WordArray, B: WordArray) -> tuple[WordArray, Mapping[str, object]]:
    if call.fmt not in (fp32, fp64):
        raise RecorderError(f"numpy multiplies fp32 and fp64 by a BLAS, not {call.fmt}")
    if call.device != "cpu" or call.threads is not None:
        raise RecorderError("numpy's BLAS runs on the cpu, and takes its threads from OMP_NUM_THREADS")
    floats = np.dtype(f"float{call.fmt.word_bits}")
    a, b = (
        x.view(floats) if layout == LAYOUTS[0] else np.asfortranarray(x.view(floats))
        for x, layout in ((A, call.a_layout), (B, call.b_layout))
    )
    threads = os.environ.get("OMP_NUM_THREADS")
    return np.matmul(a, b).view(call.fmt.word), {
        "library": f"NumPy {np.__version__}, np.matmul",
        "OMP_NUM_THREADS": threads,
    }


#: The function of each library that computes the bit patterns of D, and says what it is.
LIBRARIES: Mapping[
    str, Callable[[LibraryCall, WordArray, WordArray], tuple[WordArray, Mapping[str, object]]]
] = {
    "torch": _by_torch,
    "numpy": _by_numpy,
}


def processor() -> str:
    """Return the name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    if sys.platform == "linux" and info.exists():
        first = info.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        pairs = (line.partition(":") for line in first.splitlines())
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        if name := fields.get("model name"):
            return f"{name} (family {fields.get('cpu family')}, model {fields.get('model')})"
    return platform.processor() or platform.machine()
