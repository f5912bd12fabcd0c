"""The architectures, by name."""

from mmaformal.architectures import amd, apple, arm, datapaths, e9s12, emulations, intel, nvidia, power, riscv
from mmaformal.architectures.base import (
    Architecture,
    ArchitectureTable,
    Revision,
    UnknownArchitectureError,
    UnknownInstructionError,
    UnknownRevisionError,
)

ARCHITECTURES = ArchitectureTable(
    {
        "volta": nvidia.volta,
        "turing": nvidia.turing,
        "ampere": nvidia.ampere,
        "ada": nvidia.ada,
        "hopper": nvidia.hopper,
        "blackwell": nvidia.blackwell,
        "rtx_blackwell": nvidia.rtx_blackwell,
        "cdna1": amd.cdna1,
        "cdna2": amd.cdna2,
        "cdna3": amd.cdna3,
        "sapphire_rapids": intel.sapphire_rapids,
        "armv8_6": arm.armv8_6,
        "sme": arm.sme,
        "power10": power.power10,
        "apple_amx": apple.apple_amx,
        "riscv": riscv.riscv,
        "e9s12": e9s12.e9s12,
    },
    unlisted={
        "armv9_ebf16": arm.armv9_ebf16,
        "armv9_fp8": arm.armv9_fp8,
        "amx_fp16": intel.amx_fp16,
        "diamond_rapids": intel.diamond_rapids,
        datapaths.NAME: datapaths.datapath,
        emulations.NAME: emulations.emulation,
    },
)

#: Units that a text defines and nobody has run: found by their names, and not listed.
SPECIFIED_UNITS = ("armv9_ebf16", "armv9_fp8", "amx_fp16", "diamond_rapids")

#: Designs on paper: no library runs on them.
ON_PAPER = frozenset(("e9s12",))

__all__ = [
    "ARCHITECTURES",
    "ON_PAPER",
    "SPECIFIED_UNITS",
    "Architecture",
    "ArchitectureTable",
    "Revision",
    "UnknownArchitectureError",
    "UnknownInstructionError",
    "UnknownRevisionError",
]
