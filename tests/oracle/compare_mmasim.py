"""Compare `Instruction.dot_add` with mmasim, the simulator of MMA-Sim's authors, bit for bit.

    python tests/oracle/compare_mmasim.py --arch ampere --cases 100000 --markdown tables/validation-mmasim.md

For every instruction that both have, at least `--cases` dot product-adds from all of `families.py`.  Where
the hardware's NaN payload is unspecified (DMMA and AMD, semantics §3) any two NaNs are equal; everything else
must agree in every bit.  Exits with 1 on any disagreement, and on a row that could not be matched with
mmasim's names or types; that mmasim lacks an instruction is only said.

mmasim and torch are no dependencies of mmaformal, and pytest does not collect this file: see the README here.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from families import FAMILIES, Cases, Codes, Operands, generate
from mmasim import amd, nv_ptx
from mmasim.amd import isa_mfma
from mmasim.nv_ptx import isa_mma, isa_tcgen05mma, isa_wgmma
from numpy.typing import NDArray

from mmaformal import ARCHITECTURES, Architecture, Instruction, UnknownInstructionError
from mmaformal.architectures.base import canonical_name
from mmaformal.formats import FORMATS, Format

SHOWN = 3  #: disagreeing cases printed per instruction

MMASIM_ARCHITECTURE = {
    "volta": "Volta",
    "turing": "Turing",
    "ampere": "Ampere",
    "ada": "Ada Lovelace",
    "hopper": "Hopper",
    "blackwell": "Blackwell",
    "rtx_blackwell": "RTX Blackwell",
    "cdna1": "CDNA1",
    "cdna2": "CDNA2",
    "cdna3": "CDNA3",
}

#: how mmasim holds each format in torch; those of 4 and 6 bits are bytes
TORCH_DTYPE = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "e5m2": torch.float8_e5m2,
    "e4m3": torch.float8_e4m3fn,
    "e5m2fnuz": torch.float8_e5m2fnuz,
    "e4m3fnuz": torch.float8_e4m3fnuz,
    "e3m2": torch.uint8,
    "e2m3": torch.uint8,
    "e2m1": torch.uint8,
    "ue8m0": torch.float8_e8m0fnu,
    "ue4m3": torch.float8_e4m3fn,
}


# ---- mmasim's names ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """One of mmasim's tables of instructions: architecture → the spellings its operation class takes."""

    operation: Callable[[str, str], Any]
    spellings: dict[str, list[str]]
    scaled: bool = False


#: by the first word of the PTX name; AMD's instructions all stand under "v_mfma"
TABLES = {
    "mma": (
        Table(nv_ptx.MMA, isa_mma.mma_shape_and_type),
        Table(nv_ptx.MMABlockScale, isa_mma.mma_block_scale_shape_and_type, scaled=True),
    ),
    "wgmma": (Table(nv_ptx.WGMMA, isa_wgmma.wgmma_shape_and_type),),
    "tcgen05": (
        Table(nv_ptx.TCGen05MMA, isa_tcgen05mma.tcgen05mma_shape_and_type),
        Table(
            nv_ptx.TCGen05MMABlockScale,
            isa_tcgen05mma.tcgen05mma_block_scale_shape_and_type,
            scaled=True,
        ),
    ),
    "v_mfma": (Table(amd.MFMA, isa_mfma.arch_mfma_suffix),),
}


def candidate(name: str) -> tuple[str, str] | None:
    """(key of TABLES, mmasim's spelling) of a PTX or `v_mfma_…` name; None for a name of another kind (SASS).

    mmasim's spelling is the PTX name from the shape on: `m16n8k16.f32.f16.f16.f32`; of an AMD one, the name
    without the prefix.
    """
    name = canonical_name(name)
    ptx = re.fullmatch(r"(mma|wgmma|tcgen05)\b(?:\.[a-z_]+(?:::\w+)?)*?\.(m\d+n\d+k\d+\..+)", name)
    if ptx:
        return ptx[1], ptx[2]
    mfma = re.fullmatch(r"(?:v_mfma_)?(f(?:32|64)_\d+x\d+x\d+.*)", name)
    if mfma:
        return "v_mfma", mfma[1]
    return None


