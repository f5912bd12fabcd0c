"""`mmaformal diagnose-gemm`: which structure of which instruction makes a recorded product of matrices."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, answered
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction


@click.command("diagnose-gemm")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
@click.option(
    "--arch", type=options.ARCHITECTURE, metavar="A", help="Try the instructions of this architecture alone."
)
@options.model
@options.timeout(300.0, "for everything")
@options.evidence
@options.json
def diagnose_gemm(
    files: tuple[Path, ...],
    arch: Architecture | None,
    timeout: float,
    evidence: Path | None,
    no_cache: bool,
    as_json: bool,
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

    found, instructions = [], None if arch is None else list(arch)
    for path in files:
        with options.remembering(evidence, no_cache), Status() as status:
            recorded = read_product(path)

            def show(done: int, of: int, last: Instruction, name: str = path.name) -> None:
                status.show(f"{name}: {done} of {of} instructions, {last.label} the last")

            answer = diagnose(
                recorded.A,
                recorded.B,
                recorded.D,
                a_format=recorded.a_format,
                b_format=recorded.b_format,
                d_format=recorded.d_format,
                instructions=instructions,
                timeout=timeout,
                progress=show,
            )
        found.append((path, answer))
        if not as_json:
            answered(_text(path, recorded.origin, str(answer)), SETTLED)
    missed = [answer for _, answer in found if not answer]
    code = SETTLED if not missed else REFUTED if all(answer.complete for answer in missed) else UNKNOWN
    if as_json:
        return answered(json.dumps([{"file": str(p), **a.to_json()} for p, a in found], indent=2), code)
    return code


def _text(path: Path, origin: str, answer: str) -> str:
    return "\n".join([f"{path.name}{f' ({origin})' if origin else ''}", *_indented(answer.splitlines())])


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
