/* Functions of the file's own with names of the library's: what stands in the file is what is called. */
#include <stdint.h>
static __attribute__((noinline)) void *memset(void *to, int value, unsigned long size) {
    *(uint8_t *)to = (uint8_t)(value + 3);
    (void)size;
    return to;
}
static __attribute__((noinline)) void abort(void) {}

uint8_t own_names(uint8_t a, uint8_t b, uint8_t c) {
    uint8_t kept = a;
    memset(&kept, b, 1);
    if (c > 7)
        abort();
    return (uint8_t)(kept + c);
}
