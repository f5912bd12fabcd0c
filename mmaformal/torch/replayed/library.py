"""Elementwise functions of fp32 that kernels call within themselves, taken from the libraries that compute them."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch

from mmaformal.torch.replayed.lanes import F32

#: Places that are dropped, of whole registers.
_FIRST = 16


def exp(x: F32) -> F32:
    """Returns e^x as vectors of softmax's kernels take it.

    No operator of torch's is that function alone (`torch.exp` is another library's).  The gradient of log-softmax is
    g − e^y·Σg: with g = (−1, 0, …, 0) it is e^y in all places but the first ones, which are dropped.
    """
    y = torch.zeros(1, _FIRST + x.size)
    y[0, _FIRST:] = torch.from_numpy(np.ascontiguousarray(x).reshape(-1))
    gradient = torch.zeros_like(y)
    gradient[0, 0] = -1
    with torch._C.DisableTorchFunction():
        found = torch._log_softmax_backward_data(gradient, y, 1, torch.float32)
    return np.asarray(found[0, _FIRST:].numpy(), np.float32).reshape(x.shape)


@cache
def _of_c(name: str) -> Callable[[float], float]:
    """Returns a function of the C library's of one float; raises OSError where there is no such library."""
    function: Callable[[float], float] = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]  # type: ignore[attr-defined]
    return function


def _each(function: Callable[[float], float], x: F32) -> F32:
    made = [function(float(each)) for each in x.ravel()]
    return np.array(made, np.float64).astype(np.float32).reshape(x.shape)


def exp_of_one(x: F32) -> F32:
    """Returns C's `expf` of each number."""
    return _each(_of_c("expf"), x)


def log_of_one(x: F32) -> F32:
    """Returns C's `logf` of each number."""
    return _each(_of_c("logf"), x)


def wide_exp_of_one(x: F32) -> F32:
    """Returns C's `exp` of each number, in fp64, rounded to fp32."""
    return _each(math.exp, x)
