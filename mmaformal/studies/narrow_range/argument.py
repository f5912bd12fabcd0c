"""Theorems 3.1 and 4.1 of the error analysis of narrow-range formats, as claims about real numbers.

All that is assumed of rounding is (2.3) and (2.4): |fl(x) − x| ≤ u|x| + g and |FL(z) − z| ≤ U|z| + G, where nothing
overflows (the first is proved of every format: `rounding_model`).  With X = λx, Y = μy and θ/2 ≤ λ‖x‖, μ‖y‖ (3.4):

1. *product*: what rounding X and Y does to X·Y is at most α|X||Y| + β(|X| + |Y|) + κ; of one word, α = 2u + u²,
   β = g(1 + u), κ = g².
2. *sums*: so of n products, of P = Σ|X||Y|, Σ|X|, Σ|Y| and nκ.
3. *accumulation*: of N products, added one after the other, |s − Σ| ≤ (R − 1)·Σ|product| + m·R·G, R = (1 + U)^N and
   m = 2N − 1: by the first product, and one more.
4. *scaled back*: divided by λμ, aP + b(Σ|X| + Σ|Y|) + k is at most
   a|x|ᵀ|y| + 2(b/θ)(‖y‖∞ ‖x‖₁ + ‖x‖∞ ‖y‖₁) + 4(k/θ²) ‖x‖∞ ‖y‖∞.
5. *rows*: a row of such bounds adds up to at most (a + 4nb/θ + 4nk/θ²) ‖A‖∞ ‖B‖∞, for ‖x‖₁ ≤ ‖A‖∞, and the largest
   magnitudes, and the sums, of B's columns add up to at most n‖B‖∞ each.

So ‖Ĉ − AB‖ is at most (2u + u² + 4nω(1 + u) + 4n²ω²)·R + (R − 1) + 4n(2n − 1)·R·G/θ² of ‖A‖∞ ‖B‖∞, ω = g/θ.  The
paper's (3.25) has 4n²ω(1 + u) there, since it bounds ‖x‖₁ by n‖x‖∞ first; and n·U for R − 1, which is to first order
the same and does not follow from (2.4): two products, each operation off by U, are off by 2U + U².

Of p words (4.29), what is left of X is at most max(u^p|X|, u^(p − 1)g), by induction over words; so 1 holds with u^p
and u^(p − 1)g in the place of u and g, and with what (4.31) leaves out: products of words with i + j ≥ p, where a word
is at most (1 + u)·max(|X|, g/u), and not (1 + u)|X|, as (4.26) has it.
"""

from __future__ import annotations

import z3

from mmaformal.facts.product_bound import is_within
from mmaformal.proof.composition import Composing, Rule

SUMS = Rule(
    "sums of real numbers",
    "what holds of one term, and of one more if it holds of those before, holds of any number of them; finite sums may "
    "be taken in any order",
)


def prove_theorem_3_1(proving: Composing) -> None:
    """The claims 1 to 5 for one word, concluded.  Raises NotProvedError."""
    u, g, ax, ay = z3.Reals("u g ax ay")
    text = "with |Δx| ≤ u|x| + g, α = 2u + u², β = g(1 + u) and κ = g²"
    lost = ax * (u * ay + g) + ay * (u * ax + g) + (u * ax + g) * (u * ay + g)
    of_word = lost == (2 * u + u * u) * ax * ay + g * (1 + u) * (ax + ay) + g * g
    made = [_rounding(proving), _product(proving), proving.claim("one word", text, of_word)]
    _conclude(proving, [*made, *_common(proving)], "the bound of a product of one word")


def prove_theorem_4_1(proving: Composing) -> None:
    """Prove what is left of a number after p words, the size of a word, and what leaving out products of words does,
    and conclude.  Raises NotProvedError."""
    made = [*_words(proving), _product(proving), _left_out(proving), *_common(proving)]
    _conclude(proving, made, "the bound of a product of several words")


def _conclude(proving: Composing, made: list[z3.BoolRef], text: str) -> None:
    proving.rests_on(SUMS)
    proving.conclude(f"all claims of {text}", z3.And(made))


def _common(proving: Composing) -> list[z3.BoolRef]:
    """Claims 2 to 5, for any α, β and κ."""
    return [*_sums(proving), *_accumulation(proving), *_scaled_back(proving), *_rows(proving)]


# ---- rounding --------------------------------------------------------------------------------------------------------


