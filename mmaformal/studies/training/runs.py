"""One training: a network, a unit, a seed; and what comes of it.

The forward pass runs on the unit, the backward pass and the optimiser in fp32 (TensorGauge, Fig. 4); testing runs on
the unit too.  A seed settles initial weights and batches, so that runs of one seed differ in their arithmetic alone:
their weights are compared with those that torch's fp32 comes to from the same seed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from mmaformal.architectures import ARCHITECTURES
from mmaformal.display import ShortRepr
from mmaformal.studies.training.networks import NETWORKS, digits, weights_of
from mmaformal.torch import Arithmetic, arithmetic

Weights: TypeAlias = dict[str, NDArray[np.float32]]

#: Weights are looked at after each of so many parts of a training.
LOOKS = 4


@dataclass(frozen=True, repr=False)
class Schedule(ShortRepr):
    """How a network is trained: Adam, whose rate falls linearly to a twentieth."""

    epochs: int
    batch: int
    rate: float


SCHEDULES = {"transformer": Schedule(12, 128, 0.015), "convolutional": Schedule(8, 64, 0.004)}


@dataclass(frozen=True, repr=False)
class TrainingUnit(ShortRepr):
    """An instruction of the registry, with some parameters changed, and how `matmul` uses it; as text and numbers."""

    architecture: str
    instruction: str
    changes: tuple[tuple[str, int], ...] = ()
    options: tuple[tuple[str, str | int], ...] = ()

    @property
    def arithmetic(self) -> Arithmetic:
        """Raises as the registry, `Instruction.replace` and `Arithmetic.of`."""
        i = ARCHITECTURES[self.architecture][self.instruction]
        changes: dict[str, object] = dict(self.changes)
        return Arithmetic.of(i.replace(**changes) if changes else i, jobs=1, **dict(self.options))  # type: ignore[arg-type]

    def __str__(self) -> str:
        told = [f"{name}={value}" for name, value in (*self.changes, *self.options)]
        return " ".join([self.architecture, self.instruction, *told])


@dataclass(frozen=True, repr=False)
class Job(ShortRepr):
    """A training; without a unit, torch's own in fp32."""

    network: str
    unit: TrainingUnit | None
    seed: int

    @property
    def key(self) -> str:
        """A key that tells it from others, in a file of results; another schedule is another job."""
        s = SCHEDULES[self.network]
        told = f"{s.epochs} epochs of {s.batch} at {s.rate}"
        return f"{self.network} | {told} | {self.unit or 'torch fp32'} | {self.seed}"


@dataclass(frozen=True, repr=False)
class TrainingOutcome(ShortRepr):
    """The outcome of a training: accuracy, loss, time, and weights."""

    accuracy: float  #: of the images for testing
    loss: float  #: of the last batch
    seconds: float  #: of this process
    progress: tuple[float, ...]  #: 1 − cosine of all weights with fp32's, after each part of the training
    layers: tuple[tuple[str, float], ...]  #: the same at the end, of each matrix or kernel, in order
    weights: NDArray[np.float32]  #: all of them, at the end


def train(job: Job) -> TrainingOutcome:
    """Train and test.  What it gives depends on nothing but the job, on one machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that torch's own sums have one order
    try:
        start = time.process_time()
        accuracy, loss, looks = _trained(job)
        seconds = time.process_time() - start
        wanted = _reference(job.network, job.seed)
    finally:
        torch.set_num_threads(threads)
    last, last_wanted = looks[-1], wanted[-1]
    return TrainingOutcome(
        accuracy,
        loss,
        seconds,
        tuple(apart(flat(x), flat(y)) for x, y in zip(looks, wanted, strict=True)),
        tuple((name, apart(x, last_wanted[name])) for name, x in last.items() if x.ndim > 1),
        flat(last),
    )


@lru_cache(maxsize=64)
def _reference(network: str, seed: int) -> list[Weights]:
    """The weights that torch's fp32 comes to."""
    return _trained(Job(network, None, seed))[2]


def _trained(job: Job) -> tuple[float, float, list[Weights]]:
    schedule = SCHEDULES[job.network]
    x, y, test_x, test_y = digits()
    unit = None if job.unit is None else job.unit.arithmetic
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)
        network = NETWORKS[job.network]()
    shuffle = torch.Generator().manual_seed(job.seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=schedule.rate, fused=True)
    each = len(x) // schedule.batch
    steps = schedule.epochs * each
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, steps)
    looks: list[Weights] = []
    loss = torch.zeros(())
    for step in range(steps):
        if step % each == 0:
            order = torch.randperm(len(x), generator=shuffle)
        batch = order[step % each * schedule.batch :][: schedule.batch]
        with arithmetic(unit):
            loss = functional.cross_entropy(network(x[batch]), y[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
        if (step + 1) * LOOKS // steps > len(looks):
            looks.append(weights_of(network))
    with torch.no_grad(), arithmetic(unit):
        right = (network(test_x).argmax(1) == test_y).double().mean()
    return float(right), float(loss.detach()), looks


def flat(weights: Weights) -> NDArray[np.float32]:
    return np.concatenate([each.reshape(-1) for each in weights.values()])


def apart(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    """1 − the cosine of the angle between two, without the cancellation of that difference; NaN for what is none."""
    u, v = (each.reshape(-1).astype(np.float64) for each in (x, y))
    u, v = (each / np.linalg.norm(each) for each in (u, v))
    return float(((u - v) ** 2).sum() / 2)
