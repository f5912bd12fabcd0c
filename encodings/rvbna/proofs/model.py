"""Why the pseudo-code gives what the model of RISC-V's dot products gives: where its expressions are corrected.

All three of them for every input.  The second and the third are of subnormal sums, which fp8 has none of.  The first
only loses what is below fp32's last place: nothing, where there is no more than one product.
"""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan, is_zero
from mmaformal.cases.inputs import Inputs
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.encodings.rvbna import Rvbna
from mmaformal.encodings.rvbna import smt as rvbna
from mmaformal.encodings.smt.blocks import ExponentRange
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.same_steps import prove_same_steps
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.cuts import compared
from mmaformal.proof.fused import prove_largest
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def _text_of(x: DotAdd, y: DotAdd) -> Rvbna | None:
    """Returns what x is as the text, where y is a bulk-normalised dot product of as many products; else None."""
    p, q = x.parameters, y.parameters
    if not (isinstance(p, Rvbna) and not p.ieee and isinstance(q, Lowered) and x.replace(parameters=q) == y):
        return None
    own = q.L == len(q.order) == p.n and fp32.fraction_bits + p.guard_bits == q.F
    return p if own else None


def _tiny_are_right(spec: DotAdd, p: Rvbna) -> bool:
    """Whether subnormal sums are rounded as meant, or there are none: the least is a bit at the lowest place."""
    lowest = p.zero_exponent(spec) - p.guard_bits - fp32.fraction_bits
    return {2, 3} <= set(p.corrected) or lowest >= fp32.min_exponent


def applies(x: DotAdd, y: DotAdd) -> bool:
    """Whether x is the text, corrected as far as it matters for its formats, and y the model of as many products."""
    p = _text_of(x, y)
    return p is not None and 1 in p.corrected and _tiny_are_right(x, p)


def applies_to_one(x: DotAdd, y: DotAdd) -> bool:
    """Whether both agree where one product at most is not zero: the first expression may be as it is printed."""
    p = _text_of(x, y)
    return p is not None and p.n == x.k and _tiny_are_right(x, p)


def _one_product(x: DotAdd, inputs: Inputs) -> int | None:
    """Returns the place of the only product whose factors are not both written as zeros; None if there are more."""
    formats = x.a_format, x.b_format
    some = [
        k
        for k, pair in enumerate(zip(inputs.a, inputs.b, strict=True))
        if not all(
            z3.is_true(z3.simplify(is_zero(code, fmt))) for code, fmt in zip(pair, formats, strict=True)
        )
    ]
    return some[0] if len(some) == 1 else None


