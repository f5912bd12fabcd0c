"""Which codes can come out?

- No finite input gives a NaN.  It fails where products or sums overflow and then meet.
- The result is never −0.
- Every number of d's format but −0, and both infinities, is the result of some input.  Mostly c alone gives them all;
  where it does not, a code is shown that no input gives.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.relations import Relation, both, is_finite, is_nan, magnitude, negation
from mmaformal.display import HtmlText, counted, short_text
from mmaformal.encodings import smt
from mmaformal.encodings.smt import efda, fdrda
from mmaformal.encodings.smt.blocks import all_of, exponent_range, product_range
from mmaformal.encodings.smt.fdrda import dot_bound
from mmaformal.encodings.smt.gps import flush
from mmaformal.explain import code_text
from mmaformal.facts.settling import settle
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link, UnprovedError
from mmaformal.proof.related_runs import Pairing, operand_codes, prove
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Fails, Holds, Obligation, Unknown
from mmaformal.solver.asking import Asker, constants_of


def _runs(spec: DotAdd, related: Any, allowed: Any) -> Relation:
    return Relation(spec, spec, None, lambda x, _: related(x), "", allowed)


def all_finite(spec: DotAdd) -> Any:
    def allowed(x: Any) -> Any:
        facts = [is_finite(code, spec.a_format) for code in x.a]
        facts += [is_finite(code, spec.b_format) for code in x.b]
        facts.append(is_finite(x.c, spec.c_format))
        if spec.scale_format is not None:
            facts += [is_finite(code, spec.scale_format) for code in (*x.scale_a, *x.scale_b)]
        return both(*facts)

    return allowed


# ---- no NaN ------------------------------------------------------------------------------------------------------


def _finite_operands(pairing: Pairing, step: Any, assumed: dict[int, Link]) -> list[Link]:
    """That decoded operands of finite codes are finite."""
    links: list[Link] = []
    for side in ("a", "b", "scale_a", "scale_b"):
        for x in _operands(step, side):
            flags = [flag for flag in (x.nan, x.infinite) if not z3.is_false(flag)]
            if not flags:
                continue
            codes = operand_codes(x)
            given = [assumed[code.get_id()] for code in codes]
            link = Link(z3.And([z3.Not(flag) for flag in flags]), tuple(flags))
            links += pairing.derive(
                "decode", "finite codes are decoded to finite operands", [link], given, codes
            )
    return links


def no_nan(spec: DotAdd) -> Pairing:
    """That no finite input gives a NaN."""
    pairing, inputs = Pairing(), symbolic_inputs(spec)
    assumed: dict[int, Link] = {}
    sides = [(inputs.a, spec.a_format), (inputs.b, spec.b_format)]
    if spec.scale_format is not None:
        sides += [(inputs.scale_a, spec.scale_format), (inputs.scale_b, spec.scale_format)]
    for codes, fmt in sides:
        for code in codes:
            assumed[code.get_id()] = pairing.assume("inputs are finite", Link(is_finite(code, fmt), ()))
    finite_c = pairing.assume("inputs are finite", Link(is_finite(inputs.c, spec.c_format), (inputs.c,)))
    c_code = inputs.c
    c = Link(z3.Not(is_nan(c_code, spec.c_format)), (c_code,))
    pairing.derive("decode", "a finite c is no NaN", [c], [finite_c])
    given = finite_c
    for step in smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).steps:
        if spec.parameters.algorithm == "gps":
            c = _no_nan_gps(pairing, spec, step, assumed, c)
        elif spec.parameters.algorithm == "lowered":
            dot = _no_nan_inner(pairing, spec, step, assumed)
            c = _not_nan(
                pairing, step.result, spec, [dot, given], "a number and a finite number add up to no NaN"
            )
        else:
            c = _no_nan_fused(pairing, spec, step, assumed, c)
        given = c
    pairing.conclude(c, "the result is no NaN")
    return pairing


def _not_nan(
    pairing: Pairing,
    result: z3.BitVecRef,
    spec: DotAdd,
    given: Sequence[Link],
    text: str,
    inputs: Sequence[Any] = (),
) -> Link:
    link = Link(z3.Not(is_nan(result, spec.d_format)), (result,))
    return pairing.derive("encode", text, [link], given, inputs)[0]


def _no_nan_fused(pairing: Pairing, spec: DotAdd, step: Any, assumed: dict[int, Link], c: Link) -> Link:
    operands = _finite_operands(pairing, step, assumed)
    number = Link(z3.Not(step.c.nan), (step.c.nan,))
    pairing.derive("decode", "c is no NaN", [number], [c])
    special = Link(z3.Not(step.special.nan), (step.special.nan,))
    single = [x for side in ("a", "b") for x in _operands(step, side)]
    inputs = [term for x in (*single, step.c) for term in (x.sign, x.significand)] + [step.c.infinite]
    pairing.derive("classify", "nothing makes a NaN", [special], [*operands, number], inputs)
    inputs = [step.special.positive_infinity, step.special.negative_infinity, *step.rounded]
    return _not_nan(pairing, step.result, spec, [special], "a rounded number is no NaN", inputs)


def _operands(step: Any, side: str) -> Sequence[Any]:
    found = getattr(step, side, ())
    return [found] if hasattr(found, "sign") else list(found)


def _no_nan_inner(pairing: Pairing, spec: DotAdd, step: Any, assumed: dict[int, Link]) -> Link:
    inner = spec.parameters.inner_dot_add(spec)  # type: ignore[attr-defined]
    zero = z3.BitVecVal(0, spec.d_format.storage_bits)
    c = Link(z3.Not(is_nan(zero, spec.d_format)), ())
    pairing.derive("inputs", "the inner steps start from +0", [c])
    for each in step.inner:
        c = _no_nan_fused(pairing, inner, each, assumed, c)
    return c


def _no_nan_gps(pairing: Pairing, spec: DotAdd, step: Any, assumed: dict[int, Link], c: Link) -> Link:
    """Products are below a power of two, sums below twice their terms' bound."""
    top = spec.a_format.max_exponent + spec.b_format.max_exponent + 2 + fp32.bias

    def below(code: z3.BitVecRef, exponent: int) -> Link:
        if exponent >= (1 << fp32.exponent_bits) - 1:
            raise ArgumentError("products may overflow")
        return Link(z3.ULE(magnitude(code, fp32), exponent << fp32.fraction_bits), (code,))

    level: list[Link] = []
    for x, y, product in zip(step.a, step.b, step.products, strict=True):
        codes = [*operand_codes(x), *operand_codes(y)]
        given = [assumed[code.get_id()] for code in codes]
        text = "products of finite factors are within a power of two"
        level += pairing.derive("multiply", text, [below(product, top)], given, codes)
    sums = list(step.sums)
    while len(level) > 1:
        top += 1
        level = [
            _flushed(pairing, sums.pop(0), below, top, [level[i], level[i + 1]])
            for i in range(0, len(level), 2)
        ]
    text = "a number that may be infinite and a finite one add up to no NaN"
    last = _not_nan(pairing, step.addition.result, spec, [c, level[0]], text)
    return _not_nan(pairing, step.result, spec, [last], "flushed, it is no NaN")


