/* client_terms.h: parameters of what a lock excludes and of who takes it, both ways. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_TERMS_H
#define PAWL_WIRE_CLIENT_TERMS_H

#include "client_param.h"
#include "pack.h"

/* Readers into r->core.terms, r->label, r->release_on_disconnect; client_param.h says what they return. */
client_param_take client_take_mode, client_take_permits, client_take_of, client_take_priority, client_take_lock_delay,
	client_take_release_on_disconnect, client_take_label, client_take_host, client_take_pid, client_take_bond, client_take_slots;

/* What no single one can say; `r` may be one of `locks`. *out_field is set with what is wrong. */
const char *client_terms_problem(const struct client_request *r, const char **out_field);

/* The client's side: the value of one of the parameters above. */
void client_terms_put(struct pack *k, const struct client_request *r, uint64_t param);
/* `locks` of an acquire. */
void client_terms_put_group(struct pack *k, const struct client_request *r);

#endif
