/* share.h: what one identity, or one source address, may have of a node at most. The names are
 * those of the settings: in [limits] of the configuration with `_per_identity` or `_per_address`
 * behind them, and as they stand here in a section of the file of rules (src/rights/rights.h). */
#ifndef PAWL_BASE_SHARE_H
#define PAWL_BASE_SHARE_H

#include <stdint.h>

/* X(name, name in the files, what is counted) */
#define SHARE_TABLE(X) \
	X(CLIENTS, "clients", "connections") \
	X(REQUESTS, "requests", "requests under way") \
	X(WAITS, "waits", "requests that wait for others") \
	X(WATCHES, "watches", "watches") \
	X(LOCKS, "locks", "locks, or requests for them") \
	X(VALUES, "value_bytes", "bytes of lock values") \
	X(MEMORY, "client_memory", "bytes of memory for connections") \
	X(RATE, "rate", "requests per second")

enum share_kind {
#define SHARE_ENUM(name, text, what) SHARE_##name,
	SHARE_TABLE(SHARE_ENUM)
#undef SHARE_ENUM
	SHARE_KINDS
};

/* The greatest number of each kind; 0: any number is allowed. */
struct share_limits {
	uint64_t max[SHARE_KINDS];
};

extern const char *const share_kind_name[SHARE_KINDS];

#endif
