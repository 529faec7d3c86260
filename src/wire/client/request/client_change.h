/* client_change.h: the parameters of the changes of the set of nodes (`cluster_...`), for the
 * server and for the client. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_CHANGE_H
#define PAWL_WIRE_CLIENT_CHANGE_H

#include "client_param.h"
#include "pack.h"

/* These read a parameter into r->change. client_param.h says what they return. */
client_param_take client_take_name, client_take_old, client_take_new, client_take_address,
	client_take_anyway, client_take_yes, client_take_max_lease, client_take_request_timeout,
	client_take_promise_timeout, client_take_drift;

/* Reads one item of `masters` or `replicas`, which is a name, or name=host:port. Returns the same
 * as the readers of parameters. */
const char *client_take_node(struct unpack *u, struct core_change_node *out, int *error);
/* Puts the masters before the replicas, whichever of the two lists came first. Otherwise the order
 * stays. */
void client_change_order(struct core_change_node *nodes, uint32_t count);
/* Checks what no single parameter shows. Returns NULL, or what is wrong; then *out_field names the
 * parameter at fault. */
const char *client_change_problem(const struct client_request *r, const char **out_field);

/* The client writes the value of one of the parameters above. */
void client_change_put(struct pack *k, const struct core_change *change, uint64_t param);

#endif
