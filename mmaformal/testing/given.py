"""Arguments of a test, as codes: the unit or structure, the operands, and what is to be tested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import EllipsisType
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import Format, fp32, fp64
from mmaformal.gemm import CodeArray, Division, holds, matmul, rounded_codes, values
from mmaformal.given_matrices import format_named
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix, Operands, ProductCodes, as_operand, float_format
from mmaformal.structures import Structure, replay, structure_meant


@dataclass(frozen=True, repr=False)
class GivenProduct(ShortRepr):
    """Operands and a result as codes, and what is said to have made it."""

    instruction: Instruction
    structure: Structure | None  #: None: one chain over K
    operands: Operands
    out: CodeArray  #: of the shape of `operands.outputs`
    d_format: Format  #: of `out`

    @classmethod
    def of(
        cls,
        out: Matrix,
        A: Matrix,
        B: Matrix,
        C: Matrix | None,
        *,
        instruction: Instruction | str | None,
        structure: Structure | str | None,
        d_format: Format | str | None,
        scale_a: Matrix | None,
        scale_b: Matrix | None,
    ) -> GivenProduct:
        """Read and check them.

        Raises ValueError for shapes that do not fit and where it is not said what made `out`, TypeError for other
        types of numbers than the instruction takes and gives.
        """
        structure = None if structure is None else structure_meant(structure)
        i = _unit(instruction, structure)
        if structure is not None and (C is None) != (structure.c_enters is None):
            raise ValueError(
                'a structure takes C where `c_enters` says so: Structure.named(…, c_enters="last")'
            )
        if structure is not None and C is not None and structure.c_format != i.c_format:
            raise ValueError(f"C of {structure.c_format} is no c of {i.label}: compare with `replay`")
        operands = Operands.of(i, A, B, C, scale_a, scale_b)
        made = i.d_format if structure is None else structure.result
        given = None if d_format is None else format_named(d_format, out, "d")
        fmt = given or float_format(out) or made
        if not holds(made, fmt):
            raise TypeError(
                f"out is {fmt}, and results of {made} are not rounded to that: give out as the kernel wrote it"
            )
        codes = as_operand(out, fmt, "out").codes
        shown = tuple(
            size
            for axis, size in enumerate(operands.outputs, -len(operands.outputs))
            if axis not in operands.dropped
        )
        if codes.shape != shown:
            raise ValueError(f"out has shape {codes.shape}; of these A and B it is {shown}")
        return cls(i, structure, operands, codes.reshape(operands.outputs), fmt)

    def products(self) -> Iterator[tuple[EllipsisType | tuple[int, ...], ProductCodes]]:
        """Where each product of a batch belongs in `out`, and its operands."""
        return self.operands.products(together=False)

    def expected(self, **how: Unpack[Division]) -> CodeArray:
        """Returns what the unit gives, as codes of `d_format`; K divided as `matmul` divides it.

        Raises ValueError as `matmul`, and for a division of a structure's own K.
        """
        if self.structure is not None and how:
            raise ValueError(f"a structure says itself how K is divided: leave {', '.join(how)} out")
        d = np.empty(self.operands.outputs, self.d_format.word)
        for where, each in self.products():
            if self.structure is not None:
                s, t = each.scale_a, each.scale_b
                made = replay(each.a, each.b, self.structure, each.c, scale_a=s, scale_b=t)
                fmt = self.structure.result
            else:
                s, t, i = each.scale_a, each.scale_b, self.instruction
                made = matmul(each.a, each.b, each.c, instruction=i, scale_a=s, scale_b=t, **how)
                fmt = self.instruction.d_format
            d[where] = narrowed(made, fmt, self.d_format).reshape(d[where].shape)
        return d

    @property
    def label(self) -> str:
        """The name of what made it, for a person."""
        return self.instruction.label if self.structure is None else f"{self.structure}"


def narrowed(codes: CodeArray, fmt: Format, to: Format) -> CodeArray:
    """Codes of a format as those of a narrower one, to nearest even; a NaN becomes its quiet one."""
    if fmt == to:
        return codes
    wide = fp32 if holds(fp32, fmt) else fp64
    return rounded_codes(values(codes, fmt, wide), wide, to, quiet_nan(to))


def as_float64(codes: CodeArray, fmt: Format) -> NDArray[np.float64]:
    """Codes as float64, which holds all formats."""
    with np.errstate(all="ignore"):
        found: NDArray[np.float64] = values(codes, fmt, fp64)
    return found


def _unit(instruction: Instruction | str | None, structure: Structure | None) -> Instruction:
    if structure is not None:
        if instruction is not None and instruction_meant(instruction).spec != structure.instruction.spec:
            raise ValueError(f"the structure is of {structure.instruction.label}: leave instruction out")
        return structure.instruction
    if instruction is None:
        raise ValueError('which unit? instruction="h100 HMMA.16816.F32", or structure=Structure.named(…)')
    return instruction_meant(instruction)
