"""One training: a network, a unit, a seed; and what comes of it.

The forward pass and testing run on the unit, the optimiser in fp32; the backward pass in fp32 (TensorGauge, Fig. 4), or
with `backward="through"` on the unit too.  A seed settles initial weights and batches, so that runs of one seed differ
in their arithmetic alone: their weights are compared with those that torch's fp32 comes to from the same seed.  Where a
task is one step *after* another, a network that fp32 has trained is tested on the unit, and what is said of weights is
said of the gradient of that step.
"""

from __future__ import annotations

import hashlib
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
from mmaformal.studies.training.language import Characters
from mmaformal.studies.training.networks import Digits, Transformer, convolutional, weights_of
from mmaformal.torch import Arithmetic, Needed, arithmetic

Weights: TypeAlias = dict[str, NDArray[np.float32]]

#: Weights are looked at after each of so many parts of a training.
LOOKS = 4


TASKS: dict[str, Digits | Characters] = {
    "transformer": Digits(Transformer, 12, 128, 0.015),
    "convolutional": Digits(convolutional, 8, 64, 0.004),
    "language": Characters(),
    "step": Characters(after="language", windows=256),
}


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

    @property
    def frac_bits(self) -> int:
        """F, the fractional bits that an alignment keeps."""
        return int(self.arithmetic.instruction.parameters.sum_places)

    def frac_bits_as(self, other: TrainingUnit) -> int | None:
        """F, of a unit that is the other but for it; None of one that is not."""
        own, like = self.arithmetic, other.arithmetic
        i, wide = own.instruction, like.instruction
        if own.division != like.division or own.backward != like.backward or i.a_format != wide.a_format:
            return None
        return self.frac_bits if wide.replace(F=self.frac_bits).spec == i.spec else None

    def __str__(self) -> str:
        told = [f"{name}={value}" for name, value in (*self.changes, *self.options)]
        return " ".join([self.architecture, self.instruction, *told])


@dataclass(frozen=True, repr=False)
class Job(ShortRepr):
    """A training; without a unit, torch's own in fp32."""

    network: str
    unit: TrainingUnit | None
    seed: int
    counted: bool = False  #: whether `Needed` looks at every product

    @property
    def key(self) -> str:
        """A key that tells it from others, in a file of results; another schedule is another job."""
        seed = f"{self.seed} counted" if self.counted else self.seed
        return f"{self.network} | {TASKS[self.network]} | {self.unit or 'torch fp32'} | {seed}"


@dataclass(frozen=True, repr=False)
class TrainingOutcome(ShortRepr):
    """The outcome of a training: score, loss, time, and weights."""

    score: float  #: of what was kept for testing: accuracy of images, perplexity of text
    loss: float  #: of the last batch
    seconds: float  #: of this process
    progress: tuple[float, ...]  #: 1 − cosine of all weights with fp32's, after each part of the training
    layers: tuple[tuple[str, float], ...]  #: the same at the end, of each matrix or kernel, in order
    weights: NDArray[np.float32]  #: all of them, at the end
    needed: int | None = None  #: `Needed.bits`, where they were counted

    @property
    def digest(self) -> str:
        """A digest of the weights' bits."""
        return hashlib.sha256(self.weights.tobytes()).hexdigest()[:16]


def train(job: Job) -> TrainingOutcome:
    """Train and test.  What it gives depends on nothing but the job, on one machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that torch's own sums have one order
    try:
        start = time.process_time()
        score, loss, looks, needed = _trained(job)
        seconds = time.process_time() - start
        wanted = _reference(job.network, job.seed)
    finally:
        torch.set_num_threads(threads)
    last, last_wanted = looks[-1], wanted[-1]
    return TrainingOutcome(
        score,
        loss,
        seconds,
        tuple(angle_apart(_flat(x), _flat(y)) for x, y in zip(looks, wanted, strict=True)),
        tuple((name, angle_apart(x, last_wanted[name])) for name, x in last.items() if x.ndim > 1),
        _flat(last),
        needed,
    )


@lru_cache(maxsize=64)
def _reference(network: str, seed: int) -> list[Weights]:
    """The weights that torch's fp32 comes to."""
    return _trained(Job(network, None, seed))[2]


def _trained(job: Job) -> tuple[float, float, list[Weights], int | None]:
    task = TASKS[job.network]
    unit = None if job.unit is None else job.unit.arithmetic
    needed = Needed(unit.instruction) if unit is not None and job.counted else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)
        network = task.make()
    if task.after:
        trained = _reference(task.after, job.seed)[-1]
        network.load_state_dict({name: torch.from_numpy(each) for name, each in trained.items()})
    optimiser = torch.optim.Adam(network.parameters(), lr=task.rate, fused=True)
    rates = [torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, task.steps)]
    if task.warm:
        rates.append(torch.optim.lr_scheduler.LinearLR(optimiser, 1 / task.warm, 1.0, task.warm))
    looks: list[Weights] = []
    loss = torch.zeros(())
    with arithmetic(unit, strict=True) as ran:
        ran.report.watch = needed
        for step, (x, y) in enumerate(task.batches(job.seed)):
            loss = functional.cross_entropy(network(x), y)
            optimiser.zero_grad()
            loss.backward()
            if task.after:
                looks = [{name: p.grad.numpy().copy() for name, p in network.named_parameters()}] * LOOKS
                break
            optimiser.step()
            for rate in rates:
                rate.step()
            if (step + 1) * LOOKS // task.steps > len(looks):
                looks.append(weights_of(network))
        x, y = task.tested()
        with torch.no_grad():
            score = task.score(network(x), y)
    return score, float(loss.detach()), looks, None if needed is None else needed.bits


def _flat(weights: Weights) -> NDArray[np.float32]:
    return np.concatenate([each.reshape(-1) for each in weights.values()])


def angle_apart(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    """1 − the cosine of the angle between two, without the cancellation of that difference; NaN for what is none."""
    u, v = (each.reshape(-1).astype(np.float64) for each in (x, y))
    u, v = (each / np.linalg.norm(each) for each in (u, v))
    return float(((u - v) ** 2).sum() / 2)
