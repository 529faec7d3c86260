/* ini_number.h: numbers and sizes among the values of an INI file. Pure. */
#ifndef PAWL_RIGHTS_INI_NUMBER_H
#define PAWL_RIGHTS_INI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Digits at the front of *text, which moves behind them; false: none, or more than fits. */
bool ini_digits(const char **text, uint64_t *out);
/* NULL, else what the text should have been; *out only on success. */
const char *ini_size(const char *text, uint64_t *out);  /* bytes: 4096 64k 1m 2g */
const char *ini_count(const char *text, uint64_t *out); /* a whole number */

#endif
