"""Products of matrices of codes by Triton: on CUDA tensors compiled for the GPU, on others in Triton's interpreter.

Triton comes with PyTorch for CUDA (`pip install 'mmaformal[triton]'` elsewhere); a kernel is compiled when it is first
used, and Triton keeps it on disk.
"""

from __future__ import annotations

import linecache
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch

from mmaformal.formats import Format
from mmaformal.spec import DotAdd
from mmaformal.torch.tensors import Tensor
from mmaformal.torch.triton_source import NoSourceError, repeated, source

#: rows and columns of a tile: one output for each thread, whose registers hold its products
_TILE = 8, 16
#: what Triton is told; no kernel computes in floating point
OPTIONS = {"num_warps": 4, "enable_fp_fusion": False}
#: products of a batch that a grid takes
_MOST = 65_535
#: Triton's interpreter takes as long for a small tile.
_INTERPRETED = 64, 64

_lock = threading.Lock()  # z3, by which a kernel is traced, is for one thread


@lru_cache
def kernel_of(spec: DotAdd, interpreted: bool, finite: bool = False) -> Any:
    """The kernel as Triton compiles it, or interprets it; `finite`: of numbers alone, None if there is none.

    Raises as `source`, and ImportError without Triton.
    """
    with _lock, _interpreting(interpreted):
        try:
            import triton  # noqa: F401
        except ImportError:
            message = "products of CUDA tensors need Triton: pip install 'mmaformal[triton]'"
            raise ImportError(message) from None
        try:
            text = source(spec, finite)
        except NoSourceError:
            if finite:
                return None
            raise
        name = f"<triton kernel of {spec.parameters.algorithm} {abs(hash(spec)):x} {interpreted} {finite}>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # where Triton reads it
        module: dict[str, Any] = {"__name__": "mmaformal.torch.generated"}
        exec(compile(text, name, "exec"), module)
        return module["kernel"]


@contextmanager
def _interpreting(wanted: bool) -> Iterator[None]:
    """Triton asks its variable as it reads a kernel."""
    before = os.environ.get("TRITON_INTERPRET")
    os.environ["TRITON_INTERPRET"] = "1" if wanted else "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRITON_INTERPRET"]
        else:
            os.environ["TRITON_INTERPRET"] = before


def signed_type(fmt: Format) -> torch.dtype:
    """The signed type of torch's in which codes of a format are held."""
    return {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[fmt.word_bits]


def run_kernel(
    spec: DotAdd,
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
) -> Tensor:
    """Codes of D = A·B + C, (batch, M, N), of `signed_type`; K is taken in instructions, its end padded with zeros.

    a: (batch, M, K), b: (batch, K, N), c: (batch, M, N) or None for +0, in words of their formats; scales
    (batch, M, ⌈K/S⌉) and (batch, ⌈K/S⌉, N), where `spec` has them.
    """
    (batch, m, k), n = a.shape, b.shape[2]
    if batch > _MOST:
        given = a, b, c, scale_a, scale_b
        parts = [[None if x is None else x[i : i + _MOST] for x in given] for i in range(0, batch, _MOST)]
        return torch.cat([run_kernel(spec, *part) for part in parts])
    of_d = signed_type(spec.d_format)
    d = torch.empty((batch, m, n), dtype=of_d, device=a.device)
    if not d.numel():
        return d
    sides = (a, b) if scale_a is None or scale_b is None else (scale_a, scale_b)
    strides = [*a.stride(), *b.stride()]
    strides += [0] * 6 if scale_a is None or scale_b is None else [*scale_a.stride(), *scale_b.stride()]
    blocks = 0 if scale_a is None else scale_a.shape[2]
    steps = max(-(-k // spec.k), 1) * (spec.k // repeated(spec).k)
    rows, columns = _TILE if a.is_cuda else _INTERPRETED
    options = OPTIONS if a.is_cuda else {}
    grid = -(-m // rows) * -(-n // columns), batch
    given = d if c is None else c.contiguous()
    seen = torch.ones(d.shape, dtype=torch.int8, device=a.device)
    with torch.cuda.device_of(a):
        for finite in (True, False):  # once more with all of them, if any is no number
            if not (finite or bool(seen.any())) or (kernel := kernel_of(spec, not a.is_cuda, finite)) is None:
                continue
            kernel[grid](
                a, b, *sides, given, d, seen, m, n, k, blocks, steps, *strides,
                HAS_C=c is not None, ROWS=rows, COLUMNS=columns, **options,
            )  # fmt: skip
    return d
