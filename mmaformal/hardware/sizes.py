"""How large datapaths are: gates and depth after generic synthesis, over group size and fractional bits.

In place of TensorGauge's curves of area and power (Fig. 5), which are of a 22 nm process: the model's own formula as a
combinational module (`verilog`), mapped by yosys to gates of two inputs, inverters and multiplexers.  It counts, and
weighs no gate; pipelines, wires and clocks are not in it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mmaformal.architectures import datapaths
from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller
from mmaformal.display import ShortRepr, counted
from mmaformal.executors import checked_jobs, workers_given
from mmaformal.formats import Format
from mmaformal.hardware.module import HardwareError, model_of
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.hardware.yosys import synthesised
from mmaformal.instruction import Instruction
from mmaformal.result import Result
from mmaformal.solver.deadline import checked_timeout
from mmaformal.spec import DotAdd

#: Organisations that are compared; of the first two one unit is measured, of which a group is a chain.
KINDS = ("mul_add", "fma", "fda", "sda")
_CHAINS = ("mul_add", "fma")
GROUPS = (2, 4, 8, 16, 32)
FRAC_BITS = (8, 12, 16, 20, 24, 28, 40)
#: The K that all bits are measured with, and the F that all group sizes are.
K, F = 16, 24


@dataclass(frozen=True, repr=False)
class DatapathSize(ShortRepr):
    """One datapath's size."""

    datapath: str  #: as it is spelled
    kind: str
    k: int
    frac_bits: int | None  #: None where nothing is aligned
    a: str
    cells: int
    depth: int  #: the most cells on a way from an input to d

    @property
    def per_product(self) -> float:
        return self.cells / self.k


