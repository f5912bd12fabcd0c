"""torch's functions that hold products, as Python calls them: what stands for each, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import TypeAlias

import torch
from torch.nn import functional

from mmaformal.torch import calls, convolutions
from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.attention import attention
from mmaformal.torch.calls import addition, autocast_device, wide_matmul
from mmaformal.torch.einsum import einsum
from mmaformal.torch.tensors import Call, Tensor

TensorFunction: TypeAlias = Callable[..., Tensor]

#: names that torch gives a parameter, and ours
_TWO = {"self": "input", "mat2": "other", "vec": "other", "tensor": "other"}
_SUM = {"self": "input", "mat": "a", "mat1": "a", "batch1": "a", "vec": "b", "mat2": "b", "batch2": "b"}
_SELF = {"self": "input", "A": "input"}


def _spelled(function: TensorFunction, names: Mapping[str, str]) -> TensorFunction:
    """The function, which takes parameters by torch's names too."""

    @wraps(function)
    def call(arithmetic: Arithmetic, *args: Call, **kwargs: Call) -> Tensor:
        return function(arithmetic, *args, **{names.get(name, name): x for name, x in kwargs.items()})

    return call


#: sums of a tensor and a product
SUMS: Mapping[str, TensorFunction] = {
    "addmm": _spelled(addition("addmm", wide_matmul), _SUM),
    "addmv": _spelled(addition("addmv", wide_matmul, cast=False), _SUM),
    "baddbmm": _spelled(addition("baddbmm", wide_matmul), _SUM),
    "addbmm": _spelled(addition("addbmm", calls.summed_bmm), _SUM),
}

#: functions of one name in `torch`, as methods and as operators
NAMED: Mapping[str, TensorFunction] = {
    **dict.fromkeys(("matmul", "mm", "bmm"), _spelled(calls.matmul_of, _TWO)),
    **dict.fromkeys(("mv", "dot", "vdot"), _spelled(calls.vectors, _TWO)),
    **SUMS,
    "inner": _spelled(calls.inner, _TWO),
    "matrix_power": _spelled(calls.matrix_power, _SELF),
}

#: operators that other functions are made of
OPERATORS: Mapping[str, TensorFunction] = {
    **NAMED,
    "linear": calls.linear_of,
    "bilinear": calls.bilinear,
    "scaled_dot_product_attention": attention,
    "linalg_matmul": _spelled(calls.matmul_of, _TWO),
    "linalg_multi_dot": calls.chain,
    "linalg_matrix_power": _spelled(calls.matrix_power, _SELF),
    "linalg_vecdot": calls.vecdot,
    "chain_matmul": calls.chain,
    "einsum": einsum,
    "cdist": calls.distances,
    "_euclidean_dist": calls.euclidean,
    "_grouped_mm": _spelled(calls.grouped, {"self": "mat_a", "mat2": "mat_b"}),
    "convolution": convolutions.general_convolution,
    "_convolution": convolutions.general_convolution,
    "convolution_overrideable": convolutions.general_convolution,
    "conv_tbc": _spelled(convolutions.time_batch_channel, _SELF),
    **{f"conv{dims}d": convolutions.convolution(dims) for dims in (1, 2, 3)},
    **{f"conv_transpose{dims}d": convolutions.transposed_convolution(dims) for dims in (1, 2, 3)},
}

#: operators that write into their first operand
IN_PLACE: Mapping[str, TensorFunction] = {name + "_": function for name, function in SUMS.items()}


def _in_place(
    function: TensorFunction, arithmetic: Arithmetic, input: Tensor, *rest: Tensor, **options: Call
) -> Tensor:
    """The result, written into `input`, whose type it has; autocast leaves these alone, as torch's does."""
    with torch.autocast(autocast_device(input), enabled=False):
        return input.copy_(function(arithmetic, input, *rest, **options))


def _reflected(arithmetic: Arithmetic, other: Tensor, input: Tensor) -> Tensor:
    return calls.matmul_of(arithmetic, input, other)


def overloads(name: str) -> list[Call]:
    """The operator `torch.ops.aten.NAME` and its forms; none where this torch does not have it."""
    packet = getattr(torch.ops.aten, name, None)
    return [] if packet is None else [packet, *(getattr(packet, each) for each in packet.overloads())]


def _table() -> dict[Call, TensorFunction]:
    """torch's functions and what stands for each."""
    found: dict[Call, TensorFunction] = {}
    for name, function in NAMED.items():
        found[getattr(torch, name)] = function
        found[getattr(torch.Tensor, name)] = function
    for name, function in OPERATORS.items():
        found |= dict.fromkeys(overloads(name), function)
    for name, function in IN_PLACE.items():
        written = partial(_in_place, function)
        found |= dict.fromkeys([getattr(torch.Tensor, name), *overloads(name)], written)
    for name in ("linalg.matmul", "linalg.multi_dot", "linalg.matrix_power", "linalg.vecdot"):
        found[getattr(torch.linalg, name.removeprefix("linalg."))] = OPERATORS[name.replace(".", "_")]
    for name in ("convolution", "_convolution", "conv_tbc", "cdist", "_grouped_mm", "_euclidean_dist"):
        if hasattr(torch, name):
            found[getattr(torch, name)] = OPERATORS[name]
    for dims in (1, 2, 3):
        for name in (f"conv{dims}d", f"conv_transpose{dims}d"):
            found[getattr(torch, name)] = OPERATORS[name]
    return found | {
        torch.Tensor.__matmul__: OPERATORS["matmul"],
        torch.Tensor.__rmatmul__: _reflected,
        torch.chain_matmul: lambda arithmetic, *tensors: calls.chain(arithmetic, tensors),
        torch.tensordot: calls.tensordot,
        torch.einsum: einsum,
        functional.linear: calls.linear_of,
        functional.bilinear: calls.bilinear,
        functional.scaled_dot_product_attention: attention,
        functional.conv_tbc: OPERATORS["conv_tbc"],
    }


#: what stands for a function of torch's
REPLACED: Mapping[Call, TensorFunction] = _table()

_RECURRENT = "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"
_SPARSE = "_sparse_mm _sparse_addmm hspmm smm sspaddmm sparse_sampled_addmm _sparse_sparse_matmul"
_SCALED = "_scaled_mm _scaled_mm_v2 _scaled_grouped_mm _scaled_grouped_mm_v2"

_REASONS = {
    _RECURRENT: "a recurrent layer holds products that do not run through an arithmetic",
    _SPARSE: "a product of sparse tensors does not run through an arithmetic; use dense ones (.to_dense())",
    _SCALED: "its operands have scales of their own; multiply dequantised ones, which the arithmetic scales",
}


def _refused() -> dict[Call, str]:
    found: dict[Call, str] = {}
    for names, reason in _REASONS.items():
        for name in names.split():
            holders = [torch, torch.Tensor, torch.sparse]
            given = [getattr(each, name) for each in holders if hasattr(each, name)]
            found |= dict.fromkeys([*given, *overloads(name)], reason)
    return found | dict.fromkeys(
        [torch.sparse.mm, torch.sparse.addmm, torch.sparse.sampled_addmm], _REASONS[_SPARSE]
    )


#: functions that hold products which no mode sees, and why each is refused
REFUSED: Mapping[Call, str] = _refused()
