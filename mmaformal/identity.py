"""A text that two values share exactly if they are equal: what a key made of them is to be taken from.

A repr is for people, and leaves out what a person need not see; a name may be given to two things.
"""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass
from enum import Enum

import numpy as np


def recorded_name(field: Field[object]) -> str:
    """Returns a field's name in keys: the one it had when answers were first kept by them."""
    return str(field.metadata.get("digest", field.name))


def identity(value: object) -> str:
    """All that is in a value of frozen data: dataclasses, enumerations, tuples, numbers, text, dtypes, classes.

    Raises TypeError for anything else, whose text might say less than the value.
    """
    kind = type(value)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, Enum):
        return f"{kind.__qualname__}.{value.name}"
    if is_dataclass(value):
        parts = (f"{recorded_name(f)}={identity(getattr(value, f.name))}" for f in fields(value))
        return f"{kind.__qualname__}({', '.join(parts)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(identity, value))})"
    if value is None or kind in (bool, int, float, str):
        return f"{kind.__name__}:{value!r}"
    if isinstance(value, np.dtype):
        return f"dtype:{value.name}:{value.str}"
    raise TypeError(f"no text tells one {kind.__qualname__} from another")
