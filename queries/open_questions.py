"""The points on which sources differ (docs/semantics.md §9), each with the input that settles it on hardware.

python -m mmaformal.queries.open_questions > docs/open-questions.md
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mmaformal.architectures import ARCHITECTURES
from mmaformal.explain import code_text
from mmaformal.instruction import Instruction
from mmaformal.queries.compare_architectures import inputs_text
from mmaformal.queries.constraints import Constraint, finite
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Different


@dataclass(frozen=True)
class Question:
    """One point: the default reading of an instruction against another one."""

    title: str
    default: Instruction
    other: Instruction
    reading: str  #: what the other source says


def questions() -> Iterator[Question]:
    """Every point of §9 on which two readings compute different functions, on each kind of unit it concerns."""
    a = ARCHITECTURES
    zero = "Exponent of an exact zero"
    for architecture, k4 in (("volta", True), ("ampere", False), ("hopper", False)):
        for d in ("F32", "F16"):
            name = f"HMMA.884.{d}.{d}" if k4 else f"HMMA.16816.{d}"
            i = a[architecture][name]
            yield Question(f"{zero}, NVIDIA", i, i.replace(e_zero=None), "seed 000: that of its fields")
    for architecture, name in (
        ("volta", "HMMA.884.F16.F16"),
        ("ampere", "HMMA.16816.F16"),
        ("hopper", "HMMA.16816.F16"),
    ):
        i = a[architecture][name]
        e = i.parameters["e_zero"] - 1
        yield Question(f"{zero}, earlier measurements", i, i.replace(e_zero=e), f"published too: {e}")
    i = a["blackwell"]["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
    yield Question(f"{zero}, NVIDIA", i, i.replace(e_zero=None), "seed 000: that of its fields")
    i = a["hopper"]["HMMA.16816.F32.BF16"]
    yield Question(
        "Negative zero, NVIDIA",
        i,
        i.replace(rho=i.parameters["rho"].with_signed_zero()),
        "seed 000 is silent; IEEE 754 would keep the sign of a negative sum that rounds to zero",
    )
    i = a["turing"]["HMMA.884.F32.F32"]
    yield Question("HMMA.884 on turing", i, i.replace(F=24), "seed 000: F = 24")
    for name in ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x32_fp8_fp8"):
        i = a["cdna3"][name]
        yield Question(
            f"{i.algorithm} step 4, CDNA3",
            i,
            i.replace(dot_bits=31, sum_bits=None),
            "seed 000: 31 bits, and no second cut",
        )
        yield Question(
            "Zero products, CDNA3",
            i,
            i.replace(skip_zero_products=False),
            "seed 000: they take part with the exponent of their fields",
        )


_HEAD = """\
# Open questions

Points on which published sources differ (docs/semantics.md §9). For each, the smallest input found on which the two
readings give different results: run it on the hardware named, and the question is settled. Inputs not listed are +0;
products are at position 0 unless `[k=…]` says otherwise. Made by `python -m mmaformal.queries.open_questions`; do not
edit.

| point | instruction | the other reading | input `Σ a·b + c` | default gives | the other gives |
|---|---|---|---|---|---|
"""


def overflow_bound() -> str:
    """The fp16 overflow bound: seed 000 prints a negative number, so there is no second function to compare with."""
    i = ARCHITECTURES["hopper"]["HMMA.16816.F16"]
    largest = i.c_format.code("65504")
    results = []
    for product in ("15.9921875", "16"):  # 65504 + 16 = (2 − 2^-11)·2^15
        a = [i.a_format.code(product)] + [0] * (i.k - 1)
        b = [i.b_format.code("1")] + [0] * (i.k - 1)
        d = int(i.dot_add(a, b, largest))
        results.append(f"65504 + {product}·1 gives {code_text(d, i.d_format)}")
    return (
        "The fp16 overflow bound is printed as (2 − 2^11)·2^15 in seed 000, which is negative: every result would be "
        "an infinity. Read as (2 − 2^−11)·2^15 = 65520 it is the default. On hopper HMMA.16816.F16 the default says: "
        + "; ".join(results)
        + "."
    )


def markdown(where: tuple[Constraint, ...], timeout: float, progress: Callable[[str], None]) -> str:
    """The page.  Raises RuntimeError if a question is not answered by a witness."""
    lines = []
    for q in questions():
        progress(f"{q.title}: {q.default.label}")
        answer = find_difference(q.default, q.other, where=where, timeout=timeout)
        if not isinstance(answer, Different):
            raise RuntimeError(f"no witness for {q.title}, {q.default.label}:\n{answer}")
        w = answer.witness
        inputs = inputs_text(w)
        if w.x.spec.scale_format is not None:
            scales = [
                f"{side} {', '.join(f'{s:#x}' for s in xs.tolist())}"
                for side, xs in (("scale_a", w.scale_a), ("scale_b", w.scale_b))
            ]
            inputs += f" ({'; '.join(scales)})"
        results = " | ".join(f"`{code_text(r, q.default.d_format)}`" for r in w.results)
        lines.append(f"| {q.title} | {q.default.label} | {q.reading} | {inputs} | {results} |")
    return _HEAD + "\n".join(lines) + "\n\n" + overflow_bound() + "\n"


def main() -> int:
    print(markdown((finite(),), 300.0, lambda text: print(text, file=sys.stderr)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
