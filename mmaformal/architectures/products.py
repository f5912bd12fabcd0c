"""The names of GPUs and processors, and of compilers' targets, each with the architecture whose model it has.

A model is of the devices that were measured (`Architecture.gpus`).  That another device of the same generation computes
alike is taken from its generation, which the source gives, and is not measured.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
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
    GenerationDevices("volta", ("V100", "V100S", "TITAN V", "GV100", "sm_70", "Xavier", "sm_72"), _NVIDIA),
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
    GenerationDevices("ampere", ("Orin", "sm_87"), _NVIDIA),
    GenerationDevices(
        "ampere", _numbered("RTX", 3050, 3060, 3070, 3080, 3090, "A2000", "A4000", "A5000", "A6000"), _NVIDIA
    ),
    GenerationDevices("ada", ("Ada Lovelace", "L4", "L20", "L40", "L40S", "sm_89"), _NVIDIA),
    GenerationDevices("ada", _numbered("RTX", 4050, 4060, 4070, 4080, 4090, "4090 D"), _NVIDIA),
    GenerationDevices("ada", tuple(f"RTX {n} Ada" for n in (1000, 2000, 4000, 5000, 6000)), _NVIDIA),
    GenerationDevices(
        "hopper", ("H100", "H200", "H800", "H20", "GH200", "Grace Hopper", "sm_90", "sm_90a"), _NVIDIA
    ),
    GenerationDevices("blackwell", ("B100", "B200", "GB200", "sm_100", "sm_100a", "sm_100f"), _NVIDIA),
    GenerationDevices("rtx_blackwell", _numbered("RTX", 5050, 5060, 5070, 5080, 5090, "5090 D"), _NVIDIA),
    GenerationDevices("rtx_blackwell", _numbered("RTX PRO", 4000, 4500, 5000, 6000), _NVIDIA),
    GenerationDevices("rtx_blackwell", ("sm_120", "sm_120a", "sm_120f"), _NVIDIA),
    GenerationDevices("cdna1", ("MI100", "gfx908"), _AMD),
    GenerationDevices("cdna2", ("MI200", "MI210", "MI250", "MI250X", "gfx90a"), _AMD),
    GenerationDevices(
        "cdna3", ("MI300", "MI300A", "MI300X", "MI308X", "MI325X", "gfx940", "gfx941", "gfx942"), _AMD
    ),
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
    **dict.fromkeys(("P100", "GTX 1080", "sm_60", "sm_61"), "Pascal has no tensor cores"),
    **dict.fromkeys(("GTX 1650", "GTX 1660"), "of Turing these have no tensor cores"),
    **dict.fromkeys(("K80", "M40"), "Kepler and Maxwell have no tensor cores"),
    **dict.fromkeys(("MI50", "MI60", "gfx906"), "Vega (gfx906) has no matrix cores"),
    **dict.fromkeys(("Thor", "sm_101", "sm_110"), "it is not modelled"),
    **dict.fromkeys(
        ("Zen 4", "Genoa"),
        "its VDPBF16PS gave what the model of sapphire_rapids gives, in 2,000,000 random rows",
    ),
    **dict.fromkeys(("Zen 5", "EPYC", "Ryzen", "Turin"), "AMD's AVX512_BF16 is not measured but for Zen 4's"),
    **dict.fromkeys(
        ("Cooper Lake", "Ice Lake"), "it is not measured; VDPBF16PS is modelled of sapphire_rapids"
    ),
    "B300": "Blackwell Ultra (sm_103) is not modelled",
    "GB300": "Blackwell Ultra (sm_103) is not modelled",
    "sm_103": "Blackwell Ultra is not modelled",
    **dict.fromkeys(("GB10", "DGX Spark"), "sm_121 is not modelled"),
    "sm_121": "it is not modelled",
    **dict.fromkeys(
        ("MI350X", "MI355X", "gfx950", "CDNA4"),
        "of CDNA4 (gfx950) only layouts are published (docs/specified.md)",
    ),
    **dict.fromkeys(
        ("Strix Halo", "gfx1151", "gfx1150", "gfx1100", "RDNA3", "RDNA3.5"),
        "of RDNA3 and RDNA3.5 the adder is described, not all of it: docs/specified.md has the questions",
    ),
    **dict.fromkeys(("RDNA4", "gfx1200", "gfx1201"), "RDNA4 is not measured"),
    **dict.fromkeys(
        ("Wormhole", "Blackhole", "n150", "n300"),
        "of Tenstorrent's matrix units the products are published, not the order of the sum: docs/specified.md",
    ),
    "TPU": "Google's TPUs are not modelled",
    **dict.fromkeys(("Trainium", "Trainium2"), "AWS Trainium is not modelled"),
    **dict.fromkeys(("Gaudi", "Gaudi2", "Gaudi3"), "Intel Gaudi is not modelled"),
}

#: Words that drivers and shops write around a name: `NVIDIA A100-SXM4-80GB`, `Intel(R) Xeon(R) Platinum 8480+`.
_AROUND = re.compile(
    r"nvidia|geforce|quadro|tesla|amd|instinct|intel|apple|aws|arm|azure|platinum|gold|silver|ti|super|max|pro|ultra"
    r"|jetson|agx|nx|nano|mobile|sff|laptop|gpu|cpu|processor|generation|edition|workstation|server|blackwell|sxm\d*|pcie|nvl|oam|hbm\d*e?|\d+gb"
)
#: words of those that a name can do without only where it is not one of its own
_OWN = ("pro", "max", "quadro")


#: `compute_90a`, `cc 9.0` and `9.0` say what `sm_90a` says
_CAPABILITY = re.compile(r"compute_(\d{2,3}[af]?)|(?:cc|compute capability)?\s*(\d{1,2})\.(\d)")


def _words(name: str) -> list[str]:
    text = name.strip().lower().partition(":")[0]  # a target's features follow, as in gfx90a:sramecc+:xnack-
    if said := _CAPABILITY.fullmatch(text):
        return ["sm", said[1] or said[2] + said[3]]
    text = re.sub(r"\((r|tm|c)\)|[+]", " ", text)
    text = re.sub(r"(\d)(ti|super)\b", r"\1 \2", text)
    return [word for word in re.split(r"[\s_\-]+", text) if word]


def squeezed(name: str) -> str:
    """A name as it is compared: in lower case, without what is between its words."""
    return "".join(_words(name))


_BY_KEY = {squeezed(name): each.architecture for each in PRODUCTS for name in each.names}
#: People leave RTX out: of `4090`, `A6000`; a name that it does not leave alone in its meaning is not taken.
_BY_KEY |= {
    key.removeprefix("rtx"): found
    for key, found in _BY_KEY.items()
    if re.fullmatch(r"rtx(\d{4}d?|a\d{4})", key) and key.removeprefix("rtx") not in _BY_KEY
}
_NONE_BY_KEY = {squeezed(name): why for name, why in NOT_MODELLED.items()}


def _keys(name: str) -> list[str]:
    """Return the keys that a name may be looked up by: the name as it is, then without the words around it."""
    words = _words(name)
    kept = [word for word in words if not _AROUND.fullmatch(word)]
    own = [word for word in words if not _AROUND.fullmatch(word) or word in _OWN]
    return ["".join(words), "".join(own), "".join(kept)]


def architecture_of(name: str) -> str | None:
    """The name of the architecture that a device has, in any case and spelling; None if it is not known."""
    return next((_BY_KEY[key] for key in _keys(name) if key in _BY_KEY), None)


def why_not_modelled(name: str) -> str | None:
    """Why a device that is known has no model; None of others."""
    keys = [*_keys(name), *_words(name)[:1]]  # `EPYC 9654`, `TPU v4`: the line says it
    return next((_NONE_BY_KEY[key] for key in keys if key in _NONE_BY_KEY), None)


def nearest_name(name: str, others: Iterable[str] = ()) -> str | None:
    """The name of a device, or one of the others, that a wrong name is most like; None if it is like none."""
    names = {squeezed(each): each for each in [*(x for each in PRODUCTS for x in each.names), *others]}
    names |= {key.removeprefix("rtx"): each for key, each in names.items() if key[3:] in _BY_KEY}
    near = difflib.get_close_matches(squeezed(name), names, n=1)
    return names[near[0]] if near else None
