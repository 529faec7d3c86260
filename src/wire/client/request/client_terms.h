/* client_terms.h: the parameters that say on what terms a lock is acquired, and who acquires it,
 * for the server and for the client. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_TERMS_H
#define PAWL_WIRE_CLIENT_TERMS_H

#include "client_param.h"
#include "pack.h"

/* These read a parameter into r->core.terms, r->core.binding, r->label or r->release_on_disconnect.
 * client_param.h says what they return. */
client_param_take client_take_mode, client_take_permits, client_take_of, client_take_priority,
	client_take_lock_delay, client_take_release_on_disconnect, client_take_label,
	client_take_host, client_take_pid, client_take_election, client_take_binding,
	client_take_order, client_take_permit_numbers;

/* Checks what no single parameter shows; `r` may also be an item of `locks`. Returns NULL, or what
 * is wrong; then *out_field names the parameter at fault. */
const char *client_order_problem(const struct client_request *r, const char **out_field);
const char *client_terms_problem(const struct client_request *r, const char **out_field);

/* The client writes the value of one of the parameters above. */
void client_terms_put(struct pack *k, const struct client_request *r, uint64_t param);
/* The client writes the `locks` of an acquire. */
void client_terms_put_group(struct pack *k, const struct client_request *r);

#endif
