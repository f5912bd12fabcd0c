"""The trainings of the study, and running them: on any executor, each kept in a file as it is done.

Parts: `bits` (FracBits for each format, K = 16), `groups` (K, fused and separated),
`orders` (of accumulation), `units` (of the registry).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.studies.rows import read_rows
from mmaformal.studies.training.runs import Job, TrainingOutcome, TrainingUnit, train

#: Jobs handed to the executor, for each of its workers, before one comes back.
_AHEAD = 2

#: Blackwell's units of fp4, whose products are summed exactly in groups (GFDA): 16 e2m1 and their scales
FP4 = {
    "nvfp4": ("rtx_blackwell", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    "mxfp4": ("rtx_blackwell", "OMMA.SF.16864.F32.E2M1.E2M1.E8"),
}


@dataclass(frozen=True, repr=False)
class Setting(ShortRepr):
    """A point of the study: where it stands in which figure, and the unit."""

    part: str
    curve: str
    x: str
    unit: TrainingUnit | None
    seeds: int | None = None  #: so many at most
    counted: bool = False

    def job(self, network: str, seed: int) -> Job:
        return Job(network, self.unit, seed, self.counted)


def _datapath(kind: str, fmt: str, bits: int, k: int = 16) -> TrainingUnit:
    """A point of the design space: a fused or separated dot-add of k products with so many fractional bits."""
    return TrainingUnit("datapath", f"{kind}(k={k},frac_bits={bits},a={fmt})")


def with_bits(fmt: str, bits: int) -> TrainingUnit:
    """The fused path of a format, K = 16; the grouped one of fp4."""
    return TrainingUnit(*FP4[fmt], (("F", bits),)) if fmt in FP4 else _datapath("fda", fmt, bits)


@dataclass(frozen=True, repr=False)
class Study(ShortRepr):
    """The networks of a study, and what is varied."""

    networks: tuple[str, ...]
    seeds: int
    bits: Mapping[str, Sequence[int]]  #: FracBits of each format, K = 16
    one_seed: Mapping[str, Sequence[int]]  #: more of them, of one seed
    counted: Mapping[str, int]  #: those of a run that counts how many are needed
    fmt: str  #: of the other parts
    groups_at: tuple[int, ...]  #: FracBits for which K is varied
    groups: Mapping[str, Sequence[int]]  #: K of the fused and of the separated path; G of nvfp4
    orders: tuple[str, ...]
    units: bool = False
    options: tuple[tuple[str, str | int], ...] = ()  #: of all


_DIGITS = (2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28)  # below 8, so that it is seen where training fails
_FP4 = (8, 16, 24, 35)  # a grouped path takes no fewer than 8; 35 are the unit's own
STUDIES = {
    "digits": Study(
        ("transformer", "convolutional"),
        5,
        {"fp16": _DIGITS, "e4m3": _DIGITS, "bf16": (4, 8, 12, 16, 20, 24, 28), "nvfp4": _FP4, "mxfp4": _FP4},
        {},
        {},
        "fp16",
        (4, 24),
        {"fda": (4, 8, 16, 32, 64), "sda": (4, 16, 64)},
        ("natural", "random", "kahan", "anti-kahan"),  # `grouped` would take a minute for each transformer
        units=True,
    ),
    "language": Study(
        ("language",),
        3,
        {"e4m3": range(18, 27), "nvfp4": range(18, 33), "mxfp4": range(18, 33)},
        {"e4m3": (4, 8, 10, 12, 14, 16), "nvfp4": (8, 12), "mxfp4": (8, 12)},
        {"e4m3": 44, "nvfp4": 40, "mxfp4": 40},
        "e4m3",
        (10, 24),
        {**dict.fromkeys(("fda", "sda"), (4, 8, 16, 32, 64)), "nvfp4": (4, 8, 16)},
        ("natural", "random", "kahan", "grouped", "anti-kahan"),
        options=(("backward", "through"),),
    ),
}


STUDIES["step"] = replace(STUDIES["language"], networks=("step",))


def settings(study: Study, parts: Iterable[str] = ("bits", "groups", "orders", "units")) -> list[Setting]:
    """Those of some parts; torch's fp32 comes first, which all are compared with."""
    made = {"bits": _bits, "groups": _groups, "orders": _orders, "units": _units}
    return [
        Setting("reference", "torch fp32", "", None),
        *(
            replace(s, unit=replace(s.unit, options=(*study.options, *s.unit.options)))
            for part in parts
            for s in made[part](study)
            if s.unit is not None
        ),
    ]


def _bits(study: Study) -> Iterator[Setting]:
    for fmt, widths in study.bits.items():
        for n in [study.counted[fmt]] if fmt in study.counted else []:
            yield Setting("bits", fmt, str(n), with_bits(fmt, n), counted=True)
        for n in sorted([*widths, *study.one_seed.get(fmt, ())]):
            yield Setting("bits", fmt, str(n), with_bits(fmt, n), None if n in widths else 1)


def _groups(study: Study) -> Iterator[Setting]:
    for bits in study.groups_at:
        for kind, ks in study.groups.items():
            for k in ks if kind not in FP4 else ():
                unit = _datapath(kind, study.fmt, bits, k)
                yield Setting("groups", f"{kind.upper()}, FracBits {bits}", str(k), unit)
    for group in study.groups.get("nvfp4", ()):  # 16 are the unit's own
        unit = with_bits("nvfp4", bits)
        unit = unit if group == 16 else replace(unit, changes=(*unit.changes, ("G", group)))
        yield Setting("groups", f"groups of nvfp4, FracBits {bits}", str(group), unit)


