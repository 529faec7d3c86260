/* fuzz.h: what every target needs. A target aborts (CHECK) when what it tests is wrong. It must not
 * leak memory or keep state. */
#ifndef PAWL_TESTS_FUZZ_H
#define PAWL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
