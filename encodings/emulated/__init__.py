"""emulated, a program over another instruction: its parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.checked import integer
from mmaformal.formats import fp16, fp32
from mmaformal.limits import holds_narrower
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters, integers
from mmaformal.summation import Node

#: places by which a word, or a sum, of an emulation is scaled at most
MOST_SHIFT = 64


@dataclass(frozen=True)
class Part:
    """A part of an emulated product (`Emulated`): which products of words go into one sum, and where that goes."""

    products: tuple[tuple[int, int], ...]  #: word of a, word of b, in the order in which the unit takes them
    every: int = (
        0  #: after so many blocks the sum, which began at +0, is added to the total; 0: it is the total
    )
    shift: int = 0  #: the sum is added times 2^-shift

    def __post_init__(self) -> None:
        pairs = tuple(integers(pair, "a product of words") for pair in self.products)
        object.__setattr__(self, "products", pairs)
        for name in ("every", "shift"):
            object.__setattr__(self, name, integer(getattr(self, name), name))
        if not pairs or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
            raise ValueError(f"a part has products of two words each, numbered from 0, not {self.products}")
        if self.every < 0 or not 0 <= self.shift <= MOST_SHIFT:
            raise ValueError(f"every ≥ 0 and 0 ≤ shift ≤ {MOST_SHIFT}, not {self.every} and {self.shift}")
        if self.shift and not self.every:
            raise ValueError("a part that is the total itself is not scaled")

    def __str__(self) -> str:
        words = "+".join(f"{i}·{j}" for i, j in self.products)
        scaled = f"/2^{self.shift}" if self.shift else ""
        return f"({words}){scaled} every {self.every}" if self.every else f"({words})"


def _parts(value: object, name: str) -> tuple[Part, ...]:
    if not isinstance(value, tuple) or not all(isinstance(part, Part) for part in value):
        raise TypeError(f"{name} are a tuple of `Part`, not {value!r}")
    return value


@dataclass(frozen=True, repr=False)
class Emulated(Parameters):
    """emulated, a program over another instruction (semantics §3): words, their products, corrections, last sums.

    fp32 factors become `words` words each, of the unit's formats: the first is φ(x), each later one φ(2^shift·rest),
    the rest being what the word before left, by an IEEE subtraction.  Without φ, a and b are
    one word each, of the unit's formats, or of narrower ones, whose numbers are converted exactly.
    With `common`, all a of a step have an exponent in common, and all b: words are integers of at most 2^common.

    The total starts as c.  Each of `parts` in turn takes the K products block by block, as many as one instruction
    of the unit has: of each block it gives the unit its products of words, each result being the next one's c.  A
    part's sum is the total itself, or it starts at +0 and is added to the total after every so many blocks, and after
    the last, times 2^-shift, by IEEE operations of fp32.
    """

    unit: DotAdd
    parts: tuple[Part, ...]
    blocks: int = (
        1  #: instructions of the unit for one product of words; K more than theirs is a chain of steps
    )
    rounding: Conversion | None = None  #: φ, of a and b, which are fp32 then; None: they are the unit's
    words: int = 1  #: of each factor
    shift: int = 0  #: each word stands for 2^-shift of the one before
    common: int = 0  #: bits of the first word below an exponent in common; 0: each factor has its own

    algorithm: ClassVar[str] = "emulated"
    loss: ClassVar[LossModel] = LossModel.PROGRAM
    is_program: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "a program over instructions: factors cut in words, products of words, corrections"
    )
    kinds: ClassVar[Mapping[str, Callable[[object, str], object]]] = {"tuple[Part, ...]": _parts}
    meanings: ClassVar[Mapping[str, str]] = {
        "unit": "the instruction that takes the products of words",
        "parts": "which products of words go into one sum, and after how many blocks it is added to the total",
        "blocks": "instructions of the unit for one product of words",
        "rounding": "how a word is rounded",
        "words": "of each factor",
        "shift": "each word stands for 2^-shift of the one before",
        "common": "bits of a word below the exponent that all a of a step, or all b, have in common; 0: they have none",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.blocks >= 1, f"blocks ≥ 1, not {self.blocks}")
        self.needs(self.words >= 1, f"words ≥ 1, not {self.words}")
        self.needs(0 <= self.shift <= MOST_SHIFT, f"0 ≤ shift ≤ {MOST_SHIFT}, not {self.shift}")
        self.needs(len(self.parts) >= 1, "a part at least")
        self.needs(not self.unit.parameters.is_program, "a unit that is none itself")
        if self.rounding is None:
            self.needs(self.words == 1 and not self.shift, "a φ, for more than one word")
        else:
            self.needs(self.rounding.signed_zero, f"a φ that keeps the sign of zero, not {self.rounding}")
        for part in self.parts:
            used = max(max(pair) for pair in part.products)
            self.needs(used < self.words, f"words up to {used}, of which there are {self.words}")
            self.needs(part.every <= self.blocks, f"a sum of {self.blocks} blocks, not every {part.every}")
        if self.common:
            most = 0 if self.rounding is None else self.rounding.fraction_bits + 1
            self.needs(0 < self.common <= most, f"words of 1 to {most} bits, not {self.common}")
            self.needs(self.shift == self.common + 1, f"a word {self.common + 1} places below the one before")
            self.needs(all(part.every for part in self.parts), "sums of their own, which are scaled last")

    @property
    def step_products(self) -> int:
        return self.blocks * self.unit.k

    def check(self, spec: DotAdd) -> None:
        unit = self.unit
        self.needs(unit.scale_format is None, "a unit without block scales")
        for x, word in ((spec.a_format, unit.a_format), (spec.b_format, unit.b_format)):
            if self.rounding is None:
                narrower = word in (fp16, fp32) and holds_narrower(word, x)
                self.needs(x == word or narrower, f"a and b that the unit's formats hold, not {spec.types}")
            else:
                self.needs(x == fp32, f"a and b of fp32, not {spec.types}")
                kept = self.rounding.format.storage_bits, self.rounding.fraction_bits
                self.needs(kept == (word.storage_bits, word.fraction_bits), f"a φ that gives {word}")
                self.needs(self.rounding.format.exponent_bits == word.exponent_bits, f"a φ that gives {word}")
        one = spec.c_format == spec.d_format == unit.c_format == unit.d_format == fp32
        self.needs(one, f"c and d of fp32, the unit's too, not {spec.types} and {unit.types}")

    def class_of(self, k: int) -> Hashable:
        """The block, and the unit's own classes there."""
        return k // self.unit.k, self.unit.class_of(k % self.unit.k)

    @property
    def last_rounding(self) -> Conversion:
        return IEEE_FP32 if self.parts[-1].every else self.unit.parameters.last_rounding

    def keeps(self, spec: DotAdd) -> str:
        own = "the total is fp32" if self.parts[-1].every else "the total is the unit's"
        return f"{self.unit.parameters.keeps(self.unit)}, in the unit; {own}"

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        """Raises ValueError: a product is several of words, which are summed apart."""
        raise ValueError("a program sums products of words")