def _rounding(proving: Composing) -> z3.BoolRef:
    """(3.5) from (2.3)."""
    x, ax, delta, eta, u, g = z3.Reals("x ax delta eta u g")
    given = z3.And(is_within(x, ax), is_within(delta, u), is_within(eta, g), ax >= 0, u >= 0)
    part = proving.claim("δ·x", "|x·δ| ≤ u|x|", z3.Implies(given, is_within(x * delta, u * ax)))
    text = "|fl(x) − x| ≤ u|x| + g"
    claim = z3.Implies(given, is_within(x * (1 + delta) + eta - x, u * ax + g))
    return proving.claim("rounding", text, claim, [part])


def _product(proving: Composing) -> z3.BoolRef:
    """(3.9): what is off of a product, from what is off of its factors."""
    x, y, dx, dy, ax, ay, bx, by = z3.Reals("x y dx dy ax ay bx by")
    sizes = z3.And(is_within(x, ax), is_within(y, ay), is_within(dx, bx), is_within(dy, by))
    parts = []
    for (v, big_v), (w, big_w) in (((x, ax), (dy, by)), ((y, ay), (dx, bx)), ((dx, bx), (dy, by))):
        text = "a product is at most that of the bounds of its factors"
        part = z3.Implies(z3.And(is_within(v, big_v), is_within(w, big_w)), is_within(v * w, big_v * big_w))
        parts.append(proving.claim("factors", text, part))
    off = is_within((x + dx) * (y + dy) - x * y, ax * by + ay * bx + bx * by)
    return proving.claim(
        "product", "|fl(x)fl(y) − xy| ≤ |x||Δy| + |y||Δx| + |Δx||Δy|", z3.Implies(sizes, off), parts
    )


# ---- words -----------------------------------------------------------------------------------------------------------


def _words(proving: Composing) -> list[z3.BoolRef]:
    """(4.8): |Δ| ≤ max(u^l·u|x|, u^l·g) after words 0 … l, by induction; and the size of the next word."""
    x, ax, left, u, g, v, w, delta, eta, bound = z3.Reals("x ax left u g v w delta eta bound")
    positive = z3.And(u > 0, u < 1, g >= 0, v > 0, ax >= 0)
    rounded = z3.And(is_within(delta, u), is_within(eta, g), z3.Or(delta == 0, eta == 0))
    start = z3.Implies(
        z3.And(positive, rounded, is_within(x, ax)),
        z3.Or(is_within(x * delta + eta, u * ax), is_within(x * delta + eta, g)),
    )
    made = [proving.claim("first word", "word 0 leaves at most max(u|x|, g)", start)]

    # v = u^l, and what was left before is at most one of v·u·|x| and v·g; the next word is w rounded.
    before = z3.Or(bound == v * u * ax, bound == v * g)
    quotient = left == v * u * w
    after = left - v * u * (w * (1 + delta) + eta)
    known = z3.And(positive, rounded, before, quotient, is_within(left, bound))
    same = z3.Implies(quotient, after == -(left * delta + v * u * eta))
    text = "what the next word leaves is what rounding it does, times u^(l + 1)"
    identity = proving.claim("left", text, same)
    next_ = z3.Or(is_within(after, v * u * u * ax), is_within(after, v * u * g))
    text = "so the next one leaves at most max(u^(l + 2)|x|, u^(l + 1)g)"
    of_rest = z3.Or(
        is_within(left * delta + v * u * eta, u * bound), is_within(left * delta + v * u * eta, v * u * g)
    )
    rest = proving.claim("rest", "by δ or by η alone", z3.Implies(known, of_rest))
    made += [identity, proving.claim("next word", text, z3.Implies(known, next_), [identity, rest])]

    q = z3.Real("q")  # the larger of |x| and g/u
    reach = z3.And(positive, before, q >= ax, u * q >= g)
    text = "what is left is at most u^(l + 1)·max(|x|, g/u)"
    small = proving.claim("what is left", text, z3.Implies(reach, bound <= v * u * q))
    text = "so before it is rounded, the next word is at most that over u^(l + 1)"
    size = z3.Implies(z3.And(v * u > 0, quotient, is_within(left, v * u * q)), is_within(w, q))
    size = proving.claim("before rounding", text, size)
    off = z3.Implies(
        z3.And(positive, rounded, is_within(w, q), u * q >= g, q >= 0),
        is_within(w * (1 + delta) + eta, (1 + u) * q),
    )
    off = proving.claim("word", "and rounded, at most (1 + u)·max(|x|, g/u)", off)
    return [*made, small, size, off]


