"""`torch.utils.checkpoint` recomputes a forward pass in the arithmetic that it was first computed in.

torch calls the function again in the backward pass, when the context is closed; or it is open, but the mode that sees
functions is off, as it is within `backward`, a function that it sees.  Both forms of `checkpoint` hand the function to
something that calls it then; from here on that is given the function with its context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch.utils import checkpoint

from mmaformal.torch.tensors import Call


class _Within:
    """A function that runs in the arithmetic in which it was given, or in torch's own."""

    def __init__(self, function: Call, given_in: Call, modes: Modes) -> None:
        self.function, self.given_in, self.modes = function, given_in, modes

    def __call__(self, *args: Call, **kwargs: Call) -> Call:
        same = self.given_in is self.modes.current()
        if same and self.modes.sees(self.given_in):
            return self.function(*args, **kwargs)
        with self.modes.again(self.given_in) if same else self.modes.like(self.given_in):
            return self.function(*args, **kwargs)


#: Names of what `checkpoint(use_reentrant=False)` calls, the first there is: torch 2.15 has the first, 2.13 the second.
_WITHOUT_REENTRANT = "_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator"


class Modes(NamedTuple):
    """Functions of modes in this thread: which there is, and what is made of one."""

    current: Callable[[], Call]  #: the innermost, or None
    sees: Callable[[Call], bool]  #: whether the innermost sees functions now
    again: Callable[[Call], Call]  #: the innermost, which does not, seeing them again
    like: Callable[[Call], Call]  #: a new one like a given one, or of torch's own arithmetic for None


def install_checkpointing(modes: Modes) -> None:
    """Give both forms functions with their contexts; where there are no contexts nothing changes."""
    name = next(each for each in _WITHOUT_REENTRANT if hasattr(checkpoint, each))
    forward, generator = checkpoint.CheckpointFunction.forward, getattr(checkpoint, name)

    def reentrant(ctx: Call, function: Call, *rest: Call) -> Call:
        return forward(ctx, _Within(function, modes.current(), modes), *rest)

    def other(function: Call, *rest: Call, **options: Call) -> Call:
        return generator(_Within(function, modes.current(), modes), *rest, **options)

    checkpoint.CheckpointFunction.forward = staticmethod(reentrant)
    setattr(checkpoint, name, other)
