/* client_param.h: which parameters each method takes, and how each is read. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_PARAM_H
#define PAWL_WIRE_CLIENT_PARAM_H

#include "client.h"
#include "unpack.h"

/* One of the `locks` of extend, resp. of acquire, as if it were a method of its own. */
enum { CLIENT_PARAM_LOCK = CLIENT_METHODS, CLIENT_PARAM_GROUP, CLIENT_PARAM_SETS };

/* Reads a value into r. NULL, or what is wrong with it and what to do; then *error, which is PAWL_EBADREQUEST before,
 * may have become PAWL_ETOOLARGE. u->bad: the bytes ended (whatever is returned). */
typedef const char *client_param_take(struct unpack *u, struct client_request *r, int *error);
client_param_take client_take_key, client_take_prefix, client_take_after, client_take_owner, client_take_to, client_take_watch, client_take_client,
	client_take_from, client_take_value, client_take_expect, client_take_value_seq, client_take_lock_id, client_take_lease,
	client_take_wait, client_take_token, client_take_limit, client_take_deadline_kept, client_take_now, client_take_shares,
	client_take_consistency, client_take_for;

/* What readers are made of; they return the same. */
const char *client_take_bytes(struct unpack *u, size_t max, const char *too_long, struct slice *out, int *error);
const char *client_take_ms(struct unpack *u, uint64_t min, span_ns *out);
const char *client_take_bool(struct unpack *u, bool *out);
/* The text, if it is one of two: 0 or 1; -1: neither. */
int client_take_choice(struct unpack *u, const char *zero, const char *one);

struct client_param_rule {
	const char *name;
	size_t size;             /* of the name */
	uint64_t bit;            /* CLIENT_HAS_... */
	uint32_t methods;        /* those that take it, a bit each */
	client_param_take *take; /* NULL: a list, of locks or nodes */
};
/* The method's parameter of that name, or NULL. */
const struct client_param_rule *client_param_find(unsigned method, struct slice name);
/* The name by which the method takes that parameter, NULL: it does not. */
const char *client_param_name(unsigned method, uint64_t bit);

uint64_t client_param_required(unsigned method);    /* bits */
const char *client_param_unknown(unsigned method);  /* the answer to a parameter that the method does not take */

#endif