def _left_out(proving: Composing) -> z3.BoolRef:
    """α, β and κ of p words: v = u^p, q = g/u, D the sum of u^(i + j) over i + j ≥ p, times (1 + u)²."""
    v, q, D, ax, ay = z3.Reals("v q D ax ay")
    words = ax * (v * ay + v * q) + ay * (v * ax + v * q) + (v * ax + v * q) * (v * ay + v * q)
    left_out = D * (ax + q) * (ay + q)
    alpha, beta, kappa = 2 * v + v * v + D, q * (v + v * v + D), q * q * (v * v + D)
    text = "with words, and without the products left out, α = 2v + v² + D, β = q(v + v² + D), κ = q²(v² + D)"
    claim = words + left_out == alpha * ax * ay + beta * (ax + ay) + kappa
    return proving.claim("words", text, claim)


# ---- sums ------------------------------------------------------------------------------------------------------------


def _sums(proving: Composing) -> list[z3.BoolRef]:
    """From one product to n."""
    alpha, beta, kappa, n, P, sx, sy, ax, ay, E, e = z3.Reals("alpha beta kappa n P sx sy ax ay E e")
    so_far = alpha * P + beta * (sx + sy) + n * kappa
    one = alpha * ax * ay + beta * (ax + ay) + kappa
    more = alpha * (P + ax * ay) + beta * (sx + ax + sy + ay) + (n + 1) * kappa
    same = proving.claim("one more", "the bounds of n products and of one more add up", so_far + one == more)
    text = "so the errors of n + 1 products are within theirs"
    claim = z3.Implies(z3.And(is_within(E, so_far), is_within(e, one)), is_within(E + e, more))
    return [proving.claim("sums", text, claim, [same])]


def _accumulation(proving: Composing) -> list[z3.BoolRef]:
    """(2.4): products are rounded, and added one after the other, each sum rounded."""
    U, G, R, m, T, aq, q, r, s, exact, d = z3.Reals("U G R m T aq q r s exact d")
    positive = z3.And(U >= 0, G >= 0, T >= 0, aq >= 0, is_within(q, aq), is_within(r - q, U * aq + G))
    first = z3.Implies(positive, is_within(r - q, (1 + U - 1) * aq + 1 * (1 + U) * G))
    made = [proving.claim("first product", "of one product, R = 1 + U and m = 1", first)]

    before = z3.And(R >= 1, m >= 1, is_within(exact, T), is_within(s - exact, (R - 1) * T + m * R * G))
    off, product = (R - 1) * T + m * R * G, U * aq + G
    size = z3.Implies(z3.And(positive, before), is_within(s + r, T + aq + off + product))
    size = proving.claim("size", "a sum is at most all products and what is off so far", size)
    rounded = is_within(d - (s + r), U * (T + aq + off + product) + G)
    total = (1 + U) * (off + product) + U * (T + aq) + G
    whole = z3.Implies(z3.And(positive, before, rounded), is_within(d - (exact + q), total))
    whole = proving.claim("error", "rounding it adds U of that, and G", whole)
    after = (1 + U) * R
    signs = z3.And(
        (R - 1 - U) * (1 + U) * aq >= 0, U * G >= 0, (R - 1 - U) * (1 + U) * G >= 0, U * R * G >= 0
    )
    known = z3.And(U >= 0, G >= 0, aq >= 0, T >= 0, R >= 1 + U)
    signs_ = proving.claim("signs", "products of what is not negative are not", z3.Implies(known, signs))
    grown = z3.Implies(z3.And(known, m >= 1), total <= (after - 1) * (T + aq) + (m + 2) * after * G)
    text = "which is within R' − 1 of all products, and m'·R'·G, of R' = (1 + U)·R and m' = m + 2"
    grown = proving.claim("growth", text, grown, [signs_])
    inner, exact_products, all_products = z3.Reals("inner exact_products all_products")
    given = z3.And(is_within(exact - exact_products, inner), is_within(exact, all_products), R >= 1)
    together = is_within(s - exact_products, inner + (R - 1) * all_products + m * R * G)
    text = "what rounding the factors does, and what accumulating their products does, add up"
    claim = z3.Implies(z3.And(given, is_within(s - exact, (R - 1) * all_products + m * R * G)), together)
    return [*made, size, whole, signs_, grown, proving.claim("together", text, claim)]


# ---- norms -----------------------------------------------------------------------------------------------------------


