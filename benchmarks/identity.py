"""Kernels against the executable encoding, bit for bit, on 10^8 dot product-adds of every algorithm.

    python benchmarks/identity.py --dot-adds 100000000 --markdown docs/performance.md
    python benchmarks/identity.py --hypothetical 500 --markdown docs/performance.md

The inputs are the families of tests/oracle (random bits, cancellation, ties, subnormals, special values, …): up to
1,024 rows of A, as many columns of B and as many C of one family at a time, every row with every column, until an
algorithm has had its number, each distinct behaviour in turn; matrices of all shapes.  Where planes are narrower for
exponents near 1 (`widths.near_one`), each product is made twice more: with such exponents in A, and in both.  `matmul`
is compared with the compiled rows (`kernels/rows`: the stages of the executable encoding, one output at a time; and
those on the processor's floats, where there are), and a part of each, *of them plain*, with the executable as it
stands, on NumPy's lanes.  An algorithm whose rows are not compiled is compared with that alone.

Hypothetical specifications are those of tests/support/random_units: formats, parameters and roundings no hardware has;
compiled rows of each, and kernels of blocks of some, are compared with the plain executable on 2 × 1,024 dot
product-adds or chains of two.  Exits with 1 on any difference.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path += [str(Path(__file__).resolve().parent.parent / "tests" / each) for each in ("oracle", "")]

from families import FAMILIES, Operands, generate
from support.kernel_runs import near_one, random_codes, run
from support.random_units import units
from throughput import put_between

from mmaformal import ARCHITECTURES, Instruction, matmul
from mmaformal.architectures import SPECIFIED_UNITS
from mmaformal.encodings import executable
from mmaformal.kernels import first, kernel_for, rows
from mmaformal.kernels.choose import compiled
from mmaformal.kernels.plain import PlainKernel, RowsKernel

SIZE, PLAIN = 1024, 48
#: dot product-adds of one algorithm on NumPy's lanes, where its rows are not compiled
ALONE = 10**6


class Compared(NamedTuple):
    """Counts of one comparison: outputs, those compared with the plain executable, and those that differ."""

    done: int
    plain: int
    wrong: int


def behaviours() -> dict[str, list[Instruction]]:
    """One instruction for each behaviour, by algorithm."""
    seen: dict[Any, Instruction] = {}
    for architecture in (*ARCHITECTURES.values(), *(ARCHITECTURES[name] for name in SPECIFIED_UNITS)):
        for i in architecture:
            seen.setdefault(i.spec, i)
    found: dict[str, list[Instruction]] = {}
    for i in seen.values():
        found.setdefault(i.algorithm, []).append(i)
    return found


def cases(i: Instruction, family: str, seed: int, size: int) -> dict[str, Any]:
    """Matrices of up to `size` rows and columns, a quarter of them as large."""
    spec = i.spec
    operands = Operands(
        spec.a_format, spec.b_format, spec.c_format, spec.d_format, spec.k, spec.scale_format, spec.scales
    )
    found = generate(family, operands, n=size, seed=seed)
    rng = random.Random(seed)
    m, n = (size if seed % 4 else rng.randint(1, size) for _ in range(2))
    # One c for each row and column: those of the family, each row beginning with another.
    c = found.c[(np.arange(m)[:, None] + np.arange(n)) % size]
    given = {"A": found.a[:m], "B": np.ascontiguousarray(found.b[:n].T), "C": c}
    if found.scale_a is not None and found.scale_b is not None:
        given |= {"scale_a": found.scale_a[:m], "scale_b": np.ascontiguousarray(found.scale_b[:n].T)}
    return given


def folded(i: Instruction, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the product, and those with A's and with all exponents folded into those of narrow planes, if there are."""
    yield given
    near = getattr(kernel_for(i.spec), "near", None)
    for name, fmt in (("A", i.a_format), ("B", i.b_format)) if near is not None else ():
        place = fmt.fraction_bits + fmt.ignored_low_bits
        codes = given[name].astype(np.int64)
        exponent = (codes >> place & (1 << fmt.exponent_bits) - 1) - fmt.bias
        inside = (exponent - near.low) % (near.high - near.low + 1) + near.low
        zero = codes & (1 << fmt.storage_bits - 1) - 1 == 0
        codes = np.where(zero, codes, codes + (inside - exponent << place))
        given = {**given, name: codes.astype(given[name].dtype)}
        yield given


