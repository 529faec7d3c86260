/* client_param.h: which parameters each method takes, and how each of them is read. Only the codec
 * includes this header. */
#ifndef PAWL_WIRE_CLIENT_PARAM_H
#define PAWL_WIRE_CLIENT_PARAM_H

#include "client.h"
#include "unpack.h"

/* An item of the `locks` of an extend, and one of the `locks` of an acquire, count as methods of
 * their own. */
enum { CLIENT_PARAM_LOCK = CLIENT_METHODS, CLIENT_PARAM_GROUP, CLIENT_PARAM_SETS };
_Static_assert(CLIENT_PARAM_SETS <= 32, "client_param_rule.methods has a bit for each");

/* Reads a value into r. Returns NULL, or a text that says what is wrong with the value, and what to
 * do. *error is PAWL_EBADREQUEST before, and the reader may set it to PAWL_ETOOLARGE. If the bytes
 * end too early, u->bad is set, and the returned text means nothing. */
typedef const char *client_param_take(struct unpack *u, struct client_request *r, int *error);
client_param_take client_take_key, client_take_prefix, client_take_after, client_take_owner,
	client_take_to, client_take_watch, client_take_client, client_take_from, client_take_value,
	client_take_expect, client_take_value_seq, client_take_lock_id, client_take_lease,
	client_take_wait, client_take_token, client_take_limit, client_take_deadline_kept,
	client_take_now, client_take_party, client_take_shares, client_take_consistency,
	client_take_for, client_take_trace, client_take_shorten, client_take_close;

/* The readers above are made of these, which return the same. */
const char *client_take_bytes(struct unpack *u, size_t max, const char *too_long,
	struct slice *out, int *error);
const char *client_take_ms(struct unpack *u, uint64_t min, span_ns *out);
const char *client_take_bool(struct unpack *u, bool *out);
/* Reads a text that has to be one of two. Returns 0 for the first, 1 for the second, and -1 for
 * anything else. */
int client_take_choice(struct unpack *u, const char *zero, const char *one);

/* One parameter. */
struct client_param_rule {
	const char *name;
	/* The size of the name in bytes. */
	size_t size;
	/* CLIENT_HAS_.... */
	uint64_t bit;
	/* The methods that take the parameter, one bit for each. */
	uint32_t methods;
	/* The reader; NULL for a list of locks or nodes. */
	client_param_take *take;
};
/* Returns the parameter of that name that the method takes, or NULL. The search begins behind
 * `after`, or at the first parameter if that is NULL. */
const struct client_param_rule *client_param_find(unsigned method, struct slice name,
	const struct client_param_rule *after);
/* Returns the name by which the method takes that parameter, or NULL if it does not. */
const char *client_param_name(unsigned method, uint64_t bit);

/* Returns the bits CLIENT_HAS_... of the parameters that the method needs. */
uint64_t client_param_required(unsigned method);
/* Returns the answer to a parameter that the method does not take. */
const char *client_param_unknown(unsigned method);

#endif
