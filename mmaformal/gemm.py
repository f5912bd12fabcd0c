"""GEMM of any size, as a GPU runs it on one instruction.

    from mmaformal import hopper, matmul
    D = matmul(A, B, C, instruction=hopper["HMMA.16816.F32"])

K is taken in instructions, each one's result the next one's accumulator; what is left over at its end is padded with
zeros, as kernels do.  There is always one: with K = 0 every element of D is what the instruction makes of C and
products that are all zero, so that D is of its type, and no column of A means what columns of zeros mean.  How kernels
divide K among each other is an argument, since it changes the result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from mmaformal.accumulation import AccumulationOrder, Ordered, permutation
from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller
from mmaformal.division import DivisionOrder, check_chain, check_counts, check_orders, counted_seed
from mmaformal.encodings.executable.blocks import (
    Special,
    Sum,
    canonical_nan,
    decode,
    encode,
    quiet_nan,
    round_sum,
    select_special,
)
from mmaformal.formats import Format, fp16, fp32, fp64
from mmaformal.instruction import Instruction
from mmaformal.kernels import Kernel
from mmaformal.kernels.kernel import WIDTH, Planes
from mmaformal.kernels.room import reused
from mmaformal.kernels.rows import processors
from mmaformal.operands import Matrix, Operands, ProductCodes
from mmaformal.renamed import keywords
from mmaformal.rounding import Conversion, Rounding
from mmaformal.workers import ProgressReport, Workers

CodeArray = NDArray[Any]


class Division(TypedDict, total=False):
    """How K is divided, and the work: as `matmul` takes it."""

    promote_every: int | None
    split_k: int
    stream_k: int | None
    tile: tuple[int, int]
    order: DivisionOrder
    accumulation: AccumulationOrder
    seed: int
    jobs: int | None
    progress: bool | Progress | None


#: what the planes of one block of B may take
_PLANES_BYTES = 1 << 23
#: products of K whose planes are made at a time
_PLANES_K = 4096
#: So few rows, as in decoding, use planes of B so seldom that making them counts: threads make them for their own
#: columns, as many as there are, for so few of K at a time that they are in the cache when they are used.
_FEW_ROWS, _FEW_BYTES = 256, 3 << 20
#: A product of fewer columns than this is made as its transpose, where factors may change places: kernels take columns
#: together, and one costs what this many do.
_NARROW = 128
#: A thread has at least this part, a power of two, of what a kernel is given at a time: to hand over less takes longer.
_SMALL = 5


#: the fields of `_How` after the first, if nothing is said
_PLAIN = None, 1, None, (128, 128), "sequential", "natural", 0


@keywords(threads="jobs")
def matmul(
    A: Matrix,
    B: Matrix,
    C: Matrix | None = None,
    *,
    instruction: Instruction | str,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    promote_every: int | None = None,
    split_k: int = 1,
    stream_k: int | None = None,
    tile: tuple[int, int] = (128, 128),
    order: DivisionOrder = "sequential",
    accumulation: AccumulationOrder = "natural",
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
    executor: Executor | None = None,
) -> Matrix:
    """Compute D (M×N) = A (M×K) · B (K×N) + C (M×N), C being +0 if not given.

    instruction: one of the tables, or its name, "hopper HMMA.16816.F32".  A, B, C: all bit patterns (unsigned integers,
    one code per element), or all floats of exactly the instruction's types, as `Instruction.dot_add` takes them: NumPy
    arrays with `ml_dtypes`, torch tensors, or any object with `__dlpack__`, without a copy where they are in the
    processor's memory.  With block scales of S products, scale_a is M × ⌈K/S⌉ and scale_b ⌈K/S⌉ × N.
    Axes before the last two are broadcast, and vectors are taken, as by `numpy.matmul`: A (…, M, K), B (…, K, N),
    scales likewise; C is broadcast to D.  Each product of a batch is made as it is made alone.

    Returns what they are: bit patterns of D for bit patterns, floats for floats (bit patterns for a type of D that
    NumPy does not know); a torch tensor if A is one.  M, K and N may be 0: K = 0 is one instruction of zero products.

    The accumulator of each element is carried through K in order, unless K is divided:
    - `promote_every=n`: after n instructions the accumulator is added to a total and starts again at +0 (DeepSeek-V3:
      n = 4 for each 128 products of QGMMA).  The total starts as C.
    - `split_k=s`: K in s ranges of ⌈K/k/s⌉ instructions (the last may be shorter), each a sum of its own.
    - `stream_k=g`: the instructions of all tiles (of size `tile`, row by row) one after the other are divided evenly
      among g workers; a tile that two or more workers share is as many sums.  Not with split_k.

    Totals are kept, and sums merged, by IEEE additions in fp32 (fp64 if fp32 does not hold C or D), to nearest even:
    with `order` "sequential" C, if given, and the sums in the order of K, one after the other; "pairwise" neighbours
    first, level by level, an odd one out waiting, and C last.  A merged D is then rounded to its type, to nearest even.

    `accumulation` is the order in which products are added: "natural", as above; "random", K permuted as `seed` says;
    "grouped" by magnitude; "kahan", compensated, and "anti-kahan", its opposite (`mmaformal.accumulation` defines
    them).  With block scales there are "natural" and "kahan".  Only "natural" and "random" can be divided.

    At most `jobs` threads run parts of D (default: as many as there are processors); results do not depend on it.
    `progress` is called with a line of text as products are done; True, or None on a terminal, writes one to stderr if
    it takes longer than two seconds.  Workers of an `executor` make blocks of D, in one thread each; not stream_k's.

    Raises ValueError for shapes that do not fit and an instruction that cannot be chained, TypeError as
    `Instruction.dot_add` and for numbers that are none, FloatingPointError if arithmetic is not IEEE 754's here.
    """
    instruction = instruction_meant(instruction)
    how = _How(instruction, promote_every, split_k, stream_k, tile, order, accumulation, seed)
    if jobs is progress is scale_a is scale_b is executor is None and (d := how.quick(A, B, C)) is not None:
        return d
    return how.general((A, B, C, scale_a, scale_b), jobs, progress, executor)


class _How(NamedTuple):
    """How K is divided, and in which order its products are taken: as `matmul` takes it."""

    instruction: Instruction
    promote: int | None
    split_k: int
    stream_k: int | None
    tile: tuple[int, int]
    order: DivisionOrder
    accumulation: AccumulationOrder
    seed: int

    def quick(self, *operands: Matrix | None) -> Matrix | None:
        """Return D if nothing is said of how K is divided, and a quick way has it."""
        plain = all(x.__class__ is y.__class__ and x == y for x, y in zip(self[1:], _PLAIN, strict=True))
        return self.instruction.quick.product(*operands) if plain else None

    def general(
        self,
        operands: tuple[Matrix | None, ...],
        jobs: int | None,
        progress: bool | Progress | None,
        executor: Executor | None,
    ) -> Matrix:
        """Return D; raise as `matmul`."""
        given = Operands.of(self.instruction, *operands)
        counts = {
            "promote_every": self.promote,
            "split_k": self.split_k,
            "stream_k": self.stream_k,
            "jobs": jobs,
        }
        check_counts(**counts)
        if executor is not None:
            return self.on_workers(executor, self.permuted(given), progress)
        return self.product(self.permuted(given), jobs, progress)

    def permuted(self, given: Operands) -> Operands:
        """Return the operands in the order in which products are taken; raise as `matmul` for what cannot be done."""
        divided = self.promote is not None or self.split_k != 1 or self.stream_k is not None
        check_orders(self.instruction, self.accumulation, self.order, self.tile, divided)
        k, drawn = given.shape[2], counted_seed(self.seed)
        _, longest = self.pieces(_steps(self.instruction, k))
        check_chain(self.instruction, 1 if self.accumulation in ("kahan", "anti-kahan") else longest)
        return given.permuted(permutation(k, drawn)) if self.accumulation == "random" else given

    def pieces(self, steps: int) -> tuple[list[tuple[int, int]], int]:
        """Return the ranges of instructions that are sums of their own, and how many are chained at most."""
        each = -(-steps // self.split_k)
        pieces = [(start, min(start + each, steps)) for start in range(0, steps, each)]
        return pieces, min(self.promote or steps, each if self.stream_k is None else steps)

    def product(self, given: Operands, jobs: int | None, progress: bool | Progress | None) -> Matrix:
        """Return D, made product by product of a batch."""
        i, k = self.instruction, given.shape[2]
        report = ProgressReport(progress, prod(given.outputs) * _steps(i, k) * i.k)
        kernel = i.quick.kernel_of(report.total)
        threads = min(jobs or processors(), max(report.total // (kernel.task >> _SMALL), 1))
        d = np.empty(given.outputs, i.d_format.word)
        with Workers(threads, report) as workers:
            for where, operands in given.products(together=self.stream_k is None) if d.size else ():
                found = self.made(_Problem(i, operands, kernel), workers)
                if where is not ...:
                    d[where] = found
                else:
                    d = np.ascontiguousarray(found).reshape(d.shape)
        return given.give_back(d, i.d_format)

    def on_workers(self, executor: Executor, given: Operands, progress: bool | Progress | None) -> Matrix:
        """Return D, made block by block on an executor.  Raises ValueError for tiles whose cuts depend on all of D."""
        from mmaformal.grid import on_workers

        if self.stream_k is not None:
            raise ValueError("stream_k is for one machine: leave executor out")
        accumulation: AccumulationOrder = "natural" if self.accumulation == "random" else self.accumulation
        how = Division(
            promote_every=self.promote, split_k=self.split_k, order=self.order, accumulation=accumulation,
            jobs=1, progress=False,
        )  # fmt: skip
        d = np.empty(given.outputs, self.instruction.d_format.word)
        if d.size:
            for where, operands in given.products(together=True):
                found = np.empty((len(operands.a), operands.b.shape[1]), d.dtype)
                on_workers(
                    executor, partial(block_made, self.instruction), operands, found, how, _lines_of(progress)
                )
                d[where] = found.reshape(d[where].shape)
        return given.give_back(d, self.instruction.d_format)

    def made(self, problem: _Problem, workers: Workers) -> CodeArray:
        """Return D of one product, as codes."""
        if self.accumulation in ("grouped", "anti-kahan"):
            return _ordered(problem, self.accumulation == "grouped", workers)
        if self.stream_k is not None:
            return problem.streamed(self.stream_k, self.tile, self.promote, self.order, workers)
        if self.accumulation == "kahan":
            return problem.either_way(lambda x: _compensated(x, workers))
        pieces, _ = self.pieces(problem.steps)
        return problem.either_way(lambda x: x.divided(pieces, self.promote, self.order, workers))


def _lines_of(progress: bool | Progress | None) -> Progress | None:
    """A function of a line of text: the one given; with True, one that writes it to stderr."""
    if progress is True:
        return partial(print, "\rmatmul", end=" ", file=sys.stderr, flush=True)
    if progress is not False:
        caller(progress)
    return progress or None


def block_made(instruction: Instruction, x: ProductCodes, how: Division) -> CodeArray:
    """A block of D, in a worker."""
    made = matmul(x.a, x.b, x.c, instruction=instruction, scale_a=x.scale_a, scale_b=x.scale_b, **how)
    return np.ascontiguousarray(made)


def _steps(instruction: Instruction, k: int) -> int:
    """Return how many instructions K takes: one at least."""
    return max(-(-k // instruction.k), 1)


# ---- the problem -------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A block of D."""

    rows: slice
    columns: slice


