"""PyTorch models on the arithmetic of a chosen instruction (`pip install 'mmaformal[torch]'`).

    from mmaformal import hopper
    from mmaformal.torch import arithmetic

    with arithmetic(hopper["HMMA.16816.F32"]):
        loss = criterion(model(x), y)      # an unmodified model
    loss.backward()

Every product of matrices of the forward pass runs through `mmaformal.matmul`; what is a product is in `functions`.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError("mmaformal.torch needs PyTorch: pip install 'mmaformal[torch]'") from None

from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.calls import linear, matmul
from mmaformal.torch.mode import arithmetic

__all__ = ["Arithmetic", "arithmetic", "linear", "matmul"]
