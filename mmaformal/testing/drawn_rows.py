"""Inputs of a unit to test with: diverse, and such that something happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.codes import is_finite, one_nan
from mmaformal.cases.generate import DISTRIBUTIONS, Distribution, generate
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import quick_results
from mmaformal.display import ShortRepr, counted
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import Format, fp64
from mmaformal.gemm import rounded_codes
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.recordings.schema import meta_of_unit
from mmaformal.recordings.write import replacing, write_rows
from mmaformal.spec import DotAdd
from mmaformal.testing.ties import tied

Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]
RowKind = Literal["any", "ties", "subnormal", "special"]
Where = Literal["differ", "agree"]

#: Drawn at a time, and in vain one after the other, before it is given up.
_BATCH, _IN_VAIN = 4096, 50
_DISTRIBUTIONS: dict[RowKind, tuple[Distribution, ...]] = {
    "any": (*DISTRIBUTIONS, "edge", "tiny", "subnormal", "cancel"),
    "subnormal": ("subnormal", "tiny", "least", "opposite"),
    "special": ("special", "bits", "largest"),
}


@dataclass(frozen=True, repr=False)
class DrawnRows(ShortRepr):
    """n inputs of one dot product-add each, as codes, and what each unit gives."""

    instructions: tuple[Instruction, ...]  #: that all take them; the first is the one they were asked of
    rows: Rows
    d: tuple[NDArray[np.uint64], ...]  #: of each instruction

    def __len__(self) -> int:
        return len(self.rows.c)

    def __str__(self) -> str:
        units = ", ".join(i.label for i in self.instructions)
        return f"{counted(len(self), 'input')} of {counted(self.instructions[0].k, 'product')}, for {units}"

    def codes(self) -> dict[str, NDArray[Any]]:
        """a (n, K), b (n, K), c (n,), d (n,) of the first unit, and scales where it has them: bit patterns."""
        i, rows = self.instructions[0], self.rows
        found = {
            "a": rows.a.astype(i.a_format.word),
            "b": rows.b.astype(i.b_format.word),
            "c": rows.c.astype(i.c_format.word),
            "d": self.d[0].astype(i.d_format.word),
        }
        if (scale := i.spec.scale_format) is not None:
            found |= {name: getattr(rows, name).astype(scale.word) for name in ("scale_a", "scale_b")}
        return found

    def numpy(self) -> dict[str, NDArray[Any]]:
        """Returns the inputs as floats of the formats' types; bit patterns of a format that NumPy has no type for."""
        return {
            name: codes if (dtype := self._format(name).dtype) is None else codes.view(dtype)
            for name, codes in self.codes().items()
        }

    def torch(self) -> dict[str, Matrix]:
        """Returns tensors of torch's types; bit patterns (uint8, int16, …) of a format that torch has none for."""
        torch = import_module("torch")
        found = {}
        for name, codes in self.codes().items():
            own = _TORCH.get(self._format(name).name)
            signed = codes.view(np.uint8 if codes.itemsize == 1 else f"i{codes.itemsize}")
            tensor = torch.from_numpy(np.ascontiguousarray(signed))
            found[name] = tensor if own is None else tensor.view(getattr(torch, own))
        return found

    def matrices(self) -> dict[str, NDArray[Any]]:
        """A (n×K), B (K×n) and C (n×n), floats where there is a type: the inputs stand on D's diagonal."""
        x = self.numpy()
        C = np.zeros((len(self), len(self)), x["c"].dtype)
        np.fill_diagonal(C.view(self._format("c").word), x["c"].view(self._format("c").word))
        return {"A": x["a"], "B": np.ascontiguousarray(x["b"].T), "C": C}

    def save(self, path: str | Path) -> None:
        """Write them, d of the first unit among them, whole or not at all.

        `.npz`, `.parquet`, `.csv` and `.safetensors`, whose tensors are of their types, are recordings, which
        `mmaformal check` reads.
        Raises ValueError for another suffix, and for a recording of an instruction that is in no table.
        """
        path, i = Path(path), self.instructions[0]
        if path.suffix.lower() != ".safetensors":
            write_rows(i, self.codes(), path, {"source": "mmaformal.testing.inputs"})
            return
        numpy = import_module("safetensors.numpy")
        codes = self.codes()
        known = {
            name: x if self._format(name).name in _SAVED else codes[name] for name, x in self.numpy().items()
        }
        meta = {name: self._format(name).name for name in known}
        told = {name: str(value) for name, value in meta_of_unit(i).items()} | {"formats": json.dumps(meta)}
        with replacing(path) as new:
            new.write_bytes(numpy.save({name: np.ascontiguousarray(x) for name, x in known.items()}, told))

    def _format(self, name: str) -> Format:
        return self.instructions[0].format_of(name)


#: Types of torch, by our formats.
_TORCH = {
    "fp64": "float64",
    "fp32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "ue8m0": "float8_e8m0fnu",
}
#: Formats whose types safetensors writes from NumPy.
_SAVED = ("fp64", "fp32", "tf32", "bf16", "fp16")


