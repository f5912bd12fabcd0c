"""A model and what it is called with, read from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from mmaformal.architectures.models import ModelError, run_file
from mmaformal.torch.tensors import Call

#: The suffix of programs that `torch.export.save` writes.
_EXPORTED = ".pt2"


class Loaded(NamedTuple):
    """A model, and what it is called with."""

    model: Call
    args: tuple[Call, ...]
    named: Mapping[str, Call]


def load_model(text: str, inputs: Path | None) -> Loaded:
    """Returns the model of FILE.py:NAME, or of a program that was exported, and its inputs, those of the file if given.

    Raises ModelError, in a line, for what there is not or what makes no sense.
    """
    path, colon, name = text.rpartition(":")
    if text.endswith(_EXPORTED):
        return Loaded(_exported(Path(text)), *_called_with(_inputs(inputs)))
    if not colon or not name.isidentifier() or not path:
        raise ModelError(
            f"a model is FILE.py:NAME or a program that was exported, MODEL{_EXPORTED}, not {text!r}"
        )
    module = run_file(Path(path))
    if not callable(function := getattr(module, name, None)):
        raise ModelError(f"{path} has no function {name}")
    made = function()
    if not isinstance(made, tuple) or len(made) != 2 or not callable(made[0]):
        raise ModelError(
            f"{name} of {path} is to return a model and what it is called with, not {type(made).__name__}"
        )
    return Loaded(made[0], *_called_with(made[1] if inputs is None else _inputs(inputs)))


def _exported(path: Path) -> Call:
    try:
        return torch.export.load(path).module()
    except Exception as error:  # of many kinds, by what is wrong with the file
        raise ModelError(f"{path}: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from error


def _inputs(path: Path | None) -> Call:
    if path is None:
        raise ModelError(f"a {_EXPORTED} program needs its inputs: INPUTS.pt")
    try:
        return torch.load(path, weights_only=True)
    except Exception as error:  # the same
        raise ModelError(f"{path}: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from error


def _called_with(inputs: Call) -> tuple[tuple[Call, ...], Mapping[str, Call]]:
    if isinstance(inputs, Mapping):
        return (), inputs
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}
