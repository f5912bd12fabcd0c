/* What is not read, a function for each. */
#include <stdint.h>
typedef uint8_t u8;
u8 no_bound(u8 a, u8 b, u8 c) { unsigned s = a; while (s != 1) s = s & 1 ? 3 * s + 1 : s / 2; return (u8)(s + b + c); }
extern int elsewhere(int);
u8 external(u8 a, u8 b, u8 c) { return (u8)(elsewhere(a) + b + c); }
u8 assembly(u8 a, u8 b, u8 c) { int x; __asm__("nop" : "=r"(x)); return (u8)(x + a + b + c); }
u8 floating(u8 a, u8 b, u8 c) { return (u8)((float)a * b + c); }
extern u8 counter;
u8 variable(u8 a, u8 b, u8 c) { return (u8)(a * b + c + counter++); }
static unsigned called(unsigned x) { return x + 1; }
u8 through_function(u8 a, u8 b, u8 c) { unsigned (*f)(unsigned) = a ? called : 0; return (u8)(f(b) + c); }
u8 volatiles(u8 a, u8 b, u8 c) { volatile u8 x = a; return (u8)(x * b + c); }
float of_floats(float a, float b, float c) { return a * b + c; }
