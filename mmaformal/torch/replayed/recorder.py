"""A model's run written down: every operator it calls, with what it takes and what it gave."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mmaformal.torch.tensors import Call as Function
from mmaformal.torch.tensors import Tensor


@dataclass(frozen=True)
class RecordedTensor:
    """One call of an operator."""

    function: Function
    args: tuple[Function, ...]  #: as they were given; tensors are those of the run
    kwargs: dict[str, Function]
    outputs: Function  #: as they came back
    values: tuple[Tensor | None, ...]  #: copies of the tensors among `outputs`, before anything wrote to them
    module: str  #: the innermost module that was running, by its path in the model

    @property
    def name(self) -> str:
        """The operator's name: `aten.mm` is `mm`, of another library `library.name`."""
        library, _, name = self.function._schema.name.partition("::")
        return str(name) if library == "aten" else f"{library}.{name}"


class Given(NamedTuple):
    """A tensor that was there before: itself, so that it lives, and what it was."""

    tensor: Tensor
    was: Tensor


@dataclass
class RecordedRun:
    """The calls of one run in their order, and what the run began with."""

    calls: list[RecordedTensor] = field(default_factory=list)
    given: dict[int, Given] = field(default_factory=dict)  #: tensors that no call made, by identity
    names: dict[int, str] = field(default_factory=dict)  #: of weights and buffers, by identity
    outputs: tuple[Tensor, ...] = ()
    repeats: bool = True  #: whether a run that is not written down gives the same bits
    seconds: float = 0.0  #: of that run
    cpu_seconds: float = 0.0  #: of all threads
    threads: int = 1


class _Recorder(TorchDispatchMode):
    """Sees each operator that the dispatcher calls."""

    def __init__(self, recording: RecordedRun, path: list[str]) -> None:
        super().__init__()
        self.recording, self.path = recording, path
        self.made: set[int] = set()

    def __torch_dispatch__(
        self,
        function: Function,
        types: object,
        args: tuple[Function, ...] = (),
        kwargs: dict[str, Function] | None = None,
    ) -> Function:
        kwargs = kwargs or {}
        for x in tree_leaves((args, kwargs)):
            if isinstance(x, torch.Tensor) and id(x) not in self.made and id(x) not in self.recording.given:
                # Weights are read from the model when it is replayed; what else there is may be written to.
                was = x if id(x) in self.recording.names else copied(x)
                self.recording.given[id(x)] = Given(x, was)
        outputs = function(*args, **kwargs)
        values = tuple(_value(function, x) for x in tree_leaves(outputs))
        self.made |= {id(x) for x in tree_leaves(outputs) if isinstance(x, torch.Tensor)}
        self.recording.calls.append(
            RecordedTensor(function, args, kwargs, outputs, values, self.path[-1] if self.path else "")
        )
        return outputs


def copied(x: Tensor) -> Tensor:
    """Returns a copy in the same layout."""
    if any(stride == 0 for stride in x.stride()) or not x.numel():
        return x.detach().clone()
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x.detach())


def _value(function: Function, x: Function) -> Tensor | None:
    """Returns what a call gave, to be compared; None of a tensor that is not filled, and of what is no tensor."""
    filled = not function._schema.name.partition("::")[2].startswith(("empty", "new_empty"))
    return x.detach().clone() if isinstance(x, torch.Tensor) and filled else None


@contextmanager
def _paths(model: Function) -> Iterator[list[str]]:
    """Within this block, the modules that are running, by their paths."""
    path, hooks = list[str](), []
    modules = model.named_modules() if isinstance(model, torch.nn.Module) else ()
    for name, module in modules:
        hooks.append(module.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        hooks.append(module.register_forward_hook(lambda *_: _ended(path), always_call=True))
    try:
        yield path
    finally:
        for each in hooks:
            each.remove()


def _ended(path: list[str]) -> None:
    """Forgets a module; returns nothing, which leaves its outputs as they are."""
    path.pop()


def record_products(model: Function, args: tuple[Function, ...], kwargs: dict[str, Function]) -> RecordedRun:
    """Returns every call of one run, and whether a run of its own, which is timed, gives the same bits."""
    recording = RecordedRun(threads=torch.get_num_threads())
    if isinstance(model, torch.nn.Module):
        for name, x in [*model.named_parameters(), *model.named_buffers()]:
            recording.names[id(x)] = name
    with torch.no_grad(), _paths(model) as path:
        with _Recorder(recording, path):
            outputs = model(*args, **kwargs)
        recording.outputs = _tensors(outputs)
        copies = [x.detach().clone() for x in recording.outputs]
    with torch.no_grad():
        start, cpu = time.perf_counter(), time.process_time()
        again = model(*args, **kwargs)
        recording.seconds, recording.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    pairs = zip(copies, _tensors(again), strict=True)
    recording.repeats = all(not different(x, y).any() for x, y in pairs)
    return recording


def _tensors(outputs: Function) -> tuple[Tensor, ...]:
    return tuple(x for x in tree_leaves(outputs) if isinstance(x, torch.Tensor))


_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(x: Tensor) -> Tensor:
    """Returns the bit patterns of a tensor."""
    x = x.detach().contiguous()
    return x if x.dtype == torch.bool else x.view(_WORDS[x.element_size()])


def different(x: Tensor, y: Tensor) -> Tensor:
    """Returns where two tensors of one shape and type differ in their bits; NaNs are one.

    Raises ValueError for other shapes or types.
    """
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(f"{tuple(x.shape)} of {x.dtype} and {tuple(y.shape)} of {y.dtype}")
    apart = bits(x) != bits(y)
    return apart & ~(x.isnan() & y.isnan()) if x.is_floating_point() else apart
