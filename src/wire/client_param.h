/* client_param.h: which parameters each method takes, and how each is read. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_PARAM_H
#define PAWL_WIRE_CLIENT_PARAM_H

#include "client.h"
#include "unpack.h"

/* One of `locks`, as if it were a method of its own. */
#define CLIENT_PARAM_LOCK CLIENT_METHODS

/* Reads a value into r->core. NULL, or what is wrong with it and what to do; then *error, which is PAWL_EBADREQUEST before,
 * may have become PAWL_ETOOLARGE. u->bad: the bytes ended (whatever is returned). */
typedef const char *client_param_take(struct unpack *u, struct client_request *r, int *error);

struct client_param_rule {
	const char *name;
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
