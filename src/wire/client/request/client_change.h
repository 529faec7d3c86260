/* client_change.h: parameters of changes of the set (cluster_...), both ways. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_CHANGE_H
#define PAWL_WIRE_CLIENT_CHANGE_H

#include "client_param.h"
#include "pack.h"

/* Readers into r->change; client_param.h says what they return. */
client_param_take client_take_name, client_take_old, client_take_new, client_take_address, client_take_anyway, client_take_yes,
	client_take_max_lease, client_take_request_timeout, client_take_promise_timeout, client_take_drift;

/* One of `masters` or `replicas`: a name, or name=host:port. Returns as the others. */
const char *client_take_node(struct unpack *u, struct core_change_node *out, int *error);
/* Masters before replicas, in whatever order the two lists came; else as they were. */
void client_change_order(struct core_change_node *nodes, uint32_t count);
/* What no single parameter can say. *out_field is set with what is wrong. */
const char *client_change_problem(const struct client_request *r, const char **out_field);

/* The client's side: the value of one of the parameters above. */
void client_change_put(struct pack *k, const struct core_change *change, uint64_t param);

#endif
