/* A variable that is set before main runs. */
#include <stdint.h>
static uint8_t offset;
static __attribute__((constructor)) void start(void) { offset = 1; }

uint8_t started(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)(a * b + c + offset); }
