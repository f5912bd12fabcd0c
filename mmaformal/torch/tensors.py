"""Names for types that are not there where PyTorch, an extra, is not installed."""

from __future__ import annotations

from typing import Any, TypeAlias

Tensor: TypeAlias = Any  #: a tensor, or an operator's context
Call: TypeAlias = Any  #: a function of torch's, or what one is called with
