/* client_reply.h: what all responses share. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_REPLY_H
#define PAWL_WIRE_CLIENT_REPLY_H

#include "client_fact.h"

/* The head of a response; then come the error and the result, one of them nil. */
void client_reply_begin(struct pack *k, uint32_t msgid, struct buffer *out);
/* The map of an error. */
void client_reply_put_error(struct pack *k, const struct core_reply *reply, const struct client_facts *facts);

/* One pair of a map. */
void client_reply_put_uint(struct pack *k, struct pack_open *map, const char *key, uint64_t value);
void client_reply_put_bool(struct pack *k, struct pack_open *map, const char *key, bool value);
void client_reply_put_text(struct pack *k, struct pack_open *map, const char *key, const char *value);
void client_reply_put_lock_id(struct pack *k, struct pack_open *map, struct id128 id);
uint64_t client_reply_ms_down(span_ns span);
uint64_t client_reply_ms_up(span_ns span);

/* A holder as it is told; `without`: bits of enum client_entry_has that are left out. */
struct client_entry client_reply_entry(const struct core_entry *e, uint32_t without);
void client_reply_put_entry(struct pack *k, struct pack_open *map, const struct client_entry *entry);

/* What answers to reads say; client_reply_read.c. */
void client_reply_put_read(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts);
void client_reply_put_list(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts);
void client_reply_put_waiters(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts);
void client_reply_put_masters(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts);
/* All holders where there is more than one, but at most `max`: `more` says that there are others. */
void client_reply_put_holders(struct pack *k, struct pack_open *map, const struct core_reply *reply, uint32_t without,
	uint32_t max);

#endif
