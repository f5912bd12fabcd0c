/* IEEE 754's fused multiply-add, to nearest even, as somebody writes it in C: fp16, or with -DE5M2 that format.
   BUG_… are what people get wrong; UB_… is undefined behaviour of each kind. */
#include <stdint.h>
#ifdef E5M2
typedef uint8_t code;
enum { E = 5, M = 2 };
#else
typedef uint16_t code;
enum { E = 5, M = 10 };
#endif
enum { BIAS = (1 << (E - 1)) - 1, TOP = (1 << E) - 1, W = E + M, GUARD = 2 * M + 2 };
static const code INF = (code)(TOP << M), NAN_CODE = (code)(TOP << M | 1 << (M - 1));

struct number {
    int sign, exponent; /* the value is significand * 2^(exponent - BIAS - M) */
    uint64_t significand;
    int inf, nan;
};

static struct number unpack(code x) {
    struct number n;
    int field = x >> M & TOP;
    uint32_t fraction = x & ((1u << M) - 1);
    n.sign = x >> W & 1;
#ifdef BUG_HIDDEN
    n.significand = fraction | 1u << M;
#else
    n.significand = fraction | (field ? 1u << M : 0);
#endif
    n.exponent = field ? field : 1;
    n.inf = field == TOP && fraction == 0;
    n.nan = field == TOP && fraction != 0;
    return n;
}

static uint64_t shift_right(uint64_t x, int by) {
#ifdef UB_SHIFT
    uint32_t low = (uint32_t)x;
    return low >> by | ((low & ((1u << by) - 1)) != 0);
#endif
    if (by > 63)
        return x != 0;
#ifdef BUG_STICKY
    return x >> by;
#else
    return x >> by | ((x & ((UINT64_C(1) << by) - 1)) != 0);
#endif
}

static code round_pack(int sign, uint64_t sum, int exponent) {
    /* the value is sum * 2^(exponent - BIAS - M - GUARD) */
    int leading = 63 - __builtin_clzll(sum);
    int field = exponent + leading - M - GUARD;
    int drop = field > 0 ? leading - M : GUARD + 1 - exponent;
    uint64_t kept, lost, half;
    if (field < 1)
        field = 1;
#ifdef BUG_TIES
    drop = leading - M > drop ? leading - M : drop;
#endif
    kept = sum >> drop;
    lost = sum & ((UINT64_C(1) << drop) - 1);
    half = UINT64_C(1) << (drop - 1);
#ifdef BUG_TIES
    kept += lost >= half;
#else
    kept += lost > half || (lost == half && (kept & 1));
#endif
    /* a carry of the rounding goes into the exponent, and so does a missing leading one */
    kept += (uint64_t)(field - 1) << M;
#ifdef BUG_OVERFLOW
    return (code)(kept | (uint64_t)sign << W);
#else
    return (code)((kept > INF ? INF : kept) | (uint64_t)sign << W);
#endif
}

code fma(code a, code b, code c) {
    struct number x = unpack(a), y = unpack(b), z = unpack(c);
    int sign = x.sign ^ y.sign, exponent = x.exponent + y.exponent - BIAS - M, top;
    uint64_t product = x.significand * y.significand, addend, sum;
#ifndef BUG_INVALID
    if ((x.inf && y.significand == 0) || (y.inf && x.significand == 0))
        return NAN_CODE;
#endif
    if (x.nan || y.nan || z.nan)
        return NAN_CODE;
    if (x.inf || y.inf)
        return z.inf && z.sign != sign ? NAN_CODE : (code)(INF | sign << W);
    if (z.inf)
        return c;
    if (product == 0 && z.significand == 0)
        return (code)((sign & z.sign) << W);
    top = exponent > z.exponent ? exponent : z.exponent;
#ifdef UB_OVERFLOW
    if (top * (1 << 27) == 1)
        return 0;
#endif
    if (product == 0) /* its exponent would shift c away */
        top = z.exponent;
    if (z.significand == 0)
        top = exponent;
    product = product == 0 ? 0 : shift_right(product << GUARD, top - exponent);
    addend = z.significand == 0 ? 0 : shift_right(z.significand << GUARD, top - z.exponent);
#ifdef BUG_SIGN
    sum = sign == z.sign ? product + addend : product - addend;
    if (sum >> 63)
        sum = -sum;
#else
    if (sign == z.sign)
        sum = product + addend;
    else if (product >= addend)
        sum = product - addend;
    else {
        sum = addend - product;
        sign = z.sign;
    }
#endif
#ifdef UB_CLZ
    (void)0;
#elif defined(BUG_ZERO)
    if (sum == 0)
        return (code)(sign << W);
#else
    if (sum == 0)
        return 0;
#endif
    return round_pack(sign, sum, top);
}