class _Problem:
    """Operands as codes, and what is computed from them block by block."""

    def __init__(self, instruction: Instruction, operands: ProductCodes, kernel: Kernel) -> None:
        self.instruction, self.spec, self.operands = instruction, instruction.spec, operands
        self.kernel = kernel
        self.a, self.b, self.c = operands.a, operands.b, operands.c
        self.scales = operands.scale_a, operands.scale_b
        self.m, self.n = len(self.a), self.b.shape[1]
        self.steps = _steps(instruction, self.b.shape[0])
        ends = instruction.c_format, instruction.d_format
        self.word = max((fmt.word for fmt in ends), key=lambda word: word.itemsize)  #: of c and d
        self.wide = fp32 if all(holds(fp32, fmt) for fmt in ends) else fp64  #: of totals

    def either_way(self, make: Callable[[_Problem], CodeArray]) -> CodeArray:
        """D as codes, or the transposed product's turned back, where that is the same and sooner made.

        That is so of few columns, where b·a is a·b, NaNs included.
        """
        alike = self.spec.a_format == self.spec.b_format and self.spec.parameters.factors_commute
        if alike and self.n < min(self.m, _NARROW):
            return make(_Problem(self.instruction, self.operands.turned(), self.kernel)).T
        return make(self)

    @property
    def start(self) -> CodeArray:
        """C in the type of totals."""
        if self.c is None:
            return np.zeros((self.m, self.n), self.wide.dtype)
        return values(self.c, self.spec.c_format, self.wide)

    # ---- dividing K ----------------------------------------------------------------------------------------

    def divided(
        self, pieces: list[tuple[int, int]], promote: int | None, order: DivisionOrder, workers: Workers
    ) -> CodeArray:
        """D as codes, K divided everywhere alike."""
        if self.m <= _FEW_ROWS and self.n > WIDTH:
            return self._by_columns(pieces, promote, order, workers)
        blocks = [Block(slice(0, self.m), columns) for columns in self._column_blocks()]
        if len(blocks) == 1:
            return self._block(blocks[0], pieces, promote, order, workers)
        d = np.empty((self.m, self.n), self.spec.d_format.word)
        for block in blocks:
            d[block] = self._block(block, pieces, promote, order, workers)
        return d

    def _by_columns(
        self, pieces: list[tuple[int, int]], promote: int | None, order: DivisionOrder, workers: Workers
    ) -> CodeArray:
        """Return D where there are few rows: the threads take columns then."""
        d = np.empty((self.m, self.n), self.spec.d_format.word)
        alone = Workers(1, ProgressReport(False, 0))

        def run(columns: slice) -> int:
            block = Block(slice(0, self.m), columns)
            d[block] = self._block(block, pieces, promote, order, alone)
            return int((columns.stop - columns.start) * self.m * self.steps * self.spec.k)

        share = -(-self.n // (workers.threads * WIDTH))
        task = self.kernel.task // (self.m * self.steps * self.spec.k * WIDTH)
        across = (
            self.b.strides[0] == self.b.itemsize
        )  # columns lie in memory one by one: few of them, and long
        each = max(min(share, task, 2 if across else share), 1) * WIDTH
        parts = [slice(first, min(first + each, self.n)) for first in range(0, self.n, each)]
        workers.run(run, parts)
        return d

    def streamed(
        self, g: int, tile: tuple[int, int], promote: int | None, order: DivisionOrder, workers: Workers
    ) -> CodeArray:
        """D as codes, the instructions of all tiles divided evenly among g workers."""
        d = np.empty((self.m, self.n), self.spec.d_format.word)
        tiles = [
            Block(slice(row, min(row + tile[0], self.m)), slice(column, min(column + tile[1], self.n)))
            for row in range(0, self.m, tile[0])
            for column in range(0, self.n, tile[1])
        ]
        share = max(-(-len(tiles) * self.steps // g), 1)
        for index, block in enumerate(tiles):
            first = index * self.steps
            inner = range(-(-(first + 1) // share) * share, first + self.steps, share)
            cuts = [0, *(cut - first for cut in inner), self.steps]
            pieces = list(pairwise(cuts))
            d[block] = self._block(block, pieces, promote, order, workers)
        return d

    def _block(
        self,
        block: Block,
        pieces: list[tuple[int, int]],
        promote: int | None,
        order: DivisionOrder,
        workers: Workers,
    ) -> CodeArray:
        """A block of D as codes."""
        fmt = self.spec.d_format
        shape = (block.rows.stop - block.rows.start, block.columns.stop - block.columns.start)
        c = None if self.c is None else self.c[block]
        if len(pieces) == 1 and promote is None:
            d = np.zeros(shape, self.word) if c is None else np.empty(shape, self.word)
            self._chain(d, block, *pieces[0], None, workers, begin=c)
            return d.astype(fmt.word, copy=False)

        start = None if c is None else values(c, self.spec.c_format, self.wide)
        if len(pieces) == 1:
            total = np.zeros(shape, self.wide.dtype) if start is None else start
            self._chain(total, block, *pieces[0], promote, workers)
            return self._rounded(total)
        sums: Iterator[CodeArray] = (self._sum(shape, block, piece, promote, workers) for piece in pieces)
        if order == "sequential":
            total = next(sums) if start is None else start
            for each in sums:
                with np.errstate(all="ignore"):
                    total += each
            return self._rounded(total)
        level = list(sums)
        with np.errstate(all="ignore"):
            while len(level) > 1:
                pairs = [x + y for x, y in zip(level[0::2], level[1::2], strict=False)]
                level = pairs + level[2 * len(pairs) :]
            return self._rounded(level[0] if start is None else level[0] + start)

    def _sum(
        self,
        shape: tuple[int, int],
        block: Block,
        piece: tuple[int, int],
        promote: int | None,
        workers: Workers,
    ) -> CodeArray:
        """The sum of one piece, in the type of totals."""
        if promote is not None:
            total = np.zeros(shape, self.wide.dtype)
            self._chain(total, block, *piece, promote, workers)
            return total
        d = np.zeros(shape, self.word)
        self._chain(d, block, *piece, None, workers)
        return self._widened(d)

    def _widened(self, d: CodeArray) -> CodeArray:
        """Codes of d in the type of totals, which holds them."""
        return values(d.astype(self.spec.d_format.word, copy=False), self.spec.d_format, self.wide)

    def _rounded(self, total: CodeArray) -> CodeArray:
        """Totals as codes of d; NaNs as the model has them."""
        fmt = self.spec.d_format
        nan = canonical_nan(fmt) if self.spec.nan_is_canonical else quiet_nan(fmt)
        return rounded_codes(total, self.wide, fmt, nan)

    # ---- a chain of instructions ---------------------------------------------------------------------------

    def _column_blocks(self) -> Iterator[slice]:
        k = min(self.steps * self.spec.k, _PLANES_K)
        panels = max(_PLANES_BYTES // max(k * self.kernel.bytes_per_element * WIDTH, 1), 1)
        for first in range(0, max(self.n, 1), panels * WIDTH):
            yield slice(first, min(first + panels * WIDTH, self.n))

    def _chain(
        self,
        out: CodeArray,
        block: Block,
        start: int,
        stop: int,
        promote: int | None,
        workers: Workers,
        lost: CodeArray | None = None,
        begin: CodeArray | None = None,
    ) -> None:
        """Take accumulators `out` through the instructions start … stop - 1, or with `promote` totals, which are
        compensated if there is room for what they have `lost`.

        In place, or from `begin`.  Planes of B are made for a range of K at a time, those of A for some of its rows.
        """
        few = len(out) <= _FEW_ROWS
        wide = max(out.shape[1], WIDTH) * self.kernel.bytes_per_element
        at_once = max((_FEW_BYTES // wide if few else _PLANES_K) // self.spec.k, 1)
        if promote is not None:
            at_once = max(at_once // promote, 1) * promote
        for first in range(start, stop, at_once):
            last = min(first + at_once, stop)
            with reused():
                self._some(out, block, first, last, promote, workers, lost, begin if first == start else None)

    def _some(
        self,
        out: CodeArray,
        block: Block,
        first: int,
        last: int,
        promote: int | None,
        workers: Workers,
        lost: CodeArray | None,
        begin: CodeArray | None,
    ) -> None:
        """Take accumulators through the instructions first … last - 1, as `_chain`, B's planes being made once."""
        k = (last - first) * self.spec.k
        inner = slice(first * self.spec.k, last * self.spec.k)
        b = self.kernel.columns(
            padded(self.b[inner, block.columns], k, 0),
            self._scales(1, (slice(None), block.columns), first, last),
        )
        each = max(out.shape[1] * k, 1)
        threads = min(workers.threads, max(len(out) * each // (self.kernel.task >> _SMALL), 1))
        rows = max(min(self.kernel.task // each, -(-len(out) // threads)), 1)

        def run(part: slice) -> int:
            a_rows = slice(part.start + block.rows.start, part.stop + block.rows.start)
            if begin is not None:
                out[part] = begin[part]
            with reused():
                scales = self._scales(0, (a_rows, slice(None)), first, last)
                a = self.kernel.rows(padded(self.a[a_rows, inner], k, 1), scales)
                if promote is None:
                    self.kernel.run(a, b, out[part], 0, last - first)
                else:
                    of_part = None if lost is None else lost[part]
                    self._promoted(out[part], a, b, last - first, promote, of_part)
            return int((part.stop - part.start) * out.shape[1] * k)

        workers.run(run, [slice(i, min(i + rows, len(out))) for i in range(0, len(out), rows)])

    def _promoted(
        self, total: CodeArray, a: Planes, b: Planes, steps: int, promote: int, lost: CodeArray | None = None
    ) -> None:
        for first in range(0, steps, promote):
            d = np.zeros(total.shape, self.word)
            self.kernel.run(a, b, d, first, min(first + promote, steps))
            if lost is not None:
                from mmaformal.kernels.ordering import compensate

                compensate(self._widened(d), total, lost)
                continue
            with np.errstate(all="ignore"):
                total += self._widened(d)

    def _scales(self, side: int, where: tuple[slice, slice], first: int, last: int) -> CodeArray | None:
        """The scales of one side for a range of instructions, those of padding 1."""
        scales, fmt = self.scales[side], self.spec.scale_format
        if scales is None or fmt is None:
            return None
        each, axis = self.spec.scales, 1 - side
        blocks = slice(first * each, last * each)
        found = scales[where[0], blocks] if axis == 1 else scales[blocks, where[1]]
        missing = (last - first) * each - found.shape[axis]
        widths = [(0, missing if each == axis else 0) for each in range(2)]
        return np.pad(found, widths, constant_values=fmt.bias << fmt.fraction_bits) if missing else found


# ---- orders of accumulation ------------------------------------------------------------


def padded(codes: CodeArray, k: int, axis: int) -> CodeArray:
    """Return `codes` with zeros at the end of K; +0 is the code 0 in every format of operands."""
    missing = k - codes.shape[axis]
    if not missing:
        return codes
    padded = np.zeros((k, codes.shape[1]) if axis == 0 else (len(codes), k), codes.dtype)
    padded[: len(codes), : codes.shape[1]] = codes
    return padded


def _ordered(x: _Problem, grouped: bool, workers: Workers) -> CodeArray:
    """D as codes, the products of each output in an order of their own."""
    k = max(x.b.shape[0], 1)  # without products, one that is zero
    a, b = (np.ascontiguousarray(padded(side, k, 1)) for side in (x.a, x.b.T))
    products = Ordered(x.spec, a, b, x._widened)
    total = x.start.reshape(-1)
    take = products.grouped if grouped else products.anti_kahan

    def run(part: slice) -> int:
        take(part, total[part])
        return int((part.stop - part.start) * x.steps * x.spec.k)

    workers.run(run, products.parts(workers.threads))
    return x._rounded(total.reshape(x.m, x.n))


def _compensated(x: _Problem, workers: Workers) -> CodeArray:
    """D as codes, what each addition to the total loses being taken from the next."""
    total = x.start
    lost = np.zeros_like(total)
    for columns in x._column_blocks():
        block = Block(slice(0, x.m), columns)
        x._chain(total[:, columns], block, 0, x.steps, 1, workers, lost[:, columns])
    return x._rounded(total)


# ---- totals ------------------------------------------------------------------------------------------------


def holds(wide: Format, fmt: Format) -> bool:
    """Whether every number of `fmt` is one of `wide`."""
    last_places = (wide.min_exponent - wide.fraction_bits, fmt.min_exponent - fmt.fraction_bits)
    return (
        fmt.fraction_bits <= wide.fraction_bits
        and fmt.max_exponent <= wide.max_exponent
        and last_places[0] <= last_places[1]
    )


def values(codes: CodeArray, fmt: Format, wide: Format) -> NDArray[Any]:
    """Codes as floats of a format, fp32 or fp64, that holds their numbers."""
    if fmt.dtype is not None and not fmt.ignored_low_bits:
        return codes.view(fmt.dtype).astype(wide.dtype, order="C")
    x = decode(codes.astype(np.int64), fmt.layout)
    magnitude = np.ldexp(x.significand.astype(np.float64), x.exponent - fmt.fraction_bits)
    magnitude = np.where(x.nan, np.nan, np.where(x.infinite, np.inf, magnitude))
    return np.copysign(magnitude, np.where(x.sign == 1, -1.0, 1.0)).astype(wide.dtype)


def rounded_codes(total: NDArray[Any], wide: Format, fmt: Format, nan: int) -> CodeArray:
    """Floats of the format `wide` as codes of another, to nearest even; a NaN is the code `nan`."""
    if fmt in (fp16, fp32, fp64):
        with np.errstate(all="ignore"):
            d = total.astype(fmt.dtype).view(fmt.word)
        return np.where(np.isnan(total), np.array(nan, fmt.word), d)
    rho = Conversion(f"to {fmt}", fmt, fmt.fraction_bits, Rounding.RNE, signed_zero=True)
    x = decode(total.view(wide.word).astype(np.int64), wide.layout)
    exact = Sum(np.where(x.sign == 1, -x.significand, x.significand), x.exponent - wide.fraction_bits)
    special = Special(x.nan, x.infinite & (x.sign == 0), x.infinite & (x.sign == 1))
    code = select_special(special, encode(round_sum(exact, x.sign, rho), rho), rho, nan)
    return np.asarray(code).astype(fmt.word)
