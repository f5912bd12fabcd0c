"""Find an input on which two instructions differ, the smallest there is, or prove that there is none.

    find_difference(ampere, hopper, "HMMA.16816.F32")

How it is done: inputs with no, one and two nonzero products are tried first (a few solver calls of a fraction of a
second each; `unsat` proves that more products are needed), then all inputs at once.  A witness found is then made
smaller, in the order of `case_size`: fewest nonzero products, c = 0 if possible, fewest significand bits set,
exponents nearest 0; then, to settle ties, small exponents in the products and few minus signs.  Each bound is
either proved minimal, by a refuted query, or reported as the best found.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import z3

from mmaformal.algorithms import DotAdd, Efda, Fda, Fdrda, Gdfs, Gfdrda, Gps, Lowered, Sfma
from mmaformal.architectures.base import Architecture
from mmaformal.encodings import smt
from mmaformal.formats import Format, Specials
from mmaformal.instruction import Instruction
from mmaformal.queries import staged
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.inputs import (
    Codes,
    Inputs,
    at_most,
    exponent_distance,
    is_nan,
    is_zero,
    magnitude_field,
    sign_bit,
    significand_bits,
    symbolic_inputs,
)
from mmaformal.solver.answers import Answer, Different, Equal, Proof, Unknown
from mmaformal.solver.asking import Asker, smtlib
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Outcome, Portfolio
from mmaformal.witness import Witness, WitnessError, case_size, product_is_zero

Progress = Callable[[str], None]
Bound = Callable[[Inputs], list[z3.BoolRef]]  #: a bound on the size of a case
Measure = Callable[[Inputs], list[z3.BitVecRef]]  #: terms whose sum is to be made small

_SIGNIFICANDS = "significand bits set"
_EXPONENTS = "sum of |exponent|"

#: Algorithms on whose result the signs of zero products have no influence.
_SIGN_OF_ZERO_LOST = {"fda", "gdfs"}
#: Sparse inputs are tried up to this many nonzero products before all inputs at once.
_SPARSE = 2
#: The part of the time given that one sparse question has at first; what it leaves open is asked again later.
_FIRST_TRY = 0.05


class IncomparableError(ValueError):
    """The two instructions do not take the same inputs; the message says how to make them comparable."""


def find_difference(
    x: Architecture | Instruction,
    y: Architecture | Instruction,
    instruction: str | None = None,
    *,
    where: Constraint | str | Iterable[Constraint | str] = (),
    timeout: float = 120.0,
    backends: Sequence[str] | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Answer:
    """Do x and y compute the same function?

    x, y: two architectures and the name of an instruction both have, or two Instructions of the same K and types.
    where: constraints on the inputs (`mmaformal.queries.constraints`, or their text).
    timeout: seconds for everything; memory: megabytes per solver process; backends: solvers to use, by default all
    that are installed; progress: called with a line of text as the work goes on.

    Returns `Different` with a witness, `Equal` with a proof, or `Unknown` with the reason.
    Raises IncomparableError if the instructions take different inputs, UnknownInstructionError for a name that an
    architecture lacks, NoSolverError if there is no solver, TypeError and ValueError for wrong arguments (a `where`
    that no input satisfies is one), WitnessError if a solver's model does not hold when it is re-run.
    """
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout}")
    left, right = _instruction(x, instruction), _instruction(y, instruction)
    _check_comparable(left, right)
    constraints = as_constraints(where)
    with Portfolio(backends, memory) as portfolio:
        return _Search(left, right, constraints, Asker(portfolio, timeout), progress).answer()


def _instruction(x: Architecture | Instruction, name: str | None) -> Instruction:
    if isinstance(x, Instruction):
        if name is not None and name != x.name:
            raise TypeError(f"two Instructions need no name; {x.label} was given together with {name!r}")
        return x
    if not isinstance(x, Architecture):
        raise TypeError(f"expected an Architecture or an Instruction, not {type(x).__name__}")
    if name is None:
        raise TypeError(
            f'which instruction of {x.name}? find_difference({x.name}, …, "{x.instructions[0].name}"), for example'
        )
    return x[name]


def _check_comparable(x: Instruction, y: Instruction) -> None:
    def types(i: Instruction) -> tuple[object, ...]:
        s = i.spec
        return s.a_format, s.b_format, s.c_format, s.d_format, s.scale_format, s.scale_block

    if types(x) != types(y):
        raise IncomparableError(
            f"{x.label} computes {x.spec.types} and {y.label} {y.spec.types}: they do not take the same inputs. "
            "Choose instructions of the same types (`mmaformal list` shows them)"
        )
    if x.k != y.k:
        short, long = sorted((x, y), key=lambda i: i.k)
        if long.k % short.k == 0:
            hint = f'compare {short.architecture}["{short.name}"].chained({long.k}) with {long.label}'
        else:
            hint = "chain both to a common multiple: .chained(K)"
        raise IncomparableError(f"{x.label} has K = {x.k}, {y.label} has K = {y.k}: {hint}")


def symmetry_classes(x: DotAdd, y: DotAdd) -> list[Hashable]:
    """For each position its class: swapping two products of one class changes the result of neither x nor y.

    Within one step of a fused algorithm products enter only a maximum and an exact sum, so those that share a
    step, a group and a block scale are one class.  Where order matters (sfma) every position is its own.
    """

    def place(spec: DotAdd, k: int) -> Hashable:
        p = spec.parameters
        step = k // p.step_products
        if isinstance(p, Gdfs):
            return k // p.G  # an exact sum of each group
        if isinstance(p, Gfdrda):
            return step, k % 2
        if isinstance(p, (Fda, Fdrda, Efda)):
            return step
        if isinstance(p, Lowered):
            return step, p.order.index(k % len(p.order)) // p.L
        if isinstance(p, Gps):
            return k // 2  # the two addends of one IEEE addition
        return k

    def classes(spec: DotAdd) -> list[Hashable]:
        scale = spec.scale_block or spec.k
        return [(place(spec, k), k // scale) for k in range(spec.k)]

    return list(zip(classes(x), classes(y), strict=True))


def zero_products_are_alike(spec: DotAdd) -> bool:
    """Whether a product of zero and a number can be replaced by ±0·+0 of the same sign without changing the result.

    Not so where the exponent of a zero product is that of its fields, and matters.
    """
    p = spec.parameters
    if isinstance(p, (Fda, Gdfs, Lowered)):
        return p.e_zero is not None
    if isinstance(p, Fdrda):  # and gfdrda
        return p.skip_zero_products
    return isinstance(p, (Efda, Gps, Sfma))


def _bounded(measure: Measure, bound: int) -> Bound:
    return lambda inputs: at_most(measure(inputs), bound)


def _is_plus_zero(x: z3.BitVecRef) -> bool:
    return bool(z3.is_bv_value(x) and x.as_long() == 0)


@dataclass
class _Found:
    """A witness' codes on the way down, and the positions whose products may be nonzero."""

    codes: Codes
    active: tuple[int, ...]
    seen: tuple[int, int]  #: what the SMT wing says the two results are


