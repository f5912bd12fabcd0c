"""Why sums of words by their remainders are exact (Ozaki, Uchino and Imamura, Ozaki Scheme II), and where they are not.

Of one factor, with any exponent in common that is not below its own, and of each modulus p:

1. *word*:       its magnitude is the factor in units of 2^(e + 1 − bits), toward zero: off by less than one;
2. *byte*:       256·r + byte has 16 bits, and is p·q + r' by division, r' below p;
3. *next*:       the remainder next to zero is r or r − p, or of −m, −r or p − r, and int8 holds it.

Of the sum of the products of remainders, of any number of products up to K:

4. *no wrap*:    a product is at most 2^14, the sum after n of them at most n · 2^14, so int32 holds it;
5. *positive*:   with ⌊P/2⌋ mod p and a multiple of p added it is not negative, and does not wrap.

Of what the sums leave:

6. *digit*:      a difference of two remainders and a multiple of p does not wrap, nor does it times an inverse;
7. *put*:        the number that is put together from n digits is below the product of n moduli, and does not wrap.

Of integers, as real numbers:

8. *remainder*:  if x = p·X + r and 256·r + byte = p·q + r', then 256·x + byte = p·(256·X + q) + r';
9. *product*:    x·y is a product of remainders and a multiple of p; so is a sum of them (*sum*);
10. *Garner*:    with digit t the number leaves what it should of p_t, and still of the moduli before;
11. *coprime*:   what is a multiple of M and of p is one of M·p, by Bézout; in the end, of P;
12. *bound*:     |S| is at most K · (2^bits − 1)², S the sum of the products of words, so 0 ≤ S + ⌊P/2⌋ < P (*whole*);
13. *one*:       so S + ⌊P/2⌋ and the number V of the digits differ by less than one P: V − ⌊P/2⌋ = S;
14. *loss*:      a product is off by less than 2^(bits + 1) of the unit of both words.

Where K · (2^bits − 1)² is too large for P, the least sum that is not told from another is found, and a case of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from operator import mul

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import shown_exact
from mmaformal.encodings.residues import PRODUCT_BITS, Residues
from mmaformal.encodings.residues import smt as residues
from mmaformal.encodings.residues.proofs.flow import check_flow, prove_largest_word
from mmaformal.encodings.smt.blocks import Bool, decode, negate_if, resize
from mmaformal.facts.exactness import Exact
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing, Rule
from mmaformal.solver.answers import Fails
from mmaformal.spec import DotAdd

EACH = Rule(
    "each word and each product",
    "what is proved of one word with any exponent in common, and of a sum with one product more, holds of all of them,"
    " one after the other; that the unit's terms are made of these is seen of the terms",
)
DIVISION = Rule(
    "division",
    "x bvurem p is r, x = p · q + r, 0 ≤ r < p, of whole numbers: so SMT-LIB defines it",
)
INTEGERS = Rule(
    "integers",
    "integers are real numbers, and so are bit-vectors in which nothing wraps; sums and products of integers are"
    " integers, and one between −1 and 1 is 0",
)


def prove_exact_words(proving: Composing, spec: DotAdd) -> Exact:
    """Prove that the sum of words is exact.  Raises NotProvedError."""
    p = spec.parameters_as(Residues)
    if spec.k != p.products:
        raise UnsupportedError(p.algorithm, "when a chain of programs is exact")
    if not p.suffices:
        raise UnsupportedError(p.algorithm, "sums that these moduli do not tell from one another")
    check_flow(spec)
    formats = dict.fromkeys((spec.a_format, spec.b_format))
    claims = [_prove_word(proving, p, fmt) for fmt in formats]
    for fmt in formats:
        claims += prove_largest_word(proving, p, fmt)
    claims += _prove_no_wrap(proving, p)
    for t in range(len(p.moduli)):
        claims += _prove_remainders(proving, p, t)
    claims += [*_prove_digits(proving, p), *_prove_put(proving, p)]
    claims += [*_prove_congruent(proving, p), *_prove_garner(proving, p), *_prove_one(proving, p)]
    claims.append(_prove_loss(proving, p))
    proving.rests_on(EACH)
    proving.rests_on(DIVISION)
    proving.rests_on(INTEGERS)
    text = (
        f"the sum that is rounded is S = Σ v·w exactly, v and w words of a and b, integers below 2^{p.bits}: no sum of"
        f" int32 wraps, and {len(p.moduli)} remainders tell every |S| < 2^{p.most.bit_length()} that there is from all"
        f" others; a product v·w is off by less than 2^{p.bits + 1} units of v times units of w"
    )
    return Exact(z3.BoolVal(True), z3.BoolVal(True), z3.And(claims), tuple(claims), text, _chain)


def _chain(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    raise UnsupportedError("residues", "when a chain of programs is exact")


# ---- one factor, one sum ---------------------------------------------------------------------------------------------


def _prove_word(proving: Composing, p: Residues, fmt: Format) -> Bool:
    """Prove that a word is the factor in the unit of the largest, toward zero."""
    x = decode(z3.BitVec("x", fmt.storage_bits), fmt)
    largest = z3.BitVec("largest", fmt.exponent_bits)
    made, bits = residues.word(x, largest, fmt, p), fmt.fraction_bits + 2
    dropped = fmt.fraction_bits + 1 - p.bits
    places = resize(largest - x.field, max(fmt.exponent_bits, bits)) + dropped
    width = places.size() + 1
    significand, magnitude = (resize(each, width) for each in (x.significand, made.magnitude))
    by = resize(places, width)
    back, unit = magnitude << by, z3.BitVecVal(1, width) << by
    near = z3.And(z3.ULE(back, significand), z3.ULT(significand - back, unit))
    gone = z3.And(magnitude == 0, z3.UGE(places, fmt.fraction_bits + 1))
    claim = z3.Implies(z3.UGE(largest, x.field), z3.Or(gone, near))
    return proving.claim("word", "a word is its factor in units of the largest, toward zero", claim)


def _prove_remainders(proving: Composing, p: Residues, t: int) -> list[Bool]:
    """Prove of a modulus what is left with a byte more, and next to zero; and that no sum is negative."""
    modulus = p.moduli[t]
    above, byte, sign = (
        z3.BitVec("above", residues.BYTE),
        z3.BitVec("byte", residues.BYTE),
        z3.BitVec("sign", 1),
    )
    both = z3.Concat(above, byte)
    left, wide = residues.left_of(both, modulus), z3.URem(both, z3.BitVecVal(modulus, both.size()))
    text = f"what is left of {modulus} with a byte more has 8 bits"
    claims = [proving.claim(f"byte of {modulus}", text, resize(left, both.size()) == wide)]

    bits = residues.MODULUS + 2
    near = z3.SignExt(bits - residues.BYTE, residues.next_to_zero(sign, above, modulus))
    signed, of = negate_if(sign, resize(above, bits)), z3.BitVecVal(modulus, bits)
    text = "the number next to zero is that, or a modulus more or less, whatever the sign"
    is_one = z3.Or(near == signed, near == signed + of, near == signed - of)
    small = z3.And(2 * near <= modulus, -2 * near <= modulus)
    claim = z3.Implies(z3.ULT(resize(above, bits), of), z3.And(is_one, small))
    claims.append(proving.claim(f"next to zero of {modulus}", text, claim))

    total, bound = z3.BitVec("total", residues.WIDE), p.products << PRODUCT_BITS
    made, more = residues.positive(total, t, p), 2 * residues.WIDE
    added = -(-bound // modulus) * modulus + p.offset % modulus
    exact = resize(made, more) == z3.SignExt(more - total.size(), total) + added
    text = f"a sum and a multiple of {modulus} is not negative, and does not wrap"
    claim = z3.Implies(z3.And(total <= bound, total >= -bound), exact)
    claims.append(proving.claim(f"positive of {modulus}", text, claim))
    return claims


def _prove_no_wrap(proving: Composing, p: Residues) -> list[Bool]:
    """Prove that no sum of products of remainders wraps."""
    s, t = z3.BitVecs("s t", residues.BYTE)
    before, n = z3.BitVecs("before n", residues.WIDE)
    own, more = residues.WIDE, 2 * residues.WIDE
    x, y = (z3.SignExt(own - residues.BYTE, each) for each in (s, t))
    product, most = x * y, 1 << PRODUCT_BITS
    exact = z3.SignExt(more - residues.BYTE, s) * z3.SignExt(more - residues.BYTE, t)
    text = f"a product of remainders is at most 2^{PRODUCT_BITS}"
    within = z3.And(product <= most, product >= -most, z3.SignExt(more - own, product) == exact)
    product_ = proving.claim("product of remainders", text, within)
    term = z3.BitVec("term", own)
    bound = resize(n, more) * most
    wide = z3.SignExt(more - own, before)
    given = z3.And(z3.ULT(n, p.products), wide <= bound, wide >= -bound, term <= most, term >= -most)
    after = z3.SignExt(more - own, before + term)
    same = after == wide + z3.SignExt(more - own, term)
    reach = z3.And(after <= bound + most, after >= -bound - most)
    text = f"the sum of up to {p.products} of them does not wrap in int32"
    return [product_, proving.claim("no wrap", text, z3.Implies(given, z3.And(same, reach)))]


def _prove_digits(proving: Composing, p: Residues) -> list[Bool]:
    """Prove that nothing wraps where a digit is made."""
    x, digit = z3.BitVecs("x digit", residues.BYTE)
    more = 4 * residues.BYTE
    claims = []
    for modulus in p.moduli:
        made, least = residues.less(x, digit, modulus), (256 // modulus + 1) * modulus
        text = f"a difference of remainders and a multiple of {modulus} is not negative, and does not wrap"
        exact = resize(made, more) == resize(x, more) - resize(digit, more) + least
        claims.append(proving.claim(f"difference of {modulus}", text, exact))
    made = residues.times(x, resize(digit, 2 * residues.BYTE))
    exact = resize(made, more) == resize(x, more) * resize(digit, more)
    claims.append(proving.claim("times an inverse", "a remainder times an inverse does not wrap", exact))
    return claims


def _prove_put(proving: Composing, p: Residues) -> list[Bool]:
    """Prove that a number that is put together from digits does not wrap, and is below the product of the moduli."""
    bits, digit, claims = max(p.whole.bit_length(), residues.BYTE), z3.BitVec("digit", residues.BYTE), []
    whole, above = z3.BitVec("whole", bits), p.moduli[-1]
    for modulus in reversed(p.moduli[:-1]):
        made, more = residues.with_digit(whole, digit, modulus), bits + residues.MODULUS
        exact = resize(made, more) == resize(whole, more) * modulus + resize(digit, more)
        small = z3.And(z3.ULT(whole, above), z3.ULT(resize(digit, residues.MODULUS), modulus))
        above *= modulus
        text = f"with a digit of {modulus} a number does not wrap, and is below {above}"
        claim = z3.Implies(small, z3.And(exact, z3.ULT(made, above)))
        claims.append(proving.claim(f"put together {modulus}", text, claim))
    made, more = residues.less_half(whole, p), bits + 2
    text = "less ⌊P/2⌋ it does not wrap"
    claim = z3.Implies(z3.ULT(whole, p.whole), z3.SignExt(1, made) == resize(whole, more) - p.offset)
    return [*claims, proving.claim("less half", text, claim)]


# ---- integers --------------------------------------------------------------------------------------------------------


def _prove_congruent(proving: Composing, p: Residues) -> list[Bool]:
    """Prove that remainders are taken byte by byte, and multiplied and added for the numbers."""
    x, y, X, Y, s, t, of, q, byte = z3.Reals("x y X Y s t p q byte")
    S, N, D, n, u = z3.Reals("S N D n u")
    text = "with a byte more a remainder is the number's with that byte"
    given = z3.And(x == of * X + s, 256 * s + byte == of * q + t)
    claim = z3.Implies(given, 256 * x + byte == of * (256 * X + q) + t)
    claims = [proving.claim("remainder", text, claim)]
    text = "a product of words is one of remainders, and a multiple of the modulus"
    given, multiple = z3.And(x == of * X + s, y == of * Y + t), X * y + s * Y
    claims.append(proving.claim("product", text, z3.Implies(given, x * y == s * t + of * multiple)))
    text = "so is the sum with it"
    given = z3.And(of * N + D == S, x == s + of * n)
    claims.append(proving.claim("sum", text, z3.Implies(given, S + x == of * (N + n) + (D + s))))
    for modulus in p.moduli:
        bound = p.products << PRODUCT_BITS
        added = -(-bound // modulus) * modulus + p.offset % modulus
        given = z3.And(modulus * N + D == S, D + added == modulus * q + u)
        multiple = N + q - (added - p.offset) // modulus
        text = f"what the sum leaves of {modulus}, S + ⌊P/2⌋ does"
        claims.append(
            proving.claim(
                f"left of {modulus}", text, z3.Implies(given, S + p.offset == modulus * multiple + u)
            )
        )
    return claims


def _prove_garner(proving: Composing, p: Residues) -> list[Bool]:
    """Prove that the number of the digits leaves what it should of each modulus."""
    x, d, D, q, r, y, u, V, M, of, by, n, m, w = z3.Reals("x d D q r y u V M p by n m w")
    claims = []
    for t, modulus in enumerate(p.moduli):
        for before in p.moduli[:t]:
            inverse, least = pow(before, -1, modulus), 256 // modulus + 1
            given = z3.And(x - d + least * modulus == modulus * q + D, D * inverse == modulus * r + y)
            multiple = q - least - (before * inverse - 1) // modulus * D + before * r
            text = f"of {modulus}, x is the digit before and {before} times the next x"
            claim = z3.Implies(given, x == d + before * y + modulus * multiple)
            claims.append(proving.claim(f"digit of {modulus}", text, claim))
    text = "so what the number of the digits before lacks of u is M · x, M the product of their moduli, and a multiple"
    given = z3.And(u == V + M * x + of * n, x == d + by * y + of * m)
    claim = z3.Implies(given, u == (V + M * d) + (M * by) * y + of * (n + M * m))
    claims.append(proving.claim("Garner", text, claim))
    text = "a digit of a later modulus adds a multiple"
    claims.append(proving.claim("later", text, V + (M * of) * d == V + of * (M * d)))
    text = "digit by digit from the last one, the number is that of the digits"
    claim = z3.Implies(x == by * w + d, V + M * x == (V + M * d) + (M * by) * w)
    claims.append(proving.claim("digits", text, claim))
    return claims


def _prove_one(proving: Composing, p: Residues) -> list[Bool]:
    """Prove that they differ by a multiple of P, and, both not negative and below P, not at all."""
    z, m, n, k, S, V, x, y, w = z3.Reals("z m n k S V x y w")
    claims = []
    for before, modulus in zip(accumulate(p.moduli, mul), p.moduli[1:], strict=False):
        of_before = pow(before, -1, modulus)
        of_modulus = (1 - of_before * before) // modulus
        text = f"a multiple of {before} and of {modulus} is one of their product"
        given, multiple = z3.And(z == before * m, z == modulus * n), of_modulus * m + of_before * n
        claim = z3.Implies(given, z == before * modulus * multiple)
        claims.append(proving.claim(f"coprime {modulus}", text, claim))
    most = (1 << p.bits) - 1
    text = "a product of words is at most the square of the largest"
    sized = z3.And(x <= most, -x <= most, y <= most, -y <= most)
    within = z3.And(x * y <= most * most, -x * y <= most * most)
    claims.append(proving.claim("bound", text, z3.Implies(sized, within)))
    text = "the sum of n + 1 of them is at most n + 1 times that"
    given = z3.And(n * most * most >= S, n * most * most >= -S, w <= most * most, -w <= most * most)
    reach = (n + 1) * most * most
    claims.append(proving.claim("bounds", text, z3.Implies(given, z3.And(S + w <= reach, -S - w <= reach))))
    sized = z3.And(p.most >= S, p.most >= -S)
    text = "S + ⌊P/2⌋ is not negative, and below P"
    inside = z3.And(S + p.offset >= 0, S + p.offset < p.whole)
    claims.append(proving.claim("whole", text, z3.Implies(sized, inside)))
    given = z3.And(V - (S + p.offset) == p.whole * k, inside, V >= 0, p.whole > V)
    text = "a difference of both that is a multiple of P is less than one P"
    claims.append(proving.claim("one", text, z3.Implies(given, z3.And(k < 1, k > -1))))
    return claims


def _prove_loss(proving: Composing, p: Residues) -> Bool:
    """Prove what a product of words is off, in units of both words."""
    a, b, v, w = z3.Reals("a b v w")
    most = z3.RealVal(1 << p.bits)
    near = z3.And(a >= v, a - v < 1, b >= w, b - w < 1, v >= 0, w >= 0, v <= most - 1, w <= most - 1)
    apart = a * b - v * w
    text = "a product is off by what each of its words is, times the other"
    split = proving.claim("parts of a loss", text, apart == a * (b - w) + (a - v) * w)
    sized = z3.And(a * (b - w) <= most, (a - v) * w <= most - 1, a * (b - w) >= 0, (a - v) * w >= 0)
    sized = proving.claim("sizes of a loss", "each of these is at most 2^bits", z3.Implies(near, sized))
    text = f"so a product of words is not above that of the factors, and less than 2^{p.bits + 1} below it"
    claim = z3.Implies(near, z3.And(apart >= 0, apart < 2 * most))
    return proving.claim("loss", text, claim, [split, sized])


# ---- too few moduli --------------------------------------------------------------------------------------------------


def inexact(instruction: Instruction, seconds: float) -> Fails | None:
    """Return the least sum of words that the moduli do not tell from another, in a case; None where they suffice."""
    spec = instruction.spec
    p = spec.parameters_as(Residues)
    if p.suffices:
        return None
    least = p.whole - p.offset
    words = next(_cases(p, least), None)
    minimal = (
        f"|Σ v·w| = {least}, the least: sums from −⌊P/2⌋ to P − 1 − ⌊P/2⌋ have remainders of their own",
    )
    if words is None:
        words, minimal = (
            [(((1 << p.bits) - 1), (1 << p.bits) - 1)] * p.products,
            ("the largest sum, not the least",),
        )
    total = sum(x * y for x, y in words)
    words += [(0, 0)] * (spec.k - len(words))
    sides = [
        [_code(x, fmt) for x in side]
        for side, fmt in zip(zip(*words, strict=True), (spec.a_format, spec.b_format), strict=True)
    ]
    why = (
        f"the product of {len(p.moduli)} moduli is P = {p.whole}: of the sum {total} they leave what they leave of"
        f" {(total + p.offset) % p.whole - p.offset}"
    )
    witness = shown_exact(instruction, Codes(tuple(sides[0]), tuple(sides[1]), 0), [why], minimal)
    question = f"{instruction.label}: every sum of words is exact"
    return Fails(question, witness, why, seconds)


def _cases(p: Residues, total: int) -> Iterator[list[tuple[int, int]]]:
    """Yield words whose products have this sum, the largest of each side having all its bits."""
    top, most = 1 << (p.bits - 1), (1 << p.bits) - 1
    count, rest = divmod(total, most * most)
    words, (times, left) = [(most, most)] * count, divmod(rest, most)
    words += [(most, times)] * (times > 0) + [(left, 1)] * (left > 0)
    words += [(0, top)] * all(y < top for _, y in words) + [(top, 0)] * all(x < top for x, _ in words)
    if len(words) <= p.products:
        yield words


def _code(x: int, fmt: Format) -> int:
    """The code of an integer of no more bits than a significand has."""
    if not x:
        return 0
    exponent = x.bit_length() - 1
    fraction = (x << (fmt.fraction_bits - exponent)) - (1 << fmt.fraction_bits)
    return ((exponent + fmt.bias) << fmt.fraction_bits) + fraction << fmt.ignored_low_bits