def _flushed(pairing: Pairing, addition: Any, below: Any, top: int, given: Sequence[Link]) -> Link:
    text = "a sum is within twice the bound of its terms"
    (link,) = pairing.derive("accumulate", text, [below(addition.result, top)], given)
    flushed = flush(addition.result, keep_sign=True)
    return pairing.derive("encode", "flushed, it is within the same bound", [below(flushed, top)], [link])[0]


def answer_no_nan(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} gives no NaN for finite inputs"
    relation = _runs(
        spec,
        lambda d: negation(is_nan(d, spec.d_format)),
        all_finite(spec),
    )
    return settle(instruction, asker, question, [relation], lambda: [no_nan(spec)])


# ---- never −0 ----------------------------------------------------------------------------------------------------


def never_minus_zero(spec: DotAdd) -> Pairing:
    """That no result is −0: of the last step, whatever its c (of gps: whatever c that is no −0 and no subnormal).

    Where ρ keeps the sign of a zero, a nonzero sum must not be rounded to zero: its last place is at least the least
    subnormal's, or it is a multiple of that.
    """
    pairing, x = Pairing(), symbolic_inputs(spec)
    steps = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps
    last, algorithm = steps[-1], spec.parameters.algorithm

    if algorithm == "lowered":
        dot = _not_minus_zero(pairing, spec, last.inner[-1])
        link = Link(last.result != spec.d_format.sign_mask, ())
        c = x.c if spec.k == spec.parameters.step_products else None
        inputs = [c] if c is not None else []
        pairing.derive(
            "accumulate", "a number that is not −0, and another, do not add up to −0", [link], [dot], inputs
        )
    elif algorithm == "gps":
        link = _normal_or_plus_zero(pairing, spec, steps)
    elif algorithm in ("fdrda", "gfdrda"):
        given = [_fdrda_places(pairing, spec, last)]
        link = _not_minus_zero(pairing, spec, last, given, last.special)
    elif hasattr(last, "placed"):
        given = [_fixed_point_places(pairing, spec, last)]
        link = _not_minus_zero(pairing, spec, last, given, last.special)
    else:
        link = _not_minus_zero(pairing, spec, last)
    pairing.conclude(link, "the result is not −0")
    return pairing


