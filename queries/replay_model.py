"""A PyTorch model's run made again bit for bit, from its inputs and weights, and the first tensor that is not equal.

    found = replay_model(model, tokens)
    print(found)       # how many tensors are equal, and the first that is not

Every operator that the model calls is written down, and made again on what was made before: sums by the structures and
the orders of additions that PyTorch's libraries have on this processor, elementwise functions by torch itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mmaformal.architectures import datapaths
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.executors import checked_jobs
from mmaformal.formats import Format, fp32
from mmaformal.queries.explain import explain
from mmaformal.renamed import lines
from mmaformal.result import Result
from mmaformal.structures import CodeArray

if TYPE_CHECKING:
    from mmaformal.torch.replayed.again import Wrong
    from mmaformal.torch.replayed.lanes import F32
    from mmaformal.torch.replayed.products import ProductMaker


@dataclass(frozen=True, repr=False)
class ReplayedModel(Result):
    """How many tensors of a replay are equal, the first that are not, and what was taken from where."""

    tensors: Mapping[str, int]  #: compared, by what made them: `sum`, `elementwise`, `moved`, `chosen`
    equal: Mapping[str, int]  #: of these
    wrong: tuple[Wrong, ...]  #: the first that are not
    left: Mapping[tuple[str, str], int]  #: calls that were not replayed, by operator and reason
    sums: Mapping[str, int]  #: calls replayed by a rule, by operator
    structures: Mapping[str, Mapping[str, int]]  #: of products, by operator: how often each was used
    called: Mapping[str, int]  #: elementwise functions taken from torch, by operator: calls
    taken: Mapping[str, int]  #: elementwise functions that rules took from libraries, by name: calls
    repeats: bool  #: whether the model gives the same bits when it is run once more
    threads: int
    seconds: float  #: of the replay, learning structures included
    model_seconds: float  #: of the model's own run
    cpu_seconds: float  #: of the replay's threads
    model_cpu_seconds: float  #: of the model's

    @property
    def verdict(self) -> str:
        """`equal` if every tensor is and every call was replayed, `differs`, `part` if calls were left."""
        if self.wrong:
            return "differs"
        return "part" if self.left else "equal"

    @property
    def times(self) -> float:
        """How many times the model's processor time the replay took."""
        return self.cpu_seconds / max(self.model_cpu_seconds, 1e-9)

    @property
    def summary(self) -> str:
        """Returns one line."""
        many, all_of = sum(self.equal.values()), sum(self.tensors.values())
        said = f"{many:,} of {counted(all_of, 'tensor')} equal, bit for bit"
        if self.left:
            said += f"; {counted(sum(self.left.values()), 'call')} not replayed"
        return f"{self.verdict}: {said}"

    def __str__(self) -> str:
        told = [self.summary]
        if self.wrong:
            told += _told(self.wrong[0])
        told += [
            f"  not replayed: {name}, {counted(count, 'call')}: {why}"
            for (name, why), count in self.left.items()
        ]
        told.append(f"  sums replayed: {_listed(self.sums)}")
        for name, uses in self.structures.items():
            told += [f"    {name}, {count}×: {text}" for text, count in uses.items()]
        told.append(f"  taken from torch, number by number: {_listed(self.called)}")
        if self.taken:
            told.append(f"  and within sums: {_listed(self.taken)}")
        if not self.repeats:
            told.append("  the model gives other bits when it is run once more: the replay is of one run")
        told.append(
            f"  {self.seconds:.2f} s, the model's own run {self.model_seconds:.3f} s with "
            f"{counted(self.threads, 'thread')}; {self.times:.1f} times its processor time"
        )
        return "\n".join(told)

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "verdict": self.verdict,
            "tensors": dict(self.tensors),
            "equal": dict(self.equal),
            "wrong": [each._asdict() for each in self.wrong],
            "not_replayed": [
                {"operator": name, "why": why, "calls": count} for (name, why), count in self.left.items()
            ],
            "sums": dict(self.sums),
            "structures": {name: dict(uses) for name, uses in self.structures.items()},
            "from_torch": dict(self.called),
            "within_sums": dict(self.taken),
            "repeats": self.repeats,
            "threads": self.threads,
            "seconds": round(self.seconds, 3),
            "model_seconds": round(self.model_seconds, 4),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "model_cpu_seconds": round(self.model_cpu_seconds, 4),
        }


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()) if count) or "none"


