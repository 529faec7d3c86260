/* config_value.h: the values of a configuration file: durations, percentages and names. This is
 * pure; ini_number.h has numbers and sizes.
 *
 * All functions return NULL on success; otherwise what the text should have been. They write *out
 * only on success.
 */
#ifndef PAWL_NODE_CONFIG_VALUE_H
#define PAWL_NODE_CONFIG_VALUE_H

#include "clock.h"

/* Accepts 20us, 300ms, 5s, 2m, 1h and 0. */
const char *config_value_span(const char *text, span_ns *out);
/* Accepts 1 % and 0.5%. */
const char *config_value_percent(const char *text, uint32_t *out_ppm);
/* Accepts yes and no. */
const char *config_value_bool(const char *text, bool *out);
/* Accepts the name of a node or of a cluster. */
const char *config_value_name(const char *text);

#endif