def _not_minus_zero(
    pairing: Pairing, spec: DotAdd, step: Any, given: Sequence[Link] = (), inputs: Sequence[Any] = ()
) -> Link:
    """Of whatever is rounded; of what the given links are about, if there are some."""
    link = Link(step.result != spec.d_format.sign_mask, (step.result,))
    inputs = inputs if given else [*step.special, *step.rounded]
    text = "no nonzero sum is rounded to −0" if given else "no number is encoded as −0"
    return pairing.derive("round" if given else "encode", text, [link], given, inputs)[0]


def _places(total: z3.BitVecRef, e_max: z3.BitVecRef, exponents: Any, F: int, spec: DotAdd) -> Link:
    """That the last place of a sum at e_max, at least d's least exponent, is one of d; or the bits below are zero.

    And that the sum is not the least number of its width, whose magnitude would have one more bit.
    """
    d = spec.d_format
    enough = exponents.constant(d.min_exponent - d.fraction_bits + F)
    below = z3.Extract(F - d.fraction_bits - 1, 0, total)
    low = z3.And(z3.UGE(e_max, exponents.constant(d.min_exponent)), below == 0)
    fits = total != 1 << (total.size() - 1)
    return Link(z3.And(fits, z3.Or(z3.UGE(e_max, enough), low)), (e_max, total))


