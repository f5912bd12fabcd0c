/* d = c + a[0] b[0] + … + a[3] b[3] of bf16, c and d of fp32: aligned to the largest exponent, cut to 24 places, added
   exactly, rounded toward zero.  BUG_… are what people get wrong; UB_… is undefined behaviour of each kind. */
#include <stdint.h>
#include <string.h>
#ifndef K
#define K 4
#endif
#define PLACES 24
#define ZERO (-253) /* the exponent of a term that is zero */

typedef struct {
    int exponent;
    int64_t significand; /* of PLACES fractional bits and two before them */
} term;

static int is_nan(uint32_t x) { return (x & 0x7fffffff) > 0x7f800000; }
static int is_inf(uint32_t x) { return (x & 0x7fffffff) == 0x7f800000; }
static int field(uint32_t x) { return x >> 23 & 255 ? (int)(x >> 23 & 255) : 1; }
static int64_t significand(uint32_t x) { return (x & 0x7fffff) | (x >> 23 & 255 ? 0x800000 : 0); }

static term product(uint32_t x, uint32_t y) {
    term t;
    int64_t m = (significand(x) >> 16) * (significand(y) >> 16); /* 14 fractional bits */
    t.exponent = m ? field(x) + field(y) - 254 : ZERO;
    t.significand = m << (PLACES - 14);
    if ((x ^ y) >> 31)
        t.significand = -t.significand;
    return t;
}

static int64_t align(term t, int top) {
    int by = top - t.exponent;
#ifdef BUG_FLOOR
    return by > 63 ? (t.significand < 0 ? -1 : 0) : t.significand >> by;
#elif defined(UB_SHIFT)
    return t.significand < 0 ? -(-t.significand >> by) : t.significand >> by;
#elif defined(BUG_CLAMP)
    by &= 31;
    return t.significand < 0 ? -(-t.significand >> by) : t.significand >> by;
#else
    if (by > 63)
        return 0;
    return t.significand < 0 ? -(-t.significand >> by) : t.significand >> by;
#endif
}

static uint32_t encode(int64_t sum, int top) {
    uint32_t sign = 0;
    int leading, exponent, drop;
    uint64_t kept;
    if (sum < 0) {
        sign = 0x80000000;
        sum = -sum;
    }
    if (sum == 0)
        return 0;
    leading = 63 - __builtin_clzll((uint64_t)sum);
    exponent = top + leading - PLACES;
    if (exponent < -126)
        exponent = -126;
    if (exponent > 127)
        return sign | 0x7f800000;
    drop = exponent - top + PLACES - 23; /* fractional bits that fp32 has not */
    if (drop > 63)
        return 0;
    kept = drop >= 0 ? (uint64_t)sum >> drop : (uint64_t)sum << -drop;
    if (kept == 0)
        return 0;
    return sign | (kept >> 23 ? (uint32_t)(exponent + 126) << 23 : 0) + (uint32_t)kept;
}

uint32_t dot4(const uint16_t a[K], const uint16_t b[K], uint32_t c) {
    term terms[K + 1];
    int plus = 0, minus = 0, nan = is_nan(c);
    int k, top = ZERO;
    int64_t sum = 0;
#ifdef UB_READ
    int last = K;
#else
    int last = K - 1;
#endif
    if (is_inf(c))
        c >> 31 ? minus++ : plus++;
    for (k = 0; k <= last; k++) {
        uint32_t x = (uint32_t)a[k] << 16, y = (uint32_t)b[k] << 16;
        if (is_nan(x) || is_nan(y))
            nan = 1;
        if (is_inf(x) || is_inf(y)) {
#ifndef BUG_INVALID
            if ((x << 1) == 0 || (y << 1) == 0)
                nan = 1;
#endif
            (x ^ y) >> 31 ? minus++ : plus++;
        }
        if (k < K)
            terms[k] = product(x, y);
    }
    terms[K].exponent = significand(c) ? field(c) - 127 : ZERO;
    terms[K].significand = significand(c) << (PLACES - 23);
    if (c >> 31)
        terms[K].significand = -terms[K].significand;
    if (nan || (plus && minus))
        return 0x7fffffff;
    if (plus || minus)
        return plus ? 0x7f800000 : 0xff800000;
#ifdef BUG_MAXIMUM
    for (k = 0; k < K; k++)
#else
    for (k = 0; k <= K; k++)
#endif
        if (terms[k].exponent > top)
            top = terms[k].exponent;
    for (k = 0; k <= K; k++)
        sum += align(terms[k], top);
    return encode(sum, top);
}