def every_row(given: dict[str, Any], m: int, n: int) -> dict[str, Any]:
    """The rows of a product's first m rows and n columns, each with an a, b and c of its own."""
    names = {"A": "a", "scale_a": "scale_a"}, {"B": "b", "scale_b": "scale_b"}
    found = {mine: given[name][:m].repeat(n, 0) for name, mine in names[0].items() if name in given}
    found |= {mine: np.tile(given[name][:, :n].T, (m, 1)) for name, mine in names[1].items() if name in given}
    return {**found, "c": given["C"][:m, :n].reshape(-1)}


def plain(i: Instruction, given: dict[str, Any]) -> Any:
    """Rows by the executable on NumPy's lanes."""
    lanes = {name: [x.astype(np.int64) for x in codes.T] for name, codes in given.items() if name != "c"}
    result = executable.dot_add(i.spec, c=given["c"].astype(np.int64), **lanes).result
    return np.asarray(result).astype(i.d_format.word)


def compared(i: Instruction, given: dict[str, Any], by_rows: bool) -> Compared:
    """One product, by the kernel, by rows and, of its first rows and columns, by the plain executable."""
    mine = matmul(**given, instruction=i)
    m, n = mine.shape
    wrong = 0
    for by_stages in (True, False) if by_rows else ():
        d = rows.dot_add(i.spec, **every_row(given, m, n), threads=1, by_stages=by_stages)
        wrong += int((mine.reshape(-1) != d).sum())
    few = (min(m, PLAIN), min(n, PLAIN)) if by_rows else (m, n)
    expected = plain(i, every_row(given, *few))
    wrong += int((mine[: few[0], : few[1]].reshape(-1) != expected).sum())
    return Compared(mine.size, few[0] * few[1], wrong)