def any_shape(key: str, spelling: str) -> str:
    """The spelling without m and n where mmasim lists every pair: they do not touch the arithmetic."""
    return re.sub(r"^m\d+n\d+", "m*n*", spelling) if key in ("wgmma", "tcgen05") else spelling


@dataclass(frozen=True)
class Oracle:
    """mmasim's counterpart of an instruction."""

    name: str  #: `mma.m16n8k16.f32.f16.f16.f32`
    operation: Any
    operands: Operands
    nan_payload_specified: bool

    def dot_add(self, cases: Cases) -> Codes:
        """Return what mmasim makes of the cases, as codes of d."""
        operands, packing = self.operands, getattr(self.operation, "packing", 1)
        arguments = [
            to_torch(cases.a, operands.a, packing),
            to_torch(cases.b, operands.b, packing),
            to_torch(cases.c, operands.c, 1),
        ]
        if operands.scale is not None and cases.scale_a is not None and cases.scale_b is not None:
            arguments += [
                to_torch(cases.scale_a, operands.scale, 1),
                to_torch(cases.scale_b, operands.scale, 1),
            ]
        result = self.operation.dpa(*arguments)
        signed = {2: torch.int16, 4: torch.int32, 8: torch.int64}[result.dtype.itemsize]
        codes: Codes = result.view(signed).numpy().view(operands.d.word)
        return codes


def to_torch(codes: Codes, fmt: Format, packing: int) -> torch.Tensor:
    """Codes as mmasim holds them (semantics §8): e2m1 two per byte, the first in the high nibble, where
    `packing` is 2, else one per byte in bits 5:2."""
    if fmt.name == "e2m1":
        codes = codes[..., 0::2] << 4 | codes[..., 1::2] if packing == 2 else codes << 2
    signed = codes if codes.dtype == np.uint8 else codes.view(f"i{codes.dtype.itemsize}")
    return torch.from_numpy(np.ascontiguousarray(signed)).view(TORCH_DTYPE[fmt.name])


class UnmatchedError(Exception):
    """A row that cannot be matched with mmasim, though mmasim may have it: a mistake in a table or here."""


def find_oracle(instruction: Instruction) -> Oracle | None:
    """mmasim's counterpart; None if mmasim has no such instruction on that architecture.

    Raises UnmatchedError if no name of the instruction is one that mmasim could have, or if K or the types of
    the counterpart differ.
    """
    candidates = [c for c in map(candidate, (instruction.name, *instruction.aliases)) if c is not None]
    if not candidates:
        raise UnmatchedError("has no PTX or v_mfma_… name")
    architecture = MMASIM_ARCHITECTURE.get(instruction.architecture, "")
    for key, spelling in candidates:
        for table in TABLES[key]:
            if spelling in table.spellings.get(architecture, ()):
                name = f"v_mfma_{spelling}" if key == "v_mfma" else f"{key}.{spelling}"
                return _oracle(
                    instruction, key, name, spelling, table, table.operation(architecture, spelling)
                )
    return None


def _oracle(
    instruction: Instruction, key: str, name: str, spelling: str, table: Table, operation: Any
) -> Oracle:
    scale, blocks = None, 0
    if table.scaled:
        scale = FORMATS[spelling.rsplit(".", 1)[1]]
        blocks = instruction.k // operation.block_size
    operands = Operands(
        instruction.a_format,
        instruction.b_format,
        instruction.c_format,
        instruction.d_format,
        instruction.k,
        scale,
        blocks,
    )
    mine = [instruction.k, *(TORCH_DTYPE[f.name] for f in (operands.a, operands.b, operands.c, operands.d))]
    theirs = [operation.k, operation.a_type, operation.b_type, operation.c_type, operation.d_type]
    for side, fmt in (("a", operands.a), ("b", operands.b)):
        if TORCH_DTYPE[fmt.name] == torch.uint8:  # the dtype does not tell e3m2, e2m3 and e2m1 apart
            mine.append(fmt.name)
            theirs.append(getattr(operation, f"{side}_type_ptx"))
    if mine != theirs:
        raise UnmatchedError(f"has K and types {mine}, but mmasim's {name} has {theirs}")
    payload = key != "v_mfma" and operands.d.name != "fp64"
    return Oracle(name, operation, operands, payload)


