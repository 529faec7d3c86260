/* dial.c: a client that gets its only connection from a function of the program. */
#include "pawl/dial.h"

#include "top.h"

int pawl_new_dialled(const struct pawl_options *options, pawl_dial_fn *dial, void *arg,
	struct pawl **out_client, const char **out_message) {
	struct pawl_options o = *options;
	const char *problem = "a client with its own dial function takes no endpoints";
	/* The function takes the place of this endpoint. */
	o.endpoints = "unix:inside";
	int error = options->endpoints || !dial
		? PAWL_EINVAL
		: client_core_new(&o, env_system(), out_client, &problem);
	if (error && out_message) {
		*out_message = problem;
	}
	if (!error) {
		endpoint_list_dial_by(&(*out_client)->endpoints,
			(struct endpoint_dial){ dial, arg });
	}
	return error;
}
