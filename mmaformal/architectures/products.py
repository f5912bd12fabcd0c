"""The names of GPUs and processors, and of compilers' targets, each with the architecture whose model it has.

A model is of the devices that were measured (`Architecture.gpus`).  That another device of the same generation computes
alike is taken from its generation, which the source gives, and is not measured.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mmaformal.display import ShortRepr

_NVIDIA = "NVIDIA, CUDA GPU Compute Capability"
_AMD = "AMD, ROCm, GPU specifications"
_INTEL = "Intel, product specifications"
_ARM = "Arm, Technical Reference Manuals"
_IBM = "IBM, POWER10 Processor User's Manual"
_AWS = "AWS, Graviton Technical Guide"
_APPLE = "corsix/amx"


@dataclass(frozen=True, repr=False)
class GenerationDevices(ShortRepr):
    """Devices of one generation."""

    architecture: str
    names: tuple[str, ...]  #: as their makers write them
    source: str  #: which says of what generation they are


def _numbered(prefix: str, *numbers: int | str) -> tuple[str, ...]:
    return tuple(f"{prefix} {number}" for number in numbers)


PRODUCTS = (
    GenerationDevices("volta", ("V100", "V100S", "TITAN V", "GV100", "sm_70"), _NVIDIA),
    GenerationDevices(
        "turing",
        (
            "T4",
            *_numbered("RTX", 2060, 2070, 2080),
            "TITAN RTX",
            *_numbered("Quadro RTX", 4000, 5000, 6000, 8000),
        ),
        _NVIDIA,
    ),
    GenerationDevices("turing", ("sm_75",), _NVIDIA),
    GenerationDevices("ampere", ("A100", "A800", "A30", "sm_80"), _NVIDIA),
    GenerationDevices("ampere", ("A2", "A10", "A10G", "A16", "A40", "sm_86"), _NVIDIA),
    GenerationDevices(
        "ampere", _numbered("RTX", 3050, 3060, 3070, 3080, 3090, "A2000", "A4000", "A5000", "A6000"), _NVIDIA
    ),
    GenerationDevices(
        "ada", ("L4", "L40", "L40S", *_numbered("RTX", 4050, 4060, 4070, 4080, 4090), "sm_89"), _NVIDIA
    ),
    GenerationDevices("ada", tuple(f"RTX {n} Ada" for n in (1000, 2000, 4000, 5000, 6000)), _NVIDIA),
    GenerationDevices("hopper", ("H100", "H200", "H800", "H20", "GH200", "sm_90", "sm_90a"), _NVIDIA),
    GenerationDevices("blackwell", ("B100", "B200", "GB200", "sm_100", "sm_100a", "sm_100f"), _NVIDIA),
    GenerationDevices("rtx_blackwell", _numbered("RTX", 5050, 5060, 5070, 5080, 5090), _NVIDIA),
    GenerationDevices("rtx_blackwell", _numbered("RTX PRO", 4000, 4500, 5000, 6000), _NVIDIA),
    GenerationDevices("rtx_blackwell", ("sm_120", "sm_120a", "sm_120f"), _NVIDIA),
    GenerationDevices("cdna1", ("MI100", "gfx908"), _AMD),
    GenerationDevices("cdna2", ("MI210", "MI250", "MI250X", "gfx90a"), _AMD),
    GenerationDevices("cdna3", ("MI300A", "MI300X", "MI325X", "gfx942"), _AMD),
    GenerationDevices("sapphire_rapids", ("Sapphire Rapids", "SPR", "Xeon Max"), _INTEL),
    GenerationDevices("sapphire_rapids", ("Emerald Rapids", "EMR", "Granite Rapids", "GNR"), _INTEL),
    GenerationDevices(
        "sapphire_rapids", _numbered("Xeon", 8480, 8490, 8468, 8462, 8558, 8592, "6980P", "6972P"), _INTEL
    ),
    GenerationDevices("armv8_6", ("Neoverse V1", "Neoverse V2", "Neoverse N2"), _ARM),
    GenerationDevices("armv8_6", ("Graviton3", "Graviton4"), _AWS),
    GenerationDevices("armv8_6", ("Grace",), "NVIDIA, Grace CPU Superchip"),
    GenerationDevices("riscv", ("riscv_rvbna", "RVBNA", "Spike"), "RISC-V ISA; Spike"),
    GenerationDevices("sme", ("armv9_sme", "FEAT_SME"), "Arm Architecture Reference Manual"),
    GenerationDevices("power10", ("Power10", "IBM Power E1080", "IBM Power S1022"), _IBM),
    GenerationDevices("apple_amx", ("M1", "M2", "M3", "M4"), _APPLE),
)

#: Devices that are asked about and have no model, and why.
NOT_MODELLED = {
    "P100": "Pascal (sm_60) has no tensor cores",
    "B300": "Blackwell Ultra (sm_103) is not modelled",
    "GB300": "Blackwell Ultra (sm_103) is not modelled",
    "sm_103": "Blackwell Ultra is not modelled",
    "GB10": "sm_121 is not modelled",
    "sm_121": "it is not modelled",
    **dict.fromkeys(
        ("MI350X", "MI355X", "gfx950"),
        "of CDNA4 (gfx950) only layouts are published (docs/specified.md)",
    ),
    **dict.fromkeys(
        ("Strix Halo", "gfx1151", "gfx1150", "gfx1100"),
        "of RDNA3 and RDNA3.5 the adder is described, not all of it: docs/specified.md has the questions",
    ),
    **dict.fromkeys(
        ("Wormhole", "Blackhole"),
        "of Tenstorrent's matrix units the products are published, not the order of the sum: docs/specified.md",
    ),
    "TPU": "Google's TPUs are not modelled",
    "Trainium": "AWS Trainium is not modelled",
    "Gaudi": "Intel Gaudi is not modelled",
}

#: What drivers and shops write around a name: `NVIDIA A100-SXM4-80GB`, `Intel(R) Xeon(R) Platinum 8480+`.
_AROUND = re.compile(
    r"nvidia|geforce|quadro|tesla|amd|instinct|intel|apple|aws|arm|azure|platinum|gold|silver|ti|super|max|pro|ultra"
    r"|laptop|gpu|cpu|processor|generation|edition|workstation|server|blackwell|sxm\d*|pcie|nvl|oam|hbm\d*e?|\d+gb"
)
#: words of those that a name can do without only where it is not one of its own
_OWN = ("pro", "max", "quadro")


def _words(name: str) -> list[str]:
    text = re.sub(r"\((r|tm|c)\)|[+]", " ", name.lower())
    return [word for word in re.split(r"[\s_\-]+", text) if word]


def _key(name: str) -> str:
    return "".join(_words(name))


_BY_KEY = {_key(name): each.architecture for each in PRODUCTS for name in each.names}
_NONE_BY_KEY = {_key(name): why for name, why in NOT_MODELLED.items()}


def _keys(name: str) -> list[str]:
    """What a name may be looked up by: as it is, then without the words around it."""
    words = _words(name)
    kept = [word for word in words if not _AROUND.fullmatch(word)]
    own = [word for word in words if not _AROUND.fullmatch(word) or word in _OWN]
    return ["".join(words), "".join(own), "".join(kept)]


def architecture_of(name: str) -> str | None:
    """The name of the architecture that a device has, in any case and spelling; None if it is not known."""
    return next((_BY_KEY[key] for key in _keys(name) if key in _BY_KEY), None)


def why_not_modelled(name: str) -> str | None:
    """Why a device that is known has no model; None of others."""
    return next((_NONE_BY_KEY[key] for key in _keys(name) if key in _NONE_BY_KEY), None)


def names_of(architecture: str) -> tuple[str, ...]:
    """The devices of an architecture."""
    return tuple(name for each in PRODUCTS if each.architecture == architecture for name in each.names)


__all__ = ["NOT_MODELLED", "PRODUCTS", "GenerationDevices", "architecture_of", "names_of", "why_not_modelled"]
