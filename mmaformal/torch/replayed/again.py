"""A recording made again from what the model was given: sums by their rules, everything else by torch."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from mmaformal.formats import Format, bf16, fp16, fp32, fp64
from mmaformal.shown_stages import ulps_apart
from mmaformal.torch.replayed.products import NoRuleError, Products, ProductSearch
from mmaformal.torch.replayed.recorder import RecordedRun, RecordedTensor, bits, copied, different
from mmaformal.torch.replayed.rules import SUMS, ReplayState, kind
from mmaformal.torch.tensors import Call, Tensor

_FORMATS: dict[Tensor, Format] = {
    torch.float64: fp64,
    torch.float32: fp32,
    torch.float16: fp16,
    torch.bfloat16: bf16,
}


class Wrong(NamedTuple):
    """A tensor that is not as the model made it."""

    number: int  #: of the tensor, from 1 on
    operator: str
    module: str  #: the path of the module that called it
    reads: tuple[str, ...]  #: weights that the call takes
    shape: tuple[int, ...]
    dtype: str
    elements: int  #: that differ
    place: tuple[int, ...]  #: of the first of them
    recorded: str
    replayed: str
    ulps: int | None  #: between the two; None of what is no float, and of a NaN


@dataclass
class Again:
    """The counts of a replay: tensors compared, equal and wrong, and calls that were left."""

    state: ReplayState
    tensors: Counter[str] = field(default_factory=Counter)  #: compared, by what made them
    equal: Counter[str] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)  #: the first few
    #: calls without a rule, by operator and reason
    left: dict[tuple[str, str], int] = field(default_factory=dict)
    called: Counter[str] = field(default_factory=Counter)  #: calls of torch's, by operator
    sums: Counter[str] = field(default_factory=Counter)  #: calls replayed by a rule, by operator
    seconds: float = 0.0
    cpu_seconds: float = 0.0  #: of all threads


#: Tensors that are not equal, of which the first are told.
_TOLD = 8


class Replay:
    """One replay."""

    def __init__(self, recording: RecordedRun, search: ProductSearch, say: Callable[[str], object]) -> None:
        self.recording, self.say, self.found = recording, say, Again(ReplayState(Products(search)))
        names = recording.names
        self._ours = {key: x.was if key in names else copied(x.was) for key, x in recording.given.items()}

    def run(self) -> Again:
        """Make every call again, on what was made before."""
        start, cpu = time.perf_counter(), time.process_time()
        with torch.no_grad():
            for number, call in enumerate(self.recording.calls, 1):
                if number % _EVERY == 0:
                    self.say(f"{number} of {len(self.recording.calls)} calls, {call.name}")
                self._call(call)
        self.found.seconds, self.found.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        return self.found

    def _call(self, call: RecordedTensor) -> None:
        theirs = tree_leaves(call.outputs)
        tensors = [x for x in tree_leaves((call.args, call.kwargs, theirs)) if isinstance(x, torch.Tensor)]
        does = kind(call.name, tensors)
        try:
            self._check(call, does)
            args, kwargs = tree_map(self._own, (call.args, call.kwargs))
            if does == "sum":
                made = tree_leaves(_rule(call)(self.found.state, *args, **kwargs))
                made = [_laid(x, y) for x, y in zip(made, theirs, strict=True)]
                self.found.sums[call.name] += 1
            else:
                made = tree_leaves(call.function(*args, **kwargs))
                self.found.called[call.name] += does == "elementwise"
        except NoRuleError as error:
            key = call.name, str(error)
            self.found.left[key] = self.found.left.get(key, 0) + 1
            made, does = [self._as_recorded(x, y) for x, y in zip(theirs, call.values, strict=True)], ""
        for x, y, value in zip(made, theirs, call.values, strict=True):
            if isinstance(y, torch.Tensor):
                self._ours[id(y)] = x
                if value is not None and does:
                    self._compare(call, does, x, value)
            elif x != y and not (x is None or x != x):
                self.found.wrong.append(_wrong_number(call, self._number, x, y, self._weights(call)))

    def _own(self, x: Call) -> Call:
        return self._ours[id(x)] if isinstance(x, torch.Tensor) else x

    def _as_recorded(self, tensor: Call, value: Tensor | None) -> Call:
        """Returns what the model had, to go on with; a call without a rule that wrote in place writes that."""
        if value is None:
            return copied(tensor) if isinstance(tensor, torch.Tensor) else tensor
        if id(tensor) in self._ours and id(tensor) not in self.recording.names:
            return self._ours[id(tensor)].copy_(value)
        return _laid(value, tensor)

    def _check(self, call: RecordedTensor, does: str) -> None:
        """Raises NoRuleError for what is in no table, and for what writes to a weight or adds where it writes."""
        if not does:
            raise NoRuleError("in no table")
        for each, x in zip(call.function._schema.arguments, call.args, strict=False):
            if each.name == "accumulate" and x:
                raise NoRuleError("adds where it writes")
            written = each.alias_info is not None and each.alias_info.is_write
            if written and id(x) in self.recording.names:
                raise NoRuleError("writes to a weight of the model")

    # ---- comparing ---------------------------------------------------------------------------------------------------

    @property
    def _number(self) -> int:
        return self.found.tensors.total()

    def _compare(self, call: RecordedTensor, does: str, ours: Tensor, theirs: Tensor) -> None:
        self.found.tensors[does] += 1
        apart = different(ours, theirs)
        if not (count := int(apart.sum())):
            self.found.equal[does] += 1
        elif len(self.found.wrong) < _TOLD:
            place = tuple(int(each) for each in apart.nonzero()[0])
            x, y = ours[place], theirs[place]
            self.found.wrong.append(
                Wrong(
                    self._number,
                    call.name,
                    call.module,
                    self._weights(call),
                    tuple(theirs.shape),
                    str(theirs.dtype).removeprefix("torch."),
                    count,
                    place,
                    repr(y.item()),
                    repr(x.item()),
                    _ulps(x, y),
                )
            )

    def _weights(self, call: RecordedTensor) -> tuple[str, ...]:
        """The weights that a call takes, or a view of which it takes."""
        tensors = [x for x in tree_leaves((call.args, call.kwargs)) if isinstance(x, torch.Tensor)]
        names = (self.recording.names.get(id(x)) or self.recording.names.get(id(x._base)) for x in tensors)
        return tuple(dict.fromkeys(name for name in names if name))


def _rule(call: RecordedTensor) -> Callable[..., Call]:
    """Returns the rule of a sum; raises NoRuleError for a form of the operator that it does not take."""
    rule = SUMS[call.name]
    try:
        inspect.signature(rule).bind(None, *call.args, **call.kwargs)
    except TypeError:
        raise NoRuleError(f"the form {call.function._overloadname}") from None
    return rule


def _laid(x: Tensor, like: Tensor) -> Tensor:
    """Returns a tensor in the layout of another one, on which kernels may depend."""
    if x.stride() == like.stride() or any(stride == 0 for stride in like.stride()):
        return x
    return torch.empty_strided(like.shape, like.stride(), dtype=x.dtype).copy_(x)


def _ulps(x: Tensor, y: Tensor) -> int | None:
    """Returns how many floats lie between two, and one."""
    if (fmt := _FORMATS.get(x.dtype)) is None:
        return None
    ours, theirs = (int(bits(each).reshape(-1)[0]) & ((1 << fmt.storage_bits) - 1) for each in (x, y))
    return ulps_apart(ours, theirs, fmt)


def _wrong_number(call: RecordedTensor, number: int, x: Call, y: Call, weights: tuple[str, ...]) -> Wrong:
    """Returns what is told of a number, read from a tensor, that is another one."""
    return Wrong(number, call.name, call.module, weights, (), type(y).__name__, 1, (), repr(y), repr(x), None)


#: Calls after which the progress is told.
_EVERY = 25
