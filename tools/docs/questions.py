"""Public questions about products of matrices, each answered by one command: docs/questions.md.

    python tools/docs/questions.py > docs/questions.md

Commands are run, and what they print stands in the page: its first lines, times left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

import question_products as products

from mmaformal import cli
from mmaformal.display import ShortRepr

#: Words of an answer that another run prints otherwise: seconds.
_TIMES = re.compile(r"\b\d[\d.,]* s( on \d{4}-\d\d-\d\d(, shipped [0-9a-f]{8})?)?\b")
_WIDTH = "100"


@dataclass(frozen=True, repr=False)
class Question(ShortRepr):
    """A question, who asked it, the command, how many lines of its answer are shown, and what it says."""

    title: str
    asked: tuple[str, ...]  #: `owner/repository#number`
    command: str
    lines: int
    answer: str
    status: int = 0  #: that the command ends with
    slow: bool = False  #: whether it takes more than ten seconds

    @property
    def links(self) -> str:
        """Links to the threads."""
        if not self.asked:
            return "Asked by a new user."
        return ", ".join(f"[{x}](https://github.com/{x.replace('#', '/issues/')})" for x in self.asked)


FP32 = "cdna1 v_mfma_f32_32x32x1f32"
QUESTIONS = (
    Question(
        "How many bits does Hopper's fp8 accumulator keep?",
        ("deepseek-ai/DeepGEMM#37", "deepseek-ai/DeepSeek-V3#847"),
        "show h100 QGMMA.64x8x32.F32.E4M3.E4M3",
        8,
        "13 fractional bits below the largest exponent, toward zero: 14 bits in all, 15 of a product from 2 on. Both "
        "readings in the thread are of this one number: products are cut to it, and so is c.",
    ),
    Question(
        "And Blackwell's: does it accumulate in fp32?",
        ("thu-ml/SageAttention#287",),
        "show b200 UTCQMMA.F32.E4M3.E4M3",
        8,
        "It keeps 25 bits, two more than fp32 has, and cuts toward zero. There is no recording of it; a published "
        "simulator agrees.",
    ),
    Question(
        "What does two-level accumulation mean, and does my kernel do it?",
        ("deepseek-ai/DeepGEMM#50",),
        "explain questions/fp8.npz --device h100 --a-format e4m3 --b-format e4m3",
        3,
        "A chain of 128 products in the unit, then one addition in fp32. The product says so itself.",
        slow=True,
    ),
    Question(
        "fp16 matmul on an A100 and on an RTX 3090 differ: is it the hardware?",
        ("pytorch/pytorch#105726",),
        "diff a100 'RTX 3090' HMMA.16816.F32",
        1,
        "As modelled, no: the two have one unit, which is assumed of the RTX 3090, not measured. The library's order "
        "of sums is more likely; `explain` tells.",
    ),
    Question(
        "Which unit made this product: does my fp16 kernel accumulate in fp16?",
        ("triton-lang/triton#940", "pytorch/pytorch#188998"),
        "explain questions/half.npz --device h100",
        3,
        "It does: the product is that of the instruction that gives fp16, not fp32.",
        slow=True,
    ),
    Question(
        "4.5 % of the elements mismatch: rounding, or a wrong kernel?",
        ("triton-lang/triton#9830",),
        "explain questions/wrong.npz --device h100",
        9,
        "Wrong, if it looks like this: all other elements are the unit's to the bit, and these are not roundings off.",
        status=1,
        slow=True,
    ),
    Question(
        "Does a row's result depend on the batch?",
        ("pytorch/pytorch#45422", "pytorch/pytorch#136338", "thinking-machines-lab/batch_invariant_ops#6"),
        "batch-invariant questions/batch16.npz questions/batch64.npz --device h100",
        3,
        "Of these two calls it does not: one structure explains every element, the same for every M.",
        slow=True,
    ),
    Question(
        "And if split-K sets in at a small batch?",
        ("torch-spyre/torch-spyre#3624", "vllm-project/vllm#55131"),
        "batch-invariant questions/split16.npz questions/batch64.npz --device h100",
        4,
        "Then it does, and here is a row with its two results.",
        status=1,
        slow=True,
    ),
    Question(
        "bf16 on the processor and on the GPU differ: what does the processor do?",
        ("pytorch/pytorch#111457",),
        "explain questions/cpu.npz --against datapath 'fma(k=1,a=bf16)' "
        "--a-format bf16 --b-format bf16 --d-format bf16",
        2,
        "Four sums in fp32 that take products by turns, added in order, as PyTorch's own kernel does on a processor "
        "without a unit for bf16 ([libraries.md](libraries.md)).",
        slow=True,
    ),
    Question(
        "A matrix by a vector is not a row of a matrix by a matrix: which additions are they?",
        ("numpy/numpy#13732", "numpy/numpy#6887", "pytorch/pytorch#111840"),
        f"explain questions/gemv.npz --against {FP32}",
        2,
        "Lanes of a vector register, and the order in which they are added, as OpenBLAS's sgemv has them; its sgemm is "
        "a chain, or two lanes ([libraries.md](libraries.md)).",
        slow=True,
    ),
    Question(
        "Does the order of the products within an instruction matter?",
        ("Dao-AILab/flash-attention#145", "pytorch/pytorch#60234"),
        "prove order-independence h100 HMMA.16816.F32",
        1,
        "Within one instruction it does not, for all inputs; between instructions it does: each result is rounded.",
        slow=True,
    ),
    Question(
        "Why do small gradients vanish on MI250X and not on other cards?",
        ("ROCm/Tensile#1583", "ROCm/composable_kernel#671", "ROCm/rocm-libraries#12322"),
        "show mi250x v_mfma_f32_32x32x8f16",
        12,
        "Its fp16 instructions take subnormal numbers for zero, and give zero for them.",
    ),
    Question(
        "What is TF32, that a matmul of float32 is off by 1e-3?",
        ("triton-lang/triton#6265", "pytorch/pytorch#60234"),
        "show a100 tf32",
        8,
        "Factors of 10 fractional bits: float32 is rounded to them before the unit sees it.",
    ),
    Question(
        "I gave an accumulator of more bits to Hopper's fp8 and saw nothing cut. Why?",
        ("deepseek-ai/DeepGEMM#37",),
        "list h100 e4m3",
        8,
        "Only the warp group's instruction cuts to 13 bits. The code in the thread calls `mma.sync` (16×8×32), which "
        "is done by the unit for fp16: that keeps 25.",
    ),
    Question(
        "What does an MI250X make of the least fp16 number times one?",
        ("openxla/xla#39730", "pytorch/pytorch#191552"),
        "run mi250x v_mfma_f32_32x32x8f16 --a 0x0001 --b 1 --pad",
        9,
        "Zero, whatever the sum could hold.",
    ),
    Question(
        "My split-K kernel is not the reference's to the bit. What is it?",
        ("tile-ai/tilelang#350",),
        "explain questions/split16.npz --device h100",
        3,
        "Split-K by 4, the parts added in pairs in fp32: every element, so that nothing is wrong with it.",
        slow=True,
    ),
    Question(
        "Nothing explains my linear layer. Did I forget something?",
        (),
        "explain questions/bias.npz --device h100",
        3,
        "The bias, which is in D and was not given.",
        status=1,
        slow=True,
    ),
    Question(
        "All of D is a little off. Which loads did my kernel leave out?",
        (),
        "explain questions/tile.npz --device h100",
        8,
        "The last 64 products.",
        status=1,
        slow=True,
    ),
    Question(
        "float32 in, float32 out, and still three digits are right. What was rounded?",
        (),
        f"explain questions/rounded.npz --against {FP32}",
        8,
        "A and B, to bf16, before the product.",
        status=1,
        slow=True,
    ),
    Question(
        "Which tolerance is right for bf16 results of K = 2048?",
        ("pytorch/pytorch#111457", "hw-native-sys/pypto#1945"),
        "bound h100 HMMA.16816.F32.BF16 --k 2048 --d-format bf16",
        3,
        "This one, which no result exceeds; `tolerance` in [testing.md](testing.md) makes atol and rtol of it.",
        slow=True,
    ),
)


def answer(question: Question) -> tuple[list[str], int]:
    """Return what the command prints, and its status, in a folder that has the products."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = cli.main(shlex.split(question.command))
    lines = [_TIMES.sub("… s", line.rstrip()) for line in out.getvalue().splitlines()]
    return [*lines[: question.lines], *(["…"] if len(lines) > question.lines else [])], status


def block(question: Question, lines: list[str]) -> str:
    """The command and its answer as the page has them."""
    return "\n".join(["```", f"$ mmaformal {question.command}", *lines, "```"])


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for number, each in enumerate(QUESTIONS, 1):
        lines, _ = answer(each)
        parts.append(f"## {number}. {each.title}\n\n{each.links}\n\n{block(each, lines)}\n\n{each.answer}")
    return "\n\n".join(parts) + "\n"


HEAD = """# Questions that people ask

Each was asked in the threads named, or by a new user, and is answered by one command. Models made the products
(`python tools/docs/question_products.py questions`), since those of the threads are not to be had. Made by
`python tools/docs/questions.py`; a test runs every command."""


def main() -> None:
    """Print the page."""
    os.environ.setdefault("COLUMNS", _WIDTH)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        products.write(Path("questions"))
        print(page(), end="")


if __name__ == "__main__":
    main()
