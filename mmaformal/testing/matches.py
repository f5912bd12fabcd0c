"""A product, bit for bit."""

from __future__ import annotations

from typing import Unpack

from mmaformal.formats import Format
from mmaformal.gemm import Division
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.queries.structure_search import codes_differ
from mmaformal.structures import Structure
from mmaformal.testing.given import GivenProduct
from mmaformal.testing.seen import saw
from mmaformal.testing.told import mismatch_text


def assert_matches(
    out: Matrix,
    A: Matrix,
    B: Matrix,
    C: Matrix | None = None,
    *,
    instruction: Instruction | str | None = None,
    structure: Structure | str | None = None,
    d_format: Format | str | None = None,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    explain: float = 20.0,
    **how: Unpack[Division],
) -> None:
    """Assert that `out` is C + A·B as the unit gives it, bit for bit; a NaN is matched by any NaN.

    out (M×N), A (M×K), B (K×N), C (M×N, default +0): arrays or tensors as `matmul` takes them, batches and vectors too.
    Of results that are narrower than the unit's, as bf16 is where it gives fp32, the unit's are rounded to nearest
    even; of bit patterns `d_format` says what they are.

    `instruction` makes it, K divided as `matmul` divides it (`promote_every=4`, `split_k=2`, …), or a `structure`, such
    as `mmaformal.explain` finds.  The message of an AssertionError says where elements are wrong, shows the first stage
    by stage, and names a structure of any unit that explains all of them, if there is one, which is looked for for
    `explain` seconds (0: not at all).

    Raises ValueError for shapes that do not fit, TypeError for numbers of other types than the instruction's.
    """
    __tracebackhide__ = True
    given = GivenProduct.of(
        out,
        A,
        B,
        C,
        instruction=instruction,
        structure=structure,
        d_format=d_format,
        scale_a=scale_a,
        scale_b=scale_b,
    )
    expected = given.expected(**how)
    wrong = codes_differ(given.out, expected, given.d_format)
    if wrong.any():
        raise AssertionError(mismatch_text(given, expected, wrong, how, explain))
    saw("matches", given.instruction.label, given.out.size)
