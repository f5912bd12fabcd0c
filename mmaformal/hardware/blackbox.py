"""A design as a black box: codes in, d out, a million rows a second, before anybody waits for a proof.

unit = mmaformal.from_rtl("dpa.sv", k=4, a_format="fp16", c_format="fp32", top="dpa")
print(mmaformal.probe(unit))
print(mmaformal.identify(unit))
unit.record("rows.npz", 100_000)
print(mmaformal.signoff(unit, "volta HMMA.884.F32.F32"))  # proved
print(mmaformal.bound(unit))  # of the model that it is proved to be
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.checked import Progress, caller
from mmaformal.display import LastingLine, ShortRepr
from mmaformal.formats import Format
from mmaformal.hardware.compiled import Compiled
from mmaformal.hardware.designs import Wired, wired
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.sources import Sources, sources_of
from mmaformal.hardware.undefined import constants_undefined, unused
from mmaformal.instruction import Instruction
from mmaformal.renamed import keywords, warn
from mmaformal.solver.answers import Holds
from mmaformal.spec import DotAdd

#: Rows of a recording that are drawn at once.
_BLOCK = 1 << 16


@dataclass(frozen=True, repr=False)
class Shape(ShortRepr):
    """The types that a design takes and gives, without a model."""

    k: int
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    scale_format: Format | None = None
    scale_block: int = 0

    @property
    def scales(self) -> int:
        """Scales of each side."""
        return self.k // self.scale_block if self.scale_format is not None else 0


@dataclass(repr=False)
class DesignUnit(ShortRepr):
    """A design that can be called with codes of a and b of shape (n, K), and of c, (n,), and gives codes of d."""

    shape: Shape
    name: str
    _run: Compiled
    _names: Sequence[str]
    _undefined: int  #: how many of the names, the last ones, are undefined bits
    design: Wired  #: as it is read
    notes: tuple[str, ...] = ()  #: how it is wired, for a person
    #: the model that it is proved to compute, and the proof; `mmaformal.signoff(unit, model)` finds one
    proved: tuple[Instruction, Holds] | None = None

    def as_instruction(self) -> Instruction:
        """The model that the design is proved to be, under the design's name.

        Raises ValueError where none is proved.
        """
        if self.proved is None:
            raise ValueError(
                f"{self.name} is not proved to be a model yet: `signoff(unit, model)` proves it, and `identify(unit)` "
                f"finds which; as a black box it is taken by probe, identify, find_difference and `unit.record`"
            )
        model, holds = self.proved
        why = f"proved: {holds.question} ({holds.proof.summary})"
        sources = dict.fromkeys((*model.sources, *model.parameters), why)
        return dataclasses.replace(
            model,
            name=self.name,
            architecture="rtl",
            aliases=(),
            sources=sources,
            sizes=None,
            depths=range(0),
        )

    @property
    def told(self) -> tuple[str, ...]:
        """`notes`, by its old name, with a warning."""
        warn("DesignUnit.told is DesignUnit.notes now")
        return self.notes

    @property
    def takes(self) -> dict[str, Any]:
        """The types and K, as `probe` and `identify` take them."""
        s = self.shape
        types = {"a_format": s.a_format, "b_format": s.b_format, "c_format": s.c_format}
        return {"k": s.k, **types, "d_format": s.d_format}

    def __call__(
        self,
        a: NDArray[Any],
        b: NDArray[Any],
        c: NDArray[Any],
        scale_a: NDArray[Any] | None = None,
        scale_b: NDArray[Any] | None = None,
    ) -> NDArray[np.uint64]:
        """The design's d.  Raises HardwareError where it depends on what the design leaves undefined."""
        none = np.empty((len(c), 0), np.uint64)
        sides = [none if side is None else side for side in (scale_a, scale_b)]
        rows = Rows(*(np.asarray(x).astype(np.uint64) for x in (a, b, c, *sides)))
        return self.results(rows)

    def results(self, rows: Rows) -> NDArray[np.uint64]:
        """The design's d for rows."""
        columns = list(rows.codes.flat())
        found = [self._with(columns, fill, len(rows)) for fill in ((0, 1) if self._undefined else (0,))]
        other = np.flatnonzero(found[0] != found[-1])
        if len(other):
            raise HardwareError(
                f"d of {self.name} depends on what the design leaves undefined (X), in {len(other):,} of {len(rows):,} "
                f"rows: `mmaformal signoff` names the signals"
            )
        return found[0]

    def _with(self, columns: Sequence[NDArray[Any]], fill: int, count: int) -> NDArray[np.uint64]:
        """The design's d where every undefined bit is 0, or 1."""
        known = len(self._names) - self._undefined
        values: dict[str, NDArray[Any]] = dict(zip(self._names[:known], columns, strict=True))
        for name in self._names[known:]:
            ones = (1 << self._run.constants[name]) - 1
            values[name] = np.array([ones * fill], object)
        return self._run(values, count)

    def record(self, path: str | Path, rows: int = 100_000, seed: int = 0) -> int:
        """Write a recording (`.npz`) of random rows, and return how many."""
        shape = self.shape
        blocks = [
            generate(shape, min(_BLOCK, rows - done), seed + i, DISTRIBUTIONS)
            for i, done in enumerate(range(0, rows, _BLOCK))
        ]
        drawn = Rows.join(blocks)
        d = self.results(drawn)
        arrays = {
            "a": drawn.a.astype(shape.a_format.word),
            "b": drawn.b.astype(shape.b_format.word),
            "c": drawn.c.astype(shape.c_format.word),
            "d": d.astype(shape.d_format.word),
        }
        meta: dict[str, object] = {
            "architecture": "rtl",
            "instruction": self.name,
            "a_format": str(shape.a_format),
            "b_format": str(shape.b_format),
            "c_format": str(shape.c_format),
            "output_format": str(shape.d_format),
            "terms": shape.k,
            "source": "mmaformal, of a design's text",
        }
        np.savez_compressed(Path(path), meta=np.array(json.dumps(meta)), **arrays)  # type: ignore[arg-type]
        return len(d)


