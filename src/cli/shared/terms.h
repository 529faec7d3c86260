/* terms.h: what a lock excludes and how it is waited for: the options of the commands that take a
 * lock, and how this is shown. */
#ifndef PAWL_CLI_TERMS_H
#define PAWL_CLI_TERMS_H

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

/* The options as they are on the command line. */
struct terms_wanted {
	bool shared, release_on_disconnect;
	uint64_t permits, of;
	int32_t priority;
	uint32_t delay_ms;
	const char *label;
};

#define TERMS_OPTIONS 7
/* The help of these options, but for --release-on-disconnect, which pawl acquire refuses. */
#define TERMS_HELP \
	"  --shared             share the lock with other --shared holders, as readers\n" \
	"                       do; writers omit this\n" \
	"  --permits K          take K permits of a semaphore (with --of)\n" \
	"  --of N               how many permits the semaphore has, at most 128; all\n" \
	"                       holders must give the same N\n" \
	"  --priority N         waiters with a higher priority are served first; equal\n" \
	"                       priorities first come, first served (default 0)\n" \
	"  --lock-delay D       if the lease expires without a release, keep the key\n" \
	"                       closed for this long\n" \
	"  --label TEXT         text that is shown with the holder's host and process\n"
/* Adds the options to a table, which needs room for TERMS_OPTIONS more. Returns the new count. */
size_t terms_options(struct terms_wanted *wanted, struct cli_option *table, size_t count);
/* Returns the terms that the options stand for; ends with misuse if they make no sense. */
struct pawl_terms terms_read(const struct cli_command_line *line,
	const struct terms_wanted *wanted);
/* Makes keys of several operands, each under the same terms. Ends with misuse if an operand is
 * there twice. The caller frees the memory. */
struct pawl_key_item *terms_keys(const struct cli_command_line *line,
	const struct pawl_terms *terms, char **operands, size_t count);

/* Returns a text such as "exclusive", "shared" or "2 of 5 permits (0, 3)", in static storage until
 * the next call. */
const char *terms_text(enum pawl_mode mode, uint32_t permits, uint32_t of, const uint32_t *slots,
	size_t slot_count);
/* Returns who a holder or waiter says it is besides its owner, such as "host:4711, nightly build,
 * certificate backup"; "" if there is nothing that the owner does not say already. It is in static
 * storage until the next call. */
const char *terms_who(struct pawl_bytes owner, const char *host, int64_t pid, const char *label,
	const char *identity);

#endif
