"""`mmaformal diagnose-gemm`: which structure of which instruction makes a recorded product of matrices."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import RecallKey, contents
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, answered
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.queries.diagnose_gemm import GemmDiagnosis


@click.command("diagnose-gemm")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=options.FILE)
@click.option(
    "--arch", type=options.ARCHITECTURE, metavar="A", help="Try the instructions of this architecture alone."
)
@options.model
@solving(300.0, verbose=False, smtlib=False)
def diagnose_gemm(
    files: tuple[Path, ...],
    arch: Architecture | None,
    request: Solving,
) -> int:
    """Find which instruction, in which structure, makes products of matrices as a library did.

    Each FILE has A, B and D: an .npz of bit patterns with meta (a_format, b_format, d_format), or of floats; a
    .safetensors or .pt of those tensors; or a folder with A.npy, B.npy and D.npy of floats. Every
    instruction that takes the types is tried: as a chain over K, in blocks of every size, in lanes.

    Exit status: 0 if every product is explained, 1 if one is not, 2 if a file could not be read, 3 if the time was up
    before one was.
    """
    from mmaformal.queries.diagnose_gemm import diagnose_gemm as diagnose
    from mmaformal.recordings.products import read_product

    instructions = None if arch is None else list(arch)
    tried = tuple(i for each in ARCHITECTURES.values() for i in each)
    found = []
    for path in files:

        def ask(path: Path = path) -> _Diagnosed:
            with Status() as status:
                recorded = read_product(path)
                answer = diagnose(
                    recorded.A,
                    recorded.B,
                    recorded.D,
                    a_format=recorded.a_format,
                    b_format=recorded.b_format,
                    d_format=recorded.d_format,
                    instructions=instructions,
                    **request.limits,
                    progress=lambda line: status.show(f"{path.name}: {line}"),
                )
            return _Diagnosed(path, recorded.origin, answer)

        words = f"--arch {arch.name if arch else None}", str(path), *contents([path]), *request.solvers
        key = RecallKey("diagnose-gemm", tried, *words)
        answer = request.recall(key, ask, whole=lambda found: found.answer.complete, improvable=True)
        found.append(answer.to_json())
        if not request.as_json:
            answered(str(answer), SETTLED)
    missed = [each for each in found if not each["explained"]]
    code = SETTLED if not missed else REFUTED if all(each["complete"] for each in missed) else UNKNOWN
    return answered(json.dumps(found, indent=2), code) if request.as_json else code


@dataclass(frozen=True)
class _Diagnosed:
    """The diagnosis of a file."""

    path: Path
    origin: str
    answer: GemmDiagnosis

    def __str__(self) -> str:
        return _text(self.path, self.origin, str(self.answer))

    def to_json(self) -> dict[str, object]:
        return {"file": str(self.path), **self.answer.to_json()}


def _text(path: Path, origin: str, answer: str) -> str:
    return "\n".join([f"{path.name}{f' ({origin})' if origin else ''}", *_indented(answer.splitlines())])


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