def _fdrda_places(pairing: Pairing, spec: DotAdd, step: Any) -> Link:
    """If every product is zero, the sum is c; else e_dot is at least the least exponent of a product."""
    exponents = fdrda.exponents_of(spec)
    d = spec.d_format
    p: Any = spec.parameters
    least = exponents.constant(spec.c_format.min_exponent)
    zeros = [z3.Or(x.significand == 0, y.significand == 0) for x, y in zip(step.a, step.b, strict=True)]
    significands = [[x.significand, y.significand] for x, y in zip(step.a, step.b, strict=True)]
    none = all_of(zeros)

    def add_up(total: z3.BitVecRef, places: Sequence[int], e_max: z3.BitVecRef) -> Link:
        """That a sum of products is zero if they are."""
        terms = summands(total, len(places))
        if len(terms) != len(places):
            raise ArgumentError("the sum is not made of its products")
        links = []
        for k, term in zip(places, terms, strict=True):
            product = step.products[k]
            zero = Link(z3.Implies(zeros[k], product.significand == 0), (zeros[k], product.significand))
            pairing.derive("multiply", "a product with a zero is zero", [zero], [], significands[k])
            aligned = Link(z3.Implies(zeros[k], term == 0), (zeros[k], term))
            inputs = [product.sign, product.exponent, e_max]
            pairing.derive("align", "a zero is aligned to zero", [aligned], [zero], inputs)
            links.append(aligned)
        own = [zeros[k] for k in places]
        link = Link(z3.Implies(all_of(own), total == 0), (*own, total))
        return pairing.derive("accumulate", "a sum of zeros is zero", [link], links)[0]

    nothing = Link(z3.Implies(none, step.dot == 0), (none, step.dot))
    text = "if every product is zero, their sum is"
    if hasattr(step, "groups"):
        count = len(step.groups)
        links: list[Link] = []
        for g, (group, cut) in enumerate(zip(step.groups, step.groups_cut, strict=True)):
            places = range(g, len(zeros), count)
            own = [zeros[k] for k in places]
            total = add_up(group, places, step.e_groups[g])
            link = Link(z3.Implies(all_of(own), cut == 0), (*own, cut))
            inputs = [step.e_products, step.e_groups[g]]
            links += pairing.derive("align", "a group that is zero is cut to zero", [link], [total], inputs)
        pairing.derive("accumulate", text, [nothing], links)
    else:
        pairing.derive(
            "accumulate", text, [nothing], [add_up(step.dot, range(len(zeros)), step.e_products)], zeros
        )
    enough = exponents.constant(d.min_exponent - d.fraction_bits + p.dot_bits)
    e_dot = Link(
        z3.If(none, step.e_dot == least, z3.UGE(step.e_dot, enough)),
        (none, step.e_dot),
    )
    text = "the exponent of products that are not all zero is far above the least place of d"
    pairing.derive("align", text, [e_dot], [], [step.e_products, none])
    c = Link(z3.UGE(step.addend.exponent, least), (step.addend.exponent,))
    pairing.derive("multiply", "c's exponent is at least its format's least", [c], [], operand_codes(step.c))
    if hasattr(step, "groups"):
        count = len(step.groups)
        each = [pairing.bounded(x, len(step.products[g::count])) for g, x in enumerate(step.groups)]
        most = dot_bound(p, len(zeros))
        bound = Link(z3.And(step.dot <= most, step.dot >= -most), (step.dot,))
        text = "a sum of groups is within the sum of their bounds"
        pairing.derive("accumulate", text, [bound], each, [*step.e_groups, step.e_products])
    else:
        bound = pairing.bounded(step.dot, len(zeros))
    link = _places(step.total, step.e_max, exponents, p.dot_bits, spec)
    text = "the sum with c is c, or its last place is far above the least one of d"
    inputs = [step.addend.sign, step.addend.significand]
    return pairing.derive("accumulate", text, [link], [nothing, bound, e_dot, c], inputs)[0]


def _fixed_point_places(pairing: Pairing, spec: DotAdd, step: Any) -> Link:
    """The sum of products is zero, or has the exponent above its highest place."""
    p: Any = spec.parameters
    frame = step.sum.y.size() - 1  # c has one integer bit
    bits = frame - efda.places_below(efda.precision(spec, p))
    lowest = product_range(spec.a_format, spec.b_format).low - efda.fraction_bits(spec)
    exponents, d = exponent_range(spec.c_format).union(lowest + bits), spec.d_format
    least = exponents.constant(spec.c_format.min_exponent)
    enough = exponents.constant(d.min_exponent - d.fraction_bits + frame)
    term = Link(
        z3.If(
            step.term.significand == 0,
            step.term.exponent == least,
            z3.UGE(step.term.exponent, enough),
        ),
        (step.term.exponent, step.term.significand),
    )
    text = "the sum of products is zero, or its exponent is far above the least place of d"
    bound = pairing.bounded(step.dot, len(step.products))
    pairing.derive("align", text, [term], [bound])
    c = Link(z3.UGE(step.addend.exponent, least), (step.addend.exponent,))
    pairing.derive("multiply", "c's exponent is at least its format's least", [c], [], operand_codes(step.c))
    link = _places(step.sum.total, step.sum.e_max, exponents, frame, spec)
    text = "the sum with c is c, or its last place is far above the least one of d"
    inputs = [step.term.sign, step.addend.sign, step.addend.significand]
    return pairing.derive("accumulate", text, [link], [term, c], inputs)[0]


