/* field.h: reads the fields of a node's answer, as far as it has them; and a status as a whole. */
#ifndef PAWL_CLI_FIELD_H
#define PAWL_CLI_FIELD_H

#include "pawl/pawl.h"
#include "view.h"

/* Returns "" if there is no such text. */
const char *field_text(const struct pawl_value *map, const char *name);
int64_t field_int(const struct pawl_value *map, const char *name, int64_t otherwise);
bool field_bool(const struct pawl_value *map, const char *name);

/* Reads what the status says. The texts point into it. NULL gives an empty view. */
void view_read(struct view *out, const struct pawl_value *status);
/* Adds what the status of another node says about that node itself. */
void view_add(struct view *v, const struct pawl_value *status);

#endif
