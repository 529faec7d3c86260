/* terms.h: what a lock excludes, and how it is waited for: the options of the commands that take one, and how it is shown. */
#ifndef PAWL_CLI_TERMS_H
#define PAWL_CLI_TERMS_H

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

struct terms_wanted { /* as written */
	bool shared, release_on_disconnect;
	uint64_t permits, of;
	int32_t priority;
	uint32_t delay_ms;
	const char *label;
};

#define TERMS_OPTIONS 7
extern const char terms_help[]; /* of all of them */
/* Adds the options to a table with room for TERMS_OPTIONS more; returns the new count. */
size_t terms_options(struct terms_wanted *wanted, struct cli_option *table, size_t count);
/* What they say together, or misuse. */
struct pawl_terms terms_read(const struct cli_command_line *line, const struct terms_wanted *wanted);
/* Several operands as keys, each under the same terms; ends with misuse for one that is there twice. The memory is the caller's. */
struct pawl_key_item *terms_keys(const struct cli_command_line *line, const struct pawl_terms *terms, char **operands, size_t count);

/* "exclusive", "shared", "2 of 5 permits (0, 3)"; in static storage until the next call. */
const char *terms_text(enum pawl_mode mode, uint32_t permits, uint32_t of, const uint32_t *slots, size_t slot_count);
/* "host:4711 nightly build (certificate backup)": who a holder or waiter says it is beside its owner; "" for nothing that the owner does
 * not say already. Likewise. */
const char *terms_who(struct pawl_bytes owner, const char *host, int64_t pid, const char *label, const char *identity);

#endif