def _normal_or_plus_zero(pairing: Pairing, spec: DotAdd, steps: Sequence[Any]) -> Link:
    """gps: products are zero or at least 2^m, so they are multiples of 2^(m - 23), and a sum of two that does not
    vanish is at least that; and so on.  Nothing but zeros of c and a group could then add up to −0 or be flushed."""
    one = 1 << fp32.fraction_bits

    def at_least(code: z3.BitVecRef, exponent: int) -> Link:
        """Zero, or not below 2^exponent."""
        field = exponent + fp32.bias
        if field < 1:
            raise ArgumentError("products may underflow")
        low = magnitude(code, fp32)
        return Link(z3.Or(low == 0, z3.UGE(low, field * one)), (code,))

    def usable(code: z3.BitVecRef) -> Link:
        low = magnitude(code, fp32)
        return Link(z3.And(z3.Or(low == 0, z3.UGE(low, one)), code != fp32.sign_mask), (code,))

    c = usable(steps[0].c)
    pairing.derive("decode", "c is flushed to +0 or a normal number", [c], [], constants_of(steps[0].c))
    for step in steps:
        least = spec.a_format.min_exponent + spec.b_format.min_exponent
        level: list[Link] = []
        for x, y, product in zip(step.a, step.b, step.products, strict=True):
            text = "a product is zero, or not below that of the least normal factors"
            level += pairing.derive("multiply", text, [at_least(product, least)], [], operand_codes(x, y))
        sums = list(step.sums)
        while len(level) > 1:
            least -= fp32.fraction_bits
            pairs: list[Link] = []
            for i in range(0, len(level), 2):
                result = sums.pop(0).result
                text = "a sum is zero, or not below the last place of the least term"
                (link,) = pairing.derive("accumulate", text, [at_least(result, least)], level[i : i + 2])
                flushed = at_least(flush(result, keep_sign=True), least)
                pairs += pairing.derive("encode", "flushed, it is the same", [flushed], [link])
            level = pairs
        sum_ = usable(step.addition.result)
        text = "the sum of +0 or a normal number and such a group is no subnormal and not −0"
        at_least(step.addition.result, least - fp32.fraction_bits - 1)  # where c and the group nearly cancel
        pairing.derive("accumulate", text, [sum_], [c, *level])
        c = usable(step.result)
        pairing.derive("encode", "flushed, it is the same", [c], [sum_])
    return c


def answer_minus_zero(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} never gives −0"
    relation = _runs(spec, lambda d: d != spec.d_format.sign_mask, lambda _: True)
    return settle(instruction, asker, question, [relation], lambda: [never_minus_zero(spec)])


# ---- every number ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Unreachable(HtmlText):
    """A code that no input gives, and the proof of it."""

    instruction: Instruction
    code: int
    what: str  #: what every result is instead
    obligations: tuple[Obligation, ...]

    @property
    def summary(self) -> str:
        d = self.instruction.d_format
        return f"nothing gives {self.code:#x} = {d.text(self.code)}: {self.what}"

    def to_json(self) -> dict[str, Any]:
        return {
            "instruction": self.instruction.label,
            "unreachable": hex(self.code),
            "because": self.what,
            "obligations": [each.to_json() for each in self.obligations],
        }

    def __str__(self) -> str:
        lines = [
            "no input gives",
            "  d".ljust(14) + code_text(self.code, self.instruction.d_format),
            self.what,
        ]
        return "\n".join([*lines, f"proved: {counted(len(self.obligations), 'obligation')}"])

    def __repr__(self) -> str:
        return short_text(self, self.instruction.label, self.summary)


def passes_c_on(spec: DotAdd) -> Pairing:
    """That with products +0·+0 (and scales 1) the result is c, for every c but NaNs and −0."""
    if spec.c_format != spec.d_format:
        raise ArgumentError(f"c is {spec.c_format}, d is {spec.d_format}")
    pairing, fmt = Pairing(), spec.d_format
    c = z3.BitVec("c", fmt.storage_bits)
    a, b = (z3.BitVecVal(0, x.storage_bits) for x in (spec.a_format, spec.b_format))
    scales: list[z3.BitVecRef] = []
    if (scale := spec.scale_format) is not None:
        scales = [z3.BitVecVal(scale.bias << scale.fraction_bits, scale.storage_bits)] * spec.scales
    trace = smt.dot_add(spec, [a] * spec.k, [b] * spec.k, c, scales, scales)
    number = Link(z3.And(z3.Not(is_nan(c, fmt)), c != fmt.sign_mask), (c,))
    pairing.assume("c is neither a NaN nor −0", number)
    given = [number]
    for step in trace.steps:
        link = Link(step.result == c, (), ((step.result, c),))
        pairing.derive("identity", "a step whose products are +0·+0 gives back its c", [link], given)
        given = [number, link]
    pairing.conclude(link, "the result is c")
    return pairing