# ---- known slips of mmasim ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slip:
    """A mistake of mmasim, as a prediction of what it returns.  A disagreement is excused only if mmasim
    returned exactly the predicted code, and is counted."""

    applies: Callable[[Instruction, Oracle], bool]
    predict: Callable[[Instruction, Cases], Codes]
    description: str


def _exponents(fmt: Format, codes: Codes) -> NDArray[np.int64]:
    """Exponents of the fields; −999 for a zero."""
    word = codes.astype(np.int64) & (fmt.codes // 2 - 1)
    exponent = np.maximum(word >> fmt.fraction_bits, 1) - fmt.bias
    return np.where(word == 0, -999, exponent)


def _gfdrda_without_special_accumulator(instruction: Instruction, cases: Cases) -> Codes:
    L = instruction.parameters["L"]
    block = instruction.replace(k=L)
    c = cases.c
    for start in range(0, instruction.k, L):
        a, b = cases.a[:, start : start + L], cases.b[:, start : start + L]
        e_dot = (_exponents(instruction.a_format, a) + _exponents(instruction.b_format, b)).max(axis=1)
        special = ~np.isfinite(c.view(np.float32))
        c = block.dot_add(a, b, np.where(special & (e_dot >= 25), np.uint32(0), c))
    return c


def _efda_through_float64(instruction: Instruction, cases: Cases) -> Codes:
    L = instruction.parameters["L"]
    block = instruction.replace(k=L)
    missed_tie = 2.0**-126 - 2.0**-150
    c = cases.c
    for start in range(0, instruction.k, L):
        a, b = cases.a[:, start : start + L], cases.b[:, start : start + L]
        products = (
            to_torch(a, instruction.a_format, 1).double() * to_torch(b, instruction.b_format, 1).double()
        )
        addend = to_torch(c, instruction.c_format, 1).double().unsqueeze(-1)
        terms = torch.cat([products, addend], dim=-1)
        overflowing = terms.sum(dim=-1).float().numpy()
        finite = terms.isfinite().all(dim=-1, keepdim=True)
        nearest = np.array([math.fsum(row) for row in terms.where(finite, 0.0).tolist()])
        c = block.dot_add(a, b, c)
        smallest_normal = np.copysign(np.float32(2.0**-126), nearest).astype(np.float32).view(np.uint32)
        c = np.where(np.abs(nearest) == missed_tie, smallest_normal, c)
        c = np.where(np.isfinite(overflowing), c, overflowing.view(np.uint32))
    return c


SLIPS = (
    Slip(
        lambda instruction, oracle: oracle.name.startswith("v_mfma") and instruction.algorithm == "gfdrda",
        _gfdrda_without_special_accumulator,
        "cdna3 bf8·bf8: a NaN or infinite accumulator (c, or the first block's result) counts as 0 when a "
        "nonzero product has an exponent of 25 or more, because the test e_c < e_max − 25 of gfdrda's step 4 "
        "is applied to it as if its exponent were −1. Right: NaN propagates and an infinity stays (semantics "
        "§3, §8).",
    ),
    Slip(
        lambda instruction, oracle: oracle.name.startswith("v_mfma") and instruction.algorithm == "efda",
        _efda_through_float64,
        "cdna1: the sum is rounded by way of float64, which shows in two places. Just below the bound of "
        "overflow, 2^128 − 2^103, it is an infinity if the float64 sum rounds up to the bound. Where the float64 "
        "nearest to it is ±(2^-126 − 2^-150) but the sum is smaller in magnitude, it is ±2^-126: the step below "
        "2^-126 is taken for half of what it is among subnormals, so the tie is not seen to be inexact. Right, by "
        "the rule of one rounding: the largest finite number, and the largest subnormal (semantics §3).",
    ),
)


# ---- comparing ---------------------------------------------------------------------------------------------


@dataclass
class Disagreement:
    """One case in hexadecimal."""

    family: str
    a: list[str]
    b: list[str]
    c: str
    scale_a: list[str] | None
    scale_b: list[str] | None
    mmaformal: str
    mmasim: str

    def __str__(self) -> str:
        scales = f"\n      scale_a {' '.join(self.scale_a)}" if self.scale_a else ""
        scales += f"\n      scale_b {' '.join(self.scale_b)}" if self.scale_b else ""
        return (
            f"    {self.family}: mmaformal {self.mmaformal}, mmasim {self.mmasim}\n"
            f"      a {' '.join(self.a)}\n      b {' '.join(self.b)}\n      c {self.c}{scales}"
        )


RESULT_KINDS = ("nan", "infinite", "zero", "subnormal", "normal")


@dataclass
class FamilyCount:
    """Cases of one family for one instruction; the results by kind, as mmaformal gives them."""

    cases: int = 0
    disagreements: int = 0
    known_slips: int = 0
    results: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULT_KINDS, 0))