def _told(first: Wrong) -> list[str]:
    """Returns lines about the first tensor that is not equal."""
    where = f" in {first.module}" if first.module else ""
    reads = f", which takes {', '.join(first.reads)}" if first.reads else ""
    shape = "×".join(map(str, first.shape)) or "1"
    apart = "" if first.ulps is None else f", {first.ulps:,} ulp apart"
    return [
        f"  the first that is not: tensor {first.number:,}, of {first.operator}{where}{reads}",
        f"    {counted(first.elements, 'element')} of {shape} {first.dtype}; at {list(first.place)} the model has "
        f"{first.recorded}, the replay {first.replayed}{apart}",
    ]


#: Seconds for looking for the structure of one shape.
_SEARCHING = 20.0


def _search(D: CodeArray, A: F32, B: F32, C: F32 | None, d_format: Format) -> ProductMaker | None:
    """Returns what explains a whole product, the first that is found: a structure, or those of regions; or None.

    Of bf16 it is one of VDPBF16PS or TDPBF16PS, or, as of fp32, of IEEE 754's fma; of vectors of fp32, of its
    multiplication and addition, too.
    """
    from mmaformal.torch.replayed.lanes import fma_unit
    from mmaformal.torch.replayed.products import ByRegions, bf16_units

    vectors = [datapaths.mul_add(a="fp32")] if 1 in D.shape else []
    for unit in (*vectors, fma_unit()) if d_format == fp32 else (*bf16_units(), fma_unit()):
        found = explain(
            D,
            A,
            B,
            C,
            against=unit,
            a_format=unit.a_format,
            b_format=unit.b_format,
            c_format=None if C is None else fp32,
            d_format=d_format,
            timeout=_SEARCHING,
        )
        if found.verdict == "explained":
            structures, which = found.by_regions
            return structures[0] if len(structures) == 1 else ByRegions(structures, which)
    return None


def replay_model(
    model: Callable[..., object],
    *inputs: object,
    named: Mapping[str, object] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> ReplayedModel:
    """Find whether a PyTorch model's run can be made again bit for bit, on this processor, and where it first is not.

    `model` is a `torch.nn.Module`, or any function of torch's operators, called with `inputs` and, by keywords, with
    what is `named`, without gradients.  It runs twice: once to write down every operator that it calls with all
    tensors, and once to be timed.  Then every call is made again on what was made before, from the inputs and weights
    alone, and each tensor is compared with the model's.

    Sums (`mm`, `addmm`, `bmm`, `mean`, `sum`, `_softmax`, `native_layer_norm`, attention) have rules of their own, in
    fp32 and bf16; the structure of a product of matrices is learnt by asking the library for one product of random
    numbers of the same shape and layout.  What computes each number by itself, or moves numbers, is torch's.  A call of
    an operator without a rule, or of one whose rule does not reach so far, is named and counted, and the replay goes on
    with what the model had.  `jobs`: threads of torch's (default: as it is set).  `progress` is called with a line of
    text as calls are made.

    Returns a `ReplayedModel`.  Raises ImportError where PyTorch is not installed.
    """
    caller(progress)
    say = lines(progress, "done") or (lambda _: None)
    from mmaformal.torch.replayed.again import Replay
    from mmaformal.torch.replayed.recorder import record_products

    with _threads(jobs):
        recording = record_products(model, inputs, dict(named or {}))
        found = Replay(recording, _search, say).run()
    state = found.state
    return ReplayedModel(
        tensors=found.tensors,
        equal=found.equal,
        wrong=tuple(found.wrong),
        left=found.left,
        sums=found.sums,
        structures=state.products.structures,
        called=Counter(found.called),
        taken=state.taken,
        repeats=recording.repeats,
        threads=recording.threads,
        seconds=found.seconds,
        model_seconds=recording.seconds,
        cpu_seconds=found.cpu_seconds,
        model_cpu_seconds=recording.cpu_seconds,
    )


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Within this block torch has so many threads, if a number is given.  Raises TypeError or ValueError for none."""
    if count is None:
        yield
        return
    import torch

    wanted, before = checked_jobs(count), torch.get_num_threads()
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