def _orders(study: Study) -> Iterator[Setting]:
    """Steps of four products, so that there are many."""
    for order in study.orders:
        unit = replace(_datapath("fda", study.fmt, 24, k=4), options=(("accumulation", order),))
        yield Setting("orders", order, "", unit)


def _units(study: Study) -> Iterator[Setting]:
    if not study.units:
        return
    fp8 = "hopper", "QGMMA.64x8x32.F32.E4M3.E4M3"
    for name, unit in {
        "hopper fp8": TrainingUnit(*fp8),
        "hopper fp8, fp32 every 128": TrainingUnit(*fp8, options=(("promote_every", 4),)),
        "blackwell fp8": TrainingUnit("blackwell", "UTCQMMA.F32.E4M3.E4M3"),
        "ampere bf16": TrainingUnit("ampere", "HMMA.16816.F32.BF16"),
        "hopper bf16": TrainingUnit("hopper", "HMMA.16816.F32.BF16"),
        "sapphire_rapids bf16 (TDPBF16PS)": TrainingUnit("sapphire_rapids", "TDPBF16PS"),
        "FMA of fp16": TrainingUnit("datapath", "fma(k=16)"),
        "MUL+ADD of fp16": TrainingUnit("datapath", "mul_add(k=16)"),
    }.items():
        yield Setting("units", name, "", unit)


def jobs(found: Sequence[Setting], networks: Iterable[str], seeds: int) -> list[Job]:
    """Each once, whatever settings share it; all of one seed before the next, so that a part tells something."""
    every = (
        s.job(network, seed)
        for seed in range(seeds)
        for network in networks
        for s in found
        if s.seeds is None or seed < s.seeds
    )
    return list(dict.fromkeys(every))


# ---- results -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SweepResult(ShortRepr):
    """A line of the file of results."""

    key: str
    score: float
    loss: float
    seconds: float
    progress: Sequence[float]
    layers: Sequence[tuple[str, float]]
    needed: int | None  #: FracBits from which on nothing is lost, where that was counted
    digest: str  #: of the weights
    equal_to: str | None = (
        None  #: the key of a counted training that this one is proved equal to, and was not run
    )


class Results:
    """The results of a folder, and the weights beside them; what is there is not made again."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError for a file that holds something else, OSError if it cannot be read or written."""
        self.folder = folder
        (folder / "weights").mkdir(parents=True, exist_ok=True)
        self.file = folder / "training.jsonl"
        self.known = {each.key: each for each in read_rows(self.file, SweepResult)}

    def __getitem__(self, job: Job) -> SweepResult:
        return self.known[job.key]

    def __contains__(self, job: Job) -> bool:
        return job.key in self.known

    def weights(self, job: Job) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.load(self._weights_file(job.key))
        return found

    def add(self, job: Job, outcome: TrainingOutcome, equal_to: str | None = None) -> None:
        """Weights first: a job is done once its line is written."""
        path = self._weights_file(job.key)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            np.save(out, outcome.weights)
        part.replace(path)
        told = {name: value for name, value in vars(outcome).items() if name != "weights"}
        found = SweepResult(job.key, **told, digest=outcome.digest, equal_to=equal_to)
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(vars(found)) + "\n")
        self.known[job.key] = found

    def settle(self, job: Job, counted: Iterable[Job]) -> bool:
        """Add the result of a job that a counted one proves equal to itself: no width from there on loses anything."""
        for other in counted:
            found = self.known.get(other.key)
            if (
                found is None
                or found.needed is None
                or (job.network, job.seed) != (other.network, other.seed)
            ):
                continue
            assert other.unit is not None
            bits = None if job.unit is None else job.unit.frac_bits_as(other.unit)
            if bits is not None and min(bits, other.unit.frac_bits) >= found.needed:
                own = found.score, found.loss, 0.0, tuple(found.progress), tuple(found.layers)
                self.add(job, TrainingOutcome(*own, self.weights(other)), other.key)
                return True
        return False

    def _weights_file(self, key: str) -> Path:
        return self.folder / "weights" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"


# ---- running -----------------------------------------------------------------------------------------------------


def run_sweep(
    wanted: Sequence[Job],
    results: Results,
    executor: Executor,
    width: int,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> None:
    """Train what is not known yet; `width` is the number of the executor's workers.

    Raises what a training raises, and the executor when it breaks; what was done by then is kept.
    """
    counted = [job for job in wanted if job.counted]
    left = [job for job in wanted if job not in results]
    left.reverse()
    at: dict[Future[TrainingOutcome], Job] = {}
    while left or at:
        while left and len(at) < _AHEAD * width:
            job = left.pop()
            if not job.counted and results.settle(job, counted):
                continue
            at[executor.submit(train, job)] = job
        finished, _ = wait(at, 0.5, FIRST_COMPLETED)
        for future in finished:
            results.add(at.pop(future), future.result())
        told(len(wanted) - len(left) - len(at), len(wanted))


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the standard deviation of a sample; 0 of one value."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1))