@dataclass
class Row:
    """The comparison of one instruction.  `problem`: why it could not be compared although it should."""

    architecture: str
    instruction: str
    mmasim: str | None
    problem: str | None = None
    families: dict[str, FamilyCount] = field(default_factory=dict)
    examples: list[Disagreement] = field(default_factory=list)
    seconds: float = 0.0

    def total(self, what: str) -> int:
        return sum(getattr(count, what) for count in self.families.values())


def floats(fmt: Format, codes: Codes) -> NDArray[Any]:
    """Codes of fp16, fp32 or fp64 as NumPy's floats."""
    return codes.view(f"f{fmt.storage_bits // 8}")


def kinds(fmt: Format, codes: Codes) -> dict[str, int]:
    """How many codes of fp16, fp32 or fp64 are of each of RESULT_KINDS."""
    values = np.abs(floats(fmt, codes))
    smallest_normal = 2.0**fmt.min_exponent
    counts = (
        np.isnan(values),
        np.isinf(values),
        values == 0,
        (values > 0) & (values < smallest_normal),
        np.isfinite(values) & (values >= smallest_normal),
    )
    return {kind: int(flags.sum()) for kind, flags in zip(RESULT_KINDS, counts, strict=True)}


def _equal(fmt: Format, x: Codes, y: Codes, *, nan_payload_specified: bool) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = x == y
    if not nan_payload_specified:
        same |= np.isnan(floats(fmt, x)) & np.isnan(floats(fmt, y))
    return same


def _disagreement(
    family: str, operands: Operands, cases: Cases, i: int, mine: Codes, theirs: Codes
) -> Disagreement:
    def text(fmt: Format, code: int) -> str:
        return f"0x{int(code):0{-(-fmt.storage_bits // 4)}X}"

    def texts(fmt: Format | None, codes: Codes | None) -> list[str] | None:
        return None if fmt is None or codes is None else [text(fmt, code) for code in codes[i]]

    return Disagreement(
        family,
        [text(operands.a, code) for code in cases.a[i]],
        [text(operands.b, code) for code in cases.b[i]],
        text(operands.c, cases.c[i]),
        texts(operands.scale, cases.scale_a),
        texts(operands.scale, cases.scale_b),
        text(operands.d, mine[i]),
        text(operands.d, theirs[i]),
    )


def compare_family(
    instruction: Instruction, oracle: Oracle, family: str, n: int, seed: int
) -> tuple[FamilyCount, list[Disagreement]]:
    """Run n cases of a family through both; the first few disagreements come with the counts."""
    operands = oracle.operands
    cases = generate(family, operands, n, seed)
    scales = () if operands.scale is None else (cases.scale_a, cases.scale_b)
    mine = instruction.dot_add(cases.a, cases.b, cases.c, *scales)
    theirs = oracle.dot_add(cases)

    payload = oracle.nan_payload_specified
    differs = ~_equal(operands.d, mine, theirs, nan_payload_specified=payload)
    known = np.zeros(n, np.bool_)
    if differs.any():
        for slip in SLIPS:
            if slip.applies(instruction, oracle):
                predicted = slip.predict(instruction, cases)
                known |= differs & _equal(operands.d, predicted, theirs, nan_payload_specified=payload)
    unknown = differs & ~known
    count = FamilyCount(n, int(unknown.sum()), int(known.sum()), kinds(operands.d, mine))
    shown = np.flatnonzero(unknown)[:SHOWN]
    return count, [_disagreement(family, operands, cases, int(i), mine, theirs) for i in shown]