def of_algorithm(algorithm: str, instructions: list[Instruction], number: int) -> tuple[str, int]:
    """A line of the table, and how many differ; what has no compiled rows is compared less often.

    It says for how many behaviours `matmul` has a kernel of blocks, which shares no loop with compiled rows.
    """
    by_rows: dict[bool, list[Instruction]] = {True: [], False: []}
    for i in instructions:
        kind = compiled(i.spec)
        by_rows[kind is not None and kind.compiles_rows(i.spec)].append(i)
    done, plainly, products, bad, seen = 0, 0, 0, 0, set()
    for has_rows, some in by_rows.items():
        wanted, size = (number, SIZE) if has_rows else (done + min(ALONE, number), 96)
        for round_ in itertools.count() if some else ():
            if done >= wanted and seen.issuperset(i.label for i in some):
                break
            i = some[round_ % len(some)]
            family = list(FAMILIES)[(round_ // len(some) + round_) % len(FAMILIES)]
            for given in folded(i, cases(i, family, round_, size)):
                found = compared(i, given, has_rows)
                if found.wrong:
                    print(f"{i.label}, {family}, {round_}: {found.wrong} differ", flush=True)
                bad, done, products = bad + found.wrong, done + found.done, products + found.done * i.k
                plainly += found.plain
            seen.add(i.label)
    blocks = sum(not isinstance(kernel_for(i.spec), (RowsKernel, PlainKernel)) for i in instructions)
    return f"| {algorithm} | {len(seen)} | {blocks} | {done:,} | {plainly:,} | {products:,} | {bad} |", bad


class Unit(NamedTuple):
    """A hypothetical unit, whether its own kernel of blocks was compared, and how many outputs differ."""

    unit: Instruction
    blocks: bool
    wrong: int


def hypothetical(blocks: int) -> Iterator[Unit]:
    """Random units: the rows of all, and as many of their kernels of blocks, each of which has to be compiled."""
    for number, i in units(0):
        spec = i.spec
        if spec.c_format.word_bits > spec.d_format.word_bits:
            continue  # codes of c do not fit d's words
        rng, steps = np.random.default_rng(number), 2 if spec.passes_on else 1
        own = blocks > 0 and not isinstance(kernel_for(spec), RowsKernel)
        blocks -= own
        wrong = 0
        for make in (random_codes, near_one):
            a, b = make(rng, i.a_format, (32, steps * i.k)), make(rng, i.b_format, (steps * i.k, 32))
            c, scales = make(rng, i.c_format, (32, 32)), []
            if spec.scale_format is not None:
                shapes = (32, steps * spec.scales), (steps * spec.scales, 32)
                scales = [make(rng, spec.scale_format, shape) for shape in shapes]
            d = c
            for step in range(steps):
                given = {
                    "A": a[:, step * i.k : (step + 1) * i.k],
                    "B": b[step * i.k : (step + 1) * i.k],
                    "C": d,
                }
                part = slice(step * spec.scales, (step + 1) * spec.scales)
                if scales:
                    given |= {"scale_a": scales[0][:, part], "scale_b": scales[1][part]}
                each = every_row(given, 32, 32)
                expected = plain(i, each)
                for by_stages in (True, False):
                    wrong += int((rows.dot_add(spec, **each, by_stages=by_stages) != expected).sum())
                d = expected.reshape(32, 32)
            if own:
                wrong += int((run(i, a, b, c, *scales, steps=steps) != d).sum())
        yield Unit(i, own, wrong)


def of_hypothetical(number: int, blocks: int) -> tuple[list[str], int]:
    """The lines of a table, by algorithm, and how many differ."""
    count, own, bad = Counter[str](), Counter[str](), Counter[str]()
    for i, by_blocks, wrong in itertools.islice(hypothetical(blocks), number):
        if wrong:
            print(f"{i}: {wrong} differ", flush=True)
        count[i.algorithm] += 1
        own[i.algorithm] += by_blocks
        bad[i.algorithm] += wrong
        if sum(count.values()) % 20 == 0:
            print(sum(count.values()), dict(count), flush=True)
    lines = [f"| {name} | {count[name]} | {own[name]} | {bad[name]} |" for name in sorted(count)]
    return lines, sum(bad.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dot-adds", type=int, default=10**8, help="of each algorithm")
    parser.add_argument("--algorithm", action="append", help="this one alone; repeatable")
    parser.add_argument("--hypothetical", type=int, metavar="N", help="N hypothetical specifications instead")
    parser.add_argument(
        "--blocks", type=int, default=500, help="of those, kernels of blocks; each is compiled"
    )
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    first.MANY = 0  # compiled kernels are compared
    if args.hypothetical:
        lines, wrong = of_hypothetical(args.hypothetical, args.blocks)
        lines = ["| algorithm | specifications | of them blocks | differences |", "|---|---|---|---|", *lines]
        print("\n".join(lines))
    else:
        wrong = 0
        names = (
            "algorithm | behaviours | in blocks | dot product-adds | of them plain | products | differences"
        )
        lines = [f"| {names} |", "|---|---|---|---|---|---|---|"]
        for algorithm, instructions in behaviours().items():
            if algorithm in (args.algorithm or [algorithm]):
                start = time.monotonic()
                line, bad = of_algorithm(algorithm, instructions, args.dot_adds)
                print(line, f"{time.monotonic() - start:.0f} s", flush=True)
                lines.append(line)
                wrong += bad
    if args.markdown:
        put_between(args.markdown, "hypothetical" if args.hypothetical else "identity", lines)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
