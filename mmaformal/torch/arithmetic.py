"""The arithmetic of a product of matrices: an instruction, scales of inputs, division of K, and the backward pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, get_args

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import integer
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import fp32
from mmaformal.gemm import Division, holds
from mmaformal.identity import identity
from mmaformal.instruction import Instruction
from mmaformal.quantise import Scaling, scaling_of

Backward = Literal["full", "through"]

#: what `matmul` takes beside operands and what a model does not see
DIVISIONS = ("promote_every", "split_k", "stream_k", "tile", "order", "accumulation", "seed")


#: what these are where nothing is said
_NATURAL: dict[str, object] = {
    "split_k": 1,
    "stream_k": None,
    "tile": (128, 128),
    "order": "sequential",
    "accumulation": "natural",
    "seed": 0,
}

_registered: dict[str, Arithmetic] = {}


@dataclass(frozen=True, repr=False)
class Arithmetic(ShortRepr):
    """The arithmetic of a product.  Raises TypeError, ValueError for what makes no sense together."""

    instruction: Instruction
    scaling: Scaling  #: `quantise` says which there are
    backward: Backward = "full"  #: of torch, on operands as they were given; or through the same arithmetic
    division: Division = field(default_factory=Division)  #: `matmul`'s
    jobs: int | None = None  #: None: as many as this process may use processors, where it pays
    key: str = field(init=False)  #: a text that equal arithmetics share, by which operators know this one

    def __post_init__(self) -> None:
        told = [identity(self.instruction.spec), self.scaling, self.backward, str(self.jobs)]
        told += [f"{name}={value!r}" for name, value in sorted(dict(self.division).items())]
        digest = hashlib.sha256(" ".join(told).encode()).hexdigest()[:16]
        object.__setattr__(self, "key", f"{self.instruction.label} {digest}")
        _registered.setdefault(self.key, self)

    @classmethod
    def of(
        cls,
        instruction: Instruction | Arithmetic | str,
        *,
        scaling: str | None = None,
        backward: str = "full",
        jobs: int | None = None,
        **division: object,
    ) -> Arithmetic:
        """Raises as `Arithmetic`; `division` is what `matmul` takes: `promote_every`, `split_k`, `order`, …"""
        if isinstance(instruction, Arithmetic):
            if scaling is not None or backward != "full" or jobs is not None or division:
                raise TypeError("options are of an instruction; an Arithmetic has its own")
            return instruction
        instruction = instruction_meant(instruction)
        if backward not in get_args(Backward):
            raise ValueError(f"backward is one of {', '.join(get_args(Backward))}, not {backward!r}")
        unknown = [name for name in division if name not in DIVISIONS]
        if unknown:
            raise TypeError(f"no {unknown[0]}; matmul's are {', '.join(DIVISIONS)}")
        if jobs is not None and integer(jobs, "jobs") < 1:
            raise ValueError(f"jobs is {jobs}; it counts from 1")
        once = instruction.c_format != instruction.d_format and division.get("promote_every") != 1
        if once:
            raise ValueError(
                f"{instruction.label} takes c as {instruction.c_format} and gives d as {instruction.d_format}: "
                "products of any K need promote_every=1"
            )
        own = Division(**{name: value for name, value in division.items() if value is not None})  # type: ignore[typeddict-item]
        wanted: Backward = "through" if backward == "through" else "full"
        return cls(instruction, scaling_of(instruction, scaling), wanted, own, jobs)

    def structure_words(self, K: int) -> str:
        """How products of that K are made of the instruction, and what scales their operands have."""
        k, said = self.instruction.k, list[str]()
        for name, value in self.division.items():
            if name == "promote_every" and isinstance(value, int):
                said.append(f"promoted every {counted(value, 'instruction')} ({value * k:,} products)")
            elif name not in ("jobs", "progress") and value != _NATURAL.get(name):
                said.append(f"{name}={value}".replace(" ", ""))
        if not any(name in self.division for name in ("promote_every", "split_k", "stream_k")):
            said.insert(0, f"one chain over K, {k} at a time" if k < K else "one instruction")
        scaled = {"none": "no scales", "block": "scales by block"}
        return ", ".join([*said, scaled.get(self.scaling, f"scales by {self.scaling}")])

    @property
    def wide(self) -> bool:
        """Whether results need float64, which float32 does not hold."""
        return not holds(fp32, self.instruction.d_format)

    @property
    def joint(self) -> bool:
        """Whether the scale of a number depends on all numbers of its tensor."""
        scale_format = self.instruction.spec.scale_format
        return self.scaling == "tensor" or (scale_format is not None and scale_format.has_zero)


def registered(key: str) -> Arithmetic:
    """The arithmetic of a key.  Raises LookupError where this process has made none such."""
    try:
        return _registered[key]
    except KeyError:
        raise LookupError(
            f"{key}: no such arithmetic in this process; graphs are not for another one"
        ) from None
