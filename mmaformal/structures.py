"""How a library makes a whole product of matrices from one instruction: which chains it cuts K into, in which order it
adds them, in which type, and to what it rounds in the end.

    D = replay(A, B, Structure(sapphire_rapids["TDPBF16PS"], block=2048, d_format=bf16))

`mmaformal.diagnose_gemm` finds the structures that reproduce a recorded product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, integer
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import FORMATS, Format, fp32, fp64
from mmaformal.gemm import holds, matmul, rounded, values
from mmaformal.instruction import Instruction
from mmaformal.operands import as_operand, float_format
from mmaformal.renamed import keywords

Codes = NDArray[Any]
T = TypeVar("T")
Merging = Literal["sequential", "pairwise", "halves"]
#: Where C enters: the first chain starts from it; it is added before the chains' results, or after them, in their type;
#: it is added to D, which is rounded before and after.
CPlace = Literal["start", "first", "last", "after"]
ORDER_WORDS: dict[Merging, str] = {
    "sequential": "in order",
    "pairwise": "in pairs",
    "halves": "each to that half of them on",
}
_C_WORDS = {
    "start": "the first from C",
    "first": "C before them",
    "last": "C after them",
}


@dataclass(frozen=True, repr=False)
class Structure(ShortRepr):
    """K as chains of one instruction, each from c = +0; their results added; the sum rounded to D's type.

    Raises ValueError for what does not fit together.
    """

    instruction: Instruction
    block: int | None = (
        None  #: products of K that one chain takes; the last may take fewer. None: one takes all
    )
    lanes: int = 1  #: chains that take the instructions of K in turn, as vector lanes do
    order: Merging = "sequential"  #: in which their results are added
    total: Format = fp32  #: the type in which they are added, to nearest even
    d_format: Format | None = None  #: what the sum is rounded to, to nearest even. None: what it is
    #: Where more than one block is left and less than two, they are cut in two, the first of a multiple of so many
    #: products (as Goto's GEMM does, and libraries after it).  None: the last block takes what the others leave.
    halved: int | None = None
    c_enters: CPlace | None = None  #: None: there is no C

    def __post_init__(self) -> None:
        i = self.instruction
        if i.spec.scale_format is not None:
            raise ValueError(f"{i.label} takes block scales; a structure has none")
        if i.c_format != i.d_format:
            raise ValueError(
                f"{i.label} takes c as {i.c_format} and gives d as {i.d_format}: it cannot be chained"
            )
        if integer(self.lanes, "lanes") < 1:
            raise ValueError(f"{self.lanes} lanes; they count from 1")
        if self.block is not None and self.lanes != 1:
            raise ValueError("K is cut into blocks or dealt to lanes, not both")
        if self.block is not None and (integer(self.block, "block") < 1 or self.block % i.k):
            raise ValueError(f"blocks of {self.block} products; {i.label} takes {i.k} at a time")
        if self.halved is not None and self.block is None:
            raise ValueError("what is left is halved where K is cut into blocks; there are none")
        if self.halved is not None and (integer(self.halved, "halved") < 1 or self.halved % i.k):
            raise ValueError(f"halves of a multiple of {self.halved}; {i.label} takes {i.k} at a time")
        if self.order not in get_args(Merging):
            raise ValueError(f"order is one of {', '.join(get_args(Merging))}, not {self.order!r}")
        if self.c_enters not in (None, *get_args(CPlace)):
            raise ValueError(f"C enters at {', '.join(get_args(CPlace))}, not {self.c_enters!r}")
        if self.c_enters == "first" and self.order != "sequential":
            raise ValueError("C is added before the chains' results where these are added in order")
        if self.total.dtype is None or self.total.word.itemsize < 4 or not holds(self.total, i.d_format):
            raise ValueError(
                f"sums of {i.d_format} are added in fp32 or fp64 that holds them, not {self.total}"
            )

    @classmethod
    def named(
        cls,
        instruction: str,
        *,
        block: int | None = None,
        lanes: int = 1,
        order: Merging = "sequential",
        total: str = "fp32",
        d_format: str | None = None,
        halved: int | None = None,
        c_enters: CPlace | None = None,
    ) -> Structure:
        """Returns the structure of names: `Structure.named("h100 HMMA.16816.F32", block=128, d_format="fp16")`.

        Raises ValueError for what there is not or does not fit together.
        """
        for name in (total, *([d_format] if d_format is not None else [])):
            if name not in FORMATS:
                raise ValueError(f"no format {name!r}; there are {', '.join(FORMATS)}")
        return cls(
            instruction_meant(instruction),
            block,
            lanes,
            order,
            FORMATS[total],
            None if d_format is None else FORMATS[d_format],
            halved,
            c_enters,
        )

    @property
    def python(self) -> str:
        """The call of `named` that makes it, for a program."""
        i = self.instruction
        whole = i.d_format if self.whole else self.total
        given = {
            "block": self.block,
            "lanes": self.lanes if self.lanes != 1 else None,
            "order": self.order if self.order != "sequential" else None,
            "total": self.total.name if self.total != fp32 else None,
            "d_format": None if self.d_format in (None, whole) else self.d_format.name,
            "halved": self.halved,
            "c_enters": self.c_enters,
        }
        said = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
        return f"Structure.named({i.label!r}{said})".replace("'", '"')

    def parts(self, K: int) -> list[range]:
        """Which instructions of a product of that K each chain takes, in the order of the chains."""
        steps = max(-(-K // self.instruction.k), 1)
        if self.block is None:
            return [range(lane, steps, self.lanes) for lane in range(min(self.lanes, steps))]
        each = self.block // self.instruction.k
        starts = list(range(0, steps, each))
        if self.halved is not None and len(starts) > 1:
            unit = self.halved // self.instruction.k
            left = steps - starts[-2]
            starts[-1] = starts[-2] + min(-(-left // (2 * unit)) * unit, each)
        return [range(first, end) for first, end in zip(starts, [*starts[1:], steps], strict=True)]

    @property
    def result(self) -> Format:
        """The type of D."""
        alone = self.whole and self.c_enters in (None, "start")
        return self.d_format or (self.instruction.d_format if alone else self.total)

    @property
    def c_format(self) -> Format:
        """The type of C: that of the instruction, or that in which sums are added."""
        return self.instruction.c_format if self.c_enters == "start" else self.total

    @property
    def whole(self) -> bool:
        """Whether one chain takes all of K, so that nothing is added."""
        return self.block is None and self.lanes == 1

    @property
    def text(self) -> str:
        """In words, for a person."""
        i = self.instruction
        start = "C" if self.c_enters == "start" and self.whole else "+0"
        chains = f"a chain of {plain_name(i)} over K, {i.k} at a time, from {start}"
        if not self.whole:
            parts = f"blocks of {self.block}" if self.block else f"{self.lanes} lanes by turns"
            if self.halved is not None:
                parts += f", less than two left halved to a multiple of {self.halved}"
            added = f"added {ORDER_WORDS[self.order]} in {self.total}"
            chains = f"K in {parts}, each {chains.replace(' over K', '')}; {added}"
        if self.whole and self.c_enters in ("first", "last"):
            chains += f"; C added in {self.total}"
        elif not self.whole and self.c_enters in _C_WORDS:
            chains += f", {_C_WORDS[self.c_enters]}"
        end = f"; rounded to {self.d_format} (RNE)" if self.d_format not in (None, i.d_format) else ""
        return chains + end + ("; then C added and rounded again" if self.c_enters == "after" else "")

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        i = self.instruction
        return {
            "architecture": i.architecture,
            "instruction": i.name,
            "block": self.block,
            "halved": self.halved,
            "lanes": self.lanes,
            "order": self.order,
            "total": self.total.name,
            "d_format": self.result.name,
            "c_enters": self.c_enters,
            "name": plain_name(i),
            "text": self.text,
        }


def plain_name(instruction: Instruction) -> str:
    """`IEEE fma` for what IEEE 754 defines, whoever has it; the label of any other instruction."""
    return instruction.parameters.ieee_name(instruction.spec) or instruction.label


@keywords(threads="jobs")
def replay(
    A: ArrayLike,
    B: ArrayLike,
    structure: Structure,
    C: ArrayLike | None = None,
    *,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
) -> Codes:
    """Compute D (M×N) = A (M×K) · B (K×N) + C as the structure makes it: bit patterns of `structure.result`.

    A, B: bit patterns of the instruction's types, or floats of exactly these; C, broadcast to D, where the structure
    says where it enters: floats, or bit patterns of what `Structure.c_format` is; `jobs` and `progress` as in `matmul`.

    Raises ValueError for shapes that do not fit, and for a C that the structure does not have, TypeError for other
    types.
    """
    i = structure.instruction
    a, b = as_operand(A, i.a_format, "A").codes, as_operand(B, i.b_format, "B").codes
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"A of shape {a.shape} times B of shape {b.shape}: M×K and K×N are needed")
    if (C is None) != (structure.c_enters is None):
        raise ValueError("C is given where the structure has `c_enters`, and only there")
    c = None if C is None else addend(C, structure, (len(a), b.shape[1]))
    sums = list[Codes]()
    for part in structure.parts(a.shape[1]):
        taken = products(part, i.k, a.shape[1])
        left, right = np.ascontiguousarray(a[:, taken]), np.ascontiguousarray(b[taken])
        start = c if structure.c_enters == "start" and not sums else None
        sums.append(matmul(left, right, start, instruction=i, jobs=jobs, progress=progress))
    return finished(sums, structure, c)


def addend(C: ArrayLike, structure: Structure, shape: tuple[int, int]) -> Codes:
    """C as codes of `structure.c_format` and of D's shape.

    Raises ValueError for another shape and for floats that are not exactly of that format, TypeError as `as_operand`.
    """
    wanted = structure.c_format
    given = float_format(C)
    codes = as_operand(C, given or wanted, "C").codes
    if given is not None and not holds(wanted, given):
        raise ValueError(f"C is {given}, of which {wanted} does not hold all")
    codes = exactly(codes, given or wanted, wanted)
    try:
        return np.ascontiguousarray(np.broadcast_to(codes, shape))
    except ValueError:
        raise ValueError(
            f"C has shape {codes.shape}; {shape} is needed, or one that is broadcast to it"
        ) from None


def exactly(codes: Codes, fmt: Format, wanted: Format) -> Codes:
    """Codes of a format as those of one that holds it; a NaN becomes its quiet one."""
    if fmt == wanted:
        return codes
    wide = fp32 if holds(fp32, wanted) else fp64
    return rounded(values(codes, fmt, wide), wide, wanted, quiet_nan(wanted))


def products(part: range, k: int, K: int) -> slice | NDArray[np.intp]:
    """The products of K that instructions of k take."""
    if part.step == 1:
        return slice(part.start * k, min(part.stop * k, K))
    taken = (np.array(part, np.intp)[:, None] * k + np.arange(k)).ravel()
    return taken[taken < K]


def finished(sums: Sequence[Codes], structure: Structure, c: Codes | None = None) -> Codes:
    """D's bit patterns from those of all chains' results, and of C (`addend`)."""
    i, result, wide = structure.instruction, structure.result, structure.total
    enters = structure.c_enters if structure.c_enters != "start" else None
    if len(sums) == 1 and result == i.d_format and enters is None:
        return sums[0]
    terms = [values(each, i.d_format, wide) for each in sums]
    more = [] if c is None or enters is None else [values(c, wide, wide)]
    total = added([*more, *terms] if enters == "first" else terms, structure.order)
    if enters == "last":
        total = added([total, *more], "sequential")
    d = rounded(total, wide, result, quiet_nan(result))
    if enters == "after":
        d = rounded(added([values(d, result, wide), *more], "sequential"), wide, result, quiet_nan(result))
    return d


def added(sums: Sequence[NDArray[Any]], order: Merging) -> NDArray[Any]:
    """Floats added by IEEE 754 in their type."""
    with np.errstate(all="ignore"):
        return merged(sums, order, np.add)


def merged(sums: Sequence[T], order: Merging, add: Callable[[T, T], T]) -> T:
    """One of all, by `add` of two at a time."""
    if order == "sequential":
        return reduce(add, sums)
    level = list(sums)
    while len(level) > 1:
        half = len(level) // 2
        first, second = (level[0::2], level[1::2]) if order == "pairwise" else (level[:half], level[half:])
        level = [add(x, y) for x, y in zip(first, second, strict=False)] + level[2 * half :]
    return level[0]