class _Search:
    def __init__(
        self,
        x: Instruction,
        y: Instruction,
        constraints: tuple[Constraint, ...],
        asker: Asker,
        progress: Progress | None,
    ) -> None:
        self.x, self.y, self.constraints, self.asker = x, y, constraints, asker
        self.progress = progress or (lambda _: None)
        self.spec = x.spec
        self.pins: dict[str, int] = {}
        for constraint in constraints:
            for name, code in constraint.pins(x.spec).items():
                if self.pins.setdefault(name, code) != code:
                    raise ValueError(f"{name} is fixed to {self.pins[name]:#x} and to {code:#x}")
        self.forced = [k for k in range(x.k) if self._must_be_active(k)]
        self.minimality: list[str] = []
        alike = all(zero_products_are_alike(i.spec) for i in (x, y))
        self._zeros_unlike = "" if alike else "zero products other than ±0·+0 were not tried"
        self._open: dict[
            int, str
        ] = {}  # numbers of products with which a difference is not ruled out, and why
        self.signed_zeros = not {x.algorithm, y.algorithm} <= _SIGN_OF_ZERO_LOST
        self._idle: dict[DotAdd, bool] = {}
        self.bare = False  # whether the trailing significands are known to be 0
        given = f" where {'; '.join(map(str, constraints))}" if constraints else ""
        labels = [x.label, y.label]
        if labels[0] == labels[1]:
            labels = [f"{i.label} ({i.parameters.describe()})" for i in (x, y)]
        self.question = f"{labels[0]} = {labels[1]}{given}"

    # ---- formulas ---------------------------------------------------------------------------------------------

    def _must_be_active(self, k: int) -> bool:
        """Whether the constraints keep the k-th product from being +0·+0, or what is fixed of it times +0."""
        if any(c.forbids_zero for c in self.constraints):
            return True
        a, b = self.pins.get(f"a{k}", 0), self.pins.get(f"b{k}", 0)
        return not product_is_zero(a, self.spec.a_format, b, self.spec.b_format)

    def _inputs(self, active: Iterable[int] | None) -> Inputs:
        """Inputs whose products outside `active` are zero; None: all inputs."""
        pinned, zeros = dict(self.pins), []
        formats = {"a": self.spec.a_format, "b": self.spec.b_format}
        idle = set(range(self.spec.k)) - set(active) if active is not None else set()
        for k in sorted(idle):
            free = [side for side in "ab" if f"{side}{k}" not in pinned]
            if self.signed_zeros and free and formats[free[0]].specials != Specials.FNUZ:  # it has no −0
                zeros.append(f"{free.pop(0)}{k}")
            pinned |= {f"{side}{k}": 0 for side in free}
        positive = [f"b{k}" for k in active or () if self._signs_move(k)]
        return symbolic_inputs(self.spec, pinned, zeros=zeros, positive=positive, bare=self.bare)

    def _free(self, k: int) -> bool:
        return f"a{k}" not in self.pins and f"b{k}" not in self.pins

    def _signs_move(self, k: int) -> bool:
        """Whether (−a)·(−b) may stand for a·b, so that only cases with b ≥ 0 need be looked at."""
        formats = self.spec.a_format, self.spec.b_format
        return self._free(k) and all(
            f.signed and f.specials != Specials.FNUZ for f in formats
        )  # FNUZ has no −0

    def _in_order(self, inputs: Inputs, active: Iterable[int]) -> list[z3.BoolRef]:
        """|b| ≤ |a|, since b·a may stand for a·b."""
        fmt = self.spec.a_format
        if fmt != self.spec.b_format or any(c.tells_sides for c in self.constraints):
            return []
        return [
            z3.ULE(magnitude_field(inputs.b[k], fmt), magnitude_field(inputs.a[k], fmt))
            for k in active
            if self._free(k)
        ]

    def _result(self, spec: DotAdd, inputs: Inputs, active: Sequence[int] | None) -> z3.BitVecRef:
        """The result of one model; for sparse inputs, of the same model with its idle steps left out.

        Inside a step nonzero products are written first, so that cases that differ in their places only are one
        question.  Both are licensed: order by `symmetry_classes`, idle steps by `_idle_steps_pass`.
        """
        k = list(range(spec.k))
        scales = (inputs.scale_a, inputs.scale_b) if spec.scale_format else ()
        if active is not None and not scales and isinstance(spec.parameters, Fda):
            L = spec.parameters.L
            steps = [k[start : start + L] for start in range(0, spec.k, L)]
            busy = [s for s in steps if not all(_is_plus_zero(x[i]) for i in s for x in (inputs.a, inputs.b))]
            if not self._idle_steps_pass(spec):
                busy = steps
            busy = busy or steps[-1:]
            k = [i for s in busy for i in sorted(s, key=lambda i: i not in active)]
            spec = spec.replace(k=len(k))
        return smt.dot_add(spec, [inputs.a[i] for i in k], [inputs.b[i] for i in k], inputs.c, *scales).result

    def _idle_steps_pass(self, spec: DotAdd) -> bool:
        """Whether a step whose products are all +0·+0 may be left out: proved, once for each model.

        Such a step gives back its c, but for −0 (which becomes +0) and NaNs (which become canonical); the step after
        it does not distinguish those, and the step before it does not give −0.
        """
        if spec not in self._idle:
            self._idle[spec] = spec.k == spec.parameters.step_products or self._prove_idle_steps_pass(spec)
        return self._idle[spec]

    def _prove_idle_steps_pass(self, spec: DotAdd) -> bool:
        one = spec.replace(k=spec.parameters.step_products)
        d = spec.d_format
        idle = symbolic_inputs(one, {f"{side}{k}": 0 for side in "ab" for k in range(one.k)})
        busy = symbolic_inputs(one)
        after = smt.dot_add(one, idle.a, idle.b, idle.c).result
        plus, minus = z3.BitVecVal(0, d.storage_bits), z3.BitVecVal(d.sign_mask, d.storage_bits)
        with_plus, with_minus, with_any = (smt.dot_add(one, busy.a, busy.b, c) for c in (plus, minus, busy.c))
        sums = [with_any.steps[0].total, with_any.steps[0].e_max]
        claims: dict[str, tuple[z3.BoolRef, list[z3.ExprRef]]] = {
            "gives back its c, as +0 for −0 and as a NaN for a NaN": (
                z3.If(is_nan(idle.c, d), is_nan(after, d), after == z3.If(idle.c == minus, plus, idle.c)),
                [],
            ),
            "takes c = −0 as c = +0": (with_plus.result == with_minus.result, []),
            "with c a NaN gives a NaN": (z3.Implies(is_nan(busy.c, d), is_nan(with_any.result, d)), []),
            "never gives −0": (with_any.result != minus, sums),
        }
        step = f"a step of {spec.types}, {spec.parameters.algorithm} {spec.parameters.describe()},"
        idle_step = f"{step} with products +0·+0"
        return all(
            self.asker.prove(
                what, f"{idle_step if what.startswith('gives') else step} {what}", claim, cut=cut
            ).verdict
            == "unsat"
            for what, (claim, cut) in claims.items()
        )

    def _differs(
        self, inputs: Inputs, active: Sequence[int] | None = None
    ) -> tuple[list[z3.BoolRef], z3.BitVecRef, z3.BitVecRef]:
        """(assertions that the results differ under the constraints, x's result, y's result)."""
        rx, ry = (self._result(i.spec, inputs, active) for i in (self.x, self.y))
        differ = rx != ry
        if not (self.x.spec.nan_is_canonical and self.y.spec.nan_is_canonical):
            d = self.spec.d_format
            differ = z3.And(differ, z3.Not(z3.And(is_nan(rx, d), is_nan(ry, d))))
        assertions = [differ]
        for constraint in self.constraints:
            assertions += constraint.on_inputs(self.spec, inputs)
            assertions += constraint.on_result(self.spec, rx) + constraint.on_result(self.spec, ry)
        return assertions, rx, ry

    def _ask(
        self,
        active: tuple[int, ...] | None,
        name: str,
        statement: str,
        more: Callable[[Inputs], list[z3.BoolRef]] = lambda _: [],
        limit: float | None = None,
    ) -> tuple[Outcome, _Found | None]:
        self.progress(f"{self.asker.elapsed:5.1f} s  {name}")
        inputs = self._inputs(active)
        assertions, rx, ry = self._differs(inputs, active)
        if active is not None:
            assertions += self._in_order(inputs, active)
            statement += (
                " (up to the order of products in a step, that of two factors, and the signs of both)"
            )
        outcome = self.asker.satisfy(name, statement, assertions + more(inputs), inputs.constants(), limit)
        if outcome.verdict != "sat":
            return outcome, None
        return outcome, self._found(inputs, outcome.model, active, rx, ry)

    def _ask_within(
        self, active: tuple[int, ...], name: str, bounds: Sequence[Bound], limit: float | None = None
    ) -> tuple[Outcome, _Found | None]:
        places = ", ".join(map(str, active)) or "none"
        return self._ask(
            active,
            name,
            f"no difference with {name}, nonzero products only at {places}",
            lambda inputs: [term for bound in bounds for term in bound(inputs)],
            limit,
        )

    def _found(
        self,
        inputs: Inputs,
        model: Mapping[str, int],
        active: tuple[int, ...] | None,
        rx: z3.BitVecRef,
        ry: z3.BitVecRef,
    ) -> _Found:
        codes = inputs.codes(self.spec, model)
        values = [
            (z3.BitVec(n, bits), z3.BitVecVal(model[n], bits)) for n, bits in inputs.constants().items()
        ]
        seen = tuple(z3.simplify(z3.substitute(r, *values)).as_long() for r in (rx, ry))
        return _Found(codes, active if active is not None else tuple(range(self.spec.k)), (seen[0], seen[1]))

    # ---- the search -------------------------------------------------------------------------------------------

    def answer(self) -> Answer:
        answer = self._answer()
        if isinstance(answer, Equal) and self.constraints and self._nothing_is_allowed():
            given = "; ".join(map(str, self.constraints))
            raise ValueError(f"no input satisfies {given}: there is nothing to compare")
        return answer

    def _nothing_is_allowed(self) -> bool:
        """Whether no input satisfies the constraints, so that anything would be proved of all that do."""
        inputs = symbolic_inputs(self.spec, self.pins)
        allowed = [term for c in self.constraints for term in c.on_inputs(self.spec, inputs)]
        for model in (self.x, self.y):
            result = self._result(model.spec, inputs, None)
            allowed += [term for c in self.constraints for term in c.on_result(self.spec, result)]
        name = "no input is allowed"
        return self.asker.satisfy(name, name, allowed, inputs.constants()).verdict == "unsat"

    def _answer(self) -> Answer:
        equal = self._prove_equal_quickly()
        if equal is not None:
            return equal
        found, products = self._sparse()
        if found is None:
            outcome, found = self._ask(
                None, "all inputs at once", f"no input makes the results of {self.question} differ"
            )
            if outcome.verdict == "unsat":
                return Equal(self.question, Proof((self.asker.proved[-1],)), self.asker.elapsed)
            if found is None:
                return Unknown(self.question, outcome.why, tuple(self.asker.proved), self.asker.elapsed)
            found, products = self._fewer_products(found)
        found, products = self._settle_products(found, products)
        found = self._shrink(found, products)
        return self._different(found)

    def _prove_equal_quickly(self) -> Equal | None:
        inputs = symbolic_inputs(self.spec, self.pins)
        rx, ry = (self._result(i.spec, inputs, None) for i in (self.x, self.y))
        if rx.eq(ry):
            statement = f"{self.question}: both are one and the same term"
            self.asker.prove("same term", statement, rx == ry, cut=[rx])
            return Equal(self.question, Proof(tuple(self.asker.proved)), self.asker.elapsed)
        if staged.applies(self.x.spec, self.y.spec):
            self.progress(f"{self.asker.elapsed:5.1f} s  proving equality stage by stage")
            free = symbolic_inputs(self.spec)
            if staged.prove_equal(self.asker, self.x.spec, self.y.spec, free, self.asker.left / 2):
                return Equal(self.question, Proof(tuple(self.asker.proved)), self.asker.elapsed)
        return None

    def _patterns(self, count: int) -> Iterator[tuple[int, ...]]:
        """The ways to place `count` nonzero products, one of each symmetry class of ways."""
        classes = symmetry_classes(self.x.spec, self.y.spec)
        members: dict[Hashable, list[int]] = {}
        for k in range(self.spec.k):
            if k not in self.forced:
                key = (classes[k], self.pins.get(f"a{k}"), self.pins.get(f"b{k}"))
                members.setdefault(key, []).append(k)
        free = count - len(self.forced)
        if free < 0:
            return
        for choice in itertools.combinations_with_replacement(list(members), free):
            need = Counter(choice)
            if all(n <= len(members[key]) for key, n in need.items()):
                chosen = [k for key, n in need.items() for k in members[key][:n]]
                yield tuple(sorted(chosen + self.forced))

    def _with_products(self, count: int, share: float, first_try: bool = True) -> _Found | None:
        """A witness with `count` nonzero products, or None; what is not ruled out is noted in `_open`.

        `share` is the part of the time given after which the search is broken off.
        """
        self._open.pop(count, None)
        for active in self._patterns(count):
            left = self.asker.left - (1 - share) * self.asker.timeout
            if left <= 0:
                self._open.setdefault(count, f"{share:.0%} of the time given were used up")
                return None
            limit = min(left, _FIRST_TRY * self.asker.timeout) if first_try else left
            if count:  # c = 0 is preferred, and mostly settled sooner
                _, found = self._ask_within(active, "c = 0", [self._c_is_zero], limit / 2)
                if found is not None:
                    return found
            places = ", ".join(map(str, active)) or "none"
            outcome, found = self._ask(
                active,
                f"{count} products (at {places})",
                f"no difference with nonzero products only at {places}",
                limit=limit,
            )
            if found is not None:
                return found
            if outcome.verdict == "unknown":
                self._open.setdefault(count, outcome.why)
        return None

    def _sparse(self) -> tuple[_Found | None, int]:
        """Look for a witness with few products; notes what is thereby known about their least number."""
        for count in range(len(self.forced), min(self.spec.k, len(self.forced) + _SPARSE) + 1):
            found = self._with_products(count, share=0.4)
            if found is not None:
                return found, count
        return None, 0

    def _products(self, found: _Found) -> int:
        return case_size(self.spec, found.codes.a, found.codes.b, found.codes.c)[0]

    def _fewer_products(self, found: _Found) -> tuple[_Found, int]:
        """From a witness with many products to one with as few as the time allows."""
        have = self._products(found)
        for count in range(len(self.forced) + _SPARSE + 1, have):
            better = self._with_products(count, share=0.7)
            if better is not None:
                return better, count
        active = tuple(
            k
            for k in range(self.spec.k)
            if k in self.forced or (found.codes.a[k], found.codes.b[k]) != (0, 0)
        )
        return _Found(found.codes, active, found.seen), have

    def _settle_products(self, found: _Found, count: int) -> tuple[_Found, int]:
        """Ask again, with more time, whether fewer products do."""
        for fewer in sorted(n for n in self._open if n < count):
            better = self._with_products(fewer, share=0.7, first_try=False)
            if better is not None:
                return better, fewer
        return found, count

    def _products_open(self, count: int) -> str:
        """Why `count` nonzero products may not be the fewest, or nothing."""
        if count <= len(self.forced):
            return ""
        if self._zeros_unlike:
            return self._zeros_unlike
        return next((f"{n} not settled: {self._open[n]}" for n in sorted(self._open) if n < count), "")

    # ---- making it smaller ------------------------------------------------------------------------------------

    def _shrink(self, found: _Found, count: int) -> _Found:
        """Apply the remaining objectives in order, each under the bounds of those before; `count` products as found."""
        patterns = list(itertools.islice(self._patterns(count), 65))
        complete = found.active in patterns and len(patterns) <= 64
        if not complete:
            patterns = [found.active]
        bounds: list[Bound] = []

        def size(f: _Found) -> tuple[int, int, int, int]:
            return case_size(self.spec, f.codes.a, f.codes.b, f.codes.c, f.codes.scale_a, f.codes.scale_b)

        def smaller(name: str, more: Bound, refuted: set[tuple[int, ...]]) -> tuple[_Found | None, str]:
            """A witness within all bounds, looked for first where the last one was; else why that is open."""
            reason = self._zeros_unlike or ("" if complete else "other places for the products not tried")
            for active in sorted(
                set(patterns) - refuted, key=lambda places: (places != found.active, places)
            ):
                outcome, better = self._ask_within(active, name, [*bounds, more])
                if better is not None:
                    return better, ""
                if outcome.verdict == "unknown":
                    reason = outcome.why
            return None, reason

        c_open = ""
        if size(found)[1]:
            better, c_open = smaller("c = 0", self._c_is_zero, set())
            found = better or found
        if not size(found)[1]:
            bounds.append(self._c_is_zero)

        def signs(f: _Found) -> int:
            return sum(
                fmt.fields(code)[0]
                for code, fmt in [(x, self.spec.a_format) for x in f.codes.a]
                + [(x, self.spec.b_format) for x in f.codes.b]
                + [(f.codes.c, self.spec.c_format)]
            )

        def product_exponents(f: _Found) -> int:
            return case_size(self.spec, f.codes.a, f.codes.b, 0)[3]

        objectives: list[tuple[str, Callable[[_Found], int], Measure]] = [
            (_SIGNIFICANDS, lambda f: size(f)[2], self._significands),
            (_EXPONENTS, lambda f: size(f)[3], self._exponents),
            ("of that in the products' factors", product_exponents, self._product_exponents),
            ("minus signs", signs, self._signs),
        ]
        still_open = []
        for what, value, measure in objectives:
            # Descend at the places where the witness is, then ask the other places to do better.
            reason, low = "", 0  # less than `low` is refuted at found.active
            while (best := value(found)) > 0:
                if low < best:
                    # Few significand bits mostly do, so search from below.  Exponents are searched from above;
                    # a refutation costs most there, and after one the best found is mostly the least.
                    if what != _EXPONENTS:
                        middle = min(low + low // 2, best - 1)
                    else:
                        middle = best - 1 if low else (3 * best - 1) // 4
                    outcome, better = self._ask_within(
                        found.active, f"{what} at most {middle}", [*bounds, _bounded(measure, middle)]
                    )
                    if better is not None:
                        found = better
                        continue
                    if outcome.verdict == "unsat":
                        low = middle + 1
                        continue
                refuted = {found.active} if low == best else set()
                better, reason = smaller(f"{what} at most {best - 1}", _bounded(measure, best - 1), refuted)
                if better is None:
                    break
                found, low = better, 0
            still_open.append(reason)
            bounds.append(_bounded(measure, best))
            self.bare |= what == _SIGNIFICANDS and best == 0
        # What was last made smaller may have made smaller what was only the best found before.
        products = self._products(found)
        claims = [
            (f"{products} nonzero product{'s' if products != 1 else ''}", self._products_open(products)),
            ("c ≠ 0" if size(found)[1] else "c = 0", c_open if size(found)[1] else ""),
            *(
                (f"{what}: {value(found)}", reason if value(found) else "")
                for (what, value, _), reason in zip(objectives, still_open, strict=True)
            ),
        ]
        self.minimality = [
            f"{what}: " + (f"best found ({reason})" if reason else "proved minimal")
            for what, reason in claims
        ]
        return found

    def _c_is_zero(self, inputs: Inputs) -> list[z3.BoolRef]:
        return [is_zero(inputs.c, self.spec.c_format)]

    def _operands(self, inputs: Inputs) -> list[tuple[z3.BitVecRef, Format]]:
        """What `case_size` counts: the factors of products that may be nonzero, c and the scales."""
        operands = [*self._factors(inputs), (inputs.c, self.spec.c_format)]
        if self.spec.scale_format is not None:
            operands += [(s, self.spec.scale_format) for s in (*inputs.scale_a, *inputs.scale_b)]
        return operands

    def _factors(self, inputs: Inputs) -> list[tuple[z3.BitVecRef, Format]]:
        a_fmt, b_fmt = self.spec.a_format, self.spec.b_format
        factors: list[tuple[z3.BitVecRef, Format]] = []
        for a, b in zip(inputs.a, inputs.b, strict=True):
            zero = z3.simplify(z3.Or(is_zero(a, a_fmt), is_zero(b, b_fmt)))
            if not z3.is_true(zero):
                factors += [(a, a_fmt), (b, b_fmt)]
        return factors

    def _significands(self, inputs: Inputs) -> list[z3.BitVecRef]:
        return [bit for x, fmt in self._operands(inputs) for bit in significand_bits(x, fmt)]

    def _exponents(self, inputs: Inputs) -> list[z3.BitVecRef]:
        return [exponent_distance(x, fmt) for x, fmt in self._operands(inputs)]

    def _product_exponents(self, inputs: Inputs) -> list[z3.BitVecRef]:
        return [exponent_distance(x, fmt) for x, fmt in self._factors(inputs)]

    def _signs(self, inputs: Inputs) -> list[z3.BitVecRef]:
        a, b, c = self.spec.a_format, self.spec.b_format, self.spec.c_format
        operands = [*((x, a) for x in inputs.a), *((x, b) for x in inputs.b), (inputs.c, c)]
        return [sign_bit(x, fmt) for x, fmt in operands]

    # ---- the end ----------------------------------------------------------------------------------------------

    def _different(self, found: _Found) -> Different:
        codes = found.codes
        witness = Witness.of(self.x, self.y, codes.a, codes.b, codes.c, codes.scale_a, codes.scale_b)
        models = (self.x.spec, self.y.spec)
        if any(
            ran != seen
            and not (spec.d_format.is_nan(ran) and spec.d_format.is_nan(seen) and not spec.nan_is_canonical)
            for spec, ran, seen in zip(models, witness.results, found.seen, strict=True)
        ):
            raise WitnessError(
                f"the two encodings disagree: executables give {witness.results}, bit-vector terms {found.seen} "
                f"for {witness.to_json()}; please report this"
            )
        return Different(
            self.question, witness, tuple(self.minimality), tuple(self.asker.proved), self.asker.elapsed
        )


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m mmaformal.queries.find_difference ampere hopper HMMA.16816.F32` is `mmaformal diff …`."""
    from mmaformal.cli import main as command

    return command(["diff", *(sys.argv[1:] if argv is None else argv)])


__all__ = ["IncomparableError", "find_difference", "smtlib", "symmetry_classes"]

if __name__ == "__main__":
    sys.exit(main())
