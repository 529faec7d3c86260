/* options.c: reads the options of a client from the environment. */
#include <stdlib.h>

#include "pawl/pawl.h"
#include "trace.h"

#define ENDPOINT_DEFAULT "127.0.0.1:7117"

/* Returns the variable; one that is empty counts as not set. */
static const char *variable(const char *name) {
	const char *text = getenv(name);
	return text && *text ? text : NULL;
}

static void set(const char **option, const char *text) {
	*option = *option ? *option : text;
}

void pawl_options_from_env(struct pawl_options *options) {
	const char *endpoints = variable("PAWL_ENDPOINTS");
	set(&options->endpoints, endpoints ? endpoints : ENDPOINT_DEFAULT);
	set(&options->ca_file, variable("PAWL_CACERT"));
	set(&options->cert_file, variable("PAWL_CERT"));
	set(&options->key_file, variable("PAWL_CERT_KEY"));
	set(&options->server_name, variable("PAWL_SERVER_NAME"));
	const char *trace = variable("TRACEPARENT");
	set(&options->trace, trace && trace_valid(slice_str(trace)) ? trace : NULL);
	options->prefer_first = options->prefer_first || variable("PAWL_PREFER_FIRST");
}
