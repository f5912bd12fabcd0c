"""`with arithmetic(instruction):`, a mode in which torch's functions of products run through an instruction.

A mode sees what is called in its thread, above autograd and autocast, and `torch.compile` traces it.  Products that
torch computes within another function are not seen; recurrent layers, which are such, are refused.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from mmaformal.instruction import Instruction
from mmaformal.torch import calls
from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.calls import addition, wide_matmul
from mmaformal.torch.einsum import einsum
from mmaformal.torch.tensors import Call, Tensor

Function: TypeAlias = Callable[..., Tensor]


def _table() -> dict[Call, Function]:
    """torch's functions and what stands for each; in-place forms are of their own."""
    sums = {
        "addmm": addition("addmm", wide_matmul),
        "addmv": addition("addmv", wide_matmul),
        "baddbmm": addition("baddbmm", wide_matmul),
        "addbmm": addition("addbmm", calls.summed_bmm),
    }
    named = (
        dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "vdot"), calls.matmul_of)
        | sums
        | {"inner": _inner}
    )
    found: dict[Call, Function] = {}
    for name, function in named.items():
        found[getattr(torch, name)] = function
        found[getattr(torch.Tensor, name)] = function
    for name, function in sums.items():
        found[getattr(torch.Tensor, name + "_")] = partial(_in_place, function)
    found |= {
        torch.Tensor.__matmul__: calls.matmul_of,
        torch.Tensor.__rmatmul__: _reflected,
        torch.linalg.matmul: calls.matmul_of,
        torch.linalg.multi_dot: calls.chain,
        torch.linalg.vecdot: _vecdot,
        torch.chain_matmul: lambda arithmetic, *tensors: calls.chain(arithmetic, tensors),
        torch.tensordot: calls.tensordot,
        torch.einsum: einsum,
        functional.linear: calls.linear_of,
        functional.bilinear: calls.bilinear,
        functional.scaled_dot_product_attention: calls.attention,
    }
    for dims in (1, 2, 3):
        found[getattr(torch, f"conv{dims}d")] = calls.convolution(dims)
        found[getattr(torch, f"conv_transpose{dims}d")] = calls.transposed_convolution(dims)
    return found


def _inner(arithmetic: Arithmetic, input: Tensor, other: Tensor) -> Tensor:
    return calls.tensordot(arithmetic, input, other, ([-1], [-1]))


def _vecdot(arithmetic: Arithmetic, x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    a, b = (each.movedim(dim, -1) for each in torch.broadcast_tensors(x, y))
    return calls.matmul_of(arithmetic, a.unsqueeze(-2), b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def _reflected(arithmetic: Arithmetic, other: Tensor, input: Tensor) -> Tensor:
    return calls.matmul_of(arithmetic, input, other)


def _in_place(
    function: Function, arithmetic: Arithmetic, input: Tensor, *rest: Tensor, **options: Call
) -> Tensor:
    return input.copy_(function(arithmetic, input, *rest, **options))


def _body_of(function: Call) -> Function:
    """A function of torch's in Python that asks first whether a mode is there, without that question."""
    seen = dict(function.__globals__) | {"has_torch_function": lambda _: False}
    body = types.FunctionType(function.__code__, seen, function.__name__, function.__defaults__)
    body.__kwdefaults__ = function.__kwdefaults__
    return body


#: what stands for a function of torch's
REPLACED: Mapping[Call, Function] = _table()

_attention_forward = functional.multi_head_attention_forward
_attention_body = _body_of(_attention_forward)

#: functions that hold products which no mode sees
REFUSED: frozenset[Call] = frozenset(
    getattr(torch, name)
    for name in (
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
    )
)

_entered = threading.local()


class Mode(TorchFunctionMode):
    """What `arithmetic` returns; `None` is torch's own arithmetic, within another mode too."""

    def __init__(self, arithmetic: Arithmetic | None) -> None:
        super().__init__()
        self.arithmetic = arithmetic
        self.hidden = 0  #: how many modes were entered within this one

    def __enter__(self) -> Mode:
        if self.hidden or self in _stack():
            raise RuntimeError("this arithmetic was entered already")
        for each in _stack():
            each.hidden += 1
        _stack().append(self)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _stack().remove(self)
        for each in _stack():
            each.hidden -= 1

    def __torch_function__(
        self, func: Call, types: object, args: tuple[Call, ...] = (), kwargs: dict[str, Call] | None = None
    ) -> Call:
        kwargs = kwargs or {}
        if self.hidden or self.arithmetic is None:
            return func(*args, **kwargs)
        if func is _attention_forward:
            with self._again():
                return _attention_body(*args, **kwargs)
        if (
            func is torch.Tensor.unflatten
        ):  # a method in Python, whose `super()` torch.compile does not trace in a mode
            return torch.unflatten(*args, **kwargs)
        if func in REFUSED:
            raise NotImplementedError(f"{func.__name__} holds products that do not run through an arithmetic")
        if func not in REPLACED or _exact(args):
            return func(*args, **kwargs)
        if kwargs.pop("out", None) is not None:
            raise TypeError(f"{func.__name__} takes no out= within an arithmetic")
        return REPLACED[func](self.arithmetic, *args, **kwargs)

    def _again(self) -> Mode:
        """A mode like this one, for calls within a call that this one sees, while it is off."""
        return Mode(self.arithmetic)


def _exact(args: tuple[Call, ...]) -> bool:
    """Whether the first tensor is of integers: torch's products of those are exact."""
    for each in args:
        if isinstance(each, torch.Tensor):
            return not (each.is_floating_point() or each.is_complex())
        if isinstance(each, (list, tuple)) and each and isinstance(each[0], torch.Tensor):
            return _exact(tuple(each))
    return False


def _stack() -> list[Mode]:
    """The modes that this thread is in."""
    if not hasattr(_entered, "modes"):
        _entered.modes = []
    modes: list[Mode] = _entered.modes
    return modes


def arithmetic(
    instruction: Instruction | Arithmetic | str | None,
    *,
    scaling: str | None = None,
    backward: str = "full",
    threads: int | None = None,
    **division: object,
) -> Mode:
    """A context in which every product of matrices that torch computes in this thread runs through `instruction`.

    These are `linear`, `matmul` (`@`, `mm`, `bmm`, `mv`, `dot`, `inner`, `tensordot`, `einsum`, `addmm` and its like),
    `scaled_dot_product_attention`, `multi_head_attention_forward`, convolutions and transposed ones, and `bilinear`: a
    model of such modules needs no change.  Products of integers stay torch's, which are exact.  `None` is torch's own
    arithmetic, within another context too.  Other threads are not touched.

    - `scaling`: `"none"`, `"tensor"`, `"row"` or `"block"`; else by the instruction's formats (`mmaformal.quantise`).
    - `backward`: `"full"`, gradients by torch from the operands as they were given, as if nothing had been rounded; or
      `"through"`, their products through the same arithmetic.
    - `promote_every`, `split_k`, `stream_k`, `order`, `tile` and `threads`: as in `mmaformal.matmul`.

    Raises TypeError, ValueError for what makes no sense together.  Within it, RuntimeError for tensors that are not
    dense, not floats or not in the processor's memory, NotImplementedError for recurrent layers.
    """
    if instruction is None:
        return Mode(None)
    return Mode(Arithmetic.of(instruction, scaling=scaling, backward=backward, threads=threads, **division))