def compare(instruction: Instruction, cases: int, seed: int) -> Row:
    """Compare one instruction on at least `cases` cases."""
    row = Row(instruction.architecture, instruction.name, None)
    start = time.perf_counter()
    try:
        oracle = find_oracle(instruction)
    except UnmatchedError as error:
        row.problem = str(error)
        return row
    if oracle is not None:
        row.mmasim = oracle.name
        for family in FAMILIES:
            n = -(-cases // len(FAMILIES))
            # Seeded with the instruction too: rows of equal types and parameters are then fresh cases.
            own_seed = zlib.crc32(f"{instruction.label} {seed}".encode())
            row.families[family], examples = compare_family(instruction, oracle, family, n, own_seed)
            row.examples += examples
    row.seconds = time.perf_counter() - start
    return row


def uncovered(architecture: Architecture) -> list[str]:
    """mmasim's instructions of an architecture that no row of mmaformal's stands for."""
    names = [name for row in architecture for name in (row.name, *row.aliases)]
    covered = {(c[0], any_shape(*c)) for c in map(candidate, names) if c is not None}
    listed = {
        (key, any_shape(key, spelling)): None
        for key, tables in TABLES.items()
        for table in tables
        for spelling in table.spellings.get(MMASIM_ARCHITECTURE[architecture.name], ())
    }
    return [
        f"v_mfma_{spelling}" if key == "v_mfma" else f"{key}.{spelling}"
        for key, spelling in listed
        if (key, spelling) not in covered
    ]


# ---- reports -----------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    """One row for the terminal."""
    head = f"{row.architecture:14} {row.instruction:34}"
    if row.problem:
        return f"{head} NOT COMPARED: {row.problem}"
    if row.mmasim is None:
        return f"{head} mmasim has no such instruction"
    slips = row.total("known_slips")
    return (
        f"{head} {row.total('cases'):>9,} cases  {row.total('disagreements'):>6,} disagreements"
        + (f"  {slips:,} known slips" if slips else "")
        + f"  {row.seconds:5.1f} s"
    )


def by_types(names: Sequence[str]) -> list[str]:
    """Instructions that differ only in their types of 8 bits or fewer, as one entry with their number."""
    groups = Counter(re.sub(r"\be\dm\d\b", "*", name) for name in names)
    return [f"`{group}`" + (f" ({count})" if count > 1 else "") for group, count in groups.items()]


def markdown(rows: Sequence[Row], missing: dict[str, list[str]], command: str) -> str:
    """The whole run as a page."""
    compared = [row for row in rows if row.families]
    cases = sum(row.total("cases") for row in compared)
    disagreements = sum(row.total("disagreements") for row in compared)
    slips = sum(row.total("known_slips") for row in compared)
    lines = [
        "# Comparison with mmasim",
        "",
        "mmasim is the simulator published with MMA-Sim, which its authors validated on hardware. "
        "This page is written by",
        "",
        f"    {command}",
        "",
        f"with mmasim {version('mmasim')}, torch {version('torch')}, NumPy {version('numpy')}. "
        f"**{len(compared)} instructions, {cases:,} dot product-adds, {disagreements:,} disagreements.** "
        f"Beside them {slips:,} cases are excused, in which mmasim returned "
        "exactly what a known slip of its own predicts (below the table). "
        "Results are compared bit for bit; only where the hardware's NaN payload is unspecified (DMMA and "
        "AMD) does any NaN equal any other.",
        "",
        "| architecture | instruction | mmasim | cases | disagreements | known slips of mmasim |",
        "|---|---|---|---:|---:|---:|",
    ]
    for row in compared:
        lines.append(
            f"| {row.architecture} | {row.instruction} | `{row.mmasim}` | {row.total('cases'):,} "
            f"| {row.total('disagreements'):,} | {row.total('known_slips'):,} |"
        )
    if any(row.total("known_slips") for row in compared):
        lines += [
            "",
            "| known slips: a case counts only if mmasim returned exactly what the slip predicts |",
            "|---|",
        ]
        lines += [f"| {slip.description} |" for slip in SLIPS]

    lines += [
        "",
        "## The families of inputs",
        "",
        "Totals over all instructions above; the kinds are those of the results.",
        "",
        "| family | aims at | cases | disagreements | " + " | ".join(RESULT_KINDS) + " |",
        "|---|---|---:|---:|" + "---:|" * len(RESULT_KINDS),
    ]
    for family, function in FAMILIES.items():
        counts = [row.families[family] for row in compared]
        n = sum(count.cases for count in counts)
        results = (sum(count.results[kind] for count in counts) for kind in RESULT_KINDS)
        lines.append(
            f"| {family} | {' '.join((function.__doc__ or '').split())} | {n:,} "
            f"| {sum(count.disagreements for count in counts):,} | "
            + " | ".join(f"{100 * result / max(n, 1):.1f} %" for result in results)
            + " |"
        )

    examples = [(row, example) for row in compared for example in row.examples[:SHOWN]]
    if examples:
        lines += ["", "## Disagreements", ""]
        for row, example in examples:
            lines += [f"{row.architecture} {row.instruction}", "", "```", str(example), "```", ""]
    absent = [
        f"{row.architecture} {row.instruction}" for row in rows if row.mmasim is None and not row.problem
    ]
    problems = [f"{row.architecture} {row.instruction} {row.problem}" for row in rows if row.problem]
    for title, entries in (
        ("Not compared, by mistake", problems),
        ("Instructions mmasim does not have", absent),
        *(
            (f"Instructions of mmasim's {name} without a row here", by_types(names))
            for name, names in missing.items()
        ),
    ):
        if entries:
            lines += ["", f"| {title} |", "|---|", *(f"| {entry} |" for entry in entries)]
    return "\n".join(lines) + "\n"


# ---- command line ------------------------------------------------------------------------------------------


def selected(arch: str | None, instruction: str | None) -> Iterator[tuple[Architecture, list[Instruction]]]:
    """Architectures and their instructions to compare.  Raises UnknownInstructionError, KeyError."""
    architectures = list(ARCHITECTURES.values()) if arch is None else [ARCHITECTURES[arch]]
    if instruction is not None:
        having = [architecture for architecture in architectures if instruction in architecture]
        if not having:
            raise UnknownInstructionError(f"no architecture asked for has an instruction {instruction!r}")
        architectures = having
    for architecture in architectures:
        if instruction is None:
            yield architecture, list(architecture.instructions)
        else:
            yield architecture, [architecture[instruction]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare mmaformal with mmasim, bit for bit.")
    parser.add_argument("--arch", help="only this architecture")
    parser.add_argument("--instruction", help="only this instruction (any of its names)")
    parser.add_argument("--cases", type=int, default=100_000, help="least number of cases per instruction")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write all counts and disagreements to this file")
    parser.add_argument("--markdown", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.cases < 1:
        parser.error("--cases must be at least 1")
    try:
        selection = list(selected(options.arch, options.instruction))
    except KeyError as error:
        parser.error(str(error.args[0]))

    # A few thousand cases at a time: torch's threads wait for each other longer than they compute.
    torch.set_num_threads(1)
    rows: list[Row] = []
    missing: dict[str, list[str]] = {}
    for architecture, instructions in selection:
        for instruction in instructions:
            row = compare(instruction, options.cases, options.seed)
            rows.append(row)
            print(line(row), flush=True)
            for example in row.examples[:SHOWN]:
                print(example)
        if options.instruction is None:
            missing[architecture.name] = uncovered(architecture)

    compared = [row for row in rows if row.families]
    disagreements = sum(row.total("disagreements") for row in compared)
    problems = sum(row.problem is not None for row in rows)
    absent = len(rows) - len(compared) - problems
    print(
        f"{len(compared)} instructions compared, {sum(row.total('cases') for row in compared):,} cases, "
        f"{disagreements:,} disagreements, {sum(row.total('known_slips') for row in compared):,} known slips "
        f"of mmasim; {absent} instructions that mmasim lacks, {problems} that could not be matched"
    )
    for name, names in missing.items():
        if names:
            print(
                f"mmasim's {name} has {len(names)} instructions without a row in mmaformal "
                "(listed in --json and --markdown)"
            )

    command = "python tests/oracle/compare_mmasim.py"
    for option in ("arch", "instruction", "cases", "seed"):
        if getattr(options, option) is not None:
            command += f" --{option} {getattr(options, option)}"
    if options.markdown:
        options.markdown.write_text(
            markdown(rows, missing, f"{command} --markdown {options.markdown}"), "utf-8"
        )
    if options.json:
        report = {
            "command": command,
            "mmasim": version("mmasim"),
            "rows": [asdict(row) for row in rows],
            "without_a_row": missing,
        }
        options.json.write_text(json.dumps(report, indent=1), "utf-8")
    return 1 if disagreements or problems else 0


if __name__ == "__main__":
    sys.exit(main())
