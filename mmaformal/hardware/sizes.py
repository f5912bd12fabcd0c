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
from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError, model_of
from mmaformal.hardware.verilog import systemverilog
from mmaformal.hardware.yosys import size_of
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd

#: Organisations that are compared; of the first two one unit is measured, of which a group is a chain.
KINDS = ("mul_add", "fma", "fda", "sda")
_CHAINS = ("mul_add", "fma")
GROUPS = (2, 4, 8, 16, 32)
FRAC_BITS = (8, 12, 16, 20, 24, 28, 40)
#: What all bits are measured with, and all group sizes.
K, F = 16, 24


@dataclass(frozen=True, repr=False)
class Row(ShortRepr):
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


def measure_one(name: str, timeout: float, spec: DotAdd | None = None) -> Row:
    """The size of a datapath that is spelled out, or of any model of another name.

    Raises HardwareError without yosys, or when the time is up.
    """
    spec = datapaths.named(name).spec if spec is None else spec
    with tempfile.TemporaryDirectory(prefix="mmaformal-") as folder:
        path = Path(folder) / "unit.sv"
        path.write_text(systemverilog(model_of(spec, "unit")), encoding="utf-8")
        size = size_of([path], "unit", timeout=timeout)
    bits = spec.parameters["F"] if "F" in spec.parameters.keys() else None  # noqa: SIM118
    kind = name.partition("(")[0]
    return Row(
        name,
        kind,
        spec.k,
        None if bits is None else int(str(bits)),
        str(spec.a_format),
        size.cells,
        size.depth,
    )


def measure(
    instructions: Iterable[Instruction],
    rows: Path | None = None,
    executor: Executor | None = None,
    timeout: float = 900.0,
) -> Iterator[Row]:
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


def _measured(wanted: Mapping[str, DotAdd], executor: Executor | None, timeout: float) -> Iterator[Row]:
    """Rows in the order in which they are done."""
    if executor is None:
        yield from (measure_one(name, timeout, spec) for name, spec in wanted.items())
        return
    futures = [executor.submit(measure_one, name, timeout, spec) for name, spec in wanted.items()]
    yield from (future.result() for future in as_completed(futures))


def _read(path: Path) -> dict[str, Row]:
    """Raises HardwareError for a file of anything else."""
    found: dict[str, Row] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = Row(**json.loads(line))
        except (ValueError, TypeError):
            raise HardwareError(f"{path}:{number} is no row of sizes; give another --out") from None
        found[row.datapath] = row
    return found


def table(rows: Sequence[Row]) -> str:
    """In Markdown: by group size, and by fractional bits; then what was asked for besides."""
    return "\n\n".join(part for part in (_by_group(rows), _by_bits(rows), _others(rows)) if part)


def _others(rows: Sequence[Row]) -> str:
    """Those of no table above, each by itself."""
    others = [row for row in rows if row.kind not in KINDS or not _in_a_table(row, rows)]
    told = [
        f"| {row.datapath} | {row.k} | {row.cells:,} | {row.per_product:,.0f} | {row.depth:,} |"
        for row in others
    ]
    head = ["| | K | gates | per product | depth |", "|---|---:|---:|---:|---:|"]
    return "\n".join([*head, *told]) if told else ""


def _in_a_table(row: Row, rows: Sequence[Row]) -> bool:
    some_bits = len({each.frac_bits for each in rows if each.kind == row.kind and each.k == K}) > 1
    by_group = row.kind in _CHAINS or row.frac_bits == F
    return any(each.kind not in _CHAINS for each in rows) and (by_group or (row.k == K and some_bits))


def _by_group(rows: Sequence[Row]) -> str:
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


def _by_bits(rows: Sequence[Row]) -> str:
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


__all__ = ["Row", "measure", "measure_one", "name_of", "points", "table"]
