/* value.h: MessagePack as a tree of struct pawl_value, in an arena. What the node announces is never believed: an array takes
 * memory for what its bytes can hold. */
#ifndef PAWL_CLIENT_VALUE_H
#define PAWL_CLIENT_VALUE_H

#include "buffer.h"
#include "pawl/pawl.h"
#include "slice.h"

#define VALUE_DEPTH_MAX 8

/* The object at the front of `in`; *in moves behind it. Bytes are copied. 0, PAWL_ENOMEM or PAWL_EPROTOCOL. */
int value_read(struct arena *arena, struct slice *in, struct pawl_value *out);
/* Bytes in the arena, with a NUL behind them. 0 or PAWL_ENOMEM. */
int value_bytes(struct arena *arena, struct slice from, struct pawl_bytes *out);
int value_text(struct arena *arena, struct slice from, const char **out);

#endif
