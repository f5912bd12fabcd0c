/* A fused multiply-add in floating point, which is not read, and two that round on the way. */
#include <math.h>
#include <stdint.h>
#include <string.h>
static float number(uint32_t code) { float x; memcpy(&x, &code, 4); return x; }
static uint32_t code(float x) { uint32_t c; memcpy(&c, &x, 4); return c; }
uint32_t fused(uint32_t a, uint32_t b, uint32_t c) { return code(fmaf(number(a), number(b), number(c))); }
uint32_t rounded(uint32_t a, uint32_t b, uint32_t c) {
    float product = number(a) * number(b);
    return code(product + number(c));
}
float in_double(float a, float b, float c) { return (float)((double)a * b + c); }
