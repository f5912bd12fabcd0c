"""The full names of the sources of parameters, and by whom they are."""

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
    "mmasim 2.1.1": "the simulator of that paper in a later version, by Peichen Xie, on the Python package index",
}
