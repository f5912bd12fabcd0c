"""`mmaformal explain`: from the files of D, A and B to the unit, the structure, and the first row that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, answered, as_options
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.given_scales import ScaleLayout

#: The exit status of each verdict.
_STATUS = {"explained": SETTLED, "wrong": REFUTED, "none": REFUTED, "unknown": UNKNOWN}


@click.command("explain")
@click.argument("files", nargs=-1, required=True, metavar="D A B", type=options.FILE)
@click.option("--c", "c", type=options.FILE, metavar="FILE", help="C, which A·B is added to.")
@options.ran_on
@options.format_options("a", "b", "c", "d")
@options.scales
@click.option("--every-block", is_flag=True, help="Try blocks of every size, not the usual structures alone.")
@click.option(
    "--call",
    nargs=2,
    type=click.IntRange(1),
    metavar="M N",
    help="D is of several calls, of M rows and N columns.",
)
@options.model
@options.timeout(60.0)
@options.json
def explain(
    files: tuple[Path, ...],
    c: Path | None,
    device: Architecture | None,
    against: tuple[Architecture, str] | None,
    a_format: str | None,
    b_format: str | None,
    c_format: str | None,
    d_format: str | None,
    scale_a: Path | None,
    scale_b: Path | None,
    scale_layout: ScaleLayout,
    scale_format: str | None,
    every_block: bool,
    call: tuple[int, int] | None,
    timeout: float,
    as_json: bool,
) -> int:
    """Find which unit, in which structure, made D of A and B, and which elements of D are wrong.

    D, A and B are three files, or one file or folder that has all of them. Read are .npy, .npz, .safetensors, .pt and
    .parquet; FILE::NAME names a tensor of one with several. Of bit patterns, --a-format and so on say what they are;
    of wider floats, what their elements are numbers of. Of fp4, bytes are pairs. Block scales (MX, NVFP4) lie as torch,
    transformer_engine or cuBLAS have them.

    \b
    mmaformal explain D.npy A.npy B.npy --device h100
    mmaformal explain D.npy A.npy B.npy --against h100 HMMA.16816.F32
    mmaformal explain out.pt x.pt w.pt --c bias.pt --d-format bf16
    mmaformal explain out.pt x.pt w.pt --scale-a sx.pt --scale-b sw.pt

    Exit status: 0 if every element is explained, 1 if some are wrong or nothing tried explains D, 2 for wrong use, 3 if
    the time was up before that was settled.
    """
    from mmaformal.queries.explain import explain as find
    from mmaformal.recordings.matrices import read_files

    formats = {"A": a_format, "B": b_format, "C": c_format, "D": d_format}
    matrices = read_files(files, formats, c, (scale_a, scale_b))
    with Status() as status:
        found = find(
            matrices["D"],
            matrices["A"],
            matrices["B"],
            matrices.get("C"),
            **options.where_it_ran(device, against),
            every_block=every_block,
            call=call,
            a_format=formats["A"],
            b_format=formats["B"],
            c_format=formats["C"],
            d_format=formats["D"],
            scale_a=matrices.get("scale_a"),
            scale_b=matrices.get("scale_b"),
            scale_layout=scale_layout,
            scale_format=scale_format,
            timeout=timeout,
            progress=status.show,
        )
    return answered(found.json() if as_json else as_options(str(found)), _STATUS[found.verdict])
