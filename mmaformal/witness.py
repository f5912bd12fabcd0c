"""A witness: an input on which two models differ, that a person can read, re-run and send to a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.brief import products_text
from mmaformal.display import counted, html_folded, html_text, html_title, short_text
from mmaformal.folding import fold
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.pictures import alignment_svg
from mmaformal.shown_stages import (
    code_text,
    exact_dot_add,
    explain_difference,
    input_lines,
    number_text,
    shown_steps,
    ulps_apart,
)
from mmaformal.spec import DotAdd, plain_parameter


class WitnessError(RuntimeError):
    """A solver's model did not hold when re-run: an encoding or a solver is wrong, and no answer is given."""


def case_size(
    spec: DotAdd,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> tuple[int, int, int, int]:
    """The order in which cases are small (compare as tuples):

    nonzero products; whether c is nonzero; significand bits set (trailing significands of the nonzero products'
    factors, of c and of the scales); sum of |exponent| over the same, read off the fields.
    """
    return full_size(spec, a, b, c, scale_a, scale_b)[:4]


def full_size(
    spec: DotAdd,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> tuple[int, int, int, int, int, int]:
    """`case_size`; then, to settle ties, the exponents of the products' factors, and the minus signs."""
    of_a, of_b = [_measure(x, spec.a_format) for x in a], [_measure(x, spec.b_format) for x in b]
    active = [pair for pair in zip(of_a, of_b, strict=True) if not _product_is_zero(*pair)]
    measured = [each for pair in active for each in pair]
    factors = sum(each.exponent for each in measured)
    of_c = _measure(c, spec.c_format)
    if not of_c.zero:
        measured.append(of_c)
    if spec.scale_format is not None:
        measured += [_measure(x, spec.scale_format) for x in (*scale_a, *scale_b)]
    bits, exponents = sum(each.bits for each in measured), sum(each.exponent for each in measured)
    signs = sum(each.sign for each in (*of_a, *of_b, of_c))
    return len(active), int(not of_c.zero), bits, exponents, factors, signs


def product_is_zero(a: int, a_format: Format, b: int, b_format: Format) -> bool:
    """Whether it is a product of ±0 and a finite number; 0·∞ and 0·NaN are no zeros."""
    return _product_is_zero(_measure(a, a_format), _measure(b, b_format))


class _Measures(NamedTuple):
    """The measures of one code, as `full_size` counts them."""

    zero: bool
    finite: bool
    bits: int
    exponent: int
    sign: int


def _product_is_zero(a: _Measures, b: _Measures) -> bool:
    return a.finite and b.finite and (a.zero or b.zero)


@lru_cache(maxsize=1 << 16)  # a search compares many cases of the same codes
def _measure(code: int, fmt: Format) -> _Measures:
    sign, field, fraction = fmt.fields(code)
    zero = fmt.is_finite(code) and fmt.value(code) == 0
    if fmt.is_integer:
        return _Measures(zero, True, (code & ~fmt.sign_mask).bit_count(), 0, sign)
    exponent = abs((max(field, 1) if fmt.has_zero else field) - fmt.bias)
    return _Measures(zero, fmt.is_finite(code), fraction.bit_count(), 0 if zero else exponent, sign)


@dataclass(frozen=True, eq=False)  # arrays have no one truth value to compare fields by
class Witness:
    """Inputs on which `x` and `y` give different results.

    a, b: shape (K,); c: shape (); scale_a, scale_b: shape (K / block,), empty without block scales.  All unsigned
    bit patterns.  `results`: the codes of d from x and from y.
    """

    x: Instruction
    y: Instruction
    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]
    scale_a: NDArray[Any]
    scale_b: NDArray[Any]
    results: tuple[int, int]

    @staticmethod
    def of(
        x: Instruction,
        y: Instruction,
        a: Sequence[int],
        b: Sequence[int],
        c: int,
        scale_a: Sequence[int] = (),
        scale_b: Sequence[int] = (),
    ) -> Witness:
        """The witness of these codes, its results computed by both executables.

        Raises WitnessError if the executables give the same result.
        """
        scale = x.spec.scale_format.word if x.spec.scale_format else np.dtype(np.uint8)
        witness = Witness(
            x,
            y,
            a=np.array(a, x.a_format.word),
            b=np.array(b, x.b_format.word),
            c=np.array(c, x.c_format.word),
            scale_a=np.array(scale_a, scale),
            scale_b=np.array(scale_b, scale),
            results=(0, 0),
        )
        results = witness.rerun()
        if not results_differ(x.spec, y.spec, *results):
            raise WitnessError(
                f"{x.label} and {y.label} both give {results[0]:#x}; no difference: an encoding is wrong"
            )
        object.__setattr__(witness, "results", results)
        return witness

    def rerun(self) -> tuple[int, int]:
        """Both executables on these inputs, once more, and no compiled code; a lane of 64 bits has a sign."""
        given = (
            self.a,
            self.b,
            int(self.c),
            *((self.scale_a, self.scale_b) if self.x.spec.scale_format else ()),
        )
        x, y = (int(fold(i.spec, *given).trace.result) % i.d_format.codes for i in (self.x, self.y))
        return x, y

    @property
    def ints(self) -> tuple[list[int], list[int], int, list[int], list[int]]:
        """Return the codes of a, b and c, and of both sides' block scales."""
        return (
            self.a.tolist(),
            self.b.tolist(),
            int(self.c),
            self.scale_a.tolist(),
            self.scale_b.tolist(),
        )

    @property
    def size(self) -> tuple[int, int, int, int]:
        """See `case_size`."""
        return case_size(self.x.spec, *self.ints)

    @property
    def case_text(self) -> str:
        """`0x1p+0·0x1p+0 + (-0x1p-25)`: the products that are not +0·+0, in order, then c if it is not +0."""

        def text(code: int, fmt: Format) -> str:
            value = fmt.text(code)
            return f"({value})" if value.startswith("-") else value

        a, b, c, _, _ = self.ints
        products = {k: pair for k, pair in enumerate(zip(a, b, strict=True)) if pair != (0, 0)}

        def product(pair: tuple[int, int]) -> str:
            return f"{text(pair[0], self.x.a_format)}·{text(pair[1], self.x.b_format)}"

        parts = products_text(
            products,
            lambda where, pair: f"{product(pair)} [k={where}]",
            lambda k, pair: product(pair) + (f" [k={k}]" if k else ""),
        )
        if c or not parts:
            parts.append(text(c, self.x.c_format))
        return " + ".join(parts)

    @property
    def summary(self) -> str:
        """One line: the inputs, and both results as codes."""
        x, y = (f"{result:#x}" for result in self.results)
        return f"{self.case_text} gives {x} and {y}"

    def matrices(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """A (m×k), B (k×n), C (m×n) of x's shape with the case at element [0, 0] of D and zeros elsewhere."""
        A = np.zeros((self.x.m, self.x.k), self.a.dtype)
        B = np.zeros((self.x.k, self.x.n), self.b.dtype)
        C = np.zeros((self.x.m, self.x.n), self.c.dtype)
        A[0, :], B[:, 0], C[0, 0] = self.a, self.b, self.c
        return A, B, C

    def to_cuda(self) -> str:
        """A self-contained CUDA program that runs this case and says which model the GPU agrees with.

        Raises CudaUnavailableError for instructions that are neither `mma.sync` nor `wgmma`.
        """
        from mmaformal.cuda_programs import cuda_program

        cases = [(self.x, self.results[0]), (self.y, self.results[1])]
        return cuda_program(cases, self.a, self.b, int(self.c), self.scale_a, self.scale_b)

    def to_c(self) -> str:
        """A self-contained C program that runs this case on the unit of the processor at hand, by its intrinsic, and
        says if it does what its model says.

        Raises CUnavailableError where neither side is a unit of a processor that has one.
        """
        from mmaformal.intrinsics import c_source

        cases = [(self.x, self.results[0]), (self.y, self.results[1])]
        return c_source(cases, self.a, self.b, self.c)

    def to_npz(self, path: str | Path) -> None:
        """Write the case as a recording of one row, which `mmaformal check` reads: its d is what x's model gives.

        With the d that a machine gave in its place, `mmaformal check` says whether the machine does as the model.
        The path may end in .parquet or .csv too.  Raises ValueError for an instruction that no recording can name.
        """
        from mmaformal.recordings.write import write_rows

        d = np.array(self.results[0], self.x.d_format.word)
        rows = {"a": self.a, "b": self.b, "c": self.c, "d": d}
        if self.x.spec.scale_format is not None:
            rows |= {"scale_a": self.scale_a, "scale_b": self.scale_b}
        source = (
            f"the model of {self.x.label}: no hardware was run; {self.y.label} gives {self.results[1]:#x}"
        )
        write_rows(self.x, {name: codes[None] for name, codes in rows.items()}, path, {"source": source})

    def to_json(self) -> dict[str, object]:
        """Codes as hexadecimal strings, the models with their parameters."""

        def codes(xs: NDArray[Any], fmt: Format) -> list[str]:
            return [f"{int(v):#0{2 + -(-fmt.storage_bits // 4)}x}" for v in xs.reshape(-1)]

        def model(i: Instruction, result: int) -> dict[str, object]:
            return {
                "architecture": i.architecture,
                "instruction": i.name,
                "algorithm": i.algorithm,
                "parameters": {name: plain_parameter(i.parameters[name]) for name in i.parameters},
                "result": codes(np.array(result), i.d_format)[0],
            }

        scale = self.x.spec.scale_format
        out: dict[str, object] = {
            "k": self.x.k,
            "a_format": str(self.x.a_format),
            "b_format": str(self.x.b_format),
            "c_format": str(self.x.c_format),
            "d_format": str(self.x.d_format),
            "a": codes(self.a, self.x.a_format),
            "b": codes(self.b, self.x.b_format),
            "c": codes(self.c, self.x.c_format)[0],
            "models": [model(self.x, self.results[0]), model(self.y, self.results[1])],
        }
        if scale is not None:
            out |= {
                "scale_format": str(scale),
                "scale_a": codes(self.scale_a, scale),
                "scale_b": codes(self.scale_b, scale),
            }
        return out

    def __str__(self) -> str:
        return self._text(whole=False)

    def verbose(self) -> str:
        """`str` of it, with every product and every step."""
        return self._text(whole=True)

    def _text(self, whole: bool) -> str:
        return "\n\n".join([self._inputs(whole), "\n".join(["results", *self._results()]), self._told(whole)])

    def __repr__(self) -> str:
        return short_text(self, f"{self.x.label} = {self.y.label}", self.summary)

    def _repr_html_(self) -> str:
        title, *lines = self._inputs().splitlines()
        return "".join(
            [
                html_title(f"{self.x.label} and {self.y.label} differ", title),
                html_text("\n".join(lines)),
                html_text("\n".join(self._results())),
                html_folded("where they part", html_text(self._told()), shown=True),
                *self._drawn(),
            ]
        )

    def _drawn(self) -> list[str]:
        """The terms of both, place below place, as HTML; nothing where neither cuts anything off."""
        drawn = [(i.label, alignment_svg(shown_steps(i, *self.ints))) for i in (self.x, self.y)]
        return [html_folded(f"terms of {label}", svg) for label, svg in drawn if svg]

    def _told(self, whole: bool = False) -> str:
        """Where they part, stage by stage."""
        return explain_difference(self.x, self.y, *self.ints, whole=whole)

    def _inputs(self, whole: bool = False) -> str:
        a, b, c, scale_a, scale_b = self.ints
        spec = self.x.spec
        shown = [k for k in range(spec.k) if not _plain_zero(a[k], spec.a_format, b[k], spec.b_format)]
        hidden = spec.k - len(shown)
        lines = ["inputs" + (f"  ({counted(hidden, 'product')} +0·+0 not shown)" if hidden else "")]
        lines += input_lines(spec, a, b, c, scale_a, scale_b, shown=shown, width=10, whole=whole)
        exact = exact_dot_add(spec, a, b, c, scale_a, scale_b)
        if exact is not None:
            lines.append(f"exact c + Σ a·b: {number_text(exact)}")
        return "\n".join(lines)

    def _results(self) -> list[str]:
        spec, lines = self.x.spec, []
        labels = [f"{i.label}" for i in (self.x, self.y)]
        if labels[0] == labels[1]:
            labels = [f"{i.label} {i.parameters.describe()}" for i in (self.x, self.y)]
        width = max(map(len, labels))
        for model, label, result in zip((self.x, self.y), labels, self.results, strict=True):
            payload = "  (payload unspecified)" if _vague_nan(model.spec, result) else ""
            lines.append(f"  {label:<{width}}  {code_text(result, model.d_format)}{payload}")
        apart = ulps_apart(*self.results, spec.d_format)
        lines.append(f"  {apart} ulp apart" if apart else "  not comparable: one is a NaN")
        if apart == 0:
            lines[-1] = "  apart only in the sign of zero"
        return lines


def _plain_zero(a: int, a_format: Format, b: int, b_format: Format) -> bool:
    return a == 0 and b == 0 and a_format.has_zero and b_format.has_zero


def _vague_nan(spec: DotAdd, code: int) -> bool:
    return spec.d_format.is_nan(code) and not spec.nan_is_canonical


def results_differ(x: DotAdd, y: DotAdd, result_x: int, result_y: int) -> bool:
    """Whether two results are distinguishable: NaNs whose payload one side leaves unspecified are not."""
    if result_x == result_y:
        return False
    both_nan = x.d_format.is_nan(result_x) and y.d_format.is_nan(result_y)
    return not (both_nan and not (x.nan_is_canonical and y.nan_is_canonical))
