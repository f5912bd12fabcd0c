"""How a library makes a whole product of matrices from one instruction: which chains it cuts K into, in which order it
adds them, in which type, and to what it rounds in the end.

    D = replay(A, B, Structure(sapphire_rapids["TDPBF16PS"], block=2048, d_format=bf16))

`mmaformal.diagnose_gemm` finds the structures that reproduce a recorded product.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, integer
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import FORMATS, Format, fp32, fp64
from mmaformal.gemm import holds, matmul, rounded_codes, values
from mmaformal.instruction import Instruction
from mmaformal.operands import as_operand, float_format
from mmaformal.renamed import keywords
from mmaformal.structure_plans import (
    Chain,
    Dealing,
    FusedPlan,
    RestPlan,
    Segment,
    Short,
    blocks_of,
    evaluated,
    halved_last,
    lanes_left,
    levels_of,
    products_of,
    rest_of,
    scales_of,
)
from mmaformal.structure_words import structure_text

CodeArray = NDArray[Any]
RealArray = NDArray[Any]
#: Where C enters: the first chain starts from it; it is added before the chains' results, or after them, in their type;
#: it is added to D, which is rounded before and after.
CPlace = Literal["start", "first", "last", "after"]


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
    #: In which the results of lanes are added, or without lanes those of blocks: a word, or levels.  `4x4 2 1`: lanes
    #: 4 apart, four of them in order; then those 2 apart; then neighbours.
    order: str = "sequential"
    total: Format = fp32  #: the type in which they are added, to nearest even
    d_format: Format | None = None  #: what the sum is rounded to, to nearest even. None: what it is
    #: Where more than one block is left and less than two, they are cut in two, the first of a multiple of so many
    #: products (as Goto's GEMM does, and libraries after it).  None: the last block takes what the others leave.
    halved: int | None = None
    c_enters: CPlace | None = None  #: None: there is no C
    smaller: tuple[int, ...] = ()  #: sizes of blocks, falling, that what is left of K is cut into
    unit: int | None = None  #: lanes take a multiple of so many products of a block.  None: all
    #: Where the products go that `unit` leaves, or, without it, those that fill no block.  None: there are none, or
    #: they are a shorter turn, a shorter block.
    rest: RestPlan | None = None
    fused: FusedPlan = "yes"  #: how the rest is a chain
    short: Short = "last"  #: which turn of the lanes it is that has fewer of them
    stored: Format | None = None  #: what the sum is rounded to after each block, to nearest even
    chained: FusedPlan = "yes"  #: how chains are made, but for the rest
    dealt_from: int = 1  #: blocks of fewer products than these are one chain, and not dealt to lanes
    #: Products that the first lane takes before the others are dealt, as where vectors start at an aligned address.
    peeled: int = 0
    onto: int = 0  #: products of each whole block that go on from the sum; its others are apart

    def __post_init__(self) -> None:
        i = self.instruction
        if i.c_format != i.d_format:
            raise ValueError(
                f"{i.label} takes c as {i.c_format} and gives d as {i.d_format}: it cannot be chained"
            )
        if integer(self.lanes, "lanes") < 1:
            raise ValueError(f"{self.lanes} lanes; they count from 1")
        if self.block is not None and (integer(self.block, "block") < 1 or self.block % i.k):
            raise ValueError(f"blocks of {self.block} products; {i.label} takes {i.k} at a time")
        if self.halved is not None and self.block is None:
            raise ValueError("what is left is halved where K is cut into blocks; there are none")
        if self.halved is not None and (integer(self.halved, "halved") < 1 or self.halved % i.k):
            raise ValueError(f"halves of a multiple of {self.halved}; {i.label} takes {i.k} at a time")
        levels_of(self.order, self.lanes)  # raises for what is none
        _check_rest(self)
        if self.c_enters not in (None, *get_args(CPlace)):
            raise ValueError(f"C enters at {', '.join(get_args(CPlace))}, not {self.c_enters!r}")
        if self.c_enters == "first" and not self.in_order:
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
        order: str = "sequential",
        total: str = "fp32",
        d_format: str | None = None,
        halved: int | None = None,
        c_enters: CPlace | None = None,
        smaller: tuple[int, ...] = (),
        unit: int | None = None,
        rest: RestPlan | None = None,
        fused: FusedPlan = "yes",
        short: Short = "last",
        stored: str | None = None,
        chained: FusedPlan = "yes",
        dealt_from: int = 1,
        peeled: int = 0,
        onto: int = 0,
    ) -> Structure:
        """Returns the structure of names: `Structure.named("h100 HMMA.16816.F32", block=128, d_format="fp16")`.

        Raises ValueError for what there is not or does not fit together.
        """
        for name in (total, d_format, stored):
            if name is not None and name not in FORMATS:
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
            tuple(smaller),
            unit,
            rest,
            fused,
            short,
            None if stored is None else FORMATS[stored],
            chained,
            dealt_from,
            peeled,
            onto,
        )

    @property
    def python(self) -> str:
        """The call of `named` that makes it, for a program."""
        given = {
            each.name: getattr(value, "name", value)
            for each in fields(self)[1:]
            if (value := getattr(self, each.name)) != each.default
        }
        if self.d_format == (self.instruction.d_format if self.whole else self.total):
            given.pop("d_format", None)
        said = "".join(f", {name}={value!r}" for name, value in given.items())
        return f"Structure.named({self.instruction.label!r}{said})".replace("'", '"')

    @property
    def in_order(self) -> bool:
        """Whether the sums of segments are added one after the other, to what may have been there before."""
        return self.order == "sequential" or (self.block is not None and self.lanes > 1)

    def segments(self, K: int) -> list[Segment]:
        """How a product of that K is made: chains and what is added, in order."""
        k = self.instruction.k
        steps = max(-(-K // k), 1)
        own = self.unit is None and self.rest is not None  # the rest of blocks, not of lanes
        if self.block is None:
            blocks, left = [range(steps)], range(0)
        else:
            sizes = [size // k for size in self.smaller]
            blocks, left = blocks_of(steps, self.block // k, sizes, own)
            if self.halved is not None and not self.smaller:
                blocks = halved_last(blocks, self.halved // k)
        unit = None if self.unit is None else self.unit // k
        rest = None if own else self.rest
        after = lanes_left(self.order, self.lanes) if rest == "level" else 0
        dealt = Dealing(self.lanes, unit, rest, self.short, self.fused, self.chained, after)
        alone = Dealing(1, None, None, "last", self.fused, self.chained)
        found = list[Segment]()
        for block in blocks:
            if self.onto and len(block) * k == self.block:
                chain, block = (block[: self.onto // k],), block[self.onto // k :]
                found.append(Segment((chain,), onto=True, apart=self.chained == "no"))
            how = dealt if len(block) * k >= self.dealt_from else alone
            found += how.segments(block, self.peeled // k)
        if self.order != "sequential" and self.lanes == 1:
            chains = tuple(chain for each in found for chain in each.chains)
            found = [Segment(chains, apart=self.chained == "no")] if found else []
        elif self.block is None:  # so that what was there before may be added to the first
            found = [y for x in found for y in (_apart(x) if self.order == "sequential" else [x])]
        if left:
            found.append(rest_of(left, onto=self.rest == "onto", fused=self.fused))
        return found

    def chains(self, K: int) -> list[Chain]:
        """The instructions of a product of that K that each chain takes, in the order of the chains."""
        return [chain for each in self.segments(K) for chain in each.present]

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
        return structure_text(self, plain_name(self.instruction))

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        i = self.instruction
        return {
            "architecture": i.architecture,
            "instruction": i.name,
            **{
                name: getattr(self, name)
                for name in ("block", "halved", "lanes", "unit", "rest", "fused", "short")
            },
            "smaller": list(self.smaller),
            "stored": None if self.stored is None else self.stored.name,
            **{name: getattr(self, name) for name in ("chained", "dealt_from", "peeled", "onto")},
            "order": self.order,
            "total": self.total.name,
            "d_format": self.result.name,
            "c_enters": self.c_enters,
            "name": plain_name(i),
            "text": self.text,
        }


def _check_rest(x: Structure) -> None:
    """Raises ValueError if what is said of a rest does not fit the structure."""
    i = x.instruction
    if x.rest not in (None, *get_args(RestPlan)) or x.short not in get_args(Short):
        raise ValueError(
            f"rest is {', '.join(get_args(RestPlan))}, and short {', '.join(get_args(Short))}, not {x.rest!r}, "
            f"{x.short!r}"
        )
    for name, sizes in (("unit", (x.unit,)), ("smaller", x.smaller)):
        for size in sizes:
            if size is not None and (integer(size, name) < 1 or size % i.k):
                raise ValueError(f"{name} of {size} products; {i.label} takes {i.k} at a time")
    if x.smaller and list(x.smaller) != sorted({*x.smaller, x.block or 0}, reverse=True)[1:]:
        raise ValueError(f"smaller blocks fall from {x.block}, not {x.smaller}")
    if x.unit is not None and (x.lanes == 1 or x.rest is None):
        raise ValueError("unit is of lanes, and rest says where the other products go")
    if x.unit is not None and (x.smaller or (x.halved is not None and x.lanes == 1)):
        raise ValueError("what is left goes to smaller blocks, or is the rest of a unit, not both")
    if x.rest is not None and x.unit is None and x.block is None:
        raise ValueError("a rest is left by a unit of lanes, or by blocks; there are neither")
    if x.rest in ("first", "head", "lane", "turn", "level", "eighth") and x.unit is None:
        raise ValueError(f"rest={x.rest!r} is onto a lane: say of which unit")
    if x.rest is not None and x.unit is None and x.halved is not None:
        raise ValueError("what is left is halved, or is a rest, not both")
    if x.rest == "level" and not lanes_left(x.order, x.lanes):
        raise ValueError(
            "what is left goes to lanes that a first level of whole registers leaves; order has none"
        )
    if x.rest == "eighth" and (x.lanes % 8 or x.lanes < 16 or x.order not in ("halves", "pairwise")):
        raise ValueError(
            "an eighth of 16 lanes or more, which are added in halves or pairs, takes what is left"
        )
    goes_on = x.rest in ("turn", "level", "eighth") or (x.rest == "onto" and x.fused != "no")
    if goes_on and (x.total != i.d_format or x.stored is not None):
        raise ValueError(f"a chain of {i.label} goes on from {i.d_format}, not from a sum of {x.total}")
    for name, how in (("fused", x.fused), ("chained", x.chained)):
        if how not in get_args(FusedPlan):
            raise ValueError(f"{name} is {', '.join(get_args(FusedPlan))}, not {how!r}")
    if integer(x.dealt_from, "dealt_from") != 1 and (x.block is None or x.lanes == 1):
        raise ValueError("dealt_from is of blocks that are dealt to lanes; there are none")
    _check_beginnings(x)
    if x.chained != "yes" and i.k != 1:
        raise ValueError(f"chains of single products are fused or not; {i.label} takes {i.k} at a time")
    if x.fused != "yes" and (x.rest not in ("onto", "apart") or i.k != 1):
        raise ValueError("a rest of single products, onto the sum or apart, is fused or not")
    if x.short == "first" and x.lanes == 1:
        raise ValueError("a short turn is one of lanes; there are none")
    if x.stored is not None and not (x.block and holds(x.total, x.stored)):
        raise ValueError("the sum is stored after each block, in a type that holds no more than the sum's")


def _check_beginnings(x: Structure) -> None:
    """Raises ValueError if what is said of beginnings does not fit the structure."""
    i = x.instruction
    for name in ("peeled", "onto"):
        size = getattr(x, name)
        if size and (integer(size, name) < 1 or size % i.k):
            raise ValueError(f"{name} of {size} products; {i.label} takes {i.k} at a time")
    if x.peeled and (x.lanes == 1 or x.block is not None or x.rest in ("first", "head")):
        raise ValueError("peeled is of lanes without blocks, whose rest is not before them")
    if x.onto and (x.block is None or x.onto >= x.block or x.lanes > 1 or x.order != "sequential"):
        raise ValueError("onto is a part of blocks without lanes, which are added in order")
    if x.onto and x.chained != "no" and x.total != i.d_format:
        raise ValueError(f"a chain of {i.label} goes on from {i.d_format}, not from a sum of {x.total}")


def structure_meant(x: Structure | str) -> Structure:
    """The structure itself, or the one of a text that `Structure.python` gives: `Structure.named("…", block=128)`.

    Raises ValueError for another text, TypeError for anything else.
    """
    if isinstance(x, Structure):
        return x
    if not isinstance(x, str):
        raise TypeError(f"a structure is a Structure or its text, not {type(x).__name__}")
    try:
        call = ast.parse(x.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) not in (
            "Structure.named",
            "mmaformal.Structure.named",
        ):
            raise ValueError(x)
        (name,) = (ast.literal_eval(each) for each in call.args)
        how = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(
            f'{x!r} is no structure: write Structure.named("h100 HMMA.16816.F32", block=128), as `explain` tells it'
        ) from None
    try:
        return Structure.named(name, **how)
    except TypeError as error:
        raise ValueError(f"{x!r}: {error}") from None


def structure_or_name(x: Instruction | Structure | str | None) -> Instruction | Structure | str | None:
    """Return what was given, but a structure for the text of one."""
    return structure_meant(x) if isinstance(x, str) and x.lstrip().startswith("Structure") else x


def _apart(segment: Segment) -> list[Segment]:
    if segment.onto and len(segment.chains) > 1:
        return [segment]
    return [Segment((chain,), segment.onto, segment.apart) for chain in segment.present]


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
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
) -> CodeArray:
    """Compute D (M×N) = A (M×K) · B (K×N) + C as the structure makes it: bit patterns of `structure.result`.

    A, B: bit patterns of the instruction's types, or floats of exactly these; C, broadcast to D, where the structure
    says where it enters: floats, or bit patterns of what `Structure.c_format` is; scales (M×⌈K/S⌉ and ⌈K/S⌉×N), `jobs`
    and `progress` as in `matmul`.

    Raises ValueError for shapes that do not fit, and for a C that the structure does not have, TypeError for other
    types.
    """
    i = structure.instruction
    a, b = as_operand(A, i.a_format, "A").codes, as_operand(B, i.b_format, "B").codes
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"A of shape {a.shape} times B of shape {b.shape}: M×K and K×N are needed")
    if (C is None) != (structure.c_enters is None):
        raise ValueError("C is given where the structure has `c_enters`, and only there")
    c = None if C is None else _addend(C, structure, (len(a), b.shape[1]))
    K, sides = a.shape[1], (scale_a, scale_b)
    i.check_scales(*(x is not None for x in sides))
    of_a, of_b = (
        None if x is None else as_operand(x, i.spec.scale_format or fp32, name).codes
        for x, name in zip(sides, ("scale_a", "scale_b"), strict=True)
    )

    def run(chain: Chain, begin: CodeArray | None) -> CodeArray:
        taken = products_of(chain, i.k, K)
        left, right = np.ascontiguousarray(a[:, taken]), np.ascontiguousarray(b[taken])
        scales: tuple[CodeArray | None, CodeArray | None] = (None, None)
        if of_a is not None and of_b is not None:
            scales = scales_of(of_a, of_b, i.spec.scale_block, taken, K)
        s, t = scales
        d = matmul(left, right, begin, instruction=i, scale_a=s, scale_b=t, jobs=jobs, progress=progress)
        return np.asarray(d)

    return made_product(structure, K, run, c)


def _addend(C: ArrayLike, structure: Structure, shape: tuple[int, int]) -> CodeArray:
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


def exactly(codes: CodeArray, fmt: Format, wanted: Format) -> CodeArray:
    """Codes of a format as those of one that holds it; a NaN becomes its quiet one."""
    if fmt == wanted:
        return codes
    wide = fp32 if holds(fp32, wanted) else fp64
    return rounded_codes(values(codes, fmt, wide), wide, wanted, quiet_nan(wanted))


def made_product(
    structure: Structure,
    K: int,
    run: Callable[[Chain, CodeArray | None], CodeArray],
    c: CodeArray | None = None,
) -> CodeArray:
    """D's bit patterns, by what `run` gives of a chain, from +0 or from codes; c: those of C (`_addend`)."""
    i, result, wide, enters = structure.instruction, structure.result, structure.total, structure.c_enters
    segments = structure.segments(K)
    alone = len(segments) == len(segments[0].chains) == 1 and not segments[0].apart
    if alone and result == i.d_format and structure.stored is None and enters in (None, "start"):
        return run(segments[0].present[0], c)

    def floats(chain: Chain, begin: RealArray | None) -> RealArray:
        codes = None if begin is None else rounded_codes(begin, wide, i.c_format, quiet_nan(i.c_format))
        return values(run(chain, codes), i.d_format, wide)

    given = None if c is None else values(c, structure.c_format, wide)
    total = evaluated(
        segments,
        structure.order,
        floats,
        _added,
        begin=given if enters == "start" else None,
        first=given if enters == "first" else None,
        stored=None if structure.stored is None else partial(_stored, wide, structure.stored),
    )
    if enters == "last" and given is not None:
        total = _added(total, given)
    d = rounded_codes(total, wide, result, quiet_nan(result))
    if enters == "after" and given is not None:
        d = rounded_codes(_added(values(d, result, wide), given), wide, result, quiet_nan(result))
    return d


def _stored(wide: Format, fmt: Format, total: RealArray) -> RealArray:
    return values(rounded_codes(total, wide, fmt, quiet_nan(fmt)), fmt, wide)


def _added(x: RealArray, y: RealArray) -> RealArray:
    """Floats added by IEEE 754 in their type."""
    with np.errstate(all="ignore"):
        return np.asarray(x + y)
