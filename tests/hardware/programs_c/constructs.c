/* What C has besides arithmetic, a function for each: each gives some number of three bytes, or of arrays of them. */
#include <stdint.h>
#include <string.h>
typedef uint8_t u8;
struct pair { u8 x, y; };
struct big { uint64_t x[4]; u8 last; };
struct fields { unsigned wide : 20; unsigned char next; unsigned low : 3, high : 5; };
static const uint16_t table[2][4] = {{1, 2, 3, 5}, {700, 11, 13, 17}};
static const struct pair pairs[] = {{1, 2}, {3, 4}, {5, 6}};
static const char text[] = "a\"\\\x7f";

u8 table_of_constants(u8 a, u8 b, u8 c) { return (u8)(table[a & 1][b & 3] + pairs[c % 3].y + text[a & 3]); }
u8 switches(u8 a, u8 b, u8 c) {
    switch (a & 7) {
    case 0: return b;
    case 1: b += 3; /* and on */
    case 2: b ^= c; break;
    case 5: case 6: c = (u8)(c * 3); break;
    default: b = 7;
    }
    return (u8)(b + c);
}
u8 loops(u8 a, u8 b, u8 c) {
    unsigned sum = 0, i, k;
    for (i = 0; i < 4; i++)
        for (k = i; k < 4; k++) {
            if (a >> k & 1)
                continue;
            sum += i * k + b;
            if (sum > 900)
                break;
        }
    do sum += c; while (--i);
    return (u8)sum;
}
u8 normalise(u8 a, u8 b, u8 c) { /* rounds that only the values bound */
    int e = 8;
    if (!a)
        return b;
    while (!(a & 128)) {
        a = (u8)(a << 1);
        e--;
    }
    return (u8)(e + a + c);
}
u8 jumps(u8 a, u8 b, u8 c) {
    if (a > b)
        goto other;
    c ^= a;
    if (c & 1)
        goto end;
other:
    c = (u8)(c + b);
end:
    return c;
}
static void exchange(u8 *x, u8 *y) { u8 kept = *x; *x = *y; *y = kept; }
u8 locals(u8 a, u8 b, u8 c) {
    u8 kept[4] = {a, b, c}, *p = kept;
    if (a < b)
        exchange(&kept[0], &kept[1]);
    p += c & 1;
    *p = (u8)(*p + 5);
    kept[b & 3] ^= 9;
    return (u8)(kept[0] + 2 * kept[1] + 4 * kept[2] + 8 * kept[3]);
}
static struct pair add(struct pair p, struct pair q) { return (struct pair){(u8)(p.x + q.x), (u8)(p.y ^ q.y)}; }
u8 structs(u8 a, u8 b, u8 c) { struct pair p = {a, b}, q = {c, 1}, r = add(p, q); p = r; return (u8)(p.x * 3 + p.y); }
static uint64_t change(struct big s) { s.x[0] += 5; s.last = 1; return s.x[0] + s.last; }
u8 struct_by_value(u8 a, u8 b, u8 c) {
    struct big s = {{a, b}, c}, t;
    uint64_t y = change(s);
    memcpy(&t, &s, sizeof t);
    return (u8)(y + t.x[0] * 3 + t.last);
}
u8 bit_fields(u8 a, u8 b, u8 c) {
    struct fields s;
    s.next = a;
    s.low = b;
    s.high = c;
    s.wide = b * 4096u + c;
    return (u8)(s.next + (s.wide >> 12) * 3 + s.wide + s.low + s.high);
}
u8 memories(u8 a, u8 b, u8 c) {
    u8 x[8], y[8];
    uint32_t word;
    memset(x, a, sizeof x);
    x[2] = b;
    memcpy(y, x + 1, 7);
    memcpy(&word, y, 4);
    return (u8)(word >> 5 ^ c);
}
static unsigned factorial(unsigned n) { return n ? n * factorial(n - 1) : 1; }
u8 recursion(u8 a, u8 b, u8 c) { return (u8)(factorial(4) + (a ? b : c)); }
u8 builtins(u8 a, u8 b, u8 c) {
    unsigned x = a * 0x01010101u ^ b << 7 | 1;
    uint64_t y = (uint64_t)x << 20 | c | 1u << 9;
    unsigned n = __builtin_clz(x) + __builtin_ctz(x | 16) + __builtin_clzll(y) + __builtin_ctzll(y) + __builtin_popcount(x);
    n += (__builtin_bswap32(x) >> 9) + (unsigned)__builtin_bswap64(y) + __builtin_bswap16((uint16_t)x);
    n += __builtin_parity(x) + __builtin_abs((int8_t)a) + __builtin_rotateleft32(x, b & 31);
    n += __builtin_rotateright8(a, b) + __builtin_bitreverse16((uint16_t)x);
    n += __builtin_expect(a > b, 1) ? x >> 3 : 1;
    return (u8)(n ^ n >> 8);
}
u8 overflows(u8 a, u8 b, u8 c) {
    int sum;
    u8 product;
    if (__builtin_add_overflow((int8_t)a * 10000000, (int8_t)b * 15000000, &sum))
        return c;
    return __builtin_mul_overflow(a, b, &product) ? (u8)sum : product;
}
u8 widths(u8 a, u8 b, u8 c) {
    int8_t x = (int8_t)a;
    int16_t y = (int16_t)(x * 77 - b);
    int64_t z = (int64_t)y << 20 ^ c;
    unsigned __int128 w = (unsigned __int128)(uint64_t)z * (uint64_t)(b + 1);
    _Bool odd = c & 6, even = !odd;
    return (u8)((z >> 13) + (y / 7) + (y % 5) + (unsigned)b / 3 + (a ^ b) % 11u + (uint64_t)(w >> 61) + odd - even + (x < y) + (a > (u8)y));
}
void through_pointer(const u8 *a, const u8 *b, u8 c, u8 *d) { *d = (u8)(a[0] * b[0] + c); }
static _Thread_local u8 mode = 3, flags;
u8 own_variable(u8 a, u8 b, u8 c) { if (a > b) flags |= 4; return (u8)(a * mode + b + c); }
