"""Laws of what may be changed in a case without changing a result, each proved of each model before it is used.

A search for the smallest case looks at one case of those that are alike.  Which are alike is not a matter of words:

- *order*: products of one class (`symmetry_classes`) change places; the argument is that of `order_independence`.
- *exchange*: b·a for a·b.
- *signs*: (−a)·(−b) for a·b.
- *zeros*: a product of ±0 and a finite number is ±0·+0 of its sign ("signed"), or +0·+0 ("plus").

The last three are about one product.  A step's result is made of terms that depend on one product alone, and of the
rest: so it is enough that a change of that product leaves each of those terms as it is (`FactorTerms`): a lemma about
one product, and the same for all that look alike.

A law is proved of one step of a model, for any c.  A chain is made of such steps, the result of one being the c of the
next, so the law holds in a chain.  What is proved is proved of the SMT encoding; that the executable encoding gives
the same codes is what `verify` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.codes import sign_bit
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.symmetries import Zeros, is_zero_product, symmetry_classes, zero_of_sign
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import all_of, any_of
from mmaformal.solver.answers import Obligation, Proof
from mmaformal.solver.asking import Asker, constants_of
from mmaformal.spec import DotAdd

#: The parts of the time given after which the order law, and a law of one product, are done without if not proved.
_ORDER, _PRODUCT = 0.12, 0.08


def first_step(spec: DotAdd) -> DotAdd | None:
    """The model of one step of a chain; None where steps are not alike, since scale blocks straddle them."""
    spec = spec.in_order
    n, block = spec.parameters.step_products, spec.scale_block
    if spec.k == n:
        return spec
    if spec.scale_format is None:
        return spec.replace(k=n)
    if block % n == 0:
        return spec.replace(k=n, scale_block=n)
    return spec.replace(k=n) if n % block == 0 else None


# ---- what a formula makes of one product -------------------------------------------------------------------------

_A, _B = "a", "b"  #: what the factors of a product are called in the lemmas about it


CodeChange = Sequence[tuple[z3.ExprRef, z3.ExprRef]]  #: what the codes `a` and `b` of a product become


@dataclass(frozen=True)
class FactorTerms:
    """The largest terms of formulas that depend on the codes of one product alone.

    A formula's value depends on a product through these only.  `conditions` are those that are asserted as they are;
    for them it is enough that a change leaves them true.  Keys are the ids of the terms in which the codes are called
    `a` and `b`, whatever the product, so that products of which the same is made have the same keys.
    """

    values: Mapping[int, tuple[z3.ExprRef, z3.ExprRef]]  #: with `a` and `b`; with the product's own codes
    conditions: Mapping[int, tuple[z3.ExprRef, z3.ExprRef]]

    @property
    def key(self) -> tuple[frozenset[int], frozenset[int]]:
        return frozenset(self.values), frozenset(self.conditions)

    def unchanged(self, change: CodeChange, premise: z3.BoolRef) -> z3.BoolRef:
        """The claim that a change of a product of which the premise holds changes nothing."""

        def sort(terms: Mapping[int, tuple[z3.ExprRef, z3.ExprRef]]) -> list[z3.ExprRef]:
            return sorted((term for term, _ in terms.values()), key=lambda term: str(term.sexpr()))

        def moved(term: z3.ExprRef) -> z3.ExprRef:
            return z3.substitute(term, *change)

        claims = [term == moved(term) for term in sort(self.values)]
        claims += [z3.Implies(term, moved(term)) for term in sort(self.conditions)]
        return z3.Implies(premise, all_of(claims))


_MIXED = -1


def product_terms(assertions: Sequence[z3.ExprRef], inputs: Inputs, joined: bool = True) -> list[FactorTerms]:
    """For each product, what formulas make of it alone.

    With `joined`, what a disjunction (or a conjunction) is told of one product is one term, whatever its parts.
    """
    owners = {x.get_id(): k for side in (inputs.a, inputs.b) for k, x in enumerate(side)}
    scales = {x.get_id() for x in (*inputs.scale_a, *inputs.scale_b)}
    values: list[dict[int, z3.ExprRef]] = [{} for _ in inputs.a]
    conditions: list[dict[int, z3.ExprRef]] = [{} for _ in inputs.a]
    owner: dict[int, int | None] = {}  # of each term: its product, None for none, _MIXED for more than that
    kept: list[z3.ExprRef] = []  # ids are those of terms that live

    def owner_of(term: z3.ExprRef, children: Sequence[z3.ExprRef]) -> int | None:
        if not children:
            if term.get_id() in owners:
                return owners[term.get_id()]
            free = term.decl().kind() == z3.Z3_OP_UNINTERPRETED
            return _MIXED if free and term.get_id() not in scales else None
        of = {owner[x.get_id()] for x in children} - {None}
        return None if not of else of.pop() if len(of) == 1 else _MIXED

    def note(term: z3.ExprRef, children: Sequence[z3.ExprRef]) -> None:
        parts: dict[int, list[z3.ExprRef]] = {}
        for x in children:
            k = owner[x.get_id()]
            if k is not None and k != _MIXED:
                parts.setdefault(k, []).append(x)
        for k, terms in parts.items():
            if joined and len(terms) > 1 and (z3.is_or(term) or z3.is_and(term)):
                terms = [any_of(terms) if z3.is_or(term) else all_of(terms)]
                kept.extend(terms)
            values[k].update({x.get_id(): x for x in terms})

    tops = _conjuncts(assertions)
    stack: list[tuple[z3.ExprRef, list[z3.ExprRef] | None]] = [(x, None) for x in tops]
    while stack:
        term, children = stack.pop()
        if term.get_id() in owner:
            continue
        if children is None:
            children = term.children()
            kept.append(term)
            stack.append((term, children))
            stack += [(x, None) for x in children if x.get_id() not in owner]
            continue
        owner[term.get_id()] = owner_of(term, children)
        if owner[term.get_id()] == _MIXED:
            note(term, children)
    for top in tops:
        k = owner[top.get_id()]
        if k is not None and k != _MIXED:
            (conditions if z3.is_bool(top) else values)[k][top.get_id()] = top

    def renamed(terms: dict[int, z3.ExprRef], k: int) -> dict[int, tuple[z3.ExprRef, z3.ExprRef]]:
        a, b = inputs.a[k], inputs.b[k]
        pairs = [(a, z3.BitVec(_A, a.size())), (b, z3.BitVec(_B, b.size()))]
        found = ((z3.substitute(x, *pairs, *_scales_of(x, scales)), x) for x in terms.values())
        return {generic.get_id(): (generic, x) for generic, x in found}

    return [FactorTerms(renamed(values[k], k), renamed(conditions[k], k)) for k in range(len(inputs.a))]


def _conjuncts(formulas: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    """Return the formulas with conjunctions taken apart, those within conjunctions too."""
    found = list(formulas)
    while any(z3.is_and(x) for x in found):
        found = [y for x in found for y in (x.children() if z3.is_and(x) else [x])]
    return found


def _scales_of(term: z3.ExprRef, scales: set[int]) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
    """The codes of scales in a term, by names without a number."""
    found = [x for x in constants_of(term) if x.get_id() in scales] if scales else []
    return [(x, z3.BitVec(str(x).rstrip("0123456789"), x.size())) for x in found]


@dataclass(frozen=True)
class AnyProduct:
    """The factors of any product, and what may become of them."""

    spec: DotAdd

    @property
    def factors(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        spec = self.spec
        return z3.BitVec(_A, spec.a_format.storage_bits), z3.BitVec(_B, spec.b_format.storage_bits)

    def change(self, law: str) -> CodeChange | None:
        """Return what a law makes of the factors; None where it says nothing, for lack of a −0 or of one type."""
        (a, b), x, y = self.factors, self.spec.a_format, self.spec.b_format
        if law == "exchange":
            return [(a, b), (b, a)] if x == y else None
        if law == "signs":
            both = x.has_minus_zero and y.has_minus_zero
            return [(a, a ^ x.sign_mask), (b, b ^ y.sign_mask)] if both else None
        if not (x.has_zero and y.has_zero):
            return None
        sign, plus = sign_bit(a, x) ^ sign_bit(b, y), z3.BitVecVal(0, 1)
        signed = law == "signed zeros"
        on_a = signed and x.has_minus_zero
        on_b = signed and not on_a
        if on_b and not y.has_minus_zero:
            return None
        return [
            (a, zero_of_sign(sign if on_a else plus, x)),
            (b, zero_of_sign(sign if on_b else plus, y)),
        ]

    @property
    def some_zeros(self) -> list[CodeChange]:
        """Zero products of both signs, and of large factors."""
        found: list[CodeChange] = []
        formats = self.spec.a_format, self.spec.b_format
        for zero, number, fmt in zip(self.factors, self.factors[::-1], formats[::-1], strict=True):
            fields = (0, 1) if fmt.is_integer else (0, 1, fmt.bias, (1 << fmt.exponent_bits) - 2)
            codes = [field << fmt.fraction_bits + fmt.ignored_low_bits for field in fields]
            codes = [x for code in codes for x in {code, code | fmt.sign_mask} if fmt.is_finite(x)]
            nothing = z3.BitVecVal(0, zero.size())
            found += [[(zero, nothing), (number, z3.BitVecVal(x, number.size()))] for x in codes]
        return found

    def premise(self, law: str) -> tuple[z3.BoolRef, str]:
        """Return what a law supposes of a product, and what it says."""
        return {
            "exchange": (z3.BoolVal(True), "b·a for a·b"),
            "signs": (z3.BoolVal(True), "(−a)·(−b) for a·b"),
            "signed zeros": (
                is_zero_product(*self.factors, self.spec),
                "±0·+0 for a zero product of that sign",
            ),
            "zeros": (is_zero_product(*self.factors, self.spec), "+0·+0 for a zero product"),
        }[law]


# ---- the laws of one model ---------------------------------------------------------------------------------------

#: Laws that were proved in this process, by the model of one step; and those that were refuted, which are None.
_SETTLED: dict[tuple[str, DotAdd], tuple[Obligation, ...] | None] = {}

#: The proofs of the order law, by the model of one step.
_ORDERS: dict[DotAdd, tuple[Proof, ...]] = {}


def forget_laws() -> None:
    """Forget what is known of models, since the encodings have changed."""
    _SETTLED.clear()
    _ORDERS.clear()


class Laws:
    """The laws of models, proved when they are first asked for.

    One that is not settled within a part of the time given counts as one that does not hold.
    """

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self._shares = {"order": _ORDER * asker.timeout}
        self._told: set[tuple[str, DotAdd]] = set()
        self._steps: dict[DotAdd, tuple[Inputs, z3.BitVecRef, list[FactorTerms]]] = {}

    def order(self, spec: DotAdd) -> bool:
        """Whether products of one class may change places."""
        classes = symmetry_classes(spec, spec)
        return len(set(classes)) == len(classes) or self._settled("order", spec, self._prove_order)

    def order_proofs(self, spec: DotAdd) -> tuple[Proof, ...]:
        """The proofs of the order law of a model; none where it was not settled, or no products change places."""
        one = first_step(spec)
        return () if one is None else _ORDERS.get(one, ())

    def exchange(self, spec: DotAdd) -> bool:
        return self._settled("exchange", spec, self._prove_change)

    def signs(self, spec: DotAdd) -> bool:
        return self._settled("signs", spec, self._prove_change)

    def zeros(self, spec: DotAdd) -> set[Zeros]:
        """The representations of zero products that stand for all of them."""
        self.order(spec)  # which "zeros" makes use of
        if self._settled("zeros", spec, self._prove_plus):
            return {"plus", "signed"}
        return {"signed"} if self._settled("signed zeros", spec, self._prove_change) else set()

    def _settled(self, law: str, spec: DotAdd, prove: Callable[[str, DotAdd, Asker], bool | None]) -> bool:
        one = first_step(spec)
        if one is None:
            return False
        key = law, one
        if key not in _SETTLED:
            share = self._shares.get(law, _PRODUCT * self.asker.timeout)
            own = Asker(self.asker.portfolio, min(self.asker.left, share))
            own.store = self.asker.store
            holds = prove(law, one, own) if own.left > 0 else None
            self._shares[law] = share - own.elapsed  # both models have it together
            if holds is None:
                return False
            unique = {(o.name, o.digest): o for o in own.proved}
            _SETTLED[key] = tuple(unique.values()) if holds else None
        proved = _SETTLED[key]
        if proved is not None and key not in self._told:
            self._told.add(key)
            self.asker.proved += proved
        return proved is not None

    def _prove_order(self, law: str, one: DotAdd, asker: Asker) -> bool | None:
        from mmaformal.facts import orders  # which imports this module
        from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove

        proofs: list[Proof] = []
        try:
            for order in orders.within_blocks(one):
                if asker.left <= 0:
                    return None
                proofs.append(prove(asker, orders.argue_order(one, order)))
        except ArgumentError:
            return False
        except NotProvedError as error:
            return None if error.verdict == "unknown" else False
        asker.proved = [each for proof in proofs for each in proof.obligations]
        _ORDERS[one] = tuple(proofs)
        return True

    def _step(self, one: DotAdd) -> tuple[Inputs, z3.BitVecRef, list[FactorTerms]]:
        """One step's inputs, its result, and what that makes of each product."""
        if one not in self._steps:
            x = symbolic_inputs(one)
            result = smt.dot_add(one, x.a, x.b, x.c, x.scale_a, x.scale_b).result
            self._steps[one] = x, result, product_terms([result], x)
        return self._steps[one]

    def _prove_change(self, law: str, one: DotAdd, asker: Asker) -> bool | None:
        product = AnyProduct(one)
        change = product.change(law)
        if change is None:
            return False
        premise, text = product.premise(law)
        for terms in distinct(self._step(one)[2]):
            claim = terms.unchanged(change, premise)
            verdict = asker.prove(f"law: {law}", f"{text}: {_step(one)} gives the same", claim).verdict
            if verdict != "unsat":
                return None if verdict == "unknown" else False
        return True

    def _prove_plus(self, law: str, one: DotAdd, asker: Asker) -> bool | None:
        """Prove that neither the factors of a zero product matter nor its sign."""
        product, (x, result, _) = AnyProduct(one), self._step(one)
        change, (premise, text) = product.change(law), product.premise(law)
        if change is None:
            return False
        terms = product_terms([result], x, joined=False)
        # What the terms of zero products are, but for those that the sign decides, as a few products show.
        values = {}
        for key, term in {key: term for each in terms for key, (term, _) in each.values.items()}.items():
            value = z3.simplify(z3.substitute(term, *change))
            shown = [z3.simplify(z3.substitute(term, *pairs)) for pairs in product.some_zeros]
            values[key] = term, value, all(value.eq(each) for each in shown)
        if any(not constant and not _is_bit(term) for term, _, constant in values.values()):
            return False  # more than the sign matters
        same = all_of([term == value for term, value, constant in values.values() if constant])
        statement = f"what {text} has in common: {_step(one)}"
        verdict = asker.prove(f"law: {law}", statement, z3.Implies(premise, same)).verdict
        if verdict != "unsat":
            return None if verdict == "unknown" else False
        places = list(range(one.k))
        if self.order(one):
            classes = symmetry_classes(one, one)
            places = sorted({classes.index(each) for each in classes})
        for each in (terms[k] for k in places):
            parts = [(own, *values[key][1:]) for key, (_, own) in each.values.items()]
            free = [(own, z3.FreshConst(own.sort(), "sign")) for own, _, known in parts if not known]
            left = z3.substitute(result, *((own, value) for own, value, known in parts if known), *free)
            right = z3.substitute(result, *((own, value) for own, value, _ in parts))
            statement = f"{text}: {_step(one)} gives the same"
            verdict = asker.prove(f"law: {law}", statement, left == right).verdict
            if verdict != "unsat":
                return None if verdict == "unknown" else False
        return True


def _is_bit(term: z3.ExprRef) -> bool:
    return bool(z3.is_bool(term) or term.sort().size() == 1)


def _step(spec: DotAdd) -> str:
    return f"a step of {spec.types}, {spec.parameters.algorithm} {spec.parameters.describe()},"


def distinct(terms: Sequence[FactorTerms]) -> list[FactorTerms]:
    """Each of several once."""
    return list({each.key: each for each in terms}.values())


# ---- what a search may use ---------------------------------------------------------------------------------------
