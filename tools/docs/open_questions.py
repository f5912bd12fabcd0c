"""The points on which sources differ (docs/semantics.md §9), each with the input that settles it on hardware.

python tools/docs/open_questions.py > tables/open-questions.md
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click
from who_agrees import inputs_text

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered, run_command
from mmaformal.display import ShortRepr
from mmaformal.encodings.fda import Fda
from mmaformal.instruction import Instruction
from mmaformal.queries.constraints import Constraint, finite
from mmaformal.queries.find_difference import find_difference
from mmaformal.shown_stages import code_text
from mmaformal.solver.answers import Different


@dataclass(frozen=True, repr=False)
class Question(ShortRepr):
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
            yield Question(f"{zero}, NVIDIA", i, i.replace(e_zero=None), "MMA-Sim: that of its fields")
    for architecture, name in (
        ("volta", "HMMA.884.F16.F16"),
        ("ampere", "HMMA.16816.F16"),
        ("hopper", "HMMA.16816.F16"),
    ):
        i = a[architecture][name]
        p = i.spec.parameters_as(Fda)
        assert p.e_zero is not None
        e = p.e_zero - 1
        yield Question(f"{zero}, an earlier version of mmasim", i, i.replace(e_zero=e), f"mmasim 2.0.1: {e}")
    i = a["blackwell"]["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
    yield Question(f"{zero}, NVIDIA", i, i.replace(e_zero=None), "MMA-Sim: that of its fields")
    i = a["hopper"]["HMMA.16816.F32.BF16"]
    yield Question(
        "Negative zero, NVIDIA",
        i,
        i.replace(rho=i.parameters.last_rounding.with_signed_zero()),
        "MMA-Sim is silent; IEEE 754 would keep the sign of a negative sum that rounds to zero",
    )
    i = a["turing"]["HMMA.884.F32.F32"]
    yield Question("HMMA.884 on turing", i, i.replace(F=24), "MMA-Sim: F = 24")
    for name in ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x32_fp8_fp8"):
        i = a["cdna3"][name]
        yield Question(
            f"{i.algorithm} step 4, CDNA3",
            i,
            i.replace(dot_bits=31, sum_bits=None),
            "MMA-Sim: 31 bits, and no second cut",
        )
        yield Question(
            "Zero products, CDNA3",
            i,
            i.replace(skip_zero_products=False),
            "MMA-Sim: they take part with the exponent of their fields",
        )


_HEAD = """\
# Open questions

Points on which published sources differ (docs/semantics.md §9). For each, the smallest input found on which the two
readings give different results: run it on the hardware named, and the question is settled. Inputs not listed are +0;
products are at position 0 unless `[k=…]` says otherwise. Made by `python tools/docs/open_questions.py`; do not
edit.

| point | instruction | the other reading | input `Σ a·b + c` | default gives | the other gives |
|---|---|---|---|---|---|
"""


def infinities() -> str:
    """Infinite inputs beside products that overflow: no finite input tells the readings apart."""
    i = ARCHITECTURES["cdna3"]["v_mfma_f32_32x32x8_bf16"]
    a = [i.a_format.code(x) for x in ("inf", "0x1p64")] + [0] * (i.k - 2)
    b = [i.b_format.code(x) for x in ("1", "-0x1p64")] + [0] * (i.k - 2)
    default, other = (
        code_text(int(each.dot_add(a, b, 0)), i.d_format) for each in (i, i.replace(inputs_first=True))
    )
    return (
        "An infinite input beside a product that overflows, CDNA3: MMA-Sim returns the input's infinity (§IV-F step 1) "
        "before products overflow (step 2); the default, as mmasim 2.1.1, judges both together. On "
        f"{i.label}, ∞·1 + 2^64·(−2^64) is {default} by the default, {other} by the other."
    )


def nvfp4_width() -> str:
    """TensorGauge's Table I against F of the fp4 instructions: a width, not a rule, so it is told by an input."""
    i = ARCHITECTURES["blackwell"]["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
    one, minus = i.a_format.code("1"), i.a_format.code("-1")
    a = [one, one] + [0] * (i.k - 2)  # σ of the first group: 1 − 1
    b = [one, minus] + [0] * (i.k - 2)
    scales = [int(i.spec.scale_format.code("1"))] * i.spec.scales  # type: ignore[union-attr]
    results = []
    for bits in (25, 26, 35, 36):
        c = i.c_format.code(f"0x1p-{bits}")
        results.append(
            f"c = 2^−{bits} gives {code_text(int(i.dot_add(a, b, c, scales, scales)), i.d_format)}"
        )
    return (
        "TensorGauge (Table I) gives 25 bits for NVFP4 on Blackwell, and says that its model reproduces a GeForce "
        "RTX 5060 bit for bit; MMA-Sim (§IV-E) has F = 35 for UTCOMMA and OMMA, and so has this model. Whether the "
        "table counts the same thing (it has 25 for bf16 and fp16 on both architectures and 13 for fp8 on Hopper, "
        f"which are F here) it does not say. What settles it on {i.label}: 1·1 + 1·(−1) + c with all scales 1, where "
        "the default says: "
        + "; ".join(results)
        + ". With 25 fractional bits the second and the third are 0."
    )


def overflow_bound() -> str:
    """The fp16 overflow bound: MMA-Sim prints a negative number, so there is no second function to compare with."""
    i = ARCHITECTURES["hopper"]["HMMA.16816.F16"]
    largest = i.c_format.code("65504")
    results = []
    for product in ("15.9921875", "16"):  # 65504 + 16 = (2 − 2^-11)·2^15
        a = [i.a_format.code(product)] + [0] * (i.k - 1)
        b = [i.b_format.code("1")] + [0] * (i.k - 1)
        d = int(i.dot_add(a, b, largest))
        results.append(f"65504 + {product}·1 gives {code_text(d, i.d_format)}")
    return (
        "The fp16 overflow bound is printed as (2 − 2^11)·2^15 in MMA-Sim, which is negative: every result would be "
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
    return (
        _HEAD
        + "\n".join(lines)
        + "\n\n"
        + "\n\n".join((overflow_bound(), infinities(), nvfp4_width()))
        + "\n"
    )


@click.command(help=(__doc__ or "").splitlines()[0])
@options.timeout(300.0, "for each question")
def command(timeout: float) -> int:
    return answered(
        markdown((finite(),), timeout, lambda text: print(text, file=sys.stderr)).rstrip("\n"), SETTLED
    )


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(command, sys.argv[1:] if argv is None else argv, "open_questions")


if __name__ == "__main__":
    sys.exit(main())
