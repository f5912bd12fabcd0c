"""A transformer that learns to write Python, character by character, from sources that every machine has.

The text is of Python's own library: files that have kept their names since Python 3.9.  Their contents differ from
version to version, so that every result names the text's digest.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from mmaformal.display import ShortRepr
from mmaformal.studies.training.networks import TorchModule, through, transformer_layers
from mmaformal.torch.tensors import Tensor

#: names of files, without .py
TRAINED_ON = (
    "argparse ast calendar codecs configparser contextlib csv dataclasses difflib dis doctest enum "
    "fractions functools gettext inspect ipaddress locale mailbox optparse pickle pprint random shutil "
    "smtplib socket statistics subprocess tarfile threading traceback typing uuid warnings weakref"
)
HELD_OUT = (
    "bisect cmd filecmp fnmatch getopt graphlib heapq linecache netrc queue sched shlex tempfile textwrap"
)

#: Characters are newline, the 95 that print, and one for all others.
CHARACTERS = 97


class CharacterText(NamedTuple):
    """Places of characters among `CHARACTERS`: to train on, and held out."""

    trained: Tensor
    held_out: Tensor
    digest: str  #: of both, with the lengths


@lru_cache(maxsize=1)
def training_text() -> CharacterText:
    """Raises OSError where this Python has its library in another form than files."""
    library = Path(sysconfig.get_path("stdlib"))
    files = [[library / f"{name}.py" for name in names.split()] for names in (TRAINED_ON, HELD_OUT)]
    read = ["".join(file.read_text("utf-8") for file in each) for each in files]
    codes = [np.frombuffer(each.encode("utf-32-le"), np.uint32).astype(np.int64) for each in read]
    places = [np.where(x == 10, 0, np.where((x >= 32) & (x < 127), x - 31, CHARACTERS - 1)) for x in codes]
    told = hashlib.sha256(repr([len(x) for x in places]).encode() + b"".join(x.tobytes() for x in places))
    trained, held_out = map(torch.from_numpy, places)
    return CharacterText(trained, held_out, told.hexdigest()[:12])


class CharacterModel(TorchModule):
    """Embeddings of characters and places, layers of causal attention, and a linear layer.

    What the layers add begins at zero, so that a short training gets further.
    """

    def __init__(self, of: Characters) -> None:
        super().__init__()
        self.heads = of.heads
        self.embed = nn.Embedding(CHARACTERS, of.width)
        self.places = nn.Parameter(torch.randn(of.context, of.width) * 0.1)
        self.layers = transformer_layers(of.layers, of.width)
        self.norm = nn.LayerNorm(of.width)
        self.head = nn.Linear(of.width, CHARACTERS)
        nn.init.normal_(self.embed.weight, std=0.1)
        for layer in self.layers:
            for name in ("out", "down"):
                nn.init.zeros_(layer[name].weight)

    def forward(self, characters: Tensor) -> Tensor:
        """(n × context) to one row of logits for each."""
        x = through(self.layers, self.embed(characters) + self.places, self.heads, causal=True)
        return self.head(self.norm(x)).flatten(0, 1)


@dataclass(frozen=True, repr=False)
class Characters(ShortRepr):
    """How the character model is trained: Adam, whose rate falls linearly to a twentieth."""

    layers: int = 2
    width: int = 128
    heads: int = 2
    context: int = 24
    batch: int = 16
    steps: int = 300
    rate: float = 0.003
    warm: int = 20  #: steps in which the rate grows to its full
    windows: int = 512  #: of the held-out text, spread evenly
    after: str = (
        ""  #: of a network that torch's fp32 has trained, perplexity and the gradient of one step are taken
    )

    def __str__(self) -> str:
        size = f"{self.layers} layers of {self.width}, {self.heads} heads"
        steps = f"{self.steps} steps of {self.batch} × {self.context} at {self.rate} after {self.warm}"
        return f"{'one step after ' if self.after else ''}{size}, {steps}, text {training_text().digest}"

    def make(self) -> TorchModule:
        return CharacterModel(self)

    def _windows(self, of: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        found = of[first[:, None] + torch.arange(self.context + 1)]
        return found[:, :-1], found[:, 1:].flatten()

    def batches(self, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Characters, and those that come next; the seed settles where windows begin."""
        trained = training_text().trained
        drawn = torch.Generator().manual_seed(seed)
        for _ in range(self.steps):
            first = torch.randint(len(trained) - self.context, (self.batch,), generator=drawn)
            yield self._windows(trained, first)

    def tested(self) -> tuple[Tensor, Tensor]:
        held_out = training_text().held_out
        last = len(held_out) - self.context - 1
        return self._windows(held_out, torch.arange(self.windows) * last // max(self.windows - 1, 1))

    @staticmethod
    def score(logits: Tensor, wanted: Tensor) -> float:
        """Perplexity."""
        return float(functional.cross_entropy(logits.double(), wanted).exp())


def yardsticks(smoothing: float = 0.1) -> tuple[float, float]:
    """Perplexity of the held-out text by the frequencies, in the other, of characters and of pairs of them."""
    trained, held_out = training_text().trained.numpy(), training_text().held_out.numpy()
    single = np.bincount(trained, minlength=CHARACTERS) + smoothing
    pairs = np.full((CHARACTERS, CHARACTERS), smoothing)
    np.add.at(pairs, (trained[:-1], trained[1:]), 1)
    one = single[held_out] / single.sum()
    two = (pairs / pairs.sum(1, keepdims=True))[held_out[:-1], held_out[1:]]
    return float(np.exp(-np.log(one).mean())), float(np.exp(-np.log(two).mean()))
