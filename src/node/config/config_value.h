/* config_value.h: the values of a configuration file: durations, percentages, names. Pure; numbers and sizes: ini_number.h.
 * All return NULL on success, else what the text should have been; *out only on success. */
#ifndef PAWL_NODE_CONFIG_VALUE_H
#define PAWL_NODE_CONFIG_VALUE_H

#include "clock.h"

const char *config_value_span(const char *text, span_ns *out);      /* 20us 300ms 5s 2m 1h, or 0 */
const char *config_value_percent(const char *text, uint32_t *out_ppm); /* 1 % 0.5% */
const char *config_value_bool(const char *text, bool *out);         /* yes no */
const char *config_value_name(const char *text);                    /* of a node or cluster */

#endif
