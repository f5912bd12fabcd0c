"""The sorted terms of a step are the numbers of its codes: normalised, and in another order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import z3

from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.efda.proofs.sorted_sums import SortedSum
from mmaformal.encodings.smt.blocks import Term
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.wide_numbers import Scaled
from mmaformal.theory.code_numbers import CodeNumbers, total_of


@dataclass(frozen=True)
class SortedTerms:
    """The sum of sorted terms, and the numbers of the codes."""

    sums: SortedSum
    codes: CodeNumbers

    def prove(self) -> z3.BoolRef:
        """That the sum of the three terms is that of the codes.  Raises NotProvedError."""
        step, w = self.sums.at.step, self.sums.w
        if len(step.products) != len(step.terms) - 1:
            raise NotProvedError("the terms are the products and c", "unknown", "fewer products than terms")
        normalised = [self._prove_normalised(k) for k in range(len(step.terms))]
        terms, ordered = ([self.sums.term(x) for x in each] for each in (step.terms, step.sorted))
        in_order = self._prove_in_order(terms, ordered)
        total, text = total_of(ordered), "the sum is that of the codes' numbers"
        same = total == self.codes.total
        of_codes = w.theory.claim("sum of codes", text, same, [in_order, *normalised])
        paired = self._prove_paired(ordered)
        same = self.sums.exact == self.codes.total
        return w.theory.claim("same sum", "it is one sum", same, [paired, of_codes])

    def _prove_normalised(self, k: int) -> z3.BoolRef:
        """That the k-th normalised term is the number of its codes."""
        at, w, said, spec = self.sums.at, self.sums.w, self.sums.said, self.codes.spec
        step, last = at.step, len(at.step.terms) - 1
        x, t = (step.addend if k == last else step.products[k]), step.terms[k]
        name = "c" if k == last else f"product {k}"
        places = spec.c_format.fraction_bits if k == last else efda.fraction_bits(spec)
        usual, finite = said[f"{name} normalised"], said[f"{name} range"].arg(1)
        model, own = Scaled(x.significand, at.place(x.exponent, places)), self.sums.size(t)
        in_model = w.in_range(model.t, [finite])
        in_own = w.in_range(own.t, [usual.arg(2)])
        sharp, sign = usual.arg(0), usual.arg(1)
        equal, zero = w.equal(own, model, [in_model, in_own]), w.roomy(model, in_model).arg(1)
        mine, other = w.number(t.sign, own), w.number(x.sign, model)
        text = "a normalised term is the number itself"
        one = w.theory.claim("normalised term", text, mine == other, [equal, sharp, sign, zero])
        operands = [step.c] if k == last else [step.a[k], step.b[k]]
        two = self.codes.prove_term(k, x, model.t, operands, finite)
        value = self.codes.integers[k]
        return w.theory.claim("term of codes", text, mine == value, [one, two])

    def _prove_in_order(self, terms: list[z3.BitVecRef], ordered: list[z3.BitVecRef]) -> z3.BoolRef:
        """That the sum of sorted terms is that of the terms."""
        w, step, text = self.sums.w, self.sums.at.step, "the order does not matter"
        goal, ways = total_of(ordered) == total_of(terms), []
        for order in permutations(range(3)):
            pairs = [(i, j) for i, j in enumerate(order)]
            same = [ordered[i] == terms[j] for i, j in pairs]
            equal = [self._equal(step.sorted[i], step.terms[j]) for i, j in pairs]
            numbers = [
                w.theory.claim(
                    "sorted term",
                    "equal terms are equal numbers",
                    z3.Implies(equal[i], same[i]),
                )
                for i, j in pairs
            ]
            claim = z3.Implies(z3.And(same), goal)
            total = w.theory.claim("sum in order", text, claim)
            ways.append(w.follows("sum, sorted", text, z3.Implies(z3.And(equal), goal), [*numbers, total]))
        return w.follows("sum of terms", text, goal, [self.sums.said["sorted"], *ways])

    @staticmethod
    def _equal(x: Term, y: Term) -> z3.BoolRef:
        return z3.And([u == v for u, v in zip(x, y, strict=True)])

    def _prove_paired(self, ordered: list[z3.BitVecRef]) -> z3.BoolRef:
        """That two of the sorted terms and the third are all three."""
        at, w, exact, text = self.sums.at, self.sums.w, self.sums.exact, "the order does not matter"
        paired, rest, goal, cases = self.sums.term(at.paired), self.sums.term(at.rest), None, []
        goal = exact == total_of(ordered)
        one, _, three = ordered
        for where, first, last in ((at.near, one, three), (z3.Not(at.near), three, one)):
            same = z3.And(paired == first, rest == last)
            claim = z3.Implies(where, same)
            pair = "the first two, or the last two"
            known = w.theory.claim("pair", pair, claim)
            total = w.theory.claim("paired sum", text, z3.Implies(same, goal))
            cases.append(w.follows("order of the sum", text, z3.Implies(where, goal), [known, total]))
        return w.theory.claim("exact sum", text, goal, cases)
