"""PyTorch models on the arithmetic of a chosen instruction (`pip install 'mmaformal[torch]'`).

    from mmaformal import hopper
    from mmaformal.torch import arithmetic

    with arithmetic(hopper["HMMA.16816.F32"]) as ran:
        loss = criterion(model(x), y)      # an unmodified model
    loss.backward()
    print(ran.table())

The products of matrices of the forward pass run through `mmaformal.matmul`; `ran` says which did, and docs/torch.md
which do, which are refused, and which torch computes in its own arithmetic, with a warning.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError("mmaformal.torch needs PyTorch: pip install 'mmaformal[torch]'") from None

from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.cache import kept
from mmaformal.torch.calls import linear, matmul
from mmaformal.torch.mode import arithmetic
from mmaformal.torch.needed import Needed
from mmaformal.torch.report import LeftToTorch, Ran

__all__ = ["Arithmetic", "LeftToTorch", "Needed", "Ran", "arithmetic", "kept", "linear", "matmul"]
