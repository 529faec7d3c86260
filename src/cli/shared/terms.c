/* terms.c: the options of the commands that take a lock on their own terms: shared, permits of a
 * semaphore, priority, lock delay. */
#include "terms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

size_t terms_options(struct terms_wanted *wanted, struct cli_option *table, size_t count) {
	const struct cli_option own[TERMS_OPTIONS] = {
		{ "shared", CLI_FLAG, &wanted->shared },
		{ "permits", CLI_NUMBER, &wanted->permits },
		{ "of", CLI_NUMBER, &wanted->of },
		{ "priority", CLI_INTEGER, &wanted->priority },
		{ "lock-delay", CLI_DURATION, &wanted->delay_ms },
		{ "release-on-disconnect", CLI_FLAG, &wanted->release_on_disconnect },
		{ "label", CLI_TEXT, &wanted->label },
	};
	memcpy(table + count, own, sizeof own);
	return count + TERMS_OPTIONS;
}

struct pawl_terms terms_read(const struct cli_command_line *line,
	const struct terms_wanted *wanted) {
	if ((wanted->permits == 0) != (wanted->of == 0)) {
		cli_misuse(line,
			"--permits and --of must be given together");
	}
	if (wanted->permits && wanted->shared) {
		cli_misuse(line, "--shared and --permits exclude each other");
	}
	if (wanted->of > PAWL_PERMITS_MAX || wanted->permits > wanted->of) {
		cli_misuse(line,
			"--permits %" PRIu64 " --of %" PRIu64
			": --permits must not exceed --of, and --of must not exceed %d",
			wanted->permits, wanted->of, PAWL_PERMITS_MAX);
	}
	return (struct pawl_terms){ .mode = wanted->shared ? PAWL_SHARED : PAWL_EXCLUSIVE,
		.permits = (uint32_t)wanted->permits, .of = (uint32_t)wanted->of,
		.priority = wanted->priority, .lock_delay_ms = wanted->delay_ms,
		.release_on_disconnect = wanted->release_on_disconnect };
}

struct pawl_key_item *terms_keys(const struct cli_command_line *line,
	const struct pawl_terms *terms, char **operands, size_t count) {
	if (count > PAWL_KEYS_MAX) {
		cli_misuse(line, "at most %d keys may be given", PAWL_KEYS_MAX);
	}
	struct pawl_key_item *keys = calloc(count, sizeof *keys);
	if (!keys) {
		cli_misuse(line, "out of memory");
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (strcmp(operands[i], operands[k]) == 0) {
				cli_misuse(line, "'%s' is given twice", operands[i]);
			}
		}
		keys[i] = (struct pawl_key_item){ .key = cli_key(line, operands[i]),
			.mode = terms->mode, .permits = terms->permits, .of = terms->of };
	}
	return keys;
}

const char *terms_text(enum pawl_mode mode, uint32_t permits, uint32_t of, const uint32_t *slots,
	size_t slot_count) {
	static char text[64 + 5 * PAWL_PERMITS_MAX];
	if (mode != PAWL_PERMITS) {
		return mode == PAWL_SHARED ? "shared" : "exclusive";
	}
	int n = snprintf(text, sizeof text, "%" PRIu32 " of %" PRIu32 " permits", permits, of);
	for (size_t i = 0; slots && i < slot_count && i < PAWL_PERMITS_MAX; i++) {
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRIu32, i ? ", " : " (",
			slots[i]);
	}
	if (slots && slot_count) {
		snprintf(text + n, sizeof text - (size_t)n, ")");
	}
	return text;
}

/* Others have chosen these words, so terminals must not obey them. */
const char *terms_who(struct pawl_bytes owner, const char *host, int64_t pid, const char *label,
	const char *identity) {
	static char text[4096], place[128];
	int host_size = snprintf(place, sizeof place, "%.*s", 64, host);
	if (pid) {
		snprintf(place + host_size, sizeof place - (size_t)host_size, "%s%" PRId64,
			*host ? ":" : "process ", pid);
	}
	FILE *to = fmemopen(text, sizeof text - 1, "w");
	if (!to) {
		return "";
	}
	bool any = *place
		&& (owner.size != strlen(place) || memcmp(owner.data, place, owner.size) != 0);
	if (any) {
		output_bytes(to, pawl_str(place), 0);
	}
	if (*label) {
		fputs(any ? ", " : "", to);
		output_bytes(to, pawl_str(label), 0);
	}
	if (*identity) {
		fprintf(to, "%scertificate ", any || *label ? ", " : "");
		output_bytes(to, pawl_str(identity), 0);
	}
	fputc('\0', to);
	fclose(to);
	return text;
}
