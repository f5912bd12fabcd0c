"""The full names of the sources of parameters, and by whom they are; what rests on each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from mmaformal.instruction import Instruction

#: short name, as `Instruction.sources` has it, and the full one
PAPERS = {
    "MMA-Sim": "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores, by Peichen Xie, Yang Wang, "
    "Fan Yang and Mao Yang (Microsoft Research)",
    "SDM": "Intel 64 and IA-32 Architectures Software Developer's Manual, by Intel Corporation",
    "ISE": "Intel Architecture Instruction Set Extensions and Future Features, Programming Reference 319433-062, by "
    "Intel Corporation, chapter 3 (read as the emulator Bochs and public transcriptions quote it)",
    "Arm ARM": "Arm Architecture Reference Manual for A-profile architecture, by Arm Limited, DDI 0487 "
    "(FP8 and EBF16: pseudocode of J1.3)",
    "RISC-V ISA": "The RISC-V Instruction Set Manual, chapters on RVBNA, Zvfwbdota16bf and Zvfqwbdota8f, by RISC-V "
    "International, github.com/riscv/riscv-isa-manual, commit 260dd933",
    "Spike": "the RISC-V ISA simulator, github.com/riscv-software-src/riscv-isa-sim, commit 55b4658d",
    "Power ISA": "Power ISA, Version 3.1, by OpenPOWER Foundation and IBM",
    "QEMU 7.2": "QEMU, version 7.2, user mode, an emulator: what it gives (docs/semantics.md §11)",
    "corsix/amx": "Apple AMX Instruction Set, by Peter Cawley, github.com/corsix/amx: measured on M1 to M4",
    "Desrentes et al.": "Double-Word Decomposition in a Combined FP16, BF16 and FP32 Dot Product Add Operator, by "
    "Orégane Desrentes, Benoît Dupont de Dinechin and Florent de Dinechin",
    "TensorGauge": "TensorGauge: A Pre-silicon End-to-end Framework for Quantifying Numerical Effects of Tensor Core "
    "Microarchitecture in GEMM, by Wei Liu, Yi Yu, Qianliang Liu, Xiaoyou Song, Mingyuan Ma, Yuhan Wang, Haonan Sun, "
    "Yumin Hou and Hu He (Tsinghua University, Beijing University of Technology)",
    "mmasim 2.1.1": "the simulator of MMA-Sim in a later version, by Peichen Xie, on the Python package index",
}

#: where a source is to be read
ADDRESSES = {
    "MMA-Sim": "https://arxiv.org/abs/2511.10909",
    "RISC-V ISA": "https://github.com/riscv/riscv-isa-manual",
    "Spike": "https://github.com/riscv-software-src/riscv-isa-sim",
    "QEMU 7.2": "https://www.qemu.org",
    "corsix/amx": "https://github.com/corsix/amx",
}


class UnknownSourceError(ValueError):
    """A name is of no source, or of several."""


def source_named(name: str) -> str:
    """Return the short name of the source that a name, or a part of its title, is of.  Raises UnknownSourceError."""
    wanted = name.casefold()
    exact = [short for short in PAPERS if short.casefold() == wanted]
    found = exact or [short for short, title in PAPERS.items() if wanted in f"{short}: {title}".casefold()]
    if len(found) == 1:
        return found[0]
    lower = {short.casefold(): short for short in PAPERS}
    near = found or [lower[each] for each in difflib.get_close_matches(wanted, lower, n=4, cutoff=0.5)]
    raise UnknownSourceError(
        f"{'several sources have' if found else 'no source is called'} {name!r}{':' if near else ''}"
        f" {', '.join(near)}; `mmaformal list --sources` has all".replace(" ;", ";")
    )


def resting_on(name: str, instructions: Iterable[Instruction]) -> list[tuple[Instruction, list[str]]]:
    """Return the instructions with parameters that a source gives, and these parameters."""
    found = ((i, [p for p, text in i.sources.items() if name in text]) for i in instructions)
    return [(i, parameters) for i, parameters in found if parameters]
