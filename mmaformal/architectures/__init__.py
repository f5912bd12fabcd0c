"""The architectures, by name."""

from mmaformal.architectures import nvidia
from mmaformal.architectures.base import Architecture, ArchitectureTable, UnknownInstructionError

ARCHITECTURES = ArchitectureTable(
    {
        "volta": nvidia.volta,
        "turing": nvidia.turing,
        "ampere": nvidia.ampere,
        "ada": nvidia.ada,
        "hopper": nvidia.hopper,
        "blackwell": nvidia.blackwell,
        "rtx_blackwell": nvidia.rtx_blackwell,
    }
)

__all__ = ["ARCHITECTURES", "Architecture", "ArchitectureTable", "UnknownInstructionError"]
