/* d = a b + c of small integers, in ways whose behaviour is undefined for some inputs, one for each kind. */
#include <stdint.h>
static const uint8_t table[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

uint8_t over_shift(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)((a << b) + c); }
uint8_t negative_shift(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)((a >> (b - 128)) + c); }
uint8_t signed_overflow(uint8_t a, uint8_t b, uint8_t c) {
    int x = a << 16, y = b << 7;
    return (uint8_t)(x * y + c);
}
uint8_t unused_overflow(uint8_t a, uint8_t b, uint8_t c) {
    int x = a << 23, unused = x + x;
    (void)unused;
    return (uint8_t)(a * b + c);
}
uint8_t division(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)(c / b + a); }
uint8_t least_divided(uint8_t a, uint8_t b, uint8_t c) {
    int x = (int)((uint32_t)a << 24), y = (int8_t)b;
    if (y == 0)
        return c;
    return (uint8_t)(x / y);
}
uint8_t beyond_table(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)(table[a & 31] * b + c); }
uint8_t before_table(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)(table[(a & 15) - 1] * b + c); }
uint8_t beyond_argument(const uint8_t *a, const uint8_t *b, uint8_t c) { return (uint8_t)(a[c >> 7] * b[0] + c); }
uint8_t beyond_local(uint8_t a, uint8_t b, uint8_t c) {
    uint8_t kept[4] = {0};
    kept[c >> 5] = a;
    return (uint8_t)(kept[0] * b);
}
uint8_t not_set(uint8_t a, uint8_t b, uint8_t c) {
    uint8_t kept;
    if (a != 77)
        kept = c;
    return (uint8_t)(kept + b);
}
uint8_t zeros_of_zero(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)(__builtin_clz(a) + b + c); }
uint8_t no_value(uint8_t a, uint8_t b, uint8_t c) {
    if (a != b)
        return c;
}
uint8_t unreachable(uint8_t a, uint8_t b, uint8_t c) {
    if (a == 200 && b == 3)
        __builtin_unreachable();
    return c;
}
static const uint8_t *kept_address(uint8_t x) {
    uint8_t local = x;
    const uint8_t *address = &local;
    return address;
}
uint8_t dead_variable(uint8_t a, uint8_t b, uint8_t c) { return a == 9 ? *kept_address(b) : c; }
uint8_t null_address(uint8_t a, uint8_t b, uint8_t c) {
    const uint8_t *address = a == 5 ? 0 : &c;
    return (uint8_t)(*address + b);
}
uint8_t aborts(uint8_t a, uint8_t b, uint8_t c) {
    extern void abort(void);
    if (a > 250)
        abort();
    return (uint8_t)(b + c);
}
static __attribute__((noinline)) int is_set(const _Bool *flag) { return *flag; }
uint8_t strange_bool(uint8_t a, uint8_t b, uint8_t c) {
    _Bool flag;
    __builtin_memcpy(&flag, &a, 1);
    return (uint8_t)(is_set(&flag) * b + c);
}
uint8_t overlapping(uint8_t a, uint8_t b, uint8_t c) {
    uint8_t kept[4] = {a, b, c, 0};
    if (a == b)
        __builtin_memcpy(kept + 1, kept, 3);
    return kept[2];
}
