"""Architectures that users define in files of their own (`--model FILE.py:NAME`)."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.base import Architecture
from mmaformal.display import clipped
from mmaformal.instruction import Instruction


class ModelError(ValueError):
    """A file has no model of that name, or makes none; the message is one line."""


def load(text: str) -> Architecture:
    """The architecture that FILE.py:NAME is; an instruction becomes one of that name, which has nothing else.

    The file is run, as `python FILE.py` would but for `__name__`.  Raises ModelError.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or not file:
        raise ModelError(f"a model is FILE.py:NAME, not {text!r}")
    module = run_file(Path(file))
    if not hasattr(module, name):
        models = (Architecture, Instruction)
        has = [n for n, x in vars(module).items() if isinstance(x, models) and x is not ARCHITECTURES.get(n)]
        hint = f"it has {', '.join(has)}" if has else "it defines no Architecture and no Instruction"
        raise ModelError(f"{file} has no {name}: {hint}")
    model = getattr(module, name)
    if isinstance(model, Instruction):
        return Architecture(name, f"of {file}", [replace(model, architecture=name)])
    if not isinstance(model, Architecture):
        raise ModelError(f"{name} of {file} is no Architecture or Instruction, but {clipped(repr(model))}")
    return model


def run_file(path: Path) -> ModuleType:
    """Returns the module of a file, which is run; raises ModelError, in a line, for what goes wrong in it."""
    spec = importlib.util.spec_from_file_location(f"mmaformal_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"a model is in a file of Python, FILE.py; {str(path)!r} is none")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for dataclasses of the file
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        if error.filename is not None and Path(error.filename).absolute() == path.absolute():
            raise ModelError(f"{path}: {error.strerror}") from None
        raise ModelError(_told(path, error)) from error
    except (Exception, SystemExit) as error:
        raise ModelError(_told(path, error)) from error
    return module


def _told(path: Path, error: BaseException) -> str:
    """Say what went wrong, and at which line of the file."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    what = error.msg if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
    return f"{path}{f', line {line}' if line else ''}: {what}"


@contextmanager
def known_models(model: Architecture) -> Iterator[None]:
    """Within this block `ARCHITECTURES` has the model too.  Raises ModelError if its name is taken."""
    name = model.name.lower()
    if ARCHITECTURES.canonical(name) == name:
        raise ModelError(f"there is a {model.name} already; call the model by another name")
    if "@" in name or not name.strip():
        raise ModelError(f"{model.name!r} is no name for an architecture: @ parts a name from a revision's")
    ARCHITECTURES.add(model)
    try:
        yield
    finally:
        ARCHITECTURES.remove(model)
