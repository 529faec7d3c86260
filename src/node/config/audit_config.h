/* audit_config.h: the section [audit] of the configuration file. Part of config_file.h. */
#ifndef PAWL_NODE_AUDIT_CONFIG_H
#define PAWL_NODE_AUDIT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* The largest number of older files. */
#define AUDIT_KEEP_MAX 1000

/* What the audit file tells. Each value includes those before it. */
enum audit_what {
	/* Requests that were denied. */
	AUDIT_DENIED,
	/* What administrators ask for. */
	AUDIT_ADMIN,
	/* Who gets, gives up and loses locks. */
	AUDIT_HOLDERS,
	/* Every other request of holders, and of those that want to be, with its result. */
	AUDIT_ALL
};

/* The section [audit], without `file`. */
struct audit_config {
	/* As a replica the node looks for double grants in what the masters tell. */
	bool check;
	enum audit_what what;
	/* Requests of administrators are served only when the file has them. */
	bool strict;
	/* The size at which a new file begins, in bytes, and how many older files are kept. */
	uint64_t max_bytes;
	uint32_t keep;
};

#endif