def _ends_in_zeros(spec: DotAdd) -> tuple[Pairing, int, str]:
    """That the low bits that ρ does not keep are zero."""
    rho = spec.parameters.rho  # type: ignore[attr-defined]
    bits = rho.format.fraction_bits - rho.fraction_bits
    if bits == 0:
        raise ArgumentError("ρ keeps every bit")
    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[-1]
    numbers = z3.Or(is_nan(step.result, spec.d_format), z3.Extract(bits - 1, 0, step.result) == 0)
    link = Link(numbers, ())
    text = f"the low {bits} bits of every number are zero"
    pairing.derive("encode", text, [link], [], [*step.special, *step.rounded])
    pairing.conclude(link, text)
    return pairing, 1, text


def _no_subnormals(spec: DotAdd) -> tuple[Pairing, int, str]:
    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c).steps[-1]
    low = magnitude(step.result, fp32)
    link = Link(z3.Or(low == 0, z3.UGE(low, 1 << fp32.fraction_bits)), ())
    text = "no result is subnormal"
    pairing.derive("encode", text, [link], [], [step.addition.result])
    pairing.conclude(link, text)
    return pairing, 1, text


def _too_large(spec: DotAdd) -> tuple[Pairing, int, str]:
    """That no sum is rounded to the largest finite number, by what the exponents allow (fda)."""
    from mmaformal.encodings.smt.fda import exponents_of

    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[-1]
    exponents = exponents_of(spec, spec.parameters)  # type: ignore[arg-type]
    highest = z3.BitVecVal(exponents.high - exponents.low, exponents.bits)
    below = {}
    for operands, term in [
        *(((u, v), p) for u, v, p in zip(step.a, step.b, step.products, strict=True)),
        ((step.c,), step.addend),
    ]:
        link = Link(z3.ULE(term.exponent, highest), (term.exponent,))
        codes = [code for each in operands for code in operand_codes(each)]
        pairing.derive("multiply", "exponents are in range", [link], [], codes)
        below[term.exponent.get_id()] = link
    top = pairing.at_most_all(step.e_max, highest, below)
    largest = spec.d_format.infinity
    assert largest is not None
    largest -= 1
    link = Link(step.result != largest, ())
    text = "no sum is rounded to the largest finite number"
    pairing.derive("round", text, [link], [top], [step.total, *step.special])
    pairing.conclude(link, text)
    return pairing, largest, text


def answer_every_number(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} gives every number of {spec.d_format} but −0, and both infinities, for some input"
    why = []
    try:
        return Holds(question, prove(asker, passes_c_on(spec)), asker.elapsed)
    except (UnprovedError, ArgumentError) as error:
        why.append(str(error))
    ways = {"gps": [_no_subnormals], "fda": [_ends_in_zeros, _too_large]}.get(spec.parameters.algorithm, [])
    for way in ways:
        try:
            pairing, code, text = way(spec)
            proof = prove(asker, pairing)
        except (UnprovedError, ArgumentError) as error:
            why.append(str(error))
            continue
        witness = Unreachable(instruction, code, text, proof.obligations)
        return Fails(question, witness, f"Not so: {witness.summary}.", asker.elapsed)
    return Unknown(question, "; ".join(why), tuple(asker.proved), asker.elapsed)


NO_NAN = Property("no-nan-from-finite", "no finite input gives a NaN", answer_no_nan)
NEVER_MINUS_ZERO = Property("never-minus-zero", "the result is never −0", answer_minus_zero)
EVERY_NUMBER = Property(
    "every-number",
    "every number of d's format but −0, and both infinities, is the result of some input",
    answer_every_number,
)
PROPERTY = NO_NAN

main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