@keywords(told="progress")
def from_rtl(
    files: str | Path | Sequence[str | Path] | Sources,
    *,
    k: int,
    a_format: Format | str,
    c_format: Format | str,
    b_format: Format | str | None = None,
    d_format: Format | str | None = None,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    includes: Sequence[str | Path] = (),
    lists: Sequence[str | Path] = (),
    ports: PortMap | Mapping[str, str] | None = None,
    ties: Mapping[str, str | int] | None = None,
    cycles: int | None = None,
    held: bool = False,
    progress: Progress | None = None,
) -> DesignUnit:
    """Read a design as a function of codes, which is compiled, and which queries take.

    The arguments are those of `signoff`; k and the formats are what it takes, b_format and d_format those of a and c if
    they are not given.  progress: is called with the wiring, which the unit has as `notes`.

    Raises HardwareError as `signoff` does.
    """
    a, c = Format.named(a_format, "a_format"), Format.named(c_format, "c_format")
    b = a if b_format is None else Format.named(b_format, "b_format")
    d = c if d_format is None else Format.named(d_format, "d_format")
    shape = Shape(k, a, b, c, d)
    sources = files
    if not isinstance(sources, Sources):
        sources = sources_of(sources, top, defines, parameters)
        sources = replace(sources, includes=tuple(map(Path, includes)), lists=tuple(map(Path, lists)))
    said = ports if isinstance(ports, PortMap) else PortMap(dict(ports or {}))
    said = said.with_more({}, {name: str(value) for name, value in (ties or {}).items()})
    said = said if cycles is None else replace(said, cycles=cycles)
    spec = cast(DotAdd, shape)  # what is needed of it is its types
    caller(progress)
    design = wired(sources, spec, said, held=held, progress=progress)
    inputs, undefined = symbolic_inputs(spec), constants_undefined(design.module)
    warning = unused(design.module, inputs)
    for line in warning:
        (progress or (lambda _: None))(LastingLine(line))
    constants = [*inputs.flat(), *undefined]
    run = Compiled(design.module.outputs["d"], constants)
    names = [str(x) for x in constants]
    notes = (*design.told, *warning)
    return DesignUnit(shape, design.module.name, run, names, len(undefined), design, notes)
