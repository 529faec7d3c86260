/* ini_number.h: numbers and sizes among the values of an INI file. */
#ifndef PAWL_BASE_INI_NUMBER_H
#define PAWL_BASE_INI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the digits at the front of *text, which moves behind them. False: there are none, or the
 * number is more than fits. */
bool ini_digits(const char **text, uint64_t *out);

/* These functions return NULL, or what the text should have been (static storage). *out is set only
 * on success. ini_size reads bytes: 4096 64k 1m 2g. ini_count reads a whole number. */
const char *ini_size(const char *text, uint64_t *out);
const char *ini_count(const char *text, uint64_t *out);

#endif
