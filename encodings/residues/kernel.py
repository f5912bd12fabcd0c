"""The kernel of sums by remainders: words and their remainders once for each factor, in int8; sums of int32 by NumPy.

What sums leave, and the numbers put together from that, are the executable's functions on NumPy's lanes; c is added by
the processor.  Of rows and columns with infinities and NaNs, every output is the executable's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import decode, encode, quiet_nan, round_sum
from mmaformal.encodings.residues import Residues
from mmaformal.encodings.residues import executable as residues
from mmaformal.formats import Format
from mmaformal.kernels import batch
from mmaformal.kernels.kernel import CodeArray, Kernel, Planes
from mmaformal.kernels.processor import check_processor
from mmaformal.spec import DotAdd


class Words(NamedTuple):
    """Words of factors: (rows, K) of each modulus as int8, (rows, programs) exponents, and whether none is special."""

    remainders: tuple[NDArray[np.int8], ...]
    tops: NDArray[np.int64]
    finite: NDArray[np.bool_]


def words(codes: CodeArray, fmt: Format, p: Residues) -> Words:
    """The words of (rows, K) codes, K a multiple of a step's products."""
    lanes = codes.astype(np.int64)
    x = decode(lanes, fmt.layout)
    parts = x.exponent.reshape(len(codes), -1, p.products)
    tops = parts.max(axis=2)
    found = residues.word(x, np.repeat(tops, p.products, 1), fmt, p)
    finite = ~(x.infinite | x.nan).reshape(parts.shape).any(axis=2)
    return Words(tuple(each.astype(np.int8) for each in found.remainders), tops, finite)


def sums(a: Words, b: Words, program: int, p: Residues) -> CodeArray:
    """The codes of the sums of one step, of all rows of a by all rows of b."""
    own = slice(program * p.products, (program + 1) * p.products)
    left = []
    for t in range(len(p.moduli)):
        # The unit's: products of int8, added in int32.
        total = a.remainders[t][:, own].astype(np.int32) @ b.remainders[t][:, own].T.astype(np.int32)
        _, division = residues.left_of_sum(total.astype(np.int64), t, p)
        left.append(division.left)
    found = residues.digits(left, p)
    unit = a.tops[:, program, None] + b.tops[None, :, program] + 2 - 2 * p.bits
    whole = residues.put_together([each.digit for each in found], p, unit)
    codes: CodeArray = encode(round_sum(whole.narrowed, whole.narrowed.total * 0, p.rho), p.rho)
    return codes


def added(dot: CodeArray, c: CodeArray, p: Residues) -> CodeArray:
    """The codes of sums and c, added as IEEE 754 has it; a NaN is the executable's."""
    fmt = p.rho.format
    assert fmt.dtype is not None
    x, y = (np.ascontiguousarray(each.astype(fmt.word)).view(fmt.dtype) for each in (dot, c))
    with np.errstate(all="ignore"):
        total = x + y
    codes: CodeArray = np.where(np.isnan(total), fmt.word.type(quiet_nan(fmt)), total.view(fmt.word))
    return codes


class ResiduesKernel(Kernel):
    """residues: planes of the codes, of the remainders of each modulus, exponents, and where all are finite."""

    task = 1 << 22

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.p = spec.parameters_as(Residues)
        self.bytes_per_element = 8 + len(self.p.moduli)
        self.description = (
            f"residues: int8 remainders of {len(self.p.moduli)} moduli, added in int32 by NumPy"
        )

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._planes(codes, self.spec.a_format)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._planes(np.ascontiguousarray(codes.T), self.spec.b_format)

    def _planes(self, codes: CodeArray, fmt: Format) -> Planes:
        found = words(codes, fmt, self.p)
        return codes, found.tops, found.finite, *found.remainders

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        check_processor()
        x, y = (Words(planes[3:], planes[1], planes[2]) for planes in (a, tuple(z[: d.shape[1]] for z in b)))
        programs = self.spec.k // self.p.products
        for program in range(start * programs, stop * programs):
            before = d.copy()
            d[...] = added(sums(x, y, program, self.p), d, self.p)
            special = ~x.finite[:, program, None] | ~y.finite[None, :, program]
            if special.any():
                self._run_special(np.nonzero(special), (a[0], b[0]), program, before, d)

    def _run_special(
        self,
        places: tuple[NDArray[np.intp], ...],
        codes: tuple[CodeArray, CodeArray],
        program: int,
        before: CodeArray,
        d: CodeArray,
    ) -> None:
        own = slice(program * self.p.products, (program + 1) * self.p.products)
        m, n = places
        spec = self.spec.replace(k=self.p.products)
        some = batch.batch(spec, codes[0][m][:, own], codes[1][n][:, own], before[m, n], None, None)
        batch.on_lanes(spec, some)
        d[m, n] = some.d


KERNEL = ResiduesKernel
