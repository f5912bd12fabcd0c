// Classes with templates, references and methods that are found in tables.
#include <cstdint>
template <class T, int width> class number {
public:
    T n;
    explicit number(T x) : n(x) {}
    virtual T low() const { return n & ((1 << width) - 1); }
    T twice() const { return (T)(low() + low()); }
    virtual ~number() = default;
};
struct shifted final : number<uint8_t, 5> {
    explicit shifted(uint8_t x) : number(x) {}
    uint8_t low() const override { return (uint8_t)(n >> 3); }
};
static void raise(uint8_t &x) { x++; }
uint8_t methods(uint8_t a, uint8_t b, uint8_t c) {
    number<uint8_t, 5> x(a);
    shifted y(b);
    const number<uint8_t, 5> *both[] = {&x, &y};
    for (auto *each : both)
        c = (uint8_t)(c + each->twice());
    raise(c);
    return c;
}
