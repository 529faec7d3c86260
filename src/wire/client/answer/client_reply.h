/* client_reply.h: what the writers of responses share. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_REPLY_H
#define PAWL_WIRE_CLIENT_REPLY_H

#include "client_field.h"

/* Writes the head of a response. The error and the result follow; one of them is nil. */
void client_reply_begin(struct pack *k, uint32_t msgid, struct buffer *out);
/* Writes the map of an error. */
void client_reply_put_error(struct pack *k, const struct core_reply *reply,
	const struct client_context *context);

/* Write one pair of a map. They are inline because the compiler then knows the size of the key. */
PACK_INLINE void client_reply_put_uint(struct pack *k, struct pack_open *map, const char *key,
	uint64_t value) {
	pack_key(k, map, key);
	pack_uint(k, value);
}

PACK_INLINE void client_reply_put_bool(struct pack *k, struct pack_open *map, const char *key,
	bool value) {
	pack_key(k, map, key);
	pack_bool(k, value);
}

PACK_INLINE void client_reply_put_text(struct pack *k, struct pack_open *map, const char *key,
	const char *value) {
	pack_key(k, map, key);
	pack_text(k, value);
}

void client_reply_put_lock_id(struct pack *k, struct pack_open *map, struct id128 id);

/* Makes the entry that clients are told of a holder. `without` has the bits of enum
 * client_entry_has for what is left out. */
struct client_entry client_reply_entry(const struct core_entry *e, uint32_t without);
void client_reply_put_entry(struct pack *k, struct pack_open *map,
	const struct client_entry *entry);

/* Write what the answers to reads have (client_reply_put_lists.c). */
void client_reply_put_read(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context);
void client_reply_put_list(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context);
void client_reply_put_waiters(struct pack *k, struct pack_open *map,
	const struct core_reply *reply, const struct client_context *context);
void client_reply_put_masters(struct pack *k, struct pack_open *map,
	const struct core_reply *reply, const struct client_context *context);
/* Writes a list of the holders, at most `max`, if there is more than one; and `more` if there are
 * others. */
void client_reply_put_holders(struct pack *k, struct pack_open *map,
	const struct core_reply *reply, uint32_t without, uint32_t max);

#endif
