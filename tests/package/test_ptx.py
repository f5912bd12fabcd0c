"""PTX names: what the assembler takes is read, what it refuses is refused.

Both lists were put to ptxas of CUDA 13.5 (PTX ISA 9.0 and 9.1, targets sm_75 to sm_120a) with operands of the right
number and kind.  Sizes of tcgen05.mma, which are in a descriptor that ptxas does not look into, are those of the
PTX ISA's table "Various combinations of .kind and shapes"; the names with sizes and types are docs/semantics.md §6's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded import meta, recorded, save

from mmaformal import ARCHITECTURES, ada, ampere, blackwell, hopper, rtx_blackwell, turing, volta
from mmaformal.architectures import Architecture, UnknownInstructionError
from mmaformal.architectures.ptx import short_name
from mmaformal.mma import MMAS
from mmaformal.recordings import RecordingError, read
from mmaformal.recordings.names import look_up

EXISTS = [
    (ampere, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32"),
    (ampere, "mma.sync.aligned.row.col.m16n8k16.f32.f16.f16.f32", "HMMA.16816.F32"),
    (ampere, "mma.aligned.sync.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32"),
    (volta, "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16", "HMMA.884.F32.F16"),
    (volta, "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32", "HMMA.884.F32.F32"),
    (turing, "mma.sync.aligned.m8n8k4.col.col.f32.f16.f16.f32", "HMMA.884.F32.F32"),
    (ada, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16", "QMMA.16832.F16.E4M3.E5M2"),
    (hopper, "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "DMMA.16x8x8"),
    (hopper, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "HGMMA.64x8x16.F32"),
    (hopper, "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2", "QGMMA.64x8x32.F32.E4M3.E5M2"),
    (
        rtx_blackwell,
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32",
        "QMMA.16832.F32.E4M3.E4M3",
    ),
    (
        rtx_blackwell,
        "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e2m1.f32",
        "QMMA.16832.F32.E4M3.E2M1",
    ),
    *(
        (
            rtx_blackwell,
            f"mma.sync.aligned.{scaling}.f32.e5m2.e3m2.f32.ue8m0",
            "QMMA.SF.16832.F32.E5M2.E3M2.E8",
        )
        for scaling in (
            "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X",
            "m16n8k32.row.col.kind::mxf8f6f4.block_scale",  # "defaults to 1X"
            "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col",
            "kind::mxf8f6f4.block_scale.m16n8k32.row.col",
        )
    ),
    *(
        (
            rtx_blackwell,
            f"mma.sync.aligned.{scaling}.f32.e2m1.e2m1.f32.ue8m0",
            "OMMA.SF.16864.F32.E2M1.E2M1.E8",
        )
        for scaling in (
            "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X",
            "m16n8k64.row.col.kind::mxf4.block_scale",  # "defaults to 2X"
            "kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col",
            "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X",
        )
    ),
    (
        rtx_blackwell,
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
        "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
    ),
    (  # since PTX ISA 9.1
        rtx_blackwell,
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
        "OMMA.SF.16864.F32.E2M1.E2M1.E8.4X",
    ),
    (blackwell, "tcgen05.mma.cta_group::1.m64n8k16.kind::f16.f32.f16.f16", "UTCHMMA.F32"),
    (blackwell, "tcgen05.mma.cta_group::1.m128n8k16.kind::f16.f32.f16.f16", "UTCHMMA.F32"),
    (blackwell, "tcgen05.mma.cta_group::2.m128n16k16.kind::f16.f32.f16.f16", "UTCHMMA.F32"),
    (blackwell, "tcgen05.mma.cta_group::2.m256n256k16.kind::f16.f32.f16.f16", "UTCHMMA.F32"),
    (blackwell, "tcgen05.mma.m256n48k8.kind::tf32.f32.tf32.tf32", "UTCHMMA.F32.TF32"),
    (blackwell, "tcgen05.mma.kind::f8f6f4.cta_group::2.m256n16k32.f32.e4m3.e2m1", "UTCQMMA.F32.E4M3.E2M1"),
    *(
        (
            blackwell,
            f"tcgen05.mma.cta_group::{pair}.{size}k32.kind::mxf8f6f4.{scaling}.f32.e4m3.e3m2.ue8m0",
            "UTCQMMA.SF.F32.E4M3.E3M2.E8",
        )
        for pair, size in ((1, "m128n8"), (2, "m128n16"), (2, "m256n32"))
        for scaling in ("block_scale", "block_scale.scale_vec::1X", "block_scale.block32", "block32")
    ),
    *(
        (
            blackwell,
            f"tcgen05.mma.cta_group::2.m256n16k64.kind::mxf4nvf4.block_scale.{vector}.f32.e2m1.e2m1.ue4m3",
            "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X",
        )
        for vector in ("scale_vec::4X", "block16")
    ),
]

MXF8, MXF4 = "f32.e5m2.e3m2.f32.ue8m0", "f32.e2m1.e2m1.f32.ue8m0"
DOES_NOT = [
    # layouts
    "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
    "mma.m16n8k16.col.row.f32.f16.f16.f32",
    "mma.m16n8k16.row.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.col.row.f64.f64.f64.f64",
    # half of what belongs together, or twice
    "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "wgmma.sync.aligned.m64n8k16.f32.f16.f16",
    "wgmma.mma_async.m64n8k16.f32.f16.f16",
    "tcgen05.m64n8k16.kind::f16.f32.f16.f16",
    # numbers
    "mma.sync.aligned.m016n8k16.row.col.f32.f16.f16.f32",
    "wgmma.mma_async.sync.aligned.m64n08k16.f32.f16.f16",
    "wgmma.m64n264k16.f32.f16.f16",
    "wgmma.m64n12k16.f32.f16.f16",
    # types
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32",
    "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e2m1.f32",
    # block scales
    f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::2X.{MXF8}",
    f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::4X.{MXF8}",
    f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.scale_vec::1X.{MXF8}",
    f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.block32.{MXF8}",
    f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.{MXF8}",
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e5m2.e3m2.f32.ue4m3",
    f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::1X.{MXF4}",
    f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.{MXF4}",
    f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.{MXF4}",
    f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::1X.{MXF4}",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.block_scale.f32.e4m3.e4m3.f32",
    # sizes of tcgen05
    "tcgen05.mma.cta_group::1.m256n16k16.kind::f16.f32.f16.f16",
    "tcgen05.mma.cta_group::2.m64n16k16.kind::f16.f32.f16.f16",
    "tcgen05.mma.cta_group::2.m128n8k16.kind::f16.f32.f16.f16",
    "tcgen05.mma.m256n24k16.kind::f16.f32.f16.f16",
    "tcgen05.mma.cta_group::3.m128n16k16.kind::f16.f32.f16.f16",
    "tcgen05.mma.m512n16k16.kind::f16.f32.f16.f16",
    "tcgen05.mma.m64n8k32.kind::mxf8f6f4.block32.f32.e4m3.e3m2.ue8m0",
    "tcgen05.mma.m128n8k64.kind::mxf4.block16.f32.e2m1.e2m1.ue8m0",
    "tcgen05.mma.m128n8k64.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.ue8m0",
    # SASS
    "HGMMA.64x008x16.F32",
    "HGMMA.064x8x16.F32",
]


@pytest.mark.parametrize(("architecture", "name", "instruction"), EXISTS)
def test_what_ptx_has_is_read(architecture: Architecture, name: str, instruction: str) -> None:
    assert architecture[name].name == instruction
    assert architecture[name.upper()].name == instruction
    assert look_up(architecture, name) == architecture[name]


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_ptx_does_not_have_is_refused(name: str) -> None:
    for architecture in ARCHITECTURES.values():
        assert name not in architecture
        with pytest.raises(UnknownInstructionError):
            architecture[name]
    if name.startswith(("HGMMA", "wgmma", "tcgen05")) or short_name(name) is None:
        with pytest.raises(UnknownInstructionError):
            look_up(blackwell, name)  # nor is it "not modelled yet"


def test_every_alias_is_its_own_short_spelling() -> None:
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            for alias in (instruction.name, *instruction.aliases):
                if alias.startswith(("mma.", "wgmma.", "tcgen05.")):
                    assert short_name(alias) == alias


def test_every_mma_that_a_program_is_written_for_is_read() -> None:
    for mma in MMAS:
        assert short_name(mma.ptx) is not None, mma.ptx


# ---- UTC… as SASS has it: types and sizes are in a descriptor ------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "count", "first"),
    [
        ("UTCHMMA", 4, "UTCHMMA.F32.TF32"),
        ("UTCHMMA.2CTA", 4, "UTCHMMA.F32.TF32"),
        ("UTCQMMA", 75, "UTCQMMA.F32.E4M3.E4M3"),
        ("UTCOMMA", 1, "UTCOMMA.F32.E2M1.E2M1.E8"),
        ("UTCOMMA.4X", 2, "UTCOMMA.F32.E2M1.E2M1.E8.4X"),
        ("utcomma.2cta.4x", 2, "UTCOMMA.F32.E2M1.E2M1.E8.4X"),
        ("UTCHMMA.4X", 0, ""),
        ("UTCHMMA.F32", 0, ""),
        ("HMMA", 0, ""),
    ],
)
def test_a_bare_opcode(opcode: str, count: int, first: str) -> None:
    found = blackwell.of_opcode(opcode)
    assert len(found) == count
    if found:
        assert found[0].name == first
        with pytest.raises(UnknownInstructionError, match=f"takes its types from a descriptor.*{first}"):
            blackwell[opcode]


def test_a_recording_of_a_bare_opcode_has_the_types_in_its_formats(tmp_path: Path) -> None:
    path = tmp_path / "utc.npz"
    for name in ("UTCHMMA.F32", "UTCHMMA.F16", "UTCHMMA.F32.BF16", "UTCQMMA.F32.E2M1.E2M1"):
        instruction = blackwell[name]
        arrays = recorded(instruction, rows=5)
        arrays["meta"] = meta(instruction, instruction.k) | {"instruction": name.split(".")[0]}
        assert read(save(path, arrays)).instruction == instruction
    arrays["meta"] = meta(instruction, instruction.k) | {"instruction": "UTCHMMA"}
    with pytest.raises(
        RecordingError, match=r"do not say which it is: name it with its types, as in UTCHMMA\."
    ):
        read(save(path, arrays))
