"""Small products and dot product-adds of common arguments, without what the general way does for uncommon ones.

Common are NumPy arrays of exactly the instruction's types, all floats or all bit patterns, in shapes that fit.  Of
anything else the answer here is None, and the general way decides: it computes the same, and raises what there is to
raise.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_text
from mmaformal.kernels import kernel_for
from mmaformal.kernels import rows as kernels
from mmaformal.kernels.first import lanes_of
from mmaformal.spec import DotAdd

if TYPE_CHECKING:
    from mmaformal.kernels import Kernel

CodeArray: TypeAlias = NDArray[Any]

#: Products of more products than this are not small: threads share them.
MOST = 1 << 20
#: Seconds that one instruction may count: what the first one compiles is not what the next ones take.
_MOST_OF_ONE = 0.1
#: A product of fewer columns than this is made as its transpose, as by `gemm`, if that has more.
NARROW = 64


class OperandTypes:
    """The types that operands of one instruction have, as bit patterns and as floats."""

    def __init__(self, spec: DotAdd) -> None:
        self.spec = spec
        formats = spec.a_format, spec.b_format, spec.c_format
        self.words = tuple(fmt.word for fmt in formats)
        self.full = all(fmt.codes == 1 << 8 * fmt.word.itemsize for fmt in formats)
        floats = tuple(fmt.dtype for fmt in formats)
        self.floats = None if any(x is None for x in floats) else floats  # NumPy has None for float64
        d = spec.d_format
        self.d_floats = d.word if d.dtype is None else d.dtype
        self.word = max((spec.c_format.word, d.word), key=lambda word: word.itemsize)  #: of c and d
        self.chained = spec.c_format == d
        self.scaled = spec.scale_format is not None
        self.alike = spec.a_format == spec.b_format and spec.parameters.factors_commute

    def __repr__(self) -> str:
        return short_text(self, str(self.spec))

    def codes(self, *given: object) -> tuple[list[CodeArray], np.dtype[Any]] | None:
        """Operands as codes, and the type of d; None where they are not common."""
        found: list[CodeArray] = []
        for x in given:
            if x.__class__ is not np.ndarray and not isinstance(x, np.generic):
                return None
            found.append(x)  # type: ignore[arg-type]  # np.generic has an array's dtype and view
        if self.full and _are(found, self.words):
            return found, self.spec.d_format.word
        if self.floats is not None and _are(found, self.floats):
            return [x.view(word) for x, word in zip(found, self.words, strict=False)], self.d_floats
        return None


def _are(given: Sequence[CodeArray], types: Sequence[np.dtype[Any] | None]) -> bool:
    """Whether arrays are of these types, of which there may be more."""
    return all(x.dtype == y for x, y in zip(given, types, strict=False))


class Quick:
    """The quick way of one instruction, and what its products are made by: lanes, until the compiled kernel pays."""

    def __init__(self, spec: DotAdd) -> None:
        self.spec, self.sides = spec, OperandTypes(spec)
        self.kernel: Kernel | None = None
        self.spent = 0.0  #: seconds of rows that the kernel would have saved

    def __repr__(self) -> str:
        return short_text(self, str(self.spec))

    def __reduce__(self) -> tuple[type[Quick], tuple[DotAdd]]:
        return Quick, (self.spec,)

    def spend(self, began: float) -> None:
        """Count a whole instruction that was made by rows; the kernel is taken after some seconds of them."""
        self.spent += min(time.perf_counter() - began, _MOST_OF_ONE)
        if self.spent > kernels.PATIENCE:
            self.kernel = kernel_for(self.spec)

    def kernel_of(self, products: int) -> Kernel:
        """The kernel for so many products: NumPy's lanes, until the compiled one pays."""
        if self.kernel is None:
            found = lanes_of(self.spec).for_products(products)
            if found is not lanes_of(self.spec):
                self.kernel = found
            return found
        return self.kernel

    def product(self, A: object, B: object, C: object) -> CodeArray | None:
        """A (M×K) · B (K×N) + C (M×N), without C if it is None; small, and K in whole instructions."""
        given = self.sides.codes(A, B) if C is None else self.sides.codes(A, B, C)
        if given is None or self.sides.scaled:
            return None
        (a, b, *c), kind = given
        if a.ndim != 2 or b.ndim != 2:
            return None
        m, k = a.shape
        n, each = b.shape[1], self.spec.k
        steps = k // each
        fits = b.shape[0] == k == steps * each and m > 0 and n > 0 and steps > 0
        if not fits or m * n * k > MOST or (steps > 1 and not self.sides.chained):
            return None
        if c and c[0].shape != (m, n):
            return None
        addend = c[0] if c else None
        turned = n < min(m, NARROW) and self.sides.alike
        if turned:
            d = np.ascontiguousarray(self._made(b.T, a.T, addend if addend is None else addend.T).T)
        else:
            d = self._made(a, b, addend)
        return d.view(kind)

    def _made(self, a: CodeArray, b: CodeArray, c: CodeArray | None) -> CodeArray:
        """A product as codes."""
        kernel, word = self.kernel or self.kernel_of(len(a) * b.size), self.sides.word
        shape = len(a), b.shape[1]
        d = np.zeros(shape, word) if c is None else np.array(c, word, order="C")
        kernel.run(kernel.rows(a), kernel.columns(b), d, 0, a.shape[1] // self.spec.k)
        return d.astype(self.spec.d_format.word, copy=False)

    def dot_add(self, a: object, b: object, c: object) -> CodeArray | None:
        """c + Σ a_k·b_k of two vectors and a number, once compiled rows pay."""
        given = self.sides.codes(a, b, c)
        if given is None or self.sides.scaled or not kernels.compiled_pays(self.spec, self.spec.k):
            return None
        (x, y, z), kind = given
        if x.shape != (self.spec.k,) or y.shape != x.shape or z.ndim:
            return None
        d = kernels.one_row(self.spec, x, y, z)
        result: CodeArray = d.view(kind)[0]
        return result
