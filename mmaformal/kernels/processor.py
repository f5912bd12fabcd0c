"""Kernels on the processor's floating point need IEEE 754's rounding, and some a fused multiply-add."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm
import numpy as np


@cache
def has_fma() -> bool:
    """Whether this processor has a fused multiply-add (64-bit ARM always does)."""
    machine = llvm.get_process_triple().partition("-")[0]
    return machine in ("aarch64", "arm64") or bool(llvm.get_host_cpu_features().get("fma"))


def check_processor() -> None:
    """Raise FloatingPointError unless this thread rounds to nearest even and keeps subnormals."""
    for kind, bits, least in ((np.float32, 24, -126), (np.float64, 53, -1022)):
        one, ulp = kind(1), kind(2.0 ** (1 - bits))
        tiny = kind(2.0**least)
        nearest = one + ulp / kind(2) == one and one + ulp + ulp / kind(2) == one + ulp + ulp
        nearest = nearest and -one - ulp / kind(2) == -one
        if not nearest or tiny / kind(2) == 0 or tiny / kind(2) + tiny / kind(2) != tiny:
            raise FloatingPointError(
                f"this thread's {np.dtype(kind).name} arithmetic is not IEEE 754's: its rounding mode was changed, or "
                "its subnormals are flushed to zero (torch.set_flush_denormal, or a library built with -ffast-math)"
            )
