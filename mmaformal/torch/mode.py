"""`with arithmetic(instruction):`, in which torch's products run through an instruction.

It has two sides.  A mode of functions sees what Python calls in its thread, above autograd and autocast, and
`torch.compile` traces it.  Below it a mode of the dispatcher (`dispatch`) sees what torch calls within its functions.
"""

from __future__ import annotations

import threading
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from mmaformal.display import csv_text, latex_text, written
from mmaformal.instruction import Instruction
from mmaformal.renamed import keywords
from mmaformal.torch import checkpointing
from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.attention import BODIES
from mmaformal.torch.dispatch import Below
from mmaformal.torch.functions import REFUSED, REPLACED
from mmaformal.torch.report import Ran, Report, here, recorded_as, report_lines
from mmaformal.torch.tensors import Call

_entered = threading.local()


class Mode(TorchFunctionMode):
    """A context in which torch's products run in an arithmetic; `None` is torch's own, within another mode too.

    `table()` and `rows` say what ran in it so far, and `left` what torch computed in its own arithmetic.
    """

    def __init__(self, arithmetic: Arithmetic | None, strict: bool = False) -> None:
        super().__init__()
        self.arithmetic = arithmetic
        self.report = Report(strict)
        self.hidden = 0  #: how many modes were entered within this one
        self._below: Below | None = None
        self._outer: Report | None = None

    @property
    def rows(self) -> list[Ran]:
        """The products that ran, one row for each function and size of operands."""
        return self.report.rows

    @property
    def left(self) -> list[Ran]:
        """The rows of what torch computed in its own arithmetic."""
        return [row for row in self.rows if row.where == "torch"]

    def table(self) -> str:
        """The rows as text."""
        return report_lines(self.rows)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The rows as CSV; written to a file too, if one is named."""
        return written(csv_text([row._asdict() for row in self.rows]), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The rows as a LaTeX `tabular`; written to a file too, if one is named."""
        return written(latex_text([row._asdict() for row in self.rows]), path)

    def __enter__(self) -> Mode:
        if self.hidden or self in _stack():
            raise RuntimeError("this arithmetic was entered already")
        for each in _stack():
            each.hidden += 1
        _stack().append(self)
        self._outer, here.report = here.report, None if self.arithmetic is None else self.report
        super().__enter__()
        if self.arithmetic is not None:
            self._below = Below(self.arithmetic, self.report)
            self._below.__enter__()
        return self

    def __exit__(self, *error: Call) -> None:
        if self._below is not None:
            self._below.__exit__(*error)
            self._below = None
        super().__exit__(*error)
        here.report = self._outer
        _stack().remove(self)
        for each in _stack():
            each.hidden -= 1

    def __torch_function__(
        self, func: Call, types: object, args: tuple[Call, ...] = (), kwargs: dict[str, Call] | None = None
    ) -> Call:
        kwargs = kwargs or {}
        if self.hidden or self.arithmetic is None:
            return func(*args, **kwargs)
        if func in BODIES:
            with _Again(self):
                return BODIES[func](*args, **kwargs)
        if (
            func is torch.Tensor.unflatten
        ):  # a method in Python, whose `super()` torch.compile does not trace in a mode
            return torch.unflatten(*args, **kwargs)
        if func in REFUSED and not _exact(args):
            raise NotImplementedError(f"{_name(func)}: {REFUSED[func]}")
        if func not in REPLACED or _exact(args):
            return func(*args, **kwargs)
        if kwargs.pop("out", None) is not None:
            raise TypeError(f"{_name(func)} takes no out= within an arithmetic")
        if torch.compiler.is_compiling():  # what is compiled says what it runs when it runs
            return REPLACED[func](self.arithmetic, *args, **kwargs)
        with recorded_as(_name(func)):
            return REPLACED[func](self.arithmetic, *args, **kwargs)


class _Again(TorchFunctionMode):
    """A mode's function side again, for calls within a call that it sees, while it is off."""

    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self.mode = mode

    def __torch_function__(
        self, func: Call, types: object, args: tuple[Call, ...] = (), kwargs: dict[str, Call] | None = None
    ) -> Call:
        return self.mode.__torch_function__(func, types, args, kwargs)


def _name(func: Call) -> str:
    """A function as a person calls it."""
    name = getattr(func, "__name__", str(func))
    return f"aten.{name.partition('.')[0]}" if isinstance(func, _OPERATORS) else str(name)


_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


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


def _current() -> Mode | None:
    """The innermost mode of this thread."""
    return _stack()[-1] if _stack() else None


def _like(mode: Mode | None) -> Mode:
    """A mode of the same arithmetic, which records in the same report; of torch's own for none."""
    other = Mode(mode.arithmetic if mode else None)
    other.report = mode.report if mode else other.report
    return other


def _sees(mode: Mode | None) -> bool:
    """Whether a mode sees functions now: it does not within a function that it sees."""
    on = _get_current_function_mode_stack()
    return mode is None or any(
        each is mode or (isinstance(each, _Again) and each.mode is mode) for each in on
    )


checkpointing.install_checkpointing(checkpointing.Modes(_current, _sees, _Again, _like))


@keywords(threads="jobs")
def arithmetic(
    instruction: Instruction | Arithmetic | str | None,
    *,
    scaling: str | None = None,
    backward: str = "full",
    strict: bool = False,
    jobs: int | None = None,
    **division: object,
) -> Mode:
    """A context in which the products of matrices that torch computes in this thread run through `instruction`.

    docs/torch.md says which do, which are refused, and which torch computes: those it reports, once each as a warning,
    and in `ran.table()` of `with arithmetic(…) as ran`.  Products of integers stay torch's, which are exact.  `None` is
    torch's own arithmetic, within another context too.  Other threads are not touched.

    - `scaling`: `"none"`, `"tensor"`, `"row"` or `"block"`; else by the instruction's formats (`mmaformal.quantise`).
    - `backward`: `"full"`, derivatives by torch from the operands as they were given, as if nothing had been rounded;
      or `"through"`, their products through the same arithmetic.
    - `strict`: raise NotImplementedError for what would be left to torch.
    - `promote_every`, `split_k`, `stream_k`, `order`, `tile` and `jobs`: as in `mmaformal.matmul`.

    Raises TypeError, ValueError for what makes no sense together.  Within it, RuntimeError for tensors that are not
    dense, not floats or not in the processor's memory, NotImplementedError for functions that are refused.
    """
    if instruction is None:
        return Mode(None)
    own = Arithmetic.of(instruction, scaling=scaling, backward=backward, jobs=jobs, **division)
    return Mode(own, strict)