def prove_equal(asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
    """Proves that both give the same code for the inputs; None if a claim was not proved."""
    p, q = x.parameters_as(Rvbna), y.parameters
    assert isinstance(q, Lowered)
    alone = _one_product(x, inputs)
    return prove_same_steps(
        asker,
        inputs,
        p.n,
        (
            lambda k, c: rvbna.step(x, p, inputs.a[k], inputs.b[k], c),
            lambda k, c: lowered.step(y, q, inputs.a[k], inputs.b[k], c, Stages()),
        ),
        lambda proving, left, right, c: _SameStep(proving, (x, p), (y, q), left, right, alone).prove(c),
    )


class _SameStep:
    """Why one step of the text and one of the model, from the same codes, give the same code."""

    def __init__(
        self,
        proving: Composing,
        text: tuple[DotAdd, Rvbna],
        model: tuple[DotAdd, Lowered],
        left: rvbna.RvbnaStep,
        right: lowered.LoweredStep,
        alone: int | None,
    ) -> None:
        """`alone`: the place of the only product that may not be zero, if there is no more than one."""
        self.proving, self.left, self.right = proving, left, right
        self.inner, self.alone = right.inner[0], alone
        self.mine = rvbna.exponents_of(*text)
        self.other = fda.exponents_of(model[1].inner_dot_add(model[0]), model[1].inner)
        self.bits = max(self.mine.bits, self.other.bits) + 2

    def prove(self, c: z3.BitVecRef) -> z3.BoolRef:
        """Proves and returns that the results are the same, c being added."""
        proving, left, inner = self.proving, self.left, self.inner
        exponents = [self._exponent(k) for k in range(len(left.products))]
        e_max, below = self._largest(exponents)
        aligned = [self._aligned(k, [e_max, exponents[k], below[k]]) for k in range(len(left.products))]
        nothing = proving.claim("c", "the model's c, which is zero, adds nothing", inner.aligned_c == 0)
        bits = max(left.accumulator.size(), inner.total.size())
        sums = _wide(left.accumulator, bits) == _wide(inner.total, bits)
        same = [*aligned, nothing]
        total = proving.claim("sums", "so the sums are the same", sums, same, compared(same))
        least = left.accumulator != 1 << (left.accumulator.size() - 1)
        proving.claim("least", "no sum is the least number of its width", least, (), compared(same))
        special = proving.claim(
            "specials",
            "special values are the same",
            z3.And([u == v for u, v in zip(left.special, inner.special, strict=True)]),
        )
        lowest = z3.UGE(inner.e_max, self.other.constant(self.mine.low))
        low = proving.claim("lowest", "the largest exponent is not below that of a zero", lowest)
        few = [] if self.alone is None else [self._few_bits(self.alone)]
        dot = self._rounded([total, least, special, low, e_max, *few])
        same, added = left.result == self.right.result, [left.dot, self.right.dot, c]
        cases = [
            proving.claim(what, f"adding c to {what} gives the same code", z3.Implies(case, same), hint=added)
            for what, case in zip(("one dot product", "two NaNs"), dot.children(), strict=True)
        ]
        return proving.claim("d", "so both give the same code", same, [dot, *cases])

    def _rounded(self, given: list[z3.BoolRef]) -> z3.BoolRef:
        """Proves and returns that both round the sum to one code, or give a NaN: for each number of leading zeros."""
        x, y, lzc, claim = self.left.dot, self.right.dot, self.left.number.lzc, self.proving.claim
        same = z3.Or(x == y, z3.And(is_nan(x, fp32), is_nan(y, fp32)))  # the model's NaN is another one
        cases = [lzc == zeros for zeros in range(self.left.number.magnitude.size() + 1)]
        some = claim("leading zeros", "a sum has as many leading zeros as its width at most", z3.Or(cases))
        text, inner = "so sums with as many leading zeros are rounded alike", self.inner
        stages = [self.left.accumulator, inner.total, self.left.max_exp, inner.e_max, *self.left.special]
        proved = [
            claim(f"{n} leading zeros", text, z3.Implies(case, same), given, hint=stages)
            for n, case in enumerate(cases)
        ]
        return claim("dot", "so both give the same dot product, or a NaN", same, [some, *proved])

    def _few_bits(self, k: int) -> z3.BoolRef:
        """Proves and returns that a sum of one product has no bit below those of the product."""
        claim, accumulator, aligned = self.proving.claim, self.left.accumulator, self.left.aligned[k]
        product, e_max = self.left.products[k], self.left.max_exp
        low = aligned.size() - product.significand.size()
        text = "the largest exponent is that of the only product"
        own = claim("own exponent", text, z3.Or(e_max == product.exponent, product.significand == 0))
        ends = z3.Extract(low - 1, 0, aligned) == 0
        ends = claim("own place", "so it loses no bit, and has none below its own", ends, [own])
        few = z3.Extract(low - 1, 0, accumulator) == 0
        return claim("few bits", "nor has the sum", few, [ends])

    def _number(self, offset: z3.BitVecRef, exponents: ExponentRange) -> z3.BitVecRef:
        """Returns an exponent, of its offset from the least of its range, in two's complement."""
        return z3.ZeroExt(self.bits - offset.size(), offset) + z3.BitVecVal(exponents.low, self.bits)

    def _exponent(self, k: int) -> z3.BoolRef:
        """Proves and returns that a product has the same exponent."""
        x, y = self.left.products[k].exponent, self.inner.products[k].exponent
        same = self._number(x, self.mine) == self._number(y, self.other)
        return self.proving.claim(f"exponent {k}", "a product has the same exponent", same)

    def _largest(self, exponents: list[z3.BoolRef]) -> tuple[z3.BoolRef, list[z3.BoolRef]]:
        """Proves and returns that the largest exponents are the same, and that no product's is above.

        Neither is above the other: each is one of its own terms, and none of those is above the other largest.
        """
        left, inner, claim = self.left, self.inner, self.proving.claim
        mine, other = [x.exponent for x in left.products], [x.exponent for x in inner.products]
        top, e_max = self._number(left.max_exp, self.mine), self._number(inner.e_max, self.other)
        below, some = prove_largest(self.proving, "text", left.max_exp, mine)
        at_most, one = prove_largest(self.proving, "model", inner.e_max, [*other, inner.addend.exponent])
        text = "no exponent of the one is above the largest of the other"
        lower = [
            claim(f"text below {k}", text, self._number(x, self.mine) <= e_max, [exponents[k], at_most[k]])
            for k, x in enumerate(mine)
        ]
        upper = [
            claim(f"model below {k}", text, self._number(x, self.other) <= top, [exponents[k], below[k]])
            for k, x in enumerate(other)
        ]
        zero = self._number(inner.addend.exponent, self.other) <= top
        upper.append(claim("c below", "nor is that of the model's c, which is zero", zero))
        text = "so the largest of the one is not above that of the other"
        order = [
            claim("text's largest", text, top <= e_max, [some, *lower]),
            claim("model's largest", text, e_max <= top, [one, *upper]),
        ]
        same = claim("e_max", "so the largest exponents are the same", top == e_max, order)
        return same, at_most[:-1]

    def _aligned(self, k: int, given: list[z3.BoolRef]) -> z3.BoolRef:
        """Proves and returns that a product's aligned magnitude is the same."""
        u, v = self.left.aligned[k], self.inner.aligned[k]
        same = z3.And(u == v, self.left.products[k].sign == self.inner.products[k].sign)
        return self.proving.claim(f"aligned {k}", "so aligned products are the same", same, given)


def _wide(x: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    return z3.SignExt(bits - x.size(), x) if bits > x.size() else x