def inputs(
    X: Instruction | str,
    Y: Instruction | str | Sequence[Instruction | str] = (),
    n: int = 1000,
    *,
    kind: RowKind | Draw = "any",
    where: Where | None = None,
    seed: int = 0,
) -> DrawnRows:
    """Return n different inputs of X, and what X and the others, Y, give for them.

    where: "differ", the default where there is a Y: X and some Y give another number (all NaNs are one); "agree": all
    of them give the same number, which is finite and not zero.

    kind: "any", inputs of all the ways in which something can happen (`mmaformal/cases/generate.py`); "ties", whose
    exact sum lies halfway between two neighbours of d's format; "subnormal", an operand or a result is; "special",
    infinities, NaNs and what overflows.  Or a function of a generator and a shape that draws floats, which are rounded
    to the formats: `lambda rng, shape: rng.standard_normal(shape)`.  Then c is +0.

    The same seed gives the same inputs.  Raises ValueError for units of different types or K, and where some thousands
    of drawn inputs have none of what was asked.
    """
    units = [instruction_meant(each) for each in (X, *((Y,) if isinstance(Y, (str, Instruction)) else Y))]
    first = units[0]
    for each in units[1:]:
        if (each.spec.types, each.k, each.spec.scale_block) != (
            first.spec.types,
            first.k,
            first.spec.scale_block,
        ):
            raise ValueError(
                f"{first.label} ({first.spec.types}, K = {first.k}) and {each.label} ({each.spec.types}, K = {each.k}) "
                "do not take the same inputs"
            )
    if n < 1:
        raise ValueError(f"n is {n}; it counts from 1")
    where = where or ("differ" if len(units) > 1 else None)
    if where not in (None, *get_args(Where)):
        raise ValueError(f"where is one of {', '.join(get_args(Where))}, not {where!r}")
    if where is not None and len(units) < 2:
        raise ValueError(f"where={where!r} is about several units: name another")
    kept, have, vain = list[Rows](), 0, 0
    for drawn in _drawn(first.spec, kind, seed):
        new = _different(_chosen(drawn, units, kind, where), kept)
        kept.append(new.at(slice(0, n - have)))
        have, vain = have + len(kept[-1].c), 0 if len(new.c) else vain + 1
        if have >= n:
            break
        if vain == _IN_VAIN:
            raise ValueError(_too_few(units, n, have, where))
    rows = Rows.join(kept)
    return DrawnRows(tuple(units), rows, tuple(quick_results(each.spec, rows) for each in units))


def _drawn(spec: DotAdd, kind: RowKind | Draw, seed: int) -> Iterator[Rows]:
    """Draw inputs, a batch at a time, without an end."""
    if not callable(kind) and kind not in (*_DISTRIBUTIONS, "ties"):
        raise ValueError(
            f"kind is one of {', '.join([*_DISTRIBUTIONS, 'ties'])}, or a function, not {kind!r}"
        )
    rng = np.random.default_rng(seed)
    for batch in count():
        if callable(kind):
            yield _of_distribution(spec, kind, rng)
        elif kind == "ties":
            yield tied(spec, _BATCH, rng)
        else:
            drawn = generate(spec, _BATCH, seed + 1_000_003 * batch, _DISTRIBUTIONS[kind])
            yield drawn.at(rng.permutation(_BATCH))


def _of_distribution(spec: DotAdd, draw: Draw, rng: np.random.Generator) -> Rows:
    if spec.scale_format is not None:
        raise ValueError(
            "a distribution of numbers says nothing of block scales: mmaformal.quantise makes both"
        )
    sides = []
    for fmt in (spec.a_format, spec.b_format):
        x = np.asarray(draw(rng, (_BATCH, spec.k)), np.float64)
        if x.shape != (_BATCH, spec.k):
            raise ValueError(f"the distribution drew an array of shape {x.shape}, not {(_BATCH, spec.k)}")
        sides.append(rounded_codes(x, fp64, fmt, quiet_nan(fmt)).astype(np.uint64))
    none = np.zeros((_BATCH, 0), np.uint64)
    return Rows(sides[0], sides[1], np.zeros(_BATCH, np.uint64), none, none)


def _chosen(rows: Rows, units: Sequence[Instruction], kind: RowKind | Draw, where: Where | None) -> Rows:
    """Those that have what was asked."""
    keep = np.ones(len(rows.c), bool)
    d = [one_nan(quick_results(each.spec, rows), each.d_format) for each in units]
    fmt = units[0].d_format
    if where is not None:
        other = np.logical_or.reduce([x != d[0] for x in d[1:]])
        number = is_finite(d[0], fmt) & ((d[0] & np.uint64(fmt.sign_mask - 1)) != 0)
        keep = other if where == "differ" else ~other & number
    if kind == "subnormal":
        spec = units[0].spec
        sides = [_subnormal(x, f) for x, f in ((rows.a, spec.a_format), (rows.b, spec.b_format))]
        any_ = np.logical_or.reduce([side.any(axis=1) for side in sides])
        keep &= any_ | _subnormal(rows.c, spec.c_format) | _subnormal(d[0], fmt)
    return rows.at(keep)


def _subnormal(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    magnitude = codes & np.uint64(fmt.codes - 1) & ~np.uint64(fmt.sign_mask)
    least = np.uint64(1 << (fmt.fraction_bits + fmt.ignored_low_bits))
    return np.asarray((magnitude > 0) & (magnitude < least))


def _different(rows: Rows, kept: Sequence[Rows]) -> Rows:
    """Those that are not there yet, each once."""
    seen = {_key(each, row) for each in kept for row in range(len(each.c))}
    fresh = []
    for row in range(len(rows.c)):
        if (key := _key(rows, row)) not in seen:
            seen.add(key)
            fresh.append(row)
    return rows.at(np.array(fresh, np.intp))


def _key(rows: Rows, row: int) -> bytes:
    sides = (rows.a, rows.b, rows.c[:, None], rows.scale_a, rows.scale_b)
    return b"".join(side[row].tobytes() for side in sides)


def _too_few(units: Sequence[Instruction], n: int, have: int, where: Where | None) -> str:
    what = "" if where is None else f" on which the units {where}"
    arch = [f"{each.architecture} {each.name}" for each in units]
    ask = f"; `mmaformal diff` searches or proves: {arch[0]}, {arch[1]}" if where == "differ" else ""
    return f"{have} of {n} inputs{what} found, and then none of {_IN_VAIN * _BATCH:,} drawn{ask}"