def _scaled_back(proving: Composing) -> list[z3.BoolRef]:
    """(3.4): l = 1/λ ≤ 2‖x‖∞/θ and m = 1/μ ≤ 2‖y‖∞/θ; b and k are given over θ and θ²."""
    scale, other, theta, norm, norm2, b, k, total = z3.Reals("scale other theta norm norm2 b k total")
    scaled = z3.And(scale > 0, theta > 0, scale * theta <= 2 * norm)
    text = "b·θ times a sum, over a scale, is at most 2b times the largest number that was scaled by it"
    sizes = z3.And(scaled, b >= 0, total >= 0)
    positive = z3.Implies(sizes, (2 * norm - scale * theta) * (b * total) >= 0)
    positive = proving.claim("not negative", "products of what is not negative are not", positive)
    single = z3.Implies(sizes, b * theta * scale * total <= 2 * b * norm * total)
    made = [positive, proving.claim("one scale", text, single, [positive])]
    both = z3.And(scaled, other > 0, other * theta <= 2 * norm2)
    product = scale * theta * (other * theta)
    larger = z3.Implies(both, product <= 4 * norm * norm2)
    larger = proving.claim("two scales", "θ²/(λμ) ≤ 4 ‖x‖∞ ‖y‖∞", larger)
    text = "so k·θ² over both scales is at most 4k times both largest numbers"
    times = z3.Implies(z3.And(both, k >= 0), k * theta * theta * scale * other <= 4 * k * norm * norm2)
    return [*made, larger, proving.claim("both scales", text, times, [larger])]


def _rows(proving: Composing) -> list[z3.BoolRef]:
    """From elements to ‖·‖∞, by sums over the columns of B: Sp of |x|ᵀ|y|, Sn of ‖y‖∞, Ss of ‖y‖₁."""
    a, b, k, n, A, B = z3.Reals("a b k n A B")
    Sp, Sn, Ss, sx, nx = z3.Reals("Sp Sn Ss sx nx")
    p, s, big, row, each = z3.Reals("p s big row each")
    text = "with one product more, |x|ᵀ|B| is within ‖x‖₁ ‖B‖∞"
    product = z3.Implies(z3.And(p >= 0, row <= B, Sp <= s * B), Sp + p * row <= (s + p) * B)
    made = [proving.claim("products of a row", text, product)]
    text = "the magnitudes of B are within n‖B‖∞, and a column's largest one is within its sum"
    entries = z3.And(
        z3.Implies(z3.And(Ss <= n * B, row <= B), Ss + row <= (n + 1) * B),
        z3.Implies(z3.And(big <= s, each >= 0, s >= 0), z3.If(each > big, each, big) <= s + each),
        z3.Implies(z3.And(Sn <= Ss, big <= s), Sn + big <= Ss + s),
    )
    made.append(proving.claim("entries", text, entries))
    text = "one column more adds its part to the bound of a row"
    bound = a * Sp + 2 * b * (Sn * sx + nx * Ss) + 4 * k * (nx * Sn)
    one = a * p + 2 * b * (big * sx + nx * s) + 4 * k * (nx * big)
    more = a * (Sp + p) + 2 * b * ((Sn + big) * sx + nx * (Ss + s)) + 4 * k * (nx * (Sn + big))
    made.append(proving.claim("columns", text, bound + one == more))
    limits = z3.And(sx >= 0, sx <= A, nx >= 0, nx <= A, Sn >= 0, Sn <= n * B, Ss >= 0, Ss <= n * B)
    W = A * (n * B)
    sizes = []
    for x, y in ((Sn, sx), (nx, Ss), (nx, Sn)):
        text = "a product of both is within n‖A‖∞ ‖B‖∞"
        sizes.append(proving.claim("both", text, z3.Implies(limits, x * y <= W)))
    text = "so the errors of a row are within (a + 4nb + 4nk) ‖A‖∞ ‖B‖∞"
    coefficients = z3.And(a >= 0, b >= 0, k >= 0, Sp <= A * B)
    norm = (a + 4 * n * b + 4 * n * k) * (A * B)
    row_ = z3.Implies(z3.And(limits, coefficients), bound <= norm)
    parts = [
        z3.Implies(z3.And(limits, coefficients), small <= large)
        for small, large in (
            (a * Sp, a * (A * B)),
            (b * (Sn * sx), b * W),
            (b * (nx * Ss), b * W),
            (k * (nx * Sn), k * W),
        )
    ]
    each_part = [
        proving.claim("part", "each part of the bound is within its own", part, sizes) for part in parts
    ]
    return [*made, *sizes, *each_part, proving.claim("row", text, row_, each_part)]
