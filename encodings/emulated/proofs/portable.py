"""Why Ozaki's splitting gives the same d on two units: its sums are the same integers, whatever the units cut off.

1. *exact*:    of both programs, that each sum of words of numbers is exact (`exactness`);
2. *code*:     an integer of at most 2^24 that is not −0 has one code in fp32;
3. *same*:     from the same sums both programs make the same d;
4. *special*:  word 1 of an infinite factor, or of a NaN, is a NaN, which steps, scalings and additions keep: d is
               the one NaN in both.
"""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.encodings.emulated.proofs import exactness
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import canonical_nan
from mmaformal.facts import exactness as exact_sums
from mmaformal.facts.fused_steps import fused_step
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.kernel import NotProvedError, by_rule
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

ON_UNITS = Rule(
    "same integers",
    "two programs whose sums of words are the same integers, since the sum of integers does not depend on their order,"
    " have the same codes of sums, and so the same d; and where a factor is no number, both have the same NaN",
)


def applies(x: DotAdd, y: DotAdd) -> bool:
    """Whether two programs differ in their units alone, and in how many products those take at a time."""
    p, q = x.parameters, y.parameters
    if not (p.is_program and q.is_program):
        return False
    assert isinstance(p, Emulated)
    assert isinstance(q, Emulated)
    if not p.common or p.words == 1:
        return False
    used = [pair for part in p.parts for pair in part.products]
    if not (any(i == 1 for i, _ in used) and any(j == 1 for _, j in used)):
        return False  # no NaN of a word 1 reaches d
    if any(spec.k != spec.parameters.step_products for spec in (x, y)):
        return False
    if x.product_order or y.product_order or p.unit.product_order or q.unit.product_order:
        return False
    same = all(p[name] == q[name] for name in ("rounding", "words", "shift", "common"))
    formats = [(spec.k, r.unit.a_format, r.unit.b_format) for spec, r in ((x, p), (y, q))]
    sums = [[(part.products, part.shift) for part in r.parts] for r in (p, q)]
    return same and formats[0] == formats[1] and sums[0] == sums[1]


def prove_same(asker: Asker, x: DotAdd, y: DotAdd) -> Proof | None:
    """Prove that two programs of which that applies give the same d; None if a claim is not proved."""
    try:
        proofs = [_exact(asker, spec) for spec in (x, y)]
        return by_rule(f"{ON_UNITS.name}: {ON_UNITS.statement}", *proofs, _same(asker, x, y))
    except NotProvedError:
        return None


def _exact(asker: Asker, spec: DotAdd) -> Proof:
    proving = Composing(asker)
    exact_sums.conclude_exact(proving, spec, exactness.prove_program(proving, spec))
    return proving.proof()


def _same(asker: Asker, x: DotAdd, y: DotAdd) -> Proof:
    proving = Composing(asker)
    claims = [_one_code(proving), _same_ends(proving, x, y), *_words_of_specials(proving, x)]
    for spec in (x, y):
        assert isinstance(spec.parameters, Emulated)
        claims += _nan_is_kept(proving, one_step(spec.parameters.unit))
    claims += _nan_reaches_d(proving, x)
    text = "integers have one code, of the same sums d is the same, and a NaN reaches d"
    proving.conclude(text, z3.And(claims), claims)
    return proving.proof()


def _one_code(proving: Composing) -> z3.BoolRef:
    codes = z3.BitVec("u", fp32.storage_bits), z3.BitVec("v", fp32.storage_bits)
    u, v = (exactness.integer_word(code, fp32, fp32.fraction_bits + 1) for code in codes)
    signs = z3.Or(u.x.sign == v.x.sign, u.magnitude == 0)
    given = [
        u.is_one,
        v.is_one,
        u.magnitude == v.magnitude,
        signs,
        *(code != fp32.sign_mask for code in codes),
    ]
    text = "an integer of at most 2^24 that is not −0 has one code"
    return proving.claim("one code", text, z3.Implies(z3.And(given), codes[0] == codes[1]))


def _same_ends(proving: Composing, x: DotAdd, y: DotAdd) -> z3.BoolRef:
    """Return the claim that from the same sums, the same c and the same exponents in common both programs make the
    same d."""
    inputs = symbolic_inputs(x)
    steps = [smt.dot_add(spec, inputs.a, inputs.b, inputs.c).steps[0] for spec in (x, y)]
    sums = []
    for step in steps:
        assert isinstance(step, emulated.EmulatedStep)
        sums.append([run.chain[-1].result for run in step.runs])
    first = steps[0]
    assert isinstance(first, emulated.EmulatedStep)
    equal = z3.And([u == v for u, v in zip(*sums, strict=True)])
    text = "from the same sums both programs make the same d"
    claim = z3.Implies(equal, steps[0].result == steps[1].result)
    return proving.claim("same ends", text, claim)


# ---- special values --------------------------------------------------------------------------------------------------


def _words_of_specials(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """Prove that word 1 of what is no number is a NaN."""
    p, x = spec.parameters_as(Emulated), z3.BitVec("x", fp32.storage_bits)
    top = z3.BitVecVal((1 << fp32.exponent_bits) - 1, fp32.exponent_bits)
    special, claims = z3.Extract(30, fp32.fraction_bits, x) == top, []
    for fmt in dict.fromkeys((p.unit.a_format, p.unit.b_format)):
        code = emulated.words(x, p, fmt, emulated.Common((), top)).codes[1]
        text = "word 1 of an infinity, or a NaN, is a NaN"
        claims.append(proving.claim("word of a special", text, z3.Implies(special, is_nan(code, fmt))))
    return claims


def _nan_is_kept(proving: Composing, one: DotAdd) -> list[z3.BoolRef]:
    """Prove that a step of the unit with a NaN gives one."""
    x = symbolic_inputs(one)
    step = fused_step(one, x).step
    nans = [is_nan(code, one.a_format) for code in x.a] + [is_nan(code, one.b_format) for code in x.b]
    some, nan = z3.Or(*nans, is_nan(x.c, one.c_format)), step.special[0]
    text = "a step with a NaN gives a NaN"
    seen = proving.claim("a NaN is seen", text, z3.Implies(some, nan))
    claim = z3.Implies(nan, is_nan(step.result, one.d_format))
    told = proving.claim("and told", text, claim)
    return [seen, told]


def _nan_reaches_d(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """Prove that a scaled NaN is one, and its sum with anything the one NaN."""
    p, nan = spec.parameters_as(Emulated), z3.BitVecVal(canonical_nan(fp32), fp32.storage_bits)
    u, v = (z3.BitVec(name, fp32.storage_bits) for name in ("u", "v"))
    commons = [emulated.Common((), z3.BitVec(f"largest_{side}", fp32.exponent_bits)) for side in "ab"]
    text, claims = "a NaN, scaled, is one", []
    for part in p.parts:
        scaled = emulated.descaled(u, part, p, commons)
        claims.append(proving.claim("scaled NaN", text, z3.Implies(is_nan(u, fp32), is_nan(scaled, fp32))))
    text = "a sum with a NaN is the one NaN"
    total = ieee.add(u, v, IEEE_FP32, canonical_nan(fp32)).result
    claim = z3.Implies(z3.Or(is_nan(u, fp32), is_nan(v, fp32)), total == nan)
    return [*claims, proving.claim("sum with a NaN", text, claim)]