@dataclass(frozen=True, repr=False)
class Sizes(Result):
    """The sizes of datapaths, in the order in which they were asked for."""

    measured: tuple[DatapathSize, ...]

    @property
    def verdict(self) -> str:
        """`measured`, always."""
        return "measured"

    @property
    def summary(self) -> str:
        """Returns how many datapaths were measured."""
        return f"{counted(len(self.measured), 'datapath')} measured"

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict of plain values for each datapath."""
        return [{**asdict(row), "per_product": row.per_product} for row in self.measured]

    def to_json(self) -> list[dict[str, object]]:
        """Returns plain values, for each datapath."""
        return [asdict(row) for row in self.measured]

    def __str__(self) -> str:
        return in_markdown(self.measured) or self.summary


def sizes(
    kinds: str | Instruction | Iterable[str | Instruction] = KINDS,
    *,
    k: Sequence[int] = GROUPS,
    frac_bits: Sequence[int] = FRAC_BITS,
    a_format: str | Format = "bf16",
    cut: str = "RZ",
    path: str | Path | None = None,
    jobs: int | None = None,
    timeout: float = 900.0,
    progress: Progress | None = None,
) -> Sizes:
    """Measure how large datapaths are: gates and depth after generic synthesis by yosys.

    kinds: names of `KINDS`, each over the group sizes `k` and the fractional bits `frac_bits`, of a and b in `a_format`
    and aligned by `cut`; datapaths spelled out, "fda(k=16,frac_bits=20)"; instructions, or their names.  path: a file
    to which rows are added, and whose rows are taken.  jobs: worker processes (default: one for each core).
    timeout: seconds for each.  progress: called with a line of text for each.

    Raises ValueError for what is no datapath, HardwareError without yosys, or when the time is up.
    """
    caller(progress)
    chosen, a = list[Instruction](), Format.named(a_format, "a_format").name
    for kind in [kinds] if isinstance(kinds, str | Instruction) else kinds:
        if isinstance(kind, Instruction):
            chosen.append(kind)
        elif "(" in kind and " " not in kind.partition("(")[0].strip():
            chosen.append(datapaths.named(kind))
        elif " " in kind.strip():
            chosen.append(instruction_meant(kind))
        else:
            chosen += points([kind], k, frac_bits, a, cut)
    found: dict[str, DatapathSize] = {}
    checked_timeout(timeout)
    with workers_given(None, min(checked_jobs(jobs), len(chosen) or 1)) as executor:
        for row in measure_all(chosen, None if path is None else Path(path), executor, timeout):
            found[row.datapath] = row
            if progress is not None:
                progress(f"{row.datapath}: {row.cells:,} gates, {row.depth:,} deep")
    return Sizes(tuple(found[name] for name in dict.fromkeys(map(name_of, chosen))))


def points(
    kinds: Sequence[str] = KINDS,
    groups: Sequence[int] = GROUPS,
    frac_bits: Sequence[int] = FRAC_BITS,
    a: str = "bf16",
    cut: str = "RZ",
) -> list[Instruction]:
    """Each organisation with every group size at 24 fractional bits, and with all fractional bits at K = 16.

    MUL+ADD and FMA with K = 1.  Raises ValueError for what is no datapath.
    """
    chosen: dict[str, Instruction] = {}
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"no organisation {kind!r}; there are {', '.join(KINDS)}")
        pairs = [(k, F) for k in groups] + [(K, bits) for bits in frac_bits]
        if kind in _CHAINS:
            pairs = [(1, F)]
        for k, bits in pairs:
            aligned = "" if kind in _CHAINS else f",frac_bits={bits},cut={cut}"
            point = datapaths.named(f"{kind}(k={k},a={a}{aligned})")
            chosen.setdefault(point.name, point)
    return list(chosen.values())


def measure_one(name: str, timeout: float, spec: DotAdd | None = None) -> DatapathSize:
    """The size of a datapath that is spelled out, or of any model of another name.

    Raises HardwareError without yosys, or when the time is up.
    """
    spec = datapaths.named(name).spec if spec is None else spec
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        path = Path(folder) / "unit.sv"
        path.write_text(systemverilog(model_of(spec, "unit")), encoding="utf-8")
        size = synthesised([path], "unit", timeout=timeout)
    bits = spec.parameters["F"] if "F" in spec.parameters.keys() else None  # noqa: SIM118
    kind = name.partition("(")[0]
    return DatapathSize(
        name,
        kind,
        spec.k,
        None if bits is None else int(str(bits)),
        str(spec.a_format),
        size.cells,
        size.depth,
    )


def measure_all(
    instructions: Iterable[Instruction],
    rows: Path | None = None,
    executor: Executor | None = None,
    timeout: float = 900.0,
) -> Iterator[DatapathSize]:
    """The sizes of datapaths, as they are found; those in the file `rows` first, to which new ones are added.

    timeout: seconds for each.  Raises HardwareError.
    """
    known = _read(rows) if rows is not None and rows.exists() else {}
    wanted = {name_of(each): each.spec for each in instructions}
    yield from (known[name] for name in wanted if name in known)
    missing = {name: spec for name, spec in wanted.items() if name not in known}
    for row in _measured(missing, executor, timeout):
        if rows is not None:
            with rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        yield row


def name_of(instruction: Instruction) -> str:
    """A datapath by its spelling, an instruction of another architecture by its label."""
    return instruction.name if instruction.architecture == datapaths.NAME else instruction.label


def _measured(
    wanted: Mapping[str, DotAdd], executor: Executor | None, timeout: float
) -> Iterator[DatapathSize]:
    """Rows in the order in which they are done."""
    if executor is None:
        yield from (measure_one(name, timeout, spec) for name, spec in wanted.items())
        return
    futures = [executor.submit(measure_one, name, timeout, spec) for name, spec in wanted.items()]
    yield from (future.result() for future in as_completed(futures))


def _read(path: Path) -> dict[str, DatapathSize]:
    """Raises HardwareError for a file of anything else."""
    found: dict[str, DatapathSize] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = DatapathSize(**json.loads(line))
        except (ValueError, TypeError):
            raise HardwareError(f"{path}:{number} is no row of sizes; give another --out") from None
        found[row.datapath] = row
    return found


def in_markdown(rows: Sequence[DatapathSize]) -> str:
    """In Markdown: by group size, and by fractional bits; then what was asked for besides."""
    return "\n\n".join(part for part in (_by_group(rows), _by_bits(rows), _others(rows)) if part)


def _others(rows: Sequence[DatapathSize]) -> str:
    """Those of no table above, each by itself."""
    others = [row for row in rows if row.kind not in KINDS or not _in_a_table(row, rows)]
    told = [
        f"| {row.datapath} | {row.k} | {row.cells:,} | {row.per_product:,.0f} | {row.depth:,} |"
        for row in others
    ]
    head = ["| | K | gates | per product | depth |", "|---|---:|---:|---:|---:|"]
    return "\n".join([*head, *told]) if told else ""


def _in_a_table(row: DatapathSize, rows: Sequence[DatapathSize]) -> bool:
    some_bits = len({each.frac_bits for each in rows if each.kind == row.kind and each.k == K}) > 1
    by_group = row.kind in _CHAINS or row.frac_bits == F
    return any(each.kind not in _CHAINS for each in rows) and (by_group or (row.k == K and some_bits))


def _by_group(rows: Sequence[DatapathSize]) -> str:
    at = {(row.kind, row.k): row for row in rows if row.frac_bits in (None, F)}
    groups = sorted({k for kind, k in at if kind not in _CHAINS})
    kinds = [kind for kind in KINDS if any(kind == own for own, _ in at)]
    if not groups:
        return ""
    told = [
        f"| K (FracBits {F}) | " + " | ".join(f"{kind}: gates per product (depth)" for kind in kinds) + " |"
    ]
    told.append("|---:|" + "---:|" * len(kinds))
    for k in groups:
        shown = []
        for kind in kinds:
            one = at.get((kind, 1)) if kind in _CHAINS else None
            row = replace(one, k=k, cells=k * one.cells, depth=k * one.depth) if one else at.get((kind, k))
            shown.append(f"{row.per_product:,.0f} ({row.depth:,})" if row else "")
        told.append(f"| {k} | " + " | ".join(shown) + " |")
    return "\n".join(told)


def _by_bits(rows: Sequence[DatapathSize]) -> str:
    at = {(row.kind, row.frac_bits): row for row in rows if row.frac_bits is not None and row.k == K}
    bits = sorted({b for _, b in at if b is not None})
    kinds = [kind for kind in KINDS if any(kind == own for own, _ in at)]
    if len(bits) < 2:
        return ""
    told = [f"| FracBits (K = {K}) | " + " | ".join(f"{kind}: gates (depth)" for kind in kinds) + " |"]
    told.append("|---:|" + "---:|" * len(kinds))
    for each in bits:
        cells = [at.get((kind, each)) for kind in kinds]
        shown = [f"{row.cells:,} ({row.depth:,})" if row else "" for row in cells]
        told.append(f"| {each} | " + " | ".join(shown) + " |")
    return "\n".join(told)
