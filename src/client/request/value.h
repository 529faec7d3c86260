/* value.h: MessagePack as a tree of struct pawl_value, in an arena. The sizes that a node announces
 * are not trusted: an array gets memory only for as many items as the bytes can hold. */
#ifndef PAWL_CLIENT_VALUE_H
#define PAWL_CLIENT_VALUE_H

#include "buffer.h"
#include "pawl/pawl.h"
#include "slice.h"

#define VALUE_DEPTH_MAX 8

/* Reads the object at the front of `in`, and moves *in behind it. Bytes are copied. Returns 0,
 * PAWL_ENOMEM or PAWL_EPROTOCOL. */
int value_read(struct arena *arena, struct slice *in, struct pawl_value *out);
/* Copies bytes into the arena, with a NUL behind them. Returns 0 or PAWL_ENOMEM. */
int value_bytes(struct arena *arena, struct slice from, struct pawl_bytes *out);
int value_text(struct arena *arena, struct slice from, const char **out);

#endif
