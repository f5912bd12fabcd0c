"""How long `diagnose` takes to find the units of an architecture in rows of them, the architecture left out.

    python benchmarks/diagnosed.py --without power10 --without sme --without riscv [--rows 3000] [RECORDING …]

A recording is told nothing but its types; without one, each instruction of these architectures gives rows of its own.
Told of each: whether its model is in the first class (`first`), in another (`later`), or explains no row (`missing`);
and seconds, and processor time of this process.  What explains every row and is not told apart is one class.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mmaformal import ARCHITECTURES, diagnose
from mmaformal.cases.generate import generate
from mmaformal.cases.run import results
from mmaformal.instruction import Instruction
from mmaformal.recordings.read import read
from mmaformal.recordings.write import write_rows
from mmaformal.spec import DotAdd


def place_of(model: DotAdd, path: Path, timeout: float) -> str:
    """Returns where `diagnose` has a model, with the times."""
    start, work = time.perf_counter(), time.process_time()
    found = diagnose(path, timeout=timeout, jobs=1)
    seconds, busy = time.perf_counter() - start, time.process_time() - work
    places = [n for n, each in enumerate(found.classes) if model in each.members]
    where = "missing" if not places else "later" if places[0] else "first"
    return (
        f"{where}, {found.verdict}, {len(found.classes)} classes, {seconds:.1f} s, {busy:.1f} s of processor"
    )


def recorded(paths: list[Path]) -> Iterator[tuple[str, DotAdd, Path]]:
    for path in paths:
        yield path.name, read(path).instruction.spec, path


def made(instructions: list[Instruction], rows: int, folder: Path) -> Iterator[tuple[str, DotAdd, Path]]:
    for i in instructions:
        path, x = folder / f"{i.architecture}-{i.name}.npz", generate(i.spec, rows).codes
        a, b = (np.stack(side, axis=1) for side in (x.a, x.b))
        write_rows(
            i, {"a": a, "b": b, "c": x.c, "d": results(i.spec, x)}, path, {"note": "made by the model"}
        )
        yield i.label, i.spec, path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recording", nargs="*", type=Path)
    parser.add_argument("--without", action="append", default=[], metavar="ARCH")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--timeout", type=float, default=90.0)
    args = parser.parse_args()
    gone = [ARCHITECTURES[name] for name in args.without]
    with tempfile.TemporaryDirectory() as folder:
        every = [i for architecture in gone for i in architecture]
        sets = recorded(args.recording) if args.recording else made(every, args.rows, Path(folder))
        cases = list(sets)
        for architecture in gone:
            ARCHITECTURES.remove(architecture)
        for name, model, path in cases:
            print(f"{name}: {place_of(model, path, args.timeout)}", flush=True)


if __name__ == "__main__":
    main()
