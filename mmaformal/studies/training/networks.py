"""Two networks to train, of torch's own layers, on the handwritten digits that scikit-learn ships."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from mmaformal.display import ShortRepr
from mmaformal.torch.tensors import Tensor

TorchModule: TypeAlias = nn.Module

#: Every fifth image is kept for testing: so many of 1797.
TEST_EVERY, TESTED = 5, 360


@lru_cache(maxsize=1)
def digit_images() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images (n × 1 × 8 × 8, in [−1, 1]) and classes for training, then for testing.

    Raises ImportError, saying how to install it, without scikit-learn.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError("the digits are scikit-learn's: pip install 'mmaformal[training]'") from None
    images, classes = load_digits(return_X_y=True)
    x = torch.from_numpy((images / 8 - 1).astype(np.float32)).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(classes.astype(np.int64))
    test = torch.arange(len(x)) % TEST_EVERY == 0
    return x[~test], y[~test], x[test], y[test]


def transformer_layers(layers: int, width: int) -> nn.ModuleList:
    """The layers of a transformer, for `through`."""
    return nn.ModuleList(
        nn.ModuleDict(
            {
                "before": nn.LayerNorm(width),
                "into": nn.Linear(width, 3 * width),
                "out": nn.Linear(width, width),
                "between": nn.LayerNorm(width),
                "up": nn.Linear(width, 2 * width),
                "down": nn.Linear(2 * width, width),
            }
        )
        for _ in range(layers)
    )


def through(layers: TorchModule, x: Tensor, heads: int, causal: bool = False) -> Tensor:
    """Tokens (n × tokens × width) after attention and two linear layers, of each block."""
    n, tokens, width = x.shape
    for layer in layers:
        projected = layer["into"](layer["before"](x)).reshape(n, tokens, 3, heads, -1)
        q, k, v = projected.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + layer["out"](seen.transpose(1, 2).reshape(n, tokens, width))
        x = x + layer["down"](functional.gelu(layer["up"](layer["between"](x))))
    return x


class Transformer(TorchModule):
    """An image's eight rows as tokens; a layer of attention, and a mean of tokens."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.places = nn.Parameter(torch.randn(8, width) * 0.1)
        self.layers = transformer_layers(1, width)
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(through(self.layers, self.embed(images.squeeze(1)) + self.places, 1).mean(1))


def convolutional() -> TorchModule:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


@dataclass(frozen=True, repr=False)
class Digits(ShortRepr):
    """A network that learns the digits: Adam, whose rate falls linearly to a twentieth."""

    make: Callable[[], TorchModule]
    epochs: int
    batch: int
    rate: float
    warm: int = 0  #: steps in which the rate grows to its full
    after: str = ""  #: as in `Characters`

    def __str__(self) -> str:
        return f"{self.epochs} epochs of {self.batch} at {self.rate}"

    @property
    def steps(self) -> int:
        return self.epochs * (len(digit_images()[0]) // self.batch)

    def batches(self, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Images and their classes, in an order that the seed settles."""
        x, y, *_ = digit_images()
        shuffle = torch.Generator().manual_seed(seed)
        for _ in range(self.epochs):
            order = torch.randperm(len(x), generator=shuffle)
            for first in range(0, len(x) - self.batch + 1, self.batch):
                batch = order[first : first + self.batch]
                yield x[batch], y[batch]

    def tested(self) -> tuple[Tensor, Tensor]:
        return digit_images()[2:]

    @staticmethod
    def score(logits: Tensor, wanted: Tensor) -> float:
        """Accuracy, 0 to 1."""
        return float((logits.argmax(1) == wanted).double().mean())


def weights_of(network: TorchModule) -> dict[str, NDArray[np.float32]]:
    """Its matrices, kernels and biases, by name."""
    return {name: p.detach().numpy().copy() for name, p in network.named_parameters()}
