"""Two models that round one exact sum once, by the definition of rounding, give one code.

Each model has its theorem (`rounded_sums.SumTheorem`): wherever nothing is special, d is the sum of the codes' numbers
rounded, and has its sign.  Then:

1. *order*:    equal numbers are rounded to codes in either order (`Grid.keeps_order`), so to one, or to zeros;
2. *sign*:     where the sum is not zero, the codes have its sign;
3. *zeros*:    where it is zero, each model has its own sign; if they have not the same one, every term is negative in
               one of them, so that all terms are −0: where not all are, the codes are equal;
4. *specials*: the same inputs are special in both, and give the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.out_of_order import order
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.formats import Format
from mmaformal.proof.cuts import follows
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import ArgumentError, NotProvedError
from mmaformal.proof.rules import Theory, instance
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import is_special
from mmaformal.theory.numbers import CodeNumbers, coded_number, coded_numbers
from mmaformal.theory.rounded_sums import RoundsExactly, Span, SumTheorem, grid_of


def _zeros(spec: DotAdd, x: Inputs) -> list[z3.BoolRef]:
    """Return for each product, and for c last, whether it is zero."""

    def zero(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
        return coded_number(code, fmt).significand == 0

    pairs = zip(x.a, x.b, strict=True)
    products = [z3.Or(zero(a, spec.a_format), zero(b, spec.b_format)) for a, b in pairs]
    return [*products, zero(x.c, spec.c_format)]


def all_minus_zero(spec: DotAdd, x: Inputs) -> z3.BoolRef:
    """Whether every product, and c, is −0."""
    terms = zip(coded_numbers(spec, x), _zeros(spec, x), strict=True)
    return z3.And([z3.And(n.sign == 1, zero) for n, zero in terms])


@dataclass(frozen=True)
class ModelPair:
    """Two such models of the same codes."""

    first: RoundsExactly
    second: RoundsExactly

    @property
    def results(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return self.first.step.result, self.second.step.result

    @property
    def given(self) -> z3.BoolRef:
        return z3.And(self.first.given, self.second.given)

    @property
    def same_zero(self) -> z3.BoolRef:
        """Whether an exact zero has one sign in both models, or not every term is −0, or something is special."""
        minus = all_minus_zero(self.first.spec, self.first.inputs)
        return z3.Or(self.first.zero == self.second.zero, z3.Not(minus), is_special(self.first.step))

    @property
    def statement(self) -> z3.BoolRef:
        """The codes are equal, but for zeros of two signs."""
        d, e = self.results
        return z3.Implies(z3.And(self.given, self.same_zero), d == e)

    @property
    def special(self) -> z3.BoolRef:
        """Both are special of the same inputs, and give the same code then."""
        (d, e), some = self.results, is_special(self.first.step)
        alike = z3.And(z3.Implies(some, d == e), some == is_special(self.second.step))
        return z3.Implies(self.given, alike)

    @property
    def nothing_special(self) -> z3.BoolRef:
        none = [z3.Not(is_special(model.step)) for model in (self.first, self.second)]
        return z3.And(*none, self.first.given, self.second.given)

    @property
    def span(self) -> Span:
        return self.first.span.with_(self.second.span)

    def prove_special(self, theory: Theory) -> z3.BoolRef:
        """`special`, a theorem.  Raises NotProvedError."""
        (d, e), steps = self.results, (self.first.step, self.second.step)
        equal = z3.And([u == v for u, v in zip(steps[0].special, steps[1].special, strict=True)])
        text = "the same inputs are special"
        same = theory.claim("special", text, z3.Implies(self.given, equal))
        some = is_special(steps[0])
        text = "what is special has one code"
        code = theory.claim("special code", text, z3.Implies(z3.And(some, equal), d == e))
        text = "both are special of the same inputs, and give the same code then"
        theory.claim("special alike", text, self.special, [same, code])
        return theory.theorem(text, self.special)


@dataclass(frozen=True)
class OneCode:
    """Such a pair, and the theorems of both in one theory; that of what is special is one, too."""

    theory: Theory
    pair: ModelPair
    x: SumTheorem
    y: SumTheorem

    @property
    def codes(self) -> CodeNumbers:
        """Those of both."""
        return CodeNumbers(self.x.grid.numbers, self.pair.first.spec, self.pair.first.inputs)

    def prove(self) -> z3.BoolRef:
        """The pair's statement, a theorem.  Raises NotProvedError."""
        pair, text = self.pair, "the codes are equal"
        numbers = self._prove_one([self._prove_order(), self._prove_zeros()])
        self._follows("one code", text, pair.statement, [pair.special, numbers], pair.same_zero)
        return self.theory.theorem(text, pair.statement)

    # ---- numbers

    def _follows(
        self, name: str, text: str, claim: z3.BoolRef, using: Sequence[z3.BoolRef], *whole: z3.BoolRef
    ) -> z3.BoolRef:
        return self.x.grid.numbers.follows(name, text, claim, using, *whole)

    def _prove_order(self) -> z3.BoolRef:
        """Prove that where nothing is special, both codes are of one place in order."""
        grid, total, (d, e) = self.x.grid, self.x.total, self.pair.results
        point, own = grid.numbers.point, grid.codes
        said = [
            instance(
                self.theory,
                grid.keeps_order,
                [(point.x, total), (point.y, total), (own[0], u), (own[1], v)],
            )
            for u, v in ((d, e), (e, d))
        ]
        same = self.theory.claim("itself", "a number is not below itself", total - total >= 0)
        goal = z3.Implies(self.pair.nothing_special, z3.And(order(d) <= order(e), order(e) <= order(d)))
        text = "where nothing is special, neither code is above the other"
        return grid.numbers.follows(
            "order of codes", text, goal, [*said, same, self.x.theorem, self.y.theorem]
        )

    def _prove_one(self, given: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Prove that where nothing is special, the codes are equal."""
        (d, e), total, zero = self.pair.results, self.x.total, self.x.total == 0
        signs = [
            z3.And(
                z3.Implies(zero, code == z3.Concat(own, z3.BitVecVal(0, code.size() - 1))),
                z3.Implies(z3.Not(zero), self._sign_of(code) == (total < 0)),
            )
            for code, own in ((d, self.x.zero), (e, self.y.zero))
        ]
        ordered = z3.And(order(d) <= order(e), order(e) <= order(d))
        claim = z3.Implies(z3.And(ordered, *signs, self._zeros), d == e)
        one = self.theory.claim("same place", "codes of one place and one sign are one code", claim)
        goal = z3.Implies(z3.And(self.pair.nothing_special, self.pair.same_zero), d == e)
        text = "where nothing is special, the codes are equal"
        given = [*given, one, self.x.signed, self.y.signed]
        return self._follows("numbers", text, goal, given, self._zeros, self.pair.same_zero)

    @staticmethod
    def _sign_of(code: z3.BitVecRef) -> z3.BoolRef:
        return z3.Extract(code.size() - 1, code.size() - 1, code) == 1

    # ---- zeros

    @property
    def _zeros(self) -> z3.BoolRef:
        return z3.Implies(self.x.total == 0, self.x.zero == self.y.zero)

    def _prove_zeros(self) -> z3.BoolRef:
        """Prove that where zeros have one sign or not every term is −0, a sum that is zero gives one zero."""
        numbers, either = self.codes.numbers, self.x.zero == self.y.zero
        negative = z3.And([n.sign == 1 for n in numbers])
        text = "both models give a sum of zero the same sign, unless every term is negative"
        apart = self.theory.claim(
            "signs of zeros", text, z3.Implies(self.pair.nothing_special, z3.Or(either, negative))
        )
        goal = z3.Implies(z3.And(self.pair.nothing_special, self.pair.same_zero), self._zeros)
        text = "where the sum is zero, the signs of zeros are the same"
        return self._follows("zeros", text, goal, [apart, self._prove_negative()])

    def _prove_negative(self) -> z3.BoolRef:
        """Prove that a sum of negative numbers is zero only where all of them are."""
        w, theory, numbers = self.codes.w, self.theory, self.codes.numbers
        integers, text = self.codes.integers, "no sum of negative numbers is above one of them"
        sizes = [self.codes.size(k) for k in range(len(numbers))]
        rooms = [w.roomy(size, w.in_range(size.t, [])) for size in sizes]
        values = [w.value(size) for size in sizes]
        signs = [n.sign == 1 for n in numbers]
        terms = [
            theory.claim("negative", "a negative number is −|x|", z3.Implies(s, x == -v))
            for s, x, v, n in zip(signs, integers, values, numbers, strict=True)
        ]
        zero = z3.And([v == 0 for v in values])
        claim = z3.Implies(
            z3.And(self.codes.total == 0, *(x == -v for x, v in zip(integers, values, strict=True))), zero
        )
        whole = theory.claim("negative sum", text, claim, [room.arg(0) for room in rooms])
        zeros = _zeros(self.codes.spec, self.codes.inputs)
        factors = [self._prove_no_zero(k, zero) for k, zero in enumerate(zeros[:-1])]
        goal = z3.Implies(z3.And(self.codes.total == 0, *signs), z3.And(zeros))
        text = "a sum of negative numbers is zero only where all of them are"
        return w.follows("all zero", text, goal, [*terms, whole, *rooms, *factors], *zeros)

    def _prove_no_zero(self, k: int, zero: z3.BoolRef) -> z3.BoolRef:
        """Prove that a product is zero only where a factor is."""
        x, spec = self.codes.inputs, self.codes.spec
        factors = [
            coded_number(x.a[k], spec.a_format).significand,
            coded_number(x.b[k], spec.b_format).significand,
        ]
        product = self.codes.numbers[k].significand
        larger = [
            self.theory.claim(
                "product of a factor",
                "a product of significands is not below either of them, unless the other is zero",
                z3.Or(other == 0, z3.UGE(product, fit(one, product.size()))),
            )
            for one, other in (factors, factors[::-1])
        ]
        claim, text = z3.Implies(product == 0, zero), "a product is zero only where a factor is"
        return self.theory.claim("no zero", text, claim, larger)


def prove_one_code(theory: Theory, pair: ModelPair) -> z3.BoolRef:
    """The pair's statement, a theorem.  Raises NotProvedError."""
    rho, other = (model.spec.parameters.last_rounding for model in (pair.first, pair.second))
    if rho != other:
        raise NotProvedError("both models round alike", "unknown", "they have other roundings")
    pair.prove_special(theory)
    grid = grid_of(theory, rho, pair.span)
    grid.prove()
    one = OneCode(theory, pair, pair.first.prove(grid), pair.second.prove(grid))
    if not one.x.total.eq(one.y.total):
        raise NotProvedError("both models add the same numbers", "unknown", "they are others")
    return one.prove()


def _result(spec: DotAdd) -> z3.BitVecRef:
    x = symbolic_inputs(spec)
    return smt.dot_add(spec, x.a, x.b, x.c).result


def prove_codes_equal(asker: Asker, x: DotAdd, y: DotAdd, allowed: z3.BoolRef) -> Proof | None:
    """Prove that two models of one step give one code of all inputs that are allowed; None if their facts do not say
    it."""
    if any(spec.k != spec.parameters.step_products or spec.product_order for spec in (x, y)):
        return None
    first, second = (facts_of(spec).rounds_exactly(spec) for spec in (x, y))
    if first is None or second is None:
        return None
    pair, theory = ModelPair(first, second), Theory(asker)
    d, e = pair.results
    try:
        text = "what is allowed are no zeros to which the models give two signs"
        zeros = theory.holds("zeros", text, z3.Implies(allowed, pair.same_zero))
        same = prove_one_code(theory, pair)
        own = [_result(model.spec) for model in (pair.first, pair.second)]
        text = "a model's d is the code of the sum that is rounded"
        steps = [theory.claim("step", text, x == y) for x, y in zip(own, (d, e), strict=True)]
        goal = z3.Implies(allowed, own[0] == own[1])
        alike = z3.Implies(z3.And(d == e, *steps), own[0] == own[1])
        alike = theory.claim("codes", "equal codes are those of the models", alike)
        text = "so the codes are equal"
        follows(theory, "equal codes", text, goal, [same, *steps, zeros, alike], [allowed, pair.same_zero])
        theory.theorem("so the codes of all inputs that are allowed are equal", goal)
        return theory.proof()
    except (NotProvedError, ArgumentError):
        return None
