/* pawld_options.h: the command line of pawld. */
#ifndef PAWL_NODE_PAWLD_OPTIONS_H
#define PAWL_NODE_PAWLD_OPTIONS_H

#include <stdbool.h>

#include "problem.h"

#define PAWLD_CONFIG_DEFAULT "/etc/pawl/pawld.conf"

enum pawld_mode { PAWLD_RUN, PAWLD_DEV, PAWLD_CHECK, PAWLD_VERSION, PAWLD_HELP };

struct pawld_options {
	enum pawld_mode mode;
	/* The file for RUN and CHECK. */
	const char *config;
	/* The address for DEV; NULL means the default. */
	const char *listen;
	/* The address for clients of Redis for DEV; NULL means that there is none. */
	const char *listen_redis;
	/* The same for clients of memcached. */
	const char *listen_memcached;
	/* The addresses for DEV may be outside loopback. */
	bool insecure;
	/* DEV listens on free ports where nothing else is said, and tells which. */
	bool print_endpoints;
};

/* Returns 0, or PAWL_EINVAL with *problem set. The options borrow from argv. */
int pawld_options_parse(int argc, char **argv, struct pawld_options *out, struct problem *problem);
const char *pawld_help(void);

#endif
