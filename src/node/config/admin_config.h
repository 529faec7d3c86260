/* admin_config.h: the section [admin] of the configuration file. Part of config_file.h. */
#ifndef PAWL_NODE_ADMIN_CONFIG_H
#define PAWL_NODE_ADMIN_CONFIG_H

#include "clock.h"
#include "core.h"
#include "tls_certificate.h"

/* The largest number of names in `readers`. */
#define ADMIN_READERS_MAX 32

/* The section [admin], without `listen`. */
struct admin_config {
	/* The clients that may read from other machines, in addition to administrators, by the
	 * names in their certificates. */
	char readers[ADMIN_READERS_MAX][TLS_NAME_MAX + 1];
	uint32_t reader_count;
	/* The prefixes of keys that have metrics of their own. */
	struct key_groups groups;
	/* How long the node says that it is not ready before a planned stop ends its vote, in
	 * nanoseconds. */
	span_ns drain_wait;
	/* Administrators may break locks, and ask for their release, on the page. */
	bool actions;
};

#endif
